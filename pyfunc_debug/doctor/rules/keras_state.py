"""Python state that a Keras layer, loss or metric changes: while Keras traces its step, and not in each step."""

from __future__ import annotations

import ast
import builtins
import json
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.draws.keras_draws import drawn, told_once
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import names
from pyfunc_debug.doctor.models.eager_steps import run_eagerly
from pyfunc_debug.doctor.models.kept_tensors import kept_tensors
from pyfunc_debug.doctor.models.keras_callees import callees, in_own_graphs, nodes_of
from pyfunc_debug.doctor.models.made_scopes import made_scopes
from pyfunc_debug.doctor.rules.ran_out import STEPS
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.records import Finding

NAMES = ("trace-only",)
_METHODS = {"call", "update_state", "train_step", "test_step"}
_OF_ONE_KIND = {"train_step", "test_step"}
_BASES = ("Layer", "Model", "Loss", "Metric")
_PREDICTS = {"one_step_on_data_distributed", "multi_step_on_data"}
"""What Keras traces for `predict`: of layers and models their `call`, without the loss and the metrics."""
_EAGERLY = "compile(..., run_eagerly=True), with which each step is Python"
_EMPTY = {"list", "dict", "set", "deque", "Counter", "defaultdict", "OrderedDict"}


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a function: only where its steps ran in a graph, more often than they were traced."""
    for file, scopes, owner, function, count in traced_in_steps(facts):
        found = list(_changes(facts, file, scopes, owner, function, count))
        if not found and function.name == "update_state":
            found = list(kept_tensors(facts, file, owner, function, count))
        yield from found or drawn(facts, file, owner, function, count)
        for helper in _helpers(facts.tree(file), function) if not found else ():
            yield from _changes(facts, file, scopes, f"{helper.name}, which {owner} calls,", helper, count, helps=True)
    for file, scopes, owner, function, count, by in in_own_graphs(facts):
        found = list(_changes(facts, file, scopes, owner, function, count, by=by))
        yield from found or drawn(facts, file, owner, function, count, by)


def _helpers(tree: ast.Module | None, function: ast.FunctionDef) -> Iterator[ast.FunctionDef]:
    """Functions of the file that one calls each time that it runs, and whose names are theirs alone."""
    every = list(pastes.walk(tree, ast.FunctionDef))
    asked = [one for one in code.own_nodes(function) if isinstance(one, (ast.If, ast.IfExp, ast.For, ast.While))]
    depends = {id(part) for one in asked for part in ast.walk(one)}
    called = [
        pastes.last_name(one.func) for one in code.own_nodes(function)
        if isinstance(one, ast.Call) and id(one) not in depends
    ]  # fmt: skip
    for name in dict.fromkeys(called):
        own = [one for one in every if one.name == name and one is not function]
        plain = own and all(ast.unparse(one) in ("classmethod", "staticmethod") for one in own[0].decorator_list)
        if len(own) == 1 and plain and name not in _METHODS:
            yield own[0]


def traced_in_steps(facts: Facts) -> Iterator[tuple[str, list[Any], str, ast.FunctionDef, int]]:
    """Functions that some graphs of Keras' ran, once each: file, what they see, name, definition, and the steps."""
    told: set[int] = set()
    for names_of, predicts in ((STEPS, False), (_PREDICTS, True)):
        numbers = [one.id for one in facts.functions.values() if one.name.rpartition(".")[2] in names_of]
        yield from _of_steps(facts, numbers, predicts, told)


