"""What a reconstruction from subset sums recovered, as text and as a plot."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpwitness.files import write_atomically
from dpwitness.report.plots import plot_format

#: Bits that a report prints; --json and --save have all.
SHOWN = 256


def text(result: dict[str, Any]) -> str:
    """The report of `dpwitness attack subset_sum`, from the values of its JSON."""
    number = f"{result['queries']:,}"
    asked = f"all {number}" if result["adversary"] == "exponential" else f"{number} random"
    ratio = f"E/√n = {result['error_over_root_size']:.3g}"
    if result["law"] in ("binomial", "gaussian"):
        binomial = result["law"] == "binomial"  # of a whole number of fair bits
        deviation = (round(result["error"] ** 2) ** 0.5 if binomial else result["error"]) / 2
        errors = f"{result['law']} errors of standard deviation {deviation:g}; {ratio}"
    else:
        errors = f"wrong by at most {result['error']:g} ({result['law']}); {ratio}"
    lines = [
        f"RECOVERED {result['right']} of {result['size']} bits ({result['fraction_right']:.1%})",
        f"  adversary    {result['adversary']}, {asked} subsets",
        f"  answers      {errors}",
        f"  for scale    always the commoner bit: {result['guessing']:.1%} right",
    ]
    if result["expected_right"] is not None:
        lines.append(f"  confidence   {result['expected_right']:.1f} bits right, from the answers alone")
    if result["largest_residual"] is not None:
        lines.append(f"  fit          misses no answer by more than {result['largest_residual']:.4g}")
    return "\n".join([*lines, f"  {result['seconds']:.1f} s; seed {result['seed']}"])


def system_text(result: dict[str, Any]) -> str:
    """The report of an attack on the user's own system, from the values of its JSON."""
    size, trust, stopped = result["size"], result["confidence"], result["stopped"]
    expected = trust["expected_right"]
    told = f"RECONSTRUCTED {size} bits, {expected:.1f} of them right as far as the answers tell ({expected / size:.1%})"
    if expected <= size / 2:
        told = f"NOTHING RECONSTRUCTED: as far as the answers tell, the {size} bits below may as well be guessed"
    missing = f", {result['unanswered']:,} of them without an answer" if result["unanswered"] else ""
    lines = [
        told,
        f"  oracle       {result['oracle']}, {result['questions']:,} questions{missing}",
        f"  adversary    {result['adversary']}",
        f"  confidence   {trust['basis']}",
    ]
    if result["spread"] is not None:
        common = f", {result['offset']:+.4g} in all answers" if abs(result["offset"]) > 1e-6 else ""
        lines.append(f"  errors       standard deviation {result['spread']:.4g}{common}")
    if trust["fresh_questions"] is not None:
        lines.append(
            f"  fresh        {trust['fresh_questions']:,} answers it was not made of are missed by "
            f"{trust['fresh_error']:.4g}; a constant misses them by {trust['fresh_error_of_constant']:.4g}"
        )
    if trust["scale"] is not None:
        lines.append(
            f"  scale        a bit of 1 adds {trust['scale']:.3g} ± {2 * trust['scale_error']:.2g} to answers it was "
            "not made of"
        )
    if trust["halves_agree_on"] is not None:
        lines.append(f"  halves       of the questions give the same for {trust['halves_agree_on']} of {size} bits")
    if result["right"] is not None:
        lines.append(f"  truth        {result['right']} of {size} bits are right ({result['fraction_right']:.1%})")
    if stopped is not None:
        lines.append(f"  stopped      {stopped}")
    bits = "".join(map(str, result["recovered"][:SHOWN]))
    lines.append(f"  bits         {bits}{' …' if size > SHOWN else ''}")
    return "\n".join([*lines, f"  {result['seconds']:.1f} s; seed {result['seed']}"])


