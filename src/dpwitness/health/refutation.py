"""Checks before a claim is called refuted: that the runs are independent of each other, and the noise is drawn anew.

Only a finding takes a violation back (`DependentRuns`): the runs depend on each other, or noise or a setting differs in
a new process. A check that cannot be made only adds a note: the mechanism now raises, or cannot be loaded again, or an
object of the user's cannot be sent. One case is refused even if no new process can be asked: every run on both inputs
returned the same, and the noise may have been drawn once. A mechanism that remembers its noise shows nothing else; and
since noise of few values is often the same when it is drawn again, such a mechanism is run in several new processes.
Compiled code keeps nothing from run to run except the module-level values that were compiled into it, so only these are
compared.
"""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final, TypeAlias

from dpwitness.errors import DependentRuns, DPWitnessError
from dpwitness.events import Event
from dpwitness.events.event import outcome_text
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
from dpwitness.health.findings import SECONDS, Outcomes
from dpwitness.health.new_process import CannotLoad, may_remember
from dpwitness.neighbours import Pair, input_key
from dpwitness.runs import Role, Runner, generator

#: Runs of compiled code that are looked at for outcomes that never vary.
RUNS: Final = 256
#: Further new processes that are asked of what always returned the same and may remember: a fair coin that is kept is
#: the same in all of them with probability 2^−20.
PROCESSES: Final = 20
#: Runs on each input in each of them at most: of a slow mechanism every run counts.
FEW_RUNS: Final = 32
#: Seconds that they have at least.
LEAST_SECONDS: Final = 10.0
#: The share of a check's time that further runs of a pass may take.
PASS_SHARE: Final = 0.02

#: What a new process answers about D and about D′.
Answers: TypeAlias = tuple[new_process.Answer, new_process.Answer]

ADVICE: Final = "draw fresh noise for every run, and let it read no variable that is set after its file is imported"
NAMES: Final = ("D", "D′")


def check_refutation(runner: Runner, pair: Pair, events: Sequence[Event], shards: Shards) -> tuple[str, ...]:
    """Check what events showed on a pair in the confirm runs, shard by shard; returns notes for people.

    Raises `DependentRuns` if the runs of a call depend on each other, or if noise is remembered. Each of the two tests
    refuses a mechanism of independent runs with probability at most `LEVEL`. They are exact for one look after a fixed
    number of runs; at a stopping time, which follows many looks, they are not.
    """
    if runner.mechanism.cost.compiled:
        return _compiled(runner, pair)
    shards = _of_what_was_returned(runner, shards)
    question = _question(runner, pair, events)
    with ThreadPoolExecutor(1) as beside:  # a slow mechanism takes seconds here and there
        answers = beside.submit(_answers, question)
        try:
            calls = _calls(runner, pair, events)
        except BaseException:  # Ctrl-C: the other result is no longer needed
            new_process.end()
            raise
    notes: tuple[str, ...] = ()
    name = runner.mechanism.name
    if isinstance(calls, str):
        notes, calls = (f"its runs were not compared with each other: {calls}",), []
    else:
        refuse_dependent(name, len(events), shards, calls)
    refuse_series(name, events, [*shards.series, *(of_input.series for of_input in calls if of_input.series)])
    return (*notes, *_compared(runner, question, answers.result(), calls, shards))


def check_pass(runner: Runner, pair: Pair, events: Sequence[Event], shards: Shards) -> None:
    """Check that the runs of a pass were independent: those that were made, and further ones in little time.

    If runs depend on each other, nobody knows what they would have caught. Raises `DependentRuns`.
    """
    mechanism = runner.mechanism
    if mechanism.cost.compiled:
        return
    shards = _of_what_was_returned(runner, shards)
    calls: Sequence[FurtherCalls] | str = ()
    if not mechanism.cost.slow:  # of slow ones the series of the epochs are all that there is time for
        calls = _calls(runner, pair, events, min(SECONDS, PASS_SHARE * runner.seconds))
    if isinstance(calls, str):
        calls = ()
    if shards.kept:
        refuse_dependent(mechanism.name, len(shards.totals), shards, calls)
    refuse_series(mechanism.name, events, [*shards.series, *(of_input.series for of_input in calls if of_input.series)])


