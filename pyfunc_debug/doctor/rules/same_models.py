"""A name that is taken for a copy of a model or of its weights, and is the model itself, or has other weights."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, is_tape
from pyfunc_debug.records import Finding

NAMES = ("no-copy",)
_WEIGHTS = ("weights", "variables", "trainable_weights", "trainable_variables")
_TRAINS = ("fit", "train_on_batch", "apply_gradients", "minimize")
_ASKS = ("predict", "predict_on_batch", "save", "get_weights")
_SETS = ("set_weights", "load_weights", "fit", "train_on_batch", "build")
_COMPARES = ("allclose", "array_equal", "isclose", "equal", "subtract", "assert_allclose", "assert_array_equal")
_WORDS = ("weights", "variables", "clone_model", ".fit(")
_LOOPS = (ast.For, ast.While)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a statement."""
    for file in facts.files:
        own = pastes.source(facts, file)
        if not any(word in line for line in own.code for word in _WORDS):
            continue
        yield from _targets(facts, file, own)
        functions = pastes.walk(own.tree, ast.FunctionDef)
        for nodes in ([*code.own_nodes(own.tree)], *([*code.own_nodes(one)] for one in functions)):
            for statement in (one for one in nodes if isinstance(one, ast.Assign) and len(one.targets) == 1):
                found = (
                    _kept_model(facts, file, own, nodes, statement)
                    or _kept_weights(facts, file, own, nodes, statement)
                    or _clone(facts, file, own, nodes, statement)
                )
                if found is not None:
                    yield found


def _targets(facts: Facts, file: str, own: Source) -> Iterator[Finding]:
    """`target = model`, whose weights are copied to it later."""
    for call in pastes.walk(own.tree, ast.Call):
        given = call.args[0] if pastes.last_name(call.func) == "set_weights" and len(call.args) == 1 else None
        if not isinstance(given, ast.Call) or pastes.last_name(given.func) != "get_weights":
            continue
        name, model = (dotted(one.func).rpartition(".")[0] for one in (call, given))
        made = [
            one for one in pastes.walk(own.tree, ast.Assign) if name and name in map(dotted, one.targets)
        ]  # fmt: skip
        if len(made) != 1 or dotted(made[0].value) != model or name == model:
            continue
        yield Finding(
            NAMES[0], "error", None, (),
            f"{name} is {model} itself: {own.text(made[0])} gives the model another name and makes no copy, so that "
            f"each step that trains {model} changes {name}, too, and line {call.lineno} copies weights to themselves",
            _cloned(facts, file, own, made[0], name, model), file, made[0].lineno,
            evidence=(f"line {call.lineno}: {facts.line(file, call.lineno)}",), confidence="likely",
        )  # fmt: skip


def _cloned(facts: Facts, file: str, own: Source, made: ast.Assign, name: str, model: str) -> str:
    """The lines with a model of its own; a hint where the program's own class makes it."""
    bases = [ast.unparse(base) for one in pastes.walk(own.tree, ast.ClassDef) for base in one.bases]
    tf = pastes.module(facts, file, "tensorflow")
    if any("Model" in one for one in bases):
        return f"make {name} as {model} is made, call both once, and then {name}.set_weights({model}.get_weights())"
    keras = f"{tf}.keras" if tf is not None else pastes.module(facts, file, "keras") or "keras"
    texts = (f"{name} = {keras}.models.clone_model({model})", f"{name}.set_weights({model}.get_weights())")
    lines = tuple(f"{indent_of(own.lines[made.lineno - 1])}{one}" for one in texts)
    return pastes.written(Edit(file, made.lineno, made.end_lineno or made.lineno, lines))


def _kept_model(facts: Facts, file: str, own: Source, nodes: Sequence[ast.AST], made: ast.Assign) -> Finding | None:
    """`best = model` in a loop that goes on to train the model, and `best` asked behind it."""
    name, model = dotted(made.targets[0]), dotted(made.value)
    loop = next((one for one in own.around(made) if isinstance(one, _LOOPS)), None)
    if not name or not model or loop is None or not isinstance(own.parent(made), ast.If):
        return None
    trains = [one for one in _calls(nodes, _TRAINS) if _of(one) == model and loop in own.around(one)]
    end = loop.end_lineno or loop.lineno
    asked = [one for one in _calls(nodes, (*_ASKS, "evaluate", "call")) if _of(one) == name and one.lineno > end]
    made_again = any(
        isinstance(one, ast.Assign) and one is not made and dotted(one.targets[0]) == model and loop in own.around(one)
        for one in nodes
    )
    if not trains or not asked or made_again:
        return None
    evaluated = any(pastes.last_name(one.func) == "evaluate" for one in asked)
    words = f"keep {model}.get_weights() there, and give it to {model}.set_weights(...) behind the loop"
    return Finding(
        NAMES[0], "error", None, (),
        f"{own.text(made)} gives the model another name and makes no copy: line {trains[0].lineno} goes on to train "
        f"it, and behind the loop {name} has the weights of the last pass",
        words if evaluated else _cloned(facts, file, own, made, name, model), file, made.lineno,
        evidence=(f"line {asked[0].lineno}: {facts.line(file, asked[0].lineno)}",), confidence="likely",
    )  # fmt: skip


