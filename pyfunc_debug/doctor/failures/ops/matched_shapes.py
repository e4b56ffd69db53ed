"""Shapes and dtypes that do not match in `tf.matmul` and `tf.concat`, where one change makes them match."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import KERNELS
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import shape_at
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, lookup, root_is, shape_of, sizes_of

RULE = "structure"
_MATMUL = re.compile(r"[Mm]atrix size-incompatible|ndims must be (?:==|>=) 2|Shape must be rank 2|MatMul")
_CONCAT = re.compile(r"Dimension \d+ in both shapes must be equal|Dimensions of inputs should match")
_DTYPE = re.compile(
    r"cannot compute ConcatV2 as input #(\d+)\(zero-based\) was expected to be an? (\w+) tensor but is an? (\w+)"
)
_LISTED = re.compile(r"Tensors in list passed to 'values' of 'ConcatV2' Op have types \[([\w, ]*)\]")
_MATRIX = 2
_Shape = tuple[int | None, ...]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line multiplies or joins tensors that would match by one change of it."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None:
        return None
    said = situation.message
    for call in calls(statement):
        name = dotted(call.func).rpartition(".")[2]
        if not root_is(call.func, spot, "tensorflow"):
            continue
        if name == "matmul" and _MATMUL.search(said):
            return _matmul(spot, call)
        if name == "tensordot" and _MATMUL.search(said):
            return _dotted(spot, call)
        if name == "rgb_to_grayscale" and _MATMUL.search(said):
            return _gray(spot, call)
        if name == "concat" and (kind := _DTYPE.search(said)):
            return _cast(spot, call, int(kind[1]), kind[2], kind[3])
        if name == "concat" and (listed := _LISTED.search(said)):
            return _casts(spot, call, listed[1].split(", "))
        if name == "concat" and _CONCAT.search(said):
            return _axis(spot, call)
    products = [one for one in ast.walk(statement) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.MatMult)]
    return _product(spot, products[0]) if len(products) == 1 and _MATMUL.search(said) else None


def _product(spot: Spot, product: ast.BinOp) -> Explanation | None:
    """`x @ w` of a vector, or of a w whose columns are as many as those of x."""
    a, b = shape_at(product.left, spot), shape_at(product.right, spot)
    if a is None or b is None or None in a[-_MATRIX:] or None in b[-_MATRIX:]:
        return None
    source, tf = spot.source, alias(spot, "tensorflow")
    one, other = source.text(product.left), source.text(product.right)
    cause = f"{short(one, 30)} has the shape {sizes_of(a)}, and {short(other, 30)} {sizes_of(b)}"
    if len(a) == 1 and len(b) == _MATRIX and a[0] == b[0]:
        new = f"{tf}.linalg.matvec({other}, {one}, transpose_a=True)"
        cause += ": @ of tensors takes no vectors, as NumPy's does. matvec takes one, behind its matrix."
    elif len(b) == 1 and len(a) == _MATRIX and a[1] == b[0]:
        new = f"{tf}.linalg.matvec({one}, {other})"
        cause += ": @ of tensors takes no vectors, as NumPy's does. matvec takes one."
    elif len(a) == len(b) == _MATRIX and a[-1] != b[-2] and (a[-1] == b[-1]) != (a[-2] == b[-2]):
        behind = a[-1] == b[-1]
        new = f"{source.atom(product.left)} @ {tf}.transpose({other})"
        new = new if behind else f"{tf}.transpose({one}) @ {source.atom(product.right)}"
        cause += (
            ": the columns of the first have to be as many as the rows of the second. With "
            f"{short(other if behind else one, 30)} transposed they are."
        )
    else:
        return None
    return Explanation(
        RULE, spot.file, product.lineno, cause, edit_of(spot.file, source.replaced({product: new})), "", "likely"
    )


def _dotted(spot: Spot, call: ast.Call) -> Explanation | None:
    """`tf.tensordot(a, b, axes=1)`: the last axis of the first with the first axis of the second."""
    one, other, axes = argument(call, 0, "a"), argument(call, 1, "b"), argument(call, 2, "axes")
    if one is None or other is None or not isinstance(axes, ast.Constant) or axes.value != 1:
        return None
    a, b = shape_at(one, spot), shape_at(other, spot)
    if not a or not b or None in (*a, *b):
        return None
    fitting = [(at, to) for at, size in enumerate(a) for to, count in enumerate(b) if size == count]
    if len(fitting) != 1:
        return None
    (at, to), text = fitting[0], spot.source.text
    cause = (
        f"{short(text(one), 30)} has the shape {sizes_of(a)}, and {short(text(other), 30)} {sizes_of(b)}. axes=1 sums "
        f"over the last axis of the first and the first of the second; axis {at} and axis {to} have one size."
    )
    edit = edit_of(spot.file, spot.source.replaced({axes: f"[[{at}], [{to}]]"}))
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "", "likely")


def _gray(spot: Spot, call: ast.Call) -> Explanation | None:
    """`tf.image.rgb_to_grayscale` of an image that is gray: it multiplies three channels by three numbers."""
    given = argument(call, 0, "images")
    shape = shape_at(given, spot) if given is not None else None
    if given is None or not shape or shape[-1] in (3, None):
        return None
    cause = (
        f"{short(spot.source.text(given), 30)} has {shape[-1]} channel{'s' * (shape[-1] != 1)}, {sizes_of(shape)}, and "
        "rgb_to_grayscale takes three."
    )
    text = spot.source.text(given)
    new = text if shape[-1] == 1 else f"{spot.source.text_with(call, {given: f'{spot.source.atom(given)}[..., :3]'})}"
    if shape[-1] not in (1, 4):
        return None
    cause += " It is gray already." if shape[-1] == 1 else " The fourth is how far one sees through."
    return Explanation(
        RULE, spot.file, call.lineno, cause, edit_of(spot.file, spot.source.replaced({call: new})), "", "likely"
    )


def _matmul(spot: Spot, call: ast.Call) -> Explanation | None:
    one, other = argument(call, 0, "a"), argument(call, 1, "b")
    if one is None or other is None or len(call.args) + len(call.keywords) != _MATRIX:
        return None
    a, b = shape_of(lookup(one, spot)), shape_of(lookup(other, spot))
    text, tf = spot.source.text, alias(spot, "tensorflow")
    if a is None or b is None or None in a[-_MATRIX:] or None in b[-_MATRIX:]:
        return None
    said = f"{text(one)} has the shape {sizes_of(a)}, and {text(other)} {sizes_of(b)}"
    if len(a) == 1 and len(b) == _MATRIX and a[0] == b[0]:
        new = f"{tf}.linalg.matvec({text(other)}, {text(one)}, transpose_a=True)"
        cause = f"{said}: matmul takes no vectors, as NumPy does. matvec takes one, behind its matrix."
    elif len(b) == 1 and len(a) == _MATRIX and a[1] == b[0]:
        new = f"{tf}.linalg.matvec({text(one)}, {text(other)})"
        cause = f"{said}: matmul takes no vectors, as NumPy does. matvec takes one."
    elif len(a) >= _MATRIX and len(b) >= _MATRIX and a[-1] != b[-2]:
        fitting = [word for word, fits in (("a", a[-2] == b[-2]), ("b", a[-1] == b[-1])) if fits]
        if len(fitting) != 1:
            return None
        new = spot.source.with_argument(call, f"transpose_{fitting[0]}=True")
        of = text(one) if fitting[0] == "a" else text(other)
        cause = (
            f"{said}: the columns of the first have to be as many as the rows of the second. With {of} transposed they "
            "are."
        )
    else:
        return None
    edit = edit_of(spot.file, spot.source.replaced({call: new}))
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "", "likely")


def _axis(spot: Spot, call: ast.Call) -> Explanation | None:
    values, axis = argument(call, 0, "values"), argument(call, 1, "axis")
    if not isinstance(values, (ast.List, ast.Tuple)) or axis is None:
        return None
    shapes = [shape_of(lookup(one, spot)) for one in values.elts]
    known = [one for one in shapes if one is not None]
    if len(known) != len(shapes) or len({len(one) for one in known}) != 1:
        return None
    differ = [place for place, sizes in enumerate(zip(*known)) if len(set(sizes)) > 1]
    if len(differ) != 1:
        return None
    cause = (
        f"The shapes {' and '.join(map(sizes_of, known))} differ in axis {differ[0]}, and concat joins tensors in the "
        "one axis in which they may differ."
    )
    edit = edit_of(spot.file, spot.source.replaced({axis: str(differ[0])}))
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "", "likely")


def _cast(spot: Spot, call: ast.Call, place: int, wanted: str, got: str) -> Explanation | None:
    values, tf = argument(call, 0, "values"), alias(spot, "tensorflow")
    nodes = values.elts if isinstance(values, (ast.List, ast.Tuple)) else []
    if place >= len(nodes) or wanted not in KERNELS or any(isinstance(one, ast.Starred) for one in nodes):
        return None
    whole = wanted.startswith("int") and got in ("float", "double", "half")
    node, dtype = (nodes[0], KERNELS[got]) if whole and place == 1 else (nodes[place], KERNELS[wanted])
    text = spot.source.text
    cause = (
        f"`{text(nodes[place])}` is {KERNELS.get(got, got)}, and what stands before it {KERNELS[wanted]}: concat takes "
        "one dtype, and converts nothing."
    )
    if whole and place > 1:
        return Explanation(RULE, spot.file, call.lineno, cause, None, f"Cast the others with {tf}.cast first.")
    edit = edit_of(spot.file, spot.source.replaced({node: f"{tf}.cast({text(node)}, {tf}.{dtype})"}))
    return Explanation(RULE, spot.file, call.lineno, cause, edit)


def _casts(spot: Spot, call: ast.Call, dtypes: list[str]) -> Explanation | None:
    """The same in a graph, which names the dtypes of all: whole numbers as the one dtype of the others."""
    values, tf = argument(call, 0, "values"), alias(spot, "tensorflow")
    nodes = values.elts if isinstance(values, (ast.List, ast.Tuple)) else []
    floats = {one for one in dtypes if "float" in one}
    if len(nodes) != len(dtypes) or len(floats) != 1 or not all("int" in one or one in floats for one in dtypes):
        return None
    dtype, text = floats.pop(), spot.source.text
    other = {node: kind for node, kind in zip(nodes, dtypes) if kind != dtype}
    said = " and ".join(f"`{text(node)}` is {kind}" for node, kind in other.items())
    cause = f"{said}, and the others are {dtype}: concat takes one dtype, and converts nothing."
    pieces: dict[ast.expr, str] = {one: f"{tf}.cast({text(one)}, {tf}.{dtype})" for one in other}
    return Explanation(RULE, spot.file, call.lineno, cause, edit_of(spot.file, spot.source.replaced(pieces)))
