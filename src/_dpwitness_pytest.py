"""The pytest plugin: `assert_private`, the marker `dp`, one false-alarm budget for the whole session.

Every pytest run of the environment imports this module, so it needs only pytest and the standard library; the first
assertion imports `dpwitness.plugin`, which does the work.
"""

import contextlib
import json
import os
import secrets
import signal
import threading
import time
import tomllib
from collections.abc import Callable, Generator
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest

from _dpwitness_session import BITS, PROFILES, SMALLEST_ALPHA, Session

if TYPE_CHECKING:
    from dpwitness.plugin.asserter import Asserter

#: FILE_OPTIONS has the options that name a file, which is written at the end of the session.
FILE_OPTIONS = ("report", "sarif")
#: RETRY_REASON is the reason why the second run of a dp test fails.
RETRY_REASON = "a dp test must not be retried: a retry hides violations, and a correct mechanism passes without"

#: SESSION_KEY is the key of the shared state in the configuration's stash.
SESSION_KEY = pytest.StashKey[Session]()
#: BEGUN_KEY is the key of a flag in the stash of each test that shares α: whether the test has begun.
BEGUN_KEY = pytest.StashKey[bool]()

#: OPTIONS has the help texts of the options by name.
OPTIONS = {
    "alpha": "probability of a false alarm in the whole session (default 1e-6)",
    "runs": "maximum number of paired confirm runs of one assertion (default: of the profile)",
    "max-time": "time limit in seconds for the check of an assertion (default: of the profile); replaying a saved "
    "witness, or shrinking a new witness, may take as long again",
    "detectable-ratio": "a pass ends once it would have caught this multiple of the claim; 1: it makes all runs "
    "(default: of the profile)",
    "seed": "seed of the session (default: a new seed, shown in the header)",
    "profile": "limits, and what a pass must detect: dev (1e6 runs, 10 s, 1.1 × the claim), ci (4e6 runs, 60 s, "
    "1.05 ×; chosen when CI is set) or nightly (1e8 runs, 600 s, 1.01 ×)",
    "bits": "a leak in the last bits of floating-point outcomes: report it (default), strict: a violation, or off",
    "report": "write all verdicts to this JSON file",
    "sarif": "write violations to this SARIF 2.1.0 file, for code scanning and editors",
}


def _time(text: str) -> float:
    """The seconds of a time such as "30s". Raises `ValueError`."""
    from dpwitness.checks import seconds  # only where a time is given

    return seconds("dp_max_time", text)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; each has an ini setting of the same name."""
    group = parser.getgroup("dpwitness", "tests of differential privacy")
    for name, text in OPTIONS.items():
        key = f"dp_{name.replace('-', '_')}"
        group.addoption(f"--dp-{name}", dest=key, default=None, metavar=name.rpartition("-")[2].upper(), help=text)
        parser.addini(key, f"{text}; as --dp-{name}", default="")
    parser.addini(
        "dp_family_size", "number of dp tests that share the session's alpha (default: the collected tests)", default=""
    )
    parser.addini("dp_database", "folder of saved witnesses (default: .dpwitness); none: save no witness", default=None)
    parser.addini("dp_suppress", "health checks to turn off", type="args", default=[])


def _project(config: pytest.Config) -> dict[str, Any]:
    """The settings `[tool.dpwitness]` of the project's pyproject.toml. Raises `pytest.UsageError`."""
    path = config.rootpath / "pyproject.toml"
    try:
        if "dpwitness" not in tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}):
            return {}  # and the session need not import dpwitness
    except OSError:  # no such file
        return {}
    except ValueError:  # no TOML: `project_of` says so
        pass
    from dpwitness.errors import BadInput
    from dpwitness.project import project_of

    try:
        return dict(project_of(path).settings)
    except BadInput as error:
        raise pytest.UsageError(str(error)) from error


def _whole_number(text: str) -> int:
    if float(text) != int(float(text)):
        raise ValueError(text)
    return int(text) if text.isdigit() else int(float(text))


