"""A line that waits inside Keras for an item of a queue, as `next(enqueuer.get())` of an `OrderedEnqueuer` does.

Keras' enqueuers go through their data once; `get()` then waits until somebody calls `stop()`.
"""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of

_ENQUEUER = "Enqueuer"


def sentence(waits: dict[str, Any], ended: bool) -> str:
    """What is known of a wait inside Keras, as one or two sentences.

    Args:
      waits: As `program.waiting.KerasWait`.
      ended: Whether the call went on later.
    """
    name = f"{waits['owner']}.{waits['method']}" if waits["owner"] else waits["method"]
    text = f" It is {name} of Keras that {'waited' if ended else 'waits'}"
    if not waits["ended"]:
        return text
    if waits["owner"].endswith(_ENQUEUER):
        return (
            f"{text}: its thread has given each batch once and ended, and get() goes on to wait until stop() is called"
        )
    return f"{text}, and its thread has ended: nobody puts one in any more"


def fix(facts: Facts, file: object, line: object, waits: dict[str, Any]) -> str:
    """A loop that ends with the enqueuer's data, or words; "" where no enqueuer waits."""
    if not waits or not waits["owner"].endswith(_ENQUEUER) or not isinstance(file, str) or not isinstance(line, int):
        return ""
    name = _enqueuer(facts, file, line)
    found = _once(facts, file, line, name) if name and waits["ended"] else ""
    called = name or "enqueuer"
    return found or (
        f"end that loop after the number of batches, and call {called}.stop() then (in a `finally:` of the generator)"
        if waits["ended"]
        else f"{called}.stop()  # ends it; else whoever feeds {called} has to put an item in: see why it does not"
    )


def _enqueuer(facts: Facts, file: str, line: int) -> str:
    """The name of the enqueuer that a line asks, `next(enqueuer.get())` or `next(batches)`; "" where it is not seen."""
    function = pastes.source(facts, file).function(line)
    statement = pastes.source(facts, file).statement(line)
    if function is None or statement is None:
        return ""
    here = list(pastes.walk(statement.iter if isinstance(statement, ast.For) else statement, ast.expr))
    read = {dotted(one) for one in here if isinstance(one, (ast.Name, ast.Attribute))}
    kept = [
        one.value for one in code.own_nodes(function)
        if isinstance(one, ast.Assign) and read & {ast.unparse(target) for target in one.targets}
    ]  # fmt: skip
    asked = [
        dotted(one.func.value) for one in [*here, *kept]
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "get"
    ]  # fmt: skip
    return asked[0] if len(set(asked)) == 1 else ""


def _once(facts: Facts, file: str, line: int, name: str) -> str:
    """The endless loop around a line, with an end to it after as many batches as the enqueuer's data has."""
    own = pastes.source(facts, file)
    function, statement = own.function(line), own.statement(line)
    made = [
        one.value for one in pastes.walk(facts.tree(file), ast.Assign)
        if name in [ast.unparse(target) for target in one.targets] and isinstance(one.value, ast.Call)
        and pastes.last_name(one.value.func).endswith(_ENQUEUER) and one.value.args
    ]  # fmt: skip
    if len(made) != 1 or function is None or statement is None:
        return ""
    data = own.text(made[0].args[0])
    if not dotted(made[0].args[0]) or ("." not in name and own.function(made[0].lineno) is not function):
        return ""
    used = any(isinstance(one, ast.Name) and one.id == "_" for one in code.own_nodes(function))
    why = f"# {name} gives each batch once; for more passes: .repeat() of the dataset"
    if isinstance(statement, ast.For) and statement.lineno == line:
        asked = statement.target
        target = f"({own.text(asked)})" if isinstance(asked, ast.Tuple) else own.text(asked)
        ended = f"zip(range(len({data})), {own.text(statement.iter)})"
        edit = pastes.replaced(facts, file, {asked: f"_, {target}", statement.iter: ended})
        return pastes.written(edit) if not used and edit is not None else ""
    loops = [
        one for one in code.own_nodes(function)
        if isinstance(one, ast.While) and one.lineno < line <= (one.end_lineno or 0)
    ]  # fmt: skip
    if len(loops) != 1 or not isinstance(loops[0].test, ast.Constant) or not loops[0].test.value or loops[0].orelse:
        return ""
    loop = loops[0]
    if used or loop.body[0].lineno == loop.lineno:
        return ""
    blanks = indent_of(own.lines[loop.lineno - 1])
    return pastes.written(Edit(file, loop.lineno, loop.lineno, (f"{blanks}for _ in range(len({data})):  {why}",)))
