"""`for x, y, z in ds` and `x, y = next(iter(ds))` of elements that have other parts: pairs, a dict, one tensor.

Python unpacks a dict into its keys, and a tensor into its rows: with as many names this does not fail at once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.datasets import dropped_parts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.pastes.learned_shapes import dataset_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset, lookup
from pyfunc_debug.doctor.failures.reading.tables import is_array

RULE = "structure"
_SAID = re.compile(r"(?:not enough|too many) values to unpack")
_LABEL = re.compile(r"^(?:labels?|targets?|y|class(?:es)?|category)$", re.I)
_AROUND = ("iter", "next", "list", "tqdm", "as_numpy_iterator")
"""What gives the elements of what it is given or asked of."""
_Names = ast.Tuple | ast.List
_ITERATORS = ("OwnedIterator", "NumpyIterator", "_NumpyIterator")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line unpacks the elements of a dataset into other names than they have parts."""
    spot = situation.last
    if spot is None or situation.body:
        return None
    if _SAID.search(situation.message):
        statement = spot.statement
        found = _unpacking(statement, spot) if statement is not None else None
        return _restored(situation, *found) or _explained(spot, *found) if found is not None else None
    return _of_keys(spot)


def _restored(
    situation: Situation, statement: ast.For | ast.Assign, target: _Names, given: ast.expr, spec: Any
) -> Explanation | None:
    """Parts that a map takes and does not return; what else there is to do where the dataset is shuffled."""
    spot = situation.spots[-1]
    inner = target.elts[-1]
    if type(spec) is tuple and spec and spec[0] is int and isinstance(inner, (ast.Tuple, ast.List)):
        return _restored(situation, statement, inner, given, spec[1])
    count = len(spec) if type(spec) is tuple else 1
    if isinstance(spec, dict) or len(target.elts) <= count or any(isinstance(one, ast.Starred) for one in target.elts):
        return None
    if type(spec) is tuple and spec[0] is int:
        return None
    has = f"has {count} parts, not {len(target.elts)}" if count > 1 else f"is one tensor, not {len(target.elts)}"
    found = dropped_parts.restored(situation, len(target.elts))
    if found is not None:
        cause = f"An element {has}: {found.cause}"
        return Explanation(RULE, found.edit.file, found.edit.first, cause, found.edit)
    name = dotted(target.elts[-1]) or "the labels"
    unused = not any(_is_read(dotted(one), statement, spot.source) for one in target.elts[1:])
    if count > 1 or unused or not dropped_parts.shuffled(situation):
        return None
    code = short(f"{spot.source.text(target)} in {spot.source.text(given)}", 50)
    cause = f"An element {has}, and `{code}` unpacks its rows."
    return Explanation(
        RULE, spot.file, statement.lineno, cause, None,
        f"Give the dataset a part for {name} before it is shuffled: from_tensor_slices((x, {name})).",
    )  # fmt: skip


def _of_keys(spot: Spot) -> Explanation | None:
    """A line that reads a key of a dict, where names were given to its values."""
    failed = spot.statement
    read = names(failed) if failed is not None else []
    if not any(type(spot.value(one)) is str for one in read):
        return None
    scope = spot.function if spot.function is not None else spot.source.tree
    for one in ast.walk(scope):
        if not isinstance(one, (ast.For, ast.Assign)) or one.lineno >= spot.line:
            continue
        found = _unpacking(one, spot)
        for target, spec in _pairs(found[1], found[3]) if found is not None else ():
            named = [dotted(part) for part in target.elts]
            if isinstance(spec, dict) and [spot.value(name) for name in named] == list(spec) and {*read} & {*named}:
                return _explained(spot, *found) if found is not None else None
    return None


def _pairs(target: _Names, spec: Any) -> Iterator[tuple[_Names, Any]]:
    """Names in brackets, and what they take; also those in other brackets, where these fit."""
    yield target, spec
    if type(spec) is tuple and len(spec) == len(target.elts):
        for one, part in zip(target.elts, spec):
            if isinstance(one, (ast.Tuple, ast.List)):
                yield from _pairs(one, part)


def _unpacking(statement: ast.AST, spot: Spot) -> tuple[ast.For | ast.Assign, _Names, ast.expr, Any] | None:
    """A statement that unpacks elements of a dataset, its names, what gives the elements, and what these are."""
    if isinstance(statement, ast.For):
        target, given = statement.target, statement.iter
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, given = statement.targets[0], statement.value
        value = lookup(given, spot)
        if isinstance(given, ast.Name) and isinstance(target, (ast.Tuple, ast.List)) and _is_element(value):
            return statement, target, given, value
        if not isinstance(given, ast.Call) or dotted(given.func).rpartition(".")[2] not in ("next", "get_next"):
            return None
    else:
        return None
    if not isinstance(target, (ast.Tuple, ast.List)):
        return None
    spec = _spec(given, spot)
    return None if spec is None else (statement, target, given, spec)


