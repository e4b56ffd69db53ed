"""What a session of TensorFlow 1 is fed, and asked for: another shape, a tensor, a name that got another value.

`Session.run` checks both before any op runs, and says which tensor, in words of the graph
(tensorflow/python/client/session.py).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Collection, Iterable
from typing import Any

from pyfunc_debug.doctor.failures.bodies import none_values
from pyfunc_debug.doctor.failures.graphs.uninitialized import line_of, session_of
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.shapes import fits_shape
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    is_ndarray,
    is_symbolic,
    lookup,
    shape_of,
    sizes_of,
)

RULE = "session-feed"
_KEY = re.compile(
    r"Cannot interpret feed_dict key as Tensor|unhashable type: '(?:numpy\.ndarray|list|DataFrame|Series)'"
)
_OBJECT = re.compile(r"Unsupported object type (\w+)")
_UNFED = re.compile(r"You must feed a value for placeholder tensor '([^']+)'")
_FETCH = re.compile(r"^(?:Argument `fetch`|Fetch argument) .*has invalid type", re.DOTALL)
_SUMMARIES = ("scalar", "histogram", "image", "audio", "text", "tensor_summary", "merge")
_LOSS = re.compile(r"(?:^|_)(?:loss|cost)(?:_|$)", re.IGNORECASE)
_FARTHEST = 25
"""Lines that one paste changes."""
_Pair = tuple[ast.expr, ast.expr]
_Shape = tuple[int | None, ...]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a session refused what it is fed, or what it is asked for."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body:
        return None
    runs = [one for one in calls(statement) if session_of(one, spot) is not None]
    if len(runs) != 1 or type(session_of(runs[0], spot).graph).__name__ == "FuncGraph":  # in a traced function
        return None
    run, pairs, message = runs[0], _pairs(runs[0], spot), situation.message
    if message.startswith("Cannot feed value of shape"):
        return _of_shape(situation, spot, pairs)
    if message.startswith("The value of a feed cannot be a tf.Tensor"):
        return _of_tensor(spot, run, pairs)
    if (refused := _OBJECT.search(situation.text)) is not None:
        return _of_object(spot, pairs, refused[1])
    if _KEY.search(message):
        return _of_key(spot, run, pairs)
    if _FETCH.search(message):
        return _of_summaries(spot, run) or none_values.explain(situation) or _of_fetch(spot, run, statement)
    found = _UNFED.search(message)
    return _unfed(spot, run, pairs, found[1]) if found is not None else None


def in_session(situation: Situation, spot: Spot, tensors: Iterable[Any]) -> bool:
    """Whether a session raised it that runs the graph of these tensors: in it they have values."""
    statement = spot.statement
    runs = [held for one in calls(statement) if (held := session_of(one, spot)) is not None] if statement else []
    return (
        bool(runs)
        and type(runs[0].graph).__name__ != "FuncGraph"
        and all(getattr(one, "graph", None) is runs[0].graph for one in tensors)
        and _refused(situation, "self") is runs[0]
    )


def _pairs(run: ast.Call, spot: Spot) -> list[_Pair]:
    """Keys and values of the feed_dict of a run, also of one that has a name."""
    given = argument(run, 1, "feed_dict")
    if isinstance(given, ast.Name):
        made = [
            one.value for one in own_nodes(spot.function or spot.source.tree)
            if isinstance(one, ast.Assign) and [dotted(part) for part in one.targets] == [given.id]
        ]  # fmt: skip
        given = made[0] if len(made) == 1 else None
    if not isinstance(given, ast.Dict):
        return []
    return [(key, value) for key, value in zip(given.keys, given.values) if key is not None]


def _refused(situation: Situation, name: str) -> Any:
    """A variable of the session's own frame in which a feed was refused."""
    for one in reversed(frames(situation.inner.__traceback__)):
        if one.f_code.co_filename.endswith("client/session.py") and name in one.f_locals:
            return one.f_locals[name]
    return None


def _told(spot: Spot, cause: str, edit: Edit | None, advice: str = "", sure: bool = True) -> Explanation:
    return Explanation(
        RULE, spot.file, spot.line, cause, edit, "" if edit is not None else advice, "measured" if sure else "likely"
    )


