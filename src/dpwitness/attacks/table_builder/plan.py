"""How much an averaging attack asks: what it counts, and from how many partitions."""

import math
from dataclasses import dataclass
from typing import Final

from dpwitness.attacks.table_builder.partitions import MOST_PARTITIONS
from dpwitness.errors import InvalidParameter

__all__ = ["BASE_FACTOR", "BASE_SIZE", "PER_VARIANCE", "PILOT", "Plan"]

#: Two-partitions for a noise of variance 1. The mean then has 0.14 people of standard error, and rounds wrong once in
#: 2,400 times: what the paper's 200 two-partitions give at r = 2, variance 2.
PER_VARIANCE: Final = 100
#: How many times as many for the base set: all values are wrong where its count is, which it is once in 10⁷ times.
BASE_FACTOR: Final = 2.5
#: Two-partitions from which the variance of the noise is estimated, where the number of questions is to follow it.
PILOT: Final = 200
#: Values in the base set; 20 have 524,287 two-partitions.
BASE_SIZE: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many questions the attack asks, and about which values.

    Attributes
    ----------
    targets
        Positions of the values to be counted; None: all of them.
    partitions
        Two-partitions for each value; None: 100 for each person² of the noise's variance, which is estimated.
    base_partitions
        Once for the base set; None: 2.5 times as many, or for a single value as many.
    base
        Positions of the base set's values, all with answers above 0, or how many at most; they are those with the
        largest answers then.
    questions
        At most in all; `partitions` is as large as they allow. None: no limit.
    same_partitions
        The same two-partitions for all values, so that the errors of values that nobody has are all the same.
    fitted
        Counts are taken from the least squares of all single answers where these tell them better than the sums of
        partitions do, and nothing contradicts the assumptions; two sets are counted by another attribute as well, to
        compare. False: from sums alone, as Algorithm 4 has it.
    """

    targets: tuple[int, ...] | None = None
    partitions: int | None = None
    base_partitions: int | None = None
    base: int | tuple[int, ...] = BASE_SIZE
    questions: int | None = None
    same_partitions: bool = False
    fitted: bool = True

    def __post_init__(self) -> None:
        for name in ("partitions", "base_partitions", "questions"):
            value = getattr(self, name)
            if value is not None and not value >= 1:
                raise InvalidParameter(f"{name}={value!r} must be at least 1")
        if isinstance(self.base, int) and not self.base >= 1:
            raise InvalidParameter(f"base={self.base!r} must hold at least 1 value")

    def pilot(self, left: float) -> int:
        """How many two-partitions tell the variance, where `left` questions are left."""
        return int(min(PILOT, max(2, left / 8)))

    def wanted(self, variance: float, values: int, left: float) -> int:
        """Two-partitions for each of so many values against noise of that variance (people²).

        Raises `InvalidParameter` where the questions that are left do not suffice for one each.
        """
        k = self.partitions or max(1, min(math.ceil(PER_VARIANCE * variance), MOST_PARTITIONS // 4))
        if left < math.inf:
            each = 2 * values + (2 * self._factor(values) if self.base_partitions is None else 0)
            once = 0 if self.base_partitions is None else 2 * self.base_partitions
            k = min(k, int((left - once) / each))
            if k < 1:
                raise InvalidParameter(
                    f"questions={self.questions} do not suffice: {values} values need {math.ceil(each + once)} more at "
                    "least than the published answers"
                )
        return k

    def for_base(self, k: int, values: int) -> int:
        """Two-partitions of the base set, where each of so many values gets k."""
        return self.base_partitions or min(math.ceil(self._factor(values) * k), MOST_PARTITIONS)

    def _factor(self, values: int) -> float:
        return BASE_FACTOR if values > 1 else 1.0
