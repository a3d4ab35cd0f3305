"""Hostile arguments, files and Python values: an error is one line and one of the documented exit codes, never a crash.

Seeded: case k is always the same, and `DPWITNESS_FUZZ_CASE=k` runs it alone. The suite runs 10 cases of each kind;
`DPWITNESS_FUZZ=3000 pytest tests/doors/test_hostile_inputs.py` runs a campaign,
`DPWITNESS_FUZZ_FIRST=100000` one of other cases.
"""

import contextlib
import io
import json
import math
import os
import pickle
import random
from copy import deepcopy
from pathlib import Path

import click
import pytest
from command_lines import commands

import dpwitness as dpw
from dpwitness.cli import main
from dpwitness.cli.command import KEPT_FILE, WRITTEN_FILE, FileType
from dpwitness.errors import DPWitnessError
from dpwitness.plugin.asserter import Database

COMMANDS = {" ".join(words): command for words, command in commands()}
CASES = int(os.environ.get("DPWITNESS_FUZZ", "10"))
FIRST = int(os.environ.get("DPWITNESS_FUZZ_FIRST", "0"))
ONLY = os.environ.get("DPWITNESS_FUZZ_CASE")

pytestmark = pytest.mark.filterwarnings("default")  # in a command a warning is a line on stderr

#: Mechanisms, and what each does in a run.
MECHANISMS = {
    "noisy(rng, data, epsilon, size, shift=0.0)": "return np.sum(data) + shift + rng.laplace(0, 1 / epsilon, size)",
    "plain(rng, data, epsilon)": "return Wrapped(float(np.sum(data)) + rng.laplace(0, 1 / epsilon))",
    "raises(rng, data)": r'raise ValueError("no\nluck \x1b[2J")',
    "leaves(rng, data)": "sys.exit(0)",
    "none(rng, data, size)": "return [None] * size",
    "ragged(rng, data)": "return [1.0] * int(rng.integers(0, 40))",
    "endless(rng, data)": "return list(range(20_000))",
    "text(rng, data)": r'return "\ud800\x1b" if rng.random() < 0.5 else ""',
    "kinds(rng, data)": 'return 1.0 if rng.random() < 0.5 else "one"',
    "nothing()": "return 0.0",
}
MINE = """
import sys
import numpy as np

class Wrapped:
    def __init__(self, value):
        self.value = value

def value(outcome):
    return outcome.value

number = 7

class Odd:
    epsilon = "one"
    sensitivity = None

    def randomise(self, value):
        return value

odd = Odd()
""" + "".join(f"def {head}:\n    {does}\n" for head, does in MECHANISMS.items())
#: Would leave a mark if anything imported it, or executed what files hold.
CANARY = "open('executed', 'w').close()\ndef f(rng, data): return 0.0\n"


class Marks:
    """What a pickle does when it is loaded."""

    def __reduce__(self):
        return (open, ("executed", "w"))


TEXTS = [
    "", " ", "-", "--", "a", "\0", "\n", "\x1b[2J", "\udcff", "\u202e", "é" * 50, "x" * 5000, "0", "-0", "-1", "1",
    "0.5", "1e3", "1e-320", "1e400", "-1e400", "9" * 40, "9" * 5000, "nan", "inf", "-inf", "1_0", "0x10", "١", "1e",
    "1,2", "None", "true", "null", "[]", "{}", "[1", "[[1],[1,2]]", "[NaN]", '"a"', "[" * 500, "[" * 50_000, "%s%n",
    "$(touch executed)", "`touch executed`", "__import__('os').system('touch executed')", "../canary", ".", "/",
    "!!python/object/apply:os.system ['touch executed']", "/dev/full", "no/such/file", "mine.py", "é.csv",
]  # fmt: skip
NAMES = [head.partition("(")[0] for head in MECHANISMS]
TARGETS = [
    *(f"mine.py:{name}" for name in (*NAMES, "number", "odd", "odd.randomise", "Odd", "gone")),
    *("mine:noisy", "mine:", ":noisy", "mine.py:", "a:b:c", "..:f", "os:getcwd", "math:pi", "json:loads", "numpy:sum"),
    *("laplace_mechanism", "histogram", "bounded_subset_sums", "svt33", "damaged.py:f", "cwd.py:f", "builtins:print"),
]
PAIRS = ["[1]", "[2]", "1", "2", "[1,2]", "[1,3]", "[[1,2],[3,4]]", "[[1,2],[3,5]]", "[true]", "[1.5]", "[1e308]"]


