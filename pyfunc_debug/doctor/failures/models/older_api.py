"""Keywords and names of Keras 2 and TensorFlow 1 that programs with Python in them used, and Keras 3 refuses."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyfunc_debug.doctor.failures.models import older_backend
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, of_keras

RULE = "older-api"
_LAYER = re.compile(r"^Unrecognized keyword arguments passed to (\w+): \{")
_OPTIMIZER = re.compile(r"^Argument\(s\) not recognized: \{")
_EVALUATE = re.compile(r"^Arguments not recognized: \{")
_UNEXPECTED = re.compile(r"^(?:\w+\.)*?(\w+\.\w+|Input)\(\) got an unexpected keyword argument '(\w+)'")
_NO_ATTRIBUTE = re.compile(r"^(?:'(\w+)' object|module '([\w.]+)') has no attribute '(\w+)'")
_SET = "'str' object has no attribute 'name'"
"""What K.set_value of Keras 3 says of a variable of its own."""
_NO_NAME = re.compile(r"^cannot import name '(\w+)' from '([\w.]+\.(?:losses|metrics))'")
_POSITIONAL = re.compile(
    r"^`name` must be passed as a keyword argument\. Received: add_weight\(|^Cannot convert '\w+' to a shape\."
)
_NO_V1_LAYER = re.compile(r"^`(\w+)` is not available with Keras 3")
_LEGACY = re.compile(r"^`keras\.optimizers\.legacy` is not supported")

_DATA = ("workers", "use_multiprocessing", "max_queue_size")
_OF_DATA = "Keras 3 takes {} in the constructor of a PyDataset (super().__init__(workers=...)), no longer in {}()"


@dataclass(frozen=True)
class _Older:
    """What was a keyword.

    Attributes:
      cause: Why it is refused, in a sentence without its end.
      new: What it is called now; "" where it is left out.
      empty: Whether only None was without effect, and can be left out.
    """

    cause: str
    new: str = ""
    empty: bool = False


_LAYERS = {
    "dynamic": _Older(
        "Keras 3 has no dynamic=, with which Keras 2 ran a layer as Python. What needs values in call goes into a "
        "tf.py_function; compile(run_eagerly=True) runs the whole model as Python"
    ),
    "experimental_autocast": _Older("Keras 3 calls it autocast", "autocast"),
    "fused": _Older("Keras 3 chooses by itself whether a BatchNormalization is fused"),
    "input": _Older("A Model takes inputs and outputs by these names", "inputs"),
    "output": _Older("A Model takes inputs and outputs by these names", "outputs"),
    "inputs": _Older("A Model takes inputs and outputs by these names", "inputs"),
    "outputs": _Older("A Model takes inputs and outputs by these names", "outputs"),
}
_OPTIMIZERS = {"lr": _Older("Keras 3 calls it learning_rate", "learning_rate")}
_METHODS: Mapping[str, Mapping[str, _Older]] = {
    "Layer.add_loss": {"inputs": _Older("add_loss of Keras 3 takes losses only")},
    "Trainer.compile": {
        "experimental_run_tf_function": _Older("Keras 3 makes a tf.function of its steps, unless run_eagerly=True"),
        "target_tensors": _Older("Keras 3 has no target_tensors=", empty=True),
        "sample_weight_mode": _Older("Keras 3 has no sample_weight_mode=", empty=True),
    },
    "TensorFlowTrainer.fit": {
        **{one: _Older(_OF_DATA.format(one, "fit")) for one in _DATA},
        "nb_epoch": _Older("It is called epochs since Keras 2", "epochs"),
    },
    "TensorFlowTrainer.predict": {one: _Older(_OF_DATA.format(one, "predict")) for one in _DATA},
    "Layer.add_weight": {
        "use_resource": _Older("Every variable of Keras 3 is a resource"),
        "partitioner": _Older("Keras 3 has no partitioner=", empty=True),
        "synchronization": _Older("Keras 3 has aggregation= only"),
    },
    "Input": {"batch_input_shape": _Older("Keras 3 calls it batch_shape", "batch_shape")},
    "TensorBoard.__init__": {"write_grads": _Older("Keras 3 writes no gradients for TensorBoard")},
    "Model.save_weights": {"save_format": _Older("Keras 3 knows the format from the name of the file")},
}  # fmt: skip
_GENERATORS = {"fit_generator": "fit", "evaluate_generator": "evaluate", "predict_generator": "predict"}
_WEIGHT = ("name", "shape", "dtype", "initializer")
_FUNCTIONS = (".losses", ".metrics")
_SHORT = {
    "mean_squared_error": "mse", "mean_absolute_error": "mae", "mean_absolute_percentage_error": "mape",
    "mean_squared_logarithmic_error": "msle", "kl_divergence": "kld", "log_cosh": "logcosh",
}  # fmt: skip
"""Names of losses in `keras`, and those that they have in `tf.keras` alone."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras 3 or TensorFlow 2 refuses what older versions took."""
    text = situation.message
    if situation.body:
        return None
    if _LEGACY.search(text) and situation.last is not None:
        return _legacy(situation.last)
    if (said := _NO_V1_LAYER.search(text)) is not None and situation.last is not None:
        return _of_v1(situation.last, said[1])
    if situation.kind == "ValueError":
        layer = _LAYER.search(text)
        if layer:
            return _keywords(situation, _listed(text), _LAYERS, layer[1])
        if _OPTIMIZER.search(text):
            return _keywords(situation, _listed(text), _OPTIMIZERS, "")
        if _EVALUATE.search(text):
            table = {one: _Older(_OF_DATA.format(one, "evaluate")) for one in _DATA}
            return _keywords(situation, _listed(text), table, "evaluate")
        return _named_weight(situation.last) if _POSITIONAL.search(text) and situation.last is not None else None
    unexpected = _UNEXPECTED.search(text) if situation.kind == "TypeError" else None
    if unexpected:
        owner, _, method = unexpected[1].rpartition(".")
        if any((owner or method) in _defined(source) for _, source in situation.sources()):
            return None
        called = owner if method == "__init__" else method
        return _keywords(situation, [unexpected[2]], _METHODS.get(unexpected[1], {}), called)
    absent = _NO_ATTRIBUTE.search(text) if situation.kind == "AttributeError" else None
    if _SET in text and situation.last is not None:
        return older_backend.set_by_keras(situation.last)
    no_name = _NO_NAME.search(text) if situation.kind == "ImportError" else None
    if no_name:
        return _imported(situation, no_name)
    return _attribute(situation, absent) if absent else None


