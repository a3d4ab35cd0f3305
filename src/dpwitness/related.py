"""Which relation a mechanism is tested with: the user's, its target's or object's own, or that of an attack."""

import inspect
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

from dpwitness.errors import InvalidNeighbours, InvalidParameter
from dpwitness.mechanisms.libraries import library_of
from dpwitness.neighbours import Relation, as_relation
from dpwitness.targets import target_of

__all__ = ["of_one_sensitivity", "relation_of"]


def relation_of(function: Any, given: Relation | Sequence[Any] | None, otherwise: Relation | None) -> Relation:
    """The relation that was given, a list of pairs among them, else the target's or the object's own, or `otherwise`.

    Raises `InvalidNeighbours` where there is none, and for what is none.
    """
    if given is None:
        own = target_of(function)
        relation: Relation | None = own.neighbours if own else library_of(function).neighbours(function)
        relation = relation or otherwise
        if relation is None:
            raise InvalidNeighbours(
                f"{getattr(function, '__name__', 'the mechanism')} does not say which inputs are neighbours: give "
                "neighbours=records(…), queries(…), histogram(…), bits(…) or pairs(…) (command line: --records, "
                "--pair, --queries or --data)"
            )
        return relation
    return as_relation(given)


def of_one_sensitivity(function: Any, relation: Relation, values: Mapping[str, Any], *, own_relation: bool) -> Relation:
    """The relation, of the sensitivity that the mechanism runs with where the relation is the target's own.

    Raises `InvalidParameter` where the user gave a relation of another sensitivity than the mechanism's: its noise
    would be for neighbours that are not those that are tested.
    """
    at = getattr(relation, "sensitivity", None)
    given = values.get("sensitivity", _default_of(function, "sensitivity"))
    if isinstance(given, bool) or not isinstance(given, numbers.Real) or not isinstance(at, numbers.Real):
        return relation
    if math.isclose(given, at, rel_tol=1e-12):
        return relation
    if own_relation and is_dataclass(relation) and not isinstance(relation, type):
        return replace(relation, sensitivity=float(given))
    raise InvalidParameter(
        f"{getattr(function, '__name__', type(function).__name__)} runs with sensitivity={given!r}, but its neighbours "
        f"have sensitivity={at!r}: give the relation sensitivity={given!r}, or the mechanism "
        f"parameters={{'sensitivity': {at!r}}}"
    )


def _default_of(function: Any, name: str) -> Any:
    """The default of a function's parameter of that name; None where there is none."""
    if not callable(function):
        return None
    try:
        declared = inspect.signature(getattr(function, "py_func", function)).parameters.get(name)
    except (TypeError, ValueError):
        return None
    return None if declared is None or declared.default is inspect.Parameter.empty else declared.default
