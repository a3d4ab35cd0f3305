import json
import math
import sys
from dataclasses import dataclass, replace
from types import ModuleType
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpwitness as dpw
from dpwitness.api.replay import _replayed_claim, _shrinking_seed
from dpwitness.claims import ApproxDP
from dpwitness.errors import (
    InvalidClaim,
    InvalidData,
    InvalidNeighbours,
    InvalidParameter,
    InvalidWitness,
    UnknownTarget,
)
from dpwitness.events import Event, Interval, OutcomeSet
from dpwitness.evidence import Estimate
from dpwitness.evidence.counts import Counts
from dpwitness.mechanisms.catalog import load
from dpwitness.neighbours import (
    Pair,
    Relation,
    as_finite_numbers,
    bits,
    copier,
    input_from_json,
    input_to_json,
    pairs,
    queries,
)
from dpwitness.problem import _reference
from dpwitness.results.verdict import verdict_from_json
from dpwitness.values import Unreadable, value_from_json, value_to_json

finite = st.floats(-1e6, 1e6)
witnesses = st.builds(
    lambda data, shift, claim, counts, event: dpw.Witness(
        mechanism="svt",
        parameters={"epsilon": 0.7, "cutoff": 2, "flag": True, "names": ["a"], "none": None},
        claim=claim,
        alpha=1e-6,
        pair=Pair(as_finite_numbers(data), as_finite_numbers([x + shift for x in data]), "made up"),
        event=event,
        description=event.describe(),
        counts=counts,
        estimate=Estimate(p=0.5, q=0.25, both=0.125),
        seed=7,
    ),
    st.lists(finite, min_size=1, max_size=5),
    st.floats(0.1, 3),
    st.builds(ApproxDP, epsilon=st.floats(0, 10), delta=st.floats(0, 0.9)),
    st.builds(Counts, n10=st.integers(0, 10**12), n00=st.integers(0, 10**12)),
    st.sampled_from([Interval(coordinate=2, high=1.5), OutcomeSet([[0, 1], [np.nan, 2]])]),
)


@pytest.mark.campaign
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


@pytest.mark.campaign
def test_a_witness_replays_on_fresh_runs(violation, tmp_path):
    path = tmp_path / "w.json"
    violation.witness.save(path)
    replayed = dpw.replay(dpw.Witness.load(path), seed=99)
    assert isinstance(replayed, dpw.Violation)
    assert replayed.search_runs == 0
    assert replayed.counts != violation.counts


def test_the_same_witness_does_not_convict_a_right_mechanism(violation):
    replayed = dpw.replay(violation.witness, load("svt"), seed=99, runs=200_000)
    assert isinstance(replayed, dpw.NotRefuted)


def test_a_saved_result_is_a_witness_too(violation, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(violation.to_json()))
    assert dpw.Witness.load(path).to_json() == violation.witness.to_json()


@pytest.mark.campaign
def test_a_replay_of_a_bound_tests_the_bound(tmp_path):
    bound = dpw.bound("svt", epsilon=0.7, runs=200_000, seed=1, workers=1)
    bound.witness.save(tmp_path / "bound.json")
    again = dpw.replay(tmp_path / "bound.json", seed=2, workers=1)
    assert 0 < again.claim.epsilon == bound.lower_bound <= 0.7
    assert "allowed" not in str(bound)  # by no claim: none was tested


def half_a_pair(data, rng):
    return "\ud800" if rng.random() < (0.5 if data[0] else 0.01) else str(rng.integers(3))


def half_a_pair_as_a_key(data, rng):
    return {"\ud800": half_a_pair(data, rng), "other": str(0)}


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore::dpwitness.SlowMechanism")
@pytest.mark.parametrize("mechanism", [half_a_pair, half_a_pair_as_a_key])
def test_an_event_of_a_text_that_no_file_can_hold_is_read_back(mechanism, tmp_path):
    neighbours = [([0.0], [1.0])]
    found = dpw.check(mechanism, claim=0.2, neighbours=neighbours, seed=1, workers=1, runs=5_000)
    assert isinstance(found, dpw.Violation)
    assert "\\ud800" in found.witness.description
    found.witness.save(tmp_path / "w.json")
    again = dpw.Witness.load(tmp_path / "w.json")
    assert (again.event, again.description) == (found.witness.event, found.witness.description)


