"""The speed of compiled runs, the start of processes, and the growth of a cluster.

    python benchmarks/speed.py runs|start [--rounds 5]
    python benchmarks/speed.py cluster [--runs 1e9] [--workers 1 2 4]

`runs`: a loop by hand runs `svt` on both inputs with independent draws and counts one event: no rows, no arrays, no
choice of the event at run time. It draws by NumPy's generator as a user would (a Laplace number is the difference of
two exponentials, twice as fast as `Generator.laplace`), or by `dpwitness.noise`, as our runs do. Loops and our runs, of
one worker, alternate in one process.

`start`: each round runs whole processes one after the other: a check that another process has compiled, the same check
with nothing compiled, the import, `--version`, and a pytest session of one empty test without and with the plugin.
Bytecode is kept, as in an installed package.

`cluster`: the time of `svt`, and the memory, traffic and processor time of the main process, by the number of workers
of a Dask cluster whose scheduler and workers are processes of this machine.
"""

import contextlib
import os
import resource
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np

from dpwitness import noise
from dpwitness.events import OutcomeSet
from dpwitness.evidence import Counts
from dpwitness.mechanisms.catalog import load
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.runs import Dispatcher, Runner, cluster_of
from results import Table, finish, parser_of

#: The ε (nats) of `svt`.
EPSILON = 0.7
#: Processor seconds of each loop in a round.
SECONDS = 0.3
#: The pair of inputs of `svt`, ten query answers each.
PAIR = Pair(np.zeros(10), np.array([1.0] * 9 + [-1.0]))
#: The event ⊥⊥⊤ of `svt`.
EVENT = OutcomeSet([[0, 0, 1]])


def svt() -> Mechanism:
    """The bundled `svt` on ten numbers."""
    return as_mechanism(load("svt"), PAIR.data, parameters={"epsilon": EPSILON})


@numba.njit(nogil=True, forceinline=True)
def numpy_laplace(rng, scale):
    return scale * (rng.standard_exponential() - rng.standard_exponential())


def by_hand(laplace: Callable[..., Any]) -> Callable[[int, int], Any]:
    """A loop by hand, a function of a seed and a number of paired runs that returns the counts n00, n10, n01, n11."""

    @numba.njit(nogil=True)
    def loop(rng, data, neighbour, runs):
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

    return lambda seed, runs: loop(np.random.Generator(np.random.SFC64(seed)), PAIR.data, PAIR.neighbour, runs)


def ours(coupled: bool) -> Callable[[int, int], Any]:
    """The runs of `svt` by dpwitness, a function like the loop of `by_hand`."""
    mechanism = svt()

    def loop(seed: int, runs: int) -> Any:
        *_, (counts,) = Runner(mechanism=mechanism, seed=seed, workers=1).confirm(PAIR, [EVENT], runs, coupled=coupled)
        return counts.n00, counts.n10, counts.n01, counts.n11

    return loop


def processor_seconds(loop: Callable[[int, int], Any], seed: int, runs: int) -> tuple[float, Any]:
    """The processor seconds of a loop, and its counts."""
    started = time.process_time()
    counts = loop(seed, runs)
    return time.process_time() - started, counts


def compiled_runs(given: Any) -> None:
    loops = {
        "by hand, NumPy's generator": by_hand(numpy_laplace),
        "by hand, dpwitness.noise": by_hand(numba.njit(forceinline=True)(noise.laplace)),
        "ours, coupled": ours(True),
        "ours, independent": ours(False),
    }
    times: dict[str, list[float]] = {name: [] for name in loops}
    shares = {}
    for loop in loops.values():
        loop(0, 2)  # compiles
    runs = int(1e6 * SECONDS / processor_seconds(loops["ours, coupled"], 0, 1_000_000)[0])
    for seed in range(1, given.rounds + 1):
        for name, loop in loops.items():
            seconds, (_, n10, _, n11) = processor_seconds(loop, seed, runs)
            times[name].append(seconds / runs * 1e9)
            shares[name] = (n10 + n11) / runs
    assert max(shares.values()) < 1.05 * min(shares.values()), f"the loops count different events: {shares}"
    table = Table("mechanism", *loops)
    table.add("`svt`, 10 numbers", *(f"{min(one):.0f}" for one in times.values()))
    text = f"Least processor nanoseconds of a paired run in {given.rounds} rounds, "
    text += f"numpy {np.__version__}, numba {numba.__version__}."
    finish(given, "Compiled runs beside loops by hand", text, table, times)


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


