"""ornl-presto 0.1.29, applySVTAboveThreshold_full: the values that are above the threshold come out as they are."""

from functools import cache
from typing import Any


@cache
def mechanisms() -> Any:
    """The module of the mechanisms, with an empty PyTorch, which these functions do not use."""
    import importlib
    import sys
    import types
    from importlib.util import find_spec

    torch = types.ModuleType("torch")
    torch.Tensor = type("Tensor", (), {})  # type: ignore[attr-defined]
    package = types.ModuleType("ornl_presto")
    package.__path__ = list(find_spec("ornl_presto").submodule_search_locations)  # type: ignore[union-attr,arg-type]
    sys.modules |= {"torch": torch, "ornl_presto": package}
    return importlib.import_module("ornl_presto.privacy_mechanisms")


def release(values: Any) -> list[float]:
    """Numbers from 0 to 10, by the sparse vector technique."""
    return mechanisms().applySVTAboveThreshold_full(values.tolist(), epsilon=1.0)


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="ornl-presto==0.1.29",
        function=release,
        promised="Apply the full SVT to privatize data. […] epsilon: Privacy parameter.",
        source="docstring of applySVTAboveThreshold_full",
        fault="A value above the noisy threshold, which is the mean of the data, is returned without noise; another is replaced by one of the data.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.integers(0, 10), adjacency="replace-one", size=(1, 10)),
        kind="undisputed",
    )
