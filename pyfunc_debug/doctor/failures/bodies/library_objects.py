"""What a library gives for a file, used as if it were the array in it.

`wavfile.read` gives a pair, `np.load` of an .npz an archive, `Image.open` an image of PIL's, and the last
`VideoCapture.read` of a video no frame.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.callables import code_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray

_PAIR = re.compile(
    r"inhomogeneous|'tuple' object has no attribute|unsupported operand type\(s\) for .*'tuple'|"
    r"tuple indices must be integers|not 'tuple'|\(<class 'tuple'>\)|with a sequence"
)
_ARCHIVE = re.compile(r"'?NpzFile'?|is not a file in the archive|float\(\) argument")
_IMAGE = re.compile(
    r"unsupported operand type\(s\) for .*'\w*Image\w*'|'\w*Image\w*' object (?:has no attribute|is not subscriptable)|"
    r"\w*Image\w* object at 0x|PIL\.\w+|TypeError: .*Image"
)
_PICKLED = "Object arrays cannot be loaded when allow_pickle=False"
_NO_FRAME = re.compile(r"empty\(\)|NoneType|None")
_MOST_KEYS = 6
_ALIKE = ("images", "image", "x", "data", "arr_0", "inputs")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a name in the failing line of a body or a generator is such an object."""
    spot = situation.last
    if spot is None or spot.statement is None or not situation.data:
        return None
    if _PICKLED in situation.message:
        return _pickled(spot)
    if _NO_FRAME.search(situation.message) and (found := _no_frame(spot)) is not None:
        return found
    names = dict.fromkeys(one.id for one in ast.walk(spot.statement) if isinstance(one, ast.Name))
    for name in names:
        value = spot.variables.get(name)
        if _PAIR.search(situation.message) and type(value) is tuple and len(value) == 2:
            found = _pair(spot, name, value)
        elif type(value).__name__ == "NpzFile" and _ARCHIVE.search(situation.message):
            found = _archive(spot, name, value, situation)
        elif _is_image(value) and _IMAGE.search(situation.message):
            found = _image(spot, name)
        else:
            found = None
        if found is not None:
            return found
    return _opened(spot) if _IMAGE.search(situation.message) else None


def _made(spot: Spot, name: str) -> ast.Assign | None:
    """The assignment above the failing line that gave a name the result of a call."""
    made = [
        one for one in (own_nodes(spot.function) if spot.function is not None else ())
        if isinstance(one, ast.Assign) and one.lineno < spot.line and len(one.targets) == 1
        and dotted(one.targets[0]) == name
    ]  # fmt: skip
    return made[-1] if made and isinstance(made[-1].value, ast.Call) else None


def _pair(spot: Spot, name: str, value: tuple[Any, Any]) -> Explanation | None:
    """`wav = wavfile.read(path)`: a rate and the samples."""
    arrays = [is_ndarray(one) for one in value]
    made = _made(spot, name)
    if made is None or not isinstance(made.value, ast.Call) or sum(arrays) != 1:
        return None
    call, source = made.value, spot.source
    place, other = arrays.index(True), value[arrays.index(False)]
    if not isinstance(other, (bool, int, float)):
        return None
    if code_of(call, spot) is not None:  # a function of the user's own
        targets = f"{name}, _" if place == 0 else f"_, {name}"
        cause = (
            f"{short(source.text(call.func), 40)} gives two values: {name} is the tuple of both, and line {spot.line} "
        )
        cause += "takes it for the array in it."
        edit = edit_of(spot.file, source.replaced({made.targets[0]: targets}))
        return Explanation(RULE, spot.file, made.lineno, cause, edit, "" if edit else f"Write {targets} = ...")
    last = dotted(call.func).rpartition(".")[2]
    left = source.unused_name("rate") if last in ("read", "load", "load_wav") else "_"
    targets = f"{name}, {left}" if place == 0 else f"{left}, {name}"
    what = "the rate" if left != "_" else repr(other)
    order = f"the array and {what}" if place == 0 else f"{what} and the array"
    cause = (
        f"{short(source.text(call.func), 40)} gives a pair, {order}: {name} is the pair, and line {spot.line} takes it "
        "for the array."
    )
    edit = edit_of(spot.file, source.replaced({made.targets[0]: targets}))
    return Explanation(RULE, spot.file, made.lineno, cause, edit, "" if edit else f"Write {targets} = ...")


def _archive(spot: Spot, name: str, value: Any, situation: Situation) -> Explanation | None:
    """`data = np.load("x.npz")`, of which the arrays have names."""
    source, statement = spot.source, spot.statement
    keys = [str(one) for one in value.files]
    listed = ", ".join(map(repr, keys[:_MOST_KEYS])) + ", ..." * (len(keys) > _MOST_KEYS)
    asked = re.search(r"'?(\w+) is not a file in the archive", situation.message)
    if asked is not None:
        wanted = asked[1]
        near = _near(wanted, keys)
        cause = f"The file that {name} was loaded from has no array {wanted!r}. It has {listed}."
        places: dict[ast.expr, str] = {
            one.slice: repr(near) for one in ast.walk(statement or ast.Pass())
            if isinstance(one, ast.Subscript) and dotted(one.value) == name and isinstance(one.slice, ast.Constant)
            and one.slice.value == wanted
        } if near else {}  # fmt: skip
        edit = in_place(spot, places)
        advice = "" if edit else "Ask for one of these; or save it under that name: np.savez(path, "
        advice += "" if edit else f"{wanted}=...)."
        return Explanation(RULE, spot.file, spot.line, cause, edit, advice, "likely" if edit else "measured")
    cause = (
        f"np.load of an .npz gives an archive of named arrays, and line {spot.line} takes {name} for an array. It has "
        f"{listed}."
    )
    key = keys[0] if len(keys) == 1 else next((one for one in _ALIKE if one in keys), None)
    uses: list[ast.expr] = [
        one for one in ast.walk(statement or ast.Pass())
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
        and not isinstance(source.parent(one), ast.Subscript)
    ]  # fmt: skip
    edit = in_place(spot, dict.fromkeys(uses, f'{name}["{key}"]')) if key is not None else None
    advice = "" if edit else f'Take one by its name: {name}["{keys[0] if keys else "x"}"].'
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice, "likely")


