"""A list of a `tf.train.Feature` that refuses a body's value: bytes, whole numbers or floats, and one axis of them.

What is refused, and that what is pasted is taken, is tried with the list itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, described, lookup

_TAKES = {"BytesList": "bytes", "FloatList": "numbers", "Int64List": "whole numbers"}
_GIVE_VALUES = {"numpy", "tobytes", "tolist", "ravel", "flatten", "item", "decode", "encode"}
"""Methods of tensors, arrays and text that only give their value in another form."""
_PLAIN = (bool, int, float, str, bytes, list, tuple)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a BytesList, FloatList or Int64List in the failing line refuses its value."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.kind not in ("TypeError", "ValueError", "AttributeError"):
        return None
    pieces: dict[ast.expr, str] = {}
    where, told = spot, ""
    for kind, given, value in _refused(statement, spot, situation.message):
        for form in _forms(kind, given, value, spot):
            outer = _handed(form.node, spot, situation.outer(spot))
            here, others = outer if outer is not None and not form.flat else (spot, [form.node])
            if pieces and here is not where:
                continue
            where = here
            text = here.source.text(others[0])
            a = "an" if kind == "Int64List" else "a"
            told = told or f"{a} {kind} takes {_TAKES[kind]}, and {text} is {form.what}. {form.said}"
            if here is spot:
                pieces[form.place] = form.text.replace("NAME", spot.source.atom(form.node))
                continue
            for one in others:
                found = _one(kind, _value(one, here), spot)
                if found is not None:
                    pieces[one] = found.text.replace("NAME", here.source.atom(one))
    edit = in_place(where, pieces) if pieces else None
    if edit is not None:
        return Explanation(RULE, where.file, where.line, told, edit, "", "likely" if "`int`" in told else "measured")
    return _fractions(situation, spot, statement)


def _fractions(situation: Situation, spot: Spot, statement: ast.stmt) -> Explanation | None:
    """An Int64List of numbers with fractions: a FloatList takes them."""
    for kind, given, value in _refused(statement, spot, situation.message):
        around = next((one for one in spot.source.around(given) if isinstance(one, ast.Call)), None)
        if kind != "Int64List" or around is None or _says("FloatList", value, spot) is not None:
            continue
        cause = f"an Int64List takes whole numbers, and `{short(spot.source.text(given), 40)}` has a fraction."
        outer = spot.source.parent(around)
        if not isinstance(outer, ast.keyword) or outer.arg != "int64_list" or _handed_on(given, spot):
            return Explanation(RULE, spot.file, spot.line, cause, None, "Write it to a FloatList: float_list=.")
        feature = spot.source.parent(outer)
        if not isinstance(feature, ast.Call):
            return None
        module = dotted(around.func).removesuffix("Int64List")
        inside = f"float_list={module}FloatList(value={spot.source.text(given)})"
        edit = in_place(spot, {feature: f"{spot.source.text(feature.func)}({inside})"})
        return Explanation(RULE, spot.file, spot.line, f"{cause} A FloatList takes it.", edit)
    return None


def _handed_on(given: ast.expr, spot: Spot) -> bool:
    """Whether a helper's parameter is what is written: the helper may serve others."""
    function = spot.function
    taken = parameters(function) if isinstance(function, ast.FunctionDef) and len(function.body) == 1 else []
    return any(isinstance(one, ast.Name) and one.id in taken for one in ast.walk(given))


def refused_lists(statement: ast.stmt, spot: Spot) -> list[tuple[str, ast.expr, Any]]:
    """The lists of a statement that refuse their value: kind, what is written, and its value."""
    found = []
    for call in calls(statement):
        kind = dotted(call.func).rpartition(".")[2]
        given = next((one.value for one in call.keywords if one.arg == "value"), None)
        value = _value(given, spot) if given is not None and kind in _TAKES else None
        if given is not None and value is not None and _says(kind, value, spot) is not None:
            found.append((kind, given, value))
    return found


def _refused(statement: ast.stmt, spot: Spot, message: str) -> Iterator[tuple[str, ast.expr, Any]]:
    """The lists of a statement that refuse their value: the first in the words of the failure, the others in any."""
    first = True
    for kind, given, value in refused_lists(statement, spot):
        if not first or (_says(kind, value, spot) or "") in message:
            first = False
            yield kind, given, value


def _says(kind: str, value: Any, spot: Spot) -> str | None:
    """What a list says of a value that it refuses."""
    module = spot.value(alias(spot, "tensorflow"))
    try:
        getattr(module.train, kind)(value=value)
    except (TypeError, ValueError, AttributeError) as refused:
        return str(refused)
    except Exception:  # no list of TensorFlow's
        return None
    return None


def _value(node: ast.expr, spot: Spot) -> Any:
    """What is given to a list, where only names, lists of them and forms of their value are written; else None."""
    if isinstance(node, (ast.List, ast.Tuple)):
        found = [_value(one, spot) for one in node.elts]
        return None if any(one is None for one in found) else found
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GIVE_VALUES:
        owner = _value(node.func.value, spot) if not node.args and not node.keywords else None
        method = getattr(owner, node.func.attr, None) if owner is not None else None
        with suppress(ValueError):
            return method() if method is not None else None
        return None
    found = lookup(node, spot) if dotted(node) else computed(node, spot)
    eager = type(found).__name__ == "EagerTensor"
    plain = type(found) in _PLAIN or (type(found).__module__ == "numpy" and hasattr(found, "dtype"))
    return found if eager or plain else None


