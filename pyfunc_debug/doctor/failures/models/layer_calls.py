"""Layers that are called in another way than they are made for: several tensors for a list, no call at all."""

from __future__ import annotations

import ast
import inspect
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.failed_layers import FailedLayer, failed_layer, other_class
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import (
    calls,
    is_keras,
    is_keras_class,
    lookup,
    of_keras,
    of_package,
)

RULE = "structure"
_MERGING = ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate", "Dot")
_FUNCTIONS = tuple(one.lower() for one in _MERGING)
_LISTED = re.compile(
    r"^too many positional arguments$|should be called on a list of|must be called on a list of inputs"
    r"|^(?:\w+)\(\) takes 1 positional argument but \d were given"
)
_MISSING = re.compile(r"^missing a required argument: 'value'$")
_ONE_INPUT = re.compile(r"Layer MultiHeadAttention has multiple required positional arguments")
_NO_LAYER = re.compile(r"^Only instances of `keras\.Layer` can be added to a Sequential model\. Received: <(\w+)")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a layer got its inputs in another form than it takes them."""
    spot, statement, said = situation.last, situation.statement, situation.message
    if spot is None or statement is None or situation.body:
        return None
    made_of = _made_of_tensor(spot, statement)
    if made_of is not None:
        return made_of
    if _NO_LAYER.search(said):
        return _uncalled(spot, statement)
    if _ONE_INPUT.search(said):
        return _in_sequential(spot, "MultiHeadAttention")
    if _LISTED.search(said):
        return _listed(spot, statement, failed_layer(situation))
    failed = failed_layer(situation) if _MISSING.search(said) else None
    if failed is not None and failed.kind == "MultiHeadAttention":
        return _attention(failed)
    return None


def _listed(spot: Spot, statement: ast.stmt, failed: FailedLayer | None) -> Explanation | None:
    """`Add()(a, b)`, `layers.add(a, b)`, `Attention()(x)`."""
    call = failed.call if failed is not None else None
    kind = failed.kind if failed is not None else ""
    if call is None or kind not in (*_MERGING, "Attention", "AdditiveAttention"):
        found = [
            one for one in calls(statement)
            if dotted(one.func).rpartition(".")[2] in _FUNCTIONS and len(one.args) > 1 and _is_merging(one.func, spot)
        ]  # fmt: skip
        if len(found) == 1:
            call, kind = found[0], ast.unparse(found[0].func)
    if call is None and failed is not None and failed.model is not None and "Attention" in kind:
        return _in_sequential(spot, kind)
    if call is None or not call.args or any(isinstance(one, (ast.Starred, ast.List, ast.Tuple)) for one in call.args):
        return None
    source = spot.source
    texts = [source.text(one) for one in call.args]
    if len(texts) == 1:
        if "Attention" not in kind:
            return None
        cause = f"{kind} takes a list, [query, value]: of self-attention both are {texts[0]}."
        texts *= 2
    else:
        cause = f"{kind} takes its inputs as one list, and gets {len(texts)} arguments."
    new = [f"[{', '.join(texts)}]", *(f"{one.arg}={source.text(one.value)}" for one in call.keywords if one.arg)]
    edit = Edit(spot.file, *source.kept_lines({call: f"{source.text(call.func)}({', '.join(new)})"}))
    return Explanation(RULE, spot.file, call.lineno, cause, edit)


def _in_sequential(spot: Spot, kind: str) -> Explanation:
    """A layer of several inputs in a model that hands on one."""
    cause = f"A Sequential hands one tensor from layer to layer, and {kind} takes two, query and value."
    given = "x, x" if kind == "MultiHeadAttention" else "[x, x]"
    advice = f"Write the model as keras.Model(inputs, outputs), and call the layer there: attention({given})."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _is_merging(function: ast.expr, spot: Spot) -> bool:
    found = lookup(function, spot)
    found = found if found is not None else of_package(function, spot)
    return str(getattr(found, "__module__", "")).startswith("keras.") and "merging" in found.__module__


def _attention(failed: FailedLayer) -> Explanation | None:
    """`MultiHeadAttention(...)(x)`, and of a list."""
    call, source = failed.call, failed.spot.source
    if call is None or len(call.args) != 1 or isinstance(call.args[0], ast.Starred):
        return None
    given = call.args[0]
    texts = [source.text(one) for one in given.elts] if isinstance(given, (ast.List, ast.Tuple)) else []
    if len(texts) > 2 and len(set(texts)) > 1:
        return None
    cause = "MultiHeadAttention takes query and value as two arguments"
    cause += ", no list." if texts else f": of self-attention both are {source.text(given)}."
    new = ", ".join(texts or [source.text(given)] * 2)
    edit = Edit(failed.spot.file, *source.kept_lines({given: new}))
    return Explanation(RULE, failed.spot.file, call.lineno, cause, edit)


def _made_of_tensor(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """`Flatten(x)`, `Dense(8, x)`: a tensor among the arguments that make a layer."""
    for call in calls(statement):
        kind = of_package(call.func, spot)
        places = [at for at, one in enumerate(call.args) if is_keras(lookup(one, spot))]
        if not isinstance(kind, type) or not is_keras_class(kind) or not of_keras(kind, "Layer") or len(places) != 1:
            continue
        if of_keras(kind, "Model") or kind.__name__ == "InputLayer" or any(one.arg is None for one in call.keywords):
            continue
        source, place = spot.source, places[0]
        tensor = source.text(call.args[place])
        rest = [source.text(one) for at, one in enumerate(call.args) if at != place]
        rest += [f"{one.arg}={source.text(one.value)}" for one in call.keywords]
        parameters = list(inspect.signature(kind).parameters)
        needed = [one.name for one in inspect.signature(kind).parameters.values() if _is_needed(one)]
        name = parameters[place] if place < len(parameters) else ""
        if len(needed) > len(rest) or not name:
            return None
        new = f"{source.text(call.func)}({', '.join(rest)})({tensor})"
        cause = (
            f"{source.text(call)} makes a layer, and takes {tensor} for its {name}. A layer is made first, and then "
            "called with the tensor."
        )
        return Explanation(RULE, spot.file, call.lineno, cause, Edit(spot.file, *source.kept_lines({call: new})))
    return None


def _is_needed(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD


def _uncalled(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """A class or a function where a Sequential takes a layer."""
    listed = [
        part for one in calls(statement) for arg in one.args
        for part in (arg.elts if isinstance(arg, (ast.List, ast.Tuple)) else [arg])
        if dotted(one.func).rpartition(".")[2] in ("Sequential", "add")
    ]  # fmt: skip
    for one in listed:
        value = of_package(one, spot)
        text = spot.source.text(one)
        if isinstance(value, type) and of_keras(value, "Layer") and is_keras_class(value):
            if any(map(_is_needed, inspect.signature(value).parameters.values())):
                return None
            cause, new = f"{text} is the class of a layer: {text}() makes one.", f"{text}()"
        elif callable(value) and ".activations" in str(getattr(value, "__module__", "")):
            kind = other_class(_beside(listed, spot), "Activation", spot)
            cause, new = f"{text} is a function, and a Sequential takes layers.", f"{kind}({text})"
        else:
            continue
        return Explanation(RULE, spot.file, one.lineno, cause, Edit(spot.file, *spot.source.kept_lines({one: new})))
    return None


def _beside(listed: list[ast.expr], spot: Spot) -> ast.expr:
    """How another layer of the file is made."""
    for one in [*listed, *calls(spot.source.tree)]:
        kind = of_package(one.func, spot) if isinstance(one, ast.Call) else None
        layer = isinstance(kind, type) and of_keras(kind, "Layer") and not of_keras(kind, "Model")
        if isinstance(one, ast.Call) and layer:
            return one.func
    return ast.Name("Activation")
