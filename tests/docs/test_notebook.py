# SPDX-License-Identifier: Apache-2.0
"""The notebook of examples/notebooks runs completely, and shows the documented output."""

from __future__ import annotations

import runpy
from pathlib import Path

from patience import PATIENCE
from peers import needs

ROOT = Path(__file__).resolve().parents[2]


@needs("nbclient", "ipykernel", "pandas", "matplotlib", "plotly")
def test_notebook_runs(tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    runpy.run_path(str(ROOT / "tests" / "cli" / "runs.py"))["write_experiment"](tmp_path / "heat.runs")
    notebook = nbformat.read(ROOT / "examples" / "notebooks" / "tutorial.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not kept in the repository"
    NotebookClient(notebook, timeout=PATIENCE, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"text/html", "image/png", "application/vnd.plotly.v1+json"} <= kinds
    pages = "".join(output.get("data", {}).get("text/html", "") for output in outputs)
    assert "<td>main-&gt;sweep</td><td>blocks</td><td>30·n³/p</td>" in pages
