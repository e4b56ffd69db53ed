"""Python and NumPy on symbolic tensors, written with TensorFlow's ops instead."""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
from typing import Any

from pyfunc_debug.doctor.failures.ops import image_ops
from pyfunc_debug.doctor.failures.ops.array_ops import OPENCV, PICKED, in_array_ops, of_subscript
from pyfunc_debug.doctor.failures.ops.correlation import correlated, in_ops
from pyfunc_debug.doctor.failures.ops.fourier import is_fourier, transformed
from pyfunc_debug.doctor.failures.ops.keras_numpy import in_keras
from pyfunc_debug.doctor.failures.pastes.tried_ops import differs
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.evaluation import SIZE
from pyfunc_debug.doctor.failures.reading.made_values import made_value
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, names
from pyfunc_debug.doctor.failures.reading.symbols import (
    Described,
    alias,
    dtype_of,
    is_symbolic,
    lookup,
    root_is,
    shape_of,
    symbolic_parts,
    takes_tensors,
)
from pyfunc_debug.program import syntax
from pyfunc_debug.program.syntax import copied

_NUMPY = {
    "sin": "sin", "cos": "cos", "tan": "tan", "exp": "exp", "sqrt": "sqrt", "abs": "abs", "absolute": "abs",
    "sinh": "sinh", "cosh": "cosh", "arctan": "atan", "arcsin": "asin", "arccos": "acos", "arctan2": "atan2",
    "square": "square", "sign": "sign", "floor": "floor", "ceil": "math.ceil", "tanh": "tanh", "log": "math.log",
    "log1p": "math.log1p", "maximum": "maximum", "minimum": "minimum", "mean": "reduce_mean", "sum": "reduce_sum",
    "max": "reduce_max", "min": "reduce_min", "amax": "reduce_max", "amin": "reduce_min", "std": "math.reduce_std",
    "var": "math.reduce_variance", "prod": "reduce_prod", "clip": "clip_by_value", "isnan": "math.is_nan",
    "expand_dims": "expand_dims", "transpose": "transpose", "reshape": "reshape", "stack": "stack",
    "concatenate": "concat", "zeros_like": "zeros_like", "ones_like": "ones_like", "power": "pow", "round": "round",
    "real": "math.real", "imag": "math.imag", "angle": "math.angle", "conj": "math.conj", "conjugate": "math.conj",
}  # fmt: skip
_MATH = {
    "sqrt": "sqrt", "exp": "exp", "log": "math.log", "sin": "sin", "cos": "cos", "tan": "tan", "tanh": "tanh",
    "pow": "pow",
    "atan2": "math.atan2", "atan": "math.atan", "fabs": "abs", "floor": "floor", "ceil": "math.ceil",
    "isnan": "math.is_nan", "log1p": "math.log1p",
}  # fmt: skip
_METHODS = {
    "sum": "reduce_sum", "mean": "reduce_mean", "max": "reduce_max", "min": "reduce_min", "std": "math.reduce_std",
    "var": "math.reduce_variance", "prod": "reduce_prod", "any": "reduce_any", "all": "reduce_all", "copy": "identity",
    "transpose": "transpose", "squeeze": "squeeze", "argmax": "argmax", "argmin": "argmin", "clip": "clip_by_value",
    "round": "round", "repeat": "repeat",
}  # fmt: skip
_STRINGS = {"lower": "strings.lower", "upper": "strings.upper", "strip": "strings.strip", "split": "strings.split"}
_CREATE = {"zeros": "zeros", "ones": "ones", "full": "fill", "arange": "range", "eye": "eye", "empty": "zeros"}
_SIZED = {"arange", "linspace", "full", "zeros", "ones", "empty", "eye", "identity", "tri", "repeat", "tile"}
_LINALG = ("inv", "det", "solve", "cholesky", "pinv")
_PRODUCTS = {"dot", "matmul", "outer", "inner"}
_OF_RANKS: dict[tuple[str, int | None, int | None], str] = {
    ("dot", 2, 2): "matmul", ("matmul", 2, 2): "matmul", ("matmul", 3, 3): "matmul",
    ("dot", 2, 1): "linalg.matvec", ("matmul", 2, 1): "linalg.matvec",
    ("dot", 1, 1): "tensordot", ("matmul", 1, 1): "tensordot", ("inner", 1, 1): "tensordot",
    ("outer", 1, 1): "tensordot",
}  # fmt: skip
"""Ops for two arrays of one dtype: NumPy's name, and their ranks."""
_OF_KERAS = ("eval", "get_value", "convert_to_numpy")
"""Keras' functions for a tensor's value: a graph computes with the tensor."""
_LIBRARIES = ("numpy", "scipy", "sklearn", OPENCV)
_SELF = {"array", "asarray", "asanyarray", "ascontiguousarray", "item"}


