"""No gradient, because NumPy took what the model gave out of TensorFlow's sight: by `.numpy()`, or in a body."""

from __future__ import annotations

import ast
import re
import types

from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.failures.gradients.left_behind import Cut, left_behind, moves_in_steps
from pyfunc_debug.doctor.failures.models.hidden_models import under_the_tape
from pyfunc_debug.doctor.failures.ops import stand_ins
from pyfunc_debug.doctor.failures.ops.body_in_ops import as_edit, body_in_ops
from pyfunc_debug.doctor.failures.ops.rewrites import as_ops, whole_as_ops, writes_parts
from pyfunc_debug.doctor.failures.ops.slopes import COST
from pyfunc_debug.doctor.failures.ops.slopes import by_differences as measured_gradient
from pyfunc_debug.doctor.failures.ops.smooth import NEAR, in_steps, of_library, ranks, smoothed
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.pastes.plain_call import plain_call
from pyfunc_debug.doctor.failures.pastes.said_twice import said_twice
from pyfunc_debug.doctor.failures.reading.nodes import (
    Node,
    body_spot,
    inputs_of,
    return_value,
    site_spot,
    traced_inputs,
    user_nodes,
)
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import (
    Source,
    dotted,
    indent_of,
    names,
    parameters,
    read,
    short,
    tapes_before,
)
from pyfunc_debug.doctor.failures.reading.symbols import Described, alias, calls

RULE = "cut-gradient"
_OTHERWISE = " A py_function has one, through TensorFlow's ops in its body."
_MODULES = ("np", "numpy", "math", "scipy")
"""What computes something besides: it does not go with the value that it is given."""
_MOST = 6
"""Lines of a paste that are not the user's own."""
_COMPUTES = {"cast", "reduce_sum", "reduce_mean", "square", "abs", "pow", "multiply", "subtract", "add", "print"}
"""Ops that compute with whole numbers as they do with floats."""
_FLAT = re.compile(r"\b(?:unique|searchsorted|one_hot|histogram_fixed_width|bincount|argmax|argmin)\(")
"""Ops without a gradient."""
_SAID = "No gradients provided for any variable"
_NO_TENSOR = re.compile(
    r"'(?:numpy\.)?\w+' object has no attribute '(?:_id|dtype)'"
    r"|Cannot convert the argument `type_value`: [-\d.e]+ to a "
)
"""What `tape.gradient` says where it is asked for the gradient of a number of Python's or NumPy's."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if NumPy under a tape of the user's is why."""
    if situation.body:
        return None
    if _SAID not in situation.message and not _of_a_number(situation):
        return _none(situation) if "None" in situation.message else None
    for spot in reversed(situation.spots):
        source = read(spot.file)
        blocks = tapes_before(source, spot.line)
        if len(blocks) > 1:
            blocks = [one for one in blocks if source.function(one.lineno) is source.function(spot.line)]
        cuts = [cut for block in blocks for cut in _cuts(block) if not _is_given_away(cut, source, spot)]
        if len(blocks) == 1 and cuts:
            return _explanation(spot.file, source, cuts)
        if len(blocks) == 1 and (found := _hidden(situation, source, blocks[0])) is not None:
            return found
        if len(blocks) == 1 and (cut := left_behind(spot, blocks[0])) is not None:
            return _left(spot, cut)
        if len(blocks) == 1 and (found := _between(situation, blocks[0])) is not None:
            return found
    return _measured(situation)


def _of_a_number(situation: Situation) -> bool:
    """Whether a tape was asked for the gradient of something that is not a tensor."""
    statement = situation.statement
    asks = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "gradient"
    ] if statement is not None else []  # fmt: skip
    return bool(asks) and _NO_TENSOR.search(situation.message) is not None


def _between(situation: Situation, block: ast.With) -> Explanation | None:
    """The only numpy_function that is called under a tape."""
    nodes = [node for node in user_nodes(situation) if node.kind != "py_function" and node.site is not None]
    nodes = [node for node in nodes if (call := node.call()) is not None and call in ast.walk(block)]
    if len({node.site for node in nodes}) != 1:
        return None
    return _of_node(situation, nodes[0], "the tape's variables and the loss")


