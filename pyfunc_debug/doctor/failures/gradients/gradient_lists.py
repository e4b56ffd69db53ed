"""A list of gradients, one for each variable, that a line takes for one tensor: clipped, divided or averaged whole.

`tape.gradient(loss, model.trainable_variables)` gives a list of tensors of several shapes, which neither NumPy nor an
op makes one array of; and `tf.clip_by_global_norm` gives a pair.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from pyfunc_debug.doctor.failures.gradients.applied_pairs import applies, asked_for
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_symbolic, shape_of, sizes_of

RULE = "structure"
_EACH = {
    "array", "asarray", "clip", "nan_to_num", "where", "clip_by_value", "clip_by_norm", "convert_to_tensor", "stack",
    "constant", "multiply", "divide", "sign", "square", "abs", "cast", "add", "subtract",
}  # fmt: skip
"""Functions that compute each element by itself."""
_SAME = {"array", "asarray", "convert_to_tensor", "stack", "constant"}
_MEANS = {"mean", "reduce_mean", "average"}
_SUMS = {"sum", "reduce_sum", "add_n"}
_OPERANDS = re.compile(r"unsupported operand type\(s\) for (\S+): '(\w+)' and '(\w+)'|can't multiply sequence by")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line computes with a list of gradients as with one tensor."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body:
        return None
    clipped = _of_pair(spot, statement)
    if clipped is not None:
        return clipped
    read = [one for one in ast.walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    for name in {one.id: one for one in read}.values():
        value = spot.value(name.id)
        shapes = _shapes(value)
        several = len(set(shapes)) > 1 or (len(shapes) > 1 and _OPERANDS.search(situation.message) is not None)
        if several and asked_for(spot.source, name, spot.line) is not None:
            return _of_list(spot, statement, name.id, shapes)
        if type(value) is list and value and len(_shapes(value[0])) > 1 and _collected(spot, name.id):
            return _of_lists(spot, statement, name, value)
    return None


def _shapes(value: Any) -> list[Any]:
    """The shapes of a list of tensors; empty for all else."""
    if type(value) not in (list, tuple) or not all(one is None or _is_tensor(one) for one in value):
        return []
    return [shape_of(one) for one in value if one is not None]


def _is_tensor(value: Any) -> bool:
    return type(value).__name__ in ("EagerTensor", "IndexedSlices") or is_symbolic(value)


def _told(spot: Spot, line: int, cause: str, pieces: Mapping[ast.expr, str], advice: str = "") -> Explanation:
    edit = edit_of(spot.file, spot.source.replaced(dict(pieces))) if pieces else None
    return Explanation(RULE, spot.file, line, cause, edit, "" if edit is not None else advice)


def _of_pair(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`grads = tf.clip_by_global_norm(grads, 1.0)`: the clipped gradients, and their norm before."""
    given = [one.args[0] for one in calls(statement) if applies(one) and one.args]
    zipped = [one.args[0] for one in given if isinstance(one, ast.Call) and dotted(one.func) == "zip" and one.args]
    name = zipped[0] if len(zipped) == 1 else None
    if not isinstance(name, ast.Name):
        return None
    value = spot.value(name.id)
    if type(value) is not tuple or len(value) != 2 or type(value[0]) is not list or not _is_tensor(value[1]):
        return None
    made = [
        one for one in own_nodes(spot.function or spot.source.tree)
        if isinstance(one, ast.Assign) and one.lineno < spot.line
        and [dotted(part) for part in one.targets] == [name.id]
    ]  # fmt: skip
    made.sort(key=lambda one: one.lineno)
    call = made[-1].value if made else None
    if not isinstance(call, ast.Call) or dotted(call.func).rpartition(".")[2] != "clip_by_global_norm":
        return None
    cause = f"{dotted(call.func)} gives two things: the clipped gradients, and the norm that they had."
    return _told(spot, call.lineno, cause, {made[-1].targets[0]: f"{name.id}, _"})


