"""Values that a body returned beyond those that Tout declares: TensorFlow keeps the first ones, in silence."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies import chosen_results
from pyfunc_debug.doctor.bodies.returned_kinds import (
    CONTRACT,
    Kind,
    by_body,
    declaring,
    finding,
    fitting_tout,
    last_value,
    of_calls,
    one_array,
)
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.records import Finding, Node

NAMES = (CONTRACT,)
_TAKE_LISTS = ("tuple", "list", "stack", "concat", "add_n", "pack_sequence_as", "append", "extend")
"""Functions that take several tensors in a list."""
_NO_TENSORS = ("dict", "OrderedDict", "defaultdict", "set", "None", "NoneType")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    for kinds in by_body(facts):
        if (found := _dropped(facts, kinds)) is not None:
            yield found


def _dropped(facts: Facts, kinds: list[Kind]) -> Finding | None:
    """More values than Tout has: TensorFlow keeps the first ones."""
    kinds = [
        kind for kind in kinds
        if kind.node.kind == "py_function" and kind.declared and kind.count is not None
        and kind.count > len(kind.declared) and _went_on(facts, kind)
    ]  # fmt: skip
    if not kinds:
        return None
    kind = kinds[0]
    declared = kind.declared or []
    kept = "the first" if len(declared) == 1 else f"the first {len(declared)}"
    numbers = kind.shown.rpartition(" ")[2] in ("float", "int", "bool") and ":" not in kind.shown
    if len(declared) == 1 and numbers:
        fix = one_array(facts, kind.node, declared[0]) or (
            f"return np.asarray({last_value(facts, kind.node)}, np.{declared[0]})  # one tensor of {kind.count} numbers"
        )
    elif declared == ["string"] and (texts := _texts(facts, kind.node)):
        fix = texts
    else:
        fix = (
            _without_objects(facts, kind)
            or chosen_results.by_name(facts, kind.node, kind.count or 0, len(declared))
            or _first_kept(facts, kind)
            or _unpacked(facts, kind)
            or _in_words(facts, kind)
            or declaring(facts, kind.node, f"[{', '.join(fitting_tout(kind))}]")
        )
    return finding(
        facts, kinds, "error",
        f"{kind.node.body} returned a {kind.shown}, but Tout declares {len(declared)} ({', '.join(declared[:3])}). "
        f"TensorFlow kept {kept} and silently dropped the others{of_calls(facts, kinds)}",
        fix, (f"first in call #{kind.first}: {facts.outputs(kind.first)}",),
    )  # fmt: skip


def _went_on(facts: Facts, kind: Kind) -> bool:
    """Whether the first call of a kind ended: of one that failed TensorFlow kept nothing."""
    rows = facts.reader.rows("SELECT status FROM call WHERE id = ?", (kind.first,))
    return not rows or rows[0][0] != "error"


def _without_objects(facts: Facts, kind: Kind) -> str:
    """The body in a lambda that leaves out what no dtype holds, as an environment's `info` is; "" elsewhere."""
    found, declared = pastes.call_of(facts, kind.node), kind.declared or []
    inside = kind.shown.partition(": ")[2].split(", ")[len(declared) :]
    if found is None or not any(one in _NO_TENSORS for one in inside):
        return ""
    file, call = found
    func, own = pastes.argument(call, 0, "func"), pastes.source(facts, file)
    if isinstance(func, ast.Lambda) and isinstance(func.body, ast.Call):
        new: dict[ast.expr, str] = {func.body: f"{own.text(func.body)}[:{len(declared)}]"}
    elif isinstance(func, (ast.Name, ast.Attribute)):
        new = {func: f"lambda *given: {own.text(func)}(*given)[:{len(declared)}]"}
    else:
        return ""
    return pastes.written(pastes.replaced(facts, file, new))


def _in_words(facts: Facts, kind: Kind) -> str:
    """What to change where the caller takes outputs by their places, and no name says which; "" elsewhere."""
    outputs = len(kind.declared or [])
    if not chosen_results.takes_places(facts, kind.node, outputs):
        return ""
    value = short(last_value(facts, kind.node), 40)
    last = outputs - 1
    return (
        f"let {facts.name(kind.node)} return the {outputs} that are wanted, in this order, instead of `{value}`: now "
        f"output {last} is what stands at place {last} of its {kind.count}, and a longer Tout would leave that so"
    )


def _texts(facts: Facts, node: Node) -> str:
    """The body's `return` lines with one tensor for a list of texts of any length; "" where they list values."""
    tf = pastes.module(facts, node.file, "tensorflow") or "tf"

    def make(value: ast.expr, text: str) -> str | None:
        return None if isinstance(value, (ast.List, ast.Tuple)) else f"{tf}.constant({text}, {tf}.string)"

    return pastes.returning(facts, node, make)


def _first_kept(facts: Facts, kind: Kind) -> str:
    """The body in a lambda that gives the first value, where the line uses the node as one tensor; "" elsewhere."""
    found = pastes.call_of(facts, kind.node)
    if found is None or len(kind.declared or []) != 1:
        return ""
    file, call = found
    func, tout, own = pastes.argument(call, 0, "func"), pastes.argument(call, 2, "Tout"), pastes.source(facts, file)
    parent = own.parent(call)
    used = isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute)) or (
        isinstance(parent, ast.Call) and call in parent.args and pastes.last_name(parent.func) not in _TAKE_LISTS
    )
    if not used or not isinstance(func, (ast.Name, ast.Attribute)) or isinstance(tout, (ast.List, ast.Tuple)):
        return ""
    return pastes.written(pastes.replaced(facts, file, {func: f"lambda *given: {own.text(func)}(*given)[0]"}))


def _unpacked(facts: Facts, kind: Kind) -> str:
    """`x = tf.py_function(...)` with a Tout for all values, and x still the tensor that it is used as; "" otherwise."""
    found, declared = pastes.call_of(facts, kind.node), kind.declared or []
    if found is None or len(declared) != 1:
        return ""
    file, call = found
    tout, statement = pastes.argument(call, 2, "Tout"), pastes.source(facts, file).parent(call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if tout is None or isinstance(tout, (ast.List, ast.Tuple)) or not isinstance(target, ast.Name):
        return ""
    same = [place for place, own in enumerate(kind.dtypes) if own == declared[0]]
    names = ["_"] * (kind.count or 0)
    names[same[0] if len(same) == 1 else 0] = target.id
    return pastes.written(
        pastes.replaced(facts, file, {target: ", ".join(names), tout: f"[{', '.join(fitting_tout(kind))}]"})
    )
