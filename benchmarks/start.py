"""The start-up time of processes: `python benchmarks/start.py [--rounds 5] [--against PYTHON]`.

Each round runs whole processes one after the other, so that all of them see the same machine: a check that another
process has compiled, the same check with nothing compiled, the import, `--version`, and a pytest session of one empty
test without and with the plugin. The table has processor and clock time, minimum and median.

`--against` names the interpreter of another version, whose processes run in turn with ours; ratios are our time by its
time in the same round. Bytecode is kept, as in an installed package. It takes two minutes, or ten with `--against`.
"""

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from results import Table, finish, parser_of

CHECK = ("-m", "dpwitness", "check", "isvt3", "--epsilon", "0.7", "--quiet", "--seed", "1")
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
#: The arguments of each process, and the exit code that it must have.
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


def measured(pythons: list[str], rounds: int) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Seconds by interpreter and command, one entry a round; an uncounted round comes first."""
    times: dict[str, dict[str, list[tuple[float, float]]]] = {one: {name: [] for name in COMMANDS} for one in pythons}
    with tempfile.TemporaryDirectory() as root:
        folders = {python: Path(root) / str(k) for k, python in enumerate(pythons)}
        for folder in folders.values():
            folder.mkdir()
            (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        for number, name in itertools.product(range(rounds + 1), COMMANDS):
            for python, folder in folders.items():
                if number or name != "cold process":
                    seconds = timed(python, name, folder)
                    times[python][name] += [seconds] if number else []
    return times


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", metavar="PYTHON", help="an interpreter that has another version")
    given = parser.parse_args()
    times = measured([sys.executable, *([given.against] if given.against else [])], given.rounds)
    table = Table("process", "processor s: minimum, median", "clock s: minimum, median", "processor, by the other's")
    for name in COMMANDS:
        processor, clock = zip(*times[sys.executable][name], strict=True)
        ratio = ""
        if given.against:
            other = [theirs for theirs, _ in times[given.against][name]]
            ratio = f"{statistics.median(a / b for a, b in zip(processor, other, strict=True)):.2f}"
        table.add(name, *(f"{min(one):.3f}, {statistics.median(one):.3f}" for one in (processor, clock)), ratio)
    text = f"Seconds of whole processes, {given.rounds} rounds; a cold process has no compiled code yet."
    finish(given, "Start of a process", text, table, times)


if __name__ == "__main__":
    main()
