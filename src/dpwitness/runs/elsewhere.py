"""Portions of work on their way to other processes, and what such processes have to answer.

Whether it pays to make runs in other processes: starting these, and sending, take time too.

Work on other processes: what may go there, in which portions, and what is believed of what comes back.

The counts are those of one thread of this process, bit for bit: parts are seeded, results are taken in their order, and
a mechanism that could give other outcomes elsewhere stays here, with a note that says why.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from dpwitness.errors import MechanismCrashed, MixedKinds
from dpwitness.machine import Deadline
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.runs.executor import Threads, Work
from dpwitness.runs.worker import Answer, CannotSend, Parcel, dumped, loaded, parcel, sent

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


#: Seconds of runs made here before processes are started, which takes about as long; and seconds of runs ahead from
#: which on starting them pays.
START: Final = 1.0
PAYS: Final = 4.0
#: The same once they run: below, sending costs more than it saves.
PAYS_STARTED: Final = 0.03


@dataclass(slots=True, kw_only=True)
class Paying:
    """What is known of the time that runs of a mechanism take, in seconds.

    `here`: of the runs made in this process; `expected`: what `here` comes to at least if all runs are made here, as
    far as anybody said.
    """

    here: float = 0.0
    expected: float = 0.0

    def expect(self, seconds: float) -> None:
        """So many seconds of runs will come at least, in whatever pieces."""
        self.expected = self.here + seconds

    def to_send(self, parts: int, seconds: float) -> bool:
        """Whether to send parts of work to processes that run, which take so many seconds together."""
        return parts > 1 and seconds >= PAYS_STARTED

    def to_start(self, parts: int, seconds: float, part_seconds: float) -> bool:
        """Whether to start processes for parts of work that take so many seconds together, and one of them so many."""
        if self.expected - self.here >= PAYS:
            return True
        # In many small pieces: a few times what was done here may still come.
        ahead = seconds + 3 * self.here if parts > 1 else seconds
        return ahead >= PAYS and (self.here >= START or part_seconds >= START / 4)


T = TypeVar("T")

#: How often a portion may end the process that does it.
TRIES: Final = 3


class Remote:
    """An executor that sends work on one mechanism to other processes where that pays, and does it here else."""

    def __init__(self, mechanism: Mechanism, place: Place, *, seed: int, threads: int = 1) -> None:
        self.workers = place.workers
        self._mechanism = mechanism
        self._place = place
        self._seed = seed
        self._here = Threads(threads if mechanism.threads else 1)
        self._running = threading.Lock()  # a mechanism that threads cannot share runs here once at a time
        self._lock = threading.RLock()
        self._paying = Paying()
        self._parcel: tuple[str, Any] | None = None  # the digest of the mechanism's first runs, and its parcel
        self._first_runs: dict[str, str] = {}  # of every process
        self._notes: list[str] = []
        self._refused = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What to tell people of where the runs were made."""
        return tuple(self._notes)

    @property
    def away(self) -> bool:
        """Whether runs are made in other processes now."""
        return not self._refused and (self._place.eager or self._parcel is not None)

    def map(self, work: Work[T], count: int, deadline: Deadline | None = None) -> Iterator[T | None]:
        """Yield the results in order; see `Executor`."""
        first = 0
        while not self._pays(work, count - first, deadline):
            for result in self._do_here(work, first, count, deadline):
                yield result
                if result is None:
                    return
                first += 1
                if first < count and self._pays(work, count - first, deadline):
                    break
            if first >= count:
                return
        yield from self._do_there(work, first, count, deadline)

    def expect(self, seconds: float) -> None:
        """So many seconds of runs will come at least, in whatever pieces: where that is long, start at once."""
        self._paying.expect(seconds)

    def note(self, text: str) -> None:
        """Keep a note for people, once."""
        with self._lock:
            if text not in self._notes:
                self._notes.append(text)

    def _pays(self, work: Work[Any], parts: int, deadline: Deadline | None) -> bool:
        """Whether to send what is left to do."""
        if self._refused:
            return False
        if self._place.eager:
            return True
        seconds = min(parts * work.seconds, math.inf if deadline is None else deadline.left)
        if self._place.started and self._parcel is not None:
            pays = self._paying.to_send(parts, seconds)
        else:
            pays = self._paying.to_start(parts, seconds, work.seconds)
        return pays and self._ready(work, deadline)

    def _ready(self, work: Work[Any], deadline: Deadline | None) -> bool:
        """Whether the processes can begin at once; until they can, runs go on here, and starting costs no time."""
        with self._lock:
            mechanism = self._sent(work, deadline)
        return mechanism is not None and self._place.ready(mechanism)

    def _do_here(self, work: Work[Any], first: int, count: int, deadline: Deadline | None) -> Iterator[Any]:
        """Parts in this process, from `first` on; counts the seconds."""
        lock = self._running

        def done(part: int) -> Any:
            if work.mechanism.threads:
                return work(part)
            with lock:
                started = time.perf_counter()
                result = work(part)
                self._paying.here += time.perf_counter() - started
                return result

        for result in self._here.ordered((partial(done, part) for part in range(first, count)), deadline):
            if result is None:
                self._running = threading.Lock()  # a run that hangs keeps the old one for ever
            yield result

    def _stay(self, reason: str) -> None:
        self._refused = True
        where = "all cores of this machine" if self._mechanism.threads else "one core"
        self.note(f"{self._mechanism.name} ran on {where} alone: {reason}")

    def _written(self, work: Work[Any], deadline: Deadline | None) -> tuple[Any, Any] | None:
        """The mechanism and the work as the place takes them; None where they stay here."""
        with self._lock:
            mechanism = self._sent(work, deadline)
            try:
                written = None if mechanism is None else parcel(dumped(work, by_name=self._mechanism))
                return None if written is None else (mechanism, self._place.publish(written))
            except CannotSend as error:
                self._stay(f"it cannot be sent to another process ({error})")
                return None

    def _sent(self, work: Work[Any], deadline: Deadline | None) -> Any:
        """The mechanism as the place takes it; None where it stays here."""
        if self._parcel is None and not self._refused:
            try:
                self._parcel = self._prepared(work, deadline)
            except CannotSend as error:
                self._stay(f"it cannot be sent to another process ({error})")
        return None if self._refused or self._parcel is None else self._parcel[1]

    def _prepared(self, work: Work[Any], deadline: Deadline | None) -> tuple[str, Any] | None:
        """Write the mechanism, and see whether running changes it; None where it does."""
        mechanism = self._mechanism
        package = sent(mechanism, work.pair, self._seed)
        state = (mechanism.signature, mechanism.outcome)
        before = dumped(state)
        first_runs = next(self._here.ordered([package.first_runs], deadline))
        if first_runs is None:
            return None  # it is late, or hangs
        if dumped(state) != before:
            self._stay("it changes while it runs, so that it would not be the same in each process")
            return None
        self._place.start(deadline)
        return first_runs, self._place.publish(parcel(dumped(package)))

    def _believed(self, answer: Answer) -> bool:
        """Whether a process runs the mechanism as this one does; else it stays here from now on."""
        with self._lock:
            if self._refused or self._parcel is None:
                return False
            if answer.refused is not None:
                self._stay(f"it cannot be run in another process ({answer.refused})")
                return False
            if answer.worker in self._first_runs:
                return True
            known = set(self._first_runs.values())
            self._first_runs[answer.worker] = answer.first_runs
            if self._mechanism.reproducible and answer.first_runs != self._parcel[0]:
                self._stay(
                    "in another process it returned something else from the same random numbers, so it keeps "
                    "something between runs, or the process is not like this one"
                )
            elif not self._mechanism.reproducible and answer.first_runs in known:
                self._stay("two processes returned the same in their first runs, as if they drew the same noise")
            return not self._refused

    def _do_there(self, work: Work[Any], first: int, count: int, deadline: Deadline | None) -> Iterator[Any]:
        """Parts in other processes; those that nobody there can do, here."""
        written = self._written(work, deadline)
        if written is None:
            yield from self._do_here(work, first, count, deadline)
            return
        sending = Sending(self._place, written, first, count, self._portion(work, count - first))
        over = False
        try:
            while (portion := sending.next()) is not None:
                answer = self._waited(work, sending, portion, deadline)
                if answer is None:
                    over = True
                    yield None
                    return
                if not self._believed(answer):
                    sending.drop()
                    yield from self._do_here(work, portion.first, count, deadline)
                    return
                for result in self._results(work, portion, answer, deadline):
                    yield result
                    if result is None:
                        over = True
                        return
                sending.done(answer.seconds, self._place.task_seconds)
        except KeyboardInterrupt:
            over = True
            raise
        finally:
            sending.drop(at_once=over)

    def _portion(self, work: Work[Any], parts: int) -> int:
        """Parts of the first portions: shares of what there is to do, and no longer than a fourth of the usual."""
        fits = self._place.task_seconds / 4 / max(work.seconds, 1e-9)
        return int(max(min(fits, -(-parts // self._place.workers)), 1))

    def _waited(self, work: Work[Any], sending: Sending, portion: Portion, deadline: Deadline | None) -> Answer | None:
        """The answer of the portion that is next; None at the deadline. Raises `MechanismCrashed`."""
        while True:
            try:
                answer = sending.answer(portion, None if deadline is None else deadline.left)
            except Died as error:
                if portion.tries >= TRIES:
                    runs = f"{portion.first * work.size} to {min(portion.end * work.size, work.runs) - 1}"
                    raise MechanismCrashed(
                        f"{self._mechanism.name} ended the process that ran it ({error}), {TRIES} times, in the runs "
                        f"{runs}: mend it, or give workers=1 to see how it ends"
                    ) from error
                if deadline is not None and deadline.left <= 0:
                    return None
                sending.again(portion)
                continue
            if answer is not None or (deadline is not None and deadline.left <= 0):
                return answer

    def _results(self, work: Work[Any], portion: Portion, answer: Answer, deadline: Deadline | None) -> Iterator[Any]:
        """What a process found, as if it had been found here, None at the deadline; raises what was raised there."""
        mechanism = self._mechanism
        with self._lock:
            learned = answer.learned
            agrees = learned is None or mechanism.learned().agrees(learned)
            if learned is not None and agrees:
                mechanism.learn(learned)
        if not agrees:  # here it raises in the run that does not go with those before
            for result in self._do_here(work, portion.first, portion.end, deadline):
                yield result
                if result is None:
                    return
            first = portion.first * work.size
            raise MixedKinds(f"{mechanism.name} returned another kind of output in a run from {first} on than before")
        yield from answer.results
        if answer.error is not None:
            raise loaded(answer.error)
