"""Health checks: what makes a verdict worthless, or a false alarm, before anyone looks at the claim.

Each returns a `Finding` or None. `check`, `bound` and `curve` refuse what would be a false alarm and note the rest; the
pytest plugin refuses all, and lets each be suppressed by name.
"""

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.clock import Deadline
from dpwitness.counts import Counts
from dpwitness.errors import DependentRuns, InvalidNeighbours, InvalidParameter
from dpwitness.evidence import detectable_at_best, runs_needed
from dpwitness.health.independence import LEVEL, fisher_p_value
from dpwitness.job import Job
from dpwitness.mechanisms.mechanism import Mechanism, Rows
from dpwitness.neighbours import Data, Pair, Relation
from dpwitness.results.verdict import NotRefuted
from dpwitness.runs import HEALTH, generator, ordered

NAMES: Final = (
    "identical_inputs",
    "deterministic_output",
    "stuck_generator",
    "input_ignored",
    "too_slow",
    "low_power",
)
#: Calls of a vectorised mechanism that are looked at on each input, and rows of each.
CALLS: Final = 64
ROWS: Final = 64
#: Runs of plain Python on each input; fewer could not tell anything at the level that is asked for.
RUNS: Final = 248
FEWEST: Final = 128
#: Columns that are compared by themselves.
COLUMNS: Final = 20
#: Runs of both inputs of a pair from the same random numbers: compiled or vectorised code, and plain Python.
TOGETHER: Final = 4096
TOGETHER_SLOW: Final = 64
#: Seconds that the early checks may take, and the share of all time.
SECONDS: Final = 1.0
SHARE: Final = 1 / 20

# Streams of the health checks: (HEALTH, LOOK, side, call) and so on.
LOOK, PAIRED = 0, 1


@dataclass(frozen=True, slots=True)
class Finding:
    """What a health check found: its name, and what is wrong and what to do in one line."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Look:
    """A few runs of each input of a pair: rows of shape (calls, rows, width), NaN where there is no value."""

    pair: Pair
    left: Rows
    right: Rows


def check_names(suppressed: Collection[str]) -> None:
    """Raise `InvalidParameter` for a health check that does not exist."""
    for name in suppressed:
        if name not in NAMES:
            raise InvalidParameter(f"suppress={name!r}: there is no such health check; there are {', '.join(NAMES)}")


def required(job: Job) -> tuple[str, ...]:
    """Do what check, bound and curve do before the search; notes for people.

    Raises `InvalidNeighbours` where nothing could be found and `DependentRuns` where anything found would be no
    evidence.
    """
    if finding := identical_inputs(job.relation, job.data):
        raise InvalidNeighbours(finding.text)
    if not job.mechanism.threads and (finding := stuck_generator(job, look(job))):
        raise DependentRuns(finding.text)  # compiled code cannot remember anything from run to run
    ignored = input_ignored(job)
    return (ignored.text,) if ignored else ()


def early(job: Job) -> list[Finding]:
    """All that can be found before the search, for the plugin."""
    if finding := identical_inputs(job.relation, job.data):
        return [finding]  # nothing else is worth saying
    seen = look(job)
    findings = (deterministic_output(job.mechanism, seen), stuck_generator(job, seen), input_ignored(job))
    return [finding for finding in findings if finding]


def identical_inputs(relation: Relation, data: Data | None) -> Finding | None:
    """`identical_inputs`: the relation proposes the same input twice, so that nothing can be found."""
    proposed = list(islice(relation.candidates(data), 64))
    if not proposed or not all(np.array_equal(pair.data, pair.neighbour) for pair in proposed):
        return None
    both = np.array2string(proposed[0].data, threshold=12, separator=", ")
    return Finding("identical_inputs", f"both inputs of every pair are {both}: give neighbours that differ")


def look(job: Job) -> Look | None:
    """A few runs of the relation's first pair; None where they would take too long."""
    pair = next(iter(job.relation.candidates(job.data)))
    draw: Callable[[], tuple[Rows, Rows] | None] = partial(_drawn, job, pair)
    both = next(ordered([draw], 1, job.search_deadline))
    return Look(pair, *both) if both else None


