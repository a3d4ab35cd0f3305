"""Cells whose counts are known, as weights: signed sums of them of a wanted value.

An oracle as a pair of scales: signed sums of cells against one fixed threshold above 0, and a base just below it.

Signed sums of a few cells: such as lie near a value, and the answers about them.

What is thought of the counts of a few cells, relative to one of them, while signed sums of them are compared.

A normal distribution, brought up to date by the moments of the half-space that each answer leaves (assumed-density
filtering).

Whether answers leave room for other counts: the cone of all counts that explain them, by linear programming.

Relative counts of a few cells, from signed sums that are likely to lie near the threshold, and their common unit.

Nothing is known of the cells but that each is positive. Their counts and the gap g between the base and the threshold,
relative to one of the cells, have a normal distribution as a prior; each query is a signed sum of the cells that the
distribution puts about as likely above g as below, so that each answer halves what is possible, and the distribution is
brought up to date by the moments of the half that is left (assumed-density filtering). As soon as whole numbers
explain all answers they are tried on fresh sums next to the threshold. They are known up to a common factor: answers
say nothing of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from dpwitness.reconstruction.threshold_testing.oracle import Cells, Change, Queries, Signs

#: Light cells that are kept apart: all 3^k signed sums of them are at hand.
KEPT: Final = 9
#: How often a sum is tried from other cells where it is not met.
TRIES: Final = 24
#: Ranges so wide have room for any sum near the one that is aimed at.
WIDE: Final = 1 << 40


@cache
def signings(k: int) -> Signs:
    """All signs of k cells, shape (3^k, k)."""
    return np.array(list(product((-1, 0, 1), repeat=k)), np.int8).reshape(3**k, k)


class Weights:
    """Signed sums of known cells on top of a base.

    The heaviest cells that fit make most of a sum, and a few light ones that are kept apart for this the rest: all of
    their signed sums are at hand, so that sums need no cell of one.

    Parameters
    ----------
    base
        Coefficients of the base, shape (cells,); no cell of it is used.
    known, counts
        Which cells are known, and their counts; shape (cells,).
    """

    def __init__(self, base: Signs, known: NDArray[np.bool_], counts: Cells) -> None:
        self._base = base
        free = np.flatnonzero(known & (base == 0) & (counts > 0))
        free = free[np.argsort(counts[free], kind="stable")]
        kept = _kept(counts[free])
        self._light, self._heavy = free[kept], np.delete(free, kept)[::-1]
        self._values = counts[self._heavy]
        self._reach = np.concatenate([[0], np.cumsum(self._values)])
        sums = _sums(tuple(counts[self._light].tolist()))
        self._sums, self._codes = sums

    def between(self, first: int, last: int, aim: int, rng: np.random.Generator) -> tuple[Signs, int] | None:
        """A sum from first to last (inclusive), as near to `aim` as the heaviest cells that fit come; None: none found.

        Returns the coefficients of base and known cells, shape (cells,), and the value of what was added to the base.
        """
        for trial in range(TRIES):
            if trial:
                # Other heavy cells leave another rest.
                used = np.flatnonzero(rng.random(len(self._heavy)) < rng.choice([0.5, 0.9]))
                if (
                    trial % 4 == 3
                ):  # only up to some count: where there are few counts, one of them may stand in the way
                    used = used[self._values[used] <= rng.choice(self._values[used])] if len(used) else used
                heavy, values = self._heavy[used], self._values[used]
                reach = np.concatenate([[0], np.cumsum(values)])
                aim = (
                    int(np.clip(rng.integers(first, last + 1), aim - (1 << 20), aim + (1 << 20))) if trial % 2 else aim
                )
            else:
                heavy, values, reach = self._heavy, self._values, self._reach
            # The light cells' share of the sum, in turn, where heavy and light ones are of few counts.
            share = int(self._sums[rng.integers(len(self._sums))]) if trial % 4 == 3 else 0
            signs, value = self._offset(aim, heavy, values, reach, first, last, share)
            if first <= value <= last:
                return signs, value
        return None

    def nearest(self, aim: int) -> tuple[Signs, int]:
        """A sum near `aim`, as `between` gives it."""
        return self._offset(aim, self._heavy, self._values, self._reach, aim, aim)

    def _offset(
        self, amount: int, heavy: Cells, values: Cells, reach: Cells, first: int, last: int, share: int = 0
    ) -> tuple[Signs, int]:
        """The sum of that amount, or one near it: the largest cells first, but for a share, then the light ones."""
        direction, left = 1 if amount > share else -1, abs(amount - share)
        signs, at = self._base.copy(), 0
        while left > 0 and at < len(heavy):
            at = max(at, int(np.searchsorted(-values, -left)))  # the first weight that is not too heavy
            if at >= len(heavy):
                break
            stop = int(np.searchsorted(reach, reach[at] + left, side="right")) - 1
            signs[heavy[at:stop]] = direction
            left -= int(reach[stop] - reach[at])
            at = stop
        # Signed sums are symmetric about 0.
        made = direction * (abs(amount - share) - left)
        place = int(np.searchsorted(self._sums, amount - made))
        options = [k for k in (place, place - 1) if 0 <= k < len(self._sums)]
        outside = [not first <= made + self._sums[k] <= last for k in options]
        _, _, best = min((out, abs(made + self._sums[k] - amount), k) for out, k in zip(outside, options, strict=True))
        signs[self._light] = self._codes[best]
        return signs, made + int(self._sums[best])


@cache
def _sums(values: tuple[int, ...]) -> tuple[Cells, Signs]:
    """All signed sums of some values, in ascending order, and signs that make each."""
    codes = signings(len(values))
    sums, first = np.unique(codes.astype(np.int64) @ np.array(values, np.int64), return_index=True)
    return sums, codes[first]


def _kept(ascending: Cells) -> Cells:
    """The places of the cells to keep apart: some of each of the smallest counts, then the lightest of the others."""
    _, first, number = np.unique(ascending, return_index=True, return_counts=True)
    each = max(1, KEPT // max(len(first), 1))
    kept = [start + k for start, most in zip(first[: KEPT // 2], number, strict=False) for k in range(min(each, most))]
    rest = np.setdiff1d(np.arange(min(len(ascending), 2 * KEPT)), kept)
    return np.sort(np.concatenate([np.array(kept, np.int64), rest])[:KEPT])


Flags = NDArray[np.bool_]

#: The lightest cells are looked for among so many times as many.
SAMPLE: Final = 6
#: Rounds without progress after which they are looked for no longer.
IDLE: Final = 4


class Scales:
    """Whether a signed sum of cells reaches the noisy threshold z, in a sense in which the empty sum does not.

    If z ≤ 0 all queries are asked negated: −q is ⊥ exactly if q > −z, so that −z stands for z.

    Parameters
    ----------
    oracle
        What may be asked.
    copies, cut
        A sum counts as reaching z where more than a share `cut` of so many copies say so (Theorem 3.5: the majority).
    negated
        The sense, where it is known already.
    """

    def __init__(self, oracle: Queries, *, copies: int = 1, cut: float = 0.5, negated: bool | None = None) -> None:
        self.oracle, self.copies, self._least = oracle, copies, cut * copies
        if negated is None:
            negated = 2 * oracle.ask(np.zeros(oracle.cells, np.int8), copies) > copies
        self.negated = negated

    def above(self, signs: Signs) -> Flags:
        """Whether each of the sums with these coefficients, shape (sums, cells), is at least z."""
        return self._read(self.oracle.ask_all(-signs if self.negated else signs, self.copies))

    def above_each(self, signs: Signs, cells: Cells, change: int) -> Flags:
        """The same for `signs` with `change` added to the coefficient of one of `cells` each."""
        return self.above_changes([(signs, cells, change)])[0]

    def above_changes(self, changes: Sequence[Change]) -> list[Flags]:
        """The same for several such sets of sums, asked at once."""
        if self.negated:
            changes = [(-signs, cells, -change) for signs, cells, change in changes]
        return [self._read(hits) for hits in self.oracle.ask_changes(changes, self.copies)]

    def _read(self, hits: Cells) -> Flags:
        return np.asarray((self.copies - hits if self.negated else hits) > self._least)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Base:
    """A sum below z that every single one of the cells `above` brings to z.

    `signs`: 1 for the cells in it, shape (cells,). The gap, z less the base's sum, is at most the least count of
    `above`.
    """

    signs: Signs
    above: Cells


def lay_base(scales: Scales, rng: np.random.Generator) -> Base:
    """Add cells while the sum stays below z, by bisection over random orders: about two queries a cell.

    `above` is empty where all cells together do not reach z: then no query tells anything.
    """
    signs = np.zeros(scales.oracle.cells, np.int8)
    rest = rng.permutation(len(signs))
    above: list[Cells] = []
    while len(rest):
        stop = _below(scales, signs, rest)
        signs[rest[:stop]] = 1
        if stop == len(rest):
            break
        rest = rest[stop:]
        top = scales.above_each(signs, rest, 1)
        top[0] = True  # with query noise the two answers may differ
        above.append(rest[top])
        rest = rng.permutation(rest[~top])
    return Base(signs=signs, above=np.concatenate(above) if above else np.zeros(0, np.int64))


def _below(scales: Scales, signs: Signs, cells: Cells) -> int:
    """How many of the cells, in this order, can be added to the sum before it reaches z."""
    low, high = 0, len(cells) + 1
    # All of them first: at the end of the laying that is the answer.
    tried = np.array([len(cells)])
    while high - low > 1:
        rows = np.repeat(signs[None], len(tried), axis=0)
        for row, number in zip(rows, tried, strict=True):
            row[cells[:number]] = 1
        above = scales.above(rows)
        high = int(tried[above].min(initial=high))
        low = int(tried[~above & (tried < high)].max(initial=low))
        tried = np.unique(np.linspace(low, high, scales.oracle.together + 2).astype(np.int64)[1:-1])
        tried = tried[(tried > low) & (tried < high)]
    return low


def lightest(scales: Scales, base: Base, rng: np.random.Generator, number: int) -> Cells:
    """About `number` of the lightest cells of a sample of `base.above`, as far as differences of two of them tell.

    x_u − x_v is seen to be positive where it is at least the base's gap.
    """
    cells, idle = rng.permutation(base.above)[: SAMPLE * number], 0
    while len(cells) > number and idle < IDLE:
        pivot = rng.choice(cells)
        others = cells[cells != pivot]
        signs = base.signs.copy()
        signs[pivot] = -1
        kept = np.append(others[~scales.above_each(signs, others, 1)], pivot)
        if number <= len(kept) < len(cells):
            cells, idle = kept, 0
        else:  # too few are lighter than the pivot, or none is heavier
            idle += 1
    return rng.permutation(cells)[:number]


Floats = NDArray[np.float64]

#: Cells of which all 3^k signed sums are made, to complete random ones: so many, or half of all.
COMPLETED: Final = 8
PARTIALS: Final = 256


class Sums:
    """Signed sums of the cells on top of the base, and all answers so far."""

    def __init__(self, scales: Scales, base: Base, cells: Cells) -> None:
        self._scales, self._base, self.cells = scales, base, cells
        self.asked = np.zeros((0, len(cells)), np.int8)
        self.above = np.zeros(0, np.bool_)

    def ask(self, signs: Signs) -> NDArray[np.bool_]:
        """Which of the sums, coefficients of shape (sums, cells), are above."""
        questions = np.repeat(self._base.signs[None], len(signs), axis=0)
        questions[:, self.cells] = signs
        answers = self._scales.above(questions)
        self.asked, self.above = np.vstack([self.asked, signs]), np.append(self.above, answers)
        return answers

    def separated(self, counts: Cells) -> tuple[int, int] | None:
        """The largest sum below and the least above, if these counts explain all answers."""
        sums = self.asked.astype(np.int64) @ counts
        low, high = max(0, sums[~self.above].max(initial=0)), sums[self.above].min(initial=np.iinfo(np.int64).max)
        return (int(low), int(high)) if low < high else None


def near(values: Floats, target: float, rng: np.random.Generator) -> tuple[Signs, Floats]:
    """Many signed sums of the values near a target: coefficients, shape (candidates, cells), and the sums."""
    n = len(values)
    order = rng.permutation(n)
    split = min(COMPLETED, (n + 1) // 2)
    done, free = order[:split], order[split:]
    codes = signings(len(done))
    sums = codes @ values[done]
    rank = np.argsort(sums, kind="stable")
    sums = sums[rank]
    partial = rng.integers(-1, 2, (PARTIALS if len(free) else 1, len(free)), np.int8)
    # Sums near 0 of cells that are nearly alike have about as many +1 as −1, and do not tell counts that are all too
    # large by as much. Heavy cells against light ones need more of these, and do.
    against = rng.random(len(partial)) < 0.5
    partial[against] = np.abs(partial[against]) * np.where(values[free] > np.median(values), -1, 1).astype(np.int8)
    partial[::2] *= -1
    part = partial @ values[free]
    place = np.searchsorted(sums, target - part)
    signs, found = [], []
    for at in (place - 1, place):
        at = np.clip(at, 0, len(sums) - 1)
        # Among equal sums any.
        row = np.empty((len(part), n), np.int8)
        row[:, free], row[:, done] = partial, codes[rank[at]]
        signs.append(row)
        found.append(part + sums[at])
    return np.vstack(signs), np.concatenate(found)


def exact(values: Floats, target: int, number: int, rng: np.random.Generator) -> Signs:
    """Signed sums of exactly that value, as different as they come."""
    rows = []
    for _ in range(4):
        signs, made = near(values, target, rng)
        rows.append(signs[made == target])
    found = np.unique(np.vstack(rows), axis=0)
    return np.asarray(rng.permutation(found)[:number])


MOST_UNITS: Final = 20_000
#: Of a sum's standard deviation, and how many of them its mean may lie on the wrong side: beyond, the moments are
#: those of rounding errors.
NARROW: Final = 1e-6
SURPRISE: Final = 6.0
#: So many standard deviations from the gap a sum is about as likely above it as below.
EVEN: Final = 0.15
#: By how much the covariance is widened before answers are learnt again, and how often at a time.
WIDER: Final = 1.5
PASSES: Final = 10


class Belief:
    """Mean and covariance of the counts and the gap, shape (cells + 1,), relative to a cell whose count is exact."""

    def __init__(self, mean: Floats, spread: Floats) -> None:
        self.mean, self.covariance = mean, np.diag(spread**2)
        self._widest = float(np.trace(self.covariance))

    def questions(self, rng: np.random.Generator, number: int) -> Signs:
        """Signed sums that are each about as likely above the gap as below, shape (number, cells)."""
        signs, sums = near(self.mean[:-1], self.mean[-1], rng)
        offset = np.abs(sums - self.mean[-1])
        best = np.argsort(offset)[: 4 * number + 28]
        rows = np.hstack([signs[best], -np.ones((len(best), 1))])
        spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, self.covariance, rows), NARROW**2))
        ratio = offset[best] / spread
        # Those that are about even, the widest first; then the others.
        chosen = np.lexsort([np.where(ratio <= EVEN, -spread, ratio), ratio > EVEN])[:number]
        return np.asarray(signs[best[chosen]])

    def learn(self, signs: Signs, above: bool) -> None:
        """The moments of the half-space that the answer leaves."""
        row = np.append(signs.astype(np.float64), -1.0)
        side = self.covariance @ row
        variance = float(row @ side)
        if not variance > NARROW**2:
            return  # as good as known, or a rounding error
        s = np.sqrt(variance)
        y = 1.0 if above else -1.0
        a = max(y * float(row @ self.mean) / s, -SURPRISE)
        ratio = float(np.exp(-a * a / 2 - log_ndtr(a))) / np.sqrt(2 * np.pi)
        self.mean = self.mean + y * ratio * side / s
        self.covariance = self.covariance - np.outer(side, side) * (ratio * (ratio + a) / s**2)

    def learn_all(self, signs: Signs, above: NDArray[np.bool_]) -> None:
        """One answer after the other."""
        for row, answer in zip(signs, above, strict=True):
            self.learn(row, bool(answer))

    def relearn(self, sums: Sums) -> None:
        """Widen, and learn the answers again that the mean contradicts, until there is none, or a few rounds are over.

        The normal distribution comes out too narrow now and then, and further queries would cut where nothing is.
        """
        for _ in range(PASSES):
            offset = sums.asked @ self.mean[:-1] - self.mean[-1]
            wrong = np.flatnonzero((offset >= 0) != sums.above)
            if not len(wrong):
                return
            if np.trace(self.covariance) < self._widest:
                self.covariance *= WIDER
            self.learn_all(sums.asked[wrong], sums.above[wrong])

    def whole(self, sums: Sums) -> tuple[Cells, tuple[int, int]] | None:
        """Whole numbers that explain all answers, in the largest unit that does."""
        mean, spread = self.mean[:-1], np.sqrt(np.maximum(np.diag(self.covariance)[:-1], 0))
        most = int(min(0.3 / max(float(np.median(spread)), 1e-9), MOST_UNITS))
        units = np.arange(1, most + 1)[:, None]
        scaled = units * mean
        counts = np.rint(scaled)
        misfit = np.mean(((scaled - counts) / (units * spread + 0.05)) ** 2, axis=1)
        good = np.flatnonzero((misfit < 3) & (counts > 0).all(axis=1))
        for k in good[:20]:
            found = counts[k].astype(np.int64)
            limits = sums.separated(found)
            if limits:
                return found, limits
        return None


#: Random directions in which the cone is measured, beside that of all counts at once.
DIRECTIONS: Final = 3
#: So far another explanation is looked for, in units.
FAR: Final = 1.0
#: Whole numbers other than these differ by 1 somewhere; the rest is for rounding errors.
NEAR: Final = 0.99


def another_explanation(
    asked: Signs, above: Flags, counts: Cells, gap: int, rng: np.random.Generator
) -> tuple[Floats, float] | None:
    """Counts and a gap that explain all answers as well, one of them a unit away; None where none was found.

    Parameters
    ----------
    asked, above
        Signed sums, shape (questions, cells), and which of them reached the gap.
    counts, gap
        What explains the answers already; the largest count is the scale, and stays: relative to a count of one all
        others are known to within their own size at best.
    rng
        For the directions in which others are looked for.
    """
    from scipy.optimize import linprog  # 0.2 s

    k = len(counts)
    side = np.where(above, -1.0, 1.0)[:, None]
    limits = side * np.hstack([asked, -np.ones((len(asked), 1))])  # ≤ 0
    bounds = [(max(0.0, x - FAR), x + FAR) for x in [*counts.tolist(), gap]]
    bounds[-1] = (max(0.0, gap - 1 - FAR), gap + FAR)
    scale = int(np.argmax(counts))
    bounds[scale] = (float(counts[scale]), float(counts[scale]))
    signs = 2.0 * rng.integers(0, 2, (DIRECTIONS, k)) - 1
    for direction in np.vstack([np.ones(k), signs]):
        for sense in (1.0, -1.0):
            found = linprog(np.append(sense * direction, 0.0), A_ub=limits, b_ub=np.zeros(len(limits)), bounds=bounds)
            if found.x is not None and np.max(np.abs(found.x[:-1] - counts)) >= NEAR:
                return np.asarray(found.x[:-1], np.float64), float(found.x[-1])
    return another_whole(asked, above, counts, rng)


def another_whole(asked: Signs, above: Flags, counts: Cells, rng: np.random.Generator) -> tuple[Floats, float] | None:
    """Whole numbers a unit away at most that explain all answers, the largest count's among them; None if none does.

    Of two whole vectors one has more of a random weight, so that a largest and a smallest one show any other.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    k = len(counts)
    rows = np.hstack([asked, -np.ones((len(asked), 1))])
    # Above: at least the gap; else at least 1 below it. Twice the counts are no other explanation.
    limits = [
        LinearConstraint(rows, np.where(above, 0.0, -np.inf), np.where(above, np.inf, -1.0)),
        LinearConstraint(np.append(np.ones(k), 0.0)[None], -np.inf, 2.0 * counts.sum() - 1),
    ]
    box = Bounds(np.append(np.maximum(counts - 1.0, 1.0), 1.0), np.append(counts + 1.0, np.inf))
    weight = np.append(rng.normal(size=k), 0.0)
    for sense in (1.0, -1.0):
        found = milp(sense * weight, integrality=np.ones(k + 1, np.int64), bounds=box, constraints=limits)
        if found.x is not None and np.any(np.rint(found.x[:-1]) != counts):
            return np.rint(found.x[:-1]), float(np.rint(found.x[-1])) - 0.5
    return None