def _of_what_was_returned(runner: Runner, shards: Shards) -> Shards:
    """What is compared of the runs; no counts where the time is an outcome, which moves with the machine's state."""
    return shards if runner.mechanism.time_at is None else shards.without_counts()


def _compiled(runner: Runner, pair: Pair) -> tuple[str, ...]:
    """Notes on inputs on which compiled code always returns the same, and on constants that could not be compared.

    Raises `DependentRuns` where a module-level value that it uses is another in a new process.
    """
    function, notes = runner.mechanism.signature.given_function, []
    try:
        same = new_process.same_constants(function)
    except Exception as error:  # of this process alone; or whatever an object of the user's raises when it is read
        same = True
        notes.append(f"the numbers that it uses were not compared with those of a new process: {_text(error)}")
    if not same:
        raise DependentRuns(
            f"{runner.mechanism.name} may remember its noise: a module-level number or array that it uses has "
            "another value in a new process; draw fresh noise for every run, and give what was changed as a "
            "parameter"
        )
    for side, data in enumerate(pair.sides):
        outcomes = Outcomes()
        outcomes.add(runner.mechanism.outcomes(data, generator(runner.seed, Role.HEALTH_FURTHER_CALLS, side), RUNS))
        if outcomes.always is not None:
            always = outcome_text(outcomes.always, runner.mechanism.label)
            notes.append(f"on {NAMES[side]} every one of {RUNS} runs returned {always}: it may add no noise")
    return tuple(notes)


def _calls(runner: Runner, pair: Pair, events: Sequence[Event], seconds: float = SECONDS) -> list[FurtherCalls] | str:
    """Further calls on both inputs, or why there are none."""
    try:
        return further_calls(runner, pair, events, seconds=seconds) or "they took too long"
    except (Exception, SystemExit) as error:  # the mechanism's, which ran well until then
        return _text(error)


def _question(runner: Runner, pair: Pair, events: Sequence[Event]) -> new_process.Request | str:
    """What to ask a new process, or why it cannot be asked."""
    try:
        return new_process.request(runner.mechanism, pair, events, runner.seed)
    except Exception as error:  # `CannotLoad`, or whatever an object of the user's raises when it is looked at
        return _text(error)


def _answers(question: new_process.Request | str) -> Answers | str:
    """The same runs in a new process, or why it cannot be asked."""
    try:
        return question if isinstance(question, str) else new_process.ask(question)
    except Exception as error:  # as above
        return _text(error)


