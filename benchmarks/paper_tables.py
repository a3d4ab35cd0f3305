"""Tables of the papers on the three attacks, measured beside the printed numbers.

    python benchmarks/paper_tables.py [threshold_testing|table_builder|subset_sum …] [--repeat 20] [--workers 2]

`threshold_testing`: Tables 2 and 3 of Chen & Machanavajjhala (2015), with the θ of δ = 0.05, as the paper prints no θ.
`table_builder`: Tables 2 and 3 of Asghar & Kaafar (2020). `subset_sum`: the end of blatant non-privacy (Dinur & Nissim
2003), for n·ln²n random subsets, by the largest error E, or errors of standard deviation E/2. Each repetition has data,
errors and questions of its own.
"""

import math
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from dpwitness.files import read_column
from dpwitness.reconstruction.subset_sum.linear_decoding import least_squares_adversary, polynomial_adversary
from dpwitness.reconstruction.subset_sum.oracle import ask, query_count, subset_family
from dpwitness.reconstruction.table_builder.averaging import choose_base
from dpwitness.reconstruction.table_builder.histogram import recover_histogram
from dpwitness.reconstruction.table_builder.supply import CountingPlan
from dpwitness.reconstruction.table_builder.systems import KeyedNoisyCounts
from dpwitness.reconstruction.table_builder.tables import read_table
from dpwitness.reconstruction.table_builder.theory import expected_right
from dpwitness.reconstruction.threshold_testing.attack import adaptive_attack, reconstruct, score
from dpwitness.reconstruction.threshold_testing.oracle import ThresholdOracle
from dpwitness.reconstruction.threshold_testing.theory import attack_threshold
from results import Table, finish, parser_of

DATA = Path(__file__).resolve().parents[1] / "data"
#: The paper's shares of right cells, among all cells and among cells of at most 5 people, by the ε of `EPSILONS`.
HISTOGRAMS = {
    "adult_capital_loss": ((0.994, 0.999), (0.991, 0.997), (0.981, 0.992)),
    "medical_cost": ((0.985, 1.0), (0.977, 1.0), (0.949, 0.960)),
    "income": ((0.798, 1.0), (0.741, 1.0), (0.636, 0.979)),
    "hepth": ((0.904, 1.0), (0.795, 1.0), (0.477, 0.970)),
}
#: The budgets ε of threshold testing.
EPSILONS = (1.0, 0.5, 0.1)
#: The paper's numbers of right values among 107, by the number k of two-partitions.
TABLE_2 = {50: 104, 127: 106, 200: 107, 255: 107}
#: The paper's mean numbers of right values among 111, by the noise's bound r and the number k of two-partitions.
TABLE_3 = {
    (2, 50): 103.2, (2, 100): 110.1, (2, 200): 111.0, (2, 250): 111.0,
    (3, 50): 89.8, (3, 100): 103.9, (3, 200): 110.0, (3, 250): 110.8,
    (5, 50): 70.2, (5, 100): 88.0, (5, 200): 98.2, (5, 250): 103.6,
}  # fmt: skip
#: The number of people of the subset sums.
SIZE = 128
LAWS = ("uniform", "adversarial", "binomial", "gaussian")
#: The errors E of the subset sums, in units of √n.
RATIOS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)


def shown(values, digits=4):
    """The mean of values and its standard error, as text."""
    values = np.array(values, float)
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def read_off(name, epsilon, adaptive, seed):
    """The shares of right cells, among all and among small cells, and the questions per cell of one attack."""
    counts, rng = read_column(DATA / f"{name}.csv"), np.random.default_rng([seed, adaptive])
    if adaptive:
        oracle = ThresholdOracle(counts, rng, epsilon1=epsilon)
        found = adaptive_attack(oracle, rng)
    else:  # Algorithm 4: half of ε is for the totals
        half = epsilon / 2
        theta = attack_threshold(half, 0.05)
        oracle = ThresholdOracle(counts, rng, epsilon1=half, threshold=theta, epsilon_totals=half)
        found = reconstruct(oracle)
    return *score(counts, found.guess), oracle.queries / len(counts)


