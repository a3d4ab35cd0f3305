"""The calibration of the probabilities that `attack subset_sum` claims for bits, on systems of many laws.

    python benchmarks/subset_sum_calibration.py --size 64 --systems 200

Every system has fresh random bits, and is attacked with fresh questions. Laws of the first group keep the assumptions
of the attack: sums of the bits with independent errors of mean 0, or of a mean that all answers share. The other laws
break the assumptions. Violations that no answer can show are left out: a system that counts the zeros, say, also
answers sums of bits. A row has the mean numbers of right bits and of claimed right bits per system; then, of all bits
claimed with a probability between two limits, the number of right bits. With `--adversaries least-squares polynomial
least-absolute` a row has the right and the claimed bits by adversary.
"""

from collections.abc import Callable
from itertools import cycle, pairwise
from typing import Any

import numpy as np

from dpwitness.reconstruction.questions import Asking, system_of
from dpwitness.reconstruction.subset_sum.attack import Plan, question_counts, reconstruct
from dpwitness.reconstruction.subset_sum.oracle import FORM
from results import Table, finish, parser_of

#: A function from the sum of the bits in a subset, the subset, the bits and a generator to an answer; the scale is √n.
Law = Callable[..., float]

#: Laws that keep the assumptions of the attack.
KEEP: dict[str, Law] = {
    "exact": lambda v, q, b, g: v,
    "normal_0.5": lambda v, q, b, g: v + g.normal(0, 0.5 * len(b) ** 0.5),
    "normal_1": lambda v, q, b, g: v + g.normal(0, len(b) ** 0.5),
    "normal_2": lambda v, q, b, g: v + g.normal(0, 2 * len(b) ** 0.5),
    "laplace_0.5": lambda v, q, b, g: v + g.laplace(0, 0.5 * len(b) ** 0.5),
    "uniform_1": lambda v, q, b, g: v + g.uniform(-1, 1) * len(b) ** 0.5,
    "uniform_2": lambda v, q, b, g: v + g.uniform(-2, 2) * len(b) ** 0.5,
    "laplace_1": lambda v, q, b, g: v + g.laplace(0, len(b) ** 0.5),
    "rounded_to_8": lambda v, q, b, g: 8 * np.round(v / 8),
    "offset": lambda v, q, b, g: v + len(b) / 4 + g.normal(0, 0.5 * len(b) ** 0.5),
    "outliers": lambda v, q, b, g: v + g.normal(0, (0.5 if g.random() < 0.95 else 30) * len(b) ** 0.5),
    "cauchy": lambda v, q, b, g: v + g.standard_cauchy() * 0.5 * len(b) ** 0.5,
}


def garbage(share: float) -> Law:
    """A law by which a share of the answers does not depend on the bits."""
    return lambda v, q, b, g: (
        float(g.integers(0, len(b) + 1)) if g.random() < share else v + g.normal(0, 0.3 * len(b) ** 0.5)
    )


#: Laws that break the assumptions of the attack.
BREAK: dict[str, Law] = {
    "noise": lambda v, q, b, g: float(g.integers(0, len(b) + 1)),
    "constant": lambda v, q, b, g: len(b) / 3,
    "noisy_constant": lambda v, q, b, g: len(b) / 3 + g.normal(0, len(b) ** 0.5),
    "half_sizes": lambda v, q, b, g: q.sum() / 2,
    "noisy_sizes": lambda v, q, b, g: q.sum() / 2 + g.normal(0, 0.5 * len(b) ** 0.5),
    "other_bits_each_time": lambda v, q, b, g: float(g.integers(0, 2, len(b))[q].sum()),
    "garbage_2": garbage(0.02),
    "garbage_5": garbage(0.05),
    "garbage_20": garbage(0.2),
    "garbage_40": garbage(0.4),
    "garbage_50": garbage(0.5),
    "flips_20": lambda v, q, b, g: float((b ^ (g.random(len(b)) < 0.2))[q].sum()),
    "scale_0.4": lambda v, q, b, g: 0.4 * v + g.normal(0, 0.2 * len(b) ** 0.5),
    "scale_0.8": lambda v, q, b, g: 0.8 * v + g.normal(0, 0.5 * len(b) ** 0.5),
    "scale_2": lambda v, q, b, g: 2 * v + g.normal(0, 0.5 * len(b) ** 0.5),
    "taken_from_all": lambda v, q, b, g: len(b) - v + g.normal(0, 0.5 * len(b) ** 0.5),
    "clipped": lambda v, q, b, g: float(np.clip(v + g.normal(0, 0.3 * len(b) ** 0.5), len(b) / 5, len(b) / 3.5)),
    "rounded_to_a_quarter": lambda v, q, b, g: len(b) / 4 * np.round(4 * v / len(b)),
    "suppressed": lambda v, q, b, g: 0.0 if v <= len(b) / 5 else v + g.normal(0, 0.5 * len(b) ** 0.5),
}


