"""What `output_signature` of from_generator takes: specs, in the place of `output_types`, and not beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.doctor.failures.datasets import generator_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import Source, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_ndarray, lookup

RULE = "generator"
_BESIDE = "can not be used together with the `output_signature` argument"
_SPECS = "`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found <class '"
_DTYPES = ("DType", "type", "str")
_OLDER = ("output_types", "output_shapes")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if from_generator did not take its signature."""
    spot, text = situation.last, situation.message
    if situation.body or spot is None or (_BESIDE not in text and _SPECS not in text):
        return None
    for file, source, call in generator_calls.calls(situation):
        signature = next((one.value for one in call.keywords if one.arg == "output_signature"), None)
        here = file == spot.file and call.lineno <= spot.line <= (call.end_lineno or call.lineno)
        if here and signature is not None:
            return _beside(spot, source, call, signature) if _BESIDE in text else _dtypes(spot, source, signature, text)
    return None


def _beside(spot: Spot, source: Source, call: ast.Call, signature: ast.expr) -> Explanation:
    """`output_signature` and `output_types`: the first says all."""
    older = [one for one in call.keywords if one.arg in _OLDER]
    given = [one.value for one in older if one.arg == "output_types"] + call.args[1:2]
    edit = None
    if given and _form(given[0]) == _form(signature) and not call.args[1:]:
        rest = [source.text(one) for one in call.args]
        rest += [f"{one.arg}={source.text(one.value)}" for one in call.keywords if one not in older]
        edit = edit_of(spot.file, source.replaced({call: f"{source.text(call.func)}({', '.join(rest)})"}))
    tf = alias(spot, "tensorflow")
    cause = "from_generator takes output_signature in the place of output_types and output_shapes, and not beside them."
    advice = (
        f"Leave these out, and give in output_signature a spec for each value that is yielded, as "
        f"{tf}.TensorSpec(shape, dtype), in the form in which they are yielded."
    )
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else advice)


def _form(node: ast.expr) -> tuple[Any, ...]:
    """Where an expression of types or specs has tuples and dicts, and of how many parts."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return ("tuple", *map(_form, node.elts))
    if isinstance(node, ast.Dict):
        keys = [ast.unparse(one) if one is not None else "**" for one in node.keys]
        return ("dict", *sorted(zip(keys, map(_form, node.values))))
    return ("one", isinstance(node, (ast.DictComp, ast.Name)))


def _dtypes(spot: Spot, source: Source, signature: ast.expr, text: str) -> Explanation | None:
    """`output_signature=(tf.TensorSpec(...), tf.int32)`."""
    if text.partition(_SPECS)[2].partition("'")[0].rpartition(".")[2] not in _DTYPES:
        return None
    tf = alias(spot, "tensorflow")
    leaves = [one for one in _leaves(signature) if _is_dtype(one, spot)]
    if not leaves:
        return None
    pieces: dict[ast.expr, str] = {one: f"{tf}.TensorSpec(None, {source.text(one)})" for one in leaves}
    first = source.text(leaves[0])
    cause = (
        f"output_signature holds {short(first, 30)}, a dtype, and takes specs: {tf}.TensorSpec(shape, dtype). "
        "None is any shape: write it where it is known, as [] of a number."
    )
    return Explanation(RULE, spot.file, leaves[0].lineno, cause, Edit(spot.file, *source.kept_lines(pieces)))


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    """The specs in a signature as it is written."""
    if isinstance(node, (ast.Tuple, ast.List)):
        inside = list(node.elts)
    elif isinstance(node, ast.Dict):
        inside = list(node.values)
    elif isinstance(node, ast.DictComp):
        inside = [node.value]
    elif isinstance(node, ast.IfExp):
        inside = [node.body, node.orelse]
    else:
        yield node
        return
    for one in inside:
        yield from _leaves(one)


_PYTHON = (bool, int, float, str)


def _is_dtype(node: ast.expr, spot: Spot) -> bool:
    value = node.value if isinstance(node, ast.Constant) else lookup(node, spot)
    if isinstance(node, ast.Constant):
        return isinstance(value, str)
    of_numpy = isinstance(value, type) and issubclass(value, np.generic)
    return type(value).__name__ == "DType" or of_numpy or any(value is one for one in _PYTHON)


def failed_value(situation: Situation) -> tuple[str, Any]:
    """` for 'visits'` or ` for element[3]`, where the value that was not converted is a part; and that, if known."""
    for frame in frames(situation.inner.__traceback__):
        if frame.f_code.co_name == "generator_py_func" and "ret" in frame.f_locals:
            value = frame.f_locals["ret"]
            return _place(frame.f_locals.get("values"), value), value
    return "", None


@dataclass(frozen=True)
class Compared:
    """An element whose shapes TensorFlow compared with its signature, as TensorFlow's own frame has it.

    Attributes:
      arrays: Its parts.
      shapes: What is declared for each.
      types: The declared dtypes, in the structure of the signature.
    """

    arrays: list[Any]
    shapes: list[Any]
    types: Any

    @property
    def failed(self) -> list[int]:
        """Which parts have another shape."""
        pairs = enumerate(zip(self.arrays, self.shapes))
        return [place for place, (one, shape) in pairs if not shape.is_compatible_with(one.shape)]


def compared(situation: Situation) -> Compared | None:
    """The element that was refused for its shapes; None where it is not known."""
    for frame in frames(situation.inner.__traceback__):
        arrays, shapes, types = (
            frame.f_locals.get(name) for name in ("ret_arrays", "flattened_shapes", "output_types")
        )  # fmt: skip
        if isinstance(arrays, list) and shapes is not None:
            return Compared(arrays, shapes, types)
    return None


def failed_parts(situation: Situation) -> tuple[list[int], int]:
    """Which parts of the element have another shape, and how many it has."""
    found = compared(situation)
    return ([], 0) if found is None else (found.failed, len(found.arrays))


def is_uneven(value: Any) -> bool:
    """Whether lists, or arrays of them, have rows of different lengths."""
    if type(value) not in (list, tuple) and not (is_ndarray(value) and value.dtype == object):
        return False
    rows = list(value) if not is_ndarray(value) or value.ndim else []
    sizes = {len(one) if type(one) in (list, tuple) or (is_ndarray(one) and one.ndim) else None for one in rows}
    return len(sizes) > 1 or any(map(is_uneven, rows))


def _place(values: Any, value: Any) -> str:
    found = [path for path, one in paths(values) if one is value]
    keys = [key for key in found[0] if isinstance(key, str)] if len(found) == 1 else []
    if keys or len(found) != 1:
        return f" for {keys[-1]!r}" if keys else ""
    return " for element" + "".join(f"[{place}]" for place in found[0]) if found[0] else ""


def paths(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The values in tuples and dicts, each with its keys and places."""
    if type(values) is tuple:
        for place, one in enumerate(values):
            yield from paths(one, (*path, place))
    elif type(values) is dict:
        for key, one in values.items():
            yield from paths(one, (*path, key))
    else:
        yield path, values


