"""Labels as large as an image, as masks are, and an output that unpadded convolutions and poolings made smaller."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import fits
from pyfunc_debug.doctor.failures.models.missing_heads import SAID
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.failed_layers import arguments
from pyfunc_debug.doctor.failures.reading.refused_ops import sizes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import is_keras_class, lookup, shape_of
from pyfunc_debug.interception.names.private import keras_given, keras_layers

RULE = "structure"
_CONV = re.compile(r"(?:Separable|Depthwise)?Conv[123]D")
_POOL = re.compile(r"(?:Max|Average)Pooling[123]D")
_FARTHEST = 40
"""Lines that one paste changes."""
_Shape = tuple[int | None, ...]
_Sizes = tuple[int, ...]


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if output and labels differ in the sizes of an image or series, as layers make it smaller."""
    said = next((found for one in SAID if (found := one.search(situation.message)) is not None), None)
    spots = reversed(situation.spots) if said is not None else ()  # the last may be the user's loss
    for spot, fit in ((one, fit) for one in spots if one.statement is not None for fit in fits(one.statement)):
        owner = fit.func.value if isinstance(fit.func, ast.Attribute) else None
        model: Any = lookup(owner, spot) if owner is not None else None
        layers = _chain(model)
        shape = shape_of(layers[-1].output) if layers else None
        if said is None or shape is None or not 3 <= len(shape) <= 5:
            continue
        sides = [one for text in said.groups() if len(one := sizes(text)) == len(shape) and None not in one[1:]]
        if len(sides) == 2:
            outputs, labels = sorted(sides, key=_space)
            if _fits(outputs, shape) and (None in shape[1:-1] or not _fits(labels, shape)):
                return _told(situation, spot, fit, layers, labels, outputs)
    return None


def _fits(one: _Shape, shape: _Shape) -> bool:
    return len(one) == len(shape) and all(a is None or b is None or a == b for a, b in zip(one, shape))


def _chain(model: Any) -> list[Any]:
    """The layers of a model of Keras' own in which each takes what the one before it gives; none of another model."""
    if type(model).__name__ not in ("Sequential", "Functional") or not is_keras_class(type(model)):
        return []
    layers = [one for one in keras_layers(model) or () if type(one).__name__ != "InputLayer"]
    given = [keras_given(one) for one in layers]
    if not layers or any(len(one) != 1 or not is_keras_class(type(layer)) for one, layer in zip(given, layers)):
        return []
    joined = type(model).__name__ == "Sequential" or all(
        now[0] is before.output for now, before in zip(given[1:], layers)
    )
    return layers if joined else []


def _told(
    situation: Situation, spot: Spot, fit: ast.Call, layers: Sequence[Any], labels: _Shape, outputs: _Shape
) -> Explanation | None:
    wanted, made = _space(labels), _space(outputs)
    first = shape_of(keras_given(layers[0])[0])
    begin = _space(first) if first is not None and None not in first[1:-1] else wanted
    if any(a < b for a, b in zip(wanted, made)) or wanted == made or _through(layers, begin, ()) != made:
        return None
    convs = [one for one in layers if _CONV.fullmatch(type(one).__name__) and _shrinks(one)]
    pools = [one for one in layers if _POOL.fullmatch(type(one).__name__) and _is_valid(one)]
    strided = [one for one in layers if max(_steps(one), default=1) > 1]
    both = f"The labels are {_shown(wanted)}, and the model's output is {_shown(made)}"
    for padded in (convs, [*convs, *pools]):
        if padded and _through(layers, begin, padded) == wanted:
            found = next((one for file, source in situation.sources() if (one := _edit(file, source, padded))), None)
            named = _named([one for one in layers if one in padded])
            cause = f'{both}: {named} make it smaller, as they pad nothing. padding="same" keeps the size.'
            cause = (
                cause if len(padded) > 1 else cause.replace(" make it ", " makes it ").replace("they pad", "it pads")
            )
            advice = 'Write padding="same" in each of them.' if len(padded) > 1 else 'Write padding="same" in it.'
            return Explanation(RULE, spot.file, fit.lineno, cause, found, "" if found else advice)
    less = [one for one in layers if one in convs or one in pools or one in strided]
    if not less:
        return None
    cause = f"{both}: {_named(less)} {'make' if len(less) > 1 else 'makes'} it smaller."
    rank = len(wanted)
    up = f"UpSampling{rank}D or Conv{rank}DTranspose"
    advice = f"Poolings and strides make it smaller with any padding: {up} makes it larger again."
    return Explanation(RULE, spot.file, fit.lineno, cause, None, advice)


def _space(shape: _Shape) -> _Sizes:
    return tuple(one or 0 for one in shape[1:-1])


def _shown(sizes_: _Sizes) -> str:
    return " x ".join(map(str, sizes_)) if len(sizes_) > 1 else f"{sizes_[0]} long"


