"""Text that came as bytes, or as a tensor of bytes, where Python takes its own."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from pyfunc_debug.doctor.failures.bodies.body_numbers import is_number
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.body_edits import (
    RULE,
    first_statement,
    holds,
    in_place,
    is_generator,
    of_a_tensor,
    of_names,
    value_of,
)
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.nodes import op_of_arrays
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, indent_of, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_ndarray, lookup, root_is

_TENSOR_GIVEN = re.compile(
    r"not (?:'?[\w.]*\.)?EagerTensor|Tensor is unhashable|(?:unhashable type: |type: <class )'?[\w.]*EagerTensor"
    r"|^tf\.Tensor\(b'"
)
_NAMED_FILE = re.compile(
    r"\b(?:file|filename|filepath|path|paths|string|str|bytes)\b|'(?:read|seek)'|path-like|EagerTensor|std::string"
)
"""What readers of files say of a tensor: OpenCV, PIL, SciPy, pandas, SimpleITK, pydicom."""
_OF_THE_MACHINE = ("FileNotFoundError", "OSError", "PermissionError", "IsADirectoryError", "UnicodeDecodeError")
"""The file was looked for, or read."""
_ANY_VALUE = {"print", "isinstance", "type", "len", "repr", "str", "id", "hash", "getattr", "hasattr"}
_BYTES = re.compile(
    r"bytes-like object is required, not 'str'|can't concat str to bytes|first arg must be bytes|strings and bytes"
    r"|string pattern on a bytes-like|not \"?bytes\"?|bytes found|must be str, not bytes|type 'bytes'"
    r"|expected .*str.*, got b'"
    r"|argument should be a bytes-like|(?:str, not|got) <class 'bytes'>|sep must be (?:None or )?a? ?string"
    r"|'bytes' object"
)
_IN_ARRAY = re.compile(r"ndarray|path-like|filename|must be str|should be string|expected str|a string")
_COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
_PARTS = {"split", "rsplit", "splitlines", "strip", "lstrip", "rstrip", "lower", "upper", "partition", "rpartition"}
_QUOTED = re.compile(r"b'(?:[^'\\]|\\.)*'|b\"(?:[^\"\\]|\\.)*\"")
_NOT_LISTED = re.compile(r"^b['\"].*['\"] is not in (?:list|tuple|deque)")


def printed(situation: Situation, spot: Spot) -> Explanation | None:
    """`str(path)` of an eager tensor: the text that a tensor is printed as."""
    statement = spot.statement
    if "tf.Tensor(b" not in f"{situation.message}{situation.error}" or statement is None:
        return None
    function = spot.function
    pieces: dict[ast.expr, str] = {
        one: value_of(spot, one.args[0].id)
        for one in ast.walk(statement if function is None else function)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "str" and len(one.args) == 1
        and isinstance(one.args[0], ast.Name) and holds(spot, one.args[0].id, "EagerTensor")
    }  # fmt: skip
    first = min((one.lineno for one in pieces), default=0)
    pieces = {one: text for one, text in pieces.items() if one.lineno == first}
    edit = in_place(spot, pieces)
    if edit is None:
        return None
    name = next(iter(pieces)).args[0].id  # type: ignore[attr-defined]
    return Explanation(
        RULE, spot.file, edit.first,
        f"a py_function gives its body eager tensors, and str({name}) is how one prints, \"tf.Tensor(b'...')\". "
        "`.numpy()` gives its value, bytes for text.",
        edit,
    )  # fmt: skip


def takes_text(situation: Situation, spot: Spot) -> Explanation | None:
    """An eager tensor given to what takes text, or a key."""
    statement = spot.statement
    file_wanted = not _TENSOR_GIVEN.search(situation.message)
    if statement is None or (
        file_wanted and (situation.kind in _OF_THE_MACHINE or not _NAMED_FILE.search(situation.message))
    ):
        return None
    takes_bytes = "expected bytes" in situation.message  # `Example.ParseFromString(record)`
    hashed = "unhashable" in situation.message  # by a part of it, too: `set(tuple(words[:2]))`
    pieces: dict[ast.expr, str] = {}
    header = wrapping.value_of(statement) if hasattr(statement, "body") else None
    whole: ast.AST = spot.function.body if isinstance(spot.function, ast.Lambda) else header or statement
    keys = [
        one.slice if isinstance(one, ast.Subscript) else one.left for one in ast.walk(whole)
        if isinstance(one, ast.Subscript)
        or (isinstance(one, ast.Compare) and isinstance(one.ops[0], (ast.In, ast.NotIn)))
    ]  # fmt: skip
    if hashed and any(isinstance(one, ast.Name) and _is_tensor(one, spot) for one in keys):
        whole = ast.Tuple(keys, ast.Load())
    for one in ast.walk(whole):
        key = one.slice if isinstance(one, ast.Subscript) else None
        inside = [] if key is None else key.elts if isinstance(key, ast.Tuple) else [key]
        if isinstance(one, ast.Call) and not (file_wanted and _takes_tensors(one, spot)):
            inside = [*one.args, *(given.value for given in one.keywords)]
        for part in [one] if hashed else inside:
            if isinstance(part, ast.Name) and _is_tensor(part, spot) and (_is_text(spot, part.id) or not file_wanted):
                pieces[part] = f"{part.id}.numpy()" if takes_bytes else value_of(spot, part.id)
    return of_a_tensor(spot, pieces, "this line takes Python's own values. `.numpy()` gives its value, bytes for text.")


def _takes_tensors(call: ast.Call, spot: Spot) -> bool:
    """Whether a call is one of an op, or takes whatever it is given."""
    name = dotted(call.func)
    return name in _ANY_VALUE or (root_is(call.func, spot, "tensorflow") and ".keras." not in f".{name}.")


def _is_tensor(node: ast.Name, spot: Spot) -> bool:
    """Whether a name that is read holds an eager tensor whose value is not asked for yet."""
    asked = spot.source.parent(node)
    value = isinstance(asked, ast.Attribute) and asked.attr == "numpy"
    return isinstance(node.ctx, ast.Load) and not value and holds(spot, node.id, "EagerTensor")


def text_in_array(situation: Situation, inner: Spot) -> Explanation | None:
    """`np.array(path)` of one string: an array of no dimension, which is neither text nor bytes."""
    if not _IN_ARRAY.search(situation.message):
        return None
    spots = [spot for spot in (inner, situation.outer(inner)) if spot is not None]
    return next((found for spot in reversed(spots) if (found := _in_line(spot)) is not None), None)


def _in_line(spot: Spot) -> Explanation | None:
    """The line's arrays of one string as text."""
    statement = spot.statement
    if statement is None:
        return None
    pieces: dict[ast.expr, str] = {}
    as_text = False
    for one in ast.walk(statement):
        inside = one.args if isinstance(one, ast.Call) else []
        for part in inside:
            if isinstance(part, ast.Name) and (held := _one_string(spot.variables.get(part.id))) is not None:
                pieces[part] = f"{part.id}.item(){'.decode()' if isinstance(held, bytes) else ''}"
                as_text = isinstance(held, str)
        owner = one.value if isinstance(one, ast.Attribute) and one.attr not in ("item", "tolist") else None
        held = _one_string(spot.value(owner.id)) if isinstance(owner, ast.Name) else None
        if isinstance(owner, ast.Name) and isinstance(one, ast.Attribute) and held is not None:
            as_text = isinstance(held, str)
            if as_text and one.attr == "decode":  # outside of graphs a numpy_function gives Python's own text
                return None
            pieces[owner] = f"{owner.id}.item(){'' if one.attr == 'decode' or as_text else '.decode()'}"
    kind = "" if as_text else ", as bytes"
    said = f"NAME is a NumPy array that holds one string{kind}, and this line takes text. `.item()` gives it."
    return of_names(spot, pieces, said)


