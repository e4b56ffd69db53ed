"""A dataset that is taken for an iterator or an array, `next(ds)`, `ds.numpy()`, `ds.shape`, or listed in zip."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, together
from pyfunc_debug.doctor.failures.reading.datasets import part_names
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_batched, is_dataset, lookup

RULE = "structure"
_NO_ITERATOR = re.compile(r"'_?\w*Dataset(?:V\d)?' object is not an iterator")
_NO_ARRAY = re.compile(r"'_?\w*Dataset(?:V\d)?' object has no attribute '(\w+)'")
_IN_NUMPY = ("numpy", "eval", "to_numpy", "values", "tolist")
_OF_ARRAYS = ("shape", "dtype", "ndim", "size", "astype", "reshape", "mean", "max", "min", "get_shape", "sum", "std")
_OF_FOLDERS = ("class_names", "file_paths")
"""What `image_dataset_from_directory` puts on its dataset."""
_FARTHEST = 20
"""Lines that one paste goes over."""
_NO_LIST = "Python `list` is not supported and you should use `tuple` instead"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line takes a dataset for one of these."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body:
        return None
    if _NO_ITERATOR.search(situation.message):
        return _next(spot, statement)
    if (said := _NO_ARRAY.search(situation.message)) is not None:
        return _attribute(spot, statement, said[1], situation.outer(spot))
    return _zipped(spot, statement) if _NO_LIST in situation.message else None


def _next(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`next(ds)` as `next(iter(ds))`; in a loop the iterator is made before."""
    every = [one.args[0] for one in calls(statement) if dotted(one.func) == "next" and one.args]
    found = [one for one in every if is_dataset(lookup(one, spot))]
    if not found and len(every) == 1 and isinstance(every[0], ast.Call) and dotted(every[0].func) != "iter":
        found = every  # a dataset without a name: the one that is refused
    if len(found) != 1:
        return None
    name = spot.source.text(found[0])
    loops = [one for one in spot.source.around(statement) if isinstance(one, (ast.For, ast.While))]
    if isinstance(found[0], ast.Call):
        cause = f"{short(name, 40)} is a dataset: `next` takes what iter gives, which begins at its first element."
        if loops:
            return Explanation(RULE, spot.file, found[0].lineno, cause, None, "Make one iterator of it above the loop.")
    else:
        cause = f"{name} is a dataset: each iter({name}) begins at its first element, and `next` takes what iter gives."
    inside = spot.function is None or spot.function in spot.source.around(loops[-1]) if loops else False
    free = spot.value("iterator") is None and not any(
        isinstance(one, ast.Name) and one.id == "iterator" for one in ast.walk(spot.source.tree)
    )
    if inside and free and isinstance(found[0], ast.Name):
        first, last, lines = loops[-1].lineno, *spot.source.kept_lines({found[0]: "iterator"})[1:]
        kept = spot.source.lines[first - 1 : found[0].lineno - 1]
        made = f"{indent_of(spot.source.lines[first - 1])}iterator = iter({name})"
        cause += " Made before the loop, it gives the next one in each round."
        return Explanation(RULE, spot.file, found[0].lineno, cause, Edit(spot.file, first, last, (made, *kept, *lines)))
    edit = wrapping.replace_expression(spot, found[0], f"iter({name})")
    return Explanation(RULE, spot.file, found[0].lineno, cause, edit, "" if edit else f"next(iter({name})).")


def _parameters(spot: Spot) -> list[str]:
    return parameters(spot.function) if spot.function is not None else []


def _for_arrays(spot: Spot, dataset: Any, by: Spot) -> str:
    """What to do where a function that takes arrays was given a dataset."""
    numpy, parts = alias(by, "numpy"), dataset.element_spec
    gathered = f"{numpy}.{'concatenate' if is_batched(dataset) else 'array'}"
    given = next((one for one, value in by.variables.items() if value is dataset), "dataset")
    if type(parts) is tuple:
        names = ", ".join(part_names(len(parts)))
        made = f"{names} = map({gathered}, zip(*{given}.as_numpy_iterator()))"
    else:
        made = f"x = {gathered}(list({given}.as_numpy_iterator()))"
    called = getattr(spot.function, "name", "the function")
    return f"If {called} takes arrays, give it those: {made}."


