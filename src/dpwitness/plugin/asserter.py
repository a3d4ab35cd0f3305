"""The callable behind the fixture `assert_private`, the errors of a failed test, and the witnesses of earlier sessions.

Each assertion has one JSON file for its witness (`Database`), which is replayed first, and kept when the mechanism is
fixed.
"""

import hashlib
import json
import math
import re
import sys
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import pytest
from typing_extensions import Unpack

from _dpwitness_session import Session
from dpwitness.api.check import check_problem
from dpwitness.api.kept import check_after_kept
from dpwitness.api.loop import work_on
from dpwitness.api.replay import replay, shrink
from dpwitness.api.verdict import require_budget
from dpwitness.checks import INTERRUPTS, brief, exit_error, json_value, near, on_one_line, text_of
from dpwitness.codec import UnknownKind
from dpwitness.errors import (
    DPWitnessError,
    InvalidParameter,
    InvalidWitness,
    MechanismError,
    MechanismRaised,
    MechanismTimeout,
    SlowMechanism,
)
from dpwitness.events import is_of_bits
from dpwitness.evidence import runs_needed
from dpwitness.files import read_text, write_json
from dpwitness.health import before_search, findings
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.neighbours import Data, Relation, adjacent
from dpwitness.options import SHRINK_TIME, AnyMechanism, AssertOptions, EvidenceSource, options_of
from dpwitness.problem import Effort, Problem, Statement
from dpwitness.project import one_of
from dpwitness.report.source import place, place_of
from dpwitness.results.kept import KeptEvidence, neighbours_digest
from dpwitness.results.verdict import NotRefuted, Verdict, Violation
from dpwitness.results.witness import DATABASE_FORMAT, Witness
from dpwitness.runs import Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFile:
    """The database's file for an assertion; `place` for people; `witness` is None if there is nothing to replay."""

    place: str = ""
    witness: Witness | None = None
    note: str | None = None

    def replay(self, problem: Problem, effort: Effort) -> Verdict:
        """The verdict on the saved event by fresh runs, at the present claim. Raises `MechanismError`."""
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
        finally:  # the next check uses the same mechanism, without the saved layout of outcomes
            problem.mechanism.begin(None, by_position=False)


class Database:
    """The witness files of one test; without a folder no file is saved or loaded."""

    def __init__(self, root: Path, folder: str | None, test: str) -> None:
        self._folder = None if folder is None else root / folder
        self._root = root
        self._test = test

    def shown(self, path: Path) -> str:
        """The path relative to the project's root; the whole path if it lies elsewhere."""
        return str(path.relative_to(self._root)) if path.is_relative_to(self._root) else str(path)

    def kept(self, assertion: int) -> Path:
        """The path of an assertion's kept evidence.

        Raises `InvalidParameter` without a folder, and as `KeptEvidence.load` does.
        """
        path = self._path(assertion)
        if path is None:
            raise InvalidParameter('evidence="kept" needs a folder, but dp_database is none')
        path.parent.mkdir(parents=True, exist_ok=True)
        return KeptEvidence.load(path.with_suffix(".kept.json"))[0]

    def _path(self, assertion: int) -> Path | None:
        if self._folder is None:
            return None
        file, _, rest = self._test.partition("::")
        name = re.sub(r"[^\w.-]+", "-", f"{file.rpartition('/')[2]}-{rest}")[:80].strip("-")
        digest = hashlib.blake2b(f"{self._test}\0{assertion}".encode(), digest_size=4).hexdigest()
        return self._folder / f"{name}-{digest}.json"

    def load(self, assertion: int, relation: Relation, data: Data | None = None) -> SavedFile:
        """The saved file, without its witness if the relation differs or the pair is not adjacent.

        Raises `InvalidWitness`.
        """
        path = self._path(assertion)
        if path is None or not path.exists():
            return SavedFile()
        try:
            value = json_value(read_text(path))
            if not isinstance(value, Mapping) or value.get("format") != DATABASE_FORMAT:
                raise InvalidWitness(f"its format is not {DATABASE_FORMAT!r}")
            witness = Witness.from_json(value.get("witness"))
        except UnknownKind as error:
            raise InvalidWitness(f"{path}: {error}") from error
        except ValueError as error:
            raise InvalidWitness(f"{path} is damaged ({error}): delete it, or restore it") from error
        # A saved pair may no longer be adjacent: its replay could fail a correct mechanism.
        same = value.get("neighbours") == neighbours_digest(relation, data)
        if witness.unreadable_inputs or not same or not adjacent(relation, witness.pair, data):
            return SavedFile(note=f"{self.shown(path)} was saved for another relation and was not replayed")
        return SavedFile(place=self.shown(path), witness=witness)

    def save(self, assertion: int, relation: Relation, data: Data | None, witness: Witness) -> Path | None:
        """Write a witness to its file, and return the path; None without a folder.

        Raises `OSError` or `InvalidData` if it cannot be written, `InvalidWitness` if it could not be read back.
        """
        path = self._path(assertion)
        if path is None:
            return None
        value = witness.to_json()
        if Witness.from_json(value).unreadable_inputs:
            raise InvalidWitness(f"no file can hold its inputs {witness.pair}")
        path.parent.mkdir(parents=True, exist_ok=True)
        head = {"format": DATABASE_FORMAT, "test": self._test, "assertion": assertion}
        write_json(path, {**head, "neighbours": neighbours_digest(relation, data), "witness": value})
        return path


