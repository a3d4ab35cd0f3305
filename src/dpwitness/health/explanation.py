"""Where a refuted mechanism may leak: runs on D and on D′ that draw from the same seeds, compared draw by draw.

In this order: runs are recorded → a scale or a probability that follows from the data → another number of draws, or a
branch → what the outputs are without their noise. What is found is an explanation for people, and no evidence. A wrong
one misleads, so nothing is said where more than one place comes into question.
"""

import dataclasses
import inspect
import linecache
import math
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.checks import INTERRUPTS
from dpwitness.claims import Claim
from dpwitness.files import as_utf8
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.recording import FAMILY, OWN_NOISE, CannotRecord, Draw, Place, Recorder, Recording
from dpwitness.neighbours import Pair
from dpwitness.results.witness import Cause, Explanation
from dpwitness.runs import Role, Runner, generator

Floats = NDArray[np.float64]

#: Pairs of runs by the seconds of a run; of slower mechanisms none.
PAIRS: Final = ((2e-3, 20), (2e-2, 8), (0.2, 4), (1.0, 2))
#: Seconds in all, for those whose runs are short.
SECONDS: Final = 1.0
#: Paired runs at least, where something is said of all of them: the first two settle what the others are compared with.
FEWEST: Final = 4
#: Entries of an output at most, what is looked at of them, and of the numbers drawn in a run.
MOST_ENTRIES: Final = 4096
ENTRIES: Final = 64
COLUMNS: Final = 512
#: Numbers are equal to this part.
SAME: Final = 1e-9
#: The probability, at most, with which all recorded runs of a side may be alike by chance where that is said of them,
#: and the rates of an outcome on D at which it is computed.
ALIKE: Final = 0.1
RATES: Final = (1 - np.geomspace(1e-6, 0.5, 60)).tolist()
#: Heights at which the tail of noise is compared with the claim.
TAIL: Final = np.linspace(-40.0, 40.0, 801)

#: Distributions of the noise that a uniform number is turned into, by what usually turns it.
TURNED: Final[Sequence[tuple[str, Callable[[Floats], Floats]]]] = (
    ("uniform", lambda u: u),
    ("Laplace", lambda u: np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u)))),
    ("Gaussian", lambda u: _special().ndtri(u)),
    ("logistic", lambda u: np.log(u) - np.log1p(-u)),
    ("exponential", lambda u: -np.log1p(-u)),
    ("exponential", lambda u: -np.log(u)),
    ("Gumbel", lambda u: -np.log(-np.log(u))),
)
#: What noise is asked to be, for people.
ASKED: Final = ("scale", "sensitivity", "epsilon")
#: Lines that records alone take more or less often.
LOOP: Final = re.compile(r".*\b(for|while)\b")
LAPLACE: Final = ("Laplace", "two-sided geometric")
GAUSSIAN: Final = ("Gaussian", "discrete Gaussian")
#: The probability that standard noise exceeds a number, of the families of which that is known.
TAILS: Final[Mapping[str, Callable[[Floats], Floats]]] = {
    **dict.fromkeys(LAPLACE, lambda x: np.where(x > 0, 0.5 * np.exp(-np.abs(x)), 1 - 0.5 * np.exp(-np.abs(x)))),
    **dict.fromkeys(GAUSSIAN, lambda x: np.asarray(_special().ndtr(-x))),
}
#: Draws that are noise, and no sample of records.
FAMILIES: Final = frozenset({*(family for family, _, _ in FAMILY.values()), *OWN_NOISE.values()}) - {"uniform"}


def explained(runner: Runner, function: object, claim: Claim, pair: Pair) -> Explanation | None:
    """Where in the code D and D′ part; None where that is not clear, or the mechanism cannot be recorded.

    `function`: the user's own. It takes about a second at most, or a few runs of a slow mechanism, raises nothing but
    `KeyboardInterrupt`, and leaves everything as it was.
    """
    mechanism = runner.mechanism.plain or runner.mechanism
    if not mechanism.in_process:
        return None
    try:
        recorded = _recorded(mechanism, function, pair, runner)
        if recorded is None:
            return None
        found = Comparison(claim, recorded)
        return found.settings() or (found.outputs() if found.same_draws else found.flow())
    except INTERRUPTS:
        raise
    except BaseException:  # whatever the user's objects do when they are recorded: the verdict stands
        return None


