"""What every attack keeps to: it sees answers alone, goes on where it was cut, and claims no more than is so."""

import functools
import runpy
import shlex
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from attacking import attack, fill, rows_of
from hypothesis import given
from hypothesis import strategies as st

from dpwitness.cli import main
from dpwitness.reconstruction.report import Finding, finding_json
from running import scaled, soon

SYSTEMS = '''
"""A system for each attack. Its noise is made of the question: an answer is the same whenever it is given."""
import random
import numpy as np

LEFT, REFUSED = {left}, {refused}  # the answers until a quota, and the share of questions that get none
BITS = np.random.default_rng(3).integers(0, 2, 40)
IDS, AGES = [1000 + 7 * i + i % 3 for i in range(40)], [18 + 7 * i * i % 70 for i in range(40)]
COUNTS = [60 + 7 * i for i in range(12)] + [0, 1, 3]
CELLS = np.array([0, 0, 2, 2, 3, 3, 5, 5, 7, 9, 12, 30] * 5)
answered = []

def system(answer):
    def ask(question):
        draw = random.Random(str(question))
        if draw.random() < REFUSED:
            raise LookupError("refused")
        if len(answered) >= LEFT:
            raise PermissionError("quota")
        answered.append(question)
        return answer(question, draw)
    return ask

def holds(part, value):
    if isinstance(part, list):
        return value in part
    if "modulo" in part:
        return value % part["modulo"] in part["remainders"]
    return part.get("at_least", -1e9) <= value < part.get("below", 1e9)

def people(condition):
    return sum(COUNTS[age] for age in condition["age"])

def satisfying(condition):
    of = {{"id": IDS, "age": AGES}}
    return [all(holds(part, of[name][i]) for name, part in condition.items()) for i in range(40)]

bits = system(lambda subset, draw: float(BITS[subset].sum()) + draw.gauss(0, 2))
conditions = system(lambda condition, draw: float(BITS[satisfying(condition)].sum()) + draw.gauss(0, 1.5))
averaging = system(lambda condition, draw: people(condition) + draw.randint(-2, 2) if people(condition) > 4 else 0)
differencing = system(lambda condition, draw: people(condition) if people(condition) > 4 else None)
thresholds = system(lambda signs, draw: bool(signs @ CELLS >= 3.5))
constant = system(lambda question, draw: 13)
noise = system(lambda question, draw: draw.randint(5, 40))
always = system(lambda question, draw: True)
coin = system(lambda question, draw: draw.random() < 0.5)
silent = system(lambda question, draw: None)
huge = system(lambda question, draw: 1e308)
half = system(lambda question, draw: 3.5)
'''
KNOWN = {}
exec(SYSTEMS.format(left=0, refused=0), KNOWN)


class Family(NamedTuple):
    line: str  # the command, without a system
    truth: list[int]
    told: str  # the option that tells the truth
    read: object  # from a question of a file to one of the system
    senseless: tuple[str, ...]  # systems that say nothing


def flags(size, question):
    found = np.zeros(size, bool)
    found[question] = True
    return found


def signs(question):
    found = np.zeros(60, np.int8)
    found[question["plus"]], found[question["minus"]] = 1, -1
    return found


BITS, COUNTS, CELLS = (list(map(int, KNOWN[name])) for name in ("BITS", "COUNTS", "CELLS"))
TABLE = "table_builder --values age=0:14"
FAMILIES = {
    "bits": Family(
        "subset_sum --size 40", BITS, "--data bits.csv", lambda question: flags(40, question), ("constant", "noise")
    ),
    "conditions": Family(
        "subset_sum --conditions people.csv --column sick", BITS, "--data people.csv", dict, ("constant", "noise")
    ),
    "averaging": Family(f"{TABLE} --partitions 150", COUNTS, "--data true.csv", dict, ("constant", "noise")),
    "differencing": Family(f"{TABLE} --recover suppressed", COUNTS, "--data true.csv", dict, ("constant", "noise")),
    "thresholds": Family("threshold_testing --cells 60", CELLS, "--data cells.csv", signs, ("always", "coin")),
}


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """The working directory: systems, and the truth of each family as a file."""
    folder = tmp_path_factory.mktemp("attacks")
    for name, header, rows in (
        ("bits.csv", "bit", zip(BITS, strict=True)),
        ("people.csv", "id,age,sick", zip(KNOWN["IDS"], KNOWN["AGES"], BITS, strict=True)),
        ("true.csv", "age,count", enumerate(COUNTS)),
        ("cells.csv", "count", zip(CELLS, strict=True)),
        ("holes.csv", "age,sex", [(17, "F"), (18, "")]),
    ):
        (folder / name).write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    system(folder)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        yield folder


