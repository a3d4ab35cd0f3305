"""What an averaging attack found, as the values of its report: known without the truth, and compared with it.

What averaging attacks recovered, as text and as plots.
"""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpwitness.files import write_atomically
from dpwitness.reconstruction.table_builder.confidence import parameter_right
from dpwitness.reconstruction.table_builder.histogram import Histogram
from dpwitness.reconstruction.table_builder.perturbation import Perturbation
from dpwitness.reconstruction.table_builder.systems import NoiseLaw
from dpwitness.reconstruction.table_builder.theory import expected_right_of, histogram_bound, perturbation_found
from dpwitness.report.plots import plot_format

#: Noises × bound, beyond which the exact law is not computed: its transform would take gigabytes.
LARGEST_LAW = 1 << 25


def found_histogram(found: Histogram) -> dict[str, Any]:
    """What the attack knows: counts and how sure it is of each.

    `confidence` is null where no sums could differ, and where `failed_checks` says what contradicts the assumptions.
    """
    sure = found.variance is not None and found.variance > 0 and not found.failed_checks
    return {
        "attribute": found.attribute,
        "values": list(found.values),
        "published": list(found.noisy),
        "recovered": list(found.counts),
        "confidence": list(found.confidence) if sure else None,
        "probably_right": sum(found.confidence) if sure else None,
        "base": list(found.base),
        "base_partitions": sum(k for _, k in found.base_kinds),
        "partitions": found.partitions,
        "noise_variance": found.variance,
        "workarounds": list(found.workarounds),
        "failed_checks": list(found.failed_checks),
        "queries": found.queries,
    }


def compared(true: Sequence[int], found: Histogram, suppression: int | None) -> dict[str, Any]:
    """How many published and recovered counts are right; of the suppressed ones where it is known which these are."""
    pairs = list(zip(true, found.counts, found.noisy, strict=True))
    hidden = [(t, c) for t, c, shown in pairs if t > 0 and (t <= suppression if suppression is not None else not shown)]
    return {
        "true": list(true),
        "right": sum(t == c for t, c, _ in pairs),
        "right_as_published": sum(t == shown for t, _, shown in pairs),
        "suppressed": len(hidden),
        "suppressed_right": sum(t == c for t, c in hidden),
    }


def predicted(law: NoiseLaw | None, found: Histogram, true: Sequence[int]) -> dict[str, Any]:
    """What the theory says of such a run: null where the noise's law is not known, or a count has no sum at all.

    `all_right_at_least`: the union bound, often 0; `expected_right`: the exact expectation.
    """
    kinds = {*found.kinds, found.base_kinds}
    noises = max(sum(parts * k for parts, k in one) for one in kinds)
    if law is None or () in kinds or noises * 2 * law.bound > LARGEST_LAW:
        return {"all_right_at_least": None, "expected_right": None}
    fewest = min(kinds, key=lambda one: sum(k / parts for parts, k in one))
    return {
        "all_right_at_least": histogram_bound(law, fewest, len(true)),
        "expected_right": expected_right_of(law, found.base_kinds, found.kinds, [t == 0 for t in true]),
    }


def found_parameter(found: Perturbation, law: NoiseLaw | None) -> dict[str, Any]:
    """The guess for r, and how sure one may be of it.

    `confidence`: the probability that it is right, as `parameter_right` has it; null where the sums are not those of
    independent noise around 0. `larger_excluded`: with this probability uniform noise of a larger r would have shown.
    `probability`: with which such an attack finds the r of the simulated `law`, null without one; `probability_a_sum`:
    with which one sum gives it away, or without a law uniform noise of an r that is larger by 1.
    """
    shape = {"plus": found.plus, "minus": found.minus}
    return {
        "guess": found.guess,
        "confidence": parameter_right(found.seen, found.guess, **shape),
        "larger_excluded": perturbation_found(found.guess + 1, found.sums, **shape),
        "right": None if law is None else found.guess == law.bound,
        "smallest_sum": found.smallest,
        "largest_sum": found.largest,
        "sums": found.sums,
        "answers_a_sum": found.plus + found.minus,
        "probability_a_sum": perturbation_found(found.guess + 1 if law is None else law, 1, **shape),
        "probability": None if law is None else perturbation_found(law, found.sums, **shape),
    }


