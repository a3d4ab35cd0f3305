"""Runs in other processes are those of one thread of this one."""

import importlib
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import CancelledError, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import elsewhere
from dpwitness.errors import ClusterLost, MechanismCrashed, MechanismRaised
from dpwitness.events import Interval
from dpwitness.machine import Deadline
from dpwitness.mechanisms.catalog import load, load_code
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import pairs
from dpwitness.runs import Pool, Role, Runner
from dpwitness.runs.elsewhere import WORKER_LOSSES, CannotSend, Dispatcher, FirstRuns, dumped, execute
from dpwitness.runs.executors import Processes, ordered
from elsewhere import Elsewhere, away, finished
from running import interpreted, last, runner, sampled

PAIR = pairs((np.array([0.0]), np.array([1.0]))).given[0]
EVENTS = [Interval(coordinate=0, low=0.5)]


def python(function):
    """A function run by the interpreter, in shards of 32 runs, so that there are many of them."""
    return interpreted(function, PAIR, shard=32)


def counted(running, runs=1_000):
    """The counts of all runs."""
    return last(running.confirm(PAIR, EVENTS, runs))


@pytest.mark.parametrize("target", [pytest.param("svt", marks=pytest.mark.campaign), None])
def test_counts_rows_and_tallies_are_those_of_one_thread(target):
    pair = pairs((np.zeros(4), np.ones(4))).given[0]
    mechanism = as_mechanism(load("svt"), pair.data, epsilon=1.0) if target else python(elsewhere.noisy)
    assert mechanism.compiled == bool(target)
    runs = 3 * mechanism.shard + 3
    there, here = away(mechanism, Elsewhere(), seed=5), runner(mechanism, 5)
    assert list(there.confirm(pair, EVENTS, runs)) == list(here.confirm(pair, EVENTS, runs))
    tallies = pair, EVENTS, runs, Role.COMPARISON, 1
    assert there.tallies(*tallies) == here.tallies(*tallies)
    samples = [running.sample(pair, runs, Role.SEARCH, 1) for running in (there, here)]
    assert np.array_equal(*samples, equal_nan=True)
    assert there.notes == ()


def test_no_task_is_sent_once_nothing_may_begin_and_those_on_their_way_are_waited_for():
    pool, deadline = Elsewhere(workers=1), SimpleNamespace(left=60.0, patience=30.0, closed=False)
    results = ordered(pool, (partial(min, k, k + 1) for k in range(8)), deadline)
    assert next(results) == 0
    assert pool.shards == [1, 2]
    deadline.closed = True
    assert list(results) == [1]
    assert pool.shards == [1, 2]


def test_outcomes_of_one_number_are_described_alike_wherever_they_are_made():
    mechanism = python(elsewhere.counting)
    width = mechanism.width
    away(mechanism).sample(PAIR, 100, Role.SEARCH)
    assert mechanism.width == width == 1  # else the text of an event names the "first value" in place of the "output"


def test_an_error_is_raised_behind_the_results_before_it_and_names_the_same_run():
    def until_it_raises(running):
        seen = []
        with pytest.raises(MechanismRaised) as caught:
            seen += running.confirm(PAIR, EVENTS, 100_000)
        return seen, str(caught.value)

    mechanism = python(elsewhere.fragile)
    assert until_it_raises(away(mechanism)) == until_it_raises(runner(mechanism))


def test_a_process_that_ends_costs_no_counts():
    mechanism, place = python(elsewhere.noisy), Elsewhere(dies={2, 3, 9})
    here = list(runner(mechanism).confirm(PAIR, EVENTS, 2_000))
    assert list(away(mechanism, place).confirm(PAIR, EVENTS, 2_000)) == here
    assert len(place.shards) > len(set(place.shards))


@pytest.mark.parametrize("told", [True, False], ids=["the process says so", "the cluster repeats it"])
def test_runs_that_no_seed_repeats_are_evidence_once(told):
    """Others in their place would be counted on the condition that the process did not end over them."""
    place = Elsewhere(dies={4} if told else ())
    if not told:
        place.repeated = lambda work: len(place.shards) > 4
    looks = away(python(elsewhere.own_entropy), place).confirm(PAIR, EVENTS, 2_000)
    assert next(looks)[0].runs == 32
    with pytest.raises(MechanismCrashed):
        last(looks)
    mechanism = python(elsewhere.own_entropy)
    x, _ = away(mechanism, Elsewhere(dies={3})).sample(PAIR, 2_000, Role.SEARCH)  # is no evidence
    assert len(x) == 2_000


