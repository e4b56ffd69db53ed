"""Gradients that are added up over several batches, applied, and never set back to 0: each step has all before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, tapes
from pyfunc_debug.records import Finding

NAMES = ("kept-gradients",)
_APPLIES = ("apply_gradients", "apply")
_READS = ("zip", "len", "enumerate", "range", *_APPLIES)
_STARTS = ("__init__", "build")


@dataclass(frozen=True)
class _Sum:
    """A line that adds gradients to a list, by its name; `variables` where that is one of TensorFlow's variables."""

    name: str
    statement: ast.stmt
    variables: bool


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a list."""
    for file in facts.files:
        own = pastes.source(facts, file)
        told: set[tuple[str, int]] = set()
        for one in _sums(own) if [*tapes(own)] else ():
            region = _region(own, one)
            applied = _applied(own, region, one.name)
            if (
                (one.name, getattr(region, "lineno", 0)) in told
                or len(applied) != 1
                or not _is_kept(own, region, one, applied[0])
            ):
                continue
            told.add((one.name, getattr(region, "lineno", 0)))
            yield _finding(facts, file, own, one, applied[0])


def _sums(own: Source) -> Iterator[_Sum]:
    for one in pastes.walk(own.tree, ast.stmt):
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.value, ast.ListComp):
            name, part = ast.unparse(one.targets[0]), one.value.generators[0]
            if _is_pair_sum(one.value.elt, part) and name in _zipped(part.iter) and not part.ifs:
                yield _Sum(name, one, False)
        elif isinstance(one, ast.For) and len(one.body) == 1:
            yield from _of_loop(one, one.body[0])


def _is_pair_sum(node: ast.expr, part: ast.comprehension) -> bool:
    """`a + g` of `for a, g in zip(...)`."""
    pair = sorted(map(ast.unparse, part.target.elts)) if isinstance(part.target, ast.Tuple) else []
    if isinstance(node, ast.Call) and pastes.last_name(node.func) == "add" and len(node.args) == 2:
        return sorted(map(ast.unparse, node.args)) == pair
    sums = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
    return sums and sorted([ast.unparse(node.left), ast.unparse(node.right)]) == pair  # type: ignore[attr-defined]


def _zipped(node: ast.expr) -> list[str]:
    is_zip = isinstance(node, ast.Call) and ast.unparse(node.func) == "zip"
    return [*map(ast.unparse, node.args)] if is_zip else []  # type: ignore[attr-defined]


def _of_loop(loop: ast.For, inside: ast.stmt) -> Iterator[_Sum]:
    """`for a, g in zip(total, grads): a.assign_add(g)`, `for i in range(len(grads)): total[i] += grads[i]`."""
    if isinstance(inside, ast.AugAssign) and isinstance(inside.op, ast.Add):
        target, added = inside.target, inside.value
    elif isinstance(inside, ast.Expr) and isinstance(inside.value, ast.Call):
        call = inside.value
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "assign_add" or len(call.args) != 1:
            return
        target, added = call.func.value, call.args[0]  # type: ignore[assignment]
    else:
        return
    if not isinstance(added, (ast.Name, ast.Subscript)):
        return
    variables = isinstance(inside, ast.Expr)
    if isinstance(target, ast.Subscript):
        yield _Sum(ast.unparse(target.value), loop, variables)
    elif variables and isinstance(loop.target, ast.Tuple):
        names = [*map(ast.unparse, loop.target.elts)]
        lists = _zipped(loop.iter)
        if ast.unparse(target) in names and len(lists) == len(names):
            yield _Sum(lists[names.index(ast.unparse(target))], loop, True)


def _region(own: Source, one: _Sum) -> ast.AST:
    """Where the name of a sum means this list: the class, the function that makes it, or the file."""
    around = [*own.around(one.statement)]
    if one.name.startswith("self."):
        return next((part for part in around if isinstance(part, ast.ClassDef)), own.tree)
    functions = [part for part in around if isinstance(part, ast.FunctionDef)]
    made = [part for part in functions if _others(part, one)]
    return made[-1] if made else own.tree


def _others(region: ast.AST, one: _Sum) -> list[ast.Assign]:
    """What else assigns the name."""
    assigns = [*pastes.walk(region, ast.Assign)]
    return [each for each in assigns if each is not one.statement and one.name in map(ast.unparse, each.targets)]


def _applied(own: Source, region: ast.AST, name: str) -> list[ast.stmt]:
    """The statements that give an optimizer these sums, or what they are divided by a number."""
    found: list[ast.stmt] = []
    for call in pastes.walk(region, ast.Call):
        pairs = call.args[0] if pastes.last_name(call.func) in _APPLIES and call.args else None
        lists = pairs.args if isinstance(pairs, ast.Call) and ast.unparse(pairs.func) == "zip" else []
        statement = own.statement(call.lineno)
        given = lists[0] if lists else None
        if isinstance(given, ast.ListComp) and isinstance(given.elt, ast.BinOp):
            given = given.generators[0].iter
        if given is not None and ast.unparse(given) == name and isinstance(statement, ast.Expr):
            found.append(statement)
    return found


def _is_kept(own: Source, region: ast.AST, one: _Sum, applied: ast.stmt) -> bool:
    """Whether the sums are applied several times, and nothing in the file sets them back."""
    loops = [part for part in own.around(applied) if isinstance(part, (ast.For, ast.While))]
    scope = next((part for part in own.around(applied) if isinstance(part, ast.FunctionDef)), own.tree)
    called = isinstance(scope, ast.FunctionDef) and any(
        pastes.last_name(call.func) == scope.name
        and any(isinstance(part, (ast.For, ast.While)) for part in own.around(call))
        for call in pastes.walk(own.tree, ast.Call)
    )
    others = _others(region, one)
    if len(others) != 1 or not (loops or (called and one.variables)) or "zeros" not in ast.unparse(others[0].value):
        return False
    begins = next((part for part in own.around(others[0]) if isinstance(part, ast.FunctionDef)), own.tree)
    apart = isinstance(begins, ast.FunctionDef) and begins.name in _STARTS and one.name.startswith("self.")
    module = begins is own.tree and one.variables
    if not (apart or module or begins is scope):
        return False
    if any(isinstance(part, (ast.For, ast.While)) for part in own.around(others[0])):
        return False
    return not _is_set_back(own, region, one)


def _is_set_back(own: Source, region: ast.AST, one: _Sum) -> bool:
    """Whether anything else writes to the sums, or is given them."""
    own_name = one.name.startswith("self.")
    for place in pastes.walk(own.tree, ast.Attribute) if own_name else ():
        if place.attr == one.name.removeprefix("self.") and ast.unparse(place.value) != "self":
            return True  # from outside of the class
    for part in pastes.walk(region, ast.AST):
        if isinstance(part, ast.Call):
            given = [*part.args, *(each.value for each in part.keywords)]
            name = pastes.last_name(part.func)
            if name not in _READS and any(ast.unparse(each) == one.name for each in given):
                return True
            if isinstance(part.func, ast.Attribute) and ast.unparse(part.func.value) == one.name:
                return True  # total.clear()
            if name in ("assign", "assign_sub") and isinstance(part.func, ast.Attribute):
                loops = [each for each in own.around(part) if isinstance(each, (ast.For, ast.ListComp))]
                owner = part.func.value
                if ast.unparse(getattr(owner, "value", owner)) == one.name:
                    return True
                if any(one.name in ast.unparse(each) for each in loops if not _has_tape(each)):
                    return True
        elif isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            inside = any(each is part for each in ast.walk(one.statement))
            if ast.unparse(part.value) == one.name and not inside:
                return True
    return False


def _has_tape(node: ast.AST) -> bool:
    """Whether a loop is one over batches, and not over the sums."""
    return any("GradientTape" in ast.unparse(item.context_expr) for one in pastes.walk(node, ast.With)
               for item in one.items)  # fmt: skip


def _finding(facts: Facts, file: str, own: Source, one: _Sum, applied: ast.stmt) -> Finding:
    tf = pastes.module(facts, file, "tensorflow") or "tf"
    back = (
        (f"for one in {one.name}:", f"    one.assign({tf}.zeros_like(one))")
        if one.variables
        else (f"{one.name} = [{tf}.zeros_like(one) for one in {one.name}]",)
    )
    inside = one.statement.body[0] if isinstance(one.statement, ast.For) else one.statement
    return Finding(
        NAMES[0], "error", None, (),
        f"{one.name} adds up gradients, line {applied.lineno} applies their sum, and nothing sets it back to 0: each "
        "step goes along the gradients of all batches since the beginning, also those that it has gone along before",
        pastes.written(pastes.behind(file, applied, *back)), file, applied.lineno,
        evidence=tuple(f"line {each.lineno}: {facts.line(file, each.lineno)}" for each in (inside, applied)),
        confidence="likely",
    )  # fmt: skip
