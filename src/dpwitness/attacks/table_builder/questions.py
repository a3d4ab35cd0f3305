"""What is asked of a system that publishes counts: a condition → how many people satisfy it, with noise."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from dpwitness.attacks.oracles.form import Form, as_whole
from dpwitness.errors import InvalidParameter

__all__ = ["FORM", "Condition", "Oracle", "values_of"]

#: For each attribute that a question names the values that it allows: {"age": [30, 31], "sex": ["F"]}.
Condition: TypeAlias = Mapping[str, Sequence[Any]]


class Oracle(Protocol):
    """A system under attack: the user's own, behind `--oracle`.

    It may also be an object with `ask_all(questions)`, a list of conditions → as many counts. `values`, a mapping from
    each attribute to all of its values, may be an attribute of it: then the command needs no --values.
    """

    def __call__(self, condition: dict[str, list[Any]], /) -> int | None:
        """How many people satisfy the condition, as the system publishes it: a whole number; 0 or None if suppressed.

        A person satisfies {"age": [30, 31], "sex": ["F"]} who has, of each attribute named, one of the values listed.
        """


def _written(condition: Condition) -> Any:
    return {name: [_plain(value) for value in values] for name, values in condition.items()}


def _handed(condition: Condition) -> dict[str, list[Any]]:
    return {name: list(values) for name, values in condition.items()}


def _read(answer: object) -> float | None:
    """A whole number; a suppressed count, None, is 0."""
    return 0.0 if answer is None else as_whole(answer)


def _plain(value: Any) -> Any:
    """A value as JSON has it. Raises `InvalidParameter` for other things than numbers, flags and texts."""
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, int | float | str):
        raise InvalidParameter(f"value {value!r} of type {type(value).__name__} must be a number, a flag or a text")
    if isinstance(plain, float) and not math.isfinite(plain):
        raise InvalidParameter(f"value {plain!r} must be finite: leave it out")
    return plain


FORM: Final[Form[Condition]] = Form(
    family="table_builder",
    answer="a whole number, or None for a suppressed count",
    written=_written,
    handed=_handed,
    read=_read,
)


def values_of(thing: object) -> dict[str, tuple[Any, ...]] | None:
    """What an oracle says of its attributes in `values`, or None where it says nothing.

    Raises `InvalidParameter` for something that is no mapping of names to values.
    """
    given = getattr(thing, "values", None)
    if given is None or callable(given):  # the method of a mapping
        return None
    if not isinstance(given, Mapping) or not given:
        raise InvalidParameter(
            f"values of the oracle is {type(given).__name__}: give a mapping from attributes to values"
        )
    found = {}
    for name, values in given.items():
        if not isinstance(name, str) or isinstance(values, str) or not hasattr(values, "__iter__"):
            raise InvalidParameter(f"values of the oracle: {name!r} must be a name, with a list of values")
        found[name] = tuple(_plain(value) for value in values)
        if len(set(found[name])) != len(found[name]) or not found[name]:
            raise InvalidParameter(f"values of the oracle: {name!r} needs different values, at least one")
    return found
