"""What every result says: of which mechanism, from which seed, in how long.

What a check says in the end: `Violation` or `NotRefuted`. Never "private": a test cannot prove privacy.
"""

import math
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from dpwitness.checks import brief
from dpwitness.claims import Claim
from dpwitness.errors import InvalidWitness
from dpwitness.evidence.counts import Counts
from dpwitness.neighbours import same_relation
from dpwitness.results import codec
from dpwitness.results.codec import FLAG, NUMBER, OBJECT, OMITTED, SECONDS, SEED, TEXT, WHOLE, Form, Key, Kind, many
from dpwitness.results.text import confidence, label, named, notes, relation_text, short
from dpwitness.results.witness import WITNESS, Witness

#: Why confirm runs may end before their number or their evidence says so, for people.
EARLY: Final = {
    "time": "the time was over",
    "interrupted": "interrupted",
    "cluster lost": "the cluster does not answer any more",
    "failed": "a run failed",
}

Keys = Mapping[str, Kind | Key]
W = TypeVar("W", bound="WitnessedResult")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result:
    """What every result says; `str` of one is its report, as the command line prints it, `repr` is one line."""

    mechanism: str
    parameters: dict[str, Any]  # as JSON values for people; see `Witness.parameters` for the mechanism's own
    seed: int
    reproducible: bool  # False: the mechanism draws its own randomness
    seconds: float
    notes: tuple[str, ...] = ()  # what a reader should know before trusting it

    @property
    def call(self) -> str:
        """The mechanism with its parameters, as in a call."""
        return named(self.mechanism, self.parameters)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WitnessedResult(Result):
    """A result that rests on one candidate and its confirm runs."""

    witness: Witness  # in `NotRefuted`: the best candidate, which did not refute
    epsilon_lower_bound: float  # of the parameter of the claim's family; ε in nats
    search_runs: int
    epoch_runs: int = 0  # runs that were bets and chose the next ones
    ended: str  # why the confirm runs ended: "refuted", "runs", "time", "interrupted", "cluster lost" or "failed"

    @property
    def counts(self) -> Counts:
        """The confirm runs."""
        return self.witness.counts

    @property
    def lower_bound(self) -> float:
        """The lower bound of the parameter of the claim's family, in its unit: ε, ρ or μ."""
        return self.epsilon_lower_bound

    @property
    def parameter(self) -> str:
        """The sign of the parameter that is bounded, such as ρ."""
        return self.witness.claim.symbol

    def spent(self) -> str:
        """The last line of a report: runs, time and seed."""
        searched = f"{self.epoch_runs:,} in epochs" if self.epoch_runs else f"{self.search_runs:,} search"
        return f"  runs: {searched}, {self.counts.runs:,} confirm; {self.seconds:.1f} s; seed {self.seed}"


def maker(kind: type[W]) -> Callable[..., W]:
    """What builds a result from the keys of its object."""
    return lambda *, runs, verdict=None, **fields: kind(search_runs=runs[0], epoch_runs=runs[1], **fields)


