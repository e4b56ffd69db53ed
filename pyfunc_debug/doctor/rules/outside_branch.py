"""A py_function made outside of the `tf.cond` whose branch reads its result: it runs whichever branch is taken."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.results_read import Result, result_of
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.records import Finding, Node

NAMES = ("outside-branch",)
_BRANCHES = ("cond", "case", "switch_case")
Branch = ast.Lambda | ast.FunctionDef


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call of `tf.cond`: two of them may read two results."""
    found: dict[tuple[str, int, int], list[tuple[list[Node], Result, Branch]]] = {}
    for group in facts.lines:
        made = facts.functions.get(group[0].function or 0)
        if made is None or made.kind == "eager" or not facts.calls_of(group).count:
            continue
        result = result_of(facts, group[0])
        read = _branch(result) if result is not None else None
        if result is not None and read is not None:
            key = (result.file, read[0].lineno, read[0].col_offset)
            found.setdefault(key, []).append((group, result, read[1]))
    for (file, line, _), parts in found.items():
        call = next(iter(_branch(parts[0][1]) or ()))
        groups = [group for group, _, _ in parts]
        names = " and ".join(dict.fromkeys(facts.name(group[0]) for group in groups))
        results = " and ".join(f"`{result.name}`" for _, result, _ in parts)
        calls, several_parts = facts.calls_of([one for group in groups for one in group]), len(parts) > 1
        assert isinstance(call, ast.Call)
        where = facts.source_line(file, line)
        yield Finding(
            NAMES[0], "warning", groups[0][0].id, () if calls.first is None else (calls.first,),
            f"{names} {'run' if several_parts else 'runs'} whichever branch the {dotted(call.func)} at {where} takes: "
            f"{results} {'are' if several_parts else 'is'} made outside of it, and read by one branch only "
            f"({calls.count:,} calls)",
            _inside(facts, [(result, branch) for _, result, branch in parts]) or "call py_function in that branch",
            file, parts[0][1].statement.lineno, several(one.id for group in groups for one in group), (),
        )  # fmt: skip


def _branch(result: Result) -> tuple[ast.Call, Branch] | None:
    """The `tf.cond` of which one branch, and nothing else, reads a result; and that branch."""
    found = {}
    for name in result.reads:
        read = _around(result, name)
        if read is None:
            return None
        found[id(read[1])] = read
    return next(iter(found.values())) if len(found) == 1 else None


def _around(result: Result, name: ast.Name) -> tuple[ast.Call, Branch] | None:
    for one in result.source.around(name):
        if one is result.scope:
            return None
        if isinstance(one, ast.Lambda):
            call = next((part for part in result.source.around(one) if isinstance(part, ast.Call)), None)
            return (call, one) if call is not None and _is_cond(call) else None
        if isinstance(one, ast.FunctionDef):
            uses = [
                part for part in pastes.walk(result.scope, ast.Name)
                if part.id == one.name and isinstance(part.ctx, ast.Load)
            ]  # fmt: skip
            calls = [next((p for p in result.source.around(use) if isinstance(p, ast.Call)), None) for use in uses]
            only = calls[0] if len(calls) == 1 else None
            given = only is not None and _is_cond(only) and uses[0] is not only.func
            return (only, one) if only is not None and given and not one.decorator_list else None
    return None


def _is_cond(call: ast.Call) -> bool:
    head, _, last = dotted(call.func).rpartition(".")
    return last in _BRANCHES and bool(head) and len(call.args) + len(call.keywords) > 1


def _inside(facts: Facts, parts: list[tuple[Result, Branch]]) -> str:
    """The statements as functions, called where the branches read the results."""
    pieces: dict[ast.expr, str] = {}
    edits: list[Edit | None] = []
    for result, branch in parts:
        statement, looks = result.statement, [one for one in result.looks if "set_shape" in ast.unparse(one)]
        block = getattr(result.source.parent(statement), "body", [])
        if statement not in block or len(looks) != len(result.looks):
            return ""
        place = block.index(statement)
        kept = [statement, *looks]
        if list(block[place : place + len(kept)]) != kept:
            return ""
        last = kept[-1].end_lineno or kept[-1].lineno
        lines = result.source.lines[statement.lineno - 1 : last]
        indent, maker = indent_of(lines[0]), f"make_{result.name}"
        if looks or not result.whole:
            inner = [f"    {line}" if line.strip() else line for line in lines]
            inner.append(f"{indent}    return {result.name}")
        else:
            call = result.source.text(result.call)
            inner = [f"{indent}    return {call}"]
        edits.append(Edit(result.file, statement.lineno, last, (f"{indent}def {maker}():", *inner)))
        if len(result.reads) == 1:
            pieces[result.reads[0]] = f"{maker}()"
        elif isinstance(branch, ast.FunctionDef):
            first = branch.body[0]
            edits.append(pastes.above(facts, result.file, first.lineno, f"{result.name} = {maker}()"))
        else:
            return ""
    if pieces:
        edits += pastes.each_replaced(facts, parts[0][0].file, pieces)
    return pastes.written(*edits)
