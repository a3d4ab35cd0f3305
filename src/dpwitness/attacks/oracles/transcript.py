"""The questions of an attack and their answers so far, with the seed that they follow from: memory, and a file."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dpwitness.attacks.oracles.form import Form
from dpwitness.attacks.oracles.reading import Record, read_records
from dpwitness.errors import InvalidData
from dpwitness.files import shown, write_atomically

__all__ = ["Transcript", "add_answers", "read_transcript", "shown_question"]

Q = TypeVar("Q")

#: Columns of the file, in their order; the first line alone says of which attack it is.
COLUMNS: Final = ("id", "question", "answer", "attack")
LONGEST: Final = 120  # characters of a question in a message


@dataclass(slots=True)
class _Row:
    question: Any
    answer: float | None = None
    place: str | None = None  # where the answer came from, for messages


class Transcript:
    """Questions in the order in which an attack asks them; those without answers come last, in one batch.

    Parameters
    ----------
    family, seed, settings
        What the questions follow from: the family's name, the attack's seed and its options, as JSON values.
    """

    def __init__(self, family: str, seed: int, settings: Mapping[str, Any]) -> None:
        self.family, self.seed = family, seed
        self.settings: dict[str, Any] = json.loads(json.dumps(dict(settings)))  # lists for tuples, as a file has them
        self.rows: list[_Row] = []
        self.answered = 0

    def answer(self, place: int, question: Any) -> float:
        """The recorded answer at a place, from 0. Raises `InvalidData` where another question was asked there."""
        row = self.rows[place]
        self._same(place, question)
        assert row.answer is not None  # the caller looks at `answered`
        return row.answer

    def add(self, question: Any, answer: float | None) -> None:
        """Keep an answer to the first question that has none, or to a new one."""
        if self.answered == len(self.rows):
            self.rows.append(_Row(question))
        self._same(self.answered, question)
        self.rows[self.answered].answer = answer
        self.answered += 1

    def wait(self, questions: Iterable[Any], answered: int) -> int:
        """Keep questions without answers, the rest of a batch; returns how many they are.

        `answered`: how many questions of the batch have answers. Raises `InvalidData` where answers to some of them are
        missing in the file.
        """
        if answered and self.answered < len(self.rows):
            raise InvalidData(
                f"question {self.answered + 1} has no answer: of the {len(self.rows)} questions the first "
                f"{self.answered} are answered; answer all, or none of the last {answered + len(list(questions))}"
            )
        found = [_Row(question) for question in questions]
        for place, row in enumerate(self.rows[self.answered :]):
            if place >= len(found) or row.question != found[place].question:
                raise self._other(self.answered + place)
        self.rows[self.answered :] = found
        return len(found)

    def save(self, path: str) -> None:
        """Write the file: CSV where its name ends so, else JSON lines. Raises `InvalidData`."""
        write_atomically(path, self._csv() if path.lower().endswith(".csv") else self._json_lines())

    def require(self, seed: int | None, settings: Mapping[str, Any], path: str) -> None:
        """Raise `InvalidData` unless these are the seed (None: not given) and settings that the file was made with."""
        asked = Transcript(self.family, self.seed, settings).settings
        for name, here in {"seed": seed, **asked}.items():
            there = self.seed if name == "seed" else self.settings.get(name)
            if here != there and not (name == "seed" and here is None):
                raise InvalidData(
                    f"{shown(path)} is of an attack with {name} {there}, not {here}: give its options, or another file"
                )

    def _same(self, place: int, question: Any) -> None:
        if self.rows[place].question != question:
            raise self._other(place)

    def _other(self, place: int) -> InvalidData:
        return InvalidData(
            f"question {place + 1} of the file, {shown_question(self.rows[place].question)}, is not what this attack "
            "asks there: the file was changed, or is of another attack or version; begin a new one"
        )

    def _fields(self) -> Iterable[dict[str, Any]]:
        attack = {"family": self.family, "seed": self.seed, **self.settings}
        for place, row in enumerate(self.rows):
            answer = row.answer
            whole = int(answer) if answer is not None and answer.is_integer() else answer
            yield {"id": place + 1, "question": row.question, "answer": whole, "attack": None if place else attack}

    def _json_lines(self) -> str:
        rows = ({name: v for name, v in row.items() if v is not None or name != "attack"} for row in self._fields())
        return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)

    def _csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in self._fields():
            cells = [None if row[name] is None else json.dumps(row[name], ensure_ascii=False) for name in COLUMNS]
            writer.writerow(cells)
        return text.getvalue()


def read_transcript(path: str, form: Form[Q]) -> Transcript:
    """The file that `save` wrote, with answers filled in or without.

    Raises `InvalidData` for a file of another family, without a seed, with gaps, or with what is no answer.
    """
    records = read_records(path)
    attack = next((record.attack for record in records if record.attack is not None), None)
    if not (isinstance(attack, dict) and type(attack.get("seed")) is int and attack["seed"] >= 0):
        raise InvalidData(
            f"{shown(path)} does not say of which attack it is: give --ask FILE with the questions as well"
            if records
            else f"{shown(path)} holds no questions"
        )
    if attack.get("family") != form.family:
        raise InvalidData(f"{shown(path)} is of the family {attack.get('family')!r:.60}, not {form.family!r}")
    settings = {name: value for name, value in attack.items() if name not in ("family", "seed")}
    found = Transcript(form.family, attack["seed"], settings)
    for place, record in enumerate(records, 1):
        if record.id != place:
            raise InvalidData(f"{record.place}: question {place} is missing before question {record.id}")
        found.rows.append(_Row(record.question, _read(record, form), record.place))
    _settle(found)
    return found


def add_answers(transcript: Transcript, path: str, form: Form[Q]) -> None:
    """Take the answers of a file with ids and answers; raises `InvalidData` for ids and answers that cannot be used."""
    for record in read_records(path):
        answer = _read(record, form)
        if record.id > len(transcript.rows):
            raise InvalidData(
                f"{record.place}: there is no question {record.id}, only {len(transcript.rows)} were asked"
            )
        row = transcript.rows[record.id - 1]
        if record.question is not None and record.question != row.question:
            raise InvalidData(f"{record.place}: question {record.id} is another one than in the file of questions")
        if answer is None:
            continue
        if row.answer is not None and row.answer != answer:
            raise InvalidData(
                f"{record.place}: question {record.id} is answered {answer:g}, and was answered {row.answer:g} before"
            )
        row.answer, row.place = answer, record.place
    _settle(transcript)


def _read(record: Record, form: Form[Q]) -> float | None:
    if record.answer is None:
        return None
    answer = form.read(record.answer)
    if answer is None:
        raise InvalidData(f"{record.place}: {record.answer!r:.60} for question {record.id}: give {form.answer}")
    return answer


def _settle(transcript: Transcript) -> None:
    """Count the answers, which must come before the questions that have none."""
    given = [row.answer is not None for row in transcript.rows]
    transcript.answered = given.index(False) if False in given else len(given)
    if any(given[transcript.answered :]):
        later = given.index(True, transcript.answered)
        raise InvalidData(
            f"question {transcript.answered + 1} has no answer, but question {later + 1} has one "
            f"({transcript.rows[later].place})"
        )


def shown_question(question: Any) -> str:
    """A question on a line, its middle left out where it is long."""
    text = json.dumps(question, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[: LONGEST * 2 // 3]} … {text[-LONGEST // 4 :]}"