def _of_shape(situation: Situation, spot: Spot, pairs: Iterable[_Pair]) -> Explanation | None:
    """An array of another shape than its placeholder has."""
    tensor, array = _refused(situation, "subfeed_t"), _refused(situation, "np_val")
    wanted = shape_of(tensor) if tensor is not None else None
    fed = [one for one in pairs if lookup(one[0], spot) is tensor]
    if len(fed) != 1 or not is_ndarray(array) or wanted is None:
        return None
    (key, value), given = fed[0], array.shape
    name, text = spot.source.text(key), spot.source.text(value)
    cause = f"{name} takes {sizes_of(wanted)}, and {text} is {sizes_of(given)}"
    new, why = _fitting(array, wanted, text, alias(spot, "numpy"), _is_whole(_refused(situation, "subfeed_val")))
    if new:
        edit = edit_of(spot.file, spot.source.replaced({value: new}))
        return _told(spot, f"{cause}: {why}.", edit, f"Feed {new}.", why != _ROWS)
    if len(given) == len(wanted) > 0 and wanted[0] is not None and fits_shape(given[1:], wanted[1:]):
        edit = _of_any_batch(spot, key)
        cause += f": it was made for batches of {wanted[0]}. None in its place takes any number of rows."
        return _told(spot, cause, edit, f"Make {name} with None as its first size.", False)
    return _told(spot, f"{cause}.", None, f"Feed an array of {sizes_of(wanted)}, or make {name} with its shape.")


_ROWS = "the axes behind the rows hold as many values"


def _is_whole(value: Any) -> bool:
    """Whether what is fed has whole numbers: the session made its placeholder's dtype of it."""
    if type(value) is list:
        return bool(value) and all(type(one) is int for one in value)
    return getattr(getattr(value, "dtype", None), "kind", "") in ("i", "u")


def _fitting(array: Any, wanted: _Shape, text: str, np: str, whole: bool) -> tuple[str, str]:
    """An array in the shape of its placeholder, and what was missing."""
    given = tuple(array.shape)
    classes = wanted[-1] if wanted else None
    if len(given) == 1 and len(wanted) == 2 and whole and classes is not None and classes > 1 and array.size:
        if array.min() < 0 or array.max() >= classes or (given[0] == classes and wanted[0] in (None, 1)):
            return "", ""  # as many numbers as classes may be one row
        return f"{np}.eye({classes})[{text}]", "numbers of classes, where it takes a row for each with a 1"
    if fits_shape(given, wanted[1:]) and wanted[0] in (None, 1):
        return f"[{text}]", "one row. A list of it is a batch of one"
    if len(given) == 2 and len(wanted) == 1 and given[1] > 1 and _one_hot(array):
        return f"{np}.argmax({text}, axis=1)", "rows with a 1 for the class, where it takes the class's number"
    if given and wanted[:1] in ((None,), (1,)) and None not in wanted[1:] and array.size == math.prod(wanted[1:]):  # type: ignore[arg-type]
        rest = ", ".join(map(str, wanted[1:]))
        return f"{np}.reshape({text}, (1, {rest}))", "the values of one row, in other axes"
    if not given or not wanted or None in wanted[1:] or wanted[0] not in (None, given[0]):
        return "", ""
    if math.prod(given[1:]) != math.prod(wanted[1:]):  # type: ignore[arg-type]
        return "", ""
    sizes = ", ".join(map(str, (-1, *wanted[1:])))
    return f"{np}.reshape({text}, ({sizes}{',' if len(wanted) == 1 else ''}))", _ROWS


def _one_hot(array: Any) -> bool:
    return bool(((array == 0) | (array == 1)).all() and (array.sum(axis=1) == 1).all())


def _of_any_batch(spot: Spot, key: ast.expr) -> Edit | None:
    """`placeholder(tf.float32, [32, 4])` with None for its 32."""
    made = [
        one.value for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.Assign) and [dotted(part) for part in one.targets] == [dotted(key)]
        and isinstance(one.value, ast.Call) and dotted(one.value.func).endswith("placeholder")
    ]  # fmt: skip
    shape = argument(made[0], 1, "shape") if len(made) == 1 else None
    if not isinstance(shape, (ast.List, ast.Tuple)) or not shape.elts:
        return None
    return edit_of(spot.file, spot.source.replaced({shape.elts[0]: "None"}))