def _imported(situation: Situation, absent: re.Match[str]) -> Explanation | None:
    """`from tensorflow.keras.losses import mean_squared_error`, which has a short name there now."""
    spot, name = situation.last, absent[1]
    statement = situation.statement
    module, short = sys.modules.get(absent[2]), _SHORT.get(name, "")
    if spot is None or not isinstance(statement, ast.ImportFrom) or statement.level or not hasattr(module, short):
        return None
    names = [
        f"{short} as {one.asname or name}" if one.name == name else ast.unparse(one) for one in statement.names
    ]  # fmt: skip
    first, last = spot.source.span(statement)
    line = f"{indent_of(spot.source.lines[first - 1])}from {statement.module} import {', '.join(names)}"
    cause = f"{statement.module} of this Keras calls it {short}, not {name}."
    return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first, last, (line,)))


def _defined(source: Source) -> set[str]:
    """Names of the classes and functions of a file of the user's."""
    return {one.name for one in source.tree.body if isinstance(one, (ast.ClassDef, ast.FunctionDef))}


def _listed(text: str) -> list[str]:
    """Keys of the dict that a message ends with: its values may be anything, of any length."""
    return re.findall(r"[{,] ?'(\w+)': ", text[text.index("{") :])


def _keywords(situation: Situation, listed: list[str], table: Mapping[str, _Older], called: str) -> Explanation | None:
    """The call without the keywords, or with their new names; all that are refused must be known."""
    if not listed or not set(listed) <= set(table):
        return None
    for spot in reversed(situation.spots):
        found = _calls_with(spot, listed, called, table)
        if found:
            break
    else:
        return None
    also = set(_DATA) & set(table)  # of these, one is refused at a time
    wanted = [one for one in dict.fromkeys([*listed, *sorted(also)]) if any(_given(call, one) for call in found)]
    own = [one for one in wanted if table[one].new != one]
    if any(table[one].empty and not _is_none(_given(call, one)) for one in own for call in found):
        return None
    renamed = {one: table[one].new for one in own}
    edit = _edit(spot, {call: _text(spot, call, renamed) for call in found})
    edit = _for_its_data(spot, found, own, edit) if edit is not None and set(own) <= set(_DATA) else edit
    causes = dict.fromkeys(table[one].cause for one in own if one in listed)
    what = ", ".join(f"{one}=" for one in own)
    advice = "" if edit else f"Leave out {what}" if not any(renamed.values()) else f"Rename {what}"
    return Explanation(RULE, spot.file, found[0].lineno, f"{'; '.join(causes)}.", edit, advice and f"{advice}.")


