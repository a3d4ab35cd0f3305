"""What averaging attacks recovered, as text and as plots."""

import io
import math
from pathlib import Path
from typing import Any

from dpwitness.files import write_atomically
from dpwitness.report.plots import plot_format

__all__ = ["defences_text", "histogram_text", "parameter_text", "plot_histogram", "plot_parameter"]

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
