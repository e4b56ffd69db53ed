"""One layer that is called in two places, or in each turn of a loop, on inputs of other sizes.

Its first call makes its variables, for the size of that input: Keras refuses every other size. Where only one place
calls it, the data is of another shape, which is another cause.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pyfunc_debug.doctor.failures.models.repeated_calls import (
    lines_said,
    loop_around,
    method_around,
    passed,
    repeated,
    turns,
)
from pyfunc_debug.doctor.failures.paired.layers import is_layer
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, together
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_keras, lookup, shape_of
from pyfunc_debug.interception.names.private import keras_layers

RULE = "structure"
_SAID = re.compile(
    r"Input \d+(?: with name '[^']*')? of layer '([^']+)' is incompatible with the layer: expected axis (-?\d+) of "
    r"input shape to have value (\d+), but received input with shape \(([^()]*)\)"
)
_PRELU = re.compile(r"Arguments received by PReLU\.call\(\):\n\s*. inputs=\S*Tensor\(shape=\(([^()]*)\)")
_MOST = 30
"""Lines from the first to the last that changes."""
_BRANCHES = (ast.If, ast.Try, ast.While, ast.For, ast.IfExp, ast.Match, ast.ExceptHandler)


@dataclass(frozen=True)
class _Sizes:
    """What Keras says: the layer's name, and the size that it has and gets.

    Attributes:
      layer: The name.
      axis: The axis that has another size.
      size: The size that it has.
      kept: "a last axis of 48".
      given: "12".
      inside: What is said of the layer, where the user's layer that is called twice has it inside.
    """

    layer: str
    axis: int
    size: int
    kept: str
    given: str
    inside: str = ""


@dataclass(frozen=True)
class _Called:
    """A call of the layer in a frame."""

    spot: Spot
    call: ast.Call
    layer: Any

    @property
    def source(self) -> Source:
        return self.spot.source

    @property
    def name(self) -> str:
        """How it is written: `self.bn`."""
        return dotted(self.call.func)

    @property
    def scope(self) -> ast.AST:
        """Where the call stands: its function, or the file."""
        return self.spot.function or self.source.tree

    def places(self, scope: ast.AST) -> list[ast.Call]:
        """The calls of the layer in a function, as they run."""
        found = [one for one in calls(scope) if dotted(one.func) == self.name]
        return sorted(found, key=lambda one: (one.end_lineno or 0, one.end_col_offset or 0))


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a layer refused its input as an earlier place of the same call gave it another size."""
    sizes = _sizes(situation)
    if sizes is None or situation.body or not situation.spots:
        return None
    spots = list(reversed(situation.spots))
    at, called = 0, _of_name(spots[0], sizes.layer)
    while called is not None:
        told = _told(called, spots[at + 1 :], sizes)
        owner = called.spot.variables.get("self")
        if told is not None or not is_layer(owner):
            return told
        at = next((place for place in range(at + 1, len(spots)) if spots[place].variables.get("self") is not owner), -1)
        if at < 0:
            return None
        inner = called
        called = _of_layer(spots[at], owner)
        if not sizes.inside:
            sizes = replace(sizes, inside=f"{inner.name} in it (line {inner.call.lineno})")
    return None


def _sizes(situation: Situation) -> _Sizes | None:
    said = _SAID.search(situation.message)
    if said is None:
        return _of_prelu(situation)
    name, axis, kept, shape = said.groups()
    sizes, place = [one.strip() for one in shape.split(",") if one.strip()], int(axis)
    if not -len(sizes) <= place < len(sizes) or not sizes[place].isdigit():
        return None
    return _sized(name, place, len(sizes), int(kept), sizes[place])


def _sized(name: str, axis: int, rank: int, kept: int, given: str) -> _Sizes:
    last = axis in (-1, rank - 1)
    return _Sizes(name, axis, kept, f"{'a last axis' if last else f'an axis {axis}'} of {kept}", given)


def _of_prelu(situation: Situation) -> _Sizes | None:
    """Of a PReLU, whose `alpha` has the sizes of its first input: Keras leaves it to an op to refuse others."""
    said, spot = _PRELU.search(situation.text), situation.last
    if said is None or spot is None:
        return None
    given = [one.strip() for one in said[1].split(",") if one.strip()]
    for one in calls(spot.statement or ast.Pass()):
        layer = lookup(one.func, spot) if dotted(one.func) else None
        kept = shape_of(vars(layer).get("alpha")) if is_layer(layer) and type(layer).__name__ == "PReLU" else None
        for axis, size in enumerate(kept or (), 1):
            if kept is None or len(given) != len(kept) + 1 or size in (None, 1):
                continue
            if given[axis].isdigit() and int(given[axis]) != size:
                return _sized(str(vars(layer).get("name")), axis, len(given), size, given[axis])
    return None


