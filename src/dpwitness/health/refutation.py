"""Checks before a claim is called refuted: whether runs are independent of each other, and noise is drawn anew.

A violation is withdrawn (`DependentRuns`) only for a finding: runs depend on each other, or noise or a setting differs
in a new process. A check that cannot be made adds a note instead: the mechanism raises now, cannot be loaded again, or
an object of the user cannot be sent. Where noise may be remembered, a violation is withdrawn in two cases without a
comparison: no new process answers in time, or every run on both inputs returned the same outcome. Noise of few values
is often the same when it is drawn again, so the mechanism is loaded in several new processes. Compiled code keeps only
the module-level values that were compiled into it, so only these are compared.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias, TypeVar

from dpwitness.arrays import Rows
from dpwitness.checks import INTERRUPTS, is_failure, on_one_line
from dpwitness.errors import DependentRuns
from dpwitness.events import Event, stack
from dpwitness.evidence.p_value import fisher_p_value
from dpwitness.health import new_process
from dpwitness.health.dependence import (
    CALLS_SECONDS,
    DEPENDENCE_LEVEL,
    FurtherCalls,
    Shards,
    further_calls,
    refuse_dependent,
    refuse_series,
)
from dpwitness.health.findings import CHECK_SECONDS, CONSTANT_OUTCOME_REMARK, NO_NOISE_REMARK, only_outcome
from dpwitness.health.new_process import CannotLoad, Further, InputAnswer, TooLate
from dpwitness.mechanisms.compiled.compare import difference_in_many, require_same
from dpwitness.mechanisms.memory import may_remember
from dpwitness.neighbours import Pair, input_key
from dpwitness.runs import Role, Runner, generator

T = TypeVar("T")

#: ProcessAnswers has the answers about D and about D′ of each new process.
ProcessAnswers: TypeAlias = list[tuple[InputAnswer, InputAnswer]]

#: REMEMBERED_NOISE_ADVICE is the advice against noise or settings that differ in a new process.
REMEMBERED_NOISE_ADVICE: Final = (
    "draw fresh noise for every run, and let it read no variable that is set after its file is imported"
)
#: SIDE_NAMES has the names of the two inputs, as messages use them.
SIDE_NAMES: Final = ("D", "D′")


def check_refutation(runner: Runner, pair: Pair, events: Sequence[Event], shards: Shards) -> tuple[str, ...]:
    """Check the confirm runs of a pair for dependence and remembered noise; returns notes for people.

    Raises `DependentRuns` if the runs of a call depend on each other, if they depend on the input that ran before, or
    if noise is remembered. Each of the three tests refuses a mechanism of independent runs with probability at most
    `DEPENDENCE_LEVEL` for one look after a fixed number of runs; at a stopping time the tests are not exact.
    """
    mechanism = runner.mechanism
    if mechanism.cost.compiled:
        return _check_compiled(runner, pair)
    asked = [*events, *(event for event, _ in shards.chosen)]
    question = _value_or_error(partial(new_process.request, mechanism, pair, asked, runner.seed))
    with ThreadPoolExecutor(1) as thread:  # a slow mechanism takes seconds in this process and in the new one
        answers = thread.submit(_ask_processes, question, Further(), runner)
        try:
            calls = _make_calls(runner, pair, asked)
        except BaseException:  # such as Ctrl-C: the answers are no longer needed
            new_process.end()
            raise
    notes: tuple[str, ...] = ()
    if isinstance(calls, str):
        notes, calls = (f"its runs were not compared with each other: {calls}",), []
    _refuse_within(runner, events, shards, calls)
    sides = [_ObservedSide.of(side, pair, shards, calls) for side in range(len(SIDE_NAMES))]
    for here, of_input in zip(sides, calls, strict=False):  # `calls` is empty if the further calls failed
        alone = InputAnswer(runs=sum(of_input.rows), hits=tuple(map(sum, of_input.hits)), always=None)
        between, there = " between runs on both inputs", f"runs on {here.name} alone"
        if found := here.other_share(alone, there, between=between):
            raise DependentRuns(f"the runs of {mechanism.name} are not independent: {found}: {REMEMBERED_NOISE_ADVICE}")
    return (*notes, *_compare_processes(runner, question, answers.result(), sides))


def check_pass(runner: Runner, pair: Pair, events: Sequence[Event], shards: Shards) -> tuple[str, ...]:
    """Check that the runs of a pass were independent, by further runs in 2 % of the check's time.

    Returns a note if every run returned the same outcome. Raises `DependentRuns`, as the power of dependent runs is
    unknown. Compiled code is compared with Python: see `require_same_in_python`.
    """
    mechanism = runner.mechanism
    if mechanism.cost.compiled:
        require_same_in_python(runner, pair)
        rows = [_compiled_rows(runner, pair, side) for side in range(len(SIDE_NAMES))]
    else:
        calls: list[FurtherCalls] | str = []
        if not mechanism.cost.slow:  # a slow mechanism has no time for more than the series of its epochs
            calls = _make_calls(runner, pair, events, min(CALLS_SECONDS, 0.02 * runner.seconds), proved=False)
        calls = [] if isinstance(calls, str) else calls
        _refuse_within(runner, events, shards, calls)
        rows = [of_input.series.rows for of_input in calls]
    always = [only_outcome(of_input) for of_input in rows]
    if not always or None in always:
        return ()
    on_d, on_neighbour = (mechanism.outcome_text(outcome or ()) for outcome in always)
    runs = sum(map(len, rows))
    return (f"every one of {runs} runs returned {on_d} on D and {on_neighbour} on D′: {CONSTANT_OUTCOME_REMARK}",)


def require_new_draws(runner: Runner, pair: Pair, events: Sequence[Event]) -> tuple[str, ...]:
    """Check that a mechanism draws different noise in every new process; return notes for people.

    The runs of several sessions are evidence together only if their draws are independent: a generator that a module
    seeds when it is imported gives every session the same draws. Raises `DependentRuns` if two new processes have the
    same outcomes, which independent draws have with probability at most `DEPENDENCE_LEVEL`. A note says if no process
    answered.
    """
    if runner.mechanism.reproducible:  # its draws follow from the seed, which each session has for itself
        return ()
    question = _value_or_error(partial(new_process.request, runner.mechanism, pair, events, runner.seed))
    processes = []
    for _ in range(2):
        answers = _ask_processes(question, Further(processes=0), runner)
        if isinstance(answers, Exception):
            return (f"not known whether new processes draw the same noise: {on_one_line(answers)}",)
        processes.append(answers[0])
    for one, other in zip(*processes, strict=True):
        runs = min(len(one.outcomes), len(other.outcomes))
        counts = Counter(one.outcomes[:runs]).values()
        orders = math.lgamma(runs + 1) - sum(math.lgamma(n + 1) for n in counts)
        if one.outcomes[:runs] == other.outcomes[:runs] and orders > -math.log(DEPENDENCE_LEVEL):
            raise DependentRuns(
                f"{runner.mechanism.name} draws the same noise in every new process, so sessions count the same draws: "
                "seed its generator from the system's randomness, or let it take a generator rng"
            )
    return ()


def require_same_in_python(runner: Runner, pair: Pair) -> None:
    """Repeat runs of compiled code in Python, in 5 % of the time of the check, from 0.01 to 0.5 s.

    A pass must concern the user's function, not its compiled form. Raises `CompiledDisagrees` if an outcome differs.
    """
    compiled, plain = runner.mechanism, runner.mechanism.plain
    if plain is None:
        return
    seconds = min(max(0.05 * runner.seconds, 0.01), 0.5)
    require_same(difference_in_many(compiled, plain, pair, generator(runner.seed, Role.CONFIRM), seconds))


def _compiled_rows(runner: Runner, pair: Pair, side: int) -> Rows:
    """The outcomes of 256 runs of machine code on one input."""
    rng = generator(runner.seed, Role.HEALTH_FURTHER_CALLS, side)
    return runner.mechanism.outcomes(pair.sides[side], rng, 256)


def _check_compiled(runner: Runner, pair: Pair) -> tuple[str, ...]:
    """Notes on inputs on which compiled code always returns one outcome, and on constants that could not be compared.

    Raises `DependentRuns` if a module-level value that the code uses differs in a new process.
    """
    function, notes = runner.mechanism.signature.given_function, []
    try:
        same = new_process.same_constants(function, _in_time(Further(), runner))
    except Exception as error:  # only this process has the function, or an object of the user raises when it is read
        if isinstance(error, TooLate) and may_remember(function):
            raise DependentRuns(_may_remember(runner, error)) from error
        same = True
        notes.append(f"the numbers that it uses were not compared with those of a new process: {on_one_line(error)}")
    if not same:
        raise DependentRuns(
            f"{runner.mechanism.name} may remember its noise: a module-level number or array that it uses has "
            "another value in a new process; draw fresh noise for every run, and give the value as a "
            "parameter"
        )
    for side, name in enumerate(SIDE_NAMES):
        rows = _compiled_rows(runner, pair, side)
        always = only_outcome(rows)
        if always is not None:
            outcome = runner.mechanism.outcome_text(always)
            notes.append(f"on {name} every one of {len(rows)} runs returned {outcome}: {CONSTANT_OUTCOME_REMARK}")
    return tuple(notes)


def _refuse_within(runner: Runner, events: Sequence[Event], shards: Shards, calls: Sequence[FurtherCalls]) -> None:
    """Raise `DependentRuns` if runs of this process depend on each other."""
    refuse_dependent(runner.mechanism.name, len(shards.totals), shards, calls)
    refuse_series(runner.mechanism.name, events, [*shards.series, *(of_input.series for of_input in calls)])


def _make_calls(
    runner: Runner, pair: Pair, events: Sequence[Event], seconds: float = CALLS_SECONDS, *, proved: bool = True
) -> list[FurtherCalls] | str:
    """Further calls on both inputs, or the text of an error; with a `proved` violation, only interrupts are raised."""
    try:
        return further_calls(runner, pair, events, seconds=seconds) or "they took too long"
    except INTERRUPTS:
        raise
    except BaseException as error:  # raised by the mechanism, which ran well until then
        if not (proved or is_failure(error) or isinstance(error, SystemExit)):
            raise
        return on_one_line(error)


def _value_or_error(call: Callable[[], T]) -> T | Exception:
    """The value of a call, or the exception that it raised: `CannotLoad`, or an exception of the user's object."""
    try:
        return call()
    except Exception as error:
        return error


