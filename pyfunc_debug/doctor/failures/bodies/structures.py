"""Structures where py_function takes a flat list: dicts, tuples, objects, ragged and sparse tensors, a bare tensor."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from pyfunc_debug.doctor.failures.bodies import kept_inputs, sparse_parts, uncalled_results
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import Guess, assignments
from pyfunc_debug.doctor.failures.reading.nodes import (
    Node,
    argument,
    body_spot,
    failed_node,
    other_touts,
    py_call,
    return_value,
    site_spot,
    writes_dtypes,
)
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names, read, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_symbolic
from pyfunc_debug.events import NotConverted

RULE = "structure"
_NOT_A_TENSOR = "is not a Tensor."
_INPUT = re.compile(
    r"NOT CONVERTIBLE TO TENSOR|Expected any non-tensor type|Failed to convert elements|unsupported type|to a Tensor"
    r"|[Ii]terating over a symbolic|as a Python `?bool`?|must be a list|has no len|Cannot iterate over a scalar"
    r"|[Aa]ttempt to convert a value|out of range|not iterable|None values not supported"
)
_NO_TENSOR = re.compile(r"NOT CONVERTIBLE TO TENSOR|unsupported type|convert a value \(|None values not supported")
_TOUT = re.compile(r"Cannot convert the argument `?type_value`?: (.*?) to a TensorFlow DType", re.DOTALL)
_OUTPUT = re.compile(
    r"with an unsupported type \(<class '(?P<full>[\w.<>]+)'>\)|Unsupported object type (?P<short>[\w.]+)"
    r"|Unsupported numpy type: NPY_(?P<numpy>DATETIME)"
)
_PASSES = frozenset(
    ("set", "frozenset", "generator", "map", "filter", "zip", "range", "dict_values", "dict_keys", "deque")
)
_SPARSE = re.compile(r"(?:csr|csc|coo|lil|dok|bsr|dia)_(?:matrix|array)")
"""SciPy's sparse matrices."""
_TIMES = frozenset(("datetime", "date", "Timestamp", "datetime64", "DATETIME"))


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a structure is why the program failed."""
    if situation.body or situation.kind in ("InternalError", "UnimplementedError", "InvalidArgumentError"):
        return _returned(situation)
    spot = situation.last
    if spot is None or situation.kind not in (
        "TypeError",
        "ValueError",
        "OperatorNotAllowedInGraphError",
        "NotImplementedError",
        "AttributeError",
    ):
        return None
    call = py_call(spot.source, spot.line)
    if call is None:
        return _list_of_one(situation, spot)
    if _TOUT.search(situation.message):
        return _text(spot, call) or _shapes(spot, call) or _tout(spot, call)
    return _given(situation, spot, call) if _INPUT.search(situation.message) else None


def _text(spot: Spot, call: ast.Call) -> Explanation | None:
    """`Tout=str`: TensorFlow takes float, int and bool of Python's, and has a dtype of its own for text."""
    tout = argument(call, 2, "Tout")
    pieces: dict[ast.expr, str] = {
        one: f"{alias(spot, 'tensorflow')}.string" for one in (ast.walk(tout) if tout is not None else ())
        if isinstance(one, ast.Name) and one.id in ("str", "bytes")
    }  # fmt: skip
    if not pieces:
        return None
    op, name = dotted(call.func).rpartition(".")[2], next(one.id for one in pieces if isinstance(one, ast.Name))
    cause = f"Tout={name} is a type of Python's: {op} declares text as {next(iter(pieces.values()))}."
    return _edited(spot, call, pieces, cause)


