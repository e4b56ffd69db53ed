"""A loss of NumPy's under a tape, as a whole in TensorFlow's ops: tried on values, beside the user's own code."""

from __future__ import annotations

import ast
import dataclasses
import math
import re
import sys
from typing import Any

from pyfunc_debug.doctor.failures.gradients.left_behind import constant_under_a_tape
from pyfunc_debug.doctor.failures.paired.layers import is_layer, repeats
from pyfunc_debug.doctor.failures.paired.ops import AS_IT_IS
from pyfunc_debug.doctor.failures.paired.run import AsListError, PairedRun, TapedError
from pyfunc_debug.doctor.failures.paired.text import Found, placed
from pyfunc_debug.doctor.failures.paired.values import CannotPairError, Pair, equal, is_float, is_tensor, plain
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.evaluation import apart, made_array, quietly
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, asked_of_tape, dotted, indent_of, short, tapes_before
from pyfunc_debug.doctor.failures.reading.symbols import Described, alias, calls, is_keras_variable, is_symbolic

RULE = "cut-gradient"
_SAID = "No gradients provided for any variable"
_LONGEST = 40
"""Lines that a paste may hold."""
_STEPS = (1e-3, 1e-2, 1e-4)
"""How far next to the values at hand: what is steep needs another step than what is flat."""
_FARTHER = 0.3
"""Where the slope is looked at if it is 0 or none at the values at hand: that of a norm of equal rows."""
_TRIES = 6
_SAME = re.compile(r"\s*(\w+) = \1(?:\s*#.*)?")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if NumPy stands between a tape's variables and its loss, and ops can stand in its place."""
    if situation.body or not situation.spots:
        return None
    for spot in reversed(situation.spots):
        for block in tapes_before(spot.source, spot.line):
            entry = _entry(spot, block)
            if entry is None or not _is_about(situation, spot, block):
                continue
            found = apart(_in_ops, spot, block, entry)
            if found is not None:
                return _explanation(situation, spot, block, found)
    return None


def _is_about(situation: Situation, spot: Spot, block: ast.With) -> bool:
    """Whether the program failed under the tape, as it was asked for a gradient, or as that was None."""
    statement = spot.statement
    if statement is None or _SAID in situation.message:
        return statement is not None
    if any(one is block for one in (statement, *spot.source.around(statement))):
        return True
    if any(isinstance(one.func, ast.Attribute) and one.func.attr == "gradient" for one in calls(statement)):
        return True
    known = [spot.variables[name] for name in gradients_named(spot.source) if name in spot.variables]
    return "None" in situation.message and any(
        value is None or (isinstance(value, (list, tuple)) and any(one is None for one in value)) for value in known
    )


def gradients_named(source: Source) -> list[str]:
    """Names that are assigned what a tape gives."""
    return [
        part.id for one in ast.walk(source.tree) if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
        and isinstance(one.value.func, ast.Attribute) and one.value.func.attr == "gradient"
        for target in one.targets for part in ast.walk(target) if isinstance(part, ast.Name)
    ]  # fmt: skip


def _entry(spot: Spot, block: ast.With) -> ast.Call | ast.With | None:
    """Where to begin: the block itself, in the frame that ran it; else the call of the function that holds it."""
    source = spot.source
    holder = source.function(block.body[0].lineno)
    if holder is spot.function:
        return block
    if not isinstance(holder, ast.FunctionDef):
        return None
    scope: ast.AST = spot.function or source.tree
    found = [
        one for one in calls(scope) if dotted(one.func).rpartition(".")[2] == holder.name and one.lineno <= spot.line
    ]
    return found[0] if found else None


