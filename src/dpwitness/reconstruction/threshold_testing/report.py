"""Rows of text in the results of attacks on private threshold testing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpwitness.reconstruction.report import Finding
from dpwitness.reconstruction.threshold_testing.attack import Reconstruction

#: The largest count, in people, of the cells that are also scored by themselves, as in the paper's Table 3.
SMALL_COUNT: Final = 5
#: The number of counts that a report on the user's own system prints; its JSON has all counts.
PRINTED_COUNTS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """The mean of fractions, its standard error and the least fraction; None without values to compute them from."""

    mean: float | None
    standard_error: float | None
    least: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Average":
        """The average of at least one fraction; all fields are None if the fractions are NaN, those of no cells."""
        if math.isnan(values[0]):
            return cls(mean=None, standard_error=None, least=None)
        error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
        return cls(mean=float(np.mean(values)), standard_error=error, least=float(np.min(values)))

    def text(self, cells: int) -> str:
        """The average as text; `cells`: the number of cells of which it is a fraction."""
        if self.mean is None:
            return "none"
        error = "" if self.standard_error is None else f" ± {self.standard_error:.4f}"
        return f"{self.mean:.4f}{error} of {cells} exactly right (least {self.least:.4f})"


def reason(found: Reconstruction, support: int | None) -> str:
    """The reason for the claims, or for no claim; `support`: k of Theorem 5.12, None for the adaptive attack."""
    if found.known.any():
        if support is None:
            return "fresh sums next to the threshold came as predicted"
        return f"Theorem 5.12, if every count up to {support} occurs and ε₁ is right"
    if found.contradicted:
        return f"none: {found.contradicted[0]}"
    return "none: the counts did not pass the attack's own test"


def claims_rows(found: Reconstruction, finding: Finding, because: str) -> list[tuple[str, str | None]]:
    """Rows of text: the number of claimed counts, their probability, their factor, and the first counts."""
    if not finding.claimed.any():
        return [("claimed", because)]
    rows: list[tuple[str, str | None]] = [
        (
            "claimed",
            f"{finding.claimed.sum()} counts by {found.method}, each with confidence {found.confidence:.6f}: {because}",
        ),
        ("histogram", "the counts that the system uses: if they are rounded, capped or noisy, so are these counts"),
    ]
    if finding.up_to_factor:
        limit = found.factor_at_most
        at_most = "" if limit is None else f", at most {limit:.3g} with confidence 0.95"
        text = (
            "readable up to a factor: these counts times one whole number, the same for all cells, explain all answers "
            f"as well (it is 1 unless the counts have a common divisor{at_most})"
        )
        rows.append(("factor", text))
    first = zip(finding.guess[:PRINTED_COUNTS].tolist(), finding.claimed.tolist(), strict=False)
    more = ", …" if len(finding.guess) > PRINTED_COUNTS else ""
    return [*rows, ("counts", ", ".join(str(count) if claimed else "?" for count, claimed in first) + more)]
