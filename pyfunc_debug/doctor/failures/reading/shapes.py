"""Shapes that a body returns: from its recorded calls, or a guess from its source."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Sequence
from typing import Any

from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Query, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, names, parameters
from pyfunc_debug.doctor.failures.reading.symbols import is_symbolic, lookup, root_is, shape_of

Shape = tuple[int | None, ...]
_RESHAPED = re.compile(
    r"cannot reshape array of size (\d+) into shape \(?([\d, ]+)\)?"
    r"|reshape is a tensor with (\d+) values, but the requested shape has (\d+)"
    r"|Cannot reshape a tensor with (\d+) elements to shape \[[\d,]*\] \((\d+) elements\)"
)
"""How NumPy and TensorFlow refuse to reshape."""
_Assigned = dict[str, list[tuple[ast.expr | None, bool]]]
"""What a function's names are assigned one after another, None for what is not known; and whether that always runs."""
_MAKE = {"zeros", "ones", "empty", "full", "ndarray", "random", "rand", "normal", "uniform", "integers", "randint"}
_SIZED = {"normal", "uniform", "integers", "randint"}
_DRAWS = {"random", "normal", "uniform", "integers", "randint"}
"""Those that give one number where no size is asked for."""
_KEEP = {
    "numpy", "astype", "copy", "sin", "cos", "exp", "sqrt", "abs", "square", "clip", "tanh", "asarray",
    "array", "float32",
    "sort", "flip", "fliplr", "flipud", "log", "log1p", "cast", "identity", "zeros_like", "ones_like",
    "round", "convert_to_tensor",
    "constant", "ascontiguousarray", "tensor", "Variable", "equalizeHist", "GaussianBlur", "cvtColor", "roll",
    "softmax", "relu", "sigmoid", "maximum", "minimum", "pow", "power", "nan_to_num", "cumsum", "rgb_to_hsv",
    "tan", "sinh", "cosh", "arcsin", "arccos", "arctan", "floor", "ceil", "rint", "sign", "log2", "log10", "exp2",
    "expm1", "absolute", "deg2rad", "rad2deg", "cbrt", "reciprocal", "real", "imag", "angle", "conj", "cumprod",
    "argsort", "interp", "fftshift", "ifftshift", "expit", "erf", "gaussian_filter", "gaussian_filter1d",
    "median_filter", "uniform_filter", "medfilt", "zscore", "detrend", "savgol_filter",
    "random_flip_left_right", "random_flip_up_down", "random_brightness", "random_contrast", "adjust_brightness",
}  # fmt: skip
_TEXTS = {"decode", "format", "hexdigest", "join", "lower", "lstrip", "replace", "rstrip", "strip", "title", "upper"}
"""Methods that give one text."""
_MAKE_TEXT = ("json.dumps", "re.sub", "repr", "str")
_OF_ARRAYS = ("numpy", "astype", "copy")
"""Methods among these."""
_PIXELS = {"decode_jpeg", "decode_png", "decode_image", "decode_bmp", "decode_gif", "imread", "imdecode"}
_REDUCE = {
    "sum", "mean", "max", "min", "std", "var", "prod", "any", "all", "argmax", "argmin", "median", "norm", "reduce_sum",
    "reduce_mean", "reduce_max", "reduce_min", "reduce_any", "reduce_all", "reduce_prod",
}  # fmt: skip


def refused_reshape(message: str) -> tuple[int, int] | None:
    """How many values there are and how many a shape asks for, where a reshape was refused; None of other messages."""
    found = _RESHAPED.search(message)
    if found is None:
        return None
    have, wanted = (one for one in found.groups() if one is not None)
    return int(have), math.prod(int(one) for one in re.findall(r"\d+", wanted))


def fits_shape(shape: Sequence[int | None], wanted: Sequence[int | None]) -> bool:
    """Whether a shape is one that another allows, which has None where any size may stand."""
    return len(shape) == len(wanted) and all(want in (None, got) for got, want in zip(shape, wanted))


