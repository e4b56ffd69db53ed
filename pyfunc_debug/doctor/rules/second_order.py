"""Second derivatives through a py_function, which TensorFlow silently leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.doctor.bodies import listed, several, together
from pyfunc_debug.doctor.facts import Facts
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
    for group in together(rows):
        node, body, file, line = group[0]
        nodes = several(row[0] for row in group)
        yield Finding(
            "second-order", "warning", node, (),
            f"a second derivative was taken through {body}: TensorFlow leaves out this py_function's part of it (None "
            f"or too small, without an error){sites(reader, nodes or (node,))}{listed(nodes)}",
            as_graph_code(facts, facts.nodes[node]) or facts.exact(2), file, line, nodes,
        )  # fmt: skip
