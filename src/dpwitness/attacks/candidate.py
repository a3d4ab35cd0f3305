"""What an attack proposes: neighbours and, often, the event that gives them away."""

from collections.abc import Callable, Iterable
from typing import Any

from dpwitness.candidate import Candidate
from dpwitness.claims import Claim
from dpwitness.neighbours import Data

__all__ = ["Attack", "Candidate"]

#: An attack: from the mechanism's parameters, D if the user gave one, the claim and the planned runs, to candidates.
Attack = Callable[[dict[str, Any], Data | None, Claim, int], Iterable[Candidate]]
