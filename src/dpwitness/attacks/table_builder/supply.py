"""Enough different questions for one count, from where the attribute itself allows too few: appendix C's workarounds.

Asghar & Kaafar (2020), section 4.2.2 and appendix C. It sees nothing but answers.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.averaging import Removed, chosen_values, combined, halves, usable
from dpwitness.attacks.table_builder.partitions import how_many, two_partitions
from dpwitness.attacks.table_builder.plan import PILOT, Plan
from dpwitness.attacks.table_builder.protocol import MISSING, Block, System
from dpwitness.attacks.table_builder.table import Where
from dpwitness.attacks.table_builder.tally import Progress, Tally, Within, ask_partitions, shown_values
from dpwitness.errors import InvalidParameter

__all__ = ["Supply"]

Flags = NDArray[np.bool_]
Wholes = NDArray[np.int64]
#: Two-partitions to be asked for, and whose they are.
Asking: TypeAlias = tuple[Tally, Within, Flags]
#: Suppressed values that are tried whether they have people, and values of an attribute that is partitioned.
MOST_TRIED, MOST_VALUES = 64, 1024
SUPPRESSED = "suppressed values that have people were partitioned too (appendix C)"
OTHERS = "other attributes were partitioned too (appendix C)"
CROSSED = "two attributes were partitioned at once, four answers each (appendix C twice)"
WHOLE = "what no partition reaches was taken as published"


def _removed(tally: Tally) -> Removed:
    """The average of a tally's sums; without `information` where it has none."""
    if any(len(one.totals) for one in tally.sums):
        return combined(tally.sums, tally.queries)
    return Removed(mean=0.0, count=0, queries=tally.queries, kinds=(), information=0.0, squares=0.0, freedom=0)


def _silent(share: float) -> None:
    """Nobody watches the progress."""


