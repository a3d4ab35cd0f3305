"""Checks whose evidence goes on in the next session: what is counted, kept, refuted and refused."""

import json
import math
import shutil
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from scipy.stats import binom

import dpwitness as dpw
from dpwitness.api import kept as kept_sessions
from dpwitness.api.kept import check_after_kept
from dpwitness.api.loop import confirm_events
from dpwitness.errors import DependentRuns, InvalidData, InvalidParameter, InvalidWitness, MechanismRaised
from dpwitness.evidence import Counts, log_e_value
from dpwitness.problem import Effort, Statement
from dpwitness.problem import prepare as prepared
from dpwitness.results.kept import KeptEvidence
from dpwitness.results.schema import schemas
from dpwitness.results.verdict import verdict_from_json
from running import scaled

pytestmark = pytest.mark.usefixtures("asked_here")

PAIR = dpw.pairs(([0.0], [1.0]))
LIMITS = {"claim": 1.0, "neighbours": PAIR, "runs": 500, "search_runs": 2_000, "bits": False, "workers": 1}
#: The log e-value that refutes at half of α = 10⁻⁶.
NEEDED = math.log(2e6)


def flipped(rng, data, size, epsilon=1.2):
    """Randomised response: it is ε-DP and no better, and 1-DP for ε = 1."""
    return np.where((data[0] > 0) ^ (rng.random(size) < 1 / (1 + np.exp(epsilon))), 1.0, 0.0)


def flipped_anew(rng, data, size, epsilon=1.2):
    """A later version, with other code."""
    lies = rng.random(size) < 1 / (1 + np.exp(epsilon))
    return np.where(lies, data[0] == 0, data[0] > 0).astype(float)


@cache
def passed():
    """A pass of a check of 500 runs, which shows an excess and does not prove it."""
    verdict = dpw.check(flipped, seed=1, **LIMITS)
    assert not verdict.refuted
    return replace(verdict, notes=())


def session(path, mechanism=flipped, *, seed=1, runs=2_000, alpha=1e-6, check=None, **said):
    """The verdict of a session, whose check is the pass of another one."""
    effort = Effort(seed=seed, runs=runs, alpha=alpha, workers=1)
    problem, runner = prepared(Statement(mechanism=mechanism, **{"claim": 1.0, "neighbours": PAIR, **said}), effort)
    check = check or (lambda problem, runner, effort: passed())
    return check_after_kept(problem, runner, effort, path, check)[0]


def content(path):
    return KeptEvidence.load(path)[1]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kept.json"


@pytest.mark.parametrize("before", [0, 1])
def test_evidence_of_another_session_at_the_same_time_stays(path, before):
    """A pass that ended after a refutation wrote its own evidence over it, and the next session passed."""
    for _ in range(before):
        session(path)
    others = []

    def meanwhile(problem, runner, effort):
        session(path, seed=2)
        others.append(path.read_text())
        return passed()

    said = session(path, seed=3, check=meanwhile)
    assert path.read_text() == others[0]
    assert any("another session wrote kept.json during this one" in note for note in said.notes)


def test_a_file_that_changes_during_the_runs_is_named_once(path, monkeypatch):
    session(path)

    def meanwhile(*given, **named):
        path.write_text(path.read_text() + " ")
        return confirm_events(*given, **named)

    monkeypatch.setattr(kept_sessions, "confirm_events", meanwhile)
    said = session(path, seed=2)
    assert sum("another session wrote kept.json" in note for note in said.notes) == 1


def test_sessions_refute_together_what_none_refutes_alone(path):
    first = session(path)
    assert not first.notes
    assert content(path).sessions == ()
    second = session(path)
    kept = content(path)
    (version,) = kept.versions.values()
    assert second.notes == (f"kept evidence: log e-value {kept.log_wealth:.1f} of 14.5 needed, from {version}",)
    found = session(path, flipped_anew)
    while not found.refuted:
        found = session(path, flipped_anew)
    kept = content(path)
    alone = [log_e_value(one.counts, kept.witness.claim, kept.witness.estimate) for one in kept.sessions]
    assert max(alone) < NEEDED <= kept.log_wealth == found.log_e_value
    assert found.counts == kept.sessions[-1].counts
    assert found.history == tuple(kept.versions.values())
    assert len(found.history) == 2
    assert "2,000 runs" in found.history[0]
    text = " ".join(str(found).split())
    assert f"VIOLATED: one of these 2 versions of {found.call} is not 1-DP" in text
    assert "; ".join(found.history) in text
    assert "a replay may not refute" in text
    assert found.lower_bound == 1
    assert found.exceeded == "ε > 1"
    written = json.loads(json.dumps(found.to_json()))
    assert verdict_from_json(written).history == found.history


