"""Proofs, from a function's source, that advice against a retrace can be followed.

"Pass a tensor" and "leave this size open" are right only where the code does not need the Python value or the static
size: `range(k)`, `if flag:`, `x.shape[0]` do. Tracing the function again would show it, but runs the user's Python. So
the source is read: advice is given where every use of what varies is one that TensorFlow computes equally for tensors
of any size (arithmetic and the operations named here), and where the source is the one that was compiled. Everything
else is "not proven", and then nothing is advised.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pyfunc_debug.interception.bodies import closure
from pyfunc_debug.interception.graphs.definitions import definition
from pyfunc_debug.interception.names import TensorFlowNames
from pyfunc_debug.program.frames import is_generated, is_tensorflow

_DEEPEST = 32


@dataclass
class Tensor:
    """A tensor: its dtype's name, None where that is not known. `size` and `rank` say what varies from call to call."""

    dtype: str | None
    size: bool = False
    rank: bool = False

    @property
    def varies(self) -> bool:
        """Whether its static shape differs between the graphs."""
        return self.size or self.rank


@dataclass
class Number:
    """A Python number that differs between the graphs. `needs` collects the dtypes that its uses ask of a tensor."""

    values: tuple[int | float, ...]
    needs: set[str] = field(default_factory=set)

    @property
    def is_int(self) -> bool:
        """Whether all its values are ints."""
        return all(isinstance(value, int) for value in self.values)


@dataclass
class Structure:
    """A list, tuple or dict of arguments, by key."""

    parts: dict[Any, Value]


class Other:
    """A value that is the same in both graphs, and about which nothing more is known."""


class Constant:
    """A Python number that is the same in both graphs: it takes the dtype of the tensor it is combined with."""


Value: TypeAlias = Tensor | Number | Structure | Other | Constant


class NotProvenError(Exception):
    """The code may need the Python value or the static size of what varies."""


def prove(function: Any, arguments: Mapping[str, Value], names: TensorFlowNames) -> bool:
    """Whether a function computes the same when what varies in its arguments becomes a tensor, or a size left open.

    Args:
      function: The Python function of a tf.function.
      arguments: Its parameters. A `Number` of them gets the dtypes that it must have as a tensor in `needs`.
      names: TensorFlow's names.
    """
    try:
        plain = _plain(function, names)
        node = None if plain is None else definition(plain.__code__)
        if plain is None or node is None:
            return False
        _Reader(plain, arguments).check(node)
        return True
    except (NotProvenError, RecursionError):
        return False


def _plain(function: Any, names: TensorFlowNames) -> types.FunctionType | None:
    """The user's function inside TensorFlow's wrappers; None if the user's own decorators stand around it."""
    for _ in range(_DEEPEST):
        if isinstance(function, types.MethodType):
            function = function.__func__
        elif isinstance(function, types.FunctionType) and is_tensorflow(function.__code__.co_filename):
            function = getattr(function, "__wrapped__", None)
        elif isinstance(function, names.function_type or ()):
            function = function.python_function
        else:
            break
    if not isinstance(function, types.FunctionType) or hasattr(function, "__wrapped__"):
        return None
    return None if is_generated(function.__code__.co_filename) else function


_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_UNARY = frozenset(
    {
        "abs", "ceil", "cos", "cosh", "erf", "exp", "expm1", "floor", "identity", "log", "log1p", "negative",
        "ones_like", "reciprocal", "rsqrt", "sigmoid", "sign", "sin", "sinh", "softplus", "sqrt", "square",
        "stop_gradient", "tan", "tanh", "zeros_like",
    }
)  # fmt: skip
"""Element by element, of the input's dtype."""
_ACTIVATIONS = frozenset({"elu", "gelu", "relu", "relu6", "selu", "sigmoid", "softplus", "tanh"})
_BINARY = frozenset({"add", "divide", "maximum", "minimum", "multiply", "subtract"})
_REDUCTIONS = frozenset({"reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum"})
_SIZES = frozenset({"shape", "size"})
_FIXED = ("axis", "keepdims", "name")


