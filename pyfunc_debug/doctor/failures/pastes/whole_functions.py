"""The paste of last resort: all of a traced function as Python, where it needs values in more than one place.

A map becomes a generator (`as_python`), a tf.function loses its decorator, what Keras traces in `fit` runs with
`run_eagerly=True`, and the `call` of a layer without weights goes into a py_function that asks a first result for its
dtype and shape.
"""

from __future__ import annotations

import ast
import dataclasses
import re

from pyfunc_debug.doctor.failures.gradients.left_behind import is_outside, left_behind
from pyfunc_debug.doctor.failures.graphs.python_objects import changes_of_self
from pyfunc_debug.doctor.failures.models.keras_calls import fits, is_loss, loses_gradient
from pyfunc_debug.doctor.failures.models.lambda_python import in_python
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.as_python import as_python
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, applied
from pyfunc_debug.doctor.failures.pastes.traced_text import RULE, SHAPE_CHECK, when
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import (
    Function,
    Source,
    dotted,
    indent_of,
    parameters,
    parsed,
    short,
    tapes_around,
)
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    described,
    is_keras,
    is_symbolic,
    is_tf_variable,
    of_weights,
    root_is,
    symbolic_parts,
)
from pyfunc_debug.doctor.failures.reading.value_uses import needs_values, symbolic_names
from pyfunc_debug.interception.names.private import keras_weighted

_NEEDS = re.compile(
    r"symbolic|[Ee]ager execution|EagerTensor|Graph execution|SymbolicTensor|KerasTensor|'(?:Resource)?Variable'"
    r"|only integer scalar arrays|only length-1 arrays|setting an array element with a sequence"
)
"""What is said where a value was wanted and a tensor or a variable of a graph was there."""
_EAGERLY = "With run_eagerly=True each batch runs as Python, with values: that is slower."
_PLAIN = "Without tf.function it runs as Python, with values: op by op, that is slower."
_LAYER = "NumPy has no gradient there."
_BEFORE = (
    "The layers before need a gradient, and NumPy and Python give none, in a py_function neither: write it with "
    "TensorFlow's ops."
)

_OWN = "in_python"
_ARRAYS = {
    "astype",
    "copy",
    "tolist",
    "mean",
    "sum",
    "max",
    "min",
    "std",
    "reshape",
    "flatten",
    "ravel",
    "transpose",
    "T",
}
"""What an array has and an eager tensor has not."""


def instead(explanation: Explanation, situation: Situation) -> Explanation:
    """The explanation with the whole function in the paste, where it repairs one of many lines or none."""
    if explanation.rule != RULE or situation.body or not situation.spots:
        return explanation
    if explanation.edit is not None and not _more(explanation.edit, situation):
        return _with_price(explanation, situation)
    found = whole(situation)
    if found is None and explanation.edit is None and _cuts_a_layer(situation):
        return dataclasses.replace(explanation, advice=_BEFORE)
    if found is None:
        return _with_price(explanation, situation)
    edit, price = found
    cause = " ".join(one for one in (explanation.cause, price) if one)
    return dataclasses.replace(explanation, cause=cause, edit=edit, advice="", confidence="likely")


def _with_price(explanation: Explanation, situation: Situation) -> Explanation:
    """The explanation, which says what a py_function of NumPy costs where trained layers are before it."""
    text = "\n".join(explanation.edit.lines) if explanation.edit is not None else ""
    if "py_function(" not in text or not _cuts_a_layer(situation):
        return explanation
    cause = f"{explanation.cause} {_LAYER}"
    return dataclasses.replace(explanation, cause=cause)


