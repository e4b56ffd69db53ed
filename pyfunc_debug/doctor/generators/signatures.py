"""What `from_generator` declares of its elements, as the source has it; and a yielded value, converted to that."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from pyfunc_debug.doctor.failures.reading.source import Source, dotted


@dataclass(frozen=True)
class Spec:
    """One tensor: its dtype and shape as they are written; no shape where nothing is said."""

    dtype: str
    shape: str


Part = Spec | list["Part"] | dict[str, "Part"]
"""A tensor, or several in a tuple or a dict."""


def declared(own: Source, call: ast.Call) -> Part | None:
    """The structure that a call of `from_generator` declares; None where the source does not show it."""
    named = {one.arg: one.value for one in call.keywords}
    signature = named.get("output_signature") or (call.args[4] if len(call.args) > 4 else None)
    if signature is not None:
        return _spec(own, _value(own, signature))
    types = named.get("output_types") or (call.args[1] if len(call.args) > 1 else None)
    shapes = named.get("output_shapes") or (call.args[2] if len(call.args) > 2 else None)
    if types is None:
        return None
    return _typed(own, _value(own, types), None if shapes is None else _value(own, shapes))


def _value(own: Source, node: ast.expr) -> ast.expr:
    """What a name stands for, where the file says it once."""
    if not isinstance(node, ast.Name):
        return node
    made = [
        one.value for one in ast.walk(own.tree)
        if isinstance(one, ast.Assign) and [dotted(target) for target in one.targets] == [node.id]
    ]  # fmt: skip
    return made[0] if len(made) == 1 else node


def _spec(own: Source, node: ast.expr) -> Part | None:
    if isinstance(node, ast.Tuple):
        parts = [_spec(own, _value(own, one)) for one in node.elts]
        return None if any(one is None for one in parts) else [one for one in parts if one is not None]
    if isinstance(node, ast.Dict):
        return _dict(node, [_spec(own, _value(own, one)) for one in node.values])
    if not isinstance(node, ast.Call) or dotted(node.func).rpartition(".")[2] != "TensorSpec":
        return None
    named = {one.arg: one.value for one in node.keywords}
    shape = named.get("shape") or (node.args[0] if node.args else None)
    dtype = named.get("dtype") or (node.args[1] if len(node.args) > 1 else None)
    if shape is None:
        return None
    known = isinstance(shape, ast.Constant) and shape.value is None
    return Spec("tf.float32" if dtype is None else own.text(dtype), "" if known else own.text(shape))


def _dict(node: ast.Dict, parts: list[Part | None]) -> Part | None:
    found: dict[str, Part] = {}
    for key, part in zip(node.keys, parts):
        if part is None or not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return None
        found[key.value] = part
    return found


def _typed(own: Source, types: ast.expr, shapes: ast.expr | None) -> Part | None:
    if isinstance(types, ast.Tuple):
        inner = list(shapes.elts) if isinstance(shapes, (ast.Tuple, ast.List)) else [None] * len(types.elts)
        if len(inner) != len(types.elts):
            return None
        parts = [_typed(own, one, shape) for one, shape in zip(types.elts, inner)]
        return None if any(one is None for one in parts) else [one for one in parts if one is not None]
    if isinstance(types, ast.Dict):
        return None
    if shapes is not None and isinstance(shapes, ast.Constant) and shapes.value is None:
        shapes = None
    return Spec(own.text(types), "" if shapes is None else own.text(shapes))


def flat(part: Part) -> list[Spec]:
    """The tensors of a structure, as `tf.nest.flatten` has them: a dict's by their sorted keys."""
    if isinstance(part, Spec):
        return [part]
    inner = part if isinstance(part, list) else [part[key] for key in sorted(part)]
    return [one for each in inner for one in flat(each)]


def rebuilt(part: Part, texts: list[str]) -> str:
    """The structure with these in the places of its tensors."""
    left = iter(texts)

    def build(one: Part) -> str:
        if isinstance(one, Spec):
            return next(left)
        if isinstance(one, list):
            inner = [build(each) for each in one]
            return f"({', '.join(inner)}{',' * (len(inner) == 1)})"
        return "{" + ", ".join(f"{key!r}: {build(one[key])}" for key in sorted(one)) + "}"

    whole = build(part)
    return whole[1:-1] if isinstance(part, list) and len(part) > 1 else whole


def converted(
    own: Source, value: ast.expr, part: Part, np: str, tf: str, rename: Callable[[str], str]
) -> list[str]:  # fmt: skip
    """Lines that end with the expression of what a generator yields as arrays, one a tensor; none if that is unknown.

    Args:
      own: The file.
      value: What it yields.
      part: What is declared of it.
      np: What the file calls NumPy.
      tf: What it calls TensorFlow.
      rename: Puts other names into a piece of its code.
    """
    pairs: list[tuple[ast.expr, Spec]] = []
    if _pairs(value, part, pairs):
        texts = [_array(rename(own.text(one)), spec, np, tf) for one, spec in pairs]
        return [", ".join(texts)] if len(texts) > 1 or isinstance(part, Spec) else [f"{texts[0]},"]
    text = rename(own.text(value))
    if isinstance(part, list) and all(isinstance(one, Spec) for one in part) and len(part) > 1:
        kinds = [spec for spec in part if isinstance(spec, Spec)]
        return [f"parts = {text}", ", ".join(_array(f"parts[{at}]", one, np, tf) for at, one in enumerate(kinds))]
    if isinstance(part, dict) and all(isinstance(one, Spec) for one in part.values()):
        keyed = [(key, one) for key, one in sorted(part.items()) if isinstance(one, Spec)]
        return [f"parts = {text}", ", ".join(_array(f"parts[{key!r}]", one, np, tf) for key, one in keyed)]
    return []


def _pairs(value: ast.expr, part: Part, found: list[tuple[ast.expr, Spec]]) -> bool:
    if isinstance(part, Spec):
        found.append((value, part))
        return True
    if isinstance(part, list):
        if not isinstance(value, ast.Tuple) or len(value.elts) != len(part):
            return False
        return all(_pairs(one, inner, found) for one, inner in zip(value.elts, part))
    if not isinstance(value, ast.Dict) or len(value.keys) != len(part):
        return False
    given = {key.value: one for key, one in zip(value.keys, value.values) if isinstance(key, ast.Constant)}
    return set(given) == set(part) and all(_pairs(given[key], part[key], found) for key in sorted(part))


def _array(text: str, spec: Spec, np: str, tf: str) -> str:
    head, _, kind = spec.dtype.rpartition(".")
    if kind == "string" or spec.dtype in ("str", "'string'", '"string"'):
        return text
    kind = kind.strip("'\"")
    if kind == "bool":
        return f"{np}.asarray({text}, bool)"
    if head in (tf, f"{tf}.dtypes", np, ""):
        return f"{np}.asarray({text}, {np}.{kind}{'_' * (kind == 'str')})"
    return f"{np}.asarray({text}, {tf}.as_dtype({spec.dtype}).as_numpy_dtype)"
