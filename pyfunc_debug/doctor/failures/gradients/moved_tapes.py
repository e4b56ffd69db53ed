"""A tape whose block begins too late: lines above it, loops too, compute what is differentiated; read in the source.

Nothing is evaluated: a name that the block reads is followed up through what sets it or appends to it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, is_tape

LISTS = ("trainable_variables", "trainable_weights", "variables", "weights")
"""What lists a model's variables."""
_CHANGES = ("assign", "assign_sub", "assign_add")
_ASKS = ("gradient", "apply_gradients", "apply", "watch")
_GROWS = ("append", "extend", "insert")
_MOST = 60
"""Lines that are indented."""


def begins_late(file: str, source: Source, block: ast.With, wanted: ast.expr) -> tuple[ast.stmt, Edit | None] | None:
    """The first statement above a tape's block that belongs into it, and the block begun there.

    Args:
      file: The file.
      source: Its text.
      block: The tape's `with`.
      wanted: What gradients are asked for.

    Returns:
      None where the block reads what gradients are asked for, or nothing above it in its own block of lines does.
    """
    owners = _owners(source, wanted)
    own = source.block(block)
    if not owners or own is None or any(_reads(source, one, owners) for one in block.body):
        return None
    first = _first_of(source, own[: own.index(block)], _loaded(block.body), owners)
    return None if first is None else (first, _begun_at(file, source, block, first))


def in_block(
    source: Source, statement: ast.stmt, target: ast.expr, wanted: ast.expr, tape: str, watched: Sequence[str] = ()
) -> tuple[int, str, tuple[str, ...]] | None:
    """The lines above a statement that compute something, in a new block of a tape.

    Args:
      source: The file's text.
      statement: Where the gradient is needed.
      target: What is differentiated there.
      wanted: What for.
      tape: The `with` of the block, without its blanks.
      watched: Lines that the block begins with.

    Returns:
      The line that the block begins at, the text of the target behind it, and its lines; None where nothing among the
      statements around this one computes it, or other lines could not be indented.
    """
    own, owners, text = source.block(statement), _owners(source, wanted), source.text(target)
    if own is None or not owners:
        return None
    above = own[: own.index(statement)]
    made = [place for place, one in enumerate(above) if _sets(one) & owners]
    first = _first_of(source, above[made[-1] + 1 if made else 0 :], _loaded([ast.Expr(target)]), owners)
    direct = _reads(source, target, owners) and dotted(target) not in owners
    if first is None and not direct:
        return None
    begin = statement.lineno if first is None else _first_line(first)
    blanks = indent_of(source.lines[statement.lineno - 1])
    lines = source.lines[begin - 1 : statement.lineno - 1]
    if len(lines) > _MOST or _has_long_text(source, begin, statement.lineno):
        return None
    while lines and not lines[-1].strip():
        lines.pop()
    inside = [f"    {line}" if line.strip() else line for line in lines]
    if direct or not isinstance(target, ast.Name):
        inside.append(f"{blanks}    value = {text}")
        text = "value"
    return begin, text, (f"{blanks}{tape}", *(f"{blanks}    {one}" for one in watched), *inside)


def _first_of(source: Source, above: list[ast.stmt], needed: set[str], owners: set[str]) -> ast.stmt | None:
    """The first of some statements that reads a variable, of those by which some names are computed."""
    first: ast.stmt | None = None
    for one in reversed(above):
        if isinstance(one, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)) or not _sets(one) & needed:
            continue
        needed = needed | _loaded([one])
        if _reads(source, one, owners) and not _makes(one):
            first = one
    return first


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def _has_long_text(source: Source, begin: int, end: int) -> bool:
    """Whether a text goes over several of these lines, which indentation would change."""
    texts = (one for one in ast.walk(source.tree) if isinstance(one, ast.Constant) and isinstance(one.value, str))
    return any(begin <= one.lineno < (one.end_lineno or one.lineno) < end for one in texts)


