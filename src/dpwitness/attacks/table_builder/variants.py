"""Averaging where two-partitions are not needed, not answered, or watched: repeating, three-partitions, splitting.

Asghar & Kaafar (2020), sections 2.2, 7.2 and 9. They see nothing but answers.
"""

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.averaging import Removed, Sums, chosen_values, combined, compared, nearest
from dpwitness.attacks.table_builder.partitions import several_partitions
from dpwitness.attacks.table_builder.protocol import Block, System
from dpwitness.attacks.table_builder.table import Where
from dpwitness.attacks.table_builder.tally import Within

__all__ = ["in_parts", "recover_by_repeating", "recover_by_splitting", "recover_in_parts"]

Wholes = NDArray[np.int64]


def recover_by_repeating(
    oracle: System, attribute: str, targets: Wholes, times: int, *, where: Where | None = None
) -> list[int]:
    """Against fresh noise a question: ask everything `times` times (section 2.2), the total 2.5 times as often.

    A value whose answer is 0 is what is missing to the total where it is left out.
    """
    eye = np.eye(len(oracle.values(attribute)), dtype=np.bool_)
    shown = oracle.ask(attribute, eye[targets], where) > 0
    total = oracle.ask(attribute, np.ones((5 * times // 2, len(eye)), np.bool_), where).mean()
    counts = []
    for value, is_shown in zip(targets.tolist(), shown.tolist(), strict=True):
        row = eye[value] if is_shown else ~eye[value]
        mean = oracle.ask(attribute, np.tile(row, (times, 1)), where).mean()
        counts.append(max(nearest(mean if is_shown else nearest(total) - mean), 0))
    return counts


def in_parts(oracle: System, rng: np.random.Generator, within: Within, k: int, parts: int) -> Removed:
    """The noise remover with `k` partitions into `parts` sets (section 7.2), `parts` answers each.

    Two questions never cover the counted values, so that an audit of two-partitions sees none. The variance of the mean
    is parts·Var(E)/k. Values beside the base lie in the last set.
    """
    labels = several_partitions(rng, len(within.base), k, parts)
    selections = np.zeros((parts, len(labels), len(oracle.values(within.attribute))), np.bool_)
    for part in range(parts):
        selections[part][:, within.base] = labels == part
    selections[-1][:, within.beside] = True
    answers = oracle.ask(within.attribute, selections.reshape(-1, selections.shape[-1]), within.where)
    return combined([Sums.of(answers.reshape(parts, -1))], len(answers))


def recover_in_parts(
    oracle: System, rng: np.random.Generator, attribute: str, base: Wholes, targets: Wholes, k: int
) -> list[int]:
    """The histogram attack with three-partitions: k for each target, 2.5·k for the base set."""

    def count(values: Wholes, beside: tuple[int, ...], number: int) -> int:
        within = Within(attribute=attribute, base=values, beside=np.array(beside, np.int64), where={})
        return in_parts(oracle, rng, within, number, 3).count

    base = chosen_values(oracle, attribute, base)
    eye = np.eye(len(oracle.values(attribute)), dtype=np.bool_)
    shown = oracle.ask(attribute, eye[targets]) > 0
    first = count(base, (), 5 * k // 2)
    counts = []
    for value, is_shown in zip(targets.tolist(), shown.tolist(), strict=True):
        other, beside, sign = compared(base, value, is_shown)
        counts.append(max(sign * (count(other, beside, k) - first), 0))
    return counts


def recover_by_splitting(oracle: System, attribute: str, targets: Wholes) -> tuple[list[int], Removed]:
    """Split averaging (section 9): everybody is those with a value and those without it, for every value there is.

    Needs no "or", only "not": for each value b of each attribute, (b) + (not b); and for everybody but those with the
    target a, (b and not a) + (not b and not a). There are as many sums as values with answers above 0, and no more.
    Returns the counts of the targets, and the count of everybody.
    """
    everybody = _split(oracle, attribute, None)
    counts = [max(everybody.count - _split(oracle, attribute, int(value)).count, 0) for value in targets]
    return counts, everybody


def _split(oracle: System, attribute: str, without: int | None) -> Removed:
    """Count everybody, or all without one value, by splitting at each value of each attribute."""
    known = oracle.values(attribute)
    rest = [value for i, value in enumerate(known) if i != without]
    blocks = []
    for name in oracle.attributes:
        eye = np.eye(len(oracle.values(name)), dtype=np.bool_)
        where: Where = {}
        if name != attribute:
            one_side = eye[:1] if len(eye) == 2 else eye  # two values make one partition
            rows = np.vstack([one_side, ~one_side])
            where = {} if without is None else {attribute: tuple(rest)}
        else:
            kept = np.arange(len(eye)) != (-1 if without is None else without)
            rows = np.vstack([eye[kept], (~eye & kept)[kept]])
        blocks.append(Block(attribute=name, selections=rows, where=where))
    answers = oracle.ask_all(blocks)
    return combined([Sums.of(one.reshape(2, -1)) for one in answers], sum(len(one) for one in answers))