def test_no_session_repeats_the_draws_of_another_and_the_same_session_its_result(path, tmp_path):
    for _ in range(3):
        session(path, runs=100)
    kept = content(path)
    assert Draft202012Validator(schemas()["kept"]).is_valid(json.loads(path.read_text()))
    assert len({one.seed for one in kept.sessions}) == len({one.counts for one in kept.sessions}) == 2
    restored = tmp_path / "restored.json"
    shutil.copy(path, restored)
    session(path, runs=100)
    session(restored, runs=100)
    assert path.read_text() == restored.read_text()
    session(restored, runs=100, seed=2)
    assert content(restored).sessions[:3] == content(path).sessions


def test_a_refuted_history_refutes_its_versions_at_once_and_begins_anew_with_another(path):
    session(path)
    found = session(path, runs=1_000)
    while not found.refuted:
        found = session(path, runs=1_000)
    before = content(path)
    again = session(path, seed=2, runs=500)
    assert again.history == found.history
    assert again.log_e_value == pytest.approx(found.log_e_value)
    assert content(path).sessions == before.sessions  # nothing more is bet
    other = session(path, flipped_anew, runs=100)
    assert f"the kept evidence refutes {before.sessions[0].version}: it begins anew" in other.notes[0]
    kept = content(path)
    assert kept.first == len(kept.sessions) - 1
    assert len(kept.versions) == 1
    assert len({one.seed for one in kept.sessions}) == len(kept.sessions)


ANOTHER_STATEMENT = ("the kept evidence is about another claim, relation or data: it begins anew",)


@pytest.mark.parametrize(
    "said", [{"claim": 1.1}, {"neighbours": dpw.pairs(([1.0], [0.0]), ([0.0], [2.0]))}], ids=["claim", "relation"]
)
def test_evidence_about_another_statement_is_not_used_and_that_is_said(path, said):
    session(path)
    session(path, runs=100)
    assert content(path).sessions
    assert session(path, runs=100, **said).notes == ANOTHER_STATEMENT
    assert content(path).sessions == ()


def test_evidence_about_other_data_is_not_used(path):
    settings = LIMITS | {"neighbours": dpw.queries(1), "search_runs": 500, "runs": 200, "keep": path, "claim": 2.0}
    for data, sessions in (([0.0], 0), ([0.0], 1), ([0.5], 0)):
        verdict = dpw.check(flipped, data=data, seed=1, **settings)
        assert len(content(path).sessions) == sessions
    assert ANOTHER_STATEMENT[0] in verdict.notes


def test_a_version_that_refutes_alone_is_an_ordinary_violation(path):
    session(path)
    found = session(path, lambda rng, data, size: flipped(rng, data, size, 3.0))
    assert found.refuted
    assert found.history == ()
    assert found.lower_bound > 1.5
    assert found.log_e_value == log_e_value(found.counts, found.claim, found.witness.estimate)


def test_an_event_takes_the_place_of_the_kept_one_if_it_is_clearly_better(path):
    """An excess of three standard errors more: that of the best of many sessions may be luck."""

    def pass_with(**counts):
        witness = replace(passed().witness, counts=Counts(**counts))
        return lambda *_: replace(passed(), witness=witness)

    session(path)
    for counts in ({"n10": 405, "n01": 95}, {"n10": 300, "n01": 200}):
        session(path, runs=100, check=pass_with(**counts))
        assert content(path).witness.counts == passed().counts
    session(path, runs=100, check=pass_with(n10=411, n01=89))
    kept = content(path)
    assert kept.witness.counts == Counts(n10=411, n01=89)
    assert kept.began == len(kept.sessions) == 3
    assert kept.settled == pytest.approx(replace(kept, witness=passed().witness, settled=-math.inf, began=0).log_wealth)
    # Counts of an earlier event say nothing about the present one.
    earlier = replace(kept.sessions[0], counts=Counts(n01=10_000))
    path.write_text(json.dumps(replace(kept, sessions=(earlier, *kept.sessions[1:])).to_json()))
    session(path, runs=100, check=pass_with(n10=405, n01=95))
    assert content(path).witness.counts == Counts(n10=411, n01=89)


