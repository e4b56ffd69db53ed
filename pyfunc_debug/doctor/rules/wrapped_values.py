"""Small whole numbers that wrap around: 200 + 70 is 14 in uint8. Told where a recorded call's values prove it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding, Node

NAMES = ("wrap-around",)
_ENDS = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767)}
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_MAYBE = (ast.If, ast.IfExp, ast.BoolOp, ast.For, ast.While, ast.Try, ast.match_case, ast.comprehension, ast.Lambda)
_CHOOSES = frozenset({"where", "select", "choose", "piecewise"})
_ROWS = 5000
"""How many calls of a body are looked at."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line of a body."""
    for group in facts.lines:
        node = group[0]
        function = facts.function(node)
        if node.kind != "numpy_function" or function is None or not any(facts.calls(one.id).count for one in group):
            continue
        for term, name, number, kind in _terms(facts, node.file, function):
            if (proof := _proof(facts, group, name, term, number, kind)) is not None:
                yield _finding(facts, group, term, name, number, proof)
                break


def _terms(facts: Facts, file: str | None, function: Definition) -> Iterator[tuple[ast.BinOp, str, int, str]]:
    """Sums, differences and products of a parameter, as the body got it, and a whole number."""
    own = pastes.source(facts, file)
    every = list(code.own_nodes(function))
    stores = [one for one in every if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
    for one in every:
        if not isinstance(one, ast.BinOp) or type(one.op) not in _SIGNS:
            continue
        outer = own.parent(one)
        if isinstance(outer, ast.BinOp) and isinstance(outer.op, (ast.Mod, ast.BitAnd, ast.BitXor)):
            continue  # it wraps on purpose
        if not _always(own, one, function) or _judged(own, one, every):
            continue
        sides = [(one.left, one.right), (one.right, one.left)][: 1 if isinstance(one.op, ast.Sub) else 2]
        for array, other in sides:
            number = _number(other)
            if not isinstance(array, ast.Name) or array.id not in code.parameters(function) or number is None:
                continue
            if all(part.id != array.id or part.lineno >= one.lineno for part in stores):
                yield one, array.id, *number


def _always(own: Source, term: ast.BinOp, function: Definition) -> bool:
    """Whether each call computes a term, for all elements: no branch, loop, choice or earlier end stands around it."""
    for one in own.around(term):
        if one is function:
            break
        if isinstance(one, _MAYBE):
            return False
        if isinstance(one, ast.Call) and ast.unparse(one.func).rpartition(".")[2] in _CHOOSES:
            return False
    ends = (one for one in code.own_nodes(function) if isinstance(one, (ast.Return, ast.Raise)))
    return all(one.lineno >= (own.statement(term.lineno) or term).lineno for one in ends)


def _judged(own: Source, term: ast.BinOp, every: list[ast.AST]) -> bool:
    """Whether the body compares the result afterwards, as one does that repairs what wrapped around."""
    statement = own.parent(term)
    names = {one.id for one in getattr(statement, "targets", ()) if isinstance(one, ast.Name)}
    compared = (part for one in every if isinstance(one, ast.Compare) for part in ast.walk(one))
    return any(isinstance(one, ast.Name) and one.id in names for one in compared)


def _number(node: ast.expr) -> tuple[int, str] | None:
    """A whole number and its own dtype, "" where it takes the array's: `np.uint8(70)`, `70`."""
    dtype = ""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        dtype, node = ast.unparse(node.func).rpartition(".")[2], node.args[0]
    known = not dtype or dtype in _ENDS
    return (node.value, dtype) if known and isinstance(node, ast.Constant) and type(node.value) is int else None


def _proof(
    facts: Facts, group: list[Node], name: str, term: ast.BinOp, number: int, kind: str
) -> tuple[int, str, float, float] | None:
    """The first call with a value that cannot be held: its number, its dtype, that value, and what it became."""
    rows = facts.reader.rows(
        f"SELECT v.call, v.dtype, v.min, v.max FROM value v JOIN call c ON c.id = v.call "
        f"WHERE c.node IN ({', '.join('?' * len(group))}) AND v.role = 'input' AND v.path = ? "
        f"AND v.dtype IN ({', '.join(map(repr, _ENDS))}) AND json_array_length(v.shape) > 0 LIMIT {_ROWS}",
        [*(one.id for one in group), name],
    )
    for call, dtype, low, high in rows:
        bottom, top = _ENDS[dtype]
        if low is None or high is None or not bottom <= number <= top or kind not in ("", dtype):
            continue
        for value in (high, low):
            result = {ast.Add: value + number, ast.Sub: value - number, ast.Mult: value * number}[type(term.op)]
            if not bottom <= result <= top:
                return call, dtype, value, (result - bottom) % (top - bottom + 1) + bottom
    return None


def _finding(
    facts: Facts, group: list[Node], term: ast.BinOp, name: str, number: int, proof: tuple[int, str, float, float]
) -> Finding:
    node, (call, dtype, value, became) = group[0], proof
    bottom, top = _ENDS[dtype]
    sign = _SIGNS[type(term.op)]
    np = pastes.module(facts, node.file, "numpy") or "np"
    wide = f"{name}.astype({np}.int64) {sign} {number}"
    new = f"{np}.clip({wide}, {bottom}, {top}).astype({np}.{dtype})"
    fix = pastes.written(pastes.replaced(facts, node.file, {term: new})) or new
    return Finding(
        NAMES[0], "error", node.id, (call,),
        f"{node.body} computes {ast.unparse(term)} in {dtype}, which holds {bottom} to {top}: what does not fit wraps "
        f"around. In call #{call} {value:.0f} became {became:.0f}",
        fix, node.file, term.lineno, several(one.id for one in group),
        (f"call #{call}: {facts.inputs(call)} -> {facts.outputs(call)}",
         f"without the bounds: {name}.astype({np}.float32) {sign} {number}, and Tout to match"),
    )  # fmt: skip
