"""A model with a py_function for TensorFlow Lite, which has no Python: the converter fails, or the interpreter."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.body_in_ops import as_edit, body_in_ops
from pyfunc_debug.doctor.failures.explanation import Edit, Explanation, applied, together
from pyfunc_debug.doctor.failures.nodes import Node, argument, body_spot, traced_inputs, user_nodes
from pyfunc_debug.doctor.failures.situation import Situation
from pyfunc_debug.doctor.failures.source import parameters, parsed, read, short
from pyfunc_debug.doctor.failures.symbols import Described
from pyfunc_debug.doctor.replacement import direct_call, obstacles

RULE = "serialization"
_OP = r"(?:EagerPyFunc|PyFuncStateless|PyFunc)\b"
_SAID = re.compile(rf"unresolved custom op: {_OP}|\"?tf\.{_OP}")
_TOKEN = re.compile(r"token = \"(pyfunc_\d+)\"")
_ROOM = 44
_MOST = 12
"""Lines of a paste, the user's own between them included."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if TensorFlow Lite met a node."""
    text = str(situation.error)
    if not _SAID.search(text) or not ("custom op" in text or "Custom ops" in text):
        return None
    named = set(_TOKEN.findall(text))
    nodes = [node for node in user_nodes(situation) if node.site is not None and node.call() is not None]
    nodes = [node for node in nodes if node.token in named] or nodes
    if not nodes or nodes[0].site is None:
        return None
    node = nodes[0]
    assert node.site is not None
    cause = (
        f"TensorFlow Lite runs ops only, no Python: {node.called} is in a {node.kind}, for which it has none. "
        "allow_custom_ops=True lets the converter pass, and the interpreter fails in its place."
    )
    edit = _in_ops(situation, node)
    return Explanation(RULE, *node.site, cause, edit, "" if edit is not None else _outside(node))


def _in_ops(situation: Situation, node: Node) -> Edit | None:
    """The body in TensorFlow's ops, and a plain call of it."""
    function = node.function()
    call = direct_call(node.site) if node.site is not None else None
    if function is None or call is None or node.file is None or node.site is None or node.file != node.site[0]:
        return None
    if not obstacles(node.file, function):
        return call
    kinds = (dtype for dtype, _ in traced_inputs(node, situation))
    given = {name: Described(dtype, None) for name, dtype in zip(parameters(function), kinds)}
    spot = body_spot(node, situation, given)
    pieces = body_in_ops(function, spot) if spot is not None and given else None
    source = read(node.file)
    body = as_edit(node.file, source, pieces or {})
    if body is None or (body.first <= call.last and call.first <= body.last):
        return None
    edit = together([body, call], source.lines)
    after = parsed("\n".join(applied([body], source.lines)))
    new = next(
        (one for one in ast.walk(after.tree) if isinstance(one, ast.FunctionDef) and one.lineno == node.line), None
    )
    whole = new is not None and not obstacles(node.file, new, source=after)
    return edit if whole and len(edit.lines) <= _MOST else None


def _outside(node: Node) -> str:
    """What to do with a body that stays Python: it works on what the interpreter gives."""
    call, function = node.call(), node.function()
    inp = argument(call, 1, "inp") if call is not None else None
    given = short(node.source.text(inp), _ROOM) if inp is not None else "its inputs"
    found = obstacles(node.file, function) if node.file is not None and function is not None else []
    python = f" (line {found[0].line}, {short(found[0].text, 20)}, is Python)" if found else ""
    return (
        f"Let the model return {given} in place of the {node.kind}, and call {node.called} on what the interpreter "
        f"gives; or write it with TensorFlow's ops{python}."
    )