def _shapes(spot: Spot, call: ast.Call) -> Explanation | None:
    """`Tout=[tf.float32, [8]]`, or a list of such pairs: shapes beside dtypes."""
    tout, op, tf = argument(call, 2, "Tout"), dotted(call.func).rpartition(".")[2], alias(spot, "tensorflow")
    own = _pair(tout, spot)
    pairs = [own] if own else [_pair(one, spot) for one in tout.elts] if isinstance(tout, (ast.List, ast.Tuple)) else []
    found = [one for one in pairs if one is not None]
    if tout is None or not found or len(found) < len(pairs):
        return None
    made = [f"{tf}.TensorSpec({shape}, {dtype})" if op == "py_function" else dtype for dtype, shape in found]
    text = made[0] if own else f"[{', '.join(made)}]"
    takes = "dtypes, or TensorSpecs" if op == "py_function" else "dtypes only: `set_shape` gives a result its shape"
    cause = f"Tout has a shape, {short(found[0][1], 30)}, among the dtypes: {op} takes {takes}."
    return _edited(spot, call, {tout: text}, cause)


def _pair(node: ast.AST | None, spot: Spot) -> tuple[str, str] | None:
    """The texts of a dtype and a shape, where both stand in a list or tuple."""
    if not isinstance(node, (ast.List, ast.Tuple)) or len(node.elts) != 2:
        return None
    dtype, shape = node.elts
    sizes = shape.elts if isinstance(shape, (ast.List, ast.Tuple)) else [shape]
    known = all(isinstance(one, ast.Constant) and (one.value is None or type(one.value) is int) for one in sizes)
    if not isinstance(dtype, ast.Attribute) or isinstance(shape, ast.Constant) or not known:
        return None
    return spot.source.text(dtype), spot.source.text(shape)


def _list_of_one(situation: Situation, spot: Spot) -> Explanation | None:
    """`y = tf.py_function(f, [x], [tf.float32])` is a list of one tensor, and was used as the tensor."""
    statement = spot.statement
    function = spot.function
    if statement is None or function is None or "list" not in situation.message:
        return None
    for name in dict.fromkeys(names(statement)):
        value, made = spot.value(name), assignments(function).get(name)
        tout = argument(made, 2, "Tout") if isinstance(made, ast.Call) else None
        one = type(value) is list and len(value) == 1 and is_symbolic(value[0])
        if one and isinstance(made, ast.Call) and isinstance(tout, (ast.List, ast.Tuple)) and len(tout.elts) == 1:
            op, text = dotted(made.func).rpartition(".")[2], spot.source.text(tout)
            cause = f"{name} is a list of one tensor, as Tout={text} is a list: {op} gives a list for a list of dtypes."
            return _edited(spot, made, {tout: spot.source.text(tout.elts[0])}, cause)
        several = type(value) is list and len(value) > 1 and all(map(is_symbolic, value))
        if several and isinstance(made, ast.Call) and isinstance(tout, (ast.List, ast.Tuple)):
            return _first_of(spot, statement, name, made, tout)
    return None


def _first_of(spot: Spot, statement: ast.stmt, name: str, made: ast.Call, tout: ast.List | ast.Tuple) -> Explanation:
    """`out.set_shape([8])` of `out = tf.py_function(f, [x], [tf.float32, tf.int32])`."""
    op, text, count = dotted(made.func).rpartition(".")[2], spot.source.text(tout), len(tout.elts)
    others = " and ".join(f"{name}[{place}]" for place in range(1, count))
    cause = (
        f"{name} is a list of {count} tensors: {op} gives one for each dtype of Tout={short(text, 40)}. {name}[0] is "
        f"the first, {others} the {'others' if count > 2 else 'other'}."
    )
    uses = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Name) and one.id == name and isinstance(spot.source.parent(one), ast.Attribute)
    ]  # fmt: skip
    edit = edit_of(spot.file, spot.source.replaced(dict.fromkeys(uses, f"{name}[0]"))) if uses else None
    return Explanation(
        RULE, spot.file, spot.line, cause, edit, "" if edit else f"Name one of them: {name}[0].", "likely"
    )


# -- inputs -----------------------------------------------------------------------------------------------------------


