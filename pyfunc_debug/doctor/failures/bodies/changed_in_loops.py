"""A dict, a set or a list that changes while a loop goes over it, and lists that are asked for an array."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray, lookup

_SAID = re.compile(r"(dictionary|Set|OrderedDict|deque) (?:changed size|keys changed|mutated) during iteration")
_TRUTH = "The truth value of an array with more than one element is ambiguous"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if that is what the failing line of a body or a generator did."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not situation.data:
        return None
    said = _SAID.search(situation.message)
    if said is not None:
        return _loop(spot, statement, "dict" if said[1] in ("dictionary", "OrderedDict") else said[1].lower())
    return _asked(spot, statement) if _TRUTH in situation.message else None


def _loop(spot: Spot, statement: ast.stmt, kind: str) -> Explanation | None:
    given = [statement.iter] if isinstance(statement, ast.For) else []
    given += [one.iter for one in ast.walk(statement) if isinstance(one, ast.comprehension)]
    if len(given) != 1:
        return None
    text = spot.source.text(given[0])
    owner = text.partition(".")[0]
    body = statement.body if isinstance(statement, ast.For) else []
    here = any(
        isinstance(one, ast.Name) and one.id == owner for each in body for one in ast.walk(each)
    )  # fmt: skip
    who = "the loop itself" if here else "another call, which runs at the same time,"
    cause = f"{who} adds to the {kind} {short(owner, 30)}, or takes from it, while the loop goes over it. "
    cause += "A list of it stays as it is."
    return Explanation(RULE, spot.file, spot.line, cause, in_place(spot, {given[0]: f"list({text})"}))


def _asked(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`rows.remove(row)`, `rows.index(row)` and `row in rows`, of arrays or of what has arrays in it."""
    for call in calls(statement):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name not in ("remove", "index", "count") or not isinstance(call.func, ast.Attribute) or len(call.args) != 1:
            continue
        rows, row = call.func.value, call.args[0]
        if type(lookup(rows, spot)) not in (list, tuple):
            continue
        text = spot.source.text
        cause = f"{name} compares {short(text(row), 30)} with each of {short(text(rows), 30)} by ==, and == of arrays "
        cause += "gives an array, no yes or no. `is` finds the same object."
        if name == "index":
            new = f"next(place for place, one in enumerate({text(rows)}) if one is {text(row)})"
            return Explanation(RULE, spot.file, spot.line, cause, in_place(spot, {call: new}), "", "likely")
        if name == "remove" and isinstance(statement, ast.Expr) and statement.value is call:
            first, last = spot.source.span(statement)
            new = f"{text(rows)}[:] = [one for one in {text(rows)} if one is not {text(row)}]"
            edit = Edit(spot.file, first, last, (f"{indent_of(spot.source.lines[first - 1])}{new}",))
            loops = [one for one in spot.source.around(statement) if isinstance(one, ast.For)]
            if any(text(one.iter) == text(rows) for one in loops):
                return _in_own_loop(spot, statement, cause, text(rows), loops)
            return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
    return _contained(spot, statement)


def _in_own_loop(spot: Spot, statement: ast.stmt, cause: str, rows: str, loops: list[ast.For]) -> Explanation:
    """A loop that takes rows out of the list it goes over: it also misses the row behind each."""
    loop = next(one for one in loops if spot.source.text(one.iter) == rows)
    cause = f"{cause.partition('. ')[0]}. A loop over {rows} also misses the row behind each that is taken out of it."
    block = spot.source.block(statement) or []
    leaves = len(block) > 1 and isinstance(block[-1], ast.Continue) and block[-2] is statement
    first, last = spot.source.span(statement)
    if leaves:
        edit = Edit(spot.file, first, block[-1].end_lineno or last, (spot.source.lines[block[-1].lineno - 1],))
        return Explanation(RULE, spot.file, spot.line, f"{cause} `continue` alone leaves it out.", edit, "", "likely")
    advice = f"Make the list before the loop of line {loop.lineno}: {rows} = [one for one in {rows} if ...]."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _contained(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`row in rows` of arrays."""
    header = statement.test if isinstance(statement, (ast.If, ast.While)) else statement
    for one in ast.walk(header):
        if not isinstance(one, ast.Compare) or len(one.ops) != 1 or not isinstance(one.ops[0], (ast.In, ast.NotIn)):
            continue
        row, rows = lookup(one.left, spot), lookup(one.comparators[0], spot)
        if type(rows) not in (list, tuple) or not (is_ndarray(row) or any(map(is_ndarray, rows))):
            continue
        left, right, np = spot.source.text(one.left), spot.source.text(one.comparators[0]), alias(spot, "numpy")
        new = f"any({np}.array_equal(one, {left}) for one in {right})"
        new = f"not {new}" if isinstance(one.ops[0], ast.NotIn) else new
        cause = f"`in` compares {short(left, 30)} with each of {short(right, 30)} by ==, and == of arrays gives an "
        cause += "array, no yes or no. np.array_equal gives one answer."
        return Explanation(RULE, spot.file, spot.line, cause, in_place(spot, {one: new}))
    return None
