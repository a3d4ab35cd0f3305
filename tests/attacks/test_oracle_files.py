"""Questions out and answers in: attacks on a system that no function reaches, and those that go on."""

import json
import signal

import numpy as np
import pytest

from dpwitness.cli import options
from dpwitness.cli.command import Command, arguments_of
from dpwitness.errors import AttackStopped, BadInput, InvalidData, InvalidParameter, OracleFailed
from dpwitness.reconstruction.command import AttackOptions, oracle_options, run_attack, settings_of
from dpwitness.reconstruction.questions import Asking, Clock, Limits, system_of
from dpwitness.reconstruction.transcript import Form, Transcript, as_number

FORM = Form(family="toy", answer="a finite number", written=int, handed=int, read=as_number, of_system=("size",))


def adaptive(ask, seed):
    """An attack whose second batch of questions depends on the answers to the first."""
    first = ask.ask([seed % 7, 10, 20])
    more = ask.ask([int(first.sum()) + k for k in range(2)])
    return [*first, *more]


def parsed(*words):
    taken = [*oracle_options("a number", "its double"), *options.common(max_time=60.0)]
    command = Command("toy", summary="toy", run=len, parameters=taken, examples=())
    return arguments_of(command.make_context("toy", ["--quiet", *map(str, words)]))


def run(*words, settings=None, attack=adaptive):
    arguments = parsed(*words)
    arguments.attack = "toy"
    ended = run_attack(
        settings_of(AttackOptions, arguments),
        FORM,
        settings or {"size": 3},
        lambda ask, seed: (attack(ask, seed), None),
        lambda seed, progress: [],
    )
    return None if ended is None else ended.found