def _given(situation: Situation, spot: Spot, call: ast.Call) -> Explanation | None:
    inp = argument(call, 1, "inp")
    if inp is None:
        return None
    source, tf = spot.source, alias(spot, "tensorflow")
    op = dotted(call.func).rpartition(".")[2]
    name = _function_name(call, source)
    objects = bool(_NO_TENSOR.search(situation.message))
    if not isinstance(inp, (ast.List, ast.Tuple)):
        value = spot.value(inp.id) if isinstance(inp, ast.Name) else None
        if is_symbolic(value) or (value is None and not isinstance(inp, ast.Call)):
            cause = (
                f"inp={source.text(inp)} is one tensor, but {op} takes a list of tensors: it looped over "
                "the tensor at trace."
            )
            return _edited(spot, call, {inp: f"[{source.text(inp)}]"}, cause)
        if isinstance(value, dict):
            closed = kept_inputs.explain(spot, call, inp, objects)
            return closed or _packed(spot, call, inp, [inp], source.text(inp), "a dict")
        return None
    if (closed := kept_inputs.explain(spot, call, inp, objects)) is not None:
        return closed
    for one in inp.elts:
        value = spot.value(one.id) if isinstance(one, ast.Name) else None
        text = source.text(one)
        kind = type(value).__name__
        if isinstance(value, (dict, list, tuple)) and not isinstance(value, type):
            what = "a dict" if isinstance(value, dict) else f"a {kind}"
            if len(inp.elts) == 1:
                return _packed(spot, call, inp, inp.elts, text, what)
            return _packed(spot, call, inp, inp.elts, source.text(inp), what)
        if kind == "SparseTensor" and op != "py_function":
            parts = sparse_parts.explain(spot, call, inp)
            if parts is not None:
                return parts
        if kind in ("SparseTensor", "RaggedTensor") and op != "py_function":
            dense = f"{tf}.sparse.to_dense({text})" if kind == "SparseTensor" else f"{text}.to_tensor()"
            cause = (
                f"{text} is a {kind}: several tensors in one. {op} takes plain tensors only, so {name} "
                "never runs. Pass "
                f"it dense; or use {tf}.py_function, which hands {name} the {kind}."
            )
            return _edited(spot, call, {one: dense}, cause)
    return None


def _packed(
    spot: Spot, call: ast.Call, inp: ast.expr, parts: list[ast.expr], text: str, what: str
) -> Explanation | None:
    """`tf.nest.flatten` on the way in, and `pack_sequence_as` in the body."""
    source, tf = spot.source, alias(spot, "tensorflow")
    function = argument(call, 0, "func")
    if function is None:
        return None
    name = _function_name(call, source)
    called = source.text(function)
    called = f"({called})" if isinstance(function, ast.Lambda) else called
    star = "" if len(parts) == 1 else "*"
    pieces = {
        function: f"lambda *flat: {called}({star}{tf}.nest.pack_sequence_as({text}, flat))",
        inp: f"{tf}.nest.flatten({text})",
    }
    op = dotted(call.func).rpartition(".")[2]
    cause = (
        f"inp holds {what} ({short(text, 30)}), but {op} takes a flat list of tensors: an op has no other "
        "inputs. Flatten "
        f"it at trace, and pack it again when {name} runs."
    )
    return _edited(spot, call, pieces, cause)


