"""Three noisy interfaces to one SQLite database, as systems for `dpwitness attack FAMILY --oracle`.

    dpwitness attack subset_sum --oracle docs/examples/sqlite_oracles.py:subset_sums --size 64
    dpwitness attack threshold_testing --oracle docs/examples/sqlite_oracles.py:thresholds --cells 432
    dpwitness attack table_builder --oracle docs/examples/sqlite_oracles.py:noisy_counts --values visits=0:11

The database is the file that the environment variable PEOPLE_SQLITE names, or one in memory. An attack sees answers
alone.

As a program it answers a file of questions, for a system that `--oracle` does not reach:

    dpwitness attack subset_sum --size 64 --ask questions.csv
    python docs/examples/sqlite_oracles.py subset_sums questions.csv
    dpwitness attack subset_sum --size 64 --ask questions.csv
"""

import csv
import json
import os
import random
import sqlite3
import sys

import numpy as np

REGIONS = ("north", "south", "east", "west", "centre", "coast", "hills", "islands", "lakes", "plains", "border", "city")
YEARS = (2021, 2022, 2023)
PEOPLE = 3_000
CELLS = 12 * len(REGIONS) * len(YEARS)


def connect():
    """The database: people, the region and the year of each, how often each saw a doctor, and whether each smokes."""
    database = sqlite3.connect(os.environ.get("PEOPLE_SQLITE", ":memory:"))
    if not database.execute("SELECT name FROM sqlite_master WHERE name = 'people'").fetchone():
        database.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, region, year, visits, cell, smokes, key)")
        draw = random.Random(20)  # whoever lives there
        for number in range(PEOPLE):
            region, year = min(int(draw.expovariate(0.2)), 11), draw.randrange(3)
            visits = min(int(draw.expovariate(0.5)), 11)
            smokes, key = int(draw.random() < 0.4), draw.getrandbits(40)  # what sticky noise is made of
            row = (number, REGIONS[region], YEARS[year], visits, 36 * visits + 3 * region + year, smokes, key)
            database.execute("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        database.commit()
    return database


def places(number):
    """So many question marks, for an IN of SQL."""
    return ", ".join("?" * number)


def subset_sums(rng):
    """How many of some people smoke, with normal errors of standard deviation 2 (Dinur & Nissim 2003)."""
    database = connect()

    def answer(subset):
        ids = np.flatnonzero(subset).tolist()
        query = f"SELECT COALESCE(SUM(smokes), 0) FROM people WHERE id IN ({places(len(ids))})"
        return database.execute(query, ids).fetchone()[0] + rng.normal(0, 2)

    return answer


def thresholds(rng):
    """Whether more people are in some cells than in others, compared with one noisy threshold.

    Private threshold testing with ε₁ = 1 and no noise on the queries (Chen & Machanavajjhala 2015). Cell 36·v + 3·r +
    y: v visits, in the r-th region, in the y-th year.
    """
    database, threshold = connect(), rng.laplace(0, 1)

    def answer(signs):
        plus, minus = np.flatnonzero(signs > 0).tolist(), np.flatnonzero(signs < 0).tolist()
        query = (
            f"SELECT COUNT(*) FILTER (WHERE cell IN ({places(len(plus))})) "
            f"- COUNT(*) FILTER (WHERE cell IN ({places(len(minus))})) FROM people"
        )
        return database.execute(query, plus + minus).fetchone()[0] >= threshold

    return answer


def noisy_counts(seed):
    """How many people satisfy a condition, within ±2: the same people have the same noise, few people count as none.

    The system of Asghar & Kaafar (2020): sticky uniform noise of bound 2, counts of at most 4 are suppressed.
    """
    database = connect()

    def answer(condition):
        terms = [f"{name} IN ({places(len(values))})" for name, values in condition.items()]
        query = f"SELECT COUNT(*), COALESCE(SUM(key), 0) FROM people WHERE {' AND '.join(terms) or 'TRUE'}"
        chosen = [value for values in condition.values() for value in values]
        count, key = database.execute(query, chosen).fetchone()
        noise = random.Random(f"{seed} {key}").randint(-2, 2)
        return count + noise if count > 4 else 0

    return answer


def as_subset(question):
    """People, from 0, as flags."""
    subset = np.zeros(PEOPLE, bool)
    subset[question] = True
    return subset


def as_signs(question):
    """Cells to add and to take off, as signs."""
    signs = np.zeros(CELLS, np.int8)
    signs[question["plus"]], signs[question["minus"]] = 1, -1
    return signs


#: The systems, and how their questions are read from a file.
SYSTEMS = {
    "subset_sums": (lambda: subset_sums(np.random.default_rng(1)), as_subset),
    "thresholds": (lambda: thresholds(np.random.default_rng(1)), as_signs),
    "noisy_counts": (lambda: noisy_counts(1), dict),
}


def fill(name, path):
    """Answer the questions of a CSV file that have no answer yet, in place."""
    make, read = SYSTEMS[name]
    answer = make()
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if not row["answer"]:
            row["answer"] = json.dumps(float(answer(read(json.loads(row["question"])))))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    fill(*sys.argv[1:])