ROWS = 12


def _system(result: dict[str, Any]) -> str:
    if "oracle" in result:
        limits = [f"{name} {result[name]:,}" for name in ("budget", "rate") if result[name] is not None]
        stopped = f"\n  stopped      {result['stopped']}" if result["stopped"] else ""
        return ", ".join([str(result["oracle"]), *limits]) + stopped
    return (
        f"{result['system']} noisy counts, {result['noise']} noise within ±{result['perturbation']}, "
        f"counts of at most {result['suppression']} suppressed"
    )


def histogram_text(result: dict[str, Any]) -> str:
    """The report of `dpwitness attack table_builder`: what was recovered, how sure and how right it is."""
    size = len(result["values"])
    where = " and ".join(f"{name} = {' or '.join(map(str, chosen))}" for name, chosen in result["where"].items())
    of = f"of {result['attribute']!r}{f' (where {where})' if where else ''}"
    if result["right"] is None:
        lines = [f"RECOVERED: {size} counts {of}{_sureness(result)}"]
    else:
        lines = [
            f"RECOVERED: {result['right']} of {size} counts {of} exactly; {result['right_as_published']} answers were "
            "right as published"
        ]
    lines.append(f"  system       {_system(result)}")
    if result["data"]:
        lines.append(f"  data         {result['data']}")
    if result.get("suppressed"):
        lines.append(f"  suppressed   {result['suppressed_right']} of {result['suppressed']} hidden counts recovered")
    if result["probably_right"] is not None:
        lines.append(
            f"  confidence   {result['probably_right']:.2f} of {size} probably right, as the answers alone tell "
            f"(noise of variance {result['noise_variance']:.3g})"
        )
    lines += [f"  no claim     {text}" for text in result["failed_checks"]]
    if result.get("expected_right") is not None:
        bound = result["all_right_at_least"]
        lines.append(
            f"  theory       {result['expected_right']:.2f} of {size} right on average"
            + (f"; all with probability at least {bound:.4g}" if bound else "")
        )
    lines.append(
        f"  queries      {result['queries']:,}: {result['partitions']:,} two-partitions a value, "
        f"{result['base_partitions']:,} once for the base set of {len(result['base'])}"
    )
    lines += [f"  workaround   {text}" for text in result["workarounds"]]
    lines += _rows(result)
    lines.append(f"  {result['seconds']:.1f} s; seed {result['seed']}")
    return "\n".join(lines)


def _sureness(result: dict[str, Any]) -> str:
    if result["confidence"] is None:
        return "; the answers do not tell how right they are"
    least = math.floor(min(result["confidence"]) * 1e4) / 1e4
    return f", each right with probability {least:.4f} or more"


def _rows(result: dict[str, Any]) -> list[str]:
    """A table of counts: wrong or doubtful ones first, where it is too long."""
    size, true = len(result["values"]), result.get("true")
    confidence = result["confidence"] or [None] * size
    wrong = set() if true is None else {i for i in range(size) if result["recovered"][i] != true[i]}
    order = sorted(range(size), key=lambda i: (i not in wrong, confidence[i] if true is None else 0, i))
    shown = [i for i in order if i in wrong or result["recovered"][i] > 0][:ROWS]
    if not shown:
        return []
    last = "  true" if true is not None else ""
    lines = [f"  {result['attribute'][:12]:>12}  published  recovered  probability{last}"]
    for i in sorted(shown):
        sure = "" if confidence[i] is None else f"{confidence[i]:.4f}"
        cells = f"  {result['values'][i]!s:>12}  {result['published'][i]:>9}  {result['recovered'][i]:>9}  {sure:>11}"
        lines.append(f"{cells}{'' if true is None else f'  {true[i]:>4}'}{'  wrong' if i in wrong else ''}")
    if len(shown) < size:
        lines.append(f"  … {size - len(shown)} more with --json")
    return lines


