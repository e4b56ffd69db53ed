"""`tf.ensure_shape` behind a body that returned another shape, in all of its calls or in one of them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence

from pyfunc_debug.doctor.bodies.turned_sizes import turned_size
from pyfunc_debug.doctor.failures.bodies.output_contract import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.axis_orders import axis_order
from pyfunc_debug.doctor.failures.reading.nodes import Node, argument, user_nodes
from pyfunc_debug.doctor.failures.reading.refused_ops import fits, sizes
from pyfunc_debug.doctor.failures.reading.shapes import Shape, written
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, read
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, sizes_of

_SAID = re.compile(r"Shape of tensor (\S+) \[([\d,]*)\] is not compatible with expected shape \[([\d,?]*)\]")
_OF_IMAGES = 3
_BOTH = 2
"""Height and width: where only one of them differs, an element may be odd."""
_RESULTS = (
    "SELECT c.id, v.shape FROM call c JOIN value v ON v.call = c.id WHERE c.node = ? AND c.kind = 'forward' "
    "AND v.role = 'output' AND v.position = ? AND v.shape IS NOT NULL ORDER BY c.id"
)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an ensure_shape of the program refused what one body returned."""
    said = _SAID.search(situation.text)
    if said is None or situation.body:
        return None
    got, wanted = sizes(said[2]), sizes(said[3])
    found = [
        (node, place, rows) for node in user_nodes(situation) for place in range(max(len(node.tout), 1))
        if (rows := _results(situation, node, place)) and got in rows.values()
    ]  # fmt: skip
    places = {(node.site, place) for node, place, _ in found}
    if len(places) != 1:
        return None
    node, place, _ = found[0]
    results: dict[int, Shape] = {}
    for one in user_nodes(situation):  # of each graph that the line is in
        if one.site == node.site:
            results.update(_results(situation, one, place))
    every = [
        (file, source, call) for file, source in situation.sources() for call in calls(source.tree)
        if dotted(call.func).endswith("ensure_shape")
    ]  # fmt: skip
    ensured = [one for one in every if _says(one[2], wanted)] or [one for one in every if _of_sample(one[2])]
    if len(ensured) != 1:
        return None
    file, source, call = ensured[0]
    which = f" as value {place + 1}" if len(node.tout) > 1 else ""
    others = [one for one in results.values() if fits(one, wanted)]
    cause = f"ensure_shape says {sizes_of(wanted)}, and {node.called} returned {sizes_of(got)}{which}"
    if not others:
        ranks = {len(one) for one in results.values()}
        if len(ranks) != 1 or len(call.args) < 2:
            return None
        merged = _with_open(tuple(one[0] if len(set(one)) == 1 else None for one in zip(*results.values())), wanted)
        edit = edit_of(file, source.replaced({call.args[1]: written(merged)}))
        body = read(node.file) if node.file is not None else Source([])
        resized = turned_size(body, node.function(), wanted, list(results.values()))
        if resized is not None and node.file is not None:
            edit = edit_of(node.file, body.replaced({resized.size: resized.text}))
            return Explanation(RULE, file, call.lineno, f"{cause}{resized.why}.", edit, "", "likely")
        order = axis_order(list(results.values()), wanted)
        if order is not None:
            text = f"{alias(situation.last, 'tensorflow') if situation.last is not None else 'tf'}.transpose"
            edit = edit_of(file, source.replaced({call.args[0]: f"{text}({source.text(call.args[0])}, {list(order)})"}))
            cause += ". The axes are in another order: transpose moves them."
            return Explanation(RULE, file, call.lineno, cause, edit, "", "likely")
        often = "its 1 call" if len(results) == 1 else f"all {len(results):,} calls"
        return Explanation(RULE, file, call.lineno, f"{cause}: so it did in {often}.", edit, "", "likely")
    number = next(one for one, shape in results.items() if shape == got)
    given = _given(situation, number)
    others_differ = [one for one in others if len(one) != len(got) or one[1:] != got[1:]]
    if not others_differ and wanted[0] is not None and _follows(situation, results) and len(call.args) > 1:
        cause += (
            f" in call #{number}: its first size is that of what it is given. {len(others):,} {_calls(others)} fitted, "
            "and None takes any size."
        )
        edit = edit_of(file, source.replaced({call.args[1]: written((None, *wanted[1:]))}))
        return Explanation(RULE, file, call.lineno, cause, edit) if edit is not None else None
    varying = _varying(situation, call, wanted, list(results.values()))
    asked = argument(call, 1, "shape")
    if varying is not None and asked is not None:
        sample = _of_sample(call)
        cause = cause.replace(", and ", f", as {sample} has it, and " if sample else ", and ", 1)
        fitted = f" in call #{number}. {len(others):,} {_calls(others)} fitted: the sizes differ, and None takes any."
        edit = edit_of(file, source.replaced({asked: written(varying)}))
        if edit is not None:
            return Explanation(RULE, file, call.lineno, cause + fitted, edit)
    cause += f" in call #{number}{f', where {given}' if given else ''}. {len(others):,} {_calls(others)} fitted."
    advice = (
        f"Let {node.called} return that shape for such an input too, leave it out before by filter, or say None in "
        "ensure_shape for what may differ."
    )
    return Explanation(RULE, file, call.lineno, cause, None, advice)


