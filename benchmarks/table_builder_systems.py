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
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from zlib import crc32

import numpy as np
from scipy.stats import beta, norm

import results
from dpwitness.errors import InvalidParameter
from dpwitness.reconstruction.table_builder import noise_laws
from dpwitness.reconstruction.table_builder.averaging import Sums, average, choose_base, nearest
from dpwitness.reconstruction.table_builder.differencing import recover_suppressed
from dpwitness.reconstruction.table_builder.histogram import recover_histogram
from dpwitness.reconstruction.table_builder.perturbation import largest_sum, pairs_within
from dpwitness.reconstruction.table_builder.supply import PARTITIONS_PER_VARIANCE, Plan
from dpwitness.reconstruction.table_builder.systems import (
    MISSING_ANSWER,
    Block,
    BoundedNoisyCounts,
    ExactCounts,
    FreshNoisyCounts,
    KeyedNoisyCounts,
    System,
    WithoutTotals,
)
from dpwitness.reconstruction.table_builder.tables import Table
from dpwitness.reconstruction.table_builder.theory import expected_right, noise_removed

LEVELS = (0.5, 0.9, 0.99)


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


class LayeredNoisyCounts(BoundedNoisyCounts):
    """The layered noise of section 9 (Diffix): one noise per set of contributors and one per condition of the query.

    The noise of a condition that all queries of an attack share, such as a sub-population, never averages out: the
    noise remover counts the sub-population wrong by twice that noise. But the noise is the same with and without a
    value, so it cancels in differences.
    """

    noises = 2

    def _noise(self, union, attribute, selections, where):
        layers = super()._noise(union, attribute, selections, where)
        for name, chosen in where.items():
            selection = np.zeros((1, len(self.values(name))), np.bool_)
            selection[0, self._table.positions(name, chosen)] = True
            layers += self._of_conditions(name, selection)
        return layers + self._of_conditions(attribute, selections)

    def _of_conditions(self, attribute, selections):
        """The noise of each condition on an attribute, whether it names a sub-population or what a query selects."""
        return self._sticky_noise([(attribute, row.tobytes()) for row in selections])


class ValueLayeredNoisyCounts(LayeredNoisyCounts):
    """Each selected value is a condition of its own, whose noise stays in differences with and without it."""

    noises = None

    def _of_conditions(self, attribute, selections):
        each = self._sticky_noise([(attribute, place) for place in range(selections.shape[1])])
        return selections.astype(np.int64) @ each


def simulated(kind, law=noise_laws.uniform):
    """A simulated system with noise of a law, which suppresses at most max(r, 4) people."""

    def make(table, rng, r=2):
        noise = law(r)
        return kind(table, noise=noise, suppression=max(noise.bound, 4), rng=rng)

    return make


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
        noise = self.noise(people, key, selections, crc32(str(name).encode()) if where else 0)
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
    return np.array([crc32(row.tobytes()) for row in rows])


def laplace(s, n, key, q, place):
    u = s.uniform(key) - 0.5
    return np.round(-np.sign(u) * s.r / 2 * np.log1p(-2 * np.abs(u))).astype(int)


def student(s, n, key, q, place):
    u = 2 * s.uniform(key) - 1  # Student's t with two degrees of freedom
    return np.round(s.r / 2 * u * np.sqrt(2 / (1 - u * u))).clip(-1e6, 1e6).astype(int)


class Table16(Answers):
    """A system with a table of sixteen noises, from which the key chooses."""

    def __init__(self, *given):
        super().__init__(*given)
        self.entries = self.law.sample(self.rng, 16)

    def noise(self, people, key, selections, place):
        return self.entries[(self.uniform(key) * 16).astype(int)]


class Table16Xor(Table16):
    """A system with a table of sixteen noises, in which the key, of four bits, is the place."""

    def noise(self, people, key, selections, place):
        return self.entries[(key % np.uint64(16)).astype(int)]


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


