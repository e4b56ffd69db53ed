"""What iterators are asked for and have not: Python's `it.next()`, Keras' image iterators `it.classes`, `it.samples`.

Python 2's and Keras 2's iterators had `next`. What `flow_from_directory` knows of a folder, `flow(x, y)` does not.
"""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_keras_class, lookup

RULE = "argument"
_OF_FILES = ("filenames", "filepaths", "class_indices", "directory")
_COUNTS = {"samples": "n", "nb_sample": "n", "N": "n"}
_LABELS = ("classes", "labels")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line asks an iterator for `next` or an image iterator for what a folder has."""
    spot, statement, error = situation.last, situation.statement, situation.inner
    if spot is None or statement is None or situation.body or not isinstance(error, AttributeError):
        return None
    asked, name = getattr(error, "obj", None), str(getattr(error, "name", None) or "")
    found = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute) and one.attr == name]
    if asked is None or not found:
        return None
    if name == "next" and _gives_next(type(asked)):
        return _next(spot, [one for one in found if len(found) == 1 or _gives_next(type(lookup(one.value, spot)))])
    if len(found) != 1:
        return None
    keras = type(asked).__name__ == "NumpyArrayIterator" and is_keras_class(type(asked))
    return _of_arrays(spot, found[0], name, vars(asked)) if keras else None


def _gives_next(kind: type) -> bool:
    """Whether Python's `next` takes objects of a class."""
    return any("__next__" in vars(one) for one in kind.__mro__)


def _next(spot: Spot, nodes: list[ast.Attribute]) -> Explanation | None:
    """`it.next()` as `next(it)`; of several iterators in one statement, all."""
    if not nodes:
        return None
    pieces: dict[ast.expr, str] = {}
    for node in nodes:
        owner, call = spot.source.text(node.value), spot.source.parent(node)
        called = isinstance(call, ast.Call) and call.func is node
        whole: ast.expr = call if isinstance(call, ast.Call) and called else node
        pieces[whole] = f"next({owner})" if called else f"lambda: next({owner})"
    names = " and ".join(dict.fromkeys(short(spot.source.text(one.value), 40) for one in nodes))
    has, them = ("has", "it") if len({spot.source.text(one.value) for one in nodes}) == 1 else ("have", "them")
    cause = f"{names} {has} no method next, as iterators of Python 2 had: Python's function next takes {them}."
    taken = any(isinstance(one, ast.Call) and (one.args or one.keywords) for one in pieces)
    edit = None if taken else edit_of(spot.file, spot.source.replaced(pieces))
    new = next(iter(pieces.values()))
    return Explanation(RULE, spot.file, nodes[0].lineno, cause, edit, "" if edit else f"Write {short(new, 60)}.")


def _of_arrays(spot: Spot, node: ast.Attribute, name: str, held: dict[str, Any]) -> Explanation | None:
    """`flow(x, y)` asked for what only `flow_from_directory` has."""
    owner = spot.source.text(node.value)
    labels = held.get("y")
    lacks = f"{short(owner, 30)} is of flow, and has no {name}, as those of flow_from_directory have"
    if name in _COUNTS:
        return _told(spot, node, f"{lacks}: it calls it n.", f"{owner}.n")
    if name in _LABELS and labels is not None:
        hot = len(labels.shape) > 1 and labels.shape[-1] > 1
        cause = f"{lacks}: {short(owner, 30)}.y are its labels{', one-hot' * hot}, in the order of the array."
        if held.get("shuffle"):
            cause += " Its batches come in another: for predictions to compare give its flow shuffle=False."
        return _told(spot, node, cause, f"{owner}.y" + ".argmax(axis=-1)" * hot)
    if name == "num_classes" and labels is not None:
        hot = len(labels.shape) > 1 and labels.shape[-1] > 1
        np = alias(spot, "numpy")
        new = f"{owner}.y.shape[-1]" if hot else f"len({np}.unique({owner}.y))"
        return _told(spot, node, f"{lacks}: its labels, {short(owner, 30)}.y, tell them.", new)
    if name in ("image_shape", "target_size"):
        new = f"{owner}.x.shape[1:{'' if name == 'image_shape' else '3'}]"
        return _told(spot, node, f"{lacks}: its images are {short(owner, 30)}.x.", new)
    if name in _OF_FILES or name in _LABELS:
        cause = f"{lacks}: it was given arrays, and knows no files and no names of classes."
        if name in _LABELS:
            cause = f"{lacks}: it was given no labels."
        advice = "Keep a list of names beside the arrays: row i of the images belongs to names[i]."
        if name == "class_indices":
            advice = "Write them out as you numbered them: class_indices = {name: number for each class}."
        elif name in _LABELS:
            advice = "Give flow the labels as its second argument."
        return Explanation(RULE, spot.file, node.lineno, cause, None, advice)
    return None


def _told(spot: Spot, node: ast.expr, cause: str, new: str) -> Explanation:
    edit = edit_of(spot.file, spot.source.replaced({node: new}))
    return Explanation(RULE, spot.file, node.lineno, cause, edit, "" if edit else f"Write {new}.")
