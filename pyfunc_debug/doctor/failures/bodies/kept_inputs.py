"""Values of Python's in inp, which no op takes: the body keeps them by its closure, and inp holds the tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_symbolic, lookup

RULE = "structure"
_PLAIN = (bool, int, float, complex, str, bytes, np.generic)
_STRUCTURES = (dict, list, tuple)
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_OF_TENSORS = ("numpy", "dtype", "shape", "get_shape", "set_shape")
_PASS_ON = ("items", "values", "get", "zip", "enumerate", "sorted", "reversed", "list", "tuple", "dict")


def explain(spot: Spot, call: ast.Call, inp: ast.expr, objects: bool = True) -> Explanation | None:
    """The paste that leaves them out of inp, if some stand there.

    Args:
      spot: The line that failed.
      call: The call of py_function.
      inp: Its inputs: a list as it is written, or the name of a dict.
      objects: Whether objects and None are what failed, too.
    """
    function, source = argument(call, 0, "func"), spot.source
    if function is None:
        return None
    given = list(inp.elts) if isinstance(inp, (ast.List, ast.Tuple)) else [inp]
    values = {one: _value(one, spot) for one in given}
    odd = [
        one for place, (one, value) in enumerate(values.items())
        if (objects and (_is_kept(value) or _is_none(one, value, spot)))
        or (_is_structure(value) and not _reads_tensors(function, place, source))
    ]  # fmt: skip
    kept = [one for one in given if one not in odd]
    written = (ast.Name, ast.Attribute, ast.Constant, ast.Dict, ast.List, ast.Tuple)
    if not odd or not all(isinstance(one, written) for one in odd):
        return None
    said, listed = source.text(function), list[str]()
    taken = {name for one in (function, *odd) for name in names(one)}
    for place, one in enumerate(kept):
        name = one.id if isinstance(one, ast.Name) else f"x{place}"
        while name in listed or name in taken:
            name = f"{name}_{place}"
        listed.append(name)
    passed = iter(listed)
    arguments = ", ".join(source.text(one) if one in odd else next(passed) for one in given)
    bound = [one.id for one in odd if isinstance(one, ast.Name) and _changes(one.id, call, source)]
    head = ", ".join([*listed, *(f"{name}={name}" for name in dict.fromkeys(bound))])
    called = f"({said})" if isinstance(function, ast.Lambda) else said
    closed, flat = f"lambda {head}:".replace(" :", ":") + f" {called}({arguments})", ", ".join(map(source.text, kept))
    pieces = {function: closed, inp: f"[{flat}]"}
    if any(isinstance(values[one], _STRUCTURES) and any(map(is_symbolic, _leaves(values[one]))) for one in kept):
        nest = f"{alias(spot, 'tensorflow')}.nest"
        pieces[function] = f"lambda *flat: ({closed})(*{nest}.pack_sequence_as([{flat}], flat))"
        pieces[inp] = f"{nest}.flatten([{flat}])"
    value, text = values[odd[0]], short(source.text(odd[0]), 30)
    what = "None" if value is None else f"{'an' if type(value).__name__[:1] in 'AEIOUaeiou' else 'a'} "
    what += "" if value is None else _kind(value)
    body = "the lambda" if isinstance(function, ast.Lambda) else short(said, 30)
    cause = (
        f"inp holds {text}{f', which is {what}' * (text != what)}: what stands in inp becomes a tensor, and this "
        f"cannot. Leave it out of inp: {body} can take it from the line around."
    )
    return Explanation(RULE, spot.file, call.lineno, cause, edit_of(spot.file, source.replaced(pieces)))


def _kind(value: Any) -> str:
    """How a value's class is said: TensorFlow wraps dicts and lists that its modules keep."""
    return next((one.__name__ for one in _STRUCTURES if isinstance(value, one)), type(value).__name__)


def _value(node: ast.expr, spot: Spot) -> Any:
    """The value of a name or attribute, or of a dict or list that is written there with nothing but constants."""
    if isinstance(node, (ast.Dict, ast.List, ast.Tuple)):
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError):
            return None
    return lookup(node, spot)


