"""A gradient that failed on a scalar: TensorFlow's zero for an input of a py_function that has no gradient.

It has the shape [] whatever the input's shape is, so that the gradient of the op before it finds no matrix, and says so
in words of its own, at a line that has nothing to do with it.
"""

from __future__ import annotations

import ast
import re
from types import TracebackType

from pyfunc_debug.doctor.failures.gradients.overrides import override
from pyfunc_debug.doctor.failures.ops import stand_ins
from pyfunc_debug.doctor.failures.ops.body_in_ops import body_in_ops
from pyfunc_debug.doctor.failures.ops.slopes import COST, by_differences
from pyfunc_debug.doctor.failures.ops.smooth import NEAR, in_steps, of_library
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.nodes import Node, body_spot, site_spot, user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, read, short
from pyfunc_debug.program.frames import is_installed

RULE = "none-gradient"
_IN_GRAPH = re.compile(r"node (?:\S*/)?gradient(?:_tape|s(?:_\d+)?)/")
_EAGER = re.compile(r"tensorflow[/\\]python[/\\]eager[/\\](?:backprop|imperative_grad)\.py$")
_SCALAR = re.compile(
    r"\[\]|ndims must be|tensor with 1 values|of size 0\b|got:? 0\b|rank ?\(?-?0\b|at least \dD|must be at least rank"
    r"|with 0 dimension|the requested shape has \d|[Ii]ncompatible shapes|broadcastable"
    r"|number of elements, got"  # as an op on the way has it
)
_LEAVES = re.compile(r"\.numpy\(\)|\bnp\.|\bnumpy\.|\bfloat\(|\.item\(\)|\.tolist\(\)|stop_gradient")
_WIDE = 60
_MOST = 12
"""Lines of a paste for several bodies, the user's own between them included."""
_SIDEWAYS = (
    "SELECT c.node FROM call c JOIN value o ON o.call = c.id AND o.role = 'output' "
    "JOIN value x ON x.call = c.forward AND x.role = 'input' AND o.path = 'd' || x.path "
    "WHERE c.kind = 'gradient' AND o.shape = '[]' AND x.shape <> '[]' AND o.min = 0 AND o.max = 0 "
    "GROUP BY c.node ORDER BY min(c.id)"
)
"""Nodes whose gradient calls gave one 0 for an input of some rank, that of the first call first."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such a zero is why the program failed."""
    if situation.body or situation.kind != "InvalidArgumentError" or not _SCALAR.search(situation.message):
        return None
    if not (_IN_GRAPH.search(situation.message) or _in_backprop(situation.inner.__traceback__)):
        return None
    every = [node for node in user_nodes(situation) if node.file is not None]
    numbers = [int(number) for (number,) in situation.rows(_SIDEWAYS)]
    found = [node for number in numbers for node in every if node.id == number]
    if not found:
        return None
    others = {node.line: node for node in reversed(every) if node.kind == "py_function"}  # the newest of each body
    same = [node for node in others.values() if node.file == found[0].file and node.line != found[0].line]
    return _explanation(situation, found[0], [node for node in same if _values(node) is not None])


def _values(node: Node) -> int | None:
    """The body's first line that asks a tensor for its value: it has no gradient either."""
    function = node.function()
    lines = node.source.code if function is not None else []
    own = range(function.lineno, (function.end_lineno or function.lineno) + 1) if function is not None else ()
    return next((number for number in own if number <= len(lines) and ".numpy()" in lines[number - 1]), None)


def _in_backprop(traceback: TracebackType | None) -> bool:
    while traceback is not None:
        if _EAGER.search(traceback.tb_frame.f_code.co_filename):
            return True
        traceback = traceback.tb_next
    return False


