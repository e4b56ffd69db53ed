"""The function of a Dataset.map as plain Python: a generator calls it with values, its first result says the spec.

A py_function needs dtypes and, for Keras, shapes in the program's text. Where the source does not say them, only
an element does: the paste asks the first one as it runs, and takes any structure that tf.data takes.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.pastes.texts_of_ops import values_of_texts
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import tail
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, indent_of, names, parameters
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    dtype_of,
    is_dataset,
    root_is,
    shape_of,
    symbolic_parts,
)
from pyfunc_debug.program.syntax import copied

_OF_TENSORS = {"numpy", "set_shape", "get_shape", "as_list", "rank"}
"""Attributes that an eager tensor has, and an array has not."""
_FARTHEST = 16
"""Lines from the first to the last map of the same function that one paste changes."""
_NAMES = ("as_python", "in_python", "python_rows")
_ROWS = ("rows", "results", "each_row")


def best(situation: Situation) -> wrapping.Wrap | None:
    """Python that needs values, put where it has them: as little of it as can be said for sure, else all of a map."""
    of_ops = _is_text_of_ops(situation)
    piece = wrapping.expression(situation) if of_ops else None
    if piece is not None and piece.sure:
        return piece
    values = values_of_texts(situation.spots[-1]) if of_ops else None
    if values is not None:
        return wrapping.Wrap(values, True)
    ways = [wrapping.helper_call] if _rest_is_graph(situation) else []
    found = [one for way in (*ways, wrapping.mapped_function) if (one := way(situation)) is not None]
    sure = next((one for one in found if one.sure), None)
    return sure or as_python(situation) or next(iter(found), None) or wrapping.expression(situation)


def _is_text_of_ops(situation: Situation) -> bool:
    """Whether what failed is text that TensorFlow's ops made: with values, too, they give a tensor."""
    spot = situation.spots[-1]
    function, statement = spot.function, spot.statement
    if function is None or statement is None:
        return False
    parts = symbolic_parts(statement, spot)
    given = parameters(function)
    made = [one for name, one in parts.items() if re.split(r"\W", name, maxsplit=1)[0] not in given]
    return bool(made) and all(dtype_of(one) == "string" for one in made)


def _rest_is_graph(situation: Situation) -> bool:
    """Whether what comes after a helper's call in its caller hands its result to TensorFlow only."""
    outer = situation.outer(situation.spots[-1])
    function = outer.function if outer is not None else None
    if outer is None or function is None:
        return True
    made: set[str] = set()
    for one in own_nodes(function):
        if isinstance(one, ast.Assign):
            here = one.lineno <= outer.line <= (one.end_lineno or 0)
            if here or made & set(names(one.value)):
                made |= {name for target in one.targets for name in names(target)}
        if not isinstance(one, ast.Call) or one.lineno <= outer.line:
            continue
        method = isinstance(one.func, ast.Attribute) and dotted(one.func.value) in made
        given = any(made & set(names(part)) for part in (*one.args, *(word.value for word in one.keywords)))
        known = any(root_is(one.func, outer, module) for module in ("tensorflow", "keras"))
        if (method and one.func.attr not in ("set_shape", "get_shape")) or (given and not known):  # type: ignore[attr-defined]
            return False
    return True


def as_python(situation: Situation, traced: int | None = None) -> wrapping.Wrap | None:
    """`ds.map(encode)` as `ds.apply(as_python)`, with `as_python` above it.

    Args:
      situation: The failure.
      traced: Index of the mapped function's frame among the spots, where tracing went on inside it.
    """
    index = wrapping.entry(situation)[0] if traced is None else traced
    found, spot = wrapping.dataset_call(situation, index), situation.spots[index]
    around = situation.spots[index - 1] if index else None
    if found is None or getattr(found[1].func, "attr", "") != "map" or around is None or around.generated:
        return None
    outer, call, given = found
    function, source, spec = spot.function, outer.source, element_spec(situation, spot)
    statement = source.statement(call.lineno)
    if function is None or statement is None or spec is None:
        return None
    inside = [one.function for one in situation.spots[index:]]
    if any(one is not None and wrapping.is_graph(one) for one in inside[1:]):
        return None  # it is traced wherever it is called
    if wrapping.fails_with_values(situation, situation.spots[index:]):
        return None
    row = _rows(given, function, spec, inside, outer, spot)
    if row is None:
        return None
    tf, blanks = alias(outer, "tensorflow"), indent_of(source.lines[statement.lineno - 1])
    taken = {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}
    taken |= {one.name for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef)}
    name = next((one for one in _NAMES if one not in taken), None)
    rows = next((one for one in _ROWS if one not in taken), None)
    if name is None or rows is None:
        return None
    alike = _alike(source, statement, given)
    first, last = alike[0][0].lineno, max(one.end_lineno or one.lineno for one, _ in alike)
    kept = _general(source, spec, outer)
    relaxed = () if not kept else (
        f"{blanks}    spec = {tf}.nest.map_structure(lambda s: {tf}.TensorSpec({kept}, s.dtype), spec)",
    )  # fmt: skip
    said = "dtypes are" if kept else "dtypes and shapes are"
    pasted = (
        f"{blanks}def {name}(ds):  # Python with values; {said} those of the first result",
        f"{blanks}    {rows} = lambda: ({row})",
        f"{blanks}    spec = {tf}.data.Dataset.from_tensors(next({rows}())).element_spec",
        *relaxed,
        f"{blanks}    return {tf}.data.Dataset.from_generator({rows}, output_signature=spec)",
        *source.spliced({tail(one): f".apply({name})" for _, one in alike}, first, last),
    )
    return wrapping.Wrap(Edit(outer.file, first, last, pasted), True)


