"""`attack subset_sum --conditions`: subsets that conditions on attributes make, and what is claimed of the bits."""

import csv
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpwitness.cli import main
from dpwitness.errors import AttackStopped, InvalidParameter
from dpwitness.machine import Deadline
from dpwitness.reconstruction.questions import Asking, system_of
from dpwitness.reconstruction.subset_sum.attack import Plan, reconstruct
from dpwitness.reconstruction.subset_sum.conditions import FORM, KINDS, MIN_SHARE_OF_PEOPLE, Attributes

PEOPLE = 48
MINE = """
import csv
import numpy as np
def system(rng):
    with open(FOLDER + "/people.csv") as file:
        people = list(csv.DictReader(file))
    bits = np.random.default_rng(5).integers(0, 2, len(people))
    def holds(part, cell):
        if isinstance(part, list):
            return cell in map(str, part)
        if "modulo" in part:
            return int(cell) % part["modulo"] in part["remainders"]
        return part.get("at_least", -1e9) <= int(cell) < part.get("below", 1e9)
    def answer(condition):
        some = [all(holds(part, person[name]) for name, part in condition.items()) for person in people]
        return float(bits[np.array(some)].sum() + rng.normal(0, 1.5))
    return answer
"""


def table(people=PEOPLE, seed=3):
    """Numbers of customers, ages and postal codes."""
    rng = np.random.default_rng(seed)
    return {
        "id": (1000 + 7 * np.arange(people) + rng.integers(0, 7, people)).tolist(),
        "age": rng.integers(18, 90, people).tolist(),
        "zip": [f"0213{digit}" for digit in rng.integers(0, 6, people)],
    }


def satisfying(condition, columns):
    """For whom a condition holds, read as the documentation says."""
    flags = []
    for person in range(len(next(iter(columns.values())))):
        holds = True
        for name, part in condition.items():
            value = columns[name][person]
            if isinstance(part, list):
                holds &= value in part
            elif "modulo" in part:
                holds &= value % part["modulo"] in part["remainders"]
            else:
                holds &= part.get("at_least", -math.inf) <= value < part.get("below", math.inf)
        flags.append(holds)
    return np.array(flags)


