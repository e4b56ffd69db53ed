"""A shape that `set_shape` says of an element and that its values have not: the iterator finds it out."""

from __future__ import annotations

import ast
import math
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.axis_orders import axis_order
from pyfunc_debug.doctor.failures.reading.nodes import return_value
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, method_calls

RULE = "unknown-shape"
_SAID = re.compile(r"Incompatible shapes at component (\d+): expected \[([\d?,]*)\] but got \[([\d,]*)\]")
_PLANE = 1
"""Axes of a row of numbers."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the one set_shape with these sizes is not about what a node itself returned."""
    said = _SAID.search(situation.message)
    if said is None:
        return None
    wanted, got = said[2].split(","), said[3].split(",")
    for file, source in situation.sources():
        found = [
            (one, sizes) for one in method_calls(source.tree, "set_shape")
            if (sizes := _said_there(one, wanted, source, int(said[1]))) and not _of_node(one, source)
        ]  # fmt: skip
        if len(found) > 1:
            found = [one for one in found if _is_component(one[0], source, int(said[1]))]
        if len(found) == 1:
            real = got[1:] if len(wanted) > len(found[0][1]) else got
            return _explained(situation, file, source, *found[0], real)
    return _of_images(situation, wanted, got, int(said[1]))


def _of_images(situation: Situation, wanted: list[str], got: list[str], component: int) -> Explanation | None:
    """Images that a body reads with the channels that their files have: gray ones, palettes, RGBA."""
    for file, source in situation.sources():
        named = [one for one in method_calls(source.tree, "set_shape") if _said_there(one, wanted, source, component)]
        opened = [
            one for one in calls(source.tree)
            if dotted(one.func) in ("Image.open", "PIL.Image.open", "pil_image.open") and not _converts(one, source)
        ]  # fmt: skip
        if len(named) != 1 or len(opened) != 1 or wanted[-1:] != ["3"]:
            continue
        sizes = _said_there(named[0], wanted, source, component)
        real = got[1:] if len(wanted) > len(sizes) else got
        if real != sizes[:-1] and not (real[:-1] == sizes[:-1] and real[-1] in ("1", "2", "4")):
            continue
        call = opened[0]
        cause = (
            f"set_shape says [{', '.join(sizes)}], and an image was read as [{', '.join(real)}]: Image.open gives the "
            'channels that the file has (gray, a palette, RGBA). convert("RGB") makes three of them.'
        )
        edit = edit_of(file, source.replaced({call: f'{source.text(call)}.convert("RGB")'}))
        return Explanation(RULE, file, call.lineno, cause, edit, "" if edit else 'Write .convert("RGB") behind it.')
    return None


def _converts(call: ast.Call, source: Source) -> bool:
    """Whether a convert follows: in the line, or of the name that the image is given."""
    around = source.parent(call)
    if isinstance(around, ast.Attribute):
        return any(isinstance(one, ast.Attribute) and one.attr == "convert" for one in (around, *source.around(around)))
    name = dotted(around.targets[0]) if isinstance(around, ast.Assign) and len(around.targets) == 1 else ""
    return bool(name) and any(
        isinstance(one.func, ast.Attribute) and dotted(one.func.value) == name
        for one in method_calls(source.tree, "convert")
    )


def _explained(
    situation: Situation, file: str, source: Source, call: ast.Call, sizes: list[str], real: list[str]
) -> Explanation:
    assert isinstance(call.func, ast.Attribute)
    name = ast.unparse(call.func.value)
    cause = (
        f"set_shape says [{', '.join(sizes)}] of {name}, and its values are [{', '.join(real)}]: it changes nothing."
    )
    tf = alias(situation.last, "tensorflow") if situation.last is not None else "tf"
    alone = "." not in name and isinstance(source.parent(call), ast.Expr)
    order = axis_order([_numbers(real)], _numbers(sizes))
    new = ""
    if order is not None and alone:
        cause += " The axes are in another order: transpose moves them."
        new = f"{tf}.transpose({name}, {list(order)})"
    elif alone and sizes[-1] in ("1", "?") and len(sizes) == len(real) + 1 and _fit(sizes[:-1], real):
        cause += f" {tf}.newaxis adds the axis that is missing."
        new = f"{name}[..., {tf}.newaxis]"
    if new:
        line = f"{indent_of(source.lines[call.lineno - 1])}{name} = {new}"
        edit = Edit(file, call.lineno, call.lineno - 1, (line,))
        return Explanation(RULE, file, call.lineno, cause, edit, "", "likely")
    if not alone or "?" in sizes or math.prod(map(int, sizes)) != math.prod(map(int, real)):
        advice = f"Say the shape that it has, or reshape it: {name} = tf.reshape({name}, [...])."
        if len(sizes) == len(real) > _PLANE and sizes[-1] == real[-1]:
            advice = f"Say the shape that it has, or let what makes {name} resize, cut or pad it to that one."
        return Explanation(RULE, file, call.lineno, cause, None, advice)
    cause += " reshape gives it that shape."
    edited = edit_of(file, source.replaced({call: f"{name} = {tf}.reshape({name}, [{', '.join(sizes)}])"}))
    return Explanation(RULE, file, call.lineno, cause, edited, "", "likely")


