"""The correlation of two vectors, as NumPy and SciPy give it, in TensorFlow's ops."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.reading.source import dotted


def correlated(node: ast.Subscript) -> ast.Call | None:
    """The call in `np.corrcoef(a, b)[0, 1]` and `pearsonr(a, b)[0]`, which is one number; None for something else."""
    places = [_place(node.slice)]
    inner = node.value
    if isinstance(inner, ast.Subscript):
        places.insert(0, _place(inner.slice))
        inner = inner.value
    if not isinstance(inner, ast.Call) or len(inner.args) != 2 or inner.keywords:
        return None
    name = dotted(inner.func).rpartition(".")[2]
    if name == "corrcoef" and places in ([(0, 1)], [(1, 0)], [(0,), (1,)], [(1,), (0,)]):
        return inner
    return inner if name == "pearsonr" and places == [(0,)] else None


def in_ops(args: list[ast.expr], made: list[Any], tf: str) -> str | None:
    """The correlation of two expressions in ops; None where they are not known to be vectors.

    Columns are taken as the vectors that they hold: between the rows of a column NumPy's correlation is NaN.

    Args:
      args: The two, in ops already.
      made: What they give on made inputs.
      tf: How the user's module calls TensorFlow.
    """
    shapes = [getattr(one, "shape", None) for one in made]
    if not all(shape is not None and (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)) for shape in shapes):
        return None
    if len({len(shape) for shape in shapes if shape is not None}) != 1:
        return None
    parts = []
    for one in args:
        text = ast.unparse(one)
        parts.append(f"{tf}.nn.l2_normalize({text} - {tf}.reduce_mean({text}))")
    return f"{tf}.reduce_sum({' * '.join(parts)})"


def _place(node: ast.expr) -> tuple[Any, ...]:
    elements = node.elts if isinstance(node, ast.Tuple) else [node]
    return tuple(getattr(one, "value", None) for one in elements)
