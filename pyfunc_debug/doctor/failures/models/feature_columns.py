"""A dataset whose inputs are a dict of columns, as `make_csv_dataset` gives it, for a model with one input."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_dataset, lookup, shape_of

RULE = "structure"
_SAID = re.compile(r"The structure of `inputs` doesn't match the expected structure")
_NUMBERS = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras refused a dict of columns, of which a model takes one array."""
    if not _SAID.search(situation.message):
        return None
    for spot, fit in failed_fits(situation):
        given = argument(fit, 0, "x")
        dataset: Any = lookup(given, spot) if given is not None else None
        model = lookup(fit.func.value, spot) if isinstance(fit.func, ast.Attribute) else None
        if given is None or not is_dataset(dataset):
            continue
        spec: Any = dataset.element_spec
        parts = spec if type(spec) is tuple and spec else ()  # of a dict alone the labels are a part
        if not parts or not isinstance(parts[0], dict) or len(getattr(model, "inputs", None) or ()) != 1:
            continue
        columns = {str(key): (shape_of(one), one.dtype.name) for key, one in parts[0].items() if hasattr(one, "dtype")}
        wanted = shape_of(getattr(model, "inputs", [None])[0])
        cause = (
            f"an element has a dict of {len(parts[0])} columns ({', '.join(list(columns)[:4])}"
            f"{', ...' if len(columns) > 4 else ''}), and the model takes one array."
        )
        texts = [key for key, (_, dtype) in columns.items() if dtype not in _NUMBERS]
        if texts:
            cause += f" {' and '.join(texts[:2])} {'is' if len(texts) == 1 else 'are'} no number."
        fits = wanted is not None and len(wanted) == 2 and wanted[1] in (None, len(parts[0])) and not texts
        fits = fits and len(columns) == len(parts[0]) and len({shape for shape, _ in columns.values()}) == 1
        if not fits or len(next(iter(columns.values()))[0] or ()) > 1:
            return Explanation(
                RULE, spot.file, fit.lineno, cause, None, "Give the model an Input for each, by its name."
            )
        tf = alias(spot, "tensorflow")
        names = ["columns", "label", "weight"][: len(parts)]
        stacked = f"{tf}.stack([{tf}.cast(one, {tf}.float32) for one in columns.values()], axis=-1)"
        body = f"({', '.join([stacked, *names[1:]])})" if len(names) > 1 else stacked
        text = f"{spot.source.text(given)}.map(lambda {', '.join(names)}: {body})"
        edit = edit_of(spot.file, spot.source.replaced({given: text}))
        return Explanation(RULE, spot.file, fit.lineno, f"{cause} stack makes it, in this order.", edit)
    return None
