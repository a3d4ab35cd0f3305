"""Checks of single values. An error's message is one line: the name, the value, and the allowed values."""

import difflib
import json
import math
import numbers
import os
import re
import secrets
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final

from dpwitness.errors import BadInput, InvalidParameter, RunsEnded

#: The pattern of the memory address in the default text of an object; the address changes by process.
ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]+")
#: The largest number of levels of nested containers of an input: readers recurse, and the stack may hold fewer calls
#: than the user's `sys.setrecursionlimit` allows.
DEEPEST_LEVEL: Final = 100
#: The most frequent types of values that are not containers.
PLAIN_TYPES: Final = frozenset({float, int, bool, str, bytes, type(None)})
#: The seconds of each unit of time, by its text.
TIME_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def brief(value: object) -> str:
    """The text of a value of any kind on one line of at most 80 characters, for messages."""
    return " ".join(as_text(value).split())[:80]


def as_text(value: object) -> str:
    """The text of a value of any kind, without memory address; the name of the value's type if it has no text."""
    try:
        if not too_deep(value):
            return ADDRESS.sub("", repr(value))
    except Exception:  # an integer of too many digits, or a text of the user's own that fails
        pass
    return f"of type {type(value).__name__}"


def too_deep(value: object) -> bool:
    """Whether containers are nested deeper than `DEEPEST_LEVEL` levels; true of a container that holds itself."""
    level = [value]
    for _ in range(DEEPEST_LEVEL + 1):
        parts = list(chain.from_iterable(map(_parts, level)))
        if set(map(type, parts)) <= PLAIN_TYPES:  # most inputs end here
            return False
        level = list({id(part): part for part in parts if type(part) not in PLAIN_TYPES}.values())
    return True


def _parts(whole: Any) -> Iterable[object]:
    """The values directly within a container; empty for any other object."""
    if isinstance(whole, dict):
        return chain(whole, whole.values())
    if isinstance(whole, list | tuple | set | frozenset | deque):
        return whole
    # NumPy is not imported, since the command line's help does not need it.
    if str(type(whole).__module__).startswith("numpy") and getattr(getattr(whole, "dtype", None), "hasobject", False):
        return [whole.tolist()]
    return ()


def json_value(text: str, deepest: int = DEEPEST_LEVEL, **read: Any) -> object:
    """The value of a JSON text. Raises `ValueError`, also for deep nesting, which may crash `json.loads`."""
    depth = 0
    if text.count("[") + text.count("{") > deepest:
        for found in re.finditer(r'[\[\]{}]|"(?:[^"\\]|\\.)*"', text):  # brackets, and texts, which may hold brackets
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
            if depth > deepest:
                raise ValueError(f"lists are nested deeper than {deepest} levels")
    return json.loads(text, **read)


def escaped(text: str, keep: Callable[[str], bool]) -> str:
    """The text with unprintable characters escaped as in JSON, except the characters for which `keep` is true."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or keep(c) else json.dumps(c)[1:-1] for c in text)


def near(name: object, known: Iterable[object], most: int = 3) -> str:
    """The end of a message, "; did you mean …?", with up to `most` similar names, if any."""
    found = difflib.get_close_matches(str(name), [*map(str, known)], most)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def kind(name: str, value: object, wanted: type | tuple[type, ...], what: str, error: type[ValueError]) -> Any:
    """The value if it is of a type. Raises `error`; `what` describes the type in its message."""
    if not isinstance(value, wanted):
        raise error(f"{name}={brief(value)} must be {what}")
    return value


def items(name: str, value: Any, error: type[BadInput] = InvalidParameter) -> Sequence[object]:
    """The entries of a list, a tuple or an array, unchanged. Raises `error` for any other value, a text too."""
    if isinstance(value, list | tuple):
        return value
    if getattr(value, "ndim", 0) < 1 or not hasattr(value, "tolist") or not hasattr(value, "dtype"):
        raise error(f"{name}={brief(value)} must be a list")
    return list(value)


def flag(name: str, value: object, error: type[BadInput] = InvalidParameter) -> bool:
    """The value if it is True or False. Raises `error` for any other value."""
    return bool(kind(name, value, bool, "True or False", error))


def seconds(name: str, value: object) -> float:
    """A positive time in seconds, from a number or a text: 60, 60s, 500ms, 2m, 1h. Raises `InvalidParameter`."""
    found = math.nan
    if isinstance(value, str):
        unit = next((unit for unit in TIME_UNITS if value.endswith(unit)), "")
        try:
            found = float(value.removesuffix(unit)) * TIME_UNITS.get(unit, 1.0)
        except ValueError:
            raise InvalidParameter(
                f"{name}={brief(value)} must be a time, such as 30, '30s', '500ms', '2m' or '1h'"
            ) from None
    else:
        found = number(name, value)
    if not found > 0:
        raise InvalidParameter(f"{name}={brief(value)} must be a positive number of seconds, or a time such as '30s'")
    return found


def number(name: str, value: object, error: type[BadInput] = InvalidParameter, wanted: str = "a number") -> float:
    """The value as a float, infinities and NaN included. Raises `error` for flags and other values."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise error(f"{name}={brief(value)} must be {wanted}")
    try:
        return float(value)
    except OverflowError as cause:
        raise error(f"{name}={brief(value)} is too large") from cause


