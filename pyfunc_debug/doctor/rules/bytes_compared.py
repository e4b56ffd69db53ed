"""Bodies that compare bytes with text: TensorFlow gives a body its strings as bytes, and the two are never equal."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.records import Finding, Node

NAMES = ("bytes-compared",)
_KEEP = {
    "split", "rsplit", "strip", "lstrip", "rstrip", "lower", "upper", "replace", "removeprefix", "removesuffix",
    "partition", "rpartition", "numpy", "item", "tolist", "copy",
}  # fmt: skip
"""Methods that give bytes, or lists of them, of bytes."""
_PATHS = {"basename", "dirname", "splitext", "split", "join", "normpath", "abspath"}
"""Functions of os.path that give bytes for bytes."""


@dataclass(frozen=True)
class _Compared:
    node: ast.expr
    side: ast.expr
    root: str
    outcome: str


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    groups = [(group, function) for group in facts.lines if (function := _may_compare(facts, group[0])) is not None]
    wanted = ", ".join(str(group[0].id) for group, _ in groups)
    rows = facts.reader.rows(
        "SELECT c.node, v.path, max(v.shape <> '[]'), min(c.id) FROM value v JOIN call c ON c.id = v.call WHERE c.node "
        f"IN ({wanted}) AND c.kind = 'forward' AND v.role = 'input' AND v.dtype = 'string' "
        "GROUP BY c.node, v.path ORDER BY c.node, v.position"
    ) if groups else []  # fmt: skip
    given: dict[int, dict[str, bool]] = {}
    first: dict[int, int] = {}
    for node, path, array, call in rows:
        given.setdefault(node, {})[path] = bool(array)
        first.setdefault(node, call)
    seen: set[tuple[str | None, int]] = set()
    for group, function in groups:
        strings = given.get(group[0].id)
        if strings is None:
            continue
        eager = group[0].kind == "py_function"
        for one in _compared(function, strings, eager, facts.tree(group[0].file)):
            if (group[0].file, one.node.lineno) in seen:
                continue
            seen.add((group[0].file, one.node.lineno))
            yield _finding(facts, group[0], function, one, strings, first[group[0].id], facts.calls_of(group).count)
            break


def _may_compare(facts: Facts, node: Node) -> Definition | None:
    """The function of a node where it compares or looks up anything: of most, no value needs to be read."""
    function = facts.function(node)
    asks = function is not None and any(
        isinstance(part, ast.Compare) or (isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
        and part.func.attr == "get") for part in code.own_nodes(function)
    )  # fmt: skip
    return function if asks else None


def _finding(
    facts: Facts, node: Node, function: Definition, one: _Compared, strings: dict[str, bool], call: int, calls: int
) -> Finding:
    text = pastes.text_of(facts, node.file, one.node)
    edit = ""
    if any(isinstance(part, ast.Constant) and isinstance(part.value, bytes) for part in ast.walk(function)):
        edit = pastes.written(pastes.replaced(facts, node.file, {
            one.side: f"{pastes.text_of(facts, node.file, one.side)}.decode()"
        }))  # fmt: skip
    elif node.kind == "py_function":
        edit = pastes.all_replaced(facts, node.file, {
            part: f"{pastes.text_of(facts, node.file, part)}.decode()"
            for part in code.own_nodes(function)
            if isinstance(part, ast.Call) and ast.unparse(part) == f"{one.root}.numpy()"
        })  # fmt: skip
    elif (line := pastes.beginning(function)) is not None:
        new = f"[one.decode() for one in {one.root}]" if strings[one.root] else f"{one.root}.decode()"
        edit = pastes.written(pastes.above(facts, node.file, line, f"{one.root} = {new}"))
    return Finding(
        "bytes-compared", "warning", node.id, (call,),
        f"`{text}` {one.outcome} ({calls:,} call{'s' if calls != 1 else ''} of {facts.name(node)}): a body gets "
        "its strings as bytes, and b'text' never equals 'text'",
        edit or f"{one.root}.decode()  # once, before it is compared",
        node.file, one.node.lineno, evidence=(f"call #{call}: {facts.inputs(call)}",),
    )  # fmt: skip


def _compared(function: Definition, strings: dict[str, bool], eager: bool, tree: ast.Module | None) -> list[_Compared]:
    """Comparisons of a value that comes from such an input with text that is written in the program."""
    roots = {name: name for name in strings if name in code.parameters(function) and not eager}
    found: list[_Compared] = []

    def root(node: ast.AST | None) -> str | None:
        if isinstance(node, ast.Name):
            return roots.get(node.id)
        if isinstance(node, ast.Subscript):
            return root(node.value)
        if not isinstance(node, ast.Call):
            return None
        name = ast.unparse(node.func).rpartition(".")[2]
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if eager and name == "numpy" and isinstance(owner, ast.Name) and owner.id in strings:
                return owner.id
            if name in _KEEP and root(owner) is not None:
                return root(owner)
        return root(node.args[0]) if name in _PATHS and node.args else None

    def look(node: ast.AST) -> None:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right, op = node.left, node.comparators[0], node.ops[0]
            if isinstance(op, (ast.In, ast.NotIn)):
                side, own, hit = (
                    left,
                    root(left),
                    isinstance(right, (ast.List, ast.Tuple, ast.Set)) and _texts(right.elts),
                )
            else:
                side = left if root(left) else right
                own = root(side)
                hit = isinstance(op, (ast.Eq, ast.NotEq)) and _texts([right if root(left) else left])
            if own is not None and hit:
                found.append(_Compared(node, side, own, f"is always {isinstance(op, (ast.NotEq, ast.NotIn))}"))
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "get"
            and node.args
        ):
            own = root(node.args[0])
            if own is not None and _keys_are_texts(node.func.value, tree):
                found.append(_Compared(node, node.args[0], own, "never finds anything"))

    for node in code.own_nodes(function):
        look(node)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.For) else []
        source = node.value if isinstance(node, ast.Assign) else node.iter if isinstance(node, ast.For) else None
        for target in targets:
            for name in (part.id for part in ast.walk(target) if isinstance(part, ast.Name)):
                own = root(source)
                if own is None:
                    roots.pop(name, None)
                else:
                    roots[name] = own
    return found


def _texts(nodes: list[ast.expr]) -> bool:
    return bool(nodes) and all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in nodes)


def _keys_are_texts(owner: ast.expr, tree: ast.Module | None) -> bool:
    """Whether a name is given one dict, whose keys are written as text."""
    made = [
        one.value for one in pastes.walk(tree, ast.Assign)
        if [ast.unparse(target) for target in one.targets] == [ast.unparse(owner)]
    ]  # fmt: skip
    return len(made) == 1 and isinstance(made[0], ast.Dict) and _texts([one for one in made[0].keys if one is not None])
