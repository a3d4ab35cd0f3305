"""Recorded runs: the random draws of a run, the lines of the user's code that make them, and the steps between lines.

Draws are noted from the generator that the run gets, from generators that it makes by `numpy.random.default_rng`, and
from `dpwitness.noise`.
"""

import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, wraps
from types import FrameType
from typing import Any, Final, TypeAlias

import numpy as np

from dpwitness import noise
from dpwitness.arrays import Floats
from dpwitness.checks import is_failure
from dpwitness.errors import RunsEnded
from dpwitness.mechanisms.draws import global_states_restored
from dpwitness.mechanisms.memory import is_installed

#: A place in code: a file and a line.
Place: TypeAlias = tuple[str, int]

#: The samplers by name: the family of the noise, and the names of the parameters for location and scale, or for both
#: ends of uniform numbers; "" for parameters that a sampler lacks.
SAMPLERS: Final[Mapping[str, tuple[str, str, str]]] = {
    "laplace": ("Laplace", "loc", "scale"),
    "normal": ("Gaussian", "loc", "scale"),
    "gumbel": ("Gumbel", "loc", "scale"),
    "logistic": ("logistic", "loc", "scale"),
    "exponential": ("exponential", "", "scale"),
    "standard_normal": ("Gaussian", "", ""),
    "standard_exponential": ("exponential", "", ""),
    "uniform": ("uniform", "low", "high"),
    "random": ("uniform", "", ""),
}
#: The families of noise of the samplers of `dpwitness.noise`, by name.
NOISE_FAMILIES: Final = {
    "laplace": "Laplace",
    "gaussian": "Gaussian",
    "gumbel": "Gumbel",
    "exponential": "exponential",
    "geometric": "two-sided geometric",
    "discrete_gaussian": "discrete Gaussian",
}

#: A lock for the recording thread: one thread at a time may replace `numpy.random.default_rng`.
_LOCK: Final = threading.Lock()


class CannotRecord(Exception):
    """The run cannot be recorded: another thread is recording, or the run was too long or made too many draws."""


