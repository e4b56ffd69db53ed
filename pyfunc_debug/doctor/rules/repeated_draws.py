"""Maps that draw by TensorFlow's ops under a seed: each pass over the dataset draws the same numbers again.

A new iterator begins the random numbers of its ops again, at what `tf.random.set_seed` and the op's own seed say
(measured with TensorFlow 2.16 to 2.21; without a seed each iterator chooses one). A `tf.random.Generator` goes on.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets import cached_chains
from pyfunc_debug.doctor.datasets.cached_chains import before, is_held_out, method
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding

NAMES = ("repeated-draws",)
_KINDS = {
    "map": "Map", "batch": "Batch", "padded_batch": "PaddedBatch", "filter": "Filter", "cache": "Cache", "take": "Take",
    "skip": "Skip", "prefetch": "Prefetch", "window": "Window", "range": "Range", "from_tensor_slices": "TensorSlice",
}  # fmt: skip
_MOVED = ("shuffle", "repeat", "random", "interleave", "flat_map", "apply", "sample_from_datasets")
"""Calls in front of a map behind which each pass gives it other elements, or that are not looked into."""
_IMAGES = re.compile(
    r"image\.random_(?:brightness|contrast|crop|flip_left_right|flip_up_down|hue|jpeg_quality|saturation)$"
)
_NUMBERS = re.compile(r"random\.(?:normal|uniform|truncated_normal)$")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a map."""
    told: set[tuple[str, int]] = set()
    for loop in facts.meta.get("inputs") or []:
        passes = _passes(facts, loop)
        if passes < 2 or any("Repeat" in stage["kind"] for stage in loop["stages"]):
            continue
        for file in facts.files:
            own = pastes.source(facts, file)
            for mapped in (one for one in pastes.walk(own.tree, ast.Call) if method(one) == "map" and one.args):
                draws = _draws(own, mapped.args[0], pastes.module(facts, file, "tensorflow") or "tf")
                if not draws or (file, mapped.lineno) in told or not _is_in(own, mapped, loop["stages"]):
                    continue
                seed = _seed(facts) or next((_own_seed(one) for one in draws if _own_seed(one)), "")
                if seed and not is_held_out(own, mapped):
                    told.add((file, mapped.lineno))
                    yield _finding(
                        facts, file, mapped, draws, seed, f"{passes} passes at {facts.source_line(*loop['site'][:2])}"
                    )


def _passes(facts: Facts, loop: dict[str, Any]) -> int:
    """How many times a loop or a `fit` went over its dataset; 0 where nobody sees it."""
    site = loop["site"]
    if not site:
        return 0
    fit = pastes.call_at(facts, site[0], site[1], "fit")
    if fit is None:
        own = pastes.source(facts, site[0])
        statement = own.statement(site[1])
        around = own.around(statement) if statement is not None else ()
        return int(loop["iterators"]) if any(isinstance(one, (ast.For, ast.While)) for one in around) else 0
    epochs = next((one.value for one in fit.keywords if one.arg == "epochs"), None)
    if isinstance(epochs, ast.Constant) and isinstance(epochs.value, int):
        return epochs.value if loop["iterators"] >= epochs.value else 0
    return 0 if epochs is None else int(loop["iterators"]) // 2  # Keras makes one more for each epoch


def _draws(own: Source, given: ast.expr, tf: str) -> list[ast.Call]:
    """The calls of a mapped function that draw by TensorFlow's ops."""
    return [
        one for one in pastes.walk(cached_chains.mapped_function(own, given), ast.Call)
        if ast.unparse(one.func).startswith(f"{tf}.")
        and (_IMAGES.search(ast.unparse(one.func)) or _NUMBERS.search(ast.unparse(one.func)))
    ]  # fmt: skip


def _is_in(own: Source, mapped: ast.Call, stages: list[dict[str, Any]]) -> bool:
    """Whether the stages of a dataset, the last first, begin with those of the calls up to a map, and none mixes."""
    chain = [method(one) for one in before(own, mapped)]
    known = [_KINDS[one] for one in chain if one in _KINDS]
    kinds = [stage["kind"].removeprefix("Parallel") for stage in reversed(stages)]
    if any(one in _MOVED for one in chain):
        return False
    place, mixed = 0, False
    for kind in kinds:
        if place < len(known) and kind == known[place]:
            place += 1
            if place == len(known):
                return not mixed
        elif kind in _KINDS.values():
            return False
        mixed = mixed or "Shuffle" in kind
    return False


def _seed(facts: Facts) -> str:
    """`tf.random.set_seed(42)` where the program calls it once, outside of loops."""
    found: list[str] = []
    for file in facts.files:
        own = pastes.source(facts, file)
        for call in pastes.walk(own.tree, ast.Call):
            if pastes.last_name(call.func) in ("set_seed", "set_random_seed") and call.args:
                if any(isinstance(one, (ast.For, ast.While)) for one in own.around(call)):
                    return ""
                found.append(ast.unparse(call))
    return found[0] if found else ""


def _own_seed(draw: ast.Call) -> str:
    seed = next((one.value for one in draw.keywords if one.arg == "seed"), None)
    return "" if seed is None or ast.unparse(seed) == "None" else f"its seed={ast.unparse(seed)}"


def _finding(facts: Facts, file: str, mapped: ast.Call, draws: list[ast.Call], seed: str, passes: str) -> Finding:
    own = pastes.source(facts, file)
    given = mapped.args[0]
    name = own.text(given) if isinstance(given, ast.Name) else "a lambda"
    taken = {one.id for one in pastes.walk(own.tree, ast.Name)} | {one.arg for one in pastes.walk(own.tree, ast.arg)}
    rng = next(one for one in ("rng", "draws", "noise", "dataset_draws") if one not in taken)
    return Finding(
        NAMES[0], "warning", None, (),
        f"line {draws[0].lineno} of {name} draws the same random numbers in each pass over the dataset: with {seed}, a "
        "new pass begins them again. A tf.random.Generator goes on",
        _continued(facts, file, draws, rng, seed),
        file, draws[0].lineno,
        evidence=(
            *(f"line {one.lineno}: {facts.line(file, one.lineno)}" for one in draws[:3]),
            passes,
        ),
        confidence="likely",
    )  # fmt: skip


def _continued(facts: Facts, file: str, draws: list[ast.Call], rng: str, seed: str) -> str:
    """The draws of a generator that stands above, at the top level of the file."""
    own, tf = pastes.source(facts, file), pastes.module(facts, file, "tensorflow") or "tf"
    pieces: dict[ast.expr, str] = {}
    for one in draws:
        op, words = pastes.last_name(one.func), [word for word in one.keywords if word.arg != "seed"]
        parts = [own.text(part) for part in (*one.args, *words)]
        if _NUMBERS.search(ast.unparse(one.func)) and len(one.args) <= 4:
            pieces[one] = f"{rng}.{op}({', '.join(parts)})"
        else:
            pieces[one] = f"{tf}.image.stateless_{op}({', '.join(parts)}, seed={rng}.make_seeds(1)[:, 0])"
    top = [one for one in own.around(draws[0]) if isinstance(one, ast.stmt)][-1]
    number = re.search(r"\d+", seed)
    line = f"{rng} = {tf}.random.Generator.from_seed({number[0] if number else 0})  # goes on from pass to pass"
    edits: list[Edit | None] = [pastes.above(facts, file, pastes.first_line(top), line)]
    return pastes.written(*edits, *pastes.each_replaced(facts, file, pieces))
