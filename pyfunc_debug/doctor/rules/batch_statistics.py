"""A body that normalizes by the mean, the ends or the spread of a whole batch: images depend on those beside them.

`(x - x.mean()) / x.std()` is written for one image. Behind `batch` it takes the mean over all images of a batch: an
image becomes another one in another batch, and when the model is asked for it alone. `e / e.sum()`, a softmax of one
row, makes the shares of all rows of a batch 1 together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import given, returned
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.datasets.earlier_batches import batch_before
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Finding, Node

NAMES = ("batch-statistics",)
_OF = {
    "mean": "mean", "std": "spread", "var": "spread", "min": "smallest value", "max": "largest value",
    "amin": "smallest value", "amax": "largest value", "nanmean": "mean", "nanstd": "spread", "ptp": "range",
    "reduce_mean": "mean", "reduce_std": "spread", "reduce_min": "smallest value", "reduce_max": "largest value",
}  # fmt: skip
_ALIKE = {"astype", "numpy", "copy", "asarray", "array", "float32", "float64", "cast"}
"""What gives the same image with other numbers."""
_LEAST_RANK = 4


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    for group in facts.lines:
        node, function = group[0], facts.function(group[0])
        if function is None or not facts.calls_of(group).count or node.file is None:
            continue
        own = pastes.source(facts, node.file)
        shares = _shares(function)
        if shares and (batch := batch_before(facts, node)) is not None:
            yield from _of_rows(facts, group, own, shares, batch)
        for name in code.parameters(function):
            taken = [one for one in _statistics(function, name) if _normalizes(own, function, one, name)]
            batch = batch_before(facts, node) if taken else None
            if batch is not None and (found := _finding(facts, group, own, name, taken, batch)) is not None:
                yield found
                break


def _statistics(function: Definition, name: str) -> list[ast.Call]:
    """The calls that take one number of all images that a parameter holds: `x.mean()`, `np.std(x)`."""
    found = []
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Call) or pastes.last_name(one.func) not in _OF:
            continue
        method = isinstance(one.func, ast.Attribute) and _is_image(function, one.func.value, name)
        array = one.func.value if method else one.args[0] if one.args else None  # type: ignore[attr-defined]
        axis = argument(one, 0 if method else 1, "axis")
        whole = axis is None or (isinstance(axis, ast.Constant) and axis.value is None)
        if array is not None and _is_image(function, array, name) and whole and len(one.args) + len(one.keywords) < 3:
            found.append(one)
    return found


def _shares(function: Definition) -> list[tuple[ast.expr, ast.Call]]:
    """What is divided by its own sum, over all axes, with the call of the sum: `e / e.sum()`, `e / np.sum(e)`."""
    found = []
    for one in code.own_nodes(function):
        if not isinstance(one, ast.BinOp) or not isinstance(one.op, ast.Div) or not isinstance(one.right, ast.Call):
            continue
        call, text = one.right, ast.unparse(one.left)
        if ast.unparse(call) == f"{text}.sum()" or (
            pastes.last_name(call.func) in ("sum", "reduce_sum") and [*map(ast.unparse, call.args)] == [text]
            and not call.keywords
        ):  # fmt: skip
            found.append((one.left, call))
    return found


def _of_rows(
    facts: Facts, group: Sequence[Node], own: Source, shares: Sequence[tuple[ast.expr, ast.Call]],
    batch: tuple[ast.Call, str],
) -> Iterator[Finding]:  # fmt: skip
    """Shares of all rows of a batch together, where the body returns as many rows as it got."""
    node = group[0]
    most = max(returned(facts, group), key=lambda one: one.shape[:1], default=None)
    if most is None or len(most.shape) != 2 or min(most.shape) < 2 or not 0 < (most.high or 0) <= 1:
        return
    part, call = shares[0]
    new: dict[ast.expr, str] = {one: own.with_argument(one, "axis=-1, keepdims=True") for _, one in shares}
    yield Finding(
        NAMES[0], "error", node.id, (most.call,),
        f"{own.text(call)} is the sum over all {most.shape[0]} rows of a batch, as line {batch[0].lineno} makes them: "
        f"the shares of a row in {own.text(part)} are 1 together with those of all other rows, and not by themselves",
        pastes.all_replaced(facts, node.file, new), node.file, call.lineno, several(one.id for one in group),
        (f"call #{most.call}: {facts.outputs(most.call)}",),
    )  # fmt: skip


def _is_image(function: Definition, node: ast.expr, name: str) -> bool:
    """Whether an expression is what a parameter got, with each image in its place: `x`, `x.astype("float32") / 255`."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call) and pastes.last_name(node.func) in _ALIKE:
            method = isinstance(node.func, ast.Attribute) and pastes.last_name(node.func) in ("astype", "numpy", "copy")
            if not method and not node.args:
                return False
            node = node.func.value if method else node.args[0]  # type: ignore[attr-defined]
        elif isinstance(node, ast.BinOp) and isinstance(node.right, (ast.Constant, ast.Name, ast.Call)):
            node = node.left
        else:
            return False
    if node.id == name:
        made = [one for one in pastes.walk(function, ast.Assign) if name in code.stored_names(one)]
        return all(one.lineno >= node.lineno or _is_image(function, one.value, name) for one in made)
    values = pastes.assigned(function, node.id)
    return len(values) == 1 and values[0].lineno < node.lineno and _is_image(function, values[0], name)


