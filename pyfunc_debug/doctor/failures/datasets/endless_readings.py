"""`dataset.reduce(...)`, `list(dataset)`, a loop: they wait for the end of a generator that has none.

Keras' image generators begin again at their end, and a `from_generator` that is given one has none, either. All is read
from the source, so that who waits can be told, too: see `endless_loops.going_on`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType

from pyfunc_debug.doctor.datasets.shuffled_flows import FLOWS
from pyfunc_debug.doctor.failures.datasets import endless_loops, generator_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Locate, Spot, lines_of, spots_of
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, short
from pyfunc_debug.doctor.generators.generator_source import is_endless

_TAKERS = ("list", "tuple", "set", "sum", "len", "max", "min", "sorted", "dict")
"""What takes all that there is."""
_KEEPS = ("map", "prefetch", "batch", "shuffle", "cache", "unbatch", "padded_batch", "with_options", "filter",
          "enumerate", "as_numpy_iterator", "apply")  # fmt: skip
"""Methods of a dataset behind which its elements still have no end."""
_WRAPS = ("enumerate", "tqdm", "iter", "map", "zip")
_DEPTH = 16


@dataclass(frozen=True)
class _At:
    """An expression, and where it stands: the lines that lead to it, the innermost last."""

    node: ast.expr
    spots: Sequence[Spot]
    line: int

    @property
    def source(self) -> Source:
        return self.spots[-1].source


def interrupted(error: KeyboardInterrupt, locate: Locate) -> Explanation | None:
    """The explanation for who interrupts it.

    Args:
      error: What Ctrl-C raised, with its traceback.
      locate: Maps a line of AutoGraph's generated code to the user's file and line.
    """
    return _told(spots_of(lines_of([error]), locate))


def going_on(frame: FrameType, locate: Locate) -> Explanation | None:
    """The explanation for a thread that waits for such an end now, and is in this frame."""
    return _told(endless_loops.source_spots(frame, locate))


def _told(spots: Sequence[Spot]) -> Explanation | None:
    if any(isinstance(one, ast.Try) for spot in spots if spot.statement for one in spot.source.around(spot.statement)):
        return None  # an exception may be the way out
    for place in range(len(spots), 0, -1):
        here = spots[:place]
        for taker, data in _takers(here[-1]):
            call = _generator_call(_At(data, here, here[-1].line))
            found = _explained(taker, call, here[-1]) if call is not None else None
            if found is not None:
                return found
    return None


def _takers(spot: Spot) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What takes all of a dataset at a line, and the dataset: `ds.reduce(...)`, `list(ds)`, `[x for x in ds]`."""
    statement = spot.statement
    if statement is None:
        return
    inside = [statement.iter] if isinstance(statement, ast.For) else [statement]
    if not isinstance(statement, (ast.For, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)):
        inside = []
    for one in (part for whole in inside for part in (whole, *own_nodes(whole))):
        if isinstance(one, (ast.ListComp, ast.SetComp, ast.DictComp)):
            yield one, one.generators[0].iter
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "reduce":
            yield one, one.func.value
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in _TAKERS and one.args:
            given = one.args[0]
            yield one, given.generators[0].iter if isinstance(given, ast.GeneratorExp) else given
    for loop in endless_loops.loops_at(spot):
        yield loop.iter, loop.iter


def _generator_call(at: _At) -> tuple[ast.Call, Spot] | None:
    """The `from_generator` that a dataset begins with; None where it may have an end, or that is not known."""
    for _ in range(_DEPTH):
        node = at.node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "from_generator":
                return node, at.spots[-1]
            if node.func.attr not in _KEEPS:
                return None
            at = _At(node.func.value, at.spots, at.line)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _WRAPS:
            which = 1 if node.func.id == "map" else 0
            if len(node.args) <= which or (node.func.id == "zip" and len(node.args) > 1):
                return None
            at = _At(node.args[which], at.spots, at.line)
        else:
            made = _called(at) if isinstance(node, ast.Call) else _named(at)
            if made is None:
                return None
            at = made
    return None


def _called(at: _At) -> _At | None:
    """What a function of the file returns that makes the dataset."""
    functions = [
        one for one in ast.walk(at.source.tree)
        if isinstance(one, ast.FunctionDef) and isinstance(at.node, ast.Call) and one.name == dotted(at.node.func)
    ]  # fmt: skip
    returned = _returned(functions[0]) if len(functions) == 1 else None
    if returned is None or returned.value is None:
        return None
    spot = Spot(at.spots[-1].file, returned.lineno, {}, {}, "")
    return _At(returned.value, (*at.spots, spot), returned.lineno)


def _returned(function: ast.FunctionDef) -> ast.Return | None:
    """The one `return` of a function, at its end, that yields nothing."""
    inside = own_nodes(function)
    found = [one for one in inside if isinstance(one, ast.Return)]
    yields = any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in inside)
    return found[0] if len(found) == 1 and found[0] is function.body[-1] and not yields else None


def _named(at: _At) -> _At | None:
    """What a name was assigned last above the line; of a parameter, what the line further out gives for it."""
    name, spot = dotted(at.node), at.spots[-1]
    if not name:
        return None
    function = spot.function
    if "." not in name and isinstance(function, ast.FunctionDef):
        found = _last(at.source, function, name, at.line)
        if found is not None:
            return _At(found.value, at.spots, found.lineno)
        if name in [one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]:
            return _given(at, function, name)
    if name.startswith("self."):
        every = [
            one for one in ast.walk(at.source.tree) if isinstance(one, ast.Assign) and name in map(dotted, one.targets)
        ]
        found = every[0] if len(every) == 1 else None
    else:
        found = _last(at.source, at.source.tree, name, None if function is not None else at.line)
    return _At(found.value, (Spot(spot.file, found.lineno, {}, {}, ""),), found.lineno) if found is not None else None


