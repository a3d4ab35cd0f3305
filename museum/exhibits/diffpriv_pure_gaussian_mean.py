"""diffpriv-pure 0.1.0, private_mean with δ > 0: the classical σ, which needs ε < 1, at ε = 7."""

from typing import Any


def mean(values: Any) -> float:
    """The mean of ten numbers between 0 and 1."""
    from diffpriv_pure import private_mean

    return private_mean(values, (0.0, 1.0), epsilon=7.0, delta=0.2)


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="diffpriv-pure==0.1.0",
        function=mean,
        promised="Analytic Gaussian σ per Balle & Wang 2018",
        source="README, table of the public API, gaussian_sigma",
        fault="σ = Δ√(2 ln(1.25/δ))/ε is the classical formula, which holds for ε < 1 only; it is used for all ε.",
        claim=dpw.ApproxDP(7.0, 0.2),
        neighbours=dpw.records(dpw.numbers(0, 1), adjacency="replace-one", size=10, form="list"),
        kind="undisputed",
    )
