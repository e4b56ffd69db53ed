"""A Keras sequence that a generator of tf.data reads: only Keras calls its `on_epoch_end`, so that passes are alike."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import indent_of
from pyfunc_debug.doctor.generators import misnamed_methods
from pyfunc_debug.doctor.models import callback_classes
from pyfunc_debug.records import Finding, Node

NAMES = ("epoch-end",)
_METHOD = "on_epoch_end"
_COMPARED = 5_000
"""How many elements are compared."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a generator whose passes gave the same elements in the same order, or a method that nobody calls."""
    yield from misnamed_methods.check(facts, NAMES[0])
    yield from callback_classes.check(facts, NAMES[0])
    yield from _read_by_generators(facts)


def _read_by_generators(facts: Facts) -> Iterator[Finding]:
    owners = {
        one.name: (file, one)
        for file in facts.files
        for one in pastes.walk(facts.tree(file), ast.ClassDef)
        if _method(one, _METHOD) is not None and not any(ast.unparse(base).endswith("Callback") for base in one.bases)
    }
    if not owners or any(_is_called(facts.tree(file)) for file in facts.files):
        return
    for node, start in facts.generators.values():
        function = facts.function(node)
        if function is None or facts.calls(start.id).count < 2:
            continue
        found = _read(facts, node, function, owners)
        passes = _alike(facts, node) if found is not None else 0
        if found is None or passes < 2:
            continue
        name, owner = found
        file, method = owners[owner][0], _method(owners[owner][1], _METHOD)
        who = facts.name(node)
        who = getattr(function, "name", who) if who == owner else who  # an object that is called
        reads = f"is a method of {owner}" if name == "self" else f"reads {name}, an object of {owner}"
        where, defined = node.stack[-1], facts.source_line(file, method.lineno if method is not None else None)
        yield Finding(
            "epoch-end", "warning", node.id, (),
            f"{who} {reads}, which has an {_METHOD} ({defined}). Only Keras calls that, for a sequence "
            f"that is given to fit itself: from_generator does not, and its {passes:,} passes gave the same elements "
            "in the same order",
            _fix(node, function, name, facts) or f"{name}.{_METHOD}()  # at the end of {who}",
            node.file, node.line,
            evidence=(f"made a dataset at {facts.source_line(where.file, where.line)}",),
        )  # fmt: skip


def _is_called(tree: ast.AST | None) -> bool:
    """Whether a file calls the method, but where an object is made: no epoch ends there."""
    made = {
        id(part) for one in pastes.walk(tree, ast.FunctionDef) if one.name == "__init__" for part in ast.walk(one)
    }  # fmt: skip
    return any(
        isinstance(one.func, ast.Attribute) and one.func.attr == _METHOD and id(one) not in made
        and ast.unparse(one.func.value) != "super()" for one in pastes.walk(tree, ast.Call)
    )  # fmt: skip


def _read(
    facts: Facts, node: Node, function: Definition, owners: dict[str, tuple[str, ast.ClassDef]]
) -> tuple[str, str] | None:
    """The name of the object that a generator takes its elements from, and its class."""
    given = [function.body] if isinstance(function, ast.Lambda) else []
    given += [one.value for one in ast.walk(function) if _takes_item(one)]  # type: ignore[attr-defined]
    given += [one.iter for one in ast.walk(function) if isinstance(one, (ast.For, ast.comprehension))]
    iters = [one.args[0] for one in given if isinstance(one, ast.Call) and ast.unparse(one.func) == "iter" and one.args]
    names = list(dict.fromkeys(one.id for one in (*given, *iters) if isinstance(one, ast.Name)))
    holders = pastes.around(facts.tree(node.file), function.lineno, ast.ClassDef)
    if "self" in names and holders and holders[-1].name in owners:
        return None if _is_off(holders[-1], None) else ("self", holders[-1].name)
    for one in pastes.walk(facts.tree(node.file), ast.Assign):
        made = one.value.func if isinstance(one.value, ast.Call) else None
        owner = ast.unparse(made).rpartition(".")[2] if made is not None else ""
        if owner in owners and len(one.targets) == 1 and ast.unparse(one.targets[0]) in names:
            if isinstance(one.value, ast.Call) and _is_off(owners[owner][1], one.value):
                return None
            return ast.unparse(one.targets[0]), owner
    return None


