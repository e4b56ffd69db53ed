"""`tf.map_fn` over a function that returns another dtype or more values; objects that threads use at once."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.bodies.results import body_dtypes, is_made
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import argument, failed_node, user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, read
from pyfunc_debug.doctor.failures.reading.symbols import calls

_DTYPES = re.compile(
    r"op elements (\w+) but list elements (\w+)|TensorArray dtype is (\w+) but Op is trying to write dtype (\w+)"
)
_NAMES = {"float": "float32", "double": "float64", "half": "float16"}
_EXECUTING = "generator already executing"
_STRUCTURES = "The two structures don't have the same nested structure"
_AT_ONCE = re.compile(
    r"Already borrowed|not thread[- ]?safe|changed size during iteration|mutated during iteration"
    r"|Recursive use of cursor"
)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one of the two is why the program failed."""
    if situation.kind == "ValueError" and _EXECUTING in situation.message:
        return _executing(situation, "one Python generator for its next value, which it cannot give to two at once")
    if situation.body and _AT_ONCE.search(situation.message):
        return _executing(situation, "the same object, which says that it cannot be used by two at once")
    if situation.kind in ("ValueError", "TypeError") and _STRUCTURES in situation.message and not situation.body:
        return _one_of_several(situation)
    match = _DTYPES.search(situation.text)
    return _map_fn(situation, match) if match is not None and not situation.body else None


def _map_fn(situation: Situation, match: re.Match[str]) -> Explanation | None:
    made, given = (match[1], match[2]) if match[1] else (match[4], match[3])
    made, given = _NAMES.get(made, made), _NAMES.get(given, given)
    lines = {(node.site[0], node.site[1]) for node in user_nodes(situation) if node.site is not None}
    found = [
        (file, call, declared)
        for file in dict.fromkeys([spot.file for spot in situation.spots] + [file for file, _ in lines])
        for call in ast.walk(read(file).tree)
        if isinstance(call, ast.Call) and dotted(call.func).endswith("map_fn")
        and ((declared := _declared(call)) is None or _of_dtype(declared, given))
    ]  # fmt: skip
    if len(found) != 1:
        return None
    file, call, declared = found[0]
    source, tf = read(file), dotted(call.func).rpartition(".")[0] or "tf"
    wrong = _of_dtype(declared, given) if declared is not None else None
    if wrong is not None:
        edit = edit_of(file, source.replaced({wrong: f"{tf}.{made}"}))
        cause = f"tf.map_fn has to declare what its function returns, {made}, but declares {given}."
    else:
        placed = source.replaced({call: source.with_argument(call, f"fn_output_signature={tf}.{made}")})
        edit = edit_of(file, placed)
        cause = (
            f"tf.map_fn takes {given} for the dtype of the results, that of the elements, but its function returns "
            f"{made}."
        )
    advice = "" if edit else f"Give it fn_output_signature={tf}.{made}."
    return Explanation("output-contract", file, call.lineno, cause, edit, advice)


def _declared(call: ast.Call) -> ast.expr | None:
    """What a map_fn declares of its function's results."""
    return argument(call, 2, "dtype") or argument(call, 7, "fn_output_signature")


def _of_dtype(declared: ast.expr, dtype: str) -> ast.expr | None:
    """The one part of a declaration that is a dtype."""
    parts = declared.elts if isinstance(declared, (ast.Tuple, ast.List)) else [declared]
    found = [one for one in parts if isinstance(one, ast.Attribute) and one.attr == dtype]
    return found[0] if len(found) == 1 else None


def _one_of_several(situation: Situation) -> Explanation | None:
    """An eager numpy_function gives all that its body returned, whatever Tout says; map_fn wants what is declared."""
    for spot in reversed(situation.spots):
        statement = spot.statement
        maps = [one for one in calls(statement) if dotted(one.func).endswith("map_fn")] if statement is not None else []
        given = argument(maps[0], 0, "fn") if len(maps) == 1 else None
        function: ast.AST | None = given
        if isinstance(given, ast.Name):
            function = next((one for one in _functions(spot.source) if one.name == given.id), None)
        made = [one for one in calls(function) if is_made(one)] if function is not None else []
        tout = argument(made[0], 2, "Tout") if len(made) == 1 else None
        body = argument(made[0], 0, "func") if len(made) == 1 else None
        if not isinstance(tout, ast.Attribute) or not isinstance(body, ast.Name):
            continue
        dtypes = body_dtypes(made[0], spot)
        if dtypes is None or len(dtypes) < 2:
            continue
        same = [place for place, one in enumerate(dtypes) if one is not None and one == spot.source.text(tout)]
        place = same[0] if len(same) == 1 else 0
        cause = (
            f"{body.id} returns {len(dtypes)} values, but Tout={spot.source.text(tout)} declares 1, and so does "
            f"map_fn. Run eagerly, {dotted(made[0].func).rpartition('.')[2]} gives all. This takes the one declared."
        )
        edit = _replaced(spot, {body: f"lambda *args: {body.id}(*args)[{place}]"})
        return Explanation(
            "output-contract", spot.file, made[0].lineno, cause, edit, "" if edit else "Return one value.", "likely"
        )
    return None


