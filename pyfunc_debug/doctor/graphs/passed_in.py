"""A call in a traced function that is to happen each time: made where the function is called, its results passed in."""

from __future__ import annotations

import ast
from collections.abc import Collection

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import indent_of, names
from pyfunc_debug.records import Function


def passed_in(facts: Facts, function: Function, helpers: Collection[str]) -> str:
    """The lines of a tf.function and of its calls, with what a helper gives as arguments.

    Args:
      facts: The recording.
      function: The traced function.
      helpers: Names of functions and methods, one of which a statement of it calls: `s, r = buffer.sample(8)`.

    Returns:
      The lines; "" where the call needs what only the function knows, or the function is not called by lines of its
      file.
    """
    own, definition = pastes.source(facts, function.file), facts.definition(function.file, function.line)
    if function.file is None or not isinstance(definition, ast.FunctionDef) or definition.args.vararg:
        return ""
    arguments = definition.args
    if arguments.kwonlyargs or arguments.kwarg or arguments.defaults:
        return ""
    bodies = [definition.body, *(part.body for part in definition.body if isinstance(part, ast.With))]
    made = [
        (one, one.value) for body in bodies if len(body) > 1
        for one in body if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
        and pastes.last_name(one.value.func) in helpers
    ]  # fmt: skip
    if len(made) != 1 or len(made[0][0].targets) != 1:
        return ""
    statement, call = made[0]
    target, local = statement.targets[0], code.local_names(definition)
    first, last = own.span(statement)
    given = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    new = [one.id for one in given if isinstance(one, ast.Name)]
    of_object = [one.arg for one in arguments.args[:1] if one.arg == "self"]
    if (
        len(new) != len(given)
        or set(names(call)) & (local - set(of_object))
        or set(new) & set(code.parameters(definition))
    ):
        return ""
    asked = own.text(call)
    star = "*" if isinstance(target, (ast.Tuple, ast.List)) else ""
    head = _head(facts, function, definition, new)
    sites = pastes.run_sites(facts, function.id)
    if head is None or not 0 < len(sites) <= pastes.MOST or any(file != function.file for file, _ in sites):
        return ""
    pieces: dict[ast.expr, str] = {}
    for file, line in sites:
        site = pastes.call_at(facts, file, line, definition.name)
        if site is None or site.keywords:
            return ""
        text = asked
        if of_object and "self" in names(call):
            if not isinstance(site.func, ast.Attribute):
                return ""
            text = _of(asked, own.text(site.func.value))
        listed = [*map(own.text, site.args), f"{star}{text}"]
        pieces[site] = f"{own.text(site.func)}({', '.join(listed)})"
    gone = Edit(function.file, first, last, ())
    return pastes.written(head, gone, *pastes.each_replaced(facts, function.file, pieces))


def _head(facts: Facts, function: Function, definition: ast.FunctionDef, new: list[str]) -> Edit | None:
    """The line of the `def` with more parameters; None where it is several lines, or annotated in ways of its own."""
    lines = facts.source(function.file)
    if definition.body[0].lineno <= definition.lineno or definition.returns is not None or function.file is None:
        return None
    line = lines[definition.lineno - 1]
    old = ast.unparse(definition.args)
    text = f"{indent_of(line)}def {definition.name}({', '.join([old] * bool(old) + new)}):"
    if line.strip() != f"def {definition.name}({old}):":
        return None
    return Edit(function.file, definition.lineno, definition.lineno, (text,))


def _of(text: str, receiver: str) -> str:
    """A call of a method as another object's line makes it: `agent.buffer.sample(8)` of `self.buffer.sample(8)`."""
    tree = ast.parse(text, mode="eval")
    for one in ast.walk(tree):
        if isinstance(one, ast.Name) and one.id == "self":
            one.id = receiver
    return ast.unparse(tree)
