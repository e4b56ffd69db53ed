"""`os.path.join(root, "mask", path)` of a whole path: it throws away what stands before, and gives the path itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Finding, Node

NAMES = ("absolute-join",)
_AS_IT_IS = {"numpy", "decode", "str", "as_str", "as_text", "as_str_any", "fsdecode", "item"}
"""What gives the text of a tensor or of bytes, and no part of it."""
_WHOLE = re.compile(r"""^\S*\s*b?['"](/|[A-Za-z]:[\\/])""")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body, where all paths that it was given were whole."""
    told: set[tuple[str | None, int]] = set()
    for node in facts.nodes.values():
        function = facts.function(node)
        joins = [one for one in code.own_nodes(function) if _is_join(one)] if function is not None else []
        if function is None or not joins:
            continue
        whole = _whole_paths(facts, node)
        held = {name: name for name in set(code.parameters(function)) & set(whole)}
        for one in sorted(_assigned(function), key=lambda each: each.lineno):
            source = _root(one.value)
            name = dotted(one.targets[0])
            if source in held:
                held[name] = held[source]
            else:
                held.pop(name, None)
        for call in joins:
            assert isinstance(call, ast.Call)
            place = next((at for at, part in enumerate(call.args) if at and _root(part) in held), None)
            if place is not None and (node.file, call.lineno) not in told:
                told.add((node.file, call.lineno))
                root = _root(call.args[place])
                yield _finding(facts, node, call, place, *whole[held[root or ""]])
                break


def _is_join(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func).endswith("path.join") and not node.keywords


def _assigned(function: Definition) -> list[ast.Assign]:
    return [one for one in code.own_nodes(function) if isinstance(one, ast.Assign) and len(one.targets) == 1]


def _root(node: ast.expr) -> str | None:
    """The name whose text an expression is, as it is: `path` of `path.numpy().decode("utf-8")`."""
    while isinstance(node, ast.Call):
        if (
            dotted(node.func).rpartition(".")[2] in _AS_IT_IS
            and node.args
            and not isinstance(node.args[0], ast.Constant)
        ):
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _AS_IT_IS:
            node = node.func.value
        else:
            return None
    return node.id if isinstance(node, ast.Name) else None


def _whole_paths(facts: Facts, node: Node) -> dict[str, tuple[int, int]]:
    """The inputs that were a whole path in each call: the first call, and how many there are."""
    rows = facts.reader.rows(
        "SELECT v.path, v.text, c.id FROM value v JOIN call c ON c.id = v.call WHERE c.node = ? AND c.kind = 'forward' "
        "AND v.role = 'input' AND v.dtype = 'string' ORDER BY c.id LIMIT 2000",
        (node.id,),
    )
    found: dict[str, list[tuple[str, int]]] = {}
    for path, text, call in rows:
        found.setdefault(path, []).append((str(text), call))
    return {
        path: (given[0][1], len(given)) for path, given in found.items()
        if all(_WHOLE.search(text) for text, _ in given)
    }  # fmt: skip


def _finding(facts: Facts, node: Node, call: ast.Call, place: int, first: int, count: int) -> Finding:
    text, path = pastes.text_of(facts, node.file, call), call.args[place]
    lost = ", ".join(pastes.text_of(facts, node.file, one) for one in call.args[:place])
    named = pastes.text_of(facts, node.file, path)
    name = f"{dotted(call.func).removesuffix('.join')}.basename({named})"
    often = f". It was one in all of {count:,} calls" if count > 1 else ""
    return Finding(
        NAMES[0], "warning", node.id, (first,),
        f"`{text}` is {named} itself in {facts.name(node)}: a path that begins at the root of the disk throws away "
        f"what is joined before it ({lost}){often}",
        pastes.all_replaced(facts, node.file, {path: name}),
        node.file, call.lineno, evidence=(f"call #{first}: {facts.inputs(first)}",),
    )  # fmt: skip
