"""Functions of the user's that Keras calls while a step is traced, beside those of layers, losses and metrics.

Constraints, learning rates and `update_step` are called as an optimizer applies gradients, regularizers as the losses
of a model are asked for, and activations by layers.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts

_OPTIMIZERS = ("Optimizer", "SGD", "Adam", "AdamW", "Adamax", "Nadam", "RMSprop", "Adagrad", "Adadelta", "Ftrl", "Lion")
_BASES = {"Constraint": "__call__", "LearningRateSchedule": "__call__", "Regularizer": "__call__"}
"""Kinds of Keras' classes, and the method of theirs that Keras calls."""
_WORDS = ("constraint", "learning_rate", "regularizer", "activation")
"""How the arguments end that Keras is given such a function by."""
_APPLIES = {"apply_gradients", "apply", "minimize"}
"""Methods of an optimizer's that call constraints and learning rates."""
_Found = tuple[str, ast.FunctionDef]


def callees(inside: list[ast.AST], applied: bool = True, lost: bool = True, layers: bool = True) -> Iterator[_Found]:
    """Name and definition of each such function.

    Args:
      inside: The nodes of what is looked at: definitions, and the calls that are given them.
      applied: Whether gradients are applied there.
      lost: Whether the losses of regularizers are asked for.
      layers: Whether layers are called.
    """
    wanted = [name for name, one in zip(_WORDS, (applied, applied, lost, layers)) if one]
    calls = [one for one in inside if isinstance(one, ast.Call)]
    called = {ast.unparse(one.func) for one in calls}
    given = [(word.arg or "", word.value) for one in calls for word in one.keywords]
    given += [("learning_rate", one.args[0]) for one in calls if pastes.last_name(one.func) in _OPTIMIZERS and one.args]
    given += [("activation", one.args[0]) for one in calls if pastes.last_name(one.func) == "Activation" and one.args]
    values = [value for name, value in given if name.endswith(tuple(wanted))]
    named = {one.id for one in values if isinstance(one, ast.Name)}
    made = {ast.unparse(one.func) for one in values if isinstance(one, ast.Call)}
    for one in inside:
        if isinstance(one, ast.FunctionDef) and one.name in named:
            yield one.name, one
        elif isinstance(one, ast.ClassDef) and one.name in called:
            method = _method(one, applied, lost)
            method = "__call__" if not one.bases and one.name in made else method
            yield from ((f"{one.name}.{part.name}", part) for part in one.body
                        if isinstance(part, ast.FunctionDef) and part.name == method)  # fmt: skip


def _method(holder: ast.ClassDef, applied: bool, lost: bool) -> str:
    """The method of a class of a kind of Keras' that is called; "" for other classes."""
    kinds = [ast.unparse(base).rpartition(".")[2] for base in holder.bases]
    if applied and any(one in _OPTIMIZERS for one in kinds):
        return "update_step"
    return next((_BASES[one] for one in kinds if one in _BASES and (lost if one == "Regularizer" else applied)), "")


def in_own_graphs(facts: Facts) -> Iterator[tuple[str, list[Any], str, ast.FunctionDef, int, str]]:
    """What Keras calls while functions of the user's are traced that apply gradients, or ask for losses.

    Yields:
      File, what is seen from there, name and definition of what Keras calls, the runs, and the name of the function.
    """
    rows = facts.reader.rows("SELECT function, count(*) FROM run WHERE kind = 'forward' GROUP BY function")
    runs, traces = dict(rows), Counter(one.function for one in facts.traces if one.error is None)
    for number, function in facts.functions.items():
        found = facts.definition(function.file, function.line) if function.origin == "user" else None
        few = runs.get(number, 0) <= 2 * traces[number]
        if function.kind != "tf.function" or few or found is None or function.file is None:
            continue
        tree = facts.tree(function.file)
        asked = {one.attr for one in code.own_nodes(found) if isinstance(one, ast.Attribute)}
        applied = not asked.isdisjoint(_APPLIES)
        scopes = [tree, *pastes.around(tree, found.lineno, ast.FunctionDef)]
        inside = [one for scope in scopes for one in nodes_of(scope)]
        for name, one in callees(inside, applied, "losses" in asked, layers=False):
            yield function.file, scopes, name, one, runs[number], function.name.rpartition(".")[2]


def nodes_of(scope: Any) -> Iterator[ast.AST]:
    """Nodes of a file or function, without those inside of functions and classes defined in it.

    Args:
      scope: The tree of a file, or a function's definition.
    """
    todo: list[ast.AST] = list(scope.body)
    while todo:
        one = todo.pop()
        yield one
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            todo += ast.iter_child_nodes(one)
