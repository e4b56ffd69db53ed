"""Small whole numbers that wrap around: 200 + 70 is 14 in uint8, 200 ** 2 is -25536 in int16.

Told where a recorded call's values prove it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import as_given, returned
from pyfunc_debug.doctor.bodies.float_casts import as_floats
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.negative_casts import NegativeCast, negative_casts
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding, Node

NAMES = ("wrap-around",)
_ENDS = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767)}
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Pow: "**"}
_MAYBE = (ast.If, ast.IfExp, ast.BoolOp, ast.For, ast.While, ast.Try, ast.match_case, ast.comprehension, ast.Lambda)
_CHOOSES = frozenset({"where", "select", "choose", "piecewise"})
_ROWS = 5000
"""How many calls of a body are looked at."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line of a body."""
    for group in facts.lines:
        node = group[0]
        function = facts.function(node)
        of_python = node.kind in ("numpy_function", "py_function")
        if not of_python or function is None or not facts.calls_of(group).count:
            continue
        if (of_one := _of_one(facts, group, function)) is not None:
            yield _finding(facts, group, *of_one)
        else:
            for term, names in _pairs(facts, node.file, function):
                if (pair := _proof_of_two(facts, group, term, names)) is not None:
                    yield _finding_of_two(facts, group, term, names, pair)
                    break
            else:
                own = pastes.source(facts, node.file)
                lost = (one for one in negative_casts(facts, group, function) if _always(own, one.cast, function))
                yield from (_finding_of_cast(facts, group, one) for one in islice(lost, 1))


def wraps(facts: Facts, group: list[Node]) -> bool:
    """Whether a recorded call of a body proves that numbers wrapped around in a term of an array and a number."""
    function = facts.function(group[0])
    return function is not None and _of_one(facts, group, function) is not None


def _of_one(
    facts: Facts, group: list[Node], function: Definition
) -> tuple[ast.BinOp, ast.expr, int, tuple[int, str, float, float]] | None:
    """The first such term, its array and number, and the call that proves it."""
    for term, array, name, number, kind in _terms(facts, group[0].file, function):
        if (proof := _proof(facts, group, name, term, number, kind)) is not None:
            return term, array, number, proof
    return None


def _terms(facts: Facts, file: str | None, function: Definition) -> Iterator[tuple[ast.BinOp, ast.expr, str, int, str]]:
    """Sums, differences, products and powers of a parameter, as the body got it, and a whole number; its squares."""
    for one in _computed(facts, file, function):
        if isinstance(one.op, ast.Mult) and (name := as_given(function, one.left)) == as_given(function, one.right):
            if name:
                yield one, one.left, name, 2, ""
            continue
        sides = [(one.left, one.right), (one.right, one.left)][: 1 if isinstance(one.op, (ast.Sub, ast.Pow)) else 2]
        for array, other in sides:
            number = _number(other)
            name = as_given(function, array) if number is not None else ""
            if number is not None and name and (number[0] == 2 or not isinstance(one.op, ast.Pow)):
                yield one, array, name, *number


def _pairs(facts: Facts, file: str | None, function: Definition) -> Iterator[tuple[ast.BinOp, tuple[str, str]]]:
    """Sums and differences of two parameters, as the body got them."""
    for one in _computed(facts, file, function):
        names = as_given(function, one.left), as_given(function, one.right)
        if all(names) and isinstance(one.op, (ast.Add, ast.Sub)):
            yield one, names


def _computed(facts: Facts, file: str | None, function: Definition) -> Iterator[ast.BinOp]:
    """The sums, differences and products that each call computes, and that nothing is to wrap around or to repair."""
    own = pastes.source(facts, file)
    every = list(code.own_nodes(function))
    for one in every:
        if not isinstance(one, ast.BinOp) or type(one.op) not in _SIGNS:
            continue
        outer = own.parent(one)
        if isinstance(outer, ast.BinOp) and isinstance(outer.op, (ast.Mod, ast.BitAnd, ast.BitXor)):
            continue  # it wraps on purpose
        if _always(own, one, function) and not _judged(own, one, every):
            yield one


