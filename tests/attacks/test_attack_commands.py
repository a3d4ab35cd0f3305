"""`dpwitness attack`: what is of one family's command alone; what all of them keep to is in test_attack_contract.py."""

import json

import numpy as np
import pytest
from attacking import attack, rows_of
from statsmodels.datasets import randhie

from dpwitness.cli import main
from dpwitness.reconstruction.table_builder.tables import read_table
from dpwitness.reconstruction.threshold_testing.command import visits

BITS = np.random.default_rng(3).integers(0, 2, 40)
VALUES = "--values age=20,21,22,23,24,25,26,27,28,29,30,31,40,41,42 --values sex=F,M"
COUNTS = [6 + 4 * (age % 7) for age in range(20, 32)] + [2, 1, 0]
SYSTEMS = '''
"""Systems for each family; people of either sex have each age equally often, and the last is of nobody."""
import random
import numpy as np

BITS = np.random.default_rng(3).integers(0, 2, 40)
AGES = [*range(20, 32), 40, 41, 42]
PEOPLE = {(age, sex): 3 + 2 * (age % 7) for age in range(20, 32) for sex in "FM"}
PEOPLE |= {(40, "F"): 1, (40, "M"): 1, (41, "F"): 1}

def normal(rng):
    return lambda subset: subset @ BITS + rng.normal(0, 2)
def bounded(rng):
    return lambda subset: subset @ BITS + rng.uniform(-12, 12)
def first_ten(subset):
    return int(subset[:10] @ BITS[:10])
def first_three(subset):
    return None if subset.sum() == 2 else int(subset[:3].sum())
def counts(condition):
    sexes = condition.pop("sex", "FM")  # a question is a copy
    cells = [(age, sex) for age in condition.pop("age", AGES) for sex in sexes if (age, sex) in PEOPLE]
    people = sum(map(PEOPLE.get, cells))
    return people + random.Random(str(cells)).randint(-2, 2) if people > 4 else 0  # the same people, the same noise
def rounded(condition):
    return round(sum(40 + 13 * (value % 7) for value in condition["age"]), -1) or None
def never(signs):
    return signs[0] >= 0
def ladder(rng):
    z, counts = 3 + rng.laplace(), np.arange(24).repeat(2)
    return lambda signs: signs @ counts >= z
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SYSTEMS)
    rows = (f"{age},F,{n}" for age, n in zip([*range(20, 32), 40, 41, 42], COUNTS, strict=True))
    (tmp_path / "true.csv").write_text("\n".join(["age,sex,count", *rows]))
    return tmp_path


def result(folder, line, *more):
    code, found = attack(folder, *line.split(), *more)
    assert code == 0
    return found


def by_calls(folder, family, name, line="", *more):
    return result(folder, f"{family} --oracle mine.py:{name} --seed 1 {line}", *more)


@pytest.mark.campaign
def test_an_adversary_is_least_squares_unless_named(folder):
    normal = by_calls(folder, "subset_sum", "normal", "--size 40")
    assert (normal["adversary"], normal["recovered"]) == ("least-squares", BITS.tolist())
    assert normal["probably_right"] > 39
    program = by_calls(folder, "subset_sum", "bounded", "--size 40 --adversary polynomial")
    assert program["adversary"] == "polynomial"
    assert 20 <= program["probably_right"] <= np.sum(program["recovered"] == BITS)


def test_all_subsets(folder):
    found = by_calls(folder, "subset_sum", "first_ten", "--size 10 --adversary exponential --error 0")
    assert found["recovered"] == BITS[:10].tolist()
    assert (found["questions"], found["probably_right"]) == (1024, 10)
    found = by_calls(folder, "subset_sum", "first_three", "--size 8 --adversary exponential --error 0")
    assert found["recovered"] == [1, 1, 1, 0, 0, 0, 0, 0]
    assert (found["unanswered"], found["probably_right"]) == (28, 4)  # Theorem 2 takes the answers to all subsets
    found = result(folder, "subset_sum --size 10 --error 0.25 --adversary exponential")
    assert (found["queries"], found["right"]) == (1024, 10)  # 4·E = 1, and parity cannot hide one bit


@pytest.mark.parametrize("system", ["bounded", "keyed"])
def test_a_histogram_is_recovered(folder, system):
    # Sixteen values, each wrong with probability 4e-4 (equation 5, r = 2, k = 200).
    counts = [40 + 7 * i for i in range(12)] + [0, 1, 3, 9]
    (folder / "ages.csv").write_text("age,count\n" + "".join(f"{i},{n}\n" for i, n in enumerate(counts)))
    line = "table_builder --data ages.csv --seed 1"
    found = result(folder, f"{line} --system {system} --partitions 200")
    assert found["recovered"] == found["true"] == counts
    assert found["right"] == 16
    assert found["published"][-4:-1] == [0, 0, 0]
    assert (found["partitions"], found["base_partitions"]) == (200, 500)
    assert found["queries"] == 16 + 2 * 500 + 16 * 400
    assert found["probably_right"] == pytest.approx(sum(found["probability"]))
    assert found["probably_right"] > 15.9
    for law in ("maximum-entropy", "normal"):  # less noise than uniform
        assert result(folder, f"{line} --noise {law} --scale 0.9")["right"] == 16
    found = result(folder, "table_builder --recover suppressed --data ages.csv --seed 1")
    assert (found["recovered"], found["claimed"]) == (counts, 16)


def test_embedded_data_and_a_sub_population(folder):
    found = result(folder, "table_builder --where hlthp=1 --partitions 20 --seed 2")
    assert (found["attribute"], found["where"]) == ("mdvis", {"hlthp": [1]})
    assert sum(found["true"]) == 302  # people in poor health in randhie


@pytest.mark.campaign
def test_the_parameter_of_a_simulated_system(folder):
    # Proposition 2: 200 sums fail with probability 2e-6 at r = 3.
    line = "table_builder --recover perturbation --seed 1"
    for system, largest in (("--perturbation 3", 3), ("--system bounded", 2), ("--system exact", 0)):
        found = result(folder, f"{line} {system}")
        assert (found["recovered"], found["right"], found["sums"]) == ([largest], 1, 200)


def test_the_parameter_of_ones_own_system(folder):
    found = by_calls(folder, "table_builder", "counts", f"{VALUES} --recover perturbation --sums 2000")
    assert (found["recovered"], found["right"]) == ([2], None)
    assert 500 < found["sums"] < 2000  # as many as the sets of a few values give
    assert found["larger_excluded"] == pytest.approx(1 - (1 - 20 / 7**3) ** found["sums"])
    assert 0.5 < found["probability"][0] <= 1
    few = by_calls(folder, "table_builder", "counts", f"{VALUES} --recover perturbation --budget 20")
    assert few["questions"] <= 20
    assert few["sums"] <= 6
    alone = by_calls(folder, "table_builder", "counts", "--recover perturbation --values age=20:31")
    assert (alone["recovered"], alone["sums"]) == ([2], 200)


@pytest.mark.campaign
def test_the_truth_is_found_by_value(folder):
    line = "--data true.csv --partitions 200 --values age="
    backwards = ",".join(map(str, [*range(31, 19, -1), 99]))  # in an order of its own, and one that nobody has
    found = by_calls(folder, "table_builder", "counts", line + backwards)
    assert found["true"] == found["recovered"] == [*COUNTS[11::-1], 0]
    assert by_calls(folder, "table_builder", "counts", f"{line}20,28,25 --value 28")["true"] == [COUNTS[8]]


def test_a_sub_population_counts_where_values_are_few(folder):
    """Of two values there is one two-partition; but the counts of another attribute's values add up to theirs."""
    found = by_calls(folder, "table_builder", "counts", f"{VALUES} --column sex")
    assert (found["recovered"], found["claimed"]) == (found["published"], 0)
    women = by_calls(folder, "table_builder", "counts", f"{VALUES} --column age --where sex=F")
    assert sum(women["recovered"]) == sum(COUNTS[:12]) // 2 + 2
    within = by_calls(folder, "table_builder", "counts", f"{VALUES} --where sex=F --where sex=M --value 42")
    assert (within["recovered"], within["values"]) == ([0], [42])


@pytest.mark.parametrize("recover", ["histogram", "perturbation"])
def test_a_claim_that_is_withheld_is_said(folder, capsys, recover):
    line = f"attack table_builder --oracle mine.py:rounded --values age=1:16 --seed 1 --recover {recover}"
    assert main(line.split()) == 0
    text = capsys.readouterr().out
    assert text.startswith("NOTHING CLAIMED")
    assert recover == "perturbation" or "multiples of 10" in text


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("02138,02139", ["02138", "02139"]),
        ("02138,2138", ["02138", "2138"]),
        ("10,1_0,1e1", ["10", "1_0", "1e1"]),
        ("2138,10", [2138, 10]),
        ("1.50,2", [1.5, 2.0]),
        ("9:11", [9, 10, 11]),
    ],
)
def test_values_are_typed_as_a_column(folder, given, asked):
    """A list, and a column of --data: the system is asked for what stands there."""
    texts = ["9", "10", "11"] if given == "9:11" else given.split(",")
    (folder / "people.csv").write_text("\n".join(["zip", *texts]))
    assert result(folder, f"table_builder --ask q.csv --values zip={given}") is None
    (values,) = json.loads(rows_of("q.csv")[0]["attack"])["values"].values()
    assert (values, [*map(type, values)]) == (asked, [*map(type, asked)])
    column = read_table("people.csv").values["zip"]
    assert (list(column), [*map(type, column)]) == (sorted(asked), [*map(type, asked)])


@pytest.mark.campaign
def test_check_takes_a_claim_where_there_is_no_epsilon(capsys):
    assert main(["check", "bounded_noisy_counts", "--claim", "1", "--seed", "1", "--json", "--quiet"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "violated"
    for more, named in ((), "epsilon="), (("--claim", "1", "--set", "perturbation=9"), "perturbation"):
        assert main(["check", "bounded_noisy_counts", *more]) == 2
        assert named in capsys.readouterr().err


def test_thresholds_of_an_embedded_histogram(folder):
    visitors = randhie.load_pandas().data["mdvis"]
    assert (visits().sum(), visits()[0]) == (len(visitors), (visitors == 0).sum())
    found = result(folder, "threshold_testing --epsilon 1 --seed 1")
    assert found["cells"] == len(visits()) == 78
    assert 0 < found["right"] < 78
    assert (found["method"], found["epsilon1"], found["epsilon2"]) == ("partition and totals", 0.5, None)
    found = result(folder, "threshold_testing --epsilon 1 --adaptive --seed 1")
    assert (found["method"], found["epsilon1"], found["claimed_right"]) == ("weighing", 1.0, found["claimed"])
    found = result(folder, "threshold_testing --epsilon 1 --epsilon2 0.5 --copies 5 --seed 3")
    assert (found["epsilon2"], found["copies"]) == (0.5, 5)


def test_a_plot_costs_no_result_where_the_attack_was_stopped(folder, capsys):
    line = "threshold_testing --cells 40 --oracle mine.py:never --budget 5 --plot plot.svg"
    assert result(folder, line)["stopped"] is not None
    assert "no plot" in capsys.readouterr().err
    assert not (folder / "plot.svg").exists()


def test_the_support_known(folder, capsys):
    (folder / "counts.csv").write_text("".join(f"{line}\n" for line in ("count", *range(25), 3, 3, 90)))
    line = "threshold_testing --epsilon 2 --support 20 --seed 6"
    found = result(folder, f"{line} --data counts.csv")
    assert (found["epsilon1"], found["support"], found["claimed_right"]) == (2, 20, found["claimed"])
    assert found["claimed"] > 0
    # Of visits to a doctor, where not every count up to 20 occurs, nothing is claimed.
    assert result(folder, line)["claimed"] == 0
    line = "attack threshold_testing --oracle mine.py:ladder --cells 48 --support 23 --epsilon1 1 --seed 1"
    assert main(line.split()) == 0
    assert "if every count up to 23 occurs and ε₁ is right" in capsys.readouterr().out
