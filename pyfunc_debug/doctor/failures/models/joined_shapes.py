"""Tensors of unlike shapes that a layer joins or adds: Keras says the shapes, not what makes them alike."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, together
from pyfunc_debug.doctor.failures.reading.failed_layers import FailedLayer, Made, Shape, failed_layer, one_back
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import is_keras, shape_of, sizes_of

RULE = "structure"
_SAID = re.compile(
    r"layer requires inputs with matching shapes except for the concatenation axis"
    r"|Inputs have incompatible shapes\. Received shapes|Incompatible input shapes: axis values"
)
_ALIKE = ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum")
_FARTHEST = 400


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a layer refused inputs of unlike shapes."""
    failed = failed_layer(situation) if _SAID.search(situation.message) else None
    shapes, nodes = (failed.shapes, _inputs(failed)) if failed is not None else ([], [])
    ranks = {len(one) for one in shapes}
    if failed is not None and failed.kind == "Concatenate" and not nodes and len(ranks) > 1:
        return _listed(failed, shapes)
    if failed is None or len(shapes) != len(nodes) or len(shapes) < 2:
        return None
    if failed.kind == "Concatenate":
        return _ranks(failed, shapes, nodes) if len(ranks) > 1 else _joined(failed, shapes, nodes)
    if len(shapes) != 2 or len(ranks) > 1:
        return None
    if failed.kind == "Dot":
        return _products(failed, shapes)
    return _added(failed, shapes, nodes) if failed.kind in _ALIKE else None


def _inputs(failed: FailedLayer) -> list[ast.expr]:
    """The tensors, as they are written in the call."""
    call = failed.call
    given = call.args[0] if call is not None and len(call.args) == 1 else None
    return given.elts if isinstance(given, (ast.List, ast.Tuple)) else []


def _listed(failed: FailedLayer, shapes: list[Shape]) -> Explanation | None:
    """The same of a list that has a name."""
    call = failed.call
    given = call.args[0] if call is not None and len(call.args) == 1 else None
    if not isinstance(given, ast.Name) or min(map(len, shapes)) != 2 or any(None in one[1:] for one in shapes):
        return None
    high = next(at for at, one in enumerate(shapes) if len(one) > 2)
    cause = (
        f"{given.id}[{high}] has {len(shapes[high])} axes, {sizes_of(shapes[high])}, and others have one row for an "
        "example. Flatten makes a row of each example."
    )
    new = f"[{failed.other('Flatten')}()(one) for one in {given.id}]"
    edit = Edit(failed.spot.file, *failed.spot.source.kept_lines({given: new}))
    return Explanation(RULE, failed.spot.file, given.lineno, cause, edit, "", "likely")


def _ranks(failed: FailedLayer, shapes: list[Shape], nodes: list[ast.expr]) -> Explanation | None:
    """Rows beside series or images."""
    if min(map(len, shapes)) != 2:
        return None
    calls = {}
    for shape, node in zip(shapes, nodes):
        if len(shape) > 2:
            known = None not in shape[1:]
            if not known and len(shape) not in (3, 4):
                return None
            calls[node] = "Flatten()" if known else f"GlobalAveragePooling{len(shape) - 2}D()"
    high = next(iter(calls))
    makes = {name.partition("(")[0] for name in calls.values()}
    shape, text = shapes[nodes.index(high)], failed.spot.source.text(high)
    rows = next(node for one, node in zip(shapes, nodes) if len(one) == 2)
    source = failed.spot.source
    cause = (
        f"{text} has {len(shape)} axes, {sizes_of(shape)}, and {source.text(rows)} has one row for an example, "
        f"{sizes_of(shapes[nodes.index(rows)])}. {makes.pop()} makes a row of each example."
    )
    return Explanation(RULE, failed.spot.file, high.lineno, cause, failed.around(calls), "", "likely")