def finite(name: str, value: object) -> float:
    """The value as a finite float. Raises `InvalidParameter` for infinities, NaN, flags and other values."""
    found = number(name, value, wanted="a finite number")
    if not math.isfinite(found):
        raise InvalidParameter(f"{name}={brief(value)} must be a finite number")
    return found


def probability(name: str, value: object) -> float:
    """The value as a float between 0 and 1, both excluded. Raises `InvalidParameter` for other values."""
    found = number(name, value)
    if not 0 < found < 1:
        raise InvalidParameter(f"{name}={brief(value)} must lie between 0 and 1")
    return found


def seed_or_new(value: object) -> int:
    """The value as a seed, a whole number below 2^128, or a new seed for None. Raises `InvalidParameter`."""
    return secrets.randbits(32) if value is None else whole("seed", value, 0, (1 << 128) - 1)


def whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """The value as an integer from `least` to `most`; 1e6 is accepted. Raises `InvalidParameter` for other values."""
    found = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(found, bool) or not isinstance(found, numbers.Integral):
        raise InvalidParameter(f"{name}={brief(value)} must be a whole number")
    if int(found) < least or (most is not None and int(found) > most):
        limits = f"at least {least}" if most is None or most > 1 << 64 else f"from {least} to {most}"
        raise InvalidParameter(f"{name}={brief(value)} must be a whole number {limits}")
    return int(found)


def in_memory(name: str, value: int, needed: int, error: type[BadInput] = InvalidParameter) -> None:
    """Raise `error` if a value needs more bytes than this process has (`memory`)."""
    available = memory()
    if needed > available:
        most = value * available // needed
        raise error(f"{name}={brief(value)} is too large for {available / 1e9:,.0f} GB of memory: give at most {most}")


@cache
def memory() -> int:
    """The memory of this process in bytes: the machine's memory, or the container's limit if the limit is smaller."""
    found = [1 << 62]
    with suppress(ImportError, AttributeError, OSError, ValueError):  # the system does not tell
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        import resource

        found += resource.getrlimit(resource.RLIMIT_AS)  # −1 if unlimited
    with suppress(OSError, ValueError):  # no such limit
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_bytes()))
    return min(limit for limit in found if limit > 0)


def text_of(value: object, convert: Callable[[object], str] = str) -> str:
    """The text of a user's object; a replacement text if its own conversion fails."""
    try:
        return convert(value)
    except Exception as error:
        return f"{type(value).__name__} whose text cannot be read ({type(error).__name__})"


def first_line(error: BaseException) -> str:
    """The first line of an error's text; its class if it has no text."""
    return next((line.strip() for line in text_of(error).splitlines() if line.strip()), type(error).__name__)


def one_line(value: object, convert: Callable[[object], str] = str) -> str:
    """The whole text of a user's object on one line, by `text_of`."""
    return " ".join(text_of(value, convert).split())


def class_and_text(error: BaseException, *, brackets: bool = False) -> str:
    """The class of an error and its whole text, if any, on one line, after a colon or in `brackets`."""
    name, text = type(error).__name__, one_line(error)
    if not text:
        return name
    return f"{name} ({text})" if brackets else f"{name}: {text}"


def on_one_line(error: BaseException) -> str:
    """The whole text of an error on one line, with its class before it if the class is not of this package."""
    return one_line(error) or type(error).__name__ if is_ours(error) else class_and_text(error)


def is_ours(thing: object) -> bool:
    """Whether an object is of a class of this package; messages name other classes."""
    return type(thing).__module__.partition(".")[0] == "dpwitness"


#: The exceptions that end this process or unneeded runs; code that catches all other exceptions lets them through.
INTERRUPTS: Final = (KeyboardInterrupt, RunsEnded)


def is_failure(error: BaseException) -> bool:
    """Whether an exception means that the code failed, as Rust's panics do; other exceptions must end the caller."""
    if isinstance(error, Exception):
        return True
    # These exceptions end a test (pytest's skip and fail) or a task (cancelled), if their packages are loaded.
    others = (("_pytest.outcomes", "OutcomeException"), ("asyncio.exceptions", "CancelledError"))
    found = (getattr(sys.modules.get(module), name, None) for module, name in others)
    endings = (*INTERRUPTS, SystemExit, GeneratorExit, *(kind for kind in found if isinstance(kind, type)))
    return not isinstance(error, endings)


def exit_error(whose: str, error: SystemExit) -> BadInput:
    """The error for user code that called `sys.exit`; `whose` names the code."""
    return BadInput(f"{whose} called sys.exit({text_of(error.code, repr)}): take that out, it ends the check")


def text(name: str, value: object, error: type[BadInput] = InvalidParameter) -> str:
    """A text that a UTF-8 file can hold. Raises `error`."""
    given: str = kind(name, value, str, "text", error)
    try:
        given.encode()
    except UnicodeEncodeError as cause:  # half of a surrogate pair
        raise error(f"{name}={brief(value)} cannot be written to a file: {cause.reason}") from cause
    return given
