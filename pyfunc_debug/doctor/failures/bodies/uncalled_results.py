"""A method in the place of what it gives, in what a body returns: its parentheses are missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.graphs.uncalled import call_of
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import Node, return_value, return_values
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, read

RULE = "structure"


def explain(node: Node, situation: Situation, spot: Spot, kind: str) -> Explanation:
    """A method without its parentheses in what a body, or what it calls, returns.

    Args:
      node: The body's node.
      situation: The failure.
      spot: Where the node was made.
      kind: What was returned, in words: `method`.
    """
    cause = f"{node.opening} returned a {kind} itself, not what it gives: its parentheses are missing."
    found: list[tuple[str, Source, ast.expr]] = []
    for file, source in situation.sources():
        methods = {
            part.name for one in ast.walk(source.tree) if isinstance(one, ast.ClassDef) for part in one.body
            if isinstance(part, ast.FunctionDef) and not part.decorator_list
        }  # fmt: skip
        found += [(file, source, part) for part in _returned_attributes(source) if part.attr in methods]
    function, own = node.function(), read(node.file or "")
    result = return_value(function) if function is not None else None
    text = call_of(result, function, own) if result is not None and function is not None else None
    if node.file is not None and result is not None and text is not None and not found:
        found = [(node.file, own, result)]
    if len(found) == 1:
        file, source, part = found[0]
        placed = source.replaced({part: text if part is result and text is not None else f"{source.text(part)}()"})
        if placed is not None:
            edit = Edit(file, placed[0], placed[1], (placed[2],))
            return Explanation(RULE, file, part.lineno, cause, edit, "", "likely")
    return Explanation(RULE, spot.file, spot.line, cause, None, "Call it: write () behind its name.")


def _returned_attributes(source: Source) -> Iterator[ast.Attribute]:
    """`self.reward` in what functions return, also by way of a variable: `reward = self.reward; return reward`."""
    for function in (one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef)):
        parts = [
            part for one in return_values(function) for part in (one.elts if isinstance(one, ast.Tuple) else [one])
        ]
        kept = {part.id for part in parts if isinstance(part, ast.Name)}
        parts += [
            one.value for one in own_nodes(function)
            if isinstance(one, ast.Assign) and len(one.targets) == 1 and ast.unparse(one.targets[0]) in kept
        ]  # fmt: skip
        yield from (part for part in parts if isinstance(part, ast.Attribute) and dotted(part).startswith("self."))
