"""A variable that a graph asks for its value, `w.numpy()`, `np.clip(w, -1, 1)`, `step(w)`: only ops read it there."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.ops.rewrites import as_ops
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.pastes.traced_text import RULE, runs, when
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_keras_variable, is_tf_variable, lookup
from pyfunc_debug.doctor.failures.reading.value_uses import needs_values

_NO_TRUTH = "A Keras Variable cannot be used as a boolean"
_SAID = "numpy() is only available when eager execution is enabled"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line of a graph asked a variable for its value, or gave a weight to what asks for it."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or _SAID not in situation.message:
        return None
    return _given(spot, statement) or _asked(situation, spot, statement)


def of_truth(situation: Situation) -> Explanation | None:
    """The explanation, if `if self.bias:` asked a weight of Keras' whether there is one."""
    spot = situation.last
    statement = situation.statement if _NO_TRUTH in situation.message else None
    test = getattr(statement, "test", None)
    if spot is None or not isinstance(test, ast.expr):
        return None
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    pieces: dict[ast.expr, str] = {}
    for one in parts:
        asked = one.operand if isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.Not) else one
        if dotted(asked) and is_keras_variable(lookup(asked, spot)):
            pieces[one] = f"{dotted(asked)} is {'None' if asked is not one else 'not None'}"
    found = spot.source.replaced(pieces) if pieces else None
    if found is None:
        return None
    cause = (
        f"`{short(spot.source.text(test), 40)}` asks a weight of Keras' whether it is true, which it does not tell. "
        "Whether there is one is asked with `is not None`."
    )
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, found[0], found[1], (found[2],)))


def _given(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """A weight of Keras' as an argument of the failing line's tf.function, which takes it for NumPy's."""
    for call in calls(statement):
        weights = [one for one in call.args if is_keras_variable(lookup(one, spot))]
        if not weights or not _is_compiled(call, spot.source.tree):
            continue
        tf, texts = alias(spot, "tensorflow"), [spot.source.text(one) for one in weights]
        pieces: dict[ast.expr, str] = {one: f"{tf}.convert_to_tensor({text})" for one, text in zip(weights, texts)}
        found = spot.source.replaced(pieces)
        cause = (
            f"{', '.join(texts)} is a weight of Keras', and {dotted(call.func)} a tf.function: it takes what is no "
            "tensor for NumPy, and asks for a value while the graph is built. As a tensor the graph reads it each time."
        )
        edit = edit_of(spot.file, found)
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Give it {pieces[weights[0]]}.")
    return None


def _is_compiled(call: ast.Call, tree: ast.AST) -> bool:
    """Whether a function of this name is decorated with tf.function."""
    name = dotted(call.func).rpartition(".")[2]
    made = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    decorators = [part for one in made for part in one.decorator_list]
    return any(dotted(one.func if isinstance(one, ast.Call) else one).endswith("tf.function") for one in decorators)


def _asked(situation: Situation, spot: Spot, statement: ast.stmt) -> Explanation | None:
    """A variable that the line itself asks, where ops do what it is asked for."""
    value = wrapping.value_here(spot, statement)
    held = _variables(value, spot) if value is not None else []
    if value is None or not held or not wrapping.entry(situation)[1]:
        return None
    edit = _in_ops(spot, statement, value, held)
    code = short(spot.source.text(statement).split("\n")[0], 44)
    cause = (
        f"`{code}` asked {held[0]} for its value {when(situation)}: a variable has one only when the graph runs, and "
        f"NumPy cannot read it there. {runs(situation)}"
    )
    return None if edit is None else Explanation(RULE, spot.file, spot.line, cause, edit)


def _variables(node: ast.expr, spot: Spot) -> list[str]:
    """What an expression names of variables: names, and what stands before `.numpy()` without its indices."""
    found = [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and _is_variable(spot.value(one.id))]
    for call in calls(node):
        owner = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "numpy" else None
        while isinstance(owner, ast.Subscript):
            owner = owner.value
        listed = lookup(owner, spot) if isinstance(owner, ast.Name) else None
        of_list = isinstance(listed, (list, tuple)) and any(map(_is_variable, listed))
        if owner is not None and dotted(owner) and (of_list or not isinstance(owner, ast.Name)):
            found.append(dotted(owner))
    found += [
        dotted(one) for one in ast.walk(node) if isinstance(one, ast.Attribute) and _is_variable(lookup(one, spot))
    ]
    return list(dict.fromkeys(found))


def _is_variable(value: object) -> bool:
    return is_tf_variable(value) or is_keras_variable(value)


def _in_ops(spot: Spot, statement: ast.stmt, value: ast.expr, held: list[str]) -> Edit | None:
    """The expression as ops; None where the function goes on with values of what it gives."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    kept = [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
    function = spot.function
    if function is None or needs_values(spot.source, function, spot.line + 1, spot, [*kept, *held]):
        return None
    text = as_ops(value, spot, also=tuple(held))
    return None if text is None else wrapping.replace_expression(spot, value, text)
