"""The claims of the adaptive threshold attack, on systems that keep its assumptions and on systems that break them.

    python benchmarks/threshold_testing_claims.py [--runs 20] [--only NAME …]

A claim is right if the count is the guess times an integer that is the same for all cells of a run.
"""

from collections.abc import Callable

import numpy as np

from dpwitness.reconstruction.threshold_testing.attack import adaptive_attack, right_claims
from dpwitness.reconstruction.threshold_testing.oracle import QueryAccess
from results import Table, finish, parser_of

#: A function from questions, shape (questions, cells), to flags, whether each sum reaches the threshold.
Answer = Callable[[np.ndarray], np.ndarray]
#: A function from true counts and a generator to the answers of a system.
System = Callable[[np.ndarray, np.random.Generator], Answer]


def threshold(rng: np.random.Generator) -> float:
    return float(rng.laplace(0.0, 3.3))


def with_counts(change: Callable[..., np.ndarray]) -> System:
    """A system that answers exactly by changed counts."""

    def system(counts: np.ndarray, rng: np.random.Generator) -> Answer:
        x, z = change(counts, rng), threshold(rng)
        return lambda q: q @ x >= z

    return system


def with_answers(change: Callable[..., np.ndarray]) -> System:
    """A system whose answers are a function of the sums less the threshold."""

    def system(counts: np.ndarray, rng: np.random.Generator) -> Answer:
        z = threshold(rng)
        return lambda q: change(q @ counts - z, rng)

    return system


def sticky_noise(scale: float) -> System:
    """A system that gives the same question the same noise."""

    def system(counts: np.ndarray, rng: np.random.Generator) -> Answer:
        z, keys = threshold(rng), rng.normal(0.0, 1e3, len(counts))

        def answer(q: np.ndarray) -> np.ndarray:
            u = np.mod(q @ keys, 1.0) - 0.5
            return q @ counts - scale * np.sign(u) * np.log1p(-2 * np.abs(u) * (1 - 1e-12)) >= z

        return answer

    return system


def moved(counts: np.ndarray, rng: np.random.Generator) -> Answer:
    """A system that draws its threshold anew after 300 questions, 600 questions, and so on."""
    state = {"asked": 0, "z": threshold(rng), "next": 300}

    def answer(q: np.ndarray) -> np.ndarray:
        state["asked"] += len(q)
        if state["asked"] > state["next"]:
            state["z"], state["next"] = threshold(rng), 2 * state["next"]
        return q @ counts >= state["z"]

    return answer


def without_the_last_tenth(counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(np.arange(len(counts)) < len(counts) - max(1, len(counts) // 10), counts, 0)


def flipped(share: float) -> System:
    return with_answers(lambda above, rng: (above >= 0) ^ (rng.random(len(above)) < share))


def garbage(share: float) -> System:
    return with_answers(
        lambda above, rng: np.where(rng.random(len(above)) < share, rng.random(len(above)) < 0.5, above >= 0)
    )


def noisy(scale: float) -> System:
    return with_answers(lambda above, rng: above + rng.laplace(0.0, scale, len(above)) >= 0)


#: The attacked systems, by name.
SYSTEMS: dict[str, System] = {
    "as stated": with_counts(lambda counts, rng: counts),
    "noise of scale 0.2": noisy(0.2),
    "noise of scale 2": noisy(2.0),
    "sticky noise of scale 1": sticky_noise(1.0),
    "0.1 % flipped": flipped(0.001),
    "5 % flipped": flipped(0.05),
    "all flipped": flipped(1.0),
    "5 % garbage": garbage(0.05),
    "all garbage": garbage(1.0),
    "a constant": with_answers(lambda above, rng: np.ones(len(above), bool)),
    "offset of 20": with_answers(lambda above, rng: above + 20 >= 0),
    "a tenth of the cells left out": with_counts(without_the_last_tenth),
    "counts with noise of scale 1, drawn once": with_counts(
        lambda counts, rng: np.rint(counts + rng.laplace(0.0, 1.0, len(counts)))
    ),
    "counts rounded to 5": with_counts(lambda counts, rng: 5 * np.rint(counts / 5)),
    "counts below 5 suppressed": with_counts(lambda counts, rng: np.where(counts < 5, 0, counts)),
    "fractions of people": with_counts(lambda counts, rng: counts * rng.uniform(0.5, 1.5, len(counts))),
    "threshold drawn anew": moved,
}


def claims(system: System, runs: int) -> dict[str, float]:
    """The numbers of claims and of right claims in `runs` runs on each histogram."""
    row = dict.fromkeys(("systems", "with_claims", "with_a_wrong_claim", "cells", "claimed", "right"), 0.0)
    for h, counts in enumerate(small_histograms()):
        for k in range(runs):
            answer = system(counts, np.random.default_rng([4, h, k]))
            asked = QueryAccess(
                lambda questions, answer=answer: answer(np.array(list(questions), np.float64)),
                len(counts),
            )
            found = adaptive_attack(asked, np.random.default_rng([5, h, k]))
            cells, right = int(found.claimed.sum()), int(right_claims(found, counts).sum())
            here = (1, cells > 0, right < cells, cells, found.probably_right, right)
            row = {key: old + new for (key, old), new in zip(row.items(), here, strict=True)}
    return row


def small_histograms() -> list[np.ndarray]:
    """Eight histograms of about a hundred cells each."""
    rng = np.random.default_rng(16)
    heavy = np.floor(3 * rng.pareto(1.1, 90)).astype(np.int64)
    return [
        heavy,
        2 * heavy,
        16 * rng.poisson(3, 90),
        np.concatenate([16 * rng.poisson(3, 90), [17, 35, 59, 101]]),
        np.concatenate([16 * rng.poisson(3, 90), [17]]),
        rng.integers(0, 60, 80),
        rng.choice([0, 7, 40], 120, p=[0.5, 0.3, 0.2]),
        np.concatenate([np.zeros(60, np.int64), rng.integers(1, 60, 15)]),
    ]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--runs", type=int, default=20, help="systems of each of eight histograms")
    parser.add_argument("--only", nargs="+", choices=tuple(SYSTEMS), default=tuple(SYSTEMS), metavar="NAME")
    given = parser.parse_args()
    table = Table("system", "with claims", "with a wrong claim", "cells claimed", "claimed", "right")
    for name in given.only:
        row = claims(SYSTEMS[name], given.runs)
        counts = (f"{row[key]:.0f} of {row['systems']:.0f}" for key in ("with_claims", "with_a_wrong_claim"))
        shares = (f"{row[key] / row['cells']:.4f}" if row["cells"] else "–" for key in ("claimed", "right"))
        table.add(name, *counts, f"{row['cells']:.0f}", *shares)
    text = (
        "Counts that the adaptive attack claims, and their shares that it expects to be right, and that are right, on "
        "eight made-up histograms of about a hundred cells.\nNo answer shows counts that were made noisy, rounded or "
        "suppressed once and for all, or cells that are left out of all answers."
    )
    finish(given, "Attack on private threshold testing", text, table)


if __name__ == "__main__":
    main()
