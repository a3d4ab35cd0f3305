"""Health checks before the search: whether runs vary, are independent, use their input and are fast enough.

`check`, `bound`, `curve` and `profile` refuse what would be a false alarm and note the rest (`required`); the pytest
plugin refuses all, and lets each be suppressed by name (`all_findings`).
"""

import time
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from typing import Final

import numpy as np

from dpwitness.errors import DependentRuns, InvalidNeighbours, MechanismRaised
from dpwitness.events import widen
from dpwitness.events.counting import equal_rows
from dpwitness.events.encoding import is_text
from dpwitness.evidence import runs_needed
from dpwitness.health.dependence import LEVEL, fisher_p_value
from dpwitness.health.findings import ADVICE, SAME_OR_RARE, SECONDS, Finding, Outcomes
from dpwitness.machine import Deadline
from dpwitness.mechanisms.failures import described_on_both_inputs
from dpwitness.mechanisms.mechanism import Mechanism, PairedRuns, Rows
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.neighbours import Data, Pair, input_key, proposed_pairs, shown
from dpwitness.neighbours.pair import unlike
from dpwitness.problem import Problem
from dpwitness.results.text import at_most
from dpwitness.runs import Role, Runner, Threads, generator

#: Calls of a vectorised mechanism that are looked at on each input, and rows of each.
CALLS: Final = 64
ROWS: Final = 64
#: Runs of plain Python on each input; fewer could show nothing at the level required.
RUNS: Final = 248
FEWEST: Final = 128
#: Runs of plain Python between two looks at the clock.
FEW: Final = 8
#: Columns that are compared by themselves.
COLUMNS: Final = 20
#: The share of all time that these runs may take.
SHARE: Final = 1 / 20
#: The draw by which rows of a call are paired at random; any other would do.
PAIRING: Final = 20_011
#: Proposed pairs that are compared.
PAIRS: Final = 64
#: Runs of both inputs of a pair from the same random numbers, first a few and then more: if many runs are cheap, and if
#: not. The first few mostly settle it.
TOGETHER: Final = (64, 4096)
TOGETHER_ONE_BY_ONE: Final = (2, 64)
#: Runs that returned what an earlier run on the same input did, from which on a note says so: noise of two values that
#: are as likely shows this with probability 10⁻⁶.
FEWEST_REPEATS: Final = 20
#: Texts of which no two are equal, from which on they are taken to never repeat: of 1,000 equally likely texts so many
#: differ with probability 10⁻⁴.
TEXTS: Final = 128
#: Numbers that the outcomes of one input may hold.
ROOM: Final = 1 << 17


def required(problem: Problem, runner: Runner) -> tuple[str, ...]:
    """The health checks that check, bound, curve and profile make before the search; returns notes.

    Raises `InvalidNeighbours` where nothing could be found and `DependentRuns` where anything found would be no
    evidence.
    """
    if finding := identical_inputs(problem):
        raise InvalidNeighbours(finding.text)
    name, seen = problem.mechanism.name, None
    if not problem.mechanism.cost.compiled:  # compiled code cannot remember anything from run to run, nor return texts
        seen = first_runs(problem, runner)
        if finding := stuck_generator(name, seen):
            raise DependentRuns(finding.text)
    found = unlike_inputs(problem), unrepeated_texts(name, seen), input_ignored(problem, runner)
    return tuple(finding.text for finding in found if finding)


def report_time_needed(problem: Problem, runner: Runner, alpha: float) -> None:
    """Report before the runs if a check has no time to refute anything; its verdict says so afterwards.

    This is no error: times measured in a few runs may be wrong, and every check ends with a verdict.
    """
    if finding := time_needed(problem, runner, alpha):
        runner.report("search", 0, runs_needed(problem.claim, alpha), finding.text)


def all_findings(problem: Problem, runner: Runner) -> list[Finding]:
    """Return the findings of all health checks before the search, for the plugin."""
    if finding := identical_inputs(problem):
        return [finding]  # nothing else is worth saying
    seen, name = first_runs(problem, runner), problem.mechanism.name
    # What always returns the same may well be looked at for its time alone.
    constant = deterministic_output(name, seen)
    texts = unrepeated_texts(name, seen)
    findings = (unlike_inputs(problem), constant, texts, stuck_generator(name, seen), input_ignored(problem, runner))
    return [finding for finding in findings if finding]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRuns:
    """A few runs of each input of a pair: rows of shape (calls, rows, width), NaN where there is no value."""

    pair: Pair
    left: Rows
    right: Rows


