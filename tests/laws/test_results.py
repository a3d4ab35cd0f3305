"""Results: their text, their one-line `repr`, and their JSON, which reads back."""

import decimal
import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import dpwitness as dpw
from dpwitness.candidate import CellsEstimate
from dpwitness.claims import ZCDP, ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP, TradeOff
from dpwitness.errors import InvalidWitness
from dpwitness.events import Box, Cells, Feature, FeatureEvent, Interval, OutcomeSet, Outside, ScoreThreshold
from dpwitness.evidence import (
    Counts,
    Estimate,
    detectable_at_best,
    detectable_at_rate,
    detectable_probability,
    runs_needed,
)
from dpwitness.evidence.profile_band import BandLine
from dpwitness.health.findings import findings_on_pass, notes_on_pass, useful_runs
from dpwitness.mechanisms.columns import Columns, Entry
from dpwitness.neighbours import Pair, as_finite_numbers, queries
from dpwitness.results import text
from dpwitness.results.curve import CurveTest, PValueCurve
from dpwitness.results.profile import BandEvent
from dpwitness.results.saved import RESULT_READERS as READERS_BY_KEY
from dpwitness.results.schema import SAVED_KINDS, schemas
from dpwitness.results.verdict import replay_text, verdict_from_json

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
EVENT = Interval(coordinate=0, low=0.5)
WITNESS = dpw.Witness(
    mechanism="mine.py:f",
    parameters={"epsilon": 1.0, "cutoff": (1, math.inf)},
    claim=PureDP(math.log(2)),
    alpha=1e-6,
    relation=queries(1),
    pair=Pair(as_finite_numbers([1.0]), as_finite_numbers([0.0])),
    event=EVENT,
    description="first answer at least 0.5",
    counts=Counts(n10=3, n11=1, n01=1, n00=5),
    estimate=Estimate(p=0.5, q=0.25),
    seed=7,
    versions={"python": "3.11"},
)
COMMON = {
    "mechanism": "f",
    "parameters": {"epsilon": 1.0, "cutoff": [1, "inf"]},
    "seed": 7,
    "reproducible": True,
    "seconds": 1.25,
    "notes": ("one", "two"),
}
FOUND = {**COMMON, "witness": WITNESS, "epsilon_lower_bound": 0.75, "search_runs": 20, "ended": "refuted"}
CHECKED = {"claim": WITNESS.claim, "alpha": 1e-6, "log_e_value": 14.0}
LINE = PValueCurve(
    epsilon=0.7,
    tests=(
        CurveTest(epsilon=0.5, p_value=0.001, holm=0.002, event="a", counts=Counts(n10=2, n00=2)),
        CurveTest(epsilon=1.0, p_value=1.0, holm=1.0, event="b", counts=Counts(n01=1, n00=3)),
    ),
    pair_label="given",
    search_runs=9,
)
PROFILE = dpw.Profile(
    **COMMON, pair=WITNESS.pair, alpha=0.001, search_runs=20, ended="runs",
    events=(
        BandEvent(
            event=WITNESS.event, description="first answer at least 0.5", counts=WITNESS.counts,
            line=BandLine(slope=2.0, difference=0.125, q_low=0.25, q_high=0.5),
        ),
    ),
)  # fmt: skip
RESULTS = {
    "violated": dpw.Violation(**FOUND, **CHECKED),
    "passed": dpw.NotRefuted(**FOUND, **CHECKED, detectable_epsilon=0.8),
    "powerless": dpw.NotRefuted(**FOUND, **CHECKED, detectable_epsilon=math.inf),
    "bound": dpw.Bound(**FOUND, delta=0.1, confidence=0.99),
    "curve": dpw.Curve(**COMMON, delta=0.0, method="exact", lines=(LINE, replace(LINE, epsilon=1.5))),
    "curve of another family": dpw.Curve(**COMMON, delta=0.0, claim=GaussianDP(1.0), method="exact", lines=(LINE,)),
    "profile": PROFILE,
    "crossed": replace(PROFILE, claim=WITNESS.claim, witness=WITNESS),
}
READERS = {
    "bound": READERS_BY_KEY["confidence"], "curve": READERS_BY_KEY["lines"], "profile": READERS_BY_KEY["band"],
    "crossed": READERS_BY_KEY["band"], "curve of another family": READERS_BY_KEY["lines"],
    "witness": dpw.Witness.from_json,
}  # fmt: skip