def _drawn(job: Job, pair: Pair) -> tuple[Rows, Rows] | None:
    """The rows of `look`: as many as fit in the time, an even number of calls on each side."""
    mechanism = job.mechanism
    if mechanism.shard < 8:
        return None  # it was found to be slow
    vectorised = mechanism.signature.size is not None
    calls, rows = (CALLS, ROWS) if vectorised else (1, RUNS)
    width = max(mechanism.width, 8)
    sides = []
    limit = min(SECONDS, SHARE * job.max_time)
    for side, data in enumerate((pair.data, pair.neighbour)):
        block = np.full((calls, rows, width), np.nan)
        started = time.perf_counter()
        for call in range(calls):
            rng = generator(job.seed, HEALTH, LOOK, side, call)
            if vectorised:
                mechanism.fill(data, rng, block[call], 0)
                if call % 4 == 3 and time.perf_counter() - started > limit / 2:
                    calls = call + 1
                    break
                continue
            done = 0
            while done < rows:
                mechanism.fill(data, rng, block[0, done : done + 8], done)
                done += 8
                cost = (time.perf_counter() - started) / done
                if done == 8 and cost * 2 * rows > limit:
                    rows = int(limit / (2 * cost)) // 8 * 8
                    if rows < FEWEST:
                        return None
        sides.append(block)
    return sides[0][:calls, :rows], sides[1][:calls, :rows]


def deterministic_output(mechanism: Mechanism, seen: Look | None) -> Finding | None:
    """`deterministic_output`: every run returns the same, on both inputs."""
    if seen is None:
        return None
    first = seen.left[0, 0]
    if not all(
        np.array_equal(rows, np.broadcast_to(first, rows.shape), equal_nan=True) for rows in (seen.left, seen.right)
    ):
        return None
    count = 2 * seen.left.shape[0] * seen.left.shape[1]
    return Finding(
        "deterministic_output",
        f"{mechanism.name} returned {first[~np.isnan(first)].tolist()} on each of {count} runs, on both "
        f"{_shown(seen.pair.data)} and {_shown(seen.pair.neighbour)}: does it add noise, does it use its input?",
    )


def stuck_generator(job: Job, seen: Look | None) -> Finding | None:
    """`stuck_generator`: runs are not independent, so that nothing counted would be evidence.

    Rows of one call (for plain Python: runs that follow each other) equal one another more often, or less often, than
    rows of different calls (runs far apart). Every row is in one comparison only, so under independence the comparisons
    are independent trials of one probability, and Fisher's exact test is exact.
    """
    if seen is None:
        return None
    name = job.mechanism.name
    where = ("in one call", "in different calls") if seen.left.shape[0] > 1 else ("that follow each other", "far apart")
    sides, width = (seen.left, seen.right), seen.left.shape[2]
    tested = 2 * 2 * (1 + min(width, COLUMNS))  # at most two kinds of pairs on two sides
    for rows in sides:
        *close, far = _compared(rows)
        for near, columns in product(close, (slice(None), *(slice(j, j + 1) for j in range(min(width, COLUMNS))))):
            counts = [(int(_equal(a[:, columns], b[:, columns]).sum()), len(a)) for a, b in (near, far)]
            (same, of), (same_far, of_far) = counts
            if fisher_p_value(same, of, same_far, of_far) < LEVEL / tested:
                what = "whole rows" if columns == slice(None) else f"value {columns.start + 1}"
                return Finding(
                    "stuck_generator",
                    f"the runs of {name} are not independent: {what} of two runs {where[0]} were equal in {same} of "
                    f"{of} comparisons, {where[1]} in {same_far} of {of_far}; draw fresh noise for every run from the "
                    "generator given (in a vectorised mechanism: one draw a row)",
                )
    return None


