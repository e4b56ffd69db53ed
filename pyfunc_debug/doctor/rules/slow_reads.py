"""Eager tensors that a py_function's body reads in each round of a loop: each time it goes through TensorFlow."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies import slow_lines
from pyfunc_debug.doctor.bodies.body_inputs import given
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Finding, Node

NAMES = ("slow-read",)
_SLOW_NS = 1_000_000
_TOTAL_NS = 200_000_000
_SHARE = 0.1
_LEAST = 3
_MOST = 16
_ROUNDS = 100
"""Fewer elements than these are not the reason, where a loop goes through the tensor."""
_NUMBERS = ("int", "float", "bool")
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_WALKS = ("enumerate", "zip", "reversed", "sorted", "list", "tuple", "sum", "map")
_SAME = ("numpy", "shape", "ndim")
"""Attributes of an eager tensor that an array has, or needs no more."""
_WHOLE = ("list", "tuple", "set", "sorted", "sum", "min", "max", "any", "all")
_LISTS = ("FloatList", "Int64List", "BytesList")
"""What goes through all that it is given: Python's functions, and the lists of a `tf.train.Feature`."""


@dataclass(frozen=True)
class _Tensor:
    """A tensor that a body is given.

    Attributes:
      text: As the body writes it: `x`, or `parts[0]` of `*parts`.
      inputs: What it is called in the recording.
      rest: The name behind the star, where it is one of several.
    """

    text: str
    inputs: tuple[str, ...]
    rest: str = ""


def told(facts: Facts) -> set[int]:
    """The nodes that were seen at that most of the time: neither calls side by side nor batches help these."""
    return {
        node.id for group, found in _groups(facts)
        if found.line is not None and slow_lines.is_mostly_in(facts, group[0], _lines(facts, group[0], found.line))
        for node in group
    }  # fmt: skip


def _lines(facts: Facts, node: Node, line: int) -> list[tuple[int, int]]:
    """The lines in which a read of a line goes on: its loop, or its function's statement with the helpers called."""
    source = pastes.source(facts, node.file)
    loops = [one for kind in (ast.For, ast.While) for one in pastes.around(source.tree, line, kind)]
    statement = source.statement(line)
    around = [min(loops, key=lambda one: one.lineno)] if loops else [statement] if statement is not None else []
    called = {dotted(one.func) for part in around for one in pastes.walk(part, ast.Call)}
    helpers = [one for one in source.tree.body if isinstance(one, ast.FunctionDef) and one.name in called]
    return [(one.lineno, one.end_lineno or one.lineno) for one in (*around, *helpers)]


def check(facts: Facts) -> Iterator[Finding]:
    """At most one finding a line of the user's."""
    return (found for _, found in _groups(facts))


def _groups(facts: Facts) -> Iterator[tuple[list[Node], Finding]]:
    """The nodes of a line, and what is found of them."""
    wall = facts.wall_ns
    for group in facts.lines if wall is not None else ():
        calls, function = facts.calls_of(group), facts.function(group[0])
        if group[0].kind != "py_function" or not isinstance(function, ast.FunctionDef) or calls.count < _LEAST:
            continue
        if calls.total_ns < max(_TOTAL_NS, _SHARE * (wall or 0)) or calls.total_ns < _SLOW_NS * calls.count:
            continue
        if facts.calls_of(group, "gradient").count:
            continue  # its ops have a gradient, which an array has not
        found = _slow(facts, group, function, calls.total_ns / calls.count, calls.count)
        if found is not None:
            yield group, found


def _slow(facts: Facts, group: list[Node], function: ast.FunctionDef, mean: float, count: int) -> Finding | None:
    node, source = group[0], pastes.source(facts, group[0].file)
    stored = {name for one in code.own_nodes(function) for name in code.stored_names(one)}
    slow: dict[_Tensor, ast.expr] = {}
    size = 0
    for tensor in _tensors(function, source):
        found = _reads(function, source, tensor.text) if (tensor.rest or tensor.text) not in stored else []
        sizes = [one.shape for name in tensor.inputs for one in given(facts, group, name)] if found else []
        scalar = all(not shape for shape in sizes)
        longest = max((shape[0] for shape in sizes if shape), default=0)
        kind = next((one for one in found if not scalar or _is_number(one)), None)
        if sizes and kind is not None and (scalar or longest >= _ROUNDS):
            slow[tensor], size = kind, max(size, longest)
    if not slow:
        return None
    first = next(iter(slow.values()))
    shown = pastes.text_of(facts, node.file, first)
    line = first.lineno
    several = f"{size:,} elements at the most" if size else "one number"
    texts = list(dict.fromkeys(one.text for one in slow))
    names = f"tensor{'s' if len(texts) > 1 else ''} {' and '.join(texts)}"
    how = (
        f"goes through the {names} one value after the other (`{shown}`)" if _is_whole(source, first)
        else f"reads the {names} in each round of a loop (`{shown}`)"
    )  # fmt: skip
    return Finding(
        NAMES[0], "warning", node.id, (),
        f"{node.body} {how}: each time that goes through TensorFlow, which lets the GIL go and takes it again. A "
        "value of NumPy's is read without it",
        _as_arrays(facts, node, function, source, list(slow)), node.file, line,
        evidence=(f"{count:,} calls of {mean / 1e6:.2f} ms; the tensor has {several}",),
        confidence="likely",
    )  # fmt: skip