@pytest.mark.parametrize("kind", RESULTS)
@pytest.mark.parametrize("value", [None, [], {}, "x", 7])
def test_what_is_no_result_is_refused_with_one_line(kind, value):
    with pytest.raises(InvalidWitness, match=r"^the (verdict|bound|curve|profile) "):
        READERS.get(kind, verdict_from_json)(value)


#: Keys that are derived from others, and not read at all.
DERIVED = {
    "p_value", "versions", "parameter", "lower_bound", "detectable", "detectable_delta",
}  # fmt: skip
BAND = {"verdict", "band"}
DERIVED_OF = {
    "violated": {"detectable_epsilon"}, "curve": {"claim"}, "curve of another family": {"claim"}, "profile": BAND,
    "crossed": BAND,
}  # fmt: skip


@pytest.mark.parametrize("kind", RESULTS)
def test_every_key_that_is_read_is_checked(kind):
    """Without it, or with a value of another kind, the message names it."""
    written = RESULTS[kind].to_json()
    for name in set(written) - DERIVED - DERIVED_OF.get(kind, set()):
        without = {k: v for k, v in written.items() if k != name}
        if kind.startswith("curve") and name == "ended":  # curves were always whole once
            assert READERS[kind](without).ended == "runs"
            without = {**written, name: 7}
        for damaged in (without, {**written, name: object()}):
            with pytest.raises(InvalidWitness, match=name) as caught:
                READERS.get(kind, verdict_from_json)(damaged)
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", [{"slope": 1e308}, {"slope": -1.0}, {"difference": 1e308}, {"q_high": 5.0}])
def test_events_of_a_profile_are_checked(damage):
    profile = PROFILE.to_json()
    with pytest.raises(InvalidWitness, match="the profile is damaged"):
        READERS["profile"]({**profile, "events": [{**profile["events"][0], **damage}]})


def of_counts(kind="passed", claim=WITNESS.claim, **counts):
    """A result of these counts."""
    return replace(RESULTS[kind], claim=claim, witness=replace(WITNESS, counts=Counts(**counts), claim=claim))


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        (ApproxDP(1.0, 1e-5), "δ below {0:.3g} at ε = 1"),
        (PrivacyProfile([(0.5, 0.1), (1.0, 1e-9)]), "δ below {0:.3g}; 1 of the 2"),
        (PrivacyProfile([(0.5, 0.1), (1.0, 1e-9), (1.5, 1e-10)]), "δ below {0:.3g}; 2 of the 3"),
        (RenyiDP(8.0, 4.0), "from order {1:.3g} on"),
        *((claim, "rarer than {0:.3g} on D") for claim in (RenyiDP(1.25, 2.0), GaussianDP(1.0), PureDP(1.0))),
    ],
)
def test_a_pass_says_which_tails_its_runs_could_not_have_shown(claim, says):
    passed = of_counts(claim=claim, n10=2, n11=1, n00=99_997)
    delta, order = passed.detectable_delta, claim.largest_order(passed.detectable_delta)
    assert delta == detectable_probability(100_000, claim, alpha=passed.alpha)
    assert says.format(delta, order) in " ".join(str(passed).split()).partition("; in as many runs, ")[2]
    assert passed.to_json()["detectable_delta"] == delta
    assert replace(passed, epoch_runs=100_000).detectable_delta < delta
    few = replace(RESULTS["passed"], claim=ApproxDP(1.0, 0.5))
    assert few.detectable_delta == math.inf
    assert few.to_json()["detectable_delta"] is None
    assert "in as many runs" not in str(few)


@pytest.mark.parametrize(
    ("kind", "hits", "above"), [("passed", 271_829, 1), ("passed", 271_828, 0), ("violated", 271_829, 0)]
)
def test_a_pass_says_that_the_rate_on_one_input_lies_above_what_the_claim_allows(kind, hits, above):
    found = of_counts(kind, claim=PureDP(1.0), n10=hits, n01=100_000, n00=900_000 - hits)
    assert str(found).count("lies above what the claim allows, but not significantly") == above