def _of_steps(
    facts: Facts, numbers: list[int], predicts: bool, told: set[int]
) -> Iterator[tuple[str, list[Any], str, ast.FunctionDef, int]]:
    """Those of some graphs; adds their lines to `told`."""
    marks = ", ".join("?" * len(numbers))
    sites = facts.reader.rows(
        "SELECT s.frames, count(*) FROM run r JOIN stack s ON s.id = r.site WHERE r.kind = 'forward' "
        f"AND r.function IN ({marks}) GROUP BY s.frames, r.trace ORDER BY r.trace", numbers,
    ) if numbers else []  # fmt: skip
    counts: dict[str, list[int]] = {}
    for frames, count in sites:
        counts.setdefault(frames, []).append(count)  # of each trace
    steps: dict[tuple[str, int], list[int]] = {}
    for frames, several in counts.items():
        if sum(several) > 2 * len(several):
            file, line, *_ = json.loads(frames)[-1]
            steps.setdefault((file, line), []).extend(several)
    for (file, line), several in steps.items():
        tree = facts.tree(file)
        if tree is None or any("run_eagerly" in text or "functions_eagerly" in text for text in facts.code(file)):
            continue
        scopes = made_scopes(tree, line)
        for owner, function, around in traced(scopes):
            if function.lineno not in told and (not predicts or _predicts(tree, function)):
                told.add(function.lineno)
                yield file, [*scopes, *around], owner, function, _count(several, function.name)
        for owner, function in () if predicts else callees([one for scope in scopes for one in nodes_of(scope)]):
            if function.lineno not in told:
                told.add(function.lineno)
                yield file, scopes, owner, function, sum(several)


def _count(steps: list[int], method: str) -> int:
    """The steps that ran a method, of the steps of each trace: `fit` traces its training first, then its validation."""
    if len(steps) < 2 or method not in _OF_ONE_KIND:
        return sum(steps)
    return steps[0] if method == "train_step" else sum(steps[1:])


def _predicts(tree: ast.Module, function: ast.FunctionDef) -> bool:
    """Whether `predict` traces all of a function: a layer's or model's `call` that does not ask if it is trained."""
    holders = pastes.around(tree, function.lineno, ast.ClassDef)[-1:]
    bases = [ast.unparse(base) for one in holders for base in one.bases]
    asks = any(isinstance(one, (ast.If, ast.IfExp)) and "training" in names(one.test) for one in ast.walk(function))
    return function.name == "call" and any(one.endswith(("Layer", "Model")) for one in bases) and not asks


def traced(scopes: list[Any]) -> Iterator[tuple[str, ast.FunctionDef, list[ast.FunctionDef]]]:
    """Functions that Keras traces in its step: methods of layers, losses and metrics, and what compile was given.

    With each the function that made it, where `compile` was given what a call returns: `make_loss()`.

    Args:
      scopes: The file, and the functions around the line that trains: only what is defined in these is looked at.
    """
    inside = [one for scope in scopes for one in nodes_of(scope)]
    values = [
        value for one in inside if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute) and one.func.attr == "compile"
        for value in (*one.args[1:3], *(word.value for word in one.keywords if word.arg in ("loss", "metrics")))
    ]  # fmt: skip
    values += [
        one.args[0] for one in inside
        if isinstance(one, ast.Call) and ast.unparse(one.func).endswith("layers.Lambda") and one.args
    ]  # fmt: skip
    parts = [part for value in values for part in ast.walk(value)]
    makers = {ast.unparse(part.func) for part in parts if isinstance(part, ast.Call)}
    given = {part.id for part in parts if isinstance(part, ast.Name)} - makers
    called = {ast.unparse(one.func) for one in inside if isinstance(one, ast.Call)}
    for one in inside:
        if isinstance(one, ast.ClassDef) and one.name in called:
            if any(ast.unparse(base).endswith(_BASES) for base in one.bases):
                methods = (part for part in one.body if isinstance(part, ast.FunctionDef) and part.name in _METHODS)
                yield from ((f"{one.name}.{part.name}", part, []) for part in methods)
        elif isinstance(one, ast.FunctionDef) and one.name in given:
            yield one.name, one, []
        elif isinstance(one, ast.FunctionDef) and one.name in makers:
            returned = {
                ast.unparse(part.value) for part in nodes_of(one) if isinstance(part, ast.Return) and part.value
            }
            for part in nodes_of(one):
                if isinstance(part, ast.FunctionDef) and part.name in returned:
                    yield part.name, part, [one]


