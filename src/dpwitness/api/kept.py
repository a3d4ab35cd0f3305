"""A session: fresh runs of the present version for the kept evidence of earlier sessions, then a check.

Half of α is for the kept evidence, half for the check. If all versions keep the claim, the kept evidence refutes it in
any session of the history with probability at most α/2 (for the largest α of the sessions), and the check of each
session refutes it with probability at most α/2.

The seed of the runs for kept evidence follows from the check's seed and the number of sessions: no session repeats the
draws of another, and a session with the same seed and file repeats its result. After a pass, the next session
counts the kept event or the check's event: the event whose counts promise the faster growth of evidence.
"""

import functools
import hashlib
import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpwitness.api.loop import EvidenceCourse, confirm_events
from dpwitness.api.verdict import CandidateEvidence, until_settled, verdict_of, with_notes
from dpwitness.candidate import Candidate, Tally
from dpwitness.errors import InvalidWitness
from dpwitness.evidence import Counts, bet_on
from dpwitness.files import read_text, write_json
from dpwitness.health.refutation import require_new_draws
from dpwitness.mechanisms.compiled.reach import digest
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.resolve import Requirements, apply_requirements
from dpwitness.neighbours import adjacent, alternatives
from dpwitness.problem import Effort, Problem
from dpwitness.results.kept import KeptEvidence, neighbours_digest
from dpwitness.results.verdict import ABORT_REASONS, NotRefuted, Verdict, Violation
from dpwitness.results.witness import Witness
from dpwitness.runs import Runner, seed_after
from dpwitness.search.objectives import GrowthAt, value_of
from dpwitness.values import shown


class _History:
    """The file of kept evidence; evidence that another session wrote during this session is not overwritten."""

    def __init__(self, path: Path) -> None:
        self.path, self._known = path, _text_of(path)

    def write(self, evidence: KeptEvidence) -> tuple[str, ...]:
        """Write the evidence; return a note instead if the file has changed since this session read or wrote it."""
        if _text_of(self.path) != self._known:
            return (
                f"another session wrote {self.path.name} during this one: its evidence stays there, and the evidence "
                "of this session is not kept; run the sessions of a file one after the other",
            )
        write_json(self.path, evidence.to_json())
        self._known = _text_of(self.path)
        return ()


def _text_of(path: Path) -> str | None:
    return read_text(path) if path.exists() else None


def check_after_kept(
    problem: Problem,
    runner: Runner,
    effort: Effort,
    path: Path,
    check: Callable[[Problem, Runner, Effort], Verdict],
) -> tuple[Verdict, tuple[str, ...]]:
    """The violation by the kept evidence, else the verdict of `check` at half of α; and notes for people.

    The file is written after the runs for kept evidence, so that nothing later decides whether they count, and after a
    pass. The evidence begins anew with another claim, relation or data; evidence that refutes its versions also begins
    anew with a further version.
    """
    effort, version = replace(effort, alpha=effort.alpha / 2), _version_of(problem.mechanism)
    neighbours, threshold = neighbours_digest(problem.relation, problem.data), math.log(1 / effort.alpha)
    notes: tuple[str, ...] = ()
    history = _History(path)
    _, kept = KeptEvidence.load(path)  # again: another session may have written it since the check began
    if kept is not None and (
        (kept.witness.claim, kept.neighbours) != (problem.claim, neighbours)
        or not adjacent(problem.relation, kept.witness.pair, problem.data)  # some relations have no JSON to compare
    ):
        notes = ("the kept evidence is about another claim, relation or data: it begins anew",)
        kept = None
    elif kept is not None and kept.log_wealth >= threshold and version not in kept.versions:
        notes = (f"the kept evidence refutes {', '.join(kept.versions)}: it begins anew with version {version}",)
        kept = kept.anew()
    if kept is not None:
        found, kept, said = _session(problem, runner.searching(), replace(effort, bits=False), history, kept, version)
        notes += said
        if found is not None:
            return with_notes(found, *notes), notes
    verdict = check(problem, runner, effort)
    if isinstance(verdict, NotRefuted) and verdict.ended not in ABORT_REASONS:
        try:
            kept = _continued(problem, effort, kept, neighbours, verdict.witness)
            notes = (*dict.fromkeys((*notes, *history.write(kept))),)  # the session may have said it
        except InvalidWitness as error:
            notes = (*notes, f"the event of this check is not kept: {error}")
    if kept is not None and kept.versions:
        reached = f"log e-value {kept.log_wealth:.1f} of {threshold:.1f} needed"
        notes = (*notes, f"kept evidence: {reached}, from {'; '.join(kept.versions.values())}")
    return with_notes(verdict, *notes), notes


