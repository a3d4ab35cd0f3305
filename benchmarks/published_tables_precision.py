"""How many rows of 1,000 people counts by two attributes give away: `python benchmarks/published_tables_precision.py`.

Two tables, published as all counts by two attributes: seven columns of the `fair` data of statsmodels (a survey of
1974), and a made-up one whose six attributes are each drawn given the one before. For each the share of right rows
among the first 25, 50, …, as ranked and as the likeliest independent rows, beside the mean frequency in restarts.
"""

import argparse
import itertools
import time
from collections import Counter

import numpy as np
from statsmodels.datasets import fair

from dpwitness.machine import Deadline
from dpwitness.reconstruction.published_tables.attack import precision
from dpwitness.reconstruction.published_tables.ranking import Pairs, ranked, restarts
from dpwitness.reconstruction.published_tables.statements import published_marginals
from dpwitness.reconstruction.table_builder.tables import Table

COLUMNS = ("rate_marriage", "age", "yrs_married", "children", "religious", "educ", "occupation")
SIZES = (4, 5, 6, 5, 6, 4)
RANKS = (25, 50, 100, 200, 400)


def of_fair(people: int, seed: int) -> Table:
    """People of the survey, drawn without replacement."""
    frame = fair.load_pandas().data.sample(people, random_state=seed)
    return Table.from_columns({name: frame[name].tolist() for name in COLUMNS})


def made_up(people: int, seed: int) -> Table:
    """Each attribute drawn given the one before it."""
    rng = np.random.default_rng(seed)
    columns = [rng.choice(SIZES[0], people, p=rng.dirichlet(np.ones(SIZES[0])))]
    for before, size in itertools.pairwise(SIZES):
        chances = rng.dirichlet(np.full(size, 0.4), before)
        columns.append(np.array([rng.choice(size, p=chances[value]) for value in columns[-1]]))
    return Table.from_columns({f"a{k}": column.tolist() for k, column in enumerate(columns)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--restarts", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for name, make in (("fair", of_fair), ("made up", made_up)):
        table = make(arguments.people, arguments.seed)
        published = published_marginals(table, 2)
        pairs, frequency = Pairs.of(published), Counter()
        began, busy = time.perf_counter(), time.process_time()
        rng, deadline = np.random.default_rng(arguments.seed), Deadline(time.monotonic() + 1e6)
        for rows in restarts(pairs, arguments.people, arguments.restarts, rng, deadline):
            frequency.update(rows.keys())
        spent, used = time.perf_counter() - began, time.process_time() - busy
        order = ranked(frequency, pairs.shares)
        right = set(map(tuple, table.codes.tolist()))
        print(
            f"{name}: {arguments.people:,} people, {len(right):,} different rows; {arguments.restarts} restarts in "
            f"{spent:.0f} s ({used:.0f} s of a core)"
        )
        for one in precision(order, pairs.shares, right):
            if one.rows in RANKS:
                mean = np.mean([frequency[row] for row in order[: one.rows]]) / arguments.restarts
                print(
                    f"  first {one.rows:>3}: {one.ranked:.2f} right, {one.independent:.2f} of the likeliest "
                    f"independent rows; mean frequency {mean:.2f}"
                )


if __name__ == "__main__":
    main()
