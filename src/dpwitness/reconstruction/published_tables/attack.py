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
from dpwitness.reconstruction.published_tables.program import Program, TooLarge, program_of
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
from dpwitness.reconstruction.published_tables.solutions import (
    Agreeing,
    Solver,
    Unsolved,
    find_certain_rows,
    find_tables,
)
from dpwitness.reconstruction.published_tables.statements import Publication
from dpwitness.reconstruction.table_builder.tables import FloatArray, Table, Value

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


@dataclass(slots=True)
class State:
    """What is known so far: whatever ends the attack, this stays.

    `frequency`: in how many of `rounds` tables each row was; `basis`, `unranked`, `solver_stopped` and `stopped`: see
    `PublishedResult`.
    """

    program: Program | None = None
    found: Agreeing = field(default_factory=Agreeing)
    solver_stopped: str | None = None
    frequency: Counter[Row] = field(default_factory=Counter)
    rounds: int = 0
    basis: str | None = None
    unranked: str | None = None
    stopped: str | None = None


def attack(published: Publication, source: str, truth: Table | None, options: Options) -> PublishedResult:
    """Reconstruct from a publication alone; `source` is its name, and the truth only tells what is right.

    Raises `InvalidData` where no table agrees, and `InvalidParameter` for a truth without the attributes published.
    """
    started, seed, state = time.monotonic(), options.seed_or_fresh(), State()
    having = None if truth is None else truth_rows(truth, published)
    deadline, pairs = options.deadline(), Pairs.of(published)
    try:
        with live(options) as progress:
            solve(state, published, options, deadline, progress)
            rank(state, published, pairs, options, np.random.default_rng(seed), deadline, progress)
    except KeyboardInterrupt:
        state.stopped = "interrupted"
        if not state.found.decided:
            state.solver_stopped = state.solver_stopped or "interrupted"
        if not state.rounds:
            state.unranked = "interrupted"
    return _result(state, published, pairs, having, source, seed, started, options)


def truth_rows(truth: Table, published: Publication) -> set[tuple[Value, ...]]:
    """The different rows of a table, of the attributes that are published, in their order."""
    for name in published.attributes:
        if name not in truth.values:
            raise InvalidParameter(
                f"--data has no column {name!r}, which is published; its columns are {', '.join(truth.values)}"
            )
    columns = [
        [truth.values[name][code] for code in truth.codes[:, truth.column(name)]] for name in published.attributes
    ]
    return set(zip(*columns, strict=True))


def solve(
    state: State, published: Publication, options: Options, deadline: Deadline, progress: Progress | None
) -> None:
    """Look for tables that agree and for rows that are in all of them, in a part of the time."""
    try:
        state.program = program_of(published)
    except TooLarge as error:
        state.solver_stopped = f"{error}, too many for a solver"
        return
    solver, found, seconds = Solver(state.program), state.found, options.max_time
    for _ in find_tables(solver, found, options.most, deadline.earlier((1 - FINDING) * seconds)):
        if progress is not None:
            progress("tables", len(found.tables), options.most, f"{len(found.tables):,} tables")
    if found.complete and not found.tables:
        raise InvalidData(contradiction(state.program, published, deadline))
    find_certain_rows(solver, found, deadline.earlier((1 - CERTAIN) * seconds))
    if not found.decided:
        state.solver_stopped = f"the {CERTAIN:.0%} of --max-time {seconds:g} s for the solver were over"


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


def rank(
    state: State,
    published: Publication,
    pairs: Pairs,
    options: Options,
    rng: np.random.Generator,
    deadline: Deadline,
    progress: Progress | None,
) -> None:
    """Rank rows by all tables that agree where these are known, else by restarts."""
    if state.found.complete and state.program is not None:
        state.basis, state.rounds = "tables", len(state.found.tables)
        for table in state.found.tables:
            state.frequency.update(map(tuple, state.program.cells[table > 0].tolist()))
        return
    people = published.people
    if people is None:
        state.unranked = 'it is not published how many people there are; give {"people": n}'
    elif not pairs.any_two:
        state.unranked = "no counts by two attributes are published"
    elif not options.restarts:
        state.unranked = "--restarts 0"
    elif memory_needed(pairs, people) > memory():
        state.unranked = f"restarts of {people:,} people do not fit into {memory() / 1e9:,.0f} GB of memory"
    else:
        for rows in restarts(pairs, people, options.restarts, rng, deadline):
            state.basis = "restarts"
            state.frequency.update(rows.keys())
            state.rounds += 1
            if progress is not None:
                progress("restarts", state.rounds, options.restarts, f"{state.rounds} of {options.restarts}")
        if state.rounds < options.restarts:
            state.stopped = "time"
        if not state.rounds:
            state.unranked = "the time was over before the first restart"


def _result(
    state: State,
    published: Publication,
    pairs: Pairs,
    having: set[tuple[Value, ...]] | None,
    source: str,
    seed: int,
    started: float,
    options: Options,
) -> PublishedResult:
    people, shares, found = published.people, pairs.shares, state.found
    values = list(published.attributes.values())

    def named(row: Row) -> tuple[Value, ...]:
        return tuple(known[place] for known, place in zip(values, row, strict=True))

    def right(row: Row) -> bool | None:
        return None if having is None else named(row) in having

    def independent(row: Row) -> float | None:
        if shares is None or people is None:
            return None
        return 1 - (1 - independent_probability(shares, row)) ** people

    order = ranked(state.frequency, shares)[: max(LEAST_RANKED, people or 0)]
    certain = []
    if state.program is not None:
        for cell in np.flatnonzero(found.certain).tolist():
            row = tuple(state.program.cells[cell].tolist())
            certain.append(CertainRow(row=named(row), people=int(found.certain[cell]), right=right(row)))
    return PublishedResult(
        attack=options.attack,
        source=source,
        attributes=tuple(published.attributes),
        people=people,
        statements=len(published.statements),
        possible_rows=None if state.program is None else len(state.program.cells),
        tables=len(found.tables),
        complete=found.complete,
        certain=certain,
        certain_complete=found.decided,
        solver_stopped=state.solver_stopped,
        basis=state.basis,
        restarts=state.rounds if state.basis == "restarts" else 0,
        unranked=state.unranked,
        ranked=[
            RankedRow(
                row=named(row),
                frequency=state.frequency[row] / state.rounds,
                independent=independent(row),
                right=right(row),
            )
            for row in order
        ],
        precision=None if having is None else precision(order, shares, values, having),
        stopped=state.stopped,
        seed=seed,
        seconds=time.monotonic() - started,
    )


def precision(
    order: Sequence[Row],
    shares: Sequence[FloatArray] | None,
    values: Sequence[Sequence[Value]],
    having: Collection[tuple[Value, ...]],
) -> list[Precision]:
    """Shares of the first ranked rows that are right, beside those of the likeliest rows of independent attributes."""
    likeliest = [] if shares is None else [row for row, _ in independent_rows(shares, len(order))]

    def part(rows: Sequence[Row], number: int) -> float:
        named = [tuple(known[place] for known, place in zip(values, row, strict=True)) for row in rows[:number]]
        return sum(row in having for row in named) / number

    ranks = [number for number in RANKS if number <= len(order)] or [len(order)] * bool(order)
    return [
        Precision(
            rows=number,
            ranked=part(order, number),
            independent=part(likeliest, number) if len(likeliest) >= number else None,
        )
        for number in ranks
    ]
