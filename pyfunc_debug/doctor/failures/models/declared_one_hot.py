"""`mask.set_shape((64, 64, 1))` of what a body made one-hot: the loss believes the shape, and refuses such labels."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.models import label_shapes
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.nodes import Node, return_values, site_spot, user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, read
from pyfunc_debug.doctor.failures.reading.symbols import method_calls, sizes_of

RULE = "unknown-shape"
_OF_ROWS = ("eye", "identity")
_OF_LABELS = ("to_categorical", "one_hot")
_DEEP = 4


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if labels that a body makes one-hot were said to be one number a row, or a pixel."""
    shapes = label_shapes.said(situation.message)
    if shapes is None:
        return None
    labels, outputs = shapes
    classes = outputs[-1] if outputs else None
    if len(labels) != len(outputs) or labels[-1:] != (1,) or classes is None or classes < 2:
        return None
    for node in user_nodes(situation):
        spot, call = site_spot(node, situation), node.call()
        if spot is None or call is None or node.site is None:
            continue
        assign = spot.source.parent(call)
        target = assign.targets[0] if isinstance(assign, ast.Assign) and assign.value is call else None
        names = [dotted(one) for one in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]) if one]
        for said in method_calls(spot.source.tree, "set_shape"):
            name = dotted(said.func).rpartition(".")[0]
            size = said.args[0] if len(said.args) == 1 else None
            last = size.elts[-1] if isinstance(size, (ast.Tuple, ast.List)) and size.elts else None
            within = spot.source.function(said.lineno) is spot.source.function(call.lineno)
            if name not in names or last is None or evaluation.computed(last, spot) != 1 or not within:
                continue
            made = _one_hot(node, names.index(name), len(names))
            if not made:
                continue
            cause = (
                f"{node.called} returns one-hot labels, `{made}`, and set_shape says that {name} has one number "
                f"there: the loss gets labels of {sizes_of(labels)} beside predictions of {sizes_of(outputs)}."
            )
            edit = edit_of(node.site[0], spot.source.replaced({last: str(classes)}))
            return Explanation(RULE, node.site[0], said.lineno, cause, edit, "", "likely")
    return None


def _one_hot(node: Node, place: int, count: int) -> str:
    """What makes a body's result one-hot; "" where the source does not say that anything does."""
    function = node.function()
    if function is None or node.file is None or isinstance(function, ast.Lambda):
        return ""
    source = read(node.file)
    found = []
    for value in return_values(function):
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
        if len(parts) != count:
            return ""
        found.append(next(_makers(source, function, parts[place], 0), ""))
    return found[0] if found and all(found) else ""


def _makers(source: Source, function: ast.AST, value: ast.expr, deep: int) -> Iterator[str]:
    """The expressions by which a value is one-hot: its own, that of its name, or of the function that it calls."""
    if deep > _DEEP:
        return
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "astype":
        value = value.func.value
    call = value.value if isinstance(value, ast.Subscript) else value
    name = dotted(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""
    if name in (_OF_ROWS if isinstance(value, ast.Subscript) else _OF_LABELS):
        yield source.text(value)
        return
    if isinstance(value, ast.Name):
        made = [
            one.value for one in ast.walk(function) if isinstance(one, ast.Assign)
            and [dotted(target) for target in one.targets] == [value.id]
        ]  # fmt: skip
        if made:
            yield from _makers(source, function, made[-1], deep + 1)
    elif isinstance(value, ast.Call):
        called = [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
        for returned in return_values(called[0]) if len(called) == 1 else ():
            yield from _makers(source, called[0], returned, deep + 1)
