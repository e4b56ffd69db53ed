"""A generator whose counter goes on behind the last row: each batch from there on is made of an empty slice."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.generators.batches import Batches, Seen

_LEAST = 3
"""Empty batches, at least: Keras takes one or two more than it is asked for."""
_SHARE = 0.2
"""The share of equal batches at the end, at least, that data of their own do not have there."""
_MAKES = {"zeros", "empty", "ones", "full", "zeros_like", "empty_like"}
_Loop = (ast.For, ast.While)


@dataclass(frozen=True)
class Counter:
    """A counter that nothing sets back.

    Attributes:
      name: It, as it is written: `count`, `self.pos`.
      step: The statement that counts it up.
      part: The slice that it begins.
      lower: Where that begins, in terms of the counter.
      upper: Where it ends, likewise; None where it has no end.
      begin: What the counter begins with.
      last: Whether nothing behind the step reads it in the same turn.
    """

    name: str
    step: ast.stmt
    part: ast.Subscript
    lower: str
    upper: str | None
    begin: str
    last: bool

    def edit(self, own: Source, file: str, whole: bool) -> Edit | None:
        """What sets it back behind its step: where the next slice is empty, or is not whole."""
        if not self.last:
            return None
        rows = f"len({own.text(self.part.value)})"
        test = f"{self.upper} > {rows}" if whole and self.upper else f"{self.lower} >= {rows}"
        return pastes.behind(file, self.step, f"if {test}:", f"    {self.name} = {self.begin}")


def never_set_back(own: Source, function: ast.FunctionDef) -> Counter | None:
    """The counter of a generator with one endless loop, in which it is only ever counted up."""
    yields = [one for one in code.own_nodes(function) if isinstance(one, ast.Yield)]
    loops = [one for one in own.around(yields[0]) if isinstance(one, _Loop)] if len(yields) == 1 else []
    loop = loops[-1] if loops else None
    if loop is None or not any(isinstance(one, ast.While) for one in loops) or not _within(own, loop, function):
        return None
    inside = [part for one in loop.body for part in ast.walk(one)]
    steps = {name: one for one in inside if isinstance(one, ast.stmt) and (name := _counted(one))}
    stored = [text for one in inside if isinstance(one, ast.stmt) for text in _stored(one)]
    for name, step in steps.items():
        begin = _begin(own, function, name)
        if begin is None or stored.count(name) != 1 or _is_asked(inside, name):
            continue
        for part in inside:
            if not isinstance(part, ast.Subscript) or not isinstance(part.slice, ast.Slice):
                continue
            base, lower = dotted(part.value), part.slice.lower
            if (
                lower is None
                or part.slice.step is not None
                or not base
                or {base, str(code.root(part.value))} & {*stored}
            ):
                continue
            first, end = _in_terms(own, inside, lower), _in_terms(own, inside, part.slice.upper)
            if first is None or name not in _names(first) or any(isinstance(one, ast.Mod) for one in ast.walk(first)):
                continue
            reads = [one.lineno for one in inside if isinstance(one, (ast.Name, ast.Attribute)) and dotted(one) == name]
            last = max(reads) <= (step.end_lineno or step.lineno)
            upper = None if end is None or part.slice.upper is None else _text(own, end, part.slice.upper)
            return Counter(name, step, part, _text(own, first, lower), upper, begin, last)
    return None


def of_counter(facts: Facts, batches: Batches) -> Seen | None:
    """The last batches had no rows, or are the same as each other, and a counter is never set back."""
    empty = _at_end([rows == 0 and bool(one[0].shape) for rows, one in zip(batches.rows, batches.each)])
    last = [one.digest for one in batches.each[-1]]
    same = _at_end([[one.digest for one in batch] == last for batch in batches.each]) if None not in last else 0
    count, total = max(empty, same), len(batches.each)
    own = pastes.source(facts, batches.file)
    if not _LEAST <= count < total or not (empty or (_is_filled(batches.function) and count >= _SHARE * total)):
        return None
    found = never_set_back(own, batches.function)
    if found is None:
        return None
    zeros = all(one.least == one.most == 0 for one in batches.each[-1][:1])
    how = "had no rows" if empty else "were the same, all zeros" if zeros else "were the same"
    step = facts.line(batches.file, found.step.lineno)
    edit = found.edit(own, batches.file, whole=not empty)
    return Seen(
        f"the last {count:,} of the {total:,} batches that {batches.function.name} gave {how}: "
        f"{own.text(found.part)} is empty, as line {found.step.lineno} ({step}) counts on behind the last row, and "
        f"nothing sets {found.name} back",
        pastes.written(edit) if edit is not None else
        f"set {found.name} back to {found.begin} where the rows are over, or loop over range(0, len(...), size)",
        found.step.lineno,
        (f"line {found.part.lineno}: {facts.line(batches.file, found.part.lineno)}",),
    )  # fmt: skip


def _is_filled(function: ast.FunctionDef) -> bool:
    """Whether a function makes arrays that it fills: else an empty slice gives a batch without rows."""
    return any(pastes.last_name(one.func) in _MAKES for one in pastes.walk(function, ast.Call))


def _at_end(flags: list[bool]) -> int:
    """How many at the end are true."""
    return next((count for count, one in enumerate(reversed(flags)) if not one), len(flags))


def _within(own: Source, loop: ast.AST, function: ast.FunctionDef) -> bool:
    """Whether a loop is the function's own."""
    return next((one for one in own.around(loop) if isinstance(one, (ast.FunctionDef, ast.Lambda))), None) is function


