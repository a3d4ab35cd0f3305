"""The questions of an attack and their answers, in memory and in a CSV file."""

import csv
import io
import json
import math
import numbers
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Generic, TypeVar

import numpy as np

from dpwitness.checks import brief, json_value
from dpwitness.errors import InvalidData
from dpwitness.files import read_named_rows, shown, write_atomically

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
        Names of the settings that identify the system: with other values, the answers belong to another system.
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


#: The columns of a file; the column "attack" has a value in the first row only.
COLUMNS: Final = ("question", "answer", "attack")


@dataclass(slots=True, eq=False)
class TranscriptRow:
    """A question, its answer or None, and whether this run of the attack asked it."""

    question: object
    answer: float | None = None
    asked: bool = False

    @property
    def value(self) -> float:
        """The answer, NaN if it is missing."""
        return math.nan if self.answer is None else self.answer


class Transcript:
    """Questions and their answers, in the order in which they were first asked; some may have no answer.

    An attack finds an answer by the question: an attack that continues with another budget asks some other questions,
    and still uses every answer. A question that is asked twice has two rows, found in their order.

    `family`, `seed`, `settings`: the origin of the questions, the attack's family, seed and options as JSON values.
    """

    def __init__(
        self, family: str, seed: int, settings: Mapping[str, object], rows: Iterable[TranscriptRow] = ()
    ) -> None:
        self.family, self.seed = family, seed
        self.settings = _as_read(settings)
        self.rows = list(rows)
        self.begin()

    def begin(self) -> None:
        """Begin a new run of the attack: no row has been found or asked."""
        self._unfound: dict[str, deque[TranscriptRow]] = defaultdict(deque)
        for row in self.rows:
            row.asked = False
            self._unfound[_key(row.question)].append(row)

    def row(self, question: object) -> TranscriptRow:
        """The question's first row that this run has not found before, else a new row."""
        if same := self._unfound.get(_key(question)):
            return same.popleft()
        self.rows.append(row := TranscriptRow(question))
        return row

    def save(self, path: str) -> None:
        """Write the rows that have an answer or that this run asked. Raises `InvalidData`."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        attack: object = {"family": self.family, "seed": self.seed, **self.settings}
        for row in self.rows:
            if row.asked or row.answer is not None:
                number = row.answer
                whole = int(number) if number is not None and number.is_integer() else number
                cells = (row.question, whole, attack)
                writer.writerow("" if one is None else json.dumps(one, ensure_ascii=False) for one in cells)
                attack = None
        write_atomically(path, text.getvalue())

    def require(self, seed: int | None, settings: Mapping[str, object], of_system: Sequence[str], path: str) -> None:
        """Replace the settings by `settings`, which may change the further questions.

        Raises `InvalidData` if the seed (None: not given) or a setting of `of_system` differs from the file.
        """
        asked, there = _as_read(settings), {"seed": self.seed, **self.settings}
        here = asked | {"seed": self.seed if seed is None else seed}
        for name in ("seed", *of_system):
            if here.get(name) != there.get(name):
                other = f"{name} {there.get(name)}, not {here.get(name)}"
                raise InvalidData(f"{shown(path)} is of an attack with {other}: give its options, or another file")
        self.settings = asked


def read_transcript(path: str, form: Form[Q]) -> Transcript:
    """The transcript in a CSV file that `save` wrote, with or without added answers; rows may be missing.

    Raises `InvalidData` for a file of another family, without a seed, or with an invalid answer.
    """
    name = shown(path)
    header, lines = read_named_rows(path, "holds no questions")
    if missing := [column for column in COLUMNS if column not in header]:
        raise InvalidData(f"{name} needs a column {missing[0]!r} in its header line; it has: {', '.join(header)}")
    attack: Any = None
    rows = []
    for line, cells in lines:
        fields = {column: _value(cell) for column, cell in zip(header, cells, strict=True)}
        given = fields["answer"]
        answer = None if given is None else form.read(given)
        if answer is None and given is not None:
            raise InvalidData(f"{name}, line {line}: answer {brief(given)}: give {form.answer}, or leave it empty")
        rows.append(TranscriptRow(fields["question"], answer))
        attack = fields["attack"] if attack is None else attack
    if not (isinstance(attack, dict) and type(attack.get("seed")) is int and attack["seed"] >= 0):
        raise InvalidData(f"{name} does not say of which attack it is: keep the column 'attack' of its first question")
    if attack.get("family") != form.family:
        raise InvalidData(f"{name} is of the family {brief(attack.get('family'))}, not {form.family!r}")
    settings = {key: value for key, value in attack.items() if key not in ("family", "seed")}
    return Transcript(form.family, attack["seed"], settings, rows)


def _value(cell: str) -> object:
    """The value of a cell: JSON, a text that is not JSON, or None for an empty cell."""
    try:
        return json_value(cell) if cell else None
    except ValueError:
        return cell


def _key(question: object) -> str:
    """A text that identifies a question: equal questions have equal texts."""
    return json.dumps(question, sort_keys=True)


def _as_read(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings as a file returns them, with lists for tuples."""
    read: dict[str, object] = json.loads(json.dumps(dict(settings)))
    return read
