"""Results of attacks on published counts: claims without the truth, and a comparison with the truth if it is known."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from dpwitness.reconstruction.report import Asked, EndedAttack, Finding, Result, draw_claims, finding_json
from dpwitness.reconstruction.table_builder.differencing import Differences
from dpwitness.reconstruction.table_builder.histogram import Histogram
from dpwitness.reconstruction.table_builder.noise_laws import LARGEST_BOUND, NoiseLaw
from dpwitness.reconstruction.table_builder.perturbation import Perturbation
from dpwitness.reconstruction.table_builder.systems import INDEPENDENT_SYSTEMS, Simulation
from dpwitness.reconstruction.table_builder.theory import expected_right, histogram_bound, perturbation_found

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Largest number of counts in a printed table, so that it fits on a screen; --json has all counts.
MAX_ROWS: Final = 12

Rows = list[tuple[str, str | None]]
Counts = Histogram | Differences
Found = Counts | Perturbation


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


def theory_of(law: NoiseLaw | None, found: Histogram, true: Sequence[int]) -> tuple[float | None, float | None]:
    """The union bound of the probability that all counts are right, often 0, and the expected number of right counts.

    Both follow from the exact law of the noise; None if it is not known or too large, or if a count has no sum.
    """
    kinds = {*found.kinds, found.base_kinds}
    noises = max(sum(parts * k for parts, k in one) for one in kinds)
    # The transform of a law with more than 2²⁵ values would take gigabytes.
    if law is None or () in kinds or noises * 2 * law.bound > 1 << 25:
        return None, None
    fewest = min(kinds, key=lambda one: sum(k / parts for parts, k in one))
    expected = expected_right(law, found.base_kinds, found.kinds, [t == 0 for t in true])
    return histogram_bound(law, fewest, len(true)), expected


def result_of(
    ended: EndedAttack[Found], system: Simulation | Asked, data: str | None, true: Sequence[int] | None
) -> Result:
    """The result of an attack; `true`: the true counts, None if they are not known or the attack recovers no counts."""
    found = ended.found
    if isinstance(found, Perturbation):
        return _perturbation_result(ended, found, system, data)
    values, rows = _describe_system(system, data)
    finding = found.finding
    heading, hidden, compared = _compare_counts(found, finding, system, true)
    rows += hidden
    no_claim = [("no claim", text) for text in finding.contradicted]
    if isinstance(found, Differences):
        recover = "suppressed"
        if finding.claimed.any():
            rows.append(
                ("confidence", f"{found.checks:,} further answers agree with the counts, and none contradicts them")
            )
        rows += [*no_claim, ("no claim", found.note), ("queries", f"{found.queries:,}")]
    else:
        recover, size = "histogram", len(found.values)
        if finding.claimed.any():
            right_claims = f"{finding.probably_right:.2f} of {size} probably right, as the answers alone tell"
            rows.append(("confidence", f"{right_claims} (noise of variance {found.variance:.3g})"))
        rows += no_claim
        if true is not None:
            law = system.independent_law if isinstance(system, Simulation) else None
            at_least, average = theory_of(law, found, true)
            compared |= {"all_right_at_least": at_least, "expected_right": average}
            if average is not None:
                sure = f"; all with probability at least {at_least:.4g}" if at_least else ""
                rows.append(("theory", f"{average:.2f} of {size} right on average{sure}"))
        queries = (
            f"{found.queries:,}: {found.partitions:,} two-partitions a value, "
            f"{sum(k for _, k in found.base_kinds):,} once for the base set of {len(found.base)}"
        )
        rows += [("queries", queries), *(("workaround", text) for text in found.workarounds)]
    return Result(
        ended=ended,
        values={"recover": recover, **values, **found.to_json(), **compared},
        heading=heading,
        rows=rows,
        table=list(_format_counts(found, finding, true)),
        draw=partial(
            draw_claims,
            finding=finding,
            truth=None if true is None else np.array(true),
            parts=f"value of {found.attribute}, in order",
        ),
    )


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
        return heading, [], finding_json(finding) | {"true": None}
    truth, published = np.array(true), np.array(found.published)
    hidden = (truth > 0) & (truth <= system.suppressed if isinstance(system, Simulation) else published == 0)
    recovered = int(np.sum(hidden & (truth == finding.guess)))
    as_published = int(np.sum(truth == published))
    rows: Rows = [("suppressed", f"{recovered} of {hidden.sum()} hidden counts recovered")] if hidden.any() else []
    compared = {
        "true": true,
        "right_as_published": as_published,
        "suppressed": int(hidden.sum()),
        "suppressed_right": recovered,
    }
    heading = f"RECOVERED: {finding.right(truth)} of {of} exactly; {as_published} answers were right as published"
    return heading, rows, finding_json(finding, truth) | compared


def _format_counts(found: Counts, finding: Finding, true: Sequence[int] | None) -> Iterator[str]:
    """The lines of a table of wrong or positive counts: at most `MAX_ROWS`, of more the wrong or least probable."""
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


def _perturbation_result(
    ended: EndedAttack[Found], found: Perturbation, system: Simulation | Asked, data: str | None
) -> Result:
    """The result of the perturbation finder: the guess for r in people, and the probability that it is right."""
    values, rows = _describe_system(system, data)
    finding, sums = found.finding, len(found.sums)
    noise_bound = known = None
    if isinstance(system, Simulation):
        noise_bound = system.noise_bound
        # Proposition 2 holds for the sums of systems without noise of totals, too.
        known = system.law() if system.system in (*INDEPENDENT_SYSTEMS, "without-totals") else None

    def shows(noise: NoiseLaw | int, number: int) -> float:
        return perturbation_found(noise, number, plus=found.plus, minus=found.minus)

    larger = 0.0 if found.guess >= LARGEST_BOUND else shows(found.guess + 1, sums)
    probability = None if known is None else shows(known, sums)
    single = shows(known or min(found.guess + 1, LARGEST_BOUND), 1)
    heading = f"FOUND: noise within ±{found.guess}"
    if noise_bound is not None:
        heading += " (right)" if found.guess == noise_bound else f" (wrong: it is {noise_bound})"
    elif finding.contradicted:
        heading = f"NOTHING CLAIMED: noise within ±{found.guess} is a guess"
    claim = f"right with probability {finding.probably_right:.4g}"
    if finding.contradicted:
        claim = f"none: {finding.contradicted[0]}"
    rows += [
        (
            "sums",
            f"{sums} of {found.attribute!r}, of {found.plus + found.minus} answers each, "
            f"from {min(found.sums)} to {max(found.sums)}",
        ),
        ("confidence", f"{claim}; uniform noise of a larger r would have shown with probability {larger:.4g}"),
        ("theory", None if probability is None else f"right with probability {probability:.4g} (Proposition 2)"),
        ("queries", f"{found.queries:,}"),
    ]
    label = "uniform noise of a larger r"
    if isinstance(system, Simulation) and probability is not None:
        label = f"{system.noise} noise within ±{system.perturbation}"
    return Result(
        ended=ended,
        values={"recover": "perturbation", **values, "attribute": found.attribute}
        | finding_json(finding, None if noise_bound is None else np.array([noise_bound]))
        | {
            "larger_excluded": larger,
            "smallest_sum": min(found.sums),
            "largest_sum": max(found.sums),
            "sums": sums,
            "answers_a_sum": found.plus + found.minus,
            "theory_probability_a_sum": single,
            "theory_probability": probability,
            "queries": found.queries,
        },
        heading=heading,
        rows=rows,
        draw=lambda axes: _draw_proposition(axes, found, single, label),
    )


def _draw_proposition(axes: "Axes", found: Perturbation, single: float, label: str) -> None:
    """Draw the probability of Proposition 2 against the number of sums, and mark the attack's number of sums."""
    last = max(len(found.sums), math.ceil(4.6 / max(single, 1e-9)))  # e^−4.6 = 0.01
    sums = np.unique(np.maximum(1, last * np.arange(1, 201) // 200))
    axes.plot(sums, -np.expm1(sums * math.log1p(-min(single, 1 - 1e-16))), label=label)
    axes.axvline(len(found.sums), color="C1", ls="--", label=f"this attack: found {found.guess}")
    axes.set(
        xlabel=f"sums ({found.plus + found.minus} answers each)", ylabel="probability that it shows", ylim=(0, 1.03)
    )
    axes.legend()
