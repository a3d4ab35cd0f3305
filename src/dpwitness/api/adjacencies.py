"""A claim that leaves open which datasets are adjacent: a check of its own for each adjacency, at its share of α."""

import time
from collections.abc import Callable
from dataclasses import replace

from dpwitness.api.requirements import require_budget
from dpwitness.clock import Deadline
from dpwitness.effort import CHECK_RUNS, Effort
from dpwitness.errors import DependentRuns, DPWitnessError, InvalidNeighbours
from dpwitness.neighbours import Pair, Relation, adjacent, alternatives
from dpwitness.problem import Problem
from dpwitness.results.verdict import Verdict, Violation
from dpwitness.runs import Runner

__all__ = ["adjacency_note", "check_each_adjacency"]

Check = Callable[[Problem, Runner, Effort], Verdict]


def check_each_adjacency(problem: Problem, runner: Runner, effort: Effort, check: Check) -> Verdict:
    """The verdict of `check`; where the relation leaves the adjacency open, that which matters most of one for each.

    Each is checked at an even share of α, so that all together raise a false alarm with probability α at most, and in
    an even share of the time that is left. The violation with the largest e-value comes back, else the pass that would
    have detected least; the other verdicts are its `others`. What was found is not lost to an error or an interruption
    that comes after it, but to `DependentRuns`: of the same mechanism, whose counts are no evidence then.
    """
    relations, left_out = _possible(problem)
    if not left_out and len(relations) < 2:
        return check(problem, runner, effort)
    notes = tuple(f"not checked: {str(left)[:200]}, of which the attack proposes no pair" for left in left_out)
    effort = replace(effort, alpha=effort.alpha / len(relations))
    require_budget(problem.claim, effort)
    found: list[Verdict] = []
    for k, relation in enumerate(relations):
        share = _with_share(runner, len(relations) - k, first=k == 0)
        try:
            found.append(check(replace(problem, relation=relation), share, effort))
        except KeyboardInterrupt:
            if not found:
                raise
            found[-1] = replace(found[-1], ended="interrupted")
        except (Exception, SystemExit) as error:  # of any kind: what was proved is not lost to it
            if isinstance(error, DependentRuns) or not any(isinstance(verdict, Violation) for verdict in found):
                raise
            text = str(error) if isinstance(error, DPWitnessError) else f"{type(error).__name__}: {error}"
            found[-1] = _noted(found[-1], f"under {relation!s:.200} nothing was found out: {text}")
            continue
        if found[-1].ended in ("interrupted", "cluster lost"):
            left = [str(other)[:200] for other in relations[len(found) :]]
            found[-1] = _noted(found[-1], f"not checked: {'; '.join(left)}") if left else found[-1]
            break
    return _noted(_joined(found), *notes)


def adjacency_note(problem: Problem, pair: Pair) -> tuple[str, ...]:
    """Of which adjacency a pair is, where the relation leaves that open: what it shows says nothing of the others."""
    each = alternatives(problem.relation)
    if len(each) < 2:
        return ()
    own = [str(relation)[:200] for relation in each if adjacent(relation, pair, problem.data)]
    return (f"these inputs are neighbours under {' and '.join(own)}: only of that anything is said",) if own else ()


def _possible(problem: Problem) -> tuple[list[Relation], list[Relation]]:
    """The relations, one for each adjacency, that have any pair: a single record cannot be removed.

    Apart from them those of which the user's attack proposes none, as long as it does of another.
    """
    all_of_them = alternatives(problem.relation)
    each = [relation for relation in all_of_them if next(iter(relation.candidates(problem.data)), None) is not None]
    kept: list[Relation] = []
    left: list[Relation] = []
    for relation in each:
        (kept if len(each) < 2 or _attacked(problem, relation) else left).append(relation)
    return (kept, left) if kept else (each, [])


def _attacked(problem: Problem, relation: Relation) -> bool:
    """Whether the attack that the user names, if any, proposes a pair of a relation."""
    if problem.attack is None:
        return True
    try:
        replace(problem, relation=relation).proposals(problem.attack, CHECK_RUNS)
    except InvalidNeighbours:
        return False
    return True


def _with_share(runner: Runner, shares: int, *, first: bool) -> Runner:
    """The same runner with an even share of the time that is left."""
    if runner.deadline is None:
        return runner
    now, share = time.monotonic(), runner.deadline.left / shares
    began = runner.began if first else now
    return replace(runner, began=began, deadline=Deadline(now + share), max_time=max(share, 1e-9))


def _noted(verdict: Verdict, *notes: str) -> Verdict:
    return replace(verdict, notes=(*verdict.notes, *notes))


def _joined(found: list[Verdict]) -> Verdict:
    """The verdict that matters most, with the others; as it ended where one of them was interrupted."""

    def weight(verdict: Verdict) -> tuple[bool, float]:
        if isinstance(verdict, Violation):
            return True, verdict.log_e_value
        return False, verdict.detectable_epsilon

    chosen = max(found, key=weight)
    others = tuple(verdict for verdict in found if verdict is not chosen)
    ended = next((verdict.ended for verdict in found if verdict.ended in ("interrupted", "cluster lost")), chosen.ended)
    return replace(chosen, others=others, ended=ended)
