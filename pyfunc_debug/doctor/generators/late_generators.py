"""A dataset of `from_generator` that a loop builds again, built once above it: its generator reads in each pass.

A generator runs again in each pass over its dataset. So what the loop changes need not be there when the dataset is
built: a function defined in the loop reads it anyway, and one that a builder makes can ask for it (`current()`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets.built_once import CHANGES, innermost_loop
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names
from pyfunc_debug.program.syntax import copied

_Loop = ast.For | ast.While
_CURRENT = "current"


@dataclass(frozen=True)
class _Given:
    """What `from_generator` is given: its function as it is written, and the `def` in the same scope that it names."""

    value: ast.expr
    own: ast.FunctionDef | None


def built_once(facts: Facts, file: str, call: ast.Call) -> str:
    """The lines that build the dataset once; "" where that cannot be said.

    Args:
      facts: The recording.
      file: The user's file.
      call: The call of `from_generator`.
    """
    own = pastes.source(facts, file)
    given = _given(own, call)
    if given is None:
        return ""
    loops = _loops(own, call)
    if loops:
        return next(filter(None, (_moved(facts, file, own, call, given, one) for one in reversed(loops))), "")
    builder = next((one for one in own.around(call) if isinstance(one, ast.FunctionDef)), None)
    return _asking(facts, file, own, given, builder) if builder is not None else ""


def _loops(own: Source, call: ast.Call) -> list[_Loop]:
    """The loops around a call in its function, innermost first."""
    found: list[ast.AST] = []
    loop = innermost_loop(own, call)
    for one in own.around(call) if loop is not None else ():
        if isinstance(one, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            break
        if one is loop or (found and isinstance(one, (ast.For, ast.While))):
            found.append(one)
    return [one for one in found if isinstance(one, (ast.For, ast.While))]


def _given(own: Source, call: ast.Call) -> _Given | None:
    value = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "generator"), None)
    if value is None or any(one.arg in ("args", None) for one in call.keywords):
        return None
    scope = next((one for one in own.around(call) if isinstance(one, (ast.FunctionDef, ast.Module))), own.tree)
    found = [
        one for one in ast.walk(scope)
        if isinstance(one, ast.FunctionDef) and isinstance(value, ast.Name) and one.name == value.id
    ]  # fmt: skip
    return _Given(value, found[0] if len(found) == 1 else None) if len(found) < 2 else None


# -- built in the loop itself -----------------------------------------------------------------------------------------


def _moved(facts: Facts, file: str, own: Source, call: ast.Call, given: _Given, loop: _Loop) -> str:
    """Its `def` and its call above the loop."""
    statement = next(one for one in own.around(call) if isinstance(one, ast.stmt))
    bound = {one.id for one in ast.walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    bound |= {one.name for one in ast.walk(loop) if isinstance(one, ast.FunctionDef)}
    others = [one for one in (*call.args[1:], *(word.value for word in call.keywords)) if one is not given.value]
    if any(bound & set(names(one)) for one in others) or _kept(own, loop, statement):
        return ""
    inside = given.own is not None and any(one is given.own for one in ast.walk(loop))
    value = own.text(given.value)
    if given.own is None or not inside:
        value = _late(own, given.value) if bound & set(names(given.value)) else value
    if not value:
        return ""
    text = own.text(call).replace(own.text(given.value), value, 1)
    name = own.unused_name("dataset")
    lines: list[str] = []
    edits: list[Edit | None] = [pastes.replaced(facts, file, {call: name})]
    indent = indent_of(own.lines[loop.lineno - 1])
    if inside and given.own is not None:
        if given.own.decorator_list or given.own.args.args or own.parent(given.own) not in _loops(own, call):
            return ""
        first, last = given.own.lineno, given.own.end_lineno or given.own.lineno
        cut = indent_of(own.lines[first - 1])
        body = own.lines[first - 1 : last]
        if not all(line.startswith(cut) or not line.strip() for line in body) or _prefix_stores(loop, given.own):
            return ""
        lines += [*(line.removeprefix(cut) for line in body), ""]
        note = f"{cut}# {given.own.name} is made once, above the loop, and reads what is here in each pass"
        edits.append(Edit(file, first, last, (note,)))
    lines.append(f"{name} = {text}")
    edits.append(Edit(file, loop.lineno, loop.lineno - 1, tuple(f"{indent}{line}".rstrip() for line in lines)))
    return pastes.written(*edits)


def _prefix_stores(loop: _Loop, function: ast.FunctionDef) -> bool:
    """Whether the loop binds the function's name in another way, too."""
    stores = [one for one in ast.walk(loop) if isinstance(one, ast.Name) and one.id == function.name]
    return any(isinstance(one.ctx, ast.Store) for one in stores)


