"""The values in the texts of options: numbers, times, spans of numbers, NAME=VALUE and JSON."""

import ast
import json
import math
from collections.abc import Callable, Sequence
from typing import Final

import click

from dpwitness import checks
from dpwitness.checks import json_value
from dpwitness.errors import BadInput, InvalidParameter

#: LONGEST_TIME is the longest time in seconds: a lock cannot wait for much longer.
LONGEST_TIME: Final = 1e9
#: MOST_SPAN_VALUES is the largest number of values in a span: more tests would take days.
MOST_SPAN_VALUES: Final = 10_000
#: MOST_LEVELS is the largest number of levels of nested lists in an input or a parameter: NumPy 1 allows 32 dimensions.
MOST_LEVELS: Final = 32


def number(text: str) -> float:
    """The finite number in a text."""
    try:
        value = float(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} must be a number") from error
    if not math.isfinite(value):
        raise click.BadParameter(f"{text!r} must be a finite number")
    return value


def whole(text: str) -> int:
    """The whole number in a text, such as 12 or 1e6."""
    try:
        return int(text)
    except ValueError:
        value = number(text)
    if value != int(value):
        raise click.BadParameter(f"{text!r} must be a whole number")
    return int(value)


def seconds(text: str) -> float:
    """The time in a text, in seconds: 60, 60s, 500ms, 2m or 1h; at most `LONGEST_TIME`."""
    return min(checks.seconds("time", text), LONGEST_TIME)


def span(text: str) -> list[float]:
    """The numbers in a text: FROM:TO:STEP with both ends, or a list with commas."""
    if ":" not in text:
        return [number(part) for part in text.split(",")]
    parts = text.split(":")
    if len(parts) != 3:
        raise click.BadParameter(f"{text!r} must be FROM:TO:STEP, such as 0.1:2.0:0.1")
    low, high, step = (number(part) for part in parts)
    if not (step > 0 and low <= high):
        raise click.BadParameter(f"{text!r} needs FROM ≤ TO and a positive STEP")
    if not (high - low) / step < MOST_SPAN_VALUES:
        raise click.BadParameter(f"{text!r} makes more than {MOST_SPAN_VALUES} values")
    steps = math.floor((high - low) / step + 1e-9)
    return [round(low + k * step, 12) for k in range(steps + 1)]


def settings(given: Sequence[str]) -> dict[str, object]:
    """The parameters in NAME=VALUE pairs: JSON values, Python's `True`, `None` or tuples such as `(0, 1)`, or texts."""
    found: dict[str, object] = {}
    require_each_once("--set", given)
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InvalidParameter(f"--set {item!r} must be NAME=VALUE")
        try:
            # JSON has no infinities.
            found[name] = float(value) if value.removeprefix("-") in ("inf", "Infinity") else _json(value)
        except json.JSONDecodeError:
            found[name] = _literal(value)
        except ValueError as error:
            raise InvalidParameter(f"--set {item!r}: {error}") from error
    return found


def require_each_once(option: str, given: Sequence[str]) -> None:
    """Raise `InvalidParameter` if two texts NAME=VALUE have the same name."""
    names = [item.partition("=")[0] for item in given]
    for name in names:
        if names.count(name) > 1:
            raise InvalidParameter(f"{option} {name}=… is given {names.count(name)} times: leave out all but one")


def given_options(options: object, names: Sequence[str]) -> list[str]:
    """The options of these names that are given, as written on a command line, such as --max-time."""
    values = {f"--{name.replace('_', '-')}": getattr(options, name) for name in names}
    # 0 is a given value, although it equals False.
    return [name for name, value in values.items() if value is not False and value not in (None, ())]


def refuse(options: object, names: Sequence[str], reason: str) -> None:
    """Raise `InvalidParameter` for the first of the named options that is given."""
    if given := given_options(options, names):
        raise InvalidParameter(f"{given[0]} {reason}")


def _literal(text: str) -> object:
    """The flag, None or tuple that a text spells in Python; any other text itself."""
    if text not in ("True", "False", "None") and not (text.startswith("(") and text.count("(") <= MOST_LEVELS):
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def given_input(text: str) -> object:
    """The input in a JSON text: numbers of 64 bits, texts, and lists and objects of them. Raises `BadInput`."""
    try:
        return _json(text, parse_int=_parse_machine_integer)
    except json.JSONDecodeError as error:
        raise BadInput(f"--pair {text!r} must be JSON, such as '[1, 1]', '\"text\"' or '[{{\"age\": 30}}]'") from error
    except ValueError as error:
        raise BadInput(f"--pair {text!r}: {error}") from error


def _json(text: str, parse_int: Callable[[str], int] = int) -> object:
    """The JSON value in a text, of finite numbers. Raises `JSONDecodeError`, and `ValueError` for other JSON."""
    return json_value(text, MOST_LEVELS, parse_int=parse_int, parse_float=_parse_finite, parse_constant=_parse_finite)


def _parse_finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no JSON number of 64 bits")
    return value


def _parse_machine_integer(text: str) -> int:
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{text} does not fit into 64 bits")
    return value
