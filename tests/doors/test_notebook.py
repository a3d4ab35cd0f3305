"""Results in notebooks: a real notebook is executed; and as plots of matplotlib."""

import re

import pytest
from report_pages import results

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

CELLS = (
    "import dpwitness as dpw\n"
    "def noisy_sum(rng, data, epsilon):\n"
    "    return data.sum() + rng.laplace(0, 0.5 / epsilon)\n"
    "given = {'epsilon': 1.0, 'neighbours': dpw.pairs(([1, 1], [2, 1])), 'runs': 50_000, 'seed': 1}\n"
    "verdict = dpw.check(noisy_sum, **given)",
    "verdict",
    "dpw.bound(noisy_sum, **given)",
    "dpw.profile(noisy_sum, **given)",
    "ax = verdict.plot()",
)


@pytest.mark.campaign
def test_a_notebook_shows_results(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    shown = [[output.get("data", {}) for output in cell.outputs] for cell in notebook.cells]
    for outputs, text in zip(shown[1:4], ("Violated", "Lower bound", "Privacy profile"), strict=True):
        (data,) = outputs
        assert text in data["text/html"]
        assert "<svg" in data["text/html"]
        assert "text/plain" in data
    assert any("image/png" in data for data in shown[4])


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["violation", "pass", "cells", "bound", "curve", "profile"])
def test_a_block_is_compact_and_keeps_its_style_to_itself(kind):
    text = results()[kind]._repr_html_()
    assert len(text) < 60_000
    style = re.sub(r"/\*.*?\*/", "", text[text.index("<style>") + 7 : text.index("</style>")], flags=re.DOTALL)
    selectors = [rule.split("{")[0] for rule in style.split("}") if rule.strip()]
    assert all(part.strip().startswith(".dpw") for rule in selectors for part in rule.split(","))
    assert text.count("<h") == 0