def _of_tensor(spot: Spot, run: ast.Call, pairs: Iterable[_Pair]) -> Explanation | None:
    """A tensor of the graph as a value: a session gives its value."""
    graph = session_of(run, spot).graph
    fed = [value for _, value in pairs if is_symbolic(one := lookup(value, spot)) and one.graph is graph]
    if not fed or not isinstance(run.func, ast.Attribute):
        return None
    session = spot.source.text(run.func.value)
    new = {one: f"{session}.run({spot.source.text(one)})" for one in fed}
    listed = " and ".join(map(spot.source.text, fed))
    what = "is a tensor" if len(fed) == 1 else "are tensors"
    cause = f"{listed} {what} of the graph: a feed takes values, as a run gives them."
    return _told(spot, cause, edit_of(spot.file, spot.source.replaced(new)))


def _of_object(spot: Spot, pairs: Iterable[_Pair], kind: str) -> Explanation | None:
    """A dict, or an object of the user's, for a placeholder: no tensor holds it."""
    fed = [(key, value) for key, value in pairs if type(lookup(value, spot)).__name__ == kind]
    if len(fed) != 1:
        return None
    key, value = (spot.source.text(one) for one in fed[0])
    return _told(
        spot,
        f"{value} is a {kind}, and what is fed for {key} becomes a tensor, which holds numbers or text.",
        None,
        f"Keep such objects in a list that the body of py_func reads, and feed the place in it, for {key} = "
        f"{alias(spot, 'tensorflow')}.placeholder({alias(spot, 'tensorflow')}.int32): `objects[int(place)]`.",
    )


def _of_key(spot: Spot, run: ast.Call, pairs: Iterable[_Pair]) -> Explanation | None:
    """A key that is text, or a name that has another value by now."""
    graph = session_of(run, spot).graph
    texts = [key for key, _ in pairs if isinstance(key, ast.Constant) and type(key.value) is str]
    pieces: dict[ast.expr, str] = {}
    for key in texts:
        assert isinstance(key, ast.Constant)
        name = str(key.value).partition(":")[0]
        held = [one for one, value in {**spot.module, **spot.variables}.items() if _is_tensor_of(value, name, graph)]
        if held or _has(graph, name):
            pieces[key] = held[0] if len(held) == 1 else f'"{name}:0"'
    if pieces:
        first = next(iter(pieces))
        cause = (
            f"{spot.source.text(first)} is the name of an op. A key is the placeholder itself, or the name of its "
            "tensor."
        )
        return _told(spot, cause, edit_of(spot.file, spot.source.replaced(pieces)))
    lost = [
        key for key, _ in pairs
        if isinstance(key, ast.Name) and spot.value(key.id) is not None and not is_symbolic(spot.value(key.id))
    ]  # fmt: skip
    born = [line for key in lost if (line := _placeholder_line(spot, key.id)) is not None]
    if not lost or len(born) != len(lost):
        return None
    names = [one.id for one in lost]
    bound = _binding(spot, names)
    listed = " and ".join(names)
    where = f" in line {bound.lineno}" if bound is not None else ""
    cause = (
        f"{listed} got another value{where}, so that the key is no longer the placeholder of line {born[0]}: a name "
        "of its own keeps both."
    )
    keys = {id(one) for one in lost}
    edit = _renamed(spot, bound, names, keys) if bound is not None else None
    return _told(spot, cause, edit, "Give the array a name of its own.")


def _is_tensor_of(value: Any, name: str, graph: Any) -> bool:
    return is_symbolic(value) and getattr(value, "graph", None) is graph and value.op.name == name


def _has(graph: Any, name: str) -> bool:
    return any(one.name == name for one in graph.get_operations())


def _placeholder_line(spot: Spot, name: str) -> int | None:
    """The line that makes a placeholder of a name."""
    made = [
        one.lineno for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.Assign) and name in [dotted(part) for part in one.targets]
        and isinstance(one.value, ast.Call) and dotted(one.value.func).rpartition(".")[2].startswith("placeholder")
    ]  # fmt: skip
    return made[0] if len(made) == 1 and made[0] < spot.line else None


def _binding(spot: Spot, names: Collection[str]) -> ast.stmt | None:
    """The last statement above the failing line that gives these names values."""
    found = [
        one for one in own_nodes(spot.function or spot.source.tree)
        if isinstance(one, (ast.Assign, ast.For)) and one.lineno <= spot.line and set(names) <= set(_stored(one))
        and not (isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
                 and dotted(one.value.func).rpartition(".")[2].startswith("placeholder"))
    ]  # fmt: skip
    return max(found, key=lambda one: one.lineno) if found else None


