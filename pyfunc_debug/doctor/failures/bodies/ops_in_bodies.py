"""Ops in a body that a Session runs: they add nodes to a graph, and give no values."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.code import local_names, own_nodes
from pyfunc_debug.doctor.failures.ops.numpy_twins import in_numpy
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import Node, body_frame, failed_node
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, names
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_symbolic, root_is
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.program import syntax

_SAID = re.compile(
    r"SymbolicTensor|[Ss]ymbolic|'Tensor' object has no attribute|No default session is registered"
    r"|Graph is finalized|must be from the same graph"
)
_SWITCHED = re.compile(r"\bdisable_(?:eager_execution|v2_behavior)\(")
_VALUES = {"numpy", "eval"}
"""Methods that ask a tensor for its value: an array is one."""
_MOST = 3
"""Ops that are named."""
_SPAN = 20
"""Lines that a paste may have."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body failed on what an op of its own gave it in a graph of TensorFlow 1."""
    node = failed_node(situation) if situation.body and _SAID.search(situation.message) else None
    if node is None or node.kind == "py_function" or node.site is None or not _without_eager(situation):
        return None
    spot = body_frame(node, situation)
    running = spot is not None
    function = spot.function if spot is not None else node.function()
    if spot is None and function is not None and node.file is not None:
        spot = Spot(node.file, function.lineno, {}, _module(situation, node.file), "")
    if spot is None or function is None:
        return None
    ops = [one for one in own_nodes(function) if isinstance(one, ast.Call) and _op(one, spot)]
    failed = [spot.statement] if running else _returned(function)
    if not ops or not any(one is not None and _of_ops(one, function, ops) for one in failed):
        return None
    ops.sort(key=lambda one: (one.lineno, one.col_offset))
    called = list(dict.fromkeys(dotted(one.func) for one in ops))
    lines = sorted({one.lineno for one in ops})
    what = listed(called if len(called) <= _MOST else [*called[: _MOST - 1], "others"])
    where = f"line{'s' * (len(lines) > 1)} {listed(list(map(str, lines)))}"
    kind = node.kind.removesuffix("_stateless")
    cause = (
        f"{node.called} is the body of a {kind}: it is given NumPy arrays. Eager execution is off there, so that "
        f"{what} ({where}) only add{'s' * (len(called) == 1)} to a graph, and give{'s' * (len(called) == 1)} a tensor "
        "without a value."
    )
    edit = _written(node, function, spot, ops)
    advice = "Write these lines in NumPy, or call tf.py_function: it gives its body eager tensors, and ops run at once."
    advice = advice.replace("tf.", f"{alias(spot, 'tensorflow')}.")
    return Explanation(RULE, spot.file, ops[0].lineno, cause, edit, "" if edit is not None else advice)


def _without_eager(situation: Situation) -> bool:
    """Whether the program switches eager execution off: else ops in a body of numpy_function run at once."""
    return any(_SWITCHED.search("\n".join(source.code)) for _, source in situation.sources())


def _module(situation: Situation, file: str) -> dict[str, object]:
    return dict(next((one.module for one in situation.spots if one.file == file), {}))


def _op(call: ast.Call, spot: Spot) -> str:
    """The name of TensorFlow's op that is called, behind its module: "reduce_sum"; "" for other calls."""
    head, _, name = dotted(call.func).partition(".")
    last = name.rpartition(".")[2]
    begins = isinstance(call.func, ast.Attribute) and root_is(call.func, spot, "tensorflow")
    found = name.removeprefix("compat.v1.")
    return found if head and begins and last[:1].islower() and not found.startswith(("compat.", "keras.")) else ""


def _returned(function: Function) -> list[ast.AST]:
    if isinstance(function, ast.Lambda):
        return [function.body]
    return [one.value for one in own_nodes(function) if isinstance(one, ast.Return) and one.value is not None]


def _of_ops(node: ast.AST, function: Function, ops: list[ast.Call]) -> bool:
    """Whether an expression or a line holds an op, or a name that a line with an op gives a value."""
    if any(one is part for one in ast.walk(node) for part in ops):
        return True
    made = {
        target.id for one in own_nodes(function) if isinstance(one, (ast.Assign, ast.AugAssign))
        and any(part is op for part in ast.walk(one.value) for op in ops)
        for target in ast.walk(one) if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
    }  # fmt: skip
    return not made.isdisjoint(names(node))


def _written(node: Node, function: Function, spot: Spot, ops: list[ast.Call]) -> Edit | None:
    """The body's lines in NumPy; None where an op has no twin there, or the body reads a tensor around it."""
    source, numpy = spot.source, alias(spot, "numpy")
    own = local_names(function)
    around = [one for one in names(function) if one not in own and is_symbolic(spot.module.get(one))]
    if around:
        return None
    known = {id(one): _op(one, spot) for one in ops}
    outer = [
        one for one in ops if not any(part is one for other in ops if other is not one for part in ast.walk(other))
    ]
    pieces: dict[ast.expr, str] = {}
    for one in outer:
        whole, text = _text(source, one, known, numpy)
        if not text:
            return None
        pieces[whole] = text
    for value in _returned(function) if function is node.function() or spot.code == node.body else []:
        pieces = _as_declared(source, node, value, pieces, numpy)
    pieces = {one: ast.unparse(syntax.expression(text)) for one, text in pieces.items()}
    first, last, lines = source.kept_lines(pieces)
    return Edit(spot.file, first, last, lines) if last - first < _SPAN else None


def _text(source: Source, call: ast.Call, known: dict[int, str], numpy: str) -> tuple[ast.expr, str]:
    """What is replaced (the call, with `.numpy()` behind it), and its text in NumPy; "" where there is none."""

    def text(node: ast.expr) -> str:
        inside = [one for one in ast.walk(node) if id(one) in known and isinstance(one, ast.Call)]
        first = [one for one in inside if not any(one is not two and one in ast.walk(two) for two in inside)]
        new = dict(_text(source, one, known, numpy) for one in first)
        failed.extend(one for one in new.values() if not one)
        if node in new:
            return new[node]
        return source.text_with(node, new) if new else source.text(node)

    failed: list[str] = []
    written = in_numpy(known[id(call)], call, text, numpy)
    whole: ast.expr = call
    method = source.parent(call)
    asked = source.parent(method) if isinstance(method, ast.Attribute) and method.attr in _VALUES else None
    if isinstance(asked, ast.Call):
        whole = asked
    return whole, "" if failed or written is None else written


def _as_declared(
    source: Source, node: Node, value: ast.AST, pieces: dict[ast.expr, str], numpy: str
) -> dict[ast.expr, str]:
    """What is returned in the dtypes of Tout: NumPy computes in float64 where TensorFlow does in float32."""
    parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(node.tout) == len(value.elts) else [value]
    for part, dtype in zip(parts, node.tout):
        if (
            not isinstance(part, ast.expr)
            or not re.fullmatch(r"u?int\d+|float\d+", dtype)
            or len(parts) != len(node.tout)
        ):
            continue
        inside = {one: text for one, text in pieces.items() if one in ast.walk(part)}
        text = source.text_with(part, inside) if inside else source.text(part)
        pieces = {one: new for one, new in pieces.items() if one not in inside}
        pieces[part] = f"{numpy}.asarray({text}, {numpy}.{dtype})"
    return pieces
