"""A few grey images, or ones with an alpha channel, among the colour images that a body returns to a batch."""

from __future__ import annotations

import ast
import json

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.nodes import Node, return_value
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, read

RULE = "ragged-batch"
_KINDS = {1: "a grey image", 4: "an image with an alpha channel"}
_COLOURS = 3
_LONGEST = 48


def of_node(situation: Situation, node: Node) -> Explanation | None:
    """What is said of the images that differ in their channels only; None where something else differs.

    Args:
      situation: The failure.
      node: The node whose results go to a batch.
    """
    rows = situation.rows(
        "SELECT v.position, v.shape, v.call FROM value v JOIN call c ON c.id = v.call WHERE c.node = ? AND "
        "c.kind = 'forward' AND v.role = 'output' AND v.shape IS NOT NULL ORDER BY v.call",
        (node.id,),
    )
    seen: dict[int, dict[tuple[int, ...], list[int]]] = {}
    for position, text, number in rows:
        seen.setdefault(position, {}).setdefault(tuple(json.loads(text)), []).append(number)
    varying = [position for position, shapes in seen.items() if len(shapes) > 1]
    shapes = seen[varying[0]] if len(varying) == 1 else {}
    channels = {shape[-1]: calls for shape, calls in shapes.items() if len(shape) == _COLOURS}
    odd = {count: calls for count, calls in channels.items() if count in _KINDS}
    if len(channels) != len(shapes) or set(channels) - set(odd) != {_COLOURS} or not odd:
        return None
    if len({shape[:2] for shape in shapes}) > 1 or any(len(calls) > len(channels[_COLOURS]) for calls in odd.values()):
        return None
    whole = sum(map(len, channels.values()))
    count, calls = next(iter(odd.items()))
    others = " or ".join(f"{len(also)} with {other}" for other, also in odd.items() if other != count)
    plural = "s" if count > 1 else ""
    cause = (
        f"{node.called} returned {count} channel{plural} in {len(calls):,} of its {whole:,} calls "
        f"({_KINDS[count]}){', ' * bool(others)}{others}, and {_COLOURS} in the others: batch() stacks one shape only."
        f"{_given(situation, calls[0], len(calls) > 1)}"
    )
    edit = _edit(node, varying[0], sorted(odd))
    file, line = (edit.file, edit.first) if edit is not None else node.site or ("", 0)
    advice = "" if edit is not None else f"Give each image {_COLOURS} channels in {node.called}, or leave it out."
    return Explanation(RULE, file, line, cause, edit, advice, "likely")


def _given(situation: Situation, number: int, several: bool) -> str:
    """What a call was given, as a sentence: a text or a number."""
    rows = situation.rows(
        "SELECT path, text, shape FROM value WHERE call = ? AND role = 'input' ORDER BY position", (number,)
    )
    for path, text, shape in rows:
        value = text.partition(" ")[2]
        if shape == "[]" and value:
            shown = value if len(value) <= _LONGEST else f"'...{value[-_LONGEST:]}"
            return f" {'The first of them' if several else 'That call'} got {path} = {shown}."
    return ""


def _edit(node: Node, position: int, odd: list[int]) -> Edit | None:
    """Three channels for each image, above the `return` of the body; None where that is more than a line."""
    function = node.function()
    value = return_value(function) if function is not None else None
    if node.file is None or value is None or not isinstance(function, ast.FunctionDef):
        return None
    source = read(node.file)
    several = isinstance(value, (ast.Tuple, ast.List)) and len(node.tout) > 1
    image = value.elts[position] if several and position < len(value.elts) else value  # type: ignore[attr-defined]
    statement = source.parent(value)
    if (isinstance(value, (ast.Tuple, ast.List)) and image is value) or not isinstance(statement, ast.Return):
        return None
    blanks = indent_of(source.lines[statement.lineno - 1])
    name = image.id if isinstance(image, ast.Name) else source.unused_name("image")
    new = [] if isinstance(image, ast.Name) else [f"{blanks}{name} = {source.text(image)}"]
    if 1 in odd:
        made = _grey(node, function, image, name)
        if made is None:
            return None
        new += [f"{blanks}if {name}.shape[-1] == 1:", f"{blanks}    {name} = {made}"]
    if 4 in odd:
        new += [f"{blanks}{name} = {name}[..., :{_COLOURS}]"]
    if isinstance(image, ast.Name):
        return Edit(node.file, statement.lineno, statement.lineno - 1, tuple(new))
    first, last, lines = source.kept_lines({image: name})
    return None if first < statement.lineno else Edit(node.file, statement.lineno, last, (*new, *lines))


def _grey(node: Node, function: ast.FunctionDef, image: ast.expr, name: str) -> str | None:
    """A grey image three times, as the program's own package does that; None where it imports none."""
    assert node.file is not None
    packages = {
        one.name: one.asname or one.name
        for statement in ast.walk(read(node.file).tree) if isinstance(statement, ast.Import) for one in statement.names
    }  # fmt: skip
    tf, np = packages.get("tensorflow"), packages.get("numpy")
    made = assignments(function).get(image.id, image) if isinstance(image, ast.Name) else image
    of_op = isinstance(made, ast.Call) and dotted(made.func).partition(".")[0] == tf
    if np is not None and not of_op:
        return f"{np}.repeat({name}, {_COLOURS}, axis=-1)"
    return f"{tf}.repeat({name}, {_COLOURS}, axis=-1)" if tf is not None else None
