"""Plots of results: axes of matplotlib, with a legend that names every line."""

from dataclasses import replace

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from report_pages import results

import dpwitness as dpw

mpl.use("agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def test_what_a_claim_allows_is_shown_where_one_was_tested():
    """A claim of ε = 0 allows δ; a bound tests none, whatever its δ."""
    found = results()["violation"]
    for claim, tested in ((dpw.ApproxDP(0.0, 0.2), found), (dpw.ApproxDP(1.0, 0.01), results()["bound"])):
        given = replace(tested, witness=replace(tested.witness, claim=claim))
        allowed = given.counts.neighbour_hits / given.counts.runs + 0.2
        drawn = [line.get_label() for line in given.plot(Figure().add_subplot()).lines]
        labels = [label for label in drawn if label.startswith("allowed")]
        assert labels == ([f"allowed on D at the rate seen on D′: {allowed:.4g}"] if tested is found else [])
        assert (f"allowed on D at the rate seen on D′: {allowed:.4g}" in given.to_html()) == (tested is found)
        assert ("allow" in str(given)) == (tested is found)
