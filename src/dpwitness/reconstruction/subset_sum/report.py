"""Results of the attack: how much it recovered, or how many queries would leave a bit private."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from dpwitness.reconstruction.command import EndedAttack
from dpwitness.reconstruction.report import Finding, Result, finding_json
from dpwitness.reconstruction.subset_sum.confidence import Scale
from dpwitness.reconstruction.subset_sum.linear_decoding import NORMAL, Bits, Floats, Reconstruction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The probability with which a guessed bit is right.
CHANCE: Final = 0.5
#: Number of bits that a report prints; --json and --save have all.
PRINTED_BITS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of an attack that sees answers alone.

    Attributes
    ----------
    reconstruction, adversary
        What the adversary of that name made of the answers.
    finding, basis
        What is claimed of it, and the reason, in words.
    stopped
        Why the system gave fewer answers than were planned; None: it did not.
    fresh_questions, fresh_error, fresh_error_of_constant
        The number of answers that were kept for checking; the errors of the reconstruction's prediction of these
        answers, and of the best constant's: root mean squares, in counts.
    scale
        Of the fresh answers, and of one half of the others as a fit to the other half predicts them.
    """

    reconstruction: Reconstruction
    adversary: str
    finding: Finding
    basis: str
    stopped: str | None
    fresh_questions: int | None = None
    fresh_error: float | None = None
    fresh_error_of_constant: float | None = None
    scale: Scale | None = None


def standard_deviation(law: str, error: float) -> float:
    """Of binomial errors, whose number of fair bits is whole, or of normal ones, in counts."""
    return float(round(error**2) ** 0.5 if law == "binomial" else error) / 2


def simulated_result(
    found: Reconstruction,
    secret: Bits,
    *,
    attack: str,
    adversary: str,
    error: float,
    law: str,
    queries: int,
    seed: int,
    seconds: float,
) -> Result:
    """How much of the secret an attack on a bundled target recovered."""
    size, ones = len(secret), int(secret.sum())
    probability = np.full(size, CHANCE)
    if found.expected_right is not None:  # the errors are normal, so fractions are the probabilities of a 1
        probability = np.maximum(found.fractions, 1 - found.fractions)
    elif adversary == "exponential":  # Theorem 2
        probability = np.full(size, 1 - 4 * error / size)
    finding = Finding(guess=found.bits, probability=probability, chance=CHANCE)
    right, guessing = finding.right(secret), max(ones, size - ones) / size
    errors = f"wrong by at most {error:g} ({law})"
    if law in NORMAL:
        errors = f"{law} errors of standard deviation {standard_deviation(law, error):g}"
    subsets = f"all {queries:,}" if adversary == "exponential" else f"{queries:,} random"
    rows: list[tuple[str, str | None]] = [
        ("adversary", f"{adversary}, {subsets} subsets"),
        ("answers", f"{errors}; E/√n = {error / size**0.5:.3g}"),
        ("for scale", f"always the commoner bit: {guessing:.1%} right"),
    ]
    if finding.claimed.any():
        rows.append(("confidence", f"{finding.probably_right:.1f} bits right, from the answers alone"))
    if found.largest_residual is not None:
        rows.append(("fit", f"misses no answer by more than {found.largest_residual:.4g}"))
    return Result(
        attack=attack,
        values={"adversary": adversary, "size": size, "error": error, "law": law, "queries": queries}
        | finding_json(finding, secret)
        | {"guessing": guessing, "largest_residual": found.largest_residual},
        heading=f"RECOVERED {right} of {size} bits ({right / size:.1%})",
        rows=rows,
        draw=lambda axes: _draw_fractions(
            axes, found.fractions, secret, f"{right} of {size} bits right; E = {error:g}, {law}"
        ),
        seed=seed,
        seconds=seconds,
    )


