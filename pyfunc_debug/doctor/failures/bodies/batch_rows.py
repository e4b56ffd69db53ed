"""A row that does not fit its place in an array: a gray image among colors, a vector where a number stands."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_ndarray, lookup

_SIZES = re.compile(r"could not broadcast input array from shape \(([\d,]+)\) into shape \(([\d,]+)\)")
_VECTOR = re.compile(
    r"setting an array element with a sequence|only 0-dimensional arrays can be converted|only length-1 arrays"
)
_IMAGE = 2


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator stores such a row: `x[i] = row`."""
    spot, statement = situation.last, situation.statement
    if spot is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not situation.data:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, (ast.Name, ast.Attribute)):
        return None
    sizes = _SIZES.search(situation.message)
    if sizes is not None:
        got, place = (tuple(int(part) for part in one.split(",") if part) for one in sizes.groups())
        if len(got) == len(place) == 1 and got > place:
            return _longer(spot, statement, target, got[0], place[0])
        if len(got) == len(place) == 1 and 1 < got[0] < place[0]:
            return _shorter(spot, statement, target, got[0], place[0])
        return _image(spot, statement, target, got, place)
    return _vector(spot, statement, target) if _VECTOR.search(situation.message) else None


def _image(
    spot: Spot, statement: ast.Assign, target: ast.Subscript, got: tuple[int, ...], place: tuple[int, ...]
) -> Explanation | None:
    """A gray image for a place with channels, and one of another size."""
    source, name = spot.source, spot.source.text(target.value)
    if len(got) == _IMAGE and len(place) == _IMAGE + 1 and got == place[:_IMAGE]:
        what = "an axis of one at its end" if place[-1] == 1 else "an axis of one, which goes to each of the channels,"
        cause = f"the image is {list(got)}, gray, and its place in {name} is {list(place)}. With {what} it fits."
        edit = in_place(spot, {statement.value: f"({source.text(statement.value)})[..., None]"})
        return Explanation(RULE, spot.file, spot.line, cause, edit)
    if len(got) == len(place) == _IMAGE + 1 and got[_IMAGE:] == place[_IMAGE:] and got != place:
        cause = f"the image is {list(got)}, and its place in {name} is {list(place)}: it has another size."
        resize = next((one for one in calls(spot.function or ast.Pass()) if dotted(one.func).endswith(".resize")), None)
        if spot.value("cv2") is not None and resize is None:
            text = source.text(statement.value)
            edit = in_place(spot, {statement.value: f"cv2.resize({text}, ({place[1]}, {place[0]}))"})
            return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
        turned = got[:_IMAGE] == place[:_IMAGE][::-1] and resize is not None
        if turned and resize is not None:
            cause += f" {short(source.text(resize.func), 20)} in line {resize.lineno} takes the width first."
        return Explanation(RULE, spot.file, spot.line, cause, None, "Resize it where it is read.")
    return None


def _longer(spot: Spot, statement: ast.Assign, target: ast.Subscript, got: int, place: int) -> Explanation | None:
    """`x[i, :len(s)] = s` of a longer text than the array has columns for."""
    source, value = spot.source, statement.value
    name, held = dotted(target.value), lookup(value, spot)
    if not isinstance(value, (ast.Name, ast.Attribute)) or held is None or len(held) != got:
        return None
    sized = [
        one.value.args[0] for one in (own_nodes(spot.function) if spot.function is not None else ())
        if isinstance(one, ast.Assign) and name in [dotted(each) for each in one.targets] and one.lineno < spot.line
        and isinstance(one.value, ast.Call) and one.value.args
        and dotted(one.value.func).rpartition(".")[2] in ("zeros", "empty", "ones", "full")
    ]  # fmt: skip
    last: ast.expr | None = sized[-1] if sized else None
    if isinstance(last, (ast.Tuple, ast.List)) and last.elts:
        last = last.elts[-1]
    known = last is not None and not isinstance(last, ast.Constant) and lookup(last, spot) == place
    size = source.text(last) if known and last is not None else str(place)
    text = source.text(value)
    cause = f"{text} has {got} values, and its place in {name} has {place}. Its first {place} fit."
    edit = in_place(spot, {value: f"{text}[:{size}]"})
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Cut it: {text}[:{size}].")


def _shorter(spot: Spot, statement: ast.Assign, target: ast.Subscript, got: int, place: int) -> Explanation | None:
    """`x[i] = row` of a shorter row: it goes to the first places."""
    source, value = spot.source, statement.value
    if isinstance(target.slice, (ast.Slice, ast.Tuple)):
        return None
    owner, at = source.text(target.value), source.text(target.slice)
    named = isinstance(value, (ast.Name, ast.Attribute))
    text = source.text(value)
    row = text if named else source.unused_name("row")
    cause = f"{short(text, 40)} has {got} values, and its place in {owner} has {place}. "
    cause += "The rest of the place keeps what it has."
    first, last = source.span(statement)
    blanks = indent_of(source.lines[first - 1])
    lines = [] if named else [f"{blanks}{row} = {text}"]
    edit = Edit(spot.file, first, last, (*lines, f"{blanks}{owner}[{at}, :len({row})] = {row}"))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")


def _vector(spot: Spot, statement: ast.Assign, target: ast.Subscript) -> Explanation | None:
    """`y[i] = to_categorical(label, 4)` of `y = np.zeros(size)`."""
    source, name, array = spot.source, dotted(target.value), lookup(target.value, spot)
    if not is_ndarray(array) or array.ndim != 1:
        return None
    width = _width(spot, statement.value)
    made = [
        one.value for one in (own_nodes(spot.function) if spot.function is not None else ())
        if isinstance(one, ast.Assign) and name in [dotted(each) for each in one.targets] and one.lineno < spot.line
        and isinstance(one.value, ast.Call) and dotted(one.value.func).rpartition(".")[2] in ("zeros", "empty", "ones")
    ]  # fmt: skip
    cause = f"{name} has one number for each row, and line {spot.line} gives a row of several."
    if not made or not width or not isinstance(made[-1], ast.Call) or not made[-1].args:
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Make {name} with an axis for them.")
    size = made[-1].args[0]
    text = source.text(size.elts[0] if isinstance(size, (ast.Tuple, ast.List)) and size.elts else size)
    edit = edit_of(spot.file, source.replaced({size: f"({text}, {width})"}))
    return Explanation(RULE, spot.file, made[-1].lineno, cause, edit, "" if edit else f"Make it of ({text}, {width}).")


def _width(spot: Spot, value: ast.expr) -> str:
    """How many numbers a row has, as the source says it, or as the value shows."""
    if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in ("to_categorical", "one_hot"):
        named = [word.value for word in value.keywords if word.arg in ("num_classes", "depth")]
        given = named or value.args[1:2]
        return spot.source.text(given[0]) if given else ""
    held = lookup(value, spot)
    if is_ndarray(held) and held.ndim == 1:
        return str(held.shape[0])
    return str(len(held)) if type(held) in (list, tuple) else ""
