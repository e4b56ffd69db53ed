"""A `functools.partial` or a lambda that a layer is given, and a model that is saved, copied or loaded.

Keras writes a function by its name. A partial has none; a lambda is written as bytes of its code, which no
`activations.get` and the like take back (keras/src/saving/serialization_lib.py).
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, keras_name, of_package

RULE = "saved-classes"
_PARTIAL = "Cannot serialize object functools.partial("
_LAMBDA = re.compile(
    r"Could not interpret (activation|regularizer|initializer|constraint)\b[^{]* identifier: "
    r"\{(?:'class_name': '__lambda__'|'value': \[')"
)
_GIVEN = {"activation": "x", "regularizer": "w", "initializer": "shape, dtype=None", "constraint": "w",
          "loss": "y_true, y_pred", "metrics": "y_true, y_pred"}  # fmt: skip
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
_PASSED = {"initializer": "shape, dtype=dtype"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what Keras wrote, or was to write, is a function without a name."""
    spot = situation.last
    found = _LAMBDA.search(situation.message)
    if spot is None or not (found or _PARTIAL in situation.message):
        return None
    for file, source in situation.sources():
        if found is not None:
            every = [(one, kind) for one in ast.walk(source.tree) if isinstance(one, ast.Lambda)
                     if (kind := _kind(source, one)) == found[1]]  # fmt: skip
            if every:
                first = min((one for one, _ in every), key=lambda one: one.lineno)
                return _of_lambda(spot, file, source, first, found[1], len(every) == 1)
        else:
            partial = _partial(situation)
            own = [one for one in _partials(source) if partial is not None and _is(one, partial, spot)]
            if len(own) == 1:
                return _of_partial(spot, file, source, own[0])
    return None


def _partial(situation: Situation) -> Any:
    """The partial that Keras was to write."""
    for one in reversed(frames(situation.inner.__traceback__)):
        found = one.f_locals.get("obj")
        if type(found) is functools.partial:
            return found
    return None


def _partials(source: Source) -> Iterator[ast.Call]:
    known = imports(source)
    for one in calls(source.tree):
        first, _, rest = dotted(one.func).partition(".")
        if one.args and f"{known.get(first, '')}.{rest}".strip(".") == "functools.partial":
            yield one


def _is(call: ast.Call, partial: Any, spot: Spot) -> bool:
    given = of_package(call.args[0], spot)
    same = given is partial.func if given is not None else (
        dotted(call.args[0]).rpartition(".")[2] == getattr(partial.func, "__name__", "")
    )  # fmt: skip
    return same and [one.arg for one in call.keywords] == list(partial.keywords) and len(call.args) == (
        len(partial.args) + 1
    )  # fmt: skip


def _kind(source: Source, node: ast.expr) -> str:
    """What a layer takes it as, itself or by the one name that it has: "activation"; "" where that is not seen."""
    target = _target(source, node)
    given = [node] if target is None else [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Name) and one.id == target.id and isinstance(one.ctx, ast.Load)
    ]  # fmt: skip
    for one in given:
        parent = source.parent(one)
        parent = source.parent(parent) if isinstance(parent, ast.List) else parent
        if isinstance(parent, ast.keyword):
            kind = (parent.arg or "").rpartition("_")[2]
            if kind in _GIVEN:
                return kind
        if isinstance(parent, ast.Call) and one is not parent.func and dotted(parent.func).endswith("Activation"):
            return "activation"
    return ""


def _of_its_own(source: Source, node: ast.expr) -> list[str]:
    """What it reads that a function or a loop around it sets: another value each time, and one registered name."""
    around = [one for one in source.around(node) if isinstance(one, _SCOPES)]
    own = {id(one) for one in ast.walk(node)}
    changing: set[str] = set()
    for one in around:
        inside = [part for part in ast.walk(one) if id(part) not in own]
        changing |= {part.id for part in inside if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        changing |= {part.arg for part in inside if isinstance(part, ast.arg)}
    return [name for name in dict.fromkeys(names(node)) if name in changing]


def _target(source: Source, node: ast.expr) -> ast.Name | None:
    parent = source.parent(node)
    if isinstance(parent, ast.Assign) and parent.value is node and len(parent.targets) == 1:
        return parent.targets[0] if isinstance(parent.targets[0], ast.Name) else None
    return None


def _of_partial(spot: Spot, file: str, source: Source, call: ast.Call) -> Explanation:
    text, kind = source.text, _kind(source, call)
    function, *others = (text(one) for one in call.args)
    words = [f"{one.arg}={text(one.value)}" for one in call.keywords]
    given = ", ".join([*others, _PASSED.get(kind, _GIVEN.get(kind, "")), *words])
    cause = (
        f"`{short(text(call), 40)}` is given to Keras, which writes a function into a model's config by its name, "
        "and a partial has none. A function of yours that is registered has one, for saving and for loading."
    )
    new = (_GIVEN.get(kind, ""), f"{function}({given})")
    edit = _named(spot, file, source, call, function.rpartition(".")[2], new) if kind else None
    return _told(file, source, call, cause, edit)


def _of_lambda(spot: Spot, file: str, source: Source, node: ast.Lambda, kind: str, sure: bool) -> Explanation:
    body = source.text(node.body)
    body = ast.unparse(node.body) if "\n" in body else body
    cause = (
        f"`{short(source.text(node), 40)}` is given to Keras, which writes a lambda as bytes of its code, and takes "
        f"none back as {'an' if kind[0] in 'ai' else 'a'} {kind}. A function of yours that is registered is found by "
        "its name."
    )
    told = _told(file, source, node, cause, _named(spot, file, source, node, kind, (ast.unparse(node.args), body)))
    return told if sure else dataclasses.replace(told, confidence="likely")


def _told(file: str, source: Source, node: ast.expr, cause: str, edit: Edit | None) -> Explanation:
    advice = "" if edit else "Write it as a function with a name, under @keras.utils.register_keras_serializable()."
    own = _of_its_own(source, node)
    if own:
        kept = short(" and ".join(own), 30)
        advice = f"Keep {kept} in the get_config of a registered class: under one name there is one function."
    return Explanation(RULE, file, node.lineno, cause, edit, advice)


def _named(
    spot: Spot, file: str, source: Source, node: ast.expr, base: str, function: tuple[str, str]
) -> Edit | None:  # fmt: skip
    """The lines of its statement, with a function of a name above it or in its place."""
    statement = next((one for one in source.around(node) if isinstance(one, ast.stmt)), None)
    target = _target(source, node)
    if statement is None or hasattr(statement, "body"):
        return None
    if _of_its_own(source, node):
        return None
    first, last = source.span(statement)
    blanks = indent_of(source.lines[first - 1])
    taken = {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}
    taken |= {one.name for one in ast.walk(source.tree) if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
    fresh = (f"own_{base}", *(f"own_{base}_{number}" for number in range(2, 20)))
    name = target.id if target is not None else next(one for one in fresh if one not in taken)
    lines = [
        f"{blanks}@{keras_name(spot)}.utils.register_keras_serializable()",
        f"{blanks}def {name}({function[0]}):",
        f"{blanks}    return {function[1]}",
    ]
    if target is None:
        lines += source.spliced({node: name}, first, last)
    return Edit(file, first, last, tuple(lines))
