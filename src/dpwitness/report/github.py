"""What GitHub Actions shows: an annotation for each refuted claim, and a table in the summary of the step.

Records are verdicts as JSON, with the `claim` as text, and where known the `place` of the assertion and the `source` of
the mechanism (see `report.source`).
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dpwitness.report.source import Place, below_root
from dpwitness.results.text import at_most

Record = Mapping[str, Any]
#: Escapes in the message of a workflow command; in its properties two more. Percent comes first.
IN_MESSAGE: Final = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
IN_PROPERTY: Final = (*IN_MESSAGE, (":", "%3A"), (",", "%2C"))
#: What makes something of a text in Markdown; an underscore within a word does not.
MARKUP: Final = re.compile(r"[\\|`*~\[\]]|(?<![^\W_])_|_(?![^\W_])")
#: The format of a session's report.
REPORT: Final = "dpwitness-report/1"
HEAD: Final = ("Test", "Claim", "Verdict", "Shown", "Confirm runs", "α")


def runs_here() -> bool:
    """Whether this is a step of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS", "").lower() == "true"


def annotation(record: Record, root: Path) -> str:
    """The workflow command that marks a line with a refuted claim: that of the assertion, else of the mechanism.

    The places of the record start from `root`; those of the command from the checkout, as GitHub wants them.
    """
    at: Place | None = next(filter(below_root, (record.get("place"), record.get("source"))), None)
    properties = {} if at is None else {"file": _from_checkout(root / str(at["file"]), root), "line": str(at["line"])}
    properties["title"] = f"{record['mechanism']} violates {record['claim']}"
    given = ",".join(f"{name}={_escaped(value, IN_PROPERTY)}" for name, value in properties.items())
    return f"::error {given}::{_escaped(record['text'], IN_MESSAGE)}"


def _from_checkout(file: Path, root: Path) -> str:
    """A file as GitHub names it: from the checkout, else from `root`."""
    checkout = Path(os.path.realpath(os.environ.get("GITHUB_WORKSPACE") or root))
    real = Path(os.path.realpath(file))
    inside = real.is_relative_to(checkout)
    return (real.relative_to(checkout) if inside else file.relative_to(root)).as_posix()


def _escaped(text: str, escapes: Sequence[tuple[str, str]]) -> str:
    for plain, escape in escapes:
        text = text.replace(plain, escape)
    return text


def table(records: Sequence[Record], headline: str) -> str:
    """A Markdown section with a row for each record."""
    rows = [HEAD, ("---",) * len(HEAD), *map(_row, records)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(["### dpwitness", "", headline, "", *lines, ""])


def name_of(record: Record) -> str:
    """The test of a record, and which of its assertions it is, where that is not the first."""
    number = f" (assertion {record['assertion']})" if record["assertion"] != 1 else ""
    return f"{record['test']}{number}"


def _row(record: Record) -> tuple[str, ...]:
    number = f" ({record['assertion']})" if record["assertion"] > 1 else ""
    runs = f"{record['runs']['confirm']:,}" if "runs" in record else ""
    verdict = {"violated": "**violated**"}.get(record["verdict"], record["verdict"].replace("-", " "))
    test, claim, found = map(_cell, (f"{record['test']}{number}", record["claim"] or "", shown(record)))
    return (test, claim, verdict, found, runs, f"{record['alpha']:.3g}")


def shown(record: Record) -> str:
    """What a record's runs showed: the bound of a violation, what a pass would have caught, or why there is neither."""
    match record["verdict"]:
        case "violated":
            return str(record["exceeded"])
        case "not-refuted" if record["detectable"] is not None:
            return f"would have caught {record['parameter']} ≥ {at_most(record['detectable'])}"
        case "not-refuted":
            return "would have caught nothing"
        case _:
            return str(record["reason"])


def bits_refuted(record: Record) -> Record | None:
    """What the last bits refute, of the first adjacency where they do."""
    each = (record, *record.get("others", ()))
    return next(filter(None, (verdict.get("floating_point") for verdict in each)), None)


def _cell(text: str) -> str:
    """A text in a cell of a Markdown table: it stays text."""
    return MARKUP.sub(r"\\\g<0>", " ".join(text.split())).replace("<", "&lt;")


def append_summary(text: str) -> str | None:
    """Append to the summary of the step; return why it could not be written, if so. Without such a file, nothing."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return None
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        return f"GITHUB_STEP_SUMMARY: cannot write {path}: {error.strerror or error}"
    return None
