"""An `on_epoch_end` that shuffles what no batch is taken by: a copy, a local order, or what nothing reads."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.generators.batches import Batches, Seen

_IN_PLACE = ("numpy.random.shuffle", "random.shuffle")
_COPIES = ("numpy.random.permutation", "random.sample", "sklearn.utils.shuffle", "tensorflow.random.shuffle")
_COPYING = ("copy", "tolist", "list", "arange", "array", "range")
_DRAWS = re.compile(r"(?:shuffled?|permut\w*|sample|choice|randint|integers)\(")
_BASES = re.compile(r"(?:^|\.)(?:Sequence|PyDataset|object)$")
_SAME = "the batches have the same rows in each epoch"


def of_epochs(facts: Facts, batches: Batches) -> Seen | None:
    """A Sequence whose `on_epoch_end` changes nothing that `__getitem__` reads."""
    own = pastes.source(facts, batches.file)
    kind = own.parent(batches.function)
    if not isinstance(kind, ast.ClassDef) or batches.function.name != "__getitem__":
        return None
    ends = [one for one in kind.body if isinstance(one, ast.FunctionDef) and one.name == "on_epoch_end"]
    known = imports(own)
    calls = [one for one in code.own_nodes(ends[0]) if isinstance(one, ast.Call)] if len(ends) == 1 else []
    shuffles = [(one, full) for one in calls if (full := _full(known, one.func)) in (*_IN_PLACE, *_COPIES)]
    if len(shuffles) != 1 or not shuffles[0][0].args or len(_DRAWS.findall(own.code_of(ends[0]))) > 1:
        return None
    if _DRAWS.search(own.code_of(batches.function)):
        return None  # the rows of a batch may be others all the same
    call, full = shuffles[0]
    text, given, end = own.text(call), call.args[0], ends[0]
    statement = own.parent(call)
    if isinstance(statement, ast.Expr) and full in _COPIES:
        return _dropped(facts, batches, call, text)
    if isinstance(statement, ast.Expr) and _is_copy(given):
        return Seen(
            f"on_epoch_end shuffles a copy, {own.text(given)}, which nothing keeps: {_SAME}",
            "shuffle what __getitem__ takes its batches of", call.lineno, severity="warning",
        )  # fmt: skip
    if isinstance(statement, ast.Expr) and isinstance(given, ast.Name) and _is_lost(end, call, given.id):
        return Seen(
            f"on_epoch_end shuffles {given.id}, a name of its own, which is gone as it returns: {_SAME}",
            f"keep it as `self.{given.id}`, and take the rows by it in __getitem__", call.lineno, severity="warning",
        )  # fmt: skip
    return _unread(facts, batches, kind, call, end)


def _full(known: dict[str, str], function: ast.expr) -> str:
    """`numpy.random.shuffle` of `np.random.shuffle`."""
    head, _, rest = ast.unparse(function).partition(".")
    return f"{known[head]}.{rest}".rstrip(".") if head in known else ""


def _dropped(facts: Facts, batches: Batches, call: ast.Call, text: str) -> Seen:
    """`np.random.permutation(self.order)` as a statement."""
    given = call.args[0]
    message = f"{text} gives a shuffled copy, which nothing keeps: {_SAME}"
    if isinstance(given, (ast.Name, ast.Attribute)) and len(call.args) == 1:
        fix = pastes.written(pastes.replaced(facts, batches.file, {call: f"{ast.unparse(given)} = {text}"}))
        if isinstance(given, ast.Attribute) and fix and _reads(batches.function, ast.unparse(given)):
            return Seen(message, fix, call.lineno, severity="warning")
    fix = f"keep it, `self.order = {text}`, and take the rows by it in __getitem__"
    return Seen(message, fix, call.lineno, severity="warning")


def _is_copy(given: ast.expr) -> bool:
    """`self.x.copy()`, `list(zip(self.x, self.y))`."""
    return isinstance(given, ast.Call) and pastes.last_name(given.func) in _COPYING


def _is_lost(end: ast.FunctionDef, call: ast.Call, name: str) -> bool:
    """Whether a local name is made by a call that copies, and read by nothing else."""
    made = pastes.assigned(end, name)
    reads = [
        one for one in pastes.walk(end, ast.Name)
        if one.id == name and isinstance(one.ctx, ast.Load) and one is not call.args[0]
    ]  # fmt: skip
    return len(made) == 1 and _is_copy(made[0]) and not reads


def _unread(facts: Facts, batches: Batches, kind: ast.ClassDef, call: ast.Call, end: ast.FunctionDef) -> Seen | None:
    """`np.random.shuffle(self.indexes)`, where only `on_epoch_end` has that attribute."""
    own = pastes.source(facts, batches.file)
    statement = next((one for one in own.around(call) if isinstance(one, ast.stmt)), None)
    order: ast.expr = call.args[0]
    if isinstance(statement, ast.Assign) and statement.value is call and len(statement.targets) == 1:
        order = statement.targets[0]
    elif not isinstance(statement, ast.Expr):
        return None
    if not isinstance(order, ast.Attribute) or ast.unparse(order.value) != "self":
        return None
    texts = [ast.unparse(one) for one in kind.bases]
    every = "\n".join(own.lines)
    if not all(_BASES.search(one) for one in texts) or re.search(r"getattr|__dict__|vars\(", every):
        return None
    mentions = [one for one in pastes.walk(facts.tree(batches.file), ast.Attribute) if one.attr == order.attr]
    inside = {id(one) for one in ast.walk(end)}
    if any(id(one) not in inside and isinstance(one.ctx, ast.Load) for one in mentions):
        return None
    if any(id(one) in inside and one is not order and isinstance(one.ctx, ast.Load) for one in mentions):
        return None
    taken = next(
        (
            one for one in pastes.walk(batches.function, ast.Subscript)
            if isinstance(one.slice, ast.Slice) and isinstance(one.value, ast.Attribute)
        ),
        None,
    )  # fmt: skip
    if taken is None:
        return None
    name = ast.unparse(order)
    piece = f"{name}[{own.text(taken.slice)}]"
    return Seen(
        f"on_epoch_end shuffles {name}, which nothing reads: __getitem__ takes {own.text(taken)}, and {_SAME}",
        f"take the rows by it, `[{own.text(taken.value)}[row] for row in {piece}]`, in all arrays alike",
        taken.lineno, (f"line {call.lineno}: {facts.line(batches.file, call.lineno)}",), "warning",
    )  # fmt: skip


def _reads(function: ast.FunctionDef, text: str) -> bool:
    """Whether a function reads an attribute."""
    return any(ast.unparse(one) == text for one in pastes.walk(function, ast.Attribute))
