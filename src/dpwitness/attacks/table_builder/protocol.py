"""What an attack may ask: the user's own protocol, a condition and a count, and its form inside, selections of values.

A question counts the people who have, of every attribute that it names, one of the values that it lists.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.table import Where

__all__ = ["Block", "Condition", "Oracle", "System"]

Wholes = NDArray[np.int64]
Flags = NDArray[np.bool_]
#: For each attribute that a question names the values that it allows: {"age": [30, 31], "sex": ["F"]}.
Condition: TypeAlias = Mapping[str, Sequence[Any]]


class Oracle(Protocol):
    """A system that publishes noisy counts, as a user connects it: a condition, a count.

    Attributes may be left out of a condition; the empty one counts everybody. An oracle may further have

    `values`
        a mapping from each attribute to its values, those that nobody has included: then they need not be given;
    `batch`
        a method that takes a list of conditions and returns a list of as many counts: then questions that do not depend
        on each other come in one call.
    """

    def __call__(self, condition: dict[str, list[Any]], /) -> int | None:
        """How many people satisfy the condition, as the system publishes it; 0 or None where it is suppressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Questions that share a sub-population: how many people in `where` have one of the selected values.

    `selections`: a row a question, a column a value of the attribute; shape (questions, values).
    """

    attribute: str
    selections: Flags
    where: Where = field(default_factory=dict)


class System(ABC):
    """All that an attack sees of a query system.

    Attributes
    ----------
    asked
        How many questions were asked so far.
    """

    asked: int = 0

    @property
    @abstractmethod
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""

    @abstractmethod
    def values(self, attribute: str) -> tuple[Any, ...]:
        """The values of an attribute, in the order of a selection; raises `InvalidParameter` for an unknown one."""

    @abstractmethod
    def ask(self, attribute: str, selections: Flags, where: Where | None = None) -> Wholes:
        """Answer counting queries: how many people satisfy `where` and have a selected value of the attribute.

        `selections`: a row a query, a column a value, shape (queries, values); returns shape (queries,).
        """

    def ask_all(self, blocks: Sequence[Block]) -> list[Wholes]:
        """Answer several blocks of questions, none of which depends on another's answers."""
        return [self.ask(block.attribute, block.selections, block.where) for block in blocks]
