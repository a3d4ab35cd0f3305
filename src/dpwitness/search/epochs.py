"""The search that bets from the first run on: a portfolio of events for each pair, chosen anew before every epoch.

The events of a portfolio are those that look best in the earlier runs of the pair. Intervals of single entries and what
lies outside them are all taken, between cuts at quantiles; single outcomes, what an attack proposes and what learners
like best come beside them. An event's share of the wealth is its prior times what its bet would have won in the earlier
runs (the posterior weights of a universal portfolio, Cover 1991). Its probabilities are those of the earlier runs and a
few imagined ones in which D and D′ do not differ. Never evidence: that is what the next runs show.

Each pair has two portfolios with half of its wealth each: one with many imagined runs, which tells many weak events
from noise soonest and bets on the one graded event that they make up; and one with few, which finds clear events
soonest and bets on each by itself. The wealth of a check is spread evenly over a fixed number of pairs from the start,
so their mean is an e-value, whoever gets the runs. The next epoch belongs to the pair whose wealth, less a charge for
its runs or its time, is largest.

Why this is not the search of `search.pairs`: that one draws 10⁵ runs and more, keeps none of them as evidence, and
looks at each once or twice. Here no run is lost, which is what matters where a run takes milliseconds; but the
portfolios are computed anew before every epoch, in milliseconds, in which compiled code makes 10⁴ runs. `isvt3` against
ε = 0.7 is refuted by that one in 181,000 runs and 0.5 s, here in 8,000 runs and 12 to 17 s; `isvt4` by that one in 4 to
6 s, here not in 40 s (one core, two seeds). Pairs, variations, what attacks propose (`search.pairs.proposed`) and what
learners propose (`learners.propose`) are the same in both.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

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
)
from dpwitness.events.counting import cells_between
from dpwitness.events.encoding import LEAST_NUMBER, is_no_number
from dpwitness.evidence.counts import NO_COUNTS, Counts, CountsTable, Floats, best_bet, best_fractions, payoffs
from dpwitness.evidence.portfolio import Epoch, Flags, Stakes, largest_bet, log_e_values_of
from dpwitness.mechanisms.mechanism import Turns
from dpwitness.neighbours import Pair
from dpwitness.neighbours.pair import alike
from dpwitness.runs import Runner, stack
from dpwitness.search.learners import Proposal, learn, propose
from dpwitness.search.objectives import GrowthAt
from dpwitness.search.ranges import all_ranges, counts_of, ends_of
from dpwitness.search.samples import sample_of

Rows = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Cells of a column between cuts at quantiles of both sides together; 8 cost a tenth more runs, 24 gain nothing.
CELLS: Final = 16
#: Columns that are looked at: those in which the sides differ most.
COLUMNS: Final = 16
#: The part of the prior that columns share which the inputs move, where there are others too: of ten columns of which
#: one moves that saves a fifth of the runs.
MOVED: Final = 0.5
#: Of more columns only intervals that are open on one side, and equal tails: the prior thins out.
WIDE: Final = 4


def cuts_of(x: Rows, y: Rows) -> dict[int, Floats]:
    """Where to cut the columns that tell most, between different values, at quantiles of both sides together."""
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
    columns = sorted(found, key=lambda column: -found[column][0])[:COLUMNS]
    return {column: found[column][1] for column in sorted(columns)}


def _cuts(values: Floats) -> Floats:
    """Cuts between different values of a sorted column, in the middle; below and above values that are frequent."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, np.int64)
    if len(starts) < 2:
        return np.zeros(0)
    places = starts[1:]
    if len(starts) > CELLS:
        wanted = np.arange(1, CELLS) * len(values) // CELLS
        at = np.searchsorted(starts, wanted, side="right") - 1
        ends = np.append(starts, len(values))
        frequent = at[ends[at + 1] - ends[at] >= len(values) / CELLS] + 1
        kept = np.unique(np.concatenate([at, frequent]))
        places = starts[kept[(kept > 0) & (kept < len(starts))]]
    places = places[values[places] >= LEAST_NUMBER]  # what is no number has no order
    low, high = values[places - 1], values[places]
    with np.errstate(invalid="ignore", over="ignore"):
        middle = low + (high - low) / 2
    middle[(low < LEAST_NUMBER) & (high > LEAST_NUMBER)] = LEAST_NUMBER  # what is no number, and numbers
    return np.where((middle > low) & (middle <= high), middle, high)


