"""A loss or gradient of a training that becomes NaN: NaN in the data, numbers that grow, or an op at its limit."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.nones_of_calls import none_of_call
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import indent_of, names, tapes_before
from pyfunc_debug.doctor.models import guarded_ops
from pyfunc_debug.doctor.models.made_scopes import made_scopes
from pyfunc_debug.doctor.rules.keras_state import traced
from pyfunc_debug.doctor.rules.ran_out import STEPS
from pyfunc_debug.doctor.rules.wrapped_values import wraps
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.events import SESSION_RUN
from pyfunc_debug.records import Finding

NAMES = ("nan-loss",)
_GROWN = 1e4
"""Times that a loss is its first number: then it did not become NaN by one op."""
_MOST = 4
"""More places than these are not a paste."""
_SHOWN = 3
_OPTIMIZERS = (
    "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl", "Lion", "Adafactor",
)  # fmt: skip
_STEPS = ("fit", "train_on_batch")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that trains, and one of what a check of all ops stopped at."""
    yield from failures(facts, NAMES)
    told: set[tuple[str, int]] = set()
    for _, _, noticed in facts.notices.get("not-finite", []):
        file, line = noticed["file"], noticed["line"]
        if file is None or (file, line) in told or not facts.source(file):
            continue
        scopes = _scopes(facts, file, line, noticed)
        if scopes is not None and noticed["what"].startswith("metric "):
            found = _metric(facts, file, line, noticed, scopes)
            if found is not None and (file, -(found.line or 0)) not in told:
                told.add((file, -(found.line or 0)))
                yield found
        elif scopes is not None:
            told.add((file, line))
            found = _finding(facts, file, line, noticed, scopes)
            if found is not None:
                yield found


def _scopes(facts: Facts, file: str, line: int, noticed: dict[str, Any]) -> list[ast.AST] | None:
    """What computes the loss: functions of the user's, or the block of a tape; None where nothing is trained."""
    tree = facts.tree(file)
    if tree is None:
        return None
    if noticed["function"] == SESSION_RUN:
        return guarded_ops.steps(tree)
    if noticed["made"] is None:
        blocks = tapes_before(pastes.source(facts, file), line)
        return guarded_ops.with_called(tree, blocks[:1])
    if noticed["function"].rpartition(".")[2] in STEPS:
        statement = pastes.source(facts, file).statement(line)
        asked = [one.func.attr for one in ast.walk(statement) if isinstance(one, ast.Call)
                 and isinstance(one.func, ast.Attribute)] if statement is not None else []  # fmt: skip
        if not set(asked) & set(_STEPS):
            return None
        scopes = made_scopes(tree, line)
        return [function for _, function, _ in traced(scopes)]
    own = facts.definition(*noticed["made"])
    if own is None or not guarded_ops.trains(own):
        return None
    return guarded_ops.with_called(tree, [own])


def _metric(facts: Facts, file: str, line: int, noticed: dict[str, Any], scopes: list[ast.AST]) -> Finding | None:
    """A metric of the user's that is NaN beside a finite loss; Keras' own may be NaN on purpose."""
    called = noticed["what"].removeprefix("metric ")
    own = next((one for one in scopes if isinstance(one, ast.FunctionDef) and one.name == called), None)
    if own is None:
        return None
    tf, keras = pastes.module(facts, file, "tensorflow"), pastes.module(facts, file, "keras")
    divide = f"{tf}.math.divide_no_nan" if tf else f"{keras}.ops.divide_no_nan" if keras else ""
    divisions = [
        one for one in pastes.walk(own, ast.BinOp)
        if isinstance(one.op, ast.Div) and not isinstance(one.right, ast.Constant)
        and not any(word in pastes.text_of(facts, file, one.right) for word in guarded_ops.GUARDS)
    ]  # fmt: skip
    pieces: dict[ast.expr, str] = {
        one: f"{divide}({pastes.text_of(facts, file, one.left)}, {pastes.text_of(facts, file, one.right)})"
        for one in divisions if not any(one is not other and one in ast.walk(other) for other in divisions)
    }  # fmt: skip
    why = f". Line {divisions[-1].lineno} divides by what may be 0" if divisions else ""
    return Finding(
        NAMES[0], "warning", None, (),
        f"{called} is NaN in step {noticed['count']:,} of line {line}, and the loss is not: Keras "
        f"shows the mean over the batches, which one such batch makes NaN{why}",
        (pastes.all_replaced(facts, file, pieces) if pieces and divide and len(pieces) <= _MOST else "")
        or guarded_ops.checked(facts, file),
        file, divisions[-1].lineno if divisions else own.lineno, confidence="likely" if divisions else "measured",
    )  # fmt: skip


