"""Models that a program compiles and Keras trained: their outputs and last layer, as the lines of one scope say."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.rules.ran_out import files_of_keras

_MODELS = ("Model", "Sequential")


class Compiled(NamedTuple):
    """A call of `compile`: its file, the model's name, and the nodes of the function or file that it stands in."""

    file: str
    call: ast.Call
    model: str
    scope: Sequence[ast.AST]

    @property
    def loss(self) -> ast.expr | None:
        """What it was given as the loss."""
        return pastes.argument(self.call, 1, "loss")


def compiled_models(facts: Facts) -> Iterator[Compiled]:
    """Each `compile` in a file of which Keras ran steps."""
    for file in files_of_keras(facts):
        tree = facts.tree(file)
        for call in pastes.walk(tree, ast.Call):
            owner = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "compile" else None
            if tree is not None and isinstance(owner, ast.Name):
                functions = pastes.around(tree, call.lineno, ast.FunctionDef)
                nodes = code.own_nodes(functions[-1] if functions else tree)
                yield Compiled(file, call, owner.id, sorted(nodes, key=lambda one: getattr(one, "lineno", 0)))


def last_layer(compiled: Compiled) -> ast.Call | None:
    """The Dense layer that gives a model's output."""
    found: ast.expr | None = None
    made: dict[str, ast.expr] = {}
    for one in _before(compiled):
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            name, value = one.targets[0].id, one.value
            if name == compiled.model:
                found = _output(value, made) if isinstance(value, ast.Call) else None
            made[name] = value
        elif isinstance(one, ast.Call) and ast.unparse(one.func) == f"{compiled.model}.add" and one.args:
            found = one.args[0]
    return found if isinstance(found, ast.Call) and pastes.last_name(found.func) == "Dense" else None


def outputs(compiled: Compiled) -> int | None:
    """How many outputs a model has; None where that is not known."""
    made: dict[str, ast.expr] = {}
    for one in _before(compiled):
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            made[one.targets[0].id] = one.value
    value = made.get(compiled.model)
    kind = pastes.last_name(value.func) if isinstance(value, ast.Call) else ""
    if kind == "Sequential":
        return 1
    given = pastes.argument(value, 1, "outputs") if kind == "Model" and isinstance(value, ast.Call) else None
    given = made.get(given.id) if isinstance(given, ast.Name) else given
    if isinstance(given, (ast.List, ast.Tuple)) and not any(isinstance(one, ast.Starred) for one in given.elts):
        return len(given.elts)
    return 1 if isinstance(given, ast.Call) and isinstance(given.func, ast.Call) else None


def _before(compiled: Compiled) -> Iterator[ast.AST]:
    """The nodes of the scope above the call."""
    return (one for one in compiled.scope if getattr(one, "lineno", 0) <= compiled.call.lineno)


def _output(value: ast.Call, made: dict[str, ast.expr]) -> ast.expr | None:
    """The layer that ends `Sequential([...])`, or makes the outputs of `Model(inputs, outputs)`."""
    kind = pastes.last_name(value.func)
    if kind not in _MODELS:
        return None
    if kind == "Sequential":
        layers = value.args[0] if value.args else None
        return layers.elts[-1] if isinstance(layers, ast.List) and layers.elts else None
    given = pastes.argument(value, 1, "outputs")
    called = made.get(given.id) if isinstance(given, ast.Name) else given
    return called.func if isinstance(called, ast.Call) and isinstance(called.func, ast.Call) else None
