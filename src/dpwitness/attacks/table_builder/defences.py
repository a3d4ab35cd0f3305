"""What each defence costs the attacker: every row of the table is an attack that is run on a system, and counted."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.defence_rows import ATTRIBUTE, OTHERS, ROWS, Defence, averaging
from dpwitness.attacks.table_builder.plan import Plan
from dpwitness.attacks.table_builder.restricted import QuestionRefused
from dpwitness.attacks.table_builder.table import Table
from dpwitness.clock import Deadline
from dpwitness.errors import InvalidParameter

__all__ = ["measure"]

Wholes = NDArray[np.int64]
#: Called with how many rows are done, of how many, and the next one's name.
Progress: TypeAlias = Callable[[int, int, str], None]


def measure(
    seed: int, *, runs: int = 10, deadline: Deadline | None = None, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """Run each row's attack `runs` times on as many systems; the rows of the table.

    `questions`: asked for each value, on average, what is asked once for all of them included. `right`: the share of
    counts recovered; `published`: of those that were right as published; `predicted`: what theory expects, or null;
    `two_partitions`: the share that two-partitions alone recover, 200 a value, or null where a question is refused.

    Raises `InvalidParameter` where the deadline passes.
    """
    table = _table()
    rows = []
    for i, row in enumerate(ROWS):
        if progress is not None:
            progress(i, len(ROWS), row.name)
        if deadline is not None and not deadline.left:
            raise InvalidParameter(f"--max-time: {i} of {len(ROWS)} defences are measured; allow more time")
        rows.append(_measured(row, table, np.random.SeedSequence([seed, i]).spawn(runs)))
    return rows


def _table() -> Table:
    from statsmodels.datasets import randhie  # type: ignore[import-untyped]  # it ships no types

    frame = randhie.load_pandas().data
    return Table.from_columns({name: frame[name].round().astype(int).tolist() for name in (ATTRIBUTE, *OTHERS)})


def _measured(row: Defence, table: Table, streams: Sequence[np.random.SeedSequence]) -> dict[str, Any]:
    targets = table.positions(ATTRIBUTE, row.targets)
    true = table.histogram(ATTRIBUTE)[targets]
    eye = np.eye(len(table.values[ATTRIBUTE]), dtype=np.bool_)
    published = right = questions = 0
    predicted: list[float] = []
    for stream in streams:
        rng = np.random.default_rng(stream)
        system = row.system(table, rng)
        found, expected = row.attack(system, rng, targets)
        right += int(np.sum(np.array(found) == true))
        questions += system.asked
        published += int(np.sum(row.system(table, rng).ask(ATTRIBUTE, eye[targets]) == true))
        if row.law is not None and expected is not None:
            predicted.append(expected(row.law))
    number = len(streams) * len(true)
    return {
        "defence": row.name,
        "answer": row.answer,
        "source": row.source,
        "questions": questions / number,
        "published": published / number,
        "two_partitions": _plain(row, table, streams[:2], targets, true),
        "right": right / number,
        "predicted": float(np.mean(predicted)) / len(true) if predicted else None,
    }


def _plain(
    row: Defence, table: Table, streams: Sequence[np.random.SeedSequence], targets: Wholes, true: Wholes
) -> float | None:
    """The share right by 200 two-partitions a value."""
    attack, right = averaging(Plan(partitions=200)), 0
    for stream in streams:
        rng = np.random.default_rng(stream)
        try:
            found, _ = attack(row.system(table, rng), rng, targets)
        except QuestionRefused:
            return None
        right += int(np.sum(np.array(found) == true))
    return right / (len(streams) * len(true))
