"""A body that catches its own exceptions and returns zeros: in most calls, so that what fails is never seen."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Finding, Node

NAMES = ("caught-error",)
_LEAST_CALLS = 5
_SHARE = 0.5
"""Share of the calls from which it is said, of arrays; of single numbers all calls have to return what is caught."""
_FILLED = {"zeros": 0.0, "zeros_like": 0.0, "ones": 1.0, "ones_like": 1.0}


@dataclass(frozen=True)
class _Caught:
    """An `except` and what a function returns behind it: the place among its results, and the number all over it."""

    handler: ast.ExceptHandler
    place: int
    number: float


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    for group in facts.lines:
        found = _found(facts, group)
        if found is not None:
            yield _finding(facts, group, *found)


def is_said(facts: Facts, group: Sequence[Node]) -> bool:
    """Whether it is said of a body: that its results are the same needs no other word."""
    return _found(facts, group) is not None


def _found(facts: Facts, group: Sequence[Node]) -> tuple[_Caught, list[int], int] | None:
    """What a body catches, the calls that returned nothing else, and how many calls returned."""
    node, function, count = group[0], facts.function(group[0]), facts.calls_of(group).count
    if function is None or node.file is None or count < _LEAST_CALLS:
        return None
    caught = _caught(pastes.source(facts, node.file), function)
    rows = _outputs(facts, group, caught) if caught is not None else []
    filled = [call for call, same, _ in rows if same]
    single = any(one for *_, one in rows)
    if caught is None or not filled or len(filled) < (len(rows) if single else max(2, _SHARE * len(rows))):
        return None
    return caught, filled, len(rows)


def _outputs(facts: Facts, group: Sequence[Node], caught: _Caught) -> list[tuple[int, bool, bool]]:
    """The calls, whether each returned the number all over, and whether that is a single one."""
    ids = ", ".join(str(node.id) for node in group)
    rows = facts.reader.rows(
        "SELECT c.id, v.min = v.max AND v.max = ?, v.shape = '[]' FROM call c JOIN value v ON v.call = c.id "
        f"AND v.role = 'output' AND v.position = ? WHERE c.node IN ({ids}) AND c.kind = 'forward' "
        "AND c.status = 'ok' AND v.min IS NOT NULL ORDER BY c.id",
        (caught.number, caught.place),
    )
    return [(int(call), bool(same), bool(single)) for call, same, single in rows]


def _caught(own: Source, function: Definition) -> _Caught | None:
    """The one `try` of a function, behind whose exceptions it returns an array of one number."""
    tries = [one for one in code.own_nodes(function) if isinstance(one, ast.Try)]
    if len(tries) != 1 or len(tries[0].handlers) != 1:
        return None
    handler = tries[0].handlers[0]
    parts = [one for statement in handler.body for one in ast.walk(statement)]
    if any(isinstance(one, (ast.Raise, ast.Assert)) for one in parts) or _is_narrow(handler):
        return None
    returned = next((one.value for one in handler.body if isinstance(one, ast.Return)), None)
    if returned is None:  # image = np.zeros(...), which a line below returns
        stored = {ast.unparse(one.targets[0]): one.value for one in handler.body if isinstance(one, ast.Assign)}
        results = pastes.returns(function)
        if len(results) != 1 or ast.unparse(results[0]) not in stored:
            return None
        returned = stored[ast.unparse(results[0])]
    parts_of = returned.elts if isinstance(returned, (ast.Tuple, ast.List)) else [returned]
    for place, part in enumerate(parts_of):
        number = _number(own, part)
        if number is not None:
            return _Caught(handler, place, number)
    return None


def _is_narrow(handler: ast.ExceptHandler) -> bool:
    """Whether an `except` names what it waits for: a KeyError of a table that has no entry, say."""
    return handler.type is not None and dotted(handler.type).rpartition(".")[2] not in ("Exception", "BaseException")


def _number(own: Source, node: ast.expr) -> float | None:
    """The number that an expression has all over; None for others."""
    if isinstance(node, ast.Call):
        name = dotted(node.func).rpartition(".")[2]
        if name in _FILLED:
            return _FILLED[name]
        if name in ("full", "full_like") and len(node.args) > 1:
            return _number(own, node.args[1])
        if name in ("astype", "tobytes") and isinstance(node.func, ast.Attribute):
            return _number(own, node.func.value)
        return (
            _number(own, node.args[0]) if len(node.args) == 1 and name.startswith(("float", "int", "array")) else None
        )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(own, node.operand)
        return None if number is None else -number
    value = node.value if isinstance(node, ast.Constant) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _finding(facts: Facts, group: Sequence[Node], caught: _Caught, filled: list[int], count: int) -> Finding:
    node, handler = group[0], caught.handler
    own, name = pastes.source(facts, node.file), facts.name(node)
    what = "except" if handler.type is None else f"except {own.text(handler.type)}"
    every = f"all {count:,} calls" if len(filled) == count else f"{len(filled):,} of {count:,} calls"
    number = int(caught.number) if caught.number.is_integer() else caught.number
    first = handler.body[0]
    same_line = first.lineno == handler.lineno
    edit = None if same_line else pastes.above(facts, node.file, first.lineno, "raise")
    fix = "write raise as the first statement of that except, once, to see what fails"
    if edit is not None:
        fix = f"let it raise once, to see what fails, and take the line out again:\n{pastes.written(edit)}"
    return Finding(
        NAMES[0], "warning", node.id, tuple(filled[:3]),
        f"{every} of {name} returned nothing but {number}, as its `{what}` in line {handler.lineno} does: what failed "
        "in them is not seen, and what follows gets made-up values",
        fix,
        node.file, handler.lineno, several(one.id for one in group), (facts.shown(filled[0]),), "likely",
    )  # fmt: skip
