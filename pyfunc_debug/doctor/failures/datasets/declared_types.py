"""One dtype declared for `Dataset.from_generator`, whose generator yields several values."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.datasets import generator_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import Guess, assignments
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import alias


def several(situation: Situation, count: int, cause: str, rule: str) -> Explanation | None:
    """The one dtype of the program's generator as one for each value that it yields; None where that is not written.

    Args:
      situation: The failure.
      count: How many values an element has.
      cause: What is known of it yet; what the generator yields is added.
      rule: Its rule.
    """
    declared = [(*one, generator_calls.types_alone(one[2])) for one in generator_calls.calls(situation)]
    found = [one for one in declared if one[3] is not None]
    if len(found) != 1:
        return None
    file, source, call, types = found[0]
    function = generator_calls.function_of(source, generator_calls.given(call))
    yields = generator_calls.yields_of(function)
    value = yields[0].value if len(yields) == 1 else None
    if function is None or not isinstance(types, (ast.Attribute, ast.Name, ast.Constant)):
        return None
    spot = next((one for one in situation.spots if one.file == file), situation.last)
    if spot is None:
        return None
    guess = Guess(Spot(file, function.lineno, {}, spot.module, ""), assignments(function))
    one_dtype, text = source.text(types), f"{alias(spot, 'tensorflow')}.string"
    values = value.elts if isinstance(value, ast.Tuple) else value.values if isinstance(value, ast.Dict) else []
    dtypes = [text if guess.of(one) == text else one_dtype for one in values]
    keys = [repr(key.value) for key in getattr(value, "keys", ()) if isinstance(key, ast.Constant)]
    if len(dtypes) != count or (isinstance(value, ast.Dict) and len(keys) != count):
        return None
    new = f"{{{', '.join(map('{}: {}'.format, keys, dtypes))}}}" if keys else f"({', '.join(dtypes)})"
    edit = edit_of(file, source.replaced({types: new}))
    cause += f"The generator yields {count} values (line {yields[0].lineno}): each needs a dtype."
    return Explanation(rule, file, call.lineno, cause, edit, "" if edit else f"Declare output_types={new}.")
