"""A mechanism whose noise is drawn from a shifted law in a share of the runs, with the weight of each run.

With probability 1 − τ a run is one of the mechanism itself, with probability τ its draws from `dpwitness.noise` are
shifted, each by so many scales of its noise; one coin decides for all draws of a run. Let p and q be the densities of
the draws of a run, where what is drawn in which order may depend on the earlier draws. The weight of a run is
w = p/((1 − τ)p + τq): it follows from the ratio p/q alone, which is the product of the ratios of single draws. Draws
that are not shifted, as all of those that come from somewhere else, have a ratio of 1. So whatever is left as it is
makes no weight wrong, and for every event S of outcomes E[w·1(outcome ∈ S)] is the probability of S under the mechanism
itself: the integral over S of p, since (1 − τ)p + τq is what the draws come from and is 0 only where p is.

It is the law of real numbers. In doubles z + θ has other last bits than z: events of last bits are not for these runs,
and no search proposes them here.
"""

import ast
import math
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from types import FunctionType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness import noise
from dpwitness.events.weighted import LEADING, LEVELS, SHARE
from dpwitness.jit import inlined
from dpwitness.mechanisms.compiled.compare import first_difference
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.compiled.refusals import Refused, refusal
from dpwitness.mechanisms.compiled.rewriting import PREFIX, rewritten, text_of
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.resolve import with_conversion
from dpwitness.mechanisms.signature import Signature, own_copy
from dpwitness.neighbours import Pair

Floats = NDArray[np.float64]

#: The name of what a rewritten function takes first: the record of a run, and the shifts of its draws.
RUN: Final = PREFIX + "run"
#: The name of the parameter that holds the share τ, and behind it the shifts.
TILT: Final = PREFIX + "tilt"
#: Euler's constant: the mean of the standard Gumbel law, and minus that of the logarithm of the exponential law.
EULER: Final = 0.57721566490153286
#: Runs whose outcomes are compared with those of the mechanism itself.
COMPARED: Final = 16


class CannotTilt(Exception):
    """The noise of a mechanism cannot be shifted; the message says why."""


@inlined
def begin(rng: np.random.Generator, tilt: Floats) -> tuple[Floats, Floats]:
    """A run's record (shifted or not, draws so far, log p/q, and each draw in scales), and the shifts of its draws."""
    record = np.zeros(len(tilt) + 2)
    if rng.random() < tilt[0]:
        record[0] = 1.0
    return record, tilt[1:]


@inlined
def level(run: tuple[Floats, Floats], rng: np.random.Generator, share: float) -> int:
    """(1 − τ) times the weight, rounded to a number of `LEVELS`, so that its mean is right; τ is `share`."""
    value = scaled_weight(run[0][2], share)
    k = int(np.searchsorted(LEVELS, value, side="right")) - 1
    if k + 1 < len(LEVELS) and rng.random() * (LEVELS[k + 1] - LEVELS[k]) < value - LEVELS[k]:
        k += 1
    return k


@inlined
def scaled_weight(log_ratio: float, share: float) -> float:
    """(1 − τ)·w = 1/(1 + τ/(1 − τ)·q/p), from log p/q; between 0 and 1."""
    odds = math.log(share / (1 - share)) - log_ratio
    return 0.0 if odds > 700.0 else 1 / (1 + math.exp(odds))


@inlined
def next_shift(run: tuple[Floats, Floats]) -> float:
    """The shift of the next draw; 0 of those behind the last shift."""
    record, shifts = run
    k = int(record[1])
    record[1] = k + 1
    return shifts[k] if k < len(shifts) else 0.0


@inlined
def note(run: tuple[Floats, Floats], draw: float, log_ratio: float) -> None:
    """Record a draw, in scales and less the mean of its noise, and multiply by its ratio of densities p/q."""
    record, _shifts = run
    place = int(record[1]) + 2
    if place < len(record):
        record[place] = draw
        record[2] += log_ratio


@inlined
def laplace(run: tuple[Floats, Floats], rng: np.random.Generator, scale: float) -> float:
    """`noise.laplace`, shifted."""
    x, by = noise.laplace(rng, scale), next_shift(run)
    if not 0 < scale < math.inf:
        return x
    if run[0][0]:
        x += by * scale
    note(run, x / scale, abs(x / scale - by) - abs(x / scale))
    return x


