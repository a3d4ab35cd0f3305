"""Results in notebooks: a real notebook is executed; and as plots of matplotlib."""

import pytest

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
    for outputs, text in zip(shown[1:4], ("VIOLATED: noisy_sum", "ε ≥ ", "noisy_sum"), strict=True):
        (data,) = outputs
        assert text in data["text/html"]
        assert "text/plain" in data
    assert any("image/png" in data for data in shown[4])
