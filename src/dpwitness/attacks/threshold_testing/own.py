"""Candidates against a mechanism of the user's that compares answers to queries with a noisy threshold."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from dpwitness.attacks.candidate import Candidate
from dpwitness.attacks.threshold_testing.candidates import gptt
from dpwitness.claims import Claim
from dpwitness.neighbours import Data

__all__ = ["own_mechanism"]

#: How a budget is split between threshold and queries: those of the published mechanisms.
SPLITS: Final = ((0.5, 0.5), (0.25, 0.75), (1.0, np.inf))
#: Names that a threshold goes by.
THRESHOLDS: Final = ("threshold", "theta", "T", "t")


def own_mechanism(parameters: Mapping[str, Any], data: Data | None, claim: Claim, runs: int) -> Iterator[Candidate]:
    """Theorem 4.7 of Chen & Machanavajjhala (2015) for every way to split ε that has been published.

    For a mechanism from a list of query answers to one flag each, ⊤ or ⊥. Of its parameters `epsilon1`, `epsilon2`,
    `epsilon`, `threshold` (or `theta`, `T`, `t`) and `sensitivity` are used, where it has them; else the claim's ε, 0
    and 1.
    """
    numbers = {name: float(value) for name, value in parameters.items() if isinstance(value, int | float)}
    epsilon = numbers.get("epsilon") or claim.parameter or 1.0
    known = {
        "sensitivity": numbers.get("sensitivity", 1.0),
        "threshold": next((numbers[name] for name in THRESHOLDS if name in numbers), 0.0),
    }
    splits = [(first * epsilon, second * epsilon) for first, second in SPLITS]
    if numbers.get("epsilon1") and numbers.get("epsilon2"):
        splits = [(numbers["epsilon1"], numbers["epsilon2"])]
    for epsilon1, epsilon2 in splits:
        yield from gptt(known | {"epsilon1": epsilon1, "epsilon2": epsilon2}, data, claim, runs)
