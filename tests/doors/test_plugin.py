"""The pytest plugin, run by pytester on small projects. Verdicts of these mechanisms are certain: at claim 1 the one
without enough noise is refuted within a few thousand runs, and a false alarm has probability 1e-6."""

import json
import math
import signal
from types import SimpleNamespace

import numpy as np
import pytest

import _dpwitness_pytest
import dpwitness as dpw
import dpwitness.plugin.asserter
import dpwitness.plugin.ledger  # pytester drops what an inner run imports; these should be loaded once
from _dpwitness_pytest import SESSION_KEY
from dpwitness.errors import MechanismTimeout
from dpwitness.events import Feature, FeatureEvent, Interval
from dpwitness.evidence import log_e_value
from dpwitness.results.witness import Witness
from running import soon

MECHANISMS = """
    import numpy as np
    import pytest
    import dpwitness as dpw

    one = dpw.queries(1)

    def good(rng, q, epsilon, size):
        return q[0] + rng.laplace(0, 1 / epsilon, size=size)

    def bad(rng, q, epsilon, size):
        return q[0] + rng.laplace(0, 0.5 / epsilon, size=size)
"""
PASSES = """
    def test_good(assert_private):
        assert_private(good, epsilon=1.0, neighbours=one)
"""
FAILS = """
    def test_bad(assert_private):
        assert_private(bad, epsilon=1.0, neighbours=one)
"""


