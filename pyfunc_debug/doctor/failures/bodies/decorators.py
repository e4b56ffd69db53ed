"""`@tf.numpy_function(Tout=...)` above a function: on a method, and calls that name arguments."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.bodies.decorated import decorator
from pyfunc_debug.doctor.code import all_nodes
from pyfunc_debug.doctor.failures.bodies.kept_inputs import is_object
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import lookup

RULE = "structure"
_FIRST = "types [<NOT CONVERTIBLE TO TENSOR>"
"""What TensorFlow says where the first input of a node cannot become a tensor."""
_NAMED = re.compile(r"py_function_wrapper\(\) got an unexpected keyword argument '(\w+)'")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a decorator that makes a node is why the program failed."""
    spot = situation.last
    if spot is None or situation.body or situation.kind not in ("TypeError", "ValueError"):
        return None
    said = situation.message
    named = _NAMED.search(said)
    if named is not None:
        return _by_name(spot, named[1])
    return _method(spot, said)


# -- calls ------------------------------------------------------------------------------------------------------------


def _by_name(spot: Spot, word: str) -> Explanation | None:
    """`body(x, k=3.0)`: what stands above the body hands on what is given by position only."""
    source = spot.source
    bodies = {one.name: one for one in all_nodes(source.tree) if isinstance(one, ast.FunctionDef) and decorator(one)}
    calls = [
        one for one in all_nodes(source.tree)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in bodies
        and one.lineno <= spot.line <= (one.end_lineno or one.lineno) and word in [each.arg for each in one.keywords]
    ]  # fmt: skip
    if len(calls) != 1:
        return None
    call = calls[0]
    body = bodies[source.text(call.func)]
    made = decorator(body)
    op = dotted(made.func).rpartition(".")[2] if made is not None else ""
    given = _positions(source, call, body)
    cause = (
        f"{body.name} is called by the names of its arguments ({', '.join(f'{one.arg}=' for one in call.keywords)}), "
        f"and the {op} above it takes its inputs by position only."
    )
    edit = edit_of(spot.file, source.replaced({call: f"{body.name}({', '.join(given)})"})) if given else None
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit is not None else "Give them without names.")


def _positions(source: Source, call: ast.Call, body: ast.FunctionDef) -> list[str]:
    """The arguments of a call in the order of the parameters; empty where one lacks, or belongs to no parameter."""
    names = [one.arg for one in (*body.args.posonlyargs, *body.args.args)]
    defaults = dict(zip(reversed(names), reversed(body.args.defaults)))
    words = {one.arg: one.value for one in call.keywords}
    if any(isinstance(one, ast.Starred) for one in call.args) or not set(words) <= set(names):
        return []
    last = max(names.index(str(one)) for one in words)
    found = [source.text(one) for one in call.args]
    for name in names[len(found) : last + 1]:
        value = words.get(name, defaults.get(name))
        if value is None or (name not in words and not isinstance(value, ast.Constant)):
            return []
        found.append(source.text(value))
    return found


# -- methods ----------------------------------------------------------------------------------------------------------


def _method(spot: Spot, said: str) -> Explanation | None:
    """A decorated method: `self` becomes an input of the node, as each argument does."""
    source = spot.source
    asked = [
        one for one in all_nodes(source.tree)
        if isinstance(one, ast.Attribute) and one.lineno <= spot.line <= (one.end_lineno or one.lineno)
    ]  # fmt: skip
    for holder in (one for one in all_nodes(source.tree) if isinstance(one, ast.ClassDef)):
        for method in holder.body:
            made = decorator(method)
            if not isinstance(method, ast.FunctionDef) or made is None or method.decorator_list != [made]:
                continue
            owners = [_kind(one.value, spot) for one in asked if one.attr == method.name]
            for kind in (one for one in owners if one is not None):
                name = f"{kind.__module__}.{kind.__qualname__}"
                refused = _FIRST in said or f"unsupported type (<class '{name}'>)" in said
                if refused and holder.name in [base.__name__ for base in kind.__mro__]:
                    return _told(spot, holder, method, made)
    return None


def _kind(owner: ast.expr, spot: Spot) -> type | None:
    """The class of an object whose method is asked for: `env`, or `Env()`; None where TensorFlow may take it."""
    if isinstance(owner, ast.Call):
        made = lookup(owner.func, spot)
        return made if isinstance(made, type) else None
    value = lookup(owner, spot)
    return type(value) if is_object(value) else None


def _told(spot: Spot, holder: ast.ClassDef, method: ast.FunctionDef, made: ast.Call) -> Explanation:
    op, own = dotted(made.func).rpartition(".")[2], method.args.args[0].arg if method.args.args else "self"
    cause = (
        f"{method.name} is a method, and the {op} above it makes each of its arguments an input of the node, {own} "
        f"too: an object of {holder.name} cannot become a tensor. A method around the node gives it the others."
    )
    edit = _around(spot, holder, method, made, own)
    advice = f"Call {op} in a method, with {own}.{method.name} and the other arguments, in place of the decorator."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit is not None else advice)


def _around(spot: Spot, holder: ast.ClassDef, method: ast.FunctionDef, made: ast.Call, own: str) -> Edit | None:
    """A method of the same name that calls the node, and the method under another name, without the decorator."""
    source, arguments = spot.source, method.args
    first, last = method.lineno, method.body[0].lineno - 1
    while last > first and not source.code[last - 1].rstrip().endswith(":"):
        last -= 1
    header = source.lines[first - 1 : last]
    new = f"{method.name}_in_python"
    taken = {one.attr for one in all_nodes(source.tree) if isinstance(one, ast.Attribute)}
    taken |= {one.name for one in holder.body if isinstance(one, ast.FunctionDef)}
    if not arguments.args or arguments.kwonlyargs or arguments.kwarg or new in taken:
        return None
    if method.body[0].lineno == first or f"def {method.name}(" not in header[0]:
        return None
    given = [one.arg for one in (*arguments.posonlyargs, *arguments.args)][1:]
    given += [f"*{arguments.vararg.arg}"] if arguments.vararg is not None else []
    words = [f"{one.arg}={source.text(one.value)}" for one in made.keywords if one.arg != "Tout"]
    tout = argument(made, 2, "Tout")
    if tout is None:
        return None
    parts = [f"{own}.{new}", f"[{', '.join(given)}]", source.text(tout), *words]
    blanks = " " * method.body[0].col_offset
    lines = (
        *header, f"{blanks}return {source.text(made.func)}({', '.join(parts)})",
        f"{indent_of(header[0])}def {new}({header[0].partition(f'def {method.name}(')[2]}", *header[1:],
    )  # fmt: skip
    return Edit(spot.file, made.lineno, last, lines)