def _of_name(spot: Spot, name: str) -> _Called | None:
    """The one call in the frame's statement of the layer of that name, or of a layer of Keras' that has it inside."""
    statement = spot.statement
    found = [
        _Called(spot, one, layer) for one in calls(statement or ast.Pass())
        if dotted(one.func) and is_layer(layer := lookup(one.func, spot)) and name in _named(layer)
    ]  # fmt: skip
    # several in one statement, `bn(conv(bn(x)))`: the inner ones have run, or it would not be an outer one's size
    same = {id(one.layer) for one in found}
    if len(same) != 1:
        return None
    ordered = sorted(found, key=lambda one: (one.call.end_lineno or 0, one.call.end_col_offset or 0))
    return ordered[-1]


def _named(layer: Any) -> Iterator[str]:
    """The names of a layer, and of those that a Sequential or a wrapper of Keras' has inside."""
    for one in (layer, *(keras_layers(layer) or ()), vars(layer).get("layer")):
        if is_layer(one):
            yield str(vars(one).get("name"))


def _of_layer(spot: Spot, layer: Any) -> _Called | None:
    """The call in a frame's statement of a layer that is an object of the user's."""
    found = [one for one in calls(spot.statement or ast.Pass()) if dotted(one.func) and lookup(one.func, spot) is layer]
    return _Called(spot, found[-1], layer) if len(found) == 1 else None


def _told(called: _Called, outer: list[Spot], sizes: _Sizes) -> Explanation | None:
    """What is known of a call: an earlier place, an earlier turn of a loop, or an earlier run of the method."""
    spot, source = called.spot, called.source
    in_layer = is_layer(spot.variables.get("self")) and called.name.startswith("self.")
    if not in_layer and not _builds(spot):
        return None  # a model that is called on other data
    earlier = [
        one for one in called.places(called.scope)
        if _runs_before(one, called) and (one not in ast.walk(called.call) or _has(one, sizes, spot))
    ]  # fmt: skip
    if earlier:
        return _in_two_places(called, earlier[0], sizes)
    loop = loop_around(source, called.call, called.scope)
    if loop is not None:
        if not isinstance(loop, ast.For) or _is_first_turn(loop, spot):
            return None
        return _in_turns(called, loop, sizes) if in_layer else _in_building(called, [loop.lineno], sizes, "turn")
    function = spot.function
    if not isinstance(function, ast.FunctionDef):
        return None
    return _in_method(called, function, outer, sizes) if in_layer else _in_function(called, function, outer, sizes)


def _has(inner: ast.Call, sizes: _Sizes, spot: Spot) -> bool:
    """Whether the inner one of `bn(conv(bn(x)))` got the size that the layer has: the outer one was refused."""
    shape = shape_of(lookup(inner.args[0], spot)) if inner.args else None
    return shape is not None and -len(shape) <= sizes.axis < len(shape) and shape[sizes.axis] == sizes.size


def _builds(spot: Spot) -> bool:
    """Whether a line of a frame builds a model of Keras' functional kind: it reads a Keras tensor."""
    return spot.statement is not None and any(is_keras(spot.value(one)) for one in names(spot.statement))


