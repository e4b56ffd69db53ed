"""Two dtypes in one operation, and a mean of bools: NumPy converts them, TensorFlow does not."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, names, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    dtype_of,
    is_ndarray,
    is_symbolic,
    is_tensor,
    is_tf_variable,
    lookup,
    root_is,
    symbolic_parts,
)

RULE = "mixed-dtypes"
TWO = re.compile(r"must have the same dtype, got tf\.(\w+) != tf\.(\w+)")
_OPERANDS = re.compile(r"Input '[yb]' of '\w+' Op has type (\w+) that does not match type (\w+) of argument '[xa]'")
_LISTED = re.compile(r"have types \[([\w, ]+)\] that don't all match")
_NUMBER = re.compile(
    r"Expected (\w*int\d+)(?: passed to parameter '\w+' of op '\w+', got|, but got) (-?[\d.e+-]+) of type 'float'"
    r"|Cannot convert (-?[\d.e+-]+) to EagerTensor of dtype (\w*int\d+)"
)
_WHOLE_STEP = re.compile(
    r"Expected int64, but got [-\d.e]+ of type 'float'|Cannot convert [-\d.e]+ to EagerTensor of dtype int64"
    r"|Tensor conversion requested dtype (?:int64|float32) for Tensor with dtype (?:int64|float32)"
)
_WIDTHS = ("float16", "bfloat16", "float32", "float64")
WHOLE = ("uint8", "int8", "int16", "int32", "int64")
_TWO_TENSORS = ("add", "subtract", "multiply", "divide", "pow", "maximum", "minimum", "mod", "truediv", "atan2")
_PRODUCTS = ("matmul", "tensordot", "matvec")
"""Ops of two tensors: NumPy's functions of these names take any dtypes."""
_MAKERS = (
    "random.normal", "random.uniform", "random.truncated_normal", "zeros", "ones", "eye", "random.stateless_normal",
    "random.stateless_uniform",
)  # fmt: skip
"""Functions of TensorFlow that make float32 where no dtype is said."""
_BOOL = re.compile(r"DataType bool not in list of allowed values")
_BOOL_NUMBER = re.compile(
    r"Expected bool, but got (-?[\d.e+-]+) of type '(?:int|float)'"
    r"|Cannot convert (-?[\d.e+-]+) to EagerTensor of dtype bool"
)
_REDUCE = ("reduce_mean", "reduce_sum", "mean", "sum")
_COMPARE = ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "logical_and", "logical_or")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an operation got dtypes that it does not take together."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or situation.kind not in ("TypeError", "ValueError"):
        return None
    found = _NUMBER.search(situation.message)
    if found is not None:
        return _number(spot, statement, found[1] or found[4], float(found[2] or found[3]))
    found = _BOOL_NUMBER.search(situation.message)
    if found is not None:
        return _of_bool(spot, statement, float(found[1] or found[2]))
    found = _OPERANDS.search(situation.message)
    if found is not None:
        wanted = {found[1], found[2]}
        return (
            _floats(spot, statement, wanted)
            or _quotient(spot, statement, wanted)
            or _two(spot, statement, wanted)
            or _wholes(spot, statement, wanted)
            or _side(spot, statement, found[2], found[1])
            or _made(spot, statement, wanted)
        )
    found = _LISTED.search(situation.message)
    if found is not None:
        return _listed(spot, statement, found[1].split(", "))
    found = TWO.search(situation.message)
    if found is not None:
        return _two(spot, statement, {found[1], found[2]}) or _side(spot, statement, found[1], found[2])
    return _bools(spot, statement) if _BOOL.search(situation.message) else None


def _made(spot: Spot, statement: ast.stmt, wanted: set[str]) -> Explanation | None:
    """`x + tf.random.normal(...)`: what is made beside a tensor of another width, as under mixed precision."""
    if "float32" not in wanted or not wanted <= {*_WIDTHS} or len(wanted) != 2:
        return None
    other = next(one for one in wanted if one != "float32")
    made = [
        one for one in calls(statement)
        if dotted(one.func).partition(".")[2] in _MAKERS and root_is(one.func, spot, "tensorflow")
        and not any(word.arg in ("dtype", None) for word in one.keywords)
    ]  # fmt: skip
    known = [name for name in dict.fromkeys(names(statement)) if dtype_of(spot.value(name)) == other]
    if len(made) != 1 or not known:
        return None
    text = spot.source.text(made[0])
    cause = (
        f"{short(dotted(made[0].func), 30)} makes float32 where no dtype is given, and {known[0]} is {other}: "
        "TensorFlow's ops take two tensors of one dtype."
    )
    new = f"{text[:-1].rstrip(', ')}, dtype={known[0]}.dtype)"
    return Explanation(RULE, spot.file, spot.line, cause, edit_of(spot.file, spot.source.replaced({made[0]: new})))


