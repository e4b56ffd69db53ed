"""Objects that the calls of a body share: `tokenizer.encode(text)`, with one tokenizer for all.

Whether two calls may use one at once only its author knows: a tokenizer, a connection or an open file may not.
"""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.records import Node

_APART = {
    "PIL", "base64", "cv2", "glob", "gzip", "imageio", "io", "json", "math", "numpy", "os", "pathlib", "requests",
    "struct", "tensorflow", "time", "urllib", "zlib",
}  # fmt: skip
"""Modules whose functions calls may run at once."""
_SEEDS = {"seed", "default_rng", "RandomState", "set_seed", "set_random_seed"}
_PLAIN = {"dict", "float", "int", "len", "list", "range", "sorted", "str", "tuple"}
_OF_ARRAYS = {"jax", "keras", "math", "np", "numpy", "tensorflow", "tf"}
"""Whose objects several calls may use at once."""


def are_apart(facts: Facts, node: Node) -> bool:
    """Whether a body's calls share nothing but modules of `_APART`, and constants or lists of its file."""
    function, tree = facts.function(node), facts.tree(node.file)
    if function is None or tree is None:
        return False
    known = imports(pastes.source(facts, node.file or ""))
    used = {one.id for one in ast.walk(function) if isinstance(one, ast.Name)}
    if any(full.partition(".")[0] not in _APART for short, full in known.items() if short in used):
        return False
    if code.state_writes(function) or code.array_writes(function) or code.clock(function):
        return False
    if code.is_random(function, tree) and _seeded(tree):
        return False  # which call draws which number would change from run to run
    return all(_constant(tree, one, known) for one in code.outside(function, tree))


def _seeded(tree: ast.Module) -> bool:
    calls = (one for one in code.all_nodes(tree) if isinstance(one, ast.Call))
    return any(ast.unparse(one.func).rpartition(".")[2] in _SEEDS for one in calls)


def _constant(tree: ast.Module, name: str, known: dict[str, str]) -> bool:
    """Whether a name of a file is bound once, to what holds no connection, lock or open file."""
    bound = [one for one in code.all_nodes(tree) if isinstance(one, ast.Name) and one.id == name]
    values = [
        one.value for one in tree.body if isinstance(one, ast.Assign) and name in map(ast.unparse, one.targets)
    ]  # fmt: skip
    if len(values) != 1 or sum(isinstance(one.ctx, ast.Store) for one in bound) != 1:
        return False
    called = [ast.unparse(one.func) for one in ast.walk(values[0]) if isinstance(one, ast.Call)]
    return all(one in _PLAIN or known.get(one.partition(".")[0], "").partition(".")[0] == "numpy" for one in called)


def shared_objects(function: Definition, tree: ast.Module) -> list[str]:
    """Objects made outside of a body whose methods it calls, as they are written there, `tokenizer` or `self.reader`.

    Args:
      function: The body.
      tree: Its file.
    """
    outside = code.outside(function, tree)
    found = []
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Call):
            continue
        holder = one.func.value if isinstance(one.func, ast.Attribute) else one.func
        name, head = ast.unparse(holder), code.root(holder)
        kept = head in outside if isinstance(holder, ast.Name) else isinstance(holder, ast.Attribute) and head == "self"
        if kept and _is_made(tree, name):
            found.append(name)
    return list(dict.fromkeys(found))


def _is_made(tree: ast.Module, name: str) -> bool:
    """Whether a file gives a name the result of a call that is neither Python's, NumPy's nor TensorFlow's."""
    values = [
        one.value for one in code.all_nodes(tree)
        if isinstance(one, ast.Assign) and name in map(ast.unparse, one.targets)
    ]  # fmt: skip
    return any(
        isinstance(one, ast.Call)
        and not (isinstance(one.func, ast.Name) and one.func.id in _PLAIN)
        and code.root(one.func) not in _OF_ARRAYS
        for one in values
    )
