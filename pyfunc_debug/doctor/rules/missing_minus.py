"""A loss that forgets its minus: a mean of logarithms, which training makes ever smaller, below any bound."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.body_inputs import returned
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.records import Finding

NAMES = ("missing-minus",)
_LEAST = 2
_LOGS = ("log", "log_prob")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body whose gradient trains something."""
    for group in facts.lines:
        node, function = group[0], facts.function(group[0])
        if function is None or len(node.tout) != 1 or not facts.calls_of(group, "gradient").count:
            continue
        given = pastes.returns(function)
        value = pastes.behind_name(function, given[0]) if len(given) == 1 else None
        out = returned(facts, group)
        if value is None or len(out) < _LEAST or any(one.shape or one.high is None or one.high >= 0 for one in out):
            continue
        if not _of_logs(function, value) or _is_negated(facts, pastes.call_of(facts, node)):
            continue
        own = pastes.source(facts, node.file)
        shown = f"{out[0].low:.3g} to {out[-1].low:.3g}"
        yield Finding(
            NAMES[0], "error", node.id, (out[0].call, out[-1].call),
            f"{facts.name(node)} returns the mean of logarithms of probabilities, and no minus stands before it: it is "
            f"below 0 in all {len(out):,} calls ({shown}), and training makes the right class less and less likely",
            pastes.written(pastes.replaced(facts, node.file, {given[0]: f"-{own.atom(given[0])}"})), node.file,
            given[0].lineno, several(one.id for one in group),
            (f"line {given[0].lineno}: {facts.line(node.file, given[0].lineno)}",), confidence="likely",
        )  # fmt: skip


def _of_logs(function: Definition, value: ast.expr) -> bool:
    """Whether an expression is a sum or mean of logarithms, each times something, without a minus and a quotient."""
    parts = [*ast.walk(value)]
    for one in [*parts]:
        if isinstance(one, ast.Name) and len(made := pastes.assigned(function, one.id)) == 1:
            parts += [*ast.walk(made[0])]
    logs = [one for one in parts if isinstance(one, ast.Call) and pastes.last_name(one.func) in _LOGS]
    minus = any(
        (isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.USub) and not isinstance(one.operand, ast.Constant))
        or (ast.unparse(one) in ("-1", "-1.0") and not isinstance(one, ast.keyword) and _multiplies(parts, one))
        for one in parts
    )  # fmt: skip
    taken = any(
        isinstance(one, ast.BinOp) and isinstance(one.op, (ast.Sub, ast.Div)) and _has_log(one.right)
        for one in parts
    )  # fmt: skip
    inside = [part for one in logs for part in ast.walk(one)]
    quotient = any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div) for one in inside)
    times = any(
        isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult) and (_has_log(one.left) or _has_log(one.right))
        for one in parts
    )  # fmt: skip
    return bool(logs) and times and not (minus or taken or quotient)


def _multiplies(parts: list[ast.AST], number: ast.AST) -> bool:
    return any(isinstance(one, ast.BinOp) and number in (one.left, one.right) for one in parts)


def _has_log(node: ast.expr) -> bool:
    return any(pastes.last_name(one.func) in _LOGS for one in pastes.walk(node, ast.Call))


def _is_negated(facts: Facts, made: tuple[str, ast.Call] | None) -> bool:
    """Whether something behind the call takes it away, or negates it."""
    if made is None:
        return True
    own, file = pastes.source(facts, made[0]), made[0]
    around = [one for one in own.around(made[1]) if isinstance(one, (ast.UnaryOp, ast.BinOp))]
    if around:
        return True
    statement = own.parent(made[1])
    names = [ast.unparse(one) for one in getattr(statement, "targets", [])]
    function = own.function(made[1].lineno)
    text = "\n".join(facts.code(file))
    if isinstance(function, ast.FunctionDef):
        names.append(f"{function.name}(")
    return any(re.search(rf"-\s*{re.escape(name)}", text) for name in names)
