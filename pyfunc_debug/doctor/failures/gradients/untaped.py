"""`tape.gradient` that gave None: what it asks about ran outside of the tape, or for a tensor that nobody watches."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pyfunc_debug.doctor.failures.gradients import unreturned_gradients
from pyfunc_debug.doctor.failures.gradients.moved_tapes import begins_late
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, is_tape, names, short


@dataclass(frozen=True)
class Untaped:
    """Why a tape gave None: its cause in words, and the lines to paste, None where they cannot be said."""

    line: int
    cause: str
    edit: Edit | None
    advice: str


def untaped(file: str, source: Source, line: int, tensors: bool, whole: bool = False) -> Untaped | None:
    """What a call of `tape.gradient` on a line lacks, by the source.

    Args:
      file: The file.
      source: Its text.
      line: The line of the call.
      tensors: Whether gradients were asked for tensors, which a tape does not watch by itself.
      whole: Whether these are whole numbers.
    """
    statement = source.statement(line)
    asked = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "gradient"
        and len(one.args) >= 2 and isinstance(one.func.value, ast.Name)
    ] if statement is not None else []  # fmt: skip
    if len(asked) != 1 or statement is None:
        return None
    call, tape = asked[0], dotted(asked[0].func).rpartition(".")[0]
    around = source.function(line) or source.tree
    blocks = [
        one for one in own_nodes(around)
        if isinstance(one, ast.With) and is_tape(one) and tape in [dotted(each.optional_vars) for each in one.items]
        and one.lineno < line
    ]  # fmt: skip
    stopped = (f"{tape}.reset", f"{tape}.stop_recording")
    if not blocks or any(dotted(one.func) in stopped for one in _calls(around)):
        return None
    block, target, wanted = max(blocks, key=lambda one: one.lineno), call.args[0], call.args[1]
    silent = unreturned_gradients.under(block, file, source)
    if silent is not None:
        cause, edit, advice = unreturned_gradients.told(silent)
        return Untaped(silent.grad.lineno, cause, edit, advice)
    if whole:
        return _of_whole_numbers(file, source, around, statement, wanted)
    outside = None
    if line > (block.end_lineno or 0):
        outside = _outside(file, source, block, statement, target)
    outside = outside or _above(file, source, block, wanted)
    return (
        (_rebound(file, source, around, wanted) if tensors else None)
        or outside
        or _constant(source, around, statement, target, wanted)
        or (_unwatched(file, source, block, tape, target, wanted) if tensors else None)
    )


def _above(file: str, source: Source, block: ast.With, wanted: ast.expr) -> Untaped | None:
    """What is differentiated was computed above the tape's block."""
    found = begins_late(file, source, block, wanted)
    if found is None:
        return None
    first, edit = found
    code = short(source.text(first).split("\n")[0], 40)
    cause = (
        f"`{code}` (line {first.lineno}) runs above the tape of line {block.lineno}, which sees what runs in its block "
        "only."
    )
    return Untaped(first.lineno, cause, edit, "" if edit else f"Begin the tape's block above line {first.lineno}.")


def _calls(node: ast.AST) -> list[ast.Call]:
    return [one for one in ast.walk(node) if isinstance(one, ast.Call)]


