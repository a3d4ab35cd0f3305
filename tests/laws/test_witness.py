import json
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpwitness as dpw
from dpwitness.api.replay import _shrinking_seed
from dpwitness.claims import ApproxDP
from dpwitness.errors import (
    InvalidClaim,
    InvalidData,
    InvalidNeighbours,
    InvalidParameter,
    InvalidWitness,
    UnknownTarget,
)
from dpwitness.events import Interval
from dpwitness.mechanisms.catalog import load
from dpwitness.neighbours import Pair, Relation, as_finite_numbers, bits, input_to_json, pairs, queries, shown
from dpwitness.results.verdict import verdict_from_json


@pytest.fixture(scope="module")
def violation():
    verdict = dpw.check(load("isvt1"), epsilon=0.7, seed=1, reference="isvt1")
    assert isinstance(verdict, dpw.Violation)
    return verdict


def test_a_witness_replays_on_fresh_runs(violation, tmp_path):
    replayed = dpw.replay(through_a_file(violation.witness, tmp_path))
    assert isinstance(replayed, dpw.Violation)
    assert replayed.search_runs == 0
    assert replayed.seed != violation.seed
    assert replayed.counts != violation.counts


def length(rng, data):
    return len(data) + rng.laplace(scale=0.2)


def half_a_pair(rng, data):
    return "\ud800" if rng.random() < (0.5 if len(data) > 1 else 0.01) else str(rng.integers(3))


def key_of_half_a_pair(rng, data):
    return {"\ud800": half_a_pair(rng, data), "other": "0"}


def keys_of_data(rng, data):
    return {key: 1.0 + rng.laplace() for key in data}


def labels_of_data(rng, data):
    return pd.Series(1.0, index=list(data)) + rng.laplace(0, 1, len(data))


DAYS = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=3)}, index=pd.Index([7, 9, 8], name="id"))


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")
@pytest.mark.filterwarnings("ignore::dpwitness.SlowMechanism")
@pytest.mark.parametrize(
    ("function", "pair", "said"),
    [
        (length, ([1, None], [1, None, 3]), ""), (length, ("abc", "abcd"), ""), (length, (b"", b"\x00"), ""),
        (length, ({"a": 1}, {"a": 1, "b": math.nan}), ""), (length, (DAYS, DAYS[1:]), ""),
        (length, ([{"age": 1}], [{"age": 1}, {"age": None}]), ""),
        # Texts that no file can hold, and keys that one side alone has.
        (half_a_pair, ([1], [1, 2]), r"\\ud800"), (key_of_half_a_pair, ([1], [1, 2]), r"\\ud800"),
        (keys_of_data, (["flu"], ["flu", "hiv"]), "key 'hiv'|order of|number"),
        (labels_of_data, (["flu"], ["flu", "hiv"]), "index 'hiv'|order of|number"),
    ],
)  # fmt: skip
def test_a_violation_of_any_kind_is_saved_and_replayed_in_the_same_words(function, pair, said, tmp_path):
    few = {"seed": 1, "workers": 1, "runs": 1_000, "search_runs": 1_000}
    found = dpw.check(function, claim=0.2, neighbours=[pair], parameters={}, **few)
    assert isinstance(found, dpw.Violation)
    assert re.search(said, found.witness.description)
    again = through_a_file(found.witness, tmp_path)
    assert again.to_json() == found.witness.to_json()
    assert "\n" not in shown(again.pair.data)
    replayed = dpw.replay(again, function, seed=2, workers=1, runs=1_000)
    assert isinstance(replayed, dpw.Violation)
    assert replayed.witness.description == found.witness.description


def test_a_file_never_decides_which_code_runs(violation, tmp_path):
    """A witness that names a module is data: only registered targets are loaded for it."""
    value = violation.witness.to_json()
    value["mechanism"] = "os:system"
    path = tmp_path / "w.json"
    path.write_text(json.dumps(value))
    with pytest.raises(UnknownTarget, match="its code is not run unless you name it"):
        dpw.replay(dpw.Witness.load(path))


LACKS = object()
NOT_ADJACENT = "are not neighbours under the relation in the file"


