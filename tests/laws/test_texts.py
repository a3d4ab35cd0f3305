"""Texts: where they hardly ever repeat, what stands within them is looked at; else each is one code, as it was."""

import math
import pickle
import sys

import numpy as np
import pytest
from scipy.stats import binom

import fresh_texts
from dpwitness import NotRefuted, Violation, Witness, check, pairs, remote, replay
from dpwitness.events.encoding import symbol, text_code
from dpwitness.mechanisms.layout import ROOT, KeyedRow, keyed_row
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.texts import fresh, may_be_fresh, runs_to_look_at
from dpwitness.neighbours import Pair
from fresh_texts import LEAKS, count, leaking, many, name, response, typed
from running import sampled

NEIGHBOURS = pairs(("0", "1"))  # of texts, which numba takes for no data: it would refuse all that is run here
ALPHA = 0.05
SEEDS = 20
READING = ROOT.reading_texts(ROOT.entries)


def checked(mechanism, claim=1.0, **options):
    options = {"search_runs": 500, "runs": 500, "seed": 1, "workers": 1, "bits": False} | options
    return check(mechanism, claim=claim, neighbours=NEIGHBOURS, **options)


def read(value, layout=READING):
    """The entries of an outcome by their names."""
    row = KeyedRow(layout, {}, {})
    keyed_row(value, row)
    names = layout.names
    return {names[c]: entry for c, entry in enumerate(row.written()[: len(names)]) if not math.isnan(entry)}


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["a space behind noise", "a number among words"])
def test_a_leak_in_texts_that_hardly_ever_repeat_is_refuted(kind):
    assert isinstance(checked(leaking, parameters={"kind": kind}), Violation)


@pytest.mark.campaign
@pytest.mark.parametrize("kind", sampled(LEAKS))
def test_every_leak_in_texts_that_hardly_ever_repeat_is_refuted(kind):
    assert isinstance(checked(leaking, parameters={"kind": kind}, runs=5000, search_runs=5000), Violation)


@pytest.mark.campaign
def test_a_witness_is_saved_and_replayed(tmp_path):
    verdict = checked(leaking, parameters={"kind": "within a dict"})
    verdict.witness.save(tmp_path / "witness.json")
    witness = Witness.load(tmp_path / "witness.json")
    assert witness.layout == verdict.witness.layout
    assert witness.layout.reads_texts
    again = replay(witness, leaking, runs=500, seed=2, workers=1)
    assert isinstance(again, Violation)
    assert again.witness.description == verdict.witness.description
    named = "key 'log', value 2, character 1 from the end of the text"
    assert verdict.witness.description in (f"{named} '+'", f"{named} '-'")


@pytest.mark.campaign
def test_a_new_process_reads_texts_as_this_one_does():
    verdict = checked(leaking, parameters={"kind": "a word behind an id"})
    assert isinstance(verdict, Violation)
    assert verdict.notes == ()


@pytest.mark.campaign
def test_other_processes_read_texts_as_this_one_does():
    options = {"parameters": {"kind": "a word before an id"}, "runs": 60_000, "max_time": 60.0}
    one, two = (checked(leaking, workers=workers, **options) for workers in (1, 2))
    assert one.witness.description == two.witness.description
    for verdict in (one, two):  # how many runs there are follows from measured times
        assert verdict.counts.n10 == verdict.counts.runs


@pytest.mark.campaign
def test_calls_that_make_many_runs_are_read_as_well():
    assert isinstance(checked(many), Violation)


@pytest.mark.campaign
def test_another_interpreter_sends_texts_that_are_read_here():
    release = remote(sys.executable, f"{fresh_texts.__file__}:leaking")
    assert isinstance(checked(release, parameters={"kind": "a word behind an id"}), Violation)


@pytest.mark.campaign
@pytest.mark.parametrize(("mechanism", "epsilon"), [(count, 1.0), (response, math.log(3))])
def test_a_correct_mechanism_with_fresh_texts_is_not_accused(mechanism, epsilon):
    verdicts = [
        checked(mechanism, epsilon, seed=seed, alpha=ALPHA, runs=1000, search_runs=500) for seed in range(SEEDS)
    ]
    alarms = sum(isinstance(verdict, Violation) for verdict in verdicts)
    assert alarms <= binom.isf(1e-6, SEEDS, ALPHA)


