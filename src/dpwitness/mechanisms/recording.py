"""A run under a recording generator: what it draws, at which lines of the user's code, and which lines it takes.

While a run is recorded, other functions and generators stand in the place of those of `random` and `numpy.random` that
it uses: the generator that it gets, those that it makes, the global ones, and those in the variables of its module.
Their values are those of the seed.
"""

import inspect
import math
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness import noise
from dpwitness.checks import is_failure
from dpwitness.errors import RunsEnded
from dpwitness.mechanisms.draws import global_states_restored
from dpwitness.mechanisms.memory import is_installed

Floats = NDArray[np.float64]
#: A file and a line.
Place: TypeAlias = tuple[str, int]

#: Draws and steps that a recorded run may have: they are kept in memory.
MOST_DRAWS: Final = 10_000
MOST_STEPS: Final = 200_000
#: Numbers of a draw up to which they are kept.
MOST_NUMBERS: Final = 4096
#: Steps, or draws, from one look at the clock to the next: a look takes about as long as one of them.
STEPS_A_LOOK: Final = 512

#: Functions that draw: the family, and the names of location and scale, the first parameters in their order; of uniform
#: numbers the names of the ends.
FAMILY: Final[Mapping[str, tuple[str, str, str]]] = {
    "laplace": ("Laplace", "loc", "scale"),
    "normal": ("Gaussian", "loc", "scale"),
    "gumbel": ("Gumbel", "loc", "scale"),
    "logistic": ("logistic", "loc", "scale"),
    "exponential": ("exponential", "", "scale"),
    "standard_normal": ("Gaussian", "", ""),
    "randn": ("Gaussian", "", ""),
    "standard_exponential": ("exponential", "", ""),
    "gauss": ("Gaussian", "mu", "sigma"),
    "normalvariate": ("Gaussian", "mu", "sigma"),
    "expovariate": ("exponential", "", "lambd"),
    "uniform": ("uniform", "low", "high"),
    **dict.fromkeys(("random", "random_sample", "rand"), ("uniform", "", "")),
}
#: The families of the functions of `dpwitness.noise`.
OWN_NOISE: Final = {
    "laplace": "Laplace",
    "gaussian": "Gaussian",
    "gumbel": "Gumbel",
    "exponential": "exponential",
    "geometric": "two-sided geometric",
    "discrete_gaussian": "discrete Gaussian",
}
#: The places of parameters that are probabilities.
PROBABILITIES: Final = {"choice": 3, "binomial": 1, "multinomial": 1}
#: Attributes of an object with `randomise`, as diffprivlib has them, that say what its noise is.
SETTINGS: Final = ("sensitivity", "epsilon", "delta", "lower", "upper", "scale")

#: One recording at a time in a process: each replaces functions of modules.
_LOCK: Final = threading.Lock()


class CannotRecord(Exception):
    """A run that cannot be recorded: another one is, or it took too long or drew too much."""