def _is_element(value: Any) -> bool:
    """Whether a value is an element that has parts: tensors in a tuple or a dict."""
    parts = value.values() if type(value) is dict else value if type(value) is tuple else ()
    return bool(parts) and all(is_array(one) and hasattr(one, "shape") for one in parts)


def _spec(given: ast.expr, spot: Spot) -> Any:
    """What an expression's elements are: specs in tuples and dicts; None where that is not known."""
    if isinstance(given, ast.Call):
        name = dotted(given.func).rpartition(".")[2] or getattr(given.func, "attr", "")
        inner = given.args[0] if given.args else getattr(given.func, "value", None)
        if name in (*_AROUND, "get_next") and isinstance(inner, ast.expr):
            return _spec(inner, spot)
        if name == "enumerate" and isinstance(inner, ast.expr) and given.args:
            element = _spec(inner, spot)
            return None if element is None else (int, element)
        if name == "zip" and given.args and dotted(given.func) != "zip":
            first = given.args[0]
            parts = first.elts if isinstance(first, (ast.Tuple, ast.List)) and len(given.args) == 1 else given.args
            specs = [_spec(one, spot) for one in parts]
            return None if None in specs else tuple(specs)
        value = dataset_of(given, spot)
    else:
        value = lookup(given, spot)
    known = is_dataset(value) or type(value).__name__ in _ITERATORS
    return getattr(value, "element_spec", None) if known else None


def _explained(
    spot: Spot, statement: ast.For | ast.Assign, target: _Names, given: ast.expr, spec: Any
) -> Explanation | None:
    """What to say of elements, and the names that take their parts."""
    if any(isinstance(one, ast.Starred) for one in target.elts):
        return None
    if type(spec) is tuple and len(spec) == len(target.elts):  # `for i, (x, y) in enumerate(ds)`
        inner = [*_pairs(target, spec)][1:]
        found = (_explained(spot, statement, part, given, own) for part, own in inner if own is not int)
        return next((one for one in found if one is not None), None)
    wanted, text, source = [dotted(one) for one in target.elts], spot.source.text, spot.source
    loop = isinstance(statement, ast.For)
    code = short(f"for {text(target)} in {text(given)}" if loop else text(statement), 60)
    one = isinstance(given, ast.Name) and not loop and type(spec) in (tuple, dict)  # `x, y = batch`
    element = text(given) if one else "An element"
    below: str | None = None
    new: str | None = None
    advice = ""
    if isinstance(spec, dict):
        keys = ", ".join(map(repr, spec)).replace("'", '"')
        what = f"{text(given)} is a dict" if one else "The elements are dicts"
        cause = f"{what} of {short(keys, 60)}, and `{code}` unpacks a dict into its keys."
        new = text(given) if one else "batch" if spot.value("batch") is None else "element"
        values = _values(wanted, list(spec), new, source)
        below = f"{', '.join(wanted)} = {values}" if values and all(wanted) else None
        new = new if below is not None else None
        advice = f"Read the values by their keys: x = {text(given) if one else 'batch'}[{keys.partition(',')[0]}]."
        if one and values and all(wanted):
            edit = Edit(spot.file, *source.kept_lines({given: values}))
            return Explanation(RULE, spot.file, statement.lineno, cause, edit)
    elif type(spec) is tuple and spec:
        cause = f"{element} has {_counted(spec)}, and `{code}` has {len(wanted)} names."
        if not all(wanted):
            return None
        new, below = _parts(wanted, spec, statement, spot)
        outer = statement.target if isinstance(statement, ast.For) else statement.targets[0]
        new = f"({new})" if new is not None and target is not outer else new
        advice = f"Write one name for each part, or give the dataset a part for {wanted[-1]}."
    else:
        cause = f"An element is one tensor, not {len(wanted)}, and `{code}` unpacks its rows."
        unused = all(wanted) and not any(_is_read(one, statement, source) for one in wanted[1:])
        new = wanted[0] if unused else None
        advice = f"Zip it with a dataset that has {wanted[-1] or 'the labels'}: tf.data.Dataset.zip((ds, labels))."
    if new is None:
        return Explanation(RULE, spot.file, statement.lineno, cause, None, advice)
    return Explanation(RULE, spot.file, statement.lineno, cause, _edit(spot, statement, target, new, below))


