"""The callables that are no plain compilable functions, and the choice between all kinds."""

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpwitness.errors import CompiledDiffers, InvalidOutcome, InvalidParameter, SlowMechanism
from dpwitness.events.encoding import array_rows, entries, nested
from dpwitness.mechanisms.carried import is_measurement
from dpwitness.mechanisms.compiled.compare import first_difference
from dpwitness.mechanisms.mechanism import CompiledMechanism, Mechanism, Refused, Rows, Signature, raised
from dpwitness.neighbours import Data, Pair

Outcome = Callable[[Any], Any]


def as_mechanism(
    function: Callable[..., Any] | Mechanism,
    data: Data,
    *,
    parameters: Mapping[str, Any] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    outcome: Outcome | None = None,
    neighbour: Data | None = None,
    interpreted: bool = False,
) -> Mechanism:
    """Whatever the user has, as a `Mechanism`; compiled where numba can, tried out on one run of `data`.

    Compiled code is used only if it gives the outcomes that plain Python gives from the same seeds, on both inputs
    where `neighbour` is given; `interpreted` uses plain Python in any case. Warns `SlowMechanism` where numba refuses a
    plain function, `CompiledDiffers` where it makes something else of it. Raises `InvalidParameter`, `MechanismRaised`
    and `InvalidOutcome`.
    """
    if isinstance(function, Mechanism):
        return function
    compilable = inspect.isfunction(getattr(function, "py_func", function))
    called = function if compilable else _called(function)
    signature = Signature.of(called, parameters or {}, epsilon, delta)
    pair = Pair(data, data if neighbour is None else neighbour)
    if signature.size is not None:
        vectorised = VectorisedMechanism(signature, outcome)
        vectorised.measure(pair)
        return vectorised
    reason = None
    if outcome is None and compilable and not interpreted:
        try:
            compiled = CompiledMechanism(signature)
            compiled.fill(data, np.random.default_rng(0), np.empty((1, 8)), 0)
        except Refused as error:
            reason = _reason(error)
        else:
            compiled.plain = PythonMechanism(signature.interpreted())
            difference = first_difference(compiled, compiled.plain, pair)
            if difference is None:
                compiled.measure(pair)
                return compiled
            if signature.generator is None:
                difference = (
                    f"{signature.name} runs as plain Python: it draws its own randomness, so what numba makes of it "
                    "cannot be compared with it; let it take an rng to have it compiled"
                )
            warnings.warn(difference, CompiledDiffers, stacklevel=2)
            interpreted = True
    if interpreted and compilable:
        signature = signature.interpreted()
    plain = PythonMechanism(signature, outcome)
    plain.measure(pair)
    if reason is not None:
        warnings.warn(
            f"{signature.name} runs as plain Python, {plain.cost.seconds_per_run * 1e6:.0f} µs a run; numba cannot compile it: {reason}; "
            "to make it fast use loops, numbers, NumPy arrays and dpwitness.noise",
            SlowMechanism,
            stacklevel=2,
        )
    return plain


def _called(thing: Any) -> Callable[..., Any]:
    """The function behind what is none: an OpenDP measurement, an object with `.randomise(x)` or `.add_noise(x)`.

    Bound methods, partial functions and other callable objects stay what they are. Raises `InvalidParameter`.
    """
    name = type(thing).__name__
    if is_measurement(thing):

        def function(value: Any) -> Any:
            return thing(_carried(value, str(thing.input_carrier_type)))

    elif (method := getattr(thing, "randomise", None) or getattr(thing, "add_noise", None)) is not None:

        def function(value: Any) -> Any:
            return method(value.item() if isinstance(value, np.ndarray) and value.size == 1 else value)

    elif not callable(thing):
        raise InvalidParameter(
            f"{thing!r:.80} is not callable: give a function, an object with .randomise(x) or an OpenDP measurement"
        )
    elif inspect.isbuiltin(thing) or type(thing).__name__ == "method-wrapper":  # of an extension: it has no signature

        def function(value: Any) -> Any:
            return thing(value)

        name = getattr(thing, "__name__", name)
    else:
        return thing  # type: ignore[no-any-return]  # callable() narrows Any to nothing better
    function.__name__, function.__qualname__, function.__module__ = name, name, type(thing).__module__
    return function


def _carried(value: Any, carrier: str) -> Any:
    """An input as OpenDP wants it: by its carrier type, such as f64, i32, bool or Vec<f64>."""
    entry = carrier.removeprefix("Vec<").removesuffix(">")
    kind: Callable[[Any], Any]
    if entry in ("f32", "f64"):
        kind = float
    elif entry == "bool":
        kind = bool
    elif entry[:1] in ("i", "u") and (entry[1:].isdigit() or entry[1:] == "size"):
        kind = int
    else:
        raise InvalidParameter(
            f"the measurement takes {carrier}, which cannot be made from numbers: wrap it in a function that makes it"
        )
    if carrier.startswith("Vec<"):
        return [kind(entry) for entry in np.atleast_1d(value).tolist()]
    if np.size(value) != 1:
        raise InvalidParameter(f"the measurement takes one value ({carrier}), not {np.size(value)}: use queries(1)")
    return kind(np.asarray(value).item())


