"""Layers, weights and variables that a layer or a model makes in its `call`: new ones each time that it is traced.

They go into `__init__`, or into `build` where they need the shape of what the layer is given.
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass, replace
from typing import Any

from pyfunc_debug.doctor.failures.models.repeated_calls import lines_said, loop_around, passed, repeated
from pyfunc_debug.doctor.failures.models.weights_of_build import SHAPE, Shaped, as_weight
from pyfunc_debug.doctor.failures.paired.layers import is_layer
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, together
from pyfunc_debug.doctor.failures.pastes.wrapping import replace_expression
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, of_keras, root_is
from pyfunc_debug.program.syntax import copied

RULE = "variable-in-function"
_MOST = 30
"""Lines from the end of __init__ to the last that changes."""
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)


_NO_PAIRS = "not enough values to unpack (expected 2, got 0)"
_TRAINABLE = ("trainable_variables", "trainable_weights", "variables", "weights")

_WITHOUT = re.compile(r"Dropout|ReLU|Flatten|Reshape|Pool|Activation|Concatenate|Add|Multiply|Padding|Permute|Softmax")
"""Layers without weights."""


@dataclass(frozen=True)
class _Made:
    """A call that makes a layer or a variable, and the statement that gives it a name; None for `Dense(2)(x)`."""

    call: ast.Call
    kind: str
    statement: ast.Assign | None

    @property
    def target(self) -> str:
        return "" if self.statement is None else dotted(self.statement.targets[0])


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the line that failed makes a layer or a weight, or calls one that the function made."""
    for spot in reversed(situation.spots):
        function, statement = spot.function, spot.statement
        owner = spot.variables.get("self")
        if not isinstance(function, ast.FunctionDef) or statement is None or not is_layer(owner):
            continue
        made, inside = _made(function, spot), set(calls(statement))
        here = [one for one in made if one.call in inside or one.target in names(statement)]
        here += [one for one in made if one.target.startswith("self.") and one.target in spot.source.text(statement)]
        if function.name in ("__init__", "build"):
            continue
        uses = repeated(spot.source, function)
        if here:
            first = next((one for one in here if not _WITHOUT.search(dotted(one.call.func))), here[0])
            if uses and first.kind == "layer":
                return _for_each_call(spot, function, first, made, uses)
            return _explanation(spot, function, first, made)
        edit = _listed(spot, function)
        if edit is not None and not uses:
            one = next(one for one in calls(function) if _is_class(one.func, spot))
            return Explanation(RULE, spot.file, one.lineno, _cause(spot, function, one), edit)
    return None


def of_function(spot: Spot, function: ast.FunctionDef) -> Explanation | None:
    """The same in a function that is none of a class: its layers, made above it.

    Args:
      spot: Its frame.
      function: The function: the tf.function, or one that is called in one place.
    """
    source = spot.source
    every = [one for one in _made(function, spot) if one.kind == "layer"]
    called = [one for one in calls(source.tree) if dotted(one.func) == function.name]
    if (
        not every
        or isinstance(source.parent(function), ast.ClassDef)
        or (not function.decorator_list and (len(called) > 1 or any(_in_a_loop(source, one) for one in called)))
        or _is_called_twice_in_a_graph(source, called)
    ):
        return None
    taken = {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}
    pieces, lines, dropped = dict[ast.expr, str](), list[str](), list[ast.stmt]()
    for one in every:
        looped = any(isinstance(part, _LOOPS) and part in ast.walk(function) for part in source.around(one.call))
        if looped or _needs(one.call, function) or (one.statement is not None and not _once(source, function, one)):
            return None
        if one.statement is None:
            name = _attribute(dotted(one.call.func).rpartition(".")[2], taken)
            pieces[one.call] = name
        else:
            name = one.target
            dropped.append(one.statement)
        taken.add(name)
        lines.append(f"{name} = {source.text(one.call)}")
    first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
    blanks = indent_of(source.lines[first - 1])
    above = Edit(spot.file, first, first - 1, tuple(f"{blanks}{line}" for line in "\n".join(lines).split("\n")))
    cause = _cause(spot, function, every[0].call, "layer", f"above {function.name}")
    edits = [above, *_uses(spot, function, pieces, dropped)]
    return Explanation(RULE, spot.file, every[0].call.lineno, cause, together(edits, source.lines))


