"""None where a value belongs: what a method gave that works in place, a function without return, a name never set.

The name is None in the failing frame; where it came from is read in the source.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.pastes.in_place import apart
from pyfunc_debug.doctor.failures.reading.callables import called
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import argument, return_values
from pyfunc_debug.doctor.failures.reading.returning import (
    changed,
    ends_without_return,
    result,
    way_out,
    with_return,
    works_in_place,
)
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, parameters, read, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

RULE = "none-value"
_SAID = re.compile(
    r"'NoneType' object (?:has no attribute '(\w+)'|is not (?:callable|subscriptable|iterable|an iterator))"
    r"|cannot unpack non-iterable NoneType|unsupported operand type\(s\) for \S+: .*'NoneType'"
    r"|object of type 'NoneType' has no len|Invalid `element`\. `element` should not be empty"
    r"|Attempt to convert a value \(None\) with an unsupported type \(<class 'NoneType'>\)"
    r"|Received: None \(of type <class 'NoneType'>\)|'NoneType' object does not support"
    r"|Argument `fetch` = None has invalid type"
    r"|invalid value None of type <class 'NoneType'>|Got 'None' \(of type <class 'NoneType'>\)"
    r"|(?:int|float)\(\) argument must be a .* not 'NoneType'"
    r"|path should be string, bytes, os\.PathLike or integer, not NoneType"
)
_CONFIG = re.compile(r"The `get_config\(\)` method of <(\w+)\b.* should return a dict\. It returned: None")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if something in the failing line is None, and the source says by which line."""
    config = _CONFIG.search(situation.message)
    if config is not None:
        return _of_config(situation, config[1])
    said, spot, statement = _SAID.search(situation.message), situation.last, situation.statement
    if said is None or spot is None or statement is None:
        return None
    for node in _nones(statement, spot, said[1] or ""):
        found = _of_call(spot, statement, node) if isinstance(node, ast.Call) else _of_name(situation, spot, node)
        if found is not None:
            return found
    return None


def _nones(statement: ast.stmt, spot: Spot, attribute: str) -> Iterator[ast.expr]:
    """What is None in a statement, or may be: names and attributes, and calls of methods that work in place."""
    if isinstance(statement, ast.AugAssign) and not attribute:
        yield from (one for one in (statement.target,) if _is_none(one, spot))
    header = statement.iter if isinstance(statement, ast.For) else statement
    header = header.test if isinstance(header, (ast.If, ast.While)) else header
    for one in ast.walk(header):
        if attribute and not (isinstance(one, ast.Attribute) and one.attr == attribute):
            continue
        node = one.value if attribute and isinstance(one, ast.Attribute) else one
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            if _is_none(node, spot):
                yield node
        elif isinstance(node, ast.Call) and (works_in_place(node) or called(node) == "get"):
            yield node


def _is_none(node: ast.expr, spot: Spot) -> bool:
    """Whether a name or an attribute is there, and is None."""
    if isinstance(node, ast.Name):
        return (node.id in spot.variables or node.id in spot.module) and spot.value(node.id) is None
    return (
        isinstance(node, ast.Attribute) and node.attr in _held_by(lookup(node.value, spot))
        and lookup(node, spot) is None
    )  # fmt: skip


def _held_by(owner: Any) -> dict[str, Any]:
    try:
        return dict(vars(owner))
    except TypeError:
        return {}


def _of_call(spot: Spot, statement: ast.stmt, call: ast.Call) -> Explanation | None:
    """`for name in names.sort():` and `config.get("size") * 2`, where the call itself stands in the failing line."""
    if called(call) == "get":
        return _asked_key(spot, call)
    if not isinstance(statement, ast.For) or statement.iter is not call or not isinstance(call.func, ast.Attribute):
        return None
    owner, source = call.func.value, spot.source
    if not isinstance(owner, (ast.Name, ast.Attribute)):
        return None
    blanks = indent_of(source.lines[statement.lineno - 1])
    mixed = call.args[0] if called(call) == "shuffle" and len(call.args) == 1 else owner
    if not isinstance(mixed, (ast.Name, ast.Attribute)):
        return None
    placed = source.replaced({call: source.text(mixed)})
    if placed is None:
        return None
    lines = (f"{blanks}{source.text(call)}", *placed[2].split("\n"))
    return Explanation(
        RULE, spot.file, spot.line, _in_place(source, call), Edit(spot.file, placed[0], placed[1], lines)
    )


