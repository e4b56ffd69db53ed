"""Lines that make a graph follow a Python value: a variable in its place, or another trace after a change."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.program import syntax
from pyfunc_debug.program.syntax import copied

TENSOR = "a tensor of "
"""What stands before the numbers of a tensor."""
_MOST = 12
"""More edits than these are not a paste."""
TRACED = {
    "call", "train_step", "test_step", "predict_step", "compute_loss", "compute_metrics", "update_state", "result",
    "__call__",
}  # fmt: skip
"""Methods that Keras calls while it traces."""
_STEPS = {"fit": "train", "train_on_batch": "train", "evaluate": "test", "test_on_batch": "test"}
"""Methods that run a model's step, and what Keras calls it."""
_OPS = {ast.Add: "assign_add", ast.Sub: "assign_sub"}
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_TOLD = ("print", "info", "debug", "warning", "log", "write")
_Place = ast.Attribute | ast.Name | ast.Subscript
_LOOPS = (ast.For, ast.While)
_Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class KeptValue:
    """A value that is read while a graph is traced, and the places of a file that have to do with it.

    Args:
      facts: The recording.
      name: As the traced code says it: `self.rate`, `cfg.rate`, `HP['rate']`, `rate`.
      file: Where it is read.
      line: The line.
    """

    def __init__(self, facts: Facts, name: str, file: str, line: int) -> None:
        self._facts, self._file, self._line = facts, file, line
        self._source: Source = pastes.source(facts, file)
        self._name = syntax.expression(name)
        every = [one for one in pastes.walk(facts.tree(file), ast.expr) if self.stands_for(one)]
        stores = [one for one in every if isinstance(getattr(one, "ctx", None), ast.Store)]
        known = [(one, found) for one in stores if isinstance(found := self._source.parent(one), _ASSIGNS)]
        self._odd = len(known) < len(stores)  # `for self.rate in ...`: no line to replace
        self._initial = self._first([one for one in known if not isinstance(one[1], ast.AugAssign)])
        self.writes = [one for one in known if one[1] is not self._initial]
        self._reads = [one for one in every if isinstance(getattr(one, "ctx", None), ast.Load)]

    def only_told(self) -> bool:
        """Whether the line does nothing but print or log the value."""
        reads = [one for one in self._reads if one.lineno == self._line]
        return bool(reads) and all(any(map(_tells, self._source.around(one))) for one in reads)

    def only_counted(self, then: object, now: object) -> bool:
        """Whether the function asks a list for nothing but its length, and that is the same.

        Args:
          then: The list when the graph was traced, as text.
          now: The same when it ran.
        """
        inside = {id(part) for function in self._readers for part in ast.walk(function)}
        reads = [one for one in self._reads if id(one) in inside]
        around = [self._source.parent(one) for one in reads]
        counts = all(isinstance(one, ast.Call) and ast.unparse(one.func) == "len" for one in around)
        if not reads or not counts or not all(str(one)[:1] in "[(" and "..." not in str(one) for one in (then, now)):
            return False
        try:
            lists = [syntax.expression(str(one)) for one in (then, now)]
        except SyntaxError:
            return False
        sizes = [len(one.elts) for one in lists if isinstance(one, (ast.List, ast.Tuple))]
        return len(sizes) == len(lists) and len(set(sizes)) == 1

    @property
    def initial(self) -> ast.expr | None:
        """What the value is at first, where one line says it."""
        return None if self._initial is None else self._initial.value

    # -- a variable ---------------------------------------------------------------------------------------------------

    def as_variable(self, then: str, now: str) -> str:
        """The lines with a tf.Variable that what changes the value assigns to; "" where it has to be Python's."""
        made = self._made()
        if made is None or self._odd or not self.writes:
            return ""
        tf = pastes.module(self._facts, self._file, "tensorflow") or "tf"
        tensors = _are_alike(then, now) and isinstance(made, ast.Call) and dotted(made.func).startswith(f"{tf}.")
        if not tensors and not (_is_number(then) and _is_number(now)):
            return ""
        traced = [one for one in self._reads if self._is_traced(one)]
        if not traced or not all(map(self._computes, traced)):
            return ""
        kind = "" if isinstance(made, ast.Constant) and isinstance(made.value, float) else f", dtype={tf}.float32"
        text = pastes.text_of(self._facts, self._file, made)
        pieces: dict[ast.expr, str] = {made: f"{tf}.Variable({text}, trainable=False{'' if tensors else kind})"}
        inside = {id(part) for _, write in self.writes for part in ast.walk(write)}
        if not tensors:  # a variable is as good as a tensor
            pieces.update({one: f"{self._text(one)}.numpy()" for one in self._reads
                           if not self._is_traced(one) and id(one) not in inside})  # fmt: skip
        assigned = [self._assigned(one, tensors) for one in self.writes]
        edits = [*pastes.each_replaced(self._facts, self._file, pieces), *assigned]
        lines = [line for one in edits if one is not None for line in range(one.first, one.last + 1)]
        return pastes.written(*edits) if len(edits) <= _MOST and len(set(lines)) == len(lines) else ""

    def _assigned(self, write: tuple[ast.expr, ast.stmt], tensors: bool) -> Edit | None:
        """A line that changes the value as one that assigns to the variable."""
        target, statement = write
        found = pastes.lines_of(self._facts, self._file, statement.lineno)
        value = getattr(statement, "value", None)
        if found is None or value is None or (isinstance(statement, ast.Assign) and len(statement.targets) > 1):
            return None
        given = pastes.text_of(self._facts, self._file, value)
        if not tensors:
            given = ast.unparse(_Numbers(self).visit(copied(value)))
        whole = self._text(target)
        if isinstance(statement, ast.AugAssign):
            method = _OPS.get(type(statement.op))
            if method is None and tensors:
                return None
            if method is None:
                left = ast.BinOp(ast.Name(f"{whole}.numpy()"), statement.op, value)
                method, given = "assign", ast.unparse(_Numbers(self).visit(copied(left)))
        else:
            method = "assign"
        last = statement.lineno + len(found[1]) - 1
        return Edit(self._file, statement.lineno, last, (f"{found[0]}{whole}.{method}({given})",))

    def _made(self) -> ast.expr | None:
        """What the value is at first: in an assignment, as an entry of a dict, or as an argument of a namespace."""
        if self._initial is not None:
            return self._initial.value
        key = self._key()
        found: list[ast.expr] = []
        for one in pastes.walk(self._facts.tree(self._file), ast.expr):
            if isinstance(one, ast.Dict) and isinstance(self._name, ast.Subscript):
                found += [value for name, value in zip(one.keys, one.values)
                          if isinstance(name, ast.Constant) and name.value == key]  # fmt: skip
            elif isinstance(one, ast.Call) and pastes.last_name(one.func) in ("dict", "SimpleNamespace", "Namespace"):
                found += [word.value for word in one.keywords if word.arg == key]
        return found[0] if len(found) == 1 else None

    # -- another trace ------------------------------------------------------------------------------------------------

    def traced_again(self, sites: list[tuple[str, int]]) -> str:
        """The line that makes Keras trace its step again, after each that changes the value.

        Args:
          sites: Files and lines that ran the step.
        """
        steps = [(step, owner) for file, line in sites if file == self._file for step, owner in self._runs(line)]
        kinds = list(dict.fromkeys(step for step, _ in steps))
        owners = {owner for _, owner in steps}
        if not 0 < len(self.writes) <= pastes.MOST or not kinds or self._odd:
            return ""
        edits = []
        for target, statement in self.writes:
            found = pastes.lines_of(self._facts, self._file, statement.lineno)
            model = self._model(target, statement, owners)
            if found is None or not model or self._each_batch(statement):
                return ""
            last = statement.lineno + len(found[1]) - 1
            again = (f"{found[0]}{model}.make_{kind}_function(force=True)" for kind in kinds)
            edits.append(Edit(self._file, statement.lineno, last, (*found[1], *again)))
        return pastes.written(*edits)

    def _runs(self, line: int) -> Iterator[tuple[str, str]]:
        for call in pastes.around(self._facts.tree(self._file), line, ast.Call):
            step = _STEPS.get(pastes.last_name(call.func))
            if step is not None and isinstance(call.func, ast.Attribute):
                yield step, ast.unparse(call.func.value)

    def _model(self, target: ast.expr, statement: ast.stmt, owners: set[str]) -> str:
        """How a line calls the model whose step is traced."""
        holder = next((one for one in self._source.around(statement) if isinstance(one, ast.ClassDef)), None)
        if holder is not None:
            of_callback = any(ast.unparse(base).endswith("Callback") for base in holder.bases)
            return "self.model" if of_callback else ""
        inside = next((one for one in self._source.around(statement) if isinstance(one, _Function)), None)
        owner = next(iter(owners)) if len(owners) == 1 else ""
        if not owner.isidentifier():
            return ""
        at_top = any(isinstance(one, ast.Assign) and owner in map(ast.unparse, one.targets)
                     for one in getattr(self._facts.tree(self._file), "body", ()))  # fmt: skip
        same = isinstance(target, ast.Attribute) and ast.unparse(target.value) == owner
        return owner if inside is None or same or at_top else ""

    def _each_batch(self, statement: ast.stmt) -> bool:
        """Whether a line runs for each batch: in a method of a callback, or in the loop that trains on them."""
        around = list(self._source.around(statement))
        if any("_batch" in getattr(one, "name", "") for one in around if isinstance(one, ast.FunctionDef)):
            return True
        loop = next((one for one in around if isinstance(one, (*_Function, ast.For, ast.While, ast.If))), None)
        runs = [one for one in ast.walk(loop) if isinstance(one, ast.Call)] if isinstance(loop, _LOOPS) else []
        runs = [one for one in runs if pastes.last_name(one.func).endswith("_on_batch")]
        return any(next(one for one in self._source.around(run) if isinstance(one, _LOOPS)) is loop for run in runs)

    # -- places -------------------------------------------------------------------------------------------------------

    def _key(self) -> object:
        if isinstance(self._name, ast.Subscript) and isinstance(self._name.slice, ast.Constant):
            return self._name.slice.value
        return self._name.attr if isinstance(self._name, ast.Attribute) else getattr(self._name, "id", None)

    def stands_for(self, one: ast.expr) -> bool:
        """Whether an expression is the value: an attribute of the name, whatever its object is called there."""
        name = self._name
        if isinstance(name, ast.Attribute):
            return isinstance(one, ast.Attribute) and one.attr == name.attr
        if isinstance(name, ast.Subscript) and isinstance(one, ast.Subscript):
            same = pastes.last_name(one.value) == pastes.last_name(name.value)
            return same and isinstance(one.slice, ast.Constant) and one.slice.value == self._key()
        return isinstance(name, ast.Name) and isinstance(one, ast.Name) and one.id == name.id and (
            self._scope(one) is self._own_scope
        )  # fmt: skip

    def same_name(self, one: ast.expr) -> bool:
        """Whether an expression is the value's name, in a copy of a line of its scope."""
        name = self._name
        return isinstance(name, ast.Name) and isinstance(one, ast.Name) and one.id == name.id

    def _scope(self, one: ast.AST) -> ast.AST | None:
        """The function that a name belongs to at a place; None for the file."""
        name = getattr(self._name, "id", "")
        around = (found for found in self._source.around(one) if isinstance(found, _Function))
        return next((found for found in around if name in code.local_names(found)), None)

    @functools.cached_property
    def _own_scope(self) -> ast.AST | None:
        read = [one for one in pastes.walk(self._facts.tree(self._file), ast.Name)
                if one.lineno == self._line and one.id == getattr(self._name, "id", "")]  # fmt: skip
        return self._scope(read[0]) if read else None

    def _first(self, known: list[tuple[ast.expr, ast.stmt]]) -> ast.Assign | ast.AnnAssign | None:
        """The statement that makes the value: in `__init__`, in a class, or the first where a name is its own."""
        if isinstance(self._name, ast.Attribute):
            known = [(one, statement) for one, statement in known if _is_maker(self._source, one, statement)]
            if isinstance(self._name.value, ast.Name) and self._name.value.id == "self" and len(known) > 1:
                holders = pastes.around(self._facts.tree(self._file), self._line, ast.ClassDef)[-1:]
                known = [one for one in known if any(holder in self._source.around(one[1]) for holder in holders)]
            if len(known) != 1:
                return None
        elif isinstance(self._name, ast.Subscript):
            return None
        found = min((statement for _, statement in known), key=lambda one: one.lineno, default=None)
        looped = (ast.For, ast.While)
        if found is None or any(isinstance(one, looped) for one in self._source.around(found)):
            return None
        return found if isinstance(found, (ast.Assign, ast.AnnAssign)) and found.value is not None else None

    def _is_traced(self, one: ast.expr) -> bool:
        """Whether an expression stands in a function that runs while a graph is traced."""
        reader = self._readers
        around = [found for found in self._source.around(one) if isinstance(found, _Function)]
        return any(found in reader or getattr(found, "name", "") in TRACED for found in around)

    @functools.cached_property
    def _readers(self) -> list[ast.AST]:
        """The function that reads the value in the line: the lambdas of a line that has them, else the `def` around."""
        inner = [next((found for found in self._source.around(one) if isinstance(found, _Function)), None)
                 for one in self._reads if one.lineno == self._line]  # fmt: skip
        lambdas: list[ast.AST] = [one for one in inner if isinstance(one, ast.Lambda)]
        return lambdas or [*pastes.around(self._facts.tree(self._file), self._line, ast.FunctionDef)[-1:]]

    def _computes(self, one: ast.expr) -> bool:
        """Whether an expression is computed with, as a variable can be."""
        around = self._source.parent(one)
        if isinstance(around, ast.BinOp):
            return isinstance(around.op, _ARITHMETIC) and all(
                not isinstance(found, (ast.If, ast.While, ast.IfExp, ast.Compare, ast.Subscript, ast.JoinedStr))
                or not _is_asked(found, one)
                for found in self._source.around(one)
            )
        if not isinstance(around, ast.Call) or one is around.func:
            return False
        return ast.unparse(around.func).partition(".")[0] in ("tf", "ops", "keras") and one in around.args

    def _text(self, one: ast.AST) -> str:
        return pastes.text_of(self._facts, self._file, one)


