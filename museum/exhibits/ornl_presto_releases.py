"""Exhibits of ornl-presto."""

from functools import cache, partial


@cache
def mechanisms():
    """The module of the mechanisms, with an empty PyTorch, which these functions do not use."""
    import importlib
    import sys
    import types
    from importlib.util import find_spec

    torch = types.ModuleType("torch")
    torch.Tensor = type("Tensor", (), {})
    package = types.ModuleType("ornl_presto")
    package.__path__ = list(find_spec("ornl_presto").submodule_search_locations)
    sys.modules |= {"torch": torch, "ornl_presto": package}
    return importlib.import_module("ornl_presto.privacy_mechanisms")


def ornl_presto_gaussian(values):
    """Numbers from 0 to 10 with Gaussian noise."""
    return mechanisms().applyDPGaussian(values.tolist(), sensitivity=10.0, delta=1e-5, epsilon=1.0)


def ornl_presto_sparse_vector(values):
    """The integers from 0 to 10 that the sparse vector technique returns, at ε = 1 nat."""
    return mechanisms().applySVTAboveThreshold_full(values.tolist(), epsilon=1.0)


def exhibits(dpw, Exhibit):
    exhibit = partial(Exhibit, release="ornl-presto==0.1.29")
    yield exhibit(
        function=ornl_presto_gaussian,
        promised="Apply the Gaussian mechanism to privatize data. […] delta: Target delta for (epsilon, delta)-DP.",
        source="docstring of applyDPGaussian",
        fault="σ = √(Δ ln(1.25/δ))/ε: the root of the sensitivity, and no factor 2.",
        claim=dpw.ApproxDP(1.0, 1e-5),
        neighbours=dpw.records(dpw.numbers(0, 10), adjacency="replace-one", size=(1, 10)),
    )
    yield exhibit(
        function=ornl_presto_sparse_vector,
        promised="Apply the full SVT to privatize data. […] epsilon: Privacy parameter.",
        source="docstring of applySVTAboveThreshold_full",
        fault="A value above the noisy threshold, which is the mean of the data, is returned without noise; another is replaced by one of the data.",
        neighbours=dpw.records(dpw.integers(0, 10), adjacency="replace-one", size=(1, 10)),
    )
