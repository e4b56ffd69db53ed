"""Text in `inp` for a library's function: `tf.numpy_function(np.pad, [x, 1, "edge"], tf.float32)`.

It becomes a tensor on the way, and arrives as bytes, as an eager tensor, or as an array of one text. The function is
none that the user would change: a lambda hands it Python's own text.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.nodes import (
    Node,
    argument,
    as_written,
    failed_gradient,
    failed_node,
    site_spot,
)
from pyfunc_debug.doctor.failures.reading.situation import Situation, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, names, short
from pyfunc_debug.doctor.failures.reading.symbols import bytes_of, is_ndarray
from pyfunc_debug.program.frames import is_installed, is_user

_TENSORFLOW = re.compile(r"[/\\]tensorflow[/\\]")
_MADE = ("constant", "convert_to_tensor")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a library's function failed as a body in code that had such a text in its hands."""
    node = failed_node(situation)
    call = node.call() if node is not None and (node.file is None or is_installed(node.file)) else None
    body, inp = (argument(call, 0, "func"), argument(call, 1, "inp")) if call is not None else (None, None)
    if node is None or node.site is None or failed_gradient(situation) is not None:
        return None
    if not isinstance(body, (ast.Name, ast.Attribute)) or not isinstance(inp, (ast.List, ast.Tuple)):
        return None
    held = _held(situation)
    texts = {one: text for one in inp.elts if (text := _text(one, node, situation)) is not None}
    seen = [one for one, text in texts.items() if text in held]
    if not seen or any(isinstance(one, ast.Starred) for one in inp.elts):
        return None
    source = node.source
    taken, given = _handed(node, body, inp, [*texts])
    new = f"lambda {', '.join(taken)}: {source.text(body)}({', '.join(given)})"
    new = new.replace("lambda :", "lambda:")
    left = [source.text(one) for one in inp.elts if one not in texts and not isinstance(one, ast.Constant)]
    edit = edit_of(node.site[0], source.replaced({body: new, inp: f"[{', '.join(left)}]"}))
    name, shown = short(source.text(body), 40), short(source.text(seen[0]), 30)
    arrives = held[texts[seen[0]]]
    cause = (
        f"{shown} in inp becomes a tensor, and {name} gets it as {arrives}, where its code takes text. "
        "A lambda hands it over as it is."
    )
    advice = "" if edit else f"Leave it out of inp, and give it to {name} in a lambda."
    return Explanation(RULE, *node.site, cause, edit, advice, "likely")


def _handed(
    node: Node, body: ast.expr, inp: ast.List | ast.Tuple, texts: list[ast.expr]
) -> tuple[list[str], list[str]]:
    """Names for what still comes by inp, and the arguments of the function: texts and constants as they are written."""
    source = node.source
    taken: list[str] = []
    given: list[str] = []
    inside = {name for one in texts for name in names(one)} | set(names(body))
    for place, one in enumerate(inp.elts):
        if one in texts or isinstance(one, ast.Constant):
            text = one.args[0] if isinstance(one, ast.Call) else one
            given.append(source.text(text))
            continue
        own = one.id if isinstance(one, ast.Name) and one.id not in (*taken, *inside) else f"value_{place}"
        taken.append(own)
        given.append(own)
    return taken, given


def _text(one: ast.expr, node: Node, situation: Situation) -> str | None:
    """The text of Python's that an element of inp is; None where it is none, or is not known."""
    if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] in _MADE and len(one.args) == 1:
        one = one.args[0] if isinstance(one.args[0], ast.Constant) else one
    spot = site_spot(node, situation)
    if isinstance(one, ast.Name) and node.site is not None:
        running = [each for each in situation.spots if (each.file, each.line) == node.site and one.id in each.variables]
        if running:
            value = running[-1].value(one.id)
            return value if isinstance(value, str) else None
        function = spot.function if spot is not None else None
        made = assignments(function).get(one.id) if function is not None else None
        one = made if isinstance(made, ast.Constant) else one
    value = as_written(one, spot) if spot is not None and isinstance(one, (ast.Constant, ast.Name)) else None
    return value if isinstance(value, str) else None


def _held(situation: Situation) -> dict[str, str]:
    """The texts that the library's innermost code had as it failed, and what each was there."""
    for frame in reversed(frames(situation.inner.__traceback__)):
        file = frame.f_code.co_filename
        if _TENSORFLOW.search(file):
            continue
        if is_user(file) and not is_installed(file):
            return {}
        found = (_arrived(value) for value in frame.f_locals.values())
        return {one[0]: one[1] for one in found if one is not None}
    return {}


def _arrived(value: Any) -> tuple[str, str] | None:
    """The text that came as a value, and how."""
    if is_ndarray(value):
        own = value.item() if value.ndim == 0 else None
        return (own, "a NumPy array that holds it") if isinstance(own, str) else None
    content = bytes_of(value)
    if content is None:
        return None
    text = content.decode(errors="replace")
    return text, f"bytes, {short(repr(content), 30)}" if isinstance(value, bytes) else "an eager tensor"
