"""TensorFlow 1: an optimizer finds no gradient, as a py_func stands between the variables and the loss."""

from __future__ import annotations

import ast
from types import TracebackType
from typing import Any

from pyfunc_debug.doctor.failures.ops import stand_ins
from pyfunc_debug.doctor.failures.ops.smooth import in_steps
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.pastes.plain_call import plain_call
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import Node, argument, user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, names, short
from pyfunc_debug.doctor.failures.reading.symbols import Described, calls, is_symbolic, lookup, ops_before, shape_of
from pyfunc_debug.interception.tokens import token_of

RULE = "cut-gradient"
_SAID = "No gradients provided for any variable"
_PYTHON = ("PyFunc", "PyFuncStateless")
"""Ops without a gradient; EagerPyFunc has one."""
_ASKS = {"compute_gradients": "loss", "gradients": "ys"}
"""What asks for gradients, and its parameter for the loss."""
_VARIABLES = ("VariableV2", "Variable", "VarHandleOp", "ReadVariableOp")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the graph of the loss says so."""
    if situation.body or _SAID not in situation.message:
        return None if situation.body else _none(situation)
    loss = _loss(situation.inner.__traceback__)
    loss = _asked(situation) if loss is None else loss
    nodes = {node.token: node for node in user_nodes(situation)}
    cuts = [
        (node, op) for op in (ops_before([loss]) if loss is not None else ())
        if op.type in _PYTHON and (node := nodes.get(token_of(op))) is not None and _trains(op)
    ]  # fmt: skip
    if not cuts or cuts[0][0].site is None or len({node.site for node, _ in cuts}) != 1:
        return None
    return _explanation(situation, *cuts[0], "the variables and the loss")


def _none(situation: Situation) -> Explanation | None:
    """`grad, = tf.gradients(loss, x)` is None behind a py_func, and the line that failed computes with it."""
    spot = situation.last
    statement = situation.statement if "None" in situation.message else None
    if spot is None or statement is None:
        return None
    if spot.code in ("<listcomp>", "<genexpr>"):
        spot = situation.outer(spot) or spot
    empty = {name for name in names(statement) if name in spot.variables and _has_none(spot.variables[name])}
    for one in own_nodes(spot.function or spot.source.tree):
        made = {part.id for target in one.targets for part in ast.walk(target) if isinstance(part, ast.Name)} if (
            isinstance(one, ast.Assign) and one.lineno < spot.line
        ) else set()  # fmt: skip
        asked = [
            call for call in calls(one) if dotted(call.func).rpartition(".")[2] in _ASKS and call.args
        ] if made & empty else []  # fmt: skip
        target = lookup(asked[0].args[0], spot) if len(asked) == 1 else None
        if target is None or not hasattr(target, "op"):
            continue
        given = asked[0].args[1] if len(asked[0].args) > 1 else None
        sources = _sources(given, spot)
        nodes = {node.token: node for node in user_nodes(situation)}
        for op in ops_before([target]):
            node = nodes.get(token_of(op)) if op.type in _PYTHON else None
            if node is None or node.site is None:
                continue
            before = [*ops_before(op.inputs)]
            of_tensors = bool(sources) and all(any(made is each for each in before) for made in sources)
            if of_tensors or (not sources and _trains(op)):
                text = spot.source.text
                wanted = text(given) if given is not None and of_tensors else "the variables"
                return _explanation(situation, node, op, f"{wanted} and {text(asked[0].args[0])}")
    return None


def _has_none(value: Any) -> bool:
    """Whether a value is None, or a list of gradients, or of pairs with variables, that has one."""
    parts = value if type(value) in (list, tuple) else [value]
    return any(one is None or (type(one) is tuple and any(part is None for part in one)) for one in parts)


def _sources(given: ast.expr | None, spot: Spot) -> list[Any]:
    """The ops of the tensors that gradients are asked for; none where these are variables, or not known."""
    value = lookup(given, spot) if given is not None else None
    listed = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
    values = [lookup(one, spot) for one in listed] or (list(value) if isinstance(value, (list, tuple)) else [value])
    return [one.op for one in values] if values and all(is_symbolic(one) for one in values) else []


def _explanation(situation: Situation, node: Node, op: Any, between: str) -> Explanation:
    assert node.site is not None
    call, function = node.call(), node.function()
    flat = in_steps(function) if function is not None else None
    cause = f"{node.called} runs in a {node.kind}, which has no gradient, and stands between {between}."
    stepped = stand_ins.instead(situation, node, call) if flat is None and call is not None else None
    if stepped is not None:
        return Explanation(RULE, *node.site, f"{cause} {stepped[0]}", stepped[1], stepped[2])
    inputs = [Described(one.dtype.base_dtype.name, shape_of(one)) for one in op.inputs]
    edit = plain_call(situation, node, inputs) if flat is None else None
    if edit is not None:
        return Explanation(RULE, *node.site, f"{cause} TensorFlow's ops have one.", edit)
    if flat is not None and call is not None:
        advice = (
            f"`{short(node.source.text(flat), 30)}` (line {flat.lineno}) moves in steps: it has no gradient in ops, "
            "either. Give the loss something smooth."
        )
        return Explanation(RULE, *node.site, cause, None, advice)
    advice = (
        f"Write {node.called} with TensorFlow's ops, or register a gradient for it: tf.RegisterGradient, and "
        'gradient_override_map({"PyFunc": ...}) around this line.'
    )
    return Explanation(RULE, *node.site, cause, None, advice)


def _loss(traceback: TracebackType | None) -> Any:
    """The tensor that the optimizer was given: TensorFlow's own frame knows it."""
    found = None
    for frame in frames(traceback):
        given = frame.f_locals.get("loss")
        if frame.f_code.co_name in ("minimize", "compute_gradients") and hasattr(given, "op"):
            found = given
    return found


def _asked(situation: Situation) -> Any:
    """The loss of the one line that asks for gradients, before the one that applies them: a file may have several."""
    spot = situation.last
    if spot is None:
        return None
    asked = [
        one for one in calls(spot.source.tree)
        if dotted(one.func).rpartition(".")[2] in _ASKS and (one.args or one.keywords)
    ]  # fmt: skip
    found = [
        value for one in asked
        if (given := argument(one, 0, _ASKS[dotted(one.func).rpartition(".")[2]])) is not None
        and hasattr(value := lookup(given, spot), "op")
    ]  # fmt: skip
    return found[0] if len(found) == len(asked) == 1 else None


def _trains(op: Any) -> bool:
    """Whether what an op is given was computed from variables."""
    return any(one.type in _VARIABLES for one in ops_before(op.inputs))