@pytest.fixture(autouse=True)
def _calm(pytester, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    # Of the other plugins hypothesis costs each inner run seconds, for its summary.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:benchmark")


@pytest.fixture
def project(pytester, loaded):
    """Makes a test file of texts, and returns what runs it with further options."""

    def make(*parts, **files):
        pytester.makepyfile(test_it="\n".join((MECHANISMS, *parts)), **files)

        def run(*options, conftest="", **settings):
            if conftest:
                pytester.makeconftest(conftest)
            return pytester.runpytest_inprocess(
                "--dp-seed=1", "--dp-runs=100000", "-p", "no:randomly", *options, **settings
            )

        return run

    return make


@pytest.fixture
def edit(pytester):
    """Replaces a text in the test file of the inner session."""

    def replace_text(old, new):
        test = pytester.path / "test_it.py"
        assert old in test.read_text()
        test.write_text(test.read_text().replace(old, new))

    return replace_text


@pytest.fixture
def report(tmp_path):
    """The file of a session's report, which is an option, and its assertions."""
    path = tmp_path / "r.json"
    return SimpleNamespace(
        path=path, option=f"--dp-report={path}", entries=lambda: json.loads(path.read_text())["assertions"]
    )


def expect(result, *lines, **outcomes):
    """The outcomes of an inner session, and lines of its output in this order."""
    result.assert_outcomes(**outcomes)
    result.stdout.fnmatch_lines(lines)


def expect_refused(result, line):
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {line}"])
    result.stdout.no_fnmatch_line("*passed*")


def saved(pytester, folder=".dpwitness"):
    return sorted((pytester.path / folder).glob("*.json"))


ASSERTIONS = """
    from dpwitness.plugin import PrivacyViolation

    pytestmark = pytest.mark.dp(neighbours=one, epsilon=4.0)

    @pytest.mark.dp(epsilon=1.0)
    class TestClass:
        def test_class(self, assert_private):
            verdict = assert_private(good)
            assert isinstance(verdict, dpw.NotRefuted) and verdict.claim.epsilon == 1

        @pytest.mark.dp(epsilon=1.5)
        def test_function(self, assert_private):
            assert assert_private(good).claim.epsilon == 1.5
            assert assert_private(good, epsilon=2.0).claim.epsilon == 2
            assert_private(good, epsilon=3.0, runs=20_000)

    def test_module(assert_private):
        assert assert_private(good, claim=4.5).claim.epsilon == 4.5

    def test_violation(assert_private):
        with pytest.raises(AssertionError) as caught:
            assert_private(bad, epsilon=1.0)
        assert isinstance(caught.value, PrivacyViolation) and isinstance(caught.value.verdict, dpw.Violation)
"""


@pytest.mark.usefixtures("asked_here")  # the subject is what an assertion is given and gives back
def test_an_assertion_takes_settings_of_markers_and_gives_its_verdict_back(project, report):
    """Of α the k-th assertion of each test has 6/(π²k²) of the test's share: Σ 6/(π²k²) = 1 over all k."""
    result = project(ASSERTIONS)("-o", "dp_suppress=low_power too_slow", report.option)
    expect(
        result,
        "dpwitness: profile dev, --dp-seed=1, α = 1e-06 for the session",
        "6 assertions in 4 tests: 1 violated, 5 not refuted; α spent *e-07 of 1e-06",
        "nearest to an alarm: test_it.py::*",
        "*test_class: ε = 1, its event would have caught ε ≥ * with 95 % power",
        passed=4,
    )
    entries = report.entries()
    assert [entry["assertion"] for entry in entries] == [1, 1, 2, 3, 1, 1]
    for entry in entries:
        assert entry["alpha"] == pytest.approx(1e-6 / 4 * 6 / (math.pi * entry["assertion"]) ** 2, rel=1e-12)
    assert len({entry["seed"] for entry in entries}) == 6  # of 64 bits each


@pytest.mark.usefixtures("asked_here")  # the subject is what pytest prints and keeps
def test_a_violation_shows_the_witness_and_none_of_our_frames(project):
    """And one bound: those before and after shrinking would hold together only at twice the stated level."""
    result = project(FAILS)()
    expect(
        result,
        ">       assert_private(bad, epsilon=1.0, neighbours=one)",
        "E       dpwitness.plugin.PrivacyViolation: VIOLATED: bad(epsilon=1) is not 1-DP",
        "E         input D *",
        "E         neighbour D′ *",
        "E         event *output*",
        "E         so ε ≥ *",
        "E         reproduce: pytest test_it.py::test_bad --dp-seed=1 *",
        "test_it.py:*: PrivacyViolation",
        failed=1,
    )
    result.stdout.no_fnmatch_line("*asserter.py*")
    assert sum(" ε ≥ " in line for line in result.outlines if line.startswith("E ")) == 1


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is the counts
def test_the_line_that_reproduces_gives_the_same_counts(project, pytester):
    first = project(PASSES, FAILS)()
    line = next(text for text in first.outlines if "reproduce:" in text)
    again = pytester.runpytest_inprocess(*line.partition("reproduce: pytest ")[2].split())
    again.assert_outcomes(failed=1)

    def counted(result):
        return [text for text in result.outlines if text.startswith("E ") and ("on D" in text or "event" in text)]

    assert counted(again) == counted(first) != []


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is α
def test_alpha_is_divided_over_all_dp_tests_whichever_are_run(project, report):
    """Among them those that are marked and ask for the fixture late."""
    late = """
    @pytest.mark.dp
    def test_late(request):
        request.getfixturevalue("assert_private")(good, epsilon=1.0, neighbours=one)

    def test_other(): pass
    """
    run = project(PASSES, FAILS, late)
    first = 6 / math.pi**2
    for options, outcomes, alphas in (
        (("-k", "good"), {"passed": 1, "deselected": 3}, [1e-6 / 3]),
        (("-m", "not dp"), {"passed": 1, "deselected": 3}, []),
        (("-m", "dp"), {"passed": 2, "failed": 1, "deselected": 1}, [1e-6 / 3] * 3),
        (("-k", "good", "-odp_family_size=7", "--dp-alpha=1e-3"), {"passed": 1, "deselected": 3}, [1e-3 / 7]),
    ):
        run(*options, "-odp_database=none", report.option).assert_outcomes(**outcomes)
        assert [entry["alpha"] for entry in report.entries()] == pytest.approx([first * share for share in alphas])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--dp-alpha=2", "dp_alpha='2' must be *"),
        ("--dp-runs=1.5", "dp_runs='1.5' must be *"),
        ("--dp-report=", "dp_report='' must be a file"),
        ("--dp-profile=fast", "dp_profile='fast' must be one of dev, ci, nightly"),
        ("-odp_family_size=1", "dp_family_size=1 is too small: 2 dp tests were collected*"),
        ("--dp-report=no/such/report.json", "--dp-report: cannot write *"),
    ],
)
def test_bad_options_are_refused_in_a_line_before_the_first_test(project, option, message):
    expect_refused(project(PASSES, FAILS)(option), message)