class Supply:
    """Counts sets of values of one attribute, each by as many different questions as are wanted, if there are any.

    Parameters
    ----------
    noisy
        The published answers, shape (values,).
    plan
        Of it `same_partitions`, and `questions`, those for `noisy` included: near that limit other attributes are left
        out, and pairs of them with any limit.

    Attributes
    ----------
    sure
        Which values certainly have people although their answers are 0; shape (values,).
    """

    def __init__(
        self,
        oracle: System,
        rng: np.random.Generator,
        attribute: str,
        noisy: Wholes,
        plan: Plan | None = None,
        where: Where | None = None,
    ) -> None:
        self._used: dict[str, dict[str, None]] = {}
        self.sure = np.zeros(len(noisy), np.bool_)
        self._oracle, self._rng, self._attribute, self._noisy = oracle, rng, attribute, noisy
        self._where = dict(where or {})
        fixed = {attribute, *self._where}
        self._others = [
            name for name in oracle.attributes if name not in fixed and 2 <= len(oracle.values(name)) <= MOST_VALUES
        ]
        self._tried, plan = False, plan or Plan()
        self._seed = int(rng.integers(1 << 63)) if plan.same_partitions else None
        self._limit = math.inf if plan.questions is None else plan.questions + oracle.asked - len(noisy)

    @property
    def left(self) -> float:
        """How many questions may still be asked."""
        return self._limit - self._oracle.asked

    def overhead(self, base: Wholes, k: int) -> int:
        """Questions of a count beside its partitions: which values of other attributes have answers above 0."""
        enough = how_many(int(np.count_nonzero(self._noisy[base])) - 1) >= k
        return 0 if enough else sum(len(self._oracle.values(name)) for name in self._others)

    @property
    def workarounds(self) -> tuple[str, ...]:
        """What had to be done beside partitioning the attribute's values, in words."""
        return tuple(f"{text}: {', '.join(names)}" if names else text for text, names in self._used.items())

    def base(self, given: int | tuple[int, ...], k: int) -> Wholes:
        """Positions of a base set: those given, or at most so many of the largest answers.

        Where without one of them fewer than `k` two-partitions are left, values join that are suppressed but certainly
        have people. Raises `InvalidParameter` for given ones without an answer above 0, and where there is none.
        """
        if isinstance(given, tuple):
            chosen = chosen_values(self._oracle, self._attribute, given)
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
        if how_many(len(shown) - 1) < k and len(shown) < given:
            self._certify()
        return np.sort(np.concatenate([shown, np.flatnonzero(self.sure)]))

    def _certify(self) -> None:
        """Find suppressed values that have people: beside a helper, they change its answer (appendix C, section 9)."""
        helpers = np.argsort(-self._noisy, kind="stable")[: min(2, np.count_nonzero(self._noisy))]
        tried = np.flatnonzero(self._noisy == 0)[:MOST_TRIED]
        if self._tried or not len(tried) or len(helpers) * len(tried) > self.left / 4:
            return
        self._tried = True
        selections = np.zeros((len(helpers) * len(tried), len(self._noisy)), np.bool_)
        for i, helper in enumerate(helpers):
            rows = np.arange(i * len(tried), (i + 1) * len(tried))
            selections[rows, tried] = True
            selections[rows, helper] = True
        answers = self._oracle.ask(self._attribute, selections, self._where).reshape(len(helpers), -1)
        self.sure[tried] = np.any((answers != self._noisy[helpers][:, None]) & (answers != MISSING), axis=0)

    def count(
        self, sets: Sequence[Wholes], k: int, progress: Progress | None = None, *, again: Sequence[Wholes] = ()
    ) -> list[Removed]:
        """Count the people with a value of each set (positions), by about `k` two-partitions or what is worth as much.

        A set of which no answer is above 0, or came, has no `information`. `again`: sets that are counted by another
        attribute as well, to compare, where there is one and no limit on questions; these come last, or not at all.
        """
        tallies, checks = [Tally() for _ in sets], [Tally() for _ in again]
        self._own(tallies, sets, k, progress or _silent, self._again(checks, again, k))
        for more in (self._partition_others, self._cross) if self.left == math.inf else (self._partition_others,):
            short = [i for i, tally in enumerate(tallies) if tally.missing(k) > 0]
            if short:
                more([tallies[i] for i in short], [sets[i] for i in short], k)
        for tally, values in zip(tallies, sets, strict=True):
            if not any(len(one.totals) for one in tally.sums):
                self._take_whole(tally, values)
        tallies += [tally for tally in checks if tally.sums]
        return [replace(_removed(tally), asked=tuple(tally.asked)) for tally in tallies]

    def _again(self, tallies: Sequence[Tally], sets: Sequence[Wholes], k: int) -> list[Asking]:
        """Partitions of the other attribute with the most values: in the same round of questions as all others."""
        sizes = {name: len(self._oracle.values(name)) for name in self._others}
        if not sizes or self.left < math.inf:
            return []
        name = max(sizes, key=lambda name: sizes[name])
        base = np.arange(sizes[name])
        withins = [Within(attribute=name, base=base, beside=base[:0], where=self._within(values)) for values in sets]
        sides = [two_partitions(self._rng, len(base), min(k, PILOT)) for _ in sets]
        return list(zip(tallies, withins, sides, strict=True))

    def _own(
        self, tallies: Sequence[Tally], sets: Sequence[Wholes], k: int, progress: Progress, more: list[Asking]
    ) -> None:
        """Partition the attribute's own values (section 4.2.2), and ask what else there is."""
        plans = list(more)
        for tally, values in zip(tallies, sets, strict=True):
            shown = values[self._noisy[values] > 0]
            extra = values[self.sure[values]]
            if how_many(len(shown)) >= k or not len(extra):
                extra = extra[:0]
            beside = np.setdiff1d(values, np.concatenate([shown, extra]))
            rng = self._rng if self._seed is None else np.random.default_rng(self._seed)
            if len(shown) >= 2:
                base, sides = np.append(shown, extra), two_partitions(rng, len(shown), k, len(extra))
            elif len(extra) + len(shown) >= 2:  # either side may turn out to be suppressed, and is left out then
                base, sides = np.append(extra, shown), two_partitions(rng, len(extra) + len(shown), 2 * k)
            else:
                continue
            if len(extra):
                self._used.setdefault(SUPPRESSED, {})
            within = Within(attribute=self._attribute, base=base, beside=beside, where=self._where)
            plans.append((tally, within, sides))
        ask_partitions(self._oracle, plans, progress)

    def _partition_others(self, tallies: Sequence[Tally], sets: Sequence[Wholes], k: int) -> None:
        """Partition the values of other attributes within the set (appendix C, second workaround)."""
        names = sorted(self._others, key=lambda name: len(self._oracle.values(name)))
        while names and len(sets) * sum(len(self._oracle.values(name)) for name in names) > self.left / 2:
            names.pop()
        wheres = [self._within(values) for values in sets]
        shown = shown_values(self._oracle, [(name, where) for where in wheres for name in names])
        most = self.left / (2 * len(sets))
        plans = []
        for i, (tally, where) in enumerate(zip(tallies, wheres, strict=True)):
            tally.queries += sum(len(self._oracle.values(name)) for name in names)
            missing = int(min(tally.missing(k), most))
            tally.shown = {name: shown[i * len(names) + j] for j, name in enumerate(names)}
            for name, flags in sorted(tally.shown.items(), key=lambda item: -np.count_nonzero(item[1])):
                base, beside = np.flatnonzero(flags), np.flatnonzero(~flags)
                if missing <= 0 or len(base) < 2:
                    break
                within = Within(attribute=name, base=base, beside=beside, where=where)
                sides = two_partitions(self._rng, len(base), missing)
                plans.append((tally, within, sides))
                missing -= len(sides)
                self._used.setdefault(OTHERS, {})[name] = None
        ask_partitions(self._oracle, plans, _silent)

    def _cross(self, tallies: Sequence[Tally], sets: Sequence[Wholes], k: int) -> None:
        """Partition two attributes at once: the people of a set fall into four parts."""
        for tally, values in zip(tallies, sets, strict=True):
            missing = tally.missing(k)
            places: list[tuple[str, Where]] = []
            for name, first, second in self._pairs(tally, values, missing):
                rest = self._where if name == self._attribute else self._within(values)
                places += [(name, {**rest, **first}), (name, {**rest, **second})]
            shown = shown_values(self._oracle, places)
            tally.queries += sum(len(flags) for flags in shown)
            blocks: list[Block] = []
            for i in range(0, len(places), 2):
                name, both = places[i][0], shown[i] & shown[i + 1]
                counted = np.isin(np.arange(len(both)), values) | (name != self._attribute)
                base = np.flatnonzero(both & counted)
                if missing <= 0 or len(base) < 2:
                    continue
                sides = two_partitions(self._rng, len(base), 2 * missing)
                rows = halves(len(both), base, sides, np.flatnonzero(~both & counted))
                blocks += [Block(attribute=name, selections=rows, where=places[i + j][1]) for j in (0, 1)]
                missing -= len(sides) // 2
            answers = self._oracle.ask_all(blocks)
            for one, other in zip(answers[::2], answers[1::2], strict=True):
                tally.add(np.vstack([one.reshape(2, -1), other.reshape(2, -1)]))
                tally.queries += 2 * len(one)
                self._used.setdefault(CROSSED, {})

    def _pairs(self, tally: Tally, values: Wholes, missing: int) -> Iterator[tuple[str, Where, Where]]:
        """An attribute to be partitioned and two halves by another one, until these are surely enough."""
        sizes = {name: int(np.count_nonzero(flags)) for name, flags in tally.shown.items()}
        sizes[self._attribute] = int(np.count_nonzero(self._noisy[values]))
        usable = [name for name, size in sizes.items() if size >= 2]
        usable.sort(key=lambda name: (name != self._attribute, -sizes[name]))
        left = 1.5 * missing
        for parted, halved in combinations(usable, 2):  # the other way round the four parts are the same
            if left <= 0:
                return
            known, shown = self._oracle.values(halved), tally.shown[halved]
            worth = how_many(min(sizes[parted], 20)) / 2
            for side in two_partitions(self._rng, sizes[halved], max(1, math.ceil(left / worth))):
                first = np.flatnonzero(shown)[side]
                left -= worth
                yield (
                    parted,
                    {halved: tuple(known[i] for i in first)},
                    {halved: tuple(known[i] for i in np.setdiff1d(np.arange(len(known)), first))},
                )

    def _take_whole(self, tally: Tally, values: Wholes) -> None:
        """The published answer itself, where nothing can be partitioned."""
        row = np.zeros((1, len(self._noisy)), np.bool_)
        row[0, values] = True
        answer = self._oracle.ask(self._attribute, row, self._where)
        tally.queries += 1
        if usable(answer).all():
            tally.add(answer[None])
            self._used.setdefault(WHOLE, {})

    def _within(self, values: Wholes) -> Where:
        known = self._oracle.values(self._attribute)
        return {**self._where, self._attribute: tuple(known[i] for i in values)}
