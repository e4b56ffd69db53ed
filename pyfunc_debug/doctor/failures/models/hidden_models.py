"""A model that a numpy_function calls: it moves under the tape, and the body returns what the model is given."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.code import own_nodes
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of, together
from pyfunc_debug.doctor.failures.reading.nodes import argument, return_values
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names
from pyfunc_debug.doctor.failures.reading.symbols import alias, lookup
from pyfunc_debug.program.syntax import copied

_MOST = 30
"""Lines from the body's return to the call, in one paste."""


def under_the_tape(spot: Spot, body: ast.FunctionDef, model_call: ast.Call, call: ast.Call) -> Edit | None:
    """The body's `return` with what the model is given, and the model's call behind that of numpy_function.

    Args:
      spot: A frame of the function that has the tape.
      body: What numpy_function is given, in the same file.
      model_call: The one call of the model in it.
      call: That of numpy_function.
    """
    source = spot.source
    made, site = source.statement(model_call.lineno), source.statement(call.lineno)
    returned = return_values(body)
    given = model_call.args[0] if len(model_call.args) == 1 and not model_call.keywords else None
    tout = argument(call, 2, "Tout")
    size = _sizes(spot, model_call)
    if not isinstance(given, ast.Name) or len(returned) != 1 or tout is None or size is None:
        return None
    if not isinstance(made, ast.Assign) or made.value is not model_call or len(made.targets) != 1:
        return None
    if not isinstance(site, ast.Assign) or site.value is not call or len(site.targets) != 1:
        return None
    outputs, targets = _named(made.targets[0]), _named(site.targets[0])
    values = returned[0].elts if isinstance(returned[0], ast.Tuple) else [returned[0]]
    lines = _behind(source, body, outputs, targets, values)
    taken = {one.id for one in ast.walk(spot.function or site) if isinstance(one, ast.Name)}
    if lines is None or given.id in taken or _stored(body, given.id) > 1:
        return None
    tf, np = alias(spot, "tensorflow"), alias(spot, "numpy")
    kept = f"{np}.asarray({given.id}, {np}.float32)" if np in spot.module else given.id
    listed = ", ".join(map(source.text, values))
    dtypes = source.text(tout)
    dtypes = (
        f"{dtypes[:-1]}, {tf}.float32]" if isinstance(tout, ast.List) and tout.elts else f"[*{dtypes}, {tf}.float32]"
    )
    if not isinstance(tout, (ast.List, ast.ListComp, ast.BinOp, ast.Tuple)):
        dtypes = f"[{source.text(tout)}, {tf}.float32]"
    first = source.replaced({returned[0]: f"{listed}, {kept}"})
    target = site.targets[0]
    pieces: dict[ast.expr, str] = {target: ", ".join([*targets, given.id])}
    above = site.lineno > tout.lineno  # where a decorator says it
    declared = source.replaced({tout: dtypes}) if above else None
    second = source.spliced(pieces if above else {**pieces, tout: dtypes}, site.lineno, site.end_lineno or site.lineno)
    if first is None:
        return None
    indent = indent_of(source.lines[site.lineno - 1])
    result = source.text(made.targets[0])
    shaped = f"{tf}.ensure_shape({given.id}, [{', '.join(map(str, size))}])"
    again = f"{indent}{result} = {source.text(model_call.func)}({shaped})"
    edits = [
        Edit(spot.file, first[0], first[1], (first[2],)),
        Edit(spot.file, site.lineno, site.end_lineno or site.lineno,
             (*second, again, *(f"{indent}{line}" for line in lines))),
    ]  # fmt: skip
    edits += [one] if (one := edit_of(spot.file, declared)) is not None else []
    near = abs(site.lineno - first[0]) <= _MOST
    return together(edits, source.lines) if near else None


def _named(target: ast.expr) -> list[str]:
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return [one.id for one in parts if isinstance(one, ast.Name)]


def _stored(function: ast.AST, name: str) -> int:
    return sum(isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)
               for one in ast.walk(function))  # fmt: skip


def _sizes(spot: Spot, model_call: ast.Call) -> tuple[int | None, ...] | None:
    """The shape of the model's input, which a numpy_function's result does not have."""
    shape = getattr(lookup(model_call.func, spot), "input_shape", None)
    known = isinstance(shape, tuple) and all(one is None or isinstance(one, int) for one in shape)
    return shape if known else None


def _behind(
    source: Source, body: ast.FunctionDef, outputs: list[str], targets: list[str], values: list[ast.expr]
) -> list[str] | None:
    """Lines that make of the model's outputs what the body returned of them; None where that is not plain."""
    if not outputs or len(targets) != len(values) or any(_stored(body, name) != 1 for name in outputs):
        return None
    whole = [one for one in own_nodes(body) if isinstance(one, ast.Return)]
    if len(whole) != 1 or body.body[-1] is not whole[0]:
        return None
    lines, moved = [], False
    for place, (target, value) in enumerate(zip(targets, values)):
        read = set(names(value))
        if not read & set(outputs):
            if target in outputs:
                return None
            continue
        plain = all(
            dotted(one.func).rpartition(".")[2] == "numpy" or (isinstance(one.func, ast.Attribute)
                                                               and one.func.attr == "numpy")
            for one in ast.walk(value) if isinstance(one, ast.Call)
        )  # fmt: skip
        later = {name for other in values[place + 1 :] for name in names(other)}
        if not plain or not read <= set(outputs) or (target in outputs and target in later and target not in read):
            return None
        text = ast.unparse(_Tensors().visit(copied(value)))
        moved = True
        if text != target:
            if target in later:
                return None
            lines.append(f"{target} = {text}")
    return lines if moved else None


class _Tensors(ast.NodeTransformer):
    """`y` for `y.numpy()`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "numpy" else node
