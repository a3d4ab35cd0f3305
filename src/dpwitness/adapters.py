"""The callables that are no plain compilable functions, and the choice between all kinds."""

import hashlib
import numbers
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpwitness.errors import InvalidOutcome, SlowMechanism
from dpwitness.mechanism import CompiledMechanism, Mechanism, Refused, Rows, Signature, raised
from dpwitness.neighbours import Data

Outcome = Callable[[Any], Any]


def as_mechanism(
    function: Callable[..., Any] | Mechanism,
    data: Data,
    *,
    parameters: Mapping[str, Any] | None = None,
    epsilon: float | None = None,
    outcome: Outcome | None = None,
) -> Mechanism:
    """Whatever the user has, as a `Mechanism`; compiled where numba can, tried out on one run of `data`.

    Warns `SlowMechanism` where numba refuses a plain function. Raises `InvalidParameter`, `MechanismRaised` and
    `InvalidOutcome`.
    """
    if isinstance(function, Mechanism):
        return function
    signature = Signature.of(function, parameters or {}, epsilon)
    trial = np.random.default_rng(0)
    rows = np.empty((1, 8))
    if signature.size is not None:
        vectorised = VectorisedMechanism(signature, outcome)
        vectorised.fill(data, trial, rows, 0)
        return vectorised
    if outcome is None:
        try:
            compiled = CompiledMechanism(signature)
            compiled.fill(data, trial, rows, 0)
            return compiled
        except Refused as error:
            reason = _reason(error)
    else:
        reason = None
    plain = PythonMechanism(signature, outcome)
    started = time.perf_counter()
    plain.fill(data, trial, np.empty((16, 8)), 0)
    cost = (time.perf_counter() - started) / 16
    if reason is not None:
        warnings.warn(
            f"{signature.name} runs as plain Python, {cost * 1e6:.0f} µs a run; numba cannot compile it: {reason}; "
            "to make it fast use loops, numbers, NumPy arrays and dpwitness.noise",
            SlowMechanism,
            stacklevel=2,
        )
    return plain


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
        value = output if self._outcome is None else self._outcome(output)
        several = isinstance(value, tuple | list) or (isinstance(value, np.ndarray) and value.ndim > 0)
        shape = "a sequence" if several else "one value"
        if value is not None and self._shape not in (None, shape):
            raise InvalidOutcome(
                f"{self.name} returned {shape} ({output!r}) on run {run}, but {self._shape} before: "
                "always return the same kind of output"
            )
        if value is not None:
            self._shape = shape
        entries = _flat(value) if several else [value]
        row[:] = np.nan
        for j, entry in enumerate(entries):
            number = self._number(entry, j, output, run)
            if j < len(row):
                row[j] = number
        return 0 if value is None else len(entries)

    def _number(self, entry: Any, j: int, output: Any, run: int) -> float:
        if entry is None:
            return np.nan
        if isinstance(entry, str):
            kind, number = "text", _code(entry)
            self._labels[number] = entry
        elif isinstance(entry, bool | np.bool_ | numbers.Real):
            kind, number = "a number", float(entry)
        else:
            raise InvalidOutcome(
                f"{self.name} returned {output!r} on run {run}: return a number, a flag, text or a list of such, "
                "or pass outcome= to turn outputs into numbers"
            )
        before = self._kinds.setdefault(j, kind)
        if before != kind:
            raise InvalidOutcome(
                f"{self.name} returned {output!r} on run {run}: value {j + 1} is {kind}, but was {before} before; "
                "always return the same kind of output"
            )
        return number


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
            values = output.reshape(n, -1)
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
    """The entries of a sequence, nested ones in order."""
    entries: list[Any] = []
    for item in value.tolist() if isinstance(value, np.ndarray) else value:
        if isinstance(item, tuple | list | np.ndarray):
            entries.extend(_flat(item))
        else:
            entries.append(item)
    return entries


def _code(text: str) -> float:
    """A whole number below 2^53 for a text: the same in every process, so that counts can be merged."""
    return float(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()[:6]))