@pytest.mark.campaign
def test_two_reports_are_two_files_and_one_that_fails_in_the_end_keeps_the_verdicts(project, tmp_path):
    run = project(PASSES)
    refused = run(f"--dp-report={tmp_path / 'x'}", f"--dp-sarif={tmp_path / '.' / 'x'}")
    expect_refused(refused, "--dp-sarif: */x is the file of --dp-report: *")
    result = run("--dp-report=/dev/full")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    expect(result, "ERROR: --dp-report: cannot write /dev/full: No space left on device*", passed=1)
    result.stdout.fnmatch_lines(["*would have caught*"])


@pytest.mark.campaign
def test_a_session_without_a_test_leaves_the_report_of_an_earlier_one(project, tmp_path):
    run, file = project(PASSES), tmp_path / "r.json"
    run(f"--dp-report={file}").assert_outcomes(passed=1)
    before = file.read_text()
    for nothing in (("--collect-only",), ("-k", "no_such"), ("no_such.py",)):
        run(f"--dp-report={file}", *nothing)
        assert file.read_text() == before
    run(f"--dp-report={file}", "--dp-seed=2").assert_outcomes(passed=1)
    assert file.read_text() != before


@pytest.mark.campaign
def test_ini_values_and_the_profile_of_ci(project, pytester, monkeypatch):
    run = project(PASSES)
    pytester.makeini("[pytest]\ndp_alpha = 1e-4\n")
    monkeypatch.setenv("CI", "true")
    expect(run(), "dpwitness: profile ci, --dp-seed=1, α = 0.0001 for the session", passed=1)
    expect(run("--dp-profile=nightly"), "dpwitness: profile nightly, *", passed=1)


@pytest.mark.campaign
def test_a_pass_ends_where_its_detectable_ratio_says(project, report):
    """Of plain Python: no more shards are made than it takes to detect that multiple of the claim."""
    plain = """
    def plain(rng, q, epsilon):
        return (rng.random() < 0.62) == (q > 0)  # ε = 0.49

    def test_plain(assert_private):
        assert_private(plain, epsilon=1.0, neighbours=[(0, 1)], outcome=float)
    """
    project(plain)("--dp-runs=1e6", "--dp-detectable-ratio=1.6", report.option).assert_outcomes(passed=1)
    (entry,) = report.entries()
    assert entry["ended"] == "detectable"
    assert entry["detectable"] <= 1.6
    assert sum(entry["runs"].values()) <= 2 * 65_536  # a shard or two, at most, of a million runs


@pytest.mark.parametrize("suppressed", [False, True])
def test_no_run_in_time_is_an_error_whatever_is_suppressed(project, report, monkeypatch, suppressed):
    """A check that ended without counts has no verdict: `suppress` changes the error's kind and never makes a pass."""

    def late(*arguments, **settings):
        raise MechanismTimeout("good did not finish")

    monkeypatch.setattr(dpwitness.plugin.asserter, "check_problem", late)
    call = f"good, epsilon=1.0, neighbours=one{', suppress=' + repr('too_slow') if suppressed else ''}"
    result = project(f"    def test_late(assert_private): assert_private({call})\n")(report.option)
    kind = "MechanismTimeout" if suppressed else "HealthCheckFailed: too_slow"
    expect(result, f"E *{kind}: good did not finish*", failed=1)
    (entry,) = report.entries()
    assert entry["verdict"] == ("error" if suppressed else "unhealthy")
    assert "good did not finish" in entry["reason"]
    assert entry["alpha"] > 0  # it is spent: what was drawn may have been seen


def test_the_seed_that_a_session_has_drawn_is_that_of_its_workers(pytester):
    """Of all seeds one in 2^32 would be drawn twice."""
    controller = pytester.parseconfig()
    drawn = SimpleNamespace(config=controller, workerinput={})
    _dpwitness_pytest.pytest_configure(controller)
    _dpwitness_pytest.pytest_configure_node(drawn)
    worker = pytester.parseconfig()
    worker.workerinput = {**drawn.workerinput, "workercount": 2, "workerid": "gw0"}
    _dpwitness_pytest.pytest_configure(worker)
    assert worker.stash[SESSION_KEY].seed == controller.stash[SESSION_KEY].seed