def answer(path, *, of=lambda question: 2 * question, where=lambda number: True):
    """Fill in the answers, as a program of the user's would."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        if row["answer"] is None and where(row["id"]):
            row["answer"] = of(row["question"])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_questions_out_and_answers_in_of_an_adaptive_attack(tmp_path, capsys):
    file = tmp_path / "questions.jsonl"
    assert run("--ask", file, "--seed", 5) is None
    assert "3 questions wait in " in capsys.readouterr().out
    assert [json.loads(line) for line in file.read_text().splitlines()] == [
        {"id": 1, "question": 5, "answer": None, "attack": {"family": "toy", "seed": 5, "size": 3}},
        {"id": 2, "question": 10, "answer": None},
        {"id": 3, "question": 20, "answer": None},
    ]
    assert run("--ask", file, "--json") is None  # nothing was answered: they still wait
    waiting = {"attack": "toy", "waiting": 3, "asked": 0, "questions": str(file)}
    assert json.loads(capsys.readouterr().out) == waiting
    answer(file)
    assert run("--ask", file) is None
    assert "2 questions wait" in (told := capsys.readouterr().out)
    assert "after 3 answered ones" in told
    assert len(file.read_text().splitlines()) == 5
    answer(file)
    assert run("--ask", file) == run("--answers", file) == [10, 20, 40, 140, 142]
    assert adaptive(Asking(FORM, system_of(lambda question: 2 * question, FORM, seed=5)), 5) == [10, 20, 40, 140, 142]


def test_csv_and_a_file_with_answers_alone(tmp_path, capsys):
    file, answers = tmp_path / "q.csv", tmp_path / "a.csv"
    run("--ask", file, "--seed", 5)
    assert file.read_text().splitlines()[:3] == [
        "id,question,answer,attack",
        '1,5,,"{""family"": ""toy"", ""seed"": 5, ""size"": 3}"',
        "2,10,,",
    ]
    answers.write_text("ID; Answer\r\n3;40\r\n1;10\r\n2;20\r\n")
    assert run("--ask", file, "--answers", answers) is None
    assert "2,10,20,\n3,20,40,\n4,70,,\n5,71,,\n" in file.read_text()
    answers.write_text('{"id": 4, "answer": 140.5}\n{"id": 5, "answer": 142}\n')
    assert run("--ask", file, "--answers", answers) == [10, 20, 40, 140.5, 142]
    with pytest.raises(InvalidData, match="does not say of which attack it is: give --ask FILE"):
        run("--answers", answers)
    assert "wait in" in capsys.readouterr().out


def test_more_questions_need_a_place(tmp_path):
    file = tmp_path / "q.jsonl"
    run("--ask", file, "--seed", 5)
    answer(file)
    before = file.read_text()
    with pytest.raises(InvalidParameter, match="2 more questions wait: give --ask FILE"):
        run("--answers", file)
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"cannot read .*a\.csv"),
        ("id,answer\n1,10\n1,20\n", "a.csv, line 3: question 1 stands there twice"),
        ("id,answer\n1,10\n2,20\n3,nan\n", "line 4: 'nan' for question 3: give a finite number, or leave it empty"),
        ("id,answer\n1,10\n2,20\n9,3\n", "line 4: there is no question 9, only 3 were asked"),
        ("id,answer\nx,10\n", "line 2: id 'x' must be the number of a question"),
        ("id,answer\n1,10\n2,20,3\n", "a.csv is not CSV: .*Expected 2 fields in line 3, saw 3"),
        ("number,answer\n1,10\n", "needs one column 'id' in its header line; it has: number, answer"),
        ('{"id": 1, "answer": 1}\n[]\n', r"line 2 must be an object"),
        ('{"id": 1, "answer": 1}\n{\n', r"line 2 is not JSON"),
        ("id,question,answer\n1,6,10\n", "line 2: question 1 differs from that in the file of questions"),
    ],
)
def test_wrong_answers_are_errors_of_one_line(tmp_path, text, message):
    file, answers = tmp_path / "q.csv", tmp_path / "a.csv"
    run("--ask", file, "--seed", 5)
    before = file.read_text()
    if text is not None:
        answers.write_text(text)
    with pytest.raises(BadInput, match=message) as caught:
        run("--ask", file, "--answers", answers)
    assert "\n" not in str(caught.value)
    assert file.read_text() == before


def test_another_attack_or_another_answer_is_seen(tmp_path):
    file, answers = tmp_path / "q.jsonl", tmp_path / "a.csv"
    run("--ask", file, "--seed", 5)
    with pytest.raises(InvalidData, match="of an attack with seed 5, not 6"):
        run("--ask", file, "--seed", 6)
    with pytest.raises(InvalidData, match="of an attack with size 3, not 4"):
        run("--ask", file, settings={"size": 4})
    answer(file)
    answers.write_text("id,answer\n1,11\n")
    with pytest.raises(InvalidData, match="question 1 is answered 11, and was answered 10 before"):
        run("--ask", file, "--answers", answers)
    file.write_text(file.read_text().replace("toy", "other"))
    with pytest.raises(InvalidData, match="is of the family 'other', not 'toy'"):
        run("--ask", file)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_a_system_that_is_never_made_ends_with_the_time(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("import time\ndef connected():\n    time.sleep(60)\n    return lambda question: 2 * question\n")
    with pytest.raises(OracleFailed, match=r"was not made within --max-time 0\.05: allow more time"):
        run("--oracle", f"{file}:connected", "--max-time", 0.05)


def test_the_answers_so_far_are_written_every_few_seconds():
    saved, seconds = [], [0.0]

    def system(question):
        seconds[0] += 1
        return question

    asking = Asking(
        FORM, system_of(system, FORM, seed=1), transcript=Transcript("toy", 1, {}),
        limits=Limits(clock=Clock(now=lambda: seconds[0])), save=lambda: saved.append(asking.asked),
    )  # fmt: skip
    for question in range(8):
        asking.ask([question])
    assert saved == [3, 6]  # before a kill, not only at the end


def test_a_budget_holds_for_files_too(tmp_path):
    file = tmp_path / "q.jsonl"
    run("--ask", file, "--seed", 5)
    answer(file)
    with pytest.raises(AttackStopped, match="3 questions were asked, and the attack asks more"):
        run("--ask", file, "--budget", 4)
    assert run("--ask", file, "--budget", 5) is None


def test_that_questions_wait_is_said_once_they_are_in_the_file(tmp_path, capsys, monkeypatch):
    """It was said before, also where the file could not be written."""

    def save(self, path):
        raise InvalidData("cannot write it")

    monkeypatch.setattr(Transcript, "save", save)
    with pytest.raises(InvalidData, match="cannot write it"):
        run("--ask", tmp_path / "q.jsonl", "--seed", 5)
    assert capsys.readouterr().out == ""


def some(*questions):
    """An attack that makes do with the answers there are."""

    def attack(ask, seed):
        return ask.ask_some(questions).tolist(), ask.stopped

    return attack


@pytest.mark.parametrize(
    ("asked", "kept", "options", "again", "found", "stopped"),
    [
        ((5, 6, 7, 8), (1, 4), "--ask", (5, 6, 7, 8), [10, None, None, 16], "2 of 4 questions have no answer"),
        ((5, 6, 7, 8), (1, 4), "--answers", (5, 6, 7, 8), [10, None, None, 16], "2 of 4 questions have no answer"),
        ((5, 6, 7), (1, 3), "--answers", (5, 6, 7), [10, None, 14], "1 question has no answer in the file, question 6"),
        ((5, 6), (1, 2), "--answers", (5, 6, 7), [10, 12, None], "1 question has no answer in the file, question 7"),
        # A budget of less than was answered uses all answers; what is not asked does not wait.
        ((5, 6, 7), (1, 2, 3), "--budget 2 --ask", (4, 5, 6, 7), [None, 10, 12, 14], "--budget 2 is used up: 3 questi"),
    ],
)
@pytest.mark.parametrize("lost", [False, True])
def test_a_file_gives_the_answers_that_it_has(tmp_path, asked, kept, options, again, found, stopped, lost):
    """Where others are not filled in, or their lines are lost."""
    file = tmp_path / "q.jsonl"
    run("--ask", file, "--seed", 5, attack=some(*asked))
    answer(file, where=lambda number: number in kept)
    lines = file.read_text().splitlines(keepends=True)
    if lost and options != "--ask":
        file.write_text("".join(line for line in lines if json.loads(line)["answer"] is not None))
    answers, why = run(*options.split(), file, attack=some(*again))
    assert [None if np.isnan(one) else one for one in answers] == found
    assert why.startswith(stopped)
    if options != "--ask":
        return
    with pytest.raises(AttackStopped, match=stopped) as caught:
        run("--ask", file, attack=lambda ask, seed: ask.ask(again))
    assert caught.value.answers == (10,)
    (tmp_path / "a.csv").write_text("id,answer\n3,14\n")
    assert run("--ask", file, "--answers", tmp_path / "a.csv", attack=some(*again))[0][2] == 14


def test_other_questions_than_before_use_every_answer_that_fits(tmp_path, capsys):
    file = tmp_path / "q.jsonl"
    run("--ask", file, "--seed", 5, settings={"size": 3, "budget": 4}, attack=some(5, 6, 6, 7))
    answer(file, where=lambda number: number < 4)
    assert run("--ask", file, settings={"size": 3, "budget": 9}, attack=some(6, 8, 5, 6, 6)) is None
    assert "2 questions wait" in capsys.readouterr().out
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["id"], row["question"], row["answer"]) for row in rows] == [
        (1, 5, 10), (2, 6, 12), (3, 6, 12), (5, 8, None), (6, 6, None)
    ]  # fmt: skip  # question 4 is not asked any more, and its number is given to no other
    assert rows[0]["attack"] == {"family": "toy", "seed": 5, "size": 3, "budget": 9}
    answer(file, of=lambda question: 3 * question)
    assert run("--ask", file, attack=some(6, 8, 5, 6, 6)) == ([12, 24, 10, 12, 18], None)
    assert run("--ask", file, attack=some(6, 5)) == ([12, 10], None)


def test_an_interruption_keeps_what_was_answered(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def system(question):\n    if question == 7:\n        raise KeyboardInterrupt\n    return 2 * question\n"
    )
    file, system = tmp_path / "kept.csv", f"{tmp_path / 'mine.py'}:system"
    with pytest.raises(KeyboardInterrupt):
        run("--oracle", system, "--ask", file, "--seed", 5, attack=some(5, 6, 7, 8))
    assert run("--answers", file, attack=some(5, 6, 7, 8))[0][:2] == [10, 12]
