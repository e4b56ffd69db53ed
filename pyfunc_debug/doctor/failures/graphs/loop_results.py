"""What the function of `tf.map_fn` or `tf.scan` returns has another structure, or another shape, than is declared."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument, local_function, return_value
from pyfunc_debug.doctor.failures.reading.refused_ops import Shape, shape_at, sizes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, root_is, sizes_of

RULE = "structure"
_STRUCTURES = "The two structures don't have the same nested structure"
_RETURNED = re.compile(r"Second structure: type=(\w+) str=(.*?)\n\nMore specifically", re.DOTALL)
_DTYPE = re.compile(r"(?:'(\w+)': )?(?:<tf\.Tensor|tf\.Tensor\(|Tensor\().*?dtype=(\w+)", re.DOTALL)
_TENSOR = re.compile(r"<tf\.Tensor[^>]*>|(?:tf\.)?Tensor\(.*?dtype=\w+(?:, device=[^)]*)?\)", re.DOTALL)
_KEY = re.compile(r"'\w+':")
_SHAPES = (
    re.compile(r"Inconsistent shapes: saw (?P<got>\([\d, ]*\)) but expected (?P<wanted>\([\d, ]*\))"),
    re.compile(r"Incompatible shape for value \((?P<got>\([\d, ]*\))\), expected \((?P<wanted>\([\d, ]*\))\)"),
)
_BRACKETS = {"list": "[]", "tuple": "()"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line calls one of the two, and its function returned something else."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body:
        return None
    found = [one for one in calls(statement) if dotted(one.func).endswith(("map_fn", "scan", "foldl"))]
    if len(found) != 1 or not root_is(found[0].func, spot, "tensorflow"):
        return None
    call, name = found[0], dotted(found[0].func).rpartition(".")[2]
    if _STRUCTURES in situation.message and (said := _RETURNED.search(situation.message)) is not None:
        return _map_fn(spot, call, said[1], said[2]) if name == "map_fn" else _scan(spot, call, said[1], said[2])
    if name == "scan":
        shapes = next((one for pattern in _SHAPES if (one := pattern.search(situation.message))), None)
        return _shapes(spot, call, shapes["got"], shapes["wanted"]) if shapes is not None else None
    return None


def _map_fn(spot: Spot, call: ast.Call, kind: str, text: str) -> Explanation | None:
    """Its results are declared by a signature, or else are as the elements are."""
    tf = alias(spot, "tensorflow")
    new = _signature(kind, text, tf)
    declared = argument(call, 2, "dtype") or argument(call, 7, "fn_output_signature")
    if not new or (declared is not None and spot.source.text(declared) == new):
        return None
    what = f"a {kind}" if kind in ("list", "tuple", "dict") else "one tensor"
    if declared is None:
        elems = argument(call, 1, "elems")
        shown = spot.source.text(elems) if elems is not None else "elems"
        cause = (
            f"the function of tf.map_fn returns {what}, and its results are taken to be as {shown} is. "
            "fn_output_signature says what they are."
        )
        placed = spot.source.replaced({call: spot.source.with_argument(call, f"fn_output_signature={new}")})
    else:
        cause = (
            f"the function of tf.map_fn returns {what}, and the signature is {spot.source.text(declared)}: both must "
            "have the same structure, also a list for a list."
        )
        placed = spot.source.replaced({declared: new})
    edit = edit_of(spot.file, placed)
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else f"Give it fn_output_signature={new}.")


def _signature(kind: str, text: str, tf: str) -> str:
    """The dtypes of what was returned, in its structure; "" where structures are nested."""
    parts = _DTYPE.findall(text)
    rest = _KEY.sub("", _TENSOR.sub("", text))
    if not parts or re.search(r"[\[({]\s*[\[({]", text) or not re.fullmatch(r"[\[\](){},\s]*", rest):
        return ""  # nested, or with something beside tensors
    dtypes = [f"{tf}.{dtype}" for _, dtype in parts]
    if kind == "dict":
        keyed = ", ".join(f'"{key}": {dtype}' for (key, _), dtype in zip(parts, dtypes))
        return f"{{{keyed}}}" if all(key for key, _ in parts) else ""
    if kind in _BRACKETS:
        comma = "," if kind == "tuple" and len(dtypes) == 1 else ""
        return f"{_BRACKETS[kind][0]}{', '.join(dtypes)}{comma}{_BRACKETS[kind][1]}"
    return dtypes[0] if len(dtypes) == 1 and kind.endswith("Tensor") else ""


def _scan(spot: Spot, call: ast.Call, kind: str, text: str) -> Explanation | None:
    """What it carries has the structure of the initializer, or of the elements where there is none."""
    given = argument(call, 2, "initializer")
    count = len(_DTYPE.findall(text))
    returned = f"a {kind} of {count}" if kind in ("list", "tuple", "dict") else "one tensor"
    name = dotted(call.func).rpartition(".")[2]
    held = f"the initializer is {spot.source.text(given)}" if given is not None else "there is no initializer"
    cause = f"the function of tf.{name} returns {returned}, and {held}: what is carried keeps its structure."
    advice = "Return that structure, or give an initializer that has the one of what is returned."
    return Explanation(RULE, spot.file, call.lineno, cause, None, advice)


def _shapes(spot: Spot, call: ast.Call, got: str, wanted: str) -> Explanation | None:
    """One of the values that it carries comes back with another shape than it began with."""
    tf = alias(spot, "tensorflow")
    before, after = sizes(wanted), sizes(got)
    cause = (
        f"the function of tf.scan gives back the shape {sizes_of(after)} for a value that began as {sizes_of(before)}. "
        "What is carried keeps the initializer's shape."
    )
    advice = f"Give it back with the shape {list(before)}, as by keepdims=True where it is reduced."
    function = argument(call, 0, "fn")
    if isinstance(function, ast.Attribute):
        function = ast.Name(function.attr, ast.Load())
    made = local_function(function, spot) if function is not None else None
    result = return_value(made) if made is not None else None
    part = _carried(spot, call, result, before) if result is not None else None
    if part is None or [one for one in before if one != 1] != [one for one in after if one != 1]:
        line = part.lineno if part is not None else call.lineno
        return Explanation(RULE, spot.file, line, cause, None, advice)
    new = f"{tf}.reshape({spot.source.text(part)}, {list(before)})"
    return Explanation(RULE, spot.file, part.lineno, cause, edit_of(spot.file, spot.source.replaced({part: new})))


def _carried(spot: Spot, call: ast.Call, result: ast.expr, before: Shape) -> ast.expr | None:
    """The part of what is returned whose initializer has the shape."""
    if not isinstance(result, (ast.List, ast.Tuple)):
        return result
    given = argument(call, 2, "initializer")
    if not isinstance(given, (ast.List, ast.Tuple)) or len(given.elts) != len(result.elts):
        return None
    fitting = [place for place, one in enumerate(given.elts) if tuple(shape_at(one, spot) or ()) == before]
    return result.elts[fitting[0]] if len(fitting) == 1 else None
