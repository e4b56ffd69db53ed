"""Processes of a program spawned in place of forked: what to paste into its main file.

A spawned process imports the main file again, so that all that starts the program must be under
`if __name__ == "__main__":`, and what the process needs must be above it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit

_GUARD = 'if __name__ == "__main__":'
_FORKS = ("set_start_method", "get_context")
_ABOVE = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_READS = {"predict", "evaluate", "summary", "save", "get_weights", "numpy", "shape", "take"}
"""Methods that leave what they are called on as it is."""


@dataclass(frozen=True)
class Spawned:
    """What to paste.

    Attributes:
      fix: The edits; "" where there are none.
      why: Why there are none, as words that follow "it is not pasted here: "; else "".
      made: Variables that each process makes for itself.
    """

    fix: str = ""
    why: str = ""
    made: tuple[str, ...] = ()


def spawned(facts: Facts, file: str, in_child: tuple[str, int]) -> Spawned:
    """Edits after which a file's processes are spawned.

    Args:
      facts: The recording.
      file: The user's file that makes the processes.
      in_child: File and line at which the outermost function of the user's is in the process.
    """
    tree = facts.tree(file)
    if tree is None:
        return Spawned(why="its source is not known")
    if not file.endswith(".py"):
        return Spawned(why="a function of a notebook cannot be found by a spawned process: it must be in a module")
    function = _function_of(facts, *in_child)
    if function is None:
        return Spawned(why="a spawned process finds functions at the top level of a file only")
    needed = _needed(tree, function) if in_child[0] == file else set()
    needed |= {name for one in tree.body if isinstance(one, _DEFINITIONS) for name in _at_import(one)}
    guards = [one for one in tree.body if _is_guard(one)]
    above = [one for one in tree.body if one not in guards and _stays(tree, one, needed)]
    below = [one for one in tree.body if one not in above and one not in guards]
    inside = {name for one in guards for name in _assigned_in(one)} & needed - set(_assigned(above))
    if inside:
        return Spawned(why=f"{', '.join(sorted(inside))} is made under the guard, where a spawned process has it not")
    changed = sorted(set(_changed([*below, *guards])) & needed & set(_assigned(above)))
    if changed:
        return Spawned(why=f"{', '.join(changed)} is changed after it was made, which a spawned process would not see")
    edits = _started(facts, file, tree, guards, below)
    if edits is None:
        return Spawned(why="a text of several lines stands in what would be indented")
    made = [name for one in above if next(pastes.walk(one, ast.Call), None) is not None for name in _assigned([one])]
    return Spawned(pastes.written(*edits), made=tuple(name for name in made if name in needed))


def _started(
    facts: Facts, file: str, tree: ast.Module, guards: list[ast.stmt], below: list[ast.stmt]
) -> list[Edit | None] | None:
    """The start method, and the guard where there is none around something."""
    edits: list[Edit | None] = []
    asked: dict[ast.expr, str] = {
        part: '"spawn"' for one in pastes.walk(tree, ast.Call) if pastes.last_name(one.func) in _FORKS
        for part in one.args[:1] if isinstance(part, ast.Constant) and part.value in ("fork", "forkserver")
    }  # fmt: skip
    edits += pastes.each_replaced(facts, file, asked)
    short = pastes.module(facts, file, "multiprocessing")
    start = [f'{short or "multiprocessing"}.set_start_method("spawn")']
    if short is None:
        start.insert(0, "import multiprocessing")
    todo = [] if asked else start
    lines = facts.source(file)
    for block in _blocks(tree, below):
        first, last = pastes.first_line(block[0]), block[-1].end_lineno or block[-1].lineno
        if any(_several_lines(one) for one in block):
            return None
        own = [f"    {one}".rstrip() for one in lines[first - 1 : last]]
        edits.append(Edit(file, first, last, (_GUARD, *(f"    {one}" for one in todo), *own)))
        todo = []
    if todo and guards:
        guard = guards[0]
        assert isinstance(guard, ast.If)
        edits.append(pastes.above(facts, file, pastes.first_line(guard.body[0]), *todo))
    return edits


def _blocks(tree: ast.Module, below: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Statements that follow each other."""
    block: list[ast.stmt] = []
    for one in tree.body:
        if one in below:
            block.append(one)
        elif block:
            yield block
            block = []
    if block:
        yield block