def test_unknown_settings_are_errors(project):
    tests = """
    @pytest.mark.dp(epsilom=1.0)
    def test_typo(assert_private):
        assert_private(good, epsilon=1.0, neighbours=one)

    @pytest.mark.dp(1.0)
    def test_value(assert_private):
        assert_private(good, epsilon=1.0, neighbours=one)
    """
    expect(project(tests)(), "*has no setting 'epsilom'*", "*the marker dp has the value 1.0 without *", failed=2)


def test_the_fixture_asked_for_while_a_test_runs_is_refused(project):
    """α was divided before: a marker that comes so late does not count."""
    late = """
    def test_late(request):
        request.getfixturevalue("assert_private")(good, epsilon=1.0, neighbours=one)

    def test_marked_late(request):
        request.node.add_marker(pytest.mark.dp)
        request.getfixturevalue("assert_private")(good, epsilon=1.0, neighbours=one)
    """
    expect(project(late)(), *["assert_private was asked for while the test ran*"] * 2, failed=2)


@pytest.mark.parametrize("how", ["option", "ini", "marker"])
def test_a_retry_fails(project, pytester, how):
    pytest.importorskip("pytest_rerunfailures")
    if how == "ini":
        pytester.makeini("[pytest]\nreruns = 1\n")
    run = project("    @pytest.mark.flaky(reruns=1)" if how == "marker" else "", FAILS)
    result = run(*["--reruns=1"] * (how == "option"))
    expect(result, "a dp test must not be retried: *", "*1 violated; α spent*", errors=1)


@pytest.mark.campaign
def test_whoever_runs_a_test_twice_a_second_time_is_refused(project):
    twice = """
from _pytest.runner import runtestprotocol
def pytest_runtest_protocol(item, nextitem):
    for _ in range(2):
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            item.ihook.pytest_runtest_logreport(report=report)
    return True
"""
    expect(project(PASSES)(conftest=twice), "1 assertion in 1 test: 1 not refuted; *", passed=1, errors=1)


@pytest.mark.campaign
def test_where_each_worker_runs_each_test_they_share_the_level(project):
    pytest.importorskip("xdist")
    result = project(PASSES)("-n", "2", "--dist=each")
    expect(result, "2 assertions in 1 test: 2 not refuted; α spent 6.08e-07 of 1e-06", passed=2)


@pytest.mark.campaign
def test_serial_and_two_workers_agree_verdict_for_verdict(project, report):
    pytest.importorskip("xdist")
    run, told = project("\n".join(PASSES.replace("test_good", f"test_good_{k}") for k in range(3)), FAILS), []
    for workers in ((), ("-n", "2")):
        result = run("-odp_database=none", report.option, *workers)
        said = "4 assertions in 4 tests: 1 violated, 3 not refuted; α spent 6.08e-07 of 1e-06"
        expect(result, said, passed=3, failed=1)
        told.append(sorted((one["test"], one["verdict"], one["alpha"], one["seed"]) for one in report.entries()))
    assert told[0] == told[1]


@pytest.mark.campaign
def test_a_project_without_dp_tests_hears_nothing_and_imports_nothing(pytester):
    pytester.makepyfile(
        """
        import sys

        def test_other():
            assert not [name for name in sys.modules if name.partition(".")[0] in ("dpwitness", "numba")]
        """
    )
    pytester.makepyprojecttoml(
        "[project]\nname = 'x'\nversion = '1'\ndependencies = ['dpwitness']\n[tool.other]\na = 1\n"
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*= dpwitness =*")


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("stop", "code"), [("raise KeyboardInterrupt", 2), ("signal.raise_signal(signal.SIGTERM)", 143)]
)
def test_an_end_from_outside_keeps_what_was_found_and_counted(project, pytester, report, stop, code):
    run = project(
        FAILS,
        f"""
    import signal
    calls = []

    def ended(rng, q, epsilon, size):
        calls.append(size)
        if sum(calls) > 1_000_000:  # of some 2,600,000: the search, however fast calls are, takes fewer
            {stop}
        return good(rng, q, epsilon, size)

    def test_ended(assert_private):
        given = dict(epsilon=1.0, neighbours=one, search_runs=20_000, runs=1_000_000, bits=False, detectable_ratio=1)
        assert_private(ended, **given)

    def test_never(assert_private):
        assert False
    """,
    )
    before = signal.getsignal(signal.SIGTERM)
    assert run(report.option, no_reraise_ctrlc=True).ret == code
    value = json.loads(report.path.read_text())
    violated, interrupted = value["assertions"]
    assert (violated["verdict"], interrupted["ended"]) == ("violated", "interrupted")
    assert 0 < interrupted["runs"]["confirm"] < 1_000_000
    assert value["interrupted"]
    assert saved(pytester)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is what pytest prints