def moved_entries(pair: Pair, width: int) -> frozenset[int]:
    """Where two inputs of as many values as an outcome has entries differ: there an answer about each value moves."""
    if not alike(pair) or pair.data.shape != (width,):
        return frozenset()
    return frozenset(np.flatnonzero(pair.data != pair.neighbour).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Events as they were seen: cells n10, n11, n01, n00 of shape (4, k), and logarithms of their priors."""

    events: Sequence[Event]
    cells: Floats
    log_prior: Floats


class Ranges(Sequence[Event]):
    """Every interval between the cuts of columns, and what lies outside it; an event is made when it is asked for."""

    def __init__(self, cuts: dict[int, Floats], moved: frozenset[int] = frozenset()) -> None:
        """`cuts`: of each column, rising; `moved`: columns whose prior is larger."""
        self._cuts = cuts
        found = [(column, _kept_ranges(places, wide=len(cuts) > WIDE)) for column, places in cuts.items()]
        self._parts = [(column, first, last, outside) for column, (first, last, outside, _) in found]
        self._starts = np.cumsum([0, *(len(first) for _, first, _, _ in self._parts)])
        here = moved & cuts.keys()
        rest = 1 - MOVED if 0 < len(here) < len(cuts) else 1.0
        shares = [
            share * (rest / len(cuts) + (1 - rest) * (column in here) / max(len(here), 1))
            for column, (_, _, _, share) in found
        ]
        self.log_prior = np.log(np.concatenate([np.zeros(0), *shares]))

    def __len__(self) -> int:
        return int(self._starts[-1])

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        """The event of a number from 0."""
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

    def seen(self, x: Rows, y: Rows) -> Family:
        """All of them, as paired runs show them."""
        x, y = of_one_width(x, y, max(self._cuts, default=0) + 1)
        cells = [np.zeros((4, 0))]
        for column, first, last, outside in self._parts:
            cuts = self._cuts[column]
            n = len(cuts) + 2
            i, j = (cells_between(cuts, side[:, column], n - 1) for side in (x, y))
            table = np.bincount(i * n + j, minlength=n * n).reshape(n, n)
            hits, others, both = counts_of(table, first, last, outside)
            cells.append(np.array([hits - both, both, others - both, len(x) - hits - others + both], np.float64))
        return Family(events=self, cells=np.hstack(cells), log_prior=self.log_prior)


def _kept_ranges(cuts: Floats, *, wide: bool) -> tuple[Whole, Whole, NDArray[np.bool_], Floats]:
    """Of each event between the cuts of a column: first cell, last cell, whether the outside; the share of the prior.

    Without intervals that would be empty: between the largest number and +inf.
    """
    first, last, outside, share = _ranges_with_prior(len(cuts) + 1, wide)
    starts, ends = ends_of(cuts)
    low, high = starts[first], ends[last]
    kept = (low < high) | ((low == np.inf) & (high == np.inf))
    return first[kept], last[kept], outside[kept], share[kept]


@lru_cache(maxsize=64)
def _ranges_with_prior(cells: int, wide: bool) -> tuple[Whole, Whole, NDArray[np.bool_], Floats]:
    """As `_kept_ranges`, of so many cells.

    A third of the prior each: open on one side; central, and the tails of equal rank; all others.
    """
    first, last, outside = all_ranges(cells)
    kind = np.where((first == 0) | (last == cells), 0, np.where(first == cells - last, 1, 2))
    kinds = np.bincount(kind, minlength=3) * [1, 1, not wide]
    share = np.divide(1 / np.count_nonzero(kinds), kinds, where=kinds > 0, out=np.zeros(3))[kind]
    kept = share > 0
    return first[kept], last[kept], outside[kept], share[kept]


#: Imagined runs without a difference between D and D′, for each of a pair's two portfolios.
MANY_IMAGINED: Final = 8.0
FEW_IMAGINED: Final = 0.25
#: The prior of the first family where there are several: intervals are what most violations show in.
FIRST: Final = 0.75
#: Events so many nats less promising than the best are left out, and all but so many of them.
NATS: Final = 20.0
MOST: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Portfolio:
    """Events, whether D′ plays D in each, and what is bet on them; `stakes` in their order.

    `promise`: the logarithm of what bets on each event would have made of a wealth of 1 in the runs that chose them.
    """

    events: tuple[Event, ...]
    swapped: NDArray[np.bool_]
    stakes: Stakes
    promise: float = 0.0

    @property
    def best(self) -> int:
        """The place of the event with the largest share."""
        return int(np.argmax(self.stakes.log_shares))


NOTHING: Final = Portfolio(
    events=(),
    swapped=np.zeros(0, np.bool_),
    stakes=Stakes(p=np.zeros(0), q=np.zeros(0), both=np.zeros(0), log_shares=np.zeros(0)),
)


def portfolio(families: Sequence[Family], claim: Claim, imagined: float) -> Portfolio:
    """The portfolio of events in either direction; `imagined` runs are added to those seen.

    Nothing is staked where no event promises anything.
    """
    single = sum(len(family.events) for family in families)
    if not single:
        return NOTHING
    seen = np.concatenate([family.cells for family in families], axis=1)
    others = max(len(families) - 1, 1)
    weights = [1.0] if len(families) == 1 else [FIRST, *[(1 - FIRST) / others] * others]
    prior = np.concatenate([f.log_prior + np.log(weight) for f, weight in zip(families, weights, strict=True)])
    seen = np.hstack([seen, seen[[2, 1, 0, 3]]])  # with D′ as D
    prior = np.tile(prior, 2) - np.log(2)
    runs = seen.sum(axis=0)
    rate = (2 * seen[1] + seen[0] + seen[2] + 1) / (2 * runs + 2)
    added = imagined * np.array([rate * (1 - rate), rate**2, rate * (1 - rate), (1 - rate) ** 2])
    p, both, q = ((seen + added)[cells].sum(axis=0) / (runs + imagined) for cells in ([0, 1], [1], [1, 2]))
    plane = claim.half_plane(p, q)
    rising = np.flatnonzero(p > plane.slope * q + plane.intercept)  # where a bet gains anything at all
    if not len(rising):
        return NOTHING
    plane = HalfPlane(*(np.broadcast_to(part, p.shape)[rising] for part in (plane.slope, plane.intercept)))
    bets = best_bet(p[rising], q[rising], plane, both[rising])
    won = sum(n * np.log1p(bets * x) for n, x in zip(seen[:, rising], payoffs(plane), strict=True))
    values = np.where(bets > 0, prior[rising] + won, -np.inf)
    best = values.max()
    if best == -np.inf:
        return NOTHING
    chosen = np.flatnonzero(values >= best - NATS)
    chosen = chosen[np.argsort(-values[chosen], kind="stable")][:MOST]
    promise = float(np.logaddexp.reduce(values[chosen]))
    log_shares = values[chosen] - promise
    chosen = rising[chosen]
    return Portfolio(
        events=tuple(_event(families, int(k) % single) for k in chosen),
        swapped=chosen >= single,
        stakes=Stakes(p=p[chosen], q=q[chosen], both=both[chosen], log_shares=log_shares),
        promise=promise,
    )


def _event(families: Sequence[Family], number: int) -> Event:
    """The event of a number, counted through all families."""
    for family in families:
        if number < len(family.events):
            return family.events[number]
        number -= len(family.events)
    raise IndexError(number)


def family_of(events: Sequence[Event], x: Rows, y: Rows) -> Family:
    """Events, each once and of the same prior, as runs show them that they were not learned from."""
    events = list(dict.fromkeys(events))
    even = np.full(len(events), -np.log(max(len(events), 1)))
    x, y = of_one_width(x, y, max((event.width for event in events), default=1))
    return Family(events=events, cells=cells_of(events, x, y).astype(np.float64), log_prior=even)


#: Steps; with 3 most of the gain is missed, with 200 few runs are followed too closely.
STEPS: Final = 40


def flags_of(events: Sequence[Event], swapped: NDArray[np.bool_], x: Floats, y: Floats) -> Flags:
    """In which events paired runs fall, D′ first where swapped; runs that fall into the same ones are one row.

    `swapped` has the shape (k,), rows the shapes (n, any width).
    """
    first, second = (members_of(events, rows).T for rows in of_one_width(x, y, max(e.width for e in events)))
    hits, others = np.where(swapped, second, first), np.where(swapped, first, second)
    packed = np.ascontiguousarray(np.packbits(np.hstack([hits, others]), axis=1))
    _, rows, times = np.unique(packed.view(f"V{packed.shape[1]}")[:, 0], return_index=True, return_counts=True)
    return Flags(hits=hits[rows], others=others[rows], times=times.astype(np.float64))


def graded(chosen: Portfolio, flags: Flags, claim: Claim, imagined: float) -> Stakes:
    """The stakes of a portfolio on the graded event whose wealth would have grown fastest in the runs of `flags`.

    As many `imagined` runs are added as in `portfolio`: those that there were, with D and D′ exchanged.
    """
    stakes = chosen.stakes
    plane = claim.half_plane(stakes.p, stakes.q)
    most = largest_bet(plane)
    swapped = replace(flags, hits=flags.others, others=flags.hits)
    # What is not bet is kept: one more event, which pays nothing.
    pays = np.vstack([1 + most * flags.payoffs(plane), 1 + most * swapped.payoffs(plane)])
    pays = np.hstack([pays, np.ones((len(pays), 1))])
    runs = flags.times.sum()
    weights = np.concatenate([flags.times, flags.times * imagined / runs]) / (runs + imagined)
    single = np.exp(stakes.log_shares) * best_bet(stakes.p, stakes.q, plane, stakes.both) / most
    fractions = best_fractions(pays, weights, np.append(single, max(1 - single.sum(), 0.0)), STEPS)
    return replace(stakes, fractions=fractions[:-1] / max(fractions.sum(), 1.0))


#: An epoch is a sixteenth of the runs so far: on average half an epoch is made too many.
SHARE: Final = 16
#: In the choice of the next pair a run costs at most so many nats, so that no pair is kept by chance; .01 to .03 make
#: no difference. If the best pair grows slowly, a run costs a share of its growth: else no pair would be kept.
CHARGE: Final = 0.02
PART_OF_BEST: Final = 4
#: Runs are charged by their seconds if a paired run takes at least so many, and so many times those of the fastest
#: pair. Below that, timing of single runs must not decide; what inputs of other sizes cost is measured apart, in
#: classes, see `search.costs`.
LONG: Final = 0.1
SLOWER: Final = 8.0
#: Learners are asked from so many runs on, and thoroughly from so many; they and the cuts of columns are renewed
#: whenever the runs have grown by this factor.
LEARNED: Final = 32
THOROUGH: Final = 512
RENEWED: Final = 1.25
#: So many of the events learned before stay beside the new ones: those that won most.
KEPT: Final = 16
#: Runs up to which narrow rows are cut anew before every epoch: it saves a twentieth of the runs, and is cheap.
CUT_ANEW: Final = 256
#: Numbers that the outcomes of one pair may hold in memory, both sides together.
ROOM: Final = 1 << 23
#: An event that does not look good must hold so many runs, for a pass to rest on it.
SEVERAL: Final = 3
#: Outcomes of so few kinds are events of their own.
FEW: Final = 16
#: Whether runs depend on which ran before is asked of so many earlier events, by so many later runs at least of each.
EARLIER: Final = 3
LATER_RUNS: Final = 16


@dataclass(slots=True, kw_only=True)
class PairWealth:
    """A pair, the outcomes of its runs, and what was bet on it.

    `proposals` are events that an attack proposes for it. `epochs` has two lists: of the portfolio with many imagined
    runs, which is bet on as one graded event, and of that with few.
    """

    pair: Pair
    index: int
    proposals: tuple[Event, ...] = ()
    x: Rows = field(default_factory=lambda: np.empty((0, 1)))
    y: Rows = field(default_factory=lambda: np.empty((0, 1)))
    turns: Turns = field(default_factory=lambda: np.empty((3, 0), np.int64))
    epochs: tuple[list[Epoch], list[Epoch]] = field(default_factory=lambda: ([], []))
    log_wealth: Rows = field(default_factory=lambda: np.zeros(2))
    portfolios: list[Portfolio] = field(default_factory=list)
    numbers: dict[Event, int] = field(default_factory=dict)  # of the events of the last epoch, in `seen`
    seen: CountsTable = NO_COUNTS  # in the epochs for which an event was chosen without a break
    coming: list[Portfolio] = field(default_factory=list)  # what will be bet in the next epoch
    chosen: list[tuple[Event, int]] = field(default_factory=list)  # the best event whenever the runs had doubled
    cost: float = 1.0  # of a run, in those of the first pair; see `search.costs`
    seconds_per_run: float = math.inf  # of a paired run, in the fastest epoch
    renewed_at: int = 0
    compared: int = 0  # events, whenever their cuts were placed
    _ranges: Ranges = field(default_factory=lambda: Ranges({}))
    _learned: list[Event] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """The paired runs so far."""
        return len(self.x)

    @property
    def rows(self) -> tuple[Rows, Rows]:
        """The outcomes of D and of D′."""
        return self.x, self.y

    @property
    def full(self) -> bool:
        """Whether memory has no room for outcomes of more runs."""
        return self.x.size + self.y.size >= ROOM

    @property
    def wealth(self) -> float:
        """The logarithm of the mean of both portfolios' wealth."""
        return float(np.logaddexp.reduce(self.log_wealth)) - math.log(2)

    @property
    def promise(self) -> float:
        """The logarithm of what was to be won in its runs by whoever had known them; at least 0."""
        return max((0.0, *(chosen.promise for chosen in self.coming)))

    def charged(self, fastest: float) -> float:
        """Its runs, as many times as one of them costs.

        Of a pair that takes long, and much longer than `fastest`, in seconds a run, as many as fit in its time.
        """
        # In one epoch code may have been compiled, or processes started: two tell what the runs take.
        seconds = self.seconds_per_run if self.runs and len(self.epochs[0]) > 1 else 0.0
        return self.runs * (seconds / fastest if seconds >= max(LONG, SLOWER * fastest) else self.cost)

    def advance(self, runner: Runner, claim: Claim, n: int, label: Callable[[float], str | None]) -> int:
        """Bet on n fresh runs, and learn from them; return how many there were, fewer at the deadline.

        `label`: the text behind a number of an outcome, None where it is a number.
        """
        self.portfolios = self.coming or [NOTHING, NOTHING]
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
        families = self._families(claim, label) if self.runs else []
        self.coming = [self._graded(families, claim), portfolio(families, claim, FEW_IMAGINED)]
        if self.runs >= 2 * (self.chosen[-1][1] if self.chosen else 0):
            best = max(self.coming, key=lambda portfolio: portfolio.promise)
            self.chosen += [(best.events[best.best], self.runs)] if best.events else []
        return len(x)

    def _graded(self, families: Sequence[Family], claim: Claim) -> Portfolio:
        """The portfolio with many imagined runs; all of it on the graded event that its events make up, if several."""
        chosen = portfolio(families, claim, MANY_IMAGINED)
        if len(chosen.events) < 2:
            return chosen
        flags = flags_of(chosen.events, chosen.swapped, self.x, self.y)
        return replace(chosen, stakes=graded(chosen, flags, claim, MANY_IMAGINED))

    def _families(self, claim: Claim, label: Callable[[float], str | None]) -> list[Family]:
        renewed = self.runs >= RENEWED * self.renewed_at
        if renewed or (self.runs < CUT_ANEW and self.x.shape[1] <= COLUMNS):
            cuts = cuts_of(self.x, self.y)
            texts = [c for c in cuts if any(label(value) for value in self.x[:FEW, c].tolist())]  # they have no order
            moved = moved_entries(self.pair, self.x.shape[1])
            self._ranges = Ranges({column: places for column, places in cuts.items() if column not in texts}, moved)
        if renewed:
            kept = self._best_learned(claim)
            self.renewed_at = self.runs
            proposed: list[Proposal] = []
            if self.runs >= LEARNED:
                objective, thorough = GrowthAt(claim=claim), self.runs >= THOROUGH
                proposed = propose(sample_of(self.x, self.y), objective, thorough=thorough)
            self._learned = list(dict.fromkeys([*kept, *(found.event for found in proposed)]))
        families = [self._ranges.seen(self.x, self.y), self._outcomes()]
        if self.proposals:
            families.append(family_of(self.proposals, self.x, self.y))
        if self._learned:
            half = self.renewed_at // 2  # what learners did not see
            families.append(family_of(self._learned, self.x[half:], self.y[half:]))
        if renewed:
            self.compared += sum(len(family.events) for family in families)
        return [family for family in families if len(family.events)]

    def _best_learned(self, claim: Claim) -> list[Event]:
        """The learned events that would have won most in the runs that none was learned from."""
        if not self._learned:
            return []
        half = self.renewed_at // 2
        family = family_of(self._learned, self.x[half:], self.y[half:])
        return list(dict.fromkeys(portfolio([family], claim, FEW_IMAGINED).events))[:KEPT]

    def _outcomes(self) -> Family:
        """Single outcomes, all if few, else those that repeat: their priors do not depend on how good they look."""
        rows = [row for side in (self.x, self.y) for row in side[: 2 * FEW]]
        times = Counter(row.tobytes() for row in rows)
        frequent = {row.tobytes(): row for row in rows if len(times) <= FEW or times[row.tobytes()] > 1}
        return family_of([OutcomeSet(row[None]) for row in list(frequent.values())[:FEW]], self.x, self.y)

    def candidate(self, claim: Claim, planned: int) -> Candidate | None:
        """The event with the largest stake, or what learners like best where betting has won nothing; None without any.

        `planned`: the runs in which it will be tested. An event that all runs so far are in, or none, gives way to one
        that some are in; so does one of a single run that promises nothing.
        """
        if self.wealth <= 0 and self.runs > 1:
            objective = GrowthAt(claim=claim, planned=planned)
            learned = learn(sample_of(self.x, self.y), objective, thorough=self.runs >= THOROUGH, most=1)[0]
            found = Candidate(pair=learned.directed(self.pair), event=learned.event, estimate=learned.estimate)
            return found if self.tells(found.event, 1 if learned.value > 0 else SEVERAL) else self.ordinary() or found
        staked = self._staked()
        kept = staked is not None and self.wealth > 0 and self.tells(staked.event)
        return staked if kept else self.ordinary() or staked

    def tells(self, event: Event, least: int = 1) -> bool:
        """Whether so many runs at least were in an event, and were not; of few runs, one."""
        x, y = of_one_width(self.x, self.y, event.width)
        hits = int(np.count_nonzero(event.contains(x)) + np.count_nonzero(event.contains(y)))
        least = min(least, max(self.runs // 4, 1))
        return least <= hits <= 2 * self.runs - least

    def ordinary(self) -> Candidate | None:
        """The event of one entry that comes nearest to half of all runs so far; None where all were the same."""
        if not self.runs:
            return None
        events = [event for column in range(self.x.shape[1]) for event in _halves(self.x, self.y, column)]
        shares = [(event.contains(self.x), event.contains(self.y)) for event in events]
        far = [abs((float(a.mean()) + float(b.mean())) / 2 - 0.5) for a, b in shares]
        if not far or min(far) >= 0.5:
            return None
        k = int(np.argmin(far))
        a, b = shares[k]
        estimate = Estimate(p=float(a.mean()), q=float(b.mean()), both=float((a & b).mean()))
        return Candidate(pair=self.pair, event=events[k], estimate=estimate)

    def _staked(self) -> Candidate | None:
        """The event with the largest stake."""
        chosen = self.portfolios[int(np.argmax(self.log_wealth))] if self.portfolios else NOTHING
        if not chosen.events:
            return None
        stakes, k = chosen.stakes, chosen.best
        estimate = Estimate(p=float(stakes.p[k]), q=float(stakes.q[k]), both=float(stakes.both[k]))
        pair = self.pair.swapped() if chosen.swapped[k] else self.pair
        return Candidate(pair=pair, event=chosen.events[k], estimate=estimate)

    def outcomes_of(self, candidate: Candidate) -> tuple[Rows, Rows]:
        """The outcomes so far, D first as in the candidate."""
        return self.rows if candidate.pair.data is self.pair.data else (self.y, self.x)

    def counts(self, candidate: Candidate) -> Counts:
        """What the epochs showed of an event since it was chosen, D first as in the candidate."""
        number = self.numbers.get(candidate.event)
        seen = Counts() if number is None else self.seen.of(number)
        return seen if candidate.pair.data is self.pair.data else seen.swapped()

    def later_counts(self, candidate: Candidate) -> tuple[tuple[Event, Counts], ...]:
        """Events that looked best earlier, and what the runs since then showed of each, D first as in the candidate.

        Runs that chose an event hold it more often than others; of those that came later none is left out.
        """
        x, y = self.outcomes_of(candidate)
        enough = [(event, at) for event, at in self.chosen if self.runs - at >= LATER_RUNS]
        return tuple(
            (event, CountsTable(cells_of([event], *of_one_width(x[at:], y[at:], event.width))).of(0))
            for event, at in enough[-EARLIER:]
        )


def _halves(x: Rows, y: Rows, column: int) -> Iterator[Event]:
    """That an entry is there, the upper half of its numbers, and the most frequent of what is no number."""
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
        yield Interval(coordinate=column, low=most, high=float(np.nextafter(most, np.inf)))


def next_pair(pairs: Sequence[PairWealth]) -> PairWealth:
    """The pair that gets the next epoch: that of the largest wealth, less a charge for its runs or its time."""
    fastest = min(pair.seconds_per_run for pair in pairs)
    best = max((pair.promise + 1) / max(pair.runs, 1) for pair in pairs)
    charge = min(CHARGE, best / PART_OF_BEST)
    return max(pairs, key=lambda pair: pair.wealth - charge * pair.charged(fastest))


def runs_of_next_epoch(pair: PairWealth, least: int) -> int:
    """How many runs: a sixteenth of those so far."""
    return max(least, pair.runs // SHARE)
