"""`attack subset_sum --conditions`: subsets that conditions on attributes make, and what is claimed of the bits."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from attacking import attack, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dpwitness.errors import AttackStopped, InvalidParameter
from dpwitness.reconstruction.questions import Asking, system_of
from dpwitness.reconstruction.subset_sum.attack import Plan, reconstruct
from dpwitness.reconstruction.subset_sum.conditions import CONDITION_KINDS, FORM, MIN_SHARE_OF_PEOPLE, Attributes

PEOPLE = 48


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


@pytest.mark.parametrize("kinds", [CONDITION_KINDS, *[[kind] for kind in CONDITION_KINDS]])
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


def test_questions_wait_in_a_file_and_never_name_the_secret(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    columns = table() | {"sick": np.random.default_rng(5).integers(0, 2, PEOPLE).tolist()}
    rows = zip(*columns.values(), strict=True)
    Path("people.csv").write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]))
    line = ("subset_sum", "--ask", "questions.csv", "--conditions", "people.csv")
    assert attack(tmp_path, *line, "--column", "sick", "--seed", 1) == (0, None)
    rows = rows_of("questions.csv")
    assert json.loads(rows[0]["attack"])["attributes"] == ["id", "age", "zip"]
    assert {name for row in rows for name in json.loads(row["question"])} == {"id", "age", "zip"}
    assert attack(tmp_path, *line) == (2, None)  # another attack: with the secret among the attributes
    assert "attributes" in capsys.readouterr().err


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
        found = reconstruct(asking, seed, plan)
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


def test_few_values_make_few_subsets():
    columns = {"sex": ["F", "M"] * 18, "ward": ["a", "b", "c"] * 12}
    attributes = Attributes(columns, ["values"])
    asking = Asking(FORM, system_of(lambda condition: 1.0, FORM, seed=1))
    with pytest.raises(AttackStopped, match=r"there are no more than \d+ subsets of these people"):
        reconstruct(asking, 1, Plan(size=36, used=500, fresh=50, attributes=attributes))
