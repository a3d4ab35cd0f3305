"""Estimators as scikit-learn has them, diffprivlib's models among them: objects with `.fit(X, y)`."""

import copy
import inspect
import math
from collections.abc import Callable
from typing import Any

from dpwitness.errors import InvalidParameter
from dpwitness.mechanisms.libraries.library import Library


class Estimators(Library):
    """Objects with `.fit`, of whatever class; `.epsilon` (nats) is their claim where they have one.

    What is released of a fit is for the user to name, as `outcome="coef_,intercept_"`.
    """

    def recognises(self, thing: object) -> bool:
        """Whether it has the method, and is nothing that is called itself, as a network is."""
        if inspect.isclass(thing) or not callable(getattr(thing, "fit", None)):
            return False
        return hasattr(thing, "get_params") or not callable(thing)

    def function(self, thing: Any) -> Callable[..., object]:
        """Return what fits a copy of it: to one array, or to the two of a tuple (X, y). The copy is returned.

        A copy, because a fit may leave behind what the next one starts from, and accountants count every one.
        """
        labelled = _needs_labels(thing.fit)

        def fit(data: Any) -> object:
            if labelled and not isinstance(data, tuple):
                raise InvalidParameter("fit takes X and y: give form='xy'")
            estimator = copy.deepcopy(thing, _without_record(thing))
            estimator.fit(*data) if isinstance(data, tuple) else estimator.fit(data)
            return estimator

        return fit


def _without_record(thing: Any) -> dict[int, object]:
    """What copies have in the place of an accountant of diffprivlib that refuses nothing: a new one, as a memo.

    The default one records all that was ever spent in a process: a copy of its list would take longer with every fit.
    """
    accountant: Any = getattr(thing, "accountant", None)
    if not type(accountant).__module__.startswith("diffprivlib."):
        return {}
    limited = accountant.epsilon < math.inf or accountant.delta < 1
    return {} if limited else {id(accountant): type(accountant)()}


def _needs_labels(fit: Callable[..., object]) -> bool:
    """Whether it has a parameter y without a default; False where its parameters cannot be read."""
    try:
        labels = inspect.signature(fit).parameters.get("y")
    except (TypeError, ValueError):
        return False
    return labels is not None and labels.default is inspect.Parameter.empty


LIBRARY = Estimators()
