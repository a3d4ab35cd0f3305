"""The fields that every result has, and the verdicts of a check: `Violation` or `NotRefuted`.

A verdict also has the course of its search: the numbers of pairs and events, the growth of the evidence, and both
output distributions. No verdict is "private": a test cannot prove privacy.
"""

import math
import shlex
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Final, Literal, Self

from dpwitness.claims import Claim
from dpwitness.codec import JsonFields, codec_of
from dpwitness.events import is_of_bits
from dpwitness.evidence.bounds import RARE_RATE, detectable_at_rate, detectable_probability
from dpwitness.evidence.counts import Counts
from dpwitness.neighbours import same_relation
from dpwitness.neighbours.difference import summary
from dpwitness.results.display import Displayed
from dpwitness.results.fields import Alpha, Count, Detectable, RunCounts, Seed, read_result
from dpwitness.results.text import (
    at_least,
    at_most,
    confidence,
    exceeded,
    label,
    named,
    notes,
    odds,
    relation_text,
    rounded,
    short_label,
    wrapped,
)
from dpwitness.results.witness import NOT_REPRODUCIBLE, Witness

#: EARLY_END_REASONS has the texts of the reasons that end confirm runs early.
EARLY_END_REASONS: Final = {
    "time": "the time was over",
    "interrupted": "interrupted",
    "cluster lost": "the cluster or executor does not answer any more",
    "failed": "a run failed",
}
#: ABORT_REASONS has the reasons after which a check makes no more runs.
ABORT_REASONS: Final = ("interrupted", "cluster lost")
#: SUFFICIENT_RUNS_REASONS has the texts of the reasons for which a pass needed no more runs.
SUFFICIENT_RUNS_REASONS: Final = {
    "detectable": "they would have caught detectable_ratio times the claim, as far as this event shows it",
    "converged": "twice as many would lower the detectable parameter by less than 1 %",
    "excluded": "they would have caught half of the excess that the witness shows",
}


#: The line of a violation that only the last bits of outcomes show.
LAST_BITS_LINE: Final = "  the event is of last bits: the evidence is about this implementation alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs(JsonFields):
    """The distributions of the event's statistic on D and on D′, from runs that are no evidence.

    Raises `ValueError` unless every bin has one number on each side, and a text or two edges.
    """

    statistic: str  # the text of the statistic, such as "first answer"
    edges: tuple[float, ...] = field(
        default=(), metadata={"json": "sparse"}
    )  # bin k has values in [edge k, edge k + 1)
    values: tuple[str, ...] = field(default=(), metadata={"json": "sparse"})  # without edges, one text for each bin
    inside: tuple[bool, ...]  # whether the event contains the values of each bin
    on_data: tuple[Count, ...]  # the number of runs on D in each bin; further runs had other values
    on_neighbour: tuple[Count, ...]  # the number of runs on D′ in each bin
    runs: Count  # the number of runs on each input

    def __post_init__(self) -> None:
        bins = len(self.inside)
        named = max(len(self.edges) - 1, 0), len(self.values)
        if not bins or {len(self.on_data), len(self.on_neighbour)} != {bins} or sorted(named) != [0, bins]:
            raise ValueError("outputs need one number, and a text or two edges, for each of their bins")
        if any(a >= b for a, b in pairwise(self.edges)):
            raise ValueError("the edges of a histogram must rise")
        if not max(sum(self.on_data), sum(self.on_neighbour), 1) <= self.runs:
            raise ValueError(f"runs={self.runs} must be at least 1, and at least the number of runs in the bins")