#: Fresh sums next to the threshold, all of which whole numbers must predict.
FRESH: Final = 40
FEWEST_FRESH: Final = 20
#: Other explanations that are ruled out one after the other.
RIVALS: Final = 40
SEPARATING: Final = 8
#: Sums that were asked already may lie on the border of what their answers allow, but for rounding errors.
ROUNDING: Final = 1e-6
#: Queries between two attempts at whole numbers.
EACH: Final = 16


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Located:
    """Counts of some cells in their common unit, and what the base lacks of the threshold, rounded up.

    The base plus a signed sum of value s of the cells is ⊤ exactly if s ≥ `gap`. `sums`: what was asked of them.
    """

    cells: Cells
    counts: Cells
    gap: int
    sums: Sums

    def alone(self, rng: np.random.Generator) -> bool:
        """Whether further sums rule out all other counts that explain the answers; False where one stays.

        For histograms of few cells: of many, sums of all of them say more.
        """
        sums, counts, gap = self.sums, self.counts, self.gap
        values = counts.astype(np.float64)
        for _ in range(RIVALS):
            rival = another_explanation(sums.asked, sums.above, counts, gap, rng)
            if rival is None:
                return True
            # Sums next to the gap on which the two differ.
            rows = np.vstack([exact(values, target, PARTIALS, rng) for target in (gap, gap - 1)])
            margin = (rows @ rival[0] - rival[1]) * np.where(rows.astype(np.int64) @ counts == gap, 1, -1)
            split = np.argsort(margin)[:SEPARATING]
            split = split[margin[split] < -ROUNDING]
            if not len(split):
                return False
            above = sums.ask(rows[split])
            if not np.array_equal(above, rows[split].astype(np.int64) @ counts == gap):
                return False
        return False


