"""Random numbers that a traced function drew in Python, once, while its graph was built."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.draws.drawn_in_python import in_words
from pyfunc_debug.doctor.draws.drawn_lines import drawn_line
from pyfunc_debug.doctor.facts import Definition, Facts, makes_node
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import names
from pyfunc_debug.doctor.graphs.passed_in import passed_in
from pyfunc_debug.doctor.graphs.undecorated import undecorated
from pyfunc_debug.doctor.text import times
from pyfunc_debug.records import Finding, Function

_ITEMS = {"sample", "choice", "choices", "shuffle", "permutation", "integers", "randint"}
"""Draws of what a program keeps, which no op draws of."""
_MOST = 4
"""Lines of draws that are shown."""


def drawn_once(facts: Facts, function: Function, draws: Sequence[code.Write], traces: int, runs: int) -> Finding:
    """Random numbers that are drawn while the graph is built: from then on they are constants."""
    data, draw = function.kind == "tf.data", draws[0]
    edits = [edit for one in draws for edit in _drawn_in_graph(facts, function, one)]
    edits += _as_floats(facts, function, draws) if None not in edits else []
    places = {(one.first, one.last) for one in edits if one is not None}
    first = _drawn_in_graph(facts, function, draw) if None in edits or len(places) < len(edits) else edits
    asked = "each element gets the same" if data else f"all {runs:,} runs got what was drawn then"
    where = _drawn_in(facts, function, draws)
    if len(draws) == 1:
        what, ran = f"line {draw.line} of {where} draws a random number in Python. It ran", " number" * data
    else:
        lines = f"{', '.join(str(one.line) for one in draws[:-1])} and {draws[-1].line}"
        what, ran = f"lines {lines} of {where} draw random numbers in Python. They ran", " numbers" * data
    return Finding(
        "trace-only", "warning", None, (),
        f"{what} {times(traces)}, when "
        f"{'the dataset was built' if data else 'TensorFlow traced the function'}: {asked}{ran}",
        _each_time(facts, function, draws) or _kept_draw(facts, function, draws) or pastes.written(*first)
        or _taken_apart(facts, function, draws) or in_words(
            facts, function.file, draw, None if data else f"where {function.name.rpartition('.')[2]} is called"
        ),
        function.file, draw.line,
        evidence=tuple(f"line {one.line}: {facts.line(function.file, one.line)}" for one in draws[:_MOST]),
    )  # fmt: skip


def draws_of(
    function: Definition,
    tree: ast.AST | None,
    depth: int = 2,
    of: Callable[[Definition, ast.AST | None], list[code.Write]] = code.python_random,
) -> list[code.Write]:
    """The draws of a function and of those of its file that it calls, one a line, in the order of the lines."""
    found = {one.line: one for one in reversed(of(function, tree))}
    known = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)] if tree is not None and depth else []
    for call in (one for one in code.own_nodes(function) if isinstance(one, ast.Call)):
        name = ast.unparse(call.func)
        own = [one for one in known if one.name == name.removeprefix("self.") and one is not function]
        own = own or _call_of(tree, name)
        for one in own if len(own) == 1 else _of_a_list(tree, function, call.func, known):
            found.update({draw.line: draw for draw in draws_of(one, tree, depth - 1, of)})
    return sorted(found.values(), key=lambda one: one.line)


def _of_a_list(
    tree: ast.AST | None, function: Definition, called: ast.expr, known: Sequence[ast.FunctionDef]
) -> list[ast.FunctionDef]:
    """The functions of the file that stand in a list which is called one by one: `for f in steps: x = f(x)`."""
    held: ast.expr | None = called.value if isinstance(called, ast.Subscript) else None
    if isinstance(called, ast.Name) and tree is not None:
        loops = [one for one in ast.walk(tree) if isinstance(one, ast.For) and ast.unparse(one.target) == called.id]
        loops = [one for one in loops if one in [*ast.walk(function)]]  # one around it makes a function in each turn
        held = loops[0].iter if len(loops) == 1 else None
    if isinstance(held, (ast.Name, ast.Attribute)):
        made = [
            value for one in pastes.walk(tree, ast.Assign) for target, value in _pairs(one)
            if ast.unparse(target) == ast.unparse(held)
        ]  # fmt: skip
        held = made[0] if len(made) == 1 else None
    parts = held.elts if isinstance(held, (ast.List, ast.Tuple)) else held.values if isinstance(held, ast.Dict) else []
    if isinstance(called, ast.Subscript) or isinstance(held, ast.Dict):  # only the one that is asked for runs
        keys = held.keys if isinstance(held, ast.Dict) else [ast.Constant(place) for place in range(len(parts))]
        asked = ast.unparse(called.slice) if isinstance(called, ast.Subscript) else ""
        parts = [part for key, part in zip(keys, parts) if key is not None and ast.unparse(key) == asked]
    listed = {ast.unparse(one).removeprefix("self.") for one in parts}
    found = [one for one in known if one.name in listed and one is not function]
    return found if len({one.name for one in found}) == len(found) else []


def _call_of(tree: ast.AST | None, name: str) -> list[ast.FunctionDef]:
    """A method of the file's class of which a name is the one object: `call` of a layer, `sample` of a buffer."""
    holder, _, method = name.rpartition(".")
    own = _methods(tree, name, "call") or _methods(tree, name, "__call__")
    return own or (_methods(tree, holder, method) if holder else [])


