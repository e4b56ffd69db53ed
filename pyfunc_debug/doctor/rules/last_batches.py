"""A metric class whose `update_state` puts each batch in the place of the one before: it shows the last batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import indent_of, parameters
from pyfunc_debug.records import Finding

NAMES = ("last-batch",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a class."""
    for file in dict.fromkeys(file for file, _ in pastes.keras_sites(facts)):
        for holder in pastes.walk(facts.tree(file), ast.ClassDef):
            if not any(ast.unparse(one).endswith(("metrics.Metric", "Metric")) for one in holder.bases):
                continue
            methods = {one.name: one for one in holder.body if isinstance(one, ast.FunctionDef)}
            update, result = methods.get("update_state"), methods.get("result")
            if update is not None and result is not None and _used(facts, file, holder.name):
                yield from _of_class(facts, file, holder.name, methods, update, result)


def _used(facts: Facts, file: str, name: str) -> bool:
    """Whether `compile` is given one in the file."""
    return any(
        pastes.last_name(one.func) == "compile" and f"{name}(" in ast.unparse(one)
        for one in pastes.walk(facts.tree(file), ast.Call)
    )


def _of_class(
    facts: Facts, file: str, name: str, methods: dict[str, ast.FunctionDef], update: ast.FunctionDef,
    result: ast.FunctionDef,
) -> Iterator[Finding]:  # fmt: skip
    """Where one statement writes, `self.value.assign(...)` of the batch alone, and `result` returns `self.value`."""
    writes = [
        one for one in pastes.walk(update, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr.startswith("assign")
    ]  # fmt: skip
    calls_others = any(ast.unparse(one).startswith("super()") for one in pastes.walk(update, ast.Call))
    if calls_others:
        return
    if len(writes) == 2:
        yield from _counted(facts, file, name, update, result, writes)
    if len(writes) != 1:
        return
    call = writes[0]
    assert isinstance(call.func, ast.Attribute)
    weight = ast.unparse(call.func.value)
    reads = [
        one for one in pastes.walk(update, ast.Attribute) if ast.unparse(one) == weight and one is not call.func.value
    ]
    returned = [ast.unparse(one) for one in pastes.returns(result)]
    statement = pastes.source(facts, file).parent(call)
    if call.func.attr != "assign" or reads or returned != [weight] or not isinstance(statement, ast.Expr):
        return
    if not weight.startswith("self.") or len(call.args) != 1 or statement not in update.body:
        return
    yield Finding(
        NAMES[0], "warning", None, (),
        f"{name}.update_state puts each batch's number in the place of the one before ({weight}.assign): what Keras "
        "shows is that of the last batch. Its mean over the batches of an epoch:",
        _fix(facts, file, methods, call, weight, result), file, call.lineno,
        evidence=(f"line {call.lineno}: {facts.line(file, call.lineno)}",), confidence="likely",
    )  # fmt: skip


def _counted(
    facts: Facts, file: str, name: str, update: ast.FunctionDef, result: ast.FunctionDef, writes: list[ast.Call]
) -> Iterator[Finding]:
    """Where `self.total.assign(...)` stands beside `self.count.assign_add(...)`, and `result` divides the two."""
    by_name = {one.func.attr: one for one in writes if isinstance(one.func, ast.Attribute)}
    if {*by_name} != {"assign", "assign_add"}:
        return
    call = by_name["assign"]
    total, count = ast.unparse(_owner(call)), ast.unparse(_owner(by_name["assign_add"]))
    reads = [one for one in pastes.walk(update, ast.Attribute) if ast.unparse(one) == total and one is not _owner(call)]
    returned = pastes.returns(result)
    if reads or total == count or len(returned) != 1 or not _divides(returned[0], total, count):
        return
    own = pastes.source(facts, file)
    if any(own.parent(one) not in update.body for one in writes):
        return
    yield Finding(
        NAMES[0], "error", None, (),
        f"{name}.update_state puts each batch's number in the place of the one before ({total}.assign), and adds up "
        f"{count}: result divides the last batch alone by the count of all",
        pastes.written(pastes.replaced(facts, file, {call.func: f"{total}.assign_add"})), file, call.lineno,
        evidence=(
            f"line {call.lineno}: {facts.line(file, call.lineno)}",
            f"line {returned[0].lineno}: {facts.line(file, returned[0].lineno)}",
        ),
    )  # fmt: skip


def _owner(call: ast.Call) -> ast.expr:
    """`self.total` of `self.total.assign(...)`."""
    assert isinstance(call.func, ast.Attribute)
    return call.func.value


def _divides(node: ast.expr, total: str, count: str) -> bool:
    """Whether a result is one weight divided by the other, with or without a small number."""
    if (
        isinstance(node, ast.Call)
        and pastes.last_name(node.func) in ("divide_no_nan", "divide")
        and len(node.args) == 2
    ):
        above, below = node.args
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        above, below = node.left, node.right
    else:
        return False
    return ast.unparse(above) == total and any(ast.unparse(one) == count for one in ast.walk(below))


def _fix(
    facts: Facts, file: str, methods: dict[str, ast.FunctionDef], call: ast.Call, weight: str, result: ast.FunctionDef
) -> str:
    """The mean over the batches, which a second weight counts."""
    words = f"{weight}.assign_add(...), a second weight that counts the rows, and result() as their quotient"
    init, own = methods.get("__init__"), pastes.source(facts, file)
    made = [
        one for one in pastes.walk(init, ast.Assign)
        if ast.unparse(one.targets[0]) == weight and isinstance(one.value, ast.Call)
    ] if init is not None else []  # fmt: skip
    back = list(pastes.walk(result, ast.Return))
    resets = [methods[name] for name in ("reset_state", "reset_states") if name in methods]
    cleared = [
        one for method in resets for one in method.body
        if isinstance(one, ast.Expr) and ast.unparse(one).startswith(f"{weight}.assign(")
    ]  # fmt: skip
    if len(made) != 1 or len(back) != 1 or len(cleared) != len(resets):
        return words
    if not parameters(methods["update_state"]) or own.span(made[0])[0] != own.span(made[0])[1]:
        return words
    assert isinstance(call.func, ast.Attribute)
    name = ast.Name("assign", ast.Load())
    name.lineno = name.end_lineno = call.func.end_lineno or call.lineno
    name.end_col_offset = call.func.end_col_offset or 0
    name.col_offset = name.end_col_offset - len("assign")
    placed = pastes.replaced(facts, file, {name: "assign_add"})
    line, last = facts.source(file)[made[0].lineno - 1], back[0]
    if placed is None or placed.first != placed.last:
        return words
    indent = indent_of(placed.lines[0])
    counted = Edit(file, placed.first, placed.last, (*placed.lines, f"{indent}self.batches.assign_add(1.0)"))
    weights = Edit(
        file, made[0].lineno, made[0].lineno,
        (line, f'{indent_of(line)}self.batches = self.add_weight(name="batches", initializer="zeros")'),
    )  # fmt: skip
    tf = pastes.module(facts, file, "tensorflow")
    whole = f"{tf}.math.divide_no_nan({weight}, self.batches)" if tf else f"{weight} / self.batches"
    assert last.value is not None
    quotient = pastes.replaced(facts, file, {last.value: whole})
    again = [pastes.behind(file, one, "self.batches.assign(0.0)") for one in cleared]
    return pastes.written(weights, counted, quotient, *again)
