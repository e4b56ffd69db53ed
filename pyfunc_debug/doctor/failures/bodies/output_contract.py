"""A body that returned something else than its node declares: another number of values, another dtype, None."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from pyfunc_debug.doctor.failures.bodies import handle_touts, unlike_returns
from pyfunc_debug.doctor.failures.bodies.handle_touts import HANDLES
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import Guess, assignments
from pyfunc_debug.doctor.failures.reading.nodes import (
    Node,
    argument,
    failed_gradient,
    failed_node,
    other_touts,
    return_value,
    return_values,
    returned,
    site_spot,
    writes_dtypes,
)
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, read, short
from pyfunc_debug.doctor.failures.reading.symbols import alias
from pyfunc_debug.interception.names.private import converted_place, converting
from pyfunc_debug.program.frames import is_installed

RULE = "output-contract"
_COUNT = re.compile(r"pyfunc_\d+ returns (\d+) values?, but expects to see (\d+) values?")
_DTYPE = re.compile(r"(\d+)-th value returned by pyfunc_\d+ is (\w+), but expects (\w+)")
_TENSOR = re.compile(r"Tensor conversion requested dtype (\w+) for Tensor with dtype (\w+)")
_CONVERT = re.compile(r"Cannot convert (.*?) to EagerTensor of dtype (\w+)", re.DOTALL)
_UNSUPPORTED = re.compile(r"Unsupported object type (NoneType|\w+)")
_NO_ARRAY = re.compile(r"Invalid dtype argument value (?:20|21)\b|to a Tensor \(Unexpected numpy data type\)")
_OF_TEXT = ("float32", "float64", "int32", "int64")
"""Dtypes that tf.strings.to_number gives."""
_WORDS = {"float": "float32", "double": "float64", "half": "float16", "str": "string"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what a body returned is why the program failed."""
    text = situation.message if situation.body else f"{situation.message}\n{situation.error}"
    for pattern, tell in (
        (_COUNT, _count),
        (_DTYPE, _dtype),
        (_NO_ARRAY, _handle),
        (_TENSOR, _tensor),
        (_CONVERT, _convert),
        (_UNSUPPORTED, _object),
    ):
        found = pattern.search(text)
        if found is None:
            continue
        if pattern in (_NO_ARRAY, _TENSOR, _CONVERT) and not _while_converting(situation):
            continue
        if failed_gradient(situation) is not None:
            return None  # TensorFlow's own values, and not what the body returned
        node = failed_node(situation)
        return tell(situation, node, found) if node is not None else None
    return None


def _while_converting(situation: Situation) -> bool:
    """Whether it was raised while TensorFlow converted what the body returned, and not by the body."""
    return bool(situation.body and converting(situation.inner.__traceback__))


def _converted(situation: Situation) -> str:
    """The dtype of the array that TensorFlow was converting; "" where it was none."""
    frame = next(iter(converting(situation.inner.__traceback__)[::-1]), None)
    dtype = str(getattr(frame.f_locals.get("value"), "dtype", "")) if frame is not None else ""
    return dtype if dtype.rstrip("0123456789") in ("int", "uint", "float", "bool") else ""


def _count(situation: Situation, node: Node, found: re.Match[str]) -> Explanation | None:
    count, expected = int(found[1]), int(found[2])
    declared = f"Tout declares {expected} ({', '.join(node.tout[:3])})"
    if count == 0:
        empty = _list(situation, node, 0) if expected == 1 and node.kind == "numpy_function" and _ends(node) else None
        return empty or _nothing(situation, node, declared)
    if expected == 1 and node.kind == "numpy_function":
        listed = _list(situation, node, count)
        if listed is not None:
            return listed
        if (first := _first_of_library(situation, node, count, declared)) is not None:
            return first
    cause = f"{node.opening} returned {count} values, but {declared}. Tout needs one dtype for each value."
    guess = returned(node, situation)
    new = None
    sure = False
    if guess is not None and len(guess[0]) == count:
        spot = site_spot(node, situation)
        tf = alias(spot, "tensorflow") if spot is not None else "tf"
        known = [
            *(f"{tf}.{name}" for name in node.tout),
            *[f"{tf}.{node.tout[-1] if node.tout else 'float32'}"] * count,
        ]
        seen = _seen_dtypes(situation, node, count)
        dtypes = [f"{tf}.{own}" if own is not None else _of_python(dtype, node) for own, dtype in zip(seen, guess[0])]
        new = f"[{', '.join(dtype or known[position] for position, dtype in enumerate(dtypes))}]"
        sure = None not in dtypes
    return _explanation(situation, node, cause, new, sure, names=count)


