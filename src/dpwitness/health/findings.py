"""Findings of health checks, findings about passes, and texts and keys of outcomes that the checks share."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpwitness.arrays import Rows
from dpwitness.claims import Claim
from dpwitness.errors import InvalidParameter
from dpwitness.evidence import Counts, detectable_at_best, rare_event, runs_needed, runs_to_detect
from dpwitness.options import HEALTH_CHECKS
from dpwitness.results.text import at_most
from dpwitness.results.verdict import NotRefuted

#: CHECK_SECONDS is the time in seconds that the runs of one health check may take.
CHECK_SECONDS: Final = 1.0
#: PASS_FACTOR is the factor on the runs of the clearest violation below which a pass that the time ended is `too_slow`.
PASS_FACTOR: Final = 10
#: OVERHEAD is the ratio of the time of a check, with its search and its health checks, to the time of its runs.
OVERHEAD: Final = 1.3
#: FRESH_NOISE_ADVICE is the advice against runs that depend on each other.
FRESH_NOISE_ADVICE: Final = (
    "draw fresh noise for every run from the generator given (in a vectorised mechanism: one draw a row)"
)
#: NO_NOISE_REMARK is the remark on a mechanism with the same outcome in every run on an input, in new processes too.
NO_NOISE_REMARK: Final = "it adds no noise, or draws the same noise in every run"
#: CONSTANT_OUTCOME_REMARK is the remark on a mechanism with the same outcome in every run on an input in one process.
CONSTANT_OUTCOME_REMARK: Final = f"{NO_NOISE_REMARK}, or other outcomes are rare"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFinding:
    """A finding of a health check: the check's name, and one line that states the fault and the advice."""

    name: str
    text: str


def check_names(suppressed: Collection[str]) -> None:
    """Raise `InvalidParameter` for a health check that does not exist."""
    for name in suppressed:
        if name not in HEALTH_CHECKS:
            known = ", ".join(HEALTH_CHECKS)
            raise InvalidParameter(f"suppress={name!r} must be the name of a health check: {known}")


def notes_on_counts(counts: Counts) -> tuple[str, ...]:
    """A note if the event happened in all runs or in no run; else ()."""
    if counts.runs and counts.n00 == counts.runs:
        return ("the event never happened on either input: it says nothing",)
    if counts.runs and counts.n11 == counts.runs:
        return ("the event happened in every run on both inputs: it says nothing",)
    return ()


def notes_on_pass(verdict: NotRefuted) -> tuple[str, ...]:
    """The notes on a pass with little power, with a rare event, or with an event that cannot show a violation."""
    # One piece of advice: a pass that is too slow has low power too.
    notes, counts = tuple(finding.text for finding in findings_on_pass(verdict)[:1]), verdict.counts
    if rare_event(counts) and counts.hits < 0.1 * counts.runs:  # a tenth of fewer than 1,000 runs is no tail
        seen = f"{counts.hits} of {counts.runs} runs on D"
        notes += (f"the event is a rare tail ({seen}): a violation that shows in other outcomes is not ruled out",)
    if counts.runs and verdict.claim.largest(counts.neighbour_hits / counts.runs) >= 1:
        caught = "would have caught" if math.isfinite(verdict.detectable) else "can refute"
        others = "only mechanisms that fall into it less often on D′"
        notes += (f"at the rate seen on D′ the claim allows any rate on D: the event {caught} {others}",)
    return notes


def findings_on_pass(verdict: NotRefuted) -> list[HealthFinding]:
    """The findings `too_slow`, `low_power` or both for a pass with almost no power; else an empty list."""
    claim, runs = verdict.claim, max(verdict.counts.runs, verdict.epoch_runs)
    made, needed = verdict.runs_made or runs, PASS_FACTOR * runs_needed(claim, verdict.alpha)
    # The power is that of an event of probability 1/2: whether a correct mechanism passes must not depend on the event
    # that its search found.
    caught = detectable_at_best(runs, claim, alpha=verdict.alpha)
    too_slow, low_power = verdict.ended == "time" and made < needed, not caught <= _usefully_caught(claim)
    if not (too_slow or low_power):
        return []
    advised = useful_runs(claim, verdict.alpha)  # up to a second: for a finding alone
    advice = f"give runs={advised} or more"
    if verdict.ended == "time":
        longer = at_most(OVERHEAD * verdict.seconds * advised / max(made, 1))
        advice = f"give max_time={longer} or more, or make it faster"
    findings = []
    if too_slow:
        findings.append(
            HealthFinding(
                name="too_slow",
                text=f"{verdict.mechanism} made {made} runs on each input in {verdict.seconds:.0f} s; at least "
                f"{needed} are needed to see anything but the clearest violation, {advised} for a useful pass: "
                f"{advice}",
            )
        )
    if low_power:
        what = f"only {claim.symbol} ≥ {caught:.3g}" if math.isfinite(caught) else "nothing"
        findings.append(
            HealthFinding(
                name="low_power",
                text=f"with {runs} runs a test of the claim {claim} by an event that happens half of the time catches "
                f"{what}: {advice}",
            )
        )
    return findings


def useful_runs(claim: Claim, alpha: float) -> int:
    """The number of runs with which a pass has no finding; in epochs half of the runs are of the last bet."""
    detecting = 2 * runs_to_detect(claim, _usefully_caught(claim), alpha=alpha)
    return max(PASS_FACTOR * runs_needed(claim, alpha), detecting)


def _usefully_caught(claim: Claim) -> float:
    """The parameter that a pass must exclude: the larger of twice the claim's parameter and the parameter plus 1."""
    return max(2 * claim.parameter, claim.parameter + 1)


def only_outcome(rows: Rows) -> tuple[float, ...] | None:
    """The outcome that equals every row, without absent entries; None if rows vary, or without rows."""
    if not len(rows) or not np.array_equal(rows, np.broadcast_to(rows[0], rows.shape), equal_nan=True):
        return None
    return tuple(rows[0, ~np.isnan(rows[0])].tolist())


def outcome_keys(rows: Rows) -> list[bytes]:
    """The bytes of each outcome without trailing absent entries; equal outcomes have equal bytes in every process."""
    present = ~np.isnan(rows)
    lengths = np.where(present.any(axis=1), rows.shape[1] - present[:, ::-1].argmax(axis=1), 0) * rows.itemsize
    starts = np.arange(len(rows)) * rows.shape[1] * rows.itemsize
    data = rows.tobytes()
    return [data[start:end] for start, end in zip(starts.tolist(), (starts + lengths).tolist(), strict=True)]