def test_a_file_never_decides_which_code_runs(violation, tmp_path):
    """A witness that names a module is data: only registered targets are loaded for it."""
    value = violation.witness.to_json()
    value["mechanism"] = "os:system"
    path = tmp_path / "w.json"
    path.write_text(json.dumps(value))
    with pytest.raises(UnknownTarget, match="its code is not run unless you name it"):
        dpw.replay(dpw.Witness.load(path))


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
        (broken(format="pickle"), r"w\.json must be a witness, as .*: its format is 'pickle'"),
        (broken(format="dpwitness-witness/1"), r"w\.json has .*/1', which does not say which inputs are neighbours"),
        (broken(relation=KeyError), "lacks 'relation'"),
        (broken(data=KeyError), "lacks 'data'"),
        (broken(relation={"kind": "os:system"}), "relation kind 'os:system' is unknown: import the module that"),
        (broken(relation=queries(9).to_json()), r"are not neighbours under the relation in the file: queries\(9\)"),
        (broken(relation=bits(10).to_json()), r"are not neighbours under the relation in the file: bits\(10\)"),
        (broken(relation=queries(10, 0.5).to_json()), "are not neighbours under the relation in the file: queries"),
        (broken(data=[5.0] * 10), "are not neighbours under the relation in the file with the data in the file"),
        (broken(data="x"), "with the data in the file"),
        (broken(neighbour=[0.0] * 9 + [7.0]), "are not neighbours under the relation in the file"),
        (broken(input=[2**63] * 10), r"whole numbers from −2\^63 to 2\^63 − 1"),
        (broken(counts={"n10": 2**63, "n11": 0, "n01": 0, "n00": 0}), "n10=9223372036854775808"),
        (broken(seed=2**128), "seed=340282366920938463463374607431768211456"),
        (broken(alpha=10**400), "alpha=1000"),
        (broken(parameters={"epsilon": {"float": "Infinity"}}), "parameter epsilon="),
        (broken(parameters={"epsilon": {"tuple": [1], "more": 2}}), "parameter epsilon="),
        (broken(parameters={"epsilon": {"array": [1], "dtype": "object"}}), "parameter epsilon="),
        (broken(parameters={"epsilon": {"array": [[1], [1, 2]], "dtype": "float64"}}), "parameter epsilon="),
        (broken(parameters={"epsilon": {"array": [300], "dtype": "uint8"}}), "parameter epsilon="),
        (broken(counts=KeyError), "lacks 'counts'"),
        (broken(counts={"n10": -1, "n11": 0, "n01": 0, "n00": 0}), "n10=-1"),
        (broken(counts={"n10": 1.5, "n11": 0, "n01": 0, "n00": 0}), "n10=1.5"),
        (broken(input=[1, 2]), "are not neighbours under the relation in the file"),
        (broken(input=["a"] * 10), "numbers only"),
        (broken(alpha=0), "alpha=0.0"),
        (broken(claim={"epsilon": -1, "delta": 0}), "epsilon=-1.0"),
        (broken(parameters={"epsilon": {}}), "parameter epsilon="),
        (broken(event=[]), "must be an object|damaged"),
        (broken(event={"kind": "trees"}), "'trees', a score of decision trees: dpwitness 0.2 reads the file, later"),
        (broken(event={"kind": "weighted"}), "an event of weighted runs: dpwitness 0.2 reads the file, later versions"),
        (broken(event={"kind": "split"}), "a graded event: dpwitness 0.2 reads the file, later versions do not"),
        (broken(estimate={"p": 2, "q": 0}), "p=2.0"),
        (broken(mechanism=3), "mechanism=3"),
        (broken(mechanism="\ud800"), "surrogates not allowed"),
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


parameters = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["inf", "-inf", "nan"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(parameters)
def test_parameters_come_back_unchanged(value):
    again = value_from_json(json.loads(json.dumps(value_to_json(value), allow_nan=False)))
    assert repr(again) == repr(value)  # 1, 1.0 and True are equal, but not the same; nan is itself


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, 2]), np.array([[1.5, np.inf], [np.nan, -0.0]]), np.array(3, np.int16), np.array([True]),
        np.zeros(0), np.array([1, 2], "<i4"), np.zeros((0, 3), "u2"),
    ],
)  # fmt: skip
def test_arrays_come_back_with_their_dtype(value):
    again = value_from_json(json.loads(json.dumps(value_to_json(value), allow_nan=False)))
    assert again.dtype == value.dtype
    assert again.shape == value.shape
    assert repr(again) == repr(value)


