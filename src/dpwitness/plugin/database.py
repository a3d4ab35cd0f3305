"""Witnesses of earlier sessions, one JSON file an assertion: replayed first, kept when fixed."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dpwitness.api.replay import replay
from dpwitness.checks import json_value
from dpwitness.errors import InvalidWitness, MechanismError
from dpwitness.evidence import runs_needed
from dpwitness.files import read_text, write_atomically
from dpwitness.neighbours import Data, Relation, adjacent, input_to_json, proposed_pairs, relation_to_json
from dpwitness.problem import Effort, Problem
from dpwitness.results.verdict import Verdict
from dpwitness.results.witness import DATABASE_FORMAT, Witness

#: So many candidates identify a relation that has no JSON.
SHOWN: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What the database holds for an assertion; `witness` is None where there is nothing to replay."""

    path: Path | None = None
    value: Mapping[str, Any] | None = None
    witness: Witness | None = None
    note: str | None = None

    def replay(self, problem: Problem, effort: Effort) -> Verdict | None:
        """Count its event on fresh runs at the claim of today; None where the mechanism no longer takes its inputs."""
        assert self.witness is not None
        needed = runs_needed(problem.claim, effort.alpha)
        runs = max(min(effort.runs, max(10 * self.witness.counts.runs, 100_000)), needed)
        try:
            return replay(
                self.witness,
                problem.mechanism,
                neighbours=problem.relation,
                data=problem.data,
                claim=problem.claim,
                alpha=effort.alpha,
                runs=runs,
                max_time=effort.max_time,
                seed=effort.seed,
                workers=effort.workers,
            )
        except MechanismError:
            return None  # it rejects these inputs now; the check that follows says whether it works at all
        finally:  # the check that follows is of the same mechanism, and need not write rows as an earlier file has them
            problem.mechanism.begin(None, keyed=False, by_position=False)


class Database:
    """The files of one test; none where the folder is None."""

    def __init__(self, root: Path, folder: str | None, test: str) -> None:
        self._folder = None if folder is None else root / folder
        self._root = root
        self._test = test

    def shown(self, path: Path) -> str:
        """A path as people read it: from the project's root, where it lies below."""
        return str(path.relative_to(self._root)) if path.is_relative_to(self._root) else str(path)

    def _path(self, assertion: int) -> Path | None:
        if self._folder is None:
            return None
        name = re.sub(r"[^\w.-]+", "-", self._test.rpartition("/")[2])[:80].strip("-")
        digest = hashlib.blake2b(f"{self._test}\0{assertion}".encode(), digest_size=4).hexdigest()
        return self._folder / f"{name}-{digest}.json"

    def load(self, assertion: int, relation: Relation, data: Data | None = None) -> Saved:
        """Read what is saved; it is replayed only as long as its inputs are neighbours by today's relation and data.

        Raises `InvalidWitness` for a damaged file.
        """
        path = self._path(assertion)
        if path is None or not path.exists():
            return Saved()
        try:
            value = json_value(read_text(path))
            if not isinstance(value, Mapping) or value.get("format") != DATABASE_FORMAT:
                raise InvalidWitness(f"its format is not {DATABASE_FORMAT!r}")
            witness = Witness.from_json(value.get("witness"))
        except ValueError as error:
            raise InvalidWitness(f"{path} is damaged ({error}): delete it, or restore it") from error
        # A pair that was adjacent then may not be now: its replay could fail a correct mechanism.
        if value.get("neighbours") != _fingerprint(relation, data):
            return Saved(path=path, note=f"{self.shown(path)} was saved for another relation and was not replayed")
        if not adjacent(relation, witness.pair, data):
            return Saved(path=path, note=f"{self.shown(path)} holds inputs that are no neighbours; it was not replayed")
        return Saved(path=path, value=value, witness=witness)

    def save(self, assertion: int, relation: Relation, data: Data | None, witness: Witness) -> Path | None:
        """Keep a witness; return where. Raises `OSError` or `InvalidData` where it cannot be written."""
        path = self._path(assertion)
        if path is None:
            return None
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, self._test, assertion, "refutes", _fingerprint(relation, data), witness.to_json())
        return path

    def mark(self, saved: Saved, status: str) -> str | None:
        """Keep a witness under its present status, "refutes" or "fixed"; return what to report of a fixed one.

        Raises `OSError` or `InvalidData` where it cannot be written.
        """
        if saved.path is None or saved.value is None:
            return None
        value = saved.value
        if value.get("status") != status:
            _write(saved.path, self._test, value.get("assertion", 1), status, value["neighbours"], value["witness"])
        if status != "fixed":
            return None
        return f"fixed: the witness in {self.shown(saved.path)} no longer refutes; it is kept and replayed"


def _write(path: Path, test: str, assertion: int, status: str, neighbours: str, witness: object) -> None:
    value = {
        "format": DATABASE_FORMAT,
        "test": test,
        "assertion": assertion,
        "status": status,
        "neighbours": neighbours,
        "witness": witness,
    }
    write_atomically(path, json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def _fingerprint(relation: Relation, data: Data | None) -> str:
    """What the relation is, and D: of a relation that does not write itself down, as far as its pairs show it."""
    written = relation_to_json(relation)
    if written is None:
        candidates = islice(proposed_pairs(relation, data), SHOWN)
        written = {
            type(relation).__name__: [[input_to_json(pair.data), input_to_json(pair.neighbour)] for pair in candidates]
        }
    given = None if data is None else input_to_json(data)
    text = json.dumps([written, given], sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