def _ask_processes(
    question: new_process.Request | Exception, further: Further, runner: Runner
) -> ProcessAnswers | Exception:
    """The answers of new processes, or the reason that no process answered: `TooLate` if the time was over."""
    if isinstance(question, Exception):
        why = f"it cannot be loaded ({on_one_line(question)})"
        return CannotLoad(f"{why}; put a function that makes and runs it at the top level of a file")
    return _value_or_error(partial(new_process.ask, question, _in_time(further, runner)))


def _in_time(further: Further, runner: Runner) -> Further:
    """The limits of further processes, shortened so that they end before the result of the check is due."""
    limit = min(further.limit, runner.seconds_until_due)
    return replace(further, limit=limit, seconds=min(further.seconds, max(limit - 2.0, 0.0)))  # Python starts in 2 s


@dataclass(frozen=True, slots=True, kw_only=True)
class _ObservedSide:
    """Runs of one input in this process.

    `shares`: hits and confirm runs of each event. `runs`: the number of runs with known outcomes. `always`: their only
    outcome, None if outcomes vary. `twice`: the outcomes that came twice in the first half of these runs. `later`: all
    outcomes of the second half.
    """

    name: str
    shares: list[tuple[int, int]]
    runs: int
    always: tuple[float, ...] | None
    twice: frozenset[bytes]
    later: list[bytes]

    @classmethod
    def of(cls, side: int, pair: Pair, shards: Shards, calls: Sequence[FurtherCalls]) -> "_ObservedSide":
        key = input_key(pair.sides[side])
        series = [one for one in shards.series if input_key(one.data) == key]
        series += [calls[side].series] if calls else []
        outcomes = [outcome for one in series for outcome in one.outcomes]
        half = len(outcomes) // 2
        return cls(
            name=SIDE_NAMES[side],
            shares=[((counts.hits, counts.neighbour_hits)[side], counts.runs) for counts in shards.compared],
            runs=len(outcomes),
            always=only_outcome(stack([one.rows for one in series])) if series else None,
            twice=frozenset(outcome for outcome, times in Counter(outcomes[:half]).items() if times > 1),
            later=outcomes[half:],
        )

    @property
    def varied(self) -> bool:
        """Whether outcomes vary, or an event happened in some confirm runs but not in all."""
        return self.always is None or any(0 < hits < runs for hits, runs in self.shares)

    def other_share(self, there: InputAnswer, where: str, *, between: str = "", tests: int = 1) -> str | None:
        """A text on an event or outcome whose share of these runs differs from its share of the runs `there`, or None.

        If the runs have the same law, any of `tests` tests of both inputs returns a text with probability at most
        `DEPENDENCE_LEVEL`.
        """
        pairs = zip(self.shares, there.hits, strict=False)  # `hits` is empty if no further process answered
        found = [("the event happened", *own, hits, there.runs) for own, hits in pairs]
        if self.always is not None and there.always is not None:
            other = there.runs if self.always == there.always else 0
            found.append(("the same outcome came", self.runs, self.runs, other, there.runs))
        came, new = (sum(outcome in self.twice for outcome in rows) for rows in (self.later, there.outcomes))
        found.append(("an outcome came that had come twice before", came, len(self.later), new, len(there.outcomes)))
        level = DEPENDENCE_LEVEL / (len(SIDE_NAMES) * tests * (len(self.shares) + 2))
        for what, hits, runs, others, of in found:
            if fisher_p_value(hits, runs, others, of) < level:
                return f"on {self.name} {what} in {hits} of {runs} runs{between}, and in {others} of {of} {where}"
        return None