def _recorded(
    mechanism: Mechanism, function: object, pair: Pair, runner: Runner
) -> tuple[list[Recording], list[Recording]] | None:
    """Runs on D and on D′ from the same seeds; None where the same seed gives another run, or there is no time."""
    seconds = runner.mechanism.cost.seconds_per_run
    pairs = next((number for most, number in PAIRS if seconds <= most), 0)
    if not pairs:
        return None
    signature = mechanism.signature
    if signature.original is None and inspect.isfunction(getattr(signature.function, "py_func", signature.function)):
        signature = signature.interpreted()  # numba's machine code draws unseen
    limit = time.perf_counter() + SECONDS + 3 * (2 * pairs + 1) * seconds
    recorder = Recorder(signature.function, signature.original, root=_package(function), deadline=limit)

    def record(data: object, number: int) -> Recording:
        value = mechanism.conversion.source(data)()
        size = None if signature.size is None else 1

        def call(rng: np.random.Generator) -> object:
            output: Any = signature.call(value, rng, size)
            return output if size is None else output[0]

        bits = generator(runner.seed, Role.HEALTH_EXPLANATION, number).bit_generator
        with np.errstate():  # what it sets by np.seterr ends with it
            recording = recorder.record(call, bits)
        if mechanism.outcome is not None and recording.error is None:
            recording.output = mechanism.outcome(recording.output)
        recording.output = entries_of(recording.output)
        if recording.error is not None and mechanism.errors == "raise":
            raise CannotRecord
        return recording

    first, second = list[Recording](), list[Recording]()
    try:
        first.append(record(pair.data, 0))
        again = record(pair.data, 0)
        if not (_equal(first[0].output, again.output) and first[0].error == again.error):
            return None  # something draws that was not found, or it remembers
        second.append(record(pair.neighbour, 0))
        for number in range(1, pairs):
            first.append(record(pair.data, number))
            second.append(record(pair.neighbour, number))
    except CannotRecord:
        if time.perf_counter() < limit:
            return None
    # Where there was less time than it takes: one of few numbers, so that a seed seldom says another one.
    done = next((number for _, number in PAIRS if number <= len(second)), 0)
    return (first[:done], second[:done]) if done else None


def _package(function: object) -> str | None:
    """The folder of the installed package that a mechanism is of, whose code counts as the user's own; or None.

    A function that stands for another one, as that of a sweep's case does, has the module of that as `of_module`.
    """
    thing = getattr(function, "py_func", function)
    name = getattr(thing, "__module__", None) if hasattr(thing, "__qualname__") else type(thing).__module__
    name = getattr(thing, "of_module", name)
    root = str(name or "").partition(".")[0]
    file = getattr(sys.modules.get(root), "__file__", None)
    if root in ("", "builtins", "dpwitness", "__main__") or file is None or Path(file).name != "__init__.py":
        return None
    return os.path.realpath(Path(file).parent)


def shown_file(file: str) -> str:
    """A file without the folders of a machine: from the working folder, from that of installed packages, or its name.

    What was typed in has its own name.
    """
    if file.startswith("<"):
        return file
    path = Path(os.path.realpath(file))
    parts = path.parts
    for folder in ("site-packages", "dist-packages"):
        if folder in parts:
            return "/".join(parts[len(parts) - parts[::-1].index(folder) :])
    here = Path(os.path.realpath("."))
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.name


# Outputs.


def entries_of(output: object) -> tuple[object, ...]:
    """The entries of an output one behind the other: numbers and texts as they are, those of dicts with their names.

    Raises `CannotRecord` for an output of another kind, and for one of many entries.
    """
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
    return tuple(found)


def _equal(left: Sequence[object], right: Sequence[object]) -> bool:
    """Whether two rows of entries are the same, NaN like NaN."""
    return len(left) == len(right) and all(map(_alike, left, right))


def _alike(a: object, b: object) -> bool:
    """Whether two entries are the same, NaN like NaN."""
    return bool(a == b or (a != a and b != b))


def _shown(entries: Sequence[object]) -> str:
    """An output on part of a line."""
    texts = [_text(entry) for entry in entries[:3]]
    text = ", ".join(texts) + (", …" if len(entries) > len(texts) else "")
    return text if len(entries) == 1 else f"({text})"


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return repr(value)[:40]
    return f"{value:.4g}"


