"""Variables that got None from a tape in eager code, where a line between them and the loss leaves TensorFlow."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names, short, tapes_before
from pyfunc_debug.records import Finding

NAMES = ("untaped",)
_BUILT_IN = {"float", "int", "bool"}
_SHOWN = 3
"""Names of variables that are said."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that asks a tape."""
    told = {(one.file, one.line) for one in failures(facts, ("cut-gradient", "none-gradient", "untaped"))}
    for _, _, noticed in facts.notices["some-none"]:
        file, line = str(noticed["file"]), int(noticed["line"])
        finding = _finding(facts, file, line, noticed)
        if finding is not None and (file, finding.line) not in told:
            yield finding


def on_the_way(facts: Facts, file: str, line: int, leaves: Callable[[ast.Call], bool]) -> list[ast.Call]:
    """Calls under a tape, between some variables and the loss.

    Args:
      facts: The recording.
      file: The user's file.
      line: The line that asks the tape.
      leaves: Whether a call is one of those that are looked for.
    """
    own = pastes.source(facts, file)
    statement = own.statement(line)
    asked = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "gradient"
        and len(one.args) >= 2
    ] if statement is not None else []  # fmt: skip
    tape = dotted(asked[0].func).rpartition(".")[0] if len(asked) == 1 else ""
    blocks = [
        one for one in tapes_before(own, line)[:1] if tape in [dotted(each.optional_vars) for each in one.items]
    ]  # fmt: skip
    if len(asked) != 1 or not blocks:
        return []
    return _leaves(blocks[0], asked[0], own.function(line) or own.tree, leaves)


def _finding(facts: Facts, file: str, line: int, noticed: dict[str, Any]) -> Finding | None:
    own, numpy = pastes.source(facts, file), pastes.module(facts, file, "numpy")
    left = on_the_way(facts, file, line, lambda call: _leaves_here(call, numpy))
    if not left:
        return None
    missing = [str(one) for one in noticed["missing"]]
    which = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else "")
    at = left[0]
    pieces: dict[ast.expr, str] = {
        one: own.text(one.func.value) for one in left
        if isinstance(one.func, ast.Attribute) and _only_a_tensor(own, one, numpy)
    }  # fmt: skip
    edits = pastes.all_replaced(facts, file, pieces) if len(pieces) == len(left) else ""
    tf = pastes.module(facts, file, "tensorflow") or "tf"
    return Finding(
        NAMES[0], "warning", None, (),
        f"tape.gradient gave None for {len(missing)} of {noticed['asked']} variables ({which}): they are not trained "
        f"by it. `{short(own.text(at), 40)}` (line {at.lineno}) leaves TensorFlow under the tape, which records "
        "nothing of what NumPy and Python compute",
        edits or f"compute line {at.lineno} with TensorFlow's ops: {tf}.* in place of NumPy's, and no .numpy()",
        file, at.lineno, evidence=(f"line {at.lineno}: {facts.line(file, at.lineno)}", f"line {line}: "
        f"{facts.line(file, line)}"), confidence="likely",
    )  # fmt: skip


def _leaves(block: ast.With, asked: ast.Call, around: ast.AST, leaves: Callable[[ast.Call], bool]) -> list[ast.Call]:
    """Calls under a tape that take what comes of the variables out of TensorFlow, on the way to the loss."""
    wanted = set(names(asked.args[0]))
    behind: list[ast.Assign | ast.AugAssign] = []
    for one in reversed(block.body):
        if isinstance(one, (ast.Assign, ast.AugAssign)) and _assigned(one) & wanted:
            wanted |= set(names(one.value))
            behind.append(one)
    tracked = _owners(asked.args[1], around)
    found: list[ast.Call] = []
    for one in reversed(behind):
        for call in ast.walk(one.value):
            if isinstance(call, ast.Call) and leaves(call) and not _inner(call, leaves):
                found += [call] * any(_reads(part, tracked) for part in _operands(call))
        if _reads(one.value, tracked):
            tracked |= _assigned(one)
    return found


def _owners(asked: ast.expr, around: ast.AST, deep: int = 0) -> set[str]:
    """The variables that gradients are asked for, or the models that have them: `{"w", "self.model"}`."""
    found: set[str] = set()
    for one in ast.walk(asked):
        if isinstance(one, ast.Attribute) and one.attr.rpartition("_")[2] in ("variables", "weights"):
            found.add(dotted(one.value))
        if isinstance(one, ast.Name):
            found.add(one.id)
            for made in ast.walk(around) if deep == 0 else ():
                if isinstance(made, ast.Assign) and one.id in _assigned(made) and made.lineno < asked.lineno:
                    found |= _owners(made.value, around, 1)
    return found - {"", "self"}


def _reads(node: ast.AST, tracked: set[str]) -> bool:
    return any(dotted(one) in tracked for one in ast.walk(node) if isinstance(one, (ast.Name, ast.Attribute)))


def _inner(call: ast.Call, leaves: Callable[[ast.Call], bool]) -> bool:
    """Whether a call in a call takes the tensor out."""
    inside = [part for part in ast.walk(call) if isinstance(part, ast.Call) and part is not call]
    return any(map(leaves, inside))


def _assigned(statement: ast.stmt) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    targets = [statement.target] if isinstance(statement, ast.AugAssign) else targets
    return {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}


def _leaves_here(call: ast.Call, numpy: str | None) -> bool:
    called = dotted(call.func)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "numpy" and not call.args:
        return True
    return called in _BUILT_IN or (numpy is not None and called.startswith(f"{numpy}."))


def _operands(call: ast.Call) -> list[ast.expr]:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "numpy":
        return [call.func.value]
    return [*call.args, *(one.value for one in call.keywords)]


def _only_a_tensor(own: Source, call: ast.Call, numpy: str | None) -> bool:
    """Whether `x.numpy()` is given to what takes a tensor as well: a layer, a model or an op."""
    outer = own.parent(call)
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "numpy" or not isinstance(outer, ast.Call):
        return False
    return call in outer.args and not _leaves_here(outer, numpy) and len(names(outer.func)) == 1