def _in_a_loop(source: Source, call: ast.Call) -> bool:
    around = next((one for one in source.around(call) if isinstance(one, (ast.FunctionDef, ast.Module))), None)
    return loop_around(source, call, around) is not None


def _is_called_twice_in_a_graph(source: Source, called: list[ast.Call]) -> bool:
    """Whether another function that is decorated, and so may be a tf.function, calls one more than once."""
    for one in ast.walk(source.tree):
        if isinstance(one, ast.FunctionDef) and one.decorator_list:
            parts = set(ast.walk(one))
            inside = [each for each in called if each in parts]
            if len(inside) > 1 or any(_in_a_loop(source, each) for each in inside):
                return True
    return False


def without_variables(situation: Situation) -> Explanation | None:
    """The same in eager code, where nothing fails until an optimizer is given the model's variables: it has none."""
    spot, statement = situation.last, situation.statement
    if situation.message != _NO_PAIRS or spot is None or statement is None:
        return None
    asked = [one.value for one in ast.walk(statement) if isinstance(one, ast.Attribute) and one.attr in _TRAINABLE]
    models = {spot.source.text(one): model for one in asked if is_layer(model := lookup(one, spot))}
    if len(models) != 1 or not any(dotted(one.func).endswith(".apply_gradients") for one in calls(statement)):
        return None
    ((name, model),) = models.items()
    for holder in ast.walk(spot.source.tree):
        if not isinstance(holder, ast.ClassDef) or holder.name != type(model).__name__:
            continue
        for function in holder.body:
            if isinstance(function, ast.FunctionDef) and function.name in ("call", "__call__"):
                inner = replace(spot, line=function.lineno, variables={"self": model})
                every = _made(function, inner)
                return _untracked(inner, function, every, name) if every else None
    return None


def _untracked(spot: Spot, function: ast.FunctionDef, every: list[_Made], model: str) -> Explanation:
    first = next((one for one in every if not _WITHOUT.search(dotted(one.call.func))), every[0])
    where = "build" if any(one.kind != "layer" or _needs(one.call, function) for one in every) else "__init__"
    cause = (
        f"{model} has no trainable variables: `{short(spot.source.text(first.call), 40)}` makes another "
        f"{'layer' if first.kind == 'layer' else 'variable'} in each call, which is gone after it. Made in {where} it "
        "is the model's own, and is trained."
    )
    edit = _moved(spot, function, every)
    advice = (
        "" if edit is not None else f"Make it in {where}, as an attribute of self, and use that in {function.name}."
    )
    return Explanation(RULE, spot.file, first.call.lineno, cause, edit, advice)


def in_lambda(situation: Situation) -> Explanation | None:
    """The same in a function that a Lambda layer was given: Keras does not train what it makes."""
    spot = situation.last
    if spot is None or "Lambda.call()" not in situation.text:
        return None
    name, text = getattr(spot.function, "name", ""), spot.source.text
    for one in calls(spot.source.tree):
        made = one.func
        if not isinstance(made, ast.Call) or not _is_class(made.func, spot) or len(made.args) != 1 or made.keywords:
            continue
        function, lines = made.args[0], range(one.lineno, (one.end_lineno or one.lineno) + 1)
        ran = dotted(function) == name if name else isinstance(function, ast.Lambda) and spot.line in lines
        if dotted(made.func).rpartition(".")[2] != "Lambda" or not ran or len(one.args) != 1 or one.keywords:
            continue
        cause = (
            f"The Lambda layer traces {name or 'its function'}, which makes variables each time: only the first trace "
            "may make them, and Keras trains none of a Lambda's. Called without the Lambda its layers are the model's."
        )
        given = f"({text(function)})" if isinstance(function, ast.Lambda) else text(function)
        edit = replace_expression(spot, one, f"{given}({text(one.args[0])})")
        return Explanation(RULE, spot.file, one.lineno, cause, edit)
    return None


