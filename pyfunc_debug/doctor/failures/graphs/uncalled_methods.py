"""A method that is named and not called (`x.shape.as_list`), and an attribute that is called (`x.shape()`)."""

from __future__ import annotations

import ast
import inspect
import re
from types import FunctionType, MethodType

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_dataset, is_symbolic, is_tensor, lookup

RULE = "structure"
_CALLED = re.compile(r"^'([\w.]+)' object is not callable")
_VALUES = {
    "shape": ("TensorShape", "tuple"), "dtype": ("DType", "str"), "ndim": ("int",), "size": ("int",),
    "output_shape": ("tuple", "list"), "input_shape": ("tuple", "list"), "layers": ("list",), "weights": ("list",),
    "variables": ("list", "tuple"), "trainable_variables": ("list", "tuple"), "trainable_weights": ("list",),
    "non_trainable_variables": ("list",), "non_trainable_weights": ("list",), "inputs": ("list",),
    "outputs": ("list",), "metrics": ("list",), "metrics_names": ("list",), "history": ("dict",),
    "element_spec": ("TensorSpec", "tuple", "dict", "RaggedTensorSpec"), "op": ("Operation",), "name": ("str",),
}  # fmt: skip
"""Attributes of tensors, datasets and models that people call, and what stands there."""
_METHOD = re.compile(
    r"'(?:method|builtin_function_or_method)' object (?:is not|cannot)|: '?method'? and |and '?method'?$"
    r"|of type '?method'?|not '?method'?$|instances of 'method'|^'function' object has no attribute "
    r"|'method' object has no attribute|<bound method ([\w.]+) of|with type '<class 'method'>'|unsupported type "
    r"\(<class 'method'>\)|dtype: 'method'"
)
_ASKED = re.compile(r"'(?:function|method)' object has no attribute '(\w+)'")
_PLAIN = ("as_list", "get_shape", "as_numpy_iterator", "cardinality", "get_weights", "numpy")
"""Methods of TensorFlow's and Keras' that take no argument and are like no name of others."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if that is why the program failed."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.kind not in ("TypeError", "AttributeError", "ValueError"):
        return None
    called = _CALLED.match(situation.message)
    if called is not None:
        return _value_called(spot, statement, called[1])
    found = _METHOD.search(situation.message)
    if found is None:
        return None
    asked = _ASKED.search(situation.message)
    return _not_called(spot, statement, (found[1] or "").rpartition(".")[2], asked[1] if asked else "")


def _value_called(spot: Spot, statement: ast.stmt, kind: str) -> Explanation | None:
    """`x.shape()`: what stands there is not a method."""
    every = list(calls(statement))
    if any(not isinstance(one.func, (ast.Attribute, ast.Name)) for one in every):
        return None
    named = [one for one in every if type(lookup(one.func, spot)).__name__ == kind]
    asked = [
        one for one in every
        if isinstance(one.func, ast.Attribute) and kind in _VALUES.get(one.func.attr, ())
        and not _is_method(one.func, spot)
    ]  # fmt: skip
    if len(asked) != 1 or any(one is not asked[0] for one in named):
        return None
    call, source = asked[0], spot.source
    code = source.text(call.func)
    text: str | None = code if not call.args and not call.keywords else None
    if text is None and len(call.args) == 1 and not call.keywords and kind in ("TensorShape", "tuple", "list"):
        given = call.args[0]
        number = given.operand if isinstance(given, ast.UnaryOp) else given
        text = f"{code}[{source.text(given)}]" if isinstance(number, ast.Constant) else None
    cause = f"{short(code, 40)} is a {kind}, not a method: the parentheses behind it call that."
    edit = edit_of(spot.file, source.replaced({call: text})) if text is not None else None
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Read {short(code, 40)}, not called.")


def _not_called(spot: Spot, statement: ast.stmt, said: str, asked: str) -> Explanation | None:
    """`x.shape.as_list`: the method itself stands where what it gives is wanted, or is `asked` for an attribute."""
    functions = {id(one.func) for one in calls(statement)}
    named = [
        one for one in ast.walk(statement)
        if isinstance(one, ast.Attribute) and id(one) not in functions
        and said in ("", one.attr) and _is_asked(spot, one, asked) and _takes_none(one, spot)
    ]  # fmt: skip
    if not named:  # it has a name: `shape = x.shape.as_list`
        named = _kept(spot, statement, functions, said, asked)
    if len(named) != 1:
        return None
    code = spot.source.text(named[0])
    cause = f"`{short(code, 44)}` names the method and does not call it: `()` is missing."
    edit = edit_of(spot.file, spot.source.replaced({named[0]: f"{code}()"}))
    return None if edit is None else Explanation(RULE, spot.file, named[0].lineno, cause, edit)


def _is_asked(spot: Spot, node: ast.expr, asked: str) -> bool:
    """Whether this node is asked for the attribute that is missing, if one is."""
    parent = spot.source.parent(node)
    return not asked or (isinstance(parent, ast.Attribute) and parent.attr == asked)


def _kept(spot: Spot, statement: ast.stmt, functions: set[int], said: str, asked: str) -> list[ast.Attribute]:
    """What is behind a name of the statement that stands for a method: the one place where it is set."""
    scope = spot.function or spot.source.tree
    plain = [one for one in ast.walk(statement) if isinstance(one, ast.Name) and id(one) not in functions]
    kept = {one.id for one in plain if _is_asked(spot, one, asked)}
    kept = {one for one in kept if isinstance(spot.value(one), MethodType)}
    made = [
        one for one in own_nodes(scope)
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
        and one.targets[0].id in kept
    ]  # fmt: skip
    values = [one.value for one in made if isinstance(one.value, ast.Attribute)]
    return [one for one in values if said in ("", one.attr) and _takes_none(one, spot)] if len(made) == 1 else []


def _is_method(node: ast.Attribute, spot: Spot) -> bool:
    """Whether a class of the object is known to have a method of this name."""
    owner = lookup(node.value, spot)
    return owner is not None and isinstance(inspect.getattr_static(type(owner), node.attr, None), FunctionType)


def _takes_none(node: ast.Attribute, spot: Spot) -> bool:
    """Whether it is a method that can be called without an argument, as far as can be read without running it."""
    owner = lookup(node.value, spot)
    if node.attr == "numpy" and (owner is None or is_symbolic(owner)):
        return False
    if node.attr in _PLAIN and (owner is None or is_tensor(owner) or is_symbolic(owner) or is_dataset(owner)):
        return True
    method = inspect.getattr_static(type(owner), node.attr, None) if owner is not None else None
    if not isinstance(method, FunctionType):
        return False
    return len(inspect.signature(method).parameters) == 1
