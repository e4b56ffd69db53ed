"""What the source of a body says: which names it writes into, which state it shares, which random numbers it draws."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_IN_PLACE = {"sort", "fill", "partition", "resize", "itemset", "byteswap", "setfield", "put"}
"""Methods of an array that change it."""
_SHUFFLERS = {"shuffle", "put", "copyto", "place", "putmask", "fill_diagonal"}
"""Functions that change their first argument."""
_GROWS = {
    "append",
    "extend",
    "add",
    "update",
    "insert",
    "appendleft",
    "pop",
    "popleft",
    "remove",
    "clear",
    "setdefault",
}
"""Methods of Python's containers that change them."""
_GENERATORS = {"default_rng", "RandomState", "Generator", "SeedSequence", "Random", "SystemRandom", "seed"}


@dataclass(frozen=True)
class Write:
    """A statement that changes something: at a line, the name it begins with, and its text."""

    line: int
    name: str
    text: str


def parameters(function: Definition) -> list[str]:
    """Names of a function's parameters, in order."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    extra = [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return [one.arg for one in (*every, *extra)]


def local_names(function: Definition) -> set[str]:
    """Names that a function binds: parameters, and what it assigns, without `global` and `nonlocal` ones."""
    found, outer = set(parameters(function)), set()
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            outer.update(node.names)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((one.asname or one.name).partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return found - outer


def own_nodes(function: Definition) -> Iterator[ast.AST]:
    """Nodes of a function's body in the order of the source, without those of functions defined in it."""
    todo: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else list(function.body)
    while todo:
        node = todo.pop(0)
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo[:0] = list(ast.iter_child_nodes(node))


def _root(node: ast.AST) -> str | None:
    """`x` of `x`, `x[0]`, `x.a[1].b`."""
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def array_writes(function: Definition) -> list[Write]:
    """Statements that change an array in place, until its name is bound to something else."""
    found, bound = [], set()

    def note(node: ast.AST, target: ast.AST) -> None:
        name = _root(target)
        if name is not None and name not in bound:
            found.append(Write(getattr(node, "lineno", function.lineno), name, ast.unparse(node)))

    for node in own_nodes(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript):
                    note(node, target)
                elif isinstance(target, ast.Name) and not _is_view(node.value, target.id):
                    bound.add(target.id)
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, (ast.Name, ast.Subscript)):
                note(node, node.target)
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                if node.func.attr in _IN_PLACE and not _is_module(node.func.value):
                    note(node, node.func.value)
                elif node.func.attr in _SHUFFLERS and node.args and _is_module(node.func.value):
                    note(node, node.args[0])
            for keyword in node.keywords:
                if keyword.arg == "out":
                    note(node, keyword.value)
    return found


def _is_module(node: ast.AST) -> bool:
    return ast.unparse(node).partition(".")[0] in ("np", "numpy", "random", "rng", "tf", "scipy")


def _is_view(value: ast.AST, name: str) -> bool:
    """Whether an expression may still be the array itself: `np.asarray(x)`, `x.reshape(...)`, `x[...]`."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr in (
            "asarray",
            "ascontiguousarray",
            "atleast_1d",
            "atleast_2d",
            "ravel",
            "reshape",
            "squeeze",
        ):
            inside = value.args[0] if _is_module(value.func.value) and value.args else value.func.value
            return _root(inside) == name
        return False
    return _root(value) == name and not isinstance(value, ast.Name)


def state_writes(function: Definition) -> list[Write]:
    """Statements that change what outlives the call: globals, closures, attributes of `self`, outer containers."""
    local = local_names(function)
    found = []
    parameters_ = parameters(function)
    for node in own_nodes(function):
        targets: list[ast.AST] = []
        if isinstance(node, ast.Assign):
            targets = [one for one in node.targets if not isinstance(one, ast.Tuple)]
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS:
            targets = [node.func.value]
        for target in targets:
            name = _root(target)
            of_self = name == "self" and "self" in parameters_ and not isinstance(target, ast.Name)
            if name is not None and (name not in local or of_self) and not _is_module(target):
                if isinstance(target, ast.Name) and isinstance(node, (ast.Assign, ast.AugAssign)) and name in local:
                    continue
                found.append(Write(getattr(node, "lineno", function.lineno), name, ast.unparse(node)))
    return found


def counters(function: Definition) -> list[Write]:
    """Of `state_writes`, those that read what they change: two at once may lose one."""
    lines = {node.lineno for node in own_nodes(function) if isinstance(node, ast.AugAssign)}
    return [one for one in state_writes(function) if one.line in lines]


def global_random(function: Definition) -> list[Write]:
    """Draws from the global generators of NumPy and Python: `np.random.rand()`, `random.random()`."""
    found = []
    for node in own_nodes(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = ast.unparse(node.func)
            head, _, last = name.rpartition(".")
            if head in ("np.random", "numpy.random", "random") and last not in _GENERATORS:
                found.append(Write(node.lineno, head, ast.unparse(node)))
    return found