@dataclass(frozen=True, slots=True, kw_only=True)
class Course(JsonFields):
    """The course of a search: the numbers of pairs and events, and the growth of the evidence."""

    pairs: Count  # the number of pairs that were run to choose one pair; 0 in a replay
    events: Count  # the number of compared events; an event that was proposed again, with more runs, counts again
    #: Numbers of paired runs, each with the log e-value (nats) after these runs: a thinned list that keeps the last
    #: point. A check in epochs counts all runs, other checks the confirm runs. Empty for a bound.
    evidence: tuple[tuple[Count, float], ...] = ()
    #: The distributions of the event's statistic; None for an event of several values, or if runs are expensive.
    outputs: Outputs | None = field(default=None, metadata={"json": "sparse"})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result(Displayed, JsonFields):
    """The fields of every result; `str` gives the report that the command line prints, `repr` one line."""

    mechanism: str
    parameters: dict[str, Any]  # the parameters for people, as JSON values; `Witness.parameters` has their own values
    seed: Seed
    reproducible: bool  # whether a seed repeats the runs; False: the mechanism draws its own randomness
    seconds: float
    notes: tuple[str, ...] = ()  # facts that a reader should know before trusting the result

    @property
    def call(self) -> str:
        """The mechanism with its parameters, as in a call."""
        return named(self.mechanism, self.parameters)


def remarks(result: Result, ended: str) -> list[str]:
    """The lines of a report on an early end of the runs, and its notes."""
    early = f"  stopped early: {EARLY_END_REASONS.get(ended)}; what was counted is valid"
    return [*([early] if ended in EARLY_END_REASONS else []), *notes(result.notes)]


