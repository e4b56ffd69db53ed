"""What a generator yields in another form than is declared: a dict for a tuple, several values for one."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from pyfunc_debug.doctor.failures.datasets import generator_calls, text_arguments
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, frames
from pyfunc_debug.doctor.failures.reading.source import Source, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_ndarray

RULE = "generator"
_PLAIN = {bool: "bool", int: "int64", float: "float32", str: "string", bytes: "string"}


def as_signed(wanted: str, value: ast.expr, file: str, source: Source) -> tuple[Edit | None, str]:
    """The yielded values in the form of the signature, and what is said of it; (None, "") where that is not plain.

    Args:
      wanted: The signature, as TensorFlow writes it.
      value: What is yielded.
      file: The file of the generator.
      source: Its text.
    """
    try:
        signature = ast.parse(wanted, mode="eval").body
    except SyntaxError:
        return None, ""
    keys = [one.value for one in getattr(value, "keys", ()) if isinstance(one, ast.Constant)]
    if isinstance(signature, ast.Tuple) and isinstance(value, ast.Dict) and len(keys) == len(value.values):
        if len(keys) != len(signature.elts):
            return None, ""
        new = f"({', '.join(map(source.text, value.values))}{',' * (len(keys) == 1)})"
        return edit_of(file, source.replaced({value: new})), "a dict, and its signature says a tuple"
    names = [ast.unparse(one) for one in getattr(signature, "keys", ())]
    if isinstance(signature, ast.Dict) and isinstance(value, ast.Tuple) and len(names) == len(signature.values):
        if len(names) != len(value.elts):
            return None, ""
        pairs = [f"{name}: {source.text(one)}" for name, one in zip(names, value.elts)]
        edit = edit_of(file, source.replaced({value: f"{{{', '.join(pairs)}}}"}))
        return edit, "a tuple, and its signature says a dict"
    return None, ""


def declared_each(situation: Situation, file: str, source: Source, call: ast.Call) -> Edit | None:
    """One TensorSpec as one for each value of the first element; None where not all of these are numbers or texts."""
    signature = next((one.value for one in call.keywords if one.arg == "output_signature"), None)
    values = next(
        (
            given for frame in frames(situation.inner.__traceback__)
            if frame.f_code.co_name == "generator_py_func" and type(given := frame.f_locals.get("values")) is tuple
        ),
        None,
    )  # fmt: skip
    if not isinstance(signature, ast.Call) or values is None:
        return None
    tf = alias(situation.spots[0], "tensorflow") if situation.spots else "tf"
    specs = [_spec(one, tf) for one in values]
    if None in specs:
        return None
    return edit_of(file, source.replaced({signature: f"({', '.join(map(str, specs))})"}))


def _spec(value: Any, tf: str) -> str | None:
    """The TensorSpec of a number, a text or an array."""
    kind = type(value)
    if kind in _PLAIN:
        return f"{tf}.TensorSpec([], {tf}.{_PLAIN[kind]})"
    if not is_ndarray(value) and not isinstance(value, np.generic):
        return None
    name = value.dtype.name
    dtype = "string" if name.startswith(("str", "bytes")) else name
    return None if dtype == "object" else f"{tf}.TensorSpec({list(value.shape)}, {tf}.{dtype})"


def arguments(situation: Situation) -> Explanation | None:
    """`from_generator(gen, args=[x, None])`: args become tensors, and only numbers and texts can."""
    spot = situation.last
    if situation.body or spot is None or "unsupported type (<class '" not in situation.message:
        return None
    for file, source, call in generator_calls.calls(situation):
        given = next((one.value for one in call.keywords if one.arg == "args"), None)
        here = file == spot.file and call.lineno <= spot.line <= (call.end_lineno or call.lineno)
        if not here or not isinstance(given, (ast.List, ast.Tuple)):
            continue
        kind = situation.message.rpartition("(<class '")[2].partition("'")[0].rpartition(".")[2]
        new = text_arguments.called_with_values(call, source)
        edit = edit_of(file, source.replaced({call: f"{source.text(call.func)}({new})"})) if new else None
        what = "None" if kind == "NoneType" else f"a {kind}"
        generator = generator_calls.given(call)
        function = short(source.text(generator), 30) if generator is not None else "it"
        cause = (
            f"from_generator makes tensors of args, and there is {what} among them, of which TensorFlow can make none. "
            f"A lambda hands {function} Python's own values."
        )
        advice = "" if edit else "Pass a lambda that calls it with these values, without args."
        return Explanation(RULE, file, call.lineno, cause, edit, advice)
    return None