def _one_string(value: object) -> bytes | str | None:
    """What an array of no dimension holds, if that is bytes or text."""
    if not is_ndarray(value) or getattr(value, "ndim", 1) != 0:
        return None
    held = value.item()  # type: ignore[attr-defined]
    return held if isinstance(held, (bytes, str)) else None


def bytes_given(situation: Situation, spot: Spot) -> Explanation | None:
    """Text came as bytes, and met Python's text."""
    missing = situation.kind == "KeyError" and situation.message[:2] in ("b'", 'b"')
    listed = situation.kind == "ValueError" and _NOT_LISTED.search(situation.message) is not None
    if not missing and not listed and not _BYTES.search(situation.message):
        return None
    spot = _of_comprehension(situation, spot)
    function = spot.function
    if function is None or ((missing or listed) and _is_missing(situation, spot)):
        return None
    as_bytes = any(isinstance(one, ast.Constant) and isinstance(one.value, bytes) for one in ast.walk(function))
    looked_up = _looked_up(spot) if missing or listed else None
    if looked_up is not None and as_bytes:  # elsewhere the function uses them as bytes: only here they become text
        return looked_up
    handed = _of_tensors(situation, spot) or _handed_on(situation, spot)
    if handed is not None:
        return handed
    given = [name for name in parameters(function) if isinstance(spot.variables.get(name), bytes)]
    if isinstance(function, ast.Lambda) or not given or _assigned(function, given):
        return _decoded(spot, function) or looked_up
    first = first_statement(function)
    blanks = indent_of(spot.source.lines[first - 1])
    lines = tuple(f"{blanks}{name} = {name}.decode()" for name in given[:2])
    who = "Dataset.from_generator gives its generator" if is_generator(function) else ""
    who = who or f"{op_of_arrays(situation)} gives its body"
    return Explanation(
        RULE, spot.file, spot.line,
        f"{who} bytes for text: {given[0]} is {str(spot.variables[given[0]])[:30]}. Text and bytes do not mix.",
        Edit(spot.file, first, first - 1, lines),
    )  # fmt: skip