class _NoOpError(Exception):
    """Something has no op that does it."""


class _Ops(ast.NodeTransformer):
    """Replaces what cannot run on symbolic tensors; raises _NoOpError where there is no op for it."""

    def __init__(self, spot: Spot, tainted: set[str]) -> None:
        self.spot = spot
        self._tf = alias(spot, "tensorflow")
        self.tainted = tainted
        self.changed = False
        self._rows: set[str] = set()
        """Names of a tensor's parts, in a comprehension."""

    def is_tainted(self, node: ast.AST) -> bool:
        return any(name in self.tainted for name in names(node)) or any(
            dotted(one) in self.tainted for one in ast.walk(node) if isinstance(one, ast.Attribute)
        )

    def _op(self, name: str, args: list[ast.expr], keywords: list[ast.keyword] | None = None) -> ast.Call:
        self.changed = True
        function = syntax.expression(f"{self._tf}.{name}")
        number = isinstance(args[0], ast.Constant) and type(args[0].value) is int if len(args) == 2 else False
        if name in ("maximum", "minimum") and number:  # a graph takes the dtype of the first
            args = args[::-1]
        kind = {"reduce_sum": "int64", "reduce_mean": "float32"}.get(name)
        if kind is not None and args and self._bools(args[0]):  # NumPy counts what is true, TensorFlow refuses
            args = [self._op("cast", [args[0], syntax.expression(f"{self._tf}.{kind}")]), *args[1:]]
        return ast.Call(function, args, keywords or [])

    def _bools(self, node: ast.AST) -> bool:
        """Whether an expression is a tensor of bools, by what is written or by its dtype."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            return self._bools(node.left) and self._bools(node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return self._bools(node.operand)
        if isinstance(node, ast.Call):
            return dotted(node.func).rpartition(".")[2] in ("equal", "not_equal", "logical_and", "logical_or", "is_nan")
        return isinstance(node, ast.Compare) or dtype_of(self.spot.value(dotted(node) or " ")) == "bool"

    def _floats(self, node: ast.AST) -> bool:
        indices = {name for one in ast.walk(node) if isinstance(one, ast.Subscript) for name in names(one.slice)}
        parts = [value for name, value in symbolic_parts(node, self.spot).items() if name not in indices]
        return all("float" in dtype_of(one) or "complex" in dtype_of(one) for one in parts)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        touched = self.is_tainted(node)
        given: list[ast.expr] = [*node.args, *(one.value for one in node.keywords)]
        in_arguments = any(self.is_tainted(one) for one in given)
        floats = self._floats(node)
        written = copied(node)
        on_tensor = isinstance(node.func, ast.Attribute) and self.is_tainted(node.func.value)
        self.generic_visit(node)
        if not touched:
            return node
        if any(isinstance(one, ast.Starred) for one in node.args):
            name = dotted(node.func).partition(".")[2] if root_is(node.func, self.spot, "numpy") else ""
            return self._drawn(node, name) or node
        if isinstance(node.func, ast.Attribute):
            if on_tensor:
                image = image_ops.in_ops(node, self.spot, self._tf)
                return self._method(node, node.func) if image is None else self._text(image)
            if len(node.args) == 1 and in_arguments and is_run(node, self.spot):
                self.changed = True
                return node.args[0]
            of_tensors = any(root_is(node.func, self.spot, one) for one in ("tensorflow", "keras"))
            if in_arguments and of_tensors and node.func.attr == "constant":
                return self._constant(node)
            if in_arguments and of_tensors and node.func.attr in _OF_KERAS:
                self.changed = True
                return node.args[0] if len(node.args) == 1 and not node.keywords else node
            if node.func.attr == "fromarray":
                return node  # in `Image.fromarray(x).resize(...)`, which is one op
            if in_arguments and (image := image_ops.in_ops(node, self.spot, self._tf)) is not None:
                return self._text(image)
            if not in_arguments or of_tensors or takes_tensors(node, self.spot):
                return node
            library = next((one for one in _LIBRARIES if root_is(node.func, self.spot, one)), "")
            if library:
                return self._of_library(node, node.func, library, floats, written)
            if root_is(node.func, self.spot, "math") and node.func.attr in _MATH:
                return self._op(_MATH[node.func.attr], node.args, node.keywords)
            raise _NoOpError
        if not in_arguments or takes_tensors(node, self.spot):
            return node
        if (image := image_ops.in_ops(node, self.spot, self._tf)) is not None:
            return self._text(image)
        imported = _of_arrays(self.spot.value(getattr(node.func, "id", " ")))
        if imported is not None:  # `from numpy.fft import rfft`
            written.func = imported
            library = dotted(imported).partition(".")[0]
            return self._of_library(ast.Call(imported, node.args, node.keywords), imported, library, floats, written)
        return self._builtin(node)

    def _constant(self, node: ast.Call) -> ast.AST:
        """`tf.constant` of tensors: it takes values only."""
        given = dict(zip(("value", "dtype", "shape"), node.args)) | {str(one.arg): one.value for one in node.keywords}
        value, dtype, shape = (given.get(one) for one in ("value", "dtype", "shape"))
        if value is None or not self.is_tainted(value):
            return node
        self.changed = True
        if isinstance(value, (ast.List, ast.Tuple)):
            nested = any(isinstance(one, (ast.List, ast.Tuple)) for one in value.elts)
            value = self._op("convert_to_tensor" if nested else "stack", [value])
        value = value if dtype is None else self._op("cast", [value, dtype])
        if shape is None:
            return value
        scalar = isinstance(value, ast.Name) and shape_of(self.spot.value(value.id)) == ()
        return self._op("fill", [shape, value]) if scalar else self._op("broadcast_to", [value, shape])

    def _of_library(
        self, node: ast.Call, func: ast.Attribute, library: str, floats: bool, written: ast.Call
    ) -> ast.AST:
        if is_fourier(func, library):
            given = written.args[0] if written.args else written
            tensor = re.fullmatch(r"(\w+)(?:\.numpy\(\))?", ast.unparse(given))
            kind = dtype_of(self.spot.value(tensor[1])) if tensor is not None else ""
            return self._text(transformed(node, self._made(written)[0], kind, self._tf))
        flips = library == "numpy" and func.attr == "flip"  # OpenCV's has another meaning
        text = None if flips else in_array_ops(node, written, self._made(written), self._tf)
        if text is not None and (library != "numpy" or not differs(written, text, self.spot)):
            return self._text(text)
        if library == "scipy" and func.attr == "trapezoid":
            return self._text(in_keras(func.attr, node, self.spot))
        if library == "numpy":
            return self._numpy(node, func, floats, written)
        raise _NoOpError

    def _computes(self, func: ast.expr) -> bool:
        """Whether a function is NumPy's or SciPy's."""
        home = str(getattr(self.spot.value(getattr(func, "id", " ")), "__module__", ""))
        return home.partition(".")[0] in ("numpy", "scipy") or any(
            root_is(func, self.spot, one) for one in ("numpy", "scipy")
        )

    def _text(self, text: str | None) -> ast.expr:
        if text is None:
            raise _NoOpError
        self.changed = True
        return syntax.expression(text)

    def _made(self, call: ast.Call) -> list[Any]:
        """What each argument of a call gives on made inputs, as arrays; None for those that are not known."""
        return [_made(one, self.spot) for one in call.args] or [None]

    def _numpy(self, node: ast.Call, func: ast.Attribute, floats: bool, written: ast.Call) -> ast.AST:
        name = func.attr
        if dotted(func).count(".") > 1:
            if dotted(func).endswith("linalg.norm"):
                return self._op("norm", node.args, node.keywords)
            if dotted(func).rpartition(".")[0].endswith("linalg") and name in _LINALG and not node.keywords:
                return self._op(f"linalg.{name}", node.args)
            drawn = self._drawn(node, dotted(func).partition(".")[2])
            if drawn is not None:
                return drawn
            raise _NoOpError
        if name in _SELF and len(node.args) == 1:
            dtype = next((one.value for one in node.keywords if one.arg == "dtype"), None)
            self.changed = True
            return node.args[0] if dtype is None else self._op("cast", [node.args[0], dtype])
        keywords = {one.arg for one in node.keywords}
        if name in _PRODUCTS and len(node.args) == 2 and not keywords:
            return self._product(name, node.args)
        plain = name != "round" or len(node.args) == 1  # TensorFlow's takes no decimals
        if name in _NUMPY and floats and plain and keywords <= {"axis", "keepdims"}:
            return self._op(_NUMPY[name], node.args, node.keywords)
        if name in ("float32", "float64", "int32", "int64", "uint8", "float16") and len(node.args) == 1:
            return self._op("cast", [node.args[0], syntax.expression(f"{self._tf}.{name}")])
        if (
            name in _SIZED or name == "pad" or "ddof" in keywords
        ):  # those of TensorFlow's NumPy take no size that a tensor has
            raise _NoOpError
        ported: Any = getattr(getattr(sys.modules.get("tensorflow"), "experimental", None), "numpy", None)
        if hasattr(ported, name) and name not in ("random", "linalg"):
            return self._op(f"experimental.numpy.{name}", node.args, node.keywords)
        return self._text(in_keras(name, node, self.spot))

    def _product(self, name: str, args: list[ast.expr]) -> ast.Call:
        """A product as the op that is NumPy's for the ranks at hand; TensorFlow's NumPy where these are not known."""
        known = [self.spot.value(dotted(one) or " ") for one in args]
        shapes, dtypes = [shape_of(one) for one in known], {dtype_of(one) for one in known}
        ranks = tuple(None if shape is None else len(shape) for shape in shapes)
        op = _OF_RANKS.get((name, ranks[0], ranks[1])) if len(dtypes) == 1 else None  # only TensorFlow's NumPy converts
        if op is None:
            return self._op(f"experimental.numpy.{name}", args)
        axes: list[ast.expr] = [ast.Constant({"inner": 1, "dot": 1, "matmul": 1, "outer": 0}[name])]
        return self._op(op, [*args, *(axes if op == "tensordot" else [])])

    def _drawn(self, node: ast.Call, name: str) -> ast.Call | None:
        """Random numbers: one whose bounds are tensors, or as many as a tensor has."""
        star = node.args[0].value if len(node.args) == 1 and isinstance(node.args[0], ast.Starred) else None
        if name in ("random.rand", "random.randn") and isinstance(star, ast.Attribute) and star.attr == "shape":
            return self._op(
                f"random.{'uniform' if name.endswith('rand') else 'normal'}", [self._op("shape", [star.value])]
            )
        size = next((one.value for one in node.keywords if one.arg == "size"), None)
        if name in ("random.normal", "random.uniform") and len(node.args) == 3 and not node.keywords:
            size, node = node.args[2], ast.Call(node.func, node.args[:2], [])
        if isinstance(size, ast.Attribute) and size.attr == "shape" and self.is_tainted(size.value):
            given = [one for one in node.keywords if one.arg != "size"]
            if name in ("random.normal", "random.uniform") and not given and len(node.args) in (0, 2):
                return self._op(name, [self._op("shape", [size.value]), *node.args])
        if node.keywords or not 1 <= len(node.args) <= 2 or name not in ("random.randint", "random.uniform"):
            return None
        bounds = node.args if len(node.args) == 2 else [ast.Constant(0), *node.args]
        whole = [syntax.expression(f"{self._tf}.int32")] if name.endswith("randint") else []
        return self._op("random.uniform", [ast.List([], ast.Load()), *bounds, *whole])

    def _method(self, node: ast.Call, func: ast.Attribute) -> ast.AST:
        owner, name = func.value, func.attr
        if (name in ("numpy", "item") and not node.args) or name == "eval":  # of a session, in TensorFlow 1
            self.changed = True
            return owner
        if name == "astype" and len(node.args) == 1:
            kind = dotted(node.args[0]).rpartition(".")[2] or getattr(node.args[0], "value", "")
            kind = {"float": "float32", "int": "int32", "bool": "bool"}.get(str(kind), str(kind))
            return self._op("cast", [owner, syntax.expression(f"{self._tf}.{kind}")])
        if name == "reshape":
            single = len(node.args) == 1 and isinstance(node.args[0], (ast.Tuple, ast.List, ast.Name))
            shape = node.args[0] if single else ast.List(list(node.args), ast.Load())
            return self._op("reshape", [owner, shape])
        if name == "dot" and len(node.args) == 1 and not node.keywords:
            return self._product("dot", [owner, node.args[0]])
        if name in ("flatten", "ravel"):
            return self._op("reshape", [owner, syntax.expression("[-1]")])
        if name in ("get_shape", "set_shape", "ref", "assign", "assign_add", "assign_sub"):
            return node
        strings = any(dtype_of(one) == "string" for one in symbolic_parts(owner, self.spot).values())
        if strings and name in _STRINGS and (name == "split" or not node.args):  # strings.strip knows white space only
            return self._op(_STRINGS[name], [owner, *node.args], node.keywords)
        if name in _METHODS and not strings:
            return self._op(_METHODS[name], [owner, *node.args], node.keywords)
        raise _NoOpError

    def _builtin(self, node: ast.Call) -> ast.AST:
        name = getattr(node.func, "id", "")
        if name in ("max", "min") and len(node.args) == 2 and not node.keywords:
            return self._op(f"{name}imum", node.args)
        if name in ("max", "min", "sum") and len(node.args) == 1 and not node.keywords:
            return self._op(f"reduce_{name}", node.args)
        strings = self._strings(node)
        if name == "len" and strings == 0:
            return self._op("strings.length", node.args)
        if name == "len":
            return ast.Subscript(self._op("shape", node.args), ast.Constant(0), ast.Load())
        if name in ("int", "float") and strings is not None and len(node.args) == 1:
            number = syntax.expression(f"{self._tf}.{'int32' if name == 'int' else 'float32'}")
            return self._op("strings.to_number", [*node.args, number])
        if name in ("int", "float", "bool") and len(node.args) == 1 and strings is None:
            kind = {"int": "int32", "float": "float32", "bool": "bool"}[name]
            return self._op("cast", [*node.args, syntax.expression(f"{self._tf}.{kind}")])
        if name == "round" and len(node.args) == 1 and not node.keywords and self._floats(node.args[0]):
            return self._op("round", node.args)
        digits = node.args[1].value if len(node.args) == 2 and isinstance(node.args[1], ast.Constant) else None
        if name == "round" and type(digits) is int and 0 < digits < 6 and self._floats(node.args[0]):
            ten = ast.Constant(float(10**digits))
            return ast.BinOp(self._op("round", [ast.BinOp(node.args[0], ast.Mult(), ten)]), ast.Div(), ten)
        if name == "reversed" and len(node.args) == 1:
            return self._op("reverse", [node.args[0], ast.List([ast.Constant(0)], ast.Load())])
        if name in ("list", "tuple") and len(node.args) == 1:
            return self._op("unstack", node.args)
        if name == "range":
            return self._op("range", node.args)
        if name in ("abs", "print", "isinstance", "enumerate", "zip", "getattr", "type"):
            return node
        raise _NoOpError

    def _strings(self, call: ast.Call) -> int | None:
        """The rank of a text tensor that a function is given, or a part of it; None for any other value."""
        given = call.args[0] if call.args else call
        value = given.value if isinstance(given, ast.Subscript) else given
        known = self.spot.value(dotted(value) or " ")
        if dtype_of(known) != "string":
            return None
        shape = shape_of(known)
        return None if shape is None else max(len(shape) - isinstance(given, ast.Subscript), 0)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        tainted = self.is_tainted(node.value)
        self.generic_visit(node)
        if tainted and node.attr == "T":
            return self._op("transpose", [node.value])
        if tainted and node.attr == "size":
            return self._op("size", [node.value])
        if tainted and node.attr in ("real", "imag"):
            return self._op(f"math.{node.attr}", [node.value])
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        in_index, in_value = self.is_tainted(node.slice), self.is_tainted(node.value)
        known = self.spot.value(dotted(node.value) or " ")
        if dtype_of(known) == "string" and shape_of(known) == ():  # letters of a text
            raise _NoOpError
        of_two = correlated(node)
        if of_two is not None and self.is_tainted(of_two) and self._computes(of_two.func):
            made = self._made(copied(of_two))
            return self._text(in_ops([self.visit(one) for one in of_two.args], made, self._tf))
        if isinstance(node.value, ast.Call) and (in_index or in_value):
            text = self._picked(node, node.value)
            if text is not None:
                return self._text(text)
        listed = isinstance(node.value, (ast.List, ast.Tuple)) and not isinstance(node.slice, (ast.Tuple, ast.Slice))
        chosen = self._bools(node.slice)
        self.generic_visit(node)
        if in_index and listed:
            whole = syntax.expression(f"{self._tf}.int32")
            index = self._op("cast", [node.slice, whole]) if chosen else node.slice
            return self._op("gather", [node.value, index])
        if in_index and not in_value:
            if isinstance(node.slice, (ast.Tuple, ast.Slice)) or self._bools(node.slice):
                raise _NoOpError
            value = lookup(node.value, self.spot)
            if (isinstance(value, (list, tuple)) and _are_values(value)) or type(value).__module__ == "numpy":
                return self._op("gather", [node.value, node.slice])
            raise _NoOpError
        return node

    def _picked(self, node: ast.Subscript, call: ast.Call) -> str | None:
        """What is taken of the result of a call of NumPy's or OpenCV's, in ops."""
        ours = any(root_is(call.func, self.spot, one) for one in ("numpy", OPENCV))
        if not ours or dotted(call.func).rpartition(".")[2] not in PICKED:
            return None
        made, written = self._made(copied(call)), copied(node)
        args = [self.visit(one) for one in call.args]
        named = [ast.keyword(one.arg, self.visit(one.value)) for one in call.keywords]
        index = ast.unparse(self.visit(node.slice))
        return of_subscript(written, ast.Call(call.func, args, named), made, index, self._tf)

    def _comprehension(self, node: Any) -> ast.AST:
        """What it names of a tensor's parts is a tensor, too."""
        for one in node.generators:
            if isinstance(one.iter, ast.Call) and dotted(one.iter.func) == "range" and self.is_tainted(one.iter):
                raise _NoOpError  # no comprehension goes through the numbers of a graph
            if self.is_tainted(one.iter):
                self._rows.update(part.id for part in ast.walk(one.target) if isinstance(part, ast.Name))
        self.tainted |= self._rows
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """`@` of TensorFlow's takes no vectors."""
        vectors = isinstance(node.op, ast.MatMult) and self.is_tainted(node) and any(
            map(self._may_be_vector, (node.left, node.right))
        )  # fmt: skip
        divides = isinstance(node.op, ast.Div)
        whole = [self._as_float(*sides, divides) for sides in ((node.left, node.right), (node.right, node.left))]
        self.generic_visit(node)
        if vectors:
            return self._product("matmul", [node.left, node.right])
        node.left, node.right = (
            one if dtype is None else self._op("cast", [one, syntax.expression(dtype)])
            for one, dtype in zip((node.left, node.right), whole)
        )
        return node

    def _as_float(self, node: ast.expr, beside: ast.expr, divides: bool) -> str | None:
        """The dtype beside `int(x)` or `len(x)`, if that is a float: TensorFlow computes with two of one dtype only."""
        name = dotted(node.func) if isinstance(node, ast.Call) else ""
        if name not in ("int", "len") or not self.is_tainted(node):
            return None
        if isinstance(beside, ast.Name) and self.is_tainted(beside) and (name == "int" or divides):
            return f"{beside.id}.dtype"
        kinds = {dtype_of(one) for one in symbolic_parts(beside, self.spot).values()}
        if len(kinds) == 1 and "float" in next(iter(kinds)):
            return f"{self._tf}.{next(iter(kinds))}"
        sums = isinstance(beside, ast.Name) and type(self.spot.value(beside.id)) is float
        return f"{self._tf}.float32" if sums and name == "len" else None  # what a loop adds up

    def _may_be_vector(self, node: ast.expr) -> bool:
        shape = shape_of(self.spot.value(dotted(node) or " "))
        return bool(set(names(node)) & self._rows) or (shape is not None and len(shape) == 1)

    visit_ListComp = visit_GeneratorExp = visit_SetComp = visit_DictComp = _comprehension  # noqa: N815

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        if self.is_tainted(node):
            raise _NoOpError
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if self.is_tainted(node) and self._of_keys(node):
            raise _NoOpError
        return self.generic_visit(node)

    def _of_keys(self, node: ast.Compare) -> bool:
        """Whether it asks for a key of a dict's, or for a part of a text: Python compares values there."""
        asks = isinstance(node.ops[0], (ast.In, ast.NotIn))
        return asks and isinstance(lookup(node.comparators[0], self.spot), (dict, set, frozenset, str))


