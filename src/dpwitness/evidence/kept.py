"""Evidence that goes on over the sessions of a history, each on the present version of a mechanism.

The hypothesis is that every version of the history keeps the claim. Session s counts one event on fresh runs; event,
pair and bet follow from earlier sessions alone. So the wealth E(b..s) of a bet that begins at session b is a
non-negative supermartingale that begins at 1, run by run. While the event stays, the bet stays, and E(b..s) depends on
the sum of the counts of sessions b to s. If the event changes, the whole wealth is bet on the new event from then on.

A long history without a violation loses wealth, which a later violation would have to win back. So the evidence is the
weighted sum over all sessions b at which a bet begins, with weights w_b = 6/(π²b²), whose sum over b ≥ 1 is 1:

    A_s = Σ_{b≤s} w_b·E(b..s).

A_s plus the unused weights Σ_{b>s} w_b is a non-negative supermartingale that begins at 1. By Ville's inequality, the
probability that A reaches 1/α after any run of any session is at most α. A violation that begins at session b needs
log(1/w_b) nats more than the same violation if its bet began with the whole wealth: 0.5 at session 1, 8.3 at session
50. (Waudby-Smith & Ramdas 2024, JRSS-B 86(1); the weighted sum over beginnings: Shin, Ramdas & Rinaldo 2024, New
England Journal of Statistics in Data Science 2(2).)
"""

import math
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Floats
from dpwitness.candidate import Estimate
from dpwitness.claims import Claim
from dpwitness.evidence.bet import log_e_value
from dpwitness.evidence.counts import Counts
from dpwitness.evidence.portfolio import Epoch, Wealth


def log_weight(session: int) -> float:
    """The logarithm of w_b, the share of the wealth whose bet begins at session b; the first session is 1."""
    return math.log(6) - 2 * math.log(math.pi * session)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptWealth(Wealth):
    """The wealth of a history; `counts`: the counts of the present session so far.

    `begun`: for each session at which a bet on the present event begins, the logarithm of the wealth that is bet, and
    the counts of the finished sessions from it on. The wealth won with earlier events is known for the history's claim
    alone, so no other parameter is refuted.
    """

    accounts: tuple[tuple[Epoch, ...], ...] = ()
    begun: tuple[tuple[float, Counts], ...]
    counts: Counts
    estimate: Estimate

    @override
    def log_e_value(self, claim: Claim, against: Claim | None = None) -> float:
        logs = [share + log_e_value(before + self.counts, claim, self.estimate) for share, before in self.begun]
        return float(np.logaddexp.reduce(logs, initial=-math.inf))

    @override
    def parameters(self, claim: Claim, *, above: bool) -> Floats:
        return np.empty(0)
