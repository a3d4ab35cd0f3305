"""A first verdict from a cold command line, and the second process: `python benchmarks/cold_start.py [--repeat 5]`.

Cold means that neither the mechanism nor our own kernels have ever been compiled: a fresh DPWITNESS_CACHE_DIR and a
fresh NUMBA_CACHE_DIR.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

COMMAND = [sys.executable, "-m", "dpwitness", "check", "isvt3", "--epsilon", "0.7", "--quiet"]


def timed(environment):
    started = time.perf_counter()
    done = subprocess.run(COMMAND, env=environment, capture_output=True, check=False)
    if done.returncode != 1:
        raise SystemExit(f"exit code {done.returncode}: {done.stderr.decode()}")
    return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    cold, warm = [], []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            own = {"DPWITNESS_CACHE_DIR": f"{folder}/drivers", "NUMBA_CACHE_DIR": f"{folder}/numba"}
            cold.append(timed(os.environ | own))
            warm.append(timed(os.environ | own))
    for name, times in (("cold", cold), ("second process", warm)):
        print(f"{name}: median {statistics.median(times):.2f} s, worst {max(times):.2f} s of {repeat}")


if __name__ == "__main__":
    main()
