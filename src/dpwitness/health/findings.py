"""What a health check finds, findings about verdicts, and what the checks share: time, advice, and rows as keys."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpwitness.errors import InvalidParameter
from dpwitness.evidence import Counts, detectable_at_best, rare_event, runs_needed
from dpwitness.mechanisms.mechanism import Rows
from dpwitness.options import HEALTH_CHECKS
from dpwitness.results.verdict import NotRefuted

#: Seconds of runs that one health check may take.
SECONDS: Final = 1.0

ADVICE: Final = "draw fresh noise for every run from the generator given (in a vectorised mechanism: one draw a row)"
#: What is said of a mechanism whose outcome on an input is the same in every run.
SAME: Final = "it adds no noise, or draws the same noise in every run"
SAME_OR_RARE: Final = f"{SAME}, or other outcomes are rare"
#: An event of such a share of the runs on D is no tail, however few runs there were.
NO_TAIL: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a health check found: its name, and what is wrong and what to do in one line."""

    name: str
    text: str


def check_names(suppressed: Collection[str]) -> None:
    """Raise `InvalidParameter` for a health check that does not exist."""
    for name in suppressed:
        if name not in HEALTH_CHECKS:
            known = ", ".join(HEALTH_CHECKS)
            raise InvalidParameter(f"suppress={name!r}: there is no such health check; there are {known}")


def of_counts(counts: Counts) -> tuple[str, ...]:
    """Return a note if the event always happened, or never."""
    if counts.runs and counts.n00 == counts.runs:
        return ("the event never happened on either input: it says nothing",)
    if counts.runs and counts.n11 == counts.runs:
        return ("the event happened in every run on both inputs: it says nothing",)
    return ()


def of_pass(verdict: NotRefuted) -> tuple[str, ...]:
    """Return notes on a pass that says little, or of a rare event alone."""
    notes, counts = tuple(finding.text for finding in of_verdict(verdict)), verdict.counts
    if rare_event(counts) and counts.hits < NO_TAIL * counts.runs:
        seen = f"{counts.hits} of {counts.runs} runs on D"
        notes += (f"the event is a rare tail ({seen}): a violation that shows in other outcomes is not ruled out",)
    if counts.runs and verdict.claim.largest(counts.neighbour_hits / counts.runs) >= 1:
        least = "what it would have caught falls" if math.isfinite(verdict.detectable) else "what it can refute falls"
        notes += (f"at the rate seen on D′ the claim allows any rate on D: {least} into it less often on D′",)
    return notes


def of_verdict(verdict: NotRefuted) -> list[Finding]:
    """Return `too_slow` or `low_power`, or both, for a pass that says next to nothing."""
    claim, runs = verdict.claim, max(verdict.counts.runs, verdict.epoch_runs)
    made = verdict.runs_made or runs
    needed = 10 * runs_needed(claim, verdict.alpha)
    seconds = needed * verdict.seconds / max(made, 1)
    findings = []
    if verdict.ended == "time" and made < needed:
        findings.append(
            Finding(
                name="too_slow",
                text=f"{verdict.mechanism} made {made} runs in {verdict.seconds:.0f} s; at least {needed} are needed "
                f"to see anything but the clearest violation, about {seconds:.0f} s: give max_time=… "
                "or make it faster",
            )
        )
    # By the runs alone, for an event that happens half of the time: whether a correct mechanism passes must not depend
    # on which event its search came upon. Twice the claim, and one nat for small ones: a pass that excludes less says
    # nothing.
    caught = detectable_at_best(runs, claim, alpha=verdict.alpha)
    if not caught <= max(2 * claim.parameter, claim.parameter + 1):
        what = f"only {claim.symbol} ≥ {caught:.3g}" if math.isfinite(caught) else "nothing"
        findings.append(
            Finding(
                name="low_power",
                text=f"with {runs} runs a test of the claim {claim} by an event that happens half of the time catches "
                f"{what}: give more runs=… or max_time=…",
            )
        )
    return findings


def only_outcome(rows: Rows) -> tuple[float, ...] | None:
    """The outcome that every row is, without what is absent behind its end; None where they vary, and of no rows."""
    if not len(rows) or not np.array_equal(rows, np.broadcast_to(rows[0], rows.shape), equal_nan=True):
        return None
    return tuple(rows[0, ~np.isnan(rows[0])].tolist())


def outcome_keys(rows: Rows) -> list[bytes]:
    """Each outcome without what is absent behind its end; equal ones are the same bytes in every process."""
    present = ~np.isnan(rows)
    lengths = np.where(present.any(axis=1), rows.shape[1] - present[:, ::-1].argmax(axis=1), 0) * rows.itemsize
    starts = np.arange(len(rows)) * rows.shape[1] * rows.itemsize
    data = rows.tobytes()
    return [data[start:end] for start, end in zip(starts.tolist(), (starts + lengths).tolist(), strict=True)]
