"""What a strategy's scope made meets what was made, or runs, outside of it: a model, `compile`, a step of training."""

from __future__ import annotations

import ast
import re
import textwrap

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, method_calls

RULE = "structure"
_OUTSIDE = 'Need to be inside "with strategy.scope()" for'
_OTHERS_VARIABLE = "`colocate_vars_with` must only be passed a variable created in this tf.distribute.Strategy.scope()"
_MIXED = "Mixing different tf.distribute.Strategy objects"
_LISTS = re.compile(r"\.(?:trainable_variables|trainable_weights|variables|weights)$")
_FARTHEST = 20
"""Lines from the first to the last that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if something was made, or runs, outside of the scope of a strategy where it belongs in it."""
    spot, message = situation.last, situation.message
    if spot is None or situation.body:
        return None
    scope = _scope(spot.source)
    if scope is None:
        return None
    if message.startswith(_MIXED):
        return _compiled_outside(situation, scope)
    if _OTHERS_VARIABLE in message:
        return _made_outside(spot, scope)
    return _outside_of_run(situation, spot, scope) if _OUTSIDE in message else None


def _scope(source: Source) -> ast.With | None:
    """The one `with strategy.scope():` of a file."""
    found = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.With) and len(one.items) == 1 and isinstance(one.items[0].context_expr, ast.Call)
        and dotted(one.items[0].context_expr.func).endswith(".scope")
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _name(scope: ast.With) -> str:
    return dotted(scope.items[0].context_expr.func).rpartition(".")[0]  # type: ignore[attr-defined]


def _compiled_outside(situation: Situation, scope: ast.With) -> Explanation | None:
    """`compile` below the block of the scope: the optimizer that it makes is none of the strategy's."""
    for spot, fit in failed_fits(situation):
        source, owner = spot.source, dotted(fit.func).rpartition(".")[0]
        made = [
            one for one in calls(source.tree) if dotted(one.func) == f"{owner}.compile"
            and not any(one is part for part in ast.walk(scope))
        ]  # fmt: skip
        statement = source.statement(made[0].lineno) if len(made) == 1 else None
        if statement is None or not isinstance(statement, ast.Expr):
            continue
        blanks = indent_of(source.lines[statement.lineno - 1])
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        lines = [f"    {line}" for line in source.lines[first - 1 : last]]
        edit = Edit(spot.file, first, last, (f"{blanks}with {_name(scope)}.scope():", *lines))
        cause = (
            f"{owner} was made in the scope of {_name(scope)}, and compile stands outside: the optimizer that it gets "
            "is of no strategy."
        )
        return Explanation(RULE, spot.file, first, cause, edit)
    return None


def _made_outside(spot: Spot, scope: ast.With) -> Explanation | None:
    """A model that was made above the block of the scope, with an optimizer of the scope."""
    source = spot.source
    holder = next((one for one in _models(spot) if not any(_sets(part, one) for part in scope.body)), None)
    if holder is None:
        return None
    made = [one for one in source.tree.body if _sets(one, holder)]
    strategy = _name(scope)
    cause = (
        f"{holder} was made outside of the scope of {strategy}, and the optimizer in it: a replica of {strategy} "
        "takes variables of the scope only."
    )
    at = scope.lineno
    if len(made) != 1 or scope not in source.tree.body or made[0].lineno > at or at - made[0].lineno > _FARTHEST:
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Make {holder} in `with {strategy}.scope():` too.")
    first, end = made[0].lineno, made[0].end_lineno or made[0].lineno
    below = [one.lineno for one in source.tree.body if _sets(one, strategy)]
    if below and below[0] > first:
        return Explanation(RULE, spot.file, first, cause, None, f"Make {holder} in `with {strategy}.scope():` too.")
    moved = textwrap.indent("\n".join(source.lines[first - 1 : end]), "    ").split("\n")
    lines = (*source.lines[end:at], *moved)
    return Explanation(RULE, spot.file, first, cause, Edit(spot.file, first, at, lines))


def _models(spot: Spot) -> list[str]:
    """The names of what an optimizer is to train in the failing line."""
    statement = spot.statement
    found = method_calls(statement, "apply_gradients", "apply") if statement is not None else []
    every = [dotted(one) for call in found for one in ast.walk(call) if isinstance(one, ast.Attribute)]
    return [_LISTS.sub("", one) for one in every if _LISTS.search(one)]


def _sets(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.Assign) and name in [dotted(one) for one in statement.targets]


def _outside_of_run(situation: Situation, spot: Spot, scope: ast.With) -> Explanation | None:
    """A step of training with an optimizer of the scope, which no `strategy.run` runs."""
    statement, strategy = spot.statement, _name(scope)
    applied = method_calls(statement, "apply_gradients", "apply") if statement is not None else []
    if len(applied) != 1:
        return None
    optimizer = dotted(applied[0].func).rpartition(".")[0]
    named = getattr(spot.function, "name", "")
    models = _models(spot)
    outer = situation.outer(spot) if named else None
    used = outer.statement if outer is not None else None
    called = [one for one in calls(used) if dotted(one.func) == named] if used is not None else []
    cause = (
        f"{optimizer} was made in the scope of {strategy}, and {named or 'this line'} runs outside of {strategy}.run: "
    )
    cause += "it is to run on each replica."
    given = ", ".join(outer.source.text(one) for one in called[0].args) if called and outer is not None else "..."
    run = f"{strategy}.run({named or 'train_step'}, args=({short(given, 40)}{',' if ',' not in given else ''}))"
    variables = f"{models[0]}.trainable_variables" if models else "variables"
    advice = "" if named else "Put the step into a function train_step. "
    advice += (
        f"Call {run} in a tf.function, and no tf.function on {named or 'it'}, with the batches of "
        f"{strategy}.experimental_distribute_dataset(...). In the scope: {optimizer}.build({variables})."
    )
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)
