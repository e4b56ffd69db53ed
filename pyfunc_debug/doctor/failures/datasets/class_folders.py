"""`image_dataset_from_directory` and its like: what the folder really has, for the classes that Keras reads from it."""

from __future__ import annotations

import ast
import difflib
import os
import re
from collections import Counter
from pathlib import PurePath
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.flows import flow_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, names
from pyfunc_debug.doctor.failures.reading.symbols import calls, method_calls

RULE = "structure"
_READERS = frozenset({"image_dataset_from_directory", "text_dataset_from_directory", "audio_dataset_from_directory"})
_NONE = re.compile(r"^No (?:images|text files|audio files) found in directory .*? Allowed formats?(?:\(s\))?: (.*)$")
_BINARY = re.compile(r'^When passing `label_mode="binary"`, there must be exactly 2 class_names')
_SEED = "you must provide a `seed` argument"
_SUBSET = "If `subset` is set, `validation_split` must be set, and inversely."
_SHARE = re.compile(r"^`validation_split` must be between 0 and 1, received: ([\d.]+)")
_NAMES = re.compile(r"^The `class_names` passed did not match the names of the subdirectories")
_SIZE = re.compile(r"^Invalid `image_size` value\. Expected a tuple of 2 integers")
_MODE = re.compile(r"`label_mode` argument must be one of .* Received: label_mode=sparse")
_NO_BATCH = re.compile(r"^The PyDataset has length 0|but the Sequence has length 0$")
_IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".tif", ".tiff")
"""What Keras' flow_from_directory reads (keras/src/legacy/preprocessing/image.py)."""
_MOST, _SHOWN, _NEAR = 20_000, 4, 0.6


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the folder, or what is said of it, gives no such dataset."""
    spot, statement, said = situation.last, situation.statement, situation.message
    if spot is None or statement is None or situation.body:
        return None
    found = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] in _READERS]
    if len(found) != 1:
        return None
    call, folder = found[0], _folder(situation)
    given = {one.arg: one.value for one in call.keywords if one.arg is not None}
    if (none := _NONE.search(said)) is not None and folder:
        return _empty(spot, call, folder, tuple(re.findall(r"\.\w+", none[1])))
    if _BINARY.search(said) and folder:
        return _classes(spot, call, given, folder, _value(situation, "class_names"))
    if _SEED in said:
        return _seeded(spot, call)
    if _SUBSET in said:
        return _subset(spot, statement, call, given)
    if (share := _SHARE.search(said)) is not None and (node := given.get("validation_split")) is not None:
        return _share(spot, node, float(share[1]))
    if _NAMES.search(said) and folder and (node := given.get("class_names")) is not None:
        return _named(spot, node, folder, _value(situation, "class_names"))
    if _SIZE.search(said) and (node := given.get("image_size")) is not None:
        return _size(spot, node)
    if _MODE.search(said) and (node := given.get("label_mode")) is not None:
        cause = 'Class numbers, which a sparse loss takes, are label_mode="int" here.'
        return _told(spot, node, cause, '"int"')
    return None


def flows(situation: Situation) -> Explanation | None:
    """The explanation, if `flow_from_directory` found no image: Keras prints so, and fails where batches are asked."""
    if situation.body or not _NO_BATCH.search(situation.message):
        return None
    for spot in reversed(situation.spots):
        statement = spot.statement
        for name in dict.fromkeys(names(statement)) if statement is not None else ():
            flow = flow_of(ast.Name(name, ast.Load()), spot)
            if flow is None or flow.method != "flow_from_directory" or flow.held.get("samples") != 0:
                continue
            predicts = statement is not None and bool(method_calls(statement, "predict"))
            if flow.call is not None:
                return _flow(spot, flow.call, flow.held, predicts)
    return None


def _flow(spot: Spot, call: ast.Call, held: dict[str, Any], predicts: bool) -> Explanation | None:
    """What the folder of a flow without an image has."""
    folder, node = held.get("directory"), argument(call, 0, "directory")
    asked = any(one.arg in ("classes", "subset", None) for one in call.keywords)
    if not isinstance(folder, (str, PurePath)) or not os.path.isdir(folder) or node is None or asked:
        return None
    path, source = os.path.abspath(folder), spot.source
    name, inside = os.path.basename(path), _folders(path)
    with os.scandir(path) as entries:
        here = sum(one.is_file() and one.name.lower().endswith(_IMAGES) for one in entries)
    places = f"{len(inside)} folder{'s' * (len(inside) != 1)}" if inside else "no folder"
    if not here:
        ends = _ends_below(path)
        kinds = ", ".join(f"{number} {end or 'without an end'}" for end, number in ends.most_common(_SHOWN))
        cause = f"{name} has {places}, and {f'files that are not read: {kinds}' if kinds else 'no file'}."
        advice = f"flow_from_directory reads {', '.join(_IMAGES)} in folders, one for each class."
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
    cause = (
        f"{name} has {here} image{'s' * (here != 1)} itself, and {f'{places} without' if inside else 'no folder'}: "
        "flow_from_directory reads what is in the folders of its directory, one for each class."
    )
    if held.get("class_mode") is not None and not predicts:
        advice = "Put the images of each class into a folder of its own there; flow_from_dataframe reads a table."
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
    parent = f"{source.atom(node)}.parent" if isinstance(folder, PurePath) else f'{source.atom(node)} + "/.."'
    if isinstance(node, ast.Constant) and folder == node.value:
        parent = f'"{os.path.dirname(os.path.normpath(folder)) or "."}"'.replace("\\", "/")
    elif isinstance(folder, PurePath) and folder.name != name:
        return None
    lines = source.ended(call, f"classes={_quoted([name])}", pieces={node: parent})
    edit = Edit(spot.file, call.lineno, call.end_lineno or call.lineno, lines)
    return Explanation(RULE, spot.file, call.lineno, f"{cause} {name} can be that one folder.", edit)


def _told(spot: Spot, node: ast.expr, cause: str, new: str) -> Explanation:
    edit = edit_of(spot.file, spot.source.replaced({node: new}))
    return Explanation(RULE, spot.file, node.lineno, cause, edit)


def _value(situation: Situation, name: str) -> Any:
    """An argument of the function of Keras' that failed."""
    for frame in frames(situation.inner.__traceback__):
        if frame.f_code.co_name in _READERS:
            return frame.f_locals.get(name)
    return None