@inlined
def gaussian(run: tuple[Floats, Floats], rng: np.random.Generator, scale: float) -> float:
    """`noise.gaussian`, shifted."""
    x, by = noise.gaussian(rng, scale), next_shift(run)
    if not 0 < scale < math.inf:
        return x
    if run[0][0]:
        x += by * scale
    note(run, x / scale, by * (by / 2 - x / scale))
    return x


@inlined
def gumbel(run: tuple[Floats, Floats], rng: np.random.Generator, scale: float) -> float:
    """`noise.gumbel`, shifted; its density is exp(−z − exp(−z))."""
    x, by = noise.gumbel(rng, scale), next_shift(run)
    if not 0 < scale < math.inf:
        return x
    if run[0][0]:
        x += by * scale
    note(run, x / scale - EULER, math.exp(by - x / scale) - math.exp(-x / scale) - by)
    return x


@inlined
def exponential(run: tuple[Floats, Floats], rng: np.random.Generator, scale: float) -> float:
    """`noise.exponential`, multiplied: shifted draws would have outcomes of density 0, or leave some out."""
    x, by = noise.exponential(rng, scale), next_shift(run)
    if not 0 < scale < math.inf:
        return x
    if run[0][0]:
        x *= math.exp(by)
    note(run, math.log(x / scale) + EULER, by + x / scale * math.expm1(-by))
    return x


@inlined
def geometric(run: tuple[Floats, Floats], rng: np.random.Generator, scale: float) -> int:
    """`noise.geometric`, shifted by a whole number."""
    k, by = noise.geometric(rng, scale), next_shift(run)
    if not 0 < scale < math.inf:
        return k
    whole = round(by * scale)
    if run[0][0]:
        k += whole
    note(run, k / scale, (abs(k - whole) - abs(k)) / scale)
    return k


@inlined
def discrete_gaussian(run: tuple[Floats, Floats], rng: np.random.Generator, scale: float) -> int:
    """`noise.discrete_gaussian`, shifted by a whole number."""
    k, by = noise.discrete_gaussian(rng, scale), next_shift(run)
    if not 0 < scale < math.inf:
        return k
    whole = round(by * scale)
    if run[0][0]:
        k += whole
    note(run, k / scale, whole * (whole - 2.0 * k) / (2 * scale**2))
    return k


#: Samplers of `dpwitness.noise`, and what stands in the place of their calls, under which name.
SAMPLERS: Final[tuple[tuple[Any, str, Any], ...]] = tuple(
    (getattr(noise, own.__name__), PREFIX + own.__name__, own)
    for own in (laplace, gaussian, gumbel, exponential, geometric, discrete_gaussian)
)


class _Redirect(ast.NodeTransformer):
    """Sends calls of samplers, under whatever names a function knows them, to those that shift; others stay."""

    def __init__(self, function: FunctionType) -> None:
        self.globals, self.own = function.__globals__, set(function.__code__.co_varnames)
        self.redirected = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node.func:
            case ast.Name(name) if name not in self.own:
                called = self.globals.get(name)
            case ast.Attribute(ast.Name(module), name) if module not in self.own:
                called = getattr(noise, name, None) if self.globals.get(module) is noise else None
            case _:
                return node
        for sampler, name, _ in SAMPLERS:
            if called is sampler:
                self.redirected += 1
                arguments = [ast.Name(RUN, ast.Load()), *node.args]
                return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), arguments, node.keywords), node)
        return node

    def visit(self, node: ast.AST) -> ast.AST:
        """Everything but the functions inside: they have parameters of their own."""
        return node if isinstance(node, ast.FunctionDef | ast.Lambda) else super().visit(node)


def _rewritten(function: Callable[..., object]) -> FunctionType:
    """A copy of a function that takes a run first, and hands it to the samplers that it calls itself.

    Draws of functions that it calls are not shifted. Raises `CannotTilt` where there is none.
    """
    if not isinstance(function, FunctionType) or function.__closure__:
        raise CannotTilt("it is no function at the top level of a file")
    if text_of(function) is None:
        raise CannotTilt("its source is not at hand")
    redirect = _Redirect(function)

    def rewrite(definition: ast.FunctionDef) -> dict[str, Any]:
        redirect.generic_visit(ast.Module(definition.body, []))
        parameters = definition.args
        (parameters.posonlyargs or parameters.args).insert(0, ast.arg(RUN))
        return {name: own for _, name, own in SAMPLERS} if redirect.redirected else {}

    made = rewritten(function, rewrite)
    if made is None:
        raise CannotTilt("it calls none of the samplers of dpwitness.noise itself")
    return made


