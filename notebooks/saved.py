"""What a lesson's saved outputs must be: outputs of the cells as they are now, small, and without what changes each time.

`notebooks/build.py` makes them, tests/notebooks/test_lessons.py holds them to what a run gives.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
MEASURED = "measured"
"""Tag of a cell whose words, not only its numbers, depend on the machine: only the kinds of its texts are compared."""
MADE_FROM = "made_from"
MADE_WITH = "made_with"
PANEL = {"pyfunc_debug": {"picture": "of the panel"}}
"""Metadata of an output that is a picture in a page without a kernel, where the live panel was."""
TRACED = "%%pyfunc_trace"
_WIDGET = "application/vnd.jupyter.widget-view+json"
_SCRUBBED = (
    (re.compile(r" pfd-static-\w+"), ""),
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "0x..."),
    (re.compile(r"(/[\w.-]+)*/ipykernel_\d+/\d+\.py"), "cell"),
    (re.compile(r"(/[\w.-]+)+/(?=[\w.-]+\.pfrec)"), ""),
    (re.compile(r"(/[\w.-]+)+/(?=site-packages/)"), ""),
)
_NUMBER = re.compile(r"<?-?\d[\d,.]*(e[+-]?\d+)?")
_CORES = re.compile(r"^\*\*\* .* parked .*$", re.MULTILINE)
"""What a prompt says first where TensorFlow has only as many threads as are stopped."""
_UNIT = re.compile(r"\b0 ?(ns|us|ms|s)\b")


def lessons() -> list[Path]:
    """All lessons, in order."""
    return sorted(FOLDER.glob("0*.ipynb"))


def digest(source: str) -> str:
    """Names the source of a cell: its outputs were made from this one."""
    return hashlib.sha256(source.encode()).hexdigest()[:12]


def scrubbed(outputs: list[Any]) -> list[dict[str, Any]]:
    """Outputs without standard error, live widgets, addresses and folders; pieces of standard output joined."""
    kept: list[dict[str, Any]] = []
    for output in outputs:
        if output["output_type"] == "stream":
            if output["name"] != "stdout":
                continue
            if kept and kept[-1]["output_type"] == "stream":
                kept[-1]["text"] += _scrub(output["text"])
            else:
                kept.append({"output_type": "stream", "name": "stdout", "text": _scrub(output["text"])})
        elif _WIDGET not in output.get("data", {}):
            kept.append(_plain(output))
    return kept


def _plain(output: Any) -> dict[str, Any]:
    data = {kind: _scrub(content) if kind.startswith("text/") else content for kind, content in output["data"].items()}
    return {**output, "data": data}


def _scrub(text: Any) -> str:
    text = "".join(text)
    for pattern, instead in _SCRUBBED:
        text = pattern.sub(instead, text)
    return text


def kinds(outputs: list[dict[str, Any]]) -> list[str]:
    """Kinds of scrubbed outputs: a body's print may come before or after what the cell shows."""
    found = {"stdout"} if any(one["output_type"] == "stream" for one in outputs) else set()
    shown = [" ".join(sorted(one["data"])) for one in outputs if one["output_type"] != "stream"]
    return sorted([*found, *shown])


def words(outputs: list[dict[str, Any]]) -> list[str]:
    """Texts of scrubbed outputs with each number as 0 and each unit of time as t: what stays from run to run.

    Tables, which are in HTML too, are left out: tests of their own hold their words.
    """
    printed = "".join(one["text"] for one in outputs if one["output_type"] == "stream")
    shown = [
        one["data"].get("text/plain", "") for one in outputs if "text/html" not in one.get("data", {"text/html": 0})
    ]
    return [_words(printed), *sorted(_words(text) for text in shown)]


def _words(text: str) -> str:
    text = _UNIT.sub("0 t", _NUMBER.sub("0", _CORES.sub("", text)))
    return " ".join(re.sub(r"─+", "-", text).split())


def differences(saved: Any, run: Any, *, figures: bool = True, texts: bool = True) -> list[str]:
    """Where a lesson's saved outputs are not what its cells give.

    Args:
      saved: The lesson as it is in the repository.
      run: The lesson after a run.
      figures: Whether the run could draw (matplotlib is there).
      texts: Whether to compare texts; without, only the kinds of outputs.
    """
    found = []
    for old, new in zip(saved.cells, run.cells):
        if old.cell_type != "code":
            continue
        expected = [one for one in scrubbed(old.outputs) if one.get("metadata") != PANEL]
        given = scrubbed(new.outputs)
        measured = MEASURED in old.metadata.get("tags", [])
        if measured or not figures:
            expected, given = _without_figures(expected), _without_figures(given)
        if kinds(expected) != kinds(given):
            found.append(f"{old.id}: saved {kinds(expected)}, now {kinds(given)}")
        elif texts and not measured and words(expected) != words(given):
            found.append(f"{old.id}: saved {words(expected)}, now {words(given)}")
    return found


def _without_figures(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in outputs if "image/png" not in one.get("data", {})]
