"""Variables inside of a function under `tf.custom_gradient`: their gradients, which its grad returns in a list.

TensorFlow hands the variables to grad as `variables`, in an order of its own, and wants a gradient for each. A tape
inside of grad that goes through the function's own lines gives all of them.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import NODE_CALLS
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, names
from pyfunc_debug.doctor.failures.reading.symbols import is_keras_variable, is_tf_variable

if TYPE_CHECKING:
    from pyfunc_debug.doctor.failures.gradients.custom_gradients import Made

RULE = "structure"
_EACH = "Must return gradient for each variable from @custom_gradient grad_fn"
_FILE = "custom_gradient.py"
_NO_GRAPH = "Tensor.graph is undefined when eager execution is enabled"
_MOST = 3
"""Lines of the function that the tape goes through."""


def without(made: Made) -> Explanation | None:
    """The explanation for a grad that does not take `variables`."""
    edit, words = _taped(made)
    if edit is None:
        edit = _with_none(made)
        words = "Put theirs in the second; None for those that are arguments too: theirs are in the first."
    cause = (
        f"{made.function.name} uses variables, so that TensorFlow asks {made.grad.name} for their gradients as well: "
        f"it takes `variables` and returns two groups. {words}"
    )
    return _explained(made, cause, edit)


def explain(situation: Situation, made: list[Made]) -> Explanation | None:
    """The explanation, if what a grad takes or returns is not what TensorFlow counts on, in words of Python's.

    Args:
      situation: The failure.
      made: The functions under `tf.custom_gradient` of the user's files.
    """
    inside = [one for one in frames(situation.inner.__traceback__) if one.f_code.co_filename.endswith(_FILE)]
    if _NO_GRAPH in situation.message:
        return _in_branch(situation, made)
    if not inside or situation.body:
        return None
    if _EACH in situation.message:
        found = [one for one in made if _takes_variables(one)]
        if len(found) != 1:
            return None
        edit, words = _taped(found[0])
        cause = (
            f"{found[0].grad.name} returns another number of gradients for `variables` than "
            f"{found[0].function.name} uses variables: one for each, in the order of `variables`. {words}"
        )
        return _explained(found[0], cause, edit)
    grad_fn = inside[-1].f_locals.get("grad_fn")
    own = [one for one in made if one.grad.name == getattr(grad_fn, "__name__", "")]
    if len(own) == 1 and inside[-1].f_locals.get("variables") and _takes_variables(own[0]):
        return _ungrouped(own[0])
    return None


def _takes_variables(made: Made) -> bool:
    inputs = made.grad.args
    return any(one.arg == "variables" for one in (*inputs.args, *inputs.kwonlyargs))


def _ungrouped(made: Made) -> Explanation | None:
    """A grad that takes `variables` and returns only the gradients of the inputs."""
    value = made.returned[0].value if len(made.returned) == 1 else None
    if value is None or (isinstance(value, ast.Tuple) and isinstance(value.elts[-1], (ast.List, ast.ListComp))):
        return None
    edit, words = _taped(made)
    cause = (
        f"{made.grad.name} takes `variables` and returns one group of gradients. It returns two: those of the inputs, "
        f"and a list with one for each variable. {words}"
    )
    return _explained(made, cause, edit)


def _explained(made: Made, cause: str, edit: Edit | None) -> Explanation:
    advice = "" if edit else f"def {made.grad.name}(..., variables=None), which returns (gradients, [of variables])."
    return Explanation(RULE, made.file, made.grad.lineno, cause, edit, advice, "likely")


def _taped(made: Made) -> tuple[Edit | None, str]:
    """The grad with the gradients of the variables from a tape of its own, and what is said of it."""
    grad, source = made.grad, made.source
    text = source.text
    result = made.returned[0] if len(made.returned) == 1 else None
    lines, value = _forward(made) if not any(map(_leaves, ast.walk(made.function))) else ([], None)
    tf = dotted(made.function.decorator_list[-1]).rpartition(".")[0]
    if result is None or result.value is None or value is None or not tf or grad.body[-1] is not result:
        return None, ""
    if grad.args.vararg or grad.args.kwarg or grad.body[0].lineno == grad.lineno or len(grad.body) > _MOST:
        return None, ""
    taken = {one.id for one in ast.walk(made.function) if isinstance(one, ast.Name)}
    tape = next(one for one in ("inner", "forward", "of_variables") if one not in taken)
    inputs = [one.arg for one in grad.args.args if one.arg != "variables"]
    returned = result.value
    grouped = isinstance(returned, ast.Tuple) and _takes_variables(made) and len(returned.elts) == 2
    first = returned.elts[0] if grouped and isinstance(returned, ast.Tuple) else returned
    group = f"({text(first)})" if isinstance(first, ast.Tuple) else text(first)
    blanks = indent_of(source.lines[grad.lineno - 1])
    inside = indent_of(source.lines[result.lineno - 1])
    deeper = inside + (inside[len(blanks) :] or "    ")
    of = inputs[0] if len(inputs) == 1 else f"[{', '.join(inputs)}]"
    kept = [source.lines[number - 1] for number in range(grad.body[0].lineno, result.lineno)]
    used = {one for line in kept for one in re.findall(r"\w+", line)} | set(names(returned))
    new = (
        f"{blanks}def {grad.name}({', '.join([*inputs, 'variables=None'])}):",
        *(kept if _wanted(grad, first) else ()),
        f"{inside}with {tf}.GradientTape() as {tape}:",
        *(f"{deeper}{one}" for one in lines),
        f"{deeper}value = {value}",
        f"{inside}return {group}, {tape}.gradient(value, variables, {of})",
    )
    if "value" in taken | used:
        return None, ""
    last = result.end_lineno or result.lineno
    return Edit(made.file, grad.lineno, last, new), "Below a tape derives them from the function's own lines."


def _with_none(made: Made) -> Edit | None:
    """The grad that gives the variables None, where a tape cannot derive their gradients."""
    grad, text = made.grad, made.source.text
    value = made.returned[0].value if len(made.returned) == 1 else None
    if value is None or grad.body[-1] is not made.returned[0] or grad.args.kwonlyargs:
        return None
    if grad.body[0].lineno == grad.lineno:
        return None
    lines = made.source.lines
    parts = f"({text(value)})" if isinstance(value, ast.Tuple) else text(value)
    takes = ", ".join([*map(text, grad.args.args), "variables=None"])
    new = (
        f"{indent_of(lines[grad.lineno - 1])}def {grad.name}({takes}):",
        *lines[grad.body[0].lineno - 1 : made.returned[0].lineno - 1],
        f"{indent_of(lines[made.returned[0].lineno - 1])}return {parts}, [None] * len(variables)",
    )
    return Edit(made.file, grad.lineno, grad.end_lineno or grad.lineno, new)


def _leaves(node: ast.AST) -> bool:
    """Whether a call takes what it is given out of TensorFlow, where a tape does not follow."""
    called = dotted(node.func) if isinstance(node, ast.Call) else ""
    return called.rpartition(".")[2] in (*NODE_CALLS, "numpy", "stop_gradient") or called.startswith(("np.", "numpy."))


def _wanted(grad: ast.FunctionDef, first: ast.expr) -> bool:
    """Whether what stands above the `return` is for the gradients of the inputs."""
    made = {
        one.id for part in grad.body[:-1] if isinstance(part, ast.Assign)
        for target in part.targets for one in ast.walk(target) if isinstance(one, ast.Name)
    }  # fmt: skip
    return bool(made & set(names(first))) or any(not isinstance(one, ast.Assign) for one in grad.body[:-1])


def _forward(made: Made) -> tuple[list[str], str | None]:
    """The lines of the function, and the expression of its results; None where they are more than plain lines."""
    last = [one.value for one in made.function.body if isinstance(one, ast.Return)][-1]
    results = list(last.elts[:-1]) if isinstance(last, ast.Tuple) else []
    if not results:
        return [], None
    text = made.source.text
    before = [one for one in made.function.body if not isinstance(one, (ast.Return, ast.FunctionDef))]
    before = [one for one in before if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    if len(before) > _MOST or any(not isinstance(one, ast.Assign) or one.lineno != one.end_lineno for one in before):
        return [], None
    assigned = {name.id for one in before for name in ast.walk(one) if isinstance(name, ast.Name)
                and isinstance(name.ctx, ast.Store)}  # fmt: skip
    inputs = {one.arg for one in made.function.args.args}
    whole = results[0] if len(results) == 1 else None
    if whole is None or assigned & (inputs | set(names(made.grad))):
        # a name of its own in grad would hide the function's
        only = before[0] if len(before) == 1 and isinstance(before[0], ast.Assign) else None
        whole_line = only is not None and whole is not None and dotted(only.targets[0]) == dotted(whole)
        return [], text(only.value) if only is not None and whole_line and not assigned & inputs else None
    if len(before) == 1 and isinstance(before[0], ast.Assign) and dotted(before[0].targets[0]) == dotted(whole):
        return [], text(before[0].value)
    return [text(one) for one in before], text(whole)


def _reads_variable(made: Made, spot: Spot) -> bool:
    """Whether a function or its grad reads a variable of the module."""
    return any(is_tf_variable(spot.value(name)) or is_keras_variable(spot.value(name)) for name in names(made.function))


def _in_branch(situation: Situation, made: list[Made]) -> Explanation | None:
    """A function with variables of its own in a branch of a graph: TensorFlow cannot differentiate that."""
    last = situation.last
    found = [one for one in made if last is not None and (_takes_variables(one) or _reads_variable(one, last))]
    if len(found) != 1:
        return None
    name = found[0].function.name
    calls = [one for one in ast.walk(found[0].source.tree) if isinstance(one, ast.Call) and dotted(one.func) == name]
    if len(calls) != 1:
        return None
    cause = (
        f"{name} has a custom gradient and reads variables inside, and it is called in a branch (or loop) of a graph. "
        f"TensorFlow cannot take `variables` of a custom gradient there."
    )
    advice = (
        f"Give {name} the variable as an argument, `tf.convert_to_tensor(v)` made above the branch, and return its "
        "gradient in its place among those of the inputs; then it needs no `variables`."
    )
    return Explanation(RULE, found[0].file, calls[0].lineno, cause, None, advice, "likely")
