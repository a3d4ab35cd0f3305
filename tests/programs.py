"""Programs that answer requests for runs, for tests."""

import sys

import dpwitness as dpw

#: Without the site: it starts in a third of the time.
PYTHON = [sys.executable, "-S", "-E"]
#: Reads requests; BODY runs for each of their runs, and may use what stands before.
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
    """A program that does this for each run."""
    return dpw.command([*PYTHON, "-c", SERVER.format(body=body)], **more)