def test_arrays_of_earlier_files_keep_byte_order_and_order_in_memory():
    again = value_from_json({"array": [[1, 2], [3, 4]], "dtype": ">i4", "order": "F"})
    assert (again.dtype, again.flags.f_contiguous, again.tolist()) == (np.dtype(">i4"), True, [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="cannot have the dtype '>U4'"):
        value_from_json({"array": ["a"], "dtype": ">U4"})


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "float16", "float32", "float64"])
def test_scalars_of_numpy_come_back_with_their_dtype(name):
    kind = np.dtype(name).type
    for value in map(kind, [1, 0] if kind(0).dtype.kind in "bu" else [1, -1]):
        for held in ([value, 1], (value,), {"key": value}, {value}):
            again = value_from_json(json.loads(json.dumps(value_to_json(held), allow_nan=False)))
            assert repr(again) == repr(held)
            assert [*map(type, again)] == [*map(type, held)]
    floats = map(kind, [np.nan, -np.inf, -0.0, 0.1] if kind(0).dtype.kind == "f" else [])
    assert all(repr(value_from_json(value_to_json(value))) == repr(value) for value in floats)


@pytest.mark.parametrize(
    ("scalar", "dtype"),
    [(300, "int8"), (1, "bool"), (True, "int8"), (1, "float64"), (0.1, "float32"), (1e99, "float16"), ("1", "int8"),
     (None, "float64"), (None, "int8"), ({"float": "nan"}, "int8"), ({"float": "inf"}, "int8"), ([1], "int8"),
     (1, "object"), (1, ">i4")],
)  # fmt: skip
def test_a_scalar_that_its_dtype_does_not_have_is_refused(scalar, dtype):
    with pytest.raises(ValueError, match="scalar"):
        value_from_json({"scalar": scalar, "dtype": dtype})


def test_a_mechanism_gets_the_scalars_of_an_input_from_a_file():
    written = input_to_json([np.int8(127), np.int8(1)])
    first, second = copier(input_from_json(json.loads(json.dumps(written))))()
    with np.errstate(over="ignore"):
        assert first + second == -128


def test_what_no_file_can_hold_says_so():
    holds_itself = []
    holds_itself.append(holds_itself)
    for value in (len, {len}, 1j, {1: len}, {1j: 2}, np.array(["x"]), holds_itself, "\ud800", {"\ud800": 1}):
        written = json.loads(json.dumps(value_to_json(value), allow_nan=False))
        assert "object" in repr(written)
        assert value_to_json(value_from_json(written)) == written
        json.dumps(written, ensure_ascii=False).encode()
    assert value_from_json({"object": "<built-in>"}) == Unreadable("<built-in>")


def quiet(rng, data, bound=math.inf, norm="inf", shape=(1, 2), scale=0.2, size=1):
    assert (bound, norm, shape) == (math.inf, "inf", (1, 2))
    return data[0] + rng.normal(0, scale, size=size)


@pytest.fixture(scope="module")
def found():
    verdict = dpw.check(quiet, claim=1.0, neighbours=queries(3), data=[10, 4, 4], seed=1, search_runs=5_000)
    assert isinstance(verdict, dpw.Violation)
    return verdict


def through_a_file(witness, tmp_path):
    path = tmp_path / "w.json"
    witness.save(path)
    assert "Infinity" not in path.read_text()
    assert "NaN" not in path.read_text()
    return dpw.Witness.load(path)


@pytest.mark.campaign
def test_parameters_relation_and_data_are_kept(found, tmp_path):
    again = through_a_file(found.witness, tmp_path)
    expected = {"bound": math.inf, "norm": "inf", "shape": (1, 2), "scale": 0.2}
    assert again.parameters == expected
    assert isinstance(again.parameters["shape"], tuple)
    assert again.relation == queries(3)
    assert again.data.tolist() == [10, 4, 4]
    assert again.data.dtype == again.pair.data.dtype == np.int64
    replayed = dpw.replay(again, quiet, seed=3)
    assert isinstance(replayed, dpw.Violation)
    assert replayed.witness.to_json()["parameters"] == again.to_json()["parameters"]
    assert replayed.witness.relation == again.relation
    assert replayed.witness.data.tolist() == [10, 4, 4]
    json.dumps(replayed.to_json(), allow_nan=False)


