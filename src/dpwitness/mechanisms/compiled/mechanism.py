"""Plain functions as machine code."""

import inspect
import math
import threading
from functools import partial
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from dpwitness.arrays import Rows
from dpwitness.checks import is_failure
from dpwitness.errors import CompiledDisagrees, MechanismRaised
from dpwitness.machine import Overdue, compiled_within
from dpwitness.mechanisms.compiled.driver import Refused, load_driver, reason
from dpwitness.mechanisms.draws import sfc64_state
from dpwitness.mechanisms.failures import describe_both_inputs, raised_error
from dpwitness.mechanisms.mechanism import Mechanism, PairedRuns
from dpwitness.mechanisms.outcomes import flat_names
from dpwitness.mechanisms.signature import Signature, own_copy
from dpwitness.neighbours import Data, Pair, as_array

#: The driver's position before the first run has begun.
INITIAL_POSITION: Final = np.int64(2**62)
#: A lock for runs of plain Python, which are not safe under threads, after an error of machine code.
_PYTHON_LOCK: Final = threading.Lock()


class CompiledMechanism(Mechanism):
    """A plain function as machine code; several threads may run it.

    `nested`: whether outcomes are sequences but not plain lists.
    """

    shard = 16_384
    threads = True
    compiled = True
    by_position = True

    def __init__(self, signature: Signature) -> None:
        super().__init__(signature)
        own = list(signature.parameters)
        names = {signature.data: "given", **{key: f"parameters[{own.index(key)}]" for key in own}}
        if signature.generator is not None:
            names[signature.generator] = "generator"
        self._values = tuple(
            _list_as_array(name, value) if isinstance(value, list) else value
            for name, value in signature.parameters.items()
        )
        self._arguments = [names[key] for key in signature.order]
        self.nested = False
        self._fill = load_driver(signature.function, self._arguments)

    def __getstate__(self) -> dict[str, object]:
        # Without machine code and plain Python: another process compiles for itself.
        return {name: value for name, value in vars(self).items() if name not in ("_fill", "plain")}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._fill = load_driver(self.signature.function, self._arguments)

    @property
    @override
    def places(self) -> dict[int, str]:
        return flat_names(self.width) if self.nested else {}

    @override
    def outcomes(self, data: Data, rng: np.random.Generator, n: int, *, start: int = 0, least: int = 1) -> Rows:
        """The rows of n runs, as `Mechanism.outcomes` gives them. Compiled code makes 2n runs, so n should be small."""
        runs = PairedRuns(pair=Pair(data, data), order=np.zeros(n, np.uint8), coupled=False, start=start)
        longest, both = self.pair_rows(runs, rng, max(self.width, least))
        self.width = max(self.width, longest)
        rows: Rows = both[0]
        return rows

    @override
    def pair_rows(self, runs: PairedRuns, rng: np.random.Generator, width: int) -> tuple[int, Rows]:
        state = rng.bit_generator.state
        while (longest := self.fill_pair(runs, rng, rows := np.empty((2, len(runs), max(width, 1))))) > rows.shape[-1]:
            rng.bit_generator.state, width = state, longest  # too narrow rows are filled again
        return longest, rows

    def compile_for(self, pair: Pair, seconds: float = math.inf) -> None:
        """Run the mechanism once on both inputs, so that numba compiles it.

        Raises `Refused`, also if compiling takes more than `seconds`, and as `Mechanism.outcomes` does.
        """
        plain = getattr(self.signature.function, "py_func", self.signature.function)
        if plain.__code__.co_flags & inspect.CO_VARKEYWORDS:  # numba would fail with a bare AssertionError
            raise Refused("it takes parameters of any name, as **parameters")
        first = PairedRuns.d_first(pair, 1, coupled=False)
        run = partial(self._filled, first, np.random.Generator(np.random.SFC64(0)), np.empty((2, 1, 8)))
        try:
            compiled_within(seconds, run)
        except Overdue:
            raise Refused(f"compiling takes more than {seconds:g} s, a share of max_time") from None

    def fill_pair(self, runs: PairedRuns, rng: np.random.Generator, rows: Rows) -> int:
        """Fill rows[0] with runs on D and rows[1] with runs on D′; return the length of the longest outcome.

        A longer outcome than the rows, of shape (2, runs, width), is cut off, and the rest of a row becomes NaN. Raises
        as `Mechanism.outcomes` does, `TypeError` unless `rng` is SFC64, and `CompiledDisagrees` for inputs that machine
        code does not take, unlike the inputs of `compile_for`.
        """
        try:
            return self._filled(runs, rng, rows)
        except Refused as error:
            raise CompiledDisagrees(
                f"{self.name} runs as plain Python: machine code does not take all inputs: {reason(str(error))}"
            ) from error

    def _filled(self, runs: PairedRuns, rng: np.random.Generator, rows: Rows) -> int:
        position = np.array([INITIAL_POSITION])  # the row of the present run: n · side + run
        # Two arrays, not one block: an index out of bounds must not reach the other input.
        inputs = _arrays(runs.pair)
        n = len(runs)
        state = sfc64_state(rng)
        before = state.copy()
        try:
            both = rows.reshape(2 * n, -1)
            length = self._fill(rng, state, runs.coupled, runs.order, *inputs, self._values, both, position)
        except BaseException as error:
            if not is_failure(error):
                raise
            at = int(position[0])
            if at == INITIAL_POSITION:  # the compiler raised, since no run had begun
                raise Refused(str(error) or type(error).__name__) from error
            failure = raised_error(self.name, error, runs.start + at % n, runs.pair.sides[at // n])
            if self.plain is None:  # in `compile_for`
                raise describe_both_inputs(self, runs.pair, failure) from error
            state[:] = before
            self._raise_as_python(runs, at % n, rng, failure)
        return self.check_length(length, runs.start)

    def _raise_as_python(
        self, runs: PairedRuns, run: int, rng: np.random.Generator, failure: MechanismRaised
    ) -> NoReturn:
        """Raise Python's error in the run in which machine code raised `failure`; `rng` is at the state of run 0.

        Raises `CompiledDisagrees` if Python raises no error: in numba x / 0 raises, NumPy's numbers give inf.
        """
        assert self.plain is not None
        if run:
            self.pair_outcomes(runs.part(0, run), rng)
        state = rng.bit_generator.state
        with _PYTHON_LOCK:
            try:
                for side in (1, 0) if runs.order[run] else (0, 1):
                    if runs.coupled:
                        rng.bit_generator.state = state
                    self.plain.outcomes(runs.pair.sides[side], rng, 1, start=runs.start + run)
            except MechanismRaised as error:
                raise describe_both_inputs(self.plain, runs.pair, error) from error
        raise CompiledDisagrees(f"{self.name} runs as plain Python, which does not raise: compiled, {failure}")


def _arrays(pair: Pair) -> list[NDArray[Any] | np.generic]:
    """Both inputs as arrays of one dtype and number of axes, or as numbers. Raises `Refused` for other inputs."""
    left, right = (as_array(data) for data in pair.sides)
    if left is None or right is None or left.ndim != right.ndim:
        raise Refused("its inputs are not numeric arrays with the same number of axes")
    if left.dtype != right.dtype:
        left, right = left.astype(np.float64), right.astype(np.float64)
    return [array[()] if array.ndim == 0 else array for array in (left, right)]


def _list_as_array(name: str, value: list[object]) -> object:
    """The value of the parameter `name` as a new array. Raises `Refused` for lists of different lengths."""
    try:
        return own_copy(np.asarray(value))
    except ValueError as error:
        raise Refused(f"the parameter {name} holds lists of different lengths") from error
