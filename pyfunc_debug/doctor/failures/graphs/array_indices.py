"""Arrays as indices of a tensor: NumPy takes them, TensorFlow's `[]` takes single places and slices only."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import Guess
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, is_symbolic, lookup, shape_of

RULE = "array-index"
_PLACES = ("range", "arange", "permutation", "argsort", "argmax", "argmin", "randint", "choice", "searchsorted")
_SAID = "are valid indices, got"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a tensor was given an array for an index."""
    spot = situation.last
    statement = situation.statement if _SAID in situation.message else None
    if spot is None or statement is None:
        return None
    for one in ast.walk(statement):
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load) and _may_be_tensor(one.value, spot):
            parts = list(one.slice.elts) if isinstance(one.slice, ast.Tuple) else [one.slice]
            arrays = [place for place, part in enumerate(parts) if _is_array(part, spot)]
            if arrays:
                return _explanation(spot, one, parts, arrays)
    return None


def _may_be_tensor(node: ast.expr, spot: Spot) -> bool:
    value = lookup(node, spot)
    return _is_tensor(value) or (value is None and not isinstance(node, ast.Constant))


def _is_tensor(value: Any) -> bool:
    return is_symbolic(value) or type(value).__name__ in ("EagerTensor", "ResourceVariable", "Variable")


def _is_array(node: ast.expr, spot: Spot) -> bool:
    """Whether an index is an array, a list or a tensor of more than one place."""
    if isinstance(node, (ast.Slice, ast.Constant, ast.UnaryOp)):
        return False
    if isinstance(node, (ast.List, ast.Compare)):
        return True
    value = lookup(node, spot)
    if value is None:
        return isinstance(node, (ast.Call, ast.BinOp)) and not dotted(getattr(node, "func", None)).endswith("newaxis")
    return (
        isinstance(value, list)
        or bool(getattr(value, "shape", None))
        or (is_symbolic(value) and shape_of(value) is None)
    )


def _explanation(spot: Spot, node: ast.Subscript, parts: list[ast.expr], arrays: list[int]) -> Explanation:
    source, tf = spot.source, alias(spot, "tensorflow")
    owner = source.text(node.value)
    owner = owner if isinstance(node.value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({owner})"
    texts = [source.text(parts[place]) for place in arrays]
    text = _text(spot, owner, parts, arrays, texts, tf)
    named = " and ".join(f"`{short(one, 30)}`" for one in texts)
    cause = (
        f"{named} {'is' if len(texts) == 1 else 'are'} of more than one place, and `{short(owner, 30)}` is a tensor: "
        "NumPy takes arrays for indices, a tensor's `[]` takes single places and slices. An op takes the others."
    )
    edit = wrapping.replace_expression(spot, node, text) if text is not None else None
    advice = "" if edit is not None else f"Take them with {tf}.gather or {tf}.gather_nd."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _text(spot: Spot, owner: str, parts: list[ast.expr], arrays: list[int], texts: list[str], tf: str) -> str | None:
    """The op that takes the same; None where a place counts from the end, or other parts are more than `:`."""
    chosen = [parts[place] for place in arrays]
    if any(_counts_from_the_end(lookup(one, spot)) for one in chosen):
        return None
    others = [part for place, part in enumerate(parts) if place not in arrays]
    slices = all(isinstance(one, ast.Slice) for one in others)
    if slices and any(one.lower or one.upper or one.step for one in others if isinstance(one, ast.Slice)):
        cut = [":" if place in arrays else spot.source.text(part) for place, part in enumerate(parts)]
        owner = f"{owner}[{', '.join(cut)}]"
    dots = len(parts) == 2 and arrays == [1] and getattr(parts[0], "value", None) is Ellipsis
    if len(arrays) == 1 and (slices or dots):
        axis = -1 if dots else arrays[0]
        mask = _is_mask(chosen[0], spot)
        if mask is None:
            return None
        called = "boolean_mask" if mask else "gather"
        return f"{tf}.{called}({owner}, {texts[0]}{f', axis={axis}' if axis else ''})"
    if arrays != [0, 1] or others or any(_is_mask(one, spot) is not False for one in chosen):
        return None
    if _counts_rows(chosen[0], spot):
        return f"{tf}.gather({owner}, {texts[1]}, axis=1, batch_dims=1)"
    kinds = [(Guess(spot).of(one) or "").rpartition(".")[2] for one in chosen]
    if len(set(kinds)) > 1 or not kinds[0]:
        texts = [f"{tf}.cast({one}, {tf}.int64)" for one in texts]
    return f"{tf}.gather_nd({owner}, {tf}.stack([{', '.join(texts)}], axis=-1))"


def _counts_rows(node: ast.expr, spot: Spot) -> bool:
    """Whether an index is 0, 1, 2 and so on, by its text or by its values."""
    if (
        isinstance(node, ast.Call)
        and len(node.args) == 1
        and dotted(node.func).rpartition(".")[2] in ("arange", "range")
    ):
        return True
    value = lookup(node, spot)
    numbers = [int(one) for one in value] if _is_whole(value) else None
    return numbers is not None and numbers == list(range(len(numbers)))


def _is_whole(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(type(one) is int for one in value)
    return type(value).__name__ == "ndarray" and value.dtype.kind in "iu" and value.ndim == 1


def _counts_from_the_end(value: Any) -> bool:
    """Whether a place is negative, as far as it is known: tf.gather takes none."""
    return _is_whole(value) and any(int(one) < 0 for one in value)


def _is_mask(node: ast.expr, spot: Spot) -> bool | None:
    """Whether an index is of bools; None where that is not known."""
    value = lookup(node, spot)
    if isinstance(node, ast.Compare):
        return True
    if _is_tensor(value) or type(value).__name__ == "ndarray":
        kind = dtype_of(value) if _is_tensor(value) else value.dtype.name
        return None if "float" in kind else kind == "bool"
    if isinstance(value, list) and value:
        return type(value[0]) is bool
    kind = Guess(spot).of(node) or ""
    if "bool" in kind:
        return True
    method = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    called = method or dotted(getattr(node, "func", None))
    if "int" in kind or called in _PLACES:
        return False
    return False if isinstance(node, ast.List) and all(isinstance(one, ast.Constant) for one in node.elts) else None