def _folder(situation: Situation) -> str:
    found = _value(situation, "directory")
    found = str(found) if isinstance(found, (str, PurePath)) else ""  # a path of the user's class would run their code
    return found if os.path.isdir(found) else ""


def _ends_below(folder: str) -> Counter[str]:
    """How many files of each end there are in a folder and below."""
    ends: Counter[str] = Counter()
    for _, _, files in os.walk(folder):
        ends.update(os.path.splitext(one)[1].lower() for one in files)
        if ends.total() > _MOST:
            break
    return ends


def _folders(folder: str) -> list[str]:
    """The folders in a folder that Keras takes for classes."""
    with os.scandir(folder) as entries:
        return sorted(one.name for one in entries if one.is_dir() and not one.name.startswith("."))


def _count(folder: str, ends: tuple[str, ...]) -> int:
    return sum(number for end, number in _ends_below(folder).items() if end in ends)


def _empty(spot: Spot, call: ast.Call, folder: str, allowed: tuple[str, ...]) -> Explanation | None:
    """Nothing that is read in the folders of the classes."""
    inside, ends = _folders(folder), _ends_below(folder)
    here = sum(os.path.splitext(one)[1].lower() in allowed for one in os.listdir(folder))
    what = "images" if ".png" in allowed else "texts" if allowed == (".txt",) else "sounds"
    name = os.path.basename(os.path.normpath(folder)) or folder
    if here:
        if any(one.arg in ("labels", "label_mode", "class_names") for one in call.keywords) or len(call.args) > 1:
            return None
        cause = (
            f"{name} has {here} {what} itself, and {f'{len(inside)} folders' if inside else 'no folder'} with such in "
            "it. Keras reads labels from the names of folders: labels=None reads the files without labels."
        )
        edit = edit_of(spot.file, spot.source.replaced({call: spot.source.with_argument(call, "labels=None")}))
        return Explanation(RULE, spot.file, call.lineno, cause, edit, "", "likely")
    places = f"{name} has {len(inside)} folder{'s' * (len(inside) != 1)}"
    if not ends.total():
        cause = f"{places}{f' ({_listed(inside)})' if inside else ''}, and no file."
        advice = f"Put the {what} there, a folder for each class, or give the folder that has them."
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
    kinds = ", ".join(f"{number} {end or 'without an end'}" for end, number in ends.most_common(_SHOWN))
    files = f"{ends.total()} file{'s' * (ends.total() != 1)}"
    cause = f"{places} with {files} ({kinds}), and {', '.join(allowed)} alone is read."
    return Explanation(RULE, spot.file, call.lineno, cause, None, f"Save them as {allowed[-1]}.")


