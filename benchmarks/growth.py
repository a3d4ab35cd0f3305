"""The time, memory and traffic of the main process against the number of workers of a Dask cluster.

    python benchmarks/growth.py --runs 1e9 --workers 1 2 4

The scheduler and the workers are processes of their own on this machine.
"""

import contextlib
import os
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dpwitness.events import Interval
from dpwitness.evidence import Counts
from dpwitness.mechanisms.catalog import load
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.runs import Dispatcher, Runner, cluster_of
from results import Table, finish, parser_of

PAIR = Pair(np.zeros(10), np.ones(10))
EVENT = Interval(coordinate=0, low=0.5)
#: The offset of the bytes acknowledged and received in Linux' tcp_info.
BYTES = 120


def memory() -> float:
    """The memory of this process now, MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def traffic() -> int:
    """Bytes sent and received by all open TCP connections of this process."""
    total = 0
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if not os.readlink(f"/proc/self/fd/{entry}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(entry))) as one:
                told = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES + 16)
                total += sum(struct.unpack_from("QQ", told, BYTES))
    return total


@contextlib.contextmanager
def scheduler(workers: int) -> Iterator[str]:
    """The address of a scheduler with a number of workers of one thread each."""
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


def ready(runner: Runner) -> None:
    """Have the mechanism compiled here and fetched by all workers."""
    for _ in runner.confirm(PAIR, [EVENT], 1_000_000):
        pass
    while runner.pool is not None and runner.pool.answered < runner.pool.workers:
        for _ in runner.confirm(PAIR, [EVENT], 20_000_000):
            pass


def confirmed(runner: Runner, runs: int) -> tuple[Counts, float, float]:
    """The counts, the seconds, and the largest memory of this process meanwhile, MB."""
    largest = memory()
    started = time.perf_counter()
    counts = Counts()
    for shards, totals in enumerate(runner.confirm(PAIR, [EVENT], runs)):
        counts = totals[0]
        if shards % 1024 == 0:
            largest = max(largest, memory())
    return counts, time.perf_counter() - started, largest


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--runs", type=float, default=1e9, help="paired runs of svt (default 1e9)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="worker processes (default 1 2 4)")
    given = parser.parse_args()
    runs = int(given.runs)
    mechanism = as_mechanism(load("svt"), PAIR.data, epsilon=1.0)
    here = Runner(mechanism=mechanism, seed=1, workers=1)
    ready(here)
    expected, alone, largest = confirmed(here, runs)
    table = Table("workers", "s", "by one thread", "memory, MB", "traffic for 10⁹ runs, MB", "processor s for 10⁹ runs")
    table.add("0 (one thread)", f"{alone:.1f}", 1, f"{largest:.0f}", "–", "all")
    for workers in given.workers:
        with scheduler(workers) as address:
            pool = Dispatcher(mechanism, cluster_of(address, 1), seed=1)
            runner = Runner(mechanism=mechanism, seed=1, workers=1, pool=pool)
            ready(runner)
            cpu, before = time.process_time(), traffic()
            counts, seconds, largest = confirmed(runner, runs)
            sent, used = 1e3 * (traffic() - before) / runs, 1e9 * (time.process_time() - cpu) / runs
            assert counts == expected, "the counts must not depend on where they were made"
            table.add(
                workers, f"{seconds:.1f}", f"{alone / seconds:.2f}", f"{largest:.0f}", f"{sent:.2f}", f"{used:.1f}"
            )
    machine = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    text = f"Compiled `svt` on ten queries, {runs:.3g} paired runs; memory and traffic of the main process; {machine}."
    finish(given, "Many workers", text, table)


if __name__ == "__main__":
    main()
