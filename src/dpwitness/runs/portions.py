"""Portions of work on their way to other processes, and what such processes have to answer."""

from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

from dpwitness.clock import Deadline
from dpwitness.runs.sending import Answer, Parcel

Handle = Any  # what a place gives for a portion of work, until its answer is there


class Died(Exception):
    """A process ended while it worked; nothing is known of what was on its way."""


class Place(Protocol):
    """Processes that do portions of work.

    Attributes
    ----------
    workers
        How many portions are done at the same time.
    task_seconds
        How long a portion should take: so long that handing it over costs little.
    eager
        Whether they run anyway, so that everything goes there.
    """

    workers: int
    task_seconds: float
    eager: bool

    @property
    def started(self) -> bool:
        """Whether they run."""

    def start(self, deadline: Deadline | None) -> None:
        """Start them, if they do not run yet."""

    def ready(self, mechanism: Any) -> bool:
        """Whether they have read a mechanism, given as `submit` takes it. The first call has them do so, none waits."""

    def publish(self, content: Parcel) -> Any:
        """Make a parcel available to all of them; return what `submit` takes for it."""

    def submit(self, mechanism: Any, work: Any, first: int, end: int) -> Handle:
        """Have a portion done: the parts from `first` to before `end`. Raises `Died` where that is not possible."""

    def answer(self, handle: Handle, timeout: float | None) -> Answer | None:
        """Wait for an answer at most so many seconds; None if there is none yet.

        Raises `Died` where a process ended, `ClusterLost` where all of them are out of reach.
        """

    def drop(self, handles: list[Handle], *, at_once: bool) -> None:
        """Nobody waits for these any more. `at_once`: what runs may never end, and must not stand in the way."""

    def retract(self, published: Any) -> None:
        """A parcel that was published is not needed any more."""


@dataclass(slots=True)
class Portion:
    """Parts that are done together, where they are waited for, and how often a process ended over them."""

    first: int
    end: int
    handle: Handle = None
    tries: int = 0


class Sending:
    """Portions of one piece of work on their way: in order, and never more than a few, so that memory stays flat."""

    def __init__(self, place: Place, written: tuple[Any, Any], first: int, count: int, size: int) -> None:
        self._place, self._written = place, written
        self._first, self._count, self._size = first, count, size
        self._flying: deque[Portion] = deque()
        self._alone = 0  # portions that are done one at a time, after a process has ended over one of them

    def next(self) -> Portion | None:
        """The portion whose answer is waited for next; None where everything is done."""
        while not self._alone and self._first < self._count and len(self._flying) < 2 * self._place.workers:
            share = -(-(self._count - self._first) // self._place.workers)  # the last ones end at about the same time
            portion = Portion(self._first, self._first + min(self._size, share))
            self._first = portion.end
            self._submit(portion)
            self._flying.append(portion)
        if not self._flying:
            return None
        if self._flying[0].handle is None:
            self._submit(self._flying[0])
        return self._flying[0]

    def _submit(self, portion: Portion) -> None:
        portion.handle = self._place.submit(*self._written, portion.first, portion.end)

    def answer(self, portion: Portion, timeout: float | None) -> Answer | None:
        """Wait for the answer of the next portion. Raises `Died` where a process ended; then it is on its way again."""
        try:
            return self._place.answer(portion.handle, timeout)
        except Died:
            portion.tries += self._alone > 0  # it was alone on its way: it was this one
            self._alone = len(self._flying)
            for other in self._flying:
                other.handle = None
            raise

    def again(self, portion: Portion) -> None:
        """Send a portion once more."""
        self._submit(portion)

    def done(self, seconds: float, wanted: float) -> None:
        """The next portion was done in so many seconds; others shall take as long as is `wanted`, but none too long."""
        portion = self._flying.popleft()
        self._alone = max(self._alone - 1, 0)
        parts = portion.end - portion.first
        self._size = max(min(int(wanted * parts / max(seconds, 1e-9)), 2 * max(parts, self._size)), 1)

    def drop(self, *, at_once: bool = False) -> None:
        """Nobody waits for what is on its way."""
        handles = [portion.handle for portion in self._flying if portion.handle is not None]
        self._flying.clear()
        self._first = self._count
        self._place.drop(handles, at_once=at_once)
        self._place.retract(self._written[1])