def test_what_has_begun_here_ends_here_where_the_rest_goes_to_other_processes(monkeypatch):
    """It was discarded, and at the end of epochs not made again: a run that takes long then was more often left out."""
    dispatcher = Dispatcher(python(elsewhere.noisy), Elsewhere(), seed=1)
    begun, gone = [], []

    def do_there(work, first, deadline):
        gone.extend(range(first, work.count))
        return iter(gone)

    monkeypatch.setattr(dispatcher, "_saves_time", lambda work, shards: shards < 30)
    monkeypatch.setattr(dispatcher, "_do_there", do_there)

    class Work:
        mechanism, count = dispatcher._mechanism, 32

        def __call__(self, shard):
            begun.append(shard)
            return shard

    assert list(dispatcher.map(Work(), Deadline(time.monotonic() + 1_000))) == list(range(32))
    assert begun + gone == list(range(32))


def test_runs_are_made_here_until_a_process_answers():
    """On a busy machine processes start in seconds, which were all that the runs of a short check had."""
    answered = iter([False, False, True])
    pool = type("Starting", (Elsewhere,), {"eager": False, "ready": property(lambda self: next(answered, True))})()
    mechanism = python(elsewhere.noisy)
    dispatcher = Dispatcher(mechanism, pool, seed=1)
    dispatcher._seconds_here = 10.0  # runs here have taken as long as processes usually take to start
    mechanism.cost = replace(mechanism.cost, seconds_per_run=1e-3)
    running = Runner(mechanism=mechanism, seed=1, workers=2, pool=dispatcher)
    assert counted(running, 32 * 8) == counted(runner(python(elsewhere.noisy), 1), 32 * 8)
    assert min(pool.shards) == 2


def test_where_no_process_can_be_started_the_runs_so_far_count(monkeypatch):
    def refuses(*given, **named):
        raise OSError(38, "Function not implemented")  # a machine without semaphores

    monkeypatch.setattr("loky.process_executor.ProcessPoolExecutor", refuses)
    mechanism = python(elsewhere.noisy)
    dispatcher = Dispatcher(mechanism, Processes(2), seed=1)
    dispatcher._seconds_here = 10.0
    mechanism.cost = replace(mechanism.cost, seconds_per_run=1e-3)
    running = Runner(mechanism=mechanism, seed=1, workers=2, pool=dispatcher)
    with pytest.raises(ClusterLost, match="Function not implemented"):
        counted(running, 32 * 8)


def test_work_that_ends_its_process_on_each_try_is_named():
    mechanism = python(elsewhere.noisy)
    place = Elsewhere(dies=range(1, 100))
    with pytest.raises(MechanismCrashed, match=r"noisy .*\(killed\).* runs 0 "):
        counted(away(mechanism, place))
    assert place.shards.count(0) == WORKER_LOSSES


def locked():
    lock = threading.Lock()

    def noisy(rng, data):
        with lock:
            return data[0] + rng.laplace()

    return noisy


#: Each process would count by itself, or repeat what the others draw; and a lock cannot be written.
STAYING = {elsewhere.counting: "changes", elsewhere.own_stream: "changes", locked(): "TypeError"}


@pytest.mark.parametrize("function", STAYING, ids=["counting", "own_stream", "locked"])
def test_a_mechanism_that_cannot_be_the_same_elsewhere_stays_here_and_says_so(function):
    mechanism, place, told = python(function), Elsewhere(), []
    there = away(mechanism, place)
    assert counted(there, 500)[0].runs == 500
    assert place.shards == []
    (note,) = there.notes
    assert STAYING[function] in note
    replace(there, progress=lambda *said: told.append(said)).report("x", 1, 2)
    assert told == [("x", 1, 2, note)]


class Deceiving(Elsewhere):
    """A place whose processes say something else than they do."""

    def __init__(self, **said):
        super().__init__()
        self.said = said

    def submit(self, task):
        found, number = super().submit(task).result(), len(self.shards)
        return finished(replace(found, **{name: value(number, found) for name, value in self.said.items()}))


#: Each shard is done by another process; and first runs that independent noise does not return twice.
EACH_ITS_OWN = {"worker": lambda k, _: str(k), "first_runs": lambda k, found: found.first_runs}
VARIED = FirstRuns(digest="the same", orders=50.0)


