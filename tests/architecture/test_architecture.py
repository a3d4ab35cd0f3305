"""The rooms and who may import whom, by the code's own imports, string-named ones included."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import dpwitness
from dpwitness import errors
from dpwitness.proposals import family_named, registered

SOURCE = Path(dpwitness.__file__).parent
TARGETS = Path(__file__).parents[2] / "algorithms"

#: Floors of the house: a room imports from lower floors only.
FLOORS = [
    {"arrays"},
    {"errors", "exact", "roots", "_dpwitness_session"},
    {"machine"},
    {"checks", "files", "laws"},
    {"frames"},
    {"values", "codec"},
    {"claims", "neighbours", "jit", "noise"},
    {"targets", "events"},
    {"candidate"},
    {"evidence", "mechanisms"},
    {"proposals", "runs", "results"},
    {"options"},
    {"problem", "project"},
    {"search", "health"},
    {"api"},
    {"sweeps", "testing"},
    {"report"},
    {"__init__"},  # the public names: the command line uses what a user would
    {"cli", "plugin"},
    {"reconstruction"},
    {"__main__"},
]
FLOOR = {room: k for k, rooms in enumerate(FLOORS) for room in rooms}
#: Groups of entry points: names for other packages, not modules of this one.
GROUPS = {"dpwitness.targets", "dpwitness.attacks", "dpwitness.libraries", "dpwitness.describers"}
#: The package, and the modules beside it that pytest and the command line start with.
OURS = {"dpwitness", *(path.stem for path in SOURCE.parent.glob("_dpwitness_*.py"))}
NAMED = re.compile(r"dpwitness((?:\.\w+)+)(?::\w+)?")


@cache
def imports(path):
    """Modules of dpwitness that a file imports, wherever in the file, or names in a text."""
    return set(_imports(path))


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "dpwitness" else [f"dpwitness.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in GROUPS:
            named = NAMED.fullmatch(node.value)
            place = SOURCE.joinpath(*named[1].split(".")[1:]) if named else None
            if place is not None and (place.is_dir() or place.with_suffix(".py").exists()):
                names = [node.value.partition(":")[0]]
        for name in names:
            if name.partition(".")[0] in OURS:
                yield name


def room_of(module):
    name, *parts = module.split(".")
    return parts[0] if parts else "__init__" if name == "dpwitness" else name


def rooms():
    for path in sorted(SOURCE.rglob("*.py")):
        relative = path.relative_to(SOURCE).with_suffix("")
        if relative.parts[0] != "algorithms":
            yield room_of(".".join(("dpwitness", *relative.parts))), path


def reached(path):
    return {room_of(name) for name in imports(path)}


@pytest.mark.parametrize(("room", "path"), [pytest.param(*r, id=str(r[1].relative_to(SOURCE))) for r in rooms()])
def test_imports_run_one_way(room, path):
    assert room in FLOOR, f"{room} has no floor yet"
    for other in reached(path) - {room}:
        if other != "algorithms":
            assert FLOOR[other] < FLOOR[room], f"{room} must not import {other}"


def test_no_two_files_of_a_room_import_each_other():
    """Nor any circle of files, imports inside of functions included."""
    graph = {}
    for _, path in rooms():
        parts = path.relative_to(SOURCE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        graph[".".join(("dpwitness", *parts))] = imports(path)
    graph |= {path.stem: imports(path) for path in SOURCE.parent.glob("_dpwitness_*.py")}
    names = set(graph)
    for name, found in graph.items():
        graph[name] = {other for other in found & names if not name.startswith(f"{other}.")} - {name}
    done, open_ = set(), []

    def visit(name):
        assert name not in open_, " → ".join([*open_[open_.index(name) :], name])
        if name not in done:
            open_.append(name)
            for other in sorted(graph[name]):
                visit(other)
            open_.pop()
            done.add(name)

    for name in sorted(names):
        visit(name)


def test_evidence_never_sees_a_mechanism_or_a_generator():
    for path in (SOURCE / "evidence").glob("*.py"):
        assert reached(path) <= {"arrays", "claims", "candidate", "dataclass", "evidence", "roots"}


def test_attacks_never_import_evidence():
    for room, path in rooms():
        if room == "reconstruction":
            assert not {"evidence", "runs", "api", "search"} & reached(path), path


def calls(word):
    """Every call in the files of the package that hold this word, with the file's place."""
    for _, path in rooms():
        text = path.read_text()
        if word in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call):
                    yield str(path.relative_to(SOURCE)), node


def test_only_the_interface_joins_search_and_confirm():
    joining = {
        place
        for place, call in calls("confirm")
        if isinstance(call.func, ast.Attribute) and call.func.attr == "confirm"
    }
    assert joining == {"api/loop.py"}


