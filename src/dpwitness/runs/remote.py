"""Work on other processes: what may go there, in which portions, and what is believed of what comes back.

The counts are those of one thread of this process, bit for bit: parts are seeded, results are taken in their order, and
a mechanism that could give other outcomes elsewhere stays here, with a note that says why.
"""

import math
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, TypeVar

from dpwitness.clock import Deadline
from dpwitness.errors import MechanismCrashed, MixedKinds
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.runs.executor import Threads, Work
from dpwitness.runs.paying import Paying
from dpwitness.runs.portions import Died, Place, Portion, Sending
from dpwitness.runs.sending import Answer, CannotSend, dumped, loaded, parcel, sent

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
