"""`x * weights` of [8, 4] and [8]: axes are paired from the last one on, and an axis of size 1 is missing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.refused_ops import (
    Refused,
    Shape,
    each,
    fits,
    numbers_of,
    shape_at,
    sizes,
    value_of,
)
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, names, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, root_is, sizes_of

_SHAPE = r"(\[[\d,?]*\])"
_SAID = (
    re.compile(rf"Incompatible shapes: {_SHAPE} vs\. {_SHAPE}.*?\[Op:(\w+)\]", re.DOTALL),
    re.compile(rf"Incompatible shapes: {_SHAPE} vs\. {_SHAPE}()", re.DOTALL),
    re.compile(
        rf"Dimensions must be equal, but are .*?= (?P<op>\w+)\[.*?with input shapes: {_SHAPE}, {_SHAPE}\.", re.DOTALL
    ),
)
_EQUAL = re.compile(r"cannot compute (?:Not)?Equal as input #\d\(zero-based\) was expected to be an? int64")
_SELECT = re.compile(rf"condition {_SHAPE}, then {_SHAPE}, and else {_SHAPE} must be broadcastable")
_SIGNS = {
    ast.Add: ("AddV2", "Add"), ast.Sub: ("Sub",), ast.Mult: ("Mul",), ast.Div: ("RealDiv", "Div"), ast.Pow: ("Pow",),
    ast.FloorDiv: ("FloorDiv",), ast.Mod: ("FloorMod", "Mod"),
}  # fmt: skip
_COMPARED = {
    ast.Gt: "Greater", ast.GtE: "GreaterEqual", ast.Lt: "Less", ast.LtE: "LessEqual", ast.Eq: "Equal",
    ast.NotEq: "NotEqual",
}  # fmt: skip
_CALLED = {
    "add": "AddV2", "subtract": "Sub", "multiply": "Mul", "divide": "RealDiv", "maximum": "Maximum",
    "minimum": "Minimum", "squared_difference": "SquaredDifference", "equal": "Equal", "pow": "Pow",
    "greater": "Greater", "less": "Less", "divide_no_nan": "DivNoNan",
}  # fmt: skip
_RUN = re.compile(r"Incompatible shapes.*\{\{node (?:[\w.-]+/)*([A-Za-z]+)\w*\}\}", re.DOTALL)
_OPS = frozenset((*(name for names in _SIGNS.values() for name in names), *_COMPARED.values(), *_CALLED.values()))
_NODES = {"truediv": "RealDiv", "add": "AddV2", **{name.lower(): name for name in _OPS if name != "AddV2"}}
"""What an op is called in a graph, and which it is."""
_LABELS = re.compile(r"(?:^|_)(?:y|label|target|class|true|act|truth)", re.IGNORECASE)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one of two tensors fits the other with an axis of size 1 behind its own."""
    if (said := _SELECT.search(situation.message)) is not None:
        condition, then, other = map(sizes, said.groups())
        return each(situation, _selected, condition, then) if then == other else None
    if _EQUAL.search(situation.message):
        return each(situation, _of_classes)
    for pattern in _SAID:
        if (said := pattern.search(situation.message)) is not None:
            named = said.groupdict().get("op")
            left, right, *rest = [str(part) for part in said.groups() if part != named]
            op = named or (rest[0] if rest else "")
            if (node := _RUN.search(situation.message)) is not None:
                op = _NODES.get(node[1].lower(), "?")
            return each(situation, _paired, op, sizes(left), sizes(right)) if op in _OPS else None
    return None


def _of_classes(place: Refused) -> Explanation | None:
    """`tf.equal(tf.argmax(pred, 1), y)` of one-hot rows, which are floats."""
    found = [
        (one, other) for pair in _operands(place.statement, "Equal") for one, other in (pair, pair[::-1])
        if _is_argmax(place, one)
    ]  # fmt: skip
    shapes = [shape_at(one, place.spot) for one in found[0]] if len(found) == 1 else []
    if len(shapes) != 2 or shapes[0] is None or shapes[1] is None or shapes[0] != shapes[1][:-1]:
        return None
    return _told(place, found[0][1], found[0][0], shapes[1], shapes[0])


