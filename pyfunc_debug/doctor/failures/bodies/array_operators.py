"""Operators and functions that arrays take otherwise: `and`, `0 < x < 3`, `max(x, 0)`, `-mask`, `img /= 255`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import code
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray, lookup

_TRUTH = "The truth value of an array with more than one element is ambiguous"
_BITS = re.compile(r"ufunc 'bitwise_(?:and|or|xor)' not supported for the input types")
_NEGATIVE = "The numpy boolean negative, the `-` operator"
_SUBTRACT = "numpy boolean subtract, the `-` operator"
_OUTPUT = re.compile(r"Cannot cast ufunc '\w+' output from dtype\('(\w+)'\) to dtype\('(\w+)'\)")
_SAFE = re.compile(
    r"Cannot cast array data from dtype\('(float\d+)'\) to dtype\('(u?int\d+)'\) according to the rule 'safe'"
)
_BOUNDS = re.compile(r"Python integer (-?\d+) out of bounds for (u?int\d+)")
_PARTS = {ast.BitAnd: "&", ast.BitOr: "|"}
_Found = tuple[dict[ast.expr, str], str]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator has one of these."""
    spot, statement, text = situation.last, situation.statement, situation.message
    if spot is None or statement is None or not situation.data:
        return None
    if (output := _OUTPUT.search(text)) is not None:
        return _in_place(spot, statement, output[1], output[2])
    if (bounds := _BOUNDS.search(text)) is not None:
        return _beyond(spot, statement, int(bounds[1]), bounds[2])
    for said, look in (
        (_TRUTH in text or _BITS.search(text), _bits), (_TRUTH in text, _chain), (_TRUTH in text, _words),
        (_TRUTH in text, _largest), (_TRUTH in text, _choice), (_NEGATIVE in text, _negative),
        (_SUBTRACT in text, _subtract), (_SAFE.search(text), _safe),
    ):  # fmt: skip
        found = next(look(spot, statement), None) if said else None
        if found is not None:
            return Explanation(RULE, spot.file, spot.line, found[1], in_place(spot, found[0]), "", "likely")
    return None


