"""Run the museum: `python -m museum [NAME …]`.

The exit code is 0 if every verdict is as expected, 1 if some verdict is not, and 2 for names that no exhibit has.
"""

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from dpwitness.files import write_atomically
from museum.environments import usual_folder
from museum.exhibit import Exhibit, exhibits
from museum.table import line, markdown
from museum.visit import Row, Visit


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the exhibits that are named, or all, and return the exit code."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    known = exhibits()
    unknown = sorted(set(asked.names) - set(known))
    if unknown:
        parser.error(f"no exhibit is called {', '.join(unknown)}: see --list")
    if min(asked.seeds, asked.jobs) < 1:
        parser.error("--seeds and --jobs must be at least 1")
    chosen = {name: known[name] for name in asked.names or known}
    if asked.list:
        for name, exhibit in chosen.items():
            print(f"{name:36} {exhibit.release:30} {exhibit.kind}: {exhibit.fault}")
        return 0
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        witnesses = Path(asked.witnesses or temporary)
        witnesses.mkdir(parents=True, exist_ok=True)
        visit = Visit(environments=Path(asked.environments), witnesses=witnesses, seeds=asked.seeds)
        rows: list[Row] = []
        for row in _rows(visit, list(chosen.values()), asked.jobs):
            rows.append(row)
            print(line(row), flush=True)
            _write(asked, rows)
    wrong = sorted(row.name for row in rows if row.right < len(row.checks))
    count = f"{len(rows)} exhibits, {len({row.release.partition('==')[0] for row in rows})} packages"
    print(
        f"{count}, {time.perf_counter() - started:.0f} s: "
        + (f"not expected: {', '.join(wrong)}" if wrong else "as expected")
    )
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m museum", description="Check released packages against their claims."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="exhibits (default: all)")
    parser.add_argument("--list", action="store_true", help="list the exhibits without running them")
    for name, meaning in (("--seeds", "checks of each release"), ("--jobs", "exhibits that run at the same time")):
        parser.add_argument(name, type=int, default=1, metavar="N", help=f"number of {meaning} (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the rows to a file, after each exhibit")
    parser.add_argument("--markdown", metavar="FILE", help="write the table to a file, after each exhibit")
    parser.add_argument("--witnesses", metavar="DIR", help="save the witnesses in this folder")
    parser.add_argument(
        "--environments", metavar="DIR", default=usual_folder(), help="the environments' folder (default: %(default)s)"
    )
    return parser


def _write(asked: argparse.Namespace, rows: Sequence[Row]) -> None:
    """Write the rows so far to the files that were asked for."""
    if asked.json is not None:
        write_atomically(asked.json, json.dumps([row.to_json() for row in rows], ensure_ascii=False, indent=1) + "\n")
    if asked.markdown is not None:
        write_atomically(asked.markdown, markdown(rows))


def _rows(visit: Visit, chosen: Sequence[Exhibit], jobs: int) -> Iterator[Row]:
    if jobs == 1 or len(chosen) <= 1:
        yield from map(visit.row, chosen)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(visit.row, exhibit) for exhibit in chosen]):
            yield done.result()


if __name__ == "__main__":
    sys.exit(main())
