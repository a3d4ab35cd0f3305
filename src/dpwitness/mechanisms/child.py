"""Processes that run foreign code; their answers, lines of JSON, are not trusted."""

import json
import os
import selectors
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Final

from dpwitness.checks import brief, json_value
from dpwitness.errors import MechanismCrashed, MechanismTimeout

#: The largest number of bytes of all answers to one request: a process may write without end.
MOST_ANSWER_BYTES: Final = 1 << 28
#: The largest number of bytes that are read or written at once: the capacity of a pipe.
PIPE_BYTES: Final = 1 << 16
#: The seconds that a process has to end after it closed its pipes.
EXIT_SECONDS: Final = 1.0


class UnreadableAnswer(Exception):
    """An answer that is not JSON; `number` counts the answers from 0."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


class Child:
    """A program in a session of its own, with pipes to it. `end` also ends the processes that it started."""

    def __init__(self, argv: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None) -> None:
        """Start the program. Raises `OSError` and `ValueError`."""
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [*argv], bufsize=0, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe,
            start_new_session=True,  # Ctrl-C must reach this process alone, which keeps its counts
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process, self._input, self._output = process, process.stdin, process.stdout
        os.set_blocking(self._input.fileno(), False)
        self._last_errors = bytearray()
        #: A lock for requests: the pipes are not closed during a request.
        self._asking = threading.RLock()
        listener = threading.Thread(target=_keep_last_bytes, args=(process.stderr, self._last_errors), daemon=True)
        listener.start()
        self._finalizer = weakref.finalize(self, _end, process, listener, self._asking, os.getpid())

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def end(self) -> None:
        """Kill the process and all processes of its session; any thread may call this."""
        self._finalizer()

    def ask(
        self, request: bytes, answers: int, seconds: float, stop: Callable[[], bool] = lambda: False
    ) -> list[object]:
        """Send a request, and return the values of the lines of its answer, `answers` in number.

        Raises `MechanismCrashed` if the process ends or writes more lines, `UnreadableAnswer` for a line that is not
        JSON. Kills the process and raises `MechanismTimeout` if no line comes within `seconds` of the line before, or
        `KeyboardInterrupt` once `stop`, which is called repeatedly, returns True.
        """
        with self._asking, selectors.DefaultSelector() as selector:
            if self._output.closed:
                raise MechanismCrashed("it was ended")
            selector.register(self._output, selectors.EVENT_READ)
            if selector.select(0) and (early := os.read(self._output.fileno(), PIPE_BYTES)):
                raise MechanismCrashed(f"it wrote {_beginning(early)} before it was asked")
            selector.register(self._input, selectors.EVENT_WRITE)
            unsent, rest, length, found = memoryview(request), bytearray(), 0, list[object]()
            end = time.monotonic() + seconds
            while len(found) < answers:
                # The process is polled too: processes that it started may hold its pipes open after its end.
                ready = [key.fileobj for key, _ in selector.select(min(max(end - time.monotonic(), 0.0), 0.1))]
                if self._input in ready:
                    unsent = self._send(unsent, len(found), answers)
                    if not unsent:
                        selector.unregister(self._input)
                if self._output in ready:
                    block = os.read(self._output.fileno(), PIPE_BYTES)
                    if not block:
                        raise self._ended(len(found), answers)
                    rest += block
                    length += len(block)
                    if b"\n" in block:
                        *lines, rest = rest.split(b"\n")
                        if len(lines) > answers - len(found):
                            raise _too_many_lines(answers, lines[answers - len(found)])
                        found += [_value(line, number) for number, line in enumerate(lines, len(found))]
                        end = time.monotonic() + seconds
                    if length > MOST_ANSWER_BYTES:
                        raise MechanismCrashed(
                            f"it wrote more than {MOST_ANSWER_BYTES:,} bytes for {answers} answers, the last of them "
                            f"beginning with {_beginning(rest)}"
                        )
                elif not ready and not self.running:
                    raise self._ended(len(found), answers)
                if stop():
                    self.end()
                    raise KeyboardInterrupt
                if len(found) < answers and time.monotonic() >= end:
                    self.end()
                    late = (
                        f"it wrote {len(found)} of {answers} answers, then no answer for {seconds:g} s, and was ended"
                    )
                    if answers == 1:
                        late = f"it did not answer within {seconds:g} s, and was ended"
                    raise MechanismTimeout(late + self._error_lines())
            # A line that comes later is found with the next request. Until then it may be taken for the outcome of
            # another run, which weakens evidence and never adds any: the order of the sides is random.
            if not rest and not unsent and selector.select(0):
                rest += os.read(self._output.fileno(), PIPE_BYTES)
            if rest or unsent:
                raise _too_many_lines(answers, rest)
            return found

    def _send(self, unsent: memoryview, done: int, answers: int) -> memoryview:
        """Write a part of a request; return the unsent rest."""
        try:
            return unsent[os.write(self._input.fileno(), unsent[:PIPE_BYTES]) :]
        except BlockingIOError:
            return unsent
        except OSError:
            raise self._ended(done, answers) from None

    def _ended(self, done: int, answers: int) -> MechanismCrashed:
        """The error for a process that ended: the exit code, the last lines of errors, the number of answers."""
        closed = False
        try:
            self._process.wait(EXIT_SECONDS)  # pipes close a moment before the exit code is known
        except subprocess.TimeoutExpired:
            closed = True
        self.end()
        code = self._process.returncode
        how = "by closing its pipes" if closed else f"with exit code {code}" if code >= 0 else f"with signal {-code}"
        after = f" after {done} of {answers} answers" if answers > 1 else ""
        return MechanismCrashed(f"it ended {how}{self._error_lines()}{after}")

    def _error_lines(self) -> str:
        lines = bytes(self._last_errors).decode(errors="replace").strip().splitlines()
        shown = " / ".join(" ".join(line.split()) for line in lines[-3:])
        return f" ({''.join(letter for letter in shown if letter.isprintable())})" if lines else ""


def _keep_last_bytes(stream: IO[bytes], kept: bytearray) -> None:
    """Keep the last 500 bytes of a stream."""
    while block := stream.read(PIPE_BYTES):
        kept += block
        del kept[:-500]


def _end(process: subprocess.Popen[bytes], listener: threading.Thread, asking: threading.RLock, owner: int) -> None:
    """Kill all processes of a session, even after the exit of its leader, and close the pipes to it."""
    if os.getpid() != owner:  # a fork has the pipes of its parent, and must not end the parent's processes
        return
    with suppress(OSError):  # all processes of the session have ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    listener.join(EXIT_SECONDS)
    with asking:
        for stream in (process.stdin, process.stdout, None if listener.is_alive() else process.stderr):
            if stream is not None:
                stream.close()


def _value(line: bytes | bytearray, number: int) -> object:
    try:
        text = line.decode()
        return json_value(text, parse_int=_whole) if "[" in text or "{" in text else LINE_DECODER.decode(text)
    except UnicodeDecodeError as error:
        raise UnreadableAnswer(number, f"{_beginning(line)}, which is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise UnreadableAnswer(number, f"{_beginning(line)}, which is not JSON") from error
    except ValueError as error:
        raise UnreadableAnswer(number, f"{_beginning(line)}, which is not read: {error}") from error


def _whole(digits: str) -> float:
    """The value of an integer literal; −0.0 for "-0". Raises `ValueError` beyond Python's limit of digits."""
    try:
        return -0.0 if digits == "-0" else int(digits)
    except ValueError as error:
        raise ValueError(f"an integer has {len(digits.lstrip('-')):,} digits, give it as a text") from error


#: The decoder of lines that hold a number or a text: making a decoder for each line takes longer than reading the line.
LINE_DECODER: Final = json.JSONDecoder(parse_int=_whole)


def _beginning(held: bytes | bytearray) -> str:
    """The first 80 bytes of an answer as text in quotes, cut to 80 characters."""
    return brief(held[:80].rstrip().decode(errors="replace"))


def _too_many_lines(answers: int, more: bytes | bytearray) -> MechanismCrashed:
    return MechanismCrashed(f"it wrote more than the {answers} lines asked for, as {_beginning(more)}")
