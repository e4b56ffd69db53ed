"""What `from_tensor_slices` takes for parts of an element and the program means as its rows, and the other way round.

A tuple or a dict holds parts, each with a row for every element; a list is one tensor, whose rows are the elements.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, lookup, method_calls, shape_of_data

RULE = "structure"
_SAID = re.compile(
    r"^Unbatching a tensor is only supported for rank >= 1|^Can't convert (?:non-rectangular Python sequence|Python "
    r"sequence with mixed types) to Tensor|^Attempt to convert a value \(.*\) with an unsupported type",
    re.DOTALL,
)
_SLICES = "from_tensor_slices"
_ITERATORS = ("generator", "map", "filter", "set", "frozenset")
_LOOKED_AT = 10_000
_FEW = 4
_Told = tuple[str, str, bool]
"""The cause, what to give to the call instead, and whether the call is one of `from_tensors` then."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a dataset's rows were given as its parts, or its parts as rows."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _SAID.search(situation.message):
        return None
    found = [one for one in method_calls(statement, _SLICES) if len(one.args) == 1]
    if len(found) != 1:
        return None
    call, given = found[0], found[0].args[0]
    told = _zipped(given, spot) or _of_value(given, _value(given, spot), spot)
    if told is None:
        return None
    cause, new, whole = told
    pieces: dict[ast.expr, str] = {given: new} if new else {}
    if isinstance(given, ast.GeneratorExp) and given.col_offset == call.func.end_col_offset:
        pieces = {given: f"({new})"}  # its brackets are those of the call
    if whole or "from_generator(" in new:
        function = spot.source.text(call.func).removesuffix(_SLICES)
        pieces = {call: f"{function}from_tensors({spot.source.text(given)})" if whole else f"{function}{new}"}
    edit = edit_of(spot.file, spot.source.replaced(pieces)) if pieces else None
    advice = "" if edit else "Put a value for each row there, or add it to the elements by a map."
    return Explanation(RULE, spot.file, call.lineno, cause, edit, advice, "likely")


def _value(node: ast.expr, spot: Spot) -> Any:
    """What an expression stands for, as far as names and literals tell; tuples, lists and dicts of such."""
    if isinstance(node, (ast.Tuple, ast.List)):
        parts = [_value(one, spot) for one in node.elts]
        return tuple(parts) if isinstance(node, ast.Tuple) else parts
    if isinstance(node, ast.Dict):
        return {_value(key, spot): _value(one, spot) for key, one in zip(node.keys, node.values) if key is not None}
    if isinstance(node, ast.Call) and dotted(node.func) in ("list", "tuple") and len(node.args) == 1:
        value = _value(node.args[0], spot)
        return (list if dotted(node.func) == "list" else tuple)(value) if type(value) in (list, tuple) else None
    if isinstance(node, ast.Call):
        return evaluation.computed(node, spot)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return lookup(node, spot)
    return node.value if isinstance(node, ast.Constant) else None


def _zipped(given: ast.expr, spot: Spot) -> _Told | None:
    """`zip(xs, ys)` or `list(zip(xs, ys))`: pairs, each a row."""
    inner = (
        given.args[0]
        if isinstance(given, ast.Call) and dotted(given.func) in ("list", "tuple") and given.args
        else given
    )
    if not isinstance(inner, ast.Call) or dotted(inner.func) != "zip" or len(inner.args) < 2:
        return None
    texts = []
    for one in inner.args:
        value = _value(one, spot)
        if isinstance(one, ast.Starred) or value is None:
            return None
        texts.append(
            spot.source.text(one)
            if hasattr(value, "shape") or type(value) is list
            else f"list({spot.source.text(one)})"
        )
    cause = (
        f"{short(spot.source.text(given), 40)} is rows of {len(texts)} parts. from_tensor_slices takes a tuple of the "
        "parts, each with all its rows."
    )
    return cause, f"({', '.join(texts)})", False


def _of_value(given: ast.expr, value: Any, spot: Spot) -> _Told | None:
    text = spot.source.text(given)
    name = short(text, 40)
    kind = type(value).__name__
    if isinstance(given, ast.GeneratorExp) or kind in _ITERATORS:
        what = "a generator" if isinstance(given, ast.GeneratorExp) else f"a {kind}"
        listed = f"list{text}" if isinstance(given, ast.GeneratorExp) else f"list({text})"
        return f"{name} is {what}, and from_tensor_slices takes lists, arrays and tensors.", listed, False
    if _scalar(value):
        what = "one text" if _scalar(value) == "str" else "one number"
        return f"{name} is {what}, and from_tensor_slices takes the rows of a list or of an array.", f"[{text}]", False
    if type(value) is tuple and 0 < len(value) <= _LOOKED_AT:
        return _tuple(given, value, spot)
    if type(value) is dict and value:
        return _dict(name, value)
    if type(value) is list and 0 < len(value) <= _LOOKED_AT:
        return _list(given, value, spot)
    return None


