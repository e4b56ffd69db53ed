"""FunctionTypes in words: a signature as a person writes it, how two of them differ, and one that covers both.

TensorFlow describes the arguments of a call by trace types (tensorflow/core/function/trace_type/default_types.py) and
looks a graph up by them; what differs between two descriptions is why it traced again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.interception.names import private

_LONGEST = 60


@dataclass(frozen=True)
class Difference:
    """One thing that differs between two signatures.

    Attributes:
      weight: Orders earlier signatures by closeness.
      text: What differs, as a sentence.
      fix: What avoids it, whatever the function's code does; empty where that depends on the code, or nothing does.
      about: `number`, `size`, `rank` or `mixed` (a number, and a tensor): what advice.py may have a fix for.
      keys: Where it is: the parameter's name, then keys into the structure.
    """

    weight: int
    text: str
    fix: str = ""
    about: str = ""
    keys: tuple[Any, ...] = ()


def signature(function_type: Any) -> str:
    """A FunctionType as a person writes it: `(x: float32[2, None], k: 1)`."""
    try:
        parameters = function_type.parameters.items()
        return "(" + ", ".join(f"{name}: {brief(each.type_constraint)}" for name, each in parameters) + ")"
    except Exception:
        return _cut(str(function_type))


def of_element(structure: Any) -> str:
    """The same of tf.data, by the structure of the elements: `(args_0: {'a': int64[]}, args_1: int32[])`."""
    parts = structure if type(structure) is tuple else (structure,)
    return f"({', '.join(f'args_{place}: {_nested(one)}' for place, one in enumerate(parts))})"


def _nested(structure: Any) -> str:
    if isinstance(structure, Mapping):
        return f"{{{', '.join(f'{key!r}: {_nested(one)}' for key, one in structure.items())}}}"
    if isinstance(structure, tuple):
        return f"({', '.join(map(_nested, structure))}{',' * (len(structure) == 1)})"
    return brief(structure)


def brief(constraint: Any) -> str:
    """One argument's type in a signature: `float32[2, None]`, `1`, `[int32[], 'a']`, `Point object`."""
    kind = type(constraint).__name__
    if kind == "TensorSpec":
        return f"{constraint.dtype.name}[{_dims(constraint.shape)}]"
    if kind == "Literal":
        return _cut(repr(constraint.value))
    if kind == "Weakref":
        return _dtype(constraint) or f"{_object(constraint)} object"
    if kind == "VariableSpec":
        return f"Variable {constraint.dtype.name}[{_dims(constraint.shape)}]"
    if kind in ("RaggedTensorSpec", "SparseTensorSpec"):
        return f"{kind[:-10]} {constraint.dtype.name}[{_dims(constraint.shape)}]"
    parts = children(constraint)
    if parts is None:
        return _cut(str(constraint))
    inner = [brief(part) for part in parts.values()]
    if kind == "List":
        return f"[{', '.join(inner)}]"
    if kind == "Tuple":
        return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
    names = [repr(key) for key in parts] if kind == "Dict" else [str(key) for key in parts]
    joined = ", ".join(f"{name}: {text}" for name, text in zip(names, inner))
    return f"{{{joined}}}" if kind == "Dict" else f"{_type_name(constraint)}({joined})"


def differences(old: Any, new: Any) -> list[Difference]:
    """What changed from one FunctionType to another."""
    before, now = old.parameters, new.parameters
    if list(before) != list(now):
        return [_arguments(list(before), list(now))]
    found: list[Difference] = []
    for name in now:
        found += _compare((name,), before[name].type_constraint, now[name].type_constraint)
    captured, captures = getattr(old, "captures", {}), getattr(new, "captures", {})
    for name in captured:
        if name in captures:  # graphs in the cache know all their captures, a call only those by reference
            found += _compare(("captured value",), captured[name], captures[name])
    return found


def leaf(function_type: Any, keys: tuple[Any, ...]) -> Any:
    """The type of an argument, or of a part of it; None if this signature has no such part."""
    parameter = function_type.parameters.get(keys[0])
    constraint = getattr(parameter, "type_constraint", None)
    for key in keys[1:]:
        constraint = (children(constraint) or {}).get(key)
    return constraint


def _arguments(before: list[str], now: list[str]) -> Difference:
    """Only functions with *args or **kwargs can be called with other parameters."""
    gone = [name for name in before if name not in now]
    extra = [name for name in now if name not in before]
    changes = [f"{_listed(extra)} new"] * bool(extra) + [f"{_listed(gone)} missing"] * bool(gone)
    return Difference(9, f"other arguments: {', '.join(changes) or 'in another order'}")


