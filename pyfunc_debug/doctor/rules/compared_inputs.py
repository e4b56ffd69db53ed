"""`if flag == 1:` of a Keras input, while the model is built: an input has no value, and equals no number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.graphs.chosen_values import assigned
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding

NAMES = ("symbolic-value",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding an `if`, in a file whose model was trained or asked."""
    for file in dict.fromkeys(file for file, _ in pastes.keras_sites(facts)):
        tree = facts.tree(file)
        scopes: list[ast.Module | ast.FunctionDef] = [] if tree is None else [tree, *pastes.walk(tree, ast.FunctionDef)]
        for scope in scopes:
            own = list(code.own_nodes(scope))
            stored = [one.id for one in own if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
            inputs = {
                target.id for one in own
                if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
                and pastes.last_name(one.value.func) == "Input" and len(one.targets) == 1
                for target in one.targets if isinstance(target, ast.Name) and stored.count(target.id) == 1
            }  # fmt: skip
            for one in own:
                name = _compared(one, inputs) if isinstance(one, ast.If) else ""
                if isinstance(one, ast.If) and name:
                    yield _finding(facts, file, one, name)


def _compared(block: ast.If, inputs: set[str]) -> str:
    """The input that an `if` compares with a number by `==`; "" where it asks something else."""
    test = block.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return ""
    sides = [test.left, test.comparators[0]]
    found = [one.id for one in sides if isinstance(one, ast.Name) and one.id in inputs]
    constants = [one for one in sides if isinstance(one, ast.Constant) and isinstance(one.value, (int, float))]
    return found[0] if len(found) == 1 and len(constants) == 1 else ""


def _finding(facts: Facts, file: str, block: ast.If, name: str) -> Finding:
    text = pastes.text_of(facts, file, block.test)
    return Finding(
        NAMES[0], "error", None, (),
        f"`if {text}` decided once, as the model was built: {name} is an input, which has no value and equals no "
        f"number, so that it holds for no batch",
        _where(facts, file, block)
        or f"keras.ops.where(keras.ops.equal({name}, ...), ..., ...) decides for each sample",
        file, block.lineno, evidence=(f"line {block.lineno}: {facts.line(file, block.lineno)}",),
    )  # fmt: skip


def _where(facts: Facts, file: str, block: ast.If) -> str:
    """`y = keras.ops.where(...)`, where both ways give one name its value."""
    one, other = assigned(block.body), assigned(block.orelse)
    keras = pastes.module(facts, file, "keras")
    tf = pastes.module(facts, file, "tensorflow")
    if one is None or other is None or one[0] != other[0]:
        return ""
    test = block.test
    assert isinstance(test, ast.Compare)
    ops = f"{tf}.keras.ops" if tf and not keras else f"{keras or 'keras'}.ops"
    sides = ", ".join(pastes.text_of(facts, file, part) for part in (test.left, test.comparators[0]))
    same = f"{ops}.equal({sides})"
    ways = ", ".join(pastes.text_of(facts, file, part) for part in (one[1], other[1]))
    indent = pastes.indent(facts, file, block.lineno)
    lines = [f"{indent}import keras"] * (not keras and not tf) + [f"{indent}{one[0]} = {ops}.where({same}, {ways})"]
    last = block.end_lineno or block.lineno
    return "" if indent is None else pastes.written(Edit(file, block.lineno, last, tuple(lines)))
