"""A mechanism as the rest of the house sees it: something that fills rows with outcomes.

A user writes a plain function; `Signature` recognises its parameters by name, and `CompiledMechanism` runs it as
machine code. The other callables are in `adapters`.
"""

import ctypes
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidOutcome, InvalidParameter, MechanismRaised
from dpwitness.mechanisms.cost import Cost, measured
from dpwitness.neighbours import Data, Pair

GENERATOR_NAMES: Final = frozenset({"rng", "prng", "generator", "random_state"})
SIZE_NAMES: Final = frozenset({"size", "n_samples"})
EPSILON_NAMES: Final = frozenset({"epsilon", "eps"})
DELTA_NAMES: Final = frozenset({"delta"})
#: A longer output is taken for a list that grows without end.
LONGEST_ROW: Final = 10_000

NOT_STARTED: Final = np.int64(2**62)

Rows = NDArray[np.float64]


class Refused(Exception):
    """Numba cannot compile a mechanism; the message is numba's."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Which parameter of a function is the generator, the number of runs, the data; the rest are its own."""

    function: Callable[..., Any]
    name: str
    generator: str | None
    size: str | None
    data: str
    order: tuple[str, ...]
    parameters: dict[str, Any]
    #: The user's own function, where `function` is a copy of it that the interpreter runs.
    original: Callable[..., Any] | None = None
    #: The parameters as they were given; `parameters` are copies, in which a function may keep something.
    given: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        given: Mapping[str, Any],
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> "Signature":
        """Match a function with the parameters given for it.

        `epsilon` and `delta` go to parameters of these names that are not among those given.
        Raises `InvalidParameter` for a parameter that the function lacks, for one that it needs, and for a function
        without data.
        """
        plain = getattr(function, "py_func", function)
        name = getattr(plain, "__name__", type(plain).__name__)
        try:
            declared = inspect.signature(plain).parameters
        except (TypeError, ValueError) as error:
            raise InvalidParameter(f"{name}: its parameters cannot be read ({error}); wrap it in a function") from error
        generator = size = data = None
        own: dict[str, Any] = {}
        for key, parameter in declared.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            if key in GENERATOR_NAMES and generator is None:
                generator = key
            elif key in SIZE_NAMES and size is None:
                size = key
            elif data is None:
                data = key
            else:
                own[key] = parameter.default
        if data is None:
            raise InvalidParameter(f"{name} takes no data: its first parameter besides the generator is the input")
        unknown = [key for key in given if key not in own]
        if unknown:
            known = ", ".join(own) or "none of its own"
            raise InvalidParameter(f"{name} has no parameter {unknown[0]!r}; it takes: {known}")
        values = {key: given.get(key, default) for key, default in own.items()}
        for names, value in ((EPSILON_NAMES, epsilon), (DELTA_NAMES, delta)):
            if value is not None:
                values.update({key: float(value) for key in names & set(own) - set(given)})
        missing = [key for key, value in values.items() if value is inspect.Parameter.empty]
        if missing:
            raise InvalidParameter(f"{name} needs a value for {missing[0]!r}: give {missing[0]}=…")
        order = tuple(key for key in declared if key in values or key in (generator, size, data))
        copies = {key: _copied(value) for key, value in values.items()}
        return cls(function, name, generator, size, data, order, copies, given=values)

    def bind(self, data: Any, rng: np.random.Generator | None, size: int | None = None) -> dict[str, Any]:
        """Everything to call the function with, by name."""
        bound = {self.data: data, **self.parameters}
        if self.generator is not None:
            bound[self.generator] = rng
        if self.size is not None:
            bound[self.size] = size
        return bound

    def interpreted(self) -> "Signature":
        """The same with the function as the interpreter runs it, and with it all numba functions that it reaches."""
        from dpwitness.mechanisms.compiled.reach import rebuilt

        plain: Any = getattr(self.function, "py_func", self.function)
        copy = rebuilt(plain, lambda copy, options: copy, keep=frozenset())
        return replace(self, function=copy, original=self.original or self.function)


