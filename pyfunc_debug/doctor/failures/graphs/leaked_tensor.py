"""A symbolic tensor used outside of the graph that it belongs to."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any, Literal

from pyfunc_debug.doctor.code import local_names
from pyfunc_debug.doctor.failures.graphs import kept_lists
from pyfunc_debug.doctor.failures.graphs.kept_tensor import holder, kept_at, kept_each_time
from pyfunc_debug.doctor.failures.graphs.python_objects import without_decorator
from pyfunc_debug.doctor.failures.models import metric_state
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import (
    Source,
    dotted,
    indent_of,
    names,
    parameters,
    read,
    short,
    tapes_around,
)
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_symbolic, lookup, root_is, shape_of
from pyfunc_debug.program.frames import is_installed, is_user

RULE = "leaked-tensor"
_SAID = re.compile(r"is out of scope(?: and cannot be used here)?|is not an element of this graph")
_GRAPH = re.compile(r"defined in FuncGraph\(name=(\w+)")
_DTYPE = re.compile(r"The tensor <tf.Tensor .*? dtype=(\w+)>")
_LISTED = re.compile(
    r"Value \[<tf\.Tensor 'while/.*is not convertible to a tensor with dtype <dtype: '(\w+)'>", re.DOTALL
)
"""What tf.data says of a list that a mapped function returned beside other values."""
_MOST = 32
"""A loop of up to this many rounds may stand in a graph round by round."""
_NEAR = 6
"""Lines between loops in each other that one paste changes."""
_MADE = re.compile(r'File "([^"]+)", line (\d+), in (\w+)\n')


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a tensor left its graph."""
    text = situation.text
    if not _SAID.search(text) or situation.kind not in ("TypeError", "InaccessibleTensorError", "ValueError"):
        return None
    spot, graph = situation.last, _GRAPH.search(text)
    if spot is None or graph is None:
        return None
    statement = spot.statement
    code = short(spot.source.text(statement).split("\n")[0], 40) if statement is not None else "this line"
    made = _place(text, [one.file for one in situation.spots])
    name = graph[1]
    if name.startswith(("while_", "cond_")):
        where = "a loop" if name.startswith("while_") else "an `if`"
        cause = (
            f"`{code}` uses a tensor that was made inside {where} of the graph{made}: outside it has no "
            "value. Python kept its symbol, once, at trace."
        )
        if statement is not None and any(isinstance(one, ast.Lambda) for one in ast.walk(statement)):
            advice = (
                "The lambda was called after that, when its names stand for nothing: call it there, and keep what it "
                "gives."
            )
            return Explanation(RULE, spot.file, spot.line, cause, None, advice)
        edit = _unrolled(text, situation) if name.startswith("while_") else None
        if edit is not None:
            cause += " As a loop of Python's the graph holds each of its rounds, and the list keeps them."
            return Explanation(RULE, spot.file, spot.line, cause, edit)
        arrays = _in_arrays(text, situation)
        if arrays is not None:
            sure: Literal["measured", "likely"] = "measured" if arrays[1] else "likely"
            return Explanation(RULE, spot.file, spot.line, cause, arrays[0], "", sure)
        advice = (
            "Collect in the graph: kept = tf.TensorArray(dtype, size=0, dynamic_size=True); in the loop kept = "
            "kept.write(i, value); after it kept.stack()."
        )
    else:
        files = [one.file for one in situation.spots]
        made_in = [one for file, _, one in _MADE.findall(text) if not is_installed(file)]
        own = name in made_in or any(_defines(read(file), name) for file in files)
        holder = "" if own else _holder(text, files)
        name = holder or name
        cause = (
            f"`{code}` uses a symbolic tensor of {name}'s graph{made}: Python stored it once, while "
            f"{name} was traced; it has a value only inside that graph, while it runs."
        )
        plain = _under_a_tape(spot, name)
        if plain is not None:
            cause += f" Without tf.function {name} gives values, and the tape around it sees its ops."
            return Explanation(RULE, spot.file, spot.line, cause, plain)
        plain = _added_loss(text, situation)
        if plain is not None:
            cause = (
                f"`{code}` uses what {name} gave to add_loss{made}: it belongs to the graph of {name} that tf.function "
                "made, and has no value outside. Without tf.function here Keras traces both in one graph."
            )
            return Explanation(RULE, spot.file, spot.line, cause, plain)
        for find, why in _KEPT:
            edit = find(text, situation)
            if edit is not None:
                return Explanation(RULE, spot.file, spot.line, f"{cause} {why}", edit)
        edit = _each_time(statement, spot, name) if statement is not None else None
        if edit is not None:
            cause += " As below, each run keeps its own."
            return Explanation(RULE, spot.file, spot.line, cause, edit)
        edit = _eagerly(situation) if holder in _STEPS else None
        if edit is not None:
            cause += " With run_eagerly=True each step is Python, with values: that is slower."
            return Explanation(RULE, spot.file, spot.line, cause, edit)
        variable = "in a tf.Variable: v.assign(x) runs each time."
        advice = f"Return it from {name} and store what the call gives, or keep it {variable}"
        if holder:  # Keras calls it, and takes what it returns
            advice = f"Keep it {variable}"
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _eagerly(situation: Situation) -> Edit | None:
    """`run_eagerly=True` in the only call of `compile`."""
    for spot in reversed(situation.spots):
        found = [
            one for one in ast.walk(spot.source.tree)
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "compile"
        ]  # fmt: skip
        if len(found) == 1 and not {one.arg for one in found[0].keywords} & {None, "run_eagerly", "jit_compile"}:
            return edit_of(
                spot.file, spot.source.replaced({found[0]: spot.source.with_argument(found[0], "run_eagerly=True")})
            )
    return None