@dataclass(frozen=True)
class _Form:
    """What is to be written for a value that a list refuses.

    Attributes:
      node: The value.
      place: What the text replaces: the value, or the list around it.
      text: The new text, with NAME for the value.
      flat: Whether the text stands in the place of a whole list, in a helper for all of its callers.
      what, said: What the value is, and what is said of the new text.
    """

    node: ast.expr
    place: ast.expr
    text: str
    flat: bool
    what: str
    said: str


def _forms(kind: str, given: ast.expr, value: Any, spot: Spot) -> Iterator[_Form]:
    """What is to be written in the place of the parts of a list that are refused; tried."""
    listed = isinstance(given, ast.List)
    parts = list(zip(given.elts, value)) if isinstance(given, ast.List) else [(given, value)]
    for node, one in parts:
        if listed and _says(kind, [one], spot) is None:
            continue
        found = _one(kind, one, spot)
        if found is None or (listed and len(parts) > 1 and found.flat):
            continue
        text = f"[{found.text}]" if not listed and not found.flat else found.text
        place = given if listed and found.flat else node
        yield replace(found, node=node, place=place, text=text)


def _one(kind: str, value: Any, spot: Spot) -> _Form | None:
    """The first form of a value that a list takes; None where it takes the value as it is, or none."""
    if value is None or (_says(kind, [value], spot) is None and type(value) is not bytes and not _is_one(value)):
        return None
    for form, result, said in _candidates(kind, value, alias(spot, "numpy")):
        if _says(kind, result, spot) is None:
            name = ast.Name("NAME", ast.Load())
            return _Form(name, name, form, not isinstance(result, list), _what(value), said)
    return None


def _is_one(value: Any) -> bool:
    """Whether it is one number, or a tensor or array that is one."""
    return getattr(value, "shape", None) == () or type(value) in (bool, int, float)


def _candidates(kind: str, one: Any, np: str) -> Iterator[tuple[str, Any, str]]:
    """Forms of a value, what a list gets with them, and what is said of them: a list of one, or an array for it."""
    eager = type(one).__name__ == "EagerTensor"
    array = one.numpy() if eager else one
    name = "NAME.numpy()" if eager else "NAME"
    if kind == "BytesList":
        if isinstance(array, str):
            yield f"{name}.encode()", [array.encode()], "`.encode()` gives text as bytes."
        elif isinstance(array, bytes):
            yield name, [array], "`.numpy()` gives its value." if eager else "A list of one holds it."
        elif hasattr(array, "tobytes") and array.dtype.kind in "biuf":
            read = f"`.tobytes()` gives them, which tf.io.decode_raw(..., tf.{array.dtype.name}) reads."
            yield f"{name}.tobytes()", [array.tobytes()], read
        elif hasattr(array, "tobytes") and array.dtype.kind in "UO" and _holds_texts(array):
            given = tuple(part.encode() for part in array.ravel())
            row = name if array.ndim == 1 else f"{np}.ravel({name})"
            yield f"[one.encode() for one in {row}]", given, "`.encode()` gives each text as bytes."
        elif hasattr(array, "tobytes") and array.dtype.kind == "O" and array.ndim == 1:
            yield name, array, "`.numpy()` gives its values."
        elif isinstance(array, (list, tuple)) and array and all(type(part) is str for part in array):
            yield "[one.encode() for one in NAME]", tuple(part.encode() for part in array), "`.encode()` gives bytes."
        return
    import numpy

    if isinstance(array, (str, bytes)):
        return
    flat = numpy.ravel(array)
    if flat.dtype.kind not in "biuf" or (kind == "Int64List" and (flat != numpy.trunc(flat)).any()):
        return
    cast = kind == "Int64List" and flat.dtype.kind in "fb"
    if numpy.ndim(array) == 0:
        if not cast:
            yield name, [array], "A list of one holds it."
        plain = "int" if kind == "Int64List" else "float"
        yield f"{plain}(NAME)", [int(array) if kind == "Int64List" else float(array)], f"`{plain}` gives one."
    else:
        form, said = f"{np}.ravel(NAME)", "np.ravel gives them in one row."
        yield (f"{form}.astype({np}.int64)", flat.astype("int64"), said) if cast else (form, flat, said)


def _holds_texts(array: Any) -> bool:
    """Whether an array holds nothing but str."""
    return array.size > 0 and all(isinstance(part, str) for part in array.ravel())


def _what(one: Any) -> str:
    """What a value is: `an eager tensor, float32[2, 2]`."""
    if type(one).__name__ == "EagerTensor":
        return f"an eager tensor, {described(one)}"
    return described(one) if hasattr(one, "dtype") else f"a {type(one).__name__}"


def _handed(node: ast.expr, spot: Spot, outer: Spot | None) -> tuple[Spot, list[ast.expr]] | None:
    """What a helper, `_bytes_feature(value)`, was given, first, and in its other calls there: it serves all of them."""
    function = spot.function
    statement = outer.statement if outer is not None else None
    if (
        outer is None
        or statement is None
        or not isinstance(node, ast.Name)
        or not isinstance(function, ast.FunctionDef)
    ):
        return None
    names = parameters(function)
    if not isinstance(node, ast.Name) or node.id not in names or outer.file != spot.file:
        return None
    place, value = names.index(node.id), spot.value(node.id)
    given = [
        one.args[place] for one in calls(statement)
        if dotted(one.func).rpartition(".")[2] == function.name and len(one.args) > place
    ]  # fmt: skip
    found = [one for one in given if _value(one, outer) is value or _same(_value(one, outer), value)]
    return (outer, [*found[:1], *(one for one in given if one is not found[0])]) if found else None


def _same(one: Any, other: Any) -> bool:
    """Whether two plain values are equal."""
    return type(one) is type(other) and type(one) in (str, bytes, int, float) and bool(one == other)
