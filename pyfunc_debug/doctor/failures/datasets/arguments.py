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
from pyfunc_debug.doctor.failures.reading.nodes import argument
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
_MIXED = "`datasets` must have compatible element specs"
_CHOICE = "`choice_dataset` must be scalar `tf.int64`"
_ADDED = re.compile(r"unsupported operand type\(s\) for \+=?: '\w*Dataset\w*' and '\w*Dataset\w*'")
_BEFORE = "Map one of them to the parts of the other before."
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
    if _MIXED in text:
        return _mixed(spot, statement)
    if _CHOICE in text:
        return _choices(spot, statement)
    if _ADDED.search(text):
        return _added(spot, statement)
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
    text, tf = spot.source.text(found[0].args[0]), alias(spot, "tensorflow")
    cause = f"concatenate takes datasets of like elements, and {short(text, 40)} has others"
    said, new = _alike(first, second, tf)
    if not new:
        return Explanation(RULE, spot.file, found[0].lineno, f"{cause}: {said}.", None, _BEFORE)
    piece: dict[ast.expr, str] = {found[0].args[0]: f"{text}.map({new})"}
    if _loses(first, second) and isinstance(found[0].func, ast.Attribute):
        before = found[0].func.value
        piece = {before: f"{spot.source.text(before)}.map({_cast(second, first, tf)})"}
    edit = edit_of(spot.file, spot.source.replaced(piece))
    return Explanation(RULE, spot.file, found[0].lineno, f"{cause}: {said}. A map casts them.", edit)


def _loses(first: Any, second: Any) -> bool:
    """Whether fractions would go where the second is made like the first, and none the other way round."""
    pairs = [one for one in _differing(first, second) if one is not None]
    return bool(pairs) and all("int" in one and "float" in other for one, other in pairs)


def _alike(first: Any, second: Any, tf: str) -> tuple[str, str]:
    """How two specs differ, and the lambda that makes elements of the second like those of the first; or ""."""
    changed = list(_differing(first, second))
    if not changed or None in changed:
        return f"{_form(second)}, where the first has {_form(first)}", ""
    pairs = [one for one in changed if one is not None]
    said = ", ".join(dict.fromkeys(f"{other} in the place of {one}" for one, other in pairs))
    return said, "" if any("string" in one for one in pairs) else _cast(first, second, tf)


def _form(spec: Any) -> str:
    """A spec as people write elements: `(float32, int32)`."""
    if isinstance(spec, dict):
        return f"{{{', '.join(f'{key}: {_form(one)}' for key, one in spec.items())}}}"
    if type(spec) is tuple:
        return f"({', '.join(map(_form, spec))}{',' * (len(spec) == 1)})"
    kind, dtype = type(spec).__name__.removesuffix("Spec"), getattr(getattr(spec, "dtype", None), "name", "")
    return dtype if kind == "Tensor" and dtype else kind


def _mixed(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`sample_from_datasets([a, b])` of datasets whose elements are not alike."""
    found = method_calls(statement, "sample_from_datasets", "choose_from_datasets")
    given = argument(found[0], 0, "datasets") if len(found) == 1 else None
    value = lookup(given, spot) if given is not None else None
    parts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
    sets: list[Any] = [lookup(one, spot) for one in parts] or (list(value) if isinstance(value, (list, tuple)) else [])
    if given is None or len(sets) < 2 or not all(is_dataset(one) for one in sets):
        return None
    text, tf, name = spot.source.text, alias(spot, "tensorflow"), found[0].func.attr  # type: ignore[attr-defined]
    specs = [one.element_spec for one in sets]
    others = [place for place, spec in enumerate(specs) if list(_differing(specs[0], spec))]
    if not others:
        return None
    ways = {place: _alike(specs[0], specs[place], tf) for place in others}
    shown = text(parts[others[0]]) if parts else f"{short(text(given), 30)}[{others[0]}]"
    cause = f"{name} takes datasets of like elements, and {shown} has others: {ways[others[0]][0]}."
    if not parts or not all(new for _, new in ways.values()):
        return Explanation(RULE, spot.file, found[0].lineno, cause, None, _BEFORE)
    edit = edit_of(
        spot.file,
        spot.source.replaced({parts[one]: f"{text(parts[one])}.map({new})" for one, (_, new) in ways.items()}),
    )
    return Explanation(RULE, spot.file, found[0].lineno, f"{cause} A map casts them.", edit)


def _choices(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`choose_from_datasets([a, b], choice)` with numbers of another dtype."""
    found = method_calls(statement, "choose_from_datasets")
    given = argument(found[0], 1, "choice_dataset") if len(found) == 1 else None
    spec = getattr(lookup(given, spot), "element_spec", None) if given is not None else None
    if given is None or type(spec).__name__ != "TensorSpec" or spec.shape.rank != 0 or "int" not in spec.dtype.name:  # type: ignore[union-attr]
        return None
    text, tf = spot.source.text(given), alias(spot, "tensorflow")
    cause = f"the elements of {short(text, 30)} are {spec.dtype.name}, and choose_from_datasets takes int64 as choices."  # type: ignore[union-attr]
    new = f"{text}.map(lambda choice: {tf}.cast(choice, {tf}.int64))"
    return Explanation(RULE, spot.file, given.lineno, cause, edit_of(spot.file, spot.source.replaced({given: new})))


def _added(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`a + b` of datasets, as lists are joined."""
    source = spot.source
    found = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add)
        and is_dataset(lookup(one.left, spot)) and is_dataset(lookup(one.right, spot))
    ]  # fmt: skip
    if len(found) == 1:
        left, right = source.text(found[0].left), source.text(found[0].right)
        edit = edit_of(spot.file, source.replaced({found[0]: f"{left}.concatenate({right})"}))
        cause = f"{left} and {right} are datasets, which `+` does not join: concatenate does."
        return Explanation(RULE, spot.file, found[0].lineno, cause, edit)
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        left, right = source.text(statement.target), source.text(statement.value)
        line = f"{indent_of(source.lines[statement.lineno - 1])}{left} = {left}.concatenate({right})"
        cause = f"{left} is a dataset, and `+=` does not join it to another: concatenate does."
        edit = Edit(spot.file, statement.lineno, statement.end_lineno or statement.lineno, (line,))
        return Explanation(RULE, spot.file, statement.lineno, cause, edit)
    return None


def _differing(first: Any, second: Any) -> Iterator[tuple[str, str] | None]:
    """The dtypes of the parts in which two specs differ; None where they nest otherwise."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        for key in first:
            yield from _differing(first[key], second[key])
    elif type(first) is tuple and type(second) is tuple and len(first) == len(second):
        for one, other in zip(first, second):
            yield from _differing(one, other)
    elif type(first).__name__ == type(second).__name__ == "TensorSpec":
        if first.dtype != second.dtype:
            yield first.dtype.name, second.dtype.name
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