def _runs_before(place: ast.Call, called: _Called) -> bool:
    """Whether another place has run in this run of the function: it stands before, and in no branch of its own."""
    call, source = called.call, called.source
    if place is call or (place.end_lineno, place.end_col_offset) >= (call.end_lineno, call.end_col_offset):
        return False
    around = {id(one) for one in source.around(call)}
    inner: ast.AST = place
    for one in source.around(place):
        if one is called.scope:
            return True
        if isinstance(one, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            return False
        if id(one) in around:
            both = [part for part in (*source.around(call), call) if source.parent(part) is one]
            if isinstance(one, (ast.If, ast.IfExp, ast.Try, ast.Match)) and _part(one, inner) != _part(one, both[-1]):
                return False  # the branch that was not taken
        elif isinstance(one, ast.If):
            taken = lookup(one.test, called.spot)
            if type(taken) is not bool or _part(one, inner) != ("body" if taken else "orelse"):
                return False
        elif isinstance(one, _BRANCHES) or loop_around(source, inner, one) is not None:
            return False
        inner = one
    return True


def _part(block: ast.AST, inner: ast.AST) -> str:
    """In which part of a block something stands."""
    for name, value in ast.iter_fields(block):
        if value is inner or (isinstance(value, list) and any(one is inner for one in value)):
            return name
    return ""


def _is_first_turn(loop: ast.For, spot: Spot) -> bool:
    """Whether a loop may be in its first turn: no earlier one has given the layer anything."""
    target, over = loop.target, loop.iter
    kind = dotted(over.func) if isinstance(over, ast.Call) else ""
    if isinstance(over, ast.Call) and kind == "enumerate" and isinstance(target, ast.Tuple):
        return lookup(target.elts[0], spot) in (0, None)
    if isinstance(over, ast.Call) and kind == "range":
        start = over.args[0] if len(over.args) > 1 else ast.Constant(0)
        value = start.value if isinstance(start, ast.Constant) else lookup(start, spot)
        return lookup(target, spot) in (value, None)
    if isinstance(over, ast.Call) and kind == "zip" and over.args and isinstance(target, ast.Tuple):
        over, target = over.args[0], target.elts[0]
    items = over.elts if isinstance(over, (ast.List, ast.Tuple)) else lookup(over, spot)
    if not isinstance(items, (list, tuple)) or not items:
        return True
    first = items[0].value if isinstance(items[0], ast.Constant) else items[0]
    now = lookup(target, spot)
    if isinstance(first, ast.AST) or now is None:
        return True
    return now is first or (type(now) in (int, str, float) and now == first)


# -- what is said, and pasted -----------------------------------------------------------------------------------------


def _in_two_places(called: _Called, earlier: ast.Call, sizes: _Sizes) -> Explanation:
    spot, source, call, name = called.spot, called.source, called.call, called.name
    maker = _maker(called)
    first, last = earlier.lineno, call.lineno
    where = f"called twice in line {last}" if first == last else f"called in {lines_said([first, last])}"
    if first == last:
        of, now = "its first call", "its second"
    else:
        of, now = f"line {first}", f"line {last}"
    cause = f"{_one(called, maker)}, {where}: {_kept(sizes, of, now)} Each place needs a layer of its own."
    here = [one for one in calls(spot.statement or ast.Pass()) if dotted(one.func) == name]
    sure = len(here) == 1 or earlier in here  # of `bn(conv(bn(x)))` either may have failed, where one more is above
    copy = _copy(called, maker) if sure else None
    edit = None
    if maker is not None and copy is not None:
        other = _other_name(called)
        line = maker.end_lineno or maker.lineno
        below = Edit(spot.file, line + 1, line, (f"{indent_of(source.lines[maker.lineno - 1])}{other} = {copy}",))
        edit = _within([below, Edit(spot.file, *source.kept_lines({call.func: other}))], source)
    advice = f"Make another layer beside {name}, as it is made, and call that in line {last}."
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else advice)


def _in_turns(called: _Called, loop: ast.For, sizes: _Sizes) -> Explanation:
    """In a loop of a layer's method."""
    spot, source, call = called.spot, called.source, called.call
    maker, function = _maker(called), called.scope
    where = f"called in each turn of the loop in line {loop.lineno}"
    cause = _of_several(called, maker, where, "turn", sizes)
    every = turns(source, function, [call]) if isinstance(function, ast.FunctionDef) else None
    edit = None
    if every is not None and maker is not None and _is_only_use(called):
        pieces = {**every.pieces, call.func: f"{called.name}[{every.index[call]}]"}
        edit = _as_list(called, maker, every.over, pieces, [])
    advice = f"Make a list of layers in __init__, one for each turn, in the place of {called.name}, and call its items."
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else advice)


def _in_method(called: _Called, function: ast.FunctionDef, outer: list[Spot], sizes: _Sizes) -> Explanation | None:
    """In a method that `call` calls more than once."""
    spot, source = called.spot, called.source
    uses = repeated(source, function)
    if not uses or not outer or not _is_later_run(function, uses, source, outer[0], spot):
        return None
    maker = _maker(called)
    where = f"called in each run of {function.name} ({lines_said([one.lineno for one in uses])})"
    cause = _of_several(called, maker, where, "run", sizes)
    given = passed(source, function, uses)
    edit = None
    if given is not None and maker is not None and _is_only_use(called):
        pieces = {**given.pieces, called.call.func: f"{called.name}[{given.name}]"}
        header = Edit(spot.file, given.header.first, given.header.last, given.header.lines)
        edit = _as_list(called, maker, given.over, pieces, [header])
    advice = (
        f"Make a list of layers in __init__, one for each run of {function.name}, in the place of {called.name}, and "
        "call its items."
    )
    return Explanation(RULE, spot.file, called.call.lineno, cause, edit, "" if edit else advice)