def _of_tensors(situation: Situation, spot: Spot) -> Explanation | None:
    """Bytes that a body gives to a method of TensorFlow's which takes tensors only, as a table's `lookup`."""
    statement = spot.statement
    asked = re.search(r"'bytes' object has no attribute '(dtype|shape|get_shape)'", situation.message)
    if asked is None or statement is None:
        return None
    if any(isinstance(one, ast.Attribute) and one.attr == asked[1] for one in ast.walk(statement)):
        return None
    given = [
        one for call in calls(statement) for one in call.args
        if isinstance(one, ast.Name) and isinstance(spot.variables.get(one.id), bytes)
    ]  # fmt: skip
    tf = alias(spot, "tensorflow")
    edit = in_place(spot, {one: f"{tf}.constant({one.id})" for one in given})
    if edit is None:
        return None
    cause = (
        f"{op_of_arrays(situation)} gives its body bytes for text, and this line's call takes tensors: "
        f"`{tf}.constant({given[0].id})` is one."
    )
    return Explanation(RULE, spot.file, spot.line, cause, edit)


def _of_comprehension(situation: Situation, spot: Spot) -> Spot:
    """The frame of the function, with the line of its comprehension that failed: to Python 3.11 that is a frame."""
    outer = situation.outer(spot) if spot.code in _COMPREHENSIONS and spot in situation.spots else None
    return spot if outer is None or outer.file != spot.file else replace(outer, line=spot.line)


def _handed_on(situation: Situation, inner: Spot) -> Explanation | None:
    """`imread(paths[0])` of an array of strings: its parts are bytes."""
    for spot in (inner, situation.outer(inner)):
        statement = spot.statement if spot is not None else None
        if spot is None or statement is None:
            continue
        pieces: dict[ast.expr, str] = {}
        for call in calls(statement):
            for one in call.args:
                if not isinstance(one, ast.Subscript) or not isinstance(one.slice, ast.Constant):
                    continue
                part, owner = one.slice.value, lookup(one.value, spot)
                array = type(owner).__module__ == "numpy" and getattr(owner, "ndim", 0) == 1
                if array and type(part) is int and -len(owner) <= part < len(owner) and isinstance(owner[part], bytes):
                    pieces[one] = f"{spot.source.text(one)}.decode()"
        edit = in_place(spot, pieces)
        if edit is not None:
            first = spot.source.text(next(iter(pieces)))
            return Explanation(
                RULE, spot.file, spot.line,
                f"a body gets its strings as bytes, and {first} is bytes here: its code takes text.", edit,
            )  # fmt: skip
    return None


