"""Which features of outcomes to try: all of few columns, of many columns those that some outcomes point to."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.events import Feature
from dpwitness.events.encoding import WHOLE
from dpwitness.events.entry_features import numbers

__all__ = ["bit_features", "features_of", "quick_features"]

Rows = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Pairs of so many columns, at most, are looked at, and of these as many as each measure of `_pairs` points to.
COLUMNS: Final = 24
PAIRS: Final = 4
#: Of so many columns all pairs are looked at.
FEW: Final = 5
#: Digits of so many columns.
DIGITS_OF: Final = 4
#: How many values are counted and located, those seen most; and how often one comes at least, per entry.
VALUES: Final = 3
OFTEN: Final = 1 / 64
#: The moduli that people round to, and of whole numbers some more.
MODULI: Final = (1.0, 10.0, 100.0)
WHOLE_MODULI: Final = (2.0, 3.0, 5.0, 10.0, 100.0, 4.0, 8.0, 16.0, 1024.0)
#: A spacing is computed from the smallest steps between values, in blocks of so many; how many blocks and spacings.
BLOCK: Final = 6
BLOCKS: Final = 5
SPACINGS: Final = 4
#: A multiple of the spacing is one up to this share of it.
NEARLY: Final = 0.01
#: What of the largest value may be rounding, and how many times as large a spacing is at least.
ROUNDING: Final = 2.0**-46
ON_GRID: Final = 2.0**12


def features_of(rows: Rows, times: Whole, columns: list[int]) -> Iterator[Feature]:
    """Features worth trying, of outcomes and how often each came under D and D′; shapes (k, width), (2, k).

    `columns` are the most promising ones first.
    """
    for column in columns[:DIGITS_OF]:
        yield from _of_entry(rows[:, column], times, column)
    if rows.shape[1] > 1:
        for pair in _pairs(rows, times, sorted(columns[:COLUMNS])):
            for name in ("difference", "sum of two", "order", "ratio"):
                yield Feature(name=name, columns=pair)
        yield from _of_all(rows)


def bit_features(rows: Rows, times: Whole, columns: list[int]) -> Iterator[Feature]:
    """The features of floating-point numbers, as `features_of`; none of whole numbers.

    They give away almost every mechanism that adds noise of floating-point arithmetic to a number (Mironov 2012), also
    those that are private in real arithmetic, so they are for who asks for them.
    """
    for column in columns[:DIGITS_OF]:
        plain = numbers(rows[:, column])
        if np.any(plain != np.round(plain), where=np.isfinite(plain)):
            yield Feature(name="power of two", columns=(column,))
            yield Feature(name="trailing zeros", columns=(column,))
            for bits in (1.0, 2.0, 4.0):
                yield Feature(name="low bits", columns=(column,), number=bits)


def quick_features(rows: Rows) -> tuple[Rows, Callable[[int], Feature]]:
    """The values of some features that show the clearest leaks, shape (features, k), and what the features are.

    What costs little: differences and sums of two entries, of many entries the differences of neighbours, the sum and
    the place of the largest of all, the number of entries.
    """
    width = rows.shape[1]
    if width == 1:
        return np.empty((0, len(rows))), lambda number: Feature(name="sum", columns=(0,))
    columns = numbers(rows).T
    if width <= FEW:
        first, second = np.triu_indices(width, 1)
    else:
        first = np.arange(min(width - 1, COLUMNS))
        second = first + 1
    last = (width - 1,)
    with np.errstate(all="ignore"):
        parts = [columns[first] - columns[second], columns[first] + columns[second]]
    names = ["sum", "place of largest", "length"]
    parts += [Feature(name=name, columns=last).values(rows)[None] for name in names]

    def named(number: int) -> Feature:
        turn, place = divmod(number, len(first))
        if turn < 2:
            name = "sum of two" if turn else "difference"
            return Feature(name=name, columns=(int(first[place]), int(second[place])))
        return Feature(name=names[number - 2 * len(first)], columns=last)

    return np.concatenate(parts), named


def _of_entry(values: Rows, times: Whole, column: int) -> Iterator[Feature]:
    """Presence and digits of one entry."""
    absent = np.isnan(values)
    if absent.any() and not absent.all():
        yield Feature(name="present", columns=(column,))
    plain = numbers(values)
    finite = np.isfinite(plain)
    spacings = set[float]().union(*(_spacings(plain[finite & (side > 0)]) for side in times))
    moduli = WHOLE_MODULI if np.all(plain[finite] == np.round(plain[finite])) else MODULI
    for modulus in dict.fromkeys((*sorted(spacings, reverse=True)[:SPACINGS], *moduli)):
        yield Feature(name="residue", columns=(column,), number=modulus)


def _spacings(values: Rows) -> set[float]:
    """Numbers of which the differences of many of some values are multiples; none where the values are on no grid.

    The smallest steps are few multiples of it, and some blocks of them have both ends on one grid, where there are two.
    """
    if not len(values):
        return set()
    rounding = float(np.max(np.abs(values))) * ROUNDING
    steps = np.diff(np.unique(values))
    steps = np.sort(steps[steps > rounding])[: BLOCK * BLOCKS]
    blocks = steps[: len(steps) // BLOCK * BLOCK].reshape(-1, BLOCK)
    return {_spacing(block, ON_GRID * rounding) for block in blocks} - {0.0}


def _spacing(steps: Rows, least: float) -> float:
    """The largest number of which all of some steps, ascending, are multiples; 0 where it is below `least`."""
    if np.all(steps == np.round(steps)) and steps.max() < WHOLE:
        spacing = float(np.gcd.reduce(steps.astype(np.int64)))
        return spacing if spacing > 1 else 0.0
    spacing = 0.0
    for step in steps.tolist():
        larger, smaller = (spacing, step % spacing) if spacing else (step, 0.0)
        while smaller > NEARLY * larger:  # what is rounded multiplies in Euclid's algorithm: never down to 0
            larger, smaller = smaller, abs(larger - smaller * round(larger / smaller))
        # By the largest step so far, of which the least is rounded.
        spacing = step / round(step / larger)
        if spacing < least:
            return 0.0
    multiples = steps / spacing
    return float(f"{spacing:.6g}") if np.all(np.abs(multiples - np.round(multiples)) < NEARLY) else 0.0


def _pairs(rows: Rows, times: Whole, columns: list[int]) -> list[tuple[int, int]]:
    """Pairs of columns: all of few; of many those most correlated, and whose order or equality differs most."""
    first, second = np.triu_indices(len(columns), 1)
    places = np.arange(len(first))
    if len(columns) > FEW:
        chosen = rows[:, columns]
        centred = np.clip(np.nan_to_num(numbers(chosen)), -1e150, 1e150)
        centred -= centred.mean(axis=0)
        products = centred.T @ centred
        scale = np.sqrt(np.maximum(products.diagonal(), 1e-300))
        correlation = (products / scale[:, None] / scale)[first, second]
        sides = times[0] / max(times[0].sum(), 1) - times[1] / max(times[1].sum(), 1)
        a, b = chosen[:, first], chosen[:, second]
        measures = (correlation, sides @ (a > b), sides @ (a == b))
        places = np.unique(np.concatenate([np.argsort(-np.abs(m), kind="stable")[:PAIRS] for m in measures]))
    return [(columns[first[k]], columns[second[k]]) for k in places]


def _of_all(rows: Rows) -> Iterator[Feature]:
    """Features of all entries together."""
    last = (rows.shape[1] - 1,)
    for name in ("sum", "largest", "smallest", "place of largest", "place of smallest", "different"):
        yield Feature(name=name, columns=last)
    present = rows[~np.isnan(rows)]
    if len(present) < rows.size:
        yield Feature(name="length", columns=last)
    values, often = np.unique(present, return_counts=True)
    order = np.argsort(-often, kind="stable")[:VALUES]
    for value in values[order[often[order] >= OFTEN * len(present)]].tolist():
        yield Feature(name="count", columns=last, number=value)
        yield Feature(name="first place", columns=last, number=value)
