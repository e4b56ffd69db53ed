"""The calls that make a dataset which is cached, and the same calls in another order."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.nodes import tail
from pyfunc_debug.doctor.failures.reading.source import Source

_HELD_OUT = ("val", "test", "eval", "dev")


def before(own: Source, call: ast.Call) -> list[ast.Call]:
    """The calls that make a dataset, up to this one: those of its chain, and of the statements above it."""
    chain: list[ast.Call] = []
    value: ast.expr = call
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        chain.insert(0, value)
        value = value.func.value
    statement = own.statement(call.lineno)
    block = own.block(statement) if statement is not None else None
    if not isinstance(value, ast.Name) or block is None or statement is None:
        return chain
    for above in reversed(block[: block.index(statement)]):
        if not isinstance(above, ast.Assign) or not isinstance(above.value, ast.Call):
            break
        if [ast.unparse(one) for one in above.targets] == [value.id]:
            return [*before(own, above.value), *chain]
    return chain


def reordered(own: Source, file: str, calls: Sequence[ast.Call], order: Sequence[ast.Call]) -> Edit | None:
    """The lines of these calls, each with the one that now has its place."""
    pieces: dict[ast.expr, str] = {}
    for place, call in zip(calls, order):
        if place is not call:
            pieces[_on_its_line(place)] = f".{method(call)}({own.arguments(call)})"
    first, last = min(one.lineno for one in pieces), max(one.end_lineno or one.lineno for one in pieces)
    return Edit(file, first, last, own.spliced(pieces, first, last))


def cached_before_shuffle(own: Source, file: str, call: ast.Call) -> Edit | None:
    """The lines of a shuffle and the maps behind it, with a cache behind the last of them, and then the shuffle.

    Args:
      own: The file.
      file: Its name.
      call: The last of these maps.
    """
    calls = before(own, call)
    places = [at for at, one in enumerate(calls) if method(one) == "shuffle"]
    behind = calls[places[-1] :] if places else []
    if not behind or any(method(one) != "map" for one in behind[1:]):
        return None
    shuffle, *maps = behind
    texts = [f".map({own.arguments(one)})" for one in maps] + [f".cache().shuffle({own.arguments(shuffle)})"]
    pieces = {_on_its_line(one): text for one, text in zip(behind, texts)}
    first, last = min(one.lineno for one in pieces), max(one.end_lineno or one.lineno for one in pieces)
    return Edit(file, first, last, own.spliced(pieces, first, last))


def _on_its_line(call: ast.Call) -> ast.expr:
    """`.batch(n)` alone, as a place in the text: a chain over several lines stays one."""
    place, func = tail(call), call.func
    if isinstance(func, ast.Attribute) and place.lineno != func.end_lineno:
        place.lineno, end = func.end_lineno or call.lineno, func.end_col_offset or 0
        place.col_offset = end - len(func.attr) - 1
    return place


def kind_of(stage: dict[str, Any]) -> str:
    """`Shuffle` of `ShuffleV3`: the kind of a stage without the version of its op."""
    return str(stage["kind"]).rstrip("V0123456789")


def cache_at(stages: Sequence[dict[str, Any]]) -> int | None:
    """The place of the cache nearest to the loop among the stages of its dataset, the last first."""
    return next((place for place, one in enumerate(stages) if one["kind"].startswith("Cache")), None)


def is_held_out(own: Source, cache: ast.Call) -> bool:
    """Whether a dataset is one to validate or test with, whose order is nothing: by its name, or what is handed it."""
    statement = own.statement(cache.lineno)
    names = [ast.unparse(one) for one in getattr(statement, "targets", ())]
    handed = {
        ast.unparse(word.value) for one in pastes.walk(own.tree, ast.Call) for word in one.keywords
        if word.arg == "validation_data"
    }  # fmt: skip
    return any(name in handed or any(word in name.lower() for word in _HELD_OUT) for name in names)


def mapped_function(own: Source, given: ast.expr) -> ast.FunctionDef | ast.Lambda | None:
    """The function that a map is given, of its file; None where it is not the only one of its name.

    A name may hold a lambda: `load = lambda path: read(path, True)`.
    """
    if isinstance(given, ast.Lambda):
        return given
    named: list[ast.FunctionDef | ast.Lambda] = [
        one for one in pastes.walk(own.tree, ast.FunctionDef) if ast.unparse(given) == one.name
    ]
    if not named and isinstance(given, ast.Name):
        held = pastes.assigned(own.tree, given.id)
        named = [one for one in held if isinstance(one, ast.Lambda)] if len(held) == 1 else []
    return named[0] if len(named) == 1 else None


def method(call: ast.Call) -> str:
    """`map` of `dataset.map(f)`; "" of a function's call."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""