def test_what_last_bits_show_is_reported_or_a_failure_or_left_out(project):
    """A correct mechanism stays green, and a reviewer reads it; a witness of a strict session fails no other one."""
    run = project(PASSES)
    said = "    floating point: refuted by the last bits, ε ≥ *"
    expect(run(), said, passed=1)
    expect(run("--dp-bits=strict"), "*the event is of last bits: *", "*reproduce: *--dp-bits=strict*", failed=1)
    run().assert_outcomes(passed=1)
    result = run("--dp-bits=off")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line(said)


SEEN_AGAIN = "E *saved in .dpwitness/*: seen again on fresh runs"


@pytest.mark.usefixtures("asked_here")  # the subject is what pytest prints and keeps
def test_a_witness_is_saved_replayed_first_and_kept_when_fixed(project, pytester, edit, report):
    run = project(
        '    @pytest.mark.parametrize("odd_name", ["../[1/2]"])', FAILS.replace("private)", "private, odd_name)", 1)
    )
    run(report.option).assert_outcomes(failed=1)
    (first,) = report.entries()
    (path,) = saved(pytester)
    value = json.loads(path.read_text())
    witness = Witness.from_json(value["witness"])
    assert Witness.load(path).to_json() == witness.to_json()
    assert log_e_value(witness.counts, witness.claim, witness.estimate) >= np.log(1 / witness.alpha)

    # Runs of its own, since the same ones are one look at most; half of α, since a check follows where it passes.
    expect(run(report.option), "E *runs: 0 search, *", SEEN_AGAIN, failed=1)
    (again,) = report.entries()
    assert again["seed"] != first["seed"]
    assert again["alpha"] == first["alpha"] == pytest.approx(2 * again["witness"]["alpha"])

    edit("0.5 / epsilon", "1 / epsilon")
    fixed = "    the witness in .dpwitness/* was not seen again at this claim; it is kept and replayed"
    expect(run("--dp-seed=3"), fixed, passed=1)
    assert json.loads(path.read_text()) == value

    edit("1 / epsilon", "0.5 / epsilon")
    expect(run("--dp-seed=4"), SEEN_AGAIN, failed=1)


OF_BITS = FeatureEvent(feature=Feature(name="trailing zeros", columns=(0,)), within=Interval(coordinate=0, low=11.0))
#: What has changed since a witness was saved: entries of the file, the test, whether it passes, and what is said.
CHANGED = {
    "bits": ({"event": OF_BITS.to_json()}, ("0.5 /", "1 /"), True, 'was saved with bits="strict" and was not replayed'),
    "no neighbours": (
        {"relation": None, "input": [0.0], "neighbour": [50.0]}, ("0.5 /", "1 /"), True,
        "was saved for another relation and was not replayed",
    ),
    # With half the sensitivity the mechanism is private, so the old pair may accuse nobody.
    "half the sensitivity": (
        {}, ("queries(1)", "queries(1, sensitivity=0.5)"), True, "was saved for another relation and was not replayed",
    ),
    "twice the sensitivity": (
        {}, ("queries(1)", "queries(1, sensitivity=2)"), False, "was saved for another relation and was not replayed*",
    ),
    "data": (
        {}, ("bad, epsilon=1.0, neighbours=one", "good, epsilon=1.0, neighbours=one, data=[3]"), True,
        "was saved for another relation and was not replayed",
    ),
    # The mechanism is 2-DP: a witness against claim 1 refutes it as long as that is the claim.
    "claim": ({}, ("bad, epsilon=1.0,", "bad, epsilon=1.0, claim=2.0,"), True, "was not seen again at this claim; *"),
    "another event": (
        {}, ("q[0] + rng.laplace(0, 0.5 /", "q[0] - 99 + rng.laplace(0, 1 /"), True,
        "was not seen again at this claim; *",
    ),
}  # fmt: skip


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is what is kept of a violation
@pytest.mark.parametrize("what", CHANGED)
def test_a_witness_of_another_question_accuses_nobody_and_that_is_said(project, pytester, edit, what):
    changes, (old, new), passes, why = CHANGED[what]
    run = project(FAILS)
    run().assert_outcomes(failed=1)
    (path,) = saved(pytester)
    value = json.loads(path.read_text())
    value["witness"] |= changes
    path.write_text(json.dumps(value))
    edit(old, new)
    expect(
        run("--dp-seed=2"),
        f"* .dpwitness/*.json {why}" if passes else f"E *.json {why}",
        **{"passed" if passes else "failed": 1},
    )


