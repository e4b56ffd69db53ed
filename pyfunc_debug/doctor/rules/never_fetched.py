"""A py_func in a graph of TensorFlow 1 whose result nobody asks for: a session runs what is fetched, and its inputs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.results_read import Result, result_of
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.records import Finding, Node

NAMES = ("never-fetched",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line."""
    for group, result in unread(facts):
        node, name = group[0], facts.name(group[0])
        line = result.statement.lineno
        inside = _idle_with(result)
        what = f"nothing reads its result `{result.name}`" if result.name else "nothing takes its result"
        if result.looks:
            what += " but to look at the graph's tensor"
        if inside is not None:
            what = f"the block at line {inside.lineno} makes no op, so that nothing waits for `{result.name}`"
        yield Finding(
            NAMES[0], "warning", node.id, (),
            f"{name} never ran: a session runs what is fetched and what that needs, and {what}",
            _waited_for(facts, result) or f"session.run([..., {result.name or 'its result'}])  # fetch it",
            result.file, line, several(one.id for one in group), (),
        )  # fmt: skip


def unread(facts: Facts) -> Iterator[tuple[list[Node], Result]]:
    """Nodes of graphs of TensorFlow 1 that never ran, and that nothing reads."""
    ended = facts.meta.get("ended")
    if not facts.over or (isinstance(ended, dict) and ended.get("error") is not None):
        return
    if (facts.meta.get("dropped") or {}).get("calls"):
        return
    for group in facts.lines:
        made = facts.functions.get(group[0].function or 0)
        if made is None or made.kind != "graph" or facts.calls_of(group).count:
            continue
        result = result_of(facts, group[0])
        if result is not None and (not result.reads or _idle_with(result) is not None):
            yield group, result


def _idle_with(result: Result) -> ast.With | None:
    """`with tf.control_dependencies([y]):` around lines that make no op."""
    if len(result.reads) != 1:
        return None
    for one in result.source.around(result.reads[0]):
        if isinstance(one, ast.With):
            held = any(result.reads[0] in ast.walk(item.context_expr) for item in one.items)
            named = any("control_dependencies" in ast.unparse(item.context_expr) for item in one.items)
            plain = all(
                isinstance(part, (ast.Return, ast.Assign)) and isinstance(part.value, ast.Name) for part in one.body
            )
            return one if held and named and plain else None
    return None


def _waited_for(facts: Facts, result: Result) -> str:
    """Lines that let something that is run wait for it; "" where nothing is found that is."""
    tf = dotted(result.call.func).rpartition(".")[0]
    if not tf:
        return ""
    idle = _idle_with(result)
    if idle is not None:
        values = [part.value for part in idle.body if isinstance(part, (ast.Return, ast.Assign)) and part.value]
        pieces: dict[ast.expr, str] = {one: f"{tf}.identity({result.source.text(one)})" for one in values}
        return pastes.all_replaced(facts, result.file, pieces)
    first, last = result.statement.lineno, result.statement.end_lineno or result.statement.lineno
    lines = result.source.lines[first - 1 : last]
    indent = indent_of(lines[0])
    carrier = _carrier(result)
    if carrier is not None:
        given = result.name or result.source.text(result.call)
        kept = lines if result.name else []
        waits = f"{indent}with {tf}.control_dependencies({_as_list(result, given)}):"
        return pastes.written(
            Edit(result.file, first, last, (*kept, waits, f"{indent}    {carrier} = {tf}.identity({carrier})"))
        )
    scope = result.scope
    if isinstance(scope, ast.Module) or result.name is None or result.statement not in scope.body:
        return ""
    returned = scope.body[-1]
    alone = [one for one in code.own_nodes(scope) if isinstance(one, ast.Return)] == [returned]
    value = returned.value if isinstance(returned, ast.Return) and alone else None
    if value is None or isinstance(value, (ast.Tuple, ast.List, ast.Dict)):
        return ""
    last = returned.end_lineno or returned.lineno
    indent = indent_of(result.source.lines[returned.lineno - 1])
    waits = f"{indent}with {tf}.control_dependencies({_as_list(result, result.name)}):"
    inner = f"{indent}    return {tf}.identity({result.source.text(value)})"
    return pastes.written(Edit(result.file, returned.lineno, last, (waits, inner)))


def _carrier(result: Result) -> str | None:
    """An input of the body that later lines read: these can wait."""
    inp, end = pastes.argument(result.call, 1, "inp"), result.statement.end_lineno or result.statement.lineno
    for one in inp.elts if isinstance(inp, (ast.List, ast.Tuple)) else ():
        if not isinstance(one, ast.Name):
            continue
        later = [
            other for other in pastes.walk(result.scope, ast.Name) if other.id == one.id and other.lineno > end
        ]  # fmt: skip
        if later and all(isinstance(other.ctx, ast.Load) for other in later) and _made_there(result, one.id):
            return one.id
    return None


def _made_there(result: Result, name: str) -> bool:
    """Whether a name is the scope's own and not a placeholder, which a session is fed by."""
    stores = [
        one for one in pastes.walk(result.scope, ast.Assign)
        if any(isinstance(target, ast.Name) and target.id == name for target in one.targets)
    ]  # fmt: skip
    if isinstance(result.scope, ast.FunctionDef):
        own = [one.arg for one in result.scope.args.args]
        return name in own or bool(stores)
    made = [dotted(one.value.func).rpartition(".")[2] for one in stores if isinstance(one.value, ast.Call)]
    return bool(stores) and len(made) == len(stores) and not {"placeholder", "get_variable", "Variable"} & set(made)


def _as_list(result: Result, text: str) -> str:
    """The result as a list of what to wait for: py_func gives a list where Tout is one, an op where it is empty."""
    tout = pastes.argument(result.call, 2, "Tout")
    many = isinstance(tout, (ast.List, ast.Tuple)) and bool(tout.elts) and result.whole
    return text if many else f"[{text}]"
