"""Copies of functions whose text was changed: what is compiled in their place.

A copy has the file, the lines, the defaults and the module of the function. It is made only of a function whose source
is at hand and is what was loaded.
"""

import ast
import copy
import linecache
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, Final
from weakref import WeakKeyDictionary

#: What names begin with that a copy has and its function has not.
PREFIX: Final = "_dpwitness_"
#: The texts of functions that are in no file: those of copies, and those that came from another process.
_TEXTS: Final[WeakKeyDictionary[FunctionType, ast.FunctionDef]] = WeakKeyDictionary()

#: Changes a text in place, and says what the new names in it stand for; nothing where there is nothing to change.
Rewrite = Callable[[ast.FunctionDef], dict[str, Any]]


def rewritten(function: Callable[..., Any], rewrite: Rewrite) -> FunctionType | None:
    """Return a copy of a function with its text changed; None where nothing is to change, and where there is no text.

    Closures are left alone. A copy can be changed once more.
    """
    if not isinstance(function, FunctionType) or function.__closure__ or not (definition := text_of(function)):
        return None
    added = rewrite(definition)
    if not added:
        return None
    # What the original has as defaults is taken over below, not evaluated again.
    definition.decorator_list, definition.returns, parameters = [], None, definition.args
    for parameter in ast.walk(parameters):
        if isinstance(parameter, ast.arg):
            parameter.annotation = None
    parameters.defaults = [ast.Constant(None) for _ in parameters.defaults]
    parameters.kw_defaults = [value and ast.Constant(None) for value in parameters.kw_defaults]
    module = ast.fix_missing_locations(ast.Module([definition], []))
    namespace = function.__globals__ | added
    exec(compile(module, function.__code__.co_filename, "exec"), namespace)
    made: FunctionType = namespace[function.__name__]
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    keep_text(made, definition)
    return made


def keep_text(function: Callable[..., Any], definition: ast.FunctionDef) -> None:
    """Let a function have a text that is in no file of this machine."""
    if isinstance(function, FunctionType):
        _TEXTS[function] = definition


def text_of(function: Callable[..., Any]) -> ast.FunctionDef | None:
    """The text of a function, parsed, to be changed; None unless its file still compiles to the very code in memory."""
    if not isinstance(function, FunctionType):
        return None
    if function in _TEXTS:
        return copy.deepcopy(_TEXTS[function])
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    try:
        tree = ast.parse("".join(lines))
        compiled = compile(tree, code.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    if code not in _codes(compiled):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            decorators = {decorator.lineno for decorator in node.decorator_list}
            if code.co_firstlineno in {node.lineno, *decorators}:
                return node
    return None


def _codes(code: CodeType) -> Iterator[CodeType]:
    """All the code inside a piece of code."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