def _tout(spot: Spot, call: ast.Call) -> Explanation | None:
    tout, function, inp = argument(call, 2, "Tout"), argument(call, 0, "func"), argument(call, 1, "inp")
    nested = isinstance(tout, (ast.Tuple, ast.List)) and any(
        isinstance(one, (ast.Tuple, ast.List, ast.Dict)) for one in tout.elts
    )
    if tout is None or not (nested or isinstance(tout, ast.Dict)) or function is None or inp is None:
        return None
    source, tf = spot.source, alias(spot, "tensorflow")
    text, called = source.text(tout), source.text(function)
    name = _function_name(call, source)
    called = f"({called})" if isinstance(function, ast.Lambda) else called
    cause = (
        f"Tout is {'nested' if nested else 'a dict'}, but {dotted(call.func).rpartition('.')[2]} takes a list of "
        f"dtypes: an op has a flat list of outputs. Flatten what {name} returns at run, and pack it again in the graph."
    )
    parts = _parts(tout, "out")
    if parts is None:
        return Explanation(RULE, spot.file, call.lineno, cause, None)
    flat = f"lambda *x: (lambda out: [{', '.join(parts)}])({called}(*x))"
    new = (
        f"{tf}.nest.pack_sequence_as({text}, "
        f"{dotted(call.func)}({flat}, {source.text(inp)}, {tf}.nest.flatten({text})))"
    )
    return _edited(spot, call, {call: new}, cause)


def _parts(tout: ast.expr, out: str) -> list[str] | None:
    """How each value is read from what the body returned, in the order of tf.nest.flatten(Tout).

    Not by tf.nest.flatten itself: it would take apart the lists that are values, too.
    """
    if isinstance(tout, (ast.Tuple, ast.List)):
        inner = [_parts(one, f"{out}[{place}]") for place, one in enumerate(tout.elts)]
    elif isinstance(tout, ast.Dict):
        keys: list[Any] = [key.value for key in tout.keys if isinstance(key, ast.Constant)]
        if len(keys) < len(tout.keys) or len({type(key) for key in keys}) > 1:
            return None
        values = dict(zip(keys, tout.values))
        inner = [_parts(values[key], f"{out}[{key!r}]") for key in sorted(values)]
    elif isinstance(tout, (ast.Attribute, ast.Constant)):
        return [out]
    else:
        return None  # a name may stand for any structure
    found = [one for one in inner if one is not None]
    return [part for one in found for part in one] if len(found) == len(inner) else None


# -- outputs ----------------------------------------------------------------------------------------------------------


def _returned(situation: Situation) -> Explanation | None:
    text = situation.message if situation.body else f"{situation.message}\n{situation.error}"
    returned: NotConverted | None = getattr(situation.inner, "pyfunc_returned", None)
    found = _OUTPUT.search(text)
    if returned is None and _NOT_A_TENSOR in text:
        returned = _of_frames(situation)
    composite = returned is not None and returned.dtype is not None
    if not composite and (found is None or (situation.body and returned is None)):
        return None
    if found is not None and (found["short"] or "") in ("NoneType",):
        return None
    node = failed_node(situation)
    call = node.call() if node is not None else None
    spot = site_spot(node, situation) if node is not None else None
    if node is None or call is None or spot is None:
        return None
    if returned is not None and composite:
        return _composite(node, call, spot, returned)
    name = (found["full"] or found["short"] or found["numpy"]).rpartition(".")[2] if found is not None else ""
    if name in ("NoneType", "ndarray", "str", "module") or name.rstrip("0123456789") in (
        "int",
        "uint",
        "float",
        "bool",
    ):
        return None
    parts = returned.parts if returned is not None else ()
    return (
        _among_more(node, situation, call, spot, name)
        or _inside(node, situation, name)
        or _flattened(node, situation, call, spot, name, parts)
    )


def _shown(node: Node, situation: Situation) -> tuple[str, int | None]:
    """What a body returned last, `tuple of 2: int64, dict`, and how many values; None where that is not known."""
    rows = situation.rows("SELECT shown, count FROM returned WHERE node = ? ORDER BY id DESC", (node.id,))
    return rows[0] if rows else ("", None)


