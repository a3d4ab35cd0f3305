"""Questions out and answers in: attacks on a system that no function reaches, and those that go on."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from attacking import fill, rows_of

from dpwitness.cli import options
from dpwitness.cli.command import Subcommand, arguments_of
from dpwitness.errors import AttackStopped, BadInput, InvalidData
from dpwitness.reconstruction.command import AttackOptions, oracle_options, run_attack, settings_of
from dpwitness.reconstruction.questions import Asking, Limits, system_of
from dpwitness.reconstruction.transcript import Form, Transcript, as_number

FORM = Form(family="toy", answer="a finite number", written=int, handed=int, read=as_number, of_system=("size",))


def adaptive(ask, seed):
    """An attack whose second batch of questions depends on the answers to the first."""
    first = ask.ask([seed % 7, 10, 20])
    more = ask.ask([int(first.sum()) + k for k in range(2)])
    return [*first, *more]


def parsed(*words):
    taken = [*oracle_options("a number", "its double"), *options.common(max_time=60.0)]
    command = Subcommand("toy", summary="toy", run=len, parameters=taken, examples=())
    return arguments_of(command.make_context("toy", ["--quiet", *map(str, words)]))


def run(*words, settings=None, attack=adaptive):
    arguments = parsed(*words)
    arguments.attack = "toy"
    ended = run_attack(
        settings_of(AttackOptions, arguments),
        FORM,
        settings or {"size": 3},
        attack,
        lambda seed, progress: [],
    )
    return None if ended is None else ended.found


def answers_of(path):
    return [(json.loads(row["question"]), row["answer"]) for row in rows_of(path)]


def double(path, *, where=lambda place: True):
    """Fill in the answers, as a program of the user's would."""
    fill(path, lambda question, place: 2 * question if where(place) else None)


def test_questions_out_and_answers_in_of_an_adaptive_attack(tmp_path, capsys):
    file = tmp_path / "questions.csv"
    assert run("--ask", file, "--seed", 5) is None
    assert "3 questions wait in " in capsys.readouterr().out
    assert file.read_text().splitlines() == [
        "question,answer,attack", '5,,"{""family"": ""toy"", ""seed"": 5, ""size"": 3}"', "10,,", "20,,"
    ]  # fmt: skip
    assert run("--ask", file, "--json") is None  # nothing was answered: they still wait
    waiting = {"attack": "toy", "waiting": 3, "asked": 0, "questions": str(file)}
    assert json.loads(capsys.readouterr().out) == waiting
    double(file)
    assert run("--ask", file) is None
    assert "2 questions wait" in (told := capsys.readouterr().out)
    assert "after 3 answered ones" in told
    assert answers_of(file)[2:] == [(20, "40"), (70, ""), (71, "")]
    double(file)
    assert run("--ask", file) == [10, 20, 40, 140, 142]
    assert adaptive(Asking(FORM, system_of(lambda question: 2 * question, FORM, seed=5)), 5) == [10, 20, 40, 140, 142]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("question,answer\n5,10\n", "needs a column 'attack' in its header line; it has: question, answer"),
        ("question,answer,attack\n5,10,\n", "does not say of which attack it is"),
        ("question,answer,attack\n", "holds no questions"),
        ("question,answer,attack\n5,10,A\n10,nan,\n", "line 3: answer 'nan': give a finite number, or leave it empty"),
        ("question,answer,attack\n5,10,A\n10\n", "line 3: 1 values for 3 columns"),
        ("question,answer,attack\n5,10,A\n10,20,,4\n", "is not CSV: expected 3 fields in line 3, saw 4"),
    ],
)
def test_a_wrong_file_is_an_error_of_one_line(tmp_path, text, message):
    file = tmp_path / "q.csv"
    file.write_text(text.replace("A\n", '"{""family"": ""toy"", ""seed"": 5, ""size"": 3}"\n'))
    before = file.read_text()
    with pytest.raises(BadInput, match=message) as caught:
        run("--ask", file)
    assert "\n" not in str(caught.value)
    assert file.read_text() == before


