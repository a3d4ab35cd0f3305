"""The README has what others read from it; its blocks are run by test_docs."""

from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_first_screen_has_the_command_that_ci_runs():
    assert "$ pip install . && dpwitness check isvt3 --epsilon 0.7" in README.splitlines()[:20]
    assert "$ pip install -e '.[test]' && pytest" in README
