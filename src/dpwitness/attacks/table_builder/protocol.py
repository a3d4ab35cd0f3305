"""What an attack may ask of a system, a simulated one or the user's: selections of one attribute's values."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.table import Where

__all__ = ["MISSING", "Block", "System"]

Wholes = NDArray[np.int64]
Flags = NDArray[np.bool_]
#: Instead of an answer that was refused or never came. What int64 makes of NaN on most machines; no count is so small.
MISSING: Final = -(1 << 63)


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

        `selections`: a row a query, a column a value, shape (queries, values); returns shape (queries,). An answer
        that was refused, or that there is no more allowance for, is `MISSING`: attacks go on with those there are, and
        their confidence is of these.
        """

    def ask_all(self, blocks: Sequence[Block]) -> list[Wholes]:
        """Answer several blocks of questions, none of which depends on another's answers."""
        return [self.ask(block.attribute, block.selections, block.where) for block in blocks]
