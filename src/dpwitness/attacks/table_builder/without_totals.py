"""The answer to systems without a total query: sums over other attributes' values are fresh where totals are not.

Asghar & Kaafar (2020), section 7: a system may answer a set of values by the sum of the answers for each, so that
two-partitions show no noise at all. The people with one value can still be added up by every other attribute.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.averaging import nearest, usable
from dpwitness.attacks.table_builder.confidence import probability_right
from dpwitness.attacks.table_builder.histogram import Histogram, Progress, recover_histogram
from dpwitness.attacks.table_builder.plan import Plan
from dpwitness.attacks.table_builder.protocol import Block, System
from dpwitness.attacks.table_builder.table import Where

__all__ = ["add_up", "recover"]

#: Answers of one sum at most; each brings a noise.
MOST_ANSWERS = 1024
ADDED_UP = "totals show no noise of their own: counts were added up by other attributes instead (section 7)"
NO_NOISE = "all sums agree: the answers are exact, or totals are sums of published answers, whose noise stays"


def recover(
    oracle: System,
    rng: np.random.Generator,
    attribute: str,
    plan: Plan | None = None,
    *,
    where: Where | None = None,
    progress: Progress | None = None,
) -> Histogram:
    """`recover_histogram`; and where all of its sums agree, as if there were no noise, `add_up` instead.

    If those sums agree as well the counts are as published, and a note in `workarounds` says so.
    """
    found = recover_histogram(oracle, rng, attribute, plan, where=where, progress=progress)
    if found.variance != 0:
        return found
    asked = oracle.asked
    other = add_up(oracle, found, where=where)
    more = found.queries + oracle.asked - asked
    if not other.variance:
        return replace(found, workarounds=(*found.workarounds, NO_NOISE), queries=more)
    return replace(other, queries=more)


def add_up(oracle: System, found: Histogram, *, where: Where | None = None) -> Histogram:
    """Count each of the values of `found` by adding up its people by other attributes, alone and in pairs (section 7).

    A sum with a suppressed answer is left out. Sums of p answers are weighted by 1/p; there are as many as there are
    attributes and pairs of them, so that no number of questions makes the counts as exact as one likes.
    """
    fixed = dict(where or {})
    others = [name for name in oracle.attributes if name not in {found.attribute, *fixed}]
    ways = [(name,) for name in others] + list(combinations(others, 2))
    ways = [way for way in ways if math.prod(len(oracle.values(name)) for name in way) <= MOST_ANSWERS]
    asked = oracle.asked
    sums = [
        _sums(oracle, {**fixed, found.attribute: (value,)}, ways, published)
        for value, published in zip(found.values, found.noisy, strict=True)
    ]
    means = [float(np.average(x, weights=1 / p)) if len(x) else 0.0 for x, p in sums]
    squares = sum(float(np.sum((x - mean) ** 2 / p)) for (x, p), mean in zip(sums, means, strict=True))
    freedom = sum(max(len(x) - 1, 0) for x, _ in sums)
    variance = squares / freedom if freedom else None
    errors = [math.sqrt((variance or 0.0) / float(np.sum(1 / p))) if len(p) else math.inf for _, p in sums]
    counts = tuple(max(nearest(mean), 0) for mean in means)
    return replace(
        found,
        counts=counts,
        confidence=tuple(
            probability_right(mean, count, error, 0) for mean, count, error in zip(means, counts, errors, strict=True)
        ),
        kinds=tuple(tuple((int(parts), int(np.sum(p == parts))) for parts in np.unique(p)) for _, p in sums),
        variance=variance,
        workarounds=(*found.workarounds, ADDED_UP),
        queries=oracle.asked - asked,
    )


def _sums(
    oracle: System, where: Where, ways: Sequence[tuple[str, ...]], published: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """All sums of the people in `where`, the published answer among them, and of how many answers each is."""
    blocks: list[Block] = []
    places: list[int] = []
    for i, way in enumerate(ways):
        size = len(oracle.values(way[0]))
        # A pair: the values of the one attribute within each of the other's.
        inner = [{way[1]: (value,)} for value in oracle.values(way[1])] if len(way) > 1 else [{}]
        for more in inner:
            blocks.append(Block(attribute=way[0], selections=np.eye(size, dtype=np.bool_), where={**where, **more}))
            places.append(i)
    answers = oracle.ask_all(blocks)
    found, parts = ([float(published)], [1.0]) if published else ([], [])
    for i in range(len(ways)):
        mine = np.concatenate([one for one, place in zip(answers, places, strict=True) if place == i])
        if usable(mine).all():
            found.append(float(mine.sum()))
            parts.append(float(len(mine)))
    return np.array(found), np.array(parts)
