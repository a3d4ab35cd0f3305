"""Whether runs are independent of each other: exact tests of patterns that independent runs do not show.

First the tests, which are functions of counts. Each conditions on the number of hits, so that no probability has to be
known: given their number, the hits of independent runs lie on every set of places of that size equally often. Then what
they are applied to: shards of confirm runs, further calls, and series of runs in the order of time (`refuse_dependent`,
`refuse_series`).
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpwitness.errors import DependentRuns
from dpwitness.events import Event, widen
from dpwitness.evidence import Counts
from dpwitness.health.findings import ADVICE, SECONDS, Outcomes, outcome_keys
from dpwitness.machine import COMPILING, Deadline
from dpwitness.mechanisms.mechanism import Rows, Turns
from dpwitness.neighbours import Data, Pair, input_key, shown
from dpwitness.runs import Role, Runner, Threads, generator, stack

#: The probability with which these tests refuse a mechanism of independent runs, at most.
LEVEL: Final = 1e-9
#: Exponents 1/T by which the alternatives widen (or narrow) the distribution of a call's hits under independence.
TEMPERATURES: Final = (1 / 64, 1 / 8, 2.0, 8.0, 64.0)
#: What is so many times e smaller adds nothing to a sum.
NEGLIGIBLE: Final = 46.0
#: The alternatives: an outcome is so many times likelier to repeat at the distance of the last repeat.
FACTORS: Final = (1.0, 1e2, 1e4, 1e8)
#: So many lags are tested exactly: those where hits differ most from chance, by at least so many standard errors, since
#: fewer are never significant at `LEVEL`.
LAGS: Final = 4
STANDARD_ERRORS: Final = 5.0

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@cache
def _special() -> Any:
    """scipy.special: compiled mechanisms need none of it, and its import, 0.2 s, is as little a run as compiling is."""
    COMPILING.start()
    try:
        import scipy.special
    finally:
        COMPILING.stop()
    return scipy.special


def fisher_p_value(hits: int, of: int, other_hits: int, of_others: int) -> float:
    """Fisher's exact test that two shares differ in either direction: twice the smaller tail."""
    if not of or not of_others:
        return 1.0
    together = hits + other_hits, of + of_others
    return min(1.0, 2 * _smaller_tail(hits, of, together, _log_factorials(together[1])))


def _smaller_tail(hits: int, rows: int, together: tuple[int, int], factorials: Floats) -> float:
    """P[X ≤ hits] or P[X ≥ hits], the smaller, of the hits among some of all rows: a hypergeometric law.

    `together`: hits and rows of all. Summed here: scipy.stats takes a second to import, and it would be after the
    deadline.
    """
    all_hits, all_rows = together
    least = max(0, rows - (all_rows - all_hits))
    ways = _log_ways(rows, all_rows - rows, all_hits, factorials)
    ways = np.exp(ways - ways.max())
    tails = ways[: hits - least + 1].sum(), ways[hits - least :].sum()
    return float(min(tails) / ways.sum())


def _log_factorials(most: int) -> Floats:
    """Logarithms of 0!, 1!, … of whole numbers up to `most`."""
    return np.asarray(_special().gammaln(np.arange(most + 1.0) + 1))


def _log_ways(rows: int, others: int, hits: int, factorials: Floats) -> Floats:
    """Log C(rows, k) C(others, hits − k), as far as it depends on k, for every k that can be."""
    least, most = max(0, hits - others), min(rows, hits)
    rest = hits - most
    ways = -factorials[least : most + 1] - factorials[rows - most : rows - least + 1][::-1]
    ways -= factorials[rest : hits - least + 1][::-1] + factorials[others - hits + least : others - rest + 1]
    return ways


