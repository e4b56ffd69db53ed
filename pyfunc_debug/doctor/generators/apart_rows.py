"""A generator that pairs rows with those of others: one array by an order and one by places, or by two draws."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.generators.batches import Array, Batches, Seen

_SHUFFLED = re.compile(r"(?:^|\.)(?:permutation|shuffled?|sample)$")
_DRAWS = re.compile(r"(?:^|\.)(?:choice|randint|integers|permutation|sample)$")


def of_order(facts: Facts, batches: Batches) -> Seen | None:
    """`x[order[i:j]]` beside `y[i:j]`."""
    own, function = pastes.source(facts, batches.file), batches.function
    taken = [*_taken(function)]
    by_place = [
        one for one in pastes.walk(function, ast.Subscript)
        if isinstance(one.slice, ast.Slice) and isinstance(one.ctx, ast.Load)
        and not isinstance(own.parent(one), ast.Subscript) and not _is_shuffled(function, one.value)
    ]  # fmt: skip
    for part, ids, order, place in taken:
        others = [
            one for one in by_place
            if ast.unparse(one.slice) == place and ast.unparse(one.value) not in (ast.unparse(part.value), order)
            and _is_outside(function, one.value)
        ]  # fmt: skip
        other = others[0] if len(others) == 1 else None
        if other is None or any(ast.unparse(one[0].value) == ast.unparse(other.value) for one in taken):
            continue
        return Seen(
            f"{own.text(part)} takes rows in the shuffled order of {order}, and {own.text(other)} takes those that "
            "stand at these places: each row gets the partner of another one",
            pastes.all_replaced(facts, batches.file, {other: f"{own.text(other.value)}[{ids}]"}), other.lineno,
            (f"line {part.lineno}: {facts.line(batches.file, part.lineno)}",),
        )  # fmt: skip
    return None


def _taken(function: ast.FunctionDef) -> Iterator[tuple[ast.Subscript, str, str, str]]:
    """What is taken by a piece of a shuffled order: the part, the piece, the order, and the places as `i:i + 8`."""
    for one in pastes.walk(function, ast.Subscript):
        piece = pastes.behind_name(function, one.slice)
        sliced = isinstance(piece, ast.Subscript) and isinstance(piece.slice, ast.Slice)
        if sliced and isinstance(piece, ast.Subscript) and _is_shuffled(function, piece.value):
            yield one, ast.unparse(one.slice), ast.unparse(piece.value), ast.unparse(piece.slice)


def _is_shuffled(function: ast.FunctionDef, order: ast.expr) -> bool:
    """Whether an expression is a permutation of the function's own, or was shuffled in it."""
    text = ast.unparse(order)
    made = pastes.assigned(function, text)
    if any(isinstance(one, ast.Call) and _SHUFFLED.search(ast.unparse(one.func)) for one in made):
        return True
    return any(
        _SHUFFLED.search(ast.unparse(one.func)) and [ast.unparse(part) for part in one.args[:1]] == [text]
        for one in code.own_nodes(function) if isinstance(one, ast.Call)
    )  # fmt: skip


def _is_outside(function: ast.FunctionDef, value: ast.expr) -> bool:
    """Whether it comes from outside of the function as it is: what the function makes may have that order already."""
    return isinstance(value, (ast.Name, ast.Attribute)) and not pastes.assigned(function, ast.unparse(value))