def _first_of_library(situation: Situation, node: Node, count: int, declared: str) -> Explanation | None:
    """The first of the values of a library's function, as a statistic of SciPy's with its p-value."""
    call, spot = node.call(), site_spot(node, situation)
    function = argument(call, 0, "func") if call is not None else None
    known = isinstance(function, (ast.Name, ast.Attribute)) and node.file is not None and is_installed(node.file)
    if not known or function is None or spot is None or node.site is None or node.tout[0] == "string":
        return None
    own = node.source.text(function)
    text = f"lambda *given: {alias(spot, 'numpy')}.{node.tout[0]}({own}(*given)[0])"
    cause = f"{own} gives {count} values, but {declared}. The first of them, as that dtype, is one."
    edit = edit_of(node.site[0], node.source.replaced({function: text}))
    return Explanation(RULE, node.site[0], node.site[1], cause, edit, "", "likely") if edit is not None else None


def _ends(node: Node) -> bool:
    """Whether a body's last line returns a value: then it did not return None by its end."""
    function = node.function()
    return isinstance(function, ast.Lambda) or (function is not None and isinstance(function.body[-1], ast.Return))


def _nothing(situation: Situation, node: Node, declared: str) -> Explanation | None:
    """A body that returned None: its `return` is missing, or nothing needs what it would return."""
    call, function = node.call(), node.function()
    cause = f"{node.opening} returned None in its call, but {declared}: "
    parent = node.source.parent(call) if call is not None else None
    last = function.body[-1] if isinstance(function, ast.FunctionDef) and not return_values(function) else None
    target = last.targets[0] if isinstance(last, ast.Assign) and len(last.targets) == 1 else None
    kept = list(target.elts) if isinstance(target, ast.Tuple) else [target] if target is not None else []
    made = bool(kept) and all(isinstance(one, ast.Name) for one in kept) and len(kept) == max(len(node.tout), 1)
    if made or (isinstance(parent, ast.Lambda) and isinstance(node.source.parent(parent), ast.Call)):
        cause += "a body needs a `return`. TensorFlow cannot know that at trace: it fails at the first run."
        if node.file is None or last is None or len(kept) != max(len(node.tout), 1):
            advice = f"End {node.called} with a `return` of what Tout says."
            return _explanation(situation, node, cause, None, advice=advice)
        lines = read(node.file).lines[last.lineno - 1 : last.end_lineno]
        names = ", ".join(ast.unparse(one) for one in kept)
        edit = Edit(
            node.file, last.lineno, last.end_lineno or last.lineno, (*lines, f"{indent_of(lines[0])}return {names}")
        )
        return Explanation(RULE, edit.file, edit.last, cause, edit, "", "likely")
    cause += (
        "a body needs a `return`, or Tout=[] if it returns nothing. TensorFlow cannot know that at trace: it fails at "
        "the first run."
    )
    return _explanation(situation, node, cause, "[]")


def _seen_dtypes(situation: Situation, node: Node, count: int) -> list[str | None]:
    """The dtypes that a call's values brought along, where it returned that number of values; None for Python's own."""
    rows = situation.rows(
        "SELECT dtypes FROM returned WHERE node = ? AND count = ? ORDER BY id DESC LIMIT 1", (node.id, count)
    )
    seen = json.loads(rows[0][0]) if rows else []
    return [*seen, *[None] * count][:count]