def _always(own: Source, term: ast.expr, function: Definition) -> bool:
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
            result = _computes(term, value, number)
            if not bottom <= result <= top:
                return call, dtype, value, (result - bottom) % (top - bottom + 1) + bottom
    return None


def _computes(term: ast.BinOp, value: float, number: int) -> float:
    """What a term would be without a dtype's bounds, of such a value of its array."""
    if _squares(term):
        return value * value
    if isinstance(term.op, ast.Mult):
        return value * number
    return value + number if isinstance(term.op, ast.Add) else value - number


def _squares(term: ast.BinOp) -> bool:
    """Whether it is `x ** 2` or `x * x`."""
    return isinstance(term.op, ast.Pow) or ast.unparse(term.left) == ast.unparse(term.right)


def _proof_of_two(
    facts: Facts, group: list[Node], term: ast.BinOp, names: tuple[str, str]
) -> tuple[int, str, str] | None:
    """The first call in which some element cannot be held, whichever stand side by side: number, dtype, and why."""
    rows = facts.reader.rows(
        f"SELECT a.call, a.dtype, a.min, a.max, b.min, b.max FROM value a JOIN value b ON b.call = a.call "
        f"AND b.role = 'input' AND b.dtype = a.dtype JOIN call c ON c.id = a.call "
        f"WHERE c.node IN ({', '.join('?' * len(group))}) AND a.role = 'input' AND a.path = ? AND b.path = ? "
        f"AND a.dtype IN ({', '.join(map(repr, _ENDS))}) AND json_array_length(a.shape) > 0 LIMIT {_ROWS}",
        [*(one.id for one in group), *names],
    )
    for call, dtype, low, high, other_low, other_high in rows:
        if None in (low, high, other_low, other_high):
            continue
        bottom, top = _ENDS[dtype]
        if isinstance(term.op, ast.Sub):  # where the largest of the one stands, the other is smaller
            if min(high - other_high, low - other_low) < bottom:
                at = (high, other_high) if high - other_high < low - other_low else (low, other_low)
                return call, dtype, f"{at[0]:.0f} - {at[1]:.0f} and less"
        elif max(high + other_low, low + other_high) > top:
            return call, dtype, f"{high:.0f} + {other_low:.0f} and more"
    return None


def _finding_of_two(
    facts: Facts, group: list[Node], term: ast.BinOp, names: tuple[str, str], proof: tuple[int, str, str]
) -> Finding:
    node, (call, dtype, worst) = group[0], proof
    bottom, top = _ENDS[dtype]
    own, sign = pastes.source(facts, node.file), _SIGNS[type(term.op)]
    np, tf = pastes.module(facts, node.file, "numpy") or "np", pastes.module(facts, node.file, "tensorflow") or "tf"
    left, right = own.atom(term.left), own.atom(term.right)
    if node.kind == "py_function" and _is_tensor(facts.function(node), term.left):
        wider = f"{tf}.cast({left}, {tf}.float32) {sign} {tf}.cast({right}, {tf}.float32)"
    else:
        wider = f"{left}.astype({np}.{'float32' if _becomes_fractions(facts, group) else 'int64'}) {sign} {right}"
    new = f"({wider})" if isinstance(own.parent(term), (ast.BinOp, ast.Attribute)) else wider
    pieces: dict[ast.expr, str] = {term: new}
    statement, out = own.statement(term.lineno), returned(facts, group)
    if isinstance(statement, ast.Return) and statement.value is not None and out and out[0].dtype == dtype:
        whole = new if statement.value is term else own.text_with(statement.value, pieces)
        pieces = {statement.value: f"{np}.clip({whole}, {bottom}, {top}).astype({np}.{dtype})"}
    return Finding(
        NAMES[0], "error", node.id, (call,),
        f"{node.body} computes {ast.unparse(term)} in {dtype}, which holds {bottom} to {top}: what does not fit wraps "
        f"around, as {worst} in call #{call}",
        pastes.written(pastes.replaced(facts, node.file, pieces)) or new,
        node.file, term.lineno, several(one.id for one in group),
        (facts.shown(call),), "measured",
    )  # fmt: skip


