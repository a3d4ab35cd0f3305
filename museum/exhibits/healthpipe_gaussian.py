"""healthpipe 0.1.0, GaussianMechanism: the classical σ, which needs ε < 1, at ε = 7."""

from typing import Any


def total(values: Any) -> float:
    """The sum of numbers between 0 and 1."""
    from healthpipe.privacy.differential import GaussianMechanism

    return GaussianMechanism(sensitivity=1.0, epsilon=7.0, delta=0.2).release(sum(values))


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="healthpipe==0.1.0",
        function=total,
        promised="Uses the analytic Gaussian mechanism calibration.",
        source="docstring of GaussianMechanism",
        fault="σ = Δ√(2 ln(1.25/δ))/ε is the classical formula, which holds for ε < 1 only; it is used for all ε.",
        claim=dpw.ApproxDP(7.0, 0.2),
        neighbours=dpw.records(dpw.numbers(0, 1), size=(0, 20), form="list"),
        kind="undisputed",
    )
