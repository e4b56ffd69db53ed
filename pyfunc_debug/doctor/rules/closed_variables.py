"""Variables that a body uses but is not given: they get no gradient."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pyfunc_debug.doctor.bodies import listed, several, together
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.locations import sites
from pyfunc_debug.records import Finding

NAMES = ("variable-no-input",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body and its variables."""
    reader = facts.reader
    rows = reader.rows(
        "SELECT t.node, n.body, n.file, n.line, t.call, t.facts FROM notice t JOIN node n ON n.id = t.node "
        "WHERE t.rule = 'variable-no-input' AND n.origin = 'user' GROUP BY t.node HAVING t.id = min(t.id)"
    )
    for group in together(rows, 5):
        node, body, file, line, call, told = group[0]
        nodes = several(row[0] for row in group)
        names = json.loads(told)["variables"]
        what = f"variable {names[0]}" if len(names) == 1 else f"variables {', '.join(names)}"
        yield Finding(
            "variable-no-input", "warning", node, () if call is None else (call,),
            f"{body} uses the {what}, which is not an input of its py_function: its gradient is None, and it is not "
            f"trained{sites(reader, nodes or (node,))}{listed(nodes)}",
            "pass the variable in inp=[...] and use the parameter in the body", file, line, nodes,
        )  # fmt: skip
