"""A loop of Python's over a dataset in a function that is traced: it asks for another element each time, for ever.

The iterator of a graph gives a symbolic element whenever it is asked and has no end at trace. AutoGraph makes loops
over a dataset, and over `enumerate` and `zip` of one, loops of the graph; what it does not know runs as Python:
`tqdm(ds)`, `list(ds)`, a generator of the user's, a comprehension. Nothing fails, so that who interrupts
such a trace reads this, also while it goes on. Where AutoGraph is off TensorFlow itself ends it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from pyfunc_debug.doctor.failures.pastes.control_flow import converts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Locate, Situation, Spot, lines_around, lines_of, spots_of
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset, lookup

RULE = "autograph"
_ENDED = "`for elem in dataset: ...` idiom is used within tf.function with AutoGraph disabled"
_MANY = 50
"""Elements that one trace asked for: a loop that was meant to be unrolled has fewer."""
_ENDS_AT = 32
_ELEMENT = "IteratorGetNext"
_CONVERTED = {"enumerate", "zip"}
"""What AutoGraph sees through."""
_COLLECTS = {"list", "tuple", "sum", "set", "sorted", "min", "max", "next"}
"""What goes through all that it is given."""
_PASSES = {"tqdm", "tqdm_notebook", "track", "list", "tuple", "iter"}
_BOUNDED = {"islice", "zip", "range", "takewhile"}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if TensorFlow ended such a trace."""
    return _told(situation.spots, _ENDS_AT) if _ENDED in situation.message else None


def interrupted(error: KeyboardInterrupt, locate: Locate) -> Explanation | None:
    """The explanation for who interrupts such a trace.

    Args:
      error: What Ctrl-C raised, with its traceback.
      locate: Maps a line of AutoGraph's generated code to the user's file and line.
    """
    lines = list(lines_of([error]))
    asked = _asked([frame for frame, _ in lines])
    return _told(spots_of(lines, locate), asked) if asked >= _MANY else None


def going_on(frame: FrameType, locate: Locate) -> Explanation | None:
    """The explanation for a thread that is in such a trace now, and in this frame."""
    lines = lines_around(frame)
    asked = _asked([frame for frame, _ in lines])
    return _told(spots_of(lines, locate), asked, _has_no_end) if asked >= _MANY else None


def _asked(stack: Sequence[FrameType]) -> int:
    """How many elements the graph that is built has asked its iterators for."""
    for frame in reversed(stack):
        graph = frame.f_locals.get("func_graph") if frame.f_code.co_name == "func_graph_from_py_func" else None
        if graph is not None:
            return sum(one.type == _ELEMENT for one in graph.get_operations())
    return 0


def _told(
    spots: Sequence[Spot], asked: int, wanted: Callable[[ast.AST, ast.expr, ast.expr], bool] = lambda *loop: True
) -> Explanation | None:
    inner = spots[::-1]
    for spot in (*(one for one in inner if one.generated), *(one for one in inner if not one.generated)):
        statement = spot.statement
        for loop, over in _loops(spot, statement) if statement is not None else ():
            found = _through(over, spot)
            if found is not None and wanted(loop, over, found):
                return _explained(spot, loop, over, found, asked)
    return None


def _loops(spot: Spot, statement: ast.stmt) -> Iterator[tuple[ast.AST, ast.expr]]:
    """The loops at a line, with what they go through; those inside of others first."""
    for one in ast.walk(statement):
        if isinstance(one, _COMPREHENSIONS):
            yield one, one.generators[0].iter
        if isinstance(one, ast.Call) and dotted(one.func) in _COLLECTS and one.args:
            yield one, one.args[0]
        if isinstance(one, ast.For) and one is not statement:
            return
    for around in (statement, *spot.source.around(statement)):
        if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        if isinstance(around, ast.For):
            yield around, around.iter


def _through(over: ast.expr, spot: Spot) -> ast.expr | None:
    """The dataset in what a loop goes through, however it is wrapped; None where there is none, or an end."""
    if _made_of_dataset(over, spot):
        return over
    if not isinstance(over, ast.Call) or dotted(over.func).rpartition(".")[2] in _BOUNDED - _CONVERTED:
        return None
    if dotted(over.func) == "zip" and not all(_through(one, spot) for one in over.args):
        return None
    inside = [found for one in over.args if (found := _through(one, spot)) is not None]
    return inside[0] if len(inside) == 1 else None


