"""Shapes that only an element can tell: a paste that reads the first one, where a line needs those of a dataset."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models import keras_calls
from pyfunc_debug.doctor.failures.pastes import before_caches, wrapping
from pyfunc_debug.doctor.failures.pastes.as_python import mapped_dataset
from pyfunc_debug.doctor.failures.pastes.before_caches import is_open
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.datasets import held, stacks
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    is_batched,
    is_dataset,
    lookup,
    method_calls,
    of_keras,
    shape_of,
)

_NAMES = ("shaped", "with_shapes")
_BATCH = "[None, *s.shape[1:]]"
"""Of what Keras is given: its batches may have any size."""
_OPEN = "[n if 0 < at == s.shape.rank - 1 else None for at, n in enumerate(s.shape)]"
"""The same where one may be longer than the next: the last axis has the features, and the first one none."""
_OPEN_NUMBERS = "[None, *(n if n == 1 else None for n in s.shape[1:])]"
"""The same for an Embedding, whose rows of numbers have any length."""
_WHOLE = re.compile(r"\b(?:Flatten|Reshape)\b")
"""Layers that need every size."""
_FEATURES = re.compile(r"\b(?:LSTM|GRU|SimpleRNN|Dense|Conv[12]D)\(")
"""Layers that need the size of the last axis."""
_ANY_SIZE = re.compile(r"resize|\bcrop|\bpad|ragged|bucket_by")
"""What takes elements of different sizes."""
_PADDED = ("padded_batch", "ragged_batch", "bucket_by_sequence_length")
"""They need the rank of the elements."""
_KEEP_PARTS = ("batch", "shuffle", "prefetch", "repeat", "cache", "take", "skip", "with_options")
_TAKERS = ("fit", "evaluate", "predict")
_RANK = "[None] * s.shape.rank"


def shaped(situation: Situation) -> Edit | None:
    """The datasets of the line that failed, with their shapes: those that Keras is given, or what is padded."""
    for spot in reversed(situation.spots):
        statement = spot.statement
        for call in keras_calls.fits(statement) if statement is not None else ():
            given = [*call.args[:1], *(one.value for one in call.keywords if one.arg in ("x", "validation_data"))]
            found = [(one, value) for one in given if is_dataset(value := dataset_of(one, spot))]
            if found and statement is not None:
                size = next((one.value for one in call.keywords if one.arg == "batch_size"), None)
                return _handed(spot, statement, call, found, size)
    spot = situation.last  # type: ignore[assignment]
    if spot is None:
        return None
    mapped = _mapped(situation) or _called(situation)
    if mapped is not None:
        return mapped
    statement = spot.statement
    padded = [
        one for one in calls(statement) if isinstance(one.func, ast.Attribute) and one.func.attr in _PADDED
    ] if statement is not None else []  # fmt: skip
    if statement is None or len(padded) != 1:
        return None
    inner = [one.f_locals.get("input_dataset") for one in frames(situation.error.__traceback__)]
    dataset = next((one for one in inner if is_dataset(one)), None)
    func = padded[0].func
    assert isinstance(func, ast.Attribute)
    code = "\n".join(spot.source.code)
    sizes = _OPEN if _FEATURES.search(code) and "Embedding" not in code else _RANK
    return None if dataset is None else _defined(spot, statement, {func.value: "{0}.apply({1})"}, dataset, sizes)


def of_ragged_batch(situation: Situation) -> Edit | None:
    """The dataset of the program's one ragged_batch: without a rank it is made as a plain batch, which fails later.

    The older way is `ds.apply(tf.data.experimental.dense_to_ragged_batch(2))`.
    """
    open_ones = [one for one in held(situation) if is_dataset(one) and is_open(one)]
    for file, source in situation.sources():
        older = [part for one in method_calls(source.tree, "apply") for part in one.args if _is_ragged_batch(part)]
        found = method_calls(source.tree, "ragged_batch")
        found += [one for part in older if isinstance(one := source.parent(part), ast.Call)]
        spot = next((one for one in situation.spots if one.file == file), None)
        statement = source.statement(found[0].lineno) if len(found) == 1 else None
        if spot is not None and statement is not None and open_ones and isinstance(found[0].func, ast.Attribute):
            return _defined(spot, statement, {found[0].func.value: "{0}.apply({1})"}, open_ones[0], _RANK)
    return None


def _is_ragged_batch(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "dense_to_ragged_batch"


def _mapped(situation: Situation) -> Edit | None:
    """The dataset whose elements the failing function of a map got, in front of that map."""
    index = len(situation.spots) - 1
    found = wrapping.dataset_call(situation, index)
    if found is None or found[0] is situation.spots[index]:
        return None
    outer, call, _ = found
    statement, dataset = outer.source.statement(call.lineno), mapped_dataset(situation, situation.spots[index])
    if statement is None or dataset is None or not isinstance(call.func, ast.Attribute) or not is_open(dataset):
        return None
    return _defined(outer, statement, {call.func.value: "{0}.apply({1})"}, dataset, _size(dataset, outer))


def _called(situation: Situation) -> Edit | None:
    """The dataset that a function around the failing line is given: in its call."""
    for outer in reversed(situation.spots[:-1]):
        statement = outer.statement
        for call in calls(statement) if statement is not None else ():
            own = dotted(call.func) in {
                one.name for one in ast.walk(outer.source.tree) if isinstance(one, ast.FunctionDef)
            }
            values = {one: dataset_of(one, outer) for one in call.args}
            given = [one for one, value in values.items() if is_dataset(value) and is_open(value)]
            if own and len(given) == 1 and statement is not None:
                dataset = values[given[0]]
                return _defined(outer, statement, {given[0]: "{1}({0})"}, dataset, _size(dataset, outer))
    return None


def says_all(dataset: Any) -> bool:
    """Whether the first element has the shape of all, as they are stacked after their rank got lost."""
    stacked = stacks(dataset)
    return stacked is not None and is_open(stacked)


def _size(dataset: Any, spot: Spot) -> str:
    """Which sizes of the first element are those of all."""
    code = "\n".join(spot.source.code)
    if not is_batched(dataset):
        return _OPEN if _ANY_SIZE.search(code) else "s.shape"
    if _WHOLE.search(code) or says_all(dataset):
        return _BATCH
    return _OPEN_NUMBERS if "Embedding" in code else _OPEN


def dataset_of(node: ast.expr, spot: Spot) -> Any:
    """A dataset by its name, or that of `ds.batch(4)`, whose elements have the same parts."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEP_PARTS:
        node = node.func.value
    return spot.value(node.id) if isinstance(node, ast.Name) else None


