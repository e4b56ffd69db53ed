"""`Dataset.padded_batch` whose padded_shapes or padding_values do not fit the elements of the dataset."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.code import all_nodes
from pyfunc_debug.doctor.failures.datasets import declared_types, larger_elements, padded_ranks, undecoded
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument, user_generators
from pyfunc_debug.doctor.failures.reading.shapes import Shape, recorded, written
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import as_literal, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, shape_of

RULE = "ragged-batch"
_LARGER = "Attempted to pad to a smaller size than the input element"
_VALUES = "Invalid `padding_values`"
_NESTING = re.compile(
    r"shallow structure|same (?:sequence|nested)|same keys|[Tt]he padded shape|list or tuple|TensorShape"
)
_WIDE = ("int32", "float32", "string", "bool")
"""What TensorFlow makes of a Python number, text or truth: the dtype of padding_values has to be the component's."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what padded_batch was asked for does not fit the elements."""
    spot = situation.last
    if spot is None or situation.body:
        return None
    if _LARGER in situation.message:
        return _larger(situation)
    ranks = padded_ranks.RANK.search(situation.message)
    if ranks is not None:
        return _other_rank(situation, int(ranks[1]), int(ranks[3]))
    call = _call(spot)
    known = given(situation) if call is not None else None
    if call is None or known is None:
        return None
    spec, shapes = known
    if _VALUES in situation.message:
        return _padding(spot, call, spec)
    nests = _NESTING.search(situation.message) is not None
    text = dtype_of(spec) == "string" and shape_of(spec) == () and nests
    if text and (found := undecoded.explained(spot, call, RULE)) is not None:
        return found
    return _one_dtype(situation, spot, call, spec, shapes) or (_shapes(spot, call, spec, shapes) if nests else None)


def _asked(node: ast.AST) -> Iterator[ast.Call]:
    """The calls of padded_batch in it."""
    for one in all_nodes(node):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "padded_batch":
            yield one


def _call(spot: Spot) -> ast.Call | None:
    """The one call of padded_batch in the statement that failed."""
    statement = spot.statement
    here = list(_asked(statement)) if statement is not None else []
    return here[0] if len(here) == 1 else None


def given(situation: Situation) -> tuple[Any, Any] | None:
    """The dataset's element_spec and the padded_shapes, as TensorFlow's own frame of padded_batch has them."""
    for frame in reversed(frames(situation.inner.__traceback__)):
        known = frame.f_locals
        if "input_dataset" in known and "padded_shapes" in known:
            return getattr(known["input_dataset"], "element_spec", None), known["padded_shapes"]
    return None


def _is_shape(value: Any) -> bool:
    """Whether padded_shapes, or a part of it, is one shape: sizes, and no shapes."""
    if type(value).__name__ == "TensorShape":
        return True
    return isinstance(value, (list, tuple)) and all(one is None or isinstance(one, int) for one in value)


def _parts(value: Any) -> list[Any] | None:
    """The shapes side by side in padded_shapes; None for one shape, and for what nests deeper."""
    if _is_shape(value) and not (isinstance(value, tuple) and value == ()):
        return None
    parts = list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, (list, tuple)) else []
    return parts if parts and all(map(_is_shape, parts)) else None


def _one_dtype(situation: Situation, spot: Spot, call: ast.Call, spec: Any, shapes: Any) -> Explanation | None:
    """Several shapes for a dataset whose generator has one dtype declared: then an element is one tensor."""
    parts = _parts(shapes)
    if not hasattr(spec, "dtype") or parts is None or len(parts) < 2:
        return None
    asked = argument(call, 1, "padded_shapes")
    cause = (
        f"padded_shapes has {len(parts)} shapes, but an element of this dataset is one {spec.dtype.name} tensor: its "
        "one dtype says so, and padded_shapes has to nest as the elements do. "
    )
    return declared_types.several(situation, len(parts), cause, RULE) or Explanation(
        RULE, spot.file, (asked or call).lineno, cause.rstrip(), None,
        f"Give padded_shapes one shape, or make the elements of {len(parts)} tensors.",
    )  # fmt: skip


