"""Checks of known bugs in installed releases: `python benchmarks/known_bugs.py [NAME …] [--seed N] [--max-time S]`.

The bugs are the exhibits of the museum, checked in this process instead of in an environment of their own. Controls,
and exhibits whose release is not installed, are skipped. `--list` shows all bugs with their fault.
"""

import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import dpwitness as dpw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from museum.exhibit import Exhibit, exhibits

from results import Table, finish, parser_of

BUGS = [exhibit for exhibit in exhibits().values() if exhibit.kind != "control"]


def missing(bug: Exhibit) -> str | None:
    """The reason why the bug cannot be checked here; None if it can."""
    try:
        found = version(bug.package)
    except PackageNotFoundError:
        return f"skipped: {bug.package} is not installed: pip install {bug.release}"
    return None if f"{bug.package}=={found}" == bug.release else f"skipped: {found} is installed"


def result(bug: Exhibit, seed: int | None, max_time: float) -> str:
    """The result of one check, in words."""
    started = time.perf_counter()
    try:
        verdict = dpw.check(
            bug.function, claim=bug.claim, neighbours=bug.neighbours, max_time=max_time, seed=seed, **bug.options
        )
    except dpw.DPWitnessError as error:
        return f"error after {time.perf_counter() - started:.1f} s: {type(error).__name__}: {error}"
    head = f"{time.perf_counter() - started:5.1f} s, claim {bug.claim}"
    if not isinstance(verdict, dpw.Violation):
        return f"{head}: not refuted"
    witness = verdict.witness
    return f"{head}: REFUTED, at least {verdict.lower_bound:.3g}, {witness.description:.80}: {witness.pair!s:.150}"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="exhibits (default: all)")
    parser.add_argument("--list", action="store_true", help="list the bugs without running them")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--max-time", type=float, default=60.0)
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - {bug.name for bug in BUGS}):
        parser.error(f"no bug is called {', '.join(unknown)}: see --list")
    table, rows = Table("bug", "release", "fault" if given.list else "result"), []
    for bug in BUGS:
        if given.list or not given.names or bug.name in given.names:
            absent = None if given.list else missing(bug)
            text = bug.fault if given.list else result(bug, given.seed, given.max_time) if absent is None else absent
            table.add(bug.name, bug.release, text)
            rows.append({"bug": bug.name, "release": bug.release, "result": text})
    finish(given, "Bugs of released packages", f"Checks of at most {given.max_time:g} s.", table, rows)


if __name__ == "__main__":
    main()
