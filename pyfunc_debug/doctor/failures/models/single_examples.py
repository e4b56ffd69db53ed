"""One example where a model takes a batch: `model.predict(x[0])`, `model(state)`, `model.evaluate(x[0], y[0])`.

Keras takes its first axis for the batch, and fails in a layer, in the axes of the result, or as it counts the rows.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.models.batch_makers import batch_maker
from pyfunc_debug.doctor.failures.models.data_axes import sizes
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, lookup, of_keras, shape_of, shape_of_data

RULE = "unbatched"
_SHAPE = re.compile(r"Expected shape \(([^)]*)\), but input has incompatible shape \(([^)]*)\)")
_RANK = re.compile(r"expected (?:min_)?ndim=(\d+), found ndim=(\d+)\. Full shape received: \(([^)]*)\)")
_GUESSES = ("predict", "predict_on_batch", "")
_LEARNS = ("fit", "evaluate", "train_on_batch", "test_on_batch")
"""Methods that take labels, too; "" is the model called."""
_ARRAYS = ("array", "asarray", "constant", "convert_to_tensor", "float32", "astype", "cast")
_Shape = tuple[int | None, ...]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras was given an example without the axis of a batch."""
    outside = list(itertools.takewhile(lambda one: not one.by and not one.generated, situation.spots))
    spot = outside[-1] if outside else None  # the last in front of a `call` of the user's own
    statement = spot.statement if spot is not None else None
    if spot is None or statement is None:
        return None
    if not any("keras" in one.f_code.co_filename for one in frames(situation.inner.__traceback__)):
        return None
    for call, model, method in _calls(statement, spot):
        given = argument(call, 0, "x") if method else argument(call, 0, "inputs")
        if given is not None and batch_maker(given, spot) is not None:
            continue  # of a generator the yield is to be changed
        pieces = _pieces(spot, given, method, _wanted(model), situation.message) if given is not None else {}
        if not pieces:
            continue
        labels = argument(call, 1, "y") if method in _LEARNS else None
        whole = _labels(spot, labels, model) if labels is not None else {}
        names = list(dict.fromkeys(spot.source.text(one) for one in pieces))
        shown = ", ".join(map(_size, _shape(next(iter(pieces)), spot) or _said(situation.message)))
        what = f"has the shape [{shown}]: one example" if len(names) == 1 else "are one example each"
        verb = f"{method} takes" if method else "A model takes"
        cause = f"{' and '.join(names[:2])} {what}. {verb} a batch of them, as rows of an array."
        if situation.body and method in _GUESSES and whole is not None and isinstance(given, ast.Name):
            cause += " Its result is a batch, too: [0] is that of the example."
            whole = {call: f"{spot.source.text_with(call, pieces)}[0]"}
            pieces = {}
        edit = edit_of(spot.file, spot.source.replaced({**pieces, **whole})) if whole is not None else None
        advice = "" if edit else f"Give it {', '.join(pieces.values())}, and the label as an array of one."
        return Explanation(RULE, spot.file, call.lineno, cause, edit, advice)
    return None


def _calls(statement: ast.stmt, spot: Spot) -> Iterator[tuple[ast.Call, Any, str]]:
    """The calls of models, and of their methods that take data, in the header of a statement."""
    for one in calls(statement):
        if not one.lineno <= spot.line <= (one.end_lineno or one.lineno):
            continue
        owner = lookup(one.func.value, spot) if isinstance(one.func, ast.Attribute) else None
        if isinstance(one.func, ast.Attribute) and one.func.attr in (*_GUESSES, *_LEARNS):
            if of_keras(type(owner), "Model"):
                yield one, owner, one.func.attr
        elif of_keras(type(lookup(one.func, spot)), "Model"):
            yield one, lookup(one.func, spot), ""


def _wanted(model: Any) -> list[_Shape]:
    """The shapes of one example, for each of a model's inputs; empty where they are not known."""
    try:
        shapes = [shape_of(one) for one in model.inputs or ()]
    except (AttributeError, TypeError, ValueError):  # a subclassed one, or one that is not built
        built: Any = vars(model).get("_build_shapes_dict") or {}
        shapes = [one for one in built.values() if isinstance(one, tuple)] if len(built) == 1 else []
    known = [tuple(one[1:]) for one in shapes if one]
    return known if len(known) == len(shapes) else []


def _pieces(spot: Spot, given: ast.expr, method: str, wanted: list[_Shape], said: str) -> dict[ast.expr, str]:
    """What is given as one example, and its text as a batch of one."""
    inside = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
    if len(wanted) > 1:
        shapes = [_shape(one, spot) for one in inside]
        if len(inside) != len(wanted) or not all(map(_fits, shapes, wanted)):
            return {}
        return {one: _batched(one, spot) for one in inside}
    nodes = [given, *(inside if len(inside) == 1 else [])]
    for node in nodes:
        shape = _shape(node, spot)
        if wanted and _fits(shape, wanted[0]) and (method in _GUESSES or None not in wanted[0] or _index(node, spot)):
            return {node: _batched(node, spot)}
        if (
            wanted
            and shape is not None
            and wanted[0][-1:] == (1,)
            and method in _GUESSES
            and (_fits(shape, wanted[0][:-1]))
        ):  # a grey image without its channel
            return {node: _batched(node, spot, "[None, ..., None]" if shape else "")}
        rank = _RANK.search(said)
        short = not wanted and rank is not None and int(rank[1]) == int(rank[2]) + 1
        if rank is not None and short and _index(node, spot) and list(map(_size, shape or ())) == sizes(rank[3]):
            return {node: _batched(node, spot)}
    found = _SHAPE.search(said)
    known = _shape(given, spot) is not None or isinstance(given, (ast.List, ast.Tuple, ast.Dict))
    if not known and found is not None and method in _GUESSES and sizes(found[1])[1:] == sizes(found[2]):
        return {given: f"{spot.source.atom(given)}[None]"}
    return {}


