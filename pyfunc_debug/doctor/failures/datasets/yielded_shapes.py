"""An element of a generator that has another shape than its signature says."""

from __future__ import annotations

import ast
import itertools
import re

from pyfunc_debug.doctor.failures.datasets import (
    element_structures,
    generator_calls,
    odd_elements,
    signature_parts,
    swapped_parts,
)
from pyfunc_debug.doctor.failures.models import open_axes
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import shapes
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import Source, dotted

RULE = "generator"
_Written = ast.Tuple | ast.List
_REFUSED = re.compile(r"yielded an element of shape (\(.*?\)) where an element of shape (\(.*?\)) was expected")
_CHANNELS = 4
NEAR = 8
"""Lines in which one paste changes several."""


def explain(situation: Situation, found: re.Match[str]) -> Explanation | None:
    got, wanted = ast.literal_eval(found[1]), ast.literal_eval(found[2])
    for file, source, call in generator_calls.calls(situation):
        edit = element_structures.declared_each(situation, file, source, call)
        if edit is not None:
            cause = f"the generator yields {got[0]} values, but one tensor of shape {wanted} is declared. "
            cause += "These are the dtypes and shapes of its first element."
            return Explanation(RULE, file, call.lineno, cause, edit, "", "likely")
        declared = [call, *generator_calls.assigned(call, source)]
        sizes = _numbers(source, situation)
        places = [
            part for one in declared for part in ast.walk(one)
            if isinstance(part, (ast.Tuple, ast.List)) and _sizes(part, sizes) == wanted
        ]  # fmt: skip
        places = places or [
            part for one in declared for part in ast.walk(one)
            if isinstance(part, (ast.Tuple, ast.List)) and _may_be(part, sizes, wanted)
        ]  # fmt: skip
        if not places:
            continue
        parts = signature_parts.failed_parts(situation)[0]
        if len(places) > 1 and parts:
            places = _within(places, call, parts[0]) or places
        function = generator_calls.function_of(source, generator_calls.given(call))
        # Where what yields is not there to be read (df.iterrows), the signature may be wrong as a whole.
        key = _key_of(source, places[0]) if len(places) == 1 else ""
        seen = generator_calls.yields_of(function) or len(got) == len(wanted) or key
        fits = _differing(got, wanted) if _had_elements(situation) else _of_source(got, function, file, situation)
        several = [one for one in refused(situation, wanted) if one != got and len(one) == len(got)]
        for one in several:
            fits = _differing(one, fits)
        fits = _left_open(fits, wanted)
        fits = _left_open(fits, open_axes.declared(wanted, situation))
        said = _written(fits, places[0], sizes)
        pieces: dict[ast.expr, str] = {places[0]: said, **_others(situation, call, parts[1:], sizes)}
        number = _elements_before(situation)
        batch = _batch_behind(source, call) if number and fits != got and len(fits) == len(got) else None
        if batch is not None and abs(batch.lineno - places[0].lineno) < NEAR:
            pieces[batch] = "padded_batch"
        else:
            batch = None
        new = source.replaced(pieces) if len(places) == 1 and seen else None
        edit = edit_of(file, new)
        if edit is not None and edit.first < edit.last:  # perhaps two statements: their lines stay as they are
            edit = Edit(file, edit.first, edit.last, source.spliced(pieces, edit.first, edit.last))
        swapped = swapped_parts.alike(situation)
        whose = key or (swapped[0] if swapped is not None else "")
        of = f" for {whose}" if whose else ""
        cause = f"the generator yielded an element of shape {got}{of}, but its signature says {wanted}. "
        if swapped is not None:
            cause += f"Either that is declared wrongly, or the value is another part's: {swapped[1]} this shape too."
            advice = f"If the value is the right one, write {said} there. Else yield the one that belongs there: data "
            advice += "and labels, say, may be unpacked in another order than they were returned."
            return Explanation(RULE, file, places[0].lineno, cause, None, advice, "likely")
        if number and odd_elements.is_odd(got, wanted):
            line, shapes_of = places[0].lineno, (got, wanted)
            return odd_elements.explain(situation, file, source, call, line, shapes_of, whose)
        if number and fits != got:
            cause = f"{cause[:-2]}, as {odd_elements.before(situation)} had. "
            cause += "If that one is wrong, leave it out in the generator; else None stands for any size"
            cause += ", and padded_batch fills rows up." if batch is not None else "."
        else:
            cause += "It describes one yielded element, before any batch()."
            cause += f" Another has {several[0]}." if several else ""
            cause += " None stands for any size." * (None in fits)
            if got[:-1] == wanted and 1 < got[-1] <= _CHANNELS:
                cause += f" If one of its {got[-1]} channels is meant, yield [..., 0] of it."
        return Explanation(
            RULE, file, places[0].lineno, cause, edit,
            "" if edit else f"Write {said} there, or yield elements of shape {wanted}, in the signature's order.",
            "likely",
        )  # fmt: skip
    return None


