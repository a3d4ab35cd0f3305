"""Results of attacks, the same for all families: as JSON, as text, and as plots."""

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpwitness.files import write_atomically
from dpwitness.report.plots import plot_format

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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


def new_figure(width: float = 6.4, height: float = 4.2) -> "tuple[Figure, Axes]":
    """A figure with one pair of axes, in inches."""
    from matplotlib.figure import Figure  # 0.3 s

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def write_figure(figure: "Figure", path: str | Path) -> None:
    """Write a figure, whole or not at all. Raises `InvalidParameter` for an unknown format."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=plot_format(path), dpi=150)
    write_atomically(path, buffer.getvalue())