def _measured(situation: Situation) -> Explanation | None:
    """A numpy_function that the recording found between the variables and the loss, as of a loss given to Keras."""
    noticed = {int(number) for (number,) in situation.rows("SELECT node FROM notice WHERE rule = ?", (RULE,)) if number}
    nodes = [node for node in user_nodes(situation) if node.id in noticed and node.kind != "py_function"]
    found = [(node, call) for node in nodes if node.site is not None and (call := node.call()) is not None]
    if len({node.site for node, _ in found}) != 1:
        return None
    return _of_node(situation, found[0][0], "the variables and the loss")


def _of_node(situation: Situation, node: Node, between: str) -> Explanation | None:
    """What to say of a numpy_function that has no gradient, and to paste."""
    call = node.call()
    if call is None or node.site is None:
        return None
    cause = (
        f"{node.called} runs in a {dotted(call.func).rpartition('.')[2]}, which has no gradient, and stands between "
        f"{between}."
    )
    smooth = in_steps(node.function() or call) is None
    stepped = stand_ins.instead(situation, node, call) if smooth else None
    if stepped is not None:
        return Explanation(RULE, *node.site, f"{cause} {stepped[0]}", stepped[1], stepped[2])
    plain = _in_ops(situation, node) if smooth else None
    if plain is not None:
        return Explanation(RULE, *node.site, f"{cause} TensorFlow's ops have one.", plain)
    edit, advice = _differentiable(situation, node, call)
    by_differences = measured_gradient(situation, node, call) if edit is None else None
    if by_differences is not None:
        return Explanation(RULE, *node.site, cause, by_differences, COST)
    cause += _OTHERWISE if smooth and not advice.startswith("Ranks") else ""
    return Explanation(RULE, *node.site, cause, edit, advice)


def _in_ops(situation: Situation, node: Node) -> Edit | None:
    """The body in TensorFlow's ops, and a plain call of it."""
    known = list(inputs_of(node, situation).values())
    known = known or [Described(dtype, shape) for dtype, shape in traced_inputs(node, situation)]
    function = node.function()
    known = known or [Described("float32", None) for _ in (parameters(function) if function is not None else [])]
    plain = plain_call(situation, node, known) if known else None
    return None if plain is None or _FLAT.search("\n".join(plain.lines)) else plain


def _hidden(situation: Situation, source: Source, block: ast.With) -> Explanation | None:
    """A model that is called inside a numpy_function under the tape."""
    trained = [
        source.text(one.value) for one in ast.walk(source.tree)
        if isinstance(one, ast.Attribute) and one.attr in ("trainable_variables", "trainable_weights")
    ]  # fmt: skip
    for node in user_nodes(situation):
        function, call = node.function(), node.call()
        if function is None or call is None or node.kind == "py_function" or call not in ast.walk(block):
            continue
        called = [
            one for one in ast.walk(function) if isinstance(one, ast.Call) and source.text(one.func) in trained
        ]  # fmt: skip
        if node.site is None or node.file != node.site[0] or not called:
            continue
        model = source.text(called[0].func)
        given = ", ".join(source.text(one) for one in called[0].args)
        cause = (
            f"{node.called} calls {model} (line {called[0].lineno}) inside a {node.kind}. A tape sees nothing of what "
            f"runs there, so that no variable of {model} has a gradient."
        )
        advice = (
            f"Let {node.called} return {given or 'what it gives the model'}, and call {model} on it under the tape, "
            f"after line {call.end_lineno}."
        )
        around = list(source.around(block))
        spot = next((one for one in reversed(situation.spots) if one.function in around), None)
        edit = None
        if spot is not None and isinstance(function, ast.FunctionDef) and len(called) == 1:
            edit = under_the_tape(spot, function, called[0], call)
        return Explanation(RULE, *node.site, cause, edit, "" if edit else advice)
    return None