def _said_there(call: ast.Call, wanted: list[str], source: Source, component: int) -> list[str]:
    """The sizes of an element that a set_shape says, if they are those that the iterator wanted; else none.

    Of `self.size` and `*config.patch` the text tells no size: that call has to be of the component that failed.
    """
    written = written_sizes(call)
    if written:
        return written if written in (wanted, wanted[1:]) else []
    given = call.args[0] if len(call.args) == 1 else None
    elements = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
    starred = [at for at, one in enumerate(elements) if isinstance(one, ast.Starred)]
    if not elements or len(starred) > 1 or not _is_component(call, source, component):
        return []
    batched = bool(method_calls(source.tree, "batch", "padded_batch"))
    for sizes in (wanted[1:], wanted) if batched else (wanted, wanted[1:]):
        missing = len(sizes) - len(elements)
        if starred and missing >= -1:
            at = starred[0]
            sized = [*elements[:at], *[elements[at]] * (missing + 1), *elements[at + 1 :]]
        else:
            sized = list(elements)
        if len(sized) == len(sizes) and all(map(_may_be, sized, sizes)):
            return sizes
    return []


def _may_be(node: ast.expr, size: str) -> bool:
    return not isinstance(node, ast.Constant) or size == ("?" if node.value is None else str(node.value))


def _fit(sizes: list[str], real: list[str]) -> bool:
    return all(size in ("?", one) for size, one in zip(sizes, real))


def _is_component(call: ast.Call, source: Source, component: int) -> bool:
    """Whether a set_shape is about what its function returns at that place, counted as an iterator does."""
    function = source.function(call.lineno)
    value = return_value(function) if function is not None else None
    if isinstance(value, ast.Dict):
        keyed = [(key.value, one) for key, one in zip(value.keys, value.values) if isinstance(key, ast.Constant)]
        parts = (
            [one for _, one in sorted(keyed, key=lambda pair: str(pair[0]))] if len(keyed) == len(value.keys) else []
        )
    else:
        parts = list(value.elts) if isinstance(value, (ast.Tuple, ast.List)) else [value] if value is not None else []
    nested = any(isinstance(one, (ast.Tuple, ast.List, ast.Dict, ast.Starred)) for one in parts)
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return len(parts) > component and not nested and owner is not None and _same(parts[component], owner)


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.unparse(one) == ast.unparse(other)


def _numbers(sizes: list[str]) -> tuple[int | None, ...]:
    return tuple(int(one) if one.isdigit() else None for one in sizes)


def written_sizes(call: ast.Call) -> list[str]:
    """The sizes that are written out; `?` for None."""
    given = call.args[0] if len(call.args) == 1 else None
    elements = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
    if not all(isinstance(one, ast.Constant) for one in elements):
        return []
    return ["?" if one.value is None else str(one.value) for one in elements if isinstance(one, ast.Constant)]


def _of_node(call: ast.Call, source: Source) -> bool:
    """Whether the name is only what a py_function's call was assigned to: what its calls returned tells of that."""
    name, function = dotted(call.func).rpartition(".")[0], source.function(call.lineno)
    made = [
        ast.unparse(one.value) for one in ast.walk(function or source.tree)
        if isinstance(one, ast.Assign) and name in [dotted(part) for each in one.targets for part in ast.walk(each)]
    ]  # fmt: skip
    return len(made) == 1 and any(word in made[0] for word in ("py_func", "numpy_function"))