def _named(node: ast.expr) -> ast.expr:
    """`ds` of `ds.cache().batch(4)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node


def _handed(
    spot: Spot, statement: ast.stmt, call: ast.Call, found: list[tuple[ast.expr, Any]], size: ast.expr | None
) -> Edit | None:
    """What Keras is given, with its shapes; batched where only an argument of Keras says how, which it leaves out."""
    if len({type(value.element_spec) is tuple for _, value in found}) > 1:
        return None
    single = size is not None and not any(is_batched(value) for _, value in found)
    new = f"{{1}}({{0}}).batch({spot.source.text(size)})" if single and size is not None else "{1}({0})"
    shape = "s.shape" if single else _size(found[0][1], spot)
    if not single and all(not is_batched(value) for _, value in found):  # `ds.batch(4)`: its last one may be smaller
        found = [(_named(one), value) for one, value in found]
    pieces = dict.fromkeys((one for one, _ in found), new)
    if shape == _BATCH and _takes_any_length(call, spot):
        shape = _OPEN
    kept = [one.id for one, _ in found if isinstance(one, ast.Name)]
    if len(kept) == len(found) and not single and _is_used_again(spot, statement, call, kept):
        return _defined(spot, statement, pieces, found[0][1], shape, tuple(dict.fromkeys(kept)))
    return _defined(spot, statement, pieces, found[0][1], shape)


def _is_used_again(spot: Spot, statement: ast.stmt, call: ast.Call, kept: list[str]) -> bool:
    """Whether Keras is given a dataset once more, further down where the names are the statement's own."""
    around = list(spot.source.around(statement))
    if any(isinstance(one, (ast.For, ast.While, ast.Try, ast.If)) for one in around):
        return False
    scope = next((one for one in around if isinstance(one, (ast.FunctionDef, ast.ClassDef, ast.Module))), None)
    if scope is None or isinstance(scope, ast.ClassDef):
        return False
    own = own_nodes(scope)
    stored = {one.id for one in own if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    later = [
        part.id for one in own if isinstance(one, ast.Call) and one.lineno > (statement.end_lineno or 0)
        and isinstance(one.func, ast.Attribute) and one.func.attr in _TAKERS
        for given in (*one.args, *(key.value for key in one.keywords))
        for part in ast.walk(given) if isinstance(part, ast.Name)
    ]  # fmt: skip
    return set(kept) <= stored and bool(set(kept) & set(later))


def _takes_any_length(call: ast.Call, spot: Spot) -> bool:
    """Whether the model of `model.fit(...)` has an input with another open size than that of the batch."""
    model: Any = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
    inputs = getattr(model, "inputs", None) if of_keras(type(model), "Model") and model.built else None
    sizes = [shape_of(one) for one in inputs] if isinstance(inputs, list) else []
    return any(one is not None and None in one[1:] for one in sizes)


def _defined(
    spot: Spot, statement: ast.stmt, pieces: dict[ast.expr, str], dataset: Any, shape: str, kept: tuple[str, ...] = ()
) -> Edit | None:
    """A function that gives a dataset its shapes, and the statement that uses it: above a cache, where there is one.

    A cache that is read for one element alone keeps what it had by then, and gives no more than that ever after.

    Args:
      spot: The frame that it failed in.
      statement: The statement that uses the dataset.
      pieces: What stands for the dataset's expressions in it.
      dataset: The dataset.
      shape: Which sizes of its first element are those of all.
      kept: Names of datasets that get their shapes for all that uses them further down, above the statement.
    """
    source, tf, file = spot.source, alias(spot, "tensorflow"), spot.file
    if before_caches.is_cached(dataset) or any(".cache(" in source.text(one) for one in pieces):
        found = before_caches.opener(dataset, spot.file)
        if found is None:
            return None
        shape = "s.shape" if says_all(dataset) else _size_of_one(found.dataset, spot)
        statement, dataset, source, file = found.statement, found.dataset, found.source, found.file
        pieces, tf, kept = {found.call: "{1}({0})"}, found.tensorflow, ()
    taken = {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}
    name = next((one for one in _NAMES if one not in taken), None)
    if name is None:
        return None
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    blanks, x = indent_of(source.lines[first - 1]), "*x" if type(dataset.element_spec) is tuple else "x"
    new = {one: text.format(source.text(one), name) for one, text in pieces.items()}
    pasted = (
        f"{blanks}def {name}(ds):  # its first element says the shapes",
        f"{blanks}    spec = {tf}.data.Dataset.from_tensors(next(iter(ds))).element_spec",
        f"{blanks}    fit = lambda y, s: {tf}.ensure_shape(y, {shape})",
        f"{blanks}    return ds.map(lambda {x}: {tf}.nest.map_structure(fit, x, spec))",
    )
    if kept:
        return Edit(file, first, first - 1, (*pasted, *(f"{blanks}{one} = {name}({one})" for one in kept)))
    return Edit(file, first, last, (*pasted, *source.spliced(new, first, last)))


def _size_of_one(dataset: Any, spot: Spot) -> str:
    """Which sizes are those of all, of elements that the program stacks or pads further down."""
    padded = any(one in line for line in spot.source.code for one in _PADDED)
    return _OPEN if padded and not is_batched(dataset) else _size(dataset, spot)
