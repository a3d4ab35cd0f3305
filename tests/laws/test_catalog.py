import os
import sys
from importlib.metadata import EntryPoint

import pytest

from dpwitness.cli import main
from dpwitness.errors import UnknownTarget
from dpwitness.mechanisms import catalog
from dpwitness.mechanisms.catalog import load, load_code, load_registered

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


@pytest.mark.parametrize("name", [":f", "mod:", ":", "mine.py:", "a:b:", "mine.py::f"])
def test_half_a_name_is_refused(name):
    with pytest.raises(UnknownTarget, match=r"must be path/file\.py:FUNCTION or package\.module:OBJECT"):
        load(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("..:f", "is not the name of a module: give a file"),
        (".relative:f", "is not the name of a module: give a file"),
        ("a..b:f", "is not the name of a module: give a file"),
        ("a\0b:f", "cannot be loaded"),
        ("a\0b.py:f", "there is no file|cannot read"),
        (f"{'n' * 300}.py:f", "cannot read .*File name too long"),
        (".py:f", "there is no file"),
        ("os:path..join", "has no"),
        ("os:sep", "os:sep is a str: give the name of a function"),
    ],
)
def test_odd_names_are_refused(name, message):
    with pytest.raises(UnknownTarget, match=message):
        load(name)


@pytest.mark.parametrize("line", ["raise ValueError('no luck')", "import no_such_module_xyz", "def f(:", "1 / 0"])
def test_code_that_raises_while_it_is_imported(folder, line):
    (folder / "raises_on_import.py").write_text(line + "\n")
    for name in ("raises_on_import:f", "raises_on_import.py:f"):
        with pytest.raises(UnknownTarget, match=r"raises_on_import.*(ValueError: no luck|No module|Syntax|division)"):
            load(name)
        assert "raises_on_import" not in sys.modules
        assert "_dpwitness_file_raises_on_import" not in sys.modules


def test_names_that_raise_when_they_are_looked_up(folder):
    (folder / "odd_module.py").write_text("def __getattr__(name):\n    raise ValueError('no luck')\n")
    with pytest.raises(UnknownTarget, match="odd_module:f cannot be loaded: ValueError: no luck"):
        load("odd_module:f")


def test_a_panic_while_it_is_imported(folder):
    """As a library in Rust raises: no `Exception`."""
    (folder / "panics.py").write_text("class Panic(BaseException): pass\nraise Panic('no luck')\n")
    for name in ("panics:f", "panics.py:f"):
        with pytest.raises(UnknownTarget, match=r"panics.*: Panic: no luck"):
            load(name)


@pytest.mark.parametrize("where", ["file", "module"])
def test_code_that_leaves_while_it_is_imported(folder, where):
    (folder / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(SystemExit):
        load("leaves.py:f" if where == "file" else "leaves:f")
    assert "_dpwitness_file_leaves" not in sys.modules


def test_a_module_of_the_working_folder(folder):
    (folder / "package_here").mkdir()
    (folder / "package_here" / "module.py").write_text(LATE)
    (folder / "late_helper_of_a_mechanism.py").write_text("VALUE = 7\n")
    noisy = load_code("package_here.module:noisy")
    assert noisy(None, None) == 7  # what it imports when it runs is found too
    assert sys.path.index(str(folder)) == len(sys.path) - 1  # behind the libraries, which it must not replace


def test_a_file_finds_its_neighbours_when_it_runs(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "mine.py").write_text(LATE)
    (elsewhere / "late_helper_of_a_mechanism.py").write_text("VALUE = 8\n")
    assert load(f"{elsewhere}/mine.py:noisy")(None, None) == 8


@pytest.fixture
def broken(folder, monkeypatch):
    """One target whose package cannot be imported, and one whose package leaves."""
    (folder / "broken_package.py").write_text("import no_such_module_xyz\n")
    (folder / "leaving_package.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(folder)
    ours = catalog.entry_points(group=catalog.TARGET_GROUP)
    theirs = [
        EntryPoint("broken_target", "broken_package:f", catalog.TARGET_GROUP),
        EntryPoint("leaving_target", "leaving_package:f", catalog.TARGET_GROUP),
        EntryPoint("odd_target", "this is no entry point", catalog.TARGET_GROUP),
    ]
    monkeypatch.setattr(catalog, "entry_points", lambda group: [*ours, *theirs])


def test_one_broken_target_hides_no_other(broken, capsys):
    assert main(["list"]) == 0
    printed = capsys.readouterr()
    assert "isvt3" in printed.out
    assert "svt_single_noise" in printed.out  # behind the broken ones in the alphabet
    warnings = printed.err.splitlines()
    assert len(warnings) == 3
    for line, name in zip(warnings, ("broken_target", "leaving_target", "odd_target"), strict=True):
        assert line.startswith("dpwitness: warning: target ")
        assert name in line


def test_a_broken_target_says_whose_it_is(broken):
    with pytest.raises(UnknownTarget, match=r"target 'broken_target' \(broken_package:f\) cannot be loaded: Module"):
        load_registered("broken_target")
