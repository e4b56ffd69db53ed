"""One generator that is given to each pass over a dataset: the first pass uses it up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.rules.ran_out import ended_runs, steps_of_keras, until
from pyfunc_debug.records import Finding, Node

_YIELDS = (ast.Yield, ast.YieldFrom)


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
    return bool(call.args) and bool(_named(call.args[0]))


def _named(given: ast.expr | None) -> str:
    """`self.rows` of `lambda: self.rows`."""
    return dotted(given.body) if isinstance(given, ast.Lambda) and not given.args.args else ""


def _made(tree: ast.AST | None, given: ast.expr | None) -> str:
    """What makes what a lambda returns: its name was given a generator."""
    name = _named(given)
    for one in pastes.walk(tree, ast.Assign) if name else ():
        if name not in [ast.unparse(target) for target in one.targets]:
            continue
        if isinstance(one.value, ast.GeneratorExp):
            return f"lambda: {ast.unparse(one.value)}"
        if isinstance(one.value, ast.Call):
            plain = not one.value.args and not one.value.keywords
            return ast.unparse(one.value.func) if plain else f"lambda: {ast.unparse(one.value)}"
    return ""


def of_passes(facts: Facts, told: set[str]) -> Iterator[Finding]:
    """One finding a generator of which passes after the first got nothing: of a repeat, or of loops in several lines.

    Args:
      facts: The recording.
      told: Tokens of nodes of which a finding says so already.
    """
    for node, _ in facts.generators.values():
        loops = [one for one in facts.meta.get("inputs") or [] if _reads(one, node)]
        repeats = any("Repeat" in stage["kind"] for one in loops for stage in one["stages"])
        again = node.token not in told and (repeats or any(one.get("empty") for one in loops))
        found = pastes.dataset_call(facts, node) if again else None
        counts = _elements(facts, node) if found is not None else []
        if found is None or len(counts) < 2 or not counts[0] or any(counts[1:]):
            continue
        file, call = found
        value = _assigned(facts.tree(file), _named(call.args[0]) if call.args else "")
        made = _made(facts.tree(file), call.args[0]) if value is not None else ""
        if value is None or not made or not _is_iterator(facts.tree(file), value):
            continue
        edit = pastes.replaced(facts, file, {call.args[0]: made})
        repeated = ", also for each of a repeat" if repeats else ""
        empty = f"{len(counts) - 1} of {len(counts)} passes over this dataset" if len(counts) > 2 else "The second pass"
        yield Finding(
            "empty-epochs", "error", None, (),
            f"{empty} got no element at all. Dataset.from_generator calls its function once a pass{repeated}, and that "
            f"has to make a new iterator: it gave {_named(call.args[0])}, used up by the first pass",
            pastes.written(edit), file, call.lineno,
            evidence=(
                f"{counts[0]:,} elements in the first pass", f"line {value.lineno}: {facts.line(file, value.lineno)}",
            ),
        )  # fmt: skip


def _reads(loop: dict[str, Any], node: Node) -> bool:
    """Whether a loop's elements come from a node."""
    return any(node.token in stage["tokens"] for stage in loop["stages"])


def _elements(facts: Facts, node: Node) -> list[int]:
    """How many elements a generator gave in each pass, in order; nothing where not all calls are known."""
    if facts.counted_only([node.id]):
        return []
    rows = facts.reader.rows(
        "SELECT sum(EXISTS (SELECT 1 FROM value o WHERE o.call = c.id AND o.role = 'output')), "
        "max(c.status != 'ok') FROM call c JOIN value v ON v.call = c.id AND v.role = 'input' AND v.position = 0 "
        "WHERE c.node = ? AND c.kind = 'forward' GROUP BY v.min ORDER BY min(c.id)",
        (node.id,),
    )
    return [] if any(failed for _, failed in rows) else [elements for elements, _ in rows]


_ITERATORS = {"iter", "map", "filter", "zip", "enumerate", "reversed", "chain", "islice", "from_iterable"}


def _is_iterator(tree: ast.AST | None, value: ast.expr) -> bool:
    """Whether an expression makes an iterator, which one pass uses up."""
    if isinstance(value, ast.GeneratorExp):
        return True
    name = pastes.last_name(value.func) if isinstance(value, ast.Call) else ""
    own = [one for one in pastes.walk(tree, ast.FunctionDef) if one.name == name]
    return name in _ITERATORS or (len(own) == 1 and any(isinstance(one, _YIELDS) for one in own_nodes(own[0])))


def _assigned(tree: ast.AST | None, name: str) -> ast.expr | None:
    """What a name is given, if it is assigned once."""
    found = [
        one.value for one in pastes.walk(tree, ast.Assign)
        if name and name in [ast.unparse(target) for target in one.targets]
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


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
