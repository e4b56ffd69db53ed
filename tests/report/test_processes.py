"""Several recordings are shown as one: same lines are one row, calls stay with their own recording."""

from __future__ import annotations

import shutil

import pytest

from pyfunc_debug.cli import main
from pyfunc_debug.errors import BadRecordingError
from pyfunc_debug.records import Finding
from pyfunc_debug.report import html
from pyfunc_debug.report.processes import names
from tests.report import recordings
from tests.report.test_html import unpack


def overview(paths, findings=None):
    return unpack(html.page_together(paths, findings), 'id="pfd-together"')


@pytest.fixture(scope="module", autouse=True)
def short_pages():
    """A page of 10 MB takes 2 s and more to write, and says the same of the recordings together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html, "MAX_BYTES", 1_000_000)
        yield


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return recordings.workers(tmp_path_factory.mktemp("workers"), 3)


@pytest.fixture(scope="module")
def page(paths):
    """The report of all three, without findings."""
    return html.page_together(paths)


@pytest.fixture(scope="module")
def data(page):
    """What it says of all together."""
    return unpack(page, 'id="pfd-together"')


def test_rows_of_the_same_line_are_one_row_with_the_numbers_of_all(data):
    (decode,) = (row for row in data["ledger"]["rows"] if row["name"] == "decode")
    assert (decode["calls"], decode["errors"]) == (480 + 640 + 800, 7)
    own = data["by"][decode["key"]]
    assert [(one["process"], one["calls"]) for one in own] == [(0, 480), (1, 640), (2, 800)]
    ended = [one["calls"] for one in own]
    assert decode["mean_ns"] == pytest.approx(sum(n * one["mean_ns"] for n, one in zip(ended, own)) / sum(ended))
    assert decode["parts"]["wait_ns"] == pytest.approx(sum(one["parts"]["wait_ns"] for one in own))
    (gradient,) = (row for row in data["ledger"]["rows"] if row["call_kind"] == "gradient")
    parent = next(row for row in data["ledger"]["rows"] if row["key"] == gradient["parent"])
    assert parent["name"] == "log_huber"
    assert sum(row["share"] for row in data["ledger"]["rows"] if row["share"]) == pytest.approx(1)


def test_what_is_not_known_of_one_is_not_known_of_all(paths, tmp_path):
    other = recordings.small(tmp_path / "other.pfrec", steps=3, gil=False)
    data = overview([paths[0], other])
    (decode,) = (row for row in data["ledger"]["rows"] if row["name"] == "decode")
    assert decode["parts"] is None
    assert [one["parts"] is None for one in data["by"][decode["key"]]] == [False, True]
    images = next(row for row in data["ledger"]["rows"] if row["name"] == "images")
    assert (images["traced"], images["runs"]) == (4, None)


def test_bodies_of_other_files_stay_other_rows(paths, tmp_path):
    other = shutil.copy(paths[0], tmp_path / "other.pfrec")
    import sqlite3

    with sqlite3.connect(other) as connection:
        connection.execute("UPDATE node SET file = '/home/eve/pets/train.py'")
    data = overview([paths[0], other])
    assert sum(row["name"] == "decode" for row in data["ledger"]["rows"]) == 2


def test_calls_keep_the_numbers_of_their_own_recording(page):
    for number, calls in enumerate((1080, 1440, 1800)):
        data = unpack(page, number=number)
        assert data["overview"]["calls"] == calls
        assert data["details"]["301"]["id"] == 301
        assert data["overview"]["name"] == f"worker-{number}"


def test_processes_share_one_axis_of_time_by_their_wall_clocks(data):
    assert data["axis"]["starts"] == [0, 400_000_000, 800_000_000]
    assert data["axis"]["length_ns"] == 800_000_000 + data["processes"][2]["length_ns"]
    assert data["notes"] == []


def test_clocks_that_cannot_be_compared_are_said(tmp_path):
    one, two = recordings.workers(tmp_path, 2, steps=6, values="none")
    recordings.change(two, host="barn", versions={"python": "3.11.9", "tensorflow": "2.18.0", "numpy": "2.1.3"})
    notes = " ".join(overview([one, two])["notes"])
    assert "the clocks of barn and workshop are apart is not known" in notes
    assert "as the wall clocks say" in notes
    assert "TensorFlow: 2.21.0 (worker-0); 2.18.0 (worker-1)" in notes
    recordings.change(two, clock={"monotonic_ns": recordings.ORIGIN, "wall_ns": 1_773_999_999_000_000_000})
    data = overview([one, two])
    assert "far apart" in " ".join(data["notes"])
    assert data["axis"]["starts"] == [0, 0]
    recordings.change(two, clock=None)
    assert "does not say when it began" in " ".join(overview([one, two])["notes"])


def test_a_recording_named_twice_counts_once(paths):
    data = overview([paths[0], paths[1], str(paths[0])])
    assert len(data["processes"]) == 2
    assert "named twice" in data["notes"][0]
    assert "pfd-together" not in html.page_together([paths[0], paths[0]]).split('<script type="module">')[0]


def test_findings_of_the_same_rule_and_line_are_one(paths, data):
    def look(path):
        number = int(path[-7])
        same = Finding("body-raised", "error", 1, (301 + number,), f"raised {number} times", "fix", recordings.FILE, 9)
        own = Finding("retrace", "warning", None, (), "traced twice", "fix", recordings.FILE, 30)
        return [own, same] if number == 1 else [same]

    nobody_looked, data = data, overview(paths, look)
    assert [finding["rule"] for finding in data["findings"]] == ["body-raised", "retrace"], "errors first"
    assert [one["calls"] for one in data["findings"][0]["processes"]] == [[301], [302], [303]]
    assert data["processes"][1]["findings"] == {"warning": 1, "error": 1}
    assert nobody_looked["findings"] is None


def test_recordings_share_the_room_of_one(paths, monkeypatch):
    monkeypatch.setattr(html, "MAX_CALLS", 1500)
    monkeypatch.setattr(html, "MAX_BYTES", 1_300_000)
    page = html.page_together(paths)
    assert 0.75 * html.MAX_BYTES < len(page) <= html.MAX_BYTES
    sizes = [unpack(page, number=i)["arrays"]["id"][3] for i in range(3)]
    assert all(490 < size <= 500 for size in sizes)
    assert "of 1,080 calls" in unpack(page)["trimmed"]
    told = [len(unpack(page, number=i)["details"]) for i in range(3)]
    assert max(told) < 1.3 * min(told), "each has its third"


def test_plain_tables_name_each_recording(page):
    plain = page.split('id="pfd-plain"')[1].split("<script")[0]
    assert [f"<h2>worker-{i}</h2>" in plain for i in range(3)] == [True] * 3
    assert plain.count("log_huber") == 3


def test_the_command_takes_several_files(paths, tmp_path, capsys):
    assert main(["report", *map(str, paths), "-o", str(tmp_path / "all.html")]) == 0
    assert "wrote" in capsys.readouterr().out
    page = (tmp_path / "all.html").read_text(encoding="utf-8")
    assert len(unpack(page, 'id="pfd-together"')["processes"]) == 3
    assert unpack(page, 'id="pfd-together"')["findings"], "the doctor looks at each"
    assert main(["report", str(paths[0]), "-o", str(tmp_path / "one.html")]) == 0
    assert 'pfd-together">' not in (tmp_path / "one.html").read_text(encoding="utf-8")


def test_names_tell_files_apart():
    assert names(["/a/x.pfrec", "/a/y.pfrec"]) == ["x", "y"]
    assert names(["/runs/0/train.pfrec", "/runs/1/train.pfrec"]) == ["0/train", "1/train"]


def test_a_damaged_one_is_named(paths, tmp_path):
    bad = tmp_path / "bad.pfrec"
    bad.write_bytes(b"nonsense" * 100)
    with pytest.raises(BadRecordingError, match=r"bad\.pfrec"):
        html.page_together([paths[0], bad])
