"""Averaging where two-partitions are not needed, not answered, or watched: repeating, three-partitions, splitting.

Asghar & Kaafar (2020), sections 2.2, 7.2 and 9. They see nothing but answers.

Attacks where averaging within one attribute does not do: differencing, and workarounds for few answers above 0.

Asghar & Kaafar (2020), sections 2.2 and 9, and appendix C. They see nothing but answers.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder.averaging import (
    Removed,
    Sums,
    average,
    choose_base,
    chosen_values,
    combined,
    compared,
    nearest,
    remove_noise,
    several_partitions,
    two_partitions,
)
from dpwitness.reconstruction.table_builder.supply import Within
from dpwitness.reconstruction.table_builder.systems import Block, System, Where

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


def not_empty(oracle: System, attribute: str, value: int, helpers: Sequence[int], where: Where | None = None) -> bool:
    """Whether a suppressed value certainly has people: with it, a helper's answer changes (appendix C; section 9).

    Under uniform noise a value with people is missed with probability up to (2r+1)^−len(helpers). Answers of helpers
    must be above 0.
    """
    selections = np.zeros((2 * len(helpers), len(oracle.values(attribute))), np.bool_)
    for i, helper in enumerate(helpers):
        selections[[2 * i, 2 * i + 1], helper] = True
        selections[2 * i + 1, value] = True
    answers = oracle.ask(attribute, selections, where)
    return bool(np.any(answers[::2] != answers[1::2]))


def count_from_two(
    oracle: System,
    rng: np.random.Generator,
    attribute: str,
    pair: tuple[int, int],
    suppressed: Sequence[int],
    k: int | None = None,
    *,
    where: Where | None = None,
) -> Removed:
    """Count the people with one of the given values where only two answers are above 0 (appendix C, first workaround).

    The suppressed values that certainly have people are partitioned; one of the pair goes to each side, so that neither
    side is suppressed and each new side brings new noise. The others stay on the second side.
    """
    asked = oracle.asked
    pair_, rest = chosen_values(oracle, attribute, pair), chosen_values(oracle, attribute, suppressed)
    shown = np.array([not_empty(oracle, attribute, int(value), list(pair), where) for value in rest], np.bool_)
    if np.count_nonzero(shown) < 2:
        raise InvalidParameter(
            f"attribute {attribute!r}: only {np.count_nonzero(shown)} of {len(rest)} suppressed values show that they "
            "have people; at least 2 are needed"
        )
    inner = two_partitions(rng, int(np.count_nonzero(shown)), k)
    ends = np.tile(np.array([True, False]), (len(inner), 1))
    found = average(
        oracle, attribute, np.concatenate([pair_, rest[shown]]), np.hstack([ends, inner]), rest[~shown], where
    )
    return replace(found, queries=oracle.asked - asked)


def count_by_other_attribute(
    oracle: System,
    rng: np.random.Generator,
    where: Where,
    other: str,
    k: int | None = None,
    *,
    base_size: int = 12,
) -> Removed:
    """Count a sub-population by two-partitions of another attribute (appendix C, second workaround).

    `where`: for instance {"age": [17]}. Up to `base_size` values of the other attribute with answers above 0 are
    partitioned, its other values stay on one side: everybody has one of them.
    """
    asked = oracle.asked
    base = choose_base(oracle, other, base_size, where)
    beside = np.setdiff1d(np.arange(len(oracle.values(other))), base)
    found = remove_noise(oracle, rng, other, base, k, beside=beside, where=where)
    return replace(found, queries=oracle.asked - asked)


def subtract(oracle: System, attribute: str, value: int, where: Where | None = None) -> int:
    """The differencing attack of section 2.2: all people minus all but those with the value.

    Exact against mere suppression; against noise within ±r the difference is off by up to 2r.
    """
    selections = np.ones((2, len(oracle.values(attribute))), np.bool_)
    selections[1, chosen_values(oracle, attribute, [value])] = False
    total, without = oracle.ask(attribute, selections, where)
    return int(total - without)


def shows_absence(oracle: System, attribute: str, value: int, where: Where) -> bool:
    """The differencing attack of section 9: whether somebody in the group certainly lacks the value.

    The attacker knows that all of the group but perhaps one, the target, have the value. If the answers for the group
    and for those of it with the value differ, the target lacks it. Equal answers happen by chance as often as two
    noises differ by exactly 1.
    """
    selections = np.ones((2, len(oracle.values(attribute))), np.bool_)
    selections[1] = False
    selections[1, chosen_values(oracle, attribute, [value])] = True
    group, with_value = oracle.ask(attribute, selections, where)
    return bool(group != with_value)