class _Conditions(_Ops):
    """The same, and `and`, `or`, `not`, chains of comparisons and conditional expressions."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        tainted = self.is_tainted(node)
        self.generic_visit(node)
        if not tainted:
            return node
        name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        found: ast.expr = node.values[0]
        for value in node.values[1:]:
            found = self._op(name, [found, value])
        return found

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        tainted = self.is_tainted(node)
        self.generic_visit(node)
        return self._op("logical_not", [node.operand]) if tainted and isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        tainted = self.is_tainted(node)
        self.generic_visit(node)
        if not tainted:
            return node
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            if self._of_keys(node):
                raise _NoOpError
            found: ast.expr = self._op("reduce_any", [self._op("equal", [node.left, node.comparators[0]])])
            return found if isinstance(node.ops[0], ast.In) else self._op("logical_not", [found])
        if len(node.ops) > 1:
            sides = [node.left, *node.comparators]
            pairs: list[ast.expr] = [
                ast.Compare(left, [op], [right]) for left, op, right in zip(sides, node.ops, sides[1:])
            ]
            joined = pairs[0]
            for pair in pairs[1:]:
                joined = self._op("logical_and", [joined, pair])
            return joined
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        tainted = self.is_tainted(node.test)
        self.generic_visit(node)
        return self._op("where", [node.test, node.body, node.orelse]) if tainted else node


def _of_arrays(value: object) -> ast.Attribute | None:
    """A function of NumPy's or SciPy's that was imported by its own name, with its package: `numpy.fft.rfft`."""
    module, name = str(getattr(value, "__module__", "")), str(getattr(value, "__name__", ""))
    if type(value).__name__ == "module" and name.startswith("scipy."):  # a recording's: the file says what it imports
        module, _, name = name.rpartition(".")
    elif type(value).__name__ == "ufunc" and hasattr(sys.modules.get("scipy.special"), name):
        module = "scipy.special"
    elif not callable(value) or isinstance(value, type):
        return None
    public = ".".join(one for one in module.split(".") if not one.startswith("_"))
    if public not in ("numpy", "numpy.fft", "numpy.linalg") and not public.startswith(("scipy.", "sklearn.")):
        return None
    return ast.Attribute(syntax.expression(public), name, ast.Load()) if name.isidentifier() else None


def is_run(call: ast.Call, spot: Spot) -> bool:
    """Whether a call is `session.run`, of TensorFlow 1."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "run":
        return False
    return type(lookup(func.value, spot)).__name__.endswith("Session") or "sess" in ast.unparse(func.value).lower()


