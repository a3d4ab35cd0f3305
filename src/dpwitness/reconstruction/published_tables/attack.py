"""The attack: the tables that agree with a publication, the rows that all of them have, and a ranking of rows."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from dpwitness.checks import memory
from dpwitness.cli.console import live
from dpwitness.errors import InvalidData, InvalidParameter
from dpwitness.machine import Deadline
from dpwitness.reconstruction.command import AttackOptions
from dpwitness.reconstruction.published_tables.program import (
    Agreeing,
    Program,
    Solver,
    TooLarge,
    Unsolved,
    find_certain_rows,
    find_tables,
    program_of,
)
from dpwitness.reconstruction.published_tables.ranking import (
    Pairs,
    Row,
    independent_probability,
    independent_rows,
    memory_needed,
    ranked,
    restarts,
)
from dpwitness.reconstruction.published_tables.report import RANKS, CertainRow, Precision, PublishedResult, RankedRow
from dpwitness.reconstruction.published_tables.statements import Publication
from dpwitness.reconstruction.table_builder.tables import FloatArray, Table, Value, values_named

#: Told of a stage, how much of how many is done, and that as text.
Progress: TypeAlias = Callable[[str, int, int, str], object]
#: The defaults of --most and --restarts.
MOST: Final = 1000
RESTARTS: Final = 50
#: The part of --max-time until which tables are looked for, and until which rows that are in all of them are.
FINDING: Final = 0.35
CERTAIN: Final = 0.5
#: Ranked rows that a result has at least, where there are as many; else one a person.
LEAST_RANKED: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(AttackOptions):
    """How many tables and restarts at most. Raises `InvalidParameter` for negative numbers, or no table."""

    most: int = MOST
    restarts: int = RESTARTS

    def __post_init__(self) -> None:
        if not 1 <= self.most <= 100_000:
            raise InvalidParameter(f"--most {self.most} must be from 1 to 100,000 tables")
        if not 0 <= self.restarts <= 100_000:
            raise InvalidParameter(f"--restarts {self.restarts} must be from 0 to 100,000")


def attack(published: Publication, source: str, truth: Table | None, options: Options) -> PublishedResult:
    """Reconstruct from a publication alone; `source` is its name, and the truth only tells what is right.

    Raises `InvalidData` where no table agrees, and `InvalidParameter` for a truth without the attributes published.
    """
    started, seed = time.monotonic(), options.seed_or_fresh()
    having = None if truth is None else true_rows(truth, published)
    state = State(published=published, options=options, pairs=Pairs.of(published), deadline=options.deadline())
    try:
        with live(options) as state.progress:
            state.solve()
            state.rank(np.random.default_rng(seed))
    except KeyboardInterrupt:
        state.stopped = "interrupted"
        if not state.found.decided:
            state.solver_stopped = state.solver_stopped or "interrupted"
        if not state.rounds:
            state.unranked = "interrupted"
    return state.result(having, source, seed, started)


def true_rows(truth: Table, published: Publication) -> set[Row]:
    """The different rows of a table, of the attributes that are published; none with a value that is not."""
    columns = []
    for name, known in published.attributes.items():
        if name not in truth.values:
            raise InvalidParameter(
                f"--data has no column {name!r}, which is published; its columns are {', '.join(truth.values)}"
            )
        texts = list(map(str, truth.values[name]))
        named, place = values_named(known, texts), {value: k for k, value in enumerate(known)}
        places = np.array([place[named[text]] if text in named else -1 for text in texts])
        columns.append(places[truth.codes[:, truth.column(name)]])
    rows = np.column_stack(columns)
    return set(map(tuple, rows[np.all(rows >= 0, axis=1)].tolist()))


@dataclass(slots=True, kw_only=True)
class State:
    """What is attacked, and what is known so far: whatever ends the attack, this stays.

    `frequency`: in how many of `rounds` tables each row was; `basis`, `unranked`, `solver_stopped` and `stopped`: see
    `PublishedResult`.
    """

    published: Publication
    options: Options
    pairs: Pairs
    deadline: Deadline
    progress: Progress | None = None
    program: Program | None = None
    found: Agreeing = field(default_factory=Agreeing)
    solver_stopped: str | None = None
    frequency: Counter[Row] = field(default_factory=Counter)
    rounds: int = 0
    basis: str | None = None
    unranked: str | None = None
    stopped: str | None = None

    def solve(self) -> None:
        """Look for tables that agree and for rows that are in all of them, in a part of the time."""
        try:
            self.program = program_of(self.published)
        except TooLarge as error:
            self.solver_stopped = f"{error}, too many for a solver"
            return
        solver, found, seconds = Solver(self.program), self.found, self.options.max_time
        most = self.options.most
        for _ in find_tables(solver, found, most, self.deadline.earlier((1 - FINDING) * seconds)):
            if self.progress is not None:
                self.progress("tables", len(found.tables), most, f"{len(found.tables):,} tables")
        if found.complete and not found.tables:
            raise InvalidData(contradiction(self.program, self.published, self.deadline))
        find_certain_rows(solver, found, self.deadline.earlier((1 - CERTAIN) * seconds))
        if not found.decided:
            self.solver_stopped = f"the {CERTAIN:.0%} of --max-time {seconds:g} s for the solver were over"

    def rank(self, rng: np.random.Generator) -> None:
        """Rank rows by all tables that agree where these are known, else by restarts."""
        if self.found.complete and self.program is not None:
            self.basis, self.rounds = "tables", len(self.found.tables)
            for table in self.found.tables:
                self.frequency.update(map(tuple, self.program.cells[table > 0].tolist()))
            return
        people, number = self.published.people, self.options.restarts
        if people is None:
            self.unranked = 'it is not published how many people there are; give {"people": n}'
        elif not self.pairs.any_two:
            self.unranked = "no counts by two attributes are published"
        elif not number:
            self.unranked = "--restarts 0"
        elif memory_needed(self.pairs, people) > memory():
            self.unranked = f"restarts of {people:,} people do not fit into {memory() / 1e9:,.0f} GB of memory"
        else:
            for rows in restarts(self.pairs, people, number, rng, self.deadline):
                self.basis = "restarts"
                self.frequency.update(rows.keys())
                self.rounds += 1
                if self.progress is not None:
                    self.progress("restarts", self.rounds, number, f"{self.rounds} of {number}")
            if self.rounds < number:
                self.stopped = "time"
            if not self.rounds:
                self.unranked = "the time was over before the first restart"

    def result(self, having: set[Row] | None, source: str, seed: int, started: float) -> PublishedResult:
        """What is known, compared with the true rows, None where these are not known."""
        people, shares, found = self.published.people, self.pairs.shares, self.found
        values = list(self.published.attributes.values())

        def named(row: Row) -> tuple[Value, ...]:
            return tuple(known[place] for known, place in zip(values, row, strict=True))

        def right(row: Row) -> bool | None:
            return None if having is None else row in having

        def independent(row: Row) -> float | None:
            if shares is None or people is None:
                return None
            return 1 - (1 - independent_probability(shares, row)) ** people

        order = ranked(self.frequency, shares)[: max(LEAST_RANKED, people or 0)]
        certain = []
        if self.program is not None:
            for cell in np.flatnonzero(found.certain).tolist():
                row = tuple(self.program.cells[cell].tolist())
                certain.append(CertainRow(row=named(row), people=int(found.certain[cell]), right=right(row)))
        return PublishedResult(
            attack=self.options.attack,
            source=source,
            attributes=tuple(self.published.attributes),
            people=people,
            statements=len(self.published.statements),
            possible_rows=None if self.program is None else len(self.program.cells),
            tables=len(found.tables),
            complete=found.complete,
            certain=certain,
            certain_complete=found.decided,
            solver_stopped=self.solver_stopped,
            basis=self.basis,
            restarts=self.rounds if self.basis == "restarts" else 0,
            unranked=self.unranked,
            ranked=[
                RankedRow(
                    row=named(row),
                    frequency=self.frequency[row] / self.rounds,
                    independent=independent(row),
                    right=right(row),
                )
                for row in order
            ],
            precision=None if having is None else precision(order, shares, having),
            stopped=self.stopped,
            seed=seed,
            seconds=time.monotonic() - started,
        )


def contradiction(program: Program, published: Publication, deadline: Deadline) -> str:
    """Which statement is the first that contradicts those before it, where no table agrees."""
    low, high = 0, len(published.statements)
    try:
        while high - low > 1:
            middle = (low + high) // 2
            part = program.of_first(middle)
            if Solver(part).solve(part.lower, part.upper, deadline) is None:
                high = middle
            else:
                low = middle
    except Unsolved:
        return "no table agrees with all that is published; look for a wrong figure, or one that is rounded more"
    place = published.statements[high - 1].place
    return f"{place}: no table agrees with this and what stands before it; look for a wrong figure, or give decimals"


def precision(order: Sequence[Row], shares: Sequence[FloatArray] | None, having: Collection[Row]) -> list[Precision]:
    """Shares of the first ranked rows that are right, beside those of the likeliest rows of independent attributes."""
    likeliest = [] if shares is None else [row for row, _ in independent_rows(shares, len(order))]

    def part(rows: Sequence[Row], number: int) -> float:
        return sum(row in having for row in rows[:number]) / number

    ranks = [number for number in RANKS if number <= len(order)] or [len(order)] * bool(order)
    return [
        Precision(
            rows=number,
            ranked=part(order, number),
            independent=part(likeliest, number) if len(likeliest) >= number else None,
        )
        for number in ranks
    ]
