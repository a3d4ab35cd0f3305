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
from dpwitness.reconstruction.threshold_testing.oracle import CellIntegers, QueryAccess, SignChange, Signs
from dpwitness.reconstruction.threshold_testing.theory import MOST_COPIES

#: The number of reference cells, whose counts relative to each other are found before all other counts.
REFERENCE_CELLS: Final = 24
#: The number of small cells whose signed sums are tabulated: 3⁹ = 19,683 sums.
TABULATED_CELLS: Final = 9
#: The largest distance, in units of the counts, by which repeated tries move the aim of a sum at random.
LARGEST_AIM_MOVE: Final = 1 << 20
#: The number of tries to find a fresh sum next to the threshold that tests the counts.
FRESH_SUMS: Final = 64
#: The least number of fresh sums for a test of the counts: with a wrong count all answers to 24 sums are as predicted
#: with probability at most 0.75²⁴ = 0.001.
LEAST_FRESH_SUMS: Final = 24


class ThresholdComparison:
    """A comparison of signed sums of cells with the noisy threshold z, which the empty sum does not reach.

    If z ≤ 0 all queries are asked negated: −q is ⊥ exactly if q > −z, so −z replaces z. `negated`: whether z ≤ 0; None:
    a query finds out. A sum counts as reaching z where more than a share `cut` of its copies are ⊤.
    """

    def __init__(self, oracle: QueryAccess, *, copies: int = 1, cut: float = 0.5, negated: bool | None = None) -> None:
        self.oracle, self.copies, self._least = oracle, copies, cut * copies
        if negated is None:
            negated = bool(2 * oracle.ask_all(np.zeros((1, oracle.cells), np.int8), copies)[0] > copies)
        self.negated = negated

    def above(self, signs: Signs) -> Booleans:
        """Whether each sum counts as reaching z, shape (sums,); `signs` has the shape (sums, cells)."""
        return self._reach(self.oracle.ask_all(-signs if self.negated else signs, self.copies))

    def above_changes(self, changes: Sequence[SignChange]) -> list[Booleans]:
        """Whether each sum counts as reaching z, for sets of sums (see `SignChange`), asked at once."""
        if self.negated:
            changes = [(-signs, cells, -change) for signs, cells, change in changes]
        return [self._reach(tops) for tops in self.oracle.ask_changes(changes, self.copies)]

    def _reach(self, tops: CellIntegers) -> Booleans:
        """Whether sums with these numbers of ⊤ answers count as reaching z."""
        return np.asarray((self.copies - tops if self.negated else tops) > self._least)


def noise_free_comparisons(oracle: QueryAccess, copies: int | None = None) -> Iterator[ThresholdComparison]:
    """Comparisons at least one of which is free of query noise, by majorities of copies (Theorem 3.5).

    With finite ε₂ each copy of a query of value q is ⊤ with probability F(ε₂(q − z)), independently; F is the
    distribution function of Lap(1). Queries are whole numbers, so no query lies in (z, z + ½), or no query in (z − ½,
    z): no probability is between 1/2 and F(ε₂/2), or no probability between F(−ε₂/2) and 1/2. The cuts are the middles
    of these two intervals.

    `copies`: the number of copies of each query; by default all other probabilities are 6 standard errors from a cut.
    Raises `InvalidParameter` where this takes more than 10^12 copies.
    """
    epsilon2 = oracle.noise.epsilon2
    if epsilon2 == np.inf:
        yield ThresholdComparison(oracle)
        return
    margin = -float(np.expm1(-epsilon2 / 2)) / 4
    enough = 9 / max(margin**2, 1e-300)
    if not enough <= MOST_COPIES:
        raise InvalidParameter(
            f"epsilon2={epsilon2:g} is too small: to read a query takes {enough:.2g} copies of it, more than 10^12; "
            "give a larger epsilon2"
        )
    negated = ThresholdComparison(oracle, copies=int(np.ceil(enough))).negated
    for cut in (0.5 - margin, 0.5 + margin):
        yield ThresholdComparison(oracle, copies=copies or int(np.ceil(enough)), cut=cut, negated=negated)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BaseSum:
    """A sum of cells that is below z, and that reaches z with any one of the cells `above`.

    `signs`: 1 for the cells in the sum, else 0, shape (cells,). The gap, z less the sum, is at most each count of
    `above`.
    """

    signs: Signs
    above: CellIntegers


