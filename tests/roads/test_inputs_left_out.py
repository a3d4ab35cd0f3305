"""Inputs that a mechanism cannot take are left out and said; an error on one of two neighbours is a difference."""

import math
import re

import numpy as np
import pytest

import dpwitness as dpw

LISTS = dpw.records(dpw.numbers(0, 1), form="list")
EPOCHS = {"search_runs": 0, "runs": 200}
SEARCH = {"search_runs": 600, "runs": 200}


class Noisy:
    """A sum with noise of scale 1, of inputs that `check` lets pass; no function, so that it is never compiled."""

    def __init__(self, check, scale=1.0):
        self.check, self.scale = check, scale

    def __call__(self, rng, data):
        self.check(data)
        return float(np.sum(data)) + rng.laplace(0, self.scale)


def many(limit, least=0):
    def check(data):
        if len(data) > limit:
            math.exp(1000)
        if len(data) < least:
            raise ValueError(f"give {least} records")

    return check


@pytest.mark.campaign
@pytest.mark.parametrize("settings", [EPOCHS, SEARCH])
def test_a_check_goes_on_without_inputs_that_cannot_be_run(settings):
    verdict = dpw.check(Noisy(many(990)), claim=1.0, neighbours=LISTS, seed=1, workers=1, **settings)
    assert isinstance(verdict, dpw.NotRefuted)
    (note,) = [note for note in verdict.notes if "left out" in note]
    assert "OverflowError (math range error)" in note
    assert "size=" in note
    assert re.search(r"\((999|1000) items\)", note)  # whichever came first in its run


@pytest.mark.campaign
def test_a_violation_is_found_among_the_inputs_that_are_left():
    mechanism = Noisy(many(500, least=4), scale=0.3)
    verdict = dpw.check(mechanism, claim=1.0, neighbours=LISTS, seed=1, workers=1, search_runs=0, runs=4_000)
    assert isinstance(verdict, dpw.Violation)
    assert any("pairs of inputs were left out" in note for note in verdict.notes)


@pytest.mark.campaign
def test_a_mechanism_that_takes_no_input_ends_the_check():
    with pytest.raises(dpw.MechanismRaised, match=r"OverflowError .* on run 0, on the input "):
        dpw.check(Noisy(many(-1)), claim=1.0, neighbours=LISTS, seed=1, workers=1, **EPOCHS)


@pytest.mark.campaign
@pytest.mark.parametrize("settings", [EPOCHS, SEARCH])
def test_an_error_on_one_side_alone_is_named_as_the_difference(settings):
    with pytest.raises(dpw.MechanismRaised, match="whether that is a difference between neighbours"):
        dpw.check(Noisy(many(999)), claim=1.0, neighbours=LISTS, seed=1, workers=1, **settings)


def test_an_error_in_some_runs_on_both_sides_is_no_input_that_cannot_be_run():
    def rarely(data):
        if np.random.default_rng().random() < 0.5:
            raise ValueError("now and then")

    with pytest.raises(dpw.MechanismRaised, match="now and then"):
        dpw.check(Noisy(rarely), claim=1.0, neighbours=LISTS, seed=1, workers=1, **EPOCHS)
