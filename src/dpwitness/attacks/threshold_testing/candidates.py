"""Witnesses against private threshold testing: Theorem 4.7 of Chen & Machanavajjhala (2015), and reconstruction.

Theorem 4.7: t copies of two queries that are 0ᵗ1ᵗ on D and 1ᵗ0ᵗ on D′, event ⊥ᵗ⊤ᵗ. The noisy threshold is shared by
all answers, so many copies find out on which side of it each query lies, and the ratio V/V′ grows with t.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.candidate import Attack, Candidate
from dpwitness.claims import Claim
from dpwitness.events import OutcomeSet
from dpwitness.exact import pattern_probability
from dpwitness.neighbours import Data, Pair, as_input

__all__ = [
    "gptt",
    "gptt_chen",
    "gptt_lee_clifton",
    "gptt_stoddard",
    "least_odds_ratio",
    "mirrored_probabilities",
    "promising_copies",
]

#: Copies tried at most; the rarest event worth counting has about this many hits in the planned runs.
MOST_COPIES: Final = 40
FEWEST_HITS: Final = 20.0
#: log(1/α) + log 2 for the bounds of confidence 0.999 that the number of copies is chosen by.
BAR: Final = 7.6
#: Reference cells of the reconstruction's event.
MOST_REFERENCES: Final = 8


def mirrored_probabilities(
    copies: int, epsilon1: float, epsilon2: float, *, threshold: float = 0.0, base: float = 0.0
) -> tuple[float, float]:
    """V and V′ of Theorem 4.7: the probability of ⊥ᵗ⊤ᵗ on D = bᵗ(b+1)ᵗ and on D′ = (b+1)ᵗbᵗ, by quadrature.

    `copies`: t. With ε₂ = ∞ V′ is 0.
    """
    answers = np.repeat([0.0, 1.0], copies)
    scales = {"threshold": threshold, "threshold_scale": 1 / epsilon1, "query_scale": 1 / epsilon2}
    return (
        pattern_probability(answers, base + answers, **scales),
        pattern_probability(answers, base + 1 - answers, **scales),
    )


def least_odds_ratio(v_neighbour: float, epsilon1: float, epsilon2: float) -> float:
    """κ of Theorem 4.7, for θ = 0: the least ratio of the odds of F(z) and F(z − 1) within the bulk of the noise.

    The bulk is |z| ≤ |F₁⁻¹(V′/4)|; F₁ and F are the distribution functions of Lap(1/ε₁) and Lap(1/ε₂). The log odds
    of F rise fastest at 0 and symmetrically about it, so the least ratio stands at the end that is further from 1/2,
    the lower one. Then V ≥ κᵗ/2 · V′.
    """
    z = np.log(v_neighbour / 2) / epsilon1  # F₁⁻¹(α) = ln(2α)/ε₁ for α ≤ 1/2
    # Below 0, F = exp(ε₂ z)/2, so the odds are F/(1 − F).
    here, shifted = (np.exp(epsilon2 * at) / 2 for at in (z, z - 1))
    return float(here * (1 - shifted) / (shifted * (1 - here)))


def promising_copies(
    epsilon1: float, epsilon2: float, *, threshold: float, base: float, claim: Claim, runs: int
) -> list[int]:
    """The t that promises most evidence against the claim in `runs` runs, and the one with the best lower bound."""
    if epsilon2 == np.inf:
        return [1]
    evidence, bound, plane = [], [], claim.half_plane()
    for t in range(1, MOST_COPIES + 1):
        v, w = mirrored_probabilities(t, epsilon1, epsilon2, threshold=threshold, base=base)
        if t > 1 and v * runs < FEWEST_HITS:
            break
        # The drift of X = 1[D] − slope·1[D′] − intercept in standard deviations, and log(V/V′) less its noise.
        evidence.append((v - plane.slope * w - plane.intercept) / np.sqrt(v + plane.slope**2 * w))
        bound.append(np.log(v / w) - np.sqrt(2 * BAR / runs * (1 / v + 1 / w)))
    return sorted({int(np.argmax(evidence)) + 1, int(np.argmax(bound)) + 1})


def _attack(budget: Callable[[dict[str, Any]], tuple[float, float]]) -> Attack:
    """The attack on an instance of private threshold testing that splits its parameters into ε₁ and ε₂ so."""

    def propose(parameters: dict[str, Any], data: Data | None, claim: Claim, runs: int) -> Iterator[Candidate]:
        sensitivity = float(parameters["sensitivity"])
        # In units of the sensitivity, so that one person moves a query by 1.
        epsilon1, epsilon2 = budget(parameters)
        threshold = float(parameters["threshold"]) / sensitivity
        base = float(np.floor(threshold))
        label = "t copies of two queries that change places"
        if data is not None:
            if sensitivity != 1 or data.ndim != 1 or np.any(data < 0) or np.any(data != np.floor(data)):
                return  # the data are no counts of people: nothing is known of what else may be asked about them
            counts = data.astype(np.int64)
            if epsilon2 == np.inf:
                yield from _reconstructions(counts, threshold, epsilon1)
                return
            cell = _mirror(counts, int(base))
            if cell is None:
                return
            label = f"differences to cell {cell + 1} of the data, one person fewer in it"
        for t in promising_copies(epsilon1, epsilon2, threshold=threshold, base=base, claim=claim, runs=runs):
            answers = np.repeat([0.0, 1.0], t)
            first, second = (base + answers) * sensitivity, (base + 1 - answers) * sensitivity
            yield Candidate(pair=Pair(as_input(first), as_input(second), label), event=OutcomeSet(answers[None]))

    return propose


gptt = _attack(lambda p: (float(p["epsilon1"]), float(p["epsilon2"])))
gptt_lee_clifton = _attack(lambda p: (float(p["epsilon"]) / 4, 3 * float(p["epsilon"]) / 4))
gptt_chen = _attack(lambda p: (float(p["epsilon"]) / 2, float(p["epsilon"]) / 2))
gptt_stoddard = _attack(lambda p: (float(p["epsilon"]), np.inf))


def _mirror(counts: NDArray[np.int64], base: int) -> int | None:
    """A cell v for which x_a − x_v = base and x_v − x_b = base + 1 for some other cells a, b; None if there is none.

    One person fewer in v, and the two differences change places: Theorem 4.7 on real data.
    """
    tally = dict(zip(*(part.tolist() for part in np.unique(counts, return_counts=True)), strict=True))
    for v, count in enumerate(counts.tolist()):
        others = tally | {count: tally[count] - 1}
        if count > 0 and others.get(count + base, 0) and others.get(count - base - 1, 0):
            return v
    return None


def _reconstructions(counts: NDArray[np.int64], threshold: float, epsilon1: float) -> Iterator[Candidate]:
    """One cell with one person fewer, and the event that the ordered partition gives its true count.

    The queries are the differences of the cell v, of another one of its count c, and of one of count c − 1 to a ladder
    of reference cells. The event: v falls into one part with the cell of count c, and not into that of c − 1. On D′
    the cell v is in the part of c − 1, always.
    """
    values, first, tally = np.unique(counts, return_index=True, return_counts=True)
    place = dict(zip(values.tolist(), range(len(values)), strict=True))
    best: tuple[float, int, NDArray[np.int64]] | None = None
    for c in values.tolist():
        if c == 0 or c - 1 not in place:
            continue
        # A reference of count r tells c from c − 1 if the noisy threshold lies in (c − 1 − r, c − r]; v, its twin and
        # the cell of c − 1 are no references.
        used = (values == c) * 2 + (values == c - 1)
        ladder = values[tally > used]
        ladder = ladder[np.argsort(np.abs(c - ladder - 0.5 - threshold), kind="stable")[:MOST_REFERENCES]]
        low, high = (np.exp(-epsilon1 * np.abs(c - d - ladder - threshold)) / 2 for d in (1, 0))
        promise = float(np.abs(high - low).sum()) if len(ladder) else 0.0
        if best is None or promise > best[0] + 1e-9:
            best = promise, c, np.sort(ladder)
    if best is None or not best[0]:
        return
    _, c, ladder = best
    # Where no other cell holds c, v is told by c − 1 alone.
    asked = [c, c - 1] if tally[place[c]] < 2 else [c, c, c - 1]
    answers = np.concatenate([count - ladder for count in asked])
    neighbour = answers.copy()
    neighbour[: len(ladder)] -= 1
    rows = [answers >= c - reference for reference in ladder]  # ⌈z⌉ = c − r
    cell = int(first[place[c]]) + 1
    label = (
        f"{len(ladder)} differences each of cell {cell}, count {c}, and of cells to compare it with; one person fewer"
    )
    yield Candidate(
        pair=Pair(as_input(answers), as_input(neighbour), label), event=OutcomeSet(np.array(rows, np.float64))
    )
