"""The attacks on TableBuilder (Asghar & Kaafar 2020), on systems that keep, break or defend against their assumptions.

    python benchmarks/table_builder_systems.py [--goal histogram|suppressed|perturbation] [--seeds 20] [--only NAME …]
    python benchmarks/table_builder_systems.py --goal defences [--seeds 10]

The first form compares what the attacks claim with what is right. The table has a row for each system, one for all
systems that keep the assumptions, and one for all that break them, except systems whose answers cannot show it:
averaging assumes independent noise of mean 0, and differencing (suppressed) exact answers. It has the numbers of counts
(or parameters) claimed with a probability of at least .5, .9 and .99, and of right ones among them. "Nothing claimed":
runs that claim nothing, or are refused.

`defences` counts the questions of the attack on each defence of sections 2.2, 6, 7 and 9 of the paper, and on a
differentially private table, for counts of doctor's visits in the RAND health insurance experiment (statsmodels).
"""

# ruff: noqa: D102  (the name of a system says what it does)
from collections import defaultdict
from dataclasses import replace
from functools import partial
from zlib import crc32

import numpy as np
from scipy.stats import beta

import results
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder import noise_laws
from dpwitness.reconstruction.table_builder.averaging import choose_base, nearest
from dpwitness.reconstruction.table_builder.differencing import recover_suppressed
from dpwitness.reconstruction.table_builder.histogram import recover_histogram
from dpwitness.reconstruction.table_builder.perturbation import largest_sum, pairs_within
from dpwitness.reconstruction.table_builder.supply import PARTITIONS_PER_VARIANCE, CountingPlan
from dpwitness.reconstruction.table_builder.systems import (
    MISSING_ANSWER,
    BoundedNoisyCounts,
    ExactCounts,
    FreshNoisyCounts,
    KeyedNoisyCounts,
    QuerySystem,
)
from dpwitness.reconstruction.table_builder.tables import Table
from dpwitness.reconstruction.table_builder.theory import expected_right, noise_removed

#: The probabilities from which on claims are counted.
LEVELS = (0.5, 0.9, 0.99)


def simulated(kind, law=noise_laws.uniform):
    """A simulated system with noise of a law, which suppresses at most max(r, 4) people."""

    def make(table, rng, r=2):
        noise = law(r)
        return kind(table, noise=noise, suppression=max(noise.bound, 4), rng=rng)

    return make


class GrowingNoisyCounts(BoundedNoisyCounts):
    """The mitigation of section 6: the i-th fresh noise is uniform within ±⌈r·√i⌉.

    The variance of the attack's average then stays near 2r²/3 people² however many queries it asks. Answers can be
    negative.
    """

    noises = None

    def _fresh_noise(self, n):
        first = len(self._dictionary) + 1
        bound = np.ceil(self.law.bound * np.sqrt(np.arange(first, first + n))).astype(np.int64)
        return self._rng.integers(-bound, bound, endpoint=True)


class WithoutTotals(BoundedNoisyCounts):
    """A system without noise of totals: the answer for several values is the sum of their answers (section 7)."""

    def ask(self, attribute, selections, where=None):
        asked = self.asked
        each = super().ask(attribute, np.eye(len(self.values(attribute)), dtype=np.bool_), where)
        self.asked = asked + len(selections)
        return np.asarray(selections, np.int64) @ each


class Answers(QuerySystem):
    """A system with methods to replace: `people` counts, `noise` draws noise, `shown` answers.

    `named`: flags of the values of all other attributes that a question names.
    """

    def __init__(self, table, rng, r=2):
        super().__init__(table.values)
        self.table, self.rng, self.r, self.suppression = table, rng, r, max(r, 4)
        self.law = noise_laws.uniform(r)
        self.salt = rng.integers(1 << 62)
        self.keys = rng.integers(1 << 63, size=len(table.counts), dtype=np.uint64)

    def ask(self, attribute, selections, where=None):
        selections, where = np.asarray(selections, bool), where or {}
        others = [(name, value) for name in self.attributes if name != attribute for value in self.values(name)]
        self.named = np.array([name in where and value in where[name] for name, value in others], bool)
        inside, keys = self.table.profiles(where), np.zeros(selections.shape[1], np.uint64)
        np.bitwise_xor.at(keys, self.table.codes[inside, self.table.column(attribute)], self.keys[inside])
        people = self.people(selections, self.table.histogram(attribute, where))
        key = np.bitwise_xor.reduce(np.where(selections, keys, np.uint64(0)), axis=1)
        noise = self.noise(people, key, selections)
        self.asked += len(selections)
        return self.shown(people, noise)

    def people(self, selections, counts):
        return selections.astype(int) @ counts

    def shown(self, people, noise):
        return np.where(people > self.suppression, people + noise, 0)

    def noise(self, people, key, selections):
        return self.law.at(self.uniform(key))

    def uniform(self, key, salt=0):
        """A number in [0, 1) for each key, by the finaliser of splitmix64."""
        key = np.asarray(key).astype(np.uint64) ^ np.uint64((int(self.salt) + salt * 0x9E3779B97F4A7C15) % (1 << 64))
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((key ^ (key >> np.uint64(31))) >> np.uint64(11)) / 2.0**53


