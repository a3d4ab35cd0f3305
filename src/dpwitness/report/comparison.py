"""The changes from one saved result to another: verdicts, bounds, curves, profiles, and reports of the plugin."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from dpwitness.checks import class_and_text
from dpwitness.errors import InvalidWitness
from dpwitness.report.files import reader_of
from dpwitness.report.github import REPORT_FORMAT, bits_refuted, name_of
from dpwitness.results.bound import Bound
from dpwitness.results.curve import Curve
from dpwitness.results.profile import Profile
from dpwitness.results.text import at_least, at_most, named

#: The kind of a result that is a report of the pytest plugin, in messages.
REPORT_KIND: Final = "report of pytest"
#: The kinds of changes, the most important first.
CHANGE_KINDS: Final = ("newly refuted", "newly refuted by last bits", "no longer refuted", "no verdict any more",
                "now with a verdict", "other claim or mechanism", "added", "removed", "not run",
                "other values")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The finding of a result about one mechanism and claim.

    `refuted` is None where there is no verdict, as for a bound or a check that failed. `bounds`: the lower bounds, and
    `caught`: the values that a pass would have caught, both by parameter. `by_bits`: the lower bound that the last bits
    of a pass show, as text; empty where they refute nothing.
    """

    mechanism: str
    claim: str
    refuted: bool | None = None
    bounds: Mapping[str, float] = field(default_factory=dict)
    caught: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    by_bits: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference: its kind, the name of its test or line, and its details in words."""

    kind: str
    name: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All differences between two results, and the number of findings that are the same.

    `interrupted`: the new result is the report of an interrupted session, so that missing tests were not run.
    """

    changes: tuple[Change, ...]
    unchanged: int
    interrupted: bool = False

    @property
    def newly_refuted(self) -> bool:
        """Whether the new result refutes a claim that the old one did not refute."""
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
        cut_off = ["the new session was interrupted: what it did not come to is not compared"] * self.interrupted
        return "\n".join([*lines, *cut_off, ", ".join([*counts, f"{self.unchanged} unchanged"])])


def compare(old: object, new: object) -> Comparison:
    """Compare two results, given as unchecked JSON, of one kind. Raises `InvalidWitness`."""
    (kind, before), (other, after) = findings_of("the old result", old), findings_of("the new result", new)
    if kind != other:
        raise InvalidWitness(f"a {kind} and a {other} cannot be compared: give two of one kind")
    if len(before) == len(after) == 1:  # two single results are compared whatever their names are
        before, after = {"": next(iter(before.values()))}, {"": next(iter(after.values()))}
    changes, unchanged = [], 0
    interrupted = isinstance(new, Mapping) and kind == REPORT_KIND and bool(new.get("interrupted"))
    for name in dict.fromkeys([*before, *after]):
        found = _change(name, before.get(name), after.get(name), missing="not run" if interrupted else "removed")
        changes += [] if found is None else [found]
        unchanged += found is None
    return Comparison(changes=tuple(changes), unchanged=unchanged, interrupted=interrupted)


def findings_of(what: str, value: object) -> tuple[str, dict[str, Finding]]:
    """The kind of a result, and its findings by name. Raises `InvalidWitness` for anything else."""
    if isinstance(value, Mapping) and value.get("format") == REPORT_FORMAT:
        return REPORT_KIND, dict(_of_report(what, value))
    match reader_of(value, what)(value):
        case Profile() as profile:
            return "profile", {"profile": _of_profile(profile)}
        case Curve() as curve:
            return "curve", dict(_of_curve(curve))
        case Bound() as bound:
            return "bound", {"bound": _of_bound(bound)}
        case verdict:
            return "verdict", {"verdict": _of_record({**verdict.to_json(), "claim": str(verdict.claim)})}


def _of_bound(bound: Bound) -> Finding:
    return Finding(
        mechanism=bound.call, claim=str(bound.witness.claim.at(0.0)), bounds={bound.parameter: bound.lower_bound}
    )


def _of_profile(profile: Profile) -> Finding:
    return Finding(
        mechanism=profile.call,
        claim="none" if profile.claim is None else str(profile.claim),
        refuted=None if profile.claim is None else profile.refuted,
        bounds={f"δ({epsilon:g})": float(profile.delta(epsilon)) for epsilon in (0, 0.5, 1, 2)},
    )


