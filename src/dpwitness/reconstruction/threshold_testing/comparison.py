"""Comparisons of signed sums of cells with the noisy threshold z, and sums of known cells that have a given value.

The noisy threshold is drawn once, and every signed sum of cells is a query of sensitivity 1. A *base sum* just below z
makes queries compare cells: without query noise the base sum plus cell v minus known cells of sum w is ⊤ exactly if
x_v ≥ w + the gap between the base sum and z. (A query that is a constant, of sensitivity 0, would find z easily; no
such query is used.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Final

import numpy as np

from dpwitness.arrays import Booleans
from dpwitness.errors import InvalidParameter
from dpwitness.exact import laplace_cdf
from dpwitness.reconstruction.threshold_testing.oracle import Cells, Change, Queries, Signs
from dpwitness.reconstruction.threshold_testing.theory import MOST_COPIES

#: The number of reference cells, whose counts relative to each other are found before all other counts.
REFERENCE_CELLS: Final = 24
#: The number of small cells whose signed sums are tabulated: 3⁹ = 19,683 sums.
TABULATED_CELLS: Final = 9
#: The largest distance, in units of the counts, by which repeated tries move the aim of a sum at random.
LARGEST_AIM_MOVE: Final = 1 << 20
#: The number of fresh sums next to the threshold that test the counts.
FRESH_SUMS: Final = 64


class Comparison:
    """A comparison of signed sums of cells with the noisy threshold z, which the empty sum does not reach.

    If z ≤ 0 all queries are asked negated: −q is ⊥ exactly if q > −z, so −z replaces z. `negated`: whether z ≤ 0; None:
    a query finds out. A sum counts as reaching z where more than a share `cut` of its copies are ⊤ (Theorem 3.5: 1/2).
    """

    def __init__(self, oracle: Queries, *, copies: int = 1, cut: float = 0.5, negated: bool | None = None) -> None:
        self.oracle, self.copies, self._least = oracle, copies, cut * copies
        if negated is None:
            negated = 2 * oracle.ask(np.zeros(oracle.cells, np.int8), copies) > copies
        self.negated = negated

    def above(self, signs: Signs) -> Booleans:
        """Whether each sum counts as reaching z, shape (sums,); `signs` has the shape (sums, cells)."""
        return self._reach(self.oracle.ask_all(-signs if self.negated else signs, self.copies))

    def above_changes(self, changes: Sequence[Change]) -> list[Booleans]:
        """Whether each sum counts as reaching z, for sets of sums (see `Change`), asked at once."""
        if self.negated:
            changes = [(-signs, cells, -change) for signs, cells, change in changes]
        return [self._reach(tops) for tops in self.oracle.ask_changes(changes, self.copies)]

    def _reach(self, tops: Cells) -> Booleans:
        """Whether sums with these numbers of ⊤ answers count as reaching z."""
        return np.asarray((self.copies - tops if self.negated else tops) > self._least)


#: The ε₂ (nats) from which on cuts at 1/4 and 3/4 suffice: F falls from 1/2 to 1/4 within a quarter of a count, so no
#: query is ⊤ with a probability between 1/8 and 1/2, or no query with one between 1/2 and 7/8.
QUARTER_CUTS_EPSILON: Final = 4 * float(np.log(2))
#: The number of copies with which a probability of ⊤ that differs by 1/8 from a cut lies 6 standard errors from it.
QUARTER_CUTS_COPIES: Final = 576


def majority_comparisons(oracle: Queries, copies: int | None = None) -> Iterator[Comparison]:
    """Two comparisons with different cuts, at least one of which is free of query noise (Theorem 3.5).

    With finite ε₂ each copy of a query of value q is ⊤ with probability F(ε₂(q − z)), independently; F is the
    distribution function of Lap(1). The majority, a cut at 1/2, fails for a query that nearly equals z. Two cuts amount
    to thresholds half a count apart; queries are whole numbers, so one of these thresholds is at least a quarter of a
    count from all queries.

    `copies`: the number of copies of each query; by default whole numbers are 6 standard errors from a cut. Raises
    `InvalidParameter` where this takes more than 10^12 copies.
    """
    epsilon2, enough, cuts = oracle.noise.epsilon2, QUARTER_CUTS_COPIES, [0.25, 0.75]
    if epsilon2 < QUARTER_CUTS_EPSILON:
        # Within a count of z, F rises by at least ε₂ exp(−ε₂)/2 a count, and by a quarter of that in a quarter count.
        ratio = 24 / (epsilon2 * float(np.exp(-epsilon2)))
        if not ratio * ratio <= MOST_COPIES:
            raise InvalidParameter(
                f"epsilon2={epsilon2:g} is too small: to read a query takes {ratio * ratio:.2g} copies of it, more "
                "than 10^12; give a larger epsilon2"
            )
        enough = int(np.ceil(ratio * ratio))
        cuts = laplace_cdf(epsilon2 * np.array([0.25, -0.25])).tolist()
    negated = Comparison(oracle, copies=enough).negated
    for cut in cuts:
        yield Comparison(oracle, copies=copies or enough, cut=cut, negated=negated)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BaseSum:
    """A sum of cells that is below z, and that reaches z with any one of the cells `above`.

    `signs`: 1 for the cells in the sum, else 0, shape (cells,). The gap, z less the sum, is at most each count of
    `above`.
    """

    signs: Signs
    above: Cells


def find_base_sum(comparison: Comparison, rng: np.random.Generator) -> BaseSum:
    """Add cells as long as the sum stays below z, by bisection in random orders: about two queries a cell.

    `above` is empty where all cells together do not reach z, so that no query has another answer than ⊥.
    """
    signs = np.zeros(comparison.oracle.cells, np.int8)
    rest = rng.permutation(len(signs))
    above = [np.zeros(0, np.int64)]
    while len(rest):
        stop = _number_below(comparison, signs, rest)
        signs[rest[:stop]] = 1
        if stop == len(rest):
            break
        rest = rest[stop:]
        (alone_above,) = comparison.above_changes([(signs, rest, 1)])
        alone_above[0] = True  # as the bisection found; with query noise the two answers may differ
        above.append(rest[alone_above])
        rest = rng.permutation(rest[~alone_above])
    return BaseSum(signs=signs, above=np.concatenate(above))


def _number_below(comparison: Comparison, signs: Signs, cells: Cells) -> int:
    """The number of cells that can be added to the sum, in this order, before it reaches z."""
    low, high = 0, len(cells) + 1
    numbers = np.array([len(cells)])  # all cells are asked first: in the last round of `find_base_sum` they all fit
    while high - low > 1:
        rows = np.repeat(signs[None], len(numbers), axis=0)
        for row, number in zip(rows, numbers, strict=True):
            row[cells[:number]] = 1
        above = comparison.above(rows)
        high = int(numbers[above].min(initial=high))
        low = int(numbers[~above & (numbers < high)].max(initial=low))
        numbers = np.unique(np.linspace(low, high, comparison.oracle.together + 2).astype(np.int64)[1:-1])
        numbers = numbers[(numbers > low) & (numbers < high)]
    return low


def smallest_cells(comparison: Comparison, base: BaseSum, rng: np.random.Generator) -> Cells:
    """About `REFERENCE_CELLS` of the smallest cells of a sample of `base.above`.

    A cell is found to be larger than another where their difference is at least the base sum's gap.
    """
    cells, idle = rng.permutation(base.above)[: 6 * REFERENCE_CELLS], 0
    while len(cells) > REFERENCE_CELLS and idle < 4:  # the number of rounds in a row without a smaller set
        pivot = rng.choice(cells)
        others = cells[cells != pivot]
        signs = base.signs.copy()
        signs[pivot] = -1
        (larger,) = comparison.above_changes([(signs, others, 1)])
        smaller = np.append(others[~larger], pivot)
        if REFERENCE_CELLS <= len(smaller) < len(cells):
            cells, idle = smaller, 0
        else:  # too few cells are smaller than the pivot, or no cell is larger
            idle += 1
    return rng.permutation(cells)[:REFERENCE_CELLS]


@cache
def signings(k: int) -> Signs:
    """All combinations of coefficients −1, 0, 1 of k cells, shape (3^k, k)."""
    return np.array(list(product((-1, 0, 1), repeat=k)), np.int8).reshape(3**k, k)


class ReferenceSums:
    """Signed sums of known cells that are added to a base sum.

    The largest cells that fit make up most of a sum, and a few small cells the rest: all signed sums of the small cells
    are tabulated, so that sums need no cell of count 1. No cell of the base sum is used.
    """

    def __init__(self, base: Signs, known: Booleans, counts: Cells) -> None:
        self._base = base
        free = np.flatnonzero(known & (base == 0) & (counts > 0))
        free = free[np.argsort(counts[free], kind="stable")]
        small = _choose_tabulated(counts[free])
        self._small, large = free[small], np.delete(free, small)[::-1]
        self._large = large, counts[large], _cumulate(counts[large])
        self._sums, self._signs = _signed_sums(tuple(counts[self._small].tolist()))

    def between(self, first: int, last: int, aim: int, rng: np.random.Generator) -> tuple[Signs, int] | None:
        """A sum from `first` to `last` (inclusive), near `aim`; None if no try finds a sum.

        Returns the coefficients of base and known cells, shape (cells,), and the value that is added to the base sum.
        """
        (large, values, _), used, share = self._large, self._large, 0
        for trial in range(24):  # a failed try is repeated with other large cells
            if trial:
                # Other large cells leave another rest; every fourth time large cells have counts up to a random limit,
                # since of few different counts one may prevent the sum.
                some = np.flatnonzero(rng.random(len(large)) < rng.choice([0.5, 0.9]))
                if trial % 4 == 3 and len(some):
                    some = some[values[some] <= rng.choice(values[some])]
                used = large[some], values[some], _cumulate(values[some])
                if trial % 2:
                    aim = int(np.clip(rng.integers(first, last + 1), aim - LARGEST_AIM_MOVE, aim + LARGEST_AIM_MOVE))
                # A random part of the sum is left to the small cells, in case large and small cells have few counts.
                share = int(self._sums[rng.integers(len(self._sums))]) if trial % 4 == 3 else 0
            signs, value = self._compose(aim, used, first, last, share)
            if first <= value <= last:
                return signs, value
        return None

    def _compose(
        self, amount: int, cells: tuple[Cells, Cells, Cells], first: int, last: int, share: int
    ) -> tuple[Signs, int]:
        """A sum near an amount: the largest of `cells` make up the amount less `share`, and small cells the rest."""
        large, values, cumulative = cells
        direction, left = 1 if amount > share else -1, abs(amount - share)
        signs, at = self._base.copy(), 0
        while left > 0 and at < len(large):
            at = max(at, int(np.searchsorted(-values, -left)))  # the first cell whose count is at most the rest
            if at >= len(large):
                break
            stop = int(np.searchsorted(cumulative, cumulative[at] + left, side="right")) - 1
            signs[large[at:stop]] = direction
            left -= int(cumulative[stop] - cumulative[at])
            at = stop
        value = direction * (abs(amount - share) - left)
        place = int(np.searchsorted(self._sums, amount - value))
        options = [k for k in (place, place - 1) if 0 <= k < len(self._sums)]
        sums = [value + int(self._sums[k]) for k in options]
        _, _, best = min((not first <= s <= last, abs(s - amount), k) for s, k in zip(sums, options, strict=True))
        signs[self._small] = self._signs[best]
        return signs, value + int(self._sums[best])


def _cumulate(values: Cells) -> Cells:
    return np.concatenate([[0], np.cumsum(values)])


@cache
def _signed_sums(values: tuple[int, ...]) -> tuple[Cells, Signs]:
    """All signed sums of the values, in ascending order, and the signs of each."""
    signs = signings(len(values))
    sums, first = np.unique(signs.astype(np.int64) @ np.array(values, np.int64), return_index=True)
    return sums, signs[first]


def _choose_tabulated(ascending: Cells) -> Cells:
    """Positions of the cells to tabulate: some cells of each of the smallest counts, then the smallest other cells."""
    _, first, number = np.unique(ascending, return_index=True, return_counts=True)
    each = max(1, TABULATED_CELLS // max(len(first), 1))
    varied = [
        at + k for at, most in zip(first[: TABULATED_CELLS // 2], number, strict=False) for k in range(min(each, most))
    ]
    rest = np.setdiff1d(np.arange(min(len(ascending), 2 * TABULATED_CELLS)), varied)
    return np.sort(np.concatenate([np.array(varied, np.int64), rest])[:TABULATED_CELLS])


def fresh_sums(
    base: Signs, known: Booleans, counts: Cells, cells: Cells, targets: Cells, rng: np.random.Generator
) -> tuple[Signs, Cells]:
    """Random sums for as many targets as possible, and the value that each adds to the base sum.

    No sum is returned where sums are few, or all have one value: the prediction would then hold by chance, or for
    answers that do not depend on the sums.
    """
    found = [(random_sum(base, known, counts, cells, target, rng), target) for target in targets.tolist()]
    some = [(signs, target) for signs, target in found if signs is not None]
    # With a wrong count all answers to 24 sums are as predicted with probability at most 0.75²⁴ = 0.001.
    if len(some) < 24 or len({target for _, target in some}) < 2:
        return np.zeros((0, len(base)), np.int8), targets[:0]
    return np.array([signs for signs, _ in some]), np.array([target for _, target in some])


def random_sum(
    base: Signs, known: Booleans, counts: Cells, cells: Cells, target: int, rng: np.random.Generator
) -> Signs | None:
    """Coefficients that add `target` to the base sum, random for about half of the known cells; None without a sum."""
    mine = cells[known[cells]]
    for share in (0.5, 0.5, 0.2, 0.2, 0.05, 0.05):  # fewer random coefficients leave more cells to make up the rest
        signs, free = base.copy(), known & (base == 0)
        chosen = mine[rng.random(len(mine)) < share]
        inside, outside = chosen[base[chosen] == 1], chosen[base[chosen] == 0]
        signs[inside] = 0
        # Half of the tries have one sign for all cells, for which fewer large cells make up: the sum then shows counts
        # that are all too large by the same number.
        alike = rng.random() < 0.5
        signs[outside] = rng.choice([-1, 1]) if alike else 2 * rng.integers(0, 2, len(outside), np.int8) - 1
        free[outside] = False
        rest = target - int((signs - base).astype(np.int64) @ counts)
        # The rest is made up of known cells that have no coefficient yet.
        found = ReferenceSums(signs, free & (signs == 0), counts).between(rest, rest, rest, rng)
        if found is not None:
            return found[0]
    return None
