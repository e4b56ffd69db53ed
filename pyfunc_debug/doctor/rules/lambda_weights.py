"""A layer with weights that the function of a Keras Lambda calls: the model does not know it, and does not train it.

Keras finds the variables of a model in the layers that the model holds; a Lambda holds a function, and does not look
into it (keras/src/layers/core/lambda_layer.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import dotted, short
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
            for layer, made in _called(tree, scopes, function):
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


def _called(tree: ast.Module, scopes: list[_Scope], function: Definition) -> Iterator[tuple[str, ast.Assign]]:
    """The layers that a function calls, made outside of it, and used only in functions of Lambda layers.

    A layer that is the function itself, `Lambda(encoder)`, is an attribute of the Lambda, and the model has it.
    """
    local = code.local_names(function) - {"self"}
    asked = [one.func for one in pastes.walk(function, ast.Call)]
    named = [one for one in asked if _is_name(one) and dotted(one).partition(".")[0] not in local]
    functions = [
        _function(scopes, one.args[0]) for one in pastes.walk(tree, ast.Call)
        if pastes.last_name(one.func) == "Lambda" and one.args
    ]  # fmt: skip
    inside = {id(part) for one in functions if one is not None for part in ast.walk(one)}
    for name in dict.fromkeys(map(dotted, named)):
        nodes = ast.walk(tree) if "." in name else (one for scope in scopes for one in _own(scope))
        made = [one for one in nodes if isinstance(one, ast.Assign) and name in map(dotted, one.targets)]
        value = made[0].value if len(made) == 1 else None
        if not isinstance(value, ast.Call) or not _has_weights(tree, value):
            continue
        used = [
            one for one in ast.walk(tree) if _is_name(one) and dotted(one) == name
            and isinstance(getattr(one, "ctx", None), ast.Load)
        ]  # fmt: skip
        shown = {id(one.value) for one in pastes.walk(tree, ast.Attribute) if one.attr in ("summary", "name")}
        if all(id(one) in inside | shown for one in used):
            yield name, made[0]


def _is_name(node: ast.AST) -> bool:
    """Whether a node is `encoder`, or `self.encoder`."""
    attribute = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return attribute or isinstance(node, ast.Name)


def _has_weights(tree: ast.Module, value: ast.Call) -> bool:
    """Whether a call makes a layer with weights, by its class or by a function of the file that makes one."""
    if pastes.last_name(value.func) in _WITH_WEIGHTS:
        return True
    makers = [one for one in pastes.walk(tree, ast.FunctionDef) if one.name == pastes.last_name(value.func)]
    if len(makers) != 1:
        return False
    given = [one.value for one in pastes.walk(makers[0], ast.Return)]
    made = {target: one.value for one in pastes.walk(makers[0], ast.Assign) for target in map(dotted, one.targets)}
    calls = [made.get(dotted(one)) if isinstance(one, ast.Name) else one for one in given]
    classes = [pastes.last_name(one.func) if isinstance(one, ast.Call) else "" for one in calls]
    return bool(classes) and set(classes) <= {*_WITH_WEIGHTS, "Model"}


def _finding(facts: Facts, file: str, call: ast.Call, function: Definition, layer: str, made: ast.Assign) -> Finding:
    name = getattr(function, "name", "its function")
    return Finding(
        NAMES[0], "warning", None, (),
        f"{layer} (`{short(pastes.text_of(facts, file, made.value), 40)}`) is not trained: a Lambda layer calls it in "
        f"{name}, and the model has the variables of its own layers only. Nor are they saved with it",
        _fix(facts, file, call, function, layer)
        or f"call {layer} without the Lambda, or in a layer of your own that makes it in __init__",
        file, call.lineno, evidence=(f"line {made.lineno}: {facts.line(file, made.lineno)}",), confidence="likely",
    )  # fmt: skip


def _fix(facts: Facts, file: str, call: ast.Call, function: Definition, layer: str) -> str:
    """The function called with Keras' tensors themselves, where all that it does is to call layers and to compute."""
    outer = pastes.source(facts, file).parent(next(
        one for one in pastes.walk(pastes.source(facts, file).tree, ast.Call)
        if (one.lineno, one.col_offset, one.end_col_offset) == (call.lineno, call.col_offset, call.end_col_offset)
    ))  # fmt: skip
    if not isinstance(outer, ast.Call) or len(outer.args) != 1 or outer.keywords or len(call.args) != 1:
        return ""
    called = [one.func for one in pastes.walk(function, ast.Call)]
    if any(not _is_name(one) for one in called) or (call.keywords and not _unasked(facts, file, call)):
        return ""
    text = pastes.text_of(facts, file, call.args[0])
    body = function.body if isinstance(function, ast.Lambda) else None
    if isinstance(body, ast.Call) and [dotted(one) for one in body.args] == [one.arg for one in function.args.args]:
        text = layer if dotted(body.func) == layer and not body.keywords else f"({text})"
    elif isinstance(call.args[0], ast.Lambda):
        text = f"({text})"
    return pastes.all_replaced(facts, file, {outer: f"{text}({pastes.text_of(facts, file, outer.args[0])})"})


def _unasked(facts: Facts, file: str, call: ast.Call) -> bool:
    """Whether a Lambda has a name only, which nothing asks for, or the models name their outputs themselves."""
    tree = pastes.source(facts, file).tree
    models = [one for one in pastes.walk(tree, ast.Call) if pastes.last_name(one.func) == "Model"]
    given = [word.value for one in models for word in one.keywords if word.arg == "outputs"]
    name = call.keywords[0].value if [word.arg for word in call.keywords] == ["name"] else None
    if not isinstance(name, ast.Constant):
        return False
    names = {id(one.value) for one in pastes.walk(tree, ast.keyword) if one.arg == "name"}
    asked = [one for one in pastes.walk(tree, ast.Constant) if one.value == name.value and id(one) not in names]
    return not asked or (bool(given) and all(isinstance(one, ast.Dict) for one in given))
