"""Data that Keras' `fit` does not take: lists of rows, arrays of texts, and other iterators than generators."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, lookup, of_keras, shape_of_data
from pyfunc_debug.doctor.failures.reading.tables import is_array, is_table, valued

RULE = "generator"
_UNKNOWN = re.compile(r"^Unrecognized data type: ")
_AMBIGUOUS = re.compile(r"^Data cardinality is ambiguous")
_TEXTS = re.compile(r"^Invalid dtype: (?:str|object)|^Failed to convert a NumPy array to a Tensor")
_POSITIONS = {"fit": ("x", "y"), "evaluate": ("x", "y"), "predict": ("x",)}
_DATA = ("x", "y", "sample_weight", "validation_data")
_ITERATORS = ("zip", "map", "filter", "chain", "cycle", "islice")
_LOOKED_AT = 2_000
_TAKE_TEXTS = ("TextVectorization", "StringLookup", "Hashing")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras did not know what it was given."""
    spot, text = situation.last, situation.message
    statement = situation.statement
    if spot is None or statement is None or not any(one.search(text) for one in (_UNKNOWN, _AMBIGUOUS, _TEXTS)):
        return None
    for call in fits(statement):
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        given = dict(zip(_POSITIONS.get(method, ("x", "y")), call.args))
        given |= {str(one.arg): one.value for one in call.keywords if one.arg in _DATA}
        model = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
        found = (_iterator(given, spot) or _several(given, spot)) if _UNKNOWN.search(text) else None
        found = found or (_texts(given, spot, model) if _TEXTS.search(text) else None)
        found = found or _lists(given, spot, len(getattr(model, "inputs", None) or ()))
        if found is not None:
            return found
    return None


def _iterator(given: dict[str, ast.expr], spot: Spot) -> Explanation | None:
    """`zip(images, masks)`: of Python's iterators, Keras takes generators only."""
    nodes = [given[name] for name in ("x", "validation_data") if name in given]
    found = [
        one for one in nodes
        if (kind := _kind(one, spot)) in _ITERATORS or kind.lower().endswith("iterator") or _iterates(lookup(one, spot))
    ]  # fmt: skip
    found = [one for one in found if not of_keras(type(lookup(one, spot)), "PyDataset")]  # Keras takes its own
    if not found:
        return None
    text, kind = spot.source.text, _kind(found[0], spot)
    edit = edit_of(spot.file, spot.source.replaced({one: f"(batch for batch in {text(one)})" for one in found}))
    cause = (
        f"{short(text(found[0]), 40)} is an object of {kind}, an iterator, and of these Keras takes generators only. "
        "A generator expression gives the same batches."
    )
    return Explanation(RULE, spot.file, found[0].lineno, cause, edit)


def _iterates(value: Any) -> bool:
    """Whether it is an object of a class of the program's own with `__iter__` and `__next__`, or an `__iter__`."""
    kind = type(value)
    own = kind.__module__.partition(".")[0] not in ("builtins", "keras", "tensorflow", "numpy", "pandas", "itertools")
    return own and "__iter__" in vars(kind) and not hasattr(kind, "__array__")


def _several(given: dict[str, ast.expr], spot: Spot) -> Explanation | None:
    """`fit((image_generator, mask_generator))`: side by side, they are one generator of pairs."""
    for name in ("x", "validation_data"):
        node = given.get(name)
        parts: Any = None if node is None else lookup(node, spot)
        if node is not None and isinstance(node, (ast.Tuple, ast.List)):
            parts = [lookup(one, spot) for one in node.elts]
        if node is None or type(parts) not in (list, tuple):
            continue
        iterators = [one for one in parts if hasattr(type(one), "__next__")]
        if len(iterators) < 2:
            continue
        text = short(spot.source.text(node), 40)
        cause = f"{text} holds {len(iterators)} iterators, and Keras takes one that gives tuples (inputs, targets)."
        others = [one for one in parts if not hasattr(type(one), "__next__")]  # no ==, which an array takes apart
        if others:
            advice = (
                f"Write a generator that yields next() of each, with its rows of the {type(others[0]).__name__} beside "
                "them: for rows in the order of that, the iterators need shuffle=False."
            )
            return Explanation(RULE, spot.file, node.lineno, cause, None, advice)
        edit = edit_of(spot.file, spot.source.replaced({node: f"(batch for batch in zip(*{spot.source.text(node)}))"}))
        cause += " zip takes them side by side."
        return Explanation(RULE, spot.file, node.lineno, cause, edit, "" if edit else "Give it zip of them.")
    return None


def _kind(node: ast.expr, spot: Spot) -> str:
    """The name of a value's type; of a call of Python's own it is that of what is called."""
    if isinstance(node, ast.Call):
        return dotted(node.func).rpartition(".")[2]
    return type(lookup(node, spot)).__name__