def test_notes_on_a_pass_name_a_rare_tail_and_an_event_of_any_rate():
    for hits, runs, rare in ((10, 10, False), (1, 10, False), (0, 10, True), (500, 10_000, False), (2, 10_000, True)):
        notes = notes_on_pass(of_counts(n10=hits, n00=runs - hits))
        assert any("rare tail" in note for note in notes) is rare
    for kind in ("passed", "powerless"):
        assert any("any rate" in note for note in notes_on_pass(of_counts(kind, n11=900, n00=100)))


@pytest.mark.parametrize(("hits", "rare"), [(300_000, 0.001), (3_000, 0.0003)])
def test_a_pass_names_the_rate_of_its_event_and_what_it_would_have_caught_by_a_rarer_one(hits, rare):
    """Nobody may take what a bulk event would have caught for what any event would."""
    passed = of_counts(claim=PureDP(1.0), n10=hits, n01=100_000, n00=900_000 - hits)
    caught = detectable_at_rate(rare, 1_000_000, passed.claim, alpha=passed.alpha)
    said = " ".join(str(passed).split())
    assert f"this event (rate {hits / 1e6:.3g} on D) would have caught {passed.caught} with" in said
    assert f"a rarer event (rate {rare:g}) ε ≥ {text.at_most(caught)}; in as many runs" in said
    assert all(len(line) <= 80 for line in str(passed).splitlines()[1:])


@pytest.mark.parametrize("name", SAVED_KINDS)
def test_the_published_schema_is_the_derived_one(name):
    published = json.loads(Path(SCHEMAS, f"{name}.json").read_text(encoding="utf-8"))
    assert published == schemas()[name], "run python -m dpwitness.results.schema docs/schemas"
    Draft202012Validator.check_schema(published)


SCORE = ScoreThreshold([0, 1], [[0.0, math.inf], [1.0]], [[0, 1, 2, 3], [1.0, 2.0, 3.0]], 1.5)
VARIED = [
    *(replace(WITNESS, claim=claim) for claim in (
        ApproxDP(1.0, 1e-5), GaussianDP(1.0), RenyiDP(2.0, 0.5), ZCDP(0.5), PrivacyProfile([(0.5, 0.1), (1.0, 0.01)]),
        TradeOff([(0, 1), (0.3, 0.5), (1, 0)]),
    )),
    *(replace(WITNESS, event=event) for event in (
        Interval(coordinate=0, low=math.inf, high=math.inf), Interval(coordinate=3, high=-1.5),
        Outside(interval=EVENT), Box((EVENT, Interval(coordinate=1, high=0))), SCORE, Cells(SCORE, [0.5, 1.5]),
        OutcomeSet([[True, 2.0], [math.nan, 3]]), OutcomeSet([[-math.inf, math.inf]]),
        FeatureEvent(feature=Feature(name="residue", columns=(1,), number=10.0), within=OutcomeSet([[0.0]])),
        FeatureEvent(feature=Feature(name="sum", columns=(2,)), within=EVENT),
    )),
    replace(WITNESS, data=WITNESS.pair.data, relation=None, by_position=True, texts={1.5: "a"}),
    replace(WITNESS, layout=Columns([Entry((), 0, "outcome"), Entry((("key", (1.0, 2.0)),), 0, "key 'a'")])),
    replace(
        WITNESS, counts=Counts(n10=3, n11=1, n01=1, n00=5, cells=(1, 2, 3, 4)),
        estimate=Estimate(p=0.5, q=0.25, both=0.1, cells=CellsEstimate(
            joint=(0.25,) * 4, order=2.0, log_ratios=(0.1, -0.2), against=1.0,
        )),
    ),
]  # fmt: skip


RESULTS_AND_WITNESSES = [
    *RESULTS.items(),
    ("with others", replace(RESULTS["violated"], others=(RESULTS["passed"],), epoch_runs=5)),
    *(("witness", witness) for witness in (WITNESS, *VARIED)),
]


@pytest.mark.parametrize(("kind", "value"), RESULTS_AND_WITNESSES)
def test_results_and_witnesses_fit_their_schema_and_read_back_as_they_were(kind, value):
    schema = {"crossed": "profile", "curve of another family": "curve"}.get(kind, kind)
    validator = Draft202012Validator(schemas()[schema if schema in SAVED_KINDS else "verdict"])
    written = json.loads(json.dumps(value.to_json(), allow_nan=False))
    validator.validate(written)
    assert not validator.is_valid({key: item for key, item in written.items() if key != "mechanism"})
    assert not validator.is_valid({**written, "seed": "x"})
    again = READERS.get(kind, verdict_from_json)(written)
    assert type(again) is type(value)
    assert again.to_json() == value.to_json()
    assert str(again) == str(value)
    assert repr(value).startswith(f"<{type(value).__name__}")
    assert "\n" not in repr(value)
    assert len(repr(value)) < 160


