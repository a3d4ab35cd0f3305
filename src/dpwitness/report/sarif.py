"""SARIF 2.1.0: refuted claims as results, with the place of the mechanism, for code scanning and editors.

OASIS Standard, Static Analysis Results Interchange Format (SARIF) Version 2.1.0, 2020. `report.github` describes
records.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final
from urllib.parse import quote

from dpwitness.report.github import VerdictRecord
from dpwitness.report.source import PlaceRecord, below_root

#: SCHEMA is the address of the JSON schema of SARIF 2.1.0.
SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def log(records: Sequence[VerdictRecord]) -> dict[str, object]:
    """A log of one run, with a rule for each kind of claim that was tested and a result for each refuted claim."""
    tested = [record for record in records if "witness" in record]
    kinds = sorted({_kind(record) for record in tested})
    driver = {"name": "dpwitness", "version": version("dpwitness"), "rules": [_rule(kind) for kind in kinds]}
    refuted = [record for record in tested if record["verdict"] == "violated"]
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(record, kinds.index(_kind(record))) for record in refuted],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _kind(record: VerdictRecord) -> str:
    return str(record["witness"]["claim"]["kind"])


def _rule(kind: str) -> dict[str, object]:
    return {
        "id": kind,
        "shortDescription": {"text": f"A mechanism is less private than it claims ({kind})."},
        "fullDescription": {
            "text": "An event is more likely on one of two neighbouring inputs than the claim allows, proved on fresh "
            "runs at the stated false-alarm probability."
        },
        "defaultConfiguration": {"level": "error"},
    }


def _result(record: VerdictRecord, rule: int) -> dict[str, object]:
    places = [at for at in (record.get("source"), record.get("place")) if at is not None]
    at = next(filter(below_root, places), places[0] if places else None)
    name = [record.get("test"), record.get("assertion"), record["mechanism"], _kind(record)]
    return {
        "ruleId": _kind(record),
        "ruleIndex": rule,
        "level": "error",
        "message": {"text": record["text"]},
        **({} if at is None else {"locations": [_location(at)], **_related(at, record["witness"])}),
        "partialFingerprints": {"dpwitness/v1": hashlib.blake2b(json.dumps(name).encode(), digest_size=16).hexdigest()},
        "properties": {
            **{key: record[key] for key in ("test", "alpha", "parameter", "lower_bound", "seed") if key in record},
            "witness": record["witness"],
        },
    }


def _related(at: PlaceRecord, witness: Mapping[str, object]) -> dict[str, object]:
    """The line at which runs on D and on D′ first differ, if the line is known and in the file of `at`; else {}."""
    found = witness.get("explanation")
    if not isinstance(found, Mapping) or Path(str(found["file"])).name != Path(str(at["file"])).name:
        return {}
    where = _location({**at, "line": found["line"]})
    return {"relatedLocations": [{"id": 1, **where, "message": {"text": f"{found['text']} (no evidence)"}}]}


def _location(at: PlaceRecord) -> dict[str, object]:
    if below_root(at):
        file = {"uri": quote(str(at["file"])), "uriBaseId": "%SRCROOT%"}
    else:
        file = {"uri": Path(at["file"]).as_uri()}
    return {"physicalLocation": {"artifactLocation": file, "region": {"startLine": at["line"]}}}
