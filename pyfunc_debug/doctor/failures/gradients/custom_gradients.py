"""`tf.custom_gradient` around Python: too many or too few gradients returned, variables that its grad does not take."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor.failures.gradients import custom_variables
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import NODE_CALLS, argument, return_value, user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names, parameters
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, is_keras_variable, lookup

RULE = "structure"
_COUNT = re.compile(r"custom_gradient function expected to return (\d+) gradients, but returned (\d+) instead")
_IN_GRAPH = re.compile(r"Recorded operation '(\w+)' returned too few gradients\. Expected (\d+) but received (\d+)")
"""Of a graph: the numbers count the results as well."""
_GIVEN = re.compile(r"(\w+)\(\) (?:missing \d+ required positional|takes .*positional argument)")
_STACKS = {"stack", "array", "asarray", "constant", "convert_to_tensor"}
_BY_NAME = "custom_gradient decorator currently supports keywords arguments only when eager execution is enabled"
_VARIABLES = "grad_fn must accept keyword argument 'variables'"


@dataclass(frozen=True)
class Made:
    """A function under `tf.custom_gradient`, and the function of gradients that it returns."""

    file: str
    source: Source
    function: ast.FunctionDef
    grad: ast.FunctionDef

    @property
    def returned(self) -> list[ast.Return]:
        return [one for one in ast.walk(self.grad) if isinstance(one, ast.Return) and one.value is not None]

    @property
    def results(self) -> int:
        """How many results it returns beside that function."""
        last = [one.value for one in self.function.body if isinstance(one, ast.Return)][-1]
        first = last.elts[0] if isinstance(last, ast.Tuple) else last
        return len(first.elts) if isinstance(first, (ast.Tuple, ast.List)) else 1


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a custom gradient does not return what TensorFlow counts on."""
    counted, in_graph = _COUNT.search(situation.message), _IN_GRAPH.search(situation.message)
    if not situation.body and _BY_NAME in situation.message:
        return _by_position(situation)
    if situation.body or (counted is None and in_graph is None and _VARIABLES not in situation.message):
        return None
    made = list(made_in(situation))
    if in_graph is not None:
        own = [one for one in made if one.function.name == in_graph[1]]
        wanted, given = (int(in_graph[place]) - own[0].results for place in (2, 3)) if len(own) == 1 else (0, 0)
        fits = len(own) == 1 and (_any_number(own[0]) or wanted == len(parameters(own[0].function)))
        fits = fits and 0 < given != wanted
        return _counted(own[0], wanted, given, situation) if fits else None
    if counted is None:
        used = {spot.function for spot in situation.spots}
        found = [one for one in made if one.function in used] or made
        if len(found) != 1:
            return None
        return _as_inputs(found[0], situation) or custom_variables.without(found[0])
    wanted, given = int(counted[1]), int(counted[2])
    fitting = [one for one in made if {_count(part.value) for part in one.returned} == {given}]
    return _counted(fitting[0], wanted, given, situation) if len(fitting) == 1 else None


def results(situation: Situation) -> Explanation | None:
    """The explanation, if what a grad is given or returns does not fit, and Python's words name no cause."""
    made = list(made_in(situation))
    found = custom_variables.explain(situation, made) if made else None
    if found is not None or situation.body:
        return found
    called = _GIVEN.search(situation.message)
    own = [one for one in made if called is not None and one.grad.name == called[1]]
    if len(own) == 1:
        return _results(own[0])
    unpacked = "too many values to unpack" in situation.message and len(made) == 1
    return _packed(made[0]) if unpacked else None


def _results(made: Made) -> Explanation | None:
    """A grad that takes another number of gradients than there are results."""
    takes = [one for one in parameters(made.grad) if one != "variables"]
    if len(takes) == made.results or made.grad.args.vararg:
        return None
    cause = (
        f"{made.function.name} returns {made.results} result{'s' * (made.results > 1)} and {made.grad.name} takes "
        f"{len(takes)} gradient{'s' * (len(takes) != 1)}: TensorFlow gives it one for each result."
    )
    wanted = ", ".join([f"d{place + 1}" for place in range(made.results)])
    return Explanation(RULE, made.file, made.grad.lineno, cause, None, f"Write def {made.grad.name}({wanted}).")


