"""The user's own system, as the attacks see it: selections of values become conditions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.oracles.asking import Asking
from dpwitness.attacks.table_builder.protocol import MISSING, Block, System
from dpwitness.attacks.table_builder.questions import Condition
from dpwitness.attacks.table_builder.table import Where
from dpwitness.errors import InvalidParameter

__all__ = ["AskedSystem"]

Flags = NDArray[np.bool_]
Wholes = NDArray[np.int64]


class AskedSystem(System):
    """The user's system as the attacks see it: selections of values become conditions.

    Parameters
    ----------
    asking
        What asks it, in the form `FORM`.
    values
        For each attribute all of its values.
    """

    def __init__(self, asking: Asking[Condition], values: Mapping[str, Sequence[Any]]) -> None:
        self._asking = asking
        self._values = {name: tuple(given) for name, given in values.items()}

    @property
    def asked(self) -> int:  # type: ignore[override]  # what asks counts
        """As in `System`."""
        return self._asking.asked

    @property
    def attributes(self) -> tuple[str, ...]:
        """As in `System`."""
        return tuple(self._values)

    def values(self, attribute: str) -> tuple[Any, ...]:
        """As in `System`."""
        if attribute not in self._values:
            raise InvalidParameter(f"there is no attribute {attribute!r}; the attributes are {', '.join(self._values)}")
        return self._values[attribute]

    def ask(self, attribute: str, selections: Flags, where: Where | None = None) -> Wholes:
        """As in `System`."""
        return self.ask_all([Block(attribute=attribute, selections=selections, where=where or {})])[0]

    def ask_all(self, blocks: Sequence[Block]) -> list[Wholes]:
        """As in `System`: one batch. An answer that is NaN was refused or did not come: it is `MISSING`."""
        ends = np.cumsum([len(block.selections) for block in blocks])
        if not len(ends) or not ends[-1]:
            return [np.zeros(0, np.int64) for _ in blocks]
        answers = self._asking.ask(_Questions(self, blocks, int(ends[-1])))
        came = ~np.isnan(answers)
        whole = np.where(came, answers, 0).astype(np.int64)
        return np.split(np.where(came, whole, MISSING), ends[:-1])


class _Questions(Sequence[Condition]):
    """The questions of some blocks, each made when it is asked: many of them need no memory."""

    def __init__(self, system: AskedSystem, blocks: Sequence[Block], size: int) -> None:
        self._system, self._blocks, self._size = system, blocks, size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Condition]:
        for block in self._blocks:
            known = self._system.values(block.attribute)
            fixed = {name: list(values) for name, values in block.where.items()}
            for row in block.selections:
                yield {**fixed, block.attribute: [known[i] for i in np.flatnonzero(row)]}

    def __getitem__(self, place: Any) -> Any:
        return list(self)[place]
