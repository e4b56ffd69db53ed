"""What a generator makes in each pass before its loop: an object that shuffles, or numbers that are drawn.

Made once above the dataset, it would give each pass the same elements in the same order.
"""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import code
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names
from pyfunc_debug.doctor.generators.element_loops import Loop
from pyfunc_debug.doctor.generators.generator_source import Generator

_DEEP = 4
"""How far calls of the file's functions are followed."""


def differ(own: Source, values: list[ast.expr]) -> bool:
    """Whether values may be others in another pass: something is drawn, or an object of another file is made.

    Args:
      own: The file.
      values: What is made before the loop.
    """
    classes = {one.name for one in code.all_nodes(own.tree) if isinstance(one, ast.ClassDef)}
    return any(
        code.is_random(value, own.tree)  # type: ignore[arg-type]  # it takes any part
        or any(_is_foreign(one, classes) for one in ast.walk(value))
        for value in values
    )


def _is_foreign(node: ast.AST, classes: set[str]) -> bool:
    """Whether a call makes an object of a class that the file does not show: `loaders.DataGenerator(names)`."""
    name = dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
    return name[:1].isupper() and name not in classes


def of_lambda(call: ast.Call, made: Generator) -> list[tuple[str, ast.expr]] | None:
    """Parameters of a generator that a lambda gives their values in each pass; None where one is made of another.

    Args:
      call: The call of `from_generator`.
      made: Its generator.
    """
    value = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "generator"), None)
    if not isinstance(value, ast.Lambda):
        return []
    inside = {id(one) for one in ast.walk(value)}
    given = [(name, one) for name, one in made.given.items() if id(one) in inside and dotted(one) != name]
    read = {name for _, one in given for name in names(one)}
    return None if read & {name for name, _ in given} else given


def functions_of(own: Source, made: Generator, loop: Loop) -> list[ast.FunctionDef]:
    """The generator, and the file's functions that a round of its loop calls, `__getitem__` by its brackets."""
    known = [one for one in code.all_nodes(own.tree) if isinstance(one, ast.FunctionDef)]
    parts: list[ast.AST] = [*loop.body, loop.value]
    found = [made.function] if isinstance(made.function, ast.FunctionDef) else []
    for _ in range(_DEEP):
        nodes = [one for part in parts for one in ast.walk(part)]
        called = {dotted(one.func).rpartition(".")[2] for one in nodes if isinstance(one, ast.Call)}
        if any(isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load) for one in nodes):
            called.add("__getitem__")
        new = [one for one in known if one.name in called and one not in found]
        found += new
        parts = list(new)
    return found
