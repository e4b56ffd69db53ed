"""`self.params["samples"]` in a callback: Keras 3 has numbers of epochs and batches there, and nothing of the data."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import lookup, of_keras

RULE = "older-api"
_SIZES = ("samples", "batch_size", "nb_sample")
_NAMES = {"nb_epoch": "epochs", "nb_epochs": "epochs"}
_KNOWN = (*_SIZES, *_NAMES, "metrics", "do_validation")
"""What callbacks of Keras 2 and before found there."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a callback asks its params for what Keras 2 put there."""
    spot, statement, args = situation.last, situation.statement, situation.inner.args
    if situation.kind != "KeyError" or spot is None or statement is None or not args or args[0] not in _KNOWN:
        return None
    key = str(args[0])
    for one in ast.walk(statement):
        if not (isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant) and one.slice.value == key):
            continue
        owner = one.value
        if not isinstance(owner, ast.Attribute) or owner.attr != "params":
            continue
        params = lookup(owner, spot)
        if not of_keras(type(lookup(owner.value, spot)), "Callback") or type(params) is not dict or key in params:
            continue
        text, around = spot.source.text(owner), spot.source.parent(one)
        cause = f'Keras 3 gives a callback no params["{key}"]'
        node: ast.expr = one
        new = f'{text}["{_NAMES[key]}"]' if key in _NAMES else ""
        if new:
            cause += f": it calls it {_NAMES[key]}."
        elif isinstance(around, ast.BinOp) and isinstance(around.op, ast.FloorDiv) and _is_batches(around):
            node, new = around, f'{text}["steps"]'
            cause += ": params has the number of batches of an epoch, steps."
        else:
            cause += f": it has {', '.join(params)}."
        edit = edit_of(spot.file, spot.source.replaced({node: new})) if new else None
        advice = "Give the callback this number where you make it, as an argument of its __init__."
        if key == "metrics":
            advice = "The names of the metrics are the keys of logs in on_epoch_end."
        if edit is not None:
            advice = ""
        return Explanation(RULE, spot.file, one.lineno, cause, edit, advice)
    return None


def _is_batches(node: ast.BinOp) -> bool:
    """Whether it is `self.params["samples"] // self.params["batch_size"]`."""
    sides = (node.left, node.right)
    keys = [one.slice.value for one in sides if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant)]
    return keys in (["samples", "batch_size"], ["nb_sample", "batch_size"]) and all(
        isinstance(one, ast.Subscript) and dotted(one.value) == "self.params" for one in sides
    )