def _finding(
    facts: Facts, group: list[Node], term: ast.BinOp, array: ast.expr, number: int, proof: tuple[int, str, float, float]
) -> Finding:
    node, (call, dtype, value, became) = group[0], proof
    bottom, top = _ENDS[dtype]
    sign = "**" if _squares(term) else _SIGNS[type(term.op)]
    np, tf = pastes.module(facts, node.file, "numpy") or "np", pastes.module(facts, node.file, "tensorflow") or "tf"
    name = pastes.source(facts, node.file).atom(array)
    if node.kind == "py_function" and _is_tensor(facts.function(node), array):
        wider = f"{tf}.cast({name}, {tf}.float32) {sign} {number}"
        held = f"{tf}.clip_by_value({tf}.cast({name}, {tf}.int32) {sign} {number}, {bottom}, {top})"
        new = f"{tf}.cast({held}, {tf}.{dtype})"
    else:
        wider = f"{name}.astype({np}.float32) {sign} {number}"
        new = f"{np}.clip({name}.astype({np}.int64) {sign} {number}, {bottom}, {top}).astype({np}.{dtype})"
    out = returned(facts, group)
    if _squares(term) and not (out and out[0].dtype == dtype):
        if not _becomes_fractions(facts, group):
            wider = wider.replace(f"{np}.float32", f"{np}.int64").replace(f"{tf}.float32", f"{tf}.int64")
        new, other = wider, "no bounds: what is made of it has a dtype that holds more"
    elif _becomes_fractions(facts, group):
        new, other = wider, f"with the bounds of {dtype}: {new}"
    else:
        other = f"without the bounds: {wider}, and Tout to match"
    if _squares(term) and out and out[0].dtype == dtype:
        fix = f"{wider}, and Tout to match"
    else:
        fix = pastes.written(pastes.replaced(facts, node.file, {term: new})) or new
    return Finding(
        NAMES[0], "error", node.id, (call,),
        f"{node.body} computes {ast.unparse(term)} in {dtype}, which holds {bottom} to {top}: what does not fit wraps "
        f"around. In call #{call} {value:.0f} became {became:.0f}",
        fix, node.file, term.lineno, several(one.id for one in group),
        (facts.shown(call),
         other),
    )  # fmt: skip


def _finding_of_cast(facts: Facts, group: list[Node], lost: NegativeCast) -> Finding:
    """What has negative numbers is cast to a dtype that has none."""
    node, own = group[0], pastes.source(facts, group[0].file)
    np = pastes.module(facts, node.file, "numpy") or "np"
    function = facts.function(node)
    around = [one for one in own.around(lost.cast) if not isinstance(one, ast.Tuple)]
    given_back = bool(around) and (isinstance(around[0], ast.Return) or around[0] is function)
    fix = as_floats(facts, node, lost.dtype) if given_back and lost.dtype is not None else ""
    text = own.text(lost.value)
    return Finding(
        NAMES[0], "error", node.id, (lost.call,),
        f"{facts.name(node)} casts {text} to {lost.kind}, which has no negative numbers, and {lost.why}: -1 becomes "
        f"{_top(lost.kind)} there, -2 becomes {_top(lost.kind) - 1}",
        fix or f"float32 there and in Tout; for an image first: {np}.clip({text}, 0, 255)", node.file, lost.cast.lineno,
        several(one.id for one in group),
        (facts.shown(lost.call),),
    )  # fmt: skip


def _top(kind: str) -> int:
    return (1 << int(kind.removeprefix("uint"))) - 1


def _becomes_fractions(facts: Facts, group: list[Node]) -> bool:
    """Whether a body returns fractions, and nothing in it asks for an image of whole numbers between."""
    out, body = returned(facts, group), "\n".join(text for _, text in facts.body(group[0]))
    return bool(out) and "float" in out[0].dtype and not any(word in body for word in ("cv2", "Image", "uint8"))


def _is_tensor(function: Definition | None, array: ast.expr) -> bool:
    """Whether an expression is what TensorFlow gave an eager body, and no array that was made of it."""
    names = {one.id for one in ast.walk(array) if isinstance(one, ast.Name)}
    changed = function is not None and any(
        isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and one.id in names and one.lineno < array.lineno
        for one in code.own_nodes(function)
    )
    return not changed and isinstance(array, ast.Name)
