"""The speed of compiled runs beside loops written by hand, and the start of processes.

    python benchmarks/speed.py runs|start [--rounds 5] [--json FILE]

`runs`: a loop by hand runs a mechanism on both inputs with independent draws and counts one event: no rows, no arrays,
no choice of the event at run time. It draws by NumPy's generator as a user would (a Laplace number is the difference of
two exponentials, twice as fast as `Generator.laplace`), or by `dpwitness.noise`, as our runs do. Loops and our runs, of
one worker, alternate in one process; each loop is written out, as a common loop with inlined events is up to twice as
slow.

`start`: each round runs whole processes one after the other: a check that another process has compiled, the same check
with nothing compiled, the import, `--version`, and a pytest session of one empty test without and with the plugin.
Bytecode is kept, as in an installed package.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

from dpwitness import noise
from dpwitness.events import Event, Interval, OutcomeSet
from dpwitness.mechanisms.catalog import load
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.runs import Runner
from results import Table, finish, parser_of

EPSILON = 0.7
#: Processor seconds of each loop in a round.
SECONDS = 0.3
#: A loop by hand for a function that draws Laplace noise; it returns the counts n00, n10, n01, n11.
ByHand = Callable[[Callable[..., Any]], Callable[..., Any]]


@numba.njit(nogil=True, forceinline=True)
def numpy_laplace(rng, scale):
    return scale * (rng.standard_exponential() - rng.standard_exponential())


def svt_by_hand(laplace):
    @numba.njit(nogil=True)
    def loop(rng, data, neighbour, runs):
        """The event ⊥⊥⊤."""
        counts = np.zeros(4, np.int64)
        for _ in range(runs):
            inside = 0
            for side in range(2):
                queries = data if side == 0 else neighbour
                threshold = 0.5 + laplace(rng, 2 / EPSILON)
                length = 0
                stopped = False
                for i in range(len(queries)):
                    length += 1
                    if queries[i] + laplace(rng, 4 / EPSILON) >= threshold:
                        stopped = True
                        break
                if stopped and length == 3:
                    inside += 1 + side
            counts[inside] += 1
        return counts

    return loop


def histogram_by_hand(laplace):
    @numba.njit(nogil=True)
    def loop(rng, data, neighbour, runs):
        """The first cell at least 1."""
        counts = np.zeros(4, np.int64)
        for _ in range(runs):
            inside = 0
            for side in range(2):
                cells = data if side == 0 else neighbour
                for i in range(len(cells)):
                    noisy = cells[i] + laplace(rng, 1 / EPSILON)
                    if i == 0 and noisy >= 1:
                        inside += 1 + side
            counts[inside] += 1
        return counts

    return loop


QUERIES = Pair(np.zeros(10), np.array([1.0] * 9 + [-1.0]))
CELLS = Pair(np.ones(10, np.int64), np.array([2] + [1] * 9))
#: By target: a pair, an event, and the loop by hand.
MECHANISMS: dict[str, tuple[Pair, Event, ByHand]] = {
    "svt": (QUERIES, OutcomeSet([[0, 0, 1]]), svt_by_hand),
    "histogram": (CELLS, Interval(coordinate=0, low=1.0), histogram_by_hand),
}


def loops_of(target: str) -> dict[str, Callable[[int, int], Any]]:
    """The loops by hand and our runs, as functions of a seed and a number of paired runs that return the counts."""
    pair, event, make = MECHANISMS[target]
    mechanism = as_mechanism(load(target), pair.data, parameters={"epsilon": EPSILON})

    def ours(seed, runs, coupled):
        *_, (counts,) = Runner(mechanism=mechanism, seed=seed, workers=1).confirm(pair, [event], runs, coupled=coupled)
        return counts.n00, counts.n10, counts.n01, counts.n11

    def by_hand(laplace):
        loop = make(laplace)
        return lambda seed, runs: loop(np.random.Generator(np.random.SFC64(seed)), pair.data, pair.neighbour, runs)

    return {
        "by hand, NumPy's generator": by_hand(numpy_laplace),
        "by hand, dpwitness.noise": by_hand(numba.njit(forceinline=True)(noise.laplace)),
        "ours, coupled": lambda seed, runs: ours(seed, runs, True),
        "ours, independent": lambda seed, runs: ours(seed, runs, False),
    }


def nanoseconds(target: str, rounds: int) -> dict[str, list[float]]:
    """Processor nanoseconds of a paired run by loop, one entry a round."""
    loops = loops_of(target)
    counts, times = {}, {name: [] for name in loops}
    for loop in loops.values():
        loop(0, 2)  # compiles
    runs, first = 1 << 7, next(iter(loops.values()))
    while (seconds := processor_seconds(first, 0, runs)[0]) < SECONDS / 4:
        runs *= 2
    runs = int(runs * SECONDS / seconds)
    for seed in range(1, rounds + 1):
        for name, loop in loops.items():
            seconds, counts[name] = processor_seconds(loop, seed, runs)
            times[name].append(seconds / runs * 1e9)
    require_same_event(counts, runs)
    return times


def processor_seconds(loop: Callable[[int, int], Any], seed: int, runs: int) -> tuple[float, Any]:
    """The processor seconds of a loop, and its counts."""
    started = time.process_time()
    counts = loop(seed, runs)
    return time.process_time() - started, counts


def require_same_event(counts: dict[str, Any], runs: int) -> None:
    """Require that all loops count the same event: equal shares of each side, within six standard errors."""
    shares = {name: ((n10 + n11) / runs, (n01 + n11) / runs) for name, (_, n10, n01, n11) in counts.items()}
    for name, pair in shares.items():
        for share, other in zip(pair, next(iter(shares.values())), strict=True):
            error = (max(share * (1 - share), 1 / runs) * 2 / runs) ** 0.5
            if abs(share - other) > 6 * error:
                raise SystemExit(f"{name} counts another event: {shares}")


CHECK = ("-m", "dpwitness", "check", "isvt3", "--epsilon", "0.7", "--quiet", "--seed", "1")
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_nothing.py")
#: The arguments of each process, and the exit code that it must have.
PROCESSES = {
    "second process": (CHECK, 1),
    "cold process": (CHECK, 1),
    "import dpwitness": (("-c", "import dpwitness"), 0),
    "--version": (("-m", "dpwitness", "--version"), 0),
    "pytest without the plugin": ((*PYTEST, "-p", "no:dpwitness"), 0),
    "pytest with the plugin": (PYTEST, 0),
    "python": (("-c", "pass"), 0),
}


def process_seconds(name: str, folder: Path) -> tuple[float, float]:
    """Processor and clock seconds of one process and its children."""
    arguments, expected = PROCESSES[name]
    own = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as fresh:
        caches = Path(fresh) if name == "cold process" else folder / "caches"
        own |= {"DPWITNESS_CACHE_DIR": f"{caches}/drivers", "NUMBA_CACHE_DIR": f"{caches}/numba"}
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run([sys.executable, *arguments], env=own, cwd=folder, capture_output=True, text=True)
        after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
    if done.returncode != expected:
        raise SystemExit(f"python {' '.join(arguments)}: exit code {done.returncode}: {done.stderr}")
    return sum(after[:2]) - sum(before[:2]), wall


def start(given: Any) -> None:
    times: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        for number in range(given.rounds + 1):  # the first round fills the caches and is not counted
            for name in PROCESSES:
                if number or name != "cold process":
                    times.setdefault(name, []).append(process_seconds(name, Path(folder)))
    table = Table("process", "processor s: minimum, median", "clock s: minimum, median")
    for name in PROCESSES:
        counted = times[name][-given.rounds :]
        table.add(name, *(f"{min(one):.3f}, {statistics.median(one):.3f}" for one in zip(*counted, strict=True)))
    text = f"Seconds of whole processes, {given.rounds} rounds; a cold process has no compiled code yet."
    finish(given, "Start of a process", text, table, times)


def runs(given: Any) -> None:
    rows = {target: nanoseconds(target, given.rounds) for target in MECHANISMS}
    table = Table("mechanism", *rows["svt"])
    for target, times in rows.items():
        table.add(f"`{target}`, 10 numbers", *(f"{min(one):.0f}" for one in times.values()))
    text = f"Least processor nanoseconds of a paired run in {given.rounds} rounds, "
    text += f"numpy {np.__version__}, numba {numba.__version__}."
    finish(given, "Compiled runs beside loops by hand", text, table, rows)


PARTS = {"runs": runs, "start": start}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    PARTS[given.part](given)


if __name__ == "__main__":
    main()
