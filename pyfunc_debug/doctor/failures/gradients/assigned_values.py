"""No gradient, because a function puts what it computes into a variable and goes on with that: no op leads back."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pyfunc_debug.doctor.code import all_nodes
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import (
    Source,
    asked_of_tape,
    dotted,
    indent_of,
    is_tape,
    names,
    short,
    tapes_before,
)

RULE = "cut-gradient"
_SAID = "No gradients provided for any variable"
_SIGNS = {"assign": "", "assign_add": "+", "assign_sub": "-"}
_MAKERS = ("Variable", "add_weight", "add_variable", "get_variable")
_VALUES = ("read_value", "value")
_KNOWN = ("shape", "dtype", "name")
"""What a variable is asked for beside its value."""
_MOST_LINES = 14


@dataclass(frozen=True)
class _Assigned:
    """`x.assign(value)` in a function, and the places behind it that read x.

    Attributes:
      holder: The function, or the file.
      statement: The assignment.
      call: Its call.
      variable: `x`, or `self.x`.
      reads: What stands for its value.
    """

    holder: ast.AST
    statement: ast.stmt
    call: ast.Call
    variable: str
    reads: list[ast.expr]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an optimizer got no gradient, and one function of the user's goes on with such a value."""
    if situation.body or _SAID not in situation.message:
        return None
    found = [(file, source, one) for file, source in situation.sources() for one in _assigned(source)]
    return _told(*found[0], "No variable has a gradient.") if len(found) == 1 else None


def at_line(file: str, source: Source, line: int) -> Explanation | None:
    """The same for a gradient that is None while the program goes on.

    Args:
      file: The file.
      source: Its text.
      line: The line that asks the tape.
    """
    blocks = tapes_before(source, line)
    if len(blocks) != 1:
        return None
    inside, own = set(map(id, ast.walk(blocks[0]))), source.function(blocks[0].lineno) or source.tree
    found = [one for one in _assigned(source) if id(one.statement) in inside or one.holder is not own]
    return _told(file, source, found[0], "The gradient is None.") if len(found) == 1 else None


def _assigned(source: Source) -> list[_Assigned]:
    """The assignments of a file of what a function computes, which the function then reads from the variable."""
    variables = {
        dotted(target) for one in all_nodes(source.tree) if isinstance(one, ast.Assign)
        and isinstance(one.value, ast.Call) and dotted(one.value.func).rpartition(".")[2] in _MAKERS
        for target in one.targets
    }  # fmt: skip
    found = []
    for holder in (source.tree, *(one for one in all_nodes(source.tree) if isinstance(one, ast.FunctionDef))):
        nodes = list(own_nodes(holder))
        calls = [one for one in nodes if isinstance(one, ast.Expr) and _variable(one.value) in variables]
        for statement in calls:
            call = statement.value
            assert isinstance(call, ast.Call)
            variable = _variable(call)
            again = [one for one in calls if one is not statement and _variable(one.value) == variable]
            reads = None if again else _reads(source, nodes, statement, variable)
            plain = _is_plain(source, holder, statement) and _locals(holder) & set(names(call.args[0]))
            if reads and plain and _is_given_on(source, nodes, reads):
                found.append(_Assigned(holder, statement, call, variable, reads))
    return found


def _variable(call: ast.expr) -> str:
    """`self.w` of `self.w.assign(x)`; "" of another expression."""
    fits = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _SIGNS
    return dotted(call.func).rpartition(".")[0] if isinstance(call, ast.Call) and fits and len(call.args) == 1 else ""


def _reads(source: Source, nodes: list[ast.AST], statement: ast.stmt, variable: str) -> list[ast.expr] | None:
    """Where a variable's value is taken behind a statement; None where something else is done with the variable."""
    found: list[ast.expr] = []
    for one in nodes:
        if not isinstance(one, (ast.Name, ast.Attribute)) or dotted(one) != variable:
            continue
        if one.lineno <= (statement.end_lineno or statement.lineno):
            continue
        parent = source.parent(one)
        asked = parent.attr if isinstance(parent, ast.Attribute) else ""
        whole = source.parent(parent) if asked in _VALUES and parent is not None else None
        if isinstance(whole, ast.Call) and whole.func is parent:
            found.append(whole)
        elif asked == "value" and isinstance(parent, ast.Attribute):  # of Keras
            found.append(parent)
        elif asked not in ("", *_KNOWN) or not isinstance(one.ctx, ast.Load):
            return None
        elif not asked:
            found.append(one)
    return found


