"""The power of the dependence test for mechanisms with memory, by the number of paired runs.

    python benchmarks/dependence_power.py [SEEDS]
    python benchmarks/dependence_power.py [SEEDS] --checks [--max-time 2] [--only NAME …]

The first form tests the series of an epoch alone (`health.dependence.refuse_series`). `--checks` runs whole checks,
which also make further calls and use a new process: each call keeps the claim, so that a violation is a false
accusation. For each kind of memory it prints the numbers of violations, of errors that name the dependence, of passes,
and of other errors.
"""

import functools
import itertools
import multiprocessing
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import dpwitness as dpw
from dpwitness.errors import DependentRuns
from dpwitness.events import Interval
from dpwitness.health.dependence import refuse_series, series_of
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.runs import Role, Runner, generator
from results import Table, finish, parser_of

RUNS = (65, 256, 1_024, 4_096)
PAIR = dpw.pairs(([0.0], [1.0])).given[0]
EVENTS = [Interval(coordinate=0, low=1.0)]
#: The memory of the mechanisms, new in every process.
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


def scaled(scale):
    """Noise whose scale is a function of the number of calls before."""
    return lambda: _fresh().laplace(0, scale(_turn()))


def period(length, share=0.5, scale=2.0):
    """Noise whose scale is larger in the first share of every `length` calls."""
    return scaled(lambda turn: scale if turn % length < share * length else 1.0)


def pool(size):
    """Noises that are drawn once."""
    return _kept("pool", lambda: _fresh().laplace(size=size))


def in_batches(size, make):
    """Noise whose values are made in batches and used in turn."""

    def noise():
        place = _turn() % size
        if place == 0:
            KEPT["batch"] = make()
        return KEPT["batch"][place]

    return noise


def by_the_clock(seconds):
    """Noise of a generator that is seeded by the time."""
    return lambda: np.random.default_rng(int(time.time() / seconds)).laplace()


def laplace_quantile(u):
    """The quantile of Laplace noise at u + 1/2."""
    return -np.sign(u) * np.log1p(-2 * abs(u) + 1e-300)


def autoregressive(share):
    """Laplace noise by the quantiles of an autoregressive Gaussian process."""

    def noise():
        from scipy.special import ndtr

        z = KEPT["z"] = share * _kept("z", lambda: _fresh().normal()) + np.sqrt(1 - share**2) * _fresh().normal()
        return laplace_quantile(ndtr(z) - 0.5)

    return noise


def equidistributed():
    """Noise from a sequence of low discrepancy with a random start."""
    return laplace_quantile((_kept("start", lambda: _fresh().random()) + _turn() * 0.6180339887498949) % 1 - 0.5)


def walking():
    """Noise whose scale follows a random walk."""
    KEPT["log"] = np.clip(_kept("log", lambda: 0.5) + 0.1 * _fresh().normal(), 0, 1)
    return _fresh().laplace(0, np.exp(KEPT["log"]))


def after_large():
    """Noise whose scale depends on the size of the last noise."""
    KEPT["last"] = _fresh().laplace(0, 2.0 if abs(_kept("last", lambda: 0.0)) > 1 else 1.0)
    return KEPT["last"]


def switching():
    """Noise whose scale changes at a random tenth of the calls."""
    if _fresh().random() < 0.1:
        KEPT["scale"] = 3.0 - _kept("scale", lambda: 1.0)
    return _fresh().laplace(0, _kept("scale", lambda: 1.0))


def of_this_process():
    """Noise whose scale is drawn once a process."""
    return _fresh().laplace(0, _kept("scale", lambda: 1 + _fresh().exponential()))


def connection():
    """Noise of a generator that is seeded anew every 50 calls by the number of calls."""
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
    **{f"cycled_{n}": in_batches(n, lambda n=n: pool(n)) for n in (100, 1_000, 10_000)},
    **{f"drawn_{n}": lambda n=n: pool(n)[_fresh().integers(n)] for n in (100, 1_000, 10_000)},
    "shuffled_1000": in_batches(1_000, lambda: _fresh().permutation(pool(1_000))),
    "by_the_second": by_the_clock(1.0),
    "by_the_millisecond": by_the_clock(0.001),
    "autoregressive_50": autoregressive(0.5),
    "autoregressive_90": autoregressive(0.9),
    "autoregressive_99": autoregressive(0.99),
    "twice": in_batches(2, lambda: np.repeat(_fresh().laplace(), 2)),
    "three_times": in_batches(3, lambda: np.repeat(_fresh().laplace(), 3)),
    "antithetic": in_batches(2, lambda: _fresh().laplace() * np.array([1, -1])),
    "growing": scaled(lambda turn: 1 + turn / 1000),
    "doubling": scaled(
        lambda turn: 1.0 + (turn + 1).bit_length() % 2
    ),  # 1 or 2, in turn from one power of 2 to the next
    "walking": walking,
    "after_large": after_large,
    "switching": switching,
    "sorted_batches": in_batches(64, lambda: np.sort(_fresh().laplace(size=64))),
    "batches": in_batches(64, lambda: _fresh().laplace(size=64)),  # independent
    "equidistributed": equidistributed,
    "of_this_process": of_this_process,
    "connection": connection,
}