def _joined(failed: FailedLayer, shapes: list[Shape], nodes: list[ast.expr]) -> Explanation | None:
    """As many axes each, of which another than the joined one differs."""
    rank, axis = len(shapes[0]), vars(failed.layer).get("axis")
    if not isinstance(axis, int):
        return None
    axis %= rank
    differ = [at for at in range(1, rank) if at != axis and len({one[at] for one in shapes}) > 1]
    if not differ or any(one[at] is None for one in shapes for at in differ):
        return None
    if len(shapes) == 2 and axis == rank - 1:
        known = all(size is not None for one in shapes for size in one[1:-1])
        found = _scaled(failed, [_sizes(one)[:-1] for one in shapes], nodes) if known else None
        if found is not None:
            return found
    made = failed.made(failed.layer)
    if len(differ) == 1 and len({one[axis] for one in shapes}) == 1:
        cause = (
            f"The tensors differ in axis {differ[0]}, {_both(shapes)}, and axis {axis} is joined: a joined axis alone "
            "may differ."
        )
        edit = _with_axis(failed, made, differ[0])
        if edit is not None:
            return Explanation(RULE, failed.spot.file, edit.first, cause, edit, "", "likely")
    return None


def _with_axis(failed: FailedLayer, made: Made | None, axis: int) -> Edit | None:
    call = failed.call
    if call is None:
        return None
    source = failed.spot.source
    if dotted(call.func).rpartition(".")[2] == "concatenate":
        given = next((one.value for one in call.keywords if one.arg == "axis"), None)
        if given is not None:
            return Edit(failed.spot.file, *source.kept_lines({given: str(axis)}))
        return Edit(failed.spot.file, *source.kept_lines({call: source.with_argument(call, f"axis={axis}")}))
    return made.edit(made.with_arguments(axis=str(axis))) if made is not None else None


