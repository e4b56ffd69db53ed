"""An element of another rank than those before it, which fitted their signature, or one without values.

Its shape is nothing to declare: the others would not fit it. It is to be left out, or made as they are.
"""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.datasets import generator_calls, signature_parts, yielded_keys
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.shapes import fits_shape
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_ndarray
from pyfunc_debug.doctor.generators.element_numbers import element_number

RULE = "generator"
_Shape = tuple[int | None, ...]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COLORS = 3
_SECOND = 2


def is_odd(got: tuple[int, ...], wanted: _Shape) -> bool:
    """Whether a shape has another number of axes than the declared one, or no values where that has some."""
    return len(got) != len(wanted) or (0 in got and 0 not in wanted)


def explain(
    situation: Situation, file: str, source: Source, call: ast.Call, line: int, shapes: tuple[tuple[int, ...], _Shape],
    whose: str,
) -> Explanation:  # fmt: skip
    """Say which element it is, and how to leave it out.

    Args:
      situation: The failure.
      file: The file of the call of from_generator.
      source: Its text.
      call: The call.
      line: The line that declares the shape.
      shapes: The shape of the element, and the declared one.
      whose: What the signature calls the part that failed; "" where it has no name.
    """
    got, wanted = shapes
    function = generator_calls.function_of(source, generator_calls.given(call))
    yields = generator_calls.yields_of(function)
    number = its_number(situation)
    which = f"element {number:,} of the generator" if number is not None else "an element of the generator"
    others = before(situation)
    fault = "is empty" if 0 in got else f"has {len(got)} {'axis' if len(got) == 1 else 'axes'}"
    of = f" for {whose}" if whose else ""
    cause = f"{which} {fault}{of}: its shape is {got}. {others[0].upper()}{others[1:]} fitted the signature, {wanted}."
    part, value = _part(situation, yields)
    reshaped = _reshaped(situation, file, source, part, wanted) if 0 in got else None
    if reshaped is not None:
        empty = tuple(0 if one is None else one for one in wanted)
        return Explanation(RULE, file, line, f"{cause} An empty one has to be {empty}.", reshaped)
    name = part.id if isinstance(part, ast.Name) and is_ndarray(value) and _loops(source, yields, function) else ""
    check = f": `if {_check(name, got, wanted)}: continue` above the yield" if name else ""
    advice = f"Leave it out in the generator{check}; or correct what it was made of."
    if 0 in got and len(got) == len(wanted):
        fits = tuple(None if one != other else one for one, other in zip(got, wanted))
        advice = f"{advice[:-1]}. If an empty one is right, declare {fits}."
    elif len(got) + 1 == len(wanted) and wanted[-1] == _COLORS and fits_shape(got, wanted[:-1]):
        image = name or "image"
        advice += f" A grey image has no axis of colors: `np.stack([{image}] * 3, axis=-1)` has one."
    line = yielded_keys.line_of(yields, situation, call) if yields else line
    return Explanation(RULE, file, line, cause, None, advice, "likely")


def before(situation: Situation) -> str:
    """The elements that fitted, in words: their number is that of the pass, as the recording also counts its end."""
    number = its_number(situation)
    if number is None:
        return "those before it"
    if number == 1:
        return "those of the pass before"
    return f"the {number - 1:,} elements before it" if number > _SECOND else "the one before it"


def _check(name: str, got: tuple[int, ...], wanted: _Shape) -> str:
    """The condition that an element is left out by."""
    if None not in wanted:
        return f"{name}.shape != {wanted}"
    return f"{name}.ndim != {len(wanted)}" if len(got) != len(wanted) else f"not {name}.size"


def its_number(situation: Situation) -> int | None:
    """The number of the element in its pass, from 1.

    The first failure of the newest node: generators that earlier programs of the process left may fail in between.
    """
    rows = situation.rows(
        "SELECT c.node, c.id FROM call c JOIN node n ON n.id = c.node WHERE c.status = 'error' "
        "ORDER BY n.file IS NULL, c.node DESC, c.id LIMIT 1"
    )
    return element_number(situation.rows, *rows[0]) if rows else None


def _reshaped(situation: Situation, file: str, source: Source, part: ast.expr | None, wanted: _Shape) -> Edit | None:
    """The yield with an empty list as an array of no rows: `np.reshape(boxes, (-1, 4))`."""
    spot = situation.last
    sizes = [one for one in wanted if one is not None]
    if not isinstance(part, ast.Name) or spot is None or len(sizes) + 1 != len(wanted) or 0 in sizes or not sizes:
        return None
    shape = ", ".join("-1" if one is None else str(one) for one in wanted)
    text = f"{alias(spot, 'numpy')}.reshape({part.id}, ({shape}))"
    return edit_of(file, source.replaced({part: text}))


def _loops(source: Source, yields: list[ast.Yield], function: ast.FunctionDef | None) -> bool:
    """Whether the one `yield` stands in a loop."""
    for one in source.around(yields[0]):
        if isinstance(one, (ast.For, ast.While)):
            return True
        if one is function or isinstance(one, _FUNCTIONS):
            return False
    return False


def _part(situation: Situation, yields: list[ast.Yield]) -> tuple[ast.expr | None, Any]:
    """What one `yield` gives for the part that failed, as it is written, and its value; None where it is not known."""
    compared, (values, _) = signature_parts.compared(situation), yielded_keys.element(situation)
    failed = compared.failed if compared is not None else []
    paths = list(signature_parts.paths(values))
    if len(yields) != 1 or len(failed) != 1 or compared is None or len(paths) != len(compared.arrays):
        return None, None
    # dicts are flattened by their sorted keys
    path, value = sorted(paths, key=lambda one: [f"{key:06}" if type(key) is int else str(key) for key in one[0]])[
        failed[0]
    ]
    return (yields[0].value if not path else _written(yields[0].value, path)), value


def _written(node: ast.expr | None, path: tuple[Any, ...]) -> ast.expr | None:
    """What is written at a place of what is yielded, as it is written."""
    for key in path:
        if isinstance(node, ast.Tuple) and isinstance(key, int) and key < len(node.elts):
            node = node.elts[key]
        elif isinstance(node, ast.Dict):
            parts = [one for name, one in zip(node.keys, node.values) if getattr(name, "value", None) == key]
            node = parts[0] if len(parts) == 1 else None
        else:
            return None
    return node