def _is_session(block: ast.With) -> bool:
    """Whether a `with` only opens a session of TensorFlow 1."""
    return all("session" in ast.unparse(one.context_expr).lower() or "sess." in ast.unparse(one) for one in block.items)


def as_ops(
    node: ast.expr, spot: Spot, conditions: bool = False, also: tuple[str, ...] = (), same: bool = False
) -> str | None:
    """An expression with TensorFlow's ops in the place of Python and NumPy; None where some of it has none.

    Args:
      node: The expression.
      spot: Where it ran: knows which of its names are symbolic.
      conditions: Whether `and`, comparisons and the like are what failed.
      also: Other names that are symbolic.
      same: Whether an expression that is graph code as it is counts, too.
    """
    tainted = {*symbolic_parts(node, spot), *also}
    tainted |= {name for name in names(node) if any(map(is_symbolic, _elements(spot.value(name))))}
    ops = (_Conditions if conditions else _Ops)(spot, tainted)
    try:
        found = ops.visit(copied(node))
    except _NoOpError:
        return None
    if not ops.changed:
        return ast.unparse(found) if same else None
    text = ast.unparse(ast.fix_missing_locations(found))
    return None if "fromarray(" in text or differs(node, text, spot) else text


def _elements(value: Any) -> list[Any]:
    return list(value) if type(value) in (list, tuple) else []


