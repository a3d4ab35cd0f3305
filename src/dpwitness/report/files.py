"""Pages of saved results: files of `--save`, and the report of a pytest session."""

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpwitness.codec import listed, mapping
from dpwitness.errors import DPWitnessError, InvalidWitness
from dpwitness.files import STDIN, shown
from dpwitness.report.github import REPORT_FORMAT, name_of
from dpwitness.report.page import PageEntry, page, replay_line
from dpwitness.results.fields import read_json
from dpwitness.results.saved import result_from_json
from dpwitness.results.verdict import verdict_from_json


def report(paths: Sequence[str | Path]) -> str:
    """The page of saved results. Raises `InvalidData` or `InvalidWitness`, which name the file that has no result."""
    entries: list[PageEntry] = []
    facts: list[tuple[str, str]] = []
    for path in paths:
        value = read_json(path)
        if isinstance(value, Mapping) and value.get("format") == REPORT_FORMAT:
            found, about = _read_session(value)
            entries += found
            facts += about
            continue
        where = shown(path)
        try:
            result = result_from_json(value, where)
        except InvalidWitness as error:
            why = str(error)
            raise InvalidWitness(why if why.startswith(where) else f"{where}: {why}") from error
        file = "RESULT.json" if str(path) == STDIN else str(path)  # the name in the command that replays the result
        replay = "" if result.witness is None else replay_line(result.witness, file)
        entries.append(PageEntry(name=result.call, result=result, replay=replay, facts=(("Read from", where),)))
    return page(entries, facts=facts)


def _read_session(value: Mapping[str, object]) -> tuple[list[PageEntry], list[tuple[str, str]]]:
    """The assertions of a session, and facts about the session. Raises `InvalidWitness` for a damaged report."""
    try:
        records = [mapping("assertion", record) for record in listed("assertions", value["assertions"])]
        spent = math.fsum(float(str(record["alpha"])) for record in records)
        facts = [
            ("Session", f"pytest, profile {value['profile']}, seed {value['seed']}"),
            ("False alarms", f"α = {value['alpha']:g} for the whole session; {spent:.3g} was spent"),
        ]
        if value.get("interrupted"):
            facts.append(("End", "interrupted: tests that were still to come are left out"))
        return [_read_record(record, str(value["seed"])) for record in records], facts
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise InvalidWitness(f"the report of a session is damaged: {error}") from error


def _read_record(record: Mapping[str, Any], seed: str) -> PageEntry:
    """The entry of an assertion's record; the verdict's claim and α come from the witness, not from the record."""
    name = name_of(record)
    facts = [("Test", name), ("Share of the session's α", f"{float(record['alpha']):.3g}")]
    facts += [("Note", str(record["note"]))] if record.get("note") else []
    if "witness" not in record:
        return PageEntry(name=name, result=None, reason=str(record.get("reason", "")), facts=tuple(facts))
    witness = mapping("witness", record["witness"])
    try:
        result = verdict_from_json({**record, "claim": witness["claim"], "alpha": witness["alpha"]})
    except DPWitnessError as error:  # such as a claim of a class that only the tests define
        reason = f"{record['verdict']}, claim {record['claim']}; the rest cannot be shown: {error}"
        return PageEntry(name=name, result=None, reason=reason, facts=tuple(facts))
    replay = shlex.join(["pytest", str(record["test"]), f"--dp-seed={seed}"])
    return PageEntry(name=name, result=result, replay=replay, facts=tuple(facts))