def _of_python(dtype: str | None, node: Node) -> str | None:
    """A number of Python's own: NumPy, by which a numpy_function converts it, has floats of 64 bits."""
    floats = dtype is not None and dtype.endswith(".float32") and node.kind == "numpy_function"
    return f"{dtype.rpartition('.')[0]}.float64" if floats and dtype is not None else dtype


def _list(situation: Situation, node: Node, count: int) -> Explanation | None:
    """A Python list that is one value: numpy_function takes it for several."""
    function = node.function()
    value = return_value(function) if function is not None else None
    if value is None or function is None or node.file is None or not node.tout or not _is_list(value, function):
        return None
    spot = next((spot for spot in situation.spots if spot.file == node.file), None) or site_spot(node, situation)
    source, np = read(node.file), alias(spot, "numpy") if spot is not None else "np"
    dtype = "object" if node.tout[0] == "string" else f"{np}.{node.tout[0]}"
    found = source.replaced({value: f"{np}.array({source.text(value)}, {dtype})"})
    cause = (
        f"{node.opening} returned a Python list of {count}: a numpy_function takes it for {count} values, but Tout "
        f"declares one ({node.tout[0]}). As an array it is one value, also when it is empty."
    )
    edit = edit_of(node.file, found) if not other_touts(node, situation)[1] else None
    return Explanation(RULE, *(node.site or (node.file, value.lineno)), cause, edit) if edit is not None else None


def _is_list(value: ast.expr, function: ast.AST, deep: int = 0) -> bool:
    """Whether an expression is a Python list of any length: not `[a, b]`, which may be two values."""
    if isinstance(value, (ast.List, ast.Tuple)) and not value.elts:
        return True
    if isinstance(value, ast.ListComp):
        return True
    if isinstance(value, ast.Call):
        return dotted(value.func) in ("list", "sorted") or dotted(value.func).rpartition(".")[2] in ("tolist", "split")
    if isinstance(value, ast.BinOp):
        sides = (value.left, value.right)
        return any(isinstance(one, ast.List) or _is_list(one, function, deep + 1) for one in sides) and deep < 4
    if isinstance(value, ast.Name) and deep < 4:
        made = assignments(function).get(value.id)
        empty = isinstance(made, ast.List) and not made.elts
        return empty or (made is not None and _is_list(made, function, deep + 1))
    return False


def _dtype(situation: Situation, node: Node, found: re.Match[str]) -> Explanation | None:
    position, got, wanted = int(found[1]), *(_WORDS.get(found[group], found[group]) for group in (2, 3))
    if wanted in HANDLES and node.tout[position : position + 1] == (wanted,):
        own = [one or "" for one in _seen_dtypes(situation, node, len(node.tout))]
        own[position] = got
        return _explanation(situation, node, *handle_touts.declared(situation, node, position, got, own))
    return _other_dtype(situation, node, position, got, wanted)


def _handle(situation: Situation, node: Node, _: re.Match[str]) -> Explanation | None:
    told = handle_touts.converted(situation, node)
    return _explanation(situation, node, *told) if told is not None else None


def _tensor(situation: Situation, node: Node, found: re.Match[str]) -> Explanation | None:
    if found[1] in HANDLES and (told := _handle(situation, node, found)) is not None:
        return told
    return _other_dtype(situation, node, _place(situation, node, found[1]), found[2], found[1])


def _convert(situation: Situation, node: Node, found: re.Match[str]) -> Explanation | None:
    value, wanted = found[1], _WORDS.get(found[2], found[2])
    if wanted in HANDLES and (told := _handle(situation, node, found)) is not None:
        return told
    got = "string" if value[:1] in "'\"b" else "float32" if "." in value or "e" in value else ""
    if not got:
        cause = f"{node.opening} returned {short(value, 40)}, which does not become {wanted} as Tout declares."
        return _explanation(situation, node, cause, None)
    return _other_dtype(situation, node, _place(situation, node, wanted), got, wanted, short(value, 30))