@pytest.mark.parametrize("path", sorted(TARGETS.glob("*.py")), ids=lambda path: path.name)
def test_targets_import_what_a_user_would(path):
    code = [name for name in imports(path) if room_of(name) != "reconstruction"]  # an attack is named, not imported
    assert {room_of(name) for name in code} <= {"noise", "targets"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert {a.name for a in node.names} <= {"numpy", "math"}


def test_only_confirm_runs_make_counts():
    """Evidence cannot be computed from search runs: nothing else builds the type that it takes."""
    makers = {
        place
        for place, call in calls("Counts")
        if isinstance(call.func, ast.Name) and call.func.id == "Counts" and call.keywords
    }
    # Two imagine a number of runs: the clearest violation, and an event that happens half of the time. The codec reads
    # back what was written, by the type of a field.
    assert makers == {
        "runs/runner.py", "evidence/counts.py", "evidence/bet.py", "evidence/bounds.py",
    }  # fmt: skip


def test_a_family_has_one_name_everywhere():
    families = {"subset_sum", "table_builder", "threshold_testing"}
    folders = {path.parent.name for path in (SOURCE / "reconstruction").glob("*/__init__.py")}
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    tests = Path(__file__).parents[1] / "attacks"
    assert folders == set(registered()) == families
    for family in families:
        assert (TARGETS / f"{family}.py").is_file()
        assert family_named(family).generators
        assert list(benchmarks.glob(f"{family}_*.py"))
        assert list(tests.glob(f"test_{family}_*.py"))


def test_public_names():
    assert dpwitness.__all__ == sorted(dpwitness.__all__)
    assert set(dpwitness.__all__) == {
        "ApproxDP", "AttackStopped", "BadInput", "Bound", "Box", "BudgetTooSmall", "Claim", "ClusterLost",
        "CompiledDiffers", "Curve", "DPWitnessError", "DependentRuns", "GaussianDP", "GoodnessOfFit",
        "Interval",
        "InvalidClaim",
        "InvalidData", "InvalidNeighbours", "InvalidOutcome", "InvalidParameter", "InvalidWitness", "MechanismCrashed",
        "MechanismError", "MechanismRaised", "MechanismTimeout",
        "NotRefuted", "OneRun", "OracleFailed", "OutcomeSet", "PrivacyProfile", "Profile", "PureDP", "RenyiDP",
        "ScoreThreshold", "SlowMechanism",
        "TradeOff",
        "UnknownAttack", "UnknownTarget",
        "Violation", "Witness", "ZCDP", "bits", "bound", "categories", "check", "command", "curve", "flags", "follows",
        "histogram", "integers", "like", "numbers", "one_run", "pairs", "profile", "queries", "records", "remote",
        "replay", "shrink", "sql", "sweep", "target", "testing", "text",
    }  # fmt: skip
    for name in dpwitness.__all__:
        assert getattr(dpwitness, name) is not None
    with pytest.raises(AttributeError, match="prove"):
        dpwitness.prove  # noqa: B018  # the access itself is the test


def test_all_that_a_user_may_catch_is_public():
    """What the tree of `errors` draws as internal is caught inside."""
    drawn = {name for name, value in vars(errors).items() if isinstance(value, type)}
    internal = {name for name in drawn if re.search(rf"{name} .*\(internal\)", errors.__doc__)}
    assert internal == {"CompiledDisagrees", "RunsEnded"}
    for name in drawn - internal:
        assert getattr(dpwitness, name) is getattr(errors, name)
        assert name in errors.__doc__


@pytest.mark.parametrize("folder", ["benchmarks", "museum"])
def test_names_that_scripts_beside_the_package_import_are_there(folder):
    """No test runs these scripts: their own imports run here."""
    for path in sorted((SOURCE.parents[1] / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "dpwitness":
                exec(ast.unparse(node), {})


def test_the_readme_of_the_benchmarks_names_each_script():
    folder = SOURCE.parents[1] / "benchmarks"
    assert set(re.findall(r"`(\w+\.py)`", (folder / "README.md").read_text())) == {p.name for p in folder.glob("*.py")}


def test_no_text_file_is_opened_in_the_encoding_of_the_locale():
    """It may be ASCII; `files.read_text` reads UTF-8."""
    opening = re.compile(r"(.*\.)?fdopen|(?!os\.)(.*\.)?open|.*\.(read|write)_text")
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and opening.fullmatch(ast.unparse(node.func)):
                binary = any(isinstance(one, ast.Constant) and "b" in str(one.value) for one in node.args)
                assert binary or "encoding" in {one.arg for one in node.keywords}, f"{path.name}:{node.lineno}"


def test_no_module_hides_a_public_name():
    """A module of the name of a function takes its place in the package once anything imports it."""
    modules = {path.stem for path in SOURCE.iterdir()} - {"testing"}  # a public name itself
    assert not modules & set(dpwitness.__all__)
