"""The search that bets from the first run on: a portfolio of events for each pair, chosen anew before every epoch.

The events of a portfolio look best in the earlier runs of the pair. They are chosen from all intervals of single
entries between cuts at quantiles, the outsides of these intervals, single outcomes, and the proposals of attacks and
learners. An event's share of the wealth is its prior times the wealth that its bet would have reached in the earlier
runs (the posterior weights of a universal portfolio, Cover 1991). Its probabilities are estimated from the earlier runs
and a few imagined runs in which D and D′ do not differ. Only the next runs are evidence.

Each pair has two portfolios with half of its wealth each. The first has many imagined runs, which tells many weak
events from noise soonest, and bets on the one graded event that they make up. The second has few imagined runs, finds
clear events soonest, and bets on each by itself. The wealth of a check is spread evenly over a fixed number of pairs
from the start, so its mean is an e-value, whichever pairs get the runs. The next epoch belongs to the pair whose
wealth, less a charge for its runs or its time, is largest.

`search.pairs` draws 10⁵ runs and more, keeps no run as evidence, and looks at each run once or twice. Here every run
is evidence, as it should be where a run takes milliseconds. But portfolios are computed anew before every epoch, in a
time in which compiled code makes 10⁴ runs. Against ε = 0.7 `search.pairs` refutes `isvt3` in 0.8 CPU seconds, `isvt4`
in 0.9 to 1.1 and `noisy_max_laplace_value` in 2.3. This search takes 12 to 17 CPU seconds for `isvt3` and more than
40 for `isvt4`; if its epochs begin with 2¹⁴ runs and double, it takes 1.4, 3.4 to 3.8 and 1.2 CPU seconds for the three
mechanisms (two seeds). Both searches have the same pairs, variations, and proposals of attacks
(`search.pairs.proposed`) and learners (`learners.propose`).
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, overload

import numpy as np

from dpwitness.arrays import Booleans, Floats, Integers, Rows
from dpwitness.candidate import Candidate, Estimate
from dpwitness.claims import Claim, HalfPlane
from dpwitness.events import (
    Event,
    Interval,
    OutcomeSet,
    Outside,
    cells_of,
    members_of,
    of_one_width,
    stack,
)
from dpwitness.events.counting import cells_between
from dpwitness.events.encoding import LEAST_NUMBER, is_no_number
from dpwitness.evidence.counts import NO_COUNTS, Counts, CountsTable, best_bet, best_fractions, payoffs
from dpwitness.evidence.portfolio import Epoch, Flags, Stakes, largest_bet, log_e_values_of
from dpwitness.mechanisms.mechanism import Turns
from dpwitness.neighbours import Pair
from dpwitness.runs import Runner
from dpwitness.search.learners import Proposal, learn, propose
from dpwitness.search.objectives import GrowthAt
from dpwitness.search.ranges import all_ranges, counts_of, ends_of
from dpwitness.search.samples import sample_of

#: The number of cells of a column, cut at quantiles of both sides together; 8 cells need 10 % more runs, and 24 cells
#: save no runs.
COLUMN_CELLS: Final = 16
#: The largest number of columns with ranges: the columns in which the sides differ most.
MOST_COLUMNS_WITH_RANGES: Final = 16
#: The largest number of columns whose ranges are all events; more columns have only half-lines, central ranges and
#: equal tails, since each event takes a share of the prior.
COLUMNS_WITH_ALL_RANGES: Final = 4


def cuts_of(x: Rows, y: Rows) -> dict[int, Floats]:
    """The cuts of the columns in which the sides differ most, at quantiles of both sides together."""
    x, y = of_one_width(x, y)
    found: dict[int, tuple[float, Floats]] = {}
    for column in range(x.shape[1]):
        values = np.sort(np.concatenate([x[:, column], y[:, column]]))
        values = values[~np.isnan(values)]
        cuts = _cuts(values)
        absent = abs(int(np.isnan(x[:, column]).sum()) - int(np.isnan(y[:, column]).sum()))
        if len(cuts) or absent:
            sides = [np.searchsorted(np.sort(side[:, column]), cuts) for side in (x, y)]
            found[column] = float(max(np.abs(sides[0] - sides[1]).max(initial=0), absent)), cuts
    columns = sorted(found, key=lambda column: -found[column][0])[:MOST_COLUMNS_WITH_RANGES]
    return {column: found[column][1] for column in sorted(columns)}


def _cuts(values: Floats) -> Floats:
    """Cuts of a sorted column midway between values: at quantiles, and on both sides of frequent values."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, np.int64)
    if len(starts) < 2:
        return np.zeros(0)
    places = starts[1:]
    if len(starts) > COLUMN_CELLS:
        wanted = np.arange(1, COLUMN_CELLS) * len(values) // COLUMN_CELLS
        at = np.searchsorted(starts, wanted, side="right") - 1
        ends = np.append(starts, len(values))
        frequent = at[ends[at + 1] - ends[at] >= len(values) / COLUMN_CELLS] + 1
        kept = np.unique(np.concatenate([at, frequent]))
        places = starts[kept[(kept > 0) & (kept < len(starts))]]
    places = places[values[places] >= LEAST_NUMBER]  # codes below the numbers have no order
    low, high = values[places - 1], values[places]
    with np.errstate(invalid="ignore", over="ignore"):
        middle = low + (high - low) / 2
    middle[(low < LEAST_NUMBER) & (high > LEAST_NUMBER)] = LEAST_NUMBER  # between codes and numbers
    return np.where((middle > low) & (middle <= high), middle, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventGroup:
    """Events, their counts n10, n11, n01, n00 of shape (4, k), and the logarithms of their priors."""

    events: Sequence[Event]
    cells: Floats
    log_prior: Floats


class Ranges(Sequence[Event]):
    """All intervals between the cuts of columns, and their outsides; each event is made when it is asked for."""

    def __init__(self, cuts: dict[int, Floats]) -> None:
        """Build the ranges of all columns, which have equal priors; `cuts`: the rising cuts of each column."""
        self._cuts = cuts
        wide = len(cuts) > COLUMNS_WITH_ALL_RANGES
        found = [(column, _kept_ranges(places, wide=wide)) for column, places in cuts.items()]
        self._parts = [(column, first, last, outside) for column, (first, last, outside, _) in found]
        self._starts = np.cumsum([0, *(len(first) for _, first, _, _ in self._parts)])
        shares = [share / len(cuts) for _, (_, _, _, share) in found]
        self.log_prior = np.log(np.concatenate([np.zeros(0), *shares]))

    def __len__(self) -> int:
        return int(self._starts[-1])

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        """The event of a number from 0, or the list of the events of a slice of numbers."""
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        part = int(np.searchsorted(self._starts, index, side="right")) - 1
        column, first, last, outside = self._parts[part]
        k = index - self._starts[part]
        starts, ends = ends_of(self._cuts[column])
        inside = Interval(coordinate=column, low=float(starts[first[k]]), high=float(ends[last[k]]))
        return Outside(interval=inside) if outside[k] else inside

    def seen(self, x: Rows, y: Rows) -> EventGroup:
        """The group of all ranges, counted in paired runs."""
        x, y = of_one_width(x, y, max(self._cuts, default=0) + 1)
        cells = [np.zeros((4, 0))]
        for column, first, last, outside in self._parts:
            cuts = self._cuts[column]
            n = len(cuts) + 2
            i, j = (cells_between(cuts, side[:, column], n - 1) for side in (x, y))
            table = np.bincount(i * n + j, minlength=n * n).reshape(n, n)
            hits, others, both = counts_of(table, first, last, outside)
            cells.append(np.array([hits - both, both, others - both, len(x) - hits - others + both], np.float64))
        return EventGroup(events=self, cells=np.hstack(cells), log_prior=self.log_prior)


def _kept_ranges(cuts: Floats, *, wide: bool) -> tuple[Integers, Integers, Booleans, Floats]:
    """The ranges between the cuts of a column, as `all_ranges` gives them, and each range's share of the prior.

    The range between the largest number and +inf, which is empty, is left out.
    """
    first, last, outside, share = _ranges_with_prior(len(cuts) + 1, wide)
    starts, ends = ends_of(cuts)
    low, high = starts[first], ends[last]
    kept = (low < high) | ((low == np.inf) & (high == np.inf))
    return first[kept], last[kept], outside[kept], share[kept]


@lru_cache(maxsize=64)
def _ranges_with_prior(cells: int, wide: bool) -> tuple[Integers, Integers, Booleans, Floats]:
    """All ranges of `cells` cells, and each range's share of the prior.

    Half-lines share a third of the prior, central ranges and tails of equal rank a third, and all others, which `wide`
    leaves out, a third.
    """
    first, last, outside = all_ranges(cells)
    kind = np.where((first == 0) | (last == cells), 0, np.where(first == cells - last, 1, 2))
    kinds = np.bincount(kind, minlength=3) * [1, 1, not wide]
    share = np.divide(1 / np.count_nonzero(kinds), kinds, where=kinds > 0, out=np.zeros(3))[kind]
    kept = share > 0
    return first[kept], last[kept], outside[kept], share[kept]


#: The number of imagined runs without a difference between D and D′ in the portfolio of a graded event.
IMAGINED_RUNS_IF_GRADED: Final = 8.0
#: The number of imagined runs in the portfolio of single events.
IMAGINED_RUNS_IF_SINGLE: Final = 0.25
#: The prior of the ranges beside other groups: most violations show in a range.
RANGES_PRIOR: Final = 0.75
#: The distance in log wealth (nats) from the best event beyond which an event is left out of a portfolio.
LEFT_OUT_NATS: Final = 20.0
#: The largest number of events of a portfolio.
MOST_PORTFOLIO_EVENTS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Portfolio:
    """Events, whether D and D′ are exchanged for each event, and the stakes on the events in the same order.

    `promise`: the log wealth (nats) that bets on all events would have reached in the runs that chose them.
    """

    events: tuple[Event, ...]
    swapped: Booleans
    stakes: Stakes
    promise: float = 0.0

    @property
    def best(self) -> int:
        """The place of the event with the largest share."""
        return int(np.argmax(self.stakes.log_shares))


#: The portfolio without events, which bets nothing.
EMPTY_PORTFOLIO: Final = Portfolio(
    events=(),
    swapped=np.zeros(0, np.bool_),
    stakes=Stakes(p=np.zeros(0), q=np.zeros(0), both=np.zeros(0), log_shares=np.zeros(0)),
)


def portfolio(groups: Sequence[EventGroup], claim: Claim, imagined: float) -> Portfolio:
    """The portfolio of events in either direction, by seen and `imagined` runs; `EMPTY_PORTFOLIO` if no event gains."""
    single = sum(len(group.events) for group in groups)
    if not single:
        return EMPTY_PORTFOLIO
    seen = np.concatenate([group.cells for group in groups], axis=1)
    others = max(len(groups) - 1, 1)
    weights = [1.0] if len(groups) == 1 else [RANGES_PRIOR, *[(1 - RANGES_PRIOR) / others] * others]
    prior = np.concatenate([f.log_prior + np.log(weight) for f, weight in zip(groups, weights, strict=True)])
    seen = np.hstack([seen, seen[[2, 1, 0, 3]]])  # then the events with D and D′ exchanged
    prior = np.tile(prior, 2) - np.log(2)
    runs = seen.sum(axis=0)
    rate = (2 * seen[1] + seen[0] + seen[2] + 1) / (2 * runs + 2)
    added = imagined * np.array([rate * (1 - rate), rate**2, rate * (1 - rate), (1 - rate) ** 2])
    p, both, q = ((seen + added)[cells].sum(axis=0) / (runs + imagined) for cells in ([0, 1], [1], [1, 2]))
    plane = claim.half_plane(p, q)
    rising = np.flatnonzero(p > plane.slope * q + plane.intercept)  # a bet on any other event loses
    if not len(rising):
        return EMPTY_PORTFOLIO
    plane = HalfPlane(*(np.broadcast_to(part, p.shape)[rising] for part in (plane.slope, plane.intercept)))
    bets = best_bet(p[rising], q[rising], plane, both[rising])
    won = sum(n * np.log1p(bets * x) for n, x in zip(seen[:, rising], payoffs(plane), strict=True))
    values = np.where(bets > 0, prior[rising] + won, -np.inf)
    best = values.max()
    if best == -np.inf:
        return EMPTY_PORTFOLIO
    chosen = np.flatnonzero(values >= best - LEFT_OUT_NATS)
    chosen = chosen[np.argsort(-values[chosen], kind="stable")][:MOST_PORTFOLIO_EVENTS]
    promise = float(np.logaddexp.reduce(values[chosen]))
    log_shares = values[chosen] - promise
    chosen = rising[chosen]
    return Portfolio(
        events=tuple(_event(groups, int(k) % single) for k in chosen),
        swapped=chosen >= single,
        stakes=Stakes(p=p[chosen], q=q[chosen], both=both[chosen], log_shares=log_shares),
        promise=promise,
    )


def _event(groups: Sequence[EventGroup], number: int) -> Event:
    """The event of a number, counted through all groups."""
    for group in groups:
        if number < len(group.events):
            return group.events[number]
        number -= len(group.events)
    raise IndexError(number)


def group_of(events: Sequence[Event], x: Rows, y: Rows) -> EventGroup:
    """The group of different events with equal priors, counted in runs that did not choose them."""
    events = list(dict.fromkeys(events))
    even = np.full(len(events), -np.log(max(len(events), 1)))
    x, y = of_one_width(x, y, max((event.width for event in events), default=1))
    return EventGroup(events=events, cells=cells_of(events, x, y).astype(np.float64), log_prior=even)


#: The number of steps to the best fractions of a graded event: 3 steps miss most of the gain, 200 overfit few runs.
FRACTION_STEPS: Final = 40


def flags_of(events: Sequence[Event], swapped: Booleans, x: Rows, y: Rows) -> Flags:
    """The events that each paired run falls into, D′ first where swapped; equal runs are one row.

    `swapped` has the shape (k,); `x` and `y` have the shapes (n, any width).
    """
    first, second = (members_of(events, rows).T for rows in of_one_width(x, y, max(e.width for e in events)))
    hits, others = np.where(swapped, second, first), np.where(swapped, first, second)
    packed = np.ascontiguousarray(np.packbits(np.hstack([hits, others]), axis=1))
    _, rows, times = np.unique(packed.view(f"V{packed.shape[1]}")[:, 0], return_index=True, return_counts=True)
    return Flags(hits=hits[rows], others=others[rows], times=times.astype(np.float64))


def graded(chosen: Portfolio, flags: Flags, claim: Claim, imagined: float) -> Stakes:
    """The stakes of a portfolio on the graded event whose wealth would have grown fastest in the runs of `flags`.

    The `imagined` runs that are added are the runs of `flags` with D and D′ exchanged.
    """
    stakes = chosen.stakes
    plane = claim.half_plane(stakes.p, stakes.q)
    most = largest_bet(plane)
    swapped = replace(flags, hits=flags.others, others=flags.hits)
    # Wealth that is not bet is one more event, whose payoff is 0.
    pays = np.vstack([1 + most * flags.payoffs(plane), 1 + most * swapped.payoffs(plane)])
    pays = np.hstack([pays, np.ones((len(pays), 1))])
    runs = flags.times.sum()
    weights = np.concatenate([flags.times, flags.times * imagined / runs]) / (runs + imagined)
    single = np.exp(stakes.log_shares) * best_bet(stakes.p, stakes.q, plane, stakes.both) / most
    fractions = best_fractions(pays, weights, np.append(single, max(1 - single.sum(), 0.0)), FRACTION_STEPS)
    return replace(stakes, fractions=fractions[:-1] / max(fractions.sum(), 1.0))


#: The divisor of a pair's runs so far that gives the runs of its next epoch: on average half of the last epoch is not
#: needed.
EPOCH_DIVISOR: Final = 16
#: The charge (nats) of a run in the choice of the next pair, so that no pair is kept by chance; 0.01 to 0.03 work too.
RUN_CHARGE_NATS: Final = 0.02
#: CHARGE_DIVISOR is the divisor of the best pair's growth (nats a run) that gives the largest charge of a run: a larger
#: charge would drop all slowly growing pairs.
CHARGE_DIVISOR: Final = 4
#: The least seconds of a paired run for which a pair is charged by time: the timing of short runs must not decide.
CHARGED_SECONDS: Final = 0.1
#: The least ratio of the seconds of a paired run to the seconds of the fastest pair for which a pair is charged by
#: time; the classes of input sizes in `search.costs` cover smaller ratios.
CHARGED_RATIO: Final = 8.0
#: The least number of runs of a pair from which learners propose events.
LEARNING_RUNS: Final = 32
#: The least number of runs of a pair from which learners are called with `thorough=True`.
LEAST_THOROUGH_RUNS: Final = 512
#: The factor by which the runs of a pair grow before events are learned, and columns cut, anew.
RENEWING_GROWTH: Final = 1.25
#: The largest number of learned events that are kept when new events are learned: bets on these events won most.
KEPT_EVENTS: Final = 16
#: The largest number of entries of one pair's outcomes in memory, both sides together: 64 MiB.
EPOCH_ENTRIES: Final = 1 << 23
#: The least number of runs inside the event of a pass, and outside it, if no event has a positive value.
LEAST_EVENT_RUNS: Final = 3
#: The largest number of single outcomes that are events.
MOST_SINGLE_OUTCOMES: Final = 16
#: The number of earlier events whose later runs are tested for dependence.
EARLIER_EVENTS: Final = 3
#: The least number of later runs of an earlier event that are tested for dependence.
LEAST_LATER_RUNS: Final = 16


@dataclass(slots=True, kw_only=True)
class PairWealth:
    """A pair, the outcomes of its runs, and the bets on it.

    `proposals`: events that an attack proposes for the pair. `epochs`: the epochs of the portfolio with many imagined
    runs, which is bet on as one graded event, and of the portfolio with few imagined runs.
    """

    pair: Pair
    index: int
    proposals: tuple[Event, ...] = ()
    x: Rows = field(default_factory=lambda: np.empty((0, 1)))
    y: Rows = field(default_factory=lambda: np.empty((0, 1)))
    turns: Turns = field(default_factory=lambda: np.empty((3, 0), np.int64))
    epochs: tuple[list[Epoch], list[Epoch]] = field(default_factory=lambda: ([], []))
    log_wealth: Floats = field(default_factory=lambda: np.zeros(2))
    portfolios: list[Portfolio] = field(default_factory=list)
    numbers: dict[Event, int] = field(default_factory=dict)  # the places in `seen` of the last epoch's events
    seen: CountsTable = NO_COUNTS  # each event's counts since portfolios hold it without a break
    coming: list[Portfolio] = field(default_factory=list)  # the portfolios of the next epoch
    chosen: list[tuple[Event, int]] = field(default_factory=list)  # the best event, and the runs, at each doubling
    cost: float = 1.0  # the cost of a run, in runs of the first pair; see `search.costs`
    seconds_per_run: float = math.inf  # the seconds of a paired run in the fastest epoch
    renewed_at: int = 0
    compared: int = 0  # the number of events, added up over all times that they were learned
    _ranges: Ranges = field(default_factory=lambda: Ranges({}))
    _learned: list[Event] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """The number of paired runs so far."""
        return len(self.x)

    @property
    def rows(self) -> tuple[Rows, Rows]:
        """The outcomes of D and of D′."""
        return self.x, self.y

    @property
    def full(self) -> bool:
        """Whether the outcomes so far have at least `EPOCH_ENTRIES` entries."""
        return self.x.size + self.y.size >= EPOCH_ENTRIES

    @property
    def wealth(self) -> float:
        """The logarithm of the mean wealth of both portfolios."""
        return float(np.logaddexp.reduce(self.log_wealth)) - math.log(2)

    @property
    def promise(self) -> float:
        """The largest log wealth (nats, at least 0) that the next portfolios would have reached in the runs so far."""
        return max((0.0, *(chosen.promise for chosen in self.coming)))

    def charged(self, fastest: float) -> float:
        """The cost of the runs of the pair so far, in runs of the first pair.

        A pair much slower than the fastest pair (`fastest` seconds a run) is charged by time, in runs of that pair.
        """
        # Code may be compiled, or processes started, in the first epoch, so that the fastest of two epochs is needed.
        seconds = self.seconds_per_run if self.runs and len(self.epochs[0]) > 1 else 0.0
        by_seconds = seconds >= max(CHARGED_SECONDS, CHARGED_RATIO * fastest)
        return self.runs * (seconds / fastest if by_seconds else self.cost)

    def advance(self, runner: Runner, claim: Claim, n: int, label: Callable[[float], str | None]) -> int:
        """Bet on n fresh runs, learn from them, and return their number: fewer than n at the deadline.

        `label`: a function that gives the text which an entry of an outcome encodes, None for a number.
        """
        self.portfolios = self.coming or [EMPTY_PORTFOLIO, EMPTY_PORTFOLIO]
        numbers = {event: k for k, event in enumerate(dict.fromkeys(e for p in self.portfolios for e in p.events))}
        started = time.perf_counter()
        counts, x, y, turns = runner.epoch(self.pair, list(numbers), n, self.index, len(self.epochs[0]))
        if len(x):
            self.seconds_per_run = min(self.seconds_per_run, (time.perf_counter() - started) / len(x))
        made = []
        for chosen in self.portfolios:
            places = np.array([numbers[event] for event in chosen.events], np.int64)
            flags = None if chosen.stakes.fractions is None else flags_of(chosen.events, chosen.swapped, x, y)
            made.append(Epoch(stakes=chosen.stakes, counts=counts.directed(places, chosen.swapped), flags=flags))
        for epochs, epoch in zip(self.epochs, made, strict=True):
            epochs.append(epoch)
        self.log_wealth += log_e_values_of(made, claim)
        places = np.array([self.numbers.get(event, -1) for event in numbers], np.int64)
        self.numbers, self.seen = numbers, counts.plus(self.seen, places)
        self.x, self.y = (stack([self.x, x]), stack([self.y, y])) if self.runs else (x, y)
        self.turns = np.concatenate([self.turns, turns], axis=1)
        groups = self._groups(claim, label) if self.runs else []
        self.coming = [self._graded(groups, claim), portfolio(groups, claim, IMAGINED_RUNS_IF_SINGLE)]
        if self.runs >= 2 * (self.chosen[-1][1] if self.chosen else 0):
            best = max(self.coming, key=lambda portfolio: portfolio.promise)
            self.chosen += [(best.events[best.best], self.runs)] if best.events else []
        return len(x)

    def _graded(self, groups: Sequence[EventGroup], claim: Claim) -> Portfolio:
        """The portfolio with many imagined runs, bet on the graded event of its events, if it has several events."""
        chosen = portfolio(groups, claim, IMAGINED_RUNS_IF_GRADED)
        if len(chosen.events) < 2:
            return chosen
        flags = flags_of(chosen.events, chosen.swapped, self.x, self.y)
        return replace(chosen, stakes=graded(chosen, flags, claim, IMAGINED_RUNS_IF_GRADED))

    def _groups(self, claim: Claim, label: Callable[[float], str | None]) -> list[EventGroup]:
        renewed = self.runs >= RENEWING_GROWTH * self.renewed_at
        if renewed:
            cuts = cuts_of(self.x, self.y)
            some = self.x[:MOST_SINGLE_OUTCOMES]
            texts = [c for c in cuts if any(map(label, some[:, c].tolist()))]  # texts have no order
            self._ranges = Ranges({column: places for column, places in cuts.items() if column not in texts})
            kept = self._best_learned(claim)
            self.renewed_at = self.runs
            proposed: list[Proposal] = []
            if self.runs >= LEARNING_RUNS:
                objective, thorough = GrowthAt(claim=claim), self.runs >= LEAST_THOROUGH_RUNS
                proposed = propose(sample_of(self.x, self.y), objective, thorough=thorough)
            self._learned = list(dict.fromkeys([*kept, *(found.event for found in proposed)]))
        groups = [self._ranges.seen(self.x, self.y), self._outcomes()]
        if self.proposals:
            groups.append(group_of(self.proposals, self.x, self.y))
        if self._learned:
            half = self.renewed_at // 2  # learners saw the first half
            groups.append(group_of(self._learned, self.x[half:], self.y[half:]))
        if renewed:
            self.compared += sum(len(group.events) for group in groups)
        return [group for group in groups if len(group.events)]

    def _best_learned(self, claim: Claim) -> list[Event]:
        """The learned events whose bets would have won most in the runs that learners did not see."""
        if not self._learned:
            return []
        half = self.renewed_at // 2
        group = group_of(self._learned, self.x[half:], self.y[half:])
        return list(dict.fromkeys(portfolio([group], claim, IMAGINED_RUNS_IF_SINGLE).events))[:KEPT_EVENTS]

    def _outcomes(self) -> EventGroup:
        """The group of single outcomes of equal priors; only repeated outcomes if over `MOST_SINGLE_OUTCOMES`."""
        rows = [row for side in (self.x, self.y) for row in side[: 2 * MOST_SINGLE_OUTCOMES]]
        times = Counter(row.tobytes() for row in rows)
        frequent = {
            row.tobytes(): row for row in rows if len(times) <= MOST_SINGLE_OUTCOMES or times[row.tobytes()] > 1
        }
        return group_of(
            [OutcomeSet(row[None]) for row in list(frequent.values())[:MOST_SINGLE_OUTCOMES]], self.x, self.y
        )

    def candidate(self, claim: Claim, planned: int) -> Candidate | None:
        """The candidate of the largest stake or, if betting has won no wealth, of the best learned event; else None.

        `planned`: the number of runs that will test the candidate. `ordinary` replaces an event that holds all runs so
        far, or no run, and an event of no positive value that holds, or leaves out, fewer than `LEAST_EVENT_RUNS`.
        """
        if self.wealth <= 0 and self.runs > 1:
            objective = GrowthAt(claim=claim, planned=planned)
            learned = learn(sample_of(self.x, self.y), objective, thorough=self.runs >= LEAST_THOROUGH_RUNS, most=1)[0]
            found = Candidate(pair=learned.directed(self.pair), event=learned.event, estimate=learned.estimate)
            least = 1 if learned.value > 0 else LEAST_EVENT_RUNS
            return found if self.tells(found.event, least) else self.ordinary() or found
        staked = self._staked()
        kept = staked is not None and self.wealth > 0 and self.tells(staked.event)
        return staked if kept else self.ordinary() or staked

    def tells(self, event: Event, least: int = 1) -> bool:
        """Whether at least `least` outcomes (fewer after few runs) lie in an event, and as many outcomes outside it."""
        x, y = of_one_width(self.x, self.y, event.width)
        hits = int(np.count_nonzero(event.contains(x)) + np.count_nonzero(event.contains(y)))
        least = min(least, max(self.runs // 4, 1))
        return least <= hits <= 2 * self.runs - least

    def ordinary(self) -> Candidate | None:
        """The candidate of an event of one entry whose share of the runs is nearest to 1/2; None for equal outcomes."""
        if not self.runs:
            return None
        events = [event for column in range(self.x.shape[1]) for event in _halves(self.x, self.y, column)]
        shares = [(event.contains(self.x), event.contains(self.y)) for event in events]
        distances = [abs((float(a.mean()) + float(b.mean())) / 2 - 0.5) for a, b in shares]
        if not distances or min(distances) >= 0.5:
            return None
        k = int(np.argmin(distances))
        a, b = shares[k]
        estimate = Estimate(p=float(a.mean()), q=float(b.mean()), both=float((a & b).mean()))
        return Candidate(pair=self.pair, event=events[k], estimate=estimate)

    def _staked(self) -> Candidate | None:
        """The candidate of the event with the largest stake in the wealthier portfolio; None without events."""
        chosen = self.portfolios[int(np.argmax(self.log_wealth))] if self.portfolios else EMPTY_PORTFOLIO
        if not chosen.events:
            return None
        stakes, k = chosen.stakes, chosen.best
        estimate = Estimate(p=float(stakes.p[k]), q=float(stakes.q[k]), both=float(stakes.both[k]))
        pair = self.pair.swapped() if chosen.swapped[k] else self.pair
        return Candidate(pair=pair, event=chosen.events[k], estimate=estimate)

    def outcomes_of(self, candidate: Candidate) -> tuple[Rows, Rows]:
        """The outcomes so far, first of the candidate's D, then of its D′."""
        return self.rows if candidate.pair.data is self.pair.data else (self.y, self.x)

    def counts(self, candidate: Candidate) -> Counts:
        """The counts of the candidate's event since portfolios hold it without a break, with the candidate's D as D."""
        number = self.numbers.get(candidate.event)
        seen = Counts() if number is None else self.seen.of(number)
        return seen if candidate.pair.data is self.pair.data else seen.swapped()

    def later_counts(self, candidate: Candidate) -> tuple[tuple[Event, Counts], ...]:
        """Events that were best earlier, and the counts of each in all later runs, with the candidate's D as D.

        The runs that chose an event are left out, as these runs hold the event more often than other runs.
        """
        x, y = self.outcomes_of(candidate)
        earlier = [(event, at) for event, at in self.chosen if self.runs - at >= LEAST_LATER_RUNS]
        return tuple(
            (event, CountsTable(cells_of([event], *of_one_width(x[at:], y[at:], event.width))).of(0))
            for event, at in earlier[-EARLIER_EVENTS:]
        )


def _halves(x: Rows, y: Rows, column: int) -> Iterator[Event]:
    """The events that an entry is present, lies in the upper half of its numbers, or is its most frequent code."""
    yield Interval(coordinate=column)
    values = np.concatenate([x[:, column], y[:, column]])
    codes = values[is_no_number(values)]
    values = np.sort(values[values >= LEAST_NUMBER])
    if len(values) and values[0] < values[-1]:
        middle = values[len(values) // 2]
        yield Interval(coordinate=column, low=float(middle if middle > values[0] else values[values > middle][0]))
    if len(codes):
        kinds, times = np.unique(codes, return_counts=True)
        most = float(kinds[np.argmax(times)])
        yield Interval(coordinate=column, low=most, high=math.nextafter(most, math.inf))


def next_pair(pairs: Sequence[PairWealth]) -> PairWealth:
    """The pair of the next epoch, which has the largest wealth less a charge for its runs or its time."""
    fastest = min(pair.seconds_per_run for pair in pairs)
    best = max((pair.promise + 1) / max(pair.runs, 1) for pair in pairs)
    charge = min(RUN_CHARGE_NATS, best / CHARGE_DIVISOR)
    return max(pairs, key=lambda pair: pair.wealth - charge * pair.charged(fastest))