COUNTED = """
    def counted(rng, counts, size):
        return counts[0] + rng.laplace(0, 0.5, size=size)

    def test_counted(assert_private):
        assert_private(counted, epsilon=1.0, neighbours=dpw.histogram(2), data=[10, 3])
"""


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is what is kept of a violation
def test_a_witness_keeps_the_data_and_is_replayed_with_the_same_data_only(project, pytester, edit):
    run = project(COUNTED)
    run().assert_outcomes(failed=1)
    (path,) = saved(pytester)
    value = json.loads(path.read_text())["witness"]
    assert value["data"] == [10, 3]
    assert [10, 3] in (value["input"], value["neighbour"])
    expect(run("--dp-seed=2"), SEEN_AGAIN, failed=1)
    edit("[10, 3]", "[9, 3]")
    edit("0, 0.5,", "0, 1.0,")
    expect(run("--dp-seed=3"), "    .dpwitness/* was saved for another relation and was not replayed", passed=1)


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is what is kept of a violation
def test_a_witness_whose_replay_fails_is_kept(project, pytester, edit, monkeypatch):
    run = project(FAILS)
    run().assert_outcomes(failed=1)
    edit("0.5 / epsilon", "1 / epsilon")

    def too_slow(*arguments, **settings):
        raise MechanismTimeout("bad took too long")

    monkeypatch.setattr(dpwitness.plugin.asserter, "replay", too_slow)
    said = "    the witness in .dpwitness/* could not be replayed: bad took too long"
    expect(run("--dp-seed=2"), said, passed=1)
    assert saved(pytester)


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is what is kept of a violation
@pytest.mark.parametrize("pair", ["(Ledger(), Ledger(1))", r"('a\ud800b', 'ab')"])
def test_inputs_that_no_file_can_hold_are_not_saved(project, pytester, pair):
    run = project(
        f"""
    class Ledger(list):
        def __init__(self, *entries):
            super().__init__(entries)

        def __deepcopy__(self, memo):
            return self

    def counted(rng, data):
        return len(data) + rng.laplace(0, 0.3)

    def test_counted(assert_private):
        assert_private(counted, epsilon=1.0, neighbours=[{pair}], runs=5_000, bits=False)
    """
    )
    for seed in (1, 2):  # the second one finds no damaged file
        said = "E *the witness could not be saved: no file can hold its inputs *"
        expect(run(f"--dp-seed={seed}"), said, failed=1)
    assert saved(pytester) == []


MEAN = """
    def mean(rng, bits, size):
        return bits.sum() / len(bits) + rng.laplace(0, 0.03, size=size)

    def test_mean(assert_private):
        assert_private(mean, epsilon=1.0, neighbours=dpw.bits(10))
"""


@pytest.mark.campaign
def test_a_witness_never_accuses_the_repaired_mechanism(project, pytester, edit):
    """1/(10ε) is enough noise for ten bits, not for one: shrunk to fewer bits, the witness would lie for ever."""
    run = project(MEAN)
    run().assert_outcomes(failed=1)
    (path,) = saved(pytester)
    assert len(json.loads(path.read_text())["witness"]["input"]) == 10
    edit("0.03", "0.1")
    for seed in (2, 3):
        run(f"--dp-seed={seed}").assert_outcomes(passed=1)


