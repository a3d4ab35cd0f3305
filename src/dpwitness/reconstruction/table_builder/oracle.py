"""The user's own system under attack, whose questions are conditions on attributes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from typing_extensions import override

from dpwitness.arrays import Booleans, Integers
from dpwitness.reconstruction.questions import Asking
from dpwitness.reconstruction.table_builder.systems import MISSING_ANSWER, Block, QuerySystem
from dpwitness.reconstruction.table_builder.tables import AttributeValue, Where
from dpwitness.reconstruction.transcript import Form, as_whole

#: A question: the allowed values of each attribute that it names. A person satisfies {"age": [30, 31], "sex": ["F"]} by
#: having one of the listed values of each named attribute.
ValueCondition: TypeAlias = Mapping[str, Sequence[AttributeValue]]


#: Form of the questions, conditions, and of the answers, counts, in calls and transcripts.
FORM: Final[Form[ValueCondition]] = Form(
    family="table_builder",
    answer="a whole number, or None for a suppressed count",
    written=dict,
    handed=lambda condition: {name: list(values) for name, values in condition.items()},
    read=lambda answer: 0.0 if answer is None else as_whole(answer),
)


class AskedSystem(QuerySystem):
    """The user's own system as a `QuerySystem`: `asking` asks the questions in the form `FORM`."""

    def __init__(self, asking: Asking[ValueCondition], values: Mapping[str, Sequence[AttributeValue]]) -> None:
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

        def conditions() -> Iterator[ValueCondition]:  # a list of all conditions would take much memory
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
