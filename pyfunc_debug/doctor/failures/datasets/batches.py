"""`Dataset.batch` over elements of different shapes, which the calls of a body returned."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.datasets import odd_channels
from pyfunc_debug.doctor.failures.pastes import learned_shapes, padding
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import datasets, shapes
from pyfunc_debug.doctor.failures.reading.nodes import Node, argument, site_spot, tail, user_generators, user_nodes
from pyfunc_debug.doctor.failures.reading.shapes import Shape, written
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, indent_of, read
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_dataset
from pyfunc_debug.interception.names.private import dataset_inputs

RULE = "ragged-batch"
_SAID = re.compile(r"Cannot (?:add tensor to the batch|batch tensors with different shapes)")
_STACKS = ("_BatchDataset", "_ParallelBatchDataset")
_BATCHES = {"batch", "ragged_batch", "dense_to_ragged_batch"}
_SHAPES = re.compile(r"shape \[([\d,]*)\].*?shape \[([\d,]*)\]|\[tensor\]: \[([\d,]*)\], \[batch\]: \[([\d,]*)\]")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if elements that do not fit into a batch are why the program failed."""
    if not _SAID.search(situation.message):
        return None
    for node in user_nodes(situation):
        seen, _ = shapes.recorded(situation.rows, node.id)
        if node.site is not None and any(None in shape for shape in seen.values()):
            return odd_channels.of_node(situation, node) or _explanation(situation, node, seen)
    return _of_generator(situation) or _of_elements(situation)


def _stacked(situation: Situation) -> list[Any]:
    """What the elements are that the datasets of the failing line stack."""
    return [
        inputs[0].element_spec for one in datasets.read_here(situation)
        if type(one).__name__ in _STACKS and (inputs := dataset_inputs(one))
    ]  # fmt: skip


