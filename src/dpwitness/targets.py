"""What a bundled mechanism, or one of another package, says of itself: all that `algorithms/` may import."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from dpwitness.claims import ZCDP, Claim
from dpwitness.jit import inlined as helper
from dpwitness.neighbours import Relation, bits, histogram, pairs, queries

__all__ = ["Target", "bits", "half_epsilon_squared", "helper", "histogram", "pairs", "queries", "target", "target_of"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A mechanism's own claim (which parameter is its ε), relation, source, and what is true of it.

    `delta`: the δ that it claims where none is given, the default of its parameter of that name. `states`: the claim
    that its ε stands for, where it is not (ε, δ)-DP. `flags`: whether its outcomes of 0 and 1 are answers ⊥ and ⊤.
    """

    claim: str
    neighbours: Relation
    source: str
    true_epsilon: str
    attack: str | None = None
    delta: float = 0.0
    states: Callable[[float], Claim] | None = None
    flags: bool = False


def half_epsilon_squared(epsilon: float) -> Claim:
    """½ε²-zCDP: what concentrated mechanisms state that are given an ε (Bun & Steinke 2016)."""
    return ZCDP(epsilon**2 / 2)


def target(
    *,
    claim: str,
    neighbours: Relation,
    source: str,
    true_epsilon: str = "unknown",
    attack: str | None = None,
    delta: float = 0.0,
    states: Callable[[float], Claim] | None = None,
    flags: bool = False,
) -> Callable[[F], F]:
    """Register what is known of a mechanism: the parameter that is its claimed ε, its relation, its source.

    `true_epsilon` is a text for people: the smallest ε for which it is ε-DP. `attack` names a
    generator of candidates, tried beside the search, as `family.generator` of the entry-point group `dpwitness.attacks`
    (see `dpwitness.attacks.family`). `delta`, `states` and `flags`: see `Target`.
    """

    def register(function: F) -> F:
        function.__dpwitness__ = Target(  # type: ignore[attr-defined]  # a mark on a plain function
            claim=claim,
            neighbours=neighbours,
            source=source,
            true_epsilon=true_epsilon,
            attack=attack,
            delta=delta,
            states=states,
            flags=flags,
        )
        return function

    return register


def target_of(function: Any) -> Target | None:
    """What a mechanism says of itself, if anything."""
    mark = getattr(function, "__dpwitness__", None)
    return mark if isinstance(mark, Target) else None