def parameter_text(result: dict[str, Any]) -> str:
    """The report of `dpwitness attack table_builder --recover perturbation`."""
    verdict = ""
    if result["right"] is not None:
        verdict = " (right)" if result["right"] else f" (wrong: it is {result['perturbation']})"
    lines = [f"FOUND: noise within ±{result['guess']}{verdict}", f"  system       {_system(result)}"]
    if result["data"]:
        lines.append(f"  data         {result['data']}")
    lines += [
        f"  sums         {result['sums']} of {result['attribute']!r}, of {result['answers_a_sum']} answers each, "
        f"from {result['smallest_sum']} to {result['largest_sum']}",
        f"  confidence   {_parameter_sureness(result)}; uniform noise of a larger r would have shown with probability "
        f"{result['larger_excluded']:.4g}",
    ]
    if result["probability"] is not None:
        lines.append(f"  theory       right with probability {result['probability']:.4g} (Proposition 2)")
    lines += [f"  queries      {result['queries']:,}", f"  {result['seconds']:.1f} s; seed {result['seed']}"]
    return "\n".join(lines)


def _parameter_sureness(result: dict[str, Any]) -> str:
    if result["confidence"] is None:
        return "none: the sums are not those of independent noise around 0"
    return f"right with probability {result['confidence']:.4g}"


def defences_text(rows: list[dict[str, Any]]) -> str:
    """The table of defences as Markdown, as `docs/attacks.md` has it."""
    lines = [
        "| Defence | The attack that answers it | Questions a value | Right as published "
        "| Right by two-partitions | Right by the answer | Theory |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        shares = ["refused" if row["two_partitions"] is None else f"{row['two_partitions']:.0%}", f"{row['right']:.1%}"]
        theory = "" if row["predicted"] is None else f"{row['predicted']:.1%}"
        lines.append(
            f"| {row['defence']} | {row['answer']} ({row['source']}) | {row['questions']:,.0f} "
            f"| {row['published']:.0%} | {shares[0]} | {shares[1]} | {theory} |"
        )
    return "\n".join(lines)


def plot_histogram(result: dict[str, Any], path: str | Path) -> None:
    """Error of the published and of the recovered count, a point a value; without the truth the difference of both."""
    from matplotlib.figure import Figure  # 0.3 s

    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.add_subplot()
    places = range(len(result["values"]))
    true = result["true"] or result["recovered"]  # without the truth: how far the published counts are from these
    for key, marker, colour in (("published", "x", "C1"), ("recovered", "o", "C0")):
        errors = [found - count for found, count in zip(result[key], true, strict=True)]
        axes.plot(places, errors, marker, ms=4, color=colour, label=key)
    axes.axhline(0, color="black", lw=0.6)
    right = "" if result["right"] is None else f"{result['right']} of "
    axes.set(
        xlabel=f"value of {result['attribute']}, in order",
        ylabel="error (people)" if result["true"] else "difference to the recovered count (people)",
        title=f"{right}{len(result['values'])} counts recovered with {result['queries']:,} queries",
    )
    axes.legend()
    _save(figure, path)


def plot_parameter(result: dict[str, Any], path: str | Path) -> None:
    """The probability of Proposition 2 against the number of sums, for this r, with this attack's number marked."""
    from matplotlib.figure import Figure  # 0.3 s

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    single, known = result["probability_a_sum"], result["probability"] is not None
    last = max(result["sums"], math.ceil(4.6 / max(single, 1e-9)))  # e^−4.6 = 0.01
    sums = sorted({max(1, last * i // 200) for i in range(1, 201)})
    label = f"{result['noise']} noise within ±{result['perturbation']}" if known else "uniform noise of a larger r"
    axes.plot(sums, [-math.expm1(m * math.log1p(-min(single, 1 - 1e-16))) for m in sums], label=label)
    axes.axvline(result["sums"], color="C1", ls="--", label=f"this attack: found {result['guess']}")
    axes.set(
        xlabel=f"sums ({result['answers_a_sum']} answers each)", ylabel="probability that it shows", ylim=(0, 1.03)
    )
    axes.legend()
    _save(figure, path)


def _save(figure: Any, path: str | Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=plot_format(path), dpi=150)
    write_atomically(path, buffer.getvalue())