def _compare_processes(
    runner: Runner,
    question: new_process.Request | Exception,
    answers: ProcessAnswers | Exception,
    sides: Sequence[_ObservedSide],
) -> tuple[str, ...]:
    """Notes from a comparison with new processes. Raises `DependentRuns` if noise or a setting differs there."""
    if isinstance(answers, Exception):
        return _notes_without_processes(runner, answers, sides)
    mechanism, limits, processes = runner.mechanism, Further(), 1
    _refuse_other_processes(mechanism.name, sides, answers)
    if not any(here.varied for here in sides) and may_remember(mechanism.signature.given_function):
        # Remembered noise may be the same by chance in few processes, or in few runs of each.
        if len(answers) <= limits.processes or any(there.runs < limits.runs for one in answers for there in one):
            unlimited = Further(seconds=math.inf, runs_seconds=CHECK_SECONDS, limit=math.inf)
            more = _ask_processes(question, unlimited, runner)
            answers = answers if isinstance(more, Exception) else more
            _refuse_other_processes(mechanism.name, sides, answers)
        processes = sum([here.always for here in sides] == [there.always for there in one] for one in answers)
        if processes <= limits.processes / 2:
            reason = f"{processes} of {1 + limits.processes} new processes answered in time: give a larger max_time"
            return _notes_without_processes(runner, TooLate(reason), sides)
    notes = []
    for here, there in zip(sides, answers[0], strict=True):
        if here.always is None:
            continue
        same = mechanism.outcome_text(here.always)
        if there.always is None:
            notes.append(f"on {here.name} {here.runs} runs all returned {same}: other outcomes are rare")
        elif here.always == there.always:
            new = "a new process" if processes < 2 else f"{processes} new processes"
            notes.append(f"on {here.name} every run returned {same}, in {new} too: {NO_NOISE_REMARK}")
    return tuple(notes)


