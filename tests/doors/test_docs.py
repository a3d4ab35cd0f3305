"""Every block of README.md and of docs/ is run, and every shown output is compared with the real one, line by line.

A page is read from top to bottom in an empty folder.

- `python`: run; the blocks of a page share their names. One that begins with `# name.py` is written to that file.
- `console`: each line that begins with `$ ` is run; the lines below it are its output.
- `text`: the output of the block before it. `…` stands for anything, and on a line of its own for any lines.
- `yaml`, `toml`, `json`: read. One that begins with `# name.yaml` is written to that file.
- `sh` and languages other than these cannot be run here: `NOT_RUN` has the reason for each.
"""

import contextlib
import importlib.util
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_lines import commands

import dpwitness as dpw
from _dpwitness_pytest import OPTIONS as SESSION_OPTIONS
from dpwitness.cli import main
from dpwitness.options import HEALTH_CHECKS
from dpwitness.results.schema import schemas

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```([\w-]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"# ([\w./-]+\.(?:py|toml|ya?ml))\n")

#: Every block that is not run: its page and first line, and why.
NOT_RUN = {
    ("ci.md", "$ dpwitness compare main-dp.json dp.json"): "needs reports of two branches; see test_commands.py",
    ("comparison.md", "$ python -m museum --list"): "makes environments with other packages; see test_museum.py",
    ("comparison.md", "$ python benchmarks/compare_testers.py --tool dpwitness"): (
        "takes minutes, and checkouts of other testers; test_compared_testers.py looks at the mechanisms"
    ),
    ("effort.md", "$ pip install '.[cluster]'"): "needs a Dask scheduler at an address",
    ("sweep.md", "$ dpwitness sweep diffprivlib.tools --output sweep.jsonl"): "takes ten minutes",
    ("command.md", "$ dpwitness check --command './release 3' --seeded --epsilon 1 --pair '[1, 1]' '[1]'"): (
        "needs a compiled program; the block above runs the same by dpw.command"
    ),
    (
        "command.md",
        "$ dpwitness check release.py:noisy_count --python old/bin/python --epsilon 1 --pair '[1, 1]' '[1]'"
    ): "needs another environment; the block above runs the same by dpw.remote",
}  # fmt: skip
#: Modules of the extra `libraries`, and Opacus; blocks that import one are left out where it is missing.
LIBRARIES = ("diffprivlib", "opacus", "opendp", "pydp")
#: What .ci/run does in new environments.
INSTALL = "pip install"


@dataclass
class Block:
    """A block of a page."""

    language: str
    text: str

    @property
    def first_line(self):
        return self.text.splitlines()[0]

    @property
    def libraries(self):
        """Those of `LIBRARIES` that it imports, or whose functions it checks."""
        imported = re.findall(r"^(?:import|from|\$ dpwitness check) (\w+)", self.text, re.MULTILINE)
        return [name for name in imported if name in LIBRARIES]

    @property
    def missing(self):
        """Those of them that are not installed."""
        return [name for name in self.libraries if importlib.util.find_spec(name) is None]


def blocks_of(page):
    """The blocks of a page, but those that Sphinx itself reads, whose language is in braces."""
    return [Block(*found.groups()) for found in BLOCK.finditer(page.read_text())]


def pattern(shown):
    """The regular expression of the outputs that are as shown."""
    lines = []
    for line in shown.rstrip("\n").split("\n"):
        if line.strip(" E") == "…":
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(".*".join(map(re.escape, line.rstrip().split("…"))) + r" *\n")
    return re.compile("".join(lines))


def assert_shown(shown, printed, what):
    """Compare a shown output with the real one."""
    lines = printed.rstrip("\n") + "\n"
    assert pattern(shown).fullmatch(lines), f"{what}\n--- shown:\n{shown}\n--- printed:\n{lines}"


class Reader:
    """Does what a page says, in a folder of its own."""

    def __init__(self, folder, capsys):
        self.folder = folder
        self.capsys = capsys
        self.names = {"__name__": "docs"}

    def python(self, text):
        """Run a program, or write it to its file."""
        if named := NAME.match(text):
            self.write(named[1], text)
            return ""
        exec(compile(text, "a block", "exec"), self.names)
        return self.capsys.readouterr().out

    def write(self, name, text):
        """Write a file that a page shows."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.suffix == ".py":
            compile(text, name, "exec")

    def command(self, line, shown):
        """Run a command line; return what it prints: its result, or the error that is shown."""
        if line.startswith(INSTALL):
            return ""
        program, *words = shlex.split(line)
        self.capsys.readouterr()
        match program:
            case "dpwitness":
                code = main(words)
                printed = self.capsys.readouterr()
                assert code in ((2,) if shown.startswith("dpwitness:") else (0, 1)), printed.err
                return printed.err if code == 2 else printed.out
            case "python":
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    runpy.run_path(words[0], run_name="__main__")
                return out.getvalue()
            case "pytest":
                # In a process of its own: NumPy can be loaded only once, and pytester drops what an inner run imports.
                call = [sys.executable, "-m", "pytest", *words]
                environment = {**os.environ, "PYTEST_ADDOPTS": "--dp-max-time=60s"}  # the page's own options come later
                done = subprocess.run(call, cwd=self.folder, capture_output=True, text=True, env=environment)
                assert done.returncode in (0, 1), done.stdout + done.stderr
                return done.stdout
        raise AssertionError(f"nobody knows how to run {line!r}: make it a block of sh, in NOT_RUN")

    def console(self, text):
        """Run each command of a block; return the output of the last one, where none is shown below it."""
        parts = re.split(r"^\$ ", text.replace("\\\n", ""), flags=re.MULTILINE)
        assert not parts[0], parts[0]
        printed = ""
        for part in parts[1:]:
            line, _, shown = part.partition("\n")
            printed = self.command(line, shown)
            if shown.strip():
                assert_shown(shown, printed, line)
        return printed


def marked(page):
    needs_library = any(block.libraries for block in blocks_of(page))
    return pytest.param(page, marks=[pytest.mark.campaign] + [pytest.mark.library] * needs_library)


@pytest.mark.parametrize("page", [marked(page) for page in PAGES], ids=lambda page: page.name)
def test_a_page_does_what_it_says(page, tmp_path, capsys, monkeypatch):
    missing = {name for block in blocks_of(page) for name in block.missing}
    if missing - {"opacus"}:  # .ci/run has these once more with the libraries, but for Opacus
        pytest.skip(f"{page.name} needs {', '.join(sorted(missing))}: pip install '.[libraries]'")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    reader, printed, left_out = Reader(tmp_path, capsys), None, set()
    with warnings.catch_warnings():
        for kind in (dpw.SlowMechanism, dpw.CompiledDiffers):  # the pages say so
            warnings.simplefilter("ignore", kind)
        for block in blocks_of(page):
            if block.missing:
                left_out.update(block.missing)
                printed = None
            elif block.language == "python":
                printed = reader.python(block.text)
            elif block.language == "console":
                printed = reader.console(block.text)
            elif block.language == "text":
                if printed is not None:
                    assert_shown(block.text, printed, page.name)
            elif block.language in READERS:
                READERS[block.language](block.text)
                if named := NAME.match(block.text):
                    reader.write(named[1], block.text)
            else:
                assert (page.name, block.first_line) in NOT_RUN, "say in NOT_RUN why it cannot be run"
    if left_out:
        pytest.skip(f"blocks of {page.name} need {', '.join(sorted(left_out))}: pip install '.[libraries]' opacus")


def read_yaml(text):
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with dask")
    assert yaml.safe_load(text)


READERS = {"yaml": read_yaml, "toml": tomllib.loads, "json": json.loads}


def test_all_that_is_not_run_is_on_a_page():
    on_pages = {
        (page.name, block.first_line)
        for page in PAGES
        for block in blocks_of(page)
        if block.language not in ("python", "console", "text", *READERS)
    }
    assert set(NOT_RUN) == on_pages


def test_every_page_is_in_the_table_of_contents():
    listed = re.findall(r"^(?:.*<)?([a-z_-]+)>?$", (ROOT / "docs/index.md").read_text(), re.MULTILINE)
    assert {page.stem for page in PAGES[1:]} - {"index"} <= set(listed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_whole(page):
    """No rest of a merge and no section twice; its links lead somewhere, and the names in its text exist."""
    text = page.read_text()
    assert not re.findall(r"^(?:<{7}|={7}|>{7})", text, re.MULTILINE)
    headings = re.findall(r"^#+ .*$", BLOCK.sub("", text), re.MULTILINE)
    assert sorted(headings) == sorted(set(headings))
    for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text):
        assert (page.parent / target).exists(), target
    for name in re.findall(r"\bdpw\.([A-Za-z_]\w*)", text):
        assert hasattr(dpw, name), name


def test_a_difference_of_one_line_is_seen():
    assert_shown("a …\n…\nz\n", "a 1\nb\nc\nz\n", "")
    for printed in ("a 1\nb\n", "b\nz\n", "a 1\nz\nz1\n"):
        with pytest.raises(AssertionError):
            assert_shown("a …\n…\nz\n", printed, "")


def test_every_error_and_health_check_has_its_line():
    """On the page that says why a check was refused."""
    page = (ROOT / "docs/refused.md").read_text()
    errors = [name for name in dpw.__all__ if isinstance(getattr(dpw, name), type)]
    errors = [name for name in errors if issubclass(getattr(dpw, name), Exception)]
    missing = [name for name in (*errors, *HEALTH_CHECKS) if f"`{name}`" not in page and f"`dpw.{name}`" not in page]
    assert not missing


def test_every_key_of_a_saved_result_is_described():
    page = (ROOT / "docs/results.md").read_text()
    parts = {name: part for schema in schemas().values() for name, part in schema["$defs"].items()}
    files = ("Violation", "NotRefuted", "Bound", "Curve", "PValueCurve", "CurveTest", "Profile", "Witness")
    keys = {key for name in files for key in parts[name]["properties"]}
    assert not [key for key in sorted(keys) if f"`{key}`" not in page]


def test_options_in_the_text_exist():
    """Those of other programs too."""
    known = {"--version", "--traceback", "--junitxml", "--extra", "--help"}
    known.update(f"--dp-{name}" for name in SESSION_OPTIONS)
    for _, command in commands():
        known.update(name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts))
    known.update(re.findall(r'"(--[a-z]+)"', (ROOT / "museum" / "__main__.py").read_text()))
    for page in PAGES:
        text = BLOCK.sub("", page.read_text())
        for name in re.findall(r"`(--[a-z][a-z0-9-]*)", text):
            assert name in known, f"{page.name}: {name}"


def test_the_first_screen_of_the_readme_has_the_command_that_ci_runs():
    readme = PAGES[0].read_text()
    assert "$ pip install . && dpwitness check isvt3 --epsilon 0.7" in readme.splitlines()[:20]
    assert "$ pip install -e '.[test]' && pytest" in readme
