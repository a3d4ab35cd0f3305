"""`dpwitness attack table_builder` on a system of the user's own: counts of a SQLite database behind bounded noise."""

import csv
import json
import runpy
from typing import ClassVar

import pytest

from dpwitness.cli import main
from dpwitness.reconstruction.table_builder import Oracle, oracle
from dpwitness.reconstruction.table_builder.tables import read_table, values_named

SYSTEM = '''
"""People in a real database; the same rows get the same noise, at most four are suppressed."""
import random
import sqlite3

AGES, SEXES = range(20, 32), ("F", "M")


def connect():
    database = sqlite3.connect(":memory:")
    database.execute("create table people (age integer, sex text, key integer)")
    keys = random.Random(0)
    rows = [(age, sex) for age in AGES for sex in SEXES for _ in range(3 + 2 * (age % 7))]
    rows += [(40, "F"), (40, "M"), (41, "F")]
    database.executemany("insert into people values (?, ?, ?)", [(*row, keys.getrandbits(40)) for row in rows])
    return database


def where(condition):
    clauses = [f"{name} in ({', '.join('?' * len(values))})" for name, values in condition.items()]
    return " and ".join(clauses) or "1", [value for values in condition.values() for value in values]


class Counts:
    """One question at a time."""

    values = {"age": [*AGES, 40, 41, 42], "sex": list(SEXES)}

    def __init__(self, seed=0):
        self.database, self.noise, self.random = connect(), {}, random.Random(seed)

    def __call__(self, condition):
        text, values = where(condition)
        people, key = self.database.execute(f"select count(*), sum(key) from people where {text}", values).fetchone()
        condition.clear()  # a question is a copy
        return people + self.noise.setdefault(key, self.random.randint(-2, 2)) if people > 4 else None


class Many:
    """Many at once."""

    def __init__(self, seed):
        self.count = Counts(seed)

    def ask_all(self, questions):
        return [self.count(question) for question in questions]


def broken(condition):
    return 3.5
'''
TRUE = [6 + 4 * (age % 7) for age in range(20, 32)] + [2, 1, 0]


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(SYSTEM)
    (tmp_path / "true.csv").write_text(
        "age,sex,count\n" + "".join(f"{age},F,{n}\n" for age, n in zip([*range(20, 32), 40, 41, 42], TRUE, strict=True))
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def attack(capsys, *more, seed="1"):
    assert main(["attack", "table_builder", *more, "--seed", seed, "--json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)


def test_what_is_recovered_and_how_sure_that_is_without_the_truth(mine, capsys):
    found = attack(capsys, "--oracle", "mine.py:Counts")
    assert found["recovered"] == TRUE  # 15 values, each wrong with probability 4e-4
    assert found["published"] != TRUE
    assert found["published"][-3:] == [0, 0, 0]
    assert (found["right"], found["true"], found["data"], found["stopped"]) == (None, None, None, None)
    assert min(found["probability"]) > 0.9
    assert found["probably_right"] == pytest.approx(sum(found["probability"]))
    assert 1.5 < found["noise_variance"] < 2.5
    assert found["questions"] == found["queries"]
    many = attack(capsys, "--oracle", "mine.py:Many", "--values", "age=20:31", "--value", "23")
    assert many["recovered"] == [TRUE[3]]


def test_the_truth_says_how_much_is_right(mine, capsys):
    found = attack(capsys, "--oracle", "mine.py:Counts", "--data", "true.csv", "--value", "25", "--value", "41")
    assert found["values"] == [25, 41]
    assert found["true"] == found["recovered"] == [TRUE[5], 1]
    assert found["right"] == 2
    assert found["suppressed_right"] == found["suppressed"] == 1
    few = ["--values", "age=20:31", "--partitions", "40", "--seed", "1"]
    assert main(["attack", "table_builder", "--oracle", "mine.py:Counts", *few]) == 0
    text = capsys.readouterr().out
    assert text.startswith("RECOVERED: 12 counts of 'age', each right with probability 0.")
    assert "system       mine.py:Counts\n" in text


@pytest.mark.campaign
def test_the_truth_is_found_by_value(mine, capsys):
    few = ["--oracle", "mine.py:Counts", "--data", "true.csv", "--partitions", "200"]
    backwards = ",".join(map(str, [*range(31, 19, -1), 99]))  # in an order of its own, and one that nobody has
    found = attack(capsys, *few, "--values", f"age={backwards}")
    assert found["true"] == found["recovered"] == [*TRUE[11::-1], 0]
    assert found["right"] == 13
    assert attack(capsys, *few, "--values", "age=20,28,25", "--value", "28")["true"] == [TRUE[8]]


def test_files_of_questions_and_answers(mine, capsys):
    options = ["--values", "age=20:31", "--value", "23", "--partitions", "60"]
    command = ["attack", "table_builder", *options, "--ask", "ask.csv", "--quiet"]
    count = runpy.run_path("mine.py")["Counts"]()
    rounds = 0
    while True:
        seed = [] if rounds else ["--seed", "5"]
        assert main([*command, *seed, "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        if "waiting" not in result:
            break
        rounds += 1
        with open("ask.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        with open("answers.csv", "w") as file:
            file.write("id,answer\n")
            for row in rows:
                if not row["answer"]:
                    file.write(f"{row['id']},{count(json.loads(row['question'])) or 0}\n")
        if rounds == 1:
            command += ["--answers", "answers.csv"]
    assert rounds == 3  # the published answers, the base set, and it without the value
    assert result["recovered"] == [TRUE[3]]
    assert result["questions"] == 12 + 2 * 120
    direct = attack(capsys, "--oracle", "mine.py:Counts", *options, seed="5")
    assert direct["recovered"] == result["recovered"]
    assert direct["questions"] == result["questions"]


def test_a_budget_is_planned_for(mine, capsys):
    found = attack(capsys, "--oracle", "mine.py:Counts", "--budget", "400")
    assert 200 < found["questions"] <= 400
    assert found["probably_right"] < 14
    assert main(["attack", "table_builder", "--oracle", "mine.py:Counts", "--budget", "30"]) == 2
    assert "questions=30 are too few" in capsys.readouterr().err


def test_other_attributes_help_where_values_are_few(mine, capsys):
    found = attack(capsys, "--oracle", "mine.py:Counts", "--column", "sex")
    assert found["recovered"] == [sum(TRUE[:12]) // 2 + 2, sum(TRUE[:12]) // 2 + 1]
    assert found["workarounds"] == ["other attributes were partitioned too (appendix C): age"]
    within = attack(capsys, "--oracle", "mine.py:Counts", "--where", "sex=F", "--where", "sex=M", "--value", "42")
    assert within["recovered"] == [0]


def test_the_parameter_of_ones_own_system(mine, capsys):
    found = attack(capsys, "--oracle", "mine.py:Counts", "--recover", "perturbation")
    assert found["recovered"][0] <= 2
    assert found["right"] is None
    assert found["recovered"] == [2]  # 200 sums: wrong with probability 7e-16
    assert found["sums"] == 200
    assert found["larger_excluded"] == pytest.approx(1 - (1 - 20 / 7**3) ** found["sums"])
    assert 0.5 < found["probability"][0] <= 1
    few = attack(capsys, "--oracle", "mine.py:Counts", "--recover", "perturbation", "--budget", "20")
    assert few["questions"] <= 20
    assert few["sums"] <= 6
    alone = attack(capsys, "--oracle", "mine.py:Counts", "--recover", "perturbation", "--values", "age=20:31")
    assert (alone["recovered"], alone["sums"]) == ([2], 200)
    assert main(["attack", "table_builder", "--oracle", "mine.py:Counts", "--recover", "perturbation"]) == 0
    assert capsys.readouterr().out.startswith("FOUND: noise within ±")


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("02138,02139", ["02138", "02139"]),
        ("02138,2138", ["02138", "2138"]),
        ("10,1_0,1e1", ["10", "1_0", "1e1"]),
        ("2138,10", [2138, 10]),
        ("1.50,2", [1.5, 2.0]),
        ("9:11", [9, 10, 11]),
    ],
)
def test_values_are_typed_as_a_column(mine, capsys, given, asked):
    """A list, a file of a value a line, and a column of --data: the system is asked for what stands there."""
    texts = ["9", "10", "11"] if given == "9:11" else given.split(",")
    (mine / "values.txt").write_text("\n".join(texts))
    (mine / "people.csv").write_text("\n".join(["zip", *texts]))
    for number, options in enumerate([["--values", f"zip={given}"], ["--values", "zip=@values.txt"]]):
        file = mine / f"q{number}.jsonl"
        assert main(["attack", "table_builder", "--ask", str(file), *options]) == 0
        (values,) = json.loads(file.read_text().splitlines()[0])["attack"]["values"].values()
        assert (values, [*map(type, values)]) == (asked, [*map(type, asked)])
    assert list(read_table("people.csv").values["zip"]) == sorted(asked)
    assert [*map(type, read_table("people.csv").values["zip"])] == [*map(type, asked)]


def test_a_value_is_named_by_its_text_or_its_number():
    """Also where a column of another file, or an option by itself, has another type."""
    for known, named in (
        ([2138, 10], {"2138": 2138, "2138.0": 2138, "10": 10, "10.0": 10}),
        (["02138", "2138", "10.0"], {"02138": "02138", "2138": "2138", "10.0": "10.0"}),
        ([1.5, 2.0], {"1.50": 1.5, "2": 2.0, "2.0": 2.0}),
    ):
        texts = ["2138", "02138", "2138.0", "10", "10.0", "1_0", "1e1", "1.50", "2", "2.0"]
        assert values_named(known, texts) == named


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--oracle", "mine.py:broken"], "the attack must know which values to ask for"),
        (["--oracle", "mine.py:broken", "--values", "age=1:3"], "gave 3.5 for question 1"),
        (["--oracle", "mine.py:Counts", "--values", "age"], "--values 'age' must be NAME=A,B,C"),
        (["--oracle", "mine.py:Counts", "--values", "age=3,3"], "different values"),
        (["--oracle", "mine.py:Counts", "--values", "age=1:1e9"], "--values age=1:1e9: give FROM:TO, of at most"),
        (["--oracle", "mine.py:Counts", "--values", "age=1:2.5"], "--values age=1:2.5: give FROM:TO, of at most"),
        (["--oracle", "mine.py:Counts", "--values", "age=7:0"], "--values age=7:0: give FROM:TO, of at most 1,000,000"),
        (["--oracle", "mine.py:Counts", "--values", "age=@no.txt"], "no.txt"),
        (
            ["--oracle", "mine.py:Counts", "--value", "99"],
            "--value 99: there is no such value; the attribute has 20, 21",
        ),
        (
            ["--oracle", "mine.py:Counts", "--where", "job=1"],
            "there is no attribute 'job'; the attributes are",
        ),
        (["--oracle", "mine.py:Counts", "--where", "age=20"], "--where age=…: this is the attacked attribute"),
        (["--oracle", "mine.py:Counts", "--system", "keyed"], "--system describes a simulated system"),
        (["--oracle", "mine.py:Counts", "--where", "sex=X"], "--where sex=X: there is no such value"),
        (
            ["--oracle", "mine.py:Counts", "--values", "age=1,2", "--data", "true.csv"],
            "--data has none of the values of 'age', which are 1, 2; it has 20, 21, 22, 23, 24, 25, 26, 27, …",
        ),
        (["--ask", "q.jsonl", "--values", "zip=02138:02140"], "--values zip=02138:02140: give FROM:TO"),
        (["--oracle", "mine.py:Counts", "--value", "020"], "--value 020: there is no such value"),
        (["--values", "age=1:3"], "--values is of an attack on your own system"),
    ],
)
def test_bad_input_is_one_line_and_2(mine, capsys, options, message):
    assert main(["attack", "table_builder", *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert message in captured.err


def test_values_that_an_oracle_says_itself():
    class Named:
        values: ClassVar = {"age": (1, 2)}

    assert oracle.values_of(Named) == {"age": (1, 2)}
    assert oracle.values_of({"age": 3}.get) is None
    for wrong in ({"age": "12"}, {"age": []}, {"age": [1, 1]}, {3: [1]}, {"age": [None]}, [1], {}):
        Named.values = wrong
        with pytest.raises(Exception, match="value"):
            oracle.values_of(Named)
    assert oracle.FORM.family == "table_builder"
    assert Oracle is oracle.Oracle
