"""A dataset that is mapped before it is batched, where a body that takes one example was given a batch."""

from __future__ import annotations

import ast
import json

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import Node
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names
from pyfunc_debug.doctor.failures.reading.symbols import calls

_FOLDER = "image_dataset_from_directory"
_DEEPEST = 6


def mapped_first(node: Node, situation: Situation) -> tuple[str, Edit] | None:
    """What makes the batches, and the lines with the map before it; None where none stand before the map."""
    call, source = _map_of(node), node.source
    made = _batching(source) if call is not None else None
    if call is None or made is None or node.site is None:
        return None
    assert isinstance(call.func, ast.Attribute)
    before = call.func.value
    if not _is_batched(before, source, 0):
        return None
    said, size = made
    edit = _statements(node.site[0], source, call)
    if edit is None:
        if _is_batch(before):
            text = swapped(source, call)[1]
        else:
            text, whole = source.text(before), source.text(call)
            text = f"{text}.unbatch(){whole[len(text) :]}.batch({size or _largest(node, situation)})"
        edit = edit_of(node.site[0], source.replaced({call: text}))
    return None if edit is None else (said, edit)


def with_unbatch(node: Node) -> tuple[str, Edit] | None:
    """What makes the batches, and the map with `unbatch()` before it; None where none stand before the map."""
    call, source = _map_of(node), node.source
    made = _batching(source) if call is not None else None
    if call is None or made is None or node.site is None:
        return None
    assert isinstance(call.func, ast.Attribute)
    before = call.func.value
    if not _is_batched(before, source, 0):
        return None
    edit = edit_of(node.site[0], source.replaced({before: f"{source.text(before)}.unbatch()"}))
    return None if edit is None else (made[0], edit)


def swapped(source: Source, mapped: ast.Call) -> tuple[str, str]:
    """The call of batch in `ds.batch(2).map(f)`, `batch(2)`, and the chain with the map before it."""
    batched = mapped.func.value  # type: ignore[attr-defined]
    inner, whole = source.text(batched.func.value), source.text(batched)
    batch, tail = whole[len(inner) :].lstrip(), source.text(mapped)[len(whole) :].lstrip()
    return batch.lstrip("."), f"{inner}{tail}{batch}"


def _is_batch(one: ast.expr) -> bool:
    return isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "batch"


def _is_batched(one: ast.expr, source: Source, depth: int) -> bool:
    """Whether a dataset may be one of batches, as the text makes it: False where it begins with examples."""
    if _is_batch(one):
        return True
    if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
        if one.func.attr in (_FOLDER, "unbatch") or "Dataset" in dotted(one.func):
            return one.func.attr == _FOLDER
        return _is_batched(one.func.value, source, depth)
    if isinstance(one, ast.Name) and depth < _DEEPEST:
        own = [each for each in ast.walk(source.tree) if isinstance(each, ast.Assign) and each.lineno < one.lineno]
        made = [each for each in own if any(one.id in names(target) for target in each.targets)]
        last = max(made, key=lambda each: each.lineno, default=None)
        return last is None or _is_batched(last.value, source, depth + 1)
    return True


def _statements(file: str, source: Source, call: ast.Call) -> Edit | None:
    """`ds = ds.batch(2)` and `ds = ds.map(f)` below it, the other way round; None where they are written otherwise."""
    mapped = source.parent(call)
    block = source.block(mapped) if isinstance(mapped, ast.Assign) else None
    place = block.index(mapped) if block is not None and isinstance(mapped, ast.Assign) else 0
    batched = block[place - 1] if block is not None and place else None
    if not isinstance(mapped, ast.Assign) or not isinstance(batched, ast.Assign) or not _is_batch(batched.value):
        return None
    receivers = [one.func.value for one in (batched.value, call)]  # type: ignore[attr-defined]
    every = [*batched.targets, *mapped.targets, *receivers]
    if len(every) != 4 or len({one.id if isinstance(one, ast.Name) else one for one in every}) > 1:
        return None
    first, last = source.span(batched), source.span(mapped)
    lines = [source.lines[begin - 1 : end] for begin, end in (last, first)]
    return Edit(file, first[0], last[1], (*lines[0], *lines[1]))


def _largest(node: Node, situation: Situation) -> int:
    """How many examples the largest batch had: the last one of a dataset may have fewer."""
    rows = situation.rows(
        "SELECT v.shape FROM value v JOIN call c ON c.id = v.call WHERE v.role = 'input' AND c.node = ?", (node.id,)
    )
    shapes = [json.loads(text) for (text,) in rows if text]
    return max(int(one[0]) for one in shapes if one)


def _map_of(node: Node) -> ast.Call | None:
    """The one `ds.map(f)` whose function calls py_function."""
    call, source = node.call(), node.source
    nodes = [] if call is None else source.around(call)
    around = [one for one in nodes if isinstance(one, (ast.FunctionDef, ast.Lambda))]
    called = {one.name for one in around if isinstance(one, ast.FunctionDef)}
    for one in ast.walk(source.tree):  # augment = partial(process, size=24)
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and called & set(names(one.value)):
            called |= {target.id for target in one.targets if isinstance(target, ast.Name)}
    found = [
        one for one in calls(source.tree)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "map" and one.args
        and (one.args[0] in around or called & set(names(one.args[0])))
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _batching(source: Source) -> tuple[str, str] | None:
    """What makes batches in a file, `batch(4)`, and the text of the size where the file says it in one place only."""
    made = [one for one in calls(source.tree) if _is_batch(one)]
    if len(made) == 1 and made[0].args:
        size = made[0].args[0]
        known = isinstance(size, ast.Constant) or _is_of_module(size, source)
        return f"batch({source.text(size)})", source.text(size) if known else ""
    if made:
        return "batch", ""
    read = any(isinstance(one.func, ast.Attribute) and one.func.attr == _FOLDER for one in calls(source.tree))
    return (_FOLDER, "") if read else None


def _is_of_module(size: ast.expr, source: Source) -> bool:
    """Whether a name is assigned at the top of the file."""
    assigned = [one for one in source.tree.body if isinstance(one, ast.Assign)]
    return isinstance(size, ast.Name) and any(size.id in names(target) for one in assigned for target in one.targets)
