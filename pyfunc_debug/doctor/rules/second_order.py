"""Second derivatives through a py_function, which TensorFlow silently leaves out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.grouped import listed, several, together
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import dotted, names, tapes
from pyfunc_debug.doctor.locations import sites
from pyfunc_debug.doctor.rules.needless_python import as_graph_code
from pyfunc_debug.records import Finding

NAMES = ("second-order",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    reader = facts.reader
    rows = reader.rows(
        "SELECT DISTINCT n.id, n.body, n.file, n.line FROM notice t JOIN node n ON n.id = t.node "
        "WHERE t.rule = 'second-order' AND n.origin = 'user'"
    )
    told = {row[0] for row in rows}
    rows += [one for one in _eagerly(facts) if one[0] not in told]
    for group in together(rows):
        node, body, file, line = group[0]
        nodes = several(row[0] for row in group)
        yield Finding(
            "second-order", "warning", node, (),
            f"a second derivative was taken through {body}: TensorFlow leaves out this py_function's part of it (None "
            f"or too small, without an error){sites(reader, nodes or (node,))}{listed(nodes)}",
            as_graph_code(facts, facts.nodes[node]) or facts.exact(2), file, line, nodes,
        )  # fmt: skip


def _eagerly(facts: Facts) -> Iterator[tuple[int, str, str | None, int | None]]:
    """The py_functions under a tape whose gradient another tape was asked to differentiate, and gave None."""
    for _, _, noticed in facts.notices["all-none"]:
        file, line = str(noticed["file"]), int(noticed["line"])
        source = pastes.source(facts, file)
        outer = [one for one in pastes.walk(source.statement(line), ast.Call) if _gradient_of(one)]
        if len(outer) != 1:
            continue
        target = outer[0].args[0]
        inner = [
            one.value for one in pastes.walk(source.tree, ast.Assign)
            if one.lineno < line and isinstance(one.value, ast.Call) and _gradient_of(one.value)
            and set(names(target)) & {name for each in one.targets for name in names(each)}
        ]  # fmt: skip
        tapes_asked = {_gradient_of(one) for one in inner} - {_gradient_of(outer[0])}
        blocks = [
            one for one in tapes(source)
            if tapes_asked & {dotted(item.optional_vars) for item in one.items if item.optional_vars is not None}
        ]  # fmt: skip
        for node in facts.nodes.values():
            site = facts.site(node.id)
            under = site is not None and site.file == file and any(
                one.lineno < (site.line or 0) <= (one.end_lineno or 0) for one in blocks
            )  # fmt: skip
            if under and node.kind == "py_function" and node.origin == "user":
                yield node.id, node.body, node.file, node.line


def _gradient_of(call: ast.Call) -> str:
    """The tape that a call asks for a gradient; "" for any other call."""
    asks = isinstance(call.func, ast.Attribute) and call.func.attr == "gradient" and len(call.args) > 1
    return dotted(call.func).rpartition(".")[0] if asks else ""
