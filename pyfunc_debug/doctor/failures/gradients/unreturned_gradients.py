"""A `tf.custom_gradient` whose grad returns nothing: TensorFlow takes None for its one gradient, and goes on.

With several inputs it counts one gradient for them and says so (tensorflow/python/ops/custom_gradient.py).
"""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.gradients.custom_gradients import Made, counts, made_in, made_of
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, parameters
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "none-gradient"
_NO_GRADIENT = re.compile(r"No gradients provided for any variable|NoneType|None values not supported|value \(None\)")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a program failed for want of a gradient, and the grad that has to give it returns nothing."""
    counted = counts(situation.message)
    asked = _NO_GRADIENT.search(situation.message) is not None and _asks_for_gradients(situation)
    if situation.body or (counted is None and not asked):
        return None
    made = [one for one in made_in(situation) if is_silent(one) and _is_called(one)]
    if len(made) != 1 or (counted is not None and counted != (len(parameters(made[0].function)), 1)):
        return None
    cause, edit, advice = told(made[0])
    return Explanation(RULE, made[0].file, made[0].grad.lineno, cause, edit, advice, "likely" if asked else "measured")


def under(block: ast.With, file: str, source: Source) -> Made | None:
    """The one custom gradient that lines under a tape call, and that returns nothing."""
    called = {dotted(one.func).rpartition(".")[2] for one in calls(block)}
    made = [one for one in made_of(file, source) if is_silent(one) and one.function.name in called]
    return made[0] if len(made) == 1 else None


def is_silent(made: Made) -> bool:
    """Whether a grad ends without a value, always."""
    ends = [one for one in ast.walk(made.grad) if isinstance(one, (ast.Return, ast.Yield, ast.Raise))]
    return not ends and not isinstance(made.grad.body[-1], ast.Pass)


def told(made: Made) -> tuple[str, Edit | None, str]:
    """The cause in words, what to paste, and what to do where that is not known."""
    name, grad, inputs = made.function.name, made.grad.name, parameters(made.function)
    cause = f"{grad} of {name} (line {made.grad.lineno}) has no return, so that no gradient passes {name}."
    edit = _returning(made, len(inputs))
    wanted = "gradient" if len(inputs) == 1 else f"gradient of each of {', '.join(inputs)}, in this order"
    return cause, edit, "" if edit is not None else f"Return the {wanted} from {grad}."


def _returning(made: Made, inputs: int) -> Edit | None:
    """The last line of a grad as what it returns, where all inputs but the first are numbers."""
    last, lines = made.grad.body[-1], made.source.lines
    if inputs > 1 and not _numbers_behind(made, inputs):
        return None
    rest = ", None" * (inputs - 1)
    blanks, end = indent_of(lines[last.lineno - 1]), last.end_lineno or last.lineno
    if isinstance(last, ast.Expr) and not isinstance(last.value, ast.Constant):
        called = dotted(last.value.func) if isinstance(last.value, ast.Call) else ""
        if called.rpartition(".")[2] in ("print", "append") or last.lineno != end:
            return None
        return Edit(made.file, end, end, (f"{blanks}return {made.source.text(last.value)}{rest}",))
    target = last.targets[0] if isinstance(last, ast.Assign) and len(last.targets) == 1 else None
    if not isinstance(target, ast.Name) or blanks == indent_of(lines[made.grad.lineno - 1]):
        return None
    return Edit(made.file, end + 1, end, (f"{blanks}return {target.id}{rest}",))


def _numbers_behind(made: Made, inputs: int) -> bool:
    """Whether each call of the function gives numbers for all inputs but the first."""
    every = [one for one in calls(made.source.tree) if dotted(one.func).rpartition(".")[2] == made.function.name]
    return bool(every) and all(
        len(one.args) == inputs and all(isinstance(given, ast.Constant) for given in one.args[1:]) for one in every
    )


def _is_called(made: Made) -> bool:
    return any(dotted(one.func).rpartition(".")[2] == made.function.name for one in calls(made.source.tree))


def _asks_for_gradients(situation: Situation) -> bool:
    """Whether the failing line trains, or computes with what a tape gave it as None."""
    if "No gradients provided" in situation.message:
        return True
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None:
        return False
    read = {one.id for one in ast.walk(statement) if isinstance(one, ast.Name)}
    empty = {one for one in read if one in spot.variables and spot.variables[one] is None}
    return any(
        isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and dotted(one.value.func).endswith(".gradient")
        and {part.id for target in one.targets for part in ast.walk(target) if isinstance(part, ast.Name)} & empty
        for one in ast.walk(spot.source.tree)
    )  # fmt: skip
