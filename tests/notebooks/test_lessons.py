"""Every lesson runs from top to bottom in a real kernel; its claims are asserted in its cells."""

from __future__ import annotations

import os
import pathlib
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from tests.limits import HANG_S

LESSONS = sorted((pathlib.Path(__file__).parents[2] / "notebooks").glob("0*.ipynb"))


def test_there_are_eight_lessons_with_their_numbers():
    titles = [nbformat.read(path, as_version=4).cells[0].source.splitlines()[0] for path in LESSONS]
    assert [path.name[:2] for path in LESSONS] == [f"0{number}" for number in range(1, 9)]
    assert [title[:5] for title in titles] == [f"# {number}. " for number in range(1, 9)]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """A kernel of this very interpreter that finds this source tree."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import KernelManager

    folder = tmp_path_factory.mktemp("kernels") / "lesson"
    folder.mkdir()
    command = f'["{sys.executable}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]'
    (folder / "kernel.json").write_text(f'{{"argv": {command}, "display_name": "lesson", "language": "python"}}')
    specs = KernelSpecManager(kernel_dirs=[str(folder.parent)])
    return lambda: KernelManager(kernel_name="lesson", kernel_spec_manager=specs)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_lesson_runs_and_its_claims_hold(path, kernel, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    root = str(path.parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    manager = kernel()
    client = NotebookClient(notebook, km=manager, timeout=int(HANG_S), resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env=environment, cleanup_kc=True)  # of a manager that it was given it would leave the kernel running
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_lesson_is_as_it_should_be(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code), "outputs are stripped"
    solutions = [cell for cell in code if "solution" in cell.metadata.get("tags", [])]
    assert len(solutions) == 2
    assert all("assert " in cell.source for cell in solutions)
    assert sum("## Exercise" in cell.source for cell in notebook.cells) == 2