class _Stop(RunsEnded):
    """Ends a run from within: no `except Exception` of the user's stops it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draw:
    """One call that draws."""

    #: The name of the function.
    name: str
    #: The distribution of noise; "uniform" for numbers from 0 to 1; else the function's name.
    family: str
    #: The innermost line of the user's code.
    place: Place
    #: The parameters of the noise, such as its scale; not its location, which is what noise is added to.
    settings: Mapping[str, Floats]
    #: The probabilities of outcomes, where the function was given them.
    probabilities: Floats | None = None
    #: How many numbers were drawn.
    size: int
    #: The numbers without location and scale, of shape (size,); None where that is not known.
    standard: Floats | None
    #: How many steps came before it.
    step: int
    #: The numbers that the noise of a library was added to, of shape (size,); None where that is not known.
    value: Floats | None = None


@dataclass(slots=True)
class Recording:
    """One run: its draws, its steps from line to line (the file, the line before, the line), what it returned.

    A step to line 0 leaves a function. `returned`: the line from which the mechanism returned; `error`: the name of
    the exception that it raised.
    """

    draws: list[Draw] = field(default_factory=list)
    steps: list[tuple[str, int, int]] = field(default_factory=list)
    output: Any = None
    returned: Place | None = None
    error: str | None = None


class Recorder:
    """Records runs of functions; the code of the folder `root` counts as the user's own, installed or not.

    `deadline`: until when there is time, by `time.perf_counter`.
    """

    def __init__(self, *functions: Any, root: str | None, deadline: float) -> None:
        self.root, self.deadline = root, deadline
        self._kinds: dict[CodeType, str] = {}
        spaces = {id(space): space for function in functions for space in _spaces(function)}
        #: The variables of their modules.
        self.spaces = [*spaces.values()]

    def record(self, call: Callable[[np.random.Generator], object], bits: np.random.BitGenerator) -> Recording:
        """Run once; `call` gets a generator of these bits. Raises `CannotRecord`."""
        if time.perf_counter() > self.deadline or not _LOCK.acquire(blocking=False):
            raise CannotRecord
        try:
            with global_states_restored():
                return _Run(self, bits).made(call)
        finally:
            _LOCK.release()

    def kind(self, code: CodeType) -> str:
        """Whose function a frame is of: "own", "noise", "randomise" or "other"."""
        if (kind := self._kinds.get(code)) is None:
            if code in _NOISE_CODE:
                kind = "noise"
            elif code.co_name == "randomise" and is_installed(code.co_filename):
                kind = "randomise"  # of a library, whose own draws say less
            else:
                kind = "own" if self._is_own(code.co_filename) else "other"
            self._kinds[code] = kind
        return kind

    def _is_own(self, file: str) -> bool:
        """Whether a file is the user's: neither Python's, nor installed, nor of this package but for its targets."""
        if file.startswith("<"):  # typed in, or made by `exec`; but not what Python itself or a library makes
            return file in ("<stdin>", "<string>", "<input>") or file.startswith("<ipython")
        place = os.path.realpath(file)
        if place.startswith(_TARGETS) or (self.root is not None and place.startswith(self.root + os.sep)):
            return True
        return not (is_installed(place) or place.startswith(_PACKAGE))


class _Run:
    """One run that is recorded."""

    def __init__(self, recorder: Recorder, bits: np.random.BitGenerator) -> None:
        self.recorder = recorder
        self.recording = Recording()
        self.thread = threading.get_ident()
        self.calls = 0
        self.inside = 0  # calls that draw, within each other: the outermost one counts
        self.base: FrameType | None = None
        self.generator = RecordingGenerator(bits)
        self.seeds: Any = bits.seed_seq
        self.python = random.Random(self.number())

    def seed(self) -> Any:
        """The next seed for a generator of the run's own."""
        return self.seeds.spawn(1)[0]

    def number(self) -> int:
        """The next seed as a number of 32 bits."""
        return int(self.seed().generate_state(1)[0])

    def made(self, call: Callable[[np.random.Generator], object]) -> Recording:
        global _active
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were shown when the runs were made
            before, tracing = _put(self._replacements()), sys.gettrace()
            try:
                random.seed(self.number())
                np.random.seed(self.number())  # noqa: NPY002  # what the mechanism draws from
                self.base, _active = sys._getframe(), self
                sys.settrace(self._on_call)
                self.recording.output = call(self.generator)
            except _Stop:
                raise CannotRecord from None
            except BaseException as error:  # of the mechanism: that may be its outcome
                if not is_failure(error):
                    raise
                self.recording.error = type(error).__qualname__
            finally:
                sys.settrace(tracing)
                self.base = _active = None  # a frame that holds this object would keep the input
                _put(before[::-1])  # a module may stand in two others
        return self.recording

    def _replacements(self) -> list[tuple[Any, str, object]]:
        """A module, a class or a dict of variables, a name in it, and what stands there during the run."""
        found: list[tuple[Any, str, object]] = [(module, name, new) for module, name, _, new in _GLOBAL]
        # Of the operating system, which no seed repeats.
        found += [(random.SystemRandom, name, self._seeded(name)) for name in ("random", "getrandbits")]
        known = {id(old): new for _, _, old, new in _GLOBAL}
        for space in self.recorder.spaces:
            for name, value in list(space.items()):  # another thread may write to them
                if id(value) in known:
                    found.append((space, name, known[id(value)]))
                elif type(value) is np.random.Generator:
                    found.append((space, name, RecordingGenerator(type(value.bit_generator)(self.seed()))))
                elif type(value) is np.random.RandomState:
                    found.append((space, name, RecordingRandomState(self.number())))
        return found

    def _seeded(self, name: str) -> Callable[..., object]:
        original, own = getattr(random.SystemRandom, name), getattr(self.python, name)

        def drawing(thing: random.SystemRandom, *given: Any) -> object:
            if threading.get_ident() != self.thread:
                return original(thing, *given)
            return self.draw(name, own, given, {})

        return drawing

    # What the interpreter calls.

    def _on_call(self, frame: FrameType, event: str, argument: object) -> Any:
        self.calls += 1
        if self.calls % STEPS_A_LOOK == 0:
            self._go_on()
        kind = self.recorder.kind(frame.f_code)
        if kind == "own":
            return self._lines_of(frame)
        if kind == "other" or self.inside:
            return None
        self.inside += 1
        frame.f_trace_lines = False
        note = self._note_library if kind == "randomise" else self._note_noise
        given = dict(frame.f_locals)

        def on_return(frame: FrameType, event: str, argument: object) -> object:
            if event == "return":
                self.inside -= 1
                if argument is not None:
                    note(frame, given, argument)
            return on_return

        return on_return

    def _lines_of(self, frame: FrameType) -> Any:
        """What follows the lines of one call of a function of the user's own."""
        file, before = frame.f_code.co_filename, frame.f_code.co_firstlineno
        steps = self.recording.steps

        def on_line(frame: FrameType, event: str, argument: object) -> object:
            nonlocal before
            if event == "line":
                steps.append((file, before, frame.f_lineno))
                before = frame.f_lineno
                if len(steps) % STEPS_A_LOOK == 0:
                    self._go_on()
            elif event == "return":
                steps.append((file, before, 0))
                self.recording.returned = (file, before)
            return on_line

        return on_line

    def _go_on(self) -> None:
        long = len(self.recording.steps) > MOST_STEPS or len(self.recording.draws) > MOST_DRAWS
        if long or time.perf_counter() > self.recorder.deadline:
            raise _Stop

    # What is drawn.

    def draw(self, name: str, call: Callable[..., object], given: tuple[Any, ...], named: dict[str, Any]) -> object:
        """Draw, and note it unless another draw asks for it; a method is given its object first."""
        if self.inside or threading.get_ident() != self.thread:
            return call(*given, **named)
        self.inside += 1
        try:
            value = call(*given, **named)
        finally:
            self.inside -= 1
        if given and isinstance(given[0], RecordingGenerator | RecordingRandomState):
            given = given[1:]
        family, first, second = FAMILY.get(name, (name, "", ""))
        asked = dict(zip(filter(None, (first, second)), given, strict=False)) | named
        centre, width = _numbers(asked.get(first, 0.0)), _numbers(asked.get(second, 1.0))
        if width is not None and second == "lambd":
            with np.errstate(divide="ignore"):
                width = 1 / width
        settings = {} if width is None or second in ("", "high") else {"scale": width}
        if second == "high":
            width = _standard(width, centre, np.ones(1))
        self._note(
            self._place(sys._getframe(1)), name=name, family=family, settings=settings, size=_size(value),
            standard=_standard(_numbers(value), centre, width) if name in FAMILY else None,
            probabilities=_probabilities(name, given, named),
        )  # fmt: skip
        return value

    def _note_noise(self, frame: FrameType, given: Mapping[str, object], value: object) -> None:
        """Note a call of a function of `dpwitness.noise`."""
        name, scale = frame.f_code.co_name, _numbers(given.get("scale"))
        standard = _standard(_numbers(value), np.zeros(1), scale)
        settings = {} if scale is None else {"scale": scale}
        place = self._place(frame.f_back)
        self._note(place, name=name, family=OWN_NOISE[name], settings=settings, size=_size(value), standard=standard)

    def _note_library(self, frame: FrameType, given: Mapping[str, object], value: object) -> None:
        """Note a call of `randomise` of an object of whatever class."""
        thing = given.get("self")
        asked = {name: _numbers(getattr(thing, name, None)) for name in SETTINGS}
        settings = {name: number for name, number in asked.items() if number is not None and len(number) == 1}
        before, name = _numbers(given.get("value")), type(thing).__name__
        self._note(
            self._place(frame.f_back) or self._place(frame), name=name, settings=settings, size=_size(value),
            family=f"{type(thing).__module__.partition('.')[0]}'s {name}",
            standard=_standard(_numbers(value), before, np.ones(1)), value=before,
        )  # fmt: skip

    def _note(self, place: Place | None, **known: Any) -> None:
        """Append a draw; `place`: None where it is of no line of the user's."""
        draws = self.recording.draws
        draws.append(Draw(place=place or ("", 0), step=len(self.recording.steps), **known))
        if len(draws) % STEPS_A_LOOK == 0:
            self._go_on()

    def _place(self, frame: FrameType | None) -> Place | None:
        while frame is not None and frame is not self.base:
            if self.recorder.kind(frame.f_code) == "own":
                return frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back
        return None