@pytest.mark.parametrize(
    ("function", "said", "why"),
    [
        ("noisy", {"first_runs": lambda k, found: FirstRuns(digest="")}, "same random numbers"),
        ("noisy", {"refused": lambda k, found: "ImportError: no x"}, "ImportError: no x"),
        ("own_entropy", {**EACH_ITS_OWN, "first_runs": lambda k, _: VARIED}, "so they draw the same noise"),
        ("largest", EACH_ITS_OWN, "hardly vary"),
    ],
)
def test_processes_that_are_not_like_this_one_or_repeat_another_are_not_believed(function, said, why):
    there = away(python(getattr(elsewhere, function)), Deceiving(**said))
    assert counted(there, 5_000)[0].runs == 5_000
    assert there.pool.away is (why is None)
    assert len(there.notes) == (why is not None)
    assert why is None or why in there.notes[0]


def test_a_user_s_code_is_sent_by_value_and_installed_code_by_name(tmp_path):
    file = tmp_path / "elsewhere_of_a_user.py"
    file.write_text("SCALE = 2.0\ndef noisy(rng, data):\n    return data[0] + rng.laplace(0, SCALE)\n")
    function = load_code(f"{file}:noisy")
    file.unlink()  # nobody has to find it
    again = pickle.loads(dumped(function))
    assert again(np.random.default_rng(1), [0.0]) == function(np.random.default_rng(1), [0.0])
    assert len(dumped(load("svt"))) < 200
    with pytest.raises(CannotSend, match="TypeError"):
        dumped(threading.Lock())
    assert execute(b"nothing", b"", 0).refused.startswith("UnpicklingError")


@pytest.fixture(scope="module")
def place():
    """Two real processes, to which everything is sent."""
    found = Processes(2)
    found.eager = True
    yield found
    found.stop()


def test_real_processes_give_the_same_counts_and_repeat_nobody_s_stream(place):
    mechanism = python(elsewhere.slow)
    there = away(mechanism, place)
    assert counted(there, 300) == counted(runner(mechanism), 300)
    assert there.pool.answered == 2  # both have done something
    for function in (elsewhere.global_numpy, elsewhere.global_random):
        x, y = away(python(function), place).sample(PAIR, 2_000, Role.SEARCH)
        assert len(np.unique([x - 0.0, y - 1.0])) == 4_000  # of 53 bits: two are equal with probability 10⁻⁹


def on_executor(mechanism, executor, workers=2, **more):
    """A runner whose runs are made by an executor."""
    pool = Dispatcher(mechanism, Pool(executor, workers), seed=1, threads=workers)
    return Runner(mechanism=mechanism, seed=1, pool=pool, **more)


