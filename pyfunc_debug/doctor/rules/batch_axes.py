"""A body that is written for one image and gets a batch: `np.fliplr` turns its rows, `np.flipud` its images.

NumPy's `fliplr`, `flipud`, `rot90` and `flip` take the first axes of what they get. Behind `batch` the first one counts
the images. `argmax(p, 0)` in a metric, which `tf.argmax(p)` is, too, looks for the best row of each class.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import Given, as_given, given
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.datasets.earlier_batches import batch_before
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import sizes_of
from pyfunc_debug.doctor.rules.batch_means import metric_of
from pyfunc_debug.records import Finding, Node

NAMES = ("batch-axis",)
_TURNS = ("fliplr", "flipud", "rot90", "flip")
_CHANNELS = (3, 4)
_BEST = ("argmax", "argmin", "argsort")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call of such a function."""
    for group in facts.lines:
        node, function = group[0], facts.function(group[0])
        np = pastes.module(facts, node.file, "numpy")
        if function is None or not facts.calls_of(group).count:
            continue
        yield from _in_metric(facts, group, function)
        if np is None:
            continue
        for call in (one for one in code.own_nodes(function) if isinstance(one, ast.Call)):
            name = pastes.last_name(call.func) if dotted(call.func).startswith(f"{np}.") else ""
            if name in _TURNS and call.args:
                found = _finding(facts, group, function, call, name)
                if found is not None:
                    yield found


def _finding(facts: Facts, group: Sequence[Node], function: Definition, call: ast.Call, name: str) -> Finding | None:
    node, own = group[0], pastes.source(facts, group[0].file)
    taken = _taken(function, call.args[0])
    seen = given(facts, group, taken) if taken else []
    ranks = {len(one.shape) for one in seen}
    if len(ranks) != 1:
        return None
    rank, text = ranks.pop(), own.text(call.args[0])
    axis = argument(call, 1, "axis") if name == "flip" else argument(call, 2, "axes") if name == "rot90" else None
    if axis is not None:
        return None
    if rank == 4 and (batch := batch_before(facts, node)) is not None:
        does = {
            "fliplr": "the second, the rows of each image: it stands on its head",
            "flipud": "the first, the order of the images: each gets the label of another",
            "rot90": "the first two: it mixes the images' rows",
            "flip": "all axes, also the order of the images and their channels",
        }[name]
        why = f"it gets batches of {sizes_of(seen[0].shape[1:])} images, as line {batch[0].lineno} makes them"
    elif name == "flip" and rank == 3 and all(one.shape[-1] in _CHANNELS for one in seen):
        does, why = "all axes, also the channels: red becomes blue", f"{text} is an image of {sizes_of(seen[0].shape)}"
    else:
        return None
    new = _turned(own, call, name, rank)
    return Finding(
        NAMES[0], "error" if rank == 4 else "warning", node.id, (seen[0].call,),
        f"{own.text(call)} turns {does}. {why}",
        pastes.written(pastes.replaced(facts, node.file, {call: new})) or new, node.file, call.lineno,
        several(one.id for one in group), (f"call #{seen[0].call}: {facts.inputs(seen[0].call)}",),
    )  # fmt: skip


def _in_metric(facts: Facts, group: Sequence[Node], function: Definition) -> Iterator[Finding]:
    """The best of each column, in a metric: a batch has a row for each element, and a column for each class."""
    node, metric = group[0], metric_of(facts, group[0])
    if metric is None:
        return
    own, tensorflow = pastes.source(facts, node.file), pastes.module(facts, node.file, "tensorflow")
    pieces: dict[ast.expr, str] = {}
    whole = False
    seen: list[Given] = []
    for call in (one for one in code.own_nodes(function) if isinstance(one, ast.Call)):
        name = pastes.last_name(call.func)
        method = isinstance(call.func, ast.Attribute) and bool(as_given(function, call.func.value))
        array = call.func.value if method else call.args[0] if call.args else None  # type: ignore[attr-defined]
        axis = argument(call, 0 if method else 1, "axis")
        by_rows = isinstance(axis, ast.Constant) and axis.value == 0
        if name not in _BEST or array is None or not (axis is None or by_rows) or (name == "argsort" and axis is None):
            continue
        taken = as_given(function, array)
        of = given(facts, group, taken) if taken else []
        if of and all(len(one.shape) == 2 and min(one.shape) > 1 for one in of):
            seen = seen or of
            whole = whole or (axis is None and dotted(call.func).rpartition(".")[0] != tensorflow)
            text = own.text_with(call, {axis: "-1"}) if axis is not None else own.with_argument(call, "axis=-1")
            pieces[call] = text
    if not seen:
        return
    rows, columns = seen[0].shape
    gives = "one number for all of them" if whole else f"a row's number for each of the {columns} columns"
    fix = " and ".join(pieces.values())
    fix = f"{fix}, and the mean over rows of what is made of them" if whole else fix
    yield Finding(
        NAMES[0], "error", node.id, (seen[0].call,),
        f"{' and '.join(map(own.text, pieces))} {'gives' if len(pieces) == 1 else 'give'} {gives}, and {metric.name} "
        f"needs the column of each row: a batch has {rows} rows here",
        fix if whole else pastes.all_replaced(facts, node.file, pieces) or fix, node.file, next(iter(pieces)).lineno,
        several(one.id for one in group), (f"call #{seen[0].call}: {facts.inputs(seen[0].call)}",),
    )  # fmt: skip


def _taken(function: Definition, node: ast.expr) -> str:
    """The parameter that an expression is, or is made of by such calls: `image` behind `image = np.fliplr(image)`."""
    known = as_given(function, node)
    if known or not isinstance(node, ast.Name) or node.id not in code.parameters(function):
        return known
    makes = [one for one in pastes.walk(function, ast.Assign) if node.id in code.stored_names(one)]
    turns = all(
        isinstance(one.value, ast.Call) and pastes.last_name(one.value.func) in _TURNS and one.value.args
        and ast.unparse(one.value.args[0]) == node.id
        for one in makes
    )  # fmt: skip
    return node.id if turns else ""


def _turned(own: Source, call: ast.Call, name: str, rank: int) -> str:
    """The same of each image: the axes of rows and columns, named."""
    first, image = rank - 3, own.text(call.args[0])
    module = own.text(call.func).removesuffix(name)
    if name == "rot90":
        return own.with_argument(call, f"axes=({first}, {first + 1})")
    axis = str(first) if name == "flipud" else str(first + 1) if name == "fliplr" else f"({first}, {first + 1})"
    return f"{module}flip({image}, axis={axis})"
