"""Work in other processes: what may be sent there, in which portions, and which results are accepted.

The counts equal those of one thread of this process, bit for bit: shards are seeded, results are taken in their order,
and a mechanism that may give other outcomes elsewhere stays here, with a note that says why. The processes stand behind
a `concurrent.futures.Executor` (`Pool`): the one interface to all of them.
"""

import math
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from dpwitness.checks import brief, first_line
from dpwitness.errors import ClusterLost, MechanismCrashed
from dpwitness.machine import Deadline
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.memory import may_hold_generator
from dpwitness.mechanisms.python import Attributes
from dpwitness.runs.shards import ShardedRuns
from dpwitness.runs.threads import Threads
from dpwitness.runs.worker import Answer, CannotSend, FirstRuns, Parcel, SentMechanism, dumped, execute, loaded, parcel

T = TypeVar("T")

#: Seconds of runs made here before processes are started, which takes about as long; and seconds of runs ahead from
#: which on starting them pays.
START: Final = 1.0
PAYS: Final = 4.0
#: The same once they run: below, sending costs more than it saves.
PAYS_STARTED: Final = 0.03
#: The logarithm of the number of orders of first runs from which two processes that return the same do not do so by
#: chance: of independent noise that has a probability of 10⁻⁹.
SAME_NOISE: Final = 9 * math.log(10)
#: How often a portion may end the process that does it.
TRIES: Final = 3


#: What `Pool.publish` makes of a parcel, and `execute` gets as a parcel again.
Published = Any


class WorkerDied(Exception):
    """A process ended while it worked; nothing is known of what was on its way."""


class Cancelled(WorkerDied):
    """The executor dropped what was on its way; no run is known to be the cause."""


class Pool:
    """The processes of an executor that the user has started and will end: of joblib's loky, Ray and others.

    They have dpwitness installed.

    Attributes
    ----------
    workers
        How many portions are done at the same time; as the executor says itself, if it does.
    task_seconds
        How long a portion should take: so long that handing it over costs little.
    eager
        Whether they run anyway, so that everything goes there.
    """

    task_seconds = 1.0
    eager = True
    #: What a future raises whose process has ended.
    gone: tuple[type[Exception], ...] = (BrokenExecutor,)

    def __init__(self, executor: Executor, workers: int) -> None:
        self._executor: Executor | None = executor
        own = getattr(executor, "_max_workers", None)
        self.workers: int = own if isinstance(own, int) and own > 0 else workers

    @property
    def started(self) -> bool:
        """Whether they run."""
        return self._executor is not None

    def start(self, deadline: Deadline | None) -> None:
        """Start them, if they do not run yet."""

    def ready(self, mechanism: Published) -> bool:
        """Whether they have read a mechanism. The first call has them do so, none waits."""
        return True

    def publish(self, content: Parcel) -> Published:
        """Make a parcel available to all of them; return what `submit` takes for it."""
        return content

    def submit(self, mechanism: Published, work: Published, first: int, end: int, task: str) -> "Future[Answer]":
        """Have a portion done: the shards from `first` to before `end`. Its answer has the name `task`."""
        return self._submit(execute, mechanism, work, first, end, task)

    def _submit(self, function: Callable[..., object], *arguments: object) -> "Future[Any]":
        assert self._executor is not None
        try:
            future = self._executor.submit(function, *arguments)
        except Exception as error:  # broken or shut down: nobody here can start it again
            raise ClusterLost(f"the executor does not take any more work ({first_line(error)})") from error
        if not isinstance(future, Future):
            raise ClusterLost(f"the executor returned {brief(future)} instead of a future of concurrent.futures")
        return future

    def repeated(self, work: Published) -> bool:
        """Whether a process ended over portions of this work and another made them again, without a `WorkerDied`."""
        return False

    def answer(self, future: "Future[Answer]", timeout: float | None) -> Answer | None:
        """Wait for an answer at most so many seconds; None if there is none yet.

        Raises `WorkerDied` where a process ended, `ClusterLost` where all of them are out of reach.
        """
        if not wait([future], timeout).done:
            return None
        try:
            answer = future.result()
        except self.gone as error:
            raise WorkerDied(first_line(error)) from error
        except CancelledError as error:
            raise Cancelled("the executor cancelled work that was on its way") from error
        except Exception as error:  # what the runs raise comes back in an answer
            raise ClusterLost(f"the executor failed ({first_line(error)})") from error
        if not isinstance(answer, Answer):
            raise ClusterLost(f"the executor returned {brief(answer)} instead of what its work returned")
        return answer

    def close(self, work: Published, futures: Sequence["Future[Answer]"], *, at_once: bool) -> None:
        """Forget these portions, the last of a published piece of work.

        `at_once`: what runs may never end, and must not stand in the way.
        """
        for future in futures:
            future.cancel()


