"""Results of attacks on published counts: claims without the truth, and a comparison with the truth if it is known."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from dpwitness.arrays import Integers
from dpwitness.reconstruction.report import AttackResult, EndedAttack, Finding, LabelledLines
from dpwitness.reconstruction.table_builder.differencing import Differences
from dpwitness.reconstruction.table_builder.histogram import RecoveredHistogram
from dpwitness.reconstruction.table_builder.noise_laws import LARGEST_BOUND
from dpwitness.reconstruction.table_builder.perturbation import NOISES, Perturbation
from dpwitness.reconstruction.table_builder.systems import Simulation
from dpwitness.reconstruction.table_builder.theory import perturbation_found

#: Largest number of counts in a printed table, so that it fits on a screen; --json has all counts.
MAX_ROWS: Final = 12

#: The finding of an attack on counts.
CountFinding = RecoveredHistogram | Differences
#: The finding of any attack of the family.
Found = CountFinding | Perturbation


def result_of(
    ended: EndedAttack[Found], simulation: Simulation | None, data: str | None, true: Sequence[int] | None
) -> AttackResult:
    """The result of an attack.

    `simulation`: the simulated system, None for the user's own. `data`: the file of people or true counts. `true`: the
    true counts, None if they are not known or the attack recovers no counts.
    """
    found, finding = ended.found, ended.found.finding
    values: dict[str, Any] = {"data": data}
    rows: list[tuple[str, str | None]] = [("data", data)]
    if simulation is not None:
        noise = f"noise within ±{simulation.perturbation} ({simulation.noise})"
        noise = noise if simulation.noise_bound else "no noise"
        rows = [
            ("system", f"{simulation.system}, {noise}, counts of at most {simulation.suppressed} suppressed"),
            *rows,
        ]
        values |= asdict(simulation) | {"suppression": simulation.suppressed}
    table: Sequence[str] = ()
    if isinstance(found, Perturbation):
        truth = None if simulation is None else np.array([simulation.noise_bound])
        heading, parts = f"FOUND: noise within ±{found.guess}", "r, the largest noise"
        if simulation is not None:
            heading += (
                " (right)" if found.guess == simulation.noise_bound else f" (wrong: it is {simulation.noise_bound})"
            )
        elif finding.contradicted:
            heading = f"NOTHING CLAIMED: noise within ±{found.guess} is a guess"
        more, compared = _describe_parameter(found, finding)
    else:
        truth = None if true is None else np.array(true)
        heading, parts = _heading(found, finding, truth), f"value of {found.attribute}, in order"
        table, more = list(_format_counts(found, finding, truth)), _describe_claims(found, finding)
        right = None if truth is None else int(np.sum(truth == np.array(found.published)))
        recover = "suppressed" if isinstance(found, Differences) else "histogram"
        compared = {"recover": recover, **found.to_json(), "true": true, "right_as_published": right}
    return AttackResult(
        ended=ended,
        finding=finding,
        truth=truth,
        parts=parts,
        values=values | compared,
        heading=heading,
        rows=[*rows, *more],
        table=table,
    )


def _heading(found: CountFinding, finding: Finding, truth: Integers | None) -> str:
    """The first line of a report on counts."""
    where = " and ".join(f"{name} = {' or '.join(map(str, chosen))}" for name, chosen in found.where.items())
    of = f"{len(found.values)} counts of {found.attribute!r}{f' (where {where})' if where else ''}"
    if truth is not None:
        published = int(np.sum(truth == np.array(found.published)))
        return f"RECOVERED: {finding.right(truth)} of {of} exactly; {published} answers were right as published"
    if not finding.claimed.any():
        return f"NOTHING CLAIMED: {of}; the answers do not tell how right they are"
    least = math.floor(finding.probability[finding.claimed].min() * 1e4) / 1e4
    return f"RECOVERED: {finding.claimed.sum()} of {of}, each right with probability {least:.4f} or more"


def _describe_claims(found: CountFinding, finding: Finding) -> LabelledLines:
    """The rows of text about the claims of counts and the reasons for them."""
    right = f"{finding.probably_right:.2f} of {len(found.values)} probably right, as the answers alone tell"
    why, notes = "", list(finding.contradicted)
    queries, workarounds = f"{found.queries:,}", tuple[str, ...]()
    if isinstance(found, Differences):
        why = f"; {found.checks:,} further answers agree with the counts"
        notes += [] if found.note is None else [found.note]
    else:
        why, workarounds = f" (noise of variance {found.variance or 0:.3g})", found.workarounds
        queries += (
            f": {found.partitions:,} two-partitions a value, {found.base_partitions:,} once for the base set of "
            f"{len(found.base)}"
        )
    return [
        ("confidence", f"{right}{why}" if finding.claimed.any() else None),
        *(("no claim", text) for text in notes),
        ("queries", queries),
        *(("workaround", text) for text in workarounds),
    ]


def _format_counts(found: CountFinding, finding: Finding, truth: Integers | None) -> Iterator[str]:
    """The lines of a table of counts: the wrong counts, and else the first positive counts, at most `MAX_ROWS`."""
    counts, size = np.array(found.counts), len(found.values)
    wrong = np.zeros(size, np.bool_) if truth is None else counts != truth
    printed = sorted(np.argsort(np.where(wrong, 0, np.where(counts > 0, 1, 2)), kind="stable")[:MAX_ROWS].tolist())
    yield f"  {found.attribute[:12]:>12}  published  recovered  probability{'' if truth is None else '  true'}"
    for i in printed:
        claim = f"{finding.probability[i]:.4f}" if finding.claimed[i] else ""
        cells = f"  {found.values[i]!s:>12}  {found.published[i]:>9}  {counts[i]:>9}  {claim:>11}"
        yield f"{cells}{'' if truth is None else f'  {truth[i]:>4}'}{'  wrong' if wrong[i] else ''}"
    if len(printed) < size:
        yield f"  … {size - len(printed)} more with --json"


def _describe_parameter(found: Perturbation, finding: Finding) -> tuple[LabelledLines, dict[str, object]]:
    """The rows and JSON values of the perturbation finder: the guess for r in people, and its probability."""
    sums, guess = len(found.sums), found.guess
    larger = 0.0 if guess >= LARGEST_BOUND else perturbation_found(guess + 1, sums)
    claim = f"right with probability {finding.probably_right:.4g}"
    if finding.contradicted:
        claim = f"none: {finding.contradicted[0]}"
    of = f"{sums} of {found.attribute!r}, of {NOISES} answers each, from {min(found.sums)} to {max(found.sums)}"
    return [
        ("sums", of),
        ("confidence", f"{claim}; uniform noise of a larger r would have shown with probability {larger:.4g}"),
        ("queries", f"{found.queries:,}"),
    ], {
        "recover": "perturbation",
        "attribute": found.attribute,
        "larger_excluded": larger,
        "sums": sums,
        "queries": found.queries,
    }