def _is_later_run(
    function: ast.FunctionDef, uses: list[ast.Attribute], source: Source, outer: Spot, spot: Spot
) -> bool:
    """Whether a method has run before in this call of the layer: at an earlier place, or in an earlier turn."""
    if outer.variables.get("self") is not spot.variables.get("self") or outer.file != spot.file:
        return False
    here = [
        one for one in calls(outer.statement or ast.Pass())
        if dotted(one.func) == f"self.{function.name}" and one.func in uses
    ]  # fmt: skip
    if len(here) != 1:
        return False
    caller = _Called(outer, here[0], None)
    if any(_runs_before(one, caller) for one in caller.places(caller.scope)):
        return True
    loop = loop_around(source, here[0], caller.scope)
    return isinstance(loop, ast.For) and not _is_first_turn(loop, outer)


def _in_function(called: _Called, function: ast.FunctionDef, outer: list[Spot], sizes: _Sizes) -> Explanation | None:
    """In a function that builds a part of a model, and is called more than once."""
    before = outer[0] if outer else None
    here = [one for one in calls(before.statement) if dotted(one.func) == function.name] if (
        before is not None and before.statement is not None and before.file == called.spot.file
    ) else []  # fmt: skip
    if before is None or len(here) != 1:
        return None
    caller = _Called(before, here[0], None)
    earlier = [one for one in caller.places(caller.scope) if _runs_before(one, caller)]
    loop = loop_around(called.source, here[0], caller.scope)
    if not earlier and (not isinstance(loop, ast.For) or _is_first_turn(loop, before)):
        return None
    lines = [one.lineno for one in (*earlier, here[0])]
    return _in_building(called, lines, sizes, f"run of {function.name}")


def _in_building(called: _Called, lines: list[int], sizes: _Sizes, what: str) -> Explanation | None:
    """In a loop or a function of what builds a model: made where it is called, it is another one each time."""
    spot, source, call = called.spot, called.source, called.call
    maker = _maker(called)
    local = spot.function
    if maker is None or (what != "turn" and any(one is maker for one in ast.walk(local or ast.Pass()))):
        return None  # a function that makes it has another one in each run
    loop = loop_around(source, call, called.scope)
    if loop is not None and any(one is maker for one in ast.walk(loop)):
        return None
    where = f"of the loop in line {lines[0]}" if what == "turn" else f"({lines_said(lines)})"
    cause = _of_several(called, maker, f"called in each {what} {where}", what.partition(" ")[0], sizes)
    edit = None
    copy = _copy(called, maker, named=False)
    if copy is not None:
        edits = [Edit(spot.file, *source.kept_lines({call.func: copy}))]
        if _is_only_use(called) and source.block(maker) != [maker]:
            edits.append(Edit(spot.file, maker.lineno, maker.end_lineno or maker.lineno, ()))
        edit = _within(edits, source)
    return Explanation(
        RULE, spot.file, call.lineno, cause, edit, "" if edit else f"Make it where it is called, in each {what}."
    )


def _of_several(called: _Called, maker: ast.Assign | None, where: str, what: str, sizes: _Sizes) -> str:
    kept = _kept(sizes, f"an earlier {what}", "this one")
    return f"{_one(called, maker)}, {where}: {kept} Each {what} needs a layer of its own."


def _kept(sizes: _Sizes, of: str, here: str) -> str:
    whose = f"{sizes.inside} has" if sizes.inside else "it has"
    return f"{whose} variables for {sizes.kept}, of {of}, and gets {sizes.given} in {here}."


def _one(called: _Called, maker: ast.Assign | None) -> str:
    made = f" (line {maker.lineno})" if maker is not None else ""
    return f"{short(called.name, 40)}{made} is one layer"


def _maker(called: _Called) -> ast.Assign | None:
    """The one assignment that makes the layer, by a call of its class."""
    source, name = called.source, called.name
    holder: ast.AST | None = source.tree
    if name.startswith("self."):
        method = method_around(source, called.call)
        holder = source.parent(method) if method is not None else None
    found = [
        one for one in ast.walk(holder or ast.Pass())
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, (ast.Store, ast.Del))
        and dotted(one) == name
    ]  # fmt: skip
    made = source.parent(found[0]) if len(found) == 1 else None
    given = any(isinstance(one, ast.arg) and one.arg == name for one in ast.walk(source.tree))
    if given or not isinstance(made, ast.Assign) or len(made.targets) != 1 or not isinstance(made.value, ast.Call):
        return None
    kind = dotted(made.value.func).rpartition(".")[2]
    alone = source.lines[made.lineno - 1][: made.col_offset].isspace() or not made.col_offset
    return made if kind == type(called.layer).__name__ and alone else None


