"""A graph saved from behind its py_function on: what the node makes is the signature's input, in the place of its own.

Whoever loads it calls the function first, where there is Python, and feeds what it returns.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Frame, Node


def saved_behind(
    facts: Facts, node: Node, site: Frame, takes: Sequence[str], shared: Sequence[str]
) -> tuple[str, str] | None:
    """The lines that save it so.

    Args:
      facts: The recording.
      node: The node.
      site: The user's line that saves.
      takes: The signature's inputs that the node is given: nothing else.
      shared: Those of them that other ops need, too.

    Returns:
      The edit, and what is the input then as it is written; None where the lines cannot be told.
    """
    found = pastes.call_of(facts, node)
    if found is None or found[0] != site.file or not takes or len(node.tout or ()) != 1:
        return None
    own, call = pastes.source(facts, site.file), found[1]
    result, inputs = _result(own, call), pastes.argument(call, 1, "inp")
    if not result or not isinstance(inputs, (ast.List, ast.Tuple)) or len(inputs.elts) != len(takes):
        return None
    given = dict(zip(takes, map(dotted, inputs.elts)))
    dicts = [one for one in pastes.walk(own.tree, ast.Dict) if _is_of(one, given)]
    if len(dicts) != 1 or not all(given.values()) or dicts[0].lineno < call.lineno:
        return None
    one, text = dicts[0], _written(own, dicts[0], given, shared, result)
    if not text or not _known(own, call, one, result):
        return None
    fix = pastes.written(pastes.replaced(facts, site.file, {one: text}))
    return (fix, result) if fix else None


def _result(own: Source, call: ast.Call) -> str:
    """What a call's result is assigned to, once in the file."""
    tout, parent = pastes.argument(call, 2, "Tout"), own.parent(call)
    if isinstance(tout, (ast.List, ast.Tuple)) or not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return ""
    name = dotted(parent.targets[0])
    return name if len(own.given_to(name)) == 1 else ""


def _is_of(one: ast.Dict, given: dict[str, str]) -> bool:
    """Whether a dict holds the inputs of a signature: each key with its tensor, or with what is made of that alone."""
    entries = {key.value: value for key, value in zip(one.keys, one.values) if isinstance(key, ast.Constant)}
    return all(key in entries and _tensor(entries[key]) == name for key, name in given.items())


def _tensor(value: ast.expr) -> str:
    """`x` of `x` and of `tf.saved_model.build_tensor_info(x)`."""
    if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
        return dotted(value.args[0])
    return dotted(value)


def _written(own: Source, one: ast.Dict, given: dict[str, str], shared: Sequence[str], result: str) -> str:
    """The dict with the node's result in it, and without what nothing else needs."""
    new, entries = result.rpartition(".")[2], []
    if any(isinstance(key, ast.Constant) and key.value == new for key in one.keys):
        return ""
    first = True
    for key, value in zip(one.keys, one.values):
        if key is None:
            entries.append(f"**{own.text(value)}")
            continue
        taken = isinstance(key, ast.Constant) and key.value in given
        if not taken or (isinstance(key, ast.Constant) and key.value in shared):
            entries.append(f"{own.text(key)}: {own.text(value)}")
        if taken and first:
            first = False
            made = f"{own.text(value.func)}({result})" if isinstance(value, ast.Call) else result
            entries.append(f'"{new}": {made}')
    return f"{{{', '.join(entries)}}}"


def _known(own: Source, call: ast.Call, one: ast.Dict, result: str) -> bool:
    """Whether the result can be read where the dict stands: in the same function, or it is of the file."""
    made, read = (next((up for up in own.around(at) if isinstance(up, ast.FunctionDef)), None) for at in (call, one))
    return made is read or (made is None and "." not in result)
