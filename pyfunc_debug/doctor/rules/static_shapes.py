"""Shapes that TensorFlow does not know, or knows wrongly, after a node."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.turned_sizes import turned
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.axis_orders import axis_order
from pyfunc_debug.doctor.failures.reading.shapes import fits_shape
from pyfunc_debug.records import Finding, Node

NAMES = ("unknown-shape",)
Shape = tuple[int | None, ...]
_REDUCE = ("sum", "mean", "max", "min", "std", "var", "prod", "median")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body whose calls returned other shapes than its graph says, or whose shape a graph missed."""
    if not facts.has("static_shape"):
        return
    known: dict[tuple[int, int], Shape | None] = {
        (node, position): None if text is None else tuple(json.loads(text))
        for node, position, text in facts.reader.rows(
            "SELECT node, position, shape FROM static_shape WHERE role = 'output'"
        )
    }
    reported: set[tuple[str, str | None, int | None, int]] = set()
    for group in facts.lines:
        for position in range(len(group[0].out_paths)):
            key = (group[0].body, group[0].file, group[0].line, position)
            if key in reported:
                continue
            for look in (_wrong, _missed):
                found = look(facts, group, position, known)
                if found is not None:
                    reported.add(key)
                    yield found
                    break


def returned_shapes(facts: Facts, node: Node, position: int) -> list[tuple[Shape, int, int]]:
    """Shapes that a node's calls returned, how often, and the first call."""
    rows = facts.reader.rows(
        "SELECT v.shape, count(*), min(c.id) FROM call c JOIN value v ON v.call = c.id AND v.role = 'output' "
        "AND v.position = ? WHERE c.node = ? AND c.kind = 'forward' AND c.status = 'ok' AND v.shape IS NOT NULL "
        "GROUP BY v.shape ORDER BY count(*) DESC",
        (position, node.id),
    )
    return [(tuple(json.loads(text)), count, first) for text, count, first in rows]


def common(shapes: Sequence[Shape]) -> Shape | None:
    """The shape of all of them, with None where they differ; None where not even the rank is one."""
    if len({len(shape) for shape in shapes}) != 1:
        return None
    return tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*shapes))


def _wrong(
    facts: Facts, group: list[Node], position: int, known: dict[tuple[int, int], Shape | None]
) -> Finding | None:
    """`set_shape` with another shape than the body returns: TensorFlow believes it without a check."""
    for node in group:
        static = known.get((node.id, position))
        if static is None:
            continue
        returned = returned_shapes(facts, node, position)
        wrong = [(shape, count, first) for shape, count, first in returned if not fits_shape(shape, static)]
        if not wrong:
            continue
        shape, _, first = wrong[0]
        calls, every = sum(count for _, count, _ in wrong), sum(count for _, count, _ in returned)
        fit = common([shape for shape, _, _ in returned])
        site = facts.site(node.id)
        shapes = [one for one, _, _ in returned]
        exchanged = turned(facts, node, static, shapes) or _transposed(facts, node, position, static, shapes)
        cause, fix = exchanged or ("", _fix(facts, node, position, static, fit))
        return Finding(
            NAMES[0], "error", node.id, (first,),
            f"the graph says that {_output(node, position)} has the shape {list(static)}, by set_shape or a "
            f"TensorSpec, but {calls:,} of {every:,} calls returned another, as {list(shape)}. TensorFlow does "
            f"not check it: what follows computes with the wrong shape, or fails elsewhere{cause}",
            fix,
            site.file if site else node.file, site.line if site else node.line, several(one.id for one in group),
            tuple(f"{count:,} calls returned {list(shape)}, first #{first}" for shape, count, first in returned[:4]),
        )  # fmt: skip
    return None


def _transposed(
    facts: Facts, node: Node, position: int, static: Shape, returned: Sequence[Shape]
) -> tuple[str, str] | None:
    """That the axes are in another order, and the line above set_shape which puts them in that one."""
    order, call = axis_order(returned, static), _set_shape(facts, node, position)
    frame = facts.site(node.id)
    if order is None or call is None or frame is None:
        return None
    name = _name(node, position)
    new = f"{name} = {_tf(facts, frame.file)}.transpose({name}, {list(order)})"
    statement = pastes.source(facts, frame.file).statement(call.lineno)
    if not isinstance(statement, ast.Expr) or statement.value is not call:
        return None
    fix = pastes.written(pastes.above(facts, frame.file, statement.lineno, new))
    return ". The axes are in another order: transpose moves them", fix