def _among_more(node: Node, situation: Situation, call: ast.Call, spot: Spot, kind: str) -> Explanation | None:
    """An object that stands behind the values that Tout has, as `info` of an environment's step does."""
    shown, count = _shown(node, situation)
    wanted, function = len(node.tout), argument(call, 0, "func")
    if count is None or not wanted or function is None:
        return None
    inside = shown.partition(": ")[2].split(", ")
    if count <= wanted:
        return None
    held = [kind in (one, one.rpartition(" ")[2]) for one in inside]  # `list of 20 Box`
    nested = len(inside) != count and inside[-1] != "..."  # parts of a part stand among them
    if nested or not any(held[wanted:]) or any(held[:wanted]):
        return None
    odd = next(one for one, holds in zip(inside[wanted:], held[wanted:]) if holds)
    if wanted == 1 and odd != kind and (first := _first_value(node, situation, shown, odd)) is not None:
        return first
    called = spot.source.text(function)
    called = f"({called})" if isinstance(function, ast.Lambda) else called
    kept = f"{called}(*given)[:{wanted}]"
    if node.kind != "py_function" and "string" not in node.tout:  # nothing is converted to Tout
        kinds = ", ".join(f'"{one}"' for one in node.tout)
        np = alias(spot, "numpy")
        kept = f"[{np}.asarray(one, kind) for one, kind in zip({called}(*given), [{kinds}])]"
    cause = (
        f"{node.opening} returned a {shown}, and Tout declares {wanted} ({', '.join(node.tout[:3])}). No dtype holds "
        f"a {odd}. Here the first {wanted} are kept."
    )
    return _edited(spot, call, {function: f"lambda *given: {kept}"}, cause)


def _first_value(node: Node, situation: Situation, shown: str, odd: str) -> Explanation | None:
    """`return merged[0]`, where the first of the values has the one dtype of Tout and nothing else uses the body."""
    function, source = node.function(), read(node.file or "")
    value = return_value(function) if function is not None else None
    seen = situation.rows("SELECT dtypes FROM returned WHERE node = ? ORDER BY id DESC LIMIT 1", (node.id,))
    if node.file is None or not isinstance(function, ast.FunctionDef) or not seen or other_touts(node, situation)[1]:
        return None
    dtypes = json.loads(seen[0][0])
    called = [
        one for one in ast.walk(source.tree)
        if isinstance(one, (ast.Name, ast.Attribute)) and dotted(one).rpartition(".")[2] == function.name
    ]  # fmt: skip
    fits = dtypes[:1] == list(node.tout) and len(called) == 1
    if not fits or not isinstance(value, (ast.Name, ast.Call, ast.Subscript, ast.Tuple)):
        return None
    if isinstance(value, ast.Tuple) and isinstance(value.elts[0], ast.Starred):
        return None
    new = source.text(value.elts[0]) if isinstance(value, ast.Tuple) else f"{source.text(value)}[0]"
    cause = (
        f"{node.opening} returned a {shown}, and Tout declares one value ({node.tout[0]}). No dtype holds a {odd}; "
        "the first value is what Tout says."
    )
    edit = edit_of(node.file, source.replaced({value: new}))
    return Explanation(RULE, node.file, value.lineno, cause, edit, "", "likely") if edit is not None else None


def _inside(node: Node, situation: Situation, kind: str) -> Explanation | None:
    """A dict as one of the values that Tout has: `return image, label, {"id": 3}`."""
    shown, count = _shown(node, situation)
    inside = shown.partition(": ")[2].split(", ")
    if count is None or count != len(node.tout) or len(inside) != count or node.site is None:
        return None
    if kind not in ("dict", "OrderedDict", "defaultdict") or kind not in inside:
        return None
    place, function = inside.index(kind), node.function()
    cause = (
        f"{node.opening} returned a {shown}, and Tout declares {', '.join(node.tout[:4])}: no dtype holds a {kind}. "
        "A body returns a flat list of tensors."
    )
    value = return_value(function) if function is not None else None
    own = value.elts[place] if isinstance(value, ast.Tuple) and len(value.elts) == count else None
    if isinstance(own, ast.Dict) and len(own.values) == 1 and node.file is not None:
        source = read(node.file)
        edit = edit_of(node.file, source.replaced({own: source.text(own.values[0])}))
        return None if edit is None else Explanation(RULE, node.file, edit.first, cause, edit)
    advice = f"Return what is in it one by one, in the place of value {place + 1}, with a dtype for each in Tout."
    return Explanation(RULE, *node.site, cause, None, advice)


