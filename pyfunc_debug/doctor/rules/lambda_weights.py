"""A layer with weights that the function of a Keras Lambda calls: the model does not know it, and does not train it.

Keras finds the variables of a model in the layers that the model holds; a Lambda holds a function, and does not look
into it (keras/src/layers/core/lambda_layer.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.rules.ran_out import STEPS
from pyfunc_debug.records import Finding

NAMES = ("untracked-layer",)
_WITH_WEIGHTS = {
    "Dense", "EinsumDense", "Conv1D", "Conv2D", "Conv3D", "Conv2DTranspose", "SeparableConv2D", "DepthwiseConv2D",
    "LSTM", "GRU", "SimpleRNN", "Bidirectional", "Embedding", "BatchNormalization", "LayerNormalization",
    "MultiHeadAttention", "PReLU", "Sequential",
}  # fmt: skip
_Scope = ast.Module | ast.FunctionDef


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a layer, where a model was trained by a line of the same file."""
    numbers = [one.id for one in facts.functions.values() if one.name.rpartition(".")[2] in STEPS]
    told: set[int] = set()
    for file in dict.fromkeys(file for number in numbers for file, _ in pastes.run_sites(facts, number)):
        tree = facts.tree(file)
        for call in [] if tree is None else pastes.walk(tree, ast.Call):
            if tree is None or pastes.last_name(call.func) != "Lambda" or not call.args:
                continue
            scopes: list[_Scope] = [tree, *pastes.around(tree, call.lineno, ast.FunctionDef)]
            function = _function(scopes, call.args[0])
            if function is None:
                continue
            for layer, made in _called(scopes, function):
                if made.lineno not in told:
                    told.add(made.lineno)
                    yield _finding(facts, file, call, function, layer, made)


def _own(scope: _Scope) -> list[ast.AST]:
    """Nodes of a file or function, without those inside of functions and classes defined in it."""
    found, todo = list[ast.AST](), list[ast.AST](scope.body)
    while todo:
        node = todo.pop(0)
        found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            todo[:0] = list(ast.iter_child_nodes(node))
    return found


def _function(scopes: list[_Scope], given: ast.expr) -> Definition | None:
    """What a Lambda layer was given, where it is defined in these scopes."""
    if isinstance(given, ast.Lambda):
        return given
    inside = [one for scope in scopes for one in _own(scope) if isinstance(one, ast.FunctionDef)]
    return next((one for one in inside if isinstance(given, ast.Name) and one.name == given.id), None)


def _called(scopes: list[_Scope], function: Definition) -> Iterator[tuple[str, ast.Assign]]:
    """The layers that a function calls, made outside of it, and used nowhere but there."""
    names = [
        one.func.id for one in ast.walk(function) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
        and one.func.id not in code.local_names(function)
    ]  # fmt: skip
    for name in dict.fromkeys(names):
        made = [
            one for scope in scopes for one in _own(scope) if isinstance(one, ast.Assign)
            and name in map(ast.unparse, one.targets)
        ]  # fmt: skip
        value = made[0].value if len(made) == 1 else None
        if not isinstance(value, ast.Call) or pastes.last_name(value.func) not in _WITH_WEIGHTS:
            continue
        used = [
            one for one in ast.walk(scopes[0]) if isinstance(one, ast.Name) and one.id == name
            and isinstance(one.ctx, ast.Load)
        ]  # fmt: skip
        inside = set(map(id, ast.walk(function)))
        if all(id(one) in inside for one in used):
            yield name, made[0]


def _finding(facts: Facts, file: str, call: ast.Call, function: Definition, layer: str, made: ast.Assign) -> Finding:
    name = getattr(function, "name", "its function")
    return Finding(
        NAMES[0], "warning", None, (),
        f"{layer} (`{short(pastes.text_of(facts, file, made.value), 40)}`) is not trained: a Lambda layer calls it in "
        f"{name}, and the model has the variables of its own layers only. Nor are they saved with it",
        _fix(facts, file, call, function) or f"call {layer} without the Lambda, or in a layer of your own that makes "
        "it in __init__",
        file, call.lineno, evidence=(f"line {made.lineno}: {facts.line(file, made.lineno)}",), confidence="likely",
    )  # fmt: skip


def _fix(facts: Facts, file: str, call: ast.Call, function: Definition) -> str:
    """The function called with Keras' tensors themselves, where all that it does is to call layers and to compute."""
    outer = pastes.source(facts, file).parent(next(
        one for one in pastes.walk(pastes.source(facts, file).tree, ast.Call)
        if (one.lineno, one.col_offset, one.end_col_offset) == (call.lineno, call.col_offset, call.end_col_offset)
    ))  # fmt: skip
    called = [one.func for one in pastes.walk(function, ast.Call)]
    if not isinstance(outer, ast.Call) or len(outer.args) != 1 or outer.keywords or len(call.args) != 1:
        return ""
    if any(not isinstance(one, ast.Name) for one in called):
        return ""
    text = pastes.text_of(facts, file, call.args[0])
    text = f"({text})" if isinstance(call.args[0], ast.Lambda) else text
    return pastes.all_replaced(facts, file, {outer: f"{text}({pastes.text_of(facts, file, outer.args[0])})"})
