"""Gradients, three ways: TensorFlow alone, stock mode, exact mode; against the analytic answers."""

import gc
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import pyfunc_debug as pfd
from tests import forked
from tests.interception.gradients.gradient_programs import PROGRAMS

ROOT = str(Path(__file__).parents[3])
ENVIRONMENT = {
    **os.environ,
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONPATH": os.pathsep.join([ROOT, *filter(None, sys.path)]),
}


def run(*command, **options):
    done = forked.run(*command, env=ENVIRONMENT, **options)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def outcomes():
    """What every program gives each way, in a process that begins without anything of ours."""
    printed = run("-m", "tests.interception.gradients.gradient_programs", "plain,stock,switch", cwd=ROOT)
    found = [json.loads(line) for line in printed.splitlines() if line.startswith('{"')]
    return {mode: given for one in found for mode, given in one.items()}


def near(found, wanted):
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(near, found, wanted))
    if found is None or wanted is None:
        return found is wanted
    return np.shape(found) == np.shape(wanted) and np.allclose(found, wanted, rtol=1e-4)


def test_there_are_enough_programs_and_tensorflow_alone_fails_at_many(outcomes):
    assert len(PROGRAMS) >= 60
    right = [
        name
        for name, (_, truth, _) in PROGRAMS.items()
        if not isinstance(truth, str) and near(outcomes["plain"][name].get("value"), truth)
    ]
    assert len(right) < len(PROGRAMS) - 30  # else there would be nothing to put right


@pytest.mark.parametrize("name", PROGRAMS)
def test_exact_mode_gives_the_analytic_answer(outcomes, name):
    found, truth = outcomes["switch"][name], PROGRAMS[name][1]
    if isinstance(truth, str):
        assert found.get("error") == truth, found
    else:
        assert near(found.get("value"), truth), found


@pytest.mark.parametrize("name", [name for name, (_, _, stock) in PROGRAMS.items() if stock == "same"])
def test_stock_mode_gives_what_tensorflow_gives_to_the_letter(outcomes, name):
    plain, stock = outcomes["plain"][name], outcomes["stock"][name]
    assert plain.get("error") == stock.get("error"), (plain, stock)
    assert plain.get("text") == stock.get("text")
    assert near(stock.get("value"), plain.get("value"))


def test_stock_mode_has_no_troubles(outcomes):
    assert outcomes["troubles"] == {}


@pytest.mark.parametrize("name", PROGRAMS)
def test_exact_mode_leaves_no_tape_alive(outcomes, name):
    assert outcomes["switch"][name]["live"] == 0


# -- in this process ---------------------------------------------------------------------------------------------------


def square(x):
    return x * x


def node(tf, body=square, shape=()):
    @tf.function
    def f(x):
        return tf.ensure_shape(tf.py_function(body, [x], tf.float32), shape)

    return f