def _of_frames(situation: Situation) -> NotConverted | None:
    """The ragged or sparse tensor that TensorFlow names, where composite inputs make it look before it converts."""
    traceback = situation.inner.__traceback__
    while traceback is not None:
        odd, out = (traceback.tb_frame.f_locals.get(name) for name in ("elt", "out"))
        if (
            odd is not None
            and type(odd).__name__ in ("RaggedTensor", "SparseTensor")
            and isinstance(out, (list, tuple))
        ):
            place = next((index for index, one in enumerate(out) if one is odd), 0)
            rank = getattr(odd, "ragged_rank", None)
            return NotConverted(type(odd).__name__, tuple(odd.shape.as_list()), odd.dtype.name, rank, place)
        traceback = traceback.tb_next
    return None


def _composite(node: Node, call: ast.Call, spot: Spot, value: NotConverted) -> Explanation | None:
    tf, kind, tout = alias(spot, "tensorflow"), value.kind, argument(call, 2, "Tout")
    if tout is None:
        return None
    shape = list(value.shape or ())
    if kind == "RaggedTensor":
        shape = [None, *shape[1:]]  # the first size is that of this batch
        new = f"{tf}.RaggedTensorSpec({shape}, {tf}.{value.dtype}, ragged_rank={value.ragged_rank})"
    else:
        new = f"{tf}.SparseTensorSpec({shape}, {tf}.{value.dtype})"
    listed = tout.elts if isinstance(tout, (ast.List, ast.Tuple)) else []
    if listed and value.position >= len(listed):
        return None
    which = f" as value {value.position + 1}" if len(listed) > 1 else ""
    plain = node.tout[value.position] if value.position < len(node.tout) else ", ".join(node.tout[:2])
    cause = (
        f"{node.opening} returned a {kind}{which}, but Tout declares plain {plain}: it is several tensors in one, "
        "and Tout has to say so with a spec."
    )
    return _edited(spot, call, {listed[value.position] if listed else tout: new}, cause)


def _has_fields(situation: Situation, kind: str) -> bool:
    """Whether a class is one of the user's, whose objects keep their fields where `vars` finds them."""
    for _, source in situation.sources():
        for one in ast.walk(source.tree):
            if isinstance(one, ast.ClassDef) and one.name == kind:
                return "__slots__" not in source.code_of(one) and "slots=True" not in source.code_of(one)
    return False


