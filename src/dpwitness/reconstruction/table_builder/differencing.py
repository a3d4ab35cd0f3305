"""The differencing attack on a system that suppresses small counts and publishes all other counts exactly.

Asghar & Kaafar (2020), section 2.2: the answer for all people less the answer for all people without a value is the
value's count, however small.
"""

from dataclasses import dataclass

import numpy as np

from dpwitness.arrays import Booleans, Integers
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.report import Finding
from dpwitness.reconstruction.table_builder.averaging import usable, value_positions
from dpwitness.reconstruction.table_builder.systems import Block, QuerySystem
from dpwitness.reconstruction.table_builder.tables import AttributeValue, Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Counts of an attribute's values by differencing, and the answers that the system publishes for the values."""

    attribute: str
    where: Where
    values: tuple[AttributeValue, ...]
    counts: Integers
    published: Integers
    told: Booleans  # whether each count is known from the answers; a count that is not known is 0
    checks: int  # the number of further answers with which the counts were compared
    contradicted: tuple[str, ...]  # the assumptions of the attack that the answers contradict, in words
    note: str | None  # the reason why nothing is claimed although no answer contradicts the assumptions
    queries: int

    @property
    def finding(self) -> Finding:
        """The counts and their claims, by Laplace's rule of succession from the number of checks, which all agreed."""
        right = 0.0 if self.note else (self.checks + 1) / (self.checks + 2)
        return Finding(guess=self.counts, probability=np.where(self.told, right, 0.0), contradicted=self.contradicted)

    def to_json(self) -> dict[str, object]:
        """The attribute, values and numbers of questions, as a dict for JSON."""
        return {
            "where": {name: list(values) for name, values in self.where.items()},
            "attribute": self.attribute,
            "values": list(self.values),
            "published": self.published.tolist(),
            "checks": self.checks,
            "note": self.note,
            "queries": self.queries,
        }


def recover_suppressed(
    oracle: QuerySystem,
    rng: np.random.Generator,
    attribute: str,
    targets: tuple[int, ...] | None = None,
    *,
    where: Where | None = None,
    sets: int = 100,
    questions: int | None = None,
) -> Differences:
    """Recover the counts of an attribute's values among the people in `where`, suppressed counts included.

    Parameters
    ----------
    targets
        Positions of the values to count; None: all values.
    sets
        The largest number of checks by random sets of values: the answer for the people without the set's values must
        be the answer for all people less the counts of the set.
    questions
        The largest number of questions in all, which limits `sets`; None: no limit.

    Raises `InvalidParameter` for a suppressed or missing answer for all people, and for too few questions or values.
    """
    asked, known, where = oracle.asked, oracle.values(attribute), where or {}
    if (size := len(known)) < 2:
        raise InvalidParameter(f"attribute {attribute!r} has 1 value: differences need at least 2")
    wanted = np.arange(size) if targets is None else value_positions(oracle, attribute, targets)
    if questions is not None:
        if questions < (needed := size + 1 + len(wanted)):
            raise InvalidParameter(f"questions={questions} are too few: {len(wanted)} values need {needed}")
        sets = min(sets, questions - needed)
    single = np.eye(size, dtype=np.bool_)
    rows = [single, np.ones((1, size), np.bool_), ~single[wanted]]
    published, (total,), without = oracle.ask_all(
        [Block(attribute=attribute, selections=some, where=where) for some in rows]
    )
    if not usable(total):
        raise InvalidParameter(f"attribute {attribute!r}: the answer for all people is suppressed or missing")
    shown, taken = usable(published), usable(without)
    counts, told = np.where(shown, published, 0), shown.copy()
    counts[wanted[taken]], told[wanted[taken]] = total - without[taken], True
    # Values with both an answer and a difference are checks, too.
    agree = (published == counts)[wanted[taken & shown[wanted]]]
    pool = np.flatnonzero(told)
    left_out = _draw_sets(rng, len(pool), sets)
    selections = np.ones((len(left_out), size), np.bool_)
    selections[:, pool] = ~left_out
    answers = oracle.ask(attribute, selections, where)
    people = total - left_out.astype(np.int64) @ counts[pool]
    agree = np.append(agree, (answers == people)[usable(answers)])
    if told.all():
        agree = np.append(agree, counts.sum() == total)
    hidden = told & (published == 0)  # a missing answer is not suppressed
    came = np.concatenate([some[usable(some)] for some in (published, without, answers)])
    most_hidden = max(counts[hidden].max(initial=0), people[answers == 0].max(initial=0))
    contradictions = {
        "answers are not exact sums of the same counts: there is noise, or people came or left": not agree.all(),
        "a count is negative: the answers hold more than people": np.any(counts < 0),
        "a suppressed count is as large as a published count": most_hidden >= came.min(initial=total),
    }
    note, unit = None, np.gcd.reduce(came, initial=total)
    if not len(agree):
        note = "no answer is left to compare the counts with: allow more questions"
    elif unit > 1:
        note = f"all answers are multiples of {unit}: they may be rounded"
    elif not np.any(counts[hidden] > 0):
        note = "no suppressed count is above 0: nobody is hidden, or answers for several values add up published ones"
    return Differences(
        attribute=attribute,
        where=where,
        values=tuple(known[i] for i in wanted),
        counts=counts[wanted],
        published=np.where(shown, published, 0)[wanted],
        told=told[wanted],
        checks=len(agree),
        contradicted=tuple(text for text, found in contradictions.items() if found),
        note=note,
        queries=oracle.asked - asked,
    )


def _draw_sets(rng: np.random.Generator, size: int, number: int) -> Booleans:
    """Draw at most `number` different sets of 2 to `size` − 2 values; shape (sets, size)."""
    drawn = np.unique(rng.integers(0, 2, (number, size), np.bool_), axis=0)
    chosen = drawn.sum(axis=1)
    return np.asarray(rng.permutation(drawn[(chosen >= 2) & (chosen <= size - 2)]))
