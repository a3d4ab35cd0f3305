"""The one interface over every kind of callable: a mechanism fills rows with the outcomes of its runs.

A user writes a plain function; `signature` recognises its parameters by name, and `resolve` chooses what runs it:
machine code (`compiled`), the interpreter (`python`), or the function itself, many runs a call (`vectorised`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidOutcome
from dpwitness.mechanisms.cost import Cost, measured
from dpwitness.mechanisms.handing import Handing
from dpwitness.mechanisms.outcomes.layout import Entry, RowLayout
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Data, Pair

#: A longer output is taken for a list that grows without end.
LONGEST_ROW: Final = 10_000

#: Outcomes, one a row, in the encoding of `dpwitness.events.encoding`; NaN behind the end of each.
Rows = NDArray[np.float64]

#: For each paired run, 1 where D′ runs first, else 0.
Order = NDArray[np.uint8]
#: When paired runs were made, of shape (3, runs): the process, and the numbers that the run on D and the run on D′ have
#: among all runs there.
Turns = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a mechanism's outputs have shown so far: the texts among them by their numbers, and kinds of outputs.

    `bare`: whether bare values were None; `single`: whether the only entries of sequences were. `entries`: those behind
    the layout, by their codes; `keyed`: whether outcomes have places, `positional`: whether some were several entries
    without.
    """

    labels: Mapping[float, str] = field(default_factory=dict)
    bare: frozenset[bool] = frozenset()
    single: frozenset[bool] = frozenset()
    entries: Mapping[float, Entry] = field(default_factory=dict)
    keyed: bool = False
    positional: bool = False

    def agrees(self, other: "Learned") -> bool:
        """Whether rows that do not tell a sequence of one entry from that entry alone can hold both.

        And whether none has places while another has several entries without.
        """
        mixed = (self.keyed or other.keyed) and (self.positional or other.positional)
        return not mixed and not (self.bare | other.bare) & (self.single | other.single)


