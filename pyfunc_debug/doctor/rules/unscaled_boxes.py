"""A body that resizes an image and returns its boxes, or points, in pixels of the image as it was."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import Given, returned
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.text_inputs import is_eager
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Finding, Node

NAMES = ("unscaled-boxes",)
_BOXES = re.compile(r"(?:\w+_)?(?:bb?ox(?:es)?|key_?points?|kpts?|landmarks?|points?|corners)(?:_\w+)?", re.I)
_BEFORE = re.compile(r"orig|raw|full|source", re.I)
"""What is kept in pixels of the image before on purpose."""
_LEAST_CALLS = 3
_KEEP = ("astype", "numpy", "copy", "reshape", "array", "asarray", "float32", "cast")
_LEAVE = (*_KEEP, "shape", "dtype", "size")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    for group in facts.lines:
        node, function = group[0], facts.function(group[0])
        if function is None or node.file is None or isinstance(function, ast.Lambda) or len(node.tout) < 2:
            continue
        results = [one for one in pastes.returns(function) if isinstance(one, (ast.Tuple, ast.List))]
        if len(results) != 1 or len(results[0].elts) != len(node.tout) or facts.calls_of(group).count < _LEAST_CALLS:
            continue
        for at, boxes in enumerate(results[0].elts):
            name = _as_read(function, boxes)
            resize = _resize(function, results[0].elts[:at]) if name else None
            if resize is None or _is_scaled_elsewhere(facts, node.file, function, name):
                continue
            place, call = resize
            found = _proof(returned(facts, group, place), returned(facts, group, at))
            if found is not None:
                yield _finding(facts, group, call, boxes, name, *found)


def _as_read(function: Definition, node: ast.expr) -> str:
    """The name of boxes that a body got, or read, and computes nothing with; "" for others."""
    while isinstance(node, ast.Call) and pastes.last_name(node.func) in _KEEP:
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_method = owner is not None and pastes.last_name(node.func) in ("astype", "numpy", "copy", "reshape")
        if not is_method and not node.args:
            return ""
        node = owner if is_method and owner is not None else node.args[0]
    if not isinstance(node, ast.Name) or not _BOXES.fullmatch(node.id) or _BEFORE.search(node.id):
        return ""
    name = node.id
    for one in code.own_nodes(function):
        if isinstance(one, ast.Assign) and name in code.stored_names(one):
            if not all(isinstance(target, ast.Name) for target in one.targets) or not _is_read(one.value):
                return ""
        elif isinstance(one, (ast.AugAssign, ast.For, ast.With, ast.NamedExpr)) and name in code.stored_names(one):
            return ""
        elif isinstance(one, ast.Subscript) and not isinstance(one.ctx, ast.Load) and code.root(one) == name:
            return ""  # boxes[:, 0] *= scale
        elif isinstance(one, ast.Attribute) and ast.unparse(one.value) == name and one.attr not in _LEAVE:
            return ""  # boxes.append(...)
    return name


def _is_read(value: ast.expr) -> bool:
    """Whether what a name is given computes nothing: `boxes[i]`, `np.array(row["boxes"])`, `boxes.numpy()`."""
    for one in ast.walk(value):
        if isinstance(one, (ast.BinOp, ast.IfExp, ast.ListComp, ast.GeneratorExp)):
            return False
        if isinstance(one, ast.Call) and pastes.last_name(one.func) not in _KEEP:
            return False
    return True


def _resize(function: Definition, results: Sequence[ast.expr]) -> tuple[int, ast.Call] | None:
    """The one call that resizes what is returned, and its place among the results."""
    calls = [
        one for one in code.own_nodes(function)
        if isinstance(one, ast.Call) and dotted(one.func) in ("cv2.resize", "tf.image.resize") and len(one.args) > 1
    ]  # fmt: skip
    others = [
        one for one in code.own_nodes(function)
        if isinstance(one, ast.Call) and "resize" in pastes.last_name(one.func).lower() and one not in calls
    ]  # fmt: skip
    if len(calls) != 1 or others:
        return None
    kept = [
        one for one in code.own_nodes(function)
        if isinstance(one, ast.Assign) and any(part is calls[0] for part in ast.walk(one.value))
    ]  # fmt: skip
    names = {name for one in kept for name in code.stored_names(one)}
    for at, one in enumerate(results):
        if any(part is calls[0] or (isinstance(part, ast.Name) and part.id in names) for part in ast.walk(one)):
            return at, calls[0]
    return None


def _is_scaled_elsewhere(facts: Facts, file: str, function: Definition, name: str) -> bool:
    """Whether another line of the file computes with boxes: it may scale them."""
    inside = {id(one) for one in ast.walk(function)}
    for one in pastes.walk(facts.tree(file), ast.AST):
        if not isinstance(one, (ast.BinOp, ast.AugAssign)):
            continue
        operands = [one.target] if isinstance(one, ast.AugAssign) else [one.left, one.right]
        names = {part.id for each in operands for part in ast.walk(each) if isinstance(part, ast.Name)}
        scales = isinstance(one.op, (ast.Mult, ast.Div))
        if id(one) not in inside and scales and any(_BOXES.fullmatch(each) or each == name for each in names):
            return True
    return any(
        isinstance(one.op, (ast.Mult, ast.Div)) and any(part.id == name for part in pastes.walk(one, ast.Name))
        for one in pastes.walk(function, ast.BinOp)
    )


def _proof(images: Sequence[Given], boxes: Sequence[Given]) -> tuple[Given, Given] | None:
    """An image of one size for all calls, and boxes that reach beyond its larger side."""
    by_call = {one.call: one for one in images if len(one.shape) in (2, 3)}
    sizes = {one.shape[:2] for one in by_call.values()}
    if len(sizes) != 1:
        return None
    side = max(sizes.pop())
    beyond = [one for one in boxes if one.call in by_call and one.high is not None and one.high > side]
    beyond = [one for one in beyond if one.shape and one.shape[-1] in (2, 4)]
    if 2 * len(beyond) < len(by_call):
        return None
    most = max(beyond, key=lambda one: one.high or 0)
    return by_call[most.call], most


def _finding(
    facts: Facts, group: Sequence[Node], call: ast.Call, boxes: ast.expr, name: str, image: Given, most: Given
) -> Finding:
    node, own = group[0], pastes.source(facts, group[0].file)
    height, width = image.shape[:2]
    return Finding(
        NAMES[0], "error", node.id, (most.call,),
        f"{own.text(call)} makes images of {height} rows and {width} columns, and {name} is returned as it was, in "
        f"pixels of the image before: up to {most.high:.4g} in call #{most.call}",
        _fix(facts, node, call, boxes, most) or f"{name} times the new size by the old one, for x and for y",
        node.file, call.lineno, several(one.id for one in group),
        (f"line {boxes.lineno}: {facts.line(node.file, boxes.lineno)}", facts.shown(most.call)), confidence="likely",
    )  # fmt: skip


def _fix(facts: Facts, node: Node, call: ast.Call, boxes: ast.expr, most: Given) -> str:
    """The boxes times the new size by the old one, of each axis: x first."""
    own, np = pastes.source(facts, node.file), pastes.module(facts, node.file, "numpy")
    size, image = argument(call, 1, "size"), call.args[0]
    if np is None or size is None or not isinstance(image, ast.Name) or not node.file:
        return ""
    if isinstance(size, (ast.Tuple, ast.List)) and len(size.elts) == 2:
        one, other = map(own.operand, size.elts)
    elif isinstance(size, (ast.Name, ast.Attribute)):
        one, other = f"{own.text(size)}[0]", f"{own.text(size)}[1]"
    else:
        return ""
    columns, rows = (one, other) if dotted(call.func) == "cv2.resize" else (other, one)
    pair = f"{columns} / {image.id}.shape[1], {rows} / {image.id}.shape[0]"
    scale = own.unused_name("scale")
    twice = " * 2" if most.shape[-1] == 4 else ""
    whole = "float" not in most.dtype
    if whole and is_eager(node):
        return ""
    new = f"{own.operand(boxes)} * {scale}"
    made = f"{scale} = {np}.array([{pair}]{twice}, {np}.{'float32' if whole else most.dtype})  # of x, y"
    return pastes.written(
        pastes.above(facts, node.file, call.lineno, made),
        pastes.replaced(facts, node.file, {boxes: f"({new}).astype({np}.{most.dtype})" if whole else new}),
    )
