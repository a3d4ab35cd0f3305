"""What averaging attacks claim, and how much of it is right: on systems that keep the assumptions, and that break them.

python benchmarks/table_builder_calibration.py [--seeds 20] [--only NAME …] [--goal histogram|perturbation]
    [--single] [--json FILE]

A line a system, and two of all that keep and that break the assumptions (the last system apart). Of the cells (or
parameters) claimed with confidence of at least .5, .9 and .99: how many there are, and the share that is right.
"none": runs that claim nothing, or are refused.
"""

# ruff: noqa: D101, D102  (the name of a system says what it does)
import argparse
import json
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.stats import beta

from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder import noise_laws
from dpwitness.reconstruction.table_builder.averaging import choose_base
from dpwitness.reconstruction.table_builder.histogram import recover_histogram
from dpwitness.reconstruction.table_builder.perturbation import largest_sum, pairs_within
from dpwitness.reconstruction.table_builder.supply import Plan
from dpwitness.reconstruction.table_builder.systems import (
    BoundedNoisyCounts,
    KeyedNoisyCounts,
    System,
)
from dpwitness.reconstruction.table_builder.tables import Table

sys.path.insert(0, str(Path(__file__).parent))

from table_builder_systems import GrowingNoisyCounts, LayeredNoisyCounts, ValueLayeredNoisyCounts

LEVELS = (0.5, 0.9, 0.99)


class Answers(System):
    """A system in one method: noise from the people counted, their key, the question and its number."""

    def __init__(self, table, rng, r):
        super().__init__(table.values)
        self.table, self.rng, self.r, self.suppression = table, rng, r, max(r, 4)
        self.law = noise_laws.uniform(r)
        self.salt = rng.integers(1 << 62)
        self.keys = rng.integers(1 << 63, size=len(table.counts), dtype=np.uint64)
        self.cells = {}

    def ask(self, attribute, selections, where=None):
        name = attribute, tuple(sorted((k, tuple(v)) for k, v in (where or {}).items()))
        if name not in self.cells:
            inside = self.table.profiles(where or {})
            code = self.table.codes[inside, self.table.column(attribute)]
            keys = np.zeros(len(self.values(attribute)), np.uint64)
            np.bitwise_xor.at(keys, code, self.keys[inside])
            self.cells[name] = self.table.histogram(attribute, where), keys
        counts, keys = self.cells[name]
        selections = np.asarray(selections, bool)
        people = self.people(selections, counts)
        key = np.bitwise_xor.reduce(np.where(selections, keys, np.uint64(0)), axis=1)
        noise = self.noise(people, key, selections, hash(str(name)) if where else 0)
        self.asked += len(selections)
        return self.shown(people, noise)

    def people(self, selections, counts):
        return selections.astype(int) @ counts

    def shown(self, people, noise):
        return np.where(people > self.suppression, people + noise, 0)

    def noise(self, people, key, selections, place):
        return self.law.at(self.uniform(key))

    def uniform(self, key, salt=0):
        """One number in [0, 1) a key: the finaliser of splitmix64."""
        key = np.asarray(key).astype(np.uint64) ^ np.uint64((int(self.salt) + salt * 0x9E3779B97F4A7C15) % (1 << 64))
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((key ^ (key >> np.uint64(31))) >> np.uint64(11)) / 2.0**53


class Skewed(Answers):
    def noise(self, people, key, selections, place):
        return np.array([-1, 0, self.r + 1])[(self.uniform(key) * 3).astype(int)]


class LongTails(Answers):
    def noise(self, people, key, selections, place):
        u = self.uniform(key) - 0.5
        return np.round(-np.sign(u) * self.r / 2 * np.log1p(-2 * np.abs(u))).astype(int)


class HeavyTails(Answers):
    def noise(self, people, key, selections, place):
        u = 2 * self.uniform(key) - 1  # Student's t with two degrees of freedom
        return np.round(self.r / 2 * u * np.sqrt(2 / (1 - u * u))).clip(-1e6, 1e6).astype(int)


