"""Work on its way to another process of ours: written there, and done there.

A function goes with everything that it reaches in files of the user's, since another process may not find these; what
is installed goes by name. Nothing of this is ever read from a file or a connection that is not our own.
"""

import hashlib
import io
import os
import pickle
import random
import sys
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import MechanismError
from dpwitness.mechanisms.mechanism import Learned, Mechanism
from dpwitness.neighbours import Pair
from dpwitness.neighbours.inputs import read_only
from dpwitness.runs.streams import Role, generator

#: Runs on each input by which two processes are compared, and about how many seconds they may take.
COMPARED: Final = 32
COMPARED_SECONDS: Final = 0.25
#: Packages that every process has.
OURS: Final = frozenset({"dpwitness", "_dpwitness_pytest"})


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
class Answer:
    """What a process says to some parts of a piece of work.

    Attributes
    ----------
    results
        Those of the parts in order, up to the first that raised.
    error
        What that raised, written by `dumped`.
    learned
        What the mechanism learned of its outputs while it did these parts.
    seconds
        How long the parts took.
    worker
        A name of the process.
    first_runs
        A digest of the first runs that the mechanism made there: see `first_runs`.
    refused
        Why the process cannot do such work at all; None where it can.
    """

    results: Sequence[Any] | NDArray[Any]
    error: bytes | None = None
    learned: Learned | None = None
    seconds: float = 0.0
    worker: str = ""
    first_runs: str = ""
    refused: str | None = None


def dumped(value: Any, *, by_name: Mechanism | None = None) -> bytes:
    """Write a value for another process.

    `by_name`: a mechanism that the reader has already. Raises `CannotSend` for what cannot be written.
    """
    import cloudpickle  # type: ignore[import-untyped]  # it has no types

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
        def persistent_id(self, found: Any) -> str | None:
            return "mechanism" if by_name is not None and found is by_name else None

        def reducer_override(self, found: Any) -> Any:
            if type(found) is np.ndarray and not found.flags.writeable:
                return read_only, (found.copy(order="K"),)  # what a mechanism must not write to stays so
            if type(found) is random.SystemRandom:  # it has no state: another one is as good
                return random.SystemRandom, ()
            return super().reducer_override(found)

    def written() -> bytes:
        out = io.BytesIO()
        Pickler(out, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
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
        def persistent_load(self, name: str) -> Any:
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
    standard = {Path(found).resolve() for found in (sysconfig.get_paths()["stdlib"], os.path.dirname(os.__file__))}
    return any(place.resolve().is_relative_to(folder) for folder in standard)


def parcel(content: bytes) -> Parcel:
    """Return bytes as a parcel."""
    return Parcel(digest=hashlib.blake2b(content, digest_size=16).hexdigest(), content=content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A mechanism for another process, and what it is tried on there first."""

    mechanism: Mechanism
    pair: Pair
    runs: int
    seed: int

    def first_runs(self) -> str:
        """Run the mechanism a few times and return a digest of the outcomes, or of the error.

        From the same seed every process must get the same if the mechanism draws from the generator that it is given;
        and no two processes may get the same if it draws its own randomness: they would repeat each other's.
        """
        rng = generator(self.seed, Role.HEALTH_PROCESSES)
        try:
            with self.mechanism.laid_out(None):  # whatever it has seen before
                rows = self.mechanism.pair_outcomes(self.pair, rng, self.runs, coupled=False)
        except MechanismError as error:
            return f"{type(error).__name__}: {error}"
        width = int(np.flatnonzero(np.append(True, ~np.isnan(rows).all(axis=(0, 1))))[-1])
        return hashlib.blake2b(np.ascontiguousarray(rows[:, :, :width]).tobytes(), digest_size=16).hexdigest()


def sent(mechanism: Mechanism, pair: Pair, seed: int) -> Sent:
    """What is sent of a mechanism: it is tried on as many runs as fit in a part of a second, at least one."""
    runs = COMPARED_SECONDS / max(2 * mechanism.cost.seconds_per_run, 1e-9)
    return Sent(mechanism=mechanism, pair=pair, runs=int(min(max(runs, 1), COMPARED)), seed=seed)
