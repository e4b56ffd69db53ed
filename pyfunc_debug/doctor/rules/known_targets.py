"""A label that stands in its own input: the last value of the window that is to foretell it, or a column of the row."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import returned
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.models.compiled_models import compiled_models
from pyfunc_debug.records import Finding, Node

NAMES = ("known-target",)
_CUT = re.compile(r":\s*-\s*\w")
"""Some slice of the file leaves the last out: that may be the label."""
_SAME = ("float32", "float64", "int32", "int64", "copy", "astype", "asarray", "array", "float", "int")
_NEXT = "the value that follows; and one window less"


@dataclass(frozen=True)
class _Part:
    """What an input is: `series[i : i + 10]`, or all that a name holds."""

    of: str
    slice: ast.Slice | None


@dataclass(frozen=True)
class _Known:
    """A label, the input that holds it, and what to give in place of one of the two."""

    label: ast.expr
    text: str
    within: str
    fix: str


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body or a generator that gives pairs to a model's `fit`."""
    if not any(one.loss is not None for one in compiled_models(facts)):
        return
    for group in facts.lines_and_generators:
        node, function = group[0], facts.function(group[0])
        text = "\n".join(facts.code(node.file))
        if function is None or len(node.tout) != 2 or not facts.calls_of(group).count:
            continue
        if ".fit(" not in text or _CUT.search(text) or not _fits(facts, group):
            continue
        known = _known(function)
        if known is not None:
            line = known.label.lineno
            yield Finding(
                NAMES[0], "error", node.id, (),
                f"{facts.name(node)} gives {known.within} as the input and {known.text} as the label, which is in that "
                "input: a model that copies it has a small loss, and has not learned to foretell anything",
                known.fix, node.file, line, several(one.id for one in group),
                (f"line {line}: {facts.line(node.file, line)}",), "likely",
            )  # fmt: skip


def _fits(facts: Facts, group: Sequence[Node]) -> bool:
    """Whether labels have one axis less than inputs, and lie between their ends in all calls."""
    inputs = {one.call: one for one in returned(facts, group, 0)}
    labels = [one for one in returned(facts, group, 1) if one.call in inputs]
    if not labels or not any(one.low is not None for one in labels):
        return False
    for label in labels:
        held = inputs[label.call]
        added = held.shape[-1:] == (1,)  # an axis for the features, of which there is one
        if len(label.shape) + 1 not in (len(held.shape), len(held.shape) - added):
            return False
        if None not in (label.low, label.high, held.low, held.high) and not (
            (held.low or 0) <= (label.low or 0) and (label.high or 0) <= (held.high or 0)
        ):
            return False
    return True


def _known(function: Definition) -> _Known | None:
    pairs = pastes.returns(function) + [one.value for one in code.own_nodes(function) if isinstance(one, ast.Yield)
                                        and one.value is not None]  # fmt: skip
    if len(pairs) != 1 or not isinstance(pairs[0], ast.Tuple) or len(pairs[0].elts) != 2:
        return None
    given, label = (_made(function, one) for one in pairs[0].elts)
    given = _in_front(given)
    if not isinstance(label, ast.Subscript) or isinstance(label.slice, (ast.Slice, ast.Tuple)):
        return None
    held = _bare(pairs[0].elts[0])
    names = [held.id] if isinstance(held, ast.Name) else []
    text, of = ast.unparse(label), ast.unparse(label.value)
    if of in names and _is_kept(function, of) and isinstance(given, (ast.Subscript, ast.Name, ast.Call)):
        first, ends = _offset(label.slice), given.slice if isinstance(given, ast.Subscript) else None
        if first is None or first[0]:
            return None
        if first[1] == -1 and isinstance(given, ast.Subscript) and isinstance(ends, ast.Slice) and ends.upper:
            after = f"{ast.unparse(given.value)}[{ast.unparse(ends.upper)}]"
            return _Known(
                pairs[0], text, of, f"{after} in the place of {text}: the value that follows; and one window less"
            )
        where = f"{of}[:-1]" if first[1] == -1 else f"{of}[1:]" if first[1] == 0 else f"{of} without {text}"
        return _Known(pairs[0], text, of, f"{where} as the input, and one number less where its shape is written")
    if isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Slice) and ast.unparse(given.value) == of:
        upper, index = given.slice.upper, _offset(label.slice)
        end = _offset(upper) if upper is not None else None
        if upper is None or given.slice.step or end is None or index is None or end != (index[0], index[1] + 1):
            return None
        fix = f"{of}[{ast.unparse(upper)}] in the place of {text}: {_NEXT}"
        return _Known(pairs[0], text, ast.unparse(given), fix)
    return None


def _in_front(node: ast.expr) -> ast.expr:
    """`series[i : i + 10]` of `series[i : i + 10, None]`, which only adds an axis."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple) or not node.slice.elts:
        return node
    first, *others = node.slice.elts
    adds = all(
        (isinstance(one, ast.Constant) and one.value is None) or ast.unparse(one).endswith("newaxis") for one in others
    )
    return ast.copy_location(ast.Subscript(node.value, first, node.ctx), node) if adds else node


def _bare(node: ast.expr) -> ast.expr:
    """What `np.float32(x)`, `x.astype(...)` and `x.copy()` hold."""
    while isinstance(node, ast.Call) and pastes.last_name(node.func) in _SAME:
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("astype", "copy"):
            node = node.func.value
        elif node.args:
            node = node.args[0]
        else:
            break
    return node


def _made(function: Definition, node: ast.expr) -> ast.expr:
    """An expression, or what a name of the function is given in its one assignment."""
    node = _bare(node)
    made = pastes.assigned(function, node.id) if isinstance(node, ast.Name) else []
    return _bare(made[0]) if len(made) == 1 else node


def _is_kept(function: Definition, name: str) -> bool:
    """Whether a function gives a name once, and writes nothing into what it holds."""
    stored = [
        one for one in code.own_nodes(function)
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)
    ]  # fmt: skip
    written = any(
        code.root(one) == name and not isinstance(one.ctx, ast.Load)
        for one in code.own_nodes(function) if isinstance(one, ast.Subscript)
    )  # fmt: skip
    parameter = name in code.parameters(function)
    called = any(
        ast.unparse(one.func) in (f"{name}.pop", f"{name}.remove")
        for one in code.own_nodes(function) if isinstance(one, ast.Call)
    )  # fmt: skip
    return len(stored) + parameter == 1 and not written and not called


def _offset(node: ast.expr) -> tuple[str, int] | None:
    """`("i", 9)` of `i + 9` and of `i + 10 - 1`, and `("", -1)` of `-1`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return ("", -node.operand.value) if type(node.operand.value) is int else None
    if isinstance(node, ast.Constant):
        return ("", node.value) if type(node.value) is int else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and code.is_number(node.right):
        right, inner = ast.unparse(node.right), _offset(node.left)
        if not right.isdigit() or inner is None:
            return None
        return inner[0], inner[1] + (int(right) if isinstance(node.op, ast.Add) else -int(right))
    return ast.unparse(node), 0
