"""The changes from one saved verdict to another, or from one report of the pytest plugin to another."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from dpwitness.checks import class_and_text
from dpwitness.errors import InvalidWitness
from dpwitness.report.github import REPORT_FORMAT, bits_refuted, name_of
from dpwitness.results.saved import result_from_json
from dpwitness.results.text import at_least, at_most, named
from dpwitness.results.verdict import Verdict

#: REPORT_KIND is the name of the pytest plugin's reports in messages.
REPORT_KIND: Final = "report of pytest"
#: CHANGE_KINDS has the kinds of changes, the most important first.
CHANGE_KINDS: Final = ("newly refuted", "newly refuted by last bits", "no longer refuted", "no verdict any more",
                       "added", "removed", "not run", "changed")  # fmt: skip
#: Fact is a text, with its number if a change of the number by 1 % is no change, since another seed has this effect.
Fact = tuple[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFinding:
    """The finding of a result about one mechanism and claim.

    `refuted` is None without a verdict, as for a check that failed. `facts`: facts by name, such as the
    mechanism, the claim, lower bounds and the reason for the lack of a verdict. `by_bits`: whether last bits refute it.
    """

    refuted: bool | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    by_bits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference: its kind, the name of its test or line, and its details as texts."""

    kind: str
    name: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All differences between two results, and the number of findings that do not differ.

    `interrupted`: whether the new result reports an interrupted session, whose missing tests were not run.
    """

    changes: tuple[Change, ...]
    unchanged: int
    interrupted: bool = False

    @property
    def newly_refuted(self) -> bool:
        """Whether the new result refutes a claim that the old result does not refute."""
        return any(change.kind == CHANGE_KINDS[0] for change in self.changes)

    def to_json(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            line
            for change in sorted(self.changes, key=lambda change: CHANGE_KINDS.index(change.kind))
            for line in (f"{change.kind}: {change.name}", *(f"  {text}" for text in change.details))
        ]
        kinds = [change.kind for change in self.changes]
        counts = [f"{kinds.count(kind)} {kind}" for kind in CHANGE_KINDS if kind in kinds]
        cut_off = ["the new session was interrupted: tests that did not run are not compared"] * self.interrupted
        return "\n".join([*lines, *cut_off, ", ".join([*counts, f"{self.unchanged} unchanged"])])


def compare(old: object, new: object) -> Comparison:
    """Compare two results of the same kind, given as unchecked JSON. Raises `InvalidWitness`."""
    (kind, before), (other, after) = findings_of("the old result", old), findings_of("the new result", new)
    if kind != other:
        raise InvalidWitness(f"a {kind} and a {other} cannot be compared: give two of one kind")
    if len(before) == len(after) == 1:  # two single results are compared under any names
        before, after = {"": next(iter(before.values()))}, {"": next(iter(after.values()))}
    changes, unchanged = [], 0
    interrupted = isinstance(new, Mapping) and kind == REPORT_KIND and bool(new.get("interrupted"))
    for name in dict.fromkeys([*before, *after]):
        found = _change(name, before.get(name), after.get(name), missing="not run" if interrupted else "removed")
        changes += [] if found is None else [found]
        unchanged += found is None
    return Comparison(changes=tuple(changes), unchanged=unchanged, interrupted=interrupted)


def findings_of(what: str, value: object) -> tuple[str, dict[str, ClaimFinding]]:
    """The kind of a result, and its findings by name. Raises `InvalidWitness` for other JSON."""
    if isinstance(value, Mapping) and value.get("format") == REPORT_FORMAT:
        return REPORT_KIND, dict(_of_report(what, value))
    found = result_from_json(value, what)
    if not isinstance(found, Verdict):
        raise InvalidWitness(f"{what} is a {type(found).__name__.lower()}: give verdicts, or reports of --dp-report")
    return "verdict", {"verdict": _of_record({**found.to_json(), "claim": str(found.claim)})}


def _of_report(what: str, report: Mapping[str, Any]) -> Iterator[tuple[str, ClaimFinding]]:
    try:
        for record in report["assertions"]:
            yield name_of(record), _of_record(record)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise InvalidWitness(f"{what} is a damaged report: {class_and_text(error)}") from error


def _of_record(record: Mapping[str, Any]) -> ClaimFinding:
    if record["verdict"] not in ("violated", "not-refuted"):
        return ClaimFinding(facts={"no verdict": (str(record["reason"]), None)})
    sign, passed, by_bits = str(record["parameter"]), record["verdict"] == "not-refuted", bits_refuted(record)
    bound = float(record["lower_bound"])
    facts: dict[str, Fact] = {
        "mechanism": (named(str(record["mechanism"]), record["parameters"]), None),
        "claim": (str(record["claim"]), None),
        f"{sign} ≥": (at_least(bound), bound),
    }
    if passed:
        caught = math.inf if record["detectable"] is None else float(record["detectable"])
        facts["would have caught"] = f"{sign} ≥ {at_most(caught)}" if math.isfinite(caught) else "nothing", caught
        bits = "no finding" if by_bits is None else f"{by_bits['parameter']} ≥ {at_least(by_bits['lower_bound'])}"
        facts["last bits"] = bits, None
    return ClaimFinding(refuted=not passed, facts=facts, by_bits=by_bits is not None)


def _change(name: str, old: ClaimFinding | None, new: ClaimFinding | None, *, missing: str) -> Change | None:
    """The change of one finding; None without a change. `missing`: the kind of a change if the new result lacks it."""
    found = new or old or ClaimFinding()
    shown = name or found.facts.get("mechanism", ("", None))[0]
    if new is None:
        return Change(kind=missing, name=shown)
    before = ClaimFinding() if old is None else old
    details = [
        f"{fact} {before.facts[fact][0]} → {now[0]}" if fact in before.facts else f"{fact} {now[0]}"
        for fact, now in new.facts.items()
        if fact not in before.facts or not _is_close(before.facts[fact], now)
    ]
    kinds = {
        "newly refuted": new.refuted and not before.refuted,
        "newly refuted by last bits": old is not None and new.by_bits and not old.by_bits,
        "added": old is None,
        "no longer refuted": before.refuted and new.refuted is False,
        "no verdict any more": "no verdict" in new.facts and "no verdict" not in before.facts,
        "changed": details,
    }
    kind = next((kind for kind, holds in kinds.items() if holds), None)
    return None if kind is None else Change(kind=kind, name=shown, details=tuple(details))


def _is_close(old: Fact, new: Fact) -> bool:
    a, b = old[1], new[1]
    if a is None or b is None or not math.isfinite(a - b):
        return old[0] == new[0]
    return abs(b - a) <= 0.01 * max(abs(a), abs(b))
