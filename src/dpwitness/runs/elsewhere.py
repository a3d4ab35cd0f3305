"""Runs in other processes: which mechanisms are sent, how they are written, and which answers are accepted.

Counts are the same as from one thread of this process: shards are seeded, results are taken in the order of shards, and
a mechanism that may have other outcomes in another process stays in this one, with a note that says why. A function is
sent with all that it uses from the user's files, which another process may not find; installed packages are sent by
name. Pickled data is read only from this package's own files and connections.
"""

import hashlib
import io
import math
import os
import pickle
import random
import sys
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import takewhile
from types import ModuleType
from typing import Any, Final, TypeVar

import numpy as np

from dpwitness.checks import class_and_text, first_line
from dpwitness.errors import ClusterLost, DPWitnessError, MechanismCrashed, MechanismError, MechanismRaised
from dpwitness.machine import Deadline
from dpwitness.mechanisms.columns import Columns, OutputTraits
from dpwitness.mechanisms.mechanism import Mechanism, PairedRuns
from dpwitness.mechanisms.memory import is_installed
from dpwitness.neighbours import Pair
from dpwitness.runs.executors import Pool, Threads, WorkerLost, ordered
from dpwitness.runs.shards import ShardedRuns
from dpwitness.runs.streams import Role, generator

T = TypeVar("T")

#: The time in seconds that processes take to start; processes are started after runs here have taken as long.
START_SECONDS: Final = 1.0
#: The time in seconds that runs must take, at least, so that sending them to running processes saves time.
SENDING_SECONDS: Final = 0.03
#: The number of workers lost in a row that ends runs with a seed; after fewer losses, which a lack of memory may cause,
#: the runs are made again.
WORKER_LOSSES: Final = 3
#: The packages of dpwitness, which every process has, so that they are sent by name.
INSTALLED_PACKAGES: Final = frozenset({"dpwitness", "_dpwitness_pytest", "_dpwitness_session"})


class CannotSend(Exception):
    """An object cannot be pickled for another process; the message says why."""


def dumped(content: object) -> bytes:
    """An object pickled for another process. Raises `CannotSend`."""
    import cloudpickle  # type: ignore[import-untyped]  # it has no types

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
        def reducer_override(self, value: object) -> object:
            if type(value) is random.SystemRandom:  # it has no state
                return random.SystemRandom, ()
            return super().reducer_override(value)

    def written() -> bytes:
        out = io.BytesIO()
        Pickler(out, protocol=pickle.HIGHEST_PROTOCOL).dump(content)
        return out.getvalue()

    try:
        with _pickle_users_code():
            return written()
    except Exception as first:  # an object of the user may raise any exception when it is pickled
        try:
            return written()  # by name, if a user's module holds an object that cannot be pickled
        except Exception:
            raise CannotSend(f"{type(first).__name__}: {first}".splitlines()[0]) from first


#: A lock for cloudpickle's registry of modules, which all threads share.
_REGISTRY_LOCK: Final = threading.Lock()


@contextmanager
def _pickle_users_code() -> Iterator[None]:
    """Pickle functions and classes of the user's files with everything that they reach, and not by name."""
    import cloudpickle

    with _REGISTRY_LOCK:
        before = cloudpickle.list_registry_pickle_by_value()
        own = [module for name, module in list(sys.modules.items()) if name not in before and _is_users(name, module)]
        for module in own:
            cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            for module in own:
                with suppress(ValueError):  # an object may have removed it when it was pickled
                    cloudpickle.unregister_pickle_by_value(module)


def _is_users(name: str, module: ModuleType | None) -> bool:
    """Whether a module is a file of the user other than `__main__`, whose objects cloudpickle never pickles by name."""
    if not isinstance(module, ModuleType) or module.__name__ != name or name == "__main__":
        return False
    file = vars(module).get("__file__")
    return isinstance(file, str) and name.partition(".")[0] not in INSTALLED_PACKAGES and not is_installed(file)


#: A random word, drawn when this module is imported, that a process and its forks have in common.
_PROCESS_WORD: Final = uuid.uuid4().hex


