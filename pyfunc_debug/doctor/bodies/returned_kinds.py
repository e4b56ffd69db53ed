"""What bodies returned, kind by kind, and the words of findings about it: several rules read these."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Calls, Facts
from pyfunc_debug.records import Finding, Node

CONTRACT = "output-contract"
NUMBERS = {
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex64", "complex128",
}  # fmt: skip
"""Dtypes that NumPy knows by the same name."""
_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16")
_TAKES = {"int": _WHOLE, "float": ("float32", "float64"), "bool": ("bool",)}
"""The dtypes that Python's own numbers become without loss: what is declared stays."""
_PYTHON = {"float": "float32", "int": "int64", "bool": "bool", "str": "string", "bytes": "string"}


@dataclass(frozen=True)
class Kind:
    """A row of the table `returned`, together with its node."""

    node: Node
    shown: str
    count: int | None
    declared: list[str] | None
    dtypes: list[str | None]
    calls: int
    first: int
    sampled: int
    convert_ns: int
    casts: list[dict[str, Any]]


def by_body(facts: Facts) -> Iterator[list[Kind]]:
    """The kinds of what each body of the user's returned, a body and way of calling it at a time."""
    if not facts.has("returned"):
        return
    bodies: dict[tuple[str, str | None, int | None, str], list[Kind]] = {}
    for number, *rest in facts.reader.rows(
        "SELECT r.node, r.shown, r.count, r.declared, r.dtypes, r.calls, r.first, r.sampled, r.convert_ns, r.casts "
        "FROM returned r JOIN node n ON n.id = r.node WHERE n.origin = 'user' ORDER BY r.id"
    ):
        shown, count, declared, dtypes, calls, first, sampled, took, casts = rest
        node = facts.nodes[number]
        kind = Kind(
            node, shown, count, json.loads(declared) if declared else None, json.loads(dtypes), calls, first, sampled,
            took, json.loads(casts),
        )  # fmt: skip
        bodies.setdefault((node.body, node.file, node.line, node.kind), []).append(kind)
    yield from bodies.values()


def finding(
    facts: Facts, kinds: list[Kind], severity: Any, message: str, fix: str, evidence: tuple[str, ...],
    rule: str = CONTRACT, call: int | None = None,
) -> Finding:  # fmt: skip
    node = kinds[0].node
    site = facts.site(node.id)
    line = site.line if site is not None else node.line
    return Finding(
        rule, severity, node.id, (call or kinds[0].first,), message, fix, site.file if site is not None else node.file,
        line, several(kind.node.id for kind in kinds), evidence,
    )  # fmt: skip


def all_calls(facts: Facts, kinds: list[Kind]) -> Calls:
    """All calls of their nodes: not each was looked at."""
    return facts.calls_of({kind.node.id: kind.node for kind in kinds}.values())


def of_calls(facts: Facts, kinds: list[Kind]) -> str:
    """In how many calls: `, in 4 calls`, or of those looked at."""
    looked, every = sum(kind.calls for kind in kinds), all_calls(facts, kinds).count
    if looked >= every:
        return ", once" if looked == 1 else f", in {looked:,} calls"
    return f", in {looked:,} of the calls that were looked at ({every:,} were made)"


def fitting_tout(kind: Kind) -> list[str]:
    """The dtypes that fit, as they are written; those that are not known as they are declared."""
    inside = kind.shown.partition(": ")[2].split(", ") if ":" in kind.shown else []
    declared = kind.declared or ["float32"]
    found = []
    for position in range(kind.count or 1):
        own = kind.dtypes[position] if position < len(kind.dtypes) else None
        word = inside[position] if position < len(inside) else kind.shown.rpartition(" ")[2]
        if own is None and position < len(declared) and declared[position] in _TAKES.get(word, ()):
            own = declared[position]
        own = own or (word.removesuffix(" tensor") if word.endswith(" tensor") else None)
        found.append(f"tf.{own or _PYTHON.get(word) or declared[min(position, len(declared) - 1)]}")
    return found


def declaring(facts: Facts, node: Node, tout: str) -> str:
    """The call with the Tout that fits."""
    return pastes.with_tout(facts, node, tout) or f"tf.{node.kind}({facts.name(node)}, ..., Tout={tout})"


def one_array(facts: Facts, node: Node, dtype: str) -> str:
    """The body's `return` lines with one array of a dtype; "" where that cannot be said in whole lines."""
    if dtype not in NUMBERS:
        return ""
    return pastes.returning(facts, node, lambda _, text: as_array(facts, node, text, dtype))


def as_array(facts: Facts, node: Node, text: str, dtype: str) -> str:
    """An expression as an array, in the words of the body's file."""
    numpy = pastes.module(facts, node.file, "numpy")
    if numpy is None and node.kind == "py_function":
        tf = pastes.module(facts, node.file, "tensorflow") or "tf"
        return f"{tf}.cast({text}, {tf}.{dtype})"
    numpy = numpy or "np"
    return f"{numpy}.asarray({text}, {'bool' if dtype == 'bool' else f'{numpy}.{dtype}'})"


def last_value(facts: Facts, node: Node) -> str:
    """What the body's last `return` returns, as it is written."""
    values = [
        one.value
        for _, one in facts.statements(node)
        if isinstance(one, (ast.Return, ast.Expr)) and one.value is not None
    ]
    return ast.unparse(values[-1]) if values else "values"
