"""The decorator `target` and the facts of bundled mechanisms. `algorithms/` imports only this module and `noise`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from dpwitness.checks import brief, number, text
from dpwitness.claims import ZCDP, Claim
from dpwitness.errors import InvalidParameter
from dpwitness.neighbours import Relation, as_relation, bits, histogram, numbers, pairs, queries, records

__all__ = [
    "Target", "bits", "half_epsilon_squared", "histogram", "numbers", "pairs", "queries", "records", "target",
    "target_of",
]  # fmt: skip


F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The facts of a mechanism: the name of its parameter ε, its relation, its source, and its true ε, as a text.

    `delta`: the δ that the mechanism claims by default; `states`: a function from ε to the mechanism's claim, if this
    is not (ε, δ)-DP; `flags`: whether the outcomes 0 and 1 are the answers ⊥ and ⊤.
    """

    claim: str
    neighbours: Relation
    source: str
    true_epsilon: str
    attack: str | None = None
    delta: float = 0.0
    states: Callable[[float], Claim] | None = None
    flags: bool = False

    def __post_init__(self) -> None:
        """Raise `BadInput` for an invalid fact."""
        for name in ("claim", "source", "true_epsilon"):
            text(name, getattr(self, name))
        if self.attack is not None:
            text("attack", self.attack)
        if not 0 <= number("delta", self.delta) < 1:
            raise InvalidParameter(f"delta={brief(self.delta)} must be at least 0 and below 1")
        if self.states is not None and not callable(self.states):
            raise InvalidParameter(f"states={brief(self.states)} must be a function from an ε to a claim")
        object.__setattr__(self, "neighbours", as_relation(self.neighbours))


def half_epsilon_squared(epsilon: float) -> Claim:
    """½ε²-zCDP, the claim of a concentrated mechanism with parameter ε (Bun & Steinke 2016)."""
    return ZCDP(epsilon**2 / 2)


def target(
    *,
    claim: str,
    neighbours: Relation | Sequence[object],
    source: str,
    true_epsilon: str = "unknown",
    attack: str | None = None,
    delta: float = 0.0,
    states: Callable[[float], Claim] | None = None,
    flags: bool = False,
) -> Callable[[F], F]:
    """Register the facts of a mechanism: the parameter that is its claimed ε, its relation, and its source.

    `true_epsilon`: a text for people, the smallest ε for which the mechanism is ε-DP. `attack`: the generator whose
    candidates are tried beside the search, as `family.generator` (see `dpwitness.proposals`). `delta`, `states` and
    `flags`: see `Target`.
    """
    known = Target(
        claim=claim, neighbours=as_relation(neighbours), source=source, true_epsilon=true_epsilon, attack=attack,
        delta=delta, states=states, flags=flags,
    )  # fmt: skip

    def register(function: F) -> F:
        if not callable(function):
            raise InvalidParameter(f"@target marks a function, not {brief(function)}")
        function.__dpwitness__ = known  # type: ignore[attr-defined]  # a mark on a plain function
        return function

    return register


def target_of(function: object) -> Target | None:
    """The facts of a mechanism; None for a function that was not registered."""
    mark = getattr(function, "__dpwitness__", None)
    return mark if isinstance(mark, Target) else None