def _explanation(situation: Situation, node: Node, others: list[Node]) -> Explanation | None:
    function, spot = node.function(), body_spot(node, situation)
    if function is None or spot is None or node.file is None:
        return None
    own = _of_another_op(node)
    if own is not None:
        return own
    if is_installed(node.file):
        return _of_library(situation, node)
    last = function.end_lineno or function.lineno
    lines = [(at, spot.source.lines[at - 1].strip()) for at in range(function.lineno, last + 1)]
    line, text = next(((at, one) for at, one in lines if _LEAVES.search(one)), (function.lineno, ""))
    more = "" if not others else f" So does line {', '.join(sorted(str(_values(one)) for one in others))}."
    where = f" Line {line} leaves TensorFlow: `{text if len(text) < _WIDE else text[:_WIDE] + '...'}`." if text else ""
    cause = (
        f"{node.called} has no gradient.{where}{more} TensorFlow uses one 0, of shape [], and the gradient of an op "
        "before it fails on that: this is your error."
    )
    flat = in_steps(function)
    call = node.call()
    stepped = stand_ins.instead(situation, node, call) if flat is None and call is not None else None
    if stepped is not None and not others:
        return Explanation(RULE, node.file, line, f"{cause} {stepped[0]}", stepped[1], stepped[2])
    pieces = body_in_ops(function, spot) if flat is None else None
    edit = _edit(node.file, spot.source, pieces) if pieces else None
    edit = _with_others(situation, edit, others) if edit is not None and others else edit
    measured = by_differences(situation, node, call) if edit is None and flat is None and call is not None else None
    if measured is not None:
        return Explanation(RULE, node.file, line, cause, measured, COST)
    advice = "" if edit is not None else (
        f"Compute with TensorFlow's ops in {node.called}, or give it a gradient of its own: @tf.custom_gradient."
    )  # fmt: skip
    if flat is not None:
        advice = (
            f"`{short(spot.source.text(flat), 30)}` (line {flat.lineno}) moves in steps: in TensorFlow's ops its "
            "gradient is zero or none, too. Give it one of your own: @tf.custom_gradient."
        )
    return Explanation(RULE, node.file, line, cause, edit, advice)


def _of_library(situation: Situation, node: Node) -> Explanation | None:
    """The explanation where the body is a package's own function, which nobody rewrites."""
    call, site = node.call(), site_spot(node, situation)
    if call is None or node.site is None:
        return None
    cause = (
        f"{node.called} is not TensorFlow's, and has no gradient. TensorFlow uses one 0, of shape [], and the gradient "
        "of an op before it fails on that: this is your error."
    )
    edit = of_library(call, site) if site is not None else None
    advice = f"Give it a gradient of its own (@tf.custom_gradient), or use {node.called} for a metric only."
    if edit is not None:
        advice = f"Ranks move in steps, also in ops. These are smooth: values nearer than {NEAR} share a rank."
    return Explanation(RULE, *node.site, cause, edit, advice)


def _with_others(situation: Situation, edit: Edit, others: list[Node]) -> Edit:
    """The lines of other bodies with them, where all stand near each other."""
    source, edits = read(edit.file), [edit]
    for node in others:
        function, spot = node.function(), body_spot(node, situation)
        pieces = body_in_ops(function, spot) if function is not None and spot is not None else None
        own = _edit(edit.file, source, pieces) if pieces else None
        edits += [own] if own is not None else []
    whole = together(edits, source.lines)
    apart = len(edits) == 1 + len(others) and len(whole.lines) <= _MOST
    return whole if apart else edit


def _of_another_op(node: Node) -> Explanation | None:
    """The explanation where the user gave the gradient to another op."""
    call = node.call()
    found = override(node.source, call, node.kind) if call is not None else None
    if call is None or found is None or node.site is None:
        return None
    placed = node.source.replaced({found.key: f'"{found.made}"'})
    edit = edit_of(node.site[0], placed)
    cause = (
        f"{found.cause(node.source.text(call.func))}. TensorFlow's own finds none in {node.called}, uses one 0, of "
        "shape [], and the op before it fails on that."
    )
    advice = "" if edit else f'Write "{found.made}" for "{found.given}".'
    return Explanation(RULE, node.site[0], found.key.lineno, cause, edit, advice)


def _edit(file: str, source: Source, pieces: dict[ast.expr, str]) -> Edit | None:
    edits = []
    for old, new in pieces.items():
        found = source.replaced({old: new})
        if found is None:
            return None
        edits.append(Edit(file, found[0], found[1], (found[2],)))
    changed = [one for one in edits if one.lines != tuple(source.lines[one.first - 1 : one.last])]
    return together(changed, source.lines) if changed else None