def square_side(have: int, wanted: int, sizes: Sequence[int | None]) -> tuple[list[int], int]:
    """The two equal sizes of an image that a shape writes, and the side that holds what there is.

    Args:
      have: How many numbers there are.
      wanted: How many the shape holds.
      sizes: The sizes that are written, None for another expression than a number.

    Returns:
      The places of the two, and the side; no places and 0 where no square fits.
    """
    sides = [at for at, one in enumerate(sizes) if one is not None and one > _SMALLEST]
    if len(sides) != 2 or len({sizes[at] for at in sides}) != 1:
        return [], 0
    rest = wanted // (sizes[sides[0]] or 1) ** 2
    side = math.isqrt(have // rest) if rest and have % rest == 0 else 0
    return (sides, side) if side and side**2 * rest == have else ([], 0)


CHANNELS = (1, 3, 4)
"""How many channels an image has."""
_SMALLEST = 4
"""An image has a larger side; what is not larger counts channels."""


def recorded(rows: Query, node: int) -> tuple[dict[int, Shape], int]:
    """What all recorded calls of a node returned.

    Returns:
      For each output the shape that holds for all calls, with None where a size varies (outputs whose rank varies are
      left out); and the number of calls.
    """
    found = rows(
        "SELECT v.position, v.shape, count(*) FROM value v JOIN call c ON c.id = v.call WHERE c.node = ? AND "
        "c.kind = 'forward' AND v.role = 'output' AND v.shape IS NOT NULL GROUP BY v.position, v.shape",
        (node,),
    )
    shapes: dict[int, list[Shape]] = {}
    calls: dict[int, int] = {}
    for position, text, count in found:
        shapes.setdefault(position, []).append(tuple(json.loads(text)))
        calls[position] = calls.get(position, 0) + count
    merged = {}
    for position, seen in shapes.items():
        if len({len(shape) for shape in seen}) == 1:
            merged[position] = tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*seen))
    return merged, max(calls.values(), default=0)


def guessed(function: Function, spot: Spot) -> list[Shape | None]:
    """The shapes that a body's source says it returns, one an output; None where it does not say."""
    assigned = _assignments(function)
    value: ast.expr | None = function.body if isinstance(function, ast.Lambda) else None
    if not isinstance(function, ast.Lambda):
        from pyfunc_debug.doctor.failures.reading.nodes import return_value, return_values

        value = return_value(function)
        if value is None:  # several, which may agree
            every = [_guesses(one, spot, assigned) for one in return_values(function)]
            return every[0] if every and all(one == every[0] for one in every) else []
    if value is None:
        return []
    return _guesses(value, spot, assigned)


def shape_of_value(value: ast.expr, function: Function, spot: Spot) -> Shape | None:
    """The shape that the source says of an expression in a function; None where it does not say."""
    return _of(value, spot, _assignments(function), 0)


def _assignments(function: Function) -> _Assigned:
    found: _Assigned = {}
    if isinstance(function, ast.Lambda):
        return found
    chosen = (ast.If, ast.Try, ast.While, ast.Match)
    maybe = {id(part) for one in own_nodes(function) if isinstance(one, chosen) for part in ast.walk(one)}
    given = parameters(function)
    for one in own_nodes(function):
        if isinstance(one, ast.For):  # one element of what it loops over
            counts = isinstance(one.iter, ast.Call) and dotted(one.iter.func) in ("range", "enumerate")
            first = one.target.elts[0] if isinstance(one.target, (ast.Tuple, ast.List)) else one.target
            if counts and isinstance(first, ast.Name):
                found.setdefault(first.id, []).append((ast.Constant(0), True))
        if not isinstance(one, ast.Assign):
            continue
        for target in one.targets:
            for name in (part for part in ast.walk(target) if isinstance(part, ast.Name)):
                if isinstance(name.ctx, ast.Store):
                    value = one.value if name is target else None
                    # In a loop or with block: who reads it has passed there, where nothing gave it a value before.
                    begun = name.id not in found and name.id not in given and id(one) not in maybe
                    found.setdefault(name.id, []).append((value, begun or one in function.body))
    for own, added in _grown(function).items():  # a list has more than it was written with
        if any(isinstance(value, (ast.List, ast.Call)) for value, _ in found.get(own, ())):
            found[own] = [(_Rows(elts=added), True)]
    return found


