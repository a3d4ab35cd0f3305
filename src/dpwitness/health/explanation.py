"""The line at which a refuted mechanism may leak, from runs on D and on D′ with the same seeds, draw by draw.

The draws are compared in this order: settings and probabilities, number of draws and the branch that decides it,
outputs without their noise. An explanation is for people and is not evidence. A wrong explanation misleads, so there is
no explanation if several lines may be the cause.
"""

import dataclasses
import inspect
import linecache
import math
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpwitness.arrays import RELATIVE_ROUNDING, Floats
from dpwitness.checks import INTERRUPTS
from dpwitness.claims import Claim
from dpwitness.files import as_utf8
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.recording import CannotRecord, Draw, Place, Recorder, Recording
from dpwitness.neighbours import Pair
from dpwitness.results.witness import Cause, Explanation
from dpwitness.runs import Role, Runner, generator

#: Sides has the values of all runs on D, and of all runs on D′.
Sides = Sequence[Sequence[Any]]

#: RECORDING_SECONDS is the time in seconds for all recorded runs, added to three times their time without recording.
RECORDING_SECONDS: Final = 1.0
#: MOST_ENTRIES is the largest number of entries of an output; mechanisms with larger outputs are not recorded.
MOST_ENTRIES: Final = 4096
#: MOST_COMPARED_VALUES is the largest number of entries, and of numbers drawn in a run, that are compared.
MOST_COMPARED_VALUES: Final = 512
#: LAPLACE_FAMILIES has the families of noise whose scale determines ε.
LAPLACE_FAMILIES: Final = ("Laplace", "two-sided geometric")
#: GAUSSIAN_FAMILIES has the families of noise whose scale determines μ.
GAUSSIAN_FAMILIES: Final = ("Gaussian", "discrete Gaussian")


def explain(runner: Runner, function: object, claim: Claim, pair: Pair) -> Explanation | None:
    """The line at which runs on D and D′ part; None if several lines may be the cause, or without a recording.

    `function`: the user's own function. The explanation takes about a second at most, or a few runs of a slow
    mechanism. It raises only `KeyboardInterrupt` and changes no state.
    """
    mechanism = runner.mechanism.plain or runner.mechanism
    if not mechanism.in_process:
        return None
    try:
        recorded = _record_runs(mechanism, function, pair, runner)
        return None if recorded is None else RecordingComparison(claim, recorded).explanation()
    except INTERRUPTS:
        raise
    except BaseException:  # an exception of a recorded object must not lose the verdict
        return None


def _record_runs(
    mechanism: Mechanism, function: object, pair: Pair, runner: Runner
) -> tuple[list[Recording], list[Recording]] | None:
    """Recorded runs on D and on D′ from the same seeds; None if a seed does not repeat a run, or time is short."""
    seconds = runner.mechanism.cost.seconds_per_run
    numbers = ((2e-3, 20), (0.5, 4))  # pairs of runs, by the largest seconds of a run
    pairs = next((number for most, number in numbers if seconds <= most), 0)
    if not pairs:
        return None
    signature = mechanism.signature
    if signature.original is None and inspect.isfunction(getattr(signature.function, "py_func", signature.function)):
        signature = signature.interpreted()  # draws of numba's machine code cannot be recorded
    limit = time.perf_counter() + RECORDING_SECONDS + 3 * (2 * pairs + 1) * seconds
    recorder = Recorder(root=_package(function), deadline=limit)

    def record(data: object, number: int) -> Recording:
        value = mechanism.conversion.source(data)()
        size = None if signature.size is None else 1

        def call(rng: np.random.Generator) -> object:
            output: Any = signature.call(value, rng, size)
            return output if size is None else output[0]

        with np.errstate():  # restores the settings that the mechanism changes by np.seterr
            recording = recorder.record(call, generator(runner.seed, Role.HEALTH_EXPLANATION, number).bit_generator)
        if recording.error is not None and mechanism.errors == "raise":
            raise CannotRecord
        if mechanism.outcome is not None and recording.error is None:
            recording.output = mechanism.outcome(recording.output)
        recording.output = entries_of(recording.output)
        return recording

    first, second = list[Recording](), list[Recording]()
    try:
        again = record(pair.data, 0)
        for number in range(pairs):
            first.append(record(pair.data, number))
            if not number and (first[0].output, first[0].error) != (again.output, again.error):
                return None  # a draw is not recorded, or the mechanism keeps state
            second.append(record(pair.neighbour, number))
    except CannotRecord:
        if time.perf_counter() < limit:
            return None
    # Either 20 or 4 pairs count, not as many as the time allows: a repeated check seldom gives another explanation.
    done = next((number for _, number in numbers if number <= len(second)), 0)
    return (first[:done], second[:done]) if done else None


