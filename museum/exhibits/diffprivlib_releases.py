"""Exhibits of diffprivlib."""

from functools import cache, partial
from typing import Any


def diffprivlib_kmeans(points: Any) -> list[float]:
    """The centres of four clusters, from left to right."""
    import warnings

    from diffprivlib.models import KMeans

    warnings.simplefilter("ignore")
    model = KMeans(n_clusters=4, epsilon=1.0, bounds=(0.0, 1.0)).fit(points)
    return sorted(float(centre) for centre in model.cluster_centers_.ravel())


def diffprivlib_linear_regression_0_5(data: Any) -> float:
    """The slope of a line through the origin."""
    import warnings

    from diffprivlib.models import LinearRegression

    warnings.simplefilter("ignore")  # of the optimiser, on little data
    model = LinearRegression(epsilon=1.0, bounds_X=(0.0, 5.0), bounds_y=(0.0, 1.0), fit_intercept=False)
    return float(model.fit(*data).coef_[0])


def diffprivlib_linear_regression_mixed_bounds(data: Any) -> float:
    """The slope of a line through the origin."""
    import warnings

    from diffprivlib.models import LinearRegression

    warnings.simplefilter("ignore")  # of the optimiser, on little data
    model = LinearRegression(epsilon=1.0, bounds_X=(-0.1, 1.0), bounds_y=(0.0, 1.0), fit_intercept=False)
    return float(model.fit(*data).coef_[0])


def diffprivlib_naive_bayes_classes(data: Any) -> list[float]:
    """The classes of a fitted model."""
    import warnings

    from diffprivlib.models import GaussianNB

    warnings.simplefilter("ignore")
    model = GaussianNB(epsilon=1.0, bounds=(0.0, 1.0)).fit(*data)
    return [float(label) for label in model.classes_]


def diffprivlib_nanmean(values: Any) -> float:
    """The mean of numbers from 0 to 1, of which some are missing."""
    from diffprivlib.tools import nanmean

    return float(nanmean(values, epsilon=1.0, bounds=(0.0, 1.0)))


def diffprivlib_nanstd(values: Any) -> float:
    """The standard deviation of numbers from 0 to 1, of which some are missing."""
    from diffprivlib.tools import nanstd

    return float(nanstd(values, epsilon=1.0, bounds=(0.0, 1.0)))


def diffprivlib_nanvar(values: Any) -> float:
    """The variance of numbers from 0 to 1, of which some are missing."""
    from diffprivlib.tools import nanvar

    return float(nanvar(values, epsilon=1.0, bounds=(0.0, 1.0)))


@cache
def make_importable() -> None:
    """Give diffprivlib 0.3.0 two names that LogisticRegression alone uses and that later releases of scikit-learn lack."""
    from importlib.metadata import version

    if version("diffprivlib") == "0.3.0":
        from sklearn.linear_model import _logistic
        from sklearn.utils import fixes

        _logistic._logistic_loss_and_grad = fixes._joblib_parallel_args = None


def diffprivlib_pca(points: Any) -> list[float]:
    """The singular value of the one component of numbers from -1 to 1."""
    import warnings

    make_importable()
    from diffprivlib.models import PCA

    warnings.simplefilter("ignore")
    model = PCA(n_components=1, epsilon=1.0, bounds=(-1.0, 1.0), data_norm=1.0).fit(points)
    return [float(value) for value in model.singular_values_]


def diffprivlib_quantile_nan(values: Any) -> float:
    """The median of numbers from 0 to 1, of which some are missing."""
    from diffprivlib.tools import quantile

    return float(quantile(values, 0.5, epsilon=1.0, bounds=(0.0, 1.0)))


def diffprivlib_wishart(values: Any) -> float:
    """The noisy sum of the squares of numbers from -1 to 1."""
    import numpy as np

    make_importable()
    from diffprivlib.mechanisms import Wishart

    column = np.reshape(values, (-1, 1))
    mechanism = Wishart().set_epsilon(1.0).set_sensitivity(1.0)
    return float(mechanism.randomise(column.T @ column)[0, 0])


