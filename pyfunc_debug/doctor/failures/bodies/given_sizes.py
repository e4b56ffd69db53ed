"""Sizes that come with an element, as an argument of the body: a larger array cures nothing then.

Said is what the failing call was given, by which the element is found in the data.
"""

from __future__ import annotations

import ast
import json
from typing import Any

from pyfunc_debug.doctor.failures.reading.nodes import Node, argument, failed_node, site_spot
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import names, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import is_ndarray

_DEEPEST = 4
_MOST = 4
"""Inputs that are said."""
_WIDTH = 40
_ALONE = 90
"""Characters of an input, and of one that is alone."""
_NUMBERS = 6
"""Of an array that is said as it is."""
_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def of_data(made: ast.expr | None, owner: ast.expr, spot: Spot, situation: Situation) -> bool:
    """Whether how long an array is comes with the element.

    Args:
      made: The size that the array was made with, in the line that made it; None where that is not known.
      owner: The array, as the failing line names it.
      spot: The frame of the failing line.
      situation: The failure.
    """
    function = spot.function
    if function is None:
        return False
    asked = made if made is not None else _root(owner)
    given = _given(asked, spot, set(parameters(function)) - {"self", "cls"}, 0)
    return bool(given) and not all(_is_constant(name, situation) for name in given)


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _given(node: ast.expr, spot: Spot, known: set[str], deep: int) -> set[str]:
    """The parameters that an expression is computed of, also by names that the function assigns once."""
    found: set[str] = set()
    for name in names(node):
        if name in known:
            found.add(name)
            continue
        made = [
            one.value for one in ast.walk(spot.function or spot.source.tree)
            if isinstance(one, ast.Assign) and name in _bound(one)
        ]  # fmt: skip
        if len(made) == 1 and deep < _DEEPEST:
            found |= _given(made[0], spot, known, deep + 1)
    return found


def _bound(one: ast.Assign) -> set[str]:
    return {part.id for target in one.targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def _is_constant(name: str, situation: Situation) -> bool:
    """Whether a body's argument is one number for all elements; one that it has by a default is, too."""
    node = failed_node(situation)
    if node is None:
        return True
    rows = situation.rows(
        "SELECT DISTINCT v.dtype, v.shape, v.min FROM value v JOIN call c ON c.id = v.call WHERE c.node = ? AND "
        "c.kind = 'forward' AND v.role = 'input' AND v.path = ? LIMIT 2",
        (node.id, name),
    )
    if len(rows) != 1 or rows[0][0] not in _WHOLE or rows[0][1] != "[]":
        return not rows
    function, call = node.function(), node.call()
    inp = argument(call, 1, "inp") if call is not None else None
    place = parameters(function).index(name) if function is not None and name in parameters(function) else -1
    if not isinstance(inp, (ast.List, ast.Tuple)) or not 0 <= place < len(inp.elts):
        return _calls(situation, node) > 1
    written, there = inp.elts[place], site_spot(node, situation)
    number = there.value(written.id) if isinstance(written, ast.Name) and there is not None else None
    return isinstance(written, ast.Constant) or type(number) is int or _calls(situation, node) > 1


def _calls(situation: Situation, node: Node) -> int:
    rows = situation.rows("SELECT count(*) FROM call WHERE node = ? AND kind = 'forward'", (node.id,))
    return int(rows[0][0]) if rows else 0


def others_passed(situation: Situation) -> bool:
    """Whether the body returned in calls before one failed."""
    node = failed_node(situation)
    rows = situation.rows(
        "SELECT count(*) FROM call WHERE node = ? AND kind = 'forward' AND status = 'ok' AND id < "
        "(SELECT min(id) FROM call WHERE node = ? AND status = 'error')",
        (node.id, node.id),
    ) if node is not None else []  # fmt: skip
    return bool(rows) and int(rows[0][0]) > 0


def _varying(node: Node, situation: Situation) -> set[str]:
    """The inputs that are not the same in all calls."""
    rows = situation.rows(
        "SELECT v.path FROM value v JOIN call c ON c.id = v.call WHERE c.node = ? AND c.kind = 'forward' AND "
        "v.role = 'input' GROUP BY v.path HAVING count(DISTINCT v.text || coalesce(v.shape, '')) > 1",
        (node.id,),
    )
    return {path for (path,) in rows}


def failed_call(situation: Situation, spot: Spot, statement: ast.stmt) -> str:
    """`Call #3 was given line '0-0 4-9', size 6; pair is '4-9'.`; "" where the recording does not say."""
    node = failed_node(situation)
    calls = situation.rows(
        "SELECT c.id FROM call c JOIN failure f ON f.id = c.failure WHERE c.node = ? AND f.type = ? AND f.message = ? "
        "ORDER BY c.id",
        (node.id, situation.kind, str(situation.inner)),
    ) if node is not None else []  # fmt: skip
    for (call,) in calls:
        rows = situation.rows(
            "SELECT path, dtype, shape, min, text FROM value WHERE call = ? AND role = 'input' ORDER BY position",
            (call,),
        )
        if not rows or any(_differs(path, shape, least, spot) for path, _, shape, least, _ in rows):
            continue
        varying = _varying(node, situation) if node is not None else set()
        rows = [one for one in rows if one[0] in varying] or rows
        wide = _WIDTH if len(rows) > 1 else _ALONE
        few = {path: numbers for path, _, shape, least, _ in rows if (numbers := _few(spot, path, shape, least))}
        rows.sort(key=lambda one: one[2] != "[]" and one[0] not in few)
        said = [
            f"{path} {few.get(path) or _shown(dtype, shape, text, wide)}"
            for path, dtype, shape, _, text in rows[:_MOST]
        ]
        inside = [
            f"{name} is {short(repr(value), 24)}"
            for name in _of_loops(spot, statement)
            if isinstance(value := spot.variables.get(name), (str, bytes)) or type(value) in (int, float)
        ]
        more = f"; {', '.join(inside[:2])}" if inside else ""
        return f"Call #{call} was given {', '.join(said)}{more}."
    return ""


def _differs(path: str, shape: str | None, least: Any, spot: Spot) -> bool:
    """Whether a call's number is another than the frame has under that name: it is another call's."""
    value: Any = spot.variables.get(path)
    number = value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value
    return shape == "[]" and least is not None and type(number) in (int, float) and number != least


def _few(spot: Spot, path: str, shape: str | None, least: Any) -> str:
    """`[320, 40, 1]` of an array of a few numbers that the frame still has; "" of any other."""
    value: Any = spot.variables.get(path)
    if not is_ndarray(value) or value.ndim != 1 or value.dtype.kind not in "iuf" or not 0 < value.size <= _NUMBERS:
        return ""
    same = shape == json.dumps(list(value.shape)) and least is not None and value.min() == least
    return f"[{', '.join(f'{one:.6g}' for one in value.tolist())}]" if same else ""


def _shown(dtype: str, shape: str | None, text: str, wide: int) -> str:
    """`'0-0 4-9'`, `6`, and of an array its dtype and shape as well."""
    return short(text.removeprefix(f"{dtype}[] ") if shape == "[]" else text, wide)


def _of_loops(spot: Spot, statement: ast.stmt) -> list[str]:
    """The names of the loops around a line, without those of the line itself."""
    loops = [one for one in spot.source.around(statement) if isinstance(one, ast.For)]
    bound = [part.id for one in loops for part in ast.walk(one.target) if isinstance(part, ast.Name)]
    return [one for one in bound if one not in names(statement)]
