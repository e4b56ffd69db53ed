"""How often a method runs in one call of its layer, and what goes over the turns: a list in `__init__`, and an index.

A layer that such a method makes, or calls, is another one in each turn: a single one in `__init__` would share its
weights, or refuse what the next turn gives it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from pyfunc_debug.doctor.code import local_names
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.text import listed

LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)
_DEEPEST = 8
_COUNTS = ("range", "len", "zip", "enumerate")
_INDICES = ("i", "index", "number", "turn")


@dataclass(frozen=True)
class Turns:
    """What a method does more than once.

    Attributes:
      over: What a list with an item for each turn goes over: `range(self.count)`.
      index: Which item each call takes.
      pieces: Headers of loops, with an index.
    """

    over: str
    index: dict[ast.Call, str]
    pieces: dict[ast.expr, str]


@dataclass(frozen=True)
class Passed:
    """An index that a method is given in each of its calls.

    Attributes:
      over: What a list with an item for each call goes over.
      name: The index' name in the method.
      header: The first line of the method, with the index behind `self`.
      pieces: The calls' first arguments and the headers of loops, with the index.
    """

    over: str
    name: str
    header: Edit
    pieces: dict[ast.expr, str]


def repeated(source: Source, function: ast.AST | None, depth: int = 0) -> list[ast.Attribute]:
    """Where a class uses a method of its own, if that may run more than once in a call of the layer; else none."""
    holder = source.parent(function) if function is not None else None
    if not isinstance(holder, ast.ClassDef) or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return []
    decorators = [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]
    if function.name in ("call", "__call__") or any(dotted(one).endswith("function") for one in decorators):
        return []  # a trace begins there
    uses = [
        one for one in ast.walk(holder)
        if isinstance(one, ast.Attribute) and dotted(one) == f"self.{function.name}" and isinstance(one.ctx, ast.Load)
    ]  # fmt: skip
    if len(uses) != 1:
        return uses
    called = source.parent(uses[0])
    caller = method_around(source, uses[0])
    if caller is function or depth > _DEEPEST:
        return uses
    if not isinstance(called, ast.Call) or called.func is not uses[0] or _turned(source, called, caller):
        return uses
    return uses if repeated(source, caller, depth + 1) else []


def method_around(source: Source, node: ast.AST) -> ast.FunctionDef | None:
    """The method of a class in which something stands."""
    every = (one for one in source.around(node) if isinstance(one, ast.FunctionDef))
    return next((one for one in every if isinstance(source.parent(one), ast.ClassDef)), None)


def loop_around(source: Source, node: ast.AST, function: ast.AST | None) -> ast.AST | None:
    """The innermost loop of a function that runs an expression in each turn; a lambda may run as often as one."""
    before = node
    for one in source.around(node):
        if one is function:
            return None
        if isinstance(one, ast.Lambda) or (isinstance(one, LOOPS) and before is not getattr(one, "iter", None)):
            return one
        before = one
    return None


def _turned(source: Source, call: ast.Call, caller: ast.FunctionDef | None) -> bool:
    """Whether a loop runs a call; a loop over the batches that another method than `call` is given is for training."""
    loop = loop_around(source, call, caller)
    if loop is None or caller is None or caller.name == "call" or not isinstance(loop, ast.For):
        return loop is not None
    given = {one.arg for one in (*caller.args.args, *caller.args.kwonlyargs)}
    return not given & {one.id for one in ast.walk(loop.iter) if isinstance(one, ast.Name)} - {"self"}


def turns(source: Source, function: ast.FunctionDef, nodes: Sequence[ast.Call]) -> Turns | None:
    """An item for each time that calls in a method run; None where their count is not plain in `__init__`."""
    looped = [(one, loop) for one in nodes if (loop := loop_around(source, one, function)) is not None]
    first = len(nodes) - len(looped)
    straight = [one for one in nodes if all(one is not each for each, _ in looped)]
    index = {one: str(place) for place, one in enumerate(straight)}
    if not looped:
        return Turns(f"range({first})", index, {})
    call, loop = looped[0]
    if len(looped) > 1 or not isinstance(loop, ast.For) or loop.orelse or loop_around(source, loop, function):
        return None
    stored = [one.id for part in loop.body for one in ast.walk(part) if _is_stored(one) and isinstance(one, ast.Name)]
    counted = _counted(source, function, loop, first)
    if counted is None or counted[1] in stored:
        return None
    over, name, offset, pieces = counted
    index[call] = name if not offset else f"{name} {'+' if offset > 0 else '-'} {abs(offset)}"
    return Turns(over, index, pieces)


def _counted(
    source: Source, function: ast.FunctionDef, loop: ast.For, first: int
) -> tuple[str, str, int, dict[ast.expr, str]] | None:
    """What a loop goes over, the name of its index, what to add to that, and its header where that has to change."""
    over, target, text = loop.iter, loop.target, source.text
    if not known_before(source, function, over):
        return None
    kind = dotted(over.func) if isinstance(over, ast.Call) else ""
    if isinstance(over, ast.Call) and (over.keywords or any(isinstance(one, ast.Starred) for one in over.args)):
        return None
    free = next((one for one in _INDICES if one not in local_names(function)), "")
    if isinstance(over, ast.Call) and kind == "range" and isinstance(target, ast.Name):
        name = target.id if target.id != "_" else free
        pieces: dict[ast.expr, str] = {target: free} if target.id == "_" else {}
        start = over.args[0] if len(over.args) == 2 else ast.Constant(0)
        number = start.value if isinstance(start, ast.Constant) and isinstance(start.value, int) else None
        if len(over.args) > 2 or number is None or number < 0 or not name:
            return None
        if first == 0:
            return text(over), name, -number, pieces
        if first == number:
            return f"range({text(over.args[1])})", name, 0, pieces
        return (f"range({text(over.args[0])} + {first})", name, first, pieces) if number == 0 else None
    if first:
        return None
    if isinstance(over, ast.Call) and kind == "enumerate" and len(over.args) == 1 and isinstance(target, ast.Tuple):
        number_of = target.elts[0]
        if isinstance(number_of, ast.Name) and number_of.id != "_":
            return text(over.args[0]), number_of.id, 0, {}
        return None
    if not free or (kind not in ("", "zip")) or not (kind or dotted(over).startswith("self.")):
        return None
    items = text(target)
    items = f"({items})" if isinstance(target, ast.Tuple) and not items.startswith("(") else items
    return text(over), free, 0, {target: f"{free}, {items}", over: f"enumerate({text(over)})"}


def known_before(source: Source, function: ast.FunctionDef, node: ast.AST) -> bool:
    """Whether an expression of a method means the same at the end of `__init__`: attributes, constants, and counts."""
    holder = source.parent(function)
    init = next((one for one in getattr(holder, "body", ()) if getattr(one, "name", "") == "__init__"), None)
    kept = {dotted(one) for one in ast.walk(init or ast.Pass()) if isinstance(one, ast.Attribute) and _is_stored(one)}
    local = local_names(function) - {"self"}
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and (dotted(one.value) != "self" or dotted(one) not in kept):
            return False
        if isinstance(one, ast.Call) and dotted(one.func) not in _COUNTS:
            return False
        if isinstance(one, ast.Name) and one.id in local:
            return False
        if isinstance(one, (ast.Lambda, ast.Subscript, ast.comprehension, ast.NamedExpr)):
            return False
    return True


def passed(source: Source, function: ast.FunctionDef, uses: Sequence[ast.Attribute]) -> Passed | None:
    """An index that all calls of a method give it; None where they are not plain."""
    nodes = [one for use in uses if isinstance(one := source.parent(use), ast.Call) and one.func is use and one.args]
    callers = {id(one): one for use in uses if (one := method_around(source, use)) is not None}
    if len(nodes) != len(uses) or len(callers) != 1:
        return None
    (caller,) = callers.values()
    inside = [one for one in nodes for part in ast.walk(one) if part in nodes and part is not one]
    if caller is function or inside or repeated(source, caller) or function.decorator_list:
        return None
    every = turns(source, caller, nodes)
    name = next((one for one in _INDICES if one not in local_names(function)), "")
    line, head = source.lines[function.lineno - 1], f"def {function.name}(self"
    if every is None or not name or head not in line or function.body[0].lineno == function.lineno:
        return None
    header = Edit("", function.lineno, function.lineno, (line.replace(head, f"{head}, {name}", 1),))
    pieces = dict(every.pieces)
    pieces |= {one.args[0]: f"{every.index[one]}, {source.text(one.args[0])}" for one in nodes}
    return Passed(every.over, name, header, pieces)


def lines_said(numbers: Sequence[int]) -> str:
    """`line 3`, `lines 3 and 5`."""
    every = [str(one) for one in sorted(set(numbers))]
    return f"{'line' if len(every) == 1 else 'lines'} {listed(every)}"


def _is_stored(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)
