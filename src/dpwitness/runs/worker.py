"""Work for another process of ours: how it is sent there, and what that process does with it.

A function is sent with everything that it uses from the user's own files, since another process may not find these;
installed packages are sent by name. Pickled data is only ever read from our own files and connections.
"""

import hashlib
import io
import math
import os
import pickle
import random
import sys
import sysconfig
import threading
import time
import traceback
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import class_and_text
from dpwitness.errors import MechanismError, MechanismRaised
from dpwitness.mechanisms.columns import OutputTraits
from dpwitness.mechanisms.mechanism import Mechanism, PairedRuns
from dpwitness.neighbours import Pair
from dpwitness.neighbours.inputs import read_only
from dpwitness.runs.shards import ShardedRuns
from dpwitness.runs.streams import Role, generator

T = TypeVar("T")

#: Packages that every process has.
OURS: Final = frozenset({"dpwitness", "_dpwitness_command", "_dpwitness_pytest", "_dpwitness_session"})


class CannotSend(Exception):
    """Something cannot be written for another process; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """Bytes for another process, by their digest; those of large ones may lie in a file."""

    digest: str
    content: bytes | None
    path: str | None = None

    def read(self) -> bytes:
        """Return the bytes."""
        return Path(self.path).read_bytes() if self.content is None and self.path is not None else self.content or b""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRuns:
    """The digest of the first runs of a mechanism in a process, or their error; and in how many orders they can stand.

    `orders`: the logarithm of that number, equal outcomes not told apart; 0 where all are equal. Independent runs of
    another process that return the same outcomes return them in the same order with probability exp(−orders).
    """

    digest: str
    orders: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a process says to some shards of a piece of work.

    Attributes
    ----------
    results
        Those of the shards in order, up to the first that raised.
    error
        What that raised, written by `dumped`.
    traits
        What the mechanism's outputs showed while it did these shards.
    copies
        Whether the mechanism has changed its input there, so that each run gets a copy.
    seconds
        How long the shards took.
    worker
        A name of the process.
    first_runs
        The first runs that the mechanism made there.
    refused
        Why the process cannot do such work at all; None where it can.
    task
        The name of the portion that it answers: an executor may mix answers up, or give one twice.
    """

    results: Sequence[Any] | NDArray[Any]
    error: bytes | None = None
    traits: OutputTraits | None = None
    copies: bool = False
    seconds: float = 0.0
    worker: str = ""
    first_runs: FirstRuns = FirstRuns(digest="")
    refused: str | None = None
    task: str = ""


def dumped(content: object, *, by_name: Mechanism | None = None) -> bytes:
    """Write something for another process.

    `by_name`: a mechanism that the reader has already. Raises `CannotSend` for what cannot be written.
    """
    import cloudpickle  # type: ignore[import-untyped]  # it has no types

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
        def persistent_id(self, value: object) -> str | None:
            return "mechanism" if by_name is not None and value is by_name else None

        def reducer_override(self, value: object) -> object:
            if type(value) is np.ndarray and not value.flags.writeable:
                return read_only, (value.copy(order="K"),)  # what a mechanism must not write to stays so
            if type(value) is random.SystemRandom:  # it has no state: another one is as good
                return random.SystemRandom, ()
            return super().reducer_override(value)

    def written() -> bytes:
        out = io.BytesIO()
        Pickler(out, protocol=pickle.HIGHEST_PROTOCOL).dump(content)
        return out.getvalue()

    try:
        with _users_own_by_value():
            return written()
    except Exception as first:  # whatever an object of the user's raises when it is written
        try:
            return written()  # a module of the user's that holds what cannot be written may be found there by name
        except Exception:
            raise CannotSend(f"{type(first).__name__}: {first}".splitlines()[0]) from first