def _missed(
    facts: Facts, group: list[Node], position: int, known: dict[tuple[int, int], Shape | None]
) -> Finding | None:
    """A dataset's elements without a rank, in a graph that takes them out of an iterator."""
    node = next((one for one in group if known.get((one.id, position), ()) is None), None)
    if node is None or not facts.notices["unknown-elements"]:
        return None
    function = facts.functions.get(node.function or 0)
    if function is None or function.kind != "tf.data":
        return None
    number = facts.notices["unknown-elements"][0][2]["trace"]
    trace = next((one for one in facts.traces if one.id == number), None)
    reader = facts.functions[trace.function].name if trace is not None else "a graph"
    returned = returned_shapes(facts, node, position)
    fit = common([shape for shape, _, _ in returned]) if returned else None
    if not returned:
        seen = "No call was recorded"
    elif fit is None:
        seen = f"Its {sum(count for _, count, _ in returned):,} calls returned different ranks"
    else:
        varies = [str(axis) for axis, size in enumerate(fit) if size is None]
        which = f", with dimension{'s' if len(varies) > 1 else ''} {', '.join(varies)} varying" if varies else ""
        seen = f"All {sum(count for _, count, _ in returned):,} calls returned {list(fit)}{which}"
    site = facts.site(node.id)
    return Finding(
        NAMES[0], "note", node.id, tuple(first for _, _, first in returned[:1]),
        f"TensorFlow does not know the rank of {_output(node, position)}, and {reader} was built for elements of "
        f"unknown shape: layers, losses and metrics cannot check or fit theirs. {seen}",
        (_around(facts, node, fit) or _paste(node, position, fit)) if fit is not None
        else f"{_name(node, position)} = tf.ensure_shape({_name(node, position)}, [...])  # with what it returns",
        site.file if site else node.file, site.line if site else node.line, several(one.id for one in group),
        tuple(f"{count:,} calls returned {list(shape)}, first #{first}" for shape, count, first in returned[:4]),
    )  # fmt: skip


def _output(node: Node, position: int) -> str:
    name = node.body.rpartition(".")[2]
    return f"what {name} returns" if len(node.out_paths) == 1 else f"output {position} of {name}"


def _name(node: Node, position: int) -> str:
    """The variable that the user's line assigns, as far as it is known."""
    text = node.stack[-1].text if node.stack else ""
    left, equals, _ = text.partition("=")
    targets = [one.strip(" ()[]") for one in left.split(",")]
    plain = equals and all(one.isidentifier() for one in targets)
    if plain and len(targets) == len(node.out_paths):
        return targets[position]
    return "result" if len(node.out_paths) == 1 else f"result[{position}]"


def _fix(facts: Facts, node: Node, position: int, static: Shape, shape: Shape | None) -> str:
    if shape is None:
        return f"{_name(node, position)}.set_shape(None)  # its calls returned different ranks"
    over = _over_batch(facts, node, static, shape)
    return over or _instead(facts, node, position, static, shape) or _paste(node, position, shape)


def _over_batch(facts: Facts, node: Node, static: Shape, shape: Shape) -> str:
    """`x.sum(axis=0)` goes over the batch where one number for each sample was promised: `[None, 1]`."""
    if len(static) != len(shape) + 1 or static[:1] != (None,) or static[-1] != 1:
        return ""
    function = facts.function(node)
    values = pastes.returns(function) if function is not None else []
    found = [
        call for value in values for call in pastes.walk(value, ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr in _REDUCE
        and any(one.arg == "axis" and ast.unparse(one.value) == "0" for one in call.keywords)
        and all(one.arg != "keepdims" for one in call.keywords)
    ]  # fmt: skip
    if len(found) != 1:
        return ""
    axis = next(one.value for one in found[0].keywords if one.arg == "axis")
    return pastes.written(pastes.replaced(facts, node.file, {axis: "-1, keepdims=True"}))


def _instead(facts: Facts, node: Node, position: int, static: Shape, shape: Shape) -> str:
    """The line that calls set_shape: reshaped where only axes of one differ, else with a shape that is checked."""
    name, frame, call = _name(node, position), facts.site(node.id), _set_shape(facts, node, position)
    if call is None or frame is None:
        return ""
    new = f"{name} = {_tf(facts, frame.file)}.ensure_shape({name}, {list(shape)})"
    if static.count(None) <= 1 and [one for one in static if one != 1] == [one for one in shape if one != 1]:
        new = f"{name} = {_tf(facts, frame.file)}.reshape({name}, {[-1 if one is None else one for one in static]})"
    return pastes.written(pastes.replaced(facts, frame.file, {call: new}))


def _set_shape(facts: Facts, node: Node, position: int) -> ast.Call | None:
    """The one call of set_shape on what a node gives, below it in its function."""
    name, frame = _name(node, position), facts.site(node.id)
    tree = facts.tree(frame.file) if frame is not None else None
    functions = pastes.around(tree, frame.line, ast.FunctionDef) if frame is not None else []
    calls = [
        one for one in pastes.walk(functions[-1] if functions else tree, ast.Call)
        if ast.unparse(one.func) == f"{name}.set_shape" and frame is not None and one.lineno > frame.line
    ]  # fmt: skip
    return calls[0] if len(calls) == 1 else None


def _around(facts: Facts, node: Node, shape: Shape) -> str:
    """The call with its shape around it."""
    made = pastes.call_of(facts, node) if len(node.out_paths) == 1 else None
    if made is None:
        return ""
    file, call = made
    tout = pastes.argument(call, 2, "Tout")
    if isinstance(tout, (ast.List, ast.Tuple)):
        return ""  # then it returns a list of one
    new = f"{_tf(facts, file)}.ensure_shape({pastes.text_of(facts, file, call)}, {list(shape)})"
    return pastes.written(pastes.replaced(facts, file, {call: new}))


def _tf(facts: Facts, file: str) -> str:
    return pastes.module(facts, file, "tensorflow") or "tf"


def _paste(node: Node, position: int, shape: Shape) -> str:
    name = _name(node, position)
    return f"{name} = tf.ensure_shape({name}, {list(shape)})  # after the tf.{node.kind}; it checks each call"
