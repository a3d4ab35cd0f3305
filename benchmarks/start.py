"""How long a process takes to start: `python benchmarks/start.py [--json FILE] [--plot FILE] [--against PYTHON]`.

Whole processes, one after the other in every round, so that all of them see the same machine: a check that was made
before by another process, the same with nothing compiled yet, the import, `--version`, and a pytest session of one
empty test without and with the plugin. Processor and clock time, minimum and median; ratios are of the same round.

`--against` names the interpreter of another version: its processes run in turn with ours, and ratios are ours by its.
Bytecode is kept, as pip keeps that of an installed package. Two minutes; ten with `--against`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHECK = ("-m", "dpwitness", "check", "isvt3", "--epsilon", "0.7", "--quiet", "--seed", "1")
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
#: What is run, and the exit code that it must have.
COMMANDS = {
    "second process": (CHECK, 1),
    "cold process": (CHECK, 1),
    "import dpwitness": (("-c", "import dpwitness"), 0),
    "--version": (("-m", "dpwitness", "--version"), 0),
    "pytest without the plugin": ((*PYTEST, "-p", "no:dpwitness", "test_nothing.py"), 0),
    "pytest with the plugin": ((*PYTEST, "test_nothing.py"), 0),
    "python": (("-c", "pass"), 0),
}


def timed(python: str, name: str, folder: Path) -> tuple[float, float]:
    """Processor and clock seconds of one process and its children."""
    arguments, expected = COMMANDS[name]
    own = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as fresh:
        caches = Path(fresh) if name == "cold process" else folder / "caches"
        own |= {"DPWITNESS_CACHE_DIR": f"{caches}/drivers", "NUMBA_CACHE_DIR": f"{caches}/numba"}
        began = time.perf_counter()
        process = subprocess.Popen(
            [python, *arguments], env=own, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        message = process.stderr.read() if process.stderr else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - began
    if process.returncode != expected:
        raise SystemExit(f"{python} {' '.join(arguments)}: exit code {process.returncode}: {message}")
    return used.ru_utime + used.ru_stime, wall


def measured(pythons: dict[str, str], rounds: int) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Seconds by version and command, one entry a round; an uncounted round comes first."""
    times: dict[str, dict[str, list[tuple[float, float]]]] = {v: {name: [] for name in COMMANDS} for v in pythons}
    with tempfile.TemporaryDirectory() as root:
        for version in pythons:
            (Path(root) / version).mkdir()
            (Path(root) / version / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        for number in range(rounds + 1):
            for name in COMMANDS:
                if number == 0 and name == "cold process":
                    continue
                for version, python in pythons.items():
                    seconds = timed(python, name, Path(root) / version)
                    if number:
                        times[version][name].append(seconds)
            print(f"round {number} of {rounds}", file=sys.stderr)
    return times


def least_and_middle(values: list[float]) -> dict[str, float]:
    """The minimum and the median."""
    return {"minimum": round(min(values), 4), "median": round(statistics.median(values), 4)}


def plot(summary: dict[str, dict[str, dict[str, dict[str, float]]]], path: str) -> None:
    """The processor times: a bar is the median, its mark the minimum."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    height = 0.8 / len(summary)
    for k, (version, results) in enumerate(summary.items()):
        places = [i + k * height for i in range(len(results))]
        processor = [result["processor"] for result in results.values()]
        axes.barh(places, [p["median"] for p in processor], height, label=f"{version}: median")
        axes.plot([p["minimum"] for p in processor], places, "k|", label="minimum" if k == 0 else None)
    axes.set_yticks(range(len(COMMANDS)), list(COMMANDS))
    axes.invert_yaxis()
    axes.set_xlabel("processor time of the whole process, seconds")
    axes.legend()
    figure.savefig(path)


def main() -> None:
    """Measure, and print a line for each command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", help="write all seconds, and what is printed")
    parser.add_argument("--plot", metavar="FILE", help="draw the processor times")
    parser.add_argument("--against", metavar="PYTHON", help="an interpreter that has another version")
    given = parser.parse_args()
    pythons = {"this": sys.executable, **({"other": given.against} if given.against else {})}
    times = measured(pythons, given.rounds)
    summary = {
        version: {
            name: {
                kind: least_and_middle([seconds[k] for seconds in rounds])
                for k, kind in enumerate(("processor", "clock"))
            }
            for name, rounds in results.items()
        }
        for version, results in times.items()
    }
    ratios: dict[str, dict[str, float]] = {}
    if given.against:
        for name, rounds in times["this"].items():
            both = zip(rounds, times["other"][name], strict=True)
            ratios[name] = least_and_middle([ours[0] / theirs[0] for ours, theirs in both])
    own = times["this"]
    both = zip(own["pytest with the plugin"], own["pytest without the plugin"], strict=True)
    plugin = least_and_middle([having[0] - lacking[0] for having, lacking in both])
    for name, result in summary["this"].items():
        ratio = f"   {ratios[name]['median']:.2f} of the other's" if name in ratios else ""
        processor, clock = result["processor"], result["clock"]
        print(
            f"{name:27} processor {processor['minimum']:.3f} / {processor['median']:.3f} s   "
            f"clock {clock['minimum']:.3f} / {clock['median']:.3f} s{ratio}"
        )
    print(f"the plugin adds {1000 * plugin['median']:.0f} ms to a session that does not use it")
    if given.json:
        text = json.dumps({"seconds": times, "summary": summary, "ratios": ratios, "plugin": plugin}, indent=1)
        Path(given.json).write_text(text)
    if given.plot:
        plot(summary, given.plot)


if __name__ == "__main__":
    main()
