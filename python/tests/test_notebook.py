"""The notebook of the documentation runs, and finds the cause of its incident."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


@pytest.mark.usefixtures("binary")
def test_the_first_look_tells_the_story(monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed [python]")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed [python]")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed [python]")
    notebook = nbformat.read(NOTEBOOKS / "first_look.ipynb", as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    # Outputs in the repository would depend on the machine and the day.
    assert not any(cell.outputs or cell.execution_count for cell in code)
    source = str(NOTEBOOKS.parent / "src")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
    place = {"metadata": {"path": str(NOTEBOOKS)}}
    # Generous timeouts for busy machines: only a kernel that hangs should fail.
    client = nbclient.NotebookClient(notebook, timeout=600, startup_timeout=300, resources=place)
    client.execute()
    text = "".join(
        output.get("text", "") or output.get("data", {}).get("text/plain", "")
        for cell in code
        for output in cell.outputs
    )
    for part in (
        "host boardhost",
        "158.1 ms  apache2    /var/lib/php/sessions/",
        "sync      1461.3 ms  sync  cut at: both",
        "jbd2/sda-8",
        "write_bytes",
        "200us, 200ms or 200s",
    ):
        assert part in text, text