@dataclass(slots=True)
class Portion:
    """Parts that are done together, where they are waited for, and how often a process ended over them."""

    first: int
    end: int
    future: "Future[Answer] | None" = None
    task: str = ""
    tries: int = 0


class PortionQueue:
    """Portions of one piece of work on their way: in order, and never more than a few, so that memory stays flat."""

    def __init__(self, pool: Pool, published: tuple[Published, Published], first: int, count: int, size: int) -> None:
        self._pool, self._published = pool, published
        self._first, self._count, self._size = first, count, size
        self._flying: deque[Portion] = deque()
        self._alone = 0  # portions that are done one at a time, after a process has ended over one of them

    def next(self, *, closed: bool = False) -> Portion | None:
        """The portion whose answer is waited for next; None where everything is done, or sent where it is `closed`."""
        most = 0 if closed or self._alone else 2 * self._pool.workers
        while self._first < self._count and len(self._flying) < most:
            share = -(-(self._count - self._first) // self._pool.workers)  # the last ones end at about the same time
            portion = Portion(self._first, self._first + min(self._size, share))
            self._first = portion.end
            self.submit(portion)
            self._flying.append(portion)
        if not self._flying:
            return None
        if self._flying[0].future is None:
            self.submit(self._flying[0])
        return self._flying[0]

    @property
    def repeated(self) -> bool:
        """See `Pool.repeated`."""
        return self._pool.repeated(self._published[1])

    def submit(self, portion: Portion) -> None:
        """Send a portion, perhaps once more."""
        portion.task = uuid.uuid4().hex
        portion.future = self._pool.submit(*self._published, portion.first, portion.end, portion.task)

    def answer(self, portion: Portion, timeout: float | None) -> Answer | None:
        """Wait for the answer of the next portion. Raises `WorkerDied`; then all of them are to be sent again.

        Raises `ClusterLost` for the answer of another one, which would count runs twice.
        """
        assert portion.future is not None
        try:
            answer = self._pool.answer(portion.future, timeout)
        except WorkerDied:
            portion.tries += self._alone > 0  # it was alone on its way: it was this one
            self._alone = len(self._flying)
            for other in self._flying:
                other.future = None
            raise
        if answer is not None and answer.task != portion.task:
            raise ClusterLost("the executor returned for a task what another one had returned: each is to be done once")
        return answer

    def done(self, seconds: float, wanted: float) -> None:
        """The next portion was done in so many seconds; others shall take as long as is `wanted`, but none too long."""
        portion = self._flying.popleft()
        self._alone = max(self._alone - 1, 0)
        shards = portion.end - portion.first
        self._size = max(min(int(wanted * shards / max(seconds, 1e-9)), 2 * max(shards, self._size)), 1)

    def close(self, *, at_once: bool) -> None:
        """Forget the portions that were sent."""
        futures = [portion.future for portion in self._flying if portion.future is not None]
        self._pool.close(self._published[1], futures, at_once=at_once)


@dataclass(slots=True, kw_only=True)
class BreakEven:
    """When starting processes saves time, given how many seconds the runs of a mechanism take.

    `here`: of the runs made in this process; `expected`: what `here` comes to at least if all runs are made here, as
    far as anybody said.
    """

    here: float = 0.0
    expected: float = 0.0

    def expect(self, seconds: float) -> None:
        """So many seconds of runs will come at least, in whatever pieces."""
        self.expected = self.here + seconds

    def to_start(self, shards: int, seconds: float, shard_seconds: float) -> bool:
        """Whether to start processes for shards of work that take so many seconds together, and one of them so many."""
        if self.expected - self.here >= PAYS:
            return True
        # In many small pieces: a few times what was done here may still come.
        ahead = seconds + 3 * self.here if shards > 1 else seconds
        return ahead >= PAYS and (self.here >= START or shard_seconds >= START / 4)


def _may_hold_generator(mechanism: Mechanism) -> bool:
    """Whether a mechanism may draw from a generator that each process has in the same state.

    The global generators of a process are seeded anew.
    """
    signature, outcome = mechanism.signature, mechanism.outcome
    summaries = () if isinstance(outcome, Attributes) else (outcome,)  # names alone hold nothing
    return any(map(may_hold_generator, (signature.given_function, *summaries, *signature.given.values())))


def _closed(deadline: Deadline | None) -> bool:
    return deadline is not None and deadline.closed


class Dispatcher:
    """Sends work on one mechanism to a pool of processes if that saves time, and else does it here, on `Threads`.

    `seed`: of the runs by which the processes are compared with this one; `threads`: of this process, for a mechanism
    that must stay here.
    """

    def __init__(self, mechanism: Mechanism, pool: Pool, *, seed: int, threads: int = 1) -> None:
        self.workers = pool.workers
        self._mechanism = mechanism
        self._pool = pool
        self._seed = seed
        self._threads = threads
        self._running = threading.Lock()  # a mechanism that threads cannot share runs here once at a time
        self._lock = threading.RLock()
        self._break_even = BreakEven()
        self._sent: tuple[FirstRuns, Published] | None = None  # the mechanism's first runs here, and the mechanism
        self._first_runs: dict[str, FirstRuns] = {}  # by process
        self._notes: list[str] = []
        self._refused = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What to tell people of where the runs were made."""
        return tuple(self._notes)

    @property
    def _here(self) -> Threads:
        """Where runs are made in this process; what a call takes may have been measured since."""
        return Threads.running(self._mechanism, self._threads)

    @property
    def away(self) -> bool:
        """Whether runs are made in other processes now."""
        return not self._refused and (self._pool.eager or self._sent is not None)

    @property
    def answered(self) -> int:
        """How many processes have answered."""
        return len(self._first_runs)

    def expect(self, seconds: float) -> None:
        """So many seconds of runs will come at least, in whatever pieces: where that is long, start at once."""
        self._break_even.expect(seconds)

    def map(self, work: ShardedRuns[T], deadline: Deadline | None = None) -> Iterator[T | None]:
        """Yield the results in order, as `Threads.map` does."""
        first, count = 0, work.count

        def until_it_pays(begin: int) -> Iterator[int]:
            for shard in range(begin, count):
                if shard > begin and self._pays(work, count - shard, deadline):
                    return
                yield shard

        while not self._pays(work, count - first, deadline):
            # What has begun here ends here, so that no outcome decides whether it counts.
            for result in self._do_here(work, until_it_pays(first), deadline):
                yield result
                if result is None:
                    return
                first += 1
            if first >= count or _closed(deadline):
                return
        yield from self._do_there(work, first, count, deadline)

    def _pays(self, work: ShardedRuns[object], shards: int, deadline: Deadline | None) -> bool:
        """Whether sending the rest of the work saves time."""
        if self._refused:
            return False
        if self._pool.eager:
            return True
        seconds = min(shards * work.seconds, math.inf if deadline is None else deadline.left)
        if self._pool.started and self._sent is not None:
            pays = shards > 1 and seconds >= PAYS_STARTED
        else:
            pays = self._break_even.to_start(shards, seconds, work.seconds)
        if not pays:
            return False
        # Until the processes can begin at once runs go on here, and starting costs no time.
        with self._lock:
            mechanism = self._published_mechanism(work, deadline)
        return mechanism is not None and self._pool.ready(mechanism)

    def _do_here(self, work: ShardedRuns[T], shards: Iterable[int], deadline: Deadline | None) -> Iterator[T | None]:
        """Shards in this process; counts the seconds."""
        lock = self._running

        def done(shard: int) -> T:
            if work.mechanism.threads:
                return work(shard)
            with lock:
                started = time.perf_counter()
                result = work(shard)
                self._break_even.here += time.perf_counter() - started
                return result

        for result in self._here.ordered((partial(done, shard) for shard in shards), deadline):
            if result is None:
                self._running = threading.Lock()  # a run that hangs keeps the old one for ever
            yield result

    def _do_there(self, work: ShardedRuns[T], first: int, count: int, deadline: Deadline | None) -> Iterator[T | None]:
        """Parts in other processes; those that no process there can do are done here."""
        published = self._published(work, deadline)
        if published is None:
            yield from self._do_here(work, range(first, count), deadline)
            return
        # The first portions are shares of what there is to do, and no longer than a fourth of the usual.
        fits = self._pool.task_seconds / 4 / max(work.seconds, 1e-9)
        size = int(max(min(fits, -(-(count - first) // self._pool.workers)), 1))
        queue = PortionQueue(self._pool, published, first, count, size)
        at_once, refused = False, None
        try:
            while (portion := queue.next(closed=_closed(deadline))) is not None:
                answer = self._answer(work, queue, portion, deadline)
                if answer is None:
                    at_once = True
                    yield None
                    return
                if not self._believed(answer):
                    refused = portion
                    break
                for result in self._results(work, portion, answer, deadline):
                    yield result
                    if result is None:
                        at_once = True
                        return
                queue.done(answer.seconds, self._pool.task_seconds)
        except KeyboardInterrupt:
            at_once = True
            raise
        finally:
            queue.close(at_once=at_once)
        if refused is not None:
            yield from self._do_here(work, range(refused.first, count), deadline)

    def _stay(self, reason: str) -> None:
        """Send nothing from now on, and say why, once."""
        self._refused = True
        where = "all cores of this machine" if self._mechanism.threads else "one core"
        note = f"{self._mechanism.name} ran on {where} alone: {reason}"
        with self._lock:
            if note not in self._notes:
                self._notes.append(note)

    def _published(self, work: ShardedRuns[object], deadline: Deadline | None) -> tuple[Published, Published] | None:
        """The mechanism and the work as the pool takes them; None where they stay here."""
        with self._lock:
            mechanism = self._published_mechanism(work, deadline)
            if mechanism is None:
                return None
            try:
                return mechanism, self._pool.publish(parcel(dumped(work, by_name=self._mechanism)))
            except CannotSend as error:
                self._stay(f"it cannot be sent to another process ({error})")
                return None

    def _published_mechanism(self, work: ShardedRuns[object], deadline: Deadline | None) -> Published | None:
        """The mechanism as the pool takes it; None where it stays here, or is late."""
        if self._sent is None and not self._refused:
            try:
                self._send(work, deadline)
            except CannotSend as error:
                self._stay(f"it cannot be sent to another process ({error})")
        return None if self._refused or self._sent is None else self._sent[1]

    def _send(self, work: ShardedRuns[object], deadline: Deadline | None) -> None:
        """Publish the mechanism, unless running changes it, or it does not end in time."""
        mechanism = self._mechanism
        package = SentMechanism.of(mechanism, work.pair, self._seed)
        state = (mechanism.signature, mechanism.outcome)
        before, lock = dumped(state), self._running

        def made_alone() -> FirstRuns:
            with lock:  # of shards that go on here meanwhile
                return package.first_runs()

        first_runs = next(self._here.ordered([made_alone], deadline), None)  # none where it is closed
        if first_runs is None:
            return
        if dumped(state) != before:
            self._stay("it changes while it runs, so that it would not be the same in each process")
            return
        self._pool.start(deadline)
        self._sent = first_runs, self._pool.publish(parcel(dumped(package)))

    def _believed(self, answer: Answer) -> bool:
        """Whether a process runs the mechanism as this one does; else it stays here from now on."""
        with self._lock:
            if self._refused or self._sent is None:
                return False
            if answer.refused is not None:
                self._stay(f"it cannot be run in another process ({answer.refused})")
                return False
            if answer.worker in self._first_runs:
                return True
            known = set(self._first_runs.values())
            self._first_runs[answer.worker] = answer.first_runs
            first = answer.first_runs
            if self._mechanism.reproducible and first.digest != self._sent[0].digest:
                self._stay(
                    "in another process it returned something else from the same random numbers, so it keeps "
                    "something between runs, or the process is not like this one"
                )
            elif not self._mechanism.reproducible and first in known:
                if first.orders > SAME_NOISE:
                    self._stay("two processes returned the same in their first runs, so they draw the same noise")
                elif _may_hold_generator(self._mechanism):
                    self._stay(
                        "two processes returned the same in their first runs, which hardly vary: whether they draw the "
                        "same noise is not known"
                    )
            return not self._refused

    def _answer(
        self, work: ShardedRuns[object], queue: PortionQueue, portion: Portion, deadline: Deadline | None
    ) -> Answer | None:
        """The answer of the portion that is next; None at the deadline. Raises `MechanismCrashed`.

        Where a process ends, its runs are made again, up to `TRIES` times. Those that are evidence are not where no
        seed repeats them: others would take the place of runs whose outcomes may be what ended the process.
        """
        once = work.role.evidence and not self._mechanism.reproducible
        while True:
            try:
                answer = queue.answer(portion, None if deadline is None else deadline.left)
                if once and answer is not None and queue.repeated:
                    raise WorkerDied("another one made its runs again")
            except WorkerDied as error:
                if once or portion.tries >= TRIES:
                    if isinstance(error, Cancelled):
                        raise ClusterLost(str(error)) from error
                    runs = f"{portion.first * work.size} to {min(portion.end * work.size, work.runs) - 1}"
                    often = "in or beside runs that no seed repeats," if once else f"{TRIES} times, in the runs"
                    here = "workers=1" + " without executor= or cluster=" * self._pool.eager
                    raise MechanismCrashed(
                        f"{self._mechanism.name} ended the process that ran it ({error}), {often} {runs}: repair it, "
                        f"or give {here} to see how it ends"
                    ) from error
                if deadline is not None and deadline.left <= 0:
                    return None
                queue.submit(portion)
                continue
            if answer is not None or (deadline is not None and deadline.left <= 0):
                return answer

    def _results(
        self, work: ShardedRuns[object], portion: Portion, answer: Answer, deadline: Deadline | None
    ) -> Iterator[Any]:
        """What a process found, as if it had been found here, None at the deadline; raises what was raised there."""
        mechanism = self._mechanism
        with self._lock:
            if answer.traits is not None:
                mechanism.traits.adopt(answer.traits)
            mechanism.copies |= answer.copies  # shards of later work follow from it
        yield from answer.results
        if answer.error is not None:
            raise loaded(answer.error)
