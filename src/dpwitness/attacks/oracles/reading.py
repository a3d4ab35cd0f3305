"""Files of questions and answers, read: CSV or JSON lines, told apart by their first character."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dpwitness.errors import InvalidData
from dpwitness.files import LARGEST, read_text, shown

__all__ = ["Record", "read_records"]

#: The names that a CSV header or a JSON object may have; the first two are needed.
NAMES: Final = ("id", "answer", "question", "attack")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line: `id` counts from 1; `answer`, `question` and `attack` as JSON values, None where there is none."""

    place: str
    id: int
    answer: Any
    question: Any
    attack: Any


def read_records(path: str) -> list[Record]:
    """The lines of a file with ids and answers, by id.

    An answer is as JSON has it, or a text that is no JSON. Raises `InvalidData` for a file that is neither CSV with a
    header nor JSON lines, for ids that are missing, no whole numbers of at least 1, or there twice.
    """
    text, name = read_text(path), shown(path)
    lines = _json_lines(text, name) if text.lstrip()[:1] == "{" else _csv_lines(text, name)
    found: dict[int, Record] = {}
    for place, fields in lines:
        identity = fields.get("id")
        if type(identity) is not int or identity < 1:
            raise InvalidData(f"{place}: id {identity!r:.60} must be the number of a question, from 1")
        if identity in found:
            raise InvalidData(f"{place}: question {identity} is there twice; leave one of them out")
        found[identity] = Record(
            place=place,
            id=identity,
            answer=fields.get("answer"),
            question=fields.get("question"),
            attack=fields.get("attack"),
        )
    return [found[identity] for identity in sorted(found)]


def _json_lines(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        place = f"{name}, line {number}"
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidData(f"{place} is not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise InvalidData(f'{place} must be an object such as {{"id": 1, "answer": 0}}')
        yield place, fields


def _csv_lines(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)  # as spreadsheets of all countries write it
    rows = iter(_csv_rows(text, name, delimiter))
    header = [cell.strip().lower() for cell in next(rows, (1, []))[1]]
    if missing := [column for column in NAMES[:2] if header.count(column) != 1]:
        raise InvalidData(f"{name} needs one column {missing[0]!r} in its header line; it has: {', '.join(header)}")
    for number, row in rows:
        if not any(cell.strip() for cell in row):
            continue
        place = f"{name}, line {number}"
        if len(row) != len(header):
            raise InvalidData(f"{place}: {len(row)} cells for {len(header)} columns")
        yield place, {column: _value(cell.strip()) for column, cell in zip(header, row, strict=True)}


def _csv_rows(text: str, name: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """All rows with their lines: the limit on a cell is the whole program's, and is as before when this returns."""
    before = csv.field_size_limit(LARGEST)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        return [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise InvalidData(f"{name} is not CSV: {error}") from error
    finally:
        csv.field_size_limit(before)


def _value(cell: str) -> Any:
    """What a cell holds: JSON, a text that is none, or nothing."""
    if not cell:
        return None
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell
