"""`y - y_pred` of labels [n] and predictions [n, 1]: TensorFlow makes it [n, n], each label with each prediction."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import as_given, given
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import parameters, tapes_before
from pyfunc_debug.events import Notice
from pyfunc_debug.places import source_line
from pyfunc_debug.records import Finding, Node

NAMES = ("broadcast-loss",)
_Pairs = Iterator[tuple[ast.expr, list[ast.expr]]]
_OPS = ("subtract", "squared_difference")
_KEEP = ("cast", "convert_to_tensor", "constant", "identity")
_AVERAGES = ("mean", "sum", "average", "nanmean", "reduce_mean", "reduce_sum", "count_nonzero")
_EQUALS = ("equal", "not_equal")
_MODULES = ("np", "numpy", "tf", "math")
_METHODS = ("astype", "round", "copy", "clip", "numpy")
_EACH = ("round", "rint", "floor", "around", "asarray", "array", "float32", "float64", "int32", "int64")
"""Methods, and functions of a module, that give each number of an array another one."""
_OF_PAIRS = ("axis=", ".any(", ".all(")
"""What is asked of all pairs."""
_PAIRS = ("expand_dims", "reshape", "transpose", "None]", "None,", "newaxis")
_MEANS = ("reduce_mean", "reduce_sum", "mean(", "sum(")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line."""
    told: set[tuple[str, int]] = set()
    for _, _, noticed in facts.notices.get(Notice.BROADCAST, []):
        place = noticed["file"], noticed["line"]
        if place not in told and facts.source(noticed["file"]):
            told.add(place)
            yield _finding(facts, *place, noticed["shapes"])
    for _, _, noticed in facts.notices.get(Notice.PICKED, []):
        place = noticed["file"], noticed["line"]
        if place not in told and facts.source(noticed["file"]):
            told.add(place)
            yield _picked(facts, *place, noticed["used"], noticed["shapes"])
    for _, _, noticed in facts.notices.get(Notice.ASKED_TAPE, []):
        if facts.source(noticed["file"]):
            for line, shapes in _eagerly(facts, noticed["file"], noticed["line"], noticed.get("shapes") or {}):
                if (noticed["file"], line) not in told:
                    told.add((noticed["file"], line))
                    yield _finding(facts, noticed["file"], line, shapes)
            for line, used, sizes in _picked_eagerly(
                facts, noticed["file"], noticed["line"], noticed.get("shapes") or {}
            ):
                if (noticed["file"], line) not in told:
                    told.add((noticed["file"], line))
                    yield _picked(facts, noticed["file"], line, (noticed["file"], used), sizes)
    for group in facts.lines:
        file, function = group[0].file, facts.function(group[0])
        if function is None or file is None:
            continue
        for line, shapes in _in_body(facts, group, function):
            if (file, line) not in told:
                told.add((file, line))
                yield _finding(facts, file, line, shapes, of_tensors=False)


def _in_body(facts: Facts, group: Sequence[Node], function: Definition) -> Iterator[tuple[int, list[Sequence[int]]]]:
    """Lines of a body with such a difference of what each of its calls was given."""
    if not any(one in ast.unparse(function) for one in _MEANS):
        return
    of_pairs = any(word in ast.unparse(function) for word in _OF_PAIRS)
    together = [*_differences(function), *(() if of_pairs else _averaged(function))]
    for one, sides in together:
        names = [as_given(function, _numbers_of(side)) for side in sides]
        seen = [given(facts, group, name) if name else [] for name in names]
        pairs = [(left.shape, right.shape) for left, right in zip(*seen)]
        if pairs and all(_is_square(*pair) for pair in pairs):
            yield one.lineno, list(pairs[0])


