"""Run the museum: `python -m museum [NAME …]`.

The exit code is 0 if every verdict is the expected one, 1 if one is not, and 2 for names that no exhibit has.
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
    chosen = {name: known[name] for name in asked.names or known}
    if asked.package is not None:
        chosen = {name: one for name, one in chosen.items() if one.package.lower() == asked.package.lower()}
        if not chosen:
            parser.error(f"no exhibit is of the package {asked.package}: see --list")
    if asked.list:
        for name, exhibit in chosen.items():
            print(f"{name:36} {exhibit.release:30} {exhibit.kind}: {exhibit.fault}")
        return 0
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        witnesses = Path(asked.witnesses or temporary)
        witnesses.mkdir(parents=True, exist_ok=True)
        visit = Visit(environments=Path(asked.environments), witnesses=witnesses, seeds=asked.seeds)
        written = _written(parser, asked) if asked.resume else {}
        made = {
            name: written[name]
            for name, exhibit in chosen.items()
            if name in written and visit.has_made(written[name], exhibit)
        }
        if made:
            print(f"{len(made)} of {len(chosen)} rows are in {asked.json}", flush=True)
            _write(asked, written, made)
        for row in _rows(visit, [exhibit for name, exhibit in chosen.items() if name not in made], asked.jobs):
            made[row.name] = row
            print(line(row), flush=True)
            _write(asked, written, made)
    rows = made.values()
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
    parser.add_argument("--package", metavar="NAME", help="only exhibits of this package")
    parser.add_argument(
        "--seeds", type=_positive, default=1, metavar="N", help="number of checks of each release (default: 1)"
    )
    parser.add_argument(
        "--jobs",
        type=_positive,
        default=1,
        metavar="N",
        help="number of exhibits that run at the same time (default: 1)",
    )
    parser.add_argument("--json", metavar="FILE", help="write the rows to a file, after each exhibit")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="skip exhibits with a row in the --json FILE for the same package file, releases, version and seeds",
    )
    parser.add_argument("--markdown", metavar="FILE", help="write the table to a file, after each exhibit")
    parser.add_argument("--witnesses", metavar="DIR", help="save the witnesses in this folder")
    parser.add_argument(
        "--environments", metavar="DIR", default=usual_folder(), help="the environments' folder (default: %(default)s)"
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _written(parser: argparse.ArgumentParser, asked: argparse.Namespace) -> dict[str, Row]:
    """The rows of the JSON file by name; none where there is no file."""
    if asked.json is None:
        parser.error("--resume needs --json FILE, whose rows it takes")
    try:
        rows = [Row.from_json(held) for held in json.loads(Path(asked.json).read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        parser.error(f"{asked.json} holds no rows of the museum ({error}): give another file, or leave out --resume")
    return {row.name: row for row in rows}


def _write(asked: argparse.Namespace, written: dict[str, Row], made: dict[str, Row]) -> None:
    """Write the rows so far; those that were in the JSON file stay there until the same exhibit has another."""
    if asked.json is not None:
        held = [row.to_json() for row in (written | made).values()]
        write_atomically(asked.json, json.dumps(held, ensure_ascii=False, indent=1) + "\n")
    if asked.markdown is not None:
        write_atomically(asked.markdown, markdown(made.values()))


def _rows(visit: Visit, chosen: Sequence[Exhibit], jobs: int) -> Iterator[Row]:
    if jobs == 1 or len(chosen) <= 1:
        yield from map(visit.row, chosen)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(visit.row, exhibit) for exhibit in chosen]):
            yield done.result()


if __name__ == "__main__":
    sys.exit(main())
