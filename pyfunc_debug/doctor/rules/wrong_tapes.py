"""Gradients that TensorFlow computed from another call's tape, or for which it found none."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pyfunc_debug.doctor.bodies import several, spread, times, together
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.locations import sites, started
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.records import Finding

_FIX = 'record(gradients="exact") or pyfunc_debug.exact_gradients() gives each call its own gradient, without retracing'

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
    rows = [(*row, sites(reader, row[:1])) for row in rows]  # two lines of one graph may each have got the other's
    for group in together(rows, 4, 5, 6, 9):
        node, body, file, line, missing, _, _, _, first, where = group[0]
        counts = {row[0]: row[7] for row in group}
        own, used = reader.rows("SELECT forward, tape FROM call WHERE id = ?", (first,))[0]
        told = _facts(reader, first)
        mine = started(reader, own)
        often = f"{times(sum(counts.values()))}{spread(counts)}"
        if missing:
            yield Finding(
                "missing-tape", "error", node, (first, own),
                f"the gradient of {body} failed {often}: TensorFlow had already used up or replaced the tape of call "
                f"#{own}{mine} (KeyError in gradient call #{first}){_true(told)}{where}",
                _FIX, file, line, several(counts),
            )  # fmt: skip
            continue
        runs = [run for (run,) in reader.rows("SELECT run FROM call WHERE id IN (?, ?)", (own, used))]
        same = len(runs) == 2 and runs[0] is not None and runs[0] == runs[1]
        theirs = " of the same run" if same else started(reader, used)
        values = f": it gave {told['stock']}, the true gradient is {told['true']}" if told.get("stock") else ""
        yield Finding(
            "wrong-tape", "error", node, (first, own, used),
            f"the gradient of {body} was another call's {often}: gradient call #{first} belongs to call #{own}{mine}, "
            f"but TensorFlow used the tape of call #{used}{theirs}, which had replaced it{values}{where}",
            _FIX, file, line, several(counts),
        )  # fmt: skip


def _facts(reader: Reader, call: int) -> dict[str, str]:
    rows = reader.rows("SELECT facts FROM notice WHERE rule = 'wrong-tape' AND call = ?", (call,))
    return dict(json.loads(rows[0][0])) if rows else {}


def _true(facts: dict[str, str]) -> str:
    return f"; the true gradient is {facts['true']}" if facts.get("true") else ""
