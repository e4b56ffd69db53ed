"""`len(train_gen)` of a generator, which does not know how many batches it gives: its loop does."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.models.batch_makers import Maker, batch_maker
from pyfunc_debug.doctor.failures.pastes.body_edits import in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup
from pyfunc_debug.program.syntax import copied

RULE = "generator"
_SAID = "object of type 'generator' has no len()"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line asks a generator of the user's for its length."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or _SAID not in situation.message:
        return None
    for call in calls(statement):
        if dotted(call.func) != "len" or len(call.args) != 1:
            continue
        value = lookup(call.args[0], spot)
        if type(value).__name__ != "generator":
            continue
        text = short(spot.source.text(call.args[0]), 30)
        cause = f"{text} is a generator, which gives one value after the other and does not know how many come."
        maker = batch_maker(call.args[0], spot)
        counted = _counted(spot, maker, _made(spot, call.args[0])) if maker is not None else ""
        if maker is not None and counted:
            cause += f" The loop of {maker.name} goes over {counted} once in each epoch."
            edit = in_place(spot, {call: f"len({counted})"})
            return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
        advice = "Give the number of its batches: the rows divided by the rows of a batch, rounded up."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    return None


def _made(spot: Spot, given: ast.expr) -> ast.Call | None:
    """The call that made the generator, where one assignment of the file gave it."""
    found = spot.source.given_to(dotted(given))
    return found[0] if len(found) == 1 and isinstance(found[0], ast.Call) else None


def _counted(spot: Spot, maker: Maker, made: ast.Call | None) -> str:
    """What the one loop around the yield goes over, in the names of the line that asks; "" where it is not known."""
    loops = [
        one for one in own_nodes(maker.function)
        if isinstance(one, ast.For) and any(isinstance(each, ast.Yield) for each in ast.walk(one))
    ]  # fmt: skip
    if len(loops) != 1 or made is None or made.keywords or any(isinstance(one, ast.Starred) for one in made.args):
        return ""
    direct = any(isinstance(one, ast.Expr) and isinstance(one.value, ast.Yield) for one in loops[0].body)
    over = loops[0].iter
    plain = isinstance(over, ast.Name) or (isinstance(over, ast.Call) and dotted(over.func) == "range")
    if not direct or not plain:
        return ""
    given = dict(zip(parameters(maker.function), made.args))
    tree = _Given(given).visit(copied(over))
    free = set(names(tree)) - {"range", "len"}
    return ast.unparse(tree) if all(spot.has(name) for name in free) and free else ""


class _Given(ast.NodeTransformer):
    """Puts what a call gives in the place of the parameters."""

    def __init__(self, given: dict[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A parameter's value."""
        return self._given.get(node.id, node)
