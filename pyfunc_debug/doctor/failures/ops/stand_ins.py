"""Bodies that round: which of them may have the slope of what they are given, in the place of their own, which is 0.

That is right for what follows its input in steps, `np.round(x * 255) / 255`, and wrong for anything else that has a
step in it: `np.sign(x) * np.exp(-np.abs(x))` falls where its input rises.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Mapping
from dataclasses import dataclass

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import Node, argument, inputs_of, site_spot, traced_inputs
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, parameters, short

TOLD = "it takes 1 for the slope, as a stand-in: its own is 0"
"""What stands beside every such paste."""
_STEPS = ("round", "around", "round_", "rint", "floor", "ceil", "trunc", "fix", "sign")
_LOOKS = ("shape", "dtype", "ndim", "size", "shape_of", "rank")
"""What says nothing of an array's numbers."""
_SAME = (
    "array", "asarray", "numpy", "float32", "float64", "float16", "constant", "convert_to_tensor", "identity", "copy",
    "ascontiguousarray", "clip", "clip_by_value",
)  # fmt: skip
"""What gives the numbers that it is given, but for the ends of a range."""
_PLACES = (0.7, -1.3, 2.9)


class Way(enum.Enum):
    """How a body's result comes from its input."""

    FOLLOWS = "in steps, and as large as the input but for these"
    STEPS = "in steps, otherwise"
    OTHER = "at least in part without a step"
    UNKNOWN = "no expression of the input"


@dataclass(frozen=True)
class _Value:
    """An expression: whether the input reaches it through a step, and without one; its numbers without the steps."""

    stepped: bool = False
    smooth: bool = False
    numbers: tuple[float, ...] | None = None


def way(function: Function | None) -> Way | None:
    """How the result of a body with roundings comes from its only input; None for a body that has none.

    Args:
      function: The body.
    """
    if function is None or first_step(function) is None:
        return None
    given = [one for one in parameters(function) if one not in ("self", "cls")]
    result = _result(function, {one: _Value(False, True, _PLACES) for one in given})
    if result is None:
        return Way.UNKNOWN
    if result.smooth or not result.stepped:
        return Way.OTHER
    same = result.numbers is not None and all(abs(a - b) < 1e-6 for a, b in zip(result.numbers, _PLACES))
    return Way.FOLLOWS if same and len(given) == 1 else Way.STEPS


def first_step(function: Function) -> ast.expr | None:
    """The first expression of a body that rounds, or compares."""
    found = [
        one for one in ast.walk(function)
        if (isinstance(one, (ast.Call, ast.Compare)) and (_step(one) or isinstance(one, ast.Compare)))
        or (isinstance(one, ast.BinOp) and isinstance(one.op, ast.FloorDiv))
    ]  # fmt: skip
    every = [one for one in found if isinstance(one, ast.expr)]
    return min(every, key=lambda one: (one.lineno, one.col_offset), default=None)


def instead(situation: Situation, node: Node, call: ast.Call) -> tuple[str, Edit | None, str] | None:
    """What a failure says of a body that moves in steps, of which ops have no gradient either.

    Args:
      situation: The failure.
      node: The body's node.
      call: Its call.

    Returns:
      More of the cause, the paste and the advice; None for another body.
    """
    function = node.function()
    found, step = way(function), first_step(function) if function is not None else None
    if step is None or found not in (Way.FOLLOWS, Way.STEPS):
        return None
    said = f"`{short(node.source.text(step), 30)}` (line {step.lineno}) moves in steps"
    dtypes = [one.dtype for one in inputs_of(node, situation).values()]
    dtypes = dtypes or [dtype for dtype, _ in traced_inputs(node, situation)]
    spot, tout = site_spot(node, situation), argument(call, 2, "Tout")
    text = straight_through(call, spot.source) if spot is not None and found is Way.FOLLOWS else None
    if text is not None and spot is not None and tout is not None and dtypes == [dotted(tout).rpartition(".")[2]]:
        edit = edit_of(spot.file, spot.source.replaced({call: text}))
        if edit is not None:
            return f"{said}. This has its values; {TOLD}.", edit, ""
    return f"{said}: its gradient is zero or none in ops, too.", None, (
        f"Use {node.called} for a metric, and something smooth for the loss; or give it a gradient of your own: "
        "@tf.custom_gradient."
    )  # fmt: skip


def straight_through(call: ast.Call, source: Source) -> str | None:
    """A call with the gradient of its one input: its values stay the same.

    Args:
      call: The call of numpy_function or py_function.
      source: Its file.
    """
    inputs = argument(call, 1, "inp")
    if not isinstance(inputs, (ast.List, ast.Tuple)) or len(inputs.elts) != 1:
        return None
    one, tf = inputs.elts[0], dotted(call.func).partition(".")[0] if "." in dotted(call.func) else "tf"
    given = source.text(one) if isinstance(one, (ast.Name, ast.Attribute, ast.Call)) else f"({source.text(one)})"
    return f"{given} + {tf}.stop_gradient({source.text(call)} - {given})"


