"""Names of the flat tensors inside structured inputs and outputs: `x.row_splits`, `out.values`, `out['a'][0]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyfunc_debug.interception.names import TensorFlowNames, private

# Components in the order in which TensorFlow flattens its own composite tensors.
_COMPONENTS = {
    "SparseTensorSpec": ("indices", "values", "dense_shape"),
    "IndexedSlicesSpec": ("values", "indices", "dense_shape"),
    "RaggedTensorSpec": ("values", "row_splits"),
}


def leaf_paths(name: str, value: Any, names: TensorFlowNames) -> list[str]:
    """One path for each flat tensor of `value` (a tensor, a composite tensor, a TypeSpec or a structure of them)."""
    import tensorflow as tf

    spec = value if isinstance(value, tf.TypeSpec) else private.type_spec(value)
    if isinstance(spec, tf.TensorSpec) or (spec is None and not isinstance(value, (dict, list, tuple))):
        return [name]
    if isinstance(value, (dict, list, tuple)):
        items: Any = sorted(value.items()) if isinstance(value, dict) else enumerate(value)
        return [path for key, item in items for path in leaf_paths(f"{name}[{key!r}]", item, names)]
    count = len(names.nest.flatten(value, expand_composites=True))
    kind = type(spec).__name__
    if kind == "RaggedTensorSpec" and count > 2:  # several ragged dimensions
        return _ragged(name, count)
    known = _COMPONENTS.get(kind)
    if known is not None and len(known) >= count:
        return [f"{name}.{part}" for part in known[:count]]
    return _by_fields(name, value, count, names) or _by_components(name, value, count, names)


def _by_fields(name: str, value: Any, count: int, names: TensorFlowNames) -> list[str]:
    """Paths inside an extension type or its spec; empty when they do not account for all its tensors."""
    paths: list[str] = []
    try:
        kind = value.value_type if hasattr(value, "value_type") else type(value)
        for field in private.extension_fields(kind):
            paths += _field_paths(f"{name}.{field.name}", getattr(value, field.name), names)
    except (AttributeError, TypeError):
        return []
    return paths if len(paths) == count else []


def _field_paths(name: str, value: Any, names: TensorFlowNames) -> list[str]:
    import tensorflow as tf

    if isinstance(value, Mapping):
        return [path for key in sorted(value) for path in _field_paths(f"{name}[{key!r}]", value[key], names)]
    if isinstance(value, (list, tuple)) and not isinstance(value, tf.TensorShape):
        return [path for index, one in enumerate(value) for path in _field_paths(f"{name}[{index}]", one, names)]
    if isinstance(value, (tf.TypeSpec, tf.Tensor)) or private.type_spec(value) is not None:
        return leaf_paths(name, value, names)
    return []  # a plain Python value is not a tensor


def _ragged(name: str, count: int) -> list[str]:
    """Values first, then the splits from the outside in, as in `RaggedTensor.nested_row_splits`."""
    return [f"{name}.flat_values", *(f"{name}.nested_row_splits[{level}]" for level in range(count - 1))]


def _by_components(name: str, value: Any, count: int, names: TensorFlowNames) -> list[str]:
    """Paths inside an extension type or another composite, by field name where TensorFlow knows it."""
    try:
        found = [_join(name, path) for path, _ in names.nest.flatten_with_tuple_paths(value, expand_composites=True)]
    except (TypeError, ValueError, AttributeError):
        found = []
    return found if len(found) == count else [f"{name}[{index}]" for index in range(count)]


def _join(name: str, path: tuple[Any, ...]) -> str:
    for part in path:
        if isinstance(part, str) and part.isidentifier():
            name += f".{part}"
        elif isinstance(part, (int, str)):
            name += f"[{part!r}]"
    return name


def output_paths(tout: Any, names: TensorFlowNames) -> tuple[list[str], list[str]]:
    """Declared output types as text, and the names of the flat outputs, from the `Tout` that the user gave."""
    import tensorflow as tf

    many = isinstance(tout, (list, tuple))
    declared, paths = [], []
    for index, item in enumerate(tout if many else [tout]):
        name = f"out[{index}]" if many else "out"
        if isinstance(item, tf.TypeSpec):
            declared.append(str(item))
            paths.extend(leaf_paths(name, item, names))
        else:
            declared.append(tf.as_dtype(item).name)
            paths.append(name)
    return declared, paths
