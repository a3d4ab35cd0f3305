"""Conditions on what is known of people: the questions of an interface that takes no list of people.

Such interfaces are attacked as those of Dinur & Nissim are, by conditions that hold for about half of the people and
not for the same half: Cohen & Nissim, Linear program reconstruction in practice, Journal of Privacy and Confidentiality
10(1), 2020. Remainders of a whole number, such as a customer's, mix people best.
"""

import copy
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.files import read_named_rows, shown, typed_column
from dpwitness.reconstruction.subset_sum import oracle
from dpwitness.reconstruction.subset_sum.linear_decoding import Flags, Subsets
from dpwitness.reconstruction.transcript import Form

#: Of a person: a number or a text.
Value: TypeAlias = int | float | str
#: For each attribute named, a list of values, {"at_least": a, "below": b}, or {"modulo": m, "remainders": [r, …]}.
Condition: TypeAlias = Mapping[str, Sequence[Value] | Mapping[str, Any]]

#: The kinds of conditions on one attribute.
KINDS: Final = ("values", "range", "remainders")
#: Values that a question lists at most; an attribute with more is asked by ranges and remainders.
LONGEST_LIST: Final = 64
#: The largest divisor, in parts of √n: up to 2·√n the remainders tell some n people apart.
DIVISORS: Final = 2.0
#: The least part of the people for whom a question holds, and for whom it does not: small counts are often withheld.
LEAST_SHARE: Final = 1 / 8
#: Attributes that a question names at most.
NAMED: Final = 2
#: So many draws in a row that give no new subset end the drawing.
IN_VAIN: Final = 500


class Oracle(Protocol):
    """A system under attack that takes conditions, behind `--oracle` with `--conditions`; see `FORM`."""

    def __call__(self, condition: dict[str, object], /) -> float:
        """The noisy number of the people who satisfy every part of the condition and have the secret bit.

        {"age": {"at_least": 20, "below": 30}, "zip": ["02138", "02139"], "id": {"modulo": 7, "remainders": [1, 3]}}.
        """


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
    """What is known of people: a column of values for each attribute, all of one length, and the kinds to ask by.

    Raises `InvalidParameter` where nothing tells people apart.
    """

    columns: Mapping[str, Sequence[Value]]
    kinds: Collection[str] = KINDS

    def __post_init__(self) -> None:
        if not self._askable():
            raise InvalidParameter(
                f"no condition by {', '.join(self.kinds)} tells people apart: give an attribute with at most "
                f"{LONGEST_LIST} different values, or with numbers"
            )

    @property
    def people(self) -> int:
        """How many people there are."""
        return len(next(iter(self.columns.values())))

    @property
    def told_apart(self) -> int:
        """How many people differ from all others in an attribute."""
        return sum(people == 1 for people in Counter(zip(*self.columns.values(), strict=True)).values())

    def drawn(self, rng: np.random.Generator, number: int) -> tuple[list[Condition], Subsets]:
        """So many random conditions, each of another subset of people, and these; fewer where there are no more."""
        attributes = self._askable()
        conditions: list[Condition] = []
        packed: dict[bytes, None] = {}
        vain = 0
        while len(conditions) < number and vain < IN_VAIN:
            vain += 1
            named = rng.permutation(len(attributes))[: rng.integers(1, NAMED + 1)]
            condition: dict[str, Sequence[Value] | Mapping[str, Any]] = {}
            flags = np.ones(self.people, np.bool_)
            for place in named:
                part, some = attributes[place].drawn(rng, 0.5 ** (1 / len(named)))
                condition[attributes[place].name] = part
                flags &= some
            key = np.packbits(flags, bitorder="little").tobytes()
            share = flags.mean()
            if key not in packed and LEAST_SHARE <= share <= 1 - LEAST_SHARE:
                packed[key], vain = None, 0
                conditions.append(condition)
        rows = np.frombuffer(b"".join(packed), np.uint8).reshape(len(conditions), -(-self.people // 8))
        return conditions, Subsets(rows, self.people)

    def _askable(self) -> "list[_Attribute]":
        """The attributes that a condition of these kinds can be about."""
        attributes = [_Attribute(name, column, self.kinds) for name, column in self.columns.items()]
        return [attribute for attribute in attributes if attribute.kinds]


class _Attribute:
    """An attribute, its different values in order, where each person's stands among these, and kinds to ask it by."""

    def __init__(self, name: str, column: Sequence[Value], kinds: Collection[str]) -> None:
        self.name = name
        self.values = values = sorted(set(column), key=lambda value: (isinstance(value, str), value))
        place = {value: number for number, value in enumerate(values)}
        self.places = np.array([place[value] for value in column])
        numbers = all(not isinstance(value, str) for value in values)
        possible = {
            "values": 2 <= len(values) <= LONGEST_LIST,
            "range": numbers and len(values) > 2,
            "remainders": len(values) > 2
            and all(isinstance(value, int) and value >= 0 for value in values),  # of others languages differ
        }
        self.kinds = [kind for kind in KINDS if kind in kinds and possible[kind]]

    def drawn(self, rng: np.random.Generator, share: float) -> tuple[Sequence[Value] | Mapping[str, object], Flags]:
        """A condition that holds for about this share of the values, and for whom it holds."""
        kind = self.kinds[rng.integers(len(self.kinds))]
        number, people = len(self.values), len(self.places)
        if kind == "values":
            chosen = rng.random(number) < share
            return [value for value, one in zip(self.values, chosen, strict=True) if one], chosen[self.places]
        if kind == "range":
            # In order of the people, not of the values: about as many people, however values are spread.
            order = np.sort(self.places)
            first = int(rng.integers(0, people))
            low, high = order[first], order[min(first + math.ceil(share * people), people - 1)]
            if first > (1 - share) * people:  # from there to the largest value there are too few
                return {"below": self.values[low]}, self.places < low
            flags = (self.places >= low) & (self.places < high)
            return {"at_least": self.values[low], "below": self.values[high]}, flags
        most = min(max(math.ceil(DIVISORS * math.sqrt(people)), 3), number)
        divisor = int(rng.integers(3, most + 1))
        chosen = rng.random(divisor) < share
        remainders = np.array([int(value) % divisor for value in self.values])[self.places]
        return {"modulo": divisor, "remainders": np.flatnonzero(chosen).tolist()}, chosen[remainders]


def read_attributes(path: str, secret: str | None, kinds: Collection[str]) -> Attributes:
    """From a CSV file with a header line, a line a person; `secret`: the column that is left out, if it is there.

    Raises `InvalidData`, with the line, for missing values, uneven rows, and a header without names.
    """
    place = shown(path)
    header, rows = read_named_rows(path, "holds no people: it needs a header line and at least one line a person")
    for line, row in rows:
        if "" in row:
            raise InvalidData(f"{place}, line {line}: the value of {header[row.index('')]!r} is missing; fill it in")
    cells = zip(*[row for _, row in rows], strict=True)
    columns = {name: typed_column(column) for name, column in zip(header, cells, strict=True) if name != secret}
    if not columns:
        raise InvalidData(f"{place} has no column but {secret!r}: give what is known of the people")
    return Attributes(columns, kinds)
