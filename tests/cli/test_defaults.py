"""Options that are not typed: the environment, then pyproject.toml; and what reaches pipes and old terminals."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pyfunc_debug.cli import main, make_parser
from pyfunc_debug.cli.defaults import set_defaults
from pyfunc_debug.errors import BadOptionError
from tests.report import recordings


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Writes [tool.pyfunc_debug]; gives what a command line then means."""
    monkeypatch.chdir(tmp_path)

    def parsed(lines, *words):
        (tmp_path / "pyproject.toml").write_text("[tool.pyfunc_debug]\n" + lines)
        parser = make_parser()
        set_defaults(parser.commands, words)
        return parser.parse_args(words)

    return parsed


def test_typed_before_environment_before_project(project, monkeypatch):
    lines = 'budget = "1GB"\nvalues = ["augment*=full", "none"]\nhang-after = 5\nlines = true\nselect = ["nan-born"]'
    found = project(lines, "record", "train.py")
    assert (found.budget, found.values, found.hang_after, found.lines) == ("1GB", ["augment*=full", "none"], 5.0, True)
    monkeypatch.setenv("PYFUNC_DEBUG_BUDGET", "2GB")
    monkeypatch.setenv("PYFUNC_DEBUG_LINES", "0")
    monkeypatch.setenv("PYFUNC_DEBUG_VALUES", "'augment *=shape' full")
    found = project(lines, "record", "train.py")
    assert (found.budget, found.values, found.lines) == ("2GB", ["augment *=shape", "full"], False)
    assert project(lines, "record", "--budget", "3GB", "train.py").budget == "3GB"
    assert not hasattr(project(lines, "show", "train.pfrec"), "budget")
    monkeypatch.setenv("PYFUNC_DEBUG_FORMAT", "chrome")  # `query --format` knows others, and does not mind
    assert project("", "export", "train.pfrec").format == "chrome"
    assert project("", "show", "train.pfrec").command == "show"


@pytest.mark.parametrize("command", make_parser().commands)
def test_each_option_of_each_command_keeps_to_this_order(project, monkeypatch, command):
    parser = make_parser().commands[command]
    files = ["FILE" for option in parser.options.values() if not option.option_strings and option.nargs in (None, "+")]
    needed = {name: [f"--{name}", option.choices[0]] for name, option in parser.options.items() if option.required
              and option.option_strings}  # fmt: skip
    for name, option in parser.options.items():
        if name == "help" or f"--{name}" not in option.option_strings:
            continue
        variable = f"PYFUNC_DEBUG_{name.upper().replace('-', '_')}"
        of_project = name not in ("select", "ignore", "fail-on")  # of these pyproject.toml is read by findings() itself
        untyped = option.default
        if option.nargs in (0, "?"):
            texts, meant, typed = ["1", "0"], [option.const, untyped, option.const], [f"--{name}"]
        else:
            texts = ([str(one) for one in option.choices or ()] * 3 or ["1", "2", "3"])[:3]
            meant = [(option.type or str)(text) for text in texts]
            typed = [f"--{name}", texts[2]]
        if name in parser.repeated:
            meant = [[one] for one in meant]
        words_before = [*files, *(word for other, words in needed.items() if other != name for word in words)]
        found = {} if name not in needed else {"neither": untyped}
        for lines in ("", f'{name} = "{texts[0]}"'):
            for environment in ("", texts[1]):
                monkeypatch.setenv(variable, environment)
                if not environment:
                    monkeypatch.delenv(variable)
                for words in ([], typed):
                    key = "typed" if words else "environment" if environment else "project" if lines else "neither"
                    if key == "neither" and name in needed:
                        continue  # the command does not go without it
                    value = getattr(project(lines, command, *words_before, *words), option.dest)
                    assert found.setdefault(key, value) == value, (name, key)
        monkeypatch.delenv(variable)
        from_project = meant[0] if of_project else untyped
        assert found == {"typed": meant[2], "environment": meant[1], "project": from_project, "neither": untyped}, name


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('budgte = "1GB"', "has no key 'budgte'. Did you mean 'budget'?"),
        ('gradients = "exakt"', "gradients='exakt' is not one of stock, exact"),
        ('hang-after = "soon"', "hang-after='soon' is not what the option takes"),
        ('lines = "perhaps"', "lines='perhaps': say 1 or 0"),
        ('budget = ["1GB", "2GB"]', "give one value"),
    ],
)
def test_a_key_that_makes_no_sense_is_named(project, lines, words):
    with pytest.raises(BadOptionError) as error:
        project(lines, "record", "train.py")
    assert words in str(error.value)


def test_rows_go_into_a_pipe_whole(tmp_path, capsys):
    path = str(recordings.small(tmp_path / "train.pfrec"))
    long = "x" * 300
    query = ["query", path, f"SELECT '{long}' AS a, NULL AS b, 'one, two' AS c"]
    assert main(query) == 0
    assert capsys.readouterr().out == f'a,b,c\n{long},,"one, two"\n'
    assert main([*query, "--format", "tsv"]) == 0
    assert capsys.readouterr().out == f"a\tb\tc\n{long}\t\tone, two\n"
    assert main([*query, "--format", "table"]) == 0
    assert "─" in capsys.readouterr().out


@pytest.mark.slow
def test_an_ascii_terminal_gets_the_nearest_signs_and_a_broken_pipe_nothing(tmp_path):
    path = str(recordings.small(tmp_path / "train.pfrec"))
    shown = subprocess.run(
        [sys.executable, "-m", "pyfunc_debug", "show", path],
        env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True,
    )  # fmt: skip
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert b"grad gradient" in shown.stdout
    assert b"-----" in shown.stdout
    header, gradient = (line for line in shown.stdout.splitlines() if line.startswith(b"name") or b"grad " in line)
    assert len(header) == len(gradient)  # its last column ends where the others do
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    with subprocess.Popen(
        [sys.executable, "-m", "pyfunc_debug", "query", path, endless], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as query:
        assert query.stdout.readline() == b"x\n"
        query.stdout.close()
        assert query.stderr.read() == b""
    assert query.returncode == 0
