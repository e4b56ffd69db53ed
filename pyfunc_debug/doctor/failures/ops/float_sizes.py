"""A size that is a float, as `/` makes it: `tf.zeros([n / 2])`, `tf.reshape(x, [2, n / 2])`."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each, value_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short

_SAID = re.compile(
    r"Cannot convert .*\d\.\d*.* to EagerTensor of dtype int(?:32|64)"
    r"|Value for attr '(?:Tshape|index_type|Tmultiples|Index|Tpaddings)' of (?:float|double)"
    r"|Value passed to parameter '(?:shape|dims|multiples|size|begin|paddings)' has DataType float"
    r"|Expected int(?:32|64)(?: passed to parameter '\w+' of op '\w+')?, (?:but )?got .*\d\.\d* of type 'float'"
    r"|'size' must be a 1-D int32 Tensor"
)
_SIZED = (
    "zeros", "ones", "fill", "reshape", "uniform", "normal", "truncated_normal", "tile", "broadcast_to", "resize",
    "slice", "random_crop", "resize_with_pad", "resize_with_crop_or_pad", "eye", "one_hot", "range",
)  # fmt: skip


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a size in the line is a float that has no fraction."""
    return each(situation, _told) if _SAID.search(situation.message) else None


def _told(place: Refused) -> Explanation | None:
    pieces: dict[ast.expr, str] = {}
    for call in place.calls_of(*_SIZED):
        given = [*call.args, *(one.value for one in call.keywords if one.arg in ("shape", "size", "dims", "multiples"))]
        for one in given:
            for part in one.elts if isinstance(one, (ast.List, ast.Tuple)) else [one]:
                value = value_of(part, place.spot)
                if type(value) is float and value.is_integer() and not isinstance(part, ast.Constant):
                    pieces[part] = _whole(place, part)
    if not pieces:
        return None
    first, more = next(iter(pieces)), len(pieces) > 1
    value = value_of(first, place.spot)
    made = "which `/` makes" if isinstance(first, ast.BinOp) and isinstance(first.op, ast.Div) else "as `/` makes one"
    cause = f"{short(place.text(first), 30)} is {value}, a float, {made}, and sizes are whole numbers."
    return place.told(f"{cause} {'Others are floats, too.' if more else ''}".strip(), pieces, measured=True)


def _whole(place: Refused, node: ast.expr) -> str:
    """`n // 2` of `n / 2`, and `int(n)` of what was made before."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        whole = all(type(value_of(one, place.spot)) is int for one in (node.left, node.right))
        simple = all(isinstance(one, (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call)) or dotted(one)
                     for one in (node.left, node.right))  # fmt: skip
        if whole and simple:
            return f"{place.text(node.left)} // {place.text(node.right)}"
    return f"int({place.text(node)})"
