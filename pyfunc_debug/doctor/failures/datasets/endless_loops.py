"""A `for` of the user's own over data that begin again at their end, and no way out of it: it goes on for ever.

Keras' image generators have a length, which `fit` asks; a loop over them has no end, nor has one over `ds.repeat()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import FrameType

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Locate, Spot, lines_around, lines_of, spots_of
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_dataset, lookup
from pyfunc_debug.doctor.shuffled_flows import FLOWS
from pyfunc_debug.interception.names.private import count_of

RULE = "endless-epoch"
_INFINITE = -1
"""What a dataset's `cardinality` says (tf.data.INFINITE_CARDINALITY)."""
_WRAPS = ("enumerate", "tqdm", "iter")
_LEAVES = (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Try)
"""What ends a loop, or may: the code that takes what is yielded stops when it likes."""
_EXITS = ("exit", "_exit", "quit", "next")


def interrupted(error: KeyboardInterrupt, locate: Locate) -> Explanation | None:
    """The explanation for who interrupts such a loop.

    Args:
      error: What Ctrl-C raised, with its traceback.
      locate: Maps a line of AutoGraph's generated code to the user's file and line.
    """
    return _told(spots_of(lines_of([error]), locate))


def going_on(frame: FrameType, locate: Locate) -> Explanation | None:
    """The explanation for a thread that is in such a loop over Keras' images now, and in this frame."""
    return _told(spots_of(lines_around(frame), locate), images=True)


def flow_of(given: ast.expr, spot: Spot) -> str:
    """What Keras' batches of images that begin again are called: a name, or the call that makes them; "" of others."""
    if isinstance(given, ast.Call):
        owner = given.func.value if isinstance(given.func, ast.Attribute) else None
        made = dotted(given.func).rpartition(".")[2] in FLOWS
        known = owner is not None and _is_of_keras(lookup(owner, spot), "ImageDataGenerator")
        return spot.source.text(given) if made and known else ""
    return dotted(given) if _is_of_keras(lookup(given, spot), "Iterator") else ""


def _is_of_keras(value: object, name: str) -> bool:
    kinds = type(value).__mro__
    return any(one.__name__ == name and one.__module__.endswith("preprocessing.image") for one in kinds)


def _told(spots: Sequence[Spot], images: bool = False) -> Explanation | None:
    for spot in reversed(spots):
        for loop in _loops_at(spot):
            over = loop.iter
            while isinstance(over, ast.Call) and dotted(over.func).rpartition(".")[2] in _WRAPS and over.args:
                over = over.args[0]
            flow = flow_of(over, spot)
            if flow:
                return _of_flow(loop, over, flow, spot)
            value = lookup(over, spot)
            if not images and is_dataset(value) and count_of(value) == _INFINITE:
                return _of_dataset(loop, over, spot)
    return None


def _loops_at(spot: Spot) -> Iterator[ast.For]:
    """The loops around a line that nothing leaves, innermost first."""
    statement = spot.statement
    if statement is None:
        return
    for one in (statement, *spot.source.around(statement)):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        if isinstance(one, ast.For) and not _is_left(one, spot.source):
            yield one


def _is_left(loop: ast.For, source: Source) -> bool:
    inside = [one for part in loop.body for one in (part, *own_nodes(part))]
    if any(isinstance(one, _LEAVES) for one in inside):
        return True
    if any(isinstance(one, ast.Break) and next(_loops(source, one)) is loop for one in inside):
        return True
    return any(dotted(one.func).rpartition(".")[2] in _EXITS for part in loop.body for one in calls(part))


def _loops(source: Source, node: ast.AST) -> Iterator[ast.AST]:
    return (one for one in source.around(node) if isinstance(one, (ast.For, ast.While, ast.AsyncFor)))


def _of_flow(loop: ast.For, over: ast.expr, flow: str, spot: Spot) -> Explanation:
    source = spot.source
    cause = f"this loop never ends: {short(flow, 40)} gives Keras' batches of images, which begin again at their end, "
    cause += "and nothing leaves the loop. Its length is the number of batches of one pass."
    name = dotted(over)
    above: tuple[str, ...] = ()
    if not name:
        name = next(one for one in ("batches", "image_batches", "all_batches") if one not in names(source.tree))
        above = (f"{indent_of(source.lines[loop.lineno - 1])}{name} = {flow}",)
    if isinstance(loop.iter, ast.Call) and dotted(loop.iter.func) == "enumerate" and len(loop.iter.args) == 1:
        new: dict[ast.expr, str] = {
            loop.iter: f"zip(range(len({name})), {source.text(loop.iter.args[0]).replace(flow, name)})"
        }
    else:
        target = source.text(loop.target)
        target = f"({target.strip('()')})" if isinstance(loop.target, ast.Tuple) else target
        each = source.text(loop.iter).replace(flow, name)
        new = {loop.target: f"_, {target}", loop.iter: f"zip(range(len({name})), {each})"}
    last = loop.iter.end_lineno or loop.lineno
    edit = Edit(spot.file, loop.lineno, last, (*above, *source.spliced(new, loop.lineno, last)))
    return Explanation(RULE, spot.file, loop.lineno, cause, edit)


def _of_dataset(loop: ast.For, over: ast.expr, spot: Spot) -> Explanation:
    text = short(spot.source.text(over), 40)
    cause = f"this loop never ends: {text} repeats without an end, and nothing leaves the loop."
    return Explanation(
        RULE, spot.file, loop.lineno, cause, None,
        f"Leave out .repeat(), or loop over {text}.take(n), the number of elements that are wanted.",
    )  # fmt: skip
