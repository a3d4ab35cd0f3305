"""What an attack proposes: neighbours and, often, the event that gives them away."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dpwitness.candidate import Candidate
from dpwitness.claims import Claim
from dpwitness.neighbours import Data

__all__ = ["Attack", "Candidate"]

#: A generator of candidates: from the mechanism's parameters, D if the user gave one, the claim and the planned paired
#: runs. It draws nothing at random and runs nothing; what it proposes is tried beside what the search finds.
Attack = Callable[[Mapping[str, Any], Data | None, Claim, int], Iterable[Candidate]]
