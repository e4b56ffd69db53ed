"""A value of the data that is larger than what it is an index of: `labels[y, x, 5 + int(box[0])]` for 11 places.

Said is which part of the index is too large, what it is made of, and what made the array as long as it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.bodies import given_sizes
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names, short
from pyfunc_debug.doctor.failures.reading.symbols import is_ndarray, item, lookup

_SAID = re.compile(r"^index (\d+) is out of bounds for axis (\d+) with size (\d+)")
_INTO_NOTHING = re.compile(r"could not broadcast input array from shape \([\d,]+\) into shape \((?:\d+,)*0(?:,\d*)*\)")
_OF_LISTS = ("list index out of range", "list assignment index out of range", "tuple index out of range")
_CASTS = {"int", "int32", "int64", "int8", "int16", "uint8", "float"}
_METHODS = {"numpy", "item", "astype"}
_FILLED = {"zeros", "ones", "empty", "full"}
_SQUARE = {"eye", "identity"}
_SEVERAL = (ast.Slice, ast.Tuple)
_LOOPS = (ast.For, ast.comprehension)


@dataclass(frozen=True)
class _Sum:
    """`5 + n`: what varies, and the number beside it."""

    part: ast.expr
    more: int


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one index of the failing line is too large, and a value that the body was given is in it."""
    spot, statement = situation.last, situation.statement
    if not situation.data or spot is None or statement is None:
        return None
    if situation.kind == "ValueError" and _INTO_NOTHING.search(situation.message):
        return _behind(spot, statement)
    if situation.kind != "IndexError":
        return None
    said = _SAID.search(situation.message)
    if said is None and situation.message not in _OF_LISTS:
        return None
    found = list(beyond(statement, spot, said))
    if len(found) != 1:
        return None
    asked, part, axis, index, size = found[0]
    summed = _split(part, spot)
    if summed is None or _counts(summed.part, spot):
        return None
    text = spot.source.text
    value, most = index - summed.more, size - 1 - summed.more
    inside, whole, owner = text(summed.part), short(text(part), 40), short(text(asked.value), 30)
    if most < 0 or value <= most:
        return None
    told = f"`{whole}` is {index}" + (f": {short(inside, 30)} is {value}" if value != index else "")
    made = _length(asked.value, axis, size, spot)
    where = f" on axis {axis}" if isinstance(asked.slice, ast.Tuple) else ""
    by = f" (`{short(text(made), 40)}`)" if made is not None and not isinstance(asked.value, ast.Call) else ""
    fits = f"0 to {most}" if most else "0"
    cause = f"{told}, and {owner} has {size} places{where}{by}: room for {short(inside, 30)} of {fits}."
    if given_sizes.of_data(made, asked.value, spot, situation):
        size_of = short(text(made if made is not None else asked.value), 30)
        call = given_sizes.failed_call(situation, spot, statement)
        advice = f"{size_of} comes with the element, so a larger array cures nothing: correct that, or leave it out."
        return Explanation(RULE, spot.file, spot.line, f"{cause} {call}".rstrip(), None, advice)
    count = _split(made, spot) if made is not None else None
    if made is not None and count is not None:
        known, named = size - count.more, text(count.part)
        cause = f"{cause} {named} is {known}."
        larger = f"Make {named} at least {known + index + 1 - size}"
    else:
        larger = f"Give {owner} at least {index + 1} places"
    call = given_sizes.failed_call(situation, spot, statement) if given_sizes.others_passed(situation) else ""
    advice = f"{larger}, or correct what gives {short(inside, 30)} {value}."
    if call:
        advice = f"Correct what gives {short(inside, 30)} {value} there, or leave it out; only if {value} is right, "
        advice += f"{larger[0].lower()}{larger[1:]}."
    return Explanation(RULE, spot.file, spot.line, f"{cause} {call}".rstrip(), None, advice)


def out_of_bounds(situation: Situation) -> re.Match[str] | None:
    """What NumPy says of an index that is too large: the index, the axis, and its length."""
    return _SAID.search(situation.message) if situation.kind == "IndexError" else None


