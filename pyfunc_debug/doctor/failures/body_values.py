"""A body or a generator gets another kind of value than it expects: a tensor or bytes for text, an array for a tensor.

`py_function` gives its body eager tensors, `numpy_function` gives NumPy arrays, and bytes for text; so does
`Dataset.from_generator(args=...)` to its generator.
"""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.dtypes import assignments
from pyfunc_debug.doctor.failures.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.nodes import argument, failed_node, inputs_of
from pyfunc_debug.doctor.failures.situation import Situation, Spot
from pyfunc_debug.doctor.failures.source import Function, dotted, indent_of, parameters
from pyfunc_debug.doctor.failures.symbols import alias, calls, lookup

RULE = "body-input"
_NO_ATTRIBUTE = re.compile(r"'?(?:[\w.]*\.)?(\w+)'? object has no attribute '(\w+)'")
_NO_ASSIGNMENT = re.compile(r"'[\w.]*Tensor' object does not support item assignment")
_TENSOR_GIVEN = re.compile(r"not (?:'?[\w.]*\.)?EagerTensor|Tensor is unhashable|unhashable type: '?[\w.]*EagerTensor")
_BYTES = re.compile(
    r"bytes-like object is required, not 'str'|can't concat str to bytes|first arg must be bytes|strings and bytes"
    r"|string pattern on a bytes-like|not \"?bytes\"?|bytes found|must be str, not bytes|type 'bytes'"
    r"|expected .*str.*, got b'"
    r"|argument should be a bytes-like|str, not <class 'bytes'>|sep must be (?:None or )?a? ?string|'bytes' object"
)
_PLAIN_NUMBER = re.compile(
    r"an integer is required|cannot be interpreted as an integer|must be an? (?:int|float)|expected an? int"
    r"|not JSON serializable|integer argument expected|requires an integer|unhashable type: '(?:numpy\.)?ndarray'"
    r"|has no attribute '__(?:index|int|float)__'|but expected one of: "
    r"|argument should be an int|not (?:a )?(?:numpy\.)?(?:int64|int32|float32|float64|ndarray)\b"
)
_NOT_LISTED = re.compile(r"^b['\"].*['\"] is not in (?:list|tuple|deque)")
_ARITY = re.compile(r"(\w+)\(\) (?:missing (\d+) required positional arguments?: (.*)|takes (.*) but (\d+) w)")
_STRINGS = {
    "decode",
    "split",
    "strip",
    "lower",
    "upper",
    "replace",
    "startswith",
    "endswith",
    "join",
    "encode",
    "format",
}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body or a generator failed on what it was given."""
    if not situation.body:
        return None
    spot = situation.last
    for tell in (_array_method, _no_numpy, _assigns, _printed, _takes_text, _bytes, _number):
        found = tell(situation, spot) if spot is not None else None
        if found is not None:
            return found
    return _composite(situation, spot) or _arity(situation) or _array_wanted(situation)


_COMPOSITE = {"SparseTensor": "{tf}.sparse.to_dense({name})", "RaggedTensor": "{name}.to_tensor()"}


def _composite(situation: Situation, spot: Spot | None) -> Explanation | None:
    """A sparse or ragged tensor that the body has from inp, where its code takes plain ones."""
    node = failed_node(situation) if any(one in situation.message for one in _COMPOSITE) else None
    call, function = (node.call(), node.function()) if node is not None else (None, None)
    inp = argument(call, 1, "inp") if call is not None else None
    if node is None or spot is None or node.site is None or function is None or spot.function is not function:
        return None
    pieces: dict[ast.expr, str] = {}
    for name, one in zip(parameters(function), inp.elts if isinstance(inp, (ast.List, ast.Tuple)) else []):
        dense = _COMPOSITE.get(type(spot.variables.get(name)).__name__)
        if dense is not None:
            pieces[one] = dense.format(tf=alias(spot, "tensorflow"), name=node.source.text(one))
    found = node.source.replaced(pieces) if pieces else None
    if found is None:
        return None
    kind = next(one for one in _COMPOSITE if one in situation.message)
    return Explanation(
        RULE, spot.file, spot.line,
        f"inp gives {node.called} a {kind}, and this line takes plain tensors. Its dense form is one.",
        Edit(node.site[0], found[0], found[1], (found[2],)),
    )  # fmt: skip


def _array_wanted(situation: Situation) -> Explanation | None:
    """Code without TensorFlow that refuses an eager tensor in its own words: the body gets arrays instead."""
    refused = "EagerTensor" in situation.message and "to EagerTensor" not in situation.message
    node = failed_node(situation) if refused else None
    call, function = (node.call(), node.function()) if node is not None else (None, None)
    given, inp = (argument(call, 0, "func"), argument(call, 1, "inp")) if call is not None else (None, None)
    if node is None or node.site is None or node.kind != "py_function" or function is None or given is None:
        return None
    names = parameters(function)
    if not isinstance(inp, (ast.List, ast.Tuple)) or len(names) != len(inp.elts) or isinstance(given, ast.Lambda):
        return None
    if any(dotted(one.func).startswith("tf.") for one in calls(function)):  # it may need tensors, or a gradient
        return None
    dtypes = inputs_of(node, situation)
    texts = [f"{one}.numpy().decode()" if _is_string(dtypes.get(one)) else f"{one}.numpy()" for one in names]
    found = node.source.replaced({given: f"lambda {', '.join(names)}: {node.source.text(given)}({', '.join(texts)})"})
    return Explanation(
        RULE, *node.site,
        f"a py_function gives {node.called} eager tensors, and its code takes arrays. `.numpy()` gives their values.",
        None if found is None else Edit(node.site[0], found[0], found[1], (found[2],)),
        "Use tf.numpy_function in its place." if found is None else "", "likely",
    )  # fmt: skip


def _is_string(value: object) -> bool:
    return getattr(getattr(value, "dtype", None), "name", "") == "string"


def _variable(spot: Spot, name: str, kind: str) -> bool:
    return name in spot.variables and type(spot.variables[name]).__name__ == kind


def _in_place(spot: Spot, pieces: dict[ast.expr, str]) -> Edit | None:
    if not pieces:
        return None
    found = spot.source.replaced(pieces)
    return None if found is None else Edit(spot.file, found[0], found[1], (found[2],))


def _as_python(spot: Spot, name: str) -> str:
    """An eager tensor's value: text for text."""
    dtype = getattr(getattr(spot.variables[name], "dtype", None), "name", "")
    return f"{name}.numpy().decode()" if dtype == "string" else f"{name}.numpy()"