def _counted(spec: tuple[Any, ...]) -> str:
    """`2 parts`, and what of these nests."""
    if spec[0] is int:
        inner = len(spec[1]) if type(spec[1]) is tuple else 1
        return f"2 parts, the count and {'a tuple of ' + str(inner) if inner > 1 else 'the element'}"
    inside = [
        f"a dict of {len(one)}" if isinstance(one, dict) else f"a tuple of {len(one)}"
        for one in spec if isinstance(one, dict) or type(one) is tuple
    ]  # fmt: skip
    counted = f"{len(spec)} part{'s' * (len(spec) != 1)}"
    return f"{counted}, among them {' and '.join(inside)}" if inside else counted


def _values(wanted: list[str], keys: list[str], element: str, source: Source) -> str:
    """The values of a dict for some names; "" where nobody knows which is for which."""
    if set(wanted) == set(keys):
        return ", ".join(f'{element}["{one}"]' for one in wanted)
    labels = [one for one in keys if isinstance(one, str) and _LABEL.match(one)]
    if len(labels) != 1 or len(wanted) != 2 or not all(isinstance(one, str) for one in keys):
        return ""
    others = [one for one in keys if one != labels[0]]
    asked = (dotted(one.value) for one in ast.walk(source.tree) if isinstance(one, ast.Attribute))
    if len(others) > 1 and wanted[0] in asked:  # `x.shape`: not a dict
        return ""
    inputs = f'{element}["{others[0]}"]' if len(others) == 1 else (
        f'{{key: part for key, part in {element}.items() if key != "{labels[0]}"}}'
    )  # fmt: skip
    return f'{inputs}, {element}["{labels[0]}"]' if others else ""


def _parts(wanted: list[str], spec: tuple[Any, ...], statement: ast.stmt, spot: Spot) -> tuple[str | None, str | None]:
    """The names as they take the parts of a tuple, and a line that takes those of a dict in it."""
    if len(wanted) < len(spec):
        rest = ["_"] * (len(spec) - len(wanted))
        if getattr(spot.function, "name", "") in ("train_step", "test_step") and len(spec) == 3:
            rest[-1] = "sample_weight"  # what Keras has in the third place
        return ", ".join([*wanted, *rest]), None
    sizes = [len(one) if type(one) is tuple or isinstance(one, dict) else 1 for one in spec]
    if sum(sizes) == len(wanted):
        taken = iter(wanted)
        groups = [[next(taken) for _ in range(size)] for size in sizes]
        dicts = [place for place, one in enumerate(spec) if isinstance(one, dict)]
        if not dicts:
            return ", ".join(one[0] if len(one) == 1 else f"({', '.join(one)})" for one in groups), None
        if len(dicts) == 1 and set(groups[dicts[0]]) == set(spec[dicts[0]]):
            own, name = groups[dicts[0]], "features" if spot.value("features") is None else "inputs"
            values = ", ".join(f'{name}["{one}"]' for one in own)
            line = f"{', '.join(own)} = {values}"
            groups[dicts[0]] = [name]
            return ", ".join(one[0] if len(one) == 1 else f"({', '.join(one)})" for one in groups), line
        return None, None
    surplus = wanted[len(spec) :]
    if any(_is_read(one, statement, spot.source) for one in surplus):
        return None, None
    kept = wanted[: len(spec)]
    return f"{kept[0]}," if len(kept) == 1 else ", ".join(kept), None


def _is_read(name: str, statement: ast.stmt, source: Source) -> bool:
    """Whether a name is read in a loop, or below a statement."""
    return any(
        isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
        and one.lineno >= statement.lineno for one in ast.walk(source.tree)
    )  # fmt: skip


def _edit(spot: Spot, statement: ast.For | ast.Assign, target: _Names, new: str, below: str | None) -> Edit | None:
    """The statement, or the loop's header, with other names, and a line below it."""
    source = spot.source
    first, last = source.span(statement)
    if isinstance(statement, ast.For) and statement.body[0].lineno == statement.lineno and below is not None:
        return None
    lines = list(source.spliced({target: new}, first, last))
    if below is not None:
        inside = source.lines[statement.body[0].lineno - 1] if isinstance(statement, ast.For) else lines[0]
        lines.append(f"{indent_of(inside)}{below}")
    return Edit(spot.file, first, last, tuple(lines))