_active: _Run | None = None


def _recorded(name: str, original: Callable[..., object]) -> Callable[..., object]:
    """A function that draws as `original` does, and notes it."""

    @wraps(original)
    def drawing(*given: Any, **named: Any) -> object:
        run = _active
        return original(*given, **named) if run is None else run.draw(name, original, given, named)

    return drawing


class RecordingGenerator(np.random.Generator):
    """A generator whose draws are noted while a run is recorded."""


class RecordingRandomState(np.random.RandomState):
    """A generator of the older kind whose draws are noted while a run is recorded."""


def _default_rng(seed: Any = None) -> np.random.Generator:
    run = _active
    if run is None or run.thread != threading.get_ident() or isinstance(seed, RecordingGenerator):
        return _DEFAULT_RNG(seed)
    return RecordingGenerator(np.random.PCG64(run.seed()) if seed is None else _DEFAULT_RNG(seed).bit_generator)


_DEFAULT_RNG: Final = np.random.default_rng
_NO_DRAWS: Final = frozenset({"spawn", "bit_generator", "seed", "get_state", "set_state", "getstate", "setstate"})
#: Module, name, function and what records it.
_GLOBAL: Final = [(np.random, "default_rng", _DEFAULT_RNG, _default_rng)] + [
    (module, name, function, _recorded(name, function))
    for module, owner in ((np.random, np.random.mtrand._rand), (random, random._inst))
    for name, function in vars(module).items()
    if name not in _NO_DRAWS and getattr(function, "__self__", None) is owner
]
for _kind, _base in ((RecordingGenerator, np.random.Generator), (RecordingRandomState, np.random.RandomState)):
    for _name in dir(_base):
        if not _name.startswith("_") and _name not in _NO_DRAWS:
            setattr(_kind, _name, _recorded(_name, getattr(_base, _name)))

