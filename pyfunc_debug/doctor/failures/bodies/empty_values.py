"""Arrays without values: what a body made of an empty batch has lost its axes, and an empty clip cannot be padded."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from pyfunc_debug.doctor.bodies.texts_of_bytes import made
from pyfunc_debug.doctor.failures.bodies.output_contract import RULE as OUTPUT
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE as INPUT
from pyfunc_debug.doctor.failures.pastes.body_edits import is_generator
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import Node, argument, failed_node, inputs_of, user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, parameters, read, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_ndarray, sizes_of

_UNLIKE = re.compile(
    r"Incompatible shapes|required broadcastable shapes|must be broadcastable|Dimensions must be equal"
)
_EMPTY = re.compile(
    r"can't extend empty axis|zero-size array|of an empty sequence|index 0 is out of bounds for axis 0 with size 0"
    r"|cannot reshape array of size 0|!_src\.empty\(\)|empty (?:array|slice|sequence|input)|0 sample\(s\)",
    re.IGNORECASE,
)
_FLAT = re.compile(
    r"too many indices for array: array is 1-dimensional|must have same number of dimensions"
    r"|axis 1 is out of bounds for array of dimension 1|expected 2, got 1\)|tuple index out of range"
)
"""What is said of an array of one dimension where two are taken."""
_SHOWN = (int, float, str, bool)
_LONGEST = 40


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body was given, or made, an array without values."""
    if situation.data:
        found = _in_body(situation) if _EMPTY.search(situation.message) else None
        return _lost_columns(situation) if found is None and _FLAT.search(situation.message) else found
    return _lost_axes(situation) if _UNLIKE.search(situation.text) else None


def _lost_axes(situation: Situation) -> Explanation | None:
    """`np.array([f(row) for row in rows])` of no rows has the shape [0], whatever f gives."""
    for node in user_nodes(situation):
        found = _last_call(situation, node)
        call, function = node.call(), node.function()
        if found is None or call is None or function is None or node.site is None:
            continue
        name, shape = found
        inp = argument(call, 1, "inp")
        given = inp.elts if isinstance(inp, (ast.List, ast.Tuple)) else []
        cause = (
            f"{node.opening} was given no rows ({name} {sizes_of(shape)}), and gave back the shape [0]: an array of an "
            "empty list has lost the other axes. "
        )
        if len(given) != 1 or not isinstance(given[0], ast.Name) or not _same_shape(situation, shape):
            advice = (
                f"Let {node.called} give its result the axes that it has for other batches: reshape(len({name}), ...)."
            )
            return Explanation(OUTPUT, *node.site, f"{cause}Only an empty batch does so.", None, advice)
        statement = node.source.statement(call.lineno)
        target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
        spot = situation.last
        if statement is None or spot is None or not isinstance(target, ast.Name):
            return None
        tf, after = alias(spot, "tensorflow"), (statement.end_lineno or statement.lineno) + 1
        blanks = indent_of(node.source.lines[statement.lineno - 1])
        line = f"{blanks}{target.id} = {tf}.reshape({target.id}, {tf}.shape({given[0].id}))"
        return Explanation(
            OUTPUT, node.site[0], statement.lineno, f"{cause}Its result has the shape of {given[0].id}.",
            Edit(node.site[0], after, after - 1, (line,)),
        )  # fmt: skip
    return None


def _last_call(situation: Situation, node: Node) -> tuple[str, tuple[int, ...]] | None:
    """The input without rows of a node's last call, whose one result is [0]: its name, and its shape."""
    rows = situation.rows(
        "SELECT id FROM call WHERE node = ? AND kind = 'forward' AND failure IS NULL ORDER BY id DESC LIMIT 1",
        (node.id,),
    )
    if not rows:
        return None
    (number,) = rows[0]
    values = situation.rows("SELECT role, path, shape FROM value WHERE call = ? AND shape IS NOT NULL", (number,))
    results = [tuple(json.loads(shape)) for role, _, shape in values if role == "output"]
    inputs = [(str(path), tuple(json.loads(shape))) for role, path, shape in values if role == "input"]
    empty = [(path, shape) for path, shape in inputs if len(shape) > 1 and shape[0] == 0]
    return empty[0] if results == [(0,)] and len(empty) == 1 else None


def _same_shape(situation: Situation, shape: tuple[int, ...]) -> bool:
    """Whether the result met what has the shape of the input: in the failing op."""
    sizes = f"[{','.join(map(str, shape))}]"
    pair = re.search(r"Incompatible shapes: (\[[\d,]*\]) vs\. (\[[\d,]*\])", situation.text)
    if pair is not None:
        return {pair[1], pair[2]} == {sizes, "[0]"}
    return f"[0] vs. {sizes}" in situation.text or f"{sizes} vs. [0]" in situation.text


def _in_body(situation: Situation) -> Explanation | None:
    """What is empty in the outermost frame of a body that holds it, with the line that leaves it out of a generator."""
    for spot in situation.spots:
        statement, function = spot.statement, spot.function
        if statement is None or function is None:
            continue
        read_here = dict.fromkeys(
            one.id for one in ast.walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
        )
        empty = [name for name in read_here if name in spot.variables and _is_empty(spot.variables[name])]
        made = [found for name in empty if (found := _made(function, name, spot.line)) is not None]
        if len(empty) != 1 or len(made) != 1:
            continue
        return _explanation(situation, spot, statement, function, empty[0], made[0])
    return None


