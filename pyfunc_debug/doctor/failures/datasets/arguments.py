"""Arguments of Dataset methods: counts that are floats or left out, and what zip and concatenate take."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.datasets import part_names
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_dataset, lookup, method_calls

RULE = "structure"
_FLOAT = re.compile(r"Cannot convert -?[\d.e+-]+ to EagerTensor of dtype int64|only integer tensors|expected int64")
_LEFT_OUT = re.compile(r"\b(shuffle|batch|padded_batch|take|skip|window)\(\) missing 1 required positional argument")
_COUNTED = ("take", "skip", "shuffle", "batch", "padded_batch", "repeat", "window", "shard", "range")
_USUAL = {"shuffle": "1000", "batch": "32", "padded_batch": "32"}
_ZIPPED = "Invalid input to `zip`"
_UNLIKE = "Incompatible dataset elements"
_LISTED = re.compile(r"'(list|tuple)' object has no attribute 'element_spec'")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if such an argument is why the program failed."""
    spot, text = situation.last, situation.message
    statement = situation.statement
    if spot is None or statement is None or situation.body:
        return None
    if _FLOAT.search(text):
        return _whole(spot, statement)
    if (left := _LEFT_OUT.search(text)) is not None:
        return _left_out(spot, statement, left[1])
    if _ZIPPED in text:
        return _zipped(spot, statement)
    if _UNLIKE in text:
        return _unlike(situation, spot, statement)
    if _LISTED.search(text):
        return _listed(spot, statement)
    return None


