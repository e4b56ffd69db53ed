"""What is saved while recording, and what restored nodes find in a process that records, are as without us."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from tensorflow.core.framework import function_pb2, types_pb2

from pyfunc_debug.interception.gradients.saved import _Nodes
from pyfunc_debug.interception.tokens import MARK
from tests import forked

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys
from tests.interception.saved_programs import differences
print(json.dumps(differences(int(sys.argv[1]), ("record",), ("record", "loaded before", "ended"))))
"""
OPS = """
import json, sys
import tensorflow as tf
import pyfunc_debug as pfd
from tensorflow.core.protobuf import saved_model_pb2

class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([3])])
    def plain(self, x):
        tf.py_function(lambda a: None, [x], [])
        return tf.py_function(lambda a: (a, a), [x], [tf.float32, tf.float32])

    @tf.function(input_signature=[tf.TensorSpec([3])])
    def slope(self, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(lambda a: a * a, [x], tf.float32)
        return tape.gradient(y, x)

    @tf.function(input_signature=[tf.TensorSpec([3])])
    def slope_of_inner(self, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = self.inner(x)
        return tape.gradient(y, x)

    def __init__(self):
        self.inner = tf.function(lambda x: tf.py_function(lambda a, n: a * n, [x, 3], tf.float32))

first = 0

def ops(how):
    global first
    model = Model()
    folder = sys.argv[1] + how
    if how == "stock":
        tf.saved_model.save(model, folder)
    else:
        with pfd.record(folder + ".pfrec", gil=False, gradients="exact" if how == "exact" else "stock"):
            tf.saved_model.save(model, folder)
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString(open(folder + "/saved_model.pb", "rb").read())
    found = [
        (node.name, int(node.attr["token"].s.decode().removeprefix("pyfunc_")), len(node.input), [
            list(node.attr[which].list.type) for which in ("Tin", "Tout")
        ], len(node.attr["_output_shapes"].list.shape))
        for one in saved.meta_graphs[0].graph_def.library.function for node in one.node_def if node.op == "EagerPyFunc"
    ]
    least = min(token for _, token, *_ in found)
    return sorted([name, token - least, *rest] for name, token, *rest in found)

print(json.dumps([ops(how) for how in ("stock", "record", "exact")]))
"""
SECOND = """
import json, sys
import tensorflow as tf
import pyfunc_debug as pfd
from tensorflow.core.protobuf import saved_model_pb2

class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([3])])
    def bend(self, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.py_function(lambda a: a * a * a, [x], tf.float32)
            slope = tape.gradient(y, x)
        return outer.gradient(slope, x)

with pfd.exact_gradients(order=2):
    model = Model()
    tf.saved_model.save(model, sys.argv[1])
    found = tf.saved_model.load(sys.argv[1]).bend(tf.ones([3]))
saved = saved_model_pb2.SavedModel()
saved.ParseFromString(open(sys.argv[1] + "/saved_model.pb", "rb").read())
print(json.dumps([found.numpy().tolist(), [
    node.attr["token"].s.decode() for one in saved.meta_graphs[0].graph_def.library.function for node in one.node_def
    if node.op == "EagerPyFunc"]]))
"""


def _answer(folder: Path, text: str, argument: object) -> object:
    file = folder / "program.py"
    file.write_text(text)
    done = forked.run(file, argument, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("seed", [2, pytest.param(5, marks=pytest.mark.more)])
def test_restored_functions_give_what_they_give_without_us(tmp_path, seed):
    """Seed 2: a restored node has a gradient's token. Long form: `python -m tests.interception.saved_programs`."""
    assert _answer(tmp_path, PROGRAM, seed) == {}


def test_what_is_saved_has_no_call_ids(tmp_path):
    stock, *others = _answer(tmp_path, OPS, tmp_path / "model-")
    assert len(stock) == 8
    assert others == [stock, stock]


def test_gradients_that_tensorflow_has_no_node_for_keep_their_call_ids_and_work(tmp_path):
    found, tokens = _answer(tmp_path, SECOND, tmp_path / "model")
    assert found == [6.0, 6.0, 6.0]
    assert [token.endswith("+") for token in tokens] == [True, True, True]


def test_each_result_of_a_function_is_looked_at_once():
    """A protobuf map that changes while one goes through it skips some, or repeats them, by where it is in memory."""
    known = {"pyfunc_0": SimpleNamespace(plan=SimpleNamespace(level=0))}
    for number in range(50):
        function = function_pb2.FunctionDef()
        node = function.node_def.add(name="p", op="EagerPyFunc")
        node.attr["token"].s = f"pyfunc_0{MARK}".encode()
        node.attr["Tout"].list.type.extend([types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE])
        for result in range(6):
            function.ret[f"result_{number}_{result}"] = "p:output:1"
        _Nodes(function.node_def, function.ret, "{}:output:{}").rewrite(known)
        assert list(function.ret.values()) == ["p/number:output:0"] * 6
