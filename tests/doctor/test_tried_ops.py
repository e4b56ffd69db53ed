"""Ops that stand in a paste for NumPy give what NumPy gives: they are tried on made inputs before they are printed."""

from __future__ import annotations

import ast
import math

import numpy as np
import pytest
import tensorflow as tf

from pyfunc_debug.doctor.failures.rewrites import as_ops
from pyfunc_debug.doctor.failures.situation import Spot
from pyfunc_debug.doctor.failures.symbols import Described

CALLED = []


def helper(x):
    CALLED.append(x)
    return x


MODULE = {
    "np": np, "tf": tf, "math": math, "helper": helper, "W": np.ones((3, 2), np.float32), "V": np.ones((3, 2)),
    "v": np.arange(3, dtype=np.float32),
}  # fmt: skip
MATRIX, VECTOR, INTS = ("float32", (None, 3)), ("float32", (3,)), ("int32", (4,))


def in_ops(text, kind):
    return as_ops(ast.parse(text, mode="eval").body, Spot("f.py", 1, {"x": Described(*kind)}, MODULE, ""))


@pytest.mark.parametrize(
    ("text", "kind", "ops"),
    [
        ("np.dot(x, W)", MATRIX, "tf.matmul(x, W)"),
        ("x.dot(v)", MATRIX, "tf.linalg.matvec(x, v)"),
        ("np.dot(x, v)", VECTOR, "tf.tensordot(x, v, 1)"),
        ("np.outer(x, v)", VECTOR, "tf.tensordot(x, v, 0)"),
        ("np.inner(x, v)", VECTOR, "tf.tensordot(x, v, 1)"),
        ("x @ W", VECTOR, "tf.experimental.numpy.matmul(x, W)"),
        ("np.matmul(x, V)", MATRIX, "tf.experimental.numpy.matmul(x, V)"),  # of two dtypes
        ("np.inner(x, x)", MATRIX, "tf.experimental.numpy.inner(x, x)"),
        ("np.dot(x, W)", ("float32", None), "tf.experimental.numpy.dot(x, W)"),
        ("np.round(x)", MATRIX, "tf.round(x)"),
        ("np.sum(x > 0)", MATRIX, "tf.reduce_sum(tf.cast(x > 0, tf.int64))"),
    ],
)
def test_a_product_is_numpys_for_the_ranks_at_hand(text, kind, ops):
    assert in_ops(text, kind) == ops
    if kind[1] is not None:
        x = np.random.default_rng(0).normal(size=[2 if one is None else one for one in kind[1]]).astype(kind[0])
        theirs, ours = eval(text, {**MODULE, "x": x}), eval(ops, {**MODULE, "x": tf.constant(x)})
        np.testing.assert_allclose(theirs, ours, rtol=1e-5)
        assert theirs.dtype == ours.dtype.as_numpy_dtype


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x.argmax()", MATRIX),  # NumPy's goes through all elements
        ("np.linalg.norm(x, 2)", MATRIX),  # NumPy's is the largest singular value
        ("x.round(2)", MATRIX),
        ("x.mean()", INTS),  # TensorFlow's is a whole number
        ("np.sqrt(x)", INTS),  # TensorFlow's takes no whole numbers
    ],
)
def test_ops_that_give_something_else_are_not_printed(text, kind):
    assert in_ops(text, kind) is None


def test_a_function_of_the_users_does_not_run_and_their_random_numbers_stay_the_same():
    np.random.seed(1)
    tf.random.set_seed(1)
    before = np.random.get_state()[1].copy()
    assert in_ops("np.exp(helper(x))", MATRIX) is None
    assert in_ops("np.exp(x)", MATRIX) == "tf.exp(x)"
    assert in_ops("np.random.uniform(x, 2.0)", ("float32", ())) == "tf.random.uniform([], x, 2.0)"
    assert CALLED == []
    assert (np.random.get_state()[1] == before).all()


def test_an_array_of_the_users_stays_as_it_is():
    buffer = np.zeros((3, 3), np.float32)
    spot = Spot("f.py", 1, {"x": Described("float32", (3, 3))}, {**MODULE, "buffer": buffer}, "")
    as_ops(ast.parse("np.exp(np.add(x, 1, out=buffer))", mode="eval").body, spot)
    assert not buffer.any()
