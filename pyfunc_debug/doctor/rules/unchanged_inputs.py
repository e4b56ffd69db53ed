"""Bodies that draw random numbers and gave back each input as it was: what they drew went nowhere.

Said where the results of all recorded calls are the inputs, number by number, and where the source tells why.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding, Node

NAMES = ("unchanged-input",)
_Def = ast.FunctionDef | ast.AsyncFunctionDef
_LEAST_CALLS = 16
_DRAWS = re.compile(r"\b(?:random|rng|rand|randint)\b")
_ELSE = re.compile(r"\bsleep\(|\bprint\(|\braise\b|\blogg|\byield\b|\bassert\b|\.append\(")
"""What a body may draw numbers for, beside its result."""
_NUMBERS = re.compile(r"\b(?:len|mean|std|sum|min|max|print|int|float|str|time|any|all)\(")
"""What makes a number of an array, as one looks at while debugging."""
_MEASURES = ("shape", "dtype", "ndim", "size")
_COPIES = ("copy", "array", "astype", "deepcopy")
_SAME_DTYPE = ("flip", "fliplr", "flipud", "rot90", "roll", "copy", "transpose")


@dataclass(frozen=True)
class _Why:
    """Where what was drawn is lost, in words that follow a comma; and a paste."""

    words: str
    line: int
    fix: str


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    for group in facts.lines:
        node, function = group[0], facts.function(group[0])
        if function is None or isinstance(function, ast.Lambda) or node.file is None or len(node.tout) != 1:
            continue
        text = "\n".join(line for _, line in facts.body(node))
        own = pastes.source(facts, node.file)
        draws = bool(_DRAWS.search(text) or code.global_random(function, facts.tree(node.file)))
        same = _unchanged(facts, group) if draws or _lost(own, function) is not None else None
        why = None
        if same is not None and draws:
            why = _why(facts, own, node, function, text)
        elif same is not None and (lost := _lost(own, function)) is not None:
            why = _unread(facts, own, node, function, *lost)
        if same is None or why is None:
            continue
        count, first = same
        yield Finding(
            NAMES[0], "warning", node.id, (first,),
            f"{facts.name(node)} {'draws random numbers, and ' if draws else ''}returned its input unchanged in all "
            f"{count:,} recorded calls{why.words}",
            why.fix, node.file, why.line, several(one.id for one in group),
            (facts.shown(first),), "measured",
        )  # fmt: skip


def _unchanged(facts: Facts, group: Sequence[Node]) -> tuple[int, int] | None:
    """How many calls of a body gave back an input, and the first of them, where all did."""
    ids = ", ".join(str(one.id) for one in group)
    rows = facts.reader.rows(
        "SELECT min(c.id), count(*), total(o.digest IN (SELECT i.digest FROM value i WHERE i.call = c.id AND "
        "i.role = 'input')), total(o.min < o.max), count(DISTINCT o.digest) FROM call c JOIN value o ON o.call = c.id "
        f"WHERE c.node IN ({ids}) AND c.kind = 'forward' AND c.status = 'ok' AND o.role = 'output' AND o.position = 0",
    )
    first, count, same, wide, distinct = rows[0]
    if count < _LEAST_CALLS or same != count or wide < count / 2 or distinct < 2:
        return None
    return int(count), int(first)


def _lost(own: Source, function: _Def) -> tuple[ast.Assign, str] | None:
    """The last result of what a body computes of its input, under a name that nothing reads."""
    loads = {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    made = [
        one for one in code.own_nodes(function)
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
    ]  # fmt: skip
    inputs = {name for name in code.parameters(function) if name != "self"}
    of_input = {*inputs}
    found = None
    for one in made:
        if of_input & {part.id for part in ast.walk(one.value) if isinstance(part, ast.Name)} and not _measured(
            own, one
        ):
            name = ast.unparse(one.targets[0])
            of_input.add(name)
            found = (one, name) if name not in loads and name != "_" else found
    return found


def _measured(own: Source, made: ast.Assign) -> bool:
    """Whether an assignment takes the shape of something, or one number of it, and no other array."""
    text = own.text(made.value)
    return any(f".{one}" in text for one in _MEASURES) or bool(_NUMBERS.search(text))


def _why(facts: Facts, own: Source, node: Node, function: _Def, text: str) -> _Why | None:
    loads = [one for one in code.own_nodes(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Assign) or len(one.targets) != 1 or not isinstance(one.targets[0], ast.Name):
            continue
        name = one.targets[0].id
        reads = [each for each in loads if each.id == name]
        if not reads and _is_result(own, one.value, function):
            return _unread(facts, own, node, function, one, name)
        source = _copied(one.value)
        if source is not None and reads and all(_is_written(own, each) for each in reads):
            return _written_copy(facts, own, node, function, one, name, source)
    branches = any(isinstance(one, (ast.If, ast.IfExp, ast.While, ast.Try, ast.For)) for one in ast.walk(function))
    body = function.body[int(ast.get_docstring(function) is not None) :]
    pure = all(isinstance(one, (ast.Assign, ast.AugAssign, ast.Return)) for one in body)
    if branches or not pure or _ELSE.search(text):
        return None
    return _Why(
        "", function.lineno,
        "look at what it draws, and whether the result takes it:\n"
        f"{facts.show_call(facts.calls_of([node]).first or 1)}",
    )  # fmt: skip


def _is_result(own: Source, value: ast.expr, function: Definition) -> bool:
    """Whether an expression makes something of the input, by what was drawn or by turning it."""
    inputs = {name for name in code.parameters(function) if name != "self"}
    names = [one for one in ast.walk(value) if isinstance(one, ast.Name)]
    taken = any(
        one.id in inputs and not (isinstance(outer := own.parent(one), ast.Attribute) and outer.attr in _MEASURES)
        for one in names
    )
    drawn = {
        target.id for one in code.own_nodes(function)
        if isinstance(one, ast.Assign) and _DRAWS.search(own.text(one.value))
        for target in one.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    draws = bool(_DRAWS.search(own.text(value))) or any(one.id in drawn for one in names)
    return taken and (draws or _keeps_dtype(value))


def _copied(value: ast.expr) -> ast.expr | None:
    """`img[a:b]` of `img[a:b].copy()` and of `np.array(img[a:b])`; None for all others."""
    if not isinstance(value, ast.Call) or pastes.last_name(value.func) not in _COPIES:
        return None
    of_part = value.func.value if isinstance(value.func, ast.Attribute) else None
    part = value.args[0] if value.args and isinstance(value.args[0], ast.Subscript) else of_part
    return part if isinstance(part, ast.Subscript) else None


def _is_written(own: Source, name: ast.Name) -> bool:
    """Whether a name is read only as what something is written into: `patch[:] = 0`, `patch.fill(0)`."""
    outer = own.parent(name)
    if isinstance(outer, ast.Subscript) and outer.value is name:
        return isinstance(outer.ctx, ast.Store)
    call = own.parent(outer) if isinstance(outer, ast.Attribute) and outer.attr in ("fill", "sort") else None
    return isinstance(call, ast.Call) and isinstance(own.parent(call), ast.Expr)


def _written_copy(
    facts: Facts, own: Source, node: Node, function: Definition, made: ast.Assign, name: str, part: ast.expr
) -> _Why:
    """A copy of a part, into which the body writes: the whole stays as it was."""
    whole = code.root(part) or "the whole"
    writes = [
        one.lineno for one in code.own_nodes(function)
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    ]  # fmt: skip
    before = [
        one for one in code.own_nodes(function)
        if isinstance(one, ast.Assign) and whole in code.stored_names(one) and one.lineno < made.lineno
    ]  # fmt: skip
    owned = (
        bool(before)
        and isinstance(before[-1].value, ast.Call)
        and (pastes.last_name(before[-1].value.func) in ("copy", "array"))
    )
    fix = pastes.written(pastes.replaced(facts, node.file, {made.value: own.text(part)})) if owned else ""
    return _Why(
        f": line {writes[0]} writes into {name}, which is a copy (line {made.lineno}), and {whole} stays as it was",
        made.lineno, fix or f"write into a part of a copy that is returned: `{whole} = {whole}.copy()`, and then "
        f"`{name} = {own.text(part)}` without a copy",
    )  # fmt: skip


def _unread(facts: Facts, own: Source, node: Node, function: _Def, made: ast.Assign, name: str) -> _Why:
    """A result under a name that nothing reads."""
    returned = [one for one in code.own_nodes(function) if isinstance(one, ast.Return) and one.value is not None]
    fix = ""
    if len(returned) == 1 and made in function.body and isinstance(returned[0].value, ast.Name):
        np = pastes.module(facts, node.file, "numpy")
        given = returned[0].value
        new = name if _keeps_dtype(made.value) else ""
        if not new and np is not None and node.tout[0].startswith("float") and node.kind != "py_function":
            new = f"{np}.asarray({name}, dtype={np}.{node.tout[0]})"
        edit: Edit | None = pastes.replaced(facts, node.file, {given: new}) if new else None
        fix = pastes.written(edit) if edit is not None else ""
    return _Why(
        f": line {made.lineno} makes {name}, which nothing reads", made.lineno,
        fix or f"return {name}, in the dtype that Tout declares ({node.tout[0]})",
    )  # fmt: skip


def _keeps_dtype(value: ast.expr) -> bool:
    """Whether a value has the dtype of what it is made of: `img[:, ::-1]`, `np.fliplr(img)`."""
    if isinstance(value, ast.Subscript):
        return isinstance(value.value, ast.Name)
    return isinstance(value, ast.Call) and pastes.last_name(value.func) in _SAME_DTYPE
