"""Results of the attack: how much it recovered, or how many queries would leave a bit private."""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from typing_extensions import override

from dpwitness.reconstruction.report import Asked, Result, new_figure, report_text, write_figure
from dpwitness.reconstruction.subset_sum.confidence import Confidence
from dpwitness.reconstruction.subset_sum.linear_decoding import NORMAL, Bits, Floats

#: Bits that a report prints; --json and --save have all.
SHOWN: Final = 256


def standard_deviation(law: str, error: float) -> float:
    """Of binomial errors, whose number of fair bits is whole, or of normal ones, in counts."""
    return float(round(error**2) ** 0.5 if law == "binomial" else error) / 2


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimulatedResult(Result):
    """How much of the secret an attack on a bundled target recovered.

    `guessing`: the share of bits that the commoner one is. `expected_right`: as the adversary itself has it, None where
    it does not say.
    """

    attack: str
    adversary: str
    size: int
    error: float
    law: str
    error_over_root_size: float
    queries: int
    right: int
    fraction_right: float
    guessing: float
    expected_right: float | None
    largest_residual: float | None
    seed: int
    seconds: float
    secret: Bits = field(repr=False)
    fractions: Floats = field(repr=False)

    @override
    def to_json(self) -> dict[str, Any]:
        written = Result.to_json(self)
        if self.largest_residual is None:
            written["largest_residual_reason"] = "the exponential adversary solves no program"
        return written

    @override
    def text(self) -> str:
        subsets = f"all {self.queries:,}" if self.adversary == "exponential" else f"{self.queries:,} random"
        errors = f"wrong by at most {self.error:g} ({self.law})"
        if self.law in NORMAL:
            errors = f"{self.law} errors of standard deviation {standard_deviation(self.law, self.error):g}"
        rows = [
            ("adversary", f"{self.adversary}, {subsets} subsets"),
            ("answers", f"{errors}; E/√n = {self.error_over_root_size:.3g}"),
            ("for scale", f"always the commoner bit: {self.guessing:.1%} right"),
        ]
        if self.expected_right is not None:
            rows.append(("confidence", f"{self.expected_right:.1f} bits right, from the answers alone"))
        if self.largest_residual is not None:
            rows.append(("fit", f"misses no answer by more than {self.largest_residual:.4g}"))
        heading = f"RECOVERED {self.right} of {self.size} bits ({self.fraction_right:.1%})"
        return report_text(heading, rows, seconds=self.seconds, seed=self.seed)

    @override
    def plot(self, path: str) -> None:
        title = f"{self.right} of {self.size} bits right; E = {self.error:g}, {self.law}"
        _plot_fractions(self.fractions, self.secret, path, title)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OwnSystemResult(Result):
    """What an attack recovered from the user's system; `right` and `fraction_right` where --data has the truth.

    `told_apart`: how many people differ from all others in what conditions are about; None where any subset is asked.
    """

    attack: str
    asked: Asked
    adversary: str
    size: int
    recovered: Bits
    fractions: Floats
    confidence: Confidence
    spread: float | None
    offset: float
    largest_residual: float | None
    told_apart: int | None
    right: int | None
    fraction_right: float | None
    stopped: str | None
    seed: int
    seconds: float
    truth: Bits | None = field(repr=False)

    @override
    def text(self) -> str:
        size, trust = self.size, self.confidence
        heading = f"NOTHING RECONSTRUCTED: as far as the answers tell, the {size} bits below are no better than guesses"
        if trust.expected_right > size / 2:
            share = f"{trust.expected_right:.1f} of them right as far as the answers tell"
            heading = f"RECONSTRUCTED {size} bits, {share} ({trust.expected_right / size:.1%})"
        rows = [("oracle", self.asked.text), ("adversary", self.adversary), ("confidence", trust.basis)]
        if self.spread is not None:
            common = f", {self.offset:+.4g} in all answers" if abs(self.offset) > 1e-6 else ""
            rows.append(("errors", f"standard deviation {self.spread:.4g}{common}"))
        if self.told_apart is not None:
            rows.append(("people", f"{self.told_apart:,} of {size:,} differ from all others in their attributes"))
        if trust.fresh_questions is not None:
            missed = f"{trust.fresh_questions:,} answers it did not use are missed by {trust.fresh_error:.4g}"
            rows.append(("fresh", f"{missed}; a constant misses them by {trust.fresh_error_of_constant:.4g}"))
        if trust.scale is not None and trust.scale_error is not None:
            added = f"a bit of 1 adds {trust.scale:.3g} ± {2 * trust.scale_error:.2g}"
            rows.append(("scale", f"{added} to answers it did not use"))
        if self.right is not None:
            rows.append(("truth", f"{self.right} of {size} bits are right ({self.fraction_right:.1%})"))
        if self.stopped is not None:
            rows.append(("stopped", self.stopped))
        bits = "".join(map(str, self.recovered[:SHOWN].tolist()))
        rows.append(("bits", f"{bits}{' …' if size > SHOWN else ''}"))
        return report_text(heading, rows, seconds=self.seconds, seed=self.seed)

    @override
    def plot(self, path: str) -> None:
        title = f"{self.confidence.expected_right:.1f} of {self.size} bits right as far as the answers tell"
        _plot_fractions(self.fractions, self.truth, path, title)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AllowedQueries(Result):
    """How many queries that hold one bit may be answered, and what simulated adversaries make of them (Theorem 5).

    Attributes
    ----------
    limit
        The confidence at which a bit is told with probability 1/2 + `delta`, in nats.
    told, told_at
        The share of `walks` that reach it within `told_at` queries: those allowed, or as many as were simulated.
    walk_allows
        How many queries keep that share below `failure`; None: all `walk_length` that were simulated.
    """

    attack: str
    law: str
    error: float
    standard_deviation: float
    delta: float
    limit: float
    failure: float
    allowed_queries: int
    walks: int
    told: float
    told_at: int
    walk_allows: int | None
    walk_length: int
    seed: int
    seconds: float
    confidences: Floats = field(repr=False)  # nats after 1, 2, … answers, shape (walks, answers)

    @override
    def text(self) -> str:
        walk = f"more than {self.walk_length:,}" if self.walk_allows is None else f"{self.walk_allows:,}"
        then = "by then" if self.told_at == self.allowed_queries else f"within {self.told_at:,} queries"
        rows = [
            ("errors", f"{self.law}, standard deviation {self.standard_deviation:g}"),
            (
                "until then",
                f"an adversary who knows all other bits tells it with a probability below {0.5 + self.delta:g}, "
                f"except in {self.failure:g} of all runs (Theorem 5)",
            ),
            (
                "simulated",
                f"{self.walks:,} walks: {self.told:.4f} of them reach it {then}; {walk} queries keep it below "
                f"{self.failure:g}",
            ),
        ]
        heading = f"ALLOWED {self.allowed_queries:,} queries that hold one bit"
        return report_text(heading, rows, seconds=self.seconds, seed=self.seed)

    @override
    def plot(self, path: str) -> None:
        """Draw the adversary's confidence in a bit that is 1: some walks, the middle 90 % of all, limits."""
        figure, axes = new_figure()
        walks, limit = self.confidences, self.limit
        places = np.unique(np.linspace(0, walks.shape[1] - 1, 400).astype(np.int64))
        drawn = np.where(np.isfinite(walks[:, places]), walks[:, places], 2 * limit)
        axes.plot(places + 1, drawn[:12].T, lw=0.6, color="C0", alpha=0.6)
        low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
        axes.fill_between(places + 1, low, high, color="C0", alpha=0.15, label="middle 90 % of walks")
        for side in (limit, -limit):
            axes.axhline(side, color="C3", lw=1, label=f"told with {0.5 + self.delta:g}" if side > 0 else None)
        axes.axvline(self.allowed_queries, color="black", lw=1, ls="--", label="allowed")
        axes.set(
            xlabel="queries that hold the bit",
            ylabel="confidence that it is 1 (nats)",
            title=f"{self.law} errors, standard deviation {self.standard_deviation:g}",
        )
        axes.legend(loc="upper left")
        write_figure(figure, path)


def _plot_fractions(fractions: Floats, truth: Bits | None, path: str, title: str) -> None:
    """Each person's value before rounding, which cuts at 1/2; by their true bit where that is known."""
    figure, axes = new_figure()
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
    write_figure(figure, path)