class _Rows(ast.expr):
    """A list that a function adds entries to, as many as there come; `elts` is what stands for each."""

    _fields = ("elts",)

    def __init__(self, elts: list[ast.expr | None]) -> None:
        super().__init__()
        self.elts = elts


def _grown(function: Function) -> dict[str, list[ast.expr | None]]:
    """What a function adds to its lists, by their names; None where it is not one entry."""
    found: dict[str, list[ast.expr | None]] = {}
    for one in own_nodes(function):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _ADDS and one.args:
            if isinstance(one.func.value, ast.Name):
                entry = one.args[0] if one.func.attr == "append" else None
                found.setdefault(one.func.value.id, []).append(entry)
        elif (
            isinstance(one, ast.AugAssign)
            and isinstance(one.target, ast.Name)
            and isinstance(one.value, (ast.List, ast.ListComp))
        ):
            found.setdefault(one.target.id, []).append(None)
    return found


_ADDS = ("append", "extend", "insert")


def _guesses(value: ast.expr, spot: Spot, assigned: _Assigned) -> list[Shape | None]:
    if isinstance(value, ast.Tuple):
        return [_of(one, spot, assigned, 0) for one in value.elts]
    return [_of(value, spot, assigned, 0)]


def _of(node: ast.expr, spot: Spot, assigned: _Assigned, depth: int) -> Shape | None:
    if depth > 12:
        return None
    if isinstance(node, ast.Name):
        if assigned.get(node.id):
            *before, (last, always) = assigned[node.id]
            rest = {**assigned, node.id: before}
            found = None if last is None else _of(last, spot, rest, depth + 1)
            return found if always or found == _of(node, spot, rest, depth + 1) else None
        value = spot.value(node.id)
        return shape_of(value) if is_symbolic(value) else _value(value)
    if isinstance(node, _Rows):
        rows = [None if one is None else _of(one, spot, assigned, depth + 1) for one in node.elts]
        return None if rows[0] is None or any(one != rows[0] for one in rows) else (None, *rows[0])
    if isinstance(node, (ast.Constant, ast.JoinedStr)):
        return ()
    if isinstance(node, (ast.List, ast.Tuple)):
        inner = _of(node.elts[0], spot, assigned, depth + 1) if node.elts else ()
        return None if inner is None else (len(node.elts), *inner)
    if isinstance(node, ast.BinOp):
        left, right = (_of(one, spot, assigned, depth + 1) for one in (node.left, node.right))
        if left is None or right is None:
            return None
        return left if len(left) >= len(right) else right
    if isinstance(node, ast.Compare) and len(node.comparators) == 1:
        return _of(ast.BinOp(node.left, ast.Add(), node.comparators[0]), spot, assigned, depth + 1)
    if isinstance(node, ast.UnaryOp):
        return _of(node.operand, spot, assigned, depth + 1)
    if isinstance(node, ast.Subscript):
        scalars = {one for one in names(node.slice) if _of(ast.Name(one), spot, assigned, depth + 1) == ()}
        tensors = {name: spot.value(name) for name in names(node.slice)}
        if any(is_symbolic(one) and shape_of(one) != () for one in tensors.values()):
            return None  # many rows, or one: its rank says which
        return _sliced(node, _of(node.value, spot, assigned, depth + 1), scalars)
    if isinstance(node, ast.IfExp):
        both = [_of(one, spot, assigned, depth + 1) for one in (node.body, node.orelse)]
        return both[0] if both[0] == both[1] else None
    if isinstance(node, ast.Attribute) and node.attr == "T":
        whole = _of(node.value, spot, assigned, depth + 1)
        return None if whole is None else whole[::-1]
    if isinstance(node, ast.Attribute):
        return _value(lookup(node, spot))
    if isinstance(node, ast.Call):
        return _call(node, spot, assigned, depth)
    return None


