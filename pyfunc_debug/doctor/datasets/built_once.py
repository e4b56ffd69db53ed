"""A dataset that a function builds, and that a loop asks for again and again: the call, moved above the loop.

What the function reads while it builds is then read once. Where the program changes that later, the lines that read it
go into the generator, which reads it in each pass; where they cannot, there is no paste.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names
from pyfunc_debug.doctor.graphs.hoist import hoisted_edits

_YIELDS = (ast.Yield, ast.YieldFrom)
_DRAWS = re.compile(r"^(?:np\.random|numpy\.random|random|rng|tf\.random)\.|\b(?:permutation|default_rng)$")
_USED_UP = {"iter", "open", "zip", "map", "filter", "enumerate", "reversed"}
"""What is read to its end once: a dataset over it gives its elements in the first pass only."""
CHANGES = {
    "append", "extend", "insert", "pop", "popleft", "appendleft", "remove", "clear", "update", "add", "discard",
    "setdefault", "sort", "reverse", "put", "fill", "push", "store",
}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """The only call of a function that builds a dataset, where it stands in a loop.

    Attributes:
      file: The user's file.
      function: The function.
      call: Its call.
      loop: The innermost loop that makes the call again.
    """

    file: str
    function: ast.FunctionDef
    call: ast.Call
    loop: ast.For | ast.While


def call_of(facts: Facts, file: str | None, mapped: ast.Call | None) -> Call | None:
    """Where the dataset of a `map` is asked for; None where that is not a call of a function in a loop, or several are.

    Args:
      facts: The recording.
      file: The user's file.
      mapped: The call of `map`.
    """
    own = pastes.source(facts, file)
    function = next((one for one in own.around(mapped) if isinstance(one, ast.FunctionDef)), None) if mapped else None
    if file is None or function is None:
        return None
    found = [one for one in pastes.walk(own.tree, ast.Call) if dotted(one.func).rpartition(".")[2] == function.name]
    loops = [loop for one in found if (loop := innermost_loop(own, one)) is not None]
    return Call(file, function, found[0], loops[0]) if len(found) == len(loops) == 1 else None


def innermost_loop(own: Source, call: ast.Call) -> ast.For | ast.While | None:
    """The innermost loop around a call in the same function, but not the one that goes through what it gives."""
    inside: ast.AST = call
    for one in own.around(call):
        if isinstance(one, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            return None
        if isinstance(one, ast.While) or (isinstance(one, ast.For) and inside is not one.iter):
            return one
        inside = one
    return None


def once(facts: Facts, found: Call) -> str:
    """The lines that build the dataset once; "" where each pass may need one of its own."""
    own = pastes.source(facts, found.file)
    edits = hoisted_edits(facts, found.file, found.call, "dataset")
    if not edits or _differs(found.function, own):
        return ""
    moved = list(_changing(found, own))
    if moved:
        edits.append(_into_generator(found, own, moved))
    return pastes.written(*edits)


def _into_generator(found: Call, own: Source, moved: list[ast.stmt]) -> Edit | None:
    """Assignments that stand above a generator, moved into it: it then reads in each pass. or None."""
    nested = _only_reader(found.function, moved)
    start = None if nested is None else pastes.beginning(nested)
    if start is None:
        return None
    spans = [range(one.lineno, (one.end_lineno or one.lineno) + 1) for one in moved]
    first, cut = spans[0].start, indent_of(own.lines[spans[0].start - 1])
    lines = [own.lines[at - 1] for span in spans for at in span]
    if spans[-1].stop > start or not all(line.startswith(cut) for line in lines):
        return None
    kept = [own.lines[at - 1] for at in range(first, start) if not any(at in span for span in spans)]
    while kept and not kept[0].strip():
        del kept[0]
    deeper = indent_of(own.lines[start - 1])
    return Edit(found.file, first, start - 1, (*kept, *(f"{deeper}{line.removeprefix(cut)}" for line in lines)))


def words(facts: Facts, found: Call) -> str:
    """The same in words, with the names of the program, and what is read while the dataset is built."""
    own = pastes.source(facts, found.file)
    text, line = own.text(found.call), found.call.lineno
    advice = f"dataset = {text}  # once, above the loop in line {found.loop.lineno}; in line {line} use dataset"
    read = [own.text(one).split("\n")[0] for one in _changing(found, own)]
    if _differs(found.function, own):
        advice += f"; what {found.function.name} itself draws, opens or asks is then the same in each pass"
    if read:
        advice += f"; what `{read[0].strip()}` reads is then read once: read it where the elements are made"
    return advice


def _differs(function: ast.FunctionDef, own: Source) -> bool:
    """Whether a function may give another dataset each time: it draws, asks a clock, keeps state, opens a file."""
    if code.impure(function) is not None or code.state_writes(function):
        return True
    generators = {
        one.name for one in code.all_nodes(own.tree)
        if isinstance(one, ast.FunctionDef) and any(isinstance(x, _YIELDS) for x in code.own_nodes(one))
    }  # fmt: skip
    for one in code.own_nodes(function):
        if isinstance(one, ast.GeneratorExp):
            return True
        if isinstance(one, ast.Call):
            name = dotted(one.func)
            if _DRAWS.search(name) or name in _USED_UP | generators or name.endswith(".cache"):
                return True
    return False


def _changing(found: Call, own: Source) -> Iterator[ast.stmt]:
    """Statements of the function that read, while it builds a dataset, what the program changes in the loop."""
    function = found.function
    local, changed = code.local_names(function), _changed(found, own)
    attributes = {one.rpartition(".")[2] for one in changed if "." in one}
    helpers = {one.name: one for one in code.all_nodes(own.tree) if isinstance(one, ast.FunctionDef)}
    for one in function.body:
        if isinstance(one, ast.FunctionDef) and any(isinstance(x, _YIELDS) for x in code.own_nodes(one)):
            continue  # it runs in each pass
        read = set(names(one)) - local - (code.local_names(one) if isinstance(one, ast.FunctionDef) else set())
        called = [helpers[name] for name in read & set(helpers)]
        for helper in called:
            read |= set(names(helper)) - code.local_names(helper)
        owned = {x.attr for part in (one, *called) for x in ast.walk(part) if isinstance(x, ast.Attribute)}
        if read & changed or owned & attributes:
            yield one


def _changed(found: Call, own: Source) -> set[str]:
    """What the loop changes, or hands to what may change it, and what other functions change: `buffer`, `self.seen`."""
    inside = {id(part) for part in ast.walk(found.function)}
    others = [
        one for one in code.all_nodes(own.tree)
        if isinstance(one, ast.FunctionDef) and id(one) not in inside and found.call not in ast.walk(one)
    ]  # fmt: skip
    changed = {*_writes(found.loop), *_handed(found.loop)}
    for place in others:
        changed |= {one for one in _writes(place) if "." in one or one not in code.local_names(place)}
    return changed - {""}


def _writes(place: ast.AST) -> Iterator[str]:
    for one in ast.walk(place):
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, (ast.Store, ast.Del)):
            yield dotted(one)
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, (ast.Store, ast.Del)):
            yield dotted(one.value)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in CHANGES:
            yield dotted(one.func.value)


def _handed(place: ast.AST) -> Iterator[str]:
    """What a call in the loop is given."""
    for one in ast.walk(place):
        if isinstance(one, ast.Call):
            yield from (name for part in (*one.args, *(word.value for word in one.keywords)) if (name := dotted(part)))


def _only_reader(function: ast.FunctionDef, moved: list[ast.stmt]) -> ast.FunctionDef | None:
    """The one generator in a function that reads what some of its assignments make; None where others do too."""
    targets = [one.targets[0] if isinstance(one, ast.Assign) else None for one in moved]
    made = {one.id for one in targets if isinstance(one, ast.Name)}
    if not all(isinstance(one, ast.Name) for one in targets):
        return None
    readers = []
    for one in function.body:
        inside = {part.id for part in ast.walk(one) if isinstance(part, ast.Name)}
        if one not in moved and made & inside:
            readers.append(one)
    reader = readers[0] if len(readers) == 1 else None
    if not isinstance(reader, ast.FunctionDef) or not any(isinstance(x, _YIELDS) for x in code.own_nodes(reader)):
        return None
    return None if made & code.local_names(reader) else reader
