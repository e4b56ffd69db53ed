"""A mask of classes that is resized as an image is: between class 0 and class 2 it gets pixels of class 1."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import Given, returned
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.datasets.mapped_outputs import KEEPS_VALUES, Output, Outputs, files_of_calls
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding

NAMES = ("blended-labels",)
_LABELS = re.compile(r"(?:^|_)(?:masks?|labels?|seg\w*|annot\w*|trimaps?|classmap)(?:_|\d|$)", re.I)
_OTHER = re.compile(r"depth|disp|heat|imag|img|photo|pic|dist|height|weight|alpha|soft|logit|prob|score|edge", re.I)
_NO_CLASSES = re.compile(r"mse|mae|mean_squared|mean_absolute|MeanSquared|MeanAbsolute|huber|psnr|ssim", re.I)
_CLASSES = re.compile(r"sparse_?categorical|one_hot|sparse_softmax|to_categorical", re.I)
"""What is used for classes only."""
_DEPTH = 8
_MOST = 50
"""The largest class: an image whose numbers are all below it would be black."""
_RESIZES = ("resize", "resize_with_pad")
_ROUNDS = ("round", "rint", "greater", "greater_equal", "where")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that resizes a mask, behind a body or in it."""
    for file in dict.fromkeys((*files_of_calls(facts), *facts.files)):
        calls = [one for one in pastes.walk(facts.tree(file), ast.Call) if one.args and _is_resize(one)]
        calls = [one for one in calls if _blends(facts, file, one)]
        if not calls:
            continue
        outputs = Outputs(facts, file, lambda _: None)
        for one in calls:
            origin = outputs.origin(one.args[0])
            if origin is None:
                yield from _of_file(facts, file, outputs, one)
            elif (seen := _classes(facts, origin)) and _is_label(outputs, one, origin):
                yield _finding(facts, file, outputs, one, origin, seen)
    for group in facts.lines:
        function = facts.function(group[0])
        if function is not None and facts.calls_of(group).count:
            yield from _in_body(facts, Output(tuple(group), 0), function)


def _is_resize(call: ast.Call) -> bool:  # without its text: each call of a file is asked for
    return isinstance(call.func, ast.Attribute) and call.func.attr in _RESIZES


def _blends(facts: Facts, file: str, call: ast.Call) -> bool:
    """Whether a call is `tf.image.resize` with anything but `nearest`."""
    if not ast.unparse(call.func).startswith(f"{pastes.module(facts, file, 'tensorflow')}.image."):
        return False
    method = argument(call, 2, "method")
    if any(one.arg is None for one in call.keywords):
        return False
    text = ast.unparse(method).lower() if method is not None else "bilinear"
    return "nearest" not in text and any(word in text for word in ("bilinear", "bicubic", "area", "lanczos", "gauss"))


def _classes(facts: Facts, origin: Output) -> list[Given]:
    """What a body returned, where all of it are whole numbers from 0 to a few."""
    seen = returned(facts, origin.group, origin.position)
    whole = all(
        "int" in one.dtype and one.low is not None and one.high is not None and one.low >= 0 and one.high <= _MOST
        and (len(one.shape) == 2 or (len(one.shape) == 3 and one.shape[-1] == 1))
        for one in seen
    )  # fmt: skip
    least = (
        1 if _CLASSES.search("\n".join(facts.code(origin.group[0].file))) else 2
    )  # soft borders of one class do no harm
    return seen if whole and any((one.high or 0) >= least for one in seen) else []


def _is_label(outputs: Outputs, call: ast.Call, origin: Output | None) -> bool:
    """Whether the mask that a call resizes is what a model learns, and its blended pixels are not cut apart again."""
    own, function = outputs.own, outputs.function_of(call)
    values = pastes.returns(function) if function is not None else []
    if function is None or len(values) != 1:
        return False
    made = _target(own, call)
    names = [one.id for one in ast.walk(call.args[0]) if isinstance(one, ast.Name)]
    texts = [*names, *([made] if made else [])]
    if any(map(_OTHER.search, texts)):
        return False
    elements = values[0].elts if isinstance(values[0], (ast.Tuple, ast.List)) else []
    second = len(elements) > 1 and _holds(elements[1], call, made)
    given_back = second or any(_holds(one, call, made) for one in (*elements, values[0]))
    named = any(map(_LABELS.search, texts))
    text = "\n".join(own.lines)
    if not given_back or not (
        named or (second and origin is not None and origin.position == 1 and not _NO_CLASSES.search(text))
    ):
        return False
    return not _is_cut(own, function, call, made)