def with_methods(**methods):
    """A system that differs from `Answers` in some methods, and attributes."""
    return type("Answers", (Answers,), methods)


def by(code):
    """A system whose noise is keyed by a function of the system, the people counted and the questions."""
    return with_methods(noise=lambda s, n, key, q: s.law.at(s.uniform(code(s, n, q))))


def words(rows, named):
    return np.array([crc32(row.tobytes() + named.tobytes()) for row in rows])


def laplace(s, n, key, q):
    u = s.uniform(key) - 0.5
    return np.round(-np.sign(u) * s.r / 2 * np.log1p(-2 * np.abs(u))).astype(int)


def student(s, n, key, q):
    u = 2 * s.uniform(key) - 1  # Student's t with two degrees of freedom
    return np.round(s.r / 2 * u * np.sqrt(2 / (1 - u * u))).clip(-1e6, 1e6).astype(int)


def sixteen(cell):
    """A system with a table of sixteen noises, in which a function of the system and the key is the place."""

    def noise(s, n, key, q):
        entries = s.__dict__.setdefault("entries", s.law.sample(s.rng, 16))
        return entries[cell(s, key).astype(int)]

    return with_methods(noise=noise)


def drifting(s, n, key, q):
    """The noise of a random walk over the questions, within ±4r."""
    steps = np.cumsum(np.concatenate([[getattr(s, "last", 0)], s.rng.integers(-1, 2, len(n))]))
    s.last, wide = int(steps[-1]), 4 * s.r
    return wide - np.abs((steps[1:] - wide) % (4 * wide) - 2 * wide)


def autoregressive(s, n, key, q):
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
    return with_methods(noise=lambda s, n, key, q: np.where(s.uniform(key) < (n % base) / base, base, 0) - n % base)


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


def layered(s, n, key, q):
    """The sum of a noise of the people counted and a noise of each value in the question, which never change."""
    layers = s.law.at(s.uniform(np.arange(q.shape[1] + len(s.named)), 1))
    return s.law.at(s.uniform(key)) + q @ layers[: q.shape[1]] + s.named @ layers[q.shape[1] :]


def exact(kind):
    """The system of a kind, without its noise."""
    return type("Answers", (kind,), {"noise": lambda s, n, *_: np.zeros_like(n)})