def _stored(statement: ast.Assign | ast.For) -> dict[str, ast.Name]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return {one.id: one for part in targets for one in ast.walk(part) if isinstance(one, ast.Name)}


def _renamed(spot: Spot, bound: ast.stmt, names: Collection[str], kept: Collection[int]) -> Edit | None:
    """What a statement sets under names of its own, also where the lines below read it.

    Args:
      spot: The frame that failed.
      bound: The statement.
      names: Its names that are to change.
      kept: Reads of them, by their ids, that mean what the name was before.
    """
    assert isinstance(bound, (ast.Assign, ast.For))
    source, scope = spot.source, spot.function or spot.source.tree
    every = [one for one in own_nodes(scope) if isinstance(one, ast.Name)]
    taken, stored = {one.id for one in every}, _stored(bound)
    new = {name: f"{name}_value" for name in names}
    loops = [one for one in source.around(bound) if isinstance(one, (ast.For, ast.While))]
    top = loops[-1].lineno if loops else bound.lineno
    inside = set() if isinstance(bound, ast.For) else {id(one) for one in ast.walk(bound.value)}
    others = [one for one in every if one.id in new and id(one) not in kept and one is not stored[one.id]]
    if taken & set(new.values()) or any(isinstance(one.ctx, ast.Store) and one.lineno > bound.lineno for one in others):
        return None
    reads = [one for one in others if isinstance(one.ctx, ast.Load) and id(one) not in inside]
    if any(top <= one.lineno < bound.lineno for one in reads):  # the round before
        return None
    changed: list[ast.Name] = [*(stored[name] for name in names), *(one for one in reads if one.lineno >= bound.lineno)]
    if any(source.text(one) != one.id for one in changed):  # in an f-string, before Python 3.12
        return None
    first, last, lines = source.kept_lines({one: new[one.id] for one in changed})
    return Edit(spot.file, first, last, lines) if last - first < _FARTHEST else None


def _of_fetch(spot: Spot, run: ast.Call, statement: ast.stmt) -> Explanation | None:
    """`_, loss = sess.run([train, loss])`: in the next round loss is a number."""
    wanted = argument(run, 0, "fetches")
    asked = [one for one in ast.walk(wanted) if isinstance(one, ast.Name)] if wanted is not None else []
    empty = [one.id for one in asked if one.id in {**spot.module, **spot.variables} and spot.value(one.id) is None]
    values = [one for one in asked if is_ndarray(spot.value(one.id)) or _is_number(spot.value(one.id))]
    if len(set(empty)) == 1:
        cause = f"{empty[0]} is None, and a run fetches tensors and ops."
        return _told(spot, cause, None, f"Look at the line that makes {empty[0]}, or leave it out of the run.")
    if len({one.id for one in values}) != 1:
        return None
    name = values[0].id
    if not isinstance(statement, ast.Assign) or name not in _stored(statement):
        kind = type(spot.value(name)).__name__
        cause = f"{name} is a value of Python's here, a {kind}, and a run fetches tensors and ops."
        return _told(spot, cause, None, f"Leave {name} out of the run: it is known. Or make it by ops.")
    cause = (
        f"{name} was the tensor until this line gave that name to its value: the next round fetches a number. A name "
        "of its own for the value keeps both."
    )
    return _told(spot, cause, _renamed(spot, statement, [name], ()), f"Call the value {name}_value.")


def _of_summaries(spot: Spot, run: ast.Call) -> Explanation | None:
    """`merged = tf.summary.merge_all()` of a graph without summaries."""
    wanted, source = argument(run, 0, "fetches"), spot.source
    for node in ast.walk(wanted) if wanted is not None else ():
        name = dotted(node)
        if not name or not isinstance(node, (ast.Name, ast.Attribute)) or lookup(node, spot) is not None:
            continue
        made = [
            one for one in ast.walk(source.tree)
            if isinstance(one, ast.Assign) and [dotted(part) for part in one.targets] == [name]
        ]  # fmt: skip
        call = made[0].value if len(made) == 1 else None
        if isinstance(call, ast.Call) and dotted(call.func).endswith("summary.merge_all"):
            return _unmade(spot, made[0], call, name, session_of(run, spot).graph)
    return None