def _leaves(value: Any, around: tuple[int, ...] = ()) -> Iterator[Any]:
    """The values in nested dicts, lists and tuples; one that holds itself is looked into once."""
    if not isinstance(value, _STRUCTURES) or isinstance(value, type):
        yield value
    elif id(value) not in around:
        for one in value.values() if isinstance(value, dict) else value:
            yield from _leaves(one, (*around, id(value)))


def _is_structure(value: Any) -> bool:
    """Whether it is a dict, list or tuple that is for Python: none of its values is a tensor, or it has to be one.

    A list of numbers, or of texts, becomes a tensor.
    """
    if not isinstance(value, _STRUCTURES) or isinstance(value, type):
        return False
    leaves = list(_leaves(value))
    if any(map(is_symbolic, leaves)):
        return False
    if any(one is None or is_object(one) for one in leaves):
        return all(map(_is_kept, (one for one in leaves if is_object(one))))
    if not all(isinstance(one, _PLAIN) for one in leaves):
        return False
    return isinstance(value, dict) or not _becomes_tensor(value)


def _becomes_tensor(value: Any) -> bool:
    try:
        return (
            np.asarray(value).dtype.kind != "O" and len({isinstance(one, (str, bytes)) for one in _leaves(value)}) < 2
        )
    except ValueError:  # rows of different lengths, or dicts
        return False


def _is_kept(value: Any) -> bool:
    """Whether it is an object for a closure: one that keeps no tensor of a graph, which has no value in a body."""
    if not is_object(value):
        return False
    own = getattr(value, "__dict__", None)
    return type(own) is not dict or not any(is_symbolic(leaf) for one in own.values() for leaf in _leaves(one))


def is_object(value: Any) -> bool:
    """Whether TensorFlow cannot make a tensor of a value: no number, text, array or tensor."""
    kind = type(value)
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)) or is_symbolic(value):
        return False
    if kind.__module__.partition(".")[0] in ("numpy", "tensorflow", "keras"):
        return kind.__name__ in ("type", "function", "module")
    plain = ("__array__", "__tf_tensor__", "__array_interface__")
    return not isinstance(value, (list, tuple, dict)) and not any(hasattr(kind, name) for name in plain)


def _is_none(node: ast.expr, value: Any, spot: Spot) -> bool:
    """Whether it is None by what is written, and not only unknown to us."""
    if isinstance(node, ast.Constant):
        return node.value is None
    return value is None and isinstance(node, ast.Name) and (node.id in spot.variables or node.id in spot.module)


def _changes(name: str, call: ast.Call, source: Source) -> bool:
    """Whether a name may be another value when the body runs: in a loop, or where it is given a value twice."""
    inside: ast.AST = call
    for one in source.around(call):
        once = getattr(one, "iter", None) is inside or inside in getattr(one, "generators", ())[:1]
        if isinstance(one, _LOOPS) and not once:
            return True
        inside = one
    return len(source.given_to(name)) > 1


def _reads_tensors(function: ast.expr, place: int, source: Source) -> bool:
    """Whether the body takes the values of such a parameter for tensors: `params["scale"].numpy()`."""
    name = dotted(function).rpartition(".")[2]
    found: list[ast.FunctionDef | ast.Lambda] = (
        [function]
        if isinstance(function, ast.Lambda)
        else [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    )
    if len(found) != 1:
        return False
    parameters = [one.arg for one in (*found[0].args.posonlyargs, *found[0].args.args)]
    if isinstance(function, ast.Attribute) and parameters[:1] in (["self"], ["cls"]):
        parameters = parameters[1:]
    if place >= len(parameters):
        return False
    read, nodes = {parameters[place]}, list(ast.walk(found[0]))
    for _ in range(2):
        for one in nodes:
            targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
            value = getattr(one, "iter", getattr(one, "value", None))
            if isinstance(one, (ast.Assign, ast.For, ast.comprehension)) and value is not None and _from(value, read):
                read |= {name for target in targets if target is not None for name in names(target)}
    return any(isinstance(one, ast.Attribute) and one.attr in _OF_TENSORS and _from(one.value, read) for one in nodes)


def _from(node: ast.expr, read: set[str]) -> bool:
    """Whether an expression is one of these, or a part of one."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _PASS_ON:
        inside = [node.func.value] if isinstance(node.func, ast.Attribute) else node.args
        return any(_from(one, read) for one in inside)
    return isinstance(node, ast.Name) and node.id in read
