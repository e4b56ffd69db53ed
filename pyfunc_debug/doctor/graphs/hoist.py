"""What is made again each time, made once: an expression or a function, moved above the loop or function around it."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, indent_of

_AROUND = (ast.For, ast.While, ast.FunctionDef)


def hoisted(facts: Facts, file: str | None, what: ast.expr | ast.FunctionDef, name: str, form: str = "{}") -> str:
    """The lines that make something once; "" where it depends on what is around it, or that is not whole lines.

    Args:
      facts: The recording.
      file: The user's file.
      what: A node of its tree: what is made.
      name: What to call an expression that has no name yet.
      form: What such an expression is made into: `tf.function({})`.
    """
    return pastes.written(*hoisted_edits(facts, file, what, name, form))


def hoisted_edits(
    facts: Facts, file: str | None, what: ast.expr | ast.FunctionDef, name: str, form: str = "{}"
) -> list[Edit | None]:
    """The edits of `hoisted`; none where there is no paste, None among them where one cannot be made."""
    own, tree = pastes.source(facts, file), facts.tree(file)
    outer = None if tree is None else _above(own, what)
    if file is None or tree is None or outer is None:
        return []
    indent = indent_of(own.lines[outer.lineno - 1])
    if isinstance(what, ast.FunctionDef):
        return _moved(facts, file, what, what.name, outer, indent)
    statement = own.parent(what)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return _moved(facts, file, statement, statement.targets[0].id, outer, indent)
    taken = {one.id for one in pastes.walk(tree, ast.Name)}
    name = next(one for one in (name, *(f"{name}_{number}" for number in range(2, 99))) if one not in taken)
    text = form.format(own.text(what))
    made = None
    if '"""' not in text and "'''" not in text:
        made = pastes.above(facts, file, pastes.first_line(outer), *f"{name} = {text}".split("\n"))
    return [pastes.replaced(facts, file, {what: name}), made]


def _above(source: Source, what: ast.AST) -> ast.stmt | None:
    """The loop or function that it can stand in front of: the innermost, and loops around that loop."""
    needs = _needs(what)
    found: ast.stmt | None = None
    for one in source.around(what):
        if not isinstance(one, _AROUND) or one is what:
            continue
        if isinstance(one, ast.For) and _inside(what, one.iter):
            continue  # a loop asks once for what it goes through
        if needs & _binds(one, what):
            break
        if isinstance(one, ast.FunctionDef):
            holder = source.parent(one)
            if found is None:
                above = holder if isinstance(holder, ast.ClassDef) else one
                return above if _known_there(source, needs, above) else None
            break
        found = one
    return found


def _known_there(source: Source, needs: set[str], place: ast.stmt) -> bool:
    """Whether all that something needs of the file has a value above a statement."""
    if place not in source.tree.body:
        return True
    made: dict[str, int] = {}
    for one in source.tree.body:
        names = {one.name} if isinstance(one, (ast.FunctionDef, ast.ClassDef)) else code.stored_names(one)
        if isinstance(one, (ast.Import, ast.ImportFrom)):
            names = {(part.asname or part.name).partition(".")[0] for part in one.names}
        for name in names:
            made.setdefault(name, one.lineno)
    return all(made.get(name, 0) < pastes.first_line(place) for name in needs)


def _inside(what: ast.AST, part: ast.AST) -> bool:
    return any(one is what for one in ast.walk(part))


def _needs(what: ast.AST) -> set[str]:
    """Names that it reads and does not bind itself."""
    bound: set[str] = set()
    for one in ast.walk(what):
        if isinstance(one, (ast.FunctionDef, ast.Lambda)):
            bound |= code.local_names(one)
    names = {one.id for one in ast.walk(what) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    return names - bound


def _binds(around: ast.AST, but: ast.AST) -> set[str]:
    """Names that a loop or a function binds, besides what is moved."""
    if isinstance(around, ast.FunctionDef):
        return code.local_names(around) - {getattr(but, "name", "")}
    inside = {id(one) for one in ast.walk(but)}
    found: set[str] = set()
    for one in ast.walk(around):
        if id(one) in inside:
            continue
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            found.add(one.id)
        elif isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            found.add(one.name)
    return found


def _moved(facts: Facts, file: str, statement: ast.stmt, name: str, outer: ast.stmt, indent: str) -> list[Edit | None]:
    """A statement above what is around it, and a comment in its place."""
    first, last = pastes.first_line(statement), statement.end_lineno or statement.lineno
    lines = facts.source(file)[first - 1 : last]
    stores = [
        one for one in ast.walk(outer)
        if (isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store))
        or (isinstance(one, ast.FunctionDef) and one.name == name and one is not outer)
    ]  # fmt: skip
    own = indent_of(lines[0])
    dropped = _dropped(facts, file, outer, name)
    if dropped is None:
        return []
    if len(stores) != 1 or not all(line.startswith(own) or not line.strip() for line in lines):
        return []
    word = (
        "loop"
        if isinstance(outer, (ast.For, ast.While))
        else "class"
        if isinstance(outer, ast.ClassDef)
        else "function"
    )
    return [
        Edit(file, first, last, (f"{own}# {name} is made once, above the {word}",)),
        Edit(file, pastes.first_line(outer), pastes.first_line(outer) - 1,
             tuple(f"{indent}{line.removeprefix(own)}".rstrip() for line in lines)),
        *dropped,
    ]  # fmt: skip


def _dropped(facts: Facts, file: str, outer: ast.stmt, name: str) -> list[Edit | None] | None:
    """A comment in the place of each `del dataset` of the loop: it needs it again. None where a line drops more."""
    edits: list[Edit | None] = []
    for one in ast.walk(outer):
        if isinstance(one, ast.Delete) and name in {part.id for part in ast.walk(one) if isinstance(part, ast.Name)}:
            indent = pastes.indent(facts, file, one.lineno)
            if len(one.targets) > 1 or indent is None:
                return None
            edits.append(Edit(file, one.lineno, one.lineno, (f"{indent}pass  # {name} is needed again",)))
    return edits
