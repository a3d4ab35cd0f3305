"""What every result says: of which mechanism, from which seed, in how long."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dpwitness.evidence.counts import Counts
from dpwitness.results.codec import FLAG, NUMBER, OBJECT, SECONDS, SEED, TEXT, WHOLE, Key, Kind, many
from dpwitness.results.text import named
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
