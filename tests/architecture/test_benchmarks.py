"""Benchmarks: each writes a section of RESULTS.md, and documentation links to sections that are there."""

import ast
import re
from pathlib import Path

import results

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(one for one in (ROOT / "benchmarks").glob("*.py") if one.stem != "results")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def headings(path):
    return re.findall(r"^## (.+)$", path.read_text(), re.MULTILINE)


def titles_of(script):
    """The titles of the sections that a script passes to `finish`, as literals or in a variable `title`."""
    nodes = list(ast.walk(ast.parse(script.read_text())))
    found = [node.args[1] for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func)[-6:] == "finish"]
    found += [node.value for node in nodes if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "title"]
    found = [one for value in found for one in (getattr(value, "body", value), getattr(value, "orelse", value))]
    return {one.value for one in found if isinstance(one, ast.Constant)}


def test_every_script_writes_a_section_of_its_own():
    titles = {script.stem: titles_of(script) for script in SCRIPTS}
    assert all(titles.values())
    every = [title for found in titles.values() for title in found]
    assert len(every) == len(set(every))
    assert set(headings(results.RESULTS)) <= set(every)


def anchor(title):
    """The anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def links(page):
    return re.findall(r"\]\([^)]*RESULTS\.md#?([^)]*)\)", page.read_text())


def test_links_to_the_results_name_a_section():
    anchors = {anchor(title) for title in headings(results.RESULTS)}
    for page in PAGES:
        assert set(links(page)) <= anchors, page.name


def test_the_readme_names_the_pages_that_quote_a_script():
    rows = re.findall(r"^\| `(\w+)\.py`.*\| (.*)\|$", (ROOT / "benchmarks" / "README.md").read_text(), re.MULTILINE)
    for script, pages in rows:
        written = {anchor(title) for title in titles_of(ROOT / "benchmarks" / f"{script}.py")}
        assert pages.split() == [page.name for page in PAGES if written & set(links(page))], script
