"""`print(ds.element_spec)` of a dataset whose elements a py_function makes: it shows `<unknown>`, and no reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.shapes import Shape, guessed, written
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.rules.printed_symbols import is_log, is_print
from pyfunc_debug.doctor.rules.static_shapes import common, returned_shapes
from pyfunc_debug.records import Finding, Node

NAMES = ("unknown-shape",)
_ASKED = frozenset({"element_spec", "output_shapes", "get_output_shapes", "get_legacy_output_shapes"})
_SIZED = frozenset({"shape", "get_shape"})
_KEEPS = frozenset(
    ("batch", "padded_batch", "shuffle", "repeat", "prefetch", "cache", "take", "skip", "filter", "with_options")
)
"""Transformations behind a map that do not give its elements a rank."""
_GIVES = ("set_shape(", "ensure_shape(", "reshape(", "output_signature")
"""Words of a file that gives shapes itself."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that shows shapes which a py_function lost."""
    if not facts.has("static_shape") or facts.notices["unknown-elements"]:
        return
    lost = dict(
        facts.reader.rows("SELECT node, count(*) FROM static_shape WHERE role = 'output' AND shape IS NULL GROUP BY 1")
    )
    for group in facts.lines:
        node = group[0]
        function = facts.functions.get(node.function or 0)
        if lost.get(node.id) != len(node.out_paths) or function is None or function.kind != "tf.data":
            continue
        found = pastes.call_of(facts, node)
        if found is None or any(word in line for line in facts.source(found[0]) for word in _GIVES):
            continue
        if found[1] in [one for one, _ in pastes.source(facts, found[0]).mapped]:  # `.map(body)` has no call to look at
            continue
        shown = _shown(facts, *found)
        if shown is not None:
            yield _finding(facts, node, *found, *shown)


def _finding(facts: Facts, node: Node, file: str, call: ast.Call, line: int, text: str) -> Finding:
    returned = [returned_shapes(facts, node, place) for place in range(len(node.out_paths))]
    count = sum(number for _, number, _ in returned[0]) if returned else 0
    fits = [common([shape for shape, _, _ in one]) if one else None for one in returned]
    name = facts.name(node)
    if count:
        known = [str(list(one)) if one is not None else "different ranks" for one in fits]
        calls = f"{count:,} calls" if count > 1 else "one call"
        seen = f"its {calls} returned {' and '.join(known)}"
    else:
        seen = "it runs only when the dataset is iterated, and nothing iterated it here"
        fits = _guessed(facts, node, file)
    shapes = [one for one in fits if one is not None]
    edit = _with_shapes(facts, file, call, shapes) if fits and len(shapes) == len(fits) else None
    return Finding(
        NAMES[0], "note", node.id, tuple(first for one in returned[:1] for _, _, first in one[:1]),
        f"`{text}` shows <unknown>: of what {name} returns, TensorFlow knows the dtypes that Tout says, and no shapes; "
        f"{seen}. Layers and batches behind it may need them",
        pastes.written(edit) or "tf.ensure_shape(x, [...])  # on each output of it, with the shape that it returns",
        file, line, confidence="measured" if count else "likely",
    )  # fmt: skip


def _guessed(facts: Facts, node: Node, file: str) -> list[Shape | None]:
    """The shapes that the body's source says, where no call was recorded."""
    function = facts.function(node)
    if function is None:
        return []
    known = {short: np for short, full in imports(pastes.source(facts, file)).items() if full == "numpy"}
    found = guessed(function, Spot(node.file or file, function.lineno, {}, known, ""))
    return found if len(found) == len(node.out_paths) else []


def _shown(facts: Facts, file: str, call: ast.Call) -> tuple[int, str] | None:
    """The line that prints the shapes of a map with this py_function, and what it prints; None where there is none."""
    source = pastes.source(facts, file)
    outer = [one for one in source.around(_same(source.tree, call)) if isinstance(one, (ast.FunctionDef, ast.Lambda))]
    if not outer or not _returns_it(outer[0], call):
        return None
    made = [part for one in _assigned(outer[0], call) for part in ast.walk(one)]
    inside = {part.id for part in made if isinstance(part, ast.Name)}
    for one in pastes.walk(source.tree, ast.Call):
        if not is_print(one) and not is_log(one):
            continue
        for part in (each for argument in one.args for each in ast.walk(argument)):
            sized = isinstance(part, ast.Attribute) and part.attr in _SIZED and dotted(part.value) in inside
            if sized and outer[0] in source.around(one):
                return one.lineno, source.text(part)
            dataset = _dataset_of(part, one)
            if dataset is not None and _is_of(source.tree, dataset, outer[0], one.lineno):
                return one.lineno, source.text(part) if part is not dataset else source.text(one)
    return None