def _is_given_on(source: Source, nodes: list[ast.AST], reads: list[ast.expr]) -> bool:
    """Whether a function returns what it computes of these, or asks a tape about that."""
    inside, made = set(map(id, reads)), set[str]()

    def of_them(node: ast.AST) -> bool:
        return any(id(one) in inside or (isinstance(one, ast.Name) and one.id in made) for one in ast.walk(node))

    for one in nodes:
        if isinstance(one, (ast.Assign, ast.AugAssign)) and of_them(one.value):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            made |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        elif isinstance(one, ast.Return) and one.value is not None and of_them(one.value):
            return True
    blocks = [one for one in nodes if isinstance(one, ast.With) and is_tape(one)]
    return any(of_them(target) for block in blocks for target in asked_of_tape(source, block))


def _is_plain(source: Source, holder: ast.AST, statement: ast.stmt) -> bool:
    """Whether a statement runs whenever its function, or its tape, does: in no branch and no loop."""
    for one in source.around(statement):
        if one is holder or isinstance(one, ast.Module) or (isinstance(one, ast.With) and is_tape(one)):
            return True
        if not isinstance(one, ast.With):
            return False
    return True


def _locals(holder: ast.AST) -> set[str]:
    """Names that a function is given or assigns, without `self`."""
    found = {one.id for one in own_nodes(holder) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    if isinstance(holder, ast.FunctionDef):
        found |= {one.arg for one in (*holder.args.posonlyargs, *holder.args.args, *holder.args.kwonlyargs)}
    return found - {"self"}


def _told(file: str, source: Source, found: _Assigned, so: str) -> Explanation:
    line = found.reads[0].lineno
    cause = (
        f"`{short(source.text(found.call), 40)}` puts a value into a variable, and line {line} goes on with "
        f"{found.variable}: no op leads from a variable back to what its value is computed of. {so}"
    )
    edit = _with_value(file, source, found)
    advice = f"Keep the value in a tensor, and go on with that behind the {dotted(found.call.func).rpartition('.')[2]}."
    return Explanation(
        RULE, file, found.statement.lineno, cause, edit, "" if edit is not None else advice, "likely"
    )  # fmt: skip


def _with_value(file: str, source: Source, found: _Assigned) -> Edit | None:
    """The value in a name of its own, given to the variable and read in its place."""
    value = found.call.args[0]
    taken = {one.id for one in own_nodes(found.holder) if isinstance(one, ast.Name)} | _locals(found.holder)
    sign = _SIGNS[dotted(found.call.func).rpartition(".")[2]]
    edits: list[Edit | None] = []
    if isinstance(value, ast.Name) and not sign:
        name = value.id
        stored = [
            one for one in own_nodes(found.holder) if isinstance(one, ast.Name) and one.id == name
            and isinstance(one.ctx, ast.Store) and one.lineno > found.statement.lineno
        ]  # fmt: skip
        if stored:
            return None
    else:
        last = found.variable.rpartition(".")[2].lstrip("_")
        name = next((one for one in (last, f"new_{last}", f"{last}_now") if one not in taken), "")
        if not name:
            return None
        text = f"{found.variable} {sign} {source.atom(value)}" if sign else source.text(value)
        blanks = indent_of(source.lines[found.statement.lineno - 1])
        given = f"{blanks}{found.variable}.assign({name})"
        edits.append(
            Edit(file, found.statement.lineno, found.statement.end_lineno or found.statement.lineno,
                 (f"{blanks}{name} = {text}", given))
        )  # fmt: skip
    by_statement: dict[int, dict[ast.expr, str]] = {}
    for one in found.reads:
        at = source.statement(one.lineno)
        by_statement.setdefault(at.lineno if at is not None else one.lineno, {})[one] = name
    edits += [edit_of(file, source.replaced(pieces)) for pieces in by_statement.values()]
    known = [one for one in edits if one is not None]
    if len(known) < len(edits) or max(one.last for one in known) - min(one.first for one in known) > _MOST_LINES:
        return None
    return together(known, source.lines)
