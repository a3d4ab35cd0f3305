"""Values for parameters by what their annotation or their documentation says that they may be."""

import ast
import inspect
import re
import types
import typing
from enum import Enum
from typing import Any, Final

from dpwitness.mechanisms.catalog import load_object

#: Values of types.
VALUES: Final[dict[object, Any]] = {int: 2, float: 1.0, bool: False, str: "a"}
#: The types by name, for annotations that are texts and name what is not there.
NAMES: Final = {kind.__name__: kind for kind in (int, float, bool, str)}


def annotations_of(thing: object) -> dict[str, object]:
    """The annotations of the parameters of a function or a class; as texts where they name what is not there."""
    function = thing.__init__ if inspect.isclass(thing) else thing
    try:
        return typing.get_type_hints(function)
    except Exception:  # of a name that is only there for type checkers, or of an extension
        return dict(getattr(function, "__annotations__", {}))


def value_of(annotation: object, name: str, documented: str, ends: tuple[float, float]) -> object:
    """A value of a parameter as JSON; None where neither says what it may be. `ends`: for a pair of numbers."""
    found = _annotated(annotation, ends)
    return _documented(name, documented) if found is None else found


def _annotated(annotation: object, ends: tuple[float, float]) -> object:
    annotation = NAMES.get(annotation, annotation) if isinstance(annotation, str) else annotation
    if isinstance(annotation, type) and annotation in VALUES:
        return VALUES[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        place = f"{annotation.__module__}:{annotation.__qualname__}"
        return {"enum": [place, next((one.name for one in annotation), "")]}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType):
        several = (_annotated(one, ends) for one in arguments if one is not type(None))
        return next((one for one in several if one is not None), None)
    if origin is tuple and arguments in ((float, float), (int, int)):
        return {"tuple": [arguments[0](end) for end in ends]}
    return None


def _documented(name: str, documented: str) -> object:
    """The first of the values that numpy's convention lists: `name : {'a', 'b'}`."""
    listed = re.search(rf"^\s*{re.escape(name)}\s*:\s*(\{{[^{{}}]*\}})", documented, re.MULTILINE)
    try:
        first = listed and ast.parse(listed[1], mode="eval").body
        return ast.literal_eval(first.elts[0]) if isinstance(first, ast.Set) else None
    except (SyntaxError, ValueError):
        return None


def from_json(value: object) -> object:
    """A value of a recipe: tuples and members of enumerations are objects in JSON."""
    if isinstance(value, dict) and set(value) == {"tuple"}:
        return tuple(map(from_json, value["tuple"]))
    if isinstance(value, dict) and set(value) == {"enum"}:
        place, name = value["enum"]
        members: Any = load_object(place)
        return members[name]
    return [from_json(one) for one in value] if isinstance(value, list) else value