def _outside(file: str, source: Source, block: ast.With, statement: ast.stmt, target: ast.expr) -> Untaped | None:
    """The loss was computed behind the block, or in the call of `gradient` itself."""
    last = block.end_lineno or block.lineno
    inner = indent_of(source.lines[block.body[0].lineno - 1])
    code = short(source.text(target), 30)
    if isinstance(target, (ast.Call, ast.BinOp)):
        cause = f"`{code}` runs outside of the tape, which ended in line {last}: it has no gradient of that."
        taken = {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}
        name = next(one for one in ("y", "target", "loss", "differentiated") if one not in taken)
        placed = source.replaced({target: name})
        if placed is None or placed[0] <= last or block.body[0].lineno == block.lineno:
            return Untaped(statement.lineno, cause, None, f"Compute {code} under the tape.")
        kept = [] if _is_empty(block) else list(source.lines[last - 1 : last])
        lines = (*kept, f"{inner}{name} = {source.text(target)}", *source.lines[last : placed[0] - 1], placed[2])
        return Untaped(statement.lineno, cause, Edit(file, last, placed[1], lines), "")
    if not isinstance(target, ast.Name):
        return None
    scope = source.function(statement.lineno) or source.tree
    made = [
        one for one in own_nodes(scope)
        if isinstance(one, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and one.lineno < statement.lineno
        and target.id in [name for each in _targets(one) for name in names(each)]
    ]  # fmt: skip
    newest = max(made, key=lambda one: one.lineno, default=None)
    if newest is None or newest.lineno <= last or not names(newest.value or ast.Constant(None)):
        return None
    cause = f"`{target.id}` is computed in line {newest.lineno}, outside of the tape, which ended in line {last}."
    end = newest.end_lineno or newest.lineno
    between = source.lines[last:end]
    level = indent_of(source.lines[block.lineno - 1])
    plain = all(not one.strip() or one.startswith(level) for one in between)
    flat = all(one in _siblings(source, block) for one in made if one.lineno > last)
    if not plain or not flat or len(between) > _MOST or any("return" in one.split() for one in between):
        return Untaped(statement.lineno, cause, None, f"Compute {target.id} under the tape.")
    moved = tuple(inner + one[len(level) :] if one.strip() else one for one in between)
    return Untaped(statement.lineno, cause, Edit(file, last + 1, end, moved), "")


def _of_whole_numbers(
    file: str, source: Source, around: ast.AST, statement: ast.stmt, wanted: ast.expr
) -> Untaped | None:
    """Whole numbers have no gradient: the line that makes them, in floats."""
    name = dotted(wanted)
    made = [one for one in _assigned(around) if name and name in [dotted(each) for each in _targets(one)]]
    value = made[0].value if len(made) == 1 else None
    cause = f"{source.text(wanted)} holds whole numbers, and TensorFlow has gradients for floats only."
    edit = None
    if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in ("constant", "Variable", "range"):
        tf = dotted(value.func).rpartition(".")[0]
        if tf and len(value.args) == 1 and not {one.arg for one in value.keywords} & {"dtype"}:
            placed = source.replaced({value: source.with_argument(value, f"dtype={tf}.float32")})
            edit = edit_of(file, placed)
    return Untaped(statement.lineno, cause, edit, "" if edit else f"Make {source.text(wanted)} of floats.")


def _rebound(file: str, source: Source, around: ast.AST, wanted: ast.expr) -> Untaped | None:
    """`w = w - rate * g` of a variable: from then on `w` is a tensor, which no tape watches by itself."""
    name = dotted(wanted) if isinstance(wanted, ast.Name) else ""
    every = [one for one in _assigned(around) if name and name in [dotted(each) for each in _targets(one)]]
    first = every[0].value if every else None
    if not isinstance(first, ast.Call) or dotted(first.func).rpartition(".")[2] != "Variable" or len(every) != 2:
        return None
    change = every[1]
    value = change.value
    if not isinstance(change, ast.Assign) or not isinstance(value, ast.BinOp) or dotted(value.left) != name:
        return None
    method = {ast.Add: "assign_add", ast.Sub: "assign_sub"}.get(type(value.op))
    if method is None or name in names(value.right) or change.lineno != change.end_lineno:
        return None
    cause = f"`{source.text(change)}` (line {change.lineno}) makes {name} a tensor: a tape watches variables by itself."
    line = f"{indent_of(source.lines[change.lineno - 1])}{name}.{method}({source.text(value.right)})"
    return Untaped(change.lineno, cause, Edit(file, change.lineno, change.lineno, (line,)), "")


def _constant(
    source: Source, around: ast.AST, statement: ast.stmt, target: ast.expr, wanted: ast.expr
) -> Untaped | None:
    """What is differentiated is written out in the program: nothing goes into it."""
    made = [
        one for one in _assigned(around)
        if isinstance(target, ast.Name) and target.id in [name for each in _targets(one) for name in names(each)]
    ]  # fmt: skip
    value = made[0].value if len(made) == 1 and isinstance(made[0], ast.Assign) else None
    if not isinstance(value, ast.Call) or dotted(value.func).rpartition(".")[2] not in _WRITTEN:
        return None
    if any(isinstance(one, ast.Name) for given in value.args for one in ast.walk(given)):
        return None
    code = f"{source.text(target)} = {short(source.text(value), 30)}"
    cause = f"`{code}` (line {value.lineno}) is a constant: nothing of {source.text(wanted)} goes into it."
    return Untaped(
        statement.lineno, cause, None, f"Compute {source.text(target)} from {source.text(wanted)} in the block."
    )


_WRITTEN = {"constant", "zeros", "ones", "convert_to_tensor", "range", "eye"}
_MOST = 8
"""Lines that go under the tape."""


def _siblings(source: Source, block: ast.With) -> list[ast.stmt]:
    around = source.parent(block)
    return list(getattr(around, "body", [])) + list(getattr(around, "orelse", []))


def _is_empty(block: ast.With) -> bool:
    return all(isinstance(one, ast.Pass) for one in block.body)


def _assigned(block: ast.AST) -> list[ast.Assign | ast.AugAssign | ast.AnnAssign]:
    return [one for one in own_nodes(block) if isinstance(one, (ast.Assign, ast.AugAssign, ast.AnnAssign))]


def _computed_from(block: ast.With, texts: set[str]) -> set[str]:
    """The names that lines of a block compute from some tensors."""
    found = set(texts)
    for one in sorted(_assigned(block), key=lambda each: each.lineno):
        parts = ast.walk(one.value) if one.value is not None else ()
        read = {dotted(part) for part in parts if isinstance(part, (ast.Name, ast.Attribute))}
        if read & found:
            found |= {name for each in _targets(one) for name in names(each)}
    return found - texts


def _targets(one: ast.Assign | ast.AugAssign | ast.AnnAssign) -> list[ast.expr]:
    return one.targets if isinstance(one, ast.Assign) else [one.target]


def _behind_made(block: ast.With, texts: set[str]) -> ast.stmt | None:
    """The statement of a block above which all of some tensors are there, and none was computed with."""
    made = [
        one for one in _assigned(block) if texts & {name for each in _targets(one) for name in names(each)}
    ]  # fmt: skip
    if not made:
        return block.body[0]
    bound = [name for one in made for each in _targets(one) for name in names(each) if name in texts]
    if len(bound) > len(set(bound)) or any(one not in block.body for one in made):
        return None
    last = max(block.body.index(one) for one in made)
    read = {
        part.id for one in block.body[: last + 1] for part in ast.walk(one)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    }  # fmt: skip
    return block.body[last + 1] if last + 1 < len(block.body) and not read & texts else None


def _unwatched(
    file: str, source: Source, block: ast.With, tape: str, target: ast.expr, wanted: ast.expr
) -> Untaped | None:
    """The tensors that gradients are asked for, where the block watches nothing and computes with them."""
    if any(dotted(one.func).rpartition(".")[2] == "watch" for one in _calls(block)):
        return None
    parts = wanted.elts if isinstance(wanted, (ast.List, ast.Tuple)) else [wanted]
    texts = [dotted(one) for one in parts if isinstance(one, (ast.Name, ast.Attribute))]
    if len(texts) != len(parts) or not isinstance(target, ast.Name):
        return None
    if target.id not in _computed_from(block, set(texts)):
        return None
    first = _behind_made(block, set(texts))
    if first is None or first.lineno == block.lineno:
        return None
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    several = len(texts) > 1
    cause = (
        f"{' and '.join(texts)} {'are tensors' if several else 'is a tensor'}: a tape watches variables by itself, and "
        f"other tensors after `watch` only. So `{short(source.text(target), 20)}` has no gradient for "
        f"{'them' if several else 'it'}."
    )
    blanks = indent_of(source.lines[first.lineno - 1])
    line = f"{blanks}{tape}.watch({listed})"
    return Untaped(block.lineno, cause, Edit(file, first.lineno, first.lineno - 1, (line,)), "")
