"""What makes the batches that `fit` is given: a generator, or the `__getitem__` of a PyDataset, as it is written."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import assignments, own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Source, begins, definition_of
from pyfunc_debug.doctor.failures.reading.symbols import lookup, of_keras, shape_of

GIVEN = " The model gives what it is given: then the inputs are their own labels."
_MAKES_ARRAYS = {
    "expand_dims", "array", "asarray", "stack", "reshape", "zeros", "ones", "concatenate", "concat", "vstack", "full",
}  # fmt: skip


@dataclass(frozen=True)
class Maker:
    """The function that makes batches.

    Attributes:
      spot: A frame at its definition, for names and its text.
      function: Its definition.
      verb: "returns" or "yields".
      values: What it returns or yields, each statement once.
      tensors: The inputs of the model; none where they are not known.
      same: Whether the model gives what it is given, as an autoencoder does.
    """

    spot: Spot
    function: ast.FunctionDef
    verb: str
    values: tuple[ast.expr, ...]
    tensors: tuple[Any, ...] = ()
    same: bool = False

    @property
    def inputs(self) -> int:
        """How many inputs the model has."""
        return len(self.tensors)

    @property
    def source(self) -> Source:
        return self.spot.source

    @property
    def name(self) -> str:
        holder = self.source.parent(self.function)
        return f"{holder.name}.{self.function.name}" if isinstance(holder, ast.ClassDef) else self.function.name

    def made(self, value: ast.expr) -> ast.expr:
        """What a name is assigned in the function, also beside others: `x, y = [], []`; any other value as it is."""
        if not isinstance(value, ast.Name):
            return value
        for one in own_nodes(self.function):
            target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
            if not isinstance(one, ast.Assign) or not isinstance(target, ast.Tuple):
                continue
            if isinstance(one.value, ast.Tuple) and len(one.value.elts) == len(target.elts):
                for name, part in zip(target.elts, one.value.elts):
                    if isinstance(name, ast.Name) and name.id == value.id:
                        return part
        return assignments(self.function).get(value.id, value)


def gives_its_input(model: Any) -> bool:
    """Whether a model has one input and one output of the same shape, as an autoencoder has."""
    inputs, outputs = (list(getattr(model, name, None) or ()) for name in ("inputs", "outputs"))
    if len(inputs) != 1 or len(outputs) != 1:
        return False
    given, gives = shape_of(inputs[0]), shape_of(outputs[0])
    return given is not None and gives is not None and given[1:] == gives[1:]


def twice(maker: Maker) -> Edit | None:
    """`return x, x`, for what is written as a name or a part of one."""
    value = maker.values[0]
    if len(maker.values) != 1 or not isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)):
        return None
    text = maker.source.text(value)
    return edit_of(maker.spot.file, maker.source.replaced({value: f"{text}, {text}"}))


def batch_maker(given: ast.expr, spot: Spot) -> Maker | None:
    """The function behind what `fit` is given: a PyDataset, a generator, or a call that makes one of them."""
    function: Any = None
    value = lookup(given.func if isinstance(given, ast.Call) else given, spot)
    if value is None and isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute):  # a method
        value = inspect.getattr_static(type(lookup(given.func.value, spot)), given.func.attr, None)
    if isinstance(given, ast.Call) and not isinstance(value, type):
        code = getattr(value, "__code__", None)
        function = value if isinstance(code, CodeType) and code.co_flags & 0x20 else None  # a generator function
    elif type(value).__name__ == "generator":
        frame = value.gi_frame
        return _of_code(value.gi_code, spot.module if frame is None else frame.f_globals, "yields")
    else:
        kind = value if isinstance(value, type) else type(value)
        if of_keras(kind, "PyDataset"):
            function = next((vars(one)["__getitem__"] for one in kind.__mro__ if "__getitem__" in vars(one)), None)
            return _of_code(getattr(function, "__code__", None), getattr(function, "__globals__", {}), "returns")
    return _of_code(getattr(function, "__code__", None), getattr(function, "__globals__", {}), "yields")


def _of_code(code: CodeType | None, module: Mapping[str, Any], verb: str) -> Maker | None:
    defined = definition_of(code)
    if code is None or defined is None:
        return None
    file, function = defined
    kind = ast.Return if verb == "returns" else ast.Yield
    found = [part.value for part in own_nodes(function) if isinstance(part, kind)]
    spot = Spot(file, begins(code)[1], {}, module, "")
    return Maker(spot, function, verb, tuple(value for value in found if value is not None))


def is_array(value: ast.expr) -> bool:
    """Whether an expression makes an array or a tensor with axes: `tf.expand_dims(x, 0)`, `x[None]`, `x[:5]`."""
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in _MAKES_ARRAYS
    parts = value.slice.elts if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Tuple) else []
    parts = parts or ([value.slice] if isinstance(value, ast.Subscript) else [])
    return any(isinstance(one, ast.Slice) or (isinstance(one, ast.Constant) and one.value is None) for one in parts)


def leaves(value: ast.expr) -> list[ast.expr]:
    """The parts of a batch: of a tuple, and of dicts in it."""
    if isinstance(value, (ast.Tuple, ast.Dict)):
        inside = value.elts if isinstance(value, ast.Tuple) else value.values
        return [leaf for one in inside for leaf in (leaves(one) if isinstance(one, (ast.Tuple, ast.Dict)) else [one])]
    return []