def _of_elements(situation: Situation) -> Explanation | None:
    """Elements that TensorFlow's own ops made of different sizes: images are resized, what else there is is padded."""
    found = _SHAPES.search(situation.message)
    two = [one for one in found.groups() if one is not None] if found else []
    specs = _stacked(situation)
    for file, source in situation.sources():
        batch = [
            one for one in ast.walk(source.tree) if isinstance(one, ast.Call) and _last(one) == "batch"
            and not any(isinstance(each, ast.Lambda) for each in source.around(one))
        ]  # fmt: skip
        spot = next((one for one in situation.spots if one.file == file), situation.last)
        if len(batch) != 1 or len(specs) > 1 or len(two) != 2 or spot is None:
            continue
        call = batch[0]
        before = learned_shapes.dataset_of(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
        if not specs and (before is None or not is_dataset(before)):
            continue
        # of `fit(ds.batch(2))` nothing holds the batches
        spec = specs[0] if specs else getattr(before, "element_spec", None)
        leaves = list(datasets.leaves(spec))
        shapes_of = [getattr(one, "shape", None) for one in leaves]
        open_ones = [one for one in shapes_of if one is not None and one.rank and None in one.as_list()]
        if not open_ones or any(type(one).__name__ != "TensorSpec" or one.shape.rank is None for one in leaves):
            continue
        cause = f"batch() stacks elements of one shape, and among these are [{two[0]}] and [{two[1]}]."
        found_text = padding.padded(situation, source, call, spec, [])
        if found_text is None:
            continue
        edit = Edit(file, *source.kept_lines({tail(call): found_text[0]}))
        return Explanation(RULE, file, edit.first, cause + found_text[1], edit, "", "likely")
    return None


def _of_generator(situation: Situation) -> Explanation | None:
    """Elements of one generator that differ in shape."""
    found = _SHAPES.search(situation.message)
    two = [[int(size) for size in one.split(",") if size] for one in found.groups() if one is not None] if found else []
    for file in dict.fromkeys(spot.file for spot in reversed(situation.spots)):
        source = read(file)
        every = [one for one in ast.walk(source.tree) if isinstance(one, ast.Call)]
        made = [one for one in every if dotted(one.func).endswith("from_generator")]
        made = made if len(made) < 2 else _of_several(situation, file, made)
        if len(made) != 1 or len(two) != 2 or len(two[0]) != len(two[1]):
            continue
        shape = tuple(one if one == other else None for one, other in zip(*two))
        cause = f"batch() stacks elements of one shape, but the generator yielded {two[0]} and {two[1]}."
        types = argument(made[0], 1, "output_types")
        declared = argument(made[0], 2, "output_shapes") or argument(made[0], 4, "output_signature")
        if declared is None and isinstance(types, ast.Attribute):
            tf = dotted(types).partition(".")[0]
            new = f"output_signature={tf}.TensorSpec({written(shape)}, {source.text(types)})"
            text = source.text(made[0]).replace(f"output_types={source.text(types)}", new)
            placed = source.replaced({types: new} if types in made[0].args else {made[0]: text})
            cause += " output_types says nothing of their rank, which a ragged or padded batch needs."
        else:
            batch = [one for one in every if isinstance(one.func, ast.Attribute) and one.func.attr == "batch"]
            batch = batch if len(batch) < 2 else [one for one in batch if _is_made_of(one, made[0], source)]
            if len(batch) != 1 or not isinstance(batch[0].func, ast.Attribute):
                continue
            yields = [one.value for one in ast.walk(source.tree) if isinstance(one, ast.Yield)]
            spec = learned_shapes.dataset_of(batch[0].func.value, situation.last) if situation.last else None
            nested = isinstance(getattr(spec, "element_spec", None), (dict, tuple))
            nested = nested or any(isinstance(one, (ast.Dict, ast.Tuple)) for one in (declared, *yields))
            structured = declared is not None and nested
            # Elements of several parts: without padded_shapes each is padded in the sizes that its spec leaves open.
            padded = _of_parts(types, shape, situation)
            if padded is None and not structured:
                advice = "Use padded_batch, with padded_shapes for each part."
                return Explanation(RULE, file, batch[0].lineno, cause, None, advice)
            given = [*padding.as_padded(source, batch[0]), *([] if structured else [f"padded_shapes={padded}"])]
            placed = source.replaced({batch[0]: f"{source.text(batch[0].func.value)}.padded_batch({', '.join(given)})"})
        if placed is not None:
            edit = Edit(file, placed[0], placed[1], (placed[2],))
            return Explanation(RULE, file, edit.first, cause, edit, "", "likely")
    return None


def _of_several(situation: Situation, file: str, made: list[ast.Call]) -> list[ast.Call]:
    """Of the calls that make datasets of generators: the one whose generator yielded elements of different shapes."""
    found = [
        node for node in user_generators(situation) if node.file == file
        and any(None in shape for shape in shapes.recorded(situation.rows, node.id)[0].values())
    ]  # fmt: skip
    functions = [one for node in found if (one := node.function()) is not None]
    return [one for one in made if any(_runs(one, function) for function in functions)]


def _runs(made: ast.Call, function: Function) -> bool:
    """Whether a call of from_generator is given a function."""
    given = argument(made, 0, "generator")
    if isinstance(function, ast.Lambda):
        return given is function
    return given is not None and dotted(given).rpartition(".")[2] == function.name


def _is_made_of(call: ast.Call, made: ast.Call, source: Source) -> bool:
    """Whether a method is called of a dataset that another call made: in one expression, or by one name."""
    if any(one is made for one in ast.walk(call)):
        return True
    root: ast.expr = call
    while isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
        root = root.func.value
    statement = source.statement(made.lineno)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    by_name = bool(dotted(root)) and any(dotted(one) == dotted(root) for one in targets)
    return by_name and _function_around(call, source) is _function_around(made, source)


def _function_around(node: ast.AST, source: Source) -> ast.AST | None:
    return next((one for one in source.around(node) if isinstance(one, ast.FunctionDef)), None)


def _of_parts(types: ast.expr | None, shape: Shape, situation: Situation) -> str | None:
    """The padded_shapes of a generator's elements; None where those of their parts are not known."""
    if isinstance(types, ast.Dict) or (isinstance(types, (ast.Tuple, ast.List)) and _nests(types)):
        return None
    if not isinstance(types, (ast.Tuple, ast.List)):
        return written(shape)
    made = user_generators(situation)
    seen = shapes.recorded(situation.rows, made[0].id)[0] if len(made) == 1 else {}
    parts = [seen.get(place) for place in range(len(types.elts))]
    known = [written(one) for one in parts if one is not None]
    return f"({', '.join(known)}{',' * (len(known) == 1)})" if len(known) == len(parts) and parts else None


def _nests(types: ast.Tuple | ast.List) -> bool:
    return any(isinstance(one, (ast.Tuple, ast.List, ast.Dict)) for one in types.elts)


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
    specs = _stacked(situation)
    known = [shape for shape in whole if shape is not None]
    if not specs and situation.last is not None and isinstance(batch.func, ast.Attribute):
        before = learned_shapes.dataset_of(batch.func.value, situation.last)
        specs = [before.element_spec] if is_dataset(before) else []
    found_text = padding.padded(situation, source, batch, specs[0], known) if len(specs) == 1 else None
    if found_text is None:
        found_text = _by_results(source, batch, known), ""
    edit = Edit(node.site[0], *source.kept_lines({tail(batch): found_text[0]}))
    return Explanation(RULE, node.site[0], edit.first, cause + found_text[1], edit, "", "likely")


def _by_results(source: Source, batch: ast.Call, known: list[Shape]) -> str:
    """The call with the shapes of a node's results, where those of the elements are not known."""
    texts = [written(shape) for shape in known]
    shapes_text = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
    return f".padded_batch({', '.join([*padding.as_padded(source, batch), f'padded_shapes={shapes_text}'])})"


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
    failed = spot.statement if spot is not None and spot.file == site[0] else None
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