def _listed(spot: Spot, statement: ast.stmt, dtypes: list[str]) -> Explanation | None:
    """`tf.concat([x, count], 1)` of floats and whole numbers: all get the dtype of the floats."""
    floats = [one for one in dtypes if one in _WIDTHS]
    lists = [one for call in calls(statement) for one in call.args[:1] if isinstance(one, (ast.List, ast.Tuple))]
    fitting = [one for one in lists if [_dtype(part, spot) for part in one.elts] == dtypes]
    if len(set(floats)) != 1 or len(fitting) != 1 or any(one == "string" for one in dtypes):
        return None
    tf = alias(spot, "tensorflow")
    other = [(part, dtype) for part, dtype in zip(fitting[0].elts, dtypes) if dtype != floats[0]]
    found = spot.source.replaced({part: f"{tf}.cast({spot.source.text(part)}, {tf}.{floats[0]})" for part, _ in other})
    named = " and ".join(f"{spot.source.text(part)} is {dtype}" for part, dtype in other[:2])
    cause = f"{named}, and the others are {floats[0]}: NumPy would convert, TensorFlow joins tensors of one dtype only."
    edit = edit_of(spot.file, found)
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "Cast them to one dtype.")


def _two(spot: Spot, statement: ast.stmt, wanted: set[str]) -> Explanation | None:
    whole = [one for one in wanted if "int" in one]
    floats = [one for one in wanted if "float" in one]
    if len(whole) != 1 or len(floats) != 1:
        return None
    found = [one for one in _sides(statement) if _dtype(one, spot) == whole[0]]
    found = [one for one in found if not any(one is not other and one in ast.walk(other) for other in found)]
    if len(found) != 1:
        return None
    if _kept(statement, found[0]):
        return _begun(spot, found[0], floats[0])
    return _cast(
        spot, found[0], floats[0],
        f"is {whole[0]}, and the other side is {floats[0]}: NumPy would convert it, TensorFlow's ops take two tensors "
        "of one dtype.",
    )  # fmt: skip


def _side(spot: Spot, statement: ast.stmt, left: str, right: str) -> Explanation | None:
    """The side of the one operation that Python has a number for: `len(kept)`, what a function of the file gives."""
    whole = [one for one in (left, right) if "int" in one]
    floats = [one for one in (left, right) if "float" in one]
    fitting = [
        one for one in own_nodes(ast.Module([statement], [])) if isinstance(one, ast.BinOp)
        and not any(isinstance(side, ast.Constant) for side in (one.left, one.right))
        and all(_dtype(side, spot) in ("", dtype) for side, dtype in ((one.left, left), (one.right, right)))
    ]  # fmt: skip
    if len(fitting) != 1 or len(whole) != 1 or len(floats) != 1:
        return None
    side = fitting[0].left if "int" in left else fitting[0].right
    if not isinstance(side, ast.Call) or not isinstance(side.func, ast.Name):
        return None  # an op gives a tensor everywhere
    return _cast(
        spot, side, floats[0],
        f"is {whole[0]} in the graph, and the other side is {floats[0]}: TensorFlow's ops take two tensors of one "
        "dtype.",
    )  # fmt: skip