def _array_method(situation: Situation, spot: Spot) -> Explanation | None:
    """`path.decode()` and `image.astype(...)` of an eager tensor."""
    match = _NO_ATTRIBUTE.search(situation.message)
    statement = spot.source.statement(spot.line)
    if match is None or match[1] != "EagerTensor" or statement is None:
        return None
    pieces: dict[ast.expr, str] = {}
    for one in ast.walk(statement):
        if isinstance(one, ast.Attribute) and one.attr == match[2] and isinstance(one.value, ast.Name):
            name = one.value.id
            if _variable(spot, name, "EagerTensor"):
                text = match[2] in _STRINGS and match[2] != "decode"
                pieces[one.value] = f"{name}.numpy()" + (".decode()" if text else "")
    edit = _in_place(spot, pieces)
    if edit is None:
        return None
    name = next(iter(pieces)).id  # type: ignore[attr-defined]
    return Explanation(
        RULE, spot.file, spot.line,
        f"a py_function gives its body eager tensors, and {name} is one: it has no `.{match[2]}`. `.numpy()` gives its "
        f"value, {'bytes for text' if match[2] in _STRINGS else 'a NumPy array'}.",
        edit,
    )  # fmt: skip


def _no_numpy(situation: Situation, spot: Spot) -> Explanation | None:
    """`.numpy()` in the body of a numpy_function, which is given arrays."""
    match = _NO_ATTRIBUTE.search(situation.message)
    statement = spot.source.statement(spot.line)
    if match is None or match[2] != "numpy" or match[1] == "EagerTensor" or statement is None:
        return None
    function = spot.function
    calls = [
        one
        for one in ast.walk(statement)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "numpy"
    ]
    pieces: dict[ast.expr, str] = {one: spot.source.text(one.func.value) for one in calls}  # type: ignore[attr-defined]
    edit = _in_place(spot, pieces)
    if edit is None or function is None:
        return None
    given = {"bytes": "bytes for text", "ndarray": "NumPy arrays"}.get(match[1], f"NumPy values ({match[1]})")
    return Explanation(
        RULE, spot.file, spot.line,
        f"a numpy_function gives its body {given}, not tensors: there is no `.numpy()`. Only a py_function gives "
        "eager tensors.",
        edit,
    )  # fmt: skip


