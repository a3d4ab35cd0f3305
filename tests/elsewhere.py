"""Work that is done as if in other processes: written, read and done there, one portion at a time, in this one."""

import random
import secrets
import time

import numpy as np

from dpwitness.runs.dispatcher import Dispatcher, WorkerDied
from dpwitness.runs.worker import execute
from running import runner


class Elsewhere:
    """A pool whose processes are threads of control of this one; `dies` says after how many portions one ends."""

    task_seconds = 0.01
    eager = True
    started = True

    def __init__(self, workers=2, dies=()):
        self.workers = workers
        self.dies = set(dies)
        self.portions = []
        self.published = []
        self.retracted = 0

    def start(self, deadline):
        pass

    def ready(self, mechanism):
        return True

    def publish(self, content):
        self.published.append(content)
        return content

    def submit(self, mechanism, work, first, end, task):
        self.portions.append((first, end))
        return len(self.portions), (mechanism, work, first, end, task)

    def answer(self, handle, timeout):
        number, portion = handle
        if number in self.dies:
            raise WorkerDied("killed")
        return execute(*portion)

    def repeated(self, work):
        return False

    def close(self, work, futures, *, at_once):
        self.retracted += 1


def away(mechanism, place=None, *, seed=1, deadline=None):
    """A runner whose runs are made elsewhere."""
    found = runner(mechanism, seed, deadline=deadline)
    return type(found)(
        mechanism=mechanism, seed=seed, workers=2, deadline=found.deadline,
        pool=Dispatcher(mechanism, place or Elsewhere(), seed=seed),
    )  # fmt: skip


# What processes are sent, at the top level of a file.

COUNT = {"runs": 0}
STREAM = np.random.default_rng(7)


def tokens(rng, data):
    """Keys that change from run to run."""
    keys = rng.integers(0, 40 + int(data[0]), 3)
    return {f"word {key}": {"count": rng.random(), "list": [1.0] * int(key % 3)} for key in keys.tolist()}


def noisy(rng, data):
    return [data[0] + rng.laplace(), "yes" if rng.random() < 0.5 else "no"]


def writing(rng, data):
    if rng.random() < 0.002:
        data.append(0.0)
    return data[0] + rng.laplace()


def counting(rng, data):
    COUNT["runs"] += 1
    return data[0] + rng.laplace()


def own_stream(data):
    return data[0] + STREAM.laplace()


def global_numpy(data):
    return data[0] + np.random.laplace()  # noqa: NPY002  # what this is about


def own_entropy(data):
    return data[0] + secrets.randbits(40) / 2**40


def global_random(data):
    return data[0] + random.gauss()


HELD = [np.random.SFC64(0)]


def largest(data):
    """Without noise."""
    return max(data)


def is_positive(data):
    """A flag that is wrong once in a million runs."""
    return (data[0] > 0) ^ (secrets.randbelow(1_000_000) == 0)


def largest_of_held(data):
    """What it holds may be a generator that each process has in the same state."""
    return max(data) if HELD else 0.0


def slow_without_seed(data):
    time.sleep(0.001)
    return data[0] + secrets.randbits(40) / 2**40


def slow(rng, data):
    time.sleep(0.001)
    return data[0] + rng.random()


def fragile(rng, data):
    if rng.random() < 0.002:
        raise ValueError("too far out")
    return 1.0


def changing(rng, data):
    """Mostly a number, rarely a list of that number alone."""
    return [1.0] if rng.random() < 0.002 else 1.0