def _made(function: ast.FunctionDef, spot: Spot) -> list[_Made]:
    """Calls that make a layer which is called at once (`Conv2D(8, 3)(x)`), or that give one, or a weight, a name."""
    found, source = list[_Made](), spot.source
    for one in calls(function):
        parent = source.parent(one)
        target = parent.targets[0] if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
        named = isinstance(target, ast.Name) or (isinstance(target, ast.Attribute) and dotted(target.value) == "self")
        kind = "layer" if _is_class(one.func, spot) else "weight" if dotted(one.func) == "self.add_weight" else ""
        if not kind and root_is(one.func, spot, "tensorflow") and dotted(one.func).endswith(".Variable"):
            kind = "variable"
        at_once = isinstance(parent, ast.Call) and parent.func is one and kind == "layer"
        ifs = [part for part in source.around(one) if isinstance(part, ast.If) and part in ast.walk(function)]
        if kind and all(_of_first_call(part, function) for part in ifs) and (at_once or named):
            found.append(_Made(one, kind, parent if isinstance(parent, ast.Assign) and not at_once else None))
    return sorted(found, key=lambda one: (one.call.lineno, one.call.col_offset))


def _of_first_call(block: ast.If, function: ast.FunctionDef) -> bool:
    """`if self.dense is None: self.dense = Dense(1)`: of the first call, which Keras 3 refuses, too."""
    test = ast.unparse(block.test)
    kept = [dotted(one.targets[0]) for one in block.body if isinstance(one, ast.Assign) and len(one.targets) == 1]
    asks = any(
        test in (f"{one} is None", f"not {one}", f"not hasattr(self, '{one[5:]}')", "not self.built") for one in kept
    )
    whole = len(kept) == len(block.body) and not block.orelse and all(one.startswith("self.") for one in kept)
    return asks and whole and block in function.body


def _is_class(node: ast.expr, spot: Spot) -> bool:
    value: Any = spot.value(dotted(node).partition(".")[0])
    for part in dotted(node).split(".")[1:]:
        value = getattr(value, part, None)
    return isinstance(value, type) and of_keras(value, "Layer")


def _explanation(spot: Spot, function: ast.FunctionDef, made: _Made, every: list[_Made]) -> Explanation | None:
    if made.kind == "variable" and _changes(function, made.target):
        return None
    late = [one for one in every if one.kind != "layer" or _needs(one.call, function)]
    where = "build" if any(_loop(spot.source, function, one) is None for one in late) else "__init__"
    looped = made.kind == "layer" and loop_around(spot.source, made.call, function) is not None
    cause = _cause(spot, function, made.call, made.kind, f"in {where}", looped)
    edit = _moved(spot, function, every)
    advice = f"Make it in {where}, as an attribute of self, and use that here."
    if looped:
        advice = f"Make a list of them in {where}, one for each turn, and call its items here."
    advice = "" if edit is not None else advice
    return Explanation(RULE, spot.file, made.call.lineno, cause, edit, advice)


def _cause(
    spot: Spot,
    function: ast.FunctionDef,
    call: ast.Call,
    kind: str = "layer",
    where: str = "in __init__",
    looped: bool = False,
) -> str:
    what = {"layer": "a layer, and with it variables,"}.get(kind, "a variable")
    one = f"it is one {'layer' if kind == 'layer' else 'weight'}, which is trained"
    if looped:
        one = "they are a list, a layer for each turn of the loop, and are trained"
    return (
        f"`{short(spot.source.text(call), 40)}` makes {what} each time that {function.name} is "
        f"traced: only the first trace may make them, and each would have others. Made {where} {one}."
    )


def _for_each_call(
    spot: Spot, function: ast.FunctionDef, made: _Made, every: list[_Made], uses: list[ast.Attribute]
) -> Explanation:
    """Layers of a method that runs more than once in a call: one in `__init__` would be shared."""
    source, name = spot.source, function.name
    edit = _moved_for_each(spot, function, every, uses)
    where = lines_said([one.lineno for one in uses])
    looped = len(uses) == 1 and loop_around(source, uses[0], None) is not None
    cause = (
        f"`{short(source.text(made.call), 40)}` makes a layer, and with it variables, each time that {name} runs: only "
        f"the first trace may make them. {name} may run more than once in a call ({where}{', in a loop' * looped})"
        + (
            ": each takes its own, of a list made in __init__."
            if edit is not None
            else ", and one layer made in __init__ would be shared by all of them."
        )
    )
    advice = "" if edit is not None else (
        f"Make a list of as many layers in __init__ as {name} runs, and give {name} the one to call; or one layer "
        "there, if they are to share its weights."
    )  # fmt: skip
    return Explanation(RULE, spot.file, made.call.lineno, cause, edit, advice)


