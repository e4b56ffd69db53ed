"""Which of a body's results its caller wants, where the body returns more than Tout has: by the names that both use."""

from __future__ import annotations

import ast
import json

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.results_read import result_of
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Node


def by_name(facts: Facts, node: Node, count: int, outputs: int) -> str:
    """The body's `return` lines with the results that the caller's names ask for; "" where names do not say which.

    Args:
      facts: The recording.
      node: A node whose body returned more than TensorFlow took.
      count: How many it returned.
      outputs: How many Tout has.
    """
    wanted = _wanted(facts, node, outputs)
    if not wanted:
        return ""

    def make(value: ast.expr, text: str) -> str | None:
        mapping = _mapping(value)
        if mapping is not None:
            own = pastes.text_of(facts, node.file, mapping)
            return f"[{', '.join(f'{own}[{json.dumps(key)}]' for key in wanted)}]"
        if not isinstance(value, (ast.List, ast.Tuple)) or len(value.elts) != count:
            return None
        given = {name: one for one in value.elts if (name := _last_name(one))}
        if len(given) < count or not {*wanted} <= {*given}:
            return None
        return f"[{', '.join(pastes.text_of(facts, node.file, given[name]) for name in wanted)}]"

    return pastes.returning(facts, node, make)


def takes_places(facts: Facts, node: Node, outputs: int) -> bool:
    """Whether the caller takes outputs by number, or into as many names: a longer Tout changes none of them."""
    result = result_of(facts, node)
    if result is not None and result.name is not None:
        return bool(result.reads) and all(_place(result.source, read) is not None for read in result.reads)
    return len(_targets(facts, node)) == outputs


def _last_name(value: ast.expr) -> str:
    """`mask` of `mask`, `d["mask"]`, `tf.cast(mask, tf.int32)` and `mask.astype(np.int32)`; "" of others."""
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        return str(value.slice.value)
    if isinstance(value, ast.Call):
        inside = value.args[0] if value.args and isinstance(value.args[0], (ast.Name, ast.Subscript)) else None
        own = value.func.value if isinstance(value.func, ast.Attribute) else None
        return _last_name(own) if isinstance(own, ast.Subscript) else _last_name(inside) if inside else ""
    return value.id if isinstance(value, ast.Name) else ""


def _mapping(value: ast.expr) -> ast.expr | None:
    """`d` of `list(d.values())`, `tuple(d.values())`, `[*d.values()]` and `d.values()`."""
    if isinstance(value, ast.Call) and dotted(value.func) in ("list", "tuple") and len(value.args) == 1:
        value = value.args[0]
    elif isinstance(value, (ast.List, ast.Tuple)) and len(value.elts) == 1 and isinstance(value.elts[0], ast.Starred):
        value = value.elts[0].value
    if isinstance(value, ast.Call) and not value.args and isinstance(value.func, ast.Attribute):
        return value.func.value if value.func.attr == "values" else None
    return None


def _wanted(facts: Facts, node: Node, outputs: int) -> list[str]:
    """What the caller calls each output; empty where one has no name, or two."""
    result = result_of(facts, node)
    if result is not None and result.name is not None:
        named: dict[int, set[str]] = {}
        for read in result.reads:
            place = _place(result.source, read)
            if place is None:
                return []
            position, whole = place
            named.setdefault(position, set()).add(_called(result.source, whole))
        names = [named.get(position, set()) for position in range(outputs)]
        return [name for (name,) in names if name] if all(len(one) == 1 and "" not in one for one in names) else []
    return _unpacked(facts, node, outputs)


def _place(source: Source, read: ast.Name) -> tuple[int, ast.Subscript] | None:
    """The number in `result[1]`, and that expression."""
    whole = source.parent(read)
    number = whole.slice if isinstance(whole, ast.Subscript) and whole.value is read else None
    if isinstance(whole, ast.Subscript) and isinstance(number, ast.Constant) and type(number.value) is int:
        return number.value, whole
    return None


def _called(source: Source, value: ast.expr) -> str:
    """`mask` in `mask = result[1]`, `{"mask": result[1]}`, `dict(mask=result[1])` and `x["mask"] = result[1]`."""
    holder = source.parent(value)
    if isinstance(holder, ast.Dict):
        return next((_text(key) for key, one in zip(holder.keys, holder.values) if one is value), "")
    if isinstance(holder, ast.keyword):
        return holder.arg or ""
    if isinstance(holder, ast.Assign) and len(holder.targets) == 1:
        target = holder.targets[0]
        return _text(target.slice) if isinstance(target, ast.Subscript) else _last_name(target)
    return ""


def _text(value: ast.AST | None) -> str:
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _unpacked(facts: Facts, node: Node, outputs: int) -> list[str]:
    """The names in `ids, mask = tf.py_function(...)`."""
    names = [one.id for one in _targets(facts, node) if isinstance(one, ast.Name) and one.id != "_"]
    return names if len({*names}) == outputs else []


def _targets(facts: Facts, node: Node) -> list[ast.expr]:
    """What the statement of a node unpacks its outputs into."""
    found = pastes.call_of(facts, node)
    statement = pastes.source(facts, found[0]).parent(found[1]) if found is not None else None
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    return target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
