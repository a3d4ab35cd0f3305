"""What is released says the same everywhere: versions, requirements, and the Pythons it is for."""

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_and_the_changelog_have_the_version_and_its_day():
    citation = (ROOT / "CITATION.cff").read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    sections = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", changelog, re.MULTILINE)
    assert sections[0] == ("Unreleased", "")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [PROJECT["version"]]
    assert [sections[1]] == [(PROJECT["version"], day) for day in re.findall(r"^date-released: (.+)$", citation, re.M)]
    of_this_version = changelog.partition(f"## [{PROJECT['version']}]")[2].partition("\n## [")[0]
    assert re.findall(r"^### (.+)$", of_this_version, re.MULTILINE) == ["Added", "Changed", "Removed", "Fixed"]


def test_the_changelog_is_short_and_an_entry_is_a_line():
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 120
    assert all(re.match(r"- \S|#+ |$", line) for line in lines[4:] if not line.startswith("A verdict or a claim"))


def test_no_other_version_stands_in_the_readme_and_the_documentation():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    named = {(page.name, v) for page in pages for v in re.findall(r"dpwitness[ =]*v?(\d+\.\d+\.\d+)", page.read_text())}
    assert {version for _, version in named} <= {PROJECT["version"]}


def test_classifiers_name_pythons_that_numba_supports():
    named = [text for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", text)]
    assert len(named) > 1
    assert set(named) <= set(metadata("numba").get_all("Classifier"))
    assert PROJECT["requires-python"] == f">={named[0].rpartition(' ')[2]}"
