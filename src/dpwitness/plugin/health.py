"""Health checks: what makes an assertion worthless, or a false alarm, before anyone looks at the claim."""

import math
from collections.abc import Collection
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter
from dpwitness.evidence import detectable_at_best, runs_needed
from dpwitness.mechanism import Mechanism, Rows
from dpwitness.neighbours import Data, Relation
from dpwitness.plugin.failures import HealthCheckFailed
from dpwitness.verdict import NotRefuted

NAMES: Final = ("identical_inputs", "deterministic_output", "stuck_generator", "too_slow", "low_power")
#: Runs of each side that are looked at, in this many calls.
LOOKED_AT: Final = 256
CALLS: Final = 4


def check_names(suppressed: Collection[str]) -> None:
    """Raise `InvalidParameter` for a health check that does not exist."""
    for name in suppressed:
        if name not in NAMES:
            raise InvalidParameter(f"suppress={name!r}: there is no such health check; there are {', '.join(NAMES)}")


def check_inputs(relation: Relation, data: Data | None, suppressed: Collection[str]) -> None:
    """Raise `identical_inputs` where the relation proposes the same input twice, so that nothing can be found."""
    if "identical_inputs" in suppressed:
        return
    proposed = list(islice(relation.candidates(data), 64))
    if proposed and all(np.array_equal(pair.data, pair.neighbour) for pair in proposed):
        raise HealthCheckFailed(
            "identical_inputs",
            f"both inputs of every pair are {proposed[0].data.tolist()}: give neighbours that differ",
        )


def check_outcomes(mechanism: Mechanism, relation: Relation, data: Data | None, suppressed: Collection[str]) -> None:
    """Look at a few runs of one pair.

    Raises `deterministic_output` where every run returns the same, on both inputs, and `stuck_generator` where
    a continuous mechanism repeats its outcomes: its runs are not independent, and nothing counted would be evidence.
    """
    pair = next(iter(relation.candidates(data)))
    count = LOOKED_AT if mechanism.shard > 2 else 4 * CALLS
    left, right = (_look(mechanism, given, count, side) for side, given in enumerate((pair.data, pair.neighbour)))
    same = all(np.array_equal(rows, np.broadcast_to(left[:1], rows.shape), equal_nan=True) for rows in (left, right))
    if same and "deterministic_output" not in suppressed:
        raise HealthCheckFailed(
            "deterministic_output",
            f"{mechanism.name} returned {left[0].tolist()} on each of {2 * count} runs, on both "
            f"{pair.data.tolist()} and {pair.neighbour.tolist()}: does it add noise, does it use its input?",
        )
    if "stuck_generator" in suppressed:
        return
    for j in range(left.shape[1]):
        share = _repeated(left[:, j], right[:, j])
        if share > 0.5:
            raise HealthCheckFailed(
                "stuck_generator",
                f"value {j + 1} of what {mechanism.name} returns looks continuous, but {share:.0%} of {count} runs "
                "repeat one another: draw fresh noise for every run (in a vectorised mechanism: one draw a row)",
            )


def check_verdict(verdict: NotRefuted, suppressed: Collection[str]) -> None:
    """Raise `too_slow` or `low_power` for a pass that says next to nothing."""
    claim, runs = verdict.claim, verdict.counts.runs
    needed = 10 * runs_needed(claim, verdict.alpha)
    if verdict.ended == "time" and runs < needed and "too_slow" not in suppressed:
        raise HealthCheckFailed(
            "too_slow",
            f"{verdict.mechanism} made {runs} runs in {verdict.seconds:.0f} s; at least {needed} are needed to see "
            "anything but the clearest violation: give max_time=… or make it faster",
        )
    # By the runs alone, for an event that happens half of the time: whether a correct mechanism passes must not hang on
    # which event its search came upon. Twice the claim, and one nat for small ones: more would be false comfort.
    caught = detectable_at_best(runs, claim, alpha=verdict.alpha)
    if not caught <= max(2 * claim.epsilon, claim.epsilon + 1) and "low_power" not in suppressed:
        what = f"only ε ≥ {caught:.3g}" if math.isfinite(caught) else "nothing"
        raise HealthCheckFailed(
            "low_power",
            f"with {runs} runs a test of the claim {claim} catches {what} at best: give more max_runs=… or max_time=…",
        )


def _look(mechanism: Mechanism, data: Data, count: int, side: int) -> Rows:
    rows = np.full((count, max(data.size, mechanism.width, 8)), np.nan)
    rng = np.random.default_rng((20_011, side))
    for k in range(CALLS):
        part = slice(k * count // CALLS, (k + 1) * count // CALLS)
        mechanism.fill(data, rng, rows[part], part.start)
    return rows


def _repeated(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """The share of runs whose outcome is no round number, came before, and never came on the neighbour.

    A discrete mechanism repeats its outcomes too, but a private one then returns the same ones on both inputs. One
    that always returns the same has no generator that could be stuck.
    """
    values, times = np.unique(left[np.isfinite(left)], return_counts=True)
    if len(values) < 2:
        return 0.0
    irregular = np.array([len(f"{abs(value):.17g}".replace(".", "").lstrip("0")) > 12 for value in values])
    suspicious = irregular & (times > 1) & ~np.isin(values, right)
    return float((times[suspicious] - 1).sum() / len(left))