def _none(situation: Situation) -> Explanation | None:
    """`g = tape.gradient(y, x)` is None behind a numpy_function, and a later line computes with it."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None:
        return None
    empty = [name for name in names(statement) if name in spot.variables and _is_none(spot.variables[name])]
    asked = [
        one.value for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and one.lineno <= spot.line
        and isinstance(one.value.func, ast.Attribute) and one.value.func.attr == "gradient"
        and any(
            isinstance(part, ast.Name) and part.id in empty for target in one.targets for part in ast.walk(target)
        )
    ]  # fmt: skip
    nodes = [node for node in user_nodes(situation) if node.call() is not None and node.site is not None]
    nodes += [node for node in user_nodes(situation, scratch=True) if node.call() is not None and node.site is not None]
    nodes = [node for node in nodes if node.kind != "py_function"]
    if len(asked) == 1 and not nodes:
        blocks = tapes_before(spot.source, spot.line)
        cut = left_behind(spot, blocks[0]) if len(blocks) == 1 else None
        return _left(spot, cut, f"`{spot.source.text(asked[0])}` is None.") if cut is not None else None
    if len(asked) != 1 or len({node.site for node in nodes}) != 1:
        return None
    node, call = nodes[0], nodes[0].call()
    assert node.site is not None
    assert call is not None
    cause = (
        f"`{spot.source.text(asked[0])}` gave None: {node.called} runs in a {dotted(call.func).rpartition('.')[2]}, "
        "which has no gradient."
    )
    smooth = in_steps(node.function() or call) is None
    stepped = stand_ins.instead(situation, node, call) if smooth else None
    if stepped is not None:
        return Explanation(RULE, *node.site, f"{cause} {stepped[0]}", stepped[1], stepped[2], "likely")
    edit, advice = _differentiable(situation, node, call)
    if edit is None and smooth:
        plain = _in_ops(situation, node)
        if plain is not None:
            return Explanation(RULE, *node.site, f"{cause} TensorFlow's ops have one.", plain, "", "likely")
        by_differences = measured_gradient(situation, node, call)
        if by_differences is not None:
            return Explanation(RULE, *node.site, cause, by_differences, COST, "likely")
    cause += _OTHERWISE if smooth else ""
    return Explanation(RULE, *node.site, cause, edit, advice, "likely")


def _is_none(value: object) -> bool:
    """Whether it is None, or a list of nothing else."""
    return value is None or (isinstance(value, (list, tuple)) and bool(value) and all(one is None for one in value))


def _differentiable(situation: Situation, node: Node, call: ast.Call) -> tuple[Edit | None, str]:
    """The body's result in TensorFlow's ops, and the call as a py_function: lines that stand together, or two steps."""
    function, site = node.function(), site_spot(node, situation)
    value = return_value(function) if function is not None else None
    known = function is None or bool(inputs_of(node, situation))
    floats = {} if function is None or known else {name: Described("float32", None) for name in parameters(function)}
    spot = body_spot(node, situation, floats)
    instead = of_library(call, site) if site is not None else None
    if instead is not None:
        wide = " rankdata gives float64." if "float64)" in "".join(instead.lines) else ""
        why = f"Ranks move in steps, also in ops. These are smooth: values nearer than {NEAR} share a rank.{wide}"
        return instead, why
    if site is None or spot is None or function is None or value is None or node.file != site.file:
        return None, "Compute it with TensorFlow's ops in a tf.py_function, not with NumPy."
    inputs = tuple(parameters(function))
    flat = in_steps(function)
    smooth = ranks(function, call, site.source) if flat is not None else None
    placed = site.source.replaced({call: smooth}) if smooth is not None else None
    if placed is not None:
        return Edit(site.file, placed[0], placed[1], (placed[2],)), (
            f"Ranks move in steps, also in ops. These are smooth: values nearer than {NEAR} share a rank."
        )
    if flat is not None:
        return None, (
            f"`{short(spot.source.text(flat), 30)}` (line {flat.lineno}) moves in steps: its gradient is zero or none "
            f"in a py_function, too. Use {node.called} for a metric, and something smooth for the loss."
        )
    if not isinstance(function, ast.Lambda) and (writes_parts(function) or not whole_as_ops(function, spot)):
        return None, (
            f"{node.called} computes with NumPy, which has no gradient anywhere: write it with TensorFlow's ops, or "
            "give it a gradient of your own (tf.custom_gradient)."
        )
    text = as_ops(value, spot, also=inputs, same=True)
    head = dotted(call.func).partition(".")[0]
    op = f"{head}.py_function" if "." in dotted(call.func) else "tf.py_function"
    if text is None:
        return None, f"Compute it with TensorFlow's ops, and call {op} here."
    if text == ast.unparse(value) and isinstance(function, ast.Lambda):  # it has its gradient already
        placed = site.source.replaced({call.func: op})
        return (Edit(site.file, placed[0], placed[1], (placed[2],)), "") if placed is not None else (None, "")
    if text == ast.unparse(value):
        return None, f"Call {op} here, and compute in {node.called} with TensorFlow's ops."
    pieces = [site.source.replaced({call.func: op}), site.source.replaced({value: text})]
    lines = [one for one in pieces if one is not None]
    first, last = min(one[0] for one in lines), max(one[1] for one in lines)
    if len(lines) < 2 or last - first > 1 or lines[0][0] == lines[1][0]:
        return None, f"Call {op} here, and let {node.called} return `{text}`."
    lines.sort()
    return Edit(site.file, first, last, tuple(one[2] for one in lines)), ""


def _cuts(block: ast.With) -> list[ast.Call]:
    """Calls of `.numpy()` in a block, whose values the tape does not see."""
    return [
        one for one in ast.walk(block)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "numpy"
        and not one.args
    ]  # fmt: skip


def _is_given_away(cut: ast.Call, source: Source, spot: Spot) -> bool:
    """Whether a value goes to a method of an object of the user's: `env.step(action.numpy())`, which makes no loss."""
    for one in source.around(cut):
        if isinstance(one, ast.stmt):
            return False
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
            head = dotted(one.func).partition(".")[0]
            owner = type(spot.value(head)).__name__
            if head and head not in _MODULES and owner not in ("module", "KerasLazyLoader", "_LazyLoader"):
                return not any(cut is part for part in ast.walk(one.func))
    return False