def _classes(spot: Spot, call: ast.Call, given: dict[str, ast.expr], folder: str, classes: Any) -> Explanation | None:
    """Another number of folders than two."""
    if not isinstance(classes, (list, tuple)) or not classes or "class_names" in given:
        return None
    first = argument(call, 0, "directory")
    if len(classes) == 1 and first is not None:
        inner = _folders(os.path.join(folder, classes[0]))
        if len(inner) != 2:
            return None
        text = spot.source.text(first)
        new = f"{text[:-1].rstrip('/')}/{classes[0]}{text[-1]}" if _is_text(first) else f'{text} + "/{classes[0]}"'
        cause = f"The one folder in {folder} is {classes[0]}: the classes, {_listed(inner)}, are folders in that."
        return _told(spot, first, cause, new)
    counts = {one: _ends_below(os.path.join(folder, one)).total() for one in classes}
    full = [one for one in classes if counts[one]]
    if len(full) == 2:
        empty = [one for one in classes if not counts[one]]
        cause = (
            f"{folder} has {len(classes)} folders, and {_listed(empty)} has no file: Keras takes each for a class. "
            "class_names names the two that are."
        )
        new = spot.source.with_argument(call, f"class_names={_quoted(full)}")
        return Explanation(RULE, spot.file, call.lineno, cause, edit_of(spot.file, spot.source.replaced({call: new})))
    mode = given.get("label_mode")
    if mode is None or len(classes) < 3:
        return None
    files = ", ".join(f"{one} ({counts[one]} files)" for one in classes[:_SHOWN])
    cause = f"{folder} has {len(classes)} folders, each a class: {files}. binary is for two; int numbers them all."
    edit = edit_of(spot.file, spot.source.replaced({mode: '"int"'}))
    return Explanation(RULE, spot.file, mode.lineno, cause, edit, "", "likely")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _quoted(names: list[str]) -> str:
    return f"[{', '.join(f'{chr(34)}{one}{chr(34)}' for one in names)}]"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _seeded(spot: Spot, call: ast.Call) -> Explanation:
    """One seed for the calls that split a folder."""
    source = spot.source
    same = [
        one for one in source.calls_of(_READERS)
        if any(word.arg == "validation_split" for word in one.keywords)
        and not any(word.arg in ("seed", "shuffle", None) for word in one.keywords)
    ]  # fmt: skip
    seeds = {
        source.text(word.value) for one in source.calls_of(_READERS) for word in one.keywords if word.arg == "seed"
    }  # fmt: skip
    seed = seeds.pop() if len(seeds) == 1 else "123"
    same = same if call in same and len(same) < 3 else [call]
    edits = [
        Edit(spot.file, one.lineno, one.end_lineno or one.lineno, source.ended(one, f"seed={seed}")) for one in same
    ]
    cause = (
        "Each call shuffles the files, and then takes its part of them. With one seed both calls have one order, and "
        "no file is in both parts."
    )
    return Explanation(RULE, spot.file, call.lineno, cause, together(edits, source.lines))


def _subset(spot: Spot, statement: ast.stmt, call: ast.Call, given: dict[str, ast.expr]) -> Explanation | None:
    """A part without its share, or a share without its part."""
    target = dotted(statement.targets[0]) if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else ""
    texts = [
        spot.source.text(word.value) for one in spot.source.calls_of(_READERS) for word in one.keywords
        if word.arg == "validation_split"
    ]  # fmt: skip
    if "validation_split" not in given:
        more = f"validation_split={texts[0] if texts else '0.2'}"
        cause = "subset says which part of the files is read, and validation_split how they are parted."
    else:
        part = "validation" if "val" in target.lower() or "test" in target.lower() else "training"
        more = f'subset="{part}"'
        cause = "validation_split parts the files in two, and subset says which part this call reads."
    if "seed" not in given and "shuffle" not in given:
        more += ", seed=123"
    first, last = call.lineno, call.end_lineno or call.lineno
    edit = Edit(spot.file, first, last, spot.source.ended(call, more))
    return Explanation(RULE, spot.file, first, cause, edit, "", "likely")


def _share(spot: Spot, node: ast.expr, value: float) -> Explanation | None:
    if not 1 < value < 100:
        return None
    cause = f"validation_split is a share of 1: {value / 100:g} are {value:g} of a hundred."
    return _told(
        spot, node, cause, f"{value / 100:g}" if isinstance(node, ast.Constant) else f"{spot.source.atom(node)} / 100"
    )


def _named(spot: Spot, node: ast.expr, folder: str, names: Any) -> Explanation | None:
    """Names of classes that the folders do not have."""
    there = _folders(folder)
    if not isinstance(names, (list, tuple)) or not there:
        return None
    lower = {one.lower(): one for one in there}
    new = []
    for one in names:
        close = difflib.get_close_matches(str(one).lower(), list(lower), 1, _NEAR)
        if not close:
            break
        new.append(lower[close[0]])
    missing = [str(one) for one in names if one not in there]
    cause = f"class_names are names of folders: {folder} has {_listed(there)}, and no {_listed(missing)}."
    if len(set(new)) == len(names):
        return _told(spot, node, cause, _quoted(new))
    return Explanation(RULE, spot.file, node.lineno, cause, None, "Name the folders, in the order of their numbers.")


def _size(spot: Spot, node: ast.expr) -> Explanation | None:
    """Height, width and channels."""
    value = computed(node, spot)
    if not isinstance(value, (tuple, list)) or len(value) != 3:
        return None
    cause = "image_size is height and width; color_mode says how many channels there are."
    new = f"{spot.source.atom(node)}[:2]"
    if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == 3:
        new = f"({', '.join(map(spot.source.text, node.elts[:2]))})"
    return _told(spot, node, cause, new)