def _packed(made: Made) -> Explanation | None:
    """`return y, z, grad`: the results are one group, beside grad."""
    last = [one.value for one in made.function.body if isinstance(one, ast.Return)][-1]
    if not isinstance(last, ast.Tuple) or len(last.elts) < 3:
        return None
    *values, grad = map(made.source.text, last.elts)
    edit = edit_of(made.file, made.source.replaced({last: f"({', '.join(values)}), {grad}"}))
    cause = (
        f"{made.function.name} returns {len(last.elts)} things, and tf.custom_gradient takes two: the results, as one "
        f"tuple, and {grad}, which then takes a gradient for each of them."
    )
    return Explanation(RULE, made.file, last.lineno, cause, edit)


def _by_position(situation: Situation) -> Explanation | None:
    """A call with keywords in a graph, where custom_gradient takes none."""
    spot, statement = situation.last, situation.statement
    made = {one.function.name: one for one in made_in(situation)}
    every = calls(statement) if statement is not None else ()
    called = [one for one in every if one.keywords and dotted(one.func).rpartition(".")[2] in made]
    if spot is None or statement is None or len(called) != 1:
        return None
    call, text = called[0], spot.source.text
    name = dotted(call.func).rpartition(".")[2]
    order = parameters(made[name].function)
    given = {one.arg: text(one.value) for one in call.keywords}
    if dotted(call.func) != name:
        order = order[1:]
    rest = order[len(call.args) : len(call.args) + len(given)]
    listed = ", ".join(f"{one}=" for one in given)
    cause = (
        f"{name} gets {listed} by name, which tf.custom_gradient takes only in eager code. By position "
        f"{'it is an input' if len(given) == 1 else 'they are inputs'}, for which {made[name].grad.name} returns a "
        "gradient as well, or None."
    )
    edit = None
    if set(rest) == set(given):
        new = ", ".join([*map(text, call.args), *(given[one] for one in rest)])
        edit = edit_of(spot.file, spot.source.replaced({call: f"{text(call.func)}({new})"}))
    advice = "" if edit else "Give it by position."
    return Explanation(RULE, spot.file, call.lineno, cause, edit, advice)


def made_in(situation: Situation) -> Iterator[Made]:
    """The functions under `tf.custom_gradient` of the user's files."""
    for file, source in situation.sources():
        yield from made_of(file, source)


def made_of(file: str, source: Source) -> Iterator[Made]:
    """The functions under `tf.custom_gradient` of one file."""
    for function in (one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef)):
        if not any(dotted(one).endswith("custom_gradient") for one in function.decorator_list):
            continue
        inner = {one.name: one for one in ast.walk(function) if isinstance(one, ast.FunctionDef)}
        results = [one.value for one in function.body if isinstance(one, ast.Return)]
        last = results[-1] if results else None
        name = dotted(last.elts[-1]) if isinstance(last, ast.Tuple) else ""
        if name in inner:
            yield Made(file, source, function, inner[name])


def counts(message: str) -> tuple[int, int] | None:
    """How many gradients TensorFlow counts on, and how many it was given, where it says so."""
    found = _COUNT.search(message)
    return (int(found[1]), int(found[2])) if found is not None else None


def _count(value: ast.expr | None) -> int:
    return len(value.elts) if isinstance(value, (ast.Tuple, ast.List)) else 1


def _any_number(made: Made) -> bool:
    """Whether a function takes as many inputs as it is given: `def log_prob(*parameters)`."""
    return made.function.args.vararg is not None and not parameters(made.function)