def _copied(value: Any) -> Any:
    """A parameter of which the caller's own stays as it is: lists copied, arrays copied and read-only."""
    if type(value) in (list, tuple):
        return type(value)(_copied(item) for item in value)
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.flags.writeable = False
    return value


def takes(function: Any, name: str) -> bool:
    """Whether a function has a parameter of that name."""
    try:
        return name in inspect.signature(getattr(function, "py_func", function)).parameters
    except (TypeError, ValueError):  # a builtin without a signature: `Signature.of` will say so
        return False


class Mechanism(ABC):
    """One interface over every kind of callable: `fill` rows with the outcomes of runs."""

    #: Paired runs with one seed of their own, fixed for each kind so that the same seed gives the same counts.
    shard: int
    #: Whether several threads may run it at the same time.
    threads: bool
    #: Whether it is machine code.
    compiled = False
    #: The same function as the interpreter runs it, where compiled outcomes must be compared with it.
    plain: "Mechanism | None" = None

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        #: What a run costs; measured by `measure`.
        self.cost = Cost(compiled=self.compiled, parallel=self.threads, batched=signature.size is not None)
        #: The longest output seen so far: how wide to make rows at first. It saves time and decides nothing.
        self.width = 0

    def measure(self, pair: Pair) -> None:
        """Try both inputs of a pair and set the cost, the shard and the width. Raises as `fill` does."""
        self.cost = measured(self, pair)
        self.shard, self.width = self.cost.shard, max(self.width, self.cost.width)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.signature.name

    @property
    def reproducible(self) -> bool:
        """Whether it takes a generator, so that a seed repeats its runs."""
        return self.signature.generator is not None

    @abstractmethod
    def fill(self, data: Data, rng: np.random.Generator, rows: Rows, start: int) -> int:
        """Write one outcome a row, NaN behind its end; return the longest length, which may exceed the rows' width.

        `start` is the number of the first run, for messages. Raises `MechanismRaised` and `InvalidOutcome`.
        """

    def fill_pair(self, pair: Pair, rng: np.random.Generator, rows: Rows, start: int, *, coupled: bool) -> int:
        """Fill rows[0] with runs of D and rows[1] with runs of D′, as `fill` does; rows have the shape (2, n, width).

        `coupled` lets the two sides of a run share their random draws, where the mechanism can; different runs never
        share any. The sides are independent otherwise.
        """
        return max(self.fill(pair.data, rng, rows[0], start), self.fill(pair.neighbour, rng, rows[1], start))

    def outcomes(self, data: Data, rng: np.random.Generator, n: int, *, start: int = 0, least: int = 1) -> Rows:
        """The outcomes of n runs, none of them cut off: an array of shape (n, width), NaN behind the end of each.

        `start` is the number of the first run, for messages; `least` a width that the rows have at least. Raises as
        `fill` does.
        """
        state = rng.bit_generator.state
        rows = np.empty((n, max(self.width, least)))
        while (longest := self.fill(data, rng, rows, start)) > rows.shape[1]:
            rng.bit_generator.state, self.width = state, longest
            rows = np.empty((n, longest))
        return rows

    def pair_outcomes(self, pair: Pair, rng: np.random.Generator, n: int, *, coupled: bool, least: int = 1) -> Rows:
        """The outcomes of n runs on D and n on D′, none of them cut off: an array of shape (2, n, width).

        Further as `outcomes` and `fill_pair`.
        """
        state = rng.bit_generator.state
        rows = np.empty((2, n, max(self.width, least)))
        while (longest := self.fill_pair(pair, rng, rows, 0, coupled=coupled)) > rows.shape[2]:
            rng.bit_generator.state, self.width = state, longest
            rows = np.empty((2, n, longest))
        return rows

    def label(self, value: float) -> str | None:
        """The text that stands behind a number, for mechanisms that return text."""
        return None

    def check_length(self, length: int, start: int) -> int:
        """Raise `InvalidOutcome` for an output that grows without end; else return its length."""
        if length > LONGEST_ROW:
            raise InvalidOutcome(
                f"{self.name} returned {length} values on a run from {start} on: more than {LONGEST_ROW} are taken for "
                "a list that grows without end; return less, or pass outcome= to summarise it"
            )
        return length