#: Systems that keep the assumptions of averaging.
KEPT = {
    "uniform": simulated(BoundedNoisyCounts),
    "keyed": simulated(KeyedNoisyCounts),
    "normal": simulated(BoundedNoisyCounts, lambda r: noise_laws.truncated_normal(r, r / 2)),
    "maximum entropy": simulated(BoundedNoisyCounts, lambda r: noise_laws.maximum_entropy(range(-r, 2 * r), r * r / 6)),
}
#: Systems that break the assumptions of averaging.
BROKEN = {
    "skewed noise": with_methods(
        noise=lambda s, n, key, q: np.array([-1, 0, s.r + 1])[(s.uniform(key) * 3).astype(int)]
    ),
    "long tails": with_methods(noise=laplace),
    "heavy tails": with_methods(noise=student),
    "16 noises": sixteen(lambda s, key: s.uniform(key) * 16),
    "16 noises, 4-bit keys": sixteen(lambda s, key: key % np.uint64(16)),
    "keyed by the count": by(lambda s, n, q: n),
    "keyed by the size": by(lambda s, n, q: q.sum(axis=1)),
    "keyed by the first value": by(lambda s, n, q: q.argmax(axis=1)),
    "keyed by the number": by(lambda s, n, q: (s.asked + np.arange(len(n))) % 16),
    "keyed by the question": by(
        lambda s, n, q: words(q, s.named)
    ),  # equal questions have equal noise, else independent
    "one noise for both sides": by(lambda s, n, q: words(np.where(q[:, -1], ~q.T, q.T).T, s.named)),
    "drifting": with_methods(noise=drifting),
    "autoregressive": with_methods(noise=autoregressive),
    "growing": simulated(GrowingNoisyCounts),
    "layered": with_methods(  # a noise by the people, and a noise by the question
        noises=2, noise=lambda s, n, key, q: s.law.at(s.uniform(key)) + s.law.at(s.uniform(words(q, s.named), 1))
    ),
    "a layer a value": with_methods(noises=None, noise=layered),
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
#: Systems that break the assumptions, which answers about a single attribute cannot show: others with the same answers
#: keep them, for other people.
UNTOLD = {"a layer a value, one attribute": BROKEN["a layer a value"]}
#: Systems under the averaging attack.
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
#: The law of a noise that is always 0.
NO_NOISE = noise_laws.NoiseLaw(support=(0,), probabilities=(1,))
#: Systems that break the assumptions of differencing, as all systems with noise do.
INEXACT = {
    "1 % with noise": with_methods(noise=lambda s, n, key, q: s.law.at(s.uniform(key)) * (s.uniform(key, 1) < 0.01)),
    "noise in small differences": audited(repeats=False),
    "no small differences": audited(repeats=True),
    "noise in large counts": shown(lambda s, n, noise: n + np.where(2 * n > s.table.people, noise, 0)),
    "sums of suppressed counts": simulated(WithoutTotals, lambda r: NO_NOISE),
    "sums of noisy counts": simulated(WithoutTotals),
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


def divided(counts):
    """A table of two attributes: nearly equally many people with each value of the first have each of four others."""
    parts = (counts[:, None] + np.arange(4)) // 4
    codes = np.indices(parts.shape).reshape(2, -1).T
    return Table({"a": range(len(counts)), "b": range(4)}, codes, parts.ravel())


def many(rng):
    """A table of 16 to 30 values, some of them with nobody or too few people to be shown."""
    size = int(rng.integers(16, 31))
    counts = np.round(np.exp(rng.normal(4.5, 0.8, size))).astype(int)
    counts[rng.permutation(size)[: rng.integers(0, 6)]] = rng.integers(0, 5)
    return divided(counts)


def few(rng):
    """A table of 3 to 8 values, one or two of them with too few people to be shown."""
    counts = rng.integers(20, 300, int(rng.integers(3, 9)))
    counts[: rng.integers(1, 3)] = rng.integers(1, 5)
    return divided(rng.permutation(counts))


def one_run(name, seed, *, goal="histogram", one_value=False):
    """The claims of one run: the probability of each guess, 0 without a claim, and whether the guess is right."""
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    table = many(rng) if rng.random() < 0.6 else few(rng)
    r = int(rng.choice([1, 2, 3, 5]))
    if "maximum" in name:
        r = max(r, 2)
    if name in UNTOLD:
        table = table.only(["a"])
    system, true = SYSTEMS[name](table, rng, r), table.histogram("a")
    if goal == "perturbation":
        noises = getattr(system, "noises", 1)
        return parameter(system, rng, None if noises is None else noises * system.law.bound)
    if goal == "suppressed":
        try:
            found = recover_suppressed(system, rng, "a")
        except InvalidParameter:  # no answer for all people: nothing is claimed
            return np.zeros(len(true)), np.zeros(len(true), bool)
        return found.finding.probability, found.counts == true
    plan = CountingPlan(partitions=(None, None, None, 60)[rng.integers(4)])
    if one_value:
        plan = replace(plan, targets=(int(rng.integers(len(true))),))
        true = true[list(plan.targets)]
    found = recover_histogram(system, rng, "a", plan)
    return found.finding.probability, np.array(found.counts) == true


def parameter(system, rng, bound):
    sums = int(rng.choice([7, 30, 200]))
    try:
        found = largest_sum(pairs_within(system, rng, "a", choose_base(system, "a", 16), sums))
    except InvalidParameter:  # no answers to compare: nothing is claimed
        return np.zeros(1), np.zeros(1, bool)
    return found.finding.probability, np.array([found.guess == bound])


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


class PrivateTable(QuerySystem):
    """Geometric noise for each count, drawn once: ε-DP for one person more or fewer (Ghosh et al. 2009).

    A question about several values is answered by the sum of their noisy counts.
    """

    def __init__(self, table, rng, *, epsilon):
        super().__init__(table.values)
        (self._cells,) = (table.histogram(name) for name in table.values)
        # The difference of two geometric variables: P[noise = k] is proportional to exp(-ε·|k|).
        up, down = rng.geometric(-np.expm1(-epsilon), (2, len(self._cells)))
        self._cells = self._cells + up - down

    def ask(self, attribute, selections, where=None):
        self.asked += len(selections)
        return np.asarray(selections, np.int64) @ self._cells


#: The attribute of the defences' table, the number of visits to a doctor.
ATTRIBUTE = "mdvis"
#: Twelve of 59 values: nine values of 6,308 to 26 people, and three values of 3, 2 and 1, suppressed at s = 4.
TARGETS = (0, 1, 2, 3, 4, 5, 10, 15, 20, 40, 48, 69)

# Each attack gets a system, a generator, the positions of the target values and the law of the noise, if theory
# predicts a result. It returns the targets' counts and the number of right ones that theory expects, or None.


def by_differencing(system, rng, targets, law):
    return recover_suppressed(system, rng, ATTRIBUTE, tuple(targets.tolist())).counts, None


def by_repeating(system, rng, targets, law):
    """The attack that asks each question 100 times (section 2.2) and the total 250 times; fresh noise has variance 2.

    The count of a value whose answer is 0 is the total less the answer for all other values.
    """
    times, eye = PARTITIONS_PER_VARIANCE, np.eye(len(system.values(ATTRIBUTE)), dtype=np.bool_)
    shown = system.ask(ATTRIBUTE, eye[targets]) > 0
    total = nearest(system.ask(ATTRIBUTE, np.ones((5 * times // 2, len(eye)), np.bool_)).mean())
    counts = []
    for value, is_shown in zip(targets.tolist(), shown.tolist(), strict=True):
        mean = system.ask(ATTRIBUTE, np.tile(eye[value] if is_shown else ~eye[value], (times, 1))).mean()
        counts.append(max(nearest(mean if is_shown else total - mean), 0))
    return counts, len(targets) * noise_removed(law, ((1, times),), ties="half")


def by_two_partitions(plan):
    """The histogram attack by Algorithm 4 alone, to which the theory applies."""

    def recover(system, rng, targets, law):
        found = recover_histogram(system, rng, ATTRIBUTE, replace(plan, targets=tuple(targets.tolist()), fitted=False))
        number = len(targets)
        return found.counts, law and expected_right(law, found.base_partitions, found.used, [False] * number)

    return recover


def by_cells(system, rng, targets, law):
    """Two-partitions of a private table, whose noise never changes: the count of a value is its noisy count."""
    counts, _ = by_two_partitions(CountingPlan(partitions=200))(system, rng, targets, None)
    return counts, len(targets) * float(law.probabilities[law.bound])


def geometric(epsilon):
    """The two-sided geometric law of a private table, cut off where its tail is below 10⁻¹⁷."""
    support = np.arange(-round(40 / epsilon), round(40 / epsilon) + 1)
    weights = np.exp(-epsilon * np.abs(support))
    return noise_laws.NoiseLaw(support=tuple(support.tolist()), probabilities=tuple((weights / weights.sum()).tolist()))


def averaged(kind, law, section, plan=None):
    """A system of independent noises of one law, which two-partitions average away."""
    return (
        simulated(kind, lambda r: law),
        f"two-partitions (section {section})",
        by_two_partitions(plan or CountingPlan()),
        law,
    )


def unanswered(system, section):
    """A system whose noise 200 two-partitions for each value do not average away."""
    attack = f"none known here: two-partitions fail (section {section})"
    return system, attack, by_two_partitions(CountingPlan(partitions=200)), None


UNIFORM, NORMAL = noise_laws.uniform, noise_laws.truncated_normal(2, 1.0)
#: Each system, the attack on it and its place in the paper, and the law of the noise if theory predicts a result.
DEFENCES = {
    "counts of at most 4 suppressed, no noise": (
        simulated(ExactCounts), "differencing: everybody minus all but the value (section 2.2)", by_differencing, None,
    ),
    "fresh noise within ±2 for each question": (
        simulated(FreshNoisyCounts), "the same question, again and again (section 2.2)", by_repeating, UNIFORM(2),
    ),
    "the same people get the same noise, ±2 (Algorithm 1)": averaged(BoundedNoisyCounts, UNIFORM(2), "4.2"),
    "the same by keys (as deployed), ±2": averaged(KeyedNoisyCounts, UNIFORM(2), "5.1"),
    "another admissible law: normal within ±2": averaged(BoundedNoisyCounts, NORMAL, "6"),
    "more noise, ±5": averaged(BoundedNoisyCounts, UNIFORM(5), "6"),
    "more noise, ±10": averaged(BoundedNoisyCounts, UNIFORM(10), "6"),
    "a cap of 500 questions, ±2": averaged(BoundedNoisyCounts, UNIFORM(2), "7", CountingPlan(questions=500)),
    "a cap of 2,000 questions, ±2": averaged(BoundedNoisyCounts, UNIFORM(2), "7", CountingPlan(questions=2000)),
    "totals are sums of published answers, ±2": unanswered(simulated(WithoutTotals), "7"),
    "the t-th noise within ±2·√t": unanswered(simulated(GrowingNoisyCounts), "6"),
    "one more noise for each value named (layers), ±2": unanswered(BROKEN["a layer a value"], "9"),
    "a private table: geometric noise of ε = 1 for each count, drawn once": (
        partial(PrivateTable, epsilon=1.0), "none: every answer is a sum of its counts (Ghosh et al. 2009)", by_cells,
        geometric(1.0),
    ),
}  # fmt: skip


def measure(seeds):
    """The figures of each defence, from attacks on `seeds` systems, and their table.

    `questions`: the mean number of questions a value, with the questions for all values together. `right`: the share of
    counts recovered; `published`: the share of published answers that are right; `predicted`: the share that theory
    expects, or NaN.
    """
    from statsmodels.datasets import randhie

    people = Table.from_columns({ATTRIBUTE: randhie.load_pandas().data[ATTRIBUTE].astype(int).tolist()})
    targets = people.positions(ATTRIBUTE, TARGETS)
    true, alone = people.histogram(ATTRIBUTE)[targets], np.eye(len(people.values[ATTRIBUTE]), dtype=np.bool_)[targets]
    table = results.Table(
        "Defence", "Attack on this defence", "Questions per value", "Right as published", "Right", "Theory"
    )
    rows = []
    for number, (name, (make, attack, recover, law)) in enumerate(DEFENCES.items()):
        found = []
        for stream in np.random.SeedSequence([1, number]).spawn(seeds):
            rng = np.random.default_rng(stream)
            system = make(people, rng)
            counts, predicted = recover(system, rng, targets, law)
            asked, right = system.asked, np.sum(np.array(counts) == true)
            published = np.sum(system.ask(ATTRIBUTE, alone) == true)
            found.append((asked, published, right, np.nan if predicted is None else predicted))
        figures = (np.mean(found, axis=0) / len(true)).tolist()
        rows.append(
            row := dict(zip(("questions", "published", "right", "predicted"), figures, strict=True)) | {"defence": name}
        )
        theory = "" if np.isnan(row["predicted"]) else f"{row['predicted']:.1%}"
        table.add(name, attack, f"{row['questions']:,.0f}", f"{row['published']:.0%}", f"{row['right']:.1%}", theory)
    return rows, table


DEFENCES_TEXT = """twelve counts of doctor's visits in the RAND health insurance experiment,
nine of 26 to 6,308 people and three suppressed ones of 1, 2 and 3."""


def main() -> None:
    parser = results.parser_of(__doc__, seeds=20)
    parser.add_argument("--only", nargs="+", choices=tuple(SYSTEMS))
    goals = ("histogram", "suppressed", "perturbation", "defences")
    parser.add_argument("--goal", choices=goals, default="histogram")
    parser.add_argument("--single", action="store_true", help="attack the count of one value alone")
    given = parser.parse_args()
    if given.goal == "defences":
        rows, table = measure(given.seeds)
        text = f"{given.seeds} systems a row: " + DEFENCES_TEXT
        results.finish(given, "Defences of TableBuilder, and what they cost the attacker", text, table, rows)
        return
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
    if given.goal == "histogram":
        text += (
            "\nThe tables have a second attribute, except in the last system: answers about one attribute alone never "
            "show a layer a\nvalue, as a system without layers gives the same answers for other counts."
        )
    title = "What the attack on TableBuilder claims" if given.goal == "histogram" else "What is claimed of its noise"
    if differencing:
        title = "What differencing claims"
        text += "\nNoise breaks its assumptions. Answers for few values look exact at 1.01 times the counts."
    results.finish(given, title, text, table, rows)


if __name__ == "__main__":
    main()