def _last(source: Source, scope: ast.FunctionDef | ast.Module, name: str, before: int | None) -> ast.Assign | None:
    """The last assignment of a name in a scope, outside of branches and loops; None where one is inside of them."""
    inside = [one for one in own_nodes(scope) if isinstance(one, ast.Assign) and name in map(dotted, one.targets)]
    found = [one for one in inside if before is None or one.lineno < before]
    if not found or any(source.parent(one) is not scope for one in inside) or (before is None and len(found) > 1):
        return None
    return found[-1]


def _given(at: _At, function: ast.FunctionDef, name: str) -> _At | None:
    outer = at.spots[:-1]
    statement = outer[-1].statement if outer and outer[-1].file == at.spots[-1].file else None
    inside = ast.walk(statement) if statement is not None else iter(())
    calls = [
        one for one in inside if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] == function.name
    ]  # fmt: skip
    if len(calls) != 1:
        return None
    parameters = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(calls[0].func, ast.Attribute):
        parameters = parameters[1:]
    known = {**dict(zip(parameters, calls[0].args)), **{one.arg: one.value for one in calls[0].keywords if one.arg}}
    plain = not any(isinstance(one, ast.Starred) for one in calls[0].args)
    return _At(known[name], outer, outer[-1].line) if plain and name in known else None


def _explained(taker: ast.expr, made: tuple[ast.Call, Spot], spot: Spot) -> Explanation | None:
    call, where = made
    source, given = where.source, generator_calls.given(call)
    if any("ImageDataGenerator" in line for line in source.code):
        found = _of_lambda(given, where) if isinstance(given, ast.Lambda) else _of_function(given, where)
        if found is not None:
            which, edit, advice = found
            cause = _cause(taker, spot, f"{which} gives Keras' batches of images, which begin again at their end")
            return Explanation(endless_loops.RULE, where.file, edit.first if edit else call.lineno, cause, edit, advice)
    function = generator_calls.function_of(source, given)
    if function is None or not is_endless(function) or _is_loop(taker, spot):
        return None  # a loop may be meant to go on: over what a camera gives
    cause = _cause(taker, spot, f"{function.name} (line {function.lineno}) loops without an end")
    text = short(source.text(given), 30) if given is not None else function.name
    advice = f"Let {text} end after one pass, or take(n), the number of elements of one pass, of the dataset before."
    return Explanation(endless_loops.RULE, spot.file, taker.lineno, cause, None, advice)


def _cause(taker: ast.expr, spot: Spot, why: str) -> str:
    text = spot.source.text(taker)
    if isinstance(taker, ast.Call) and isinstance(taker.func, ast.Attribute):
        text = f"{spot.source.text(taker.func)}(...)"
    what = f"the loop over `{short(text, 40)}`" if _is_loop(taker, spot) else f"`{short(text, 40)}`"
    return f"{what} in line {taker.lineno} never ends: {why}, and so does the dataset."


def _is_loop(taker: ast.expr, spot: Spot) -> bool:
    return any(taker is loop.iter for loop in endless_loops.loops_at(spot))


def _flow(node: ast.expr, source: Source, function: ast.FunctionDef | None) -> str:
    """Keras' images that an expression is: how they are called, or made; "" of anything else."""
    if isinstance(node, ast.Call):
        return source.text(node) if dotted(node.func).rpartition(".")[2] in FLOWS else ""
    made = _last(source, function, dotted(node), None) if function is not None else None
    made = made if made is not None else _last(source, source.tree, dotted(node), None)
    value = made.value if made is not None else None
    return dotted(node) if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in FLOWS else ""


def _of_lambda(given: ast.Lambda, where: Spot) -> tuple[str, Edit | None, str] | None:
    source = where.source
    flow = _flow(given.body, source, None)
    if not flow:
        return None
    if isinstance(given.body, ast.Call):
        advice = "Keep it in a name, batches = ..., and give lambda: (next(batches) for _ in range(len(batches)))."
        return short(flow, 40), None, advice
    edit = edit_of(where.file, source.replaced({given.body: f"(next({flow}) for _ in range(len({flow})))"}))
    return flow, edit, "" if edit else f"Give it next({flow}) len({flow}) times."


def _of_function(given: ast.expr | None, where: Spot) -> tuple[str, Edit | None, str] | None:
    """Of a function that returns them: it becomes a generator of one pass."""
    source = where.source
    function = generator_calls.function_of(source, given)
    returned = _returned(function) if function is not None else None
    if function is None or returned is None or returned.value is None:
        return None
    value = returned.value
    if isinstance(value, ast.Call) and dotted(value.func) == "iter" and len(value.args) == 1:
        value = value.args[0]
    flow = _flow(value, source, function)
    if not flow:
        return None
    first, last = source.span(returned)
    indent, name = indent_of(source.lines[first - 1]), dotted(value)
    lines = [f"{indent}for _ in range(len({name})):", f"{indent}    yield next({name})"]
    if isinstance(value, ast.Call):
        name = source.unused_name("batches")
        lines = [one.replace("()", f"({name})") for one in lines]
        lines = [f"{indent}{name} = {flow}", *lines]
    edit = Edit(where.file, first, last, tuple("\n".join(lines).split("\n")))
    return f"{function.name} (line {function.lineno})", edit, ""
