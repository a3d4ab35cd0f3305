"""A run under a recording generator: what it draws, at which lines of the user's code, and which lines it takes.

Generators of `numpy.random` and `random` that runs use are replaced while they are recorded: that which a run gets,
those that it makes, the global ones, and those that stand in its module. Their values are those of the seed.
"""

import inspect
import math
import os
import random
import sys
import sysconfig
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, wraps
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness import noise
from dpwitness.checks import is_failure
from dpwitness.errors import RunsEnded
from dpwitness.mechanisms.draws import global_states_restored
from dpwitness.mechanisms.mechanism import own_seconds

Floats = NDArray[np.float64]
#: A file and a line.
Place: TypeAlias = tuple[str, int]

#: Draws and steps of one run at most, numbers of one draw that are kept, and steps from one look at the clock to the
#: next.
MOST_DRAWS: Final = 10_000
MOST_STEPS: Final = 200_000
KEPT: Final = 4096
LOOKS: Final = 512

#: Functions that draw noise: the family, and the names of location and scale, the first parameters in their order.
NOISE: Final[Mapping[str, tuple[str, str | None, str | None]]] = {
    "laplace": ("Laplace", "loc", "scale"),
    "normal": ("Gaussian", "loc", "scale"),
    "gumbel": ("Gumbel", "loc", "scale"),
    "logistic": ("logistic", "loc", "scale"),
    "exponential": ("exponential", None, "scale"),
    "standard_normal": ("Gaussian", None, None),
    "randn": ("Gaussian", None, None),
    "standard_exponential": ("exponential", None, None),
    "gauss": ("Gaussian", "mu", "sigma"),
    "normalvariate": ("Gaussian", "mu", "sigma"),
    "expovariate": ("exponential", None, "lambd"),
}
#: Those of `dpwitness.noise`.
OWN_NOISE: Final = {
    "laplace": "Laplace",
    "gaussian": "Gaussian",
    "gumbel": "Gumbel",
    "exponential": "exponential",
    "geometric": "two-sided geometric",
    "discrete_gaussian": "discrete Gaussian",
}
UNIFORM: Final = frozenset({"random", "random_sample", "rand", "uniform"})
#: The parameters of others that are probabilities: where they stand.
PROBABILITIES: Final = {"choice": 3, "binomial": 1, "multinomial": 1}
#: What an object with `randomise`, as diffprivlib has them, keeps of its noise.
SETTINGS: Final = ("sensitivity", "epsilon", "delta", "lower", "upper", "scale")
#: Methods that are no draws.
NO_DRAWS: Final = frozenset({"spawn", "bit_generator", "seed", "get_state", "set_state", "getstate", "setstate"})
#: What of `random` draws.
PYTHONS: Final = (
    *("random", "getrandbits", "uniform", "gauss", "normalvariate", "expovariate", "randint", "randrange", "choice"),
    *("choices", "sample", "shuffle", "randbytes", "betavariate", "gammavariate", "lognormvariate", "triangular"),
    *("vonmisesvariate", "paretovariate", "weibullvariate", "binomialvariate"),
)
LEGACY: Final = tuple(
    name
    for name in dir(np.random)
    if name not in NO_DRAWS and getattr(getattr(np.random, name), "__self__", None) is np.random.mtrand._rand
)
NUMPYS: Final = tuple(
    name for name in dir(np.random.Generator) if not name.startswith("_") and name not in NO_DRAWS
)  # fmt: skip

#: One recording at a time in a process: each replaces functions of modules.
_LOCK: Final = threading.Lock()


class CannotRecord(Exception):
    """A run that cannot be recorded: another one is, or it took too long or drew too much."""


