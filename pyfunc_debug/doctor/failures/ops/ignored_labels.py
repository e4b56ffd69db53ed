"""Labels of a body that say "none of the classes", -1 or 255, in a loss that takes the classes only."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, keras_name

RULE = "label-range"
_SAID = re.compile(
    r"Received a label value of (-?\d+) which is outside the valid range of \[0, (\d+)\)\.\s+Label values: ([-\d ]+)"
)
_LINE = re.compile(r'File "([^"]+)", line (\d+)')
_LOSS = "sparse_softmax_cross_entropy_with_logits"
_OF_KERAS = ("SparseCategoricalCrossentropy", "sparse_categorical_crossentropy")
_REDUCE = ("reduce_mean", "reduce_sum")
_VOID = 255
"""What masks have for pixels of no class."""
_BODY = (
    "SELECT n.body, v.dtype, min(v.min), max(v.max) FROM value v JOIN call c ON c.id = v.call JOIN node n "
    "ON n.id = c.node WHERE v.role = 'output' AND c.kind = 'forward' AND v.dtype LIKE '%int%' "
    "GROUP BY c.node, v.position HAVING min(v.min) = ? OR max(v.max) = ? ORDER BY max(c.id) DESC LIMIT 1"
)


@dataclass(frozen=True)
class _Place:
    """The line of a loss.

    Attributes:
      file: Its file.
      source: The text.
      call: What computes it.
    """

    file: str
    source: Source
    call: ast.Call


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body returned such labels, and the others are classes."""
    said = _SAID.search(situation.message)
    if said is None or situation.last is None:
        return None
    none, units, seen = int(said[1]), int(said[2]), {int(one) for one in said[3].split()}
    classes = seen - {none}
    marks = none in (-1, _VOID) and all(0 <= one < units for one in classes)
    if not marks or (none == -1 and classes <= {1}) or (none == _VOID and units <= 2):  # -1 and 1, or 0 and 255: both
        return None
    bodies = situation.rows(_BODY, (none, none))
    if not bodies:
        return None
    body, dtype, least, most = bodies[0]
    if {none, *classes} - set(range(int(least), int(most) + 1)):
        return None
    cause = (
        f"{body.rpartition('.')[2]} returned {dtype} labels from {int(least)} to {int(most)}, and the loss takes the "
        f"classes 0 to {units - 1}. If {none} is for what has no class, the loss has to leave it out."
    )
    return _of_ops(situation, cause, none, units) or _of_keras(situation, cause, none)


