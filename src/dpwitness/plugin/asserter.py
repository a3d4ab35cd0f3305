"""The callable behind the fixture `assert_private`."""

import hashlib
import json
import math
import warnings
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pytest

from _dpwitness_pytest import SETTINGS, Session
from dpwitness.claim import Claim
from dpwitness.errors import (
    DPWitnessError,
    InvalidData,
    InvalidParameter,
    MechanismRaised,
    MechanismTimeout,
    SlowMechanism,
)
from dpwitness.health import early as health
from dpwitness.job import Job
from dpwitness.mechanisms.carried import stated_claim
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.neighbours import Data, Relation
from dpwitness.pipeline import check_job, enough_runs
from dpwitness.plugin.database import Database, Known
from dpwitness.plugin.failures import HealthCheckFailed, PrivacyViolation
from dpwitness.preparation import check_limits, compiled_first, prepare
from dpwitness.rerun import SHRINK_TIME, shrink
from dpwitness.results.verdict import NotRefuted, Verdict, Violation


class Asserter:
    """Checks claims for one test, within its share of the session's false-alarm budget."""

    def __init__(self, session: Session, item: pytest.Item) -> None:
        self._session = session
        self._item = item
        self._count = 0
        self._database = Database(item.config.rootpath, session.database, item.nodeid)

    def __call__(self, mechanism: Callable[..., Any] | Any, /, **settings: Any) -> NotRefuted:
        """Raise `PrivacyViolation` where the claim is refuted, `HealthCheckFailed` where a pass would mean nothing."""
        __tracebackhide__ = True
        self._count += 1
        failure: BaseException
        try:
            verdict, note, replayed = self._assert(mechanism, self._merged(settings))
        except DPWitnessError as error:
            kind = "unhealthy" if isinstance(error, HealthCheckFailed) else "error"
            self._record({"verdict": kind, "reason": str(error), "claim": None})
            failure = error
        else:
            self._record(
                {
                    **verdict.to_json(),
                    "claim": str(verdict.claim),
                    "margin": math.log(1 / verdict.alpha) - verdict.log_e_value,
                    "note": note,
                }
            )
            if verdict.ended == "interrupted":
                raise KeyboardInterrupt
            if isinstance(verdict, NotRefuted):
                return verdict
            failure = PrivacyViolation(self._text(verdict, note, replayed), verdict)
        # Our own frames would only hide the user's; what the user's own code raised is shown from its frame on.
        cause = failure.__cause__ if isinstance(failure, MechanismRaised) else None
        if cause is not None and cause.__traceback__ is not None:
            cause = cause.with_traceback(cause.__traceback__.tb_next)
        raise failure.with_traceback(None) from cause

    @property
    def _alpha(self) -> float:
        """The share of this assertion: 6/(π²k²) of the test's for the k-th, so that any number of them may follow."""
        return self._session.alpha / self._session.family * 6 / (math.pi * self._count) ** 2

    def _seed(self, role: str) -> int:
        """A seed that depends on the session's, the test and the assertion, not on the order of the tests."""
        text = json.dumps([self._session.seed, self._item.nodeid, self._count, role])
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())

    def _merged(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Settings of the markers, outermost first, and of the call."""
        for key in settings:
            if key not in SETTINGS:
                raise InvalidParameter(f"assert_private has no setting {key!r}; it takes {', '.join(SETTINGS)}")
        session = self._session
        merged: dict[str, Any] = {"max_runs": session.max_runs, "max_time": session.max_time}
        for mark in reversed(list(self._item.iter_markers("dp"))):
            merged.update(mark.kwargs)
        return {**merged, **settings}

    def _assert(self, function: Any, settings: dict[str, Any]) -> tuple[Verdict, str | None, bool]:
        """Replay what is known, else look for something new; a note for people; whether it was the replay."""
        suppressed = settings.get("suppress") or ()
        suppressed = {*((suppressed,) if isinstance(suppressed, str) else suppressed), *self._session.suppress}
        health.check_names(suppressed)
        stated = stated_claim(function, **{key: settings.get(key) for key in ("epsilon", "delta", "claim", "d_in")})
        max_runs = check_limits(self._alpha, settings["max_runs"], settings["max_time"])
        enough_runs(stated.claim, self._alpha, max_runs)

        def ready(interpreted: bool) -> Job:
            with warnings.catch_warnings():
                # Whether it is too slow to be tested is for the health checks to say.
                warnings.simplefilter("ignore", SlowMechanism)
                return prepare(
                    function,
                    stated.epsilon,
                    settings.get("neighbours"),
                    settings.get("data"),
                    settings.get("parameters"),
                    settings.get("outcome"),
                    self._seed("check"),
                    self._session.workers,
                    settings["max_time"],
                    None,
                    delta=stated.delta,
                    claim=stated.claim,
                    interpreted=interpreted,
                )

        def work(job: Job) -> tuple[Verdict, str | None, bool]:
            return self._assert_of(job, function, stated.claim, settings, max_runs, suppressed)

        return compiled_first(ready, work)

    def _assert_of(
        self,
        job: Job,
        function: Any,
        claim: Claim,
        settings: dict[str, Any],
        max_runs: int,
        suppressed: Collection[str],
    ) -> tuple[Verdict, str | None, bool]:
        """What is left of an assertion when it is prepared."""
        mechanism, relation, data = job.mechanism, job.relation, job.data
        notes = []
        for finding in health.early(job):
            if finding.name not in suppressed:
                raise HealthCheckFailed(finding.name, finding.text)
            notes += [finding.text] if finding.name == "input_ignored" else []
        alpha = self._alpha
        limits = {"max_time": settings["max_time"], "workers": self._session.workers}
        known = self._database.load(self._count, relation, data)
        note = known.note
        if known.witness is not None:
            alpha /= 2  # half for the witness that is known, half for what may be new
            replayed = known.replay(
                mechanism,
                claim,
                relation=relation,
                data=data,
                alpha=alpha,
                max_runs=max_runs,
                seed=self._seed("replay"),
                **limits,
            )
            if isinstance(replayed, Violation) and known.path is not None:
                place = self._database.shown(known.path)
                seen = f"known from {place}: seen again on fresh runs"
                return replayed, _joined(seen, self._marked(known, "refutes")), True
            if replayed is not None and replayed.ended == "interrupted":
                return replayed, None, True
        try:
            verdict = check_job(
                job.restarted(),
                function,
                claim,
                alpha=alpha,
                max_runs=max_runs,
                search_runs=settings.get("search_runs"),
                notes=tuple(notes),
            )
        except MechanismTimeout as error:
            if "too_slow" in suppressed:
                raise
            raise HealthCheckFailed("too_slow", str(error)) from error
        if isinstance(verdict, Violation):
            verdict, trouble = _shrunk(verdict, mechanism, settings, self._session.workers)
            return verdict, _joined(trouble, self._saved(relation, data, verdict)), False
        if verdict.ended != "interrupted":
            if known.witness is not None:
                note = self._marked(known, "fixed")
            for finding in health.of_verdict(verdict):
                if finding.name not in suppressed:
                    raise HealthCheckFailed(finding.name, finding.text)
        return verdict, note, False

    def _saved(self, relation: Relation, data: Data | None, verdict: Violation) -> str | None:
        """Keep a witness; what to say of it. What was proved stands, whether or not it can be written down."""
        try:
            path = self._database.save(self._count, relation, data, verdict.witness)
        except (OSError, ValueError, TypeError, RecursionError) as error:
            return f"the witness could not be saved: {_told(error)}"
        return None if path is None else f"saved in {self._database.shown(path)}: the next session replays it first"

    def _marked(self, known: Known, status: str) -> str | None:
        """Keep a known witness under its present status; what to say of it, the trouble with writing it included."""
        try:
            return self._database.mark(known, status)
        except (OSError, InvalidData) as error:
            return f"its file could not be marked as {status}: {_told(error)}"

    def _record(self, record: dict[str, Any]) -> None:
        """Onto the test's report: for the ledger, and a line for JUnit."""
        entry = {"test": self._item.nodeid, "assertion": self._count, **record, "alpha": self._alpha}
        self._session.pending.append(entry)
        text = f"{record['verdict']}, claim {record['claim']}, α = {self._alpha:.3g}"
        self._item.user_properties.append((f"dpwitness-{self._count}", text))

    def _text(self, verdict: Violation, note: str | None, replayed: bool) -> str:
        """The witness in plain English, and how to see it again: the α of the whole session decides when it stops."""
        session = self._session
        again = ["pytest", self._item.nodeid, f"--dp-seed={session.seed}", *session.options]
        again.append(f"--override-ini=dp_family_size={session.family}")
        if not replayed:
            again.append("--override-ini=dp_database=none")
        lines = [verdict.report(reproduce=again)]
        if not verdict.reproducible:
            lines.append(f"  replay: pytest {self._item.nodeid}")
        if note:
            lines.append(f"  {note}")
        return "\n".join(lines)


def _shrunk(
    found: Violation, mechanism: Mechanism, settings: dict[str, Any], workers: int | None
) -> tuple[Violation, str | None]:
    """A smaller witness where there is one; whatever happens on the way, what was found stands, and a note says so."""
    limits = {"max_runs": settings["max_runs"], "max_time": min(SHRINK_TIME, settings["max_time"]), "workers": workers}
    try:
        return shrink(found, mechanism, **limits), None
    except KeyboardInterrupt:
        return replace(found, ended="interrupted"), None
    except (
        Exception,
        SystemExit,
    ) as error:  # of any kind: what was proved is not lost to it
        return found, f"the witness could not be made smaller: {_told(error)}"


def _told(error: BaseException) -> str:
    """An error on one line."""
    text = " ".join(str(error).split()) or "no message"
    return text if isinstance(error, DPWitnessError) else f"{type(error).__name__}: {text}"


def _joined(*notes: str | None) -> str | None:
    return "; ".join(note for note in notes if note) or None
