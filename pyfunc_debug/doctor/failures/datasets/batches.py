"""`Dataset.batch` over elements of different shapes, which the calls of a body returned."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import shapes
from pyfunc_debug.doctor.failures.reading.nodes import Node, site_spot, user_nodes
from pyfunc_debug.doctor.failures.reading.shapes import Shape, written
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, read
from pyfunc_debug.doctor.failures.reading.symbols import alias

RULE = "ragged-batch"
_SAID = re.compile(r"Cannot (?:add tensor to the batch|batch tensors with different shapes)")
_BATCHES = {"batch", "ragged_batch", "dense_to_ragged_batch"}
_SHAPES = re.compile(r"shape \[([\d,]*)\].*?shape \[([\d,]*)\]|\[tensor\]: \[([\d,]*)\], \[batch\]: \[([\d,]*)\]")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if elements that do not fit into a batch are why the program failed."""
    if situation.body or not _SAID.search(situation.message):
        return None
    for node in user_nodes(situation):
        seen, _ = shapes.recorded(situation.rows, node.id)
        if node.site is not None and any(None in shape for shape in seen.values()):
            return _explanation(situation, node, seen)
    return _of_generator(situation)


def _of_generator(situation: Situation) -> Explanation | None:
    """Elements of one generator that differ in shape."""
    found = _SHAPES.search(situation.message)
    two = [[int(size) for size in one.split(",") if size] for one in found.groups() if one is not None] if found else []
    for file in dict.fromkeys(spot.file for spot in reversed(situation.spots)):
        source = read(file)
        every = [one for one in ast.walk(source.tree) if isinstance(one, ast.Call)]
        made = [one for one in every if dotted(one.func).endswith("from_generator")]
        if len(made) != 1 or len(two) != 2 or len(two[0]) != len(two[1]):
            continue
        shape = tuple(one if one == other else None for one, other in zip(*two))
        cause = f"batch() stacks elements of one shape, but the generator yielded {two[0]} and {two[1]}."
        types = [one for one in made[0].keywords if one.arg == "output_types"]
        shapes_known = any(one.arg in ("output_shapes", "output_signature") for one in made[0].keywords)
        if types and not shapes_known and isinstance(types[0].value, ast.Attribute):
            tf = dotted(types[0].value).partition(".")[0]
            text = source.text(made[0]).replace(
                f"output_types={source.text(types[0].value)}",
                f"output_signature={tf}.TensorSpec({written(shape)}, {source.text(types[0].value)})",
            )
            placed = source.replaced({made[0]: text})
            cause += " output_types says nothing of their rank, which a ragged or padded batch needs."
        else:
            batch = [one for one in every if isinstance(one.func, ast.Attribute) and one.func.attr == "batch"]
            if len(batch) != 1 or not isinstance(batch[0].func, ast.Attribute):
                continue
            yields = [one.value for one in ast.walk(source.tree) if isinstance(one, ast.Yield)]
            structured = shapes_known and any(isinstance(one, (ast.Dict, ast.Tuple)) for one in yields)
            # Elements of several parts: without padded_shapes each is padded in the sizes that its spec leaves open.
            given = [*map(source.text, batch[0].args), *([] if structured else [f"padded_shapes={written(shape)}"])]
            given += [f"{one.arg}={source.text(one.value)}" for one in batch[0].keywords]
            placed = source.replaced({batch[0]: f"{source.text(batch[0].func.value)}.padded_batch({', '.join(given)})"})
        if placed is not None:
            edit = Edit(file, placed[0], placed[1], (placed[2],))
            return Explanation(RULE, file, edit.first, cause, edit, "", "likely")
    return None


def _without_rank(node: Node, spot: Spot, call: ast.Call, seen: dict[int, Shape]) -> Explanation | None:
    """A ragged batch of what has no rank at trace is made as a plain one."""
    assert node.site is not None
    shape = next(one for one in seen.values() if None in one)
    cause = (
        f"{node.called} returned {written(shape)}, but at trace not even the rank of its result is known: without it "
        "a ragged batch stacks as batch() does, elements of one shape only."
    )
    if len(node.tout) > 1:
        return Explanation(RULE, *node.site, cause, *_each_named(spot, call, seen))
    edited = spot.source.replaced(
        {call: f"{alias(spot, 'tensorflow')}.ensure_shape({spot.source.text(call)}, {written(shape)})"}
    )
    edit = edit_of(node.site[0], edited)
    return Explanation(RULE, *node.site, cause, edit, "" if edit else f"Give it the shape {written(shape)}.")