class Foreign(Relation):
    """A relation as another package may write it."""

    noun = "value"

    def __init__(self, written=None):
        if written is not None:
            self.to_json = lambda: written

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        yield Pair(as_finite_numbers([0.0]), as_finite_numbers([1.0]))

    def variations(self, pair, *, scale=1.0):
        return iter(())


@pytest.mark.campaign
@pytest.mark.parametrize("written", [None, {"kind": "theirs", "more": 1}])
def test_of_a_foreign_relation_a_file_holds_null(written, tmp_path):
    relation = Foreign(written)
    verdict = dpw.check(quiet, claim=1.0, neighbours=relation, seed=1, search_runs=5_000)
    assert verdict.witness.relation is relation
    again = through_a_file(verdict.witness, tmp_path)
    assert again.relation is None
    assert isinstance(dpw.replay(again, quiet, seed=3), dpw.Violation)
    assert dpw.shrink(verdict, quiet).witness.pair.data.size == 1


def test_a_replay_without_a_seed_makes_runs_of_its_own(found, monkeypatch):
    drawn = iter([found.seed, found.seed, 77])
    monkeypatch.setattr("dpwitness.api.replay.secrets.randbits", lambda bits: next(drawn))
    replayed = dpw.replay(found.witness, quiet)
    assert replayed.seed == 77
    assert replayed.counts != found.counts
    with pytest.raises(InvalidParameter, match=f"seed={found.seed} made this witness"):
        dpw.replay(found.witness, quiet, seed=found.seed)
    smaller = replace(found.witness, seed=_shrinking_seed(found.seed))
    with pytest.raises(InvalidParameter, match=f"seed={found.seed} made this witness"):
        dpw.replay(smaller, quiet, seed=found.seed)


@pytest.mark.parametrize(("runs", "made"), [(10, 100_000), (20_000, 200_000)])
def test_a_replay_makes_ten_times_the_runs_of_its_witness_or_many(found, runs, made):
    witness = replace(found.witness, counts=Counts(n00=runs))
    assert dpw.replay(witness, quiet, parameters={"scale": 50.0}, seed=2).counts.runs == made


@pytest.mark.parametrize(
    ("epsilon", "delta", "replayed"),
    [(2.0, None, (2.0, 0.25)), (None, 0.5, (1.0, 0.5)), (2.0, 0.0, (2.0, 0.0)), (None, None, (1.0, 0.25))],
)
def test_what_is_not_given_anew_is_as_in_the_claim_of_the_witness(epsilon, delta, replayed):
    assert _replayed_claim(ApproxDP(1.0, 0.25), epsilon, delta) == ApproxDP(*replayed)


def test_a_file_does_not_make_inputs_of_a_target_adjacent(found):
    """Forty people moved at once."""
    wide = [as_finite_numbers([people, 0, 0, 0, 0]) for people in (40, 0)]
    forged = replace(
        found.witness, mechanism="histogram", parameters={"epsilon": 1.0}, pair=Pair(*wide),
        relation=pairs(tuple(wide)), data=None,
    )  # fmt: skip
    with pytest.raises(InvalidNeighbours, match="the witness's pair, unless you give its relation"):
        dpw.replay(forged, runs=20_000)


