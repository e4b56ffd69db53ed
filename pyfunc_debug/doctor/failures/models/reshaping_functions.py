"""A preprocessing_function of an ImageDataGenerator that gives another shape: Keras has made the batch already."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.nodes import return_value
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls

RULE = "structure"
_SAID = re.compile(r"could not broadcast input array from shape \(([\d, ]+)\) into shape \(([\d, ]+)\)")
_FILLS = "_get_batches_of_transformed_samples"
_FLOWS = ("flow_from_directory", "flow_from_dataframe")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what such a function gave does not go into Keras' batch."""
    found, spot = _SAID.search(situation.message), situation.last
    filling = [one for one in frames(situation.inner.__traceback__) if one.f_code.co_name == _FILLS]
    if found is None or spot is None or not filling:
        return None
    owner = getattr(filling[-1].f_locals.get("self"), "image_data_generator", None)
    function = getattr(owner, "preprocessing_function", None)
    given, wanted = ([int(size) for size in one.split(",") if size.strip()] for one in found.groups())
    if function is None:
        return None
    name = getattr(function, "__name__", "it").replace("<lambda>", "the lambda")
    cause = f"{name}, the preprocessing_function, gives {given} for an image of {wanted}: it has to keep the shape."
    if given == wanted[:-1]:
        return _channels(spot, name, cause, wanted[-1])
    for file, source in situation.sources():
        sizes = [
            word.value for one in calls(source.tree) if dotted(one.func).rpartition(".")[2] in _FLOWS
            for word in one.keywords if word.arg == "target_size"
        ]  # fmt: skip
        if len(given) == len(wanted) and given[2:] == wanted[2:] and len(sizes) == 1:
            if list(computed(sizes[0], spot) or ()) != wanted[:2]:
                continue
            edit = edit_of(file, source.replaced({sizes[0]: f"({given[0]}, {given[1]})"}))
            return Explanation(RULE, file, sizes[0].lineno, f"{cause} target_size resizes before it.", edit)
    advice = "Resize images before that: flow_from_directory has target_size=, and flow takes resized arrays."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _channels(spot: Spot, name: str, cause: str, count: int) -> Explanation:
    """What lost the axis of the channels, with it again."""
    every = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    result = return_value(every[0]) if len(every) == 1 else None
    if result is None:
        return Explanation(RULE, spot.file, spot.line, cause, None, f"Return it with {count} channels.")
    np, text = alias(spot, "numpy"), spot.source.atom(result)
    new = f"{text}[..., {np}.newaxis]"
    new = f"{np}.repeat({new}, {count}, axis=-1)" if count > 1 else new
    edit = edit_of(spot.file, spot.source.replaced({result: new}))
    return Explanation(RULE, spot.file, result.lineno, f"{cause} The last axis are the channels.", edit)
