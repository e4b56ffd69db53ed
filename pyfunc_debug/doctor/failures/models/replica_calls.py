"""`strategy.run(train_step)` around Keras' `fit` or `train_on_batch`, or around `strategy.scope()`."""

from __future__ import annotations

import ast
import re
import textwrap

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, method_calls

RULE = "structure"
_SAID = re.compile(r"requires being in cross-replica context|should be called from outside of replica_fn")
_LOOPS = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")
_DISTRIBUTES = "experimental_distribute_dataset"
_FARTHEST = 40
"""A paste has no more lines than these."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a function that runs on each replica asked for what is there for all of them."""
    if situation.body or _SAID.search(situation.message) is None:
        return None
    places = [(one, spot) for spot in situation.spots for one in _runs(spot)]
    if len({(spot.file, one.lineno) for one, spot in places}) != 1 or situation.last is None:
        return None
    (run, spot), last = places[0], situation.last
    inside = last.statement
    given = argument(run, 0, "fn")
    if isinstance(inside, ast.With) and [dotted(getattr(one.context_expr, "func", inside)) for one in inside.items] == [
        f"{dotted(run.func).rpartition('.')[0]}.scope"
    ]:
        return _scope(inside, last, run, spot)
    loops = method_calls(inside, *_LOOPS) if inside is not None else []
    loop = loops[0].func if len(loops) == 1 else given
    if given is None or not isinstance(loop, ast.Attribute) or loop.attr not in _LOOPS:
        return None
    cause = (
        f"`{short(spot.source.text(run.func), 40)}` runs a function on each replica, and {dotted(loop)} is for all of "
        "them: Keras takes each batch apart itself, for a model that was made in the strategy's scope. Call it outside "
        "of run, with data that is not distributed yet."
    )
    edit = _plain(run, given, spot)
    return Explanation(RULE, spot.file, run.lineno, cause, edit, "" if edit else f"Call {dotted(loop)} itself.")


def _runs(spot: Spot) -> list[ast.Call]:
    """The calls of a strategy's `run` in a frame's line."""
    statement = spot.statement
    return [
        one for one in (calls(statement) if statement is not None else ())
        if isinstance(one.func, ast.Attribute) and one.func.attr in ("run", "experimental_run_v2")
        and any(kind.__name__.startswith("Strategy") for kind in type(lookup(one.func.value, spot)).__mro__)
    ]  # fmt: skip


def _scope(block: ast.With, last: Spot, run: ast.Call, spot: Spot) -> Explanation:
    """The block's lines without the `with strategy.scope():` above them."""
    first, end = block.body[0].lineno, block.end_lineno or block.lineno
    kept = textwrap.dedent("\n".join(last.source.lines[first - 1 : end])).split("\n")
    lines = tuple(f"{' ' * block.col_offset}{line}" if line else line for line in kept)
    edit = Edit(last.file, block.lineno, end, lines) if first > block.lineno else None
    cause = (
        f"`{short(spot.source.text(run), 40)}` (line {run.lineno}) runs this on each replica, where the strategy is "
        "entered already: scope() is for the code outside, which makes models and variables."
    )
    return Explanation(RULE, last.file, block.lineno, cause, edit, "" if edit else "Leave out scope() here.")


def _plain(run: ast.Call, given: ast.expr, spot: Spot) -> Edit | None:
    """The function called as it is, outside of a tf.function, on the dataset as it was before it was distributed."""
    source, args, words = spot.source, argument(run, 1, "args"), argument(run, 2, "kwargs")
    listed = [source.text(one) for one in args.elts] if isinstance(args, (ast.Tuple, ast.List)) else []
    if args is not None and not isinstance(args, (ast.Tuple, ast.List)):
        listed = [f"*{source.atom(args)}"]
    named = [] if words is None else [f"**{source.text(words)}"]
    if isinstance(words, ast.Dict) and all(isinstance(one, ast.Constant) for one in words.keys):
        named = [f"{getattr(one, 'value', '')}={source.text(two)}" for one, two in zip(words.keys, words.values)]
    text = f"{source.text(given)}({', '.join([*listed, *named])})"
    if isinstance(given, ast.Lambda):
        text = (
            source.text(given.body) if not listed and not named else f"({source.text(given)})({text.rpartition('(')[2]}"
        )
    edits = [edit_of(spot.file, source.replaced({run: text}))]
    function = source.function(run.lineno)
    if isinstance(function, ast.FunctionDef):
        traced = [one for one in function.decorator_list if "function" in ast.unparse(one)]
        edits += [Edit(spot.file, one.lineno, one.end_lineno or one.lineno, ()) for one in traced]
    if spot.generated and len(edits) < 2:
        return None
    for call in method_calls(source.tree, _DISTRIBUTES):
        statement, own = source.statement(call.lineno), argument(call, 0, "dataset")
        if statement is None or own is None:
            edits.append(None)
        elif ast.unparse(statement) == f"{ast.unparse(own)} = {ast.unparse(call)}" and source.block(statement) != [
            statement
        ]:
            edits.append(Edit(spot.file, statement.lineno, statement.end_lineno or statement.lineno, ()))
        else:
            edits.append(edit_of(spot.file, source.replaced({call: source.text(own)})))
    known = [one for one in edits if one is not None]
    if len(known) < len(edits) or max(one.last for one in known) - min(one.first for one in known) > _FARTHEST:
        return None
    return together(known, source.lines)
