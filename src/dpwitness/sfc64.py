"""The generator of compiled runs, SFC64, as code that LLVM can inline, its state in registers.

Numba's distributions and ours call a generator through pointers. Inlined, and on a copy of the state that nothing
else can reach, it is 1.1 to 1.4 times as fast (`svt`, a histogram of 4,096 cells): a loop without calls keeps its
values in registers, and no draw waits until the state of the one before is written and read again. The words are
those of NumPy's own: `compare` would see it if they were not. Code that Python runs in between would draw from NumPy's
memory: a mechanism that has such code, under numba's `objmode`, is no machine code (see `driver`).
"""

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir  # type: ignore[import-untyped]  # no stubs
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: Of the state, as `mechanisms.draws` reads it: four of the generator, of which the last counts draws, a 32-bit rest.
WORDS: Final = 5
WORD: Final = ir.IntType(64)
HALF: Final = ir.IntType(32)
Builder = Any  # llvmlite's, which has no types
#: Numba's helpers, which have no types.
_cgutils: Final[Any] = cgutils


@intrinsic
def copied(typing_context: Any, state: Any) -> Any:
    """Return a copy of a state, an array of words; it is there as long as the function that makes it."""

    def generate(context: Any, builder: Builder, signature: Any, arguments: Any) -> Any:
        array = _cgutils.create_struct_proxy(state)(context, builder, value=arguments[0])
        words = builder.bitcast(_cgutils.alloca_once(builder, ir.ArrayType(WORD, WORDS)), WORD.as_pointer())
        _copy(builder, array.data, words)
        array.data, array.meminfo = words, _cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()

    return state(state), generate


@intrinsic
def drawing_from(typing_context: Any, rng: Any, state: Any) -> Any:
    """Return NumPy's generator with the functions below, drawing from a state of SFC64 that `copied` has made.

    It has no reference count: see `borrow` in `mechanisms.compiled.rows`.
    """

    def generate(context: Any, builder: Builder, signature: Any, arguments: Any) -> Any:
        generator = _cgutils.create_struct_proxy(rng)(context, builder, value=arguments[0])
        array = _cgutils.create_struct_proxy(state)(context, builder, value=arguments[1])
        bits = _cgutils.create_struct_proxy(BITS)(context, builder, value=generator.bit_generator)
        bits.state = builder.ptrtoint(array.data, WORD)
        for name, (kind, write) in FUNCTIONS.items():
            setattr(bits, f"fnptr_{name}", builder.ptrtoint(_function(builder.module, name, kind, write), WORD))
        generator.bit_generator = bits._getvalue()
        generator.meminfo = _cgutils.get_null_value(generator.meminfo.type)
        return generator._getvalue()

    return rng(rng, state), generate


@intrinsic
def handed_out(typing_context: Any, bits: Any) -> Any:
    """Return a bit generator for a function that is not inlined: one that draws from NumPy's memory.

    The copy of the state could not stay in registers if such a function were given its address. Of a generator that
    has no copy, the same.
    """

    def generate(context: Any, builder: Builder, signature: Any, arguments: Any) -> Any:
        struct = _cgutils.create_struct_proxy(bits)(context, builder, value=arguments[0])
        with builder.if_then(_has_copy(builder, struct)):
            _copy(builder, *_pointers(builder, struct.state, struct.state_address))
            struct.state = struct.state_address
        return struct._getvalue()

    return bits(bits), generate


@intrinsic
def taken_back(typing_context: Any, bits: Any) -> Any:
    """Read back the state that a function called with `handed_out(bits)` has left in NumPy's memory."""

    def generate(context: Any, builder: Builder, signature: Any, arguments: Any) -> Any:
        struct = _cgutils.create_struct_proxy(bits)(context, builder, value=arguments[0])
        with builder.if_then(_has_copy(builder, struct)):
            _copy(builder, *_pointers(builder, struct.state_address, struct.state))
        return context.get_dummy_value()

    return types.none(bits), generate


def _has_copy(builder: Builder, bits: Any) -> Any:
    """Whether a bit generator is one of ours; in code that is inlined into its maker LLVM knows that."""
    own = _function(builder.module, "next_uint64", *FUNCTIONS["next_uint64"])
    return builder.icmp_unsigned("==", bits.fnptr_next_uint64, builder.ptrtoint(own, WORD))


def _pointers(builder: Builder, *addresses: Any) -> list[Any]:
    return [builder.inttoptr(address, WORD.as_pointer()) for address in addresses]


def _copy(builder: Builder, source: Any, target: Any) -> None:
    for k in range(WORDS):
        builder.store(builder.load(builder.gep(source, [WORD(k)])), builder.gep(target, [WORD(k)]))


def _function(module: Any, name: str, kind: Any, write: Callable[[Builder, Any], Any]) -> Any:
    """A function of the state's address in a module, written where it is not there yet."""
    name = f"dpwitness_sfc64_{name}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(kind, [WORD]), name)
    function.linkage = "linkonce_odr"  # one function in whatever is inlined into each other
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


BITS: Final[Any] = types.NumPyRandomBitGeneratorType("bit_generator")
FUNCTIONS: Final[dict[str, tuple[Any, Callable[[Builder, Any], Any]]]] = {
    "next_uint64": (WORD, _next_uint64),
    "next_uint32": (HALF, _next_uint32),
    "next_double": (ir.DoubleType(), _next_double),
}
