"""Attacks where averaging within one attribute does not do: differencing, and workarounds for few answers above 0.

Asghar & Kaafar (2020), sections 2.2 and 9, and appendix C. They see nothing but answers.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpwitness.attacks.table_builder.averaging import (
    Removed,
    average,
    choose_base,
    chosen_values,
    remove_noise,
)
from dpwitness.attacks.table_builder.partitions import two_partitions
from dpwitness.attacks.table_builder.protocol import System
from dpwitness.attacks.table_builder.table import Where
from dpwitness.errors import InvalidParameter

__all__ = ["count_by_other_attribute", "count_from_two", "not_empty", "shows_absence", "subtract"]


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
