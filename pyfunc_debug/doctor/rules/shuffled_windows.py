"""A shuffle in front of `window`: a window takes elements that did not follow each other in the series."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets.cached_chains import before, kind_of, method
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.nodes import tail
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding

NAMES = ("shuffled-windows",)
_STAGES = ("Cache", "Filter", "Map", "Options", "ParallelMap", "Prefetch", "Repeat", "Skip", "Take")
_METHODS = ("cache", "filter", "map", "prefetch", "repeat", "skip", "take", "with_options")
"""What may stand between the two: not what makes many elements of one, as the lines of shuffled files."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that makes such windows."""
    files = {str(loop["site"][0]) for loop in facts.meta.get("inputs") or [] if loop["site"] and _ran(loop["stages"])}
    for file in sorted(files):
        own = pastes.source(facts, file)
        for call in pastes.walk(own.tree, ast.Call):
            if method(call) != "window" or not _overlaps(own, call):
                continue
            shuffle = _shuffle(before(own, call))
            if shuffle is not None:
                yield _finding(facts, own, file, shuffle, call)


def _ran(stages: Sequence[dict[str, Any]]) -> bool:
    """Whether a loop took windows of shuffled elements: its stages are those of its dataset, the last first."""
    kinds = [kind_of(one) for one in stages]
    behind = kinds[kinds.index("Window") + 1 :] if "Window" in kinds else []
    first = next((one for one in behind if one not in _STAGES), "")
    return first.startswith("Shuffle")


def _overlaps(own: Source, call: ast.Call) -> bool:
    """Whether windows share elements, as those of a series do: others may only group what is shuffled."""
    size, shift = pastes.argument(call, 0, "size"), pastes.argument(call, 1, "shift")
    empty = shift is None or (isinstance(shift, ast.Constant) and shift.value is None)
    return size is not None and shift is not None and not empty and own.text(size) != own.text(shift)


def _shuffle(calls: Sequence[ast.Call]) -> ast.Call | None:
    """The shuffle whose elements the last of these calls gets, in the order in which they leave it."""
    behind = next((one for one in reversed(calls[:-1]) if method(one) not in _METHODS), None)
    return behind if behind is not None and method(behind) == "shuffle" else None


def _finding(facts: Facts, own: Source, file: str, shuffle: ast.Call, window: ast.Call) -> Finding:
    text, line = f"shuffle({own.arguments(shuffle)})", shuffle.end_lineno or shuffle.lineno
    return Finding(
        NAMES[0], "error", None, (),
        f"window({own.arguments(window)}) takes the elements as they leave {text} in line {line}: those in a window do "
        "not follow each other in the series, and its order is lost in them. The windows may be shuffled",
        _behind(own, file, shuffle, window) or f"{text} behind the windows, and not in front of them",
        file, window.end_lineno, evidence=tuple(
            f"line {one}: {facts.line(file, one)}" for one in dict.fromkeys((line, window.end_lineno or window.lineno))
        ),
    )  # fmt: skip


def _behind(own: Source, file: str, shuffle: ast.Call, window: ast.Call) -> str:
    """The lines with the shuffle behind what makes tensors of the windows; "" where that is not in their statement."""
    asked = own.parent(window)
    flat = own.parent(asked) if isinstance(asked, ast.Attribute) else None
    if not isinstance(flat, ast.Call) or method(flat) not in ("flat_map", "interleave"):
        return ""
    func = shuffle.func
    if isinstance(func, ast.Attribute) and tail(shuffle).lineno != func.end_lineno:
        return _line_behind(own, file, shuffle, flat)
    pieces: list[dict[ast.expr, str]] = [
        {tail(shuffle): ""}, {pastes.end_of(flat): f".shuffle({own.arguments(shuffle)})"},
    ]  # fmt: skip
    if shuffle.end_lineno == flat.end_lineno:
        pieces = [{**pieces[0], **pieces[1]}]
    edits: list[Edit | None] = []
    for group in pieces:
        first, last = min(one.lineno for one in group), max(one.end_lineno or one.lineno for one in group)
        edits.append(Edit(file, first, last, own.spliced(group, first, last)))
    return pastes.written(*edits)


def _line_behind(own: Source, file: str, shuffle: ast.Call, flat: ast.Call) -> str:
    """The same of a chain with one call a line: the shuffle's line behind that of the other call."""
    at, end = shuffle.end_lineno or 0, flat.end_lineno or 0
    alone = own.lines[at - 1].strip() == f".shuffle({own.arguments(shuffle)})"
    if not alone or len(own.lines[end - 1].rstrip().encode()) != flat.end_col_offset:
        return ""
    return pastes.written(Edit(file, at, end, (*own.lines[at:end], own.lines[at - 1])))
