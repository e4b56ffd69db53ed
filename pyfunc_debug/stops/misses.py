"""Why a breakpoint was not hit, as far as that is known: a sentence for each that would otherwise miss in silence."""

from __future__ import annotations

import ast
import difflib
import functools
import linecache
import os
from collections.abc import Collection, Mapping
from types import MappingProxyType

from pyfunc_debug.events import NodeFacts
from pyfunc_debug.places import cell_label
from pyfunc_debug.program import syntax
from pyfunc_debug.program.frames import is_user
from pyfunc_debug.stops.rules import Breakpoint, length, same_file

_IN_GRAPH = "TensorFlow runs that line: {} becomes a graph, and Python comes there only while it is traced"

_OF_A_NODE = {"before": "call of {} came", "after": "call of {} returned", "error": "call of {} failed",
              "gradient": "gradient of {} came"}  # fmt: skip


def why_not_hit(
    rule: Breakpoint, nodes: Collection[NodeFacts], gone: Collection[str], called: bool,
    graphs: Mapping[tuple[str, int], str] = MappingProxyType({}),
) -> str:  # fmt: skip
    """Why there are 0 hits, after "because"; empty where nothing is known.

    Args:
      rule: The breakpoint.
      nodes: The nodes that there are.
      gone: Names of bodies whose nodes are gone.
      called: Whether a node that it may mean was called since it was made.
      graphs: By file and first line, the names of functions that became graphs.
    """
    if rule.error or rule.unjudged:
        return ""  # said with their counts
    other = next((node.body for node in nodes if node.body.elements == "processes" and _means(rule, node)), None)
    if other is not None:
        return (
            f"Keras calls {other.name} in processes of its own, where nothing stops, but for its first two elements "
            "(its PyDataset has use_multiprocessing=True); set it to False"
        )
    if rule.came_false:
        return "its condition was false each time"
    nodes = [node for node in nodes if not node.internal or is_user(node.body.file or "<none>")]
    means = any(_means(rule, node) for node in nodes)
    if not means and _makes_node(rule, nodes):
        return f"no {_OF_A_NODE[rule.when].format('the node that this line makes')} since"
    fits = means or (called and rule.file is None)
    if not fits and (graph := _graph(rule, graphs)):
        return graph
    if not nodes and not gone:
        return "no node was called since it was set"
    return _line(rule, nodes, called) if rule.file is not None else _name(rule, nodes, gone, called)


def _makes_node(rule: Breakpoint, nodes: Collection[NodeFacts]) -> bool:
    """Whether a call stops there because its node is made in this line."""
    sites = {(frame.file, frame.line) for node in nodes for frame in node.stack[-1:]}
    return rule.file is not None and any(line == rule.line and same_file(rule.file, file) for file, line in sites)


def _graph(rule: Breakpoint, graphs: Mapping[tuple[str, int], str]) -> str:
    """Says so where it names a function that became a graph, or a line of one."""
    for (file, first), name in graphs.items():
        if rule.file is None or rule.line is None:
            if rule.fits_name(name):
                why = "Python runs it only while it is traced; tf.py_function runs it each time"
                return f"{name} becomes a graph: {why}"
        elif same_file(rule.file, file):
            span = _function(file, rule.line)
            if span is not None and first <= rule.line and span[0] == name.rpartition(".")[2] and span[3] == first:
                return _IN_GRAPH.format(span[0])
    return ""


def _means(rule: Breakpoint, node: NodeFacts) -> bool:
    """Whether it names a node, or a line of its body."""
    file, first, line = node.body.file, node.body.line, rule.line
    if rule.file is None or line is None:
        return rule.fits(node)
    return bool(file and first and same_file(rule.file, file) and first <= line < first + length(file, first))


def _name(rule: Breakpoint, nodes: Collection[NodeFacts], gone: Collection[str], called: bool) -> str:
    if called:
        return {"error": "no call of it raised an exception", "after": "no call of it returned"}.get(rule.when, "")
    fitting = sorted({node.body.name for node in nodes if rule.fits(node)})
    if fitting:
        names = ", ".join(fitting[:3])
        return f"no gradient of {names} was computed" if rule.when == "gradient" else f"{names} was not called since"
    names_ = {node.body.name for node in nodes} | set(gone)
    found = difflib.get_close_matches(rule.where, names_, 3, 0.5) or sorted(names_)[:5]
    return f"no node of that name was called since it was set (there are {', '.join(found)})"


def _line(rule: Breakpoint, nodes: Collection[NodeFacts], called: bool) -> str:
    wanted, line = rule.file or "", rule.line or 0
    bodies = {(node.body.file, node.body.line) for node in nodes if node.body.file and node.body.line}
    sites = {(frame.file, frame.line) for node in nodes for frame in node.stack}
    files = {file for file, _ in bodies | sites if file is not None}
    known = next((file for file in sorted(files) if same_file(wanted, file)), None)
    if known is None and not os.path.isfile(wanted):
        there = ", ".join(sorted({cell_label(file) or os.path.basename(file) for file in files})[:5])
        return f"no file of that name has a node or a body (there are {there})"
    starts = [first for file, first in bodies if first is not None and file == known]
    inside = any(known and first <= line < first + length(known, first) for first in starts)
    what = {"error": "no error passed that line", "gradient": "no gradient of its body was computed"}.get(rule.when)
    if inside or known is None:
        if not called:
            return "no body was called since"
        return what or ("its body did not return" if rule.when == "after" else "no call came to that line")
    span = _function(known, line)
    if span is not None and any(file == known and span[1] <= at <= span[2] for file, at in sites):
        return _IN_GRAPH.format(span[0])
    return what or "no call of a body came to that line"


@functools.lru_cache(maxsize=64)
def _function(file: str, line: int) -> tuple[str, int, int, int] | None:
    """Name, first and last line of the innermost function around a line, and that of its first decorator."""
    try:
        tree = syntax.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
    found = [
        (
            node.name,
            node.lineno,
            node.end_lineno or node.lineno,
            min([node.lineno, *(one.lineno for one in node.decorator_list)]),
        )
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(found, key=lambda one: one[1], default=None)