def find_base_sum(comparison: ThresholdComparison, rng: np.random.Generator) -> BaseSum:
    """Add cells as long as the sum stays below z, by bisection in random orders: about two queries a cell.

    `above` is empty where all cells together do not reach z, so that no query has another answer than ⊥.
    """
    signs, above = np.zeros(comparison.oracle.cells, np.int8), list[int]()
    rest = rng.permutation(len(signs))
    while len(rest):
        stop = _number_below(comparison, signs, rest)
        signs[rest[:stop]] = 1
        rest = rest[stop:]
        if len(rest):
            (alone_above,) = comparison.above_changes([(signs, rest, 1)])
            alone_above[0] = True  # as the bisection found; with query noise the two answers may differ
            above.extend(rest[alone_above].tolist())
            rest = rng.permutation(rest[~alone_above])
    return BaseSum(signs=signs, above=np.array(above, np.int64))


def _number_below(comparison: ThresholdComparison, signs: Signs, cells: CellIntegers) -> int:
    """The number of cells that can be added to the sum, in this order, before it reaches z."""
    low, high = 0, len(cells) + 1
    rank = np.full(len(signs), high)
    rank[cells] = np.arange(len(cells))
    numbers = np.array([len(cells)])  # all cells are asked first: in the last round of `find_base_sum` they all fit
    while high - low > 1:
        above = comparison.above(np.where(rank < numbers[:, None], 1, signs).astype(np.int8))
        high = int(numbers[above].min(initial=high))
        low = int(numbers[~above & (numbers < high)].max(initial=low))
        numbers = np.unique(np.linspace(low, high, comparison.oracle.together + 2).astype(np.int64)[1:-1])
        numbers = numbers[(numbers > low) & (numbers < high)]
    return low


def smallest_cells(comparison: ThresholdComparison, base: BaseSum, rng: np.random.Generator) -> CellIntegers:
    """About `REFERENCE_CELLS` of the smallest cells of a sample of `base.above`.

    A cell is found to be larger than another where their difference is at least the base sum's gap.
    """
    cells = rng.permutation(base.above)[: 6 * REFERENCE_CELLS]
    for _ in range(12):
        if len(cells) <= REFERENCE_CELLS:
            break
        pivot = rng.choice(cells)
        others = cells[cells != pivot]
        signs = base.signs.copy()
        signs[pivot] = -1
        (larger,) = comparison.above_changes([(signs, others, 1)])
        smaller = np.append(others[~larger], pivot)
        if len(smaller) >= REFERENCE_CELLS:
            cells = smaller
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

    def __init__(self, base: Signs, known: Booleans, counts: CellIntegers) -> None:
        self._base, self._counts = base, counts
        free = np.flatnonzero(known & (base == 0) & (counts > 0))
        free = free[np.argsort(counts[free], kind="stable")]
        small = _choose_tabulated(counts[free])
        self._small, self._large = free[small], np.delete(free, small)[::-1]
        self._sums, self._signs = _signed_sums(tuple(counts[self._small].tolist()))

    def between(self, first: int, last: int, aim: int, rng: np.random.Generator) -> tuple[Signs, int] | None:
        """A sum from `first` to `last` (inclusive), near `aim`; None if no try finds a sum.

        Returns the coefficients of base and known cells, shape (cells,), and the value that is added to the base sum.
        """
        large, rest = self._large, 0
        for trial in range(24):
            signs, value = self._compose(aim, large, rest, first, last)
            if first <= value <= last:
                return signs, value
            # Other large cells leave another rest. Every other time they have counts up to a random limit, and small
            # cells make up a random rest, in case there are few different counts.
            large = self._large[rng.random(len(self._large)) < rng.choice([0.5, 0.9])]
            aim = int(np.clip(rng.integers(first, last + 1), aim - LARGEST_AIM_MOVE, aim + LARGEST_AIM_MOVE))
            rest = 0
            if trial % 2 and len(large):
                large = large[self._counts[large] <= self._counts[rng.choice(large)]]
                rest = int(rng.choice(self._sums))
        return None

    def _compose(self, aim: int, large: CellIntegers, rest: int, first: int, last: int) -> tuple[Signs, int]:
        """A sum near the aim: large cells make up the aim less `rest`, and small cells make up the remainder."""
        values = self._counts[large]
        cumulative = np.concatenate([[0], np.cumsum(values)])
        direction, left = 1 if aim > rest else -1, abs(aim - rest)
        signs, at = self._base.copy(), 0
        while left > 0:
            at = max(at, int(np.searchsorted(-values, -left)))  # the first cell whose count is at most what is left
            if at >= len(large):
                break
            stop = int(np.searchsorted(cumulative, cumulative[at] + left, side="right")) - 1
            signs[large[at:stop]] = direction
            left -= int(cumulative[stop] - cumulative[at])
            at = stop
        value = direction * (abs(aim - rest) - left)
        place = int(np.searchsorted(self._sums, aim - value))
        options = [(value + int(self._sums[k]), k) for k in (place, place - 1) if 0 <= k < len(self._sums)]
        total, best = min(options, key=lambda one: (not first <= one[0] <= last, abs(one[0] - aim)))
        signs[self._small] = self._signs[best]
        return signs, total


