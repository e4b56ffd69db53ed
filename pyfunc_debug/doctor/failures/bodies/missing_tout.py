"""A node without Tout, called or above a function, and `inp` above a function."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pyfunc_debug.doctor.code import all_nodes
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import Guess
from pyfunc_debug.doctor.failures.reading.nodes import NODE_CALLS, argument, py_call, return_values
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import Described, alias, dtype_of, lookup, shape_of

RULE = "structure"
_NO_TOUT = "Missing required argument: 'Tout'"
_INP = "Don't set the `inp` argument"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if TensorFlow lacks the dtypes that a node's body returns."""
    spot, said = situation.last, situation.message
    if spot is None or situation.body or situation.kind not in ("TypeError", "ValueError"):
        return None
    if said.startswith((_NO_TOUT, _INP)) and (found := _above(spot, said.startswith(_INP))) is not None:
        return found
    call = py_call(spot.source, spot.line)
    tout = argument(call, 2, "Tout") if call is not None else None
    left_out = tout is None or (isinstance(tout, ast.Constant) and tout.value is None)
    return _called(spot, call, tout) if call is not None and _NO_TOUT in said and left_out else None


def _above(spot: Spot, inp: bool) -> Explanation | None:
    """`@tf.numpy_function(tf.float32)`, `@tf.numpy_function` and `@tf.numpy_function(inp=[...], Tout=...)`."""
    source = spot.source
    above = [
        (function, one) for function in all_nodes(source.tree)
        if isinstance(function, ast.FunctionDef) for one in function.decorator_list
        if one.lineno <= spot.line <= (one.end_lineno or one.lineno)
        and dotted(one.func if isinstance(one, ast.Call) else one).rpartition(".")[2] in NODE_CALLS
    ]  # fmt: skip
    if len(above) != 1:
        return None
    function, made = above[0]
    call = made if isinstance(made, ast.Call) else ast.Call(made, [], [])
    maker, op = source.text(call.func), dotted(call.func).rpartition(".")[2]
    kept = [f"{one.arg}={source.text(one.value)}" for one in call.keywords if one.arg not in ("inp", "func", "Tout")]
    if inp:
        tout = argument(call, 2, "Tout")
        cause = f"above a function {op} takes no inp: the arguments of each call of {function.name} are its inputs."
        text = source.text(tout) if tout is not None else ""
    else:
        given = call.args[0] if len(call.args) == 1 else None
        cause = (
            f"the first argument of {op} is the function, and above {function.name} there is none to give: Tout needs "
            "its name there." if given is not None else
            f"{op} above {function.name} lacks Tout: the graph has to know the dtypes of what {function.name} returns "
            "before it runs."
        )  # fmt: skip
        text = source.text(given) if given is not None else _guessed(spot, function, {})
    edit = edit_of(
        spot.file, source.replaced({made: f"{maker}({', '.join([f'Tout={text}', *kept])})"}) if text else None
    )
    advice = f"Say them: @{maker}(Tout=...), with a dtype for each value that {function.name} returns."
    return Explanation(RULE, spot.file, made.lineno, cause, edit, "" if edit is not None else advice)


def _called(spot: Spot, call: ast.Call, none: ast.expr | None) -> Explanation:
    """`tf.py_function(f, [x])`, or with `Tout=None`."""
    given, tout = argument(call, 0, "func"), guessed(spot, call)
    body, tf = (short(spot.source.text(given), 30) if given is not None else "the body"), alias(spot, "tensorflow")
    function = definition(given, spot)
    cause = (
        f"Tout is missing: at trace {body} has not run, and TensorFlow must know which dtype it will return. "
        f"{dotted(call.func) or 'py_function'} takes it as its third argument."
    )
    if isinstance(function, ast.FunctionDef) and not return_values(function):
        tout = "[]"
        cause = f"Tout is missing, the dtypes of what {body} returns: it returns nothing, and an empty list says so."
    if not tout:
        return Explanation(RULE, spot.file, call.lineno, cause, None, f"Add Tout={tf}.float32, or what {body} returns.")
    new: dict[ast.expr, str] = (
        {none: tout} if none is not None else {call: spot.source.with_argument(call, f"Tout={tout}")}
    )
    edit = edit_of(spot.file, spot.source.replaced(new))
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else f"Add Tout={tout}.", "likely")


def guessed(spot: Spot, call: ast.Call) -> str:
    """The dtypes that the body of a call returns, by its source and its inputs; empty where it does not say."""
    given, inp = argument(call, 0, "func"), argument(call, 1, "inp")
    function = definition(given, spot)
    if function is None or not isinstance(inp, (ast.List, ast.Tuple)):
        return ""
    values = [lookup(one, spot) for one in inp.elts]
    known = {
        name: Described(dtype_of(value), shape_of(value))
        for name, value in zip(parameters(function), values) if dtype_of(value)
    }  # fmt: skip
    return _guessed(spot, function, known)


def _guessed(spot: Spot, function: Function, known: Mapping[str, object]) -> str:
    """The dtypes that a body returns, as its source says; empty where it does not.

    Args:
      spot: Where the program failed.
      function: The body.
      known: What is known of its parameters, by name.
    """
    dtypes, many = Guess(Spot(spot.file, function.lineno, known, spot.module, "")).returned(function)
    found = [one for one in dtypes if one is not None]
    if not found or len(found) != len(dtypes):
        return ""
    return f"[{', '.join(found)}]" if many else found[0]


def definition(given: ast.expr | None, spot: Spot) -> Function | None:
    """A body's lambda, or the one function of its name in the file."""
    if isinstance(given, ast.Lambda):
        return given
    found = [
        one for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.FunctionDef) and given is not None and one.name == dotted(given).rpartition(".")[2]
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None
