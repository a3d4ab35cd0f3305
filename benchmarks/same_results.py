"""Differences between the results of two versions: 23 seeded cases of claims, mechanisms, inputs, doors and attacks.

    python benchmarks/same_results.py before.json            # in one version's environment
    python benchmarks/same_results.py after.json             # in the other's
    python benchmarks/same_results.py --compare before.json after.json

All of a result's JSON except times is compared. It takes a minute; names after the file choose cases.
"""

import contextlib
import io
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpwitness as dpw
from dpwitness.cli import main as command

SEED: dict[str, Any] = {"seed": 7, "workers": 1}
AGES = dpw.integers(0, 120)


def leaky(rng, rows):
    return len(rows) + rng.laplace(0, 0.5)


def column_sum(rng, frame):
    return float(frame["x"].sum()) + rng.laplace(0, 5.0)


def raising(rng, numbers):
    if not len(numbers):
        raise ValueError("empty")
    return float(rng.random())


def word(rng, numbers):
    return "yes" if rng.random() < (0.5 if len(numbers) % 2 else 0.6) else "no"


def check(mechanism, runs=200_000, **more):
    return lambda: dpw.check(mechanism, runs=runs, **SEED, **more).to_json()


def plain(mechanism, claim=1.0, runs=2000, **more):
    return check(mechanism, runs, claim=claim, search_runs=runs, **more)


def bound(mechanism, **more):
    return lambda: dpw.bound(mechanism, epsilon=1.0, runs=300_000, **SEED, **more).to_json()


def replayed():
    witness = dpw.check("histogram_wrong_scale", epsilon=0.5, runs=400_000, **SEED).witness
    return dpw.replay(witness, runs=400_000, seed=9, workers=1).to_json()


def line(*words):
    """A function that runs a command and returns its output and exit code."""

    def run():
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            code = command(list(words))
        with contextlib.suppress(ValueError):
            return {"exit": code, "json": json.loads(out.getvalue())}
        return {"exit": code, "text": out.getvalue()}

    return run


def attack(*words):
    return line("attack", *words, "--json", "--seed", "3")


CASES: dict[str, Callable[[], Any]] = {
    "svt": check("svt", epsilon=1.0),
    "isvt1": check("isvt1", epsilon=0.7),
    "isvt3": check("isvt3", 300_000, epsilon=0.7),
    "isvt4_renyi": check("isvt4", 300_000, epsilon=0.7, claim="rdp:8,0.4"),
    "gaussian": check("gaussian_mechanism", epsilon=1.0, delta=1e-5),
    "laplace_gdp": check("laplace_mechanism", 300_000, epsilon=1.0, claim="gdp:0.5"),
    "laplace_two_pairs": check("laplace_mechanism", epsilon=1.0, claim=dpw.PrivacyProfile([(0.2, 0.1), (0.8, 0.01)])),
    "laplace_trade_off": check("laplace_mechanism", epsilon=1.0, claim=dpw.TradeOff([(0, 1), (0.3, 0.5), (1, 0)])),
    "gptt": check("gptt", 50_000, epsilon=1.0),
    "bounded_subset_sums": check("bounded_subset_sums", 20_000, claim=1.0),
    "bound_svt": bound("svt"),
    "profile": lambda: dpw.profile("laplace_mechanism", epsilon=1.0, runs=200_000, **SEED).to_json(),
    "curve": lambda: dpw.curve("isvt1", epsilon=[0.7], claims=[0.2, 0.7, 1.5], runs=50_000, **SEED).to_json(),
    "replay": replayed,
    "plain_length": plain(leaky, neighbours=dpw.records(AGES)),
    "plain_frame": plain(column_sum, runs=1000, neighbours=dpw.records({"x": dpw.numbers(0, 10)}, form="dataframe")),
    "plain_errors": plain(raising, runs=1000, neighbours=dpw.records(AGES), errors="outcome"),
    "plain_words": plain(word, 0.05, 3000, neighbours=dpw.records(AGES)),
    "command_check": line("check", "isvt1", "--epsilon", "0.7", "--runs", "100000", "--seed", "5", "--json"),
    "attack_bits": attack("subset_sum", "--size", "32", "--error", "2"),
    "attack_allowed": attack("subset_sum", "--allowed-queries", "0.25"),
    "attack_table": attack("table_builder"),
    "attack_thresholds": attack("threshold_testing", "--repeat", "2", "--epsilon", "1"),
}


def without_times(value: Any) -> Any:
    """A result without its times, which differ between two runs of one version."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key != "seconds"}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def differences(before: Any, after: Any, place: str = "") -> list[str]:
    """The differences of two results, a line each."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted({*before, *after})
        return [x for k in keys for x in differences(before.get(k), after.get(k), f"{place}.{k}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        both = enumerate(zip(before, after, strict=True))
        return [line for k, (x, y) in both for line in differences(x, y, f"{place}[{k}]")]
    return [] if before == after else [f"  {place}: {str(before)[:150]} → {str(after)[:150]}"]


def compare(before: str, after: str) -> int:
    """Print the differences of two files; return the number of cases that differ."""
    first, second = (json.loads(Path(file).read_text()) for file in (before, after))
    lines = {name: differences(result, second[name]) for name, result in first.items() if name in second}
    differing = [name for name, found in lines.items() if found]
    for name in differing:
        print(name, *lines[name], sep="\n")
    print(f"{len(lines)} cases, {len(differing)} differ")
    return len(differing)


def run(file: str, *names: str) -> None:
    """Run the named cases, or all cases, and write their results."""
    warnings.simplefilter("ignore")
    results = {}
    for name in names or CASES:
        started = time.perf_counter()
        results[name] = without_times(json.loads(json.dumps(CASES[name]())))
        print(f"{name:26} {time.perf_counter() - started:6.1f} s  {str(results[name])[:80]}", flush=True)
    Path(file).write_text(json.dumps(results))


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        sys.exit(compare(*sys.argv[2:4]) > 0)
    run(*sys.argv[1:])