class Mechanism(ABC):
    """Something that can be run on an input.

    Attributes
    ----------
    signature
        The user's function and its parameters.
    cost
        What a run costs: measured by `measure`, before that what is known of its kind.
    shard
        Paired runs with one seed of their own; it follows from the cost.
    width
        Entries of the longest outcome seen so far: how wide to make rows at first. It saves time and decides nothing.
    plain
        The same function as the interpreter runs it, where compiled outcomes must be compared with it.
    """

    shard: int
    #: Whether several threads may run it at the same time.
    threads: bool
    #: Whether it is machine code.
    compiled = False
    plain: "Mechanism | None" = None
    #: "outcome" where a run that raises is an outcome; "raise" where it ends everything.
    errors = "raise"
    #: Whether a sequence of one entry is told from that entry alone: only where a mechanism returns both.
    marked = False
    #: Whether rows stand by position whatever outcomes hold: those of compiled code, and of files without a layout.
    by_position = False
    #: Whether an outcome by position held more than single values.
    flat = False

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.cost = Cost(compiled=self.compiled, parallel=self.threads, batched=signature.size is not None)
        self.width = 0
        self.made = 0  # runs so far, in this process, where the interpreter makes them
        self.mixed: set[int] = set()  # coordinates at which samples had more than numbers
        self.handing = Handing()

    def measure(self, pair: Pair) -> None:
        """Run both inputs of a pair and set the cost, and what follows from it. Raises as `fill` does."""
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

    @property
    def outcome(self) -> Callable[[Any], Any] | None:
        """What turns an output into an outcome, where the user gave it."""
        return None

    @abstractmethod
    def fill(self, data: Data, rng: np.random.Generator, rows: Rows, start: int) -> int:
        """Run once for every row and write the outcomes.

        Parameters
        ----------
        data
            The input.
        rng
            The generator that the mechanism draws from, where it takes one.
        rows
            Of shape (runs, width); what does not fit into a row is cut off, what is behind an outcome becomes NaN.
        start
            The number of the first run, for messages.

        Returns
        -------
        int
            The length of the longest outcome, which may exceed the width.

        Raises
        ------
        MechanismRaised
            When the mechanism raises, with the run's number and the input.
        InvalidOutcome
            For an output that is no number, flag, text or sequence of such.
        """

    @abstractmethod
    def fill_pair(
        self,
        pair: Pair,
        rng: np.random.Generator,
        rows: Rows,
        start: int,
        *,
        coupled: bool,
        order: Order | None = None,
    ) -> int:
        """Fill rows[0] with runs of D and rows[1] with runs of D′, as `fill` does.

        Parameters
        ----------
        rows
            Of shape (2, runs, width).
        coupled
            Let the two sides of a run share their random draws, where the mechanism can; different runs never share
            any. The sides are independent otherwise.
        order
            Which side of each run comes first; D where it is not given. Where one call makes many runs the first entry
            decides for all.
        """

    def turns(self, order: Order) -> Turns:
        """When the last paired runs were made, in that order; of no runs where nothing is kept from run to run."""
        return np.empty((3, 0), np.int64)

    def again(self) -> AbstractContextManager[None]:
        """While the very runs that were just made are asked for once more, for wider rows.

        The caller puts the generator back into its state before them, which is enough where it repeats them.
        """
        return nullcontext()

    def outcomes(self, data: Data, rng: np.random.Generator, n: int, *, start: int = 0, least: int = 1) -> Rows:
        """Run n times and cut nothing off.

        Parameters
        ----------
        data, rng, start
            As in `fill`; rows that are too narrow for an outcome are filled once more with the same runs.
        n
            The number of runs.
        least
            Entries that the rows have at least.

        Returns
        -------
        Rows
            Of shape (n, width), as wide as the longest outcome seen so far. Raises as `fill` does.
        """
        state = rng.bit_generator.state
        rows = np.empty((n, max(self.width, least)))
        longest = self.fill(data, rng, rows, start)
        while longest > rows.shape[1]:
            rng.bit_generator.state, self.width = state, longest
            rows = np.empty((n, longest))
            with self.again():
                longest = self.fill(data, rng, rows, start)
        return rows

    def pair_outcomes(
        self, pair: Pair, rng: np.random.Generator, n: int, *, coupled: bool, order: Order | None = None
    ) -> Rows:
        """Run n times on D and n times on D′ and cut nothing off; an array of shape (2, n, width).

        Parameters and errors as in `outcomes` and `fill_pair`.
        """
        longest, rows = self.pair_rows(pair, rng, (n, self.width), 0, coupled=coupled, order=order)
        self.width = max(self.width, longest)
        return rows

    def pair_rows(
        self,
        pair: Pair,
        rng: np.random.Generator,
        size: tuple[int, int],
        start: int,
        *,
        coupled: bool,
        order: Order | None = None,
    ) -> tuple[int, Rows]:
        """As `pair_outcomes`, with the length of the longest outcome; `size`: runs, and how wide rows are at first."""
        n, width = size
        state, rows = rng.bit_generator.state, np.empty((2, n, max(width, 1)))
        longest = self.fill_pair(pair, rng, rows, start, coupled=coupled, order=order)
        while longest > rows.shape[2]:
            rng.bit_generator.state, rows = state, np.empty((2, n, longest))
            with self.again():
                longest = self.fill_pair(pair, rng, rows, start, coupled=coupled, order=order)
        return longest, rows

    def label(self, value: float) -> str | None:
        """Return the text that stands behind a number, for mechanisms that return text."""
        return None

    def learned(self) -> Learned:
        """Return what its outputs showed so far, for another process to `learn`."""
        return Learned()

    def learn(self, other: Learned) -> None:
        """Take over what it returned in another process; nothing of what does not agree with its own."""
        return

    def forget(self) -> None:
        """Begin anew with what `learned` returns."""
        return

    def release(self) -> None:  # noqa: B027  # for most there is nothing to do
        """End runs that are still going on, as one that hangs after a deadline, where the mechanism can."""

    @property
    def layout(self) -> RowLayout | None:
        """Which entries rows have at which coordinates, where outcomes have keys; what is not there stands behind."""
        return None

    def begin(self, layout: RowLayout | None, *, keyed: bool, by_position: bool) -> None:  # noqa: B027  # as above
        """Lay rows out from the first run on: as a layout says, by the places of entries, or in any case without."""

    def laid_out(self, layout: RowLayout | None) -> AbstractContextManager[None]:
        """While this thread makes runs whose rows have an earlier layout; `None`: of before there was one."""
        return nullcontext()

    def settled(self, rows: Rows, layout: RowLayout | None) -> Rows:
        """Rows of shape (2, n, any width) of this earlier layout by a new one, with what stood behind it."""
        return rows

    @property
    def places(self) -> Mapping[int, str]:
        """Names of entries by coordinate, for outputs whose entries have any, such as columns."""
        return {}

    def check_length(self, length: int, start: int) -> int:
        """Return the length of an outcome; raise `InvalidOutcome` for one that grows without end."""
        if length > LONGEST_ROW:
            raise InvalidOutcome(
                f"{self.name} returned {length} values on a run from {start} on: more than {LONGEST_ROW} are taken for "
                "a list that grows without end; return less, or pass outcome= to summarise it"
            )
        return length
