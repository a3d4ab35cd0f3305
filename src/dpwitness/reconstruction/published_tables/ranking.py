"""Rows ranked by how often they come back in tables that random restarts make of counts by two attributes.

Dick, Dwork, Kearns, Liu, Roth, Vietri & Wu, Confidence-ranked reconstruction of census microdata from published
statistics, PNAS 120(8), 2023. A table of n people is relaxed: each person has, for each attribute, probabilities of its
values. From a random start these descend (Adam) to where expected counts are the published ones; then each person takes
the most probable values. The published counts leave many tables; what is in most of them is likely to be true.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np

from dpwitness.machine import Deadline
from dpwitness.reconstruction.published_tables.statements import Marginal, Publication
from dpwitness.reconstruction.table_builder.tables import FloatArray, IntArray

#: Values of all attributes, as positions: a row of a table.
Row: TypeAlias = tuple[int, ...]

#: Of Adam (Kingma & Ba 2015), with the settings that its authors call usual but for the second moment's.
STEPS: Final = 300
RATE: Final = 0.3
MOMENTS: Final = (0.9, 0.99)
#: Standard deviation of the random start, in nats.
START: Final = 2.0
#: Multiplications in one product of matrices, up to which OpenBLAS takes one thread.
ONE_THREAD: Final = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Published counts by one and by two attributes, over the values of all attributes one after the other.

    Attributes
    ----------
    sizes
        How many values each attribute has.
    counts
        Shape (values, values): how many people have both; of one value, on the diagonal; NaN where it is not published.
    """

    sizes: tuple[int, ...]
    counts: FloatArray

    @property
    def offsets(self) -> IntArray:
        """Where each attribute's values begin, and where the last one's end."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def any_two(self) -> bool:
        """Whether any count by two attributes is published."""
        return bool(np.isfinite(self.counts).sum() > np.isfinite(np.diag(self.counts)).sum())

    @property
    def shares(self) -> list[FloatArray] | None:
        """For each attribute the shares of its values; None where they are not all published."""
        ones = [np.diag(self.counts)[a:b] for a, b in pairwise(self.offsets)]
        return [one / one.sum() for one in ones] if all(np.isfinite(one).all() and one.any() for one in ones) else None

    @classmethod
    def of(cls, published: Publication) -> "Pairs":
        """From statements of exact counts by two attributes and by more; suppressed ones are not known."""
        names, sizes = list(published.attributes), tuple(map(len, published.attributes.values()))
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        counts = np.full((offsets[-1], offsets[-1]), np.nan)
        places = [np.arange(first, end) for first, end in pairwise(offsets)]
        for statement in published.statements:
            if not isinstance(statement, Marginal) or statement.where or not statement.by:
                continue
            known = statement.low == statement.high
            axes = [names.index(name) for name in statement.by]
            for i, one in enumerate(axes):
                for j, other in enumerate(axes):
                    rest = tuple(k for k in range(len(axes)) if k not in (i, j))
                    part = np.where(known.all(axis=rest), statement.low.sum(axis=rest), np.nan)
                    block = (places[one], places[one]) if i == j else np.ix_(places[one], places[other])
                    part = part.T if i > j else part
                    counts[block] = np.where(np.isnan(part), counts[block], part)
        return cls(sizes, counts)


def relaxed_table(pairs: Pairs, people: int, rng: np.random.Generator, deadline: Deadline) -> IntArray | None:
    """One table that about agrees with the counts, shape (people, attributes); None where the time is over before."""
    # A column a person: values of one attribute lie together, so that sums over them are those of rows. In parts: of
    # products that are larger BLAS makes several threads, which on a busy machine takes thirty times as long.
    parts = -(-people // max(ONE_THREAD // len(pairs.counts) ** 2, 16))
    width = -(-people // parts)
    present = (np.arange(parts * width) < people).reshape(parts, 1, width)
    starts, sizes = pairs.offsets[:-1], np.array(pairs.sizes)
    ones = np.diag(pairs.counts).astype(np.float32)
    target, known = np.nan_to_num(pairs.counts).astype(np.float32), np.isfinite(pairs.counts).astype(np.float32)
    np.fill_diagonal(known, 0)
    one_target, one_known = np.nan_to_num(ones)[:, None], np.isfinite(ones).astype(np.float32)[:, None]
    logits = rng.normal(0, START, (parts, len(target), width)).astype(np.float32)
    first, second = np.zeros_like(logits), np.zeros_like(logits)
    for step in range(1, STEPS + 1):
        if not deadline.left:
            return None
        chances = np.exp(logits)  # logits move by RATE a step at most, so that this is finite
        chances *= present / np.repeat(np.add.reduceat(chances, starts, axis=1), sizes, axis=1)
        missed = ((chances @ chances.transpose(0, 2, 1)).sum(axis=0) - target) * known
        slope = (missed @ chances + one_known * (chances.sum(axis=(0, 2))[:, None] - one_target)) * (4 / people)
        slope = chances * (slope - np.repeat(np.add.reduceat(chances * slope, starts, axis=1), sizes, axis=1))
        first += (1 - MOMENTS[0]) * (slope - first)
        second += (1 - MOMENTS[1]) * (slope * slope - second)
        logits -= (RATE / (1 - MOMENTS[0] ** step)) * first / (np.sqrt(second / (1 - MOMENTS[1] ** step)) + 1e-9)
    chosen = [logits[:, a : a + size].argmax(axis=1).ravel() for a, size in zip(starts, sizes, strict=True)]
    return np.stack(chosen, axis=1)[:people]


def memory_needed(pairs: Pairs, people: int) -> int:
    """Bytes that a relaxed table takes."""
    return 10 * 4 * len(pairs.counts) * people + 6 * 8 * len(pairs.counts) ** 2


def restarts(
    pairs: Pairs, people: int, number: int, rng: np.random.Generator, deadline: Deadline
) -> Iterator[dict[Row, int]]:
    """The rows of one relaxed table after another, each with how many people have it; fewer where the time is over."""
    for stream in rng.spawn(number):
        table = relaxed_table(pairs, people, stream, deadline)
        if table is None:
            return
        yield Counter(map(tuple, table.tolist()))


def independent_rows(shares: Sequence[FloatArray], number: int) -> list[tuple[Row, float]]:
    """The most probable rows if attributes were independent, and their probabilities; the baseline of Dick et al.

    Of these rows the first attributes are always the most probable ones of these attributes, as many of them.
    """
    rows, probabilities = np.zeros((1, 0), np.int64), np.ones(1)
    for one in shares:
        rows = np.column_stack([np.repeat(rows, len(one), axis=0), np.tile(np.arange(len(one)), len(rows))])
        probabilities = np.outer(probabilities, one).ravel()
        best = np.argsort(-probabilities, kind="stable")[:number]
        rows, probabilities = rows[best], probabilities[best]
    return list(zip(map(tuple, rows.tolist()), probabilities.tolist(), strict=True))


def independent_probability(shares: Sequence[FloatArray], row: Row) -> float:
    """The probability of a row if attributes were independent."""
    return float(np.prod([one[value] for one, value in zip(shares, row, strict=True)]))


def ranked(frequency: Mapping[Row, int], shares: Sequence[FloatArray] | None) -> list[Row]:
    """Rows by how often they came back; of as often ones the more probable first, if attributes were independent."""

    def place(row: Row) -> tuple[float, float, Row]:
        return -frequency[row], -independent_probability(shares, row) if shares else 0.0, row

    return sorted(frequency, key=place)
