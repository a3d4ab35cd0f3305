"""How often a suite of 200 correct mechanisms raises an alarm, and whether a 10 % error hidden in it is found.

    python benchmarks/demo_suite.py [SEEDS] [MAX_RUNS]

Each seed is one pytest session of `assert_private` calls at the exact claim; the first is repeated on two workers and
compared verdict for verdict. The hidden error is looked for under the profile nightly; that session runs its test
alone, with the α and the seed that it has in the whole suite.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

SUITE = """
import numpy as np
import pytest
import dpwitness as dpw

EPSILONS = [0.25 * (k + 1) for k in range(10)]
PLACES = range(5)


def laplace(rng, q, epsilon, size):
    return q[0] + rng.laplace(0, 1 / epsilon, size=size)


def cells(rng, counts, epsilon, size):
    return counts + rng.laplace(0, 1 / epsilon, size=(size, len(counts)))


def plain(rng, q, epsilon):
    return q[0] + (rng.standard_exponential() - rng.standard_exponential()) / epsilon


def response(rng, bits, epsilon):
    truth = rng.random() < np.exp(epsilon) / (1 + np.exp(epsilon))
    return bits[0] if truth else 1 - bits[0]


def hidden(rng, q, epsilon, size):
    return q[0] + rng.laplace(0, 0.9 / epsilon, size=size)  # 10 % too little


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    ("mechanism", "neighbours"),
    [
        (laplace, dpw.queries(1)), (cells, dpw.histogram(3)), (plain, dpw.queries(1)), (response, dpw.bits(1)),
    ],
)
def test_correct(assert_private, mechanism, neighbours, epsilon, place):
    assert_private(mechanism, epsilon=epsilon, neighbours=neighbours, suppress="low_power")
"""
HIDDEN = """

def test_hidden(assert_private):
    assert_private(hidden, epsilon=1.0, neighbours=dpw.queries(1))
"""


def session(folder: Path, *options: str) -> list[dict]:
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-o", "dp_database=none", f"--dp-report={report}", *options]
    subprocess.run([*command, str(folder)], cwd=folder, capture_output=True, check=False)
    return sorted(json.loads(report.read_text())["assertions"], key=lambda entry: entry["test"])


def told(entries: list[dict]) -> list[tuple]:
    return [(e["test"], e["verdict"], e.get("log_e_value"), e.get("runs"), e.get("seed")) for e in entries]


def main(seeds: int = 20, runs: str = "1e6") -> None:
    folder = Path(tempfile.mkdtemp())
    test = folder / "test_suite.py"
    test.write_text(SUITE)
    alarms, total, seconds = 0, 0, 0.0
    for seed in range(seeds):
        entries = session(folder, f"--dp-seed={seed}", f"--dp-runs={runs}")
        if len(entries) != 200:
            raise SystemExit(f"seed {seed}: {len(entries)} assertions ran, not 200")
        failed = [e for e in entries if e["verdict"] != "not-refuted"]
        alarms, total = alarms + len(failed), total + len(entries)
        seconds += sum(e.get("seconds", 0) for e in entries)
        for entry in failed:
            print("  failed:", entry["test"], entry["verdict"], entry.get("reason"))
        if seed == 0:
            two = session(folder, f"--dp-seed={seed}", f"--dp-runs={runs}", "-n", "2")
            print(f"serial and -n 2 agree verdict for verdict: {told(two) == told(entries)}", flush=True)
        print(f"seed {seed}: {len(entries)} assertions, {len(failed)} failures", flush=True)
    print(f"{total} assertions of correct mechanisms, {alarms} failures, {seconds:.0f} s in checks")
    test.write_text(SUITE + HIDDEN)
    found = 0
    for seed in range(seeds):
        entries = session(
            folder, f"--dp-seed={seed}", "--dp-profile=nightly", "-k", "hidden", "-o", "dp_family_size=201"
        )
        found += [e["verdict"] for e in entries] == ["violated"]
    print(f"the hidden error was found in {found} of {seeds} seeds under the profile nightly")


if __name__ == "__main__":
    main(*(kind(text) for kind, text in zip((int, str), sys.argv[1:], strict=False)))
