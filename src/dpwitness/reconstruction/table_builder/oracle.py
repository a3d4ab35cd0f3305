"""The user's own system under attack, whose questions are conditions on attributes."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Booleans, Integers
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.questions import Asking
from dpwitness.reconstruction.table_builder.systems import MISSING_ANSWER, Block, System
from dpwitness.reconstruction.table_builder.tables import Value, Where
from dpwitness.reconstruction.transcript import Form, as_whole

#: A question: the allowed values of each attribute that it names. A person satisfies {"age": [30, 31], "sex": ["F"]} by
#: having one of the listed values of each named attribute.
Condition: TypeAlias = Mapping[str, Sequence[Value]]


def _to_json_value(value: object) -> Value:
    """The value as a JSON value. Raises `InvalidParameter` unless it is a finite number, a flag or a text."""
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, int | float | str):
        raise InvalidParameter(f"value {value!r} of type {type(value).__name__} must be a number, a flag or a text")
    if isinstance(plain, float) and not math.isfinite(plain):
        raise InvalidParameter(f"value {plain!r} must be finite: leave it out")
    return plain


#: Form of the questions, conditions, and of the answers, counts, in calls and transcripts.
FORM: Final[Form[Condition]] = Form(
    family="table_builder",
    answer="a whole number, or None for a suppressed count",
    written=lambda condition: {name: [_to_json_value(value) for value in values] for name, values in condition.items()},
    handed=lambda condition: {name: list(values) for name, values in condition.items()},
    read=lambda answer: 0.0 if answer is None else as_whole(answer),
)


def values_of(thing: object) -> dict[str, tuple[Value, ...]] | None:
    """The attributes and their values in an oracle's `values`, None without `values`.

    Raises `InvalidParameter` unless `values` is a mapping from names to lists of different values.
    """
    given = getattr(thing, "values", None)
    if given is None or callable(given):  # the method of a mapping
        return None
    if not isinstance(given, Mapping) or not given:
        raise InvalidParameter(
            f"values of the oracle is {type(given).__name__}: give a mapping from attributes to values"
        )
    found = {}
    for name, values in given.items():
        if not isinstance(name, str) or isinstance(values, str) or not hasattr(values, "__iter__"):
            raise InvalidParameter(f"values of the oracle: {name!r} must be a name, with a list of values")
        found[name] = tuple(_to_json_value(value) for value in values)
        if len(set(found[name])) != len(found[name]) or not found[name]:
            raise InvalidParameter(f"values of the oracle: {name!r} needs different values, at least one")
    return found


class AskedSystem(System):
    """The user's own system as a `System`: `asking` asks the questions in the form `FORM`."""

    def __init__(self, asking: Asking[Condition], values: Mapping[str, Sequence[Value]]) -> None:
        super().__init__(values)
        self._asking = asking

    @property
    @override
    def asked(self) -> int:  # type: ignore[override]  # `asking` counts
        return self._asking.asked

    @override
    def ask(self, attribute: str, selections: Booleans, where: Where | None = None) -> Integers:
        return self.ask_all([Block(attribute=attribute, selections=selections, where=where or {})])[0]

    @override
    def ask_all(self, blocks: Iterable[Block]) -> list[Integers]:
        numbers: list[int] = []

        def conditions() -> Iterator[Condition]:  # a list of all conditions would take much memory
            for block in blocks:
                numbers.append(len(block.selections))
                known = self.values(block.attribute)
                fixed = {name: list(values) for name, values in block.where.items()}
                for row in block.selections:
                    yield {**fixed, block.attribute: [known[i] for i in np.flatnonzero(row)]}

        answers = self._asking.ask_some(conditions())
        came = ~np.isnan(answers)
        whole = np.where(came, answers, 0).astype(np.int64)
        return np.split(np.where(came, whole, MISSING_ANSWER), np.cumsum(numbers)[:-1])