def _call(node: ast.Call, spot: Spot, assigned: _Assigned, depth: int) -> Shape | None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    size = next((one.value for one in node.keywords if one.arg in ("size", "shape")), None)
    if name in _MAKE:
        place = 2 if name in _SIZED else 0
        given = size or (node.args[place] if len(node.args) > place else None)
        if name == "rand":
            given = ast.Tuple(list(node.args), ast.Load())
        if given is None:
            return () if _draws_one(node, name, spot, assigned, depth) else None
        return _literal(given, spot)
    if name in ("int32", "int64", "float64", "uint8", "float32") and node.args:
        return _of(node.args[0], spot, assigned, depth + 1)
    method = isinstance(node.func, ast.Attribute) and not (
        root_is(node.func, spot, "numpy") or root_is(node.func, spot, "tensorflow")
    )
    whole = name in ("float", "int", "len") or (name in _REDUCE and len(node.args) < 2 - method)
    if whole and not node.keywords:
        return ()
    if (method and name in _TEXTS) or dotted(node.func) in _MAKE_TEXT:
        return ()
    if name in _KEEP:
        owner = node.func.value if isinstance(node.func, ast.Attribute) and method and name in _OF_ARRAYS else None
        given = owner or (node.args[0] if node.args else None)
        return None if given is None else _of(given, spot, assigned, depth + 1)
    if name in ("reshape", "resize") and node.args:
        return _resized(node, name, spot, assigned, depth)
    return _moved(node, name, spot, assigned, depth) or _own(node, spot, depth)


def _draws_one(node: ast.Call, name: str, spot: Spot, assigned: _Assigned, depth: int) -> bool:
    """Whether it is one random number: `random.randint(0, n)`, and `np.random.randint(3)` between single numbers."""
    if name not in _DRAWS or bool(node.keywords) or root_is(node.func, spot, "tensorflow"):
        return False
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(owner, ast.Name) and getattr(spot.value(owner.id), "__name__", "") == "random":
        return True
    return owner is not None and all(_of(one, spot, assigned, depth + 1) == () for one in node.args)


def _resized(node: ast.Call, name: str, spot: Spot, assigned: _Assigned, depth: int) -> Shape | None:
    """`reshape` of NumPy, of TensorFlow and as a method; `resize` of TensorFlow, OpenCV and Pillow."""
    tensorflow = root_is(node.func, spot, "tensorflow")
    method = isinstance(node.func, ast.Attribute) and not tensorflow and not root_is(node.func, spot, "numpy")
    if name == "reshape":
        whole: ast.expr = ast.Tuple(list(node.args), ast.Load()) if method and len(node.args) > 1 else node.args[-1]
        return _literal(whole, spot, free=True)
    given = next((one for one in node.args if _literal(one, spot) and len(_literal(one, spot) or ()) == 2), None)
    sizes = None if given is None else _literal(given, spot)
    if sizes is None:
        return None
    sizes = sizes if tensorflow else sizes[::-1]  # others take width and height
    image = _of(node.args[0], spot, assigned, depth + 1) if node.args[0] is not given else None
    if image is None or len(image) < 2:
        return None
    return (*image[:-3], *sizes, image[-1]) if tensorflow or len(image) == 3 else sizes


def _moved(node: ast.Call, name: str, spot: Spot, assigned: _Assigned, depth: int) -> Shape | None:
    """Calls that take some dimensions away, add or exchange them."""
    method = isinstance(node.func, ast.Attribute) and not any(
        root_is(node.func, spot, package) for package in ("numpy", "tensorflow")
    )
    given = node.func.value if method and isinstance(node.func, ast.Attribute) else None
    args = [*([given] if given is not None and name not in _PIXELS else []), *node.args]
    keywords = {one.arg: one.value for one in node.keywords}
    if name in _PIXELS:
        channels = getattr(keywords.get("channels", node.args[1] if len(node.args) > 1 else None), "value", None)
        return (None, None, channels if isinstance(channels, int) and channels else 3)
    if not args:
        return None
    whole = _of(args[0], spot, assigned, depth + 1)
    axis = _axis(keywords.get("axis", args[1] if len(args) > 1 else None))
    if name == "one_hot" and whole is not None:
        depth_of = _literal(keywords.get("depth", args[1] if len(args) > 1 else args[0]), spot)
        return None if depth_of is None else (*whole, *depth_of)
    if name == "eye":
        size = _literal(args[0], spot)
        return None if size is None or len(size) != 1 else size * 2
    if name == "read_file":
        return ()
    if whole is None:
        return None
    if name in _REDUCE and axis is not None and -len(whole) <= axis < len(whole) and "keepdims" not in keywords:
        return tuple(size for place, size in enumerate(whole) if place != axis % len(whole))
    if name == "expand_dims" and axis is not None:
        place = axis % (len(whole) + 1)
        return (*whole[:place], 1, *whole[place:])
    if name in ("transpose", "squeeze") and len(args) == 1 and not keywords:
        return whole[::-1] if name == "transpose" else tuple(size for size in whole if size != 1)
    if name in ("flatten", "ravel"):
        sizes = [size for size in whole if size is not None]
        return (math.prod(sizes) if len(sizes) == len(whole) else None,)
    return None