class _Leaves:
    """What is differentiated: in place of variables, watched tensors and models' results, shifted along a direction."""

    def __init__(self, spread: float = 1.0) -> None:
        self._spread = spread
        self.bases: dict[Any, Any] = {}
        self.tensors: dict[Any, Any] = {}
        self._shift = 0.0
        self._count = 0

    def begin(self, shift: float) -> None:
        self.tensors, self._shift, self._count = {}, shift, 0

    def __call__(self, value: Any, arguments: list[Pair] | None = None, watched: bool = False) -> Pair | None:
        if is_layer(value):
            if arguments is None:
                return None
            self._count += 1
            return self._pair((id(value), self._count), _result(value, arguments))
        variable = type(value).__name__ == "ResourceVariable" or is_keras_variable(value)
        if variable and is_float(value) and getattr(value, "trainable", True):
            return self._pair(id(value), plain(getattr(value, "value", value) if is_keras_variable(value) else value))
        if watched and (is_symbolic(value) or is_tensor(value)):
            self._count += 1  # in each run the same, while the tensors are others
            return self._pair(("watched", self._count), made_array(value) if is_symbolic(value) else value.numpy())
        return self._constant(value) if is_symbolic(value) else None

    def _constant(self, value: Any) -> Pair | None:
        array = made_array(value)
        if array is None:
            return None
        tensor = sys.modules["tensorflow"].constant(array)
        return Pair(tensor, tensor)

    def _pair(self, key: Any, array: Any) -> Pair | None:
        numpy, tensorflow = sys.modules["numpy"], sys.modules["tensorflow"]
        if key in self.tensors:
            return Pair(self.tensors[key], self.tensors[key], True)
        if key not in self.bases:
            if array is None:
                return None
            self.bases[key] = (
                (numpy.asarray(array) * self._spread).astype(numpy.asarray(array).dtype),
                numpy.random.default_rng(len(self.bases)).normal(size=numpy.shape(array)),
            )
        base, direction = self.bases[key]
        tensor = tensorflow.constant((base + self._shift * direction).astype(base.dtype))
        for one in _TAPES:
            one.watch(tensor)
        self.tensors[key] = tensor
        return Pair(tensor, tensor, True)


_TAPES: list[Any] = []
"""The tape of the run that is going on."""


def _result(layer: Any, arguments: list[Pair]) -> Any:
    """Values of the shape that a model of Keras' own gives; None where it is not known."""
    own = type(layer).__module__.startswith("keras.")
    if not own or not arguments:
        return None
    try:
        if repeats(layer) and len(arguments) == 1:
            return plain(layer(sys.modules["tensorflow"].convert_to_tensor(arguments[0].old)))
        shape = layer.compute_output_shape(tuple(plain(arguments[0].old).shape))
    except Exception:
        return None
    if not all(isinstance(one, int) for one in shape):
        return None
    return made_array(Described("float32", tuple(shape)))


def _in_ops(spot: Spot, block: ast.With, entry: ast.Call | ast.With) -> Found | None:
    """The texts in ops, if with them the loss is the same and has a gradient, near these values too."""
    asked = next(iter(asked_of_tape(spot.source, block)), None)
    if asked is None or "tensorflow" not in sys.modules or "numpy" not in sys.modules:
        return None
    for spread in (1.0, 4.0):  # a loss with a margin may be flat at the values that are made first
        found, leaves, flat = Found(), _Leaves(spread), True
        try:
            with quietly():
                for at in (0.0, _FARTHER):
                    value, slope = _run(spot, entry, asked, found, leaves, at)
                    if slope is None or not math.isfinite(slope):
                        return None
                    flat = flat and not slope
                    for step in _STEPS if slope else ():
                        above, _ = _run(spot, entry, asked, found, leaves, at + step)
                        below, _ = _run(spot, entry, asked, found, leaves, at - step)
                        wanted = (above - below) / (2 * step)
                        if abs(slope - wanted) <= 0.05 * abs(wanted) + 2e-3 * max(1.0, abs(value)):
                            return found
        except CannotPairError:
            return None
        if not flat:
            return None
    return None


def _run(
    spot: Spot, entry: ast.Call | ast.With, asked: ast.expr, found: Found, leaves: _Leaves, shift: float
) -> tuple[float, float | None]:
    """The loss, and its slope along the direction; with values next to those at hand."""
    numpy, tensorflow = sys.modules["numpy"], sys.modules["tensorflow"]
    for _ in range(_TRIES):
        leaves.begin(shift)
        run = PairedRun(spot, leaves, found)
        with tensorflow.GradientTape(watch_accessed_variables=False) as tape:
            _TAPES[:] = [tape]
            try:
                loss = _loss(run, spot, entry, asked)
            except AsListError:
                continue
            finally:
                _TAPES.clear()
            new = loss.new if isinstance(loss.new, (list, tuple)) else [loss.new]
            total = (
                tensorflow.add_n([tensorflow.reduce_sum(one) for one in new if is_tensor(one)]) if loss.live else None
            )
        if total is None or not equal(loss.old, loss.new):
            raise CannotPairError("the loss")
        keys = list(leaves.tensors)
        gradients = tape.gradient(total, [leaves.tensors[key] for key in keys])
        slope = sum(
            float(numpy.sum(tensorflow.convert_to_tensor(one).numpy() * leaves.bases[key][1]))
            for key, one in zip(keys, gradients) if one is not None
        )  # fmt: skip
        return float(total), slope
    raise CannotPairError("lists")


