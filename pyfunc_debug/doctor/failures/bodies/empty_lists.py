"""A list or an array that stayed empty, where the line stacks it or asks for its largest: which loop filled none."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.bodies import given_sizes
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, is_generator
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import evaluation, shapes
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import failed_node
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray, lookup

_SAID = re.compile(
    r"need at least one array to (?:stack|concatenate)|(?:max|min)\(\) (?:arg|iterable argument) is (?:an )?empty|"
    r"zero-size array to reduction operation (?:maximum|minimum)|attempt to get arg(?:max|min) of an empty sequence|"
    r"Cannot choose from an empty|'?a'? cannot be empty unless no samples are taken|mean requires at least one data"
)

_DEEPEST = 6
_NONE = "Return what stands for none where {} is empty, zeros of the same shape, or leave such elements out."
_LARGER = "Make the array at least as large as a piece first: resize it, or pad it with np.pad."


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line of a body or of a generator was given something without elements."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data or not _SAID.search(situation.message):
        return None
    for name in dict.fromkeys(names(statement)):
        value = lookup(ast.Name(name, ast.Load()), spot)
        if type(value) in (list, tuple) and not value and spot.function is not None:
            found = _filled(name, spot, spot.function)
            return found if found is None or found.edit is not None else _with_zeros(name, found, situation, statement)
        if is_ndarray(value) and value.size == 0:
            return _selected(name, value, situation, spot, statement)
    return None


def asks_for_elements(message: str) -> bool:
    """Whether an exception says that something was given nothing to take an element of."""
    return _SAID.search(message) is not None


def _filled(name: str, spot: Spot, function: Function) -> Explanation | None:
    """A list that loops append to: the loop whose range has nothing, or the `if` that was never true."""
    added = [
        one for one in ast.walk(function)
        if isinstance(one, ast.Call) and dotted(one.func) in (f"{name}.append", f"{name}.extend")
    ]  # fmt: skip
    if not added:
        return None
    around = [one for one in spot.source.around(added[0]) if isinstance(one, (ast.For, ast.If))]
    for one in reversed(around):
        if isinstance(one, ast.For) and (found := _range(name, one, spot)) is not None:
            return found
    for one in reversed(around):
        if isinstance(one, ast.For):
            value = evaluation.computed(one.iter, spot)
            size = len(value) if hasattr(value, "__len__") and type(value).__module__ in ("builtins", "numpy") else None
            if size == 0:
                cause = f"{name} stayed empty: the loop over {short(spot.source.text(one.iter), 40)} has nothing."
                return Explanation(RULE, spot.file, one.lineno, cause, None, _NONE.format(name))
    asked = next((one for one in around if isinstance(one, ast.If)), None)
    if asked is None:
        return None
    cause = f"{name} stayed empty: `if {short(spot.source.text(asked.test), 44)}` was true for none."
    return Explanation(RULE, spot.file, asked.lineno, cause, None, _NONE.format(name))


def _with_zeros(name: str, found: Explanation, situation: Situation, statement: ast.stmt) -> Explanation:
    """The same with zeros returned where nothing was found, if all other calls returned one array of one shape."""
    spot, node = situation.last, failed_node(situation)
    known = shapes.recorded(situation.rows, node.id)[0] if node is not None else {}
    if (
        spot is None
        or node is None
        or len(node.tout) != 1
        or 0 not in known
        or None in known[0]
        or found.advice == _LARGER
    ):
        return found
    function = spot.function
    if function is None or getattr(function, "name", "") != node.body.rpartition(".")[2] or is_generator(function):
        return found
    blanks = indent_of(spot.source.lines[statement.lineno - 1])
    zeros = f'{alias(spot, "numpy")}.zeros({list(known[0])}, "{node.tout[0]}")'
    lines = (f"{blanks}if not {name}:", f"{blanks}    return {zeros}")
    edit = Edit(spot.file, statement.lineno, statement.lineno - 1, lines)
    cause = f"{found.cause} Zeros can stand for it: other calls returned {list(known[0])}."
    return Explanation(RULE, found.file, found.line, cause, edit, "", "likely")


def _range(name: str, loop: ast.For, spot: Spot) -> Explanation | None:
    """`range(0, h - size, step)` of an array that is not larger than what is cut out."""
    call = loop.iter
    if not isinstance(call, ast.Call) or dotted(call.func) != "range" or call.keywords or not call.args:
        return None
    known = [evaluation.computed(one, spot) for one in call.args]
    if not all(isinstance(one, int) for one in known) or len(range(*known)) > 0:
        return None
    end, value = (call.args[0], known[0]) if len(call.args) == 1 else (call.args[1], known[1])
    text = spot.source.text
    shown = ", ".join(map(str, known))
    cause = f"{name} stayed empty: {short(text(call), 40)} (line {loop.lineno}) is range({shown}), which has nothing."
    if value == 0 and isinstance(end, ast.BinOp) and isinstance(end.op, ast.Sub):
        cause += f" The array is just as large as a piece, and range leaves {text(end)} out."
        edit = edit_of(spot.file, spot.source.replaced({end: f"{text(end)} + 1"}))
        return Explanation(RULE, spot.file, loop.lineno, cause, edit, "", "likely")
    return Explanation(RULE, spot.file, loop.lineno, cause, None, _LARGER)


def _selected(name: str, value: Any, situation: Situation, spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`boxes.max()` of an array of no rows: a filter left none, or the element has none."""
    reduced = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] in ("max", "min", "amax", "amin")]
    cause = f"{name} has no elements here, {tuple(value.shape)}: there is no largest or smallest of none."
    if len(reduced) == 1 and not any(one.arg == "initial" for one in reduced[0].keywords):
        if dotted(reduced[0].func) in ("max", "min"):
            return None
        cause += " initial= says what it is then."
        edit = edit_of(
            spot.file, spot.source.replaced({reduced[0]: spot.source.with_argument(reduced[0], "initial=0")})
        )
        return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
    root = _emptied(name, spot, statement.lineno, 0)
    cause = f"{name} has no elements here: its shape is {tuple(value.shape)}."
    if root is not None and root[0] != name:
        where = f" of line {root[1]}" if root[1] else ""
        cause = f"{name} has no elements here, {tuple(value.shape)}: {root[0]}{where} is empty."
    elif root is not None:
        cause = f"{name} has no elements here, {tuple(value.shape)}: line {root[1]} left none."
    call = given_sizes.failed_call(situation, spot, statement)
    cause += f" {call}" if call else ""
    return Explanation(RULE, spot.file, spot.line, cause, None, "Ask for len() first, or leave such elements out.")


def _emptied(name: str, spot: Spot, line: int, deep: int) -> tuple[str, int] | None:
    """The first name without elements that another was computed of, and its line: 0 of a parameter, None of neither."""
    if spot.function is None or isinstance(spot.function, ast.Lambda) or deep > _DEEPEST:
        return None
    made = [
        one for one in own_nodes(spot.function)
        if isinstance(one, ast.Assign) and one.lineno < line and [dotted(target) for target in one.targets] == [name]
    ]  # fmt: skip
    if not made:
        return None
    last = max(made, key=lambda one: one.lineno)
    for each in names(last.value):
        value = spot.variables.get(each)
        empty = (is_ndarray(value) and value.size == 0) or (type(value) in (list, tuple) and not value)  # type: ignore[union-attr]
        if empty and each != name:
            return _emptied(each, spot, last.lineno, deep + 1) or (each, 0)
    return name, last.lineno
