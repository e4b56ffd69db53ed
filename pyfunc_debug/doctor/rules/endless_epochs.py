"""`fit` on data that never end, without a number of steps: its first epoch goes on for ever.

See pyfunc_debug/doctor/failures/models/endless_epochs for what is said while it goes on; this is for all other ends.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets.shuffled_flows import FLOWS
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.doctor.generators.generator_source import is_endless
from pyfunc_debug.doctor.rules.ran_out import steps_of_keras
from pyfunc_debug.records import Finding

NAMES = ("endless-epoch",)
_STEPS = 100
"""In a paste, where nothing says how many batches an epoch has."""
_LEAST = 5
"""Steps of a line, of which all are of one epoch."""
_DATA = {"fit": ("steps_per_epoch", "validation_data", "validation_steps"), "evaluate": ("steps", "", "")}


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line of `fit` or `evaluate`: what was said while it went on, else what the source says."""
    told = list(failures(facts, NAMES))
    yield from told
    for (file, line), traces in steps_of_keras(facts)[0].items():
        calls = [
            one for one in pastes.around(facts.tree(file), line, ast.Call)
            if isinstance(one.func, ast.Attribute) and one.func.attr in _DATA
        ]  # fmt: skip
        count = sum(map(len, traces.values()))
        if told or len(calls) != 1 or count < _LEAST or any("stop_training" in one for one in facts.code(file)):
            continue
        call = calls[0]
        method = call.func.attr  # type: ignore[attr-defined]
        steps, data_name, data_steps = _DATA[method]
        named = {one.arg: one.value for one in call.keywords}
        given = call.args[0] if call.args else named.get("x")
        for data, word in ((given, steps), (named.get(data_name), data_steps)):
            if data is None or word in named or None in named:
                continue
            found = _endless(facts, file, data, line)
            if found is not None:
                yield _finding(facts, file, call, method, word, count, *found)
                break


def _finding(
    facts: Facts, file: str, call: ast.Call, method: str, word: str, count: int, why: str, length: str
) -> Finding:
    own = pastes.source(facts, file)
    fix = pastes.all_replaced(facts, file, {call: own.with_argument(call, f"{word}={length or _STEPS}")})
    chosen = "" if length else f". Put your own number in the place of {_STEPS}"
    return Finding(
        NAMES[0], "error", None, (),
        f"{method} in line {call.lineno} has no {word}=, and {why}: its epoch never ends. It made {count:,} steps "
        f"here{chosen}",
        fix or f"say how many batches an epoch has: {word}={length or _STEPS} in line {call.lineno}",
        file, call.lineno, confidence="likely",
    )  # fmt: skip


def _endless(facts: Facts, file: str, data: ast.expr, line: int, iterated: bool = False) -> tuple[str, str] | None:
    """Why data never end, and what gives the number of their batches, "" for nothing; None where they may end."""
    tree = facts.tree(file)
    for _ in range(20):  # from the last call of a chain to what makes the data
        if isinstance(data, ast.Name):
            made = [
                one.value for one in pastes.walk(tree, ast.Assign)
                if one.lineno <= line and [ast.unparse(target) for target in one.targets] == [data.id]
            ]  # fmt: skip
            if not made or ast.dump(made[-1]) == ast.dump(data) or len(made) > 1:
                return None
            data, line = made[-1], made[-1].lineno
        elif isinstance(data, ast.Call) and isinstance(data.func, ast.Attribute):
            if data.func.attr in FLOWS:
                return (f"what {data.func.attr} gives begins again at its end", "") if iterated else None
            if data.func.attr == "from_generator":
                return _of_function(facts, file, data.args[0], line) if data.args else None
            if data.func.attr not in ("map", "prefetch", "batch", "shuffle", "unbatch", "padded_batch", "with_options"):
                return None
            data = data.func.value
        elif isinstance(data, ast.Call) and isinstance(data.func, ast.Name):
            return _of_function(facts, file, data.func, line)
        else:
            return None
    return None


def _of_function(facts: Facts, file: str, given: ast.expr, line: int) -> tuple[str, str] | None:
    tree = facts.tree(file)
    inside = given.body if isinstance(given, ast.Lambda) else given
    if isinstance(inside, ast.Call) and isinstance(inside.func, ast.Name):
        inside = inside.func
    if not isinstance(inside, ast.Name):
        if isinstance(inside, ast.Call) and isinstance(inside.func, ast.Attribute) and inside.func.attr in FLOWS:
            return f"what {inside.func.attr} gives begins again at its end", ""
        return None
    functions = [one for one in pastes.walk(tree, ast.FunctionDef) if one.name == inside.id]
    if len(functions) == 1 and is_endless(functions[0]):
        return f"{inside.id} yields for ever", ""
    found = _endless(facts, file, inside, line, iterated=True) if isinstance(given, ast.Lambda) else None
    return found if found is None else (found[0], f"len({inside.id})")