def tilted_signature(signature: Signature, shifts: Floats) -> Signature:
    """That of a function which returns the level of a run's weight, its record, and the outcome.

    Raises `CannotTilt` where there is no noise to shift.
    """
    if signature.fast_noise:
        raise CannotTilt("fast_noise=True draws its noise in other calls: leave one of the two out")
    function: Any = signature.function
    rewritten_copy = _rewritten(getattr(function, "py_func", function))
    given = ", ".join(signature.order)
    rng = signature.generator
    text = (
        f"def {PREFIX}tilted({given}, {TILT}):\n"
        f"    {RUN} = {PREFIX}begin({rng}, {TILT})\n"
        f"    {PREFIX}outcome = {PREFIX}mechanism({RUN}, {given})\n"
        f"    return {PREFIX}level({RUN}, {rng}, {TILT}[0]), {RUN}[0], {PREFIX}outcome\n"
    )
    parts = {"begin": begin, "level": level, "mechanism": inlined(rewritten_copy)}
    namespace: dict[str, Any] = {"__name__": function.__module__, **{PREFIX + key: part for key, part in parts.items()}}
    exec(compile(text, "<tilted>", "exec"), namespace)
    made = namespace[PREFIX + "tilted"]
    taken = replace(signature, function=made, order=(*signature.order, TILT), by_position=(), original=function)
    return _with_tilt(taken, shifts, SHARE)


def _with_tilt(signature: Signature, shifts: Floats, share: float) -> Signature:
    tilt = {TILT: own_copy(np.append(share, shifts))}
    return replace(signature, parameters=signature.parameters | tilt, given=signature.given | tilt)


class TiltedMechanism(CompiledMechanism):
    """A mechanism with shifted draws; its rows are those that `events.weighted` describes."""

    def at(self, shifts: Floats, share: float) -> "TiltedMechanism":
        """The same machine code with as many other shifts, for search runs: nothing is compared with Python."""
        other = copy(self)
        other.signature = _with_tilt(self.signature, shifts, share)
        other._values = (*self._values[:-1], other.signature.parameters[TILT])
        other.plain = None
        return other


def tilted(mechanism: Mechanism, pair: Pair, shifts: Floats) -> TiltedMechanism:
    """The mechanism with shifted draws in `SHARE` of the runs; tried on a pair, and compared with plain Python.

    Raises `CannotTilt` where its noise cannot be shifted.
    """
    if not isinstance(mechanism, CompiledMechanism) or mechanism.signature.generator is None:
        raise CannotTilt("it does not run as machine code with a generator")
    signature = tilted_signature(mechanism.signature, shifts)
    try:
        compiled = TiltedMechanism(signature)
        compiled.compile_for(pair)
    except Refused as error:
        raise CannotTilt(refusal(str(error), signature.function)) from error
    twin = PythonMechanism(signature.interpreted())
    twin.begin(None, keyed=False, by_position=True)
    compiled.plain = with_conversion(twin, pair)
    difference = first_difference(compiled, twin, pair)
    if difference is not None:
        raise CannotTilt(difference)
    compiled.measure(pair)
    return compiled


def offset_of(shifted: TiltedMechanism, mechanism: Mechanism, pair: Pair) -> int:
    """The column at which outcomes begin in the rows of a mechanism with shifted draws.

    Found by the first runs without any shift, whose outcomes must be those of the mechanism from the same draws: so
    that what is tested is what was given, whatever the rewriting did. Raises `CannotTilt` where they are not.
    """
    shifts = len(shifted.signature.parameters[TILT]) - 1
    own = shifted.at(np.zeros(shifts), SHARE)
    rng, same = (np.random.Generator(np.random.SFC64(0)) for _ in range(2))
    offsets = {LEADING + shifts, LEADING + shifts + 1}
    for _ in range(COMPARED):
        for data in pair.sides:
            same.bit_generator.state = rng.bit_generator.state
            same.random()  # the coin
            row, expected = own.outcomes(data, rng, 1)[0], mechanism.outcomes(data, same, 1)[0]
            offsets = {at for at in offsets if np.array_equal(_present(row[at:]), _present(expected))}
    if len(offsets) != 1:
        raise CannotTilt("the copy whose draws are shifted gives other outcomes")
    return offsets.pop()


def _present(row: Floats) -> Floats:
    return row[~np.isnan(row)]
