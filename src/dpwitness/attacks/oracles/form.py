"""What a family asks and what it takes for an answer, in memory and in a file."""

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Generic, TypeVar

import numpy as np

__all__ = ["Form", "as_flag", "as_number", "as_whole"]

Q = TypeVar("Q")

#: Texts that files have for ⊤ and ⊥.
FLAGS: Final = {"⊤": 1.0, "true": 1.0, "yes": 1.0, "1": 1.0, "⊥": 0.0, "false": 0.0, "no": 0.0, "0": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(Generic[Q]):
    """The questions and answers of one family of attacks.

    Parameters
    ----------
    family
        Its name.
    answer
        What an answer is, to follow "give ": "a finite number".
    written
        A question as JSON values, as files have it: lists, not tuples, and Python's own numbers. Equal questions give
        equal values.
    handed
        A question as the user's system gets it: a copy, which the system may change.
    read
        An answer as a number, from what a system returned or a file holds; None for what is no answer.
    of_system
        Names of the settings that say which system is asked: with another value answers are of another one.
    """

    family: str
    answer: str
    written: Callable[[Q], Any]
    handed: Callable[[Q], Any]
    read: Callable[[object], float | None]
    of_system: tuple[str, ...] = ()


def as_number(value: object) -> float | None:
    """A finite number, of any kind that Python, NumPy or a database has; None for anything else, flags included."""
    if isinstance(value, np.ndarray | np.generic) and value.size == 1:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        return None
    try:
        found = float(value)
    except (OverflowError, ValueError):  # an int beyond all floats, a signalling NaN
        return None
    return found if math.isfinite(found) else None


def as_whole(value: object) -> float | None:
    """A whole number, 12.0 included; None for anything else."""
    found = as_number(value)
    return None if found is None or not found.is_integer() else found


def as_flag(value: object) -> float | None:
    """1 for ⊤ and 0 for ⊥: a flag, a number (⊤ unless 0), or one of the texts that stand for them; None for others."""
    if isinstance(value, np.ndarray | np.generic) and value.size == 1:
        value = value.item()
    if isinstance(value, str):
        return FLAGS.get(value.strip().lower())
    if isinstance(value, bool):
        return float(value)
    found = as_number(value)
    return None if found is None else float(found != 0)