def _replaced(spot: Spot, pieces: dict[ast.expr, str]) -> Edit | None:
    found = spot.source.replaced(pieces)
    return edit_of(spot.file, found)


def _functions(source: Source) -> list[ast.FunctionDef]:
    """The functions that a file defines."""
    return [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef)]


def _executing(situation: Situation, asked: str) -> Explanation | None:
    node, spot = failed_node(situation), situation.last
    if spot is None or any(_generates(one) for one in situation.spots):
        return None  # a generator that asks itself
    if node is None or not situation.body:
        return _workers(situation, spot, asked)
    found = [
        (file, source, value)
        for file, source in _files(situation, node.site)
        for call in ast.walk(source.tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "map"
        and (node.site is None or call.lineno <= node.site[1] <= (call.end_lineno or call.lineno) or _names(call, node))
        for value in (one.value for one in call.keywords if one.arg == "num_parallel_calls")
    ]  # fmt: skip
    if not found:
        return _workers(situation, spot, asked) if _EXECUTING in situation.message else None
    edit = None
    if len(found) == 1:
        file, source, value = found[0]
        placed = source.replaced({value: "1"})
        edit = edit_of(file, placed)
    cause = f"calls of {node.called} that ran at the same time asked {asked}."
    return Explanation(
        "shared-state",
        spot.file,
        spot.line,
        cause,
        edit,
        "" if edit else f"Put a threading.Lock around line {spot.line}.",
    )


def _generates(spot: Spot) -> bool:
    """Whether a frame is a generator's own."""
    function = spot.function
    return function is not None and any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in own_nodes(function))


def _workers(situation: Situation, spot: Spot, asked: str) -> Explanation:
    """Threads that are not those of a map: Keras' workers, or the program's own."""
    found = [
        (file, source, one.value)
        for file, source in _files(situation, None)
        for call in ast.walk(source.tree) if isinstance(call, ast.Call)
        for one in call.keywords
        if one.arg == "workers" and isinstance(one.value, ast.Constant) and one.value.value not in (0, 1)
    ]  # fmt: skip
    edit = None
    if len(found) == 1:
        file, source, value = found[0]
        placed = source.replaced({value: "1"})
        edit = edit_of(file, placed)
    who = "Keras' workers" if edit is not None else "two threads"
    function = spot.function
    where = f"in {function.name}, " if isinstance(function, ast.FunctionDef) else ""
    cause = f"{where}{who} asked {asked}."
    advice = "" if edit else f"Make `lock = threading.Lock()` once, and put `with lock:` around line {spot.line}."
    if not edit and "from_generator" in "\n".join(spot.source.code) and "next(" not in spot.source.code[spot.line - 1]:
        advice = "Let the function that from_generator gets make a new generator each time: each iterator asks its own."
        edit = _made_anew(spot)
        advice = "" if edit else advice
        cause += " Each iterator of the dataset needs one of its own." if edit else ""
    return Explanation("shared-state", spot.file, spot.line, cause, edit, advice)


def _made_anew(spot: Spot) -> Edit | None:
    """`from_generator(lambda: numbers_made_once)` with the call that made them."""
    source, found = spot.source, []
    for call in (one for one in ast.walk(source.tree) if isinstance(one, ast.Call)):
        given = call.args[0] if call.args and dotted(call.func).endswith("from_generator") else None
        if not isinstance(given, ast.Lambda) or given.args.args or not isinstance(given.body, ast.Name):
            continue
        made = [
            one.value for one in ast.walk(source.tree)
            if isinstance(one, ast.Assign) and [source.text(target) for target in one.targets] == [given.body.id]
        ]  # fmt: skip
        if len(made) == 1 and isinstance(made[0], ast.Call):
            found.append((given.body, source.text(made[0])))
    placed = source.replaced({found[0][0]: found[0][1]}) if len(found) == 1 else None
    return edit_of(spot.file, placed)


def _files(situation: Situation, site: tuple[str, int] | None) -> list[tuple[str, Source]]:
    files = ([site[0]] if site is not None else []) + [spot.file for spot in situation.spots]
    return [(file, read(file)) for file in dict.fromkeys(files)]


def _names(call: ast.Call, node: object) -> bool:
    """Whether a map is given the function that holds the call of py_function."""
    site = getattr(node, "site", None)
    function = read(site[0]).function(site[1]) if site is not None else None
    given = call.args[0] if call.args else None
    return isinstance(given, ast.Name) and given.id == getattr(function, "name", None)