class CompiledMechanism(Mechanism):
    """A plain function as machine code; several threads may run it."""

    shard = 16_384
    threads = True
    compiled = True

    def __init__(self, signature: Signature) -> None:
        from dpwitness.mechanisms.compiled.scratch import SIZE, with_scratch  # numba is imported when first used

        super().__init__(signature)
        own = list(signature.parameters)
        names = {signature.data: "given", **{key: f"parameters[{own.index(key)}]" for key in own}}
        if signature.generator is not None:
            names[signature.generator] = "generator"
        self._values = tuple(
            _copied(np.asarray(v)) if isinstance(v, list) else v for v in signature.parameters.values()
        )
        self._arguments = [names[key] for key in signature.order]
        self._scratch = SIZE
        self._keep = True
        self._redirected = with_scratch(signature.function)
        self._load()

    def _load(self) -> None:
        from dpwitness.mechanisms.compiled.driver import load_driver

        if self._redirected:
            self._fill = load_driver(self._redirected, ["scratch", *self._arguments], keep=self._keep)
        else:
            self._fill = load_driver(self.signature.function, self._arguments, keep=self._keep)

    def fill(self, data: Data, rng: np.random.Generator, rows: Rows, start: int) -> int:
        """As in `Mechanism`; for a few runs, since it makes as many again that it throws away."""
        both = np.empty((2, *rows.shape))
        length = self.fill_pair(Pair(data, data), rng, both, start, coupled=False)
        rows[:] = both[0]
        return length

    def fill_pair(self, pair: Pair, rng: np.random.Generator, rows: Rows, start: int, *, coupled: bool) -> int:
        """As in `Mechanism`; coupled runs need an SFC64 generator."""
        position = np.array([NOT_STARTED, 0])  # the number of the run, and what it has taken of the scratch memory
        # Apart, not in one block: an index out of bounds must not reach the other input.
        inputs = [given[()] if given.ndim == 0 else given for given in (pair.data, pair.neighbour)]
        runs = rows.shape[1]
        state = sfc64_state(rng) if coupled else np.zeros(5, np.uint64)
        try:
            both = rows.reshape(2 * runs, -1)
            length = self._fill(rng, state, coupled, *inputs, self._values, both, position, np.empty(self._scratch))
        except Exception as error:
            at = int(position[0])
            if at == NOT_STARTED:  # no run had begun: it was the compiler that raised
                if isinstance(error, OSError) and self._keep:  # the cache is full, or was removed: do without
                    self._keep = False
                    self._load()
                    return self.fill_pair(pair, rng, rows, start, coupled=coupled)
                if self._redirected:
                    self._redirected = None
                    self._load()
                    return self.fill_pair(pair, rng, rows, start, coupled=coupled)
                raise Refused(str(error) or type(error).__name__) from error
            side = pair.data if at < runs else pair.neighbour
            raise raised(self.name, error, start + at % runs, side) from error
        return self.check_length(length, start)


def sfc64_state(rng: np.random.Generator) -> NDArray[np.uint64]:
    """The living state of an SFC64 generator as five words: four, of which the last counts draws, and a 32-bit rest."""
    bits = rng.bit_generator
    if not isinstance(bits, np.random.SFC64):
        raise TypeError(f"coupled runs need an SFC64 generator, not {type(bits).__name__}")
    memory = (ctypes.c_uint64 * 5).from_address(bits.ctypes.state_address)
    return np.ctypeslib.as_array(memory)


def raised(name: str, error: Exception, run: int, data: Data) -> MechanismRaised:
    """The error for a mechanism that raised, with the run's number and the input."""
    text = str(error).splitlines()[0] if str(error) else "no message"
    shown = np.array2string(np.asarray(data), threshold=12, separator=", ")
    return MechanismRaised(f"{name} raised {type(error).__name__} ({text}) on run {run}, on the input {shown}")
