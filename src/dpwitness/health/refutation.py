"""What is asked before a claim is called refuted: whether the runs are independent, and the noise drawn anew.

Compiled code keeps nothing from run to run but the module-level values that were compiled into it: only these are
compared.
"""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeAlias

from dpwitness.errors import DependentRuns
from dpwitness.events import Event
from dpwitness.evidence import Counts
from dpwitness.health import new_process
from dpwitness.health.common import SECONDS, Outcomes, shown
from dpwitness.health.dependence import FurtherCalls, Shards, further_calls, refuse_dependent, refuse_series
from dpwitness.health.independence import LEVEL, fisher_p_value
from dpwitness.neighbours import Pair, input_key
from dpwitness.runs import Role, Runner, generator

#: Runs of compiled code that are looked at for outcomes that never vary.
RUNS: Final = 256
#: The share of a check's time that further runs of a pass may take.
PASS_SHARE: Final = 0.02

#: What a new process says of D and of D′.
Told: TypeAlias = tuple[new_process.Answer, new_process.Answer]

ADVICE: Final = "draw fresh noise for every run, and let it read no variable that is set after its file is imported"
NAMES: Final = ("D", "D′")


def check_refutation(runner: Runner, pair: Pair, events: Sequence[Event], shards: Shards) -> tuple[str, ...]:
    """Ask whether what events showed on a pair in the confirm runs can be believed; notes for people.

    Parameters
    ----------
    runner
        Of the mechanism that was checked.
    pair, events
        What the confirm runs were of.
    shards
        What they showed, shard by shard.

    Raises
    ------
    DependentRuns
        Where the runs of a call depend on each other, or where noise is remembered; of a mechanism of independent runs
        with probability `LEVEL` at most for the one and for the other, of a number of runs that was fixed before: the
        tests are exact for one look, and a stopping time may come of many.
    """
    if runner.mechanism.cost.compiled:
        return _compiled(runner, pair)
    with ThreadPoolExecutor(1) as beside:  # a slow mechanism takes seconds here and there
        told = beside.submit(_told, runner, pair, events)
        seen = further_calls(runner, pair, events)
    if seen is None:
        return ("its runs were not compared with each other: they took too long",)
    name = runner.mechanism.name
    refuse_dependent(name, len(events), shards, seen)
    refuse_series(name, events, [*shards.series, *(calls.series for calls in seen if calls.series is not None)])
    return _compared(runner, told.result(), seen, shards)


def check_pass(runner: Runner, pair: Pair, events: Sequence[Event], shards: Shards) -> None:
    """Ask whether the runs of a pass were independent: by those that were made, and by further ones in little time.

    Of runs that depend on each other it is not known what they would have caught either. Raises `DependentRuns`.
    """
    mechanism = runner.mechanism
    if mechanism.cost.compiled:
        return
    seen: Sequence[FurtherCalls] = ()
    if not mechanism.cost.slow:  # of slow ones the series of the epochs are all that there is time for
        seen = further_calls(runner, pair, events, seconds=min(SECONDS, PASS_SHARE * runner.seconds)) or ()
    if shards.kept:
        refuse_dependent(mechanism.name, len(shards.totals), shards, seen)
    refuse_series(mechanism.name, events, [*shards.series, *(calls.series for calls in seen if calls.series)])


def _compiled(runner: Runner, pair: Pair) -> tuple[str, ...]:
    """Notes on inputs on which compiled code always returns the same.

    Raises `DependentRuns` where a module-level value that it uses is another in a new process.
    """
    function = runner.mechanism.signature.function
    with suppress(new_process.CannotLoad):  # a function of this process alone: its constants are what they are
        if not new_process.same_constants(function):
            raise DependentRuns(
                f"{runner.mechanism.name} may remember its noise: a module-level number or array that it uses has "
                "another value in a new process; draw fresh noise for every run, and give what was changed as a "
                "parameter"
            )
    notes = []
    for side, data in enumerate(pair.sides):
        outcomes = Outcomes()
        outcomes.add(runner.mechanism.outcomes(data, generator(runner.seed, Role.HEALTH_FURTHER_CALLS, side), RUNS))
        if outcomes.always is not None:
            notes.append(
                f"on {NAMES[side]} every one of {RUNS} runs returned {shown(outcomes.always)}: it may add no noise"
            )
    return tuple(notes)


