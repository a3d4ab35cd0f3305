"""diffprivlib 0.3.0, PCA: the noise of the second moments is never negative."""

from functools import cache
from typing import Any


@cache
def pca() -> Any:
    """The class; in 0.3.0 with two names that LogisticRegression alone uses and that later scikit-learn lacks."""
    from importlib.metadata import version

    if version("diffprivlib") == "0.3.0":
        from sklearn.linear_model import _logistic
        from sklearn.utils import fixes

        _logistic._logistic_loss_and_grad = fixes._joblib_parallel_args = None
    from diffprivlib.models import PCA

    return PCA


def spread(points: Any) -> list[float]:
    """The singular value of the one component of numbers from -1 to 1."""
    import warnings

    warnings.simplefilter("ignore")
    model = pca()(n_components=1, epsilon=1.0, bounds=(-1.0, 1.0), data_norm=1.0).fit(points)
    return [float(value) for value in model.singular_values_]


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="diffprivlib==0.3.0",
        function=spread,
        promised="Principal component analysis (PCA) with differential privacy.",
        source="docstring of PCA; IBM/differential-privacy-library#23",
        fault="The second moments get the noise of Wishart, which is never negative, so second moments below the true ones never come out.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records((dpw.numbers(-1, 1),), adjacency="replace-one", size=200, form="array"),
        kind="undisputed",
        fixed="diffprivlib==0.6.6",
    )
