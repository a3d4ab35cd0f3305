"""The supply of questions: the number of questions for a count, and partitions that give different questions.

Asghar & Kaafar (2020), section 4.2.2, and appendix C: for attributes with too few partitions the supply partitions
suppressed values that certainly have people, and the values of other attributes within the counted set, too.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np

from dpwitness.arrays import Booleans, Integers
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder.averaging import (
    MAX_PARTITIONS,
    AnsweredBlock,
    Average,
    Sums,
    average,
    both_sides,
    number_of_partitions,
    two_partitions,
    value_positions,
)
from dpwitness.reconstruction.table_builder.systems import MISSING_ANSWER, Block, System
from dpwitness.reconstruction.table_builder.tables import Where

#: Number of two-partitions per person² of the noise's variance: the mean has a standard error of 0.14 people and rounds
#: wrong once in 2,400 times, as with the paper's 200 two-partitions at r = 2, variance 2.
PARTITIONS_PER_VARIANCE: Final = 100
#: Factor of the base set's number of two-partitions: all counts use the base set's count, so that count should be wrong
#: only once in 10⁷ times.
BASE_FACTOR: Final = 2.5
#: Number of two-partitions that estimate the noise's variance to 10 %, where it determines the number of questions.
PILOT_PARTITIONS: Final = 200
#: Largest number of values in the base set; 20 values have 524,287 two-partitions, more than a value gets.
BASE_SIZE: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The values to count and the numbers of questions of an attack.

    `fitted`: whether counts come from the least squares of all single answers if their standard errors are smaller than
    the standard errors of the sums of partitions, and no answer contradicts the assumptions; two sets are counted by
    another attribute, too, for comparison. False: counts come from sums alone, as in Algorithm 4.
    """

    targets: tuple[int, ...] | None = None  # positions of the values to count; None: all values
    partitions: int | None = None  # two-partitions for each value; None: 100 per person² of the noise's variance
    base_partitions: int | None = None  # of the base set; None: 2.5 times `partitions`, or as many for a single value
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
        k = self.partitions or max(1, min(math.ceil(PARTITIONS_PER_VARIANCE * variance), MAX_PARTITIONS // 4))
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
        """The number of two-partitions of the base set when each of `values` values gets k."""
        return self.base_partitions or min(math.ceil(self._factor(values) * k), MAX_PARTITIONS)

    def _factor(self, values: int) -> float:
        """The base set's number of two-partitions divided by a value's."""
        return BASE_FACTOR if values > 1 else 1.0


#: A function that is called with the share of the asked questions, in [0, 1].
Progress: TypeAlias = Callable[[float], None]
#: Largest number of flags of selections in memory, 32 MB; more questions are asked in turns.
MAX_FLAGS = 1 << 25
#: Largest number of flags of selections that a count keeps for the checks of single answers, 8 MB.
MAX_KEPT_FLAGS: Final = 1 << 23


@dataclass(slots=True)
class SetCount:
    """The sums so far that count a set of values, which are given by their positions.

    `asked`: the single answers for the checks, up to `MAX_KEPT_FLAGS`.
    """

    values: Integers
    sums: list[Sums] = field(default_factory=list)
    asked: list[AnsweredBlock] = field(default_factory=list)

    def missing(self, k: int) -> int:
        """The number of two-partitions by which the sums are short of `k`; a partition into p parts counts as 2/p."""
        return k - int(sum(2 * len(one.totals) / one.parts for one in self.sums))

    def add_block(self, block: Block, answers: Integers) -> None:
        """Add two-partitions of `both_sides` and their answers; `asked` keeps as many whole partitions as fit."""
        self.sums.append(Sums.of(answers.reshape(2, -1)))
        half = len(answers) // 2
        left = MAX_KEPT_FLAGS - sum(one.selections.size for one in self.asked)
        rows = np.arange(min(half, left // (2 * block.selections.shape[1])))
        rows = np.concatenate([rows, rows + half])
        kept = AnsweredBlock(
            attribute=block.attribute, selections=block.selections[rows], where=block.where, answers=answers[rows]
        )
        self.asked.append(kept)

    @property
    def has_sums(self) -> bool:
        """Whether all answers of some partition are usable."""
        return any(len(one.totals) for one in self.sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """Two-partitions to ask about (see `both_sides`), their sub-population, and the count that their answers add to."""

    count: SetCount
    attribute: str
    base: Integers
    sides: Booleans
    beside: Integers
    where: Where


def shown_values(oracle: System, places: Sequence[tuple[str, Where]]) -> list[Booleans]:
    """Flags of the values with answers above 0, for each attribute and sub-population."""
    blocks = [
        Block(attribute=name, selections=np.eye(len(oracle.values(name)), dtype=np.bool_), where=where)
        for name, where in places
    ]
    return [answers > 0 for answers in oracle.ask_all(blocks)]


def ask_partitions(oracle: System, wanted: Sequence[Partitions], progress: Progress | None = None) -> None:
    """Ask about two-partitions and add the answers to their counts, in as few turns as memory allows."""
    turns: list[Partitions] = []
    for one in wanted:
        portion = max(1, MAX_FLAGS // (2 * len(oracle.values(one.attribute))))
        turns += [replace(one, sides=one.sides[k : k + portion]) for k in range(0, len(one.sides), portion)]
    batch: list[tuple[SetCount, Block]] = []
    size = 0
    for i, turn in enumerate(turns):
        rows = both_sides(len(oracle.values(turn.attribute)), turn.base, turn.sides, turn.beside)
        batch.append((turn.count, Block(attribute=turn.attribute, selections=rows, where=turn.where)))
        size += rows.size
        if size >= MAX_FLAGS or i == len(turns) - 1:
            for (count, block), answers in zip(batch, oracle.ask_all([block for _, block in batch]), strict=True):
                count.add_block(block, answers)
            batch, size = [], 0
            if progress is not None:
                progress((i + 1) / len(turns))


class Supply:
    """The supply of different questions about one attribute's values, with which it counts sets of values.

    Parameters
    ----------
    noisy
        The published answers, shape (values,).
    questions
        The largest number of questions in all, those for `noisy` included; near this limit other attributes are left
        out. None: no limit.

    Attributes
    ----------
    not_empty
        Flags of the values that certainly have people although their answers are 0; shape (values,).
    """

    def __init__(
        self,
        oracle: System,
        rng: np.random.Generator,
        attribute: str,
        noisy: Integers,
        where: Where | None = None,
        *,
        questions: int | None = None,
    ) -> None:
        self._workarounds: dict[str, dict[str, None]] = {}
        self.not_empty = np.zeros(len(noisy), np.bool_)
        self._oracle, self._rng, self._attribute, self._noisy = oracle, rng, attribute, noisy
        self._where = dict(where or {})
        self._sizes = {  # numbers of values of the other attributes; more than 1,024 values take too many questions
            name: size
            for name in oracle.attributes
            if name not in {attribute, *self._where} and 2 <= (size := len(oracle.values(name))) <= 1024
        }
        self._tried = False
        self._limit = math.inf if questions is None else questions + oracle.asked - len(noisy)

    @property
    def left(self) -> float:
        """The number of questions that may still be asked."""
        return self._limit - self._oracle.asked

    def overhead(self, base: Integers, k: int) -> int:
        """The number of questions a count needs beside its partitions, to find other attributes' answers above 0."""
        enough = number_of_partitions(int(np.count_nonzero(self._noisy[base])) - 1) >= k
        return 0 if enough else sum(self._sizes.values())

    @property
    def workarounds(self) -> tuple[str, ...]:
        """Notes on steps other than partitioning the attribute's values."""
        return tuple(f"{text}: {', '.join(names)}" if names else text for text, names in self._workarounds.items())

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
        tried = np.flatnonzero(self._noisy == 0)[:64]  # each value takes two questions
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
        self, sets: Sequence[Integers], k: int, progress: Progress | None = None, *, again: Sequence[Integers] = ()
    ) -> list[Average]:
        """Count the people with a value of each set (positions), by about `k` two-partitions or as many answers.

        A set without an answer above 0 has `information` 0. `again`: sets to count by another attribute, for
        comparison; their averages come last, and are left out without another attribute, or with a limit of questions.
        """
        counts, checks = [SetCount(values) for values in sets], [SetCount(values) for values in again]
        compared = [
            self._partition_largest_other(check, k) for check in checks if self._sizes and self.left == math.inf
        ]
        own = [one for count in counts if (one := self._partition_own_values(count, k))]
        ask_partitions(self._oracle, [*compared, *own], progress)
        if short := [count for count in counts if count.missing(k) > 0]:
            self._ask_other_attributes(short, k)
        for count in counts:
            if not count.has_sums:
                self._take_whole(count)
        counted = (*counts, *(check for check in checks if check.sums))
        return [average(count.sums, tuple(count.asked)) for count in counted]

    def _partition_largest_other(self, count: SetCount, k: int) -> Partitions:
        """Partition the values of the other attribute with the most values, within the set."""
        name = max(self._sizes, key=lambda name: self._sizes[name])
        base = np.arange(self._sizes[name])
        sides = two_partitions(self._rng, len(base), min(k, PILOT_PARTITIONS))
        where = self._where_within(count.values)
        return Partitions(count=count, attribute=name, base=base, sides=sides, beside=base[:0], where=where)

    def _partition_own_values(self, count: SetCount, k: int) -> Partitions | None:
        """Partition the attribute's own values (section 4.2.2); None where fewer than two values have people."""
        shown = count.values[self._noisy[count.values] > 0]
        extra = count.values[self.not_empty[count.values]]
        if number_of_partitions(len(shown)) >= k or not len(extra):
            extra = extra[:0]
        beside = np.setdiff1d(count.values, np.concatenate([shown, extra]))
        if len(shown) >= 2:
            base, sides = np.append(shown, extra), two_partitions(self._rng, len(shown), k, len(extra))
        elif len(extra) + len(shown) >= 2:  # 2·k: partitions with a suppressed side will be left out
            base, sides = np.append(extra, shown), two_partitions(self._rng, len(extra) + len(shown), 2 * k)
        else:
            return None
        if len(extra):
            self._workarounds.setdefault("suppressed values that have people were partitioned too (appendix C)", {})
        return Partitions(
            count=count, attribute=self._attribute, base=base, sides=sides, beside=beside, where=self._where
        )

    def _ask_other_attributes(self, counts: Sequence[SetCount], k: int) -> None:
        """Partition the values of other attributes within the set (appendix C, second workaround)."""
        names = sorted(self._sizes, key=lambda name: self._sizes[name])
        while names and len(counts) * sum(self._sizes[name] for name in names) > self.left / 2:
            names.pop()
        wheres = [self._where_within(count.values) for count in counts]
        shown = iter(shown_values(self._oracle, [(name, where) for where in wheres for name in names]))
        most = self.left / (2 * len(counts))
        wanted = []
        for count, where in zip(counts, wheres, strict=True):
            missing = int(min(count.missing(k), most))
            flagged = {name: next(shown) for name in names}
            for name, flags in sorted(flagged.items(), key=lambda item: -np.count_nonzero(item[1])):
                base, beside = np.flatnonzero(flags), np.flatnonzero(~flags)
                if missing <= 0 or len(base) < 2:
                    break
                sides = two_partitions(self._rng, len(base), missing)
                missing -= len(sides)
                wanted.append(
                    Partitions(count=count, attribute=name, base=base, sides=sides, beside=beside, where=where)
                )
                note = "other attributes were partitioned too (appendix C)"
                self._workarounds.setdefault(note, {})[name] = None
        ask_partitions(self._oracle, wanted)

    def _take_whole(self, count: SetCount) -> None:
        """Take the published answer itself as the sum of a set that has no usable partition."""
        row = np.zeros((1, len(self._noisy)), np.bool_)
        row[0, count.values] = True
        count.sums.append(Sums.of(self._oracle.ask(self._attribute, row, self._where)[None]))
        if count.has_sums:
            self._workarounds.setdefault("counts without a usable partition were taken as published", {})

    def _where_within(self, values: Integers) -> Where:
        """The sub-population of the people with one of the values, given by their positions."""
        known = self._oracle.values(self._attribute)
        return {**self._where, self._attribute: tuple(known[i] for i in values)}
