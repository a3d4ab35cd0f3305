"""The common parts of all benchmarks: options --json and --write, tables in Markdown, sections of RESULTS.md."""

import argparse
import json
import re
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scipy.stats import binom

from dpwitness.files import write_atomically

RESULTS = Path(__file__).with_name("RESULTS.md")


#: The options that all scripts have.
OUTPUT = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
OUTPUT.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
OUTPUT.add_argument("--write", action="store_true", help="replace the section of benchmarks/RESULTS.md")


def parser_of(doc: str | None, *, seeds: int | None = None, workers: int | None = None) -> argparse.ArgumentParser:
    """A parser whose description is the docstring of a script, with the options of all scripts.

    `seeds`, `workers`: the defaults of the options `--seeds` and `--workers`, for scripts that have these.
    """
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=kind, parents=[OUTPUT])
    for name, default, meaning in (("--seeds", seeds, "seeds of each row"), ("--workers", workers, "processes")):
        if default is not None:
            parser.add_argument(name, type=int, default=default, metavar="N", help=f"{meaning} (default: {default})")
    return parser


def most_false_alarms(seeds: int, alpha: float) -> int:
    """The number of false alarms in `seeds` checks that a test of level α exceeds in one series of a thousand."""
    return int(binom.isf(1e-3, seeds, alpha))


class Table:
    """A table in Markdown; each line is printed as soon as it is added. `rows`: the cells by title, for `--json`."""

    def __init__(self, *titles: str) -> None:
        self.titles = titles
        self.rows: list[dict[str, object]] = []
        self.lines: list[str] = []
        self._print(*titles)
        self._print(*["---"] * len(titles))

    def add(self, *cells: object) -> None:
        """Add a row."""
        self.rows.append(dict(zip(self.titles, cells, strict=True)))
        self._print(*cells)

    def _print(self, *cells: object) -> None:
        self.lines.append("| " + " | ".join(map(str, cells)) + " |")
        print(self.lines[-1], flush=True)

    def __str__(self) -> str:
        return "\n".join(self.lines)


def finish(given: argparse.Namespace, title: str, text: str, table: Table, rows: Any = None) -> None:
    """Write all figures to `--json`, and with `--write` the section of this title with a text and a table.

    `rows`: figures for `--json` that the table does not show; the cells of the table if None.
    """
    if given.json:
        figures = table.rows if rows is None else rows
        write_atomically(given.json, json.dumps(figures, indent=1, default=str) + "\n")
    if given.write:
        words = [f"benchmarks/{Path(sys.argv[0]).name}", *OUTPUT.parse_known_args()[1]]
        head = f"`python {shlex.join(words)}`, dpwitness {version('dpwitness')}:"
        write_section(title, f"{head}\n{text}\n\n{table}")


def write_section(title: str, text: str) -> None:
    """Replace the section of RESULTS.md that has this title, or add it at the end; other sections stay as they are."""
    first, *sections = re.split(r"^## ", RESULTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = dict(section.split("\n", 1) for section in sections) | {title: text}
    parts = [first.strip(), *(f"## {name}\n\n{body.strip()}" for name, body in found.items())]
    write_atomically(RESULTS, "\n\n".join(parts) + "\n")
