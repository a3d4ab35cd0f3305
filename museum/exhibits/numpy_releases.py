"""Exhibits of numpy."""


def numpy_laplace(values):
    """The sum of numbers between 0 and 1."""
    import numpy as np

    return float(values.sum() + np.random.default_rng().laplace(0.0, 1.0))


def exhibits(dpw, Exhibit):
    yield Exhibit(
        function=numpy_laplace,
        release="numpy==2.2.6",
        promised="Draw samples from the Laplace or double exponential distribution with specified location (or mean) and scale (decay).",
        source="docstring of Generator.laplace; that a sum with such noise of scale 1 is 1-DP holds for real numbers",
        fault="A sum of floating-point numbers can take different values on neighbouring inputs (Mironov 2012).",
        neighbours=dpw.records(dpw.numbers(0, 1), size=(0, 10)),
        kind="arguable",
        options={"bits": "strict"},
    )