def spent(result: Result, runs: RunCounts) -> str:
    """The last line of a report: runs, time and seed."""
    searched = f"{runs.epochs:,} in epochs" if runs.epochs else f"{runs.search:,} search"
    return f"  runs: {searched}, {runs.confirm:,} confirm; {result.seconds:.1f} s; seed {result.seed}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WitnessedResult(Result):
    """A result that rests on one candidate and its confirm runs."""

    #: The keys of all results with a witness; subclasses add their own keys.
    json_keys: ClassVar[tuple[str, ...]] = (
        *("parameter", "lower_bound", "witness", "runs: run_counts", "ended", "course"),
        *("seed", "reproducible", "seconds", "versions", "notes"),
    )

    #: Whether the claim of the witness was tested, so that texts and figures show the rate that the claim allows.
    tested: ClassVar[bool] = True

    witness: Witness  # the witness; in `NotRefuted` the best candidate, which did not refute the claim
    epsilon_lower_bound: float  # the bound of the claim's parameter, in its unit; ε in nats
    search_runs: Count
    epoch_runs: Count = 0  # the number of paired runs that were bet on and that chose the next bet
    #: The reason for the end of the confirm runs: "refuted", "runs", "time", "interrupted", "cluster lost" or "failed";
    #: of a pass also "detectable" (`detectable_ratio` is reached), "converged" (more runs would add little) or
    #: "excluded" (a replay would have caught half of the excess that the witness shows).
    ended: str
    #: The course of the search; None in files of earlier versions.
    course: Course | None = field(default=None, metadata={"json": "sparse"})

    @property
    def counts(self) -> Counts:
        """The counts of the confirm runs."""
        return self.witness.counts

    @property
    def lower_bound(self) -> float:
        """The lower bound of the parameter of the claim's family, such as ε (nats), ρ or μ."""
        return self.epsilon_lower_bound

    @property
    def parameter(self) -> str:
        """The symbol of the bounded parameter, such as ρ."""
        return self.witness.claim.symbol

    @property
    def run_counts(self) -> RunCounts:
        """The numbers of paired runs of each stage."""
        return RunCounts(search=self.search_runs, epochs=self.epoch_runs, confirm=self.counts.runs)

    @property
    def versions(self) -> dict[str, str]:
        """The versions of Python and of the packages on which the numbers depend."""
        return self.witness.versions

    @classmethod
    def from_keys(cls, *, runs: RunCounts, **fields: Any) -> Self:
        """The result from the keys of its JSON; the witness has the number of confirm runs."""
        return cls(search_runs=runs.search, epoch_runs=runs.epochs or 0, **fields)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckResult(WitnessedResult, ABC):
    """The fields of both verdicts; `lower_bound` holds at confidence 1 − alpha.

    `epsilon_lower_bound` is the same number, whatever the claim's parameter. `others`: the verdicts under the other
    adjacencies, if the claim leaves the adjacency open, each at its own alpha. `floating_point`: of a pass, a violation
    that only last bits of outcomes show, a fault of the implementation alone, tested at a small part of the check's
    alpha; the pass has the rest. `runs_made`: the number of paired runs of epochs and confirm together, each counted
    once; 0 in a verdict read from a file.
    """

    json_keys: ClassVar[tuple[str, ...]] = (
        *("verdict", "mechanism", "parameters", "claim", "alpha", "log_e_value", "p_value", "epsilon_lower_bound"),
        *(*WitnessedResult.json_keys, "others", "floating_point"),
        *("detectable_epsilon", "detectable", "detectable_delta"),
    )

    claim: Claim
    alpha: Alpha
    log_e_value: float
    others: "tuple[Verdict, ...]" = field(default=(), metadata={"json": "sparse"})
    floating_point: "Violation | None" = field(default=None, metadata={"json": "sparse"})
    runs_made: int = field(default=0, compare=False)

    @property
    @abstractmethod
    def refuted(self) -> bool:
        """Whether the claim is refuted: the verdict is a `Violation`."""

    def __bool__(self) -> bool:
        """Raise `TypeError`, since "true" could mean refuted or passed."""
        raise TypeError(
            f"a {type(self).__name__} is neither true nor false: ask verdict.refuted, or isinstance(verdict, Violation)"
        )

    @property
    def margin(self) -> float:
        """The evidence (nats) that a refutation lacked, under the adjacency nearest to a refutation."""
        return min(math.log(1 / verdict.alpha) - verdict.log_e_value for verdict in (self, *self.others))

    @property
    def bits_refuted(self) -> "Violation | None":
        """The first `floating_point` violation of a pass or of its `others`; None without a violation."""
        found = (verdict.floating_point for verdict in (self, *self.others))
        return next((violation for violation in found if violation is not None), None)

    @property
    def p_value(self) -> float:
        """The p-value min(1, 1/E) of the e-value E; valid at any stopping time."""
        return math.exp(min(0.0, -self.log_e_value))

    @abstractmethod
    def _conclusion(self) -> tuple[str, list[str]]:
        """The first line of the report, and the lines below the witness."""

    @abstractmethod
    def _short_lines(self) -> list[str]:
        """The lines of a short report below the first line."""

    def __str__(self) -> str:
        return self.report()

    def report(self, *, details: bool = True, reproduce: Sequence[str] = ()) -> str:
        """The verdict for people; `reproduce`: the command line that gives the same counts again.

        Without `details` a violation has at most ten lines and a pass seven, besides notes and early ends.
        """
        own = self._own_report(reproduce, details=details, named=bool(self.others))
        return "\n\n".join([own, *(other._own_report((), details=details, named=True) for other in self.others)])

    def _own_report(self, reproduce: Sequence[str], *, details: bool, named: bool) -> str:
        """The report without the reports of `others`; `named`: with the text of the relation."""
        head, conclusion = self._conclusion()
        relation = self.witness.relation
        text = relation_text(relation) if named else relation.adjacency if relation is not None else None
        lines = [head, *([label("neighbours", text)] if text and (named or details or self.refuted) else [])]
        lines += [*self.witness.lines(), *conclusion, *self.witness.where()] if details else self._short_lines()
        lines += [
            *remarks(self, self.ended),
            *([spent(self, self.run_counts)] if details or not self.refuted or self.ended in EARLY_END_REASONS else []),
        ]
        if not self.reproducible:
            lines.append(f"  {NOT_REPRODUCIBLE}")
        if reproduce and self.reproducible:
            lines.append(f"  reproduce: {shlex.join(reproduce)}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Violation(CheckResult):
    """The claim is refuted, with false-alarm probability at most alpha.

    `history`: a text on each version of the mechanism, if the evidence is the runs of several sessions; empty if it is
    the runs of one check. With a history, the counts come from the last session, as a note says.
    """

    json_keys: ClassVar[tuple[str, ...]] = (*CheckResult.json_keys, "history")

    verdict: ClassVar[str] = "violated"

    history: tuple[str, ...] = field(default=(), metadata={"json": "sparse"})

    # None in JSON: the claim was refuted.
    detectable_epsilon: ClassVar[None] = None
    detectable: ClassVar[None] = None
    detectable_delta: ClassVar[None] = None

    @property
    def refuted(self) -> Literal[True]:
        """True: the claim is refuted."""
        return True

    @property
    def by_bits(self) -> bool:
        """Whether only the last bits of floats show the violation, a fault of the implementation alone."""
        return is_of_bits(self.witness.event)

    @property
    def exceeded(self) -> str:
        """The lower bound of the claim's parameter, for people."""
        return exceeded(self.claim, self.lower_bound)

    @property
    def accused(self) -> str:
        """The mechanism that does not keep the claim, or the text "one of these … versions" of a history."""
        return self.call if len(self.history) < 2 else f"one of these {len(self.history)} versions of {self.call}"

    @property
    def _shown(self) -> str:
        evidence = f"(log e-value {self.log_e_value:.1f}, needed {math.log(1 / self.alpha):.1f})"
        return f"{self.exceeded} with confidence {confidence(self.alpha)} {evidence}"

    def finding(self) -> list[str]:
        """The lines on this violation in the last bits, for the report of a pass."""
        return [
            f"  floating point: refuted by the last bits, so {self._shown}",
            *(f"  {line}" for line in self.witness.lines()),
            "    the arithmetic of this implementation leaks: its verdict in real arithmetic is the one above",
        ]

    @property
    def _remarks(self) -> list[str]:
        """Lines on the evidence: of epochs, or of last bits."""
        epochs = f"  counted since the event was chosen; evidence: bets on {self.epoch_runs:,} runs in epochs"
        return [*([epochs] if self.epoch_runs else []), *([LAST_BITS_LINE] if self.by_bits else [])]

    def _conclusion(self) -> tuple[str, list[str]]:
        return f"VIOLATED: {self.accused} is not {self.claim.short}", [*self._remarks, f"  so {self._shown}"]

    def _short_lines(self) -> list[str]:
        explanation = self.witness.explanation
        return [
            *self.witness.short_lines(),
            *self._remarks,
            f"  so {self.exceeded}; if the claim held, {odds(self.alpha)} would say so",
            *([] if explanation is None else [short_label("where", str(explanation))]),
        ]

    def __repr__(self) -> str:
        return f"<Violation: {self.accused} is not {self.claim.short}, {self.exceeded}>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NotRefuted(CheckResult):
    """The claim was not refuted, which does not prove privacy.

    `detectable`: the smallest parameter, in the unit of the claim, that this event would have caught with 95 % power;
    infinite if the event would have caught no parameter. It is an estimate unless the claim is pure ε-DP or μ-GDP: of
    other claims one event shows a share of the parameter (docs/passes.md). `detectable_epsilon` is the same number.
    """

    verdict: ClassVar[str] = "not-refuted"

    detectable_epsilon: Detectable

    @property
    def refuted(self) -> Literal[False]:
        """False: the claim is not refuted.

        A sweep's `others` may hold a `Violation`, since a sweep calls a claim without a documented adjacency refuted
        only if it is refuted under each adjacency. In a check that violation would be the verdict.
        """
        return False

    @property
    def detectable(self) -> Detectable:
        """The smallest detectable parameter of the claim's family, in its unit; may be infinite."""
        return self.detectable_epsilon

    @property
    def detectable_delta(self) -> Detectable:
        """The smallest δ(ε) that a single event could have shown in these runs, with 95 % power; may be infinite.

        For every claim this is the smallest probability on D with which an event that never happens on D′ could have
        refuted the claim. For graded events see `evidence.detectable_probability`.
        """
        return detectable_probability(self._bets_runs, self.claim, alpha=self.alpha)

    @property
    def _bets_runs(self) -> int:
        """The number of paired runs with a bet: the runs of epochs and the confirm runs."""
        return self.epoch_runs + self.counts.runs

    @property
    def caught(self) -> str:
        """The smallest detectable parameter, for people."""
        return self._caught(self.detectable)

    def _caught(self, detectable: float) -> str:
        return f"{self.claim.symbol} ≥ {at_most(detectable)}" if math.isfinite(detectable) else "nothing"

    @property
    def sentence(self) -> str:
        """A sentence on the parameters that these runs would have caught by this event and by a rarer event.

        The rarer event is left out for claims of whose parameter one event shows an unknown share.
        """
        p, _ = self.witness.shares
        sentence = f"this event (rate {p:.3g} on D) would have caught {self.caught} {self.power}"
        if not p or not self.claim.shown_by_one_event:
            return sentence
        rare = min(RARE_RATE, p / 10)
        caught = self._caught(detectable_at_rate(rare, self._bets_runs, self.claim, alpha=self.alpha))
        return f"{sentence}, a rarer event (rate {rare:.3g}) {caught}"

    @property
    def power(self) -> str:
        """The power, for people; it is approximate if one event shows only a share of the parameter."""
        if self.claim.shown_by_one_event:
            return "with 95 % power"
        # The share of the parameter's excess that one event shows is unknown.
        return "with about 95 % power" if self.claim.parameter else "with 95 % power, if it shows all of it"

    def _conclusion(self) -> tuple[str, list[str]]:
        (p, q), rare, tail = self.witness.shares, self.detectable_delta, ""
        if math.isfinite(rare) and (unseen := self.claim.tail(rare)):
            # Bets made for a rarer event reach 95 % at a probability a few per cent smaller.
            tail = f"in as many runs, with about 95 % power, {unseen}"
        lines = wrapped("; ".join(filter(None, [self.sentence, tail])))
        if self.counts.runs and p > self.claim.largest(q):
            lines.insert(0, "  the rate on D lies above what the claim allows, but not significantly")
        if self.ended in SUFFICIENT_RUNS_REASONS:
            lines.append(f"  these runs were enough: {SUFFICIENT_RUNS_REASONS[self.ended]}")
        least = f"{self.claim.symbol} lower bound {at_least(self.lower_bound)}"
        return f"NOT REFUTED: {self.call} at the claim {self.claim}; this is no proof of privacy", [
            *lines,
            f"  {least} with confidence {confidence(self.alpha)}",
            *([] if self.floating_point is None else self.floating_point.finding()),
        ]

    def _short_lines(self) -> list[str]:
        leaks = "  floating point: refuted; all digits of one output can tell D from D′"
        return [
            short_label("event", rounded(self.witness.description)),
            *wrapped(self.sentence),
            *([] if self.floating_point is None else [leaks]),
        ]

    def __repr__(self) -> str:
        return f"<NotRefuted: {self.call} at the claim {self.claim}, would have caught {self.caught}>"


#: Verdict is the result of a check.
Verdict = Violation | NotRefuted


def verdict_from_json(value: object) -> Verdict:
    """The verdict that unchecked JSON describes. Raises `InvalidWitness`."""
    found: Verdict = read_result(codec_of(Verdict), "verdict", value)
    return found


def replay_text(witness: Witness, verdict: Verdict, *, details: bool = True) -> str:
    """The text of a replay: the unchecked contents of the witness file, then the verdict on fresh runs."""
    used = verdict.witness.relation
    lines = [
        f"witness of {named(witness.mechanism, witness.parameters)}: claim {witness.claim}, α = {witness.alpha:g}",
        label("relation", relation_text(witness.relation)),
    ]
    if witness.data is not None:
        lines.append(label("data", summary(witness.data)))
    if (verdict.claim, verdict.alpha) != (witness.claim, witness.alpha):
        lines.append(label("replayed at", f"claim {verdict.claim}, α = {verdict.alpha:g}"))
    if witness.relation is not None and not same_relation(used, witness.relation):
        lines.append(label("replayed in", relation_text(used)))
    return "\n".join([*lines, verdict.report(details=details)])
