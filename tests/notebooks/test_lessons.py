"""Every lesson runs from top to bottom in a real kernel; its claims are asserted in its cells, its outputs are saved.

What is saved must be what the cells give: `python -m notebooks.build` makes it.
"""

from __future__ import annotations

import base64
import importlib.util
import os
from importlib import metadata

import nbformat
import pytest
from nbclient import NotebookClient

from notebooks import saved
from tests.limits import HANG_S
from tests.stops.kernels import manager

LESSONS = saved.lessons()
LONGEST = ("05", "06")
"""They measure, and take most of the time of all."""
MOST_PICTURE_BYTES = 30_000
MOST_BYTES = 500_000
DRAWS = importlib.util.find_spec("matplotlib") is not None


def test_there_are_eight_lessons_with_their_numbers():
    titles = [nbformat.read(path, as_version=4).cells[0].source.splitlines()[0] for path in LESSONS]
    assert [path.name[:2] for path in LESSONS] == [f"0{number}" for number in range(1, 9)]
    assert [title[:5] for title in titles] == [f"# {number}. " for number in range(1, 9)]


@pytest.mark.parametrize(
    "path",
    [pytest.param(one, id=one.stem, marks=[pytest.mark.more] * (one.name[:2] in LONGEST)) for one in LESSONS],
)
def test_lesson_runs_and_its_claims_hold(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    root = str(path.parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    client = NotebookClient(
        notebook, km=manager(), timeout=int(HANG_S), resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute(env=environment, cleanup_kc=True)  # of a manager that it was given it would leave the kernel running
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    kept = nbformat.read(path, as_version=4)
    same_texts = kept.metadata[saved.MADE_WITH]["tensorflow"] == metadata.version("tensorflow")  # they hold its words
    different = saved.differences(kept, notebook, figures=DRAWS, texts=same_texts)
    assert not different, "\n".join([*different, "python -m notebooks.build"])


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_lesson_is_as_it_should_be(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    changed = [cell.id for cell in code if cell.metadata.get(saved.MADE_FROM) != saved.digest(cell.source)]
    assert not changed, f"changed since their outputs were saved: {changed}; run python -m notebooks.build"
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(saved.scrubbed(cell.outputs) == cell.outputs for cell in code)
    assert all(cell.outputs[0].metadata == saved.PANEL for cell in code if cell.source.startswith(saved.TRACED))
    solutions = [cell for cell in code if "solution" in cell.metadata.get("tags", [])]
    assert len(solutions) == 2
    assert all("assert " in cell.source for cell in solutions)
    assert sum("## Exercise" in cell.source for cell in notebook.cells) == 2


def test_the_saved_pictures_are_small_and_all_lessons_too():
    pictures = [
        base64.b64decode(output.data["image/png"])
        for path in LESSONS
        for cell in nbformat.read(path, as_version=4).cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == 10  # five panels, five drawings
    assert all(picture.startswith(b"\x89PNG") and len(picture) < MOST_PICTURE_BYTES for picture in pictures)
    assert sum(path.stat().st_size for path in LESSONS) < MOST_BYTES


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ("graph: 1.21 ms, <0.01 left", True),
        ("graph: 14 us, 3 left", True),
        ("graph: 14 us, 3 right", False),
        ("", False),
    ],
)
def test_saved_texts_are_compared_by_their_words(given, same):
    def lesson(text):
        printed = [nbformat.v4.new_output("stream", name="stdout", text=text)] if text else []
        return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("f()", outputs=printed)])

    assert bool(saved.differences(lesson("graph: 1.5 s, 7 left"), lesson(given))) != same