def _floats(spot: Spot, statement: ast.stmt, wanted: set[str]) -> Explanation | None:
    """Values of the function's own that are wider than what it was given: under mixed precision, or NumPy's float64."""
    if not wanted <= set(_WIDTHS) or len(wanted) != 2:
        return None
    narrow, wide = sorted(wanted, key=_WIDTHS.index)
    tf, made = alias(spot, "tensorflow"), _assigned(spot.function or spot.source.tree)
    found: dict[ast.expr, str] = {
        side: f"{tf}.cast({side.id}, {tf}.{narrow})"
        for side in _sides(statement)
        if isinstance(side, ast.Name) and (side.id in made or wide == "float64") and _dtype(side, spot) == wide
    }  # fmt: skip
    found |= {
        side: f"{tf}.cast({dotted(side)}, {tf}.{narrow})"
        for side in _sides(statement)
        if isinstance(side, ast.Attribute) and _has_dtype(value := lookup(side, spot)) and dtype_of(value) == wide
    }  # fmt: skip
    found |= {
        one: spot.source.with_argument(one, f"{tf}.{narrow}")
        for one in calls(statement)
        if wide == "float64" and dotted(one.func) in (f"{tf}.constant", f"{tf}.convert_to_tensor")
        and len(one.args) == 1 and not one.keywords and is_ndarray(value := lookup(one.args[0], spot))
        and dtype_of(value) == wide
    }  # fmt: skip
    new = spot.source.replaced(found) if found else None
    if new is None:
        return None
    names = " and ".join(dict.fromkeys(spot.source.text(one) for one in found))
    cause = (
        f"{names} {'are' if ' and ' in names else 'is'} {wide}, and what it meets here is {narrow}: "
        "TensorFlow's ops take two tensors of one dtype."
    )
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, new[0], new[1], (new[2],)), "", "likely")


def _number(spot: Spot, statement: ast.stmt, dtype: str, number: float) -> Explanation | None:
    """`count * 0.5` of a tensor of whole numbers: a number of Python's takes the dtype of the tensor beside it."""
    floats = {dtype_of(one) for one in spot.variables.values() if is_symbolic(one) and "float" in dtype_of(one)}
    wanted = floats.pop() if len(floats) == 1 else "float32"
    found: dict[int, ast.expr] = {}
    for one, other in _pairs(statement, spot):
        value = computed(other, spot)
        if type(value).__name__ in ("float", "float32", "float64") and value == number:
            known = _dtype(one, spot)
            if known == dtype or (not known and not isinstance(one, ast.Constant)):
                found[id(one)] = one
    if len(found) != 1:
        return None
    return _cast(
        spot, next(iter(found.values())), wanted,
        f"is {dtype}, and {number:g} is not a whole number: NumPy would convert, TensorFlow gives a number the dtype "
        "of the tensor beside it.", statement,
    )  # fmt: skip


def _pairs(statement: ast.stmt, spot: Spot) -> list[tuple[ast.expr, ast.expr]]:
    """Both sides of each operation, either one first: of operators, and of ops that take two tensors."""
    pairs = [(one.left, one.right) for one in ast.walk(statement) if isinstance(one, ast.BinOp)]
    pairs += [
        (one.args[0], one.args[1]) for one in calls(statement)
        if len(one.args) == 2 and root_is(one.func, spot, "tensorflow")
        and dotted(one.func).rpartition(".")[2] in _TWO_TENSORS
    ]  # fmt: skip
    pairs += [
        (one.left, one.comparators[0]) for one in ast.walk(statement)
        if isinstance(one, ast.Compare) and len(one.comparators) == 1
    ]  # fmt: skip
    if isinstance(statement, ast.AugAssign):
        pairs.append((statement.target, statement.value))
    return pairs + [(other, one) for one, other in pairs]


def _quotient(spot: Spot, statement: ast.stmt, wanted: set[str]) -> Explanation | None:
    """`x * (count / 2)`: whole numbers that are divided give float64."""
    found = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div) and "int" in _dtype(one.left, spot)
        and (type(getattr(one.right, "value", None)) is int or "int" in _dtype(one.right, spot))
    ]  # fmt: skip
    if len(found) != 1 or wanted != {"float32", "float64"}:
        return None
    return _cast(
        spot, found[0], "float32",
        "is float64, as whole numbers that are divided are, and what it meets is float32: NumPy would convert.",
    )  # fmt: skip


def _sides(statement: ast.stmt) -> list[ast.expr]:
    """What the statement's operations take: `total` and `x` of `total += x`, `a` and `b` of `tf.matmul(a, b)`."""
    added = [statement.target, statement.value] if isinstance(statement, ast.AugAssign) else []
    for one in calls(statement):
        if dotted(one.func).rpartition(".")[2] in _PRODUCTS:
            added += one.args[:2]
    return added + [side for one in ast.walk(statement) if isinstance(one, ast.BinOp) for side in (one.left, one.right)]


