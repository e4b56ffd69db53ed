"""A dataset that is asked for its parts as a list is, `ds[0]` and `ds[:3]`, and what `flat_map` gets in its place."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_dataset, lookup

RULE = "structure"
_SAID = re.compile(r"'_?\w*Dataset(?:V\d)?' object is not subscriptable")
_NO_DATASET = "The `map_func` argument must return a `Dataset` object"
_LISTS = (ast.List, ast.Tuple, ast.ListComp)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a dataset was taken for a list, or a list for a dataset."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body:
        return None
    if _NO_DATASET in situation.message:
        return _listed(spot, statement)
    return _indexed(spot, statement) if _SAID.search(situation.message) else None


def _indexed(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`ds[0]` as its first element, `ds[:3]` as a dataset of three."""
    found = [
        one for one in ast.walk(statement) if isinstance(one, ast.Subscript) and is_dataset(lookup(one.value, spot))
    ]  # fmt: skip
    window = _window(spot, found) if found else None
    if window is not None or len(found) != 1:
        return window if window is not None or not found else _of_fit(spot, statement, found)
    text, part = spot.source.text(found[0].value), found[0].slice
    if isinstance(part, ast.Constant) and isinstance(part.value, str):
        return _by_key(spot, found[0], part.value)
    new = _sliced(text, part, spot) if isinstance(part, ast.Slice) else _element(text, part, spot)
    cause = (
        f"`{short(spot.source.text(found[0]), 40)}` takes a dataset for a list: its elements are made one after the "
        "other, and have no index."
    )
    edit = None if new is None else wrapping.replace_expression(spot, found[0], new)
    advice = "" if edit else f"next(iter({text})) is its first element; take(n) and skip(n) give datasets."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _by_key(spot: Spot, found: ast.Subscript, key: str) -> Explanation:
    """`ds["image"]` of a dataset whose elements are dicts: a map takes the part of each."""
    text, spec = spot.source.text(found.value), lookup(found.value, spot).element_spec
    shown, name = short(spot.source.text(found), 40), short(text, 30)
    inside = spec[0] if isinstance(spec, tuple) and spec and isinstance(spec[0], dict) else spec
    if not isinstance(inside, dict) or key not in inside:
        keys = f": its keys are {short(', '.join(map(repr, inside)), 60)}." if isinstance(inside, dict) else "."
        cause = f"`{shown}` takes a dataset for a dict: {name} has elements, and no element has this key{keys}"
        if not isinstance(inside, dict):
            cause = f"`{shown}` takes a dataset for a dict, and the elements of {name} are not dicts either."
        return Explanation(RULE, spot.file, found.lineno, cause, None, f"Look at {name}.element_spec.")
    used = {one.id for one in ast.walk(found) if isinstance(one, ast.Name)}
    each = next(one for one in ("d", "element", "each_element") if one not in used)
    read = spot.source.text(found.slice)
    new = f"{text}.map(lambda {each}: {each}[{read}])"
    if inside is not spec:
        new = f"{text}.map(lambda {each}, *_: {each}[{read}])"
    cause = f"`{shown}` takes a dataset for a dict: the keys are those of each element. A map takes this part of each."
    edit = wrapping.replace_expression(spot, found, new)
    return Explanation(RULE, spot.file, found.lineno, cause, edit, "" if edit else f"Write {new}.")


def _of_fit(spot: Spot, statement: ast.stmt, found: list[ast.Subscript]) -> Explanation | None:
    """`fit(ds["image"], ds["label"])` as `fit(ds.map(lambda d: (d["image"], d["label"])))`."""
    data, text = lookup(found[0].value, spot), spot.source.text
    keys = [one.slice.value for one in found if isinstance(one.slice, ast.Constant)]
    for call in calls(statement):
        given: list[ast.expr] = [*call.args, *(one.value for one in call.keywords if one.arg in ("x", "y"))]
        same = len({text(one.value) for one in found}) == 1 and isinstance(data.element_spec, dict)
        if not same or given != [*found] or len(keys) != 2 or any(one not in data.element_spec for one in keys):
            continue
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("fit", "evaluate"):
            continue
        name = text(found[0].value)
        read = ", ".join(f"d[{text(one.slice)}]" for one in found)
        others = [text(one) for one in call.keywords if one.arg not in ("x", "y")]
        mapped = ", ".join([f"{name}.map(lambda d: ({read}))", *others])
        cause = f"`{short(text(found[0]), 30)}` takes a dataset for a dict: the keys are those of each element. "
        cause += f"{call.func.attr} takes one dataset, of pairs (x, y)."
        edit = wrapping.replace_expression(spot, call, f"{text(call.func)}({mapped})")
        return Explanation(RULE, spot.file, call.lineno, cause, edit) if edit is not None else None
    return None