#: The offset, in bytes, of the numbers of bytes acknowledged and received in Linux's tcp_info.
BYTES = 120


def memory() -> float:
    """The memory of this process now, MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def traffic() -> int:
    """Bytes sent and received by all open TCP connections of this process."""
    total = 0
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{entry}").startswith("socket:"):
                with socket.socket(fileno=os.dup(int(entry))) as one:
                    told = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES + 16)
                total += sum(struct.unpack_from("QQ", told, BYTES))
    return total


@contextlib.contextmanager
def scheduler(workers: int) -> Iterator[str]:
    """The address of a scheduler with `workers` workers of one thread each."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        file = f"{folder}/scheduler.json"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        tools = [["scheduler", "--no-dashboard", "--port", "0", "--host", "127.0.0.1"]]
        tools += [["worker", "--nthreads", "1", "--no-dashboard", "--local-directory", folder] for _ in range(workers)]
        for name, *options in tools:
            line = [sys.executable, "-m", "dask", name, "--scheduler-file", file, *options]
            process = stack.enter_context(subprocess.Popen(line, **quiet))
            stack.callback(process.terminate)
        from distributed import Client

        while not Path(file).exists():
            time.sleep(0.1)
        with Client(scheduler_file=file, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)
            yield client.scheduler.address


def confirmed(runner: Runner, runs: int) -> tuple[Counts, float, tuple[str, str, str]]:
    """The counts of warm runs, their clock seconds, and the largest memory, traffic and processor time as text."""
    for _ in runner.confirm(PAIR, [EVENT], 1_000_000):  # compiles
        pass
    while runner.pool is not None and runner.pool.answered < runner.pool.workers:
        for _ in runner.confirm(PAIR, [EVENT], 20_000_000):  # until every worker has the mechanism
            pass
    largest, counts = memory(), Counts()
    started, cpu, before = time.perf_counter(), time.process_time(), traffic()
    for shards, totals in enumerate(runner.confirm(PAIR, [EVENT], runs)):
        counts = totals[0]
        if shards % 1024 == 0:
            largest = max(largest, memory())
    seconds, sent, used = time.perf_counter() - started, traffic() - before, time.process_time() - cpu
    return counts, seconds, (f"{largest:.0f}", f"{1e3 * sent / runs:.2f}", f"{1e9 * used / runs:.1f}")


def cluster(given: Any) -> None:
    runs, mechanism = int(given.runs), svt()
    expected, alone, (largest, *_) = confirmed(Runner(mechanism=mechanism, seed=1, workers=1), runs)
    table = Table("workers", "s", "by one thread", "memory, MB", "traffic for 10⁹ runs, MB", "processor s for 10⁹ runs")
    table.add("0 (one thread)", f"{alone:.1f}", 1, largest, "–", "all")
    for workers in given.workers:
        with scheduler(workers) as address:
            pool = Dispatcher(mechanism, cluster_of(address, 1), seed=1)
            runner = Runner(mechanism=mechanism, seed=1, workers=1, pool=pool)
            counts, seconds, costs = confirmed(runner, runs)
            assert counts == expected, "the counts must not depend on where they were made"
            table.add(workers, f"{seconds:.1f}", f"{alone / seconds:.2f}", *costs)
    machine = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    text = f"Compiled `svt` on ten queries, {runs:.3g} paired runs; memory and traffic of the main process; {machine}."
    finish(given, "Many workers", text, table)


PARTS = {"runs": compiled_runs, "start": start, "cluster": cluster}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=float, default=1e9, help="paired runs of `cluster` (default: 1e9)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="workers of `cluster` (1 2 4)")
    given = parser.parse_args()
    PARTS[given.part](given)


if __name__ == "__main__":
    main()