def _kept(statement: ast.stmt, name: ast.expr) -> bool:
    """Whether `total = total + 0.5` gives a value to what it reads: a loop's variable has one dtype in each round."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return isinstance(name, ast.Name) and name.id in [dotted(one) for one in targets if isinstance(one, ast.Name)]


def _begun(spot: Spot, name: ast.expr, dtype: str) -> Explanation | None:
    """`total = 0` in front of the loop as `total = 0.0`."""
    numbers = [
        one.value for one in own_nodes(spot.function or spot.source.tree)
        if isinstance(one, ast.Assign) and [dotted(part) for part in one.targets] == [dotted(name)]
        and isinstance(one.value, ast.Constant) and type(one.value.value) is int
    ]  # fmt: skip
    found = spot.source.replaced({numbers[0]: f"{ast.unparse(numbers[0])}.0"}) if len(numbers) == 1 else None
    if found is None:
        return None
    text = dotted(name)
    cause = (
        f"{text} begins as a whole number, and line {spot.line} makes {dtype} of it: NumPy would convert, a tensor has "
        "one dtype in all rounds of a loop."
    )
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, found[0], found[1], (found[2],)))


def _assigned(scope: ast.AST) -> set[str]:
    """Names that a function, or a file, gives values to itself."""
    targets = [target for one in own_nodes(scope) if isinstance(one, ast.Assign) for target in one.targets]
    return {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}


def _wholes(spot: Spot, statement: ast.stmt, wanted: set[str]) -> Explanation | None:
    """Two whole numbers, as of tf.shape and tf.data: the narrower is cast."""
    if not wanted <= set(WHOLE) or len(wanted) != 2:
        return None
    narrow, wide = sorted(wanted, key=WHOLE.index)
    found = [one for one in _sides(statement) if _dtype(one, spot) == narrow]
    if found and len({dotted(one) for one in found}) == 1 and _of_state(spot, found[0], wide) is not None:
        found = found[:1]
    if len(found) != 1:
        return None
    return _cast(
        spot, found[0], wide,
        f"is {narrow}, and the other side is {wide}: NumPy would convert it, TensorFlow's ops take two tensors of one "
        "dtype.",
    )  # fmt: skip


def _cast(spot: Spot, node: ast.expr, dtype: str, why: str, statement: ast.stmt | None = None) -> Explanation | None:
    """The line with a cast around an expression; that of `k *= 0.5` as `k = tf.cast(k, tf.float32) * 0.5`.

    Of the state of `reduce` and `scan` what it begins with is cast.
    """
    begun = _of_state(spot, node, dtype)
    if begun is not None:
        return Explanation(RULE, spot.file, spot.line, f"{short(spot.source.text(node), 40)} {why}", begun)
    tf, text = alias(spot, "tensorflow"), spot.source.text(node)
    if isinstance(statement, ast.AugAssign) and node is statement.target:
        line = f"{text} = {spot.source.augmented(statement, f'{tf}.cast({text}, {tf}.{dtype})')}"
        blanks = indent_of(spot.source.lines[statement.lineno - 1])
        changed = Edit(spot.file, statement.lineno, statement.end_lineno or statement.lineno, (blanks + line,))
        return Explanation(RULE, spot.file, spot.line, f"{short(text, 40)} {why}", changed)
    edit = wrapping.replace_expression(spot, node, f"{tf}.cast({text}, {tf}.{dtype})")
    return None if edit is None else Explanation(RULE, spot.file, spot.line, f"{short(text, 40)} {why}", edit)


def _of_state(spot: Spot, node: ast.expr, dtype: str) -> Edit | None:
    """`ds.reduce(0, lambda total, x: total + x)`: the state has one dtype in all rounds, that of its first value."""
    function = spot.function
    call = spot.source.parent(function) if isinstance(function, ast.Lambda) else None
    method = call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""
    if not isinstance(call, ast.Call) or method not in ("reduce", "scan"):
        return None
    first = call.args[0] if len(call.args) > 1 and call.args[1] is function else None
    if not isinstance(first, ast.Constant) or dotted(node) not in parameters(function)[:1]:  # type: ignore[arg-type]
        return None
    tf = alias(spot, "tensorflow")
    return wrapping.replace_expression(spot, first, f"{tf}.constant({spot.source.text(first)}, {tf}.{dtype})")


def _dtype(node: ast.expr, spot: Spot) -> str:
    """The dtype of a symbolic name or of `tf.shape(x)[0]`; "" for what is not plain."""
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Div):
        left, right = _dtype(node.left, spot), _dtype(node.right, spot)
        return left if left == right else ""
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Call):
        return "int32" if dotted(node.func).rpartition(".")[2] in ("shape", "size", "rank") else ""
    value = spot.value(node.id) if isinstance(node, ast.Name) else None
    return dtype_of(value) if is_symbolic(value) else ""


def _of_bool(spot: Spot, statement: ast.stmt, number: float) -> Explanation | None:
    """`1 - done` of a tensor of bools."""
    found = {
        id(one): one for one, other in _pairs(statement, spot)
        if isinstance(other, ast.Constant) and type(other.value) in (int, float) and other.value == number
        and _holds_bools(one, spot)
    }  # fmt: skip
    if len(found) != 1:
        return None
    one = next(iter(found.values()))
    floats = {
        dtype_of(value) for name in names(statement) if is_tensor(value := spot.value(name))
        and "float" in dtype_of(value)
    }  # fmt: skip
    return _cast(spot, one, floats.pop() if len(floats) == 1 else "float32", _AS_NUMBERS, statement)


_AS_NUMBERS = "is a tensor of bools: NumPy computes with them as with 0 and 1, TensorFlow does not."


def _masked(spot: Spot, node: ast.AST) -> ast.expr | None:
    """The bools of `x * mask`, which TensorFlow multiplies as bools: the numbers of x are gone."""
    found = [
        (one.left, one.right) for one in ast.walk(node) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult)
    ]  # fmt: skip
    sides = [one if _holds_bools(one, spot) else other for one, other in found
             if _holds_bools(one, spot) != _holds_bools(other, spot)]  # fmt: skip
    return sides[0] if len(sides) == 1 else None


def _holds_bools(node: ast.expr, spot: Spot) -> bool:
    """Whether an expression is a tensor of bools, of a graph or eager."""
    value = lookup(node, spot)
    return _is_bool(node, spot) or (is_tensor(value) and dtype_of(value) == "bool")


def _has_dtype(value: object) -> bool:
    return is_tensor(value) or is_tf_variable(value)


def _bools(spot: Spot, statement: ast.stmt) -> Explanation | None:
    reduced = [one.args[0] for one in calls(statement) if one.args and dotted(one.func).rpartition(".")[2] in _REDUCE]
    places: list[ast.AST] = [*reduced] or [statement]
    masks = [inside for one in places if (inside := _masked(spot, one)) is not None]
    mask = masks[0] if len(masks) == 1 else None
    read = [name for one in reduced for name in names(one)]
    for one in own_nodes(spot.function or spot.source.tree) if mask is None else ():
        if not isinstance(one, ast.Assign) or one.lineno >= spot.line or len(one.targets) != 1:
            continue
        if dotted(one.targets[0]) in read and _holds_bools(one.targets[0], spot):
            mask = _masked(spot, one.value) or mask
    if mask is not None:
        floats = {
            dtype_of(value) for value in spot.variables.values() if is_symbolic(value) and "float" in dtype_of(value)
        }  # fmt: skip
        why = "is a tensor of bools: of a product with it TensorFlow makes bools, too, where NumPy has numbers."
        return _cast(spot, mask, floats.pop() if len(floats) == 1 else "float32", why)
    found = [
        one.args[0] for one in calls(statement)
        if dotted(one.func).rpartition(".")[2] in _REDUCE and one.args and _is_bool(one.args[0], spot)
    ]  # fmt: skip
    if len(found) != 1:
        return None
    why = "is a tensor of bools: NumPy takes their mean and sum as of 0 and 1, TensorFlow does not."
    return _cast(spot, found[0], "float32", why)


def _is_bool(node: ast.expr, spot: Spot) -> bool:
    if isinstance(node, ast.Call):
        return dotted(node.func).rpartition(".")[2] in _COMPARE
    if isinstance(node, ast.Name):
        return is_symbolic(spot.value(node.id)) and dtype_of(spot.value(node.id)) == "bool"
    return isinstance(node, ast.Compare) and bool(symbolic_parts(node, spot))
