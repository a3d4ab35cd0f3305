"""Exhibits of inf-tda."""


def inf_tda_contribution(people):
    """The noisy counts of two cells, to which each person contributes a hundred times."""
    import pandas as pd
    from InfTDA import inf_tda

    cells = pd.MultiIndex.from_tuples([("A", "a"), ("A", "b")])
    second = sum(people)
    data = pd.Series([100 * (len(people) - second), 100 * second], index=cells)
    table = inf_tda(data, budget=(1.0, 1e-5), contribution=100, privacy_type="bounded", distinct_tuples=False)
    return table.reindex(cells, fill_value=0).tolist()


def exhibits(dpw, Exhibit):
    yield Exhibit(
        function=inf_tda_contribution,
        release="inf-tda==0.1",
        promised="The sensitivity is automatically determined based on the parameters `contribution` […] and `distinct_tuples`",
        source="README, How to set the sensitivity",
        fault="get_sensitivity gives √(2m) where m contributions may be to one cell, and √2·m where they may not: the two are exchanged.",
        claim=dpw.ApproxDP(1.0, 1e-5),
        neighbours=dpw.records(dpw.integers(0, 1), adjacency="replace-one", size=20, form="list"),
    )
