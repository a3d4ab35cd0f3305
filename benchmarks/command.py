"""Outcomes a second of a program that answers requests: `python benchmarks/command.py [--seconds 2] [--cores 1]`.

The program is C, made by `cc`: Laplace noise from SplitMix64. With `--cores 1` it shares one core with dpwitness, so
that the figures are for both together. A line for each size of requests, and for each with and without seeds.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import dpwitness as dpw
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.resolve import as_mechanism

SOURCE = r"""
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static double exponential(double epsilon) {
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return -log(1 - ((z ^ (z >> 31)) >> 11) * 0x1p-53) / epsilon;
}

int main(int count, char **arguments) {
    double epsilon = atof(arguments[count - 1]);
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        double sum = 0;
        for (char *at = strchr(line, '[') + 1, *end; *at != ']'; at = end + strspn(end, ", "))
            sum += strtod(at, &end);
        long runs = atol(strstr(line, "\"runs\": ") + 8);
        for (state = strtoull(strstr(line, "\"seed\": ") + 8, NULL, 10); runs > 0; runs--)
            printf("%.17g\n", sum + exponential(epsilon) - exponential(epsilon));
        fflush(stdout);
    }
}
"""
BATCHES = (1, 16, 256, 4_096)
PAIR = dpw.pairs(([1, 1], [1])).given[0]


def made(folder: Path) -> Path | None:
    """The compiled program; None where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    (folder / "server.c").write_text(SOURCE)
    subprocess.run([compiler, "-O2", "server.c", "-o", "release", "-lm"], cwd=folder, check=True)
    return folder / "release"


def outcomes_per_second(program: Path, batch: int, *, seeded: bool, seconds: float) -> tuple[float, float]:
    """Outcomes a second of the clock, and microseconds of this process for each."""
    command = dpw.command([str(program), "1"], seeded=seeded, batch=batch)
    mechanism = as_mechanism(command, PAIR.data, neighbour=PAIR.neighbour)
    rng, runs, done = np.random.Generator(np.random.SFC64(1)), mechanism.shard, 0
    began, busy = time.perf_counter(), time.process_time()
    while (spent := time.perf_counter() - began) < seconds:
        mechanism.pair_outcomes(PairedRuns(pair=PAIR, order=rng.integers(0, 2, runs).astype(np.uint8)), rng)
        done += 2 * runs
    return done / spent, (time.process_time() - busy) / done * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each line")
    parser.add_argument("--cores", type=int, default=1, help="that both processes may use (Linux)")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])
    with tempfile.TemporaryDirectory() as folder:
        program = made(Path(folder))
        if program is None:
            sys.exit("there is no C compiler: install cc or gcc")
        for batch in BATCHES:
            for seeded in (False, True):
                rate, own = outcomes_per_second(program, batch, seeded=seeded, seconds=arguments.seconds)
                kind = "seeded" if seeded else "      "
                print(f"{batch:5} runs a request {kind} {rate:10,.0f} outcomes a second, {own:5.2f} µs each of ours")


if __name__ == "__main__":
    main()
