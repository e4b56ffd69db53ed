"""What to paste where a line needs a symbolic tensor's value: an op that does it, or Python in a py_function."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.gradients.left_behind import constant_under_a_tape
from pyfunc_debug.doctor.failures.graphs import (
    checks,
    comprehensions,
    kept_by_python,
    kept_lists,
    known_sizes,
    state_changes,
)
from pyfunc_debug.doctor.failures.models.keras_calls import compiled_function, given, is_loss
from pyfunc_debug.doctor.failures.ops import known_losses, row_loops
from pyfunc_debug.doctor.failures.ops.rewrites import as_ops, rest_as_ops, whole_as_ops, writes_parts
from pyfunc_debug.doctor.failures.pastes import control_flow, keyed, wrapping
from pyfunc_debug.doctor.failures.pastes.as_python import as_python, best
from pyfunc_debug.doctor.failures.pastes.body_of_lines import body_of_lines
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.pastes.printed import quoted, shown
from pyfunc_debug.doctor.failures.pastes.tried_ops import is_near
from pyfunc_debug.doctor.failures.reading import array_keys
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, root_is, shape_of, symbolic_parts


def value_fix(
    situation: Situation, spot: Spot, statement: ast.stmt, value: ast.expr | None, attribute: str | None
) -> tuple[Edit | None, bool]:
    evaluated = _evaluated(value, spot) if value is not None and _in_dataset(situation) else None
    if evaluated is not None:
        new = f"{spot.source.text(evaluated.func.value)}.numpy()"  # type: ignore[attr-defined]
        return wrapping.replace_expression(spot, evaluated, new), True
    checked = checks.as_op(spot, statement)
    if checked is not None:
        return checked, True
    kept = state_changes.edit(spot, statement, situation.message)
    if kept is not None:
        return kept, True
    if (
        isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Subscript)
        and "assignment" in situation.message
    ):
        return item_assignment(spot, statement), True
    if value is None:
        return None, True
    if attribute in _ASSIGNS:
        return _not_rebound(spot), True
    asked = array_keys.asked(situation, spot, value)
    if asked is not None:
        each = keyed.of_each(spot, asked)
        return (None, True) if each is None else (each.edit, each.sure)
    sized = known_sizes.in_place(spot, value)
    if sized is not None:
        return sized, True
    known = known_losses.in_op(spot) if is_loss(situation) else None
    if known is not None:
        return known, True
    printed = _print(spot, statement)
    if printed is not None:
        return printed, True
    noted = kept_by_python.edit(spot, statement)
    if noted is not None:
        return noted, True
    function = spot.function
    by, in_data = wrapping.entry(situation)[1], _in_dataset(situation)
    ranged = comprehensions.over_range(spot, value) if not in_data else None
    if ranged is not None:
        return ranged[0], True
    rows = row_loops.mapped(spot, statement) if isinstance(statement, ast.For) and not in_data else None
    if rows is not None:
        return rows, True
    branches = function is not None and not is_loss(situation) and _branches(function, spot)
    if by == "Keras" and function is not None and (branches or not whole_as_ops(function, spot)):
        compiled = compiled_function(situation)
        if compiled is not None:
            return compiled, True
        outer = wrapping.around_layer(situation)
        layer = None if outer is None else as_python(situation, outer) or wrapping.mapped_function(situation, outer)
        if layer is not None:
            return layer.edit, layer.sure
    if (
        isinstance(statement, ast.For)
        and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        and not spot.generated
        and control_flow.converts(function)
    ):
        return converted(spot, function), True
    if isinstance(statement, ast.For) and function is not None and not in_data and not spot.generated:
        arrays = kept_lists.in_arrays(spot, function, decorated=True)
        if arrays is not None:
            return arrays
        if isinstance(statement.iter, ast.Call) and dotted(statement.iter.func) == "range":
            return None, True  # of a py_function's numbers Python would have none either
    lines = body_of_lines(situation, spot, statement) if function is not None and not is_loss(situation) else None
    if lines is not None and not in_data and function is not None and not whole_as_ops(function, spot):
        return lines
    exact = not in_data or not is_near(value)  # no gradient is needed there: OpenCV itself can do it
    if state_changes.goes_on(spot, statement):
        return None, True
    if exact and (not in_data or function is None or whole_as_ops(function, spot)):
        ops = as_ops(value, spot)
        targets = [spot.source.text(one) for one in getattr(statement, "targets", [])]
        whole = function is not None and not writes_parts(function) and whole_as_ops(function, spot)
        if ops is not None and constant_under_a_tape(spot, value):
            tf = alias(spot, "tensorflow")
            return wrapping.replace_expression(spot, value, f"{tf}.stop_gradient({ops})"), True
        if ops is not None and (ops not in targets or whole):
            return _with_the_rest(situation, spot, value, ops, ops in targets), True
    wrap = best(situation)
    return (wrap.edit, wrap.sure) if wrap is not None else lines or (None, True)


def _in_dataset(situation: Situation) -> bool:
    """Whether tf.data traced the function."""
    return wrapping.entry(situation)[1] == "tf.data"


def _evaluated(value: ast.expr, spot: Spot) -> ast.Call | None:
    """`x.eval(session=sess)` of an expression: no session has the values of a Dataset's elements."""
    found = [one for one in calls(value) if wrapping.asks_a_session(one) and symbolic_parts(one.func, spot)]
    return found[0] if len(found) == 1 else None