@pytest.mark.campaign
def test_a_replay_is_at_the_claim_and_alpha_that_are_given(found):
    same = dpw.replay(found.witness, quiet, seed=3)
    assert (same.claim, same.alpha) == (found.claim, found.alpha)
    other = dpw.replay(found.witness, quiet, seed=3, claim=6.0, alpha=1e-3, runs=100_000)
    assert isinstance(other, dpw.NotRefuted)
    assert (other.claim, other.alpha) == (ApproxDP(epsilon=6.0), 1e-3)
    assert other.witness.claim == other.claim
    assert dpw.replay(found.witness, quiet, seed=3, delta=0.9999).claim == ApproxDP(epsilon=1.0, delta=0.9999)
    whole = ApproxDP(epsilon=2.0, delta=0.25)
    assert dpw.replay(found.witness, quiet, seed=3, claim=whole).claim == whole
    with pytest.raises(InvalidParameter, match=r"delta=0.5 is not the δ of claim="):
        dpw.replay(found.witness, quiet, claim=whole, delta=0.5)
    with pytest.raises(InvalidClaim, match="epsilon=-1"):
        dpw.replay(found.witness, quiet, claim=-1)
    with pytest.raises(InvalidParameter, match="alpha=2"):
        dpw.replay(found.witness, quiet, alpha=2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"neighbours": queries(2)}, r"is not one that queries\(2\) calls neighbouring"),
        ({"neighbours": queries(3, 0.5)}, r"queries\(3, sensitivity=0.5\) calls neighbouring"),
        ({"neighbours": bits(3)}, r"bits\(3\) calls neighbouring"),
        ({"neighbours": pairs(([10, 4, 4], [10, 4, 5]))}, r"pairs\(\(\[10, 4, 4\], \[10, 4, 5\]\)\) calls"),
        ({"data": [9, 9, 9]}, r"queries\(3\) calls neighbouring with the given data"),
        ({"neighbours": queries(3), "data": [9, 9, 9]}, r"queries\(3\) calls neighbouring with the given data"),
    ],
)
def test_a_pair_outside_the_relation_is_not_replayed(found, settings, message):
    with pytest.raises(InvalidNeighbours, match=r"the witness's pair \[.*" + message):
        dpw.replay(found.witness, quiet, **settings)


@pytest.mark.campaign
def test_a_relation_that_contains_the_pair_is_kept(found):
    pair = found.witness.pair
    for relation in (queries(3, 2), queries(9, any_length=True), pairs((pair.neighbour, pair.data))):
        replayed = dpw.replay(found.witness, quiet, seed=3, neighbours=relation)
        assert replayed.witness.relation is relation


def number_of_floats(rng, rows):
    """A count of records, private at ε = 1: each record counts once at most."""
    values = [row["x"] for row in rows] if isinstance(rows, list) else list(rows["x"])
    return sum(type(value) is float for value in values) + rng.laplace()


@pytest.mark.parametrize("form", ["list", "columns", "dataframe"])
def test_a_forged_pair_whose_shared_records_have_two_types_is_not_replayed(form, tmp_path):
    def dataset(*values):
        objects = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        return {"list": [{"x": v} for v in values], "columns": {"x": list(values)}, "dataframe": objects}[form]

    honest = dpw.Witness(
        mechanism="number_of_floats",
        parameters={},
        claim=ApproxDP(epsilon=1.0),
        alpha=1e-6,
        relation=dpw.records({"x": dpw.numbers(0, 9)}, form=form),
        pair=Pair(dataset(*[1] * 20), dataset(*[1] * 20, 3)),
        event=Interval(coordinate=0, low=10.0),
        description="output above 10",
        counts=Counts(),
        estimate=Estimate(p=1.0, q=0.0, both=0.0),
        seed=1,
    )
    path = tmp_path / "w.json"
    path.write_text(json.dumps(honest.to_json()))
    settings = {"runs": 200, "workers": 1, "seed": 2}
    assert isinstance(dpw.replay(path, number_of_floats, **settings), dpw.NotRefuted)
    for side, more in (("input", []), ("neighbour", [3])):
        path.write_text(json.dumps({**honest.to_json(), side: input_to_json(dataset(*[1.0] * 20, *more))}))
        with pytest.raises(InvalidWitness, match=r"of the witness are not neighbours under the relation in the file"):
            dpw.replay(path, number_of_floats, **settings)


def test_data_in_a_file_do_not_decide_which_lengths_are_adjacent(found):
    """A file may say anything of its data; a relation that the user gives is asked without them."""
    witness = found.witness
    assert witness.data.size == 3
    with pytest.raises(InvalidNeighbours, match=r"queries\(10\) calls neighbouring"):
        dpw.replay(witness, quiet, neighbours=queries(10))
    assert isinstance(dpw.replay(witness, quiet, neighbours=queries(10), data=[10, 4, 4], seed=3), dpw.Violation)


def test_a_replay_without_the_outcome_of_its_witness_says_so(violation):
    notes = dpw.replay(replace(violation.witness, outcome="mine.py:released"), seed=2).notes
    said = "the witness was found with outcome=mine.py:released, this replay is without: give it again"
    assert any(note.startswith(said) for note in notes)


@pytest.mark.campaign
def test_a_replay_with_the_outcome_of_its_witness_has_nothing_to_say_of_it(found):
    witness = replace(found.witness, outcome="mine.py:released")
    assert not any("outcome=" in note for note in dpw.replay(witness, quiet, outcome=float, runs=1000).notes)