def _compare(keys: tuple[Any, ...], old: Any, new: Any) -> Iterator[Difference]:
    if old == new and not _dead(old):
        return
    path = path_text(keys)
    before, now = children(old), children(new)
    if before is not None and now is not None:
        if type(old) is not type(new) or _type_name(old) != _type_name(new):
            kind = _type_name(old)
            fix = f"always pass `{path}` as a {kind}" if before == now and kind in ("list", "tuple", "dict") else ""
            yield Difference(5, f"`{path}`: a {_type_name(new)}, was a {kind}", fix)
        elif before.keys() != now.keys():
            yield Difference(5, f"`{path}`: {_structure(now)}, was {_structure(before)}")
        else:
            fields = type(new).__name__ in ("NamedTuple", "Attrs")
            for key in now:
                yield from _compare((*keys, Field(key) if fields else key), before[key], now[key])
        return
    kinds = type(old).__name__, type(new).__name__
    if kinds[0] != kinds[1]:
        mixed = "mixed" if {*kinds} == {"Literal", "TensorSpec"} and number_of(old, new) is not None else ""
        fix = f"always pass `{path}` as a variable, or always its value" if "VariableSpec" in kinds else ""
        yield Difference(4, f"`{path}`: {_words(new)}, was {_words(old)}", fix, mixed, keys)
    elif kinds[0] == "Literal":
        yield _values(keys, old.value, new.value)
    elif kinds[0] == "Weakref":
        yield _objects(keys, old, new)
    else:
        yield from _specs(keys, old, new)


class Field(str):
    """The key of a field that is written with a dot: `x.b`."""

    __slots__ = ()


def path_text(keys: tuple[Any, ...]) -> str:
    """`x['a'][0].b`."""
    inner = (f".{key}" if isinstance(key, Field) else f"[{key!r}]" for key in keys[1:])
    return f"{keys[0]}{''.join(inner)}"


def is_number(value: Any) -> bool:
    """Whether a Python value is an int or a float, and no bool."""
    return type(value) in (int, float)


def number_of(*constraints: Any) -> Any:
    """The Python number among types that are numbers or scalar tensors; None if there is another among them."""
    found = None
    for constraint in constraints:
        if type(constraint).__name__ == "Literal" and is_number(constraint.value):
            found = constraint.value
        elif type(constraint).__name__ != "TensorSpec" or constraint.shape.rank != 0:
            return None
    return found


def _values(keys: tuple[Any, ...], old: Any, new: Any) -> Difference:
    about = "number" if is_number(old) and is_number(new) else "value"
    text = f"`{path_text(keys)}`: Python value {_cut(repr(new))}, was {_cut(repr(old))}"
    return Difference(2 if about == "number" else 3, text, about=about, keys=keys)


def _objects(keys: tuple[Any, ...], old: Any, new: Any) -> Difference:
    path = path_text(keys)
    if _dtype(old) and _dtype(new):
        return Difference(3, f"`{path}`: {_dtype(new)}, was {_dtype(old)}", about="value", keys=keys)
    fix = f"each object needs its own graph: if they are equal, make one and pass it as `{path}` each time"
    if _dead(old) and _dead(new):
        return Difference(3, f"`{path}`: another object (both have been deleted since)", fix)
    if _dead(old):
        return Difference(3, f"`{path}`: another {_object(new)} object; the earlier one has been deleted", fix)
    if _object(old) == _object(new):
        return Difference(3, f"`{path}`: another {_object(new)} object (compared by identity)", fix)
    return Difference(4, f"`{path}`: a {_object(new)} object, was a {_object(old)} object")


def _specs(keys: tuple[Any, ...], old: Any, new: Any) -> Iterator[Difference]:
    """Two TypeSpecs of one class: TensorSpec, RaggedTensorSpec, VariableSpec, DatasetSpec, ..."""
    path = path_text(keys)
    plain = type(new).__name__ == "TensorSpec"
    found = False
    dtypes = getattr(old, "dtype", None), getattr(new, "dtype", None)
    if dtypes[0] != dtypes[1]:
        found = True
        wider = _wider(_name(dtypes[0]), _name(dtypes[1])) if plain else None
        fix = f"tf.cast `{path}` to tf.{wider} before the call: the results are {wider} then" if wider else ""
        yield Difference(2, f"`{path}`: dtype {_name(dtypes[1])}, was {_name(dtypes[0])}", fix)
    shapes = getattr(old, "shape", None), getattr(new, "shape", None)
    if repr(shapes[0]) != repr(shapes[1]):
        found = True
        ranks = [getattr(shape, "rank", None) for shape in shapes]
        about = "" if not plain else "size" if ranks[0] == ranks[1] else "rank"
        text = f"`{path}`: shape {_shape(shapes[1])}, was {_shape(shapes[0])}"
        yield Difference(1 + (ranks[0] != ranks[1]), text, about=about, keys=keys)
    for name, label in _DETAILS.items():
        before, now = getattr(old, name, None), getattr(new, name, None)
        if before != now:
            found = True
            yield Difference(2, f"`{path}`: {label} {_name(now)}, was {_name(before)}")
    if getattr(old, "alias_id", None) != getattr(new, "alias_id", None):
        found = True
        yield Difference(2, f"`{path}`: arguments share variables in another way than before")
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
_WIDENING = (("float16", "float32", "float64"), ("bfloat16", "float32", "float64"), ("int8", "int16", "int32", "int64"))