class Table16(Answers):
    bits = 63

    def __init__(self, *given):
        super().__init__(*given)
        self.entries = self.law.sample(self.rng, 16)
        self.keys = self.keys % np.uint64(1 << self.bits)

    def noise(self, people, key, selections, place):
        return self.entries[(self.uniform(key) * 16).astype(int)]


class Table16Xor(Table16):
    bits = 4

    def noise(self, people, key, selections, place):
        return self.entries[key.astype(int)]


class ByCount(Answers):
    def noise(self, people, key, selections, place):
        return self.law.at(self.uniform(people))


class BySize(Answers):
    def noise(self, people, key, selections, place):
        return self.law.at(self.uniform(selections.sum(axis=1)))


class ByFirst(Answers):
    def noise(self, people, key, selections, place):
        return self.law.at(self.uniform(selections.argmax(axis=1)))


class ByNumber(Answers):
    def noise(self, people, key, selections, place):
        return self.law.at(self.uniform((self.asked + np.arange(len(people))) % 16))


class ByPlace(Answers):
    def noise(self, people, key, selections, place):
        return self.law.at(self.uniform(np.full(len(people), place % (1 << 32))))


class ByQuestion(Answers):
    """Keyed by the text of the question instead of its people: as good as independent."""

    def noise(self, people, key, selections, place):
        words = np.array([hash(row.tobytes()) % (1 << 62) for row in selections]) + place % (1 << 32)
        return self.law.at(self.uniform(words))


class Both(Answers):
    """The same noise on both sides of a partition."""

    def noise(self, people, key, selections, place):
        whole = np.where(selections[:, -1], ~selections.T, selections.T).T
        words = np.array([hash(row.tobytes()) % (1 << 62) for row in whole])
        return self.law.at(self.uniform(words))


class Drifting(Answers):
    """A random walk over the questions, within ±4r."""

    def noise(self, people, key, selections, place):
        steps = np.cumsum(np.concatenate([[getattr(self, "last", 0)], self.rng.integers(-1, 2, len(people))]))
        self.last = int(steps[-1])
        wide = 4 * self.r
        return wide - np.abs((steps[1:] - wide) % (4 * wide) - 2 * wide)


class Autoregressive(Answers):
    def noise(self, people, key, selections, place):
        found, last = [], getattr(self, "last", 0.0)
        for step in self.rng.normal(scale=self.r * np.sqrt(1 - 0.9**2), size=len(people)):
            last = 0.9 * last + step
            found.append(last)
        self.last = last
        return np.round(found).astype(int)


class Garbage(Answers):
    share, wide = 0.02, None

    def shown(self, people, noise):
        right = super().shown(people, noise)
        wrong = self.rng.random(len(people)) < self.share
        top = int(self.table.people)
        made = self.rng.integers(0, top + 1, len(people)) if self.wide is None else right + self.wide
        return np.where(wrong, made, right)


class Flipped(Answers):
    """One in twenty questions is answered by the rest of everybody."""

    def shown(self, people, noise):
        wrong = self.rng.random(len(people)) < 0.05
        return super().shown(np.where(wrong, self.table.people - people, people), noise)


class Shifted(Answers):
    by = 1

    def shown(self, people, noise):
        return np.where(people > self.suppression, people + noise + self.by, 0)


class Scaled(Answers):
    def shown(self, people, noise):
        return np.where(people > self.suppression, np.round(1.01 * people).astype(int) + noise, 0)


class Rounded(Answers):
    base = 5

    def shown(self, people, noise):
        return np.where(people > self.suppression, np.round(people / self.base).astype(int) * self.base, 0)


class RandomlyRounded(Answers):
    base = 3

    def noise(self, people, key, selections, place):
        up = self.uniform(key) < (people % self.base) / self.base
        return np.where(up, self.base, 0) - people % self.base


