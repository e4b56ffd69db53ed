"""TensorFlow's ops on Keras tensors: all such lines of a function or block as Lambda layers, in one paste."""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Iterable, Iterator

from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names
from pyfunc_debug.doctor.failures.reading.symbols import alias, dtype_of, is_keras, lookup, root_is
from pyfunc_debug.program import syntax
from pyfunc_debug.program.syntax import copied

_MOST, _CHANGED = 30, 6
"""Lines of one paste, and how many of them change."""
_KNOWN_ATTRIBUTES = ("shape", "dtype", "ndim", "rank")
"""Of a Keras tensor: what they give is known while the model is built."""
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_PYTHONS = {"len", "isinstance", "type", "print", "range", "id", "int_shape", "ndim"}
"""What gives no tensor for one."""

_BOOLS = {
    "equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or", "logical_not",
    "is_nan", "is_inf", "is_finite", "reduce_any", "reduce_all",
}  # fmt: skip
_NUMBERS = {"shape": "int32", "size": "int32", "rank": "int32", "argmax": "int64", "argmin": "int64"}
_SAME = {
    "reshape", "expand_dims", "squeeze", "tile", "gather", "concat", "stack", "unstack", "split", "transpose", "pad",
    "reverse", "reduce_sum", "reduce_max", "reduce_min", "identity", "stop_gradient", "slice", "abs", "maximum",
    "minimum", "add", "multiply", "subtract", "clip_by_value", "repeat", "broadcast_to", "sort", "cumsum",
}  # fmt: skip
"""Ops whose result has the dtype of what they are given."""


def lists_inputs(value: object) -> bool:
    """Whether it is a list of tensors that only describe what a model will be given."""
    return isinstance(value, (list, tuple)) and bool(value) and all(map(is_keras, value))


def in_dtype(kinds: Iterable[str]) -> str:
    """`, dtype="float64"` for a layer of such tensors: Keras casts what it gives a layer to float32, if not told so."""
    found = set(kinds)
    return f', dtype="{found.pop()}"' if len(found) == 1 and found <= {"float64", "float16", "bfloat16"} else ""


def makes_layers(function: ast.AST, spot: Spot) -> bool:
    """Whether a function makes or calls a layer or model: in a Lambda, what is made there is never trained."""
    for one in ast.walk(function):
        if isinstance(one, ast.Call):
            value = lookup(one.func, spot)
            kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
            if any(kind.__name__ == "Layer" and kind.__module__.startswith("keras.") for kind in kinds):
                return True
            if ".layers." in f"{dotted(one.func)}" or isinstance(one.func, ast.Call):
                return True
    return False


def as_layers(spot: Spot, statement: ast.stmt, keras: str) -> Edit | None:
    """The statement and those of its block behind it, with each call of TensorFlow's on a Keras tensor in a Lambda.

    Args:
      spot: The frame that failed.
      statement: The statement that failed in it.
      keras: How the module calls Keras.

    Returns:
      The lines; None where the line that failed has no such call, or none that is plain.
    """
    chain = _Chain(spot, keras, statement)
    pieces: dict[ast.expr, str] = {}
    changed = 0
    for one in _behind(spot, statement):
        value = getattr(one, "value", None)
        if isinstance(one, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass)):
            continue
        if not isinstance(one, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)):
            break
        if isinstance(value, ast.expr):
            if (one.end_lineno or one.lineno) - statement.lineno >= _MOST:
                break
            found = chain.pieces(value)
            if found is None:
                break
            changed += (one.end_lineno or one.lineno) + 1 - one.lineno if found else 0
            if changed > _CHANGED and pieces:
                break
            pieces |= found
        if one is statement and not pieces:
            return None
        chain.assign(one)
    if not pieces:
        return None
    first, last = min(one.lineno for one in pieces), max(one.end_lineno or one.lineno for one in pieces)
    return Edit(spot.file, first, last, spot.source.spliced(pieces, first, last))


def _behind(spot: Spot, statement: ast.stmt) -> Iterator[ast.stmt]:
    holder = spot.source.parent(statement)
    for part in ("body", "orelse", "finalbody"):
        block = getattr(holder, part, None)
        if isinstance(block, list) and statement in block:
            yield from block[block.index(statement) :]