def _place(situation: Situation, node: Node, dtype: str) -> int:
    """The value that TensorFlow converted; else the first that is declared so and not cast to it yet."""
    seen = converted_place(situation.inner.__traceback__)
    if seen is not None and seen < len(node.tout) and node.tout[seen] == dtype:
        return seen
    function = node.function()
    value = return_value(function) if function is not None else None
    elements = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(node.tout) else []
    places = [place for place, one in enumerate(node.tout) if one == dtype]
    for place in places:
        one = elements[place] if elements else None
        cast = isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] == "cast" and len(one.args) == 2
        if not (cast and isinstance(one, ast.Call) and dotted(one.args[1]).rpartition(".")[2] == dtype):
            return place
    return places[0] if places else 0


def _other_dtype(
    situation: Situation, node: Node, position: int, got: str, wanted: str, value: str = ""
) -> Explanation | None:
    which = "" if len(node.tout) == 1 else f" as value {position + 1}"
    shown = f"{value} ({got})" if value else got
    cause = f"{node.opening} returned {shown}{which}, but Tout declares {wanted}. Nothing is converted between them: "
    cause += "the body has to return what Tout says."
    spot = site_spot(node, situation)
    tf = alias(spot, "tensorflow") if spot is not None else "tf"
    others = _others_fitted(situation, node)
    if others:
        said = cause.partition(". Nothing")[0]
        edit = _this_return(situation, node, spot, got, wanted) if len(node.tout) == 1 else None
        edit = edit or unlike_returns.cast(situation, node, spot, got, wanted)
        function = node.function()
        only = isinstance(function, ast.Lambda) or (function is not None and len(return_values(function)) == 1)
        edit = edit or (_cast(situation, node, position, wanted) if only and _kind(got) == _kind(wanted) else None)
        why = "it depends on what it is given" if only else "it depends on the way through the body"
        cause = f"{said}, as {others:,} {'call' if others == 1 else 'calls'} of it returned: {why}. Each has to."
        line = (edit.file, edit.first) if edit is not None else node.site or ("", 0)
        which = "what" if len(node.tout) == 1 else f"value {position + 1} of what"
        advice = "" if edit else f"Cast {which} each `return` of {node.called} gives to {wanted}, or declare {got}."
        return Explanation(RULE, *line, cause, edit, advice, "likely") if line[0] else None
    if got == "string" and wanted in _OF_TEXT and _holds_numbers(situation, wanted):
        edit = _cast(situation, node, position, wanted, of_text=True)
        if edit is not None:
            cause = cause.replace("Nothing is converted", "It is text of numbers, and nothing is converted")
            return Explanation(RULE, *(node.site or (edit.file, edit.first)), cause, edit)
    edit = unlike_returns.cast(situation, node, spot, got, wanted)
    if edit is not None:
        said = cause.partition(". Nothing")[0]
        cause = f"{said}, as another `return` of it gives. Nothing is converted between them: each has to."
        return Explanation(RULE, edit.file, edit.first, cause, edit, "", "likely")
    if _kind(got) == _kind(wanted):
        edit = _cast(situation, node, position, wanted)
        if edit is not None:
            return Explanation(RULE, *(node.site or (edit.file, edit.first)), cause, edit)
    tout = [f"{tf}.{name}" for name in node.tout]
    tout[position] = f"{tf}.{got}"
    call = node.call()
    listed = call is not None and isinstance(argument(call, 2, "Tout"), (ast.List, ast.Tuple))
    many = listed or len(tout) > 1
    advice = _elsewhere(situation, node, got, wanted) if _made_elsewhere(situation, node) else ""
    return _explanation(situation, node, cause, f"[{', '.join(tout)}]" if many else tout[0], advice=advice)


def _made_elsewhere(situation: Situation, node: Node) -> bool:
    """Whether the call of a node does not say its dtypes itself, or has said others for another node."""
    call = node.call()
    tout = argument(call, 2, "Tout") if call is not None else None
    written = tout is None or writes_dtypes(tout, site_spot(node, situation))
    return not written or other_touts(node, situation)[0]