def _counted(made: Made, wanted: int, given: int, situation: Situation) -> Explanation | None:
    name, grad, inputs = made.function.name, made.grad.name, parameters(made.function)
    result = made.returned[0]
    by_name = [
        one for one in calls(made.source.tree)
        if dotted(one.func).rpartition(".")[2] == name and one.keywords and len(one.args) == wanted
        and [part.arg for part in one.keywords] == inputs[wanted:given]
    ]  # fmt: skip
    if given > wanted and len(by_name) == 1:
        call, text = by_name[0], made.source.text
        listed = ", ".join(f"{one.arg}=" for one in by_name[0].keywords)
        placed = made.source.replaced({
            call: f"{text(call.func)}({', '.join(map(text, (*call.args, *(one.value for one in call.keywords))))})"
        })  # fmt: skip
        cause = (
            f"{name} gets {listed} by name. custom_gradient counts what it gets by position, {wanted}, but {grad} "
            f"(line {result.lineno}) returns {given} gradients."
        )
        edit = edit_of(made.file, placed)
        return Explanation(RULE, made.file, call.lineno, cause, edit, "" if edit else "Give it by position.")
    listed = (
        f"*{made.function.args.vararg.arg}" if made.function.args.vararg and not inputs else ", ".join(inputs[:wanted])
    )
    takes = f"{wanted} input{'s' if wanted > 1 else ''} ({listed})"
    gives = f"{grad} returns {given} gradient{'s' * (given != 1)}"
    cause = f"{gives}, but {name} has {takes}: it returns one for each, None where none is meant."
    placed = None
    one = result.value if given == 1 and result.value is not None and len(made.returned) == 1 else None
    sizes = _sizes(one, made, situation) if one is not None and not isinstance(one, (ast.Tuple, ast.List)) else set()
    if one is not None and wanted in sizes:
        tf = dotted(made.function.decorator_list[-1]).rpartition(".")[0] or "tf"
        placed = made.source.replaced({one: f"{tf}.unstack({made.source.text(one)}, num={wanted})"})
        cause = (
            f"{grad} returns one array of {wanted} gradients, but {name} has {takes}: it returns {wanted} tensors, one "
            "for each."
        )
    elif (one is not None and _any_number(made)) or _is_asked(made, inputs[given:]):
        pass  # one array of all of them, perhaps; or None would leave out what a tape is asked for
    elif 0 < given < wanted and result.value is not None and len(made.returned) == 1 and None not in sizes:
        value, rest = result.value, ", ".join(["None"] * (wanted - given))
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
        placed = made.source.replaced({value: f"{', '.join(map(made.source.text, parts))}, {rest}"})
    summed = _summed(made, wanted) if given == wanted * made.results else None
    if summed is not None and result.value is not None:
        placed = made.source.replaced({result.value: f"({', '.join(summed)})"})
        cause = (
            f"{grad} returns {given} gradients, one for each of {made.results} results and {wanted} inputs. It has to "
            f"return {wanted}: for each of {', '.join(inputs[:wanted])} the sum over the results."
        )
    edit = edit_of(made.file, placed)
    # The derivative itself is the author's to know.
    advice = "" if edit else f"Return the gradient of each of {listed}, in this order."
    return Explanation(RULE, made.file, result.lineno, cause, edit, advice, "likely" if edit else "measured")


def _is_asked(made: Made, inputs: list[str]) -> bool:
    """Whether a tape of the file is asked for the gradient of what a call gives for some inputs."""
    order, every = parameters(made.function), list(calls(made.source.tree))
    own = [one for one in every if dotted(one.func).rpartition(".")[2] == made.function.name]
    given = {dotted(part) for one in own for name, part in zip(order, one.args) if name in inputs} - {""}
    asked = [one.args[1] for one in every if dotted(one.func).endswith(".gradient") and len(one.args) > 1]
    return bool(given & {dotted(part) for one in asked for part in ast.walk(one)})


