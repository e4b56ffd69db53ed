"""Elements that padded_batch refuses for their number of axes, where the body in front makes another one now and then.

Another padded shape would refuse the other elements: an image without boxes gives `[0]` beside `[2, 4]`, and of a list
that Tout does not declare TensorFlow keeps the first number.
"""

from __future__ import annotations

import ast
import json

from pyfunc_debug.doctor.bodies.replacement import definition
from pyfunc_debug.doctor.failures.datasets.padded_ranks import RANK
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import Node, return_value, user_nodes
from pyfunc_debug.doctor.failures.reading.shapes import Shape
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import read
from pyfunc_debug.doctor.failures.reading.symbols import alias, sizes_of

RULE = "output-contract"
_NOTHING = (0,)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body returned elements of several ranks, or a list of which one number was kept."""
    found = RANK.search(situation.message)
    if found is None or situation.body or situation.last is None:
        return None
    ranks = {int(found[2]), int(found[3])}
    for node in user_nodes(situation):
        told = _empty(situation, node, ranks) or (_dropped(situation, node) if int(found[3]) == 0 else None)
        if told is not None:
            return told
    return None


def _empty(situation: Situation, node: Node, ranks: set[int]) -> Explanation | None:
    """`[0]` beside `[1, 4]` and `[2, 4]`."""
    rows = situation.rows(
        "SELECT v.position, v.shape, min(c.id) FROM value v JOIN call c ON c.id = v.call WHERE c.node = ? AND "
        "c.kind = 'forward' AND v.role = 'output' AND v.shape IS NOT NULL GROUP BY v.position, v.shape",
        (node.id,),
    )
    for place in sorted({row[0] for row in rows}):
        shapes: dict[Shape, int] = {tuple(json.loads(text)): call for position, text, call in rows if position == place}
        others = [one for one in shapes if one != _NOTHING]
        if _NOTHING not in shapes or len({len(one) for one in others}) != 1 or ranks != {1, len(others[0])}:
            continue
        inner = others[0][1:]
        if any(one[1:] != inner for one in others) or not inner or 0 in inner:
            continue
        cause = (
            f"{node.body} returned [0] in call #{shapes[_NOTHING]}, which has nothing to return, and "
            f"{sizes_of(others[0])} in others: an empty array has to have as many axes, {sizes_of((0, *inner))}."
        )
        sizes = ", ".join(map(str, (-1, *inner)))
        return _returned(situation, node, place, cause, f".reshape({{}}, ({sizes}))")
    return None


def _dropped(situation: Situation, node: Node) -> Explanation | None:
    """A list for one dtype of Tout."""
    rows = situation.rows(
        "SELECT shown, count, declared, first FROM returned WHERE node = ? AND count > 1 ORDER BY id LIMIT 1",
        (node.id,),
    )
    if not rows or len(json.loads(rows[0][2] or "[]")) != 1:
        return None
    shown, _, declared, first = rows[0]
    dtype = json.loads(declared)[0]
    cause = (
        f"{node.body} returned a {shown} in call #{first}, and Tout declares one {dtype}: TensorFlow kept the first "
        "number, without axes, and dropped the others. An array of them is one tensor."
    )
    return None if dtype == "string" else _returned(situation, node, 0, cause, f".asarray({{}}, {{np}}.{dtype})")


def _returned(situation: Situation, node: Node, place: int, cause: str, made: str) -> Explanation | None:
    """The explanation, with what the body returns as another array."""
    function, spot = definition(node.file, node.line), situation.last
    value = return_value(function) if function is not None else None
    part = value.elts[place] if isinstance(value, ast.Tuple) and place < len(value.elts) else value
    if part is None or node.file is None or spot is None:
        return None
    source, np = read(node.file), alias(spot, "numpy")
    new = f"{np}{made.format(source.text(part), np=np)}"
    edit = edit_of(node.file, source.replaced({part: new}))
    return Explanation(RULE, node.file, part.lineno, cause, edit, "" if edit else f"Return {new}.")