def _late(own: Source, value: ast.expr) -> str:
    """What `from_generator` is given, as a function that reads its names in each pass; "" for what is not known."""
    if isinstance(value, ast.Lambda):
        return own.text(value)
    if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] == "partial" and value.args:
        listed = [*map(own.text, value.args[1:]), *(f"{one.arg}={own.text(one.value)}" for one in value.keywords)]
        return f"lambda: {own.text(value.args[0])}({', '.join(listed)})"
    if isinstance(value, (ast.Call, ast.Attribute)):
        return f"lambda: {own.text(value)}()"
    return ""


def _kept(own: Source, loop: _Loop, statement: ast.stmt) -> bool:
    """Whether a dataset that the loop builds may outlive its round: put into a list, handed out, or read behind it."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if any(not isinstance(one, ast.Name) for one in targets):
        return True
    mine = {one.id for one in targets if isinstance(one, ast.Name)}
    changed = True
    while changed:  # `ds = ds.batch(4)`, `train = ds.take(3)`
        changed = False
        for one in ast.walk(loop):
            if isinstance(one, ast.Assign) and mine & set(names(one.value)) and _chain(one.value):
                new = {part.id for target in one.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
                changed |= bool(new - mine)
                mine |= new
    parts = list(_own_parts(loop))
    if isinstance(statement, ast.Return) or any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in parts):
        return True
    for one in parts:
        if isinstance(one, ast.Call):
            fills = isinstance(one.func, ast.Attribute) and one.func.attr in CHANGES
            kept = fills and any(mine & set(names(part)) or _builds(part) for part in one.args)
        elif isinstance(one, ast.Assign):
            outside = any(not isinstance(target, ast.Name) for target in one.targets)
            kept = outside and isinstance(one.value, ast.Name) and one.value.id in mine
        else:
            kept = isinstance(one, (ast.List, ast.Dict)) and bool(mine & set(names(one)))
        if kept:
            return True
    end = loop.end_lineno or loop.lineno
    scope = next((one for one in own.around(loop) if isinstance(one, (ast.FunctionDef, ast.Module))), own.tree)
    return any(
        isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.id in mine and one.lineno > end
        for one in ast.walk(scope)
    )


def _own_parts(loop: _Loop) -> Iterator[ast.AST]:
    """Nodes of a loop without those of functions defined in it."""
    todo: list[ast.AST] = [loop]
    while todo:
        one = todo.pop()
        yield one
        if not isinstance(one, (ast.FunctionDef, ast.Lambda)):
            todo += ast.iter_child_nodes(one)


def _builds(part: ast.expr) -> bool:
    return any(isinstance(one, ast.Call) and pastes.last_name(one.func) == "from_generator" for one in ast.walk(part))


def _chain(value: ast.expr) -> bool:
    """`ds`, `ds.batch(4)`, `ds.take(3).map(f)`: something that may be a dataset."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value
    return isinstance(value, ast.Name)


# -- built by a function that the loop calls --------------------------------------------------------------------------


def _asking(facts: Facts, file: str, own: Source, given: _Given, builder: ast.FunctionDef) -> str:
    """The builder called once, with a function that gives what its generator needs, in each pass."""
    arguments = builder.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs or builder.decorator_list:
        return ""
    calls = [one for one in pastes.walk(own.tree, ast.Call) if dotted(one.func) == builder.name]
    loops = [innermost_loop(own, one) for one in calls]
    if not calls or len(calls) > pastes.MOST or not any(loops) or _method(own, builder):
        return ""
    changing = [_changing(own, builder, one, loop) for one, loop in zip(calls, loops) if loop is not None]
    late = changing[0] if changing else None
    if not late or any(one != late for one in changing) or not _only_in_generator(builder, given, late):
        return ""
    edits: list[Edit | None] = [_header(file, own, builder, late), *_reading(facts, file, own, given, late)]
    used: tuple[str, ...] = ()
    above: dict[int, list[str]] = {}
    for one, loop in zip(calls, loops):
        text = _call_text(own, builder, one, late)
        statement = next(part for part in own.around(one) if isinstance(part, ast.stmt))
        if loop is None:
            edits.append(pastes.replaced(facts, file, {one: text}))
            continue
        if _kept(own, loop, statement):
            return ""
        name = own.unused_name("dataset", used)
        used += (name,)
        edits.append(pastes.replaced(facts, file, {one: name}))
        above.setdefault(loop.lineno, []).append(f"{name} = {text}")
    for line, lines in above.items():
        edits.append(pastes.above(facts, file, line, *lines))
    return pastes.written(*edits)


