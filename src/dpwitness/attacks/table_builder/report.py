"""What averaging attacks recovered, as text and as plots."""

import io
from pathlib import Path
from typing import Any

from dpwitness.files import write_atomically
from dpwitness.report.plots import plot_format

__all__ = ["histogram_text", "parameter_text", "plot_histogram", "plot_parameter"]

ROWS = 12


def _system(result: dict[str, Any]) -> str:
    return (
        f"{result['system']} noisy counts, {result['noise']} noise within ±{result['perturbation']}, "
        f"counts of at most {result['suppression']} suppressed"
    )


def histogram_text(result: dict[str, Any]) -> str:
    """The report of `dpwitness attack table_builder`: how many counts are right, what that took, the first rows."""
    size = len(result["values"])
    where = " and ".join(f"{name} = {' or '.join(map(str, chosen))}" for name, chosen in result["where"].items())
    lines = [
        f"RECOVERED: {result['right']} of {size} counts of {result['attribute']!r} exactly"
        f"{f' (where {where})' if where else ''}; {result['right_as_published']} answers were right as published",
        f"  system       {_system(result)}",
        f"  data         {result['data']}",
    ]
    if result["suppressed"]:
        lines.append(f"  suppressed   {result['suppressed_right']} of {result['suppressed']} hidden counts recovered")
    if result["all_right_at_least"]:
        lines.append(f"  theory       all right with probability at least {result['all_right_at_least']:.4g}")
    lines.append(
        f"  queries      {result['queries']:,}: {result['partitions']} two-partitions a value, "
        f"{result['base_partitions']} once for the base set of {len(result['base'])}"
    )
    wrong = [i for i in range(size) if result["recovered"][i] != result["true"][i]]
    shown = [*wrong, *(i for i in range(size) if i not in wrong and result["true"][i] > 0)][:ROWS]
    if shown:
        lines.append(f"  {result['attribute'][:12]:>12}  true  published  recovered")
    for i in sorted(shown):
        mark = "  wrong" if i in wrong else ""
        true, published, recovered = (result[key][i] for key in ("true", "published", "recovered"))
        lines.append(f"  {result['values'][i]!s:>12}  {true:>4}  {published:>9}  {recovered:>9}{mark}")
    if len(shown) < size:
        lines.append(f"  … {size - len(shown)} more with --json")
    lines.append(f"  {result['seconds']:.1f} s; seed {result['seed']}")
    return "\n".join(lines)


def parameter_text(result: dict[str, Any]) -> str:
    """The report of `dpwitness attack table_builder --recover perturbation`."""
    verdict = "right" if result["right"] else f"wrong: it is {result['perturbation']}"
    lines = [
        f"FOUND: noise within ±{result['guess']} ({verdict})",
        f"  system       {_system(result)}",
        f"  data         {result['data']}",
        f"  sums         {result['sums']} of {result['attribute']!r}, "
        f"from {result['smallest_sum']} to {result['largest_sum']}",
    ]
    if result["probability"] is not None:
        lines.append(f"  theory       right with probability {result['probability']:.4g} (Proposition 2)")
    lines += [f"  queries      {result['queries']:,}", f"  {result['seconds']:.1f} s; seed {result['seed']}"]
    return "\n".join(lines)


def plot_histogram(result: dict[str, Any], path: str | Path) -> None:
    """Error of the published and of the recovered count, a point a value."""
    from matplotlib.figure import Figure  # 0.3 s

    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.add_subplot()
    places = range(len(result["values"]))
    for key, marker, colour in (("published", "x", "C1"), ("recovered", "o", "C0")):
        errors = [found - true for found, true in zip(result[key], result["true"], strict=True)]
        axes.plot(places, errors, marker, ms=4, color=colour, label=key)
    axes.axhline(0, color="black", lw=0.6)
    axes.set(
        xlabel=f"value of {result['attribute']}, in order",
        ylabel="error (people)",
        title=f"{result['right']} of {len(result['values'])} counts recovered with {result['queries']:,} queries",
    )
    axes.legend()
    _save(figure, path)


def plot_parameter(result: dict[str, Any], path: str | Path) -> None:
    """The probability of Proposition 2 against the number of sums, for this r, with this attack's number marked."""
    from matplotlib.figure import Figure  # 0.3 s

    from dpwitness.attacks.table_builder.theory import perturbation_found, sub_populations_needed

    r = result["perturbation"]
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    last = max(result["sums"], sub_populations_needed(r, 0.99))
    sums = sorted({max(1, last * i // 200) for i in range(1, 201)})
    axes.plot(sums, [perturbation_found(r, m) for m in sums], label=f"uniform noise within ±{r}")
    axes.axvline(result["sums"], color="C1", ls="--", label=f"this attack: found {result['guess']}")
    axes.set(xlabel="sums (three answers each)", ylabel="probability of finding r", ylim=(0, 1.03))
    axes.legend()
    _save(figure, path)


def _save(figure: Any, path: str | Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=plot_format(path), dpi=150)
    write_atomically(path, buffer.getvalue())
