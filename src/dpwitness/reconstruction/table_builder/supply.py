"""How many questions a count takes, and where enough different ones come from.

Asghar & Kaafar (2020), section 4.2.2, and appendix C for attributes that allow too few partitions of their own: those
suppressed values that certainly have people are partitioned as well, then the values of other attributes within the
counted set.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np

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
from dpwitness.reconstruction.table_builder.systems import MISSING, Block, System
from dpwitness.reconstruction.table_builder.tables import BoolArray, IntArray, Where

#: Two-partitions for a noise of variance 1. The mean then has 0.14 people of standard error, and rounds wrong once in
#: 2,400 times: what the paper's 200 two-partitions give at r = 2, variance 2.
PER_VARIANCE: Final = 100
#: The base set gets so many times as many: if its count is wrong so are all, which happens once in 10⁷ times.
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

    def partitions_for(self, variance: float, values: int, left: float) -> int:
        """Two-partitions for each of so many values against noise of that variance (people²).

        Raises `InvalidParameter` where the questions that are left do not suffice for one each.
        """
        k = self.partitions or max(1, min(math.ceil(PER_VARIANCE * variance), MAX_PARTITIONS // 4))
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
        """Two-partitions of the base set, where each of so many values gets k."""
        return self.base_partitions or min(math.ceil(self._factor(values) * k), MAX_PARTITIONS)

    def _factor(self, values: int) -> float:
        return BASE_FACTOR if values > 1 else 1.0


#: Called after each share of the questions with the share that is done.
Progress: TypeAlias = Callable[[float], None]
#: Flags of selections that are held at once; more questions are asked in turns.
MAX_FLAGS = 1 << 25
#: Bytes of selections that are kept of each count, for the checks that are made of single answers.
MAX_KEPT: Final = 1 << 20


@dataclass(slots=True)
class SetCount:
    """The count of a set of values, by their positions: the sums so far.

    `asked`: single answers, for the checks that are made of these, up to `MAX_KEPT`.
    """

    values: IntArray
    sums: list[Sums] = field(default_factory=list)
    asked: list[AnsweredBlock] = field(default_factory=list)

    def missing(self, k: int) -> int:
        """How many two-partitions are missing to `k`; those into more parts count for less."""
        return k - int(sum(2 * len(one.totals) / one.parts for one in self.sums))

    def add_block(self, block: Block, answers: IntArray) -> None:
        """Two-partitions, as of `both_sides`, and their answers; of each both sides are kept, or none."""
        self.sums.append(Sums.of(answers.reshape(2, -1)))
        half, width = len(answers) // 2, -(-block.selections.shape[1] // 8)
        left = MAX_KEPT - sum(one.bits.nbytes for one in self.asked)
        rows = np.arange(min(half, left // (2 * width)))
        rows = np.concatenate([rows, rows + half])
        self.asked.append(
            AnsweredBlock(
                attribute=block.attribute,
                where=block.where,
                bits=np.packbits(block.selections[rows], axis=1),
                width=block.selections.shape[1],
                answers=answers[rows],
            )
        )

    @property
    def has_sums(self) -> bool:
        """Whether there is a partition of which all answers are usable."""
        return any(len(one.totals) for one in self.sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """Two-partitions to be asked for (see `both_sides`), within a sub-population, and for which count."""

    count: SetCount
    attribute: str
    base: IntArray
    sides: BoolArray
    beside: IntArray
    where: Where


def shown_values(oracle: System, places: Sequence[tuple[str, Where]]) -> list[BoolArray]:
    """For each attribute and sub-population: which of its values have answers above 0."""
    blocks = [
        Block(attribute=name, selections=np.eye(len(oracle.values(name)), dtype=np.bool_), where=where)
        for name, where in places
    ]
    return [answers > 0 for answers in oracle.ask_all(blocks)]


def ask_partitions(oracle: System, wanted: Sequence[Partitions], progress: Progress | None = None) -> None:
    """Ask for two-partitions and add them to their counts, in as few turns as memory allows."""
    turns: list[Partitions] = []
    for one in wanted:  # in portions that fit into memory
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


#: Suppressed values that are tried whether they have people, and values of an attribute that is partitioned.
MAX_TRIED, MAX_VALUES = 64, 1024
SUPPRESSED: Final = "suppressed values that have people were partitioned too (appendix C)"
OTHERS: Final = "other attributes were partitioned too (appendix C)"
WHOLE: Final = "what no partition reaches was taken as published"


class Supply:
    """Counts sets of values of one attribute, each by as many different questions as are wanted, if there are any.

    Parameters
    ----------
    noisy
        The published answers, shape (values,).
    plan
        Of it `same_partitions`, and `questions`, those for `noisy` included: near that limit other attributes are left
        out.

    Attributes
    ----------
    not_empty
        Which values certainly have people although their answers are 0; shape (values,).
    """

    def __init__(
        self,
        oracle: System,
        rng: np.random.Generator,
        attribute: str,
        noisy: IntArray,
        plan: Plan | None = None,
        where: Where | None = None,
    ) -> None:
        self._workarounds: dict[str, dict[str, None]] = {}
        self.not_empty = np.zeros(len(noisy), np.bool_)
        self._oracle, self._rng, self._attribute, self._noisy = oracle, rng, attribute, noisy
        self._where = dict(where or {})
        self._sizes = {  # of other attributes that may be partitioned
            name: size
            for name in oracle.attributes
            if name not in {attribute, *self._where} and 2 <= (size := len(oracle.values(name))) <= MAX_VALUES
        }
        self._tried, plan = False, plan or Plan()
        self._seed = int(rng.integers(1 << 63)) if plan.same_partitions else None
        self._limit = math.inf if plan.questions is None else plan.questions + oracle.asked - len(noisy)

    @property
    def left(self) -> float:
        """How many questions may still be asked."""
        return self._limit - self._oracle.asked

    def overhead(self, base: IntArray, k: int) -> int:
        """Questions of a count beside its partitions: which values of other attributes have answers above 0."""
        enough = number_of_partitions(int(np.count_nonzero(self._noisy[base])) - 1) >= k
        return 0 if enough else sum(self._sizes.values())

    @property
    def workarounds(self) -> tuple[str, ...]:
        """Notes on what was done beside partitioning the attribute's values."""
        return tuple(f"{text}: {', '.join(names)}" if names else text for text, names in self._workarounds.items())

    def base(self, given: int | tuple[int, ...], k: int) -> IntArray:
        """Positions of a base set: those given, or at most so many of the largest answers.

        Where without one of them fewer than `k` two-partitions are left, values join that are suppressed but certainly
        have people. Raises `InvalidParameter` for given ones without an answer above 0, and where there is none.
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
            self._certify()
        return np.sort(np.concatenate([shown, np.flatnonzero(self.not_empty)]))

    def _certify(self) -> None:
        """Find suppressed values that have people: beside a helper, they change its answer (appendix C, section 9).

        Under uniform noise a value with people is missed with probability up to 1/(2r+1) by each of the helpers.
        """
        helpers = np.argsort(-self._noisy, kind="stable")[: min(2, np.count_nonzero(self._noisy))]
        tried = np.flatnonzero(self._noisy == 0)[:MAX_TRIED]
        if self._tried or not len(tried) or len(helpers) * len(tried) > self.left / 4:
            return
        self._tried = True
        selections = np.zeros((len(helpers), len(tried), len(self._noisy)), np.bool_)
        for rows, helper in zip(selections, helpers, strict=True):
            rows[np.arange(len(tried)), tried] = True
            rows[:, helper] = True
        answers = self._oracle.ask(self._attribute, selections.reshape(-1, len(self._noisy)), self._where)
        answers = answers.reshape(len(helpers), -1)
        self.not_empty[tried] = np.any((answers != self._noisy[helpers][:, None]) & (answers != MISSING), axis=0)

    def count(
        self, sets: Sequence[IntArray], k: int, progress: Progress | None = None, *, again: Sequence[IntArray] = ()
    ) -> list[Average]:
        """Count the people with a value of each set (positions), by about `k` two-partitions or what is worth as much.

        A set of which no answer is above 0, or came, has no `information`. `again`: sets that are counted by another
        attribute as well, to compare, where there is one and no limit on questions; these come last, or not at all.
        """
        counts, checks = [SetCount(values) for values in sets], [SetCount(values) for values in again]
        compared = [self._by_largest_other(check, k) for check in checks if self._sizes and self.left == math.inf]
        own = [one for count in counts if (one := self._by_own_values(count, k))]
        ask_partitions(self._oracle, [*compared, *own], progress)
        if short := [count for count in counts if count.missing(k) > 0]:
            self._by_others(short, k)
        for count in counts:
            if not count.has_sums:
                self._take_whole(count)
        counted = (*counts, *(check for check in checks if check.sums))
        return [average(count.sums, tuple(count.asked)) for count in counted]

    def _by_largest_other(self, count: SetCount, k: int) -> Partitions:
        """Partitions of the other attribute with the most values: in the same round of questions as all others."""
        name = max(self._sizes, key=lambda name: self._sizes[name])
        base = np.arange(self._sizes[name])
        sides = two_partitions(self._rng, len(base), min(k, PILOT))
        where = self._within(count.values)
        return Partitions(count=count, attribute=name, base=base, sides=sides, beside=base[:0], where=where)

    def _by_own_values(self, count: SetCount, k: int) -> Partitions | None:
        """Partitions of the attribute's own values (section 4.2.2); None where there are too few."""
        shown = count.values[self._noisy[count.values] > 0]
        extra = count.values[self.not_empty[count.values]]
        if number_of_partitions(len(shown)) >= k or not len(extra):
            extra = extra[:0]
        beside = np.setdiff1d(count.values, np.concatenate([shown, extra]))
        rng = self._rng if self._seed is None else np.random.default_rng(self._seed)
        if len(shown) >= 2:
            base, sides = np.append(shown, extra), two_partitions(rng, len(shown), k, len(extra))
        elif len(extra) + len(shown) >= 2:  # either side may turn out to be suppressed, and is left out then
            base, sides = np.append(extra, shown), two_partitions(rng, len(extra) + len(shown), 2 * k)
        else:
            return None
        if len(extra):
            self._workarounds.setdefault(SUPPRESSED, {})
        return Partitions(
            count=count, attribute=self._attribute, base=base, sides=sides, beside=beside, where=self._where
        )

    def _by_others(self, counts: Sequence[SetCount], k: int) -> None:
        """Partition the values of other attributes within the set (appendix C, second workaround)."""
        names = sorted(self._sizes, key=lambda name: self._sizes[name])
        while names and len(counts) * sum(self._sizes[name] for name in names) > self.left / 2:
            names.pop()
        wheres = [self._within(count.values) for count in counts]
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
                self._workarounds.setdefault(OTHERS, {})[name] = None
        ask_partitions(self._oracle, wanted)

    def _take_whole(self, count: SetCount) -> None:
        """The published answer itself, where nothing can be partitioned."""
        row = np.zeros((1, len(self._noisy)), np.bool_)
        row[0, count.values] = True
        count.sums.append(Sums.of(self._oracle.ask(self._attribute, row, self._where)[None]))
        if count.has_sums:
            self._workarounds.setdefault(WHOLE, {})

    def _within(self, values: IntArray) -> Where:
        known = self._oracle.values(self._attribute)
        return {**self._where, self._attribute: tuple(known[i] for i in values)}
