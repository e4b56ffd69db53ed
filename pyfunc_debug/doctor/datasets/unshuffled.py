"""A dataset that is made without its shuffle: in place, or by one more argument of the function that makes several."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source


def unshuffled(facts: Facts, file: str, name: str, line: int) -> tuple[int, str] | None:
    """The line of a file's one shuffle, and the text that makes a dataset without it.

    A dataset that is trained on, too, keeps its shuffle there.

    Args:
      facts: The recording.
      file: The user's file.
      name: The variable of the dataset.
      line: Where it is to be read in order.

    Returns:
      None where the file shuffles more than once; an empty text where the change is not sure.
    """
    own = pastes.source(facts, file)
    found = [
        (one, one.func) for one in pastes.walk(own.tree, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "shuffle"
    ]  # fmt: skip
    if len(found) != 1:
        return None
    call, func = found[0]
    maker = next((one for one in own.around(call) if isinstance(one, ast.FunctionDef)), None)
    calls = [one for one in pastes.walk(own.tree, ast.Call) if maker and ast.unparse(one.func) == maker.name]
    fitted = [one for one in pastes.walk(own.tree, ast.Call) if pastes.last_name(one.func) == "fit" and one.args]
    if any(ast.unparse(one.args[0]) == name for one in fitted):
        return call.lineno, _in_order_there(facts, own, file, name, line, call)
    if len(calls) < 2:
        return call.lineno, pastes.written(pastes.replaced(facts, file, {call: own.text(func.value)}))
    made = [one for one in calls if one in pastes.assigned(own.tree, name)]
    if maker is None or len(made) != 1:
        return call.lineno, ""
    return call.lineno, _by_argument(facts, own, file, maker, call, made[0])


def _in_order_there(facts: Facts, own: Source, file: str, name: str, line: int, call: ast.Call) -> str:
    """The line that reads a dataset, with what makes it, without the shuffle, in its place."""
    made = pastes.assigned(own.tree, name)
    read = pastes.call_at(facts, file, line, "predict")
    whole = made[0] if len(made) == 1 and any(one is call for one in ast.walk(made[0])) else None
    if whole is None or read is None or not read.args or not isinstance(call.func, ast.Attribute):
        return ""
    text = own.text_with(whole, {call: own.text(call.func.value)})
    return pastes.written(pastes.replaced(facts, file, {read.args[0]: text}))


def _by_argument(facts: Facts, own: Source, file: str, maker: ast.FunctionDef, call: ast.Call, made: ast.Call) -> str:
    """`shuffle=True` as the last parameter of a function, and False in one of its calls."""
    statement, last = own.statement(call.lineno), [*maker.args.args, *maker.args.kwonlyargs][-1:]
    if not isinstance(statement, ast.Assign) or statement.value is not call or not last or maker.args.kwarg:
        return ""
    if maker.args.vararg or statement.lineno != statement.end_lineno or any(one.arg == "shuffle" for one in last):
        return ""
    defaults = [one for one in (*maker.args.defaults, *maker.args.kw_defaults) if one is not None]
    place: ast.expr = defaults[-1] if defaults else last[0]  # type: ignore[assignment]  # it has a place in the text, too
    text = own.text(place)
    condition = pastes.above(facts, file, statement.lineno, "if shuffle:")
    inner = pastes.replaced(facts, file, {statement.targets[0]: f"    {own.text(statement.targets[0])}"})
    return pastes.written(
        pastes.replaced(facts, file, {place: f"{text}, shuffle=True"}), condition, inner,
        pastes.replaced(facts, file, {made: own.with_argument(made, "shuffle=False")}),
    )  # fmt: skip