def _elsewhere(situation: Situation, node: Node, got: str, wanted: str) -> str:
    """What to do where Tout's dtypes come from another line: that line, where only one of the file says the dtype."""
    call = node.call()
    tout = argument(call, 2, "Tout") if call is not None else None
    if tout is None or node.site is None:
        return ""
    said = short(node.source.text(tout), 40)
    places = {
        one.lineno for one in ast.walk(node.source.tree)
        if isinstance(one, (ast.Name, ast.Attribute)) and dotted(one).rpartition(".")[2] == wanted
    }  # fmt: skip
    back = f", or cast what {node.called} returns" if _kind(got) == _kind(wanted) else ""
    if len(places) == 1:
        line = places.pop()
        text = short(node.source.lines[line - 1].strip(), 60)
        return f"Tout is {said}, made elsewhere; line {line} alone says {wanted}: `{text}`. Say {got} there{back}."
    return f"Tout is {said}, made elsewhere: make it say {got} for this value{back}."


def _others_fitted(situation: Situation, node: Node) -> int:
    """How many calls of the body returned what Tout says."""
    same = (
        "JOIN node own ON own.id = ? WHERE n.file = own.file AND n.line = own.line AND n.body = own.body AND "
        "n.tout = own.tout"
    )
    if node.kind == "py_function":
        rows = situation.rows(
            f"SELECT count(*) FROM call c JOIN node n ON n.id = c.node {same} AND c.kind = 'forward' AND "
            "c.status = 'ok'", (node.id,)
        )  # fmt: skip
        return int(rows[0][0]) if rows else 0
    kinds = situation.rows(  # TensorFlow compares these after the call, which ends well
        f"SELECT r.calls, r.dtypes FROM returned r JOIN node n ON n.id = r.node {same}", (node.id,)
    )
    fitting = (calls for calls, own in kinds if all(one in (None, to) for one, to in zip(json.loads(own), node.tout)))
    return sum(fitting)


def _this_return(situation: Situation, node: Node, spot: Spot | None, got: str, wanted: str) -> Edit | None:
    """The one `return` of several that gives another dtype than the others, with a cast."""
    function = node.function()
    if not isinstance(function, ast.FunctionDef) or spot is None or node.file is None:
        return None
    if other_touts(node, situation)[1]:
        return None
    there = Spot(node.file, function.lineno, {}, spot.module, "")
    guess, source = Guess(there, assignments(function)), read(node.file)
    values = return_values(function)
    found = [one for one in values if (guess.of(one) or "").rpartition(".")[2] == got] or [
        one for one in values if isinstance(one, (ast.Constant, ast.UnaryOp)) and len(values) > 1
    ]
    if len(found) != 1:
        return None
    tf, np = alias(spot, "tensorflow"), alias(spot, "numpy")
    text = source.text(found[0])
    new = f"{tf}.cast({text}, {tf}.{wanted})" if node.kind == "py_function" else f"{np}.asarray({text}, {np}.{wanted})"
    placed = source.replaced({found[0]: new})
    return edit_of(node.file, placed)


def _kind(dtype: str) -> str:
    return dtype.rstrip("0123456789").removeprefix("u")


def _holds_numbers(situation: Situation, wanted: str) -> bool:
    """Whether the text that TensorFlow was converting is of numbers, each of it, as lines of a file are."""
    frames = converting(situation.inner.__traceback__)
    value: Any = frames[-1].f_locals.get("value") if frames else None
    array: Any = value.numpy() if hasattr(value, "numpy") else value
    texts: Any = array.ravel().tolist() if hasattr(array, "ravel") else array
    texts = texts if isinstance(texts, (list, tuple)) else [texts]
    try:
        for one in texts:
            (int if "int" in wanted else float)(one)
    except (ValueError, TypeError):
        return False
    return bool(texts) and all(isinstance(one, (str, bytes)) for one in texts)


