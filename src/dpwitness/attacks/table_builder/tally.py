"""Questions in blocks, and what their answers add up to, count by count."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.averaging import Sums, halves
from dpwitness.attacks.table_builder.fit import Asked
from dpwitness.attacks.table_builder.protocol import Block, System
from dpwitness.attacks.table_builder.table import Where

__all__ = ["Progress", "Tally", "Within", "ask_partitions", "shown_values"]

Flags = NDArray[np.bool_]
Wholes = NDArray[np.int64]
#: Called after each share of the questions with the share that is done.
Progress = Callable[[float], None]
#: Flags of selections that are held at once; more questions are asked in turns.
MOST_FLAGS = 1 << 25
#: Bytes of selections that are kept of each count, for the checks that are made of single answers.
MOST_KEPT = 1 << 20


@dataclass(slots=True)
class Tally:
    """Of one count: the sums so far, how many questions they took, and what they showed."""

    sums: list[Sums] = field(default_factory=list)
    queries: int = 0
    shown: dict[str, Flags] = field(default_factory=dict)  # which values of other attributes have answers above 0
    asked: list[Asked] = field(default_factory=list)  # the partitions themselves, up to `MOST_KEPT`

    def missing(self, k: int) -> int:
        """How many two-partitions are missing to `k`; those into more parts count for less."""
        return k - int(sum(2 * len(one.totals) / one.parts for one in self.sums))

    def add(self, answers: Wholes) -> None:
        """Answers of partitions, shape (parts, partitions)."""
        self.sums.append(Sums.of(answers))

    def keep(self, block: Block, answers: Wholes) -> None:
        """Keep two-partitions and their answers, shape (2·partitions,), as of `halves`; both sides or none."""
        half, width = len(answers) // 2, -(-block.selections.shape[1] // 8)
        left = MOST_KEPT - sum(one.bits.nbytes for one in self.asked)
        rows = np.arange(min(half, left // (2 * width)))
        rows = np.concatenate([rows, rows + half])
        bits = np.packbits(block.selections[rows], axis=1)
        self.asked.append(
            Asked(
                attribute=block.attribute,
                where=block.where,
                bits=bits,
                width=block.selections.shape[1],
                answers=answers[rows],
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Values of an attribute to be partitioned within a sub-population, and the others, which stay on one side."""

    attribute: str
    base: Wholes
    beside: Wholes
    where: Where


def shown_values(oracle: System, places: Sequence[tuple[str, Where]]) -> list[Flags]:
    """For each attribute and sub-population: which of its values have answers above 0."""
    blocks = [
        Block(attribute=name, selections=np.eye(len(oracle.values(name)), dtype=np.bool_), where=where)
        for name, where in places
    ]
    return [answers > 0 for answers in oracle.ask_all(blocks)]


def ask_partitions(oracle: System, plans: Sequence[tuple[Tally, Within, Flags]], progress: Progress) -> None:
    """Ask for two-partitions (see `halves`) and add them to their tallies, in as few turns as memory allows."""
    turns = [turn for plan in plans for turn in _turns(oracle, *plan)]
    batch: list[tuple[Tally, Block]] = []
    size = 0
    for i, (tally, within, sides) in enumerate(turns):
        rows = halves(len(oracle.values(within.attribute)), within.base, sides, within.beside)
        batch.append((tally, Block(attribute=within.attribute, selections=rows, where=within.where)))
        size += rows.size
        if size >= MOST_FLAGS or i == len(turns) - 1:
            for (owner, block), answers in zip(batch, oracle.ask_all([block for _, block in batch]), strict=True):
                owner.add(answers.reshape(2, -1))
                owner.keep(block, answers)
                owner.queries += len(answers)
            batch, size = [], 0
            progress((i + 1) / len(turns))


def _turns(oracle: System, tally: Tally, within: Within, sides: Flags) -> Iterator[tuple[Tally, Within, Flags]]:
    """The same partitions in portions of which each fits into memory."""
    portion = max(1, MOST_FLAGS // (2 * len(oracle.values(within.attribute))))
    for start in range(0, len(sides), portion):
        yield tally, within, sides[start : start + portion]
