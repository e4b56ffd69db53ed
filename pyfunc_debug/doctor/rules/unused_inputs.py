"""Large values that a body is given and never reads: each call copies or holds them for nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding, Node

NAMES = ("unused-input",)
_CALL_BYTES, _TOTAL_BYTES = 100_000, 10_000_000


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line and value."""
    for group in facts.lines:
        node, function = group[0], facts.function(group[0])
        for position, name in enumerate(_unread(function) if function is not None else ()):
            if name is None:
                continue
            ids = ", ".join(str(one.id) for one in group)
            calls, size = facts.reader.rows(
                "SELECT count(v.nbytes), total(v.nbytes) FROM call c JOIN value v ON v.call = c.id "
                f"AND v.role = 'input' AND v.position = ? WHERE c.node IN ({ids}) AND c.kind = 'forward'",
                (position,),
            )[0]
            if not calls or size < max(_TOTAL_BYTES, _CALL_BYTES * calls):
                continue
            site = facts.site(node.id)
            yield Finding(
                NAMES[0], "note", node.id, (),
                f"{node.body} gets `{name}` and never reads it: {size / calls / 1e6:,.1f} MB a call, "
                f"{size / 1e6:,.0f} MB in {calls:,} calls, which TensorFlow has to finish and hold for it",
                (_without(facts, node, function, position) if function is not None else "")
                or f"leave `{name}` out of inp=[...] and of the parameters of {facts.name(node)}",
                site.file if site else node.file, site.line if site else node.line,
                several(one.id for one in group), (f"input {position + 1} of {len(node.paths)}",),
            )  # fmt: skip


def _unread(function: Definition) -> list[str | None]:
    """The parameters in their order: names of those that are never read, None for the others."""
    arguments = function.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
        return []
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    read = {one.id for part in body for one in ast.walk(part) if isinstance(one, ast.Name)}
    if "locals" in read:
        return []
    own = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    return [None if name in read else name for name in own[own[:1] == ["self"] :]]


def _without(facts: Facts, node: Node, function: Definition, position: int) -> str:
    """The body and the line that calls it without one value; "" where others may call the body too."""
    found, tree = pastes.call_of(facts, node), facts.tree(node.file)
    given = pastes.argument(found[1], 1, "inp") if found is not None else None
    if found is None or tree is None or node.file is None or not isinstance(given, (ast.List, ast.Tuple)):
        return ""
    parameters = [*function.args.posonlyargs, *function.args.args]
    parameters = parameters[[one.arg for one in parameters[:1]] == ["self"] :]
    if len(given.elts) != len(parameters) or len(parameters) < 2 or function.args.defaults:
        return ""
    name = getattr(function, "name", None)
    scope = pastes.scope_of(facts, node.file, function) or tree
    every = (one.id if isinstance(one, ast.Name) else getattr(one, "attr", None) for one in code.all_nodes(scope))
    reads = [one for one in every if one is not None and one == name]
    first, last = parameters[0], parameters[-1]
    line = facts.source(node.file)[first.lineno - 1]
    if len(reads) > 1 or first.lineno != last.end_lineno or not line.isascii():
        return ""
    texts = [pastes.text_of(facts, found[0], one) for place, one in enumerate(given.elts) if place != position]
    names = [pastes.text_of(facts, node.file, one) for place, one in enumerate(parameters) if place != position]
    inputs = pastes.replaced(facts, found[0], {given: f"[{', '.join(texts)}]"})
    new = f"{line[: first.col_offset]}{', '.join(names)}{line[last.end_col_offset :]}"
    if inputs is None:
        return ""
    if isinstance(function, ast.Lambda):  # both in one statement
        place = pastes.text_of(facts, node.file, function)
        head = f"lambda {', '.join(names)}:{place.partition(':')[2]}"
        pieces: dict[ast.expr, str] = {given: f"[{', '.join(texts)}]", function: head}
        return pastes.all_replaced(facts, node.file, pieces) if found[0] == node.file else ""
    return pastes.written(inputs, Edit(node.file, first.lineno, first.lineno, (new,)))
