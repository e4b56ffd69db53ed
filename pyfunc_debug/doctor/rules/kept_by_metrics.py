"""A metric of one's own that keeps lists or numbers of Python's: Keras resets its variables only, at each epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.records import Finding, Node

NAMES = ("unreset-metric",)
_RESETS = {"reset_state", "reset_states", "reset"}
_EMPTY = {"list", "dict", "set", "defaultdict", "Counter", "OrderedDict"}
_EMPTIES = {"clear", "pop", "popleft", "popitem"}
_PASSES = {"fit", "evaluate"}


@dataclass(frozen=True)
class _Kept:
    """An attribute that calls add to: its name, the line of one that does, and what makes it as it began."""

    name: str
    line: int
    again: str


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a class."""
    for file in facts.files:
        own = pastes.source(facts, file)
        classes = [one for one in pastes.walk(own.tree, ast.ClassDef) if _is_metric(one)]
        if not classes or not _has_passes(own):
            continue
        eager = any(
            word.arg == "run_eagerly" and ast.unparse(word.value) == "True"
            for one in pastes.walk(own.tree, ast.Call) for word in one.keywords
        )  # fmt: skip
        for holder in classes:
            methods = {one.name: one for one in holder.body if isinstance(one, ast.FunctionDef)}
            if _RESETS & set(methods) or not {"__init__", "update_state", "result"} <= set(methods):
                continue
            called = [
                group[0] for group in facts.lines
                if group[0].file == file and holder.lineno <= (group[0].line or 0) <= (holder.end_lineno or 0)
                and facts.calls_of(group).count
            ]  # fmt: skip
            kept = [one for one in _kept(own, methods, eager) if _is_read(own, methods, one.name)]
            if kept and (called or eager):
                yield _finding(facts, file, holder, methods, kept, called)


def _is_metric(holder: ast.ClassDef) -> bool:
    bases = [dotted(one) for one in holder.bases]
    return len(bases) == 1 and (bases[0] == "Metric" or bases[0].rpartition(".")[0].endswith("metrics"))


def _has_passes(own: Source) -> bool:
    """Whether a file trains for several epochs, or validates, with the same metrics."""
    passes = [one for one in pastes.walk(own.tree, ast.Call) if pastes.last_name(one.func) in _PASSES]
    words = [word for one in passes for word in one.keywords]
    several = any(one.arg == "epochs" and ast.unparse(one.value) != "1" for one in words)
    validated = any(one.arg in ("validation_data", "validation_split") for one in words)
    inside = any(isinstance(outer, (ast.For, ast.While)) for one in passes for outer in own.around(one))
    return several or validated or inside or len(passes) > 1


def _kept(own: Source, methods: dict[str, ast.FunctionDef], eager: bool) -> Iterator[_Kept]:
    """What bodies add to and nothing empties, which `__init__` makes empty.

    Args:
      own: The file.
      methods: The methods of the class.
      eager: Whether `update_state` itself runs with each batch.
    """
    functions = [
        function for name, method in methods.items() if name != "__init__" for function in ast.walk(method)
        if isinstance(function, (ast.FunctionDef, ast.Lambda)) and (eager or function is not methods["update_state"])
    ]  # fmt: skip
    for name, made in _made(methods["__init__"]):
        again = _again(own, name, made)
        find = code.counters if code.is_number(made) else code.state_writes
        writes = [one for function in functions for one in find(function)]
        mine = [one for one in writes if one.target == name or one.target.startswith(f"{name}[")]
        if again and mine and not _is_emptied(own, methods["__init__"], name):
            yield _Kept(name, mine[0].line, again)


