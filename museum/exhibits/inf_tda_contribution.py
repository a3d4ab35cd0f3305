"""inf-tda 0.1, several contributions to one cell: the root of their number in place of the number."""

from typing import Any


def release(people: Any) -> list[int]:
    """The table of two cells in which each person counts a hundred times."""
    import pandas as pd
    from InfTDA import inf_tda

    cells = pd.MultiIndex.from_tuples([("A", "a"), ("A", "b")])
    second = sum(people)
    data = pd.Series([100 * (len(people) - second), 100 * second], index=cells)
    table = inf_tda(data, budget=(1.0, 1e-5), contribution=100, privacy_type="bounded", distinct_tuples=False)
    return table.reindex(cells, fill_value=0).tolist()


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="inf-tda==0.1",
        function=release,
        promised="The sensitivity is automatically determined based on the parameters `contribution` […] and `distinct_tuples`",
        source="README, How to set the sensitivity",
        fault="get_sensitivity gives √(2m) where m contributions may be to one cell, and √2·m where they may not: the two are exchanged.",
        claim=dpw.ApproxDP(1.0, 1e-5),
        neighbours=dpw.records(dpw.integers(0, 1), adjacency="replace-one", size=20, form="list"),
        kind="undisputed",
    )