def _times(number: int) -> str:
    return "once" if number == 1 else "never" if number == 0 else f"{number} times"


@dataclass(frozen=True, slots=True)
class Fit:
    """An entry that is a constant plus a multiple of one number that was drawn, in all runs of a side."""

    column: int
    factor: float
    constant: float


@dataclass(frozen=True, slots=True)
class Column:
    """One number that every run draws, of shape (side, run), as standard noise of a family."""

    draw: int
    family: str
    values: Floats
    scale: float  # asked for of the generator; 1 where it was not


class Comparison:
    """Recordings on both sides, of the same seeds in the same order, and what tells them apart."""

    def __init__(self, claim: Claim, sides: tuple[Sequence[Recording], Sequence[Recording]]) -> None:
        self.claim = claim
        self.sides = sides
        self.pairs = len(sides[0])

    def _found(self, cause: Cause, place: Place, text: str, on_data: str, on_neighbour: str) -> Explanation | None:
        file, line = place
        if line < 1:
            return None
        return Explanation(
            cause=cause, file=as_utf8(shown_file(file)), line=line, text=text, on_data=on_data,
            on_neighbour=on_neighbour, pairs=self.pairs,
        )  # fmt: skip

    # What is asked of the generator.

    def settings(self) -> Explanation | None:
        """The first draw whose scale, or another setting, is one on D and another on D′ in every run."""
        shortest = min(len(run.draws) for side in self.sides for run in side)
        for i in range(shortest):
            draws = [[run.draws[i] for run in side] for side in self.sides]
            if len({(draw.name, draw.place) for side in draws for draw in side}) > 1:
                return None
            if i and not self.seldom_alike:
                return None
            for name in draws[0][0].settings:
                widths = [{_range(draw.settings.get(name)) for draw in side} for side in draws]
                # One that differs between runs of one input follows from earlier draws, and may be private.
                if any(len(one) != 1 for one in widths):
                    continue
                (left,), (right,) = widths
                if left is None or right is None or np.allclose(left, right, rtol=SAME, atol=0):
                    continue
                on = [_interval(left), _interval(right)]
                text = f"{name} {on[0]} on D, {on[1]} on D′: the {name} depends on the data"
                return self._found("scale", draws[0][0].place, text, f"{name} {on[0]}", f"{name} {on[1]}")
            if (found := self._probabilities(draws) or self._sensitivity(draws)) is not None:
                return found
        return None

    def _sensitivity(self, draws: Sequence[Sequence[Draw]]) -> Explanation | None:
        """Noise of a library that is added to numbers farther apart than the sensitivity that it was asked for."""
        numbers: list[float] = []
        for side in draws:
            values = {math.nan if draw.value is None or draw.value.size != 1 else float(draw.value[0]) for draw in side}
            if len(values) != 1:  # it differs between runs of one input: it follows from earlier draws
                return None
            numbers.append(values.pop())
        one = draws[0][0]
        asked = float(np.max(one.settings.get("sensitivity", math.inf)))
        apart = abs(numbers[0] - numbers[1])
        if not apart > asked + SAME * max(abs(numbers[0]), abs(numbers[1])):
            return None
        on = [f"{number:.4g}" for number in numbers]
        text = f"noise of sensitivity {asked:.4g} is added to {on[0]} on D, {on[1]} on D′, which differ by {apart:.4g}"
        return self._found("noise", one.place, text, *(f"added to {number}" for number in on))

    def _probabilities(self, draws: Sequence[Sequence[Draw]]) -> Explanation | None:
        """Probabilities of outcomes of one draw that are farther apart than the claim allows."""
        rows = [[draw.probabilities for draw in side] for side in draws]
        first, second = rows[0][0], rows[1][0]
        if first is None or second is None or len(first) != len(second):
            return None
        for row, side in zip((first, second), rows, strict=True):
            if any(one is None or not np.array_equal(one, row) for one in side):
                return None
        for p, q in ((first, second), (second, first)):
            worst = max(range(len(p)), key=lambda k: p[k] - self.claim.largest(float(q[k])))
            if p[worst] > self.claim.largest(float(q[worst])) * (1 + SAME) + SAME:
                on = [f"{one[worst]:.4g}" for one in (first, second)]
                text = f"outcome {worst} has probability {on[0]} on D, {on[1]} on D′, which the claim does not allow"
                return self._found("probabilities", draws[0][0].place, text, *(f"probability {one}" for one in on))
        return None

    @property
    def seldom_alike(self) -> bool:
        """Whether it is rare that what the claim allows is alike in all runs on D, and alike and another on D′.

        It may be drawn: randomised response at ε = 4 gives one answer in twenty runs, and the other in twenty of its
        neighbour, in one case of two.
        """
        most = max(p * (1 - self.claim.smallest(p, self.claim.parameter)) for p in RATES)
        return bool(most**self.pairs < ALIKE)

    @property
    def same_draws(self) -> bool:
        """Whether the sides of each pair draw the same numbers."""
        return all(_kinds(first) == _kinds(second) for first, second in zip(*self.sides, strict=True))

    # How often it draws, and where the runs go.

    def flow(self) -> Explanation | None:
        """Another number of draws on D than on D′, and the branch that decides it."""
        kinds = [[_kinds(run) for run in side] for side in self.sides]
        parting = [k for k in range(self.pairs) if kinds[0][k] != kinds[1][k]]
        places = [[tuple(draw.place for draw in run.draws) for run in side] for side in self.sides]
        always = all(len(set(side)) == 1 for side in kinds) and all(len(set(side)) == 1 for side in places)
        if not always:
            return self._branch(parting)
        first, second = self.sides[0][0], self.sides[1][0]
        counts = [Counter[Place]() for _ in self.sides]
        for count, run in zip(counts, (first, second), strict=True):
            for draw in run.draws:
                count[draw.place] += draw.size
        at = _parting(kinds[0][0], kinds[1][0])
        following = [run.draws[at] for run in (first, second) if at < len(run.draws)]
        if any(draw.family not in FAMILIES for draw in following):
            return None  # as a sample of the records, which has another size: the draws behind it are others anyway
        branch = _branch_of(first, second, at)
        if branch is not None and not branch.of_loop:
            times = [_times(len(run.draws)) for run in (first, second)]
            text = f"D {branch.on[0]}, D′ {branch.on[1]}; D draws {times[0]} in all, D′ {times[1]}"
            return self._found("branch", branch.place, text, *branch.on)
        next_places = [draw.place for draw in following]
        for place in next_places:
            left, right = (count[place] for count in counts)
            if left and right and left != right:
                calls = [sum(draw.place == place for draw in run.draws) for run in (first, second)]
                if calls[0] != calls[1]:
                    text = f"D draws {_times(calls[0])}, D′ {_times(calls[1])}"
                    return self._found("draws", place, text, _drawn(calls[0]), _drawn(calls[1]))
                text = f"D draws {left} numbers, D′ {right}"
                return self._found("draws", place, text, f"draws {left} numbers", f"draws {right} numbers")
        on = [_drawn(sum(draw.place == next_places[0] for draw in run.draws)) for run in (first, second)]
        return self._found("draws", next_places[0], f"D {on[0]}, D′ {on[1]}", *on)

    def _branch(self, parting: Sequence[int]) -> Explanation | None:
        """A branch that follows from what was drawn, and at which all pairs of runs part that do."""
        branch = self._one_branch(parting, before_draws=True)
        if branch is None or not self._follows_from_draws(branch):
            return None
        return self._parts_at(branch, len(parting), "after the same draws")

    def _parts_at(self, branch: "Branch", parting: int, when: str) -> Explanation | None:
        """A branch at which so many pairs of runs part, and the first noise that both sides draw."""
        draws = self.sides[0][0].draws
        noise = f" ({_noise(draws[0].family, draws[0].settings)})" if draws else ""
        text = f"here the runs part in {parting} of {self.pairs} pairs, {when}{noise}"
        return self._found("branch", branch.place, text, *branch.on)

    # What comes out.

    def outputs(self) -> Explanation | None:
        """What the outputs on D and on D′ are, of runs that draw the same."""
        rows = [[run.output for run in side] for side in self.sides]
        if self.pairs < FEWEST or any(run.error is not None for side in self.sides for run in side):
            return None
        differing = [k for k in range(self.pairs) if not _equal(rows[0][k], rows[1][k])]
        if not differing:
            return None
        lengths = [{len(row) for row in side} for side in rows]
        if any(len(one) != 1 for one in lengths):
            return self._any_place(differing)
        if lengths[0] != lengths[1]:
            on = [f"returns {one} values" for one in (len(rows[0][0]), len(rows[1][0]))]
            return self._exact(f"D {on[0]}, D′ {on[1]}, in every run", *on)
        width = len(rows[0][0])
        drawing = any(run.draws for side in self.sides for run in side)
        for j in range(width):
            values = [side[0][j] for side in rows]
            same = all(_alike(row[j], side[0][j]) for side in rows for row in side)
            if not same or _alike(*values):
                continue
            # A flag or a whole number may be what noise led to in each of the runs, unless that is another entry.
            real = any(isinstance(value, float) and not value.is_integer() for value in values)
            counted = all(type(value) is int for value in values) and any(
                len({row[k] for side in rows for row in side}) == 2 * self.pairs for k in range(width)
            )
            if drawing and not ((real and self.seldom_alike) or counted):
                continue
            what = "" if width == 1 else f" as entry {j}"
            on = [f"returns {_text(value)}{what}" for value in values]
            return self._exact(f"D {on[0]}, D′ {_text(values[1])}, in every run", *on)
        if (found := self._one_side(rows) or self._repeated(rows)) is not None:
            return found
        columns = self._columns()
        fits = self._additive(rows, columns)
        # Where noise is known, it is what is to be judged: that it covers the difference is the end.
        return self._of_noise(fits, columns, complete=len(fits) == width) if fits else self._any_place(differing)

    def _one_side(self, rows: Sequence[Sequence[Sequence[object]]]) -> Explanation | None:
        """An entry that is the same in every run on one side, and another in each run on the other side."""
        for j in range(len(rows[0][0])):
            several = [len({row[j] for row in side}) for side in rows]
            if sorted(several) != [1, self.pairs]:
                continue
            exact = several.index(1)
            value = _text(rows[exact][0][j])
            on = [f"returns {value} in every run" if side == exact else "returns noise" for side in (0, 1)]
            text = (
                f"{'D′' if exact else 'D'} returns {value} in every run, {'D' if exact else 'D′'} another value in each"
            )
            branch = self._one_branch(range(self.pairs))
            return None if branch is None else self._found("exact", branch.place, text, *on)
        return None

    def _repeated(self, rows: Sequence[Sequence[Sequence[object]]]) -> Explanation | None:
        """A real number that comes in several runs, though not in all, and is another one on the other side."""
        for j in range(len(rows[0][0])):
            values = [[row[j] for row in side] for side in rows]
            if not all(isinstance(value, float) for side in values for value in side):
                continue
            counts = [Counter(side).most_common(1)[0] for side in values]
            (left, often), (right, neighbours) = counts
            several = min(often, neighbours) > 1 and max(often, neighbours) < self.pairs
            if not several or left in values[1] or right in values[0]:
                continue
            branches = []
            for side, (value, _) in zip((0, 1), counts, strict=True):
                with_it = values[side].index(value)
                without = next(k for k, other in enumerate(values[side]) if other != value)
                branches.append(_branch_of(self.sides[side][with_it], self.sides[side][without]))
            places = {None if one is None or not one.after[0] else (one.place[0], one.after[0]) for one in branches}
            place = places.pop()
            if places or place is None:
                continue
            on = [f"returns {value:.4g} in {times} of {self.pairs} runs" for value, times in counts]
            return self._found("exact", place, f"D {on[0]}, D′ {on[1]}, where this line is reached", *on)
        return None

    def _one_branch(self, pairs: Sequence[int], *, before_draws: bool = False) -> "Branch | None":
        """The one branch at which these pairs of runs part; `before_draws`: just before the first draw that differs."""
        branches = []
        for k in pairs:
            first, second = self.sides[0][k], self.sides[1][k]
            at = _parting(_kinds(first), _kinds(second)) if before_draws else None
            branches.append(_branch_of(first, second, at))
        places = {None if branch is None else branch.place for branch in branches}
        return branches[0] if len(places) == 1 else None

    def _exact(self, text: str, on_data: str, on_neighbour: str) -> Explanation | None:
        """An exact value: the branch where the sides part to what they return, else the line that returns it."""
        runs = [side[0] for side in self.sides]
        returned = {run.returned for side in self.sides for run in side}
        if len(returned) == 1:
            (place,) = returned
            return None if place is None else self._found("exact", place, text, on_data, on_neighbour)
        branch = _branch_of(runs[0], runs[1])
        return None if branch is None else self._found("exact", branch.place, text, on_data, on_neighbour)

    def _columns(self) -> list[Column]:
        """The numbers that every run on both sides draws at the same place among its draws."""
        runs = [run for side in self.sides for run in side]
        if len({_kinds(run) for run in runs}) != 1:
            return []
        columns = []
        for i, draw in enumerate(runs[0].draws):
            standard = [run.draws[i].standard for run in runs]
            if any(one is None or len(one) != draw.size for one in standard):
                continue
            table = np.array(standard).reshape(2, self.pairs, draw.size)
            families = TURNED if draw.family == "uniform" else ((draw.family, np.asarray),)
            scale = _range(draw.settings.get("scale"))
            for k in range(draw.size):
                for family, turned in families:
                    with np.errstate(all="ignore"):
                        values = turned(table[:, :, k])
                    if np.all(np.isfinite(values)):
                        columns.append(Column(i, family, values, scale[0] if scale else 1.0))
                if len(columns) > COLUMNS:
                    return []
        return columns

    def _additive(
        self, rows: Sequence[Sequence[Sequence[object]]], columns: Sequence[Column]
    ) -> dict[int, tuple[Fit, Fit]]:
        """The entries that are a number plus noise, on D and on D′."""
        width = len(rows[0][0])
        fits: dict[int, tuple[Fit, Fit]] = {}
        for j in range(min(width, ENTRIES)):
            values = [[row[j] for row in side] for side in rows]
            if any(isinstance(value, str | bytes | complex | type(None)) for side in values for value in side):
                continue
            entry = np.array(values, float)
            if np.all(np.isfinite(entry)) and (both := _fits(entry, columns)) is not None:
                fits[j] = both
        return fits

    def _of_noise(
        self, fits: Mapping[int, tuple[Fit, Fit]], columns: Sequence[Column], *, complete: bool
    ) -> Explanation | None:
        """What is to say of entries that are a number plus noise."""
        alike: dict[int, tuple[Fit, Fit]] = {}
        for j, (first, second) in fits.items():
            column = columns[first.column]
            scales = [abs(fit.factor) for fit in (first, second)]
            if math.isclose(*scales, rel_tol=1e-6):
                alike[j] = first, second
            elif not column.draw or self.seldom_alike:
                on = [f"scale {scale:.4g}" for scale in scales]
                text = f"{column.family} noise of {on[0]} on D, {on[1]} on D′: the scale depends on the data"
                return self._found("scale", self._place_of(column), text, *on)
        complete = complete and len(alike) == len(fits)
        return self._reused(alike, columns) or self._too_little(alike, columns, complete=complete)

    def _draw_of(self, column: Column) -> Draw:
        return self.sides[0][0].draws[column.draw]

    def _place_of(self, column: Column) -> Place:
        return self._draw_of(column).place

    def _reused(self, fits: Mapping[int, tuple[Fit, Fit]], columns: Sequence[Column]) -> Explanation | None:
        """Two entries with one noise: a multiple of one less the other has none."""
        seen: dict[tuple[int, int], int] = {}
        for j, (first, second) in fits.items():
            column = columns[first.column]
            k = seen.setdefault((column.draw, first.column), j)
            if k == j:
                continue
            others = fits[k]
            without = [
                one.constant - one.factor / other.factor * other.constant
                for one, other in zip((first, second), others, strict=True)
            ]
            if math.isclose(*without, rel_tol=SAME, abs_tol=SAME):
                continue
            on = [f"{value:.4g}" for value in without]
            what = (
                f"entry {j} less entry {k}" if math.isclose(first.factor, others[0].factor) else "a difference of both"
            )
            text = f"one draw for entries {k} and {j}: {what} is {on[0]} on D, {on[1]} on D′ in every run"
            return self._found("reuse", self._place_of(column), text, *on)
        return None

    def _too_little(
        self, fits: Mapping[int, tuple[Fit, Fit]], columns: Sequence[Column], *, complete: bool
    ) -> Explanation | None:
        """Noise that does not cover the difference of the outputs without it."""
        shifts = {j: (first.constant - second.constant) / abs(first.factor) for j, (first, second) in fits.items()}
        families = {columns[fits[j][0].column].family for j, shift in shifts.items() if abs(shift) > SAME}
        if len(families) != 1:
            return None
        (family,) = families
        limits = [self._draw_of(columns[fits[j][0].column]).settings.get("sensitivity") for j in shifts]
        if all(
            limit is not None and abs(shift) <= limit[0] * (1 + SAME)
            for shift, limit in zip(shifts.values(), limits, strict=True)
        ):
            return None
        if family in LAPLACE:
            total = sum(map(abs, shifts.values()))
        elif family in GAUSSIAN:
            total = math.sqrt(sum(shift**2 for shift in shifts.values()))
        else:
            total = math.inf
        if _covered(self.claim, family, total):
            return None
        worst = max(shifts, key=lambda j: abs(shifts[j]))
        first, second = fits[worst]
        column = columns[first.column]
        on = [f"{fit.constant:.4g}" for fit in (first, second)]
        entry = "the output" if complete and len(fits) == 1 else f"entry {worst}"
        several = sum(abs(shift) > SAME for shift in shifts.values()) > 1
        sizes = f"{abs(first.constant - second.constant):.4g}"
        draw = self._draw_of(column)
        noise = _noise(
            column.family,
            {"scale": np.array([abs(first.factor)])} if draw.family in (*FAMILIES, "uniform") else draw.settings,
        )
        text = f"{noise} on both sides; without it {entry} differs by {sizes}"
        if family in TAILS:
            sign = "ε" if family in LAPLACE else "μ"
            text += f": that is {sign} = {total:.4g}{' with the other entries' if several else ''}"
        return self._found("noise", self._place_of(column), text, f"{on[0]} without noise", f"{on[1]} without noise")

    def _any_place(self, differing: Sequence[int]) -> Explanation | None:
        """Outputs that differ though all draws are the same, where these are of one line; else the one branch."""
        runs = [run for side in self.sides for run in side]
        places = {draw.place for run in runs for draw in run.draws}
        rows = [[run.output for run in side] for side in self.sides]
        on = [_shown(side[differing[0]]) for side in rows]
        if not places:
            unvarying = all(_equal(row, side[0]) for side in rows for row in side)
            return self._exact(f"D returns {on[0]}, D′ {on[1]}", *on) if unvarying else None
        branch = self._one_branch(differing)
        if branch is not None and not self._follows_from_draws(branch):
            branch = None  # as one that clips a record
        # Of more comparisons than draws not each has noise of its own.
        reached = branch is not None and any(
            len(run.draws) < sum(step[:2] == branch.place for step in run.steps) for run in runs
        )
        if len(places) == 1 and not reached:
            (place,) = places
            draw = runs[0].draws[0] if runs[0].draws else None
            if draw is None or self._harmless(draw, rows):
                return None
            noise = _noise(draw.family, draw.settings)
            text = (
                f"{noise} on both sides; from the same draws the outputs differ in {len(differing)} of {self.pairs} "
                f"pairs, as {on[0]} and {on[1]}"
            )
            return self._found("noise", place, text, f"returns {on[0]}", f"returns {on[1]}")
        if branch is None:
            return None
        return self._parts_at(branch, len(differing), "though all draws are the same")

    def _follows_from_draws(self, branch: "Branch") -> bool:
        """Whether runs on one input take a branch otherwise, depending on what they draw."""
        taken = [{tuple(step for step in run.steps if step[:2] == branch.place) for run in side} for side in self.sides]
        return max(map(len, taken)) > 1

    def _harmless(self, draw: Draw, rows: Sequence[Sequence[Sequence[Any]]]) -> bool:
        """Whether outputs that are real numbers differ by no more than such noise covers."""
        if draw.probabilities is not None:
            return True  # compared with the claim before
        scale = _range(draw.settings.get("scale"))
        values = [entry for side in rows for row in side for entry in row]
        if scale is None or scale[0] != scale[1] or not all(isinstance(value, int | float) for value in values):
            return False
        if all(float(value).is_integer() for value in values if math.isfinite(value)):
            return False
        if len({len(row) for side in rows for row in side}) != 1:
            return False
        with np.errstate(invalid="ignore"):
            gaps = np.abs(np.array(rows[0], float) - np.array(rows[1], float)) / scale[0]
        totals = gaps.sum(axis=1) if draw.family in LAPLACE else np.sqrt((gaps**2).sum(axis=1))
        totals = totals[~np.isnan(totals)]
        return len(totals) > 0 and _covered(self.claim, draw.family, float(totals.max()))