def _near(wanted: str, keys: list[str]) -> str | None:
    """The one array whose name is like another, or that has none: `arr_0`."""
    plain = wanted.lower().rstrip("s")
    alike = [one for one in keys if one.lower().rstrip("s") == plain or plain in one.lower() or one.lower() in plain]
    return keys[0] if len(keys) == 1 else alike[0] if len(alike) == 1 else None


def _is_image(value: Any) -> bool:
    kind = type(value)
    return kind.__module__.startswith("PIL.") and any(one.__name__ == "Image" for one in kind.__mro__)


def _image(spot: Spot, name: str) -> Explanation | None:
    """An image of PIL's in the place of an array."""
    uses: list[ast.expr] = [
        one for one in ast.walk(spot.statement or ast.Pass())
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    ]  # fmt: skip
    np = alias(spot, "numpy")
    edit = in_place(spot, dict.fromkeys(uses, f"{np}.array({name})"))
    cause = (
        f"{name} is an image of PIL's, and no array: it has neither arithmetic nor a shape. {np}.array makes one of it."
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write {np}.array({name}).")


def _opened(spot: Spot) -> Explanation | None:
    """`Image.open(path).resize((8, 8)) / 255`."""
    np, found = alias(spot, "numpy"), []
    for one in ast.walk(spot.statement or ast.Pass()):
        sides = [one.left, one.right] if isinstance(one, ast.BinOp) else []
        found += [side for side in sides if isinstance(side, ast.Call) and _opens(side)]
    if len(found) != 1:
        return None
    text = spot.source.text(found[0])
    edit = in_place(spot, {found[0]: f"{np}.array({text})"})
    cause = f"{short(text, 40)} is an image of PIL's, and no array: it has no arithmetic. {np}.array makes one of it."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write {np}.array(...).")


def _opens(node: ast.expr) -> bool:
    """Whether a chain of calls begins with `Image.open(...)`."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        if isinstance(node, ast.Call) and dotted(node.func).endswith(("Image.open", "load_img", "Image.fromarray")):
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def _pickled(spot: Spot) -> Explanation | None:
    """An .npy file of Python objects."""
    found = [
        one for one in calls(spot.statement or ast.Pass())
        if dotted(one.func).rpartition(".")[2] == "load" and all(word.arg != "allow_pickle" for word in one.keywords)
    ]  # fmt: skip
    loaded = found[0] if len(found) == 1 else None
    cause = (
        "The file has an array of Python objects (rows of several sizes, dicts, None), and NumPy reads such only where "
        "it is allowed: a file like that can run code. For a file of your own:"
    )
    edit = in_place(spot, {loaded: spot.source.with_argument(loaded, "allow_pickle=True")}) if loaded else None
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "np.load(..., allow_pickle=True).")


def _no_frame(spot: Spot) -> Explanation | None:
    """`ret, frame = cap.read()` behind the last frame of a video: False and None."""
    function = spot.function
    made = [
        one for one in (own_nodes(function) if function is not None else ())
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and isinstance(one.targets[0], ast.Tuple)
        and dotted(one.value.func).rpartition(".")[2] == "read" and len(one.targets[0].elts) == 2
        and one.lineno < spot.line
    ]  # fmt: skip
    target = made[-1].targets[0] if made else None
    if not isinstance(target, ast.Tuple):
        return None
    got, frame = map(dotted, target.elts)
    if spot.variables.get(got, True) is not False or spot.variables.get(frame, True) is not None:
        return None
    source, read = spot.source, made[-1]
    loops = [one for one in source.around(read) if isinstance(one, (ast.For, ast.While))]
    call = source.text(read.value)
    capture = call.removesuffix(".read()")
    opened = spot.variables.get(capture)
    if opened is not None and type(opened).__name__ == "VideoCapture" and not opened.isOpened():
        cause = f"{call} gave False and no frame: {capture} could not open its file."
        advice = "See whether the file is there, under that name, and is a video."
        return Explanation(RULE, spot.file, read.lineno, cause, None, advice)
    cause = f"{call} gave False and no frame: the video has no more, and line {spot.line} takes {frame} for an image."
    if not loops:
        return Explanation(RULE, spot.file, read.lineno, cause, None, f"Ask {got} before {frame} is used.")
    indent = indent_of(source.lines[read.lineno - 1])
    after = (read.end_lineno or read.lineno) + 1
    edit = Edit(spot.file, after, after - 1, (f"{indent}if not {got}:", f"{indent}    break"))
    return Explanation(RULE, spot.file, read.lineno, cause, edit)
