"""Bodies that need no Python: TensorFlow's ops do all that their source does, so each call crosses over for nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies import decorated
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.replacement import direct_call, imports, obstacles
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding, Node

NAMES = ("graduate",)
CROSSING_NS = {"py_function": 60_000, "numpy_function": 25_000, "py_func": 25_000, "py_func_stateless": 25_000}
"""What TensorFlow needs around a body, at least: docs/costs.md."""
MANY_CALLS, SHARE = 1000, 0.15
CALLS = 200
_TOTAL_NS = 500_000_000
_ASKS = (ast.If, ast.IfExp, ast.For, ast.While, ast.BoolOp, ast.Not, ast.Assert, ast.ListComp, ast.GeneratorExp,
         ast.DictComp, ast.SetComp, ast.JoinedStr, ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.Global)  # fmt: skip
"""What may do something else where there are no values yet."""
COMPUTES = ("tensorflow", "keras", "tf_keras", "numpy", "math", "scipy", "cv2")
"""Modules whose functions may have ops. What another one does (a sleep, a clock, a decoder) is Python's."""
_DRAWS = ("uniform", "normal", "truncated_normal", "shuffle", "categorical", "gamma", "poisson")
_DRAWING = ("random_", "stateless_random_")
_FEW = 50
"""Turns of a loop that a graph may hold."""
_FILES = {"load", "save", "savez", "savez_compressed", "fromfile", "loadtxt", "savetxt", "genfromtxt", "memmap"}
"""NumPy's functions that read or write files."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line. Calls that are shorter than the way into Python are the subject of tiny-calls."""
    wall = facts.wall_ns
    if wall is None:
        return
    for group in facts.lines:
        node, calls, text = group[0], facts.calls_of(group), ""
        if _costs(facts, group, wall) and not _is_tiny(facts, group):
            text = paying(facts, node)
        if text:
            tried = trial(facts, node)
            site = facts.site(node.id)
            evidence = (
                f"it was not tried: {facts.name(node)} draws numbers, other ones in each run" if has_draws(facts, node)
                else "what the ops take is not measured: that runs the body again. "
                f"pyfunc_debug.graduate({node.body!r}) does, behind a recording with values='full'"
                if tried is None else f"tried as the recording ended: {tried['said']}"
            )  # fmt: skip
            yield Finding(
                NAMES[0], "note", node.id, (),
                f"nothing in {node.body} needs Python: TensorFlow has ops for all of it. {calls.count:,} calls, with "
                f"the way into Python and back, took some {_total_ns(facts, group) / 1e9:.1f} s of {wall / 1e9:.1f} s; "
                "a graph can run ops on all cores, save them and differentiate them",
                text, site.file if site else node.file, site.line if site else node.line,
                several(one.id for one in group),
                (
                    f"{calls.total_ns / 1e9:.2f} s in the body, about {CROSSING_NS[node.kind] / 1e3:.0f} us a call "
                    "around it",
                    evidence,
                ),
                "proven" if tried is not None and tried["recorded"] else "likely",
            )  # fmt: skip


def worth_trying(facts: Facts, wall_ns: int) -> Iterator[tuple[list[Node], list[Edit]]]:
    """Lines whose calls cost enough and whose bodies need no Python as far as the source tells, with the edits.

    Args:
      facts: A recording, which may not have its end yet.
      wall_ns: How long was recorded.
    """
    for group in facts.lines:
        edits = graph_edits(facts, group[0]) if _costs(facts, group, wall_ns) else []
        if edits and not has_draws(facts, group[0]):
            yield group, edits


def has_draws(facts: Facts, node: Node) -> bool:
    """Whether ops of a node's body draw numbers: then no two runs of it can be compared."""
    function = facts.function(node)
    return function is not None and _is_random(function, pastes.source(facts, node.file))


def _total_ns(facts: Facts, group: Sequence[Node]) -> int:
    calls = facts.calls_of(group)
    return calls.total_ns + CROSSING_NS[group[0].kind] * calls.count


def _costs(facts: Facts, group: Sequence[Node], wall_ns: int) -> bool:
    calls = facts.calls_of(group)
    enough = calls.count >= CALLS and not calls.errors
    return enough and _total_ns(facts, group) >= max(_TOTAL_NS, SHARE * wall_ns)


def _is_tiny(facts: Facts, group: Sequence[Node]) -> bool:
    calls = facts.calls_of(group)
    return calls.count >= MANY_CALLS and calls.total_ns * 2 <= CROSSING_NS[group[0].kind] * calls.count


def trial(facts: Facts, node: Node) -> dict[str, Any] | None:
    """What trying the lines as graph code showed when the recording ended; None where that was not done."""
    body = (node.body, node.file, node.line)
    for number, _, noticed in facts.notices.get(Notice.GRAPH_CODE, []):
        tried = facts.nodes.get(number) if number is not None else None
        if tried is not None and (tried.body, tried.file, tried.line) == body:
            return noticed
    return None


def paying(facts: Facts, node: Node) -> str:
    """`as_graph_code`; "" too where it was tried, and is not the same or not faster."""
    tried = trial(facts, node)
    return "" if tried is not None and not tried["pays"] else as_graph_code(facts, node)


def as_graph_code(facts: Facts, node: Node) -> str:
    """The line that calls the body as graph code, and its lines in TensorFlow's ops; "" where that cannot be told."""
    return pastes.written(*graph_edits(facts, node))