def _cast(situation: Situation, node: Node, position: int, wanted: str, of_text: bool = False) -> Edit | None:
    """The body's `return`, with a cast; text as the numbers that it says."""
    function = node.function()
    value = return_value(function) if function is not None else None
    casts = {position: wanted}
    values: list[ast.expr] = []
    if isinstance(value, ast.Tuple) and len(value.elts) > position:
        values = value.elts
        for place, own in enumerate(_seen_dtypes(situation, node, len(values))):  # all that would fail one by one
            fits = place >= len(node.tout) or own is None or own == node.tout[place]
            if not fits and own is not None and _kind(own) == _kind(node.tout[place]) and not of_text:
                casts[place] = node.tout[place]
    elif len(node.tout) > 1:
        return None
    if value is None or node.file is None or other_touts(node, situation)[1]:
        return None
    source = read(node.file)
    module = next((spot for spot in situation.spots if spot.file == node.file), None)
    spot = module or site_spot(node, situation)
    if spot is None:
        return None
    tf, np = alias(spot, "tensorflow"), alias(spot, "numpy")
    in_ops, cast = node.kind == "py_function", f"{tf}.strings.to_number" if of_text else f"{tf}.cast"
    pieces: dict[ast.expr, str] = {}
    for place, dtype in casts.items():
        one = values[place] if values else value
        text = source.text(one)
        pieces[one] = f"{cast}({text}, {tf}.{dtype})" if in_ops else f"{np}.asarray({text}, {np}.{dtype})"
    found = source.replaced(pieces)
    return edit_of(node.file, found)


def _object(situation: Situation, node: Node, found: re.Match[str]) -> Explanation | None:
    if found[1] in ("int", "float", "bool") and "string" in node.tout and (dtype := _converted(situation)):
        return _other_dtype(situation, node, node.tout.index("string"), dtype, "string")
    if found[1] != "NoneType":
        return None  # structures.py tells of dicts
    cause = (
        f"{node.opening} returned None, or an array of Python objects with a None in it, but Tout "
        f"declares {', '.join(node.tout)}."
    )
    return _explanation(situation, node, cause, None, advice="Return numbers or strings: b'' or nan for missing ones.")


def _explanation(
    situation: Situation, node: Node, cause: str, tout: str | None, sure: bool = True, advice: str = "", names: int = 0
) -> Explanation | None:
    if node.site is None:
        return None
    call = node.call()
    edit = None
    given = argument(call, 2, "Tout") if call is not None else None
    if given is not None and tout is not None and not _made_elsewhere(situation, node):
        pieces = {given: tout}
        statement = node.source.parent(call) if call is not None else None
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(target, ast.Tuple) and len(target.elts) < names:  # `a, b = ...` has to take all of them
            pieces[target] = ", ".join([*map(node.source.text, target.elts), *["_"] * (names - len(target.elts))])
        elif isinstance(target, ast.Name) and names > 1 and _is_one(node, target.id):
            same = [place for place, own in enumerate(tout.strip("[]").split(", ")) if own.endswith(f".{node.tout[0]}")]
            listed = ["_"] * names
            listed[same[0] if len(same) == 1 else 0] = target.id
            pieces[target] = ", ".join(listed)
        found = node.source.replaced(pieces)
        edit = edit_of(node.site[0], found)
    if edit is None and not advice:
        advice = f"Make Tout say what {node.called} returns, or make {node.called} return what Tout says."
    return Explanation(
        RULE, *node.site, cause, edit, "" if edit is not None else advice, "measured" if sure else "likely"
    )


def _is_one(node: Node, name: str) -> bool:
    """Whether a name is used as one tensor wherever the file has it: not by its parts, and not as several."""
    for one in ast.walk(node.source.tree):
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load):
            parent = node.source.parent(one)
            apart = isinstance(parent, ast.Assign) and isinstance(parent.targets[0], (ast.Tuple, ast.List))
            if apart or isinstance(parent, (ast.Subscript, ast.Starred, ast.For, ast.comprehension)):
                return False
    return True
