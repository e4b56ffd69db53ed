"""A model that is trained on scaled images or arrays, and asked about some that are not: it answers all the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets import unmapped_validation
from pyfunc_debug.doctor.datasets.shuffled_flows import FLOWS
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.rules.ran_out import files_of_keras
from pyfunc_debug.records import Finding

NAMES = ("unscaled-input",)
_ASKS = ("predict", "evaluate", "predict_on_batch")
_PLAIN = {
    "array", "asarray", "astype", "convert", "cvtColor", "expand_dims", "img_to_array", "imread", "load_img", "open",
    "reshape", "resize", "stack", "vstack",
}  # fmt: skip
"""What leaves an image's numbers as they are."""
_IMAGES = ("img_to_array", "imread")
_FILES = ("load_img", "imread", "open")
_LARGE = 100
"""A divisor of pixels: 127.5, 255."""
_DEPTH = 12


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line that asks the model."""
    for file in files_of_keras(facts):
        yield from unmapped_validation.check(facts, NAMES[0], file)
        tree = facts.tree(file)
        calls = [
            one for one in pastes.walk(tree, ast.Call)
            if isinstance(one.func, ast.Attribute) and isinstance(one.func.value, ast.Name) and one.args
        ]  # fmt: skip
        fits = [one for one in calls if pastes.last_name(one.func) == "fit"]
        for call in (one for one in calls if pastes.last_name(one.func) in _ASKS):
            for fit in fits:
                if ast.unparse(fit.func).rpartition(".")[0] != ast.unparse(call.func).rpartition(".")[0]:
                    continue
                scale = _of_pipeline(facts, file, fit.args[0])
                if scale is not None and _raw_image(tree, call.args[0]):
                    yield _finding(facts, file, call, *scale)
                    break
                left = _of_arrays(facts, file, fit.args[0], call.args[0])
                if left is not None:
                    yield _finding(facts, file, call, *left)
                    break


def _finding(facts: Facts, file: str, call: ast.Call, line: int, scale: str) -> Finding:
    own = pastes.source(facts, file)
    text, method = own.text(call.args[0]), pastes.last_name(call.func)
    plain = isinstance(call.args[0], (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    scaled = f"{text if plain else f'({text})'} {scale.strip()}"
    return Finding(
        NAMES[0], "error", None, (),
        f"{method} gets {text} as it is, and fit got numbers that line {line} scales ({scale.strip()}): the model "
        "answers about inputs of another size than it knows",
        pastes.written(pastes.replaced(facts, file, {call.args[0]: scaled})) or f"{method}({scaled})",
        file, call.lineno, confidence="likely",
    )  # fmt: skip


def _of_pipeline(facts: Facts, file: str, given: ast.expr) -> tuple[int, str] | None:
    """The line that scales what `fit` is given of a generator or a dataset, and how: ` / 255`, ` * (1 / 255)`."""
    tree, own = facts.tree(file), pastes.source(facts, file)
    made = pastes.assigned(tree, given.id) if isinstance(given, ast.Name) else [given]
    for value in made:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in FLOWS:
            maker = value.func.value
            makers = pastes.assigned(tree, maker.id) if isinstance(maker, ast.Name) else [maker]
            if len(makers) != 1 or not isinstance(makers[0], ast.Call):
                return None
            said = {one.arg: one.value for one in makers[0].keywords}
            if "rescale" not in said or "preprocessing_function" in said or None in said:
                return None
            return said["rescale"].lineno, f" * ({own.text(said['rescale'])})"
    maps = [
        part for value in made for one in pastes.walk(value, ast.Call) if pastes.last_name(one.func) == "map"
        for part in one.args[:1]
    ]  # fmt: skip
    for mapped in maps:
        for one in pastes.walk(mapped, ast.BinOp) if isinstance(mapped, ast.Lambda) else ():
            if (scale := _divides(one)) and isinstance(one.left, (ast.Name, ast.Call)):
                return one.lineno, scale
    return None


def _divides(node: ast.AST) -> str:
    """` / 255.0` of a division by such a number."""
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Div):
        right = node.right if isinstance(node, ast.BinOp) else node.value
        if isinstance(right, ast.Constant) and isinstance(right.value, (int, float)) and right.value >= _LARGE:
            return f" / {right.value}"
    return ""


def _raw_image(tree: ast.AST | None, given: ast.expr) -> bool:
    """Whether a value is an image as a file has it, perhaps with an axis for the batch."""
    todo, read, asked = [given], False, set[str]()
    changed = {ast.unparse(one.target) for one in pastes.walk(tree, ast.AugAssign)}
    for _ in range(_DEPTH):
        if not todo:
            break
        value = todo.pop()
        calls = list(pastes.walk(value, ast.Call))
        files = [one for one in calls if pastes.last_name(one.func) in _FILES]
        inside = {id(part) for one in files for given in one.args for part in ast.walk(given)}
        own = [one for one in ast.walk(value) if id(one) not in inside]
        called = {pastes.last_name(one.func) for one in own if isinstance(one, ast.Call)}
        if called - _PLAIN or any(isinstance(one, (ast.BinOp, ast.Lambda)) for one in own):
            return False
        read = read or bool(called & set(_IMAGES))
        names = {one.id for one in own if isinstance(one, ast.Name)} - asked
        if names & changed:
            return False
        asked |= names
        todo += [made for name in sorted(names) for made in pastes.assigned(tree, name)]
    return read and not todo


def _of_arrays(facts: Facts, file: str, trained: ast.expr, asked: ast.expr) -> tuple[int, str] | None:
    """The line that scales the rows that are trained on, and not those that came with them."""
    if not isinstance(trained, ast.Name) or not isinstance(asked, ast.Name) or trained.id == asked.id:
        return None
    tree = facts.tree(file)
    together = [
        one for one in pastes.walk(tree, ast.Assign)
        if {trained.id, asked.id} <= {part.id for part in ast.walk(one.targets[0]) if isinstance(part, ast.Name)}
    ]  # fmt: skip
    scaled: dict[str, list[tuple[int, str]]] = {trained.id: [], asked.id: []}
    changed = 0
    for one in ast.walk(tree) if tree is not None and len(together) == 1 else ():
        if isinstance(one, (ast.Assign, ast.AugAssign)) and one is not together[0]:
            target = one.targets[0] if isinstance(one, ast.Assign) else one.target
            name = ast.unparse(target)
            if asked.id in {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}:
                changed += _changes(one)
            scale = _divides(one if isinstance(one, ast.AugAssign) else one.value)
            if name == trained.id and scale:
                scaled[name].append((one.lineno, scale))
    found = scaled[trained.id]
    return found[0] if len(found) == 1 and not changed and found[0][0] > together[0].lineno else None


def _changes(statement: ast.Assign | ast.AugAssign) -> bool:
    """Whether a statement gives a name other numbers, and not only another shape or dtype."""
    if isinstance(statement, ast.AugAssign):
        return True
    called = {pastes.last_name(one.func) for one in pastes.walk(statement.value, ast.Call)}
    return any(isinstance(one, ast.BinOp) for one in ast.walk(statement.value)) or bool(called - _PLAIN)