def test_a_target_may_be_given_by_its_name(violation):
    assert isinstance(dpw.replay(violation.witness, "svt", seed=99, runs=100_000), dpw.NotRefuted)
    forged = replace(violation.witness, mechanism="os:system")  # a file decides about no code
    with pytest.raises(UnknownTarget, match="its code is not run"):
        dpw.replay(forged)


def test_a_mechanism_with_other_parameters_is_refused(found, violation):
    with pytest.raises(InvalidParameter, match="quiet has no parameter 'epsilon', which the witness gives to isvt1"):
        dpw.replay(violation.witness, quiet)

    def needs_more(rng, data, bound, norm, shape, scale, bins, size):
        return data[0] + rng.normal(0, scale, size=size)

    with pytest.raises(InvalidParameter, match="needs_more needs a value for 'bins'"):
        dpw.replay(found.witness, needs_more)
    assert isinstance(dpw.replay(found.witness, needs_more, parameters={"bins": 3}, seed=3), dpw.Violation)


@pytest.mark.campaign
def test_a_parameter_that_no_file_can_hold_is_asked_for(tmp_path):
    def noisy(rng, data, law=np.sin, size=1):
        return law(data[0]) + rng.normal(0, 0.1, size=size)

    verdict = dpw.check(noisy, claim=1.0, neighbours=queries(1), seed=1, search_runs=5_000)
    again = through_a_file(verdict.witness, tmp_path)
    assert again.unreadable == ("law",)
    assert again.to_json() == verdict.witness.to_json()
    with pytest.raises(InvalidParameter, match=r"the parameter law=<ufunc 'sin'> of .* cannot be written to a file"):
        dpw.replay(again, noisy)
    assert isinstance(dpw.replay(again, noisy, parameters={"law": np.sin}, seed=3), dpw.Violation)


def test_a_function_of_a_script_is_named_by_its_file(tmp_path, monkeypatch):
    """The name `__main__:noisy` is that of another script in the process that replays it."""
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    (tmp_path / "elsewhere").mkdir()

    def noisy():
        pass

    noisy.__module__, noisy.__qualname__ = "__main__", "noisy"
    assert _reference(noisy) == "__main__:noisy"  # typed in: of no file
    main.__file__ = "<stdin>"
    assert _reference(noisy) == "__main__:noisy"
    script = tmp_path / "script.py"
    script.touch()
    main.__file__ = str(script)
    monkeypatch.chdir(tmp_path)
    assert _reference(noisy) == "script.py:noisy"
    monkeypatch.chdir("elsewhere")
    assert _reference(noisy) == f"{script}:noisy"
    (tmp_path / "elsewhere").rmdir()
    assert _reference(noisy) == f"{script}:noisy"  # the working folder was removed


class Ledger:
    def __init__(self, entries):
        self.entries = entries

    def __repr__(self):
        return f"Ledger of {self.entries}"


@pytest.mark.campaign
def test_inputs_that_no_file_can_hold_are_asked_for(tmp_path):
    def counted(rng, ledger):
        return ledger.entries + rng.laplace(0, 0.3)

    given = [(Ledger(1), Ledger(0))]
    verdict = dpw.check(counted, claim=1.0, neighbours=given, seed=1, runs=5_000, bits=False)
    again = through_a_file(verdict.witness, tmp_path)
    assert again.unreadable_inputs
    assert again.to_json() == verdict.witness.to_json()
    assert str(again) == str(verdict.witness)
    loaded = verdict_from_json(json.loads(json.dumps(verdict.to_json())))
    assert "Ledger of 1" in loaded.to_html()
    for neighbours in (None, [(Ledger(2), Ledger(0))]):
        with pytest.raises(InvalidWitness, match=r"no file can hold the inputs .*: give these inputs"):
            dpw.replay(again, counted, neighbours=neighbours)
    with pytest.raises(InvalidWitness, match="no file can hold the inputs"):
        dpw.shrink(loaded, counted)
    for neighbours in (given, [(Ledger(0), Ledger(1))]):  # which of them was D is known
        assert dpw.replay(again, counted, neighbours=neighbours, seed=3, runs=5_000).refuted


