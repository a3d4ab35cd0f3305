"""A lower bound of the true ε of a mechanism, or of the parameter of another family of claims."""

from dataclasses import dataclass
from typing import ClassVar

from dpwitness.claims.claim import shown
from dpwitness.results.text import at_least, confidence
from dpwitness.results.verdict import WitnessedResult, remarks, spent


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Bound(WitnessedResult):
    """A lower bound of the true ε of a mechanism at a δ, or of its μ or ρ, at the given confidence.

    `parameter` names the bounded parameter, in the unit of its claim; `epsilon_lower_bound` is the earlier name of
    `lower_bound`.
    """

    json_keys: ClassVar[tuple[str, ...]] = (
        *("mechanism", "parameters", "delta", "confidence", "epsilon_lower_bound"), *WitnessedResult.json_keys
    )  # fmt: skip

    tested: ClassVar[bool] = False  # the claim of the witness is the bound itself

    delta: float
    confidence: float

    @property
    def alpha(self) -> float:
        """The probability that the bound is too large: 1 − confidence."""
        return self.witness.alpha

    @property
    def condition(self) -> str:
        """The fixed parameters of the bound as text, such as " at δ = 1e-05"; may be empty."""
        return f" at δ = {shown(self.delta)}" if self.delta else self.witness.claim.condition

    @property
    def _headline(self) -> str:
        least, percent = at_least(self.lower_bound), confidence(self.alpha)
        return f"{self.parameter} ≥ {least}{self.condition} with confidence {percent}: {self.call}"

    def __str__(self) -> str:
        lines = [self._headline, *self.witness.lines(tested=self.tested), *remarks(self, self.ended)]
        return "\n".join([*lines, spent(self, self.run_counts)])

    def __repr__(self) -> str:
        return f"<Bound: {self._headline}>"