def by_the_source(file: str, source: Source, line: int) -> Explanation | None:
    """The same for a gradient that is None while the program goes on, by what its file says.

    Args:
      file: The file.
      source: Its text.
      line: The line that asks the tape.
    """
    blocks = tapes_before(source, line)
    if len(blocks) != 1:
        return None
    module: dict[str, object] = {name: types.ModuleType(full) for name, full in imports(source).items()}
    called = {dotted(one.func) for one in calls(blocks[0])}
    inside = [one.id for one in ast.walk(blocks[0]) if isinstance(one, ast.Name) and one.id not in called]
    floats: dict[str, object] = {one: Described("float32", None) for one in inside if one not in module}
    spot = Spot(file, line, floats, module, "")
    asked = [
        one.args[1] for one in calls(source.statement(line) or source.tree)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "gradient" and len(one.args) > 1
    ]  # fmt: skip
    cut = left_behind(spot, blocks[0], names(asked[0])) if len(asked) == 1 else None
    return None if cut is None or cut.predicts else _left(spot, cut, "The gradient is None.")


def _left(spot: Spot, cut: Cut, so: str = "No variable has a gradient.") -> Explanation:
    """The loss as it came to the tape: a number, or what was made of numbers and arrays. `so` is what follows."""
    text, line = spot.source.text, cut.call.lineno
    if moves_in_steps(cut.call) and cut.inner is not None:
        return _steps(spot, cut, cut.inner, so)
    stops = dotted(cut.call.func).endswith("stop_gradient")
    how = "lets no gradient through" if stops else "leaves TensorFlow"
    why = "" if stops else ": a GradientTape sees ops of TensorFlow only"
    cause = f"`{short(text(cut.call), 30)}` {how}, and the loss is made of it alone{why}. {so}"
    whole = cut.inner is not None and not cut.walls and dotted(cut.call.func).partition(".")[0] not in _MODULES
    kept = None if cut.inner is None else text(cut.inner)
    if cut.predicts and isinstance(cut.call.func, ast.Attribute):
        kept, cause = (
            f"{text(cut.call.func.value)}({kept})",
            (
                f"`{short(text(cut.call), 30)}` gives an array: predict is a loop of its own; a GradientTape sees "
                f"nothing. {so} The model called gives the same as a tensor."
            ),
        )
    placed = spot.source.replaced({cut.call: kept}) if whole and kept is not None else None
    edit = _unchanged(spot, cut.call, kept) if placed is not None else None
    edit = edit or edit_of(spot.file, placed)
    edit = edit or (None if stops else _function_in_ops(spot, cut) or _line_in_ops(spot, cut))
    if edit is not None:
        return Explanation(RULE, spot.file, line, cause, edit, "", "likely")
    advice = "Keep the tensor, and compute the loss with TensorFlow's ops."
    if cut.walls:
        wall = cut.walls[0]
        advice = (
            f"Keep the tensor, and compute with TensorFlow's ops what follows: `{short(text(wall), 30)}` (line "
            f"{wall.lineno}) has no gradient either."
        )
    counts = next((one for wall in cut.walls if (one := in_steps(wall)) is not None), None)
    if counts is not None:
        advice = _smooth_counts(spot, counts)
    return Explanation(RULE, spot.file, line, cause, None, advice, "likely")