def whole_as_ops(function: Function, spot: Spot, also: tuple[str, ...] = ()) -> bool:
    """Whether all that a function does with its tensors could be ops: then only its failing line needs a change.

    Args:
      function: The function.
      spot: A frame of it.
      also: Other names that are symbolic.
    """
    tainted = {*also} | {
        name
        for name in spot.variables
        if name in symbolic_parts(ast.Name(name, ast.Load(), lineno=1, col_offset=0), spot)
    }
    nodes = [function.body] if isinstance(function, ast.Lambda) else [*own_nodes(function)]
    inner = [one for one in ast.walk(function) if isinstance(one, ast.FunctionDef) and one is not function]
    ops = _Ops(spot, tainted)
    try:
        for one in nodes:
            if isinstance(one, ast.Try) or (isinstance(one, ast.With) and not _is_session(one)):
                return False
            if isinstance(one, ast.Assign) and any(_part_of(target, ops) for target in one.targets):
                return False
            learnt = ops.spot
            if isinstance(one, ast.Assign) and ops.is_tainted(one.value):
                tainted.update(
                    part.id for target in one.targets for part in ast.walk(target) if isinstance(part, ast.Name)
                )
                learnt = learned(one, ops.spot)
            tainted.update(part.name for part in inner if tainted.intersection(names(part)))  # a solver calls it
            if (isinstance(one, ast.stmt) and not isinstance(one, (ast.If, ast.For, ast.While))) or isinstance(
                function, ast.Lambda
            ):
                ops.visit(copied(one))
            ops.spot = learnt
    except _NoOpError:
        return False
    return True


