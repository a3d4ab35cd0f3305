"""Checks before a claim is called refuted: that the runs are independent of each other, and the noise is drawn anew.

Only a finding takes a violation back (`DependentRuns`): the runs depend on each other, or noise or a setting differs in
a new process. A check that cannot be made only adds a note: the mechanism now raises, or cannot be loaded again, or an
object of the user's cannot be sent. One case is refused even if no new process can be asked: every run on both inputs
returned the same, and the noise may have been drawn once. A mechanism that remembers its noise shows nothing else; and
since noise of few values is often the same when it is drawn again, a mechanism is loaded in several new processes.
Compiled code keeps nothing from run to run except the module-level values that were compiled into it, so only these are
compared.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias, TypeVar

from dpwitness.checks import INTERRUPTS, is_failure, is_ours, on_one_line
from dpwitness.errors import DependentRuns
from dpwitness.events import Event
from dpwitness.health import new_process
from dpwitness.health.dependence import (
    LEVEL,
    FurtherCalls,
    Shards,
    fisher_p_value,
    further_calls,
    refuse_dependent,
    refuse_series,
)
from dpwitness.health.findings import SAME, SAME_OR_RARE, SECONDS, Outcomes
from dpwitness.health.new_process import Answer, Further
from dpwitness.mechanisms.compiled.compare import difference_in_many, require_same
from dpwitness.mechanisms.memory import may_remember
from dpwitness.neighbours import Pair, input_key
from dpwitness.runs import Role, Runner, generator

#: Runs of compiled code that are looked at for outcomes that never vary.
RUNS: Final = 256
#: Seconds in which a new process has started Python and imported dpwitness, on a busy machine too.
PYTHON_STARTS: Final = 2.0
#: The share of a check's time that further runs of a pass may take.
PASS_SHARE: Final = 0.02
#: The same of runs that compiled code repeats in Python, with limits in seconds.
COMPARED_SHARE: Final = 0.05
COMPARED_SECONDS: Final = (0.01, 0.5)

T = TypeVar("T")

#: What each new process answers about D and about D′.
Answers: TypeAlias = list[tuple[Answer, Answer]]

ADVICE: Final = "draw fresh noise for every run, and let it read no variable that is set after its file is imported"
NAMES: Final = ("D", "D′")


def check_refutation(runner: Runner, pair: Pair, events: Sequence[Event], shards: Shards) -> tuple[str, ...]:
    """Check what events showed on a pair in the confirm runs, shard by shard; returns notes for people.

    Raises `DependentRuns` if the runs of a call depend on each other, if they depend on which input ran before, or if
    noise is remembered. Each of the three tests refuses a mechanism of independent runs with probability at most
    `LEVEL`. They are exact for one look after a fixed number of runs; at a stopping time, which follows many looks,
    they are not.
    """
    if runner.mechanism.cost.compiled:
        return _compiled(runner, pair)
    asked = [*events, *(event for event, _ in shards.chosen)]
    question = _given(partial(new_process.request, runner.mechanism, pair, asked, runner.seed))
    with ThreadPoolExecutor(1) as beside:  # a slow mechanism takes seconds here and there
        answers = beside.submit(_answers, question, _in_time(Further(), runner))
        try:
            calls = _calls(runner, pair, asked)
        except BaseException:  # Ctrl-C: the other result is no longer needed
            new_process.end()
            raise
    notes: tuple[str, ...] = ()
    name = runner.mechanism.name
    with _events_named(events):
        if isinstance(calls, str):
            notes, calls = (f"its runs were not compared with each other: {calls}",), _calls_before(pair, shards)
        else:
            refuse_dependent(name, len(events), shards, calls)
            _refuse_other_calls(name, shards, calls)
        refuse_series(name, events, [*shards.series, *(of_input.series for of_input in calls if of_input.series)])
        return (*notes, *_compared(runner, question, answers.result(), calls, shards))


def _in_time(further: Further, runner: Runner) -> Further:
    """The same processes, which answer before the result of the check is due."""
    limit = min(further.limit, runner.seconds_until_due)
    return replace(further, limit=limit, seconds=min(further.seconds, max(limit - PYTHON_STARTS, 0.0)))


def _calls_before(pair: Pair, shards: Shards) -> list[FurtherCalls]:
    """What earlier runs showed of both inputs, in the place of further calls; nothing where one has too few.

    Their series are left out, since they are looked at already.
    """
    known = {input_key(one.data): one.rows for one in shards.series}
    keys = [input_key(data) for data in pair.sides]
    if not all(key in known for key in keys):
        return []
    sides = []
    for key in keys:
        outcomes = Outcomes()
        outcomes.add(known[key])
        sides.append(FurtherCalls(hits=[], always=outcomes.always, runs=outcomes.runs))
    return sides


def check_pass(runner: Runner, pair: Pair, events: Sequence[Event], shards: Shards) -> tuple[str, ...]:
    """Check that the runs of a pass were independent: those that were made, and further ones in little time.

    Returns notes: if every run returns the same, that is said. If runs depend on each other, nobody knows what they
    would have caught. Raises `DependentRuns`. Compiled code is compared with Python: see `require_same_in_python`.
    """
    mechanism = runner.mechanism
    if mechanism.cost.compiled:
        require_same_in_python(runner, pair)
        return _same_in_every_run(runner, [_outcomes_of_compiled(runner, pair, side) for side in range(len(NAMES))])
    calls: Sequence[FurtherCalls] | str = ()
    if not mechanism.cost.slow:  # of slow ones the series of the epochs are all that there is time for
        calls = _calls(runner, pair, events, min(SECONDS, PASS_SHARE * runner.seconds), proved=False)
    if isinstance(calls, str):
        calls = ()
    series = [*shards.series, *(of_input.series for of_input in calls if of_input.series)]
    with _events_named(events):
        if shards.kept:
            refuse_dependent(mechanism.name, len(shards.totals), shards, calls)
        refuse_series(mechanism.name, events, series)
    return _same_in_every_run(runner, calls)


def _same_in_every_run(runner: Runner, calls: Sequence[FurtherCalls | Outcomes]) -> tuple[str, ...]:
    """A note where every run on D returned the same, and every run on D′."""
    runs = sum(here.runs for here in calls)
    if not calls or any(not here.always for here in calls):
        return ()
    on_d, on_neighbour = (runner.mechanism.outcome_text(here.always or ()) for here in calls)
    return (f"every one of {runs} runs returned {on_d} on D and {on_neighbour} on D′: {SAME_OR_RARE}",)


def _outcomes_of_compiled(runner: Runner, pair: Pair, side: int) -> Outcomes:
    """Those of a few runs of machine code on one input."""
    outcomes = Outcomes()
    rng = generator(runner.seed, Role.HEALTH_FURTHER_CALLS, side)
    outcomes.add(runner.mechanism.outcomes(pair.sides[side], rng, RUNS))
    return outcomes


@contextmanager
def _events_named(events: Sequence[Event]) -> Iterator[None]:
    """Add to a `DependentRuns` that events of other packages may be what remembers something from run to run."""
    try:
        yield
    except DependentRuns as error:
        names = dict.fromkeys(f"`contains` of {type(event).__name__}" for event in events if not is_ours(event))
        if not names:
            raise
        raise DependentRuns(
            f"{error}; or {' or '.join(names)} remembers earlier calls: let it look at the row alone"
        ) from error


def require_same_in_python(runner: Runner, pair: Pair) -> None:
    """Repeat runs of compiled code in Python, in a small share of the time that the check took.

    What a pass would have caught is said of the user's function. Raises `CompiledDisagrees` where an outcome differs.
    """
    compiled, plain = runner.mechanism, runner.mechanism.plain
    if plain is None:
        return
    least, most = COMPARED_SECONDS
    seconds = min(max(COMPARED_SHARE * runner.seconds, least), most)
    require_same(difference_in_many(compiled, plain, pair, generator(runner.seed, Role.CONFIRM), seconds))


def _compiled(runner: Runner, pair: Pair) -> tuple[str, ...]:
    """Notes on inputs on which compiled code always returns the same, and on constants that could not be compared.

    Raises `DependentRuns` where a module-level value that it uses is another in a new process.
    """
    function, notes = runner.mechanism.signature.given_function, []
    try:
        same = new_process.same_constants(function, _in_time(Further(), runner))
    except Exception as error:  # of this process alone; or whatever an object of the user's raises when it is read
        same = True
        notes.append(f"the numbers that it uses were not compared with those of a new process: {on_one_line(error)}")
    if not same:
        raise DependentRuns(
            f"{runner.mechanism.name} may remember its noise: a module-level number or array that it uses has "
            "another value in a new process; draw fresh noise for every run, and give what was changed as a "
            "parameter"
        )
    for side in range(len(NAMES)):
        outcomes = _outcomes_of_compiled(runner, pair, side)
        if outcomes.always is not None:
            always = runner.mechanism.outcome_text(outcomes.always)
            notes.append(f"on {NAMES[side]} every one of {RUNS} runs returned {always}: {SAME_OR_RARE}")
    return tuple(notes)


def _calls(
    runner: Runner, pair: Pair, events: Sequence[Event], seconds: float = SECONDS, *, proved: bool = True
) -> list[FurtherCalls] | str:
    """Further calls on both inputs, or why there are none.

    `proved`: they question a refutation, which is not lost to what ends a test or a task; a pass is.
    """
    try:
        return further_calls(runner, pair, events, seconds=seconds) or "they took too long"
    except INTERRUPTS:
        raise
    except BaseException as error:  # the mechanism's, which ran well until then
        if not (proved or is_failure(error) or isinstance(error, SystemExit)):
            raise
        return on_one_line(error)


def _given(call: Callable[[], T]) -> T | str:
    """What a call gives, or why it gives nothing."""
    try:
        return call()
    except Exception as error:  # `CannotLoad`, or whatever an object of the user's raises when it is looked at
        return on_one_line(error)


def _answers(question: new_process.Request | str, further: Further) -> Answers | str:
    """The same runs in new processes, or why none can be asked."""
    return question if isinstance(question, str) else _given(partial(new_process.ask, question, further))


def _compared(
    runner: Runner,
    question: new_process.Request | str,
    answers: Answers | str,
    calls: Sequence[FurtherCalls],
    shards: Shards,
) -> tuple[str, ...]:
    """Compare with new processes: remembered noise is another there."""
    if isinstance(question, str):
        unloaded = f"it cannot be loaded there ({question}); put the function at the top level of a file"
        return _not_compared(runner, unloaded, calls, shards)
    if isinstance(answers, str):
        return _not_compared(runner, answers, calls, shards)
    name, notes = runner.mechanism.name, list[str]()
    _refuse_others(runner, calls, shards, answers)
    always = [here.always for here in calls]
    processes = 1
    alike = bool(calls) and None not in always and always == [there.always for there in answers[0]]
    if alike and may_remember(runner.mechanism.signature.given_function):  # what is kept may be the same by chance
        answers = _answers_of_few_runs(runner, question, calls, shards, answers)
        processes = sum(always == [there.always for there in one] for one in answers)
        asked = 1 + Further().processes
        if processes < asked / 2:
            few = f"{processes} of {asked} new processes answered in time: give a larger max_time"
            return _not_compared(runner, few, calls, shards)
    for side, (here, there) in enumerate(zip(calls, answers[0], strict=False)):  # there are none where calls failed
        _refuse_repeats(name, side, here, shards, there)
        if here.always is None:
            continue
        same = runner.mechanism.outcome_text(here.always)
        if there.always is None:
            notes.append(f"on {NAMES[side]} {here.runs} runs all returned {same}: other outcomes are rare")
        elif here.always == there.always:
            new = "a new process" if processes < 2 else f"{processes} new processes"
            notes.append(f"on {NAMES[side]} every run returned {same}, in {new} too: {SAME}")
    return tuple(notes)


def _answers_of_few_runs(
    runner: Runner, question: new_process.Request, calls: Sequence[FurtherCalls], shards: Shards, answers: Answers
) -> Answers:
    """Answers of as many new processes as are usual, each of as many runs as tell kept outcomes apart.

    Of a slow mechanism every run counts: those are asked that answer before the result is due. Raises `DependentRuns`.
    """
    usual, least = Further(), min(here.runs for here in calls)
    enough = next((n for n in range(1, usual.runs) if _differ(least, n)), usual.runs)
    if sum(there.runs >= enough for one in answers for there in one) >= 2 * (1 + usual.processes):
        return answers
    slow = replace(usual, runs=enough, runs_seconds=SECONDS, seconds=math.inf, limit=math.inf, alone=True)
    more = _answers(question, _in_time(slow, runner))
    if isinstance(more, str):
        return answers
    _refuse_others(runner, calls, shards, [answers[0], *more])
    return [answers[0], *max(more, answers[1:], key=len)]


def _refuse_others(runner: Runner, calls: Sequence[FurtherCalls], shards: Shards, answers: Answers) -> None:
    """Raise `DependentRuns` if outcomes are others in new processes: in the first one, in each further, in all of them.

    Each of the three is tested at a third of the level, so that further ones take little from the first.
    """
    further = answers[1:]
    for side in range(len(NAMES)):
        alone = [one[side] for one in further]
        hits = tuple(map(sum, zip(*(there.hits for there in alone), strict=True)))
        together = Answer(runs=sum(there.runs for there in alone), hits=hits, always=None)
        for there, tests in ((answers[0][side], 1), *((one, len(alone)) for one in alone), (together, 1)):
            for own, runs, others in _other_shares(side, shards, there.runs, there.hits, LEVEL / (12 * tests)):
                seen = f"the event happened in {own} of {runs} runs, and in {others} of {there.runs} in a new process"
                raise _remembers(runner.mechanism.name, f"on {NAMES[side]} {seen}")
    for one in answers:
        for side, (here, there) in enumerate(zip(calls, one, strict=False)):  # there are none where calls failed
            if here.always is None or there.always is None or here.always == there.always:
                continue
            if _differ(here.runs, there.runs):
                returned, other = (runner.mechanism.outcome_text(always) for always in (here.always, there.always))
                text = f"on {NAMES[side]} it returned {returned} on every run, and {other} in a new process"
                raise _remembers(runner.mechanism.name, text)


def _remembers(name: str, text: str) -> DependentRuns:
    return DependentRuns(f"{name} remembers its noise or a setting: {text}; {ADVICE}")


def _not_compared(runner: Runner, why: str, calls: Sequence[FurtherCalls], shards: Shards) -> tuple[str, ...]:
    """Notes if no new process could be asked.

    Raises `DependentRuns` if no outcome ever varied on either input, and the noise may have been drawn once.
    """
    never = {
        NAMES[side]: runner.mechanism.outcome_text(here.always)
        for side, here in enumerate(calls)
        if here.always is not None and _always_or_never(side, shards)
    }
    signature = runner.mechanism.signature
    if len(never) == len(NAMES) and may_remember(signature.given_function):
        raise DependentRuns(
            f"{runner.mechanism.name} returned {never['D']} in every run on D and {never['D′']} on D′: whether it adds "
            f"no noise, draws the same noise in every run or remembers it is told apart by new processes alone: {why}"
        )
    return (
        f"not compared with a new process, where noise that is remembered would be another: {why}",
        *(f"on {side} every run returned {always}: {SAME_OR_RARE}" for side, always in never.items()),
    )


def _always_or_never(side: int, shards: Shards) -> bool:
    """Whether each event happened on an input in all of the confirm runs, or in none."""
    hits = [((totals.hits, totals.neighbour_hits)[side], totals.runs) for totals in shards.totals]
    return all(count in (0, runs) for count, runs in hits)


def _differ(here: int, there: int) -> bool:
    """Whether independent runs would hardly all return one outcome here, and all another there.

    The probability is at most that of p^here·(1 − p)^there over p, and there are as many tests as processes.
    """
    both = here + there
    chance = (here / both) ** here * (there / both) ** there
    return float(chance) < LEVEL / (4 * (1 + Further().processes))


def _refuse_other_calls(name: str, shards: Shards, calls: Sequence[FurtherCalls]) -> None:
    """Raise `DependentRuns` if the share of runs in an event is another where one input alone is run, in this process.

    Then a run depends on which inputs ran before it.
    """
    for side, here in enumerate(calls):
        further = [sum(int(flags.sum()) for flags in of_event) for of_event in here.hits]
        for hits, runs, others in _other_shares(side, shards, here.runs, further, LEVEL / 12):
            raise DependentRuns(
                f"the runs of {name} are not independent: on {NAMES[side]} the event happened in {hits} of {runs} runs "
                f"between runs on both inputs, and in {others} of {here.runs} runs on {NAMES[side]} alone: {ADVICE}"
            )


def _other_shares(
    side: int, shards: Shards, runs: int, hits: Sequence[int], level: float
) -> Iterator[tuple[int, int, int]]:
    """Hits, runs and other hits of events whose share of other `runs` on an input is not that of the check's runs."""
    for counts, others in zip(shards.compared, hits, strict=False):  # there are none where the time is an outcome
        own = (counts.hits, counts.neighbour_hits)[side]
        if fisher_p_value(own, counts.runs, others, runs) < level / len(shards.compared):
            yield own, counts.runs, others


def _refuse_repeats(name: str, side: int, here: FurtherCalls, shards: Shards, there: Answer) -> None:
    """Raise `DependentRuns` if outcomes that repeat here are rarer in a new process, as with a pool of noise."""
    if here.series is None:
        return
    outcomes = here.series.outcomes
    half = len(outcomes) // 2
    key = input_key(here.series.data)
    before = [*outcomes[:half], *(o for one in shards.series if input_key(one.data) == key for o in one.outcomes)]
    again = {outcome for outcome, times in Counter(before).items() if times > 1}
    hits, others = (sum(o in again for o in later) for later in (outcomes[half:], there.outcomes))
    runs = len(outcomes) - half
    if fisher_p_value(hits, runs, others, len(there.outcomes)) < LEVEL / 4:
        other = f"{others} of {len(there.outcomes)} in a new process"
        raise _remembers(
            name, f"on {NAMES[side]} {hits} of {runs} runs returned an outcome that had come twice before, and {other}"
        )