@pytest.mark.parametrize("how", ["interrupted", "failed"])
def test_runs_count_however_their_session_ends(path, how):
    """Else those who end sessions, or outcomes that do, would select which runs count."""
    session(path)
    calls = []

    def ends(rng, data, size):
        calls.append(1)
        if len(calls) > 40:
            raise KeyboardInterrupt if how == "interrupted" else ValueError("no outcome")
        return flipped(rng, data, size)

    arguments = {"mechanism": ends, "runs": 10**8, "alpha": 1e-290}
    if how == "failed":
        with pytest.raises(MechanismRaised, match="no outcome"):
            session(path, **arguments)
    else:
        assert session(path, **arguments).ended == "interrupted"
    (one,) = content(path).sessions
    assert one.counts.runs


def test_runs_that_depend_on_each_other_are_not_kept(path, monkeypatch):
    session(path)
    before = path.read_text()
    for name in ("check_pass", "check_refutation"):

        def refuses(*_):
            raise DependentRuns("the runs are not independent")

        monkeypatch.setattr(f"dpwitness.api.loop.{name}", refuses)
    for mechanism in (flipped, lambda rng, data, size: flipped(rng, data, size, 3.0)):
        with pytest.raises(DependentRuns, match="not independent"):
            session(path, mechanism)
    assert path.read_text() == before


CHANGES = {
    "format": ("dpwitness-database/1", "format='dpwitness-database/1' must be 'dpwitness-kept/1'"),
    "settled": ("much", "settled='much' must be a finite number"),
    "began": (2, "first=0 and began=2 must be numbers of sessions"),
    "sessions": (
        [{"version": "a", "seed": 1, "counts": {"n10": -1, "n11": 0, "n01": 0, "n00": 0}, "log_e_value": 0}],
        "n10=-1",
    ),
    "witness": ({}, "damaged"),
}


@pytest.mark.parametrize("key", CHANGES)
def test_a_file_that_cannot_be_read_is_named_in_a_line(path, key):
    session(path)
    value = json.loads(path.read_text())
    assert set(CHANGES) < set(value)
    changed, why = CHANGES[key]
    path.write_text(json.dumps({**value, key: changed}))
    with pytest.raises(InvalidWitness) as caught:
        session(path)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{path}: ")
    assert why in line
    assert line.endswith("restore the file, or delete it to begin anew")
    del value[key]
    path.write_text(json.dumps(value))
    with pytest.raises(InvalidWitness, match=f"lacks '{key}'"):
        session(path)


def test_files_that_hold_no_kept_evidence_are_refused_and_stay(path):
    """Two sessions of one seed would count twice."""
    session(path)
    session(path, runs=100)
    value = json.loads(path.read_text())
    twice = json.dumps({**value, "sessions": 2 * value["sessions"]})
    for text, said in (
        ("null", "kept evidence=None must be an object; restore the file, or delete it"),
        ("{", "is not JSON"),
        (twice, "two sessions have one seed"),
    ):
        path.write_text(text)
        with pytest.raises(InvalidWitness, match=said) as caught:
            session(path)
        assert str(caught.value).count(str(path)) == 1
        assert path.read_text() == text


def test_a_check_keeps_its_evidence_in_a_file(tmp_path):
    path = tmp_path / "kept.json"
    first = dpw.check(flipped, keep=path, seed=1, **LIMITS)
    second = dpw.check(flipped, keep=str(path), seed=1, **LIMITS)
    assert second.alpha == first.alpha == 5e-7
    assert second.counts == first.counts
    assert content(path).sessions[0].counts != first.counts
    for wrong, error in ((7, InvalidParameter), (tmp_path, InvalidData)):
        with pytest.raises(error):
            dpw.check(flipped, keep=wrong, seed=1, **LIMITS)


def test_sessions_of_the_same_draws_refute_nothing(path, monkeypatch):
    def refuses(*_):
        raise DependentRuns("the same draws")

    monkeypatch.setattr("dpwitness.api.kept.require_new_draws", refuses)
    session(path)
    while (before := content(path)).log_wealth < NEEDED - 5:
        session(path, runs=800)
    with pytest.raises(DependentRuns, match="the same draws"):
        session(path)
    assert content(path).sessions == before.sessions


@pytest.mark.campaign
def test_kept_evidence_seldom_accuses_a_mechanism_that_exactly_meets_its_claim(path):
    number, alarms = scaled(200), 0
    for seed in range(number):
        path.unlink(missing_ok=True)
        for k in range(5):
            verdict = dpw.check(
                flipped, parameters={"epsilon": 1.0}, keep=path, seed=100 * seed + k, alpha=0.2, **LIMITS
            )
            alarms += verdict.refuted and not verdict.search_runs
            if verdict.refuted:
                break
    assert alarms <= binom.isf(1e-9, number, 0.1)
