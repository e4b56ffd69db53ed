"""A learning rate's schedule that decides in Python, `if step < warmup:`, as ops: Keras asks it with a variable."""

from __future__ import annotations

import ast
import copy
import dataclasses
import sys
import types
from collections.abc import Sequence
from typing import Any

from pyfunc_debug.doctor.failures.ops.rewrites import as_ops
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.evaluation import apart, computes, library, quietly
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import indent_of, names, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import Described, alias
from pyfunc_debug.program import syntax
from pyfunc_debug.program.syntax import copied

RULE = "symbolic-value"
_BASE = "LearningRateSchedule"
_LONGEST = 30
_TRIED = (0, 1, 2, 3, 5, 9, 10, 11, 50, 99, 100, 101, 999, 1000, 1001, 5000, 10000, 100000)
"""Steps for which both are compared."""
_PLAIN = (int, float, bool, str, list, tuple, type(None))


class _UnableError(Exception):
    """Something of the schedule has no form in ops that is known here."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a schedule's `__call__` needs the step's value, and all of it can be ops."""
    spot = next((one for one in reversed(situation.spots) if _is_schedule(one)), None)
    if spot is None or situation.body or not isinstance(spot.function, ast.FunctionDef):
        return None
    function, given = spot.function, parameters(spot.function)
    if len(given) != 1 or (function.end_lineno or function.lineno) - function.lineno >= _LONGEST:
        return None
    try:
        lines = _Ops(spot, given[0]).lines(function)
    except _UnableError:
        return None
    first, last = function.body[0].lineno, function.end_lineno or function.lineno
    blanks = indent_of(spot.source.lines[first - 1])
    if first == function.lineno or not apart(_same, spot, function, lines):
        return None
    statement = spot.statement
    code = short(spot.source.text(statement).split("\n")[0], 40) if statement is not None else function.name
    cause = (
        f"`{code}` needs the value of {given[0]}, and Keras calls a schedule while it traces the step, with the "
        f"variable that counts. Below it is in ops: for {len(_TRIED)} steps it gives the same."
    )
    edit = Edit(spot.file, first, last, tuple(blanks + line for line in lines))
    return Explanation(RULE, spot.file, spot.line, cause, edit)


def _is_schedule(spot: Spot) -> bool:
    kinds = [one.__name__ for one in type(spot.variables.get("self")).__mro__]
    return _BASE in kinds and getattr(spot.function, "name", "") == "__call__"


class _Ops:
    """The body of a schedule in ops."""

    def __init__(self, spot: Spot, step: str) -> None:
        self._tf, self._step = alias(spot, "tensorflow"), step
        self._tensors = {step}
        known = {**spot.variables, step: Described("float32", ())}
        self._spot = dataclasses.replace(spot, variables=known)

    def lines(self, function: ast.FunctionDef) -> list[str]:
        """The lines of the body, with the step as a float in the first."""
        body = [one for one in function.body if not _is_text(one)]
        return [f"{self._step} = {self._tf}.cast({self._step}, {self._tf}.float32)", *self._block(body)]

    def _block(self, body: Sequence[ast.stmt]) -> list[str]:
        lines: list[str] = []
        for place, one in enumerate(body):
            if isinstance(one, ast.Return) or _returns(one):
                return [*lines, f"return {self._result(body[place:])}"]
            line = self._assigned(one)
            lines += [line] if line != f"{self._step} = {self._step}" else []
        raise _UnableError

    def _assigned(self, one: ast.stmt) -> str:
        name, value = self._name_and_value(one)
        value = syntax.expression(ast.unparse(value))
        text = self._text(value)
        if self._depends(value):
            self._tensors.add(name)
            known = {**self._spot.variables, name: Described("float32", ())}
            self._spot = dataclasses.replace(self._spot, variables=known)
        return f"{name} = {text}"

    def _name_and_value(self, one: ast.stmt) -> tuple[str, ast.expr]:
        """What a statement assigns: the branches of an `if` as one expression."""
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            return one.targets[0].id, one.value
        if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
            return one.target.id, ast.BinOp(ast.Name(one.target.id, ast.Load()), one.op, one.value)
        if isinstance(one, ast.If) and len(one.body) == 1 and len(one.orelse) <= 1:
            name, yes = self._name_and_value(one.body[0])
            other, no = self._name_and_value(one.orelse[0]) if one.orelse else (name, ast.Name(name, ast.Load()))
            if name == other:
                return name, ast.IfExp(one.test, yes, no)
        raise _UnableError

    def _result(self, body: Sequence[ast.stmt]) -> str:
        """What a block returns, as one expression."""
        first = body[0] if body else None
        if isinstance(first, ast.Return) and first.value is not None:
            return self._text(first.value)
        if not isinstance(first, ast.If) or not _returns(first):
            raise _UnableError
        rest = first.orelse or body[1:]
        return self._where(first.test, self._result(first.body), self._result(rest))

    def _where(self, test: ast.expr, yes: str, no: str) -> str:
        if not self._depends(test):
            raise _UnableError
        yes, no = (f"{float(one)}" if one.lstrip("-").isdigit() else one for one in (yes, no))
        return f"{self._tf}.where({self._text(test, conditions=True)}, {yes}, {no})"

    def _text(self, node: ast.expr, conditions: bool = False) -> str:
        if isinstance(node, ast.IfExp) and self._depends(node.test):
            return self._where(node.test, self._text(node.body), self._text(node.orelse))
        for call in ast.walk(node):  # a float is as good as its whole part only where it is one
            rounds = isinstance(call, ast.Call) and ast.unparse(call.func) in ("int", "round") and self._depends(call)
            if rounds and [ast.unparse(one) for one in getattr(call, "args", [])] != [self._step]:
                raise _UnableError
        plain = syntax.expression(ast.unparse(_Plain(self._step).visit(copied(node))))
        text = as_ops(plain, self._spot, conditions, also=tuple(self._tensors), same=True)
        if text is None:
            raise _UnableError
        return text

    def _depends(self, node: ast.AST) -> bool:
        return any(name in self._tensors for name in names(node))


