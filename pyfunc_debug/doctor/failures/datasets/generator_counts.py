"""`Dataset.from_generator`: an element that has more, or fewer, values than its signature declares."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from pyfunc_debug.doctor.failures.datasets import generator_calls
from pyfunc_debug.doctor.failures.models import keras_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import datasets, shapes
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.situation import Situation, frames
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, method_calls, shape_of_data

RULE = "generator"
_MOST = 8
"""More values than these are not paired with dtypes; and a paste changes no more lines."""
_SAID = ("output_types", "output_shapes", "output_signature")
_TAKES = ("_MapDataset", "_ParallelMapDataset", "_FilterDataset", "_ZipDataset")
"""Datasets that take an element's parts before a loop does."""
_KINDS = {"bool": "bool", "int": "int64", "float": "float32", "str": "string", "bytes": "string"}


@dataclass(frozen=True)
class _Element:
    """What was yielded, and what is declared of each part, as TensorFlow's frame has it."""

    values: Any
    declared: tuple[Any, ...]
    shapes: list[Any]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the numbers of values are what differs."""
    found, every = _element(situation), generator_calls.calls(situation)
    if found is None or not every:
        return None
    file, source, call = every[0]
    function = generator_calls.function_of(source, generator_calls.given(call))
    yields = generator_calls.yields_of(function)
    written = yields[0].value if len(yields) == 1 else _of_expression(generator_calls.given(call))
    word = "output_signature" if any(one.arg == "output_signature" for one in call.keywords) else "output_types"
    line = written.lineno if written is not None else _line(yields, found.values) or call.lineno
    text = f", `{short(source.text(written), 36)}`" if written is not None else ""
    if not isinstance(found.values, (list, tuple)):
        return _one(found, file, source, written, word)
    count, wanted = len(found.values), len(found.declared)
    if count == wanted or _leaves(found.values) == _leaves(found.declared):
        return None
    cause = f"the generator yields {_counted(count)}{text}, and {word} declares {wanted}."
    taken, names = read(situation)
    edit, done = None, ""
    if max(count, wanted) <= _MOST and not any(
        isinstance(one, (dict, tuple)) for one in (*found.values, *found.declared)
    ):
        places = _places(found, names, written, source)
        if places is not None and (taken == count or (count < wanted and taken == -1)):
            edit = _declared(situation, found, places, file, source, call)
            done = f"The paste declares the {count}"
        elif places is not None and count > wanted:
            edit = _yielded(places, file, source, call, written)
            done = f"The paste yields the {wanted}"
        if edit is not None:
            cause += (
                f" {done} that {'Keras takes' if taken < 0 else 'are read' if taken in (count, wanted) else 'fit'}."
            )
    advice = f"Yield {wanted}, or declare {count}: one dtype for each value."
    return Explanation(RULE, file, line, cause, edit, "" if edit else advice, "likely" if edit else "measured")


def _line(yields: list[ast.Yield], values: Any) -> int:
    """The line of the `yield` that has as many parts as an element, or of the first."""
    count = len(values) if isinstance(values, (list, tuple)) else 1
    fitting = [one for one in yields if len(getattr(one.value, "elts", [one])) == count]
    return next((one.lineno for one in (*fitting, *yields)), 0)


def _counted(count: int) -> str:
    return f"{count} value{'s' * (count != 1)}"


def _element(situation: Situation) -> _Element | None:
    """The element that did not fit, where a tuple is declared."""
    for frame in frames(situation.inner.__traceback__):
        known = frame.f_locals
        if frame.f_code.co_name == "generator_py_func" and "values" in known:
            declared = known.get("output_types", known.get("output_signature"))
            shapes_of = known.get("flattened_shapes")
            if type(declared) is not tuple:
                return None
            return _Element(known["values"], declared, list(shapes_of) if shapes_of is not None else [])
    return None


def _leaves(value: Any) -> int:
    """How many values there are in nested tuples, lists and dicts; a list of numbers is one."""
    if isinstance(value, dict):
        return sum(map(_leaves, value.values()))
    if isinstance(value, tuple):
        return sum(map(_leaves, value))
    return len(value) if isinstance(value, list) and not all(isinstance(one, (int, float)) for one in value) else 1


def _of_expression(given: ast.expr | None) -> ast.expr | None:
    """`a, b` of `lambda: ((a, b) for ...)`."""
    body = given.body if isinstance(given, ast.Lambda) else None
    return body.elt if isinstance(body, ast.GeneratorExp) else None


def _one(found: _Element, file: str, source: Source, written: ast.expr | None, word: str) -> Explanation | None:
    """One value in the place of a tuple of values."""
    shape = shape_of_data(found.values)
    if shape is None or written is None or (shape and shape[0] == len(found.declared) > 1):
        return None
    what = f"an array of shape {shape}" if shape else "a number"
    cause = f"the generator yields one value, `{short(source.text(written), 36)}`, {what}, and {word} declares "
    if len(found.declared) > 1:
        cause += f"{len(found.declared)}: a tuple of as many is one element then."
        advice = f"Yield {len(found.declared)} values with commas between them, or declare one."
        return Explanation(RULE, file, written.lineno, cause, None, advice)
    cause += "a tuple of one: the comma in it makes that."
    edit = Edit(file, *source.kept_lines({written: f"({source.text(written)},)"}))
    return Explanation(RULE, file, written.lineno, cause, edit)


def is_mapped(situation: Situation) -> bool:
    """Whether a function takes the elements of the dataset that the failing line reads before that line does."""
    return any(type(one).__name__ in _TAKES for one in datasets.read_here(situation))


def read(situation: Situation) -> tuple[int, list[str]]:
    """How many values the failing line takes of an element, and their names; -1 for Keras, 0 where it is not known."""
    statement = situation.statement
    if statement is None:
        return 0, []
    if is_mapped(situation):
        return 0, []
    if keras_calls.fits(statement):
        return -1, []
    target: ast.AST | None = None
    if isinstance(statement, (ast.For, ast.Assign)):
        target = statement.target if isinstance(statement, ast.For) else statement.targets[0]
        given = statement.iter if isinstance(statement, ast.For) else statement.value
        counts = isinstance(given, ast.Call) and dotted(given.func) == "enumerate"
        if method_calls(given, "map", "zip", "filter"):
            return 0, []
        if counts and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            target = target.elts[1]
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    named = [dotted(one) for one in parts]
    return (len(named), named) if named and all(named) else (0, [])


def _places(found: _Element, names: list[str], written: ast.expr | None, source: Source) -> tuple[int, ...] | None:
    """Which parts of the longer of the two go with the shorter one's, by names, dtypes and shapes; None: nobody knows.

    Returns:
      A place in the longer one for each part of the shorter one, in order.
    """
    values, declared = list(found.values), list(found.declared)
    more = len(values) > len(declared)
    count, few = max(len(values), len(declared)), min(len(values), len(declared))
    cost: dict[tuple[int, ...], int] = {}
    for chosen in combinations(range(count), few):
        pairs = [(part, place) if more else (place, part) for place, part in enumerate(chosen)]
        each = [
            _apart(values[value], declared[spec], found.shapes[spec] if len(found.shapes) > spec else None)
            for value, spec in pairs
        ]  # fmt: skip
        if None not in each:
            cost[chosen] = sum(one or 0 for one in each)
    own = [source.text(one) for one in written.elts] if isinstance(written, (ast.Tuple, ast.List)) else []
    if more and len(names) == few and set(names) <= set(own):
        named = tuple(own.index(name) for name in names)
        return named if named in cost else None
    best = [one for one, price in cost.items() if price == min(cost.values())]
    return best[0] if len(best) == 1 or best[:1] == [tuple(range(few))] else None


def _dtype(value: Any) -> str:
    """`float32` of an array, a tensor or a Python value; "" where it has none."""
    found = _KINDS.get(type(value).__name__) or dtype_of(value)
    if isinstance(value, list) and value:
        return _dtype(value[0])
    return "string" if found.startswith(("str", "<U", "|S", "bytes")) else found


def _apart(value: Any, declared: Any, shape: Any) -> int | None:
    """How far a value is from what is declared; None where it cannot be it."""
    got, wanted = _dtype(value), str(getattr(getattr(declared, "dtype", declared), "name", ""))
    own = shape_of_data(value, texts=True)
    shape = shape if shape is not None else getattr(declared, "shape", None)
    fits = shape is None or own is None or shape.is_compatible_with(own)
    if not got or not fits or (got == "string") != (wanted == "string"):
        return None
    if got == wanted:
        return 0
    first, second = (one.startswith(("int", "uint")) for one in (got, wanted))
    if first == second:
        return 3 if "bool" in (got, wanted) else 1
    return 2 if first else 6


def _yielded(
    places: tuple[int, ...], file: str, source: Source, call: ast.Call, written: ast.expr | None
) -> Edit | None:
    """The `yield`, or the lambda, with these of the values."""
    leading = places == tuple(range(len(places)))
    comma = "," * (len(places) == 1)
    if isinstance(written, (ast.Tuple, ast.List)) and len(written.elts) > max(places):
        if any(isinstance(one, ast.Starred) for one in written.elts):
            return None
        text = f"{', '.join(source.text(written.elts[place]) for place in places)}{comma}"
        text = f"({text})" if comma or isinstance(source.parent(written), ast.GeneratorExp) else text
        return Edit(file, *source.kept_lines({written: text}))
    if written is not None:
        if not isinstance(written, (ast.Name, ast.Attribute)):
            return None
        row = source.text(written)
        parts = (
            f"tuple({row}[:{len(places)}])" if leading else f"({', '.join(f'{row}[{one}]' for one in places)}{comma})"
        )
        return Edit(file, *source.kept_lines({written: parts}))
    given = generator_calls.given(call)
    if not isinstance(given, ast.Lambda) or given.args.args or generator_calls.function_of(source, given) is not None:
        return None
    row = next((one for one in ("row", "parts", "element") if one not in source.text(given)), "")
    parts = f"({', '.join(f'{row}[{one}]' for one in places)}{comma})"
    body = f"({parts} for {row} in {source.text(given.body)})"
    return Edit(file, *source.kept_lines({given.body: body})) if row else None


def _declared(
    situation: Situation, found: _Element, places: tuple[int, ...], file: str, source: Source, call: ast.Call
) -> Edit | None:
    """The signature with as many parts as there are values."""
    spot = next((one for one in situation.spots if one.file == file), situation.last)
    said = {one.arg: one.value for one in call.keywords if one.arg in _SAID}
    said.update(zip(_SAID, call.args[1:3]))
    tf = alias(spot, "tensorflow") if spot is not None else "tf"
    own = assignments(source.tree)
    pieces: dict[ast.expr, str] = {}
    for word, value in said.items():
        made = own.get(value.id) if isinstance(value, ast.Name) else value
        if not isinstance(made, (ast.Tuple, ast.List)) or len(made.elts) != len(found.declared):
            return None
        texts = [source.text(one) for one in made.elts]
        if len(found.values) < len(found.declared):
            parts = [texts[place] for place in places]
        else:
            parts = []
            for place, each in enumerate(found.values):
                shape = shape_of_data(each, texts=True)
                if place in places:
                    parts.append(texts[places.index(place)])
                    continue
                if not _dtype(each) or (shape is None and word != "output_types"):
                    return None
                dtype, size = f"{tf}.{_dtype(each)}", shapes.written(shape) if shape is not None else ""
                spec = f"{tf}.TensorSpec({size}, {dtype})"
                parts.append({"output_types": dtype, "output_shapes": size}.get(word or "", spec))
        pieces[made] = f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    if not pieces:
        return None
    edit = Edit(file, *source.kept_lines(pieces))
    return edit if edit.last - edit.first < _MOST else None