def _changes(
    facts: Facts,
    file: str,
    scopes: list[Any],
    owner: str,
    function: ast.FunctionDef,
    steps: int,
    helps: bool = False,
    by: str = "",
) -> Iterator[Finding]:
    """What a function changes; where it `helps` one that Keras traces, others may call it as well.

    It is called while Keras traces its steps, or the function `by` of the user's is traced.
    """
    found = [
        (write, made) for write in code.state_writes(function)
        if (made := _made(facts, file, scopes, function, write.target)) is not None
        and (code.is_number(made) if "=" in write.text else _is_empty(made))
    ]  # fmt: skip
    if not found:
        return
    write, made = found[0]
    counted = "=" in write.text
    others = [] if counted else [one for one, _ in found[1:] if "=" not in one.text and one.line != write.line]
    writes = [write, *others]
    lines, targets = (list(dict.fromkeys(getattr(one, name) for one in writes)) for name in ("line", "target"))
    several = len(lines) > 1
    yield Finding(
        "trace-only", "warning", None, (),
        f"line{'s' * several} {listed(lines)} of {owner} change{'s' * (not several)} Python's "
        f"{' and '.join(map(repr, targets))}. {told_once(steps, by, several)}",
        (run_eagerly(facts, file) or _EAGERLY) if helps
        else _counted(facts, file, function, write, made, by) if counted else _kept(facts, file, function, writes),
        file, write.line,
        evidence=(*(f"line {one.line}: {one.text}" for one in writes), *_deciding(facts, file, function, write)),
        confidence="likely",
    )  # fmt: skip


