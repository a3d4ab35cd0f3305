"""A graded event of a portfolio's events: how much of the largest bet to put on each, so that wealth grows fastest.

The growth rate of a graded event is concave in the fractions. The multiplicative steps for log-optimal portfolios
(Cover 1984, IEEE Trans. Inf. Theory 30(2)) start from the single bets by the portfolio's shares, and never lower it on
the runs that they see. Few steps are taken: the best of all fractions fits the noise. Never evidence.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.claims import Claim
from dpwitness.events import Event, members_of, widen
from dpwitness.evidence.growth import best_bet
from dpwitness.evidence.portfolio import Flags, Floats, Stakes, largest_bet
from dpwitness.search.portfolio import Portfolio

#: Steps; with 3 most of the gain is missed, with 200 few runs are followed too closely.
STEPS: Final = 40


def flags_of(events: Sequence[Event], swapped: NDArray[np.bool_], x: Floats, y: Floats) -> Flags:
    """In which events paired runs fall, D′ first where swapped; runs that fall into the same ones are one row.

    `swapped` has the shape (k,), rows the shapes (n, any width).
    """
    width = max(x.shape[1], y.shape[1], *(event.width for event in events))
    first, second = (members_of(events, widen(rows, width)).T for rows in (x, y))
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
    fractions = np.append(single, max(1 - single.sum(), 0.0))
    for _ in range(STEPS):
        fractions *= (weights / (pays @ fractions)) @ pays
    return replace(stakes, fractions=fractions[:-1] / max(fractions.sum(), 1.0))
