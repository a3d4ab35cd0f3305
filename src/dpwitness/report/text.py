"""Results as plain text: a few lines that a person can act on."""

import math
import shlex
from collections.abc import Sequence
from typing import Any

from dpwitness.claim import Claim
from dpwitness.neighbours import Data
from dpwitness.verdict import Bound, Curve, NotRefuted, Outcome, Verdict, Violation
from dpwitness.witness import Witness

LONGEST = 12


def inputs(data: Data, neighbour: Data) -> tuple[str, str]:
    """Both inputs on a line each; of long ones only where they differ."""
    if data.size <= LONGEST:
        return str(data.tolist()), str(neighbour.tolist())
    places = [int(i) for i in (data != neighbour).nonzero()[0]]
    shown = ", ".join(f"entry {i + 1}: {data[i]:g} → {neighbour[i]:g}" for i in places[:LONGEST])
    more = f" and {len(places) - LONGEST} more" if len(places) > LONGEST else ""
    return f"{data.size} values, {_short(data)}", f"the same but for {shown}{more}"


def _short(data: Data) -> str:
    return f"[{', '.join(f'{v:g}' for v in data[:6])}, …]"


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
    if counts.runs and claim.epsilon > 0:
        allowed = min(claim.ratio * counts.neighbour_hits / counts.runs + claim.delta, 1.0)
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
            lines = [f"VIOLATED: {head} is not {_dp(verdict.claim)}", *witness_lines(verdict.witness)]
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


def _dp(claim: Claim) -> str:
    return f"{claim.epsilon:g}-DP" if claim.delta == 0 else f"({claim.epsilon:g}, {claim.delta:g})-DP"


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