def _axis(node: ast.expr | None) -> int | None:
    try:
        found = ast.literal_eval(node) if node is not None else None
    except ValueError:
        return None
    return found if isinstance(found, int) else None


def _own(node: ast.Call, spot: Spot, depth: int) -> Shape | None:
    """What one of the user's own functions in the same file returns, of what its source says by itself."""
    name = dotted(node.func)
    if "." in name and not name.startswith("self."):
        return None
    found = [
        one for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.FunctionDef) and one.name == name.rpartition(".")[2]
    ]  # fmt: skip
    if not name or len(found) != 1:
        return None
    values = [one.value for one in own_nodes(found[0]) if isinstance(one, ast.Return) and one.value is not None]
    inner = Spot(spot.file, found[0].lineno, {"self": spot.variables.get("self")}, spot.module, "")
    return _of(values[0], inner, _assignments(found[0]), depth + 4) if len(values) == 1 else None


def _literal(node: ast.expr, spot: Spot, free: bool = False) -> Shape | None:
    """Sizes that are written, or that names hold; with `free`, -1 among them is one that is not known."""
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    sizes: list[int | None] = []
    for part in parts:
        value: Any = lookup(part, spot) if isinstance(part, (ast.Name, ast.Attribute)) else getattr(part, "value", None)
        value = getattr(value, "known", value)
        if isinstance(value, (tuple, list)) and len(parts) == 1 and all(isinstance(one, int) for one in value):
            return tuple(value)
        if free and _axis(part) == -1:
            sizes.append(None)
            continue
        if value is None and len(parts) > 1 and isinstance(part, (ast.Name, ast.Attribute)):
            sizes.append(None)  # one number, which nobody knows here
            continue
        if not isinstance(value, int) or value < 0:
            return None
        sizes.append(value)
    return tuple(sizes)


def _sliced(node: ast.Subscript, shape: Shape | None, scalars: set[str]) -> Shape | None:
    if shape is None:
        return None
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    sizes: list[int | None] = []
    rest = list(shape)
    for part in parts:
        if not rest:
            return None
        size = rest.pop(0)
        if isinstance(part, ast.Slice):
            whole = part.lower is None and part.upper is None and (part.step is None or _is_reversal(part.step))
            sizes.append(size if whole else _until(part, size))
        elif getattr(part, "attr", getattr(part, "value", 0)) in ("newaxis", None):
            rest.insert(0, size)
            sizes.append(1)
        elif not isinstance(part, (ast.Constant, ast.UnaryOp)) and not (
            _is_number(part) or getattr(part, "id", "") in scalars
        ):
            return None
    return (*sizes, *rest)


def _until(part: ast.Slice, size: int | None) -> int | None:
    """`x[:5]` of ten or more."""
    upper = getattr(part.upper, "value", None)
    known = part.lower is None and part.step is None and isinstance(upper, int) and size is not None
    return min(upper, size) if known and isinstance(upper, int) and size is not None else None


def _is_number(node: ast.expr) -> bool:
    """`index.numpy()` and `int(index)`: one number, for all that the source says."""
    return (
        isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("numpy", "int") and len(node.args) < 2
    )


def _is_reversal(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and getattr(node.operand, "value", 0) == 1


def _value(value: Any) -> Shape | None:
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return shape
    return () if isinstance(value, (int, float, str, bytes)) else None


def written(shape: Shape) -> str:
    """`[None, 28, 28]`, as one types it."""
    return f"[{', '.join(str(size) for size in shape)}]"
