"""Where the arrays of a compiled mechanism lie: in memory that every run uses again.

An array of its own costs a run 20 ns, most of it numba's atomic counting of references: on `svt`, two of them are a
third of a paired run. Nothing of a run outlives it but its outcome, which the driver has copied by then.
"""

import ast
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, Final

import numpy as np

from dpwitness.jit import NumbaFunction
from dpwitness.mechanisms.compiled.rewriting import PREFIX, rewritten

#: Numbers that fit, a multiple of eight; a run that asks for more gets arrays of its own.
SIZE: Final = 4096
part: Final[Any] = NumbaFunction(
    "dpwitness.mechanisms.compiled.rows", "part", lambda memory, first, n: memory[first : first + n]
)
#: The first parameter that `with_scratch` adds to a function, and the name there of `full`.
PARAMETER: Final = PREFIX + "scratch"
FULL: Final = PREFIX + "full"


def full(scratch: Any, shape: Any, value: Any) -> Any:
    """What `np.full(shape, value)` becomes; compiled code only, as below."""
    return np.full(shape, value)


def taken(scratch: Any, shape: Any, value: Any) -> Any:
    """The same in scratch memory: a pair of the memory and, in position[1], how much of it is taken."""
    memory, position = scratch
    first = position[1]
    if not 0 <= shape <= len(memory) - first:
        return np.full(shape, value)
    position[1] = last = first + (shape + 7 & ~7)
    # Eight by eight, in two instructions, and not by `range`, which LLVM prepares for long arrays: that takes ten
    # entries 5 ns more, a seventh of a run of `svt`.
    k = first
    while k < last:
        memory[k] = memory[k + 1] = memory[k + 2] = memory[k + 3] = value
        memory[k + 4] = memory[k + 5] = memory[k + 6] = memory[k + 7] = value
        k += 8
    return part(memory, first, shape)


@cache
def teach_numba() -> None:
    """Tell numba, once it is imported, what `full` becomes."""
    from numba import types
    from numba.extending import overload

    @overload(full, jit_options={"forceinline": True})
    def _full(scratch: Any, shape: Any, value: Any) -> Any:
        return taken if isinstance(shape, types.Integer) and value == types.float64 else full


#: NumPy's makers of arrays, by name: how many arguments they may have, and what they fill an array with besides.
#: What a run leaves unwritten must not be what another run wrote there: runs would depend on each other.
MAKERS: Final = {"empty": (1, [np.nan]), "zeros": (1, [0.0]), "full": (2, [])}


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
                and len(arguments) == MAKERS[maker][0]
                and not any(isinstance(argument, ast.Starred) for argument in arguments)
            ):
                self.redirected += 1
                name, scratch = ast.Name(FULL, ast.Load()), ast.Name(PARAMETER, ast.Load())
                value = [ast.Constant(value) for value in MAKERS[maker][1]]
                return ast.copy_location(ast.Call(name, [scratch, *arguments, *value], []), node)
        return node

    def visit(self, node: ast.AST) -> ast.AST:
        """Everything but the functions inside: they have parameters of their own."""
        inner = ast.FunctionDef | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
        return node if isinstance(node, inner) else super().visit(node)


def with_scratch(function: Callable[..., Any]) -> FunctionType | None:
    """Return a copy of a function that takes scratch memory first and puts its arrays there.

    None where there is nothing to gain, or where the source is not at hand or is not what was loaded.
    """

    def rewrite(definition: ast.FunctionDef) -> dict[str, Any]:
        known, own = function.__globals__, function.__code__.co_varnames
        redirect = _Redirect({name for name, value in known.items() if value is np and name not in own})
        redirect.generic_visit(ast.Module(definition.body, []))
        if not redirect.redirected:
            return {}
        parameters = definition.args
        (parameters.posonlyargs or parameters.args).insert(0, ast.arg(PARAMETER))
        return {FULL: full}

    return rewritten(function, rewrite)