def _paired(place: Refused, op: str, left: Shape, right: Shape) -> Explanation | None:
    pairs = [
        pair for pair in _operands(place.statement, op)
        if fits(shape_at(pair[0], place.spot), left) and fits(shape_at(pair[1], place.spot), right)
    ]  # fmt: skip
    if len(pairs) != 1:
        return None
    return _told(
        place, *(pairs[0] if len(left) > len(right) else pairs[0][::-1]), *sorted((left, right), key=len)[::-1]
    )


def _selected(place: Refused, condition: Shape, then: Shape) -> Explanation | None:
    """`tf.where(rows > 0, x, 0 * x)` with a condition for each row."""
    found = [one for one in place.calls_of("where") if len(one.args) == 3 and not one.keywords]
    return _told(place, found[0].args[1], found[0].args[0], then, condition) if len(found) == 1 else None


def _told(place: Refused, full: ast.expr, flat: ast.expr, whole: Shape, part: Shape) -> Explanation | None:
    text, (larger, smaller) = place.text, (full, flat)
    places = [at for at in range(len(whole) - len(part)) if whole[at : at + len(part)] == part]
    if not places and len(part) > 1 and whole[0] == part[0] and set(part[1:]) == {1}:
        places = [0]  # `alpha` of [4, 1] beside images
    stored = isinstance(getattr(flat, "ctx", None), ast.Store)
    if len(whole) == len(part):
        return _of_smaller_batch(place, larger, smaller, whole, part)
    if not part or None in part or stored:
        return None
    if not places and len(part) > 1 and part[0] == whole[0] and part[1:] == whole[1 - len(part) :]:
        between, two = len(whole) - len(part), f"{short(text(larger), 30)} {sizes_of(whole)}"
        cause = (
            f"{short(text(smaller), 30)} has the shape {sizes_of(part)}, and {two}. Axes are paired from the last on. "
            "None between adds axes of size 1: the first ones meet, too."
        )
        index = f"[{', '.join([':', *['None'] * between, *[':'] * (len(part) - 1)])}]"
        return place.told(cause, {smaller: f"{place.spot.source.atom(smaller)}{index}"})
    if len(places) != 1:
        return None
    if len(whole) == 2 and places[0] == 0 and _is_argmax(place, smaller):
        tf = alias(place.spot, "tensorflow")
        cause = (
            f"{short(text(smaller), 30)} has a class for each row, {sizes_of(part)}, and {short(text(larger), 30)} "
            f"{whole[1]} numbers, {sizes_of(whole)}. Their argmax is the class."
        )
        return place.told(cause, {larger: f"{tf}.argmax({text(larger)}, axis=-1)"})
    behind = len(whole) - len(part) - places[0]
    name, own = short(text(smaller), 30), short(text(larger), 30)
    cause = (
        f"{name} has the shape {sizes_of(part)}, and {own} {sizes_of(whole)}. Axes are paired from the last one on: "
        f"{part[-1]} meets {whole[-1]}."
    )
    if _are_classes(place, smaller, whole, part):
        cause += f" {name} holds numbers of classes."
        tf = alias(place.spot, "tensorflow")
        return place.told(
            cause, {}, f"Take {tf}.one_hot({tf}.cast({text(smaller)}, {tf}.int32), {whole[-1]}), of the same shape."
        )
    axes = "an axis" if behind == 1 else f"{behind} axes"
    cause += f" With {axes} of size 1 behind, each of its values meets {'a row' if behind == 1 else 'a part'} of {own}."
    index = f"[{', '.join([*[':'] * len(part), *['None'] * behind])}]"
    pieces = {one: f"{place.spot.source.atom(one)}{index}" for one in _alike(place, smaller, part, whole)}
    return place.told(cause, pieces)


