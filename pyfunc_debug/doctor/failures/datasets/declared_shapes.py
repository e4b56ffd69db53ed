"""A shape that `set_shape` says of an element and that its values have not: the iterator finds it out."""

from __future__ import annotations

import ast
import math
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.axis_orders import axis_order
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, method_calls

RULE = "unknown-shape"
_SAID = re.compile(r"Incompatible shapes at component \d+: expected \[([\d?,]*)\] but got \[([\d,]*)\]")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the one set_shape with these sizes is not about what a node itself returned."""
    said = _SAID.search(situation.message)
    if said is None:
        return None
    wanted, got = said[1].split(","), said[2].split(",")
    for file, source in situation.sources():
        found = [
            (one, sizes) for one in method_calls(source.tree, "set_shape")
            if (sizes := written_sizes(one)) and sizes in (wanted, wanted[1:]) and not _of_node(one, source)
        ]  # fmt: skip
        if len(found) != 1:
            continue
        call, sizes = found[0]
        real = got[1:] if sizes == wanted[1:] and len(wanted) > len(sizes) else got
        name = dotted(call.func).rpartition(".")[0]
        cause = (
            f"set_shape says [{', '.join(sizes)}] of {name}, and its values are [{', '.join(real)}]: it changes "
            "nothing."
        )
        order = axis_order([_numbers(real)], _numbers(sizes))
        if order is not None and "." not in name and isinstance(source.parent(call), ast.Expr):
            tf = alias(situation.last, "tensorflow") if situation.last is not None else "tf"
            cause += " The axes are in another order: transpose moves them."
            line = f"{indent_of(source.lines[call.lineno - 1])}{name} = {tf}.transpose({name}, {list(order)})"
            return Explanation(
                RULE, file, call.lineno, cause, Edit(file, call.lineno, call.lineno - 1, (line,)), "", "likely"
            )
        same = "?" not in sizes and math.prod(map(int, sizes)) == math.prod(map(int, real))
        if not same or "." in name or not isinstance(source.parent(call), ast.Expr):
            advice = f"Say the shape that it has, or reshape it: {name} = tf.reshape({name}, [...])."
            return Explanation(RULE, file, call.lineno, cause, None, advice)
        tf = alias(situation.last, "tensorflow") if situation.last is not None else "tf"
        cause += " reshape gives it that shape."
        edit = edit_of(file, source.replaced({call: f"{name} = {tf}.reshape({name}, [{', '.join(sizes)}])"}))
        return Explanation(RULE, file, call.lineno, cause, edit, "", "likely")
    return None


def _numbers(sizes: list[str]) -> tuple[int | None, ...]:
    return tuple(int(one) if one.isdigit() else None for one in sizes)


def written_sizes(call: ast.Call) -> list[str]:
    """The sizes that are written out; `?` for None."""
    given = call.args[0] if len(call.args) == 1 else None
    elements = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
    if not all(isinstance(one, ast.Constant) for one in elements):
        return []
    return ["?" if one.value is None else str(one.value) for one in elements if isinstance(one, ast.Constant)]


def _of_node(call: ast.Call, source: Source) -> bool:
    """Whether the name is only what a py_function's call was assigned to: what its calls returned tells of that."""
    name, function = dotted(call.func).rpartition(".")[0], source.function(call.lineno)
    made = [
        ast.unparse(one.value) for one in ast.walk(function or source.tree)
        if isinstance(one, ast.Assign) and name in [dotted(part) for each in one.targets for part in ast.walk(each)]
    ]  # fmt: skip
    return len(made) == 1 and any(word in made[0] for word in ("py_func", "numpy_function"))