def explain(situation: Situation) -> Explanation | None:
    """A line that failed at trace on tensors or variables without values, where no other cause is known."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or isinstance(statement, (ast.Raise, ast.Assert)):
        return None
    if SHAPE_CHECK.search(situation.message) or not wrapping.entry(situation)[1] or not _wanted_values(situation):
        return None
    value = wrapping.value_here(spot, statement)
    held = _held(value, spot) if value is not None else {}
    found = whole(situation) if held and not any(map(is_keras, held.values())) else None
    if found is None:
        return None
    shown = " and ".join(f"{name} ({described(one)})" for name, one in list(held.items())[:2])
    code = short(spot.source.text(statement).split("\n")[0], 44)
    cause = f"`{code}` ran once, {when(situation)}, when {shown} had no value yet. {found[1]}".rstrip()
    return Explanation(RULE, spot.file, spot.line, cause, found[0], "", "likely")


def _wanted_values(situation: Situation) -> bool:
    """Whether what failed wanted a value, and was given a tensor."""
    if isinstance(situation.inner, AttributeError):
        held = getattr(situation.inner, "obj", None)
        return is_symbolic(held) or is_tf_variable(held)
    if isinstance(situation.inner, KeyError):
        return any(map(is_symbolic, situation.inner.args))
    return bool(_NEEDS.search(situation.message))


def _held(node: ast.expr, spot: Spot) -> dict[str, object]:
    """The tensors and variables that an expression reads."""
    found: dict[str, object] = dict(symbolic_parts(node, spot))
    for one in ast.walk(node):
        value = spot.value(one.id) if isinstance(one, ast.Name) else None
        if isinstance(one, ast.Name) and is_tf_variable(value):
            found[one.id] = value
    return found


def _more(edit: Edit, situation: Situation) -> bool:
    """Whether what is left of the traced functions needs values, too, after a paste."""
    index = wrapping.entry(situation)[0]
    for place, spot in enumerate(situation.spots[index:], index):
        function = spot.function
        if function is None:
            continue
        if "Metric" in _kinds(spot) and (changes_of_self(function) or _collects(function, spot.source)):
            return True  # an attribute other than a variable is set at trace only, and `result` is traced as well
        source, first = spot.source, spot.line + 1
        tensors = symbolic_names(spot)
        if wrapping.entry(situation)[1] == "Keras" and _keeps_and_reads(function, tensors):
            return True
        if spot is situation.spots[-1]:
            if edit.file != spot.file or not function.lineno <= edit.first <= (function.end_lineno or 0):
                return False  # it is not in the function: a map, a call of compile
            source = parsed("\n".join(applied([edit], source.lines)))
            changed = _same(source, function, edit)
            if changed is None:
                return False
            function, first = changed, edit.first
        elif place < len(situation.spots) - 1:
            tensors += _results(spot)
        if needs_values(source, function, first, spot, tensors):
            return True
    return False


def _collects(function: Function, source: Source) -> bool:
    """Whether a metric appends to a list of its own that its `result` reads."""
    methods = getattr(source.parent(function), "body", ())
    result = next((one for one in methods if isinstance(one, ast.FunctionDef) and one.name == "result"), None)
    kept = {
        dotted(one.func.value) for one in ast.walk(function)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in ("append", "extend")
    }  # fmt: skip
    read = {dotted(one) for one in ast.walk(result) if isinstance(one, ast.Attribute)} if result is not None else set()
    return any(one.startswith("self.") for one in kept & read)


def _keeps_and_reads(function: Function, tensors: list[str]) -> bool:
    """Whether a method keeps what it makes of tensors in an attribute that it reads: `self.mean = f(self.mean, x)`."""
    for one in ast.walk(function):
        targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AugAssign) else []
        kept = [dotted(target) for target in targets if isinstance(target, ast.Attribute)]
        value = getattr(one, "value", None)
        made = isinstance(value, ast.expr) and any(
            isinstance(part, ast.Name) and part.id in tensors for part in ast.walk(value)
        )
        read = [
            part for part in ast.walk(function)
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load) and dotted(part) in kept
        ]  # fmt: skip
        if made and kept and (read or isinstance(one, ast.AugAssign)):
            return True
    return False


def _results(spot: Spot) -> list[str]:
    """What the statement that called the failing function assigns."""
    statement = spot.statement
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


def _same(source: Source, function: Function, edit: Edit) -> Function | None:
    """A function in the file that a paste has changed."""
    if isinstance(function, ast.Lambda):
        return None
    moved = len(edit.lines) - (edit.last + 1 - edit.first) if edit.first <= function.lineno else 0
    for one in ast.walk(source.tree):
        if isinstance(one, type(function)) and one.name == function.name and one.lineno == function.lineno + moved:
            return one
    return None


def whole(situation: Situation) -> tuple[Edit, str] | None:
    """All of the traced function as Python, and what that costs."""
    index, by = wrapping.entry(situation)
    spot = situation.spots[index]
    if by == "tf.data":
        wrap = as_python(situation) or wrapping.mapped_function(situation)
        return None if wrap is None else (wrap.edit, "")
    if by == "Keras":
        layer = _layer(spot)
        if layer is not None:
            return layer, _LAYER
        python = None if _cuts_a_layer(situation) else in_python(situation)
        if python is not None:
            return python, ""
        edit = _eagerly(situation, index)
        return None if edit is None else (edit, _EAGERLY)
    edit = _undecorated(situation, index)
    return None if edit is None else (edit, _PLAIN)


def _kinds(spot: Spot) -> list[str]:
    """Names of Keras' classes that the method's object is of."""
    every = type(spot.variables.get("self")).__mro__
    return [one.__name__ for one in every if one.__module__.partition(".")[0] in ("keras", "tf_keras")]


def _layer(spot: Spot) -> Edit | None:
    """`call` of a layer without weights, in a py_function."""
    function, layer = spot.function, spot.variables.get("self")
    if not isinstance(function, ast.FunctionDef) or function.name != "call" or function.decorator_list:
        return None
    kinds, inputs = _kinds(spot), parameters(function)
    if "Layer" not in kinds or "Model" in kinds or not inputs or function.args.vararg or function.args.kwarg:
        return None
    if keras_weighted(layer) or hasattr(type(layer), _OWN):
        return None
    tensors = [name for name in inputs if is_symbolic(spot.value(name))]
    if _writes_into(function, tensors):
        return None  # with values it is a tensor, too
    if tensors != inputs[: len(tensors)] or not tensors or any(map(is_keras, map(spot.value, tensors))):
        return None
    tf, source = alias(spot, "tensorflow"), spot.source
    blanks = indent_of(source.lines[function.lineno - 1])
    header = source.lines[function.lineno - 1 : function.body[0].lineno - 1]
    if not header or len(header) > 1:
        return None
    run, rest = f"self.{_OWN}", ", ".join(f"{name}={name}" for name in inputs[len(tensors) :])
    if rest:
        run = f"(lambda *x: self.{_OWN}(*x, {rest}))"
    ones = ", ".join(f"{tf}.ones([n or 1 for n in {name}.shape], {name}.dtype)" for name in tensors)
    op = "py_function"
    if _of_arrays(function, spot):  # rows of a tensor have no `astype`
        op, ones = "numpy_function", ones.replace(".dtype)", ".dtype).numpy()")
    made = f"{tf}.{op}({run}, [{', '.join(tensors)}], y.dtype)"
    lines = (
        f"{header[0].split('#')[0].rstrip()}  # Python with values; a first result, for ones, says dtype and shape",
        f"{blanks}    with {tf}.init_scope():",
        f"{blanks}        y = {tf}.convert_to_tensor({run}({ones}))",
        f"{blanks}    return {tf}.ensure_shape({made}, [None, *y.shape[1:]][: len(y.shape)])",
        "",
        header[0].replace(f"def {function.name}(", f"def {_OWN}(", 1),
    )
    return Edit(spot.file, function.lineno, function.body[0].lineno - 1, lines)


def _of_arrays(function: ast.FunctionDef, spot: Spot) -> bool:
    """Whether a method is written for arrays: it asks no tensor for its value, and calls what only arrays have."""
    asked = {one.attr for one in ast.walk(function) if isinstance(one, ast.Attribute)}
    if "numpy" in asked or any(root_is(one.func, spot, "tensorflow") for one in calls(function)):
        return False
    return bool(asked & _ARRAYS) or any(root_is(one.func, spot, "cv2") for one in calls(function))


def _writes_into(function: ast.FunctionDef, tensors: list[str]) -> bool:
    """Whether a function writes into a part of one of its tensors, `x[0] = 0`."""
    return any(
        isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store) and dotted(one.value) in tensors
        for one in ast.walk(function)
    )


def _eagerly(situation: Situation, index: int) -> Edit | None:
    """`run_eagerly=True` in the one call of `compile` for the model whose `fit` failed."""
    spot = situation.spots[index]
    if (is_loss(situation) or "Loss" in _kinds(spot)) and loses_gradient(situation):
        return None
    if _cuts_a_layer(situation):
        return None  # it would run, and train nothing of what is before
    for outer in reversed(situation.spots[:index]):
        statement = outer.statement
        fitted = fits(statement) if statement is not None else []
        if len(fitted) != 1:
            continue
        model = dotted(fitted[0].func).rpartition(".")[0]
        found = [
            one for one in calls(outer.source.tree)
            if isinstance(one.func, ast.Attribute) and one.func.attr == "compile"
        ]  # fmt: skip
        named = [one for one in found if model and dotted(one.func).rpartition(".")[0] == model]
        found = named if len(named) == 1 else found
        given = {one.arg for call in found for one in call.keywords}
        if len(found) != 1 or given & {"run_eagerly", "jit_compile", None}:
            return None
        return wrapping.replace_expression(outer, found[0], outer.source.with_argument(found[0], "run_eagerly=True"))
    return None


def _cuts_a_layer(situation: Situation) -> bool:
    """Whether a layer, or what a Lambda was given, takes what trained layers gave out of TensorFlow."""
    index, by = wrapping.entry(situation)
    if by != "Keras":
        return False
    for spot in situation.spots[index:]:
        function, kinds = spot.function, _kinds(spot)
        layer = isinstance(function, ast.FunctionDef) and function.name == "call" and "Layer" in kinds
        lambdas = [one.args[0] for one in calls(spot.source.tree) if dotted(one.func).endswith("Lambda") and one.args]
        given = {part for one in lambdas for part in (one, *ast.walk(one))}
        name = getattr(function, "name", "")
        layer = layer or function in given or any(isinstance(one, ast.Name) and one.id == name for one in given)
        if layer and "Model" not in kinds:
            held = [part for one in spot.variables.values() for part in (one if type(one) in (list, tuple) else (one,))]
            return any(of_weights(one) for one in held if is_symbolic(one))
    return False


def _leaves_the_tape(spot: Spot) -> bool:
    """Whether a frame is under `with tf.GradientTape()`, and what it computes there leaves TensorFlow."""
    return any(left_behind(spot, one) is not None for one in tapes_around(spot.source, spot.line))


def _has_own_gradient(function: ast.AST | None) -> bool:
    """Whether a function says its gradient itself: what it computes may be NumPy's."""
    return any(dotted(one).endswith("custom_gradient") for one in getattr(function, "decorator_list", ()))


