"""The result of an audit of one training run."""

import math
from dataclasses import dataclass

from dpwitness.claims import Claim
from dpwitness.results.text import at_least, at_most, confidence, exceeded, wrapped
from dpwitness.results.text import p_value as p_value_text


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRun:
    """The result of an audit of one training run.

    `highest`, `lowest` and `correct` belong to the choice of guesses with the smallest p-value: the number of guesses
    on the highest scores, on the lowest scores, and the number of right guesses. `p_value` is this p-value times the
    number of tried choices. `refutable`: whether any number of right guesses would have refuted the claim.
    `lower_bound`: the largest parameter of the claim's family that is refuted at level `alpha`; 0 if no parameter is
    refuted. `detectable`: the smallest parameter, at least the claim's, that would have been refuted with 95 % power if
    the canaries were independent and each score depended on its coin as much as a claim of this parameter allows;
    infinite if no parameter would have been refuted. `seed` orders canaries with equal scores.
    """

    claim: Claim
    alpha: float
    canaries: int
    highest: int
    lowest: int
    correct: int
    refutable: bool
    p_value: float
    lower_bound: float
    detectable: float
    seed: int

    @property
    def guesses(self) -> int:
        """The number of guesses."""
        return self.highest + self.lowest

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted at level `alpha`."""
        return self.p_value <= self.alpha

    def __bool__(self) -> bool:
        raise TypeError("a result is neither true nor false: use .refuted")

    def to_json(self) -> dict[str, object]:
        """The result as JSON values; an infinite `detectable` is null."""
        own = {name: getattr(self, name) for name in self.__slots__} | {"claim": str(self.claim)}
        finite = self.detectable if math.isfinite(self.detectable) else None
        return {"one_run": "refuted" if self.refuted else "not refuted"} | own | {"detectable": finite}

    def report(self) -> str:
        """The result as text."""
        head = f"VIOLATED: not {self.claim.short}" if self.refuted else f"NOT REFUTED: {self.claim.short}"
        parts = [f"the {n:,} {which}" for n, which in ((self.highest, "highest"), (self.lowest, "lowest")) if n]
        seen = f"{self.correct:,} of {self.guesses:,} guesses are right, of {' and '.join(parts)} scores of "
        lines = wrapped(f"{seen}{self.canaries:,} canaries; p-value {p_value_text(self.p_value)}")
        if self.refuted:
            bound = exceeded(self.claim, self.lower_bound)
            return "\n".join(
                [head, *lines, f"  so {bound}{self.claim.condition} with confidence {confidence(self.alpha)}"]
            )
        least = f"{self.claim.symbol} ≥ {at_least(self.lower_bound)}{self.claim.condition}"
        lines += wrapped(f"{least} with confidence {confidence(self.alpha)}")
        if math.isfinite(self.detectable):
            caught = f"{self.claim.symbol} ≥ {at_most(self.detectable)}"
            text = f"canaries that tell as much as {caught} allows would have been refuted with 95 % power"
        else:
            text = "no parameter would have been refuted with 95 % power: use more canaries"
        warning = (
            "this is no proof of privacy" if self.refutable else "no number of right guesses would have refuted it"
        )
        return "\n".join([f"{head}; {warning}", *lines, *wrapped(text)])

    def __str__(self) -> str:
        return self.report()
