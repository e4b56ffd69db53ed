"""One generator that is given to each pass over a dataset: the first pass uses it up."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.rules.ran_out import ended_runs, steps_of_keras, until
from pyfunc_debug.records import Finding


def maker(facts: Facts, file: str | None, line: int | None) -> tuple[str, ast.expr | None]:
    """What makes the iterator that a lambda given to from_generator returns, to give instead; and that lambda.

    Args:
      facts: The recording.
      file: Where the dataset is used.
      line: The line of its loop.
    """
    tree = facts.tree(file)
    calls = _calls(tree)
    if len(calls) > 1:  # that of the function with the loop
        near = pastes.around(tree, line or 0, ast.FunctionDef)
        calls = [one for one in calls if near and one in ast.walk(near[0])] or calls
    if len(calls) > 1:  # what gives one iterator again and again
        calls = [one for one in calls if _kept(one)]
    given = calls[0].args[0] if len(calls) == 1 and calls[0].args else None
    made = _made(tree, given)
    return (made, given) if made else ("the_function", None)


def _calls(tree: ast.AST | None) -> list[ast.Call]:
    return [one for one in pastes.walk(tree, ast.Call) if ast.unparse(one.func).endswith("from_generator")]


def _kept(call: ast.Call) -> bool:
    """`from_generator(lambda: generator, ...)`."""
    return bool(call.args) and isinstance(call.args[0], ast.Lambda) and isinstance(call.args[0].body, ast.Name)


def _made(tree: ast.AST | None, given: ast.expr | None) -> str:
    """What makes what a lambda returns: its name was given a generator."""
    name = given.body.id if isinstance(given, ast.Lambda) and isinstance(given.body, ast.Name) else None
    for one in pastes.walk(tree, ast.Assign) if name is not None else ():
        if name not in [ast.unparse(target) for target in one.targets]:
            continue
        if isinstance(one.value, ast.GeneratorExp):
            return f"lambda: {ast.unparse(one.value)}"
        if isinstance(one.value, ast.Call):
            plain = not one.value.args and not one.value.keywords
            return ast.unparse(one.value.func) if plain else f"lambda: {ast.unparse(one.value)}"
    return ""


def of_keras(facts: Facts) -> Iterator[Finding]:
    """One finding a line of `fit` or `evaluate` whose later passes got no batch: the data were at their end."""
    ended = ended_runs(facts)
    passes = steps_of_keras(facts)[0] if ended else {}
    for (file, line), traces in passes.items():
        empty = sum(batches == 0 for runs in traces.values() for batches in until(runs, ended)[1:])
        calls = [one for one in _calls(facts.tree(file)) if _kept(one)]
        pieces = {one.args[0]: made for one in calls if (made := _made(facts.tree(file), one.args[0]))}
        if not empty or not pieces:
            continue
        names = " and ".join(dict.fromkeys(ast.unparse(one.body) for one in pieces if isinstance(one, ast.Lambda)))
        yield Finding(
            "empty-epochs", "error", None, (),
            f"{empty} passes of Keras over its data got no batch at all. Dataset.from_generator calls its function "
            f"once a pass, and that has to make a new iterator: it gave {names}, used up by the first pass",
            pastes.all_replaced(facts, file, pieces), file, line,
            evidence=tuple(f"line {one.lineno}: {facts.line(file, one.lineno)}" for one in calls[:3]),
        )  # fmt: skip