def ragged(situation: Situation, value: Any, where: str) -> Explanation | None:
    """Ragged and sparse tensors where dtypes alone are declared: the signature of the element that failed."""
    kind, every = type(value).__name__, generator_calls.calls(situation)
    if (
        kind not in ("RaggedTensor", "SparseTensor")
        or not type(value).__module__.startswith("tensorflow.")
        or not every
    ):
        return None
    file, source, call = every[0]
    tf = alias(situation.spots[0], "tensorflow") if situation.spots else "tf"
    types = generator_calls.types_alone(call)
    frame = next(one for one in frames(situation.inner.__traceback__) if one.f_code.co_name == "generator_py_func")
    written = _signature(frame.f_locals.get("values"), frame.f_locals.get("output_types"), tf)
    edit = None
    if types is not None and written is not None:
        rest = [source.text(one) for one in call.args if one is not types]
        rest += [f"{one.arg}={source.text(one.value)}" for one in call.keywords if one.value is not types]
        new = f"{source.text(call.func)}({', '.join([*rest, f'output_signature={written}'])})"
        edit = edit_of(file, source.replaced({call: new}))
    what = "ragged" if kind == "RaggedTensor" else "sparse"
    cause = f"the generator yielded a {what} tensor{where}, and output_types declares plain ones. "
    cause += f"output_signature says {what}, with a spec for each value."
    advice = "" if edit else f"Write {_spec(value, value.dtype, tf)} for it in output_signature."
    return Explanation(RULE, file, call.lineno, cause, edit, advice, "likely")


def _signature(values: Any, types: Any, tf: str) -> str | None:
    """The specs of an element, of any sizes, with the dtypes that are declared."""
    if type(values) is tuple and isinstance(types, tuple) and len(values) == len(types):
        parts = [_signature(one, dtype, tf) for one, dtype in zip(values, types)]
        return None if None in parts else f"({', '.join(map(str, parts))}{',' * (len(parts) == 1)})"
    if type(values) is dict and isinstance(types, dict) and values.keys() == types.keys():
        named = {key: _signature(one, types[key], tf) for key, one in values.items()}
        return None if None in named.values() else f"{{{', '.join(f'{key!r}: {one}' for key, one in named.items())}}}"
    return _spec(values, types, tf) if hasattr(types, "as_numpy_dtype") else None


def _spec(value: Any, dtype: Any, tf: str) -> str | None:
    kind, name = type(value), f"{tf}.{dtype.name}"
    if kind in (bool, int, float, str, bytes) or isinstance(value, np.generic):
        return f"{tf}.TensorSpec([], {name})"
    if is_ndarray(value):
        return f"{tf}.TensorSpec([{', '.join(['None'] * value.ndim)}], {name})"
    if not kind.__module__.startswith("tensorflow.") or value.shape.rank is None:
        return None
    sizes = f"[{', '.join(['None'] * value.shape.rank)}]"
    if kind.__name__ == "RaggedTensor":
        return f"{tf}.RaggedTensorSpec({sizes}, {tf}.{value.dtype.name}, {value.ragged_rank})"
    return f"{tf}.{'SparseTensorSpec' if kind.__name__ == 'SparseTensor' else 'TensorSpec'}({sizes}, {name})"
