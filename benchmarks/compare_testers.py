"""Other testers beside dpwitness on the same mechanisms: `python benchmarks/compare_testers.py --tool NAME`.

Each mechanism of `testers/mechanisms.py` claims 0.7-DP, which each tester tests at level .05. Another tester runs from
a checkout (`--source`) in an environment of its own, which pip makes at the first use. The CPU time is that of the
process and its children, without imports. `--join` adds the columns of other testers, from the files that `--json`
wrote.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

import dpwitness as dpw

TESTERS = Path(__file__).parent / "testers"
sys.path[:0] = [str(TESTERS), str(TESTERS.parents[1])]

from mechanisms import CASES, Case  # noqa: E402
from museum.environments import EnvironmentFailed, environment  # noqa: E402
from reporting import EPSILON, LEVEL  # noqa: E402

from results import Table, finish, parser_of  # noqa: E402


@dataclass(frozen=True, slots=True, kw_only=True)
class Tester:
    """Another tester: its code and the environment that it needs."""

    repository: str
    commit: str  # the commit that was measured
    pins: tuple[str, ...]
    package: str  # the folder of the checkout that goes on the path
    python: str  # the versions that it runs on


#: The other testers by name.
OTHERS = {
    "statdp": Tester(
        repository="https://github.com/cmla-psu/statdp",
        commit="d1f1e8f",
        pins=("numpy==2.2.6", "numba==0.61.2", "tqdm==4.67.1"),
        package=".",
        python="3.6 to 3.13",
    ),
    "dp-sniper": Tester(
        repository="https://github.com/eth-sri/dp-sniper",
        commit="ee087b2",
        pins=(
            *("numpy==2.2.6", "scipy==1.15.3", "pandas==2.3.3", "scikit-learn==1.7.2", "matplotlib==3.10.3"),
            *("torch==2.13.0", "tensorboard==2.19.0", "mmh3==5.1.0", "setuptools==80.9.0"),
        ),
        package=".",
        python="3.8 to 3.13",
    ),
    "dp-auditorium": Tester(
        repository="https://github.com/google/differential-privacy",
        commit="b5b0286",
        pins=(
            *("numpy==1.26.3", "scipy==1.11.4", "tensorflow-cpu==2.15.0", "tensorflow-probability==0.23.0"),
            *("etils[epath,epy]==1.5.2", "absl-py==1.0.0", "typing-extensions==4.9.0", "setuptools==69.0.3"),
        ),
        package="python/dp_auditorium",
        python="3.9 to 3.11",
    ),
    "dp-recorder": Tester(
        repository="https://github.com/ObliviousAI/dp-recorder",
        commit="85d189e",
        pins=(
            *("numpy==1.26.4", "scipy==1.13.1", "pandas==2.2.3", "scikit-learn==1.6.1", "tqdm==4.67.1"),
            *("matplotlib==3.10.3", "seaborn==0.13.2", "graphviz==0.20.3", "dp-accounting==0.4.4", "rich==14.0.0"),
        ),
        package="src",
        python="3.10 to 3.11",
    ),
}
#: The name of this project among the testers.
OWN = "dpwitness"
#: Paired confirm runs of the lower bounds of dpwitness: as many as DP-Sniper gets here.
BOUND_RUNS = 1_000_000


def main() -> int:
    """Run one tester, and print a table of its answers and earlier answers; 2 if the tester cannot be run."""
    given = _arguments()
    names = given.mechanism or list(CASES)
    rows, earlier = [], [row for file in given.join for row in json.loads(file.read_text(encoding="utf-8"))]
    try:
        for row in _own(names, given.seed) if given.tool == OWN else _other(given.tool, given, names):
            rows.append({"tool": given.tool, **row})
            print(f"{row['mechanism']}: {_cell(row)}", flush=True)
    except EnvironmentFailed as error:
        versions = OTHERS[given.tool].python
        print(f"{given.tool} runs on Python {versions}; its environment cannot be made: {error}", file=sys.stderr)
        return 2
    print(f"{sum(row['cpu_seconds'] for row in rows):.1f} CPU s in all\n")
    cells = {(row["mechanism"], row["tool"]): _cell(row) for row in earlier + rows}
    tools = list(dict.fromkeys(tool for _, tool in cells))
    table = Table("mechanism", "true ε", *tools)
    for name in names:
        table.add(name, CASES[name].true_epsilon, *(cells.get((name, tool), "–") for tool in tools))
    text = f"Claimed is {EPSILON}-DP, tested at level {LEVEL}. Bold: refuted. Behind the semicolon: CPU seconds."
    finish(given, "Other testers", text, table, rows)
    return 0 if len(rows) == len(names) else 2


def _cell(row: dict[str, Any]) -> str:
    found = f"**{row['found']}**" if row["refuted"] else row["found"]
    return f"{found}; {row['cpu_seconds']:.1f}"


def _arguments() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--tool", required=True, choices=[OWN, *OTHERS])
    parser.add_argument("--join", type=Path, nargs="+", default=[], metavar="FILE", help="columns of earlier --json")
    parser.add_argument("--source", type=Path, metavar="DIR", help="a checkout of the tool's repository")
    parser.add_argument("--mechanism", action="append", choices=list(CASES), metavar="NAME", help="only this one")
    parser.add_argument("--seed", type=int, default=1, help="of dpwitness; the others draw anew (default: 1)")
    parser.add_argument("--environments", type=Path, metavar="DIR", default=user_cache_path("dpwitness") / "testers",
                        help="the environments' folder (default: %(default)s)")  # fmt: skip
    given = parser.parse_args()
    if given.tool in OTHERS:
        tester = OTHERS[given.tool]
        if given.source is None or not (given.source / tester.package).is_dir():
            parser.error(
                f"--source={given.source} must be a checkout of {tester.repository} (measured at {tester.commit})"
            )
    return given


def _other(tool: str, asked: argparse.Namespace, names: list[str]) -> Iterator[dict[str, Any]]:
    """The answers of another tester, one for each mechanism, as they come."""
    tester = OTHERS[tool]
    python = environment(asked.environments / tool, tester.pins)
    path = os.pathsep.join((str(TESTERS), str((asked.source / tester.package).resolve())))
    settings = os.environ | {
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TQDM_DISABLE": "1",
    }
    program = TESTERS / f"run_{tool.replace('-', '_')}.py"
    with subprocess.Popen(
        [python, str(program), *names], env=settings, stdout=subprocess.PIPE, stderr=sys.stderr, text=True
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith('{"mechanism"'):  # other lines are prints of the tester
                yield json.loads(line)


def _own(names: list[str], seed: int) -> Iterator[dict[str, Any]]:
    """The answers of dpwitness: the verdict of a check at default settings except the level, and a lower bound."""
    for name in names:
        case = CASES[name]
        options = {"epsilon": EPSILON, "neighbours": _relation(case), "alpha": LEVEL, "seed": seed, "workers": 1}
        before = time.process_time()
        verdict = dpw.check(case.one, **options)
        seconds = time.process_time() - before
        bound = dpw.bound(case.one, runs=BOUND_RUNS, **options)
        more = time.process_time() - before - seconds
        found = f"ε ≥ {bound.epsilon_lower_bound:.3f} ({more:.1f} s)"
        yield {"mechanism": name, "refuted": verdict.refuted, "found": found, "cpu_seconds": round(seconds, 2)}


def _relation(case: Case) -> Any:
    if case.differ == "bit":
        return dpw.bits(1)
    return dpw.histogram(case.inputs) if case.differ == "one" and case.inputs > 1 else dpw.queries(case.inputs)


if __name__ == "__main__":
    sys.exit(main())
