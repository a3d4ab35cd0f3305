"""Processes of foreign code: how they are asked, stopped and ended. `test_command` has what hostile programs write."""

import json
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpwitness.errors import MechanismCrashed, MechanismTimeout
from dpwitness.mechanisms.child import Child, Unreadable

HANGS = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]


@pytest.fixture
def cat():
    child = Child(["cat"])
    yield child
    child.end()


def test_answers_are_the_values_of_lines(cat):
    assert cat.ask(b'[1, "a"]\nnull\n', 2, 10.0) == [[1, "a"], None]
    assert cat.ask(b"2\n", 1, 10.0) == [2]


@pytest.mark.parametrize("line", [b"", b" ", b"1,2", b"[1", b"2]", b"1 2", b"nul", b"1\r2", b"--1"])
def test_each_line_is_one_value(cat, line):
    with pytest.raises(Unreadable):
        cat.ask(line + b"\n", 1, 10.0)


@pytest.mark.campaign
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_a_line_is_read_as_the_value_that_was_written(cat, value):
    assert repr(cat.ask(json.dumps(value).encode() + b"\n", 1, 10.0)) == repr([value])


def test_long_requests_and_answers_pass_each_other(cat):
    """More than the pipes hold: what is answered is read while the rest of the request is written."""
    line = b'"' + b"x" * (1 << 20) + b'"\n'
    assert cat.ask(line * 8, 8, 30.0) == ["x" * (1 << 20)] * 8


def test_a_process_that_was_ended_says_so(cat):
    assert cat.running
    cat.end()
    assert not cat.running
    with pytest.raises(MechanismCrashed, match="it was ended"):
        cat.ask(b"1\n", 1, 1.0)


def test_another_thread_may_end_it():
    child = Child(HANGS)
    threading.Timer(0.2, child.end).start()
    with pytest.raises(MechanismCrashed, match="ended with signal 9"):
        child.ask(b"1\n", 1, 60.0)


def test_it_is_stopped_in_the_middle_of_an_answer():
    child = Child(HANGS)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        child.ask(b"1\n", 1, 60.0, lambda: time.monotonic() - started > 0.2)
    assert not child.running


def test_a_request_that_nobody_reads_ends_in_time():
    with pytest.raises(MechanismTimeout, match=r"^it did not answer within 0\.3 s, and was ended$"):
        Child(HANGS).ask(b"x" * (1 << 20), 1, 0.3)


FORKS = """
import os
from dpwitness.mechanisms.child import Child, Unreadable
child = Child(["cat"])
if os.fork() == 0:
    child.end()
    del child
    os._exit(0)
os.wait()
print(child.ask(b"7\\n", 1, 10.0))
"""


def test_a_fork_ends_no_process_of_its_parent():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, check=True)
    assert done.stdout == "[7]\n"
