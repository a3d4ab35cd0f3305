"""Results of attacks on published counts: claims without the truth, and a comparison with the truth if it is known."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Final

import numpy as np

from dpwitness.reconstruction.report import Asked, EndedAttack, Finding, Result, draw_claims, finding_json
from dpwitness.reconstruction.table_builder.differencing import Differences
from dpwitness.reconstruction.table_builder.histogram import Histogram
from dpwitness.reconstruction.table_builder.noise_laws import LARGEST_BOUND, NoiseLaw
from dpwitness.reconstruction.table_builder.perturbation import NOISES, Perturbation
from dpwitness.reconstruction.table_builder.systems import Simulation
from dpwitness.reconstruction.table_builder.theory import expected_right, histogram_bound, perturbation_found

#: Largest number of counts in a printed table, so that it fits on a screen; --json has all counts.
MAX_ROWS: Final = 12

#: Rows of text, each a label and its text; a row without a text is left out.
Rows = list[tuple[str, str | None]]
#: The finding of an attack on counts.
Counts = Histogram | Differences
#: The finding of any attack of the family.
Found = Counts | Perturbation


def result_of(
    ended: EndedAttack[Found], system: Simulation | Asked, data: str | None, true: Sequence[int] | None
) -> Result:
    """The result of an attack; `true`: the true counts, None if they are not known or the attack recovers no counts."""
    found, finding = ended.found, ended.found.finding
    values, rows = _describe_system(system, data)
    table: Sequence[str] = ()
    truth = None if true is None else np.array(true)
    if isinstance(found, Perturbation):
        if isinstance(system, Simulation):
            truth = np.array([system.noise_bound])
        heading, more, compared = _describe_parameter(found, finding, system)
        recover, parts = "perturbation", "r, the largest noise"
    else:
        heading, more, compared = _compare_counts(found, finding, system, true)
        table, parts = list(_format_counts(found, finding, true)), f"value of {found.attribute}, in order"
        if isinstance(found, Differences):
            recover = "suppressed"
            more += _describe_differences(found, finding)
        else:
            recover = "histogram"
            law = system.independent_law if isinstance(system, Simulation) else None
            averages, theory = _describe_averages(found, finding, law, true)
            more, compared = more + averages, compared | theory
    return Result(
        ended=ended,
        values={"recover": recover, **values, **finding_json(finding, truth), **compared},
        heading=heading,
        rows=rows + more,
        table=table,
        draw=partial(draw_claims, finding=finding, truth=truth, parts=parts),
    )


def _describe_system(system: Simulation | Asked, data: str | None) -> tuple[dict[str, object], Rows]:
    """The JSON values and rows of text about the attacked system and the file `data` of people or true counts."""
    if isinstance(system, Asked):
        limits = {"budget": system.budget, "rate": system.rate}
        name = ", ".join([system.oracle, *(f"{k} {v:,}" for k, v in limits.items() if v is not None)])
        return {"data": data, **system.to_json()}, [("system", name), ("stopped", system.stopped), ("data", data)]
    noise = f" noisy counts, {system.noise} noise within ±{system.perturbation}"
    shown = f"{system.system}{noise if system.noise_bound else ' counts'}"
    text = f"{shown}, counts of at most {system.suppressed} suppressed"
    values = {"data": data, **asdict(system), "suppression": system.suppressed}
    return values, [("system", text), ("data", data)]


def _compare_counts(
    found: Counts, finding: Finding, system: Simulation | Asked, true: Sequence[int] | None
) -> tuple[str, Rows, dict[str, object]]:
    """The heading, the row about suppressed counts, and the JSON values of a finding of counts."""
    claimed = finding.claimed
    where = " and ".join(f"{name} = {' or '.join(map(str, chosen))}" for name, chosen in found.where.items())
    of = f"{len(found.values)} counts of {found.attribute!r}{f' (where {where})' if where else ''}"
    if true is None:
        heading = f"NOTHING CLAIMED: {of}; the answers do not tell how right they are"
        if claimed.any():
            least = math.floor(finding.probability[claimed].min() * 1e4) / 1e4
            some = "" if claimed.all() else f"{claimed.sum()} of "
            heading = f"RECOVERED: {some}{of}, each right with probability {least:.4f} or more"
        return heading, [], found.to_json() | {"true": None}
    truth, published = np.array(true), np.array(found.published)
    hidden = (truth > 0) & (truth <= system.suppressed if isinstance(system, Simulation) else published == 0)
    recovered, as_published = int(np.sum(hidden & (truth == finding.guess))), int(np.sum(truth == published))
    rows: Rows = [("suppressed", f"{recovered} of {hidden.sum()} hidden counts recovered")] if hidden.any() else []
    heading = f"RECOVERED: {finding.right(truth)} of {of} exactly; {as_published} answers were right as published"
    return (
        heading,
        rows,
        {
            **found.to_json(),
            "true": true,
            "right_as_published": as_published,
            "suppressed": int(hidden.sum()),
            "suppressed_right": recovered,
        },
    )


def _describe_differences(found: Differences, finding: Finding) -> Rows:
    """The rows of text about the claims of differencing."""
    checks = f"{found.checks:,} further answers agree with the counts, and none contradicts them"
    return [
        ("confidence", checks if finding.claimed.any() else None),
        *(("no claim", text) for text in finding.contradicted),
        ("no claim", found.note),
        ("queries", f"{found.queries:,}"),
    ]


def _describe_averages(
    found: Histogram, finding: Finding, law: NoiseLaw | None, true: Sequence[int] | None
) -> tuple[Rows, dict[str, object]]:
    """The rows and JSON values about the claims of averaging, and about the theory if the law of the noise is known."""
    size = len(found.values)
    right = f"{finding.probably_right:.2f} of {size} probably right, as the answers alone tell"
    rows: Rows = [
        ("confidence", f"{right} (noise of variance {found.variance:.3g})" if finding.claimed.any() else None),
        *(("no claim", text) for text in finding.contradicted),
    ]
    theory: dict[str, object] = {}
    if true is not None:
        theory = {"all_right_at_least": None, "expected_right": None}
        used = (found.base_partitions, *found.used)
        # The transform of a law with more than 2²⁵ values would take gigabytes.
        if law is not None and all(used) and 4 * law.bound * max(used) <= 1 << 25:
            expected = expected_right(law, found.base_partitions, found.used, [t == 0 for t in true])
            at_least = histogram_bound(law, min(used), len(true))
            theory = {"all_right_at_least": at_least, "expected_right": expected}
            sure = f"; all with probability at least {at_least:.4g}" if at_least else ""
            rows.append(("theory", f"{expected:.2f} of {size} right on average by Algorithm 4{sure}"))
    queries = (
        f"{found.queries:,}: {found.partitions:,} two-partitions a value, "
        f"{found.base_partitions:,} once for the base set of {len(found.base)}"
    )
    return [*rows, ("queries", queries), *(("workaround", text) for text in found.workarounds)], theory


def _format_counts(found: Counts, finding: Finding, true: Sequence[int] | None) -> Iterator[str]:
    """The lines of a table of wrong or positive counts: if over `MAX_ROWS`, the wrong or the least probable counts."""
    size, sure = len(found.values), finding.probability
    wrong = set() if true is None else {i for i in range(size) if found.counts[i] != true[i]}
    order = sorted(range(size), key=lambda i: (i not in wrong, sure[i] if true is None else 0, i))
    printed = [i for i in order if i in wrong or found.counts[i] > 0][:MAX_ROWS]
    if not printed:
        return
    yield f"  {found.attribute[:12]:>12}  published  recovered  probability{'' if true is None else '  true'}"
    for i in sorted(printed):
        claim = f"{sure[i]:.4f}" if finding.claimed[i] else ""
        cells = f"  {found.values[i]!s:>12}  {found.published[i]:>9}  {found.counts[i]:>9}  {claim:>11}"
        yield f"{cells}{'' if true is None else f'  {true[i]:>4}'}{'  wrong' if i in wrong else ''}"
    if len(printed) < size:
        yield f"  … {size - len(printed)} more with --json"


def _describe_parameter(
    found: Perturbation, finding: Finding, system: Simulation | Asked
) -> tuple[str, Rows, dict[str, object]]:
    """The heading, rows and JSON values of the perturbation finder: the guess for r in people, and its probability."""
    sums, guess = len(found.sums), found.guess
    law = system.independent_law if isinstance(system, Simulation) else None
    larger = 0.0 if guess >= LARGEST_BOUND else perturbation_found(guess + 1, sums)
    probability = None if law is None else perturbation_found(law, sums)
    heading = f"FOUND: noise within ±{guess}"
    if isinstance(system, Simulation):
        heading += " (right)" if guess == system.noise_bound else f" (wrong: it is {system.noise_bound})"
    elif finding.contradicted:
        heading = f"NOTHING CLAIMED: noise within ±{guess} is a guess"
    claim = f"right with probability {finding.probably_right:.4g}"
    if finding.contradicted:
        claim = f"none: {finding.contradicted[0]}"
    of = f"{sums} of {found.attribute!r}, of {NOISES} answers each, from {min(found.sums)} to {max(found.sums)}"
    rows: Rows = [
        ("sums", of),
        ("confidence", f"{claim}; uniform noise of a larger r would have shown with probability {larger:.4g}"),
        ("theory", None if probability is None else f"right with probability {probability:.4g} (Proposition 2)"),
        ("queries", f"{found.queries:,}"),
    ]
    return (
        heading,
        rows,
        {
            "attribute": found.attribute,
            "larger_excluded": larger,
            "smallest_sum": min(found.sums),
            "largest_sum": max(found.sums),
            "sums": sums,
            "answers_a_sum": NOISES,
            "theory_probability_a_sum": perturbation_found(law or min(guess + 1, LARGEST_BOUND), 1),
            "theory_probability": probability,
            "queries": found.queries,
        },
    )
