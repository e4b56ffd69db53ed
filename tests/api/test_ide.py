"""`pfd.ide()` changes one attribute, beside a recording none, and puts it back; a program does not notice."""

from __future__ import annotations

import sys

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.switchboard import board, switches

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12's debuggers see every thread")


def _call(tf):
    from tensorflow.python.ops import script_ops

    return vars(script_ops.FuncRegistry)["__call__"]


def test_ide_gives_way_to_a_recording_and_comes_back(tf):
    original = _call(tf)
    pfd.ide()
    alone = _call(tf)
    assert alone.__module__ == "pyfunc_debug.interception.ide"
    with pfd.record(gil=False) as recording:
        assert _call(tf).__module__ == "pyfunc_debug.interception.calls"
        assert board.observer.debugger
        tf.py_function(abs, [-1.0], tf.float32)
    assert len(list(recording.calls())) == 1
    assert _call(tf).__module__ == "pyfunc_debug.interception.ide"
    with pfd.record(gil=False):
        pfd.ide(False)
        assert not board.observer.debugger
    assert _call(tf) is original
    with pfd.record(gil=False):
        pfd.ide()
    assert _call(tf) is not original
    pfd.ide(False)
    assert _call(tf) is original


def test_errors_read_as_without_us(tf):
    def body(x):
        raise ValueError("no")

    f = tf.function(lambda x: tf.py_function(body, [x], tf.float32))

    def text():
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            f(1.0)
        return caught.value.message

    plain = text()
    pfd.ide()
    try:
        assert text() == plain
    finally:
        pfd.ide(False)


def test_in_a_notebook_an_attached_debugger_is_enough(tf, monkeypatch):
    original = _call(tf)
    board.cell_begins()
    assert _call(tf) is original
    board.cell_ends()
    monkeypatch.setattr(switches, "attached", lambda: True)
    board.cell_begins()
    assert _call(tf) is not original
    board.cell_ends()
    assert _call(tf) is original