def _no_structure(node: Node, call: ast.Call, spot: Spot, kind: str, called: str) -> Explanation | None:
    """What no dtype holds and has no fields: several values one after the other, a path, a time."""
    function, tout = argument(call, 0, "func"), argument(call, 2, "Tout")
    tf, np = alias(spot, "tensorflow"), alias(spot, "numpy")
    one = len(node.tout) == 1 and tout is not None and not isinstance(tout, (ast.List, ast.Tuple))
    text = node.tout[:1] == ("string",)
    shown = {"DATETIME": "datetime64"}.get(kind, kind)
    cause = f"{node.opening} returned a {shown}, and no dtype of TensorFlow's holds one"
    words = Explanation(
        RULE, spot.file, spot.line, f"{cause}.", None, f"Make {node.called} return numbers, text, or arrays."
    )
    if function is None or tout is None or not one:
        return words
    if kind in _PASSES:
        dtype = "object" if text else f"{np}.{node.tout[0]}"
        what = f"{cause}: its values in an array are one tensor."
        return _edited(spot, call, {function: f"lambda *x: {np}.array(list({called}(*x)), {dtype})"}, what)
    if kind == "coroutine":
        what = (
            f"{cause}: `async def` makes one of each call, and nothing runs until it is awaited. asyncio.run does that."
        )
        return _edited(spot, call, {function: f"lambda *x: asyncio.run({called}(*x))"}, what)
    if _SPARSE.fullmatch(kind):
        what = f"{cause}: toarray() makes an array of it, with its zeros."
        return _edited(spot, call, {function: f"lambda *x: {called}(*x).toarray()"}, what)
    if kind.endswith("Path") or (kind in _TIMES and text):
        pieces = {function: f"lambda *x: str({called}(*x))"} | ({} if text else {tout: f"{tf}.string"})
        return _edited(spot, call, pieces, f"{cause}: as text it is a string.")
    if kind in _TIMES:
        seconds = f'lambda *x: {np}.asarray({called}(*x), "datetime64[s]").astype({np}.int64)'
        return _edited(
            spot, call, {function: seconds, tout: f"{tf}.int64"}, f"{cause}: the seconds since 1970 are whole numbers."
        )
    return words


def _flattened(
    node: Node, situation: Situation, call: ast.Call, spot: Spot, kind: str, parts: tuple[tuple[str, str], ...]
) -> Explanation | None:
    function, tout, declared = argument(call, 0, "func"), argument(call, 2, "Tout"), None
    if function is None:
        return None
    called = spot.source.text(function)
    called = f"({called})" if isinstance(function, ast.Lambda) else called
    if kind in ("dict", "OrderedDict", "defaultdict"):
        if (keyed := _by_its_keys(node, kind, [key for key, _ in parts])) is not None:
            return keyed
        new = f"lambda *x: (lambda out: [out[key] for key in sorted(out)])({called}(*x))"
        order = "in the order of its sorted keys"
        floats = "float32" if node.kind == "py_function" else "float64"
        tf = alias(spot, "tensorflow")
        declared = [f"{tf}.{floats if dtype == 'float' else dtype}" for _, dtype in parts]
        declared = declared or _dtypes_of_dict(node, situation) or []
    elif kind in ("ShouldUseWrapper", "TensorArray", "_EagerTensorArray"):
        cause = f"{node.opening} returned a TensorArray, which no op has for an output: its parts as one tensor can be."
        return _edited(spot, call, {function: f"lambda *x: {called}(*x).stack()"}, cause)
    elif kind in ("method", "function", "builtin_function_or_method"):
        return uncalled_results.explain(node, situation, spot, kind)
    elif not _has_fields(situation, kind):
        return _no_structure(node, call, spot, kind, called)
    elif (shown := _shown(node, situation)[0]) and shown != kind:  # it stands inside of what was returned
        cause = f"{node.opening} returned a {shown}, and Tout declares {', '.join(node.tout[:4])}: no dtype holds a "
        cause += f"{kind}."
        advice = f"Make {node.called} return numbers, text, or arrays: the fields of each {kind} that are needed."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    else:
        new, order = f"lambda *x: list(vars({called}(*x)).values())", "in the order of its fields"
    cause = (
        f"{node.opening} returned a {kind}, but Tout declares {len(node.tout)} "
        f"tensor{'s' if len(node.tout) != 1 else ''} "
        f"({', '.join(node.tout[:3])}): a body returns a flat list. Give the values, {order}."
    )
    pieces: dict[ast.expr, str] = {function: new}
    listed = isinstance(tout, (ast.List, ast.Tuple))
    if declared == [] and not listed:  # of one dtype, TensorFlow would keep the first value and drop the others
        return Explanation(
            RULE, spot.file, spot.line, cause, None, f"Make Tout a list of dtypes, one for each key of the {kind}."
        )
    if declared and tout is not None and (len(declared) != len(node.tout) or not listed):
        pieces[tout] = f"[{', '.join(declared)}]"
        cause = cause.removesuffix(".") + ", and their dtypes."
        inp = argument(call, 1, "inp")
        if parts and inp is not None and len(call.args) + len(call.keywords) == 3:
            keys = ", ".join(f'"{key}"' for key, _ in parts)
            node_call = f"{dotted(call.func)}({new}, {spot.source.text(inp)}, {pieces[tout]})"
            pieces = {call: f"dict(zip([{keys}], {node_call}))"}
            cause = (
                cause.removesuffix(", and their dtypes.") + ", and their dtypes, and make a dict of them in the graph."
            )
    return _edited(spot, call, pieces, cause)


