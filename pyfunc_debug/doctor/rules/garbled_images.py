"""A body that puts the numbers of an image elsewhere: `reshape` in the place of `transpose`, `np.resize` of a picture.

Both take the numbers one after another, as they lie in memory, and cut them into other rows.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import Given, as_given, given
from pyfunc_debug.doctor.bodies.run_functions import Ran, functions_that_ran
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import sizes_of
from pyfunc_debug.events import Notice
from pyfunc_debug.interception.graphs.reshapes import is_permuted
from pyfunc_debug.records import Finding, Node

NAMES = ("garbled-image",)
_READS = ("imread", "imdecode", "load_img")
"""Functions that give an image of the size that its file has."""
_KEEPS = ("array", "asarray", "img_to_array", "cvtColor", "convert", "astype", "open")
_DEEP = 5


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line of a body, and of a function that TensorFlow traced."""
    for group in facts.lines:
        function = facts.function(group[0])
        if function is None or not any(facts.calls(one.id).count for one in group):
            continue
        for part in code.own_nodes(function):
            found = _turned(facts, group, function, part)
            if isinstance(part, ast.Call):
                found = found or _reshaped(facts, group, function, part) or _resized(facts, group, function, part)
            if found is not None:
                yield found
                break
    for ran in functions_that_ran(facts):
        for call in (one for one in code.own_nodes(ran.function) if isinstance(one, ast.Call)):
            found = _resized_read(facts, ran, call)
            if found is not None:
                yield found
                break
    told: set[tuple[str, int]] = set()
    for _, _, noticed in facts.notices.get(Notice.RESHAPED, []):
        file, line = noticed["file"], noticed["line"]
        calls = [
            one for one in pastes.around(facts.tree(file), line, ast.Call) if pastes.last_name(one.func) == "reshape"
        ]
        if len(calls) == 1 and (file, line) not in told:
            told.add((file, line))
            tf = pastes.module(facts, file, "tensorflow")
            if tf is not None and dotted(calls[0].func) == f"{tf}.reshape" and calls[0].args:
                yield of_axes(facts, file, calls[0], calls[0].args[0], noticed["before"], noticed["after"], None)


def _reshaped(facts: Facts, group: Sequence[Node], function: Definition, call: ast.Call) -> Finding | None:
    """`img.reshape(8, 8, 3)` of an image that each call got as [3, 8, 8]."""
    node = group[0]
    if pastes.last_name(call.func) != "reshape" or not isinstance(call.func, ast.Attribute) or call.keywords:
        return None
    of_module = dotted(call.func.value) in _modules(facts, node.file)
    image = call.args[0] if of_module and call.args else call.func.value
    name = as_given(function, image)
    seen = given(facts, group, name) if name else []
    if not seen or len({one.shape for one in seen}) > 1:
        return None
    before = seen[0].shape
    known = _named_sizes(function, name, before)
    sizes = sizes_in(facts, node.file, call.args[1:] if of_module else call.args, known)
    if sizes is None:
        return None
    after = whole(sizes, before)
    return of_axes(facts, node.file, call, image, before, after, group) if is_permuted(before, after) else None


def of_axes(
    facts: Facts, file: str | None, call: ast.Call, image: ast.expr, before: Sequence[int | None],
    after: Sequence[int | None], group: Sequence[Node] | None,
) -> Finding:  # fmt: skip
    """That a reshape exchanges axes, with a transpose in its place.

    Args:
      facts: The recording.
      file: The file of the call.
      call: The reshape.
      image: What it takes.
      before: The shape of that.
      after: The shape that it makes.
      group: The nodes of the body; None where there is no body.
    """
    text, left = pastes.text_of(facts, file, image), list(enumerate(before))
    order = []
    for size in after:
        place = next(one for one in left if one[1] == size)
        left.remove(place)
        order.append(place[0])
    if isinstance(call.func, ast.Attribute) and call.func.value is image:
        new = f"{pastes.source(facts, file).atom(image)}.transpose({', '.join(map(str, order))})"
    else:
        new = f"{ast.unparse(call.func).removesuffix('reshape')}transpose({text}, {order})"
    return Finding(
        NAMES[0], "error", None if group is None else group[0].id, (),
        f"reshape makes {sizes_of(after)} of {text}, which is {sizes_of(before)}: it keeps the numbers in their order "
        "and cuts them into other rows, so that they land in other places. What exchanges axes is transpose",
        pastes.written(pastes.replaced(facts, file, {call: new})) or new, file, call.lineno,
        evidence=(f"line {call.lineno}: {facts.line(file, call.lineno)}",),
    )  # fmt: skip


