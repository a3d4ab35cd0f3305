"""The order of pairs by measured sensitivity: the shift of outcomes under the same noise, in scales of the noise.

Both sides of a pair are run from the same seeds. Where a mechanism adds noise to a value, outcomes on D and D′ then
differ by the difference of the values alone, and two runs on D by noise alone; a library sampler with the value as its
location gives the same. The measured sensitivity only says which pairs are tried first, and is no evidence.
"""

import copy
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from dpwitness.arrays import Rows
from dpwitness.errors import DPWitnessError
from dpwitness.events import widen
from dpwitness.events.encoding import is_no_number
from dpwitness.machine import Deadline
from dpwitness.mechanisms.mechanism import Mechanism, PairedRuns
from dpwitness.neighbours import Pair
from dpwitness.runs import Role, Runner, Threads, generator

#: SENSITIVITY_RUNS is the number of paired runs of each pair: two, whose difference is noise.
SENSITIVITY_RUNS: Final = 2
#: REFERENCE_RUNS is the number of runs on one input that give the scale of the noise of each entry.
REFERENCE_RUNS: Final = 32
#: LEADING_PAIRS is the number of pairs, those of the largest sensitivities, that a check tries before all others.
LEADING_PAIRS: Final = 4
#: LEADING_RATIO is the least ratio of the largest sensitivity to the median for which the order of pairs changes.
LEADING_RATIO: Final = 1.5
#: SENSITIVITY_SHARE is the share of `max_time` for making and measuring the pairs.
SENSITIVITY_SHARE: Final = 0.05
#: MOST_MEASURED_PAIRS is the largest number of measured pairs.
MOST_MEASURED_PAIRS: Final = 1 << 10
#: LARGEST_SHIFT is the largest sensitivity of one entry, in scales: the value of an entry without noise.
LARGEST_SHIFT: Final = 1e3
#: RELATIVE_ROUNDING is the relative difference up to which two outcomes are equal.
RELATIVE_ROUNDING: Final = 1e-9


def sensitivity_per_scale(x: Rows, y: Rows, reference: Rows) -> float:
    """The sum over all entries of the shift between D and D′, in units of the entry's noise (its mean difference).

    If the scale of the noise differs between D and D′, the ratio of the scales less 1 is added.

    `x` and `y`: the outcomes of two runs on D and on D′ with the same seeds, of shape (2, width); `reference`: those of
    more runs on any input, the first two with these seeds too. An entry without noise counts as `LARGEST_SHIFT`; an
    entry that is no number counts as 1 if it differs in both runs.
    """
    width = max(side.shape[1] for side in (x, y, reference))
    x, y, reference = (widen(side, width) for side in (x, y, reference))
    others = np.any([is_no_number(side) | ~np.isfinite(side) for side in (x, y)], axis=(0, 1))
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        steps, sides = np.abs(np.diff(reference, axis=0)), np.abs([x[0] - x[1], y[0] - y[1]])
        own, larger = sides.min(axis=0), sides.max(axis=0)
        # With the same seeds the noise is the reference's times a factor, so that two runs give it without an error.
        noise = np.where(steps[0] > 0, own * steps.mean(axis=0) / steps[0], steps.mean(axis=0))
        noise = np.where(np.isfinite(noise), noise, own)
        shift = np.abs(x - y).min(axis=0)
        shift[shift <= RELATIVE_ROUNDING * np.abs(x).max(axis=0)] = 0.0
        shifts = np.where(shift > 0, shift / noise, 0.0)
        shifts += np.where(larger > own * (1 + RELATIVE_ROUNDING), larger / own - 1, 0.0)
        shifts = np.minimum(shifts, LARGEST_SHIFT)
    return float(np.where(others, ~same.any(axis=0), shifts).sum())


def measured_sensitivities(pairs: Sequence[Pair], runner: Runner, seconds: float) -> list[float]:
    """The sensitivity per scale of the first pairs, as many as fit in `seconds`; NaN for a pair that cannot be run.

    The runs count nowhere. Other draws than those of seeded generators are used up, as by all runs: if they came again,
    runs that are evidence would repeat the noise that chose the pair.
    """
    mechanism, seed = copy.copy(runner.mechanism), runner.seed
    mechanism.traits = copy.deepcopy(mechanism.traits)
    each = 2 * SENSITIVITY_RUNS * max(mechanism.cost.seconds_per_run, 1e-9)
    fits = 1 << int(max(seconds / each, 1)).bit_length() - 1  # a power of two, as a seed should repeat the order

    def rows(pair: Pair, runs: int) -> Rows:
        paired = PairedRuns.d_first(pair, runs, coupled=True, columns=mechanism.columns)
        return mechanism.pair_outcomes(paired, generator(seed, Role.SENSITIVITY))

    def measured(reference: Rows, pair: Pair) -> float:
        try:
            x, y = rows(pair, SENSITIVITY_RUNS)
            return sensitivity_per_scale(x, y, reference)
        except DPWitnessError:  # the search raises it where it makes runs of the pair
            return np.nan

    deadline = Deadline(time.monotonic() + seconds)
    found: list[float] = []
    try:
        (first,) = Threads(1).ordered([lambda: rows(pairs[0], REFERENCE_RUNS)[0]], deadline)
        if first is None:
            return []
        for one in Threads(1).ordered((partial(measured, first, pair) for pair in pairs[:fits]), deadline):
            if one is None:
                break
            found.append(one)
    except DPWitnessError:
        return []
    return found


def measurable(mechanism: Mechanism) -> bool:
    """Whether the sensitivity of a mechanism's pairs is measured: a Python function whose draws follow from a seed."""
    cost = mechanism.cost
    return mechanism.in_process and mechanism.reproducible and not cost.cheap_in_bulk and not cost.slow


@dataclass(frozen=True, slots=True)
class OrderedPairs:
    """Pairs in the order in which they are tried; the first `leading` ones have the largest measured sensitivities."""

    pairs: list[Pair]
    leading: int = 0


def by_sensitivity(pairs: Iterable[Pair], runner: Runner, most: int, leading: int) -> OrderedPairs:
    """At most `most` pairs: `leading` pairs of the largest sensitivities first, then as many more, then as given.

    Half of the pairs are chosen by sensitivity, since events of other mechanisms do not show in it. The `leading` pairs
    have different sensitivities. The order is that of the relation if nothing can be measured, or no pair's sensitivity
    is `LEADING_RATIO` times the median.
    """
    seconds = SENSITIVITY_SHARE * runner.max_time
    end, made = time.monotonic() + seconds, list[Pair]()
    for pair in pairs:
        made.append(pair)
        if len(made) >= (MOST_MEASURED_PAIRS if time.monotonic() < end - seconds / 2 else most):
            break
    given = OrderedPairs(made[:most])
    if len(made) < 2:
        return given
    found = measured_sensitivities(made, runner, max(end - time.monotonic(), seconds / 2))
    levels = [float(f"{one:.3g}") for one in found]  # equal up to rounding
    order = sorted((k for k, level in enumerate(levels) if level > 0), key=lambda k: -levels[k])
    if not order or levels[order[0]] < LEADING_RATIO * np.nanmedian(levels):
        return given
    first = {levels[k]: k for k in reversed(order)}  # of pairs of one sensitivity, the first one
    leaders = [*first.values()][::-1][:leading]
    chosen = dict.fromkeys([*leaders, *order][: max(most // 2, len(leaders))])
    kept = [*chosen, *(k for k in range(len(made)) if k not in chosen)]
    return OrderedPairs([made[k] for k in kept[:most]], len(leaders))