def _package(function: object) -> str | None:
    """The folder of a mechanism's installed package, whose code counts as the user's own; None without a package.

    A function that stands for another function, as in a sweep's case, names the other's module in `of_module`.
    """
    thing = getattr(function, "py_func", function)
    name = getattr(thing, "__module__", None) if hasattr(thing, "__qualname__") else type(thing).__module__
    root = str(getattr(thing, "of_module", name) or "").partition(".")[0]
    file = getattr(sys.modules.get(root), "__file__", None)
    if root in ("", "builtins", "dpwitness", "__main__") or file is None or Path(file).name != "__init__.py":
        return None
    return os.path.realpath(Path(file).parent)


def shown_file(file: str) -> str:
    """The path of a file from the working folder or the packages' folder, else its name, such as "<stdin>"."""
    if file.startswith("<"):
        return file
    path = Path(os.path.realpath(file))
    parts = path.parts
    for folder in ("site-packages", "dist-packages"):
        if folder in parts:
            return "/".join(parts[len(parts) - parts[::-1].index(folder) :])
    here = Path(os.path.realpath("."))
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.name


def entries_of(output: object) -> tuple[object, ...]:
    """The numbers, texts and keys of an output, every NaN as `math.nan`. Raises `CannotRecord` for other outputs."""
    found: list[Any] = []
    waiting = [output]
    while waiting:
        one = waiting.pop()
        if isinstance(one, np.ndarray | np.generic) and one.dtype.kind in "biufc" and one.size <= MOST_ENTRIES:
            found += np.asarray(one).ravel().tolist()
        elif isinstance(one, int | float | complex | str | bytes | type(None)):
            found.append(one)
        elif isinstance(one, np.ndarray | list | tuple) and len(one) <= MOST_ENTRIES:
            waiting += reversed(list(one))
        elif isinstance(one, dict) and len(one) <= MOST_ENTRIES:
            waiting += reversed([part for key, value in one.items() for part in (str(key), value)])
        elif dataclasses.is_dataclass(one) and not isinstance(one, type):
            waiting.append({part.name: getattr(one, part.name) for part in dataclasses.fields(one)})
        elif hasattr(one, "to_numpy"):
            waiting.append(one.to_numpy())
        else:
            raise CannotRecord
        if len(found) + len(waiting) > MOST_ENTRIES:
            raise CannotRecord
    return tuple(math.nan if value != value else value for value in found)  # tuples with the same NaN object are equal


@dataclass(frozen=True, slots=True)
class DrawnColumn:
    """The values of one draw, as standard noise of a family; shape (2, runs) for D and D′."""

    draw: Draw
    family: str
    values: Floats


@dataclass(frozen=True, slots=True)
class Fit:
    """An entry that equals constant + factor · draw in all runs; both coefficients are given for D and for D′."""

    column: DrawnColumn
    factors: tuple[float, float]
    constants: tuple[float, float]

    @property
    def shift(self) -> float:
        """The difference of the entry between D and D′ without noise, in units of the noise's scale."""
        return (self.constants[0] - self.constants[1]) / self.factors[0]