def _range(values: Floats | None) -> tuple[float, float] | None:
    """The least and the largest of some numbers, as a key."""
    return None if values is None or not len(values) else (float(np.min(values)), float(np.max(values)))


def _interval(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.4g}" if ends[0] == ends[1] else f"{ends[0]:.4g} to {ends[1]:.4g}"


def _noise(family: str, settings: Mapping[str, Floats]) -> str:
    """Draws with what was asked of them, for people."""
    noise = family in FAMILIES or family in dict(TURNED)
    kind = f"{family} noise" if noise and family != "uniform" else family if "'s " in family else f"draws of {family}"
    asked = [f"{name} {_interval(ends)}" for name in ASKED if (ends := _range(settings.get(name))) is not None]
    return f"{kind} of {' and '.join(asked)}" if asked else kind


def _drawn(times: int) -> str:
    return f"draws {_times(times)}"


def _kinds(run: Recording) -> tuple[tuple[str, int], ...]:
    return tuple((draw.name, draw.size) for draw in run.draws)


def _parting(left: Sequence[object], right: Sequence[object]) -> int:
    """The first place at which two sequences differ."""
    shorter = min(len(left), len(right))
    return next((i for i in range(shorter) if left[i] != right[i]), shorter)


@dataclass(frozen=True, slots=True)
class Branch:
    """A line behind which two runs go on at different lines."""

    place: Place
    after: tuple[int, int]

    @property
    def of_loop(self) -> bool:
        """Whether it is the head of a loop, or of no file that can be read."""
        return LOOP.match(linecache.getline(*self.place) or "for") is not None

    @property
    def on(self) -> list[str]:
        """What D does behind it, and what D′ does."""
        return [f"goes on at line {line}" if line else "returns" for line in self.after]