def interleaved(tf, f):
    """6 when right; TensorFlow says 200."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    f(tf.constant(100.0))
    return float(tape.gradient(y, x))


def simple(tf, f):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return float(tape.gradient(y, x))


def test_the_switch_works_both_ways_without_retracing(tf):
    traces = []

    @tf.function
    def f(x):
        traces.append(1)
        return tf.py_function(square, [x], tf.float32)

    with pfd.record(gil=False):
        assert interleaved(tf, f) == 200.0
        before = len(traces)
        with pfd.exact_gradients():
            assert interleaved(tf, f) == 6.0
        assert interleaved(tf, f) == 200.0
    switch = pfd.exact_gradients()
    assert interleaved(tf, f) == 6.0
    switch.off()
    assert interleaved(tf, f) == 200.0
    switch.on()
    assert interleaved(tf, f) == 6.0
    switch.off()
    assert len(traces) == before


def test_calls_made_while_exact_keep_their_gradients_when_off(tf):
    f, x = node(tf), tf.constant(3.0)
    with pfd.exact_gradients(), tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x) + f(2 * x)
    assert float(tape.gradient(y, x)) == 30.0


def test_nodes_made_while_on_still_work_when_off(tf):
    with pfd.exact_gradients():
        forward_only, both = node(tf), node(tf)
        forward_only(tf.constant(1.0))
        assert simple(tf, both) == 6.0
    assert simple(tf, forward_only) == 6.0  # its gradient is traced by TensorFlow alone
    assert simple(tf, both) == 6.0
    with pfd.exact_gradients():
        assert simple(tf, forward_only) == 6.0
        assert simple(tf, both) == 6.0


def test_second_derivatives_with_order_2(tf):
    def second(f, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            d = inner.gradient(y, x)
        return outer.gradient(d, x)

    def cube(x):
        return x * x * x

    x = tf.constant(3.0)
    with pfd.exact_gradients(order=2):
        assert float(second(node(tf, cube), x)) == 18.0
        assert float(second(lambda x: tf.py_function(cube, [x], tf.float32), x)) == 18.0
        twice = node(tf, cube)
        assert float(second(lambda x: twice(x) + twice(2 * x), x)) == 18.0 + 6 * 2 * 3 * 4
        weight = tf.constant(2.0)
        with tf.GradientTape() as outer:  # a gradient penalty: |dy/dx|², differentiated by a weight
            outer.watch(weight)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.function(lambda x, w: tf.py_function(lambda x, w: w * x * x, [x, w], tf.float32))(x, weight)
            penalty = inner.gradient(y, x) ** 2
        assert float(outer.gradient(penalty, weight)) == 8 * 2.0 * 9
    gc.collect()
    assert live_tapes() == 0


def live_tapes():
    from pyfunc_debug.interception.gradients.hub import live_tapes

    return live_tapes()


def test_memory_stays_flat_where_forward_passes_are_never_differentiated(tf):
    f = node(tf, lambda x: tf.reduce_sum(x * x))
    x = tf.ones([1000])
    alive = set()
    with pfd.exact_gradients():
        for _ in range(3_000):
            with tf.GradientTape() as tape:
                tape.watch(x)
                f(x)
            alive.add(live_tapes())
    assert max(alive) <= 2
    del tape
    gc.collect()
    assert live_tapes() == 0


def test_a_thousand_steps_of_a_graph_keep_no_tape(tf):
    alive = []

    def body(x):
        alive.append(live_tapes())
        return x * x

    @tf.function
    def train(x):
        total = tf.zeros([])
        for _ in tf.range(1000):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.ensure_shape(tf.py_function(body, [x], tf.float32), [])
            total += tf.ensure_shape(tape.gradient(y, x), [])
        return total

    with pfd.exact_gradients():
        assert float(train(tf.constant(3.0))) == 6000.0
    assert len(alive) == 1000
    assert max(alive) <= 64  # iterations in parallel
    assert live_tapes() == 0


def test_eager_calls_that_nobody_differentiates_keep_no_tensors(tf):
    from pyfunc_debug.interception.gradients.hub import stock_tapes

    x, before = tf.ones([1000]), set(stock_tapes())

    def kept():
        for _ in range(20):
            with tf.GradientTape() as tape:
                tape.watch(x)
                tf.py_function(square, [x], tf.float32)
        del tape
        return len(set(stock_tapes()) - before)

    with pfd.exact_gradients():
        assert kept() == 0
        assert live_tapes() == 0
    assert kept() == 20  # TensorFlow's own


def test_a_persistent_tape_keeps_its_tape_and_lets_it_go(tf):
    f, x = node(tf), tf.constant(3.0)
    with pfd.exact_gradients():
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        assert [float(tape.gradient(y, x)) for _ in range(3)] == [6.0] * 3
        assert live_tapes() == 1
        del tape, y
        gc.collect()
        assert live_tapes() == 0


SAVED = """
import sys
import tensorflow as tf
assert not any(name.startswith("pyfunc_debug") for name in sys.modules)
for path in sys.argv[1:]:
    loaded = tf.saved_model.load(path)
    print(float(loaded.double(tf.constant(3.0))), end=" ")
    try:
        loaded.f(tf.constant(3.0))
    except tf.errors.InvalidArgumentError as error:
        print("key=" in str(error) and "registry" in str(error))
"""


def test_a_saved_model_made_while_on_loads_where_this_package_is_not(tf, tmp_path):
    def model():
        module = tf.Module()
        signature = [tf.TensorSpec([], tf.float32)]
        module.f = tf.function(lambda x: tf.py_function(square, [x], tf.float32), input_signature=signature)
        module.double = tf.function(lambda x: x * 2, input_signature=signature)
        return module

    tf.saved_model.save(model(), str(tmp_path / "stock"))
    with pfd.exact_gradients():
        tf.saved_model.save(model(), str(tmp_path / "ours"))
        traced = model()
        simple(tf, traced.f)
    tf.saved_model.save(traced, str(tmp_path / "later"))
    paths = [str(tmp_path / name) for name in ("stock", "ours", "later")]
    assert run("-c", SAVED, *paths).splitlines() == ["6.0 True"] * 3
    for name in ("ours", "later"):
        assert b"pyfunc_debug" not in (tmp_path / name / "saved_model.pb").read_bytes()


GONE = """
import gc, sys
import tensorflow as tf
import pyfunc_debug as pfd

@tf.function
def f(x):
    return tf.py_function(lambda x: x * x, [x], tf.float32)

def gradient():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return float(tape.gradient(y, x))

with pfd.exact_gradients():
    print(gradient())
for name in [name for name in sys.modules if name.startswith("pyfunc_debug")]:
    del sys.modules[name]
del pfd
gc.collect()
print(gradient(), gradient())
"""


def test_nodes_outlive_the_package():
    assert run("-c", GONE).split() == ["6.0", "6.0", "6.0"]


def test_the_registry_of_gradients_is_the_same_again_when_off(tf):
    from tensorflow.python.framework import ops

    registry = ops.gradient_registry._registry
    before = {name: (entry, dict(entry)) for name, entry in registry.items()}
    with pfd.exact_gradients():
        simple(tf, node(tf))
    assert list(registry) == list(before)
    assert all(registry[name] is entry and entry == content for name, (entry, content) in before.items())


def test_an_unknown_order_is_refused():
    with pytest.raises(pfd.BadOptionError, match="order=3"):
        pfd.exact_gradients(order=3)