def _of_curve(curve: Curve) -> Iterator[tuple[str, Finding]]:
    for line in curve.lines:
        # The level 0.05 of p-values adjusted by Holm, as in the figures of Ding et al. 2018.
        rejected = [test for test, p in zip(line.test_epsilons, line.adjusted, strict=True) if p < 0.05]
        most = max(rejected, default=0.0)
        yield (
            f"ε = {line.epsilon:g}",
            Finding(
                mechanism=curve.call,
                claim=f"test {curve.parameter} = {', '.join(f'{test:g}' for test in line.test_epsilons)}",
                refuted=most >= line.epsilon if curve.claim is None else None,
                bounds={f"largest rejected test {curve.parameter}": most},
            ),
        )


def _of_report(what: str, report: Mapping[str, Any]) -> Iterator[tuple[str, Finding]]:
    try:
        for record in report["assertions"]:
            yield name_of(record), _of_record(record)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise InvalidWitness(f"{what} is a damaged report: {class_and_text(error)}") from error


def _of_record(record: Mapping[str, Any]) -> Finding:
    if record["verdict"] not in ("violated", "not-refuted"):
        return Finding(mechanism="", claim="", reason=str(record["reason"]))
    sign, caught = str(record["parameter"]), record["detectable"]
    passed, by_bits = record["verdict"] == "not-refuted", bits_refuted(record)
    return Finding(
        mechanism=named(str(record["mechanism"]), record["parameters"]),
        claim=str(record["claim"]),
        refuted=not passed,
        bounds={sign: float(record["lower_bound"])},
        caught={sign: math.inf if caught is None else float(caught)} if passed else {},
        by_bits="" if by_bits is None else f"{by_bits['parameter']} ≥ {at_least(by_bits['lower_bound'])}",
    )


def _change(name: str, old: Finding | None, new: Finding | None, *, missing: str) -> Change | None:
    """The change of one finding; None for the same finding. `missing`: the kind where the new result lacks it."""
    shown = name or (new or old or Finding(mechanism="", claim="")).mechanism
    if new is None:
        return Change(kind=missing, name=shown)
    if old is None:
        kind = "newly refuted" if new.refuted else "added"
        return Change(kind=kind, name=shown, details=tuple(_compare_bounds({}, new.bounds)))
    details = [
        *(f"{what} {before} → {after}" for what, before, after in (
            ("mechanism", old.mechanism, new.mechanism), ("claim", old.claim, new.claim),
        ) if before != after and before and after),
        *([new.reason] if new.reason else []),
        *_compare_bounds(old.bounds, new.bounds),
        *_compare_caught(old.caught, new.caught),
        *_compare_bits(old, new),
    ]  # fmt: skip
    if new.refuted and not old.refuted:
        kind = "newly refuted"
    elif old.refuted and not new.refuted:
        kind = "no longer refuted" if new.refuted is False or not new.reason else "no verdict any more"
    elif new.by_bits and not old.by_bits:
        kind = "newly refuted by last bits"
    elif new.reason and not old.reason:
        kind = "no verdict any more"
    elif old.reason and not new.reason:
        kind = "now with a verdict"
    elif (old.mechanism, old.claim) != (new.mechanism, new.claim):
        kind = "other claim or mechanism"
    elif details and new.reason != (old.reason or None):
        kind = "other values"
    else:
        return None
    return Change(kind=kind, name=shown, details=tuple(details))


def _compare_bounds(old: Mapping[str, float], new: Mapping[str, float]) -> Sequence[str]:
    """The lower bounds that differ, as texts from old to new."""
    return [
        f"{name} ≥ {at_least(old[name])} → {at_least(value)}" if name in old else f"{name} ≥ {at_least(value)}"
        for name, value in new.items()
        if name not in old or not _is_close(old[name], value)
    ]


def _compare_caught(old: Mapping[str, float], new: Mapping[str, float]) -> Sequence[str]:
    """The values that passes would have caught, where they differ, and whether the new one is better."""
    found = []
    for name, value in new.items():
        before = old.get(name)
        if before is not None and not _is_close(before, value):
            how = "better" if value < before else "worse"
            texts = ["nothing" if math.isinf(least) else f"{name} ≥ {at_most(least)}" for least in (before, value)]
            found.append(f"would have caught {' → '.join(texts)}: {how}")
    return found


def _compare_bits(old: Finding, new: Finding) -> Sequence[str]:
    """The difference between passes whose last bits refute the claim now, or no longer."""
    if new.by_bits and not old.by_bits:
        return [f"refuted by the last bits: {new.by_bits}"]
    gone = old.by_bits and new.refuted is False and not new.by_bits
    return ["not refuted by the last bits any more"] if gone else []


def _is_close(old: float, new: float) -> bool:
    # Another seed moves a value by about 1 %.
    return old == new or (math.isfinite(old - new) and abs(new - old) <= 0.01 * max(abs(old), abs(new)))