def _normalizes(own: Source, function: Definition, call: ast.Call, name: str) -> bool:
    """Whether a number of the batch is subtracted from the images, or divides them: by its call, or by its name."""
    parent = own.parent(call)
    places: list[ast.AST] = [call]
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        stored = parent.targets[0].id
        places = [one for one in pastes.walk(function, ast.Name) if one.id == stored and isinstance(one.ctx, ast.Load)]
    return bool(places) and all(_is_operand(own, function, one, name) for one in places)


def _is_operand(own: Source, function: Definition, place: ast.AST, name: str) -> bool:
    """Whether it is what stands behind `-` or `/`, alone or with such numbers, and what an image stands before."""
    one, parent = place, own.parent(place)
    images = False
    while isinstance(parent, ast.BinOp):
        if parent.left is not one and isinstance(parent.op, (ast.Sub, ast.Div)):
            images = images or _is_image(function, parent.left, name)
        one, parent = parent, own.parent(parent)
    return images


def _finding(
    facts: Facts, group: Sequence[Node], own: Source, name: str, taken: Sequence[ast.Call],
    batch: tuple[ast.Call, str],
) -> Finding | None:  # fmt: skip
    node = group[0]
    seen = given(facts, group, name)
    ranks = {len(one.shape) for one in seen}
    most = max(seen, key=lambda one: one.shape[:1], default=None)
    if most is None or len(ranks) != 1 or (rank := ranks.pop()) < _LEAST_RANK or most.shape[0] < 2:
        return None
    axes = f"({', '.join(map(str, range(1, rank)))})"
    ops = [dotted(one.func).rpartition(".")[2].startswith("reduce_") for one in taken]
    new: dict[ast.expr, str] = {
        one: own.with_argument(one, f"axis={axes}, keepdims=True")
        for one in taken if not any(word.arg in ("axis", "keepdims") for word in one.keywords)
    }  # fmt: skip
    whose = " and ".join(dict.fromkeys(_OF[pastes.last_name(one.func)] for one in taken))
    shown = " and ".join(dict.fromkeys(own.text(one) for one in taken))
    fix = pastes.all_replaced(facts, node.file, new) if len(new) == len(taken) and len(set(ops)) == 1 else ""
    return Finding(
        NAMES[0], "warning", node.id, (most.call,),
        f"{shown} {'is' if len(taken) == 1 else 'are'} the {whose} of all {most.shape[0]} images of a batch, as line "
        f"{batch[0].lineno} makes them: what an image becomes depends on those beside it, and is another image where "
        "a model is asked for it alone",
        fix or f"{shown}: with axis={axes}, keepdims=True", node.file, taken[0].lineno,
        several(one.id for one in group),
        (
            f"call #{most.call}: {facts.inputs(most.call)}",
            "this takes it of each image; for one of all training data, compute it once, above",
        ),
        confidence="likely",
    )  # fmt: skip
