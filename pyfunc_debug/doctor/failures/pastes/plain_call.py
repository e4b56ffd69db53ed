"""A node whose body can be TensorFlow's ops, as a plain call: no Python runs, and it has a gradient."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyfunc_debug.doctor.bodies.decorated import Call as Decorated
from pyfunc_debug.doctor.bodies.replacement import direct_call, obstacles
from pyfunc_debug.doctor.failures.ops.body_in_ops import as_edit, body_in_ops
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, applied, together
from pyfunc_debug.doctor.failures.reading.nodes import Node, body_spot, traced_inputs
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import parameters, parsed, read
from pyfunc_debug.doctor.failures.reading.symbols import Described

_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_MOST = 24
"""Lines of a paste, the user's own between them included."""


def plain_call(situation: Situation, node: Node, inputs: Sequence[Described] = ()) -> Edit | None:
    """The lines of a body in TensorFlow's ops, and of a plain call of it in the place of its py_function.

    Args:
      situation: The failure.
      node: The node; its body and its call are in one file.
      inputs: What is known of its inputs; what was recorded at trace where it is empty.

    Returns:
      None where some of the body has no op, or too many lines lie between the two.
    """
    function = node.function()
    if function is not None and any(isinstance(one, _COMPREHENSIONS) for one in ast.walk(function)):
        return None  # what it goes over may be a tensor, which has no elements at trace
    call = direct_call(node.site) if node.site is not None else None
    if function is None or call is None or node.file is None or node.site is None or node.file != node.site[0]:
        return None
    if not obstacles(node.file, function):
        return call
    known = inputs or [Described(dtype, shape) for dtype, shape in traced_inputs(node, situation)]
    given = dict(zip(parameters(function), known))
    spot = body_spot(node, situation, given)
    pieces = body_in_ops(function, spot) if spot is not None and given else None
    source = read(node.file)
    if isinstance(node.call(), Decorated):  # the decorator, above the body's lines, goes
        both = direct_call(node.site, also=pieces) if pieces else None
        after = parsed("\n".join(applied([both], source.lines))) if both is not None else source
        own = [one for one in ast.walk(after.tree) if isinstance(one, ast.FunctionDef) and one.name == node.body]
        return both if len(own) == 1 and not obstacles(node.file, own[0], source=after) else None
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