def _tuple(given: ast.expr, value: tuple[Any, ...], spot: Spot) -> _Told | None:
    """A tuple that has parts without rows: texts or numbers, or tuples of them."""
    text = spot.source.text(given)
    name, count = short(text, 40), len(value)
    kinds = [_scalar(one) for one in value]
    begin = f"{name} is a tuple: from_tensor_slices takes it for {count} parts of an element, each with rows of its own"
    if all(kinds) and _alike(kinds):
        listed = (
            f"[{', '.join(map(spot.source.text, given.elts))}]" if isinstance(given, ast.Tuple) else f"list({text})"
        )
        return f"{begin}. A list is one tensor, and each of its rows an element.", listed, False
    if all(kinds):
        return f"{begin}, and these have none. from_tensors makes one element of them.", "", True
    if not all(type(one) is tuple for one in value):
        bare = [number for number, kind in enumerate(kinds) if kind]
        return (f"{begin}, and part {bare[0]} has none.", "", False) if bare else None
    if any(not all(map(_scalar, one)) for one in value) or len({len(one) for one in value}) != 1:
        return None
    same = all(_alike([_scalar(part) for part in one]) for one in value)
    cause = f"{begin}; and the tuples in it for parts again."
    if isinstance(given, ast.Tuple) and same and not all(isinstance(one, ast.Tuple) for one in given.elts):
        listed = ", ".join(f"list({spot.source.text(one)})" for one in given.elts)
        return f"{cause} A list is one tensor.", f"({listed})", False
    if not same:
        return f"{cause} Lists of each part are tensors.", f"tuple(map(list, zip(*{text})))", False
    if not _alike([_scalar(one[0]) for one in value]):
        return f"{cause} Lists of each part are tensors.", f"tuple(map(list, {text}))", False
    return f"{cause} A list is one tensor, and each of its rows an element.", f"list({text})", False


def _dict(name: str, value: dict[Any, Any]) -> _Told | None:
    """A dict that has values without rows."""
    bare = [key for key, one in value.items() if _scalar(one)]
    begin = f"from_tensor_slices takes a row of each part of {name}"
    if len(bare) == len(value):
        return f"{begin}, and its values are single ones. from_tensors makes one element of it.", "", True
    return (f"{begin}, and {bare[0]!r} has one value without rows.", "", False) if bare else None


def _list(given: ast.expr, value: list[Any], spot: Spot) -> _Told | None:
    """A list of rows that have parts of different kinds, or of the parts themselves."""
    text = spot.source.text(given)
    name = short(text, 40)
    if all(type(one) is dict for one in value):
        keys = list(value[0])
        if any(list(one) != keys for one in value) or not all(_stacks([one[key] for one in value]) for key in keys):
            return None
        cause = f"{name} is a list of dicts, and no tensor is made of those. A dict of lists gives such elements."
        return cause, f"{{name: [row[name] for row in {text}] for name in {text}[0]}}", False
    if all(type(one) in (tuple, list) for one in value) and len({len(one) for one in value}) == 1 and len(value[0]) > 1:
        columns = list(zip(*value))
        if _alike([_scalar(part) for one in value for part in one]):
            return None
        cause = f"{name} is a list, of which from_tensor_slices makes one tensor; its rows have {len(columns)} parts. "
        if all(map(_stacks, columns)):
            return (
                f"{cause}A tuple of the parts, each with all its rows, gives them apart.",
                (f"tuple(map(list, zip(*{text})))"),
                False,
            )
        specs = [_spec(one, alias(spot, "tensorflow")) for one in columns]
        if not all(specs):
            return None
        rows = f"map(tuple, {text})" if any(type(one) is list for one in value) else text
        made = f"from_generator(lambda: {rows}, output_signature=({', '.join(map(str, specs))}))"
        return f"{cause}Those of different lengths make no tensor: a generator yields each with its own.", made, False
    shapes = [shape_of_data(one) for one in value]
    if len(value) <= _FEW and all(shapes) and len({one[0] for one in shapes if one}) == 1 and len(set(shapes)) > 1:
        if not isinstance(given, ast.List) and len({len(one or ()) for one in shapes}) == 1:
            return None
        cause = f"{name} is a list, of which from_tensor_slices makes one tensor. "
        cause += "A tuple holds parts, a row of each for an element."
        texts = ", ".join(map(spot.source.text, given.elts)) if isinstance(given, ast.List) else ""
        return cause, f"({texts})" if texts else f"tuple({text})", False
    return None


def _spec(column: Sequence[Any], tf: str) -> str | None:
    """The spec of a part whose rows have shapes of one rank."""
    shapes = [shape_of_data(one, texts=True) for one in column]
    kinds = {_scalar(one) or dtype_of(one) or _dtype_of_list(one) for one in column}
    if None in shapes or len({len(one or ()) for one in shapes}) != 1 or len(kinds) != 1:
        return None
    axes = [set(axis) for axis in zip(*(one or () for one in shapes))]
    sizes = ", ".join(str(one.pop()) if len(one) == 1 else "None" for one in axes)
    kind = {"str": "string", "int": "int32", "float": "float32"}.get(found := kinds.pop(), found)
    return f"{tf}.TensorSpec([{sizes}], {tf}.{kind})" if kind and kind != "object" else None


def _dtype_of_list(value: Any) -> str:
    kinds = {_scalar(one) for one in value} if type(value) in (list, tuple) else set()
    return str(kinds.pop()) if len(kinds) == 1 else ""


def _stacks(column: Sequence[Any]) -> bool:
    """Whether the rows of a part make one tensor."""
    kinds = [_scalar(one) for one in column]
    if any(kinds):
        return all(kinds) and _alike(kinds)
    shapes = {shape_of_data(one, texts=True) for one in column}
    return None not in shapes and len(shapes) == 1


def _alike(kinds: Sequence[str]) -> bool:
    """Whether single values make one tensor."""
    return all(kinds) and (len(set(kinds)) == 1 or set(kinds) <= {"int", "float"})


def _scalar(value: Any) -> str:
    """The kind of a text, a number or a tensor without axes; "" for other values."""
    if type(value) in (str, bool, int, float):
        return type(value).__name__
    return dtype_of(value) if hasattr(type(value), "__array__") and shape_of_data(value) == () else ""