def _text(error: BaseException) -> str:
    """An error on one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, DPWitnessError | CannotLoad) else f"{type(error).__name__}: {text}"


def _compared(
    runner: Runner,
    question: new_process.Request | str,
    answers: Answers | str,
    calls: Sequence[FurtherCalls],
    shards: Shards,
) -> tuple[str, ...]:
    """Compare with new processes: remembered noise is another there."""
    if isinstance(question, str):
        return _not_compared(runner, question, calls, shards)
    if isinstance(answers, str):
        return _not_compared(runner, answers, calls, shards)
    name, label, notes = runner.mechanism.name, runner.mechanism.label, list[str]()
    always = [here.always for here in calls]
    several = bool(calls) and None not in always and always == [there.always for there in answers]
    several = several and may_remember(runner.mechanism.signature.given_function)
    for side, there in enumerate(answers):
        _refuse_other_shares(name, side, shards, there)
    there_too = "a new process"
    if several:  # what is remembered may have come out the same by chance
        alike = _alike_in_more(runner, question, calls, shards)
        if not alike:
            return _not_compared(runner, "of several, one alone answered", calls, shards)
        there_too = f"{1 + alike} new processes"
    for side, (here, there) in enumerate(zip(calls, answers, strict=False)):  # there are none where calls failed
        _refuse_repeats(name, side, here, shards, there)
        if here.always is None:
            continue
        if there.always is None:
            same = outcome_text(here.always, label)
            notes.append(f"on {NAMES[side]} {here.runs} runs all returned {same}: other outcomes are rare")
        elif here.always == there.always:
            notes.append(
                f"on {NAMES[side]} every run returned {outcome_text(here.always, label)}, in {there_too} too: "
                "it adds no noise, or seeds its generator itself"
            )
        else:
            _refuse_another(runner, side, here, there)
    return tuple(notes)


def _alike_in_more(runner: Runner, question: new_process.Request, calls: Sequence[FurtherCalls], shards: Shards) -> int:
    """In how many further new processes both inputs gave what they always gave here. Raises `DependentRuns`.

    Those are asked that answer in the time that is left to the check, or in `LEAST_SECONDS`.
    """
    least, alike = min(here.runs for here in calls), 0
    enough = next((n for n in range(1, FEW_RUNS) if _same_by_chance(least, n) < LEVEL / 4), FEW_RUNS)
    seconds = None if runner.deadline is None else max(runner.deadline.left, LEAST_SECONDS)
    with closing(new_process.ask_more(question, PROCESSES, enough, seconds)) as further:
        for answers in further:
            for side, (here, there) in enumerate(zip(calls, answers, strict=True)):
                _refuse_another(runner, side, here, there)
                _refuse_other_shares(runner.mechanism.name, side, shards, there)
            alike += all(here.always == there.always for here, there in zip(calls, answers, strict=True))
    return alike


def _refuse_another(runner: Runner, side: int, here: FurtherCalls, there: new_process.Answer) -> None:
    """Raise `DependentRuns` if all runs on an input returned one outcome here, and all of them another there."""
    if here.always is None or there.always is None or here.always == there.always:
        return
    if _same_by_chance(here.runs, there.runs) < LEVEL / 4:
        one, other = (outcome_text(always, runner.mechanism.label) for always in (here.always, there.always))
        raise _remembers(
            runner.mechanism.name,
            f"on {NAMES[side]} it returned {one} on every run, and {other} in a new process",
        )


def _remembers(name: str, text: str) -> DependentRuns:
    return DependentRuns(f"{name} remembers its noise or a setting: {text}; {ADVICE}")


def _not_compared(runner: Runner, why: str, calls: Sequence[FurtherCalls], shards: Shards) -> tuple[str, ...]:
    """Notes if no new process could be asked.

    Raises `DependentRuns` if no outcome ever varied on either input, and the noise may have been drawn once.
    """
    never = {
        NAMES[side]: outcome_text(here.always, runner.mechanism.label)
        for side, here in enumerate(calls)
        if here.always is not None and _always_or_never(side, shards)
    }
    signature = runner.mechanism.signature
    if len(never) == len(NAMES) and may_remember(signature.given_function):
        raise DependentRuns(
            f"{runner.mechanism.name} returned {never['D']} in every run on D and {never['D′']} on D′: "
            "whether it adds no noise or remembers it can be told only in a new process, and there it cannot be "
            f"loaded ({why}): put the function at the top level of a file"
        )
    return (
        f"not compared with a new process, where noise that is remembered would be another: {why}",
        *(f"on {side} every run returned {always}: it may add no noise there" for side, always in never.items()),
    )


def _always_or_never(side: int, shards: Shards) -> bool:
    """Whether each event happened on an input in all of the confirm runs, or in none."""
    hits = [((totals.hits, totals.neighbour_hits)[side], totals.runs) for totals in shards.totals]
    return all(count in (0, runs) for count, runs in hits)


def _same_by_chance(here: int, there: int) -> float:
    """The largest probability that independent runs all return one outcome here, and all another there.

    That of p^here·(1 − p)^there over p.
    """
    both = here + there
    return float((here / both) ** here * (there / both) ** there)


def _refuse_other_shares(name: str, side: int, shards: Shards, there: new_process.Answer) -> None:
    """Raise `DependentRuns` if the share of runs in an event differs between a new process and the confirm runs."""
    for totals, others in zip(shards.totals, there.hits, strict=False):  # there are none where the time is an outcome
        hits, runs = (totals.hits, totals.neighbour_hits)[side], totals.runs
        if fisher_p_value(hits, runs, others, there.runs) < LEVEL / (4 * len(shards.totals)):
            other = f"in {others} of {there.runs} in a new process"
            raise _remembers(name, f"on {NAMES[side]} the event happened in {hits} of {runs} runs, and {other}")


def _refuse_repeats(name: str, side: int, here: FurtherCalls, shards: Shards, there: new_process.Answer) -> None:
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
