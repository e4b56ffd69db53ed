"""A keyword that a function or class does not take, where it has one of nearly that name: `stride=` for `strides=`."""

from __future__ import annotations

import ast
import difflib
import re
from typing import Any, Literal

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.callables import callable_of, called, taken
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "argument"
_UNEXPECTED = re.compile(r"[Gg]ot an unexpected keyword argument '(\w+)'")
_LISTED = re.compile(r"^(?:Unrecognized keyword arguments passed to \w+|Argument(?:s|\(s\)) not recognized): (\{.*\})")
_MEANT: dict[str, tuple[str, ...]] = {
    "dim": ("axis",), "dims": ("axis",), "axes": ("axis",), "axis": ("axes",), "reduction_indices": ("axis",),
    "keepdim": ("keepdims",), "keep_dims": ("keepdims",),
    "inp": ("input", "inputs", "x"), "input": ("inputs", "x"), "inputs": ("x", "input"),
    "lr": ("learning_rate",), "act": ("activation",), "num_units": ("units",), "output_dim": ("units", "filters"),
    "out_features": ("units",), "hidden_size": ("units",), "nb_filter": ("filters",), "num_filters": ("filters",),
    "out_channels": ("filters",), "kernel": ("kernel_size",), "filter_size": ("kernel_size",),
    "ksize": ("kernel_size",), "subsample": ("strides",), "border_mode": ("padding",),
    "dim_ordering": ("data_format",), "init": ("kernel_initializer",), "W_regularizer": ("kernel_regularizer",),
    "b_regularizer": ("bias_regularizer",), "bias": ("use_bias",), "p": ("rate",), "prob": ("rate",),
    "keep_prob": ("rate",), "dropout_rate": ("rate",), "nb_epoch": ("epochs",), "num_epochs": ("epochs",),
    "n_epochs": ("epochs",), "samples_per_epoch": ("steps_per_epoch",), "nb_val_samples": ("validation_steps",),
    "val_data": ("validation_data",), "validation_set": ("validation_data",), "val_split": ("validation_split",),
    "optim": ("optimizer",), "criterion": ("loss",), "loss_fn": ("loss",), "objective": ("loss",),
    "vocab_size": ("input_dim", "max_tokens"), "embedding_dim": ("output_dim",), "batch": ("batch_size",),
    "times": ("count",), "function": ("map_func",), "fn": ("map_func", "f"), "func": ("map_func",),
    "workers": ("num_parallel_calls",), "num_workers": ("num_parallel_calls",), "drop_last": ("drop_remainder",),
    "types": ("output_types",), "shapes": ("output_shapes",), "signature": ("output_signature",),
}  # fmt: skip
"""What people write, in other libraries' words or in those of older versions, for names of TensorFlow and Keras."""
_OPPOSITE = {"keep_prob"}
"""Names whose values mean something else: `keep_prob=0.8` is `rate=0.2`."""
_NEAR = 0.75
_MOST = 8


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a call in the failing line has a keyword that what it calls does not take."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.kind not in ("TypeError", "ValueError"):
        return None
    for name in _refused(situation):
        found = [
            (call, keyword) for call in calls(statement) for keyword in call.keywords
            if keyword.arg == name and name not in taken(call, spot)
        ]  # fmt: skip
        if len(found) == 1:
            return _told(spot, *found[0])
    return None


def _refused(situation: Situation) -> list[str]:
    """The keywords that the exception names."""
    one = _UNEXPECTED.search(situation.message) if situation.kind == "TypeError" else None
    if one is not None:
        return [one[1]]
    listed = _LISTED.search(situation.message) if situation.kind == "ValueError" else None
    return re.findall(r"[{,] ?'(\w+)':", listed[1]) if listed is not None else []


def _told(spot: Spot, call: ast.Call, keyword: ast.keyword) -> Explanation | None:
    name, given = str(keyword.arg), [one.arg for one in call.keywords]
    every = taken(call, spot)
    free = [one for one in every[len(call.args) :] if one not in given]
    new, sure = _instead(name, free)
    cause = f"{called(call)} takes no argument {name}"
    if new:
        value = f"1 - {spot.source.atom(keyword.value)}" if name in _OPPOSITE else spot.source.text(keyword.value)
        place: Any = keyword
        edit = edit_of(spot.file, spot.source.replaced({place: f"{new}={value}"}))
        cause += f": {new} is what it leaves out." if name in _OPPOSITE else f": it is called {new}."
        advice = "" if edit is not None else f"Write {new}={value}."
        return Explanation(RULE, spot.file, spot.line, cause, edit, advice, sure)
    made = callable_of(call, spot)
    others = [one for one in every if one not in free]
    if not free or not _is_package(made) or _instead(name, others)[0]:  # what is meant may be given already
        return None
    listed = ", ".join(free[:_MOST]) + (", ..." if len(free) > _MOST else "")
    advice = "Leave it out, or use one of these."
    return Explanation(RULE, spot.file, spot.line, f"{cause}. It takes {listed}.", None, advice)


def _is_package(made: Any) -> bool:
    """Whether a function or class is TensorFlow's, Keras' or NumPy's."""
    return str(getattr(made, "__module__", "")).partition(".")[0] in ("tensorflow", "keras", "numpy")


def _instead(name: str, free: list[str]) -> tuple[str, Literal["measured", "likely"]]:
    """The argument that a name means, and how sure that is; "" where none is near."""
    for one in _MEANT.get(name, ()):
        if one in free:
            return one, "measured"
    plain = {_plain(one): one for one in free}
    if _plain(name) in plain:
        return plain[_plain(name)], "measured"
    begun = [one for one in free if one.startswith(name) or name.startswith(one)]
    ended = [one for one in free if len(one) > 3 and (one.endswith(f"_{name}") or name.endswith(f"_{one}"))]
    near = difflib.get_close_matches(name, free, 1, _NEAR)
    for found in (begun, ended):
        if len(found) == 1 and len(found[0]) > 2:
            return found[0], "likely"
    return (near[0] if near else ""), "likely"


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