def _lost_columns(situation: Situation) -> Explanation | None:
    """`np.asarray(boxes)` of an empty list has one dimension, where rows of four numbers would have made it two."""
    if _garbles_text(situation):
        return None
    for spot in reversed(situation.spots):
        statement = spot.statement
        read_here = (
            {one.id for one in ast.walk(statement) if isinstance(one, ast.Name)} if statement is not None else ()
        )
        for name in sorted(read_here):
            value: Any = spot.variables.get(name)
            if not is_ndarray(value) or value.shape != (0,):
                continue
            for file in dict.fromkeys(one.file for one in reversed(situation.spots)):
                found = _of_list(read(file), name)
                if found is not None:
                    return _with_columns(situation, spot, (file, *found), name)
    return None


def _garbles_text(situation: Situation) -> bool:
    """Whether the body makes text of its bytes by `str`: what it reads of that is not what the data have."""
    node = failed_node(situation)
    function = node.function() if node is not None else None
    if node is None or function is None or node.file is None:
        return False
    strings = {name: bool(one.shape) for name, one in inputs_of(node, situation).items() if one.dtype == "string"}
    return any(True for _ in made(function, strings, node.kind == "py_function", read(node.file).tree))


def _of_list(source: Source, name: str) -> tuple[ast.Call, int] | None:
    """The one call that makes an array of a list of rows and gives it a name; and how many numbers a row has."""
    found: list[tuple[ast.Call, int]] = []
    for one in ast.walk(source.tree):
        if not isinstance(one, ast.Assign) or name not in map(ast.unparse, one.targets):
            continue
        call = one.value
        made = isinstance(call, ast.Call) and dotted(call.func).rpartition(".")[2] in ("array", "asarray")
        if isinstance(call, ast.Call) and made and call.args:
            around = next((each for each in source.around(one) if isinstance(each, ast.FunctionDef)), source.tree)
            width = _width(call.args[0], around)
            found += [(call, width)] if width else []
    return found[0] if len(found) == 1 else None


def _width(rows: ast.expr, around: ast.AST) -> int:
    """How many numbers each row of a list has, as it is written; 0 where that is not known."""
    written: list[ast.expr] = [rows.elt] if isinstance(rows, ast.ListComp) else []
    if isinstance(rows, ast.Name):
        for one in ast.walk(around):
            if isinstance(one, ast.Call) and dotted(one.func) == f"{rows.id}.append" and len(one.args) == 1:
                written.append(one.args[0])
            elif isinstance(one, ast.Assign) and rows.id in map(ast.unparse, one.targets):
                written += [one.value.elt] if isinstance(one.value, ast.ListComp) else []
    flat = all(
        isinstance(one, (ast.List, ast.Tuple)) and not any(isinstance(part, (ast.List, ast.Tuple, ast.Starred))
        for part in one.elts) for one in written
    )  # fmt: skip
    widths = {len(one.elts) for one in written if isinstance(one, (ast.List, ast.Tuple))}
    return widths.pop() if written and flat and len(widths) == 1 else 0


def _with_columns(situation: Situation, spot: Spot, made: tuple[str, ast.Call, int], name: str) -> Explanation | None:
    file, call, width = made
    source = read(file)
    texts = [
        f"{one} {value!r}" for each in reversed(situation.spots) for one, value in each.variables.items()
        if type(value) in (str, bytes) and 0 < len(value) <= _LONGEST and each.function is not None
        and one in parameters(each.function)
    ]  # fmt: skip
    value: Any = spot.variables[name]
    cause = (
        f"{name} is {value.dtype.name}[0]: its list was empty{f' for {texts[0]}' if texts else ''}, and "
        f"an array of that has one dimension, where line {spot.line} needs two. reshape keeps the {width} columns."
    )
    edit = edit_of(file, source.replaced({call: f"{source.text(call)}.reshape(-1, {width})"}))
    return None if edit is None else Explanation(INPUT, spot.file, spot.line, cause, edit, "", "likely")


def _is_empty(value: Any) -> bool:
    return is_ndarray(value) and value.size == 0


def _made(function: ast.AST, name: str, line: int) -> ast.Assign | None:
    """The last assignment above a line that gave a name its value, not by way of itself."""
    found = [
        one for one in ast.walk(function)
        if isinstance(one, ast.Assign) and one.lineno < line
        and any(part.id == name for target in one.targets for part in ast.walk(target) if isinstance(part, ast.Name))
    ]  # fmt: skip
    return found[-1] if found else None


def _explanation(
    situation: Situation, spot: Spot, statement: ast.stmt, function: Any, name: str, made: ast.Assign
) -> Explanation:
    source, value = spot.source, spot.variables[name]
    text = short(source.text(made.value), 40)
    loop = next((one for one in source.around(made) if isinstance(one, ast.For)), None)
    counted = [
        f"{one.id} {spot.variables[one.id]!r}" for one in (ast.walk(loop.target) if loop is not None else ())
        if isinstance(one, ast.Name) and type(spot.variables.get(one.id)) in _SHOWN
    ]  # fmt: skip
    where = f" where {' and '.join(counted[:2])} came" if counted else ""
    cause = (
        f"`{text}` (line {made.lineno}) gave no values: {name} is {value.dtype.name}{sizes_of(value.shape)}{where}. "
        f"Line {situation.spots[-1].line} needs some."
    )
    inside = loop is not None and any(one is loop for one in source.around(statement))
    if inside and is_generator(function):
        after = (made.end_lineno or made.lineno) + 1
        blanks = indent_of(source.lines[made.lineno - 1])
        edit = Edit(spot.file, after, after - 1, (f"{blanks}if not {name}.size:", f"{blanks}    continue"))
        return Explanation(INPUT, spot.file, made.lineno, f"{cause} This leaves such elements out.", edit, "", "likely")
    advice = f"Look why it is empty there, and return what stands for it, as zeros: `if not {name}.size: return ...`."
    return Explanation(INPUT, spot.file, made.lineno, cause, None, advice, "likely")