def _of_smaller_batch(
    place: Refused, one: ast.expr, other: ast.expr, first: Shape, second: Shape
) -> Explanation | None:
    """`x + noise` of noise that is made for a whole batch, beside the last one of a dataset."""
    if first[1:] != second[1:] or first[0] is None or second[0] is None:
        return None
    (large, rows), (small, fewer) = sorted(((one, first[0]), (other, second[0])), key=lambda pair: -pair[1])
    if fewer < 2 or not isinstance(small, ast.Name):
        return None
    source, text = place.spot.source, place.text
    around = next((one for one in source.around(place.statement) if isinstance(one, (ast.For, ast.FunctionDef))), None)
    for line in ast.walk(around) if around is not None else ():  # what is made before the loop is for all batches
        made = (
            line.value if isinstance(line, ast.Assign) and set(map(dotted, line.targets)) & set(names(large)) else None
        )
        if not isinstance(made, ast.Call) or not root_is(made.func, place.spot, "tensorflow"):
            continue
        shapes = [part for part in made.args if isinstance(part, (ast.List, ast.Tuple)) and part.elts]
        given = shapes[0].elts[0] if len(shapes) == 1 else None
        if given is None or evaluation.computed(given, place.spot) != rows:
            continue
        count = f"{alias(place.spot, 'tensorflow')}.shape({small.id})[0]"
        cause = (
            f"{small.id} has {fewer} rows here, and {short(text(large), 30)} {rows}, as {text(given)} in line "
            f"{given.lineno} says: the last batch of a dataset is often smaller. {count} is how many {small.id} has."
        )
        return place.told(cause, {given: count})
    return None


def _is_argmax(place: Refused, node: ast.expr) -> bool:
    """Whether it is the result of argmax."""
    function = place.spot.function
    if isinstance(node, ast.Name):
        node = assignments(place.spot.source.tree if function is None else function).get(node.id, node)
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "argmax"


def _alike(place: Refused, flat: ast.expr, part: Shape, whole: Shape) -> list[ast.expr]:
    """The operand, and others of that shape that meet the same larger tensor in the statement: `(x - mean) / std`."""
    found = [flat]
    for one in ast.walk(place.statement):
        other = one.right if isinstance(one, ast.BinOp) and type(one.op) in _SIGNS else None
        if isinstance(other, ast.Name) and other is not flat and isinstance(one, ast.BinOp) and _holds(one.left, flat):
            found += [other] if shape_at(other, place.spot) == part else []
    return found


def _holds(node: ast.expr, inner: ast.expr) -> bool:
    return any(one is inner for one in ast.walk(node))


def _are_classes(place: Refused, flat: ast.expr, whole: Shape, part: Shape) -> bool:
    """Whether whole numbers below the last size stand in it, where its name is that of labels."""
    if len(whole) != 2 or len(part) != 1 or not isinstance(whole[-1], int) or whole[-1] < 2:
        return False
    known = numbers_of(value_of(flat, place.spot))
    named = any(
        _LABELS.search(dotted(one).rpartition(".")[2])
        for one in ast.walk(flat)
        if isinstance(one, (ast.Name, ast.Attribute))
    )
    if known is None:
        return named
    return bool(named and (known == known.round()).all() and known.min() >= 0 and known.max() < whole[-1])


def _operands(statement: ast.stmt, op: str) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The two operands of each operator or function in a statement that may be such an op."""
    for one in ast.walk(statement):
        if isinstance(one, ast.BinOp) and (op in _SIGNS.get(type(one.op), ())):
            yield one.left, one.right
        elif isinstance(one, ast.Compare) and len(one.ops) == 1 and op == _COMPARED.get(type(one.ops[0])):
            yield one.left, one.comparators[0]
        elif isinstance(one, ast.AugAssign) and op in _SIGNS.get(type(one.op), ()):
            yield one.target, one.value
        elif isinstance(one, ast.Call) and len(one.args) == 2 and not one.keywords:
            called = _CALLED.get(dotted(one.func).rpartition(".")[2])
            if called is not None and op == called:
                yield one.args[0], one.args[1]
