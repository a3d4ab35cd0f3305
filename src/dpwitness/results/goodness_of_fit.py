"""The result of `follows`, a test whether a sampler draws independently from a law."""

import math
from dataclasses import dataclass

from dpwitness.results.text import at_most, confidence, p_value, wrapped


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GoodnessOfFit:
    """The result of `follows`: the hypothesis of independent draws from the law is refuted or not.

    `detectable_scale` is the smallest relative error of the scale, in both directions, that the same number of draws
    would have refuted with probability at least 0.95; `detectable_shift` is the smallest such shift, in the unit of the
    draws. Both are estimated by 200 simulated samples for each size, and infinite after a refutation or if the draws
    are too few. `seconds` is the time of draws and simulation.
    """

    law: str
    alpha: float  # the largest probability that a sampler that follows the law is refuted
    log_e_value: float  # the largest log e-value of all looks, in nats; infinite for a value that the law cannot have
    draws: int
    finding: str  # the sentence on the largest part of the evidence; empty if nothing is refuted
    detectable_scale: float
    detectable_shift: float
    seed: int
    seconds: float

    @property
    def refuted(self) -> bool:
        """Whether the hypothesis is refuted: the e-value reached 1/alpha."""
        return self.log_e_value >= -math.log(self.alpha)

    @property
    def p_value(self) -> float:
        """The p-value min(1, 1/E) of the largest e-value E; valid at any stopping time (Ville's inequality)."""
        return math.exp(min(0.0, -self.log_e_value))

    def __bool__(self) -> bool:
        """Raise `TypeError`, since "true" could mean refuted or passed."""
        raise TypeError("a GoodnessOfFit is neither true nor false: assert not follows(…).refuted")

    @property
    def _sentences(self) -> list[str]:
        if self.refuted:
            return [
                f"REFUTED with confidence {confidence(self.alpha)}: independent draws from {self.law}",
                self.finding,
            ]
        sizes = [("a scale wrong by {} %", 100 * self.detectable_scale), ("a shift of {}", self.detectable_shift)]
        caught = " or ".join(text.format(at_most(size, 2)) for text, size in sizes if math.isfinite(size))
        detected = f"the test would have refuted {caught or 'no scale and no shift'} with probability at least 0.95"
        return [f"NOT REFUTED: independent draws from {self.law}; this is no proof", detected]

    def report(self) -> str:
        """The result for people, in lines of at most 72 characters after the first."""
        head, *rest = self._sentences
        spent = f"p-value {p_value(self.p_value)}; {self.draws:,} draws; {self.seconds:.1f} s; seed {self.seed}"
        return "\n".join([head, *(line for sentence in (*rest, spent) for line in wrapped(sentence))])

    __str__ = report

    def __repr__(self) -> str:
        return f"<GoodnessOfFit: {'; '.join(self._sentences)}>"
