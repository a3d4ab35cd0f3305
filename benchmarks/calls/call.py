"""One call of a library."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpwitness import ApproxDP, records
from dpwitness.neighbours import Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A mechanism as somebody has it, and its claim.

    Attributes
    ----------
    name
        Library and function.
    make
        Returns the mechanism, which imports the library.
    neighbours
        A relation, or pairs.
    epsilon, delta
        The claim, nats.
    outcome
        What is released of an output, as `check` takes it.
    tight
        Whether some pair of the neighbours reaches the claim.
    """

    name: str
    make: Callable[[], Any]
    neighbours: Relation | list[Any]
    epsilon: float = 1.0
    delta: float = 0.0
    outcome: str | None = None
    tight: bool = True

    def claim(self, factor: float) -> ApproxDP:
        """So many times the ε that is claimed, at the δ that is; of pure δ claims so many times the δ."""
        if self.epsilon == 0:
            return ApproxDP(0.0, factor * self.delta)
        return ApproxDP(factor * self.epsilon, self.delta)


def replace_one(domain: Any) -> Relation:
    """Datasets of public size."""
    return records(domain, adjacency="replace-one", size=(1, 1000))
