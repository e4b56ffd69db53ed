"""What is saved while recording, and what restored nodes find in a process that records, are as without us."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

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

def ops(how):
    model = Model()
    folder = sys.argv[1] + how
    if how == "stock":
        tf.saved_model.save(model, folder)
    else:
        with pfd.record(folder + ".pfrec", gil=False):
            tf.saved_model.save(model, folder)
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString(open(folder + "/saved_model.pb", "rb").read())
    return [
        [("slope" in one.signature.name), node.name, node.attr["token"].s.decode(), len(node.attr["Tout"].list.type),
         len(node.attr["_output_shapes"].list.shape)]
        for one in saved.meta_graphs[0].graph_def.library.function for node in one.node_def if node.op == "EagerPyFunc"
    ]

print(json.dumps([sorted(ops(how)) for how in ("stock", "record")]))
"""


def _answer(folder: Path, text: str, argument: object) -> object:
    file = folder / "program.py"
    file.write_text(text)
    done = forked.run(file, argument, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("seed", [2, 5])
def test_restored_functions_give_what_they_give_without_us(tmp_path, seed):
    """Seed 2: a restored node has a gradient's token. Long form: `python -m tests.interception.saved_programs`."""
    assert _answer(tmp_path, PROGRAM, seed) == {}


def test_what_is_saved_has_no_call_ids_but_where_a_gradient_in_it_asks_for_them(tmp_path):
    stock, recorded = _answer(tmp_path, OPS, tmp_path / "model-")

    def number(token):
        return int(token.strip("pyfunc_+"))

    assert len(stock) == len(recorded) == 4
    first = min(number(token) for _, _, token, *_ in recorded)
    for (slope, name, token, *counts), (_, also, found, *others) in zip(stock, recorded):
        assert (name, number(token)) == (also, number(found) - first)
        if not slope:
            assert ("+" in found, counts) == (False, others)
    forward = [one for one in recorded if one[0] and one[3] == 2]
    assert len(forward) == 1, "the node whose gradient is saved keeps its call id"
    assert forward[0][2].endswith("+")
