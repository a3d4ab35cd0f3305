"""diffprivlib 0.3.0, Wishart: the noise is never negative."""

from functools import cache
from typing import Any


@cache
def wishart() -> Any:
    """The class, with two names that LogisticRegression alone uses and that later releases of scikit-learn lack."""
    from sklearn.linear_model import _logistic
    from sklearn.utils import fixes

    _logistic._logistic_loss_and_grad = fixes._joblib_parallel_args = None
    from diffprivlib.mechanisms import Wishart

    return Wishart


def second_moment(values: Any) -> float:
    """The noisy sum of the squares of numbers from -1 to 1."""
    import numpy as np

    column = np.reshape(values, (-1, 1))
    mechanism = wishart()().set_epsilon(1.0).set_sensitivity(1.0)
    return float(mechanism.randomise(column.T @ column)[0, 0])


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="diffprivlib==0.3.0",
        function=second_moment,
        promised="Used to achieve differential privacy on 2nd moment matrices. […] `delta` must be zero",
        source="docstrings of Wishart and of its set_epsilon_delta; IBM/differential-privacy-library#23 and #42",
        fault="The noise is positive semidefinite, so a second moment below the true one never comes out.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.numbers(-1, 1), size=(0, 20)),
        kind="undisputed",
    )
