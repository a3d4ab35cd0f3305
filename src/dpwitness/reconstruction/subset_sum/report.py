"""Results of attacks on subset sums, and the plot of the number of queries that leave a bit private."""

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from dpwitness.arrays import Floats
from dpwitness.reconstruction.report import Asked, EndedAttack, Finding, Result, draw_claims, finding_json
from dpwitness.reconstruction.subset_sum.confidence import Scale
from dpwitness.reconstruction.subset_sum.linear_decoding import NORMAL_LAWS, Bits, Reconstruction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Probability that a bit guessed without answers is right.
CHANCE: Final = 0.5
#: Largest number of bits that a report prints, a few lines; --json and --save have all bits.
PRINTED_BITS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of an attack that sees answers alone."""

    reconstruction: Reconstruction
    adversary: str
    finding: Finding
    basis: str  # the reason for the claims, in words
    stopped: str | None  # the reason why the system gave fewer answers than planned; None if it gave all
    fresh_questions: int | None = None  # the number of answers kept for checking
    fresh_error: float | None = None  # the root mean square error of the reconstruction's predictions, in counts
    fresh_error_of_constant: float | None = None  # the root mean square error of the best constant, in counts
    # The scale of the fresh answers, pooled with the scale of half of the used answers, on bits from the other half.
    scale: Scale | None = None


def standard_deviation(law: str, error: float) -> float:
    """The standard deviation of errors, in counts: E/2, for binomial errors with E² rounded to whole fair bits."""
    return float(round(error**2) ** 0.5 if law == "binomial" else error) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The simulated system: the law of its errors, E (in counts: a bound, or two standard deviations), its queries."""

    law: str
    error: float
    queries: int

    def to_json(self) -> dict[str, object]:
        """The fields as a dict for JSON."""
        return asdict(self)

    def rows(self, secret: Bits) -> list[tuple[str, str | None]]:
        """Rows of text: the errors, and as a baseline the share of people who have the commoner bit."""
        errors = f"wrong by at most {self.error:g} ({self.law})"
        if self.law in NORMAL_LAWS:
            errors = f"{self.law} errors of standard deviation {standard_deviation(self.law, self.error):g}"
        size, ones = len(secret), int(secret.sum())
        return [
            ("answers", f"{errors}; E/√n = {self.error / size**0.5:.3g}"),
            ("baseline", f"always the commoner bit: {max(ones, size - ones) / size:.1%} right"),
        ]


def result_of(
    ended: EndedAttack[Outcome], system: Simulated | Asked, truth: Bits | None, told_apart: int | None
) -> Result:
    """The result of an attack: the bits with their claims, and the number of right bits if the truth is known.

    `told_apart`: the number of people who differ from all others in the attributes of conditions; None for subsets.
    """
    outcome = ended.found
    found, finding, scale, size = outcome.reconstruction, outcome.finding, outcome.scale, len(outcome.finding.guess)
    right = 0 if truth is None else finding.right(truth)
    heading = f"NOTHING RECONSTRUCTED: as far as the answers tell, the {size} bits below are no better than guesses"
    if finding.claimed.any():
        share = f"{finding.probably_right:.1f} of them right as far as the answers tell"
        heading = f"RECONSTRUCTED {size} bits, {share} ({finding.probably_right / size:.1%})"
    rows: list[tuple[str, str | None]] = [("adversary", outcome.adversary), ("confidence", outcome.basis)]
    if isinstance(system, Asked):
        rows.insert(0, ("oracle", system.text))
        if truth is not None:
            rows.append(("truth", f"{right} of {size} bits are right ({right / size:.1%})"))
    elif truth is not None:
        heading = f"RECOVERED {right} of {size} bits ({right / size:.1%})"
        subsets = f"all {system.queries:,}" if outcome.adversary == "exponential" else f"{system.queries:,} random"
        claim = f"{finding.probably_right:.1f} bits right; {outcome.basis}"
        rows = [("adversary", f"{outcome.adversary}, {subsets} subsets"), *system.rows(truth), ("confidence", claim)]
    if found.spread is not None:
        common = f", {found.offset:+.4g} in all answers" if abs(found.offset) > 1e-6 else ""
        rows.append(("errors", f"standard deviation {found.spread:.4g}{common}"))
    if told_apart is not None:
        rows.append(("people", f"{told_apart:,} of {size:,} differ from all others in their attributes"))
    if outcome.fresh_questions is not None:
        missed = f"{outcome.fresh_error:.4g}; a constant misses them by {outcome.fresh_error_of_constant:.4g}"
        kept = f"{outcome.fresh_questions:,} answers that the reconstruction did not use"
        rows.append(("fresh", f"{kept} are missed by {missed}"))
    if scale is not None:
        rows.append(("scale", f"a bit of 1 adds {scale.value:.3g} ± {2 * scale.error:.2g} to fresh answers"))
    bits = "".join(map(str, finding.guess[:PRINTED_BITS].tolist()))
    rows += [("stopped", outcome.stopped), ("bits", f"{bits}{' …' if size > PRINTED_BITS else ''}")]
    return Result(
        ended=ended,
        values=system.to_json()
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
        draw=partial(draw_claims, finding=finding, truth=truth, parts="person"),
    )


def draw_walks(axes: "Axes", confidences: Floats, *, limit: float, told: str, allowed: int, title: str) -> None:
    """Draw the adversary's confidence (nats) in a bit that is 1: twelve walks, the middle 90 % of all walks, limits."""
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