def _moved_for_each(
    spot: Spot, function: ast.FunctionDef, every: list[_Made], uses: list[ast.Attribute]
) -> Edit | None:
    """Lists of layers, made at the end of __init__, and an index that the method is given in each of its calls."""
    source, holder = spot.source, spot.source.parent(function)
    given = passed(source, function, uses)
    if given is None or not isinstance(holder, ast.ClassDef) or _calls_itself(holder, function.name):
        return None
    taken = {one.attr for one in ast.walk(holder) if isinstance(one, ast.Attribute)} | set(dir(spot.variables["self"]))
    pieces, lines, dropped = dict(given.pieces), list[str](), list[ast.stmt]()
    for one in every:
        inside = any(
            isinstance(part, (*_LOOPS, ast.If)) and part in ast.walk(function) for part in source.around(one.call)
        )
        if one.kind != "layer" or inside or _needs(one.call, function) or "." in one.target:
            return None
        if one.statement is not None and not _once(source, function, one):
            return None
        name = _attribute(f"{one.target or _snake(dotted(one.call.func).rpartition('.')[2])}s", taken)
        taken.add(name)
        lines.append(f"self.{name} = [{source.text(one.call)} for _ in {given.over}]")
        own = f"self.{name}[{given.name}]"
        if one.statement is None:
            pieces[one.call] = own
            continue
        dropped.append(one.statement)
        pieces |= {
            part: own for part in ast.walk(function)
            if isinstance(part, ast.Name) and part.id == one.target and isinstance(part.ctx, ast.Load)
        }  # fmt: skip
    added = _method(spot, holder, function, "__init__", lines)
    if added is None:
        return None
    # what goes above a line comes last: the method may begin below __init__
    edits = [replace(given.header, file=spot.file), *_uses(spot, function, pieces, dropped), added]
    first, last = min(one.first for one in edits), max(one.last for one in edits)
    return together(edits, source.lines) if last - first <= _MOST else None


def _changes(function: ast.FunctionDef, name: str) -> bool:
    return any(dotted(one.func).startswith(f"{name}.assign") for one in calls(function))