def _of_ops(situation: Situation, cause: str, none: int, units: int) -> Explanation | None:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits`."""
    place = _place(situation)
    labels, logits = (argument(place.call, at, name) if place else None for at, name in enumerate(("labels", "logits")))
    if place is None or labels is None or logits is None:
        return None
    edit = _masked(situation, place, labels, logits, none, units)
    text, tf = place.source.text(labels), _tf(place, situation)
    zeros = f"{place.source.operand(labels)} * {tf}.cast({tf}.not_equal({text}, {none}), {text}.dtype)"
    advice = f"Give it {zeros}, and multiply the loss by {tf}.cast({tf}.not_equal({text}, {none}), {tf}.float32)."
    return Explanation(RULE, place.file, place.call.lineno, cause, edit, "" if edit else advice, "likely")


def _tf(place: _Place, situation: Situation) -> str:
    """The name of TensorFlow at a loss."""
    head, nn, _ = dotted(place.call.func).rpartition(".nn.")
    return head if nn else alias(next(one for one in situation.spots if one.file == place.file), "tensorflow")


def _place(situation: Situation) -> _Place | None:
    """The only call of the loss in the program, or that of a line that the message names."""
    found = [
        _Place(file, source, one) for file, source in situation.sources()
        for one in ast.walk(source.tree) if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] == _LOSS
    ]  # fmt: skip
    if len(found) > 1:
        lines = {(file, int(line)) for file, line in _LINE.findall(situation.text)}
        lines |= {(one.file, one.line) for one in situation.spots}
        found = [
            one for one in found
            if any((one.file, at) in lines for at in range(one.call.lineno, (one.call.end_lineno or 0) + 1))
        ]  # fmt: skip
    known = len(found) == 1 and (".nn." in dotted(found[0].call.func) or found[0].file in _files(situation))
    return found[0] if known else None


def _files(situation: Situation) -> set[str]:
    return {one.file for one in situation.spots}


def _masked(
    situation: Situation, place: _Place, labels: ast.expr, logits: ast.expr, none: int, units: int
) -> Edit | None:
    """The loss of the rows that have a class, where only its mean or its sum is used."""
    source, call, tf = place.source, place.call, _tf(place, situation)
    around = list(source.around(call))
    statement = next((one for one in around if isinstance(one, ast.stmt)), None)
    inside = around[: around.index(statement)] if statement is not None else []
    if not isinstance(statement, (ast.Assign, ast.Expr, ast.Return)) or not _is_reduced(source, call, statement):
        return None
    if any(isinstance(one, (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.IfExp)) for one in inside):
        return None
    flat, rows = source.unused_name("flat_labels"), source.unused_name("labeled")
    pieces = {
        labels: f"{tf}.gather({flat}, {rows})",
        logits: f"{tf}.gather({tf}.reshape({source.text(logits)}, [-1, {units}]), {rows})",
    }
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    blanks = source.lines[first - 1][: statement.col_offset]
    rest = source.lines[last - 1].encode()[statement.end_col_offset :].strip()
    if blanks.strip() or (rest and not rest.startswith(b"#")):
        return None  # other statements share its lines
    lines = (
        f"{blanks}{flat} = {tf}.reshape({source.text(labels)}, [-1])",
        f"{blanks}{rows} = {tf}.where({tf}.not_equal({flat}, {none}))[:, 0]",
        *source.spliced(pieces, first, last),
    )
    return Edit(place.file, first, last, lines)


def _is_reduced(source: Source, call: ast.Call, statement: ast.stmt) -> bool:
    """Whether only the mean or the sum of a loss is used."""
    if _in_reduction(source, call):
        return True
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
    if not isinstance(target, ast.Name) or not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return False
    scope = source.function(statement.lineno) or source.tree
    read = [
        one for one in ast.walk(scope)
        if isinstance(one, ast.Name) and one.id == target.id and isinstance(one.ctx, ast.Load)
    ]  # fmt: skip
    return bool(read) and all(_in_reduction(source, one) for one in read)


def _in_reduction(source: Source, node: ast.expr) -> bool:
    outer = source.parent(node)
    return (
        isinstance(outer, ast.Call) and dotted(outer.func).rpartition(".")[2] in _REDUCE
        and outer.args == [node] and not outer.keywords
    )  # fmt: skip


def _of_keras(situation: Situation, cause: str, none: int) -> Explanation | None:
    """`SparseCategoricalCrossentropy()`, its function, or its name in `compile`: they have an argument for it."""
    found: list[tuple[str, Source, ast.expr]] = []
    for file, source in situation.sources():
        found += [
            (file, source, one) for one in ast.walk(source.tree)
            if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] in _OF_KERAS
            and "metrics" not in dotted(one.func)
        ]  # fmt: skip
        for call in source.calls_of(frozenset({"compile"})):
            loss = argument(call, 1, "loss")
            found += [(file, source, loss)] if isinstance(loss, ast.Constant) and loss.value == _OF_KERAS[1] else []
    if len(found) != 1:
        return None
    file, source, loss = found[0]
    edit = None
    if isinstance(loss, ast.Constant):
        spot = next((one for one in situation.spots if one.file == file), situation.last)
        assert isinstance(spot, Spot)
        new = f"{keras_name(spot)}.losses.{_OF_KERAS[0]}(ignore_class={none})"
        edit = edit_of(file, source.replaced({loss: new}))
    elif isinstance(loss, ast.Call) and not {one.arg for one in loss.keywords} & {"ignore_class", None}:
        edit = Edit(file, *source.kept_lines({loss: source.with_argument(loss, f"ignore_class={none}")}))
    advice = "" if edit else f"Give the loss ignore_class={none}."
    return Explanation(RULE, file, loss.lineno, cause, edit, advice, "likely")