def adding(name):
    """The mechanism that adds a noise to its input, as a function of this module that a new process can load."""

    def release(data):
        return float(data[0]) + NOISES[name]()

    release.__name__ = release.__qualname__ = name
    globals()[name] = release
    return release


def adding_many(name):
    """The mechanism that adds a noise to its input, for many runs at once."""

    def release(data, size):
        return float(data[0]) + np.array([NOISES[name]() for _ in range(size)])

    release.__name__ = release.__qualname__ = f"vectorised_{name}"
    globals()[release.__name__] = release
    return release


def cached(data):
    """Noise that is kept for every input."""
    return float(data[0]) + _cached(float(data[0]))


def bits_of_a_pool(data):
    """Randomised response by 2,000 bits that are used in turn."""
    flips = _kept("bits", lambda: _fresh().random(2_000) < 1 / (1 + np.e))
    return int(data[0]) ^ int(flips[_turn() % 2_000])


def used_up(data):
    """Noise without the answer after 5,000 calls."""
    return float(data[0]) * (_turn() < 5_000) + _fresh().laplace()


def calls_by_turns(data, size):
    """Noise whose scale alternates from call to call, each of many runs."""
    return float(data[0]) + _fresh().laplace(0, 1 + _turn() % 2, size)


#: The mechanism of a whole check, and options of the check.
CASES = {
    **{name: (adding(name), {}) for name in NOISES},
    **{f"vectorised {name}": (adding_many(name), {}) for name in ("period_7", "three_times", "cycled_1000")},
    **{f"epochs {name}": (adding(name), {"search_runs": 0}) for name in ("period_2", "drawn_100")},
    **{function.__name__: (function, {}) for function in (cached, bits_of_a_pool, used_up, calls_by_turns)},
}


def judged(case, seed, seconds):
    """The result of a check of one case from one seed ("violated", "named", "passed" or "refused") and its text."""
    KEPT.clear()
    _cached.cache_clear()
    function, options = CASES[case]
    pair = dpw.pairs(([0], [1]))
    try:
        verdict = dpw.check(function, claim=EPSILON, neighbours=pair, seed=seed, max_time=seconds, workers=1, **options)
    except dpw.DependentRuns as error:
        return "named", str(error)
    except dpw.DPWitnessError as error:
        return "refused", f"{type(error).__name__}: {error}"
    return ("violated" if isinstance(verdict, dpw.Violation) else "passed"), str(verdict)


def named(noise, runs, seed):
    """Whether the series of this number of paired runs is named as dependent."""
    KEPT.clear()
    mechanism = PythonMechanism(Signature.of(lambda data: data[0] + noise(), {}))
    # An epoch keeps only entries that the mechanism has returned before.
    mechanism.outcomes(PAIR.data, generator(seed, Role.HEALTH_FIRST_RUNS), 1)
    _, x, y, turns = Runner(mechanism=mechanism, seed=seed).epoch(PAIR, [], runs, 0)
    try:
        refuse_series("release", EVENTS, series_of([(PAIR, x, y, turns)]))
    except DependentRuns:
        return True
    return False


def series(seeds):
    table = Table(f"named in … of {seeds} seeds", *(f"{runs:,} runs" for runs in RUNS))
    for name, noise in NOISES.items():
        if name.startswith("by_the"):
            continue  # these runs take too little time for the clock to move
        table.add(name, *(sum(named(noise, runs, seed) for seed in range(seeds)) for runs in RUNS))
    return table


def checks(seeds, seconds, cases):
    """The table of checks of every case from every seed, each in a process of its own."""
    warnings.simplefilter("ignore")
    judged("batches", 0, 30.0)  # compiles and imports once for all processes
    fork, kinds = multiprocessing.get_context("fork"), ("violated", "named", "passed", "refused")
    table, totals = Table("case", *kinds), Counter()
    for case in cases:
        found = []
        for seed in range(seeds):
            with ProcessPoolExecutor(1, mp_context=fork) as one:
                found.append(one.submit(judged, case, seed, seconds).result())
        counts = Counter(kind for kind, _ in found)
        totals += counts
        table.add(case, *(counts[kind] for kind in kinds))
        for kind, text in found:
            if kind in ("violated", "refused"):
                print("   ", text.replace("\n", "\n    "))
    print(dict(totals))
    return table


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=20)
    parser.add_argument("--checks", action="store_true", help="whole checks")
    parser.add_argument("--max-time", type=float, default=2.0, metavar="S", help="seconds of a check (default: 2)")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="NAME")
    given = parser.parse_args()
    if given.checks:
        text = "All claims hold: violations are false accusations. `named`: errors that name the dependence."
        finish(given, "Checks of mechanisms with memory", text, checks(given.seeds, given.max_time, given.only))
    else:
        text = "By the paired runs of epochs alone, without the further calls and new processes of a check."
        finish(given, "Runs that depend on each other", text, series(given.seeds))


if __name__ == "__main__":
    main()