def own_result(ended: EndedAttack[Outcome], truth: Bits | None, *, attack: str, told_apart: int | None) -> Result:
    """What an attack recovered from the user's system, and how much of it is right where the truth is known.

    `told_apart`: the number of people who differ from all others in what conditions are about; None: subsets are asked.
    """
    outcome, asked = ended.found, ended.asked
    found, finding, scale, size = outcome.reconstruction, outcome.finding, outcome.scale, len(outcome.finding.guess)
    heading = f"NOTHING RECONSTRUCTED: as far as the answers tell, the {size} bits below are no better than guesses"
    likely = f"{finding.probably_right:.1f} of {size} bits right as far as the answers tell"
    if finding.claimed.any():
        share = f"{finding.probably_right:.1f} of them right as far as the answers tell"
        heading = f"RECONSTRUCTED {size} bits, {share} ({finding.probably_right / size:.1%})"
    rows: list[tuple[str, str | None]] = [
        ("oracle", asked.text),
        ("adversary", outcome.adversary),
        ("confidence", outcome.basis),
    ]
    if found.spread is not None:
        common = f", {found.offset:+.4g} in all answers" if abs(found.offset) > 1e-6 else ""
        rows.append(("errors", f"standard deviation {found.spread:.4g}{common}"))
    if told_apart is not None:
        rows.append(("people", f"{told_apart:,} of {size:,} differ from all others in their attributes"))
    if outcome.fresh_questions is not None:
        missed = f"{outcome.fresh_questions:,} answers it did not use are missed by {outcome.fresh_error:.4g}"
        rows.append(("fresh", f"{missed}; a constant misses them by {outcome.fresh_error_of_constant:.4g}"))
    if scale is not None:
        added = f"a bit of 1 adds {scale.value:.3g} ± {2 * scale.error:.2g}"
        rows.append(("scale", f"{added} to answers it did not use"))
    if truth is not None:
        right = finding.right(truth)
        rows.append(("truth", f"{right} of {size} bits are right ({right / size:.1%})"))
    bits = "".join(map(str, finding.guess[:PRINTED_BITS].tolist()))
    rows += [("stopped", asked.stopped), ("bits", f"{bits}{' …' if size > PRINTED_BITS else ''}")]
    return Result(
        attack=attack,
        values=asked.to_json()
        | {"adversary": outcome.adversary, "size": size}
        | finding_json(finding, truth)
        | {
            "fractions": found.fractions.tolist(),
            "basis": outcome.basis,
            "fresh_questions": outcome.fresh_questions,
            "fresh_error": outcome.fresh_error,
            "fresh_error_of_constant": outcome.fresh_error_of_constant,
            "scale": None if scale is None else scale.value,
            "scale_error": None if scale is None else scale.error,
            "spread": found.spread,
            "offset": found.offset,
            "largest_residual": found.largest_residual,
            "told_apart": told_apart,
        },
        heading=heading,
        rows=rows,
        draw=lambda axes: _draw_fractions(axes, found.fractions, truth, likely),
        seed=ended.seed,
        seconds=ended.seconds,
    )


def draw_walks(axes: "Axes", confidences: Floats, *, limit: float, told: str, allowed: int, title: str) -> None:
    """Draw the adversary's confidence in a bit that is 1: twelve walks, the middle 90 % of all, and limits (nats)."""
    places = np.unique(np.linspace(0, confidences.shape[1] - 1, 400).astype(np.int64))
    drawn = np.where(np.isfinite(confidences[:, places]), confidences[:, places], 2 * limit)
    axes.plot(places + 1, drawn[:12].T, lw=0.6, color="C0", alpha=0.6)
    low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
    axes.fill_between(places + 1, low, high, color="C0", alpha=0.15, label="middle 90 % of walks")
    for side in (limit, -limit):
        axes.axhline(side, color="C3", lw=1, label=told if side > 0 else None)
    axes.axvline(allowed, color="black", lw=1, ls="--", label="allowed")
    axes.set(xlabel="queries that hold the bit", ylabel="confidence that it is 1 (nats)", title=title)
    axes.legend(loc="upper left")


def _draw_fractions(axes: "Axes", fractions: Floats, truth: Bits | None, title: str) -> None:
    """Each person's value before rounding, which cuts at 1/2; by their true bit where that is known."""
    people = np.arange(1, len(fractions) + 1)
    if truth is None:
        axes.plot(people, fractions, "o", ms=4)
    else:
        for bit, marker in ((0, "o"), (1, "^")):
            here = truth == bit
            axes.plot(people[here], fractions[here], marker, ms=4, color=f"C{bit}", label=f"true bit {bit}")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    axes.axhline(0.5, color="black", lw=0.8, ls="--")
    axes.set(xlabel="person", ylabel="reconstructed value", ylim=(-0.05, 1.05), title=title)
