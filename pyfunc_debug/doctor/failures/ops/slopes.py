"""A gradient by differences for a body that computes outside of TensorFlow: a solver, a simulator, a library.

Each number of an input is moved up and down a little, and the body run at both places: that is a gradient of anything
smooth, whatever computes it, for two runs of the body a number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from pyfunc_debug.doctor.code import state_writes
from pyfunc_debug.doctor.failures.ops.smooth import in_steps
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import Node, argument, site_spot, traced_inputs
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, indent_of, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias

NAME = "with_slopes"
_NEAR = 12
COST = "The gradient is by differences: two more runs of the body for each number that goes in."
_LINES = (
    "def with_slopes(body, Tout):  # the gradient of body by differences: two runs of it for each number of an input",
    "    def slopes(dy, *xs):",
    "        found = [np.zeros(np.shape(x), x.dtype) for x in xs]",
    '        for i, at in [(i, at) for i, x in enumerate(xs) if x.dtype.kind == "f" for at in np.ndindex(x.shape)]:',
    "            e = np.zeros_like(found[i])",
    "            e[at] = 1e-3 * max(1.0, abs(xs[i][at]))",
    "            high, low = (np.asarray(body(*xs[:i], x, *xs[i + 1:])) for x in (xs[i] + e, xs[i] - e))",
    "            found[i][at] = np.sum((high - low) * dy) / (2 * e[at])",
    "        return found",
    "    @tf.custom_gradient",
    "    def smooth(*xs):",
    "        def grad(dy):",
    "            found = tf.nest.flatten(tf.numpy_function(slopes, [dy, *xs], [x.dtype for x in xs]))",
    "            return [tf.ensure_shape(d, x.shape) if x.dtype.is_floating else None for d, x in zip(found, xs)]",
    "        return tf.numpy_function(body, xs, Tout), grad",
    "    return lambda *xs: smooth(*map(tf.convert_to_tensor, xs))",
)


def helper(tf: str, np: str) -> list[str]:
    """The function to paste, as the user's file calls the two packages."""
    return [
        line.replace("tf.", f"{tf}.").replace("np.", f"{np}.") if (tf, np) != ("tf", "np") else line for line in _LINES
    ]


def by_differences(situation: Situation, node: Node, call: ast.Call) -> Edit | None:
    """The call of a node with a gradient that is measured: what computes in between may be anything."""
    spot = site_spot(node, situation)
    dtypes = [dtype for dtype, _ in traced_inputs(node, situation)]
    text = sloped(node.function(), call, node.source, dtypes)
    if text is None or spot is None:
        return None
    return with_helper(spot.file, node.source, call, text, alias(spot, "tensorflow"), alias(spot, "numpy"))


def sloped(function: Function | None, call: ast.Call, source: Source, dtypes: Sequence[str]) -> str | None:
    """A call with a gradient by differences, in the place of that of numpy_function or py_function.

    Args:
      function: The body.
      call: The call of numpy_function or py_function; the body of the latter takes tensors.
      source: Its file.
      dtypes: The dtypes of its inputs, as far as they are known.

    Returns:
      None where differences would not be its gradient, or the body does more than compute.
    """
    body, inputs, tout = (argument(call, place, name) for place, name in ((0, "func"), (1, "inp"), (2, "Tout")))
    if body is None or tout is None or function is None:
        return None
    if not isinstance(inputs, (ast.List, ast.Tuple)) or any(isinstance(one, ast.Starred) for one in inputs.elts):
        return None
    if "string" in dtypes or in_steps(function) is not None or not computes(function):
        return None
    single = tout.elts[0] if isinstance(tout, (ast.List, ast.Tuple)) and len(tout.elts) == 1 else tout
    if isinstance(single, (ast.List, ast.Tuple)):
        return None
    given = ", ".join(map(source.text, inputs.elts))
    own, tf = source.text(body), dotted(call.func).rpartition(".")[0] or "tf"
    if dotted(call.func).rpartition(".")[2] in ("py_function", "eager_py_func"):
        own = f"({own})" if isinstance(body, ast.Lambda) else own
        own = f"lambda *xs: {tf}.cast({own}(*map({tf}.constant, xs)), {source.text(single)})"  # as it does itself
    text = f"{NAME}({own}, {source.text(single)})({given})"
    return text if single is tout else f"[{text}]"


def with_helper(file: str, source: Source, call: ast.expr, text: str, tf: str, np: str) -> Edit | None:
    """The lines of a call with other text in its place, and the function above them that it needs.

    It goes in front of what the module does there, where that is near: into the function otherwise.

    Args:
      file: The file of the call.
      source: Its text.
      call: The call, or another expression.
      text: What is in its place.
      tf: How the file calls TensorFlow.
      np: How it calls NumPy.
    """
    statement, placed = source.statement(call.lineno), source.replaced({call: text})
    if statement is None or placed is None or hasattr(statement, "body") or text.count(NAME) > 1:
        return None
    around = [one for one in source.around(statement) if isinstance(one, ast.stmt)]
    outer = around[-1] if around else statement
    first = min([outer.lineno, *(one.lineno for one in getattr(outer, "decorator_list", []))])
    near = statement.lineno - first <= _NEAR and not isinstance(outer, (ast.If, ast.With, ast.For, ast.Try))
    start = first if near else statement.lineno
    blanks = "" if near else indent_of(source.lines[statement.lineno - 1])
    lines = [f"{blanks}{line}" for line in helper(tf, np)]
    if any(isinstance(one, ast.FunctionDef) and one.name == NAME for one in ast.walk(source.tree)):
        start, lines = placed[0], []
    return Edit(file, start, placed[1], (*lines, *source.lines[start - 1 : placed[0] - 1], placed[2]))


def computes(function: Function) -> bool:
    """Whether running a body more often changes nothing: it draws no random numbers, prints and keeps nothing.

    Nor does it change its inputs, or look up whole numbers in them.
    """
    own = set(parameters(function))
    if next(iter(state_writes(function)), None) is not None:
        return False
    for one in own_nodes(function):
        if isinstance(one, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom)):
            return False
        if isinstance(one, ast.Call):
            name = dotted(one.func)
            if "random" in name or "rng" in name.lower() or name.rpartition(".")[2] in _DOES_MORE:
                return False
            if name.rpartition(".")[2] in _STEPS or _WHOLE.search(ast.unparse(one)):
                return False
        if isinstance(one, ast.Compare) and not _chooses(one, function):
            return False
        if isinstance(one, ast.AugAssign) and dotted(one.target) in own:
            return False
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store) and dotted(one.value) in own:
            return False
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
            return False
    return True


def _chooses(comparison: ast.Compare, function: Function) -> bool:
    """Whether a comparison only says which of two values it is: what it counts itself moves in steps."""
    for one in ast.walk(function):
        tests = [one.test] if isinstance(one, (ast.If, ast.IfExp, ast.While, ast.Assert)) else []
        if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] in ("where", "select", "piecewise"):
            tests += one.args[:1]
        if isinstance(one, ast.Subscript):
            tests.append(one.slice)
        if any(part is comparison for test in tests for part in ast.walk(test)):
            return True
    return False


_STEPS = ("round", "around", "rint", "floor", "ceil", "trunc", "fix", "sign", "heaviside", "unique", "histogram", "int")
_WHOLE = re.compile(r"\.astype\((?:np\.)?['\"]?u?int\d*['\"]?\)$|^np\.u?int\d+\(")
_DOES_MORE = (
    "print", "write", "save", "step", "reset", "render", "imwrite", "savetxt", "open", "sleep",
)  # fmt: skip
