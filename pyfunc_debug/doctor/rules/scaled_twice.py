"""Images between 0 and 1 that are divided by 255 a second time: behind the body that did, or in the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import Given, returned
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.datasets.mapped_outputs import Output, Outputs, base, files_of_calls
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding

NAMES = ("scaled-twice",)
_LARGE = 100
"""A divisor of pixels: 127.5, 255."""
_LEAST_CALLS = 4
_LEAST_HIGH = 0.3
"""What is darker in all calls may be of another kind."""
_RESIZES = ("resize", "resize_with_pad", "resize_with_crop_or_pad", "central_crop", "random_crop")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a division behind a body, and a layer of the model."""
    for file in files_of_calls(facts):
        outputs = Outputs(facts, file, keeps_range)
        for one in code.all_nodes(outputs.own.tree) if outputs else ():
            if isinstance(one, ast.BinOp) and (by := divisor(one)) is not None:
                divided: ast.expr = one.left
            elif isinstance(one, ast.AugAssign) and (by := _number(one.value)) is not None:
                if not isinstance(one.op, ast.Div):
                    continue
                divided = one.target
            else:
                continue
            origin = outputs.origin(divided)
            if origin is not None and (scaled := _scaled(facts, origin)) is not None:
                yield _of_division(facts, file, outputs, one, divided, by, origin, scaled)
        if outputs and any("Rescaling" in line for line in outputs.own.lines):
            yield from _of_layers(facts, Outputs(facts, file, _divides), file)


def keeps_range(node: ast.expr) -> ast.expr | None:
    """What a resize or a crop is made of."""
    resized = isinstance(node, ast.Call) and pastes.last_name(node.func) in _RESIZES
    return node.args[0] if isinstance(node, ast.Call) and resized and node.args else None


def _divides(node: ast.expr) -> ast.expr | None:
    """The same of what is perhaps divided once more."""
    return node.left if isinstance(node, ast.BinOp) and divisor(node) is not None else keeps_range(node)


def divisor(node: ast.BinOp) -> float | None:
    """255 of `x / 255.0` and of `x * (1 / 255)`."""
    right = node.right
    if isinstance(node.op, ast.Mult) and isinstance(right, ast.BinOp) and ast.unparse(right.left) in ("1", "1.0"):
        right = right.right if isinstance(right.op, ast.Div) else node.right
    elif not isinstance(node.op, ast.Div):
        return None
    return _number(right)


def _number(node: ast.expr) -> float | None:
    """A divisor of pixels that is written out."""
    value = node.value if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) else None
    return float(value) if value is not None and _LARGE <= value <= 256 else None


def _scaled(facts: Facts, origin: Output) -> tuple[int, list[Given]] | None:
    """The line of a body that scales, and its results, where all are fractions between 0 and 1."""
    found = fractions(facts, origin)
    return found if found is not None and found[0] else None


def fractions(facts: Facts, origin: Output) -> tuple[int, list[Given]] | None:
    """Results of a body that are all between 0 and 1, and its line that scales; 0 where none is seen to."""
    node = origin.group[0]
    function = facts.function(node)
    seen = returned(facts, origin.group, origin.position) if function is not None else []
    if function is None or len(seen) < _LEAST_CALLS or not all(map(_is_share, seen)):
        return None
    light = any(one.inside and (one.high or 0) >= _LEAST_HIGH for one in seen)
    return (_scaling_line(function), seen) if light else None


def _is_share(one: Given) -> bool:
    known = one.low is not None and one.high is not None
    return known and "float" in one.dtype and len(one.shape) > 1 and (one.low or 0) >= 0 and (one.high or 0) <= 1


def _scaling_line(function: Definition) -> int:
    """The line of a body that divides by 255, or by the largest number; 0 where none does."""
    for one in code.own_nodes(function):
        right: ast.expr | None = None
        if isinstance(one, ast.BinOp):
            if divisor(one) is not None:
                return one.lineno
            right = one.right if isinstance(one.op, ast.Div) else None
        elif isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Div):
            right = one.value
        if right is not None and _number(right) is not None:
            return getattr(one, "lineno", 0)
        calls = [part for part in ast.walk(right) if isinstance(part, ast.Call)] if right is not None else []
        if any(pastes.last_name(part.func) in ("max", "amax", "reduce_max") for part in calls):
            return getattr(one, "lineno", 0)
    return 0


def _of_division(
    facts: Facts, file: str, outputs: Outputs, node: ast.BinOp | ast.AugAssign, divided: ast.expr, by: float,
    origin: Output, scaled: tuple[int, Sequence[Given]],
) -> Finding:  # fmt: skip
    body, (line, seen) = origin.group[0], scaled
    own, high = outputs.own, max(one.high or 0 for one in seen)
    return Finding(
        NAMES[0], "error", body.id, (seen[0].call,),
        f"{own.text(node)} scales what {facts.name(body)} scaled already, in line {line}: it returned 0 to {high:.3g} "
        f"in all {len(seen):,} recorded calls, and divided by {by:g} again it is {high / by:.2g} at most",
        pastes.written(_undone(facts, file, own, node, divided, by)), file, node.lineno,
        several(one.id for one in origin.group),
        (facts.shown(seen[0].call),), "measured",
    )  # fmt: skip