#: The code of the functions of `dpwitness.noise`.
_NOISE_CODE: Final = {getattr(noise, name).__code__: name for name in OWN_NOISE}
_PACKAGE: Final = os.path.join(os.path.dirname(os.path.realpath(noise.__file__)), "")
#: The bundled targets, which are written as a user's are.
_TARGETS: Final = os.path.join(_PACKAGE, "algorithms", "")


def _put(replacements: list[tuple[Any, str, object]]) -> list[tuple[Any, str, object]]:
    """Put other values in modules, classes and dicts of variables; return the values that were there."""
    before = []
    for holder, name, value in replacements:
        before.append((holder, name, (holder if isinstance(holder, dict) else vars(holder))[name]))
        if isinstance(holder, dict):
            holder[name] = value
        else:
            setattr(holder, name, value)
    return before


def _spaces(function: Any) -> Iterator[dict[str, object]]:
    """The variables of the module of a function, a method, or a callable object, and those of the object."""
    for found in (function, inspect.unwrap(function), type(function).__dict__.get("__call__")):
        space = getattr(getattr(found, "__func__", found), "__globals__", None)
        if isinstance(space, dict) and str(space.get("__name__", "")).partition(".")[0] != "dpwitness":
            yield space
    thing = getattr(function, "__self__", function)
    if not isinstance(thing, FunctionType | type | ModuleType) and type(thing).__module__ != "builtins":
        yield getattr(thing, "__dict__", {})  # a generator that an object holds


def _numbers(value: object) -> Floats | None:
    """Few numbers as a flat array; None for anything else."""
    if isinstance(value, int | float | np.ndarray | np.generic | list | tuple):
        try:
            numbers = np.array(value)
            if numbers.dtype.kind in "biuf" and 0 < numbers.size <= MOST_NUMBERS:
                return numbers.astype(float).ravel()
        except Exception:  # lists of different lengths, or whatever is in them
            return None
    return None


def _standard(drawn: Floats | None, centre: Floats | None, width: Floats | None) -> Floats | None:
    """Draws without location and scale; None where that is not known."""
    if drawn is None or centre is None or width is None or not np.all(np.isfinite(width) & (width != 0)):
        return None
    if any(len(one) not in (1, len(drawn)) for one in (centre, width)):
        return None
    return (drawn - centre) / width


def _size(value: object) -> int:
    """How many numbers were drawn."""
    if isinstance(value, np.ndarray):
        return int(value.size)
    return len(value) if isinstance(value, list | tuple | bytes) else 1


def _probabilities(name: str, given: tuple[object, ...], named: Mapping[str, object]) -> Floats | None:
    """The probabilities that a function was given; those of a binomial number are of one trial."""
    at = PROBABILITIES.get(name)
    if at is None:
        return None
    found = _numbers(named.get("p", named.get("pvals", given[at] if len(given) > at else None)))
    if found is not None and name == "binomial":
        trials = _numbers(named.get("n", given[0] if given else None))
        once = trials is not None and np.all(trials == 1) and len(found) == 1
        found = np.array([1 - found[0], found[0]]) if once else None
    if found is None or not (np.all(found >= 0) and math.isclose(found.sum(), 1, abs_tol=1e-6)):
        return None
    return found
