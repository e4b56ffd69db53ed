"""Filters of SciPy that take each axis for one of a picture's: they blur over channels, and over the images of a batch.

One number for all axes, as in `gaussian_filter(image, 1.5)`, is also one for the channels. `rotate` turns the first two
axes, which behind `batch` are the images and their rows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import as_given, given
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.datasets.earlier_batches import batch_before
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import sizes_of
from pyfunc_debug.records import Finding, Node

NAMES = ("mixed-axes",)
_FILTERS = {
    "gaussian_filter": ("sigma", "0", "blurs"), "uniform_filter": ("size", "1", "blurs"),
    "median_filter": ("size", "1", "takes medians"), "minimum_filter": ("size", "1", "takes the smallest"),
    "maximum_filter": ("size", "1", "takes the largest"), "zoom": ("zoom", "1", "scales"),
    "shift": ("shift", "0", "shifts"),
}  # fmt: skip
"""Their argument of one number, the number that leaves an axis as it is, and what they do."""
_DRAWS = {"uniform", "rand", "random", "randint", "normal", "choice"}
_CHANNELS = (3, 4)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call of such a filter."""
    for group in facts.lines:
        node, function = group[0], facts.function(group[0])
        if function is None or node.file is None or not facts.calls_of(group).count:
            continue
        known = imports(pastes.source(facts, node.file))
        for call in (one for one in code.own_nodes(function) if isinstance(one, ast.Call) and one.args):
            name = _of_scipy(call, known)
            found = _finding(facts, group, function, call, name) if name else None
            if found is not None:
                yield found


def _of_scipy(call: ast.Call, known: dict[str, str]) -> str:
    """`rotate` of `ndimage.rotate`, however a file imports it; "" for other functions."""
    first, _, rest = dotted(call.func).partition(".")
    full = ".".join(filter(None, (known.get(first, ""), rest)))
    module, _, name = full.rpartition(".")
    return name if module == "scipy.ndimage" and (name in _FILTERS or name == "rotate") else ""


def _finding(facts: Facts, group: Sequence[Node], function: Definition, call: ast.Call, name: str) -> Finding | None:
    node, own = group[0], pastes.source(facts, group[0].file)
    taken = as_given(function, call.args[0])
    seen = given(facts, group, taken) if taken else []
    ranks = {len(one.shape) for one in seen}
    if len(ranks) != 1 or any(one.arg == "axes" for one in call.keywords):
        return None
    rank = ranks.pop()
    batch = batch_before(facts, node) if rank in (3, 4) else None
    channels = rank == 4 or (rank == 3 and batch is None)
    if channels and not all(one.shape[-1] in _CHANNELS for one in seen) and (batch is None or rank == 3):
        return None
    if batch is None and not (rank == 3 and channels):
        return None
    shown = sizes_of(seen[0].shape)
    of_batch = f"{own.text(call.args[0])} is a batch of {shown}" + (
        f", as line {batch[0].lineno} makes them" if batch is not None else ""
    )
    if name == "rotate":
        if batch is None or argument(call, 2, "axes") is not None:
            return None
        does = f"{of_batch}: {own.text(call.func)} turns the first two axes, the images and their rows"
        new = own.with_argument(call, "axes=(2, 1)")
    else:
        word, still, verb = _FILTERS[name]
        value = argument(call, 1, word)
        if value is None or not _is_number(own, function, value):
            return None
        over = "the images of a batch and their channels" if batch is not None and channels else (
            "the images of a batch" if batch is not None else "the channels"
        )  # fmt: skip
        what = of_batch if batch is not None else f"{own.text(call.args[0])} is an image of {shown}"
        text = own.text(value)
        does = f"{what}: {own.text(call.func)} takes one number, {text}, for all axes, and {verb} over {over}, too"
        parts = [*([still] if batch is not None else []), text, text, *([still] if channels else [])]
        new = own.text_with(call, {value: f"({', '.join(parts)})"})
    return Finding(
        NAMES[0], "error" if batch is not None else "warning", node.id, (seen[0].call,), does,
        pastes.written(pastes.replaced(facts, node.file, {call: new})) or new, node.file, call.lineno,
        several(one.id for one in group), (f"call #{seen[0].call}: {facts.inputs(seen[0].call)}",),
    )  # fmt: skip


def _is_number(own: Source, function: Definition, value: ast.expr, deep: int = 2) -> bool:
    """Whether an expression is one number: written out, drawn, or a name of such a one."""
    if isinstance(value, ast.Name) and deep:
        made = pastes.assigned(function, value.id) or pastes.assigned(own.tree, value.id)
        return len(made) == 1 and _is_number(own, function, made[0], deep - 1)
    if isinstance(value, ast.Call):
        return pastes.last_name(value.func) in _DRAWS and argument(value, 2, "size") is None
    return code.is_number(value)
