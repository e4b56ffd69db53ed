"""An `if` on a tensor that guards the rest: a graph builds both branches, also the one that this input never takes.

`if tf.size(x) == 0: return ...` keeps eager code from what an empty tensor breaks. In a graph the guarded lines are
traced all the same. Where the static shape knows the answer, Python can decide while it traces.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes import whole_functions, wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import is_none
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_symbolic, lookup, root_is, shape_of

RULE = "autograph"
_NONE = re.compile(r"'(\w+)' is None at the end of the (main|else) branch")
_DTYPE = re.compile(r"'retval_' has dtype (\w+) in the main branch, but dtype (\w+) in the else branch")
_STRUCTURE = re.compile(r"'(\w+)' .*nested structure", re.DOTALL)
_NO_RANK = re.compile(r"Cannot iterate over a shape with unknown rank|unknown rank")
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_OPS: dict[str, tuple[str, type[ast.cmpop]]] = {
    "equal": ("==", ast.Eq), "not_equal": ("!=", ast.NotEq), "less": ("<", ast.Lt), "less_equal": ("<=", ast.LtE),
    "greater": (">", ast.Gt), "greater_equal": (">=", ast.GtE),
}  # fmt: skip
_RELAXED = re.compile(r"reduce_retracing|relax_shapes")
_WHOLE = re.compile(r"u?int\d+$")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line failed that the user's `if` keeps this input from."""
    if situation.body or situation.kind not in ("ValueError", "TypeError", "InvalidArgumentError", "IndexError"):
        return None
    last = situation.last
    if last is not None and isinstance(last.statement, ast.Raise):
        return None
    for spot in reversed(situation.spots):
        if not spot.generated or any(map(_RELAXED.search, spot.source.code)):
            continue  # a graph for all sizes knows none
        for guard, held in _guards(spot):
            decided = _Decided(spot)
            answer = decided.of(guard.test)
            if decided.pieces and answer is (not held) and not _changed(spot, guard, decided.pieces):
                return _by_shape(spot, guard, decided.pieces, held)
        if _NO_RANK.search(situation.message) and (guard_before := _rank_before(spot)) is not None:
            return guard_before
    return None


def differing(situation: Situation) -> Explanation | None:
    """The explanation, if the branches of an `if` return, or leave in a variable, what differs in kind."""
    spot = situation.last
    statement = situation.statement if not situation.body else None
    if spot is None or not isinstance(statement, ast.If):
        return None
    none, dtypes = _NONE.search(situation.message), _DTYPE.search(situation.message)
    if none is not None:
        return _of_none(spot, statement, none)
    if dtypes is not None:
        return _of_dtypes(spot, statement, dtypes)
    structure = _STRUCTURE.search(situation.message)
    if structure is None:
        return None
    what = _results(spot, statement, structure[1])
    whole = whole_functions.whole(situation) if wrapping.entry(situation)[1] == "tf.function" else None
    shown = [f"`{short(spot.source.text(one), 24)}`" for one in what]
    both = f"{shown[0]} and {shown[1]}" if len(shown) == 2 else "two structures"
    cause = (
        f"the branches of this `if` give {both}. A graph builds both, and they must have the same structure: as many "
        "tensors, under the same keys."
    )
    advice = "" if whole else "Give the other branch a tensor in each place, of the same dtype."
    if whole is not None:
        cause += f" {whole[1]}"
    return Explanation(RULE, spot.file, spot.line, cause, whole[0] if whole else None, advice)


