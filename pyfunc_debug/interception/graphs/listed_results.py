"""Lists of one tensor, as `Tout=[tf.float32]` gives, that TensorFlow made one tensor of: that has an axis more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyfunc_debug.interception.tokens import token_of
from pyfunc_debug.program.frames import user_frames
from pyfunc_debug.records import Frame

_CONVERTS = "_autopacking_conversion_function"
"""What makes a tensor of a list where an op or tf.data is given one (ops/array_ops.py); tf.stack does not ask it."""
_FOLDS = frozenset({"Mean", "Sum", "Max", "Min", "Prod", "All", "Any"})
_EACH = frozenset({
    "Abs", "Add", "AddV2", "Cast", "Div", "Exp", "Greater", "Identity", "Less", "Log", "Log1p", "Maximum", "Minimum",
    "Mul", "Neg", "Pow", "RealDiv", "Relu", "Rsqrt", "Sigmoid", "Sign", "Softplus", "Sqrt", "Square",
    "SquaredDifference", "StopGradient", "Sub", "Tanh", "ZerosLike",
})  # fmt: skip
"""Ops that compute each number on its own: an axis of one more in front changes none."""
_TAKES_OFF = frozenset({
    "Assert", "Equal", "GatherV2", "PrintV2", "Rank", "Reshape", "Shape", "Size", "Squeeze", "StridedSlice",
    "StringFormat", "Unpack",
})  # fmt: skip
"""Ops behind which the axis is gone, or that only look."""
_STEPS = 50


def listed_results(ops: Iterable[Any]) -> Iterator[tuple[str, Frame]]:
    """Tokens of such nodes, and the user's line that uses the list as a tensor: once a node and line."""
    told = set()
    for op in ops:
        for used in op.outputs[0].consumers() if op.outputs else ():  # a recorded node has outputs of its own
            if used.type != "Pack" or len(used.inputs) != 1 or used.traceback is None:
                continue
            if all(entry.name != _CONVERTS for entry in used.traceback) or _is_gone(used.outputs[0]):
                continue
            site = user_frames(used.traceback)[-1:]
            if site and (token_of(op), site[0]) not in told:
                told.add((token_of(op), site[0]))
                yield token_of(op), site[0]


def _is_gone(tensor: Any) -> bool:
    """Whether nothing behind a tensor sees its first axis: all numbers are folded into one, say."""
    todo, steps = [tensor], 0
    while todo:
        one, steps = todo.pop(), steps + 1
        users = one.consumers()
        if steps > _STEPS or any(one is each for each in one.graph.outputs):
            return False
        for used in users:
            if used.type in _EACH:
                todo += used.outputs
            elif used.type not in _TAKES_OFF and not (used.type in _FOLDS and _folds_all(used)):
                return False
    return True


def _folds_all(op: Any) -> bool:
    """Whether a fold leaves one number: over a range of all axes, where their count is not known."""
    return bool(op.outputs[0].shape.rank == 0 or op.inputs[1].op.type == "Range")
