"""The perturbation finder estimates the bound r of a system's noise from its answers.

Asghar & Kaafar (2020), Algorithm 3, with Remarks 1 and 2, and section 7.1.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, product
from typing import Final

import numpy as np

from dpwitness.arrays import Booleans, Integers
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.report import Finding
from dpwitness.reconstruction.table_builder.averaging import Positions, choose_base, outliers, usable, value_positions
from dpwitness.reconstruction.table_builder.noise_laws import (
    LARGEST_BOUND,
    layered,
    truncated_laplace,
    truncated_normal,
    uniform,
)
from dpwitness.reconstruction.table_builder.systems import Block, System
from dpwitness.reconstruction.table_builder.tables import Value, Where
from dpwitness.reconstruction.table_builder.theory import weighted_law

#: Largest number of an attribute's values from which pairs of sets are made: 16 values have 21 million pairs.
MAX_PAIRED_VALUES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """Sums of `plus` answers less `minus` other answers, in people, all of them 0 without noise.

    `attribute`: the first attribute whose answers were added up.
    """

    sums: tuple[int, ...]
    plus: int
    minus: int
    queries: int
    attribute: str = ""

    def __post_init__(self) -> None:
        if not self.sums:
            raise InvalidParameter("no sub-population has answers above 0 for both values: take other values")

    @property
    def guess(self) -> int:
        """The smallest r, in people, that explains the sums: n noises within ±r have a sum of at most n·r."""
        # Low side: ⌈−z/3⌉. The −⌈z/3⌉ of the printed algorithm misses −3r+1 and −3r+2, which Proposition 2 counts.
        noises = self.plus + self.minus
        return max(-(min(self.sums) // noises), -(-max(self.sums) // noises))

    @property
    def confidence(self) -> float | None:
        """The probability that the guess is right; None where independent noise around 0 does not explain the sums."""
        return parameter_right(self.sums, self.guess, self.plus, self.minus)

    @property
    def finding(self) -> Finding:
        """The guess for r and its claim."""
        confidence = self.confidence
        return Finding(
            guess=np.array([self.guess]),
            probability=np.array([confidence or 0.0]),
            contradicted=("the sums are not those of independent noise around 0",) if confidence is None else (),
        )


def recover_perturbation(
    oracle: System,
    rng: np.random.Generator,
    attribute: str | None = None,
    sums: int = 200,
    *,
    budget: int | None = None,
    progress: Callable[[], None] = lambda: None,
) -> Perturbation:
    """Find the bound r of the noise by Algorithm 3 in sub-populations, by sets of values, or by sums of two attributes.

    `attribute`: the attribute whose pairs of values are added up, in sub-populations by the other attributes, or in
    sets of its own values if it is the only one; None: the attribute with the fewest values. `sums`: the number of sums
    to make. `budget`: the largest number of questions; None: no limit. `progress` is called between the steps, and may
    raise.

    Raises `InvalidParameter` where the budget is too small for one sum, and where no answers give a sum.
    """
    asked = oracle.asked
    attribute = attribute or min(oracle.attributes, key=lambda name: len(oracle.values(name)))
    least = len(oracle.values(attribute)) + 3
    if budget is not None and budget < least:
        raise InvalidParameter(f"--budget {budget} is too small: one sum of {attribute!r} takes {least} questions")
    base = choose_base(oracle, attribute, MAX_PAIRED_VALUES)
    if budget is not None:
        sums = min(sums, max(1, (budget - oracle.asked) // 3))
    values = {name: oracle.values(name) for name in oracle.attributes}
    if len(values) == 1:
        answers = pairs_within(oracle, rng, attribute, base, sums)
    else:
        if len(base) < 2:
            raise InvalidParameter(f"attribute {attribute!r} has {len(base)} answers above 0: at least 2 are needed")
        within = islice(sub_populations(values, attribute, rng), None if budget is None else sums)
        pair = int(base[0]), int(base[1])
        # The budget must suffice for section 7.1, too, if these sums turn out to be 0.
        first_few = None if budget is None or len(values) < 3 else MIN_INFORMATIVE_SUMS
        _, answers = in_sub_populations(oracle, attribute, pair, within, sums, first_few)
        for name in sorted(values, key=lambda name: -len(values[name])):
            progress()
            if first_few is not None and len(answers) >= first_few and not largest_sum(answers).guess:
                break
            # Sets of values replace missing sub-populations: a system with more attributes must not show less.
            missing = sums - len(answers)
            if budget is not None:
                missing = min(missing, (budget - oracle.asked - len(values[name])) // 3)
            if missing > 0 and len(base := choose_base(oracle, name, MAX_PAIRED_VALUES)) >= 2:
                answers = np.vstack([answers, pairs_within(oracle, rng, name, base, missing)])
    found = largest_sum(answers)
    if not found.guess and len(values) >= 3:
        # Totals have no noise of their own (section 7.1): two attributes with few values, within values of the others.
        first, second = sorted(values, key=lambda name: len(values[name]))[:2]
        if budget is not None:
            sums = min(sums, (budget - oracle.asked) // (len(values[first]) + len(values[second])))
        if sums >= 1:
            del values[second]
            within = islice(sub_populations(values, first, rng), None if budget is None else sums)
            found = find_perturbation_without_totals(oracle, first, second, within, sums)
    return replace(found, queries=oracle.asked - asked, attribute=attribute)


def sub_populations(values: Mapping[str, Sequence[Value]], attribute: str, rng: np.random.Generator) -> Iterator[Where]:
    """Sub-populations by single values of the other attributes, in random order, then by pairs of their values."""
    others = sorted((name for name in values if name != attribute), key=lambda name: -len(values[name]))
    for name in others:
        for i in rng.permutation(len(values[name])):
            yield {name: (values[name][i],)}
    # Attributes with few values come first: more people have each pair of values.
    for first, second in sorted(
        combinations(others, 2), key=lambda names: len(values[names[0]]) * len(values[names[1]])
    ):
        for one, two in product(values[first], values[second]):
            yield {first: (one,), second: (two,)}


def in_sub_populations(
    oracle: System,
    attribute: str,
    pair: tuple[int, int],
    conditions: Iterable[Where],
    m: int,
    first_few: int | None = None,
) -> tuple[list[Where], Integers]:
    """Ask about each of two values, and about both, in `m` suitable sub-populations (Algorithm 3, Remarks 1 and 2).

    Returns the first suitable conditions, and their answers (n₁, n₂, n₁₂), shape (conditions, 3). A suitable
    condition has no answer of 0, and other contributors than all conditions before: contributors surely differ if the
    conditions exclude each other, or their totals have unequal answers (Lemma 2). `first_few`: the number of conditions
    after which the questions end if all sums so far are 0.
    """
    selections = np.zeros((3, len(oracle.values(attribute))), np.bool_)
    selections[[0, 2], pair[0]] = True
    selections[[1, 2], pair[1]] = True
    found: list[Where] = []
    rows: list[Integers] = []
    totals: dict[int, list[Where]] = {}
    left = iter(conditions)
    while len(found) < m:
        if first_few is not None and len(found) >= first_few:
            if not largest_sum(np.array(rows, np.int64)).guess:
                break
            first_few = None
        some = list(islice(left, min(m, first_few or m) - len(found)))
        if not some:
            break
        blocks = [Block(attribute=attribute, selections=selections, where=where) for where in some]
        for condition, answers in zip(some, oracle.ask_all(blocks), strict=True):
            rivals = totals.setdefault(int(answers[2]), [])
            if usable(answers).all() and all(_exclude_each_other(condition, rival) for rival in rivals):
                rivals.append(condition)
                found.append(condition)
                rows.append(answers)
    return found, np.array(rows, np.int64).reshape(-1, 3)


def _exclude_each_other(first: Where, second: Where) -> bool:
    """Whether no person can satisfy both conditions, since an attribute would need two values."""
    return any(set(first[name]).isdisjoint(second[name]) for name in first.keys() & second.keys())


def find_perturbation_without_totals(
    oracle: System, first: str, second: str, conditions: Iterable[Where], m: int
) -> Perturbation:
    """Find the bound r from sums over two attributes' values, where totals have no noise of their own (section 7.1).

    In each sub-population the answers for all values of the first attribute and for all values of the second have the
    same true sum. The first `m` sub-populations without an answer of 0 are used. Attributes with more values take more
    questions: a sum shows r only if all its noises are large.
    """
    asked, left = oracle.asked, iter(conditions)
    sizes = [len(oracle.values(name)) for name in (first, second)]
    sums: list[int] = []
    while len(sums) < m and (some := list(islice(left, m - len(sums)))):
        blocks = [
            Block(attribute=name, selections=np.eye(size, dtype=np.bool_), where=where)
            for where in some
            for name, size in zip((first, second), sizes, strict=True)
        ]
        answers = oracle.ask_all(blocks)
        pairs = zip(answers[::2], answers[1::2], strict=True)
        sums += [int(one.sum() - other.sum()) for one, other in pairs if usable(one).all() and usable(other).all()]
    return Perturbation(sums=tuple(sums), plus=sizes[0], minus=sizes[1], queries=oracle.asked - asked)


def pairs_within(oracle: System, rng: np.random.Generator, attribute: str, base: Positions, m: int) -> Integers:
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
    return Perturbation(sums=tuple(sums.tolist()), plus=2, minus=1, queries=answers.size)


#: Prior probability that a system's noise is uniform, as in the paper.
UNIFORM_PRIOR: Final = 0.5
#: Prior probability that a system's noise is the sum of two uniform layers: few systems have layers.
LAYERED_PRIOR: Final = 0.1
#: Scales of normal and Laplace noise, in units of the guess for r: from noise that is rarely truncated to wide noise.
NOISE_SCALES: Final = (0.2, 0.3, 0.45, 0.65, 1.0)
#: Smallest number of sums that show the standard deviation of the noise: fewer sums may agree by chance.
MIN_INFORMATIVE_SUMS: Final = 20


def parameter_right(sums: tuple[int, ...], guess: int, plus: int, minus: int) -> float | None:
    """The probability that the noise's bound is `guess`, given sums of `plus` noises less `minus` others.

    By the prior, noise is uniform in one of two systems, the sum of two uniform layers in one of ten, and in the others
    normal or Laplace noise of several scales, truncated at r and rounded: its largest values are so rare that sums may
    never show them. All r have the same prior probability.

    None where the sums contradict independent noise: their mean is not 0, some sums are `outliers`, a sum depends on
    one of the three sums before, or the likeliest law does not fit.
    """
    seen = np.array(sums)
    if not 1 <= guess <= LARGEST_BOUND or np.any(outliers(seen)):
        return None
    # Few sums show no standard deviation: that of uniform noise is used if it is larger.
    expected = math.sqrt((plus + minus) * guess * (guess + 1) / 3)
    spread = max(float(seen.std()), 0.5 if len(seen) >= MIN_INFORMATIVE_SUMS else expected)
    apart = [float(seen.mean()) * math.sqrt(len(seen)) / spread]
    apart += [
        float(seen[lag:] @ seen[:-lag]) / (spread**2 * math.sqrt(len(seen))) for lag in (1, 2, 3) if lag < len(seen)
    ]
    if max(map(abs, apart)) > 3.3:  # standard errors: independent noise exceeds them once in 1,000 times
        return None
    steps = [0, 1, 2, 3, 4]
    while steps[-1] < 3 * guess + 8:
        steps.append(math.ceil(1.5 * steps[-1]))
    widths = np.diff([*steps, 2 * steps[-1] - steps[-2]])
    weights, places, laws = [], [], []
    for step, width in zip(steps, widths.tolist(), strict=True):
        r = min(guess + step, LARGEST_BOUND)
        kinds = [(uniform(r), UNIFORM_PRIOR), (layered(r), LAYERED_PRIOR)]
        for scale in NOISE_SCALES:
            share = (1 - UNIFORM_PRIOR - LAYERED_PRIOR) / 2 / len(NOISE_SCALES)
            kinds += [(truncated_normal(r, scale * guess), share), (truncated_laplace(r, scale * guess), share)]
        for law, share in kinds:
            low, p, _ = weighted_law(law, ((1, plus + minus),))
            with np.errstate(divide="ignore"):
                weights.append(float(np.log(p[seen - low]).sum()) + math.log(share * width))
            places.append(r)
            laws.append((low, p))
    logs = np.array(weights)
    low, p = laws[int(logs.argmax())]
    below = np.searchsorted(np.sort(seen), low + np.arange(len(p)), side="right") / len(seen)
    # The Kolmogorov-Smirnov distance of the right law exceeds this limit once in 1,000 times.
    if float(np.max(np.abs(below - np.cumsum(p)))) > 1.95 / math.sqrt(len(seen)):
        return None
    posterior = np.exp(logs - logs.max())
    return float(posterior[np.array(places) == guess].sum() / posterior.sum())
