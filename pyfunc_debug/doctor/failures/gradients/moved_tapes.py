"""A tape whose block begins too late: lines above it, loops too, compute what is differentiated; read in the source.

Nothing is evaluated: a name that the block reads is followed up through what sets it or appends to it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of

_LISTS = ("trainable_variables", "trainable_weights", "variables", "weights")
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
    needed = _loaded(block.body)
    first: ast.stmt | None = None
    for one in reversed(own[: own.index(block)]):
        if isinstance(one, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)) or not _sets(one) & needed:
            continue
        needed |= _loaded([one])
        if _reads(source, one, owners) and not _makes(one):
            first = one
    return None if first is None else (first, _begun_at(file, source, block, first))


def _owners(source: Source, wanted: ast.expr) -> set[str]:
    """`model` of `model.trainable_variables`, `v` of `[v]`."""
    if isinstance(wanted, (ast.List, ast.Tuple)):
        return {name for one in wanted.elts for name in _owners(source, one)}
    if isinstance(wanted, ast.Attribute) and wanted.attr in _LISTS:
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
        isinstance(made[0], (ast.List, ast.Tuple)) or (isinstance(made[0], ast.Attribute) and made[0].attr in _LISTS)
    )
    return _owners(source, made[0]) if listed else {dotted(wanted)}


def _reads(source: Source, node: ast.AST, owners: set[str]) -> bool:
    """Whether something reads a variable, or calls a model: not where its variables are only listed."""
    for one in ast.walk(node):
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load) and dotted(one) in owners:
            parent = source.parent(one)
            listed = isinstance(parent, ast.Attribute) and parent.attr in (*_LISTS, *_CHANGES)
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
    begin = min([first.lineno, *(one.lineno for one in getattr(first, "decorator_list", ()))])
    body = block.body[0].lineno
    if body == block.lineno or body - begin > _MOST:
        return None
    texts = (one for one in ast.walk(source.tree) if isinstance(one, ast.Constant) and isinstance(one.value, str))
    if any(begin <= one.lineno < (one.end_lineno or one.lineno) < body for one in texts):
        return None  # a text over several lines, which indentation would change
    step = indent_of(source.lines[body - 1]).removeprefix(indent_of(source.lines[block.lineno - 1]))
    inside = [f"{step}{line}" for line in source.lines[begin - 1 : block.lineno - 1] if line.strip()]
    return Edit(file, begin, body - 1, (*source.lines[block.lineno - 1 : body - 1], *inside))