class _Numbers(ast.NodeTransformer):
    """Puts the number of the variable in the place of the value."""

    def __init__(self, value: KeptValue) -> None:
        self._stands_for, self._same_name = value.stands_for, value.same_name

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and (self._same_name(node) or self._stands_for(node)):
            return ast.Call(ast.Attribute(node, "numpy", ast.Load()), [], [])
        return super().generic_visit(node)


_ASSIGNS = (ast.Assign, ast.AugAssign, ast.AnnAssign)


def _is_maker(source: Source, target: ast.expr, statement: ast.stmt) -> bool:
    """Whether an assignment to an attribute stands in its object's `__init__`, or beside the `def` of its function."""
    function = next((one for one in source.around(statement) if isinstance(one, _Function)), None)
    if not isinstance(target, ast.Attribute):
        return False
    owner = ast.unparse(target.value)
    if owner == "self":
        return getattr(function, "name", "") in ("__init__", "build")
    scope = getattr(function, "body", None) or source.tree.body
    return any(isinstance(one, ast.FunctionDef) and one.name == owner for one in scope) and statement in scope


def _is_asked(around: ast.AST, one: ast.AST) -> bool:
    """Whether an expression is part of what a statement decides by."""
    asked = getattr(around, "test", around)
    return any(part is one for part in ast.walk(asked))


def _is_number(text: str) -> bool:
    if text.startswith(TENSOR):
        return False
    value = syntax.expression(text)
    value = value.operand if isinstance(value, ast.UnaryOp) else value
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def _are_alike(then: str, now: str) -> bool:
    """Whether both are tensors of one shape, by how their numbers are written."""
    if not (then.startswith(TENSOR) and now.startswith(TENSOR)) or "..." in then + now:
        return False
    return re.sub(r"[^][,]", "", then) == re.sub(r"[^][,]", "", now)


def _tells(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and pastes.last_name(node.func) in _TOLD


__all__ = ["TRACED", "KeptValue"]