class RecordingComparison:
    """Recordings on D and D′ from the same seeds in the same order, and the explanations by their differences."""

    def __init__(self, claim: Claim, sides: tuple[Sequence[Recording], Sequence[Recording]]) -> None:
        self.claim = claim
        self.sides = sides
        self.pairs = len(sides[0])
        self.drawing = any(run.draws for side in sides for run in side)

    def explanation(self) -> Explanation | None:
        """The explanation by the first clear difference; None without a difference."""
        same = all(_kinds(first) == _kinds(second) for first, second in zip(*self.sides, strict=True))
        return self.settings() or (self.outputs() if same else self.flow())

    def _explain_at(self, cause: Cause, place: Place | None, text: str, *on: str) -> Explanation | None:
        """The explanation at a place, None if the place is unknown; `on`: the values on D and on D′ as texts."""
        if place is None or place[1] < 1:
            return None
        file, line = as_utf8(shown_file(place[0])), place[1]
        return Explanation(
            cause=cause, file=file, line=line, text=text, on_data=on[0], on_neighbour=on[1], pairs=self.pairs
        )

    @property
    def seldom_alike(self) -> bool:
        """Whether a mechanism that keeps the claim rarely returns one value in all runs on D, another in all on D′.

        Randomised response at ε = 4 does so in every second check of twenty pairs of runs.
        """
        rates = (1 - np.geomspace(1e-6, 0.5, 60)).tolist()
        most = max(p * (1 - self.claim.smallest(p, self.claim.parameter)) for p in rates)
        return bool(most**self.pairs < 0.1)

    # Settings and probabilities of draws.

    def settings(self) -> Explanation | None:
        """The explanation by the first draw with a setting, such as a scale, constant on D and on D′ but not equal."""
        for i in range(min(len(run.draws) for side in self.sides for run in side)):
            draws = [[run.draws[i] for run in side] for side in self.sides]
            if len({(draw.name, draw.place) for side in draws for draw in side}) > 1 or (i and not self.seldom_alike):
                return None
            found = self._explain_setting(draws) or self._explain_probabilities(draws)
            if found is not None:
                return found
        return None

    def _explain_setting(self, draws: Sequence[Sequence[Draw]]) -> Explanation | None:
        for name in draws[0][0].settings:
            # A scale that varies between runs of one input depends on earlier draws, and may be private.
            both = _constants([[_range(draw.settings.get(name)) for draw in side] for side in draws])
            if both is None or None in both or np.allclose(*both, rtol=RELATIVE_ROUNDING, atol=0):
                continue
            on = [f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}" for low, high in both]
            text = f"{name} {on[0]} on D, {on[1]} on D′: the {name} depends on the data"
            return self._explain_at("scale", draws[0][0].place, text, f"{name} {on[0]}", f"{name} {on[1]}")
        return None

    def _explain_probabilities(self, draws: Sequence[Sequence[Draw]]) -> Explanation | None:
        """The explanation by probabilities of a draw's outcomes that differ more than the claim allows."""
        both = _constants([[draw.probabilities for draw in side] for side in draws])
        if both is None or None in both or len(both[0]) != len(both[1]):
            return None
        for p, q in (both, both[::-1]):
            worst = max(range(len(p)), key=lambda k: p[k] - self.claim.largest(q[k]))
            if p[worst] > self.claim.largest(q[worst]) * (1 + RELATIVE_ROUNDING) + RELATIVE_ROUNDING:
                on = [f"{one[worst]:.4g}" for one in both]
                text = f"outcome {worst} has probability {on[0]} on D, {on[1]} on D′, which the claim does not allow"
                return self._explain_at("probabilities", draws[0][0].place, text, *(f"probability {one}" for one in on))
        return None

    # The number of draws.

    def flow(self) -> Explanation | None:
        """The explanation by a number of draws that differs between D and D′, or by the branch that decides it."""
        first, second = (side[0] for side in self.sides)
        ways = [[tuple((d.name, d.size, d.place) for d in run.draws) for run in side] for side in self.sides]
        if _constants(ways) is None:
            return None
        at = _first_difference(_kinds(first), _kinds(second))
        following = [run.draws[at] for run in (first, second) if at < len(run.draws)]
        if any(draw.family in ("", "uniform") for draw in following):
            return None  # a sample of the records may differ in size, and so may all later draws
        branch = _branch_of(first, second, at)
        if branch is not None and not branch.of_loop:
            times = [_times(len(run.draws)) for run in (first, second)]
            text = f"D {branch.on[0]}, D′ {branch.on[1]}; D draws {times[0]} in all, D′ {times[1]}"
            return self._explain_at("branch", branch.place, text, *branch.on)
        places = [draw.place for draw in following]
        sizes = [[[d.size for d in run.draws if d.place == place] for run in (first, second)] for place in places]
        k = next((k for k, (left, right) in enumerate(sizes) if left and right and sum(left) != sum(right)), 0)
        left, right = sizes[k]
        on = [_times(len(one)) if len(left) != len(right) else f"{sum(one)} numbers" for one in (left, right)]
        if on[0] == on[1]:
            return None
        return self._explain_at("draws", places[k], f"D draws {on[0]}, D′ {on[1]}", *(f"draws {one}" for one in on))

    # Outputs.

    def outputs(self) -> Explanation | None:
        """The explanation by an exact value in outputs of runs with the same draws, or by noise that is too small."""
        rows = [[run.output for run in side] for side in self.sides]
        widths = _constants([[*map(len, side)] for side in rows])
        if any(run.error is not None for side in self.sides for run in side) or rows[0] == rows[1] or widths is None:
            return None
        if widths[0] != widths[1]:
            if self.drawing and not self.seldom_alike:
                return None
            on = [f"returns {width} values" for width in widths]
            return self._explain_exact(f"D {on[0]}, D′ {on[1]}, in every run", on)
        entries = [*zip(*(zip(*side, strict=True) for side in rows), strict=True)]
        for j, sides in enumerate(entries):
            if (found := self._explain_constant(entries, j) or self._explain_one_side(sides)) is not None:
                return found
        return self._explain_noise(self._fits(entries))

    def _entry(self, j: int) -> str:
        """The name of an entry: the text before a number, as its key in a dict; else the entry's index, from 0."""
        output = self.sides[0][0].output
        named = j > 0 and isinstance(output[j - 1], str) and not isinstance(output[j], str)
        return f"entry {output[j - 1]!r}" if named else f"entry {j}"

    def _explain_constant(self, entries: Sequence[Sides], j: int) -> Explanation | None:
        """The explanation by an entry with one value in all runs on D, and a different value in all runs on D′."""
        both = _constants(entries[j])
        if both is None or len({*both}) == 1:
            return None
        # Noise may give one flag or integer in all runs by chance, unless another entry shows that noise varies.
        real = any(isinstance(value, float) and not value.is_integer() for value in both)
        counted = all(type(value) is int for value in both) and any(
            len({*first, *second}) == 2 * self.pairs for first, second in entries
        )
        if self.drawing and not ((real and self.seldom_alike) or counted):
            return None
        on = [f"returns {_text(value)}" + ("" if len(entries) == 1 else f" as {self._entry(j)}") for value in both]
        return self._explain_exact(f"D {on[0]}, D′ {_text(both[1])}, in every run", on)

    def _explain_one_side(self, sides: Sides) -> Explanation | None:
        """The explanation by an entry with one value in all runs on one side, and distinct values on the other side."""
        several = [len({*values}) for values in sides]
        if sorted(several) != [1, self.pairs]:
            return None
        exact = several.index(1)
        value = _text(sides[exact][0])
        on = [f"returns {value} in every run" if side == exact else "returns noise" for side in (0, 1)]
        here, there = ("D′", "D") if exact else ("D", "D′")
        return self._explain_exact(
            f"{here} returns {value} in every run, {there} another value in each", on, branch_first=True
        )

    def _explain_exact(self, text: str, on: Sequence[str], *, branch_first: bool = False) -> Explanation | None:
        """The explanation of an exact value, at the line that returns it, else at the branch of all paired runs."""
        returned = {run.returned for side in self.sides for run in side}
        branches = {None if branch is None else branch.place for branch in map(_branch_of, *self.sides)}
        places = branches if len(returned) > 1 or (branch_first and branches != {None}) else returned
        return self._explain_at("exact", places.pop(), text, *on) if len(places) == 1 else None

    def _columns(self) -> list[DrawnColumn]:
        """The columns of draws that all runs make in one order; empty if orders differ or the draws are too many."""
        runs = [run for side in self.sides for run in side]
        columns: list[DrawnColumn] = []
        if len({*map(_kinds, runs)}) > 1 or sum(draw.size for draw in runs[0].draws) > MOST_COMPARED_VALUES:
            return columns
        for i, draw in enumerate(runs[0].draws):
            standard = [run.draws[i].standard for run in runs]
            if any(one is None for one in standard):
                continue
            for numbers in np.array(standard).reshape(2, self.pairs, draw.size).transpose(2, 0, 1):
                columns.append(DrawnColumn(draw, draw.family, numbers))
                if draw.family == "uniform" and np.all((numbers > 0) & (numbers < 1)):  # perhaps inverted to Laplace
                    centred = numbers - 0.5
                    columns.append(DrawnColumn(draw, "Laplace", -np.sign(centred) * np.log1p(-2 * np.abs(centred))))
        return columns

    def _fits(self, entries: Sequence[Sides]) -> dict[int, Fit]:
        """The fit of each entry that is a constant plus scaled noise on D and on D′, by the entry's index."""
        columns = self._columns()
        if not columns or len(entries) > MOST_COMPARED_VALUES:
            return {}
        drawn = np.array([column.values for column in columns])
        spread = drawn - drawn.mean(axis=2, keepdims=True)
        fits = {}
        for j, sides in enumerate(entries):
            if not all(isinstance(value, int | float) and math.isfinite(value) for values in sides for value in values):
                continue
            entry = np.array(sides, float)
            with np.errstate(divide="ignore", invalid="ignore"):  # a draw may be the same in all runs
                factors = (spread * entry).sum(axis=2) / (spread**2).sum(axis=2)
                rest = entry - factors[:, :, None] * drawn
            close = RELATIVE_ROUNDING * (1 + np.abs(entry).max(axis=1) + np.abs(factors) * np.abs(drawn).max(axis=2))
            same = (np.ptp(rest, axis=2) <= close) & (np.ptp(entry, axis=1) > close)
            found = np.flatnonzero(same.all(axis=1))
            if len(found) == 1:
                k = int(found[0])
                fits[j] = Fit(columns[k], (*factors[k].tolist(),), (*rest[k].mean(axis=1).tolist(),))
        return fits

    def _explain_noise(self, fits: Mapping[int, Fit]) -> Explanation | None:
        """The explanation by noise whose scale depends on the data, that entries share, or that is too small."""
        alike: dict[int, Fit] = {}
        for j, fit in fits.items():
            column, scales = fit.column, [abs(factor) for factor in fit.factors]
            if math.isclose(*scales, rel_tol=1e-6):
                alike[j] = fit
            elif column.draw is self.sides[0][0].draws[0] or self.seldom_alike:
                on = [f"scale {scale:.4g}" for scale in scales]
                text = f"{column.family} noise of {on[0]} on D, {on[1]} on D′: the scale depends on the data"
                return self._explain_at("scale", column.draw.place, text, *on)
        entry_of: dict[int, int] = {}
        for j, fit in alike.items():
            k = entry_of.setdefault(id(fit.column), j)
            if not math.isclose(fit.shift, alike[k].shift, rel_tol=1e-6, abs_tol=1e-6):
                return self._explain_reuse(k, j, alike)
        return self._explain_small_noise({k: alike[k] for k in entry_of.values()})

    def _explain_reuse(self, k: int, j: int, fits: Mapping[int, Fit]) -> Explanation | None:
        """The explanation by two entries with the same noise, whose difference is exact."""
        other, one = fits[k], fits[j]
        ratio = one.factors[0] / other.factors[0]
        on = [f"{mine - ratio * its:.4g}" for mine, its in zip(one.constants, other.constants, strict=True)]
        times = "" if math.isclose(ratio, 1, rel_tol=1e-6) else f"{ratio:.4g} times "
        what = f"{self._entry(j)} less {times}{self._entry(k)}"
        text = f"one draw for two entries: {what} is {on[0]} on D, {on[1]} on D′ in every run"
        return self._explain_at("reuse", one.column.draw.place, text, *on)

    def _explain_small_noise(self, fits: Mapping[int, Fit]) -> Explanation | None:
        """The explanation by noise too small for the difference of outputs; each entry of `fits` has its own draw."""
        shifts = {j: abs(fit.shift) for j, fit in fits.items() if abs(fit.shift) > RELATIVE_ROUNDING}
        families = {fits[j].column.family for j in shifts}
        if len(families) != 1:
            return None
        (family,) = families
        total = math.hypot(*shifts.values()) if family in GAUSSIAN_FAMILIES else sum(shifts.values())
        if _covers_shift(self.claim, family, total):
            return None
        worst = max(shifts, key=lambda j: shifts[j])
        fit, width = fits[worst], len(self.sides[0][0].output)
        entry = "the output" if width == 1 else self._entry(worst)
        scale, apart = abs(fit.factors[0]), abs(fit.constants[0] - fit.constants[1])
        text = f"{family} noise of scale {scale:.4g} on both sides; without it {entry} differs by {apart:.4g}"
        if family in (*LAPLACE_FAMILIES, *GAUSSIAN_FAMILIES):
            others = " with the other entries" if len(shifts) > 1 else ""
            text += f": that is {'ε' if family in LAPLACE_FAMILIES else 'μ'} = {total:.4g}{others}"
        return self._explain_at(
            "noise", fit.column.draw.place, text, *(f"{one:.4g} without noise" for one in fit.constants)
        )