def pairs_p_value(both: int, hits: int, pairs: int) -> float:
    """Whether hits come in pairs of rows more, or less, often than by chance: twice the smaller tail.

    Of `pairs` disjoint pairs of rows, fixed beforehand, `both` consist of hits; `hits` is the number of hits in all.
    Placed at random, j pairs are filled in C(m, j) C(m − j, h − 2j) 2^(h − 2j) of the C(2m, h) ways.
    """
    logsumexp = _special().logsumexp
    least, most = max(0, hits - pairs), hits // 2
    j = np.arange(least, most + 1, dtype=np.float64)
    log_ways = _choose(pairs, j) + _choose(pairs - j, hits - 2 * j) + (hits - 2 * j) * math.log(2)
    share = np.exp(log_ways - logsumexp(log_ways))
    below, above = share[: both - least + 1].sum(), share[both - least :].sum()
    return min(1.0, 2 * float(min(below, above)))


def hits_by_parity(hits: Flags, places: Whole) -> tuple[int, int, int, int]:
    """Hits at odd places, odd places, hits at even places, even places."""
    odd = places % 2 == 1
    return int(hits[odd].sum()), int(odd.sum()), int(hits[~odd].sum()), int((~odd).sum())


def lags_p_value(hits: Flags, places: Whole) -> tuple[float, int]:
    """Whether hits at some distance come together more, or less, often than by chance; and at which distance.

    `places` are the numbers of the runs in the order of time, increasing; between them may lie runs of other inputs.
    The p-value is over all distances up to half of the length; at each of them runs are taken in disjoint pairs, in two
    ways.
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
    likeliest = np.argsort(-scores)[:LAGS] + 1
    least, flags = (1.0, 0), np.full(size, -1, np.int8)
    flags[at] = hits
    for lag in likeliest[scores[likeliest - 1] > STANDARD_ERRORS].tolist():
        a, b = flags[:-lag], flags[lag:]
        block = np.arange(size - lag) // lag % 2
        for part in (0, 1):  # runs of even blocks with those of the blocks behind them, and those of odd ones
            chosen = (a >= 0) & (b >= 0) & (block == part)
            first, second = a[chosen] == 1, b[chosen] == 1
            total = int(first.sum() + second.sum())
            p = pairs_p_value(int((first & second).sum()), total, int(chosen.sum()))
            least = min(least, (min(1.0, 2 * lags * p), lag))
    return least


def _autocorrelation(values: Floats) -> Floats:
    """Σ v[t]·v[t + lag] for every lag."""
    size = 1 << (2 * len(values) - 1).bit_length()
    return np.asarray(np.fft.irfft(np.abs(np.fft.rfft(values, size)) ** 2, size)[: len(values)])


def repeats_p_value(outcomes: Whole, places: Whole) -> float:
    """Whether outcomes come again at a distance at which others came again; the inverse of an e-value.

    Given which outcomes there are, independent runs return them in every order equally often: the next is c with the
    share that c has of those still to come. The alternative makes likelier the one that stood as far before as an
    outcome came again last, counted in places, or in runs of this input. What is bet is known before the run, so the
    ratio of the two has expectation 1, and so has the mean over several bets.

    `outcomes` are those of one input in the order of time, equal ones by one number, from 0 on; `places` the numbers of
    these runs among all, increasing.
    """
    if not len(outcomes):
        return 1.0
    ratios = [*_repeat_ratios(outcomes, places), *_repeat_ratios(outcomes, np.arange(len(outcomes)))]
    top = max(ratios)
    return math.exp(min(0.0, math.log(len(ratios)) - top - math.log(sum(math.exp(r - top) for r in ratios))))


def _repeat_ratios(outcomes: Whole, places: Whole) -> list[float]:
    """The logarithm of the ratio of `repeats_p_value` for each factor."""
    runs = np.arange(len(outcomes))
    order = np.lexsort((runs, outcomes))  # runs of one outcome together, in the order of time
    again = np.flatnonzero(np.diff(outcomes[order]) == 0)
    before = np.full(len(runs), -1)
    before[order[again + 1]] = order[again]
    # The distance that is known before a run: that of the last run before it whose outcome had come before.
    latest = np.maximum.accumulate(np.append(-1, np.where(before >= 0, runs, -1)[:-1]))
    wanted = places - np.where(latest >= 0, places[latest] - places[before[latest]], 0)
    there = np.searchsorted(places, wanted)
    known = (latest >= 0) & (places[there] == wanted)
    t, expected = runs[known], outcomes[there[known]]
    earlier = np.searchsorted(outcomes[order] * len(runs) + order, expected * len(runs) + t)
    to_come = np.searchsorted(outcomes[order], expected, side="right") - earlier
    left = len(runs) - t
    undecided = (to_come > 0) & (to_come < left)  # else the next outcome is known without betting
    share, right = to_come[undecided] / left[undecided], outcomes[t[undecided]] == expected[undecided]
    return [float(math.log1p(f) * right.sum() - np.log1p(f * share).sum()) for f in FACTORS]


def calls_p_value(hits: Sequence[int], rows: Sequence[int]) -> float:
    """Whether some call's share of hits is not that of the others, or all shares vary more, or less, than by chance.

    Half of the level for each: the hypergeometric tails of every call, and the e-value of `log_dispersion`.
    """
    if len(hits) < 2:
        return 1.0
    h, n = np.asarray(hits, np.int64), np.asarray(rows, np.int64)
    together = int(h.sum()), int(n.sum())
    factorials = _log_factorials(together[1])  # once: they take most of the time
    calls = zip(h.tolist(), n.tolist(), strict=True)
    single = 2 * len(h) * min(_smaller_tail(a, b, together, factorials) for a, b in calls)
    return min(1.0, 2 * min(single, math.exp(-max(log_dispersion(h, n, factorials), 0.0))))


def log_dispersion(hits: Whole, rows: Whole, factorials: Floats | None = None) -> float:
    """The logarithm of an e-value against independence from the hits of several calls.

    Given all hits, those of the first call are hypergeometric, those of the second given the first again, and so on.
    The alternative is that law made wider or narrower, p(h)^(1/T) up to a constant: the ratio of the two has
    expectation 1 under independence, and so has the mean over several T. Its inverse is a p-value (Markov).
    `factorials`: logarithms of those of whole numbers up to all rows, where they are known.
    """
    logsumexp = _special().logsumexp
    left, hits_left = int(rows.sum()), int(hits.sum())
    factorials = _log_factorials(left) if factorials is None else factorials
    ratios = np.zeros(len(TEMPERATURES))
    for h, n in zip(hits.tolist(), rows.tolist(), strict=True):
        least, others = max(0, n - (left - hits_left)), left - n
        ways = _log_ways(n, others, hits_left, factorials)
        ways -= ways.max()  # what does not depend on k is divided out below
        own = ways[h - least]
        log_p = own - _log_sum(ways, 1.0)
        for i, temperature in enumerate(TEMPERATURES):
            ratios[i] += own / temperature - _log_sum(ways, temperature) - log_p
        left, hits_left = others, hits_left - h
    return float(logsumexp(ratios) - math.log(len(ratios)))


def _log_sum(logs: Floats, temperature: float) -> float:
    """The logarithm of the sum of e^(x/T) for x of the largest 0; without what adds less than 10⁻²⁰ of it each."""
    logs = logs[logs > -NEGLIGIBLE * temperature]  # most of them: taking exponentials was half of a second check
    return math.log(np.exp(logs / temperature).sum())


def _choose(n: ArrayLike, k: ArrayLike) -> Floats:
    """Log C(n, k), for arrays and numbers."""
    gammaln = _special().gammaln
    return np.asarray(gammaln(np.add(n, 1.0)) - gammaln(np.add(k, 1.0)) - gammaln(np.subtract(n, k) + 1.0))


#: Further calls on each input, of a mechanism that makes many runs a call and of one that makes one; and shards of the
#: confirm runs, which are calls too, that are looked at beside them.
CALLS: Final = 32
CALLS_ONE_BY_ONE: Final = 8
#: Runs of such a call.
ONE_BY_ONE: Final = 32
SHARDS: Final = 64
#: Runs one by one that these calls make in all, since a pool of noise is found once it comes again: at most so many,
#: and after so many seconds no more than the lesser number.
MORE_RUNS: Final = 1 << 15
ENOUGH_RUNS: Final = 1 << 12
ENOUGH_SECONDS: Final = 0.1
#: Runs of one input that are looked at in the order of time, the series of how many inputs, and runs that it takes.
RUNS_IN_ORDER: Final = 1 << 15
SERIES: Final = 4
FEWEST: Final = 16
#: Numbers that the outcomes of further calls on one input may hold.
ROOM: Final = 1 << 22
#: Rows of the first call; the others are as long as fits in the time.
ROWS: Final = 64
#: Seconds for all of it at most.
MOST_SECONDS: Final = 10.0

Shard = tuple[int, int, int]  # hits on D, hits on D′, paired runs


@dataclass(slots=True)
class Shards:
    """What shards of confirm runs showed one by one: at most `SHARDS` of them, evenly spread, and the sum of all.

    Which are kept is decided by their number, never by what they show.
    """

    totals: tuple[Counts, ...] = ()
    kept: list[tuple[Shard, ...]] = field(default_factory=list)
    stride: int = 1
    count: int = 0
    series: "tuple[Series, ...]" = ()  # runs whose outcomes are known, as those of epochs
    chosen: tuple[tuple[Event, Counts], ...] = ()  # earlier events of epochs, and the runs since each was chosen

    @property
    def compared(self) -> tuple[Counts, ...]:
        """The counts whose shares are compared with those of other runs: of each event, then of those of `chosen`."""
        return (*self.totals, *(counts for _, counts in self.chosen))

    def add(self, totals: tuple[Counts, ...]) -> None:
        """Take the counts of every event after one more shard."""
        if self.count % self.stride == 0:
            before = self.totals or tuple(Counts() for _ in totals)
            self.kept.append(
                tuple(
                    (now.hits - then.hits, now.neighbour_hits - then.neighbour_hits, now.runs - then.runs)
                    for now, then in zip(totals, before, strict=True)
                )
            )
            if len(self.kept) > SHARDS:
                self.kept, self.stride = self.kept[::2], 2 * self.stride
        self.totals, self.count = totals, self.count + 1


@dataclass(frozen=True, slots=True)
class Series:
    """Runs of one input in one process, in the order of time: their outcomes, and their numbers among its runs."""

    data: Data
    rows: Rows
    places: Whole

    @property
    def outcomes(self) -> list[bytes]:
        """The outcomes, equal ones by the same bytes in every process."""
        return outcome_keys(self.rows)


def series_of(runs: Iterable[tuple[Pair, Rows, Rows, Turns]]) -> tuple[Series, ...]:
    """The longest series of paired runs of several pairs; an input that stands in several pairs is one.

    `runs`: of each pair the outcomes on D, those on D′, and the turns, of no runs where nothing is kept between them.
    """
    by_input: dict[object, list[Series]] = {}
    for pair, x, y, turns in runs:
        for data, rows, places in zip(pair.sides, (x, y), turns[1:], strict=True):
            for process in np.unique(turns[0]):
                there = turns[0] == process
                by_input.setdefault((input_key(data), process), []).append(Series(data, rows[there], places[there]))
    longest = sorted(by_input.values(), key=lambda parts: -sum(len(part.rows) for part in parts))[:SERIES]
    series = []
    for parts in longest:
        rows, places = stack([part.rows for part in parts]), np.concatenate([part.places for part in parts])
        order = np.argsort(places)[-RUNS_IN_ORDER:]
        if len(order) >= FEWEST:
            series.append(Series(parts[0].data, rows[order], places[order]))
    return tuple(series)


def refuse_series(name: str, events: Sequence[Event], series: Sequence[Series]) -> None:
    """Raise `DependentRuns` if outcomes depend on earlier ones, as `refuse_dependent` does.

    Three things are tested: exact repeats of whole outcomes, odd against even runs, and all distances in time. The last
    two look at each event, and at the first number of the outcomes: whether it is above, or far from, its median.
    """
    tests = len(series) * (1 + 2 * (len(events) + 2))
    for one in series:
        keys = one.outcomes
        numbers = {key: k for k, key in enumerate(dict.fromkeys(keys))}
        if repeats_p_value(np.array([numbers[key] for key in keys]), one.places) < LEVEL / tests:
            distance = _usual_distance(keys, one.places)
            later = f"{distance} {'run' if distance == 1 else 'runs'} later"
            raise _dependent(
                name, f"on {shown(one.data)} the same outcome came again {later}, more often than by chance"
            )
        for what, flags in _flags(one.rows, events):
            a, n, b, m = hits_by_parity(flags, one.places)
            if fisher_p_value(a, n, b, m) < LEVEL / tests:
                raise _dependent(
                    name, f"on {shown(one.data)} {what} in {a} of {n} odd runs and in {b} of {m} even ones"
                )
            p, lag = lags_p_value(flags, one.places)
            if p < LEVEL / tests:
                raise _dependent(name, f"on {shown(one.data)} whether {what} depends on the run {lag} before")


def _dependent(name: str, text: str) -> DependentRuns:
    return DependentRuns(f"the runs of {name} are not independent: {text}: {ADVICE}")


def _usual_distance(keys: Sequence[bytes], places: Whole) -> int:
    """The distance at which outcomes most often come again."""
    last: dict[bytes, int] = {}
    distances: Counter[int] = Counter()
    for key, place in zip(keys, places.tolist(), strict=True):
        if key in last:
            distances[place - last[key]] += 1
        last[key] = place
    return distances.most_common(1)[0][0]


def _flags(rows: Rows, events: Sequence[Event]) -> Iterator[tuple[str, Flags]]:
    """The flags that are followed through the runs; the median does not depend on the order of runs."""
    for event in events:
        yield "the event happened", event.contains(widen(rows, event.width))
    first = rows[:, 0]
    if not np.isnan(first).all():
        middle = _median(first)
        yield "the outcome was above its median", first > middle
        with np.errstate(over="ignore", invalid="ignore"):  # infinities, and the codes of texts
            away = np.abs(first - middle)
        yield "the outcome was far from its median", away > _median(away)


def _median(values: Rows) -> float:
    """The middle one of the values that are there: never between two, where large codes would overflow."""
    present = np.sort(values[~np.isnan(values)])
    return float(present[len(present) // 2]) if len(present) else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherCalls:
    """Further calls on one input.

    The hits of each event call by call, the outcome if it was always the same, the number of runs, and the first of
    them one by one.
    """

    hits: list[list[Flags]]  # [event][call], one flag a row
    always: tuple[float, ...] | None
    runs: int = 0
    series: Series | None = None


def further_calls(
    runner: Runner, pair: Pair, events: Sequence[Event], *, seconds: float = SECONDS
) -> list[FurtherCalls] | None:
    """Call the mechanism again on D and on D′, from streams of their own; None where that takes too long.

    `seconds`: how long it should take on each.
    """

    def both() -> list[FurtherCalls]:
        return [_calls(runner, data, side, events, seconds) for side, data in enumerate(pair.sides)]

    return next(Threads(1).ordered([both], Deadline(time.monotonic() + min(MOST_SECONDS, runner.seconds_until_due))))


def _calls(runner: Runner, data: Data, side: int, events: Sequence[Event], seconds: float) -> FurtherCalls:
    """Calls of as many rows as a shard of confirm runs has, where one call makes them, or as fit in the time."""
    mechanism = runner.mechanism
    calls = CALLS if mechanism.cost.batched else CALLS_ONE_BY_ONE
    size = mechanism.shard if mechanism.cost.cheap_in_bulk else min(mechanism.shard, ONE_BY_ONE)
    rows = min(size, ROWS)
    hits: list[list[Flags]] = [[] for _ in events]
    outcomes = Outcomes()
    blocks: list[Rows] = []
    before = mechanism.run_count
    width = max(mechanism.width, *(event.width for event in events))
    room = max(min(RUNS_IN_ORDER, ROOM // width), FEWEST)
    # Of mechanisms too slow for that the runs of epochs are looked at.
    enough = ENOUGH_RUNS if ENOUGH_RUNS * mechanism.cost.seconds_per_run < seconds else 0
    end = time.monotonic() + seconds
    for call in range(calls if mechanism.cost.batched else max(calls, min(MORE_RUNS, room) // size)):
        started = time.monotonic()
        if call >= calls and call * size >= enough and started > end - seconds + ENOUGH_SECONDS:
            break
        rng = generator(runner.seed, Role.HEALTH_FURTHER_CALLS, side, call)
        block = mechanism.outcomes(data, rng, rows, least=width)
        outcomes.add(block)
        blocks.append(block[:room])
        room -= len(blocks[-1])
        for event, flags in zip(events, hits, strict=True):
            flags.append(event.contains(block))
        now = time.monotonic()
        if now > end:
            break
        rows = int(min(size, max(rows, (end - now) / max(calls - call, 1) / ((now - started) / rows))))
    kept = stack(blocks)
    series = Series(data, kept, before + np.arange(len(kept)))
    return FurtherCalls(hits=hits, always=outcomes.always, runs=outcomes.runs, series=series)


def refuse_dependent(name: str, events: int, shards: Shards, further: Sequence[FurtherCalls]) -> None:
    """Raise `DependentRuns` if hits of so many events cluster in calls, or in pairs of rows.

    The calls are shards of the confirm runs, and `further` ones on D and on D′, if any. Of a mechanism of
    independent runs that happens with probability `LEVEL` at most, where the number of runs was fixed before.
    """
    tests = 2 * (1 + len(ORDERS)) * events
    for event, side in product(range(events), (0, 1)):
        calls = further[side].hits[event] if further else []
        counts = [(shard[event][side], shard[event][2]) for shard in shards.kept]
        counts += [(int(flags.sum()), len(flags)) for flags in calls]
        on = ("D", "D′")[side]
        if calls_p_value([h for h, _ in counts], [n for _, n in counts]) < LEVEL / tests:
            shares = sorted(h / n for h, n in counts)
            raise _dependent(
                name,
                f"on {on} the event happened in {shares[0]:.3%} of one call's runs and in {shares[-1]:.3%} of "
                "another's, further apart or closer together than by chance",
            )
        for what, order in ORDERS if calls else ():
            both, total, pairs = np.sum([_paired(*order(flags)) for flags in calls], axis=0).tolist()
            if pairs_p_value(both, total, pairs) < LEVEL / tests:
                raise _dependent(
                    name,
                    f"on {on} the event happened in both of two rows {what} in {both} of {pairs} pairs, with {total} "
                    "hits in all",
                )


def _paired(a: Flags, b: Flags) -> tuple[int, int, int]:
    """Pairs that are both hits, hits in all pairs, pairs; of flags that are one longer or as long."""
    a = a[: len(b)]
    b = b[: len(a)]
    return int((a & b).sum()), int(a.sum() + b.sum()), len(a)


#: Pairs of rows of a call: 1 and 2, 3 and 4, …; 2 and 3, 4 and 5, …, since what is kept for two runs may begin at any
#: of them; and a row of the first half and the row at its place in the second.
ORDERS: Final[tuple[tuple[str, Callable[[Flags], tuple[Flags, Flags]]], ...]] = (
    ("beside each other", lambda flags: (flags[0::2], flags[1::2])),
    ("beside each other", lambda flags: (flags[1::2], flags[2::2])),
    ("half a call apart", lambda flags: (flags[: len(flags) // 2], flags[len(flags) // 2 :])),
)
