"""Output for GitHub Actions: an annotation for each refuted claim, and a table in the summary of the step.

Records are verdicts as JSON, with the `claim` as text, and if known the `place` of the assertion and the `source` of
the mechanism (see `report.source`).
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dpwitness.report.source import PlaceRecord, below_root
from dpwitness.results.text import at_most

#: VerdictRecord is a verdict as JSON.
VerdictRecord = Mapping[str, Any]
#: MESSAGE_ESCAPES has the escapes in the message of a workflow command; "%" comes first, as all escapes hold it.
MESSAGE_ESCAPES: Final = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
#: PROPERTY_ESCAPES has the escapes in the properties of a workflow command.
PROPERTY_ESCAPES: Final = (*MESSAGE_ESCAPES, (":", "%3A"), (",", "%2C"))
#: MARKUP matches the characters that are markup in Markdown; an underscore within a word is not markup.
MARKUP: Final = re.compile(r"[\\|`*~\[\]]|(?<![^\W_])_|_(?![^\W_])")
#: REPORT_FORMAT is the name of the format of a session's report.
REPORT_FORMAT: Final = "dpwitness-report/1"
#: TABLE_HEAD has the names of the columns of the table.
TABLE_HEAD: Final = ("Test", "Claim", "Verdict", "Shown", "Confirm runs", "α")


def runs_here() -> bool:
    """Whether this process is a step of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS", "").lower() == "true"


def annotation(record: VerdictRecord, root: Path) -> str:
    """The workflow command that marks the line of a refuted claim, the line of the assertion or else of the mechanism.

    The record's places are relative to `root`, the command's place to the checkout, as GitHub requires.
    """
    at: PlaceRecord | None = next(filter(below_root, (record.get("place"), record.get("source"))), None)
    properties = {} if at is None else {"file": _from_checkout(root / str(at["file"]), root), "line": str(at["line"])}
    properties["title"] = f"{record['mechanism']} violates {record['claim']}"
    given = ",".join(f"{name}={_escape(value, PROPERTY_ESCAPES)}" for name, value in properties.items())
    return f"::error {given}::{_escape(record['text'], MESSAGE_ESCAPES)}"


def _from_checkout(file: Path, root: Path) -> str:
    """The file's path as GitHub names it: from the checkout, else from `root`."""
    checkout = Path(os.path.realpath(os.environ.get("GITHUB_WORKSPACE") or root))
    real = Path(os.path.realpath(file))
    inside = real.is_relative_to(checkout)
    return (real.relative_to(checkout) if inside else file.relative_to(root)).as_posix()


def _escape(text: str, escapes: Sequence[tuple[str, str]]) -> str:
    for plain, escape in escapes:
        text = text.replace(plain, escape)
    return text


def table(records: Sequence[VerdictRecord], headline: str) -> str:
    """A Markdown section with a row for each record."""
    rows = [TABLE_HEAD, ("---",) * len(TABLE_HEAD), *map(_row, records)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(["### dpwitness", "", headline, "", *lines, ""])


def name_of(record: VerdictRecord) -> str:
    """The test of a record, with the number of the assertion in the test unless it is the first."""
    number = f" (assertion {record['assertion']})" if record["assertion"] != 1 else ""
    return f"{record['test']}{number}"


def _row(record: VerdictRecord) -> tuple[str, ...]:
    number = f" ({record['assertion']})" if record["assertion"] > 1 else ""
    runs = f"{record['runs']['confirm']:,}" if "runs" in record else ""
    verdict = {"violated": "**violated**"}.get(record["verdict"], record["verdict"].replace("-", " "))
    test, claim, found = map(_cell, (f"{record['test']}{number}", record["claim"] or "", shown(record)))
    return (test, claim, verdict, found, runs, f"{record['alpha']:.3g}")


def shown(record: VerdictRecord) -> str:
    """The result of a record's runs: a violation's bound, a pass's power, or the reason why there is no verdict."""
    match record["verdict"]:
        case "violated":
            return str(record["exceeded"])
        case "not-refuted" if record["detectable"] is not None:
            return f"its event would have caught {record['parameter']} ≥ {at_most(record['detectable'])}"
        case "not-refuted":
            return "its event would have caught nothing"
        case _:
            return str(record["reason"])


def bits_refuted(record: VerdictRecord) -> VerdictRecord | None:
    """The finding by the last bits, for the first adjacency that has a finding; None without a finding."""
    each = (record, *record.get("others", ()))
    return next(filter(None, (verdict.get("floating_point") for verdict in each)), None)


def _cell(text: str) -> str:
    """A text escaped for a cell of a Markdown table, without markup."""
    return MARKUP.sub(r"\\\g<0>", " ".join(text.split())).replace("<", "&lt;")


def append_summary(text: str) -> str | None:
    """Append a text to the step's summary, if it has one; return the reason why it cannot be written, or None."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return None
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        return f"GITHUB_STEP_SUMMARY: cannot write {path}: {error.strerror or error}"
    return None
