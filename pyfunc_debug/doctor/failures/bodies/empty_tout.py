"""`Tout=[]` where the program goes on with the result: then a node has no outputs, and its call gives no tensor."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import Guess
from pyfunc_debug.doctor.failures.reading.nodes import Node, argument, failed_node, inputs_of, return_values, user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import Function, parameters, read, short
from pyfunc_debug.doctor.failures.reading.symbols import Described, alias, dtype_of, lookup, shape_of
from pyfunc_debug.interception.tokens import token_of

RULE = "output-contract"
_SAID = re.compile(
    r"\bOperation\b|Unsupported return value from function passed to Dataset\.\w+\(\): name: \"(?:Eager)?PyFunc"
)
_OPS = ("PyFunc", "EagerPyFunc", "PyFuncStateless")
_EAGER = "list index out of range"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line needs what a node without dtypes does not give."""
    if situation.body:
        return _eager(situation)
    if situation.kind not in ("TypeError", "AttributeError", "ValueError") or not _SAID.search(situation.message):
        return None
    op = next(iter(_ops(situation)), None)
    last = situation.last
    for node in (*user_nodes(situation), *user_nodes(situation, scratch=True)):
        here = last is not None and node.site is not None and node.site == (last.file, last.line)
        if not node.tout and (node.token == token_of(op) if op is not None else here):
            return _explained(situation, node, op)
    return None


def _eager(situation: Situation) -> Explanation | None:
    """An eager py_function with `Tout=[]`: TensorFlow looks up the dtype of the value that the body returned."""
    node = failed_node(situation) if situation.kind == "IndexError" and situation.message == _EAGER else None
    innermost = frames(situation.inner.__traceback__)[-1:]
    raised_there = any(frame.f_code.co_filename.endswith("script_ops.py") for frame in innermost)
    return _explained(situation, node, None) if node is not None and not node.tout and raised_there else None


def _ops(situation: Situation) -> list[Any]:
    """The nodes that variables and the frames of the failure hold in the place of a tensor."""
    values = [value for spot in reversed(situation.spots) for value in spot.variables.values()]
    values += [
        value for error in (situation.inner, situation.error) for frame in frames(error.__traceback__)[::-1]
        for value in list(frame.f_locals.values())
    ]  # fmt: skip
    return [one for one in values if type(one).__name__ == "Operation" and getattr(one, "type", "") in _OPS]


def _explained(situation: Situation, node: Node, op: Any) -> Explanation | None:
    call, function = node.call(), node.function()
    if call is None or function is None or node.site is None or node.file is None:
        return None
    tout = argument(call, 2, "Tout")
    if not isinstance(tout, (ast.List, ast.Tuple)) or tout.elts:
        return None
    spot = next((one for one in reversed(situation.spots) if one.file == node.site[0]), None)
    if spot is None:
        return None
    tf, source = alias(spot, "tensorflow"), read(node.site[0])
    if isinstance(function, ast.FunctionDef) and not return_values(function):
        cause = f"{node.called} returns nothing, and Tout=[] says so: its call gives no tensor, and one is used."
        advice = f"Let {node.called} return what is needed, and give Tout its dtype, as in Tout={tf}.float32."
        return Explanation(RULE, *node.site, cause, None, advice)
    inputs = {**inputs_of(node, situation), **_inputs(call, function, op, spot)}
    dtypes, many = Guess(Spot(node.file, function.lineno, inputs, spot.module, "")).returned(function)
    fails = "it returned a value" if situation.body else "its call gives no tensor, and one is used"
    cause = (
        f"Tout=[] declares that {node.called} returns nothing: {fails}. Tout needs a dtype for each value that "
        f"{node.called} returns."
    )
    if not dtypes or None in dtypes:
        advice = f"Give it what {node.called} returns, as in Tout={tf}.float32."
        return Explanation(RULE, *node.site, cause, None, advice)
    text = f"[{', '.join(map(str, dtypes))}]" if many else str(dtypes[0])
    edit = edit_of(node.site[0], source.replaced({tout: text}))
    advice = "" if edit is not None else f"Give it {short(text, 40)}."
    return Explanation(RULE, *node.site, cause, edit, advice, "likely")


def _inputs(call: ast.Call, function: Function, op: Any, spot: Spot) -> dict[str, Any]:
    """The body's parameters with dtype and shape, as the node was given them, or as the names of the line tell."""
    inp = argument(call, 1, "inp")
    values = list(op.inputs) if op is not None else []
    if not values and isinstance(inp, (ast.List, ast.Tuple)):
        values = [lookup(one, spot) for one in inp.elts]
    return {
        name: Described(dtype_of(value), shape_of(value))
        for name, value in zip(parameters(function), values) if dtype_of(value)
    }  # fmt: skip
