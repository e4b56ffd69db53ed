"""A last window, or a last inner batch, that is shorter than the others: a batch of them stacks one length only."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import datasets, evaluation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.shapes import refused_reshape
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.failures.reading.symbols import calls, method_calls
from pyfunc_debug.interception.names.private import count_of, dataset_inputs

RULE = "ragged-batch"
_SAID = re.compile(r"Cannot (?:add tensor to the batch|batch tensors with different shapes)")
_SHAPES = re.compile(r"shape \[([\d,]*)\].*?shape \[([\d,]*)\]|\[tensor\]: \[([\d,]*)\], \[batch\]: \[([\d,]*)\]")
_LAST = {"window": 3, "batch": 1}
"""The methods that leave a rest, and the place of their drop_remainder."""
_TAKES_APART = ("_UnbatchDataset", "_FlatMapDataset", "_InterleaveDataset", "_ParallelInterleaveDataset")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what did not fit into a batch is the rest that a window or an inner batch left."""
    if not situation.body and (sizes := refused_reshape(situation.message)) is not None:
        return _of_reshape(situation, *sizes)
    lengths = None if situation.body or not _SAID.search(situation.message) else _lengths(situation.message)
    if lengths is None:
        return None
    rest, whole = lengths
    every = list(datasets.read_here(situation))
    for file, source in situation.sources():
        spot = next((one for one in situation.spots if one.file == file), situation.last)
        found = _windows(source, spot, every) or _batches(source, spot, every, whole) if spot is not None else []
        if len(found) != 1:
            continue
        call = found[0]
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        what = "window" if method == "window" else "batch of these"
        size = evaluation.computed(given, spot) if (given := argument(call, 0, "size")) and spot is not None else whole
        cause = f"the last {what} has {rest} elements, the others {whole}, and a batch stacks one length only. "
        if method == "window" and size != whole:  # what was made of each differs
            cause = f"the last windows are shorter: what is made of one has length {rest}, of the others {whole}. "
        cause += "drop_remainder leaves out what is shorter."
        first, last = call.lineno, call.end_lineno or call.lineno
        given = next((one.value for one in call.keywords if one.arg == "drop_remainder"), None)
        if given is None and len(call.args) > _LAST[method]:
            given = call.args[_LAST[method]]
        lines = source.spliced({given: "True"}, first, last) if given is not None else with_rest_dropped(call, source)
        return Explanation(
            RULE, file, call.func.end_lineno or first, cause, Edit(file, first, last, lines), "", "likely"
        )
    return None


