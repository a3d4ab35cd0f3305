"""The portfolio of an epoch: events that earlier runs speak for, what to bet on each, and shares of the wealth.

Intervals of single entries and what lies outside them are all taken, between cuts at quantiles; other learners propose
what they like best. An event's share is its prior times what its bet would have won in the earlier runs (the posterior
weights of a universal portfolio, Cover 1991). Its probabilities are those of the earlier runs and a few imagined ones
in which D and D′ do not differ: with `CAREFUL` many weak events are told from noise soonest, with `BOLD` clear ones.
Never evidence: that is what the next runs show.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.claims import Claim
from dpwitness.events import LARGEST, Event, Interval, Outside, widen
from dpwitness.events.encoding import LEAST_NUMBER
from dpwitness.evidence.growth import best_bet, payoffs
from dpwitness.evidence.portfolio import Stakes
from dpwitness.search.learners import Proposal

Floats = NDArray[np.float64]
Rows = NDArray[np.float64]

#: Imagined runs without a difference.
CAREFUL: Final = 8.0
BOLD: Final = 0.25
#: Cells of a column between cuts at quantiles of both sides together; 8 cost a tenth more runs, 24 gain nothing.
CELLS: Final = 16
#: Columns that are looked at: those in which the sides differ most.
COLUMNS: Final = 8
#: Of more columns only intervals that are open on one side, and equal tails: the prior thins out.
WIDE: Final = 4
#: Events so many nats less promising than the best are left out, and all but so many of them.
NATS: Final = 20.0
MOST: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Portfolio:
    """Events, whether D′ plays D in each, and what is bet on them; `stakes` in their order."""

    events: tuple[Event, ...]
    swapped: NDArray[np.bool_]
    stakes: Stakes

    @property
    def best(self) -> int:
        """The place of the event with the largest share."""
        return int(np.argmax(self.stakes.log_shares))


NOTHING: Final = Portfolio(
    events=(),
    swapped=np.zeros(0, np.bool_),
    stakes=Stakes(p=np.zeros(0), q=np.zeros(0), both=np.zeros(0), log_shares=np.zeros(0)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Events as they were seen: cells n10, n11, n01, n00 of shape (4, k), and logarithms of their priors."""

    events: Sequence[Event]
    cells: Floats
    log_prior: Floats


def portfolio(families: Sequence[Family], claim: Claim, imagined: float, log_wealth: float) -> Portfolio:
    """The portfolio of events in either direction; `imagined` runs are added to those seen.

    `log_wealth`: the logarithm of all shares together. Nothing is staked where no event promises anything.
    """
    events = [event for family in families for event in family.events]
    if not events:
        return NOTHING
    seen = np.concatenate([family.cells for family in families], axis=1)
    prior = np.concatenate([family.log_prior for family in families])
    seen = np.hstack([seen, seen[[2, 1, 0, 3]]])  # with D′ as D
    prior = np.tile(prior, 2) - np.log(2 * len(families))
    runs = seen.sum(axis=0)
    rate = (2 * seen[1] + seen[0] + seen[2] + 1) / (2 * runs + 2)
    added = imagined * np.array([rate * (1 - rate), rate**2, rate * (1 - rate), (1 - rate) ** 2])
    p, both, q = ((seen + added)[cells].sum(axis=0) / (runs + imagined) for cells in ([0, 1], [1], [1, 2]))
    plane = claim.half_plane(p, q)
    bets = best_bet(p, q, plane, both)
    values = prior + sum(n * np.log1p(bets * x) for n, x in zip(seen, payoffs(plane), strict=True))
    values[bets <= 0] = -np.inf
    best = values.max()
    if best == -np.inf:
        return NOTHING
    chosen = np.flatnonzero(values >= best - NATS)
    chosen = chosen[np.argsort(-values[chosen], kind="stable")][:MOST]
    log_shares = values[chosen] - np.logaddexp.reduce(values[chosen]) + log_wealth
    return Portfolio(
        events=tuple(events[k % len(events)] for k in chosen),
        swapped=chosen >= len(events),
        stakes=Stakes(p=p[chosen], q=q[chosen], both=both[chosen], log_shares=log_shares),
    )