INPUTS = [
    '"a"', '""', "[]", "[null]", "{}", '{"age": 1}', '[{"age": 1}, {"age": null}]', '[{"age": 1}]', "[[1], [1, 2]]",
    "null", '{"list": [1]}', '{"dataframe": [["a", "int64", [1]]], "index": [0]}', '{"object": "os.system"}', "true",
    '"a b"', '{"bytes": "AA=="}', '{"": {"": [""]}}', '"\\ud800"', '["\\u001b[2J", 1]', '{"tuple": [1, 2]}',
    '{"float": "nan"}', "[" * 40 + "]" * 40, '{"a": ' * 40 + "1" + "}" * 40, "[1e400]", '{"a": NaN}', '{"a": 1e999}',
]  # fmt: skip
NUMBERS = ["1", "2", "8", "0.5", "0.05", "0", "-1", "nan", "inf", "x", "", "1e400", "1e-320", "1e308", "9" * 60]
READ = ["counts.csv", "table.csv", "people.csv", "given.csv", "damaged.csv", "pickle.csv", "folder", "/dev/null"]
WRITTEN = ["saved.json", "saved.svg", "saved.gif", "folder", "folder.svg", "link", "/dev/null", "no/such/file.svg", "",
           "\0.svg", ".svg", "x" * 300 + ".svg", "folder/"]  # fmt: skip
#: Values of options that are neither a choice, nor any number, nor any file; every limit stays small, or is refused.
OWN = {
    "--set": ["epsilon=1", "shift=1", "size=3", "rng=1", "data=2", "=", *(f"shift={text}" for text in TEXTS)],
    "--claim": ["1", "0", "3", "zcdp:1", "profile:people.csv", *TEXTS],
    "--claims": ["1", "0.5:1:0.5", "1,2", "1:0:1", "0:1:0", "::", "0:1e308:1e-308", "-1", "1,,2", *TEXTS],
    "--outcome": ["coef_", "coef_,intercept_", "gone_", "coef_.real", "__class__", "mine.py:value", "mine.py:raises",
                  "mine:number", "canary", ",", *TEXTS],
    "--domain": ["age=0:120", "age=0.0:1.5", "age=1,2,30", "city=Bern,Genf", "age=", "=1", "age", "age=:", "age=5:1",
                 "age=nan:1", "age=0:inf", "gone=1:2", "age=9,9", "city=0:1", "age=0:" + "9" * 400, *TEXTS],
    "--pair": [*INPUTS, *PAIRS, *PAIRS, *TEXTS], "--column": ["count", "a", "age", *TEXTS],
    "--python": ["no/such/python", "folder", "mine.py", "/bin/false", "/bin/true", "\0", ""],
    "--command": ["no/such", "folder", "mine.py", "/bin/false", "cat", "yes 0", "'", "\0", "", " ", "sh -c '"],
    "--cluster": ["tcp://127.0.0.1:1", "tcp://", "127.0.0.1:1", "nonsense://x", "x", "", "\0", "tcp://no such:1"],
    "--mechanism": [*TARGETS, *TEXTS], "--oracle": ["mine.py:noisy", "no.py:f", *TEXTS],
    "--import": ["mine.py", "damaged.py", "no.py", ""], "--runs": ["1", "100", "1e2", "0", "-1", "1.5", "nan", "x", ""],
    "--max-time": ["2s", "500ms", "0", "-1s", "1ns", "1e10", "1e308h", "nan", "x"], "--retries": ["0", "1", "-1", "x"],
    "--workers": ["1", "2", "0", "x", "1e9"], "--rate": ["1e9", "0", "-1", "nan"],
}  # fmt: skip
RUN = ["--epsilon", "1", "--runs", "100", "--max-time", "2s"]
#: The commands that run something of the user's, and what each needs; `TARGET` is one of the targets.
LINES = {
    "check": ["TARGET", *RUN], "bound": ["TARGET", *RUN], "profile": ["TARGET", *RUN],
    "curve": ["TARGET", *RUN, "--claims", "1"],
    "attack threshold_testing": ["--epsilon", "1", "--data", "counts.csv"],
    "attack subset_sum": ["--size", "8"],
    "attack table_builder": ["--data", "table.csv", "--partitions", "5", "--sums", "5"],
}  # fmt: skip


def pick(rng, *pools):
    return rng.choice(rng.choice(pools))


def value_of(rng, option):
    """A value of an option: one of its own, or a hostile text."""
    kind, name = option.type, option.opts[-1]
    if kind in (WRITTEN_FILE, KEPT_FILE):
        return rng.choice(WRITTEN)  # what is written must not replace what other cases read
    if name in OWN:
        return rng.choice(OWN[name])
    own = kind.choices if isinstance(kind, click.Choice) else READ if isinstance(kind, FileType) else NUMBERS
    return pick(rng, own, own, TEXTS)


