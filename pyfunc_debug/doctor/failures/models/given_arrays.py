"""Arrays, lists and tables for Keras' helpers: pad_sequences, array_to_img, adapt and vocabularies."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_dataset, is_ndarray, lookup, of_keras, sizes_of
from pyfunc_debug.doctor.failures.reading.tables import is_frame, is_table, valued

RULE = "structure"
_FLAT = re.compile(r"^`sequences` must be a list of iterables\. Found non-iterable: (.*)$")
_NUMBER = re.compile(r"^invalid literal for int\(\) with base 10: '(.*)'$")
_IMAGE = re.compile(r"^(?:Expected image array to have rank 3|Unsupported image shape).*?\(([\d, ]+)\)")
_REPEATED = re.compile(r"^The passed vocabulary has at least one repeated term")
_LARGE = re.compile(r"larger than the maximum vocab size\. Received vocabulary size is (\d+); `max_tokens` is (\d+)")
_TABLE = re.compile(r"^adapt\(\) expects an iterable that yields arrays .* Got an element of type str")
_TYPE = re.compile(r"Unsupported object type (int|float)\)|^Cannot convert (\S+) to EagerTensor of dtype string")
_AXIS = re.compile(r"^All `axis` values must be in the range \[-ndim, ndim\)\. Received inputs with ndim=(\d+)")
_PAIR = re.compile(r"FeatureSpace\.adapt\.<locals>\.<lambda>\(\) takes 1 positional argument but (\d) were given")
_FLOAT = "slice indices must be integers or None or have an __index__ method"
_IMAGES = ("array_to_img", "save_img", "img_to_array", "smart_resize")
_NUMBERS = (int, float, bool, type(None))
_SHOWN = 3


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one of Keras' helpers got data in another form than it takes."""
    spot, statement, said = situation.last, situation.statement, situation.message
    if spot is None or statement is None or situation.body:
        return None
    for call in calls(statement):
        name = dotted(call.func).rpartition(".")[2] or getattr(call.func, "attr", "")
        found = None
        if name == "pad_sequences":
            found = _sequences(spot, call, said)
        elif name in _IMAGES and (image := _IMAGE.search(said)):
            found = _image(spot, call, name, [int(one) for one in image[1].split(",") if one.strip()])
        elif name == "adapt":
            found = _adapted(spot, call, said)
        elif name == "timeseries_dataset_from_array" and said == _FLOAT:
            found = _indices(spot, call)
        elif _REPEATED.search(said):
            found = _repeated(spot, call, name)
        elif (large := _LARGE.search(said)) is not None:
            found = _larger(spot, call, int(large[1]), int(large[2]))
        if found is not None:
            return found
    return None


def _told(spot: Spot, node: ast.expr, cause: str, new: str, sure: bool = True) -> Explanation:
    edit = edit_of(spot.file, spot.source.replaced({node: new}))
    return Explanation(RULE, spot.file, node.lineno, cause, edit, "", "measured" if sure else "likely")


def _data(node: ast.expr, spot: Spot) -> Any:
    """What a name stands for, or a list that is written out."""
    found = valued(node, spot)
    return found if found is not None else computed(node, spot)


def _sequences(spot: Spot, call: ast.Call, said: str) -> Explanation | None:
    """One sequence for a list of them; texts for numbers."""
    node = argument(call, 0, "sequences")
    value = _data(node, spot) if node is not None else None
    if node is None or not isinstance(value, (list, tuple)):
        return None
    text = spot.source.text(node)
    if _FLAT.search(said):
        if all(type(one) in (int, float) and one == one for one in value):
            cause = f"{text} is one sequence of {len(value)} numbers, and pad_sequences takes a list of sequences."
            return _told(spot, node, cause, f"[{text}]")
        at = next((at for at, one in enumerate(value) if type(one) in _NUMBERS), None)
        if at is None:
            return None
        cause = f"Element {at} of {text} is {value[at]!r}, and pad_sequences takes a list of sequences."
        return Explanation(RULE, spot.file, node.lineno, cause, None, "Leave such rows out, of the labels too.")
    known = any(one.arg in ("dtype", None) for one in call.keywords) or len(call.args) > 2
    texts = value and all(isinstance(one, (list, tuple)) for one in value)
    if (
        _NUMBER.search(said) is None
        or not texts
        or known
        or any(type(word) is not str for one in value for word in one)
    ):
        return None
    cause = f"{text} has texts, and pad_sequences makes an array of int32: dtype=object keeps the texts."
    new = spot.source.with_argument(call, 'dtype=object, value=""')
    return _told(spot, call, cause, new)


def _image(spot: Spot, call: ast.Call, name: str, shape: list[int]) -> Explanation | None:
    """A batch of one image, or an image without channels."""
    node = argument(call, 1 if name == "save_img" else 0, "img" if name.endswith("_to_array") else "x")
    if node is None:
        return None
    text, sizes = spot.source.atom(node), sizes_of(shape)
    if len(shape) == 4:
        one = "one image" if shape[0] == 1 else f"{shape[0]} images"
        cause = f"{text} is a batch of {one}, {sizes}, and {name} takes one: height, width and channels."
        return _told(spot, node, cause, f"{text}[0]", shape[0] == 1)
    if len(shape) == 2:
        cause = f"{text} is {sizes}, without an axis for channels: {name} takes height, width and channels."
        return _told(spot, node, cause, f"{text}[..., None]")
    return None


