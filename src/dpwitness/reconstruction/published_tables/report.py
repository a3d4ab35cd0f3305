"""The result: how many tables agree, which rows are in all of them, and other rows by how often they came back."""

from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from dpwitness.reconstruction.report import Result, new_figure, report_text, write_figure
from dpwitness.reconstruction.table_builder.tables import Value

#: Rows of each kind that a report prints; --json and --save have more.
SHOWN: Final = 25
#: Numbers of first rows that precision is said of.
RANKS: Final = (10, 25, 50, 100, 200, 400, 800, 1600)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertainRow:
    """A row that at least so many people have in every table that agrees."""

    row: tuple[Value, ...]
    people: int
    right: bool | None

    @property
    def cells(self) -> tuple[str, ...]:
        """What stands before the row in a table."""
        return (str(self.people),)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedRow:
    """A row, and in which share of the tables it is.

    `independent`: the probability that somebody has it if attributes were independent, from counts by one attribute;
    None where these are not published. `right`: whether somebody has it; None without the truth.
    """

    row: tuple[Value, ...]
    frequency: float
    independent: float | None
    right: bool | None

    @property
    def cells(self) -> tuple[str, ...]:
        """What stands before the row in a table."""
        return f"{self.frequency:.2f}", "" if self.independent is None else f"{self.independent:.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Which shares of the first `rows` rows are right: as ranked, and of the likeliest independent ones."""

    rows: int
    ranked: float
    independent: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedResult(Result):
    """What published tables tell of the people behind them.

    Attributes
    ----------
    tables
        Different tables that agree and were found; all there are where `complete`.
    basis
        What the frequencies are of: "tables" that agree, all of them; "restarts"; None where nothing is ranked, and
        then `unranked` says why.
    certain_complete
        Whether `certain` has all rows that are in every table that agrees; if not, `solver_stopped` says why.
    stopped
        What ended the attack early: "time" or "interrupted"; None: nothing did.
    """

    attack: str
    source: str
    attributes: tuple[str, ...]
    people: int | None
    statements: int
    possible_rows: int | None
    tables: int
    complete: bool
    certain: list[CertainRow]
    certain_complete: bool
    solver_stopped: str | None
    basis: str | None
    restarts: int
    unranked: str | None
    ranked: list[RankedRow]
    precision: list[Precision] | None
    stopped: str | None
    seed: int
    seconds: float

    @override
    def text(self) -> str:
        rows = [
            ("published", self._published()),
            ("certain", self._certain()),
            ("ranked", self._ranking()),
            ("right", self._precision()),
            ("stopped", self.stopped),
        ]
        report = report_text(self._heading(), rows, seconds=self.seconds, seed=self.seed)
        return "\n".join([report, *self._table()])

    def _heading(self) -> str:
        if self.complete or self.tables:
            number = f"{'EXACTLY' if self.complete else 'AT LEAST'} {self.tables:,}"
            return f"{number} table{'s agree' if self.tables != 1 else ' agrees'} with what is published"
        if self.ranked:
            return f"RANKED {len(self.ranked):,} rows; no table that agrees exactly was found"
        return "NOTHING FOUND: neither a table that agrees with what is published, nor a ranking of rows"

    def _published(self) -> str:
        people = "people" if self.people is None else f"{self.people:,} people"
        possible = "" if self.possible_rows is None else f", {self.possible_rows:,} possible rows"
        number = f"{self.statements:,} statement{'s' if self.statements != 1 else ''}"
        return f"{self.source}: {number} about {people}, {len(self.attributes)} attributes{possible}"

    def _certain(self) -> str:
        people = sum(one.people for one in self.certain)
        text = "no row is in every table"
        if people:
            text = f"{people:,} people have rows that are in every table"
        if not self.certain_complete:
            text = f"{text if people else 'no row is known to be in every table'}: {self.solver_stopped}"
        right = [one.right for one in self.certain if one.right is not None]
        return f"{text}; {sum(right)} of {len(right)} rows are right" if right else text

    def _ranking(self) -> str:
        if self.basis is None:
            return f"nothing: {self.unranked}"
        if self.basis == "tables":
            return f"{len(self.ranked):,} rows, by the share of these tables that they are in"
        return (
            f"{len(self.ranked):,} rows, by how often {self.restarts} restarts made them: a frequency, no probability"
        )

    def _precision(self) -> str | None:
        if not self.precision:
            return None
        parts = []
        for one in self.precision:
            beside = "" if one.independent is None else f" ({one.independent:.2f})"
            parts.append(f"{one.ranked:.2f}{beside} of the first {one.rows:,}")
        beside = "" if self.precision[0].independent is None else "; in brackets the likeliest independent rows"
        return ", ".join(parts) + beside

    def _table(self) -> list[str]:
        """Ranked rows, or those that are certain where nothing is ranked."""
        rows = self.ranked or self.certain
        if not rows:
            return []
        head = [*(("frequency", "independent") if self.ranked else ("people",)), *self.attributes]
        body = [[*one.cells, *map(str, one.row)] for one in rows[:SHOWN]]
        marks = [{True: "right", False: "wrong", None: ""}[one.right] for one in rows[:SHOWN]]
        left = len(rows) - SHOWN
        widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
        lines = [
            "  ".join(["", *(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)), mark]).rstrip()
            for row, mark in zip([head, *body], ["", *marks], strict=True)
        ]
        return [*lines, f"  … {left:,} more"] if left > 0 else lines

    @override
    def plot(self, path: str) -> None:
        """Draw how often each ranked row came back, by rank; the right and the wrong ones where that is known."""
        figure, axes = new_figure()
        for right, label, color in ((True, "right", "C0"), (False, "wrong", "C3"), (None, None, "C0")):
            places = [rank for rank, one in enumerate(self.ranked, 1) if one.right is right]
            if places:
                axes.plot(
                    places, [self.ranked[rank - 1].frequency for rank in places], "o", ms=3, color=color, label=label
                )
        if any(one.right is not None for one in self.ranked):
            axes.legend()
        axes.set(xlabel="rank", ylabel=f"share of {self.basis or 'tables'}", ylim=(-0.02, 1.02), title=self._heading())
        write_figure(figure, path)
