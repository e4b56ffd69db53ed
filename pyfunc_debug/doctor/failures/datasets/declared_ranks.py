"""Shapes of another rank than a generator yields, declared in from_generator: Keras builds its model with them.

No element was there yet, so that nothing has compared them with what is yielded.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from pyfunc_debug.doctor.failures.datasets import generator_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import shapes
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import Shape, sizes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, method_calls, sizes_of

RULE = "generator"
_SAID = re.compile(
    r"incompatible with the layer: expected (?:min_ndim|ndim)=\d+, found ndim=\d+\. Full shape received: (\([^()]*\))"
    r"|Invalid input shape for input .*but input has incompatible shape (\([^()]*\))",
    re.DOTALL,
)
_BATCHES = ("batch", "padded_batch", "ragged_batch")
_FARTHEST = 8
"""Lines from the first to the last that one paste changes."""


@dataclass(frozen=True)
class _Part:
    """A shape that is declared: where, and what the source says of the value that is yielded for it."""

    place: ast.expr
    declared: Shape
    yielded: Shape | None


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the input that Keras refused has the shape that a from_generator declares."""
    said = _SAID.search(situation.text)
    calls = generator_calls.calls(situation)
    if said is None or situation.body or len(calls) != 1 or situation.last is None:
        return None
    shape, (file, source, call) = sizes(said[1] or said[2]), calls[0]
    spot = next((one for one in situation.spots if one.file == file), situation.last)
    parts = _parts(source, call, spot)
    if not parts:
        return None
    first = parts[0]
    batched = any(method_calls(source.tree, name) for name in _BATCHES) and shape[1:] == first.declared
    if shape != first.declared and not (batched and shape):
        return None
    if first.yielded is None and first.declared:
        return None  # it may be the shape of an example, whose batch is missing
    if first.yielded is not None and len(first.yielded) == len(first.declared):
        return None
    declared = sizes_of(first.declared)
    cause = f"from_generator declares {declared} for what the model is given"
    batch = shape == first.declared
    edit = _written(file, source, parts, batch)
    if first.yielded is not None:
        function = generator_calls.function_of(source, generator_calls.given(call))
        name = function.name if function is not None else "the generator"
        cause += f", but {name} yields {sizes_of(first.yielded)}. Keras built the model with the declared one, before "
        cause += "any element was there."
    else:
        cause += ", a single number without an axis, and Keras built the model with it before the generator gave any "
        cause += "element. If it yields arrays, their shapes belong there: this takes those of its first element."
    if edit is None:
        edit = _of_first(spot, file, source, call, parts, batch)
    advice = f"Write there the shape of what is yielded{', with None for the size of the batch' * batch}."
    return Explanation(RULE, file, first.place.lineno, cause, edit, "" if edit else advice, "likely")


def _parts(source: Source, call: ast.Call, spot: Spot) -> list[_Part]:
    """The declared shapes with what is yielded for each; empty where they are not written out, or have names."""
    signature = next((one.value for one in call.keywords if one.arg == "output_signature"), None)
    given = signature or argument(call, 2, "output_shapes")
    if isinstance(given, ast.Name):
        name = given.id
        found = [
            one.value for one in ast.walk(source.tree)
            if isinstance(one, ast.Assign) and name in map(dotted, one.targets)
        ]  # fmt: skip
        given = found[0] if len(found) == 1 else None
    if given is None:
        return []
    function = generator_calls.function_of(source, generator_calls.given(call))
    values = [one.value for one in generator_calls.yields_of(function) if one.value is not None]
    own = Spot(spot.file, function.lineno, {}, spot.module, "") if function is not None else spot
    parts = [given]
    if isinstance(given, (ast.Tuple, ast.List)) and (signature is not None or _nests(given)):
        parts = given.elts
    every = []
    for at, one in enumerate(parts):
        place = _place(one)
        declared = _literal(place)
        if place is None or declared is None:
            return []
        seen: set[Shape | None] = set()
        for value in values:
            part: ast.expr | None = value
            if len(parts) > 1:
                part = value.elts[at] if isinstance(value, ast.Tuple) and len(value.elts) == len(parts) else None
            known = part is not None and function is not None
            seen.add(shapes.shape_of_value(part, function, own) if known else None)  # type: ignore[arg-type]
        every.append(_Part(place, declared, seen.pop() if len(seen) == 1 else None))
    return every


