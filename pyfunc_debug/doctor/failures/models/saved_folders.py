"""What Keras 3 does not read: the folder of a SavedModel in `load_model`, a checkpoint in `load_weights`."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

from pyfunc_debug.doctor.failures.models.loaded_models import own_classes
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, keras_name, lookup, of_keras

RULE = "older-api"
_SAID = re.compile(r"File format not supported: filepath=(.*?)\. Keras 3 only supports", re.DOTALL)
_PYTHON = (b"PyFunc", b"EagerPyFunc")
_FARTHEST = 25
"""Lines from the first to the last that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras refused to load what TensorFlow wrote."""
    found, spot = _SAID.search(situation.message), situation.last
    statement = situation.statement
    if found is None or spot is None or statement is None or situation.body:
        return None
    for call in calls(statement):
        name = dotted(call.func).rpartition(".")[2]
        if name == "load_model" and os.path.isfile(os.path.join(found[1], "saved_model.pb")):
            return _of_folder(spot, call, found[1])
        if name == "load_weights" and os.path.isfile(f"{found[1]}.index"):
            return _of_checkpoint(spot, call, found[1])
    return None


def _of_folder(spot: Spot, call: ast.Call, folder: str) -> Explanation | None:
    """A SavedModel: beside it a file of Keras', where the program itself saves it; else a layer that runs it."""
    cause = f'"{folder}" is a SavedModel, which load_model of Keras 3 does not read.'
    saved = _saving(spot, call)
    if saved is not None:
        cause += " A file that ends in .keras holds the model, with the names of your own classes."
        return Explanation(RULE, spot.file, call.lineno, cause, _as_file(spot, call, *saved))
    graph = Path(folder, "saved_model.pb").read_bytes()
    if any(one in graph for one in _PYTHON):
        cause += " It holds a py_function too: of that only a name is in it, no Python."
        advice = "Where it is made, save it with model.save('model.keras'), and load that file with its custom_objects."
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
    given = argument(call, 0, "filepath")
    if b"serving_default" not in graph or given is None:
        return None
    keras = keras_name(spot)
    cause += " TFSMLayer runs it; predict gives a dict, by the names of its outputs."
    layer = f'{keras}.layers.TFSMLayer({spot.source.text(given)}, call_endpoint="serving_default")'
    edit = edit_of(spot.file, spot.source.replaced({call: f"{keras}.Sequential([{layer}])"}))
    return Explanation(RULE, spot.file, call.lineno, cause, edit)


def _saving(spot: Spot, load: ast.Call) -> tuple[ast.Call, ast.expr] | None:
    """The call of the file that writes the folder, and the model that it writes."""
    wanted = argument(load, 0, "filepath")
    found = []
    for call in calls(spot.source.tree):
        name = dotted(call.func)
        if name.endswith("saved_model.save") and len(call.args) > 1:
            model, path = call.args[0], call.args[1]
        elif name.endswith(".export") and call.args and isinstance(call.func, ast.Attribute):
            model, path = call.func.value, call.args[0]
        else:
            continue
        if wanted is not None and ast.unparse(path) == ast.unparse(wanted):
            found.append((call, model))
    return found[0] if len(found) == 1 and not _is_other(spot, found[0][1]) else None


def _is_other(spot: Spot, model: ast.expr) -> bool:
    """Whether what is saved is known to be no model of Keras, as a tf.Module is: it has no `save`."""
    made = lookup(model.func, spot) if isinstance(model, ast.Call) else None
    kind = made if isinstance(made, type) else type(lookup(model, spot))
    return kind is not type(None) and not of_keras(kind, "Model")


def _as_file(spot: Spot, load: ast.Call, save: ast.Call, model: ast.expr) -> Edit | None:
    """`model.save("x.keras")` below the line that writes the folder, and that file loaded."""
    source, wanted = spot.source, argument(load, 0, "filepath")
    statement = source.statement(save.lineno)
    if wanted is None or statement is None or hasattr(statement, "body") or abs(save.lineno - load.lineno) > _FARTHEST:
        return None
    name = f'{source.text(wanted)} + ".keras"'
    if isinstance(wanted, ast.Constant):
        name = f'"{str(wanted.value).rstrip("/")}.keras"'
    text = source.text_with(load, {wanted: name})
    classes = own_classes(spot)
    if classes and not any(one.arg == "custom_objects" for one in load.keywords):
        text = f"{text[:-1]}, custom_objects={{{', '.join(f'{one!r}: {one}' for one in classes)}}})".replace("'", '"')
    loaded = edit_of(spot.file, source.replaced({load: text}))
    first, last = source.span(statement)
    lines = source.lines[first - 1 : last]
    saved = Edit(spot.file, first, last, (*lines, f"{indent_of(lines[0])}{source.text(model)}.save({name})"))
    if loaded is None or loaded.first <= last:
        return None
    return together([saved, loaded], source.lines)


def _of_checkpoint(spot: Spot, call: ast.Call, name: str) -> Explanation:
    """A checkpoint: read by what wrote it, where the program does that itself."""
    cause = f'"{name}" is a checkpoint of TensorFlow, which load_weights of Keras 3 does not read.'
    given, tf = argument(call, 0, "filepath"), alias(spot, "tensorflow")
    words = {
        word.arg for one in calls(spot.source.tree) if dotted(one.func).endswith("train.Checkpoint")
        for word in one.keywords if word.arg and of_keras(type(lookup(word.value, spot)), "Model")
    }  # fmt: skip
    if len(words) == 1 and given is not None and isinstance(call.func, ast.Attribute):
        owner = spot.source.text(call.func.value)
        new = f"{tf}.train.Checkpoint({words.pop()}={owner}).restore({spot.source.text(given)})"
        edit = edit_of(spot.file, spot.source.replaced({call: new}))
        return Explanation(RULE, spot.file, call.lineno, f"{cause} tf.train.Checkpoint does.", edit)
    advice = "Keras 2 reads weights that it wrote so: pip install tf_keras. tf.train.Checkpoint reads its own."
    return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
