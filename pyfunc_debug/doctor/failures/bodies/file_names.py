"""The name of a file that a body makes of another: split at the other system's separator, or with `b'...'` in it."""

from __future__ import annotations

import ast
import dataclasses
import os
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, holds, in_place, value_of
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import bytes_of, calls, lookup

_MISSING = {"FileNotFoundError", "NotFoundError", "NotADirectoryError", "OSError", "InvalidArgumentError"}
"""What is raised of a file that is not there."""
_PARTS = {"IndexError", "ValueError", "KeyError"}
"""What is raised of a part that a name has not, and of a name that is in no list or dict."""
_NONE = re.compile(r"NoneType|!_?src\.empty\(\)|_src\.empty\(\)|!ssize\.empty\(\)")
"""What is said of the image that OpenCV did not find."""
_SEPARATORS = ("\\", "/")
_QUOTED = re.compile(r"b'([^']*)'|b\"([^\"]*)\"")
_SHOWN = 40


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a file was not found by a name that Python code made of another."""
    wanted = situation.kind in _MISSING | _PARTS or _NONE.search(situation.message)
    for spot in reversed(situation.spots) if wanted else ():
        said = _said(situation, spot)
        found = (
            _of_bytes(spot, said)
            or _of_number(situation, spot, said)
            or _of_windows(situation, spot, said)
            or _run_together(situation, spot, said)
            or _not_split(situation, spot, said)
        )
        if found is not None:
            return found
    return None


def _said(situation: Situation, spot: Spot) -> str:
    """The name that was not found, or the words that hold it."""
    name = getattr(situation.inner, "filename", None)
    if isinstance(name, str):
        return name
    if situation.kind in _MISSING | _PARTS:
        return situation.message
    return "\n".join(_read_as_none(spot))


def _read_as_none(spot: Spot) -> Iterator[str]:
    """The names of the images that `cv2.imread` gave None for, where variables hold them."""
    for call in in_function(spot):
        parent = spot.source.parent(call)
        kept = parent.targets[0] if isinstance(parent, ast.Assign) else None
        none = isinstance(kept, ast.Name) and kept.id in spot.variables and spot.variables[kept.id] is None
        if none and dotted(call.func).endswith("imread") and call.args:
            name = text_of(call.args[0], spot)
            if name is not None:
                yield name


def in_function(spot: Spot) -> Iterator[ast.Call]:
    """The calls of the function that ran; those of the file's own lines where none did."""
    function = spot.function
    yield from calls(function if function is not None else spot.source.tree)


def _not_split(situation: Situation, spot: Spot, said: str) -> Explanation | None:
    """A split at a backslash, of a path that has slashes; or the other way round."""
    for place in _places(spot):
        for call in in_function(place):
            name, given = getattr(call.func, "attr", ""), call.args[0] if call.args else None
            if name not in ("split", "rsplit") or not isinstance(call.func, ast.Attribute):
                continue
            if not isinstance(given, ast.Constant) or given.value not in _SEPARATORS:
                continue
            owner, whole = call.func.value, text_of(call.func.value, place)
            other = _SEPARATORS[1 - _SEPARATORS.index(given.value)]
            if whole is None or given.value in whole or other not in whole or other != os.sep:
                continue
            in_line = place is spot and _at_line(spot, call)
            if not (whole.split(".")[0] in said or (situation.kind == "IndexError" and in_line)):
                continue
            edit, made = _parted(place, call, spot.source.text(owner), whole)
            if edit is None:
                continue
            shown = whole if len(whole) <= _SHOWN else f"...{whole[-_SHOWN:]}"
            cause = (
                f'"{shown}" has no {given.value}: this system\'s paths have {other}. '
                f"`{short(spot.source.text(call), 44)}` gives all of it as one part. {made}"
            )
            return Explanation(RULE, place.file, call.lineno, cause, edit)
    return None


def _at_line(spot: Spot, call: ast.Call) -> bool:
    """Whether the line that ran has a call, or reads the name that has what it gave."""
    statement, parent = spot.statement, spot.source.parent(call)
    kept = parent.targets[0] if isinstance(parent, ast.Assign) else None
    here = statement is not None and call in ast.walk(statement)
    return here or (statement is not None and isinstance(kept, ast.Name) and kept.id in names(statement))


def _places(spot: Spot) -> Iterator[Spot]:
    """The function that failed, and the functions of its file that it calls, with what they were given."""
    yield spot
    own = {one.name: one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef)}
    for call in in_function(spot):
        function = own.get(dotted(call.func))
        if function is None or function is spot.function:
            continue
        given = {name: text_of(one, spot) for name, one in zip(parameters(function), call.args)}
        known = {name: text for name, text in given.items() if text is not None}
        if known:
            yield dataclasses.replace(spot, line=function.body[0].lineno, variables=known, code=function.name)