def first_runs(problem: Problem, runner: Runner) -> FirstRuns | None:
    """Run the relation's first pair a few times; None where that would take too long."""
    pair = problem.first
    return next(Threads(1).ordered([partial(_drawn, runner, pair)], runner.searching().deadline))


def _drawn(runner: Runner, pair: Pair) -> FirstRuns | None:
    """As many runs as fit in the time, an even number of calls on each side."""
    cost = runner.mechanism.cost
    if cost.slow:
        return None
    limit = min(SECONDS, SHARE * runner.max_time) / 2  # of each side
    draw = _calls if cost.batched else _call
    try:
        sides = [draw(runner, data, side, limit) for side, data in enumerate(pair.sides)]
    except MechanismRaised as error:
        raise described_on_both_inputs(runner.mechanism.fill, pair, error) from error.__cause__
    if not all(sides):
        return None
    calls, rows = (min(len(side) for side in sides), min(len(block) for side in sides for block in side))
    width = max(block.shape[1] for side in sides for block in side)
    left, right = (np.stack([widen(block[:rows], width) for block in side[:calls]]) for side in sides)
    return FirstRuns(pair=pair, left=left, right=right)


def _calls(runner: Runner, data: Data, side: int, limit: float) -> list[Rows]:
    """Up to `CALLS` calls of `ROWS` runs, a multiple of four, in so many seconds."""
    blocks: list[Rows] = []
    started = time.perf_counter()
    while len(blocks) < CALLS and (len(blocks) % 4 or not blocks or time.perf_counter() - started <= limit):
        rng = generator(runner.seed, Role.HEALTH_FIRST_RUNS, side, len(blocks))
        blocks.append(runner.mechanism.outcomes(data, rng, ROWS))
    return blocks


def _call(runner: Runner, data: Data, side: int, limit: float) -> list[Rows]:
    """Up to `RUNS` runs as one block in so many seconds; none where `FEWEST` would take longer."""
    rng = generator(runner.seed, Role.HEALTH_FIRST_RUNS, side, 0)
    blocks = [np.empty((0, 1))]
    started = time.perf_counter()
    runs = RUNS
    for done in range(0, RUNS, FEW):
        if done >= runs:
            break
        blocks.append(runner.mechanism.outcomes(data, rng, FEW, start=done))
        seconds = (time.perf_counter() - started) / (done + FEW)
        if done == 0 and seconds * RUNS > limit:
            runs = int(limit / seconds) // FEW * FEW
            if runs < FEWEST:
                return []
    width = max(block.shape[1] for block in blocks)  # that of an outcome with entries that the columns lack
    return [np.concatenate([widen(block, width) for block in blocks])]


def deterministic_output(name: str, seen: FirstRuns | None) -> Finding | None:
    """Return `deterministic_output` if every run returned the same, on both inputs."""
    if seen is None:
        return None
    first, rows = seen.left[0, 0], np.concatenate([seen.left, seen.right])
    if not np.array_equal(rows, np.broadcast_to(first, rows.shape), equal_nan=True):
        return None
    return Finding(
        name="deterministic_output",
        text=f"{name} returned {first[~np.isnan(first)].tolist()} on each of {rows[..., 0].size} runs, on both "
        f"{shown(seen.pair.data)} and {shown(seen.pair.neighbour)}: does it add noise, does it use its input?",
    )


def stuck_generator(name: str, seen: FirstRuns | None) -> Finding | None:
    """Return `stuck_generator` if runs are not independent, so that counts would be no evidence.

    Rows of one call (for plain Python: runs that follow each other) equal one another more often, or less often, than
    rows of different calls (runs far apart). Every row is in one comparison only, so under independence the comparisons
    are independent trials of one probability, and Fisher's exact test is exact.
    """
    if seen is None:
        return None
    where = ("in one call", "in different calls") if seen.left.shape[0] > 1 else ("that follow each other", "far apart")
    sides, width = (seen.left, seen.right), seen.left.shape[2]
    columns = [slice(None), *(slice(j, j + 1) for j in range(min(width, COLUMNS)))]
    tested = 2 * 2 * len(columns)  # at most two kinds of pairs on two sides
    for rows in sides:
        *close, far = _matched(rows)
        for near, column in product(close, columns):
            counts = [(int(equal_rows(a[:, column], b[:, column]).sum()), len(a)) for a, b in (near, far)]
            (same, of), (same_far, of_far) = counts
            if fisher_p_value(same, of, same_far, of_far) < LEVEL / tested:
                what = "whole rows" if column == slice(None) else f"value {column.start + 1}"
                return Finding(
                    name="stuck_generator",
                    text=f"the runs of {name} are not independent: {what} of two runs {where[0]} were "
                    f"equal in {same} of {of} comparisons, {where[1]} in {same_far} of {of_far}; {ADVICE}",
                )
    return None


