"""The perturbation finder estimates the bound r of a system's noise from its answers.

Asghar & Kaafar (2020), Algorithm 3. Where the paper takes two values in many sub-populations, this takes many pairs of
disjoint sets of values of one attribute, which has many of these pairs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpwitness.arrays import Booleans, Integers
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.report import Finding
from dpwitness.reconstruction.table_builder.averaging import Positions, choose_base, outliers, usable, value_positions
from dpwitness.reconstruction.table_builder.noise_laws import LARGEST_BOUND, truncated_normal, uniform
from dpwitness.reconstruction.table_builder.systems import QuerySystem
from dpwitness.reconstruction.table_builder.theory import weighted_law

#: Largest number of an attribute's values from which pairs of sets are made: 16 values have 21 million pairs.
MAX_PAIRED_VALUES: Final = 16
#: Number of noises in a sum: two are added and one is subtracted.
NOISES: Final = 3
#: Prior probability that a system's noise is uniform, as in the paper; otherwise it is normal, truncated and rounded.
UNIFORM_PRIOR: Final = 0.5
#: Scales of normal noise, in units of the guess for r: from noise that is rarely truncated to wide noise.
NOISE_SCALES: Final = (0.2, 0.3, 0.45, 0.65, 1.0)
#: Smallest number of sums that show the standard deviation of the noise: fewer sums may agree by chance.
MIN_INFORMATIVE_SUMS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """The differences answer 1 + answer 2 − answer 3, in people; each is 0 without noise.

    `attribute`: the attribute whose answers were added up.
    """

    sums: tuple[int, ...]
    queries: int
    attribute: str = ""

    def __post_init__(self) -> None:
        if not self.sums:
            raise InvalidParameter("no two sets of values have answers above 0: take another attribute")

    @property
    def guess(self) -> int:
        """The smallest r, in people, that explains the sums: n noises within ±r have a sum of at most n·r."""
        # Low side: ⌈−z/3⌉. The −⌈z/3⌉ of the printed algorithm misses −3r+1 and −3r+2, which Proposition 2 counts.
        return max(-(min(self.sums) // NOISES), -(-max(self.sums) // NOISES))

    @property
    def finding(self) -> Finding:
        """The guess for r and its claim."""
        confidence = parameter_right(self.sums, self.guess)
        return Finding(
            guess=np.array([self.guess]),
            probability=np.array([confidence or 0.0]),
            contradicted=("the sums are not those of independent noise around 0",) if confidence is None else (),
        )


def recover_perturbation(
    oracle: QuerySystem,
    rng: np.random.Generator,
    attribute: str | None = None,
    sums: int = 200,
    *,
    budget: int | None = None,
) -> Perturbation:
    """Find the bound r of the noise by Algorithm 3, for disjoint sets of an attribute's values.

    `attribute`: the attribute whose values are added up; None: the attribute with the most values. `sums`: the number
    of sums to make, fewer where the attribute has few values. `budget`: the largest number of questions; None: no
    limit.

    Raises `InvalidParameter` where the budget is too small for one sum, and where no answers give a sum.
    """
    asked = oracle.asked
    attribute = attribute or max(oracle.attributes, key=lambda name: len(oracle.values(name)))
    least = len(oracle.values(attribute)) + 3
    if budget is not None and budget < least:
        raise InvalidParameter(f"--budget {budget} is too small: one sum of {attribute!r} takes {least} questions")
    base = choose_base(oracle, attribute, MAX_PAIRED_VALUES)
    if budget is not None:
        sums = min(sums, (budget - len(oracle.values(attribute))) // 3)
    answers = pairs_within(oracle, rng, attribute, base, sums)
    return replace(largest_sum(answers), queries=oracle.asked - asked, attribute=attribute)


def pairs_within(oracle: QuerySystem, rng: np.random.Generator, attribute: str, base: Positions, m: int) -> Integers:
    """Ask about `m` pairs of disjoint sets of values of one attribute: answers (n₁, n₂, n₁₂), shape (pairs, 3).

    No set is asked about twice, so all noises are independent. `base`: positions of values with answers above 0. The
    pairs are fewer where the values allow no more; pairs with an answer that is 0 or `MISSING_ANSWER` are left out.
    Raises `InvalidParameter` for a base of fewer than two values.
    """
    base = value_positions(oracle, attribute, base)
    if len(base) < 2:
        raise InvalidParameter(f"attribute {attribute!r}: {len(base)} answers above 0; at least 2 are needed")
    used: set[bytes] = set()
    rows: list[Booleans] = []
    for _ in range(50 * m):
        label = rng.integers(0, 3, len(base))
        sets = [label == 0, label == 1, label < 2]
        names = {chosen.tobytes() for chosen in sets}
        if sets[0].any() and sets[1].any() and not names & used:
            used |= names
            rows.extend(sets)
            if len(rows) == 3 * m:
                break
    selections = np.zeros((len(rows), len(oracle.values(attribute))), np.bool_)
    selections[:, base] = rows
    answers = oracle.ask(attribute, selections).reshape(-1, 3)
    return np.asarray(answers[usable(answers).all(axis=1)])


def largest_sum(answers: Integers) -> Perturbation:
    """The sums n₁ + n₂ − n₁₂ of answers (n₁, n₂, n₁₂), shape (sub-populations, 3), which give the guess."""
    sums = answers[:, 0] + answers[:, 1] - answers[:, 2]
    return Perturbation(sums=tuple(sums.tolist()), queries=answers.size)


def parameter_right(sums: Sequence[int], guess: int) -> float | None:
    """The probability that the noise's bound is `guess`, given sums of two noises less a third.

    By the prior, noise is uniform in one of two systems, and in the other normal, of several scales, truncated at r and
    rounded: its largest values are so rare that sums may never show them. All r have the same prior probability.

    None where the sums contradict independent noise: their mean is not 0, some sums are `outliers`, a sum depends on
    one of the three sums before, or the likeliest law does not fit.
    """
    seen = np.array(sums)
    if not 1 <= guess <= LARGEST_BOUND or np.any(outliers(seen)):
        return None
    # Few sums show no standard deviation: the deviation of uniform noise is used if it is larger.
    expected = math.sqrt(guess * (guess + 1))
    spread = max(float(seen.std()), 0.5 if len(seen) >= MIN_INFORMATIVE_SUMS else expected)
    products = [seen, *(seen[lag:] * seen[:-lag] / spread for lag in (1, 2, 3) if lag < len(seen))]
    if any(abs(float(one.sum())) > 3.3 * spread * math.sqrt(len(seen)) for one in products):
        return None  # independent noise exceeds 3.3 standard errors once in 1,000 times
    steps = [0, 1, 2, 3, 4]
    while steps[-1] < 3 * guess + 8:
        steps.append(math.ceil(1.5 * steps[-1]))
    bounds = [min(guess + step, LARGEST_BOUND) for step in steps]
    logs, laws = [], []
    for r, width in zip(bounds, np.diff([*steps, 2 * steps[-1] - steps[-2]]).tolist(), strict=True):
        normal = [truncated_normal(r, scale * guess) for scale in NOISE_SCALES]
        share = (1 - UNIFORM_PRIOR) / len(normal)
        for law, prior in [(uniform(r), UNIFORM_PRIOR), *((one, share) for one in normal)]:
            low, p, _ = weighted_law(law, ((1, NOISES),))
            with np.errstate(divide="ignore"):
                logs.append(float(np.log(p[seen - low]).sum()) + math.log(prior * width))
            laws.append((low, p))
    posterior = np.exp(np.array(logs) - max(logs))
    low, p = laws[int(posterior.argmax())]
    below = np.searchsorted(np.sort(seen), low + np.arange(len(p)), side="right") / len(seen)
    # The Kolmogorov-Smirnov distance of the right law exceeds this limit once in 1,000 times.
    if float(np.max(np.abs(below - np.cumsum(p)))) > 1.95 / math.sqrt(len(seen)):
        return None
    # The share of the laws with the first bound, which is the guess.
    return float(posterior[: 1 + len(NOISE_SCALES)].sum() / posterior.sum())
