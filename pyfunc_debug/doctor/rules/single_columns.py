"""What `predict` gives in one column, asked for its largest column, or compared with classes as it is.

And a body's input with one column, asked for its largest.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import Given, as_given, given
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.failures.reading.symbols import sizes_of
from pyfunc_debug.doctor.rules.broadcast_metrics import columns_of, keeps, predictions
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding, Node

NAMES = ("single-column",)
_FLAT = {"ravel", "flatten", "squeeze", "reshape", "numpy", "copy", "astype", "array", "asarray"}
_LAST = ("1", "-1")
_MEANS = ("mean", "sum", "average", "reduce_mean", "reduce_sum", "count_nonzero")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that asks."""
    for group in facts.lines:
        function = facts.function(group[0])
        if function is not None and facts.calls_of(group).count:
            yield from _in_body(facts, group, function)
    told: set[tuple[str, int]] = set()
    for _, _, noticed in facts.notices.get(Notice.PREDICTED_COLUMN, []):
        file, line = noticed["file"], noticed["line"]
        own = pastes.source(facts, file)
        predicts, scope = predictions(own, line)
        if not predicts or noticed.get("numbers") is None:
            continue
        for found in (*_largest(facts, own, noticed, predicts, scope), *_equal(facts, own, noticed, predicts, scope)):
            if (file, found.line or 0) not in told:
                told.add((file, found.line or 0))
                yield found


def _largest(
    facts: Facts, own: Source, noticed: Mapping[str, Any], predicts: list[ast.Call], scope: list[ast.AST]
) -> Iterator[Finding]:
    """`np.argmax(model.predict(x), axis=1)`: of one column it is always the first."""
    columns, (low, high, _) = columns_of(scope, predicts), noticed["numbers"]
    for call in (one for one in scope if isinstance(one, ast.Call) and pastes.last_name(one.func) == "argmax"):
        method = isinstance(call.func, ast.Attribute) and keeps(call.func.value, columns, predicts)
        given = [call.func.value, *call.args] if method and isinstance(call.func, ast.Attribute) else call.args
        named = next((one.value for one in call.keywords if one.arg == "axis"), None)
        axis = named if named is not None else given[1] if len(given) > 1 else None
        if not given or axis is None or ast.unparse(axis) not in _LAST or not keeps(given[0], columns, predicts):
            continue
        text = own.text(given[0])
        share = low >= 0 and high <= 1
        new = f"({text} > 0.5).astype(int)[:, 0]"
        yield Finding(
            NAMES[0], "error", None, (),
            f"argmax gives the place of the largest number of each row, and {text} has one column: it is 0 for all "
            f"{noticed['rows']:,} rows, whatever the model says ({low:.3g} to {high:.3g})",
            (pastes.written(pastes.replaced(facts, noticed["file"], {call: new})) if share else "")
            or f"{text} > ...  # of one column, a bound tells two classes apart",
            noticed["file"], call.lineno, evidence=(_evidence(facts, noticed),),
        )  # fmt: skip


def _in_body(facts: Facts, group: Sequence[Node], function: Definition) -> Iterator[Finding]:
    """`np.argmax(y, -1)` of labels that each call got as [32, 1]."""
    node, own = group[0], pastes.source(facts, group[0].file)
    every = [one for one in code.own_nodes(function) if isinstance(one, ast.Call)]
    for call in (
        one for one in every if pastes.last_name(one.func) == "argmax" and isinstance(one.func, ast.Attribute)
    ):
        of_module = code.root(call.func) in imports(own)
        given_to = list(call.args) if of_module else [getattr(call.func, "value", None), *call.args]
        known = {one.arg: one.value for one in call.keywords}
        array, axis = (given_to[0] if given_to else None), (given_to[1] if len(given_to) > 1 else known.get("axis"))
        name = as_given(function, array) if isinstance(array, ast.expr) else ""
        seen = given(facts, group, name) if name and axis is not None else []
        if not isinstance(array, ast.expr) or axis is None or not seen or set(known) - {"axis"}:
            continue
        ranks = {len(one.shape) for one in seen if len(one.shape) > 1 and one.shape[-1] == 1 and one.shape[0] != 0}
        apart = [one for one in seen if one.low is not None and one.high is not None and one.low < one.high]
        ends = {f"{rank - 1}" for rank in ranks} | {"-1"}
        alike = len(ranks) == 1 and all(one.shape[-1:] == (1,) for one in seen)
        if not alike or not apart or ast.unparse(axis) not in ends:
            continue
        first, text = apart[0], own.text(array)
        yield Finding(
            NAMES[0], "error", node.id, (first.call,),
            f"argmax in {facts.name(node)} gives the place of the largest number along the last axis, and {text} is "
            f"{sizes_of(first.shape)}, with one column: it is 0 everywhere, whatever {text} holds "
            f"({first.low:.3g} to {first.high:.3g} in call #{first.call})",
            pastes.written(pastes.replaced(facts, node.file, {call: _column(facts, node, call, array, apart)})),
            node.file, call.lineno, several(one.id for one in group),
            (facts.shown(first.call),), "measured",
        )  # fmt: skip