def _defines(source: Source, name: str) -> bool:
    return any(isinstance(one, ast.FunctionDef) and one.name == name for one in ast.walk(source.tree))


def _holder(text: str, files: list[str]) -> str:
    """The user's function in which the tensor was made, where the graph is one of Keras' own."""
    for file, line, _ in reversed([one for one in _MADE.findall(text) if one[0] in files]):
        function = read(file).function(int(line))
        if isinstance(function, ast.FunctionDef):
            return function.name
    return ""


def _added_to_weights(text: str, situation: Situation) -> Edit | None:
    """`self.total += x` of weights that a class made, as `self.total.assign_add(x)`: all of the method's lines."""
    files = {one.file: one for one in situation.spots}
    for file, line, _ in reversed([one for one in _MADE.findall(text) if one[0] in files]):
        source = read(file)
        statement = source.statement(int(line))
        around = list(source.around(statement)) if statement is not None else []
        holder = next((one for one in around if isinstance(one, ast.ClassDef)), None)
        method = next((one for one in around if isinstance(one, ast.FunctionDef)), None)
        if holder is None or method is None or not isinstance(statement, ast.AugAssign):
            continue
        weights = {
            dotted(target) for one in ast.walk(holder)
            if isinstance(one, ast.Assign) and dotted(getattr(one.value, "func", None)).rpartition(".")[2] in _WEIGHTS
            for target in one.targets
        }  # fmt: skip
        lines = {
            one: _METHODS[type(one.op)] for one in ast.walk(method)
            if isinstance(one, ast.AugAssign) and dotted(one.target) in weights and type(one.op) in _METHODS
        }  # fmt: skip
        if statement not in lines:
            continue
        edits = [
            Edit(file, one.lineno, one.end_lineno or one.lineno, (
                f"{indent_of(source.lines[one.lineno - 1])}{dotted(one.target)}.{added}({source.text(one.value)})",
            )) for one, added in lines.items()
        ]  # fmt: skip
        return together(edits, source.lines)
    return None


def _as_weights(text: str, situation: Situation) -> Edit | None:
    """What a metric adds up in attributes, as weights: `self.total = 0.0`, `self.total += x`."""
    files = {one.file for one in situation.spots}
    made = [(file, int(line)) for file, line, name in _MADE.findall(text) if file in files and name == "update_state"]
    return metric_state.as_weights(made[-1][0], read(made[-1][0]), made[-1][1]) if made else None


def _as_variables(text: str, situation: Situation) -> Edit | None:
    """What a step keeps in an attribute that is a number at first: `self.running = 0.9 * self.running + 0.1 * loss`."""
    files, dtype = {one.file: one for one in situation.spots}, _DTYPE.search(text)
    if dtype is None or not dtype[1].startswith("float"):
        return None
    for file, line, _ in reversed([one for one in _MADE.findall(text) if one[0] in files]):
        spot = Spot(file, int(line), {}, files[file].module, "")
        return metric_state.as_variables(file, read(file), int(line), dtype[1], alias(spot, "tensorflow"))
    return None