def _attribute(spot: Spot, statement: ast.stmt, name: str, by: Spot | None) -> Explanation | None:
    """`ds.numpy()` and `ds.shape` of what has no numbers of its own."""
    found = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Attribute) and one.attr == name and is_dataset(lookup(one.value, spot))
    ]  # fmt: skip
    if len(found) == 1 and name in _OF_FOLDERS:
        return _of_folder(spot, found[0], name)
    if len(found) != 1 or name not in (*_IN_NUMPY, *_OF_ARRAYS):
        return None
    owner = spot.source.text(found[0].value)
    cause = f"{owner} is a dataset, which makes its elements one after the other: it has no {name} of its own."
    parent = spot.source.parent(found[0])
    if name in _IN_NUMPY:
        whole: ast.expr = parent if isinstance(parent, ast.Call) and parent.func is found[0] else found[0]
        edit = wrapping.replace_expression(spot, whole, f"list({owner}.as_numpy_iterator())")
        return Explanation(RULE, spot.file, spot.line, f"{cause} Below, all of them are read.", edit, "" if edit else (
            f"list({owner}.as_numpy_iterator()) reads all of them."))  # fmt: skip
    if name in ("shape", "dtype"):
        value = lookup(found[0].value, spot)
        spec = value.element_spec
        whole_element = type(spec).__name__.endswith("Spec")
        one = "" if whole_element else "[0]" if type(spec) is tuple else None
        first = spec if whole_element else spec[0] if one else None
        edit = None
        if one is not None and (name == "dtype" or getattr(getattr(first, "shape", None), "rank", None) is not None):
            edit = wrapping.replace_expression(spot, found[0], f"{owner}.element_spec{one}.{name}")
        elif one is not None:
            said = f"{cause} That of an element is not known, either: x.set_shape([...]) gives it, or output_signature."
            given = by is not None and owner in _parameters(spot)
            advice = _for_arrays(spot, value, by) if by is not None and given else f"Then read {owner}.element_spec."
            return Explanation(RULE, spot.file, spot.line, said, None, advice)
        said = f"{cause} element_spec says that of an element."
        return Explanation(RULE, spot.file, spot.line, said, edit, "" if edit else f"Read {owner}.element_spec.")
    advice = (
        f"Ask an element: `for x in {owner}:`; or all of them as an array: np.array(list({owner}.as_numpy_iterator()))."
    )
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _zipped(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`Dataset.zip([a, b])` as `Dataset.zip((a, b))`."""
    found = [
        one.args[0] for one in calls(statement) if dotted(one.func).endswith("Dataset.zip") and len(one.args) == 1
    ]  # fmt: skip
    if len(found) != 1:
        return None
    given, text = found[0], spot.source.text
    if isinstance(given, ast.Tuple):  # the list is one of the datasets
        return None
    new = f"({', '.join(map(text, given.elts))})" if isinstance(given, ast.List) else f"tuple({text(given)})"
    cause = f"zip takes its datasets as a tuple, and {short(text(given), 40)} is a list."
    return Explanation(RULE, spot.file, given.lineno, cause, wrapping.replace_expression(spot, given, new))


def _of_folder(spot: Spot, read: ast.Attribute, name: str) -> Explanation:
    """`train.class_names` behind a map, which gives another dataset: it is read before."""
    owner = spot.source.text(read.value)
    cause = f"{name} is an attribute of the dataset that the folder gave, and a map or prefetch gives another one."
    within = spot.function if spot.function is not None else spot.source.tree
    made = [
        one for one in ast.walk(within)
        if isinstance(one, ast.Assign) and dotted(one.targets[0]) == owner and isinstance(one.value, ast.Call)
        and dotted(one.value.func).endswith("dataset_from_directory") and one.lineno < read.lineno
    ]  # fmt: skip
    if len(made) != 1 or spot.value(name) is not None:
        advice = f"Keep {name} = dataset.{name} right behind the line that reads the folder."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    line = made[0].end_lineno or made[0].lineno
    kept = Edit(
        spot.file, line + 1, line, (f"{indent_of(spot.source.lines[made[0].lineno - 1])}{name} = {owner}.{name}",)
    )
    edits = [kept, Edit(spot.file, *spot.source.kept_lines({read: name}))]
    if read.lineno - line > _FARTHEST:
        advice = f"Put {name} = {owner}.{name} behind line {line}, and read {name} here."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return Explanation(RULE, spot.file, spot.line, cause, together(edits, spot.source.lines))
