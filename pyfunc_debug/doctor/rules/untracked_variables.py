"""`self.w = tf.Variable(...)` in a layer of Keras 3, which knows its own variables only: nothing trains these."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.models.own_steps import TRAINABLE
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.records import Finding

NAMES = ("untracked-variable",)
_LEGACY = ("TF_USE_LEGACY_KERAS", "tf_keras")
_ASKS = ("gradient", "apply_gradients", "minimize", "apply")
_KEYWORDS = {"initial_value": "", "trainable": "trainable=", "dtype": "dtype=", "name": "name="}


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a class of a program whose model was trained."""
    fitted = {file for file, line in pastes.keras_sites(facts) if pastes.call_at(facts, file, line, "fit") is not None}
    for file in facts.files:
        tree, tf = facts.tree(file), pastes.module(facts, file, "tensorflow")
        if file not in fitted and not _asks_for_all(facts, file):
            continue
        called = {pastes.last_name(one.func) for one in pastes.walk(tree, ast.Call)}
        named = imports(pastes.source(facts, file))
        for holder in pastes.walk(tree, ast.ClassDef):
            if tf is None or holder.name not in called or not any(_is_keras(one, named) for one in holder.bases):
                continue
            made = _made(holder, tf)
            trained = [name for name, call in made.items() if _is_trained(tree, holder, name, call)]
            if trained:
                yield _finding(facts, file, holder, made, trained, tf, "fit" if file in fitted else "the tape")


def _is_keras(base: ast.expr, named: dict[str, str]) -> bool:
    """Whether a base class is Keras' Layer or Model, whatever it is imported as."""
    first, _, rest = ast.unparse(base).partition(".")
    parts = ".".join(filter(None, (named.get(first, first), rest))).split(".")
    return "keras" in parts[:-1] and parts[-1] in ("Layer", "Model")


def _asks_for_all(facts: Facts, file: str) -> bool:
    """Whether an own loop trains what Keras 3 lists as a model's variables."""
    texts = facts.code(file)
    if not facts.has_keras_3 or any(one in text for text in texts for one in _LEGACY):
        return False
    return any(
        ast.unparse(part).endswith(TRAINABLE) for one in pastes.walk(facts.tree(file), ast.Call)
        if pastes.last_name(one.func) == "gradient" for part in one.args
    )  # fmt: skip


def _made(holder: ast.ClassDef, tf: str) -> dict[str, ast.Call]:
    """The attributes that are variables of TensorFlow's, or lists of them, with the calls that make them."""
    found: dict[str, ast.Call] = {}
    for method in (one for one in holder.body if isinstance(one, ast.FunctionDef) and one.name != "call"):
        for one in ast.walk(method):
            if isinstance(one, ast.Assign):
                value = one.value.elt if isinstance(one.value, ast.ListComp) else one.value
                name = _attribute(one.targets[0])
            elif isinstance(one, ast.Call) and pastes.last_name(one.func) == "append" and len(one.args) == 1:
                value, name = one.args[0], _attribute(one.func.value)  # type: ignore[attr-defined]  # of a method
            else:
                continue
            if name and isinstance(value, ast.Call) and ast.unparse(value.func) == f"{tf}.Variable":
                found[name] = value
    return found


def _attribute(node: ast.expr) -> str:
    """`w` of `self.w`; "" of anything else."""
    return node.attr if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self" else ""


def _is_trained(tree: ast.AST | None, holder: ast.ClassDef, name: str, call: ast.Call) -> bool:
    """Whether `call` computes with a variable that nothing else changes, and that no tape is asked for."""
    trainable = next((one.value for one in call.keywords if one.arg == "trainable"), None)
    if isinstance(trainable, ast.Constant) and not trainable.value:
        return False
    whole = next(
        (one.value for one in call.keywords if one.arg == "initial_value"), call.args[0] if call.args else None
    )
    if isinstance(whole, ast.Constant) and isinstance(whole.value, (int, str)):
        return False  # a counter, a flag
    for one in pastes.walk(tree, ast.Attribute):
        if one.attr.startswith("assign") and ast.unparse(one.value) == f"self.{name}":
            return False
    asked = [one for one in pastes.walk(tree, ast.Call) if pastes.last_name(one.func) in _ASKS]
    if any(f".{name}" in ast.unparse(part) for one in asked for part in one.args):
        return False
    read = _read_by_call(holder)
    return name in read or any(name in _attributes(one.value) and key in read for key, one in _computed(holder).items())