class _Chain:
    """Names that stand for Keras tensors, line by line, and what takes them in a layer."""

    def __init__(self, spot: Spot, keras: str, statement: ast.stmt) -> None:
        self._spot, self._keras = spot, keras
        own = {**spot.module, **spot.variables}
        self._tensors = {name for name, one in own.items() if is_keras(one) or lists_inputs(one)}
        scope = spot.function or spot.source.tree
        stored = [one.id for one in ast.walk(scope) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
        looped = any(isinstance(one, (ast.For, ast.While)) for one in spot.source.around(statement))
        self._unknown: set[str] = set()
        self._dtypes = {name: dtype_of(one) for name, one in own.items() if is_keras(one)}
        self._dtypes |= {name: dtype_of(one[0]) for name, one in own.items() if lists_inputs(one)}
        self._unknown |= {
            name for name, one in own.items() if lists_inputs(one) and not self._dtypes[name].startswith("float")
        }
        self._changing = {name for name in stored if looped or stored.count(name) > 1}

    def assign(self, statement: ast.stmt) -> None:
        """Reads what a statement's targets stand for behind it."""
        value = getattr(statement, "value", None)
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for target in targets:
            for one in ast.walk(target) if target is not None else ():
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                    if isinstance(statement, ast.AugAssign) and one.id in self._tensors:
                        continue
                    kept = value is not None and self._reads(value) and not self._known(value)
                    (self._tensors.add if kept else self._tensors.discard)(one.id)
                    own = kept and isinstance(value, ast.Call) and not self._gives_tensors(value)
                    dtype = self._dtype(value) if kept and value is not None else ""
                    own = own or (kept and dtype is None)
                    (self._unknown.add if own else self._unknown.discard)(one.id)
                    self._dtypes[one.id] = dtype or ""

    def pieces(self, value: ast.expr) -> dict[ast.expr, str] | None:
        """Calls of TensorFlow's in an expression and their texts as layers; None where one cannot be a layer."""
        found: dict[ast.expr, str] = {}
        for one in self._outermost(value):
            text = self._layer(one)
            if text is None:
                return None
            found[one] = text
        return found

    def _outermost(self, node: ast.AST) -> Iterator[ast.Call]:
        if isinstance(node, ast.Call) and self._is_op(node) and self._reads(node):
            yield node
        elif not isinstance(node, (ast.Lambda, *_COMPREHENSIONS)):
            for one in ast.iter_child_nodes(node):
                yield from self._outermost(one)

    def _is_op(self, call: ast.Call) -> bool:
        """Whether TensorFlow's own function is called: `tf.reduce_mean`, and not `tf.keras.layers.Dense`."""
        return root_is(call.func, self._spot, "tensorflow") and "keras" not in dotted(call.func).split(".")

    def _layer(self, call: ast.Call) -> str | None:
        """`Lambda(lambda x: tf.f(x))(x)`; what layers and the program's own functions give is an input of it."""
        name = dotted(call.func).rpartition(".")[2]
        if name in ("py_function", "numpy_function") or any(
            isinstance(one, ast.Attribute) and one.attr == "numpy" for one in ast.walk(call)
        ):
            return None
        inner = list(self._others(call))
        if not all(self._takes_keras(part) for one in inner for part in ast.walk(one) if isinstance(part, ast.Call)):
            return None
        taken = {*names(call), *self._tensors}
        fresh = iter(one for one in ("y", "y2", "y3", "y4", "z", "z2") if one not in taken)
        given: dict[str, str] = {}
        new: dict[int, str] = {}
        for one in inner:
            if any(isinstance(part, ast.Call) and self._is_op(part) and self._reads(part) for part in ast.walk(one)):
                deeper = self.pieces(one)
                if not deeper:
                    return None
                text = ast.unparse(_Placed({id(part): new_text for part, new_text in deeper.items()}).changed(one))
            else:
                text = self._spot.source.text(one)
            name = next(fresh, "")
            if not name:
                return None
            new[id(one)] = name
            given[name] = text
        inside = _Placed(new).changed(call) if new else call
        read = [one for one in names(inside) if one in self._tensors]
        tf = alias(self._spot, "tensorflow")
        casts: dict[int, str] = {}  # a Lambda tries what it is given with floats, whatever its inputs are
        for held in (part for part in ast.walk(inside) if isinstance(part, ast.Name) and part.id in self._tensors):
            kind = self._dtypes.get(held.id, "")
            if kind and not kind.startswith("float"):
                casts[id(held)] = f"{tf}.cast({held.id}, {tf}.{kind})"
        if casts:
            inside, new = _Placed(casts).changed(inside), {**new, **casts}
        if self._unknown & set(names(inside)):
            return None
        text = ast.unparse(inside) if new else self._spot.source.text(call)
        given = {**{one: one for one in read}, **given}
        if any(isinstance(held := self._spot.value(one), (list, tuple)) and not lists_inputs(held)
               and any(map(is_keras, held)) for one in names(inside)):  # fmt: skip
            return None
        kept = [one for one in names(inside) if one in self._changing and one not in given]
        defaults = "".join(f", {one}={one}" for one in kept)
        dtype = in_dtype(self._dtypes.get(one, "") for one in given)
        if len(given) == 1:
            ((name, text_of),) = given.items()
            return f"{self._keras}.layers.Lambda(lambda {name}{defaults}: {text}{dtype})({text_of})"
        listed = ", ".join(given)
        return (
            f"{self._keras}.layers.Lambda(lambda both{defaults}: (lambda {listed}: {text})(*both){dtype})"
            f"([{', '.join(given.values())}])"
        )

    def _others(self, node: ast.AST) -> Iterator[ast.expr]:
        """Calls of anything but TensorFlow in an expression that are given Keras tensors, and lists that make such."""
        for one in ast.iter_child_nodes(node):
            own = isinstance(one, ast.Call) and not self._is_op(one) and not self._known(one)
            lists = isinstance(one, _COMPREHENSIONS) and any(
                isinstance(part, ast.Call) and not self._is_op(part) for part in ast.walk(one)
            )
            if isinstance(one, ast.expr) and (own or lists) and self._reads(one):
                yield one
            else:
                yield from self._others(one)

    def _takes_keras(self, call: ast.Call) -> bool:
        """Whether what is called is Keras' or TensorFlow's, a layer, or a function of the program's own."""
        if not self._reads(call) or isinstance(call.func, ast.Call):
            return True
        value = lookup(call.func, self._spot)
        own = isinstance(value, types.FunctionType) and self._spot.first_line(value.__code__) is not None
        kinds = [one.__module__.partition(".")[0] for one in type(value).__mro__]
        named = any(root_is(call.func, self._spot, one) for one in ("tensorflow", "keras"))
        return own or named or "keras" in kinds

    def _reads(self, node: ast.AST) -> bool:
        """Whether an expression needs a Keras tensor, and not only its shape or dtype."""
        if isinstance(node, ast.Attribute) and node.attr in _KNOWN_ATTRIBUTES:
            return False
        if isinstance(node, ast.Name):
            return node.id in self._tensors
        if isinstance(node, _COMPREHENSIONS):
            return any(self._reads(one.iter) for one in node.generators) or self._reads_parts(node)
        return self._reads_parts(node)

    def _reads_parts(self, node: ast.AST) -> bool:
        return any(self._reads(one) for one in ast.iter_child_nodes(node))

    def _dtype(self, value: ast.expr) -> str | None:
        """What dtype an expression of Keras tensors has: empty for the layers' own; None where it is not known."""
        if isinstance(value, ast.Call) and not self._is_op(value):
            return ""
        name = dotted(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
        if isinstance(value, ast.Compare) or name in _BOOLS:
            return "bool"
        if name in _NUMBERS and isinstance(value, ast.Call):
            return None if any("type" in str(one.arg) for one in value.keywords) else _NUMBERS[name]
        if name == "cast" and isinstance(value, ast.Call):
            to = argument(value, 1, "dtype")
            said = str(to.value) if isinstance(to, ast.Constant) else dotted(to).rpartition(".")[2]
            return said if re.fullmatch(r"u?int\d+|bool|float\d+", said) else None
        read = {self._dtypes.get(one, "") for one in names(value) if one in self._tensors}
        floats = all(not one or one.startswith("float") for one in read)
        if floats:
            return ""
        return read.pop() if len(read) == 1 and (name in _SAME or not isinstance(value, ast.Call)) else None

    def _known(self, value: ast.expr) -> bool:
        """Whether it is a number that is known while the model is built: `len(parts)`, `int_shape(x)[1]`."""
        while isinstance(value, ast.Subscript):
            value = value.value
        return isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in _PYTHONS

    def _gives_tensors(self, call: ast.Call) -> bool:
        """Whether a call certainly gives Keras tensors for such: TensorFlow's in a Lambda, a layer's, keras.ops'."""
        if self._is_op(call):
            return True
        value = lookup(call.func.func if isinstance(call.func, ast.Call) else call.func, self._spot)
        kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
        layers = any(one.__name__ == "Layer" and one.__module__.startswith("keras.") for one in kinds)
        return layers or bool({"layers", "ops"} & set(dotted(getattr(call.func, "func", call.func)).split(".")))


class _Placed(ast.NodeTransformer):
    """A copy of an expression, with other text in the place of some of its parts."""

    def __init__(self, texts: dict[int, str]) -> None:
        self._texts = texts
        self._copies: dict[int, str] = {}

    def changed(self, node: ast.expr) -> ast.expr:
        made = copied(node)
        pairs = zip(ast.walk(node), ast.walk(made))
        self._copies = {id(new): self._texts[id(old)] for old, new in pairs if id(old) in self._texts}
        placed = self.visit(made)
        assert isinstance(placed, ast.expr)
        return placed

    def visit(self, node: ast.AST) -> ast.AST:
        text = self._copies.get(id(node))
        return syntax.expression(text) if text is not None else self.generic_visit(node)
