"""Ops that move in steps, written so that a gradient goes through: straight through a rounding, a sigmoid for `>`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.pastes.said_twice import said_twice
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, root_is

_ROUNDED = ("round", "rint", "floor", "ceil", "sign")
_PLACES = (
    "argsort",
    "argmax",
    "argmin",
    "argpartition",
    "searchsorted",
    "digitize",
    "rankdata",
    "spearmanr",
    "kendalltau",
    "weightedtau",
    "bincount",
    "histogram",
    "heaviside",
)
_COMPARED = {"greater": ast.Gt, "greater_equal": ast.GtE, "less": ast.Lt, "less_equal": ast.LtE}
_TYPES = {"Round": ("round",), "Rint": ("rint", "round"), "Floor": ("floor",), "Ceil": ("ceil",), "ArgMax": ("argmax",),
          "ArgMin": ("argmin",)}  # fmt: skip
_COMPARES = {
    "Greater": (ast.Gt, "greater"), "GreaterEqual": (ast.GtE, "greater_equal"), "Less": (ast.Lt, "less"),
    "LessEqual": (ast.LtE, "less_equal"), "Equal": (ast.Eq, "equal"), "NotEqual": (ast.NotEq, "not_equal"),
}  # fmt: skip
"""What makes ops of these types."""
_SHAPES = ("expand_dims", "reshape", "squeeze", "identity")
_STEEP = "20.0"
_NEAR_LINES = 4
"""Lines to another call that the same paste changes."""
NEAR = "0.1"
"""Values nearer than this share a rank: that makes it smooth."""


def in_steps(function: ast.AST) -> ast.Call | None:
    """The first call in a function whose values move in steps, and are numbers of places or whole: no gradient is."""
    found = [
        one for one in ast.walk(function)
        if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] in _PLACES
    ]  # fmt: skip
    return min(found, key=lambda one: (one.lineno, one.col_offset), default=None)


def ranks(function: ast.AST, call: ast.Call, source: Source) -> str | None:
    """What stands in the place of a call whose body gives the ranks of its only input, a vector, and can be trained.

    A rank is how many are smaller: a sum of comparisons, each of which is a sigmoid then.

    Args:
      function: The body.
      call: The call of py_function.
      source: Its file.

    Returns:
      The text for the call; None for another body.
    """
    given = parameters(function) if isinstance(function, (ast.FunctionDef, ast.Lambda)) else []
    inputs = argument(call, 1, "inp")
    if len(given) != 1 or not isinstance(inputs, (ast.List, ast.Tuple)) or len(inputs.elts) != 1:
        return None
    first = _first_rank(function, given[0])
    if first is None:
        return None
    tf = dotted(call.func).rpartition(".")[0] or "tf"
    text = source.text(inputs.elts[0])
    text = text if isinstance(inputs.elts[0], (ast.Name, ast.Attribute, ast.Call)) else f"({text})"
    apart = f"{tf}.sigmoid(({text}[:, None] - {text}[None, :]) / {NEAR})"
    return f"{tf}.reduce_sum({apart}, axis=1) {'+' if first else '-'} 0.5"


def of_library(call: ast.Call, spot: Spot) -> Edit | None:
    """Smooth ranks for a call whose body is scipy's rankdata itself.

    Args:
      call: The call of py_function.
      spot: Where it is made.
    """
    body, inputs, declared = argument(call, 0, "func"), argument(call, 1, "inp"), argument(call, 2, "Tout")
    one = inputs.elts if isinstance(inputs, (ast.List, ast.Tuple)) else []
    if dotted(body).rpartition(".")[2] != "rankdata" or len(one) != 1 or not isinstance(declared, ast.Attribute):
        return None
    tf, text = dotted(call.func).rpartition(".")[0] or "tf", spot.source.text(one[0])
    text = text if isinstance(one[0], (ast.Name, ast.Attribute, ast.Call)) else f"({text})"
    apart = f"{tf}.sigmoid(({text}[:, None] - {text}[None, :]) / {NEAR})"
    whole = f"{tf}.cast({tf}.reduce_sum({apart}, axis=1) + 0.5, {spot.source.text(declared)})"
    others = _declared(call, dotted(body), spot)
    if others:
        first, last, lines = spot.source.kept_lines({call: whole, **others})
        return Edit(spot.file, first, last, lines)
    return edit_of(spot.file, spot.source.replaced({call: whole}))


def _declared(call: ast.Call, body: str, spot: Spot) -> dict[ast.expr, str]:
    """Calls of rankdata near this one whose Tout is not float64, which is what it returns, and the same with a cast."""
    found: dict[ast.expr, str] = {}
    for one in ast.walk(spot.source.function(call.lineno) or spot.source.tree):
        if not isinstance(one, ast.Call) or one is call or dotted(argument(one, 0, "func")) != body:
            continue
        kind = argument(one, 2, "Tout")
        near = one.end_lineno == one.lineno and abs(one.lineno - call.lineno) <= _NEAR_LINES
        if near and isinstance(kind, ast.Attribute) and kind.attr != "float64":
            tf, text = dotted(one.func).rpartition(".")[0] or "tf", spot.source.text(one)
            at = len(text) - len(text[text.rindex(kind.attr) :])
            wide = f"{text[:at]}float64{text[at + len(kind.attr) :]}"
            found[one] = f"{tf}.cast({wide}, {spot.source.text(kind)})"
    return found


def _first_rank(function: ast.AST, name: str) -> int | None:
    """The rank that a body gives the smallest value of its input; None where it does not give ranks as is usual."""
    texts = [re.sub(r"\s+", "", ast.unparse(one)) for one in ast.walk(function) if isinstance(one, ast.expr)]
    if any(
        re.fullmatch(rf"(?:\w+\.)*rankdata\({name}(?:\.numpy\(\))?(?:,[^,]*'(?:average|ordinal|min)')?\)", one)
        for one in texts
    ):
        return 1
    order = rf"(?:(?:\w+\.)?argsort\({name}(?:\.numpy\(\))?\)|{name}(?:\.numpy\(\))?\.argsort\(\))"
    twice = rf"(?:(?:\w+\.)?argsort\({order}\)|{order}\.argsort\(\))"
    if any(re.fullmatch(twice, one) for one in texts):
        return int(any(re.fullmatch(rf"(?:{twice})(?:\.astype\([\w.]+\))?\+1(?:\.0)?", one) for one in texts))
    statements = [re.sub(r"\s+", "", ast.unparse(one)) for one in ast.walk(function) if isinstance(one, ast.Assign)]
    sorted_ = {found[1] for one in statements if (found := re.fullmatch(rf"(\w+)={order}", one))}
    for one in statements:  # ranks[order] = np.arange(...)
        found = re.fullmatch(r"\w+\[(\w+)\]=(?:\w+\.)?arange\((.*)\)(?:\+1)?", one)
        if found and found[1] in sorted_:
            return int(found[2].startswith(("1,", "1.0,")) or one.endswith("+1"))
    return None


def ranks_in_ops(body: Iterable[ast.stmt], known: set[str], spot: Spot) -> dict[ast.expr, str]:
    """`tf.argsort(tf.argsort(x))` in a function of ops: smooth of what the model gave, and floats of what it did not.

    Args:
      body: The function's statements.
      known: The names that depend on the model.
      spot: A frame of its module.

    Returns:
      The calls, and what stands in their places; nothing where other text than that of an order is around.
    """
    found: dict[ast.expr, str] = {}
    for statement in body:
        for one in ast.walk(statement):
            inner = one.args[0] if isinstance(one, ast.Call) and len(one.args) == 1 and not one.keywords else None
            if not isinstance(one, ast.Call) or not isinstance(inner, ast.Call) or inner.keywords:
                continue
            if any(dotted(part.func).rpartition(".")[2] != "argsort" for part in (one, inner)) or len(inner.args) != 1:
                continue
            tf, text = alias(spot, "tensorflow"), spot.source.text(inner.args[0])
            if not known & set(names(inner)):
                found[one] = f"{tf}.cast({spot.source.text(one)}, {tf}.float32)"
                continue
            text = text if isinstance(inner.args[0], (ast.Name, ast.Attribute, ast.Call)) else f"({text})"
            apart = f"{tf}.sigmoid(({text}[..., :, None] - {text}[..., None, :]) / {NEAR})"
            found[one] = f"{tf}.reduce_sum({apart}, axis=-1) - 0.5"
    return found


def of_type(kind: str, source: Source, line: int) -> ast.expr | None:
    """The expression of a line that made an op of a type which moves in steps; None where it is not one alone.

    Args:
      kind: The op's type, as `Ceil`.
      source: The file.
      line: The op's line.
    """
    statement = source.statement(line)
    comparison, name = _COMPARES.get(kind, (ast.cmpop, ""))
    wanted = (*_TYPES.get(kind, ()), name)
    found = [
        one for one in ast.walk(statement)
        if (isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] in wanted)
        or (kind == "Cast" and isinstance(one, ast.Call) and dotted(one.func).endswith("cast") and not _to_floats(one))
        or (kind in _COMPARES and isinstance(one, ast.Compare) and isinstance(one.ops[0], comparison))
    ] if statement is not None else []  # fmt: skip
    return found[0] if len(found) == 1 and isinstance(found[0], ast.expr) else None


@dataclass(frozen=True)
class Smooth:
    """What stands in the place of an op that moves in steps.

    Attributes:
      place: What is replaced.
      new: Makes the new text: of the text of `twice`, if there is one.
      twice: What the new text says more than once.
      straight: Whether its values stay what they are, and only the gradient is another.
    """

    place: ast.expr
    new: Callable[[str], str]
    twice: ast.expr | None = None
    straight: bool = False

    def edit(self, file: str, source: Source) -> Edit | None:
        """The paste."""
        if self.twice is None:
            return edit_of(file, source.replaced({self.place: self.new("")}))
        return said_twice(file, source, self.place, self.twice, self.new, "values")


def smoothed(flat: ast.expr, around: ast.AST | None, spot: Spot) -> Smooth | None:
    """What stands in the place of such an op.

    Args:
      flat: The call, or the comparison.
      around: What is around it: the cast to floats, which only a comparison and an index need.
      spot: Where it is written.

    Returns:
      Its values are close to it or the same; None where nothing smooth is close.
    """
    tf, text = alias(spot, "tensorflow"), spot.source.text
    name = dotted(flat.func).rpartition(".")[2] if isinstance(flat, ast.Call) else ""
    if isinstance(flat, ast.Call) and name in _ROUNDED and len(flat.args) == 1 and not flat.keywords:
        inner, rounds = flat.args[0], spot.source.text_with
        return Smooth(
            flat, lambda given: f"({given} + {tf}.stop_gradient({rounds(flat, {inner: given})} - {given}))", inner, True
        )
    sides = _sides(flat, name)
    steep = f"{tf}.sigmoid({_STEEP} * (({text(sides[0])}) - ({text(sides[1])})))" if sides is not None else ""
    if sides is not None and isinstance(around, ast.Call) and _chooses(around, flat, spot):
        one, other = around.args[1:]
        return Smooth(around, lambda given: f"({given} + ({text(one)} - {given}) * {steep})", other)
    if not _to_floats(around):
        if not isinstance(around, ast.Assign) or not _cast_later(around, spot.source):
            return None
        around = flat
    assert isinstance(around, ast.expr)
    if sides is not None:
        return Smooth(around, lambda _: steep)
    axis = argument(flat, 1, "axis") if isinstance(flat, ast.Call) and name == "argmax" else None
    if axis is not None and isinstance(flat, ast.Call) and flat.args:
        at = text(axis)
        return Smooth(
            around, lambda given: f"{tf}.tensordot({tf}.nn.softmax({_STEEP} * {given}, {at}), "
            f"{tf}.range({tf}.cast({tf}.shape({given})[{at}], {given}.dtype)), [[{at}], [0]])", flat.args[0],
        )  # fmt: skip
    return None


def _chooses(call: ast.Call, flat: ast.expr, spot: Spot) -> bool:
    """`tf.where(a > b, 1.0, -1.0)`."""
    given = [*call.args, *(one.value for one in call.keywords)]
    return (
        dotted(call.func).rpartition(".")[2] == "where" and root_is(call.func, spot, "tensorflow")
        and len(call.args) == len(given) == 3 and given[0] is flat and not any(map(names, given[1:]))
    )  # fmt: skip


def _cast_later(made: ast.Assign, source: Source) -> bool:
    """Whether all that the function does with what is assigned is a cast to floats, perhaps of another shape."""
    target = made.targets[0]
    scope = source.function(made.lineno)
    if len(made.targets) != 1 or not isinstance(target, ast.Name) or scope is None:
        return False
    same = [one for one in ast.walk(scope) if isinstance(one, ast.Name) and one.id == target.id and one is not target]
    uses = sorted((one for one in same if one.lineno > made.lineno), key=lambda one: (one.lineno, -one.col_offset))
    for one in uses:
        if isinstance(one.ctx, ast.Store):
            return one is not uses[0]  # what follows uses what the cast gave
        around = source.parent(one)
        while isinstance(around, ast.Call) and dotted(around.func).rpartition(".")[2] in _SHAPES:
            around = source.parent(around)
        if not _to_floats(around):
            return False
    return bool(uses)


def comparisons(statement: ast.stmt, known: set[str], spot: Spot) -> Iterator[ast.Compare]:
    """Comparisons of what the model gave that a cast makes floats of: `tf.cast(y_pred > 0.5, tf.float32)`."""
    for call in ast.walk(statement):
        if isinstance(call, ast.Call) and _to_floats(call) and root_is(call.func, spot, "tensorflow"):
            inside = call.args[0]
            if isinstance(inside, ast.Compare) and known & set(names(inside)):
                yield inside


def _to_floats(call: ast.AST | None) -> bool:
    """`tf.cast(x, tf.float32)`."""
    if not isinstance(call, ast.Call) or dotted(call.func).rpartition(".")[2] != "cast" or not call.args:
        return False
    given = argument(call, 1, "dtype")
    said = given.value if isinstance(given, ast.Constant) else dotted(given)
    return "float" in str(said) or str(said).endswith(".dtype")


def _sides(flat: ast.expr, name: str) -> tuple[ast.expr, ast.expr] | None:
    """What has to be larger, and what smaller."""
    if isinstance(flat, ast.Compare) and len(flat.ops) == 1:
        kind, left, right = type(flat.ops[0]), flat.left, flat.comparators[0]
    elif isinstance(flat, ast.Call) and name in _COMPARED and len(flat.args) == 2:
        kind, left, right = _COMPARED[name], flat.args[0], flat.args[1]
    else:
        return None
    if kind in (ast.Gt, ast.GtE):
        return left, right
    return (right, left) if kind in (ast.Lt, ast.LtE) else None
