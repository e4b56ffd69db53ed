"""`Dataset.from_generator` that says nothing of shapes, or not of a rank, and what comes after needs them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyfunc_debug.doctor.failures.datasets import generator_calls, yielded_keys
from pyfunc_debug.doctor.failures.models import class_weights
from pyfunc_debug.doctor.failures.pastes import learned_shapes, wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading import shapes
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, shape_of, symbolic_parts

_NO_SHAPE = re.compile(r"unknown TensorShape|unknown rank|ndim=None|<unknown>|contains no shape", re.IGNORECASE)
_FARTHEST = 20
"""Lines over which the calls of several datasets are pasted together."""


def without_shapes(situation: Situation) -> Explanation | None:
    """`from_generator(output_types=...)` without `output_shapes`: elements of unknown shape."""
    if situation.body or not (_NO_SHAPE.search(situation.message) or of_unknown_rank(situation)):
        return None
    every = [(*one, generator_calls.types_alone(one[2])) for one in generator_calls.calls(situation)]
    found = [(*one[:3], one[3]) for one in every if one[3] is not None]
    if not found or (len(found) > 1 and any(file != found[0][0] for file, *_ in found)):
        return None
    file, source, call, types = found[0]
    spot = next((one for one in situation.spots if one.file == file), situation.last)
    others = sorted({one.lineno for _, _, one, _ in found} - {call.lineno})
    whose = f"this dataset, and of {_those_of(others)}," if others else "this dataset"
    cause = f"output_types alone says nothing of shapes, so that the elements of {whose} have unknown ones. "
    cause += "output_signature says both."
    edits = [_declared(file, source, one, given, spot) for _, _, one, given in found]
    edit = None
    if None not in edits:
        edit = together([one for one in edits if one is not None], source.lines)
        edit = edit if len(edits) == 1 or edit.last - edit.first < _FARTHEST else None
    edit = edit or learned_shapes.shaped(situation)
    if (
        edit is None
        and not others  # the elements of another may have other shapes
        and spot is not None
        and (shapes_of := _of_first(types, generator_calls.given(call), source, spot)) is not None
    ):
        placed = source.replaced({call: source.with_argument(call, f"output_shapes={shapes_of}")})
        edit = edit_of(file, placed)
        cause = cause.replace("output_signature says both.", "The first element says them, if all have the same.")
    where = f"its place, and in {_line_numbers(others)}" if others else "its place"
    return Explanation(
        "unknown-shape", file, call.lineno, cause, edit,
        "" if edit else f"Write output_signature=tf.TensorSpec([...], dtype) in {where}.", "likely",
    )  # fmt: skip


def _line_numbers(lines: list[int]) -> str:
    *first, last = map(str, lines)
    return f"lines {', '.join(first)} and {last}" if first else f"line {last}"


def _those_of(lines: list[int]) -> str:
    return f"{'that' if len(lines) == 1 else 'those'} of {_line_numbers(lines)}"


def _declared(file: str, source: Source, call: ast.Call, types: ast.expr, spot: Spot | None) -> Edit | None:
    """A call of from_generator with the signature that the source tells of what it yields; None where it tells none."""
    function = generator_calls.function_of(source, generator_calls.given(call))
    yielded = [one.value for one in ast.walk(function) if isinstance(one, ast.Yield)] if function is not None else []
    value = yielded[0] if len(yielded) == 1 else None
    if spot is None or function is None or value is None:
        return None
    new = _signature(types, value, source, Spot(file, function.lineno, {}, spot.module, ""), function)
    if new is None:
        return None
    rest = [source.text(one) for one in call.args if one is not types]
    rest += [f"{one.arg}={source.text(one.value)}" for one in call.keywords if one.value is not types]
    placed = source.replaced({call: f"{source.text(call.func)}({', '.join([*rest, f'output_signature={new}'])})"})
    return edit_of(file, placed)


def with_open_ranks(situation: Situation) -> Explanation | None:
    """`tf.TensorSpec(None, ...)`, `tf.TensorShape(None)`: a part of unknown rank, which Keras cannot batch."""
    if situation.body or not (_NO_SHAPE.search(situation.message) or of_unknown_rank(situation)):
        return None
    for file, source, call in generator_calls.calls(situation):
        places = [one for said in _said(call, source) for one in _open_places(*said)]
        if not places:
            continue
        function = generator_calls.function_of(source, generator_calls.given(call))
        yielded = [one.value for one in generator_calls.yields_of(function) if one.value is not None]
        spot = next((one for one in situation.spots if one.file == file), situation.last)
        pieces: dict[ast.expr, str] = {}
        for place, path, _ in places:
            known = {
                None if function is None or part is None
                else shapes.shape_of_value(part, function, Spot(file, function.lineno, {}, _module(spot), ""))
                for part in (yielded_keys.part_at(value, path, function) for value in yielded)
            }  # fmt: skip
            shape = known.pop() if len(known) == 1 else None
            if shape is not None:
                pieces[place] = shapes.written(shape)
        texts = list(dict.fromkeys(source.text(whole) for _, _, whole in places))
        named = "the None of output_shapes" if texts == ["None"] else f"`{short(texts[0], 50)}`"
        named += ", and others like it," if len(texts) > 1 else ""
        name = function.name if function is not None else "the generator"
        cause = f"{named} {'says' if len(texts) == 1 else 'say'} nothing of the rank, and what comes after needs it. "
        line = min(one.lineno for one, _, _ in places)
        if len(pieces) == len(places):
            edit = edit_of(file, source.replaced(pieces))
            new = next(iter(pieces.values()))
            number = len(set(pieces.values())) == 1 and new == shapes.written(())
            cause += (
                f"By the source, {name} yields one number there."
                if number
                else f"By the source, what {name} yields has it."
            )
            advice = "" if edit else f"Write {new} for the None in it."
        else:
            edit = learned_shapes.shaped(situation)
            cause += f"The first element of {name} says it." if edit else ""
            advice = "" if edit else f"Write for its None the shape of what {name} yields: [] for one number."
        return Explanation("unknown-shape", file, line, cause.strip(), edit, advice, "likely")
    return None


def _module(spot: Spot | None) -> Mapping[str, Any]:
    return spot.module if spot is not None else {}


def _said(call: ast.Call, source: Source) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """The shapes that a call declares, also by a name that the file assigns once; and the dtypes beside them."""
    signature = argument(call, 4, "output_signature")
    given, types = signature or argument(call, 2, "output_shapes"), argument(call, 1, "output_types")
    if isinstance(given, ast.Name):
        assigned = list(
            generator_calls.assigned(ast.Call(call.func, [], [ast.keyword("output_shapes", given)]), source)
        )
        given = assigned[0] if len(assigned) == 1 else None
    if given is not None:
        yield given, None if signature is not None else types


def _open_places(
    given: ast.expr, types: ast.expr | None, path: tuple[Any, ...] = ()
) -> Iterator[tuple[ast.expr, tuple[Any, ...], ast.expr]]:
    """Each shape that is None: its place, the keys and numbers of its part in an element, and what it is written in."""
    nests = types is None or isinstance(types, (ast.Tuple, ast.Dict))
    if isinstance(given, ast.Tuple) and (nests or any(isinstance(one, ast.Call) for one in given.elts)):
        below = types.elts if isinstance(types, ast.Tuple) else [None] * len(given.elts)
        for at, (one, beside) in enumerate(zip(given.elts, below)):
            yield from _open_places(one, beside if types is None or beside is not None else types, (*path, at))
    elif isinstance(given, ast.Dict):
        known = (
            {_constant(key): one for key, one in zip(types.keys, types.values)} if isinstance(types, ast.Dict) else {}
        )
        for key, one in zip(given.keys, given.values):
            if _constant(key) is not None:
                yield from _open_places(one, known.get(_constant(key), types), (*path, _constant(key)))
    elif isinstance(given, ast.Call) and dotted(given.func).rpartition(".")[2] in ("TensorSpec", "TensorShape"):
        shape = argument(given, 0, "shape") or argument(given, 0, "dims")
        if isinstance(shape, ast.Constant) and shape.value is None:
            yield shape, path, given
    elif types is not None and isinstance(given, ast.Constant) and given.value is None and path:
        yield given, path, given


def _constant(key: ast.expr | None) -> Any:
    return key.value if isinstance(key, ast.Constant) else None


def of_unknown_rank(situation: Situation) -> bool:
    """Whether a size of a tensor was asked for whose rank is not known, or Keras asked for it to weigh classes."""
    if class_weights.asks_rank(situation):
        return True
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or "NoneType" not in situation.message:
        return False
    value = wrapping.value_here(spot, statement) or statement
    sized = any(isinstance(one, ast.Attribute) and one.attr == "shape" for one in ast.walk(value))
    return sized and any(shape_of(one) is None for one in symbolic_parts(value, spot).values())


def _of_first(types: ast.expr, given: ast.expr | None, source: Source, spot: Spot) -> str | None:
    """The shapes of the first element, as the program asks for them when it runs."""
    if given is None or any(one.arg == "args" for one in _keywords(source, types)):
        return None
    np, text = alias(spot, "numpy"), source.text(given)
    first = f"next(iter({f'({text})' if isinstance(given, ast.Lambda) else text}()))"
    if isinstance(types, ast.Dict):
        return f"{{key: {np}.shape(one) for key, one in {first}.items()}}"
    if isinstance(types, ast.Tuple) and any(isinstance(one, (ast.Tuple, ast.Dict)) for one in types.elts):
        return f"(lambda one: {_shapes_like(types, 'one', np, source)})({first})"
    return f"tuple({np}.shape(one) for one in {first})" if isinstance(types, ast.Tuple) else f"{np}.shape({first})"


def _shapes_like(types: ast.expr, part: str, np: str, source: Source) -> str:
    """The shapes of an element, nested as its dtypes are."""
    if isinstance(types, ast.Tuple):
        return f"({', '.join(_shapes_like(one, f'{part}[{n}]', np, source) for n, one in enumerate(types.elts))},)"
    if isinstance(types, ast.Dict) and None not in types.keys:
        keys = [source.text(key) for key in types.keys if key is not None]
        pairs = (f"{key}: {_shapes_like(one, f'{part}[{key}]', np, source)}" for key, one in zip(keys, types.values))
        return f"{{{', '.join(pairs)}}}"
    return f"{np}.shape({part})"


def _keywords(source: Source, argument: ast.expr) -> list[ast.keyword]:
    """The keywords of the call that an argument is given to."""
    call = source.parent(argument)
    call = source.parent(call) if isinstance(call, ast.keyword) else call
    return call.keywords if isinstance(call, ast.Call) else []


def _signature(types: ast.expr, value: ast.expr, source: Source, spot: Spot, function: Function) -> str | None:
    """The TensorSpec of each part that is yielded, by the shape that the source says."""
    if isinstance(types, (ast.Tuple, ast.List)):
        if not isinstance(value, (ast.Tuple, ast.List)) or len(value.elts) != len(types.elts):
            return None
        parts = [_signature(*pair, source, spot, function) for pair in zip(types.elts, value.elts)]
        return (
            None
            if None in parts
            else f"({', '.join(str(one) for one in parts)},)".replace(",)", ")" if len(parts) > 1 else ",)")
        )
    shape = shapes.shape_of_value(value, function, spot)
    return (
        None
        if shape is None
        else f"{alias(spot, 'tensorflow')}.TensorSpec({shapes.written(shape)}, {source.text(types)})"
    )