def _assigned(function: ast.FunctionDef | ast.AsyncFunctionDef, given: list[str]) -> bool:
    """Whether parameters have a value by now that they did not come with: `path = path.numpy()`."""
    return any(name in assignments(function) for name in given)


def _decoded(spot: Spot, function: Function) -> Explanation | None:
    """`path.numpy()` of text, and bytes in a lambda, where they are used."""
    statement = spot.statement
    pieces: dict[ast.expr, str] = {}
    for one in ast.walk(function):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "numpy":
            parent, owner = spot.source.parent(one), one.func.value
            kept = parent.targets[0] if isinstance(parent, ast.Assign) else None
            now = isinstance(kept, ast.Name) and isinstance(spot.variables.get(kept.id), bytes)
            plain = isinstance(owner, ast.Name) and _is_text(spot, owner.id)
            if now or (plain and (not isinstance(parent, ast.Attribute) or _gives_parts(spot, parent))):
                pieces[one] = f"{spot.source.text(one)}.decode()"
    if isinstance(function, ast.Lambda) and not pieces:
        found = [one for one in ast.walk(function.body) if isinstance(one, ast.Name)]
        pieces = {one: f"{one.id}.decode()" for one in found if isinstance(spot.variables.get(one.id), bytes)}
    if not pieces or statement is None or len({one.lineno for one in pieces}) > 1:
        return None
    edit = in_place(spot, pieces)
    if edit is None:
        return None
    first = spot.source.text(next(iter(pieces)))
    return Explanation(
        RULE, spot.file, spot.line,
        f"a body gets its strings as bytes, and {first} is bytes here. Text and bytes do not mix, and are never equal.",
        edit,
    )  # fmt: skip


def _gives_parts(spot: Spot, method: ast.Attribute) -> bool:
    """Whether text has a method as bytes have, which gives its parts: `.split()`, not `.split(b",")`."""
    call = spot.source.parent(method)
    called = isinstance(call, ast.Call) and call.func is method
    given = [*call.args, *(one.value for one in call.keywords)] if isinstance(call, ast.Call) and called else []
    constants = [one.value for one in given if isinstance(one, ast.Constant)]
    whole = len(constants) == len(given) and not any(isinstance(one, bytes) for one in constants)
    return called and method.attr in _PARTS and whole


def _is_text(spot: Spot, name: str) -> bool:
    """Whether a variable is an eager tensor that is one string."""
    dtype = getattr(getattr(spot.variables.get(name), "dtype", None), "name", "")
    return holds(spot, name, "EagerTensor") and dtype == "string" and is_number(spot.variables[name])


def _is_missing(situation: Situation, spot: Spot) -> bool:
    """Whether what was looked up as bytes is not there as text either, as far as a dict or a list is known."""
    found, statement = _QUOTED.match(situation.message), spot.statement
    if found is None or statement is None:
        return False
    text = ast.literal_eval(found[0]).decode("utf-8", "replace")
    parts = [one.value for one in ast.walk(statement) if isinstance(one, (ast.Subscript, ast.Attribute))]
    owners = [owner for one in parts if type(owner := lookup(one, spot)) in (dict, list, tuple)]
    return bool(owners) and not any(text == one for owner in owners for one in owner if type(one) is str)


def _looked_up(spot: Spot) -> Explanation | None:
    """Bytes looked up among texts."""
    statement = spot.statement
    if statement is None:
        return None
    keys = [one.args[0] for one in calls(statement) if dotted(one.func).endswith(".index") and one.args]
    if not keys:
        plain = (ast.Slice, ast.UnaryOp, ast.Constant)
        found = [one.slice for one in ast.walk(statement) if isinstance(one, ast.Subscript)]
        keys = [one for one in found if not isinstance(one, plain)]
    edit = in_place(spot, {keys[0]: f"{spot.source.text(keys[0])}.decode()"}) if len(keys) == 1 else None
    if edit is None:
        return None
    return Explanation(
        RULE, spot.file, spot.line,
        f"a body gets its strings as bytes, and {spot.source.text(keys[0])} is bytes. Text and bytes are never "
        "equal, so that it is not found among texts.",
        edit,
    )  # fmt: skip