def _method(own: Source, function: ast.FunctionDef) -> bool:
    return isinstance(own.parent(function), ast.ClassDef)


def _passed(builder: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr]:
    """What a call passes, by parameter."""
    found = {one.arg: value for one, value in zip(builder.args.args, call.args)}
    found.update({one.arg: one.value for one in call.keywords if one.arg})
    return found


def _changing(own: Source, builder: ast.FunctionDef, call: ast.Call, loop: _Loop) -> list[str]:
    """Parameters for which a loop passes something that it changes itself."""
    bound = {one.id for one in ast.walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    passed = _passed(builder, call)
    return [one.arg for one in builder.args.args if one.arg in passed and bound & set(names(passed[one.arg]))]


def _only_in_generator(builder: ast.FunctionDef, given: _Given, late: list[str]) -> bool:
    """Whether nothing but the generator reads these parameters, and nothing of the builder binds them."""
    holder = given.own if given.own is not None else given.value
    inside = {id(one) for one in ast.walk(holder)}
    if given.own is not None and given.own.args.args:
        return False
    for one in ast.walk(builder):
        if (
            isinstance(one, ast.Name)
            and one.id in late
            and (id(one) not in inside or not isinstance(one.ctx, ast.Load))
        ):
            return False
    return given.own is None or not set(late) & code.local_names(given.own)


def _header(file: str, own: Source, builder: ast.FunctionDef, late: list[str]) -> Edit | None:
    """Its `def` with one parameter in the place of those."""
    first, last = own.span(builder)
    changed = copied(builder)
    kept: list[ast.arg] = []
    defaults = changed.args.defaults
    named = [None] * (len(changed.args.args) - len(defaults)) + list(defaults)
    given: list[ast.expr] = []
    for one, default in zip(changed.args.args, named):
        if one.arg in late:
            if one.arg == late[0]:
                kept.insert(0, ast.arg(_CURRENT))
            continue
        kept.append(one)
        given += [default] if default is not None else []
    changed.args.args, changed.args.defaults = kept, given
    returns = f" -> {ast.unparse(builder.returns)}" if builder.returns is not None else ""
    if builder.body[0].lineno <= last:
        return None
    indent = indent_of(own.lines[first - 1])
    return Edit(file, first, last, (f"{indent}def {builder.name}({ast.unparse(changed.args)}){returns}:",))


def _reading(facts: Facts, file: str, own: Source, given: _Given, late: list[str]) -> list[Edit | None]:
    """The generator, which asks for them as it begins."""
    if given.own is not None:
        start = pastes.beginning(given.own)
        line = f"{', '.join(late)} = {_CURRENT}()  # as they are in this pass"
        return [None if start is None else pastes.above(facts, file, start, line)]
    text = _late(own, given.value)
    if not text:
        return [None]
    lambda_ = ast.parse(text, mode="eval").body
    for one in ast.walk(lambda_):
        if isinstance(one, ast.Name) and one.id in late:
            one.id = f"{_CURRENT}()" if len(late) == 1 else f"{_CURRENT}()[{late.index(one.id)}]"
    return [pastes.replaced(facts, file, {given.value: ast.unparse(lambda_)})]


def _call_text(own: Source, builder: ast.FunctionDef, call: ast.Call, late: list[str]) -> str:
    """A call of the builder that passes a function for them."""
    passed = _passed(builder, call)
    values = [own.text(passed[one]) for one in late]
    whole = values[0] if len(values) == 1 else f"({', '.join(values)})"
    rest = [f"{name}={own.text(value)}" for name, value in passed.items() if name not in late]
    return f"{builder.name}({', '.join([f'lambda: {whole}', *rest])})"
