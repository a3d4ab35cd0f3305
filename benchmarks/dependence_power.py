"""How often runs of a mechanism with memory are named as dependent, by the number of paired runs.

    python benchmarks/dependence_power.py [SEEDS]

The series of an epoch alone are looked at (`health.dependence.refuse_series`); a check looks at further calls and at a
new process beside them.
"""

import sys

import dpwitness as dpw
from dpwitness.errors import DependentRuns
from dpwitness.events import Interval
from dpwitness.health.dependence import refuse_series, series_of
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.runs import Role, Runner, generator
from memory import KEPT, NOISES

RUNS = (65, 256, 1_024, 4_096)
PAIR = dpw.pairs(([0.0], [1.0])).given[0]
EVENTS = [Interval(coordinate=0, low=1.0)]


def named(noise, runs, seed):
    """Whether so many paired runs are named as dependent."""
    KEPT.clear()
    mechanism = PythonMechanism(Signature.of(lambda data: data[0] + noise(), {}))
    # An epoch keeps the entries that the mechanism was seen to return before.
    mechanism.outcomes(PAIR.data, generator(seed, Role.HEALTH_FIRST_RUNS), 1)
    _, x, y, turns = Runner(mechanism=mechanism, seed=seed).epoch(PAIR, [], runs, 0)
    try:
        refuse_series("release", EVENTS, series_of([(PAIR, x, y, turns)]))
    except DependentRuns:
        return True
    return False


def main() -> None:
    """Print the table."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"named in … of {seeds} seeds; paired runs:")
    print(f"{'':<22}" + "".join(f"{runs:>8}" for runs in RUNS))
    for name, noise in NOISES.items():
        if name.startswith("by_the"):
            continue  # by the clock: these runs take next to no time
        counts = [sum(named(noise, runs, seed) for seed in range(seeds)) for runs in RUNS]
        print(f"{name:<22}" + "".join(f"{count:>8}" for count in counts), flush=True)


if __name__ == "__main__":
    main()