def _said(message: str) -> _Shape:
    """The shape of what was given, as Keras says it."""
    found = _SHAPE.search(message)
    return tuple(int(one) if one.isdigit() else None for one in sizes(found[2] if found else ""))


def _size(one: int | None) -> str:
    return "?" if one is None else str(one)


def _fits(shape: _Shape | None, wanted: _Shape) -> bool:
    return shape is not None and len(shape) == len(wanted) and all(
        None in pair or pair[0] == pair[1] for pair in zip(shape, wanted)
    )  # fmt: skip


def _labels(spot: Spot, node: ast.expr, model: Any) -> dict[ast.expr, str] | None:
    """The label of that example as an array of one; None where its shape is not known."""
    shape = _shape(node, spot)
    try:
        outputs = [shape_of(one) for one in model.outputs or ()]
    except (AttributeError, TypeError, ValueError):
        outputs = []
    if shape is None or len(outputs) > 1:
        return None
    if shape == () or (outputs and outputs[0] and _fits(shape, tuple(outputs[0][1:])) and shape != (1,)):
        return {node: _batched(node, spot)}
    if _index(node, spot):
        return {node: _batched(node, spot)}
    return {} if shape[0] == 1 else None


def _batched(node: ast.expr, spot: Spot, axes: str = "[None]") -> str:
    """An example as a batch of one: `x[0:1]` of `x[0]`, `x[None]` of `x`."""
    found, value = _index(node, spot), lookup(node, spot)
    if found is not None and axes == "[None]":
        owner, place = found
        text = spot.source.text(node.slice) if isinstance(node, ast.Subscript) else ""
        end = "" if place == -1 else str(place + 1) if text.lstrip("-").isdigit() else f"{text} + 1"
        return f"{owner}[{text}:{end}]"
    if hasattr(value, "iloc"):
        return f"{spot.source.atom(node)}.values{axes}"
    if isinstance(value, (list, tuple, bool, int, float)) or isinstance(node, (ast.List, ast.Constant, ast.UnaryOp)):
        return f"{alias(spot, 'numpy')}.array([{spot.source.text(node)}])"
    return f"{spot.source.atom(node)}{axes or '[None]'}"


def _index(node: ast.expr, spot: Spot) -> tuple[str, int] | None:
    """The array in `x[0]` or `x[i]`, as it is written, and the index; None for other expressions, and for lists."""
    if not isinstance(node, ast.Subscript):
        return None
    owner = node.value
    table = isinstance(owner, ast.Attribute) and owner.attr == "iloc"
    value = lookup(owner.value if table and isinstance(owner, ast.Attribute) else owner, spot)
    place = _number(node.slice, spot)
    simple = isinstance(node.slice, (ast.Name, ast.Constant, ast.UnaryOp))
    if place is None or not simple or not shape_of(value) or (hasattr(value, "iloc") and not table):
        return None
    written = isinstance(node.slice, ast.Name)
    return (spot.source.text(owner), place) if place >= 0 or not written else None


def _number(node: ast.expr, spot: Spot) -> int | None:
    """The number that an index is."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value if type(node.operand.value) is int else None
    value: Any = node.value if isinstance(node, ast.Constant) else lookup(node, spot)
    return int(value) if type(value).__name__ in ("int", "int32", "int64") else None


def _shape(node: ast.expr, spot: Spot) -> _Shape | None:
    """The shape of what an expression gives, as far as it is read from names and indices."""
    if isinstance(node, ast.Subscript):
        table = isinstance(node.value, ast.Attribute) and node.value.attr == "iloc"
        owner = node.value.value if table and isinstance(node.value, ast.Attribute) else node.value
        place, value = _number(node.slice, spot), lookup(owner, spot)
        if type(value) in (list, tuple) and place is not None and -len(value) <= place < len(value):
            return shape_of_data(value[place])
        shape = None if isinstance(node.slice, (ast.Slice, ast.Tuple)) else _shape(owner, spot)
        scalar = place is not None or isinstance(node.slice, (ast.BinOp, ast.Call))
        return shape[1:] if shape and scalar and (table or not hasattr(value, "iloc")) else None
    if isinstance(node, ast.BinOp):  # `image / 255`
        sides = [_shape(node.left, spot), _shape(node.right, spot)]
        return next((one for one in sides if one), None) if () in sides else None
    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _ARRAYS:
        method = isinstance(node.func, ast.Attribute) and node.func.attr == "astype"
        inner = node.func.value if method and isinstance(node.func, ast.Attribute) else (node.args or [node])[0]
        return _shape(inner, spot) if inner is not node else None
    if isinstance(node, (ast.Name, ast.Attribute)):
        return shape_of_data(lookup(node, spot))
    try:
        return shape_of_data(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError):
        return None
