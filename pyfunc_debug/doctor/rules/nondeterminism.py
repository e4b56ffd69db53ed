"""Bodies that gave different outputs for equal inputs, though nothing in their source says that they should."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.current_figures import kept_drawing, side_by_side
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding, Node

NAMES = ("nondeterministic",)
_ROWS = 5000
"""How many calls of a body are compared."""
_CLOSE = 1e-5
"""What differs by less is rounding: threads add up in another order."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body. Bodies that draw random numbers, or read what lives outside of them, mean it."""
    bodies: dict[tuple[str, str | None, int | None], list[Node]] = {}
    for group in facts.lines:
        for node in group:
            bodies.setdefault((node.body, node.file, node.line), []).append(node)
    told = {node.id for body in side_by_side(facts) for node in body.nodes}  # by `shared_figures`
    for (_, file, _), nodes in bodies.items():
        if nodes[0].id in told:
            continue
        function, tree = facts.function(nodes[0]), facts.tree(file)
        if function is None or tree is None or code.is_random(function, tree) or code.state_writes(function):
            continue
        if code.outside(function, tree) or _has_own_defaults(function):
            continue
        pair = next((found for node in nodes if (found := unequal(facts, node)) is not None), None)
        if pair is not None:
            yield _finding(facts, nodes, pair, code.impure(function))


def _has_own_defaults(function: code.Definition) -> bool:
    """Whether each function that is made there may have other values: `lambda x, scale=scale: ...` in a loop."""
    given = (*function.args.defaults, *function.args.kw_defaults)
    return any(one is not None and not isinstance(one, ast.Constant) for one in given)


def unequal(facts: Facts, node: Node) -> tuple[int, int, bool] | None:
    """Two calls of a node with equal inputs and unequal outputs, and whether they ran at the same time."""
    rows = facts.reader.rows(
        f"SELECT c.id, c.start_ns, c.end_ns, v.role, v.position, v.digest, v.dtype, v.shape, v.min, v.max, v.mean FROM "
        f"(SELECT id, start_ns, end_ns FROM call WHERE node = ? AND kind = 'forward' AND status = 'ok' "
        f"ORDER BY id LIMIT {_ROWS}) c JOIN value v ON v.call = c.id ORDER BY c.id, v.role, v.position",
        (node.id,),
    )
    calls: dict[int, tuple[int, int, list[tuple[object, ...]], list[tuple[object, ...]]]] = {}
    for call, start, end, role, _, *value in rows:
        _, _, inputs, outputs = calls.setdefault(call, (start, end, [], []))
        (inputs if role == "input" else outputs).append(tuple(value))
    seen: dict[tuple[tuple[object, ...], ...], int] = {}
    for call, (start, end, inputs, outputs) in calls.items():
        if not inputs or not outputs or any(one[0] is None for one in (*inputs, *outputs)):
            continue
        key = tuple(one[:3] for one in inputs)
        first = seen.setdefault(key, call)
        other = calls[first]
        if first != call and not all(map(_same, outputs, other[3])):
            return first, call, other[1] > start and end > other[0]
    return None


def _same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    """Whether two outputs are equal, or differ by rounding only."""
    if one[:3] == other[:3]:
        return True
    if one[1:3] != other[1:3] or "float" not in str(one[1]) or None in one[3:] or None in other[3:]:
        return False
    pairs = [(float(str(a)), float(str(b))) for a, b in zip(one[3:], other[3:])]
    return all(abs(a - b) <= _CLOSE * max(abs(a), abs(b), 1e-30) for a, b in pairs)


def _finding(facts: Facts, nodes: list[Node], pair: tuple[int, int, bool], why: code.Write | None) -> Finding:
    node = nodes[0]
    first, second, at_once = pair
    drawn = None if at_once or why is not None else kept_drawing(facts, node)
    if drawn is not None:
        line, text = drawn.call.lineno, pastes.text_of(facts, drawn.file, drawn.call.func)
        return Finding(
            NAMES[0], "warning", node.id, (first, second),
            f"{node.body} gave different outputs for equal inputs, in calls #{first} and #{second}. {text} draws into "
            "pyplot's current figure, which it never makes, clears or closes: what earlier calls drew is still there",
            _cleared(facts, node), drawn.file, line, several(one.id for one in nodes),
            confidence="likely",
        )  # fmt: skip
    if why is not None:
        filled = why.name.endswith("empty")
        cause = f"Line {why.line} makes it so: `{why.text}`" + (", memory that nobody filled" if filled else "")
        fix = _filled(facts, node, why) if filled else f"pass what {why.text} gives as an input, or leave it out"
    elif at_once:
        cause = "The two ran at the same time: they share something that one of them changes"
        fix = f"dataset.map({facts.name(node)}, num_parallel_calls=1)  # if it is right then, find what its calls share"
    else:
        cause = "Nothing in its source says why: look for a cache, a file, or a library with a state"
        fix = f"recording.call({second}).replay()  # runs it again on the same inputs"
    return Finding(
        NAMES[0], "warning", node.id, (first, second),
        f"{node.body} gave different outputs for equal inputs, in calls #{first} and #{second}. {cause}",
        fix, node.file, why.line if why is not None else node.line, several(one.id for one in nodes),
        tuple(facts.shown(call) for call in (first, second)),
    )  # fmt: skip


def _cleared(facts: Facts, node: Node) -> str:
    """`plt.clf()` above the first line of a body."""
    function = facts.function(node)
    line = pastes.beginning(function) if function is not None else None
    module = pastes.module(facts, node.file, "matplotlib.pyplot")
    above = pastes.above(facts, node.file, line, f"{module}.clf()") if line is not None and module else None
    return pastes.written(above) if above is not None else "plt.clf()  # where the body begins"


def _filled(facts: Facts, node: Node, why: code.Write) -> str:
    new = why.text.replace("empty", "zeros", 1)
    return pastes.written(pastes.call_replaced(facts, node.file, why.line, why.text, new)) or new
