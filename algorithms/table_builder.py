"""TableBuilder: counts with bounded noise, sticky per set of contributors (Asghar & Kaafar 2020, Algorithms 1 and 2).

Data: the number of people with each value of one attribute. One run answers, under fresh noise, the questions of the
averaging attack (Algorithm 4 with section 4.2.2), and its outcome is

    the answer for each value | for each two-partition the answers for its two sides | the attack's count of everybody

The two-partitions split the first `base` values whose own answers are not 0; all other values stay on the second side.
Entries of questions not asked are NaN. Noise is drawn beforehand for every possible set of contributors: bit j of a
set's number stands for the people with the j-th base value, bit `base` for all other people.
"""

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpwitness.targets import histogram, target

Counts = NDArray[np.int64]
Keys = NDArray[np.uint64]
Transcript = NDArray[np.float64]
Key = TypeVar("Key", np.uint64, Keys)

RELATION = replace(histogram(7, any_length=True), noun="count")
SOURCE = "Asghar & Kaafar 2020"
ATTACK = "table_builder.whole_count"


def _check(perturbation: int, suppression: int, base: int, partitions: int) -> None:
    """Refuse parameters that make no sense."""
    if perturbation < 1:
        raise ValueError("perturbation must be at least 1")
    if suppression < perturbation:
        raise ValueError("suppression must be at least perturbation")
    if base < 2 or base > 12:
        raise ValueError("base must lie between 2 and 12")
    if partitions < 1:
        raise ValueError("partitions must be at least 1")


def _choose_base(counts: Counts, suppression: int, base: int) -> Counts:
    """Positions of the first values whose answers are not 0, that is, of counts above the suppression."""
    chosen = np.empty(base, np.int64)
    found = 0
    for i in range(len(counts)):
        if counts[i] > suppression and found < base:
            chosen[found] = i
            found += 1
    return chosen[:found]


def _uniform(rng: np.random.Generator, bound: int, size: int) -> Counts:
    """Whole numbers, uniform on −bound…bound."""
    drawn = np.empty(size, np.int64)
    for i in range(size):
        drawn[i] = int(rng.random() * (2 * bound + 1)) - bound  # 2⁻⁵⁰ from uniform; rng.integers takes 50 ns in numba
    return drawn


def _transcript(
    counts: Counts,
    chosen: Counts,
    suppression: int,
    base: int,
    partitions: int,
    noise: Counts,
    conditions: Counts,
    own: Counts,
) -> Transcript:
    """The answers to the attack's questions, and its count of everybody.

    `noise`: the noise of each set of contributors; `conditions`: further noise by the values that a question names;
    `own`: the noise of each value by itself, for values outside the base.
    """
    cells = len(counts)
    out = np.full(cells + 2 * partitions + 1, np.nan)
    place, others = 0, 0
    for i in range(cells):  # Algorithm 2
        if place < len(chosen) and chosen[place] == i:
            out[i] = counts[i] + noise[1 << place] + conditions[1 << place]
            place += 1
        else:
            out[i] = counts[i] + own[i] if counts[i] > suppression else 0.0
            others += counts[i]
    beside = (1 << base) if others > 0 else 0  # a value that nobody has adds no contributor
    named = (1 << base) if cells > len(chosen) else 0
    everybody = (1 << len(chosen)) - 1
    k = min(partitions, everybody >> 1)
    total = 0.0
    for code in range(1, k + 1):  # the last base value is always on the second side
        rest = everybody ^ code
        first, second = 0, others
        for j in range(len(chosen)):
            if (code >> j) & 1:
                first += counts[chosen[j]]
            else:
                second += counts[chosen[j]]
        # No side is suppressed: each holds a base value.
        first += noise[code] + conditions[code]
        second += noise[rest | beside] + conditions[rest | named]
        out[cells + 2 * code - 2] = first
        out[cells + 2 * code - 1] = second
        total += first + second
    if k > 0:
        out[cells + 2 * partitions] = np.floor(total / k + 0.5)  # Algorithm 4
    return out


@target(claim="none", neighbours=RELATION, source=f"{SOURCE}, Alg. 1 and 2", true_epsilon="∞", attack=ATTACK)
def bounded_noisy_counts(
    rng: np.random.Generator,
    counts: Counts,
    perturbation: int = 2,
    suppression: int = 4,
    base: int = 7,
    partitions: int = 63,
) -> Transcript:
    """0 for at most s people, else the count + noise uniform on −r…r, the same for the same contributors."""
    _check(perturbation, suppression, base, partitions)
    chosen = _choose_base(counts, suppression, base)
    noise = _uniform(rng, perturbation, 2 << base)  # the defect: it does not grow with the number of questions
    own = _uniform(rng, perturbation, len(counts))
    return _transcript(counts, chosen, suppression, base, partitions, noise, np.zeros(2 << base, np.int64), own)