def _parted(spot: Spot, call: ast.Call, owner: str, whole: str) -> tuple[Edit | None, str]:
    """The part of a path by os.path, and what is said of it."""
    node: ast.expr = call
    part = spot.source.parent(call)
    if isinstance(part, ast.Subscript) and part.value is call:
        node = part
        last = isinstance(part.slice, ast.UnaryOp) and ast.unparse(part.slice) == "-1"
        if last:
            new, said = f"os.path.basename({owner})", "os.path.basename gives the name on any system."
            ended = _without_end(spot, part)
            if ended is not None and os.path.basename(whole).count(".") == 1:
                node, new = ended, f"os.path.splitext({new})[0]"
            return in_place(spot, {node: new}), said
    if len(call.args) > 1 or call.keywords:
        return None, ""
    new = f"os.path.normpath({owner}).split(os.sep)"
    return in_place(spot, {call: new}), "os.sep is the separator of the system that the program runs on."


def _without_end(spot: Spot, part: ast.Subscript) -> ast.Subscript | None:
    """`part.split(".")[0]`: the name without its end."""
    method = spot.source.parent(part)
    call = spot.source.parent(method) if isinstance(method, ast.Attribute) and method.attr == "split" else None
    if not isinstance(call, ast.Call) or [ast.unparse(one) for one in call.args] != ["'.'"]:
        return None
    first = spot.source.parent(call)
    zero = isinstance(first, ast.Subscript) and isinstance(first.slice, ast.Constant) and first.slice.value == 0
    return first if isinstance(first, ast.Subscript) and zero else None


def _of_bytes(spot: Spot, said: str) -> Explanation | None:
    """`f"{name}.npy"` of bytes, or of a tensor of text: the file's name then has `b'...'` in it."""
    quoted = {one or other for one, other in _QUOTED.findall(said)}
    pieces: dict[ast.expr, str] = {}
    whole: ast.AST = spot.function if spot.function is not None else spot.source.tree
    for one in ast.walk(whole) if quoted else ():
        shown, call = None, isinstance(one, ast.Call)
        if isinstance(one, ast.FormattedValue):
            shown = one.value
        elif isinstance(one, ast.Call) and dotted(one.func) == "str" and len(one.args) == 1 and not one.keywords:
            shown = one.args[0]
        elif isinstance(one, ast.expr):
            for each in _put(one):
                value = _bytes_of(each, spot)
                if value is not None and value.decode("utf-8", "replace") in quoted:
                    pieces[each] = f"{spot.source.text(each)}{_numpy(each, spot)}.decode()"
        value = _bytes_of(shown, spot) if shown is not None else None
        if shown is None or value is None or value.decode("utf-8", "replace") not in quoted:
            continue
        text = f"{spot.source.text(shown)}{_numpy(shown, spot)}.decode()"
        pieces[one if call and isinstance(one, ast.expr) else shown] = text
    first = min((one.lineno for one in pieces), default=0)
    edit = in_place(spot, {one: text for one, text in pieces.items() if one.lineno == first})
    if edit is None:
        return None
    named = next((one for one in said.split() if _QUOTED.search(one)), said)
    written = named.strip('";')
    written = written if len(written) <= _SHOWN else f"...{written[-_SHOWN:]}"
    cause = (
        f"Python writes bytes into a text as b'...', and no file is called so: {written}. "
        "A body gets its strings as bytes. `.decode()` gives the text."
    )
    return Explanation(RULE, spot.file, first, cause, edit)


def _numpy(node: ast.expr, spot: Spot) -> str:
    return ".numpy()" if isinstance(node, ast.Name) and holds(spot, node.id, "EagerTensor") else ""


def _put(node: ast.expr) -> list[ast.expr]:
    """What `"%s.npy" % name` and `"{}.npy".format(name)` put into a text."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return list(node.right.elts) if isinstance(node.right, ast.Tuple) else [node.right]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return list(node.args)
    return []


def _of_number(situation: Situation, spot: Spot, said: str) -> Explanation | None:
    """`str(i)` or `"%s" % i` of an eager tensor: the name has `tf.Tensor(1, shape=(), ...)` in it."""
    statement = spot.statement
    if "tf.Tensor(" not in said or statement is None:
        return None
    shown: list[ast.expr] = []
    for one in ast.walk(statement):
        if isinstance(one, ast.Call) and dotted(one.func) == "str":
            shown += one.args[:1]
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "format":
            shown += one.args
        elif isinstance(one, ast.FormattedValue):
            shown.append(one.value)
        elif isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod):
            shown += one.right.elts if isinstance(one.right, ast.Tuple) else [one.right]
    named = [one for one in shown if isinstance(one, ast.Name) and type(lookup(one, spot)).__name__ == "EagerTensor"]
    edit = in_place(spot, {one: value_of(spot, one.id) for one in named})
    if edit is None:
        return None
    name, what = named[0].id, "key" if situation.kind == "KeyError" else "file"
    cause = f"{name} is a tensor, and its text is not its value alone, but `tf.Tensor(...)`: no {what} is called so."
    return Explanation(RULE, spot.file, spot.line, f"{cause} `.numpy()` is the value.", edit)


def _of_windows(situation: Situation, spot: Spot, said: str) -> Explanation | None:
    """A name with Windows' separators, as tables have them, where the system has others and the file is there."""
    name = getattr(situation.inner, "filename", None) or said
    if not isinstance(name, str) or os.sep == "\\" or "\\" not in name or "\n" in name or os.path.exists(name):
        return None
    found = {
        one: text for call in _at(spot) for one in call.args
        if isinstance(one, (ast.Name, ast.Attribute, ast.BinOp, ast.Call, ast.JoinedStr))
        and (text := text_of(one, spot)) == name
    }  # fmt: skip
    right = name.replace("\\", "/")
    if len(found) != 1 or not os.path.exists(right):
        return None
    (given,) = found
    text = spot.source.text(given)
    text = f"({text})" if isinstance(given, ast.BinOp) else text
    edit = in_place(spot, {given: f'{text}.replace("\\\\", "/")'})
    shown = name if len(name) <= _SHOWN else f"...{name[-_SHOWN:]}"
    cause = f"\"{shown}\" has Windows' separators, and this system's is /. With / in their place the file is there."
    return Explanation(RULE, spot.file, spot.line, cause, edit)


