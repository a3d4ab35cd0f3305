"""Pure functions of counts: e-values, lower bounds, p-values, detectable parameters.

The functions take `Counts`, which only `confirm` and `epoch` of a `Runner` make. Search runs give an `Estimate`, which
may choose a bet and is never evidence. No file of this package knows mechanisms or generators.
"""

from dpwitness.candidate import Estimate
from dpwitness.evidence.bet import Bet, bet_on, event_bet, log_e_value, runs_needed
from dpwitness.evidence.bounds import (
    MOST_RUNS,
    detectable_at_best,
    detectable_at_rate,
    detectable_parameter,
    detectable_probability,
    half_of_excess,
    lower_bound,
    rare_event,
    runs_to_detect,
    why_enough,
    why_excluded,
)
from dpwitness.evidence.counts import Counts, best_bet, growth_rate
from dpwitness.evidence.p_value import holm, p_value
from dpwitness.evidence.portfolio import EProcess

__all__ = [
    "MOST_RUNS",
    "Bet",
    "Counts",
    "EProcess",
    "Estimate",
    "best_bet",
    "bet_on",
    "detectable_at_best",
    "detectable_at_rate",
    "detectable_parameter",
    "detectable_probability",
    "event_bet",
    "growth_rate",
    "half_of_excess",
    "holm",
    "log_e_value",
    "lower_bound",
    "p_value",
    "rare_event",
    "runs_needed",
    "runs_to_detect",
    "why_enough",
    "why_excluded",
]