NOT_SMALLER = "E *the witness could not be made smaller: "
#: What fails once a violation is found: of which module or class, with which error, and what is said.
FAILS_LATER = [
    (dpwitness.plugin.asserter, "shrink", OSError("disk gone"), f"{NOT_SMALLER}OSError: disk gone; saved in *"),
    (dpwitness.plugin.asserter, "shrink", SystemExit(0), f"{NOT_SMALLER}SystemExit: 0; saved in *"),
    (
        dpwitness.plugin.asserter,
        "shrink",
        pytest.fail.Exception("Timeout"),
        f"{NOT_SMALLER}Failed: Timeout; saved in *",
    ),
    (dpwitness.plugin.asserter, "write_json", OSError("no space"), "E *the witness could not be saved: *no space*"),
    (dpw.Violation, "to_json", OSError("no"), "*violated, but it could not be written down: OSError: no"),
]


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is what is kept of a violation
@pytest.mark.parametrize(("place", "name", "error", "said"), FAILS_LATER)
def test_a_violation_outlives_what_fails_then(project, pytester, monkeypatch, place, name, error, said):
    """A time limit of the test raises what is no `Exception` (pytest-timeout), or ends the process."""
    before = []

    def fails(*arguments, **settings):
        before.extend(saved(pytester))
        raise error

    monkeypatch.setattr(place, name, fails)
    expect(project(FAILS)(), "E *VIOLATED: bad(epsilon=1) is not 1-DP", said, failed=1)
    assert before or name != "shrink"  # it was saved before it is shrunk


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is what is kept of a violation
def test_a_violation_is_recorded_where_its_shrinking_is_interrupted(project, report, monkeypatch):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(dpwitness.plugin.asserter, "shrink", interrupted)
    assert project(FAILS)(report.option, no_reraise_ctrlc=True).ret == pytest.ExitCode.INTERRUPTED
    (entry,) = report.entries()
    assert (entry["verdict"], entry["ended"]) == ("violated", "interrupted")


#: What a mechanism does, its errors as pytest shows them, and what the ledger says.
ENDS = {
    'pytest.skip("no GPU")': ("skipped", "*no GPU*", "Skipped: no GPU"),
    'pytest.fail("no GPU")': ("failed", "*no GPU*", "Failed: no GPU"),
    "raise SystemExit(3)": ("failed", "E *MechanismCrashed: ends called sys.exit(3): *", "ends called sys.*"),
    'return {}["missing"]': ("failed", "E *MechanismRaised: ends raised KeyError*", "ends raised KeyError*"),
}


@pytest.mark.parametrize("does", ENDS)
def test_what_a_mechanism_does_to_its_test_is_recorded(project, does):
    outcome, shown, recorded = ENDS[does]
    result = project(f"""
    def ends(rng, data):
        {does}

    def test_it(assert_private):
        assert_private(ends, epsilon=1.0, neighbours=one)
    """)()
    expect(result, "1 assertion in 1 test: 1 error; α spent *", f"  *test_it: {recorded}", **{outcome: 1})
    result.stdout.fnmatch_lines([shown])


@pytest.mark.parametrize(
    ("error", "shown"),
    [(ZeroDivisionError("no luck"), "ZeroDivisionError: no luck"), (SystemExit(3), "good called sys.exit(3): *")],
)
def test_an_unforeseen_error_is_recorded_and_raised(project, monkeypatch, error, shown):
    def fails(_):
        raise error

    monkeypatch.setattr(dpwitness.plugin.asserter.findings, "check_names", fails)
    expect(project(PASSES)(), f"E *{shown}", f"  *test_good: {shown}", failed=1)


