"""A gradient through a py_function that is given whole numbers, truth values or text beside floats.

Its gradient op has an output for each input. For an input without a gradient TensorFlow makes a zero of the input's
dtype, from 0.0, which fails for all that are not floats: the body itself ran well.
"""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import (
    Node,
    argument,
    failed_gradient,
    inputs_of,
    parameters,
    site_spot,
    user_nodes,
)
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import names
from pyfunc_debug.doctor.failures.reading.symbols import alias
from pyfunc_debug.interception.names.private import converting, in_gradient_of_body

RULE = "none-gradient"
_ZERO = re.compile(r"Cannot convert 0\.0 to EagerTensor of dtype (\w+)")
_NOTHING = re.compile(r"Attempt to convert a value \(None\)")
_FLOATS = ("float", "bfloat", "half", "double", "complex")
_MOST = 6


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such a zero is why the program failed."""
    found = _ZERO.search(f"{situation.message}\n{situation.error}")
    node = failed_gradient(situation) if found is not None else None
    if node is None or found is None or node.site is None or found[1].startswith(_FLOATS):
        return None
    if not converting(situation.inner.__traceback__):
        return None  # a gradient function of the user's own raised it
    given = list(inputs_of(node, situation).items())
    odd = [(path, one.dtype) for path, one in given if not one.dtype.startswith(_FLOATS)]
    if not odd:
        return None
    several = len(odd) > 1
    shown = " and ".join(f"{path} ({dtype})" for path, dtype in odd[:3])
    cause = (
        f"{node.opening} ran well, and its gradient failed: TensorFlow makes a 0.0 there for each input without a "
        f"gradient, of that input's dtype, and {shown} {'take' if several else 'takes'} no 0.0."
    )
    edit = _edit(node, situation, [one.dtype for _, one in given])
    text = any(dtype == "string" for _, dtype in odd)
    if edit is not None:
        large = any(dtype.endswith("int64") for _, dtype in odd)
        exact = " float64 holds whole numbers up to 2**53." if large else ""
        cause += f" As floats on the way, {'they do' if several else 'it does'}.{exact}" if not text else ""
        return Explanation(RULE, *node.site, cause, edit)
    advice = (
        f"Give {node.called} floats only: tf.cast before it, and back in it."
        if not text
        else f"Give {node.called} floats only: what the text says, as a number that is made before it."
    )
    return Explanation(RULE, *node.site, cause, None, advice)


def of_text(situation: Situation) -> Explanation | None:
    """The explanation, if a py_function that also gives text stands in the way of a gradient: text has none at all."""
    said = situation.kind == "ValueError" and _NOTHING.search(situation.message) is not None
    if not said or not in_gradient_of_body(situation.inner.__traceback__):
        return None
    found = [one for one in user_nodes(situation) if one.kind == "py_function" and "string" in one.tout]
    node = found[0] if len({one.site for one in found}) == 1 else None
    if node is None or node.site is None:
        return None
    place = node.tout.index("string")
    cause = (
        f"{node.opening} ran well, and its gradient failed: it gives text as value {place + 1} (string) beside floats, "
        "and TensorFlow has no gradient of text to hand on to it, not even a zero."
    )
    return Explanation(RULE, *node.site, cause, None, "Give the text by a py_function of its own.")


def _edit(node: Node, situation: Situation, dtypes: list[str]) -> Edit | None:
    """The call with floats in its inp, and a lambda that gives the body what it takes."""
    call, spot = node.call(), site_spot(node, situation)
    body, inp = (argument(call, 0, "func"), argument(call, 1, "inp")) if call is not None else (None, None)
    if body is None or spot is None or node.site is None or not isinstance(inp, (ast.List, ast.Tuple)):
        return None
    if len(inp.elts) != len(dtypes) or len(dtypes) > _MOST or any(isinstance(one, ast.Starred) for one in inp.elts):
        return None
    source, tf = node.source, alias(spot, "tensorflow")
    taken, inside, outside = [], [], []
    for name, one, dtype in zip(_names(node, spot, body, len(dtypes)), inp.elts, dtypes):
        text = source.text(one)
        if not dtype.startswith(_FLOATS) and isinstance(one, ast.Constant):
            inside.append(f"{tf}.constant({text})")
            continue
        if dtype == "string":
            return None
        cast = not dtype.startswith(_FLOATS)
        taken.append(name)
        inside.append(f"{tf}.cast({name}, {tf}.{dtype})" if cast else name)
        outside.append(f"{tf}.cast({text}, {tf}.float64)" if cast else text)
    if not taken:
        return None
    called = source.text(body) if isinstance(body, (ast.Name, ast.Attribute)) else f"({source.text(body)})"
    pieces: dict[ast.expr, str] = {
        body: f"lambda {', '.join(taken)}: {called}({', '.join(inside)})",
        inp: f"[{', '.join(outside)}]",
    }
    return edit_of(node.site[0], source.replaced(pieces))


def _names(node: Node, spot: Spot, body: ast.expr, count: int) -> list[str]:
    """Names for the lambda's parameters: those of the body, where they hide nothing that it reads."""
    function = node.function()
    own = [one for one in parameters(function) if one not in ("self", "cls")] if function is not None else []
    hidden = {*names(body), alias(spot, "tensorflow")}
    fits = len(own) == count and not hidden & set(own) and not isinstance(body, ast.Lambda)
    return own if fits else [f"value_{place}" for place in range(count)]
