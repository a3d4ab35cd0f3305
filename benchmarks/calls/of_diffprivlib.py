"""diffprivlib: mechanisms, tools and models."""

import warnings
from functools import partial
from typing import Any

import numpy as np

from calls.call import Call, replace_one
from dpwitness import numbers, records

UNIT = [(0.0, 1.0)]
COUNTS = [(0, 1)]
BETWEEN = {"lower": 0, "upper": 10}


def mechanism(name: str, **settings: Any) -> Any:
    import diffprivlib.mechanisms

    return getattr(diffprivlib.mechanisms, name)(**settings)


def tool(name: str, *more: Any, **settings: Any) -> Any:
    import diffprivlib.tools

    warnings.simplefilter("ignore")  # of privacy leaks where bounds are not given, and of empty data
    function = getattr(diffprivlib.tools, name)

    def called(data):
        return function(data, *more, **settings)

    called.__name__ = name
    return called


def histogram() -> Any:
    function = tool("histogram", epsilon=1.0, bins=4, range=(0, 1))

    def histogram_counts(data):
        return function(data)[0]

    return histogram_counts


def model(name: str, *given: Any, **settings: Any) -> Any:
    import diffprivlib.models

    warnings.simplefilter("ignore")  # of convergence, on little data
    return getattr(diffprivlib.models, name)(*given, **settings)


def scalar(name: str, neighbours: list[Any] = UNIT, *, tight: bool = True, **settings: Any) -> Call:
    """A mechanism with a sensitivity of 1."""
    claimed = {key: settings[key] for key in ("epsilon", "delta") if key in settings}
    make = partial(mechanism, name, sensitivity=1, **settings)
    return Call(name=f"diffprivlib {name}", make=make, neighbours=neighbours, tight=tight, **claimed)


def over_numbers(name: str, *more: Any, tight: bool = True, **settings: Any) -> Call:
    """A tool over numbers between 0 and 1, their number public."""
    make = partial(tool, name, *more, epsilon=1.0, bounds=(0, 1), **settings)
    return Call(name=f"diffprivlib {name}", make=make, neighbours=replace_one(numbers(0, 1)), tight=tight)


def fitted(name: str, neighbours: list[Any], outcome: str, *given: Any, tight: bool = False, **settings: Any) -> Call:
    """A model; hardly any reaches its claim, which is shared out among its parts."""
    make = partial(model, name, *given, epsilon=1.0, **settings)
    return Call(name=f"diffprivlib {name}", make=make, neighbours=neighbours, outcome=outcome, tight=tight)


FLAT, FIRST, FALLING = [0.0] * 20, [1.0] + [0.0] * 19, [0.0] + [1.0] * 19
X = np.array([[0.0], [0.25], [0.5], [1.0]])
OTHER = np.array([[1.0], [0.25], [0.5], [1.0]])
Y = np.array([0.0, 0.5, 0.5, 1.0])
LABELS = np.array([0, 1, 0, 1])
PLANE = np.array([[0.6, 0.0], [0.0, 0.6], [0.3, 0.3], [0.1, 0.2]])
TURNED = np.vstack([[[0.0, -1.0]], PLANE[1:]])

CALLS = (
    scalar("Laplace", epsilon=1.0),
    scalar("LaplaceTruncated", epsilon=1.0, **BETWEEN),
    scalar("LaplaceFolded", epsilon=1.0, **BETWEEN),
    scalar("LaplaceBoundedDomain", epsilon=1.0, **BETWEEN),
    scalar("LaplaceBoundedNoise", epsilon=1.0, delta=0.05),
    scalar("Geometric", COUNTS, epsilon=1.0),
    scalar("GeometricTruncated", COUNTS, epsilon=1.0, **BETWEEN),
    scalar("GeometricFolded", COUNTS, epsilon=1.0, **BETWEEN),
    scalar("Gaussian", epsilon=1.0, delta=0.05, tight=False),
    scalar("GaussianAnalytic", epsilon=1.0, delta=0.05),
    scalar("GaussianDiscrete", COUNTS, epsilon=1.0, delta=0.05),
    scalar("Staircase", epsilon=1.0),
    scalar("Snapping", epsilon=1.0, lower=-10, upper=10),
    Call(
        name="diffprivlib Uniform",
        make=partial(mechanism, "Uniform", delta=0.1, sensitivity=1),
        neighbours=UNIT,
        epsilon=0.0,
        delta=0.1,
    ),
    Call(
        name="diffprivlib Exponential",
        make=partial(mechanism, "Exponential", epsilon=1.0, sensitivity=1, utility=FLAT),
        neighbours=[(FIRST, FALLING)],
    ),
    Call(
        name="diffprivlib Exponential, monotonic",
        make=partial(mechanism, "Exponential", epsilon=1.0, sensitivity=1, utility=FLAT, monotonic=True),
        neighbours=[(FIRST, FLAT)],
    ),
    Call(
        name="diffprivlib PermuteAndFlip",
        make=partial(mechanism, "PermuteAndFlip", epsilon=1.0, sensitivity=1, utility=FLAT),
        neighbours=[([1.0, 0.0], [0.0, 1.0]), (FIRST, FALLING)],
    ),
    Call(
        name="diffprivlib ExponentialCategorical",
        make=partial(
            mechanism, "ExponentialCategorical", epsilon=1.0, utility_list=[["a", "b", 1], ["a", "c", 1], ["b", "c", 1]]
        ),
        neighbours=[("a", "b")],
    ),
    Call(
        name="diffprivlib ExponentialHierarchical",
        make=partial(mechanism, "ExponentialHierarchical", epsilon=1.0, hierarchy=[["a", "b"], ["c", "d"]]),
        neighbours=[("a", "c")],
    ),
    Call(
        name="diffprivlib Binary",
        make=partial(mechanism, "Binary", epsilon=1.0, value0="no", value1="yes"),
        neighbours=[("no", "yes")],
    ),
    Call(
        name="diffprivlib Bingham",
        make=partial(mechanism, "Bingham", epsilon=1.0, sensitivity=1.0),
        neighbours=[(np.zeros((2, 2)), np.diag([1.0, 0.0])), (np.diag([0.0, 1.0]), np.diag([1.0, 0.0]))],
        tight=False,
    ),
    over_numbers("mean"),
    over_numbers("sum"),
    over_numbers("var", tight=False),
    over_numbers("std", tight=False),
    over_numbers("nanmean"),
    over_numbers("nansum"),
    over_numbers("median", tight=False),
    over_numbers("quantile", 0.25, tight=False),
    over_numbers("percentile", 90, tight=False),
    Call(
        name="diffprivlib count_nonzero",
        make=partial(tool, "count_nonzero", epsilon=1.0),
        neighbours=replace_one(numbers(0, 1)),
    ),
    Call(name="diffprivlib histogram", make=histogram, neighbours=records(numbers(0, 1))),
    fitted("LinearRegression", [((X, Y), (OTHER, Y))], "coef_", bounds_X=(-1, 1), bounds_y=(0, 1), fit_intercept=False),
    fitted("LogisticRegression", [((X, LABELS), (OTHER, LABELS))], "coef_,intercept_", data_norm=1.0),
    fitted("GaussianNB", [((X, LABELS), (OTHER, LABELS))], "theta_,var_,class_count_", bounds=(0, 1)),
    fitted("KMeans", [(X, OTHER)], "cluster_centers_", 2, bounds=(0, 1)),
    fitted("StandardScaler", [(X, OTHER)], "mean_,var_", bounds=(0, 1)),
    fitted("PCA", [(PLANE, TURNED)], "components_", 1, data_norm=1.0, centered=True),
)