def loaded(content: bytes, mechanism: Mechanism | None = None) -> Any:
    """Read what `dumped` wrote; `mechanism` stands where one was written by name. Raises what its making raises."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, name: str) -> object:
            return mechanism

    return Unpickler(io.BytesIO(content)).load()


_REGISTERING = threading.Lock()


@contextmanager
def _users_own_by_value() -> Iterator[None]:
    """Let functions and classes of the user's own files be written with all that they reach, not by name."""
    import cloudpickle

    with _REGISTERING:
        before = cloudpickle.list_registry_pickle_by_value()
        own = [module for name, module in list(sys.modules.items()) if name not in before and _is_users(name, module)]
        for module in own:
            cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            for module in own:
                with suppress(ValueError):  # what was written may have taken it out
                    cloudpickle.unregister_pickle_by_value(module)


def _is_users(name: str, module: ModuleType | None) -> bool:
    """Whether a module is of a file that is not installed."""
    if not isinstance(module, ModuleType) or module.__name__ != name or name == "__main__":
        return False
    file = vars(module).get("__file__")
    return isinstance(file, str) and name.partition(".")[0] not in OURS and not _is_installed(file)


@cache
def _is_installed(file: str) -> bool:
    place = Path(file)
    if {"site-packages", "dist-packages"} & set(place.parts):
        return True
    # Where an interpreter is reached through links, its modules and `sysconfig` may name one folder by different paths.
    standard = {Path(folder).resolve() for folder in (sysconfig.get_paths()["stdlib"], os.path.dirname(os.__file__))}
    return any(place.resolve().is_relative_to(folder) for folder in standard)


def parcel(content: bytes) -> Parcel:
    """Return bytes as a parcel."""
    return Parcel(digest=hashlib.blake2b(content, digest_size=16).hexdigest(), content=content)


#: Runs on each input by which two processes are compared, and about how many seconds they may take.
COMPARED: Final = 32
COMPARED_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMechanism:
    """A mechanism for another process, and what it is tried on there first."""

    mechanism: Mechanism
    pair: Pair
    runs: int
    seed: int
    sender: str  # the name of the process that wrote it

    @classmethod
    def of(cls, mechanism: Mechanism, pair: Pair, seed: int) -> "SentMechanism":
        """With as many runs as fit in a part of a second, at least one."""
        runs = COMPARED_SECONDS / max(2 * mechanism.cost.seconds_per_run, 1e-9)
        runs = int(min(max(runs, 1), COMPARED))
        return cls(mechanism=mechanism, pair=pair, runs=runs, seed=seed, sender=_process.name)

    def first_runs(self) -> FirstRuns:
        """Run the mechanism a few times.

        From the same seed every process must get the same if the mechanism draws from the generator that it is given;
        and no two processes may get the same if it draws its own randomness: they would repeat each other's.
        """
        rng = generator(self.seed, Role.HEALTH_PROCESSES)
        try:
            # Without a layout, whatever it has seen before.
            rows = self.mechanism.pair_outcomes(PairedRuns.d_first(self.pair, self.runs, coupled=False), rng)
        except MechanismError as error:
            return FirstRuns(digest=class_and_text(error))
        width = int(np.flatnonzero(np.append(True, ~np.isnan(rows).all(axis=(0, 1))))[-1])
        rows = np.ascontiguousarray(rows[:, :, :width])
        digest = hashlib.blake2b(rows.tobytes(), digest_size=16).hexdigest()
        counts = [Counter(row.tobytes() for row in side).values() for side in rows]
        orders = sum(math.lgamma(self.runs + 1) - sum(math.lgamma(n + 1) for n in side) for side in counts)
        return FirstRuns(digest=digest, orders=orders)


#: Mechanisms, and pieces of work, that a process keeps ready.
READY: Final = 8
#: Seconds that a process which has read a mechanism leaves to others.
PRELOAD_SECONDS: Final = 0.02


@dataclass(slots=True)
class _Ready:
    """A mechanism that this process has, its first runs, and one lock for all who run it."""

    mechanism: Mechanism
    first_runs: FirstRuns
    lock: threading.RLock


@dataclass(slots=True)
class _Process:
    """A process: its name, the names of those that it was forked from, and what it has ready."""

    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    forked_from: tuple[str, ...] = ()
    mechanisms: "OrderedDict[str, _Ready]" = field(default_factory=OrderedDict)
    work: "OrderedDict[str, ShardedRuns[object]]" = field(default_factory=OrderedDict)
    loading: threading.RLock = field(default_factory=threading.RLock)


