"""Ops that stand in a paste for NumPy give what NumPy gives: they are tried on made inputs before they are printed."""

from __future__ import annotations

import ast
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from pyfunc_debug.doctor.failures.ops.rewrites import as_ops
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.symbols import Described

CALLED = []


def helper(x):
    CALLED.append(x)
    return x


MODULE = {
    "np": np, "tf": tf, "keras": keras, "rfft": np.fft.rfft, "math": math, "helper": helper,
    "W": np.ones((3, 2), np.float32), "V": np.ones((3, 2)), "v": np.arange(3, dtype=np.float32),
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


SERIES, IMAGES = ("float32", (None, 8)), ("float32", (None, 8, 6, 1))


@pytest.mark.parametrize(
    ("text", "kind", "ops"),
    [
        ("np.fft.fft(x)", SERIES, "tf.signal.fft(tf.complex(x, 0.0))"),
        ("np.fft.fft(x)", ("float64", (3, 8)), "tf.signal.fft(tf.complex(x, tf.zeros_like(x)))"),
        ("np.abs(np.fft.rfft(x, n=16))", SERIES, "tf.abs(tf.signal.rfft(x, [16]))"),
        ("rfft(x, axis=-1)", SERIES, "tf.signal.rfft(x)"),
        ("np.fft.rfft(x, axis=0)", SERIES, "tf.transpose(tf.signal.rfft(tf.transpose(x, [1, 0])), [1, 0])"),
        ("np.fft.ifft(np.fft.fft(x)).real", SERIES, "tf.math.real(tf.signal.ifft(tf.signal.fft(tf.complex(x, 0.0))))"),
        ("np.fft.irfft(np.fft.rfft(x))", SERIES, "tf.signal.irfft(tf.signal.rfft(x))"),
        ("np.fft.fftn(x).imag", SERIES, "tf.math.imag(tf.signal.fft2d(tf.complex(x, 0.0)))"),
        ("np.fft.fftshift(np.fft.rfft2(x))", SERIES, "tf.signal.fftshift(tf.signal.rfft2d(x))"),
        ("np.fft.fft2(x[..., 0])", IMAGES, "tf.signal.fft2d(tf.complex(x[..., 0], 0.0))"),
        ("np.fft.fft2(x, axes=(1, 2))", IMAGES,
         "tf.transpose(tf.signal.fft2d(tf.transpose(tf.complex(x, 0.0), [0, 3, 1, 2])), [0, 2, 3, 1])"),
        ("np.angle(np.fft.rfft(x))", SERIES, "tf.math.angle(tf.signal.rfft(x))"),
        ("np.median(x)", SERIES, "keras.ops.median(x)"),
        ("np.median(x, axis=1, keepdims=True)", SERIES, "keras.ops.median(x, axis=1, keepdims=True)"),
        ("np.percentile(x, 90, 0)", SERIES, "keras.ops.percentile(x, 90, 0)"),
        ("np.quantile(x, 0.3, axis=-1)", SERIES, "keras.ops.quantile(x, 0.3, axis=-1)"),
        ("np.nanmedian(x)", SERIES, "keras.ops.nanmedian(x)"),
        ("np.nanquantile(x, 0.4)", SERIES, "keras.ops.nanquantile(x, 0.4)"),
        ("np.nanpercentile(x, 40)", SERIES, "keras.ops.nanpercentile(x, 40)"),
        ("np.nanmax(x, axis=1)", SERIES, "keras.ops.nanmax(x, axis=1)"),
        ("np.nanmin(x)", SERIES, "keras.ops.nanmin(x)"),
        ("np.nanstd(x)", SERIES, "keras.ops.nanstd(x)"),
        ("np.nanvar(x, axis=0)", SERIES, "keras.ops.nanvar(x, axis=0)"),
        ("np.fmax(x, v[0])", SERIES, "keras.ops.fmax(x, v[0])"),
        ("np.fmin(x, v[0])", SERIES, "keras.ops.fmin(x, v[0])"),
        ("np.correlate(x, v, 'same')", ("float32", (8,)), "keras.ops.correlate(x, v, 'same')"),
        ("np.corrcoef(x, v)[0, 1]", VECTOR,
         "tf.reduce_sum(tf.nn.l2_normalize(x - tf.reduce_mean(x)) * tf.nn.l2_normalize(v - tf.reduce_mean(v)))"),
        ("np.linalg.det(x)", ("float32", (3, 3)), "tf.linalg.det(x)"),
        ("np.linalg.inv(x)", ("float32", (3, 3)), "tf.linalg.inv(x)"),
    ],
)  # fmt: skip
def test_what_losses_ask_numpy_for_is_an_op_with_the_same_values_and_a_gradient_in_a_graph(text, kind, ops):
    assert in_ops(text, kind) == ops
    x = np.random.default_rng(0).normal(size=[2 if one is None else one for one in kind[1]]).astype(kind[0])

    @tf.function(input_signature=[tf.TensorSpec(kind[1], kind[0])])
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = eval(ops, {**MODULE, "x": x})
            total = tf.reduce_sum(tf.abs(y))
        return y, tape.gradient(total, x)

    ours, gradient = step(x)
    np.testing.assert_allclose(eval(text, {**MODULE, "x": x}), ours, rtol=1e-4, atol=1e-5)
    assert np.isfinite(gradient).all()
    assert np.abs(gradient).sum() > 0


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("np.fft.ifft(x, norm='ortho')", SERIES),  # another scale
        ("np.fft.fft(x, 16)", SERIES),  # TensorFlow's takes no length
        ("np.fft.rfft(x)", ("int32", (None, 8))),
        ("np.median(x)", INTS),
        ("np.percentile(x, 90, method='lower')", SERIES),
        ("np.corrcoef(x)", SERIES),  # keras.ops has it, and fails in a graph
        ("np.corrcoef(x, x)[0, 1]", SERIES),  # between two rows
        ("np.histogram(x)", SERIES),
    ],
)
def test_what_has_no_op_of_the_same_values_is_not_printed(text, kind):
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