def _session(
    problem: Problem, runner: Runner, effort: Effort, history: _History, kept: KeptEvidence, version: str
) -> tuple[Verdict | None, KeptEvidence, tuple[str, ...]]:
    """Count the kept event in fresh runs, and write the file; return a verdict or None, all evidence so far, and notes.

    The verdict is a violation, by all sessions together or by this session's counts alone, or the pass of a session
    that was interrupted; None lets the check follow.
    """
    mechanism, claim, witness, course = problem.mechanism, problem.claim, kept.witness, EvidenceCourse()
    # If the claim leaves the adjacency open, the violation is of the claim with the adjacency of the pair.
    relations = (one for one in alternatives(problem.relation) if adjacent(one, witness.pair, problem.data))
    problem = replace(problem, relation=next(relations, problem.relation))
    runner = replace(runner, seed=seed_after(runner.seed, 0x6B65, len(kept.sessions)))
    candidate = Candidate(pair=witness.pair, event=witness.event, estimate=witness.estimate)
    # Once the wealth has reached 1/α, the history is refuted, and no further bet is made.
    over = kept.log_wealth >= math.log(1 / effort.level)
    wealth = (lambda _: kept.wealth()) if over else kept.wealth
    earlier = 0, wealth(Counts()).log_e_value(claim)
    look = until_settled(problem, candidate.estimate, effort, course, earlier, wealth=wealth)
    needed = Requirements(columns=witness.layout, by_position=witness.by_position, texts=witness.texts)
    apply_requirements(mechanism, needed)
    try:
        done = confirm_events(
            runner, candidate.pair, (candidate.event,), effort.runs, coupled=candidate.coupled, look=look
        )
        (counts,) = done.totals
        bet, own = wealth(counts), bet_on(counts, claim, candidate.estimate)
        after, verdict = kept if over else kept.after(version, runner.seed, counts), None
        refuted, alone = (one.log_e_value(claim) >= math.log(1 / effort.level) for one in (bet, own))
        if refuted or done.ended in ABORT_REASONS:
            evidence = CandidateEvidence(
                candidate=candidate,
                confirmation=done,
                bet=own if alone == refuted else bet,
                course=course,
                runs_made=counts.runs,
            )
            verdict = verdict_of(problem, effort, evidence, ())
            if isinstance(verdict, Violation) and not alone:
                versions = tuple(after.versions.values())
                notes = (
                    f"the evidence is of all sessions of {'; '.join(versions)}; "
                    "the counts are those of the last session, and a replay may not refute",
                    *require_new_draws(runner, candidate.pair, (candidate.event,)),
                )
                verdict = with_notes(replace(verdict, history=versions), *notes)
        else:
            if done.ended == "failed":  # the runs before the failed one count, though `examine` raises its error
                history.write(after)
            done.examine(against=False)
    finally:  # the check uses the same mechanism with a layout of its own
        mechanism.begin(None, by_position=False)
    return verdict, after, history.write(after)


def _continued(
    problem: Problem, effort: Effort, kept: KeptEvidence | None, neighbours: str, witness: Witness
) -> KeptEvidence:
    """The evidence for the next session, on the new event if its counts, less 3 standard errors, promise faster growth.

    Raises `InvalidWitness` if no file can hold the new event.
    """
    objective = GrowthAt(claim=problem.claim, planned=effort.runs, log_threshold=math.log(1 / effort.level))

    def growth(counts: Counts, standard_errors: float) -> float:
        tally = Tally(n10=counts.n10, n11=counts.n11, n01=counts.n01, n00=counts.n00)
        return value_of(tally.estimate, objective, tally.runs, standard_errors)

    if kept is not None:
        counts = sum((session.counts for session in kept.sessions[kept.began :]), kept.witness.counts)
        # Without the 3 standard errors, luck in one of many sessions would replace a better event, and each change
        # begins a new bet.
        if growth(counts, 0.0) >= growth(witness.counts, 3.0):
            return kept
    witness = Witness.from_json(witness.to_json())
    if kept is None:
        return KeptEvidence(neighbours=neighbours, witness=witness)
    return replace(kept, witness=witness, settled=kept.log_wealth, began=len(kept.sessions))


def _version_of(mechanism: Mechanism) -> str:
    """A digest of the mechanism's name, its parameters and the Python code that it calls, as far as that is known.

    The digest names versions in messages and decides whether refuted evidence begins anew; no e-value depends on it.
    """
    signature = mechanism.signature
    function: Any = getattr(signature.given_function, "py_func", signature.given_function)
    function = function.func if isinstance(function, functools.partial) else getattr(function, "__func__", function)
    code = next(filter(inspect.isfunction, (function, inspect.getattr_static(type(function), "__call__", None))), None)
    known = type(function).__qualname__ if code is None else digest(code)
    given = {name: shown(value) for name, value in signature.given.items()}
    return hashlib.blake2b(
        repr((signature.name, known, given)).encode(errors="backslashreplace"), digest_size=4
    ).hexdigest()
