"""Results as plain text: a few lines that a person can act on."""

import math
import shlex
from collections.abc import Sequence
from typing import Any

from dpwitness.neighbours import Data, Relation, same_relation
from dpwitness.results.verdict import Bound, Curve, NotRefuted, Outcome, Verdict, Violation
from dpwitness.results.witness import Witness

LONGEST = 12


def inputs(data: Data, neighbour: Data) -> tuple[str, str]:
    """Both inputs on a line each; of long ones only where they differ."""
    if data.size <= LONGEST:
        return str(data.tolist()), str(neighbour.tolist())
    places = [tuple(map(int, place)) for place in zip(*(data != neighbour).nonzero(), strict=True)]
    shown = ", ".join(
        f"entry {_place(place)}: {_number(data[place])} → {_number(neighbour[place])}" for place in places[:LONGEST]
    )
    more = f" and {len(places) - LONGEST} more" if len(places) > LONGEST else ""
    return f"{'×'.join(map(str, data.shape))} values, {_short(data)}", f"the same but for {shown}{more}"


def _place(place: tuple[int, ...]) -> str:
    """A place counted from 1: 7, or (2, 3) in an array of several dimensions."""
    counted = [str(index + 1) for index in place]
    return counted[0] if len(counted) == 1 else f"({', '.join(counted)})"


def _number(value: Any) -> str:
    """A number, with all its digits where six are not enough: two that differ must not look the same."""
    short = f"{value:g}"
    return short if float(short) == value else str(value)


def _short(data: Data) -> str:
    return f"[{', '.join(map(_number, data.ravel()[:6]))}, …]"


def rate(hits: int, runs: int) -> str:
    """A count as a share of the runs."""
    return f"{hits:,} of {runs:,} runs ({hits / runs:.4g})" if runs else "no runs"


def witness_lines(witness: Witness) -> list[str]:
    """Inputs, event, observed rates and what the claim allows."""
    counts, claim = witness.counts, witness.claim
    first, second = inputs(witness.pair.data, witness.pair.neighbour)
    lines = [
        f"  input D      {first}",
        f"  neighbour D′ {second}",
        f"  event        {witness.description}",
        f"  on D         {rate(counts.hits, counts.runs)}",
        f"  on D′        {rate(counts.neighbour_hits, counts.runs)}",
    ]
    if counts.runs and claim.parameter > 0:
        allowed = claim.largest(counts.neighbour_hits / counts.runs)
        lines.append(f"  allowed on D at the rate seen on D′: {allowed:.4g}")
    return lines


def parameters(values: dict[str, Any]) -> str:
    """Parameters as in a call."""
    return ", ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items()
    )


def verdict_text(verdict: Verdict, *, reproduce: Sequence[str] = ()) -> str:
    """A verdict for people; `reproduce` is the command line that gives the same counts again."""
    head = f"{verdict.mechanism}({parameters(verdict.parameters)})"
    match verdict:
        case Violation():
            lines = [f"VIOLATED: {head} is not {verdict.claim.short}", *witness_lines(verdict.witness)]
            lines.append(
                f"  so ε ≥ {verdict.epsilon_lower_bound:.4g} with confidence {_confidence(verdict.alpha)}"
                f" (log e-value {verdict.log_e_value:.1f}, needed {math.log(1 / verdict.alpha):.1f})"
            )
        case NotRefuted():
            lines = [
                f"NOT REFUTED: {head} at the claim {verdict.claim}; this is no proof of privacy",
                *witness_lines(verdict.witness),
                f"  this event would have caught {_caught(verdict)} with 95 % power",
                f"  ε lower bound {verdict.epsilon_lower_bound:.4g} at confidence {_confidence(verdict.alpha)}",
            ]
    if verdict.ended in ("time", "interrupted"):
        why = "the time was over" if verdict.ended == "time" else "interrupted"
        lines.append(f"  stopped early: {why}; what was counted is valid")
    lines += _noted(verdict.notes)
    lines.append(_spent(verdict))
    if not verdict.reproducible:
        lines.append("  the mechanism draws its own randomness: a seed cannot reproduce these counts")
    elif reproduce:
        lines.append(f"  reproduce: {shlex.join(reproduce)}")
    return "\n".join(lines)


def replay_text(witness: Witness, verdict: Verdict) -> str:
    """A replay for people: what the witness says, which nobody vouches for, then the verdict on fresh runs."""
    used, head = verdict.witness.relation, f"{witness.mechanism}({parameters(witness.parameters)})"
    lines = [
        f"witness of {head}: claim {witness.claim}, α = {witness.alpha:g}",
        f"  relation     {_relation(witness.relation)}",
    ]
    if witness.data is not None:
        lines.append(f"  data         {_short(witness.data) if witness.data.size > LONGEST else witness.data.tolist()}")
    if (verdict.claim, verdict.alpha) != (witness.claim, witness.alpha):
        lines.append(f"  replayed at  claim {verdict.claim}, α = {verdict.alpha:g}")
    if witness.relation is not None and not same_relation(used, witness.relation):
        lines.append(f"  replayed in  {_relation(used)}")
    return "\n".join([*lines, verdict_text(verdict)])


def _relation(relation: Relation | None) -> str:
    return "not known: its pair is taken as it is" if relation is None else f"{relation!s:.200}"


def _caught(verdict: NotRefuted) -> str:
    return f"ε ≥ {verdict.detectable_epsilon:.4g}" if math.isfinite(verdict.detectable_epsilon) else "nothing"


def _confidence(alpha: float) -> str:
    return f"1 − {alpha:g}"


def _noted(notes: Sequence[str]) -> list[str]:
    return [f"  note: {note}" for note in notes]


def _spent(result: Outcome | Bound) -> str:
    runs = result.witness.counts.runs
    return f"  runs: {result.search_runs:,} search, {runs:,} confirm; {result.seconds:.1f} s; seed {result.seed}"


def bound_text(result: Bound) -> str:
    """A lower bound for people."""
    delta = f" at δ = {result.delta:g}" if result.delta else ""
    lines = [
        f"ε ≥ {result.epsilon_lower_bound:.4g}{delta} with confidence {result.confidence:g}: "
        f"{result.mechanism}({parameters(result.parameters)})",
        *witness_lines(result.witness),
    ]
    if result.ended in ("time", "interrupted"):
        lines.append("  stopped early; the bound is valid for the runs that were counted")
    return "\n".join([*lines, *_noted(result.notes), _spent(result)])


def curve_text(result: Curve) -> str:
    """A table: one row a test ε, one column a claimed ε."""
    head = ["test ε", *(f"ε = {line.epsilon:g}" for line in result.lines)]
    rows = [
        [f"{test:g}", *(f"{line.p_values[i]:.3g}" for line in result.lines)]
        for i, test in enumerate(result.lines[0].test_epsilons)
    ]
    widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
    text = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    each = [f"{line.counts[0].runs:,}" for line in result.lines]
    runs = each[0] if len(set(each)) == 1 else " / ".join(each)
    title = f"p-values of {result.mechanism}({parameters(result.parameters)})"
    return "\n".join(
        [title, *text, *_noted(result.notes), f"{runs} paired runs a line; {result.seconds:.1f} s; seed {result.seed}"]
    )
