"""FunctionTypes in words: a signature as a person writes it, how two of them differ, and one that covers both.

TensorFlow describes the arguments of a call by trace types (tensorflow/core/function/trace_type/default_types.py) and
looks a graph up by them; what differs between two descriptions is why it traced again.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

_LONGEST = 60


@dataclass(frozen=True)
class Difference:
    """One thing that differs between two signatures. `weight` orders earlier signatures by closeness."""

    weight: int
    text: str
    fix: str = ""


def signature(function_type: Any) -> str:
    """A FunctionType as a person writes it: `(x: float32[2, None], k: 1)`."""
    try:
        parameters = function_type.parameters.items()
        return "(" + ", ".join(f"{name}: {brief(each.type_constraint)}" for name, each in parameters) + ")"
    except Exception:
        return _cut(str(function_type))


def brief(constraint: Any) -> str:
    """One argument's type in a signature: `float32[2, None]`, `1`, `[int32[], 'a']`, `Point object`."""
    kind = type(constraint).__name__
    if kind == "TensorSpec":
        return f"{constraint.dtype.name}[{_dims(constraint.shape)}]"
    if kind == "Literal":
        return _cut(repr(constraint.value))
    if kind == "Weakref":
        return f"{_object(constraint)} object"
    if kind == "VariableSpec":
        return f"Variable {constraint.dtype.name}[{_dims(constraint.shape)}]"
    if kind in ("RaggedTensorSpec", "SparseTensorSpec"):
        return f"{kind[:-10]} {constraint.dtype.name}[{_dims(constraint.shape)}]"
    children = _children(constraint)
    if children is None:
        return _cut(str(constraint))
    inner = [brief(child) for child in children.values()]
    if kind == "List":
        return f"[{', '.join(inner)}]"
    if kind == "Tuple":
        return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
    names = [repr(key) for key in children] if kind == "Dict" else [str(key) for key in children]
    joined = ", ".join(f"{name}: {text}" for name, text in zip(names, inner))
    return f"{{{joined}}}" if kind == "Dict" else f"{_type_name(constraint)}({joined})"


def differences(old: Any, new: Any) -> list[Difference]:
    """What changed from one FunctionType to another."""
    before, now = old.parameters, new.parameters
    if list(before) != list(now):
        return [_arguments(list(before), list(now))]
    found: list[Difference] = []
    for name in now:
        found += _compare(name, before[name].type_constraint, now[name].type_constraint)
    captured, captures = getattr(old, "captures", {}), getattr(new, "captures", {})
    for name in captured:
        if name in captures:  # graphs in the cache know all their captures, a call only those by reference
            found += _compare("captured value", captured[name], captures[name])
    return found


def _arguments(before: list[str], now: list[str]) -> Difference:
    """Only functions with *args or **kwargs can be called with other parameters."""
    gone = [name for name in before if name not in now]
    extra = [name for name in now if name not in before]
    changes = [f"{_listed(extra)} new"] * bool(extra) + [f"{_listed(gone)} missing"] * bool(gone)
    return Difference(
        9, f"other arguments: {', '.join(changes) or 'in another order'}",
        "call it with the same arguments each time, or pass them as one list or dict of a fixed structure",
    )  # fmt: skip


def _compare(path: str, old: Any, new: Any) -> Iterator[Difference]:
    if old == new and not _dead(old):
        return
    before, now = _children(old), _children(new)
    if before is not None and now is not None:
        if type(old) is not type(new) or _type_name(old) != _type_name(new):
            yield Difference(
                5, f"`{path}`: a {_type_name(new)}, was a {_type_name(old)}", f"always pass `{path}` as one type"
            )
        elif before.keys() != now.keys():
            yield Difference(5, f"`{path}`: {_structure(now)}, was {_structure(before)}",
                             f"pad `{path}` to a fixed structure, or stack it into one tensor")  # fmt: skip
        else:
            for key in now:
                inner = f"{path}.{key}" if type(new).__name__ in ("NamedTuple", "Attrs") else f"{path}[{key!r}]"
                yield from _compare(inner, before[key], now[key])
        return
    kinds = type(old).__name__, type(new).__name__
    if kinds[0] != kinds[1]:
        yield Difference(4, f"`{path}`: {_words(new)}, was {_words(old)}", _convert(path, *kinds))
    elif kinds[0] == "Literal":
        yield _values(path, old.value, new.value)
    elif kinds[0] == "Weakref":
        yield _objects(path, old, new)
    else:
        yield from _specs(path, old, new)


def _values(path: str, old: Any, new: Any) -> Difference:
    text = f"`{path}`: Python value {_cut(repr(new))}, was {_cut(repr(old))}"
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (old, new)):
        return Difference(2, f"{text}: pass a tensor", f"pass a tensor: tf.constant({_cut(repr(new))})")
    return Difference(
        3, f"{text}: each value has a graph of its own",
        f"expected if Python code depends on `{path}`; if it takes many values, pass a tensor",
    )  # fmt: skip


