"""The `skip` or `shard` behind a `map` as text, and the same dataset with it before the map."""

from __future__ import annotations

import ast
import math
import re

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets.cached_chains import method
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source

LONG = 60
_PASSED = ("batch", "map", "padded_batch", "prefetch")
"""Calls that a skip may stand before as well as behind."""
_ORDERS = re.compile(r"shuffle|list_files|sample_from|random|iter\(")
"""Made a second time these give other elements."""
_SOURCES = re.compile(r"[\w.]*\bDataset\.(?:range|from_tensor_slices)\(|[\w.]*\b(?:TFRecord|TextLine)Dataset\(")


def cut_at(facts: Facts, word: str, count: int, mapped: ast.Call | None) -> tuple[str, ast.Call] | None:
    """The file and the call of the skip or shard of this count: the only one, or the only one seen behind its map.

    Args:
      facts: The recording.
      word: "skip" or "shard".
      count: What it was given first.
      mapped: The map whose body runs before it, if that is known.
    """
    found = [
        (file, call) for file in facts.files for call in pastes.walk(facts.tree(file), ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr == word and _may_be(call, count)
    ]  # fmt: skip
    if len(found) > 1 and mapped is not None:
        found = [(file, call) for file, call in found if _is_behind(pastes.source(facts, file), call, mapped)]
    return found[0] if len(found) == 1 else None


def _is_behind(own: Source, call: ast.Call, mapped: ast.Call) -> bool:
    chain = _chain(own, call)
    return chain is not None and any(_place(one) == _place(mapped) for one in chain[1])


def _may_be(call: ast.Call, count: int) -> bool:
    given = [*call.args, *(one.value for one in call.keywords)]
    return bool(given) and (not isinstance(given[0], ast.Constant) or given[0].value == count)


def moved(facts: Facts, file: str, call: ast.Call, mapped: ast.Call) -> str:
    """The call with all maps and batches of its dataset behind it; "" where it is not sure what is before them.

    Args:
      facts: The recording.
      file: The file of both calls.
      call: The skip or shard.
      mapped: The map whose body runs before it.
    """
    own = pastes.source(facts, file)
    chain = _chain(own, call)
    if chain is None or not any(_place(one) == _place(mapped) for one in chain[1]):
        return ""
    base, calls = chain
    assert isinstance(call.func, ast.Attribute)
    sizes = [_size(one) for one in calls if method(one).endswith("batch")]
    given = own.arguments(call)
    if call.func.attr == "skip":
        if None in sizes or len(call.args) + len(call.keywords) != 1:
            return ""
        given = _product(own, [call.args[0] if call.args else call.keywords[0].value, *filter(None, sizes)])
    elif sizes:
        return ""  # batches of other elements
    behind = "".join(f".{method(one)}({own.arguments(one)})" for one in calls)
    return pastes.written(pastes.replaced(facts, file, {call: f"{base}.{call.func.attr}({given}){behind}"}))


def _chain(own: Source, call: ast.Call) -> tuple[str, list[ast.Call]] | None:
    """The text of what the first map is given, and the calls from it on: of this chain and of assignments above it."""
    statement = own.statement(call.lineno)
    block = own.block(statement) if statement is not None else None
    if statement is None or block is None or not isinstance(call.func, ast.Attribute):
        return None
    calls: list[ast.Call] = []
    value: ast.expr = call.func.value
    first = last = block.index(statement)
    while True:
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and method(value) in _PASSED:
            calls.insert(0, value)
            value = value.func.value
        if not isinstance(value, ast.Name):
            break
        name = value.id
        if any(method(one) == "map" for one in calls) and not _changes(block[first:last], {name}):
            break  # it is the same at the skip
        above = next((place for place in reversed(range(first)) if name in code.stored_names(block[place])), None)
        made = None if above is None else block[above]
        if above is None or not isinstance(made, ast.Assign) or [ast.unparse(one) for one in made.targets] != [name]:
            return None
        first, value = above, made.value
    base = own.text(value)
    if not any(method(one) == "map" for one in calls) or (first < last and not _is_same_again(value, base)):
        return None
    read = {one.id for part in (value, *calls) for one in _names(part)}
    return None if _changes(block[first:last], read - _own(calls)) else (base, calls)


def _own(calls: list[ast.Call]) -> set[str]:
    """The names that a chain's calls are asked of: their values are in the chain."""
    return {
        one.func.value.id
        for one in calls
        if isinstance(one.func, ast.Attribute) and isinstance(one.func.value, ast.Name)
    }


def _names(part: ast.expr) -> list[ast.Name]:
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and method(part) in _PASSED:
        given = [*part.args, *(one.value for one in part.keywords)]
        return [name for one in given for name in pastes.walk(one, ast.Name)]
    return list(pastes.walk(part, ast.Name))


def _is_same_again(value: ast.expr, text: str) -> bool:
    """Whether what the first map is given has the same elements where it is made or read once more."""
    return isinstance(value, ast.Name) or bool(_SOURCES.match(text) and not _ORDERS.search(text))


def _changes(statements: list[ast.stmt], names: set[str]) -> bool:
    return any(names & code.stored_names(one) for one in statements)


def _place(call: ast.Call) -> tuple[int | None, int | None]:
    """Where a call ends: all calls of a chain begin at one place."""
    return call.end_lineno, call.end_col_offset


def _size(call: ast.Call) -> ast.expr | None:
    """The size that a batch is given."""
    named = [one.value for one in call.keywords if one.arg == "batch_size"]
    return call.args[0] if call.args else named[0] if named else None


def _product(own: Source, factors: list[ast.expr]) -> str:
    """`16 * batch_size`; one number where all are numbers."""
    numbers = [one.value for one in factors if isinstance(one, ast.Constant) and isinstance(one.value, int)]
    if len(numbers) == len(factors):
        return str(math.prod(numbers))
    return own.text(factors[0]) if len(factors) == 1 else " * ".join(own.operand(one) for one in factors)