def _run_together(situation: Situation, spot: Spot, said: str) -> Explanation | None:
    """`folder + name` without a separator between them, where the file is in the folder."""
    name = getattr(situation.inner, "filename", None) or said
    if not isinstance(name, str) or "\n" in name or os.path.exists(name):
        return None
    whole: ast.AST = spot.function if spot.function is not None else spot.source.tree
    for one in ast.walk(whole):
        joins = isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add)
        if not joins or not isinstance(one, ast.BinOp) or text_of(one, spot) != name:
            continue
        parts = _added(one)
        texts = [text_of(each, spot) or "" for each in parts]
        for cut in range(1, len(parts)):
            folder, rest = "".join(texts[:cut]), "".join(texts[cut:])
            if not os.path.isdir(folder) or not os.path.exists(os.path.join(folder, rest)) or folder.endswith(os.sep):
                continue
            written = [" + ".join(map(spot.source.text, each)) for each in (parts[:cut], parts[cut:])]
            edit = in_place(spot, {one: f"os.path.join({', '.join(written)})"})
            shown = name if len(name) <= _SHOWN else f"...{name[-_SHOWN:]}"
            cause = f"there is no {shown}: `+` puts no {os.sep} between the folder and the name. os.path.join does."
            return Explanation(RULE, spot.file, one.lineno, cause, edit)
    return None


def _added(node: ast.expr) -> list[ast.expr]:
    """The parts of a sum, in their order."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_added(node.left), *_added(node.right)]
    return [node]


def _at(spot: Spot) -> Iterator[ast.Call]:
    statement = spot.statement
    yield from calls(statement) if statement is not None else ()


def text_of(node: ast.expr, spot: Spot) -> str | None:
    """The text that an expression stands for, also one that only computes, of `self.ids[i]` and the like."""
    found = _written(node, spot)
    value = origins.valued(node, spot) if found is None else found
    return value if type(value) is str else None


def _written(node: ast.expr, spot: Spot) -> str | None:
    """The text that an expression of names, `numpy()`, `decode()`, `str()`, `+`, joins and f-strings stands for."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _joined([node.left, node.right], spot)
    if isinstance(node, ast.JoinedStr):
        shown = [one for one in node.values if isinstance(one, ast.FormattedValue)]
        if any(one.conversion != -1 or one.format_spec is not None for one in shown):
            return None
        return _joined([one.value if isinstance(one, ast.FormattedValue) else one for one in node.values], spot)
    if isinstance(node, ast.Call):
        name = dotted(node.func)
        if name == "str" and len(node.args) == 1:
            return text_of(node.args[0], spot)
        if name.endswith("path.join") and node.args and not node.keywords:
            parts = _texts(node.args, spot)
            return os.path.join(*parts) if parts else None
        inside = node.args[0] if name == "bytes.decode" and node.args else getattr(node.func, "value", None)
        decodes = isinstance(node.func, ast.Attribute) and node.func.attr == "decode"
        value = _bytes_of(inside, spot) if decodes and inside is not None else None
        return value.decode("utf-8", "replace") if value is not None else None
    found = node.value if isinstance(node, ast.Constant) else lookup(node, spot)
    return found if type(found) is str else None


def _joined(parts: list[ast.expr], spot: Spot) -> str | None:
    texts = _texts(parts, spot)
    return None if texts is None else "".join(texts)


def _texts(parts: list[ast.expr], spot: Spot) -> list[str] | None:
    texts = [text_of(one, spot) for one in parts]
    known = [one for one in texts if one is not None]
    return known if len(known) == len(texts) else None


def _bytes_of(node: ast.expr, spot: Spot) -> bytes | None:
    """The bytes that a name, a part of an array, or `numpy()` of a tensor of one text stands for."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy":
        node = node.func.value
    value: Any = None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        owner, at = lookup(node.value, spot), node.slice.value
        array = type(owner).__module__ == "numpy" and getattr(owner, "ndim", 0) == 1
        value = owner[at] if array and type(at) is int and 0 <= at < len(owner) else None
    elif isinstance(node, (ast.Name, ast.Attribute)):
        value = lookup(node, spot)
    return bytes_of(value)
