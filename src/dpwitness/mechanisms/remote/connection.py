"""Another interpreter as a process, and the messages to it and from it."""

import collections
import hashlib
import queue
import re
import subprocess
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from dpwitness.checks import brief
from dpwitness.errors import MechanismCrashed, MechanismTimeout
from dpwitness.mechanisms.remote import wire

SERVER: Final = Path(__file__).with_name("server.py")
#: Inputs and parameters that the other side keeps.
KEPT: Final = 32
#: Bytes that are kept of what the other side writes to its standard error.
TAIL: Final = 4_000
#: Seconds that a process which closed its pipes has to end by itself.
ENDING: Final = 1.0
ARRAY: Final = re.compile(r"[<|=]?[biufc]\d{1,2}")


class Connection:
    """A process of another interpreter that answers one message at a time."""

    def __init__(self, python: str) -> None:
        self.python = python
        process = subprocess.Popen(
            [python, str(SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us: what was counted must be kept
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._input = process.stdin
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._said = bytearray()
        threads = (
            threading.Thread(target=_read, args=(process.stdout, self._answers.put), daemon=True),
            threading.Thread(target=_listen, args=(process.stderr, self._said), daemon=True),
        )
        for thread in threads:
            thread.start()
        self._stored: collections.OrderedDict[bytes, int] = collections.OrderedDict()
        self._count = 0
        self.end = weakref.finalize(self, _end, process, threads)

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a message and return what is answered.

        Raises `MechanismCrashed` where the process has ended, `MechanismTimeout` where it does not answer in time, and
        is ended for that.
        """
        try:
            wire.send(self._input, wire.packed(request))
            held = self._answers.get(timeout=seconds)
        except queue.Empty:
            self.end()
            raise MechanismTimeout(
                f"{self.python} did not answer within {seconds:g} s and was ended: give remote(…, max_time=…) more"
            ) from None
        except OSError:  # a broken pipe
            held = None
        if held is None:
            raise MechanismCrashed(f"{self.python} ended {self._ending()}")
        answer = unpacked(held)
        if not isinstance(answer, dict):
            raise MechanismCrashed(f"{self.python} answered {brief(answer)}, which is no answer")
        return answer

    def number_of(self, held: bytes, store: list[Any], forget: list[int]) -> int:
        """Return the number by which the other side knows an encoded value; what to send for it goes to the lists."""
        key = hashlib.blake2b(held, digest_size=16).digest()
        if key not in self._stored:
            self._count += 1
            self._stored[key] = self._count
            store.append((self._count, held))
            if len(self._stored) > KEPT:
                forget.append(self._stored.popitem(last=False)[1])
        self._stored.move_to_end(key)
        return self._stored[key]

    def _ending(self) -> str:
        """How the process ended, and the last line that it wrote."""
        with suppress(subprocess.TimeoutExpired):  # its pipes are closed a moment before it has an exit code
            self._process.wait(ENDING)
        self.end()
        code = self._process.returncode
        lines = bytes(self._said).decode(errors="replace").strip().splitlines()
        return f"with {f'exit code {code}' if code >= 0 else f'signal {-code}'}{f' ({lines[-1]})' if lines else ''}"


def unpacked(held: bytes) -> Any:
    """Return the value of a message from the other side: data alone. Raises `MechanismCrashed` for a damaged one."""
    try:
        return wire.Reader(held, _made, _array_of).value()
    except (ValueError, TypeError, OverflowError, MemoryError, RecursionError, LookupError) as error:
        raise MechanismCrashed(f"the other interpreter answered what cannot be read ({error})") from error


def _array_of(dtype: Any, shape: Any, held: Any, order: Any = "C") -> Any:
    if not ARRAY.fullmatch(dtype):
        raise ValueError(f"{brief(dtype)} is no type of numbers")
    return np.frombuffer(held, dtype).reshape(shape, order="F" if order == "F" else "C")


def _made(kind: str, content: Any) -> Any:
    if kind != wire.TABLE:
        return wire.Tagged(kind, content)
    import pandas as pd  # type: ignore[import-untyped]  # only where a table comes

    names, columns, index = content[:3]
    frame = pd.DataFrame(dict(enumerate(columns)), index=index, dtype=object)
    frame.columns = names
    return frame


def _read(stream: IO[bytes], put: Callable[[bytes | None], None]) -> None:
    """Hand on every message; None at the end, and one that cannot be read in place of a damaged one."""
    held: bytes | None = b""
    while held is not None:
        try:
            held = wire.receive(stream)
        except ValueError:  # a length that is none: nothing that follows can be read
            put(b"")
            return
        put(held)


def _listen(stream: IO[bytes], said: bytearray) -> None:
    """Keep the end of what is written."""
    while block := stream.read1(1 << 16):  # type: ignore[attr-defined]  # a buffered reader
        said += block
        del said[:-TAIL]


def _end(process: subprocess.Popen[bytes], threads: tuple[threading.Thread, ...]) -> None:
    """End a process, whatever it is doing, and close its pipes."""
    process.kill()
    process.wait()
    for thread in threads:
        thread.join(1.0)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            try:
                stream.close()
            except OSError:  # what was still to be written has nobody to read it
                continue