_process = _Process()


def _forked() -> None:
    """Begin anew in a fork: it is another process, whose locks nobody gives back and whose mechanisms ran elsewhere."""
    global _process, _REGISTERING
    _process = _Process(forked_from=(*_process.forked_from, _process.name))
    _REGISTERING = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def preload(mechanism: Parcel) -> str:
    """Import what a mechanism needs, and return the name of this process. Raises what that raises."""
    with _process.loading:
        loaded(mechanism.read())
    time.sleep(PRELOAD_SECONDS)  # so that a process which has just been started gets the next one to read
    return _process.name


def execute(mechanism: Parcel, work: Parcel, first: int, end: int, task: str) -> Answer:
    """Do the shards from `first` to before `end` of a piece of work, in a process that need not have it yet."""
    return replace(_executed(mechanism, work, first, end), task=task)


def _executed(mechanism: Parcel, work: Parcel, first: int, end: int) -> Answer:
    try:
        with _process.loading:
            ready = _cached(_process.mechanisms, mechanism.digest, lambda: _started(mechanism))
            shards: ShardedRuns[Any] = _cached(
                _process.work, f"{mechanism.digest} {work.digest}", lambda: loaded(work.read(), ready.mechanism)
            )
    except CannotSend as error:
        return Answer(results=[], worker=_process.name, refused=str(error))
    except Exception as error:  # an import that fails, another version of a library: whatever keeps it from running
        return Answer(results=[], worker=_process.name, refused=class_and_text(error))
    if ready.mechanism.threads:
        return _done(ready, shards, first, end)
    with ready.lock:  # its own state, if it has any, may not be safe under threads
        return _done(ready, shards, first, end)


def _cached(cache: "OrderedDict[str, T]", key: str, make: Callable[[], T]) -> T:
    """What a cache of the last few holds under a key, made where it is not there."""
    if key not in cache:
        cache[key] = make()
        if len(cache) > READY:
            cache.popitem(last=False)
    cache.move_to_end(key)
    return cache[key]


def _started(parcel: Parcel) -> _Ready:
    package: SentMechanism = loaded(parcel.read())
    if package.sender in _process.forked_from and not package.mechanism.reproducible:
        raise CannotSend(
            "a fork repeats the noise of the process that it comes from: give processes that are started anew, "
            'mp_context=multiprocessing.get_context("spawn")'
        )
    if package.sender != _process.name:  # threads of one process leave its global generators as they are
        # A file that seeds them when it is imported would have every process draw the same.
        random.seed()
        np.random.seed()  # noqa: NPY002  # the user's functions draw from it
    return _Ready(package.mechanism, package.first_runs(), threading.RLock())


def _done(ready: _Ready, work: ShardedRuns[object], first: int, end: int) -> Answer:
    results: list[Any] = []
    error = None
    ready.mechanism.forget()
    started = time.perf_counter()
    try:
        for shard in range(first, end):
            results.append(work(shard))  # noqa: PERF401  # what was done before an error counts
    except BaseException as raised:  # handed to the caller, who raises it where it would have been raised there
        error = _dumped_error(raised)
    arrays = results and all(isinstance(result, np.ndarray) for result in results)
    return Answer(
        results=np.stack(results) if arrays else results,  # counts travel as 32 bytes an event and shard
        error=error,
        traits=ready.mechanism.traits,
        copies=ready.mechanism.copies,
        seconds=time.perf_counter() - started,
        worker=_process.name,
        first_runs=ready.first_runs,
    )


def _dumped_error(error: BaseException) -> bytes:
    """An error, with its traceback as a note; one that cannot be written becomes one of ours."""
    error.add_note("in another process:\n" + "".join(traceback.format_exception(error)).rstrip())
    try:
        content = dumped(error)
        loaded(content)
    except Exception:
        return dumped(MechanismRaised(class_and_text(error)))
    return content
