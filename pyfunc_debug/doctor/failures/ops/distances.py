"""Losses and distances of scikit-learn's and SciPy's, of two tensors, in TensorFlow's ops."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

_MOST = 60
"""A longer expression is not written twice."""
_MEANS = {
    "mean_squared_error": "tf.reduce_mean(tf.square({a} - {b}))",
    "brier_score_loss": "tf.reduce_mean(tf.square({a} - {b}))",
    "mean_absolute_error": "tf.reduce_mean(tf.abs({a} - {b}))",
    "max_error": "tf.reduce_max(tf.abs({a} - {b}))",
    "mean_squared_log_error": "tf.reduce_mean(tf.square(tf.math.log1p({a}) - tf.math.log1p({b})))",
    "mean_absolute_percentage_error": "tf.reduce_mean(tf.abs({a} - {b}) / tf.maximum(tf.abs({a}), 1e-7))",
    "root_mean_squared_error": "tf.reduce_mean(tf.sqrt(tf.reduce_mean(tf.square({a} - {b}), 0)))",
    "r2_score": (
        "tf.reduce_mean(1 - tf.reduce_sum(tf.square({a} - {b}), 0) / "
        "tf.reduce_sum(tf.square({a} - tf.reduce_mean({a}, 0)), 0))"
    ),
}  # fmt: skip
"""Of two tensors of one shape, as scikit-learn gives them: one number of all rows."""
_ROWS = {
    "cosine_similarity": "tf.matmul(tf.nn.l2_normalize({a}, -1), tf.nn.l2_normalize({b}, -1), transpose_b=True)",
    "euclidean_distances": "tf.norm({a}[:, None] - {b}[None], axis=-1)",
}
"""Of each row of one tensor and each row of another."""
_VECTORS = {
    "cosine": "1 - tf.reduce_sum(tf.nn.l2_normalize({a}, -1) * tf.nn.l2_normalize({b}, -1), -1)",
    "euclidean": "tf.norm({a} - {b}, axis=-1)",
    "sqeuclidean": "tf.reduce_sum(tf.square({a} - {b}), -1)",
    "cityblock": "tf.reduce_sum(tf.abs({a} - {b}), -1)",
    "chebyshev": "tf.reduce_max(tf.abs({a} - {b}), -1)",
}
"""Of two vectors: of batches one number a row."""


def in_ops(name: str, args: Sequence[ast.expr], made: Sequence[Any], tf: str) -> str | None:
    """A call of such a function with two arguments and nothing else, in ops; None where none of them is called.

    Args:
      name: The function's own name.
      args: Its arguments, in ops already.
      made: What they give on made inputs, None where that is not known.
      tf: How the user's module calls TensorFlow.
    """
    arrays = [one for one in made if hasattr(one, "ndim")]
    texts = [ast.unparse(one) for one in args]
    if len(args) != 2 or len(arrays) != 2 or max(map(len, texts)) > _MOST:
        return None
    first, second = (one if isinstance(part, (ast.Name, ast.Call)) else f"({one})" for one, part in zip(texts, args))
    shapes = [one.shape for one in arrays]
    other = arrays[0].dtype != arrays[1].dtype
    labels = first
    if other and arrays[1].dtype.kind == "f":
        first = f"tf.cast({first}, {second}.dtype)"
    elif other:
        return None
    form = _form(name, shapes, arrays[0].dtype.kind)
    return None if form is None else form.format(a=first, b=second, labels=labels).replace("tf.", f"{tf}.")


def _form(name: str, shapes: Sequence[tuple[int, ...]], kind: str) -> str | None:
    same, ranks = shapes[0] == shapes[1], {len(one) for one in shapes}
    if name in _MEANS:
        return _MEANS[name] if same and ranks <= {1, 2} else None
    if name in _ROWS:
        return _ROWS[name] if ranks == {2} else None
    if name in _VECTORS:
        return _VECTORS[name] if same and ranks <= {1, 2} else None
    vectors = same and (ranks == {1} or (ranks == {2} and shapes[0][1] == 1))
    if name == "wasserstein_distance" and vectors:
        return "tf.reduce_mean(tf.abs(tf.sort({a}, 0) - tf.sort({b}, 0)))"
    if name == "entropy" and same and ranks <= {1, 2}:
        shares = [f"{one} / tf.reduce_sum({one}, 0)" for one in ("{a}", "{b}")]
        return f"tf.reduce_sum(tf.math.xlogy({shares[0]}, ({shares[0]}) / ({shares[1]})), 0)"
    return _crossentropy(shapes, kind) if name == "log_loss" else None


def _crossentropy(shapes: Sequence[tuple[int, ...]], kind: str) -> str | None:
    """Of probabilities, and labels that are theirs one by one or the places of the right ones."""
    losses, same = "tf.reduce_mean(tf.keras.losses.", shapes[0] == shapes[1]
    if same and (len(shapes[0]) == 1 or shapes[0][-1] == 1):
        return f"{losses}binary_crossentropy({{a}}, {{b}}))"
    if same and len(shapes[0]) == 2:
        return f"{losses}categorical_crossentropy({{a}}, {{b}}))"
    sparse = len(shapes[1]) == 2 and (len(shapes[0]) == 1 or shapes[0][-1] == 1) and shapes[1][-1] > 1
    return f"{losses}sparse_categorical_crossentropy({{labels}}, {{b}}))" if sparse else None