def _shapes(spot: Spot, call: ast.Call, spec: Any, shapes: Any) -> Explanation | None:
    """Shapes that nest otherwise than the elements, or have another rank."""
    asked = argument(call, 1, "padded_shapes")
    leaves = list(_leaves(spec))
    if asked is None or not leaves:
        return None
    given = [_sizes(one) for one in (_parts(shapes) or [shapes])]
    fitted = []
    for place, (_, known) in enumerate(leaves):
        if known is None:
            return None
        own = given[place] if len(given) == len(leaves) else None
        fits = [one for one in given if one is not None and len(one) == len(known)]
        fitted.append(_fitted(own or (fits[0] if fits and len(given) != len(leaves) else None), known))
    texts = iter(map(written, fitted))
    new = _like(spec, texts)
    edit = edit_of(spot.file, spot.source.replaced({asked: new}))
    what = "a dict" if isinstance(spec, dict) else f"tuples of {len(spec)}" if isinstance(spec, tuple) else "one tensor"
    cause = (
        f"padded_shapes={short(spot.source.text(asked), 40)} does not fit the elements of this dataset, which are "
        f"{what} with {_said(leaves)}. It needs a shape for each tensor, nested as they are; None pads to the longest."
    )
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else f"Write padded_shapes={new}.")


def _leaves(spec: Any) -> Iterator[tuple[str, Shape | None]]:
    """The name and the shape of each tensor of an element; no shape without a rank, or of what is not a tensor."""
    if isinstance(spec, dict):
        for key, one in spec.items():
            yield from ((f"{key}{name}", shape) for name, shape in _leaves(one))
    elif isinstance(spec, tuple) and not hasattr(spec, "dtype"):
        for one in spec:
            yield from _leaves(one)
    else:
        yield "", _sizes(spec.shape) if type(spec).__name__ == "TensorSpec" else None


def _said(leaves: list[tuple[str, Shape | None]]) -> str:
    """`2 and 0 axes`, or `1 axis`."""
    ranks = [f"{len(shape or ())}{f' ({name})' * bool(name)}" for name, shape in leaves]
    axes = "axis" if ranks == ["1"] else "axes"
    return f"{', '.join(ranks[:-1])}{' and ' * (len(ranks) > 1)}{ranks[-1]} {axes}"


def _sizes(value: Any) -> Shape | None:
    """A shape as its sizes; None for one without a rank, and for what is not a shape."""
    if type(value).__name__ == "TensorShape":
        return tuple(value.as_list()) if value.rank is not None else None
    return tuple(value) if _is_shape(value) else None


def _fitted(given: Shape | None, known: Shape) -> Shape:
    """The program's own shape, as far as it has the axes of an element and room for it; else that of an element."""
    if given is not None and len(given) == len(known) + 1 and given[0] is None:
        given = given[1:]  # that of a batch was meant
    if given is None or len(given) != len(known):
        return known
    return tuple(
        size if one is None or size is None or size >= one else one for size, one in zip(given, known)
    )  # fmt: skip


def _like(spec: Any, texts: Iterator[str]) -> str:
    """Texts, nested as the elements are."""
    if isinstance(spec, dict):
        return "{" + ", ".join(f"{key!r}: {_like(one, texts)}" for key, one in spec.items()) + "}"
    if isinstance(spec, tuple) and not hasattr(spec, "dtype"):
        inside = [_like(one, texts) for one in spec]
        return f"({', '.join(inside)}{',' * (len(inside) == 1)})"
    return next(texts)


def _padding(spot: Spot, call: ast.Call, spec: Any) -> Explanation | None:
    """Padding values of another dtype: a Python 0 is an int32, also for a tensor of int64."""
    asked = argument(call, 2, "padding_values")
    specs = list(spec.values()) if isinstance(spec, dict) else list(spec) if isinstance(spec, tuple) else [spec]
    if asked is None or not all(type(one).__name__ == "TensorSpec" for one in specs):
        return None
    parts = [asked]
    if isinstance(asked, ast.Tuple):
        parts = list(asked.elts)
    elif isinstance(asked, ast.Dict) and isinstance(spec, dict):
        by_key = {getattr(key, "value", None): one for key, one in zip(asked.keys, asked.values)}
        parts = [by_key[key] for key in spec if key in by_key]
    spread = len(parts) == 1 and len(specs) > 1
    tf, text = alias(spot, "tensorflow"), spot.source.text
    dtypes = [one.dtype.name for one in specs]
    if len(parts) != len(specs) and not spread:
        return None
    values = parts * len(specs) if spread else parts
    new = iter([_value(one, dtype, tf, text(one)) for one, dtype in zip(values, dtypes)])
    edit = edit_of(spot.file, spot.source.replaced({asked: _like(spec, new)}))
    cause = (
        f"padding_values={short(text(asked), 40)} must have the dtypes of the elements, {' and '.join(dtypes)}: "
        "nothing is converted, and a Python 0 is an int32 here."
    )
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else "Give each the dtype of its tensor.")


