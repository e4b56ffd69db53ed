"""Where NaN or Inf begins: bodies that turn finite inputs into values that are not."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.doctor.bodies import several, spread, together
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("nan-born",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body whose outputs hold NaN or Inf although its inputs were finite."""
    reader = facts.reader
    rows = reader.rows(
        "WITH bad AS (SELECT call, role, sum(nan) AS nan, sum(inf) AS inf FROM value "
        "WHERE nan > 0 OR inf > 0 GROUP BY call, role) "
        "SELECT n.id, n.body, n.file, n.line, count(*), min(c.id), sum(o.nan), sum(o.inf) FROM bad o "
        "JOIN call c ON c.id = o.call JOIN node n ON n.id = c.node "
        "LEFT JOIN bad i ON i.call = o.call AND i.role = 'input' "
        "WHERE o.role = 'output' AND i.call IS NULL AND c.kind = 'forward' AND n.origin = 'user' "
        "AND NOT EXISTS (SELECT 1 FROM value u WHERE u.call = c.id AND u.role = 'input' AND u.nan IS NULL "
        "AND u.note <> '') GROUP BY n.id"  # an input that was dropped or cannot be read may have had them
    )
    for group in together(rows):
        node, body, file, line, _, first, *_ = min(group, key=lambda row: int(row[5]))
        counts = {row[0]: row[4] for row in group}
        count, nan, inf = (sum(row[column] or 0 for row in group) for column in (4, 6, 7))
        what = " and ".join(name for name, amount in (("NaN", nan), ("Inf", inf)) if amount)
        calls = "1 call" if count == 1 else f"{count:,} calls"
        yield Finding(
            "nan-born", "warning", node, (first,),
            f"{body} returned {what} from finite inputs in {calls}{spread(counts)}, first in call #{first}",
            f"see its inputs: `pyfunc-debug show FILE --call {first}`, `%pyfunc_show {first}`", file, line,
            several(counts),
        )  # fmt: skip
