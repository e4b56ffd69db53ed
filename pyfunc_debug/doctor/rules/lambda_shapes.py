"""A Lambda whose output_shape is not the shape that its function gives: Keras takes what is written, in silence."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.models.lambda_shapes import stated_by
from pyfunc_debug.doctor.failures.reading.symbols import sizes_of
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding

NAMES = ("lambda-shape",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a Lambda."""
    told: set[tuple[str, str]] = set()
    for _, _, noticed in facts.notices.get(Notice.LAMBDA_SHAPE, []):
        file = noticed["file"]
        if (file, noticed["name"]) in told or not facts.source(file):
            continue
        told.add((file, noticed["name"]))
        made = _made(facts, noticed)
        fix, line = "", stated_by(pastes.source(facts, file), made) if made is not None else None
        if line is not None:
            fix = f"correct the one that is not what the Python function returns: it, or line {line}"
        elif made is not None:
            fix = pastes.written(pastes.replaced(facts, file, {made: _without(facts, file, made)}))
        yield Finding(
            NAMES[0], "warning", None, (),
            f"the output_shape of a Lambda says {sizes_of([None, *noticed['sizes']])}, and its function gave "
            f"{sizes_of([None, *noticed['given']])} here: Keras takes what is written for its shape",
            fix or "leave output_shape out: Keras asks the function then",
            file, made.lineno if made is not None else noticed["line"],
        )  # fmt: skip


def _made(facts: Facts, noticed: Mapping[str, Any]) -> ast.Call | None:
    """The one call of the file that makes a Lambda with these sizes."""
    found = [
        one for one in pastes.walk(facts.tree(noticed["file"]), ast.Call)
        if pastes.last_name(one.func) == "Lambda" and len(one.args) == 1
        and any(word.arg == "output_shape" and _sizes(word.value) == noticed["sizes"] for word in one.keywords)
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _sizes(node: ast.expr) -> list[Any]:
    parts = node.elts if isinstance(node, ast.Tuple) else []
    return [one.value if isinstance(one, ast.Constant) else None for one in parts]


def _without(facts: Facts, file: str, call: ast.Call) -> str:
    """The call without its output_shape."""
    own = pastes.source(facts, file)
    return f"{own.text(call.func)}({own.arguments(call, {'output_shape': ''})})"