def _smooth_counts(spot: Spot, call: ast.Call) -> str:
    """What to do instead of a call on the way to a loss that counts, or gives places."""
    said = f"`{short(spot.source.text(call), 30)}` (line {call.lineno}) moves in steps, also in ops."
    if dotted(call.func).rpartition(".")[2] != "histogram" or not call.args:
        return f"{said} Keep the tensor, and give the loss something smooth in its place."
    values = call.args[0].id if isinstance(call.args[0], ast.Name) else "x"
    tf = alias(spot, "tensorflow")
    return (
        f"{said} Smooth counts: the differences of "
        f"{tf}.reduce_sum({tf}.sigmoid((edges[:, None] - {values}) / h), 1), h small."
    )


def _unchanged(spot: Spot, call: ast.Call, kept: str | None) -> Edit | None:
    """A comment in the place of `x = x`, which is left of `x = x.numpy()`."""
    statement = spot.source.statement(call.lineno)
    block = spot.source.block(statement) if statement is not None else None
    if not isinstance(statement, ast.Assign) or statement.value is not call or block is None or len(block) < 2:
        return None
    if [spot.source.text(one) for one in statement.targets] != [kept]:
        return None
    first, last = spot.source.span(statement)
    return Edit(spot.file, first, last, (f"{indent_of(spot.source.lines[first - 1])}# {kept} stays a tensor",))


def _steps(spot: Spot, cut: Cut, inner: ast.expr, so: str) -> Explanation:
    """An op that gives whole numbers or places: its values with the gradient of its input, where they stay numbers."""
    text, source, call = spot.source.text, spot.source, cut.call
    name = dotted(call.func).rpartition(".")[2]
    compares = isinstance(inner, ast.Compare)
    what = "places" if name.startswith("arg") else "0 or 1" if compares else "whole numbers"
    cause = f"`{short(text(call), 30)}` gives {what}, and has no gradient: the loss is made of it alone. {so}"
    close = smoothed(inner, call, spot) if compares else None
    if close is not None:
        edit = close.edit(spot.file, source)
        return Explanation(RULE, spot.file, call.lineno, f"{cause} This is close, and has one.", edit, "", "likely")
    given = text(inner) if isinstance(inner, (ast.Name, ast.Call, ast.Attribute)) else f"({text(inner)})"
    tf = dotted(call.func).partition(".")[0]

    def straight(given: str) -> str:
        stepped = source.text_with(call, {inner: given})
        stepped = f"{tf}.cast({stepped}, {given}.dtype)" if name == "cast" else stepped
        return f"({given} + {tf}.stop_gradient({stepped} - {given}))"

    edit = None
    if not name.startswith("arg") and "bool" not in text(call) and _stays_a_number(source, call):
        edit = said_twice(spot.file, source, call, inner, straight, "values")
    if edit is None:
        return Explanation(
            RULE, spot.file, call.lineno, cause, None, f"Compute the loss with {given} itself.", "likely"
        )
    cause += f" This has its values; {stand_ins.TOLD}."
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "", "likely")