COUNTS = {"n10": 1, "n11": 0, "n01": 0, "n00": 0}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"format": "pickle"}, r"w\.json .*'pickle'"),
        ({"format": "dpwitness-witness/1"}, r"w\.json must be a witness, .*/1', not "),
        *(({name: LACKS}, f"'{name}'") for name in ("relation", "data", "counts")),
        ({"relation": {"kind": "os:system"}}, "'os:system' is unknown"),
        ({"relation": queries(9).to_json()}, rf"{NOT_ADJACENT}: queries\(9\)"),
        ({"data": [5.0] * 10}, f"{NOT_ADJACENT} with the data in the file"),
        ({"neighbour": [0.0] * 9 + [7.0]}, NOT_ADJACENT),
        ({"input": [2**63] * 10}, r"2\^63"),
        ({"input": ["a"] * 10}, "numbers only"),
        *(({"counts": {**COUNTS, "n10": number}}, f"n10={number}") for number in (2**63, -1, 1.5)),
        ({"seed": 2**128}, "seed=340282366920938463463374607431768211456"),
        ({"alpha": 10**400}, "alpha=1000"),
        *(({"parameters": {"epsilon": value}}, "parameter epsilon=") for value in (
            {}, {"float": "Infinity"}, {"tuple": [1], "more": 2}, {"array": [1], "dtype": "object"},
            {"array": [[1], [1, 2]], "dtype": "float64"}, {"array": [300], "dtype": "uint8"})),
        ({"claim": {"epsilon": -1, "delta": 0}}, "epsilon=-1.0"),
        ({"event": []}, "must be an object|damaged"),
        *(({"event": {"kind": kind}}, f"{named}.*dpwitness 0.2 reads") for kind, named in (
            ("trees", "'trees'"), ("weighted", "weighted runs"), ("split", "graded event"))),
        ({"mechanism": "\ud800"}, "surrogates"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused_with_one_line(violation, changes, named, tmp_path):
    value = {**violation.witness.to_json(), **changes}
    path = tmp_path / "w.json"
    path.write_text(json.dumps({name: item for name, item in value.items() if item is not LACKS}))
    with pytest.raises(InvalidWitness, match=named) as caught:
        dpw.Witness.load(path)
    assert "\n" not in str(caught.value)


def test_files_that_are_no_json(tmp_path):
    path = tmp_path / "w.json"
    for content in ("{", "[1, NaN]", "nonsense", '{"format": NaN}'):
        path.write_text(content)
        with pytest.raises(InvalidWitness):
            dpw.Witness.load(path)
    with pytest.raises(InvalidData, match="cannot read"):
        dpw.Witness.load(tmp_path / "missing.json")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidData, match="not UTF-8"):
        dpw.Witness.load(path)


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


class Foreign(Relation):
    """A relation as another package may write it."""

    noun = "value"

    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        yield Pair(as_finite_numbers([0.0]), as_finite_numbers([1.0]))

    def variations(self, pair, *, scale=1.0):
        return iter(())


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is what is kept of a relation
@pytest.mark.parametrize("written", [None, {"kind": "theirs", "more": 1}])
def test_of_a_foreign_relation_a_file_holds_null(written, tmp_path):
    relation = Foreign() if written is None else type("Writing", (Foreign,), {"to_json": lambda self: written})()
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


@pytest.mark.parametrize(
    ("given", "replayed"),
    [({"claim": 2.0}, (2.0, 0.25)), ({"delta": 0.5}, (1.0, 0.5)), ({"claim": 2.0, "delta": 0.0}, (2.0, 0.0)),
     ({"alpha": 1e-3}, (1.0, 0.25)), ({"claim": ApproxDP(2.0, 0.5)}, (2.0, 0.5)), ({}, (1.0, 0.25))],
)  # fmt: skip
def test_what_is_not_given_anew_is_as_in_the_claim_of_the_witness(found, given, replayed):
    witness = replace(found.witness, claim=ApproxDP(1.0, 0.25))
    again = dpw.replay(witness, quiet, parameters={"scale": 50.0}, seed=3, runs=1_000, **given)
    assert again.claim == again.witness.claim == ApproxDP(*replayed)
    assert again.alpha == given.get("alpha", found.alpha)


@pytest.mark.parametrize(
    ("given", "error", "named"),
    [
        ({"claim": ApproxDP(2.0, 0.25), "delta": 0.5}, InvalidParameter, r"delta=0.5 is not the δ of claim="),
        ({"claim": -1}, InvalidClaim, "epsilon=-1"),
        ({"alpha": 2}, InvalidParameter, "alpha=2"),
    ],
)
def test_a_replay_at_no_claim_or_level_is_refused(found, given, error, named):
    with pytest.raises(error, match=named):
        dpw.replay(found.witness, quiet, **given)


def test_a_file_does_not_make_inputs_of_a_target_adjacent(found):
    """Forty people moved at once give any histogram away; its claim is about one."""
    wide = [as_finite_numbers([people, 0, 0, 0, 0]) for people in (40, 0)]
    forged = replace(
        found.witness, mechanism="histogram", parameters={"epsilon": 1.0}, pair=Pair(*wide),
        relation=pairs(tuple(wide)), data=None, event=Interval(coordinate=0, low=20.0), claim=ApproxDP(1.0),
    )  # fmt: skip
    with pytest.raises(InvalidNeighbours, match="the witness's pair, unless you give its relation"):
        dpw.replay(forged, runs=20_000)
    told = dpw.replay(forged, neighbours=pairs(wide), runs=20_000)  # the user's own word
    assert isinstance(told, dpw.Violation)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"neighbours": queries(2)}, r"queries\(2\)"),
        ({"neighbours": queries(3, 0.5)}, r"queries\(3, sensitivity=0.5\)"), ({"neighbours": bits(3)}, r"bits\(3\)"),
        ({"neighbours": pairs(([10, 4, 4], [10, 4, 5]))}, r"pairs\(\(\[10, 4, 4\], \[10, 4, 5\]\)\)"),
        ({"data": [9, 9, 9]}, r"queries\(3\) calls neighbouring with the given data"),
        ({"neighbours": queries(3), "data": [9, 9, 9]}, r"queries\(3\) calls neighbouring with the given data"),
    ],
)  # fmt: skip
def test_a_pair_outside_the_relation_is_not_replayed(found, settings, named):
    with pytest.raises(InvalidNeighbours, match=r"the witness's pair \[.*" + named):
        dpw.replay(found.witness, quiet, **settings)


