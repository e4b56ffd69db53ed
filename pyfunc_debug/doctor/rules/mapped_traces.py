"""`tf.vectorized_map` in eager code, again and again: each call traces its function, and a tf.function does it once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding, GraphTrace

NAMES = ("function-in-loop",)
_PFOR = "pfor.f"
"""What TensorFlow makes in each such call outside of a graph (python/ops/parallel_for/control_flow_ops.py)."""
_LEAST = 10
_LOOPS = (ast.For, ast.While)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding, of the one line whose calls were traced."""
    for function in facts.functions.values():
        if function.name != _PFOR or function.origin == "user":
            continue
        traces = [one for one in facts.traces if one.function == function.id and one.parent is None]
        sites = {site for site in pastes.run_sites(facts, function.id) if facts.source(site[0])}
        if len(traces) >= _LEAST and len(sites) == 1:
            yield _finding(facts, traces, *next(iter(sites)))


def _finding(facts: Facts, traces: list[GraphTrace], file: str, line: int) -> Finding:
    took = sum(one.duration_ns for one in traces) / 1e6
    source = pastes.source(facts, file)
    statement = source.statement(line)
    calls = [
        one for one in pastes.walk(statement, ast.Call) if pastes.last_name(one.func) in ("vectorized_map", "pfor")
    ]  # fmt: skip
    name = pastes.last_name(calls[0].func) if calls else "vectorized_map"
    fix = _once(facts, file, statement, calls[0]) if len(calls) == 1 and statement is not None else ""
    return Finding(
        NAMES[0], "warning", None, (),
        f"tf.{name} traced its function {len(traces):,} times, once in each call: {took:,.0f} ms together. Outside of "
        "a tf.function it makes a new graph each time; inside of one that is traced once, the graph is kept",
        fix or f"call a tf.function, made once, which calls tf.{name}",
        file, line,
    )  # fmt: skip


def _once(facts: Facts, file: str, statement: ast.stmt, call: ast.Call) -> str:
    """A tf.function around the map, made above the outermost loop of its function, and called in its place."""
    source, tf = pastes.source(facts, file), pastes.module(facts, file, "tensorflow")
    loops = []
    for one in source.around(statement):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            break
        loops += [one] if isinstance(one, _LOOPS) else []
    if tf is None or not loops or len(call.args) != 2 or not isinstance(call.args[0], (ast.Name, ast.Attribute)):
        return ""
    if any(one.arg is None for one in call.keywords):
        return ""
    text = source.text
    rest = "".join(f", {one.arg}={text(one.value)}" for one in call.keywords)
    made = f"mapped = {tf}.function(lambda elems: {text(call.func)}({text(call.args[0])}, elems{rest}))"
    return pastes.written(
        pastes.above(facts, file, loops[-1].lineno, made),
        pastes.replaced(facts, file, {call: f"mapped({text(call.args[1])})"}),
    )