def command_line(rng, place):
    """A command with up to three options of its own, or nothing that there is."""
    if rng.random() < 0.05:
        return rng.choice([["list", pick(rng, TEXTS)], ["list", "--json"], [pick(rng, TEXTS)], [], ["attack"]])
    (place / "given.csv").write_bytes(csv_bytes(rng))
    name = rng.choice(list(LINES))
    target = pick(rng, TARGETS, TARGETS, TEXTS)
    arguments = [target.lstrip("-") if text == "TARGET" else text for text in [*name.split(), *LINES[name]]]
    if "TARGET" in LINES[name]:
        data = [["--queries", "1"], ["--pair", "[1]", "[2]"], ["--records", "people.csv"], ["--data", "given.csv"], []]
        arguments += rng.choice(data)
    options = [one for one in COMMANDS[name].params if isinstance(one, click.Option) and one.name != "traceback"]
    for option in rng.sample(options, rng.randint(0, 3)):
        values = [] if option.is_flag else [value_of(rng, option) for _ in range(option.nargs)]
        arguments += [f"{option.opts[-1]}={values[0]}"] if len(values) == 1 else [option.opts[-1], *values]
    return arguments


def csv_bytes(rng):
    cells = ["1", "0", "7", "-1", "1.5", "nan", "inf", "1e999", "", " ", "x", '"', '"a\nb"', "\0", "9" * 25, "9" * 5000,
             str(2**63), str(-(2**63)), str(2**63 - 1), "١", "\x1b[2J", "=1+1", "x" * 140_000]  # fmt: skip
    if rng.random() < 0.15:
        noise = bytes(rng.randrange(256) for _ in range(40))
        return rng.choice([b"", b"\n\n", b"\xff\xfe1\x00", b"\xef\xbb\xbf1\n2\n", b"count\n", b"count\r1\r2",
                           b"\0" * 100, noise, pickle.dumps(Marks())])  # fmt: skip
    width = rng.randint(1, 3)
    easy = rng.random() < 0.4
    rows = [",".join(rng.choice(cells[:3] if easy else cells) for _ in range(width)) for _ in range(rng.randint(1, 8))]
    if rng.random() < 0.5:
        rows.insert(0, ",".join(rng.choice(["count", "a", "b", "", "count"]) for _ in range(width)))
    return "\n".join(rows).encode()


VALUES = [
    None, True, False, 0, -1, 1, 1.5, 10**30, -(10**30), 1e308, math.inf, -math.inf, math.nan, "", "a", "inf", "\ud800",
    "\x1b", "os:system", "canary:f", "canary.py:f", "mine.py:noisy", "__class__", [], {}, [[]], [None], ["a"], [1, [2]],
    [[1], [1, 2]], {"a": {}}, [[[[1]]]], list(range(500)), {"__class__": "Marks"}, {"kind": "box"}, "x" * 3000,
]  # fmt: skip
TAGGED = [
    {"list": {}}, {"tuple": [[]]}, {"set": [[]]}, {"float": "nan"}, {"bytes": "!"}, {"items": [[[], 1]]},
    {"object": "os"}, {"kind": "records"}, {"array": [1, "a"], "dtype": "int64"}, {"array": [1], "dtype": "O"},
    {"array": [], "dtype": "float64", "shape": [0, 10**9]}, {"array": [[1], [1, 2]], "dtype": "float64"},
    {"dataframe": [], "index": []}, {"dataframe": [["age", "int64", [1]], ["age", "int64", [2]]], "index": [0]},
    {"series": [], "dtype": "int64"}, {"kind": "feature", "feature": {}, "within": {"kind": "feature"}},
]  # fmt: skip
VALUES += TAGGED


