"""Colours of source: by Pygments, and never another text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pyfunc_debug.report import colours

SOURCE = '''@decorated
def f(x):  # why
    """two
    lines"""
    return f"{x}" if x is not None else 12.5
'''


def test_each_piece_says_what_it_is():
    lines = colours.coloured(SOURCE)
    kinds = [[(kind, text.strip()) for kind, text in line if kind] for line in lines]
    assert kinds[0] == [("m", "@decorated")]
    assert kinds[1] == [("k", "def"), ("c", "# why")]
    assert kinds[2] == [("s", '"""two')]
    assert kinds[3] == [("s", 'lines"""')]
    assert [word for word, _ in kinds[4]].count("k") >= 4
    assert ("n", "12.5") in kinds[4]


@pytest.mark.parametrize(
    "text", [SOURCE, "", "\n", "a\tb\r\nc", "x = '''never\nclosed", "\x0cdef f(): pass\n", "def (((\n\\\n", "é = 'ü'\n"]
)
def test_colours_never_change_a_text(text):
    assert ["".join(part for _, part in line) for line in colours.coloured(text)] == text.splitlines()


def test_sources_of_ours_keep_their_text():
    for path in sorted(Path(colours.__file__).parents[1].rglob("*.py"))[::6]:
        text = path.read_text(encoding="utf-8")
        assert ["".join(part for _, part in line) for line in colours.coloured(text)] == text.splitlines(), path


def test_without_pygments_there_are_plain_lines(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygments", None)
    assert colours.coloured("def plain(): pass\n") == ([("", "def plain(): pass")],)
