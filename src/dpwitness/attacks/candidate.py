"""What an attack proposes: neighbours and, often, the event that gives them away."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from dpwitness.claim import Claim
from dpwitness.events import Event
from dpwitness.neighbours import Data, Pair

#: An attack: from the mechanism's parameters, D if the user gave one, the claim and the planned runs, to candidates.
Attack = Callable[[dict[str, Any], Data | None, Claim, int], Iterable["Candidate"]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pair, D first, and an event that D should produce more often than the claim allows."""

    pair: Pair
    event: Event
