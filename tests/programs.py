"""Programs that answer requests for runs, for tests."""

import sys

import dpwitness as dpw

#: The command of Python without its site, which starts in a third of the time.
PYTHON = [sys.executable, "-S", "-E"]
#: A program that reads requests and executes `body` for each run; `body` may use the variables above it.
SERVER = """
import json, os, random, signal, sys, time
calls = 0
for line in sys.stdin:
    request = json.loads(line)
    data, rng = request["input"], random.Random(request["seed"])
    for run in range(request["runs"]):
        calls += 1
        {body}
    sys.stdout.flush()
"""


def served(body, **more):
    """A mechanism from a program that executes `body` for each run."""
    return dpw.command([*PYTHON, "-c", SERVER.format(body=body)], **more)
