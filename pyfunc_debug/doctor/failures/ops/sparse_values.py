"""A sparse or ragged tensor where an op takes a dense one, or a sparse one whose indices are not in order."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup, root_is

_TAKEN = re.compile(r"Attempt to convert a value \(SparseTensor\(|unsupported operand type\(s\) for .*'SparseTensor'|"
                    r"Failed to convert elements of SparseTensor\(")  # fmt: skip
_ORDER = re.compile(r"is out of order\. Many sparse ops require sorted indices")
_RAGGED = re.compile(r"object of type 'RaggedTensor' has no len\(\)|Failed to convert elements of tf\.RaggedTensor")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one value that the line reads is such a tensor."""
    message = situation.message
    if _ORDER.search(message):
        return each(situation, _ordered)
    if _TAKEN.search(message):
        return each(situation, _dense)
    return each(situation, _ragged) if _RAGGED.search(message) else None


def _of(place: Refused, kind: str) -> list[ast.expr]:
    """The names and attributes of the statement that are tensors of a kind, outside of functions for these."""
    own = [
        part for call in ast.walk(place.statement) if isinstance(call, ast.Call) and ".sparse." in dotted(call.func)
        for part in ast.walk(call)
    ]  # fmt: skip
    return [
        one for one in ast.walk(place.statement)
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load)
        and type(lookup(one, place.spot)).__name__ == kind and (kind != "SparseTensor" or one not in own)
    ]  # fmt: skip


def _dense(place: Refused) -> Explanation | None:
    found, tf = _of(place, "SparseTensor"), alias(place.spot, "tensorflow")
    if not found:
        return None
    name = short(place.text(found[0]), 30)
    for call in place.calls_of("matmul"):
        if len(call.args) == 2 and not call.keywords and call.args[0] in found and call.args[1] not in found:
            cause = f"{name} is a SparseTensor, and matmul takes dense ones. sparse_dense_matmul takes it."
            return place.told(cause, {call.func: f"{tf}.sparse.sparse_dense_matmul"}, measured=True)
    for one in ast.walk(place.statement):
        product = isinstance(one, ast.BinOp) and isinstance(one.op, ast.MatMult)
        if isinstance(one, ast.BinOp) and product and one.left in found and one.right not in found:
            cause = f"{name} is a SparseTensor, and @ takes dense ones. sparse_dense_matmul takes it."
            both = f"{place.text(one.left)}, {place.text(one.right)}"
            return place.told(cause, {one: f"{tf}.sparse.sparse_dense_matmul({both})"}, measured=True)
    cause = f"{name} is a SparseTensor, and this line's op takes dense ones. to_dense writes its zeros out."
    return place.told(cause, {one: f"{tf}.sparse.to_dense({place.text(one)})" for one in found}, measured=True)


def _ordered(place: Refused) -> Explanation | None:
    """`tf.sparse.to_dense(s)` of indices as they came."""
    tf = alias(place.spot, "tensorflow")
    found = [
        call.args[0] for call in ast.walk(place.statement)
        if isinstance(call, ast.Call) and ".sparse." in dotted(call.func)
        and root_is(call.func, place.spot, "tensorflow")
        and call.args and type(lookup(call.args[0], place.spot)).__name__ == "SparseTensor"
    ]  # fmt: skip
    if len(found) != 1:
        return None
    text = place.text(found[0])
    cause = f"the indices of {short(text, 30)} are not in the order of rows, as this op reads them. reorder sorts them."
    return place.told(cause, {found[0]: f"{tf}.sparse.reorder({text})"}, measured=True)


def _ragged(place: Refused) -> Explanation | None:
    """`tf.convert_to_tensor(rows)` of rows of their own lengths."""
    found = [one for one in place.calls_of("convert_to_tensor", "constant") if len(one.args) == 1 and not one.keywords
             and type(lookup(one.args[0], place.spot)).__name__ == "RaggedTensor"]  # fmt: skip
    if len(found) != 1:
        return None
    text = place.text(found[0].args[0])
    cause = f"{short(text, 30)} is ragged: its rows have their own lengths. to_tensor() pads them to one."
    return place.told(cause, {found[0]: f"{place.spot.source.atom(found[0].args[0])}.to_tensor()"}, measured=True)
