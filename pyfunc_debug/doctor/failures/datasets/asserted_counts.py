"""`assert_cardinality(n)` with another number than the dataset has elements: of rows, where these are batches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.callables import called
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import lookup
from pyfunc_debug.doctor.generators.element_counts import count_of, length_in
from pyfunc_debug.doctor.generators.generator_source import generator_of

RULE = "asserted-count"
_SAID = re.compile(r"Input dataset was expected to contain (\d+) elements? but contained (only|at least) (\d+) element")
_ASSERTS = "assert_cardinality"
_KEEP = ("map", "prefetch", "shuffle", "cache", "with_options", "enumerate")
_BATCHES = ("batch", "padded_batch")
_OPEN = ("filter", "unbatch", "flat_map", "interleave", "take_while", "ignore_errors", "window", "skip", "take",
         "shard", "repeat", "concatenate")  # fmt: skip
"""Stages behind which the number of elements is another; of none is it computed here."""
_BATCH_NAME = re.compile(r"(?:^|_)(?:batch(?:_?size)?|bs)$", re.IGNORECASE)
_MOST = 30
"""Stages of a pipeline that are followed."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a dataset has more or fewer elements than the program says."""
    said = _SAID.search(situation.text)
    if said is None or situation.body or situation.kind != "FailedPreconditionError":
        return None
    wanted, has = int(said[1]), int(said[3])
    found = [
        (file, source, call)
        for file, source in situation.sources()
        for call in source.calls_of(frozenset({_ASSERTS}))
        if len(call.args) == 1 and not call.keywords
    ]
    values = [(one, _value(one[2].args[0], _spot(situation, one[0], one[2]))) for one in found]
    fitting = [one for one, value in values if value == wanted] or [one for one, value in values if value is None]
    if len(fitting) != 1:
        return None
    file, source, call = fitting[0]
    spot = _spot(situation, file, call)
    given, only = call.args[0], said[2] == "only"
    text = source.text(given)
    number = "" if isinstance(given, ast.Constant) else f", which is {wanted:,} here,"
    cause = f"{_ASSERTS}({short(text, 30)}){number} says how many elements the dataset has there, and it has "
    cause += f"{'only' if only else 'at least'} {has:,}."
    stages, start = _pipeline(source, call)
    why, count = _count(source, stages, start, given, spot, (wanted, has, only))
    edit = edit_of(file, source.replaced({given: count})) if count else None
    advice = "Give it the number of elements that the dataset has at this place, or leave it out."
    if not why and (cut := next((one for one in stages if called(one) in _OPEN), None)) is not None:
        why = f"`{called(cut)}` in line {_line(cut)} stands in front of it, and changes their number."
    return Explanation(
        RULE, file, call.lineno, f"{cause} {why}".strip(), edit, "" if edit else advice,
        "measured" if edit or not why else "likely",
    )  # fmt: skip


def _spot(situation: Situation, file: str, call: ast.Call) -> Spot:
    """Where the call stands: a frame of its function, else what its module knows."""
    spots = [one for one in situation.spots if one.file == file]
    own = [one for one in spots if one.function is not None and call in ast.walk(one.function)]
    if own:
        return own[-1]
    module = spots[-1].module if spots else {}
    return Spot(file, call.lineno, {}, module, "")


