"""A line is told in one way everywhere: `train.py:12`, and `cell [3]:4` for a notebook's cell."""

from __future__ import annotations

import re
from pathlib import Path

from pyfunc_debug import places
from pyfunc_debug.records import Finding, Findings, Frame

ROOT = Path(__file__).parent.parent
FILE = "/tmp/ipykernel_7/314159.py"


def test_a_cell_is_told_by_its_number_and_a_file_by_its_name(monkeypatch):
    assert places.source_line("/home/me/train.py", 12) == "train.py:12"
    assert places.source_line("<ipython-input-3-0123456789ab>", 4) == "cell [3]:4"
    assert places.source_line(FILE, 4) == "cell:4", "nobody knows its number"
    assert places.source_line(None, None) == ""
    monkeypatch.setattr(places, "_recorded", {})
    places.learn_cells({FILE: 3})
    assert places.source_line(FILE, 4) == "cell [3]:4", "a recording of another process told it"
    assert str(Frame(FILE, 4, "f")) == "cell [3]:4 f"
    finding = Finding("rule", "note", None, (), "what", "fix", FILE, 4)
    assert repr(finding) == "<note rule at cell [3]:4: what>"
    assert "cell [3]:4" in Findings([finding])._repr_html_()


def test_a_hostile_name_takes_one_line_and_no_minute():
    assert places.one_line("a\nb") == "a\\nb"
    assert places.one_line("x" * 10_000_000) == f"{'x' * 2000}..."


def test_nobody_spells_a_cell_in_another_way():
    """`In[3]` is IPython's prompt, and the last part of a cell's file name says nothing."""
    own = [ROOT / "pyfunc_debug" / "places.py"]
    files = [*(ROOT / "pyfunc_debug").rglob("*.py"), *(ROOT / "jupyter_ext").glob("*.py")]
    files += (ROOT / "jupyter_ext" / "frontend" / "src").rglob("*.ts")
    files += [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    assert len(files) > 200
    other = re.compile(r"\bIn ?\[\d|basename\((?:\w+\.)*(?:file|co_filename)\)}")
    found = {
        str(file.relative_to(ROOT)): other.findall(file.read_text(encoding="utf-8"))
        for file in files
        if file not in own
    }
    assert {file: texts for file, texts in found.items() if texts} == {}
