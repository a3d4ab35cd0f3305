"""Objects of any library that run by a method: `.randomise`, `.add_noise`, `.quick_result` or `.fit`."""

import copy
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpwitness.errors import InvalidParameter
from dpwitness.mechanisms.libraries.library import Library, number, of_sensitivity
from dpwitness.neighbours import Relation


class Objects(Library):
    """Objects with a method that runs them; their claim is in `.epsilon` (nats), `.delta` and `.sensitivity`.

    diffprivlib has `.randomise(x)`; python-dp has `.add_noise(x)`, and `.quick_result(list)`, which keeps nothing of
    earlier lists. Estimators of scikit-learn and diffprivlib have `.fit(X, y)`; the user names the attributes that a
    fit releases, as `outcome="coef_,intercept_"`.
    """

    def recognises(self, thing: object) -> bool:
        """Whether an object has a method that runs it; `.fit` of a callable object, as of a network, does not count."""
        if hasattr(thing, "randomise"):
            return True
        if inspect.isclass(thing):
            return False
        fits = callable(getattr(thing, "fit", None)) and (hasattr(thing, "get_params") or not callable(thing))
        return hasattr(thing, "add_noise") or hasattr(thing, "quick_result") or fits

    def function(self, thing: Any) -> Callable[..., object]:
        """Return a function that calls the object's method."""
        if hasattr(thing, "randomise"):
            selects = not inspect.isclass(thing) and hasattr(thing, "utility")
            return _selection(thing) if selects else lambda value: thing.randomise(number(value))
        if hasattr(thing, "quick_result"):
            return lambda values: thing.quick_result(np.atleast_1d(values).tolist())
        if hasattr(thing, "add_noise"):
            return lambda value: thing.add_noise(number(value))
        return _fit(thing)

    def neighbours(self, thing: object) -> Relation | None:
        """The relation of the pair (0, sensitivity); None for an object that selects a candidate, or an estimator."""
        takes_number = any(hasattr(thing, name) for name in ("randomise", "add_noise", "quick_result"))
        return of_sensitivity(thing) if takes_number and not hasattr(thing, "utility") else None


def _selection(thing: Any) -> Callable[..., object]:
    """A function of a list of utilities that runs a new mechanism with these and the settings of `thing`.

    `Exponential` and `PermuteAndFlip` of diffprivlib protect their list of utilities, so the list is their input.
    """
    names = inspect.signature(type(thing)).parameters
    settings = {name: getattr(thing, name) for name in names if name not in ("utility", "random_state")}

    def select(utilities: Any) -> object:
        return type(thing)(**settings, utility=np.atleast_1d(utilities).tolist()).randomise()

    return select


def _fit(thing: Any) -> Callable[..., object]:
    """A function that fits a copy of an estimator to an array X, or to a tuple (X, y), and returns the copy.

    A fit may start from the state of the fit before, and accountants count every fit.
    """
    try:
        labels = inspect.signature(thing.fit).parameters.get("y")
    except (TypeError, ValueError):
        labels = None
    labelled = labels is not None and labels.default is inspect.Parameter.empty

    def fit(data: Any) -> object:
        if labelled and not isinstance(data, tuple):
            raise InvalidParameter("fit takes X and y: give form='xy'")
        estimator = copy.deepcopy(thing, _without_record(thing))
        estimator.fit(*data) if isinstance(data, tuple) else estimator.fit(data)
        return estimator

    return fit


def _without_record(thing: Any) -> dict[int, object]:
    """A memo for `copy.deepcopy` that replaces an unlimited accountant of diffprivlib by a new accountant.

    The default accountant records every fit of the process: copying its list would take longer with every fit.
    """
    accountant: Any = getattr(thing, "accountant", None)
    if not type(accountant).__module__.startswith("diffprivlib."):
        return {}
    limited = accountant.epsilon < math.inf or accountant.delta < 1
    return {} if limited else {id(accountant): type(accountant)()}


#: The library of objects with a method that runs them.
LIBRARY = Objects()
