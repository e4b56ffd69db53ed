"""Functions that are made in a loop for Keras, read the loop's names, and are called when the loop is over."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.rules.ran_out import STEPS

_LAYERS = {"Lambda", "Activation"}
_WORDS = ("function", "activation", "regularizer", "constraint", "initializer")
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)
_LOOPS = (*_COMPREHENSIONS, ast.For)
_Function = ast.FunctionDef | ast.Lambda
_PREDICTS = {"one_step_on_data_distributed", "multi_step_on_data"}


def made_in_loops(facts: Facts) -> Iterator[tuple[str, _Function, str, int, list[str]]]:
    """The functions of files whose models ran behind such a loop.

    Yields:
      File, function, what it is for ("Lambda layers"), the loop's line, and the loop's names that it reads.
    """
    numbers = [one.id for one in facts.functions.values() if one.name.rpartition(".")[2] in STEPS | _PREDICTS]
    marks = ", ".join("?" * len(numbers))
    rows = facts.reader.rows(
        "SELECT DISTINCT s.frames FROM run r JOIN stack s ON s.id = r.site WHERE r.kind = 'forward' "
        f"AND r.function IN ({marks})", numbers,
    ) if numbers else []  # fmt: skip
    stacks = [[(file, line) for file, line, *_ in json.loads(frames)] for (frames,) in rows]
    stacks += [[call] for call in _called(facts)]
    for file in dict.fromkeys(file for frames in stacks for file, _ in frames):
        tree = facts.tree(file)
        for function, what in _given(tree):
            if tree is None or _called_at_once(facts, file, tree, function):
                continue
            for loop, read in loops_read(tree, function):
                lines = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1)
                inside = any(one == file and line in lines for frames in stacks for one, line in frames)
                if not inside:
                    yield file, function, what, loop.lineno, read
                    break


def loops_read(tree: ast.Module, function: _Function) -> Iterator[tuple[ast.expr | ast.For, list[str]]]:
    """The loops and comprehensions around a function that make it several times, and their names that it reads."""
    around: list[ast.expr | ast.For] = []
    for kind in _LOOPS:
        around += pastes.around(tree, function.lineno, kind)
    for loop in around:
        given = getattr(loop, "iter", None)
        once = isinstance(given, (ast.List, ast.Tuple)) and len(given.elts) < 2
        read = [] if once else _read(loop, function)
        if read:
            yield loop, read


def _called(facts: Facts) -> Iterator[tuple[str, int]]:
    """The lines that call a model of Keras' by its name, in a program that has ended well: `y = model(x)`."""
    ended = facts.meta.get("ended")
    if not isinstance(ended, dict) or ended.get("error") is not None:
        return
    for file in facts.files:
        tree = facts.tree(file)
        made = {"Model", "Sequential"} | {one.name for one in pastes.walk(tree, ast.ClassDef) if _is_model(one)}
        made |= {
            one.name for one in pastes.walk(tree, ast.FunctionDef)
            if any(_makes(part.value, made) for part in ast.walk(one) if isinstance(part, ast.Return))
        }  # fmt: skip
        models = {
            ast.unparse(one.targets[0]) for one in pastes.walk(tree, ast.Assign)
            if len(one.targets) == 1 and _makes(one.value, made)
        }  # fmt: skip
        for call in pastes.walk(tree, ast.Call):
            if call.args and ast.unparse(call.func) in models:
                yield file, call.lineno


def _is_model(one: ast.ClassDef) -> bool:
    return any(pastes.last_name(base) == "Model" for base in one.bases)


def _makes(node: ast.expr | None, made: set[str]) -> bool:
    """Whether an expression calls a class or function that makes a model."""
    return isinstance(node, ast.Call) and pastes.last_name(node.func) in made