def _assigns(situation: Situation, spot: Spot) -> Explanation | None:
    """`image[1:3] = 0` of an eager tensor."""
    statement = spot.source.statement(spot.line)
    if not _NO_ASSIGNMENT.search(situation.message) or statement is None:
        return None
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for target in targets:
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if isinstance(target, ast.Name) and _variable(spot, target.id, "EagerTensor"):
            blanks = indent_of(spot.source.lines[statement.lineno - 1])
            line = f"{blanks}{target.id} = {target.id}.numpy().copy()"
            return Explanation(
                RULE, spot.file, spot.line,
                f"a py_function gives its body eager tensors, and {target.id} is one: a tensor cannot be changed. A "
                "copy as a NumPy array can, and may be returned.",
                Edit(spot.file, statement.lineno, statement.lineno - 1, (line,)),
            )  # fmt: skip
    return None


def _printed(situation: Situation, spot: Spot) -> Explanation | None:
    """`str(path)` of an eager tensor: the text that a tensor is printed as."""
    statement = spot.source.statement(spot.line)
    if "tf.Tensor(b" not in f"{situation.message}{situation.error}" or statement is None:
        return None
    function = spot.function
    pieces: dict[ast.expr, str] = {
        one: _as_python(spot, one.args[0].id)
        for one in ast.walk(statement if function is None else function)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "str" and len(one.args) == 1
        and isinstance(one.args[0], ast.Name) and _variable(spot, one.args[0].id, "EagerTensor")
    }  # fmt: skip
    first = min((one.lineno for one in pieces), default=0)
    pieces = {one: text for one, text in pieces.items() if one.lineno == first}
    edit = _in_place(spot, pieces)
    if edit is None:
        return None
    name = next(iter(pieces)).args[0].id  # type: ignore[attr-defined]
    return Explanation(
        RULE, spot.file, edit.first,
        f"a py_function gives its body eager tensors, and str({name}) is how one prints, \"tf.Tensor(b'...')\". "
        "`.numpy()` gives its value, bytes for text.",
        edit,
    )  # fmt: skip


def _takes_text(situation: Situation, spot: Spot) -> Explanation | None:
    """An eager tensor given to what takes text, or a key."""
    statement = spot.source.statement(spot.line)
    if not _TENSOR_GIVEN.search(situation.message) or statement is None:
        return None
    hashed = "unhashable" in situation.message  # by a part of it, too: `set(tuple(words[:2]))`
    pieces: dict[ast.expr, str] = {}
    for one in ast.walk(statement):
        inside = one.args if isinstance(one, ast.Call) else [one.slice] if isinstance(one, ast.Subscript) else []
        for part in [one] if hashed else inside:
            if isinstance(part, ast.Name) and _variable(spot, part.id, "EagerTensor"):
                pieces[part] = _as_python(spot, part.id)
    edit = _in_place(spot, pieces)
    if edit is None:
        return None
    name = next(iter(pieces)).id  # type: ignore[attr-defined]
    return Explanation(
        RULE, spot.file, spot.line,
        f"a py_function gives its body eager tensors, and {name} is one: this line takes Python's own values. "
        "`.numpy()` gives its value, bytes for text.",
        edit,
    )  # fmt: skip


