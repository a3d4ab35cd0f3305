"""Sweeps: what a module claims, each case in a process of its own, one α for all, and a file to go on from."""

import json
import re
import sys
import textwrap
from enum import Enum
from functools import partial
from importlib import import_module
from importlib.metadata import version
from types import SimpleNamespace
from typing import Literal

import numpy as np
import pytest
from command_lines import refusal

import dpwitness as dpw
from dpwitness.cli import main
from dpwitness.codec import read_fields
from dpwitness.problem import Effort
from dpwitness.sweeps import describers, worker
from dpwitness.sweeps import sweep as sweeps
from dpwitness.sweeps.describers import Recipe, describer_of, registered, signatures
from dpwitness.sweeps.sweep import Case, Sweep
from dpwitness.sweeps.worker import CaseResult, check_case, try_attempt

MODULE = """
import os, signal, sys, time
from math import exp
from random import expovariate


def right(data, epsilon):
    return len(data) + expovariate(epsilon) - expovariate(epsilon)


def wrong(data, epsilon):
    return float(sum(data))


def raises(data, epsilon):
    raise RuntimeError("not today")


def exits(data, epsilon):
    sys.exit(7)


def killed(data, epsilon):
    os.kill(os.getpid(), signal.SIGSEGV)


def asks(data, epsilon, oracle):
    return oracle(data)


def no_claim(data):
    return len(data)


def either(data, epsilon):
    return 9 * len(data) + expovariate(epsilon) - expovariate(epsilon)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("swept")
    (place / "mine.py").write_text(MODULE)
    return place


@pytest.fixture(scope="module")
def swept(folder):
    """The file of a sweep of the module; the process of each case is real."""
    place = str(folder / "mine.jsonl")
    found = listed(str(folder / "mine.py"))
    sweeps.run(found, workers=3, output=place)
    return place


@pytest.fixture
def in_place_of_processes(monkeypatch):
    """Lets a function of the case, as JSON, give the error and the reason that its process would answer."""

    def install(answer):
        class Process:
            def __init__(self, argv, env): ...

            def ask(self, request, answers, seconds, stop):
                error, why = answer(json.loads(request))
                return [CaseResult(case="", error=error, why=why).to_json()]

            def end(self): ...

        monkeypatch.setattr("dpwitness.sweeps.interpreter.Child", Process)

    return install


def listed(*modules, alpha=1e-6, max_time=30, seed=1):
    """The sweep of modules."""
    return Sweep.of(modules, Effort(alpha=alpha, max_time=max_time, seed=seed))


def results_of(path):
    """The lines of a file behind its first."""
    with open(path) as lines:
        return {one["case"]: one for one in map(json.loads, list(lines)[1:])}


@pytest.mark.campaign
def test_each_case_ends_by_itself(swept):
    found = results_of(swept)
    for name, status, why in (
        ("asks", "not run", "no value is known for its parameter 'oracle'"),
        ("either", "not refuted", ""),  # refuted under one of two adjacencies that its claim may mean
        ("exits", "not run", "SystemExit: 7"),
        ("killed", "not run", "it ended with signal 11"),
        ("raises", "not run", "RuntimeError: not today"),
        ("right", "not refuted", ""),
        ("wrong", "refuted", ""),
    ):
        one = found.pop(f"mine.{name}")
        assert (one["status"], one["why"] or "") == (status, why)
        if status == "refuted":
            assert one["verdict"]["alpha"] == pytest.approx(1e-6 / 7)
        if not why:
            assert one["adjacency"] == "add-remove and replace-one; numbers from 0 to 1, which is assumed"
        if name == "either":
            result = read_fields(CaseResult, "result", one)
            assert [other.refuted for other in result.verdict.others] == [True]
            assert result.told.endswith("refuted under another relation")
    assert found == {}


@pytest.mark.campaign
def test_the_command_goes_on_from_its_file(swept, folder, in_place_of_processes, capsys):
    lines = (folder / "mine.jsonl").read_text().splitlines()
    half = folder / "half.jsonl"
    half.write_text("\n".join(line for line in lines if '"case": "mine.raises"' not in line) + "\n")
    asked = []

    def instead(case):
        asked.append(case)
        return "MechanismRaised", "asked\nagain"

    in_place_of_processes(instead)
    command = ["sweep", str(folder / "mine.py"), "--max-time", "30", "--alpha", "1e-6", "--output", str(half)]
    assert main([*command, "--quiet"]) == 1
    assert [one["name"] for one in asked] == ["mine.raises"]
    assert asked[0]["seed"] in [
        one["seed"] for one in json.loads(lines[0])["sweep"]["cases"] if one["name"] == "mine.raises"
    ]
    printed = capsys.readouterr().out
    assert printed.startswith("7 cases of ")
    assert "1 refuted, 2 not refuted, 4 not run" in printed
    assert re.search(r"^wrong +refuted +ε ≥ ", printed, re.MULTILINE)
    assert re.search(r"^raises +not run +asked again", printed, re.MULTILINE)
    assert "VIOLATED: wrong()" in printed
    assert "parameters: epsilon=1.0" in printed
    assert max(len(line) for line in printed.split("VIOLATED")[0].splitlines()[2:]) <= 80
    assert results_of(half)["mine.raises"]["why"] == "asked\nagain"
    assert main([*command, "--json", "--quiet"]) == 1  # nothing is left to run
    assert len(asked) == 1
    assert {one["case"] for one in json.loads(capsys.readouterr().out)["results"]} == set(results_of(half))


def test_a_file_of_another_sweep_is_refused(folder, in_place_of_processes, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    ran(folder / "other.jsonl", "mine.py", in_place_of_processes)
    before = (folder / "other.jsonl").read_text()
    for options, said in (
        ("--alpha 1e-3", "with alpha=1e-06, and not 0.001"),
        ("--seed 5", "with seed=1, and not 5"),
        ("json", "with modules=('mine.py',), and not ('mine.py', 'json')"),
    ):
        command = ["sweep", "--alpha", "1e-6", "--max-time", "30", "--output", "other.jsonl", "mine.py"]
        line = refusal(capsys, *command, *options.split())
        assert line.startswith("other.jsonl is of a sweep ")
        assert said in line
    assert (folder / "other.jsonl").read_text() == before


def ran(path, module, in_place_of_processes):
    """Write the file of a sweep whose cases all fail."""
    in_place_of_processes(lambda case: ("MechanismRaised", ""))
    sweeps.run(listed(module), output=str(path))


def test_a_file_of_other_versions_is_refused(tmp_path, in_place_of_processes, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "own", "def f(data, epsilon): ...")
    ran(tmp_path / "own.jsonl", "own.py", in_place_of_processes)
    head, *results = map(json.loads, (tmp_path / "own.jsonl").read_text().splitlines())
    assert head["sweep"]["code"] == {"dpwitness": version("dpwitness")}
    head["sweep"]["code"] = {"dpwitness": "0.1"}
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, [head, *results])))
    command = ["sweep", "own.py", "--alpha", "1e-6", "--max-time", "30", "--output", "own.jsonl"]
    assert "with code={'dpwitness': '0.1'}" in refusal(capsys, *command)


def test_the_file_of_a_sweep_is_no_witness(tmp_path, capsys):
    (tmp_path / "all.json").write_text('{"sweep": {}, "results": []}')
    for command in (["replay"], ["report", "-o", str(tmp_path / "page.html")]):
        assert "all.json is of a sweep: " in refusal(capsys, *command, tmp_path / "all.json")


@pytest.mark.parametrize("content", ["a,b\n1,2\n", '{"verdict": "violated"}\n', '{"sweep": {}}\n', "[[[1]]]\n"])
def test_a_damaged_file_is_refused_and_kept(content, folder, tmp_path, capsys):
    place = tmp_path / "sweep.jsonl"
    place.write_text(content)
    assert refusal(capsys, "sweep", folder / "mine.py", "--output", place)
    assert place.read_text() == content


def test_a_sweep_that_is_interrupted_keeps_what_it_has(folder, tmp_path, in_place_of_processes):
    done = []

    def instead(case):
        if done:
            raise KeyboardInterrupt
        done.append(case["name"])
        return "MechanismRaised", "no"

    in_place_of_processes(instead)
    wanted = listed(str(folder / "mine.py"))
    place = tmp_path / "cut.jsonl"
    _, results = sweeps.run(wanted, workers=1, output=str(place))
    assert {one.case for one in results} == {"mine.asks", done[0]} == set(results_of(place))
    assert main(["sweep", str(folder / "mine.py"), "--quiet", "--output", str(tmp_path / "again.jsonl")]) == 130


@pytest.mark.campaign
@pytest.mark.parametrize("body", ["time.sleep(600)", "while True: pass", "while True: print('x' * 10_000)"])
def test_what_hangs_is_killed(body, tmp_path):
    (tmp_path / "hanging.py").write_text(f"import time\ndef hangs(data, epsilon):\n    {body}\n")
    (case,) = dpw.sweep(str(tmp_path / "hanging.py"), max_time=1, seed=1)
    found = case.run(grace=1.0)
    assert (found.status, found.error) == ("not run", "MechanismTimeout")
    assert found.why.startswith("it did not answer within 2 s, and was ended")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"case": "mine.other", "adjacency": "", "verdict": None, "error": "ValueError", "why": "no"}, "ValueError"),
        ({"verdict": None}, "InvalidWitness"),
        ([], "InvalidWitness"),
    ],
)
def test_what_a_process_answers_is_data(answer, error, folder, monkeypatch):
    """An answer that cannot be read is no result, and none is that of another case."""
    monkeypatch.setattr("dpwitness.sweeps.interpreter.Child.ask", lambda *given: [answer])
    found = dpw.sweep(str(folder / "mine.py"), seed=1)[-1].run()
    assert (found.case, found.verdict, found.error, found.status) == ("mine.wrong", None, error, "not run")


@pytest.mark.parametrize("name", ["SlowMechanism", "__name__", "ValueError"])
def test_an_error_of_a_case_that_is_none_of_ours_is_an_error_of_its_mechanism(folder, in_place_of_processes, name):
    """Names in the module of errors are warnings, modules and texts, too."""
    in_place_of_processes(lambda case: (name, "not today"))
    case = next(one for one in dpw.sweep(str(folder / "mine.py"), seed=1) if not one.refused)
    with pytest.raises(dpw.MechanismError, match=r"^mine\..*: not today$"):
        case.check()


def test_cases_are_for_parametrize(folder):
    cases = dpw.sweep(str(folder / "mine.py"), alpha=1e-6, max_time="2s", seed=1)
    assert [str(case) for case in cases] == [
        "mine.asks", "mine.either", "mine.exits", "mine.killed", "mine.raises", "mine.right", "mine.wrong"
    ]  # fmt: skip
    assert sum(case.alpha for case in cases) == pytest.approx(1e-6)
    assert len({case.seed for case in [*cases, *dpw.sweep(str(folder / "mine.py"), seed=2)]}) == 2 * len(cases)
    assert cases == dpw.sweep(str(folder / "mine.py"), alpha=1e-6, max_time=2, seed=1)
    with pytest.raises(dpw.InvalidParameter, match=r"mine\.asks: no value is known for its parameter 'oracle'"):
        cases[0].check()
    for case in cases:
        assert read_fields(Case, "case", json.loads(json.dumps(case.to_json()))) == case


def written(tmp_path, name, text):
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    return str(tmp_path / f"{name}.py")


#: Modules, and the cases that are made of them.
SWEPT = {
    "imported and private names": (
        "from other_of_mine import borrowed\ndef own(data, epsilon): ...\ndef _private(data, epsilon): ...\n"
        "again = own",
        ["again"],
    ),
    "a list of names": (
        "__all__ = ['borrowed', 'gone', 3]\nfrom other_of_mine import borrowed\ndef own(data, epsilon): ...",
        ["borrowed"],
    ),
    "things that cannot be looked at": (
        "class Proxy:\n    def __getattr__(self, name): raise RuntimeError('outside of its context')\n"
        "class Stubborn(Proxy):\n    @property\n    def __class__(self): raise RuntimeError('outside')\n"
        "proxy, stubborn = Proxy(), Stubborn()\ndef own(data, epsilon): ...",
        ["own"],
    ),
}


@pytest.mark.parametrize("what", SWEPT)
def test_what_of_a_module_is_swept(tmp_path, what):
    text, names = SWEPT[what]
    (tmp_path / "other_of_mine.py").write_text("def borrowed(data, epsilon): ...\n")
    place = written(tmp_path, "swept", text)
    assert [str(case) for case in dpw.sweep(place, place)] == [f"swept.{name}" for name in names]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("empty.py", "no name that it defines carries a claim"),
        ("no_such_module_here", "no_such_module_here"),
        ("gone.py", "gone.py"),
        *((place, f"{place!r} is not the name of a module: give a file") for place in (".", ".foo", "a..b", "folder/")),
    ],
)
def test_a_module_that_claims_nothing_or_is_none_is_refused(tmp_path, monkeypatch, place, said, capsys):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "empty", "def f(data): ...")
    assert said in refusal(capsys, "sweep", place)


@pytest.mark.parametrize("said", ["alpha=nan", "max_time=-1", "seed=-3"])
def test_settings_that_make_no_sense_are_refused(said, folder):
    name, value = said.split("=")
    with pytest.raises(dpw.BadInput, match=re.escape(said)):
        dpw.sweep(str(folder / "mine.py"), **{name: float(value) if value == "nan" else int(value)})


def attempts_of(thing, place="some.module:thing"):
    """The attempts at the first recipe of a thing."""
    _, describer = describer_of(thing, place)
    recipe = describer.recipes(thing, place)[0]
    assert not recipe.refused, recipe.refused
    return describer.attempts(thing, recipe)


def first_running(thing, **given):
    return next(attempt for attempt in attempts_of(thing, **given) if not try_attempt(attempt))


DESCRIBED_MODULE = '''
import random
from datetime import datetime
from typing import Literal, Optional


def of_number(value, epsilon):
    return float(value) + 1


def of_texts(data, epsilon):
    return sum(one == "a" for one in data if one.startswith(("a", "b", "c")))


def of_each_row(df, column, epsilon):
    return df[column].to_numpy() + 1.0


def of_column(df: "pd.DataFrame", column: str, epsilon: float = 1.0):
    return float(df[column].sum())


def without_missing(df, column, epsilon):
    if df[column].isna().any():
        raise ValueError("a value is missing")
    return float(df[column].sum())


def of_text_column(df, col_name, epsilon):
    return (df[col_name].str.len() == 1).sum()


def of_categories(data, columns, epsilon):
    return len(data[columns[0]].cat.categories)


def of_annotations(data, epsilon, law: Literal["laplace", "gauss"], times: "int | None", part: Optional[float]):
    assert (law, times, part) == ("laplace", 2, 1.0)
    return len(data)


def own_limits(data, epsilon, max_iter=100, clip_norm=1.0, normalize=True, max_norm=None, *, steps: int, normal: float):
    return len(data)


class OfMethod:
    """ε belongs to the method, and what is fitted are private records."""

    def fit(self, private_records):
        raise AssertionError

    def privatize_value(self, n: int, privacy_level):
        return n + privacy_level * random.random()


class Generator:
    def __init__(self, epsilon):
        self.mean = None

    def fit(self, df):
        self.mean = float(df["x"].mean())

    def sample(self, n_records):
        return [self.mean] * n_records


class Model:
    def __init__(self, epsilon):
        self.mean = None

    def fit(self, X: "pd.DataFrame", y: "pd.Series"):
        self.mean = X.mean(axis=0).sum() + y.value_counts().sum()
        return self

    def predict(self, X):
        return [self.mean] * len(X)


class Regression:
    def __init__(self, epsilon, bounds_X, bounds_y):
        self.bounds, self.bounds_y = bounds_X, bounds_y

    def fit(self, X, y):
        self.mean_ = X.clip(*self.bounds).mean() + y.clip(*self.bounds_y).mean()
        return self


def of_category(input_data: int, k: int, epsilon: float):
    return [0] * (k - 1) + [random.random()] if 0 < input_data < k else 1 / 0


def of_flag(agrees: bool, epsilon: float):
    return int(agrees is True) + random.random()


def of_listed(value, domain, epsilon):
    return domain.index(value)


def of_one_value(bit, epsilon):
    return random.random() + {0: 0, 1: 1}[bit]


def of_length(data, n, epsilon):
    assert len(data) == n
    return sum(data) / n


def of_dates(df, date_column, start_date: "datetime", end_date: "datetime", epsilon):
    return len(df[df[date_column].between(start_date, end_date)])


def of_own_columns(df: "pd.DataFrame", town: str, epsilon):
    recent = df[(df["visited_at"].dt.year == 2024) & df["shop"].str.contains(town)]
    return float(recent[["spend"]].sum().iloc[0])


def of_edges(values, bins: list[float], epsilon):
    return [sum(low <= one < high for one in values) for low, high in zip(bins, bins[1:])]


class OfOneMethod:
    """Its only method that takes data has an unusual name."""

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def spend(self):
        return self.epsilon

    def mix(self, votes):
        return len(votes) + random.random()
'''


@pytest.mark.parametrize(
    ("name", "adjacency", "relation"),
    [
        ("of_number", "numbers that differ by 1, which is assumed", ""),
        ("of_texts", "add-remove and replace-one", "categories('a', 'b', 'c')"),
        ("of_each_row", "any two values of one record; missing values, which it accepts; column 'x'", "'dataframe'"),
        ("of_column", "from 0 to 1, which is assumed; missing values, which it accepts; column 'x'", "missing=True"),
        ("without_missing", "numbers from 0 to 1, which is assumed; column 'x'", "form='dataframe'"),
        ("of_text_column", "numbers from 0 to 1, which is assumed; column 'y'", "form='dataframe'"),
        ("of_categories", "numbers from 0 to 1, which is assumed; column 'z'", "form='dataframe'"),
        ("of_annotations", "add-remove and replace-one", ""),
        ("own_limits", "add-remove and replace-one", ""),
        ("OfMethod", "numbers that differ by 1, which is assumed", ""),
        ("Generator", "", "form='dataframe'"),
        ("Model", "", "categories(0, 1)"),
        ("Regression", "", "numbers(0, 1, clipped=True)"),
        ("of_category", "any two categories, and those that differ by 1", ""),
        ("of_flag", "False and True", ""),
        ("of_listed", "any two of a, b, c", ""),
        ("of_one_value", "0 and 1", ""),
        ("of_length", "replace-one, 10 records", "size=10"),
        ("of_dates", "add-remove and replace-one", "categories('2024-01-08', "),
        ("of_own_columns", "columns visited_at, shop, spend, for which it asks", "form='dataframe'"),
        ("of_edges", "add-remove and replace-one", ""),
        ("OfOneMethod", "add-remove and replace-one", ""),
    ],
)
def test_the_inputs_are_those_on_which_a_function_runs(name, adjacency, relation):
    """By names, annotations and what it raises; what a fitted object releases differs between neighbours."""
    exec(DESCRIBED_MODULE, names := {"__name__": "some.module"})
    attempt = first_running(names[name])
    assert attempt.claim == dpw.PureDP(1.0)
    assert adjacency in attempt.adjacency
    assert relation in str(attempt.relations[0])
    if name in ("Generator", "Model"):
        outputs = [[attempt.mechanism(side)[0] for side in pair.sides] for pair in attempt.relations[0].candidates()]
        assert any(first != second for first, second in outputs)


TENSORS = """
import numpy as np