def _matched(rows: Rows) -> list[tuple[Rows, Rows]]:
    """Disjoint pairs of rows of one call, and last of different calls; the first and the second of each."""
    calls, count, width = rows.shape
    if calls == 1:  # plain Python: runs that follow each other, from an even and from an odd one on; then far ones
        runs, n = rows[0], (count - 1) // 6
        even, odd, late = runs[: 2 * n], runs[2 * n + 1 : 4 * n + 1], runs[4 * n + 1 : 6 * n + 1]
        return [(even[0::2], even[1::2]), (odd[0::2], odd[1::2]), (late[:n], late[n:])]
    within, across = rows[: calls // 2], rows[calls // 2 : calls // 2 * 2]
    # Rows beside each other, the two halves of a call, and pairs at random: dependence takes many forms.
    random, in_order = np.random.default_rng(PAIRING), np.arange(count)
    orders = (in_order, in_order.reshape(2, -1).T.ravel(), random.permutation(count), random.permutation(count))
    matched = np.stack([call[orders[k % 4]] for k, call in enumerate(within)])
    flat = (-1, width)
    half = len(across) // 2
    return [
        (matched[:, 0::2].reshape(flat), matched[:, 1::2].reshape(flat)),
        (across[:half].reshape(flat), across[half : 2 * half].reshape(flat)),
    ]


def identical_inputs(problem: Problem) -> Finding | None:
    """Return `identical_inputs` if the relation proposes the same input twice, so that nothing can be found."""
    both = None
    for pair in islice(proposed_pairs(problem.relation, problem.data), PAIRS):
        if len(pair.key) != 1:
            return None
        both = shown(pair.data) if both is None else both
    if both is None:
        return None
    return Finding(name="identical_inputs", text=f"both inputs of every pair are {both}: give neighbours that differ")


def unrepeated_texts(name: str, seen: FirstRuns | None) -> Finding | None:
    """Return `unrepeated_texts` if an entry of the outcomes is a text in `TEXTS` runs or more, and no two are equal."""
    if seen is None:
        return None
    for entries in np.concatenate([seen.left, seen.right]).reshape(-1, seen.left.shape[-1]).T:
        texts = entries[is_text(entries)]
        if len(texts) >= TEXTS and len(np.unique(texts)) == len(texts):
            return Finding(
                name="unrepeated_texts",
                text=f"{len(texts)} runs of {name} returned {len(texts)} different texts, and a text is compared as a "
                "whole: give outcome=, a function that returns what is in it, such as outcome=float",
            )
    return None


def unlike_inputs(problem: Problem) -> Finding | None:
    """Return `unlike_inputs` if D and D′ of a pair differ in more than their values, as an explicit pair may."""
    if problem.relation.judged:  # which differ in their records alone
        return None
    for pair in islice(proposed_pairs(problem.relation, problem.data), PAIRS):
        if difference := unlike(pair):
            text = f"D and D′ differ in {difference}, not only in their records: the verdict may be due to that"
            return Finding(name="unlike_inputs", text=text)
    return None


def input_ignored(problem: Problem, runner: Runner) -> Finding | None:
    """Return `input_ignored` if both inputs of every pair always gave the same from the same random numbers.

    Mechanisms whose randomness no seed repeats are not tested; for slow ones see `ignored_throughout`.
    """
    mechanism = runner.mechanism
    if mechanism.cost.slow:
        return None
    if mechanism.reproducible:
        return _input_ignored(problem, runner)
    first = problem.first
    if not isinstance(mechanism, PythonMechanism) or mechanism.cost.batched:
        return None
    deadline = Deadline(time.monotonic() + min(SECONDS / 2, SHARE * runner.max_time))
    if not next(Threads(1).ordered([partial(mechanism.repeats_if_seeded, first)], deadline)):  # a run may hang
        return None
    mechanism.draws_globally = True  # for these runs alone: seeding takes longer than a fast run
    try:
        return _input_ignored(problem, runner)
    finally:
        mechanism.draws_globally = False


def _input_ignored(problem: Problem, runner: Runner) -> Finding | None:
    deadline = Deadline(time.monotonic() + min(SECONDS / 2, SHARE * runner.max_time))
    proposed = problem.candidates()
    runs = 0
    for same in Threads(1).ordered(
        (partial(_same, runner, pair, number) for number, pair in enumerate(proposed)), deadline
    ):
        if not same:
            return None  # they differ, or it would take too long to see that they never do
        runs += same
    return _ignoring(runner.mechanism.name, runs)


def ignored_throughout(mechanism: Mechanism, outcomes: Iterable[tuple[Rows, Rows]]) -> tuple[str, ...]:
    """Return a note where coupled runs of a check, of many pairs, gave the same on both inputs each time.

    `outcomes`: rows of D and of D′ for each pair, as long.
    """
    both = list(outcomes)
    runs = sum(len(left) for left, _ in both)
    same = all(np.array_equal(left, right, equal_nan=True) for left, right in both)
    return (_ignoring(mechanism.name, runs).text,) if runs and same and mechanism.reproducible else ()


def same_throughout(outcomes: Iterable[tuple[Data, Rows]]) -> tuple[str, ...]:
    """Return a note where the runs of a check returned the same on each input, every time.

    `outcomes`: inputs and the rows of their runs; an input may come several times.
    """
    by_input: dict[Hashable, Outcomes] = defaultdict(Outcomes)
    for data, rows in outcomes:
        if len(rows):
            by_input[input_key(data)].add(rows)
    runs, inputs = sum(seen.runs for seen in by_input.values()), len(by_input)
    varied = any(seen.always is None for seen in by_input.values())
    if varied or runs - inputs < FEWEST_REPEATS:
        return ()
    return (f"every run on an input returned the same ({runs} runs on {inputs} inputs): {SAME_OR_RARE}",)


def _ignoring(name: str, runs: int) -> Finding:
    return Finding(
        name="input_ignored",
        text=f"both inputs gave the same values in every run ({runs} from the same random numbers, over all pairs): "
        f"does {name} use its input?",
    )


def time_needed(problem: Problem, runner: Runner, alpha: float) -> Finding | None:
    """Return `too_slow` if even the clearest violation takes longer to refute than there is time."""
    mechanism = problem.mechanism
    needed = runs_needed(problem.claim, alpha)
    cores = runner.pool.workers if runner.pool is not None else runner.workers if mechanism.threads else 1
    seconds = 2 * needed * mechanism.cost.seconds_per_run / cores
    if seconds <= runner.max_time:
        return None
    return Finding(
        name="too_slow",
        text=f"{mechanism.name} takes {mechanism.cost.seconds_per_run:.3g} s a run: even the clearest violation of "
        f"{problem.claim} at alpha={alpha:g} needs {needed} runs on each input, {at_most(seconds)} s with {cores} "
        f"{'core' if cores == 1 else 'cores'}: give max_time={at_most(2 * seconds)} or more, or make it faster",
    )


def _same(runner: Runner, pair: Pair, number: int) -> int:
    """The runs made if both inputs gave the same in each of them, else 0."""
    mechanism = runner.mechanism
    few, most = TOGETHER if mechanism.cost.cheap_in_bulk else TOGETHER_ONE_BY_ONE
    most = min(most, max(ROOM // max(mechanism.width, 1), 1))
    for n in (min(most, few), most):
        key = (Role.HEALTH_SAME_DRAWS, number, n)
        try:
            if mechanism.cost.compiled:
                runs = PairedRuns.d_first(pair, n, coupled=True)
                left, right = mechanism.pair_outcomes(runs, generator(runner.seed, *key))
            else:
                left, right = (mechanism.outcomes(data, generator(runner.seed, *key), n) for data in pair.sides)
        except MechanismRaised as error:
            told = error if mechanism.cost.compiled else described_on_both_inputs(mechanism.fill, pair, error)
            if not told.on_both_inputs:
                raise told from error.__cause__
            return 0  # the search goes on without the pair, and says so
        width = min(left.shape[1], right.shape[1])
        longer = np.isnan(left[:, width:]).all() and np.isnan(right[:, width:]).all()
        if not longer or not np.array_equal(left[:, :width], right[:, :width], equal_nan=True):
            return 0
    return most