def process_name() -> str:
    """The name of this process: its random word, which its forks share, and its id."""
    return f"{_PROCESS_WORD} {os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRuns:
    """The digest of the outcomes of a mechanism's first runs in a process, or the runs' error.

    `orders`: the logarithm of the number of different orders of these outcomes; 0 if all outcomes are equal. If
    independent runs of another process have the same outcomes, they have the same order with probability exp(−orders).
    """

    digest: str
    orders: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMechanism:
    """A mechanism for another process, with the pair, the number and the seed of its first runs there."""

    mechanism: Mechanism
    pair: Pair
    runs: int
    seed: int
    sender: str  # the name of the process that sends it

    @classmethod
    def of(cls, mechanism: Mechanism, pair: Pair, seed: int) -> "SentMechanism":
        """A mechanism to send with as many first runs as take 0.25 s, from 1 to 32."""
        runs = int(min(max(0.25 / max(2 * mechanism.cost.seconds_per_run, 1e-9), 1), 32))
        return cls(mechanism=mechanism, pair=pair, runs=runs, seed=seed, sender=process_name())

    def first_runs(self) -> FirstRuns:
        """Make the first runs, and return their digest or error.

        A mechanism that draws from its generator must have the same outcomes in every process. A mechanism that draws
        its own randomness must have different ones: two processes would repeat each other's noise.
        """
        rng = generator(self.seed, Role.HEALTH_PROCESSES)
        # Without columns, so that earlier runs in this process do not count.
        runs = PairedRuns.d_first(self.pair, self.runs, coupled=False, columns=Columns())
        traits, width = self.mechanism.traits, self.mechanism.width
        self.mechanism.forget()
        try:
            rows = self.mechanism.pair_outcomes(runs, rng)
        except MechanismError as error:
            return FirstRuns(digest=class_and_text(error))
        finally:
            self.mechanism.traits, self.mechanism.width = traits, width
        present = int(np.flatnonzero(np.append(True, ~np.isnan(rows).all(axis=(0, 1))))[-1])
        rows = np.ascontiguousarray(rows[:, :, :present])
        digest = hashlib.blake2b(rows.tobytes(), digest_size=16).hexdigest()
        counts = [Counter(row.tobytes() for row in side).values() for side in rows]
        orders = sum(math.lgamma(self.runs + 1) - sum(math.lgamma(n + 1) for n in side) for side in counts)
        return FirstRuns(digest=digest, orders=orders)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardAnswer:
    """The answer of a process to a task: the result of a shard."""

    shard: int
    worker: str  # the name of the process
    refused: str | None = None  # the reason why the process cannot run the mechanism
    first_runs: FirstRuns = FirstRuns(digest="")  # the mechanism's first runs in the process
    result: Any = None
    error: bytes | None = None  # the pickled error that the shard raised
    traits: OutputTraits | None = None  # the traits of outcomes in this shard
    copies: bool = False  # whether a run has changed its input, so that each run gets a copy


#: A lock for loading mechanisms, one thread at a time.
_LOADING_LOCK: Final = threading.RLock()


def execute(mechanism: bytes, work: bytes, shard: int) -> ShardAnswer:
    """Make a shard of published work in this process, which loads the work if need be, and return the answer."""
    try:
        with _LOADING_LOCK:
            sent, first_runs, lock = _load_mechanism(mechanism, os.getpid())
            ready = _load_work(sent, work)
    except Exception as error:  # such as a failed import, or another version of a library
        why = str(error) if isinstance(error, CannotSend) else class_and_text(error)
        return ShardAnswer(shard=shard, worker=process_name(), refused=why)
    result = raised = None
    with nullcontext() if sent.threads else lock:  # the mechanism may keep a state that is not safe under threads
        sent.forget()
        try:
            result = ready(shard)
        except BaseException as error:  # the caller raises it
            raised = _dumped_error(error)
        return ShardAnswer(
            shard=shard, worker=process_name(), first_runs=first_runs, result=result, error=raised,
            traits=sent.traits, copies=sent.copies,
        )  # fmt: skip


@lru_cache(4)
def _load_mechanism(content: bytes, process: int) -> tuple[Mechanism, FirstRuns, Any]:
    """A sent mechanism, its first runs here, and a lock for its runs; `process`: this process's id, not a fork's id."""
    package: SentMechanism = pickle.loads(content)
    if package.sender != process_name():  # in the sending process the global generators stay as they are
        if package.sender.partition(" ")[0] == _PROCESS_WORD and not package.mechanism.reproducible:
            raise CannotSend(
                "a fork repeats the noise of the process that it comes from: give processes that are started anew, "
                'mp_context=multiprocessing.get_context("spawn")'
            )
        # A file that seeds the global generators when it is imported would make every process draw the same.
        random.seed()
        np.random.seed()  # noqa: NPY002  # the user's functions draw from it
    return package.mechanism, package.first_runs(), threading.RLock()