def _stays_a_number(source: Source, call: ast.Call) -> bool:
    """Whether what a call gives is only computed with: as an index, floats would not do."""
    around = source.parent(call)
    uses: list[ast.AST] = [call]
    if isinstance(around, ast.Assign) and len(around.targets) == 1 and isinstance(around.targets[0], ast.Name):
        scope = source.function(call.lineno) or source.tree
        name = around.targets[0].id
        uses = [
            one for one in ast.walk(scope)
            if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
        ]  # fmt: skip
    parents = [source.parent(one) for one in uses]
    return all(
        isinstance(one, (ast.BinOp, ast.UnaryOp, ast.Return))
        or (isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] in _COMPUTES)
        for one in parents
    )


def _function_in_ops(spot: Spot, cut: Cut) -> Edit | None:
    """The lines of the function that leaves TensorFlow, in its ops; None where some of it has no op."""
    source = spot.source
    function = next((one for one in source.around(cut.call) if isinstance(one, ast.FunctionDef)), None)
    if function is None or not all(wall in ast.walk(function) for wall in cut.walls) or in_steps(function) is not None:
        return None
    floats = {name: Described("float32", None) for name in parameters(function)}
    pieces = body_in_ops(function, Spot(spot.file, function.lineno, floats, spot.module, ""))
    return as_edit(spot.file, source, pieces or {}, _MOST)


def _line_in_ops(spot: Spot, cut: Cut) -> Edit | None:
    """The one line that leaves TensorFlow, in its ops."""
    source = spot.source
    statement = source.statement(cut.call.lineno)
    value = getattr(statement, "value", None)
    walls = all(statement is source.statement(wall.lineno) for wall in cut.walls)
    if not isinstance(statement, (ast.Assign, ast.Return)) or value is None or not walls:
        return None
    tensors = {
        name: Described(one.dtype.name, tuple(one.shape)) for name in names(value)
        if type(one := spot.value(name)).__name__ == "EagerTensor"
    }  # fmt: skip
    tensors |= {name: one for name in names(value) if isinstance(one := spot.value(name), Described)}
    text = (
        as_ops(value, Spot(spot.file, spot.line, {**spot.variables, **tensors}, spot.module, "")) if tensors else None
    )
    placed = source.replaced({value: text}) if text is not None else None
    return edit_of(spot.file, placed)


def _explanation(file: str, source: Source, cuts: list[ast.Call]) -> Explanation:
    cut = cuts[0]
    pieces: dict[ast.expr, str] = {
        one: source.text(one.func.value) for one in cuts
        if one.lineno == cut.lineno and isinstance(one.func, ast.Attribute)
    }  # fmt: skip
    placed = source.replaced(pieces)
    edit = edit_of(file, placed)
    more = [str(one.lineno) for one in cuts if one.lineno != cut.lineno]
    also = f" So do lines {', '.join(dict.fromkeys(more))}." if more else ""
    cause = (
        f"{source.text(cut)} leaves TensorFlow: a GradientTape sees TensorFlow's ops only, and what comes after it has "
        f"no gradient to any variable.{also}"
    )
    return Explanation(RULE, file, cut.lineno, cause, edit, "" if edit else "Leave `.numpy()` out under the tape.")
