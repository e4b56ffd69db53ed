"""Draws of random numbers that decide nothing: `np.random.randint(0, 1)` is always 0.

Read in functions that ran, where the ends of the draw and what it is compared with are written as numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.bodies.run_functions import Ran, functions_that_ran
from pyfunc_debug.doctor.draws.drawn_ranges import Drawn, drawn
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding

NAMES = ("decided-draw",)
_SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a draw."""
    seen: set[tuple[str, int, int]] = set()
    for ran in functions_that_ran(facts):
        own = pastes.source(facts, ran.file)
        known = imports(own)
        for one in code.own_nodes(ran.function):
            found = drawn(own, known, one) if isinstance(one, ast.Call) else None
            if found is None or (ran.file, found.call.lineno, found.call.col_offset) in seen:
                continue
            seen.add((ran.file, found.call.lineno, found.call.col_offset))
            told = _told(facts, ran, own, found)
            if told is not None:
                yield told


def _told(facts: Facts, ran: Ran, own: Source, one: Drawn) -> Finding | None:
    place, name = _read(own, ran, one)
    parent = own.parent(place)
    tested = isinstance(parent, (ast.If, ast.IfExp)) and parent.test is place
    text = own.text(one.call)
    if one.whole and one.low == one.high:
        why = _why(one, own)
        holds = "always holds" if one.low else "never holds"
        shown = f"{text} is always {one.low:g}{why}"
        if tested and isinstance(parent, (ast.If, ast.IfExp)):
            shown += f", so that the condition in line {parent.lineno} {holds}"
        decides = tested or isinstance(parent, ast.Compare)
        fix = _two(facts, ran, own, one) if decides else ""
        return _finding(facts, ran, one, shown, fix or "give the draw the ends that are meant" + _example(one, own))
    if one.many:
        return None
    if tested and not one.whole and (one.low, one.high) == (0, 1):
        new = {place: f"{own.text(place)} < 0.5"}
        return _finding(
            facts, ran, one,
            f"{text} is a fraction, which counts as true unless it is exactly 0: the condition in line "
            f"{place.lineno}, `{own.text(place)}`, always holds",
            pastes.written(pastes.replaced(facts, ran.file, new)) or f"{own.text(place)} < 0.5",
        )  # fmt: skip
    return _compared(facts, ran, own, one, place, name) if isinstance(parent, ast.Compare) else None


def _read(own: Source, ran: Ran, one: Drawn) -> tuple[ast.expr, str]:
    """Where a draw is read: itself, or the one name that it is given, and that name."""
    statement = own.parent(one.call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return one.call, ""
    target = statement.targets[0]
    inside = [part for part in code.own_nodes(ran.function) if isinstance(part, ast.Name)]
    same = [part for part in inside if isinstance(target, ast.Name) and part.id == target.id]
    stores = [part for part in same if isinstance(part.ctx, ast.Store)]
    reads = [part for part in same if isinstance(part.ctx, ast.Load)]
    if len(stores) != 1 or len(reads) != 1 or not isinstance(target, ast.Name):
        return one.call, ""
    return reads[0], target.id


def _compared(facts: Facts, ran: Ran, own: Source, one: Drawn, place: ast.expr, name: str) -> Finding | None:
    """A comparison with a number beyond all that is drawn."""
    parent = own.parent(place)
    if not isinstance(parent, ast.Compare) or len(parent.ops) != 1 or type(parent.ops[0]) not in _SIGNS:
        return None
    sign = _SIGNS[type(parent.ops[0])]
    left = parent.left is place
    other = parent.comparators[0] if left else parent.left
    if not isinstance(other, ast.Constant) or not isinstance(other.value, (int, float)):
        return None
    bound = float(other.value)
    sign = sign if left else _TURNED[sign]
    never = _never(one, sign, bound)
    always = one.whole and _always(one, sign, bound)
    if not never and not always:
        return None
    goes = f"from {one.low:g} to {one.high:g}" if one.whole else f"from {one.low:g} to below {one.high:g}"
    drawn_from = f"{own.text(one.call)} goes {goes}"
    fix, pieces = "", dict[ast.expr, str]()
    if not one.whole:
        pieces = {other: f"{(one.low + one.high) / 2:g}"}
    elif never and one.upper is not None and isinstance(one.upper, ast.Constant) and _next(one, sign, bound):
        pieces = {one.upper: f"{one.upper.value + 1}"}  # type: ignore[operator]  # a number
    if pieces:
        fix = pastes.written(pastes.replaced(facts, ran.file, pieces))
    return _finding(
        facts, ran, one,
        f"`{own.text(parent)}` {'never' if never else 'always'} holds: {drawn_from}"
        + (f", which line {one.call.lineno} gives {name}" if name else ""),
        fix or f"compare it with a number in between, or draw from a range that reaches beyond {bound:g}",
        parent.lineno,
    )  # fmt: skip


def _never(one: Drawn, sign: str, bound: float) -> bool:
    if one.whole:
        return {
            "<": one.low >= bound, "<=": one.low > bound, ">": one.high <= bound, ">=": one.high < bound,
            "==": not one.low <= bound <= one.high or bound != int(bound), "!=": False,
        }[sign]  # fmt: skip
    low, high = min(one.low, one.high), max(one.low, one.high)
    return {"<": low >= bound, ">": high <= bound, ">=": high < bound or (high == bound == 1 and one.low == 0)}.get(
        sign, False
    )


def _always(one: Drawn, sign: str, bound: float) -> bool:
    opposite = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}[sign]
    return opposite not in ("!=",) and _never(one, opposite, bound)


def _next(one: Drawn, sign: str, bound: float) -> bool:
    """Whether one number more is what the comparison is meant to see."""
    return bound == one.high + 1 if sign in ("==", ">=") else sign == ">" and bound == one.high


def _why(one: Drawn, own: Source) -> str:
    if one.upper is None:
        return ""
    return ", as its ends are the same" if one.closed else f": the upper end, {own.text(one.upper)}, does not count"


def _two(facts: Facts, ran: Ran, own: Source, one: Drawn) -> str:
    """The draw of one number more: 0 or 1."""
    args = [own.text(part) for part in one.call.args]
    if one.upper is None or not isinstance(one.upper, ast.Constant) or type(one.upper.value) is not int:
        return ""
    if not one.closed:
        return pastes.written(pastes.replaced(facts, ran.file, {one.upper: str(one.upper.value + 1)}))
    if one.low == 1 and len(args) == len(one.call.args) == 2:
        return pastes.written(pastes.replaced(facts, ran.file, {one.call.args[0]: "0"}))
    return pastes.written(pastes.replaced(facts, ran.file, {one.upper: str(one.upper.value + 1)}))


def _example(one: Drawn, own: Source) -> str:
    """`: np.random.randint(0, 2) is 0 or 1`."""
    if one.upper is None or one.closed or not isinstance(one.upper, ast.Constant):
        return ""
    new = own.text_with(one.call, {one.upper: f"{one.low + 2:g}"})
    return f": {new} is {one.low:g} or {one.low + 1:g}"


def _finding(facts: Facts, ran: Ran, one: Drawn, message: str, fix: str, line: int = 0) -> Finding:
    line = line or one.call.lineno
    return Finding(
        NAMES[0], "warning", ran.group[0].id if ran.group else None, (), message, fix, ran.file, line,
        several(each.id for each in ran.group), (f"line {line}: {facts.line(ran.file, line)}",),
    )  # fmt: skip