class _Stop(RunsEnded):
    """Ends a run from within: no `except Exception` of the user's stops it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draw:
    """One call that draws."""

    #: The function, and what noise it draws; "uniform" for numbers from 0 to 1, else the function's name.
    name: str
    family: str
    #: The innermost line of the user's code.
    place: Place
    #: What the noise was asked to be, such as the scale; no locations, which are what noise is added to.
    settings: Mapping[str, Floats]
    #: Of outcomes, where it was given such.
    probabilities: Floats | None = None
    #: How many numbers it drew.
    size: int
    #: What was drawn without location and scale, of shape (size,); None where that is not known.
    standard: Floats | None
    #: How many steps came before it.
    step: int
    #: What the noise of a library was added to, of shape (size,); None where that is not known.
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

    `spaces`: the variables of the modules of the user's own; `deadline`: until when there is time, by `own_seconds`.
    """

    def __init__(self, *functions: Any, root: str | None, deadline: float) -> None:
        spaces = {id(space): space for function in functions for space in _spaces(function)}
        self.spaces = [*spaces.values()]
        #: The generators in them: where each stands, under which name, and which it is when no run is recorded.
        self.generators: list[tuple[dict[str, object], str, object]] = []
        self._root = root
        self.deadline = deadline
        self._kinds: dict[CodeType, str] = {}
        self.spaces += [
            vars(value)
            for space in list(self.spaces)
            for value in list(space.values())
            if isinstance(value, ModuleType) and self._is_own(str(getattr(value, "__file__", None) or "<"))
        ]

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Have what draws replaced, once for all runs. Raises `CannotRecord` where another recorder is at work."""
        if not _LOCK.acquire(blocking=False):
            raise CannotRecord
        try:
            self.generators = [
                (space, name, value)
                for space in self.spaces
                for name, value in list(space.items())  # another thread may write to them
                if type(value) in (np.random.Generator, np.random.RandomState)
            ]
            with global_states_restored(), _patched([*_replacements(self.spaces), *self.generators]):
                yield
        finally:
            _LOCK.release()

    def record(self, call: Callable[[np.random.Generator], object], bits: np.random.BitGenerator) -> Recording:
        """Run once, where it is `ready`; `call` gets a generator of these bits. Raises `CannotRecord`."""
        if own_seconds() > self.deadline:
            raise CannotRecord
        return _Run(self, bits).made(call)

    def kind(self, code: CodeType) -> str:
        """Of whose function a frame is: "own", "noise", "randomise" or "other"."""
        if (kind := self._kinds.get(code)) is None:
            if code in _NOISE_CODE:
                kind = "noise"
            elif code.co_name == "randomise" and set(Path(code.co_filename).parts) & _INSTALLED:
                kind = "randomise"  # of a library, whose own draws say less
            else:
                kind = "own" if self._is_own(code.co_filename) else "other"
            self._kinds[code] = kind
        return kind

    def _is_own(self, file: str) -> bool:
        """Whether a file is the user's: neither Python's, nor installed, nor of this package."""
        if file.startswith("<"):  # typed in, or made by `exec`; but not what Python itself or a library makes
            return file in ("<stdin>", "<string>", "<input>") or file.startswith("<ipython")
        place = os.path.realpath(file)
        if self._root is not None and place.startswith(self._root + os.sep):
            return True
        if place.startswith(_TARGETS):
            return True
        return not (set(Path(place).parts) & _INSTALLED or place.startswith(_NOT_OWN))


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
        self.python = random.Random(int(self.seed().generate_state(1)[0]))  # no secrets

    def seed(self) -> np.random.SeedSequence:
        """The next seed for a generator of the run's own."""
        (seed,) = self.seeds.spawn(1)
        return seed  # type: ignore[no-any-return]  # of the kind that it is spawned from

    def made(self, call: Callable[[np.random.Generator], object]) -> Recording:
        global _active
        for space, name, value in self.recorder.generators:
            space[name] = self._own_generator(value)
        first = self.seed().generate_state(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were shown when the runs were made
            before, self.base = sys.gettrace(), sys._getframe()
            try:
                _active = self
                random.seed(int(first[0]))
                np.random.seed(int(first[1]))  # noqa: NPY002  # what the mechanism draws from
                sys.settrace(self._on_call)
                self.recording.output = call(self.generator)
            except _Stop:
                raise CannotRecord from None
            except BaseException as error:  # of the mechanism: that may be its outcome
                if not is_failure(error):
                    raise
                self.recording.error = type(error).__qualname__
            finally:
                sys.settrace(before)
                _active = None
                self.base = None  # a frame that holds this object would keep the input until the next collection
        return self.recording

    def _own_generator(self, value: object) -> object:
        """What stands for a generator of the user's module during this run."""
        if isinstance(value, np.random.Generator):
            return RecordingGenerator(type(value.bit_generator)(self.seed()))
        return RecordingRandomState(int(self.seed().generate_state(1)[0]))

    # What the interpreter calls.

    def _on_call(self, frame: FrameType, event: str, argument: object) -> Any:
        self.calls += 1
        if self.calls % LOOKS == 0:
            self._go_on()
        kind = self.recorder.kind(frame.f_code)
        if kind == "own":
            return self._lines_of(frame)
        if kind == "other" or self.inside:
            return None
        self.inside += 1
        frame.f_trace_lines = False
        record = self._library_draw if kind == "randomise" else self._own_draw
        given = dict(frame.f_locals)

        def on_return(frame: FrameType, event: str, argument: object) -> object:
            if event == "return":
                self.inside -= 1
                if argument is not None:
                    record(frame, given, argument)
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
                if len(steps) % LOOKS == 0:
                    self._go_on()
            elif event == "return":
                steps.append((file, before, 0))
                self.recording.returned = (file, before)
            return on_line

        return on_line

    def _go_on(self) -> None:
        long = len(self.recording.steps) > MOST_STEPS or len(self.recording.draws) > MOST_DRAWS
        if long or own_seconds() > self.recorder.deadline:
            raise _Stop

    # What is drawn.

    def draw(self, name: str, call: Callable[..., object], given: tuple[Any, ...], named: dict[str, Any]) -> object:
        """Draw, and note it where it is asked for by no other draw."""
        if self.inside or threading.get_ident() != self.thread:
            return call(*given, **named)
        self.inside += 1
        try:
            value = call(*given, **named)
        finally:
            self.inside -= 1
        self._numpy_draw(name, given, named, value)
        return value

    def _numpy_draw(self, name: str, given: tuple[object, ...], named: dict[str, object], value: object) -> None:
        place = self._place(sys._getframe(2))
        family, settings, drawn = name, dict[str, Floats](), _numbers(value)
        if name in NOISE:
            family, location, scale = NOISE[name]
            parameters = dict(zip(filter(None, (location, scale)), given, strict=False)) | named
            width = _numbers(parameters.get(scale, 1.0) if scale else 1.0)
            centre = _numbers(parameters.get(location, 0.0) if location else 0.0)
            if width is not None and scale == "lambd":
                with np.errstate(divide="ignore"):
                    width = 1 / width
            drawn = _standard(drawn, centre, width)
            settings = {} if width is None or scale is None else {"scale": width}
        elif name in UNIFORM:
            family = "uniform"
            if name == "uniform":
                ends = dict(zip(("low", "high"), given, strict=False)) | named
                low = _numbers(ends.get("low", ends.get("a", 0.0)))
                high = _numbers(ends.get("high", ends.get("b", 1.0)))
                drawn = None if low is None or high is None else _standard(drawn, low, _less(high, low))
        else:
            drawn = None
        probabilities = _probabilities(name, given, named)
        self._note(
            place, name=name, family=family, settings=settings, size=_size(value), standard=drawn,
            probabilities=probabilities,
        )  # fmt: skip

    def _own_draw(self, frame: FrameType, given: Mapping[str, object], value: object) -> None:
        name = frame.f_code.co_name
        scale = _numbers(given.get("scale"))
        settings = {} if scale is None else {"scale": scale}
        standard = _standard(_numbers(value), np.zeros(1), scale)
        place, family = self._place(frame.f_back), OWN_NOISE[name]
        self._note(place, name=name, family=family, settings=settings, size=_size(value), standard=standard)

    def _library_draw(self, frame: FrameType, given: Mapping[str, object], value: object) -> None:
        """A call of `randomise`, of whatever class."""
        thing = given.get("self")
        settings = {}
        for name in SETTINGS:
            number = getattr(thing, name, None)
            if isinstance(number, int | float) and not isinstance(number, bool):
                settings[name] = np.array([number], float)
        before, after = _numbers(given.get("value")), _numbers(value)
        changed = None if before is None or after is None else _standard(after, before, np.ones(1))
        place = self._place(frame.f_back) or self._place(frame)
        name = type(thing).__name__
        family = f"{type(thing).__module__.partition('.')[0]}'s {name}"
        self._note(
            place, name=name, family=family, settings=settings, size=_size(value), standard=changed, value=before
        )

    def _note(self, place: Place | None, **known: Any) -> None:
        """Append a draw, of which the rest is known; `place`: None where it is of no line of the user's."""
        draws = self.recording.draws
        draws.append(Draw(place=place or ("", 0), step=len(self.recording.steps), **known))
        if len(draws) % LOOKS == 0:
            self._go_on()

    def _place(self, frame: FrameType | None) -> Place | None:
        while frame is not None and frame is not self.base:
            if self.recorder.kind(frame.f_code) == "own":
                return frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back
        return None


_active: _Run | None = None


@cache
def _recorded(name: str, original: Callable[..., object], *, method: bool = True) -> Callable[..., object]:
    """What draws, and notes it; `method`: what it is given first is the object. Made once: each recorder has 90."""

    @wraps(original)
    def drawing(*given: Any, **named: Any) -> object:
        run = _active
        if run is None:
            return original(*given, **named)
        if not method:
            return run.draw(name, original, given, named)
        return run.draw(name, lambda *_, **__: original(*given, **named), given[1:], named)

    return drawing


class RecordingGenerator(np.random.Generator):
    """A generator whose draws are noted while a run is recorded."""


class RecordingRandomState(np.random.RandomState):
    """The same of the older kind."""


for _name in NUMPYS:
    setattr(RecordingGenerator, _name, _recorded(_name, getattr(np.random.Generator, _name)))
for _name in LEGACY:
    if hasattr(np.random.RandomState, _name):
        setattr(RecordingRandomState, _name, _recorded(_name, getattr(np.random.RandomState, _name)))

#: The code of the functions of `dpwitness.noise`.
_NOISE_CODE: Final = {getattr(noise, name).__code__: name for name in OWN_NOISE}
_INSTALLED: Final = {"site-packages", "dist-packages"}
_PACKAGE: Final = os.path.realpath(Path(noise.__file__).parent)
_NOT_OWN: Final = tuple(
    os.path.realpath(folder) + os.sep
    for folder in (_PACKAGE, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
)


#: The bundled targets, which are written as a user's are.
_TARGETS: Final = os.path.join(_PACKAGE, "algorithms") + os.sep


@contextmanager
def _patched(replacements: Iterable[tuple[object, str, object]]) -> Iterator[None]:
    """Put other values in modules, classes and dicts of variables: where, under which name, which value."""
    undo: list[Callable[[], None]] = []
    interrupted: KeyboardInterrupt | None = None
    try:
        for holder, name, value in replacements:
            undo.append(_restoring(holder, name))
            _put(holder, name, value)
        yield
    finally:
        while undo:
            try:
                undo[-1]()
                undo.pop()
            except KeyboardInterrupt as error:  # what was replaced comes back first
                interrupted = error
        if interrupted is not None:
            raise interrupted


_MISSING: Final = object()
_FUNCTIONS: Final = (FunctionType, MethodType, BuiltinFunctionType, type(np.random.default_rng))


def _put(holder: object, name: str, value: object) -> None:
    if isinstance(holder, dict):
        holder[name] = value
    else:
        setattr(holder, name, value)


def _restoring(holder: object, name: str) -> Callable[[], None]:
    """What puts back what a module, a class or a dict of variables has under a name now; safe to call twice."""
    space = holder if isinstance(holder, dict) else vars(holder)
    old = space.get(name, _MISSING)

    def restore() -> None:
        if old is not _MISSING:
            _put(holder, name, old)
        elif isinstance(holder, dict):
            holder.pop(name, None)
        elif name in vars(holder):
            delattr(holder, name)

    return restore


def _replacements(spaces: Iterable[dict[str, object]]) -> list[tuple[object, str, object]]:
    """The functions that are replaced, by what: a module, class or dict of variables, a name, and what stands there."""
    known: dict[object, Any] = {}

    def global_function(module: object, name: str) -> tuple[object, str, object]:
        original = getattr(module, name)
        known[_identity(original)] = drawing = _recorded(name, original, method=False)
        return module, name, drawing

    made = [global_function(np.random, name) for name in LEGACY]
    made += [global_function(random, name) for name in PYTHONS if hasattr(random, name)]
    made += [(random.Random, name, _recorded(name, getattr(random.Random, name))) for name in PYTHONS
             if hasattr(random.Random, name)]  # fmt: skip
    for name in ("random", "getrandbits"):  # of the operating system, which no seed repeats
        made.append((random.SystemRandom, name, _seeded(name, getattr(random.SystemRandom, name))))
    original = np.random.default_rng

    @wraps(original)
    def default_rng(seed: Any = None) -> np.random.Generator:
        if (run := _run_of_thread()) is None or isinstance(seed, RecordingGenerator):
            return original(seed)
        bits = np.random.PCG64(run.seed()) if seed is None else original(seed).bit_generator
        return RecordingGenerator(bits)

    known[_identity(original)] = default_rng
    made.append((np.random, "default_rng", default_rng))
    for space in spaces:
        for name, value in list(space.items()):
            if isinstance(value, _FUNCTIONS) and (new := known.get(_identity(value))) is not None:
                made.append((space, name, new))
    return made


def _identity(function: Any) -> object:
    """What tells functions apart: a bound method is another object each time."""
    own = getattr(function, "__self__", None)
    return id(function) if own is None else (id(own), function.__name__)


def _seeded(name: str, original: Callable[..., Any]) -> Callable[..., object]:
    """A method of `random.SystemRandom` that draws from a run's seed, in the run's thread alone."""

    @wraps(original)
    def drawing(self: random.SystemRandom, *given: Any) -> object:
        if (run := _run_of_thread()) is None:
            return original(self, *given)
        return run.draw(name, lambda *_: _PYTHON[name](run.python, *given), given, {})

    return drawing


def _run_of_thread() -> _Run | None:
    """The run that is recorded, where this is its thread."""
    return _active if _active is not None and _active.thread == threading.get_ident() else None


#: As they are while nothing is replaced.
_PYTHON: Final = {name: getattr(random.Random, name) for name in ("random", "getrandbits")}


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
            if numbers.dtype.kind in "biuf" and 0 < numbers.size <= KEPT:
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


def _less(high: Floats, low: Floats) -> Floats | None:
    return high - low if 1 in (len(high), len(low)) or len(high) == len(low) else None


def _size(value: object) -> int:
    """How many numbers were drawn."""
    if isinstance(value, np.ndarray):
        return int(value.size)
    return len(value) if isinstance(value, list | tuple | bytes) else 1


def _probabilities(name: str, given: tuple[object, ...], named: Mapping[str, object]) -> Floats | None:
    if name not in PROBABILITIES:
        return None
    at = PROBABILITIES[name]
    found = _numbers(named.get("p", named.get("pvals", given[at] if len(given) > at else None)))
    if found is None or not np.all((found >= 0) & (found <= 1)):
        return None
    if name == "binomial":
        trials = _numbers(named.get("n", given[0] if given else None))
        if trials is None or not np.all(trials == 1) or len(found) != 1:
            return None
        return np.array([1 - found[0], found[0]])
    return found if math.isclose(found.sum(), 1, abs_tol=1e-6) else None