@pytest.fixture
def mine(tmp_path):
    columns = table()
    with open(tmp_path / "people.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, "sick"])
        writer.writerows(zip(*columns.values(), np.random.default_rng(5).integers(0, 2, PEOPLE).tolist(), strict=True))
    (tmp_path / "mine.py").write_text(f"FOLDER = {str(tmp_path)!r}\n{MINE}")
    return tmp_path


def attack(capsys, *arguments, code=0):
    assert main(["attack", "subset_sum", *map(str, arguments)]) == code
    printed = capsys.readouterr()
    return json.loads(printed.out) if "--json" in arguments and not code else printed.out or printed.err


@pytest.mark.parametrize("kinds", [KINDS, *[[kind] for kind in KINDS]])
def test_a_condition_holds_for_its_subset(kinds):
    columns = table()
    conditions, subsets = Attributes(columns, kinds).drawn(np.random.default_rng(1), 40)
    assert len(conditions) == len(subsets) >= 20
    for condition, subset in zip(conditions, subsets, strict=True):
        assert np.array_equal(satisfying(condition, columns), subset)
        assert MIN_SHARE_OF_PEOPLE <= subset.mean() <= 1 - MIN_SHARE_OF_PEOPLE
        assert json.loads(json.dumps(FORM.written(condition))) == FORM.written(condition)
    assert len({subset.tobytes() for subset in subsets}) == len(subsets)
    more, _ = Attributes(columns, kinds).drawn(np.random.default_rng(1), 60)
    assert more[: len(conditions)] == conditions  # an attack that asks more goes on where it was


@given(st.integers(2, 30), st.integers(1, 3), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_any_table_gives_conditions_or_says_why_not(people, values, seed):
    rng = np.random.default_rng(seed)
    columns = {
        "code": rng.integers(0, values, people).tolist(),
        "name": [f"n{one}" for one in rng.integers(0, 100, people)],
        "size": (rng.integers(-5, 5, people) / 3).tolist(),
    }
    if all(len(set(column)) == 1 for column in columns.values()):
        with pytest.raises(InvalidParameter, match="tells people apart"):
            Attributes(columns)
        return
    conditions, subsets = Attributes(columns).drawn(rng, 20)
    for condition, subset in zip(conditions, subsets, strict=True):
        assert np.array_equal(satisfying(condition, columns), subset)


@pytest.mark.campaign
def test_bits_come_back_from_conditions(capsys, mine):
    line = ("--oracle", f"{mine}/mine.py:system", "--conditions", mine / "people.csv", "--column", "sick", "--seed", 1)
    # A bit of a fit to 720 answers is off by some 1.5/√(720/4) = 0.11, and more where conditions are no random subsets.
    found = attack(capsys, *line, "--data", mine / "people.csv", "--json")
    assert (found["size"], found["told_apart"], found["stopped"]) == (PEOPLE, PEOPLE, None)
    assert found["right"] >= 44
    assert PEOPLE / 2 < found["probably_right"] <= found["right"] + 1
    text = attack(capsys, *line)
    assert f"people       {PEOPLE} of {PEOPLE} differ from all others in their attributes" in text
    assert "truth" not in text


def test_questions_wait_in_a_file_and_never_name_the_secret(capsys, mine):
    questions = mine / "questions.jsonl"
    out = attack(capsys, "--ask", questions, "--conditions", mine / "people.csv", "--column", "sick", "--seed", 1)
    rows = [json.loads(line) for line in questions.read_text().splitlines()]
    assert out.startswith(f"{len(rows)} questions wait")
    assert rows[0]["attack"]["attributes"] == ["id", "age", "zip"]
    assert {name for row in rows for name in row["question"]} == {"id", "age", "zip"}
    out = attack(capsys, "--ask", questions, "--conditions", mine / "people.csv", code=2)
    assert "is of an attack with attributes" in out


def systems(kinds, deviation, number):
    """Claims and whether bits are right, of attacks on so many systems."""
    claims, right = [], []

    def answering(bits, columns, rng):
        return lambda condition: bits[satisfying(condition, columns)].sum() + rng.normal(0, deviation)

    for seed in range(number):
        rng = np.random.default_rng([PEOPLE, seed])
        bits, columns = rng.integers(0, 2, PEOPLE), table(seed=seed)
        asking = Asking(FORM, system_of(answering(bits, columns, rng), FORM, seed=1))
        plan = Plan(size=PEOPLE, used=500, fresh=50, attributes=Attributes(columns, kinds))
        found = reconstruct(asking, seed, plan, Deadline(math.inf))
        claims.append(found.finding.probability)
        right.append(found.reconstruction.bits == bits)
    return np.concatenate(claims), np.concatenate(right)


@pytest.mark.campaign
@pytest.mark.parametrize("kinds", [["values", "range"], ["remainders"]])
def test_claims_hold_where_conditions_hardly_tell_people_apart(kinds):
    """Neighbours in the order of numbers are in the same ranges: a wrong bit of one makes that of the other wrong."""
    claims, right = systems(kinds, 1.5, 4)
    for low in (0.5, 0.75, 0.9):
        some = claims > low
        # Right ones beside what is claimed: 1 in 1,000 samples of independent bits has fewer.
        assert right[some].sum() >= claims[some].sum() - 3.1 * math.sqrt(np.sum(claims[some] * (1 - claims[some]))) - 1
    assert np.sum(claims > 0.5) > 20


def test_nothing_is_claimed_of_noise():
    bits = np.random.default_rng(1)
    asking = Asking(FORM, system_of(lambda condition: bits.normal(20, 5), FORM, seed=1))
    plan = Plan(size=PEOPLE, used=300, fresh=30, attributes=Attributes(table()))
    assert (reconstruct(asking, 1, plan, Deadline(math.inf)).finding.probability == 0.5).all()


def test_few_values_make_few_subsets():
    columns = {"sex": ["F", "M"] * 18, "ward": ["a", "b", "c"] * 12}
    attributes = Attributes(columns, ["values"])
    assert attributes.told_apart == 0
    asking = Asking(FORM, system_of(lambda condition: 1.0, FORM, seed=1))
    with pytest.raises(AttackStopped, match=r"there are no more than \d+ subsets of these people"):
        reconstruct(asking, 1, Plan(size=36, used=500, fresh=50, attributes=attributes), Deadline(math.inf))


@pytest.mark.parametrize(
    ("content", "more", "message"),
    [
        ("id\n1\n2\n", [], "give --oracle, or --ask FILE, too"),
        ("id,id\n1,2\n", ["--ask", "q.csv"], "every column needs a name of its own"),
        ("id,age\n1\n", ["--ask", "q.csv"], "line 2: 1 values for 2 columns"),
        ("id,age\n1,\n", ["--ask", "q.csv"], "line 2: the value of 'age' is missing"),
        ("id\n", ["--ask", "q.csv"], "holds no people"),
        ("id\n7\n7\n7\n", ["--ask", "q.csv"], "no condition by values, range, remainders tells people apart"),
        ("id\n1\n2\n3\n", ["--ask", "q.csv", "--column", "id"], "has no column but 'id'"),
        ("id\n1\n2\n3\n", ["--ask", "q.csv", "--size", "4"], "has 3 people, and there are to be 4"),
        ("id\n1\n2\n3\n", ["--ask", "q.csv", "--adversary", "exponential", "--error", "1"], "leave out --conditions"),
        ("id\n1\n2\n3\n", ["--ask", "q.csv", "--data", "people.csv"], "name its secret column by --column"),
    ],
)
def test_bad_input_says_what_and_what_to_do(capsys, tmp_path, monkeypatch, content, more, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(content)
    assert message in " ".join(attack(capsys, "--conditions", "people.csv", *more, code=2).split())
    assert not (tmp_path / "q.csv").exists()


def test_allow_needs_conditions(capsys):
    assert "give --conditions FILE.csv too" in attack(capsys, "--allow", "range", "--size", 8, code=2)
