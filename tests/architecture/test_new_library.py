"""A library is one new file, found by its entry point: this one has 18 lines, of which its claim takes 3."""

import random
import sys

import pytest

from dpwitness import ApproxDP, NotRefuted, Violation, check, pairs
from dpwitness.errors import InvalidParameter
from dpwitness.mechanisms.libraries import library_of, registered

LIBRARY = '''
"""Noiseworks: queries that are answered by `.answer(x)`."""

from dpwitness.claims import ApproxDP
from dpwitness.mechanisms.libraries import Library


class Noiseworks(Library):
    def recognises(self, thing):
        return type(thing).__module__ == "noiseworks"

    def function(self, thing):
        return lambda value: thing.answer(float(value))

    def claim(self, thing, d_in=None):
        return ApproxDP(epsilon=thing.privacy_loss)


LIBRARY = Noiseworks()
'''

#: What the library's users have: Laplace noise of scale 1, whose ε is 1 for a number that moves by 1.
PACKAGE = """
import random

class Query:
    def __init__(self, privacy_loss):
        self.privacy_loss = privacy_loss
        self._draw = random.Random(5)

    def answer(self, x):
        return x + self._draw.expovariate(1.0) - self._draw.expovariate(1.0)
"""


@pytest.fixture
def noiseworks(request, tmp_path, monkeypatch):
    """The installed library, and the file that makes its objects mechanisms."""
    (tmp_path / "noiseworks.py").write_text(PACKAGE)
    (tmp_path / "noiseworks_dpwitness.py").write_text(getattr(request, "param", LIBRARY).lstrip())
    metadata = tmp_path / "noiseworks-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: noiseworks\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[dpwitness.libraries]\nnoiseworks = noiseworks_dpwitness:LIBRARY\n")
    monkeypatch.syspath_prepend(tmp_path)
    registered.cache_clear()
    yield __import__("noiseworks")
    registered.cache_clear()
    for name in ("noiseworks", "noiseworks_dpwitness"):
        sys.modules.pop(name, None)


def test_a_new_library_is_one_file(noiseworks):
    assert len(LIBRARY.strip().splitlines()) == 18
    limits = {"neighbours": pairs((0.0, 1.0)), "seed": 1, "search_runs": 2_000, "runs": 20_000}
    correct, wrong = noiseworks.Query(1.0), noiseworks.Query(0.5)
    assert library_of(wrong).claim(wrong) == ApproxDP(epsilon=0.5)
    assert isinstance(check(correct, **limits), NotRefuted)
    refuted = check(wrong, **limits)
    assert isinstance(refuted, Violation)
    assert (refuted.mechanism, refuted.claim) == ("Query", ApproxDP(epsilon=0.5))


def test_without_it_the_object_is_refused(tmp_path, monkeypatch):
    (tmp_path / "noiseworks.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    query = __import__("noiseworks").Query(1.0)
    sys.modules.pop("noiseworks")
    with pytest.raises(ValueError, match="is not callable"):
        check(query, epsilon=1.0, neighbours=pairs((0.0, 1.0)))


LIMITS = {"neighbours": pairs((0.0, 1.0)), "seed": 1, "search_runs": 2_000, "runs": 20_000}


class Other:
    """An object of no library, which says its ε itself."""

    epsilon = 1.0

    def __call__(self, x):
        return x + random.expovariate(1.0) - random.expovariate(1.0)


@pytest.mark.parametrize(
    ("noiseworks", "warning"),
    [
        ("import not_installed", r"\(noiseworks_dpwitness:LIBRARY\) cannot be loaded: ModuleNotFoundError: No module"),
        ("import sys; sys.exit(1)", "cannot be loaded: SystemExit: 1; it is left out"),
        (
            "from json import loads as LIBRARY",
            "is <function loads.* and must be an object of a class derived from Library",
        ),
        (
            LIBRARY.replace("Noiseworks()", "Noiseworks"),
            "is <class .* and must be an object of a class derived from Library",
        ),
        (LIBRARY.replace("type(thing).__module__", "1 / 0"), "its recognises raised ZeroDivisionError: .* left out"),
    ],
    indirect=["noiseworks"],
)
def test_a_broken_library_hides_no_other_object(noiseworks, warning):
    with pytest.warns(UserWarning, match=f"the library 'noiseworks'.* {warning}"):
        assert library_of(Other()).claim(Other()) == ApproxDP(epsilon=1.0)


@pytest.mark.parametrize(
    "noiseworks",
    [LIBRARY.replace("ApproxDP(epsilon=", "dict(a=1)[").replace("loss)", "loss]")],
    indirect=["noiseworks"],
)
def test_what_a_library_raises_is_one_line_that_names_it(noiseworks):
    with pytest.raises(InvalidParameter, match=r"^the library 'noiseworks': its claim raised KeyError: 1\.0$"):
        check(noiseworks.Query(1.0), **LIMITS)


def with_method(method):
    """The library with one more method."""
    return LIBRARY.replace("\nLIBRARY =", f"    {method}\n\nLIBRARY =")


@pytest.mark.parametrize(
    "noiseworks", [with_method("def neighbours(self, thing): return [(0.0, 1.0)]")], indirect=["noiseworks"]
)
def test_neighbours_of_a_library_may_be_a_list_of_pairs(noiseworks):
    verdict = check(noiseworks.Query(1.0), **{**LIMITS, "neighbours": None})
    assert isinstance(verdict, NotRefuted)