def _of_list(spot: Spot, statement: ast.stmt, name: str, shapes: list[Any]) -> Explanation | None:
    """The line for each gradient, where it computes each element by itself; the norm of all of them."""
    source, several = spot.source, " and ".join(_written(one) for one in dict.fromkeys(shapes))
    cause = f"{name} is a list of {len(shapes)} gradients, one for each variable"
    cause += f" (of shapes {several})" if len(several) < 40 else ""
    nodes = [one for one in ast.walk(statement) if isinstance(one, ast.Name) and one.id == name
             and isinstance(one.ctx, ast.Load)]  # fmt: skip
    if len(nodes) != 1:
        return None
    call = source.parent(nodes[0])
    if isinstance(call, ast.Call) and dotted(call.func).rpartition(".")[2] == "norm" and len(call.args) == 1:
        new = f"{alias(spot, 'tensorflow')}.linalg.global_norm({name})"
        return _told(spot, spot.line, f"{cause}: their norm together is a global norm.", {call: new})
    added = _added(spot, statement, name)
    if added is not None:
        return _told(spot, spot.line, f"{cause}. Python adds lists only by putting one behind the other.", added)
    whole: ast.expr | None = None
    inside: ast.AST | None = nodes[0]
    while inside is not None and (inside is nodes[0] or _is_each(inside, name)):
        whole = inside if isinstance(inside, ast.expr) else whole
        inside = source.parent(inside)
    if whole is None or whole is nodes[0] or not isinstance(statement, ast.Assign) or whole is not statement.value:
        return None
    taken = {each.id for each in ast.walk(source.tree) if isinstance(each, ast.Name)}
    one = next(each for each in ("g", "gradient", "one_gradient") if each not in taken)
    inner: dict[ast.expr, str] = {nodes[0]: one}
    holder = source.parent(nodes[0])
    if isinstance(holder, ast.Call) and dotted(holder.func).rpartition(".")[2] in _SAME and len(holder.args) == 1:
        if holder is whole:
            return None
        inner = {holder: one}  # a tensor already
    text = source.text_with(whole, inner)
    empty = f"{one} if {one} is None else {text}" if None in spot.value(name) else text
    cause += ": what is done here is for one tensor."
    return _told(spot, spot.line, cause, {whole: f"[{empty} for {one} in {name}]"})


def _is_each(node: ast.AST, name: str) -> bool:
    """Whether an expression computes each element of what is in it by itself."""
    if isinstance(node, ast.Call):
        return dotted(node.func).rpartition(".")[2] in _EACH and not any(word.arg == "axis" for word in node.keywords)
    return isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult)


def _written(shape: Any) -> str:
    return "[...]" if shape is None else sizes_of(shape)


def _added(spot: Spot, statement: ast.stmt, name: str) -> dict[ast.expr, str] | None:
    """`total = total + grads`, which begins with 0."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        total, whole = statement.target, statement.value
        if not isinstance(total, ast.Name) or not isinstance(whole, ast.Name):
            return None
    elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
        sides = (statement.value.left, statement.value.right)
        others = [one for one in sides if isinstance(one, ast.Name) and one.id != name]
        if not isinstance(statement.value.op, ast.Add) or len(others) != 1 or len({dotted(one) for one in sides}) != 2:
            return None
        if not all(isinstance(one, ast.Name) for one in sides):
            return None
        total, whole = others[0], statement.value
    else:
        return None
    if spot.value(total.id) not in (0, None) or type(spot.value(total.id)) not in (int, float, type(None)):
        return None
    text = f"[a + b for a, b in zip({total.id}, {name})] if {total.id} else {name}"
    if isinstance(statement, ast.AugAssign):
        line = ast.Name("line", ast.Load())
        line.lineno, line.col_offset = statement.lineno, statement.col_offset
        line.end_lineno, line.end_col_offset = statement.end_lineno, statement.end_col_offset
        return {line: f"{total.id} = {text}"}
    return {whole: text}


def _collected(spot: Spot, name: str) -> bool:
    """Whether a list is one that gradients are appended to."""
    appended = [
        one.args[0] for one in calls(spot.source.tree)
        if dotted(one.func) == f"{name}.append" and len(one.args) == 1
    ]  # fmt: skip
    return len(appended) == 1 and asked_for(spot.source, appended[0], spot.line) is not None


def _of_lists(spot: Spot, statement: ast.stmt, name: ast.Name, value: list[Any]) -> Explanation | None:
    """`np.mean(all_grads, axis=0)`: the gradients of some batches, a list for each."""
    call = spot.source.parent(name)
    if not isinstance(call, ast.Call) or call.args[:1] != [name]:
        return None
    called = dotted(call.func).rpartition(".")[2]
    axis = [one.value for one in call.keywords if one.arg == "axis"] + call.args[1:2]
    over = not axis or (isinstance(axis[0], ast.Constant) and axis[0].value == 0)
    if called not in _MEANS | _SUMS or not over or any(None in one for one in value if type(one) is list):
        return None
    if not axis and dotted(call.func) not in ("sum",) and called != "add_n":
        return None  # a mean of all numbers
    tf = alias(spot, "tensorflow")
    share = f" / len({name.id})" if called in _MEANS else ""
    cause = (
        f"{name.id} has {len(value)} lists of gradients, one for each variable and of several shapes: no array can "
        "hold them. zip(*...) gives those of one variable."
    )
    return _told(spot, spot.line, cause, {call: f"[{tf}.add_n(one){share} for one in zip(*{name.id})]"})
