"""Systems that mitigate the averaging attack (Asghar & Kaafar 2020, sections 6 and 9), for the other benchmarks."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeAlias

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Booleans, Integers
from dpwitness.reconstruction.table_builder.systems import BoundedNoisyCounts, Words
from dpwitness.reconstruction.table_builder.tables import Value

#: A sub-population with its values in tuples.
Fixed: TypeAlias = Mapping[str, tuple[Value, ...]]


class GrowingNoisyCounts(BoundedNoisyCounts):
    """The mitigation of section 6: the i-th fresh noise is uniform within ±⌈r·√i⌉.

    The variance of the attack's average then stays near 2r²/3 people² however many queries it asks. Answers can be
    negative.
    """

    noises = None

    @override
    def _fresh_noise(self, n: int) -> Integers:
        first = len(self._dictionary) + 1
        bound = np.ceil(self.law.bound * np.sqrt(np.arange(first, first + n))).astype(np.int64)
        return np.asarray(self._rng.integers(-bound, bound, endpoint=True), np.int64)


class LayeredNoisyCounts(BoundedNoisyCounts):
    """The layered noise of section 9 (Diffix): one noise per set of contributors and one per condition of the query.

    The noise of a condition that all queries of an attack share, such as a sub-population, never averages out: the
    noise remover counts the sub-population wrong by twice that noise. But the noise is the same with and without a
    value, so it cancels in differences.
    """

    noises: ClassVar[int | None] = 2

    @override
    def _noise(self, union: Words, attribute: str, selections: Booleans, where: Fixed) -> Integers:
        layers = super()._noise(union, attribute, selections, where)
        for name, chosen in where.items():
            layers += self._of_conditions(name, self._selection(name, chosen))
        return layers + self._of_conditions(attribute, selections)

    def _selection(self, attribute: str, chosen: Sequence[Value]) -> Booleans:
        """The condition that the attribute has one of the chosen values, as a query selects them: shape (1, values)."""
        selection = np.zeros((1, len(self.values(attribute))), np.bool_)
        selection[0, self._table.positions(attribute, chosen)] = True
        return selection

    def _of_conditions(self, attribute: str, selections: Booleans) -> Integers:
        """The noise of each condition on an attribute, whether it names a sub-population or what a query selects."""
        return self._sticky_noise([(attribute, row.tobytes()) for row in selections])


class ValueLayeredNoisyCounts(LayeredNoisyCounts):
    """Each selected value is a condition of its own, whose noise stays in differences with and without it."""

    noises = None

    @override
    def _of_conditions(self, attribute: str, selections: Booleans) -> Integers:
        each = self._sticky_noise([(attribute, place) for place in range(selections.shape[1])])
        return np.asarray(selections.astype(np.int64) @ each)