def _methods(tree: ast.AST | None, holder: str, method: str) -> list[ast.FunctionDef]:
    kinds = {
        ast.unparse(value.func) for one in pastes.walk(tree, ast.Assign) for target, value in _pairs(one)
        if isinstance(value, ast.Call) and ast.unparse(target) == holder
    }  # fmt: skip
    classes = [one for one in pastes.walk(tree, ast.ClassDef) if kinds == {one.name}]
    return [part for one in classes for part in one.body if isinstance(part, ast.FunctionDef) and part.name == method]


def _pairs(statement: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment gives to what: `a, b = x, y` gives twice."""
    for target in statement.targets:
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            yield from zip(target.elts, statement.value.elts)
        else:
            yield target, statement.value


def _each_time(facts: Facts, function: Function, draws: Sequence[code.Write]) -> str:
    """The helper that draws called where the function is called, where the draws are one helper's."""
    name, tree = function.name.rpartition(".")[2], facts.tree(function.file)
    holders = {one[-1].name if (one := pastes.around(tree, draw.line, ast.FunctionDef)) else "" for draw in draws}
    kept = _ITEMS if name not in holders else set()
    drawn = any(draw.called.rpartition(".")[2] in kept for draw in draws)
    return passed_in(facts, function, holders) if function.kind == "tf.function" and drawn else ""


def _taken_apart(facts: Facts, function: Function, draws: Sequence[code.Write]) -> str:
    """The function without its decorator where Python takes apart what it drew of a list: no tensor can stand there."""
    found = facts.definition(function.file, function.line)
    lines = {one.line for one in draws if one.called.rpartition(".")[2] in _ITEMS}
    made = {
        target.id for one in pastes.walk(found, ast.Assign) if one.lineno in lines
        for target in one.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    iterated = [one.iter for one in pastes.walk(found, ast.For)]
    iterated += [one.iter for one in pastes.walk(found, ast.comprehension)]
    iterated += [part.value for one in pastes.walk(found, ast.Call) if pastes.last_name(one.func) == "zip"
                 for part in one.args if isinstance(part, ast.Starred)]  # fmt: skip
    if function.kind != "tf.function" or not any(isinstance(one, ast.Name) and one.id in made for one in iterated):
        return ""
    return undecorated(facts, function, found, "takes apart in Python what it draws")


def _kept_draw(facts: Facts, function: Function, draws: Sequence[code.Write]) -> str:
    """What to do where a draw is kept by an object (an environment's state): it would keep a symbol of the graph."""
    name = function.name.rpartition(".")[2]
    for draw in draws:
        for holder in pastes.around(facts.tree(function.file), draw.line, ast.FunctionDef)[-1:]:
            made = [one for one in pastes.walk(holder, ast.Assign) if one.lineno == draw.line]
            kept = [one for part in made for one in part.targets if isinstance(one, (ast.Attribute, ast.Subscript))]
            element = holder.name == name and function.kind == "tf.data"  # `x["noise"] = ...` of a dataset's dict
            if element and kept and isinstance(kept[0], ast.Subscript) and code.root(kept[0]) != "self":
                continue
            if kept and code.root(kept[0]) in ("self", *code.parameters(holder)):
                what = "draw" if holder.name == name else f"call {holder.name}"
                return (
                    f"{what} where {name} is called, which is Python, and give {name} what it needs: a draw of the "
                    f"graph would leave a symbol in {ast.unparse(kept[0])}"
                )
    return ""


def _drawn_in(facts: Facts, function: Function, draws: Sequence[code.Write]) -> str:
    """The function whose lines draw: the traced one, or one that it calls."""
    holders = [pastes.around(facts.tree(function.file), one.line, ast.FunctionDef) for one in draws]
    inner = {one[-1].name for one in holders if one}
    name = inner.pop() if len(inner) == 1 and all(holders) else ""
    return function.name if name in ("", function.name.rpartition(".")[2]) else f"{name}, for {function.name},"


def _as_floats(facts: Facts, function: Function, draws: Sequence[code.Write]) -> list[Edit | None]:
    """Where a whole number that was drawn is computed with fractions, a cast: TensorFlow computes in one dtype only."""
    tree, tf = facts.tree(function.file), pastes.module(facts, function.file, "tensorflow") or "tf"
    pieces: dict[ast.expr, str] = {}
    for draw in draws:
        drawn = drawn_line(facts, function.file, draw)
        holder = pastes.around(tree, draw.line, ast.FunctionDef)[-1:]
        made = [
            one.targets[0].id for one in pastes.walk(holder[0] if holder else None, ast.Assign)
            if one.lineno == draw.line and isinstance(one.targets[0], ast.Name)
        ]  # fmt: skip
        if not made or drawn is None or not drawn.lines[-1].endswith("tf.int32)"):
            continue
        for one in pastes.walk(holder[0], ast.BinOp):
            operands = list(code.operands(one))
            if any(isinstance(part, ast.Div) or _is_float(part) for part in operands):
                pieces |= {
                    part: f"{tf}.cast({part.id}, {tf}.float32)" for part in operands
                    if isinstance(part, ast.Name) and part.id == made[0] and part.lineno > draw.line
                }  # fmt: skip
    return pastes.each_replaced(facts, function.file, pieces)


def _is_float(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


def _drawn_in_graph(facts: Facts, function: Function, draw: code.Write) -> list[Edit | None]:
    """A line with TensorFlow's draw, and what has to change with it; None in it where there is no such op."""
    drawn = drawn_line(facts, function.file, draw)
    return [None] if drawn is None else [drawn, *_as_inputs(facts, function, draw)]


def _as_inputs(facts: Facts, function: Function, draw: code.Write) -> list[Edit | None]:
    """What was drawn as an input of the py_functions whose body takes it from around: then it is a tensor."""
    found = facts.definition(function.file, function.line)
    statements = [
        one for one in (ast.walk(found) if found is not None else ())
        if isinstance(one, ast.Assign) and one.lineno == draw.line and isinstance(one.targets[0], ast.Name)
    ]  # fmt: skip
    if found is None or len(statements) != 1:
        return []
    name = statements[0].targets[0].id  # type: ignore[attr-defined]
    own, edits = pastes.source(facts, function.file), []
    for call in (one for one in ast.walk(found) if isinstance(one, ast.Call) and makes_node(one)):
        body, inp = pastes.argument(call, 0, "func"), pastes.argument(call, 1, "inp")
        if body is None or not isinstance(inp, (ast.List, ast.Tuple)) or name not in names(body):
            continue
        listed = ", ".join([*map(own.text, inp.elts), name])
        if isinstance(body, ast.Lambda) and not body.args.vararg and not body.args.defaults:
            given = ", ".join([*code.parameters(body), name])
            new = f"lambda {given}: {own.text(body.body)}"
        elif isinstance(body, ast.Call) and ast.unparse(body.func).endswith("partial"):
            rest = [own.text(one) for one in body.args[1:]]
            keywords = [f"{one.arg}={own.text(one.value)}" for one in body.keywords]
            plain = all(isinstance(one, ast.Name) for one in inp.elts)
            given = ", ".join(map(own.text, inp.elts)) if plain else ""
            if not given:
                return [None]
            new = f"lambda {listed}: {own.text(body.args[0])}({', '.join([*rest, given, *keywords])})"
        else:
            return [None]
        edits.append(pastes.replaced(facts, function.file, {body: new, inp: f"[{listed}]"}))
    return edits