def _numpy_under_a_tape(inside: list[Spot]) -> bool:
    """Whether a line under a tape called the function that failed in NumPy: with values it would lose its gradient."""
    if not any(tapes_around(outer.source, outer.line) for outer in inside[:-1]):
        return False
    last = inside[-1].source.statement(inside[-1].line)
    return last is not None and any(is_outside(one.func, inside[-1]) for one in calls(last))


def _undecorated(situation: Situation, index: int) -> Edit | None:
    """The function without its `@tf.function`, where eager code calls it by its name."""
    inside = [spot for spot in situation.spots[index:] if spot.function is not None]
    graphs = [spot for spot in inside if wrapping.is_graph(spot.function)]  # type: ignore[arg-type]
    spot = situation.spots[index]
    outer = situation.outer(spot)
    function = spot.function
    if len(graphs) != 1 or graphs[0] is not spot or outer is None or outer.by or outer.generated:
        return None
    taped = inside[: next((at for at, one in enumerate(inside) if _has_own_gradient(one.function)), len(inside))]
    if any(map(_leaves_the_tape, taped)) or (taped == inside and _numpy_under_a_tape(inside)):
        return None  # with values it would run, and have no gradient
    statement = outer.statement
    name = getattr(function, "name", "")
    called = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] == name] if statement else []
    used = [
        one for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.Attribute) and dotted(one.value).rpartition(".")[2] == name
    ]  # fmt: skip
    decorators = getattr(function, "decorator_list", [])
    if not called or used or len(decorators) != 1:
        return None
    one = decorators[0]
    blanks = indent_of(spot.source.lines[one.lineno - 1])
    line = f"{blanks}# no tf.function: {name} needs values"
    return Edit(spot.file, one.lineno, one.end_lineno or one.lineno, (line,))
