"""Exact tests of the independence of runs: patterns that independent runs do not show.

The tests are functions of counts. Each conditions on the number of hits, so that no probability has to be known: given
their number, the hits of independent runs lie on every set of places of that size equally often. `refuse_dependent` and
`refuse_series` apply the tests to shards of confirm runs, further calls, and series of runs in the order of time.
"""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

import numpy as np

from dpwitness.arrays import Booleans, Floats, Integers, Rows
from dpwitness.errors import DependentRuns
from dpwitness.events import Event, stack
from dpwitness.evidence import Counts
from dpwitness.evidence.p_value import fisher_p_value
from dpwitness.health.findings import FRESH_NOISE_ADVICE, outcome_keys
from dpwitness.machine import Deadline
from dpwitness.mechanisms.mechanism import Turns
from dpwitness.neighbours import Data, Pair, shown
from dpwitness.runs import Role, Runner, Threads, generator

#: DEPENDENCE_LEVEL is the largest probability with which a test of this file refuses a mechanism of independent runs.
DEPENDENCE_LEVEL: Final = 1e-9


def calls_p_value(hits: Sequence[int], rows: Sequence[int]) -> float:
    """The p-value of independence, from the most unusual call's share of hits, and shares too far apart or too close.

    Each of these three tests has a third of the level. Given all hits, the hits of one call are hypergeometric, which
    tests each call. Given also the calls before it, the hits are hypergeometric again: these p-values are independent,
    and their product tests whether calls lie far from their expectation, or close to it (Fisher's method).
    """
    from scipy.stats import chi2, hypergeom  # 0.5 s

    if len(hits) < 2:
        return 1.0
    h, n = np.asarray(hits, np.int64), np.asarray(rows, np.int64)
    law = hypergeom(n.sum(), h.sum(), n)
    single = 2 * len(h) * float(np.minimum(law.cdf(h), law.sf(h - 1)).min())
    runs, left = (np.cumsum(counts[::-1])[::-1] for counts in (n, h))
    law = hypergeom(runs, left, n)
    far = 2 * np.minimum(law.cdf(h), law.sf(h - 1))
    expected, away = n * left, abs(h * runs - n * left)  # both multiplied by `runs`: integers, without rounding
    close = law.cdf((expected + away) // runs) - law.cdf(-((away - expected) // runs) - 1)
    logs = [np.log(np.clip(p, np.finfo(float).tiny, 1.0)).sum() for p in (far, close)]
    return min(1.0, 3 * min(single, *(float(chi2.sf(-2 * log, 2 * len(h))) for log in logs)))


def lags_p_value(hits: Booleans, places: Integers) -> tuple[float, int]:
    """The p-value of independence, from how often hits coincide at some distance; and the distance in runs.

    `places` are the rising numbers of the runs in the order of time; runs of other inputs may lie between them. The
    p-value covers all distances up to half of the length. At each distance the runs form disjoint pairs, in two ways,
    and Fisher's test compares the shares of hits among the second runs, after a hit and after a miss. Only the four
    distances that differ most from chance are tested, and only beyond five standard errors, as smaller differences are
    not significant at `DEPENDENCE_LEVEL`.
    """
    at = places - places[0]
    size, share = int(at[-1]) + 1, float(hits.mean())
    lags = size // 2
    if not 0 < share < 1 or not lags:
        return 1.0, 0
    centred, present = np.zeros(size), np.zeros(size)
    centred[at], present[at] = hits - share, 1.0
    together, pairs = _autocorrelation(centred)[1 : lags + 1], _autocorrelation(present)[1 : lags + 1]
    scores = np.abs(together) / (share * (1 - share) * np.sqrt(np.maximum(np.rint(pairs), 1)))
    likeliest = np.argsort(-scores)[:4] + 1
    least, flags = (1.0, 0), np.full(size, -1, np.int8)
    flags[at] = hits
    for lag in likeliest[scores[likeliest - 1] > 5.0].tolist():
        block = np.arange(size - lag) // lag % 2
        for part in (0, 1):  # pairs from an even block into the next block, then from an odd block
            a, b = flags[:-lag][block == part], flags[lag:][block == part]
            both, first, second, neither = (
                int(((a == x) & (b == y)).sum()) for x, y in ((1, 1), (1, 0), (0, 1), (0, 0))
            )
            p = fisher_p_value(both, both + first, second, second + neither)
            least = min(least, (min(1.0, 2 * lags * p), lag))
    return least


def _autocorrelation(values: Floats) -> Floats:
    """The sums Σ v[t]·v[t + lag] for every lag from 0."""
    size = 1 << (2 * len(values) - 1).bit_length()
    return np.asarray(np.fft.irfft(np.abs(np.fft.rfft(values, size)) ** 2, size)[: len(values)])


def repeats_p_value(outcomes: Integers, places: Integers) -> float:
    """The p-value of independence, from outcomes that repeat at the distance of earlier repeats: an inverse e-value.

    Independent runs return given outcomes in every order equally often: the next outcome is c with the share of c among
    the outcomes still to come. The alternative favours the outcome at the distance of the last repeat, counted in
    places or in runs of this input, by a factor of 1 + f with f = 1, 10², 10⁴ or 10⁸. The bet is known before the run,
    so the ratio of the two probabilities has expectation 1, and so has the mean over several bets.

    `outcomes`: the outcomes of one input in the order of time, as numbers from 0; `places`: the rising numbers of its
    runs among all runs.
    """
    if not len(outcomes):
        return 1.0
    ratios = [*_repeat_ratios(outcomes, places), *_repeat_ratios(outcomes, np.arange(len(outcomes)))]
    top = max(ratios)
    return math.exp(min(0.0, math.log(len(ratios)) - top - math.log(sum(math.exp(r - top) for r in ratios))))


def _repeat_ratios(outcomes: Integers, places: Integers) -> list[float]:
    """The logarithm of the ratio of `repeats_p_value` for each of the four factors 1 + f."""
    runs = np.arange(len(outcomes))
    order = np.lexsort((runs, outcomes))  # grouped by outcome, in the order of time
    again = np.flatnonzero(np.diff(outcomes[order]) == 0)
    before = np.full(len(runs), -1)
    before[order[again + 1]] = order[again]
    # Before a run the distance of the last earlier repeat is known.
    latest = np.maximum.accumulate(np.append(-1, np.where(before >= 0, runs, -1)[:-1]))
    wanted = places - np.where(latest >= 0, places[latest] - places[before[latest]], 0)
    there = np.searchsorted(places, wanted)
    known = (latest >= 0) & (places[there] == wanted)
    t, expected = runs[known], outcomes[there[known]]
    earlier = np.searchsorted(outcomes[order] * len(runs) + order, expected * len(runs) + t)
    to_come = np.searchsorted(outcomes[order], expected, side="right") - earlier
    left = len(runs) - t
    undecided = (to_come > 0) & (to_come < left)  # else the next outcome is certain
    share, right = to_come[undecided] / left[undecided], outcomes[t[undecided]] == expected[undecided]
    return [float(math.log1p(f) * right.sum() - np.log1p(f * share).sum()) for f in (1.0, 1e2, 1e4, 1e8)]


#: MOST_SERIES_RUNS is the largest number of runs of one input that are tested in the order of time.
MOST_SERIES_RUNS: Final = 1 << 15
#: LEAST_SERIES_RUNS is the smallest number of runs of one input that are tested in the order of time.
LEAST_SERIES_RUNS: Final = 16
#: CALLS_SECONDS is the time in seconds of further calls on both inputs, about as long as a new process takes to start.
CALLS_SECONDS: Final = 0.5
#: MOST_CALLED_ENTRIES is the largest number of entries in the outcomes of further calls on one input: 32 MiB.
MOST_CALLED_ENTRIES: Final = 1 << 22

#: Shard has the counts of one shard: hits on D, hits on D′, paired runs.
Shard = tuple[int, int, int]


@dataclass(slots=True)
class Shards:
    """The counts of at most 64 shards of confirm runs, and the sums over all shards.

    Every `stride`-th shard is kept: the choice must not depend on its counts.
    """

    totals: tuple[Counts, ...] = ()
    kept: list[tuple[Shard, ...]] = field(default_factory=list)
    stride: int = 1
    count: int = 0
    series: "tuple[Series, ...]" = ()  # runs whose outcomes are known, such as the runs of epochs
    chosen: tuple[tuple[Event, Counts], ...] = ()  # earlier events of epochs, and their counts since they were chosen

    @property
    def compared(self) -> tuple[Counts, ...]:
        """The counts of each event and of the events in `chosen`, to be compared with other runs."""
        return (*self.totals, *(counts for _, counts in self.chosen))

    def add(self, totals: tuple[Counts, ...]) -> None:
        """Take the sums of every event's counts after one more shard."""
        if self.count % self.stride == 0:
            before = self.totals or tuple(Counts() for _ in totals)
            self.kept.append(
                tuple(
                    (now.hits - then.hits, now.neighbour_hits - then.neighbour_hits, now.runs - then.runs)
                    for now, then in zip(totals, before, strict=True)
                )
            )
            if len(self.kept) > 64:
                self.kept, self.stride = self.kept[::2], 2 * self.stride
        self.totals, self.count = totals, self.count + 1


@dataclass(frozen=True, slots=True)
class Series:
    """Runs of one input in one process, in the order of time: outcomes, and numbers among all runs of the process."""

    data: Data
    rows: Rows
    places: Integers

    @property
    def outcomes(self) -> list[bytes]:
        """The outcomes as bytes, equal for equal outcomes in every process."""
        return outcome_keys(self.rows)


def series_of(runs: Iterable[tuple[Pair, Rows, Rows, Turns]]) -> tuple[Series, ...]:
    """The four longest series in paired runs of several pairs; an input of several pairs has one series a process.

    `runs`: for each pair the outcomes on D and on D′, and their turns, empty if no state is kept between runs.
    """
    by_input: dict[object, list[Series]] = {}
    for pair, x, y, turns in runs:
        for data, key, rows, places in zip(pair.sides, pair.digests, (x, y), turns[1:], strict=True):
            for process in np.unique(turns[0]):
                there = turns[0] == process
                by_input.setdefault((key, process), []).append(Series(data, rows[there], places[there]))
    longest = sorted(by_input.values(), key=lambda parts: -sum(len(part.rows) for part in parts))[:4]
    series = []
    for parts in longest:
        rows, places = stack([part.rows for part in parts]), np.concatenate([part.places for part in parts])
        order = np.argsort(places)[-MOST_SERIES_RUNS:]
        if len(order) >= LEAST_SERIES_RUNS:
            series.append(Series(parts[0].data, rows[order], places[order]))
    return tuple(series)


def refuse_series(name: str, events: Sequence[Event], series: Sequence[Series]) -> None:
    """Raise `DependentRuns` if outcomes depend on earlier outcomes, at the level of `refuse_dependent`.

    Three patterns are tested: exact repeats of whole outcomes, odd against even runs, and all distances in time. The
    last two look at each event, and at whether the first entry of the outcomes is above, or far from, its median.
    """
    level = DEPENDENCE_LEVEL / max(len(series) * (1 + 2 * (len(events) + 2)), 1)
    for one in series:
        numbers: dict[bytes, int] = {}
        outcomes = np.array([numbers.setdefault(key, len(numbers)) for key in one.outcomes])
        if repeats_p_value(outcomes, one.places) < level:
            order = np.argsort(outcomes, kind="stable")
            distances = np.diff(one.places[order])[np.diff(outcomes[order]) == 0]
            distance = int(np.bincount(distances).argmax())
            later = f"{distance} {'run' if distance == 1 else 'runs'} later"
            raise _dependent_runs(
                name, f"on {shown(one.data)} the same outcome came again {later}, more often than by chance"
            )
        odd = one.places % 2 == 1
        for what, flags in _flags(one.rows, events):
            a, n, b, m = (int(count.sum()) for count in (flags[odd], odd, flags[~odd], ~odd))
            if fisher_p_value(a, n, b, m) < level:
                raise _dependent_runs(
                    name, f"on {shown(one.data)} {what} in {a} of {n} odd runs and in {b} of {m} even ones"
                )
            p, lag = lags_p_value(flags, one.places)
            if p < level:
                raise _dependent_runs(name, f"on {shown(one.data)} whether {what} depends on the run {lag} before")


def _dependent_runs(name: str, text: str) -> DependentRuns:
    return DependentRuns(f"the runs of {name} are not independent: {text}: {FRESH_NOISE_ADVICE}")


def _flags(rows: Rows, events: Sequence[Event]) -> Iterator[tuple[str, Booleans]]:
    """The flags of every run that are tested, each with its text; a median does not depend on the order of runs."""
    for event in events:
        yield "the event happened", event.contains(rows)
    first = rows[:, 0]
    if not np.isnan(first).all():
        middle = _median(first)
        yield "the outcome was above its median", first > middle
        with np.errstate(over="ignore", invalid="ignore"):  # of infinities and of codes of texts
            away = np.abs(first - middle)
        yield "the outcome was far from its median", away > _median(away)


def _median(values: Rows) -> float:
    """The upper median of the values without NaN; the mean of two large codes would overflow."""
    present = np.sort(values[~np.isnan(values)])
    return float(present[len(present) // 2]) if len(present) else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherCalls:
    """Further calls on one input: each call's number of runs, the hits of every event, and the first outcomes."""

    rows: list[int]
    hits: list[list[int]]  # [event][call]
    series: Series


def further_calls(
    runner: Runner, pair: Pair, events: Sequence[Event], *, seconds: float = CALLS_SECONDS
) -> list[FurtherCalls] | None:
    """Call the mechanism again on D and on D′, from new streams, for `seconds`; None if the calls take over 10 s."""

    def both() -> list[FurtherCalls]:
        return [_make_calls(runner, data, side, events, seconds / 2) for side, data in enumerate(pair.sides)]

    return next(Threads(1).ordered([both], Deadline(time.monotonic() + min(10.0, runner.seconds_until_due))))


def _make_calls(runner: Runner, data: Data, side: int, events: Sequence[Event], seconds: float) -> FurtherCalls:
    """Make up to 32 calls of equally many runs, at most a shard each, and `MOST_SERIES_RUNS` of plain Python."""
    mechanism, calls = runner.mechanism, 32
    width = max(mechanism.width, *(event.width for event in events))
    room = max(min(MOST_SERIES_RUNS, MOST_CALLED_ENTRIES // width), LEAST_SERIES_RUNS)
    most = mechanism.shard if mechanism.cost.batched else min(mechanism.shard, room // calls)
    rows = int(max(min(most, seconds / calls / max(mechanism.cost.seconds_per_run, 1e-9)), 1))
    hits: list[list[int]] = [[] for _ in events]
    blocks: list[Rows] = []
    before, end = mechanism.run_count, time.monotonic() + seconds
    for call in range(calls):
        block = mechanism.outcomes(
            data, generator(runner.seed, Role.HEALTH_FURTHER_CALLS, side, call), rows, least=width
        )
        for event, of_event in zip(events, hits, strict=True):
            of_event.append(int(event.contains(block).sum()))
        blocks.append(block[:room])
        room -= len(blocks[-1])
        if time.monotonic() > end:
            break
    kept = stack(blocks)
    series = Series(data, kept, before + np.arange(len(kept)))
    return FurtherCalls(rows=[rows] * len(blocks), hits=hits, series=series)


def refuse_dependent(name: str, events: int, shards: Shards, further: Sequence[FurtherCalls]) -> None:
    """Raise `DependentRuns` if the hits of one of `events` events vary between calls more, or less, than by chance.

    The calls are the shards of the confirm runs and the `further` calls on D and on D′. A mechanism of independent runs
    is refused with probability at most `DEPENDENCE_LEVEL`, if the number of runs was fixed before.
    """
    for event, side in product(range(events), (0, 1)):
        hits = [shard[event][side] for shard in shards.kept] + (further[side].hits[event] if further else [])
        rows = [shard[event][2] for shard in shards.kept] + (further[side].rows if further else [])
        if calls_p_value(hits, rows) < DEPENDENCE_LEVEL / (2 * events):
            shares = sorted(h / n for h, n in zip(hits, rows, strict=True))
            raise _dependent_runs(
                name,
                f"on {('D', 'D′')[side]} the event happened in {shares[0]:.3%} of one call's runs and in "
                f"{shares[-1]:.3%} of another's, further apart or closer together than by chance",
            )