def _has_no_end(loop: ast.AST, over: ast.expr, dataset: ast.expr) -> bool:
    """Whether nothing ends a loop but the dataset: neither a `break`, nor what somebody else's wrapper does."""
    wrappers = [one for one in ast.walk(over) if isinstance(one, ast.Call) and one not in ast.walk(dataset)]
    known = all(_passes(one) or dotted(one.func) in _CONVERTED | _COLLECTS for one in wrappers)
    leaves = [one for one in ast.walk(loop) if isinstance(one, (ast.Break, ast.Return, ast.Raise))]
    return known and not (leaves and isinstance(loop, ast.For))


def _made_of_dataset(node: ast.AST, spot: Spot) -> bool:
    """Whether an expression is a dataset, or methods of one: `self.data.take(3)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr not in ("as_numpy_iterator", "reduce") and _made_of_dataset(node.func.value, spot)
    return is_dataset(lookup(node, spot))


def _explained(spot: Spot, loop: ast.AST, over: ast.expr, dataset: ast.expr, asked: int) -> Explanation | None:
    text = spot.source.text
    line = getattr(loop, "lineno", spot.line)
    if isinstance(loop, ast.For):
        if over is dataset and spot.generated:
            return None  # AutoGraph makes that one a loop of the graph
        code = f"for ... in {short(text(over), 40)}"
    else:
        code = short(text(loop).split("\n")[0], 44)
    cause = (
        f"`{code}` is a loop of Python's: it runs while the graph is traced, where a dataset has no end. It asked for "
        f"{asked:,} elements, each with ops of its own."
    )
    if not spot.generated:
        edit = _converted(spot)
        cause += (
            f" AutoGraph does not convert {spot.code}." if edit is None else " AutoGraph makes it one of the graph's."
        )
        advice = f"Loop `for x in {short(text(dataset), 30)}:` in the tf.function itself: that is one of the graph's."
        return Explanation(RULE, spot.file, line, cause, edit, "" if edit else advice)
    edit, advice = _plain(spot, loop, dataset), ""
    if edit is None:
        advice = f"A statement `for x in {short(text(dataset), 30)}:` becomes a loop of the graph; nothing else does."
    elif "tqdm" in text(over):
        cause += " Progress can be shown around the calls of the function."
    return Explanation(RULE, spot.file, line, cause, edit, advice)


def _converted(spot: Spot) -> Edit | None:
    """The decorator of a function without `autograph=False`."""
    for one in getattr(spot.function, "decorator_list", ()):
        off = [part for part in getattr(one, "keywords", ()) if part.arg == "autograph"]
        if off and isinstance(off[0].value, ast.Constant) and off[0].value.value is False:
            return edit_of(spot.file, spot.source.replaced({off[0].value: "True"}))
    return None


def _plain(spot: Spot, loop: ast.AST, dataset: ast.expr) -> Edit | None:
    """The head of a loop over the dataset itself, or over `enumerate` and `zip` of it."""
    statement = next((one for one in (loop, *spot.source.around(loop)) if isinstance(one, ast.For)), None)
    if statement is None or (statement is not loop and loop not in ast.walk(statement.iter)):
        return None
    body = ast.Module(list(statement.body), [])
    old: ast.AST = dataset  # what stands around the dataset, but for what AutoGraph sees through
    while (outer := spot.source.parent(old)) is not statement and dotted(
        getattr(outer, "func", None)
    ) not in _CONVERTED:
        if not isinstance(outer, ast.Call) or outer.args[0] is not old or not _passes(outer):
            return None
        old = outer
    reads = {ast.unparse(one) for one in ast.walk(body) if isinstance(one, ast.Call)}
    if not isinstance(old, ast.expr) or old is dataset or not _in_graph(statement, reads):
        return None
    return edit_of(spot.file, spot.source.replaced({old: spot.source.text(dataset)}))


def _passes(call: ast.Call) -> bool:
    """Whether what wraps a dataset gives its elements as they are."""
    return dotted(call.func).rpartition(".")[2] in _PASSES


def _in_graph(loop: ast.For, calls: set[str]) -> bool:
    """Whether the loop's body is likely to run in a loop of the graph: it collects nothing and reads no values."""
    return converts(ast.Module([ast.While(ast.Constant(True), loop.body, [])], [])) and not any(
        one.endswith((".numpy()", ".item()")) or one.startswith(("float(", "int(", "next(")) for one in calls
    )