def element_spec(situation: Situation, spot: Spot) -> Any:
    """What the mapped dataset holds."""
    found = mapped_dataset(situation, spot)
    return None if found is None else found.element_spec


def mapped_dataset(situation: Situation, spot: Spot) -> Any:
    """The mapped dataset: TensorFlow's own frames know it."""
    found = None
    for error in (situation.inner, situation.error):
        for frame in frames(error.__traceback__):
            if spot.first_line(frame.f_code) is not None and found is not None:
                break
            given = frame.f_locals.get("input_dataset")
            found = given if is_dataset(given) else found
        if found is not None:
            return found
    return None


def _rows(
    given: ast.expr, function: Function, spec: Any, inside: list[Function | None], outer: Spot, spot: Spot
) -> str | None:
    """`encode(text.decode(), label) for text, label in ds.as_numpy_iterator()`."""
    listed, arguments = parameters(function), function.args
    parts = list(spec) if type(spec) is tuple else [spec]
    if arguments.vararg is not None and not listed:
        listed = [f"x{place}" if len(parts) > 1 else "x" for place in range(len(parts))]
    if len(listed) < len(parts) or (isinstance(given, ast.Lambda) and arguments.vararg is not None):
        return None
    listed = listed[: len(parts)]
    if "ds" in listed or any(type(one).__name__ not in ("TensorSpec", "dict", "tuple") for one in parts):
        return None
    eager = any(one is not None and _wants_tensors(one) for one in inside)
    keeps = any(one is not None and (wrapping.means_bytes(one, spot) or _is_binary(one)) for one in inside)
    values = {name: name if eager or keeps else _text(name, one) for name, one in zip(listed, parts)}
    if isinstance(given, ast.Lambda):
        row = _with(_of_parts(given.body, len(parts)), values)
    else:
        called = outer.source.text(given) + (".python_function" if wrapping.is_graph(function) else "")
        row = f"{called}({', '.join(values.values())})"
    every = "ds" if eager else "ds.as_numpy_iterator()"
    return f"{row} for {', '.join(listed)} in {every}"


def _of_parts(body: ast.expr, count: int) -> ast.expr:
    """`[load(x), load(y)]` of an element of as many parts as a tuple: tf.data makes one tensor of a list."""
    made = isinstance(body, ast.List) and all(isinstance(one, ast.Call) for one in body.elts)
    return ast.Tuple(body.elts, ast.Load()) if made and len(body.elts) == count > 1 else body  # type: ignore[attr-defined]


def _wants_tensors(function: Function) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr in _OF_TENSORS for one in ast.walk(function))


def _is_binary(function: Function) -> bool:
    """Whether a function gets a file's content, not text: `tf.io.decode_png(raw)`."""
    given = parameters(function)
    reads = [one for one in calls(function) if dotted(one.func).rpartition(".")[2].startswith(("decode_", "parse_"))]
    return any(dotted(part) in given for one in reads for part in one.args)


def _text(name: str, spec: Any) -> str:
    """A value with text for text: TensorFlow gives bytes."""
    if type(spec) is dict:
        parts = {key: f"{name}[{key!r}]" for key in spec}
        texts = [f"{key!r}: {one}" for key in spec if (one := _text(parts[key], spec[key])) != parts[key]]
        return f"{{**{name}, {', '.join(texts)}}}".replace("'", '"') if texts else name
    if type(spec).__name__ != "TensorSpec" or dtype_of(spec) != "string":
        return name
    shape = shape_of(spec)
    if shape == ():
        return f"{name}.decode()"
    return f"[one.decode() for one in {name}]" if shape is not None and len(shape) == 1 else name


def _with(body: ast.expr, values: dict[str, str]) -> str:
    """A lambda's body on the values of its arguments."""

    class Values(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return ast.parse(values.get(node.id, node.id), mode="eval").body

    return ast.unparse(ast.fix_missing_locations(Values().visit(copied(body))))


def _general(source: Source, spec: Any, outer: Spot) -> str:
    """The shape that all results have, where it is not that of the first one; empty where it is."""
    text = "\n".join(source.code)
    batched = any(one.func.attr == "batch" for one in calls(source.tree) if isinstance(one.func, ast.Attribute))
    if "padded_batch" in text or "ragged" in text or not (batched or wrapping.fits(outer)):
        return "[None] * s.shape.rank"
    shapes = [shape_of(one) for one in (spec if type(spec) is tuple else (spec,))]
    many = all(one and one[0] is None for one in shapes)
    return "[None, *s.shape[1:]]" if many else ""


def _alike(source: Source, statement: ast.stmt, given: ast.expr) -> list[tuple[ast.stmt, ast.Call]]:
    """This map and those near it, in the same block, of the same function: with their statements."""
    text = source.text(given)
    block = source.block(statement) or [statement]
    found = []
    for one in block[block.index(statement) :]:
        for call in calls(one):
            mapped = isinstance(call.func, ast.Attribute) and call.func.attr == "map" and call.args
            if mapped and source.text(call.args[0]) == text and one.lineno - statement.lineno < _FARTHEST:
                found.append((one, call))
        if isinstance(given, ast.Lambda):
            break
    return found
