"""`breakpoint()` in bodies of a notebook that has loaded the extension and nothing else."""

from __future__ import annotations

import re

import pytest

from tests.stops.kernels import Kernel

SETUP = """
import sys
import tensorflow as tf
from tensorflow.python.ops import script_ops
stock = (script_ops.FuncRegistry.__call__, script_ops.py_func_common, sys.breakpointhook)
%load_ext pyfunc_debug
def plain(x):
    return x * 2
"""
STOCK = "print(stock == (script_ops.FuncRegistry.__call__, script_ops.py_func_common, sys.breakpointhook))"
PLAIN = f"print(float(tf.py_function(plain, [2.0], tf.float32)))\n{STOCK}"
BODY = """
def body(x):
    y = x * 3
    breakpoint()
    return y
f = tf.function(lambda x: tf.py_function(body, [x], tf.float32))
"""
INSIDE = """
def make(x):
    def body(v):
        y = v * 3
        breakpoint()
        return y
    return tf.py_function(body, [x], tf.int64)
print([int(one) for one in tf.data.Dataset.range(1, 3).map(make)])
"""


@pytest.fixture(scope="module")
def kernel():
    with Kernel() as kernel:
        said = [kernel.run(cell)[:2] for cell in (SETUP, PLAIN, BODY)]
        assert not any(error for _, error in said), said
        kernel.plain = said[1][0]
        yield kernel


def test_cells_without_breakpoint_run_stock_tensorflow(kernel):
    assert kernel.plain == "4.0\nTrue\n"


@pytest.mark.parametrize(
    ("code", "printed", "stops"),
    [
        (BODY + "print(float(f(tf.constant(2.0))))", "6.0", 1),
        ("print(float(f(tf.constant(2.0))))", "6.0", 1),
        ("print(float(tf.py_function(body, [2.0], tf.float32)))", "6.0", 1),
        ("print(float(tf.numpy_function(body, [2.0], tf.float32)))", "6.0", 1),
        (INSIDE, "[3, 6]", 2),
    ],
    ids=["in the cell that defines it", "in a later cell", "eager", "eager numpy_function", "Dataset.map"],
)
def test_breakpoint_opens_our_prompt_on_that_call(kernel, code, printed, stops):
    text, error, prompts = kernel.run(code, ["p 'y is', y", "c"] * stops)
    assert not error, text
    assert len(re.findall(r"^\('y is', .*", text, re.MULTILINE)) == stops, text
    assert text.endswith(printed + "\n"), text
    assert re.search(r"-> return y", text)
    assert "__autograph" not in text
    assert all("body #" in prompt for prompt in prompts)


def test_q_and_interrupt_end_the_cell_and_the_next_one_stops_again(kernel):
    watched = kernel.run("import pyfunc_debug as pfd\nwith pfd.record(gil=False):\n    f(tf.constant(2.0))", ["q"])[1]
    _, error, _ = kernel.run("f(tf.constant(2.0))", ["q"])
    assert re.sub("[0-9]", "", error) == re.sub("[0-9]", "", watched)
    assert "Abort: quit at a pyfunc_debug stop" in error
    shown, error, prompts = kernel.run("f(tf.constant(2.0))", on_input=kernel.manager.interrupt_kernel)
    assert error.startswith("KeyboardInterrupt")
    assert "relay.py" not in shown
    assert len(prompts) == 1
    text, error, _ = kernel.run("%debug", ["p int(x)", "q"])
    assert "\n2\n" in text
    text, error, _ = kernel.run("print(float(f(tf.constant(2.0))))", ["c"])
    assert text.endswith("6.0\n"), error


def test_what_failed_in_the_cell_before_opens_in_the_debugger(kernel):
    """A cell that may stop has an interception of its own: what the one before kept is still there."""
    _, error, _ = kernel.run(
        "def bad(x):\n    secret = 4\n    raise ValueError\ntf.py_function(bad, [1.0], tf.float32)"
    )
    assert error
    kernel.run("'a cell in between'")
    text, error, _ = kernel.run("%pyfunc_debug", ["p 'it is', secret", "q"])
    assert "('it is', 4)" in text, error


def test_outside_of_bodies_set_trace_is_the_kernels_own(kernel):
    text, error, prompts = kernel.run(
        "import pdb\ndef plain_function(v):\n    pdb.set_trace(header='said first')\n    return v + 1\n"
        "print(plain_function(4))",
        ["p 'v is', v", "c"],
    )
    assert text.startswith("said first\n"), error
    assert "('v is', 4)" in text
    assert text.endswith("5\n"), error
    assert set(prompts) == {"ipdb> "}


def test_debug_after_q_at_a_pipeline_opens_in_the_body(kernel):
    pipeline = "[float(v) for v in tf.data.Dataset.range(4).map(lambda i: f(tf.cast(i, tf.float32)), 4)]"
    _, error, prompts = kernel.run(pipeline, ["q"])
    # The pipeline raises what its first element did: the call that was quit, or one that waited for its turn behind it.
    assert re.search("Abort: (quit|interrupted) at a pyfunc_debug stop", error), error
    assert len(prompts) == 1
    text, error, _ = kernel.run("%debug", ["p 'y is', float(y)", "q"])
    assert "('y is', " in text, text


