"""What a process does with work that it is sent: it keeps mechanisms and pieces of work ready, and answers."""

import random
import threading
import time
import traceback
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpwitness.errors import MechanismRaised
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.runs.executor import Work
from dpwitness.runs.sending import Answer, Parcel, Sent, dumped, loaded

#: Mechanisms, and pieces of work, that a process keeps ready.
KEPT: Final = 8
#: Seconds that a process which has read a mechanism leaves to others.
READ_SECONDS: Final = 0.02


@dataclass(slots=True)
class _Ready:
    """A mechanism that this process has, the digest of its first runs, and one lock for all who run it."""

    mechanism: Mechanism
    first_runs: str
    lock: threading.RLock


WORKER: Final = uuid.uuid4().hex
_MECHANISMS: "OrderedDict[str, _Ready]" = OrderedDict()
_WORK: "OrderedDict[str, Work[Any]]" = OrderedDict()
_LOADING = threading.RLock()


def execute(mechanism: Parcel, work: Parcel, first: int, end: int) -> Answer:
    """Do the parts from `first` to before `end` of a piece of work, in a process that need not have it yet."""
    try:
        with _LOADING:
            ready = _ready(mechanism)
            parts = _work(work, mechanism.digest, ready.mechanism)
    except Exception as error:  # an import that fails, another version of a library: whatever keeps it from running
        return Answer(results=[], worker=WORKER, refused=f"{type(error).__name__}: {error}".splitlines()[0])
    if ready.mechanism.threads:
        return _done(ready, parts, first, end)
    with ready.lock:  # its own state, if it has any, may not be safe under threads
        return _done(ready, parts, first, end)


def read(mechanism: Parcel) -> str:
    """Import what a mechanism needs, and return the name of this process. Raises what that raises."""
    with _LOADING:
        loaded(mechanism.read())
    time.sleep(READ_SECONDS)  # so that a process which has just been started gets the next one to read
    return WORKER


def _ready(parcel: Parcel) -> _Ready:
    if parcel.digest not in _MECHANISMS:
        found: Sent = loaded(parcel.read())
        # A file that seeds the global generators when it is imported would have every process draw the same.
        random.seed()
        np.random.seed()  # noqa: NPY002  # the user's functions draw from it
        _MECHANISMS[parcel.digest] = _Ready(found.mechanism, found.first_runs(), threading.RLock())
        if len(_MECHANISMS) > KEPT:
            _MECHANISMS.popitem(last=False)
    _MECHANISMS.move_to_end(parcel.digest)
    return _MECHANISMS[parcel.digest]


def _work(parcel: Parcel, of: str, mechanism: Mechanism) -> Work[Any]:
    key = f"{of} {parcel.digest}"
    if key not in _WORK:
        _WORK[key] = loaded(parcel.read(), mechanism)
        if len(_WORK) > KEPT:
            _WORK.popitem(last=False)
    _WORK.move_to_end(key)
    return _WORK[key]


def _done(ready: _Ready, work: Work[Any], first: int, end: int) -> Answer:
    results: list[Any] = []
    error = None
    ready.mechanism.forget()
    started = time.perf_counter()
    try:
        for part in range(first, end):
            results.append(work(part))  # noqa: PERF401  # what was done before an error counts
    except BaseException as raised:  # handed to the caller, who raises it where it would have been raised there
        error = _written(raised)
    arrays = results and all(isinstance(result, np.ndarray) for result in results)
    return Answer(
        results=np.stack(results) if arrays else results,  # counts travel as 32 bytes an event and shard
        error=error,
        learned=ready.mechanism.learned(),
        seconds=time.perf_counter() - started,
        worker=WORKER,
        first_runs=ready.first_runs,
    )


def _written(error: BaseException) -> bytes:
    """An error, with its traceback as a note; one that cannot be written becomes one of ours."""
    error.add_note("in another process:\n" + "".join(traceback.format_exception(error)).rstrip())
    try:
        content = dumped(error)
        loaded(content)
    except Exception:
        return dumped(MechanismRaised(f"{type(error).__name__}: {error}"))
    return content