def _same(tree: ast.AST, node: ast.Call) -> ast.AST:
    """The node of a tree at the place of one of another tree of the same text."""
    place = (node.lineno, node.col_offset, node.end_col_offset)
    return next(one for one in pastes.walk(tree, ast.Call) if (one.lineno, one.col_offset, one.end_col_offset) == place)


def _assigned(function: ast.FunctionDef | ast.Lambda, call: ast.Call) -> list[ast.expr]:
    """What a call's results are assigned to in a function."""
    return [
        target for one in own_nodes(function)
        if isinstance(one, ast.Assign) and ast.dump(one.value) == ast.dump(call) for target in one.targets
    ]  # fmt: skip


def _returns_it(function: ast.FunctionDef | ast.Lambda, call: ast.Call) -> bool:
    """Whether a function gives what the call gives, as it is."""
    if isinstance(function, ast.Lambda):
        return ast.dump(_inside_tuple(function.body)) == ast.dump(call)
    values = [one.value for one in own_nodes(function) if isinstance(one, ast.Return) and one.value is not None]
    names = {ast.unparse(one).strip("()[]") for one in _assigned(function, call)}
    values = [_inside_tuple(one) for one in values]
    return len(values) == 1 and (ast.dump(values[0]) == ast.dump(call) or ast.unparse(values[0]).strip("()[]") in names)


def _inside_tuple(value: ast.expr) -> ast.expr:
    """`x` of `tuple(x)`."""
    of_one = isinstance(value, ast.Call) and ast.unparse(value.func) in ("tuple", "list") and len(value.args) == 1
    return value.args[0] if of_one and isinstance(value, ast.Call) else value


def _dataset_of(part: ast.AST, printed: ast.Call) -> ast.Name | None:
    """The variable whose elements' shapes are asked for: `ds.element_spec`, `get_output_shapes(ds)`, or `print(ds)`."""
    if isinstance(part, ast.Attribute) and part.attr in _ASKED and isinstance(part.value, ast.Name):
        return part.value
    if isinstance(part, ast.Call) and pastes.last_name(part.func) in _ASKED and len(part.args) == 1:
        return part.args[0] if isinstance(part.args[0], ast.Name) else None
    return part if isinstance(part, ast.Name) and part in printed.args else None


def _is_of(tree: ast.AST, dataset: ast.Name, function: ast.FunctionDef | ast.Lambda, line: int) -> bool:
    """Whether the last map of a variable's dataset calls a function, by the assignments above a line."""
    given = [
        one for one in pastes.walk(tree, ast.Assign)
        if one.lineno < line and [dotted(target) for target in one.targets] == [dataset.id]
    ]  # fmt: skip
    for one in sorted(given, key=lambda each: -each.lineno):
        value: ast.expr = one.value
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr == "map":
                mapped = value.args[0] if value.args else None
                own = isinstance(function, ast.FunctionDef) and dotted(mapped) == function.name
                return own or mapped is function
            if value.func.attr not in _KEEPS:
                return False
            value = value.func.value
        if not isinstance(value, ast.Name) or value.id != dataset.id:
            return False
    return False


def _with_shapes(facts: Facts, file: str, call: ast.Call, shapes: list[Shape]) -> Edit | None:
    """The call, or the line behind it, with the shapes that are checked in each call."""
    tf, text = pastes.module(facts, file, "tensorflow") or "tf", pastes.text_of(facts, file, call)
    tout = pastes.argument(call, 2, "Tout")
    if len(shapes) == 1 and not isinstance(tout, (ast.List, ast.Tuple)):
        return pastes.replaced(facts, file, {call: f"{tf}.ensure_shape({text}, {written(shapes[0])})"})
    source = pastes.source(facts, file)
    statement = source.statement(call.lineno)
    plain = isinstance(statement, ast.Assign) and ast.dump(statement.value) == ast.dump(call)
    target = statement.targets[0] if plain and isinstance(statement, ast.Assign) else None
    names = [dotted(one) for one in target.elts] if isinstance(target, ast.Tuple) else []
    if statement is not None and len(names) == len(shapes) and all(names):
        new = [f"{tf}.ensure_shape({name}, {written(one)})" for name, one in zip(names, shapes)]
        last = statement.end_lineno or statement.lineno
        lines = source.lines[statement.lineno - 1 : last]
        line = f"{indent_of(lines[0])}{', '.join(names)} = {', '.join(new)}"
        return Edit(file, statement.lineno, last, (*lines, line))
    listed = f"[{', '.join(map(written, shapes))}]"
    return pastes.replaced(facts, file, {call: f"[{tf}.ensure_shape(y, s) for y, s in zip({text}, {listed})]"})
