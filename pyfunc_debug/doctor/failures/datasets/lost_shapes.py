"""A rank that an op of TensorFlow's leaves open, as `tf.io.parse_tensor` does, and a later line that needs it at trace.

The op is found in the graphs of the dataset's own functions, or in that of the function that failed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.bodies import unknown_shape
from pyfunc_debug.doctor.failures.datasets import open_squeezes
from pyfunc_debug.doctor.failures.datasets.unshaped_generators import of_unknown_rank
from pyfunc_debug.doctor.failures.graphs.none_shape import tensor_of
from pyfunc_debug.doctor.failures.pastes import learned_shapes
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import datasets
from pyfunc_debug.doctor.failures.reading.nodes import Node, argument, user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, read, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_symbolic, ops_without_rank, shape_of, symbolic_parts
from pyfunc_debug.interception.names.private import called_graphs, dataset_functions
from pyfunc_debug.interception.tokens import token_of
from pyfunc_debug.program.frames import user_frames

RULE = "unknown-shape"
_SAID = re.compile(
    r"unknown TensorShape|unknown rank|ndim=None|<unknown>|contains no shape|has unknown rank"
    r"|[Rr]ank (?:is|must be) (?:unknown|known)",
    re.IGNORECASE,
)
_STACKED = re.compile(r"Cannot (?:add tensor to the batch|batch tensors with different shapes)")
_WORDS = {
    "ParseTensor": "tf.io.parse_tensor gives a tensor of any rank: what was written is read when it runs",
    "DecodeImage": "decode_image gives an image or an animation: at trace not even the rank is known",
    "Squeeze": "squeeze without an axis takes away every axis of size 1, and at trace nobody knows which these are",
    "Reshape": "reshape to a tensor whose length nobody knows at trace gives a tensor of any rank",
}
_PYTHON = ("PyFunc", "EagerPyFunc", "PyFuncStateless")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such an op is where a shape got lost that the failing line needs."""
    last = situation.last
    ragged = _STACKED.search(situation.message) is not None
    if last is None or situation.body or not (ragged or _SAID.search(situation.message) or of_unknown_rank(situation)):
        return None
    op, dataset = next(_openers(situation), (None, None))
    at = user_frames(op.traceback)[-1:] if op is not None and op.traceback is not None else ()
    if op is None or not at or op.type in _PYTHON:
        return None
    called = _called(situation, op)
    if called is not None:
        return unknown_shape.of_node(situation, called)
    said = _WORDS.get(op.type, f"the op {op.type} of this line gives a tensor of any rank at trace")
    if ragged:
        edit = learned_shapes.of_ragged_batch(situation)
        said += ". Without a rank, ragged_batch stacks as batch does, elements of one shape only"
        return None if edit is None else Explanation(RULE, at[0].file, at[0].line, f"{said}.", edit)
    if last.line != at[0].line or last.file != at[0].file:
        statement = last.statement
        code = short(last.source.text(statement).split("\n")[0], 34) if statement is not None else ""
        said += (
            f". `{code}` (line {last.line}) needs it at trace" if code.strip(". ") else f". Line {last.line} needs it"
        )
    alike = any(learned_shapes.says_all(one) for one in datasets.held(situation))
    squeezed = None
    if op.type == "Squeeze":
        squeezed = open_squeezes.named(op, dataset, alike, at[0].file, at[0].line, read(at[0].file))
    if squeezed is not None:
        more, edit, advice = squeezed
        return Explanation(RULE, at[0].file, at[0].line, f"{said}. {more}.", edit, advice)
    edit = learned_shapes.shaped(situation)
    if edit is not None:
        return Explanation(RULE, at[0].file, at[0].line, f"{said}. The first element tells it.", edit)
    edit = _of_targets(last)
    if edit is not None:
        said += ". How many there are, the names on the left say"
        return Explanation(RULE, at[0].file, at[0].line, f"{said}.", edit)
    advice = f"Say it below: x = {alias(last, 'tensorflow')}.ensure_shape(x, [...]), with None for a size that varies."
    return Explanation(RULE, at[0].file, at[0].line, f"{said}.", None, advice)


def _called(situation: Situation, op: Any) -> Node | None:
    """The py_function inside of the tf.function that an op calls, if it is what lost the rank of the op's result."""
    tokens = {
        token_of(one) for graph in called_graphs(op) for output in graph.outputs
        for one in _behind(output) if one.type in _PYTHON
    }  # fmt: skip
    return next((node for node in user_nodes(situation) if node.token in tokens), None)


def _of_targets(spot: Spot) -> Edit | None:
    """`h, w = x.shape` and `a, b = tf.unstack(x)`, where the names say how many sizes or parts there are."""
    statement = spot.statement
    targets = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(targets, (ast.Tuple, ast.List)) or not isinstance(statement, ast.Assign):
        return None
    if any(isinstance(one, ast.Starred) for one in targets.elts):
        return None
    value, tf, text = statement.value, alias(spot, "tensorflow"), spot.source.text
    tensor = tensor_of(value)
    if tensor is not None:
        new = f"{tf}.unstack({tf}.shape({text(tensor)}), num={len(targets.elts)})"
    elif isinstance(value, ast.Call) and dotted(value.func) == f"{tf}.unstack" and argument(value, 1, "num") is None:
        new = spot.source.with_argument(value, f"num={len(targets.elts)}")
    else:
        return None
    return edit_of(spot.file, spot.source.replaced({value: new}))


def _openers(situation: Situation) -> Iterator[tuple[Any, Any]]:
    """The ops that leave a rank open: of what the failing line reads, else of the datasets that the program holds.

    Yields:
      An op, and the dataset in whose function it is: None where it is in none.
    """
    spot, statement = situation.last, situation.statement
    parts = symbolic_parts(statement, spot) if spot is not None and statement is not None else {}
    yield from (
        (op, None) for one in parts.values() if is_symbolic(one) and shape_of(one) is None for op in _behind(one)
    )
    for dataset in datasets.held(situation):
        for wrapper in dataset_functions(dataset):
            graph = getattr(getattr(wrapper, "function", None), "graph", None)
            for one in getattr(graph, "outputs", ()):
                if shape_of(one) is None:
                    yield from ((op, dataset) for op in _behind(one))


def _behind(tensor: Any) -> Iterator[Any]:
    """The ops that gave a tensor without a rank, of tensors that had one."""

    def is_open(one: Any) -> bool:
        return is_symbolic(one) and shape_of(one) is None and one.dtype.name != "variant"

    for op, inputs in ops_without_rank(tensor, is_open):
        if not inputs and op.type not in ("Placeholder", "IteratorGetNext", "Identity"):
            yield op