@pytest.mark.campaign
def test_a_file_does_not_say_which_inputs_of_a_target_are_adjacent():
    """Forty people moved at once give any histogram away; its claim is about one."""
    verdict = dpw.check(load("histogram"), epsilon=1.0, claim=0.5, seed=1)
    value = verdict.witness.to_json()
    wide = [[40, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    value |= {
        "mechanism": "histogram",
        "input": wide[0],
        "neighbour": wide[1],
        "relation": {"kind": "pairs", "given": [wide], "noun": "value"},
        "data": None,
        "event": {"kind": "interval", "coordinate": 0, "low": 20.0, "high": None, "description": ""},
        "claim": {"epsilon": 1.0, "delta": 0.0},
    }
    forged = dpw.Witness.from_json(value)
    with pytest.raises(InvalidNeighbours, match="the witness's pair, unless you give its relation"):
        dpw.replay(forged, runs=20_000)
    told = dpw.replay(forged, neighbours=pairs(wide), runs=20_000)  # the user's own word
    assert isinstance(told, dpw.Violation)


@pytest.mark.parametrize("alpha", [0, 0.0, 1, 1.0, -1e-6, 1.5])
def test_a_level_in_a_file_lies_between_0_and_1(violation, alpha):
    value = violation.witness.to_json()
    assert dpw.Witness.from_json(value).alpha == violation.alpha
    with pytest.raises(InvalidWitness, match="must lie between 0 and 1"):
        dpw.Witness.from_json(value | {"alpha": alpha})


def test_a_replay_makes_other_runs_than_the_check(violation):
    replayed = dpw.replay(violation.witness)
    assert replayed.seed != violation.seed
    assert replayed.counts != violation.counts


def test_a_replay_of_too_few_runs_is_refused_as_a_check_is(violation):
    with pytest.raises(dpw.BudgetTooSmall, match=r"runs=35 is too small: .* needs 36 runs"):
        dpw.replay(violation.witness, runs=35)


def test_inputs_that_the_relation_in_the_file_cannot_judge_are_refused(violation, monkeypatch):
    """A relation of another package may raise whatever it likes for what stands in a file."""
    monkeypatch.setattr(type(violation.witness.relation), "contains", lambda *_: [][0])
    with pytest.raises(InvalidWitness, match=r"cannot tell whether the inputs are neighbours: IndexError"):
        dpw.Witness.from_json(violation.witness.to_json())


def test_what_has_no_hash_names_no_column():
    array = {"array": [], "dtype": "float64"}
    with pytest.raises(ValueError, match="unhashable type"):
        value_from_json({"dataframe": [[array, "float64", [1.0]]], "index": {"range": [0, 1, 1], "name": None}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unregistered(Event):
    """A kind of event that no file can be read back with."""

    kind: ClassVar[str] = "unregistered"
    width: ClassVar[int] = 1
    complexity: ClassVar[tuple[int, int]] = 0, 0

    def describe(self, noun="value", label=None):
        return "mine"


class Misnamed(Relation):
    """A relation that writes another one, which does not hold its pairs."""

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        return iter(())

    def contains(self, pair, data=None):
        return True

    def to_json(self):
        return pairs(([9.0], [0.0])).to_json()


class Failing(Misnamed):
    def to_json(self):
        raise ZeroDivisionError("no luck")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"event": Unregistered()}, "event kind 'unregistered' is unknown: import the module that registers it by"),
        ({"relation": Misnamed()}, "the inputs .* are not neighbours under the relation in the file"),
        ({"relation": Failing()}, "its to_json raised ZeroDivisionError: no luck"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(violation, tmp_path, changes, message):
    with pytest.raises(InvalidWitness, match=f"w.json was not written, since it could not be read back: .*{message}"):
        replace(violation.witness, **changes).save(tmp_path / "w.json")
    assert not list(tmp_path.iterdir())


def test_a_result_stands_without_a_relation_that_cannot_write_itself(violation):
    found = replace(violation, witness=replace(violation.witness, relation=Failing()))
    assert found.to_json()["witness"]["relation"] is None


def test_whatever_a_reader_of_another_package_raises_is_one_line(violation, monkeypatch):
    value = violation.witness.to_json()
    monkeypatch.setattr("dpwitness.neighbours.relation.relation_from_json", lambda _: [][0])
    with pytest.raises(InvalidWitness, match=r"the witness is damaged: list index out of range"):
        dpw.Witness.from_json(value)