def _each_named(spot: Spot, call: ast.Call, seen: dict[int, Shape]) -> tuple[Edit | None, str]:
    """The shapes of several results, below the line that names them; else words."""
    listed = ", ".join(written(shape) for shape in seen.values())
    statement = spot.source.statement(call.lineno)
    targets = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
    named = isinstance(targets, (ast.Tuple, ast.List)) and all(isinstance(one, ast.Name) for one in targets.elts)
    if statement is None or not named or not isinstance(targets, (ast.Tuple, ast.List)):
        return None, f"Give its results their shapes: {listed}."
    tf, after = alias(spot, "tensorflow"), (statement.end_lineno or statement.lineno) + 1
    blanks = indent_of(spot.source.lines[statement.lineno - 1])
    pairs = [(spot.source.text(one), seen[place]) for place, one in enumerate(targets.elts) if place in seen]
    lines = (f"{blanks}{name} = {tf}.ensure_shape({name}, {written(shape)})" for name, shape in pairs)
    return Edit(spot.file, after, after - 1, tuple(lines)), ""


def _explanation(situation: Situation, node: Node, seen: dict[int, Shape]) -> Explanation | None:
    assert node.site is not None
    source = read(node.site[0])
    batch = _batch(situation, node.site)
    ragged = batch is not None and "ragged" in _last(batch)
    spot, call = site_spot(node, situation), node.call()
    if ragged and spot is not None and call is not None:
        return _without_rank(node, spot, call, seen)
    found = _SHAPES.search(situation.message)
    two = [f"[{one}]" for one in found.groups() if one is not None] if found is not None else []
    cause = f"batch() stacks elements of one shape, but the calls of {node.called} returned different ones" + (
        f": {two[0]} and {two[1]}." if len(two) == 2 else "."
    )
    whole = [seen.get(index) for index in range(len(node.tout))]
    if batch is None or _last(batch) != "batch" or any(shape is None for shape in whole):
        return Explanation(
            RULE, *node.site, cause, None, "Use padded_batch(..., padded_shapes=...), or one shape for all."
        )
    call = batch
    texts = [written(shape) for shape in whole if shape is not None]
    padded = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
    assert isinstance(call.func, ast.Attribute)
    given = [*map(source.text, call.args), *(f"{one.arg}={source.text(one.value)}" for one in call.keywords)]
    new = f"{source.text(call.func.value)}.padded_batch({', '.join([*given, f'padded_shapes={padded}'])})"
    edited = source.replaced({call: new})
    edit = edit_of(node.site[0], edited)
    return Explanation(RULE, node.site[0], call.func.end_lineno or call.lineno, cause, edit, "", "likely")


def _batch(situation: Situation, site: tuple[str, int]) -> ast.Call | None:
    """The call that stacks what a node returned: in the line that failed, in what its names were assigned, or after it.

    Args:
      situation: The failure.
      site: File and line of the node.
    """
    source = read(site[0])
    every = [one for one in ast.walk(source.tree) if isinstance(one, ast.Call) and _last(one) in _BATCHES]
    own = {id(one): one for one in every}
    spot = situation.last
    failed = spot.source.statement(spot.line) if spot is not None and spot.file == site[0] else None
    todo: list[ast.AST] = [getattr(failed, "iter", failed)] if failed is not None else []
    seen: set[str] = set()
    while todo:
        part = todo.pop()
        found = [own[id(one)] for one in ast.walk(part) if id(one) in own]
        if found:
            return found[0]
        for name in {one.id for one in ast.walk(part) if isinstance(one, ast.Name)} - seen:
            seen.add(name)
            made = [one for one in ast.walk(source.tree) if isinstance(one, ast.Assign) and _assigns(one, name)]
            before = [one for one in made if one.lineno <= getattr(failed, "lineno", 0)] or made
            todo += [one.value for one in before[-1:]]
    after = [one for one in every if (one.end_lineno or 0) >= site[1]]
    return min(after, key=lambda one: one.end_lineno or 0, default=None)


def _assigns(statement: ast.Assign, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in statement.targets)


def _last(call: ast.Call) -> str:
    return dotted(call.func).rpartition(".")[2] or getattr(call.func, "attr", "")