def splitmix64(key: Key) -> Key:
    """The finaliser of splitmix64 (Steele, Lea & Flood 2014), of one key or of many."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


def _looked_up(key: np.uint64, perturbation: int) -> int:
    """The noise of a key in a table of 2³² cells, entered by a hash.

    Keys of sets are linear (xor); the hash makes noises that are not.
    """
    cell = splitmix64(key) >> np.uint64(32)
    return int((cell * np.uint64(2 * perturbation + 1)) >> np.uint64(32)) - perturbation


@target(
    claim="none",
    neighbours=RELATION,
    source=f"Fraser & Wooton 2005; {SOURCE}, section 5.1",
    true_epsilon="∞",
    attack=ATTACK,
)
def keyed_noisy_counts(
    rng: np.random.Generator,
    counts: Counts,
    perturbation: int = 2,
    suppression: int = 4,
    base: int = 7,
    partitions: int = 63,
) -> Transcript:
    """The deployed variant: each person has a key; the xor of the contributors' keys enters a perturbation table."""
    _check(perturbation, suppression, base, partitions)
    chosen = _choose_base(counts, suppression, base)
    keys = np.zeros(2 << base, np.uint64)
    own = np.zeros(len(counts), np.int64)
    place = 0
    for i in range(len(counts)):
        key = np.uint64(0)
        if counts[i] > 0:  # the xor of any number of fresh keys is distributed as one fresh key
            halves = rng.integers(0, 1 << 32, 2)
            key = (np.uint64(halves[0]) << np.uint64(32)) | np.uint64(halves[1])
        own[i] = _looked_up(key, perturbation)
        if place < len(chosen) and chosen[place] == i:
            keys[1 << place] = key
            place += 1
        else:
            keys[1 << base] ^= key
    noise = np.zeros(2 << base, np.int64)
    for members in range(1, 2 << base):
        last = members & -members
        keys[members] = keys[last] ^ (keys[members ^ last] if members != last else np.uint64(0))
        noise[members] = _looked_up(keys[members], perturbation)
    return _transcript(counts, chosen, suppression, base, partitions, noise, np.zeros(2 << base, np.int64), own)


def _bell(rng: np.random.Generator, bound: int, spread: float, size: int) -> Counts:
    """Whole numbers on −bound…bound with p(e) ∝ exp(−e²/(2·spread²))."""
    weights = np.exp(-((np.arange(2 * bound + 1) - bound) ** 2) / (2 * spread * spread))
    total = weights.sum()
    drawn = np.empty(size, np.int64)
    for i in range(size):
        left = rng.random() * total - weights[0]
        place = 0
        while left >= 0 and place < 2 * bound:
            place += 1
            left -= weights[place]
        drawn[i] = place - bound
    return drawn


@target(
    claim="none",
    neighbours=RELATION,
    source=f"Marley & Leaver 2011; {SOURCE}, section 6",
    true_epsilon="∞",
    attack=ATTACK,
)
def entropic_noisy_counts(
    rng: np.random.Generator,
    counts: Counts,
    perturbation: int = 2,
    suppression: int = 4,
    base: int = 7,
    partitions: int = 63,
    spread: float = 1.0,
) -> Transcript:
    """Noise of largest entropy under a variance bound: p(e) ∝ exp(−e²/(2·spread²)) on −r…r."""
    _check(perturbation, suppression, base, partitions)
    if not spread > 0:
        raise ValueError("spread must be positive")
    chosen = _choose_base(counts, suppression, base)
    noise = _bell(rng, perturbation, spread, 2 << base)
    own = _bell(rng, perturbation, spread, len(counts))
    return _transcript(counts, chosen, suppression, base, partitions, noise, np.zeros(2 << base, np.int64), own)


@target(
    claim="none", neighbours=RELATION, source=f"{SOURCE}, section 6", true_epsilon="∞ (bounded noise)", attack=ATTACK
)
def growing_noisy_counts(
    rng: np.random.Generator,
    counts: Counts,
    perturbation: int = 2,
    suppression: int = 4,
    base: int = 7,
    partitions: int = 63,
) -> Transcript:
    """A mitigation: noise uniform within ±⌈r·√t⌉ for t questions, so that averaging gains nothing."""
    _check(perturbation, suppression, base, partitions)
    chosen = _choose_base(counts, suppression, base)
    questions = len(counts) + 2 * min(partitions, ((1 << len(chosen)) - 1) >> 1)
    bound = int(np.ceil(perturbation * np.sqrt(questions)))
    noise = _uniform(rng, bound, 2 << base)
    own = _uniform(rng, bound, len(counts))
    return _transcript(counts, chosen, suppression, base, partitions, noise, np.zeros(2 << base, np.int64), own)


@target(
    claim="none",
    neighbours=RELATION,
    source=f"Francis et al. 2017 (Diffix); {SOURCE}, section 9",
    true_epsilon="∞ (bounded noise)",
    attack=ATTACK,
)
def layered_noisy_counts(
    rng: np.random.Generator,
    counts: Counts,
    perturbation: int = 2,
    suppression: int = 4,
    base: int = 7,
    partitions: int = 63,
) -> Transcript:
    """A mitigation by layers: noise by set of contributors, noise by condition, and noise of the sub-population.

    The noise of the sub-population is the same in all answers.
    """
    _check(perturbation, suppression, base, partitions)
    chosen = _choose_base(counts, suppression, base)
    sticky = _uniform(rng, perturbation, 1)[0]
    noise = sticky + _uniform(rng, perturbation, 2 << base)
    conditions = _uniform(rng, perturbation, 2 << base)
    own = sticky + _uniform(rng, perturbation, len(counts)) + _uniform(rng, perturbation, len(counts))
    return _transcript(counts, chosen, suppression, base, partitions, noise, conditions, own)