def _column(facts: Facts, node: Node, call: ast.Call, array: ast.expr, seen: Sequence[Given]) -> str:
    """The classes that a single column says: its numbers, or those above the bound between two classes."""
    text = pastes.source(facts, node.file).atom(array)
    tf, np = pastes.module(facts, node.file, "tensorflow"), pastes.module(facts, node.file, "numpy")
    in_ops = tf is not None and ast.unparse(call.func).startswith((f"{tf}.", "K.", "keras."))
    if node.kind == "py_function" and not in_ops and isinstance(array, ast.Name) and np is not None:
        text = f"{np}.asarray({text})"
    column = f"{text}[..., 0]"
    floats = all("float" in one.dtype for one in seen)
    signs = floats and any((one.low or 0) < 0 for one in seen)
    shares = floats and all(one.low is not None and one.high is not None and one.high <= 1 for one in seen)
    if signs or (shares and any(one.inside for one in seen)):
        bound = f"{column} > {0 if signs else 0.5}"
        return f"{tf}.cast({bound}, {tf}.int64)" if in_ops else f"({bound}).astype(int)"
    return f"{tf}.cast({column}, {tf}.int64)" if in_ops else column


def _equal(
    facts: Facts, own: Source, noticed: Mapping[str, Any], predicts: list[ast.Call], scope: list[ast.AST]
) -> Iterator[Finding]:
    """`np.mean(model.predict(x)[:, 0] == y)`: fractions equal no class."""
    low, high, fractions = noticed["numbers"]
    if fractions < noticed["rows"] or low < 0 or high > 1:
        return
    for one in scope:
        if not isinstance(one, ast.Compare) or len(one.ops) != 1 or not isinstance(one.ops[0], ast.Eq):
            continue
        sides = [one.left, one.comparators[0]]
        raw = [_is_raw(side, scope, predicts) for side in sides]
        around = [pastes.last_name(each.func) for each in own.around(one) if isinstance(each, ast.Call)]
        guess, labels = sides if raw[0] else sides[::-1]
        if sum(raw) != 1 or not set(around) & set(_MEANS) or not _is_apart(labels, scope):
            continue
        text = own.atom(guess)
        yield Finding(
            NAMES[0], "error", None, (),
            f"{own.text(one)} asks which predictions are equal to {own.text(labels)}, and all {noticed['rows']:,} are "
            f"fractions ({low:.3g} to {high:.3g}): none equals a class, which is a whole number",
            pastes.written(pastes.replaced(facts, noticed["file"], {guess: f"({text} > 0.5)"})),
            noticed["file"], one.lineno, evidence=(_evidence(facts, noticed),),
        )  # fmt: skip


def _is_apart(labels: ast.expr, scope: Sequence[ast.AST]) -> bool:
    """Whether an expression is an array by its name, perhaps in another shape, that no prediction is made into."""
    while isinstance(labels, (ast.Subscript, ast.Call)):
        if isinstance(labels, ast.Subscript):
            labels = labels.value
        elif isinstance(labels.func, ast.Attribute) and labels.func.attr in _FLAT:
            labels = labels.func.value
        else:
            return False
    name = ast.unparse(labels)
    made = [one.value for one in scope if isinstance(one, ast.Assign) and name in map(ast.unparse, one.targets)]
    return isinstance(labels, (ast.Name, ast.Attribute)) and not any("predict" in ast.unparse(one) for one in made)


def _evidence(facts: Facts, noticed: Mapping[str, Any]) -> str:
    return f"predict gave [{noticed['rows']:,}, 1] at {facts.source_line(noticed['file'], noticed['line'])}"


def _is_raw(node: ast.expr, scope: Sequence[ast.AST], predicts: Sequence[ast.Call], depth: int = 4) -> bool:
    """Whether an expression has the numbers that `predict` gave, perhaps in another shape."""
    if any(node is one for one in predicts):
        return True
    if isinstance(node, ast.Subscript):
        return _is_raw(node.value, scope, predicts, depth)
    if isinstance(node, ast.Call) and pastes.last_name(node.func) in _FLAT:
        if any("int" in ast.unparse(one) or "bool" in ast.unparse(one) for one in (*node.args, *node.keywords)):
            return False
        inside = [*node.args[:1], *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
        return any(_is_raw(one, scope, predicts, depth) for one in inside)
    if not isinstance(node, ast.Name) or not depth:
        return False
    stores = [
        one for one in scope if isinstance(one, ast.Name) and one.id == node.id and isinstance(one.ctx, ast.Store)
    ]
    made = [
        one.value for one in scope
        if isinstance(one, ast.Assign) and [ast.unparse(target) for target in one.targets] == [node.id]
    ]  # fmt: skip
    changed = any(
        isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store) and pastes.last_name(one.value) == node.id
        for one in scope
    )
    return (
        len(made) == len(stores) > 0 and not changed and all(_is_raw(one, scope, predicts, depth - 1) for one in made)
    )
