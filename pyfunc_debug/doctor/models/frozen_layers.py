"""`layer.trainable` that is set after a step was traced, by a callback or between calls: it goes on with what was."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.graphs.between_calls import between_calls
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


def set_between_fits(facts: Facts, file: str) -> Iterator[Finding]:
    """A finding for each `fit` behind a line that set `trainable`, of a model that trained before and was not compiled.

    Args:
      facts: The recording.
      file: A file of the user's, whose model was trained.
    """
    own = pastes.source(facts, file)
    fits = [call for at, line in sorted(pastes.keras_sites(facts)) if at == file
            and (call := pastes.call_at(facts, file, line, "fit")) is not None]  # fmt: skip
    for first, second in itertools.pairwise(fits):
        one, other = own.statement(first.lineno), own.statement(second.lineno)
        block = own.block(one) if one is not None else None
        model = ast.unparse(first.func).rpartition(".")[0]
        if block is None or one is None or other not in block or ast.unparse(second.func) != f"{model}.fit":
            continue
        between = block[block.index(one) + 1 : block.index(other)]
        set_ = [part for each in between for part in _sets_trainable(each)]
        late = [part for part in set_ if not _is_true(part) or _frozen_above(own.tree, part.lineno)]
        if late and not any(_compiles(facts, file, each) for each in between):
            yield _told_between_fits(facts, file, model, (first, second), late, between)


def _sets_trainable(node: ast.AST) -> list[ast.Assign]:
    """The assignments of a statement, loops too, that set `trainable`."""
    return [
        one for one in ast.walk(node) if isinstance(one, ast.Assign)
        and any(isinstance(target, ast.Attribute) and target.attr == "trainable" for target in one.targets)
    ]  # fmt: skip


def _is_true(statement: ast.Assign) -> bool:
    return isinstance(statement.value, ast.Constant) and statement.value.value is True


def _frozen_above(tree: ast.AST, line: int) -> bool:
    """Whether something was frozen above a line: before, all is trainable."""
    frozen = [one for one in _sets_trainable(tree) if not _is_true(one) and one.lineno < line]
    words = [one.value for call in pastes.walk(tree, ast.Call) for one in call.keywords if one.arg == "trainable"]
    return bool(frozen) or any(isinstance(one, ast.Constant) and one.value is False for one in words)


def _compiles(facts: Facts, file: str, statement: ast.stmt) -> bool:
    """Whether a statement, or a function of the file that it calls, compiles a model."""
    functions = {one.name: one for one in pastes.walk(facts.tree(file), ast.FunctionDef)}
    todo, seen = [statement], set[str]()
    while todo:
        for one in ast.walk(todo.pop()):
            name = pastes.last_name(one.func) if isinstance(one, ast.Call) else ""
            if name in (*_AGAIN, "load_model"):
                return True
            if name in functions and name not in seen:
                seen.add(name)
                todo.append(functions[name])
    return False


def _told_between_fits(
    facts: Facts, file: str, model: str, fits: tuple[ast.Call, ast.Call], late: list[ast.Assign],
    between: list[ast.stmt],
) -> Finding:  # fmt: skip
    own, tf = pastes.source(facts, file), pastes.module(facts, file, "tensorflow")
    compiled = [
        one for one in pastes.walk(own.tree, ast.Call)
        if ast.unparse(one.func) == f"{model}.compile" and one.lineno < fits[0].lineno
    ]  # fmt: skip
    keras = pastes.module(facts, file, "keras") or (f"{tf}.keras" if tf else "keras")
    last = next(one for one in reversed(between) if _sets_trainable(one))
    call = compiled[-1] if len(compiled) == 1 else None
    new = _compiled_again(own.text(call), call, model, keras) if call is not None else ""
    return Finding(
        "stale-closure", "error", None, (),
        f"line {late[0].lineno} sets {ast.unparse(late[0].targets[0])} after {model} trained in line "
        f"{fits[0].lineno}. Keras traced its step there, with what was trainable then; only compile makes it again, so "
        f"that the fit of line {fits[1].lineno} trains the same weights",
        pastes.written(pastes.behind(file, last, new)) if new
        else f"{model}.compile(...)  # behind line {last.lineno}, with an optimizer of its own",
        file, late[0].lineno,
        evidence=tuple(f"line {one.lineno}: {facts.line(file, one.lineno)}" for one in late[:3]), confidence="likely",
    )  # fmt: skip


def _compiled_again(text: str, call: ast.Call, model: str, keras: str) -> str:
    """The call of compile once more, with a new optimizer: the old one knows the variables of before."""
    optimizer = pastes.argument(call, 0, "optimizer")
    if isinstance(optimizer, ast.Constant) or (isinstance(optimizer, ast.Call) and not _is_starred(call)):
        return text
    if not isinstance(optimizer, ast.Name) or _is_starred(call):
        return ""
    given = [one for one in call.keywords if one.arg != "optimizer"]
    rest = [ast.unparse(one) for one in (*call.args[1:], *given)]
    again = f"{keras}.optimizers.deserialize({keras}.optimizers.serialize({optimizer.id}))"
    return f"{model}.compile({', '.join([f'optimizer={again}' if not call.args else again, *rest])})"


def _is_starred(call: ast.Call) -> bool:
    return any(one.arg is None for one in call.keywords) or any(isinstance(one, ast.Starred) for one in call.args)


def frozen_before_training(facts: Facts, file: str) -> Iterator[Finding]:
    """A finding for a discriminator that was compiled, frozen for the model it is in, and trained: Keras 3 does not.

    Keras 2 took what was trainable at `compile`; Keras 3 takes what is as it traces the first step.

    Args:
      facts: The recording.
      file: A file of the user's, whose model was trained.
    """
    if not facts.has_keras_3:
        return
    own, told = pastes.source(facts, file), set[str]()
    frozen = {ast.unparse(one.targets[0]): one for one in _sets_trainable(own.tree)
              if isinstance(one.value, ast.Constant) and not one.value.value}  # fmt: skip
    thawed = {ast.unparse(one.targets[0]) for one in _sets_trainable(own.tree)} - frozen.keys()
    thawed |= {ast.unparse(one.targets[0]) for one in _sets_trainable(own.tree) if _is_true(one)}
    compiles = [one for one in pastes.walk(own.tree, ast.Call) if pastes.last_name(one.func) == "compile"]
    for at, line in pastes.keras_sites(facts):
        call = pastes.call_at(facts, file, line, "train_on_batch") if at == file else None
        model = ast.unparse(call.func).rpartition(".")[0] if call is not None else ""
        late = frozen.get(f"{model}.trainable")
        if call is None or late is None or f"{model}.trainable" in thawed or model in told or len(compiles) < 2:
            continue
        loops = [one for one in own.around(late) if isinstance(one, _LOOPS)]
        first = next((one for one in compiles if ast.unparse(one.func) == f"{model}.compile"), None)
        if loops or (first is not None and own.function(first.lineno) is own.function(late.lineno)
                     and first.lineno > late.lineno):  # fmt: skip
            continue
        told.add(model)
        yield _told_frozen(facts, file, own.statement(line), model, late)


def _told_frozen(facts: Facts, file: str, statement: ast.stmt | None, model: str, late: ast.Assign) -> Finding:
    own = pastes.source(facts, file)
    block = own.block(statement) if statement is not None else None
    behind = block[block.index(statement) + 1 :] if block is not None and statement is not None else []
    others = [
        one for one in behind for call in pastes.walk(one, ast.Call)
        if pastes.last_name(call.func) == "train_on_batch" and ast.unparse(call.func) != f"{model}.train_on_batch"
    ]  # fmt: skip
    fix = f"{model}.trainable = True above its train_on_batch, and False above that of the model it is in"
    if others and statement is not None:
        fix = pastes.written(
            pastes.above(facts, file, others[0].lineno, f"{model}.trainable = False"),
            pastes.above(facts, file, statement.lineno, f"{model}.trainable = True  # as Keras traces its step"),
        )
    line = statement.lineno if statement is not None else late.lineno
    return Finding(
        "stale-closure", "error", None, (),
        f"{model} does not train in line {line}: Keras 3 takes what is trainable as it traces the first step, not at "
        f"compile as Keras 2 did, and line {late.lineno} froze {model} before that",
        fix, file, line, evidence=(f"line {late.lineno}: {facts.line(file, late.lineno)}",), confidence="likely",
    )  # fmt: skip
