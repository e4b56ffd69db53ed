"""Bodies that make text of bytes by `str(line)`, which gives "b'...'"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.text_inputs import is_eager, texts_given
from pyfunc_debug.doctor.bodies.texts_of_bytes import Made, made
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import indent_of
from pyfunc_debug.records import Finding, Node

NAMES = ("bytes-as-text",)
_LONG = 120
_MAKES = ("str(", 'f"', "f'", "%", ".format(", ".writerow")
"""What makes a text of bytes, in a file's lines."""
_QUOTED = re.compile(r"'([^']*)'")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line."""
    asked = [
        (node, function) for group in facts.lines
        if (function := facts.function(node := group[0])) is not None and _has_str(facts, node)
    ]  # fmt: skip
    given = texts_given(facts, [node.id for node, _ in asked])
    seen: set[tuple[str | None, int]] = set()
    for node, function in asked:
        strings, first = given.get(node.id, ({}, 0))
        for one in made(function, strings, is_eager(node), facts.tree(node.file)):
            if (node.file, one.call.lineno) not in seen:
                seen.add((node.file, one.call.lineno))
                yield _finding(facts, node, one, first)


def _has_str(facts: Facts, node: Node) -> bool:
    return any(one in line for line in facts.source(node.file or "") for one in _MAKES)


def _finding(facts: Facts, node: Node, one: Made, call: int) -> Finding:
    text = pastes.text_of(facts, node.file, one.call)
    message = f"`{text}` of bytes gives \"b'...'\", with the b and the quotes"
    if one.call is one.inner:
        message = (
            f"`{text}` is bytes, and the text that it is put into has them as \"b'...'\", with the b and the quotes"
        )
    shown = facts.inputs(call)
    first = _QUOTED.search(shown[shown.find(f"{one.given} ") :])
    if one.slices and first is not None:
        message += f". Of '{first[1]}' the slice leaves {one.of(first[1])!r}"
    return Finding(
        NAMES[0], "warning", node.id, (call,),
        f"{message}. A body gets its strings as bytes: decode() makes them text", _fix(facts, node, one), node.file,
        one.call.lineno, evidence=(f"call #{call}: {shown if len(shown) < _LONG else shown[:_LONG] + ' ...'}",),
    )  # fmt: skip


def _fix(facts: Facts, node: Node, one: Made) -> str:
    source = pastes.source(facts, node.file)
    new = f"{source.atom(one.inner)}.decode()"
    if not one.slices:
        return pastes.all_replaced(facts, node.file, {one.call: new})
    if not one.lines:  # `str(line)[2:-2]`
        whole = next(part for part in pastes.walk(facts.tree(node.file), ast.Subscript) if part.value is one.call)
        return pastes.all_replaced(facts, node.file, {whole: new})
    first, last = one.lines[0], one.lines[-1]
    blanks = indent_of(source.lines[first.lineno - 1])
    lines = (f"{blanks}{one.name} = {new}",)
    return pastes.written(Edit(node.file or "", first.lineno, last.end_lineno or last.lineno, lines))