def damaged(rng, value):
    """The same JSON value with up to three places changed, left out or doubled."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.randint(1, 3)):
        at, key = [value], 0
        while rng.random() < 0.75 and isinstance(at[key], dict | list) and at[key]:
            at = at[key]
            key = rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
        if isinstance(at, dict) and rng.random() < 0.3:
            del at[key]
            return value
        at[key] = deepcopy(rng.choice(VALUES))
        if not isinstance(value, dict):
            return value
    return value


def as_file(rng, value):
    text = json.dumps(value)
    if rng.random() < 0.1:
        return rng.choice(
            [text[: len(text) // 2], text + text, "[" * 100_000, "", "\ufeff" + text, pickle.dumps(Marks(), 0).decode()]
        )
    return text


def replay_line(rng, place):
    known = json.loads((place / rng.choice(["witness.json", "frames.json"])).read_text())
    (place / "given.json").write_text(as_file(rng, damaged(rng, known)), encoding="utf-8")
    mechanism = rng.choice(
        [[], ["--mechanism", "mine.py:noisy"], ["--mechanism", "laplace_mechanism"], ["--mechanism", "mine.py:raises"]]
    )
    return ["replay", "given.json", "--runs", "100", "--max-time", "2s", *mechanism]


def counted(rng, data, size):
    return len(data) + rng.laplace(0, 1, size)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A working folder with files good and bad, a witness, and a mechanism that no file may reach."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "mine.py").write_text(MINE)
    (folder / "canary.py").write_text(CANARY)
    (folder / "damaged.py").write_text("def f(:\n")
    (folder / "cwd.py").write_text("raise RuntimeError('no luck')\n")
    (folder / "counts.csv").write_text("count\n5\n0\n7\n12\n3\n")
    (folder / "table.csv").write_text("a,count\n" + "".join(f"{i},{20 + i}\n" for i in range(12)))
    (folder / "people.csv").write_text("age,city\n30,Bern\n41,Basel\n,Bern\n")
    (folder / "damaged.csv").write_bytes(b"count\n1\n\xff\n")
    (folder / "pickle.csv").write_bytes(pickle.dumps(Marks()))
    (folder / "folder").mkdir()
    (folder / "folder.svg").mkdir()
    (folder / "link").symlink_to("linked")
    few = {"seed": 1, "runs": 400, "search_runs": 200, "workers": 1}
    dpw.check("laplace_mechanism", epsilon=1.0, **few).witness.save(folder / "witness.json")
    people = dpw.records({"age": dpw.integers(0, 9)}, form="dataframe", size=(0, 2))
    dpw.check(counted, claim=1.0, neighbours=people, **few).witness.save(folder / "frames.json")
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


def case(k, place):
    rng = random.Random(k)
    return rng.choice([command_line, command_line, command_line, replay_line])(rng, place)


def complaint(arguments):
    """What is wrong with how a command ended; None where nothing is."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    told = [line for line in err.getvalue().splitlines() if ": warning: " not in line and ": taking " not in line]
    leaves = any("leaves" in text for text in arguments)
    if Path("executed").exists():
        Path("executed").unlink()
        return "something was executed"
    if "Traceback" in out.getvalue() + err.getvalue():
        return "a traceback"
    if "\x1b" in out.getvalue() + err.getvalue():
        return "a control character reached the terminal"
    if code not in ((0, 1, 2, 70) if leaves else (0, 1, 2)):
        return f"exit {code}: {told}"
    if "builtins:print" in arguments:  # what a mechanism prints goes there too
        told = [line for line in told if line.startswith("dpwitness: ")]
    if code in (0, 1) and (told or not out.getvalue()):
        return f"exit {code} and {told}"
    if code == 2 and (len(told) != 1 or not told[0].startswith("dpwitness: error: ")):
        return f"exit 2 and {told}"
    return None


def test_no_command_crashes(place):
    numbers = range(FIRST, FIRST + CASES) if ONLY is None else [int(ONLY)]
    wrong = []
    for k in numbers:
        arguments = case(k, place)
        if found := complaint(arguments):
            wrong.append(f"{k}: {[a[:80] for a in arguments]}: {found}")
    assert not wrong, "\n".join(wrong)


def test_no_damaged_database_crashes(place):
    """A file of the plugin's database is data too."""
    relation = dpw.queries(1)
    database = Database(place, "database", "test_it.py::test_it")
    path = database.save(1, relation, None, dpw.Witness.load("witness.json"))
    assert database.load(1, relation).witness is not None
    known = json.loads(path.read_text())
    refused = 0
    for k in range(FIRST, FIRST + CASES):
        rng = random.Random(k)
        path.write_text(as_file(rng, damaged(rng, known)), encoding="utf-8")
        try:
            database.load(1, relation)
        except DPWitnessError:
            refused += 1
    assert refused > CASES / 4
    assert not Path("executed").exists()


@pytest.mark.parametrize(
    ("name", "outcome"), [*((name, None) for name in NAMES), ("plain", "value"), ("noisy", "raises")]
)
def test_no_mechanism_crashes_a_check(place, name, outcome):
    given = [] if outcome is None else ["--outcome", f"mine.py:{outcome}"]
    few = ["--epsilon", "1", "--runs", "100", "--max-time", "2s", "--queries", "1"]
    assert complaint(["check", f"mine.py:{name}", *few, *given]) is None