def _holds(node: ast.expr, call: ast.Call, made: str) -> bool:
    """Whether a part of a result is the resized mask."""
    return any(one is call or (made and isinstance(one, ast.Name) and one.id == made) for one in ast.walk(node))


def _target(own: Source, call: ast.Call) -> str:
    """The name that is given a call's result, perhaps cast; "" where it is another expression."""
    for one in own.around(call):
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            return one.targets[0].id
        if not isinstance(one, (ast.Call, ast.Subscript, ast.Attribute, ast.keyword)):
            return ""
    return ""


def _is_cut(own: Source, function: Definition, call: ast.Call, made: str) -> bool:
    """Whether something rounds the result, or compares it with a bound, as one does with a mask of two classes."""
    around = [*own.around(call)]
    inner = around[: around.index(function)] if function in around else around
    if any(_cuts(one) for one in inner):
        return True
    later = (one for one in code.own_nodes(function) if getattr(one, "lineno", 0) > call.lineno and _cuts(one))
    return bool(made) and any(isinstance(part, ast.Name) and part.id == made for one in later for part in ast.walk(one))


def _cuts(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and pastes.last_name(node.func) in _ROUNDS)


def _finding(
    facts: Facts, file: str, outputs: Outputs, call: ast.Call, origin: Output, seen: Sequence[Given]
) -> Finding:
    own, body = outputs.own, origin.group[0]
    first = max(seen, key=lambda one: one.high or 0)
    text, high = own.text(call.args[0]), max(one.high or 0 for one in seen)
    new = _nearest(facts, file, outputs, call)
    between = "halves between 0 and 1" if high < 2 else f"0.67 or 1 between class 0 and class {high:.0f}"
    return Finding(
        NAMES[0], "warning", body.id, (first.call,),
        f"{own.text(call)} blends neighbouring pixels, and {text} holds classes: whole numbers from 0 to {high:.0f} in "
        f"all {len(seen):,} recorded calls of {facts.name(body)}. What it makes at their borders, as {between}, stands "
        "for another class, or for none",
        pastes.written(pastes.replaced(facts, file, {call: new})) or new, file, call.lineno,
        several(one.id for one in origin.group),
        (facts.shown(first.call),), "likely",
    )  # fmt: skip


def _nearest(facts: Facts, file: str, outputs: Outputs, call: ast.Call) -> str:
    """The call with the method that keeps classes, in the dtype that what follows needs."""
    own, tf, method = outputs.own, pastes.module(facts, file, "tensorflow"), argument(call, 2, "method")
    added = 'method="nearest"'
    new = own.with_argument(call, added) if method is None else own.text_with(call, {method: '"nearest"'})
    return new if _stays_label(own, outputs.function_of(call), call) else f"{tf}.cast({new}, {tf}.float32)"


def _of_file(facts: Facts, file: str, outputs: Outputs, call: ast.Call) -> Iterator[Finding]:
    """A mask that `decode_png` reads with one channel, and that a loss for classes learns from."""
    own, node = outputs.own, call.args[0]
    for _ in range(_DEPTH):
        if isinstance(node, ast.Name):
            made = outputs.stored(node)
            if not isinstance(made, ast.Assign) or [ast.unparse(one) for one in made.targets] != [node.id]:
                return
            node = made.value
        elif isinstance(node, ast.Call) and pastes.last_name(node.func) in KEEPS_VALUES and node.args:
            node = node.args[0]
        else:
            break
    if not isinstance(node, ast.Call) or pastes.last_name(node.func) not in ("decode_png", "decode_image"):
        return
    channels = argument(node, 1, "channels")
    one_channel = isinstance(channels, ast.Constant) and channels.value == 1
    if not one_channel or not _CLASSES.search("\n".join(own.code)) or not _is_label(outputs, call, None):
        return
    text, name = own.text(call.args[0]), pastes.last_name(node.func)
    new = _nearest(facts, file, outputs, call)
    yield Finding(
        NAMES[0], "warning", None, (),
        f"{own.text(call)} blends neighbouring pixels, and {text} holds classes, which {name} in line {node.lineno} "
        "read from a file: what it makes at their borders, as 1 between class 0 and class 2, stands for another class, "
        "or for none",
        pastes.written(pastes.replaced(facts, file, {call: new})) or new, file, call.lineno, confidence="likely",
    )  # fmt: skip


