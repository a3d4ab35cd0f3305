"""Where the arrays of a compiled mechanism lie: in memory that every run uses again.

An array of its own costs a run 20 ns, most of it numba's atomic counting of references: on `svt`, two of them are a
third of a paired run. Nothing of a run outlives it but its outcome, which the driver has copied by then.
"""

import ast
import linecache
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any, Final

import numpy as np

from dpwitness.jit import inlined

#: Numbers that fit; a run that asks for more gets arrays of its own.
SIZE: Final = 4096
#: Names that `with_scratch` adds to a function: its first parameter, and what it calls, behind a prefix.
PREFIX: Final = "_dpwitness_"
PARAMETER: Final = PREFIX + "scratch"


@inlined
def taken(scratch: Any, n: int, value: float) -> Any:
    """`np.full(n, value)` in scratch memory: a pair of the memory and, in position[1], how much of it is taken."""
    memory, position = scratch
    first = position[1]
    if 0 <= n <= len(memory) - first:
        position[1] = first + n
        array = memory[first : first + n]
    else:
        array = np.empty(n)
    for k in range(n):
        array[k] = value
    return array


def empty(scratch: Any, shape: Any) -> Any:
    """What `np.empty(shape)` becomes, full of NaN; compiled code only, as the two below."""
    return np.empty(shape)


def zeros(scratch: Any, shape: Any) -> Any:
    """What `np.zeros(shape)` becomes."""
    return np.zeros(shape)


def full(scratch: Any, shape: Any, value: Any) -> Any:
    """What `np.full(shape, value)` becomes."""
    return np.full(shape, value)


def _taken_zeros(scratch: Any, shape: Any) -> Any:
    return taken(scratch, shape, 0.0)


def _taken_full(scratch: Any, shape: Any, value: Any) -> Any:
    return taken(scratch, shape, value)


def _taken_empty(scratch: Any, shape: Any) -> Any:
    # What a run leaves unwritten must not be what another run wrote there: runs would depend on each other.
    return taken(scratch, shape, np.nan)


@cache
def teach_numba() -> None:
    """Tell numba, once it is imported, what the three become."""
    from numba import types
    from numba.extending import overload

    @overload(empty, jit_options={"forceinline": True})
    def _empty(scratch: Any, shape: Any) -> Any:
        return _taken_empty if isinstance(shape, types.Integer) else empty

    @overload(zeros, jit_options={"forceinline": True})
    def _zeros(scratch: Any, shape: Any) -> Any:
        return _taken_zeros if isinstance(shape, types.Integer) else zeros

    @overload(full, jit_options={"forceinline": True})
    def _full(scratch: Any, shape: Any, value: Any) -> Any:
        return _taken_full if isinstance(shape, types.Integer) and value == types.float64 else full


#: NumPy's makers of arrays, by name: what they become and how many arguments they may have.
MAKERS: Final[dict[str, tuple[Callable[..., Any], int]]] = {
    "empty": (empty, 1),
    "zeros": (zeros, 1),
    "full": (full, 2),
}


class _Redirect(ast.NodeTransformer):
    """Sends the calls of NumPy's makers, under whatever name the module goes, to scratch memory."""

    def __init__(self, modules: set[str]) -> None:
        self.modules = modules
        self.redirected = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Attribute(ast.Name(module), maker), arguments, []) if (
                module in self.modules
                and maker in MAKERS
                and len(arguments) == MAKERS[maker][1]
                and not any(isinstance(argument, ast.Starred) for argument in arguments)
            ):
                self.redirected += 1
                name = ast.Name(PREFIX + maker, ast.Load())
                scratch = ast.Name(PARAMETER, ast.Load())
                return ast.copy_location(ast.Call(name, [scratch, *arguments], []), node)
        return node

    def visit(self, node: ast.AST) -> ast.AST:
        """Everything but the functions inside: they have parameters of their own."""
        inner = ast.FunctionDef | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
        return node if isinstance(node, inner) else super().visit(node)


def with_scratch(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return a copy of a function that takes scratch memory first and puts its arrays there.

    None where there is nothing to gain, or where the source is not at hand or is not what was loaded.
    """
    if not isinstance(function, FunctionType) or function.__closure__ or not (definition := _definition(function)):
        return None
    own = function.__code__.co_varnames
    redirect = _Redirect({name for name, value in function.__globals__.items() if value is np and name not in own})
    redirect.generic_visit(ast.Module(definition.body, []))
    if not redirect.redirected:
        return None
    # What the original has as defaults is taken over below, not evaluated again.
    definition.decorator_list, definition.returns, parameters = [], None, definition.args
    for parameter in ast.walk(parameters):
        if isinstance(parameter, ast.arg):
            parameter.annotation = None
    parameters.defaults = [ast.Constant(None) for _ in parameters.defaults]
    parameters.kw_defaults = [value and ast.Constant(None) for value in parameters.kw_defaults]
    (parameters.posonlyargs or parameters.args).insert(0, ast.arg(PARAMETER))
    module = ast.fix_missing_locations(ast.Module([definition], []))
    namespace = function.__globals__ | {PREFIX + maker: replacement for maker, (replacement, _) in MAKERS.items()}
    exec(compile(module, function.__code__.co_filename, "exec"), namespace)
    copy: FunctionType = namespace[function.__name__]
    copy.__defaults__, copy.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return copy


def _definition(function: FunctionType) -> ast.FunctionDef | None:
    """The text of a function, parsed; None unless its file still compiles to the very code that was loaded."""
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