_SAME = re.compile(r"\s*(\w+) = \1(?:\s*#.*)?")
"""What `y = y.numpy()` becomes as ops."""
_FARTHEST = 20
"""Lines from the first to the last that one paste changes."""


def _with_the_rest(situation: Situation, spot: Spot, value: ast.expr, text: str, same: bool) -> Edit | None:
    """The expression as ops, and what would fail after it: in this function, and in others that Keras is given."""
    pieces, function = {value: text}, spot.function
    if isinstance(function, ast.FunctionDef) and whole_as_ops(function, spot):
        pieces |= rest_as_ops(function, spot, spot.line)
    if wrapping.entry(situation)[1] == "Keras":
        near = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one is not function]
        compiled = {dotted(one).rpartition(".")[2] for one in given(spot)}
        there = Spot(spot.file, spot.line, {}, spot.module, "")
        for one in near:
            if one.name in compiled and spot.line < one.lineno < spot.line + _FARTHEST:
                pieces |= rest_as_ops(one, there, one.lineno, tuple(parameters(one)))
    first, last = min(one.lineno for one in pieces), max(one.end_lineno or one.lineno for one in pieces)
    if len(pieces) == 1 or last - first >= _FARTHEST:
        if same:
            text = f"{alias(spot, 'tensorflow')}.convert_to_tensor({text})"
        return wrapping.replace_expression(spot, value, text)
    lines = spot.source.spliced(pieces, first, last)
    return Edit(spot.file, first, last, tuple(one for one in lines if not _SAME.fullmatch(one)) or lines)


def _branches(function: ast.AST, spot: Spot) -> bool:
    """Whether a function of NumPy's chooses by what it computes: as ops each choice would have to be one, too."""
    chooses = any(isinstance(one, (ast.If, ast.IfExp, ast.While, ast.BoolOp)) for one in ast.walk(function))
    return chooses and any(root_is(one.func, spot, "numpy") for one in calls(function))


def stored(statement: ast.stmt, spot: Spot) -> dict[str, object]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return {name: one for target in targets if target is not None for name, one in symbolic_parts(target, spot).items()}


def item_assignment(spot: Spot, statement: ast.Assign) -> Edit | None:
    """`t[i, j] = x` as a new tensor with that number; None where less or more than one number is written.

    Args:
      spot: The frame.
      statement: The assignment, to a subscript.
    """
    target = statement.targets[0]
    assert isinstance(target, ast.Subscript)
    source, tf = spot.source, alias(spot, "tensorflow")
    name = source.text(target.value)
    index = [source.text(one) for one in (target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice])]
    rank = shape_of(spot.value(name))
    if ":" in "".join(index) or (rank is not None and len(rank) != len(index)):
        return None
    line = source.lines[statement.lineno - 1]
    blanks = line[: len(line) - len(line.lstrip())]
    new = f"{name} = {tf}.tensor_scatter_nd_update({name}, [[{', '.join(index)}]], [{source.text(statement.value)}])"
    return Edit(spot.file, statement.lineno, statement.end_lineno or statement.lineno, (blanks + new,))


_ASSIGNS = ("assign", "assign_add", "assign_sub")


def _not_rebound(spot: Spot) -> Edit | None:
    """`a = a[0].assign(1)` without its left side: what assign gives in a graph is a tensor, and no variable."""
    function, source = spot.function, spot.source
    found: dict[int, str] = {}
    for one in ast.walk(function) if function is not None else ():
        if not isinstance(one, ast.Assign) or len(one.targets) > 1 or not isinstance(one.value, ast.Call):
            continue
        method, target = one.value.func, dotted(one.targets[0])
        if not isinstance(method, ast.Attribute) or method.attr not in _ASSIGNS or one.lineno != one.end_lineno:
            continue
        owner = method.value.value if isinstance(method.value, ast.Subscript) else method.value
        if target and dotted(owner) == target:
            line = source.lines[one.lineno - 1]
            found[one.lineno] = line[: one.col_offset] + source.text(one.value)
    if not found or max(found) - min(found) >= _FARTHEST:
        return None
    lines = tuple(found.get(at, source.lines[at - 1]) for at in range(min(found), max(found) + 1))
    return Edit(spot.file, min(found), max(found), lines)


def _print(spot: Spot, statement: ast.stmt) -> Edit | None:
    """`print(f"loss {x:.3f}")` and `print("loss", x.numpy())` as `tf.print("loss", x)`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or dotted(call.func) != "print" or call.keywords:
        return None
    texts: list[str] = []
    for argument in call.args:
        if isinstance(argument, ast.Starred):
            return None
        for one in shown(argument):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                texts += [quoted(one.value.strip())] * bool(one.value.strip())
            else:
                texts.append(as_ops(one, spot) or spot.source.text(one) or ast.unparse(one))
    return wrapping.replace_expression(spot, call, f"{alias(spot, 'tensorflow')}.print({', '.join(texts)})")


def converted(spot: Spot, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Edit | None:
    """What makes AutoGraph convert a function."""
    tf = alias(spot, "tensorflow")
    for one in function.decorator_list:
        text = spot.source.text(one)
        if "autograph" in text or "do_not_convert" in text:
            new = f"{tf}.function" if "do_not_convert" not in text else f"{tf}.autograph.experimental.do_not_convert"
            if "do_not_convert" in text:
                return Edit(spot.file, one.lineno, one.lineno, ())
            return wrapping.replace_expression(spot, one, new)
        if dotted(one).endswith(".function"):
            return None
    return wrapping.above_function(spot, function, wrapping.converting(spot, function))
