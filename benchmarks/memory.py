"""Mechanisms that keep something between runs, each of whose calls keeps the claim: none may be accused.

Each case is a kind of memory and a way to run it; each check starts from a state of its own. Prints for every case how
many seeds ended in a violation (a false accusation), in an error that names the dependence, and in a pass.

    python benchmarks/memory.py [SEEDS] [SECONDS] [NAMES …]
"""

import functools
import itertools
import multiprocessing
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import dpwitness as dpw

#: All that mechanisms keep; drawn anew in every process.
KEPT = {}
EPSILON = 1.0


def _kept(name, make):
    if name not in KEPT:
        KEPT[name] = make()
    return KEPT[name]


def _fresh():
    return _kept("rng", np.random.default_rng)


def _turn():
    return next(_kept("turn", itertools.count))


def period(length, share=0.5, scale=2.0):
    """The scale is larger in a part of every so many calls."""
    return lambda: _fresh().laplace(0, scale if _turn() % length < share * length else 1.0)


def pool(size, *, cycled):
    """Noise drawn once and used over and over."""

    def noise():
        drawn = _kept("pool", lambda: _fresh().laplace(size=size))
        return drawn[_turn() % size if cycled else _fresh().integers(size)]

    return noise


def shuffled(size):
    """A pool that is used up in a new order each time."""

    def noise():
        turn = _turn() % size
        if turn == 0:
            KEPT["pool"] = _fresh().permutation(_kept("pool", lambda: _fresh().laplace(size=size)))
        return KEPT["pool"][turn]

    return noise


def by_the_clock(seconds):
    """Seeded by the time."""
    return lambda: np.random.default_rng(int(time.time() / seconds)).laplace()


def autoregressive(share):
    """Gaussian noise of variance 1 by itself, and laid on a Laplace law."""

    def noise():
        from scipy.special import ndtr

        z = KEPT["z"] = share * _kept("z", lambda: _fresh().normal()) + np.sqrt(1 - share**2) * _fresh().normal()
        u = ndtr(z) - 0.5
        return -np.sign(u) * np.log1p(-2 * abs(u))

    return noise


def repeated(times):
    """Every noise several times."""

    def noise():
        if _turn() % times == 0:
            KEPT["last"] = _fresh().laplace()
        return KEPT["last"]

    return noise


def antithetic():
    """A noise, then its negative."""
    if _turn() % 2 == 0:
        KEPT["last"] = _fresh().laplace()
        return KEPT["last"]
    return -KEPT["last"]


def growing():
    """A scale that grows with the calls."""
    return _fresh().laplace(0, 1 + _turn() / 1000)


def doubling():
    """A scale that doubles at powers of two."""
    return _fresh().laplace(0, 1.0 + (int(_turn() + 1).bit_length() % 2))


def walking():
    """A scale that wanders at random."""
    KEPT["log"] = np.clip(_kept("log", lambda: 0.5) + 0.1 * _fresh().normal(), 0, 1)
    return _fresh().laplace(0, np.exp(KEPT["log"]))


def after_large():
    """A scale that follows the size of the last noise."""
    KEPT["last"] = _fresh().laplace(0, 2.0 if abs(_kept("last", lambda: 0.0)) > 1 else 1.0)
    return KEPT["last"]


def after_a_call_in_nine():
    """A scale that is changed by a random tenth of the calls."""
    if _fresh().random() < 0.1:
        KEPT["scale"] = 3.0 - _kept("scale", lambda: 1.0)
    return _fresh().laplace(0, _kept("scale", lambda: 1.0))


def in_batches(size, *, ordered):
    """Noise drawn in batches; in order of size, or as drawn, which is no memory at all."""

    def noise():
        turn = _turn() % size
        if turn == 0:
            KEPT["batch"] = _fresh().laplace(size=size)
            if ordered:
                KEPT["batch"].sort()
        return KEPT["batch"][turn]

    return noise


def equidistributed():
    """A sequence of low discrepancy from a random start."""
    u = (_kept("start", lambda: _fresh().random()) + _turn() * 0.6180339887498949) % 1 - 0.5
    return -np.sign(u) * np.log1p(-2 * abs(u) + 1e-300)


def of_this_process():
    """A scale drawn once."""
    return _fresh().laplace(0, _kept("scale", lambda: 1 + _fresh().exponential()))