def _constants(sides: Sides) -> tuple[Any, Any] | None:
    """The value on D and the value on D′; None if values vary between the runs of a side."""
    first, second = ({*side} for side in sides)
    return (first.pop(), second.pop()) if len(first) == len(second) == 1 else None


def _range(values: Floats | None) -> tuple[float, float] | None:
    """The smallest and the largest number; None without numbers."""
    return None if values is None or not len(values) else (float(np.min(values)), float(np.max(values)))


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) and not isinstance(value, bool) else repr(value)[:40]


def _times(number: int) -> str:
    return "once" if number == 1 else "never" if number == 0 else f"{number} times"


def _kinds(run: Recording) -> tuple[tuple[str, int], ...]:
    return tuple((draw.name, draw.size) for draw in run.draws)


def _first_difference(left: Sequence[object], right: Sequence[object]) -> int:
    """The first index at which two sequences differ."""
    shorter = min(len(left), len(right))
    return next((i for i in range(shorter) if left[i] != right[i]), shorter)


@dataclass(frozen=True, slots=True)
class Branch:
    """A line after which runs on D and D′ go on at different lines (`after`)."""

    place: Place
    after: tuple[int, int]

    @property
    def of_loop(self) -> bool:
        """Whether the line is the head of a loop, which may run once for each record, or cannot be read."""
        return re.match(r".*\b(for|while)\b", linecache.getline(*self.place) or "for") is not None

    @property
    def on(self) -> list[str]:
        """The texts of the steps that the runs on D and on D′ take after the line."""
        return [f"goes on at line {line}" if line else "returns" for line in self.after]