class _Stop(RunsEnded):
    """An error that ends a run from within; `except Exception` in the user's code does not catch it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draw:
    """One call of a sampler."""

    #: The name of the sampler.
    name: str
    #: The innermost line of the user's code.
    place: Place
    #: The number of steps of the run before the draw.
    step: int
    #: The number of drawn numbers.
    size: int
    #: The family of the noise; "uniform" for numbers from 0 to 1; "" if unknown, as for a sample of records.
    family: str = ""
    #: The parameters of the noise, such as its scale; the location is left out: it may be the value to be protected.
    settings: Mapping[str, Floats] = field(default_factory=dict)
    #: The probabilities given to a sampler of categories; None without them.
    probabilities: tuple[float, ...] | None = None
    #: The drawn numbers, shifted by the location and divided by the scale, of shape (size,); None if unknown.
    standard: Floats | None = None


@dataclass(slots=True)
class Recording:
    """A recorded run: its draws, its steps from line to line (file, line before, line), and its output.

    A step to line 0 leaves a function. `returned`: the line from which the mechanism returned; `error`: the class of
    the exception that it raised.
    """

    draws: list[Draw] = field(default_factory=list)
    steps: list[tuple[str, int, int]] = field(default_factory=list)
    output: Any = None
    returned: Place | None = None
    error: str | None = None


class Recorder:
    """A recorder of runs of functions; code in the folder `root` counts as the user's own, installed or not.

    `deadline`: the time by `time.perf_counter`, in seconds, after which it records nothing.
    """

    def __init__(self, *, root: str | None, deadline: float) -> None:
        self.root, self.deadline = root, deadline
        self.thread = threading.get_ident()
        self.recording = Recording()
        self._in_sampler = False  # whose own draws do not count

    def record(self, call: Callable[[np.random.Generator], object], bits: np.random.BitGenerator) -> Recording:
        """Record one run; `call` gets a recording generator with `bits`. Raises `CannotRecord`."""
        if time.perf_counter() > self.deadline or not _LOCK.acquire(blocking=False):
            raise CannotRecord
        try:
            with global_states_restored(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they were shown when the runs were made
                return self._record(call, bits)
        finally:
            _LOCK.release()

    def _record(self, call: Callable[[np.random.Generator], object], bits: np.random.BitGenerator) -> Recording:
        global _active
        self._seeds: Any = bits.seed_seq
        self.recording, self._in_sampler, self._base = Recording(), False, sys._getframe()
        tracing = sys.gettrace()
        try:
            np.random.default_rng = _default_rng
            _active = self
            sys.settrace(self._on_call)
            self.recording.output = call(RecordingGenerator(bits))
        except _Stop:
            raise CannotRecord from None
        except BaseException as error:  # raised by the mechanism: it may be the outcome
            if not is_failure(error):
                raise
            self.recording.error = type(error).__qualname__
        finally:
            sys.settrace(tracing)
            _active = None
            del self._base  # a frame that holds the input
            np.random.default_rng = _DEFAULT_RNG
        return self.recording

    def seed(self) -> Any:
        """The next seed for a generator that the run makes."""
        return self._seeds.spawn(1)[0]

    def _on_call(self, frame: FrameType, event: str, argument: object) -> Any:
        # A trace function. It never raises: in a callback of the garbage collector Python would drop the error, and
        # stop tracing.
        code = frame.f_code
        if code not in _NOISE_CODES:
            return self._lines_of(frame) if _is_own(code.co_filename, self.root) else None
        if self._in_sampler:
            return None
        frame.f_trace_lines, self._in_sampler, given = False, True, dict(frame.f_locals)

        def on_return(frame: FrameType, event: str, argument: object) -> object:
            if event == "return":
                self._in_sampler = False
                if argument is not None:
                    self._note_noise(frame, given, argument)
            return on_return

        return on_return

    def _lines_of(self, frame: FrameType) -> Any:
        """The trace function of one call of a user's function."""
        file, before = frame.f_code.co_filename, frame.f_code.co_firstlineno
        recording = self.recording

        def on_line(frame: FrameType, event: str, argument: object) -> object:
            nonlocal before
            if event == "line":
                recording.steps.append((file, before, frame.f_lineno))
                before = frame.f_lineno
                self._require_limits()
            elif event == "return":
                recording.steps.append((file, before, 0))
                recording.returned = (file, before)
            return on_line

        return on_line

    def _require_limits(self) -> None:
        noted = len(self.recording.steps) + len(self.recording.draws)
        if noted > 200_000 or time.perf_counter() > self.deadline:
            raise _Stop

    def draw(self, name: str, call: Callable[..., object], given: tuple[Any, ...], named: dict[str, Any]) -> object:
        """Call a method of a generator, and note the draw unless another sampler made the call.

        `given`: the generator, and the arguments by position.
        """
        if self._in_sampler:
            return call(*given, **named)
        self._in_sampler = True
        try:
            value = call(*given, **named)
        finally:
            self._in_sampler = False
        given = given[1:]
        family, first, second = SAMPLERS.get(name, ("", "", ""))
        asked = dict(zip(filter(None, (first, second)), given, strict=False)) | named
        centre, width = _numbers(asked.get(first, 0.0)), _numbers(asked.get(second, 1.0))
        settings = {"scale": width} if width is not None and second not in ("", "high") else {}
        if second == "high":
            width = _standard(width, centre, np.ones(1))
        self._note(
            sys._getframe(1), name=name, family=family, settings=settings, size=_size(value),
            standard=_standard(_numbers(value), centre, width) if family else None,
            probabilities=_probabilities(name, given, named),
        )  # fmt: skip
        return value

    def _note_noise(self, frame: FrameType, given: Mapping[str, object], value: object) -> None:
        name, scale = frame.f_code.co_name, _numbers(given.get("scale"))
        self._note(
            frame.f_back, name=name, size=1, family=NOISE_FAMILIES[name],
            settings={} if scale is None else {"scale": scale},
            standard=_standard(_numbers(value), np.zeros(1), scale),
        )  # fmt: skip

    def _note(self, frame: FrameType | None, **known: Any) -> None:
        """Append a draw, at the innermost line of the user's code that called `frame`."""
        place = "", 0
        while frame is not None and frame is not self._base and not place[1]:
            if _is_own(frame.f_code.co_filename, self.root):
                place = frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back
        self.recording.draws.append(Draw(place=place, step=len(self.recording.steps), **known))
        self._require_limits()