def _in_place(source: Source, call: ast.Call, name: str = "") -> str:
    assert isinstance(call.func, ast.Attribute)
    given = short(source.text(changed(call)), 30)
    what = "mixes its argument" if call.func.attr == "shuffle" else f"changes {given}"
    return f"{called(call)} {what} itself, and gives None{f': {name} is None' if name else ''}."


def _of_name(situation: Situation, spot: Spot, node: ast.expr) -> Explanation | None:
    """What is said of a name or an attribute that is None."""
    name = dotted(node)
    made = _last_set(spot, name)
    if made is not None:
        file, source, value = spot.file, spot.source, made.value
        if works_in_place(value):
            edit = apart(file, source, made, value)
            return Explanation(RULE, file, made.lineno, _in_place(source, value, name), edit)
        if isinstance(value, ast.Call) and (function := _own_function(situation, spot, value)) is not None:
            return _without_return(*function, value, name)
        if isinstance(value, ast.Call) and called(value) == "latest_checkpoint":
            return _without_checkpoint(spot, value, name)
        return _asked_key(spot, value, name) if isinstance(value, ast.Call) else None
    if isinstance(node, ast.Attribute):
        return _of_attribute(situation, spot, node)
    return _of_parameter(situation, spot, name)


def _of_parameter(situation: Situation, spot: Spot, name: str) -> Explanation | None:
    """A parameter that is None: what the call in the frame around gave for it, where that is known to be None."""
    outer, function = situation.outer(spot), spot.function
    statement = outer.statement if outer is not None else None
    if not isinstance(function, ast.FunctionDef) or name not in parameters(function) or outer is None:
        return None
    made = [one for one in calls(statement) if called(one) == function.name] if statement is not None else []
    place = parameters(function).index(name)
    given = [argument(one, place, name) for one in made]
    value = given[0] if len(given) == 1 else None
    if not isinstance(value, (ast.Name, ast.Attribute)) or not _is_none(value, outer):
        return None
    return _of_name(situation, outer, value)


def _last_set(spot: Spot, name: str) -> ast.Assign | None:
    """The assignment that gave a name its value: the last above the line, or of the module."""
    scope = spot.function if name in spot.variables or "." in name else None
    every = [
        one for one in own_nodes(scope or spot.source.tree)
        if isinstance(one, ast.Assign) and [dotted(target) for target in one.targets] == [name]
    ]  # fmt: skip
    if not every and "." not in name:
        every = [
            one for one in own_nodes(spot.source.tree)
            if isinstance(one, ast.Assign) and [dotted(target) for target in one.targets] == [name]
        ]  # fmt: skip
    above = [one for one in every if one.lineno < spot.line]
    if above and works_in_place(above[-1].value):
        return above[-1]
    same = [one for one in every if one.lineno == spot.line]  # `xs = xs.append(x)` in a loop
    if same and above and not any(isinstance(one, (ast.For, ast.While)) for one in spot.source.around(same[-1])):
        return above[-1]  # `keep = keep[:9]` reads what the line above it gave
    return (same or above or every)[-1] if every else None


def _own_function(situation: Situation, spot: Spot, call: ast.Call) -> tuple[str, Source, ast.FunctionDef] | None:
    """The function of the user's that a call runs, found by its name: of a layer or a model, its `call`."""
    layer = lookup(call.func, spot)
    kind = (
        dotted(call.func.func) if isinstance(call.func, ast.Call) else type(layer).__name__ if layer is not None else ""
    )
    owner = dotted(call.func).rpartition(".")[0]
    name = called(call) if not owner or owner == "self" else ""
    for file, source in situation.sources():
        found = [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
        found += [
            method for one in ast.walk(source.tree) if isinstance(one, ast.ClassDef) and one.name == kind
            for method in one.body if isinstance(method, ast.FunctionDef) and method.name == "call"
        ]  # fmt: skip
        if len(found) == 1:
            return file, source, found[0]
    return None


def _without_return(
    file: str, source: Source, function: ast.FunctionDef, call: ast.Call, name: str
) -> Explanation | None:
    """A function that ends without a `return`, or does so on a way through it."""
    if any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in own_nodes(function)):
        return None
    last = function.body[-1]
    if not ends_without_return(function):
        return None
    if return_values(function):
        cause = (
            f"{function.name} gave None: it returns a value on some ways only, and can come to its end without one "
            f"(line {way_out(last)})."
        )
        advice = f"Return something there too, or raise an error that says why {function.name} has nothing."
        return Explanation(RULE, file, function.lineno, cause, None, advice)
    cause = f"{function.name} has no return: it gives None, and {name} is None."
    edit = with_return(file, source, function)
    advice = "" if edit is not None else f"Return at its end what {name} should be."
    return Explanation(RULE, file, function.lineno, cause, edit, advice, "likely" if edit is not None else "measured")