def _behind(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`targets[row, start:end] = box` whose `start` is behind the last place: the slice is empty."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    owner: Any = _value(target.value, spot) if isinstance(target, ast.Subscript) else None
    if not isinstance(target, ast.Subscript) or not is_ndarray(owner) or spot.function is None:
        return None
    text = spot.source.text
    for axis, part in enumerate(target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]):
        start = _number(part.lower, spot) if isinstance(part, ast.Slice) and part.lower is not None else None
        if not isinstance(part, ast.Slice) or start is None or axis >= owner.ndim or start < owner.shape[axis]:
            continue
        size, name, lower = int(owner.shape[axis]), short(text(target.value), 30), part.lower
        made = _length(target.value, axis, size, spot)
        by = f" (`{short(text(made), 40)}`)" if made is not None else ""
        cause = f"`{short(text(part), 30)}` begins at {start}, and {name} has {size} places on axis {axis}{by}."
        parts: dict[str, int] = {}
        for source in (_made_of(lower, spot), made):
            for one in ast.walk(source) if source is not None else ():
                if isinstance(one, ast.Name) and (number := _number(one, spot)) is not None:
                    parts[one.id] = number
        listed = " and ".join(f"{one} is {number}" for one, number in parts.items())
        cause += f" Here {listed}." if listed else ""
        advice = _as_many(_made_of(lower, spot), made, spot)
        advice = advice or f"Make {name} longer on that axis, or correct what begins there."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return None


def _as_many(lower: ast.expr | None, made: ast.expr | None, spot: Spot) -> str:
    """What to do about a slice that begins at `4 * cls` of `4 * num_classes` places."""
    begins, length = _times(lower), _times(made)
    value = _number(begins[1], spot) if begins is not None else None
    if begins is None or length is None or begins[0] != length[0] or value is None:
        return ""
    which, count = spot.source.text(_uncast(begins[1])), spot.source.text(length[1])
    least = f"For {which} {value}, {count} has to be at least {value + 1}"
    return f"{least}: set it so where it comes from, or correct {which}."


def _times(node: ast.expr | None) -> tuple[int, ast.expr] | None:
    """The whole number and the other factor of a product."""
    inner = _uncast(node) if node is not None else None
    if not isinstance(inner, ast.BinOp) or not isinstance(inner.op, ast.Mult):
        return None
    for number, other in ((inner.left, inner.right), (inner.right, inner.left)):
        if isinstance(number, ast.Constant) and type(number.value) is int:
            return number.value, other
    return None


def _made_of(lower: ast.expr | None, spot: Spot) -> ast.expr | None:
    """What a name of the line was assigned above it; the expression itself where it has none."""
    if not isinstance(lower, ast.Name) or spot.function is None:
        return lower
    found = [
        one.value for one in ast.walk(spot.function)
        if isinstance(one, ast.Assign) and one.lineno < spot.line and lower.id in map(ast.unparse, one.targets)
    ]  # fmt: skip
    return found[-1] if found else None


def beyond(
    statement: ast.stmt, spot: Spot, said: re.Match[str] | None
) -> Iterator[tuple[ast.Subscript, ast.expr, int, int, int]]:
    """Each index of a line that may be the one: the subscript, its part, the axis, the index, and the length."""
    for one in ast.walk(statement):
        if not isinstance(one, ast.Subscript):
            continue
        parts = one.slice.elts if isinstance(one.slice, ast.Tuple) else [one.slice]
        owner = _value(one.value, spot)
        if said is None:
            index = _number(one.slice, spot)
            if type(owner) in (list, tuple) and index is not None and index >= len(owner):
                yield one, one.slice, 0, index, len(owner)
            continue
        index, axis, size = (int(number) for number in said.groups())
        shape = owner.shape if is_ndarray(owner) else None
        plain = all(isinstance(part, ast.Slice) or not isinstance(part, ast.Constant) or type(part.value) is int
                    for part in parts[: axis + 1])  # fmt: skip
        if shape is None or len(parts) <= axis or len(shape) <= axis or shape[axis] != size or not plain:
            continue
        part = parts[axis]
        if not isinstance(part, ast.Slice) and _number(part, spot) in (None, index):
            yield one, part, axis, index, size


def _value(node: ast.expr, spot: Spot) -> Any:
    """An array or a list, as it is kept; None where it is not known."""
    found = lookup(node, spot)
    if found is None and isinstance(node, ast.Subscript):
        found = item(_value(node.value, spot), _number(node.slice, spot))
    return computed(node, spot) if found is None else found


