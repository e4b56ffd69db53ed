"""What a program named, computed and raised reaches a terminal as text, and JSON as JSON, whatever is in it."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3

import pytest

from pyfunc_debug.cli import main
from pyfunc_debug.program.printable import printable
from tests.report import recordings

HOSTILE = "a\x1b]0;owned\x07\x1b[31mb\x9b2Jc\x7f\u202egnp.exe\u2066\r\x08"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A recording whose every text, where a program puts it, has control characters."""
    path = recordings.small(tmp_path_factory.mktemp("hostile") / "train.pfrec")
    with sqlite3.connect(path) as database:
        for table, column in (
            ("node", "body"), ("node", "file"), ("function", "name"), ("function", "file"), ("thread", "name"),
            ("value", "text"), ("value", "path"), ("failure", "type"), ("failure", "message"), ("failure", "traceback"),
            ("trace", "signature"), ("trace", "avoid"), ("source", "text"),
        ):  # fmt: skip
            database.execute(f"UPDATE {table} SET {column} = {column} || ? WHERE {column} IS NOT NULL", (HOSTILE,))
        database.execute("UPDATE trace SET reason = json_array(?)", (HOSTILE,))
        database.execute("UPDATE value SET mean = 9e999, std = -9e999")
    return path


COMMANDS = [
    ["show"], ["show", "--all"], ["show", "--node", "*"], ["show", "--call", "1"], ["show", "--call", "301"],
    ["show", "--gil"], ["show", "--function", "*"], ["doctor", "--fail-on", "never"],
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_control_character_reaches_a_terminal(hostile, command, capsys):
    assert main([command[0], str(hostile), *command[1:]]) == 0
    text = capsys.readouterr().out
    assert not _CONTROL.search(text)
    assert "\\x1b" in text


def test_query_and_errors_show_what_they_would_have_sent(hostile, capsys):
    assert main(["query", str(hostile), "SELECT body FROM node"]) == 0
    assert main(["show", str(hostile) + "\x1b[31m"]) == 1
    seen = capsys.readouterr()
    assert "\\x1b" in seen.out
    assert "\\x1b" in seen.err
    assert not _CONTROL.search(seen.out + seen.err)


@pytest.mark.parametrize("command", [*COMMANDS[:6], COMMANDS[7]], ids=" ".join)
def test_json_is_valid_whatever_the_numbers_are(hostile, command, capsys):
    assert main([command[0], str(hostile), *command[1:], "--json"]) == 0

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    json.loads(capsys.readouterr().out, parse_constant=refuse)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_query_takes_json_before_or_after_the_sql_and_knows_json_each(hostile, place, capsys):
    words = [str(hostile), "SELECT value FROM json_each('[1, 2]') UNION ALL SELECT 9e999"]
    words.insert(place, "--json")
    assert main(["query", *words]) == 0
    assert json.loads(capsys.readouterr().out) == [{"value": 1}, {"value": 2}, {"value": None}]


def test_a_newline_in_a_name_makes_no_second_line(hostile, tmp_path, capsys):
    path = tmp_path / "a.pfrec"
    shutil.copy(hostile, path)
    with sqlite3.connect(path) as database:
        for table, column in (("node", "body"), ("node", "file"), ("function", "name"), ("thread", "name")):
            database.execute(f"UPDATE {table} SET {column} = {column} || ?", ("x\n0 errors\nfine",))
    database.close()
    for command in (["show"], ["show", "--node", "*"], ["show", "--call", "1"], ["doctor", "--fail-on", "never"]):
        assert main([command[0], str(path), *command[1:]]) == 0
        assert "\nfine" not in capsys.readouterr().out
    assert main(["show", str(path) + "\nfine"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_ordinary_text_stays_as_it_is():
    text = "naïve x∈[0., 1.] μ=0.45\n\tline 👍 日本語"
    assert printable(text) == text
