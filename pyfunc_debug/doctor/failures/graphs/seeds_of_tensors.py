"""`tf.random.set_seed(x)` of a tensor in a traced function: Python keeps it, and the next random op asks its value.

`random_seed.get_seed` (tensorflow/python/framework/random_seed.py) compares the seeds with 0, in Python.
"""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, dtype_of, root_is, symbolic_parts

RULE = "symbolic-value"
_SETS = ("random.set_seed", "random.set_random_seed")
_STATELESS = {"normal", "uniform", "truncated_normal", "categorical", "gamma", "poisson"}
_FARTHEST = 12
"""Lines from the seed to the last draw that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a random op of the failing line met a seed that is a symbolic tensor."""
    spot = situation.last
    function = spot.function if spot is not None else None
    if spot is None or situation.body or not isinstance(function, ast.FunctionDef) or "bool" not in situation.message:
        return None
    own = [one for one in calls(function) if root_is(one.func, spot, "tensorflow")]
    seeds = [
        one for one in own
        if dotted(one.func).endswith(_SETS) and one.lineno < spot.line
        and one.args and symbolic_parts(one.args[0], spot)
    ]  # fmt: skip
    draws = [one for one in own if dotted(one.func).rpartition(".")[0].endswith("random") and one not in seeds]
    failed = [one for one in draws if one.lineno <= spot.line <= (one.end_lineno or one.lineno)]
    if not seeds or not failed:
        return None
    code, seed = short(spot.source.text(seeds[-1]), 36), spot.source.text(seeds[-1].args[0])
    cause = (
        f"`{code}` ran once, while {function.name} was traced: Python keeps {seed} as the seed, and this random op "
        "asks for its value, which no trace has. A stateless op takes a tensor as its seed, in each run."
    )
    edit = _stateless(spot, seeds[-1], [one for one in draws if one.lineno > seeds[-1].lineno])
    tf = alias(spot, "tensorflow")
    advice = f"`{tf}.random.stateless_normal(shape, seed=[{seed}, 0])`, and its siblings, in place of the random ops."
    return Explanation(RULE, spot.file, seeds[-1].lineno, cause, edit, "" if edit else advice)


def _stateless(spot: Spot, seed: ast.Call, draws: list[ast.Call]) -> Edit | None:
    """The lines from the seed on, without it, and with a stateless op for each draw."""
    source, given = spot.source, seed.args[0]
    statement = source.statement(seed.lineno)
    names = [dotted(one.func).rpartition(".")[2] for one in draws]
    first, last = seed.lineno, max(one.end_lineno or one.lineno for one in draws)
    if (
        last - first > _FARTHEST
        or not set(names) <= _STATELESS
        or not isinstance(statement, ast.Expr)
        or statement.value is not seed
        or any(word.arg == "seed" for one in draws for word in one.keywords)
        or any(_repeated(spot, one) for one in draws)
    ):
        return None
    tf, text = alias(spot, "tensorflow"), source.text(given)
    if not isinstance(given, ast.Name) or "int" not in dtype_of(spot.value(given.id)):
        text = f"{tf}.cast({text}, {tf}.int32)"
    pieces: dict[ast.expr, str] = {}
    for number, (one, name) in enumerate(zip(draws, names)):
        parts, words = [source.text(part) for part in one.args], [source.text(word) for word in one.keywords]
        new = f"[{text}, {number}]"
        if len(parts) > 1 and name != "categorical":
            parts.insert(1, new)
        else:
            parts.append(f"seed={new}")
        pieces[one] = f"{source.text(one.func).rpartition('.')[0]}.stateless_{name}({', '.join([*parts, *words])})"
    return Edit(spot.file, first, last, source.spliced(pieces, first, last)[(seed.end_lineno or first) - first + 1 :])


def _repeated(spot: Spot, draw: ast.Call) -> bool:
    """Whether a draw stands in a loop or in another draw: one seed would draw the same each time."""
    for one in spot.source.around(draw):
        if isinstance(one, (ast.For, ast.While, ast.Lambda)) or (
            isinstance(one, ast.Call) and "random" in dotted(one.func)
        ):
            return True
        if isinstance(one, ast.FunctionDef):
            return False
    return False