def connection():
    """A generator that is made anew every 50 calls from the turn."""
    turn = _turn()
    if turn % 50 == 0:
        KEPT["connection"] = np.random.default_rng(turn // 50)
    return KEPT["connection"].laplace()


@functools.lru_cache
def _cached(entry):
    return np.random.default_rng().laplace()


NOISES = {
    **{f"period_{n}": period(n) for n in (2, 3, 7, 32, 33, 64)},
    **{f"one_in_{n}": period(n, 1 / n, 3.0) for n in (3, 7, 32)},
    **{f"cycled_{n}": pool(n, cycled=True) for n in (100, 1_000, 10_000)},
    **{f"drawn_{n}": pool(n, cycled=False) for n in (100, 1_000, 10_000)},
    "shuffled_1000": shuffled(1_000),
    "by_the_second": by_the_clock(1.0),
    "by_the_millisecond": by_the_clock(0.001),
    "autoregressive_50": autoregressive(0.5),
    "autoregressive_90": autoregressive(0.9),
    "autoregressive_99": autoregressive(0.99),
    "twice": repeated(2),
    "three_times": repeated(3),
    "antithetic": antithetic,
    "growing": growing,
    "doubling": doubling,
    "walking": walking,
    "after_large": after_large,
    "switching": after_a_call_in_nine,
    "sorted_batches": in_batches(64, ordered=True),
    "batches": in_batches(64, ordered=False),
    "equidistributed": equidistributed,
    "of_this_process": of_this_process,
    "connection": connection,
}


def _plain(name):
    noise = NOISES[name]

    def release(data):
        return float(data[0]) + noise()

    release.__name__ = release.__qualname__ = name
    return release


def _slow(name):
    noise = NOISES[name]

    def release(data):
        time.sleep(0.001)
        return float(data[0]) + noise()

    release.__name__ = release.__qualname__ = f"slow_{name}"
    return release


def _vectorised(name):
    noise = NOISES[name]

    def release(data, size):
        return float(data[0]) + np.array([noise() for _ in range(size)])

    release.__name__ = release.__qualname__ = f"vectorised_{name}"
    return release


def cached(data):
    """Noise that is kept for every input."""
    return float(data[0]) + _cached(float(data[0]))


def bits_of_a_pool(data):
    """Randomised response by 2,000 bits that are used over and over."""
    flips = _kept("bits", lambda: _fresh().random(2_000) < 1 / (1 + np.e))
    return int(data[0]) ^ int(flips[_turn() % 2_000])


def used_up(data):
    """Noise alone once 5,000 calls were answered."""
    return float(data[0]) * (_turn() < 5_000) + _fresh().laplace()


def calls_by_turns(data, size):
    """Every call of many runs has the other scale."""
    return float(data[0]) + _fresh().laplace(0, 1 + _turn() % 2, size)


SLOW = (
    "period_2", "period_3", "period_7", "one_in_3", "cycled_100", "cycled_1000", "drawn_1000", "by_the_second",
    "autoregressive_90", "antithetic", "switching",
)  # fmt: skip
for _name in NOISES:
    globals()[_name] = _plain(_name)
for _name in SLOW:
    globals()[f"slow_{_name}"] = _slow(_name)
for _name in ("period_7", "three_times", "cycled_1000"):
    globals()[f"vectorised_{_name}"] = _vectorised(_name)

#: Every case: the name of the function, and how it is run.
CASES = {
    **{name: {} for name in NOISES},
    **{f"slow_{name}": {} for name in SLOW},
    **{f"vectorised_{name}": {} for name in ("period_7", "three_times", "cycled_1000")},
    **{name: {} for name in ("cached", "bits_of_a_pool", "used_up", "calls_by_turns")},
    "remote period_2": {"remote": True},
    "remote cycled_1000": {"remote": True},
    "processes slow_period_2": {"workers": 2},
    "processes slow_drawn_1000": {"workers": 2},
    "epochs period_2": {"search_runs": 0},
    "epochs drawn_100": {"search_runs": 0},
}


def judged(case, seed, seconds):
    """What a check of one case from one seed ends in: "violated", "named", "passed", or "refused" by another error."""
    KEPT.clear()
    _cached.cache_clear()
    options = dict(CASES[case])
    name = case.split()[-1]
    function = globals()[name]
    if options.pop("remote", False):
        function = dpw.remote(sys.executable, f"{Path(__file__).resolve()}:{name}")
    options = {"workers": 1, **options}
    try:
        verdict = dpw.check(
            function, claim=EPSILON, neighbours=dpw.pairs(([0], [1])), seed=seed, max_time=seconds, **options
        )
    except dpw.DependentRuns as error:
        return "named", str(error)
    except dpw.DPWitnessError as error:
        return "refused", f"{type(error).__name__}: {error}"
    return ("violated" if isinstance(verdict, dpw.Violation) else "passed"), str(verdict)


def main() -> None:
    """Run every case from every seed, each in a process of its own, and print a table."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
    cases = sys.argv[3:] or list(CASES)
    warnings.simplefilter("ignore")
    judged("batches", 0, 30.0)  # what is compiled and imported once
    fork = multiprocessing.get_context("fork")
    totals = dict.fromkeys(("violated", "named", "passed", "refused"), 0)
    print(f"{len(cases)} cases, {seeds} seeds, {seconds:g} s a check, claim {EPSILON:g}-DP, alpha 1e-6")
    print(f"{'case':<28} {' '.join(f'{kind:>8}' for kind in totals)}")
    for case in cases:
        found = []
        for seed in range(seeds):
            with ProcessPoolExecutor(1, mp_context=fork) as one:
                found.append(one.submit(judged, case, seed, seconds).result())
        counts = {kind: sum(each == kind for each, _ in found) for kind in totals}
        print(f"{case:<28} {' '.join(f'{count:>8}' for count in counts.values())}", flush=True)
        for kind, text in found:
            if kind in ("violated", "refused"):
                print("   ", text.replace("\n", "\n    "))
        for kind in totals:
            totals[kind] += counts[kind]
    print(totals)


if __name__ == "__main__":
    main()
