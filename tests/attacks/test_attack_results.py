"""What all families share: frozen settings from options, and results as JSON and text."""

from argparse import Namespace
from dataclasses import dataclass, field

import numpy as np
import pytest

from dpwitness.errors import InvalidParameter
from dpwitness.machine import Deadline
from dpwitness.reconstruction.command import AttackOptions, settings_of
from dpwitness.reconstruction.report import Asked, Result, report_text


@dataclass(frozen=True, kw_only=True)
class Settings:
    size: int = 128
    law: str | None = None


@dataclass(frozen=True, kw_only=True)
class Part:
    values: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Toy(Result):
    attack: str
    asked: Asked
    part: Part
    stopped: str | None = None
    truth: np.ndarray | None = field(default=None, repr=False)

    def text(self):
        return report_text("HEADING", [("oracle", self.asked.text), ("stopped", self.stopped)], seconds=1.23, seed=4)

    def plot(self, path):
        raise NotImplementedError


def toy(**more):
    asked = Asked(oracle="mine", questions=1200, unanswered=0, budget=None, rate=2.0)
    return Toy(attack="toy", asked=asked, part=Part(values=np.arange(2)), truth=np.ones(3), **more)


def test_an_option_that_is_not_given_leaves_the_default():
    assert settings_of(Settings, Namespace(size=None, law="uniform", other=3)) == Settings(size=128, law="uniform")
    assert settings_of(Settings, Namespace(size=7), size=9) == Settings(size=9)


def test_json_has_the_fields_in_their_order_and_what_was_asked_among_them():
    assert list(toy().to_json().items()) == [
        ("attack", "toy"), ("oracle", "mine"), ("questions", 1200), ("unanswered", 0), ("budget", None),
        ("rate", 2.0), ("part", {"values": [0, 1]}), ("stopped", None),
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
