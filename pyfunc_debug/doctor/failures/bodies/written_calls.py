"""py_function called with its inputs or dtypes as arguments of their own, or with something else as Tout or func."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.bodies import missing_tout
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument, failed_node, py_call, site_spot
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_symbolic, lookup, of_package

RULE = "structure"
_NO_DTYPE = re.compile(r"Cannot convert the argument `?type_value`?: .* to a TensorFlow DType|Expected DataType", re.S)
_ITERATED = re.compile(r"[Ii]terating over a symbolic|Cannot iterate over a scalar|as a Python `?bool`?")
_FEWER = "values, but expects to see"
_NUMBERS = re.compile(r"(?:bool|string|complex(?:64|128)|(?:u?int|float)(?:8|16|32|64))")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the call is written so and this is why it failed."""
    said, spot = situation.message, situation.last
    if situation.body or situation.kind == "InvalidArgumentError":
        node = failed_node(situation)
        call = node.call() if node is not None else None
        site = site_spot(node, situation) if node is not None else None
        if call is None or site is None:
            return None
        if _FEWER in f"{said}\n{situation.error}":
            return _dtypes_apart(site, call)
        return _dict_given(site, call) if "positional argument" in said else None
    call = py_call(spot.source, spot.line) if spot is not None else None
    if (
        call is None
        or spot is None
        or situation.kind not in ("TypeError", "ValueError", "OperatorNotAllowedInGraphError")
    ):
        return None
    if "multiple values for argument 'Tout'" in said or _ITERATED.search(said):
        return _inputs_apart(spot, call)
    inp = argument(call, 1, "inp")
    if isinstance(inp, ast.Set) and "unhashable" in said:
        listed = f"[{', '.join(map(spot.source.text, inp.elts))}]"
        cause = f"{spot.source.text(inp)} makes a set of tensors, which have no hash: {_op(call)} takes a list."
        return _edited(spot, call, {inp: listed}, cause)
    if "got 'DType'" in said:
        return _dtypes_apart(spot, call)
    if said.startswith("Expected func to be callable"):
        return _named_function(spot, call)
    return _other_tout(spot, call) if _NO_DTYPE.search(said) else None


def _op(call: ast.Call) -> str:
    return dotted(call.func).rpartition(".")[2]