def _undone(
    facts: Facts, file: str, own: Source, node: ast.BinOp | ast.AugAssign, divided: ast.expr, by: float
) -> Edit | None:
    """The line without its division, and a comment in its place where nothing else is in it."""
    statement, outer = own.statement(node.lineno), own.parent(node)
    text = own.text(divided)
    if isinstance(node, ast.BinOp):
        if isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Sub) and outer.left is node and by < 128:
            return pastes.replaced(facts, file, {node: f"{own.operand(divided)} * 2.0"})
        if not isinstance(statement, ast.Assign) or [own.text(one) for one in statement.targets] != [text]:
            return pastes.replaced(facts, file, {node: text})
        if statement.value is not node:
            return pastes.replaced(facts, file, {node: text})
    block = own.block(statement) if statement is not None else None
    lines = pastes.lines_of(facts, file, node.lineno)
    alone = lines is not None and ";" not in "".join(lines[1])
    if statement is None or lines is None or not alone or block is None or len(block) < 2:
        return pastes.replaced(facts, file, {node: text}) if isinstance(node, ast.BinOp) else None
    end = statement.end_lineno or statement.lineno
    return Edit(file, statement.lineno, end, (f"{lines[0]}# {text} is between 0 and 1 already",))


def _of_layers(facts: Facts, outputs: Outputs, file: str) -> Iterator[Finding]:
    """`Rescaling(1 / 255)` in the one model that is fitted, on a dataset whose inputs a body scaled."""
    own = outputs.own
    calls = [one for one in code.all_nodes(own.tree) if isinstance(one, ast.Call)] if outputs else []
    layers = [one for one in calls if pastes.last_name(one.func) == "Rescaling" and (one.args or one.keywords)]
    fits = [one for one in calls if pastes.last_name(one.func) == "fit" and isinstance(one.func, ast.Attribute)]
    models = {ast.unparse(one.func).removesuffix(".fit") for one in fits}
    if len(layers) != 1 or len(models) != 1 or not is_of_model(outputs, calls, layers[0], models.pop()):
        return
    scale = argument(layers[0], 0, "scale")
    by = _inverse(scale)
    given = argument(fits[0], 0, "x")
    origin = first_input(outputs, given) if isinstance(given, ast.expr) else None
    scaled = _scaled(facts, origin) if origin is not None else None
    if scale is None or by is None or origin is None or scaled is None:
        return
    body, (line, seen) = origin.group[0], scaled
    high = max(one.high or 0 for one in seen)
    new = "2.0" if by < 128 else "1.0"
    yield Finding(
        NAMES[0], "error", body.id, (seen[0].call,),
        f"the model divides its inputs by {by:g} ({own.text(layers[0])}), and {facts.name(body)} scaled them already, "
        f"in line {line}: it returned 0 to {high:.3g} in all {len(seen):,} recorded calls. Scale in one of both: "
        "without the layer, or with it as below",
        pastes.written(pastes.replaced(facts, file, {scale: new})), file, layers[0].lineno,
        several(one.id for one in origin.group),
        (facts.shown(seen[0].call),), "likely",
    )  # fmt: skip


def is_of_model(outputs: Outputs, calls: Sequence[ast.Call], layer: ast.Call, model: str) -> bool:
    """Whether a layer is one of the model that is fitted, and not of another around it."""
    made = [one for one in calls if pastes.last_name(one.func) in ("Sequential", "Model")]
    around = next((one for one in outputs.own.around(layer) if isinstance(one, ast.Assign)), None)
    if len(made) == 1:
        return True
    return around is not None and around.value in made and [ast.unparse(one) for one in around.targets] == [model]


def _inverse(node: ast.expr | None) -> float | None:
    """255 of `1 / 255`, `1.0 / 255.0`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div) or not isinstance(node.left, ast.Constant):
        return None
    return _number(node.right) if node.left.value == 1 else None


def first_input(outputs: Outputs, given: ast.expr) -> Output | None:
    """The body's output that is the first part of a dataset's elements, perhaps scaled once more on the way."""
    own = outputs.own
    for _ in range(6):
        if isinstance(given, ast.Name):
            made = pastes.assigned(own.tree, given.id)
            stores = [
                one for one in code.all_nodes(own.tree)
                if isinstance(one, ast.Name) and one.id == given.id and isinstance(one.ctx, ast.Store)
            ]  # fmt: skip
            if len(made) != 1 or len(stores) != 1:
                return None
            given = made[0]
        while isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr != "map":
            if base(given) == "" and given.func.attr not in ("batch", "prefetch", "shuffle", "cache", "repeat", "take"):
                return None
            given = given.func.value
        if isinstance(given, ast.Call):
            break
    function = outputs.mapped(given) if isinstance(given, ast.Call) else None
    values = pastes.returns(function) if function is not None else []
    if len(values) != 1:
        return None
    first = values[0].elts[0] if isinstance(values[0], ast.Tuple) and values[0].elts else values[0]
    return outputs.origin(first)