def _stays_label(own: Source, function: Definition | None, call: ast.Call) -> bool:
    """Whether a mask goes to Keras as it is, to which its dtype does not matter: others get that which they had."""
    fits = any(pastes.last_name(one.func) == "fit" for one in pastes.walk(own.tree, ast.Call))
    outer, made = own.parent(call), _target(own, call)
    if not fits or function is None or not isinstance(outer, (ast.Assign, ast.Tuple, ast.Return)):
        return False
    later = [
        one for one in code.own_nodes(function)
        if isinstance(one, ast.Name) and one.id == made and isinstance(one.ctx, ast.Load) and one.lineno > call.lineno
    ]  # fmt: skip
    returned_only = all(
        (isinstance(own.statement(one.lineno), ast.Return) and isinstance(own.parent(one), (ast.Tuple, ast.Return)))
        or (isinstance(shape := own.parent(one), ast.Attribute) and shape.attr in ("set_shape", "shape"))
        for one in later
    )  # fmt: skip
    return returned_only


def _in_body(facts: Facts, first: Output, function: Definition) -> Iterator[Finding]:
    """`cv2.resize(mask, (16, 16))`, whose result the body returns as its mask."""
    node, own = first.group[0], pastes.source(facts, first.group[0].file)
    cv2 = pastes.module(facts, node.file, "cv2")
    values = pastes.returns(function)
    if cv2 is None or len(values) != 1:
        return
    for call in (one for one in code.own_nodes(function) if isinstance(one, ast.Call)):
        if not _is_resize(call) or ast.unparse(call.func) != f"{cv2}.resize" or not call.args:
            continue
        method, made = argument(call, 5, "interpolation"), _target(own, call)
        texts = [one.id for one in ast.walk(call.args[0]) if isinstance(one, ast.Name)] + [made]
        if method is not None and ast.unparse(method).rpartition("_")[2] not in ("LINEAR", "CUBIC", "AREA", "LANCZOS4"):
            continue
        if not any(map(_LABELS.search, texts)) or any(map(_OTHER.search, texts)):
            continue
        elements = values[0].elts if isinstance(values[0], (ast.Tuple, ast.List)) else [values[0]]
        places = [place for place, one in enumerate(elements) if _holds(one, call, made)]
        origin = Output(first.group, places[0]) if len(places) == 1 else None
        seen = _classes(facts, origin) if origin is not None else []
        high = max((one.high or 0 for one in seen), default=0)
        if origin is None or high < 2 or _is_cut(own, function, call, made):
            continue
        nearest = f"{cv2}.INTER_NEAREST"
        new = (
            own.with_argument(call, f"interpolation={nearest}") if method is None
            else own.text_with(call, {method: nearest})
        )  # fmt: skip
        shown = seen[0].call
        yield Finding(
            NAMES[0], "warning", node.id, (shown,),
            f"{own.text(call)} blends neighbouring pixels, and {facts.name(node)} returns it as classes: whole numbers "
            f"from 0 to {high:.0f} in all {len(seen):,} recorded calls. What it makes at their borders, as 1 between "
            f"class 0 and class 2, stands for another class",
            pastes.written(pastes.replaced(facts, node.file, {call: new})), node.file, call.lineno,
            several(one.id for one in first.group),
            (facts.shown(shown),), "likely",
        )  # fmt: skip
