"""Mechanisms whose noise is drawn by `dpwitness.noise` in the place of NumPy's samplers: the same laws, other bits.

What takes their place has NumPy's parameters, raises what NumPy raises, and runs in the interpreter too: machine code
and the plain Python that it is compared with draw the same numbers. `Generator.normal` is the same ziggurat as
`noise.gaussian`, and `Generator.geometric` another law than `noise.geometric`, so both stay.
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Final

import numpy as np

from dpwitness import noise
from dpwitness.jit import inlined
from dpwitness.mechanisms.compiled.rewriting import PREFIX, rewritten, text_of


@inlined
def require_scale(scale: float) -> None:
    """Raise as NumPy does for a negative scale, −0 included."""
    if np.signbit(scale) and not np.isnan(scale):
        raise ValueError("scale < 0")


# `float` refuses arrays, in the interpreter too: one number must not stand for the noise of several entries. What makes
# arrays is a function of its own, as numba tells a tuple from None too late.


@inlined
def laplace(rng: np.random.Generator, loc: float = 0.0, scale: float = 1.0, size: None = None) -> float:
    """What `rng.laplace` becomes."""
    require_scale(scale)
    return float(loc) + noise.laplace(rng, float(scale))


@inlined
def laplace_array(rng: np.random.Generator, loc: float = 0.0, scale: float = 1.0, size: Any = None) -> Any:
    """What it becomes where it has a size."""
    require_scale(scale)
    out = np.empty(size)
    for i in range(out.size):
        out.flat[i] = laplace(rng, loc, scale)
    return out


@inlined
def gumbel(rng: np.random.Generator, loc: float = 0.0, scale: float = 1.0, size: None = None) -> float:
    """What `rng.gumbel` becomes."""
    require_scale(scale)
    return float(loc) + noise.gumbel(rng, float(scale))


@inlined
def gumbel_array(rng: np.random.Generator, loc: float = 0.0, scale: float = 1.0, size: Any = None) -> Any:
    """What it becomes where it has a size."""
    require_scale(scale)
    out = np.empty(size)
    for i in range(out.size):
        out.flat[i] = gumbel(rng, loc, scale)
    return out


@inlined
def exponential(rng: np.random.Generator, scale: float = 1.0, size: None = None) -> float:
    """What `rng.exponential` becomes."""
    require_scale(scale)
    return noise.exponential(rng, float(scale))


@inlined
def exponential_array(rng: np.random.Generator, scale: float = 1.0, size: Any = None) -> Any:
    """What it becomes where it has a size."""
    require_scale(scale)
    out = np.empty(size)
    for i in range(out.size):
        out.flat[i] = exponential(rng, scale)
    return out


@inlined
def standard_exponential(rng: np.random.Generator, size: None = None) -> float:
    """What `rng.standard_exponential` becomes."""
    return noise.exponential(rng, 1.0)


@inlined
def standard_exponential_array(rng: np.random.Generator, size: Any = None) -> Any:
    """What it becomes where it has a size."""
    return exponential_array(rng, 1.0, size)


#: Methods of NumPy's generator, and what takes their place: for one number, and for an array.
SAMPLERS: Final[dict[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {
    "laplace": (laplace, laplace_array),
    "gumbel": (gumbel, gumbel_array),
    "exponential": (exponential, exponential_array),
    "standard_exponential": (standard_exponential, standard_exponential_array),
}


def with_fast_noise(function: Callable[..., Any], generator: str) -> tuple[FunctionType, tuple[str, ...]] | None:
    """A copy of a function that draws by `dpwitness.noise`, and the methods of NumPy's generator that it did so by.

    Calls that stand in the function itself, on its parameter `generator`, are replaced. Those of functions that it
    calls, and those through another variable, stay. None where there are none, and as `rewritten`.
    """
    replacement = _Replacement(generator)

    def rewrite(definition: ast.FunctionDef) -> dict[str, Any]:
        if _is_given(definition, generator):
            replacement.generic_visit(ast.Module(definition.body, []))
        return replacement.samplers

    copy = rewritten(function, rewrite)
    return None if copy is None else (copy, tuple(replacement.methods))


def why_unused(function: Callable[..., Any]) -> str:
    """Why nothing of a function is replaced, for people."""
    if text_of(function) is None:
        return "its source cannot be read"
    if function.__closure__:
        return "it uses variables of the function that it is defined in"
    return f"no call of its generator's {', '.join(SAMPLERS)} in it can be replaced"


class _Replacement(ast.NodeTransformer):
    """Replaces the calls of `SAMPLERS` on a generator: the samplers by their names in the text, and the methods."""

    def __init__(self, generator: str) -> None:
        self.generator = generator
        self.samplers: dict[str, Callable[..., Any]] = {}
        self.methods: dict[str, None] = {}

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Attribute(ast.Name(name), method), values, named) if (
                name == self.generator and method in SAMPLERS and (sampler := _sampler(method, values, named))
            ):
                self.methods[method] = None
                self.samplers[PREFIX + sampler.__name__] = sampler
                called, rng = ast.Name(PREFIX + sampler.__name__, ast.Load()), ast.Name(name, ast.Load())
                return ast.copy_location(ast.Call(called, [rng, *values], named), node)
        return node


def _sampler(method: str, values: list[ast.expr], named: list[ast.keyword]) -> Callable[..., Any] | None:
    """What takes the place of a call that is written so; None where that cannot be read, or is none of its calls."""
    given = {one.arg: one.value for one in named if one.arg is not None}
    if len(given) < len(named) or any(isinstance(value, ast.Starred) for value in values):
        return None
    single, several = SAMPLERS[method]
    try:
        size = inspect.signature(single).bind(None, *values, **given).arguments.get("size")
    except TypeError:
        return None
    return single if size is None or (isinstance(size, ast.Constant) and size.value is None) else several


def _is_given(definition: ast.FunctionDef, name: str) -> bool:
    """Whether a parameter of a function is what was given everywhere in it: nothing else is ever called so.

    Of the text alone: from Python 3.12 on `symtable` does not say what a comprehension binds.
    """
    return sum(name in _bound_by(node) for node in ast.walk(definition)) == 1  # by the parameter


def _bound_by(node: ast.AST) -> Iterator[str]:
    """The names that a part of a text may give to something: all that it holds, unless it only reads them."""
    if isinstance(node, ast.Attribute | ast.keyword | ast.Constant) or isinstance(getattr(node, "ctx", None), ast.Load):
        return
    for _, value in ast.iter_fields(node):
        for name in value if isinstance(value, list) else [value]:
            if isinstance(name, str):
                yield name.partition(".")[0]  # of `import a.b` it is a