def test_bad_input_is_one_line_without_our_frames(project):
    cases = {
        "": "InvalidClaim: no claim to test: *",
        "epsilon=1.0, suppress=5": "InvalidParameter: suppress=5 must be *",
        "epsilon=1.0, suppress='slow'": "InvalidParameter: suppress='slow' must be *",
        "epsilom=1.0": "InvalidParameter: assert_private has no setting 'epsilom'; *",
    }
    calls = (
        f"    def test_{k}(assert_private): assert_private(good, neighbours=one, {given})\n"
        for k, given in enumerate(cases)
    )
    result = project(*calls)()
    expect(result, *(f"E *{said}" for said in cases.values()), failed=4)
    result.stdout.no_fnmatch_line("*asserter.py*")


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is what is kept of a violation
def test_the_database_can_be_moved_and_disabled_and_a_damaged_file_is_named(project, pytester):
    run = project(FAILS)
    run("-o", "dp_database=none")
    assert saved(pytester) == []
    moved = ("-o", "dp_database=build/witnesses")
    run(*moved)
    (path,) = saved(pytester, "build/witnesses")
    path.write_text('{"format": "dpwitness-database/1"}')
    expect(run(*moved), f"E *InvalidWitness: *{path.name} is damaged (*", failed=1)


KEPT = """
    def weak(rng, q, epsilon, size):
        return np.where((q[0] > 0) ^ (rng.random(size) < 1 / (1 + np.exp(1.2 * epsilon))), 1.0, 0.0)

    @pytest.mark.dp(evidence="kept", runs=1_000, search_runs=2_000, bits=False)
    def test_weak(assert_private):
        assert_private(weak, epsilon=1.0, neighbours=dpw.pairs(([0.0], [1.0])), suppress="low_power")
"""


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is what is kept of passes
def test_the_evidence_of_passes_goes_on_until_it_refutes_the_versions_together(project, pytester, edit, report):
    run = project(KEPT)
    expect(run(report.option), passed=1)
    (path,) = saved(pytester)
    assert path.name.endswith(".kept.json")
    expect(run(report.option), "    kept evidence: log e-value * of 15.0 needed, from * (1,000 runs, *)", passed=1)
    edit("np.where(", "1.0 * np.where(")
    for _ in range(20):
        result = run(report.option)
        if result.ret:
            break
    said = "E *VIOLATED: one of these 2 versions of weak(epsilon=1) is not 1-DP"
    expect(result, said, "E *note: the evidence is of all sessions of *; *a replay may not refute", failed=1)
    for line in ("*reproduce:*", "*saved in*"):
        result.stdout.no_fnmatch_line(line)
    (entry,) = report.entries()
    assert len(entry["history"]) == 2
    assert saved(pytester) == [path]  # no witness, as its replay may pass
    expect(run(report.option), said, failed=1)
    path.write_text("{}")
    expect(run(), f"E *InvalidWitness: *{path.name}: the kept evidence lacks 'format'; restore the file, or*", failed=1)


@pytest.mark.parametrize(
    ("old", "new", "options", "said"),
    [
        ('"kept"', '"keep"', (), "evidence='keep' must be one of fresh, kept"),
        ("", "", ("-o", "dp_database=none"), 'evidence="kept" needs a folder, but dp_database is none'),
    ],
)
def test_evidence_that_cannot_be_kept_is_an_error(project, old, new, options, said):
    expect(project(KEPT.replace(old, new) if old else KEPT)(*options), f"E *InvalidParameter: {said}", failed=1)


UNHEALTHY = {
    "unlike_inputs": "good, epsilon=1.0, neighbours=dpw.pairs((np.zeros(1), np.ones(1, int)))",
    "input_ignored": "lambda rng, q, size: rng.random(size), epsilon=1.0, neighbours=one",
    "deterministic_output": "lambda q: 3.0, epsilon=1.0, neighbours=one",
    "low_power": "good, epsilon=1.0, neighbours=one, runs=60",
}


@pytest.mark.usefixtures("asked_here")  # the subject is the checks before the search
@pytest.mark.parametrize("name", soon(UNHEALTHY, 2))
def test_health_checks_fail_and_can_be_suppressed_by_name(project, name):
    call = f"    def test_it(assert_private):\n        assert_private({UNHEALTHY[name]})\n"
    expect(
        project(call)(), f"E *HealthCheckFailed: {name}: *; if this is intended, pass suppress=[[]'{name}'[]]", failed=1
    )
    for suppressed in (
        project(call.replace("epsilon=", f"suppress=['{name}'], epsilon="))(),
        project(call)("-o", f"dp_suppress={name}"),
    ):
        suppressed.stdout.no_fnmatch_line(f"*HealthCheckFailed: {name}*")