@pytest.mark.skipif("fork" not in get_all_start_methods(), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_forks_repeat_nobody_s_noise(tmp_path, monkeypatch):
    """An installed module goes by name: in a fork its generator is where this process had it."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "forked_noise.py").write_text(
        "import numpy as np\nOWN = np.random.default_rng(5)\ndef noisy(data):\n    return data[0] + OWN.random()\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    noisy, slow = python(importlib.import_module("forked_noise").noisy), python(elsewhere.slow)
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as started:
        there = on_executor(noisy, started)
        x, y = there.sample(PAIR, 1_000, Role.SEARCH)
        assert len(np.unique([x - 0.0, y - 1.0])) == 2_000
        assert "a fork repeats the noise" in there.notes[0]
        there = on_executor(slow, started)
        assert counted(there, 300) == counted(runner(slow), 300)
        assert there.pool.answered == 2  # each by a name of its own
        assert there.notes == ()


def test_threads_of_an_executor_leave_the_global_generators_as_they_are():
    random.seed(3)
    expected = random.Random(3).random()
    with ThreadPoolExecutor(2) as started:
        counted(on_executor(python(elsewhere.slow), started), 64)
    assert random.random() == expected


class Dropping(ThreadPoolExecutor):
    """An executor that does not get its first shard done, and says why."""

    def __init__(self, why):
        super().__init__(1)
        self.reasons = [why]

    def submit(self, *given, **named):
        return finished(error=self.reasons.pop()) if self.reasons else super().submit(*given, **named)


@pytest.mark.parametrize(
    ("why", "function", "error", "told"),
    [
        (ZeroDivisionError("none"), "noisy", ClusterLost, "none"),
        # It was told as a fault of the mechanism, which ended its process.
        (CancelledError(), "own_entropy", ClusterLost, "cancelled"),
        (CancelledError(), "noisy", None, ""),
        (BrokenProcessPool("It died.\n\nLook there."), "own_entropy", MechanismCrashed, r"own_entropy .*\(It died\.\)"),
    ],
)
def test_work_that_an_executor_does_not_get_done_is_told_or_made_again(why, function, error, told):
    mechanism = python(getattr(elsewhere, function))
    with Dropping(why) as started:
        there = on_executor(mechanism, started, 1, deadline=Deadline(time.monotonic() + 60))
        if error is None:
            assert counted(there) == counted(runner(mechanism))
            return
        with pytest.raises(error, match=told) as caught:
            counted(there)
    assert "\n" not in str(caught.value)


def killing(place):
    """Kill one of the processes, in a tenth of a second."""
    pids = list(place._loky._processes)
    threading.Timer(0.1, os.kill, (pids[0], signal.SIGKILL)).start()
    return pids[0]


@pytest.mark.campaign
def test_a_killed_process_costs_no_counts(place):
    mechanism = python(elsewhere.slow)
    there, here = away(mechanism, place), runner(mechanism)
    looks = there.confirm(PAIR, EVENTS, 1_000)
    first = next(looks)
    killed = killing(place)
    assert [first, *looks] == list(here.confirm(PAIR, EVENTS, 1_000))
    assert killed not in place._loky._processes
    killed = killing(place)
    for a, b in zip(there.sample(PAIR, 1_000, Role.SEARCH), here.sample(PAIR, 1_000, Role.SEARCH), strict=True):
        assert np.array_equal(a, b)
    assert killed not in place._loky._processes
    assert there.notes == ()


@pytest.mark.campaign
def test_processes_that_hang_at_the_deadline_are_ended(place, tmp_path):
    """They hang from the first look on, and the deadline comes a second later: no clock decides which runs hang."""
    here, signed = os.getpid(), tmp_path / "hang"

    def hanging(rng, data):
        if signed.exists() and os.getpid() != here:
            time.sleep(3600)
        return data[0] + rng.random()

    deadline = Deadline(time.monotonic() + 600)
    looks = replace(away(python(hanging), place), deadline=deadline).confirm(PAIR, EVENTS, 1_000_000)
    runs = next(looks)[0].runs
    pids = list(place._loky._processes)
    signed.touch()
    object.__setattr__(deadline, "at", time.monotonic() + 1)
    assert 0 < max([runs, *(totals[0].runs for totals in looks)]) < 1_000_000
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


SLOW = """
import time
import numpy as np

def slow(data, epsilon):
    time.sleep(0.002)
    return data[0] + np.random.laplace(0, 1 / epsilon)
"""


def of_mark(mark):
    """The processes that were started with a mark in their environment, or by such ones."""
    found = []
    for place in Path("/proc").iterdir():
        with suppress(OSError):
            if place.name.isdigit() and mark.encode() in (place / "environ").read_bytes():
                found.append(int(place.name))
    return found


def read_all(file, into):
    """Read until whoever writes is gone."""
    with suppress(OSError):
        while content := os.read(file, 1 << 16):
            into += content
    os.close(file)


@pytest.mark.campaign
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc here")
@pytest.mark.parametrize("number", sampled([signal.SIGINT, signal.SIGTERM, signal.SIGKILL], 2))
def test_no_signal_leaves_processes_behind(tmp_path, number):
    (tmp_path / "mine.py").write_text(SLOW)
    command = [sys.executable, "-m", "dpwitness", "check", "mine.py:slow", "--epsilon", "1", "--queries", "1"]
    mark = f"MARK{uuid.uuid4().hex}"
    terminal, its_stderr = os.openpty()  # where the stage is shown
    started = subprocess.Popen(
        [*command, "--max-time", "300", "--runs", "1e9", "--workers", "2", "--save", "result.json"],
        cwd=tmp_path, env={**os.environ, "MARKED": mark}, stdout=subprocess.PIPE, stderr=its_stderr,
    )  # fmt: skip
    os.close(its_stderr)
    shown = bytearray()
    threading.Thread(target=read_all, args=(terminal, shown), daemon=True).start()
    end = time.monotonic() + 120
    # It, two workers, and who cleans up behind them; and an epoch is over, so that there is a verdict.
    while (len(of_mark(mark)) < 4 or b"log e-value" not in shown) and time.monotonic() < end:
        time.sleep(0.1)
    started.send_signal(number)
    out, _ = started.communicate(timeout=60)
    if number is signal.SIGKILL:
        assert started.returncode == -signal.SIGKILL
    else:
        assert started.returncode == 128 + number
        assert out.startswith(b"NOT REFUTED")
        assert json.loads((tmp_path / "result.json").read_text())["ended"] == "interrupted"
    end = time.monotonic() + 30
    while of_mark(mark) and time.monotonic() < end:
        time.sleep(0.1)
    assert of_mark(mark) == []