def _tensors(function: ast.FunctionDef, source: Source) -> Iterator[_Tensor]:
    """A body's parameters; of `*parts` what is written for one of them, and what a loop over all of them calls each."""
    rest = function.args.vararg.arg if function.args.vararg is not None else ""
    for name in code.parameters(function):
        if name != rest:
            yield _Tensor(name, (name,))
    if not rest:
        return
    written = dict.fromkeys(
        source.text(one) for one in code.own_nodes(function)
        if isinstance(one, ast.Subscript) and dotted(one.value) == rest and isinstance(one.slice, ast.Constant)
    )  # fmt: skip
    yield from (_Tensor(text, (text,), rest) for text in written)
    every = tuple(f"{rest}[{place}]" for place in range(_MOST))
    for one in code.own_nodes(function):
        if isinstance(one, (ast.For, ast.comprehension)) and _walks(one.iter, rest):
            names = [part.id for part in ast.walk(one.target) if isinstance(part, ast.Name)]
            yield from (_Tensor(name, every, rest) for name in names)


def _is_number(read: ast.expr) -> bool:
    """Whether it is `int(x)` or `x.numpy()`, which a tensor of one number takes."""
    return isinstance(read, ast.Call) and (dotted(read.func) in _NUMBERS or dotted(read.func).endswith(".numpy"))


def _is_whole(source: Source, read: ast.expr) -> bool:
    """Whether a call goes through all of a tensor: `list(x)`, `FloatList(value=x)`, a helper of the file's."""
    return isinstance(read, ast.Call) and not _is_number(read) and not isinstance(source.parent(read), ast.For)


def _reads(function: ast.FunctionDef, source: Source, name: str) -> list[ast.expr]:
    """Where a tensor is read in a loop: `int(x)`, `x.numpy()`, `x[i]`, `x` of `for v in x`; or whole, as `list(x)`."""
    found: list[ast.expr] = []
    for one in code.own_nodes(function):
        if isinstance(one, (ast.For, ast.comprehension)) and _walks(one.iter, name):
            found.append(one.iter)
        if not _is_tensor(one, name):
            continue
        holder = source.parent(one)
        if isinstance(holder, ast.keyword):
            holder = source.parent(holder)
        read: ast.AST | None = holder
        if isinstance(holder, ast.Attribute) and holder.attr == "numpy":
            read = source.parent(holder)
        elif isinstance(holder, ast.Call) and one is not holder.func:
            if _goes_through(source, holder, one):
                found.append(holder)
            read = holder if dotted(holder.func) in _NUMBERS else None
        elif not isinstance(holder, ast.Subscript) or holder.value is not one:
            read = None
        if isinstance(read, (ast.Call, ast.Subscript)) and _often(source, function, read, name):
            found.append(read)
    return found


def _is_tensor(node: ast.AST, name: str) -> bool:
    """Whether a node is `x`, or `parts[0]`, where it is read."""
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and ast.unparse(node) == name


def _goes_through(source: Source, call: ast.Call, value: ast.AST) -> bool:
    """Whether a call asks what it is given for all of its values, one after the other; one step into a helper."""
    if _asks_for_all(call, value):
        return True
    helper = next((one for one in source.tree.body
                   if isinstance(one, ast.FunctionDef) and one.name == dotted(call.func)), None)  # fmt: skip
    if helper is None:
        return False
    names = [one.arg for one in (*helper.args.posonlyargs, *helper.args.args)]
    if value in call.args:
        place = call.args.index(value)
        name = names[place] if place < len(names) else ""
    else:
        name = next((one.arg or "" for one in call.keywords if one.value is value), "")
    stored = {one for part in code.own_nodes(helper) for one in code.stored_names(part)}
    if not name or name in stored:
        return False
    return any(
        _asks_for_all(inner, part)
        for inner in pastes.walk(helper, ast.Call)
        for part in [*inner.args, *(one.value for one in inner.keywords)] if _is_tensor(part, name)
    )  # fmt: skip


