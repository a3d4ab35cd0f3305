"""Why numba refuses a function, in one line, and what to do about it."""

import dis
import re
from pathlib import Path
from typing import Final

LONGEST: Final = 160
#: Beginnings of lines of numba's messages that say where, not why.
WHERE: Final = (
    "Failed in", "During", "File ", "raised from", "There are", "- Of which", ">>>", "^", "- Resolution failure",
)  # fmt: skip
#: Colours and weights of letters, which numba writes wherever colorama is installed.
STYLE: Final = re.compile(r"\x1b\[[0-9;]*m")
USUAL: Final = "use loops, numbers, NumPy arrays and dpwitness.noise"

#: What numba says, and what to do about it; the first that fits. Groups of the pattern go into the advice.
ADVICE: Final[tuple[tuple[str, str], ...]] = (
    (r"Untyped global name '(\w+)'.*<class 'function'>", r"decorate \1 with @numba.njit"),
    (r"Untyped global name '(\w+)'.*<class 'type'>", r"\1 is a class: use numbers, tuples and arrays in its place"),
    (r"Untyped global name '(\w+)'.*<class '[^']*\bdict'>", r"\1 is a dict: give its values as parameters or an array"),
    (r"Untyped global name '(\w+)'.*<class '([^']*)'>", r"\1 is a \2: pass what it holds as numbers or arrays"),
    (r"Untyped global name '(\w+)'", r"give what \1 stands for as a parameter, or define it before the function"),
    (r"name '(\w+)' is not defined|NameError: .*'(\w+)'", "define it at the top of the file"),
    (r"IMPORT_NAME|IMPORT_FROM", "move the import to the top of the file"),
    (r"STORE_GLOBAL|DELETE_GLOBAL", "return what it computes in place of setting a global variable"),
    (r"[Uu]nsupported context manager|WITH|BEFORE_WITH", "leave out the with statement"),
    (r"enters objmode", "draw and compute outside of it"),
    (r"yield in a closure", "write the generator expression as a loop"),
    (r"Unknown attribute '(\w+)' of type NumPyRandomGeneratorType", r"numba has no rng.\1: draw it from what it has, "
     "such as rng.random and rng.normal, or with dpwitness.noise"),
    (r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'", r"numba does not know \2.\1: use NumPy, or "
     "dpwitness.noise for noise"),
    (r"No implementation of function Function\(<(?:built-in )?function (?:array_)?(\w+)",
     r"numba has no \1 with such arguments: write it as a loop"),
    (r"compiling takes more than", "give a larger max_time"),
    (r"parameters of any name", "name each parameter that it takes"),
    (r"returns something else", "return numbers, flags or arrays of such"),
    (r"non-precise type|Cannot unify", "keep each variable of one type"),
)  # fmt: skip


class Refused(Exception):
    """Numba cannot compile a mechanism; the message is numba's."""


def refusal(message: str, function: object = None) -> str:
    """The one line of numba's message that says why, and what to do, with a semicolon between them.

    Why alone where `function`, or the one of its module that numba refuses, is of an installed package: nobody is told
    to change that.
    """
    why = _why(message)
    if _installed(function):
        return why
    if "IMPORT_" in why and _imports_random(function):  # whose numbers machine code draws otherwise
        return f"{why}; to make it fast: draw from a parameter rng, or with dpwitness.noise, in place of random"
    for pattern, advice in ADVICE:
        match = re.search(pattern, why)
        if match:
            named = match[1] if match.re.groups else None
            if named and _installed(getattr(function, "__globals__", {}).get(named)):
                return f"{why}; it is of an installed package"
            return f"{why}; to make it fast: {match.expand(advice)}"
    return f"{why}; to make it fast: {USUAL}"


def _imports_random(function: object) -> bool:
    """Whether a function itself imports Python's `random`."""
    code = getattr(function, "__code__", None)
    steps = () if code is None else dis.get_instructions(code)
    return any(step.opname == "IMPORT_NAME" and step.argval == "random" for step in steps)


def _installed(function: object) -> bool:
    """Whether a function is of an installed package."""
    code = getattr(function, "__code__", None)
    return code is not None and not {"site-packages", "dist-packages"}.isdisjoint(Path(code.co_filename).parts)


def reason(message: str) -> str:
    """Why alone, on one line, with the call that numba has no code for."""
    why = _why(message)
    call = re.search(r"^\s*>>> (.+)$", message, re.MULTILINE)
    return f"{why} {call[1]}" if call and why.endswith(":") else why


def _why(message: str) -> str:
    lines = [line.strip() for line in STYLE.sub("", message).splitlines()]
    line = next((line for line in lines if line and not line.startswith(WHERE)), "no reason given")
    if line.startswith("No implementation of function") and "place" in line:
        return "it returns something else than numbers and flags"
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