@pytest.mark.campaign
@pytest.mark.parametrize(("mechanism", "epsilon"), [(count, 1.0), (response, math.log(3))])
def test_the_same_mechanism_is_refuted_below_its_epsilon(mechanism, epsilon):
    assert isinstance(checked(mechanism, 0.7 * epsilon, runs=50_000, search_runs=10_000), Violation)


@pytest.mark.campaign
def test_types_of_numbers_are_seen_in_their_texts():
    assert isinstance(checked(typed), NotRefuted)
    assert isinstance(checked(typed, outcome=repr), Violation)


def test_what_is_read_of_a_text():
    entries = read("n=-0.5, é 12")
    assert entries["outcome"] == text_code("n=-0.5, é 12")
    assert entries["length of the text"] == 12
    assert entries["character 1 of the text"] == symbol("character", "n")
    assert entries["character 8 of the text"] == symbol("character", " ")
    assert entries["character 1 from the end of the text"] == symbol("character", "2")
    assert entries["character 4 from the end of the text"] == symbol("character", "é")
    assert entries["number 1 in the text"] == -0.5
    assert entries["number 2 in the text"] == 12
    assert "number 3 in the text" not in entries


@pytest.mark.parametrize(
    ("text", "numbers"), [("1e-05", [1e-5]), ("2024-01", [2024, -1]), ("9" * 400, []), ("", []), (".5.", [0.5])]
)
def test_numbers_in_a_text(text, numbers):
    entries = read(text)
    assert [entry for name, entry in entries.items() if name.startswith("number")] == numbers
    assert entries["length of the text"] == len(text)


def test_the_cost_of_a_run_is_that_of_reading_its_texts(monkeypatch):
    """Shards that were planned by a run which only wrote one code were not done in time."""
    measured = []

    def measure(mechanism, pair):
        measured.append(mechanism.layout is not None and mechanism.layout.reads_texts)
        return of_all(mechanism, pair)

    of_all = PythonMechanism.measure
    monkeypatch.setattr(PythonMechanism, "measure", measure)
    as_mechanism(count, "0")
    assert measured == [False, True]


def test_a_layout_says_by_itself_where_texts_are_read():
    assert not ROOT.reads_texts
    for width in range(2, len(READING.entries) + 1):
        layout = pickle.loads(pickle.dumps(READING.upto(width)))
        assert layout.reads_texts
        assert read("ok-17", layout) == dict(list(read("ok-17").items())[: len(read("ok-17", layout))])
    assert read("ok-17", READING.upto(1)) == {"outcome": text_code("ok-17")}


def test_texts_that_repeat_keep_their_rows():
    mechanism = as_mechanism(name, "0", neighbour="1")
    assert mechanism.layout is None
    runs = PairedRuns.d_first(Pair("0", "1"), 8, coupled=False)
    rows = mechanism.pair_outcomes(runs, np.random.default_rng(1))
    assert rows.shape == (2, 8, 1)
    assert set(rows.ravel()) <= {text_code(f"name {k}") for k in range(40)}


def test_texts_that_repeat_keep_their_rows_in_a_witness():
    def told(rng, data):
        return f"name {int(rng.integers(40)) if rng.random() < 0.2 else int(data[0])}"

    verdict = checked(told)
    assert isinstance(verdict, Violation)
    assert verdict.witness.layout is None


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([f"{k}" for k in range(8)], True),
        ([f"{k}" for k in range(7)], False),
        ([f"{k}" for k in range(8)] + ["none"] * 24, True),
        ([f"{k}" for k in range(8)] + ["none"] * 25, False),
        ([f"{k}" for k in range(8)] * 2, False),
    ],
)
def test_when_texts_hardly_ever_repeat(texts, expected):
    assert fresh(np.array([text_code(text) for text in texts])) == expected


def test_only_many_texts_are_worth_a_look():
    codes = {text_code(f"{k}"): f"{k}" for k in range(3)}
    assert may_be_fresh(codes, 4)
    assert not may_be_fresh(codes, 5)
    assert not may_be_fresh({symbol("a"): "a", 1.0: "b"}, 2)
    assert runs_to_look_at(1e-6) == 256
    assert runs_to_look_at(0.1) == 4
    assert runs_to_look_at(0.2) == 0


def test_a_pass_of_fresh_texts_is_a_pass():
    assert isinstance(checked(response, 2.0), NotRefuted)
