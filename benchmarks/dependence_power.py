"""The power of the dependence test for mechanisms with memory, by the number of paired runs.

    python benchmarks/dependence_power.py [SEEDS]

The test sees the series of an epoch alone (`health.dependence.refuse_series`), without the further calls and new
processes of a whole check.
"""

import itertools

import numpy as np

import dpwitness as dpw
from dpwitness.errors import DependentRuns
from dpwitness.events import Interval
from dpwitness.health.dependence import refuse_series, series_of
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.runs import Role, Runner, generator
from results import Table, finish, parser_of

#: The numbers of paired runs of a series.
RUNS = (65, 256, 1_024, 4_096)
PAIR = dpw.pairs(([0.0], [1.0])).given[0]
#: The events that the test looks at, besides the first entry of the outcomes.
EVENTS = [Interval(coordinate=0, low=1.0)]
#: The memory of the mechanism of the present series.
KEPT = {}


def _kept(name, make):
    if name not in KEPT:
        KEPT[name] = make()
    return KEPT[name]


def _fresh():
    return _kept("rng", np.random.default_rng)


def _turn():
    return next(_kept("turn", itertools.count))


def period(length):
    """Laplace noise of scale 2 in the first half of every `length` calls, else of scale 1."""
    return lambda: _fresh().laplace(0, 2.0 if _turn() % length < length / 2 else 1.0)


def pool(size):
    """An array of `size` Laplace noises, drawn once a series."""
    return _kept("pool", lambda: _fresh().laplace(size=size))


def in_batches(size, make):
    """Noise whose values are made in batches and used in turn."""

    def noise():
        place = _turn() % size
        if place == 0:
            KEPT["batch"] = make()
        return KEPT["batch"][place]

    return noise


def laplace_quantile(u):
    """The quantile of Laplace noise of scale 1 at u + 1/2, for u from −1/2 to 1/2."""
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


#: The noises of the mechanisms, by name.
NOISES = {
    **{f"period_{n}": period(n) for n in (2, 3, 7, 32, 33, 64)},
    **{f"cycled_{n}": in_batches(n, lambda n=n: pool(n)) for n in (100, 1_000, 10_000)},
    **{f"drawn_{n}": lambda n=n: pool(n)[_fresh().integers(n)] for n in (100, 1_000, 10_000)},
    "autoregressive_50": autoregressive(0.5),
    "autoregressive_90": autoregressive(0.9),
    "autoregressive_99": autoregressive(0.99),
    "twice": in_batches(2, lambda: np.repeat(_fresh().laplace(), 2)),
    "three_times": in_batches(3, lambda: np.repeat(_fresh().laplace(), 3)),
    "antithetic": in_batches(2, lambda: _fresh().laplace() * np.array([1, -1])),
    "sorted_batches": in_batches(64, lambda: np.sort(_fresh().laplace(size=64))),
    "batches": in_batches(64, lambda: _fresh().laplace(size=64)),  # independent
    "equidistributed": equidistributed,
}


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
        table.add(name, *(sum(named(noise, runs, seed) for seed in range(seeds)) for runs in RUNS))
    return table


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=20)
    given = parser.parse_args()
    text = "By the paired runs of epochs alone, without the further calls and new processes of a check."
    finish(given, "Runs that depend on each other", text, series(given.seeds))


if __name__ == "__main__":
    main()
