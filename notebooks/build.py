"""Runs the lessons and saves what they show: `python -m notebooks.build [NUMBER]...` (the `test` extra and a Chromium).

Each lesson runs in a kernel of its own. A panel is a live thing: for readers of the saved lesson it is photographed in
JupyterLab. Pictures are kept small, and what changes from run to run without telling anything is left out (saved.py).
"""

from __future__ import annotations

import base64
import io
import json
import os
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from notebooks import saved
from tests.jupyter_ext.lab import Notebook, Server, browser, close_browser

_ROW = ".ledger tr:has-text('{}')"
_PRESS = {
    "01": (_ROW.format("halve"), ".calls tr[data-call] >> nth=1"),
    "02": (_ROW.format("predict"), "[data-tab=traces]"),
    "03": (_ROW.format("contrast"), "[data-tab=findings]"),
    "04": (_ROW.format("log_huber"), ".calls tr[data-call] >> nth=1", "[data-tab=call]"),
    "05": (_ROW.format("wait"), "[data-tab=gil]"),
}
"""What is pressed in a lesson's panel, in this order, before it is photographed."""
_COLOURS = 32
_SETTLED_MS = 1500
_PROMPT = "prompt"
"""Tag of a cell that asks its reader: nobody is there to answer in JupyterLab while the panel is photographed."""


def main() -> None:
    """Builds the lessons that are named by number, or all."""
    for path in saved.lessons():
        if not sys.argv[1:] or path.name[:2] in sys.argv[1:]:
            save(build(path), path)
            print(path.name, path.stat().st_size)
    close_browser()


def build(path: Path) -> Any:
    """The lesson with its outputs."""
    lesson = nbformat.read(path, as_version=4)
    run(lesson)
    versions = {"python": "{}.{}".format(*sys.version_info), "tensorflow": metadata.version("tensorflow")}
    lesson.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        saved.MADE_WITH: versions,
    }
    for position, cell in enumerate(lesson.cells):
        if cell.cell_type != "code":
            continue
        cell.metadata.pop("execution", None)
        outputs = saved.scrubbed(cell.outputs)
        if cell.source.startswith(saved.TRACED):
            outputs = photographed(lesson, position, path.name[:2])
        for output in outputs:
            if "image/png" in output.get("data", {}):
                output["data"]["image/png"] = small(output["data"]["image/png"])
        cell.outputs = [nbformat.from_dict(output) for output in outputs]
        cell.metadata[saved.MADE_FROM] = saved.digest(cell.source)
    return lesson


def save(lesson: Any, path: Path) -> None:
    """Writes outputs and metadata into the file, and leaves the sources as they are written there."""
    written = json.loads(path.read_text(encoding="utf-8"))
    written["metadata"] = lesson.metadata
    for old, new in zip(written["cells"], lesson.cells):
        if new.cell_type == "code":
            old |= {"metadata": new.metadata, "execution_count": new.execution_count, "outputs": new.outputs}
    path.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def run(lesson: Any) -> None:
    """Executes all cells in a kernel that finds this source tree; an exception in a cell is raised here."""
    root = str(saved.FOLDER.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    with tempfile.TemporaryDirectory() as place:
        NotebookClient(lesson, timeout=600, resources={"metadata": {"path": place}}).execute(env=environment)


def photographed(lesson: Any, position: int, number: str) -> list[dict[str, Any]]:
    """What the cell shows in JupyterLab, with a picture in place of its panel."""
    until = nbformat.v4.new_notebook(metadata=lesson.metadata)
    for cell in lesson.cells[: position + 1]:
        if cell.cell_type == "code":
            asks = _PROMPT in cell.metadata.get("tags", [])
            until.cells.append(nbformat.v4.new_code_cell("pass" if asks else cell.source))
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(until, Path(folder) / "lesson.ipynb")
        with Server(Path(folder)) as server, browser((1400, 900)) as page:
            notebook = Notebook(page, server, "lesson.ipynb")
            notebook.wait_kernel()
            for cell in range(len(until.cells)):
                notebook.run(cell)
                notebook.wait(cell)
            panel = page.locator(".jp-OutputArea .pfd").first
            for pressed in _PRESS[number]:
                panel.locator(pressed).first.click()
            page.wait_for_timeout(_SETTLED_MS)  # a picture, not a test: what was asked for has come by then
            picture = base64.b64encode(panel.screenshot()).decode()
            outputs = saved.scrubbed(notebook.outputs(len(until.cells) - 1))
    shown = {"image/png": picture, "text/plain": "(a picture of the panel)"}
    return [{"output_type": "display_data", "data": shown, "metadata": saved.PANEL}, *outputs]


def small(png: str) -> str:
    """A picture with few colours, in base64."""
    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(png)))
    card = Image.new("RGB", picture.size, "white")
    card.paste(picture, mask=picture.getchannel("A") if picture.mode == "RGBA" else None)
    packed = io.BytesIO()
    card.quantize(_COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(packed, "PNG", optimize=True)
    return base64.b64encode(packed.getvalue()).decode()


if __name__ == "__main__":
    main()
