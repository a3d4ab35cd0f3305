"""Conditions on known attributes of people replace subsets where a system takes no list of people.

Each random condition holds for about half of the people, who are then a random subset: Cohen & Nissim, Linear program
reconstruction in practice, Journal of Privacy and Confidentiality 10(1), 2020. Conditions on remainders of a whole
number, such as a customer's number, tell people apart best.
"""

import copy
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from dpwitness.arrays import Booleans
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.people import AttributeValue
from dpwitness.reconstruction.subset_sum import oracle
from dpwitness.reconstruction.subset_sum.linear_decoding import Subsets
from dpwitness.reconstruction.transcript import Form

#: A condition: by attribute a list of values, {"at_least": a, "below": b} or {"modulo": m, "remainders": [r, …]}.
Condition: TypeAlias = Mapping[str, Sequence[AttributeValue] | Mapping[str, Any]]

#: Names of the kinds of conditions on one attribute, as --allow takes them.
CONDITION_KINDS: Final = ("values", "range", "remainders")
#: Largest number of values that a question lists, so that it stays short; ranges and remainders ask about more values.
MAX_LISTED_VALUES: Final = 64
#: Smallest share of the people for whom a condition holds, and for whom it does not: systems often hide small counts.
MIN_SHARE_OF_PEOPLE: Final = 1 / 8


#: Form of the questions, conditions on attributes, and of the answers, sums of bits, in calls and transcripts.
#: A question: {"age": {"at_least": 20, "below": 30}, "zip": ["02138"], "id": {"modulo": 7, "remainders": [1, 3]}}.
FORM: Final[Form[Condition]] = Form(
    family="subset_sum",
    answer=oracle.FORM.answer,
    written=lambda condition: dict(condition),
    handed=lambda condition: copy.deepcopy(dict(condition)),
    read=oracle.as_sum,
    of_system=("size", "attributes"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Attributes:
    """The known attributes of people, columns of equal length, and the kinds of conditions to ask.

    Raises `InvalidParameter` where no condition of the given kinds tells people apart.
    """

    columns: Mapping[str, Sequence[AttributeValue]]
    kinds: Collection[str] = CONDITION_KINDS

    def __post_init__(self) -> None:
        if not self._askable_attributes():
            raise InvalidParameter(
                f"no condition by {', '.join(self.kinds)} tells people apart: give an attribute with at most "
                f"{MAX_LISTED_VALUES} different values, or with numbers"
            )

    @property
    def people(self) -> int:
        """The number of people."""
        return len(next(iter(self.columns.values())))

    def drawn(self, rng: np.random.Generator, number: int) -> tuple[list[Condition], Subsets]:
        """Draw `number` random conditions that hold for different subsets of people; return conditions and subsets.

        The conditions are fewer where 500 draws in a row give no new subset.
        """
        attributes = self._askable_attributes()
        conditions: list[Condition] = []
        packed: dict[bytes, None] = {}
        useless_draws = 0
        while len(conditions) < number and useless_draws < 500:
            useless_draws += 1
            named = rng.permutation(len(attributes))[: rng.integers(1, 3)]  # one attribute or two
            condition: dict[str, Sequence[AttributeValue] | Mapping[str, Any]] = {}
            flags = np.ones(self.people, np.bool_)
            for place in named:
                part, some = attributes[place].drawn(rng, 0.5 ** (1 / len(named)))
                condition[attributes[place].name] = part
                flags &= some
            key = np.packbits(flags, bitorder="little").tobytes()
            share = flags.mean()
            if key not in packed and MIN_SHARE_OF_PEOPLE <= share <= 1 - MIN_SHARE_OF_PEOPLE:
                packed[key], useless_draws = None, 0
                conditions.append(condition)
        rows = np.frombuffer(b"".join(packed), np.uint8).reshape(len(conditions), -(-self.people // 8))
        return conditions, Subsets(rows, self.people)

    def _askable_attributes(self) -> "list[_Attribute]":
        """The attributes on which a condition of the given kinds is possible."""
        attributes = [_Attribute(name, column, self.kinds) for name, column in self.columns.items()]
        return [attribute for attribute in attributes if attribute.kinds]


class _Attribute:
    """An attribute: its different values in order, the place of each person's value, and its kinds of conditions."""

    def __init__(self, name: str, column: Sequence[AttributeValue], kinds: Collection[str]) -> None:
        self.name = name
        self.values = values = sorted(set(column), key=lambda value: (isinstance(value, str), value))
        place = {value: number for number, value in enumerate(values)}
        self.places = np.array([place[value] for value in column])
        numbers = all(not isinstance(value, str) for value in values)
        possible = {
            "values": 2 <= len(values) <= MAX_LISTED_VALUES,
            "range": numbers and len(values) > 2,
            "remainders": len(values) > 2
            and all(isinstance(value, int) and value >= 0 for value in values),  # −1 mod 7 is 6 or −1, by the language
        }
        self.kinds = [kind for kind in CONDITION_KINDS if kind in kinds and possible[kind]]

    def drawn(
        self, rng: np.random.Generator, share: float
    ) -> tuple[Sequence[AttributeValue] | Mapping[str, object], Booleans]:
        """Draw a condition that holds for about this share of the values, and flags of the people for whom it holds."""
        kind = self.kinds[rng.integers(len(self.kinds))]
        number, people = len(self.values), len(self.places)
        if kind == "values":
            chosen = rng.random(number) < share
            return [value for value, one in zip(self.values, chosen, strict=True) if one], chosen[self.places]
        if kind == "range":
            # The limits are drawn among people, not values, so that about this share of the people lies between.
            order = np.sort(self.places)
            first = int(rng.integers(0, people))
            low, high = order[first], order[min(first + math.ceil(share * people), people - 1)]
            if first > (1 - share) * people:  # too few people have this value or a larger one
                return {"below": self.values[low]}, self.places < low
            flags = (self.places >= low) & (self.places < high)
            return {"at_least": self.values[low], "below": self.values[high]}, flags
        # Remainders by divisors up to 2·√n are enough to tell about n people apart.
        most = min(max(math.ceil(2 * math.sqrt(people)), 3), number)
        divisor = int(rng.integers(3, most + 1))
        chosen = rng.random(divisor) < share
        remainders = np.array([int(value) % divisor for value in self.values])[self.places]
        return {"modulo": divisor, "remainders": np.flatnonzero(chosen).tolist()}, chosen[remainders]
