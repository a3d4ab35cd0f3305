"""The calibration of averaging attacks, on systems that keep their assumptions and on systems that break them.

python benchmarks/table_builder_calibration.py [--seeds 20] [--only NAME …] [--goal histogram|suppressed|perturbation]
    [--single] [--json FILE]

The table has a row for each system, one for all systems that keep the assumptions, and one for all that break them,
except systems whose answers cannot show it: averaging assumes independent noise of mean 0, and differencing
(suppressed) exact answers. It has the numbers of counts (or parameters) claimed with a probability of at least .5, .9
and .99, and of right ones among them. "Nothing claimed": runs that claim nothing, or are refused.
"""

# ruff: noqa: D102  (the name of a system says what it does)
from collections import defaultdict

import numpy as np
from scipy.stats import beta

import results
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder import noise_laws
from dpwitness.reconstruction.table_builder.averaging import choose_base
from dpwitness.reconstruction.table_builder.differencing import recover_suppressed
from dpwitness.reconstruction.table_builder.histogram import recover_histogram
from dpwitness.reconstruction.table_builder.perturbation import largest_sum, pairs_within
from dpwitness.reconstruction.table_builder.supply import Plan
from dpwitness.reconstruction.table_builder.systems import (
    MISSING_ANSWER,
    BoundedNoisyCounts,
    KeyedNoisyCounts,
    System,
    WithoutTotals,
)
from dpwitness.reconstruction.table_builder.tables import Table
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


def with_methods(**methods):
    """A system that differs from `Answers` in some methods, and attributes."""
    return type("Answers", (Answers,), methods)


def by(code):
    """A system whose noise is keyed by a function of the system, the people counted, the questions and their place."""
    return with_methods(noise=lambda s, n, key, q, place: s.law.at(s.uniform(code(s, n, q, place))))


def words(rows):
    return np.array([hash(row.tobytes()) % (1 << 62) for row in rows])


def laplace(s, n, key, q, place):
    u = s.uniform(key) - 0.5
    return np.round(-np.sign(u) * s.r / 2 * np.log1p(-2 * np.abs(u))).astype(int)


def student(s, n, key, q, place):
    u = 2 * s.uniform(key) - 1  # Student's t with two degrees of freedom
    return np.round(s.r / 2 * u * np.sqrt(2 / (1 - u * u))).clip(-1e6, 1e6).astype(int)


class Table16(Answers):
    """A system with a table of sixteen noises, from which the key chooses."""

    bits, entry = 63, staticmethod(lambda s, key: (s.uniform(key) * 16).astype(int))

    def __init__(self, *given):
        super().__init__(*given)
        self.entries = self.law.sample(self.rng, 16)
        self.keys = self.keys % np.uint64(1 << self.bits)

    def noise(self, people, key, selections, place):
        return self.entries[self.entry(self, key)]


class Table16Xor(Table16):
    """A system with a table of sixteen noises, in which the key, of four bits, is the place."""

    bits, entry = 4, staticmethod(lambda s, key: key.astype(int))


def drifting(s, n, key, q, place):
    """A random walk over the questions, within ±4r."""
    steps = np.cumsum(np.concatenate([[getattr(s, "last", 0)], s.rng.integers(-1, 2, len(n))]))
    s.last, wide = int(steps[-1]), 4 * s.r
    return wide - np.abs((steps[1:] - wide) % (4 * wide) - 2 * wide)


def autoregressive(s, n, key, q, place):
    last, steps = getattr(s, "last", 0.0), s.rng.normal(scale=s.r * np.sqrt(1 - 0.9**2), size=len(n))
    found = [last := 0.9 * last + step for step in steps]
    s.last = last
    return np.round(found).astype(int)


def garbage(share, wide=None):
    """A system that answers a share of the questions by any number, or by a number too large by `wide`."""

    def shown(s, people, noise):
        right = Answers.shown(s, people, noise)
        wrong = s.rng.random(len(people)) < share
        made = s.rng.integers(0, int(s.table.people) + 1, len(people)) if wide is None else right + wide
        return np.where(wrong, made, right)

    return with_methods(shown=shown)


def flipped(s, people, noise):
    """The answers, of which 5 % count the people who are not asked for."""
    wrong = s.rng.random(len(people)) < 0.05
    return Answers.shown(s, np.where(wrong, s.table.people - people, people), noise)


def shown(answer, above=lambda s: s.suppression, less=0):
    """A system that shows `answer` if it counts more than `above` people, else `less`."""
    return with_methods(shown=lambda s, n, noise: np.where(n > above(s), answer(s, n, noise), less))


def rounded(base):
    return shown(lambda s, n, noise: np.round(n / base).astype(int) * base)


def randomly_rounded(base):
    """A system that rounds counts at random to a multiple of `base`, with the right mean."""
    return with_methods(
        noise=lambda s, n, key, q, place: np.where(s.uniform(key) < (n % base) / base, base, 0) - n % base
    )


