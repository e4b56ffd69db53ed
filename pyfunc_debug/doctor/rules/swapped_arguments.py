"""A body that is given its inputs in another order than it names them: `[y_pred, y_true]` for `f(y_true, y_pred)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.records import Finding

NAMES = ("swapped-arguments",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call of py_function."""
    told: set[tuple[str, int]] = set()
    for group in facts.lines:
        node, function = group[0], facts.function(group[0])
        made = pastes.call_of(facts, node)
        if function is None or made is None or not facts.calls_of(group).count:
            continue
        file, call = made
        listed = argument(call, 1, "inp")
        if not isinstance(listed, (ast.List, ast.Tuple)) or (file, call.lineno) in told:
            continue
        names = [ast.unparse(one) for one in listed.elts]
        asked = code.parameters(function)
        asked = asked[1:] if asked[:1] == ["self"] else asked
        if names == asked or sorted(names) != sorted(asked) or len({*names}) < len(names):
            continue
        told.add((file, call.lineno))
        place = next(at for at, name in enumerate(names) if name != asked[at])
        yield Finding(
            NAMES[0], "error", node.id, (),
            f"{facts.name(node)} is given {', '.join(names)}, and names them {', '.join(asked)} (line {node.line}): "
            f"what it calls {asked[place]} is {names[place]}",
            pastes.written(pastes.replaced(facts, file, {listed: f"[{', '.join(asked)}]"})) or
            f"[{', '.join(asked)}] as its inputs", file, call.lineno, several(one.id for one in group),
            (f"line {node.line}: {facts.line(node.file, node.line)}",), confidence="likely",
        )  # fmt: skip