def _summed(made: Made, wanted: int) -> list[str] | None:
    """For each input the sum of what is returned for it, where each part names the gradient of one result."""
    given = parameters(made.grad)
    value = made.returned[0].value if len(made.returned) == 1 else None
    if not isinstance(value, (ast.Tuple, ast.List)) or len(given) != made.results or made.results < 2:
        return None
    groups = [[name for name in given if name in names(one)] for one in value.elts]
    if any(len(group) != 1 for group in groups):
        return None
    order = [given.index(group[0]) for group in groups]
    places = range(len(order))
    if order == [place // wanted for place in places]:  # all inputs of a result together
        inputs = [place % wanted for place in places]
    elif order == [place % made.results for place in places]:
        inputs = [place // made.results for place in places]
    else:
        return None
    texts = [
        made.source.text(one) if isinstance(one, (ast.BinOp, ast.Call, ast.UnaryOp)) else f"({made.source.text(one)})"
        for one in value.elts
    ]  # fmt: skip
    return [" + ".join(text for text, at in zip(texts, inputs) if at == place) for place in range(wanted)]


def _sizes(value: ast.expr, made: Made, situation: Situation, deep: int = 0) -> set[int | None]:
    """How many parts the first axis of what an expression is made of has; None where a body makes it and is not known.

    Read from what is stacked (`tf.stack([a, b])`), or from what the body behind it returned.
    """
    found: set[int | None] = set()
    for one in ast.walk(value):
        first = one.args[0] if isinstance(one, ast.Call) and one.args else None
        if isinstance(one, ast.Call) and isinstance(first, (ast.List, ast.Tuple)):
            found |= {len(first.elts)} if dotted(one.func).rpartition(".")[2] in _STACKS else set()
        if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] in NODE_CALLS:
            found |= _of_body(one, situation)
        if isinstance(one, ast.Name) and deep < 2:
            for statement in ast.walk(made.function):
                if isinstance(statement, ast.Assign) and any(dotted(part) == one.id for part in statement.targets):
                    found |= _sizes(statement.value, made, situation, deep + 1)
    return found


def _of_body(call: ast.Call, situation: Situation) -> set[int | None]:
    body = argument(call, 0, "func")
    for node in user_nodes(situation):
        function = node.function()
        if body is None or function is None or node.call() is not call:
            continue
        rows = situation.rows(
            "SELECT DISTINCT v.shape FROM value v JOIN call c ON c.id = v.call WHERE c.node = ? AND v.role = 'output' "
            "AND c.kind = 'forward' AND v.position = 0", (node.id,),
        )  # fmt: skip
        shapes = [json.loads(shape) for (shape,) in rows if shape]
        if shapes:
            return {shape[0] for shape in shapes if shape}
        result = return_value(function)
        parts = result.args[0] if isinstance(result, ast.Call) and result.args else None
        stacked = isinstance(result, ast.Call) and dotted(result.func).rpartition(".")[2] in _STACKS
        return {len(parts.elts)} if stacked and isinstance(parts, (ast.List, ast.Tuple)) else {None}
    return {None}


def _as_inputs(made: Made, situation: Situation) -> Explanation | None:
    """A variable of Keras' that is given as an argument: as a tensor it is an input, with a gradient of its own."""
    name, count = made.function.name, situation.message.count("<tf.Variable")
    for spot in reversed(situation.spots):
        statement = spot.statement
        called = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] == name] if statement else []
        given = [one for part in called for one in part.args if is_keras_variable(lookup(one, spot))]
        if len(called) != 1 or not given or len(given) != count:
            continue
        tf, text = alias(spot, "tensorflow"), spot.source.text
        shown = " and ".join(map(text, given))
        are = "is a variable" if count == 1 else "are variables"
        cause = (
            f"{shown} {are} of Keras', which custom_gradient takes for no input of {name}: it asks {made.grad.name} "
            "for `variables`. As a tensor it is one, with the gradient that is returned in its place."
        )
        placed = spot.source.replaced({one: f"{tf}.convert_to_tensor({text(one)})" for one in given})
        if placed is None:
            return None
        edit = Edit(spot.file, placed[0], placed[1], (placed[2],))
        return Explanation(RULE, spot.file, spot.line, cause, edit)
    return None