def _objects(path: str, old: Any, new: Any) -> Difference:
    fix = f"keep one object and pass it each time, or give `{path}` as tensors"
    if _dead(old) and _dead(new):
        return Difference(3, f"`{path}`: another object (both have been deleted since)", fix)
    if _dead(old):
        return Difference(3, f"`{path}`: another {_object(new)} object; the earlier one has been deleted", fix)
    if _object(old) == _object(new):
        return Difference(3, f"`{path}`: another {_object(new)} object (compared by identity)", fix)
    return Difference(4, f"`{path}`: a {_object(new)} object, was a {_object(old)} object", fix)


def _specs(path: str, old: Any, new: Any) -> Iterator[Difference]:
    """Two TypeSpecs of one class: TensorSpec, RaggedTensorSpec, VariableSpec, DatasetSpec, ..."""
    found = False
    dtypes = getattr(old, "dtype", None), getattr(new, "dtype", None)
    if dtypes[0] != dtypes[1]:
        found = True
        yield Difference(2, f"`{path}`: dtype {_name(dtypes[1])}, was {_name(dtypes[0])}",
                         f"tf.cast `{path}` to one dtype before the call")  # fmt: skip
    shapes = getattr(old, "shape", None), getattr(new, "shape", None)
    if repr(shapes[0]) != repr(shapes[1]):
        found = True
        ranks = [getattr(shape, "rank", None) for shape in shapes]
        if ranks[0] == ranks[1]:
            fix = f"reduce_retracing=True, or an input_signature with None for what varies in `{path}`"
        else:
            fix = f"give `{path}` one rank, or an input_signature with shape None"
        yield Difference(
            1 + (ranks[0] != ranks[1]), f"`{path}`: shape {_shape(shapes[1])}, was {_shape(shapes[0])}", fix
        )
    for name, label in _DETAILS.items():
        before, now = getattr(old, name, None), getattr(new, name, None)
        if before != now:
            found = True
            yield Difference(2, f"`{path}`: {label} {_name(now)}, was {_name(before)}")
    if getattr(old, "alias_id", None) != getattr(new, "alias_id", None):
        found = True
        yield Difference(2, f"`{path}`: arguments share variables in another way than before",
                         "a graph in which two arguments are one variable is another graph")  # fmt: skip
    names = getattr(old, "name", None), getattr(new, "name", None)
    if names[0] != names[1] and not found:
        found = True
        yield Difference(
            1, f"`{path}`: TensorSpec name {names[1]!r}, was {names[0]!r}", "leave the name out of the TensorSpec"
        )
    if not found:
        yield Difference(3, f"`{path}`: {_words(new)}, was {_words(old)}")


_DETAILS = {
    "ragged_rank": "ragged rank", "row_splits_dtype": "row splits dtype", "trainable": "trainable",
    "element_spec": "elements",
}  # fmt: skip


def covering(old: Any, new: Any, defaults: Collection[str] = ()) -> str:
    """The tf.function option that would have made one graph serve both signatures; empty when there is none.

    Args:
      old: The earlier FunctionType.
      new: The later one.
      defaults: Names of the parameters that have a default: an input_signature may leave the last of them out.
    """
    if list(old.parameters) != list(new.parameters):
        return ""
    names = list(new.parameters)
    pairs = [(old.parameters[name].type_constraint, new.parameters[name].type_constraint) for name in names]
    while pairs and names[len(pairs) - 1] in defaults and _same_value(*pairs[-1]):
        pairs.pop()
    if any(_same_value(*pair) for pair in pairs):
        return ""  # a value that Python code may depend on is not made a tensor without need
    specs = [_general(*pair) for pair in pairs]
    if not specs or any(spec is None for spec in specs):
        return ""
    return f"input_signature=[{', '.join(spec for spec in specs if spec is not None)}]"


def _same_value(old: Any, new: Any) -> bool:
    return type(old).__name__ == "Literal" and bool(old == new)


def _general(old: Any, new: Any) -> str | None:
    """A spec, as source text, that both types fit; None if there is none."""
    before, now = _children(old), _children(new)
    if now is not None:
        if before is None or type(old) is not type(new) or before.keys() != now.keys():
            return None
        inner = [_general(before[key], now[key]) for key in now]
        texts = [text for text in inner if text is not None]
        if len(texts) < len(inner):
            return None
        kind = type(new).__name__
        if kind == "Dict":
            return "{" + ", ".join(f"{key!r}: {text}" for key, text in zip(now, texts)) + "}"
        if kind == "List":
            return f"[{', '.join(texts)}]"
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})" if kind == "Tuple" else None
    first, second = _as_tensor(old), _as_tensor(new)
    if first is None or second is None:
        return None
    dtype = first[0] if first[0] == second[0] else _number(old, new, first[0], second[0])
    if dtype is None:
        return None
    return f"tf.TensorSpec({_common(first[1], second[1])}, tf.{dtype})"


