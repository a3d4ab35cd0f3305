"""The order of pairs by measured sensitivity: the shift of outcomes under the same noise, in scales of the noise.

D and D′ are run from the same seeds. If a mechanism adds noise to a value, or draws from a sampler whose location is
the value, outcomes on D and D′ then differ by the difference of the values alone, and two runs on D by noise alone. The
measured sensitivity decides which pairs are tried first; it is no evidence.
"""

import copy
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from dpwitness.arrays import RELATIVE_ROUNDING, Rows
from dpwitness.errors import DPWitnessError
from dpwitness.events import widen
from dpwitness.events.encoding import is_no_number
from dpwitness.machine import Deadline
from dpwitness.mechanisms.mechanism import Mechanism, PairedRuns
from dpwitness.neighbours import Pair
from dpwitness.runs import Role, Runner, Threads, generator

#: SENSITIVITY_RUNS is the number of paired runs of each pair: two runs on one side differ by noise.
SENSITIVITY_RUNS: Final = 2
#: REFERENCE_RUNS is the number of runs on one input that give the scale of the noise of each entry.
REFERENCE_RUNS: Final = 32
#: LEADING_PAIRS is the number of pairs of the largest sensitivities, which a check tries before all other pairs.
LEADING_PAIRS: Final = 4
#: LEADING_RATIO is the least ratio of the largest sensitivity to the median for which the order of pairs changes: below
#: it, the order would delay other pairs for a small gain.
LEADING_RATIO: Final = 1.5
#: SENSITIVITY_SHARE is the share of `max_time` in which pairs are made and measured.
SENSITIVITY_SHARE: Final = 0.05
#: MOST_MEASURED_PAIRS is the largest number of measured pairs.
MOST_MEASURED_PAIRS: Final = 1 << 10
#: LARGEST_SHIFT is the largest sensitivity of one entry, in scales of its noise; an entry that shifts without noise has
#: this sensitivity.
LARGEST_SHIFT: Final = 1e3


def sensitivity_per_scale(x: Rows, y: Rows, reference: Rows) -> float:
    """The sum over all entries of the shift between D and D′, in scales of the entry's noise.

    `x` and `y`: outcomes of two runs on D, and of two runs on D′ with the same seeds, shape (2, width). `reference`:
    outcomes of runs on any input, shape (runs, width), the first two with these seeds too. The scale of the noise is
    the mean difference between successive runs, of the side with the smaller noise. If the scales on D and D′ differ,
    their ratio less 1 is added. An entry that shifts without noise counts as `LARGEST_SHIFT`. An entry that is not a
    finite number in some run counts as 1 if it differs between D and D′ in both runs, else as 0.
    """
    width = max(side.shape[1] for side in (x, y, reference))
    x, y, reference = (widen(side, width) for side in (x, y, reference))
    others = np.any([is_no_number(side) | ~np.isfinite(side) for side in (x, y)], axis=(0, 1))
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        steps, sides = np.abs(np.diff(reference, axis=0)), np.abs([x[0] - x[1], y[0] - y[1]])
        own, larger = sides.min(axis=0), sides.max(axis=0)
        # From the same seeds the noise is the reference's noise times a factor, which two runs give exactly.
        noise = np.where(steps[0] > 0, own * steps.mean(axis=0) / steps[0], steps.mean(axis=0))
        noise = np.where(np.isfinite(noise), noise, own)
        shift = np.abs(x - y).min(axis=0)
        shift[shift <= RELATIVE_ROUNDING * np.abs(x).max(axis=0)] = 0.0
        shifts = np.where(shift > 0, shift / noise, 0.0)
        shifts += np.where(larger > own * (1 + RELATIVE_ROUNDING), larger / own - 1, 0.0)
        shifts = np.minimum(shifts, LARGEST_SHIFT)
    return float(np.where(others, ~same.any(axis=0), shifts).sum())


def measured_sensitivities(pairs: Sequence[Pair], runner: Runner, seconds: float) -> list[float]:
    """The sensitivities of the first pairs, as many pairs as fit in `seconds`; NaN for a pair that cannot be run.

    The list is empty if the first pair cannot be run. No run changes the mechanism or its traits. State of the user's
    function does change, as in all runs: if it were restored, runs that are evidence would repeat the noise that chose
    the pair.
    """
    mechanism, seed = copy.copy(runner.mechanism), runner.seed
    mechanism.traits = copy.deepcopy(mechanism.traits)
    each = 2 * SENSITIVITY_RUNS * max(mechanism.cost.seconds_per_run, 1e-9)
    fits = 1 << int(max(seconds / each, 1)).bit_length() - 1  # a power of two, so that a seed repeats the order

    def rows(pair: Pair, runs: int) -> Rows:
        paired = PairedRuns.d_first(pair, runs, coupled=True, columns=mechanism.columns)
        return mechanism.pair_outcomes(paired, generator(seed, Role.SENSITIVITY))

    def measured(reference: Rows, pair: Pair) -> float:
        try:
            x, y = rows(pair, SENSITIVITY_RUNS)
            return sensitivity_per_scale(x, y, reference)
        except DPWitnessError:  # the search raises the error when it runs the pair
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
    """Whether sensitivities are measured: for Python functions whose draws follow from a seed, neither fast nor slow.

    A mechanism that is cheap in bulk makes many runs on all pairs; a slow mechanism has no runs to spare.
    """
    cost = mechanism.cost
    return mechanism.in_process and mechanism.reproducible and not cost.cheap_in_bulk and not cost.slow


@dataclass(frozen=True, slots=True)
class OrderedPairs:
    """Pairs in the order in which they are tried; the first `leading` pairs have the largest sensitivities."""

    pairs: list[Pair]
    leading: int = 0


def by_sensitivity(pairs: Iterable[Pair], runner: Runner, most: int, leading: int) -> OrderedPairs:
    """At most `most` pairs: up to `leading` pairs of the largest sensitivities, all different, then other pairs.

    Half of the pairs are chosen by sensitivity. The other half are the first of the given pairs, since some violations
    do not show in the sensitivity. The order stays as given if no pair can be measured, or the largest sensitivity is
    below `LEADING_RATIO` times the median.
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
    first = {levels[k]: k for k in reversed(order)}  # the first pair of each sensitivity
    leaders = [*first.values()][::-1][:leading]
    chosen = dict.fromkeys([*leaders, *order][: max(most // 2, len(leaders))])
    kept = [*chosen, *(k for k in range(len(made)) if k not in chosen)]
    return OrderedPairs([made[k] for k in kept[:most]], len(leaders))