def of_draws(facts: Facts, batches: Batches) -> Seen | None:
    """`x = next(flow)[0]` and `y = next(flow)[1]`: the labels of the next batch."""
    own = pastes.source(facts, batches.file)
    found: dict[str, dict[int, ast.Subscript]] = {}
    for one in pastes.walk(batches.function, ast.Subscript):
        call, place = one.value, one.slice
        drawn = isinstance(call, ast.Call) and ast.unparse(call.func) == "next" and len(call.args) == 1
        if drawn and isinstance(call, ast.Call) and isinstance(place, ast.Constant) and type(place.value) is int:
            found.setdefault(ast.unparse(call.args[0]), {})[place.value] = one
    for source, parts in found.items():
        if {*parts} != {0, 1}:
            continue
        first, second = (own.statement(parts[place].lineno) for place in (0, 1))
        fix = f"one next({source}) for both: x, y = next({source})"
        both = [
            one for one, place in ((first, 0), (second, 1)) if isinstance(one, ast.Assign) and one.value is parts[place]
        ]
        if len(both) > 1 and both[1].lineno == both[0].lineno + 1:
            names = ", ".join(own.text(one.targets[0]) for one in both)
            line = f"{' ' * both[0].col_offset}{names} = next({source})[:2]"
            fix = pastes.written(Edit(batches.file, both[0].lineno, both[1].lineno, (line,)))
        return Seen(
            f"each next({source}) takes another batch: {own.text(parts[1])} is of the batch behind that of "
            f"{own.text(parts[0])}, and the rows are paired with those of others",
            fix, parts[1].lineno, (f"line {parts[0].lineno}: {facts.line(batches.file, parts[0].lineno)}",),
        )  # fmt: skip
    return None


def of_choices(facts: Facts, batches: Batches) -> Seen | None:
    """`x[np.random.choice(n, 8)]` beside `y[np.random.choice(n, 8)]`: the same draw, made twice."""
    own, function = pastes.source(facts, batches.file), batches.function
    value = batches.yields[0].value if len(batches.yields) == 1 and isinstance(batches.yields[0], ast.Expr) else None
    given = value.value if isinstance(value, ast.Yield) else None
    if not isinstance(given, ast.Tuple) or len(given.elts) != 2 or not _has_labels(batches):
        return None
    rows, labels = (_drawn(function, one) for one in given.elts)
    if rows is None or labels is None:
        return None
    first, second = (pastes.behind_name(function, one.slice) for one in (rows, labels))
    if first is second or rows.slice is labels.slice or not _is_same_draw(first, second, rows, labels):
        return None
    if isinstance(rows.slice, ast.Name):
        fix = pastes.all_replaced(facts, batches.file, {labels.slice: rows.slice.id})
    else:
        line, name = own.statement(rows.lineno), own.unused_name("rows")
        block = own.block(line) if line is not None else None
        together = block is not None and own.statement(labels.lineno) in block
        fix = pastes.written(
            *pastes.each_replaced(facts, batches.file, {rows.slice: name, labels.slice: name}),
            pastes.above(facts, batches.file, line.lineno, f"{name} = {own.text(first)}"),
        ) if line is not None and together and line.lineno <= labels.lineno else ""  # fmt: skip
    return Seen(
        f"{own.text(rows)} and {own.text(labels)} each draw rows of their own: each row gets the label of another one",
        fix or "draw once, and take both by that", labels.lineno,
        (f"line {rows.lineno}: {facts.line(batches.file, rows.lineno)}",),
    )  # fmt: skip


def _drawn(function: ast.FunctionDef, value: ast.expr) -> ast.Subscript | None:
    """What a part of a batch takes by a draw: `x[np.random.choice(n, 8)]`."""
    made = pastes.behind_name(function, value)
    if not isinstance(made, ast.Subscript):
        return None
    draw = pastes.behind_name(function, made.slice)
    return made if isinstance(draw, ast.Call) and _DRAWS.search(ast.unparse(draw.func)) else None


def _is_same_draw(one: ast.expr, other: ast.expr, rows: ast.Subscript, labels: ast.Subscript) -> bool:
    """Whether two calls draw alike, of one length or each of that of its own array."""
    mine, theirs = (
        re.sub(rf"\b{re.escape(ast.unparse(part.value))}\b", "_", ast.unparse(call))
        for call, part in ((one, rows), (other, labels))
    )
    return ast.unparse(one) == ast.unparse(other) or mine == theirs


def _has_labels(batches: Batches) -> bool:
    """Whether each batch is rows, and a number or a class for each: not two pictures of two sets."""
    return all(len(one) == 2 and _is_label(one[0], one[1]) for one in batches.each)


def _is_label(rows: Array, labels: Array) -> bool:
    """Whether the second array has one number for each row of the first, or one of some classes."""
    if len(labels.shape) < 2:
        return len(rows.shape) > len(labels.shape)
    single = labels.shape[1] == 1 or (labels.least == 0 and labels.most == 1)
    return len(labels.shape) == 2 <= len(rows.shape) and single
