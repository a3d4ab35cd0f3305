"""What each part of `dpwitness.mechanisms.compiled` buys: with it against without it, alternating in one process.

Run as `python benchmarks/compiled_parts.py [TARGET …]`; processor time, so that a busy machine disturbs it little.
"""

import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import dpwitness as dpw
from dpwitness.events import OutcomeSet
from dpwitness.evidence import Estimate, log_e_value
from dpwitness.mechanisms.catalog import load
from dpwitness.mechanisms.compiled import driver
from dpwitness.mechanisms.compiled import mechanism as compiled
from dpwitness.mechanisms.compiled.mechanism import CompiledMechanism
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.neighbours import Pair
from dpwitness.runs import Runner
from dpwitness.targets import target_of

RUNS = 200_000
ROUNDS = 15
EPSILON = 0.7
EVENT = OutcomeSet([[0, 0, 1]])
BORROWED = ("rng", "memory", "position", "data", "neighbour", "rows")


@contextmanager
def no_scratch() -> Iterator[None]:
    with mock.patch.object(compiled, "with_scratch", return_value=None):
        yield


@contextmanager
def no_borrowing() -> Iterator[None]:
    text = driver.DRIVER
    for name in BORROWED:
        text = text.replace(f"borrow({name})", name)
    with mock.patch.object(driver, "DRIVER", text), another_name("counted"):
        yield


@contextmanager
def no_inlining() -> Iterator[None]:
    def outlined(function: Any) -> Any:
        made = machine_code(function)
        made.targetoptions["forceinline"] = False
        return made

    machine_code = driver.machine_code
    with mock.patch.object(driver, "machine_code", outlined), another_name("outlined"):
        yield


@contextmanager
def another_name(name: str) -> Iterator[None]:
    """A driver module of its own: the text that it is written from is no part of the fingerprint."""
    fingerprint = driver.fingerprint
    with mock.patch.object(driver, "fingerprint", lambda *given: (f"{fingerprint(*given)[0]}_{name}", True)):
        yield


PARTS: dict[str, Callable[[], Any]] = {
    "scratch memory": no_scratch,
    "arguments without reference counts": no_borrowing,
    "inlining the mechanism": no_inlining,
}


def nanoseconds(mechanism: CompiledMechanism, pair: Pair) -> float:
    started = time.process_time()
    for _ in Runner(mechanism=mechanism, seed=1, workers=1).confirm(pair, [EVENT], RUNS):
        pass
    return (time.process_time() - started) / RUNS * 1e9


def ratios(signature: Signature, pair: Pair) -> None:
    """Time of a paired run without a part by the time with all of them."""
    whole = CompiledMechanism(signature)
    nanoseconds(whole, pair)
    for part, without in PARTS.items():
        with without():
            bare = CompiledMechanism(signature)
        nanoseconds(bare, pair)
        times = [(nanoseconds(whole, pair), nanoseconds(bare, pair)) for _ in range(ROUNDS)]
        ratio = statistics.median(slow / fast for fast, slow in times)
        print(f"  {part}: {min(times)[0]:.0f} ns a paired run, {ratio:.2f} × without")


def runs_to_refute(name: str, *, coupled: bool) -> float:
    """Mean paired runs until the claim is refuted, on the pair and the event that `check` finds."""
    verdict = dpw.check(load(name), epsilon=EPSILON, seed=0)
    witness, counts = verdict.witness, verdict.counts
    mechanism = as_mechanism(load(name), witness.pair.data, epsilon=EPSILON)
    mechanism.shard = 64
    hint = Estimate(p=counts.hits / counts.runs, q=counts.neighbour_hits / counts.runs, both=counts.n11 / counts.runs)
    needed = []
    for seed in range(20):
        runner = Runner(mechanism=mechanism, seed=seed)
        for (total,) in runner.confirm(witness.pair, [witness.event], 10_000_000, coupled=coupled):
            if log_e_value(total, verdict.claim, hint) >= math.log(1 / verdict.alpha):
                break
        needed.append(total.runs)
    return statistics.mean(needed)


def start(signature: Signature, pair: Pair) -> tuple[float, float]:
    """Seconds until the first runs are made: compiled anew, and from the cache."""
    seconds = []
    for keep in (False, True, True):
        started = time.process_time()
        with mock.patch.object(driver, "cache_folder", driver.cache_folder if keep else driver.private_folder):
            CompiledMechanism(signature).measure(pair)
        seconds.append(time.process_time() - started)
    return seconds[0], seconds[2]


def main(names: list[str]) -> None:
    for name in names:
        function = load(name)
        target = target_of(function)
        assert target is not None
        pair = next(iter(target.neighbours.candidates(None)))
        signature = Signature.of(function, {target.claim: EPSILON})
        print(name)
        ratios(signature, pair)
        anew, cached = start(signature, pair)
        print(f"  kept driver modules: {cached:.2f} s to the first runs, {anew:.2f} s without ({anew / cached:.1f} ×)")
    for name in ("isvt3", "histogram_wrong_scale"):
        together, apart = (runs_to_refute(name, coupled=coupled) for coupled in (True, False))
        print(f"{name}: coupling: {together:.0f} paired runs to refute, {apart:.0f} without ({apart / together:.2f} ×)")


if __name__ == "__main__":
    main(sys.argv[1:] or ["svt", "histogram", "gptt_lee_clifton"])