def _bytes(situation: Situation, spot: Spot) -> Explanation | None:
    """Text came as bytes, and met Python's text."""
    missing = situation.kind == "KeyError" and situation.message[:2] in ("b'", 'b"')
    listed = situation.kind == "ValueError" and _NOT_LISTED.search(situation.message) is not None
    if not missing and not listed and not _BYTES.search(situation.message):
        return None
    if missing or listed:
        found = _looked_up(spot)
        if found is not None:
            return found
    function = spot.function
    if function is None:
        return None
    handed = _handed_on(situation, spot)
    if handed is not None:
        return handed
    given = [name for name in parameters(function) if isinstance(spot.variables.get(name), bytes)]
    if isinstance(function, ast.Lambda) or not given or _assigned(function, given):
        return _decoded(spot, function)
    first = _first_statement(function)
    blanks = indent_of(spot.source.lines[first - 1])
    lines = tuple(f"{blanks}{name} = {name}.decode()" for name in given[:2])
    who = "Dataset.from_generator gives its generator" if _is_generator(function) else "a numpy_function gives its body"
    return Explanation(
        RULE, spot.file, spot.line,
        f"{who} bytes for text: {given[0]} is {str(spot.variables[given[0]])[:30]}. Text and bytes do not mix.",
        Edit(spot.file, first, first - 1, lines),
    )  # fmt: skip


def _handed_on(situation: Situation, inner: Spot) -> Explanation | None:
    """`imread(paths[0])` of an array of strings: its parts are bytes."""
    for spot in (inner, situation.outer(inner)):
        statement = spot.source.statement(spot.line) if spot is not None else None
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
        edit = _in_place(spot, pieces)
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
    statement = spot.source.statement(spot.line)
    pieces: dict[ast.expr, str] = {}
    for one in ast.walk(function):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "numpy":
            parent, owner = spot.source.parent(one), one.func.value
            kept = parent.targets[0] if isinstance(parent, ast.Assign) else None
            now = isinstance(kept, ast.Name) and isinstance(spot.variables.get(kept.id), bytes)
            plain = isinstance(owner, ast.Name) and _is_text(spot, owner.id) and not isinstance(parent, ast.Attribute)
            if now or plain:
                pieces[one] = f"{spot.source.text(one)}.decode()"
    if isinstance(function, ast.Lambda) and not pieces:
        found = [one for one in ast.walk(function.body) if isinstance(one, ast.Name)]
        pieces = {one: f"{one.id}.decode()" for one in found if isinstance(spot.variables.get(one.id), bytes)}
    if not pieces or statement is None or len({one.lineno for one in pieces}) > 1:
        return None
    edit = _in_place(spot, pieces)
    if edit is None:
        return None
    first = spot.source.text(next(iter(pieces)))
    return Explanation(
        RULE, spot.file, spot.line,
        f"a body gets its strings as bytes, and {first} is bytes here. Text and bytes do not mix, and are never equal.",
        edit,
    )  # fmt: skip


def _is_text(spot: Spot, name: str) -> bool:
    """Whether a variable is an eager tensor that is one string."""
    dtype = getattr(getattr(spot.variables.get(name), "dtype", None), "name", "")
    return _variable(spot, name, "EagerTensor") and dtype == "string" and _is_number(spot.variables[name])


def _looked_up(spot: Spot) -> Explanation | None:
    """Bytes looked up among texts, in a function that uses them as bytes elsewhere: only here they become text."""
    statement, function = spot.source.statement(spot.line), spot.function
    if statement is None or function is None:
        return None
    if not any(isinstance(one, ast.Constant) and isinstance(one.value, bytes) for one in ast.walk(function)):
        return None
    keys = [one.args[0] for one in calls(statement) if dotted(one.func).endswith(".index") and one.args]
    if not keys:
        plain = (ast.Slice, ast.UnaryOp, ast.Constant)
        found = [one.slice for one in ast.walk(statement) if isinstance(one, ast.Subscript)]
        keys = [one for one in found if not isinstance(one, plain)]
    edit = _in_place(spot, {keys[0]: f"{spot.source.text(keys[0])}.decode()"}) if len(keys) == 1 else None
    if edit is None:
        return None
    return Explanation(
        RULE, spot.file, spot.line,
        f"a body gets its strings as bytes, and {spot.source.text(keys[0])} is bytes. Text and bytes are never "
        "equal, so that it is not found among texts.",
        edit,
    )  # fmt: skip