def _of_reshape(situation: Situation, have: int, wanted: int) -> Explanation | None:
    """The same of a window that the program reshapes by its size."""
    every = list(datasets.gone_over(situation))
    for file, source in situation.sources():
        spot = next((one for one in situation.spots if one.file == file), situation.last)
        found = _windows(source, spot, every) if spot is not None else []
        call = found[0] if len(found) == 1 else None
        given = argument(call, 0, "size") if call is not None else None
        size = evaluation.computed(given, spot) if given is not None and spot is not None else None
        if call is None or type(size) is not int or size < 1 or not wanted or wanted % size or have >= wanted:
            continue
        if have % (wanted // size):
            continue
        rest = have // (wanted // size)
        if spot is None or _numbers(every) not in (None, wanted // size) or rest not in _rests(every, call, size, spot):
            continue
        cause = (
            f"the last windows are shorter: one has {rest} elements, and the others {size}, on which the line that "
            "reshapes them counts. drop_remainder leaves out what is shorter."
        )
        first, last = call.lineno, call.end_lineno or call.lineno
        if argument(call, _LAST["window"], "drop_remainder") is None:
            edit = Edit(file, first, last, with_rest_dropped(call, source))
            return Explanation(RULE, file, call.func.end_lineno or first, cause, edit, "", "likely")
    return None


def _numbers(every: list[Any]) -> int | None:
    """How many numbers an element of the windows has; None where they have several parts."""
    windows = [one for one in every if type(one).__name__ == "_WindowDataset"]
    leaves = list(datasets.leaves(dataset_inputs(windows[0])[0].element_spec)) if windows else []
    return leaves[0].shape.num_elements() if len(leaves) == 1 else None


def _rests(every: list[Any], call: ast.Call, size: int, spot: Spot) -> range | set[int]:
    """The lengths that shorter windows have; every one where the number of elements or the shift is not known."""
    counts = {count_of(dataset_inputs(one)[0]) for one in every if type(one).__name__ == "_WindowDataset"}
    given = argument(call, 1, "shift")
    shift = size if given is None else evaluation.computed(given, spot)
    count = counts.pop() if len(counts) == 1 else -2
    if count is None or count < 0 or type(shift) is not int or shift < 1:
        return range(1, size)
    first = max(0, ((count - size) // shift + 1) * shift)
    return {count - start for start in range(first, count, shift)}


def is_window(call: ast.Call) -> bool:
    """Whether it is a call of `window`, with a size."""
    named = isinstance(call.func, ast.Attribute) and call.func.attr == "window"
    return named and argument(call, 0, "size") is not None


def keeps_rest(call: ast.Call, place: int, spot: Spot) -> bool:
    """Whether a call of window or batch leaves a shorter last one; no for what only a run can tell."""
    given = argument(call, place, "drop_remainder")
    if any(one.arg is None for one in call.keywords) or any(isinstance(one, ast.Starred) for one in call.args):
        return False
    return given is None or evaluation.computed(given, spot) is False


def with_rest_dropped(call: ast.Call, source: Source) -> tuple[str, ...]:
    """The lines of a call that says nothing of drop_remainder, where it says so."""
    return source.ended(call, "drop_remainder=True")


def _lengths(message: str) -> tuple[int, int] | None:
    """The lengths of the rest and of the others, where nothing else differs; the rest comes last."""
    found = _SHAPES.search(message)
    if found is None:
        return None
    two = [[int(size) for size in one.split(",") if size] for one in found.groups() if one is not None]
    rest, whole = two if found[3] is not None else two[::-1]
    differs = len(rest) == len(whole) > 0 and rest[1:] == whole[1:] and rest[0] < whole[0]
    return (rest[0], whole[0]) if differs else None


def _windows(source: Source, spot: Spot, every: list[Any]) -> list[ast.Call]:
    """The windows that leave a rest."""
    windows = [one for one in every if type(one).__name__ == "_WindowDataset"]
    if not windows or not all(_of_one_shape(dataset_inputs(one)[0].element_spec) for one in windows):
        return []
    return [one for one in calls(source.tree) if is_window(one) and keeps_rest(one, 3, spot)]


def _of_one_shape(spec: Any) -> bool:
    shapes = [getattr(one, "shape", None) for one in datasets.leaves(spec)]
    return all(one is not None and one.is_fully_defined() for one in shapes)


def _batches(source: Source, spot: Spot, every: list[Any], whole: int) -> list[ast.Call]:
    """The inner one of two batches: `ds.batch(101).map(split).batch(64)`, or that of a flat_map over windows."""
    found = [one for one in method_calls(source.tree, "batch") if keeps_rest(one, 1, spot)]
    windows = any(type(one).__name__ == "_WindowDataset" for one in every)
    if not windows and not any(map(_is_outer, every)):
        return []
    sizes = {one: evaluation.computed(size, spot) for one in found if (size := argument(one, 0, "batch_size"))}
    fitting = [one for one, size in sizes.items() if size in (whole, whole + 1)]
    return fitting or [one for one, size in sizes.items() if size is None][:1]


def _is_outer(dataset: Any) -> bool:
    """Whether a batch is made of batches."""
    return "BatchDataset" in type(dataset).__name__ and any(map(_is_batched, dataset_inputs(dataset)))


def _is_batched(dataset: Any) -> bool:
    name = type(dataset).__name__
    if name in _TAKES_APART:
        return False
    return "BatchDataset" in name or any(map(_is_batched, dataset_inputs(dataset)))