def _reason(error: Exception) -> str:
    """The one line of numba's message that says why."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [
        line
        for line in lines
        if line
        and not line.startswith(("Failed in", "During", "File ", "raised from", "There are", "- Of which", ">>>", "^"))
    ]
    line = telling[0] if telling else type(error).__name__
    if line.startswith("No implementation of function") and "place" in line:
        return "it returns something else than numbers and flags"
    return line if len(line) <= 160 else f"{line[:157]}…"


class PythonMechanism(Mechanism):
    """A function that runs as plain Python, one run a call."""

    shard = 32
    threads = False  # its own state, if it has any, may not be safe under threads

    def __init__(self, signature: Signature, outcome: Outcome | None = None) -> None:
        super().__init__(signature)
        self._outcome = outcome
        self._shape: str | None = None
        self._kinds: dict[int, str] = {}
        self._labels: dict[float, str] = {}

    @property
    def outcome(self) -> Outcome | None:
        """What turns an output into numbers, where the user gave it."""
        return self._outcome

    def label(self, value: float) -> str | None:
        """As in `Mechanism`."""
        return self._labels.get(value)

    def fill(self, data: Data, rng: np.random.Generator, rows: Rows, start: int) -> int:
        """As in `Mechanism`."""
        given = data.item() if data.ndim == 0 else data
        longest = 0
        for i in range(len(rows)):
            try:
                output = self.signature.function(**self.signature.bind(given, rng))
            except Exception as error:
                raise raised(self.name, error, start + i, data) from error
            longest = max(longest, self._write(output, rows[i], start + i))
        return self.check_length(longest, start)

    def _write(self, output: Any, row: Rows, run: int) -> int:
        """One output as a row of numbers."""
        value = output if self._outcome is None else self._summarised(output, run)
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        several = isinstance(value, tuple | list) or (isinstance(value, np.ndarray) and value.ndim > 0)
        shape = "a sequence" if several else "one value"
        if value is not None and self._shape not in (None, shape):
            raise InvalidOutcome(
                f"{self.name} returned {shape} ({output!r}) on run {run}, but {self._shape} before: "
                "always return the same kind of output"
            )
        if value is not None:
            self._shape = shape
        encoded: list[float] = []
        for j, entry in enumerate(_flat(value) if several else [value]):
            encoded += self._entries(entry, j, output, run)
        length = min(len(encoded), len(row))
        row[:length] = encoded[:length]
        row[length:] = np.nan
        return len(encoded)

    def _summarised(self, output: Any, run: int) -> Any:
        """What the user's `outcome` makes of an output. Raises `InvalidOutcome` where that raises."""
        assert self._outcome is not None
        try:
            return self._outcome(output)
        except Exception as error:
            raise InvalidOutcome(
                f"outcome= raised {type(error).__name__} ({error}) for {output!r:.80}, which {self.name} returned on "
                f"run {run}: return a number, a flag, text or a list of such for every output"
            ) from error

    def _entries(self, entry: Any, j: int, output: Any, run: int) -> list[float]:
        try:
            encoded = entries(entry)
        except TypeError as error:
            raise InvalidOutcome(
                f"{self.name} returned {output!r} on run {run}: return a number, a flag, text or a list of such, "
                "or pass outcome= to turn outputs into numbers"
            ) from error
        if entry is not None:
            kind = "text" if isinstance(entry, str) else "a number"
            if kind == "text":
                self._labels[encoded[0]] = entry
            before = self._kinds.setdefault(j, kind)
            if before != kind:
                raise InvalidOutcome(
                    f"{self.name} returned {output!r} on run {run}: value {j + 1} is {kind}, but was {before} before; "
                    "always return the same kind of output"
                )
        return encoded


class VectorisedMechanism(PythonMechanism):
    """A function that makes many runs a call: it takes their number and returns them along axis 0."""

    shard = 16_384

    def fill(self, data: Data, rng: np.random.Generator, rows: Rows, start: int) -> int:
        """As in `Mechanism`."""
        n = len(rows)
        given = data.item() if data.ndim == 0 else data
        try:
            output = self.signature.function(**self.signature.bind(given, rng, n))
        except Exception as error:
            raise raised(self.name, error, start, data) from error
        if self._outcome is None and isinstance(output, np.ndarray) and output.dtype.kind in "biuf":
            if output.ndim not in (1, 2) or len(output) != n:
                raise InvalidOutcome(
                    f"{self.name} returned an array of shape {output.shape} for {n} runs from {start} on: "
                    "return one row for each run"
                )
            values = array_rows(output.reshape(n, -1))
            if values is not None:
                width = min(values.shape[1], rows.shape[1])
                rows[:, :width] = values[:, :width]
                rows[:, width:] = np.nan
                return self.check_length(values.shape[1], start)
        if not hasattr(output, "__len__") or len(output) != n:
            raise InvalidOutcome(
                f"{self.name} returned {output!r:.80} for {n} runs from {start} on: return one for each"
            )
        return self.check_length(max(self._write(output[i], rows[i], start + i) for i in range(n)), start)


def _flat(value: Any) -> list[Any]:
    """The entries of a sequence in order; a nested sequence is a value for its length and its entries."""
    found: list[Any] = []
    for item in value.tolist() if isinstance(value, np.ndarray) else value:
        if isinstance(item, tuple | list | np.ndarray):
            found += [nested(len(item)), *_flat(item)]
        else:
            found.append(item)
    return found
