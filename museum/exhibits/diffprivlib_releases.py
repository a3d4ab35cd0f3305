"""Exhibits of diffprivlib."""

from functools import cache, partial


@cache
def models():
    """The package's models, without their warnings.

    diffprivlib 0.3.0 imports two names that its LogisticRegression alone uses and that scikit-learn has no longer.
    """
    import warnings
    from importlib.metadata import version

    warnings.simplefilter("ignore")  # warnings of the optimiser on little data, and of privacy leaks
    if version("diffprivlib") == "0.3.0":
        from sklearn.linear_model import _logistic
        from sklearn.utils import fixes

        _logistic._logistic_loss_and_grad = fixes._joblib_parallel_args = None
    from diffprivlib import models

    return models


def diffprivlib_kmeans(points):
    """The centres of four clusters, from left to right."""
    model = models().KMeans(n_clusters=4, epsilon=1.0, bounds=(0.0, 1.0)).fit(points)
    return sorted(float(centre) for centre in model.cluster_centers_.ravel())


def slope(data, bounds):
    """The noisy slope of diffprivlib's linear regression through the origin, at ε = 1 nat."""
    kind = models().LinearRegression
    model = kind(epsilon=1.0, bounds_X=bounds, bounds_y=(0.0, 1.0), fit_intercept=False)
    return float(model.fit(*data).coef_[0])


def diffprivlib_linear_regression_0_5(data):
    """The slope for features from 0 to 5."""
    return slope(data, (0.0, 5.0))


def diffprivlib_linear_regression_mixed_bounds(data):
    """The slope for features from -0.1 to 1."""
    return slope(data, (-0.1, 1.0))


def diffprivlib_naive_bayes_classes(data):
    """The classes of a fitted model."""
    return [float(label) for label in models().GaussianNB(epsilon=1.0, bounds=(0.0, 1.0)).fit(*data).classes_]


def diffprivlib_pca(points):
    """The singular value of the one component of numbers from -1 to 1."""
    model = models().PCA(n_components=1, epsilon=1.0, bounds=(-1.0, 1.0), data_norm=1.0).fit(points)
    return [float(value) for value in model.singular_values_]


def statistic(name):
    """The function of an exhibit: a statistic of numbers from 0 to 1, of which some are missing."""

    def released(values):
        from diffprivlib import tools

        return float(getattr(tools, name)(values, epsilon=1.0, bounds=(0.0, 1.0)))

    released.__name__ = released.__qualname__ = f"diffprivlib_{name}"
    return released


diffprivlib_nanmean = statistic("nanmean")
diffprivlib_nanstd = statistic("nanstd")
diffprivlib_nanvar = statistic("nanvar")


def diffprivlib_quantile_nan(values):
    """The median of numbers from 0 to 1, of which some are missing."""
    from diffprivlib.tools import quantile

    return float(quantile(values, 0.5, epsilon=1.0, bounds=(0.0, 1.0)))


def diffprivlib_wishart(values):
    """The noisy sum of the squares of numbers from -1 to 1."""
    import numpy as np

    models()  # makes 0.3.0 importable
    from diffprivlib.mechanisms import Wishart

    column = np.reshape(values, (-1, 1))
    mechanism = Wishart().set_epsilon(1.0).set_sensitivity(1.0)
    return float(mechanism.randomise(column.T @ column)[0, 0])


def exhibits(dpw, Exhibit):
    exhibit = partial(Exhibit, release="diffprivlib==0.6.6")
    some_missing = dpw.records(dpw.numbers(0, 1, missing=True), adjacency="replace-one", size=(1, 20))
    yield exhibit(
        function=diffprivlib_kmeans,
        promised="Implements the DPLloyd approach presented in [SCL16]_",
        source="docstring of KMeans",
        fault="An empty cluster is left as it is, without noise.",
        neighbours=dpw.records((dpw.numbers(0, 1),), size=(1, 20), form="array"),
    )
    for function, lowest, highest, noise in (
        (diffprivlib_linear_regression_0_5, 0.0, 5.0, "with bounds from 0 no noise is added to it"),
        (diffprivlib_linear_regression_mixed_bounds, -0.1, 1.0, "0.01 in place of 1"),
    ):
        yield exhibit(
            function=function,
            promised="Ordinary least squares Linear Regression with differential privacy.",
            source="docstring of LinearRegression",
            fault=f"The sensitivity of ΣX² is taken from the lower bound twice: {noise}.",
            neighbours=dpw.records(((dpw.numbers(lowest, highest),), dpw.numbers(0, 1)), size=(1, 1000)),
        )
    yield exhibit(
        function=diffprivlib_naive_bayes_classes,
        promised="Gaussian Naive Bayes (GaussianNB) with differential privacy",
        source="docstring of GaussianNB",
        fault="The classes of the model are the labels in the data; a label of one person tells that person.",
        neighbours=dpw.records(((dpw.numbers(0, 1),), dpw.integers(0, 2)), size=(1, 20)),
    )
    promises = {
        diffprivlib_nanmean: "Compute the differentially private arithmetic mean along the specified axis, ignoring NaNs.",
        diffprivlib_nanstd: "Compute the standard deviation along the specified axis, ignoring NaNs.",
        diffprivlib_nanvar: "Compute the differentially private variance along the specified axis, ignoring NaNs.",
    }
    for function, promised in promises.items():
        yield exhibit(
            function=function,
            promised=promised,
            source=f"docstring of {function.__name__.rpartition('_')[2]}",
            fault="The sensitivity is divided by the number of all values; the statistic is that of the values that are not NaN.",
            neighbours=some_missing,
        )
    yield exhibit(
        function=diffprivlib_pca,
        release="diffprivlib==0.3.0",
        promised="Principal component analysis (PCA) with differential privacy.",
        source="docstring of PCA; IBM/differential-privacy-library#23",
        fault="The second moments get the noise of Wishart, which is never negative, so second moments below the true ones never come out.",
        neighbours=dpw.records((dpw.numbers(-1, 1),), adjacency="replace-one", size=200, form="array"),
        fixed="diffprivlib==0.6.6",
    )
    yield exhibit(
        function=diffprivlib_quantile_nan,
        promised="Compute the differentially private quantile of the array.",
        source="docstring of quantile",
        fault="If any value is NaN, NaN is returned without noise (a note in the source says that this is to be done).",
        neighbours=some_missing,
    )
    yield exhibit(
        function=diffprivlib_wishart,
        release="diffprivlib==0.3.0",
        promised="Used to achieve differential privacy on 2nd moment matrices. […] `delta` must be zero",
        source="docstrings of Wishart and of its set_epsilon_delta; IBM/differential-privacy-library#23 and #42",
        fault="The noise is positive semidefinite, so a second moment below the true one never comes out.",
        neighbours=dpw.records(dpw.numbers(-1, 1), size=(0, 20)),
    )