def graph_edits(facts: Facts, node: Node) -> list[Edit]:
    """The edits of `as_graph_code`; empty where there are none."""
    function, tree = facts.function(node), facts.tree(node.file)
    found = pastes.call_of(facts, node)
    if function is None or tree is None or found is None or node.file is None or not node.tout:
        return []
    file, call = found
    own, there = pastes.source(facts, node.file), pastes.source(facts, file)
    if not _plain(function, own) or code.outside(function, tree):
        return []
    pieces: dict[ast.expr, str] | None = {}
    if not _only_ops(function, own):
        pieces = pastes.in_ops(facts, node)
        if isinstance(function, ast.Lambda):
            return _lambda_in_ops(facts, node, function, pieces, there) if pieces and file == node.file else []
        if (
            pieces is None
            or file != node.file
            or _reads(pastes.scope_of(facts, file, function), getattr(function, "name", "")) > 1
        ):
            return []
    elif any(not one.draws for one in obstacles(node.file, function, source=own)):
        return []
    tf = dotted(call.func).rpartition(".")[0] or "tf"
    cast = tuple(f"{tf}.{one}" for one in node.tout) if is_cast(node, bool(pieces)) else ()
    if isinstance(call, decorated.Call):  # the decorator, above the body's lines, goes
        edits = [direct_call((file, call.lineno), None, cast, there, also=pieces)]
    else:
        edits = [direct_call((file, call.lineno), None, cast, there)]
        edits += pastes.each_replaced(facts, node.file, pieces) if pieces else []
    return [] if None in edits else [one for one in edits if one is not None]


def _lambda_in_ops(
    facts: Facts, node: Node, function: ast.Lambda, pieces: Mapping[ast.expr, str], source: Source
) -> list[Edit]:
    """The call of py_function with the lambda in TensorFlow's ops in its place."""
    found = pastes.call_of(facts, node)
    if found is None or len(pieces) != 1:
        return []
    body = f"lambda {ast.unparse(function.args)}: {next(iter(pieces.values()))}"
    tf = dotted(found[1].func).rpartition(".")[0] or "tf"
    edit = direct_call((found[0], found[1].lineno), body, tuple(f"{tf}.{one}" for one in node.tout), source)
    return [] if edit is None else [edit]


def is_cast(node: Node, rewritten: bool) -> bool:
    """Whether the results of graph code get a cast to what was declared, where TensorFlow would have converted them."""
    return node.kind != "py_function" or rewritten


def _plain(function: Definition, source: Source) -> bool:
    """Whether a body computes straight on: no branch, no loop, no shape and no length, which a graph may not know.

    Nor anything besides computing: what it calls is TensorFlow's, NumPy's, or a method of its own values.
    """
    known, local = imports(source), code.local_names(function)
    for one in code.own_nodes(function):
        if (isinstance(one, _ASKS) and not _counts(one)) or (
            isinstance(one, ast.Attribute) and one.attr in ("shape", "size", "ndim")
        ):
            return False
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store):
            return False
        if isinstance(one, ast.Call) and not _is_range(one):
            head, _, rest = dotted(one.func).partition(".")
            if ("random" in rest and not _draws(one, known)) or rest.endswith(
                ("Variable", "print_tensor", "executing_eagerly")
            ):
                return False
            if isinstance(one.func, ast.Name) and head not in known:
                return False
            method = isinstance(one.func, ast.Attribute) and not head  # of what another call or an operator gave
            if (
                not method
                and head not in local
                and (known.get(head, "").partition(".")[0] not in COMPUTES or rest in _FILES)
            ):
                return False
    return True


def _draws(call: ast.Call, known: Mapping[str, str]) -> bool:
    """Whether a call is an op of TensorFlow's that draws numbers, which it does in each run of a graph, too."""
    head, _, rest = dotted(call.func).partition(".")
    path, _, name = rest.rpartition(".")
    own = known.get(head, "").partition(".")[0] == "tensorflow"
    return own and ((path == "random" and name in _DRAWS) or (path == "image" and name.startswith(_DRAWING)))


def _is_random(function: Definition, source: Source) -> bool:
    known = imports(source)
    return any(isinstance(one, ast.Call) and _draws(one, known) for one in code.own_nodes(function))


def _counts(node: ast.AST) -> bool:
    """Whether a loop goes a written number of times: a graph holds each of them."""
    return isinstance(node, ast.For) and not node.orelse and _is_range(node.iter)


def _is_range(node: ast.expr) -> bool:
    """`range(5)`, of a few written numbers."""
    if not isinstance(node, ast.Call) or dotted(node.func) != "range" or node.keywords:
        return False
    return all(isinstance(one, ast.Constant) and type(one.value) is int and one.value <= _FEW for one in node.args)


def _only_ops(function: Definition, source: Source) -> bool:
    """Whether all that a body calls is TensorFlow's or Keras'."""
    known = imports(source)
    calls = [one for one in code.own_nodes(function) if isinstance(one, ast.Call)]
    heads = (known.get(dotted(one.func).partition(".")[0], "").partition(".")[0] for one in calls)
    return all(head in ("tensorflow", "keras", "tf_keras") for head in heads)


def _reads(tree: ast.AST | None, name: str) -> int:
    return sum(one.id == name and isinstance(one.ctx, ast.Load) for one in pastes.walk(tree, ast.Name))