def _bits(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`x > 0 & x < 3`, which Python reads as `x > (0 & x) < 3`."""
    text = spot.source.text
    for one in ast.walk(statement):
        if not isinstance(one, ast.Compare) or len(one.ops) != 2:
            continue
        middle = one.comparators[0]
        sign = _PARTS.get(type(middle.op)) if isinstance(middle, ast.BinOp) else None
        if sign is None or not isinstance(middle, ast.BinOp) or text(middle).startswith("("):
            continue
        first, second = (_sign(each) for each in one.ops)
        left, right = f"{text(one.left)} {first} {text(middle.left)}", f"{text(middle.right)} {second} "
        new = f"({left}) {sign} ({right}{text(one.comparators[1])})"
        yield (
            {one: new},
            f"{sign} binds closer than {first}: `{short(text(middle), 30)}` is computed first. Brackets keep the "
            "parts apart.",
        )


def _chain(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`0 < x < 3` of an array."""
    text = spot.source.text
    for one in ast.walk(statement):
        if isinstance(one, ast.Compare) and len(one.ops) == 2 and _array(one.comparators[0], spot) is not None:
            middle = text(one.comparators[0])
            first, second = (_sign(each) for each in one.ops)
            new = f"(({text(one.left)} {first} {middle}) & ({middle} {second} {text(one.comparators[1])}))"
            cause = f"`{short(text(one), 40)}` is two questions with `and` between them, which takes one answer, "
            cause += f"and {short(middle, 20)}"
            yield {one: new}, f"{cause} is an array: `&` joins the answers for each number."


def _words(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`a and b`, `a or b` and `not a` of arrays."""
    text = spot.source.text
    for one in ast.walk(statement):
        if isinstance(one, ast.BoolOp) and any(_array(each, spot) is not None for each in one.values):
            word, sign = ("and", "&") if isinstance(one.op, ast.And) else ("or", "|")
            parts = [
                text(each) if isinstance(each, (ast.Name, ast.Call, ast.Attribute)) else f"({text(each)})"
                for each in one.values
            ]
            inside = isinstance(spot.source.parent(one), (ast.If, ast.While, ast.IfExp, ast.Assert))
            if inside:
                continue
            cause = f"`{word}` takes one answer on each side, and here are arrays of them: `{sign}` joins the "
            cause += "answers for each number."
            yield {one: f"({f' {sign} '.join(parts)})"}, cause
        elif isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.Not) and _array(one.operand, spot) is not None:
            cause = f"`not` takes one answer, and {short(text(one.operand), 30)} is an array of them: `~` turns each."
            array = _array(one.operand, spot)
            if array is not None and array.dtype == bool:
                yield {one: f"~{spot.source.atom(one.operand)}"}, cause


def _largest(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`max(x, 0)` of an array, and `max(x)` of one with rows."""
    np = alias(spot, "numpy")
    for call in calls(statement):
        name = dotted(call.func)
        if name not in ("max", "min") or call.keywords or not 1 <= len(call.args) <= 2:
            continue
        if not any(_array(one, spot) is not None for one in call.args):
            continue
        text = ", ".join(map(spot.source.text, call.args))
        if len(call.args) == 2:
            cause = f"Python's {name} asks which of its two values is the "
            cause += f"{'larger' if name == 'max' else 'smaller'}, and an array has "
            yield (
                {call: f"{np}.{name}imum({text})"},
                f"{cause}no one answer: {np}.{name}imum takes each number by itself.",
            )
        else:
            cause = f"Python's {name} compares the rows of {short(text, 30)} with each other: {np}.{name} takes its "
            cause += "numbers."
            yield {call: f"{np}.{name}({text})"}, cause


def _choice(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`x if x > 0 else 0` of an array."""
    text, np = spot.source.text, alias(spot, "numpy")
    for one in ast.walk(statement):
        if isinstance(one, ast.IfExp) and _array(one.test, spot) is not None:
            cause = f"`if` takes one answer, and `{short(text(one.test), 30)}` is an array of them: {np}.where "
            cause += "chooses for each number."
            yield {one: f"{np}.where({text(one.test)}, {text(one.body)}, {text(one.orelse)})"}, cause


def _negative(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`-mask`, and `1 - mask` of answers."""
    for one in ast.walk(statement):
        if isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.USub):
            array = _array(one.operand, spot)
            if array is not None and array.dtype == bool:
                text = spot.source.text(one.operand)
                yield (
                    {one: f"~{spot.source.atom(one.operand)}"},
                    f"{short(text, 30)} has answers, True and False: `~` turns them, and `-` is of numbers.",
                )


def _subtract(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`a - b` of answers."""
    for one in ast.walk(statement):
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub):
            sides = [_array(each, spot) for each in (one.left, one.right)]
            if all(each is not None and each.dtype == bool for each in sides):
                left, right = (spot.source.atom(each) for each in (one.left, one.right))
                cause = f"{short(left, 30)} and {short(right, 30)} have answers, True and False, and `-` is of "
                cause += "numbers. `^` is True where they differ."
                yield {one: f"{left} ^ {right}"}, cause


def _safe(spot: Spot, statement: ast.stmt) -> Iterator[_Found]:
    """`np.bincount(x)` of floats."""
    for call in calls(statement):
        for given in call.args:
            array = _array(given, spot, least=0)
            if array is not None and array.dtype.kind == "f":
                text, np = spot.source.text(given), alias(spot, "numpy")
                cause = f"{short(spot.source.text(call.func), 30)} takes whole numbers, and {short(text, 30)} is "
                cause += f"{array.dtype.name}."
                yield {given: f"{spot.source.atom(given)}.astype({np}.int64)"}, cause
                return


def _in_place(spot: Spot, statement: ast.stmt, computed: str, kept: str) -> Explanation | None:
    """`img /= 255.0` of whole numbers."""
    if not isinstance(statement, ast.AugAssign):
        return None
    target, source = statement.target, spot.source
    name, root = source.text(target), code.root(target)
    first, last = source.span(statement)
    blanks = indent_of(source.lines[first - 1])
    sign = source.text(statement)[len(name) :].strip().partition("=")[0]
    cause = f"`{sign}=` puts the result back into {short(name, 30)}, which is {kept} and holds no {computed}."
    if isinstance(target, (ast.Name, ast.Attribute)):
        cause += f" `=` with `{sign}` gives the name a new array."
        edit = Edit(spot.file, first, last, (f"{blanks}{name} = {source.augmented(statement, name)}",))
        return Explanation(RULE, spot.file, spot.line, cause, edit)
    if not root:
        return None
    line = f"{blanks}{root} = {root}.astype({alias(spot, 'numpy')}.{computed})"
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first, first - 1, (line,)), "", "likely")


def _beyond(spot: Spot, statement: ast.stmt, number: int, kind: str) -> Explanation | None:
    """`img - 300` of uint8: NumPy 2 keeps the array's dtype."""
    source, np = spot.source, alias(spot, "numpy")
    cause = f"NumPy computes in the array's dtype, {kind}, and {number} does not fit into it."
    first = source.span(statement)[0]
    blanks = indent_of(source.lines[first - 1])
    if isinstance(statement, ast.AugAssign) and code.root(statement.target):
        root = code.root(statement.target)
        line = f"{blanks}{root} = {root}.astype({np}.int32)"
        return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first, first - 1, (line,)), "", "likely")
    for one in ast.walk(statement):
        sides = [one.left, one.right] if isinstance(one, ast.BinOp) else []
        sides += [one.left, *one.comparators] if isinstance(one, ast.Compare) else []
        for side in sides:
            array = _array(side, spot, least=0)
            if array is not None and array.dtype.name == kind:
                edit = in_place(spot, {side: f"{source.atom(side)}.astype({np}.int32)"})
                return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if isinstance(target, ast.Subscript) and code.root(target):
        advice = f"Keep {code.root(target)} in a larger dtype, as {np}.int32, or give it a number that fits."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return None


def _sign(operator: ast.cmpop) -> str:
    return ast.unparse(ast.Compare(ast.Name("a"), [operator], [ast.Name("b")]))[2:-2]


def _array(node: ast.expr, spot: Spot, least: int = 2) -> Any:
    """The array that an expression gives, if it has some numbers; None of anything else."""
    value = lookup(node, spot) if isinstance(node, (ast.Name, ast.Attribute)) else origins.valued(node, spot)
    return value if is_ndarray(value) and value.size >= least else None
