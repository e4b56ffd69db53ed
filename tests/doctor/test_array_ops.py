"""What NumPy, SciPy and OpenCV compute is the same in TensorFlow's ops, also in a graph."""

from __future__ import annotations

import ast
import importlib
from types import ModuleType

import cv2
import keras
import numpy as np
import pytest
import tensorflow as tf

from pyfunc_debug.doctor.failures.ops.rewrites import as_ops
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.symbols import Described
from pyfunc_debug.program import syntax

ROWS = np.array([[0.5, 1.25, 2.5, 3.0], [3.0, 1.0, 0.25, 2.0]], np.float32)
NUMPY = """
np.cov(x)
np.gradient(x, axis=1)
np.gradient(x[0])
np.gradient(x, 0.5, axis=0)
np.interp(x, [0, 5], [0, 1])
np.interp(x, [0.0, 1.0, 2.5], [-1.0, 0.5, 2.0])
np.interp(x, np.arange(5), np.arange(5) ** 2)
np.convolve(x[0], [0.5, 0.5], mode="same")
np.convolve(x[0], [0.25, 0.5, 0.125], "same")
np.convolve(x[0], np.ones(3) / 3)
np.convolve(x[1], np.ones(2), mode="valid")
np.maximum.accumulate(x, axis=1)
np.minimum.accumulate(x[0])
np.add.accumulate(x, axis=1)
np.add.reduce(x)
np.maximum.reduce(x, axis=1)
np.histogram(x, bins=4, range=(0, 4))[0]
np.histogram(x, 3)[0]
np.searchsorted([0.5, 1.5, 2.5], x)
np.searchsorted([0.5, 1.5, 2.5], x, side="right")
np.digitize(x, [0.5, 1.5, 2.5])
np.digitize(x, [0.5, 1.5, 2.5], right=True)
np.unique(x)
np.fft.fft(x, norm="ortho").real
np.abs(np.fft.rfft(x, norm="ortho"))
np.abs(np.fft.fft2(x, norm="forward"))
np.nan_to_num(x)
np.linalg.svd(x, compute_uv=False)
np.var(x, axis=1, ddof=1)
np.std(x, ddof=1)
np.std(x, axis=0, ddof=1, keepdims=True)
np.hypot(x, 2)
np.pad(x, ((0, 0), (1, 1)))
np.pad(x, 1, mode="edge")
np.pad(x, ((0, 0), (1, 2)), mode="reflect")
np.tile(x, (1, 2))
np.repeat(x, 2, axis=1)
np.repeat(x, 3)
np.bincount(np.argmax(x, axis=1), minlength=4)
np.eye(4, dtype=np.float32)[np.argmax(x, axis=1)]
np.eye(4)[np.argmax(x, axis=1)]
""".strip().split("\n")
SCIPY = """
scipy.special.expit(x)
scipy.special.softmax(x, axis=1)
scipy.special.logsumexp(x, axis=1)
scipy.special.erf(x)
scipy.ndimage.gaussian_filter1d(x, 1.0, axis=1)
scipy.ndimage.gaussian_filter(x[:, :2], 0.4)
scipy.ndimage.uniform_filter1d(x, 3, axis=1)
scipy.signal.medfilt(x[0], 3)
scipy.signal.convolve2d(x, np.ones((2, 2)), mode="same")
scipy.signal.detrend(x, axis=1, type="constant")
scipy.stats.zscore(x, axis=1)
scipy.stats.norm.cdf(x)
scipy.integrate.trapezoid(x, axis=1)
scipy.fft.dct(x, axis=1)
scipy.fft.dct(x, axis=1, norm="ortho")
scipy.fft.idct(x, axis=1, norm="ortho")
scipy.fftpack.idct(x, norm="ortho")
""".strip().split("\n")
OPENCV = """
cv2.resize(x, (8, 4), interpolation=cv2.INTER_LINEAR)
cv2.resize(x, (4, 2), interpolation=cv2.INTER_NEAREST)
cv2.resize(x, (3, 5), interpolation=cv2.INTER_NEAREST)
cv2.flip(x, 1)
cv2.flip(x, -1)
cv2.GaussianBlur(x, (3, 3), 1.0)
cv2.blur(x, (3, 3))
cv2.threshold(x, 1.0, 1.0, cv2.THRESH_BINARY)[1]
cv2.threshold(x, 1.0, 9.0, cv2.THRESH_TOZERO)[1]
""".strip().split("\n")
WITHOUT = """
np.random.normal(x)
np.polyfit(x[0], x[1], 2)
np.unique(x, return_counts=True)
np.gradient(x)
np.pad(x, ((0, 0), (2, 2)), mode="edge")
np.fft.fft(x, n=8)
np.interp(x, [0, 5], [0, 1], left=-1)
""".strip().split("\n")


def in_ops(expression: str, modules: dict[str, ModuleType]) -> str | None:
    spot = Spot("program.py", 1, {"x": Described("float32", ROWS.shape)}, {"tf": tf, "np": np, **modules}, "")
    node = syntax.expression(expression)
    for one in ast.walk(node):
        one.lineno, one.col_offset = 1, 0
    return as_ops(node, spot)


def same(expression: str, modules: dict[str, ModuleType]) -> None:
    text = in_ops(expression, modules)
    assert text is not None
    run = tf.function(eval(f"lambda x: {text}", {"tf": tf, "np": np, "keras": keras, **modules}))
    wanted = np.asarray(eval(expression, {"x": ROWS, "np": np, **modules}))
    found = run(tf.constant(ROWS)).numpy()
    assert found.shape == wanted.shape
    assert found.dtype.kind == wanted.dtype.kind
    assert np.allclose(found, wanted, rtol=1e-4, atol=1e-5), text


@pytest.mark.parametrize("expression", NUMPY)
def test_what_numpy_computes_is_the_same_in_ops(expression):
    same(expression, {})


@pytest.mark.parametrize("expression", SCIPY)
def test_what_scipy_computes_is_the_same_in_ops(expression):
    same(expression, {"scipy": _with_its_parts("scipy", expression)})


@pytest.mark.parametrize("expression", OPENCV)
def test_what_opencv_computes_is_the_same_in_ops(expression):
    same(expression, {"cv2": cv2})


@pytest.mark.parametrize("expression", WITHOUT)
def test_what_has_no_ops_is_left_to_python(expression):
    assert in_ops(expression, {}) is None


def _with_its_parts(package: str, expression: str) -> ModuleType:
    importlib.import_module(".".join(expression.split("(")[0].split(".")[:2]))
    return importlib.import_module(package)