def threshold_testing(repeat, seeds, given):
    table = Table("data", "ε", "paper: all", "all", "adaptive: all", "paper: ≤ 5", "≤ 5", "adaptive: ≤ 5", "questions")
    for name, printed in HISTOGRAMS.items():
        for epsilon, (every, small) in zip(EPSILONS, printed, strict=True):
            ours, best = (
                np.array(repeat(partial(read_off, name, epsilon, adaptive), seeds)) for adaptive in (False, True)
            )
            table.add(
                name, epsilon, every, shown(ours[:, 0]), shown(best[:, 0]), small, shown(ours[:, 1]), shown(best[:, 1]),
                f"{best[:, 2].mean():.1f}",
            )  # fmt: skip
    text = f"{len(seeds)} repetitions; the adaptive attack spends all of ε on its questions, whose number is per cell."
    finish(given, "Threshold testing: Tables 2 and 3", text, table)


def averaged(file, noise, suppression, partitions, base, base_partitions, seed):
    """The number of values that one histogram attack gets right."""
    table, rng = read_table(DATA / file), np.random.default_rng([seed, noise, partitions])
    (attribute,) = table.values
    oracle = KeyedNoisyCounts(table, noise=noise, suppression=suppression, rng=rng)
    positions = choose_base(oracle, attribute, 10) if base is None else table.positions(attribute, base)
    plan = CountingPlan(
        base=tuple(positions.tolist()), partitions=partitions, base_partitions=base_partitions, fitted=False
    )
    return int(np.sum(recover_histogram(oracle, rng, attribute, plan).counts == table.histogram(attribute)))


def table_builder(repeat, seeds, given):
    table = Table("table", "r", "partitions", "paper", "right", "expected")
    for partitions, paper in TABLE_2.items():
        right = repeat(partial(averaged, "table_builder_synthetic.csv", 2, 4, partitions, None, 511), seeds)
        table.add("2, of 107", 2, partitions, paper, shown(right, 2), "")
    true = read_table(DATA / "adult_age.csv").histogram("age")
    for (noise, partitions), paper in TABLE_3.items():
        right = repeat(
            partial(averaged, "adult_age.csv", noise, max(4, noise), partitions, range(17, 28), 1_000), seeds
        )
        expected = expected_right(noise, 1_000, [partitions] * len(true), (true == 0).tolist())
        table.add("3, of 111", noise, partitions, paper, shown(right, 2), f"{expected:.2f}")
    text = (
        f"{len(seeds)} repetitions. Table 2: r = 2, s = 4, base of the 10 largest values, one run in the paper. "
        "Table 3: ages, base 17 to 27, 1,000 two-partitions of it."
    )
    finish(given, "TableBuilder: Tables 2 and 3", text, table)


def decoded(law, ratio, seed):
    """The shares of right bits of a linear program and of least squares, and the share that least squares expects."""
    rng = np.random.default_rng([seed, SIZE, LAWS.index(law), RATIOS.index(ratio)])
    secret, family, queries = rng.integers(0, 2, SIZE), int(rng.integers(1 << 30)), query_count(SIZE)
    answers = ask(secret, ratio * math.sqrt(SIZE), queries, law, family, rng)
    subsets = subset_family(SIZE, queries, family)
    linear, squares = polynomial_adversary(subsets, answers), least_squares_adversary(subsets, answers)
    expected = math.nan if squares.expected_right is None else squares.expected_right / SIZE
    return np.mean(linear.bits == secret), np.mean(squares.bits == secret), expected


def subset_sum(repeat, seeds, given):
    table = Table("E/√n", *(f"{law} {SIZE}" for law in LAWS))
    for ratio in RATIOS:
        means = [np.array(repeat(partial(decoded, law, ratio), seeds)).mean(axis=0) for law in LAWS]
        table.add(f"{ratio:g}", *(f"{linear:.3f} / {squares:.3f} ({own:.3f})" for linear, squares, own in means))
    text = (
        f"{len(seeds)} repetitions: the share of right bits of the linear program / of least squares (what the latter "
        "expects; nan where it sees that the answers are no sums of bits with normal errors)."
    )
    finish(given, "Subset sums: where blatant non-privacy ends", text, table)


PAPERS = {one.__name__: one for one in (threshold_testing, table_builder, subset_sum)}


def main() -> None:
    parser = parser_of(__doc__, workers=2)
    parser.add_argument("papers", nargs="*", metavar="PAPER", default=[*PAPERS])
    parser.add_argument("--repeat", type=int, default=20, help="repetitions of each cell (default 20)")
    given = parser.parse_args()
    if unknown := set(given.papers) - set(PAPERS):
        parser.error(f"{', '.join(sorted(unknown))}: choose from {', '.join(PAPERS)}")
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # one thread a worker
    with ProcessPoolExecutor(given.workers) as pool:
        for name in given.papers:
            PAPERS[name](lambda work, seeds: list(pool.map(work, seeds)), range(given.repeat), given)


if __name__ == "__main__":
    main()
