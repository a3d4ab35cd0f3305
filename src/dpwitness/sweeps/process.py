"""One request to a fresh Python process, and its answer: what a case does to its process, it does to no other."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from dpwitness.checks import json_value
from dpwitness.mechanisms.process import end_group

#: Seconds beside its own that a process has: to start, to import and to compile.
GRACE: Final = 60.0
#: How often a process is looked at, in seconds.
OFTEN: Final = 0.05
#: The end of what a process printed before it died, in characters.
LAST: Final = 300
#: Each case has one core: libraries of linear algebra take all that they find, and cases run side by side.
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: Bytes of an answer: a witness of a large input is some megabytes.
LARGEST: Final = 1 << 26


def answer(
    request: dict[str, object], *, seconds: float, grace: float = GRACE, stop: Callable[[], bool] = lambda: False
) -> dict[str, object]:
    """Return what `worker` answers to a request of JSON values; an object with `error` and `why` where it does not.

    The process, and all that it has started, is killed after `seconds`, the time that the request is for, and `grace`.
    `stop` is asked again and again; once it says True the process is killed, and `KeyboardInterrupt` is raised.
    """
    limit = seconds + grace
    with tempfile.TemporaryDirectory(prefix="dpwitness-", ignore_cleanup_errors=True) as folder:
        place = Path(folder, "answer.json")
        whole = {**request, "answer": str(place), "limit": limit + 5, "path": [os.getcwd(), *filter(None, sys.path)]}
        process = subprocess.Popen(
            [sys.executable, "-m", "dpwitness.sweeps.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that all that it starts is killed with it
            env={**dict.fromkeys(THREADS, "1"), **os.environ},
        )
        printed = Printed(process)
        ended = False
        try:
            _send(process, json.dumps(whole).encode())
            ended = _wait(process, limit, stop)
        finally:
            end_group(process)
        if not ended:
            return {"error": "MechanismTimeout", "why": f"it did not end within {limit:.3g} s, and was killed"}
        try:
            with place.open("rb") as file:
                found = json_value(file.read(LARGEST).decode())
        except (OSError, ValueError):
            return {"error": "MechanismCrashed", "why": _died(process.returncode, printed.last)}
    if not isinstance(found, dict):
        return {"error": "MechanismCrashed", "why": "its process gave no answer"}
    return found


def _send(process: "subprocess.Popen[bytes]", text: bytes) -> None:
    assert process.stdin is not None
    with suppress(OSError):  # it has died already: its exit code says how
        process.stdin.write(text)
        process.stdin.close()


def _wait(process: "subprocess.Popen[bytes]", limit: float, stop: Callable[[], bool]) -> bool:
    """Whether the process ended in time. Raises `KeyboardInterrupt` when told to stop."""
    until = time.monotonic() + limit
    while process.poll() is None:
        if stop():
            raise KeyboardInterrupt
        if time.monotonic() > until:
            return False
        time.sleep(OFTEN)
    return True


class Printed:
    """The end of what a process prints: read as it comes, and the rest forgotten, since it may print without end."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        self._end = b""
        self._stream = process.stdout
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream as stream:
            while part := os.read(stream.fileno(), 1 << 16):
                self._end = (self._end + part)[-LAST:]

    @property
    def last(self) -> str:
        """The last line, of a process that has ended."""
        self._thread.join(timeout=1.0)  # what left its group may hold the stream open
        lines = self._end.decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""


def _died(code: int, printed: str) -> str:
    """How a process ended that gave no answer."""
    how = f"its process was killed by signal {-code}" if code < 0 else f"its process ended with exit code {code}"
    return f"{how}: {printed}" if printed else how
