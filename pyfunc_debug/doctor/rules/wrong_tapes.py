"""Gradients that TensorFlow computed from another call's tape, or for which it found none."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pyfunc_debug.doctor.bodies.grouped import several, spread, times, together
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.locations import sites, started
from pyfunc_debug.records import Finding, Node

NAMES = ("wrong-tape", "missing-tape")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each body, line that calls it, and pair of lines that started its call and that of the tape."""
    reader = facts.reader
    rows = reader.rows(
        "SELECT n.id, n.body, n.file, n.line, c.tape IS NULL, r1.site, r2.site, count(*), min(c.id) "
        "FROM call c "
        "JOIN node n ON n.id = c.node LEFT JOIN call own ON own.id = c.forward LEFT JOIN run r1 ON r1.id = own.run "
        "LEFT JOIN call used ON used.id = c.tape LEFT JOIN run r2 ON r2.id = used.run "
        "WHERE c.kind = 'gradient' AND c.forward IS NOT NULL "
        "AND (c.tape <> c.forward OR (c.tape IS NULL AND c.status = 'error')) "
        "GROUP BY n.id, c.tape IS NULL, r1.site, r2.site ORDER BY n.id, min(c.id)"
    )
    told = {node for node, _, _ in facts.notices["mapped-gradient"]}  # the user's gradient asks for no tape
    # Two lines of one graph may each have got the other's.
    rows = [(*row, sites(reader, row[:1])) for row in rows if row[0] not in told]
    for group in together(rows, 4, 5, 6, 9):
        node, body, file, line, missing, _, _, _, first, where = group[0]
        counts = {row[0]: row[7] for row in group}
        own, used = reader.rows("SELECT forward, tape FROM call WHERE id = ?", (first,))[0]
        noticed = _facts(facts, first, facts.nodes[node])
        mine = started(reader, own)
        often = f"{times(sum(counts.values()))}{spread(facts, counts)}"
        name = facts.name(facts.nodes[node])
        if missing:
            yield Finding(
                "missing-tape", "error", node, (first, own),
                f"the gradient of {body} failed {often}{where}. TensorFlow keeps one tape for this py_function, and "
                "another gradient had used it up",
                facts.exact(), file, line, several(counts),
                (f"gradient call #{first} of call #{own}{mine}: KeyError{_true(noticed, name)}",),
            )  # fmt: skip
            continue
        runs = [run for (run,) in reader.rows("SELECT run FROM call WHERE id IN (?, ?)", (own, used))]
        same = len(runs) == 2 and runs[0] is not None and runs[0] == runs[1]
        theirs = " of the same run" if same else started(reader, used)
        values = f": it gave {noticed['stock']}, the true gradient is {noticed['true']}" if noticed.get("stock") else ""
        yield Finding(
            "wrong-tape", "error", node, (first, own, used),
            f"the gradient of {body} was another call's {often}{where}. TensorFlow keeps one tape for this "
            "py_function, and a later call had replaced it",
            facts.exact(), file, line, several(counts),
            (f"gradient call #{first} of call #{own}{mine} used the tape of call #{used}{theirs}{values}",),
        )  # fmt: skip
    yield from _unpaired(facts)


def _unpaired(facts: Facts) -> Iterator[Finding]:
    """Gradients of graphs traced before, and of pfor: their calls are not known, only that no tape was left."""
    for node, count, first in facts.reader.rows(
        "SELECT c.node, count(*), min(c.id) FROM call c NOT INDEXED CROSS JOIN failure f ON f.id = c.failure "
        "CROSS JOIN node n ON n.id = c.node "
        "WHERE c.kind = 'gradient' AND c.forward IS NULL AND f.type = 'KeyError' AND f.message LIKE '%pyfunc_%' "
        "AND n.origin = 'user' GROUP BY c.node"
    ):
        known = facts.nodes[node]
        yield Finding(
            "missing-tape", "error", node, (first,),
            f"the gradient of {known.body} failed {times(count)}{sites(facts.reader, (node,))}. TensorFlow keeps one "
            "tape for this py_function, and another gradient had used it up, as in a jacobian",
            facts.exact(), known.file, known.line,
            evidence=(f"gradient call #{first}: KeyError",),
        )  # fmt: skip


def _facts(facts: Facts, call: int, node: Node) -> dict[str, str]:
    """What was noticed of a gradient call, with the names of the inputs where there are several."""
    rows = facts.reader.rows("SELECT facts FROM notice WHERE rule = 'wrong-tape' AND call = ?", (call,))
    noticed = dict(json.loads(rows[0][0])) if rows else {}
    names = [node.paths[one] for one in noticed.get("wanted", ()) if one < len(node.paths)]
    for key in ("stock", "true"):
        values = (noticed.get(key) or "").split("; ")
        if len(names) == len(values) > 1:
            noticed[key] = ", ".join(f"{value} for {name}" for name, value in zip(names, values))
    return noticed


def _true(noticed: dict[str, str], name: str) -> str:
    true = noticed.get("true")
    return f"; the true gradient of {name} is {true}" if true and not true.startswith("not known") else ""
