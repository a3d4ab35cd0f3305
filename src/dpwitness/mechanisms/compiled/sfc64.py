"""SFC64, the generator of all runs, as code that LLVM can inline; the state is that of NumPy's own.

Numba's distributions and ours call the generator through pointers; inlined it is 1.0 to 1.3 times as fast (`svt`, a
histogram of 4,096 cells), mostly since a loop without calls keeps its values in registers. The words are the same:
`compare` would see it if they were not.
"""

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir  # type: ignore[import-untyped]  # no stubs
from numba import types
from numba.core import cgutils

WORD: Final = ir.IntType(64)
HALF: Final = ir.IntType(32)
Builder = Any  # llvmlite's, which has no types


def with_own_code(context: Any, builder: Builder, bits: Any) -> Any:
    """A bit generator of numba's whose state is NumPy's SFC64 and whose functions are those below."""
    struct: Any = cgutils.create_struct_proxy(types.NumPyRandomBitGeneratorType("bit_generator"))(  # type: ignore[no-untyped-call]  # numba has no types
        context, builder, value=bits
    )
    for name, kind, write in (
        ("next_uint64", WORD, _next_uint64),
        ("next_uint32", HALF, _next_uint32),
        ("next_double", ir.DoubleType(), _next_double),
    ):
        function = _function(builder.module, name, kind, write)
        setattr(struct, f"fnptr_{name}", builder.ptrtoint(function, WORD))
    return struct._getvalue()


def _function(module: Any, name: str, kind: Any, write: Callable[[Builder, Any], Any]) -> Any:
    """A function of the state's address in a module, written where it is not there yet."""
    name = f"dpwitness_sfc64_{name}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(kind, [WORD]), name)
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(write(builder, function.args[0]))
    return function


def _next_uint64(builder: Builder, state: Any) -> Any:
    """`sfc64_next` of NumPy: three words of state and a counter; Doty-Humphrey, PractRand."""
    words = builder.inttoptr(state, WORD.as_pointer())
    places = [builder.gep(words, [WORD(k)]) for k in range(4)]
    a, b, c, count = (builder.load(place) for place in places)
    word = builder.add(builder.add(a, b), count)
    rotated = builder.or_(builder.shl(c, WORD(24)), builder.lshr(c, WORD(40)))
    for place, value in zip(
        places,
        (
            builder.xor(b, builder.lshr(b, WORD(11))),
            builder.add(c, builder.shl(c, WORD(3))),
            builder.add(rotated, word),
            builder.add(count, WORD(1)),
        ),
        strict=True,
    ):
        builder.store(value, place)
    return word


def _next_uint32(builder: Builder, state: Any) -> Any:
    """The half of a word that is left, or a fresh one of which a half is left: behind the words a flag and the half."""
    flag = builder.inttoptr(builder.add(state, WORD(32)), HALF.as_pointer())
    rest = builder.gep(flag, [WORD(1)])
    left = builder.icmp_signed("!=", builder.load(flag), HALF(0))
    with builder.if_else(left) as (there, fresh):
        with there:
            builder.store(HALF(0), flag)
            old, of_old = builder.load(rest), builder.block
        with fresh:
            word = _next_uint64(builder, state)
            builder.store(HALF(1), flag)
            builder.store(builder.trunc(builder.lshr(word, WORD(32)), HALF), rest)
            new, of_new = builder.trunc(word, HALF), builder.block
    half = builder.phi(HALF)
    half.add_incoming(old, of_old)
    half.add_incoming(new, of_new)
    return half


def _next_double(builder: Builder, state: Any) -> Any:
    """A word's upper 53 bits as a number below 1."""
    upper = builder.lshr(_next_uint64(builder, state), WORD(11))
    return builder.fmul(builder.uitofp(upper, ir.DoubleType()), ir.Constant(ir.DoubleType(), 2.0**-53))