def test_texts_of_results():
    found = [
        "  input D      [1.0]",
        "  neighbour D′ [0.0]",
        "  event        first answer at least 0.5",
        "  on D         4 of 10 runs (0.4)",
        "  on D′        2 of 10 runs (0.2)",
        "  allowed on D at the rate seen on D′: 0.4",
    ]
    said = str(RESULTS["violated"]).splitlines()
    assert said[:7] == ["VIOLATED: f(epsilon=1, cutoff=[1, 'inf']) is not 0.693147-DP", *found]
    assert said[7] == "  so ε ≥ 0.75 with confidence 99.9999 % (log e-value 14.0, needed 13.8)"
    said = str(RESULTS["crossed"]).splitlines()
    assert said[2].split()[2:] == ["0.375", "0.348", "0.319", "0.287", "0.252", "0.212", "0.169", "0.118", "0.0122"]
    assert said[5:11] == found
    assert str(replace(RESULTS["bound"], delta=0.9999999)).startswith("ε ≥ 0.75 at δ = 0.9999999 with confidence")


@given(st.floats(0, 1e300), st.integers(1, 6))
@example(1.0225021, 4)
@example(0.99998, 4)
def test_bounds_are_rounded_so_that_they_stay_true(value, digits):
    low, high = text.at_least(value, digits), text.at_most(value, digits)
    assert float(low) <= value <= float(high)
    nearest = f"{value:.{digits}g}"
    assert nearest in (low, high)
    assert (low == high) == (float(nearest) == value)


@pytest.mark.campaign
def test_a_bound_is_rounded_down_wherever_it_is_said():
    bound = replace(RESULTS["bound"], epsilon_lower_bound=1.0225021)
    passed = replace(RESULTS["passed"], epsilon_lower_bound=1.0225021, detectable_epsilon=1.0225021)
    for said in (str(bound), bound.to_html(), str(passed), passed.to_html()):
        assert "1.022" in said
    assert "1.023" not in str(bound) + bound.to_html()
    assert "would have caught ε ≥ 1.023" in str(passed)
    event = replace(PROFILE.events[0], line=BandLine(slope=1.0, difference=0.99971, q_low=0.0, q_high=0.0002))
    profile = replace(PROFILE, events=(event,))
    assert "δ(ε) ≥  0.999" in str(profile)
    assert "δ(ε) ≥  0.999" in profile.to_html()


def test_a_p_value_is_the_inverse_of_the_e_value_and_at_most_1():
    found = [replace(RESULTS["passed"], log_e_value=log_e).p_value for log_e in (-3.0, 0.0, 2.0)]
    assert found == pytest.approx([1, 1, math.exp(-2)])


def test_a_p_value_that_no_double_is_small_enough_for_is_not_0():
    curve = replace(RESULTS["curve"], lines=(replace(LINE, tests=(replace(LINE.tests[0], p_value=0.0),)),))
    assert str(curve).splitlines()[2].split() == ["0.5", "<1e-300"]
    assert "&lt;1e-300" in curve.to_html()


def test_a_file_forges_no_line_of_a_report():
    forged = "f\nVIOLATED: other is not 1-DP"
    witness = replace(WITNESS, mechanism=forged, description=f"{forged}\x1b[31m")
    found = replace(RESULTS["passed"], mechanism=forged, notes=(forged,), witness=witness, parameters={"a": forged})
    profile = replace(PROFILE, mechanism=forged)
    for shown in (str(found), repr(found), replay_text(witness, found), str(witness), str(profile), repr(profile)):
        assert not any(line.startswith("VIOLATED") for line in shown.splitlines())
        assert r"f\nVIOLATED" in shown
        assert shown.replace("\n", "").isprintable()


@pytest.mark.parametrize("alpha", [0, 0.0, 1, 1.0, -1e-6, 1.5])
@pytest.mark.parametrize("kind", ["violated", "witness"])
def test_a_level_in_a_file_lies_between_0_and_1(kind, alpha):
    value = {**RESULTS, "witness": WITNESS}[kind].to_json()
    with pytest.raises(InvalidWitness, match="between 0 and 1"):
        READERS.get(kind, verdict_from_json)({**value, "alpha": alpha})