def _needs(call: ast.AST, function: ast.FunctionDef) -> set[str]:
    """Names of the function's that a call needs."""
    local = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)} - {"self"}
    local |= {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return local & {one.id for one in ast.walk(call) if isinstance(one, ast.Name)}


def _moved(spot: Spot, function: ast.FunctionDef, every: list[_Made]) -> Edit | None:
    """All layers and weights of the method, made at the end of __init__ or build, and used by their attributes."""
    source = spot.source
    holder = source.parent(function)
    if not isinstance(holder, ast.ClassDef) or _calls_itself(holder, function.name):
        return None
    taken = {one.attr for one in ast.walk(holder) if isinstance(one, ast.Attribute)} | set(dir(spot.variables["self"]))
    into: dict[str, list[str]] = {"__init__": [], "build": []}
    pieces, dropped = dict[ast.expr, str](), list[ast.stmt]()
    turns = dict[ast.For, list[str]]()
    for one in every:
        if any(isinstance(part, _LOOPS) for part in source.around(one.call)):
            loop, name = _loop(source, function, one), _attribute_of(one, taken)
            if loop is None or name in names(loop):
                return None
            taken.add(name)
            of = f"for {source.text(loop.target)} in {source.text(loop.iter)}"
            into["__init__"].append(f"self.{name} = [{source.text(one.call)} {of}]")
            turns.setdefault(loop, []).append(name)
            pieces[one.call] = name
            continue
        needed = _needs(one.call, function)
        text = _text(spot, function, one, bool(needed))
        name = _attribute_of(one, taken)
        if text is None or (one.statement is not None and not _once(source, function, one)):
            return None
        taken.add(name)
        into["build" if needed or one.kind != "layer" else "__init__"].append(f"self.{name} = {text}")
        if one.statement is None:
            pieces[one.call] = f"self.{name}"
            continue
        block = source.parent(one.statement)
        dropped += [part for part in [block if isinstance(block, ast.If) else one.statement] if part not in dropped]
        if isinstance(one.statement.targets[0], ast.Name):
            pieces |= {
                part: f"self.{name}" for part in ast.walk(function)
                if isinstance(part, ast.Name) and part.id == one.target and isinstance(part.ctx, ast.Load)
            }  # fmt: skip
    edits = list[Edit]()
    for method, lines in into.items():
        added = _method(spot, holder, function, method, lines) if lines else None
        if lines and added is None:
            return None
        same = [one for one in edits if added is not None and (one.first, one.last) == (added.first, added.last)]
        if same and added is not None:  # two methods that are not there yet
            edits = [Edit(spot.file, added.first, added.last, (*same[0].lines, *added.lines))]
        elif added is not None:
            edits.append(added)
    for loop, layers in turns.items():
        every_turn = ", ".join([source.text(loop.iter), *(f"self.{one}" for one in layers)])
        target = source.text(loop.target)
        target = f"({target})" if isinstance(loop.target, ast.Tuple) and not target.startswith("(") else target
        pieces[loop.target], pieces[loop.iter] = ", ".join([target, *layers]), f"zip({every_turn})"
    edits += _uses(spot, function, pieces, dropped)
    first, last = min(one.first for one in edits), max(one.last for one in edits)
    return together(edits, source.lines) if last - first <= _MOST else None


def _loop(source: Source, function: ast.FunctionDef, made: _Made) -> ast.For | None:
    """The loop of a method that makes a layer in each turn, calls it at once, and is known before the call."""
    loops = [one for one in source.around(made.call) if isinstance(one, _LOOPS)]
    loop = loops[0] if len(loops) == 1 and loops[0] in function.body else None
    if not isinstance(loop, ast.For) or made.kind != "layer" or made.statement is not None:
        return None
    turned = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    needed = (_needs(made.call, function) - turned) | _needs(loop.iter, function)
    stored = [one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
    return None if needed or any(stored.count(one) > 1 for one in turned) else loop


def _listed(spot: Spot, function: ast.FunctionDef) -> Edit | None:
    """Lists of layers that a method fills before it calls them, filled at the end of __init__ instead."""
    source, holder = spot.source, spot.source.parent(function)
    if not isinstance(holder, ast.ClassDef) or _calls_itself(holder, function.name):
        return None
    filled = dict[ast.stmt, str]()
    for one in function.body:
        makes = [each for each in calls(one) if _is_class(each.func, spot)]
        if not makes or any(isinstance(part := source.parent(each), ast.Call) and part.func is each for each in makes):
            continue
        into = {
            dotted(each.func.value) for each in calls(one)
            if isinstance(each.func, ast.Attribute) and each.func.attr == "append"
        }  # fmt: skip
        if isinstance(one, ast.Assign) and isinstance(one.value, (ast.List, ast.ListComp)):
            into = {dotted(each) for each in one.targets}
        if len(into) != 1 or not isinstance(one, (ast.For, ast.Expr, ast.Assign)):
            return None
        filled[one] = into.pop()
    lists = set(filled.values())
    begun = [
        one for one in function.body if isinstance(one, ast.Assign) and len(one.targets) == 1
        and dotted(one.targets[0]) in lists and isinstance(one.value, ast.List) and not one.value.elts
    ]  # fmt: skip
    moved = [one for one in function.body if one in filled or one in begun]
    own = {one.id for part in moved for one in ast.walk(part) if isinstance(one, ast.Name)}
    stored = [one for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
    inside = {one.id for part in moved for one in ast.walk(part) if one in stored}
    given = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)} - {"self"}
    taken = {one.attr for one in ast.walk(holder) if isinstance(one, ast.Attribute)} | set(dir(spot.variables["self"]))
    if not lists or "" in lists or own & ((given | {one.id for one in stored}) - inside):
        return None
    renamed = {name: f"self.{_attribute(name, taken)}" for name in lists if "." not in name}
    pieces: dict[ast.expr, str] = {
        one: renamed[one.id] for one in ast.walk(function) if isinstance(one, ast.Name) and one.id in renamed
    }  # fmt: skip
    lines = [
        line for part in moved
        for line in textwrap.dedent("\n".join(source.spliced(
            {node: text for node, text in pieces.items() if node in set(ast.walk(part))},
            part.lineno, part.end_lineno or part.lineno,
        ))).split("\n")
    ]  # fmt: skip
    added = _method(spot, holder, function, "__init__", lines)
    if added is None:
        return None
    edits = [added, *_uses(spot, function, pieces, moved)]
    first, last = min(one.first for one in edits), max(one.last for one in edits)
    return together(edits, source.lines) if last - first <= _MOST else None


def _calls_itself(holder: ast.ClassDef, name: str) -> bool:
    return sum(isinstance(one, ast.FunctionDef) and one.name == name for one in holder.body) > 1


def _once(source: Source, function: ast.FunctionDef, made: _Made) -> bool:
    """Whether a name is given once in the function, by a statement of its own or one of the first call."""
    stores = [
        one for one in ast.walk(function)
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Store) and dotted(one) == made.target
    ]  # fmt: skip
    block = source.parent(made.call if made.statement is None else made.statement)
    return len(stores) == 1 and (
        made.statement in function.body or (isinstance(block, ast.If) and block in function.body)
    )


