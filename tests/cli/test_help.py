"""The help of each command, as a person reads it in a terminal of 80 columns."""

from __future__ import annotations

import re

import pytest

from pyfunc_debug.cli import main


def _help(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_each_command_says_in_80_columns_what_it_does_and_what_each_word_is(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    commands = re.findall(r"^    ([a-z]+) ", _help(capsys), re.MULTILINE)
    assert {"record", "show", "doctor", "query", "learn"} <= set(commands)
    for command in commands:
        text = _help(capsys, command)
        assert max(map(len, text.splitlines())) <= 80, command
        assert "[]" not in text, command
        assert "`pyfunc-debug" not in text, "the module's docstring is not for users"
        described = text.split("\n\n")[1]
        assert re.fullmatch(r"[A-Z].*\.\s*", described, re.DOTALL), command
