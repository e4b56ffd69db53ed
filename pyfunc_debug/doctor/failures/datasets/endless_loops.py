"""A `for` of the user's own over data that begin again at their end, and no way out of it: it goes on for ever.

Keras' image generators have a length, which `fit` asks; a loop over them has no end, nor has one over `ds.repeat()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import FrameType

from pyfunc_debug.doctor.datasets.shuffled_flows import FLOWS
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Locate, Spot, lines_around, lines_of, spots_of
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_dataset, lookup
from pyfunc_debug.interception.names.private import count_of
from pyfunc_debug.program.frames import is_installed, is_user

RULE = "endless-epoch"
_MAKER = "ImageDataGenerator"
_MODULE = "preprocessing.image"
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
    """The explanation for a thread that is in such a loop over Keras' images now, and in this frame.

    It goes by the source alone: to read the variables of a function that runs would keep what they hold alive.
    """
    return _told(source_spots(frame, locate), live=True)


def source_spots(frame: FrameType, locate: Locate) -> list[Spot]:
    """The user's lines around a frame that runs, without any variable."""
    spots = []
    for one, at in lines_around(frame):
        file, line = locate(one.f_code.co_filename, at)
        if is_user(file) and not is_installed(file):
            spots.append(Spot(file, line, {}, {}, ""))
    return spots


def flow_of(given: ast.expr, spot: Spot) -> str:
    """What Keras' batches of images that begin again are called: a name, or the call that makes them; "" of others."""
    if isinstance(given, ast.Call):
        owner = given.func.value if isinstance(given.func, ast.Attribute) else None
        made = dotted(given.func).rpartition(".")[2] in FLOWS
        known = owner is not None and _is_of_keras(lookup(owner, spot), _MAKER)
        return spot.source.text(given) if made and known else ""
    value = lookup(given, spot)
    return dotted(given) if _is_keras_own(type(value)) and _is_of_keras(value, "Iterator") else ""


def _named_flow(given: ast.expr, source: Source) -> str:
    """The same by the source: a name that is given what `datagen.flow(...)` makes, each time."""
    if not any(_MAKER in line for line in source.code):
        return ""
    made = [
        one.value for one in ast.walk(source.tree)
        if isinstance(one, ast.Assign) and dotted(given) in [dotted(target) for target in one.targets]
    ]  # fmt: skip
    flows = [one for one in made if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] in FLOWS]
    return dotted(given) if dotted(given) and made and len(flows) == len(made) else ""


def _is_keras_own(kind: type) -> bool:
    """Whether a class is Keras' own, which has no end; one that is derived from it may."""
    return kind.__module__.endswith(_MODULE)


def _is_of_keras(value: object, name: str) -> bool:
    kinds = type(value).__mro__
    return any(one.__name__ == name and one.__module__.endswith(_MODULE) for one in kinds)


def _told(spots: Sequence[Spot], live: bool = False) -> Explanation | None:
    if any(isinstance(one, ast.Try) for spot in spots if spot.statement for one in spot.source.around(spot.statement)):
        return None  # an exception may be the way out
    for spot in reversed(spots):
        for loop in loops_at(spot):
            over = loop.iter
            while isinstance(over, ast.Call) and dotted(over.func).rpartition(".")[2] in _WRAPS and over.args:
                over = over.args[0]
            flow = _named_flow(over, spot.source) if live else flow_of(over, spot)
            if flow:
                return _of_flow(loop, over, flow, spot)
            value = None if live else lookup(over, spot)
            if is_dataset(value) and count_of(value) == _INFINITE:
                return _of_dataset(loop, over, spot)
    return None


def loops_at(spot: Spot) -> Iterator[ast.For]:
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
    called = {dotted(one.func).rpartition(".")[2] for part in loop.body for one in calls(part)}
    if called & {*_EXITS}:
        return True
    functions = [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name in called]
    return any(
        isinstance(part, ast.Raise) or (isinstance(part, ast.Call) and dotted(part.func).rpartition(".")[2] in _EXITS)
        for one in functions for part in ast.walk(one)
    )  # fmt: skip


def _loops(source: Source, node: ast.AST) -> Iterator[ast.AST]:
    return (one for one in source.around(node) if isinstance(one, (ast.For, ast.While, ast.AsyncFor)))


def _of_flow(loop: ast.For, over: ast.expr, flow: str, spot: Spot) -> Explanation:
    source = spot.source
    cause = f"this loop never ends: {short(flow, 40)} gives Keras' batches of images, which begin again at their end, "
    cause += "and nothing leaves the loop. Its length is the number of batches of one pass."
    name, every = dotted(over), {*names(source.tree)}
    above: tuple[str, ...] = ()
    if not name:
        name = next(one for one in ("batches", "image_batches", "all_batches") if one not in every)
        above = (f"{indent_of(source.lines[loop.lineno - 1])}{name} = {flow}",)
    if isinstance(loop.iter, ast.Call) and dotted(loop.iter.func) == "enumerate" and len(loop.iter.args) == 1:
        new: dict[ast.expr, str] = {
            loop.iter: f"zip(range(len({name})), {source.text(loop.iter.args[0]).replace(flow, name)})"
        }
    else:
        target = source.text(loop.target)
        if isinstance(loop.target, ast.Tuple):
            target = f"({', '.join(map(source.text, loop.target.elts))})"
        count = next(one for one in ("_", "batch_number", "number_of_batch") if one not in every)
        each = source.text(loop.iter).replace(flow, name)
        new = {loop.target: f"{count}, {target}", loop.iter: f"zip(range(len({name})), {each})"}
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