def _branch_of(first: Recording, second: Recording, at: int | None = None) -> Branch | None:
    """The line at which two runs part: anywhere, or between their first `at` draws and the next draw of each.

    Each goes on to a line that the other does not go on to from there. A loop over the records that is taken more often
    on one side has the same steps on both, so that it is none.
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
    # Both take the same steps, one of them earlier, as out of a loop.
    k = _parting(*steps)
    if k >= min(map(len, steps)):
        return None
    (file, before, line), (other, start, after) = steps[0][k], steps[1][k]
    branch = Branch((file, before), (line, after))
    return None if (file, before) != (other, start) or branch.of_loop else branch


def _fits(entry: Floats, columns: Sequence[Column]) -> tuple[Fit, Fit] | None:
    """The number drawn of which an entry, of shape (side, run), is a multiple plus a constant on either side."""
    found = []
    for i, column in enumerate(columns):
        both = []
        for values, drawn in zip(entry, column.values, strict=True):
            spread = drawn - drawn.mean()
            if not np.any(spread):
                break
            factor = float(spread @ (values - values.mean()) / (spread @ spread))
            rest = values - factor * drawn
            close = SAME * (1 + float(np.max(np.abs(values))) + abs(factor) * float(np.max(np.abs(drawn))))
            if not factor or float(np.ptp(rest)) > close:
                break
            both.append(Fit(i, factor, float(np.mean(rest))))
        if len(both) == 2:
            found.append((both[0], both[1]))
    return found[0] if len(found) == 1 else None


def _covered(claim: Claim, family: str, shift: float) -> bool:
    """Whether noise of a family keeps a claim for outputs so many of its scales apart; False where that is not known.

    By half lines, which are all events that matter for both families.
    """
    if not math.isfinite(shift) or family not in TAILS:
        return False
    tail, allowed = TAILS[family], SAME + 1e-6
    return all(
        p <= claim.largest(float(q)) * (1 + allowed) + 1e-12
        for p, q in zip(tail(TAIL - shift), tail(TAIL), strict=True)
    )


def _special() -> Any:
    import scipy.special  # 0.1 s, which most violations do without

    return scipy.special
