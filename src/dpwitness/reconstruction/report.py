"""Results of attacks, the same for all families: as JSON, as text, and as plots."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from dpwitness.report.plots import new_figure as new_figure
from dpwitness.report.plots import write_figure as write_figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The user's system, and what it was asked: how many questions, how many of them got no answer, and the limits."""

    oracle: str
    questions: int
    unanswered: int
    budget: int | None
    rate: float | None

    @property
    def text(self) -> str:
        """The system and the number of questions, for a report."""
        missing = f", {self.unanswered:,} of them without an answer" if self.unanswered else ""
        return f"{self.oracle}, {self.questions:,} questions{missing}"


class Result(ABC):
    """What an attack says; a subclass is a dataclass, whose fields with `repr=False` are for its plot alone."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values; those of `Asked` stand among the others."""
        return _object(self)

    @abstractmethod
    def text(self) -> str:
        """The report."""

    @abstractmethod
    def plot(self, path: str) -> None:
        """Draw it into a file. Raises `InvalidParameter` for an unknown format."""


def _object(value: Any) -> dict[str, object]:
    written: dict[str, object] = {}
    for one in fields(value):
        part = getattr(value, one.name)
        if isinstance(part, Asked):
            written |= _object(part)
        elif one.repr:
            written[one.name] = _value(part)
    return written


def _value(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [_value(one) for one in value]
    return _object(value) if is_dataclass(value) else value


def report_text(heading: str, rows: Iterable[tuple[str, str | None]], *, seconds: float, seed: int) -> str:
    """A heading, labelled rows (one that is None is left out), and how long it took from which seed."""
    lines = [f"  {label:<12} {text}" for label, text in rows if text is not None]
    return "\n".join([heading, *lines, f"  {seconds:.1f} s; seed {seed}"])