def _branch_of(first: Recording, second: Recording, at: int | None = None) -> Branch | None:
    """The line at which two runs part: anywhere, or between their first `at` draws and the next draw of each.

    After the line each run takes a step that the other never takes. A loop over records with more rounds on one side
    has the same steps on both sides, and is not a branch.
    """
    steps = []
    for run in (first, second):
        begin = run.draws[at - 1].step if at else 0
        end = run.draws[at].step if at is not None and at < len(run.draws) else len(run.steps)
        steps.append(run.steps[max(begin - 1, 0) : end])
    sets = [set(one) for one in steps]
    own = [sets[0] - sets[1], sets[1] - sets[0]]
    for file, before, line in reversed([step for step in steps[0] if step in own[0]]):
        others = [after for other, start, after in own[1] if (other, start) == (file, before)]
        if len(others) == 1:
            return Branch((file, before), (line, others[0]))
    # Both runs take the same steps, but one of them leaves a loop earlier.
    k = _first_difference(*steps)
    if k >= min(map(len, steps)):
        return None
    (file, before, line), (other, start, after) = steps[0][k], steps[1][k]
    branch = Branch((file, before), (line, after))
    return None if (file, before) != (other, start) or branch.of_loop else branch


def _covers_shift(claim: Claim, family: str, shift: float) -> bool:
    """Whether Laplace or Gaussian noise keeps a claim for outputs `shift` scales apart; False for other families.

    Half-lines are tried, as they show the most for such noise.
    """
    from scipy.special import ndtr  # takes 0.1 s to import

    def tail(x: Floats) -> Floats:
        if family in GAUSSIAN_FAMILIES:
            return np.asarray(ndtr(-x))
        below = 0.5 * np.exp(-np.abs(x))
        return np.where(x > 0, below, 1 - below)

    heights = np.linspace(-40.0, 40.0, 801)
    return family in (*LAPLACE_FAMILIES, *GAUSSIAN_FAMILIES) and all(
        p <= claim.largest(float(q)) * (1 + 1e-6) + 1e-12
        for p, q in zip(tail(heights - shift), tail(heights), strict=True)
    )