def system(folder, *, left=10**9, refused=0.0):
    """The file of systems that answer so many questions, and refuse a share of all."""
    name = "mine.py" if left == 10**9 and not refused else f"mine_{left}_{str(refused)[2:]}.py"
    (folder / name).write_text(SYSTEMS.format(left=left, refused=refused))
    return name


def attacked(folder, name, *words, file="mine.py"):
    """The result of an attack by calls."""
    code, found = attack(folder, *FAMILIES[name].line.split(), "--oracle", f"{file}:{name}", *words)
    assert code == 0
    return found


@pytest.fixture(scope="module")
def whole(folder):
    """The results of whole attacks, each made once, with its questions and answers in a file."""
    return functools.cache(lambda name: attacked(folder, name, "--seed", 1, "--ask", f"{name}_kept.csv"))


def finding(result):
    return {key: value for key, value in result.items() if key not in ("seconds", "oracle", "data")}


def check_claims(result, truth):
    """All that is claimed with a probability of more than .9 is right."""
    if result["recovered"] is not None:
        sure, right = np.array(result["probability"]) > 0.9, np.array(result["recovered"]) == truth
        assert right[sure].all()


@pytest.mark.parametrize("name", FAMILIES)
class TestAttackContract:
    def test_it_sees_answers_alone(self, folder, whole, name):
        family, blind = FAMILIES[name], whole(name)
        told = attacked(folder, name, *family.told.split(), "--seed", 1, "--ask", f"{name}_told.csv")
        for key in ("recovered", "probability", "questions", "contradicted", "stopped"):
            assert told[key] == blind[key]
        assert (blind["right"], told["right"]) == (None, np.sum(np.array(told["recovered"]) == family.truth))
        assert told["right"] >= 0.9 * len(family.truth)
        assert 0.7 * len(family.truth) < blind["probably_right"] <= told["right"] + 1
        check_claims(blind, family.truth)

    def test_the_same_answers_give_the_same_finding(self, folder, whole, name):
        asked = whole(name)
        answers = [row["answer"] for row in rows_of(f"{name}_kept.csv")]
        assert (len(answers), answers.count("")) == (asked["questions"], asked["unanswered"])
        code, filed = attack(folder, *FAMILIES[name].line.split(), "--ask", f"{name}_kept.csv")
        assert code == 0
        assert finding(filed) == finding(asked)
        again = attacked(folder, name, "--seed", 1)  # without a file thresholds are asked in smaller rounds
        assert (again["recovered"], again["claimed"]) == (asked["recovered"], asked["claimed"])

    @pytest.mark.parametrize("share", soon([0.5, 0.99, 0.01, 0.1, 0.25, 0.75], 2, most=1))
    def test_it_goes_on_where_it_was_cut(self, folder, whole, capfd, name, share):
        """What the answers until then tell is a result, or too little for one; and nothing is asked again."""
        family, number = FAMILIES[name], int(share * whole(name)["questions"])
        kept, file = folder / f"{name}_{share}.csv", system(folder, left=number)
        line = (*family.line.split(), "--ask", kept, "--retries", 0)
        code, part = attack(folder, *line, "--oracle", f"{file}:{name}", "--seed", 1)
        assert code == (0 if part else 2)
        if whole(name)["questions"] - number >= 10:  # the failures in a row that end the asking
            assert "PermissionError: quota at question" in (part["stopped"] if part else capfd.readouterr().err)
        if part:
            check_claims(part, family.truth)
        assert sum(row["answer"] != "" for row in rows_of(kept)) == number
        assert finding(attack(folder, *line, "--oracle", f"mine.py:{name}")[1]) == finding(whole(name))
        assert len(rows_of(kept)) == whole(name)["questions"]

    def test_a_question_without_an_answer_is_a_gap(self, folder, name):
        found = attacked(folder, name, "--seed", 1, "--retries", 0, file=system(folder, refused=0.03))
        assert found["unanswered"] > 0
        check_claims(found, FAMILIES[name].truth)
        if name == "thresholds":  # each question follows from the answers before it
            assert "LookupError: refused at question" in found["stopped"]
        else:
            assert found["probably_right"] > 0.7 * len(FAMILIES[name].truth)

    def test_a_budget_is_kept(self, folder, whole, capfd, name):
        budget = whole(name)["questions"] // 2
        line = (*FAMILIES[name].line.split(), "--oracle", f"mine.py:{name}", "--seed", 1, "--budget", budget)
        code, found = attack(folder, *line)
        assert code == (0 if found else 2)
        if found is None:
            assert "are too few" in capfd.readouterr().err
            return
        assert 0.6 * budget < found["questions"] <= budget
        check_claims(found, FAMILIES[name].truth)

    def test_of_answers_that_say_nothing_nothing_is_claimed(self, folder, name):
        for senseless in FAMILIES[name].senseless:
            code, found = attack(folder, *FAMILIES[name].line.split(), "--oracle", f"mine.py:{senseless}", "--seed", 1)
            assert code == (0 if found else 2)
            if found:
                assert found["claimed"] == 0
                assert set(found["probability"] or [found["chance"]]) == {found["chance"]}

    @pytest.mark.campaign
    def test_at_least_the_claimed_share_is_right(self, folder, name):
        """Pooled over systems: each seed has other questions, whose answers have other noise."""
        found = [attacked(folder, name, "--seed", seed) for seed in range(2, 2 + scaled(40))]
        chance = found[0]["chance"]
        claims = [
            (p, guess == true)
            for one in found
            for p, guess, true in zip(one["probability"], one["recovered"], FAMILIES[name].truth, strict=True)
            if p > chance
        ]
        p, right = np.array(claims, float).T
        assert len(p) > 0.7 * len(found) * len(FAMILIES[name].truth)
        assert right.sum() >= p.sum() - 4 * np.sqrt((p * (1 - p)).sum())

    def test_its_report_says_what_was_asked_and_its_plot_is_drawn(self, capsys, name):
        line = ["attack", *FAMILIES[name].line.split(), "--oracle", f"mine.py:{name}", "--seed", "1"]
        assert main([*line, "--plot", f"{name}.svg"]) == 0
        text = capsys.readouterr().out
        assert "mine.py:" + name in text
        assert Path(f"{name}.svg").read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize("name", soon(["bits", "conditions", "averaging", "differencing", "thresholds"], 4))