def test_another_attack_is_seen(tmp_path):
    file = tmp_path / "q.csv"
    run("--ask", file, "--seed", 5)
    with pytest.raises(InvalidData, match="of an attack with seed 5, not 6"):
        run("--ask", file, "--seed", 6)
    with pytest.raises(InvalidData, match="of an attack with size 3, not 4"):
        run("--ask", file, settings={"size": 4})
    file.write_text(file.read_text().replace("toy", "other"))
    with pytest.raises(InvalidData, match="is of the family 'other', not 'toy'"):
        run("--ask", file)


def test_the_answers_so_far_are_written_every_few_seconds():
    saved, seconds = [], [0.0]

    def system(question):
        seconds[0] += 1
        return question

    asking = Asking(
        FORM, system_of(system, FORM, seed=1), transcript=Transcript("toy", 1, {}),
        limits=Limits(clock=SimpleNamespace(monotonic=lambda: seconds[0])), save=lambda: saved.append(asking.asked),
    )  # fmt: skip
    for question in range(8):
        asking.ask([question])
    assert saved == [3, 6]  # before a kill, not only at the end


def test_that_questions_wait_is_said_once_they_are_in_the_file(tmp_path, capsys, monkeypatch):
    """It was said before, also where the file could not be written."""

    def save(self, path):
        raise InvalidData("cannot write it")

    monkeypatch.setattr(Transcript, "save", save)
    with pytest.raises(InvalidData, match="cannot write it"):
        run("--ask", tmp_path / "q.csv", "--seed", 5)
    assert capsys.readouterr().out == ""


def some(*questions):
    """An attack that makes do with the answers there are."""

    def attack(ask, seed):
        return ask.ask_some(questions).tolist(), ask.stopped

    return attack


@pytest.mark.parametrize(
    ("asked", "kept", "budget", "again", "found", "stopped"),
    [
        ((5, 6, 7, 8), (0, 3), 9, (5, 6, 7, 8), [10, None, None, 16], "2 of 4 questions have no answer"),
        # A budget of less than was answered uses all answers; what is not asked does not wait.
        ((5, 6, 7), (0, 1, 2), 2, (4, 5, 6, 7), [None, 10, 12, 14], "--budget 2 is used up"),
    ],
)
def test_a_file_gives_the_answers_that_it_has(tmp_path, asked, kept, budget, again, found, stopped):
    file = tmp_path / "q.csv"
    run("--ask", file, "--seed", 5, attack=some(*asked))
    double(file, where=lambda place: place in kept)
    answers, why = run("--ask", file, "--budget", budget, attack=some(*again))
    assert [None if np.isnan(one) else one for one in answers] == found
    assert why.startswith(stopped)
    with pytest.raises(AttackStopped, match=stopped):
        run("--ask", file, "--budget", budget, attack=lambda ask, seed: ask.ask(again))


def test_other_questions_than_before_use_every_answer_that_fits(tmp_path, capsys):
    file = tmp_path / "q.csv"
    run("--ask", file, "--seed", 5, settings={"size": 3, "budget": 4}, attack=some(5, 6, 6, 7))
    double(file, where=lambda place: place < 3)
    assert run("--ask", file, settings={"size": 3, "budget": 9}, attack=some(6, 8, 5, 6, 6)) is None
    assert "2 questions wait" in capsys.readouterr().out
    assert answers_of(file) == [(5, "10"), (6, "12"), (6, "12"), (8, ""), (6, "")]  # 7 is not asked any more
    assert json.loads(rows_of(file)[0]["attack"]) == {"family": "toy", "seed": 5, "size": 3, "budget": 9}
    fill(file, lambda question, place: 3 * question)
    assert run("--ask", file, attack=some(6, 8, 5, 6, 6)) == ([12, 24, 10, 12, 18], None)
    assert run("--ask", file, attack=some(6, 5)) == ([12, 10], None)


def test_an_interruption_keeps_what_was_answered(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def system(question):\n    if question == 7:\n        raise KeyboardInterrupt\n    return 2 * question\n"
    )
    file, system = tmp_path / "kept.csv", f"{tmp_path / 'mine.py'}:system"
    with pytest.raises(KeyboardInterrupt):
        run("--oracle", system, "--ask", file, "--seed", 5, attack=some(5, 6, 7, 8))
    assert run("--ask", file, "--budget", 2, attack=some(5, 6, 7, 8))[0][:2] == [10, 12]