def _several_lines(statement: ast.stmt) -> bool:
    """Whether indenting a statement would change a text in it."""
    texts = [one for one in ast.walk(statement) if isinstance(one, (ast.Constant, ast.JoinedStr))]
    return any(
        one.lineno != one.end_lineno and (isinstance(one, ast.JoinedStr) or isinstance(one.value, (str, bytes)))
        for one in texts
    )


def _is_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in [one.id for one in pastes.walk(statement.test, ast.Name)]


def _stays(tree: ast.Module, statement: ast.stmt, needed: set[str]) -> bool:
    """Whether each process runs a statement of the top level."""
    if isinstance(statement, _ABOVE) or set(_assigned([statement])) & needed:
        return True
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True
    imports = [one.lineno for one in tree.body if isinstance(one, (ast.Import, ast.ImportFrom, ast.Try))]
    return statement.lineno <= max(imports, default=0)


def _function_of(facts: Facts, file: str, line: int) -> ast.stmt | None:
    """The function at a file's top level that holds a line, or the class whose method does."""
    tree = facts.tree(file)
    found = pastes.source(facts, file).function(line)
    for one in tree.body if tree is not None else ():
        if one is found or (isinstance(one, ast.ClassDef) and found in one.body):
            return one
    return None


def _needed(tree: ast.Module, function: ast.stmt) -> set[str]:
    """Names of the top level that a function reads, and those that these need."""
    made: dict[str, list[ast.stmt]] = {}
    for one in tree.body:
        named = [one.name] if isinstance(one, _DEFINITIONS) else _assigned_in(one)
        for name in named:
            made.setdefault(name, []).append(one)
    found: set[str] = set()
    todo = [function]
    while todo:
        for name in _free(todo.pop()) - found:
            found.add(name)
            todo += [one for one in made.get(name, ()) if not _is_guard(one)]
    return found


def _free(statement: ast.AST) -> set[str]:
    """Names that a statement reads and does not make itself; of a function those that are not its own."""
    if isinstance(statement, ast.ClassDef):
        return {name for one in ast.iter_child_nodes(statement) for name in _free(one)}
    read = {one.id for one in pastes.walk(statement, ast.Name) if isinstance(one.ctx, ast.Load)}
    if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return read
    shared = {name for one in pastes.walk(statement, ast.Global) for name in one.names}
    own = {one.arg for one in pastes.walk(statement, ast.arg)} | set(_assigned_in(statement))
    return read - (own - shared)


def _at_import(definition: ast.stmt) -> Iterator[str]:
    """Names that are read where a function or class is defined."""
    parts: list[ast.AST] = list(getattr(definition, "decorator_list", ()))
    if isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        parts += [*definition.args.defaults, *(one for one in definition.args.kw_defaults if one is not None)]
    elif isinstance(definition, ast.ClassDef):
        parts += definition.bases
    for part in parts:
        yield from (one.id for one in pastes.walk(part, ast.Name))


def _assigned(statements: list[ast.stmt]) -> list[str]:
    return [name for one in statements if isinstance(one, (ast.Assign, ast.AnnAssign)) for name in _assigned_in(one)]


def _assigned_in(statement: ast.AST) -> list[str]:
    return [one.id for one in pastes.walk(statement, ast.Name) if isinstance(one.ctx, ast.Store)]


def _changed(statements: list[ast.stmt]) -> Iterator[str]:
    """Names whose values statements change: `model.fit(...)`, `table[key] = ...`."""
    for statement in statements:
        for one in pastes.walk(statement, ast.Expr):
            method = one.value.func if isinstance(one.value, ast.Call) else None
            if isinstance(method, ast.Attribute) and method.attr not in _READS and isinstance(method.value, ast.Name):
                yield method.value.id
        for name in pastes.walk(statement, ast.Name):
            if isinstance(name.ctx, ast.Store):
                yield name.id
        for kept in pastes.walk(statement, ast.expr):
            if not isinstance(kept, (ast.Subscript, ast.Attribute)) or not isinstance(kept.ctx, ast.Store):
                continue
            if isinstance(kept.value, ast.Name):
                yield kept.value.id
