"""diffprivlib: plain signatures, with values for its own parameters.

Bounds are always given. A mechanism that still warns that its defaults leak (`PrivacyLeakWarning`) is not run: see
`worker.trial`.
"""

from collections.abc import Mapping
from typing import Any

from dpwitness.sweeps.describers.signatures import Signatures


class Diffprivlib(Signatures):
    """Its tools, its models, and its mechanisms for numbers."""

    def describes(self, thing: object, place: str) -> bool:
        """Whether it is of diffprivlib, and has a parameter for ε that it does not hand on to a class of its own."""
        own = str(getattr(thing, "__module__", "")).startswith("diffprivlib.")
        return own and not str(getattr(thing, "__name__", "")).startswith("DP") and super().describes(thing, place)

    def values(self, thing: Any, ends: tuple[float, float]) -> Mapping[str, Any]:
        """Small models; bounds for each dimension of a histogram, and whole numbers where it takes no others."""
        found: dict[str, Any] = {"data_norm": 2.0, "classes": [0, 1], "n_clusters": 2, "n_components": 1}
        found |= {"max_depth": 2, "n_estimators": 2, "max_iter": 20}
        if thing.__name__.startswith("Geometric"):  # over whole numbers
            found |= {"lower": int(ends[0]), "upper": int(ends[1])}
        if thing.__name__ == "histogramdd":
            found |= {"range": [ends] * 2, "bins": 3}
        return found


DESCRIBER = Diffprivlib()
