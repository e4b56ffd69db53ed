"""A value that an argument of Keras does not take: a float for a whole number, a text that it does not know."""

from __future__ import annotations

import ast
import difflib
import re
import sys
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.callables import called, given_to
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import calls, keras_name, lookup

RULE = "argument"
_RECEIVED = re.compile(r"[Rr]eceived:? `?(\w+)=(.*?)`?(?: \((?:of type|type) .*)?\.?$", re.DOTALL)
_SHAPE = re.compile(r"Cannot convert '.*' to a shape\. Found invalid dimension '(.+?)' of type '<class '([\w.]+)'>'")
_IDENTIFIER = re.compile(
    r"^Could not interpret (activation function|initializer|optimizer|regularizer) identifier: (.+)$"
)
_WHOLE = re.compile(r"\binteger|\bint\b")
_QUOTED = re.compile(r"""['"]([\w-]+)['"]""")
_UNRECOGNIZED = re.compile(r"^Unrecognized (\w+): (\S+)\. Expected")
_SHARE = re.compile(r"between 0 and 1|in (?:the )?(?:range|interval) \[0, 1\]")
_PADDING = "'int' object has no attribute 'lower'"
_NAME = "must be a string and cannot contain character `/`"
_MEANT = {
    ("reduction", "auto"): '"sum_over_batch_size"', ("reduction", "average"): '"mean"',
    ("save_freq", "batch"): "1", ("save_freq", "step"): "1", ("update_freq", "step"): '"batch"',
}  # fmt: skip
"""What people write for a value of an argument, in small letters, and the value."""
_IDENTIFIERS = {
    "activation function": {
        "leakyrelu": "leaky_relu", "lrelu": "leaky_relu", "swish": "silu", "none": "linear", "identity": "linear",
        "logistic": "sigmoid",
    },
    "initializer": {
        "xavier": "glorot_uniform", "xavieruniform": "glorot_uniform", "xaviernormal": "glorot_normal",
        "glorot": "glorot_uniform", "he": "he_normal", "kaiming": "he_normal", "kaiminguniform": "he_uniform",
        "kaimingnormal": "he_normal", "lecun": "lecun_normal", "normal": "random_normal", "uniform": "random_uniform",
        "random": "random_uniform", "zero": "zeros", "one": "ones",
    },
    "optimizer": {"gd": "sgd", "gradientdescent": "sgd", "rms": "rmsprop"},
    "regularizer": {},
}  # fmt: skip
"""By Keras' word for it, what people call some of them."""
_MODULES = {"activation function": "activations", "initializer": "initializers", "optimizer": "optimizers"}
_NEAR = 0.7


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an argument in the failing line has a value that another can stand for."""
    spot, statement, message = situation.last, situation.statement, situation.message
    if spot is None or statement is None or situation.body:
        return None
    if situation.kind == "AttributeError" and message == _PADDING:
        return _padded(spot, statement)
    if situation.kind not in ("ValueError", "TypeError"):
        return None
    shape, identifier = _SHAPE.search(message), _IDENTIFIER.search(message)
    if shape is not None:
        return _of_shape(spot, statement, shape[1], shape[2])
    if identifier is not None:
        return _identified(spot, statement, identifier[1], identifier[2])
    received = _RECEIVED.search(message) or _UNRECOGNIZED.search(message)
    if received is None:
        return None
    name, value = received[1], received[2]
    known = message if received.re is _UNRECOGNIZED else message[: received.start()]
    found = [(call, node) for call in calls(statement) if (node := given_to(call, name, spot)) is not None]
    for call, node in found:
        if _NAME in message:
            return _named(spot, node, name)
        if _WHOLE.search(message) and (told := _whole(spot, node, value)) is not None:
            why, new = told
            return _said(spot, node, f"{called(call)} takes a whole number for {name}, and {why}.", new)
        if _SHARE.search(message) and re.fullmatch(r"\d+(?:\.\d+)?", value) and 1 < float(value) <= 100:
            new = f"{float(value) / 100:g}" if isinstance(node, ast.Constant) else f"{spot.source.atom(node)} / 100"
            return _said(spot, node, f"{called(call)} takes a share from 0 to 1 for {name}, and no percentage.", new)
        meant = _meant(spot, node, name, known)
        if meant is not None:
            cause = f"{called(call)} does not know {short(spot.source.text(node), 40)} as its {name}."
            return _said(spot, node, cause, meant)
    return None


def _said(spot: Spot, node: ast.expr, cause: str, new: str) -> Explanation:
    edit = edit_of(spot.file, spot.source.replaced({node: new}))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit is not None else f"Write {new}.")


def _padded(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """What is said of `padding=1`, as PyTorch counts it."""
    found = [
        (call, node) for call in calls(statement) if (node := given_to(call, "padding", spot)) is not None
        and type(node.value if isinstance(node, ast.Constant) else lookup(node, spot)) is int
    ]  # fmt: skip
    if len(found) != 1:
        return None
    call, node = found[0]
    none = isinstance(node, ast.Constant) and node.value == 0
    cause = f'{called(call)} takes "valid" (none) or "same" for padding, and no number of pixels.'
    return _said(spot, node, cause, '"valid"' if none else '"same"')


def _whole(spot: Spot, node: ast.expr, value: str, shown: bool = True) -> tuple[str, str] | None:
    """Why an expression that gives `value` is not a whole number of Python's, and one that is.

    Args:
      spot: The frame.
      node: The expression.
      value: What it gave, or what was made of that.
      shown: Whether it gave this itself.
    """
    text, known = spot.source.text(node), lookup(node, spot)
    told = short(text, 40)
    said = f"the float {value}" if shown else "a float"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        left, right = (spot.source.operand(one) for one in (node.left, node.right))
        return f"{told} is {said}: / gives a float in Python, also of whole numbers", f"{left} // {right}"
    if re.fullmatch(r"-?\d+\.0*", value):
        new = str(int(float(value))) if isinstance(node, ast.Constant) else f"int({text})"
        return f"{told} is {said}", new
    if re.fullmatch(r"[1-9]\d*", value) and not isinstance(node, ast.Constant) and type(known) is not int:
        numpy = type(known).__module__ == "numpy"
        kind = "a text" if isinstance(known, str) else "a number of NumPy's" if numpy else "no int of Python's"
        return f"{told} {f'({value}) ' if shown else ''}is {kind}", f"int({text})"
    if re.fullmatch(r"[1-9]\d*", value) and isinstance(node, ast.Constant) and isinstance(node.value, str):
        return f"{told} is a text", value
    return None


def _of_shape(spot: Spot, statement: ast.stmt, value: str, kind: str) -> Explanation | None:
    """What is said of a size that became part of the shape of an input or a weight."""
    if kind not in ("float", "str") and not kind.startswith("numpy."):
        return None
    found = [one for one in _sizes(spot, statement) if _is_float(spot, one, value)]
    if len({ast.unparse(one) for one in found}) != 1:
        return None
    told = _whole(spot, found[0], value, shown=False)
    if told is None:
        return None
    why, new = told
    pieces: dict[ast.expr, str] = dict.fromkeys(found, new)
    edit = edit_of(spot.file, spot.source.replaced(pieces))
    return Explanation(RULE, spot.file, spot.line, f"Sizes are whole numbers of Python's, and {why}.", edit)


def _sizes(spot: Spot, statement: ast.stmt) -> Iterator[ast.expr]:
    """What the calls of a statement are given, and the elements of the tuples and lists in that."""
    for call in calls(statement):
        for given in (*call.args, *(one.value for one in call.keywords)):
            yield from given.elts if isinstance(given, (ast.Tuple, ast.List)) else (given,)


def _is_float(spot: Spot, node: ast.expr, value: str) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is float and str(node.value) == value
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        held = lookup(node, spot)
        return type(held).__name__ in ("float", "float64", "float32", "int64", "int32", "str") and str(held) == value
    return isinstance(node, ast.BinOp) and any(
        isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div) for one in ast.walk(node)
    )


def _named(spot: Spot, node: ast.expr, name: str) -> Explanation | None:
    """What is said of a name with a slash, or of a number as a name."""
    text, known = spot.source.text(node), node.value if isinstance(node, ast.Constant) else lookup(node, spot)
    if isinstance(known, (int, float)):
        return _said(spot, node, f"A {name} is a text, and {short(text, 40)} is a number.", f"str({text})")
    new = f'{text}.replace("/", "_")'
    if isinstance(node, ast.Constant) and isinstance(known, str):
        new = f'"{known.replace("/", "_")}"'
    cause = f"Keras 3 takes no / in a {name}: in paths it stands between the names of layers."
    return _said(spot, node, cause, new)


def _meant(spot: Spot, node: ast.expr, name: str, said: str) -> str | None:
    """The text that a text means, of those that the exception lists."""
    known = node.value if isinstance(node, ast.Constant) else lookup(node, spot)
    if not isinstance(known, str):
        return None
    if (name, known.lower()) in _MEANT:
        return _MEANT[name, known.lower()]
    near = _nearest(known, {one for one in _QUOTED.findall(said) if one != name})
    return f'"{near}"' if near else None


def _nearest(given: str, known: set[str]) -> str:
    plain = {_plain(one): one for one in sorted(known, reverse=True)}
    if _plain(given) in plain:
        return plain[_plain(given)]
    near = difflib.get_close_matches(_plain(given), plain, 1, _NEAR)
    return plain[near[0]] if near else ""


def _plain(name: str) -> str:
    return re.sub(r"\W|_", "", name).lower()


def _identified(spot: Spot, statement: ast.stmt, kind: str, given: str) -> Explanation | None:
    """What is said of the name of an activation, an initializer or an optimizer that Keras has not."""
    found = [
        (call, node) for call in calls(statement)
        for node in (*call.args, *(one.value for one in call.keywords))
        if _is_value(spot, node, given)
    ]  # fmt: skip
    if len(found) != 1:
        return None
    call, node = found[0]
    if kind == "regularizer" and re.fullmatch(r"\d*\.?\d+(e-?\d+)?", given):
        cause = f"{spot.source.text(node)} is a number, and {called(call)} takes a regularizer."
        return _said(spot, node, cause, f"{keras_name(spot)}.regularizers.L2({spot.source.text(node)})")
    known = _known(kind)
    own = spot.value(given)
    word = kind.partition(" ")[0]
    if callable(own) and not isinstance(own, type):
        return _said(spot, node, f'Keras has no {word} "{given}", but there is your function {given}.', given)
    new = _IDENTIFIERS[kind].get(_plain(given)) or _nearest(given, known)
    if not new:
        return None
    return _said(spot, node, f'Keras has no {word} of the name "{given}".', f'"{new}"')


def _known(kind: str) -> set[str]:
    """The names that Keras has: of functions, or of classes in small letters."""
    module = vars(getattr(sys.modules.get("keras"), _MODULES.get(kind, ""), None) or object)
    if kind == "optimizer":
        return {name.lower() for name, one in module.items() if isinstance(one, type) and name[:1].isupper()}
    return {name for name, one in module.items() if name.islower() and callable(one)}


def _is_value(spot: Spot, node: ast.expr, given: str) -> bool:
    if isinstance(node, ast.Constant):
        return str(node.value) == given
    known: Any = lookup(node, spot) if isinstance(node, (ast.Name, ast.Attribute)) else None
    return isinstance(known, (str, int, float)) and str(known) == given
