"""A pool in this process that works as other processes do: shards are written, read and made one at a time."""

import random
import secrets
import time
from concurrent.futures import BrokenExecutor, Future

import numpy as np

from dpwitness.runs import Dispatcher, Pool
from running import runner


def finished(result=None, error=None):
    """A future that is done."""
    future = Future()
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
    return future


class Elsewhere(Pool):
    """A pool that makes each shard when it is sent; `dies`: the numbers of the shards at which a worker ends."""

    def __init__(self, workers=2, dies=()):
        self.workers = workers
        self.dies = set(dies)
        self.shards = []

    def publish(self, content):
        return content

    def submit(self, task):
        self.shards.append(task.args[-1])
        if len(self.shards) in self.dies:
            return finished(error=BrokenExecutor("killed"))
        return finished(task())

    def end(self, futures, patience):
        pass


def away(mechanism, place=None, *, seed=1, deadline=None):
    """A runner whose runs are made elsewhere."""
    found = runner(mechanism, seed, deadline=deadline)
    return type(found)(
        mechanism=mechanism, seed=seed, workers=2, deadline=found.deadline,
        pool=Dispatcher(mechanism, place or Elsewhere(), seed=seed),
    )  # fmt: skip


# Mechanisms that are sent to processes, at the top level of a file.

COUNT = {"runs": 0}
STREAM = np.random.default_rng(7)


def tokens(rng, data):
    """A dict whose keys change from run to run."""
    keys = rng.integers(0, 40 + int(data[0]), 3)
    return {f"word {key}": {"count": rng.random(), "list": [1.0] * int(key % 3)} for key in keys.tolist()}


def noisy(rng, data):
    return [data[0] + rng.laplace(), "yes" if rng.random() < 0.5 else "no"]


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


def largest(data):
    """The largest number, without noise."""
    return max(data)


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