@cache
def _signed_sums(values: tuple[int, ...]) -> tuple[CellIntegers, Signs]:
    """All signed sums of the values, in ascending order, and the signs of each sum."""
    signs = signings(len(values))
    sums, first = np.unique(signs.astype(np.int64) @ np.array(values, np.int64), return_index=True)
    return sums, signs[first]


def _choose_tabulated(ascending: CellIntegers) -> CellIntegers:
    """Positions of the cells to tabulate: some cells of each of the smallest counts, then the smallest other cells."""
    _, first = np.unique(ascending, return_index=True)
    turn = np.arange(len(ascending)) - np.repeat(first, np.diff(np.append(first, len(ascending))))
    each = max(1, TABULATED_CELLS // max(len(first), 1))
    return np.sort(np.lexsort([np.arange(len(ascending)), turn // each])[:TABULATED_CELLS])


def fresh_sums(
    base: Signs, known: Booleans, counts: CellIntegers, cells: CellIntegers, gap: int, rng: np.random.Generator
) -> tuple[Signs, Booleans]:
    """Random sums next to the threshold, and whether each reaches the gap between base sum and threshold.

    No sum is returned where sums are few, or all are on one side: the prediction would then hold by chance, or for
    answers that do not depend on the sums.
    """
    found, reach = list[Signs](), list[bool]()
    for number in range(FRESH_SUMS):
        above = number % 2 == 0
        signs = _random_sum(base, known, counts, cells, gap if above else gap - 1, rng)
        if signs is not None:
            found.append(signs)
            reach.append(above)
    if len(found) < LEAST_FRESH_SUMS or len(set(reach)) < 2:
        return np.zeros((0, len(base)), np.int8), np.zeros(0, np.bool_)
    return np.array(found), np.array(reach)


def _random_sum(
    base: Signs, known: Booleans, counts: CellIntegers, cells: CellIntegers, target: int, rng: np.random.Generator
) -> Signs | None:
    """Coefficients that add `target` to the base sum, random for about half of the known cells; None without a sum."""
    mine = cells[known[cells]]
    for share in (0.5, 0.5, 0.2, 0.2, 0.05, 0.05):  # fewer random coefficients leave more cells to make up the rest
        chosen = rng.choice(mine, rng.binomial(len(mine), share), replace=False)
        # Half of the tries have one sign for all cells, for which fewer large cells make up: the sum then shows counts
        # that are all too large by the same number.
        random = rng.choice([-1, 1], 1 if rng.random() < 0.5 else len(chosen))
        signs = base.copy()
        signs[chosen] = np.where(base[chosen] == 1, 0, random)
        rest = target - int((signs - base).astype(np.int64) @ counts)
        # The rest is made up of known cells that have no coefficient yet.
        free = known & (base == 0)
        free[chosen] = False
        found = ReferenceSums(signs, free, counts).between(rest, rest, rest, rng)
        if found is not None:
            return found[0]
    return None