@lru_cache(4)
def _load_work(mechanism: Mechanism, content: bytes) -> ShardedRuns[Any]:
    work: ShardedRuns[Any] = pickle.loads(content)
    return replace(work, mechanism=mechanism)


def _dumped_error(error: BaseException) -> bytes:
    """A pickled error with its traceback as a note; an error that cannot be pickled becomes `MechanismRaised`."""
    import cloudpickle

    error.add_note("in another process:\n" + "".join(traceback.format_exception(error)).rstrip())
    try:
        content: bytes = cloudpickle.dumps(error)
        pickle.loads(content)
    except Exception:
        return pickle.dumps(MechanismRaised(class_and_text(error)))
    return content


class Dispatcher:
    """A dispatcher of one mechanism's work: to a pool if that saves time, else to `Threads` of this process.

    `seed`: the seed of the first runs, by which other processes are compared with this one; `threads`: the number of
    threads in this process.
    """

    def __init__(self, mechanism: Mechanism, pool: Pool, *, seed: int, threads: int = 1) -> None:
        self.workers = pool.workers
        self._mechanism = mechanism
        self._pool = pool
        self._seed = seed
        self._threads = threads
        self._running = threading.Lock()  # for runs here, if threads cannot share the mechanism
        self._lock = threading.RLock()
        self._seconds_here = 0.0
        self._sent: tuple[FirstRuns, Any] | None = None  # the mechanism's first runs here, and its published bytes
        self._first_runs: dict[str, FirstRuns] = {}  # by name of the process
        self._note = ""  # the reason why all further runs stay in this process

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people: the reason why runs stayed in this process."""
        return (self._note,) if self._note else ()

    @property
    def away(self) -> bool:
        """Whether runs are made in other processes now."""
        return not self._note and (self._pool.eager or self._seconds_here >= START_SECONDS)

    @property
    def answered(self) -> int:
        """The number of processes that have answered."""
        return len(self._first_runs)

    def map(self, work: ShardedRuns[T], deadline: Deadline | None = None) -> Iterator[T | None]:
        """Yield the results of all shards in order; the last result is None if the deadline passes first."""
        first = 0
        # A run that has begun here ends here, so that no outcome decides whether it counts.
        here = takewhile(lambda shard: not self._saves_time(work, work.count - shard), range(work.count))
        for result in self._do_here(work, here, deadline):
            yield result
            if result is None:
                return
            first += 1
        if first < work.count and not (deadline is not None and deadline.closed):
            yield from self._do_there(work, first, deadline)

    def _saves_time(self, work: ShardedRuns[Any], shards: int) -> bool:
        """Whether sending the last `shards` shards of the work saves time."""
        # Runs are made here while processes start, which may take all of the time on a busy machine.
        return self.away and (self._pool.eager or (shards * work.seconds >= SENDING_SECONDS and self._pool.ready))

    def _do_here(self, work: ShardedRuns[T], shards: Iterable[int], deadline: Deadline | None) -> Iterator[T | None]:
        lock, threads = self._running, Threads(self._threads if self._mechanism.threads else 1)

        def done(shard: int) -> T:
            if work.mechanism.threads:
                return work(shard)
            with lock:
                started = time.perf_counter()
                result = work(shard)
                self._seconds_here += time.perf_counter() - started
                return result

        for result in threads.ordered((partial(done, shard) for shard in shards), deadline):
            if result is None:
                self._running = threading.Lock()  # a run that hangs never releases the old lock
            yield result

    def _do_there(self, work: ShardedRuns[T], first: int, deadline: Deadline | None) -> Iterator[T | None]:
        """The results of shards from `first` on, made in other processes, or here if these cannot run the mechanism."""
        content = self._publish_work(work, deadline)
        if content is not None:
            with closing(self._answers(work, content, first, deadline)) as answers:
                for answer in answers:
                    if answer is None:
                        yield None
                        return
                    if not self._accept(answer):
                        break
                    yield self._result(answer)
                    first += 1
                else:
                    return
        yield from self._do_here(work, range(first, work.count), deadline)

    def _keep_here(self, reason: str) -> None:
        """Keep all further work in this process, and note the reason."""
        where = "all cores of this machine" if self._mechanism.threads else "one core"
        with self._lock:
            self._note = self._note or f"{self._mechanism.name} ran on {where} alone: {reason}"

    def _publish_work(self, work: ShardedRuns[Any], deadline: Deadline | None) -> Any:
        """The published work, with its mechanism published before; None if it stays here, or the deadline passes."""
        try:
            with self._lock:
                if self._sent is None and not self._note:
                    self._publish_mechanism(work, deadline)
                if self._note or self._sent is None:
                    return None
            return self._pool.publish(dumped(replace(work, mechanism=None)))  # type: ignore[arg-type]  # until `_load_work`
        except CannotSend as error:
            self._keep_here(f"it cannot be sent to another process ({error})")
            return None

    def _publish_mechanism(self, work: ShardedRuns[Any], deadline: Deadline | None) -> None:
        """Publish the mechanism, unless a run changes it, or the deadline passes in its first runs here."""
        mechanism = self._mechanism
        package = SentMechanism.of(mechanism, work.pair, self._seed)
        state = (mechanism.signature, mechanism.outcome)
        before, lock = dumped(state), self._running

        def made_alone() -> FirstRuns:
            with lock:
                return package.first_runs()

        first_runs = next(Threads().ordered([made_alone], deadline), None)  # None if the deadline has passed
        if first_runs is None:
            return
        if dumped(state) == before:
            self._sent = first_runs, self._pool.publish(dumped(package))
        else:
            self._keep_here("it changes while it runs, so that it would not be the same in each process")

    def _answers(
        self, work: ShardedRuns[Any], content: Any, first: int, deadline: Deadline | None
    ) -> Generator[ShardAnswer | None, None, None]:
        """The answers to tasks of published work; None at the deadline.

        Raises `MechanismCrashed` if the mechanism ended its processes, and `ClusterLost` if no process can be reached.
        Evidence that no seed repeats is not made again: its outcomes may have ended the process.
        """
        assert self._sent is not None
        once = work.role.evidence and not self._mechanism.reproducible
        tasks = (partial(execute, self._sent[1], content, shard) for shard in range(first, work.count))
        try:
            with closing(ordered(self._pool, tasks, deadline, again=0 if once else WORKER_LOSSES)) as answers:
                for answer in answers:
                    if answer is not None and once and self._pool.repeated(content):
                        raise self._crash_error(work, answer.shard, "another process made its runs again")
                    yield answer
        except WorkerLost as lost:
            if isinstance(lost.__cause__, CancelledError):
                raise ClusterLost("the executor cancelled work that was on its way") from lost
            task: Any = lost.task
            raise self._crash_error(work, task.args[-1], first_line(lost.__cause__ or lost)) from lost.__cause__
        except DPWitnessError:
            raise
        except Exception as error:  # errors of runs are in answers
            raise self._pool.failure(error) from error

    def _crash_error(self, work: ShardedRuns[Any], shard: int, how: str) -> MechanismCrashed:
        runs = f"{shard * work.size} to {min((shard + 1) * work.size, work.runs) - 1}"
        seeded = self._mechanism.reproducible or not work.role.evidence
        often = f"{WORKER_LOSSES} times, in or beside runs" if seeded else "in or beside runs that no seed repeats,"
        here = "workers=1" + " without executor= or cluster=" * self._pool.eager
        return MechanismCrashed(
            f"{self._mechanism.name} ended the process that ran it ({how}), {often} {runs}: repair it, or give {here} "
            "to see how it ends"
        )

    def _accept(self, answer: ShardAnswer) -> bool:
        """Whether a process runs the mechanism as this process does; if not, the mechanism stays here from now on."""
        with self._lock:
            if self._note or self._sent is None:
                return False
            if answer.refused is not None:
                self._keep_here(f"it cannot be run in another process ({answer.refused})")
                return False
            if answer.worker in self._first_runs:
                return True
            known = set(self._first_runs.values())
            self._first_runs[answer.worker] = answer.first_runs
            first = answer.first_runs
            if self._mechanism.reproducible and first.digest != self._sent[0].digest:
                self._keep_here(
                    "in another process it returned something else from the same random numbers, so it keeps "
                    "something between runs, or the process is not like this one"
                )
            elif not self._mechanism.reproducible and first in known:
                # Varying outcomes are equal by chance with a probability below 10⁻⁹.
                why = "so they" if first.orders > 9 * math.log(10) else "which hardly vary, so that they may"
                self._keep_here(f"two processes had equal outcomes in first runs, {why} draw the same noise")
            return not self._note

    def _result(self, answer: ShardAnswer) -> Any:
        """The result of an answer. Raises the error that the shard raised."""
        mechanism = self._mechanism
        with self._lock:
            if answer.traits is not None:
                mechanism.traits.adopt(answer.traits)
            mechanism.copies |= answer.copies  # from now on each run gets a copy of its input
        if answer.error is not None:
            raise pickle.loads(answer.error)
        return answer.result