def _scaled(failed: FailedLayer, sizes: list[tuple[int, ...]], nodes: list[ast.expr]) -> Explanation | None:
    """Images or series of which one is larger, as in a U-Net: one is enlarged, padded or cropped."""
    ordered = sorted(zip(sizes, nodes), key=lambda one: one[0])
    (small, less), (large, more) = ordered
    count, source = len(small), failed.spot.source
    if any(one > other for one, other in zip(small, large)) or count > 3 or 0 in small:
        return None
    one, other, often = source.text(less), source.text(more), failed.runs_often
    if often and not (isinstance(less, ast.Name) and isinstance(more, ast.Name)):
        return None
    said = f"{one} is {_size(small)}, {other} {_size(large)}"
    times = {b // a if b % a == 0 else 0 for a, b in zip(small, large)}
    rest = [b - a for a, b in zip(small, large)]
    if len(times) == 1 and 1 < min(times) <= 8 and small != (1,) * count:
        (factor,) = times
        ratio = f"{other}.shape[1] // {one}.shape[1]" if often else str(factor)
        edit = failed.around({less: f"UpSampling{count}D({ratio})"})
        cause = f"{said}: {factor} times as large. Only tensors of one size can be joined."
        return Explanation(RULE, failed.spot.file, less.lineno, cause, edit, "", "likely")
    if max(rest) == 1:
        odd = next(size for size, left in zip(large, rest) if left)
        cause = f"{said}. Only tensors of one size can be joined."
        if odd % 2:
            cause = f"{said}: {odd} is odd, a half of it is {odd // 2}, and twice {odd // 2} is {odd - 1}."
        pads = [f"(0, {left})" for left in rest]
        if often:
            pads = [f"(0, {other}.shape[{at}] - {one}.shape[{at}])" for at in range(1, count + 1)]
        text = f"({', '.join(pads)})" if count > 1 else pads[0]
        return Explanation(
            RULE,
            failed.spot.file,
            less.lineno,
            cause,
            failed.around({less: f"ZeroPadding{count}D({text})"}),
            "",
            "likely",
        )
    if count == 2 and min(small) > 1 and all(b < 2 * a for a, b in zip(small, large)):
        unpadded = _unpadded(failed, failed.given[0][nodes.index(less)], large, said)
        if unpadded is not None:
            return unpadded
        ends = [f"{one}.shape[{at}]" for at in (1, 2)] if often else map(str, small)
        edit = failed.around({more: f"CenterCrop({', '.join(ends)})"})
        cause = f"{said}. Only tensors of one size can be joined: the middle of {other} has it."
        return Explanation(RULE, failed.spot.file, more.lineno, cause, edit, "", "likely")
    return None


def _added(failed: FailedLayer, shapes: list[Shape], nodes: list[ast.expr]) -> Explanation | None:
    """Two tensors that are added, as in a residual block."""
    given = failed.given[0]
    first, second = shapes
    rank, source = len(first), failed.spot.source
    if rank < 2 or any(size is None for one in (first[1:], second[1:]) for size in one):
        return None
    inside, outside = _sizes(first)[:-1], _sizes(second)[:-1]
    large = 0 if inside > outside else 1 if outside > inside else None
    if large is None:
        large = 0 if is_keras(given[0]) and _is_before(given[0], given[1]) else None
        if large is None:
            large = 1 if is_keras(given[1]) and _is_before(given[1], given[0]) else None
    if large is None:
        return None
    small = 1 - large
    way, wanted = _sizes(shapes[large]), _sizes(shapes[small])
    said = f"{source.text(nodes[0])} is {sizes_of(first)}, {source.text(nodes[1])} {sizes_of(second)}"
    if (inside == outside and rank <= 3) or set(wanted[:-1]) == {1}:
        last = _last_dense(given[small])
        made = failed.made(last) if last is not None else None
        if made is not None:
            new = made.edit(made.with_arguments(units=str(way[-1])))
            cause = f"{said}: {failed.kind} takes as many features of both."
            return Explanation(RULE, made.spot.file, made.call.lineno, cause, new, "", "likely")
        if failed.runs_often or inside != outside:
            return None
        widened = failed.around({nodes[large]: f"Dense({wanted[-1]})"})
        return Explanation(RULE, failed.spot.file, nodes[large].lineno, f"{said}.", widened, "", "likely")
    if rank > 5 or rank < 3:
        return None
    steps = {-(-a // b) for a, b in zip(way[:-1], wanted[:-1])}
    if len(steps) == 1 and (step := steps.pop()) <= 8 and all(-(-a // step) == b for a, b in zip(way, wanted[:-1])):
        strides = f", strides={step}" if step > 1 else ""
        if step > 1 and way[:-1] != tuple(step * size for size in wanted[:-1]):
            strides += ', padding="same"'
        edit: Edit | None = failed.around({nodes[large]: f"Conv{rank - 2}D({wanted[-1]}, 1{strides})"})
        if failed.runs_often:
            edit = _in_function(failed, nodes[large], nodes[small], rank)
        why = "fewer pixels and other channels" if step > 1 and way[-1] != wanted[-1] else "other channels"
        why = "fewer pixels" if way[-1] == wanted[-1] else why
        cause = (
            f"{said}: the layers between them give {why}. A convolution of size 1 gives {source.text(nodes[large])} "
            "that shape."
        )
        return Explanation(RULE, failed.spot.file, nodes[large].lineno, cause, edit, "", "likely")
    return _unpadded(failed, given[small], inside if large == 0 else outside, said)


def _in_function(failed: FailedLayer, start: ast.expr, end: ast.expr, rank: int) -> Edit | None:
    """The convolution in a function that makes many blocks: where the shapes differ."""
    statement, spot = failed.spot.statement, failed.spot
    if not isinstance(start, ast.Name) or not isinstance(end, ast.Name) or statement is None:
        return None
    indent, old, new = " " * statement.col_offset, start.id, end.id
    steps = f"-(-{old}.shape[1] // {new}.shape[1])"
    layer = f'{failed.other(f"Conv{rank - 2}D")}({new}.shape[-1], 1, strides={steps}, padding="same")'
    lines = (f"{indent}if {old}.shape != {new}.shape:", f"{indent}    {old} = {layer}({old})")
    return Edit(spot.file, statement.lineno, statement.lineno - 1, lines)


def _unpadded(failed: FailedLayer, end: Any, wanted: tuple[int, ...], said: str) -> Explanation | None:
    """Convolutions without padding on the way from a tensor of the wanted size to a smaller one."""
    layers = []
    tensor = end
    for _ in range(_FARTHEST):
        layer, given = one_back(tensor)
        if layer is None or len(given) != 1 or _pixels(tensor) == wanted:
            break
        layers.append(layer)
        tensor = given[0]
    if _pixels(tensor) != wanted:
        return None
    cut = [one for one in layers if vars(one).get("padding") == "valid" and "kernel_size" in vars(one)]
    made = [failed.made(one) for one in cut]
    if not made or any(vars(one).get("strides") != (1,) * len(vars(one)["kernel_size"]) for one in cut):
        return None
    found = [one for one in made if one is not None]
    lost = tuple(sum(vars(one)["kernel_size"][at] - 1 for one in cut) for at in range(len(wanted)))
    if len(found) != len(cut) or len({one.call for one in found}) != len(cut):
        return None
    if lost != tuple(a - b for a, b in zip(wanted, _pixels(end))):
        return None
    edits = [one.edit(one.with_arguments(padding='"same"')) for one in found]
    if len({one.file for one in edits}) != 1 or len({one.first for one in edits}) != len(edits):
        return None
    first = min(found, key=lambda one: one.call.lineno)
    cause = f"{said}: {type(first.layer).__name__} (line {first.call.lineno}) cuts the borders off, as it pads nothing."
    edit = together(edits, first.source.lines)
    return Explanation(RULE, first.spot.file, first.call.lineno, cause, edit)


def _pixels(tensor: Any) -> tuple[int, ...]:
    """The sizes of a tensor without batch and channels; 0 for an open one."""
    return _sizes(shape_of(tensor) or ())[:-1]


def _products(failed: FailedLayer, shapes: list[Shape]) -> Explanation | None:
    """A Dot of two tensors, of which the axes that are multiplied differ in size."""
    one, other = shapes
    axes = vars(failed.layer).get("axes")
    made = failed.made(failed.layer)
    if len(one) > 2 and one[-1] == other[-1] and one[-1] is not None and isinstance(axes, int) and made is not None:
        at = axes % len(one)
        if at == len(one) - 1:
            return None
        cause = (
            f"Dot multiplies along axis {at}, where {sizes_of(one)} and {sizes_of(other)} differ. Their last axes are "
            f"alike, {one[-1]}."
        )
        return Explanation(
            RULE, made.spot.file, made.call.lineno, cause, made.edit(made.with_arguments(axes="-1")), "", "likely"
        )
    if len(one) != 2:
        return None
    first, second = (_embedding(tensor) for tensor in failed.given[0])
    last = failed.made(second) if first is not None and second is not None else None
    if last is None or vars(first).get("output_dim") != one[1] or vars(second).get("output_dim") != other[1]:
        return None
    cause = (
        f"Dot multiplies a row of {one[1]} numbers by one of {other[1]}: the two Embedding layers need one output_dim."
    )
    edit = last.edit(last.with_arguments(output_dim=str(one[1])))
    return Explanation(RULE, last.spot.file, last.call.lineno, cause, edit)


def _embedding(tensor: Any) -> Any:
    for _ in range(_FARTHEST):
        layer, given = one_back(tensor)
        if layer is None or type(layer).__name__ == "Embedding":
            return layer
        if len(given) != 1 or type(layer).__name__ not in ("Flatten", "Reshape", "Dropout"):
            return None
        tensor = given[0]
    return None


def _last_dense(tensor: Any) -> Any:
    for _ in range(_FARTHEST):
        layer, given = one_back(tensor)
        if type(layer).__name__ == "Dense":
            return layer
        if (
            layer is None
            or len(given) != 1
            or type(layer).__name__ not in ("Dropout", "Activation", "BatchNormalization")
        ):
            return None
        tensor = given[0]
    return None


def _is_before(tensor: Any, later: Any) -> bool:
    """Whether one tensor is computed from another."""
    waiting: list[Any] = [later]
    seen: set[int] = set()
    while waiting and len(seen) < _FARTHEST:
        one = waiting.pop()
        if one is tensor:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            waiting.extend(one_back(one)[1])
    return False


def _sizes(shape: Shape) -> tuple[int, ...]:
    return tuple(size or 0 for size in shape[1:])


def _size(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes)) + (" steps" if len(sizes) == 1 else "")


def _both(shapes: list[Shape]) -> str:
    return f"{', '.join(map(sizes_of, shapes[:-1]))} and {sizes_of(shapes[-1])}"
