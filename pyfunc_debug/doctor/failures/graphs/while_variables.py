"""What `tf.while_loop` carries from round to round: a list of Python's, or a tensor that grows."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.nodes import argument, local_function, return_value
from pyfunc_debug.doctor.failures.reading.refused_ops import shape_at
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    lookup,
    root_is,
    shape_of,
    shape_of_data,
    sizes_of,
)

RULE = "structure"
_STRUCTURE = "don't have the same nested structure"
_APPENDED = re.compile(r"More specifically:.*?str=\[<tf\.Tensor[^>]*?dtype=(\w+)", re.DOTALL)
_GROWS = re.compile(r"enters the loop with shape \(([\d, ]*)\), but has shape \(([^)]*)\) after one iteration")
_OF_ARRAY = re.compile(
    r"(?:Input tensor `|shape invariant specified for )\S*Tensor(?:Array|List)\S*?`? "
    r"(?:enters the loop with shape|is not compatible with the initial shape)"
)
_FARTHEST = 25
"""Lines from the first to the last that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what a loop carries has another form after a round."""
    spot = situation.last
    statement = situation.statement if not situation.body else None
    grows, of_array = _GROWS.search(situation.message), _OF_ARRAY.search(situation.message)
    if spot is None or statement is None or not (grows or of_array or _STRUCTURE in situation.message):
        return None
    found = [
        one
        for one in calls(statement)
        if dotted(one.func).endswith("while_loop") and root_is(one.func, spot, "tensorflow")
    ]
    variables = argument(found[0], 2, "loop_vars") if len(found) == 1 else None
    if isinstance(variables, ast.Name):
        variables = _assigned(variables, spot)
    if not isinstance(variables, (ast.List, ast.Tuple)):
        return None
    if of_array is not None:
        return _handles(spot, found[0], variables.elts)
    if grows is not None:
        return _invariants(spot, found[0], variables.elts, grows)
    return _list(situation, spot, statement, found[0], variables.elts) or _fewer(spot, found[0], variables.elts)


def _assigned(name: ast.Name, spot: Spot) -> ast.expr | None:
    """What `loop_vars = [i, outs]` above gives."""
    found = [
        one.value for one in ast.walk(spot.source.tree) if isinstance(one, ast.Assign) and one.lineno < spot.line
        and [dotted(target) for target in one.targets] == [name.id]
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _invariants(spot: Spot, call: ast.Call, variables: list[ast.expr], grows: re.Match[str]) -> Explanation | None:
    before, after = _sizes(grows[1]), _sizes(grows[2])
    shapes = [_shape(one, spot) for one in variables]
    growing = [place for place, shape in enumerate(shapes) if shape == before]
    if len(before) != len(after) or len(growing) != 1 or argument(call, 3, "shape_invariants") is not None:
        return None
    place, tf, text = growing[0], alias(spot, "tensorflow"), spot.source.text
    kept = [size if size == other else None for size, other in zip(before, after)]
    cause = (
        f"{text(variables[place])} has shape {list(before)} before the first round and {sizes_of(after)} after it. A "
        "loop takes one shape, unless shape_invariants leaves a size open."
    )
    edit = None
    if None not in shapes:
        each = [kept if at == place else shape for at, shape in enumerate(shapes)]
        new = ", ".join(f"{tf}.TensorShape({list(one or ())})" for one in each)
        lines = spot.source.ended(call, f"shape_invariants=[{new}]")
        edit = Edit(spot.file, call.lineno, call.end_lineno or call.lineno, lines)
    advice = "Give tf.while_loop shape_invariants=, with None for the size that changes."
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else advice)


def _handles(spot: Spot, call: ast.Call, variables: list[ast.expr]) -> Explanation | None:
    """`shape_invariants` with the shape of what a TensorArray holds: the loop carries its handle, or its flow."""
    given = argument(call, 3, "shape_invariants")
    given = _assigned(given, spot) if isinstance(given, ast.Name) else given
    if not isinstance(given, (ast.List, ast.Tuple)) or len(given.elts) != len(variables):
        return None
    arrays = [
        (one, shape) for one, shape in zip(variables, given.elts) if _is_array(one, spot) and not _fits_handle(shape)
    ]  # fmt: skip
    if not arrays:
        return None
    text, tf = spot.source.text, alias(spot, "tensorflow")
    (first, shape), new = arrays[0], {one: f"{tf}.TensorShape([])" for _, one in arrays}
    name = f"{first.id}, a TensorArray" if isinstance(first, ast.Name) else "a TensorArray"
    cause = (
        f"shape_invariants has {short(text(shape), 40)} for {name}. A loop carries one value of shape [] for a "
        "TensorArray: neither its size nor the shape of its elements belongs there."
    )
    edit = edit_of(spot.file, spot.source.replaced(new))
    return Explanation(RULE, spot.file, shape.lineno, cause, edit, "" if edit else f"Give {tf}.TensorShape([]) for it.")


def _is_array(node: ast.expr, spot: Spot) -> bool:
    """Whether a loop variable is a TensorArray before the first round."""
    if isinstance(node, ast.Call):
        return dotted(node.func).endswith(".TensorArray")
    return type(lookup(node, spot)).__name__ == "TensorArray"


def _fits_handle(shape: ast.expr) -> bool:
    """`tf.TensorShape([])`, and that of any rank."""
    size = shape.args[0] if isinstance(shape, ast.Call) and len(shape.args) == 1 else None
    return (isinstance(size, ast.Constant) and size.value is None) or (
        isinstance(size, (ast.List, ast.Tuple)) and not size.elts
    )


def _shape(node: ast.expr, spot: Spot) -> tuple[int | None, ...] | None:
    """The shape of a loop variable before the first round."""
    if isinstance(node, ast.Constant):
        return ()
    value: Any = lookup(node, spot)
    made = isinstance(node, ast.Call) and dotted(node.func).endswith(".constant") and len(node.args) == 1
    if made and isinstance(node.args[0], ast.Constant):  # type: ignore[attr-defined]
        return ()
    if isinstance(value, (list, tuple)):
        return None
    if _is_array(node, spot):
        return ()
    if isinstance(node, ast.Call):
        return shape_at(node, spot)
    return shape_of_data(value) if value is not None and not hasattr(value, "op") else shape_of(value)


def _sizes(text: str) -> tuple[int | None, ...]:
    return tuple(None if one.strip() == "None" else int(one) for one in text.split(",") if one.strip())


def _list(
    situation: Situation, spot: Spot, statement: ast.stmt, call: ast.Call, variables: list[ast.expr]
) -> Explanation | None:
    """`outs.append(x)` in the body of a loop that got `[]`: as a TensorArray, which a loop carries."""
    places = [at for at, one in enumerate(variables) if _is_list(one, spot)]
    body, dtype = local_function(argument(call, 1, "body"), spot), _APPENDED.search(situation.message)
    if len(places) != 1 or body is None or dtype is None or len(parameters(body)) <= places[0]:
        return None
    place, name, tf, text = places[0], parameters(body)[places[0]], alias(spot, "tensorflow"), spot.source.text
    appended = [
        one for one in ast.walk(body) if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)
        and dotted(one.value.func) == f"{name}.append" and len(one.value.args) == 1
    ]  # fmt: skip
    cause = (
        f"The loop carries {name}, a list of Python's, which body appends to: after a round it holds one more, and a "
        "loop keeps its structure. A TensorArray is one value, and grows."
    )
    if len(appended) != 1:
        return None
    one, made = appended[0], f"{tf}.TensorArray({tf}.{dtype[1]}, size=0, dynamic_size=True)"
    assert isinstance(one.value, ast.Call)
    new = f"{name} = {name}.write({name}.size(), {text(one.value.args[0])})"
    blanks = " " * one.col_offset
    edits = [Edit(spot.file, one.lineno, one.end_lineno or one.lineno, (f"{blanks}{new}",))]
    at = variables[place]
    source = at if isinstance(at, ast.List) else _assigned(at, spot) if isinstance(at, ast.Name) else None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if source is None or not isinstance(target, (ast.Tuple, ast.List)) or len(target.elts) <= place:
        return Explanation(RULE, spot.file, call.lineno, cause, None, f"Carry {made}, and write to it in body.")
    kept, (first, last) = text(target.elts[place]), spot.source.span(statement)
    if first <= source.lineno <= last:
        lines: tuple[str, ...] = spot.source.spliced({source: made}, first, last)
    else:
        edits.append(Edit(spot.file, *spot.source.kept_lines({source: made})))
        lines = tuple(spot.source.lines[first - 1 : last])
    lines = (*lines, f"{' ' * statement.col_offset}{kept} = {kept}.stack()")
    edits.append(Edit(spot.file, first, last, lines))
    edit = together(sorted(edits, key=lambda each: each.first), spot.source.lines)
    near = edit.last - edit.first <= _FARTHEST
    return Explanation(
        RULE, spot.file, call.lineno, cause, edit if near else None,
        "" if near else f"Carry {made}, and write to it in body.",
    )  # fmt: skip


def _fewer(spot: Spot, call: ast.Call, variables: list[ast.expr]) -> Explanation | None:
    """A body that returns only what it changes."""
    body = local_function(argument(call, 1, "body"), spot)
    result, text = return_value(body) if body is not None else None, spot.source.text
    if body is None or result is None:
        return None
    parts = result.elts if isinstance(result, (ast.Tuple, ast.List)) else [result]
    given, count = parameters(body), len(variables)
    if len(parts) >= count or len(given) != count or isinstance(parts[0], ast.Call):
        return None
    cause = (
        f"body returns {len(parts)} value{'s'[: len(parts) > 1]}, and the loop carries {count}: each round gives all "
        "of them for the next, also what it did not change."
    )
    read = [next((name for name in names(one) if name in given), "") for one in parts]
    if read != given[: len(parts)]:
        return Explanation(RULE, spot.file, result.lineno, cause, None, f"Return {', '.join(given)} of the next round.")
    new = ", ".join([*map(text, parts), *given[len(parts) :]])
    new = f"[{new}]" if isinstance(result, ast.List) else f"({new})" if isinstance(body, ast.Lambda) else new
    edit = edit_of(spot.file, spot.source.replaced({result: new}))
    return Explanation(RULE, spot.file, result.lineno, cause, edit, "", "likely")


def _is_list(node: ast.expr, spot: Spot) -> bool:
    return (isinstance(node, ast.List) and not node.elts) or (
        isinstance(node, ast.Name) and type(lookup(node, spot)) is list
    )