def _called_at_once(facts: Facts, file: str, tree: ast.Module, function: _Function) -> bool:
    """Whether a layer is made and called in the loop on what has values: no model holds it that runs later."""
    own = pastes.source(facts, file)
    layer = own.parent(function)
    call = own.parent(layer) if layer is not None else None
    if not isinstance(call, ast.Call) or call.func is not layer:
        return False
    around = pastes.around(tree, function.lineno, ast.FunctionDef)[-1:]
    inputs = any(pastes.last_name(one.func) == "Input" for one in pastes.walk(tree, ast.Call))
    return not inputs or any(one.name == "call" for one in around)


def _given(tree: ast.Module | None) -> Iterator[tuple[_Function, str]]:
    """The functions that Keras is given where a layer is made, and in `compile`: with what they are."""
    defined = {one.name: one for one in pastes.walk(tree, ast.FunctionDef)}
    twice = [one.name for one in pastes.walk(tree, ast.FunctionDef)]
    compiled: list[ast.expr] = []
    for call in pastes.walk(tree, ast.Call):
        name = pastes.last_name(call.func)
        values = [word.value for word in call.keywords if (word.arg or "").endswith(_WORDS)]
        values += call.args[:1] if name in _LAYERS else []
        for value in values if name[:1].isupper() else ():
            found = defined.get(value.id) if isinstance(value, ast.Name) and twice.count(value.id) == 1 else value
            if isinstance(found, (ast.FunctionDef, ast.Lambda)):
                yield found, f"{name} layers"
        if name == "compile":
            compiled += [word.value for word in call.keywords if word.arg in ("loss", "metrics")]
    held = {one.id for value in compiled for one in ast.walk(value) if isinstance(one, ast.Name)}
    makes = [one for value in compiled for one in ast.walk(value)]
    makes += [
        one.value for one in pastes.walk(tree, ast.Assign) if any(ast.unparse(each) in held for each in one.targets)
    ]
    for one in makes:
        element = one.value if isinstance(one, ast.DictComp) else getattr(one, "elt", None)
        if isinstance(element, ast.Lambda):
            yield element, "losses or metrics"
    for call in pastes.walk(tree, ast.Call):
        kept = isinstance(call.func, ast.Attribute) and call.func.attr == "append" and call.args
        if not kept or ast.unparse(call.func.value) not in held:  # type: ignore[attr-defined]
            continue
        value = call.args[0]
        found = defined.get(value.id) if isinstance(value, ast.Name) and twice.count(value.id) == 1 else value
        if isinstance(found, (ast.FunctionDef, ast.Lambda)):
            yield found, "losses or metrics"


def _read(loop: ast.AST, function: _Function) -> list[str]:
    """The names of a loop that a function in it takes from around itself, and that no function between binds."""
    inside = list(ast.walk(loop))
    if not any(one is function for one in inside):
        return []
    made = [one for one in inside if isinstance(one, (ast.FunctionDef, ast.Lambda)) and function in ast.walk(one)]
    if isinstance(loop, ast.For):
        bound = [part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)]
        todo: list[ast.AST] = list(loop.body)
        while todo:
            one = todo.pop(0)
            if isinstance(one, (ast.Assign, ast.AugAssign)) and not _is_constant(one.value):
                targets = one.targets if isinstance(one, ast.Assign) else [one.target]
                bound += [part.id for each in targets for part in ast.walk(each)
                          if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]  # fmt: skip
            if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                todo += [part for part in ast.iter_child_nodes(one) if isinstance(part, ast.stmt)]
    else:
        parts = getattr(loop, "generators", [])
        bound = [part.id for each in parts for part in ast.walk(each.target) if isinstance(part, ast.Name)]
    return [one for one in dict.fromkeys(bound) if all(code.reads(part, one) for part in made)]


def _is_constant(value: ast.expr) -> bool:
    """Whether an expression gives the same in each pass: nothing is read or called in it."""
    return not any(isinstance(one, (ast.Name, ast.Call)) for one in ast.walk(value))
