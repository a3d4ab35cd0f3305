"""What is inferred of one person: each attack finds the bit where it may, and claims nothing false where it may not."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

from dpwitness.reconstruction.table_builder.noise_laws import truncated_normal, uniform
from dpwitness.reconstruction.table_builder.systems import BoundedNoisyCounts, FreshNoisyCounts
from dpwitness.reconstruction.table_builder.tables import Table
from running import with_all_seeds

FOLDER = Path(__file__).resolve().parents[2]
BENCHMARK = runpy.run_path(str(FOLDER / "benchmarks" / "table_builder_persons.py"))
Group, Layers = BENCHMARK["Group"], BENCHMARK["StaticAndDynamicCounts"]
LAW = truncated_normal(4, 1.0)
NUMBER, RUNS = 24, 40
MANY = [Group(where={f"group{i}": (1,)}, attribute=f"mark{i}", value=9) for i in range(NUMBER)]
GROUPS = MANY[:8]
UNUSED = tuple(range(50, 61))


def table(bit, *, others=None, twin=None):
    """300 people; the first is in all groups and alone has each mark. `twin`: the bit of another such person."""
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 2, 300) if others is None else np.full(300, others)
    bits[0] = bit
    columns = {f"group{i}": rng.integers(0, 2, 300) for i in range(NUMBER)}
    columns |= {f"mark{i}": rng.integers(0, 5, 300) for i in range(NUMBER)}
    for name, column in columns.items():
        column[: 1 if twin is None else 2] = 9 if name.startswith("mark") else 1
    if twin is not None:
        bits[1] = twin
    columns |= {"affair": bits, "age": rng.integers(20, 30, 300)}
    people = Table.from_columns({name: column.tolist() for name, column in columns.items()})
    codes = people.codes.copy()
    codes[:, -1] = np.array(people.values["age"])[codes[:, -1]]
    values = {**people.values, "affair": (0, 1), "age": tuple(range(100))}
    codes[:, -2] = np.array(people.values["affair"])[codes[:, -2]]
    return Table(values, codes, people.counts)


def system(kind, people, seed):
    law = LAW if kind is Layers else uniform(2)
    return kind(people, noise=law, suppression=4, rng=np.random.default_rng(seed))


def differential(asked):
    return BENCHMARK["differential"](asked, MANY, LAW.variance)


def cloning(asked):
    return BENCHMARK["cloning"](asked, GROUPS, UNUSED)


def background(asked):
    return BENCHMARK["difference_by_background"](asked, GROUPS)


def claims(attack, kind, people):
    return [attack(system(kind, people, seed)) for seed in range(RUNS)]


def test_layers_are_two_for_each_condition():
    people, where = table(0), {"group1": (1,), "group2": (1,)}
    selection = np.array([[True, False]])
    true = people.histogram("affair", where)[0]
    runs = 400
    noise = [system(Layers, people, seed).ask("affair", selection, where)[0] - true for seed in range(runs)]
    ratio = np.square(noise).sum() / (3 * 2 * LAW.variance)
    assert chi2.ppf(1e-6, runs) < ratio < chi2.isf(1e-6, runs)


def test_layers_cancel_between_questions_of_the_same_people():
    asked = system(Layers, table(0), 1)
    kept = np.array([[value != dummy for value in range(100)] for dummy in UNUSED])
    where = {"group1": (1,), "affair": (1,)}  # the target is not among them
    rest = {**where, "mark1": tuple(value for value in asked.values("mark1") if value != 9)}
    apart = asked.ask("age", kept, where) - asked.ask("age", kept, rest)
    assert np.ptp(apart) == 0
    assert np.ptp(asked.ask("age", kept, where)) > 0
    assert np.array_equal(asked.ask("age", kept, where), asked.ask("age", kept, where))


@pytest.mark.parametrize("bit", [0, 1])
def test_cloning_finds_the_bit_of_a_person(bit):
    assert claims(cloning, Layers, table(bit)) == [bit] * RUNS  # wrong once in 10⁵ times


@pytest.mark.parametrize("bit", [0, 1])
def test_cloning_holds_with_others_of_the_same_bit(bit):
    assert claims(cloning, Layers, table(bit, twin=bit)) == [bit] * RUNS


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("kind", "people"),
    [(Layers, table(0, twin=1)), (BoundedNoisyCounts, table(0)), (FreshNoisyCounts, table(0))],
    ids=["two bits", "no layers", "fresh noise"],
)
def test_cloning_claims_nothing_of_others_and_other_systems(kind, people):
    assert claims(cloning, kind, people) == [None] * RUNS


def share_claimed():
    """Of people singled out by 24 groups, where all layers are normal: two shared layers, the added one on one side."""
    rng, v, draws = np.random.default_rng(0), LAW.variance, 20_000
    same = norm(0, np.sqrt(2 * v))
    apart = norm(1, np.sqrt(6 * v))
    ratio = {side: np.zeros(draws) for side in (same, apart)}
    for side, total in ratio.items():
        drawn = side.rvs((NUMBER, draws), random_state=rng)
        total += (apart.logpdf(drawn) - same.logpdf(drawn)).sum(axis=0)
    return np.mean(ratio[apart] > np.log(19)) * np.mean(ratio[same] < -np.log(19))


@pytest.mark.campaign
@pytest.mark.parametrize("bit", [0, 1])
def test_the_differential_attack_claims_what_theory_says(bit):
    found = claims(differential, Layers, table(bit))
    p = share_claimed()
    assert 0.6 < p < 0.95
    assert binom.ppf(1e-9, RUNS, p - 0.05) <= found.count(bit)  # layers are whole numbers, not normal
    assert found.count(1 - bit) <= binom.isf(1e-9, RUNS, 1 / 19**2)


@pytest.mark.campaign
def test_the_differential_attack_claims_little_where_the_answers_say_nothing():
    # Two people with the same values and both bits: the answers differ for both.
    found = claims(differential, Layers, table(0, twin=1))
    assert RUNS - found.count(None) <= binom.isf(1e-9, RUNS, 2 / 19)


@pytest.mark.parametrize("bit", [0, 1])
def test_background_knowledge_finds_the_bit(bit):
    found = claims(background, BoundedNoisyCounts, table(bit, others=0))
    assert found.count(1 - bit) <= binom.isf(1e-9, RUNS, 0.16 ** len(GROUPS))
    assert found.count(None) == 0


@pytest.mark.campaign
def test_background_knowledge_claims_nothing_if_it_is_wrong_or_noise_is_fresh():
    people = table(0, others=0)
    wrong = table(0)  # half of the others have the other bit
    for kind, given in ((FreshNoisyCounts, people), (BoundedNoisyCounts, wrong), (Layers, people)):
        assert claims(background, kind, given) == [None] * RUNS  # once in 0.2⁸ = 2.6·10⁻⁶ times


def test_too_few_groups_claim_nothing():
    asked = system(BoundedNoisyCounts, table(1, others=0), 0)
    assert BENCHMARK["difference_by_background"](asked, GROUPS[:3]) is None


def test_each_row_is_a_line():
    rows = BENCHMARK["measure"](1, runs=1, targets=2, pool=1, rows=BENCHMARK["ROWS"][:1])
    lines = BENCHMARK["markdown"](rows).splitlines()
    assert len(lines) == 3
    assert all(line.count("|") == 7 for line in lines)


@pytest.mark.campaign
@with_all_seeds
def test_the_table_of_persons_is_as_documented():
    rows = BENCHMARK["measure"](1)
    assert BENCHMARK["markdown"](rows) in (FOLDER / "docs" / "attacks.md").read_text()
    assert all(row["claimed"] > 0.45 and row["right"] > 0.95 for row in rows if row["holds"])