def _of_sample(call: ast.Call) -> str:
    """What a call of ensure_shape takes the shape of: `image` for `image.shape`; "" for what it writes out."""
    given = argument(call, 1, "shape")
    while isinstance(given, ast.Call) and len(given.args) == 1 and dotted(given.func) in ("list", "tuple"):
        given = given.args[0]
    kept = isinstance(given, ast.Attribute) and given.attr == "shape"
    return ast.unparse(given.value) if kept and isinstance(given, ast.Attribute) else ""


def _varying(situation: Situation, call: ast.Call, wanted: Shape, results: Sequence[Shape]) -> Shape | None:
    """The shape of results whose sizes differ, as those of images, where nothing behind needs one size of them all."""
    if len({len(one) for one in (*results, wanted)}) != 1 or len(wanted) < _OF_IMAGES:
        return None
    differing = [place for place, found in enumerate(zip(*results)) if len(set(found)) > 1]
    if differing[-1:] == [len(wanted) - 1] or (len(differing) < _BOTH and not _of_sample(call)):
        return None
    named = {dotted(one.func).rpartition(".")[2] for _, source in situation.sources() for one in calls(source.tree)}
    if "batch" in named and not any("resize" in one or "crop" in one for one in named):
        return None
    return (*(None for _ in wanted[:-1]), wanted[-1])


def _with_open(shape: Shape, wanted: Shape) -> Shape:
    """A shape of calls, with None where the program says None: the size of a batch is not the same in all of them."""
    if len(shape) != len(wanted):
        return (None, *shape[1:]) if wanted and wanted[0] is None else shape
    return tuple(None if open_size is None else size for size, open_size in zip(shape, wanted))


def _calls(shapes: Sequence[Shape]) -> str:
    return "call" if len(shapes) == 1 else "calls"


def _follows(situation: Situation, results: Mapping[int, Shape]) -> bool:
    """Whether the first size of each result is that of an array which its call was given."""
    for number, shape in results.items():
        rows = situation.rows("SELECT shape FROM value WHERE call = ? AND role = 'input'", (number,))
        given = [json.loads(text) for (text,) in rows if text is not None]
        if not shape or not any(one and one[0] == shape[0] for one in given):
            return False
    return True


def _results(situation: Situation, node: Node, place: int) -> dict[int, Shape]:
    return {int(number): tuple(json.loads(shape)) for number, shape in situation.rows(_RESULTS, (node.id, place))}


def _given(situation: Situation, number: int) -> str:
    """What the call was given, where it is one array: `x is float32[200]`."""
    rows = situation.rows("SELECT path, dtype, shape FROM value WHERE call = ? AND role = 'input'", (number,))
    known = [(path, dtype, json.loads(shape)) for path, dtype, shape in rows if shape is not None]
    return f"{known[0][0]} is {known[0][1]}{sizes_of(known[0][2])}" if len(known) == len(rows) == 1 else ""


def _says(call: ast.Call, wanted: Shape) -> bool:
    """Whether a call of ensure_shape has this shape, as far as it is written in numbers."""
    given = argument(call, 1, "shape")
    if not isinstance(given, (ast.List, ast.Tuple)) or len(given.elts) != len(wanted):
        return False
    return all(not isinstance(one, ast.Constant) or one.value == size for one, size in zip(given.elts, wanted))
