"""A last layer whose numbers the loss takes for probabilities, or that gives 1 for every input."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.rules.ran_out import files_of_keras
from pyfunc_debug.records import Finding

NAMES = ("last-layer",)
_MODELS = ("Model", "Sequential")
_OF_CLASSES = ("categorical_crossentropy", "sparse_categorical_crossentropy")
_OF_TWO = ("binary_crossentropy",)
_UNBOUNDED = (None, "linear", "relu")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a `compile` of a model that Keras trained."""
    for file in files_of_keras(facts):
        tree = facts.tree(file)
        for call in pastes.walk(tree, ast.Call):
            owner = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "compile" else None
            if tree is None or not isinstance(owner, ast.Name):
                continue
            functions = pastes.around(tree, call.lineno, ast.FunctionDef)
            scope = sorted(
                code.own_nodes(functions[-1] if functions else tree), key=lambda one: getattr(one, "lineno", 0)
            )
            layer = _last_layer(scope, owner.id, call.lineno)
            loss = pastes.argument(call, 1, "loss")
            if layer is not None and isinstance(loss, ast.Constant) and isinstance(loss.value, str):
                yield from _looked_at(facts, file, call, layer, loss.value)


def _looked_at(facts: Facts, file: str, call: ast.Call, layer: ast.Call, loss: str) -> Iterator[Finding]:
    units, given = pastes.argument(layer, 0, "units"), pastes.argument(layer, 1, "activation")
    count = units.value if isinstance(units, ast.Constant) else None
    if given is not None and not isinstance(given, ast.Constant):
        return
    activation = given.value if isinstance(given, ast.Constant) else None
    text = pastes.text_of(facts, file, layer)
    if count == 1 and activation == "softmax":
        message = f"{text} gives 1 for every input: softmax divides by the sum over the units, and there is one"
        yield _activated(facts, file, layer, given, "sigmoid", message)
    elif loss in _OF_CLASSES and activation in _UNBOUNDED and isinstance(count, int) and count > 1:
        message = f"{loss} takes what {text} gives for probabilities, and without softmax these are any numbers"
        yield _activated(facts, file, layer, given, "softmax", message)
    elif loss in _OF_TWO and activation in _UNBOUNDED and isinstance(count, int):
        message = f"{loss} takes what {text} gives for a probability, and without sigmoid it is any number"
        yield _activated(facts, file, layer, given, "sigmoid", message)


def _activated(
    facts: Facts, file: str, layer: ast.Call, given: ast.expr | None, activation: str, message: str
) -> Finding:
    own = pastes.source(facts, file)
    if given is not None:
        edit = pastes.replaced(facts, file, {given: f'"{activation}"'})
    else:
        edit = pastes.replaced(facts, file, {layer: own.with_argument(layer, f'activation="{activation}"')})
    return Finding(
        NAMES[0], "warning", None, (), message, pastes.written(edit), file, layer.lineno, confidence="likely"
    )


def _last_layer(scope: Sequence[ast.AST], model: str, line: int) -> ast.Call | None:
    """The Dense layer that gives a model's output, as far as the lines of one scope say."""
    found: ast.expr | None = None
    made: dict[str, ast.expr] = {}
    for one in scope:
        if getattr(one, "lineno", 0) > line:
            break
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            name, value = one.targets[0].id, one.value
            if name == model:
                found = _output(value, made) if isinstance(value, ast.Call) else None
            made[name] = value
        elif isinstance(one, ast.Call) and ast.unparse(one.func) == f"{model}.add" and one.args:
            found = one.args[0]
    return found if isinstance(found, ast.Call) and pastes.last_name(found.func) == "Dense" else None


def _output(value: ast.Call, made: dict[str, ast.expr]) -> ast.expr | None:
    """The layer that ends `Sequential([...])`, or makes the outputs of `Model(inputs, outputs)`."""
    kind = pastes.last_name(value.func)
    if kind not in _MODELS:
        return None
    if kind == "Sequential":
        layers = value.args[0] if value.args else None
        return layers.elts[-1] if isinstance(layers, ast.List) and layers.elts else None
    outputs = pastes.argument(value, 1, "outputs")
    called = made.get(outputs.id) if isinstance(outputs, ast.Name) else outputs
    return called.func if isinstance(called, ast.Call) and isinstance(called.func, ast.Call) else None
