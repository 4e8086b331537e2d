"""The notebooks run from top to bottom, in a kernel of their own, and show what they say."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
RUN_SECONDS = 280
Cell = dict[str, Any]
_read: Callable[..., Any] = nbformat.read  # it has no annotations


class _ThisPython(KernelSpecManager):
    """A kernel of this interpreter: none has to be registered, and a registered one of another Python is not taken."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        arguments = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=arguments, display_name=kernel_name, language="python")


@pytest.mark.timeout(RUN_SECONDS + 60)
def test_quickstart(tmp_path: Path) -> None:
    cells = run(NOTEBOOKS / "quickstart.ipynb", tmp_path)
    text = "\n".join(said for cell in cells for said in texts(cell))
    assert "50000 orders on the source" in text
    shown = [output["data"].get("text/html", "") for cell in cells for output in cell["outputs"] if "data" in output]
    assert any("<td>primary-&gt;secondary</td>" in html for html in shown), "the driver"
    assert "stopped cleanly: True" in text
    assert "the session lives: True" in text
    assert "60000 records are equal" in text
    table = next(said for cell in cells for said in texts(cell) if "latency" in said and "state" in said)
    assert "primary->secondary" in table
    assert "running" in table
    images = [output for cell in cells for output in cell["outputs"] if "image/png" in output.get("data", {})]
    assert len(images) == 1, "the plot of lag and rate"


@pytest.mark.timeout(RUN_SECONDS + 60)
def test_failover(tmp_path: Path) -> None:
    cells = run(NOTEBOOKS / "failover.ipynb", tmp_path)
    text = "\n".join(said for cell in cells for said in texts(cell))
    assert "the group has read 250 of 400 orders" in text
    assert "records that may be missing: None" in text
    assert text.count("not safe: []") == 2
    # Whether the group had begun with the copies of the secondary's orders, too, is the consumer's own choice.
    assert re.search(
        "start the consumers of billing on secondary; their topics there are (orders, )?primary.orders", text
    )
    assert "records not copied: 0" in text
    assert "orders: 580 read: 580 skipped: 0" in text
    assert "read twice: 0" in text
    assert "stopped cleanly: True" in text


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_what_is_committed_was_not_run(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []


def run(path: Path, folder: Path) -> list[Cell]:
    """The code cells with their outputs; a cell that fails fails the test with its traceback."""
    notebook = _read(path, as_version=4)
    manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=_ThisPython())
    resources = {"metadata": {"path": str(folder)}}
    # Of a kernel whose manager is handed in the client would leave everything running: Spark, brokers, a driver.
    NotebookClient(notebook, km=manager, timeout=RUN_SECONDS, resources=resources).execute(cleanup_kc=True)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell: Cell) -> Iterator[str]:
    """What a cell printed and showed as text."""
    for output in cell["outputs"]:
        yield output.get("text", "")
        yield output.get("data", {}).get("text/plain", "")
