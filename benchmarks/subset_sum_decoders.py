"""The adversaries of `attack subset_sum` behind errors of many laws: which one to name with --adversary.

    python benchmarks/subset_sum_decoders.py --systems 8

Every system has fresh random bits, and each adversary is given the same questions and answers. A row has, by adversary,
the number of bits that are right and, in parentheses, the number that are claimed to be right; both a system.
"""

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np

Floats = Any
#: From sums of the bits of subsets, how many bits there are, and a generator to answers; the scale is √n.
Law = Callable[[Floats, int, np.random.Generator], Floats]
ADVERSARIES = ("least-squares", "polynomial", "least-absolute")


def garbage(share: float) -> Law:
    """Answers of which a share has nothing to do with anybody."""
    return lambda v, n, g: np.where(
        g.random(len(v)) < share, g.integers(0, n + 1, len(v)), v + g.normal(0, 0.3 * n**0.5, len(v))
    )


LAWS: dict[str, Law] = {
    "exact": lambda v, n, g: v,
    "normal_0.5": lambda v, n, g: v + g.normal(0, 0.5 * n**0.5, len(v)),
    "normal_1": lambda v, n, g: v + g.normal(0, n**0.5, len(v)),
    "uniform_1": lambda v, n, g: v + g.uniform(-1, 1, len(v)) * n**0.5,
    "uniform_2": lambda v, n, g: v + g.uniform(-2, 2, len(v)) * n**0.5,
    "rounded_1": lambda v, n, g: n**0.5 * np.round(v / n**0.5),
    "rounded_2": lambda v, n, g: 2 * n**0.5 * np.round(v / (2 * n**0.5)),
    "laplace_0.5": lambda v, n, g: v + g.laplace(0, 0.5 * n**0.5, len(v)),
    "laplace_1": lambda v, n, g: v + g.laplace(0, n**0.5, len(v)),
    "cauchy": lambda v, n, g: v + 0.5 * n**0.5 * g.standard_cauchy(len(v)),
    "outliers": lambda v, n, g: v + g.normal(0, 1, len(v)) * np.where(g.random(len(v)) < 0.05, 30, 0.5) * n**0.5,
    "garbage_5": garbage(0.05),
    "garbage_20": garbage(0.2),
    "garbage_40": garbage(0.4),
    "offset": lambda v, n, g: v + n / 4 + g.normal(0, 0.5 * n**0.5, len(v)),
}


def measure(law: str, adversary: str, size: int, systems: int) -> tuple[float, float]:
    """Bits that are right, and that are claimed to be right, a system."""
    from dpwitness.machine import Deadline
    from dpwitness.reconstruction.questions import Asking, system_of
    from dpwitness.reconstruction.subset_sum.attack import Plan, question_counts, reconstruct
    from dpwitness.reconstruction.subset_sum.oracle import FORM

    used, fresh = question_counts(size, None, None)
    right = claimed = 0.0
    for seed in range(systems):
        rng = np.random.default_rng([list(LAWS).index(law), size, seed])
        secret = rng.integers(0, 2, size)

        def ask(subset: Floats, secret: Floats = secret, rng: np.random.Generator = rng) -> float:
            return float(LAWS[law](np.array([float(secret[subset].sum())]), size, rng)[0])

        asking = Asking(FORM, system_of(ask, FORM, seed=seed))
        plan = Plan(size=size, used=used, fresh=fresh, adversary=adversary)
        found = reconstruct(asking, seed, plan, Deadline(math.inf))
        right += int(np.sum(found.reconstruction.bits == secret))
        claimed += found.confidence.expected_right
    return right / systems, claimed / systems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--systems", type=int, default=8)
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=list(LAWS))
    arguments = parser.parse_args()
    print(f"| errors, {arguments.size} bits | {' | '.join(ADVERSARIES)} |\n|---|{'---:|' * len(ADVERSARIES)}")
    for law in arguments.laws:
        found = [measure(law, adversary, arguments.size, arguments.systems) for adversary in ADVERSARIES]
        print(f"| {law} | {' | '.join(f'{right:.1f} ({claimed:.1f})' for right, claimed in found)} |", flush=True)


if __name__ == "__main__":
    main()