def _without_checkpoint(spot: Spot, call: ast.Call, name: str) -> Explanation:
    """`tf.train.latest_checkpoint(folder)` of a folder without one."""
    given = spot.source.text(call.args[0]) if call.args else "the folder"
    cause = (
        f"{name} is None: there is no checkpoint in {short(given, 40)}. latest_checkpoint reads the file named "
        "checkpoint, which tf.train.Checkpoint writes and save_weights of Keras 3 does not."
    )
    return Explanation(
        RULE, spot.file, call.lineno, cause, None, f"Give the file itself, or test `if {name} is not None` first."
    )


def _asked_key(spot: Spot, call: ast.Call, name: str = "") -> Explanation | None:
    """`config.get("batch_size")` of a dict without that key."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "get" or len(call.args) != 1:
        return None
    owner, key = lookup(func.value, spot), call.args[0]
    if type(owner) is not dict or not isinstance(key, ast.Constant) or key.value in owner:
        return None
    listed = short(", ".join(repr(one) for one in owner if type(one) in (str, int)), 60)
    text = spot.source.text(func.value)
    cause = f"{text} has no key {key.value!r}, and {text}.get gives None{f': {name} is None' if name else ''}. "
    cause += f"It has {listed}."
    return Explanation(RULE, spot.file, call.lineno, cause, None, f"Ask for one of these, or give {text} that key.")


def _of_attribute(situation: Situation, spot: Spot, node: ast.Attribute) -> Explanation | None:
    """`self.sess` that is None since `__init__`: by a default, or until a method sets it."""
    owner, name = lookup(node.value, spot), node.attr
    kind = type(owner).__name__
    for file, source in situation.sources():
        for made in (one for one in ast.walk(source.tree) if isinstance(one, ast.ClassDef) and one.name == kind):
            methods = [one for one in made.body if isinstance(one, ast.FunctionDef)]
            begins = next((one for one in methods if one.name == "__init__"), None)
            given = _kept(begins, name) if begins is not None else None
            if begins is None or given is None:
                continue
            text = spot.source.text(node)
            tested = _tested(source, begins, name)
            if tested is not None:
                return _of_default(situation, spot, text, kind, begins, tested, file)
            setters = [one for one in methods if one is not begins and _kept(one, name) is not None]
            if isinstance(given, ast.Constant) and given.value is None and setters:
                cause = f"{text} is None: {kind} begins so (line {given.lineno}), and {setters[0].name} sets it."
                return Explanation(RULE, spot.file, spot.line, cause, None, f"Call {setters[0].name} before.")
            if isinstance(given, ast.Name) and given.id in parameters(begins):
                return _of_default(situation, spot, text, kind, begins, given.id, file)
    return None


def _tested(source: Source, begins: ast.FunctionDef, name: str) -> str | None:
    """The parameter by which `__init__` decides that `self.name` is None: `if size is not None: ... else: ...`."""
    for one in own_nodes(begins):
        if not isinstance(one, ast.Assign) or [dotted(target) for target in one.targets] != [f"self.{name}"]:
            continue
        around = source.parent(one)
        if not isinstance(one.value, ast.Constant) or one.value.value is not None or not isinstance(around, ast.If):
            continue
        asked = {part.id for part in ast.walk(around.test) if isinstance(part, ast.Name)}
        if len(asked) == 1 and asked <= {*parameters(begins)}:
            return asked.pop()
    return None


def _kept(method: ast.FunctionDef, name: str) -> ast.expr | None:
    """What a method puts into `self.name`."""
    for one in own_nodes(method):
        if isinstance(one, ast.Assign) and len(one.targets) == 1:
            target, value = one.targets[0], one.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                for each, part in zip(target.elts, value.elts):
                    if dotted(each) == f"self.{name}":
                        return part
            elif dotted(target) == f"self.{name}":
                return value
    return None


def _of_default(
    situation: Situation, spot: Spot, text: str, kind: str, begins: ast.FunctionDef, parameter: str, file: str
) -> Explanation | None:
    """An attribute that is a parameter of `__init__`, which is None: by its default, or as it was given."""
    made = [
        (own, source, one) for own, source in situation.sources() for one in calls(source.tree) if called(one) == kind
    ]  # fmt: skip
    place = parameters(begins).index(parameter)
    without = [
        (own, one) for own, _, one in made
        if len(one.args) <= place and parameter not in [each.arg for each in one.keywords]
        and None not in [each.arg for each in one.keywords]
    ]  # fmt: skip
    if len(made) == 1 and not without:
        own, source, one = made[0]
        given = next((each.value for each in one.keywords if each.arg == parameter), None)
        given = given or (one.args[place] if len(one.args) > place else None)
        if given is None:
            return None
        cause = f"{text} is None: {kind}(...) in line {one.lineno} was given {source.text(given)} as {parameter}, "
        return Explanation(
            RULE, own, one.lineno, f"{cause}which was None then.", None,
            f"Make it before {kind} is made, or set it later.",
        )  # fmt: skip
    if not without:
        return None
    own, one = without[0]
    cause = f"{text} is None: {kind}(...) was made without {parameter}, whose default is None (line {begins.lineno})."
    new = edit_of(own, read(own).replaced({one: read(own).with_argument(one, f"{parameter}={parameter}")}))
    known = spot.module.get(parameter) is not None
    edit = new if known and own == file else None
    return Explanation(
        RULE, own, one.lineno, cause, edit, "" if edit is not None else f"Give it there: {kind}(..., {parameter}=...)."
    )


def _of_config(situation: Situation, kind: str) -> Explanation | None:
    """`get_config` of a class that returns nothing, or what `update` gave."""
    for file, source in situation.sources():
        for made in (one for one in ast.walk(source.tree) if isinstance(one, ast.ClassDef) and one.name == kind):
            for method in (one for one in made.body if isinstance(one, ast.FunctionDef) and one.name == "get_config"):
                return _config(file, source, method, kind)
    return None


def _config(file: str, source: Source, method: ast.FunctionDef, kind: str) -> Explanation | None:
    last, values = method.body[-1], return_values(method)
    if not values:
        name = result(last)
        blanks, line = indent_of(source.lines[last.lineno - 1]), last.end_lineno or last.lineno
        edit = Edit(file, line + 1, line, (f"{blanks}return {name}",)) if name else None
        cause = f"get_config of {kind} has no return, and Keras takes a dict of it."
        return Explanation(RULE, file, method.lineno, cause, edit, "" if edit else "Return the dict.")
    value = values[0]
    if len(values) == 1 and works_in_place(value) and isinstance(last, ast.Return):
        blanks = indent_of(source.lines[last.lineno - 1])
        owner, text = source.text(value.func.value), source.text(value)  # type: ignore[attr-defined]
        plain = isinstance(value.func.value, ast.Name)  # type: ignore[attr-defined]
        first = [] if plain else [f"{blanks}config = {owner}"]
        name = owner if plain else "config"
        lines = [*first, f"{blanks}{name}{text[len(owner) :]}", f"{blanks}return {name}"]
        edit = Edit(file, last.lineno, last.end_lineno or last.lineno, tuple("\n".join(lines).split("\n")))
        return Explanation(RULE, file, last.lineno, _in_place(source, value), edit)
    sets = [
        one for one in own_nodes(method)
        if isinstance(one, ast.Assign) and [dotted(each) for each in one.targets] == [dotted(value)]
    ]  # fmt: skip
    given = sets[0].value if len(sets) == 1 else None
    if not works_in_place(given):
        return None
    edit = apart(file, source, sets[0], given)
    return Explanation(RULE, file, sets[0].lineno, _in_place(source, given, dotted(value)), edit)