class Overlapping(Answers):
    """A tenth of the people with a value have the next one too: sizes that do not add up."""

    def people(self, selections, counts):
        return super().people(selections, counts) + (selections & ~np.roll(selections, 1, axis=1)) @ (counts // 10)


class SuppressedNoisy(Answers):
    def shown(self, people, noise):
        return np.where(people + noise > 10, people + noise, 0)


class SuppressedAt(Answers):
    def shown(self, people, noise):
        return np.where(people > 40, people + noise, 0)


class Marked(Answers):
    def shown(self, people, noise):
        return np.where(people > 10, people + noise, 3)


class Constant(Answers):
    def shown(self, people, noise):
        return np.full(len(people), 100) + noise


class Nonsense(Answers):
    def shown(self, people, noise):
        return self.rng.integers(5, 1000, len(people))


def changed(kind, **more):
    return type(kind.__name__, (kind,), more)


def counts(kind, law=noise_laws.uniform):
    def make(table, rng, r):
        noise = law(r)
        return kind(table, noise=noise, suppression=max(noise.bound, 4), rng=rng)

    return make


KEPT = {
    "uniform": counts(BoundedNoisyCounts),
    "keyed": counts(KeyedNoisyCounts),
    "normal": counts(BoundedNoisyCounts, lambda r: noise_laws.truncated_normal(r, r / 2)),
    "laplace": counts(BoundedNoisyCounts, lambda r: noise_laws.truncated_laplace(r, r / 2)),
    "maximum entropy": counts(BoundedNoisyCounts, lambda r: noise_laws.maximum_entropy(range(-r, 2 * r), r * r / 6)),
}
BROKEN = {
    "skewed noise": Skewed,
    "long tails": LongTails,
    "heavy tails": HeavyTails,
    "16 noises": Table16,
    "16 noises, 4-bit keys": Table16Xor,
    "keyed by the count": ByCount,
    "keyed by the size": BySize,
    "keyed by the first value": ByFirst,
    "keyed by the number": ByNumber,
    "keyed by the group": ByPlace,
    "keyed by the question": ByQuestion,
    "one noise for both sides": Both,
    "drifting": Drifting,
    "autoregressive": Autoregressive,
    "growing": counts(GrowingNoisyCounts),
    "layered": counts(LayeredNoisyCounts),
    "garbage 2 %": Garbage,
    "garbage 5 %": changed(Garbage, share=0.05),
    "garbage 20 %": changed(Garbage, share=0.2),
    "5 % 15 too large": changed(Garbage, share=0.05, wide=15),
    "flipped 5 %": Flipped,
    "offset 1": Shifted,
    "offset 7": changed(Shifted, by=7),
    "scaled 1.01": Scaled,
    "rounded to 5": Rounded,
    "rounded to 10": changed(Rounded, base=10),
    "randomly rounded to 3": RandomlyRounded,
    "overlapping values": Overlapping,
    "suppressed at 40": SuppressedAt,
    "suppressed with noise": SuppressedNoisy,
    "suppressed shown as 3": Marked,
    "a constant": Constant,
    "nonsense": Nonsense,
}
#: Each value has a whole number added in all of its questions: of one attribute no answer tells that from people.
UNTOLD = {"a layer a value": counts(ValueLayeredNoisyCounts)}
SYSTEMS = {**KEPT, **BROKEN, **UNTOLD}


def single(rng):
    """One attribute: 16 to 30 values, some of them with nobody or too few people to be shown."""
    size = int(rng.integers(16, 31))
    counts = np.round(np.exp(rng.normal(4.5, 0.8, size))).astype(int)
    counts[rng.permutation(size)[: rng.integers(0, 6)]] = rng.integers(0, 5)
    return Table.from_counts(counts, name="a")


def several(rng):
    """Three attributes of 2, 8 and 14 values, of which the first or the last is attacked."""
    people = int(rng.integers(800, 3000))
    shares = rng.dirichlet(np.full(14, 2.0))
    columns = {
        "a": rng.choice(14, people, p=shares).tolist(),
        "b": rng.integers(0, 8, people).tolist(),
        "c": rng.integers(0, 2, people).tolist(),
    }
    table = Table.from_columns(columns)
    return table if rng.random() < 0.7 else Table.from_columns({"c": columns["c"], "a": columns["a"]})


def one_run(name, seed, *, goal="histogram", one_value=False):
    """Claims of one run: (confidence, right) for each cell, confidence 0 where nothing is claimed."""
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    table = single(rng) if rng.random() < 0.6 else several(rng)
    r = int(rng.choice([1, 2, 3, 5]))
    if "maximum" in name:
        r = max(r, 2)
    attribute = next(iter(table.values))
    system = SYSTEMS[name](table, rng, r)
    if goal == "perturbation":
        return parameter(system, rng, attribute, getattr(system, "noise_bound", system.law.bound))
    true = table.histogram(attribute)
    plan = Plan(partitions=(None, None, None, 60)[rng.integers(4)])
    if one_value:
        plan = Plan(targets=(int(rng.integers(len(true))),), partitions=plan.partitions)
        true = true[list(plan.targets)]
    found = recover_histogram(system, rng, attribute, plan)
    sure = np.array(found.confidence)
    if not found.variance or getattr(found, "failed_checks", ()):
        sure = np.zeros(len(true))
    return sure, np.array(found.counts) == true


def parameter(system, rng, attribute, bound):
    sums = int(rng.choice([7, 30, 200]))
    try:
        found = largest_sum(pairs_within(system, rng, attribute, choose_base(system, attribute, 16), sums))
    except InvalidParameter:  # no answers to compare: nothing is claimed
        return np.zeros(1), np.zeros(1, bool)
    sure = found.confidence or 0.0
    return np.array([sure]), np.array([found.guess == bound])


def summary(name, runs):
    sure = np.concatenate([one for one, _ in runs])
    right = np.concatenate([one for _, one in runs])
    claimed = sure > 0
    row = {
        "system": name,
        "runs": len(runs),
        "withheld": sum(not one.any() for one, _ in runs),
        "right": float(right.mean()),
        "said": float(sure.sum()),
        "claimed": int(claimed.sum()),
        "claimed_right": int(right[claimed].sum()),
    }
    for level in LEVELS:
        above = sure >= level
        row[f"at_{level}"] = int(above.sum())
        row[f"right_{level}"] = int(right[above].sum())
    row["kept"] = all(honest(row[f"right_{level}"], row[f"at_{level}"], level) for level in LEVELS)
    return row


def honest(right, claims, level):
    """Whether so many right claims of all are in accord with that level, but for chance of one in a thousand."""
    return not claims or right == claims or beta.ppf(0.999, right + 1, claims - right) >= level


def line(row):
    parts = "".join(
        f"{row[f'at_{level}']:>7} {row[f'right_{level}'] / row[f'at_{level}'] if row[f'at_{level}'] else 1:>6.3f}"
        for level in LEVELS
    )
    return (
        f"{row['system']:<26}{row['runs']:>5}{row['withheld']:>6}{row['right']:>8.3f}{row['said']:>9.1f}"
        f"{row['claimed_right']:>7}{parts}  {'yes' if row['kept'] else 'NO'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=tuple(SYSTEMS))
    parser.add_argument("--goal", choices=("histogram", "perturbation"), default="histogram")
    parser.add_argument("--single", action="store_true", help="attack the count of one value alone")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    started = time.perf_counter()
    print(f"{'system':<26} runs  none   right     said  right     ≥.5  right    ≥.9  right   ≥.99  right  kept")
    rows, together = [], defaultdict(list)
    for name in arguments.only or SYSTEMS:
        runs = [one_run(name, seed, goal=arguments.goal, one_value=arguments.single) for seed in range(arguments.seeds)]
        if name not in UNTOLD:
            together["assumptions kept" if name in KEPT else "assumptions broken"] += runs
        rows.append(summary(name, runs))
        print(line(rows[-1]), flush=True)
    for name, runs in together.items():
        rows.append(summary(name, runs))
        print(line(rows[-1]))
    print(f"{time.perf_counter() - started:.0f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
