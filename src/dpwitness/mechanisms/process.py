"""Processes outside of this one that run a mechanism: started, asked, ended. What they write is data, never trusted."""

import copy
import os
import signal
import subprocess
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, ClassVar, Final, Generic, Self, TypeVar

from typing_extensions import override

from dpwitness.errors import MechanismTimeout
from dpwitness.mechanisms.python import Outcome, PythonMechanism
from dpwitness.mechanisms.signature import Signature

#: Bytes that are kept of what a process writes to its standard error, and lines of it that a message shows.
TAIL: Final = 4_000
LINES: Final = 3
#: Seconds that a process which closed its pipes has to end by itself.
ENDING: Final = 1.0


class Process:
    """A process with pipes to it, and a session of its own, which ends with it."""

    def __init__(self, argv: Sequence[str], folder: str | None = None) -> None:
        """Start a program, in a folder, by default the working folder. Raises `OSError`, and `ValueError`."""
        process = subprocess.Popen(
            [*argv],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us: what was counted must be kept
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process, self._input, self._output = process, process.stdin, process.stdout
        self._stderr = bytearray()
        self._threads: list[threading.Thread] = []
        self._beside(_listen, process.stderr, self._stderr)
        #: Ends it, whatever it is doing, and closes its pipes.
        self.end = weakref.finalize(self, _end, process, self._threads)

    def _beside(self, task: Callable[..., None], *arguments: object) -> None:
        """Do something in a thread until the process ends; `arguments` must not hold the process."""
        thread = threading.Thread(target=task, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    @property
    def usable(self) -> bool:
        """Whether it can be asked once more."""
        return True

    def _ending(self) -> str:
        """How the process ended, and the last lines that it wrote to its standard error."""
        closed = False
        try:
            self._process.wait(ENDING)  # its pipes are closed a moment before it has an exit code
        except subprocess.TimeoutExpired:
            closed = True
        self.end()
        code = self._process.returncode
        how = "by closing its pipes" if closed else f"with exit code {code}" if code >= 0 else f"with signal {-code}"
        return how + self._last_words()

    def _last_words(self) -> str:
        lines = bytes(self._stderr).decode(errors="replace").strip().splitlines()
        shown = " / ".join(" ".join(line.split()) for line in lines[-LINES:])
        return f" ({''.join(sign for sign in shown if sign.isprintable())})" if lines else ""


def _listen(stream: IO[bytes], tail: bytearray) -> None:
    """Keep the end of what is written."""
    while block := stream.read1(1 << 16):  # type: ignore[attr-defined]  # a buffered reader
        tail += block
        del tail[:-TAIL]


def _end(process: subprocess.Popen[bytes], threads: Sequence[threading.Thread]) -> None:
    """End a process and those that it started, and close its pipes."""
    end_group(process)
    for thread in threads:
        thread.join(1.0)
    if any(thread.is_alive() for thread in threads):
        return  # what left the session holds a pipe open: to close it here would wait for that
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            try:
                stream.close()
            except OSError:  # what was still to be written has nobody to read it
                continue


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads a session, and the processes of its group, also where it has exited before them."""
    if hasattr(os, "killpg"):  # Windows has no groups
        with suppress(OSError):  # the group has no process any more
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


P = TypeVar("P", bound=Process)


class OutsideFunction(ABC, Generic[P]):
    """A function that processes outside of this one run; accepted wherever a function is.

    It can be sent to another process, which starts its own.
    """

    #: What mechanism is made of it.
    kind: ClassVar[type["OutsideMechanism[Any]"]]
    #: What is raised while the process goes on.
    passing: ClassVar[tuple[type[Exception], ...]] = ()

    def __init__(self) -> None:
        self._idle: list[P] = []
        self._pid = os.getpid()

    @abstractmethod
    def _started(self) -> P:
        """A new process."""

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run once."""

    def __getstate__(self) -> dict[str, object]:
        """Everything but the processes."""
        return {**self.__dict__, "_idle": []}

    def __setstate__(self, state: dict[str, object]) -> None:
        """In another process, or in this one as a copy."""
        self.__dict__.update(state, _pid=os.getpid())

    def anew(self) -> Self:
        """Return the same function for a process that has run nothing yet."""
        return copy.copy(self)

    @contextmanager
    def connection(self) -> Iterator[P]:
        """A process that no other thread is using; one that was left in the middle of a run is not used again."""
        if self._pid != os.getpid():  # a fork has the pipes of its parent
            self._idle, self._pid = [], os.getpid()
        connection = None
        while connection is None:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._started()
                break
            if not connection.usable:
                connection.end()
                connection = None
        try:
            yield connection
        except self.passing:
            self._idle.append(connection)
            raise
        except BaseException:
            connection.end()
            raise
        self._idle.append(connection)


class OutsideMechanism(PythonMechanism, Generic[P]):
    """An `OutsideFunction`, many runs a message; parameters as in `PythonMechanism`."""

    in_process = False
    timed_seconds = 0.01  # a message takes half a millisecond, which many runs share
    shares = False  # what is sent is a copy

    def __init__(self, signature: Signature, outcome: Outcome | None = None, *, errors: str = "raise") -> None:
        super().__init__(signature, outcome, errors=errors)
        self._busy: set[P] = set()
        self._releases = 0

    @override
    def __getstate__(self) -> dict[str, object]:
        """For another process: everything but what runs in this one."""
        return {**super().__getstate__(), "_busy": set()}

    @contextmanager
    def _connection(self, function: OutsideFunction[P]) -> Iterator[P]:
        """A process to ask; meanwhile it can be ended by `release`."""
        releases = self._releases
        with function.connection() as connection:
            self._busy.add(connection)
            try:
                if self._releases != releases:  # released while the process started: these runs are no longer needed
                    raise MechanismTimeout("the time was over before they began")
                yield connection
            finally:
                self._busy.discard(connection)

    @override
    def release(self) -> None:
        self._releases += 1
        for connection in tuple(self._busy):
            connection.end()
