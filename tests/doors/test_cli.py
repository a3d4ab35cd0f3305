"""Commands as a user types them: what they print, refuse and save."""

import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_lines import refusal, run

import dpwitness as dpw
from conftest import without_processes
from dpwitness.cli.values import settings
from dpwitness.neighbours import relation

MINE = '''
import numpy as np


def noisy_sum(rng, data, epsilon):
    """Sum of bounded values with noise."""
    return data.sum() + rng.laplace(0.0, 1.0 / epsilon)


def breaks(rng, data):
    raise ValueError("no luck")


def unknown(rng, data):
    return object()
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_claim_is_read_before_the_users_code_is_loaded(mine, capsys):
    (mine / "late.py").write_text("from pathlib import Path\n\nPath('loaded').touch()\n" + MINE)
    check = ("check", "late.py:noisy_sum", "--epsilon", 1, "--pair", "[1]", "[2]")
    assert "claim='foo'" in refusal(capsys, *check, "--claim", "foo")
    assert not (mine / "loaded").exists()


def test_list(capsys):
    assert run(capsys, "list")[0] == 0
    code, out, _ = run(capsys, "list", "--json")
    assert code == 0
    assert {"laplace_mechanism", "histogram", "svt", "isvt1", "isvt3"} <= {row["name"] for row in json.loads(out)}


def test_check_convicts_with_exit_code_1(capsys, tmp_path):
    saved = tmp_path / "result.json"
    code, out, err = run(capsys, "check", "isvt1", "--epsilon", 0.7, "--seed", 1, "--runs", "5e4", "--save", saved)
    assert (code, err) == (1, "")
    assert out.startswith("VIOLATED: isvt1(")
    assert "reproduce: dpwitness check isvt1" in out
    assert run(capsys, "replay", saved, "--seed", 2, "--runs", "5e4")[0] == 1
    assert json.loads(saved.read_text())["verdict"] == "violated"


@pytest.mark.campaign
def test_the_printed_command_reproduces_the_counts(capsys):
    _, first, _ = run(capsys, "check", "isvt3", "--epsilon", 0.7, "--set", "threshold=1.5")
    command = re.search(r"reproduce: dpwitness (.*)", first).group(1).split()
    _, second, _ = run(capsys, *command)
    pattern = r"on D′? +(.*)"
    assert re.findall(pattern, first) == re.findall(pattern, second)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[0, 1]", [0, 1]), ("(0, 1.5)", (0, 1.5)), ("((0, 1), 'a')", ((0, 1), "a")), ("False", False),
        ("false", False), ("None", None), ("(not Python)", "(not Python)"), ("(" * 100_000, "(" * 100_000),
        ("2020-01-02", "2020-01-02"),
    ],
)  # fmt: skip
def test_a_parameter_is_json_or_as_in_python_or_text(text, value):
    (read,) = settings([f"name={text}"]).values()
    assert read == value
    assert type(read) is type(value)


def test_the_command_that_repeats_a_check_is_the_given_one_with_its_seed(capsys):
    given = ["check", "laplace_mechanism", "--epsilon", "1", "--runs", "2000", "--set", "sensitivity=1.0"]
    _, out, _ = run(capsys, *given)
    assert re.search(rf"  reproduce: dpwitness {shlex.join(given)} --seed \d+$", out)
    _, out, _ = run(capsys, *given, "--seed", 0)
    assert out.endswith(f"  reproduce: dpwitness {shlex.join(given)} --seed 0\n")


@pytest.mark.campaign
def test_what_last_bits_show_decides_the_exit_code_only_where_asked_for(capsys, tmp_path):
    few = ("check", "laplace_mechanism", "--epsilon", 1, "--seed", 1, "--runs", "2e4")
    saved = tmp_path / "result.json"
    code, out, _ = run(capsys, *few, "--save", saved)
    assert code == 0
    assert "  floating point: refuted; all digits of one output can tell D from D′" in out
    assert run(capsys, "replay", saved)[0] == 1  # its one witness
    code, out, _ = run(capsys, *few, "--bits", "strict")
    assert code == 1
    code, out, _ = run(capsys, *few, "--bits", "off")
    assert code == 0
    assert "floating point" not in out


@pytest.mark.campaign
def test_a_users_own_function(capsys, mine):
    common = ("check", "mine.py:noisy_sum", "--runs", "1e5", "--seed", 1)
    assert run(capsys, *common, "--epsilon", 1, "--pair", "[1, 1]", "[2, 1]")[0] == 0
    code, out, _ = run(capsys, *common, "--epsilon", 1, "--pair", "[1, 1]", "[2, 1]", "--pair", "[1, 1]", "[3, 1]")
    assert code == 1
    assert "[3, 1]" in out
    assert run(capsys, *common, "--epsilon", 1, "--queries", 3)[0] == 1
    assert run(capsys, *common, "--epsilon", 1, "--queries", 3, "--may-move", "one")[0] == 0
    Path("counts.csv").write_text("count\n4\n0\n7\n")
    code, _, err = run(capsys, *common, "--epsilon", 1, "--data", "counts.csv")
    assert code == 0
    assert "as a histogram" in err


@pytest.mark.campaign
def test_replay_shows_what_the_witness_says_and_what_is_tested(capsys, tmp_path):
    saved = tmp_path / "result.json"
    run(capsys, "check", "isvt1", "--epsilon", 0.7, "--seed", 1, "--runs", "5e4", "--save", saved)
    _, out, _ = run(capsys, "replay", saved, "--runs", "5e4")
    assert out.startswith("witness of isvt1(epsilon=0.7, threshold=0.5, sensitivity=1): claim ε = 0.7, α = 1e-06\n")
    assert "  relation     queries(10, any_length=True)\nVIOLATED" in out
    more = ("--claim", 8, "--delta", 0.1, "--alpha", 0.01, "--queries", 10, "--runs", "5e4")
    code, out, _ = run(capsys, "replay", saved, *more)
    assert code == 0
    assert "  replayed at  claim (ε = 8, δ = 0.1), α = 0.01\n  replayed in  queries(10)\nNOT REFUTED" in out


@pytest.fixture(scope="module")
def refuted(tmp_path_factory):
    """The file of a violation of isvt1 by ten answers."""
    saved = tmp_path_factory.mktemp("saved") / "result.json"
    pair = dpw.pairs(([0.0] * 10, [1.0] + [-1.0] * 9))
    with without_processes():
        found = dpw.check("isvt1", epsilon=0.7, neighbours=pair, seed=1, runs=50_000, search_runs=5_000)
    saved.write_text(json.dumps(found.to_json()))
    return saved


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--queries 9", "is not one that queries(9) calls neighbouring"),
        ("--queries 10 --direction up", "is not one that queries(10, direction='up') calls neighbouring"),
        ("--seed 1", "seed=1 made this witness"),
        ("--python /nonexistent", "--python needs --mechanism TARGET"),
        ("--command ''", "must be a program and its arguments"),
    ],
)
def test_what_a_replay_refuses(capsys, refuted, options, message):
    assert message in refusal(capsys, "replay", refuted, *shlex.split(options))


def test_answers_of_a_file_are_as_many_as_the_queries(capsys, mine):
    (mine / "three.csv").write_text("1\n2\n3\n")
    check = ("check", "svt", "--epsilon", 1, "--data", "three.csv", "--runs", 1000)
    assert "--queries 5 differs from --data, which has 3 numbers" in refusal(capsys, *check, "--queries", 5)
    assert json.loads(run(capsys, *check, "--direction", "up", "--json")[1])["witness"]["relation"]["length"] == 3


def test_replay_of_a_users_own_function_asks_for_it(capsys, mine, violation_of_mine):
    (mine / "w.json").write_text(json.dumps(violation_of_mine))
    assert "its code is not run unless you name it" in refusal(capsys, "replay", "w.json")
    assert run(capsys, "replay", "w.json", "--mechanism", "mine.py:noisy_sum", "--runs", 20_000)[0] == 1


KINDS = """
from dpwitness.neighbours import Relation, register_relation


class Near(Relation):
    def candidates(self, data=None, *, centre=0.0, scale=1.0):
        return iter(())

    def contains(self, pair, data=None):
        return True

    def to_json(self):
        return {"kind": "near by mine"}


register_relation("near by mine", lambda value: Near())
"""


@pytest.fixture(scope="module")
def violation_of_mine():
    """A violation of `mine.py:noisy_sum`, as JSON."""
    names = {}
    exec(MINE, names)
    pair = {"neighbours": [([0.0], [5.0])], "reference": "mine.py:noisy_sum"}
    with without_processes():
        return dpw.check(names["noisy_sum"], epsilon=1.0, outcome=float, runs=5_000, seed=1, **pair).to_json()


@pytest.fixture
def own_kinds(violation_of_mine, mine, monkeypatch):
    """A result of `mine.py:noisy_sum` whose relation `kinds.py` registers; `both.py` has all of it."""
    monkeypatch.setattr(relation, "_RELATION_READERS", dict(relation._RELATION_READERS))
    (mine / "kinds.py").write_text(KINDS)
    (mine / "both.py").write_text(MINE + KINDS)
    value = {"witness": violation_of_mine["witness"] | {"relation": {"kind": "near by mine"}}}
    (mine / "own.json").write_text(json.dumps(violation_of_mine | value))
    return mine


UNKNOWN = r"kind 'near by mine' is unknown: import the module that registers it by register_.* --import MODULE"


@pytest.mark.parametrize("given", [("both.py:noisy_sum",), ("mine.py:noisy_sum", "--import", "kinds.py")])
def test_a_witness_of_own_kinds_is_replayed_once_their_module_is_imported(capsys, own_kinds, given):
    replay = ("replay", "own.json", "--runs", 20_000, "--mechanism")
    said = refusal(capsys, *replay, "mine.py:noisy_sum")
    assert re.search(UNKNOWN, said)
    assert "damaged" not in said
    assert run(capsys, *replay, *given)[0] == 1


@pytest.mark.parametrize("command", [("report", "own.json", "-o", "page.html"), ("compare", "own.json", "own.json")])
def test_own_kinds_of_results_are_imported_by_an_option(capsys, own_kinds, command):
    assert re.search(UNKNOWN, refusal(capsys, *command))
    assert run(capsys, *command, "--import", "kinds.py")[0] == 0
    assert "there is no file none.py" in refusal(capsys, *command, "--import", "none.py")


@pytest.mark.campaign
def test_curve_plots_a_line_for_each_epsilon(capsys, tmp_path):
    command = ("curve", "histogram", "--epsilon", 0.7, "--claims", "0.1,0.9", "--runs", "2e4")
    code, out, _ = run(capsys, *command, "--epsilon", "0.2,0.7", "--plot", tmp_path / "curve.svg")
    assert code == 0
    assert "ε = 0.7" in out
    code, out, _ = run(capsys, *command, "--json", "--plot", tmp_path / "curve.png")
    assert code == 0
    ElementTree.parse(tmp_path / "curve.svg")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert [test["epsilon"] for test in json.loads(out)["lines"][0]["tests"]] == [0.1, 0.9]


ESTIMATOR = """
import numpy as np


class PrivateRidge:
    def __init__(self, epsilon):
        self.epsilon = epsilon

    def fit(self, X, y):
        self.coef_ = float(np.sum(y)) + np.random.default_rng().laplace(0, 1 / self.epsilon)
        return self


class Unclaimed:
    def __call__(self, data, rng, size):
        return data[0] + rng.laplace(0, 1.0, size)


class Claimed(Unclaimed):
    epsilon = 1.0


model, claimed, unclaimed = PrivateRidge(1.0), Claimed(), Unclaimed()
"""


@pytest.mark.campaign
def test_the_claim_of_an_object_is_read_from_it(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("est.py").write_text(ESTIMATOR)
    Path("people.csv").write_text("x,y\n0.5,1\n0.2,0\n0.9,1\n")
    data = ("--records", "people.csv", "--outcome", "coef_", "--runs", "300", "--seed", 1)
    code, out, err = run(capsys, "check", "est.py:claimed", "--pair", "[0]", "[1]", "--runs", "300")
    assert (code, "at the claim ε = 1;" in out) == (0, True), err
    for line, said in (
        (("est.py:unclaimed", *data), "no claim to test: give epsilon="),
        (("est.py:PrivateRidge", *data, "--form", "xy"), "PrivateRidge carries no claim itself"),
        (
            ("est.py:PrivateRidge", *data, "--form", "xy", "--epsilon", 1),
            "PrivateRidge is a class: give an object of it, or make=…",
        ),
        (("est.py:model", *data, "--form", "array"), "fit takes X and y: give form='xy'"),
        (("est.model", "--epsilon", 1), "unknown target 'est.model'"),
    ):
        told = refusal(capsys, "check", *line)
        assert said in told
        assert "errors=" not in told


def test_bound(capsys):
    code, out, _ = run(capsys, "bound", "laplace_mechanism", "--epsilon", 1, "--runs", "1e5", "--json")
    assert code == 0
    assert 0.9 <= json.loads(out)["epsilon_lower_bound"] <= 1


DEEP = "[" * 100_000

#: Lines that nobody can run, and what is said about each: what, which value, and what to do.
BAD_LINES = [
    ("nonsense", "No such command 'nonsense'"),
    ("attack published_tables", "No such command 'published_tables'"),
    ("attack threshold_testing --epsilon 1e-19", "--epsilon 1e-19 must be at least 1e-12"),
    ("check isvt33 --epsilon 1", "unknown target 'isvt33'; did you mean 'isvt3'"),
    ("check \udcff --epsilon 1", r"unknown target '\udcff'"),
    ("check mine.py:nothing --epsilon 1", "has no 'nothing'; it has: noisy_sum, breaks, unknown"),
    ("check mine.py --epsilon 1", "say which function"),
    ("check gone.py:f --epsilon 1", "there is no file gone.py"),
    ("check no.such.module:f --epsilon 1", "no.such.module cannot be loaded: ModuleNotFoundError"),
    ("check mine.py:noisy_sum --epsilon 1", "--pair, --queries or --data"),
    ("check mine.py:breaks --epsilon 1 --queries 2", "breaks raised ValueError (no luck) on run 0"),
    ("check mine.py:unknown --epsilon 1 --queries 2", "unknown returned <object object>"),
    ("check svt --epsilon 0", "epsilon=0.0 must be positive"),
    ("check svt --epsilon nan", "'nan' must be a finite number"),
    ("check svt --epsilon 1 --set cutof=1", "svt has no parameter 'cutof'; it takes: epsilon"),
    ("check svt --epsilon 1 --set epsilon=3", "give 'epsilon' two values"),
    ("check svt --epsilon 1 --set cutoff=1 --set cutoff=2", "--set cutoff=… is given 2 times"),
    ("check svt --epsilon 1 --batch 0", "--batch needs --command PROGRAM"),
    ("check svt --epsilon 1 --pair [1] [1]", "pair [1], twice: both inputs are the same"),
    ("check svt --epsilon 1 --pair [1 [1]", "must be JSON, such as"),
    (f"check svt --epsilon 1 --pair {DEEP} 1", "nested deeper than 32 levels"),
    (f"check svt --epsilon 1 --pair {2**63} 1", "does not fit into 64 bits"),
    ("check svt --epsilon 1 --runs 10", "runs=10 is too small"),
    ("check svt --epsilon 1 --runs 1.5", "must be a whole number"),
    ("check svt --epsilon 1 --outcome 1x", "names of its attributes"),
    ("check svt --epsilon 1 --data missing.csv", "cannot read missing.csv"),
    ("curve svt --epsilon 1 --claims=0:1:1e-9", "makes more than 10000 values"),
    ("curve svt --epsilon 1 --claims 0.1,0.2 --plot x.gif", "must end in .svg, .png or .pdf"),
    ("replay mine.py", "is not JSON"),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES, ids=lambda text: text[:40])
def test_bad_input_is_one_line_and_exit_code_2(capsys, mine, line, message):
    assert message in refusal(capsys, *shlex.split(line))
    assert sorted(path.name for path in mine.iterdir() if path.name != "__pycache__") == ["mine.py"]


@pytest.mark.campaign
def test_profile(capsys, tmp_path):
    """δ at ε = 0 of Laplace noise of ε = 1 is 1 − e^(−1/2) = 0.3935."""
    plot = tmp_path / "profile.svg"
    command = ("profile", "laplace_mechanism", "--epsilon", 1, "--runs", "1e5", "--seed", 1)
    code, out, _ = run(capsys, *command, "--claim", "0.8", "--json", "--plot", plot)
    assert code == 1
    value = json.loads(out)
    assert value["verdict"] == "violated"
    assert value["band"][0]["epsilon"] == 0
    assert 0.38 <= value["band"][0]["delta"] <= 0.3935
    assert ElementTree.parse(plot).getroot().tag.endswith("svg")
    code, out, _ = run(capsys, *command, "--claim", "gdp:2")
    assert code == 0
    assert out.startswith("NOT REFUTED: ")
    assert "needs a value for 'epsilon'" in refusal(capsys, "profile", "laplace_mechanism")