def _read_by_call(holder: ast.ClassDef) -> set[str]:
    return {name for one in holder.body if isinstance(one, ast.FunctionDef) and one.name == "call"
            for name in _attributes(one)}  # fmt: skip


def _attributes(node: ast.AST) -> set[str]:
    """The attributes of `self` that stand in some code."""
    return {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "self"}


def _computed(holder: ast.ClassDef) -> dict[str, ast.Assign]:
    """What `build` or `__init__` computes once of other attributes: `self.kernel = self.mu + self.sigma * self.eps`."""
    return {
        one.targets[0].attr: one for method in holder.body
        if isinstance(method, ast.FunctionDef) and method.name in ("build", "__init__")
        for one in method.body
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Attribute) and _attribute(one.targets[0])
        and isinstance(one.value, (ast.BinOp, ast.Call)) and _attributes(one.value)
    }  # fmt: skip


def _finding(
    facts: Facts, file: str, holder: ast.ClassDef, made: dict[str, ast.Call], trained: list[str], tf: str, by: str
) -> Finding:
    keras = pastes.module(facts, file, "keras") or f"{tf}.keras"
    pieces: dict[ast.expr, str] = {}
    for call in made.values():
        parts = [pastes.text_of(facts, file, one) for one in call.args]
        known = all(one.arg in _KEYWORDS for one in call.keywords) and len(parts) < 2
        if known:
            named = [(_KEYWORDS[str(one.arg)], pastes.text_of(facts, file, one.value)) for one in call.keywords]
            parts += [text for word, text in sorted(named, key=lambda one: bool(one[0])) if not word]
            parts += [f"{word}{text}" for word, text in named if word]
            pieces[call] = f"{keras}.Variable({', '.join(parts)})"
    names, several = listed([f"self.{one}" for one in trained]), len(trained) > 1
    lists = {f"self.{one}.append" for one in trained}
    held = any(ast.unparse(one.func) in lists for one in pastes.walk(holder, ast.Call)) or any(
        isinstance(one.value, ast.ListComp) and _attribute(one.targets[0]) in trained
        for one in pastes.walk(holder, ast.Assign)
    )
    what, them = ("are variables", "them") if several else ("is a variable", "it")
    if held:
        what, them = ("hold variables" if several else "holds variables"), "them"
    once, edits = _moved(facts, file, holder, set(made))
    return Finding(
        NAMES[0], "error", None, (),
        f"{names} of {holder.name} {what} of TensorFlow's, and Keras 3 knows its own only: {by} does not train {them}, "
        f"and a file of weights lacks {them}{once}",
        pastes.written(*pastes.each_replaced(facts, file, pieces), *edits)
        or f"{keras}.Variable(initial value, trainable=True) in their place",
        file, made[trained[0]].lineno,
        evidence=tuple(f"line {made[one].lineno}: {facts.line(file, made[one].lineno)}" for one in trained[:3]),
    )  # fmt: skip


def _moved(
    facts: Facts, file: str, holder: ast.ClassDef, made: set[str]
) -> tuple[str, list[Edit | None]]:  # fmt: skip
    """What `call` reads and another method computed once from the variables: in words, and as lines of `call`."""
    call = next((one for one in holder.body if isinstance(one, ast.FunctionDef) and one.name == "call"), None)
    read = _read_by_call(holder)
    computed = {
        name: one for name, one in _computed(holder).items() if name in read and made & _attributes(one.value)
    }  # fmt: skip
    if call is None or not computed:
        return "", []
    own = pastes.source(facts, file)
    begin = pastes.beginning(call)
    pieces: dict[ast.expr, str] = {
        one: one.attr for one in pastes.walk(call, ast.Attribute)
        if ast.unparse(one.value) == "self" and one.attr in computed
    }  # fmt: skip
    lines = [f"{name} = {' '.join(own.text(one.value).split())}" for name, one in computed.items()]
    names = listed([f"self.{one}" for one in computed])
    once = f". {names} {'is' if len(computed) == 1 else 'are'} computed from them once, outside of `call`"
    above = pastes.above(facts, file, begin, *lines) if begin is not None else None
    return once, [*pastes.each_replaced(facts, file, pieces), above]