def _wider(one: str, other: str) -> str | None:
    """The dtype of two that holds all values of both; None for dtypes that mean other things."""
    for family in _WIDENING:
        if one in family and other in family:
            return max(one, other, key=family.index)
    return None


def covering(old: Any, new: Any, defaults: Mapping[str, Any], dtypes: Mapping[tuple[Any, ...], str]) -> str:
    """The tf.function option that would have made one graph serve both signatures; empty when there is none.

    Args:
      old: The earlier FunctionType.
      new: The later one.
      defaults: Parameters' default values: an input_signature may leave out the last parameters that had theirs.
      dtypes: For each Python number that may be a tensor, by its keys: the tensor's dtype.
    """
    if list(old.parameters) != list(new.parameters):
        return ""
    if any(parameter.kind is not parameter.POSITIONAL_OR_KEYWORD for parameter in new.parameters.values()):
        return ""
    names = list(new.parameters)
    pairs = [(old.parameters[name].type_constraint, new.parameters[name].type_constraint) for name in names]
    while pairs and _is_default(*pairs[-1], names[len(pairs) - 1], defaults):
        pairs.pop()
    specs = [_general((name,), *pair, dtypes) for name, pair in zip(names, pairs)]
    if not specs or any(spec is None for spec in specs):
        return ""
    return f"input_signature=[{', '.join(spec for spec in specs if spec is not None)}]"


def _is_default(old: Any, new: Any, name: str, defaults: Mapping[str, Any]) -> bool:
    if name not in defaults or type(old).__name__ != "Literal" or old != new:
        return False
    return type(old.value) is type(defaults[name]) and bool(old.value == defaults[name])


def _general(keys: tuple[Any, ...], old: Any, new: Any, dtypes: Mapping[tuple[Any, ...], str]) -> str | None:
    """A spec, as source text, that both types fit; None if there is none."""
    before, now = children(old), children(new)
    if now is not None:
        if before is None or type(old) is not type(new) or before.keys() != now.keys():
            return None
        inner = [_general((*keys, key), before[key], now[key], dtypes) for key in now]
        texts = [text for text in inner if text is not None]
        if len(texts) < len(inner):
            return None
        kind = type(new).__name__
        if kind == "Dict":
            return "{" + ", ".join(f"{key!r}: {text}" for key, text in zip(now, texts)) + "}"
        if kind == "List":
            return f"[{', '.join(texts)}]"
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})" if kind == "Tuple" else None
    if keys in dtypes:
        return f"tf.TensorSpec([], tf.{dtypes[keys]})"
    if {type(old).__name__, type(new).__name__} != {"TensorSpec"} or old.dtype != new.dtype:
        return None
    shapes = [None if one.shape.rank is None else list(one.shape) for one in (old, new)]
    return f"tf.TensorSpec({_common(*shapes)}, tf.{new.dtype.name})"


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
        return _dtype(constraint) or f"a {_object(constraint)} object"
    if children(constraint) is not None:
        return f"a {_type_name(constraint)}"
    text = brief(constraint)
    return f"a {text}" if kind in ("VariableSpec", "RaggedTensorSpec", "SparseTensorSpec") else text


def children(constraint: Any) -> dict[Any, Any] | None:
    """Parts of a structure by key; None for a leaf."""
    kind = type(constraint).__name__
    if kind == "Tuple":
        return dict(enumerate(constraint.components))
    if kind == "List":
        return dict(enumerate(constraint.components_tuple.components))
    if kind == "NamedTuple":
        return dict(zip(constraint.attribute_names, constraint.attributes.components))
    if kind == "Attrs":
        return children(constraint.named_attributes)
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


def _structure(parts: dict[Any, Any]) -> str:
    if parts and all(isinstance(key, int) for key in parts) and list(parts) == list(range(len(parts))):
        return f"{len(parts)} elements" if len(parts) != 1 else "1 element"
    return _cut(f"keys {list(parts)}") if parts else "empty"


def _dead(constraint: Any) -> bool:
    return type(constraint).__name__ == "Weakref" and private.referent(constraint) is None


def _dtype(constraint: Any) -> str:
    """`tf.float32` for a dtype given as an argument, which TensorFlow compares by identity; else empty."""
    thing = private.referent(constraint)
    return f"tf.{thing.name}" if type(thing).__name__ == "DType" else ""


def _object(constraint: Any) -> str:
    """Class of the object that a Weakref type stands for; the name for classes and functions themselves."""
    thing = private.referent(constraint)
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