@pytest.mark.parametrize("form", ["list", "columns", "dataframe"])
def test_a_forged_pair_whose_shared_records_have_two_types_is_not_replayed(found, form, tmp_path):
    def number_of_floats(rng, rows):
        """A count of records, private at ε = 1: each record counts once at most."""
        values = [row["x"] for row in rows] if isinstance(rows, list) else list(rows["x"])
        return sum(type(value) is float for value in values) + rng.laplace()

    def dataset(*values):
        objects = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        return {"list": [{"x": v} for v in values], "columns": {"x": list(values)}, "dataframe": objects}[form]

    honest = replace(
        found.witness, parameters={}, relation=dpw.records({"x": dpw.numbers(0, 9)}, form=form), data=None,
        pair=Pair(dataset(*[1] * 20), dataset(*[1] * 20, 3)), event=Interval(coordinate=0, low=10.0),
    ).to_json()  # fmt: skip
    path = tmp_path / "w.json"
    path.write_text(json.dumps(honest))
    settings = {"runs": 200, "workers": 1, "seed": 2}
    assert isinstance(dpw.replay(path, number_of_floats, **settings), dpw.NotRefuted)
    for side, more in (("input", []), ("neighbour", [3])):
        path.write_text(json.dumps({**honest, side: input_to_json(dataset(*[1.0] * 20, *more))}))
        with pytest.raises(InvalidWitness, match=NOT_ADJACENT):
            dpw.replay(path, number_of_floats, **settings)


def test_data_in_a_file_do_not_decide_which_lengths_are_adjacent(found):
    """A file may say anything of its data; a relation that the user gives is asked without them."""
    witness = found.witness
    assert witness.data.size == 3
    with pytest.raises(InvalidNeighbours, match=r"queries\(10\) calls neighbouring"):
        dpw.replay(witness, quiet, neighbours=queries(10))
    assert isinstance(dpw.replay(witness, quiet, neighbours=queries(10), data=[10, 4, 4], seed=3), dpw.Violation)


def test_a_replay_without_the_outcome_of_its_witness_says_so(violation):
    witness = replace(violation.witness, outcome="mine.py:released")
    assert any("outcome=mine.py:released" in note for note in dpw.replay(witness, seed=2).notes)


def test_a_mechanism_with_other_parameters_is_refused(found, violation):
    with pytest.raises(InvalidParameter, match="quiet has no parameter 'epsilon'"):
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
    loaded = verdict_from_json(json.loads(json.dumps(verdict.to_json())))
    assert all("Ledger of 1" in shown for shown in (str(again), loaded.to_html()))
    for neighbours in (None, [(Ledger(2), Ledger(0))]):
        with pytest.raises(InvalidWitness, match="no file can hold the inputs"):
            dpw.replay(again, counted, neighbours=neighbours)
    with pytest.raises(InvalidWitness, match="no file can hold the inputs"):
        dpw.shrink(loaded, counted)
    for neighbours in (given, [(Ledger(0), Ledger(1))]):  # which of them was D is known
        assert dpw.replay(again, counted, neighbours=neighbours, seed=3, runs=5_000).refuted


def test_whatever_a_relation_of_another_package_raises_is_one_line(violation, monkeypatch):
    written = violation.witness.to_json()
    monkeypatch.setattr(type(violation.witness.relation), "contains", lambda *_: [][0])
    with pytest.raises(InvalidWitness, match=r"cannot tell whether the inputs are neighbours: IndexError"):
        dpw.Witness.from_json(written)


class Misnamed(Foreign):
    """A relation that writes another one, which does not hold its pairs."""

    def contains(self, pair, data=None):
        return True

    def to_json(self):
        return pairs(([9.0], [0.0])).to_json()


class Failing(Misnamed):
    def to_json(self):
        raise ZeroDivisionError("no luck")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"relation": Misnamed()}, NOT_ADJACENT),
        ({"relation": Failing()}, "to_json raised ZeroDivisionError: no luck"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(violation, tmp_path, changes, named):
    witness = replace(violation.witness, **changes)
    with pytest.raises(InvalidWitness, match=f"w.json was not written, since it could not be read back: .*{named}"):
        witness.save(tmp_path / "w.json")
    assert not list(tmp_path.iterdir())