class PrivacyViolation(AssertionError):
    """A refuted claim; the message is the witness in plain English, `verdict` the `Violation`."""

    def __init__(self, text: str, verdict: Violation) -> None:
        super().__init__(text)
        self.verdict = verdict


class HealthCheckFailed(DPWitnessError):
    """An assertion that would be worthless or wrong; `name` is the health check that failed."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}; if this is intended, pass suppress=[{name!r}]")
        self.name = name


for _failure in (PrivacyViolation, HealthCheckFailed):
    _failure.__module__ = "dpwitness.plugin"  # the module from which users import it


class Asserter:
    """The value of the fixture: a callable that checks claims within one test's share of the session's α."""

    def __init__(self, session: Session, item: pytest.Item) -> None:
        self._session = session
        self._item = item
        self._count = 0
        self._root = item.config.rootpath
        self._database = Database(item.config.rootpath, session.database, item.nodeid)

    def __call__(self, mechanism: AnyMechanism = None, /, **settings: Unpack[AssertOptions]) -> NotRefuted:
        """The pass of an assertion. Raises `PrivacyViolation` if the claim is refuted, or `HealthCheckFailed`."""
        __tracebackhide__ = True
        self._count += 1
        frame = sys._getframe(1)
        called = place(frame.f_code.co_filename, frame.f_lineno, self._root)
        failure: BaseException
        try:
            verdict, note, replayed = self._assert(mechanism, self._all_settings(settings))
        except DPWitnessError as error:
            kind = "unhealthy" if isinstance(error, HealthCheckFailed) else "error"
            self._record_error(str(error), called, kind)
            failure = error
        except SystemExit as error:
            whose = text_of(getattr(mechanism, "__name__", mechanism))
            failure = exit_error(whose, error)
            self._record_error(str(failure), called)
        except KeyboardInterrupt:  # no verdict: the report says that the session was interrupted
            raise
        except BaseException as error:  # raised by the user's code, pytest.skip, pytest-timeout or dpwitness
            self._record_error(on_one_line(error), called)
            raise
        else:
            self._record_verdict(verdict, note, called, place_of(mechanism, self._root))
            if verdict.ended == "interrupted":
                raise KeyboardInterrupt
            if isinstance(verdict, NotRefuted):
                return verdict
            failure = PrivacyViolation(self._text(verdict, note, replayed), verdict)
        # Frames of dpwitness would only hide the user's frames: an error of the user's code starts at the user's frame.
        cause = failure.__cause__ if isinstance(failure, MechanismRaised) else None
        if cause is not None and cause.__traceback__ is not None:
            cause = cause.with_traceback(cause.__traceback__.tb_next)
        raise failure.with_traceback(None) from cause

    @property
    def _alpha(self) -> float:
        """The α of the test's k-th assertion, 6/(π²k²) of the test's share: all assertions sum to the share."""
        return self._session.alpha / self._session.family * 6 / (math.pi * self._count) ** 2

    def _seed(self, role: str) -> int:
        """The seed of a role in this assertion, from the session's seed and the test, not from the order of tests."""
        text = json.dumps([self._session.seed, self._item.nodeid, self._count, role])
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())

    def _all_settings(self, settings: Mapping[str, object]) -> dict[str, object]:
        """The settings of the session, the markers (the outermost first) and the call; later settings win."""
        session = self._session
        merged: dict[str, Any] = {
            name: getattr(session, name) for name in ("runs", "max_time", "detectable_ratio", "bits")
        }
        merged |= {} if session.errors is None else {"errors": session.errors}
        for mark in reversed(list(self._item.iter_markers("dp"))):  # a marker may be added while the test runs
            if mark.args:
                raise InvalidParameter(f"the marker dp has the value {brief(mark.args[0])} without a name")
            merged.update(mark.kwargs)
        merged.update(settings)
        known = list(options_of("assert_private"))
        for key in merged:
            if key not in known:
                raise InvalidParameter(
                    f"assert_private has no setting {key!r}; it takes {', '.join(known)}{near(key, known)}"
                )
        return merged

    def _assert(self, function: object, settings: dict[str, Any]) -> tuple[Verdict, str | None, bool | None]:
        """The verdict of a replay or a check, a note for people, and whether the verdict is of a replay.

        The third value is None with kept evidence: its file has changed, so no command repeats the session.
        """
        given = settings.get("suppress") or ()
        if not isinstance(given, Collection):
            raise InvalidParameter(f"suppress={brief(given)} must be the name of a check, or a list of names")
        suppressed = (*([given] if isinstance(given, str) else given), *self._session.suppress)
        findings.check_names(suppressed)
        statement = Statement.of(function, settings)
        own = {"alpha": self._alpha, "seed": self._seed("check"), "workers": self._session.workers}
        effort = Effort.of({**settings, **own})
        require_budget(statement.stated.claim, effort)
        goes_on = one_of(*get_args(EvidenceSource))("evidence", settings.get("evidence", "fresh")) == "kept"
        kept = self._database.kept(self._count) if goes_on else None
        with warnings.catch_warnings():
            # The health checks report a mechanism that is too slow, so its warning is not needed.
            warnings.simplefilter("ignore", SlowMechanism)
            return work_on(
                statement, effort, lambda problem, runner: self._assert_of(problem, runner, effort, suppressed, kept)
            )

    def _assert_of(
        self,
        problem: Problem,
        runner: Runner,
        effort: Effort,
        suppressed: Collection[str],
        kept: Path | None,
    ) -> tuple[Verdict, str | None, bool | None]:
        """The result of `_assert` for a prepared problem, after the health checks."""
        notes = []
        too_slow = before_search.time_needed(problem, runner, effort.alpha)
        for finding in (*((too_slow,) if too_slow else ()), *before_search.all_findings(problem, runner)):
            if finding.name not in suppressed:
                raise HealthCheckFailed(finding.name, finding.text)
            notes += [finding.text] if finding.name in ("unlike_inputs", "input_ignored") else []
        saved = self._database.load(self._count, problem.relation, problem.data)
        if saved.witness is not None and is_of_bits(saved.witness.event) and effort.bits != "strict":
            saved = SavedFile(note=f'{saved.place} was saved with bits="strict" and was not replayed')
        note = saved.note
        if saved.witness is not None:
            effort = replace(effort, alpha=effort.alpha / 2)  # half for the replay, half for the check
            try:
                replayed = saved.replay(problem, replace(effort, seed=self._seed("replay")))
            except MechanismError as error:  # the check below shows whether the mechanism works
                note = f"the witness in {saved.place} could not be replayed: {on_one_line(error)}"
            else:
                if isinstance(replayed, Violation):
                    return replayed, f"saved in {saved.place}: seen again on fresh runs", True
                if replayed.ended == "interrupted":
                    return replayed, None, True
                note = f"the witness in {saved.place} was not seen again at this claim; it is kept and replayed"
        said: tuple[str, ...] = ()

        def check(problem: Problem, runner: Runner, effort: Effort) -> Verdict:
            return check_problem(problem, runner.restarted(), effort, notes=tuple(notes))

        try:
            if kept is None:
                verdict = check(problem, runner, effort)
            else:
                verdict, said = check_after_kept(problem, runner.restarted(), effort, kept, check)
        except MechanismTimeout as error:
            if "too_slow" in suppressed:
                raise
            raise HealthCheckFailed("too_slow", str(error)) from error
        again = False if kept is None else None
        if isinstance(verdict, Violation) and verdict.history:  # its witness does not refute alone
            return verdict, _all_notes(note, *said), again
        if isinstance(verdict, Violation):
            self._save(problem, verdict)  # before shrinking, as a time limit of the test may end the process
            verdict, trouble = _shrink(verdict, problem.mechanism, effort)
            return verdict, _all_notes(note, *said, trouble, self._save(problem, verdict)), again
        if verdict.ended != "interrupted":
            for finding in findings.findings_on_pass(verdict):
                if finding.name not in suppressed:
                    raise HealthCheckFailed(finding.name, finding.text)
        return verdict, _all_notes(note, *said), again

    def _save(self, problem: Problem, verdict: Violation) -> str | None:
        """Save a witness and return a note about its file, also if it cannot be written: the violation stands."""
        try:
            path = self._database.save(self._count, problem.relation, problem.data, verdict.witness)
        except INTERRUPTS:
            raise
        except BaseException as error:  # no other error must lose a proved violation
            return f"the witness could not be saved: {on_one_line(error)}"
        return None if path is None else f"saved in {self._database.shown(path)}: the next session replays it first"

    def _record_verdict(self, verdict: Verdict, note: str | None, called: object, source: object) -> None:
        """Record a verdict, or an error if the verdict has no JSON, for example if a class of the user's fails."""
        try:
            record = {
                **verdict.to_json(),
                "claim": str(verdict.claim),
                "margin": verdict.margin,
                "note": note,
                "place": called,
                "source": source,
                **(
                    {"text": verdict.report(), "exceeded": verdict.exceeded}
                    if isinstance(verdict, Violation)
                    else {"power": verdict.power}
                ),
            }
        except Exception as error:
            self._record_error(f"{verdict.verdict}, but it could not be written down: {on_one_line(error)}", called)
        else:
            self._record(record)

    def _record_error(self, reason: str, called: object, kind: str = "error") -> None:
        """Record an assertion without a verdict."""
        self._record({"verdict": kind, "reason": reason, "claim": None, "place": called})

    def _record(self, record: dict[str, Any]) -> None:
        """Add a record to the session's ledger."""
        entry = {"test": self._item.nodeid, "assertion": self._count, **record, "alpha": self._alpha}
        self._session.pending.append(entry)

    def _text(self, verdict: Violation, note: str | None, replayed: bool | None) -> str:
        """The witness in plain English, and the command that repeats the test with the session's α and options."""
        session = self._session
        seed = [f"--dp-seed={session.seed}"] if verdict.reproducible else []
        again = ["pytest", self._item.nodeid, *seed, *session.options]
        again += ["-o", f"dp_family_size={session.family}"]
        if replayed is False:
            again += ["-o", "dp_database=none"]
        lines = [verdict.report(reproduce=[] if replayed is None else again)]
        if not verdict.reproducible:
            lines.append(f"  replay: pytest {self._item.nodeid}")
        if note:
            lines.append(f"  {note}")
        return "\n".join(lines)


def _shrink(found: Violation, mechanism: Mechanism, effort: Effort) -> tuple[Violation, str | None]:
    """The violation, with a smaller witness if shrinking finds it; the same violation and a note if shrinking fails."""
    max_time = min(SHRINK_TIME, effort.max_time)
    try:
        return shrink(found, mechanism, runs=effort.runs, max_time=max_time, workers=effort.workers), None
    except KeyboardInterrupt:
        return replace(found, ended="interrupted"), None
    except BaseException as error:  # no error, such as pytest-timeout's, must lose a proved violation
        return found, f"the witness could not be made smaller: {on_one_line(error)}"


def _all_notes(*notes: str | None) -> str | None:
    """The notes in one text; None without a note."""
    return "; ".join(filter(None, notes)) or None