@pytest.mark.parametrize("alpha", [0.5, 0.1, 1 - 0.95, 0.0123456, 2e-4, 1e-4, 1e-6 / 3, 1e-6, 1 - 0.999999, 1e-12])
def test_a_confidence_in_percent_is_never_more_than_it_is(alpha):
    shown = Fraction(text.confidence(alpha).removesuffix(" %")) / 100
    assert Fraction(99, 100) * Fraction(alpha) <= 1 - shown < (1.01 if alpha > 1e-4 else 10) * Fraction(alpha)
    assert 1 - shown >= Fraction(alpha) * (1 - Fraction(1, 10**6))  # but for the last digits of the float
    with decimal.localcontext(prec=3, traps=[decimal.Inexact]):  # in a context of the user's own
        assert Fraction(text.confidence(alpha).removesuffix(" %")) / 100 == shown


@pytest.mark.parametrize(
    ("claim", "bound", "says"),
    [(PureDP(1.0), 1.0, "ε > 1"), (PureDP(0.9999999), 0.99999991, "ε > 0.999999"), (ZCDP(0.5), 0.50000001, "ρ > 0.5"),
     (GaussianDP(0.25), 0.2, "μ > 0.25")],
)  # fmt: skip
def test_a_bound_that_reads_no_larger_than_the_claim_is_said_to_be_above_it(claim, bound, says):
    """A refuted claim of ε = 1 shows ε > 1: "so ε ≥ 1" would read as no violation."""
    found = replace(RESULTS["violated"], claim=claim, epsilon_lower_bound=bound)
    found = replace(found, witness=replace(WITNESS, claim=claim))
    assert f"  so {says} with confidence" in str(found)
    assert repr(found).endswith(f", {says}>")
    assert f"so {says.replace('>', '&gt;')} with confidence" in found.to_html()
    assert "≥" not in found.to_html()


@pytest.mark.parametrize(("ended", "less", "slow"), [("time", 1, True), ("time", 0, False), ("runs", 1, False)])
def test_a_pass_was_too_slow_where_the_time_ended_it_before_enough_runs(ended, less, slow):
    verdict = RESULTS["passed"]
    runs = 10 * runs_needed(verdict.claim, verdict.alpha) - less
    names = [found.name for found in findings_on_pass(replace(verdict, ended=ended, runs_made=runs))]
    assert ("too_slow" in names) is slow


@pytest.mark.parametrize("claim", [PureDP(0.0), PureDP(1.0), PureDP(4.0), ApproxDP(0.1, 1e-3), GaussianDP(1.0)])
def test_the_runs_and_the_time_that_are_advised_are_enough_for_a_pass(claim):
    n = useful_runs(claim, 1e-6)
    passed = replace(RESULTS["passed"], claim=claim, alpha=1e-6, ended="time", runs_made=n, seconds=60.0, epoch_runs=0)
    assert findings_on_pass(replace(passed, epoch_runs=n // 2)) == []
    weak = replace(passed, epoch_runs=n // 4, runs_made=n // 2)
    advised = [float(re.search(r"give max_time=(\S+) or", found.text)[1]) for found in findings_on_pass(weak)]
    assert advised
    assert min(advised) >= 2 * 60.0


@pytest.mark.parametrize(("parameter", "low"), [(0.1, 1.1), (3.0, 6.0)])
def test_a_pass_has_low_power_where_it_excludes_no_more_than_twice_the_claim_or_one_nat_more(parameter, low):
    """The runs of epochs and those that confirm are looked at alike, whichever are more."""
    claim, alpha = PureDP(parameter), 1e-6
    runs = next(n for n in range(50, 100_000, 10) if detectable_at_best(n, claim, alpha=alpha) <= low)
    for confirmed, epochs in ((runs, 0), (10, runs)):
        for less, few in ((0, False), (10, True)):
            counts = Counts(n10=10, n00=max(confirmed - 10 - less, 0))
            witness = replace(WITNESS, claim=claim, counts=counts)
            bet = max(epochs - less, 0)
            verdict = replace(RESULTS["passed"], claim=claim, witness=witness, epoch_runs=bet, runs_made=10**9)
            assert ("low_power" in [found.name for found in findings_on_pass(verdict)]) is few
