import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpwitness as dpw
from dpwitness.catalog import load
from dpwitness.claim import Claim
from dpwitness.counts import Counts
from dpwitness.errors import InvalidData, InvalidWitness, UnknownTarget
from dpwitness.events import Interval, OutcomeSet
from dpwitness.evidence import Estimate
from dpwitness.neighbours import Pair, as_input

finite = st.floats(-1e6, 1e6)
witnesses = st.builds(
    lambda data, shift, claim, counts, event: dpw.Witness(
        mechanism="svt",
        parameters={"epsilon": 0.7, "cutoff": 2, "flag": True, "names": ["a"], "none": None},
        claim=claim,
        alpha=1e-6,
        pair=Pair(as_input(data), as_input([x + shift for x in data]), "made up"),
        event=event,
        description=event.describe(),
        counts=counts,
        estimate=Estimate(p=0.5, q=0.25, both=0.125),
        seed=7,
    ),
    st.lists(finite, min_size=1, max_size=5),
    st.floats(0.1, 3),
    st.builds(Claim, epsilon=st.floats(0, 10), delta=st.floats(0, 0.9)),
    st.builds(Counts, n10=st.integers(0, 10**12), n00=st.integers(0, 10**12)),
    st.sampled_from([Interval(coordinate=2, high=1.5), OutcomeSet([[0, 1], [np.nan, 2]])]),
)


@given(witnesses)
def test_a_saved_witness_loads_to_itself(tmp_path_factory, witness):
    path = tmp_path_factory.mktemp("witness") / "w.json"
    witness.save(path)
    again = dpw.Witness.load(path)
    assert again.to_json() == witness.to_json()
    assert again.claim == witness.claim
    assert again.counts == witness.counts
    assert np.array_equal(again.pair.data, witness.pair.data)
    assert list(path.parent.iterdir()) == [path]  # no half-written file is left


@pytest.fixture(scope="module")
def violation():
    verdict = dpw.check(load("isvt1"), epsilon=0.7, seed=1, reference="isvt1")
    assert isinstance(verdict, dpw.Violation)
    return verdict


def test_a_witness_replays_on_fresh_runs(violation, tmp_path):
    path = tmp_path / "w.json"
    violation.witness.save(path)
    replayed = dpw.Witness.load(path).replay(seed=99)
    assert isinstance(replayed, dpw.Violation)
    assert replayed.search_runs == 0
    assert replayed.counts != violation.counts


def test_the_same_witness_does_not_convict_a_right_mechanism(violation):
    replayed = violation.witness.replay(load("svt"), seed=99, max_runs=200_000)
    assert isinstance(replayed, dpw.NotRefuted)


def test_a_saved_result_is_a_witness_too(violation, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(violation.to_json()))
    assert dpw.Witness.load(path).to_json() == violation.witness.to_json()


def test_a_file_never_decides_which_code_runs(violation, tmp_path):
    """A witness that names a module is data: only registered targets are loaded for it."""
    value = violation.witness.to_json()
    value["mechanism"] = "os:system"
    path = tmp_path / "w.json"
    path.write_text(json.dumps(value))
    with pytest.raises(UnknownTarget, match="its code is not run unless you name it"):
        dpw.Witness.load(path).replay()


def broken(**changes):
    def change(value):
        for key, new in changes.items():
            if new is KeyError:
                del value[key]
            else:
                value[key] = new

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (broken(format="pickle"), "its format is 'pickle'"),
        (broken(counts=KeyError), "lacks 'counts'"),
        (broken(counts={"n10": -1, "n11": 0, "n01": 0, "n00": 0}), "n10=-1"),
        (broken(counts={"n10": 1.5, "n11": 0, "n01": 0, "n00": 0}), "n10=1.5"),
        (broken(input=[1, 2]), "different lengths"),
        (broken(input=["a"] * 10), "numbers only"),
        (broken(alpha=0), "alpha=0.0"),
        (broken(claim={"epsilon": -1, "delta": 0}), "epsilon=-1.0"),
        (broken(parameters={"epsilon": {}}), "parameter epsilon="),
        (broken(event=[]), "must be an object|damaged"),
        (broken(estimate={"p": 2, "q": 0}), "p=2.0"),
        (broken(mechanism=3), "mechanism=3"),
        (broken(versions=[]), "damaged"),
    ],
)
def test_damaged_files_are_refused_with_one_line(violation, change, message, tmp_path):
    value = violation.witness.to_json()
    change(value)
    path = tmp_path / "w.json"
    path.write_text(json.dumps(value))
    with pytest.raises(InvalidWitness, match=message):
        dpw.Witness.load(path)


def test_files_that_are_no_json(tmp_path):
    for content in ("{", "[1, NaN]", "nonsense", '{"format": NaN}'):
        path = tmp_path / "w.json"
        path.write_text(content)
        with pytest.raises(InvalidWitness):
            dpw.Witness.load(path)
    with pytest.raises(InvalidData, match="cannot read"):
        dpw.Witness.load(tmp_path / "missing.json")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidData, match="not UTF-8"):
        dpw.Witness.load(tmp_path / "b.json")


def test_json_holds_no_infinities(violation):
    text = json.dumps(violation.to_json(), allow_nan=False)
    assert "detectable_epsilon_reason" in text
    assert math.isfinite(violation.log_e_value)