#: The recorder of the run that is recorded now.
_active: Recorder | None = None


def _recorder() -> Recorder | None:
    """The recorder of this thread's run; None if this thread records no run."""
    return _active if _active is not None and _active.thread == threading.get_ident() else None


def _recording_method(name: str) -> Callable[..., object]:
    """A method that draws as the generator's method does, and notes the draw while a run is recorded."""
    original = getattr(np.random.Generator, name)

    @wraps(original)
    def drawing(*given: Any, **named: Any) -> object:
        recorder = _recorder()
        return original(*given, **named) if recorder is None else recorder.draw(name, original, given, named)

    return drawing


class RecordingGenerator(np.random.Generator):
    """A generator whose draws are noted while a run is recorded."""


for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name not in ("spawn", "bit_generator"):
        setattr(RecordingGenerator, _name, _recording_method(_name))


def _default_rng(seed: Any = None) -> np.random.Generator:
    recorder = _recorder()
    if recorder is None or isinstance(seed, RecordingGenerator):
        return _DEFAULT_RNG(seed)
    return RecordingGenerator(np.random.PCG64(recorder.seed()) if seed is None else _DEFAULT_RNG(seed).bit_generator)


#: The function `numpy.random.default_rng` itself, which a recording replaces.
_DEFAULT_RNG: Final = np.random.default_rng
#: The code objects of the samplers of `dpwitness.noise`.
_NOISE_CODES: Final = frozenset(getattr(noise, name).__code__ for name in NOISE_FAMILIES)
#: The folder of this package, whose lines are not the user's.
_PACKAGE_FOLDER: Final = os.path.join(os.path.dirname(os.path.realpath(noise.__file__)), "")
#: The folder of the bundled targets, whose lines count as the user's.
_TARGETS_FOLDER: Final = os.path.join(_PACKAGE_FOLDER, "algorithms", "")


@cache
def _is_own(file: str, root: str | None) -> bool:
    """Whether a file is a bundled target, lies in `root`, or is neither installed nor a file of Python or dpwitness."""
    if file.startswith("<"):  # code that was typed in or made by `exec`, not by Python itself or a library
        return file in ("<stdin>", "<string>", "<input>") or file.startswith("<ipython")
    place = os.path.realpath(file)
    if place.startswith(_TARGETS_FOLDER) or (root is not None and place.startswith(root + os.sep)):
        return True
    return not (is_installed(place) or place.startswith(_PACKAGE_FOLDER))


def _numbers(value: object) -> Floats | None:
    """The numbers, 1 to 4,096, as an array of one axis; None for any other value."""
    if isinstance(value, int | float | np.ndarray | np.generic | list | tuple):
        try:
            numbers = np.array(value)
            if numbers.dtype.kind in "biuf" and 0 < numbers.size <= 4096:
                return numbers.astype(float).ravel()
        except Exception:  # lists of different lengths, or of objects that raise
            return None
    return None


def _standard(drawn: Floats | None, centre: Floats | None, width: Floats | None) -> Floats | None:
    """The standardised draws (drawn − centre) / width; None for unknown or unequally long arrays, or a width of 0."""
    if drawn is None or centre is None or width is None or not np.all(np.isfinite(width) & (width != 0)):
        return None
    if any(len(one) not in (1, len(drawn)) for one in (centre, width)):
        return None
    return (drawn - centre) / width


def _size(value: object) -> int:
    """The number of numbers that a sampler returned."""
    if isinstance(value, np.ndarray):
        return int(value.size)
    return len(value) if isinstance(value, list | tuple | bytes) else 1


def _probabilities(name: str, given: tuple[object, ...], named: Mapping[str, object]) -> tuple[float, ...] | None:
    """The probabilities given to `choice`, or to `binomial` with one trial; None without them."""
    place = {"choice": 3, "binomial": 1}.get(name)
    if place is None:
        return None
    found = _numbers(named.get("p", given[place] if len(given) > place else None))
    if found is not None and name == "binomial":
        once = named.get("n", given[0] if given else None) == 1
        found = np.array([1 - found[0], found[0]]) if once and len(found) == 1 else None
    if found is None or not (np.all(found >= 0) and math.isclose(found.sum(), 1, abs_tol=1e-6)):
        return None
    return tuple(found.tolist())
