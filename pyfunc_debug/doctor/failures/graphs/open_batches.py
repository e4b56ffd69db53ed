"""The size of a batch that `batch()` leaves open, where Python needs it as a number: in `range`, as a list's length."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.datasets.dropped_rests import keeps_rest, with_rest_dropped
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, together
from pyfunc_debug.doctor.failures.reading import datasets, evaluation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names
from pyfunc_debug.doctor.failures.reading.symbols import described, method_calls, root_is, shape_of
from pyfunc_debug.interception.names.private import batch_size, count_of, dataset_inputs, is_eager

RULE = "symbolic-value"
_KEEPS = {
    "Cast", "Identity", "Conv2D", "BiasAdd", "Relu", "Tanh", "Sigmoid", "MaxPool", "AvgPool", "MatMul", "Sub", "AddV2",
    "Mul", "RealDiv", "Conv1D", "Conv3D", "FusedBatchNormV3", "LeakyRelu", "Softmax",
}  # fmt: skip
"""Ops whose result has the first axis of what they are given."""
_OTHERWISE = ("unbatch", "rebatch", "ragged_batch", "padded_batch", "bucket_by_sequence_length")
"""Methods behind which the size of a batch is another one."""
_FARTHEST, _MOST_OPS = 20, 100
"""Lines from the first to the last that one paste changes, and ops that are gone back over."""


def explain(situation: Situation, spot: Spot, name: str, value: Any, sizes: set[str]) -> Explanation | None:
    """What makes the size of each batch known at trace; None where a tensor of it does, or it is another size.

    Args:
      situation: The failure.
      spot: The frame in which a size is None.
      name: The tensor whose first size is None, as text.
      value: The tensor.
      sizes: What stands for that size: names, and `x.shape[0]` as text.
    """
    shape = shape_of(value)
    use = _use(spot, sizes) if shape and shape[0] is None else None
    if use is None or wrapping.entry(situation)[1] == "Keras" or not _is_of_dataset(situation, value):
        return None
    for file, source in situation.sources():
        there = next((one for one in situation.spots if one.file == file), spot)
        found = [one for one in method_calls(source.tree, "batch") if _leaves_open(one, there)]
        if not found:
            continue
        if any(method_calls(source.tree, *_OTHERWISE)):
            return None
        edits = [Edit(file, one.lineno, one.end_lineno or one.lineno, with_rest_dropped(one, source)) for one in found]
        whole = together(edits, source.lines)
        apart = len({one.first for one in edits}) == len(edits) and whole.last - whole.first < _FARTHEST
        first = found[0]
        at = first.func.end_lineno or first.lineno
        lost = "no element is lost" if _is_endless(source, first) else "the last, shorter batch is left out"
        cause = (
            f"{name} is {described(value)}: batch() of line {at} leaves its first size open, as the last batch may be "
            f"shorter, and `{use}` needs it at trace as a number of Python's. With drop_remainder=True each batch has "
            f"the same size: {lost}."
        )
        advice = "" if apart else "Give drop_remainder=True to each batch()."
        return Explanation(RULE, spot.file, spot.line, cause, whole if apart else None, advice)
    return None


def _use(spot: Spot, sizes: set[str]) -> str | None:
    """Where Python needs a size as a number, as text; None where a tensor serves as well."""
    for one in own_nodes(spot.function if spot.function is not None else spot.source.tree):
        needs: list[ast.expr | None] = []
        if isinstance(one, ast.comprehension):
            needs = [one.iter] if dotted(getattr(one.iter, "func", None)) == "range" else []
        elif isinstance(one, ast.For) and dotted(getattr(one.iter, "func", None)) == "range":
            lists = any(dotted(call.func).endswith(".append") for call in method_calls(one, "append"))
            needs = [one.iter] if lists or not spot.generated else []
        elif isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult):
            lists = isinstance(one.left, ast.List) or isinstance(one.right, ast.List)
            needs = [one.left, one.right] if lists else []
        elif isinstance(one, ast.Call) and root_is(one.func, spot, "tensorflow"):
            method = dotted(one.func).rpartition(".")[2]
            needs = [argument(one, 1, "num")] if method == "unstack" else []
            needs = [argument(one, 1, "num_or_size_splits")] if method == "split" else needs
        for given in needs:
            if given is not None and _reads(given, sizes, spot.source):
                return spot.source.text(one if isinstance(one, ast.expr) else given)
    return None


def _reads(node: ast.expr, sizes: set[str], source: Source) -> bool:
    return bool(sizes & set(names(node))) or any(
        isinstance(one, ast.Subscript) and source.text(one) in sizes for one in ast.walk(node)
    )


def _leaves_open(call: ast.Call, spot: Spot) -> bool:
    """Whether a call of `batch` makes batches whose size is not fixed, and would with drop_remainder."""
    size = argument(call, 0, "batch_size")
    return size is not None and keeps_rest(call, 1, spot) and evaluation.computed(size, spot) != 1


def _is_endless(source: Source, batch: ast.Call) -> bool:
    """Whether a `repeat()` without a count stands before a batch: then there is no last one."""
    scope = [one for one in source.around(batch) if isinstance(one, ast.FunctionDef)][:1]
    end = (batch.func.end_lineno or 0, batch.func.end_col_offset or 0)
    return any(
        not one.args and not one.keywords and (one.end_lineno or 0, one.end_col_offset or 0) < end
        and [each for each in source.around(one) if isinstance(each, ast.FunctionDef)][:1] == scope
        for one in method_calls(source.tree, "repeat")
    )  # fmt: skip


def _is_of_dataset(situation: Situation, value: Any) -> bool:
    """Whether a tensor is of a dataset's batches, or made of one by ops that keep the first axis."""
    op = getattr(value, "op", None)
    for _ in range(_MOST_OPS):
        if op is None or op.type not in _KEEPS or not op.inputs:
            break
        op = next((one.op for one in op.inputs if (shape_of(one) or (0,))[0] is None), None)
    if op is None:
        return False
    if op.type == "IteratorGetNext":
        return True
    nested = getattr(getattr(op.graph, "outer_graph", None), "outer_graph", None) is not None  # a loop over a dataset
    if op.type != "Placeholder" or not (nested or wrapping.entry(situation)[1] == "tf.data"):
        return False  # an input_signature says the shapes of a tf.function's own, whatever is given
    given = shape_of(op.outputs[0])
    batched = [one for one in datasets.held(situation) if type(one).__name__ in datasets.BATCHES and _is_large(one)]
    return any(shape_of(leaf) == given for one in batched for leaf in datasets.leaves(one.element_spec))


def _is_large(batched: Any) -> bool:
    """Whether a dataset's batches are larger than one, and its elements make a whole one, as far as that is known."""
    count, size = count_of(dataset_inputs(batched)[0]), batch_size(batched)
    known = int(size) if is_eager(size) else None
    return known is None or (known > 1 and (count is None or count < 0 or count >= known))