def _outside_graph(text: str, situation: Situation) -> Edit | None:
    """A tensor that a function makes of nothing of its own, and keeps in a container: `cache[key] = tf.zeros([4])`."""
    files = {one.file: one for one in situation.spots}
    for file, line, _ in reversed([one for one in _MADE.findall(text) if one[0] in files]):
        source = read(file)
        statement, function = source.statement(int(line)), source.function(int(line))
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if not isinstance(target, (ast.Subscript, ast.Attribute)) or not isinstance(function, ast.FunctionDef):
            return None
        assert isinstance(statement, ast.Assign)
        if set(names(statement.value)) & local_names(function) - {"self"}:
            return None
        first, last = source.span(statement)
        blanks = indent_of(source.lines[first - 1])
        tf = alias(Spot(file, int(line), {}, files[file].module, ""), "tensorflow")
        lines = [f"    {one}" if one.strip() else one for one in source.lines[first - 1 : last]]
        return Edit(file, first, last, (f"{blanks}with {tf}.init_scope():", *lines))
    return None


_KEPT: tuple[tuple[Callable[[str, Situation], Edit | None], str], ...] = (
    (_added_to_weights, "`+=` put a tensor in the place of the variable; .assign_add changes it when the graph runs."),
    (_as_weights, "A weight of the metric changes when the graph runs."),
    (_as_variables, "A variable changes when the graph runs."),
    (_outside_graph, "Under tf.init_scope() it is made outside of the graph, and has a value."),
)
"""Ways to keep what left its graph, the first that applies, and why each helps."""
_STEPS = ("train_step", "test_step", "predict_step")
_WEIGHTS = ("add_weight", "add_variable", "Variable")
_METHODS: dict[type, str] = {ast.Add: "assign_add", ast.Sub: "assign_sub"}


def listed(situation: Situation) -> Explanation | None:
    """The explanation, if a mapped function returned a list that its graph's loop filled."""
    found, spot = _LISTED.search(situation.message), situation.last
    statement = situation.statement
    if found is None or spot is None or statement is None:
        return None
    given = {dotted(part).rpartition(".")[2] for call in calls(statement) for part in call.args}
    functions = [
        one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name in given - {""}
    ]
    if len(functions) != 1:
        return None
    inside = Spot(spot.file, functions[0].body[0].lineno, {}, spot.module, "")
    arrays = kept_lists.in_arrays(inside, functions[0], leaked=found[1])
    if arrays is None:
        return None
    cause = (
        f"{functions[0].name} returned a list that a loop of the graph filled: Python appended once, at trace, and the "
        "list holds one symbol, which has no value outside of the loop."
    )
    sure: Literal["measured", "likely"] = "measured" if arrays[1] else "likely"
    return Explanation(RULE, spot.file, arrays[0].first, cause, arrays[0], "", sure)


def _each_time(statement: ast.stmt, spot: Spot, name: str) -> Edit | None:
    """The line of the traced function that keeps the tensor, where the failing one runs without a graph."""
    held = holder(statement, spot)
    kept = kept_at(spot.source, held.rpartition(".")[2]) if held is not None else None
    if kept is None or not isinstance(kept[0], ast.Call) or kept[1].name != name or spot.by or spot.generated:
        return None
    return None if spot.function is kept[1] else kept_each_time(spot, kept[0], kept[1])


def _under_a_tape(spot: Spot, name: str) -> Edit | None:
    """The traced function without `@tf.function`, where a tape needs the gradient of what it kept.

    A value that Python keeps from a graph, by a py_function in it, has none.
    """
    taped = tapes_around(spot.source, spot.line)
    found = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    if not taped or len(found) != 1 or spot.by or spot.generated or spot.function is found[0]:
        return None
    return without_decorator(spot.file, spot.source.lines, found[0])


def _added_loss(text: str, situation: Situation) -> Edit | None:
    """A layer's `call` without `@tf.function`, where the tensor was made for `self.add_loss`."""
    files = {one.file for one in situation.spots}
    for file, line, _ in reversed([one for one in _MADE.findall(text) if one[0] in files]):
        source = read(file)
        statement, function = source.statement(int(line)), source.function(int(line))
        if statement is None or not isinstance(function, ast.FunctionDef):
            return None
        targets = {dotted(one) for one in getattr(statement, "targets", [])}
        added = [one for one in calls(function) if dotted(one.func) == "self.add_loss"]
        if any(one in ast.walk(statement) or targets & set(names(one)) for one in added):
            return without_decorator(file, source.lines, function)
    return None


