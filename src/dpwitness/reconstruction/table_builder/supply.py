"""The supply of an attack's questions: their number, and the partitions and values that make them.

Asghar & Kaafar (2020), section 4.2.2; by appendix C, first workaround, suppressed values that certainly have people are
partitioned, too, if the other values have too few partitions.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from dpwitness.arrays import Integers
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder.averaging import (
    MAX_PARTITIONS,
    PartitionAnswers,
    Partitions,
    number_of_partitions,
    two_partitions,
    value_positions,
)
from dpwitness.reconstruction.table_builder.systems import MISSING_ANSWER, Block, QuerySystem
from dpwitness.reconstruction.table_builder.tables import Where

#: Number of two-partitions per person² of the noise's variance: the mean has a standard error of 0.14 people and rounds
#: wrong once in 2,400 times, as with the paper's 200 two-partitions at r = 2, variance 2.
PARTITIONS_PER_VARIANCE: Final = 100
#: Largest number of two-partitions of a value by the noise's variance: they suffice for uniform noise within ±21.
MAX_DEFAULT_PARTITIONS: Final = 1 << 14
#: Factor of the base set's number of two-partitions: all counts use the base set's count, so that count should be wrong
#: only once in 10⁷ times.
BASE_FACTOR: Final = 2.5
#: Number of two-partitions that estimate the noise's variance to 10 %, where it determines the number of questions.
PILOT_PARTITIONS: Final = 200
#: Largest number of values in the base set; 20 values have 524,287 two-partitions, more than a value gets.
BASE_SIZE: Final = 20
#: Largest number of suppressed values that are tried, by two questions each.
MAX_TRIED_VALUES: Final = 64
#: Largest number of sets of values whose people are divided by a second attribute, with three questions each.
MAX_DIVIDED_SETS: Final = 128
#: Largest number of values of the second attribute: a question names them all.
MAX_DIVIDING_VALUES: Final = 200

#: A function that is called with the share of the asked questions, in [0, 1].
ShareProgress: TypeAlias = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingPlan:
    """The values to count and the numbers of questions of an attack.

    `fitted`: whether counts come from the least squares of all single answers. False: counts come from sums alone, as
    in Algorithm 4.
    """

    targets: tuple[int, ...] | None = None  # positions of the values to count; None: all values
    partitions: int | None = None  # two-partitions for each value; None: 100 per person² of the noise's variance
    # Two-partitions of the base set; None: 2.5 times `partitions`, or equally many for a single value.
    base_partitions: int | None = None
    base: int | tuple[int, ...] = BASE_SIZE  # positions of the base set, or the largest number of its values
    questions: int | None = None  # the largest number of questions in all, which limits `partitions`; None: no limit
    fitted: bool = True

    def __post_init__(self) -> None:
        for name in ("partitions", "base_partitions", "questions"):
            value = getattr(self, name)
            if value is not None and not value >= 1:
                raise InvalidParameter(f"{name}={value!r} must be at least 1")
        if isinstance(self.base, int) and not self.base >= 1:
            raise InvalidParameter(f"base={self.base!r} must hold at least 1 value")

    def pilot(self, left: float) -> int:
        """The number of two-partitions that estimate the variance when `left` questions are left."""
        return int(min(PILOT_PARTITIONS, max(2, left / 8)))

    def partitions_for(self, variance: float, values: int, left: float) -> int:
        """The number of two-partitions for each of `values` values under noise of this variance (people²).

        Raises `InvalidParameter` where the `left` questions are too few for one two-partition a value.
        """
        k = self.partitions or max(1, min(math.ceil(PARTITIONS_PER_VARIANCE * variance), MAX_DEFAULT_PARTITIONS))
        if left < math.inf:
            each = 2 * values + (2 * self._factor(values) if self.base_partitions is None else 0)
            once = 0 if self.base_partitions is None else 2 * self.base_partitions
            k = min(k, int((left - once) / each))
            if k < 1:
                raise InvalidParameter(
                    f"questions={self.questions} are too few: {values} values need {math.ceil(each + once)} more at "
                    "least than the published answers"
                )
        return k

    def for_base(self, k: int, values: int) -> int:
        """The number of two-partitions of the base set when each of `values` values gets k two-partitions."""
        return self.base_partitions or min(math.ceil(self._factor(values) * k), MAX_PARTITIONS)

    def _factor(self, values: int) -> float:
        """The number of two-partitions of the base set for each two-partition of a value."""
        return BASE_FACTOR if values > 1 else 1.0


class Supply:
    """The supply of different questions about one attribute's values, with which it counts sets of values.

    Parameters
    ----------
    noisy
        The published answers, shape (values,).
    questions
        The largest number of questions in all, the questions for `noisy` included; None: no limit.

    Attributes
    ----------
    not_empty
        Flags of the values that certainly have people although their answers are 0; shape (values,).
    workarounds
        Notes on steps other than partitioning the attribute's values.
    divided
        Answers about sets of values in each part of the people, and in both parts together; shape (3, sets).
    divided_sets
        Flags of the values in these sets, shape (sets, values).
    """

    def __init__(
        self,
        oracle: QuerySystem,
        rng: np.random.Generator,
        attribute: str,
        noisy: Integers,
        where: Where | None = None,
        *,
        questions: int | None = None,
    ) -> None:
        self.not_empty = np.zeros(len(noisy), np.bool_)
        self.workarounds: tuple[str, ...] = ()
        self.divided = np.zeros((3, 0), np.int64)
        self.divided_sets = np.zeros((0, len(noisy)), np.bool_)
        self._oracle, self._rng, self._attribute, self._noisy, self._where = oracle, rng, attribute, noisy, where or {}
        self._tried = False
        others = [name for name in oracle.attributes if name not in (attribute, *self._where)]
        sizes = {name: size for name in others if 2 <= (size := len(oracle.values(name))) <= MAX_DIVIDING_VALUES}
        self._dividing = max(sizes, key=sizes.__getitem__, default=None)
        divided = MAX_DIVIDED_SETS if questions is None else min(MAX_DIVIDED_SETS, questions // 24)
        self._divided_sets = divided if self._dividing else 0
        self._limit = math.inf if questions is None else questions + oracle.asked - len(noisy) - 3 * self._divided_sets

    @property
    def left(self) -> float:
        """The number of questions that may still be asked."""
        return self._limit - self._oracle.asked

    def base(self, given: int | tuple[int, ...], k: int) -> Integers:
        """Positions of the base set: the `given` positions, or at most `given` positions of the largest answers.

        Suppressed values that certainly have people join if the set without one value has fewer than `k`
        two-partitions. Raises `InvalidParameter` for given values without an answer above 0, and if all answers are 0.
        """
        if isinstance(given, tuple):
            chosen = value_positions(self._oracle, self._attribute, given)
            if not len(chosen) or np.any(self._noisy[chosen] == 0):
                raise InvalidParameter(
                    f"attribute {self._attribute!r}: {np.count_nonzero(self._noisy[chosen])} of the {len(chosen)} base "
                    "values have an answer above 0; all of them need one"
                )
            return chosen
        order = np.argsort(-self._noisy, kind="stable")
        shown = order[: np.count_nonzero(self._noisy)][:given]
        if not len(shown):
            raise InvalidParameter(f"attribute {self._attribute!r}: no answer is above 0, so nothing can be averaged")
        if number_of_partitions(len(shown) - 1) < k and len(shown) < given:
            self._find_not_empty()
        return np.sort(np.concatenate([shown, np.flatnonzero(self.not_empty)]))

    def _find_not_empty(self) -> None:
        """Find suppressed values with people: beside a published value, they change its answer (appendix C, section 9).

        Under uniform noise a value with people is missed with probability up to 1/(2r+1) by each of the helpers, which
        are the values with the largest answers.
        """
        helpers = np.argsort(-self._noisy, kind="stable")[: min(2, np.count_nonzero(self._noisy))]
        tried = np.flatnonzero(self._noisy == 0)[:MAX_TRIED_VALUES]
        if self._tried or not len(tried) or len(helpers) * len(tried) > self.left / 4:
            return
        self._tried = True
        selections = np.zeros((len(helpers), len(tried), len(self._noisy)), np.bool_)
        for rows, helper in zip(selections, helpers, strict=True):
            rows[np.arange(len(tried)), tried] = True
            rows[:, helper] = True
        answers = self._oracle.ask(self._attribute, selections.reshape(-1, len(self._noisy)), self._where)
        answers = answers.reshape(len(helpers), -1)
        self.not_empty[tried] = np.any((answers != self._noisy[helpers][:, None]) & (answers != MISSING_ANSWER), axis=0)

    def count(
        self,
        sets: Sequence[Integers],
        k: int,
        progress: ShareProgress = lambda share: None,
        divide: PartitionAnswers | None = None,
    ) -> list[PartitionAnswers]:
        """Count the people with a value of each set (positions), by `k` two-partitions or as many as there are.

        `divide`: the answers about sets of values whose people are then divided.
        """
        drawn = [self._partition(values, k) for values in sets]
        parts = [] if divide is None else self._divide(divide)

        def blocks() -> Iterator[Block]:
            for number, one in enumerate(drawn, 1):
                yield Block(attribute=self._attribute, selections=one.selections(len(self._noisy)), where=self._where)
                progress(number / len(drawn))
            yield from parts

        answers = self._oracle.ask_all(blocks())
        if parts:
            self.divided, self.divided_sets = np.array(answers[len(drawn) :]), parts[0].selections
        return [PartitionAnswers.of(one, given) for one, given in zip(drawn, answers, strict=False)]

    def _divide(self, answers: PartitionAnswers) -> list[Block]:
        """Questions about two parts of the people and about both, by a second attribute; no questions without it.

        Both parts name the same values together as the last question, so that the values need not be complete.
        """
        if self._dividing is None:
            return []
        some = answers.partitions.selections(len(self._noisy))
        # Equally many first and second sides.
        some = some.reshape(2, -1, len(self._noisy))[:, : self._divided_sets // 2].reshape(-1, len(self._noisy))
        values = self._oracle.values(self._dividing)
        return [
            Block(attribute=self._attribute, selections=some, where={**self._where, self._dividing: part})
            for part in (values[::2], values[1::2], values)
        ]

    def _partition(self, values: Integers, k: int) -> Partitions:
        """Draw partitions of a set's values (section 4.2.2); no partition where fewer than two values have people."""
        shown = values[self._noisy[values] > 0]
        extra = values[self.not_empty[values]]
        if number_of_partitions(len(shown)) >= k:
            extra = extra[:0]
        beside = np.setdiff1d(values, np.concatenate([shown, extra]))
        base, sides = np.append(shown, extra), np.zeros((0, len(shown) + len(extra)), np.bool_)
        if len(shown) >= 2:
            sides = two_partitions(self._rng, len(shown), k, len(extra))
        elif len(base) >= 2:  # 2·k: partitions with a suppressed side will be left out
            sides = two_partitions(self._rng, len(base), 2 * k)
        if len(extra):
            self.workarounds = ("suppressed values that have people were partitioned too (appendix C)",)
        return Partitions(base=base, beside=beside, sides=sides)
