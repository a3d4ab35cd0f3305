"""Faults that only one kind of proposed datasets shows: each is found with no pair given, its correct twin never."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dpwitness as dpw
from dpwitness.neighbours import Relation
from running import sampled, scaled

SEEDS = range(scaled(8))
FEW = {"adjacency": "replace-one", "size": (1, 1000)}  # datasets of public size, so that noise may depend on it
DECADES = [1, 10, 100, 1000, 10_000, 100_000]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A statistic that one record should change by at most `change(data)`, and one that it does."""

    broken: Callable[[Any], float]
    correct: Callable[[Any], float]
    relation: Relation
    change: Callable[[Any], float] = lambda data: 1.0

    def worst(self, statistic, pairs):
        """The largest change between neighbours, as a multiple of what is allowed."""
        return max(abs(statistic(p.data) - statistic(p.neighbour)) / self.change(p.data) for p in pairs)


@dataclass(frozen=True, kw_only=True)
class Noisy:
    """A statistic with the noise that is enough for what one record may change; no function, so never compiled."""

    fault: Fault
    statistic: Callable[[Any], float]

    def __call__(self, rng, data, epsilon):
        return self.statistic(data) + rng.laplace(0, self.fault.change(data) / epsilon)


def nan_mean(data):
    known = data[~np.isnan(data)]
    return float(known.mean()) if len(known) else 0.0


def known_share(data):
    known = [record for record in data if record in ("a", "b")]
    return known.count("a") / max(len(known), 1)


def rising_run(data):
    """The length of the longest part in which each record is greater than the one before it."""
    longest = run = 1
    for last, record in pairwise(data):
        run = run + 1 if record > last else 1
        longest = max(longest, run)
    return float(longest)


def seen_twice(data):
    """Of five records and more, whether a value comes exactly twice."""
    _, counts = np.unique(data, return_counts=True)
    return 20.0 * bool(len(data) >= 5 and np.any(counts == 2))


def total(weight):
    """The sum of what each record weighs."""
    return lambda data: float(sum(map(weight, data)))


def per_record(data):
    return 1 / len(data)


FAULTS = {
    "others missing": Fault(
        broken=nan_mean,
        correct=lambda data: float(np.nansum(data)) / len(data),
        relation=dpw.records(dpw.numbers(0, 1, missing=True), **FEW),
        change=per_record,
    ),
    "others of a new category": Fault(
        broken=known_share,
        correct=lambda data: data.count("a") / len(data),
        relation=dpw.records(dpw.categories("a", "b", other=True), form="list", **FEW),
        change=per_record,
    ),
    "first of many": Fault(
        broken=lambda data: float(np.mean([record - data[0] for record in data])),
        correct=lambda data: float(np.mean(data)),
        relation=dpw.records(dpw.numbers(0, 1), form="list", **FEW),
        change=lambda data: 2 / len(data),
    ),
    "two unlike the rest": Fault(
        broken=seen_twice,
        correct=lambda data: seen_twice(data) / 20,
        relation=dpw.records(dpw.integers(0, 1000), form="list"),
    ),
    "rising order": Fault(
        broken=rising_run,
        correct=total(lambda record: record > 0.5),
        relation=dpw.records(dpw.numbers(0, 1), form="list", **FEW),
        change=lambda data: max(1.0, len(data) / 6),
    ),
    "None in a field of floats": Fault(
        broken=lambda data: 20.0 * any(record["x"] is None for record in data),
        correct=total(lambda record: 0 if record["x"] is None or math.isnan(record["x"]) else record["x"]),
        relation=dpw.records({"x": dpw.numbers(0, 1, missing=True)}),
    ),
    "two values together": Fault(
        broken=total(lambda record: 20 if record["name"] == "Eve" and record["member"] else 1),
        correct=total(lambda record: record["name"] == "Eve" and record["member"]),
        relation=dpw.records(
            {"name": dpw.categories("Ann", "Bob", "Cid", "Eve", "Fay"), "member": dpw.flags(), "well": dpw.flags()}
        ),
    ),
    "one value for another": Fault(
        broken=lambda record: {"b": -1.5, "c": 1.5}.get(record, 0.0),
        correct=lambda record: {"b": -0.75, "c": 0.75}.get(record, 0.0),
        relation=dpw.records(dpw.categories(*"abcdefgh"), form="record", adjacency="replace-one", size=1),
        change=lambda record: 1.5,
    ),
    "on the edge of two decades": Fault(
        broken=total(lambda x: sum(a <= x <= b for a, b in pairwise(DECADES))),
        correct=total(lambda x: sum(a <= x < b for a, b in pairwise(DECADES))),
        relation=dpw.records(dpw.numbers(0, 100_000), form="list"),
    ),
    "a power of two below 0": Fault(
        broken=total(lambda record: 20 if record == -64 else 1),
        correct=total(lambda record: record == -64),
        relation=dpw.records(dpw.numbers(-100, 100), form="list"),
    ),
    "hundreds of records": Fault(
        broken=lambda data: float(sum(data)) * (5 if len(data) > 500 else 1),
        correct=lambda data: float(sum(data)),
        relation=dpw.records(dpw.numbers(0, 1), form="list", **FEW),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_proposed_pair_shows_the_fault_and_none_shows_one_in_the_twin(name):
    fault = FAULTS[name]
    pairs = list(fault.relation.candidates())
    assert fault.worst(fault.broken, pairs) >= 2
    assert fault.worst(fault.correct, pairs) <= 1 + 1e-9


@pytest.mark.parametrize("domain", [dpw.integers(0, 59), dpw.integers(-30, 70), dpw.categories(*map(str, range(100)))])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_each_value_of_a_small_domain_is_tried(domain, adjacency):
    relation = dpw.records(domain, form="list", adjacency=adjacency, size=(1, 20))
    tried = {record for pair in relation.unusual() for side in pair.sides for record in side}
    assert tried >= {v for v in range(-30, 100) if domain.holds(v)} | {
        str(v) for v in range(100) if domain.holds(str(v))
    }


@pytest.mark.campaign
@pytest.mark.parametrize("name", sampled(FAULTS, 5))
def test_a_check_finds_it_with_any_seed(name):
    fault = FAULTS[name]
    mechanism = Noisy(fault=fault, statistic=fault.broken)
    for seed in SEEDS:
        verdict = dpw.check(mechanism, epsilon=1.0, neighbours=fault.relation, seed=seed, workers=1)
        assert isinstance(verdict, dpw.Violation)


@pytest.mark.campaign
@pytest.mark.parametrize("name", sampled(FAULTS, 5))
def test_the_correct_twin_is_not_accused(name):
    fault = FAULTS[name]
    mechanism = Noisy(fault=fault, statistic=fault.correct)
    verdict = dpw.check(mechanism, epsilon=1.0, neighbours=fault.relation, seed=1, workers=1, max_time=5)
    assert isinstance(verdict, dpw.NotRefuted)