def _value(node: ast.expr, dtype: str, tf: str, text: str) -> str:
    """A padding value in its tensor's dtype; where text stands for a number, or a number for text, the usual one."""
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    if dtype == "string":
        return text if isinstance(value, (str, bytes)) or value is None else '""'
    if isinstance(value, (str, bytes)):
        text = "0"
    if dtype == "float32" and type(value) is int:
        return f"{float(value)}"
    if dtype in _WIDE and type(value).__name__ == {"int32": "int", "float32": "float", "bool": "bool"}[dtype]:
        return text
    return f"{tf}.constant({text}, {tf}.{dtype})" if value is not None else f"{tf}.cast({text}, {tf}.{dtype})"


def _written_once(situation: Situation) -> tuple[str, ast.Call, ast.expr, Spot] | None:
    """The program's one call of padded_batch with padded_shapes: its file, and what is given to it."""
    found = [
        (file, one, asked) for file, source in situation.sources() for one in _asked(source.tree)
        if (asked := argument(one, 1, "padded_shapes")) is not None
    ]  # fmt: skip
    spot = next((one for one in reversed(situation.spots) if found and one.file == found[0][0]), None)
    return (*found[0], spot) if len(found) == 1 and spot is not None else None


def _in_buckets(situation: Situation) -> tuple[str, ast.Call, ast.expr, Spot] | None:
    """The same of the program's one call of bucket_by_sequence_length, which pads as padded_batch does."""
    call = padded_ranks.padding_call(situation)
    asked = argument(call[1], 3, "padded_shapes") if call is not None else None
    spot = next((one for one in reversed(situation.spots) if call is not None and one.file == call[0]), None)
    return (*call, asked, spot) if call is not None and asked is not None and spot is not None else None


def _larger(situation: Situation) -> Explanation | None:
    """An element with more of an axis than padded_shapes has room for."""
    found = _written_once(situation)
    if found is None:
        return None
    file, call, asked, spot = found
    parts = larger_elements.larger(situation)
    if parts:
        pieces = larger_elements.places(spot.source, asked, parts)
        line = min((one.lineno for one in pieces), default=asked.lineno)
        cause = (
            f"{parts[0].words()} of padded_shapes: padded_batch fills up, and never cuts. None in the place of a size "
            "pads to the longest of each batch; to keep the size, cut the elements in a map before."
        )
        edit = edit_of(file, spot.source.replaced(pieces)) if pieces else None
        advice = "" if edit else f"Write {written(parts[0].fitted)} for it."
        return Explanation(RULE, file, line, cause, edit, advice)
    cause = (
        f"an element is larger than padded_shapes={short(spot.source.text(asked), 40)}: padded_batch fills up, and "
        "never cuts. None in the place of a size pads to the longest of each batch."
    )
    advice = "Write None for that size, or cut the elements in a map before (x[:n])."
    sizes, edit = asked.elts if isinstance(asked, (ast.List, ast.Tuple)) else [], None
    if len(sizes) == 1 and isinstance(sizes[0], ast.Constant):
        edit = edit_of(file, spot.source.replaced({asked: "[None]"}))
    return Explanation(RULE, file, call.lineno, cause, edit, "" if edit else advice)


def _other_rank(situation: Situation, place: int, rank: int) -> Explanation | None:
    """Elements whose rank only a run shows have another one than their padded shape."""
    found = _written_once(situation) or _in_buckets(situation)
    if found is None:
        return None
    file, call, asked, spot = found
    shapes = spot.value(asked.id) if isinstance(asked, ast.Name) else as_literal(spot.source.text(asked))
    given = [_sizes(one) for one in (_parts(shapes) or [shapes])]
    if place >= len(given) or None in given or isinstance(shapes, dict):
        return None
    ranks = _recorded_ranks(situation) | {place: rank}
    fitted = [_fitted(one, (None,) * ranks.get(own, len(one or ()))) for own, one in enumerate(given)]
    texts = [written(one) for one in fitted if one is not None]
    new = texts[0] if _is_shape(shapes) else f"({', '.join(texts)}{',' * (len(texts) == 1)})"
    edit = edit_of(file, spot.source.replaced({asked: new}))
    count = len(given[place] or ())
    which = f"part {place} of padded_shapes" if len(given) > 1 else "padded_shapes"
    cause = (
        f"{which} has {count} size{'s' * (count != 1)}, but the elements have {rank} axes there. It describes one "
        "element, without the axis of the batch; None pads to the longest."
    )
    return Explanation(RULE, file, call.lineno, cause, edit, "" if edit else f"Write padded_shapes={new}.")


def _recorded_ranks(situation: Situation) -> dict[int, int]:
    """The ranks that the parts of a generator's elements had in all its calls."""
    made = user_generators(situation)
    seen = recorded(situation.rows, made[0].id)[0] if len(made) == 1 else {}
    return {place: len(shape) for place, shape in seen.items()}
