"""A method without `self`, or one that is given by its class: Python counts the object as an argument of it."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted

RULE = "method-signature"
_MORE = re.compile(r"(\w+)\(\) takes (\d+) positional arguments? but (\d+) (?:was|were) given")
_FEWER = re.compile(r"(\w+)\(\) missing 1 required positional argument: '(\w+)'")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a call failed on that: of a body, of a mapped function, of a generator, or of any method."""
    if situation.kind != "TypeError":
        return None
    more, fewer = _MORE.search(situation.message), _FEWER.search(situation.message)
    if more is not None and int(more[3]) == int(more[2]) + 1:
        return _without_self(situation, more[1].removeprefix("tf__"), int(more[2]))
    return _by_its_class(situation, fewer[1].removeprefix("tf__"), fewer[2]) if fewer is not None else None


def _without_self(situation: Situation, name: str, takes: int) -> Explanation | None:
    """`def load(x):` in a class, called as `self.load`."""
    for file, source in situation.sources():
        found = [(kind, one) for kind, one in _methods(source) if one.name == name]
        if len(found) != 1 or takes_self(found[0][1]):
            continue
        kind, method = found[0]
        read = any(isinstance(one, ast.Attribute) and one.attr == name for one in ast.walk(source.tree))
        if read and len(method.args.posonlyargs) + len(method.args.args) == takes:
            return without_self(kind.name, file, source, method)
    return None


def takes_self(method: ast.FunctionDef) -> bool:
    """Whether a method takes the object, or its decorator may see to it."""
    first = [*method.args.posonlyargs, *method.args.args][:1]
    named = bool(first) and first[0].arg in ("self", "cls")
    return named or bool(method.decorator_list) or method.args.vararg is not None


def without_self(kind: str, file: str, source: Source, method: ast.FunctionDef) -> Explanation:
    """What is said of a method of a class that does not take the object."""
    given = [*method.args.posonlyargs, *method.args.args]
    more = ", " if given or method.args.kwonlyargs or method.args.kwarg else ""
    line = source.lines[method.lineno - 1]
    head = re.sub(rf"(def\s+{method.name}\s*\()\s*", rf"\1self{more}", line, count=1)
    edit = Edit(file, method.lineno, method.lineno, (head,)) if head != line else None
    cause = f"{kind}.{method.name} is a method without `self`: Python gives it the object first"
    cause += f", where {given[0].arg} stands." if given else "."
    return Explanation(RULE, file, method.lineno, cause, edit, "" if edit else "Write self first.")


def _by_its_class(situation: Situation, name: str, missing: str) -> Explanation | None:
    """`Loader.load` as a body, where an object's own is meant: the values then stand for self, x."""
    for file, source in situation.sources():
        for one in ast.walk(source.tree):
            if not isinstance(one, ast.Attribute) or one.attr != name or not isinstance(one.value, ast.Name):
                continue
            owners = [(kind, method) for kind, method in _methods(source) if kind.name == one.value.id]
            method = next((each for _, each in owners if each.name == name), None)
            if method is None or method.decorator_list or not method.args.args:
                continue
            parent = source.parent(one)
            called = isinstance(parent, ast.Call) and parent.func is one
            if method.args.args[0].arg != "self" or called:
                continue
            written = f"{one.value.id}.{name}"
            cause = f"{written} is the function of the class, without an object: " + (
                "nobody gives it self."
                if missing == "self"
                else f"the first value stands for self, {missing} gets none."
            )
            edit = edit_of(file, source.replaced({one: f"self.{name}"})) if _inside(one, source, one.value.id) else None
            made = _object(situation, file, source, one.value.id) if edit is None else ""
            if made:
                edit = edit_of(file, source.replaced({one: f"{made}.{name}"}))
            return Explanation(
                RULE, file, one.lineno, cause, edit,
                "" if edit else f"Make an object of it, and give that one's: loader = {one.value.id}(...).",
            )  # fmt: skip
    return None


def _methods(source: Source) -> list[tuple[ast.ClassDef, ast.FunctionDef]]:
    return [
        (kind, one) for kind in ast.walk(source.tree) if isinstance(kind, ast.ClassDef)
        for one in kind.body if isinstance(one, ast.FunctionDef)
    ]  # fmt: skip


def _inside(node: ast.expr, source: Source, kind: str) -> bool:
    """Whether it stands in a method of that class, which has self."""
    around = list(source.around(node))
    functions = [one for one in around if isinstance(one, ast.FunctionDef)]
    classes = [one for one in around if isinstance(one, ast.ClassDef)]
    outer = functions[-1] if functions else None
    return bool(classes) and classes[0].name == kind and outer is not None and bool(outer.args.args) and (
        outer.args.args[0].arg == "self"
    )  # fmt: skip


def _object(situation: Situation, file: str, source: Source, kind: str) -> str:
    """The one name of the file that an object of the class has, above what is given away."""
    found = [
        one.targets[0].id for one in source.tree.body
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and dotted(one.value.func) == kind
        and isinstance(one.targets[0], ast.Name)
    ]  # fmt: skip
    return found[0] if len(found) == 1 and any(one.file == file for one in situation.spots) else ""