def locate(
    scales: Scales, base: Base, cells: Cells, rng: np.random.Generator, guess: Floats | None = None
) -> Located | None:
    """Counts of the cells, shape (k,), all of `base.above`; None where the answers do not determine them.

    `guess`: about what the counts are, in any unit; the first one is taken for exact. By default all are alike.
    """
    k = len(cells)
    sums = Sums(scales, base, cells)
    if guess is None:
        belief = Belief(np.append(np.ones(k), 0.5), np.append(np.full(k, 0.6), 0.4))
    else:
        belief = Belief(np.append(guess / guess[0], 0.5 / guess[0]), np.append(0.7 + 0.1 * guess, 0.6) / guess[0])
    belief.covariance[0, 0] = 0
    together = min(scales.oracle.together, k)
    for asked in range(together, 36 * k + 200, together):
        signs = belief.questions(rng, together)
        belief.learn_all(signs, sums.ask(signs))
        if asked % EACH < together:
            belief.relearn(sums)
            found = belief.whole(sums)
            if found is not None:
                gap = _confirmed(sums, belief, found, rng)
                if gap is not None:
                    return Located(cells=cells, counts=found[0], gap=gap, sums=sums)
    return None


def _confirmed(
    sums: Sums, belief: Belief, found: tuple[Cells, tuple[int, int]], rng: np.random.Generator
) -> int | None:
    """Find the gap among whole numbers, then try sums next to it; None where one is not as predicted."""
    counts, (low, high) = found
    values = counts.astype(np.float64)
    while high - low > 1:
        target = (low + high) // 2
        signs, made = near(values, target, rng)
        inside = np.flatnonzero((made > low) & (made < high))
        if not len(inside):
            return None
        at = inside[np.argmin(np.abs(made[inside] - target))]
        above = sums.ask(signs[at : at + 1])
        belief.learn_all(signs[at : at + 1], above)
        low, high = (low, int(made[at])) if above[0] else (int(made[at]), high)
    fresh = np.vstack([exact(values, target, FRESH // 2, rng) for target in (low, high)])
    above = sums.ask(fresh)
    belief.learn_all(fresh, above)
    if not np.array_equal(above, fresh.astype(np.int64) @ counts == high) or len(fresh) < FEWEST_FRESH:
        return None
    return high
