"""A tensor that a generator yields, sparse, ragged or plain, of another dtype or shape than its spec."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.datasets import generator_calls, yielded_keys
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias

RULE = "generator"
_KINDS = {"SparseTensor": "SparseTensorSpec", "RaggedTensor": "RaggedTensorSpec", "EagerTensor": "TensorSpec"}
_NAMES = {"SparseTensorSpec": "a sparse tensor", "RaggedTensorSpec": "a ragged tensor", "TensorSpec": "a tensor"}
_VALUES = 1
"""The place of a SparseTensor's values among its arguments."""


@dataclass(frozen=True)
class _Leaf:
    """A tensor and its spec, and where they stand in an element."""

    path: tuple[Any, ...]
    value: Any
    spec: Any

    @property
    def kind(self) -> str:
        return _KINDS.get(type(self.value).__name__, "")

    @property
    def differs(self) -> bool:
        other = self.kind != type(self.spec).__name__ or self.value.dtype != self.spec.dtype
        return other or not self.spec.shape.is_compatible_with(self.value.shape)


def explain(situation: Situation, file: str, source: Source, call: ast.Call) -> Explanation | None:
    """The explanation, if TensorFlow's check of what a generator yields found such a tensor.

    Args:
      situation: The failure.
      file: The file of the call of from_generator.
      source: Its text.
      call: The call.
    """
    values, declared = yielded_keys.element(situation)
    leaves = [one for one in _leaves(values, declared, ()) if one.kind and one.differs]
    if not leaves:
        return None
    leaf = leaves[0]
    function = generator_calls.function_of(source, generator_calls.given(call))
    yields = generator_calls.yields_of(function)
    ran = yielded_keys.fitting(yields, values, function)
    written = yielded_keys.part_at(ran[0].value, leaf.path, function) if len(ran) == 1 else None
    line = written.lineno if written is not None else ran[0].lineno if len(ran) == 1 else call.lineno
    text = f", `{short(source.text(written), 30)}`" if written is not None else ""
    what, spec = _NAMES[leaf.kind], type(leaf.spec).__name__
    if leaf.kind != spec:
        cause = f"the generator yields {what}{_of(leaf)}{text}, and its output_signature says {spec} there."
        return Explanation(RULE, file, line, cause, None, f"Yield what the signature says, or declare {leaf.kind}.")
    tf = alias(situation.spots[0], "tensorflow") if situation.spots else "tf"
    got, wanted = leaf.value.dtype.name, leaf.spec.dtype.name
    if got == wanted:
        sizes, said = leaf.value.shape.as_list(), leaf.spec.shape
        cause = f"the generator yields {what} of shape {sizes}{_of(leaf)}{text}, and its output_signature says {said}."
        return Explanation(RULE, file, line, cause, None, "Write None there for a size that may differ.")
    cause = (
        f"the generator yields {what} of {got}{_of(leaf)}{text}, and its output_signature says {wanted}: "
        "from_generator checks each element, and casts no tensor."
    )
    edit = _edit(leaf, written, call, file, source, tf) if len(leaves) == 1 else None
    line = edit.first if edit is not None else line
    advice = "" if edit else f"Yield it by {tf}.cast(..., {tf}.{wanted}), or declare {tf}.{got}."
    return Explanation(RULE, file, line, cause, edit, advice)


def _leaves(values: Any, declared: Any, path: tuple[Any, ...]) -> Iterator[_Leaf]:
    if isinstance(declared, dict) and isinstance(values, dict):
        for key in [one for one in declared if one in values]:
            yield from _leaves(values[key], declared[key], (*path, key))
    elif type(declared) is tuple and type(values) is tuple and len(declared) == len(values):
        for place, (one, spec) in enumerate(zip(values, declared)):
            yield from _leaves(one, spec, (*path, place))
    elif type(declared).__name__ in _NAMES and type(values).__module__.startswith("tensorflow."):
        yield _Leaf(path, values, declared)


def _of(leaf: _Leaf) -> str:
    keys = [key for key in leaf.path if isinstance(key, str)]
    return f" for {keys[-1]!r}" if keys else ""


def _edit(leaf: _Leaf, written: ast.expr | None, call: ast.Call, file: str, source: Source, tf: str) -> Edit | None:
    """A cast of what is yielded; or the spec's dtype, where a cast would cut off what the numbers have."""
    got, wanted = leaf.value.dtype, leaf.spec.dtype
    numbers = [one.is_integer or one.is_floating for one in (got, wanted)]
    if not all(numbers):
        return None
    if got.is_floating and wanted.is_integer:
        signature = next((one.value for one in call.keywords if one.arg == "output_signature"), None)
        known = [
            yielded_keys.part_at(one, leaf.path, None) for one in (signature, *generator_calls.assigned(call, source))
        ]
        declared = [
            part for spec in known if isinstance(spec, ast.Call) for part in ast.walk(spec)
            if isinstance(part, ast.Attribute) and dotted(part) == f"{tf}.{wanted.name}"
        ]  # fmt: skip
        return Edit(file, *source.kept_lines({declared[0]: f"{tf}.{got.name}"})) if len(declared) == 1 else None
    if written is None:
        return None
    place = written
    if isinstance(written, ast.Call) and dotted(written.func).rpartition(".")[2] == "SparseTensor":
        named = [one.value for one in written.keywords if one.arg == "values"]
        place = next(iter([*named, *written.args[_VALUES : _VALUES + 1]]), written)
    return Edit(file, *source.kept_lines({place: f"{tf}.cast({source.text(place)}, {tf}.{wanted.name})"}))
