"""What the switchboard does around calls, besides passing them on."""

from __future__ import annotations

import contextvars
import threading

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.switchboard import board


@pytest.fixture
def cell():
    """A context variable, as those of ipykernel, that bodies on TensorFlow's threads are to have."""
    variable = contextvars.ContextVar("parent_header", default="nothing")
    board.cell_context = [(variable, "the cell")]
    yield variable
    board.cell_context = []


def test_only_threads_of_tensorflow_get_the_context_of_the_cell(tf, cell):
    seen = []

    def body(x):
        seen.append(cell.get())
        return x

    def work():
        cell.set("an earlier cell")
        tf.py_function(body, [1.0], tf.float32)
        seen.append(cell.get())

    with pfd.record(gil=False):
        tf.function(lambda: tf.py_function(body, [1.0], tf.float32))()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == ["the cell", "an earlier cell", "an earlier cell"]
