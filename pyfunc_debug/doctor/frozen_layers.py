"""`layer.trainable` that is set after a step was traced, by a callback or between calls: it goes on with what was."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.between_calls import between_calls
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding, Function

_AGAIN = ("compile", "make_train_function")
_ASKED = ("trainable_variables", "trainable_weights")
_KNOWS = "it knows the variables of before only"
_LOOPS = (ast.For, ast.While)


def set_too_late(facts: Facts, file: str) -> Iterator[Finding]:
    """One finding a callback: of the methods that run after Keras traced its step.

    Args:
      facts: The recording.
      file: A file of the user's, whose model was trained.
    """
    tree = facts.tree(file)
    if any("run_eagerly" in text or "functions_eagerly" in text for text in facts.code(file)):
        return
    made = {pastes.last_name(one.func) for one in pastes.walk(tree, ast.Call)}
    for holder in pastes.walk(tree, ast.ClassDef):
        called = {pastes.last_name(one.func) for one in ast.walk(holder) if isinstance(one, ast.Call)}
        if not any(pastes.last_name(base) == "Callback" for base in holder.bases) or holder.name not in made:
            continue
        methods = [one for one in holder.body if isinstance(one, ast.FunctionDef)]
        late = [(method, one) for method in methods for one in code.own_nodes(method)
                if isinstance(one, ast.Assign) and _is_late(method, one)]  # fmt: skip
        if not late or called & set(_AGAIN):
            continue
        first = late[0][1]
        yield Finding(
            "stale-closure", "error", None, (),
            f"line {first.lineno} sets {ast.unparse(first.targets[0])} while the model trains. Keras traced its step "
            "before, with the variables that were trainable then, and trains these to the end",
            _fix(facts, file, late), file, first.lineno,
            evidence=tuple(f"line {one.lineno}: {facts.line(file, one.lineno)}" for _, one in late[:3]),
            confidence="likely",
        )  # fmt: skip


def set_between_calls(facts: Facts, function: Function) -> Iterator[Finding]:
    """A finding for a tf.function that asks for trainable variables, and is called before and after these change.

    Args:
      facts: The recording.
      function: A traced function of the user's.
    """
    own, file = facts.definition(function.file, function.line), function.file
    if not isinstance(own, ast.FunctionDef) or file is None:
        return
    asked = {
        ast.unparse(one.value) for one in code.own_nodes(own) if isinstance(one, ast.Attribute) and one.attr in _ASKED
    }
    traced = any(one.function == function.id and one.error is None for one in facts.traces)
    between = between_calls(facts, function, own) if asked and traced else None
    late = [
        (one, one.targets[0]) for one in (between.statements if between is not None else ())
        if isinstance(one, ast.Assign) and len(one.targets) == 1
        and isinstance(one.targets[0], ast.Attribute) and one.targets[0].attr == "trainable"
    ]  # fmt: skip
    if between is None or not late:
        return
    (first, target), (last, _) = late[0], late[-1]
    optimizers = {
        ast.unparse(one.func.value) for one in code.own_nodes(own) if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute) and one.func.attr == "apply_gradients"
    }  # fmt: skip
    lines = [f"{between.again}  # traced again"]
    if len(optimizers) == 1 and len(asked) == 1 and all(one.isidentifier() for one in optimizers):
        name, model = next(iter(optimizers)), next(iter(asked))
        lines += [f"{name} = {name}.from_config({name}.get_config())  # {_KNOWS}", f"{name}.build({model}.{_ASKED[0]})"]
    yield Finding(
        "stale-closure", "error", None, (),
        f"line {first.lineno} sets {ast.unparse(target)} after TensorFlow traced {own.name}, which asked for the "
        "variables that were trainable then: it trains these to the end",
        pastes.written(pastes.behind(file, last, *lines)) if between.again
        else f"make the tf.function of {own.name} again behind line {last.lineno}, and its optimizer",
        file, first.lineno,
        evidence=(*(f"line {one.lineno}: {facts.line(file, one.lineno)}" for one, _ in late[:3]), between.calls),
        confidence="likely",
    )  # fmt: skip


def _is_late(method: ast.FunctionDef, statement: ast.Assign) -> bool:
    """Whether a statement sets `trainable` at the end of an epoch, or later than in the first one."""
    targets = [one for one in statement.targets if isinstance(one, ast.Attribute) and one.attr == "trainable"]
    if not targets or method.name not in ("on_epoch_begin", "on_epoch_end"):
        return False
    asked = [ast.unparse(one.test) for one in pastes.around(method, statement.lineno, ast.If)]
    return method.name == "on_epoch_end" or any("epoch" in one and "== 0" not in one for one in asked)


def _fix(facts: Facts, file: str, late: list[tuple[ast.FunctionDef, ast.Assign]]) -> str:
    """Another trace behind the last of a block's statements, and an optimizer that knows all variables."""
    ends: dict[int, tuple[int, bool]] = {}
    for method, one in late:
        loops = [part for part in ast.walk(method) if isinstance(part, _LOOPS) and one in ast.walk(part)]
        outer: ast.stmt = min(loops, key=lambda part: part.lineno, default=one)
        block = pastes.source(facts, file).statement(outer.lineno)
        end = max(outer.end_lineno or outer.lineno, one.lineno)
        frozen = isinstance(one.value, ast.Constant) and one.value.value is False
        key = block.col_offset if block is not None else 0
        ends[end] = (key, frozen and ends.get(end, (0, True))[1])
    edits = list[Edit | None]()
    for end, (indent, frozen) in ends.items():
        if end + 1 in ends:
            continue  # the next line sets another one
        blanks, model = " " * indent, "self.model"
        renewed = f"{model}.optimizer = {model}.optimizer.from_config({model}.optimizer.get_config())"
        lines = () if frozen else (f"{blanks}{renewed}  # {_KNOWS}",)
        edits.append(Edit(file, end + 1, end, (*lines, f"{blanks}{model}.make_train_function(force=True)")))
    return pastes.written(*edits) if len(edits) <= pastes.MOST else f"self.model.{_AGAIN[1]}(force=True) behind it"
