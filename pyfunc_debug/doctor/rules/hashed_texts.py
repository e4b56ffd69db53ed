"""`hash(word)` as a number: Python hashes texts and bytes otherwise in each run of a program."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.run_functions import called_by
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("hashed-text",)
_KEYS = ("add", "get", "setdefault", "discard", "remove")
"""Methods for which a hash is a key of this run."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line of a body or a generator that returns numbers of it."""
    if facts.meta.get("hash_seed"):
        return
    told: set[tuple[str, int]] = set()
    nodes = [one for one in facts.nodes.values() if one.origin == "user" or facts.is_generator(one)]
    for node in nodes:
        function = facts.function(node)
        if function is None or node.file is None or not facts.calls(node.id).count:
            continue
        own = pastes.source(facts, node.file)
        every = [function, *called_by(own.tree, function)]
        for call in (part for one in every for part in code.own_nodes(one) if isinstance(part, ast.Call)):
            if ast.unparse(call.func) != "hash" or len(call.args) != 1 or (node.file, call.lineno) in told:
                continue
            if not _is_number(own.parent(call)) or not _is_text(facts, node.id, call.args[0]):
                continue
            told.add((node.file, call.lineno))
            text = own.text(call.args[0])
            new = f"zlib.crc32({text} if isinstance({text}, bytes) else {text}.encode())"
            yield Finding(
                NAMES[0], "warning", node.id, (),
                f"{facts.name(node)} makes numbers of {own.text(call)}, and Python hashes texts and bytes otherwise in "
                "each run: a model that is saved knows the numbers of this run only",
                pastes.written(pastes.replaced(facts, node.file, {call: new})) or new, node.file, call.lineno,
                evidence=(f"line {call.lineno}: {facts.line(node.file, call.lineno)}",), confidence="likely",
            )  # fmt: skip


def _is_number(parent: ast.AST | None) -> bool:
    """Whether a hash is computed with, or goes into an array: not one that is only compared, or a key."""
    if isinstance(parent, (ast.BinOp, ast.List, ast.ListComp, ast.Return, ast.Tuple)):
        return True
    return isinstance(parent, ast.Call) and pastes.last_name(parent.func) not in _KEYS


def _is_text(facts: Facts, node: int, given: ast.expr) -> bool:
    """Whether what is hashed comes from texts: the node was given strings, or the source says so."""
    strings = facts.reader.rows(
        "SELECT 1 FROM value v JOIN call c ON c.id = v.call WHERE c.node = ? AND v.role = 'input' AND v.dtype = "
        "'string' LIMIT 1",
        (node,),
    )
    said = any(
        isinstance(one, ast.Call) and pastes.last_name(one.func) in ("decode", "str", "lower", "strip", "split")
        for one in ast.walk(given)
    )
    return bool(strings) or said