class _Reader:
    """Follows what varies through a function without branches, and gives up where it goes anywhere unknown."""

    def __init__(self, function: types.FunctionType, arguments: Mapping[str, Value]) -> None:
        self._own = {*function.__code__.co_varnames, *function.__code__.co_cellvars}
        self._globals = function.__globals__
        self._closure = closure(function)
        self._locals: dict[str, Value] = dict(arguments)
        self._varies = {name for name, value in arguments.items() if _varies(value)}

    def check(self, node: ast.FunctionDef | ast.Lambda) -> None:
        """Raises NotProvenError unless every use of what varies is known to be harmless."""
        if isinstance(node, ast.Lambda):
            self._result(node.body)
            return
        for statement in node.body:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        if not self._touches(statement):
            for name in _assigned(statement):
                self._set(name, Other())
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target = statement.targets[0]
                if isinstance(target, ast.Name):
                    self._set(target.id, self._value(statement.value))
        elif isinstance(statement, ast.Return) and statement.value is not None:
            self._result(statement.value)
        elif isinstance(statement, ast.Expr):
            self._tensor(statement.value)
        elif isinstance(statement, ast.For) and not _assigned(statement) & self._varies:
            self._loop(statement)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            self._assign(statement.targets[0], self._value(statement.value))
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._assign(statement.target, self._value(statement.value))
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            left = ast.copy_location(ast.Name(statement.target.id, ast.Load()), statement.target)
            whole = ast.copy_location(ast.BinOp(left, statement.op, statement.value), statement)
            self._assign(statement.target, self._value(whole))
        else:
            raise NotProvenError(ast.unparse(statement))

    def _loop(self, statement: ast.For) -> None:
        """A loop that changes nothing of what varies: its body may use it."""
        if self._touches(statement.iter) or statement.orelse:
            raise NotProvenError(ast.unparse(statement.iter))
        for name in _assigned(statement):
            self._set(name, Other())
        for each in statement.body:
            self._statement(each)
        if _assigned(statement) & self._varies:  # a second round would see what the first one has changed
            raise NotProvenError("a loop that carries what varies")

    def _assign(self, target: ast.expr, value: Value) -> None:
        if not isinstance(target, ast.Name) or isinstance(value, (Number, Structure)):
            raise NotProvenError("what varies gets another name")
        self._set(target.id, value)

    def _set(self, name: str, value: Value) -> None:
        self._locals[name] = value
        if _varies(value):
            self._varies.add(name)
        else:
            self._varies.discard(name)

    def _result(self, expression: ast.expr) -> None:
        parts = expression.elts if isinstance(expression, (ast.Tuple, ast.List)) else [expression]
        for part in parts:
            if isinstance(self._value(part), (Number, Structure)):
                raise NotProvenError("returned as it is")

    def _touches(self, node: ast.AST) -> bool:
        return any(isinstance(one, ast.Name) and one.id in self._varies for one in ast.walk(node))

    # -- expressions --------------------------------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Name):
            return self._named(node.id)
        if isinstance(node, ast.Constant):
            return Constant() if type(node.value) in (int, float) else Other()
        if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
            return self._arithmetic(node.left, node.right, isinstance(node.op, ast.Div))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return self._product(node.left, node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._tensor(node.operand)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _ORDER):
            compared = self._arithmetic(node.left, node.comparators[0], divides=False)
            return Tensor("bool", _size(compared), _rank(compared)) if isinstance(compared, Tensor) else Other()
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        return self._same(node)

    def _same(self, node: ast.AST) -> Value:
        """An expression of another form: harmless only where nothing in it varies."""
        if self._touches(node):
            raise NotProvenError(ast.unparse(node))
        return Other()

    def _named(self, name: str) -> Value:
        if name in self._locals:
            return self._locals[name]
        if name in self._own:
            return Other()
        thing = self._closure.get(name, self._globals.get(name))
        if type(thing) in (int, float):
            return Constant()
        dtype = getattr(thing, "dtype", None)
        known = type(thing).__module__.startswith("tensorflow.") and hasattr(thing, "shape")
        return Tensor(str(getattr(dtype, "name", None))) if known and dtype is not None else Other()

    def _tensor(self, node: ast.expr) -> Value:
        """An operand that may not be a number that varies."""
        value = self._value(node)
        if isinstance(value, (Number, Structure)):
            raise NotProvenError(ast.unparse(node))
        return value

    def _arithmetic(self, left: ast.expr, right: ast.expr, divides: bool) -> Value:
        one, two = self._value(left), self._value(right)
        if isinstance(one, Structure) or isinstance(two, Structure):
            raise NotProvenError("arithmetic with a list or a dict")
        for number, beside in ((one, two), (two, one)):
            if isinstance(number, Number):
                _note_dtype(number, beside)
        return _joined(one, two, divides)

    def _product(self, left: ast.expr, right: ast.expr) -> Value:
        one, two = self._tensor(left), self._tensor(right)
        if _rank(one) or _rank(two):
            raise NotProvenError("a matrix product of tensors of several ranks")
        return _joined(one, two, divides=False)

    def _item(self, node: ast.Subscript) -> Value:
        held = self._value(node.value)
        if isinstance(held, Structure):
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if key not in held.parts:
                raise NotProvenError(ast.unparse(node))
            return held.parts[key]
        if isinstance(held, Tensor) and not held.rank and _is_fixed_index(node.slice):
            return held
        return self._same(node)

    def _call(self, node: ast.Call) -> Value:
        name = self._operation(node.func)
        if name is None:
            return self._same(node)
        arguments, options = node.args, {one.arg: one.value for one in node.keywords}
        if not arguments or any(isinstance(one, ast.Starred) for one in arguments) or None in options:
            return self._same(node)
        if name == "cast" and len(arguments) == 2 and not options:
            return self._cast(arguments[0], arguments[1])
        if name in ("py_function", "numpy_function"):
            return self._python(node, arguments, options)
        if any(key not in _FIXED or not isinstance(value, ast.Constant) for key, value in options.items()):
            return self._same(node)
        if name in _UNARY | _ACTIVATIONS and len(arguments) == 1:
            return self._tensor(arguments[0])
        if name in _BINARY and len(arguments) == 2:
            if isinstance(self._value(arguments[0]), (Number, Constant)):
                raise NotProvenError("the first operand gives the dtype")
            return self._arithmetic(arguments[0], arguments[1], name == "divide")
        if name == "matmul" and len(arguments) == 2 and not options:
            return self._product(arguments[0], arguments[1])
        if name in _REDUCTIONS:
            return self._reduction(arguments, options)
        if name in _SIZES and len(arguments) == 1:
            self._tensor(arguments[0])
            return Tensor("int32")
        return self._same(node)

    def _operation(self, node: ast.expr) -> str | None:
        """`reduce_sum` of `tf.reduce_sum` and `tf.math.reduce_sum`, where `tf` is TensorFlow."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or not parts or node.id in self._own:
            return None
        root = self._closure.get(node.id, self._globals.get(node.id))
        if root is None or root is not sys.modules.get("tensorflow"):
            return None
        if len(parts) == 2 and (parts[0] == "math" or (parts[0] == "nn" and parts[1] in _ACTIVATIONS)):
            return parts[1]
        return parts[0] if len(parts) == 1 else None

    def _cast(self, thing: ast.expr, dtype: ast.expr) -> Value:
        value = self._value(thing)
        name = self._dtype(dtype)
        if isinstance(value, Structure) or name is None:
            raise NotProvenError(ast.unparse(dtype))
        if isinstance(value, Number):
            value.needs.add(default_dtype(value.values))
            return Tensor(name)
        return Tensor(name, _size(value), _rank(value))

    def _dtype(self, node: ast.expr) -> str | None:
        """`float32` of `tf.float32`, and of `x.dtype` where that is known; None for others."""
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            value = self._value(node.value)
            return value.dtype if isinstance(value, Tensor) else None
        return self._operation(node)

    def _reduction(self, arguments: list[ast.expr], options: Mapping[str | None, ast.expr]) -> Value:
        value = self._tensor(arguments[0])
        axes = [*arguments[1:], *([options["axis"]] if "axis" in options else [])]
        if _rank(value) and axes:
            raise NotProvenError("an axis of tensors of several ranks")
        if not all(_is_number(axis) for axis in axes) or len(axes) > 1:
            raise NotProvenError("an axis that is computed")
        if isinstance(value, Tensor):
            return Tensor(value.dtype, value.size and bool(axes))
        return value

    def _python(self, node: ast.Call, arguments: list[ast.expr], options: Mapping[str | None, ast.expr]) -> Value:
        """A py_function sees whole tensors at run time: their static shapes do not matter to it."""
        inputs = options.get("inp", arguments[1] if len(arguments) > 1 else None)
        others = [one for one in (*arguments, *options.values()) if one is not inputs]
        if not isinstance(inputs, (ast.List, ast.Tuple)) or any(self._touches(one) for one in others):
            return self._same(node)
        for part in inputs.elts:
            value = self._value(part)
            if isinstance(value, Number):
                value.needs.add(default_dtype(value.values))
            elif isinstance(value, Structure):
                raise NotProvenError("a list or a dict as input")
        output = options.get("Tout", arguments[2] if len(arguments) > 2 else None)
        return Tensor(None if output is None else self._operation(output))


def _note_dtype(number: Number, beside: Value) -> None:
    """Notes the dtype that a number gets from the tensor it is combined with."""
    if not isinstance(beside, Tensor) or beside.dtype is None:
        raise NotProvenError("a number with something that is not known to be a tensor")
    if beside.dtype.startswith(("float", "bfloat")) or (
        beside.dtype in _INTS and number.is_int and all(_fits(value, beside.dtype) for value in number.values)
    ):
        number.needs.add(beside.dtype)
    else:
        raise NotProvenError(f"a number with {beside.dtype}")


_INTS = {f"{sign}int{bits}": (sign, bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}


def _fits(value: float, dtype: str) -> bool:
    sign, bits = _INTS[dtype]
    half: int = 1 << (bits - 1)
    return 0 <= value < 2 * half if sign else -half <= value < half


def default_dtype(values: tuple[int | float, ...]) -> str:
    """The dtype that TensorFlow gives to these Python numbers by itself.

    Raises:
      NotProvenError: it would not be one dtype for all of them.
    """
    if all(isinstance(value, float) for value in values):
        return "float32"
    if all(isinstance(value, int) and _fits(value, "int32") for value in values):
        return "int32"
    raise NotProvenError("numbers that TensorFlow gives several dtypes")


def _joined(one: Value, two: Value, divides: bool) -> Value:
    """The type of an operation of two operands."""
    if not isinstance(one, Tensor) and not isinstance(two, Tensor):
        return Other()
    dtypes = {value.dtype for value in (one, two) if isinstance(value, Tensor)}
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    if any(isinstance(value, Other) for value in (one, two)):
        dtype = None
    if divides and dtype in _INTS:
        dtype = "float32" if _INTS[dtype][1] < 32 else "float64"
    return Tensor(dtype, _size(one) or _size(two), _rank(one) or _rank(two))


def _varies(value: Value) -> bool:
    if isinstance(value, Structure):
        return any(_varies(part) for part in value.parts.values())
    return isinstance(value, Number) or (isinstance(value, Tensor) and value.varies)


def _size(value: Value) -> bool:
    return isinstance(value, Tensor) and value.size


def _rank(value: Value) -> bool:
    return isinstance(value, Tensor) and value.rank


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int


def _is_fixed_index(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(map(_is_fixed_index, node.elts))
    if isinstance(node, ast.Slice):
        return all(part is None or _is_number(part) for part in (node.lower, node.upper, node.step))
    return _is_number(node) or (isinstance(node, ast.Constant) and node.value is ...)


def _assigned(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
