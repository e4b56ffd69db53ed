"""OpenCV or Pillow in a body that gets a batch of images: they take one, and refuse more in words of their own."""

from __future__ import annotations

import ast
import json

from pyfunc_debug.doctor.failures.datasets.batched_input import RULE
from pyfunc_debug.doctor.failures.pastes.array_calls import takes_arrays
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import Node, failed_node, inputs_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names
from pyfunc_debug.doctor.failures.reading.symbols import calls, described

_CHANNELS = (1, 2, 3, 4)
_FOLDER = "image_dataset_from_directory"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line calls such a library, and the body was given a batch of images."""
    spot = situation.last if situation.body else None
    statement = spot.source.statement(spot.line) if spot is not None else None
    if spot is None or statement is None or not any(takes_arrays(one, spot) for one in calls(statement)):
        return None
    node = failed_node(situation)
    if node is None or node.site is None or not _is_given_a_batch(spot):
        return None
    batches = [one for one in inputs_of(node, situation).values() if _is_batch(one.shape)]
    call = _map_of(node)
    if not batches or call is None:
        return None
    source, given = node.source, batches[0]
    made = _batching(source)
    if made is None:
        return None
    said, size = made
    assert isinstance(call.func, ast.Attribute)
    before = call.func.value
    text, tail = source.text(before), source.text(call)[len(source.text(before)) :]
    if isinstance(before, ast.Call) and isinstance(before.func, ast.Attribute) and before.func.attr == "batch":
        first = source.text(before.func.value)
        text = f"{first}{tail}{text[len(first) :].lstrip()}"
    else:
        text = f"{text}.unbatch(){tail}.batch({size or _largest(node, situation)})"
    edit = edit_of(node.site[0], source.replaced({call: text}))
    if edit is None:
        return None
    cause = (
        f"{said} stands before the map: {node.called} got a batch of images, {described(given)}, and this line takes "
        "one. Mapped first, each image comes alone."
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")


def _is_batch(shape: tuple[int | None, ...] | None) -> bool:
    return shape is not None and len(shape) == 4 and shape[-1] in _CHANNELS


def _largest(node: Node, situation: Situation) -> int:
    """How many images the largest batch had: the last one of a dataset may have fewer."""
    rows = situation.rows(
        "SELECT v.shape FROM value v JOIN call c ON c.id = v.call WHERE v.role = 'input' AND c.node = ?", (node.id,)
    )
    shapes = [tuple(json.loads(text)) for (text,) in rows if text]
    return max(int(one[0]) for one in shapes if _is_batch(one))


def _is_given_a_batch(spot: Spot) -> bool:
    """Whether a library's function is given an array of four axes in the function that failed."""
    function = spot.function
    for one in calls(function) if function is not None else ():
        if takes_arrays(one, spot):
            given = [spot.variables.get(_name(part)) for part in one.args]
            if any(_is_batch(_shape(value)) for value in given):
                return True
    return False


def _name(part: ast.expr) -> str:
    """The array that is given as it is: `image`, `image.numpy()`, `np.array(image)`; empty for a part of one."""
    if isinstance(part, ast.Call):
        whole = isinstance(part.func, ast.Attribute) and part.func.attr in ("numpy", "astype", "copy")
        converts = dotted(part.func).rpartition(".")[2] in ("array", "asarray", "uint8", "float32") and part.args
        part = part.func.value if whole else part.args[0] if converts else part  # type: ignore[attr-defined]
    return part.id if isinstance(part, ast.Name) else ""


def _shape(value: object) -> tuple[int | None, ...] | None:
    shape = getattr(value, "shape", None)
    return tuple(shape) if shape is not None and hasattr(shape, "__len__") else None


def _map_of(node: Node) -> ast.Call | None:
    """The one `ds.map(f)` whose function calls py_function."""
    call, source = node.call(), node.source
    nodes = [] if call is None else source.around(call)
    around = [one for one in nodes if isinstance(one, (ast.FunctionDef, ast.Lambda))]
    called = {one.name for one in around if isinstance(one, ast.FunctionDef)}
    for one in ast.walk(source.tree):  # augment = partial(process, size=24)
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and called & set(names(one.value)):
            called |= {target.id for target in one.targets if isinstance(target, ast.Name)}
    found = [
        one for one in calls(source.tree)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "map" and one.args
        and (one.args[0] in around or called & set(names(one.args[0])))
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _batching(source: Source) -> tuple[str, str] | None:
    """What makes batches in a file, `batch(4)`, and the text of the size where the file says it in one place only."""
    made = [one for one in calls(source.tree) if isinstance(one.func, ast.Attribute) and one.func.attr == "batch"]
    if len(made) == 1 and made[0].args:
        size = made[0].args[0]
        known = isinstance(size, ast.Constant) or _is_of_module(size, source)
        return f"batch({source.text(size)})", source.text(size) if known else ""
    if made:
        return "batch", ""
    read = any(isinstance(one.func, ast.Attribute) and one.func.attr == _FOLDER for one in calls(source.tree))
    return (_FOLDER, "") if read else None


def _is_of_module(size: ast.expr, source: Source) -> bool:
    """Whether a name is assigned at the top of the file."""
    assigned = [one for one in source.tree.body if isinstance(one, ast.Assign)]
    return isinstance(size, ast.Name) and any(size.id in names(target) for one in assigned for target in one.targets)
