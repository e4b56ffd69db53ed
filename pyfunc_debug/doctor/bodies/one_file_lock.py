"""Bodies and generators that read HDF5 by h5py: it has one lock for all threads, which parallel calls wait for.

Source: "Multi-threading" in h5py's documentation: every call of HDF5 is made with the lock `phil` held.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Node

_DEEPEST = 3
SAID = "that has one lock for all threads, and calls side by side wait for each other while they read"


def reads_hdf5(facts: Facts, node: Node) -> bool:
    """Whether a body, or a function or method of its file that it calls, reads with h5py.

    Args:
      facts: The recording.
      node: The body's node, or a generator's.
    """
    function, tree = facts.function(node), facts.tree(node.file)
    if function is None or tree is None:
        return False
    own = {short for short, full in imports(pastes.source(facts, node.file)).items() if full.split(".")[0] == "h5py"}
    if not own:
        return False
    opened = _opened(tree, own)
    return any(_reads(part, own, opened) for part in _called(function, tree))


def cure(facts: Facts, node: Node) -> str:
    """What helps in place of parallel calls."""
    return (
        f'{facts.name(node)}: read many rows in one call of h5py (file["x"][a:b]); or .cache() behind it, if it is '
        "read more than once and fits into memory; or several processes, or files of another kind: parallel calls "
        "help only with what it does besides reading"
    )


def _opened(tree: ast.Module, own: set[str]) -> set[str]:
    """What holds an open file or a dataset of it: `file`, `self.images`."""
    found: set[str] = set()
    for _ in range(_DEEPEST):
        for one in ast.walk(tree):
            if not isinstance(one, ast.Assign):
                continue
            held = one.value
            while isinstance(held, ast.Subscript) and _is_key(held.slice):
                held = held.value
            if _opens(held, own) or dotted(held) in found:
                found |= {dotted(target) for target in one.targets if dotted(target)}
    return found


def _is_key(index: ast.expr) -> bool:
    """Whether `[...]` names a dataset of a file, and reads no rows of it."""
    return isinstance(index, ast.Constant) and isinstance(index.value, str)


def _opens(value: ast.expr | None, own: set[str]) -> bool:
    return isinstance(value, ast.Call) and dotted(value.func).partition(".")[0] in own


def _reads(part: ast.AST, own: set[str], opened: set[str]) -> bool:
    """Whether a function opens a file of h5py's, or asks one that is open for rows."""
    for one in ast.walk(part):
        if isinstance(one, ast.Call) and _opens(one, own):
            return True
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load) and _root(one) in opened:
            return True
    return False


def _root(node: ast.AST) -> str:
    """`self.file` of `self.file["x"][3]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node)


def _called(function: ast.AST, tree: ast.Module) -> Iterator[ast.AST]:
    """A function, and those of its file that it calls by their names, as functions or methods; each once."""
    defined: dict[str, list[ast.AST]] = {}
    for one in ast.walk(tree):
        if isinstance(one, ast.FunctionDef):
            defined.setdefault(one.name, []).append(one)
    seen: list[ast.AST] = [function]
    todo = [function]
    for _ in range(_DEEPEST):
        calls = [one for part in todo for one in ast.walk(part) if isinstance(one, ast.Call)]
        named = {dotted(one.func).rpartition(".")[2] for one in calls} - {""}
        todo = [
            found[0] for name in sorted(named) if len(found := defined.get(name, [])) == 1 and found[0] not in seen
        ]  # fmt: skip
        seen += todo
    return iter(seen)