def proposed(proposals: Sequence[Proposal], x: Rows, y: Rows) -> Family:
    """Events that learners proposed, as runs show them that they were not learned from."""
    events = list(dict.fromkeys(proposal.event for proposal in proposals))
    cells = np.array([_cells(event.contains(x), event.contains(y)) for event in events], np.float64)
    even = np.full(len(events), -np.log(max(len(events), 1)))
    return Family(events=events, cells=cells.reshape(len(events), 4).T, log_prior=even)


def _cells(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    both, hits, others = (int(np.count_nonzero(flags)) for flags in (a & b, a, b))
    return hits - both, both, others - both, len(a) - hits - others + both


def cuts_of(x: Rows, y: Rows) -> dict[int, Floats]:
    """Where to cut the columns that tell most, between different values, at quantiles of both sides together."""
    width = max(x.shape[1], y.shape[1])
    x, y = widen(x, width), widen(y, width)
    found: dict[int, tuple[float, Floats]] = {}
    for column in range(width):
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
    low, high = values[places - 1], values[places]
    with np.errstate(invalid="ignore", over="ignore"):
        middle = low + (high - low) / 2
    middle[(low < LEAST_NUMBER) & (high > LEAST_NUMBER)] = LEAST_NUMBER  # what is no number, and numbers
    return np.where((middle > low) & (middle <= high), middle, high)


def intervals(cuts: dict[int, Floats], x: Rows, y: Rows) -> Family:
    """Every interval between cuts of a column, and what lies outside it, as the runs show them."""
    width = max(x.shape[1], y.shape[1], 1)
    x, y = widen(x, width), widen(y, width)
    events: list[Event] = []
    cells, prior = [np.zeros((4, 0))], [np.zeros(0)]
    for column, places in cuts.items():
        found = list(_of_column(column, places, wide=len(cuts) > WIDE))
        table = _together(x[:, column], y[:, column], places)
        total = table[-1, -1]
        for (first, last, outside), share, event in found:
            hits, others = table[last, -1] - table[first, -1], table[-1, last] - table[-1, first]
            both = table[last, last] - table[first, last] - table[last, first] + table[first, first]
            if outside:
                hits, others, both = total - hits, total - others, total - hits - others + both
            cells.append(np.array([[hits - both], [both], [others - both], [total - hits - others + both]]))
            prior.append(np.array([np.log(share / len(cuts))]))
            events.append(event)
    return Family(events=events, cells=np.hstack(cells), log_prior=np.concatenate(prior))


def _of_column(column: int, cuts: Floats, *, wide: bool) -> Iterator[tuple[tuple[int, int, bool], float, Event]]:
    """First cell, last cell, whether the outside; the share of the prior; and the event."""
    n = len(cuts) + 1
    ends = np.concatenate([[-np.inf], np.minimum(cuts, LARGEST), [np.inf]])
    starts = np.concatenate([[-np.inf], cuts])
    ranges = [(a, b) for a in range(n) for b in range(a + 1, n + 1)]
    kinds = {(a, b): 0 if a == 0 or b == n else 1 if a == n - b else 2 for a, b in ranges}
    kept = [kind for kind in (0, 1, 2) if (kind < 2 or not wide) and kind in kinds.values()]
    sizes = {kind: sum(k == kind for k in kinds.values()) * (1 if kind == 0 else 2) for kind in kept}
    for (a, b), kind in kinds.items():
        if kind not in kept or not (starts[a] < ends[b] or starts[a] == ends[b] == np.inf):
            continue
        inside = Interval(coordinate=column, low=float(starts[a]), high=float(ends[b]))
        share = 1 / len(kept) / sizes[kind]
        yield (a, b, False), share, inside
        if kind or (a, b) == (0, n):
            yield (a, b, True), share, Outside(interval=inside)


def _together(x: Floats, y: Floats, cuts: Floats) -> NDArray[np.int64]:
    """How many runs lie in cells before a on D and before b on D′; shape (cells + 2, cells + 2), absent last."""
    n = len(cuts) + 2
    i, j = (np.where(np.isnan(side), n - 1, np.searchsorted(cuts, side, side="right")) for side in (x, y))
    table = np.zeros((n + 1, n + 1), np.int64)
    np.add.at(table, (i + 1, j + 1), 1)
    return table.cumsum(axis=0).cumsum(axis=1)
