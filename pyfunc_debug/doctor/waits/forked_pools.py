"""A pool of processes that were forked from a program with TensorFlow, whose work calls TensorFlow: it never ends.

A forked process has the one thread that forked it; the threads that TensorFlow's operations run on are not there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.program.waiting import FOR_PROCESSES

_POOLS = ("Pool", "ProcessPoolExecutor")
_HANDS = (
    "apply", "apply_async", "map", "map_async", "imap", "imap_unordered", "starmap", "starmap_async", "submit",
)  # fmt: skip


@dataclass(frozen=True)
class Forked:
    """What is known of it.

    Attributes:
      text: The cause, as a sentence.
      fix: The line of the pool with processes that are spawned, or words.
    """

    text: str
    fix: str


def found(facts: Facts, file: object, line: object, what: str) -> Forked | None:
    """The work that a line waits for, where the file shows that it calls TensorFlow in a forked process.

    Args:
      facts: The recording.
      file: The user's file of the line that waits.
      line: That line.
      what: What it waits for.
    """
    tree = facts.tree(file) if isinstance(file, str) else None
    if what not in FOR_PROCESSES or tree is None or not isinstance(file, str) or not isinstance(line, int):
        return None
    tf = pastes.module(facts, file, "tensorflow")
    pools = [one for one in pastes.walk(tree, ast.Call) if pastes.last_name(one.func) in _POOLS]
    if tf is None or len(pools) != 1 or _spawned(tree):
        return None
    function = _handed(facts, file, tree, line)
    uses = [] if function is None else [
        one for one in pastes.walk(function, ast.Attribute) if isinstance(one.value, ast.Name) and one.value.id == tf
    ]  # fmt: skip
    if function is None or not uses:
        return None
    here, made = facts.source_line(file, uses[0].lineno), facts.source_line(file, pools[0].lineno)
    text = (
        f" {function.name} calls TensorFlow ({here}), in a process that was forked ({made}) from this one: the threads "
        "that TensorFlow's operations run on are not in it, so they may never end"
    )
    return Forked(text, _fix(facts, file, tree, pools[0], function.name))


def _handed(facts: Facts, file: str, tree: ast.Module, line: int) -> ast.FunctionDef | None:
    """The function of the file that is given to a pool, in the line that waits or else anywhere in its function."""
    body = pastes.source(facts, file).function(line)
    near = pastes.around(tree, line, ast.Call)
    for calls in (near, list(pastes.walk(body, ast.Call)), list(pastes.walk(tree, ast.Call))):
        first = [one.args[0] for one in calls if pastes.last_name(one.func) in _HANDS and one.args]
        given = {one.id for one in first if isinstance(one, ast.Name)}
        named = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name in given]
        if given:
            return named[0] if len(given) == len(named) == 1 else None
    return None


def _spawned(tree: ast.Module) -> bool:
    """Whether the file asks for processes that are not forked, or for threads by the same name."""
    texts = {one.value for one in ast.walk(tree) if isinstance(one, ast.Constant)}
    modules = {str(one.module) for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)}
    modules |= {name.name for one in ast.walk(tree) if isinstance(one, ast.Import) for name in one.names}
    return bool(texts & {"spawn", "forkserver"}) or "multiprocessing.dummy" in modules


def _fix(facts: Facts, file: str, tree: ast.Module, pool: ast.Call, name: str) -> str:
    guards = [
        one for one in tree.body
        if isinstance(one, ast.If) and "__name__" in [part.id for part in pastes.walk(one.test, ast.Name)]
    ]  # fmt: skip
    inside = pastes.source(facts, file).function(pool.lineno) is not None or any(
        one.lineno <= pool.lineno <= (one.end_lineno or 0) for one in guards
    )
    short = pastes.module(facts, file, "multiprocessing")
    if guards and inside and short is not None and not any(word.arg == "mp_context" for word in pool.keywords):
        arguments = ", ".join(pastes.text_of(facts, file, one) for one in (*pool.args, *pool.keywords))
        if pastes.last_name(pool.func) == "Pool":
            return pastes.written(
                pastes.replaced(facts, file, {pool: f'{short}.get_context("spawn").Pool({arguments})'})
            )
        more = f'{arguments}{", " if arguments else ""}mp_context={short}.get_context("spawn")'
        text = f"{pastes.text_of(facts, file, pool.func)}({more})"
        return pastes.written(pastes.replaced(facts, file, {pool: text}))
    return (
        f"use NumPy alone in {name}; or make the pool before the first operation of TensorFlow, with {name} above it; "
        'or spawn its processes: multiprocessing.get_context("spawn").Pool(...) under `if __name__ == "__main__":`'
    )
