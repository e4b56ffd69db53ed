"""`fit(x, y, class_weight=...)` of rows with several labels: Keras takes the first 1 of a row for its class."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.models.class_weights import with_weights
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding

NAMES = ("label-weight",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line of `fit`."""
    told: set[tuple[str, int]] = set()
    for _, _, noticed in facts.notices.get(Notice.LABEL_WEIGHTS, []):
        place = noticed["file"], noticed["line"]
        if place not in told and facts.source(noticed["file"]):
            told.add(place)
            yield _finding(facts, *place, noticed)


def _finding(facts: Facts, file: str, line: int, noticed: Mapping[str, Any]) -> Finding:
    rows, columns = noticed["rows"], noticed["columns"]
    counts = f"{noticed['several']:,} have several 1s"
    counts += f", and {noticed['none']:,} have none" * bool(noticed["none"])
    own = "" if noticed["classes"] == [*range(columns)] else f"; {_missing(noticed)}"
    return Finding(
        NAMES[0], "warning", None, (),
        f"class_weight gives each row one weight, that of its class, and Keras takes argmax of the row for that: the "
        f"place of its first 1, and 0 where there is none. Of these {rows:,} rows of {columns} labels "
        f"{counts}{own}",
        _weighed(facts, file, line, noticed) or "a loss that weighs each label itself, and no class_weight",
        file, line,
    )  # fmt: skip


def _missing(noticed: Mapping[str, Any]) -> str:
    """What becomes of weights that are not one for each column."""
    last = ", ".join(map(str, noticed["classes"][:3]))
    return (
        f"its weights are for the columns {last} then, not for 0s and 1s"
        if noticed["classes"] == [0, 1]
        else (f"its weights are for the columns {last}{', ...' * (len(noticed['classes']) > 3)} then")
    )


def _weighed(facts: Facts, file: str, line: int, noticed: Mapping[str, Any]) -> str:
    """A loss that weighs each label, in the place of both; "" where it is not clear what is meant."""
    tree, own = facts.tree(file), pastes.source(facts, file)
    fit = pastes.call_at(facts, file, line, "fit")
    model = ast.unparse(fit.func).rpartition(".")[0] if fit is not None else ""
    compiles = [one for one in pastes.walk(tree, ast.Call) if ast.unparse(one.func) == f"{model}.compile"]
    if fit is None or len(compiles) != 1:
        return ""
    loss = next((one.value for one in compiles[0].keywords if one.arg == "loss"), None)
    loss = compiles[0].args[1] if loss is None and len(compiles[0].args) > 1 else loss
    weights = next((one for one in fit.keywords if one.arg == "class_weight"), None)
    if loss is None or weights is None or not _is_plain(loss):
        return ""
    name, columns = own.text(weights.value), noticed["columns"]
    one = _values(weights.value, own.text) or {key: f"{name}[{key}]" for key in noticed["classes"]}
    tf = pastes.module(facts, file, "tensorflow") or "tf"
    if noticed["classes"] == [0, 1] and columns > 2:
        factor = f"{tf}.where(y > 0.5, {_float(one[1])}, {_float(one[0])})"
    elif noticed["classes"] == [*range(columns)] and columns > 2:
        factor = f"{tf}.constant([{', '.join(one[place] for place in range(columns))}], {tf}.float32)"
        if not isinstance(weights.value, ast.Dict):
            factor = f"{tf}.constant([{name}[one] for one in range({columns})], {tf}.float32)"
    else:
        return ""
    each = f"{tf}.keras.losses.binary_crossentropy(y[..., None], p[..., None])"
    whole = with_weights(own.text(fit), own.text(weights.value), "")
    pieces: dict[ast.expr, str] = {loss: f"lambda y, p: {tf}.reduce_mean({factor} * {each}, -1)", fit: whole}
    return pastes.all_replaced(facts, file, pieces)


def _is_plain(loss: ast.expr) -> bool:
    """Whether a loss is the binary cross-entropy of probabilities."""
    if isinstance(loss, ast.Constant):
        return loss.value in ("binary_crossentropy", "bce", "BCE")
    return isinstance(loss, ast.Call) and pastes.last_name(loss.func) == "BinaryCrossentropy" and not (
        loss.args or loss.keywords
    )  # fmt: skip


def _float(text: str) -> str:
    """A number as a fraction, as it is written or by its name."""
    return f"{text}.0" if text.isdigit() else text if re.fullmatch(r"[\d.]+(?:e-?\d+)?", text) else f"float({text})"


def _values(node: ast.expr, text: Any) -> dict[int, str]:
    """The weights of a dict that is written in the call, by their classes."""
    if not isinstance(node, ast.Dict):
        return {}
    found = zip(node.keys, node.values)
    return {one.value: text(value) for one, value in found if isinstance(one, ast.Constant) and type(one.value) is int}