def _is_square(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether one is `[n]` and the other `[n, 1]`."""
    flat, column = sorted((one, other), key=len)
    return len(flat) == 1 and len(column) == 2 and column[1] == 1 and column[0] == flat[0] and flat[0] > 1


def _eagerly(
    facts: Facts, file: str, line: int, known: Mapping[str, Sequence[int]]
) -> Iterator[tuple[int, list[Sequence[int]]]]:
    """Lines under a tape of eager code, or in functions that it calls, with such a difference of names."""
    own, tree = pastes.source(facts, file), facts.tree(file)
    blocks = tapes_before(own, line)[:1]
    if tree is None or not blocks:
        return
    functions = {one.name: one for one in pastes.walk(tree, ast.FunctionDef)}
    holder = own.function(blocks[0].lineno) or tree
    known = {name: shape for name, shape in known.items() if not _is_paired(holder, name)}
    scopes: list[tuple[ast.AST, Mapping[str, Sequence[int]]]] = [(blocks[0], known)]
    for call in pastes.walk(blocks[0], ast.Call):
        called = functions.get(pastes.last_name(call.func))
        if called is not None and not call.keywords:
            given = {
                name: known[_plain(part)] for name, part in zip(parameters(called), call.args) if _plain(part) in known
            }
            scopes.append((called, given))
    for scope, shapes in scopes:
        if not any(one in ast.unparse(scope) for one in _MEANS):
            continue
        for one, sides in _differences(scope):
            both = [shapes.get(_plain(side), ()) for side in sides]
            if _is_square(*both) and not any(_is_paired(scope, _plain(side)) for side in sides):
                yield one.lineno, both


def _picked_eagerly(
    facts: Facts, file: str, line: int, known: Mapping[str, Sequence[int]]
) -> Iterator[tuple[int, int, list[Sequence[int | None]]]]:
    """Lines under a tape of eager code that gather the columns of all rows, and those that use them with a row each."""
    own = pastes.source(facts, file)
    for block in tapes_before(own, line)[:1]:
        around = [one for one in own.around(block) if isinstance(one, (ast.For, ast.FunctionDef))]
        bound = code.stored_names(around[0]) if around else set()
        bound |= set(code.parameters(around[0])) if around and isinstance(around[0], ast.FunctionDef) else set()
        flat = {name: shape[0] for name, shape in known.items() if len(shape) == 1 and shape[0] > 1 and name in bound}
        for call in pastes.walk(block, ast.Call):
            if pastes.last_name(call.func) != "gather" or len(call.args) < 2 or not _is_of_columns(call):
                continue
            statement = own.statement(call.lineno)
            target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else call
            rows, params = flat.get(_plain(call.args[1])), known.get(_plain(call.args[0]), ())
            square = len(known.get(_plain(target), ())) == 2 and set(known[_plain(target)]) == {rows}
            if not rows or (len(params) == 2 and params[0] != rows) or not (square or len(params) == 2):
                continue
            for one in pastes.walk(block, ast.BinOp):
                sides = [one.left, one.right]
                mine = [
                    side for side in sides if side is call or (target is not call and _plain(side) == _plain(target))
                ]
                if len(mine) == 1 and any(flat.get(_plain(side)) == rows for side in sides if side is not mine[0]):
                    yield call.lineno, one.lineno, [params or (rows, None), (rows,)]
                    break


def _is_of_columns(call: ast.Call) -> bool:
    """Whether a gather is along the last of two axes, and of all rows."""
    given = {one.arg: ast.unparse(one.value) for one in call.keywords}
    return given.get("axis") in ("1", "-1") and "batch_dims" not in given


def _plain(node: ast.expr) -> str:
    """The name that a side is, also in a call that keeps its shape."""
    inside = _cast_away(node)
    return inside.id if isinstance(inside, ast.Name) else ""


def _cast_away(node: ast.expr) -> ast.expr:
    """What a call that keeps the shape is given."""
    while isinstance(node, ast.Call) and pastes.last_name(node.func) in _KEEP and node.args:
        node = node.args[0]
    return node


def _numbers_of(node: ast.expr) -> ast.expr:
    """What an expression is made of number by number, as `np.round(y) > 0.5` is of `y`."""
    while True:
        inside = _cast_away(node)
        if isinstance(inside, ast.Call) and isinstance(inside.func, ast.Attribute):
            name, owner = inside.func.attr, inside.func.value
            if name in _METHODS and not (isinstance(owner, ast.Name) and owner.id in _MODULES):
                inside = owner
            elif name in _EACH and inside.args:
                inside = inside.args[0]
        elif isinstance(inside, ast.Compare) and all(isinstance(one, ast.Constant) for one in inside.comparators):
            inside = inside.left
        if inside is node:
            return node
        node = inside


def _is_paired(around: ast.AST, name: str) -> bool:
    """Whether a name was given an axis by which all pairs are meant."""
    values = [ast.unparse(one) for one in pastes.assigned(around, name)]
    return any(word in value for value in values for word in _PAIRS)


def _finding(
    facts: Facts, file: str, line: int, shapes: Sequence[Sequence[int | None]], of_tensors: bool = True
) -> Finding:
    tf = pastes.module(facts, file, "tensorflow") or "tf"
    sides = _sides(facts, file, line)
    maker, kind = ("TensorFlow", "tensors") if of_tensors else ("Broadcasting", "arrays")
    column = 0 if len(shapes[0]) > 1 else 1
    size = shapes[column][0]
    n = "n" if size is None else f"{size:,}"
    fix, names = "", ["one side", "the other"]
    if sides is not None:
        names = [pastes.text_of(facts, file, one) for one in sides]
        atom = pastes.source(facts, file).atom(sides[column])
        whole = f"{tf}.squeeze({names[column]}, -1)" if of_tensors else f"{atom}[..., 0]"
        fix = pastes.all_replaced(facts, file, {sides[column]: whole})
    verb = "compares" if sides is not None and _comparison_at(facts, file, line) else "subtracts"
    shown = [f"{name} is [{', '.join(map(_size, shape))}]" for name, shape in zip(names, shapes)]
    return Finding(
        NAMES[0], "warning", None, (),
        f"line {line} {verb} two {kind} of different ranks: {' and '.join(shown)}. {maker} makes that [{n}, {n}]"
        ", each number of the one with each of the other: their mean is not that of the rows",
        fix or f"{f'{tf}.squeeze(..., -1) around' if of_tensors else '[..., 0] behind'} the one with two axes",
        file, line,
        evidence=(f"line {line}: {facts.line(file, line)}",),
    )  # fmt: skip


def _picked(facts: Facts, file: str, line: int, used: Sequence[Any], shapes: Sequence[Sequence[int | None]]) -> Finding:
    """`tf.gather(q, a, axis=1)`: the columns of all rows, of each row."""
    gathers = [
        one for one in pastes.walk(facts.tree(file), ast.Call)
        if pastes.last_name(one.func) == "gather" and one.lineno <= line <= (one.end_lineno or one.lineno)
    ]  # fmt: skip
    (rows, columns), call = shapes[0], gathers[0] if len(gathers) == 1 else None
    width = "k" if columns is None else f"{columns:,}"
    fix, text = "", f"the gather of line {line}"
    if call is not None and not any(one.arg == "batch_dims" for one in call.keywords):
        text = f"`{pastes.text_of(facts, file, call)}`"
        new = pastes.source(facts, file).with_argument(call, "batch_dims=1")
        fix = pastes.all_replaced(facts, file, {call: new})
    where = f"line {used[1]}" if used[0] == file else source_line(*used)
    return Finding(
        NAMES[0], "warning", None, (),
        f"{text} takes all {rows:,} indices from each of the {rows:,} rows of [{rows:,}, {width}]: that is "
        f"[{rows:,}, {rows:,}], and {where} computes with it and a tensor [{rows:,}], each number of that with each "
        "row. One of each row is [n]: batch_dims=1 takes row by row",
        fix or "batch_dims=1 in the gather", file, line,
        evidence=(f"line {line}: {facts.line(file, line)}",), confidence="likely",
    )  # fmt: skip


def _size(size: int | None) -> str:
    return "n" if size is None else str(size)


def _sides(facts: Facts, file: str, line: int) -> list[ast.expr] | None:
    """Both sides of the line's only difference, or of its only comparison."""
    found = _at(facts, file, line, _differences) or _at(facts, file, line, _comparisons)
    return found[0] if len(found) == 1 else None


def _comparison_at(facts: Facts, file: str, line: int) -> bool:
    return not _at(facts, file, line, _differences) and bool(_at(facts, file, line, _comparisons))


def _at(facts: Facts, file: str, line: int, find: Callable[[ast.AST | None], _Pairs]) -> list[list[ast.expr]]:
    return [
        sides for one, sides in find(facts.tree(file)) if one.lineno <= line <= (one.end_lineno or one.lineno)
    ]  # fmt: skip


def _comparisons(tree: ast.AST | None) -> _Pairs:
    """Comparisons for being equal, and their sides."""
    for one in pastes.walk(tree, ast.Compare):
        if len(one.ops) == 1 and isinstance(one.ops[0], (ast.Eq, ast.NotEq)):
            yield one, [one.left, one.comparators[0]]
    for call in pastes.walk(tree, ast.Call):
        if pastes.last_name(call.func) in _EQUALS and len(call.args) == 2:
            yield call, list(call.args)


def _averaged(function: Definition) -> _Pairs:
    """Comparisons of which nothing is asked but their mean or sum: others may be masks of all pairs."""
    asked = [
        one.func.value if isinstance(one.func, ast.Attribute) and not one.args else one.args[0]
        for one in pastes.walk(function, ast.Call)
        if pastes.last_name(one.func) in _AVERAGES and (one.args or isinstance(one.func, ast.Attribute))
    ]
    only = {id(_converted(one)) for one in asked}
    for one in pastes.walk(function, ast.Assign):
        reads = [
            part for part in pastes.walk(function, ast.Name)
            if isinstance(part.ctx, ast.Load) and part.id in [ast.unparse(target) for target in one.targets]
        ]  # fmt: skip
        if reads and all(id(part) in only for part in reads):
            only.add(id(_converted(one.value)))
    yield from (pair for pair in _comparisons(function) if id(pair[0]) in only)


def _converted(node: ast.expr) -> ast.expr:
    """What is converted to another dtype: `a == b` of `(a == b).astype("float32")`."""
    while True:
        inside = _cast_away(node)
        if isinstance(inside, ast.Call) and isinstance(inside.func, ast.Attribute) and inside.func.attr in _METHODS:
            owner = inside.func.value
            if not (isinstance(owner, ast.Name) and owner.id in _MODULES):
                inside = owner
        if inside is node:
            return node
        node = inside


def _differences(tree: ast.AST | None) -> _Pairs:
    """Differences, and their sides."""
    for one in pastes.walk(tree, ast.BinOp):
        if isinstance(one.op, ast.Sub):
            yield one, [one.left, one.right]
    for call in pastes.walk(tree, ast.Call):
        if pastes.last_name(call.func) in _OPS and len(call.args) == 2:
            yield call, list(call.args)
