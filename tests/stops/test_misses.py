"""A breakpoint that is not hit says why, and a file is found by each of its names."""

from __future__ import annotations

import os
import re
import textwrap

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.stops import Rules
from tests import forked

PROGRAM = """
import tensorflow as tf
def rel_body(x):
    y = x * 2.0
    if y > 100.0:
        y = y - 1.0
    return y
@tf.function
def run(x):
    x = x + 0.0
    return tf.py_function(rel_body, [x], tf.float32)
def unused(x):
    return x
"""


@pytest.fixture(scope="module")
def program(tf, tmp_path_factory):
    """Compiled under a relative name, as runpy and cProfile do, in a folder that a link leads to."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "rel_prog.py").write_text(PROGRAM)
    (folder / "link").symlink_to(folder, target_is_directory=True)
    (folder / "other.py").write_text("x = 1\n")
    here = os.getcwd()
    os.chdir(folder)
    names = {"__name__": "rel_prog"}
    exec(compile(PROGRAM, "rel_prog.py", "exec"), names)
    assert float(names["run"](tf.constant(1.0))) == 2.0
    yield names["run"]
    os.chdir(here)


def test_a_line_of_a_program_that_was_begun_by_a_relative_name_and_goes_to_another_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "moved.py").write_text(
        "import os\nimport tensorflow as tf\nimport pyfunc_debug\nos.chdir('/')\n"
        "def body(x):\n    y = x + 1\n    return y\n"
        f"stop = pyfunc_debug.break_on({str(tmp_path / 'sub' / 'moved.py')!r} + ':7')\n"
        "with pyfunc_debug.answers('b 6', 'c') as said:\n    tf.py_function(body, [1.0], tf.float32)\n"
        "print(said, stop)\n"
    )
    code = "import runpy; runpy.run_path('sub/moved.py')"
    done = forked.run("-c", code, cwd=tmp_path)
    assert f"> {tmp_path / 'sub' / 'moved.py'}(7)body()\n-> return y\n" in done.stdout, done
    assert f"Breakpoint 1 at {tmp_path / 'sub' / 'moved.py'}:6" in done.stdout
    assert "1 hit (1 stopped)" in done.stdout


@pytest.mark.parametrize(
    ("where", "options", "why"),
    [
        ("rel_bdoy", {}, "no node of that name was called since it was set (there are rel_body"),
        ("rel_body", {"condition": "x > 50"}, "its condition was false each time"),
        ("rel_body", {"when": "error"}, "no call of it raised an exception"),
        ("rel_body", {"when": "gradient"}, "no gradient of rel_body was computed"),
        ("rel_prog.py:6", {}, "no call came to that line"),
        ("rel_prog.py:10", {}, "TensorFlow runs that line: run becomes a graph, and Python comes there only while"),
        ("rel_prog.py:13", {}, "no call of a body came to that line"),
        ("rel_porg.py:4", {}, "no file of that name has a node or a body (there are"),
    ],
)
def test_no_hits_are_explained(tf, program, where, options, why, capsys):
    from pyfunc_debug.switchboard import board

    stop = pfd.break_on(where, **options)
    assert float(program(tf.constant(1.0))) == 2.0
    assert f"0 hits because {why}" in repr(stop)
    board.observer.tell_misses()  # as at the end of a program
    assert f"{where}" in (said := capsys.readouterr().err)
    assert f"0 hits because {why}" in said
    stop.remove()


def test_a_mapped_function_without_a_py_function_is_said_to_become_a_graph(tf):
    def read_record(x):
        y = x * 2
        return y

    def body(x):
        return x

    line = f"{os.path.basename(__file__)}:{read_record.__code__.co_firstlineno + 1}"
    rules = [pfd.break_on("*read_record"), pfd.break_on(line)]
    data = tf.data.Dataset.range(3)
    assert [int(x) for x in data.map(lambda x: read_record(x))] == [0, 2, 4]
    named, at_line = map(repr, rules)
    assert "read_record becomes a graph: Python runs it only while it is traced; tf.py_function runs it each" in named
    assert "0 hits because TensorFlow runs that line: read_record becomes a graph" in at_line
    assert [int(x) for x in data.map(lambda x: tf.py_function(body, [x], tf.int64))] == [0, 1, 2]
    assert "0 hits because TensorFlow runs that line: read_record becomes a graph" in repr(rules[1])
    for rule in rules:
        rule.remove()


def test_cells_are_named_as_their_lines_are(monkeypatch):
    from pyfunc_debug.events import Body, NodeFacts
    from pyfunc_debug.stops import misses

    monkeypatch.setattr(misses, "cell_label", lambda file: "cell [3]" if "ipykernel" in file else None)
    body = Body("work", "/tmp/ipykernel_1/123.py", 1, (), internal=False)
    node = NodeFacts("pyfunc_0", "py_function", body, None, None, None, (), (), (), (), False, None, None)
    rule = Rules().add("cell [4]:2")
    assert misses.why_not_hit(rule, [node], [], True).endswith("(there are cell [3])")


def test_a_pydataset_of_processes_is_told_before_its_condition():
    from pyfunc_debug.events import Body, NodeFacts
    from pyfunc_debug.stops import misses

    body = Body("Data.__getitem__", "/tmp/data.py", 1, (), True, "processes")
    node = NodeFacts("pyfunc_0", "numpy_function", body, None, None, None, (), (), (), (), True, None, None)
    rule = Rules().add("*__getitem__", condition="i == 5")
    rule.came_false = True  # for the first two elements, which Keras takes in this process
    assert "in processes of its own, where nothing stops" in misses.why_not_hit(rule, [node], [], True)


def test_a_file_is_found_by_each_of_its_names(tf, program):
    names = ("rel_prog.py", "./rel_prog.py", os.path.abspath("rel_prog.py"), os.path.abspath("link/rel_prog.py"))
    stops = [pfd.break_on(f"{name}:4", policy="skip") for name in names]
    with pfd.answers(*["p float(x)", "c"] * len(names)) as dialogue:
        assert float(program(tf.constant(1.0))) == 2.0
    assert str(dialogue).count("-> y = x * 2.0") == 1, "a call stops once at a line"
    for stop in stops:
        stop.remove()
    for name in names:
        stop = pfd.break_on(f"{name}:4")
        with pfd.answers("c"):
            program(tf.constant(1.0))
        assert stop.hits == 1, name
        stop.remove()


def test_a_line_of_a_custom_gradient_and_of_a_generator_stops(tf, capsys):
    @tf.custom_gradient
    def tripled(x):
        def grad(dy):
            up = dy * 3.0
            return up

        return x * 1.0, grad

    def numbers():
        for i in range(3):
            value = i * 2.0
            yield value

    run = tf.function(lambda x: tf.py_function(tripled, [x], tf.float32))
    data = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.float32))
    file, first = os.path.basename(__file__), tripled.__wrapped__.__code__.co_firstlineno
    lines = (first + 3, first + 4, numbers.__code__.co_firstlineno + 3)
    stops = [pfd.break_on(f"{file}:{line}") for line in lines]
    asked = pfd.break_on("*tripled", when="gradient")
    x = tf.constant(2.0)
    with pfd.answers("c", "p float(up)", "c", "s", "s", "c", "c") as said, tf.GradientTape() as tape:
        tape.watch(x)
        y = run(x)
        assert float(tape.gradient(y, x)) == 3.0
    with pfd.answers("p value", "c", "n", "n", "p i", "c", "c") as said:
        assert [float(one) for one in data] == [0.0, 2.0, 4.0]
    assert [one.hits for one in stops] == [1, 1, 3], str(said)
    assert "trouble" not in capsys.readouterr().err
    for one in (*stops, asked):
        one.remove()


def test_commands_of_a_line_breakpoint_made_at_a_prompt_run(tf, program):
    stop = pfd.break_on("rel_body")
    dialogue = textwrap.dedent(
        """
        b 7
        commands
        silent
        p 'y is', float(y)
        end
        c
        c
        """
    ).split("\n")[1:-1]
    with pfd.answers(*dialogue) as said:
        assert float(program(tf.constant(4.0))) == 8.0
    stop.remove()
    assert re.search(r"\('y is', 8.0\)", str(said)), str(said)
    assert said.left == []


def test_a_line_that_makes_a_node_waits_for_its_calls(tf):
    def body(x):
        return x + 1

    @tf.function
    def run(x):
        return tf.py_function(body, [x], tf.float32)

    named = pfd.break_on("body")  # so that nodes are known
    with pfd.answers("c"):
        run(tf.constant(1.0))
    here = f"{os.path.basename(__file__)}:{run.python_function.__code__.co_firstlineno + 2}"
    rules = [pfd.break_on(here), pfd.break_on(here, when="error"), pfd.break_on(here, when="gradient")]
    assert [repr(one).partition("because ")[2].rstrip(">") for one in rules] == [
        "no call of the node that this line makes came since",
        "no call of the node that this line makes failed since",
        "no gradient of the node that this line makes came since",
    ]
    named.disable()
    with pfd.answers("c"):
        run(tf.constant(1.0))
    assert rules[0].hits == 1
    for one in (named, *rules):
        one.remove()