def overlapping(s, selections, counts):
    """Counts in which a tenth of the people with a value have the next value too, so that sizes do not add up."""
    return Answers.people(s, selections, counts) + (selections & ~np.roll(selections, 1, axis=1)) @ (counts // 10)


def leaving(s, selections, counts):
    """Counts of which one person leaves after the first 40 questions."""
    late = s.asked + np.arange(len(selections)) >= 40
    return Answers.people(s, selections, counts) - (late & selections[:, counts.argmax()])


def audited(repeats):
    """A system whose answer has noise, or repeats an earlier answer, if few people differ from the earlier question."""

    def shown(s, people, noise):
        earlier, answers = s.__dict__.setdefault("earlier", []), []
        for count, extra in zip(people.tolist(), noise.tolist(), strict=True):
            near = [one for one in earlier if 0 < abs(one - count) <= s.suppression]
            earlier.append(count)
            answers.append(near[0] if near and repeats else count + extra * bool(near))
        return np.where(people > s.suppression, np.array(answers, int), 0)

    return with_methods(shown=shown)


def exact(kind):
    """A system of this kind without its noise."""
    return type("Answers", (kind,), {"noise": lambda s, n, *_: np.zeros_like(n)})


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
    "skewed noise": with_methods(
        noise=lambda s, n, key, q, place: np.array([-1, 0, s.r + 1])[(s.uniform(key) * 3).astype(int)]
    ),
    "long tails": with_methods(noise=laplace),
    "heavy tails": with_methods(noise=student),
    "16 noises": Table16,
    "16 noises, 4-bit keys": Table16Xor,
    "keyed by the count": by(lambda s, n, q, place: n),
    "keyed by the size": by(lambda s, n, q, place: q.sum(axis=1)),
    "keyed by the first value": by(lambda s, n, q, place: q.argmax(axis=1)),
    "keyed by the number": by(lambda s, n, q, place: (s.asked + np.arange(len(n))) % 16),
    "keyed by the group": by(lambda s, n, q, place: np.full(len(n), place % (1 << 32))),
    # As good as independent.
    "keyed by the question": by(lambda s, n, q, place: words(q) + place % (1 << 32)),
    "one noise for both sides": by(lambda s, n, q, place: words(np.where(q[:, -1], ~q.T, q.T).T)),
    "drifting": with_methods(noise=drifting),
    "autoregressive": with_methods(noise=autoregressive),
    "growing": counts(GrowingNoisyCounts),
    "layered": counts(LayeredNoisyCounts),
    "garbage 2 %": garbage(0.02),
    "garbage 5 %": garbage(0.05),
    "garbage 20 %": garbage(0.2),
    "5 % 15 too large": garbage(0.05, 15),
    "flipped 5 %": with_methods(shown=flipped),
    "offset 1": shown(lambda s, n, noise: n + noise + 1),
    "offset 7": shown(lambda s, n, noise: n + noise + 7),
    "scaled 1.01": shown(lambda s, n, noise: np.round(1.01 * n).astype(int) + noise),
    "rounded to 5": rounded(5),
    "rounded to 10": rounded(10),
    "randomly rounded to 3": randomly_rounded(3),
    "overlapping values": with_methods(people=overlapping),
    "suppressed at 40": shown(lambda s, n, noise: n + noise, lambda s: 40),
    "suppressed with noise": with_methods(shown=lambda s, n, noise: np.where(n + noise > 10, n + noise, 0)),
    "suppressed shown as 3": shown(lambda s, n, noise: n + noise, lambda s: 10, less=3),
    "a constant": with_methods(shown=lambda s, n, noise: np.full(len(n), 100) + noise),
    "nonsense": with_methods(shown=lambda s, n, noise: s.rng.integers(5, 1000, len(n))),
}
#: Systems that add a whole number to each value in all of its questions, which answers cannot tell from people.
UNTOLD = {"a layer a value": counts(ValueLayeredNoisyCounts)}
AVERAGED = {**KEPT, **BROKEN, **UNTOLD}
#: Systems that keep the assumptions of differencing.
EXACT = {
    "exact": exact(Answers),
    "exact, suppressed at 10": exact(BROKEN["suppressed with noise"]),
    "exact, suppressed at 40": exact(BROKEN["suppressed at 40"]),
    "exact, a tenth refused": exact(
        with_methods(shown=lambda s, n, _: np.where(s.rng.random(len(n)) < 0.1, MISSING_ANSWER, Answers.shown(s, n, 0)))
    ),
}
#: Systems that break the assumptions of differencing, as all systems with noise do.
INEXACT = {
    "1 % with noise": with_methods(noise=lambda s, n, key, *_: s.law.at(s.uniform(key)) * (s.uniform(key, 1) < 0.01)),
    "noise in small differences": audited(repeats=False),
    "no small differences": audited(repeats=True),
    "noise in large counts": shown(lambda s, n, noise: n + np.where(2 * n > s.table.people, noise, 0)),
    "sums of suppressed counts": counts(WithoutTotals, lambda r: noise_laws.NoiseLaw(support=(0,), probabilities=(1,))),
    "sums of noisy counts": counts(WithoutTotals),
    "exact, a person leaves": exact(with_methods(people=leaving)),
    "exact, rounded to 3": rounded(3),
    "exact, rounded to 5 at random": randomly_rounded(5),
    **{
        f"exact, {name}": exact(BROKEN[name])
        for name in (
            "garbage 2 %", "garbage 20 %", "5 % 15 too large", "flipped 5 %", "offset 1", "overlapping values",
            "suppressed shown as 3",
        )
    },
}  # fmt: skip
#: Systems whose scaled counts of few values fit another table, which differences cannot tell.
SCALED = {"exact, scaled 1.01": exact(BROKEN["scaled 1.01"])}
SYSTEMS = {**AVERAGED, **EXACT, **INEXACT, **SCALED}