def _attribute_of(made: _Made, taken: set[str]) -> str:
    if made.target.startswith("self."):
        return made.target.removeprefix("self.")
    return _attribute(made.target or dotted(made.call.func).rpartition(".")[2], taken)


def _text(spot: Spot, function: ast.FunctionDef, made: _Made, needs: bool) -> str | None:
    """The call as `__init__` or `build` has it; None where it needs more than the shape of the first input."""
    call: ast.expr = made.call
    if needs:
        shaped = Shaped(function).visit(copied(call))
        if function.name != "call" or _needs(shaped, function):
            return None
        call = shaped
    if made.kind == "variable":
        return as_weight(spot, call)
    return spot.source.text(made.call) if call is made.call else ast.unparse(call)


def _method(spot: Spot, holder: ast.ClassDef, function: ast.FunctionDef, name: str, lines: list[str]) -> Edit | None:
    """Lines at the end of a method of the class, or the method with them above the function."""
    source = spot.source
    found = next((one for one in holder.body if isinstance(one, ast.FunctionDef) and one.name == name), None)
    if found is not None and found.lineno > function.lineno:
        return None
    if found is None:
        first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
        blanks = indent_of(source.lines[first - 1])
        head = (
            (f"{blanks}def __init__(self, **kwargs):", f"{blanks}    super().__init__(**kwargs)") if name == "__init__"
            else (f"{blanks}def build(self, {SHAPE}):",)
        )  # fmt: skip
        return Edit(spot.file, first, first - 1, (*head, *(f"{blanks}    {one}" for one in lines), ""))
    given = found.args.args[1].arg if len(found.args.args) > 1 else SHAPE
    last = found.body[-1]
    line = (last.end_lineno or last.lineno) + 1
    blanks = indent_of(source.lines[last.lineno - 1])
    texts = (re.sub(rf"\b{SHAPE}\b", given, one) for one in lines) if name == "build" else iter(lines)
    return Edit(spot.file, line, line - 1, tuple(f"{blanks}{one}" for one in texts))


def _uses(spot: Spot, function: ast.FunctionDef, pieces: dict[ast.expr, str], dropped: list[ast.stmt]) -> list[Edit]:
    """The function's statements with the attributes, and without those that are made elsewhere."""
    source: Source = spot.source
    edits = [Edit(spot.file, one.lineno, one.end_lineno or one.lineno, ()) for one in dropped]
    taken = {line for one in edits for line in range(one.first, one.last + 1)}
    groups: list[dict[ast.expr, str]] = []
    end = -1
    for node, text in sorted(pieces.items(), key=lambda one: (one[0].lineno, one[0].col_offset)):
        if node.lineno in taken:
            continue
        if node.lineno > end:
            groups.append({})
        groups[-1][node] = text
        end = max(end, node.end_lineno or node.lineno)
    for group in groups:
        first, last = min(one.lineno for one in group), max(one.end_lineno or one.lineno for one in group)
        edits.append(Edit(spot.file, first, last, source.spliced(group, first, last)))
    return edits


def _attribute(kind: str, taken: set[str]) -> str:
    """`batch_normalization` for BatchNormalization; with a number where that is taken."""
    name = _snake(kind)
    return next(one for one in (name, *(f"{name}_{number}" for number in range(2, 99))) if one not in taken)


def _snake(kind: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", "_", kind).lower()


__all__ = ["explain", "in_lambda"]
