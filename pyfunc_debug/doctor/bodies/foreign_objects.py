"""What a body asks of Python's objects that no tensor can stand in for: texts one by one, a client, a parser."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor.code import all_nodes, own_nodes
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted

_OF_TEXTS = {
    "decode", "encode", "endswith", "isalpha", "isdigit", "join", "lower", "lstrip", "replace", "rsplit", "rstrip",
    "split", "splitlines", "startswith", "strip", "title", "upper",
}  # fmt: skip
"""Methods of Python's texts and bytes that a tensor does not have."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MODULES = ("tensorflow", "keras", "tf_keras")


def parameters(function: Function) -> set[str]:
    """Names of what a body is given one by one: a tensor each, in a graph."""
    every = [*function.args.posonlyargs, *function.args.args]
    given = every[: len(every) - len(function.args.defaults)]
    return {one.arg for one in given} - {"self", "cls"}


def values_asked(function: Function) -> Iterator[tuple[ast.expr, str, str]]:
    """What asks a body's own inputs for Python's values: where, its words there, and why a tensor cannot.

    AutoGraph makes a loop of a `for`, but not of a comprehension.
    """
    given = parameters(function)
    texts = set(given)
    for one in own_nodes(function):
        if isinstance(one, _COMPREHENSIONS):
            over = _name(one.generators[0].iter)
            if over in given:
                yield one, over, f"goes through {over} value by value, which a tensor of a graph does not allow"
        loops = one.generators if isinstance(one, _COMPREHENSIONS) else [one] if isinstance(one, ast.For) else []
        for loop in loops:
            if _name(loop.iter) in texts and isinstance(loop.target, ast.Name):
                texts.add(loop.target.id)
    for one in own_nodes(function):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _OF_TEXTS:
            name = _name(one.func.value)
            if name in texts:
                said = f"{name}.{one.func.attr}()"
                yield one, said, f"calls a method of Python's texts ({said})"


def branches(function: Function) -> bool:
    """Whether a body loops over its inputs or asks for one's value: Python does that, where no AutoGraph is around."""
    given = parameters(function)
    for one in own_nodes(function):
        if isinstance(one, (ast.For, ast.AsyncFor)) and _name(one.iter) in given:
            return True
        if isinstance(one, (ast.If, ast.IfExp, ast.While, ast.Assert)) and _asks(one.test, given):
            return True
    return False


def method_of(call: ast.Call, source: Source, known: dict[str, str]) -> ast.FunctionDef | bool | None:
    """The method that a call of an object runs that was made outside of a body.

    Args:
      call: The call: `client.encode(x)`, or `parse(x)` of an object.
      source: The file.
      known: What it imports.

    Returns:
      The method where its class stands in the file. True for an object of another library, or a class of the file's
      that is none of TensorFlow's and whose method is not in the file. False where none of this is known.
    """
    method = call.func.attr if isinstance(call.func, ast.Attribute) else "__call__"
    owner = dotted(call.func.value if isinstance(call.func, ast.Attribute) else call.func)
    made = source.given_to(owner) if owner else []
    if not made or not all(isinstance(one, ast.Call) for one in made):
        return False
    classes = {one.name: one for one in all_nodes(source.tree) if isinstance(one, ast.ClassDef)}
    found: ast.FunctionDef | None = None
    for one in made:
        name = dotted(one.func) if isinstance(one, ast.Call) else ""
        head = name.partition(".")[0]
        if name in classes:
            if _is_tensorflows(classes[name], classes, known):
                return False
            own = [part for part in classes[name].body if isinstance(part, ast.FunctionDef) and part.name == method]
            if not own:
                return True
            found = own[0]
        else:
            return head in known and known[head].partition(".")[0] not in _MODULES
    return found if found is not None else False


def _is_tensorflows(one: ast.ClassDef, classes: dict[str, ast.ClassDef], known: dict[str, str]) -> bool:
    """Whether a class is a layer, a module or the like, by what it is derived from."""
    for base in map(dotted, one.bases):
        if known.get(base.partition(".")[0], "").partition(".")[0] in _MODULES:
            return True
        if base in classes and classes[base] is not one and _is_tensorflows(classes[base], classes, known):
            return True
    return False


def _asks(test: ast.expr, given: set[str]) -> bool:
    """Whether a condition is about the value of an input itself."""
    if isinstance(test, ast.BoolOp):
        return any(_asks(one, given) for one in test.values)
    if isinstance(test, ast.UnaryOp):
        return _asks(test.operand, given)
    if isinstance(test, ast.Compare) and not isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        return any(_name(one) in given for one in (test.left, *test.comparators))
    return _name(test) in given


def _name(node: ast.expr) -> str:
    """The name that is read, also in an item of it."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