#: {"search": …, "epochs": …, "confirm": …}; the last is not read back, since a witness has its own counts.
_SPENT: Final = Kind(
    lambda result: {"search": result.search_runs, "epochs": result.epoch_runs, "confirm": result.counts.runs},
    lambda name, value: tuple(WHOLE.read(name, OBJECT.read(name, value).get(part, 0)) for part in ("search", "epochs")),
)
#: Keys of the objects that results are, by where they stand.
HEAD: Final[Keys] = {"mechanism": TEXT, "parameters": OBJECT}
MIDDLE: Final[Keys] = {
    "witness": WITNESS,
    "runs": Key(kind=_SPENT, get=lambda result: result),
    "ended": TEXT,
}
#: What the bounded parameter is called, and the bound by a name that fits every claim.
PARAMETER: Final[Keys] = {
    "parameter": Key(kind=TEXT, derived=True),
    "lower_bound": Key(kind=NUMBER, derived=True),
}
TAIL: Final[Keys] = {"seed": SEED, "reproducible": FLAG, "seconds": SECONDS}
VERSIONS: Final[Keys] = {"versions": Key(kind=OBJECT, get=lambda result: result.witness.versions, derived=True)}
NOTES: Final[Keys] = {"notes": many(TEXT)}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckResult(WitnessedResult, ABC):
    """What both verdicts say; `lower_bound` holds at confidence 1 − alpha.

    `epsilon_lower_bound` is the same number; of a claim in another unit it is a bound of that parameter.
    `others`: where the claim leaves the adjacency open, the verdicts under the other ones, each at its own alpha.
    `runs_made`: paired runs of epochs and confirm together, none twice; 0 where it comes from a file, which has both.
    """

    claim: Claim
    alpha: float
    log_e_value: float
    others: "tuple[Verdict, ...]" = ()
    runs_made: int = field(default=0, compare=False)

    @property
    @abstractmethod
    def refuted(self) -> bool:
        """Whether the claim is refuted: the verdict is a `Violation`."""

    def __bool__(self) -> bool:
        """Raise `TypeError`: whether "true" would mean refuted or passed, a reader could only guess."""
        raise TypeError(
            f"a {type(self).__name__} is neither true nor false: ask verdict.refuted, or isinstance(verdict, Violation)"
        )

    @property
    def p_value(self) -> float:
        """min(1, 1/E): valid at any stopping time."""
        return math.exp(min(0.0, -self.log_e_value))

    @abstractmethod
    def _found(self) -> tuple[str, list[str]]:
        """The first line of the report, and what stands below the witness."""

    def __str__(self) -> str:
        return self.report()

    def report(self, *, reproduce: Sequence[str] = ()) -> str:
        """The verdict for people; `reproduce` is the command line that gives the same counts again."""
        return "\n\n".join(
            [self._alone(reproduce, named=bool(self.others)), *(o._alone((), named=True) for o in self.others)]
        )

    def _alone(self, reproduce: Sequence[str], *, named: bool) -> str:
        """The verdict without the others; `named`: with the relation that it is about."""
        head, found = self._found()
        relation = [label("neighbours", relation_text(self.witness.relation))] if named else []
        lines = [head, *relation, *self.witness.lines(), *found]
        if self.ended in EARLY:
            lines.append(f"  stopped early: {EARLY[self.ended]}; what was counted is valid")
        lines += [*notes(self.notes), self.spent()]
        if not self.reproducible:
            lines.append("  the mechanism draws its own randomness: a seed cannot reproduce these counts")
        elif reproduce:
            lines.append(f"  reproduce: {shlex.join(reproduce)}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Violation(CheckResult):
    """The claim is refuted, with false-alarm probability at most alpha."""

    @property
    def refuted(self) -> Literal[True]:
        """True."""
        return True

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return codec.to_json(_VIOLATION, self)

    def _found(self) -> tuple[str, list[str]]:
        evidence = f"(log e-value {self.log_e_value:.1f}, needed {math.log(1 / self.alpha):.1f})"
        lines = []
        if self.epoch_runs:
            lines = [
                "  counted since the event was chosen; the evidence is of bets on all runs, each placed before its run"
            ]
        return f"VIOLATED: {self.call} is not {self.claim.short}", [
            *lines,
            f"  so {self.claim.symbol} ≥ {self.lower_bound:.4g} with confidence {confidence(self.alpha)} {evidence}",
        ]

    def __repr__(self) -> str:
        return f"<Violation: {self.call} is not {self.claim.short}, {self.claim.symbol} ≥ {self.lower_bound:.4g}>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NotRefuted(CheckResult):
    """The claim was not refuted: no proof of privacy.

    `detectable`: the parameter that this event would have caught with 95 % power, infinite if nothing; in the unit of
    the claim. `detectable_epsilon` is the same number, by its name for claims of an ε (nats).
    """

    detectable_epsilon: float

    @property
    def refuted(self) -> Literal[False]:
        """False: of the verdicts under several adjacencies none is a `Violation`, else that would stand here."""
        return False

    @property
    def detectable(self) -> float:
        """The least parameter of the claim's family that would have been caught, in its unit; infinite if none."""
        return self.detectable_epsilon

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return codec.to_json(_NOT_REFUTED, self)

    @property
    def _caught(self) -> str:
        return f"{self.claim.symbol} ≥ {self.detectable:.4g}" if math.isfinite(self.detectable) else "nothing"

    def _found(self) -> tuple[str, list[str]]:
        return f"NOT REFUTED: {self.call} at the claim {self.claim}; this is no proof of privacy", [
            f"  this event would have caught {self._caught} with 95 % power",
            f"  {self.claim.symbol} lower bound {self.lower_bound:.4g} at confidence {confidence(self.alpha)}",
        ]

    def __repr__(self) -> str:
        return f"<NotRefuted: {self.call} at the claim {self.claim}, would have caught {self._caught}>"


Verdict = Violation | NotRefuted


def verdict_from_json(value: Any) -> Verdict:
    """Build a verdict from parsed JSON that nobody has checked. Raises `InvalidWitness`."""
    violated = isinstance(value, dict) and value.get("verdict") == "violated"
    form: Form[Any] = _VIOLATION if violated else _NOT_REFUTED
    found: Verdict = codec.from_json(form, value, "verdict")
    return found


def replay_text(witness: Witness, verdict: Verdict) -> str:
    """A replay for people: what the witness says, which nobody vouches for, then the verdict on fresh runs."""
    used = verdict.witness.relation
    lines = [
        f"witness of {named(witness.mechanism, witness.parameters)}: claim {witness.claim}, α = {witness.alpha:g}",
        label("relation", relation_text(witness.relation)),
    ]
    if witness.data is not None:
        lines.append(label("data", short(witness.data)))
    if (verdict.claim, verdict.alpha) != (witness.claim, witness.alpha):
        lines.append(label("replayed at", f"claim {verdict.claim}, α = {verdict.alpha:g}"))
    if witness.relation is not None and not same_relation(used, witness.relation):
        lines.append(label("replayed in", relation_text(used)))
    return "\n".join([*lines, str(verdict)])


def _tag(word: str) -> Kind:
    """A text that tells one kind of verdict from the other."""

    def read(name: str, value: Any) -> str:
        if value != word:
            raise InvalidWitness(f"{name}={brief(value)} must be 'violated' or 'not-refuted'")
        return word

    return Kind(lambda _: word, read)


#: Verdicts under other adjacencies, left out where there are none.
_OTHERS: Final = Key(
    kind=codec.many(Kind(lambda verdict: verdict.to_json(), lambda _, value: verdict_from_json(value))),
    get=lambda verdict: verdict.others or OMITTED,
    default=[],
)
_KEYS: Final[Keys] = {
    **HEAD,
    "claim": codec.CLAIM,
    "alpha": codec.NUMBER,
    "log_e_value": codec.NUMBER,
    "p_value": Key(kind=codec.NUMBER, derived=True),
    "epsilon_lower_bound": codec.NUMBER,
    **PARAMETER,
    **MIDDLE,
    **TAIL,
    **VERSIONS,
    **NOTES,
    "others": _OTHERS,
}
_REFUTED: Final = "the claim is refuted: there is no question what would have been caught"
_TOO_FEW: Final = "so few runs fell into the event that no violation would have been refuted"
_VIOLATION: Final[Form[Violation]] = Form(
    maker(Violation),
    keys={
        "verdict": Key(kind=_tag("violated"), get=lambda _: None),
        **_KEYS,
        "detectable_epsilon": Key(kind=codec.NULL, get=lambda _: None, derived=True),
        "detectable": Key(kind=codec.NULL, get=lambda _: None, derived=True),
        "detectable_epsilon_reason": Key(kind=codec.TEXT, get=lambda _: _REFUTED, derived=True),
    },
)
_NOT_REFUTED: Final[Form[NotRefuted]] = Form(
    maker(NotRefuted),
    keys={
        "verdict": Key(kind=_tag("not-refuted"), get=lambda _: None),
        **_KEYS,
        "detectable_epsilon": codec.OR_INFINITE,
        "detectable": Key(kind=codec.OR_INFINITE, derived=True),
        "detectable_epsilon_reason": Key(
            kind=codec.TEXT,
            get=lambda verdict: OMITTED if math.isfinite(verdict.detectable_epsilon) else _TOO_FEW,
            derived=True,
        ),
    },
)