def _finding(facts: Facts, file: str, line: int, noticed: dict[str, Any], scopes: list[ast.AST]) -> Finding | None:
    before = [float(one) for one in noticed["before"]]
    shown = ", ".join(f"{one:.4g}" for one in before[-_SHOWN:])
    nan = noticed["what"] != "loss" or noticed["value"] == "nan"
    since = "from the first step on" if noticed["count"] == 1 else f"in step {noticed['count']:,}"
    message = f"the {noticed['what']} in line {line} is {'NaN' if nan else 'infinite'} {since}"
    if noticed["what"] != "loss" and noticed["value"] is not None:
        message += f", of {float(noticed['value']):.4g}"
    elif before:
        message += f", after {shown}"
    arrays = [tuple(one) for one in noticed["arrays"]]
    data = _data(facts, file, line, arrays)
    if data is not None:
        (name, bad, rows), fix = data
        return _told(f"{message}: {name} holds NaN in {bad:,} of {rows:,} rows", fix, file, line, arrays, "measured")
    if before and abs(before[-1]) > _GROWN * max(abs(before[0]), 1e-3):
        clipped = _clipped(facts, file)
        fix = clipped or "a smaller learning rate, or clipnorm=1.0 in the optimizer"
        cause = f": it grew from {before[0]:.4g} to {before[-1]:.4g}, as steps of this size lead away from the minimum"
        return _told(message + cause, fix, file, line, arrays, "likely")
    pieces = guarded_ops.guarded(facts, file, scopes, noticed["what"] == "gradient")
    fix = pastes.all_replaced(facts, file, pieces) if 0 < len(pieces) <= _MOST else ""
    if fix:
        lines = sorted({one.lineno for one in pieces})
        why = f". Line{'s' * (len(lines) > 1)} {listed(lines)} can make that: {guarded_ops.reasons([*pieces.values()])}"
        return _told(message + why, fix, file, line, arrays, "likely")
    if any(none_of_call(facts, group[0]) or wraps(facts, group) for group in facts.lines):
        return None  # nan-born or wrap-around says which line of a body it is
    return _told(message, guarded_ops.checked(facts, file), file, line, arrays, "measured")


def _told(message: str, fix: str, file: str, line: int, arrays: list[Any], sure: Any) -> Finding:
    held = tuple(f"{name}: NaN in {bad:,} of {rows:,} rows" for name, bad, rows in arrays[:_SHOWN])
    return Finding(NAMES[0], "warning", None, (), message, fix, file, line, evidence=held, confidence=sure)


def _data(facts: Facts, file: str, line: int, arrays: list[Any]) -> tuple[tuple[str, int, int], str] | None:
    """The array with NaN that a line trains on, and the lines that leave its rows out."""
    source = pastes.source(facts, file)
    statement = source.statement(line)
    loops = [one for one in source.around(statement) if isinstance(one, ast.For)] if statement is not None else []
    read = {name for one in (statement, *(loop.iter for loop in loops)) if one is not None for name in names(one)}
    found = next((one for one in arrays if one[0] in read), None)
    if found is None or statement is None:
        return None
    name = found[0]
    np = pastes.module(facts, file, "numpy") or "np"
    outer = loops[-1] if loops else statement
    blanks = indent_of(source.lines[outer.lineno - 1])
    call = next((one for one in ast.walk(statement) if isinstance(one, ast.Call) and one.args
                 and ast.unparse(one.args[0]) == name), None)  # fmt: skip
    target = ast.unparse(call.args[1]) if call is not None and len(call.args) > 1 else ""
    both = target.isidentifier()
    left, right = (f"{name}, {target}", f"{name}[whole], {target}[whole]") if both else (name, f"{name}[whole]")
    lines = (
        f"{blanks}whole = ~{np}.isnan({name}).reshape(len({name}), -1).any(axis=1)  # rows without NaN",
        f"{blanks}{left} = {right}",
    )
    if not both and call is not None:
        return found, f"leave the rows with NaN out of {name}, and out of what goes with it: {lines[0].strip()}"
    return found, pastes.written(Edit(file, outer.lineno, outer.lineno - 1, lines))


def _clipped(facts: Facts, file: str) -> str:
    """The program's optimizer with a limit for the length of its gradients."""
    made = [one for one in pastes.walk(facts.tree(file), ast.Call) if pastes.last_name(one.func) in _OPTIMIZERS]
    if len(made) == 1 and not any(one.arg in ("clipnorm", "clipvalue", "global_clipnorm") for one in made[0].keywords):
        return pastes.all_replaced(
            facts, file, {made[0]: pastes.source(facts, file).with_argument(made[0], "clipnorm=1.0")}
        )
    named = {one.lower(): one for one in _OPTIMIZERS}
    compiled = [one for one in pastes.walk(facts.tree(file), ast.Call) if pastes.last_name(one.func) == "compile"]
    given = [
        value for one in compiled for value in (*one.args[:1], *(word.value for word in one.keywords))
        if isinstance(value, ast.Constant) and str(value.value).lower() in named
    ]  # fmt: skip
    if made or len(given) != 1:
        return ""
    tf = pastes.module(facts, file, "tensorflow")
    keras = pastes.module(facts, file, "keras") or (f"{tf}.keras" if tf else None)
    new = f"{keras}.optimizers.{named[str(given[0].value).lower()]}(clipnorm=1.0)"
    return pastes.all_replaced(facts, file, {given[0]: new}) if keras else ""