def _counted(statement: ast.stmt) -> str:
    """The name in `i += size` or `i = i + size`; "" where it is something else."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        return dotted(statement.target)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.value, ast.BinOp):
        name = dotted(statement.targets[0])
        both = [dotted(statement.value.left), dotted(statement.value.right)]
        return name if isinstance(statement.value.op, ast.Add) and name in both else ""
    return ""


def _stored(statement: ast.stmt) -> list[str]:
    """The names and attributes that a statement itself assigns."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For)):
        targets = [statement.target]
    elif isinstance(statement, ast.With):
        targets = [one.optional_vars for one in statement.items if one.optional_vars is not None]
    every = [part for one in targets for part in (one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one])]
    return [name for one in every if (name := dotted(one))]


def _is_asked(inside: list[ast.AST], name: str) -> bool:
    """Whether a test reads the counter: `if i >= len(x): break`. Or a call of the user's own object may set it back."""
    tests = [one.test for one in inside if isinstance(one, (ast.If, ast.IfExp, ast.While, ast.Assert))]
    if any(name in _names(one) for one in tests):
        return True
    calls = [dotted(one.func) for one in inside if isinstance(one, ast.Call)]
    return name.startswith("self.") and any(one.startswith("self.") and one.count(".") == 1 for one in calls)


def _begin(own: Source, function: ast.FunctionDef, name: str) -> str | None:
    """The number that the counter begins with, by the function or by the object's `__init__`."""
    values = pastes.assigned(own.tree if "." in name else function, name)
    numbers = [one for one in values if isinstance(one, ast.Constant) and type(one.value) is int]
    others = [one for one in values if one not in numbers and name not in _names(one)]
    return own.text(numbers[0]) if len(numbers) == 1 and not others else None


def _names(node: ast.AST) -> set[str]:
    return {dotted(one) for one in ast.walk(node) if isinstance(one, (ast.Name, ast.Attribute))}


def _in_terms(own: Source, inside: list[ast.AST], bound: ast.expr | None) -> ast.expr | None:
    """A bound of a slice, with what its names stand for that the loop assigns once: `start = count * size`."""
    if bound is None:
        return None

    class Known(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            made = [
                one for one in inside
                if isinstance(one, ast.Assign) and node.id in _stored(one) and not _counted(one)
            ]  # fmt: skip
            alone = len(made) == 1 and [dotted(one) for one in made[0].targets] == [node.id]
            return self.visit(ast.parse(own.text(made[0].value), mode="eval").body) if alone else node

    copy = ast.parse(own.text(bound), mode="eval").body
    found = Known().visit(copy)
    return found if isinstance(found, ast.expr) else None


def _text(own: Source, resolved: ast.expr, bound: ast.expr) -> str:
    """A bound as it is written, where nothing in it was replaced."""
    same = ast.dump(resolved) == ast.dump(ast.parse(own.text(bound), mode="eval").body)
    return own.text(bound) if same else ast.unparse(resolved)