def _named(layers: Sequence[Any]) -> str:
    """`conv2d to conv2d_14 (15 layers)`, or the few names."""
    every = [str(one.name) for one in layers]
    if len(every) > 3:
        return f"{len(every)} layers from {every[0]} to {every[-1]}"
    return " and ".join(every) if len(every) < 3 else f"{every[0]}, {every[1]} and {every[2]}"


def _is_valid(layer: Any) -> bool:
    return bool(vars(layer).get("padding") == "valid" and vars(layer).get("data_format") == "channels_last")


def _shrinks(layer: Any) -> bool:
    return _is_valid(layer) and max(vars(layer).get("kernel_size") or (1,)) > 1


def _steps(layer: Any) -> tuple[int, ...]:
    if not (_CONV.fullmatch(type(layer).__name__) or _POOL.fullmatch(type(layer).__name__)):
        return ()
    found = vars(layer).get("strides")
    return (found,) if isinstance(found, int) else tuple(found or ())


def _through(layers: Sequence[Any], begin: _Sizes, padded: Sequence[Any]) -> _Sizes | None:
    """The sizes that layers make of some, if some of them pad; None where that is not known."""
    now = begin
    for one in layers:
        new = _after(one, now, one in padded)
        if new is None or min(new) < 1:
            return None
        now = new
    return now


def _after(layer: Any, now: _Sizes, padded: bool) -> _Sizes | None:
    kind, own = type(layer).__name__, vars(layer)
    rank = len(now)
    if _CONV.fullmatch(kind) or _POOL.fullmatch(kind):
        window = own.get("kernel_size") or own.get("pool_size")
        steps, apart = _steps(layer), own.get("dilation_rate") or (1,) * rank
        window = (window,) * rank if isinstance(window, int) else window
        apart = (apart,) * rank if isinstance(apart, int) else apart
        if own.get("padding") not in ("valid", "same") or not window or not len(window) == len(steps) == rank:
            return None
        if padded or own["padding"] == "same":
            return tuple(-(-size // step) for size, step in zip(now, steps))
        return tuple(
            (size - (reach - 1) * gap - 1) // step + 1 for size, reach, gap, step in zip(now, window, apart, steps)
        )
    given, gives = shape_of(keras_given(layer)[0]), shape_of(layer.output)
    if given is None or gives is None or len(given) != len(gives) or len(given) != rank + 2:
        return None
    if kind.startswith("UpSampling"):
        factors = own.get("size")
        factors = (factors,) * rank if isinstance(factors, int) else factors
        return tuple(size * by for size, by in zip(now, factors)) if factors and len(factors) == rank else None
    if re.fullmatch(r"Conv[123]DTranspose", kind):
        steps = own.get("strides") or ()
        same = own.get("padding") == "same" and own.get("output_padding") is None and len(steps) == rank
        return tuple(size * step for size, step in zip(now, steps)) if same else None
    return now if given[1:-1] == gives[1:-1] and kind in _KEEP else None


_KEEP = (
    "Activation", "ReLU", "LeakyReLU", "PReLU", "ELU", "BatchNormalization", "LayerNormalization", "Dropout",
    "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "GaussianNoise", "Rescaling", "Softmax", "Dense",
    "GroupNormalization",
)  # fmt: skip


def _edit(file: str, source: Source, padded: Sequence[Any]) -> Edit | None:
    """`padding="same"` in the calls that make these layers, where these are all of their kind in the file."""
    kinds = {type(one).__name__: type(one) for one in padded}
    found = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Call) and (kind := dotted(one.func).rpartition(".")[2]) in kinds
        and not _is_one(arguments(one, kinds[kind]).get("kernel_size"))
    ]  # fmt: skip
    pieces = dict(_with_padding(source, found, kinds))
    often = any(isinstance(one, (ast.For, ast.While, ast.FunctionDef)) for call in found for one in source.around(call))
    if not found or len(pieces) > len(padded) or (len(pieces) < len(padded) and not often):
        return None
    if len(source.calls_of(frozenset({"Sequential", "Model"}))) != 1:
        return None
    first, last, lines = source.kept_lines(pieces)
    return Edit(file, first, last, lines) if last - first < _FARTHEST else None


def _is_one(node: ast.expr | None) -> bool:
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    return all(isinstance(one, ast.Constant) and one.value == 1 for one in parts)


def _with_padding(source: Source, found: Sequence[ast.Call], kinds: dict[str, type]) -> Iterator[tuple[ast.expr, str]]:
    for one in found:
        given = arguments(one, kinds[dotted(one.func).rpartition(".")[2]]).get("padding")
        if given is None:
            yield one, source.with_argument(one, 'padding="same"')
        elif isinstance(given, ast.Constant) and given.value == "valid":
            yield given, '"same"'
