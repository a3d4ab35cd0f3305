"""Names of mechanisms: files, modules and registered targets."""

import os
import sys
from importlib import import_module
from importlib.metadata import EntryPoint
from pkgutil import iter_modules

import pytest

from dpwitness import algorithms
from dpwitness.cli import main
from dpwitness.errors import UnknownTarget
from dpwitness.mechanisms import catalog
from dpwitness.mechanisms.catalog import load, load_code, load_registered
from dpwitness.targets import target_of

LATE = """
def noisy(rng, data):
    import late_helper_of_a_mechanism
    return late_helper_of_a_mechanism.VALUE
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder that is not yet on the path, as for an installed script."""
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", os.getcwd())])
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(f"{tmp_path.parent}{os.sep}"):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        *((name, "must be path/file") for name in (":f", "mod:", "mine.py:", "a:b:", "mine.py::f")),
        *((name, "not the name of a module") for name in ("..:f", ".relative:f", "a..b:f")),
        ("a\0b:f", "cannot be loaded"),
        (f"{'n' * 300}.py:f", "File name too long"),
        ("os:path..join", "has no"),
        ("os:sep", "os:sep is a str"),
    ],
)
def test_odd_names_are_refused(name, told):
    with pytest.raises(UnknownTarget, match=told):
        load(name)


#: By text: what is told of a file that raises while it is imported, or when a name is looked up.
RAISING = {
    "raise ValueError('no luck')": "ValueError: no luck",
    "import no_such_module_xyz": "No module",
    "def f(:": "Syntax",
    "1 / 0": "division",
    "class Panic(BaseException): pass\nraise Panic('no luck')": "Panic: no luck",  # as a library in Rust raises
}


@pytest.mark.parametrize("text", RAISING)
def test_code_that_raises_while_it_is_imported(folder, text):
    (folder / "raises_on_import.py").write_text(f"{text}\n")
    for name in ("raises_on_import:f", "raises_on_import.py:f"):
        with pytest.raises(UnknownTarget, match=f"raises_on_import.*{RAISING[text]}"):
            load(name)
        assert "raises_on_import" not in sys.modules
        assert "_dpwitness_file_raises_on_import" not in sys.modules


def test_a_module_of_the_working_folder(folder):
    (folder / "package_here").mkdir()
    (folder / "package_here" / "module.py").write_text(LATE)
    (folder / "late_helper_of_a_mechanism.py").write_text("VALUE = 7\n")
    noisy = load_code("package_here.module:noisy")
    assert noisy(None, None) == 7  # what it imports when it runs is found too
    assert sys.path.index(str(folder)) == len(sys.path) - 1  # behind the libraries, which it must not replace


#: By text of a module that is an entry point: the error of the target that bears the entry point's name.
NO_TABLES = {
    "import no_such_module_xyz": UnknownTarget,
    "": UnknownTarget,
    "import sys; sys.exit(0)": SystemExit,
    "TARGETS = 3": UnknownTarget,
}


def test_one_entry_point_registers_the_targets_of_a_table(folder, monkeypatch):
    """A module that cannot be imported, leaves, or has no table hides no other target."""
    theirs = "TARGETS = {name: 'their_package:f' for name in ('svt', 'theirs')}\ndef f(rng, data):\n    return 0\n"
    for number, text in enumerate([theirs, *NO_TABLES]):
        (folder / f"package_{number}.py").write_text(text.replace("their_package", "package_0"))
    monkeypatch.syspath_prepend(folder)
    ours = catalog.entry_points(group=catalog.TARGET_GROUP)
    points = [EntryPoint(f"all_{k}", f"package_{k}", catalog.TARGET_GROUP) for k in range(1 + len(NO_TABLES))]
    monkeypatch.setattr(catalog, "entry_points", lambda group: [*points, *ours])
    assert load_registered("svt").__module__ == "dpwitness.algorithms.sparse_vector"
    assert "package_0" not in sys.modules  # a bundled target is found without the code of other packages
    assert set(catalog.registered()) == {*algorithms.TARGETS, "theirs", "all_1", "all_2", "all_3", "all_4"}
    assert load_registered("theirs")(None, None) == 0
    for number, error in enumerate(NO_TABLES.values(), 1):
        with pytest.raises(error, match=f"all_{number}" if error is UnknownTarget else None):
            load_registered(f"all_{number}")
    assert main(["list"]) == 0


def test_the_table_has_every_marked_function():
    modules = [import_module(f"dpwitness.algorithms.{one.name}") for one in iter_modules(algorithms.__path__)]
    marked = {name for module in modules for name, value in vars(module).items() if target_of(value)}
    assert marked | {"subset_sum_reconstruction"} == set(algorithms.TARGETS)