class _Plain(ast.NodeTransformer):
    """`step` for `int(step)`, `float(step)` and `step.numpy()`: the step counts, and is a float by then."""

    def __init__(self, step: str) -> None:
        self._step = step

    def visit_Call(self, node: ast.Call) -> ast.AST:
        asked = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "numpy" else None
        given = node.args[0] if len(node.args) == 1 and ast.unparse(node.func) in ("int", "float") else None
        for one in (asked, given):
            if one is not None and ast.unparse(one) in (self._step, f"{self._step}.numpy()"):
                return ast.Name(self._step, ast.Load())
        return self.generic_visit(node)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _returns(statement: ast.stmt) -> bool:
    """Whether an `if` ends the function in its branch."""
    if not isinstance(statement, ast.If):
        return False
    last = statement.body[-1]
    return len(statement.body) == 1 and (isinstance(last, ast.Return) or _returns(last))


def _same(spot: Spot, function: ast.FunctionDef, lines: list[str]) -> bool:
    """Whether the schedule gives for some steps what its lines in ops give."""
    tensorflow, numpy = sys.modules["tensorflow"], sys.modules["numpy"]
    own = {name: one for name, one in vars(spot.variables["self"]).items() if _is_plain(one)}
    holder = types.SimpleNamespace(**own)
    given = _globals(spot, function)
    new = "\n".join([f"def call(self, {parameters(function)[0]}):", *(f"    {line}" for line in lines)])
    if given is None or not computes(ast.Module(function.body, [])):
        return False
    stripped = copied(function)
    stripped.decorator_list, stripped.returns, stripped.name = [], None, "call"
    for one in stripped.args.args:
        one.annotation = None
    old_call, new_call = (_function(text, given, tensorflow) for text in (ast.unparse(stripped), new))
    with quietly():
        for step in _TRIED:
            wanted = numpy.asarray(old_call(copy.deepcopy(holder), step), dtype="float64")
            found = new_call(holder, tensorflow.constant(step, tensorflow.int64))
            if "float" not in tensorflow.convert_to_tensor(found).dtype.name:
                return False
            if not numpy.allclose(wanted, numpy.asarray(found, dtype="float64"), rtol=1e-4, atol=1e-8, equal_nan=True):
                return False
    return True


def _is_plain(value: Any) -> bool:
    return isinstance(value, _PLAIN) or type(value).__module__ == "numpy"


def _globals(spot: Spot, function: ast.FunctionDef) -> dict[str, Any] | None:
    """What the names of a schedule stand for; None where one is more than a value or a package that computes."""
    found: dict[str, Any] = {}
    own = {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    for name in {one.id for one in ast.walk(function) if isinstance(one, ast.Name)} - own - {"self"}:
        value = spot.module.get(name)
        module = library(value, name)
        if module is not None:
            found[name] = module
        elif name in spot.module and _is_plain(value):
            found[name] = value
        elif name in spot.module:
            return None
    return found


def _function(text: str, given: dict[str, Any], tensorflow: Any) -> Any:
    allowed = ("min", "max", "abs", "int", "float", "round", "len", "pow", "sum", "bool", "__import__")
    builtins_ = {name: getattr(sys.modules["builtins"], name) for name in allowed}
    made: dict[str, Any] = {"tf": tensorflow, **given, "__builtins__": builtins_}
    exec(compile(text, "<made>", "exec"), made)
    return made["call"]
