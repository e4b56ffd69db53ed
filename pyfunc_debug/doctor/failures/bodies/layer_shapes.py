"""The shape that the layer around a node declares: a Lambda's `output_shape`, a layer's `compute_output_shape`.

Keras reads it, but gives it no tensor: the node's result stays without a shape.
"""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.bodies.results import is_made
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.reading.shapes import Shape
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls

OF_LAMBDA = " Its Lambda layer tells Keras the shape, not the tensor."
OF_METHOD = " compute_output_shape tells Keras the shape, not the tensor."


def declared(spot: Spot, call: ast.Call, known: Shape | None) -> tuple[Edit, str] | None:
    """The call with the shape that its layer declares, and where that comes from.

    Args:
      spot: The frame of the call.
      call: The call of py_function or numpy_function.
      known: The shape that the body's source tells, if any: one of another rank is not declared by the layer.
    """
    written = _of_lambda(spot.source, call)
    if written is not None:
        sizes = [spot.source.text(one) for one in written.elts]
        fits = known is None or len(known) == len(sizes) + 1
        return _shaped(spot, call, f"[{', '.join(['None', *sizes])}]", OF_LAMBDA) if fits else None
    given = _of_method(spot.source, call)
    if given is None or known is not None:
        return None
    return _shaped(spot, call, f"self.compute_output_shape({given}.shape)", OF_METHOD)


def _shaped(spot: Spot, call: ast.Call, shape: str, said: str) -> tuple[Edit, str] | None:
    text = f"{alias(spot, 'tensorflow')}.ensure_shape({spot.source.text(call)}, {shape})"
    edit = edit_of(spot.file, spot.source.replaced({call: text}))
    return None if edit is None else (edit, said)


def _of_lambda(source: Source, call: ast.Call) -> ast.Tuple | ast.List | None:
    """The `output_shape` of the one Lambda layer around a call, or of the one that the function around it is given."""
    around = list(source.around(call))
    names = {one.name for one in around if isinstance(one, ast.FunctionDef)}
    layers = [one for one in around if isinstance(one, ast.Call) and _is_lambda(one)] or [
        one for one in calls(source.tree) if _is_lambda(one) and one.args and dotted(one.args[0]) in names
    ]
    said = [word.value for one in layers for word in one.keywords if word.arg == "output_shape"]
    if not said or len(said) != len(layers) or len({ast.dump(one) for one in said}) > 1:
        return None
    shape = said[0]
    if not isinstance(shape, (ast.Tuple, ast.List)) or not all(_is_seen(source, one) for one in shape.elts):
        return None
    return shape


def _is_lambda(call: ast.Call) -> bool:
    return dotted(call.func).rpartition(".")[2] == "Lambda"


def _is_seen(source: Source, size: ast.expr) -> bool:
    """Whether an expression means the same anywhere in the file: a number, or a name that is bound at its top."""
    if isinstance(size, ast.Constant):
        return True
    bound = {
        target.id for one in source.tree.body if isinstance(one, ast.Assign)
        for target in one.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    return isinstance(size, ast.Name) and size.id in bound


def _of_method(source: Source, call: ast.Call) -> str | None:
    """The input of the layer's `call` that holds the call, where its class has a `compute_output_shape` of its own."""
    around = list(source.around(call))
    methods = [one for one in around if isinstance(one, ast.FunctionDef) and one.name == "call"]
    holder = next((one for one in around if isinstance(one, ast.ClassDef)), None)
    if holder is None or len(methods) != 1 or not is_made(call):
        return None
    own = [one for one in holder.body if isinstance(one, ast.FunctionDef) and one.name == "compute_output_shape"]
    listed, declares = parameters(methods[0]), [parameters(one) for one in own]
    returns = [
        part.value for one in own for part in ast.walk(one) if isinstance(part, ast.Return) and part.value is not None
    ]
    if [len(one) for one in declares] != [1] or not listed or len(returns) != 1:
        return None
    as_input = dotted(returns[0]) == declares[0][0]
    stored = any(
        isinstance(one, ast.Name) and one.id == listed[0] and isinstance(one.ctx, ast.Store)
        for one in ast.walk(methods[0])
    )
    return listed[0] if _is_result(source, call, methods[0]) and not as_input and not stored else None


def _is_result(source: Source, call: ast.Call, method: ast.FunctionDef) -> bool:
    """Whether a method returns what a call gives."""
    parent = source.parent(call)
    if isinstance(parent, ast.Assign):
        returned = [one.value for one in ast.walk(method) if isinstance(one, ast.Return) and one.value is not None]
        return len(returned) == 1 and dotted(returned[0]) == dotted(parent.targets[0]) != ""
    return isinstance(parent, ast.Return)