def test_questions_go_out_and_answers_come_in(folder, whole, name):
    """Where another program answers: the same finding as by calls."""
    family, file = FAMILIES[name], folder / f"{name}_asked.csv"
    answer = runpy.run_path("mine.py")[name]
    for _ in range(400):
        code, found = attack(folder, *family.line.split(), "--ask", file, *([] if file.exists() else ["--seed", 1]))
        assert code == 0
        if found is not None:
            break
        fill(file, lambda question, _: float(answer(family.read(question)) or 0))
    assert finding(found) == finding(whole(name))


SIMULATED = (
    *(f"subset_sum --size 24 --error 1 --law {law}" for law in ("uniform", "adversarial", "rounding", "binomial")),
    "subset_sum --size 24 --error 1 --law gaussian", "table_builder --partitions 20 --where hlthp=1",
    "table_builder --data true.csv --system keyed --partitions 20",
    "table_builder --data true.csv --recover suppressed",
    "threshold_testing --epsilon 1 --adaptive", "threshold_testing --epsilon 1 --epsilon2 0.5 --copies 5",
)  # fmt: skip


@pytest.mark.parametrize("line", SIMULATED)
def test_a_simulated_system_is_attacked_alike_by_the_same_seed(folder, line):
    (code, found), (_, again) = (attack(folder, *line.split(), "--seed", 5) for _ in range(2))
    assert (code, found["seed"]) == (0, 5)
    assert finding(found) == finding(again)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("subset_sum --size 25 --adversary exponential", "size=25 must be a whole number from 1 to 24"),
        ("subset_sum --size 5000", "size=5000 must be a whole number from 1 to 4096"),
        ("subset_sum --error -1", "error=-1.0"),
        ("subset_sum --law binomial --error 1e200", "error=1e+200"),
        ("subset_sum --size 8 --adversary exponential --law binomial", "a bound of the errors"),
        ("subset_sum --budget 9", "--budget is of an attack on your own system"),
        ("subset_sum --column x", "--data FILE.csv"),
        ("subset_sum --data true.csv --column count", "bits, 0 or 1, and not 60"),
        ("subset_sum --oracle mine.py:bits", "--size is needed"),
        ("subset_sum --oracle mine.py:silent --size 8", "None for question 1, ["),
        ("subset_sum --oracle mine.py:bits --size 40 --queries 20", "30 questions are too few"),
        ("subset_sum --oracle mine.py:bits --size 8 --error 3", "--error is of a simulated system"),
        ("subset_sum --oracle mine.py:bits --size 8 --adversary exponential", "--error"),
        ("subset_sum --oracle mine.py:bits --size 10 --adversary exponential --error 0 --budget 9", "1024 questions"),
        ("subset_sum --conditions people.csv", "give --oracle, or --ask FILE, too"),
        ("subset_sum --conditions people.csv --ask q.csv --adversary exponential --error 1", "leave out --conditions"),
        ("subset_sum --allow range --ask q.csv --size 8", "give --conditions FILE.csv too"),
        ("table_builder --data true.csv --perturbation 0", "r=0"),
        ("table_builder --data true.csv --perturbation 5 --suppression 4", "suppression s=4"),
        ("table_builder --data true.csv --where age", "NAME=VALUE"),
        ("table_builder --data true.csv --noise maximum-entropy --scale 1e308", "variance=inf"),
        ("table_builder --data true.csv --sums 5", "--sums"),
        ("table_builder --data true.csv --max-time 0.001ms", "--max-time 1e-06 is over"),
        ("table_builder --data holes.csv", "line 3: the value of 'sex' is missing"),
        ("table_builder --oracle mine.py:half", "which values to ask for"),
        ("table_builder --oracle mine.py:half --values age=1:3", "3.5 for question 1"),
        ("table_builder --oracle mine.py:averaging --values age=3,3", "different values"),
        ("table_builder --oracle mine.py:averaging --values age=1:1e9", "age=1:1e9"),
        ("table_builder --ask q.csv --values zip=02138:02140", "zip=02138:02140"),
        (f"{TABLE} --oracle mine.py:averaging --value 99", "--value 99"),
        (f"{TABLE} --oracle mine.py:averaging --where job=1", "'job'"),
        (f"{TABLE} --values sex=F,M --oracle mine.py:averaging --where sex=X", "--where sex=X"),
        (f"{TABLE} --oracle mine.py:averaging --system keyed", "--system"),
        (f"{TABLE} --oracle mine.py:averaging --budget 30", "questions=30"),
        ("table_builder --oracle mine.py:averaging --values age=91,92 --data true.csv", "91, 92; it has 0, 1, 2"),
        ("threshold_testing", "--epsilon is needed"),
        ("threshold_testing --epsilon 0", "--epsilon 0"),
        ("threshold_testing --epsilon 1 --cells 4", "--cells is of an attack on your own system"),
        ("threshold_testing --epsilon 1 --support 4", "support=4"),
        ("threshold_testing --epsilon 1 --adaptive --copies 3", "--copies"),
        ("threshold_testing --epsilon 1 --adaptive --epsilon2 1e-9", "epsilon2=1e-09"),
        ("threshold_testing --ask q.csv", "--cells is needed"),
        ("threshold_testing --ask q.csv --cells 4 --epsilon 1", "--epsilon describes a simulated system"),
        ("threshold_testing --ask q.csv --cells 4 --epsilon2 1e-3", "1,000,000 questions"),
        ("threshold_testing --ask q.csv --cells 1e13", "--cells=10000000000000"),
    ],
)
def test_bad_input_is_one_line_that_names_it(capsys, line, named):
    assert main(["attack", *shlex.split(line)]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert named in printed.err
    assert not {"q.csv"} & {path.name for path in Path().iterdir()}


@pytest.mark.parametrize(
    ("line", "text", "named"),
    [
        ("threshold_testing --epsilon 1 --data bad.csv", "count\n3\n-1\n", "cell 2 holds -1"),
        ("threshold_testing --epsilon 1 --data bad.csv", "count\n3\n1.5\n", "cell 2 holds 1.5"),
        ("threshold_testing --epsilon 1 --data bad.csv", "cell,count\n1,3\n2,\n", "line 3"),
        ("threshold_testing --epsilon 1 --data bad.csv", "", "is empty"),
        ("threshold_testing --epsilon 1 --data bad.csv", "count\n7\n", "at least 2 cells"),
        ("subset_sum --conditions bad.csv --ask q.csv", "id,id\n1,2\n", "a name of its own"),
        ("subset_sum --conditions bad.csv --ask q.csv", "id,age\n1\n", "line 2"),
        ("subset_sum --conditions bad.csv --ask q.csv", "id,age\n1,\n", "line 2: the value of 'age' is missing"),
        ("subset_sum --conditions bad.csv --ask q.csv", "id\n", "no people"),
        ("subset_sum --conditions bad.csv --ask q.csv", "id\n7\n7\n7\n", "tells people apart"),
        ("subset_sum --conditions bad.csv --ask q.csv --column id", "id\n1\n2\n3\n", "no column but 'id'"),
    ],
)
def test_a_bad_file_is_one_line_that_names_the_place(capsys, line, text, named):
    Path("bad.csv").write_text(text)
    test_bad_input_is_one_line_that_names_it(capsys, line, named)


probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(probabilities, st.floats(0, 1), st.booleans())
def test_nothing_is_claimed_below_chance_nor_where_answers_contradict_an_assumption(given, chance, contradicted):
    why = ("the answers are no sums of bits",) if contradicted else ()
    guess = np.arange(len(given))
    found = Finding(guess=guess, probability=np.array(given), chance=chance, contradicted=why)
    assert found.probability.tolist() == [chance if contradicted else max(one, chance) for one in given]
    assert found.claimed.tolist() == [not contradicted and one > chance for one in given]
    written = finding_json(found, guess)
    assert (written["claimed"], written["right"]) == (found.claimed.sum(), len(given))
    assert written["probably_right"] == pytest.approx(sum(written["probability"]))
    assert set(written) == set(finding_json(None))
