"""A lower bound of the true ε of a mechanism."""

from dataclasses import dataclass
from typing import Any, Final

from dpwitness.results import codec
from dpwitness.results.codec import Form
from dpwitness.results.result import EARLY, HEAD, MIDDLE, NOTES, TAIL, VERSIONS, WitnessedResult, maker
from dpwitness.results.text import notes

__all__ = ["Bound", "bound_from_json"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Bound(WitnessedResult):
    """A lower bound of the true ε of a mechanism at a δ: exceeded with the given confidence."""

    delta: float
    confidence: float

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return codec.to_json(_FORM, self)

    @property
    def _said(self) -> str:
        delta = f" at δ = {self.delta:g}" if self.delta else ""
        return f"ε ≥ {self.epsilon_lower_bound:.4g}{delta} with confidence {self.confidence:g}: {self.call}"

    def __str__(self) -> str:
        lines = [self._said, *self.witness.lines()]
        if self.ended in EARLY:
            lines.append("  stopped early; the bound is valid for the runs that were counted")
        return "\n".join([*lines, *notes(self.notes), self.spent()])

    def __repr__(self) -> str:
        return f"<Bound: {self._said}>"


def bound_from_json(value: Any) -> Bound:
    """Build a bound from parsed JSON that nobody has checked. Raises `InvalidWitness`."""
    return codec.from_json(_FORM, value, "bound")


_FORM: Final[Form[Bound]] = Form(
    maker(Bound),
    keys={
        **HEAD,
        "delta": codec.NUMBER,
        "confidence": codec.NUMBER,
        "epsilon_lower_bound": codec.NUMBER,
        **MIDDLE,
        **TAIL,
        **VERSIONS,
        **NOTES,
    },
)