def _as_tensor(constraint: Any) -> tuple[str, list[int | None] | None] | None:
    """(dtype, shape) of what could be passed as a plain tensor."""
    kind = type(constraint).__name__
    if kind == "TensorSpec":
        rank = constraint.shape.rank
        return constraint.dtype.name, None if rank is None else list(constraint.shape)
    if kind == "Literal" and isinstance(constraint.value, (int, float)):
        value = constraint.value
        return ("bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"), []
    return None


def _number(old: Any, new: Any, first: str, second: str) -> str | None:
    """A Python number becomes whatever dtype the tensor beside it has; two tensors of different dtypes cannot meet."""
    literal = [type(constraint).__name__ == "Literal" for constraint in (old, new)]
    if "bool" in (first, second):
        return None
    if all(literal):
        return "float32"
    if literal[0] and not (first == "float32" and second.startswith(("int", "uint"))):
        return second
    if literal[1] and not (second == "float32" and first.startswith(("int", "uint"))):
        return first
    return None


def _common(first: list[int | None] | None, second: list[int | None] | None) -> str:
    if first is None or second is None or len(first) != len(second):
        return "None"
    return repr([a if a == b else None for a, b in zip(first, second)])


# -- words ------------------------------------------------------------------------------------------------------------


def _words(constraint: Any) -> str:
    kind = type(constraint).__name__
    if kind == "TensorSpec":
        return f"a tensor {brief(constraint)}"
    if kind == "Literal":
        return f"Python value {brief(constraint)}"
    if kind == "Weakref":
        return f"a {_object(constraint)} object"
    if _children(constraint) is not None:
        return f"a {_type_name(constraint)}"
    text = brief(constraint)
    return f"a {text}" if kind in ("VariableSpec", "RaggedTensorSpec", "SparseTensorSpec") else text


def _convert(path: str, old: str, new: str) -> str:
    if {old, new} == {"Literal", "TensorSpec"}:
        return f"always pass `{path}` as a tensor"
    if "VariableSpec" in (old, new):
        return f"always pass `{path}` as a variable, or always its value"
    return f"always pass `{path}` as one type"


def _children(constraint: Any) -> dict[Any, Any] | None:
    """Parts of a structure by key; None for a leaf."""
    kind = type(constraint).__name__
    if kind == "Tuple":
        return dict(enumerate(constraint.components))
    if kind == "List":
        return dict(enumerate(constraint.components_tuple.components))
    if kind == "NamedTuple":
        return dict(zip(constraint.attribute_names, constraint.attributes.components))
    if kind == "Attrs":
        return _children(constraint.named_attributes)
    if kind == "Dict":
        return dict(constraint.mapping)
    if kind == "CustomNestTraceType":
        return dict(enumerate(constraint.components))
    return None


def _type_name(constraint: Any) -> str:
    kind = type(constraint).__name__
    if kind in ("Tuple", "List", "Dict"):
        return kind.lower()
    if kind == "Attrs":
        return _type_name(constraint.named_attributes)
    if kind == "NamedTuple":
        return str(constraint.type_name)
    value_type = getattr(constraint, "value_type", None)
    return getattr(value_type, "__name__", kind)


def _structure(children: dict[Any, Any]) -> str:
    if children and all(isinstance(key, int) for key in children) and list(children) == list(range(len(children))):
        return f"{len(children)} elements" if len(children) != 1 else "1 element"
    return _cut(f"keys {list(children)}") if children else "empty"


def _dead(constraint: Any) -> bool:
    reference = getattr(constraint, "_ref", None)
    return type(constraint).__name__ == "Weakref" and callable(reference) and reference() is None


def _object(constraint: Any) -> str:
    """Class of the object that a Weakref type stands for; the name for classes and functions themselves."""
    reference = getattr(constraint, "_ref", None)
    thing = reference() if callable(reference) else None
    if thing is None:
        return "deleted"
    return type(thing).__name__


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in itertools.islice(names, 6)) + (", ..." if len(names) > 6 else "")


def _shape(shape: Any) -> str:
    """`(2, None)`; any rank is `(...)`."""
    rank = getattr(shape, "rank", None)
    if rank is None:
        return "(...)"
    return str(tuple(shape))


def _dims(shape: Any) -> str:
    if getattr(shape, "rank", None) is None:
        return "..."
    return ", ".join("None" if dim is None else str(dim) for dim in shape)


def _name(thing: Any) -> str:
    name = getattr(thing, "name", None)
    return name if isinstance(name, str) else _cut(str(thing))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
