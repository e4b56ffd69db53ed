"""What a body does one by one: loops are named where there are some, Python's functions of arrays with NumPy's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pyfunc_debug.doctor.bodies import element_by_element

HEAD = "import numpy as np\nfrom numpy import flatnonzero\n"
CROP = """def load(x):
    xs, ys = np.where(x != 0)
    return x[min(xs):max(xs) + 1, min(ys):max(ys) + 1]
"""
ONE = """def load(x):
    rows = np.nonzero(x)[0]
    return sum(rows)
"""
FLAT = """def load(x):
    rows = flatnonzero(x)
    return max(rows) - min(rows)
"""
LOOP = """def load(x):
    for i in range(9):
        x = x + i
    return x
"""
COMPREHENDED = "def load(x):\n    return max([float(v) for v in x])\n"


def looked(tmp_path, source):
    """What is found in a file's function, and what is said of it."""
    path = tmp_path / "load.py"
    path.write_text(HEAD + source)
    node: Any = SimpleNamespace(file=str(path), line=3, kind="py_function", body="load")
    facts = cast("Any", SimpleNamespace(name=lambda node: node.body, decorated={}))
    found = element_by_element.of_node(facts, node)
    return found, lambda: element_by_element.instead(facts, node)


@pytest.mark.parametrize(
    ("source", "methods"),
    [
        (CROP, ["xs.max()", "xs.min()", "ys.max()", "ys.min()"]),
        (ONE, ["rows.sum()"]),
        (FLAT, ["rows.max()", "rows.min()"]),
    ],
    ids=["crop", "one", "flat"],
)
def test_functions_of_index_arrays_have_a_method_of_numpy_in_their_place(source, methods, tmp_path):
    found, _ = looked(tmp_path, source)
    assert sorted(found.builtins.values()) == methods
    assert not found.loops


@pytest.mark.parametrize("source", [LOOP, COMPREHENDED], ids=["loop", "comprehension"])
def test_loops_are_said_where_there_are_some(source, tmp_path):
    found, said = looked(tmp_path, source)
    assert found.loops
    assert said() == "NumPy on whole arrays or tf.* in place of the Python loops in load"


@pytest.mark.parametrize(
    "source",
    [
        "def load(x):\n    return max(x)\n",  # a tensor, or of several axes
        "def load(x):\n    pair = np.where(x)\n    return max(pair)\n",  # a tuple of arrays
        "def load(x):\n    xs, ys = np.where(x)\n    xs = [1]\n    return max(xs)\n",  # a list by then
        "def load(x):\n    y = np.where(x > 0, x, 0)\n    return max(y)\n",  # of any shape
        "def load(x):\n    xs, = np.where(x)\n    return max(xs, key=abs)\n",
        "def load(x):\n    xs, = np.where(x)\n    return sorted(xs)\n",  # a list
        "def load(x):\n    xs, = np.where(x)\n    return max(xs)\ndef max(v):\n    return 3\n",
    ],
)  # fmt: skip
def test_what_may_be_another_thing_is_left_as_it_is(source, tmp_path):
    found, said = looked(tmp_path, source)
    assert found.builtins == {}
    assert said() == "NumPy on whole arrays or tf.* in place of plain Python in load"