def _for_its_data(spot: Spot, found: list[ast.Call], own: list[str], edit: Edit) -> Edit:
    """The edit with what the call said of its PyDataset said to that, where it has a name or is made in the call."""
    call, statement = found[0], spot.source.statement(found[0].lineno)
    named = [one.value for one in call.keywords if one.arg in ("x", "generator")]
    data = next(iter([*call.args, *named]), None)
    said = {one: spot.source.text(keyword.value) for one in own if (keyword := _given(call, one)) is not None}
    if len(found) > 1 or statement is None or hasattr(statement, "body") or edit.first != statement.lineno:
        return edit
    if isinstance(data, ast.Name) and of_keras(type(spot.value(data.id)), "PyDataset"):
        lines = [f"{indent_of(edit.lines[0])}{data.id}.{name} = {text}" for name, text in said.items()]
        return replace(edit, lines=(*lines, *edit.lines))
    made = lookup(data.func, spot) if isinstance(data, ast.Call) else None
    if isinstance(data, ast.Call) and isinstance(made, type) and of_keras(made, "PyDataset"):
        users = [one for one in made.__mro__[:-1] if not one.__module__.startswith("keras.")]
        if not any("__init__" in vars(one) for one in users):
            given = ", ".join(f"{name}={text}" for name, text in said.items())
            whole = _text(spot, call, dict.fromkeys(own, ""))
            new = whole.replace(spot.source.text(data), spot.source.with_argument(data, given), 1)
            return _edit(spot, {call: new}) or edit
    return edit


def _calls_with(spot: Spot, listed: Iterable[str], called: str, table: Mapping[str, _Older]) -> list[ast.Call]:
    """Calls in a frame's statement that pass one of the keywords: those of what refuses them, else the only one."""
    statement = spot.statement
    old = [one for one in listed if table[one].new != one]
    found = [one for one in calls(statement) if any(_given(one, name) for name in old)] if statement is not None else []
    fitting = [one for one in found if _name(one) in (called, "__init__")]
    return fitting or (found if len(found) == 1 else [])


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)


def _given(call: ast.Call, name: str) -> ast.keyword | None:
    return next((one for one in call.keywords if one.arg == name), None)


def _is_none(keyword: ast.keyword | None) -> bool:
    return keyword is None or (isinstance(keyword.value, ast.Constant) and keyword.value.value is None)


def _text(spot: Spot, call: ast.Call, renamed: Mapping[str, str], func: str = "") -> str:
    """A call with other names for some keywords, and without those whose new name is empty."""
    text = spot.source.text
    parts = [text(one) for one in call.args]
    for one in call.keywords:
        name = renamed.get(one.arg, one.arg) if one.arg is not None else None
        if name != "":
            parts.append(f"**{text(one.value)}" if name is None else f"{name}={text(one.value)}")
    return f"{func or text(call.func)}({', '.join(parts)})"


def _edit(spot: Spot, pieces: dict[ast.expr, str]) -> Edit | None:
    found = spot.source.replaced(pieces)
    return edit_of(spot.file, found)


def _named_weight(spot: Spot) -> Explanation | None:
    """`add_weight("w", (3,))` with names for its arguments: the first one is the shape now."""
    statement = spot.statement
    every = calls(statement) if statement is not None else ()
    found = [one for one in every if _name(one) == "add_weight" and one.args]
    call = found[0] if len(found) == 1 else None
    if call is None or len(call.args) > len(_WEIGHT) or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    if any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in call.args[1:2]):
        return None  # an initializer, where Keras 2 had the shape
    text = spot.source.text
    parts = [f"{name}={text(one)}" for name, one in zip(_WEIGHT, call.args)]
    parts += [f"{one.arg}={text(one.value)}" if one.arg else f"**{text(one.value)}" for one in call.keywords]
    cause = "The first argument of add_weight is the shape in Keras 3; it was the name in Keras 2."
    edit = _edit(spot, {call: f"{text(call.func)}({', '.join(parts)})"})
    return Explanation(RULE, spot.file, call.lineno, cause, edit, "" if edit else "Pass it as name=.")


