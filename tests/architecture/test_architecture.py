"""The rooms and who may import whom, by the code's own imports."""

import ast
from pathlib import Path

import pytest

import dpwitness
from dpwitness.attacks.registry import registered

SOURCE = Path(dpwitness.__file__).parent
TARGETS = Path(__file__).parents[2] / "algorithms"

#: Floors of the house: a room imports from lower floors only.
FLOORS = [
    {"errors", "clock", "cache"},
    {"claim", "neighbours", "jit"},
    {"counts", "noise", "targets", "exact", "files"},
    {"events"},
    {"evidence", "mechanisms"},
    {"runs"},
    {"search", "results", "attacks"},
    {"job", "report"},
    {"preparation", "health"},
    {"pipeline", "curves"},
    {"rerun"},
    {"cli", "plugin"},
    {"commands"},
    {"__init__", "__main__"},
]
FLOOR = {room: k for k, rooms in enumerate(FLOORS) for room in rooms}
#: A convenience of the interface: `Witness.replay()` reaches upstairs when it is called.
EXCEPTIONS = {("results", "rerun"), ("preparation", "health")}


def imports(path):
    """Rooms of dpwitness that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "dpwitness" else [f"dpwitness.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "dpwitness":
                yield parts[1] if len(parts) > 1 else "__init__"


def rooms():
    for path in sorted(SOURCE.rglob("*.py")):
        relative = path.relative_to(SOURCE)
        if relative.parts[0] != "algorithms":
            # An attack's command and report belong to the command line, though they lie with their family.
            door = relative.parts[0] == "attacks" and path.stem in ("command", "report", "options")
            yield "commands" if door else relative.parts[0].removesuffix(".py"), path


@pytest.mark.parametrize(("room", "path"), [pytest.param(*r, id=str(r[1].relative_to(SOURCE))) for r in rooms()])
def test_imports_run_one_way(room, path):
    assert room in FLOOR, f"{room} has no floor yet"
    for other in set(imports(path)) - {room}:
        if (room, other) not in EXCEPTIONS:
            assert FLOOR[other] < FLOOR[room], f"{room} must not import {other}"


def test_evidence_never_sees_a_mechanism_or_a_generator():
    assert set(imports(SOURCE / "evidence.py")) == {"claim", "counts"}


def test_attacks_never_import_evidence():
    for path in (SOURCE / "attacks").rglob("*.py"):
        assert not {"evidence", "runs", "job", "pipeline", "search"} & set(imports(path)), path


@pytest.mark.parametrize("path", sorted(TARGETS.glob("*.py")), ids=lambda path: path.name)
def test_targets_import_what_a_user_would(path):
    assert set(imports(path)) <= {"noise", "targets"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert {a.name for a in node.names} <= {"numpy", "math"}


def test_only_confirm_runs_make_counts():
    """Evidence cannot be computed from search runs: nothing else builds the type that it takes."""
    makers = set()
    for room, path in rooms():
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "Counts"
                and node.keywords
            ):
                makers.add(room)
    # `evidence.runs_needed` imagines the clearest violation; `results` reads back what was written.
    assert makers == {"runs", "counts", "results", "evidence"}


def test_attacks_stay_small():
    for path in (SOURCE / "attacks").rglob("*.py"):
        text = path.read_text()
        assert len(text.splitlines()) <= 250, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 50, f"{path}: {node.name}"


def test_a_family_has_one_name_everywhere():
    families = {"subset_sum", "table_builder", "threshold_testing"}
    folders = {path.parent.name for path in (SOURCE / "attacks").glob("*/__init__.py")}
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    tests = Path(__file__).parents[1] / "attacks"
    assert folders == set(registered()) == families
    for family in families:
        assert (TARGETS / f"{family}.py").is_file()
        assert list(benchmarks.glob(f"{family}_*.py"))
        assert list(tests.glob(f"test_{family}_*.py"))


def test_modules_stay_small():
    for _, path in rooms():
        assert len(path.read_text().splitlines()) <= 400, path


def test_public_names():
    assert dpwitness.__all__ == sorted(dpwitness.__all__)
    assert set(dpwitness.__all__) == {
        "Bound", "Box", "Claim", "Curve", "DPWitnessError", "Interval", "NotRefuted", "OutcomeSet", "ScoreThreshold",
        "Violation", "Witness", "bits", "bound", "check", "curve", "histogram", "pairs", "queries", "replay", "shrink",
        "target",
    }  # fmt: skip
    for name in dpwitness.__all__:
        assert getattr(dpwitness, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'prove'"):
        dpwitness.prove  # noqa: B018  # the access itself is the test


def test_no_module_hides_a_public_name():
    """A module of the name of a function takes its place in the package once anything imports it."""
    modules = {path.stem for path in SOURCE.iterdir()}
    assert not modules & set(dpwitness.__all__)
