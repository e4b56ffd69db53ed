"""What comments, docstrings and names say is not taken for what the code does."""

from __future__ import annotations

import ast

import pytest

from pyfunc_debug.doctor.failures.reading.source import parsed
from tests.doctor import programs
from tests.doctor import programs_models as programs_models
from tests.doctor import programs_passes as programs_passes
from tests.doctor import programs_pipelines as programs_pipelines
from tests.doctor import programs_silent as programs_silent  # adds its own to those of `programs`
from tests.doctor import programs_threads as programs_threads
from tests.doctor.alone import alone, loaded
from tests.doctor.test_programs import findings, name

WORDS = (
    "  # not np.tanh(x), no lock, seen.clear(), del seen, maxlen, ragged_batch, stop_training, steps_per_execution, "
    "run_eagerly, np.nan, float('nan'), float('inf'), isnan, where, maximum(x, 0), x.numpy(), .list_files("
)
RULES = ("saturated", "ran-out", "shared-state", "trace-only", "none-gradient", "vanishing-gradient", "nan-born",
         "shuffled-results", "trace-failed")  # fmt: skip


def some(cases):
    """The first program of each of these rules."""
    return [next(case for case in cases if case[0] == rule) for rule in RULES]


def misleading(text: str) -> str:
    """A program's text with a comment behind each line that a text of several lines does not go through."""
    inside = {
        line for one in ast.walk(ast.parse(text)) if isinstance(one, (ast.Constant, ast.JoinedStr))
        for line in range(one.lineno, one.end_lineno or one.lineno)
    }  # fmt: skip
    lines = text.split("\n")
    return "\n".join(
        f"{line}{WORDS}" if line.strip() and number not in inside else line for number, line in enumerate(lines, 1)
    )


@pytest.mark.parametrize("case", some(programs.TRIGGERS), ids=name)
def test_comments_do_not_hide_a_finding(case, tmp_path, monkeypatch):
    rule, program, options = case
    found = []
    source = alone(program)
    for number, text in enumerate((source, misleading(source))):
        (tmp_path / str(number)).mkdir()
        one = loaded(text, program, tmp_path / str(number), monkeypatch)
        found.append(findings(one, options.get("ends_with"), options.get("clock", ""), **options.get("record", {})))
    plain, other = ([(one.rule, one.line) for one in each if one.rule == rule] for each in found)
    assert plain
    assert other == plain


@pytest.mark.parametrize("case", some(programs.NEAR), ids=name)
def test_comments_do_not_make_one(case, tmp_path, monkeypatch):
    rule, program, options = case
    program = loaded(misleading(alone(program)), program, tmp_path, monkeypatch)
    found = findings(program, options.get("ends_with"), options.get("clock", ""), **options.get("record", {}))
    assert [one.message for one in found if one.rule == rule] == []


def test_the_code_of_a_file_keeps_its_columns():
    text = (
        '"""tanh\nand é"""\nx = "# kept"  # é gone\ndef f():\n    "gone"; y = 1\n    return """a\n# kept"""  # gone\n'
    )
    code = parsed(text).code
    assert code == [
        " " * 7, " " * 8, 'x = "# kept"  ' + " " * 8, "def f():", "          ; y = 1", '    return """a',
        '# kept"""  ' + " " * 6,
    ]  # fmt: skip
    assert parsed("x = (").code == ["x = ("]
