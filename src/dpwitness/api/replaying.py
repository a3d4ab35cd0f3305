"""A witness again: its event counted on fresh runs, judged by a claim, a relation and a mechanism."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass, replace
from typing import Any, cast

from dpwitness.api.checking import confirm_candidate
from dpwitness.api.loop import prepared
from dpwitness.api.witnessed import about, relation_of, rows_of, statement_of
from dpwitness.candidate import Candidate
from dpwitness.claims import ApproxDP, Claim, is_claim
from dpwitness.effort import MAX_TIME, Effort
from dpwitness.errors import InvalidParameter
from dpwitness.evidence import runs_needed
from dpwitness.mechanisms.accountants import Accountant, as_claim
from dpwitness.mechanisms.catalog import load_registered
from dpwitness.mechanisms.made import given_or_made
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.resolve import Outcome
from dpwitness.mechanisms.signature import takes
from dpwitness.neighbours import Relation, require_adjacent
from dpwitness.problem import Problem, plain_function
from dpwitness.results.verdict import Verdict
from dpwitness.results.witness import Witness
from dpwitness.runs import Progress, Runner
from dpwitness.targets import target_of


def replay(
    witness: Witness,
    mechanism: Callable[..., Any] | Mechanism | str | None = None,
    *,
    make: Callable[[], Any] | None = None,
    neighbours: Relation | None = None,
    data: Any = None,
    claim: Claim | Accountant | float | None = None,
    delta: float | None = None,
    alpha: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    outcome: Outcome | None = None,
    errors: str = "raise",
    max_runs: int | None = None,
    max_time: float = MAX_TIME,
    seed: int | None = None,
    workers: int | None = None,
    cluster: Any = None,
    progress: Progress | None = None,
) -> Verdict:
    """Count a witness's event on fresh runs of its pair: no search, a new seed.

    Parameters
    ----------
    witness
        Of a violation, or read from a file by `Witness.load`.
    mechanism
        A callable, or the name of a bundled target; by default the bundled target that the witness names. A witness
        file is data from somewhere, and never decides which code runs.
    neighbours, data
        The relation of the claim, and D, that the pair must belong to; by default those of the witness.
    claim, delta, alpha
        What is tested, and the probability of a false alarm; by default those of the witness. The verdict shows them.
    parameters
        Of the mechanism, in place of the witness's of the same names.
    max_runs
        Paired runs; by default ten times those that the witness took, and at least 100,000.
    seed
        Not the witness's own, whose runs would only be repeated.
    make, outcome, errors, max_time, workers, cluster, progress
        As in `check`.

    Raises `InvalidNeighbours` for a pair that is not adjacent under the relation, `InvalidParameter` for a mechanism
    that does not take the witness's parameters; else as `check`.
    """
    alpha = witness.alpha if alpha is None else alpha
    effort = Effort(
        alpha=alpha, max_runs=1 if max_runs is None else max_runs, max_time=max_time, seed=seed, workers=workers,
        cluster=cluster, progress=progress,
    )  # fmt: skip
    stated = _replayed_claim(witness.claim, as_claim(claim), delta)
    if max_runs is None:
        limit = max(10 * witness.counts.runs, 100_000, runs_needed(stated, alpha))
        effort = replace(effort, max_runs=limit)
    relation, given = relation_of(witness, neighbours, data)
    require_adjacent(relation, witness.pair, given, what="the witness's pair")
    if seed == witness.seed:
        raise InvalidParameter(f"seed={seed} made this witness: its runs are not fresh; give another seed, or none")
    while effort.seed == witness.seed:
        effort = replace(effort, seed=secrets.randbits(32))
    if make is not None:
        mechanism = given_or_made(mechanism, make)
    reference = witness.mechanism if mechanism is None else mechanism if isinstance(mechanism, str) else None
    if reference is not None:
        mechanism = load_registered(reference)
    own = witness.parameters | dict(parameters or {})
    _check_parameters(witness, mechanism, own, parameters or {})
    if neighbours is None:
        _require_targets_own(witness, mechanism, own)
    statement = statement_of(
        witness, mechanism, claim=stated, parameters=own, reference=reference, outcome=outcome, errors=errors
    )
    candidate = Candidate(pair=witness.pair, event=witness.event, estimate=witness.estimate)

    def work(problem: Problem, runner: Runner) -> Verdict:
        return confirm_candidate(about(problem, relation, given), runner, effort, candidate)

    return prepared(statement, effort, work, rows_of(witness))


def _replayed_claim(stated: Claim, claim: Claim | float | None, delta: float | None) -> Claim:
    """The claim of a witness, with what is given in its place."""
    if is_claim(claim):
        if delta is not None and delta != getattr(claim, "delta", None):
            raise InvalidParameter(f"delta={delta!r} is not the δ of claim={claim}: give one of the two")
        return claim
    if claim is None and delta is None:
        return stated
    own = getattr(stated, "delta", None)
    if claim is None and own is None:
        raise InvalidParameter(f"delta={delta!r}: the witness's claim, {stated}, has no δ; give claim=… too")
    epsilon = cast("float", stated.parameter if claim is None else claim)  # a number: it is no claim
    return ApproxDP(epsilon, (own or 0.0) if delta is None else delta)


def _require_targets_own(witness: Witness, mechanism: Any, parameters: Mapping[str, Any]) -> None:
    """Raise `InvalidNeighbours` for a pair that the relation of a target does not call adjacent.

    A file must not say by itself which inputs a claim calls adjacent: only the user may.
    """
    target = target_of(plain_function(mechanism))
    if target is None:
        return
    relation = target.neighbours
    sensitivity = parameters.get("sensitivity")
    if isinstance(sensitivity, int | float) and hasattr(relation, "sensitivity") and is_dataclass(relation):
        relation = replace(relation, sensitivity=float(sensitivity))
    require_adjacent(
        relation, witness.pair, what="the witness's pair, unless you give its relation (neighbours=, --pair),"
    )


def _check_parameters(witness: Witness, mechanism: Any, own: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise `InvalidParameter` where a mechanism cannot be the one that a witness is about."""
    if isinstance(mechanism, Mechanism):
        return  # made ready elsewhere, with its parameters
    for name in witness.unreadable:
        if name not in given:
            raise InvalidParameter(
                f"the parameter {name}={own[name]!r:.80} of {witness.mechanism} is nothing that a file can hold: give "
                f"parameters={{{name!r}: …}}"
            )
    for name in own:
        if not takes(mechanism, name):
            label = getattr(mechanism, "__name__", type(mechanism).__name__)
            raise InvalidParameter(
                f"{label} has no parameter {name!r}, which the witness gives to {witness.mechanism}: replay it against "
                "a mechanism with the same parameters"
            )