def _owners(source: Source, wanted: ast.expr) -> set[str]:
    """`model` of `model.trainable_variables`, `v` of `[v]`."""
    if isinstance(wanted, (ast.List, ast.Tuple)):
        return {name for one in wanted.elts for name in _owners(source, one)}
    if isinstance(wanted, ast.Attribute) and wanted.attr in LISTS:
        return {dotted(wanted.value)} - {""}
    if isinstance(wanted, ast.BinOp) and isinstance(wanted.op, ast.Add):
        return _owners(source, wanted.left) | _owners(source, wanted.right)
    if not isinstance(wanted, (ast.Name, ast.Attribute)):
        return set()
    made = [
        one.value for one in ast.walk(source.tree)
        if isinstance(one, ast.Assign) and dotted(wanted) in [dotted(target) for target in one.targets]
    ]  # fmt: skip
    listed = len(made) == 1 and (
        isinstance(made[0], (ast.List, ast.Tuple)) or (isinstance(made[0], ast.Attribute) and made[0].attr in LISTS)
    )
    return _owners(source, made[0]) if listed else {dotted(wanted)}


def _reads(source: Source, node: ast.AST, owners: set[str]) -> bool:
    """Whether something reads a variable, or calls a model: not where its variables are only listed."""
    for one in ast.walk(node):
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load) and dotted(one) in owners:
            parent = source.parent(one)
            listed = isinstance(parent, ast.Attribute) and parent.attr in (*LISTS, *_CHANGES)
            if not listed and not _is_asked(source, one):
                return True
    return False


def _is_asked(source: Source, node: ast.AST) -> bool:
    """Whether something stands in the call that asks for gradients, or in the one that applies them."""
    for one in source.around(node):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _ASKS:
            return True
        if isinstance(one, ast.stmt):
            return False
    return False


def _makes(statement: ast.stmt) -> bool:
    """`model = Model(...)`, `v = tf.Variable(...)`: nothing that is differentiated."""
    value = getattr(statement, "value", None)
    last = dotted(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
    return last[:1].isupper()


def _loaded(statements: list[ast.stmt]) -> set[str]:
    return {
        one.id for statement in statements for one in ast.walk(statement)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
    }  # fmt: skip


def _sets(statement: ast.stmt) -> set[str]:
    """Names that a statement sets, or whose lists it adds to."""
    return set(_set(statement))


def _set(statement: ast.stmt) -> Iterator[str]:
    for one in ast.walk(statement):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            yield one.id
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _GROWS:
            yield dotted(one.func.value)


def _begun_at(file: str, source: Source, block: ast.With, first: ast.stmt) -> Edit | None:
    """The `with` above an earlier statement, and the lines from there on inside it."""
    begin, body = _first_line(first), block.body[0].lineno
    own = source.block(block) or []
    if any(is_tape(part) for one in own[own.index(first) : own.index(block)] for part in ast.walk(one)):
        return _computed_again(file, source, block, first)  # another's steps stay as they are
    if body == block.lineno or body - begin > _MOST or _has_long_text(source, begin, body):
        return None
    step = indent_of(source.lines[body - 1]).removeprefix(indent_of(source.lines[block.lineno - 1]))
    inside = [f"{step}{line}" for line in source.lines[begin - 1 : block.lineno - 1] if line.strip()]
    return Edit(file, begin, body - 1, (*source.lines[block.lineno - 1 : body - 1], *inside))


def _computed_again(file: str, source: Source, block: ast.With, first: ast.stmt) -> Edit | None:
    """A line above the block once more inside of it: in front of another tape's block it stays for that one."""
    body, end = block.body[0].lineno, first.end_lineno or first.lineno
    if body == block.lineno or end != first.lineno or not _sets(first) & _loaded(block.body):
        return None
    blanks = indent_of(source.lines[body - 1])
    return Edit(file, body, body - 1, (f"{blanks}{source.lines[end - 1].strip()}",))
