"""tf.functions run eagerly on one thread, for whoever asks and as long as they ask."""

from __future__ import annotations

import threading

import pytest

from pyfunc_debug.interception.graphs.eagerly import eagerly, eagerly_if_possible


@pytest.mark.parametrize(("first", "second"), [(eagerly, eagerly_if_possible), (eagerly_if_possible, eagerly)])
def test_a_comparison_and_an_evaluation_do_not_switch_each_other_off(tf, first, second):
    from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

    runs_eagerly = tf.function(lambda: tf.constant(tf.executing_eagerly()))
    before = vars(Function)["_run_functions_eagerly"]
    entered, leave = threading.Event(), threading.Event()

    def other():
        with first():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait()
    with second():
        leave.set()
        thread.join()
        assert bool(runs_eagerly())
    assert vars(Function)["_run_functions_eagerly"] is before
