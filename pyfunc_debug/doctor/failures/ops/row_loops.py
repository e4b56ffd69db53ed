"""A loop of Python's over the rows of a batch, as tf.map_fn: its body in ops, traced once, with its gradient."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.ops.rewrites import as_ops
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, names
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, symbolic_parts


def mapped(spot: Spot, loop: ast.For) -> Edit | None:
    """`for t, p in zip(y_true, y_pred): losses.append(...)` as `losses = tf.map_fn(one, (y_true, y_pred))`.

    None where the loop does anything else than to compute one value a row, or Python is needed for it.
    """
    over = _over(loop.iter)
    if any(isinstance(one, ast.Call) and isinstance(one.func, ast.Name) for one in over):
        return None  # enumerate(x), reversed(x), which give no tensor
    parts = [part for one in over for part in symbolic_parts(one, spot).values()]
    if len(parts) != len(over) or not over or loop.orelse:
        return None
    *before, last = loop.body
    kept = _kept(last)
    known = {name for one in ast.walk(loop.target) if isinstance(one, ast.Name) for name in [one.id]}
    lines: list[str] = []
    for one in before:
        text = _line(one, spot, known)
        if text is None:
            return None
        lines.append(text)
    result = as_ops(kept[1], spot, also=tuple(known), same=True) if kept is not None else None
    kinds = [dtype_of(one) for one in parts if "float" in dtype_of(one)]
    taken = {one.id for one in ast.walk(spot.source.tree) if isinstance(one, ast.Name)}
    if result is None or kept is None or not kinds or "row" in taken or "one_row" in taken:
        return None
    source, tf = spot.source, alias(spot, "tensorflow")
    blanks, targets = indent_of(source.lines[loop.lineno - 1]), source.text(loop.target).strip("()").rstrip(", ")
    given = ", ".join(source.text(_plain(one)) for one in over)
    head = [f"{blanks}def one_row({targets}):"]
    if len(over) > 1:
        given = f"({given})"
        head = [f"{blanks}def one_row(row):", f"{blanks}    {targets} = row"]
    rows = f"{tf}.map_fn(one_row, {given}, fn_output_signature={tf}.{kinds[-1]})"
    name, _, summed = kept
    made = f"{name} += {tf}.reduce_sum({rows})" if summed else f"{name} = {rows}"
    pasted = (*head, *(f"{blanks}    {one}" for one in lines), f"{blanks}    return {result}", f"{blanks}{made}")
    return Edit(spot.file, loop.lineno, loop.end_lineno or loop.lineno, pasted)


def _over(node: ast.expr) -> list[ast.expr]:
    """What a loop goes through: the parts of `zip`, or one."""
    zipped = isinstance(node, ast.Call) and dotted(node.func) == "zip" and not node.keywords
    return list(node.args) if zipped and isinstance(node, ast.Call) else [node]


def _plain(node: ast.expr) -> ast.expr:
    """`y` of `y.numpy()`."""
    asked = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy"
    return node.func.value if asked and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node


def _kept(last: ast.stmt) -> tuple[str, ast.expr, bool] | None:
    """Where a loop's value goes, the value, and whether it is added up."""
    if isinstance(last, ast.AugAssign) and isinstance(last.op, ast.Add) and isinstance(last.target, ast.Name):
        return last.target.id, last.value, True
    call = last.value if isinstance(last, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or len(call.args) != 1:
        return None
    owner = call.func.value
    return (owner.id, call.args[0], False) if call.func.attr == "append" and isinstance(owner, ast.Name) else None


def _line(statement: ast.stmt, spot: Spot, known: set[str]) -> str | None:
    """A statement of the loop as ops; what it makes is known from then on."""
    if not isinstance(statement, ast.Assign) or not all(isinstance(one, ast.Name) for one in statement.targets):
        return None
    value = as_ops(statement.value, spot, also=tuple(known), same=True)
    made = [name for one in statement.targets for name in names(one)]
    known |= set(made)
    return None if value is None else f"{' = '.join(made)} = {value}"