def rest_as_ops(function: Function, spot: Spot, after: int, also: tuple[str, ...] = ()) -> dict[ast.expr, str]:
    """What else of a function cannot run on symbolic tensors, behind a line, as ops: it would fail next.

    Args:
      function: The function.
      spot: A frame of it, or of its module.
      after: The line that failed.
      also: Names that are symbolic there besides those that the frame knows.
    """
    tainted = {*also, *(name for name, value in spot.variables.items() if is_symbolic(value))}
    pieces: dict[ast.expr, str] = {}
    for one in own_nodes(function):
        value = getattr(one, "value", None)
        if not isinstance(one, (ast.Assign, ast.AugAssign, ast.Return)) or not isinstance(value, ast.expr):
            continue
        targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
        read = set(names(value)) & tainted
        if one.lineno > after and read:
            text = as_ops(value, spot, also=tuple(tainted))
            if text is not None:
                pieces[value] = text
        if (read or one.lineno == after) and isinstance(one, ast.Assign):
            spot = learned(one, spot)
        if read or one.lineno == after:
            tainted |= {name for target in targets if target is not None for name in names(target)}
    return pieces


def learned(statement: ast.Assign, spot: Spot) -> Spot:
    """The frame, with what an assignment makes of its tensors: known by rank and dtype, where it can be evaluated."""
    target = statement.targets[0]
    if len(statement.targets) > 1 or not isinstance(target, ast.Name) or is_symbolic(spot.value(target.id)):
        return spot
    if (rank := _of_text(statement.value, spot)) is not None:
        return dataclasses.replace(
            spot, variables={**spot.variables, target.id: Described("string", (None,) * rank)}
        )  # fmt: skip
    made = _made(statement.value, spot)
    if made is None or made.dtype.kind not in "biufc":
        return spot
    shape = tuple(None if size == SIZE else size for size in made.shape)
    return dataclasses.replace(spot, variables={**spot.variables, target.id: Described(made.dtype.name, shape)})