def _made(init: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """`self.t = []`, `self.t, self.p = [], []`: an attribute, and what it is given."""
    for one in code.own_nodes(init):
        if isinstance(one, ast.AnnAssign) and one.value is not None:
            pairs: list[tuple[ast.expr, ast.expr]] = [(one.target, one.value)]
        elif isinstance(one, ast.Assign):
            pairs = [(target, one.value) for target in one.targets]
        else:
            continue
        for target, value in pairs:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                yield from ((dotted(each), given) for each, given in zip(target.elts, value.elts) if _of_self(each))
            elif _of_self(target):
                yield dotted(target), value


def _of_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and dotted(node.value) == "self"


def _again(own: Source, name: str, made: ast.expr) -> str:
    """The statement that makes an attribute as it was; "" for all but empty containers, numbers and arrays of zeros."""
    empty = not made.elts if isinstance(made, ast.List) else isinstance(made, ast.Dict) and not made.keys
    if empty or code.is_number(made):
        return f"{name} = {own.text(made)}"
    if not isinstance(made, ast.Call):
        return ""
    head, _, last = dotted(made.func).rpartition(".")
    if last == "zeros" and head in ("np", "numpy"):
        return f"{name} = {head}.zeros_like({name})"
    plain = not made.keywords and all(isinstance(one, (ast.Name, ast.Lambda)) for one in made.args)
    return (
        f"{name} = {own.text(made)}" if last in _EMPTY and plain and len(made.args) <= (last == "defaultdict") else ""
    )


def _is_emptied(own: Source, init: ast.FunctionDef, name: str) -> bool:
    """Whether anything but `__init__` gives an attribute of that name another value than one of the one before."""
    attribute, inside = name.rpartition(".")[2], {id(one) for one in ast.walk(init)}
    for one in pastes.walk(own.tree, ast.Attribute):
        if one.attr != attribute or id(one) in inside:
            continue
        around = own.parent(one)
        if isinstance(around, ast.Attribute) and around.attr in _EMPTIES:
            return True
        piece = around if isinstance(around, ast.Subscript) else None
        if isinstance(one.ctx, ast.Del) or (piece is not None and isinstance(piece.ctx, ast.Del)):
            return True
        if piece is not None and isinstance(piece.ctx, ast.Store) and isinstance(piece.slice, ast.Slice):
            return True
        if isinstance(one.ctx, ast.Store) and not isinstance(around, ast.AugAssign):
            text = own.text(one)
            value = around.value if isinstance(around, (ast.Assign, ast.AnnAssign)) else None
            if value is None or not any(ast.unparse(part) == text for part in pastes.walk(value, ast.Attribute)):
                return True
            if any(isinstance(part, ast.Slice) for part in ast.walk(value)):
                return True  # a window of the last ones
    return False


def _is_read(own: Source, methods: dict[str, ast.FunctionDef], name: str) -> bool:
    """Whether the result, or what it calls, reads all of an attribute: no history, of which it reads the last.

    What a body returns is taken for the result's, too: `self.last = tf.numpy_function(self._mean, ...)`.
    """
    returning = [
        key for key, method in methods.items()
        if key not in ("__init__", "update_state") and any(
            isinstance(one, ast.Return) and one.value is not None and name in ast.unparse(one.value)
            for one in code.own_nodes(method)
        )
    ]  # fmt: skip
    todo, seen = ["result", *returning], set()
    while todo:
        one = todo.pop()
        if one in seen or one not in methods:
            continue
        seen.add(one)
        todo += [each.attr for each in pastes.walk(methods[one], ast.Attribute) if _of_self(each)]
    for part in (part for one in seen for part in pastes.walk(methods[one], ast.Attribute)):
        if dotted(part) != name or not isinstance(part.ctx, ast.Load):
            continue
        around = own.parent(part)
        grows = isinstance(around, ast.Attribute) and around.attr in ("append", "extend", "add", "update")
        piece = around.slice if isinstance(around, ast.Subscript) and isinstance(around.ctx, ast.Load) else None
        last = isinstance(piece, (ast.Slice, ast.UnaryOp))
        if not grows and not last and not (isinstance(around, ast.Subscript) and piece is None):
            return True
    return False


def _finding(
    facts: Facts, file: str, holder: ast.ClassDef, methods: dict[str, ast.FunctionDef], kept: list[_Kept],
    called: list[Node],
) -> Finding:  # fmt: skip
    below = next(one for one in holder.body if isinstance(one, ast.FunctionDef) and one.name != "__init__")
    texts = ["def reset_state(self):", "    super().reset_state()", *(f"    {one.again}" for one in kept)]
    edit = pastes.above(facts, file, pastes.first_line(below), *texts)
    first = kept[0]
    return Finding(
        NAMES[0], "warning", called[0].id if called else None, (),
        f"{holder.name} adds to {listed([one.name for one in kept])} with each batch and has no reset_state: at the "
        "beginning of each epoch, and of a validation, Keras resets only variables. From the second on, its result is "
        "that of all batches so far",
        pastes.written(edit), file, first.line,
        evidence=(f"line {first.line}: {facts.line(file, first.line)}",), confidence="likely",
    )  # fmt: skip