def _step(node: ast.AST) -> bool:
    """Whether an expression is a call that rounds, or makes whole numbers."""
    if not isinstance(node, ast.Call):
        return False
    name = dotted(node.func).rpartition(".")[2] or getattr(node.func, "attr", "")
    whole = name in ("astype", "cast") and any(
        _is_whole(one) for one in (*node.args, *(k.value for k in node.keywords))
    )
    return name in _STEPS or name == "int" or (name.startswith(("int", "uint")) and name[-1:].isdigit()) or whole


def _is_whole(node: ast.expr) -> bool:
    said = node.value if isinstance(node, ast.Constant) else dotted(node).rpartition(".")[2]
    return isinstance(said, str) and said.startswith(("int", "uint"))


def _result(function: Function, known: dict[str, _Value]) -> _Value | None:
    """What a body returns; None where it is more than assignments and a return."""
    if isinstance(function, ast.Lambda):
        return _value(function.body, known)
    for one in function.body:
        if isinstance(one, ast.Return):
            return None if one.value is None else _value(one.value, known)
        if isinstance(one, ast.Expr):
            continue  # a docstring, or a call whose value nobody keeps
        target = (
            one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else getattr(one, "target", None)
        )
        value = getattr(one, "value", None)
        if not isinstance(one, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or not isinstance(target, ast.Name):
            return None
        if value is None:
            continue
        if isinstance(one, ast.AugAssign):
            left = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            value = ast.copy_location(ast.BinOp(left, one.op, value), one)
        known[target.id] = _value(value, known)
    return None


def _value(node: ast.expr, known: Mapping[str, _Value]) -> _Value:
    if isinstance(node, ast.Name):
        return known.get(node.id) or _constant(node.id)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return _Value(numbers=(float(node.value),) * len(_PLACES))
    if isinstance(node, ast.Attribute) and node.attr in _LOOKS:
        return _Value()
    if isinstance(node, ast.Attribute) and dotted(node) and dotted(node).partition(".")[0] not in known:
        return _constant(dotted(node))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        inner = _value(node.operand, known)
        sign = -1 if isinstance(node.op, ast.USub) else 1
        numbers = None if inner.numbers is None else tuple(sign * one for one in inner.numbers)
        return _Value(inner.stepped, inner.smooth, numbers)
    if isinstance(node, ast.BinOp):
        return _computed(node, _value(node.left, known), _value(node.right, known))
    parts = [_value(one, known) for one in _parts(node)]
    stepped, smooth = any(one.stepped or one.smooth for one in parts), any(one.smooth for one in parts)
    if isinstance(node, ast.Compare):
        return _Value(stepped, False)
    if isinstance(node, ast.Call):
        name = dotted(node.func).rpartition(".")[2] or getattr(node.func, "attr", "")
        first = parts[0] if parts else _Value()
        rest = any(one.stepped or one.smooth for one in parts[1:])
        if _step(node):
            placed = name in _STEPS and len(parts) > 1  # np.round(x, 2)
            return _Value(stepped, False, None if rest or (placed and name == "sign") else first.numbers)
        if name in (*_SAME, "astype", "cast") and not rest:
            return first
    return _Value(any(one.stepped for one in parts), smooth)


def _parts(node: ast.expr) -> list[ast.expr]:
    """What an expression is computed from, the owner of a method first."""
    if not isinstance(node, ast.Call):
        if isinstance(node, (ast.Subscript, ast.List, ast.Tuple, ast.IfExp, ast.Compare, ast.BoolOp, ast.UnaryOp)):
            return [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
        return [one for one in ast.walk(node) if one is not node and isinstance(one, ast.Name)]
    owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return [
        *(one for one in owner if dotted(one).partition(".")[0] not in ("np", "numpy", "tf", "math", "onp", "tfm")),
        *(one.value if isinstance(one, ast.Starred) else one for one in node.args),
        *(one.value for one in node.keywords),
    ]


def _constant(name: str) -> _Value:
    """Some number for a name from outside: what is divided by it again is the same whatever it is."""
    return _Value(numbers=(1.5 + sum(map(ord, name)) % 97 / 31,) * len(_PLACES))


def _computed(node: ast.BinOp, left: _Value, right: _Value) -> _Value:
    whole = isinstance(node.op, ast.FloorDiv)
    either = left.stepped or right.stepped
    smooth = left.smooth or right.smooth
    numbers = None
    if left.numbers is not None and right.numbers is not None:
        numbers = _numbers(node.op, left.numbers, right.numbers)
    return _Value(either or (whole and smooth), smooth and not whole, numbers)


def _numbers(op: ast.operator, left: tuple[float, ...], right: tuple[float, ...]) -> tuple[float, ...] | None:
    pairs = list(zip(left, right))
    if isinstance(op, ast.Add):
        return tuple(a + b for a, b in pairs)
    if isinstance(op, ast.Sub):
        return tuple(a - b for a, b in pairs)
    if isinstance(op, ast.Mult):
        return tuple(a * b for a, b in pairs)
    if isinstance(op, (ast.Div, ast.FloorDiv)) and all(b for _, b in pairs):
        return tuple(a / b for a, b in pairs)
    if isinstance(op, ast.Pow) and all(a > 0 and abs(b) < 20 for a, b in pairs):
        return tuple(a**b for a, b in pairs)
    return None