def _is_dtype(node: ast.expr, spot: Spot) -> bool:
    """Whether it is written as one dtype: `tf.float32`, `np.int64`, `"string"`."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _NUMBERS.fullmatch(node.value) is not None
    return isinstance(node, ast.Attribute) and _NUMBERS.fullmatch(node.attr) is not None and bool(dotted(node))


def _edited(spot: Spot, call: ast.Call, pieces: dict[ast.expr, str], cause: str, advice: str = "") -> Explanation:
    edit = edit_of(spot.file, spot.source.replaced(pieces)) if pieces else None
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else advice)


def _written(spot: Spot, call: ast.Call, parts: list[str]) -> dict[ast.expr, str]:
    """The call with other positional arguments."""
    kept = [f"{one.arg}={spot.source.text(one.value)}" for one in call.keywords if one.arg is not None]
    return {call: f"{spot.source.text(call.func)}({', '.join([*parts, *kept])})"}


def _dtypes_apart(spot: Spot, call: ast.Call) -> Explanation | None:
    """`tf.py_function(f, [x], tf.float32, tf.int64)`: the fourth argument is another one."""
    dtypes = call.args[2:]
    if len(dtypes) < 2 or not all(_is_dtype(one, spot) for one in dtypes):
        return None
    text, fourth = spot.source.text, "name" if _op(call) == "py_function" else "stateful"
    listed = f"[{', '.join(map(text, dtypes))}]"
    cause = (
        f"the fourth argument of {_op(call)} is {fourth}, and {text(dtypes[1])} stands there: the dtypes of several "
        "results are one list, Tout."
    )
    return _edited(spot, call, _written(spot, call, [*map(text, call.args[:2]), listed]), cause)


def _inputs_apart(spot: Spot, call: ast.Call) -> Explanation | None:
    """`tf.py_function(f, x, y, Tout=tf.float32)`, and `tf.py_function(f, x, y, tf.float32)`."""
    text, behind = spot.source.text, call.args[1:]
    named = any(one.arg == "Tout" for one in call.keywords)
    if not named and behind and _is_dtype(behind[-1], spot):
        behind = behind[:-1]
    elif not named:
        return None
    if len(behind) < 2 or not all(is_symbolic(lookup(one, spot)) for one in behind):
        return None
    listed = f"[{', '.join(map(text, behind))}]"
    rest = [text(one) for one in call.args[1 + len(behind) :]]
    cause = f"the inputs of {_op(call)} are one list, its second argument: here {text(behind[1])} stands for Tout."
    return _edited(spot, call, _written(spot, call, [text(call.args[0]), listed, *rest]), cause)


def _named_function(spot: Spot, call: ast.Call) -> Explanation | None:
    """`tf.numpy_function("f", [x], tf.float32)`."""
    func = argument(call, 0, "func")
    if not isinstance(func, ast.Constant) or not isinstance(func.value, str):
        return None
    known = func.value.isidentifier() and callable(spot.value(func.value))
    cause = f'"{func.value}" is a text: {_op(call)} takes the function itself.'
    return _edited(spot, call, {func: func.value} if known else {}, cause, "Pass the function, not its name.")


def _dict_given(spot: Spot, call: ast.Call) -> Explanation | None:
    """`inp=example` of a dict: a list of it has its keys, not its values."""
    inp, func = argument(call, 1, "inp"), argument(call, 0, "func")
    function = func if isinstance(func, ast.Lambda) else missing_tout.definition(func, spot)
    if not isinstance(inp, (ast.Name, ast.Dict)) or func is None or function is None:
        return None
    first = parameters(function)[:1]
    keyed = any(
        isinstance(one, ast.Subscript) and dotted(one.value) in first and isinstance(one.slice, ast.Constant)
        and isinstance(one.slice.value, str) for one in ast.walk(function)
    )  # fmt: skip
    if not keyed or len(parameters(function)) != 1:
        return None
    text, tf = spot.source.text(inp), alias(spot, "tensorflow")
    called = spot.source.atom(func)
    cause = (
        f"{short(text, 30)} is a dict, and {_op(call)} makes a list of it: its keys, each an argument of its own. The "
        "values go in flat, and the body packs them again."
    )
    pieces: dict[ast.expr, str] = {
        func: f"lambda *flat: {called}({tf}.nest.pack_sequence_as({text}, flat))", inp: f"{tf}.nest.flatten({text})",
    }  # fmt: skip
    return _edited(spot, call, pieces, cause)


def _other_tout(spot: Spot, call: ast.Call) -> Explanation | None:
    """A spec, a tensor, a class of arrays, or several dtypes in one text, as Tout."""
    tout, text, tf = argument(call, 2, "Tout"), spot.source.text, alias(spot, "tensorflow")
    if tout is None:
        return None
    if isinstance(tout, ast.Constant) and isinstance(tout.value, str):
        listed = re.split(r"[,\s]+", tout.value.strip(" ,()[]"))
        if len(listed) < 2 or not all(_NUMBERS.fullmatch(one) for one in listed):
            return None
        cause = f'Tout="{tout.value}" is one text: {_op(call)} takes a list of dtypes, one for each result.'
        return _edited(spot, call, {tout: f"[{', '.join(f'{tf}.{one}' for one in listed)}]"}, cause)
    every = tout.elts if isinstance(tout, (ast.List, ast.Tuple)) else [tout]
    specs: dict[ast.expr, str] = {}
    for one in every:
        dtype = argument(one, 1, "dtype") if isinstance(one, ast.Call) else None
        if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] == "TensorSpec":
            specs[one] = text(dtype) if dtype is not None else f"{tf}.float32"
    if specs and _op(call) != "py_function":
        cause = f"{_op(call)} takes dtypes as Tout, and no TensorSpec: `set_shape` gives a result its shape."
        return _edited(spot, call, specs, cause)
    tensors: dict[ast.expr, str] = {one: f"{text(one)}.dtype" for one in every if is_symbolic(lookup(one, spot))}
    if tensors:
        named = text(next(iter(tensors)))
        cause = f"{named} is a tensor, and Tout takes dtypes. Likely that of {named} is meant."
        return _edited(spot, call, tensors, cause)
    kinds = [one for one in every if getattr(of_package(one, spot), "__name__", "") in ("ndarray", "Tensor", "array")]
    if not kinds:
        return None
    cause = f"{text(kinds[0])} is what holds numbers, not a dtype: Tout names the dtype of what it holds."
    guess = missing_tout.guessed(spot, call) if len(every) == 1 else ""
    return _edited(spot, call, {tout: guess} if guess else {}, cause, f"Name it, as Tout={tf}.float32.")