def _nests(given: ast.Tuple | ast.List) -> bool:
    """Whether `output_shapes` is a shape for each of several values, and not one of numbers."""
    return bool(given.elts) and all(isinstance(one, (ast.Tuple, ast.List, ast.Call)) for one in given.elts)


def _place(node: ast.expr) -> ast.expr | None:
    """Where a shape is written: `tf.TensorShape([])`, `tf.TensorSpec(shape=(), dtype=tf.float32)`, `[]`."""
    while isinstance(node, ast.Call):
        if dotted(node.func).rpartition(".")[2] not in ("TensorShape", "TensorSpec"):
            return None
        inner = argument(node, 0, "shape") or argument(node, 0, "dims")
        if inner is None:
            return None
        node = inner
    return node


def _literal(node: ast.expr | None) -> Shape | None:
    """The sizes of a shape; -1 for one with a name, which differs from all others."""
    if not isinstance(node, (ast.Tuple, ast.List)):
        return None
    return tuple(one.value if isinstance(one, ast.Constant) else -1 for one in node.elts)  # type: ignore[misc]


def _written(file: str, source: Source, parts: list[_Part], batch: bool) -> Edit | None:
    """The shapes that the source says, in the place of those of another rank."""
    if any(one.yielded is None for one in parts):
        return None
    pieces: dict[ast.expr, str] = {}
    for one in parts:
        assert one.yielded is not None
        if len(one.yielded) != len(one.declared):
            open_first = batch and one.yielded
            pieces[one.place] = shapes.written((None, *one.yielded[1:]) if open_first else one.yielded)
    first, last, lines = source.kept_lines(pieces)
    return Edit(file, first, last, lines) if last - first < _FARTHEST else None


def _of_first(
    spot: Spot, file: str, source: Source, call: ast.Call, parts: list[_Part], batch: bool
) -> Edit | None:  # fmt: skip
    """A signature by the generator's first element, with the dtypes that are declared."""
    given, types = generator_calls.given(call), _types(source, call, parts)
    if given is None or types is None or any(one.arg in ("args", None) for one in call.keywords) or len(call.args) > 3:
        return None
    tf, np = alias(spot, "tensorflow"), alias(spot, "numpy")
    text = f"({source.text(given)})" if isinstance(given, ast.Lambda) else source.text(given)
    value = f"next(iter({text}()))"
    shape = f"[None, *{np}.shape({{}})[1:]]" if batch else f"{np}.shape({{}})"
    if len(types) == 1:
        signature = f"{tf}.TensorSpec({shape.format(value)}, {types[0]})"
    else:
        same = types[0] if len(set(types)) == 1 else "t"
        pairs = f"a in {value}" if same != "t" else f"a, t in zip({value}, ({', '.join(types)}))"
        signature = f"tuple({tf}.TensorSpec({shape.format('a')}, {same}) for {pairs})"
    rest = f"{source.text(call.func)}({source.text(given)}, output_signature={signature})"
    if call.keywords and any(one.arg == "name" for one in call.keywords):
        return None
    first, last, lines = source.kept_lines({call: rest})
    return Edit(file, first, last, lines)


def _types(source: Source, call: ast.Call, parts: list[_Part]) -> list[str] | None:
    """The declared dtype of each part, as text."""
    given = argument(call, 1, "output_types")
    if given is None:
        specs = [source.parent(one.place) for one in parts]
        specs = [source.parent(one) if isinstance(one, ast.keyword) else one for one in specs]
        inner = [argument(one, 1, "dtype") if isinstance(one, ast.Call) else None for one in specs]
        return None if None in inner else [source.text(one) for one in inner if one is not None]
    if isinstance(given, (ast.Tuple, ast.List)):
        return [source.text(one) for one in given.elts] if len(given.elts) == len(parts) else None
    return [source.text(given)] if len(parts) == 1 else None
