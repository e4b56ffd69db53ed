"""What holds for every finding: chosen, silenced, failed on, told; and its section in the manual."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pyfunc_debug import doctor
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.cli import main
from pyfunc_debug.doctor.overlaps import marked
from pyfunc_debug.doctor.rules import every
from pyfunc_debug.doctor.text import findings_text
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.records import Finding
from tests.doctor.recordings import FILE, THREADS, call, node, written

PAGE = Path(doctor.__file__).parents[2] / "docs" / "doctor.md"
SOURCE = """def bad(x):
    return x / 0

y = tf.py_function(
    bad,
    [x], tf.float32)
"""


def recording(tmp_path, source: str = SOURCE) -> str:
    """A body at line 1, called at line 4, that StopIteration left; and somebody changed something by hand."""
    return written(
        tmp_path / "a.pfrec", source, thread=THREADS, node=[node(stack=1)],
        stack=[{"id": 1, "frames": json.dumps([[FILE, 4, "<module>", ""]])}],
        failure=[{"id": 1, "type": "StopIteration", "message": "", "traceback": "", "frames": "[]"}],
        call=[call(1, status="error", failure=1)],
        notice=[{"rule": "changed_by_hand", "node": 1, "call": 1, "facts": json.dumps({"names": ["x"]})}],
    )  # fmt: skip


def rules(path: str, **options) -> list[str]:
    return [finding.rule for finding in Recording(path).findings(**options)]


def test_rules_are_selected_and_ignored_by_name_and_glob(tmp_path):
    path = recording(tmp_path)
    assert rules(path) == ["stop-iteration", "changed-by-hand"]
    assert rules(path, select=["changed-*"]) == ["changed-by-hand"]
    assert rules(path, ignore=["stop-iteration"]) == ["changed-by-hand"]
    with pytest.raises(BadOptionError, match=r"no rule 'stop-iterations'\. There are: stop-iteration"):
        rules(path, ignore=["stop-iterations"])


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("bad(x):", "bad(x):  # pyfunc: ignore[stop-iteration]", ["changed-by-hand"]),
        ("bad(x):", "bad(x):  # why; pyfunc: ignore[nan-born, stop-iteration]", ["changed-by-hand"]),
        ("bad(x):", "bad(x):  # pyfunc: ignore", []),
        ("bad(x):", "bad(x):  # pyfunc: ignore[nan-born]", ["stop-iteration", "changed-by-hand"]),
        ("    [x], tf.float32)", "    [x], tf.float32)  # pyfunc: ignore[stop-iteration]", ["changed-by-hand"]),
        ("x / 0", "x / 0  # pyfunc: ignore", ["stop-iteration", "changed-by-hand"]),
    ],
)
def test_a_comment_on_the_users_line_silences_a_rule_there(tmp_path, old, new, left):
    assert rules(recording(tmp_path, SOURCE.replace(old, new))) == left


def test_the_project_says_once_what_is_left_out(tmp_path, monkeypatch):
    pytest.importorskip("tomllib")  # Python 3.10 has none
    path = recording(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.pyfunc_debug]\nignore = ["stop-*"]\nfail-on = "note"\n')
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert rules(path) == ["changed-by-hand"]
    assert rules(path, ignore=[]) == ["stop-iteration", "changed-by-hand"]
    assert main(["doctor", path]) == 1


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),
        (["--fail-on", "never"], 0),
        (["--ignore", "stop-iteration"], 0),
        (["--ignore", "stop-iteration", "--fail-on", "warning"], 0),
        (["--ignore", "stop-iteration", "--fail-on", "note"], 1),
        (["--select", "nothing-like-it"], 2),
    ],
)
def test_doctor_fails_on_what_it_is_told(tmp_path, options, code):
    assert main(["doctor", recording(tmp_path), *options]) == code


def test_json_has_every_field_and_the_page(tmp_path, capsys):
    main(["doctor", recording(tmp_path), "--json"])
    first = json.loads(capsys.readouterr().out)[0]
    assert first["page"] == "docs/doctor.md#stop-iteration"
    fields = "rule severity node nodes calls message evidence fix file line confidence page"
    assert set(first) == set(fields.split())


def test_only_the_form_for_the_front_end_in_use_is_told(tmp_path):
    facts = doctor.Facts(Recording(recording(tmp_path)).reader, "shell")
    assert facts.show_call(3).startswith("pyfunc-debug show ")
    assert facts.show_call(3).endswith("a.pfrec --call 3")
    assert doctor.Facts(facts.reader, "notebook").show_call(3) == "%pyfunc_show 3"
    assert doctor.Facts(facts.reader).show_call(3) == "recording.call(3)"


def test_a_rule_that_fails_does_not_take_the_others_with_it(tmp_path, monkeypatch):
    class Broken:
        NAMES = ("nan-born",)

        def check(self, facts):
            raise KeyError("x")

    monkeypatch.setattr(every, "MODULES", (Broken(), *every.MODULES))
    assert rules(recording(tmp_path)) == ["stop-iteration", "changed-by-hand", "doctor-trouble"]


def test_the_most_important_are_told_and_the_rest_counted():
    found = [Finding("nan-born", "warning", 1, (1,), f"number {n}", "a = 1\n  b = 2", "t.py", 3) for n in range(7)]
    text = findings_text(found, 80, 5, "pyfunc-debug doctor a.pfrec")
    assert "number 4" in text
    assert "number 5" not in text
    assert text.endswith("\n2 more findings: pyfunc-debug doctor a.pfrec")
    assert "  -> a = 1\n       b = 2" in text, "code to paste stays as it is"


def test_every_rule_has_a_section_in_the_manual_and_the_other_way_round():
    sections = re.findall(r"^## (\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(sections) == sorted([*doctor.names(), doctor.TROUBLE])
    assert len(sections) == len(set(sections))


def test_the_command_that_stops_there_is_the_users_with_its_breakpoint_in_place_of_another(tmp_path):
    argv = [
        "/bin/pyfunc-debug",
        "record",
        "--break",
        "other",
        "--when",
        "error",
        "--overwrite",
        "train.py",
        "--break",
        "x",
    ]
    reader = Recording(written(tmp_path / "a.pfrec", meta={"argv": argv})).reader
    command = "pyfunc-debug record --break bad --when error --overwrite train.py --break x"
    assert doctor.Facts(reader, "shell").stop_at("bad", "error") == command


def test_lines_of_a_paste_begin_in_their_own_columns_and_an_empty_line_ends_it():
    fix = "Replace a.py:2 by:\n    return 1\nPut above a.py:1:\nimport os"
    one = Finding("rule", "note", None, (), "message", fix, "a.py", 2)
    assert findings_text([one, one]).split("\n")[1:8] == [
        "  Paste both, in this order:",
        "  -> Replace a.py:2 by:", "    return 1", "  -> Put above a.py:1:", "import os", "",
        "note: a.py:2: message [rule]",
    ]  # fmt: skip


def test_a_paste_that_changes_a_line_of_an_earlier_one_says_so():
    def finding(rule, fix):
        return Finding(rule, "note", None, (), "message", fix, "a.py", 2, evidence=("seen",))

    cached, whole = "Replace a.py:4 by:\n    x.cache()", "Replace lines a.py:3 to 5 by:\n    y"
    fixes = {"one": cached, "two": whole, "three": cached, "four": "Put above a.py:4:\nz"}
    found = [finding(*one) for one in fixes.items()]
    assert [one.evidence[1:] for one in marked(found)] == [
        (), ("a.py:4 is also changed by the paste for one, above: one of them, then record again",),
        ("its paste is the one for one, above",), (),
    ]  # fmt: skip


def test_a_paste_whose_lines_an_earlier_one_moves_says_so():
    def finding(rule, fix):
        return Finding(rule, "note", None, (), "message", fix, "a.py", 2)

    fixes = {
        "longer": "Replace a.py:9 by:\n    y\nPut above a.py:4:\nz = 1", "below": "Replace a.py:6 by:\n    x",
        "above": "Replace a.py:2 by:\n    x", "elsewhere": "Replace b.py:6 by:\n    x", "words": "say it",
    }  # fmt: skip
    found = [finding(*one) for one in fixes.items()]
    moved = ("the paste for longer, above, moves its lines: paste this one first",)
    assert [one.evidence for one in marked(found)] == [(), moved, (), (), ()]
    same = [finding("one", "Replace a.py:4 by:\n    y"), finding("two", "Replace lines a.py:6 to 7 by:\n    x\n    y")]
    assert [one.evidence for one in marked(same)] == [(), ()]
    shorter = [finding("one", "Replace lines a.py:4 to 5 by:\n    y"), finding("two", "Put above a.py:7:\nx")]
    assert [len(one.evidence) for one in marked(shorter)] == [0, 1]
