"""The summary of a session: what was asserted, what it cost and what it would have caught."""

import json
import math
from typing import Any

from _dpwitness_session import Session
from dpwitness.files import write_atomically


def lines(session: Session) -> list[str]:
    """Give the ledger for people."""
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
        f"{_several(len(records), 'assertion')} in {_several(tests, 'test')}: {shown}; "
        f"α spent {spent:.3g} of {session.alpha:g}"
    ]
    passed = [record for record in records if record["verdict"] == "not-refuted"]
    if passed:
        near = min(passed, key=lambda record: record["margin"])
        text.append(f"smallest margin: {near['margin']:.1f} nats of evidence short of an alarm, {_place(near)}")
    for same in _alike(records):
        record = same[0]
        match record["verdict"]:
            case "not-refuted":
                place = _place(record) if len(same) == 1 else f"{record['test']} ({len(same)} assertions)"
                text.append(f"  {place}: {record['claim']}, would have caught {_caught(same)} with 95 % power")
                if by_bits := _by_bits(record):
                    exceeded = f"{by_bits['parameter']} ≥ {by_bits['lower_bound']:.4g}"
                    text.append(f"    floating point: refuted by the last bits, {exceeded}")
            case "violated":
                exceeded = f"{record['parameter']} ≥ {record['lower_bound']:.4g}"
                text.append(f"  {_place(record)}: {record['claim']} VIOLATED, {exceeded}")
            case _:
                text.append(f"  {_place(record)}: {record['reason']}")
        if record.get("note"):
            text.append(f"    {record['note']}")
    return text


def _alike(records: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The records, those together that one line can say: passes of one test and one claim, with nothing to add."""
    groups: dict[object, list[dict[str, Any]]] = {}
    for place, record in enumerate(records):
        plain = record["verdict"] == "not-refuted" and record["detectable"] is not None
        alone = not plain or record.get("note") or _by_bits(record)
        key = place if alone else (record["test"], record["claim"], record["parameter"])
        groups.setdefault(key, []).append(record)
    return list(groups.values())


def _by_bits(record: dict[str, Any]) -> dict[str, Any] | None:
    """What the last bits refute, of the first adjacency where they do."""
    each = (record, *record.get("others", ()))
    return next(filter(None, (verdict.get("floating_point") for verdict in each)), None)


def _caught(passed: list[dict[str, Any]]) -> str:
    """What passes would have caught: from the least to the most."""
    if passed[0]["detectable"] is None:
        return "nothing"
    ends = [f"{end(record['detectable'] for record in passed):.4g}" for end in (min, max)]
    return f"{passed[0]['parameter']} ≥ {'–'.join(dict.fromkeys(ends))}"


def write(session: Session, path: str) -> None:
    """Write all verdicts as JSON, whole or not at all."""
    value = {
        "format": "dpwitness-report/1",
        "profile": session.profile,
        "seed": session.seed,
        "alpha": session.alpha,
        "alpha_spent": math.fsum(record["alpha"] for record in session.records),
        "assertions": session.records,
    }
    write_atomically(path, json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def _place(record: dict[str, Any]) -> str:
    number = f" (assertion {record['assertion']})" if record["assertion"] > 1 else ""
    return f"{record['test']}{number}"


def _several(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