def _made(facts: Facts, file: str, scopes: list[Any], function: ast.FunctionDef, name: str) -> ast.expr | None:
    """What the class of a method gives to an attribute, or a scope to a name, if it does so once."""
    owner, _, attribute = name.partition(".")
    if attribute and owner in ("self", "cls"):
        holders = pastes.around(facts.tree(file), function.lineno, ast.ClassDef)[-1:]
        inside = [one for holder in holders for one in ast.walk(holder)]
        name = attribute if owner == "cls" else name
    else:
        inside = [one for scope in scopes for one in nodes_of(scope)]
    own = set(map(id, ast.walk(function)))  # what it sets to 0 again is not where it begins
    found = [
        one.value for one in inside
        if isinstance(one, ast.Assign) and id(one) not in own and name in map(ast.unparse, one.targets)
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _is_empty(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] in _EMPTY
    return isinstance(node, (ast.List, ast.Dict, ast.Set))


def _deciding(facts: Facts, file: str, function: ast.FunctionDef, write: code.Write) -> Iterator[str]:
    """Lines that decide by what is changed: they did so once, too."""
    for one in _asked(function, write.target, (ast.If, ast.While))[:1]:
        yield f"line {one.lineno} decided by it, once for all steps: {facts.line(file, one.lineno)}"


def _counted(facts: Facts, file: str, function: ast.FunctionDef, write: code.Write, made: ast.expr, by: str) -> str:
    """The number as a variable of TensorFlow's, which a graph can change, and what depends on it as an op."""
    tf = pastes.module(facts, file, "tensorflow") or "tf"
    left, _, right = write.text.partition("=")
    added = {"+": "assign_add", "-": "assign_sub"}.get(left.rstrip()[-1:])
    change = pastes.lines_of(facts, file, write.line)
    words = f"{write.target} = {tf}.Variable(0), and .assign_add in line {write.line}: a graph can change it"
    deciding = _asked(function, write.target, (ast.If, ast.While))
    again = sum(one.target == write.target for one in code.state_writes(function)) > 1
    if again and not deciding:
        return run_eagerly(facts, file) or words
    if deciding:
        return run_eagerly(facts, file) or (
            f"{words}; and {tf}.cond(...) for the condition in line {deciding[0].lineno}, which "
            f"Keras does not turn into a graph{'' if by else '. Or compile(..., run_eagerly=True)'}"
        )
    if _in_python(function, write):
        return run_eagerly(facts, file) or f"{words}; and ops of {tf} for what Python computes with it"
    if added is None or change is None or len(change[1]) != 1:
        return words
    text = pastes.text_of(facts, file, made)
    whole = isinstance(made, ast.Constant) and type(made.value) is int
    given = {one for one in code.parameters(function) if one != "self"}  # Keras gives floats
    floats = code.computed_together(function, write.target, given) or _beside_fractions(function, write.target)
    kind = f", dtype={tf}.float32" if whole and floats else ""
    chosen = [one for one in _asked(function, write.target, ast.IfExp) if isinstance(one, ast.IfExp)]
    where: dict[ast.expr, str] = {
        one: f"{tf}.where({', '.join(pastes.text_of(facts, file, part) for part in (one.test, one.body, one.orelse))})"
        for one in chosen
    }  # fmt: skip
    return pastes.written(
        Edit(file, write.line, write.line, (f"{change[0]}{write.target}.{added}({right.strip()})",)),
        pastes.replaced(facts, file, {made: f"{tf}.Variable({text}, trainable=False{kind})"}),
        *pastes.each_replaced(facts, file, where),
    )


def _in_python(function: ast.FunctionDef, write: code.Write) -> bool:
    """Whether Python computes with a number, or looks something up by it: neither takes a variable of a graph."""
    given = [
        part for one in code.own_nodes(function) if getattr(one, "lineno", write.line) != write.line
        for part in (
            one.args if isinstance(one, ast.Call) and _is_python(one.func)
            else [one.slice] if isinstance(one, ast.Subscript) else []
        )
    ]  # fmt: skip
    return any(ast.unparse(part) == write.target for one in given for part in ast.walk(one))


def _is_python(called: ast.expr) -> bool:
    """Whether what is called is one of Python's functions, of its module `math`, or of NumPy's."""
    head, _, name = ast.unparse(called).rpartition(".")
    return head in ("math", "np", "numpy") or (not head and name in vars(builtins))


def _beside_fractions(function: ast.FunctionDef, target: str) -> bool:
    """Whether a number is computed with fractions: a variable of whole numbers does not fit there."""
    for one in pastes.walk(function, ast.BinOp):
        parts = list(code.operands(one))
        fractions = any(isinstance(part, ast.Constant) and isinstance(part.value, float) for part in parts)
        if fractions and any(ast.unparse(inner) == target for part in parts for inner in ast.walk(part)):
            return True
    return False


def _asked(function: ast.FunctionDef, target: str, kinds: Any) -> list[Any]:
    """Conditions that ask a number."""
    return [
        one for one in ast.walk(function)
        if isinstance(one, kinds) and any(ast.unparse(part) == target for part in ast.walk(one.test))
    ]  # fmt: skip


def _kept(facts: Facts, file: str, function: Definition, writes: list[code.Write]) -> str:
    """The changes in py_functions, which are given the function's own values that they need."""
    tf = pastes.module(facts, file, "tensorflow") or "tf"
    pieces: dict[ast.expr, str] = {}
    for write in writes:
        call = next((one for one in pastes.around(facts.tree(file), write.line, ast.Call)
                     if ast.unparse(one) == write.text), None)  # fmt: skip
        if call is None:
            return ""
        own = [one for argument in call.args for one in names(argument) if one in code.local_names(function)]
        given = ", ".join(one for one in dict.fromkeys(own) if one != "self")
        text = pastes.text_of(facts, file, call)
        pieces[call] = f"{tf}.py_function(lambda{' ' * bool(given)}{given}: {text}, [{given}], [])"
    return pastes.all_replaced(facts, file, pieces) or next(iter(pieces.values()))