KEPT = {
    "uniform": simulated(BoundedNoisyCounts),
    "keyed": simulated(KeyedNoisyCounts),
    "normal": simulated(BoundedNoisyCounts, lambda r: noise_laws.truncated_normal(r, r / 2)),
    "laplace": simulated(BoundedNoisyCounts, lambda r: noise_laws.truncated_laplace(r, r / 2)),
    "maximum entropy": simulated(BoundedNoisyCounts, lambda r: noise_laws.maximum_entropy(range(-r, 2 * r), r * r / 6)),
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
    "keyed by the group": by(lambda s, n, q, place: np.full(len(n), place)),
    # As good as independent.
    "keyed by the question": by(lambda s, n, q, place: words(q) + place),
    "one noise for both sides": by(lambda s, n, q, place: words(np.where(q[:, -1], ~q.T, q.T).T)),
    "drifting": with_methods(noise=drifting),
    "autoregressive": with_methods(noise=autoregressive),
    "growing": simulated(GrowingNoisyCounts),
    "layered": simulated(LayeredNoisyCounts),
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
UNTOLD = {"a layer a value": simulated(ValueLayeredNoisyCounts)}
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
NO_NOISE = noise_laws.NoiseLaw(support=(0,), probabilities=(1,))
#: Systems that break the assumptions of differencing, as all systems with noise do.
INEXACT = {
    "1 % with noise": with_methods(noise=lambda s, n, key, *_: s.law.at(s.uniform(key)) * (s.uniform(key, 1) < 0.01)),
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
    if not found.variance or found.failed_checks:
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


class QuestionRefused(InvalidParameter):
    """The system does not answer this question, or no further question."""


class Restricted(System):
    """A system of Algorithm 1, r = 2, behind a rule: `require` raises `QuestionRefused`."""

    def __init__(self, table, rng):
        super().__init__(table.values)
        self._inner = simulated(BoundedNoisyCounts)(table, rng)

    def ask(self, attribute, selections, where=None):
        self.require(attribute, selections, where or {})
        self.asked += len(selections)
        return self._inner.ask(attribute, selections, where)


class SingleValues(Restricted):
    """A system without "or" in questions (section 9): a question names one value, or all values but one or two."""

    def require(self, attribute, selections, where):
        named = [(len(self.values(name)), np.array([len(chosen)])) for name, chosen in where.items()]
        for size, number in [*named, (selections.shape[1], selections.sum(axis=1))]:
            if np.any((number != 1) & (number < size - 2)):
                raise QuestionRefused("a question names one value, or all but one or two: there is no 'or'")


class Capped(Restricted):
    """A system that answers at most `cap` questions (query throttling, section 7)."""

    def __init__(self, table, rng, cap):
        super().__init__(table, rng)
        self.cap = cap

    def require(self, attribute, selections, where):
        if self.asked + len(selections) > self.cap:
            raise QuestionRefused(f"{self.asked} of {self.cap} questions are spent: no {len(selections)} more")


class Audited(Restricted):
    """Query auditing (section 7.2): at most 50 two-partitions of any set of values are answered.

    A question is refused where it would complete one more pair of disjoint questions with the same union.
    """

    limit = 50

    def __init__(self, table, rng):
        super().__init__(table, rng)
        self._asked = defaultdict(lambda: (np.zeros(0, np.int64), np.zeros(0, np.int64)))

    def require(self, attribute, selections, where):
        place = attribute, str(where)
        known, unions = self._asked[place]
        # A question about at most 63 values is an integer with a bit for each value.
        new = np.setdiff1d(selections @ (1 << np.arange(selections.shape[1])), known)
        questions, more = np.append(known, new), [unions]
        for number, question in enumerate(new, start=len(known)):
            earlier = questions[:number]
            more.append(earlier[earlier & question == 0] | question)
        unions = np.concatenate(more)
        if np.unique(unions, return_counts=True)[1].max(initial=0) > self.limit:
            raise QuestionRefused(f"more than {self.limit} pairs of questions part one set of values in two")
        self._asked[place] = questions, unions


class PrivateTable(System):
    """Geometric noise for each cell of a table, drawn once: ε-DP for one person more or fewer (Ghosh et al. 2009).

    `attributes` span the table. A question about them is answered by the sum of its noisy cells.
    """

    def __init__(self, table, attributes, *, epsilon, rng):
        self._table = table.only(attributes)
        super().__init__(self._table.values)
        cells = np.zeros([len(self._table.values[name]) for name in self.attributes], np.int64)
        cells[tuple(self._table.codes.T)] = self._table.counts
        # The difference of two geometric variables: P[noise = k] is proportional to exp(-ε·|k|).
        up, down = rng.geometric(-np.expm1(-epsilon), (2, *cells.shape))
        self._cells = cells + up - down

    def ask(self, attribute, selections, where=None):
        cells = self._cells
        for name, chosen in (where or {}).items():
            cells = np.take(cells, self._table.positions(name, chosen), axis=self._table.column(name))
        others = tuple(axis for axis in range(cells.ndim) if axis != self._table.column(attribute))
        self.asked += len(selections)
        return np.asarray(selections, np.int64) @ cells.sum(axis=others)


ATTRIBUTE = "mdvis"
OTHERS = ("disea", "hlthg", "hlthf", "idp", "physlm")
#: Twelve of 59 values: nine of 6,308 to 26 people, and three that are suppressed at s = 4, of 3, 2 and 1.
TARGETS = (0, 1, 2, 3, 4, 5, 10, 15, 20, 40, 48, 69)

# Each attack gets a system, a generator, the positions of the target values and the law of the noise, if theory
# predicts a result. It returns the targets' counts and the number of right ones that theory expects, or None.


def by_differencing(system, rng, targets, law):
    return recover_suppressed(system, rng, ATTRIBUTE, tuple(targets.tolist())).counts, None


def by_repeating(system, rng, targets, law):
    """Each question is asked 100 times (section 2.2), the total 250 times; fresh noise has the variance 2.

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
    """The histogram attack by two-partitions alone, to which the theory applies."""

    def recover(system, rng, targets, law):
        found = recover_histogram(system, rng, ATTRIBUTE, replace(plan, targets=tuple(targets.tolist()), fitted=False))
        return found.counts, expected(law, found.base_kinds, found.kinds[0], len(targets))

    return recover


def expected(law, base, kinds, number):
    return None if law is None else expected_right(law, base, [kinds] * number, [False] * number)


def mean_in_parts(system, rng, attribute, base, k, parts, *, beside=(), where=None):
    """The noise remover with `k` partitions of the base into `parts` sets (section 7.2), `parts` answers each.

    No two questions cover the counted values, so that an audit of two-partitions finds no pair. The variance of the
    mean is parts·Var(E)/k. Values `beside` the base lie in the last set.
    """
    sets = rng.integers(0, parts, (k, len(base)))
    selections = np.zeros((parts, k, len(system.values(attribute))), np.bool_)
    for part in range(parts):
        selections[part][:, base] = sets == part
    selections[-1][:, list(beside)] = True
    answers = system.ask(attribute, selections.reshape(parts * k, -1), where)
    return average([Sums.of(answers.reshape(parts, -1))]).mean


def by_three_partitions(system, rng, targets, law):
    """The histogram attack with three-partitions: k for each target, 2.5·k for the base set."""
    k = 3 * PARTITIONS_PER_VARIANCE  # the variance of three noises instead of two: half as many partitions more
    base = choose_base(system, ATTRIBUTE, 20)
    shown = system.ask(ATTRIBUTE, np.eye(len(system.values(ATTRIBUTE)), dtype=np.bool_)[targets]) > 0

    def people(values, k, beside=()):
        return nearest(mean_in_parts(system, rng, ATTRIBUTE, values, k, 3, beside=beside))

    everybody, counts = people(base, 5 * k // 2), []
    for value, is_shown in zip(targets.tolist(), shown.tolist(), strict=True):
        if value in base:
            count = everybody - people(base[base != value], k)
        elif is_shown:
            count = people(np.append(base, value), k) - everybody
        else:
            count = people(base, k, beside=(value,)) - everybody
        counts.append(max(count, 0))
    return counts, expected(law, ((3, 5 * k // 2),), ((3, k),), len(targets))


def by_splitting(system, rng, targets, law):
    """Split averaging (section 9): everybody is those with a value and those without it, for every value there is.

    It needs "not" but no "or": for each value b of each attribute, (b) + (not b); and for all people without the target
    a, (b and not a) + (not b and not a). The number of sums is that of values with answers above 0.
    """
    everybody = split_count(system, None)
    return [max(everybody - split_count(system, int(value)), 0) for value in targets], None


def split_count(system, without):
    """The count of everybody, or of all people without one value, by splitting at each value of each attribute."""
    known = system.values(ATTRIBUTE)
    rest = {} if without is None else {ATTRIBUTE: tuple(value for i, value in enumerate(known) if i != without)}
    blocks = []
    for name in system.attributes:
        eye = np.eye(len(system.values(name)), dtype=np.bool_)
        if name == ATTRIBUTE:
            kept = np.arange(len(eye)) != (-1 if without is None else without)
            blocks.append(Block(attribute=name, selections=np.vstack([eye[kept], (~eye & kept)[kept]])))
        else:
            one_side = eye[:1] if len(eye) == 2 else eye  # two values make one partition
            blocks.append(Block(attribute=name, selections=np.vstack([one_side, ~one_side]), where=rest))
    return average([Sums.of(answers.reshape(2, -1)) for answers in system.ask_all(blocks)]).count


def by_two_and_five_sets(system, rng, targets, law):
    """The counts behind a noise layer for each value named: the same people are split into 2 sets, and into 5.

    The people with a value in T, split into p sets by the values of another attribute, give p answers. Their sum is
    n(T) + p·s(T) + s(other) and p noises that differ from split to split; s are the layers, which never change. So the
    means for 2 sets and for 5 sets tell n(T) from s(T). A value's count is that of everybody, split likewise, less that
    of the people with all other values; s(other) is in both. More sets are no better, as sets of few values repeat with
    their noise. `k` questions are asked for each mean, 2·k for everybody.
    """
    k, parts = 24 * PARTITIONS_PER_VARIANCE, 5  # the variance of the error is 48 people² / k: one in 2,300 is wrong
    everything, known = np.arange(len(system.values("disea"))), system.values(ATTRIBUTE)

    def mean(where, sets, questions):
        return mean_in_parts(system, rng, "disea", everything, questions // sets, sets, where=where)

    everybody, counts = mean({}, 2, 2 * k), []
    for value in targets.tolist():
        others = {ATTRIBUTE: known[:value] + known[value + 1 :]}
        rest = (parts * mean(others, 2, k) - 2 * mean(others, parts, k)) / (parts - 2)
        counts.append(max(nearest(everybody - rest), 0))
    # If the error is normal; k questions give k/p sums of p noises, whose mean has the variance p²·Var(E)/k.
    variance = (2 + (2 * parts / (parts - 2)) ** 2 * 2) * law.variance / k
    return counts, len(targets) * (1 - 2 * norm.sf(0.5 / np.sqrt(variance)))


def by_cells(system, rng, targets, law):
    """Two-partitions of a private table, whose noise never changes: the count of a value is the sum of two cells."""
    counts, _ = by_two_partitions(Plan(partitions=200))(system, rng, targets, None)
    return counts, len(targets) * noise_removed(law, ((2, 1),))


def geometric(epsilon):
    """The two-sided geometric law of a private table, cut off where its tail is below 10⁻¹⁷."""
    support = np.arange(-round(40 / epsilon), round(40 / epsilon) + 1)
    weights = np.exp(-epsilon * np.abs(support))
    return noise_laws.NoiseLaw(support=tuple(support.tolist()), probabilities=tuple((weights / weights.sum()).tolist()))


@dataclass(frozen=True, kw_only=True)
class Defence:
    """A system, the attack on it and its place in the paper, and the law of the noise if theory predicts a result."""

    system: Callable[..., System]
    attack: str
    recover: Callable[..., tuple]
    law: noise_laws.NoiseLaw | None = None
    targets: tuple[int, ...] = TARGETS


def averaged(kind, law, section):
    """A system of independent noises of one law, which two-partitions average away."""
    attack, system = f"two-partitions (section {section})", simulated(kind, lambda r: law)
    return Defence(system=system, attack=attack, recover=by_two_partitions(Plan()), law=law)


def throttled(cap):
    """A system that answers at most `cap` questions."""
    attack, recover = "fewer two-partitions (section 7)", by_two_partitions(Plan(questions=cap))
    return Defence(system=partial(Capped, cap=cap), attack=attack, recover=recover, law=noise_laws.uniform(2))


def unanswered(kind, section):
    """A system whose noise 200 two-partitions for each value do not average away."""
    attack = f"none known here: two-partitions fail (section {section})"
    return Defence(system=simulated(kind), attack=attack, recover=by_two_partitions(Plan(partitions=200)))


DEFENCES = {
    "counts of at most 4 suppressed, no noise": Defence(
        system=simulated(ExactCounts), attack="differencing: everybody minus all but the value (section 2.2)",
        recover=by_differencing,
    ),
    "fresh noise within ±2 for each question": Defence(
        system=simulated(FreshNoisyCounts), attack="the same question, again and again (section 2.2)",
        recover=by_repeating, law=noise_laws.uniform(2),
    ),
    "the same people get the same noise, ±2 (Algorithm 1)": averaged(BoundedNoisyCounts, noise_laws.uniform(2), "4.2"),
    "the same by keys (as deployed), ±2": averaged(KeyedNoisyCounts, noise_laws.uniform(2), "5.1"),
    "another admissible law: normal within ±2": averaged(
        BoundedNoisyCounts, noise_laws.truncated_normal(2, 1.0), "6"
    ),
    "more noise, ±5": averaged(BoundedNoisyCounts, noise_laws.uniform(5), "6"),
    "more noise, ±10": averaged(BoundedNoisyCounts, noise_laws.uniform(10), "6"),
    "a cap of 500 questions, ±2": throttled(500),
    "a cap of 2,000 questions, ±2": throttled(2000),
    "an audit: at most 50 two-partitions of a set, ±2": Defence(
        system=Audited, attack="three-partitions (section 7.2)", recover=by_three_partitions, law=noise_laws.uniform(2),
        targets=(0, 10, 48),  # the audit compares each question with all earlier ones
    ),
    "no 'or' in questions, ±2": Defence(
        system=SingleValues, attack="split averaging: with a value, and without it (section 9)", recover=by_splitting
    ),
    "totals are sums of published answers, ±2": unanswered(WithoutTotals, "7"),
    "the t-th noise within ±2·√t": unanswered(GrowingNoisyCounts, "6"),
    "one more noise for each value named (layers), ±2": Defence(
        system=simulated(ValueLayeredNoisyCounts),
        attack="into 2 sets and into 5: its layer counts 2 and 5 times (section 9)",
        recover=by_two_and_five_sets, law=noise_laws.uniform(2),
    ),
    "a private table: geometric noise of ε = 1 for each cell, drawn once": Defence(
        system=lambda table, rng: PrivateTable(table, (ATTRIBUTE, "idp"), epsilon=1.0, rng=rng),
        attack="none: every answer is a sum of its cells (Ghosh et al. 2009)", recover=by_cells, law=geometric(1.0),
    ),
}  # fmt: skip


def measure(seeds):
    """The figures of each defence, from attacks on `seeds` systems, and their table.

    `questions`: the mean number of questions a value, with the questions for all values together. `right`: the share of
    counts recovered; `published`: the share of published answers that are right; `predicted`: the share that theory
    expects, or None; `two_partitions`: the share that 200 two-partitions a value recover, or None where a question is
    refused.
    """
    from statsmodels.datasets import randhie

    frame = randhie.load_pandas().data
    people = Table.from_columns({name: frame[name].round().astype(int).tolist() for name in (ATTRIBUTE, *OTHERS)})
    table = results.Table(
        "Defence", "Attack on this defence", "Questions per value", "Right as published", "Right by two-partitions",
        "Right by this attack", "Theory",
    )  # fmt: skip
    rows = []
    for number, (name, defence) in enumerate(DEFENCES.items()):
        streams = np.random.SeedSequence([1, number]).spawn(seeds)
        rows.append(row := {"defence": name} | attacked(defence, people, streams))
        plain = "refused" if row["two_partitions"] is None else f"{row['two_partitions']:.0%}"
        theory = "" if row["predicted"] is None else f"{row['predicted']:.1%}"
        table.add(
            name, defence.attack, f"{row['questions']:,.0f}", f"{row['published']:.0%}", plain, f"{row['right']:.1%}",
            theory,
        )  # fmt: skip
    return rows, table


def attacked(defence, people, streams):
    """The figures of one defence, from a system for each stream of random numbers."""
    targets = people.positions(ATTRIBUTE, defence.targets)
    true = people.histogram(ATTRIBUTE)[targets]

    def right(recover, streams):
        """The mean share of right counts, the questions a value, and the share that theory expects."""
        found = []
        for stream in streams:
            rng = np.random.default_rng(stream)
            system = defence.system(people, rng)
            counts, predicted = recover(system, rng, targets, defence.law)
            found.append((np.sum(np.array(counts) == true), system.asked, np.nan if predicted is None else predicted))
        return np.mean(found, axis=0) / len(true)

    def published(system, rng, targets, law):
        return system.ask(ATTRIBUTE, np.eye(len(people.values[ATTRIBUTE]), dtype=np.bool_)[targets]), None

    share, questions, predicted = right(defence.recover, streams)
    try:
        plain = right(by_two_partitions(Plan(partitions=200)), streams[:2])[0]
    except QuestionRefused:
        plain = None
    return {
        "questions": questions,
        "published": right(published, streams)[0],
        "two_partitions": plain,
        "right": share,
        "predicted": None if np.isnan(predicted) else predicted,
    }


DEFENCES_TEXT = """twelve counts of doctor's visits in the RAND health insurance experiment,
nine of 26 to 6,308 people and three suppressed ones of 1, 2 and 3. By two-partitions: by 200 of them for each value."""


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
    title = "What the attack on TableBuilder claims" if given.goal == "histogram" else "What is claimed of its noise"
    if differencing:
        title = "What differencing claims"
        text += "\nNoise breaks its assumptions. Answers for few values look exact at 1.01 times the counts."
    results.finish(given, title, text, table, rows)


if __name__ == "__main__":
    main()
