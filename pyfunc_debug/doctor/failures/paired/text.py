"""What stands for the user's expressions: candidates filled with their parts, and put together again."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.paired import ops as paired_ops
from pyfunc_debug.doctor.failures.paired.ops import AS_IT_IS
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.program import syntax
from pyfunc_debug.program.syntax import copied


@dataclass(frozen=True)
class Text:
    """What stands for an expression: a candidate, its tree with `_0`, `_1` for the parts, and the parts."""

    template: str
    tree: ast.expr
    children: tuple[ast.expr, ...] = ()


@dataclass
class Found:
    """What stands for the user's expressions and statements, arrays that become lists, and what was drawn at first."""

    texts: dict[ast.expr, Text] = dataclasses.field(default_factory=dict)
    statements: dict[ast.stmt, list[str]] = dataclasses.field(default_factory=dict)
    lists: set[ast.Call] = dataclasses.field(default_factory=set)
    draws: dict[ast.Call, Any] = dataclasses.field(default_factory=dict)


def with_names(node: ast.expr, children: list[ast.expr]) -> ast.expr:
    """An operator on `_0`, `_1` and so on."""
    names = {id(one): ast.Name(f"_{place}", ast.Load()) for place, one in enumerate(children)}

    def put(value: Any) -> Any:
        return [names.get(id(one), one) for one in value] if isinstance(value, list) else names.get(id(value), value)

    return type(node)(**{field: put(value) for field, value in ast.iter_fields(node)})


def of_operator(node: ast.expr) -> tuple[str, ...]:
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.MatMult):
            return (AS_IT_IS, *paired_ops.of_numpy("matmul"))
        sign = ast.unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b")))[1:-1].strip()
        return (
            AS_IT_IS, f"{{0}} {sign} tf.cast({{1}}, {{0}}.dtype)", f"tf.cast({{0}}, {{1}}.dtype) {sign} {{1}}",
        )  # fmt: skip
    if isinstance(node, ast.Subscript):
        return AS_IT_IS, "tf.gather({0}, {1})", "tf.boolean_mask({0}, {1})", "tf.stack({0})[{1}]", *(
            ("tf.gather_nd({0}, tf.stack({1}, axis=-1))",) if isinstance(node.slice, ast.Tuple) else ()
        )  # fmt: skip
    return (AS_IT_IS,)


def filled(template: str, made: ast.expr, tf: str) -> ast.expr | None:
    """A candidate with the arguments of a call; None where it asks for one that is not there."""
    given: list[str] = []
    keys: dict[str, str] = {}
    if isinstance(made, ast.Call):
        by_method = isinstance(made.func, ast.Attribute) and dotted(made.func.value) == "_0"
        given = ["_0"] * by_method + [ast.unparse(one) for one in made.args]
        keys = {str(one.arg): ast.unparse(one.value) for one in made.keywords}
    else:
        given = sorted({one.id for one in ast.walk(made) if isinstance(one, ast.Name)})
    named = {"loc": 1, "scale": 2, "mu": 1, "p": 1}
    places = {key: keys.get(key, given[place] if len(given) > place else None) for key, place in named.items()}
    extra = {
        "*": ", ".join([*given, *(f"{key}={one}" for key, one in keys.items())]), "REST": ", ".join(given[1:]),
        "FLOAT": "tf.float32", "SCALE": places["scale"], "MU": places["mu"], "P": places["p"],
        "Z": _standard(given, places["loc"], places["scale"]),
    }  # fmt: skip
    text = template
    for key in re.findall(r"\{([\w*]+)\}", template):
        value = given[int(key)] if key.isdigit() and int(key) < len(given) else extra.get(key, keys.get(key))
        if value is None:
            return None
        text = text.replace(f"{{{key}}}", value)
    return syntax.expression(re.sub(r"\btf\.", f"{tf}.", text))


def _standard(given: list[str], loc: str | None, scale: str | None) -> str | None:
    """`(x - loc) / scale`, as far as these are given."""
    text = given[0] if given else ""
    text = text if loc in (None, "0", "0.0") else f"({text} - {loc})"
    return (text if scale in (None, "1", "1.0") else f"({text} / {scale})") or None


def placed(node: Any, texts: Mapping[ast.expr, Text]) -> Any:
    """An expression with the text that was found for it and for its parts."""
    found = texts.get(node) if isinstance(node, ast.AST) else None  # type: ignore[call-overload]
    if found is not None and found.template != AS_IT_IS:
        return _Put([placed(one, texts) for one in found.children]).visit(copied(found.tree))
    if isinstance(node, list):
        return [placed(one, texts) for one in node]
    if not isinstance(node, ast.AST):
        return node
    return type(node)(**{field: placed(value, texts) for field, value in ast.iter_fields(node)})


class _Put(ast.NodeTransformer):
    """Puts expressions in the place of `_0`, `_1`."""

    def __init__(self, parts: list[ast.expr]) -> None:
        self._parts = parts

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copied(self._parts[int(node.id[1:])]) if re.fullmatch(r"_\d+", node.id) else node