def _key_of(source: Source, declared: ast.expr) -> str:
    """The key under which a dict declares a shape, as the program writes it; "" where it is in no dict."""
    around = [declared, *source.around(declared)]
    for inner, outer in itertools.pairwise(around):
        if isinstance(outer, ast.Dict):
            return next((source.text(key) for key, one in zip(outer.keys, outer.values) if one is inner and key), "")
        if isinstance(outer, ast.stmt):
            break
    return ""


def _others(situation: Situation, call: ast.Call, parts: list[int], sizes: dict[str, int]) -> dict[ast.expr, str]:
    """The shapes of the further parts that failed, in the places of those that are declared."""
    found: dict[ast.expr, str] = {}
    for frame in frames(situation.inner.__traceback__):
        arrays, declared = (frame.f_locals.get(name) for name in ("ret_arrays", "flattened_shapes"))
        for part in parts if isinstance(arrays, list) and declared is not None else ():
            got, wanted = tuple(arrays[part].shape), tuple(declared[part].as_list())
            shapes_of = [one for one in ast.walk(call) if isinstance(one, (ast.Tuple, ast.List))]
            places = _within([one for one in shapes_of if _sizes(one, sizes) == wanted], call, part)
            if len(places) == 1 and len(got) == len(wanted):
                found[places[0]] = _written(_left_open(_differing(got, wanted), wanted), places[0], sizes)
    return found


def _within(places: list[_Written], call: ast.Call, part: int) -> list[_Written]:
    """Those of some shapes that stand in one part of a tuple that from_generator is given."""
    said = [one.value for one in call.keywords if one.arg in ("output_shapes", "output_signature")] + call.args[2:3]
    if len(said) != 1 or not isinstance(said[0], (ast.Tuple, ast.List)) or part >= len(said[0].elts):
        return []
    inside = list(ast.walk(said[0].elts[part]))
    return [one for one in places if one in inside]


def _of_source(
    got: tuple[int, ...], function: ast.FunctionDef | None, file: str, situation: Situation
) -> tuple[int | None, ...]:
    """The shape of an element that failed, with None where the source that yields it leaves a size open."""
    spot = next((one for one in situation.spots if one.file == file), None)
    yields = generator_calls.yields_of(function)
    if function is None or spot is None or len(yields) != 1 or yields[0].value is None:
        return got
    value: ast.expr = yields[0].value
    inside = Spot(file, function.lineno, {}, spot.module, "")
    parts = list(value.values) if isinstance(value, ast.Dict) else getattr(value, "elts", [value])
    guesses = {shapes.shape_of_value(one, function, inside) for one in parts}
    made = assignments(function)
    listed = [made.get(one.id) if isinstance(one, ast.Name) else one for one in parts]
    if any(isinstance(one, ast.ListComp) for one in listed) and guesses <= {None, ()}:
        return (None, *got[1:])
    fitting = [
        one for one in guesses
        if one is not None and len(one) == len(got) and all(size in (None, own) for size, own in zip(one, got))
    ]  # fmt: skip
    return fitting[0] if len(fitting) == 1 else got


def _had_elements(situation: Situation) -> bool:
    """Whether the generator gave elements before, which did fit its signature."""
    return _elements_before(situation) > 0


def refused(situation: Situation, wanted: tuple[int | None, ...]) -> list[tuple[int, ...]]:
    """The shapes of all elements of the generator that failed so: some are asked for at once."""
    rows = situation.rows(
        "SELECT DISTINCT f.message FROM call c JOIN failure f ON f.id = c.failure WHERE c.status = 'error' AND "
        "c.node = (SELECT node FROM call WHERE status = 'error' ORDER BY id LIMIT 1) ORDER BY c.id"
    )
    found = [_REFUSED.search(message or "") for (message,) in rows]
    pairs = [(ast.literal_eval(one[1]), ast.literal_eval(one[2])) for one in found if one is not None]
    return [shape for shape, declared in pairs if declared == wanted]