def _by_its_keys(node: Node, kind: str, keys: list[str]) -> Explanation | None:
    """`return transform(image=image)["image"]`, where the dict has one value for each dtype of Tout.

    Its keys are known, or are those by which the call that gives it was given its own values: image libraries do so.
    """
    function, source = node.function(), read(node.file or "")
    value = return_value(function) if function is not None else None
    if isinstance(value, ast.Name) and function is not None and not isinstance(function, ast.Lambda):
        value = assignments(function).get(value.id)
    if node.file is None or not isinstance(value, ast.Call) or value.args:
        return None
    given = [one.arg for one in value.keywords if one.arg is not None]
    if len(given) != len(node.tout) or len(given) < len(value.keywords) or (keys and keys != sorted(given)):
        return None
    text = source.text(value)
    new = f'{text}["{given[0]}"]'
    if len(given) > 1:
        new = f"(lambda out: [{', '.join(f'out[{key!r}]' for key in given)}])({text})".replace("'", '"')
    edit = edit_of(node.file, source.replaced({value: new}))
    shown = " and ".join(f'"{one}"' for one in given)
    cause = (
        f"{node.opening} returned a {kind}, but Tout declares {len(node.tout)} tensor{'s' * (len(node.tout) > 1)} "
        f"({', '.join(node.tout[:3])}). What {dotted(value.func)} gives has its results by the names that it was "
        f"given: {shown}."
    )
    return None if edit is None else Explanation(RULE, node.file, value.lineno, cause, edit, "", "likely")


def _dtypes_of_dict(node: Node, situation: Situation) -> list[str] | None:
    """The dtypes of a returned dict's values in the order of its keys, where the source says each of them."""
    function, spot = node.function(), body_spot(node, situation)
    value = return_value(function) if function is not None else None
    if function is None or spot is None:
        return None
    made = assignments(function) if not isinstance(function, ast.Lambda) else {}
    value = made.get(value.id) if isinstance(value, ast.Name) else value
    if not isinstance(value, ast.Dict) or not all(isinstance(key, ast.Constant) for key in value.keys):
        return None
    keys: list[Any] = [key.value for key in value.keys if isinstance(key, ast.Constant)]
    dtypes = dict(zip(keys, (Guess(spot, made).of(one) for one in value.values)))
    if len({type(key) for key in keys}) > 1:
        return None
    found = [dtypes[key] for key in sorted(dtypes)]
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def _function_name(call: ast.Call, source: Any) -> str:
    function = argument(call, 0, "func")
    return "the lambda" if function is None or isinstance(function, ast.Lambda) else short(source.text(function), 30)


def _edited(spot: Spot, call: ast.Call, pieces: dict[ast.expr, str], cause: str) -> Explanation | None:
    tout = argument(call, 2, "Tout")
    listed = isinstance(tout, (ast.List, ast.Tuple))
    if tout is not None and tout in pieces and not listed and not writes_dtypes(tout, spot):  # a list may be behind it
        advice = f"Tout is {short(spot.source.text(tout), 40)}: make it say {pieces[tout]}."
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
    found = spot.source.replaced(pieces)
    edit = edit_of(spot.file, found)
    return Explanation(RULE, spot.file, call.lineno, cause, edit)
