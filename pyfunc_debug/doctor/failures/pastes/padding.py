"""`padded_batch` in the place of `batch`, for elements of which one part differs in size."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor.failures.reading.datasets import part_names
from pyfunc_debug.doctor.failures.reading.shapes import Shape, written
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.failures.reading.symbols import alias, of_keras

RESIZES = " A map brings the images to one size"
PADS = " padded_batch fills them up to the longest of each batch."
FITS = " The model takes {}: what is shorter is filled up with zeros, what is longer is cut."


def padded(
    situation: Situation, source: Source, call: ast.Call, spec: Any, known: list[Shape]
) -> tuple[str, str] | None:
    """What stands in the place of `.batch(...)`, and a sentence on it; None where the elements' shapes are not known.

    Args:
      situation: The failure, whose models may take elements of one size only.
      source: The file.
      call: The call of `batch`.
      spec: The element_spec of the dataset that it is called on.
      known: What is known of the shapes of parts that have none in the spec, in their order.
    """
    parts = list(_in_order(spec))
    if not isinstance(call.func, ast.Attribute) or any(type(one).__name__ != "TensorSpec" for one in parts):
        return None
    left = iter(known)
    shapes = [tuple(one.shape.as_list()) if one.shape.rank is not None else next(left, None) for one in parts]
    sizes = [one for one in shapes if one is not None]
    if len(sizes) != len(shapes) or (next(left, None) is not None and any(one.shape.rank is None for one in parts)):
        return None
    flat = not isinstance(spec, dict) and (type(spec) is not tuple or len(parts) == len(spec))
    given = as_padded(source, call)
    open_ones = [place for place, one in enumerate(sizes) if None in one]
    if len(open_ones) == 1 and flat and is_image(sizes[open_ones[0]]):
        size = model_size(situation)
        tf = alias(situation.last, "tensorflow") if situation.last is not None else "tf"
        text = f".map({resized(spec, sizes, tf, size or (224, 224))}).batch({', '.join(given)})"
        return text, RESIZES + (", that of the model." if size else ": choose it.")
    before, said = "", PADS
    fixed = _fixed(situation, sizes[open_ones[0]]) if len(open_ones) == 1 else None
    if fixed is not None and flat:
        names = part_names(len(parts))
        last = max(at for at, size in enumerate(sizes[open_ones[0]]) if size is None)
        ends = ", ".join(
            f":{fixed[at]}" if size is None else ":" for at, size in enumerate(sizes[open_ones[0]][: last + 1])
        )
        cut = [f"{name}[{ends}]" if place == open_ones[0] else name for place, name in enumerate(names)]
        whole = cut[0] if type(spec) is not tuple else f"({', '.join(cut)}{',' * (len(cut) == 1)})"
        before = f".map(lambda {', '.join(names)}: {whole})"
        sizes[open_ones[0]] = fixed
        said = FITS.format(written(fixed))
    elif all(one.shape.rank is not None for one in parts) and open_ones:
        return f".padded_batch({', '.join(given)})", PADS
    text = _nested(spec, iter(map(written, sizes)))
    return f"{before}.padded_batch({', '.join([*given, f'padded_shapes={text}'])})", said


def as_padded(source: Source, call: ast.Call) -> list[str]:
    """The arguments of a call of `batch` as `padded_batch` takes them too, whose second is another: padded_shapes."""
    named = [one for one in call.keywords if one.arg not in ("num_parallel_calls", "deterministic")]
    first, rest = call.args[:1], [f"drop_remainder={source.text(one)}" for one in call.args[1:2]]
    return [*map(source.text, first), *rest, *(f"{one.arg}={source.text(one.value)}" for one in named)]


def is_image(shape: Shape) -> bool:
    """Whether a shape is that of images of any size."""
    return len(shape) == 3 and shape[2] in (1, 3, 4) and shape[:2] == (None, None)


def model_size(situation: Situation) -> tuple[int, int] | None:
    """Height and width of the images that the program's only model takes."""
    taken = {one[:2] for one in _taken(situation) if len(one) == 3}
    size = taken.pop() if len(taken) == 1 else None
    return size if size is not None and all(isinstance(one, int) for one in size) else None  # type: ignore[return-value]


def resized(spec: Any, shapes: Sequence[Shape], tf: str, size: tuple[int, int]) -> str:
    """A lambda that resizes the image of each element, and keeps its dtype.

    Args:
      spec: What an element is: one tensor, or a tuple of them.
      shapes: Their shapes, also where the spec has none.
      tf: What the program calls TensorFlow.
      size: Height and width.
    """

    def part(one: Any, shape: Shape, name: str) -> str:
        if not is_image(shape):
            return name
        known = name if one.shape.rank is not None else f"{tf}.ensure_shape({name}, {written(shape)})"
        new = f"{tf}.image.resize({known}, {list(size)})"
        return new if one.dtype.name == "float32" else f"{tf}.cast({new}, {name}.dtype)"

    if type(spec) is not tuple:
        return f"lambda x: {part(spec, shapes[0], 'x')}"
    names = part_names(len(spec))
    return f"lambda {', '.join(names)}: ({', '.join(map(part, spec, shapes, names))}{',' * (len(spec) == 1)})"


def _in_order(spec: Any) -> Iterator[Any]:
    """The parts of an element in the order in which TensorFlow flattens them: dicts by their keys."""
    if isinstance(spec, (dict, tuple)):
        for one in [spec[key] for key in sorted(spec)] if isinstance(spec, dict) else spec:
            yield from _in_order(one)
    else:
        yield spec


def _nested(spec: Any, texts: Iterator[str]) -> str:
    """Shapes, which come in that order, in the structure of an element."""
    if isinstance(spec, dict):
        found = {key: _nested(spec[key], texts) for key in sorted(spec)}
        return "{" + ", ".join(f'"{key}": {found[key]}' for key in spec) + "}"
    if isinstance(spec, tuple):
        return f"({', '.join(_nested(one, texts) for one in spec)}{',' * (len(spec) == 1)})"
    return next(texts)


def _fixed(situation: Situation, shape: Shape) -> Shape | None:
    """The shape that the program's only model takes of an element, where it has every size."""
    taken = _taken(situation)
    sizes = taken.pop() if len(taken) == 1 else ()
    fits = len(sizes) == len(shape) and all(
        isinstance(size, int) and own in (None, size) for size, own in zip(sizes, shape)
    )
    return sizes if fits else None


def _taken(situation: Situation) -> set[Shape]:
    """Shapes of an element that the models of the program take."""
    held = [value for spot in situation.spots for known in (spot.variables, spot.module) for value in known.values()]
    models = {id(one): one for one in held if of_keras(type(one), "Model") and getattr(one, "built", False)}
    return {one[1:] for model in models.values() if isinstance(one := getattr(model, "input_shape", None), tuple)}