def allowed_text(result: dict[str, Any]) -> str:
    """The report of --allowed-queries, from the values of its JSON."""
    probability, later = 0.5 + result["delta"], result["walk_allows"]
    walk = f"more than {result['walk_length']:,}" if later is None else f"{later:,}"
    then = "by then" if result["told_at"] == result["allowed_queries"] else f"within {result['told_at']:,} queries"
    return "\n".join(
        [
            f"ALLOWED {result['allowed_queries']:,} queries that hold one bit",
            f"  errors       {result['law']}, standard deviation {result['standard_deviation']:g}",
            f"  until then   an adversary who knows all other bits tells it with a probability below {probability:g}, "
            f"but for {result['failure']:g} of all runs (Theorem 5)",
            f"  simulated    {result['walks']:,} walks: {result['told']:.4f} of them reach it {then}; "
            f"{walk} queries keep it below {result['failure']:g}",
            f"  {result['seconds']:.1f} s; seed {result['seed']}",
        ]
    )


def plot_reconstruction(secret: NDArray[Any], fractions: NDArray[np.float64], path: str | Path, title: str) -> None:
    """Each person's reconstructed value before rounding, by their true bit; the rounding cuts at 1/2.

    `secret`: bits, `fractions`: in [0, 1]; both of shape (n,). Raises `InvalidParameter` for an unknown format.
    """
    figure, axes = _axes(6.4, 4.2)
    people = np.arange(1, len(secret) + 1)
    for bit, marker in ((0, "o"), (1, "^")):
        here = secret == bit
        axes.plot(people[here], fractions[here], marker, ms=4, color=f"C{bit}", label=f"true bit {bit}")
    axes.axhline(0.5, color="black", lw=0.8, ls="--")
    axes.set(xlabel="person", ylabel="reconstructed value", ylim=(-0.05, 1.05), title=title)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    _write(figure, path)


def plot_fractions(fractions: NDArray[np.float64], path: str | Path, title: str) -> None:
    """The same where nobody knows the true bits. Raises `InvalidParameter` for an unknown format."""
    figure, axes = _axes(6.4, 4.2)
    axes.plot(np.arange(1, len(fractions) + 1), fractions, "o", ms=4)
    axes.axhline(0.5, color="black", lw=0.8, ls="--")
    axes.set(xlabel="person", ylabel="reconstructed value", ylim=(-0.05, 1.05), title=title)
    _write(figure, path)


def plot_walks(walks: NDArray[np.float64], result: dict[str, Any], path: str | Path) -> None:
    """Draw the adversary's confidence in a bit that is 1: some walks, the middle 90 % of all, limits, allowed queries.

    `walks`: nats after 1, 2, … answers, shape (walks, answers). Raises `InvalidParameter` for an unknown format.
    """
    figure, axes = _axes(6.4, 4.2)
    places = np.unique(np.linspace(0, walks.shape[1] - 1, 400).astype(np.int64))
    drawn, limit = np.where(np.isfinite(walks[:, places]), walks[:, places], 2 * result["limit"]), result["limit"]
    axes.plot(places + 1, drawn[:12].T, lw=0.6, color="C0", alpha=0.6)
    low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
    axes.fill_between(places + 1, low, high, color="C0", alpha=0.15, label="middle 90 % of walks")
    for side in (limit, -limit):
        axes.axhline(side, color="C3", lw=1, label=f"told with {0.5 + result['delta']:g}" if side > 0 else None)
    axes.axvline(result["allowed_queries"], color="black", lw=1, ls="--", label="allowed")
    axes.set(
        xlabel="queries that hold the bit",
        ylabel="confidence that it is 1 (nats)",
        title=f"{result['law']} errors, standard deviation {result['standard_deviation']:g}",
    )
    axes.legend(loc="upper left")
    _write(figure, path)


def _axes(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure  # 0.3 s

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _write(figure: Any, path: str | Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=plot_format(path), dpi=150)
    write_atomically(path, buffer.getvalue())
