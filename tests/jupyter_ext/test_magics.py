"""The magics in an IPython shell: real TensorFlow, real recordings, text forms."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell

import jupyter_ext
from jupyter_ext.display import static_forms
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.records import Finding, Findings

SETUP = """
import numpy as np, tensorflow as tf
def augment(x):
    return x * 2
@tf.function
def step(x):
    return tf.numpy_function(augment, [x], tf.float32)
one = tf.ones([2])
"""


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_cell(SETUP, store_history=True).raise_error()
    shell.run_line_magic("load_ext", "pyfunc_debug")
    yield shell
    jupyter_ext.unload_ipython_extension(shell)
    InteractiveShell.clear_instance()


def run(shell, text):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        result = shell.run_cell(text, store_history=True)
    return result, out.getvalue()


def test_a_cell_is_recorded_and_keeps_its_value(shell):
    result, text = run(shell, "%%pyfunc_trace\nfor i in range(5): y = step(one)\nfloat(y[0])")
    assert result.result == 2.0
    assert shell.user_ns["_"] == 2.0
    recording = shell.user_ns["_pyfunc"]
    assert [call.status for call in recording.calls("augment")] == ["ok"] * 5
    assert "augment  numpy cell [" in text, "a terminal gets the ledger, with its cells by number"
    assert shell.history_manager.input_hist_raw[-1].startswith("%%pyfunc_trace\n")


def test_a_breakpoint_in_a_cell_names_the_cell(shell):
    place = "b = pfd.break_on(augment.__code__.co_filename + ':4'); b"
    result, text = run(shell, f"import pyfunc_debug as pfd\n{place}")
    shell.user_ns["b"].remove()
    assert repr(result.result).startswith("<breakpoint ")
    assert "before cell [" in text
    assert "ipython" not in text


class _Own(list):
    def _repr_html_(self):
        return "own"


def test_lists_of_calls_values_and_findings_show_as_tables_and_others_as_themselves(shell):
    run(shell, "%%pyfunc_trace\nfor i in range(3): y = step(one * np.nan if i == 1 else one)")
    recording = shell.user_ns["_pyfunc"]
    calls = list(recording.calls())
    html_of = lambda value: shell.display_formatter.format(value)[0].get("text/html")  # noqa: E731 - three words
    table = html_of(calls)
    assert [table.count(part) for part in ("<tr>", "<th ", "augment<", "NaN 2")] == [4, 4, 3, 2]
    assert html_of(recording.calls()) == table, "also while they are still to be read"
    assert "and 50 more" in html_of(calls * 50)
    assert "float32[2]" in html_of(calls[0].inputs)
    found = Finding("nan", "note", None, (), "NaN came in", "look", None, None)
    assert html_of([found]) == html_of(Findings([found])) == html_of(found)
    assert "no findings" in html_of(recording.findings())
    assert [html_of(one) for one in ([], (), [1, 2], (1, calls[0]), _Own([1]))] == [None, None, None, None, "own"]


def test_a_cell_typed_line_by_line_ends_with_a_blank_line(shell):
    complete = shell.input_transformer_manager.check_complete
    assert complete("%%pyfunc_trace --lines")[0] == "incomplete"
    assert complete("%%pyfunc_trace --lines\nstep(one)")[0] == "incomplete"
    assert complete("%%pyfunc_trace --lines\nstep(one)\n\n")[0] == "complete"
    assert complete("%pyfunc_trace step(one)")[0] == "complete"


def test_an_error_ends_the_recording_and_has_the_cells_own_frames(shell):
    result, _ = run(shell, "%%pyfunc_trace\nstep(one)\n1/0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    frames = []
    traceback = result.error_in_exec.__traceback__
    while traceback is not None:
        frames.append((traceback.tb_frame.f_code.co_filename, traceback.tb_lineno))
        traceback = traceback.tb_next
    assert not any("jupyter_ext" in file for file, _ in frames)
    assert frames[-1][1] == 3, "the line as it is in the cell"
    assert run(shell, "%pyfunc_trace status")[1].startswith("not recording; the last recording is")


def test_a_statement_is_recorded_like_timeit(shell):
    result, _ = run(shell, "%pyfunc_trace step(one * 3)")
    assert float(result.result[0]) == 6.0
    assert len(list(shell.user_ns["_pyfunc"].calls())) == 1
    # Among other statements it is a plain line magic; braces and dollars are Python's.
    result, _ = run(shell, "a = 1\n%pyfunc_trace d = {str(a): '$HOME', 'y': step(one)}\nd['1']")
    assert result.result == "$HOME"
    assert len(list(shell.user_ns["_pyfunc"].calls())) == 1


def test_on_records_the_cells_that_follow_until_off(shell):
    run(shell, "%pyfunc_trace --values full on")
    run(shell, "step(one)")
    _, text = run(shell, "%%pyfunc_trace\n1")
    assert "UsageError" in text
    assert "%pyfunc_trace off" in text
    run(shell, "step(one)")
    assert "recording into" in run(shell, "%pyfunc_trace status")[1]
    assert "augment" in run(shell, "%pyfunc_trace off")[1]
    calls = list(shell.user_ns["_pyfunc"].calls("augment"))
    assert len(calls) == 2
    assert calls[0].inputs[0].array().tolist() == [1.0, 1.0]
    assert run(shell, "%pyfunc_trace off")[1] == "not recording\n"


def test_options_reach_the_recorder(shell, tmp_path):
    run(shell, "name = 'kept'\n")
    run(shell, "%%pyfunc_trace -o {name}.pfrec --values none --nodes other*\nstep(one)")
    recording = shell.user_ns["_pyfunc"]
    assert recording.path == str(tmp_path / "kept.pfrec")
    assert list(recording.calls()) == []
    # Running the cell again replaces its recording.
    run(shell, "%%pyfunc_trace -o kept.pfrec\nstep(one)")
    assert len(list(shell.user_ns["_pyfunc"].calls())) == 1


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("%%pyfunc_trace --fast\n1", "--fast"),
        ("%%pyfunc_trace --values lots\n1", "lots"),
        ("%%pyfunc_trace --budget many\n1", "many"),
        ("%%pyfunc_trace spam\n1", "spam"),
        ("%%pyfunc_trace -o /dev/null/a.pfrec\n1", "folder"),
        ("%pyfunc_show nothing_like_it", "nothing_like_it"),
        ("%pyfunc_show 99999", "99999"),
        ("%pyfunc_show --source", "NAME"),
        ("%pyfunc_show --source nothing_like_it", "nothing_like_it"),
        ("%pyfunc_show --sauce step", "--source NAME"),
        ("%pyfunc_report", "FILE.html"),
        ("%pyfunc_trace --no-gil off", "options"),
    ],
)
def test_bad_use_is_one_line_and_records_nothing(shell, cell, words):
    run(shell, "%pyfunc_trace step(one)")
    before = shell.user_ns["_pyfunc"]
    _, text = run(shell, cell)
    assert text.startswith("UsageError: ")
    assert words in text
    assert "Traceback" not in text
    assert shell.user_ns["_pyfunc"] is before
    assert run(shell, "%pyfunc_trace status")[1].startswith("not recording")


def test_a_file_of_the_users_is_never_replaced(shell, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert "UsageError" in run(shell, "%%pyfunc_trace -o notes.txt\n1")[1]
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_show_and_report_in_a_terminal(shell, tmp_path):
    assert "UsageError" in run(shell, "%pyfunc_show")[1]
    run(shell, "%pyfunc_trace step(one)")
    assert "augment" in run(shell, "%pyfunc_show")[1]
    assert "in  x            float32[2]" in run(shell, "%pyfunc_show 1")[1]
    assert "written" in run(shell, "%pyfunc_report here.html")[1]
    assert (tmp_path / "here.html").read_text().startswith("<!doctype html>")


def test_a_ledger_of_chosen_nodes_says_so(shell):
    text = run(shell, "%pyfunc_trace --nodes nothing* step(one)")[1]
    assert "only calls of nodes that match nothing* were recorded" in text
    assert "No call of a py_function was recorded" in text
    assert "only calls" not in run(shell, "%pyfunc_trace step(one)")[1]


def test_lines_are_counted_and_shown(shell):
    run(shell, "%pyfunc_trace --lines step(one)")
    text = run(shell, "%pyfunc_show --source augment")[1]
    assert " 1x | " in text
    assert "not counted: record with lines" not in text
    run(shell, "%pyfunc_trace step(one)")
    assert "lines were not counted" in run(shell, "%pyfunc_show --source augment")[1]
    assert "step was traced before recording began" in run(shell, "%pyfunc_show --source step")[1]
    assert "step" in shell.complete("s", "%pyfunc_show --source s", 23)[1]


def test_node_names_options_and_words_are_completed(shell):
    run(shell, "%pyfunc_trace step(one)")
    assert "augment" in shell.complete("a", "%pyfunc_show a", 14)[1]
    assert "augment" in shell.complete("a", "%%pyfunc_trace --nodes a", 24)[1]
    assert "full" in shell.complete("f", "%%pyfunc_trace --values f", 25)[1]
    assert "status" in shell.complete("st", "%pyfunc_trace st", 16)[1]
    assert "augment" in shell.complete("a", "%pyfunc_break a", 15)[1]
    assert "gradient" in shell.complete("g", "%pyfunc_break augment --when g", 30)[1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%pyfunc_break augment --hits many", "--hits takes a whole number, not 'many'"),
        ("%pyfunc_break augment --if x.max() > 1", 'quotes: --if "x.max() > 1"'),
        ("%pyfunc_break clear 70", "there is no breakpoint 70"),
        ("%pyfunc_break clear all", "clear takes a whole number, not 'all'"),
        ("%pyfunc_debug last", "%pyfunc_debug takes a whole number, not 'last'"),
    ],
)
def test_bad_use_of_breakpoints_is_one_line(shell, line, words):
    assert words in run(shell, line)[1]
    assert run(shell, "%pyfunc_break list")[1].strip() == "no breakpoints"


def test_the_status_counts_calls_and_nothing_else(shell):
    run(shell, "%pyfunc_trace --no-gil on")
    for _ in range(3):
        run(shell, "step(one)")
    assert "3 calls so far" in run(shell, "%pyfunc_trace status")[1]
    run(shell, "%pyfunc_trace off")


def test_lines_of_the_graph_are_counted_when_asked_for(shell):
    run(shell, "%pyfunc_trace --graph-lines step(one)")
    assert "by TensorFlow's profiler" in run(shell, "%pyfunc_show --source step")[1]


def test_the_doctor_says_what_deserves_attention(shell):
    assert "nothing was recorded yet" in run(shell, "%pyfunc_doctor")[1]
    run(shell, "%pyfunc_trace step(one)")
    assert run(shell, "%pyfunc_doctor")[1].strip() == "No findings."
    run(shell, "%%pyfunc_trace\ntf.numpy_function(lambda x: 1 / 0, [one], tf.float32)")
    assert "error: " in run(shell, "%pyfunc_doctor")[1]
    assert "error: " not in run(shell, "%pyfunc_doctor --ignore body-raised")[1]
    assert "it takes --select RULE and --ignore RULE" in run(shell, "%pyfunc_doctor augment")[1]


ROOT = "import numpy as np\ndef root(x): return np.sqrt(x)\n{} tf.numpy_function(root, [-one], tf.float32)"


@pytest.mark.parametrize("magic", ["%%pyfunc_trace\n{}", "%%pyfunc_trace --no-panel\n{}"])
def test_findings_are_said_as_the_cell_ends(shell, magic):
    text = run(shell, magic.format(ROOT.format("y =")))[1]
    assert text.count("[nan-born]") == 1
    assert "[nan-born]" not in run(shell, magic.format("step(one)"))[1]


def test_findings_are_said_as_a_session_ends(shell):
    run(shell, "%pyfunc_trace on")
    assert "[nan-born]" not in run(shell, ROOT.format("y ="))[1]
    assert "[nan-born]" in run(shell, "%pyfunc_trace off")[1]


def test_what_stood_under_the_traceback_is_not_said_twice(shell):
    text = run(shell, "%%pyfunc_trace\n@tf.function\ndef f(x): return x.numpy()\nf(one)")[1]
    assert "pyfunc-debug: " in text
    assert "[symbolic-value]" not in text
    assert "[symbolic-value]" in run(shell, "%pyfunc_doctor")[1]


def test_the_five_most_important_findings_are_said_with_what_is_pasted_as_it_is(shell):
    run(shell, "%pyfunc_trace step(one)")
    paste = "Replace a.py:3 by:\n    return x < 1  # &"
    findings = [Finding("retrace", "warning", None, (), f"<b>{number}</b>", paste, "a.py", 3) for number in range(7)]
    forms = static_forms(shell.user_ns["_pyfunc"], None, findings)
    assert "warning: a.py:3: <b>4</b> [retrace]\n  -> Replace a.py:3 by:\n    return x < 1  # &" in forms["text/plain"]
    assert "<b>5</b>" not in forms["text/plain"]
    assert forms["text/plain"].endswith("2 more findings: %pyfunc_doctor")
    assert ">Replace a.py:3 by:\n    return x &lt; 1  # &amp;</pre>" in forms["text/html"]
    assert "&lt;b&gt;4&lt;/b&gt;" in forms["text/html"]
    assert "&gt;5&lt;" not in forms["text/html"]
    assert "2 more findings: %pyfunc_doctor" in forms["text/html"]


def test_a_doctor_that_fails_does_not_take_the_ledger_with_it(shell, monkeypatch, caplog):
    def failing(*arguments, **named):
        raise ZeroDivisionError

    monkeypatch.setattr(Recording, "findings", failing)
    assert "augment  numpy cell [" in run(shell, "%%pyfunc_trace\nstep(one)")[1]
    assert "the doctor failed" in caplog.text


def test_each_magic_explains_itself_with_a_question_mark(shell):
    for magic in ("%%pyfunc_trace?", "%pyfunc_show?", "%pyfunc_report?", "%pyfunc_doctor?"):
        shell.run_cell(magic).raise_error()
    assert "--values" in shell.magics_manager.magics["cell"]["pyfunc_trace"].__doc__
    assert "off" in shell.magics_manager.magics["line"]["pyfunc_trace"].__doc__


def test_unloading_restores_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()

    def state():
        return (
            {kind: dict(table) for kind, table in shell.magics_manager.magics.items()},
            list(shell.input_transformers_cleanup),
            list(shell.events.callbacks["pre_run_cell"]),
            list(shell.events.callbacks["post_run_cell"]),
            {key: list(value) for key, value in shell.strdispatchers["complete_command"].strs.items()},
        )

    before = state()
    jupyter_ext.load_ipython_extension(shell)
    loaded = state()
    jupyter_ext.load_ipython_extension(shell)
    assert state() == loaded, "loading twice does nothing"
    run(shell, SETUP)
    run(shell, "%pyfunc_trace on")
    jupyter_ext.unload_ipython_extension(shell)
    assert state() == before
    from pyfunc_debug.api.live import current

    assert current() is None
    InteractiveShell.clear_instance()


@pytest.mark.slow
def test_loading_imports_neither_tensorflow_nor_widgets():
    code = (
        "import sys; from IPython.core.interactiveshell import InteractiveShell; s = InteractiveShell.instance();"
        "s.run_line_magic('load_ext', 'pyfunc_debug');"
        "print(sorted({'tensorflow', 'anywidget', 'ipywidgets', 'numpy'} & set(sys.modules)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_what_a_cell_becomes_is_nowhere_to_be_seen(shell):
    import linecache

    shown = str(shell.run_line_magic("lsmagic", "")) + " ".join(shell.complete("%pyfunc")[1])
    assert "pyfunc_trace" in shown
    assert "begin" not in shown
    result, text = run(shell, "%%pyfunc_trace --no-panel -o a.pfrec\nstep(one)\n1 / 0")
    assert type(result.error_in_exec) is ZeroDivisionError
    assert "run_line_magic" not in text
    assert "# %%pyfunc_trace --no-panel -o a.pfrec" in text
    file = result.error_in_exec.__traceback__.tb_next.tb_frame.f_code.co_filename
    assert linecache.getlines(file) == ["# %%pyfunc_trace --no-panel -o a.pfrec\n", "step(one)\n", "1 / 0\n"]
    _, text = run(shell, "%%pyfunc_trace --vlaues=full\n1")
    assert "vlaues" in text
    assert "run_line_magic" not in text


def test_a_breakpoint_on_a_name_that_nothing_has_says_so_and_names_the_nearest(shell):
    run(shell, "step(one)")
    run(shell, "%%pyfunc_trace --no-panel\nstep(one)")
    try:
        _, text = run(shell, "%pyfunc_break augmnet")
        assert "augmnet" in text
        assert "augment" in text.replace("augmnet", "")
        _, text = run(shell, "%pyfunc_break augment")
        assert "nothing has the name" not in text
    finally:
        run(shell, "%pyfunc_break clear")