def _for_a_text_layer(spot: Spot, node: ast.expr, model: Any) -> Explanation | None:
    """An array of texts for a model that begins with a layer which takes them: a tensor of texts, by a text Input."""
    layers = [one for one in getattr(model, "layers", None) or () if type(one).__name__ in _TAKE_TEXTS]
    if not layers:
        return None
    text, tf = spot.source.text, alias(spot, "tensorflow")
    pieces = {node: f"{tf}.constant({text(node)})"}
    cause = f"{text(node)} is an array of texts, and Keras takes a tensor of them."
    inputs: Any = getattr(model, "inputs", None) or ()
    made = [one for one in calls(spot.source.tree) if dotted(one.func).rpartition(".")[2] in ("Input", "InputLayer")]
    if len(inputs) == 1 and str(getattr(inputs[0], "dtype", "string")) != "string":
        if len(made) != 1 or any(one.arg == "dtype" for one in made[0].keywords):
            return None
        pieces[made[0]] = spot.source.with_argument(made[0], 'dtype="string"')
        cause += f" The Input in front of {type(layers[0]).__name__} takes numbers where no dtype is given."
    first = min(pieces, key=lambda one: one.lineno)
    return Explanation(RULE, spot.file, first.lineno, cause, Edit(spot.file, *spot.source.kept_lines(pieces)))


def _texts(given: dict[str, ast.expr], spot: Spot, model: Any) -> Explanation | None:
    """Arrays of texts: numbers that were read as text, and labels by their names."""
    np, text = alias(spot, "numpy"), spot.source.text
    for name, node in given.items():
        value: Any = valued(node, spot)
        value = value.to_numpy() if is_table(value) else value
        kind = getattr(getattr(value, "dtype", None), "kind", "") if is_array(value) else ""
        if kind == "O" and value.ndim == 1 and {type(one) for one in value.flat} == {str}:
            value, kind = value.astype(str), "U"
        if kind != "U":
            continue
        seen = str(value.flat[0])
        cause = f"{text(node)} is an array of texts, {value.dtype} ({seen!r}), and Keras takes numbers."
        if all(map(_is_number, value.flat)):
            edit = edit_of(spot.file, spot.source.replaced({node: f"{text(node)}.astype('float32')"}))
        elif name == "y" and value.ndim == 1:
            cause += " np.unique gives each name a number, in the order of the alphabet."
            new = f"{np}.unique({text(node)}, return_inverse=True)[1]"
            edit = edit_of(spot.file, spot.source.replaced({node: new}))
        elif name == "x" and (found := _for_a_text_layer(spot, node, model)) is not None:
            return found
        else:
            advice = f"Make numbers of {text(node)} first: keras.layers.StringLookup, or one column for each."
            return Explanation(RULE, spot.file, node.lineno, cause, None, advice)
        return Explanation(RULE, spot.file, node.lineno, cause, edit)
    return None


def _is_number(text: object) -> bool:
    try:
        float(str(text))
    except ValueError:
        return False
    return True


def _lists(given: dict[str, ast.expr], spot: Spot, inputs: int) -> Explanation | None:
    """Lists of rows, each of one shape: Keras takes arrays, and a list for several inputs."""
    nodes = [part for one in given.values() for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
    rows = {one: found for one in nodes if (found := _rows(lookup(one, spot))) is not None}
    names = {spot.source.text(one) for one in rows}
    own = given.get("x")
    texts = [one for one in nodes if _is_texts(one, spot)]
    if own is not None and own in texts:
        return _of_texts(spot, texts, list(rows))
    if not rows or (own in rows and 1 < inputs == rows[own][0]):
        return None
    shapes = {shape for _, shape in rows.values()}
    text = " and ".join(short(one, 30) for one in dict.fromkeys(spot.source.text(one) for one in rows))
    several = len(names) > 1
    cause = (
        f"{text} {'are lists' if several else 'is a list'} of rows. Keras takes arrays, and a list for several inputs."
    )
    if None in shapes:
        which = next(spot.source.text(one) for one, (_, shape) in rows.items() if shape is None)
        return Explanation(
            RULE, spot.file, spot.line, f"{cause} The rows of {short(which, 30)} have different shapes, so that they "
            "make no array.", None, "Bring them to one shape first: resize images, pad sequences.",
        )  # fmt: skip
    np = alias(spot, "numpy")
    placed = spot.source.replaced({one: f"{np}.array({spot.source.text(one)})" for one in rows})
    return Explanation(RULE, spot.file, min(one.lineno for one in rows), cause, edit_of(spot.file, placed))


def _of_texts(spot: Spot, texts: list[ast.expr], rows: list[ast.expr]) -> Explanation:
    """A list of texts for a model that takes texts: a tensor of them, as Keras knows no list."""
    text, np, tf = spot.source.text, alias(spot, "numpy"), alias(spot, "tensorflow")
    new = {one: f"{tf}.constant({text(one)})" for one in texts}
    new |= {one: f"{np}.array({text(one)})" for one in rows}
    cause = f"{short(text(texts[0]), 30)} is a list of texts. Keras takes a tensor of them, and arrays."
    return Explanation(RULE, spot.file, spot.line, cause, edit_of(spot.file, spot.source.replaced(new)))


def _is_texts(node: ast.expr, spot: Spot) -> bool:
    """Whether it is a list of texts."""
    value = lookup(node, spot)
    return type(value) is list and bool(value) and all(type(one) is str for one in value)


def _rows(value: Any) -> tuple[int, tuple[int | None, ...] | None] | None:
    """How many rows a list has, and the shape of each: None where they differ. None for no list of rows."""
    if type(value) is not list or not value:
        return None
    shapes = {shape_of_data(one) for one in value[:_LOOKED_AT]}
    if () in shapes and len(shapes) == 1:
        return len(value), ()
    if any(shape is None for shape in shapes) and not all(isinstance(one, (list, tuple)) for one in value[:1]):
        return None
    return len(value), shapes.pop() if len(shapes) == 1 else None