def _turned(facts: Facts, group: Sequence[Node], function: Definition, part: ast.AST) -> Finding | None:
    """`img.T` of an image with its channels first, which exchanges its height and width, too."""
    node, np = group[0], pastes.module(facts, group[0].file, "numpy")
    image: ast.expr | None = None
    if isinstance(part, ast.Attribute) and part.attr == "T":
        image = part.value
    elif isinstance(part, ast.Call) and not part.keywords and dotted(part.func) == f"{np}.transpose":
        image = part.args[0] if len(part.args) == 1 else None
    elif isinstance(part, ast.Call) and not part.args and not part.keywords and isinstance(part.func, ast.Attribute):
        image = part.func.value if part.func.attr == "transpose" else None
    name = as_given(function, image) if image is not None else ""
    seen = given(facts, group, name) if name else []
    shapes = {one.shape for one in seen}
    if image is None or not isinstance(part, ast.expr) or not shapes or not all(map(_is_first, shapes)):
        return None
    if sum("transpose" in ast.unparse(one) or ".T" in ast.unparse(one) for one in pastes.returns(function)) > 1:
        return None
    text, shape = pastes.text_of(facts, node.file, image), seen[0].shape
    own = pastes.source(facts, node.file)
    new = f"{own.atom(image)}.transpose(1, 2, 0)"
    return Finding(
        NAMES[0], "warning", node.id, (seen[0].call,),
        f"{pastes.text_of(facts, node.file, part)} turns all axes round: {text} is {sizes_of(shape)}, channels, height "
        f"and width, and becomes width, height and channels, {sizes_of(shape[::-1])}. The image lies on its side, "
        "mirrored",
        pastes.written(pastes.replaced(facts, node.file, {part: new})) or new, node.file, part.lineno,
        evidence=(facts.shown(seen[0].call),), confidence="likely",
    )  # fmt: skip


def _is_first(shape: Sequence[int]) -> bool:
    """Whether a shape is that of an image with its channels first."""
    return len(shape) == 3 and shape[0] in (3, 4) and min(shape[1:]) > 4


def _resized(facts: Facts, group: Sequence[Node], function: Definition, call: ast.Call) -> Finding | None:
    """`np.resize(img, (4, 4, 3))`, which repeats or cuts the row of all numbers."""
    node, np = group[0], pastes.module(facts, group[0].file, "numpy")
    if np is None or dotted(call.func) != f"{np}.resize" or len(call.args) != 2 or call.keywords:
        return None
    sizes, name = sizes_in(facts, node.file, call.args[1:]), as_given(function, call.args[0])
    seen = given(facts, group, name) if name and sizes else []
    first = next((one for one in seen if sizes is not None and _is_scaled(one, sizes)), None)
    if sizes is None or first is None:
        return None
    text, fix = pastes.text_of(facts, node.file, call.args[0]), _scaled(facts, node.file, call, sizes)
    more = math.prod(sizes) > math.prod(first.shape)
    how = "repeats it until it has as many" if more else "drops the rest"
    return Finding(
        NAMES[0], "error", node.id, (first.call,),
        f"{np}.resize does not scale an image: it takes the numbers of {text} {sizes_of(first.shape)} as one row, "
        f"{how}, and cuts it into {sizes_of(sizes)}",
        fix, node.file, call.lineno,
        evidence=(facts.shown(first.call),),
    )  # fmt: skip