def _compared(rows: Rows) -> list[tuple[Rows, Rows]]:
    """Disjoint pairs of rows of one call, and last of different calls; the first and the second of each."""
    calls, count, width = rows.shape
    if calls == 1:  # plain Python: runs that follow each other, from an even and from an odd one on; then far ones
        runs, n = rows[0], (count - 1) // 6
        even, odd, late = runs[: 2 * n], runs[2 * n + 1 : 4 * n + 1], runs[4 * n + 1 : 6 * n + 1]
        return [(even[0::2], even[1::2]), (odd[0::2], odd[1::2]), (late[:n], late[n:])]
    within, across = rows[: calls // 2], rows[calls // 2 : calls // 2 * 2]
    # Rows beside each other, the two halves of a call, and pairs drawn by lot: dependence takes many forms.
    lots = np.random.default_rng(20_011)
    orders = (
        np.arange(count),
        np.arange(count).reshape(2, -1).T.ravel(),
        lots.permutation(count),
        lots.permutation(count),
    )
    matched = np.stack([call[orders[k % 4]] for k, call in enumerate(within)])
    flat = (-1, width)
    half = len(across) // 2
    return [
        (matched[:, 0::2].reshape(flat), matched[:, 1::2].reshape(flat)),
        (across[:half].reshape(flat), across[half : 2 * half].reshape(flat)),
    ]


def _equal(a: Rows, b: Rows) -> NDArray[np.bool_]:
    """Which rows are equal throughout, absent values included."""
    return np.asarray(np.all((a == b) | (np.isnan(a) & np.isnan(b)), axis=1))


def input_ignored(job: Job) -> Finding | None:
    """`input_ignored`: from the same random numbers both inputs of every pair gave the same outcomes in every run.

    Nothing is said of mechanisms that draw their own randomness, or are too slow to be run so often.
    """
    mechanism = job.mechanism
    if not mechanism.reproducible or mechanism.shard < 8:
        return None
    few = mechanism.shard < 1000
    deadline = Deadline(time.monotonic() + min(SECONDS / 2, SHARE * job.max_time))
    relation = job.relation.candidates(job.data, centre=job.centre, scale=job.scale)
    draw = (
        partial(_alike, job, pair, number, TOGETHER_SLOW if few else TOGETHER) for number, pair in enumerate(relation)
    )
    runs = 0
    for alike in ordered(draw, 1, deadline):
        if not alike:
            return None  # they differ, or it would take too long to see that they never do
        runs += alike
    return Finding(
        "input_ignored",
        f"both inputs gave the same outcomes in every run ({runs} from the same random numbers, over all pairs): does "
        f"{mechanism.name} use its input?",
    )


def _alike(job: Job, pair: Pair, number: int, runs: int) -> int:
    """The runs made if both inputs gave the same in each of them, else 0; few runs first, which mostly settle it."""
    mechanism = job.mechanism
    width = max(mechanism.width, 8)
    runs = min(runs, max((1 << 17) // width, 1))
    for n in (min(runs, 64 if mechanism.shard >= 1000 else 2), runs):
        rows = np.full((2, n, width), np.nan)
        key = (HEALTH, PAIRED, number, n)
        if mechanism.threads:
            mechanism.fill_pair(pair, generator(job.seed, *key), rows, 0, coupled=True)
        else:
            for data, side in ((pair.data, rows[0]), (pair.neighbour, rows[1])):
                mechanism.fill(data, generator(job.seed, *key), side, 0)
        if not np.array_equal(rows[0], rows[1], equal_nan=True):
            return 0
    return runs


def of_counts(counts: Counts) -> tuple[str, ...]:
    """A note on an event that tells nothing apart."""
    if counts.runs and counts.n00 == counts.runs:
        return ("the event never happened on either input: it says nothing",)
    if counts.runs and counts.n11 == counts.runs:
        return ("the event happened in every run on both inputs: it says nothing",)
    return ()


def of_verdict(verdict: NotRefuted) -> list[Finding]:
    """`too_slow` or `low_power`: a pass that says next to nothing."""
    claim, runs = verdict.claim, verdict.counts.runs
    needed = 10 * runs_needed(claim, verdict.alpha)
    findings = []
    if verdict.ended == "time" and runs < needed:
        findings.append(
            Finding(
                "too_slow",
                f"{verdict.mechanism} made {runs} runs in {verdict.seconds:.0f} s; at least {needed} are needed to see "
                "anything but the clearest violation: give max_time=… or make it faster",
            )
        )
    # By the runs alone, for an event that happens half of the time: whether a correct mechanism passes must not hang on
    # which event its search came upon. Twice the claim, and one nat for small ones: more would be false comfort.
    caught = detectable_at_best(runs, claim, alpha=verdict.alpha)
    if not caught <= max(2 * claim.epsilon, claim.epsilon + 1):
        what = f"only ε ≥ {caught:.3g}" if math.isfinite(caught) else "nothing"
        findings.append(
            Finding(
                "low_power",
                f"with {runs} runs a test of the claim {claim} catches {what} at best: give more max_runs=… or "
                "max_time=…",
            )
        )
    return findings


def _shown(data: Data) -> str:
    """An input on one line."""
    return str(data.tolist()) if data.size <= 12 else f"{data.size} values"