def _asks_for_all(call: ast.Call, value: ast.AST) -> bool:
    """`list(x)`, and `tf.train.FloatList(value=x)`."""
    name = dotted(call.func)
    if name.rpartition(".")[2] in _LISTS:
        return any(one.arg == "value" and one.value is value for one in call.keywords)
    return name in _WHOLE and call.args[:1] == [value]


def _walks(iterated: ast.expr, name: str) -> bool:
    """`x`, `enumerate(x)`, `zip(x, y)` as what a loop goes through."""
    if isinstance(iterated, ast.Call):
        return dotted(iterated.func) in _WALKS and any(_walks(one, name) for one in iterated.args)
    return _is_tensor(iterated, name)


def _often(source: Source, function: ast.FunctionDef, read: ast.expr, name: str) -> bool:
    """Whether an expression is computed in many rounds of a loop: as many as the tensor has elements, or 100."""
    inner: ast.AST = read
    while inner is not function:
        outer = source.parent(inner)
        if outer is None:
            return False
        once = inner is outer.iter if isinstance(outer, (ast.For, ast.comprehension)) else False
        if isinstance(outer, ast.comprehension):  # the first one's is computed once, those behind it in each round
            whole = source.parent(outer)
            first = isinstance(whole, _LOOPS) and getattr(whole, "generators", [outer])[0] is outer
            if once and first:
                inner = whole if whole is not None else outer
                continue
        gone_over = (
            [outer.iter] if isinstance(outer, ast.For) else [one.iter for one in getattr(outer, "generators", ())]
        )
        if (
            isinstance(outer, _LOOPS)
            and not once
            and (not gone_over or any(_is_long(function, one, name, isinstance(read, ast.Call)) for one in gone_over))
        ):
            return True
        inner = outer
    return False


def _is_long(function: ast.FunctionDef, iterated: ast.expr, name: str, number: bool) -> bool:
    """Whether a loop has as many rounds as the tensor has elements; of one that reads a number, whether it may."""
    if _walks(iterated, name):
        return True
    if not isinstance(iterated, ast.Call) or dotted(iterated.func) != "range":
        return number
    made = {one.targets[0].id: one.value for one in code.own_nodes(function)
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)}  # fmt: skip
    parts = [part for one in iterated.args for part in ast.walk(made.get(getattr(one, "id", ""), one))]
    if any(isinstance(one, ast.Name) and one.id == name for one in parts):
        return True
    constants = [one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, int)]
    names = [one for one in parts if isinstance(one, ast.Name)]
    return bool(number and names) or max(constants, default=0) >= _ROUNDS


def _as_arrays(facts: Facts, node: Node, function: ast.FunctionDef, source: Source, slow: list[_Tensor]) -> str:
    """`x = x.numpy()` as the body's first line, and the body's `.numpy()` of what is read from it left out."""
    start = pastes.beginning(function)
    if start is None or node.file is None:
        return ""
    rests = {one.rest for one in slow if one.rest}
    tensors = [one.text for one in _tensors(function, source) if one.rest in rests or one in slow]
    elements = {
        part.id for one in code.own_nodes(function) if isinstance(one, (ast.For, ast.comprehension))
        and any(_walks(one.iter, name) for name in tensors)
        for part in ast.walk(one.target) if isinstance(part, ast.Name)
    }  # fmt: skip
    for one in code.own_nodes(function):
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Subscript) and _is_read_from(one.value, tensors):
            elements |= {part.id for target in one.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    pieces: dict[ast.expr, str] = {}
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Attribute):
            continue
        own = any(_is_tensor(one.value, name) for name in tensors)
        element = code.root(one) in elements
        if own and one.attr not in _SAME:
            return ""  # a method that an array has not
        call = source.parent(one)
        if one.attr == "numpy" and (own or element or _is_read_from(one, tensors)) and isinstance(call, ast.Call):
            pieces[call] = source.text(one.value)
        elif element and one.attr not in _SAME:
            return ""
    lines = [f"{one.text} = {one.text}.numpy()" for one in slow if not one.rest]
    lines += [f"{name} = [one.numpy() for one in {name}]" for name in sorted(rests)]
    rest = [Edit(node.file, *source.kept_lines(pieces))] if pieces else []
    return pastes.written(pastes.above(facts, node.file, start, *lines), *rest)


def _is_read_from(node: ast.expr, tensors: list[str]) -> bool:
    """Whether an expression begins with a tensor: `x[i].numpy`."""
    return any(_is_tensor(one, name) for one in ast.walk(node) for name in tensors) and code.root(node) in {
        one.partition("[")[0] for one in tensors
    }