#: A function from the bits and a generator to a system, which answers a subset.
Maker = Callable[..., Callable[[Any], float]]


def by_sum(law: Law) -> Maker:
    """A system whose answers follow a law."""
    return lambda bits, rng: lambda q: float(law(float(bits[q].sum()), q, bits, rng))


def own(adds: Callable[..., Any], deviation: float) -> Maker:
    """A system in which people add a number of their own to every answer; the errors are N(0, deviation²·n)."""

    def make(bits: Any, rng: np.random.Generator) -> Callable[[Any], float]:
        each, spread = adds(bits, rng), deviation * len(bits) ** 0.5
        return lambda q: float(each[q].sum() + rng.normal(0, spread))

    return make


def weighted(share: float, of: float, deviation: float) -> Maker:
    """A system in which a part `of` the people add a `share` of 1 for a bit of 1."""
    return own(lambda b, g: b * np.where(g.random(len(b)) < of, share, 1.0), deviation)


def offsets(people: int, spread: float) -> Maker:
    """A system in which the first people add a number of their own beside their bit."""
    return own(lambda b, g: b + np.append(g.normal(0, spread, people), np.zeros(len(b) - people)), 0.3)


def remembering(bits: Any, rng: np.random.Generator) -> Callable[[Any], float]:
    """A system with autocorrelated errors, AR(1) of coefficient 0.9."""
    error = [0.0]

    def answer(q: Any) -> float:
        error[0] = 0.9 * error[0] + rng.normal(0, 0.5 * len(bits) ** 0.5)
        return float(bits[q].sum() + error[0])

    return answer


def pooled_noise(bits: Any, rng: np.random.Generator) -> Callable[[Any], float]:
    """A system whose errors take sixteen values in turn."""
    pool = cycle(rng.normal(0, len(bits) ** 0.5, 16))
    return lambda q: float(bits[q].sum() + next(pool))


