"""The questions of an attack and their answers, in memory and in a file, CSV or JSON lines."""

import csv
import io
import json
import math
import numbers
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Generic, TypeAlias, TypeVar

import numpy as np

from dpwitness.checks import json_value, one_line
from dpwitness.errors import InvalidData
from dpwitness.files import read_text, shown, write_atomically

Q = TypeVar("Q")

#: The answers as texts, in lower case, that mean ⊤ (1) or ⊥ (0).
FLAG_TEXTS: Final = {"⊤": 1.0, "true": 1.0, "yes": 1.0, "1": 1.0, "⊥": 0.0, "false": 0.0, "no": 0.0, "0": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(Generic[Q]):
    """The form of the questions and answers of one family of attacks.

    Parameters
    ----------
    family
        The family's name.
    answer
        The kind of answer for messages, which put "give " before it: "a finite number".
    written
        A function from a question to JSON values for files: lists, not tuples, and Python's own numbers. Equal
        questions give equal values.
    handed
        A function from a question to the copy that the user's system gets, and may change.
    read
        A function from a system's or a file's value to the answer as a number; None for an invalid answer.
    of_system
        Names of the settings that identify the system: with other values, the answers are another system's.
    """

    family: str
    answer: str
    written: Callable[[Q], object]
    handed: Callable[[Q], object]
    read: Callable[[object], float | None]
    of_system: tuple[str, ...] = ()


def as_number(value: object) -> float | None:
    """A number of Python, NumPy or a database as a float; None for other values, flags and infinities included."""
    value = _scalar(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        return None
    try:
        number = float(value)
    except Exception:  # an int beyond all floats, a signalling NaN, or any error of the system's own type of numbers
        return None
    return number if math.isfinite(number) else None


def as_whole(value: object) -> float | None:
    """A whole number of at most 2⁵³ in size, 12.0 included, as a float; None for other values."""
    number = as_number(value)
    # Beyond 2⁵³ different whole numbers are the same float.
    return number if number is not None and number.is_integer() and abs(number) <= 1 << 53 else None


def as_flag(value: object) -> float | None:
    """A bool, a number (⊤ unless 0) or a text of `FLAG_TEXTS` as 1.0 for ⊤ or 0.0 for ⊥; None for other values."""
    value = _scalar(value)
    if isinstance(value, str):
        return FLAG_TEXTS.get(value.strip().lower())
    number = float(value) if isinstance(value, bool) else as_number(value)
    return None if number is None else float(number != 0)


def _scalar(value: object) -> object:
    if np.ma.is_masked(value):
        return None
    return value.item() if isinstance(value, np.ndarray | np.generic) and value.size == 1 else value


def read_records(path: str) -> list[tuple[str, dict[str, Any]]]:
    """The place, for messages, and the fields of each line of a file with ids and answers, in the order of the ids.

    A line has an "id" from 1, and may have "answer", "question" and "attack", JSON values or texts that are not JSON.
    Raises `InvalidData` for a file that is neither CSV with a header nor JSON lines, and for an id that is missing, not
    a whole number from 1, or repeated.
    """
    text, name = read_text(path), shown(path)
    lines = _json_lines(text, name) if text.lstrip()[:1] == "{" else _csv_lines(text, name)
    records: dict[int, tuple[str, dict[str, Any]]] = {}
    for place, fields in lines:
        number = fields.get("id")
        if type(number) is not int or number < 1:
            raise InvalidData(f"{place}: id {number!r:.60} must be the number of a question, from 1")
        if number in records:
            raise InvalidData(f"{place}: question {number} stands there twice; leave one out")
        records[number] = place, fields
    return [records[number] for number in sorted(records)]


def _json_lines(text: str, name: str) -> Iterator[tuple[str, dict[str, object]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        place = f"{name}, line {number}"
        try:
            fields = json_value(line)
        except ValueError as error:
            raise InvalidData(f"{place} is not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise InvalidData(f'{place} must be an object such as {{"id": 1, "answer": 0}}')
        yield place, fields


def _csv_lines(text: str, name: str) -> Iterator[tuple[str, dict[str, object]]]:
    import pandas as pd  # type: ignore[import-untyped]  # no stubs; 0.4 s

    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)  # spreadsheets of different countries write different ones
    try:
        # Empty lines are rows, so that rows and lines have the same numbers.
        table = pd.read_csv(
            io.StringIO(text), sep=delimiter, header=None, dtype=str, keep_default_na=False, skip_blank_lines=False
        )
    except pd.errors.EmptyDataError:
        table = pd.DataFrame([[""]])
    except pd.errors.ParserError as error:
        raise InvalidData(f"{name} is not CSV: {one_line(error)}") from error
    header, *rows = [[cell.strip() for cell in row] for row in table.to_numpy(str)]  # a missing cell is an empty one
    header = [cell.lower() for cell in header]
    if missing := [column for column in ("id", "answer") if header.count(column) != 1]:
        raise InvalidData(f"{name} needs one column {missing[0]!r} in its header line; it has: {', '.join(header)}")
    for number, row in enumerate(rows, 2):
        if any(row):
            yield f"{name}, line {number}", {column: _value(cell) for column, cell in zip(header, row, strict=True)}


def _value(cell: str) -> object:
    """The value of a cell: JSON, a text that is not JSON, or None for an empty cell."""
    if not cell:
        return None
    try:
        return json_value(cell)
    except ValueError:
        return cell


#: The id and the answer of each row of a transcript.
State: TypeAlias = Sequence[tuple[int, float | None]]

#: The columns of a CSV file, in their order; the column "attack" has a value in the first row only.
COLUMNS: Final = ("id", "question", "answer", "attack")


@dataclass(slots=True)
class Row:
    """A question, its answer or None, and whether this run of the attack asked it.

    `id`: the row's number in the transcript, from 1; 0 while it is in no transcript.
    """

    id: int
    question: object
    answer: float | None = None
    asked: bool = False

    @property
    def value(self) -> float:
        """The answer, NaN if it is missing."""
        return math.nan if self.answer is None else self.answer


class Transcript:
    """Questions and their answers, in the order in which they were first asked; some may have no answer.

    An attack finds an answer by the question, not by its number: an attack that continues with another budget asks some
    other questions, and still uses every answer. A question that is asked twice has two rows, found in their order.

    `family`, `seed`, `settings`: the origin of the questions, the attack's family, seed and options as JSON values.
    """

    def __init__(self, family: str, seed: int, settings: Mapping[str, object], rows: Iterable[Row] = ()) -> None:
        self.family, self.seed = family, seed
        self.settings = _as_read(settings)
        self.rows = list(rows)
        self._last = max((row.id for row in self.rows), default=0)  # the largest id that a row ever had
        self.begin()

    @property
    def answered(self) -> int:
        """The number of questions with answers."""
        return sum(row.answer is not None for row in self.rows)

    @property
    def state(self) -> State:
        """The ids and answers of all rows; if these change, the file has to be written."""
        return [(row.id, row.answer) for row in self.rows]

    def begin(self) -> None:
        """Begin a new run of the attack: no row counts as asked."""
        self._unasked: dict[str, deque[Row]] = {}
        for row in self.rows:
            row.asked = False
            self._unasked.setdefault(_key(row.question), deque()).append(row)

    def find(self, question: object) -> Row | None:
        """The question's first row that this run has not found before, or None."""
        same = self._unasked.get(_key(question)) if self._unasked else None
        if not same:
            return None
        same[0].asked = True
        return same.popleft()

    def add(self, row: Row) -> None:
        """Append a row of this run, with an id that no row has had before."""
        self._last += 1
        row.id, row.asked = self._last, True
        self.rows.append(row)

    def forget_unasked(self) -> None:
        """Drop the unanswered questions that this run has not asked."""
        self.rows = [row for row in self.rows if row.asked or row.answer is not None]

    def save(self, path: str) -> None:
        """Write the file: CSV if its name ends in ".csv", else JSON lines. Raises `InvalidData`."""
        write_atomically(path, self._csv() if path.lower().endswith(".csv") else self._json_lines())

    def require(self, seed: int | None, settings: Mapping[str, object], of_system: Sequence[str], path: str) -> None:
        """Replace the settings by `settings`, which may change the further questions.

        Raises `InvalidData` if the seed (None: not given) or a setting of `of_system` differs from the file's.
        """
        asked = _as_read(settings)
        for name, here in {"seed": seed, **{name: asked.get(name) for name in of_system}}.items():
            there = self.seed if name == "seed" else self.settings.get(name)
            if here != there and not (name == "seed" and here is None):
                raise InvalidData(
                    f"{shown(path)} is of an attack with {name} {there}, not {here}: give its options, or another file"
                )
        self.settings = asked

    def _fields(self) -> Iterable[dict[str, object]]:
        attack = {"family": self.family, "seed": self.seed, **self.settings}
        for place, row in enumerate(self.rows):
            answer = row.answer
            whole = int(answer) if answer is not None and answer.is_integer() else answer
            yield {"id": row.id, "question": row.question, "answer": whole, "attack": None if place else attack}

    def _json_lines(self) -> str:
        rows = ({name: v for name, v in row.items() if v is not None or name != "attack"} for row in self._fields())
        return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)

    def _csv(self) -> str:
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in self._fields():
            writer.writerow({k: None if v is None else json.dumps(v, ensure_ascii=False) for k, v in row.items()})
        return text.getvalue()


def read_transcript(path: str, form: Form[Q]) -> Transcript:
    """The transcript in a file that `save` wrote, with or without added answers; lines may be missing.

    Raises `InvalidData` for a file of another family, without a seed, or with an invalid answer.
    """
    records = read_records(path)
    attack = next((fields["attack"] for _, fields in records if fields.get("attack") is not None), None)
    if not (isinstance(attack, dict) and type(attack.get("seed")) is int and attack["seed"] >= 0):
        raise InvalidData(
            f"{shown(path)} does not say of which attack it is: give --ask FILE with the questions as well"
            if records
            else f"{shown(path)} holds no questions"
        )
    if attack.get("family") != form.family:
        raise InvalidData(f"{shown(path)} is of the family {attack.get('family')!r:.60}, not {form.family!r}")
    settings = {name: value for name, value in attack.items() if name not in ("family", "seed")}
    rows = [Row(fields["id"], fields.get("question"), _read(place, fields, form)) for place, fields in records]
    return Transcript(form.family, attack["seed"], settings, rows)


def add_answers(transcript: Transcript, path: str, form: Form[Q]) -> None:
    """Add the answers of a file with ids and answers. Raises `InvalidData` for ids and answers that do not fit."""
    rows = {row.id: row for row in transcript.rows}
    for place, fields in read_records(path):
        answer, row = _read(place, fields, form), rows.get(fields["id"])
        if row is None:
            raise InvalidData(f"{place}: there is no question {fields['id']}, only {len(rows)} were asked")
        if fields.get("question") not in (None, row.question):
            raise InvalidData(f"{place}: question {row.id} differs from that in the file of questions")
        if None not in (answer, row.answer) and answer != row.answer:
            raise InvalidData(
                f"{place}: question {row.id} is answered {answer:g}, and was answered {row.answer:g} before"
            )
        row.answer = row.answer if answer is None else answer


def _read(place: str, fields: Mapping[str, Any], form: Form[Q]) -> float | None:
    given = fields.get("answer")
    answer = None if given is None else form.read(given)
    if answer is None and given is not None:
        raise InvalidData(f"{place}: {given!r:.60} for question {fields['id']}: give {form.answer}, or leave it empty")
    return answer


def shown_question(question: object) -> str:
    """A question as JSON on one line, without its middle if it is long."""
    text = json.dumps(question, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:80]} … {text[-30:]}"


def _key(question: object) -> str:
    """A text that identifies a question: equal questions have equal texts."""
    return json.dumps(question, sort_keys=True)


def _as_read(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings as a file returns them, with lists for tuples."""
    read: dict[str, object] = json.loads(json.dumps(dict(settings)))
    return read