class _Decided:
    """What a test says by static shapes alone.

    Args:
      spot: The frame.

    Attributes:
      pieces: What in the test asks a tensor for its shape, and the same of Python's; empty where nothing is known.
    """

    def __init__(self, spot: Spot) -> None:
        self._spot = spot
        self.pieces: dict[ast.expr, str] = {}

    def of(self, test: ast.expr) -> object:
        """The test's value; None where Python does not know it."""
        if isinstance(test, ast.Constant):
            return test.value
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.of(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _COMPARED:
            return self.compared(_COMPARED[type(test.ops[0])], test.left, test.comparators[0])
        if isinstance(test, ast.BoolOp):
            values = [self.of(one) for one in test.values]
            stop = isinstance(test.op, ast.Or)
            return None if None in values else stop if any(bool(one) is stop for one in values) else not stop
        known = self._shaped(test)
        if known is not None:
            self.pieces[test] = known[0]
            return known[1]
        return self._called(test)

    def compared(self, how: Callable[[Any, Any], Any], left: ast.expr, right: ast.expr) -> object:
        """What a comparison of two whole numbers gives; None where one of them is not known."""
        values = self.of(left), self.of(right)
        return how(*values) if all(type(one) is int for one in values) else None

    def _called(self, test: ast.expr) -> object:
        """`tf.equal(tf.size(x), 0)`, as Python writes it."""
        name = dotted(test.func).rpartition(".")[2] if isinstance(test, ast.Call) else ""
        if not isinstance(test, ast.Call) or name not in _OPS or len(test.args) != 2 or not self._is_tf(test.func):
            return None
        part, text = _Decided(self._spot), self._spot.source.text
        sign, how = _OPS[name]
        answer = part.compared(_COMPARED[how], *test.args)
        if answer is not None and part.pieces:
            sides = [part.pieces.get(one, text(one)) for one in test.args]
            self.pieces[test] = f"{sides[0]} {sign} {sides[1]}"
        return answer

    def _is_tf(self, function: ast.expr) -> bool:
        return root_is(function, self._spot, "tensorflow")

    def _shaped(self, node: ast.expr) -> tuple[str, int] | None:
        """`tf.shape(x)[0]`, `tf.size(x)`, `tf.rank(x)` or `len(x)`: the same of Python's, and its value."""
        index = None
        if isinstance(node, ast.Subscript):
            index = ast.literal_eval(node.slice) if _is_number(node.slice) else None
            node = node.value
            if type(index) is not int:
                return None
        if isinstance(node, ast.Name) and index is None and (assigned := self._assigned(node)) is not None:
            return self._shaped(assigned)
        if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
            return None
        given, name = node.args[0], dotted(node.func).rpartition(".")[2]
        tensor = lookup(given, self._spot)
        sizes = shape_of(tensor) if is_symbolic(tensor) else None
        if sizes is None or not (self._is_tf(node.func) or dotted(node.func) == "len"):
            return None
        text = f"{self._spot.source.text(given)}.shape"
        if name == "rank" and index is None:
            return f"{text}.rank", len(sizes)
        if name == "len" and index is None:
            index, name = 0, "shape"
        if name == "shape" and index is not None and -len(sizes) <= index < len(sizes):
            size = sizes[index]
            return None if size is None else (f"{text}[{index}]", size)
        if name == "size" and index is None and None not in sizes:
            whole = 1
            for size in sizes:
                whole *= size or 0
            return f"{text}.num_elements()", whole
        return None

    def _assigned(self, name: ast.Name) -> ast.expr | None:
        """What a name was given in its function, where that is once: `n = tf.shape(x)[0]`."""
        function = self._spot.function
        found = [
            one.value for one in ast.walk(function) if isinstance(one, ast.Assign)
            if name.id in _assigned_names(one)
        ] if function is not None else []  # fmt: skip
        return found[0] if len(found) == 1 else None


def _assigned_names(statement: ast.Assign) -> set[str]:
    return {one.id for target in statement.targets for one in ast.walk(target) if isinstance(one, ast.Name)}


def _changed(spot: Spot, guard: ast.If, pieces: dict[ast.expr, str]) -> bool:
    """Whether a tensor whose shape a test asks for is another one at the line that failed."""
    asked = {text.partition(".shape")[0] for text in pieces.values()}
    first = min(guard.lineno, *(one.lineno for one in pieces))
    statements = [one for one in ast.walk(spot.function or guard) if isinstance(one, (ast.Assign, ast.AugAssign))]
    between = [one for one in statements if first <= one.lineno and (one.end_lineno or one.lineno) < spot.line]
    names = [_assigned_names(one) if isinstance(one, ast.Assign) else {dotted(one.target)} for one in between]
    return any(asked & one for one in names)


def _is_number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(inner, ast.Constant) and type(inner.value) is int


def _guards(spot: Spot) -> Iterator[tuple[ast.If, bool]]:
    """The `if`s whose answer leads to the line, innermost first, and what each must answer for that."""
    inner: ast.AST | None = spot.statement
    while inner is not None and not isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        outer = spot.source.parent(inner)
        block = spot.source.block(inner) if isinstance(inner, ast.stmt) else None
        for before in reversed(
            block[: block.index(inner)] if block is not None and isinstance(inner, ast.stmt) else []
        ):
            if isinstance(before, ast.If) and not before.orelse and isinstance(before.body[-1], ast.Return):
                yield before, False
        if isinstance(outer, ast.If) and inner is not outer.test:
            yield outer, inner in outer.body
        inner = outer


def _by_shape(spot: Spot, guard: ast.If, pieces: dict[ast.expr, str], held: bool) -> Explanation | None:
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    if edit is None:
        return None
    word = "holds" if not held else "does not hold"
    cause = (
        f"this line is not for this input: `if {short(spot.source.text(guard.test), 36)}` (line {guard.lineno}) "
        f"{word}. A graph builds both branches of an `if` on a tensor. The static shape knows the answer: Python then "
        "traces only one."
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit)


def _rank_before(spot: Spot) -> Explanation | None:
    """An `if` on the rank of a tensor that it then changes: behind it nobody knows the rank."""
    statement = spot.statement
    block = spot.source.block(statement) if statement is not None else None
    for before in reversed(block[: block.index(statement)] if block is not None and statement is not None else []):
        if not isinstance(before, ast.If) or before.orelse:
            continue
        asked = [
            one for one in ast.walk(before.test) if isinstance(one, ast.Call) and len(one.args) == 1
            if dotted(one.func).rpartition(".")[2] == "rank" and root_is(one.func, spot, "tensorflow")
        ]  # fmt: skip
        names = {dotted(one.args[0]) for one in asked}
        changed = {
            part.id for one in ast.walk(before) if isinstance(one, ast.Assign)
            for target in one.targets for part in ast.walk(target) if isinstance(part, ast.Name)
        }  # fmt: skip
        if len(asked) == 1 and names <= changed and _alone(before.test, asked[0]):
            text = spot.source.text(asked[0].args[0])
            edit = edit_of(spot.file, spot.source.replaced({asked[0]: f"{text}.shape.rank"}))
            cause = (
                f"`if {short(spot.source.text(before.test), 36)}` (line {before.lineno}) asks a tensor, so that a "
                f"graph builds both branches: behind it {text} has one rank or another. Python knows it while it "
                "traces."
            )
            return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely") if edit else None
    return None


def _alone(test: ast.expr, asked: ast.expr) -> bool:
    """Whether a test compares a rank with a number."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    sides = test.left, test.comparators[0]
    return asked in sides and any(_is_number(one) for one in sides)


def _results(spot: Spot, statement: ast.If, name: str) -> list[ast.expr]:
    """What the two branches of an `if` return, or give a variable."""
    block = spot.source.block(statement) or []
    after = block[block.index(statement) + 1 :] if statement in block else []
    found = []
    for part in (statement.body, statement.orelse or after):
        for one in part:
            returned = name == "retval_" and isinstance(one, ast.Return)
            given = isinstance(one, ast.Assign) and any(dotted(target) == name for target in one.targets)
            value = getattr(one, "value", None)
            found += [value] if (returned or given) and value is not None else []
    return found


def _of_none(spot: Spot, statement: ast.If, none: re.Match[str]) -> Explanation | None:
    name, returned = none[1], none[1] == "retval_"
    others = [one for one in _results(spot, statement, name) if not is_none(one)]
    assigned = [one for one in _results(spot, statement, name) if is_none(one)]
    if not returned and not assigned:
        return None  # it was None before
    what = "returns None" if returned else f"gives {name} None"
    cause = (
        f"one branch of this `if` {what} and the other a tensor. A graph builds both branches at trace, and both must "
        "give the same: tensors of one dtype and structure. None is not a tensor."
    )
    tf = alias(spot, "tensorflow")
    like = f", as `{tf}.zeros_like({short(spot.source.text(others[0]), 36)})`" if len(others) == 1 else ""
    function = getattr(spot.function, "name", "the function")
    advice = f"Give a tensor there{like}, or let the caller decide, in Python, whether it calls {function}."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _of_dtypes(spot: Spot, statement: ast.If, found: re.Match[str]) -> Explanation | None:
    """A branch that returns a whole number beside one that returns floats."""
    whole = [bool(_WHOLE.match(one)) for one in found.groups()]
    results = _results(spot, statement, "retval_")
    if (
        whole.count(True) != 1
        or len(results) != 2
        or not all("float" in one for one in found.groups() if not _WHOLE.match(one))
    ):
        return None
    value, dtype = results[whole.index(True)], found[whole.index(False) + 1]
    tf, text = alias(spot, "tensorflow"), spot.source.text(value)
    plain = _is_number(value) and dtype == "float32"
    edit = edit_of(
        spot.file, spot.source.replaced({value: f"{text}.0" if plain else f"{tf}.cast({text}, {tf}.{dtype})"})
    )
    cause = (
        f"this `if` returns {found[1]} where it holds and {found[2]} where it does not. A graph builds both branches "
        "at trace, and a tensor has one dtype."
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit) if edit else None