#: Systems whose errors depend on earlier answers, or whose people add other numbers than their bits.
MEMORY: dict[str, Maker] = {
    "person_noise_0.4": own(lambda b, g: b + g.normal(0, 0.4, len(b)), 0.5),
    "person_noise_1": own(lambda b, g: b + g.normal(0, 1.0, len(b)), 0.5),
    "remembering": remembering,
    "pooled_noise": pooled_noise,
    "a_seventh_add_0.2": weighted(0.2, 1 / 7, 0.0),
    "a_seventh_add_0.4": weighted(0.4, 1 / 7, 0.0),
    "a_sample_of_0.7": own(lambda b, g: b * (g.random(len(b)) < 0.7) / 0.7, 0.0),
}
#: Systems in which some people add other numbers than their bits, hidden by noise: bins may have too few right bits.
HIDDEN: dict[str, Maker] = {
    "half_add_0.4_noisy": weighted(0.4, 1 / 2, 0.3),
    "half_add_0.3_noisy": weighted(0.3, 1 / 2, 0.3),
    "half_add_0.3_less_noisy": weighted(0.3, 1 / 2, 0.2),
    "half_add_0.2_noisy": weighted(0.2, 1 / 2, 0.3),
    "a_third_add_0.2_noisy": weighted(0.2, 1 / 3, 0.3),
    "a_third_add_0.2_less_noisy": weighted(0.2, 1 / 3, 0.2),
    "a_quarter_add_0.3_noisy": weighted(0.3, 1 / 4, 0.3),
    "0.7_add_0.2_less_noisy": weighted(0.2, 0.7, 0.2),
    "a_seventh_add_0.2_noisy": weighted(0.2, 1 / 7, 0.3),
    "ten_have_offsets_of_1": offsets(10, 1.0),
    "three_have_offsets_of_1": offsets(3, 1.0),
    "five_have_offsets_of_1.5": offsets(5, 1.5),
    "two_have_offsets_of_2": offsets(2, 2.0),
}
#: Systems for which too much is claimed: people who add almost nothing cannot be told from zeros.
UNTOLD: dict[str, Maker] = {
    "half_add_0.1_noisy": weighted(0.1, 1 / 2, 0.3),
    "half_add_nothing_noisy": weighted(0.0, 1 / 2, 0.3),
}
LAWS: dict[str, Maker] = {
    **{name: by_sum(law) for name, law in {**KEEP, **BREAK}.items()}, **MEMORY, **HIDDEN, **UNTOLD
}  # fmt: skip
#: Limits of the claims that are counted together.
LIMITS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)


def attack(name: str, size: int, seed: int, adversary: str = "least-squares") -> tuple[Any, Any]:
    """Claims and whether each is right, shape (size,), of an attack on a fresh system."""
    rng = np.random.default_rng([list(LAWS).index(name), size, seed])
    bits = rng.integers(0, 2, size)
    used, fresh = question_counts(size, None, None)
    asking = Asking(FORM, system_of(LAWS[name](bits, rng), FORM, seed=seed))
    found = reconstruct(asking, seed, Plan(size=size, used=used, fresh=fresh, adversary=adversary))
    return found.finding.probability, found.reconstruction.bits == bits


def measure(name: str, size: int, systems: int, adversary: str = "least-squares") -> dict[str, Any]:
    """The claims on systems of one law, and the number of right claims."""
    found = [attack(name, size, seed, adversary) for seed in range(systems)]
    claims, right = (np.concatenate([one[i] for one in found]) for i in (0, 1))
    bins = []
    for low, high in pairwise(LIMITS):
        here = (claims > low) & ((claims <= high) if high < 1 else True)
        if here.any():
            counts = {"bits": int(here.sum()), "right": int(right[here].sum()), "claimed": float(claims[here].mean())}
            bins.append({"from": low, **counts})
    shares = {"right": float(right.sum() / systems), "claimed": float(claims.sum() / systems)}
    return {"law": name, "size": size, "systems": systems, **shares, "bins": bins}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--systems", type=int, default=200)
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=list(LAWS))
    parser.add_argument("--adversaries", nargs="+", help="compare these instead of the claims of the usual one")
    given = parser.parse_args()
    text = f"Means of {given.systems} systems of {given.size} bits: how many are right, and claimed to be right."
    rows = []
    if given.adversaries:
        table = Table("answers", *given.adversaries)
        for name in given.laws:
            found = [measure(name, given.size, given.systems, adversary) for adversary in given.adversaries]
            rows += found
            table.add(name, *(f"{row['right']:.1f} ({row['claimed']:.1f})" for row in found))
        finish(given, "Adversaries of subset sums", text, table, rows)
        return
    table = Table("answers", "right", "claimed", "right of those claimed with a mean probability")
    for name in given.laws:
        rows.append(row := measure(name, given.size, given.systems))
        bins = (f"{b['right']:,} of {b['bits']:,} at {b['claimed']:.3f}" for b in row["bins"])
        table.add(name, f"{row['right']:.1f}", f"{row['claimed']:.1f}", "; ".join(bins) or "nothing is claimed")
    finish(given, "What the attack on subset sums claims", text, table, rows)


if __name__ == "__main__":
    main()
