"""A node without Tout or called as if it were its body, and a body that returns a variable."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import Guess
from pyfunc_debug.doctor.failures.reading.nodes import argument, failed_node, py_call, return_value
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, parameters, read, short
from pyfunc_debug.doctor.failures.reading.symbols import Described, alias, calls, dtype_of, lookup, shape_of

RULE = "structure"
_NO_TOUT = "Missing required argument: 'Tout'"
_CALLED = re.compile(r"(?:EagerTensor|SymbolicTensor|Tensor)'? object is not callable")
_VARIABLE = "Attempting to return a variable from an eagerly executed py_func"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a node lacks its Tout, or its body returns a variable."""
    if _VARIABLE in f"{situation.message}\n{situation.error}":
        return _variable(situation)
    spot = situation.last
    if spot is None:
        return None
    if _CALLED.search(situation.message) is not None:
        return _called(situation)
    call = py_call(spot.source, spot.line) if not situation.body else None
    if call is not None and _NO_TOUT in situation.message and argument(call, 2, "Tout") is None:
        return _without_tout(spot, call)
    return None


def _called(situation: Situation) -> Explanation | None:
    """`f = tf.py_function(g, inp=[x], Tout=t)`, and then `f(x)`: the result of one call cannot be called."""
    for spot in reversed(situation.spots):
        statement = spot.source.statement(spot.line)
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


def _without_tout(spot: Spot, call: ast.Call) -> Explanation:
    """`tf.py_function(f, [x])`: the dtype that the body returns, as far as its text says."""
    given, inp = argument(call, 0, "func"), argument(call, 1, "inp")
    body, tf = (short(spot.source.text(given), 30) if given is not None else "the body"), alias(spot, "tensorflow")
    function = _function(given, spot)
    dtypes: list[str | None] = []
    if function is not None and isinstance(inp, (ast.List, ast.Tuple)):
        values = [lookup(one, spot) for one in inp.elts]
        known = {
            name: Described(dtype_of(value), shape_of(value))
            for name, value in zip(parameters(function), values) if dtype_of(value)
        }  # fmt: skip
        dtypes, _ = Guess(Spot(spot.file, function.lineno, known, spot.module, "")).returned(function)
    cause = (
        f"Tout is missing: at trace {body} has not run, and TensorFlow must know which dtype it will return. "
        f"{dotted(call.func) or 'py_function'} takes it as its third argument."
    )
    found = [one for one in dtypes if one is not None]
    if not found or len(found) != len(dtypes):
        return Explanation(RULE, spot.file, call.lineno, cause, None, f"Add Tout={tf}.float32, or what {body} returns.")
    tout = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
    edit = edit_of(spot.file, spot.source.replaced({call: spot.source.with_argument(call, f"Tout={tout}")}))
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else f"Add Tout={tout}.", "likely")


def _function(given: ast.expr | None, spot: Spot) -> Function | None:
    if isinstance(given, ast.Lambda):
        return given
    found = [
        one for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.FunctionDef) and given is not None and one.name == dotted(given).rpartition(".")[2]
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


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
