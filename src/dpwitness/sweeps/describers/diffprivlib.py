"""diffprivlib: plain signatures, with values for its own parameters.

Bounds are always given. A mechanism that still warns that its defaults leak (`PrivacyLeakWarning`) is not run: see
`worker.try_attempt`.
"""

from collections.abc import Mapping
from typing import Any

from dpwitness.sweeps.describers.signatures import Signatures


class Diffprivlib(Signatures):
    """The describer of the tools, the models, and the mechanisms for numbers of diffprivlib."""

    def describes(self, thing: object, place: str) -> bool:
        """Whether the thing belongs to diffprivlib and has an ε of its own, unlike the wrapper classes DP…."""
        own = str(getattr(thing, "__module__", "")).startswith("diffprivlib.")
        return own and not str(getattr(thing, "__name__", "")).startswith("DP") and super().describes(thing, place)

    def values(self, thing: Any, ends: tuple[float, float]) -> Mapping[str, Any]:
        """Values of parameters for small models, and bounds for histograms and for mechanisms over integers."""
        found: dict[str, Any] = {"data_norm": 2.0, "classes": [0, 1], "n_clusters": 2, "n_components": 1}
        found |= {"max_depth": 2, "n_estimators": 2, "max_iter": 20}
        if thing.__name__.startswith("Geometric"):  # over integers
            found |= {"lower": int(ends[0]), "upper": int(ends[1])}
        if thing.__name__ == "histogramdd":
            found |= {"range": [ends] * 2, "bins": 3}
        return found


#: DESCRIBER is the describer of diffprivlib.
DESCRIBER = Diffprivlib()