def _adapted(spot: Spot, call: ast.Call, said: str) -> Explanation | None:
    """What a preprocessing layer is to learn from."""
    node = argument(call, 0, "data") or argument(call, 0, "dataset")
    owner = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
    value = _data(node, spot) if node is not None else None
    if node is None or owner is None:
        return None
    text, kind = spot.source.atom(node), type(owner).__name__
    if _TABLE.search(said) and is_frame(value):
        cause = f"{text} is a table, and Keras goes through the names of its columns: it takes an array of its values."
        return _told(spot, node, cause, f"{text}.to_numpy()")
    if (pair := _PAIR.search(said)) is not None and is_dataset(value):
        names = ["x", "y", "w"][: int(pair[1])]
        cause = f"{text} gives inputs and labels, and a FeatureSpace learns from the inputs alone."
        return _told(spot, node, cause, f"{text}.map(lambda {', '.join(names)}: x)")
    if (rank := _AXIS.search(said)) is not None and of_keras(type(owner), "Normalization"):
        return _axis(spot, call, text, int(rank[1]))
    other = _TYPE.search(said)
    if other is None or not (of_keras(type(owner), "StringLookup") or of_keras(type(owner), "TextVectorization")):
        return None
    if (
        "nan" in (other[2], "nan" if other[1] == "float" else "")
        and value is not None
        and is_table(value)
        and value.isna().to_numpy().any()
    ):
        cause = f"{text} has empty cells, which are NaN: numbers among the texts that {kind} takes."
        return _told(spot, node, cause, f'{text}.fillna("")')
    if not hasattr(value, "astype"):
        return None
    cause = f"{kind} takes texts, and {text} has numbers."
    return _told(spot, node, cause, f"{text}.astype(str)")


def _axis(spot: Spot, adapt: ast.Call, text: str, rank: int) -> Explanation | None:
    """The axis of a Normalization, which counts the batch."""
    owner = dotted(adapt.func).rpartition(".")[0]
    made = [
        one.value for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.Assign) and [dotted(each) for each in one.targets] == [owner]
    ]  # fmt: skip
    axis = argument(made[0], 0, "axis") if len(made) == 1 and isinstance(made[0], ast.Call) else None
    if axis is None:
        return None
    cause = (
        f"{text} has {rank} axes, 0 to {rank - 1} with that of the examples, and axis {spot.source.text(axis)} is none "
        "of them. -1 is the last: each feature has a mean of its own."
    )
    return _told(spot, axis, cause, "-1", False)


def _indices(spot: Spot, call: ast.Call) -> Explanation | None:
    """A fraction for a row's number."""
    pieces: dict[ast.expr, str] = {
        word.value: f"int({spot.source.text(word.value)})" for word in call.keywords
        if word.arg in ("start_index", "end_index") and _is_fraction(word.value)
    }  # fmt: skip
    if not pieces:
        return None
    node = next(iter(pieces))
    cause = f"{spot.source.text(node)} is a float, and rows have whole numbers."
    return Explanation(RULE, spot.file, node.lineno, cause, edit_of(spot.file, spot.source.replaced(pieces)))


def _is_fraction(node: ast.expr) -> bool:
    """Whether an expression multiplies by a fraction, or divides, and makes no whole number of it."""
    if any(dotted(one.func) in ("int", "round") for one in calls(node)):
        return False
    return any(
        isinstance(one, ast.Div) or (isinstance(one, ast.Constant) and type(one.value) is float)
        for one in ast.walk(node)
    )


def _repeated(spot: Spot, call: ast.Call, name: str) -> Explanation | None:
    """A vocabulary with a word twice."""
    node = argument(call, 0 if name == "set_vocabulary" else len(call.args), "vocabulary")
    value = _data(node, spot) if node is not None else None
    if node is None or not (is_ndarray(value) or isinstance(value, (list, tuple))):
        return None
    words: list[Any] = value.ravel().tolist() if is_ndarray(value) else list(value)  # type: ignore[union-attr,arg-type]
    if not all(type(one) in (str, bytes, int) or type(one).__module__ == "numpy" for one in words):
        return None
    counts: Counter[Any] = Counter(words)
    twice = [f"{str(one)!r} {times} times" for one, times in counts.items() if times > 1]
    if not twice:
        return None
    text = spot.source.text(node)
    rest = f" and {len(twice) - _SHOWN} more words" if len(twice) > _SHOWN else ""
    cause = f"{text} has {', '.join(twice[:_SHOWN])}{rest}: each place of a vocabulary has its own word."
    return _told(spot, node, cause, f"list(dict.fromkeys({text}))")


def _larger(spot: Spot, call: ast.Call, size: int, most: int) -> Explanation | None:
    """Words for more places than there are."""
    node = next((word.value for word in call.keywords if word.arg == "max_tokens"), None)
    words = next((word.value for word in call.keywords if word.arg == "vocabulary"), None)
    value = _data(words, spot) if words is not None else None
    if node is None or not isinstance(value, (list, tuple)) or size < len(value):
        return None
    extra = size - len(value)
    cause = (
        f"The vocabulary has {len(value)} words, and {extra} more place{'s' * (extra != 1)} for padding and unknown "
        f"words: {size} in all, and max_tokens is {most}."
    )
    text = f"len({spot.source.text(words)}) + {extra}" if isinstance(words, ast.Name) else str(size)
    return _told(spot, node, cause, text)
