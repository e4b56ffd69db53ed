"""A generator that gives one batch for ever: its counter begins again each time, or it reads no index."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, indent_of, names
from pyfunc_debug.doctor.generators.batches import Batches, Seen

_LONGEST = 24
_DRAWS = re.compile(r"random\.(?:randint|choice|permutation|sample|choices|rand|integers)|rng\.\w+\(")


def of_counter(facts: Facts, batches: Batches) -> Seen | None:
    """`i = 0` inside `while True`, or a test that always sets it back."""
    if len(batches.yields) != 1 or not batches.all_same():
        return None
    own, statement = pastes.source(facts, batches.file), batches.yields[0]
    loop = next((one for one in own.around(statement) if isinstance(one, ast.While)), None)
    if loop is None or statement not in loop.body or not isinstance(statement, ast.stmt):
        return None
    place = loop.body.index(statement)
    read = _read(loop.body[: place + 1])
    counted = {
        one.target.id for part in loop.body for one in ast.walk(part)
        if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name) and one.target.id in read
    }  # fmt: skip
    resets = [one for one in loop.body[:place] if isinstance(one, ast.Assign) and _begins(one, counted)]
    sizes = _of_tuples(batches.function)
    if not resets and not (counted and sizes):
        return None
    message = f"all {len(batches.each):,} batches that {batches.function.name} gave were the same"
    if resets:
        name, line = ast.unparse(resets[0].targets[0]), resets[0].lineno
        message += f": line {line} sets {name} to {ast.unparse(resets[0].value)} in each turn of `while`"
    if sizes:
        call, count = next(iter(sizes.items()))
        told = "and " if resets else ": "
        message += (
            f"{', ' if resets else ''}{told}`{own.text(call)}` is {count}, the number of arrays, not that of rows"
        )
    fix = _moved(own, batches.file, loop, resets, sizes)
    return Seen(
        message, fix or f"{own.text(resets[0])}  # above the loop", resets[0].lineno if resets else statement.lineno
    )


def _begins(statement: ast.Assign, counted: set[str]) -> bool:
    """`i = 0` of a counter."""
    targets = [ast.unparse(one) for one in statement.targets]
    return isinstance(statement.value, ast.Constant) and len(targets) == 1 and targets[0] in counted


def _moved(own: Source, file: str, loop: ast.While, resets: list[ast.Assign], sizes: dict[ast.Call, int]) -> str:
    """The loop with what begins a counter above it, and the number of rows where that of arrays stands."""
    edits: list[Edit | None] = []
    for call in sizes:
        line, end = own.lines[call.lineno - 1], call.end_col_offset or 0
        edits.append(Edit(file, call.lineno, call.lineno, (f"{line[: end - 1]}[0]{line[end - 1 :]}",)))
    if resets:
        last = max(one.end_lineno or one.lineno for one in resets)
        gone = {one.lineno for one in resets}
        if last - loop.lineno > _LONGEST or any(one.lineno != one.end_lineno for one in resets):
            return ""
        indent = indent_of(own.lines[loop.lineno - 1])
        above = [indent + own.lines[number - 1].strip() for number in sorted(gone)]
        kept = [own.lines[number - 1] for number in range(loop.lineno, last + 1) if number not in gone]
        edits.append(Edit(file, loop.lineno, last, (*above, *kept)))
        edits += [_wrapped(own, file, loop, one) for one in resets if not _set_elsewhere(loop, one)]
    return pastes.written(*edits)


def _set_elsewhere(loop: ast.While, reset: ast.Assign) -> bool:
    """Whether another line of the loop sets a counter, as where it is at the end of the data."""
    name = ast.unparse(reset.targets[0])
    inside = [part for one in loop.body for part in ast.walk(one)]
    return any(isinstance(one, ast.Assign) and one is not reset and name in code.stored_names(one) for one in inside)


def _wrapped(own: Source, file: str, loop: ast.While, reset: ast.Assign) -> Edit | None:
    """What begins a counter again at the end of the data, behind its step; None where that cannot be told."""
    name = ast.unparse(reset.targets[0])
    inside = [part for one in loop.body for part in ast.walk(one)]
    steps = [one for one in loop.body if isinstance(one, ast.AugAssign) and ast.unparse(one.target) == name]
    slices = [
        one for one in inside
        if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Slice) and one.slice.upper is not None
        and name in names(one.slice.upper)
    ]  # fmt: skip
    if len(steps) != 1 or not slices or not isinstance(slices[0].slice, ast.Slice) or slices[0].slice.upper is None:
        return None
    indent = indent_of(own.lines[steps[0].lineno - 1])
    test = f"if {own.text(slices[0].slice.upper)} > len({own.text(slices[0].value)}):"
    return pastes.behind(file, steps[0], test, f"    {own.text(reset)}") if indent.strip() == "" else None


def _of_tuples(function: ast.FunctionDef) -> dict[ast.Call, int]:
    """`len(dataset)`, alone in an assignment, of a name that is a tuple of arrays, which are read as `dataset[0]`."""
    own = list(code.own_nodes(function))
    made: dict[str, list[ast.expr]] = {}
    for one in own:
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            made.setdefault(one.targets[0].id, []).append(one.value)
    tuples = {
        name: len(values[0].elts) for name, values in made.items()
        if values and isinstance(values[0], ast.Tuple) and all(
            isinstance(one, ast.Tuple) and all(isinstance(part, ast.Name) for part in one.elts) for one in values
        )
    }  # fmt: skip
    return {
        one.value: tuples[name] for one in own
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and ast.unparse(one.value.func) == "len"
        and (name := ast.unparse(one.value.args[0])) in tuples
    }  # fmt: skip


def of_draw(facts: Facts, batches: Batches) -> Seen | None:
    """Rows that are drawn once, above `while True`, and taken in each turn of it."""
    own = pastes.source(facts, batches.file)
    loops = [one for one in batches.function.body if isinstance(one, ast.While)]
    if len(batches.yields) != 1 or len(loops) != 1 or not batches.all_same():
        return None
    above = batches.function.body[: batches.function.body.index(loops[0])]
    read = {one.id for one in pastes.walk(loops[0], ast.Name)}
    stored = code.stored_names(loops[0])
    drawn = [
        one for one in above
        if isinstance(one, ast.Assign) and _DRAWS.search(ast.unparse(one.value))
        and code.stored_names(one) & read - stored
    ]  # fmt: skip
    if len(drawn) != 1 or batches.yields[0] not in ast.walk(loops[0]):
        return None
    statement, first = drawn[0], loops[0].body[0]
    lines = [own.lines[number - 1] for number in range(loops[0].lineno, first.lineno)]
    gone = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    kept = [own.lines[number - 1] for number in range(statement.lineno, loops[0].lineno) if number not in gone]
    indent = indent_of(own.lines[first.lineno - 1])
    moved = [indent + own.lines[number - 1].strip() for number in gone]
    fix = pastes.written(Edit(batches.file, statement.lineno, first.lineno - 1, (*kept, *lines, *moved)))
    return Seen(
        f"all {len(batches.each):,} batches that {batches.function.name} gave were the same: line {statement.lineno} "
        f"draws once, above `while`, and each turn takes the same rows",
        fix, statement.lineno,
    )  # fmt: skip


def of_index(facts: Facts, batches: Batches) -> Seen | None:
    """`__getitem__(self, index)` that never reads its index: `self.x[: self.batch_size]`."""
    function = batches.function
    given = code.parameters(function)
    if function.name != "__getitem__" or len(given) < 2 or not batches.all_same():
        return None
    index = given[1]
    if index in {one.id for one in pastes.walk(function, ast.Name)}:
        return None
    own = pastes.source(facts, batches.file)
    pieces: dict[ast.expr, str] = {}
    for one in pastes.walk(function, ast.Slice):
        if one.lower is None and one.step is None and isinstance(one.upper, (ast.Name, ast.Attribute, ast.Constant)):
            size = own.text(one.upper)
            pieces[one] = f"{index} * {size} : ({index} + 1) * {size}"
    return Seen(
        f"all {len(batches.each):,} batches that __getitem__ gave were the same: it never reads {index}, the number of "
        "the batch that it is asked for",
        (pastes.all_replaced(facts, batches.file, pieces) if pieces else "")
        or f"read {index} in __getitem__: the rows from {index} * batch_size on",
        function.lineno,
    )


def _read(body: list[ast.stmt]) -> set[str]:
    """The names that the last of some statements reads, and those that these are made of."""
    last = body[-1]
    found = set(names(last.value)) if isinstance(last, (ast.Expr, ast.Assign)) else set()
    for one in reversed(body[:-1]):
        if isinstance(one, ast.Assign) and code.stored_names(one) & found:
            found |= set(names(one.value))
    return found