def _copy(called: _Called, maker: ast.Assign | None, named: bool = True) -> str | None:
    """Another layer as it is made, with another name if it has one; None where it would share something."""
    call = maker.value if maker is not None else None
    if not isinstance(call, ast.Call):
        return None
    source, pieces = called.source, dict[ast.expr, str]()
    read = [one for one in ast.walk(call) if isinstance(one, (ast.Name, ast.Attribute)) and dotted(one) != "self"]
    if any(is_layer(lookup(one, called.spot)) for one in read):
        return None
    for one in ast.walk(call):
        if not isinstance(one, ast.keyword) or one.arg not in ("name", None):
            continue
        if not named or one.arg is None or not isinstance(one.value, ast.Constant):
            return None
        pieces[one.value] = f'"{one.value.value!s}_2"'
    text = source.text_with(call, pieces) if pieces and "\n" not in source.text(call) else source.text(call)
    return text if not pieces or call.lineno == call.end_lineno else None


def _other_name(called: _Called) -> str:
    """`self.bn2` beside `self.bn`; a name that the file has not yet."""
    source, name = called.source, called.name
    owner, _, last = name.rpartition(".")
    taken = {one.attr for one in ast.walk(source.tree) if isinstance(one, ast.Attribute)} | {
        one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)
    }
    taken |= set(vars(called.spot.variables.get("self"))) if owner else set()
    glue = "_" if last[-1:].isdigit() else ""
    new = next(one for number in range(2, 99) if (one := f"{last}{glue}{number}") not in taken)
    return f"{owner}.{new}" if owner else new


def _is_only_use(called: _Called) -> bool:
    """Whether the class, or the file, reads the layer only where it was called."""
    source, name = called.source, called.name
    read = [
        one for one in ast.walk(source.tree)
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load) and dotted(one) == name
    ]  # fmt: skip
    attribute = name.rpartition(".")[2]
    elsewhere = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Attribute) and one.attr == attribute and dotted(one.value) != "self"
    ]  # fmt: skip
    return len(read) == 1 and ("." not in name or not elsewhere)


def _as_list(
    called: _Called, maker: ast.Assign, over: str, pieces: dict[ast.expr, str], more: list[Edit]
) -> Edit | None:
    """The layer as a list of layers, where its line has what the list goes over, or else at the end of `__init__`."""
    spot, source = called.spot, called.source
    copy, init = _copy(called, maker, named=False), source.parent(maker)
    if copy is None or not isinstance(init, ast.FunctionDef) or init.name != "__init__":
        return None
    text = f"{indent_of(source.lines[maker.lineno - 1])}{called.name} = [{copy} for _ in {over}]"
    read = {dotted(one) for one in ast.walk(ast.parse(over)) if isinstance(one, ast.Attribute)}
    last = max([0, *(
        one.lineno for one in ast.walk(init) if isinstance(one, ast.Attribute) and dotted(one) in read
    )])  # fmt: skip
    own = Edit(spot.file, maker.lineno, maker.end_lineno or maker.lineno, (text,))
    edits = [own]
    if last > maker.lineno:
        end = init.body[-1].end_lineno or init.body[-1].lineno
        edits = [Edit(own.file, own.first, own.last, ()), Edit(spot.file, end + 1, end, (text,))]
    below = edits.pop()
    lines = sorted({(node.lineno, node.end_lineno or node.lineno) for node in pieces})
    groups: list[tuple[int, int]] = []
    for first, end in lines:
        if groups and first <= groups[-1][1]:
            groups[-1] = (groups[-1][0], max(end, groups[-1][1]))
        else:
            groups.append((first, end))
    for first, end in groups:
        inside = {node: new for node, new in pieces.items() if first <= node.lineno <= end}
        edits.append(Edit(spot.file, first, end, source.spliced(inside, first, end)))
    return _within([*edits, *more, below], source)  # what goes above a line comes last


def _within(edits: list[Edit], source: Source) -> Edit | None:
    """Some edits as one, if they are not far from each other."""
    first, last = min(one.first for one in edits), max(one.last for one in edits)
    return together(edits, source.lines) if last - first <= _MOST and source.together(first, last) else None