def _may_remember(runner: Runner, why: TooLate) -> str:
    """The message if noise may be remembered and no new process answered in time."""
    return f"{runner.mechanism.name} may remember its noise, which only a new process shows: {why}"


def _notes_without_processes(runner: Runner, error: Exception, sides: Sequence[_ObservedSide]) -> tuple[str, ...]:
    """The notes if no new process answered.

    Raises `DependentRuns` if noise may be remembered, and no outcome varied or a new process had too little time.
    """
    never = {here.name: runner.mechanism.outcome_text(here.always or ()) for here in sides if not here.varied}
    why, remembers = on_one_line(error), may_remember(runner.mechanism.signature.given_function)
    if len(never) == len(SIDE_NAMES) and remembers:
        raise DependentRuns(
            f"{runner.mechanism.name} returned {never['D']} in every run on D and {never['D′']} on D′: only a new "
            f"process shows whether it adds no noise, draws the same noise in every run or remembers it: {why}"
        )
    if isinstance(error, TooLate) and remembers:
        raise DependentRuns(_may_remember(runner, error))
    return (
        f"not compared with a new process, where remembered noise would differ: {why}",
        *(f"on {side} every run returned {always}: {CONSTANT_OUTCOME_REMARK}" for side, always in never.items()),
    )


def _refuse_other_processes(name: str, sides: Sequence[_ObservedSide], answers: ProcessAnswers) -> None:
    """Raise `DependentRuns` if outcomes differ in a new process, or in all further processes together."""
    for side, here in enumerate(sides):
        first, *further = (one[side] for one in answers)
        hits = tuple(map(sum, zip(*(there.hits for there in further), strict=True)))
        together = InputAnswer(runs=sum(there.runs for there in further), hits=hits, always=None)
        for there in (first, *further, together):
            if found := here.other_share(there, "in a new process", tests=len(answers) + 1):
                raise DependentRuns(f"{name} remembers its noise or a setting: {found}; {REMEMBERED_NOISE_ADVICE}")