def single(rng):
    """One attribute: 16 to 30 values, some of them with nobody or too few people to be shown."""
    size = int(rng.integers(16, 31))
    counts = np.round(np.exp(rng.normal(4.5, 0.8, size))).astype(int)
    counts[rng.permutation(size)[: rng.integers(0, 6)]] = rng.integers(0, 5)
    return Table.from_counts(counts, name="a")


def few(rng):
    """One attribute: 3 to 8 values, one or two of them with too few people to be shown."""
    counts = rng.integers(20, 300, int(rng.integers(3, 9)))
    counts[: rng.integers(1, 3)] = rng.integers(1, 5)
    return Table.from_counts(rng.permutation(counts), name="a")


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
    """The claims of one run: the confidence of each cell, 0 without a claim, and whether the count is right."""
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    table = single(rng) if rng.random() < 0.6 else few(rng) if goal == "suppressed" else several(rng)
    r = int(rng.choice([1, 2, 3, 5]))
    if "maximum" in name:
        r = max(r, 2)
    attribute = next(iter(table.values))
    system = SYSTEMS[name](table, rng, r)
    if goal == "perturbation":
        noises = getattr(system, "noises", 1)
        return parameter(system, rng, attribute, None if noises is None else noises * system.law.bound)
    true = table.histogram(attribute)
    if goal == "suppressed":
        return suppressed(system, rng, attribute, true)
    plan = Plan(partitions=(None, None, None, 60)[rng.integers(4)])
    if one_value:
        plan = Plan(targets=(int(rng.integers(len(true))),), partitions=plan.partitions)
        true = true[list(plan.targets)]
    found = recover_histogram(system, rng, attribute, plan)
    sure = np.array(found.confidence)
    if not found.variance or getattr(found, "failed_checks", ()):
        sure = np.zeros(len(true))
    return sure, np.array(found.counts) == true


def suppressed(system, rng, attribute, true):
    try:
        found = recover_suppressed(system, rng, attribute)
    except InvalidParameter:  # no answer for all people: nothing is claimed
        return np.zeros(len(true)), np.zeros(len(true), bool)
    return found.finding.probability, found.counts == true


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
    """Whether the number of right claims is in accord with the level, by a test of level 0.001."""
    return not claims or right == claims or beta.ppf(0.999, right + 1, claims - right) >= level


def main() -> None:
    parser = results.parser_of(__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=tuple(SYSTEMS))
    parser.add_argument("--goal", choices=("histogram", "suppressed", "perturbation"), default="histogram")
    parser.add_argument("--single", action="store_true", help="attack the count of one value alone")
    given = parser.parse_args()
    levels = [f"right of those claimed with ≥ {level}" for level in LEVELS]
    table = results.Table("system", "nothing claimed", "right", "claimed", "right of claimed", *levels, "kept")
    rows, together = [], defaultdict(list)

    def add(name, runs):
        rows.append(row := summary(name, runs))
        table.add(
            name, f"{row['withheld']} of {row['runs']}", f"{row['right']:.3f}", f"{row['said']:.1f}",
            f"{row['claimed_right']} of {row['claimed']}",
            *(f"{row[f'right_{level}']} of {row[f'at_{level}']}" for level in LEVELS), "yes" if row["kept"] else "NO",
        )  # fmt: skip

    differencing = given.goal == "suppressed"
    kept = EXACT if differencing else KEPT
    for name in given.only or (SYSTEMS if differencing else AVERAGED):
        runs = [one_run(name, seed, goal=given.goal, one_value=given.single) for seed in range(given.seeds)]
        if name not in UNTOLD | SCALED:
            together["assumptions kept" if name in kept else "assumptions broken"] += runs
        add(name, runs)
    for name, runs in together.items():
        add(name, runs)
    text = "Counts that the attack recovers. kept: as many are right as their probabilities say, up to chance."
    title = "What the attack on TableBuilder claims" if given.goal == "histogram" else "What is claimed of its noise"
    if differencing:
        title = "What differencing claims"
        text += "\nNoise breaks its assumptions. Answers for few values look exact at 1.01 times the counts."
    results.finish(given, title, text, table, rows)


if __name__ == "__main__":
    main()
