"""The input transformer: which cells it takes, and that it leaves the rest alone."""

from __future__ import annotations

import pytest
from IPython.core.error import UsageError

from jupyter_ext import cells, options


def run(text: str) -> str:
    return "".join(cells.transform(text.splitlines(keepends=True), options.split))


def test_a_cell_keeps_its_line_numbers():
    assert run("%%pyfunc_trace -o a.pfrec\nx = 1\nx\n").splitlines() == [
        "get_ipython().run_line_magic('pyfunc_trace', '--cell -o a.pfrec')  # %%pyfunc_trace -o a.pfrec",
        "x = 1",
        "x",
    ]


def test_a_cell_magic_below_ours_takes_the_rest():
    text = run("%%pyfunc_trace\n%%time\nx = '''{a} $b'''\n")
    assert text.splitlines()[1].startswith("get_ipython().run_cell_magic('time', ''")


@pytest.mark.parametrize(
    "text",
    [
        "%%pyfunc_tracer\n1\n",
        "%%pyfunc_trace?\n",
        "%pyfunc_trace?\n",
        "%pyfunc_trace step?\n",
        "%%pyfunc_trace --values ?\n",
        "%pyfunc_trace on\n",
        "%pyfunc_trace off\n",
        "%pyfunc_trace status\n",
        "%pyfunc_trace --values full on\n",
        "x = 1\n%pyfunc_trace f(x)\n",
        "print('%%pyfunc_trace')\n",
        "",
    ],
)
def test_other_cells_are_left_alone(text):
    assert run(text) == text


def test_a_statement_is_a_cell_of_its_own():
    assert run("%pyfunc_trace --values full f({1: 'a'})\n").splitlines() == [
        "get_ipython().run_line_magic('pyfunc_trace', '--cell --values full')  # %pyfunc_trace --values full",
        "f({1: 'a'})",
    ]


@pytest.mark.parametrize(
    ("line", "words", "rest"),
    [
        ("", [], ""),
        ("f(x) -o 3", [], "f(x) -o 3"),
        ("-x + 1", [], "-x + 1"),
        ("-o 'my file.pfrec' f('it''s')", ["-o", "my file.pfrec"], "f('it''s')"),
        ("--values=full --no-gil on", ["--values=full", "--no-gil"], "on"),
        ("--lines f(x)", ["--lines"], "f(x)"),
        ("--nodes augment* --no-panel f()", ["--nodes", "augment*", "--no-panel"], "f()"),
    ],
)
def test_options_end_where_the_statement_begins(line, words, rest):
    assert options.split(line) == (words, rest)


def test_options_become_the_arguments_of_record():
    arguments, panel = options.parse(
        ["-o", "a.pfrec", "--values", "augment=full", "--values", "none", "--no-gil", "--budget", "1MB", "--no-panel"]
    )
    assert arguments == {
        "path": "a.pfrec", "values": {"augment": "full", "*": "none"}, "nodes": "*", "gradients": "stock", "gil": False,
        "lines": False, "random_state": False, "budget": "1MB", "hang_after": 30.0,
    }  # fmt: skip
    assert not panel
    assert options.parse([])[0]["values"] == "summary"


@pytest.mark.parametrize("words", [["--value", "full"], ["-o"], ["--fast"]])
def test_bad_options_are_usage_errors(words):
    with pytest.raises(UsageError):
        options.parse(words)
