"""A function that runs as plain Python, and what it returns as rows of numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpwitness.errors import InvalidOutcome
from dpwitness.events.encoding import entries, nested
from dpwitness.mechanisms.mechanism import Learned, Mechanism, Rows, raised
from dpwitness.mechanisms.signature import Outcome, Signature
from dpwitness.neighbours import Data, as_array, copier


class PythonMechanism(Mechanism):
    """A function that runs as plain Python, one run a call.

    Attributes
    ----------
    lists_as_arrays
        Whether it gets lists of numbers as arrays: it cannot do with lists.
    writes
        Whether it writes to its input, so that even large arrays are copied for each run.
    """

    shard = 32
    threads = False  # its own state, if it has any, may not be safe under threads

    def __init__(self, signature: Signature, outcome: Outcome | None = None) -> None:
        super().__init__(signature)
        self._outcome = outcome
        self.lists_as_arrays = False
        self.writes = False
        self._shape: str | None = None
        self._kinds: dict[int, str] = {}
        self._labels: dict[float, str] = {}

    @property
    def outcome(self) -> Outcome | None:
        """What turns an output into numbers, where the user gave it."""
        return self._outcome

    def label(self, value: float) -> str | None:
        """Return the text that an outcome's entry stands for."""
        return self._labels.get(value)

    def handing(self, data: Data) -> Callable[[], Data]:
        """Return what hands out an input as the function gets it."""
        array = as_array(data) if self.lists_as_arrays else None
        return copier(data if array is None else array, writeable=self.writes)

    def learned(self) -> Learned:
        """Return what its outputs showed so far."""
        return Learned(shape=self._shape, kinds=dict(self._kinds), labels=dict(self._labels))

    def learn(self, other: Learned) -> None:
        """Take over what it returned in another process."""
        if self.learned().agrees(other):
            self._shape = self._shape or other.shape
            self._kinds.update(other.kinds)
            self._labels.update(other.labels)

    def forget(self) -> None:
        """Begin anew with what `learned` returns."""
        self._shape, self._kinds, self._labels = None, {}, {}

    def fill(self, data: Data, rng: np.random.Generator, rows: Rows, start: int) -> int:
        """Run once a row; as in `Mechanism`."""
        given = self.handing(data)
        longest = 0
        for i in range(len(rows)):
            try:
                output = self.signature.function(**self.signature.bind(given(), rng))
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
        for j, entry in enumerate(flat(value) if several else [value]):
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


def flat(value: Any) -> list[Any]:
    """The entries of a sequence in order; a nested sequence is a value for its length and its entries."""
    found: list[Any] = []
    for item in value.tolist() if isinstance(value, np.ndarray) else value:
        if isinstance(item, tuple | list | np.ndarray):
            found += [nested(len(item)), *flat(item)]
        else:
            found.append(item)
    return found