def _attribute(situation: Situation, absent: re.Match[str]) -> Explanation | None:
    spot, name = situation.last, absent[3]
    statement = situation.statement
    if spot is None or statement is None:
        return None
    found = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute) and one.attr == name]
    asked = getattr(situation.inner, "obj", None)
    short = _SHORT.get(name) if (absent[2] or "").endswith(_FUNCTIONS) else None
    if short is not None and found and hasattr(asked, short):
        edit = _edit(spot, {one: f"{spot.source.text(one.value)}.{short}" for one in found})
        cause = f"{spot.source.text(found[0].value)} of this Keras calls it {short}, not {name}."
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Write {short}.")
    if found and (absent[2] or "").endswith("keras.backend"):
        return older_backend.explain(spot, found[0], situation)
    if len(found) != 1 or not _is_keras(asked):
        return None
    of = found[0]
    if name == "minimize":
        return older_backend.minimized(spot, of)
    return _other_words(spot, of, statement, name)


def _other_words(spot: Spot, of: ast.Attribute, statement: ast.stmt, name: str) -> Explanation | None:
    """What Keras' own objects call otherwise now."""
    owner = spot.source.text(of.value)
    if name == "lr":
        changed = older_backend.set_by_keras(spot, f"{owner}.learning_rate")
        if changed is not None:
            return changed
        edit = _edit(spot, {of: f"{owner}.learning_rate"})
        cause = "Keras 3 calls it learning_rate."
        return Explanation(RULE, spot.file, of.lineno, cause, edit, "" if edit else "Read learning_rate.")
    if name in _GENERATORS:
        return _generator(spot, of, statement, _GENERATORS[name])
    return None


def _is_keras(thing: object) -> bool:
    """Whether a thing is a model or an optimizer of Keras', or of a class made from one."""
    bases = [one for one in type(thing).__mro__ if one.__module__.startswith("keras.")]
    return any(hasattr(one, "fit") or hasattr(one, "learning_rate") for one in bases)


def _generator(spot: Spot, of: ast.Attribute, statement: ast.stmt, new: str) -> Explanation:
    """`model.fit_generator(batches, ...)` as `model.fit(batches, ...)`."""
    call = next((one for one in calls(statement) if one.func is of), None)
    edit = None
    if call is not None and len(call.args) <= 1 and not isinstance((*call.args, None)[0], ast.Starred):
        renamed = {"generator": "x", "nb_epoch": "epochs", "samples_per_epoch": "steps_per_epoch"}
        if not _given(call, "samples_per_epoch") and not _given(call, "nb_val_samples"):  # were numbers of samples
            func = f"{spot.source.text(of.value)}.{new}"
            edit = _edit(spot, {call: _text(spot, call, {**renamed, **dict.fromkeys(_DATA, "")}, func)})
    cause = f"Keras 3 has no {of.attr}: {new} takes generators and Sequences as well."
    advice = "" if edit else f"Call {new}, with names for all arguments but the first."
    return Explanation(RULE, spot.file, of.lineno, cause, edit, advice)


def _of_v1(spot: Spot, name: str) -> Explanation:
    """`tf.compat.v1.layers.dense`: of Keras 2, which its own package still has."""
    cause = f"tf.compat.v1.layers.{name} belongs to Keras 2, and this TensorFlow has Keras 3."
    imports = [
        one.lineno for one in spot.source.tree.body
        if isinstance(one, (ast.Import, ast.ImportFrom)) and "tensorflow" in ast.unparse(one)
    ]  # fmt: skip
    lines = ("import os", 'os.environ["TF_USE_LEGACY_KERAS"] = "1"')
    if imports and importlib.util.find_spec("tf_keras") is not None:
        edit = Edit(spot.file, imports[0], imports[0] - 1, lines)
        return Explanation(RULE, spot.file, spot.line, f"{cause} Its package tf_keras is installed.", edit)
    advice = f"pip install tf_keras, and above the import of TensorFlow: {'; '.join(lines)}"
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _legacy(spot: Spot) -> Explanation | None:
    """`optimizers.legacy.Adam` without `legacy`."""
    statement = spot.statement
    every = ast.walk(statement) if statement is not None else ()
    found = [one for one in every if isinstance(one, ast.Attribute) and dotted(one).endswith("optimizers.legacy")]
    if not found:
        return None
    edit = _edit(spot, {one: dotted(one.value) for one in found})
    cause = "Keras 3 has no optimizers.legacy: the optimizers of Keras 2.11 and later are its only ones."
    return Explanation(RULE, spot.file, found[0].lineno, cause, edit, "" if edit else "Leave out legacy.")