def _elements_before(situation: Situation) -> int:
    """How many elements the generator gave before the one that failed."""
    failed = "FROM call WHERE status = 'error' ORDER BY id LIMIT 1"  # a prefetch goes on behind it
    rows = situation.rows(
        f"SELECT count(*) FROM call WHERE status = 'ok' AND node = (SELECT node {failed}) AND id < (SELECT id {failed})"
    )
    return int(rows[0][0]) if rows else 0


def _batch_behind(source: Source, call: ast.Call) -> ast.expr | None:
    """`batch` of `from_generator(...).batch(2)`, as a place in the text."""
    attribute = source.parent(call)
    if not isinstance(attribute, ast.Attribute) or attribute.attr != "batch" or attribute.end_col_offset is None:
        return None
    place = ast.Name("batch", ast.Load())
    place.lineno = place.end_lineno = attribute.end_lineno or attribute.lineno
    place.end_col_offset = attribute.end_col_offset
    place.col_offset = attribute.end_col_offset - len("batch")
    return place


def _differing(got: tuple[int, ...], wanted: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """A shape that fits both."""
    if len(got) != len(wanted):
        return got
    return tuple(one if one == other else None for one, other in zip(got, wanted))


def _left_open(shape: tuple[int | None, ...], wanted: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """A shape with None where the declared one has it, as for the size of batches: the last may be smaller."""
    if len(shape) != len(wanted):
        return shape
    return tuple(None if other is None else one for one, other in zip(shape, wanted))


def _numbers(source: Source, situation: Situation) -> dict[str, int]:
    """Whole numbers that names of a file stand for, as far as it, or a frame of it, gives each one value."""
    found: dict[str, set[int]] = {}
    own = {one.name for one in ast.walk(source.tree) if isinstance(one, ast.ClassDef)}
    for one in ast.walk(source.tree):
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant) and type(one.value.value) is int:
            for target in one.targets:
                found.setdefault(dotted(target), set()).add(one.value.value)
    for function in (one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef)):
        for given, default in zip(reversed(function.args.args), reversed(function.args.defaults)):
            if isinstance(default, ast.Constant) and type(default.value) is int:
                found.setdefault(given.arg, set()).add(default.value)
    for spot in situation.spots:
        if spot.source is source:
            for name, value in [*spot.module.items(), *spot.variables.items()]:
                if type(value) is int:
                    found.setdefault(name, set()).add(value)
                elif type(value).__name__ in own:
                    kept = getattr(value, "__dict__", {})
                    for attribute, size in kept.items():
                        if type(size) is int:
                            found.setdefault(f"self.{attribute}", set()).add(size)
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


def _may_be(node: ast.Tuple | ast.List, numbers: dict[str, int], wanted: tuple[int | None, ...]) -> bool:
    """Whether a written shape may stand for `wanted`: by names of sizes that nothing tells the values of."""
    if len(node.elts) != len(wanted) or not node.elts:
        return False
    open_sizes = [isinstance(one, (ast.Name, ast.Attribute)) and dotted(one) not in numbers for one in node.elts]
    known = [
        numbers.get(dotted(one)) if dotted(one) else getattr(one, "value", "?") for one in node.elts
    ]  # fmt: skip
    return any(open_sizes) and all(free or one == size for free, one, size in zip(open_sizes, known, wanted))


def _sizes(node: ast.Tuple | ast.List, numbers: dict[str, int]) -> object:
    """What a written shape stands for; None where some of it is not known."""
    sizes = [
        numbers.get(dotted(one), "?") if isinstance(one, (ast.Name, ast.Attribute)) else getattr(one, "value", "?")
        for one in node.elts
    ]  # fmt: skip
    return tuple(sizes) if all(one is None or type(one) is int for one in sizes) else None


def _written(shape: tuple[int | None, ...], place: ast.expr, numbers: dict[str, int]) -> str:
    """A shape as text, with the names that the shape in its place has for sizes."""
    elements = place.elts if isinstance(place, (ast.Tuple, ast.List)) else []
    named = {numbers[dotted(one)]: dotted(one) for one in elements if dotted(one) in numbers}
    parts = [named.get(one, str(one)) if one is not None else "None" for one in shape]
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