def exhibits() -> list[Any]:
    """Return the exhibits."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    exhibit = partial(Exhibit, release="diffprivlib==0.6.6", claim=dpw.PureDP(1.0), kind="undisputed")
    some_missing = dpw.records(dpw.numbers(0, 1, missing=True), adjacency="replace-one", size=(1, 20))
    divided_by_all = (
        "The sensitivity is divided by the number of all values; the statistic is that of the values that are not NaN."
    )
    return [
        exhibit(
            function=diffprivlib_kmeans,
            promised="Implements the DPLloyd approach presented in [SCL16]_",
            source="docstring of KMeans",
            fault="An empty cluster is left as it is, without noise.",
            neighbours=dpw.records((dpw.numbers(0, 1),), size=(1, 20), form="array"),
        ),
        exhibit(
            function=diffprivlib_linear_regression_0_5,
            promised="Ordinary least squares Linear Regression with differential privacy.",
            source="docstring of LinearRegression",
            fault="The sensitivity of ΣX² is taken from the lower bound twice: with bounds from 0 no noise is added to it.",
            neighbours=dpw.records(((dpw.numbers(0.0, 5.0),), dpw.numbers(0, 1)), size=(1, 1000)),
        ),
        exhibit(
            function=diffprivlib_linear_regression_mixed_bounds,
            promised="Ordinary least squares Linear Regression with differential privacy.",
            source="docstring of LinearRegression",
            fault="The sensitivity of ΣX² is taken from the lower bound twice: 0.01 in place of 1.",
            neighbours=dpw.records(((dpw.numbers(-0.1, 1.0),), dpw.numbers(0, 1)), size=(1, 1000)),
        ),
        exhibit(
            function=diffprivlib_naive_bayes_classes,
            promised="Gaussian Naive Bayes (GaussianNB) with differential privacy",
            source="docstring of GaussianNB",
            fault="The classes of the model are the labels in the data; a label of one person tells that person.",
            neighbours=dpw.records(((dpw.numbers(0, 1),), dpw.integers(0, 2)), size=(1, 20)),
        ),
        exhibit(
            function=diffprivlib_nanmean,
            promised="Compute the differentially private arithmetic mean along the specified axis, ignoring NaNs.",
            source="docstring of nanmean",
            fault=divided_by_all,
            neighbours=some_missing,
        ),
        exhibit(
            function=diffprivlib_nanstd,
            promised="Compute the standard deviation along the specified axis, ignoring NaNs.",
            source="docstring of nanstd",
            fault=divided_by_all,
            neighbours=some_missing,
        ),
        exhibit(
            function=diffprivlib_nanvar,
            promised="Compute the differentially private variance along the specified axis, ignoring NaNs.",
            source="docstring of nanvar",
            fault=divided_by_all,
            neighbours=some_missing,
        ),
        exhibit(
            function=diffprivlib_pca,
            release="diffprivlib==0.3.0",
            promised="Principal component analysis (PCA) with differential privacy.",
            source="docstring of PCA; IBM/differential-privacy-library#23",
            fault="The second moments get the noise of Wishart, which is never negative, so second moments below the true ones never come out.",
            neighbours=dpw.records((dpw.numbers(-1, 1),), adjacency="replace-one", size=200, form="array"),
            fixed="diffprivlib==0.6.6",
        ),
        exhibit(
            function=diffprivlib_quantile_nan,
            promised="Compute the differentially private quantile of the array.",
            source="docstring of quantile",
            fault="If any value is NaN, NaN is returned without noise (a note in the source says that this is to be done).",
            neighbours=some_missing,
        ),
        exhibit(
            function=diffprivlib_wishart,
            release="diffprivlib==0.3.0",
            promised="Used to achieve differential privacy on 2nd moment matrices. […] `delta` must be zero",
            source="docstrings of Wishart and of its set_epsilon_delta; IBM/differential-privacy-library#23 and #42",
            fault="The noise is positive semidefinite, so a second moment below the true one never comes out.",
            neighbours=dpw.records(dpw.numbers(-1, 1), size=(0, 20)),
        ),
    ]
