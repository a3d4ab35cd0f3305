"""The results of a visit as text: lines on the terminal for each exhibit, and a table in Markdown."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from museum.visit import REFUTED, Check, Row

#: The titles of the table's columns.
COLUMNS: Final = (
    *("release", "exhibit", "kind", "claim", "what the release does"),
    *("verdict", "at least", "found pair", "seconds", "right"),
)
#: The largest number of characters that the table shows of a pair.
WIDEST: Final = 110


def line(row: Row) -> str:
    """The lines on the terminal about one exhibit."""
    first = row.checks[0]
    bound = f", at least {first.lower_bound:.3g}" if first.lower_bound is not None else ""
    head = f"{row.name}: {row.release}, {row.claim}: {first.verdict}{bound} in {first.seconds:.1f} s"
    lines = [f"{head} ({row.right} of {len(row.checks)} right)"]
    if first.pair:
        lines.append(f"    {first.pair}; {first.event}")
    lines += [f"    NOT EXPECTED: {_told(check)}" for check in row.checks if not check.right]
    return "\n".join(lines)


def _told(check: Check) -> str:
    again = f", replayed: {check.replayed}" if check.replayed is not None else ""
    return f"{check.release}, seed {check.seed}: {check.verdict}{again}; expected: {check.expected}"


def markdown(rows: Iterable[Row]) -> str:
    """The table in Markdown: a line for each exhibit, in the order of the releases, controls last."""
    lines = [_cells(COLUMNS), _cells(["---"] * len(COLUMNS))]
    lines += [_cells(_row(row)) for row in sorted(rows, key=lambda row: (row.kind == "control", row.release.lower()))]
    return "\n".join(lines) + "\n"


def _row(row: Row) -> list[str]:
    own = [check for check in row.checks if check.release == row.release]
    bounds = [check.lower_bound for check in own if check.lower_bound is not None]
    seconds = sorted(check.seconds for check in own)
    fixed = f"; {row.fixed} passes" if row.fixed and all(c.right for c in row.checks if c.release == row.fixed) else ""
    pair = next((check.pair for check in own if check.verdict == REFUTED), "")
    return [
        row.release,
        f"`{row.name}`",
        row.kind,
        row.claim,
        row.fault + fixed,
        own[0].verdict,
        f"{min(bounds):.3g}" if bounds else "",
        pair if len(pair) <= WIDEST else f"{pair[:WIDEST]}…",
        f"{seconds[len(seconds) // 2]:.1f}",
        f"{row.right} of {len(row.checks)}",
    ]


def _cells(cells: Sequence[str]) -> str:
    return "| " + " | ".join(re.sub(r"\s+", " ", cell).replace("|", "\\|") for cell in cells) + " |"
