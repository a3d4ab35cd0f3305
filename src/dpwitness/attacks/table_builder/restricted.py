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
    """A language without "or": one value, everybody, or everybody but one value ("not"; section 9)."""

    def _answers(self, attribute: str, selections: Flags, where: Where | None) -> Wholes:
        named = selections.sum(axis=1)
        if np.any((named != 1) & (named < selections.shape[1] - 1)):
            raise QuestionRefused("a question names one value, or all values but one: several cannot be chosen")
        return self._inner.ask(attribute, selections, where)


class CappedCounts(_Restricted):
    """At most `cap` questions (query throttling, section 7); one more raises `QuestionRefused`."""

    def __init__(self, inner: System, cap: int) -> None:
        super().__init__(inner)
        self.cap = cap

    def _answers(self, attribute: str, selections: Flags, where: Where | None) -> Wholes:
        if self.asked + len(selections) > self.cap:
            raise QuestionRefused(
                f"{self.asked} of {self.cap} questions are spent: no {len(selections)} more"
            )
        return self._inner.ask(attribute, selections, where)


class AuditedCounts(_Restricted):
    """Query auditing (section 7.2): at most `limit` two-partitions of any set of values are answered.

    A question is refused where it would complete one more pair of disjoint questions with the same union.
    """

    def __init__(self, inner: System, limit: int) -> None:
        super().__init__(inner)
        self.limit = limit
        self._asked: dict[Any, set[int]] = {}
        self._pairs: dict[Any, int] = {}

    def _answers(self, attribute: str, selections: Flags, where: Where | None) -> Wholes:
        place = (attribute, tuple(sorted((name, tuple(chosen)) for name, chosen in (where or {}).items())))
        for row in selections:
            self._record(place, int.from_bytes(np.packbits(row).tobytes()))
        return self._inner.ask(attribute, selections, where)

    def _record(self, place: Any, chosen: int) -> None:
        earlier = self._asked.setdefault(place, set())
        if chosen in earlier:
            return
        for other in earlier:
            if not other & chosen:
                union = (place, other | chosen)
                self._pairs[union] = self._pairs.get(union, 0) + 1
                if self._pairs[union] > self.limit:
                    raise QuestionRefused(f"more than {self.limit} pairs of questions part one set of values in two")
        earlier.add(chosen)
