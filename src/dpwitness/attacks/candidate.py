"""What an attack proposes: neighbours and, often, the event that gives them away."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dpwitness.claim import Claim
from dpwitness.events import Event
from dpwitness.neighbours import Data, Pair

__all__ = ["Attack", "Candidate"]

#: A generator of candidates: from the mechanism's parameters, D if the user gave one, the claim and the planned paired
#: runs. It draws nothing at random and runs nothing; what it proposes is tried beside what the search finds.
Attack = Callable[[Mapping[str, Any], Data | None, Claim, int], Iterable["Candidate"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A pair, D first, and an event that D should produce more often than the claim allows.

    `estimate`: how often search runs of each side fell into the event; None where nobody has looked.
    """

    pair: Pair
    event: Event
    estimate: object = None
