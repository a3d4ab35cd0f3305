"""The ledger of a session: its assertions, the α that they spent, and the parameters that they would have caught."""

import math
from collections.abc import Callable
from pathlib import Path

from _dpwitness_session import Session
from dpwitness.errors import InvalidData
from dpwitness.files import write_json
from dpwitness.report import github, sarif
from dpwitness.results.text import at_least


def lines(session: Session) -> list[str]:
    """The lines of the ledger for people."""
    records = session.records
    spent = math.fsum(record["alpha"] for record in records)
    tests = len({record["test"] for record in records})
    kinds = [record["verdict"] for record in records]
    shown = ", ".join(
        f"{kinds.count(kind)} {kind.replace('-', ' ')}"
        for kind in ("violated", "not-refuted", "unhealthy", "error")
        if kind in kinds
    )
    text = [
        f"{_count_text(len(records), 'assertion')} in {_count_text(tests, 'test')}: {shown}; "
        f"α spent {spent:.3g} of {session.alpha:g}"
    ]
    passed = [record for record in records if record["verdict"] == "not-refuted"]
    if passed:
        near = min(passed, key=lambda record: record["margin"])
        text.append(f"nearest to an alarm: {github.name_of(near)}, {near['margin']:.1f} nats of evidence short of it")
    for record in records:
        match record["verdict"]:
            case "not-refuted":
                shown = f"{record['claim']}, {github.shown(record)} {record['power']}"
                text.append(f"  {github.name_of(record)}: {shown}")
                if found := github.bits_refuted(record):
                    exceeded = f"{found['parameter']} ≥ {at_least(found['lower_bound'])}"
                    text.append(f"    floating point: refuted by the last bits, {exceeded}")
            case "violated":
                text.append(f"  {github.name_of(record)}: {record['claim']} VIOLATED, {github.shown(record)}")
            case _:
                text.append(f"  {github.name_of(record)}: {record['reason']}")
        if record.get("note"):
            text.append(f"    {record['note']}")
    return text


def annotations(session: Session, root: Path) -> list[str]:
    """The workflow commands that mark violations on GitHub Actions; empty elsewhere."""
    if not github.runs_here():
        return []
    return [github.annotation(record, root) for record in session.records if record["verdict"] == "violated"]


def write_files(session: Session) -> bool:
    """Write the requested files and GitHub's summary; return whether a file failed.

    Errors are added to `session.unwritten`.
    """
    failed = False
    files: list[tuple[str, str | None, Callable[[str], None]]] = [
        ("report", session.report, lambda path: write(session, path)),
        ("sarif", session.sarif, lambda path: write_json(path, sarif.log(session.records))),
    ]
    for option, path, write_one in files:
        if path is None:
            continue
        try:
            write_one(path)
        except InvalidData as error:
            session.unwritten.append(f"--dp-{option}: {error}")
            failed = True
    if session.records and github.runs_here():
        why = github.append_summary(github.table(session.records, lines(session)[0]))
        session.unwritten += [] if why is None else [why]
    return failed


def write(session: Session, path: str) -> None:
    """Write all records as JSON. The file is written whole or not at all."""
    value = {
        "format": github.REPORT_FORMAT,
        "profile": session.profile,
        "seed": session.seed,
        "alpha": session.alpha,
        "alpha_spent": math.fsum(record["alpha"] for record in session.records),
        **({"interrupted": True} if session.interrupted else {}),
        "assertions": session.records,
    }
    write_json(path, value)


def _count_text(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