def _resized_read(facts: Facts, ran: Ran, call: ast.Call) -> Finding | None:
    """`np.resize(img, (32, 32, 3))` of an image that the function reads from a file."""
    np = pastes.module(facts, ran.file, "numpy")
    if np is None or dotted(call.func) != f"{np}.resize" or len(call.args) != 2 or call.keywords:
        return None
    sizes = sizes_in(facts, ran.file, call.args[1:])
    read = _read(ran, call.args[0], call) if sizes is not None and len(sizes) in (2, 3) and min(sizes) > 0 else None
    if read is None or sizes is None or (len(sizes) == 2) != _is_gray(read[0]):
        return None
    text = pastes.text_of(facts, ran.file, call.args[0])
    return Finding(
        NAMES[0], "error", ran.group[0].id if ran.group else None, (),
        f"{np}.resize does not scale an image: it takes the numbers of {text} as one row, drops the rest of them or "
        f"repeats them, and cuts the row into {sizes_of(sizes)}. An image of another size lands as stripes",
        _scaled(facts, ran.file, call, sizes, np if read[1] else ""), ran.file, call.lineno,
        evidence=(f"line {call.lineno}: {facts.line(ran.file, call.lineno)}",), confidence="likely",
    )  # fmt: skip


def _read(ran: Ran, node: ast.expr, call: ast.Call, deep: int = _DEEP) -> tuple[ast.Call, bool] | None:
    """The call that reads an image, and whether it is one of PIL's still; by what was assigned to a name last."""
    if isinstance(node, ast.Call):
        name = pastes.last_name(node.func)
        if name in _READS or (name == "open" and dotted(node.func).endswith("Image.open")):
            return node, name in ("open", "load_img")
        of_method = isinstance(node.func, ast.Attribute) and name in ("astype", "convert")
        inner = node.func.value if of_method and isinstance(node.func, ast.Attribute) else next(iter(node.args), None)
        found = _read(ran, inner, call, deep - 1) if name in _KEEPS and inner is not None and deep else None
        return None if found is None else (found[0], found[1] and name == "convert")
    if not isinstance(node, ast.Name) or not deep:
        return None
    made = [
        one for one in code.own_nodes(ran.function)
        if isinstance(one, ast.Assign) and one.lineno <= node.lineno and one.value is not call
        and [ast.unparse(target) for target in one.targets] == [node.id]
    ]  # fmt: skip
    before = [one for one in made if not any(part is node for part in ast.walk(one))]
    last = max(before, key=lambda one: one.lineno, default=None)
    return None if last is None else _read(ran, last.value, call, deep - 1)


def _is_gray(read: ast.Call) -> bool:
    """`cv2.imread(path, 0)`."""
    return any(ast.unparse(one).endswith(("0", "GRAYSCALE", "grayscale'", "'L'")) for one in read.args[1:])


def _scaled(facts: Facts, file: str | None, call: ast.Call, sizes: Sequence[int], of_pil: str = "") -> str:
    """What scales the image in the place of `np.resize`, as a paste; by words where the sizes are not written.

    Args:
      facts: The recording.
      file: The file of the call.
      call: The call of `np.resize`.
      sizes: What it makes.
      of_pil: For an image of PIL's the name of NumPy, which makes an array of it.
    """
    text, asked = pastes.text_of(facts, file, call.args[0]), call.args[1]
    shape = asked.elts[:2] if isinstance(asked, (ast.Tuple, ast.List)) else []
    height, width = [pastes.text_of(facts, file, one) for one in shape] or ("", "")
    cv2 = pastes.module(facts, file, "cv2")
    if of_pil and height:
        new = f"{of_pil}.array({text}.resize(({width}, {height})))"
    elif cv2 is not None and height:
        new = f"{cv2}.resize({text}, ({width}, {height}))"
    else:
        tf = pastes.module(facts, file, "tensorflow") or "tf"
        image = text if len(sizes) > 2 else f"{text}[..., None]"
        new = f"{tf}.image.resize({image}, ({height or 'height'}, {width or 'width'})).numpy()"
        new += f"{'' if len(sizes) > 2 else '[..., 0]'}.astype({text}.dtype)"
    return (pastes.written(pastes.replaced(facts, file, {call: new})) if height else "") or new


