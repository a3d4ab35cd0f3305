"""The portfolio of an epoch: events that earlier runs speak for, what to bet on each, and shares of the wealth.

Intervals of single entries and what lies outside them are all taken, between cuts at quantiles; other learners propose
what they like best. An event's share is its prior times what its bet would have won in the earlier runs (the posterior
weights of a universal portfolio, Cover 1991). Its probabilities are those of the earlier runs and a few imagined ones
in which D and D′ do not differ: with `CAREFUL` many weak events are told from noise soonest, with `BOLD` clear ones.
Never evidence: that is what the next runs show.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.claims import Claim, HalfPlane
from dpwitness.events import Event, cells_of
from dpwitness.evidence.growth import best_bet, payoffs
from dpwitness.evidence.portfolio import Stakes
from dpwitness.search.learners import Proposal

Floats = NDArray[np.float64]
Rows = NDArray[np.float64]

#: Imagined runs without a difference.
CAREFUL: Final = 8.0
BOLD: Final = 0.25
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Events as they were seen: cells n10, n11, n01, n00 of shape (4, k), and logarithms of their priors."""

    events: Sequence[Event]
    cells: Floats
    log_prior: Floats


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


def proposed(proposals: Sequence[Proposal], x: Rows, y: Rows) -> Family:
    """Events that learners proposed, as runs show them that they were not learned from."""
    events = list(dict.fromkeys(proposal.event for proposal in proposals))
    even = np.full(len(events), -np.log(max(len(events), 1)))
    return Family(events=events, cells=cells_of(events, x, y).astype(np.float64), log_prior=even)
