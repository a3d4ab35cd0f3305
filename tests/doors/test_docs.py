"""Every Python block of the new pages of the documentation is run, and its shown output is compared."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("ci.md", "claims.md", "datasets.md", "effort.md", "tutorial.md")


@pytest.mark.parametrize("page", PAGES)
def test_blocks_print_what_is_shown(page, capsys):
    blocks = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", (DOCS / page).read_text(), re.DOTALL)
    assert blocks
    names = {"__name__": "docs"}
    for program, shown in blocks:
        exec(compile(program, page, "exec"), names)
        printed = capsys.readouterr().out.splitlines()
        expected = [line for line in shown.splitlines() if line.strip() != "…"]
        assert printed[: len(expected)] == expected