def _told(runner: Runner, pair: Pair, events: Sequence[Event]) -> Told | new_process.CannotLoad:
    """What a new process says of the same, or why it cannot be asked."""
    try:
        return new_process.ask(new_process.request(runner.mechanism, pair, events, runner.seed))
    except new_process.CannotLoad as error:
        return error


def _compared(
    runner: Runner, told: Told | new_process.CannotLoad, seen: Sequence[FurtherCalls], shards: Shards
) -> tuple[str, ...]:
    """Compare with a new process: remembered noise is another there."""
    name = runner.mechanism.name
    if isinstance(told, new_process.CannotLoad):
        never_varies = [calls.always for calls in seen if calls.always is not None]
        if not never_varies:
            return (f"not compared with a new process, where noise that is remembered would be another: {told}",)
        raise DependentRuns(
            f"{name} returned {shown(never_varies[0])} on every run on one input: whether it adds no noise or "
            f"remembers it can be told only in a new process, and there it cannot be loaded ({told}): put the "
            "function at the top level of a file"
        ) from told
    notes = []
    for side, (here, there) in enumerate(zip(seen, told, strict=True)):
        _refuse_other_shares(name, side, shards, there)
        _refuse_repeats(name, side, here, shards, there)
        if here.always is None:
            continue
        if there.always is None:
            notes.append(
                f"on {NAMES[side]} {here.runs} runs all returned {shown(here.always)}: other outcomes are rare"
            )
        elif here.always == there.always:
            notes.append(
                f"on {NAMES[side]} every run returned {shown(here.always)}, in a new process too: it adds no noise, or "
                "seeds its generator itself"
            )
        elif _same_by_chance(here.runs, there.runs) < LEVEL / 4:
            raise DependentRuns(
                f"{name} remembers its noise or a setting: on {NAMES[side]} it returned {shown(here.always)} "
                f"on every run, and {shown(there.always)} in a new process; {ADVICE}"
            )
    return tuple(notes)


def _same_by_chance(here: int, there: int) -> float:
    """The largest probability that independent runs all return one outcome here, and all another there.

    That of p^here·(1 − p)^there over p.
    """
    both = here + there
    return float((here / both) ** here * (there / both) ** there)


def _refuse_other_shares(name: str, side: int, shards: Shards, there: new_process.Answer) -> None:
    """Raise `DependentRuns` where an event happened in another share of a new process's runs than of confirm runs."""
    for totals, others in zip(shards.totals, there.hits, strict=True):
        hits, runs = _hits(totals, side), totals.runs
        if fisher_p_value(hits, runs, others, there.runs) < LEVEL / (4 * len(shards.totals)):
            raise DependentRuns(
                f"{name} remembers its noise or a setting: on {NAMES[side]} the event happened in {hits} of {runs} "
                f"runs, and in {others} of {there.runs} in a new process; {ADVICE}"
            )


def _refuse_repeats(name: str, side: int, here: FurtherCalls, shards: Shards, there: new_process.Answer) -> None:
    """Raise `DependentRuns` where outcomes that came again here are rarer in a new process, as of a pool of noise."""
    if here.series is None:
        return
    outcomes = here.series.outcomes
    half = len(outcomes) // 2
    key = input_key(here.series.data)
    before = [*outcomes[:half], *(o for one in shards.series if input_key(one.data) == key for o in one.outcomes)]
    again = {outcome for outcome, times in Counter(before).items() if times > 1}
    hits, others = (sum(o in again for o in found) for found in (outcomes[half:], there.outcomes))
    runs = len(outcomes) - half
    if fisher_p_value(hits, runs, others, len(there.outcomes)) < LEVEL / 4:
        raise DependentRuns(
            f"{name} remembers its noise or a setting: on {NAMES[side]} {hits} of {runs} runs returned an outcome that "
            f"had come twice before, and {others} of {len(there.outcomes)} in a new process; {ADVICE}"
        )


def _hits(counts: Counts, side: int) -> int:
    return counts.neighbour_hits if side else counts.hits
