"""The averaging attack on a whole histogram: Asghar & Kaafar (2020), section 4.2.2. It sees nothing but answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.averaging import chosen_values, compared, remove_noise
from dpwitness.attacks.table_builder.oracle import Oracle
from dpwitness.attacks.table_builder.table import Where
from dpwitness.errors import InvalidParameter

__all__ = ["Histogram", "recover_histogram"]

Wholes = NDArray[np.int64]
#: Called with how many values are done, of how many.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """A recovered histogram: for each value its count, and the noisy answer that the system gives directly."""

    attribute: str
    values: tuple[Any, ...]
    counts: tuple[int, ...]
    noisy: tuple[int, ...]
    base: tuple[int, ...]  # positions of the base set in `values`
    base_count: int
    base_partitions: int
    partitions: int
    queries: int


def recover_histogram(
    oracle: Oracle,
    rng: np.random.Generator,
    attribute: str,
    base: Sequence[int] | Wholes,
    k: int,
    *,
    base_partitions: int | None = None,
    same_partitions: bool = False,
    where: Where | None = None,
    progress: Progress | None = None,
) -> Histogram:
    """The counts of all values of an attribute (section 4.2.2); negative ones become 0.

    Parameters
    ----------
    base
        Positions of the base set's values, at least three, all with answers above 0; others raise `InvalidParameter`.
    k, base_partitions
        Two-partitions asked for each value, and once for the base set (default `k`).
    same_partitions
        The same for all values, so that the errors of values that nobody has are all the same.
    where
        Only these people.
    """
    base = chosen_values(oracle, attribute, base)
    values, asked = oracle.values(attribute), oracle.asked
    noisy = oracle.ask(attribute, np.eye(len(values), dtype=np.bool_), where)
    _check_base(attribute, noisy[base])
    whole = remove_noise(oracle, rng, attribute, base, base_partitions or k, where=where)
    counts, seed = [], int(rng.integers(1 << 63))
    for value, shown in enumerate((noisy > 0).tolist()):
        if same_partitions:
            rng = np.random.default_rng(seed)
        other, beside, sign = compared(base, value, shown)
        removed = remove_noise(oracle, rng, attribute, other, k, beside=beside, where=where)
        counts.append(max(sign * (removed.count - whole.count), 0))
        if progress is not None:
            progress(value + 1, len(values))
    return Histogram(
        attribute=attribute,
        values=values,
        counts=tuple(counts),
        noisy=tuple(noisy.tolist()),
        base=tuple(base.tolist()),
        base_count=whole.count,
        base_partitions=whole.partitions,
        partitions=min(k, (1 << len(base)) - 1),
        queries=oracle.asked - asked,
    )


def _check_base(attribute: str, answers: Wholes) -> None:
    """Raise `InvalidParameter` unless the base set has three values at least and all of their answers are above 0."""
    if len(answers) < 3 or np.any(answers == 0):
        raise InvalidParameter(
            f"attribute {attribute!r}: {np.count_nonzero(answers)} of the {len(answers)} base values have an answer "
            "above 0; at least 3 are needed, and no others"
        )