def _of_text(value: ast.expr, spot: Spot) -> int | None:
    """The rank of what a method of a text tensor gives: `line.split(",")` gives its parts."""
    func = value.func if isinstance(value, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr not in _STRINGS:
        return None
    owner = spot.value(dotted(func.value) or " ")
    shape = shape_of(owner) if dtype_of(owner) == "string" else None
    return None if shape is None else len(shape) + (func.attr == "split")


def _made(node: ast.expr, spot: Spot) -> Any:
    """What an expression gives on made inputs, as an array; None where it cannot be evaluated."""
    value = made_value(node, spot)
    value = made_value(node, spot, arrays=True) if value is None else value
    try:
        return None if value is None else sys.modules["numpy"].asarray(value)
    except Exception:  # rows of different lengths
        return None


def writes_parts(function: Function) -> bool:
    """Whether a function writes into a part of anything: `gap[row] *= 2`, which no tensor takes."""
    return any(isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store) for one in ast.walk(function))


def _part_of(target: ast.expr, ops: _Ops) -> bool:
    """Whether an assignment writes into a slice of a tensor, for which no op stands in one place."""
    sliced = isinstance(target, ast.Subscript) and any(isinstance(one, ast.Slice) for one in ast.walk(target.slice))
    return sliced and isinstance(target, ast.Subscript) and ops.is_tainted(target.value)


def created(name: str) -> str | None:
    """TensorFlow's name for NumPy's function that makes an array of a shape."""
    return _CREATE.get(name)


def _are_values(listed: list[Any] | tuple[Any, ...]) -> bool:
    """Whether what a list holds can be a tensor: numbers, texts, arrays and tensors, and lists of these."""
    plain = (bool, int, float, complex, str, bytes)
    return all(
        _are_values(one) if isinstance(one, (list, tuple)) else isinstance(one, plain) or hasattr(one, "dtype")
        for one in listed
    )
