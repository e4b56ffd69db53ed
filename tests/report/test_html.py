"""The report is one file, of bounded size, that says what it left out and lets nothing of the program run."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import shutil
import sqlite3
import struct
import zlib

import pytest

from pyfunc_debug.analysis.describe import node_text
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.errors import BadRecordingError, CannotWriteError
from pyfunc_debug.records import Finding
from pyfunc_debug.report import html
from pyfunc_debug.report.answers import Answers
from tests.report import recordings

EVIL = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)>"


def unpack(page: str, which: str = 'class="pfd-recording"', number: int = 0) -> dict:
    packed = re.findall(which + r">([A-Za-z0-9+/=]*)</script>", page)[number]
    raw = zlib.decompress(base64.b64decode(packed))
    (length,) = struct.unpack("<I", raw[:4])
    return json.loads(raw[4 : 4 + length])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return recordings.small(tmp_path_factory.mktemp("recordings") / "train.pfrec", steps=30)


@pytest.fixture(scope="module")
def page(path):
    """Its report, which has room for all of it, and which nobody looked for findings for."""
    return html.page(path)


@pytest.fixture
def little_room(monkeypatch):
    """Pages without most values, which take a second to write."""
    monkeypatch.setattr(html, "MAX_BYTES", 400_000)


def test_the_page_needs_nothing_but_itself(page):
    assert not re.search(r'(?:src|href)\s*=\s*["\']?(?:https?:)?//', page)
    assert "@import" not in page
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert "default-src 'none'" in policy.replace("&#x27;", "'")
    script = re.search(r'<script type="module">(.*?)</script>', page, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"sha256-{digest}" in policy, "only the bundle may run"


def test_text_of_the_program_is_never_markup(tmp_path):
    path = tmp_path / "<u>evil.pfrec"
    connection = recordings.empty(path)
    writer = recordings.Writer(connection, values="none")
    writer.steps(2)
    connection.execute("UPDATE node SET body = ?", (EVIL,))
    connection.execute("UPDATE function SET name = ?", (EVIL,))
    connection.execute("UPDATE source SET text = ?", (EVIL,))
    connection.execute("UPDATE thread SET name = ?", (EVIL,))
    writer.end()
    connection.close()
    finding = Finding(EVIL, "error", 1, (1,), EVIL, EVIL, EVIL, 1)
    page = html.page(path, lambda: [finding])
    assert "<u>" not in page
    assert page.count("<script") == 2, "the data and the bundle"
    assert page.count("</script") == 2
    assert "<img" not in page.replace("<\\!--", "")
    assert unpack(page)["findings"][0]["message"] == EVIL


def test_findings_nobody_looked_for_are_null_and_none_found_is_an_empty_list(path, page, little_room):
    assert unpack(page)["findings"] is None
    assert unpack(html.page(path, list))["findings"] == []


def test_a_large_recording_is_trimmed_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(html, "MAX_CALLS", 10_000)
    monkeypatch.setattr(html, "MAX_BYTES", 1_200_000)
    path = recordings.large(tmp_path / "large.pfrec", 20_000)
    page = html.page(path)
    data = unpack(page)
    assert "Values of" in data["trimmed"]
    assert "of 20,0" in data["trimmed"]
    assert data["arrays"]["id"][3] < 16_000
    assert data["overview"]["calls"] >= 20_000, "the header counts what ran, not what is shown"
    assert len(page) < html.MAX_BYTES


def test_failed_calls_keep_their_values_when_others_must_go(path, little_room):
    data = unpack(html.page(path))
    assert len(data["details"]) < data["overview"]["calls"]
    assert "301" in data["details"]


def test_source_text_has_its_own_room(tmp_path, monkeypatch):
    path = tmp_path / "train.pfrec"
    connection = recordings.empty(path)
    recordings.Writer(connection, values="none").end()
    connection.execute("INSERT INTO source VALUES ('/home/ada/aaa.py', ?)", ("x = 1\n" * 6_000,))
    connection.commit()
    connection.close()
    monkeypatch.setattr(html, "SOURCE_BYTES", 30_000)
    data = unpack(html.page(path))
    assert list(data["sources"]) == [recordings.FILE], "files with bodies come first"
    assert [file for file, _ in data["ledger"]["files"]] == ["/home/ada/aaa.py", recordings.FILE]
    assert "text of 1 of 2 source files was left out" in data["trimmed"]


def test_errors_are_for_people(path, tmp_path, little_room):
    with pytest.raises(CannotWriteError, match="cannot write the report"):
        html.write(path, tmp_path / "no such folder" / "r.html")
    with pytest.raises(BadRecordingError, match="no such recording"):
        html.write(tmp_path / "missing.pfrec", tmp_path / "r.html")


def test_the_report_imports_nothing_of_the_notebook():
    import subprocess
    import sys

    code = (
        "import sys, pyfunc_debug.report.html as h; h.bundle('panel.js'); "
        "print([m for m in sys.modules if m in ('anywidget', 'IPython', 'tensorflow', 'jupyter_ext.magics')])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_a_report_uses_its_room_and_says_the_true_reason(path, page, monkeypatch):
    data = unpack(page)
    total = data["overview"]["calls"]
    assert len(data["details"]) == total, "there is room for all of them"
    assert data["trimmed"] == ""
    assert data["left_out"] == ""
    assert "trace_stack" not in data["details"]["1"], "what is the node's is there once"
    assert data["nodes"]["1"]["trace_stack"]
    monkeypatch.setattr(html, "MOST_DETAILS", 150)
    data = unpack(html.page(path))
    told = sorted(map(int, data["details"]))
    assert len(told) == 150
    assert "150 calls at most" in data["trimmed"]
    assert "150 calls at most" in data["left_out"]
    assert 301 in told, "it failed"
    gaps = [after - before for before, after in itertools.pairwise(told)]
    assert max(gaps) < total // 4, "no long stretch is without"


def test_values_fill_what_the_rest_of_the_page_leaves(path, monkeypatch):
    monkeypatch.setattr(html, "MAX_BYTES", 1_000_000)
    page = html.page(path)
    data = unpack(page)
    details = data["details"]
    assert 0.8 * html.MAX_BYTES < len(page) <= html.MAX_BYTES, f"{len(details)} calls"
    assert {*data["failures"]} <= details.keys(), "what failed comes first"
    assert f"{data['overview']['calls'] - len(details):,} of {data['overview']['calls']:,} calls" in data["trimmed"]
    assert "evenly spaced ones, up to 1 MB" in data["trimmed"]
    assert len(data["traces"]) > 1
    monkeypatch.setattr(html, "MOST_TRACES", 1)
    data = unpack(html.page(path))
    assert len(data["traces"]) == 1
    assert "draws the 1 longest of" in data["trimmed"]


def test_scalars_over_calls_are_in_the_page_once(page):
    data = unpack(page)
    trend = data["trends"]["3:forward"]["in:2"]
    assert trend["values"] == [1.0] * len(trend["ids"])
    assert len(trend["ids"]) == 30
    assert all("trends" not in detail for detail in data["details"].values())


def test_calls_that_gave_nan_say_so_in_their_row(path, tmp_path, little_room):
    copy = tmp_path / "nan.pfrec"
    shutil.copy(path, copy)
    with sqlite3.connect(copy) as connection:
        connection.execute("UPDATE value SET nan = 2, inf = 1 WHERE call = 5 AND role = 'output'")
        connection.execute("UPDATE value SET inf = 1 WHERE call = 6 AND role = 'output'")
        connection.execute("UPDATE value SET nan = 1 WHERE call = 7 AND role = 'input'")
    answers = Answers(copy)
    with answers.reading():
        rows = answers.ask("calls", {"limit": 10})[0]["rows"]
    assert {row["id"]: row["odd"] for row in rows if row["odd"]} == {5: "NaN", 6: "Inf"}
    assert unpack(html.page(copy))["odd"] == {"5": "NaN", "6": "Inf"}
    node = next(one for one in Recording(copy).nodes() if one.id == rows[4]["node"])
    assert "#5 ok, NaN out " in node_text(node, Recording(copy).reader, 2000)