def _whole(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`ds.take(0.8 * n)`: a count is a whole number."""
    for call in method_calls(statement, *_COUNTED):
        for given in [*call.args, *(one.value for one in call.keywords)]:
            value = evaluation.computed(given, spot)
            if not isinstance(value, float):
                continue
            text, place, line = spot.source.text(given), given, given.lineno
            if isinstance(given, ast.Name):
                nodes = own_nodes(spot.function) if spot.function is not None else ast.walk(spot.source.tree)
                made = [
                    one for one in nodes
                    if isinstance(one, ast.Assign) and [dotted(part) for part in one.targets] == [given.id]
                ]  # fmt: skip
                if len(made) == 1 and made[0].lineno < spot.line:
                    place, line = made[0].value, made[0].lineno
            edit = edit_of(spot.file, spot.source.replaced({place: f"int({spot.source.text(place)})"}))
            assert isinstance(call.func, ast.Attribute)
            cause = f"{short(text, 40)} is {value:g}, a float, and {call.func.attr} takes a whole number."
            return Explanation(RULE, spot.file, line, cause, edit)
    return None


def _left_out(spot: Spot, statement: ast.stmt, method: str) -> Explanation | None:
    """`ds.shuffle()`."""
    found = [one for one in method_calls(statement, method) if not one.args and not one.keywords]
    if len(found) != 1 or method not in _USUAL:
        return None
    assert isinstance(found[0].func, ast.Attribute)
    text = spot.source.text(found[0])
    edit = edit_of(spot.file, spot.source.replaced({found[0]: f"{text[:-1]}{_USUAL[method]})"}))
    what = "buffer_size: how many elements it holds, and draws from" if method == "shuffle" else "batch_size"
    cause = f"{method} needs its {what}. Choose the number; as many as there are elements mix best."
    cause = cause if method == "shuffle" else f"{method} needs its batch_size. Choose the number."
    return Explanation(RULE, spot.file, found[0].lineno, cause, edit, "", "likely")


def _zipped(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`Dataset.zip((images, labels))` with an array in the place of a dataset."""
    for call in method_calls(statement, "zip"):
        given = (
            call.args[0].elts if len(call.args) == 1 and isinstance(call.args[0], (ast.Tuple, ast.List)) else call.args
        )
        values = {one: lookup(one, spot) for one in given if isinstance(one, (ast.Name, ast.Attribute))}
        arrays = [one for one, value in values.items() if value is not None and not is_dataset(value)]
        if not arrays or not all(hasattr(values[one], "__len__") for one in arrays):
            continue
        tf, text = alias(spot, "tensorflow"), spot.source.text
        pieces: dict[ast.expr, str] = {one: f"{tf}.data.Dataset.from_tensor_slices({text(one)})" for one in arrays}
        names = " and ".join(map(text, arrays))
        cause = f"zip takes datasets, and {names} {'is none' if len(arrays) == 1 else 'are none'}. "
        cause += "from_tensor_slices makes one of its rows."
        edit = edit_of(spot.file, spot.source.replaced(pieces))
        return Explanation(RULE, spot.file, call.lineno, cause, edit)
    return None


def _unlike(situation: Situation, spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`a.concatenate(b)` of elements that are alike but for their dtypes."""
    known = [one.f_locals for one in frames(situation.inner.__traceback__)]
    pair = next(((one["input_dataset"], one["dataset_to_concatenate"]) for one in reversed(known)
                 if "input_dataset" in one and "dataset_to_concatenate" in one), None)  # fmt: skip
    found = method_calls(statement, "concatenate")
    if pair is None or len(found) != 1 or len(found[0].args) != 1:
        return None
    first, second = (one.element_spec for one in pair)
    changed = list(_differing(first, second, ""))
    text, tf = spot.source.text(found[0].args[0]), alias(spot, "tensorflow")
    cause = f"concatenate takes datasets of like elements, and {short(text, 40)} has others"
    if not changed or None in changed:
        return Explanation(
            RULE, spot.file, found[0].lineno, f"{cause}: they nest otherwise.", None,
            "Map one of them to the parts of the other before.",
        )  # fmt: skip
    dtypes = dict.fromkeys(f"{one[1]} in the place of {one[0]}" for one in changed if one is not None)
    new = f"{text}.map({_cast(first, second, tf)})"
    edit = edit_of(spot.file, spot.source.replaced({found[0].args[0]: new}))
    return Explanation(RULE, spot.file, found[0].lineno, f"{cause}: {', '.join(dtypes)}. A map casts them.", edit)


def _differing(first: Any, second: Any, path: str) -> Iterator[tuple[str, str] | None]:
    """The dtypes of the parts in which two specs differ; None where they nest otherwise."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        for key in first:
            yield from _differing(first[key], second[key], path)
    elif type(first) is tuple and type(second) is tuple and len(first) == len(second):
        for one, other in zip(first, second):
            yield from _differing(one, other, path)
    elif type(first).__name__ == type(second).__name__ == "TensorSpec":
        if first.dtype != second.dtype:
            yield None if "string" in (first.dtype.name, second.dtype.name) else (first.dtype.name, second.dtype.name)
    else:
        yield None


def _cast(first: Any, second: Any, tf: str) -> str:
    """A lambda that gives elements the dtypes of others."""

    def part(one: Any, other: Any, text: str) -> str:
        if isinstance(one, dict):
            keys = {key: text + f"[{key!r}]".replace("'", '"') for key in one}
            new = {key: part(one[key], other[key], keys[key]) for key in one}
            return f"{{**{text}, {', '.join(f'{key!r}: {new[key]}' for key in one if new[key] != keys[key])}}}".replace(
                "'", '"'
            )
        if type(one) is tuple:
            inside = [part(*pair, f"{text}[{place}]") for place, pair in enumerate(zip(one, other))]
            return f"({', '.join(inside)}{',' * (len(inside) == 1)})"
        return text if one.dtype == other.dtype else f"{tf}.cast({text}, {tf}.{one.dtype.name})"

    if type(first) is tuple:
        names = part_names(len(first))
        inside = ", ".join(part(*three) for three in zip(first, second, names))
        return f"lambda {', '.join(names)}: ({inside}{',' * (len(first) == 1)})"
    return f"lambda x: {part(first, second, 'x')}"


def _listed(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`ds.concatenate([a, b])`: it takes one dataset."""
    found = method_calls(statement, "concatenate")
    if len(found) != 1 or len(found[0].args) != 1:
        return None
    text, source = spot.source.text, spot.source
    cause = f"concatenate takes one dataset, and {short(text(found[0].args[0]), 40)} is a list of them."
    edit = None
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is found[0] else None
    if isinstance(target, ast.Name) and isinstance(found[0].func, ast.Attribute):
        blanks, name = indent_of(source.lines[statement.lineno - 1]), target.id
        each = "part" if spot.value("part") is None else "each"
        edit = Edit(spot.file, statement.lineno, statement.end_lineno or statement.lineno, (
            f"{blanks}{name} = {text(found[0].func.value)}",
            f"{blanks}for {each} in {text(found[0].args[0])}:",
            f"{blanks}    {name} = {name}.concatenate({each})",
        ))  # fmt: skip
    return Explanation(RULE, spot.file, found[0].lineno, cause, edit, "" if edit else "Concatenate them in a loop.")
