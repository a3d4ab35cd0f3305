"""The changes from one saved result to another: verdicts, bounds, curves, profiles, and reports of the plugin."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from dpwitness.checks import class_and_text
from dpwitness.errors import InvalidWitness
from dpwitness.report.github import REPORT_FORMAT, bits_refuted, name_of
from dpwitness.results.bound import Bound
from dpwitness.results.curve import Curve
from dpwitness.results.profile import Profile
from dpwitness.results.saved import reader_of
from dpwitness.results.text import at_least, at_most, named

#: REPORT_KIND is the name of the pytest plugin's reports in messages.
REPORT_KIND: Final = "report of pytest"
#: CHANGE_KINDS has the kinds of changes, the most important first.
CHANGE_KINDS: Final = ("newly refuted", "newly refuted by last bits", "no longer refuted", "no verdict any more",
                "now with a verdict", "other claim or mechanism", "added", "removed", "not run",
                "other values")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The finding of a result about one mechanism and claim.

    `refuted` is None without a verdict, as for a bound or a check that failed. `bounds`: the lower bounds by parameter.
    `caught`: the parameter that a pass would have caught, and its smallest value. `by_bits`: the lower bound that the
    last bits of a pass show, as text; empty if last bits refute nothing.
    """

    mechanism: str
    claim: str
    refuted: bool | None = None
    bounds: Mapping[str, float] = field(default_factory=dict)
    caught: tuple[str, float] | None = None
    reason: str = ""
    by_bits: str = ""


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


def findings_of(what: str, value: object) -> tuple[str, dict[str, Finding]]:
    """The kind of a result, and its findings by name. Raises `InvalidWitness` for other JSON."""
    if isinstance(value, Mapping) and value.get("format") == REPORT_FORMAT:
        return REPORT_KIND, dict(_of_report(what, value))
    match reader_of(value, what)(value):
        case Profile() as found:
            refuted = None if found.claim is None else found.refuted
            bounds = {f"δ({epsilon:g})": float(found.delta(epsilon)) for epsilon in (0, 0.5, 1, 2)}
            finding = Finding(mechanism=found.call, claim=f"{found.claim or 'none'}", refuted=refuted, bounds=bounds)
            return "profile", {"profile": finding}
        case Curve() as curve:
            return "curve", dict(_of_curve(curve))
        case Bound() as bound:
            claim, bounds = bound.witness.claim.at(0.0), {bound.parameter: bound.lower_bound}
            return "bound", {"bound": Finding(mechanism=bound.call, claim=f"{claim}", bounds=bounds)}
        case verdict:
            return "verdict", {"verdict": _of_record({**verdict.to_json(), "claim": str(verdict.claim)})}


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
        caught=(sign, math.inf if caught is None else float(caught)) if passed else None,
        by_bits="" if by_bits is None else f"{by_bits['parameter']} ≥ {at_least(by_bits['lower_bound'])}",
    )


def _change(name: str, old: Finding | None, new: Finding | None, *, missing: str) -> Change | None:
    """The change of one finding; None without a change. `missing`: the kind of a change if the new result lacks it."""
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
        *([new.reason] if new.reason not in ("", old.reason) else []),
        *_compare_bounds(old.bounds, new.bounds),
    ]  # fmt: skip
    details += _compare_caught(old.caught, new.caught)
    if new.by_bits and not old.by_bits:
        details.append(f"refuted by the last bits: {new.by_bits}")
    elif old.by_bits and not new.by_bits and new.refuted is False:
        details.append("not refuted by the last bits any more")
    kinds = {
        "newly refuted": new.refuted and not old.refuted,
        "no longer refuted": old.refuted and not new.refuted and not new.reason,
        "newly refuted by last bits": new.by_bits and not old.by_bits,
        "no verdict any more": new.reason and not old.reason,
        "now with a verdict": old.reason and not new.reason,
        "other claim or mechanism": (old.mechanism, old.claim) != (new.mechanism, new.claim),
        "other values": details,
    }
    found = [kind for kind, holds in kinds.items() if holds]
    return Change(kind=found[0], name=shown, details=tuple(details)) if found else None


def _compare_bounds(old: Mapping[str, float], new: Mapping[str, float]) -> Sequence[str]:
    """The texts of lower bounds that differ, from old to new."""
    return [
        f"{name} ≥ {at_least(old[name])} → {at_least(value)}" if name in old else f"{name} ≥ {at_least(value)}"
        for name, value in new.items()
        if name not in old or not _is_close(old[name], value)
    ]


def _compare_caught(old: tuple[str, float] | None, new: tuple[str, float] | None) -> Sequence[str]:
    """The text of the parameters caught by the old and the new pass, with "better" or "worse"; empty if alike."""
    if old is None or new is None or old[0] != new[0] or _is_close(old[1], new[1]):
        return []
    texts = ["nothing" if math.isinf(least) else f"{name} ≥ {at_most(least)}" for name, least in (old, new)]
    return [f"would have caught {' → '.join(texts)}: {'better' if new[1] < old[1] else 'worse'}"]


def _is_close(old: float, new: float) -> bool:
    # Another seed moves a value by about 1 %.
    return old == new or (math.isfinite(old - new) and abs(new - old) <= 0.01 * max(abs(old), abs(new)))