def _unmade(spot: Spot, made: ast.Assign, call: ast.Call, name: str, graph: Any) -> Explanation:
    """What is said of merge_all, and the summary of a loss above it."""
    package, source = dotted(call.func).rpartition(".")[0], spot.source
    cause = f"{name} is None: {package}.merge_all gives None where it finds no summary in the graph"
    written = [
        one for one in calls(source.tree)
        if dotted(one.func).rpartition(".")[0].endswith("summary") and dotted(one.func).rpartition(".")[2] in _SUMMARIES
    ]  # fmt: skip
    later = [one.lineno for one in written if one.lineno > made.lineno]
    if call.args or call.keywords or written or graph.get_collection("summaries"):
        where = f" Line {later[0]} makes one, below it." if later and len(later) == len(written) else ""
        advice = f"Make them above it, by {package}.scalar and the like, in the same graph and collection."
        return Explanation(RULE, spot.file, made.lineno, f"{cause} when it runs.{where}", None, advice)
    loss = _loss_above(spot, made, graph)
    edit = None
    if loss:
        line = f'{" " * made.col_offset}{package}.scalar("{loss.rpartition(".")[2]}", {loss})'
        edit = Edit(spot.file, made.lineno, made.lineno - 1, (line,))
    advice = f'Make one above it: {package}.scalar("name", tensor), of a number to follow.'
    return Explanation(RULE, spot.file, made.lineno, f"{cause}, and this one has none.", edit, "" if edit else advice)


def _loss_above(spot: Spot, made: ast.Assign, graph: Any) -> str:
    """The name of the one number of the graph, set above a line of the same function, that is called a loss."""
    scope = next(
        (one for one in spot.source.around(made) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))),
        spot.source.tree,
    )
    found = []
    for one in own_nodes(scope):
        target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        name = dotted(target)
        if target is None or one.lineno >= made.lineno or not _LOSS.search(name.rpartition(".")[2]):  # type: ignore[attr-defined]
            continue
        held = lookup(target, spot)
        local = scope is not spot.source.tree and scope is not spot.function and not name.startswith("self.")
        if not local and is_symbolic(held) and held.graph is graph and shape_of(held) == () and held.dtype.is_floating:
            found.append(name)
    return found[0] if len(set(found)) == 1 else ""


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) or (type(value).__module__ == "numpy" and hasattr(value, "dtype"))


def _unfed(spot: Spot, run: ast.Call, pairs: Iterable[_Pair], name: str) -> Explanation | None:
    """A placeholder that a run needs and does not get."""
    graph = session_of(run, spot).graph
    held = [one for one, value in {**spot.module, **spot.variables}.items() if _is_tensor_of(value, name, graph)]
    line = line_of(graph, name, spot.file)
    where = f" of line {line}" if line is not None else ""
    shown = held[0] if len(held) == 1 else name
    given = argument(run, 1, "feed_dict")
    none = "feed_dict has no value for it" if given is not None else "this run has no feed_dict"
    cause = f"What this run fetches is computed with the placeholder {shown}{where}, and {none}."
    if not held and any(line is not None and line == _placeholder_line(spot, dotted(key)) for key, _ in pairs):
        cause = (
            f"What this run fetches is computed with an older placeholder{where}: that line ran again, and made "
            "another one, which is fed here. Build the graph once."
        )
        return _told(spot, cause, None)
    elsewhere = {
        spot.source.text(value): value for one in ast.walk(spot.source.tree) if isinstance(one, ast.Dict)
        for key, value in zip(one.keys, one.values) if dotted(key) == shown
        and (isinstance(value, ast.Constant) or (dotted(value) and lookup(value, spot) is not None))
    }  # fmt: skip
    edit = None
    if given is None:
        if len(elsewhere) == 1 and len(held) == 1:
            new = spot.source.with_argument(run, f"feed_dict={{{shown}: {next(iter(elsewhere))}}}")
            edit = edit_of(spot.file, spot.source.replaced({run: new}))
        advice = f"Pass feed_dict={{{shown}: ...}} with a value of its shape."
        return _told(spot, cause, edit, advice, edit is None)
    if len(elsewhere) == 1 and isinstance(given, ast.Dict) and given.values and len(held) == 1:
        last = given.values[-1]
        text = f"{spot.source.text(last)}, {shown}: {next(iter(elsewhere))}"
        edit = edit_of(spot.file, spot.source.replaced({last: text}))
    return _told(spot, cause, edit, f"Add `{shown}: ...` with its value to feed_dict.", edit is None)
