"""`tf.py_function(load(path), [path], ...)`: the function is called while the graph is built, not passed."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument, failed_node, py_call
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import symbolic_parts

RULE = "structure"
_NOT_CALLABLE = "object is not callable"
_EXPECTED = "Expected func to be callable"
"""What py_function says at trace of the value that the function returned."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if this is why the program failed."""
    if situation.body and _NOT_CALLABLE in situation.message:  # what it returned was passed, and called at run
        node = failed_node(situation)
        call = node.call() if node is not None else None
        given = _called(call) if call is not None else None
        if node is None or node.site is None or call is None or given is None or not _same(given, call, node.source):
            return None
        return _explanation(node.site[0], node.source, call, given)
    if situation.message.startswith(_EXPECTED) and situation.last is not None:
        return _returned(situation.last)
    for spot, inner in zip(situation.spots, situation.spots[1:]):
        call = py_call(spot.source, spot.line)
        given = _called(call) if call is not None else None
        entered = inner.function
        if call is None or given is None or getattr(entered, "name", "") != dotted(given.func).rpartition(".")[2]:
            continue
        if any(symbolic_parts(one, spot) for one in given.args):
            return _explanation(spot.file, spot.source, call, given)
    return None


def _returned(spot: Spot) -> Explanation | None:
    """The function took symbolic tensors, read none, and returned a value: that stands where it belongs."""
    call = py_call(spot.source, spot.line)
    given = argument(call, 0, "func") if call is not None else None
    if call is None or not isinstance(given, ast.Call):
        return None
    return _explanation(spot.file, spot.source, call, given, [bool(symbolic_parts(one, spot)) for one in given.args])


def _called(call: ast.Call) -> ast.Call | None:
    """The call that stands where the function belongs."""
    func = argument(call, 0, "func")
    return func if isinstance(func, ast.Call) and func.args and not dotted(func.func).endswith("partial") else None


def _same(given: ast.Call, call: ast.Call, source: Source) -> bool:
    """Whether it is called with the values of inp: a call with others may well make a function."""
    inp = argument(call, 1, "inp")
    listed = inp.elts if isinstance(inp, (ast.List, ast.Tuple)) else []
    return [source.text(one) for one in given.args] == [source.text(one) for one in listed]


def _explanation(
    file: str, source: Source, call: ast.Call, given: ast.Call, symbolic: list[bool] | None = None
) -> Explanation:
    """`symbolic`: which arguments are tensors, where it is known; the others stay where they are."""
    inp, name = argument(call, 1, "inp"), source.text(given.func)
    pieces: dict[ast.expr, str] = {given: name}
    passed = given.args if symbolic is None else [one for one, tensor in zip(given.args, symbolic) if tensor]
    if symbolic is not None and (given.keywords or len(passed) < len(given.args)):
        pieces = _with_the_rest(source, given, passed)
    if inp is not None and not _same(given, call, source):
        pieces[inp] = f"[{', '.join(map(source.text, passed))}]"
    found = source.replaced(pieces) if pieces and (symbolic is not None or not given.keywords) else None
    op = dotted(call.func).rpartition(".")[2]
    cause = (
        f"`{short(source.text(given), 40)}` calls {name} once, while the graph is built. {op} wants the function "
        f"itself, and calls it with the values of inp at run."
    )
    edit = edit_of(file, found)
    return Explanation(RULE, file, given.lineno, cause, edit, "" if edit else f"Pass {name}, not called.")


def _with_the_rest(source: Source, given: ast.Call, passed: list[ast.expr]) -> dict[ast.expr, str]:
    """The call as a lambda of its tensors. Each has to be a name: that is the lambda's parameter."""
    names = [one.id for one in passed if isinstance(one, ast.Name)]
    if len(names) < len(passed) or len(set(names)) < len(names) or not names:
        return {}
    return {given: f"lambda {', '.join(names)}: {source.text(given)}"}
