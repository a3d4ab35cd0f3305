"""The time, memory and traffic of a check against the number of runs and of the workers of a Dask cluster.

    python benchmarks/growth.py --runs 1e9 --workers 1 2 4

"runs": checks of compiled code on one thread, of 10⁵ confirm runs and up to a hundredth of `--runs`, in powers of ten.
"workers": runs on a cluster, of which the scheduler and the workers are processes of their own on this machine.
"""

import argparse
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

import dpwitness as dpw
from dpwitness.events import Interval
from dpwitness.evidence import Counts
from dpwitness.mechanisms.catalog import load
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.neighbours import Pair
from dpwitness.runs import Dispatcher, Runner, cluster_of

PAIR = Pair(np.zeros(10), np.ones(10))
EVENT = Interval(coordinate=0, low=0.5)
#: Where Linux' tcp_info holds the bytes that were acknowledged and received.
BYTES = 120


def memory() -> float:
    """The memory of this process now, MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def traffic() -> int:
    """Bytes sent and received by all TCP connections of this process that are open."""
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
    """A scheduler with so many workers of one thread; its address."""
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
    """Let whoever runs the mechanism compile it, and have the workers fetch it."""
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


def print_growth(most: float) -> None:
    """Print the seconds of checks of 10⁵ runs and more, and the peak of the memory of this process."""
    runs = 100_000
    while runs <= max(most, 100_000):
        started = time.process_time()
        verdict = dpw.check(
            "laplace_mechanism", claim=1.0, parameters={"epsilon": 0.9}, runs=runs, search_runs=100_000,
            max_time=36_000, workers=1, seed=1,
        )  # fmt: skip
        assert verdict.counts.runs == runs
        seconds = time.process_time() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(f"{runs:.0e} runs {seconds:7.1f} s  {1e9 * seconds / runs:8.1f} ns a run  peak {peak:.0f} MB", flush=True)
        runs *= 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=float, default=1e9, help="paired runs of svt (default 1e9)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="worker processes (default 1 2 4)")
    given = parser.parse_args()
    runs = int(given.runs)
    print_growth(runs / 100)
    mechanism = as_mechanism(load("svt"), PAIR.data, epsilon=1.0)
    here = Runner(mechanism=mechanism, seed=1, workers=1)
    ready(here)
    expected, alone, largest = confirmed(here, runs)
    print(f"{runs:.3g} paired runs of svt; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"one thread {alone:7.1f} s  {1e9 * alone / runs:6.1f} ns a paired run  memory {largest:5.0f} MB", flush=True)
    for workers in given.workers:
        with scheduler(workers) as address:
            pool = Dispatcher(mechanism, cluster_of(address, 1), seed=1)
            runner = Runner(mechanism=mechanism, seed=1, workers=1, pool=pool)
            ready(runner)
            cpu, before = time.process_time(), traffic()
            counts, seconds, largest = confirmed(runner, runs)
            sent = traffic() - before
            assert counts == expected, "the counts must not depend on where they were made"
            print(
                f"{workers} workers  {seconds:7.1f} s  {alone / seconds:5.2f} × one thread  memory {largest:5.0f} MB  "
                f"traffic {sent / 1e6:.2f} MB ({1e3 * sent / runs:.2f} MB a 10⁹ runs)  "
                f"processor time of this process {time.process_time() - cpu:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
