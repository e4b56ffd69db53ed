"""A generator that gives Keras inputs and labels in one dict, where Keras takes a tuple of both."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.models.batch_makers import batch_maker
from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.symbols import lookup

RULE = "structure"
_SAID = "the generator must return a tuple"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what a generator yields is one dict."""
    if _SAID not in situation.message:
        return None
    for spot, fit in failed_fits(situation):
        given = argument(fit, 0, "x")
        maker = batch_maker(given, spot) if given is not None else None
        model = lookup(fit.func.value, spot) if isinstance(fit.func, ast.Attribute) else None
        outputs = [str(one) for one in getattr(model, "output_names", None) or ()]
        yields = [one for one in maker.values if isinstance(one, ast.Dict)] if maker is not None else []
        if maker is None or len(yields) != 1:
            continue
        keyed = {
            str(key.value): (key, value) for key, value in zip(yields[0].keys, yields[0].values)
            if isinstance(key, ast.Constant)
        }  # fmt: skip
        labels = [one for one in keyed if one in outputs]
        text = maker.source.text
        cause = "Keras takes a tuple of a generator, (inputs, labels), and each of them may be a dict."
        if len(keyed) != len(yields[0].keys) or not labels or len(labels) == len(keyed):
            return Explanation(
                RULE, maker.spot.file, yields[0].lineno, cause, None, "Yield the labels as the second part of a tuple."
            )
        inputs = ", ".join(f"{text(key)}: {text(value)}" for one, (key, value) in keyed.items() if one not in labels)
        wanted = ", ".join(f"{text(keyed[one][0])}: {text(keyed[one][1])}" for one in labels)
        wanted = f"{{{wanted}}}" if len(outputs) > 1 else text(keyed[labels[0]][1])
        cause += (
            f" {' and '.join(labels)} {'is an output' if len(labels) == 1 else 'are outputs'} of the model: labels."
        )
        edit = edit_of(maker.spot.file, maker.source.replaced({yields[0]: f"{{{inputs}}}, {wanted}"}))
        return Explanation(RULE, maker.spot.file, yields[0].lineno, cause, edit)
    return None