def pytest_configure(config: pytest.Config) -> None:
    """Read the options; an xdist worker has the seed of its controller."""
    config.addinivalue_line("markers", "dp(epsilon=…, neighbours=…, …): settings of assert_private")
    worker = getattr(config, "workerinput", {})
    project = _project(config)

    def given(key: str, kind: Callable[[str], Any], valid: Callable[[Any], bool], what: str, default: Any) -> Any:
        """An option's value from the command line, else the ini file, else the project's settings, else the default.

        Raises `pytest.UsageError`.
        """
        text = config.getoption(key, None)
        text = config.getini(key) or None if text is None else text
        if text is None:
            return project.get(key.removeprefix("dp_"), default)
        with contextlib.suppress(ValueError, OverflowError, KeyError):
            if valid(value := kind(text)):
                return value
        raise pytest.UsageError(f"{key}={text!r} must be {what}")

    ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    names = ", ".join(PROFILES)
    profile = given("dp_profile", str, PROFILES.__contains__, f"one of {names}", "ci" if ci else "dev")
    runs, seconds, ratio = PROFILES[profile]
    database = config.getini("dp_database")
    database = project.get("database", ".dpwitness") if database is None else database
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    chosen = {"profile": profile}
    for key in ("alpha", "runs", "max_time", "detectable_ratio", "bits"):
        if value := config.getoption(f"dp_{key}", None) or config.getini(f"dp_{key}"):
            chosen[key.replace("_", "-")] = value
    seed = given("dp_seed", _whole_number, lambda v: v >= 0, "a whole number of at least 0", secrets.randbits(32))
    whole = "a whole number of at least 1"
    fitting = f"a number between 0 and 1, at least {SMALLEST_ALPHA}"
    config.stash[SESSION_KEY] = Session(
        profile=profile,
        seed=worker.get("dpwitness_seed", seed),
        alpha=given("dp_alpha", float, lambda v: SMALLEST_ALPHA <= v < 1, fitting, 1e-6),
        runs=given("dp_runs", _whole_number, lambda v: v >= 1, whole, runs),
        max_time=given(
            "dp_max_time", _time, lambda v: v < 1e9, "a positive number of seconds, or a time as 30s", seconds
        ),
        detectable_ratio=given("dp_detectable_ratio", float, lambda v: 1 <= v <= 2, "a number between 1 and 2", ratio),
        bits=given("dp_bits", BITS.__getitem__, lambda _: True, f"one of {', '.join(BITS)}", True),
        errors=project.get("errors"),
        database=None if database in ("", "none") else database,
        options=tuple(f"--dp-{key}={value}" for key, value in chosen.items()),
        suppress=tuple(config.getini("dp_suppress")) or project.get("suppress", ()),
        family_given=given("dp_family_size", _whole_number, lambda v: v >= 1, whole, None),
        workers=max(1, cores // worker["workercount"]) if worker else project.get("workers"),
        **{option: given(f"dp_{option}", str, bool, "a file", None) for option in FILE_OPTIONS},
    )
    others: dict[str, str] = {}
    for option in FILE_OPTIONS if not worker else ():
        if (path := getattr(config.stash[SESSION_KEY], option)) is not None:
            from dpwitness.errors import InvalidData
            from dpwitness.files import check_writable, overwrites

            named = f"--dp-{option.replace('_', '-')}"
            try:
                check_writable(path)
            except InvalidData as error:
                raise pytest.UsageError(f"{named}: {error}") from error
            for other, place in others.items():
                if overwrites(path, place):
                    raise pytest.UsageError(f"{named}: {path} is the file of {other}: give another name")
            others[named] = path
    config.pluginmanager.register(VerdictCollector(config), "dpwitness-verdicts")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give an xdist worker the seed of the session, and the number of times that each test runs."""
    node.workerinput["dpwitness_seed"] = node.config.stash[SESSION_KEY].seed
    if node.config.getoption("dist", "no") == "each":
        node.workerinput["dpwitness_times"] = node.workerinput["workercount"]


def pytest_report_header(config: pytest.Config) -> str:
    """The header: profile, seed and α, on which the verdicts depend."""
    session = config.stash[SESSION_KEY]
    return f"dpwitness: profile {session.profile}, --dp-seed={session.seed}, α = {session.alpha:g} for the session"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the dp tests and count them before anything is deselected: they share the session's α."""
    session = config.stash[SESSION_KEY]
    tests = 0
    for item in items:
        marks = list(item.iter_markers("dp"))
        if not marks and "assert_private" not in getattr(item, "fixturenames", ()):
            continue
        tests += 1
        item.stash[BEGUN_KEY] = False
        if not marks:
            item.add_marker("dp")
    session.family = session.family_given or tests
    if session.family < tests:
        session.refused = (
            f"dp_family_size={session.family} is too small: {tests} dp tests were collected, and α is divided over them"
        )
    session.family *= getattr(config, "workerinput", {}).get("dpwitness_times", 1)
    # A worker of xdist cannot end the session with a message: its dp tests fail with it.
    if session.refused and not hasattr(config, "workerinput"):
        raise pytest.UsageError(session.refused)


@pytest.fixture
def assert_private(request: pytest.FixtureRequest) -> "Asserter":
    """`assert_private(mechanism, epsilon=…, delta=…, neighbours=…, …)`: fail with a witness where the claim is refuted.

    Returns the verdict of a pass; it is no proof of privacy. Settings of the call override settings of the marker `dp`;
    see `dpwitness.check` for their meaning, and `suppress` for health checks to leave out.
    """
    session = request.config.stash[SESSION_KEY]
    if session.refused:
        pytest.fail(session.refused, pytrace=False)
    if BEGUN_KEY not in request.node.stash:
        pytest.fail(
            "assert_private was asked for while the test ran, so it was not counted when α was divided: "
            "name it among the test's arguments, or mark the test with @pytest.mark.dp",
            pytrace=False,
        )
    if request.node.stash[BEGUN_KEY]:
        pytest.fail(f"{RETRY_REASON}; this one was run a second time", pytrace=False)
    request.node.stash[BEGUN_KEY] = True
    _end_on_sigterm(request.config)
    from dpwitness.plugin.asserter import Asserter

    return Asserter(session, request.node)


def _end_on_sigterm(config: pytest.Config) -> None:
    """Let SIGTERM end the session as Ctrl-C does, once there are verdicts or processes to lose.

    Another handler stays. Workers of xdist end with their controller, which has the verdicts.
    """
    session = config.stash[SESSION_KEY]
    usual = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not usual or hasattr(config, "workerinput"):
        return

    def end(number: int, frame: FrameType | None) -> None:
        if session.terminated is None:
            session.terminated = time.monotonic()
            raise KeyboardInterrupt
        if time.monotonic() - session.terminated > 0.5:  # `timeout` sends the signal twice at once
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def as_before() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    signal.signal(signal.SIGTERM, end)
    config.add_cleanup(as_before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the verdicts of a test on its report, which xdist carries to the controller."""
    report = yield
    session = item.config.stash[SESSION_KEY]
    if session.pending:
        report.__dict__["dpwitness"] = json.dumps(session.pending)  # xdist carries every attribute
        session.pending.clear()
    return report


class VerdictCollector:
    """The collector of the verdicts in tests' reports, on the controller or in the only process."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.session = config.stash[SESSION_KEY]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the records of a report."""
        self.session.ran = True
        if carried := getattr(report, "dpwitness", None):
            self.session.records += json.loads(carried)
            _end_on_sigterm(self.config)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Gather the ledger and write the report, on the controller."""
    shared = session.config.stash.get(SESSION_KEY, None)
    if shared is None or hasattr(session.config, "workerinput"):
        return
    shared.records += shared.pending  # the records of an interrupted test
    shared.pending.clear()
    shared.interrupted = session.exitstatus == pytest.ExitCode.INTERRUPTED or shared.terminated is not None
    if shared.terminated is not None:
        session.exitstatus = 128 + signal.SIGTERM
    # A session without a test, such as --collect-only, leaves the files of an earlier session as they are.
    if shared.records or (shared.ran and any(getattr(shared, option) is not None for option in FILE_OPTIONS)):
        from dpwitness.plugin.ledger import write_files

        if write_files(shared):  # the disk may be full: the summary still has the verdicts
            session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter", config: pytest.Config) -> None:
    """Print the ledger, if a test asserted privacy."""
    session = config.stash[SESSION_KEY]
    for why in session.unwritten:
        terminalreporter.line(f"ERROR: {why}", red=True)
    if session.records:
        from dpwitness.plugin.ledger import annotations, lines

        terminalreporter.section("dpwitness")
        for line in lines(session):
            terminalreporter.line(line)
        for line in annotations(session, config.rootpath):
            terminalreporter.line(line)