def _in_arrays(text: str, situation: Situation) -> tuple[Edit, bool] | None:
    """What the function that has the loop collects, as TensorArrays."""
    files, dtype = {one.file: one for one in situation.spots}, _DTYPE.search(text)
    for file, line, _ in reversed([one for one in _MADE.findall(text) if one[0] in files]):
        own = next((one for one in reversed(situation.spots) if one.file == file and _inside(one, int(line))), None)
        spot = own or Spot(file, int(line), {}, files[file].module, "")
        function = spot.function
        found = kept_lists.in_arrays(spot, function, leaked=dtype[1] if dtype else "") if function is not None else None
        if found is not None:
            return found
    return None


def _unrolled(text: str, situation: Situation) -> Edit | None:
    """`for i in range(10):` in the place of `tf.range(10)`, or tf.unstack of a tensor of few rows."""
    files = {one.file: one for one in situation.spots}
    made = [(file, int(line)) for file, line, _ in _MADE.findall(text) if file in files]
    if not made:
        return None
    file, line = made[-1]
    spot = next((one for one in reversed(situation.spots) if one.file == file and _inside(one, line)), None)
    source, frame = read(file), spot or _called_with(situation, file, line) or files[file]
    loops = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.For) and one.lineno < line <= (one.end_lineno or one.lineno)
    ]  # fmt: skip
    pieces: dict[ast.expr, str] = {}
    for loop in sorted(loops, key=lambda one: -one.lineno):
        new = _in_python(loop.iter, frame, spot is not None or frame is not files[file])
        if new is not None:
            pieces[loop.iter] = new
        elif pieces:
            break
    if not pieces:
        return None
    first, last = min(one.lineno for one in pieces), max(one.end_lineno or one.lineno for one in pieces)
    return Edit(file, first, last, source.spliced(pieces, first, last)) if last - first <= _NEAR else None


def _called_with(situation: Situation, file: str, line: int) -> Spot | None:
    """A frame of the function that holds a line, with what it was called with: it has returned."""
    function = read(file).function(line)
    if not isinstance(function, ast.FunctionDef):
        return None
    for spot in reversed(situation.spots):
        statement = spot.statement
        found = (
            [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] == function.name]
            if statement
            else []
        )
        if len(found) == 1 and spot.file == file:
            given = {name: lookup(one, spot) for name, one in zip(parameters(function), found[0].args)}
            return Spot(file, line, given, spot.module, "")
    return None


def _inside(spot: Spot, line: int) -> bool:
    return spot.source.function(line) is spot.source.function(spot.line)


def _in_python(given: ast.expr, spot: Spot, own: bool) -> str | None:
    """What a loop goes over, for Python: of a number of rounds that is known while it is traced, and small."""
    if isinstance(given, ast.Call) and dotted(given.func).rpartition(".")[2] == "range":
        if not root_is(given.func, spot, "tensorflow") or given.keywords:
            return None
        sizes: list[Any] = [one.value if isinstance(one, ast.Constant) else lookup(one, spot) for one in given.args]
        if all(type(one) is int for one in sizes) and 0 < len(range(*sizes)) <= _MOST:
            return f"range({', '.join(map(spot.source.text, given.args))})"
    if isinstance(given, ast.Call) and dotted(given.func).rpartition(".")[2] in ("constant", "convert_to_tensor"):
        rows = given.args[0] if given.args and root_is(given.func, spot, "tensorflow") else None
        listed = rows.elts if isinstance(rows, (ast.List, ast.Tuple)) else lookup(rows, spot) if rows else None
        if isinstance(listed, (list, tuple)) and 0 < len(listed) <= _MOST:
            return f"{alias(spot, 'tensorflow')}.unstack({spot.source.text(given)})"
    whole = given.value if isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Slice) else given
    if own and isinstance(whole, ast.Name):
        value = spot.variables.get(whole.id)
        shape = shape_of(value) if is_symbolic(value) or type(value).__name__ == "EagerTensor" else None
        if shape and shape[0] is not None and 0 < shape[0] <= _MOST:
            return f"{alias(spot, 'tensorflow')}.unstack({spot.source.text(given)})"
    return None


def _place(text: str, files: list[str]) -> str:
    found = [(file, line) for file, line, _ in _MADE.findall(text) if is_user(file) and not is_installed(file)]
    return f" (made in line {found[-1][1]})" if found and found[-1][0] in files else ""
