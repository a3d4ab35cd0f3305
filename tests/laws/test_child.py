"""Processes of foreign code: how they are asked, stopped and ended. `test_command` has what hostile programs write."""

import subprocess
import sys
import threading

import pytest

from dpwitness.errors import MechanismCrashed, MechanismTimeout
from dpwitness.mechanisms.child import Child

HANGS = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]


@pytest.fixture
def cat():
    child = Child(["cat"])
    yield child
    child.end()


def test_long_requests_and_answers_pass_each_other(cat):
    """More than the pipes hold: what is answered is read while the rest of the request is written."""
    line = b'"' + b"x" * (1 << 20) + b'"\n'
    assert cat.ask(line * 8, 8, 30.0) == ["x" * (1 << 20)] * 8


def test_another_thread_may_end_it():
    child = Child(HANGS)
    threading.Timer(0.2, child.end).start()
    with pytest.raises(MechanismCrashed, match="ended with signal 9"):
        child.ask(b"1\n", 1, 60.0)


def test_a_request_that_nobody_reads_ends_in_time():
    with pytest.raises(MechanismTimeout, match=r"^it did not answer within 0\.3 s, and was ended$"):
        Child(HANGS).ask(b"x" * (1 << 20), 1, 0.3)


FORKS = """
import os
from dpwitness.mechanisms.child import Child, UnreadableAnswer
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