def _number(situation: Situation, spot: Spot) -> Explanation | None:
    """A number of NumPy's, or a tensor, where only one of Python's own will do."""
    statement, function = spot.source.statement(spot.line), spot.function
    if statement is None or function is None or isinstance(function, ast.Lambda):
        return None
    if situation.kind not in ("TypeError", "AttributeError") or not _PLAIN_NUMBER.search(situation.message):
        return None
    read = {one.id for one in ast.walk(statement) if isinstance(one, ast.Name)}
    given = [name for name in parameters(function) if name in read and _is_number(spot.variables.get(name))]
    if not given:
        return None
    first = _first_statement(function)
    blanks, name = indent_of(spot.source.lines[first - 1]), given[0]
    value = spot.variables[name]
    eager = type(value).__name__ == "EagerTensor"
    lines = tuple(f"{blanks}{one} = {_own_number(spot.variables[one], one)}" for one in given[:2])
    what = "an eager tensor" if eager else f"a {type(value).__module__}.{type(value).__name__}"
    who = "Dataset.from_generator gives its generator" if _is_generator(function) else "a py_function gives its body"
    if not eager and not _is_generator(function):
        who = "a numpy_function gives its body"
    return Explanation(
        RULE, spot.file, spot.line,
        f"{who} {'tensors' if eager else 'NumPy values'}: {name} is {what}, and this line takes Python's own numbers. "
        f"`{lines[0].partition(' = ')[2]}` is one.",
        Edit(spot.file, first, first - 1, lines), "", "likely",
    )  # fmt: skip


def _own_number(value: object, name: str) -> str:
    """Python's own number for one of NumPy's or a tensor; an int for a bool, which protocol buffers refuse."""
    array = f"{name}.numpy()" if type(value).__name__ == "EagerTensor" else name
    return f"int({array})" if getattr(getattr(value, "dtype", None), "name", "") == "bool" else f"{array}.item()"


def _is_number(value: object) -> bool:
    """Whether it is one number of NumPy's, or a tensor that is one."""
    kind = type(value)
    if kind.__name__ == "EagerTensor":
        return getattr(getattr(value, "shape", None), "rank", None) == 0
    return kind.__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item")


def _is_generator(function: Function) -> bool:
    return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(function))


def _first_statement(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
    return body[1 if documented else 0].lineno


def _arity(situation: Situation) -> Explanation | None:
    """`inp` has more or fewer values than the body takes."""
    match = _ARITY.search(situation.message)
    node = failed_node(situation) if match is not None and situation.kind == "TypeError" else None
    function, call = (node.function(), node.call()) if node is not None else (None, None)
    if match is None or node is None or node.site is None or function is None or call is None:
        return None
    if isinstance(function, ast.Lambda) or match[1] != function.name:
        return None
    given = argument(call, 1, "inp")
    takes = parameters(function)
    if not isinstance(given, (ast.List, ast.Tuple)):
        return None
    source, count = node.source, len(given.elts)
    if count == len(takes):
        return None
    texts = [source.text(one) for one in given.elts]
    new = [*texts, *takes[count:]] if count < len(takes) else texts[: len(takes)]
    found = source.replaced({given: f"[{', '.join(new)}]"})
    cause = (
        f"{node.called} takes {len(takes)} value{'s' if len(takes) != 1 else ''} ({', '.join(takes)}), but inp gives "
        f"it {count} ({', '.join(texts)}). A body gets one argument for each value in inp."
    )
    edit = None if found is None else Edit(node.site[0], found[0], found[1], (found[2],))
    return Explanation(
        RULE, *node.site, cause, edit, "" if edit else "Give inp one value for each parameter.", "likely"
    )
