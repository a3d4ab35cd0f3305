"""What all families share: findings, frozen settings from options, and results as JSON and text."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpwitness.errors import InvalidParameter
from dpwitness.machine import Deadline
from dpwitness.reconstruction.command import AttackOptions, settings_of
from dpwitness.reconstruction.report import Asked, EndedAttack, Finding, Result, finding_json


@dataclass(frozen=True, kw_only=True)
class Settings:
    size: int = 128
    law: str | None = None


probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(probabilities, st.floats(0, 1), st.booleans())
def test_nothing_is_claimed_below_chance_nor_where_answers_contradict_an_assumption(given, chance, contradicted):
    why = ("the answers are no sums of bits",) if contradicted else ()
    guess = np.arange(len(given))
    finding = Finding(guess=guess, probability=np.array(given), chance=chance, contradicted=why)
    assert finding.probability.tolist() == [chance if contradicted else max(one, chance) for one in given]
    assert finding.claimed.tolist() == [not contradicted and one > chance for one in given]
    written = finding_json(finding, guess)
    assert written["claimed"] == finding.claimed.sum()
    assert written["probably_right"] == pytest.approx(sum(written["probability"]))
    assert written["right"] == len(given)
    assert set(written) == set(finding_json(None))


def toy(**more):
    asked = Asked(oracle="mine", questions=1200, unanswered=0, budget=None, rate=2.0, **more)
    finding = Finding(guess=np.arange(2), probability=np.array([0.5, 1.0]), up_to_factor=True)
    return Result(
        ended=EndedAttack(attack="toy", found=finding, asked=asked, seed=4, seconds=1.23),
        values={**asked.to_json(), **finding_json(finding)},
        heading="HEADING",
        rows=[("oracle", asked.text), ("stopped", asked.stopped)],
        draw=None,
    )


def test_an_option_that_is_not_given_leaves_the_default():
    assert settings_of(Settings, SimpleNamespace(size=None, law="uniform", other=3)) == Settings(
        size=128, law="uniform"
    )
    assert settings_of(Settings, SimpleNamespace(size=7), size=9) == Settings(size=9)


def test_json_has_the_values_in_their_order():
    assert list(toy().to_json().items()) == [
        ("attack", "toy"), ("oracle", "mine"), ("questions", 1200), ("unanswered", 0), ("budget", None),
        ("rate", 2.0), ("stopped", None), ("recovered", [0, 1]), ("probability", [0.5, 1.0]), ("chance", 0.0),
        ("claimed", 2), ("probably_right", 1.5), ("contradicted", []), ("up_to_factor", True), ("right", None),
        ("seed", 4), ("seconds", 1.23),
    ]  # fmt: skip


def test_a_row_without_a_text_is_left_out():
    assert toy().text() == "HEADING\n  oracle       mine, 1,200 questions\n  1.2 s; seed 4"
    assert "  stopped      a quota\n" in toy(stopped="a quota").text()


def test_options_that_need_a_system_of_the_users_own():
    assert AttackOptions(attack="toy", max_time=1.0, answers="a.csv").own_system
    AttackOptions(attack="toy", max_time=1.0, oracle="x:y", budget=3).require_own_system()
    with pytest.raises(InvalidParameter, match="--budget is of an attack on your own system"):
        AttackOptions(attack="toy", max_time=1.0, budget=3).require_own_system()


def test_the_end_of_the_time_names_what_to_make_smaller():
    with pytest.raises(InvalidParameter, match=r"longer than 1 s; allow more time or a smaller --queries$"):
        AttackOptions(attack="toy", max_time=1.0).require_time(Deadline(0.0), "--queries")
    AttackOptions(attack="toy", max_time=1e6).require_time(AttackOptions(attack="toy", max_time=1e6).deadline(), "x")
