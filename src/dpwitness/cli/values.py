"""Reads the texts of options: numbers, times, spans of numbers, NAME=VALUE and JSON."""

import ast
import json
import math
from collections.abc import Callable, Sequence
from typing import Final

import click

from dpwitness import checks
from dpwitness.checks import json_value
from dpwitness.errors import BadInput, InvalidParameter
from dpwitness.options import MOST_WORKERS

#: JSON has no infinities: as parameters they are these texts.
INFINITE: Final = ("inf", "-inf", "Infinity", "-Infinity")
LONGEST_TIME: Final = 1e9  # seconds; a lock cannot wait for much longer
MOST_TESTS: Final = 10_000
#: Levels of lists in an input or a parameter: as many as a NumPy array may have.
DEEPEST: Final = 32


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} must be a number") from error
    if not math.isfinite(value):
        raise click.BadParameter(f"{text!r} must be a finite number")
    return value


def whole(text: str) -> int:
    """A whole number, 1e6 included."""
    try:
        return int(text)
    except ValueError:
        value = number(text)
    if value != int(value):
        raise click.BadParameter(f"{text!r} must be a whole number")
    return int(value)


def threads(text: str) -> int:
    """A number of threads."""
    value = whole(text)
    if not 1 <= value <= MOST_WORKERS:
        raise click.BadParameter(f"{text!r} must be from 1 to {MOST_WORKERS}")
    return value


def seconds(text: str) -> float:
    """A time: 60, 60s, 500ms, 2m or 1h."""
    try:
        value = checks.seconds("time", text)
    except InvalidParameter:
        value = math.nan
    if not 0 < value <= LONGEST_TIME:
        raise click.BadParameter(
            f"{text!r} must be a positive time of at most {LONGEST_TIME:g} s, such as 60, 60s, 500ms, 2m or 1h"
        )
    return value


def span(text: str) -> list[float]:
    """FROM:TO:STEP with both ends, or a list with commas."""
    if ":" not in text:
        return [number(part) for part in text.split(",")]
    parts = text.split(":")
    if len(parts) != 3:
        raise click.BadParameter(f"{text!r} must be FROM:TO:STEP, such as 0.1:2.0:0.1")
    low, high, step = (number(part) for part in parts)
    if not (step > 0 and low <= high):
        raise click.BadParameter(f"{text!r} needs FROM ≤ TO and a positive STEP")
    if not (high - low) / step < MOST_TESTS:
        raise click.BadParameter(f"{text!r} makes more than {MOST_TESTS} values")
    steps = math.floor((high - low) / step + 1e-9)
    return [round(low + k * step, 12) for k in range(steps + 1)]


def settings(given: Sequence[str]) -> dict[str, object]:
    """NAME=VALUE pairs; values are JSON where they can be, or `True`, `None` or `(0, 1)` as in Python, else text."""
    found: dict[str, object] = {}
    require_each_once("--set", given)
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InvalidParameter(f"--set {item!r} must be NAME=VALUE")
        if value in INFINITE:
            found[name] = float(value)
            continue
        try:
            found[name] = _json(value)
        except NotJSON:
            found[name] = _literal(value)
        except ValueError as error:
            raise InvalidParameter(f"--set {item!r}: {error}") from error
    return found


def require_each_once(option: str, given: Sequence[str]) -> None:
    """Raise `InvalidParameter` where two texts NAME=VALUE are of one name."""
    names = [item.partition("=")[0] for item in given]
    for name in names:
        if names.count(name) > 1:
            raise InvalidParameter(f"{option} {name}=… is given {names.count(name)} times: leave out all but one")


def refuse(options: object, names: Sequence[str], reason: str) -> None:
    """Raise `InvalidParameter` for the first of these options that is given."""
    for name in names:
        if getattr(options, name) not in (None, (), False):
            raise InvalidParameter(f"--{name.replace('_', '-')} {reason}")


def _literal(text: str) -> object:
    """The flag, None or tuple that Python reads in a text; the text itself where there is none of these."""
    if text not in ("True", "False", "None") and not (text.startswith("(") and text.count("(") <= DEEPEST):
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def given_input(text: str) -> object:
    """An input as JSON: numbers, texts, lists and objects of such. Raises `BadInput`."""
    try:
        return _json(text, parse_int=_machine_integer, objects=True)
    except NotJSON as error:
        raise BadInput(f"--pair {text!r} must be JSON, such as '[1, 1]', '\"text\"' or '[{{\"age\": 30}}]'") from error
    except ValueError as error:
        raise BadInput(f"--pair {text!r}: {error}") from error


class NotJSON(Exception):
    """A text that is no JSON at all."""


def _json(text: str, *, parse_int: Callable[[str], int] = int, objects: bool = False) -> object:
    """A JSON value of finite numbers, flags, texts, null and lists of these; of `objects` too where these may be.

    Raises `NotJSON`, and `ValueError` for JSON of other things.
    """
    try:
        value = json_value(text, DEEPEST, parse_int=parse_int, parse_float=_finite, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise NotJSON from error
    _check(value, DEEPEST, objects=objects)
    return value


def _check(value: object, levels: int, *, objects: bool) -> None:
    if isinstance(value, dict):
        if not objects:
            raise ValueError("an object must be a number, a text, true, false, null or a list of such")
        value = [*value.values()]
    if isinstance(value, list):
        if not levels:
            raise ValueError(f"lists are nested deeper than {DEEPEST} levels")
        for item in value:
            _check(item, levels - 1, objects=objects)


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large for a number of 64 bits")
    return value


def _machine_integer(text: str) -> int:
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{text} does not fit into 64 bits")
    return value