def _value(node: ast.expr, spot: Spot) -> int | None:
    """A number of names, lengths and `//`; None where it is not known."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(node.operand, spot)
        return None if value is None else -value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, spot), _value(node.right, spot)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.FloorDiv):
            return left // right if right else None
        signs = {ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right}
        return next((value for sign, value in signs.items() if isinstance(node.op, sign)), None)
    if isinstance(node, ast.Call) and dotted(node.func) == "len" and len(node.args) == 1:
        held = _known(node.args[0], spot)
        sized = isinstance(held, (list, tuple, dict, range)) or hasattr(type(held), "__array__")
        return len(held) if sized else None  # type: ignore[arg-type]
    known = _known(node, spot)
    return known if type(known) is int else None


def _known(node: ast.expr, spot: Spot) -> object:
    """What a name stands for; what a module's name stands for is another's in a function that has one of its own."""
    function = spot.source.function(spot.line) if not spot.variables else None
    own = isinstance(node, ast.Name) and function is not None and not isinstance(function, ast.Lambda) and any(
        (isinstance(one, ast.arg) and one.arg == node.id)
        or (isinstance(one, ast.Name) and one.id == node.id and isinstance(one.ctx, ast.Store))
        for one in ast.walk(function)
    )  # fmt: skip
    return None if own else lookup(node, spot)


def _pipeline(source: Source, call: ast.Call) -> tuple[list[ast.Call], ast.Call | None]:
    """The stages in front of the assertion, nearest first, and the call that makes the dataset."""
    applied = source.parent(call)
    if not isinstance(applied, ast.Call) or not isinstance(applied.func, ast.Attribute):
        return [], None
    stages: list[ast.Call] = []
    one: ast.expr | None = applied.func.value
    line = applied.lineno
    for _ in range(_MOST):
        if isinstance(one, (ast.Name, ast.Attribute)):
            made = list(_made(source, one, call, line))
            if not made:
                break
            line, one = made[-1].lineno, made[-1].value
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
            if "from_" in one.func.attr or one.func.attr == "range":
                return stages, one
            stages.append(one)
            one = one.func.value
        else:
            break
    return stages, None


def _made(source: Source, name: ast.expr, call: ast.Call, line: int) -> Iterator[ast.Assign]:
    """The assignments of a name above a line, in the function that the call stands in."""
    around = source.function(call.lineno)
    for one in ast.walk(around or source.tree):
        if isinstance(one, ast.Assign) and [dotted(target) for target in one.targets] == [dotted(name)]:
            statement = source.statement(line)
            if (one.end_lineno or one.lineno) < (statement.lineno if statement is not None else line):
                yield one


def _count(
    source: Source,
    stages: list[ast.Call],
    start: ast.Call | None,
    given: ast.expr,
    spot: Spot,
    said: tuple[int, int, bool],
) -> tuple[str, str]:
    """Why the number is another, and the expression that gives the right one; "" for what is not sure."""
    wanted, has, only = said
    if start is None or any(called(one) not in (*_KEEP, *_BATCHES) for one in stages):
        return "", ""
    text = source.text(given)
    batches = [one for one in stages if called(one) in _BATCHES]
    if len(batches) > 1:
        return "", ""
    size = _batch_argument(batches[0]) if batches else None
    if size is not None:
        rows = _rows(source, start, spot)
        for each in dict.fromkeys((rows, text) if rows else (text,)):
            number = _value(ast.parse(each, mode="eval").body, spot) if each != text else wanted
            found = _divided(source, each, number, size, _value(size, spot), has if only else None, wanted)
            if found:
                return f"Its elements are batches of {source.text(size)} (line {_line(batches[0])}).", found
        return "", ""
    if batches:
        return "", ""
    rows = _rows(source, start, spot)
    number = _value(ast.parse(rows, mode="eval").body, spot) if rows else None
    if rows and number is not None and (number == has if only else number >= has):
        if isinstance(given, ast.BinOp) and isinstance(given.op, ast.FloorDiv) and not only:
            return "They are not batched yet at this place.", rows
        return f"It has one for each of the {number:,}.", rows
    if not only and isinstance(given, ast.BinOp) and isinstance(given.op, ast.FloorDiv):
        return ("They are not batched yet at this place.", source.text(given.left)) if rows else ("", "")
    for name, value in _batch_sizes(source, start, given, spot):
        found = _divided(source, text, wanted, name, value, has if only else None, wanted)
        if found and only:
            return f"Each element is a batch of {source.text(name)} rows: the generator gives batches.", found
    return "", ""


def _divided(
    source: Source, rows: str, number: int | None, size: ast.expr, value: int | None, has: int | None, wanted: int
) -> str:
    """`-(-rows // size)`, or `rows // size` where the last batch is dropped, if that many came."""
    if number is None or not value or value < 2:
        return ""
    by = source.operand(size)
    rows = rows if rows.isidentifier() or re.fullmatch(r"[\w.]+(?:\([\w.]*\))?", rows) else f"({rows})"
    if has is None:  # it goes on after `wanted`
        return f"-(-{rows} // {by})" if -(-number // value) > wanted else ""
    if -(-number // value) == has:
        return f"-(-{rows} // {by})"
    return f"{rows} // {by}" if number // value == has else ""


def _rows(source: Source, start: ast.Call, spot: Spot) -> str:
    """How many elements the source of a pipeline gives, as an expression that stands there."""
    name = called(start)
    if name == "from_generator":

        def length(node: ast.expr) -> int | None:
            value = _known(node, spot)
            sized = isinstance(value, (list, tuple, dict, range)) or hasattr(type(value), "__array__")
            return len(value) if sized else length_in(source)(node)  # type: ignore[arg-type]

        return count_of(source, start, length)
    part = start.args[0] if len(start.args) == 1 else None
    if name == "range" and part is not None:
        return source.text(part)
    if name == "from_tensor_slices":
        while isinstance(part, ast.Tuple) and part.elts:
            part = part.elts[0]
        return f"len({source.text(part)})" if isinstance(part, (ast.Name, ast.Attribute)) else ""
    return ""


def _batch_sizes(source: Source, start: ast.Call, given: ast.expr, spot: Spot) -> Iterator[tuple[ast.expr, int | None]]:
    """What a generator is given as the size of its batches, and reads as that: expressions, and their values."""
    made = generator_of(source, start)
    named = dict(made.given) if made is not None else {}
    if made is not None and isinstance(made.function, ast.FunctionDef):
        for one in ast.walk(made.function):  # of an outer function, or the module
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.id not in named:
                named[one.id] = one
    for name, one in named.items():
        if _BATCH_NAME.search(name) and isinstance(one, (ast.Name, ast.Attribute, ast.Constant)):
            yield one, _value(one, spot) or _passed(source, one, given, spot)


def _passed(source: Source, name: ast.expr, given: ast.expr, spot: Spot) -> int | None:
    """The value of a parameter of the function that a line stands in, by the one call of it in the file."""
    function = source.function(given.lineno)
    if not isinstance(function, ast.FunctionDef) or not isinstance(name, ast.Name):
        return None
    parameters = [one.arg for one in function.args.args]
    holder = source.parent(function)
    maker = holder.name if isinstance(holder, ast.ClassDef) and function.name in ("__new__", "__init__") else ""
    if isinstance(holder, ast.ClassDef):
        parameters = parameters[1:]
    if name.id not in parameters:
        return None
    calls = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] == (maker or function.name)
    ]  # fmt: skip
    if len(calls) != 1 or any(isinstance(one, ast.Starred) for one in calls[0].args):
        return None
    passed = dict(zip(parameters, calls[0].args)) | {one.arg: one.value for one in calls[0].keywords if one.arg}
    defaults = dict(zip(reversed(function.args.args), reversed(function.args.defaults)))
    value = passed.get(name.id) or next((one for arg, one in defaults.items() if arg.arg == name.id), None)
    at = Spot(spot.file, calls[0].lineno, {}, spot.module, "")
    return _value(value, at) if value is not None else None


def _batch_argument(call: ast.Call) -> ast.expr | None:
    named = {one.arg: one.value for one in call.keywords}
    return call.args[0] if call.args else named.get("batch_size")


def _line(call: ast.Call) -> int:
    """The line of a method's name, in a chain of several lines."""
    return call.func.end_lineno or call.lineno