def _kept_weights(facts: Facts, file: str, own: Source, nodes: Sequence[ast.AST], made: ast.Assign) -> Finding | None:
    """`before = model.weights`, which is compared with, or given back, after a training."""
    name, value = dotted(made.targets[0]), made.value
    whole = value.value if isinstance(value, ast.Subscript) else value
    if not name or not isinstance(whole, ast.Attribute) or whole.attr not in _WEIGHTS:
        return None
    model = (
        dotted(whole.value).partition(".")[0] if not dotted(whole.value).startswith("self.") else dotted(whole.value)
    )
    loop = next((one for one in own.around(made) if isinstance(one, _LOOPS)), None)
    trains = [
        one.lineno for one in _calls(nodes, _TRAINS)
        if (_of(one) == model or pastes.last_name(one.func) == "apply_gradients")
        and (one.lineno > made.lineno or (loop is not None and loop in own.around(one)))
    ]  # fmt: skip
    end = (loop.end_lineno or 0) if loop is not None else 0
    reads = [one for one in nodes if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)]
    later = [one for one in reads if trains and one.lineno > max(min(trains), made.lineno, end)]
    same = {
        one.targets[0].id for one in nodes
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and one is not made
        and ast.unparse(one.value) == ast.unparse(value)
    }  # fmt: skip
    uses = [how for one in later if (how := _use(own, one, {model, *same}))]
    if not uses or any(_is_trained(own, one) for one in reads):
        return None
    tf = pastes.module(facts, file, "tensorflow") or "tf"
    text = own.text(value)
    new = f"[{tf}.identity(v) for v in {text}]" if whole is value else f"{tf}.identity({text})"
    return Finding(
        NAMES[0], "error", None, (),
        f"{name} holds the variables themselves and not what they were at line {made.lineno}: line {trains[0]} trains "
        f"them, and line {later[0].lineno} finds the new numbers on both sides",
        pastes.all_replaced(facts, file, {value: new}), file, made.lineno,
        evidence=(f"line {later[0].lineno}: {facts.line(file, later[0].lineno)}",), confidence="likely",
    )  # fmt: skip


def _use(own: Source, name: ast.Name, others: set[str]) -> bool:
    """Whether a name is compared with, subtracted from, or given back to the variables that it holds.

    Args:
      own: The source.
      name: The name, where it is read.
      others: The model, and other names of these variables.
    """
    around = list(own.around(name))
    if any(is_tape(part) for one in around if isinstance(one, ast.With) for part in one.items):
        return False
    for one in around:
        called = pastes.last_name(one.func) if isinstance(one, ast.Call) else ""
        subtracts = isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub)
        if isinstance(one, ast.Compare) or subtracts or called in ("set_weights", "zip", *_COMPARES):
            return any(dotted(part) in others for part in ast.walk(one))
        if isinstance(one, ast.stmt):
            break
    return False


def _is_trained(own: Source, name: ast.Name) -> bool:
    """Whether a name is what a tape is asked for, or an optimizer is given."""
    calls = [pastes.last_name(one.func) for one in own.around(name) if isinstance(one, ast.Call)]
    return bool({"gradient", "apply_gradients", "minimize", "build"} & set(calls))


def _clone(facts: Facts, file: str, own: Source, nodes: Sequence[ast.AST], made: ast.Assign) -> Finding | None:
    """`copy = clone_model(model)` of a trained model, which is asked with the weights that it began with."""
    name, call = dotted(made.targets[0]), made.value
    if not isinstance(call, ast.Call) or pastes.last_name(call.func) != "clone_model" or len(call.args) != 1:
        return None
    model = dotted(call.args[0])
    trained = [one for one in _calls(nodes, _TRAINS) if _of(one) == model and one.lineno < made.lineno]
    every = list(pastes.walk(own.tree, ast.Call))
    asked = [one for one in _calls(nodes, _ASKS) if _of(one) == name and one.lineno > made.lineno]
    given = [one for one in every if _of(one) == name and pastes.last_name(one.func) in _SETS]
    handed = [one for one in every if name in map(dotted, one.args)]
    if not name or not trained or not asked or given or handed or "assign(" in "\n".join(own.code):
        return None
    return Finding(
        NAMES[0], "error", None, (),
        f"clone_model makes a model with the layers of {model} and with weights of its own, drawn again: {name} has "
        f"nothing of what line {trained[0].lineno} trained",
        pastes.written(pastes.behind(file, made, f"{name}.set_weights({model}.get_weights())")), file, made.lineno,
        evidence=(f"line {asked[0].lineno}: {facts.line(file, asked[0].lineno)}",), confidence="likely",
    )  # fmt: skip


def _calls(nodes: Sequence[ast.AST], methods: Sequence[str]) -> list[ast.Call]:
    """The calls of methods of some names among nodes."""
    calls = [one for one in nodes if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
    return [one for one in calls if pastes.last_name(one.func) in methods]


def _of(call: ast.Call) -> str:
    """`model` of `model.fit(...)`."""
    return dotted(call.func).rpartition(".")[0]
