"""Results of attacks on private threshold testing: as JSON, as text, and as a plot of true against guessed counts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from typing_extensions import override

from dpwitness.cli.console import say
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.report import Asked, Result, new_figure, write_figure
from dpwitness.reconstruction.threshold_testing.oracle import Counts, Flags

#: Cells of at most so many people are scored apart, as in the paper's Table 3.
SMALL: Final = 5
#: Counts that the report of an attack on the user's own system shows; its JSON has all.
SHOWN: Final = 24
NO_TRUTH: Final = "--plot draws true against guessed counts: give the true ones by --data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """Mean, standard error of the mean and least of fractions; None where there is nothing to average."""

    mean: float | None
    standard_error: float | None
    least: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Average":
        """Of at least one value; NaN stands for nothing to average."""
        if math.isnan(values[0]):
            return cls(mean=None, standard_error=None, least=None)
        error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
        return cls(mean=float(np.mean(values)), standard_error=error, least=float(np.min(values)))

    def text(self, cells: int) -> str:
        """Of so many cells."""
        if self.mean is None:
            return "none"
        error = "" if self.standard_error is None else f" ± {self.standard_error:.4f}"
        return f"{self.mean:.4f}{error} of {cells} exactly right (least {self.least:.4f})"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimulatedResult(Result):
    """Attacks on the simulated system, each on a noisy threshold of its own."""

    attack: str
    data: str
    cells: int
    small_cells: int
    epsilon: float
    epsilon1: float
    epsilon2: float | None
    epsilon2_infinite: bool
    adaptive: bool
    support: int | None
    copies: int | None
    repeat: int
    out_of_time: bool
    methods: dict[str, int]
    right: Average
    right_small: Average
    claimed: float
    claimed_wrong: int
    confidence: float  # of the last attack
    queries_per_cell: float
    seed: int
    seconds: float
    counts: Counts = field(repr=False)  # only drawn, as the guess of the last attack
    guess: Counts = field(repr=False)

    @override
    def text(self) -> str:
        how = "ordered partition (Algorithms 3 and 4)"
        if self.adaptive:
            how = "adaptive weighing"
        elif self.support is not None:
            how = f"ordered partition (Algorithm 3), all counts up to {self.support} known to occur"
        epsilon2 = "∞" if self.epsilon2 is None else f"{self.epsilon2:g}"
        lines = [
            f"counts of {self.data} through private threshold testing: {how}",
            f"  ε = {self.epsilon:g}, of which ε₁ = {self.epsilon1:g} for the threshold; ε₂ = {epsilon2}",
            f"  {'all cells':<10} {self.right.text(self.cells)}",
            f"  {f'cells ≤ {SMALL}':<10} {self.right_small.text(self.small_cells)}",
        ]
        if self.claimed:
            wrong = f"{self.claimed_wrong} of them wrong" if self.claimed_wrong else "none of them wrong"
            lines.append(
                f"  {self.claimed:.4f} of all cells claimed (in the last attack with confidence "
                f"{self.confidence:.4f}), {wrong}"
            )
        failed = sum(number for method, number in self.methods.items() if "weighing" not in method)
        if self.adaptive and failed:
            lines.append(f"  in {failed} of them the weighing did not pass its own test: Algorithm 4 instead")
        copies = "" if self.copies is None else f", {self.copies:,} copies of each"
        lines.append(f"  {self.queries_per_cell:,.1f} threshold queries a cell{copies}")
        attacks = f"{self.repeat} attacks" + (", then the time was over" if self.out_of_time else "")
        return "\n".join([*lines, f"  {attacks}; {self.seconds:.1f} s; seed {self.seed}"])

    @override
    def plot(self, path: str) -> None:
        _plot(self.counts, self.guess, path)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OwnSystemResult(Result):
    """An attack on the user's own system; of the truth it knows nothing, and `truth` is compared with it afterwards."""

    attack: str
    cells: int
    support: int | None
    claimed: int = 0
    recovered: Counts | None = None
    known: Flags | None = None
    method: str | None = None
    factor: int | None = None
    factor_at_most: float | None = None
    confidence: float | None = None
    right: int | None = None
    right_up_to_factor: int | None = None
    asked: Asked
    stopped: str | None
    seed: int
    seconds: float
    truth: Counts | None = field(repr=False)  # only drawn

    @override
    def text(self) -> str:
        lines = [f"counts of {self.cells} cells through {self.asked.oracle}: {self.asked.questions:,} questions"]
        if self.stopped is not None:
            lines.append(f"  stopped: {self.stopped}; no count is claimed before the test at the end")
        elif not self.claimed and self.support is not None:
            lines.append(
                f"  no count is claimed: the answers contradict Theorem 5.12, so not every count up to {self.support} "
                "occurs, ε₁ or ε₂ is wrong, or the threshold or the counts changed"
            )
        elif not self.claimed:
            lines.append("  no count is claimed: what was found did not pass the attack's own test")
        else:
            lines += [f"  {line}" for line in self._claims()]
        if self.right is not None:
            lines.append(f"  right: {self.right} of {self.cells} counts of --data")
            if self.right_up_to_factor is not None:
                lines.append(f"  right up to a factor: {self.right_up_to_factor} of them")
        return "\n".join([*lines, f"  {self.seconds:.1f} s; seed {self.seed}"])

    def _claims(self) -> list[str]:
        assert self.recovered is not None
        assert self.known is not None
        assert self.method is not None
        why = f"Theorem 5.12, if every count up to {self.support} occurs and ε₁ is right"
        if "weighing" in self.method:  # the ordered partition asks no fresh sums
            why = "fresh sums next to the threshold came as predicted"
        lines = [f"{self.claimed} counts recovered by {self.method}, each with confidence {self.confidence:.6f}: {why}"]
        if self.right is None:
            lines.append(
                "of the histogram that the system answers from: if that is rounded, capped or noisy, so are these"
            )
        if self.factor is None:
            limit = "" if self.factor_at_most is None else f", at most {self.factor_at_most:.3g} with confidence 0.95"
            lines.append(
                "readable up to a factor: these counts times one whole number, the same for all cells, explain all "
                f"answers as well (it is 1 unless the counts have a common divisor{limit})"
            )
        first = zip(self.recovered[:SHOWN].tolist(), self.known[:SHOWN].tolist(), strict=True)
        counts = [str(count) if known else "?" for count, known in first]
        return [*lines, "counts: " + ", ".join(counts) + (", …" if self.cells > SHOWN else "")]

    @override
    def plot(self, path: str) -> None:
        if self.truth is None:
            raise InvalidParameter(NO_TRUTH)
        if self.recovered is None:
            say("no plot: the attack stopped before it had guessed the counts")
            return
        _plot(self.truth, self.recovered, path)


def _plot(counts: Counts, guess: Counts, path: str) -> None:
    """Axes that show 0 and large counts alike."""
    figure, axes = new_figure(5.2, 5.2)
    right = counts == guess
    top = max(int(counts.max()), int(guess.max()), 1)
    axes.plot([0, top], [0, top], color="black", lw=0.6)
    axes.scatter(counts[right], guess[right], s=8, alpha=0.5, label=f"right ({int(right.sum())})")
    if not right.all():
        axes.scatter(counts[~right], guess[~right], s=8, alpha=0.5, label=f"wrong ({int((~right).sum())})")
    axes.set_xscale("symlog")
    axes.set_yscale("symlog")
    axes.set(xlabel="true count", ylabel="guessed count")
    axes.legend()
    write_figure(figure, path)
