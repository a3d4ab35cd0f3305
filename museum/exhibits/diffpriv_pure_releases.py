"""Exhibits of diffpriv-pure."""

from functools import partial


def diffpriv_pure_count(people):
    """The number of people, with noise."""
    from diffpriv_pure import private_count

    return private_count(len(people), epsilon=1.0)


def diffpriv_pure_gaussian_mean(values):
    """The mean of ten numbers between 0 and 1."""
    from diffpriv_pure import private_mean

    return private_mean(values, (0.0, 1.0), epsilon=7.0, delta=0.2)


def diffpriv_pure_sum(values):
    """The sum of numbers between 10 and 20."""
    from diffpriv_pure import private_sum

    return private_sum(values, (10.0, 20.0), epsilon=1.0)


def exhibits(dpw, Exhibit):
    exhibit = partial(Exhibit, release="diffpriv-pure==0.1.0")
    yield exhibit(
        function=diffpriv_pure_count,
        promised="Shifted geometric for pure ε-DP integer counts.",
        source="docstring of geometric_noise, which private_count adds",
        fault="The noise is never negative, so a count below the true one never comes out.",
        neighbours=dpw.records(dpw.flags()),
    )
    yield exhibit(
        function=diffpriv_pure_gaussian_mean,
        promised="Analytic Gaussian σ per Balle & Wang 2018",
        source="README, table of the public API, gaussian_sigma",
        fault="σ = Δ√(2 ln(1.25/δ))/ε is the classical formula, which holds for ε < 1 only; it is used for all ε.",
        claim=dpw.ApproxDP(7.0, 0.2),
        neighbours=dpw.records(dpw.numbers(0, 1), adjacency="replace-one", size=10, form="list"),
    )
    yield exhibit(
        function=diffpriv_pure_sum,
        promised="Pure ε-DP: Laplace noise for a sum query",
        source="README, quick start; no adjacency is named",
        fault="The sensitivity is high − low; a record that is added moves the sum by as much as high.",
        neighbours=dpw.records(dpw.numbers(10, 20), adjacency="add-remove", size=(1, 100), form="list"),
        kind="depends on the adjacency",
    )