def test_without_somebody_to_answer_the_cell_goes_on(kernel):
    text, error, prompts = kernel.run("print(float(f(tf.constant(2.0))))", allow_stdin=False)
    assert text.endswith("6.0\n"), error
    assert not prompts


def test_a_cell_inside_a_cell_leaves_the_prompts_on(kernel):
    text, error, _ = kernel.run(
        "get_ipython().run_cell('inner = 1')\nprint(float(f(tf.constant(2.0))))", ["p 'inner is', inner", "c"]
    )
    assert "('inner is', 1)" in text, error
    text, error, _ = kernel.run(STOCK)
    assert text == "False\n", "cells are watched"


def test_a_module_that_the_first_cell_with_a_body_imports(tmp_path):
    """Of a package, through a module between; and then one that gets its breakpoint() later."""
    package = tmp_path / "of_mine"
    package.mkdir()
    (tmp_path / "between.py").write_text("if True:\n    from of_mine import (\n        loading,\n    )\n")
    (package / "__init__.py").write_text("")
    (package / "loading.py").write_text("def load(x):\n    z = x + 1\n    breakpoint()\n    return z\n")
    later = tmp_path / "later.py"
    later.write_text("def load(x):\n    z = x + 1\n    return z\n")
    with Kernel() as kernel:
        kernel.run(f"{SETUP}\nimport importlib\nsys.path.insert(0, {str(tmp_path)!r})\nimport later")
        call = "print(float(tf.py_function({}, [2.0], tf.float32)))"
        text, error, _ = kernel.run(f"{call.format('later.load')}\n{STOCK}")
        assert text == "3.0\nTrue\n", error
        later.write_text("def load(x):\n    z = x + 1\n    breakpoint()  # from now on\n    return z\n")
        text, error, _ = kernel.run(f"importlib.reload(later)\n{call.format('later.load')}", ["p float(z)", "c"])
        assert text.endswith("3.0\n"), error
    with Kernel() as kernel:
        kernel.run(f"{SETUP}\nsys.path.insert(0, {str(tmp_path)!r})")
        text, error, _ = kernel.run(f"import between\n{call.format('between.loading.load')}", ["p float(z)", "c"])
        assert text.endswith("3.0\n"), error


def test_another_debugger_is_honoured_and_unload_puts_all_back(kernel):
    text, error, prompts = kernel.run(
        "import os\nos.environ['PYTHONBREAKPOINT'] = '0'\nprint(float(f(tf.constant(2.0))))\n"
        "del os.environ['PYTHONBREAKPOINT']"
    )
    assert text == "6.0\n", error
    assert not prompts
    text, error, _ = kernel.run(f"%unload_ext pyfunc_debug\n{STOCK}")
    assert text == "True\n", error
    kernel.run("%load_ext pyfunc_debug")  # for other tests


TWO = """
def helper(x):
    z = x + 1
    return z

def two(x):
    y = helper(x)
    return y
g = tf.function(lambda x: tf.py_function(two, [x], tf.float32))
"""


def test_a_line_of_a_cell_stops_also_where_the_cell_runs_again_and_names_it_everywhere(kernel):
    def cell(number_of, answers=()):
        text, error, prompts = kernel.run(f"{number_of}\nprint('In', len(In) - 1)", answers)
        assert not error, text
        return text, int(text.rpartition("In ")[2]), prompts

    _, number, _ = cell(TWO.strip())
    set_, _, _ = cell(f"import pyfunc_debug as pfd\nstop = pfd.break_on('Cell In[{number}]:6')\nprint(stop)")
    assert f"before cell [{number}]:6, 0 hits" in set_
    call = "print(float(g(tf.constant(2.0))))"
    text, _, _ = cell(call, [f"b cell [{number}]:2", "b", "c", "w", "c"])
    for said in (
        f"(cell [{number}]:6): two #", f"\n> cell [{number}](6)two()\n-> y = helper(x)", f" at cell [{number}]:2\n",
        f"  cell [{number}](6)two()\n-> y = helper(x)\n> cell [{number}](2)helper()", "3.0",
    ):  # fmt: skip
        assert said in text
    assert "ipykernel" not in text
    _, again, _ = cell(TWO.strip())  # the same text: IPython compiles it under the same name
    text, _, _ = cell(call, ["c"])
    assert f"> cell [{again}](6)two()" in text
    assert "2 hits (2 stopped)" in cell("print(stop)\nstop.remove()")[0]
    listed, _, _ = cell(f"%pyfunc_break cell [{again}]:2 --if 'x > 1'\n%pyfunc_break")
    assert f"before cell [{again}]:2 if x > 1, 0 hits" in listed
    assert f"> cell [{again}](2)helper()" in cell(call, ["c"])[0]
    cell("%pyfunc_break clear")
    for line, why in ((4, "there is no code in this line"), (400, "the cell has lines 1 to 9")):
        assert why in kernel.run(f"pfd.break_on('cell [{again}]:{line}')")[1]
