"""Bodies that seem to need no Python, tried as graph code as a recording ends: the lines of the finding `graduate`.

What is tried is what is pasted: the user's file as it was recorded, with the edits made. Only bodies run that read
nothing from outside and call nothing but NumPy's and TensorFlow's functions: no code of the user's does anything else.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyfunc_debug.api.graph_trial import Given, Trial, said
from pyfunc_debug.api.isolation import random_put_back
from pyfunc_debug.api.made_inputs import array_like
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.api.replay import whole_inputs
from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, applied
from pyfunc_debug.doctor.failures.reading.source import Function, Source
from pyfunc_debug.doctor.rules import needless_python
from pyfunc_debug.errors import NotKeptError
from pyfunc_debug.records import Call, Node

BUDGET_NS = 2_000_000_000
"""For all bodies of a recording: docs/costs.md."""
_SHARE_TIMED = 4
"""The time is measured in this part of the budget: one by it."""
_MOST_CALLS = 200
_FASTER, _WON = 1.2, 0.8
"""How much faster graph code must be, and in how many rounds: the machine does other things, too."""
_TWICE = 20
_RUNS = 12
"""How often a body runs for an input that is also changed and differentiated."""
_NEAR = 1000
_MOST_ELEMENTS = 10_000_000


def tried(recording: Recording, facts: Facts, wall_ns: int) -> Iterator[tuple[Node, dict[str, Any]]]:
    """Nodes whose lines were tried, with what was seen.

    Args:
      recording: It has ended as far as calls go.
      facts: The same, for the rules.
      wall_ns: How long was recorded.
    """
    import tensorflow as tf

    if not tf.executing_eagerly():
        return
    until = time.monotonic_ns() + BUDGET_NS
    for group, edits in needless_python.worth_trying(facts, wall_ns):
        left = until - time.monotonic_ns()
        calls = facts.calls_of(group)
        runs = left // (1 + calls.total_ns // calls.count)
        if runs < _RUNS * 2:
            return
        node = group[0]
        pair = _functions(facts, node, edits)
        given = _given(recording, facts, group, int(min(_MOST_CALLS, runs // 2)))
        if pair is None or not given:
            continue
        body, graph_code, definition = pair
        eager = node.kind == "py_function"
        casts = node.tout if needless_python.is_cast(node, len(edits) > 1 or body is not graph_code) else ()
        twice = int(min(_TWICE, max(1, runs // _RUNS // 2)))
        trial = Trial(
            tf, body, eager, node, given, definition, twice, time.monotonic_ns() + left - left // _SHARE_TIMED
        )
        try:
            with random_put_back():
                why = trial.compare(lambda file, line: (file, line), graph_code, casts)
                timed = None if why else trial.measure_alone(left // _SHARE_TIMED)
        except Exception:  # the body's own: it does not take such inputs, or is not as its source reads
            continue
        yield node, _noticed(trial, why, timed, given, eager)


def _noticed(trial: Trial, why: str, timed: Any, given: Sequence[Given], eager: bool) -> dict[str, Any]:
    recorded = given[0].outputs is not None
    on = f"{trial.calls:,} call{'' if trial.calls == 1 else 's'}"
    if not recorded:
        on = f"{on.replace('call', 'input')} like those of recorded calls, whose values were not kept"
    speeds = () if timed is None else ((timed, "alone"),)
    text = why or said(
        on, trial.difference, trial.changed, trial.gradients if eager else None, sorted(trial.new_gradients), speeds
    )
    pays = timed is not None and timed.ratio >= _FASTER and timed.won >= _WON
    return {"pays": pays, "recorded": recorded, "said": text}


# -- the functions ----------------------------------------------------------------------------------------------------


def _functions(facts: Facts, node: Node, edits: Sequence[Edit]) -> tuple[Any, Any, Function] | None:
    """The body as it is and as it is with the edits, and its syntax tree."""
    definition = facts.function(node)
    if definition is None or node.file is None:
        return None
    lines = facts.source(node.file)
    own = [one for one in edits if one.file == node.file]
    after = Source(applied(own, lines))
    body = made(Source(list(lines)).tree, definition, node.file)
    if isinstance(definition, ast.Lambda):
        given = ast.unparse(definition.args)
        there = [one for one in pastes.walk(after.tree, ast.Lambda) if ast.unparse(one.args) == given]
        same = any(ast.unparse(one) == ast.unparse(definition) for one in there)
        there = [one for one in there if same or one.lineno == definition.lineno]
        graph_code = body if same else made(after.tree, there[0], node.file) if len(there) == 1 else None
        return (body, graph_code, definition) if body is not None and graph_code is not None else None
    if len(edits) == 1:  # only the call is another one
        return (body, body, definition) if body is not None else None
    name = getattr(definition, "name", "")
    others = [one for one in pastes.walk(after.tree, ast.FunctionDef) if one.name == name]
    graph_code = made(after.tree, others[0], node.file) if len(others) == 1 else None
    return (body, graph_code, definition) if body is not None and graph_code is not None else None


def made(tree: ast.Module, definition: Function, file: str, modules: Sequence[str] = needless_python.COMPUTES) -> Any:
    """A function of a file, with nothing around it but what the file imports of some modules; None where that fails."""
    names: dict[str, Any] = {}
    found = [one for one in code.all_nodes(tree) if isinstance(one, (ast.Import, ast.ImportFrom))]
    imports = [part for one in sorted(found, key=lambda one: one.lineno) for part in _computing(one, modules)]
    if isinstance(definition, ast.Lambda):
        body: list[ast.stmt] = [ast.Assign([ast.Name("made", ast.Store())], definition)]
    elif isinstance(definition, ast.FunctionDef):
        body = [definition]
    else:
        return None
    module = ast.fix_missing_locations(ast.Module([*imports, *body], []))
    try:
        exec(compile(module, file, "exec"), names)
    except Exception:
        return None
    return names.get("made" if isinstance(definition, ast.Lambda) else definition.name)


def _computing(statement: ast.Import | ast.ImportFrom, modules: Sequence[str]) -> list[ast.stmt]:
    """What a statement imports of modules that only compute."""
    if isinstance(statement, ast.ImportFrom):
        return [statement] if not statement.level and (statement.module or "").partition(".")[0] in modules else []
    names = [one for one in statement.names if one.name.partition(".")[0] in modules]
    return [ast.Import(names)] if names else []


# -- inputs -----------------------------------------------------------------------------------------------------------


def _given(recording: Recording, facts: Facts, group: Sequence[Node], most: int) -> list[Given]:
    """Inputs of recorded calls, evenly spread; where their values were not kept, others that are like them."""
    found: list[Given] = []
    for number in _numbers(facts, group, most, " AND EXISTS (SELECT 1 FROM value WHERE call = c.id AND kept = 'full')"):
        call = recording.call(number)
        full = all(value.kept == "full" for value in call.outputs) and bool(call.outputs)
        try:
            arrays, outputs = whole_inputs(call), [one.array() for one in call.outputs] if full else None
        except NotKeptError:
            outputs = None
        if outputs is not None:
            found.append(Given(f"in call #{call.id}", arrays, outputs))
    if found:
        return found
    generator = np.random.default_rng(0)
    made = (_like(recording.call(number), generator) for number in _numbers(facts, group, max(1, most // 4)))
    return [one for one in made if one is not None]


def _numbers(facts: Facts, group: Sequence[Node], most: int, condition: str = "") -> list[int]:
    """Calls, evenly spread over the recording; those that meet a condition, as far as one is near."""
    nodes = ", ".join(str(node.id) for node in group)
    known = facts.calls_of(group)
    first, last = known.first or 0, known.last or 0
    found = []
    for step in range(most):
        at = first + (last - first) * step // max(1, most - 1)
        row = facts.reader.rows(
            f"SELECT id FROM call c WHERE id BETWEEN ? AND ? AND node IN ({nodes}) AND kind = 'forward' "
            f"AND status = 'ok'{condition} ORDER BY id LIMIT 1", (at, at + _NEAR),
        )  # fmt: skip
        found += [number for (number,) in row]
    return list(dict.fromkeys(found))


def _like(call: Call, generator: np.random.Generator) -> Given | None:
    arrays = [array_like(value, generator) for value in call.inputs]
    known = [one for one in arrays if one is not None]
    if not known or len(known) < len(arrays) or sum(one.size for one in known) > _MOST_ELEMENTS:
        return None
    return Given(f"for an input like that of call #{call.id}", known)


__all__ = ["BUDGET_NS", "made", "tried"]