def _loss(run: PairedRun, spot: Spot, entry: ast.Call | ast.With, asked: ast.expr) -> Pair:
    names: dict[str, Pair] = {}
    if isinstance(entry, ast.With):
        stored = {one.id for one in ast.walk(entry) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
        for name in stored & set(spot.variables):
            if spot.variables is not spot.module and name not in ("self", "cls"):
                try:
                    names[name] = run.known(spot.variables[name])
                except CannotPairError:
                    continue
    try:
        if isinstance(entry, ast.With):
            run.block([entry], names)
        else:
            run.expression(entry, names)
    except TapedError as taped:
        return run.expression(asked, taped.names)
    raise CannotPairError("no tape")


def _explanation(situation: Situation, spot: Spot, block: ast.With, found: Found) -> Explanation | None:
    """The lines in ops, as one paste."""
    source = spot.source
    pieces: dict[ast.expr, str] = {}
    for statement in (one for one in ast.walk(source.tree) if isinstance(one, ast.stmt)):
        for field in ("value", "test", "iter"):
            value = getattr(statement, field, None)
            if isinstance(value, ast.expr) and statement not in found.statements:
                _outermost(value, value, found, pieces)
    tf = alias(spot, "tensorflow")
    pieces = {
        one: f"{tf}.stop_gradient({text})" if constant_under_a_tape(spot, one) else text for one, text in pieces.items()
    }
    changed: list[ast.expr | ast.stmt] = [*pieces, *found.statements]
    if not changed:
        return None
    lines = {one.lineno for one in changed}
    if (
        _SAID not in situation.message
        and not situation.message.startswith("'")
        and not lines & {line for one in situation.spots for line in [one.line]}
        and "gradient" not in source.lines[situation.spots[-1].line - 1]
    ):
        return None
    edit = _with_copies(spot, block, pieces, found)
    if edit is None:
        first, last = min(lines), max(one.end_lineno or one.lineno for one in changed)
        if last - first >= _LONGEST:
            return None
        edit = Edit(spot.file, first, last, tuple(_changed(source, pieces, found, first, last)))
    edit = dataclasses.replace(edit, lines=tuple(_of_the_graph(line, situation) for line in edit.lines))
    cut = _cut(changed, situation)
    at_hand = not any(map(is_symbolic, spot.variables.values()))
    values = "your values" if at_hand else "made values"
    cause = (
        f"`{short(source.text(cut), 40)}` {_why(situation)} Below it is in ops: tried on {values}, it gives the same "
        "loss, with a gradient."
    )
    return Explanation(RULE, spot.file, cut.lineno, cause, edit)


def _changed(source: Source, pieces: dict[ast.expr, str], found: Found, first: int, last: int) -> list[str]:
    """Lines `first` to `last`, with what is in ops in its place."""
    after: list[str] = []
    number = first
    by_line = {one.lineno: one for one in found.statements}
    while number <= last:
        one = by_line.get(number)
        if one is not None:
            blanks = indent_of(source.lines[number - 1])
            after += [blanks + text for text in found.statements[one]]
            number = (one.end_lineno or number) + 1
            continue
        end = max([number, *(part.end_lineno or number for part in pieces if part.lineno == number)])
        here = {part: text for part, text in pieces.items() if number <= part.lineno <= end}
        for line in source.spliced(here, number, end) if here else (source.lines[number - 1],):
            if not (here and _SAME.fullmatch(line)):
                after.append(line)
        number = end + 1
    return after


def _with_copies(spot: Spot, block: ast.With, pieces: dict[ast.expr, str], found: Found) -> Edit | None:
    """The lines of the tape with a copy in ops of the function that they call: what calls it elsewhere has arrays.

    None where no other line calls a function that changes, or more than one of them changes.
    """
    source, home = spot.source, spot.source.function(block.body[0].lineno)
    own: dict[ast.AST | None, list[ast.expr | ast.stmt]] = {}
    changed: list[ast.expr | ast.stmt] = [*pieces, *found.statements]
    for one in changed:
        own.setdefault(source.function(one.lineno), []).append(one)
    helpers = [one for one in own if one is not home and isinstance(one, ast.FunctionDef)]
    helper = helpers[0] if len(helpers) == 1 and len(own) == 1 + (home in own) else None
    if not isinstance(helper, ast.FunctionDef) or helper.decorator_list or source.parent(helper) is not source.tree:
        return None
    inside = [one for one in calls(block) if dotted(one.func) == helper.name]
    others = [one for one in source.calls_of(frozenset({helper.name})) if one not in inside]
    name = f"{helper.name}_in_ops"
    if not inside or not others or name in {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}:
        return None
    places: list[ast.expr | ast.stmt] = [*own.get(home, []), *inside]
    first, last = min(one.lineno for one in places), max(one.end_lineno or one.lineno for one in places)
    statement = source.statement(first)
    if statement is None or last - first + (helper.end_lineno or helper.lineno) - helper.lineno >= _LONGEST:
        return None
    first = statement.lineno
    blanks = indent_of(source.lines[first - 1])
    called = re.compile(rf"(?<![\w.]){helper.name}\(")
    copied = _changed(source, pieces, found, helper.lineno, helper.end_lineno or helper.lineno)
    lines = [blanks + line if line.strip() else line for line in copied]
    lines += _changed(source, pieces, found, first, last)
    return Edit(spot.file, first, last, tuple(called.sub(f"{name}(", line) for line in lines))


def _of_the_graph(line: str, situation: Situation) -> str:
    """A line without `.numpy()` behind tensors of a graph, also of those that the loss is not differentiated by."""
    names = {name for spot in situation.spots for name, value in spot.variables.items() if is_symbolic(value)}
    return re.sub(r"\b(\w+)\.numpy\(\)", lambda found: found[1] if found[1] in names else found[0], line)


def _cut(changed: list[ast.expr | ast.stmt], situation: Situation) -> ast.expr | ast.stmt:
    """What to name: what failed, else the first `.numpy()`."""
    failed = {spot.line for spot in situation.spots}
    inside = [part for one in changed for part in ast.walk(one) if isinstance(part, (ast.expr, ast.stmt))]
    taken = [one for one in inside if isinstance(one, ast.Call) and dotted(one.func).endswith(".numpy")]
    first = [min(changed, key=lambda one: (one.lineno, one.col_offset))]
    here = [one for one in (*taken, *changed) if one.lineno in failed]
    return (here or taken or first)[0]


def _why(situation: Situation) -> str:
    """What is wrong with it."""
    if any(one.generated for one in situation.spots):
        return "needs values, which a graph has none of at trace; and a GradientTape sees TensorFlow's ops only."
    if _is_numbers(situation):
        return "leaves TensorFlow: a GradientTape sees TensorFlow's ops only, so that nothing before it has a gradient."
    return "is written for NumPy's arrays: on a tensor it fails, or has no gradient."


def _is_numbers(situation: Situation) -> bool:
    """Whether a gradient was asked for, and is not there."""
    statement = situation.statement
    asked = [one for one in calls(statement) if dotted(one.func).endswith(".gradient")] if statement is not None else []
    return bool(asked) or _SAID in situation.message or "None" in situation.message


def _outermost(node: ast.expr, whole: ast.expr, found: Found, pieces: dict[ast.expr, str]) -> None:
    """The outermost expressions that change."""
    text = found.texts.get(node)
    if text is not None and text.template != AS_IT_IS:
        new = placed(node, found.texts)
        simple = isinstance(new, (ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Constant)) or node is whole
        pieces[node] = ast.unparse(new) if simple else f"({ast.unparse(new)})"
        return
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.expr):
            _outermost(one, whole, found, pieces)
        elif isinstance(one, (ast.keyword, ast.comprehension)):
            for part in ast.iter_child_nodes(one):
                if isinstance(part, ast.expr):
                    _outermost(part, whole, found, pieces)