def _takes_item(node: ast.AST) -> bool:
    """Whether it is `gen[i]`, or the `gen.__getitem__` of a call."""
    item = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
    return item or (isinstance(node, ast.Attribute) and node.attr == "__getitem__")


def _is_off(owner: ast.ClassDef, made: ast.Call | None) -> bool:
    """Whether the method does something only if an attribute says so (`if self.shuffle:`), and it was made without."""
    method = _method(owner, _METHOD)
    if method is None or not all(isinstance(one, ast.If) for one in method.body):
        return False
    given = {str(one.arg): one.value for one in made.keywords} if made is not None else {}
    init = _method(owner, "__init__")
    if init is not None:
        names = [one.arg for one in init.args.args]
        by_position = dict(zip(names[1:], made.args)) if made is not None else {}
        given = {**dict(zip(reversed(names), reversed(init.args.defaults))), **by_position, **given}
    asked = {ast.unparse(one.test).removeprefix("self.") for one in method.body if isinstance(one, ast.If)}
    values = [given.get(one) for one in asked]
    return all(isinstance(one, ast.Constant) and not one.value for one in values)


def _method(owner: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == name), None)


def _alike(facts: Facts, node: Node) -> int:
    """How many passes of a generator gave what the first gave, one after another; 0 where one differs."""
    rows = facts.reader.rows(
        "SELECT c.id, i.digest, o.digest FROM call c JOIN value i ON i.call = c.id AND i.role = 'input' "
        "AND i.position = 0 LEFT JOIN value o ON o.call = c.id AND o.role = 'output' "
        f"WHERE c.node = ? AND c.kind = 'forward' AND c.status = 'ok' ORDER BY c.id, o.position LIMIT {_COMPARED}",
        (node.id,),
    )
    passes: dict[bytes, list[bytes]] = {}
    for _, which, given in rows:
        if given is not None:
            passes.setdefault(which, []).append(given)
    every = [one for one in passes.values() if len(one) > 2]
    alike = len(every) > 1 and all(a == b for one in every[1:] for a, b in zip(one, every[0]))
    return len(every) if alike and len(set(every[0])) > 1 else 0


def _fix(node: Node, function: Definition, name: str, facts: Facts) -> str:
    """The call behind the loop that is all that the generator ends with; a lambda becomes such a generator."""
    if isinstance(function, ast.Lambda):
        return _as_function(node, function, name, facts)
    last = function.body[-1]
    lines = facts.source(node.file)
    if not isinstance(last, ast.For) or last.orelse or node.file is None:
        return ""
    line, indent = (last.end_lineno or last.lineno) + 1, indent_of(lines[last.lineno - 1])
    return pastes.written(Edit(node.file, line, line - 1, (f"{indent}{name}.{_METHOD}()",))) if lines[line:] else ""


def _as_function(node: Node, function: ast.Lambda, name: str, facts: Facts) -> str:
    """A generator above the statement with a lambda: it gives what the lambda's value does, and ends the epoch."""
    own = pastes.source(facts, node.file)
    statement = own.statement(function.lineno)
    taken = {one.name for one in pastes.walk(own.tree, ast.FunctionDef)} | code.stored_names(own.tree)
    called = next(one for one in ("elements", "each_element", "one_pass") if one not in taken or one == "one_pass")
    if statement is None or hasattr(statement, "body") or function.args.args:
        return ""
    value = function.body
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "iter" and len(value.args) == 1:
        value = value.args[0]
    lines = f"def {called}():", f"    yield from {own.text(value)}", f"    {name}.{_METHOD}()"
    edits = pastes.above(facts, node.file, statement.lineno, *lines), pastes.replaced(
        facts, node.file, {function: called}
    )  # fmt: skip
    return pastes.written(*edits)


__all__ = ["NAMES", "check"]
