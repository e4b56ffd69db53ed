"""Tensors of different shapes made one: as a list given to `tf.stack`."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls

RULE = "ragged-batch"
_PACKED = re.compile(
    r"Shapes of all inputs must match: values\[0\]\.shape = (\[[\d,]*\]) != values\[\d+\]\.shape = (\[[\d,]*\])"
)
_PACKS = ("stack", "convert_to_tensor")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one of these is why the program failed."""
    packed = _PACKED.search(situation.text)
    if situation.body or packed is None:
        return None
    return _listed(situation, packed) or _rows(situation, packed)


def _listed(situation: Situation, found: re.Match[str]) -> Explanation | None:
    """`return tf.stack([image, label])` where two values are meant."""
    for file, source in situation.sources():
        given = [
            one for one in calls(source.tree)
            if ast.unparse(one.func).rpartition(".")[2] in _PACKS and len(one.args) == 1 and not one.keywords
            and isinstance(one.args[0], (ast.List, ast.Tuple)) and isinstance(source.parent(one), ast.Return)
        ]  # fmt: skip
        if len(given) != 1 or not isinstance(given[0].args[0], (ast.List, ast.Tuple)):
            continue
        text = ", ".join(map(source.text, given[0].args[0].elts))
        placed = source.replaced({given[0]: text})
        cause = (
            f"`{short(source.text(given[0]), 44)}` makes one tensor of values of different shapes, "
            f"{found[1]} and {found[2]}: that takes equal ones. As a tuple each stays a tensor of its own."
        )
        edit = edit_of(file, placed)
        return Explanation(RULE, file, given[0].lineno, cause, edit, "" if edit else f"Return {text}.", "likely")
    return None


def _rows(situation: Situation, found: re.Match[str]) -> Explanation | None:
    """`tf.stack(rows)` of rows of different lengths: padded they are one tensor."""
    given = [
        (file, source, one) for file, source in situation.sources() for one in calls(source.tree)
        if dotted(one.func).rpartition(".")[2] in _PACKS and len(one.args) == 1 and not one.keywords
        and isinstance(one.args[0], (ast.Name, ast.ListComp))
    ]  # fmt: skip
    sizes = found[1].strip("[]").split(",")
    if len(given) != 1 or found[1].count(",") != found[2].count(",") or not sizes[0]:
        return None
    file, source, call = given[0]
    tf = alias(situation.last, "tensorflow") if situation.last is not None else "tf"
    text = source.text(call.args[0])
    open_sizes = ", ".join("None" for _ in sizes)
    cause = (
        f"`{short(source.text(call), 44)}` makes one tensor of rows of different shapes, {found[1]} and {found[2]}. "
        "Padded with zeros they are one; without to_tensor() each keeps its length."
    )
    new = f"{tf}.ragged.stack([{tf}.ensure_shape(row, [{open_sizes}]) for row in {text}]).to_tensor()"
    return Explanation(RULE, file, call.lineno, cause, edit_of(file, source.replaced({call: new})), "", "likely")
