"""Systems that answer the same counts under other rules: each a defence that averaging has an answer to, or has not.

Asghar & Kaafar (2020), sections 2.2, 7 and 9. All but the first two restrict the questions of another system.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.protocol import System
from dpwitness.attacks.table_builder.systems import Counts
from dpwitness.attacks.table_builder.table import Where
from dpwitness.errors import InvalidParameter

__all__ = [
    "AuditedCounts",
    "CappedCounts",
    "ExactCounts",
    "FreshNoisyCounts",
    "QuestionRefused",
    "SingleValues",
    "WithoutTotals",
]

Wholes = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]
#: Sets of up to 64,000 values are told apart by a sum of their words times these.
MIXING = np.random.default_rng(0).integers(0, 1 << 64, 1000, np.uint64) | np.uint64(1)


class QuestionRefused(InvalidParameter):
    """The system does not answer this question, or no more of them."""


class ExactCounts(Counts):
    """Suppression alone: 0 for at most s people, else the true count (section 2.2). The noise law only bounds s."""

    def _noise(self, union: Words, attribute: str, selections: Flags, where: Any) -> Wholes:
        return np.zeros(len(union), np.int64)


class FreshNoisyCounts(Counts):
    """Fresh noise for every question, the same one asked again included (section 2.2)."""

    def _noise(self, union: Words, attribute: str, selections: Flags, where: Any) -> Wholes:
        return self.law.sample(self._rng, len(union))


class _Restricted(System):
    """Another system behind rules of its own."""

    def __init__(self, inner: System) -> None:
        self._inner = inner
        self.asked = 0

    @property
    def attributes(self) -> tuple[str, ...]:
        """As in `System`."""
        return self._inner.attributes

    def values(self, attribute: str) -> tuple[Any, ...]:
        """As in `System`."""
        return self._inner.values(attribute)

    def ask(self, attribute: str, selections: Flags, where: Where | None = None) -> Wholes:
        """As in `System`."""
        selections = np.asarray(selections, np.bool_)
        answers = self._answers(attribute, selections, where)
        self.asked += len(selections)
        return answers

    def _answers(self, attribute: str, selections: Flags, where: Where | None) -> Wholes:
        raise NotImplementedError


class WithoutTotals(_Restricted):
    """No fresh noise on totals: several values are answered by the sum of the answers for each (section 7)."""

    def _answers(self, attribute: str, selections: Flags, where: Where | None) -> Wholes:
        each = self._inner.ask(attribute, np.eye(selections.shape[1], dtype=np.bool_), where)
        return np.asarray(selections.astype(np.int64) @ each)


class SingleValues(_Restricted):
    """A language with "and" and "not" but without "or" (section 9): one value, or all values but one or two."""

    def _answers(self, attribute: str, selections: Flags, where: Where | None) -> Wholes:
        named = [(len(self.values(name)), np.array([len(chosen)])) for name, chosen in (where or {}).items()]
        for size, number in [*named, (selections.shape[1], selections.sum(axis=1))]:
            if np.any((number != 1) & (number < size - 2)):
                raise QuestionRefused("a question names one value, or all but one or two: there is no 'or'")
        return self._inner.ask(attribute, selections, where)


class CappedCounts(_Restricted):
    """At most `cap` questions (query throttling, section 7); one more raises `QuestionRefused`."""

    def __init__(self, inner: System, cap: int) -> None:
        super().__init__(inner)
        self.cap = cap

    def _answers(self, attribute: str, selections: Flags, where: Where | None) -> Wholes:
        if self.asked + len(selections) > self.cap:
            raise QuestionRefused(f"{self.asked} of {self.cap} questions are spent: no {len(selections)} more")
        return self._inner.ask(attribute, selections, where)


class AuditedCounts(_Restricted):
    """Query auditing (section 7.2): at most `limit` two-partitions of any set of values are answered.

    A question is refused where it would complete one more pair of disjoint questions with the same union.
    """

    def __init__(self, inner: System, limit: int) -> None:
        super().__init__(inner)
        self.limit = limit
        self._asked: dict[Any, Words] = {}
        self._unions: dict[Any, Words] = {}

    def _answers(self, attribute: str, selections: Flags, where: Where | None) -> Wholes:
        place = (attribute, tuple(sorted((name, tuple(chosen)) for name, chosen in (where or {}).items())))
        padded = np.zeros((len(selections), -(-selections.shape[1] // 64) * 64), np.bool_)
        padded[:, : selections.shape[1]] = selections
        new = np.packbits(padded, axis=1).view(np.uint64)
        known = self._asked.get(place, new[:0])
        rows = np.vstack([known, new])
        rows = rows[np.sort(np.unique(rows, axis=0, return_index=True)[1])]  # asked again is not asked anew
        unions = [self._unions.get(place, new[:0, 0])]
        for i in range(len(known), len(rows)):
            disjoint = rows[:i][~np.any(rows[:i] & rows[i], axis=1)]
            unions.append(((disjoint | rows[i]) * MIXING[: rows.shape[1]]).sum(axis=1, dtype=np.uint64))
        self._unions[place] = np.sort(np.concatenate(unions))
        if np.any(self._unions[place][self.limit :] == self._unions[place][: -self.limit]):
            raise QuestionRefused(f"more than {self.limit} pairs of questions part one set of values in two")
        self._asked[place] = rows
        return self._inner.ask(attribute, selections, where)