def _number(node: ast.expr, spot: Spot) -> int | None:
    """The whole number that an expression gives; None where it is not known."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        left, right = _number(node.left, spot), _number(node.right, spot)
        if left is None or right is None:
            return None
        return left + right if isinstance(node.op, ast.Add) else left - right
    inner = _uncast(node)
    if inner is not node:
        return _number(inner, spot)
    if isinstance(node, ast.Call) and dotted(node.func) == "len" and len(node.args) == 1:
        kept = lookup(node.args[0], spot)
        sized = type(kept) in (list, tuple, dict) or (is_ndarray(kept) and kept.ndim > 0)
        return len(kept) if sized else None
    found = lookup(node, spot)
    found = computed(node, spot) if found is None else found
    if type(found).__name__ == "EagerTensor" or type(found).__module__ == "numpy":
        if found.shape != () or getattr(found.dtype, "name", "string") in ("string", "bool", "object", "variant"):
            return None
        found = float(found)
    whole = type(found) in (int, float) and found == found and abs(found) < 2**53
    return int(found) if whole else None


def _uncast(node: ast.expr) -> ast.expr:
    """`box[0]` of `int(box[0])`, of `box[0].numpy()` and of `np.int32(box[0])`."""
    if not isinstance(node, ast.Call) or node.keywords:
        return node
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr in _METHODS:
        return _uncast(func.value)
    return _uncast(node.args[0]) if len(node.args) == 1 and dotted(func).rpartition(".")[2] in _CASTS else node


def _split(node: ast.expr, spot: Spot) -> _Sum | None:
    """A sum of one part that varies and numbers; None where nothing in it varies, or several parts do."""
    inner = _uncast(node)
    if isinstance(inner, ast.BinOp) and isinstance(inner.op, (ast.Add, ast.Sub)):
        left, right = inner.left, inner.right
        if isinstance(left, ast.Constant) and type(left.value) is int and isinstance(inner.op, ast.Add):
            left, right = right, left
        if not isinstance(right, ast.Constant) or type(right.value) is not int:
            return None
        found = _split(left, spot)
        more = right.value if isinstance(inner.op, ast.Add) else -right.value
        return None if found is None else _Sum(found.part, found.more + more)
    if isinstance(inner, ast.Call) and dotted(inner.func) == "len" and len(inner.args) == 1:
        return _Sum(inner, 0)
    varies = dotted(inner) or isinstance(inner, ast.Subscript)
    return _Sum(inner, 0) if varies else None


def _counts(node: ast.expr, spot: Spot) -> bool:
    """Whether a value is counted by a loop or a line of the file, and does not come from the data."""
    if not isinstance(node, ast.Name):
        return False
    inside = list(ast.walk(spot.source.tree))
    changed = {one.target.id for one in inside if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)}
    for one in inside:
        if isinstance(one, _LOOPS) and isinstance(one.iter, ast.Call):
            called = dotted(one.iter.func).rpartition(".")[2]
            if called in ("range", "arange", "count"):
                changed |= set(_names_of(one.target))
            elif called == "enumerate" and isinstance(one.target, ast.Tuple):
                changed |= set(_names_of(one.target.elts[0]))
    return node.id in changed


def _names_of(target: ast.expr) -> Iterator[str]:
    """The names that a target binds."""
    return (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


def _length(owner: ast.expr, axis: int, size: int, spot: Spot) -> ast.expr | None:
    """What made an array or list so long on an axis, `5 + self.class_num` of `np.zeros((h, 5 + self.class_num))`."""
    inside = owner.value if isinstance(owner, ast.Subscript) and not isinstance(owner.slice, _SEVERAL) else None
    rows = [(made, axis + 1) for made in _makers(inside, spot)] if inside is not None else []
    for made, place in [*((made, axis) for made in _makers(owner, spot)), *rows]:
        asked = _asked_length(made, place)
        if asked is not None and names(asked) and _number(asked, spot) == size:
            return asked
    return None


def _makers(owner: ast.expr, spot: Spot) -> Iterator[ast.expr]:
    """What an array may have been made by, where the file shows it."""
    if isinstance(owner, ast.Call):
        yield owner
    elif isinstance(owner, ast.Subscript):
        for made in _makers(owner.value, spot):
            if isinstance(made, ast.ListComp):
                yield made.elt
            elif isinstance(made, ast.List) and made.elts:
                yield made.elts[0]
    elif dotted(owner):
        everywhere = "." in dotted(owner) or dotted(owner) not in spot.variables
        where = spot.function if spot.function is not None and not everywhere else spot.source.tree
        values = [
            one.value for one in ast.walk(where)
            if isinstance(one, ast.Assign) and dotted(owner) in map(ast.unparse, one.targets)
        ]  # fmt: skip
        if len(values) == 1:
            yield values[0]


def _asked_length(made: ast.expr, axis: int) -> ast.expr | None:
    """The length that an array or a list was made with."""
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Mult) and axis == 0:
        sides = (made.left, made.right)
        lists = [one for one in sides if isinstance(one, ast.List) and len(one.elts) == 1]
        return next(one for one in sides if one is not lists[0]) if len(lists) == 1 else None
    if not isinstance(made, ast.Call):
        return None
    called = dotted(made.func).rpartition(".")[2]
    first = made.args[0] if made.args else next((one.value for one in made.keywords if one.arg in ("shape", "N")), None)
    if called in _SQUARE and len(made.args) <= 1:
        return first
    if called not in _FILLED or first is None:
        return None
    if isinstance(first, (ast.Tuple, ast.List)):
        return first.elts[axis] if axis < len(first.elts) else None
    return first if axis == 0 else None
