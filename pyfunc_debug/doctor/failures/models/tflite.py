"""A model with a py_function for TensorFlow Lite, which has no Python: the converter fails, or the interpreter."""

from __future__ import annotations

import re

from pyfunc_debug.doctor.bodies.replacement import obstacles
from pyfunc_debug.doctor.failures.models.behind_nodes import behind
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.pastes.plain_call import plain_call
from pyfunc_debug.doctor.failures.reading.nodes import Node, argument, user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import short

RULE = "serialization"
_OP = r"(?:EagerPyFunc|PyFuncStateless|PyFunc)\b"
_SAID = re.compile(rf"unresolved custom op: {_OP}|\"?tf\.{_OP}")
_TOKEN = re.compile(r"token = \"(pyfunc_\d+)\+?\"")
_ROOM = 44


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if TensorFlow Lite met a node."""
    text = situation.text
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
    edit = plain_call(situation, node)
    return Explanation(RULE, *node.site, cause, edit, "" if edit is not None else _outside(node, text))


def _outside(node: Node, text: str) -> str:
    """What to do with a body that stays Python: it works on what the interpreter gives."""
    call, function = node.call(), node.function()
    inp = argument(call, 1, "inp") if call is not None else None
    given = short(node.source.text(inp), _ROOM) if inp is not None else "its inputs"
    found = obstacles(node.file, function) if node.file is not None and function is not None else []
    python = f" (line {found[0].line}, {short(found[0].text, 20)}, is Python)" if found else ""
    rest = behind(node, text)
    if rest.follows:
        where = _listed(sorted(rest.lines)) if rest.lines else ""
        return (
            f"Write it with TensorFlow's ops{python}; or make two models, as what follows{where} needs its result: the "
            f"first returns {given}, {node.called} is called on that, and the second is given what it returns."
        )
    first = "Let the model return" if rest.follows is False else "If nothing in the model follows it, let that return"
    return (
        f"{first} {given} in place of the {node.kind}, and call {node.called} on what the interpreter "
        f"gives; or write it with TensorFlow's ops{python}."
    )


def _listed(lines: list[int]) -> str:
    """` (line 27)`, or ` (lines 27 to 31)`."""
    return f" (line {lines[0]})" if len(lines) == 1 else f" (lines {lines[0]} to {lines[-1]})"