def _is_scaled(one: Given, sizes: Sequence[int]) -> bool:
    """Whether a picture is to have another width and height, and as many channels."""
    same = len(one.shape) == len(sizes) in (2, 3) and one.shape[2:] == tuple(sizes[2:])
    return same and one.shape[:2] != tuple(sizes[:2]) and min(one.shape[:2]) > 1 and min(sizes) > 0


def whole(sizes: Sequence[int], before: Sequence[int]) -> tuple[int, ...]:
    """A shape with its -1 computed."""
    rest = math.prod(one for one in sizes if one != -1)
    return tuple(math.prod(before) // max(rest, 1) if one == -1 else one for one in sizes)


def _named_sizes(function: Definition, name: str, shape: Sequence[int]) -> dict[str, int]:
    """What a body calls the sizes of what it got: `c`, `h` and `w` behind `c, h, w = x.shape`, and `x.shape[0]`."""
    known = {f"{name}.shape[{at}]": size for axis, size in enumerate(shape) for at in (axis, axis - len(shape))}
    own = [*code.own_nodes(function)]
    stored = Counter(one.id for one in own if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    for one in own:
        if not isinstance(one, ast.Assign) or len(one.targets) > 1:
            continue
        target, value = one.targets[0], one.value
        if isinstance(target, ast.Tuple) and ast.unparse(value) == f"{name}.shape" and len(target.elts) == len(shape):
            pairs = zip(map(ast.unparse, target.elts), shape)
        elif ast.unparse(value) in known:
            pairs = zip([ast.unparse(target)], [known[ast.unparse(value)]])
        else:
            continue
        known |= {text: size for text, size in pairs if stored[text] == 1}
    return known


def sizes_in(
    facts: Facts, file: str | None, given: Sequence[ast.expr], named: Mapping[str, int] | None = None
) -> list[int] | None:
    """The sizes that a call is given, side by side or as one tuple; None where one is not known.

    Args:
      facts: The recording.
      file: The file of the call.
      given: Its arguments.
      named: Sizes that the function has names for; other names stand for a number of the file.
    """
    if len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.List)):
        given = given[0].elts
    found = [(named or {}).get(ast.unparse(one), _number(facts, file, one)) for one in given]
    known = [one for one in found if one is not None]
    return known if known and len(known) == len(found) else None


def _number(facts: Facts, file: str | None, node: ast.expr) -> int | None:
    """A whole number, or that which a name of the file always has."""
    if isinstance(node, ast.Name):
        stores = [
            one for one in pastes.walk(facts.tree(file), ast.Name)
            if one.id == node.id and isinstance(one.ctx, ast.Store)
        ]  # fmt: skip
        made = _made(pastes.source(facts, file), stores[0]) if len(stores) == 1 else None
        return _number(facts, file, made) if isinstance(made, ast.Constant) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(facts, file, node.operand)
        return None if value is None else -value
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _made(own: Source, name: ast.Name) -> ast.expr | None:
    """What an assignment gives to a name: `H, W = 8, 10`, too."""
    around = own.parent(name)
    if isinstance(around, ast.Assign):
        return around.value
    outer = own.parent(around) if isinstance(around, ast.Tuple) else None
    if isinstance(outer, ast.Assign) and isinstance(outer.value, ast.Tuple) and isinstance(around, ast.Tuple):
        return dict(zip(around.elts, outer.value.elts)).get(name)
    return None


def _modules(facts: Facts, file: str | None) -> list[str | None]:
    return [one for name in ("numpy", "tensorflow") if (one := pastes.module(facts, file, name)) is not None]
