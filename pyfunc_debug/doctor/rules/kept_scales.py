"""`tf.image.convert_image_dtype` of floats: it scales whole numbers only, and leaves floats up to 255 as they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.body_inputs import returned
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.datasets.mapped_outputs import Outputs, files_of_calls
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("unscaled-input",)
_LARGE = 2.0


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call behind a body that returns floats."""
    for file in files_of_calls(facts):
        tree = facts.tree(file)
        calls = [one for one in pastes.walk(tree, ast.Call) if pastes.last_name(one.func) == "convert_image_dtype"]
        outputs = Outputs(facts, file, lambda _: None) if calls else None
        for call in calls:
            origin = outputs.origin(call.args[0]) if outputs is not None and call.args else None
            seen = returned(facts, origin.group, origin.position) if origin is not None else []
            high = max((one.high or 0.0 for one in seen), default=0.0)
            dtype = pastes.argument(call, 1, "dtype")
            if origin is None or dtype is None or "float" not in ast.unparse(dtype) or high <= _LARGE or high > 255:
                continue
            if not all(one.dtype.startswith("float") and (one.low or 0.0) >= 0 for one in seen):
                continue
            own, body = pastes.source(facts, file), origin.group[0]
            text, tf = own.text(call.args[0]), pastes.module(facts, file, "tensorflow") or "tf"
            new = f"{tf}.cast({text}, {own.text(dtype)}) / 255"
            yield Finding(
                NAMES[0], "error", body.id, (seen[0].call,),
                f"convert_image_dtype scales whole numbers to [0, 1], and {text} is {seen[0].dtype} already: it stays "
                f"as {facts.name(body)} returned it, up to {high:g}",
                pastes.written(pastes.replaced(facts, file, {call: new})) or new, file, call.lineno,
                several(one.id for one in origin.group),
                (facts.shown(seen[0].call),),
            )  # fmt: skip