def _window(spot: Spot, found: list[ast.Subscript]) -> Explanation | None:
    """`ds.window(5).map(lambda w: (w[:-1], w[-1]))`: a window is a dataset, and a batch of its size is a tensor."""
    source, name = spot.source, dotted(found[0].value)
    windows = [one for one in calls(source.tree) if getattr(one.func, "attr", "") == "window" and one.args]
    maps = [
        one for one in calls(source.tree)
        if getattr(one.func, "attr", "") == "map" and one.args
        and wrapping.is_function(one.args[0], spot.function, spot, spot)
    ]  # fmt: skip
    if len(windows) != 1 or len(maps) != 1 or any(dotted(one.value) != name for one in found):
        return None
    size = argument(windows[0], 0, "size")
    owner = maps[0].func.value if isinstance(maps[0].func, ast.Attribute) else None
    if size is None or owner is None:
        return None
    cause = (
        f"a window is a dataset of its own, and `{short(source.text(found[0]), 40)}` takes it for a tensor. `batch` of "
        "its size makes one tensor of each window, in a flat_map."
    )
    each = "window" if name != "window" else "each"  # AutoGraph cannot tell two lambdas of one name in a line apart
    new = f"{source.text(owner)}.flat_map(lambda {each}: {each}.batch({source.text(size)}))"
    return Explanation(RULE, spot.file, spot.line, cause, wrapping.replace_expression(spot, owner, new))


def _element(text: str, index: ast.expr, spot: Spot) -> str | None:
    if isinstance(index, ast.Constant):
        number = index.value
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            return None
        return f"next(iter({text}.skip({number})))" if number else f"next(iter({text}))"
    value = lookup(index, spot)
    return f"next(iter({text}.skip({spot.source.text(index)})))" if type(value) is int and value >= 0 else None


def _sliced(text: str, part: ast.Slice, spot: Spot) -> str | None:
    """`ds[a:b]` by skip and take, where both count from the beginning."""
    ends = [one for one in (part.lower, part.upper) if one is not None]
    values = [one.value if isinstance(one, ast.Constant) else lookup(one, spot) for one in ends]
    if part.step is not None or not ends or not all(type(one) is int and one >= 0 for one in values):
        return None
    first = "" if part.lower is None else f".skip({spot.source.text(part.lower)})"
    last = "" if part.upper is None else spot.source.text(part.upper)
    if part.lower is not None and part.upper is not None:
        last = f"{last} - {spot.source.text(part.lower)}"
    return f"{text}{first}{f'.take({last})' if last else ''}"


def _listed(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`flat_map(lambda i: [i, i * 10])`: the elements that it gives, as a dataset."""
    given = [
        one.args[0] for one in calls(statement)
        if isinstance(one.func, ast.Attribute) and one.func.attr in ("flat_map", "interleave") and one.args
    ]  # fmt: skip
    if len(given) != 1 or not isinstance(given[0], ast.Lambda) or not isinstance(given[0].body, _LISTS):
        return None
    body = given[0].body
    text, tf = spot.source.text(body), alias(spot, "tensorflow")
    cause = (
        f"`{short(text, 40)}` is what the lambda returns. flat_map wants a Dataset from it, of the elements that come "
        "out of this one."
    )
    edit = wrapping.replace_expression(spot, body, f"{tf}.data.Dataset.from_tensor_slices({text})")
    return None if edit is None else Explanation(RULE, spot.file, spot.line, cause, edit)
