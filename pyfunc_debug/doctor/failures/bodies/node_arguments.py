"""A node that is called as if it were its body, and a body that returns a variable."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument, failed_node, return_value
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, read, short
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "structure"
_CALLED = re.compile(r"(?:EagerTensor|SymbolicTensor|Tensor)'? object is not callable")
_VARIABLE = "Attempting to return a variable from an eagerly executed py_func"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the result of a node is called, or its body returns a variable."""
    if _VARIABLE in f"{situation.message}\n{situation.error}":
        return _variable(situation)
    return _called(situation) if _CALLED.search(situation.message) is not None else None


def _called(situation: Situation) -> Explanation | None:
    """`f = tf.py_function(g, inp=[x], Tout=t)`, and then `f(x)`: the result of one call cannot be called."""
    for spot in reversed(situation.spots):
        statement = spot.statement
        called = {dotted(one.func) for one in calls(statement)} if statement is not None else set()
        made = [
            one for one in ast.walk(spot.source.tree)
            if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
            and dotted(one.value.func).rpartition(".")[2] in ("py_function", "numpy_function")
            and [ast.unparse(target) for target in one.targets] in [[name] for name in called]
        ]  # fmt: skip
        call = made[0].value if len(made) == 1 else None
        if not isinstance(call, ast.Call):
            continue
        func, tout, text = argument(call, 0, "func"), argument(call, 2, "Tout"), spot.source.text
        if func is None or tout is None:
            continue
        name = ast.unparse(made[0].targets[0])
        op = text(call.func)
        cause = (
            f"{op} ran {short(text(func), 30)} in line {call.lineno}, and gave its result: {name} is a tensor. Given "
        )
        cause += "Tout alone, it makes a function of it, which can be called."
        edit = edit_of(spot.file, spot.source.replaced({call: f"{op}(Tout={text(tout)})({text(func)})"}))
        return Explanation(RULE, spot.file, spot.line, cause, edit)
    return None


def _variable(situation: Situation) -> Explanation | None:
    """A body that returns a `tf.Variable`."""
    node = failed_node(situation)
    function = node.function() if node is not None else None
    value = return_value(function) if function is not None else None
    if node is None or node.file is None or not isinstance(value, (ast.Name, ast.Attribute)):
        return None
    source = read(node.file)
    text = source.text(value)
    cause = f"{node.called} returns {text}, a variable: a node gives the value that it has now, a tensor."
    edit = edit_of(node.file, source.replaced({value: f"{text}.read_value()"}))
    return Explanation(RULE, node.file, value.lineno, cause, edit, "" if edit else f"Return {text}.read_value().")
