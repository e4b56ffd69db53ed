"""One value beside rows, of which a dataset is to make elements: `from_tensor_slices((rows, label))`, `unbatch()`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import shapes
from pyfunc_debug.doctor.failures.reading.nodes import user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup, method_calls, shape_of_data

RULE = "structure"
_SLICED = "All components must be at least 1-dimensional"
_TRACED = "Unbatching a tensor is only supported for rank >= 1"
_UNBATCHED = "Input element must have a non-scalar value in each component"
_Shape = tuple[Any, ...]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one part of what is taken apart has rows, and another is one value for all of these."""
    if situation.body:
        return None
    if _TRACED in situation.message and situation.last is not None and situation.statement is not None:
        for call in method_calls(situation.statement, "from_tensor_slices"):
            parts = call.args[0].elts if len(call.args) == 1 and isinstance(call.args[0], ast.Tuple) else []
            known = [_shape(one, situation.last) for one in parts]
            if (found := _sliced(situation.last.file, situation.last.source, call, known)) is not None:
                return found
    if _SLICED in situation.message or _UNBATCHED in situation.message:
        return _at_run(situation, unbatched=_UNBATCHED in situation.message)
    return None


def _shape(node: ast.expr, spot: Spot) -> _Shape | None:
    if isinstance(node, ast.Constant):
        return () if isinstance(node.value, (int, float, str)) else None
    return shape_of_data(lookup(node, spot))


def _at_run(situation: Situation, unbatched: bool) -> Explanation | None:
    """The values are a body's: what its calls returned is in the recording."""
    for node in user_nodes(situation):
        known, call = shapes.recorded(situation.rows, node.id)[0], node.call()
        if node.site is None or call is None or len(node.tout) < 2 or () not in known.values():
            continue
        shape = [known.get(index) for index in range(len(node.tout))]
        if unbatched:
            found = _unbatched(node.site[0], node.source, shape, node.called, situation)
        else:
            found = _sliced_later(node.site[0], node.source, call, shape)
        if found is not None:
            return found
    return None


def _sliced_later(file: str, source: Source, call: ast.Call, shape: list[_Shape | None]) -> Explanation | None:
    """`rows, label = tf.py_function(...)`, which from_tensor_slices gets by these names."""
    parent = source.parent(call)
    targets = parent.targets[0] if isinstance(parent, ast.Assign) else None
    named = [dotted(one) for one in targets.elts] if isinstance(targets, ast.Tuple) else []
    sizes = dict(zip(named, shape)) if len(named) == len(shape) else {}
    for one in method_calls(source.tree, "from_tensor_slices"):
        parts = one.args[0].elts if len(one.args) == 1 and isinstance(one.args[0], ast.Tuple) else []
        found = _sliced(file, source, one, [sizes.get(dotted(each)) for each in parts])
        if found is not None:
            return found
    return None


def _sliced(file: str, source: Source, call: ast.Call, known: Sequence[_Shape | None]) -> Explanation | None:
    """`from_tensor_slices((rows, label))`: sliced are the rows, and a map puts the label beside each."""
    given = call.args[0]
    if not isinstance(given, ast.Tuple) or len(known) != len(given.elts) or None in known:
        return None
    rows = [one for one, shape in zip(given.elts, known) if shape]
    single = [one for one, shape in zip(given.elts, known) if shape == ()]
    plain = all(isinstance(one, (ast.Name, ast.Attribute, ast.Constant)) for one in single)
    if not rows or not single or not plain or len(rows) + len(single) != len(given.elts):
        return None
    made = ["row"] if len(rows) == 1 else [f"row{index}" for index in range(len(rows))]
    names = dict(zip(rows, made))
    text = source.text
    listed = ", ".join(names.get(one, text(one)) for one in given.elts)
    kept = text(rows[0]) if len(rows) == 1 else f"({', '.join(map(text, rows))})"
    new = f"{text(call.func)}({kept}).map(lambda {', '.join(made)}: ({listed}))"
    cause = (
        f"from_tensor_slices takes a row of each part for an element, and {text(single[0])} is one value, beside "
        f"{text(rows[0])} with {_count(known)} rows. A map puts it beside each row."
    )
    edit = edit_of(file, source.replaced({call: new}))
    return Explanation(RULE, file, call.lineno, cause, edit, "", "likely")


def _count(known: Sequence[_Shape | None]) -> str:
    count = next((shape[0] for shape in known if shape), None)
    return "its" if count is None else str(count)


def _unbatched(
    file: str, source: Source, shape: list[_Shape | None], body: str, situation: Situation
) -> Explanation | None:
    """`.map(load).unbatch()` of rows and one label: the label is repeated for each row first."""
    calls = method_calls(source.tree, "unbatch")
    if len(calls) != 1 or not isinstance(calls[0].func, ast.Attribute) or not any(shape) or None in shape:
        return None
    names = [f"part{index}" for index in range(len(shape))]
    first = next(name for name, one in zip(names, shape) if one)
    tf = alias(situation.last, "tensorflow") if situation.last is not None else "tf"
    parts = [f"{tf}.fill([{tf}.shape({first})[0]], {name})" if one == () else name for name, one in zip(names, shape)]
    owner = source.text(calls[0].func.value)
    edit = edit_of(
        file, source.replaced({calls[0].func.value: f"{owner}.map(lambda {', '.join(names)}: ({', '.join(parts)}))"})
    )
    index = shape.index(())
    cause = (
        f"unbatch() makes an element of each row, and of what {body} returned value {index + 1} is one value without "
        "rows. tf.fill repeats it for each row."
    )
    return Explanation(RULE, file, calls[0].lineno, cause, edit, "", "likely")
