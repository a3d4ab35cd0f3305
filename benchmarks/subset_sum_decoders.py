"""`attack subset_sum` beside decoders of a few lines of numpy, behind errors of many laws.

    python benchmarks/subset_sum_decoders.py
    python benchmarks/subset_sum_decoders.py --size 1024 --systems 2 --questions 8 --laws cauchy garbage_20

Every system has fresh random bits, and its questions are those that the attack asks. The columns: the attack and how
many bits it claims to be right; least squares, rounded; least squares weighted anew by one over the last error, which
comes to least absolute errors (Schlossmacher 1973), without and with a constant that all answers share; the linear
program of least absolute errors (Dwork, McSherry & Talwar 2007) for 64 bits at most. Each of these is some three lines,
and is given all answers, those that the attack keeps for checking included.
"""

import argparse
import functools
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

Floats = Any
#: From sums of the bits of subsets, how many bits there are, and a generator to answers; the scale is √n.
Law = Callable[[Floats, int, np.random.Generator], Floats]


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
    "offset_garbage_20": lambda v, n, g: n / 4 + garbage(0.2)(v, n, g),
}
#: For more people each fit of the linear program takes seconds.
PROGRAM: int = 64
#: Weighted fits: for many people fewer, since each takes t·n² steps.
FITS = {64: 60, 256: 60, 1024: 15, 4096: 6}


def least_squares(matrix: Floats, answers: Floats) -> Floats:
    return np.linalg.lstsq(matrix, answers, rcond=None)[0] if matrix.shape[1] <= 256 else solve(matrix, answers, 1.0)


def solve(matrix: Floats, answers: Floats, weights: Floats | float) -> Floats:
    weighed = matrix.T * weights
    return np.linalg.solve(weighed @ matrix + 1e-9 * np.eye(matrix.shape[1]), weighed @ answers)


def reweighted(matrix: Floats, answers: Floats, *, constant: bool) -> Floats:
    columns = np.c_[matrix, np.ones(len(answers))] if constant else matrix
    values = least_squares(columns, answers)
    for _ in range(next(fits for size, fits in FITS.items() if matrix.shape[1] <= size)):
        missed = np.abs(columns @ values - answers)
        values = solve(columns, answers, 1 / np.maximum(missed, 0.25 * np.median(missed) + 1e-9))
    return values[: matrix.shape[1]]


def least_absolute(matrix: Floats, answers: Floats) -> Floats:
    number, people = matrix.shape
    one = sparse.identity(number)
    found = linprog(
        np.r_[np.zeros(people), np.ones(number)],
        sparse.bmat([[matrix, -one], [-matrix, -one]]).tocsr(),
        np.r_[answers, -answers],
        bounds=[(0, 1)] * people + [(0, None)] * number,
        method="highs-ipm",
    )
    return np.asarray(found.x)[:people]


DECODERS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "least squares": least_squares,
    "reweighted": functools.partial(reweighted, constant=False),
    "reweighted, constant": functools.partial(reweighted, constant=True),
    "program": least_absolute,
}


class Recorded:
    """A system of a law, which keeps what it was asked and what it answered."""

    def __init__(self, law: str, bits: Floats, rng: np.random.Generator) -> None:
        self.law, self.bits, self.rng = LAWS[law], bits, rng
        self.subsets: list[Floats] = []
        self.answers: list[Floats] = []

    def ask_all(self, subsets: list[Floats]) -> Floats:
        """The answers."""
        matrix = np.array(subsets)
        answers = self.law((matrix @ self.bits).astype(float), len(self.bits), self.rng)
        self.subsets.append(matrix)
        self.answers.append(answers)
        return answers


def measure(law: str, size: int, systems: int, questions: int | None = None) -> dict[str, Any]:
    """One law: bits right a system, by column, with the seconds of each."""
    from dpwitness.machine import Deadline
    from dpwitness.reconstruction.questions import Asking, system_of
    from dpwitness.reconstruction.subset_sum.attack import Plan, question_counts, reconstruct
    from dpwitness.reconstruction.subset_sum.oracle import FORM

    right: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    adversaries = []
    used, fresh = question_counts(size, None if questions is None else questions * size, None)

    def count(name: str, bits: Floats, secret: Floats, since: float) -> None:
        right.setdefault(name, []).append(float(np.sum(bits == secret)))
        seconds[name] = seconds.get(name, 0.0) + (time.process_time() - since) / systems

    for seed in range(systems):
        rng = np.random.default_rng([list(LAWS).index(law), size, seed])
        secret = rng.integers(0, 2, size)
        system, since = Recorded(law, secret, rng), time.process_time()
        asking = Asking(FORM, system_of(system, FORM, seed=seed))
        found = reconstruct(asking, seed, Plan(size=size, used=used, fresh=fresh), Deadline(math.inf))
        count("attack", found.reconstruction.bits, secret, since)
        right.setdefault("claimed", []).append(found.confidence.expected_right)
        adversaries.append(found.adversary)
        matrix, answers = np.concatenate(system.subsets).astype(float), np.concatenate(system.answers)
        for name, decoder in DECODERS.items():
            if decoder is not least_absolute or size <= PROGRAM:
                since = time.process_time()
                count(name, decoder(matrix, answers) > 0.5, secret, since)
    return {
        "law": law,
        "size": size,
        "systems": systems,
        "questions": used + fresh,
        "right": {name: float(np.mean(values)) for name, values in right.items()},
        "seconds": seconds,
        "adversaries": {name: adversaries.count(name) for name in sorted(set(adversaries))},
        "each": right,
    }


def behind(row: dict[str, Any]) -> tuple[float, float]:
    """By how many bits a system the attack is behind the best column, and the standard error of that."""
    others = {name: values for name, values in row["each"].items() if name not in ("attack", "claimed")}
    best = max(others, key=lambda name: sum(others[name]))
    less = np.array(others[best]) - np.array(row["each"]["attack"])
    return float(less.mean()), float(less.std(ddof=1) / len(less) ** 0.5) if len(less) > 1 else math.nan


def line(row: dict[str, Any]) -> str:
    """A row as Markdown."""
    columns = ("attack", "claimed", *DECODERS)
    cells = [f"{row['right'][name]:.1f}" if name in row["right"] else "" for name in columns]
    less, error = behind(row)
    verdict = f"{-less:+.1f} ± {error:.1f}"
    names = ", ".join(f"{name} {number}" for name, number in row["adversaries"].items())
    return f"| {row['law']} | {' | '.join(cells)} | {verdict} | {names} | {row['seconds']['attack']:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--systems", type=int, default=20)
    parser.add_argument("--questions", type=int, help="a person (default n·ln²n in all)")
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=list(LAWS))
    parser.add_argument("--max-time", type=float, default=240.0, help="seconds after which no further law begins")
    parser.add_argument("--json", help="all figures")
    arguments = parser.parse_args()
    started = time.perf_counter()
    rows: list[dict[str, Any]] = []
    print(
        f"| law, {arguments.size} bits, {arguments.systems} systems | attack | claimed | least squares | reweighted "
        "| with a constant | program | attack less the best other | adversary | seconds |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---|---:|")
    for name in arguments.laws:
        if time.perf_counter() - started > arguments.max_time:
            print(f"left out for lack of time: {', '.join(arguments.laws[len(rows) :])}")
            break
        rows.append(measure(name, arguments.size, arguments.systems, arguments.questions))
        print(line(rows[-1]), flush=True)
    print(f"\n{time.perf_counter() - started:.0f} s")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1, allow_nan=False))


if __name__ == "__main__":
    main()
