"""Results of attacks on subset sums."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from dpwitness.reconstruction.report import AttackResult, EndedAttack, Finding
from dpwitness.reconstruction.subset_sum.confidence import Scale
from dpwitness.reconstruction.subset_sum.linear_decoding import NORMAL_LAWS, PersonBits, Reconstruction

#: Probability that a bit guessed without answers is right.
CHANCE: Final = 0.5
#: Largest number of bits that a report prints, a few lines; --json and --save have all bits.
PRINTED_BITS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackOutcome:
    """The outcome of an attack that sees answers alone."""

    reconstruction: Reconstruction
    adversary: str
    finding: Finding
    basis: str  # the reason for the claims, in words
    # The scale of the fresh answers, pooled with the scale of half of the used answers, on bits from the other half.
    scale: Scale | None = None


def result_of(
    ended: EndedAttack[AttackOutcome], truth: PersonBits | None, simulated: Mapping[str, Any] = MappingProxyType({})
) -> AttackResult:
    """The result of an attack: the bits with their claims, and the number of right bits if the truth is known.

    `simulated`: the law of the simulated errors, E (in counts: a bound, or two standard deviations) and the number of
    queries; nothing for the user's own system.
    """
    outcome = ended.found
    found, finding, scale, size = outcome.reconstruction, outcome.finding, outcome.scale, len(outcome.finding.guess)
    heading = f"NOTHING RECONSTRUCTED: as far as the answers tell, the {size} bits below are no better than guesses"
    if finding.claimed.any():
        share = f"{finding.probably_right:.1f} of them right as far as the answers tell"
        heading = f"RECONSTRUCTED {size} bits, {share} ({finding.probably_right / size:.1%})"
    rows = [("adversary", outcome.adversary), ("confidence", f"{finding.probably_right:.1f} right; {outcome.basis}")]
    if truth is not None:
        right = f"{finding.right(truth)} of {size} bits"
        share = f"({finding.right(truth) / size:.1%})"
        rows.append(("truth", f"{right} are right {share}"))
        heading = f"RECOVERED {right} {share}" if simulated else heading
    if simulated:
        law, error = simulated["law"], simulated["error"]
        meaning = "twice their standard deviation" if law in NORMAL_LAWS else "their bound"
        text = f"{simulated['queries']:,}, {law} errors, E = {error:g} is {meaning}; E/√n = {error / size**0.5:.3g}"
        rows.append(("answers", text))
    if found.spread is not None:
        common = f", {found.offset:+.4g} in all answers" if abs(found.offset) > 1e-6 else ""
        rows.append(("errors", f"standard deviation {found.spread:.4g}{common}"))
    if scale is not None:
        rows.append(("scale", f"a bit of 1 adds {scale.value:.3g} ± {2 * scale.error:.2g} to fresh answers"))
    bits = "".join(map(str, finding.guess[:PRINTED_BITS].tolist()))
    rows.append(("bits", f"{bits}{' …' if size > PRINTED_BITS else ''}"))
    return AttackResult(
        ended=ended,
        finding=finding,
        truth=truth,
        parts="person",
        values={
            **simulated,
            "adversary": outcome.adversary,
            "size": size,
            "fractions": found.fractions.tolist(),
            "basis": outcome.basis,
            "scale": None if scale is None else scale.value,
            "scale_error": None if scale is None else scale.error,
            "spread": found.spread,
            "offset": found.offset,
        },
        heading=heading,
        rows=rows,
    )