class Tensor:
    def __init__(self, values):
        self.values = values

    def sum(self):
        return float(self.values.sum())


def as_tensor(values):
    return Tensor(np.asarray(values))
"""


def test_a_tensor_is_made_by_the_module_of_its_type(tmp_path, monkeypatch):
    (tmp_path / "tensors_of_mine.py").write_text(TENSORS)
    monkeypatch.syspath_prepend(tmp_path)
    tensors = import_module("tensors_of_mine")

    def total(data, epsilon):
        return data.sum() if isinstance(data, tensors.Tensor) else 1 / 0

    total.__annotations__["data"] = tensors.Tensor
    attempt = first_running(total)
    assert attempt.adjacency.startswith("add-remove and replace-one")
    pair = next(attempt.relations[0].candidates())
    assert attempt.mechanism(pair.data) == pytest.approx(float(np.sum(pair.data)))


HONEST = """
import math
import random

import numpy as np


def laplace(scale):
    return random.expovariate(1 / scale) - random.expovariate(1 / scale)


def of_bit(bit: int, epsilon: float):
    return bit if random.random() < math.exp(epsilon) / (1 + math.exp(epsilon)) else 1 - bit


def of_signed(value: float, epsilon: float):  # Duchi et al. (2018): numbers from -1 to 1
    spread = (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    return spread if random.random() < 0.5 + value / (2 * spread) else -spread


def of_category(value, k, epsilon):  # categories from 1 to k
    if random.random() < math.exp(epsilon) / (math.exp(epsilon) + k - 1):
        return value
    return random.choice([one for one in range(1, k + 1) if one != value])


def of_statistic(mean: float, n: int, lower: float, upper: float, epsilon: float):  # the mean of n numbers
    return mean + laplace((upper - lower) / n / epsilon)


def of_length(data, n, epsilon, lower, upper):
    return float(np.mean(np.clip(data, lower, upper))) + laplace((upper - lower) / n / epsilon)


def of_unknown_bound(data, B: float, epsilon):  # numbers up to B, which are not clipped
    return float(np.sum(data)) + laplace(B / epsilon)


def of_seed(data, epsilon, seed=42):
    return len(data) + np.random.default_rng(seed).laplace(scale=1 / epsilon)
"""

BROKEN = """
import random

import numpy as np


def of_category(value, k, epsilon):
    return value if random.random() < 0.9 else random.randint(1, k)


def of_flag(agrees: bool, epsilon):
    return agrees if random.random() < 0.95 else not agrees


def of_length(data, n, epsilon, lower, upper):
    return float(np.mean(np.clip(data, lower, upper))) + np.random.laplace(scale=1 / n / epsilon)


def of_columns(df, epsilon):
    return float(df["spend"].sum()) + np.random.laplace(scale=0.01 / epsilon)


class Perturber:
    def __init__(self, epsilon):
        self.scale = 1 / (4 * epsilon)

    def perturb(self, value: float):
        return value + np.random.laplace(scale=self.scale)
"""


def readings(module, name):
    """Whether a function is refuted, under each relation that its claim may mean; [False] if it is not run."""
    exec(module, names := {"__name__": "some.module"})
    attempt = next((one for one in attempts_of(names[name]) if not try_attempt(one)), None)
    limits = {
        "alpha": 1e-9,
        "seed": 1,
        "runs": 4_000,
        "search_runs": 8_000,
        "workers": 1,
        "bits": False,
        "outcome": worker.whole_output,
    }
    return [
        dpw.check(attempt.mechanism, claim=attempt.claim, neighbours=relation, **limits).refuted
        for relation in (attempt.relations if attempt else ())
    ] or [False]


@pytest.mark.parametrize(
    "name", ["of_bit", "of_signed", "of_category", "of_statistic", "of_length", "of_unknown_bound", "of_seed"]
)
def test_an_honest_function_is_innocent_under_a_relation_that_it_may_mean(name):
    assert not all(readings(HONEST, name))


@pytest.mark.parametrize("name", ["of_category", "of_flag", "of_length", "of_columns", "Perturber"])
def test_a_broken_function_is_refuted_under_all_relations(name):
    assert all(readings(BROKEN, name))


def half(value, epsilon, sensitivity=0.5):
    return value + sensitivity / epsilon


def of_whole(value, epsilon, sensitivity=1):
    """As diffprivlib's Geometric, which takes no 1.0."""
    return value + [0, 1][sensitivity]


class OfMethod:
    """Adds a scale, whose sensitivity the method takes."""

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def add_noise(self, value, sensitivity=0.5):
        return value + sensitivity / self.epsilon


@pytest.mark.parametrize("thing", [half, of_whole, OfMethod])
def test_the_sensitivity_is_what_the_numbers_differ_by_whatever_its_default(thing):
    attempt = first_running(thing)
    assert attempt.adjacency == "numbers that differ by the sensitivity"
    pair = next(attempt.relations[0].candidates())
    assert attempt.mechanism(pair.data) - pair.data == abs(pair.data - pair.neighbour) == 1


def refused(function):
    """Why the first recipe of a function is not run; empty where it is."""
    _, describer = describer_of(function, "some.module:function")
    return describer.recipes(function, "some.module:function")[0].refused


@pytest.mark.parametrize("name", ["l1_norm", "norm_bound", "epsilon_select", "budget", "sens_f"])
def test_a_parameter_that_may_restrict_the_claim_gets_no_value(name):
    """Neither by its annotation nor by its default: an input of the sweep may be one that the claim leaves out."""
    names = {}
    exec(f"def annotated(data, epsilon, {name}: float): ...\ndef preset(data, epsilon, {name}=0.5): ...", names)
    for function in (names["annotated"], names["preset"]):
        assert refused(function) == f"no value is known for its parameter {name!r}, which may restrict its claim"


RNG = np.random.default_rng()


class Law(Enum):
    GAUSSIAN = 1
    DISCRETE = 2
    LAPLACE = 3


def test_a_text_that_may_mean_no_noise_is_not_taken():
    assert signatures.value_of("law", Literal["none", "gaussian", "staircase"]) == "staircase"
    assert signatures.value_of("law", Law) is Law.LAPLACE
    assert signatures.value_of("mode", Literal["zero", "deterministic", "renyi"]) is None


def laplace_noise(epsilon):
    return RNG.laplace(scale=1 / epsilon)


def of_reports(reports, epsilon, other):
    return len(reports)


def test_functions_without_data_have_that_reason():
    for thing in (laplace_noise, of_reports):
        assert refused(thing) == signatures.NO_DATA


def of_three_categories(values, epsilon):
    categories = np.unique(values)
    if len(categories) < 3:
        raise ValueError("three categories are required")
    return [RNG.choice(categories) if RNG.random() < 3 / (np.e + 2) else value for value in values]


def test_public_records_have_all_categories():
    attempt = first_running(of_three_categories)
    assert attempt.adjacency == "any two values of one record, beside public records"
    for pair in attempt.relations[0].candidates():
        assert all(set(side) == {"a", "b", "c"} for side in pair.sides)


@pytest.fixture(scope="module")
def verdicts():
    """A violation and a pass."""
    found = dpw.check("isvt1", epsilon=0.7, runs=2_000, search_runs=2_000, seed=1)
    return found, dpw.check("svt", epsilon=1.0, runs=400, search_runs=400, seed=1)


@pytest.mark.parametrize("refuted", [(0, 0, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0), (0, 1, 1, 1), (1, 1, 1, 1)])
def test_a_case_is_refuted_only_under_all_that_its_claim_may_mean(refuted, verdicts, tmp_path, monkeypatch):
    """Both adjacencies, each with numbers within the bounds and beyond; each at the whole share of the case."""
    (case, _) = dpw.sweep(
        written(tmp_path, "bounded", "def total(data, epsilon, bounds):\n    return float(sum(data))"), seed=1
    )
    violation, passed = verdicts
    asked = []

    def check(mechanism, *, neighbours, alpha, max_time, **said):
        asked.append((neighbours.adjacency, "clipped=True" in str(neighbours), alpha, max_time))
        return violation if refuted[len(asked) - 1] else passed

    monkeypatch.setattr(sys.modules[dpw.check.__module__], "check", check)
    monkeypatch.setenv(worker.CASE_VARIABLE, "")  # the case's own process sets it
    found = check_case(case.to_json())
    assert found.status == ("refuted" if all(refuted) else "not refuted"), found.why
    adjacencies = ("add-remove", "replace-one")
    assert asked == [(one, beyond, case.alpha, 5.0) for beyond in (True, False) for one in adjacencies]
    assert ("refuted under another relation" in found.told) == (any(refuted) and not all(refuted))


@pytest.fixture
def of_packages(monkeypatch):
    """Lets other packages have describers: values by the names of entry points; what is an error is raised by them."""

    def install(**found):
        def load(value):
            if isinstance(value, BaseException):
                raise value
            return value

        points = [SimpleNamespace(name=name, value=f"{name}:D", load=partial(load, it)) for name, it in found.items()]
        monkeypatch.setattr(describers, "entry_points", lambda group: points)
        registered.cache_clear()

    yield install
    registered.cache_clear()


def knowing(describes=lambda thing, place: True, recipes=lambda thing, place: [Recipe()]):
    return SimpleNamespace(describes=describes, recipes=recipes, attempts=lambda *_: iter(()))


@pytest.mark.parametrize(
    ("broken", "warning"),
    [
        (SystemExit(3), "cannot be loaded: SystemExit: 3; it is left out"),
        (object(), "cannot be loaded: AttributeError: 'object' object has no attribute"),
        (knowing(lambda thing, place: {"xml.dom:g": 0}[place]), "its describes raised at xml.dom:f: KeyError"),
    ],
)
def test_a_broken_describer_hides_nothing(of_packages, broken, warning):
    of_packages(broken=broken, whole=knowing(lambda thing, place: place == "xml.dom:g"))

    def f(data, epsilon): ...

    with pytest.warns(UserWarning, match=re.escape(warning)):
        assert [describer_of(f, place)[0] for place in ("xml.dom:f", "xml.dom:g")] == ["signatures", "whole"]


def test_numbers_beyond_the_bounds_are_a_relation_of_their_own():
    """A signature does not say whether the claim covers them; a mechanism that refuses them is run without."""

    def total(data, epsilon, bounds):
        return float(np.sum(data))

    def refuses(data, epsilon, bounds):
        if np.min(data) < bounds[0] or np.max(data) > bounds[1]:
            raise ValueError("out of bounds")
        return float(np.sum(data))

    for function, said, beyond in ((total, ", and beyond", [True, True, False, False]), (refuses, "", [False, False])):
        attempt = first_running(function)
        assert attempt.adjacency == f"add-remove and replace-one; numbers within the bounds{said}"
        assert ["clipped=True" in str(one) for one in attempt.relations] == beyond
        assert [one.adjacency for one in attempt.relations] == ["add-remove", "replace-one"] * (len(beyond) // 2)


def formula(prob, eps, delta):
    return float(np.log1p(prob * np.expm1(eps)).sum())


def noisy_formula(prob, eps, delta):
    return formula(prob, eps, delta) + np.random.laplace()  # noqa: NPY002  # as in many packages


def test_a_formula_of_epsilon_and_settings_is_not_run():
    why = "it returns the same again and again, and its parameter 'prob' is not known as data"
    found = {try_attempt(one) for one in attempts_of(formula)}
    assert why in found
    assert "" not in found
    assert first_running(noisy_formula)


@pytest.mark.parametrize("name", ["rho", "n_users", "sample_rate", "alphabet_size", "noise: float", "cohort: str"])
def test_a_setting_is_never_taken_for_data(name):
    names = {}
    exec(f"def calibrated({name}, epsilon, delta): ...", names)
    assert refused(names["calibrated"])
    assert not refused(lambda ages, epsilon, delta: len(ages))


@pytest.mark.parametrize("name", ["mu0", "sigma", "noise_multiplier", "rho", "laplace_scale", "noise: float"])
def test_parameters_of_noise_and_of_other_claims_are_not_made_up(name):
    exec(f"def release(data, epsilon, {name}): ...", names := {})
    assert "no value is known for its parameter" in refused(names["release"])
    exec(f"def release(data, epsilon, {name.replace(': float', '')}=1.0): ...", names)
    assert not refused(names["release"])


@pytest.mark.parametrize("names", ["privacy_budget", "privacy_level", "eps, epsilon", "budget, epsilon_"])
def test_names_of_epsilon(names):
    """Neither a budget nor epsilon_ alone: they are also amounts of money and rates of exploration."""
    namespace = {}
    exec(f"def release(data, {names}):\n    return epsilon if 'epsilon' in vars() else data", namespace)
    assert (describer_of(namespace["release"], "some.module:release") is None) == names.startswith("budget")


def seeded(data, epsilon, seed: int):
    assert isinstance(seed, int)
    return len(data) + np.random.default_rng(seed).laplace()


def test_a_seed_without_a_default_is_drawn_in_each_run():
    attempt, rng = first_running(seeded), np.random.default_rng(1)
    assert len({attempt.mechanism(rng, [1.0]) for _ in range(9)}) == 9


def test_modules_without_a_case_are_named_with_the_reason(folder, monkeypatch, in_place_of_processes, capsys):
    monkeypatch.chdir(folder)
    line = "no case in colorsys: no name that it defines carries a claim or has a parameter epsilon"
    assert main(["sweep", "mine.py", "colorsys", "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == line
    in_place_of_processes(lambda case: ("MechanismRaised", "not today"))
    found, results = sweeps.run(listed("mine.py", "colorsys"))
    assert line in sweeps.text_of(found, results).splitlines()
    assert read_fields(Sweep, "sweep", found.to_json()) == found


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ('[[3, 9], [], ""]', "is Python 3.9: a sweep needs 3.11 or later"),
        (
            '[[3, 99], [], "numpy: ImportError"]',
            "is Python 3.99 and cannot import numpy: ImportError: install dpwitness",
        ),
        ("hello", "is not an interpreter of Python that runs"),
        (None, "is not a program: give the path of an interpreter"),
    ],
)
def test_an_interpreter_that_cannot_run_a_sweep_is_refused(tmp_path, printed, said, capsys):
    program = tmp_path / "python"
    if printed is not None:
        program.write_text(f"#!/bin/sh\necho '{printed}'\n")
        program.chmod(0o755)
    assert said in refusal(capsys, "sweep", "colorsys", "--python", program)


@pytest.mark.campaign
def test_another_interpreter_runs_a_sweep(folder, tmp_path, capsys):
    """Its own packages come first, and those of dpwitness after them."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "only_there.py").write_text("def total(data, epsilon):\n    return float(sum(data))\n")
    (theirs / "click.py").write_text("raise ImportError('an old version')\n")
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{theirs}${{PYTHONPATH:+:$PYTHONPATH}}" exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    found = Sweep.of(["only_there", "colorsys"], Effort(alpha=1e-3, max_time=20, seed=1), str(program))
    assert [str(case) for case in found.cases] == ["only_there.total"]
    assert list(found.without) == ["colorsys"]
    assert found.cases[0].run().status == "refuted"
    assert read_fields(Case, "case", json.loads(json.dumps(found.cases[0].to_json()))) == found.cases[0]
    assert "no_such_module_here" in refusal(capsys, "sweep", "no_such_module_here", "--python", program)
