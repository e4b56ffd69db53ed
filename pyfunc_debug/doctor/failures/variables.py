"""Variables made inside a tf.function: each trace would make new ones."""

from __future__ import annotations

import ast
import textwrap

from pyfunc_debug.doctor.failures import wrapping
from pyfunc_debug.doctor.failures.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.nodes import argument
from pyfunc_debug.doctor.failures.situation import Situation, Spot
from pyfunc_debug.doctor.failures.source import dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.symbols import alias, calls, root_is, symbolic_parts
from pyfunc_debug.doctor.failures.traced_text import few

RULE = "variable-in-function"
_SAID = "tf.function only supports singleton tf.Variables created on the first call"
_NOT_LIFTED = "Unable to lift tensor"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a tf.function made a variable in a later trace."""
    spot = situation.last
    if spot is None or not (_SAID in situation.message or _NOT_LIFTED in situation.message):
        return None
    statement, function = spot.source.statement(spot.line), spot.function
    if statement is None or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    copied = _copy(spot, function, statement)
    if copied is not None or _NOT_LIFTED in situation.message:
        return copied
    given = _second_optimizer(situation, spot, function, statement)
    if given is not None:
        return given
    code = short(spot.source.text(statement).split("\n")[0], 36)
    cause = (
        f"`{code}` makes variables at each trace of {function.name}. TensorFlow traces it twice, and only "
        "the first trace "
        "may make them."
    )
    edit = _lifted(spot, function, statement) or _once(spot, statement)
    in_class = isinstance(spot.source.parent(function), ast.ClassDef)
    target = "__init__" if "self." in code else f"a line above {function.name}"
    if in_class and "self." not in code:
        target = f"__init__, as self.{code.partition(' ')[0]}"
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Move the line into {target}.")


def _copy(spot: Spot, function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt) -> Explanation | None:
    """`v = tf.Variable(x)` of what the function was given: a tensor of its own does, as nothing assigns to it."""
    call = statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    name = dotted(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    if not isinstance(call, ast.Call) or not root_is(call.func, spot, "tensorflow") or not dotted(call.func).endswith(
        ".Variable"
    ):  # fmt: skip
        return None
    value = argument(call, 0, "initial_value")
    parts = symbolic_parts(value, spot) if value is not None else {}
    assigned = any(dotted(one.func).startswith(f"{name}.assign") for one in calls(function))
    if value is None or not parts or not isinstance(statement.targets[0], ast.Name) or assigned:  # type: ignore[attr-defined]
        return None
    tf, text = alias(spot, "tensorflow"), spot.source.text(value)
    dtype = argument(call, 5, "dtype")
    new = f"{tf}.identity({text})" if dtype is None else f"{tf}.cast({text}, {spot.source.text(dtype)})"
    cause = (
        f"`{short(spot.source.text(statement), 36)}` makes a variable of {few(parts)}, which has no value while "
        f"{function.name} is traced. Nothing here assigns to {name}: a tensor does."
    )
    return Explanation(RULE, spot.file, spot.line, cause, wrapping.replace_expression(spot, call, new))


def _second_optimizer(
    situation: Situation, spot: Spot, function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt
) -> Explanation | None:
    """A step that is given one optimizer after the other: Keras makes the variables of each at its first use."""
    for call in (one for one in ast.walk(statement) if isinstance(one, ast.Call)):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if owner is None or call.func.attr not in ("apply_gradients", "apply", "minimize"):  # type: ignore[attr-defined]
            continue
        name = owner.id if isinstance(owner, ast.Name) else ""
        arguments = [one.arg for one in function.args.args]
        models = [one for one in arguments if f"{one}.trainable" in spot.source.code_of(function)]
        outer = situation.outer(spot)
        caller = outer.source.statement(outer.line) if outer is not None else None
        step = next(
            (one for one in ast.walk(caller) if isinstance(one, ast.Call) and _ends(one.func) == function.name), None
        ) if caller is not None else None  # fmt: skip
        if outer is None or step is None or len(models) != 1 or name not in arguments or step.keywords:
            return None
        passed = dict(zip(arguments, step.args))
        if not all(isinstance(passed.get(one), ast.Name) for one in (name, models[0])):
            return None
        optimizer, model = (outer.source.text(passed[one]) for one in (name, models[0]))
        made = [
            one for one in ast.walk(outer.function or outer.source.tree)
            if isinstance(one, ast.Assign) and outer.source.text(one.targets[0]) in (optimizer, model)
        ]  # fmt: skip
        if {outer.source.text(one.targets[0]) for one in made} != {optimizer, model} or len(made) != 2:
            return None
        line = max(one.end_lineno or one.lineno for one in made)
        blanks = indent_of(outer.source.lines[line - 1])
        return Explanation(
            RULE, outer.file, outer.line,
            f"{function.name} is traced again for another {name}, and Keras makes an optimizer's variables when it is "
            "first used: in a tf.function only the first trace may make variables.",
            Edit(outer.file, line + 1, line, (f"{blanks}{optimizer}.build({model}.trainable_variables)",)),
        )  # fmt: skip
    return None


def _ends(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _once(spot: Spot, statement: ast.stmt) -> Edit | None:
    """`if self.v is None: self.v = tf.Variable(...)`: TensorFlow's first trace makes it, and the second finds it."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    source, first, last = spot.source, statement.lineno, statement.end_lineno or statement.lineno
    if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name) or target.value.id != "self":
        return None
    holder = next((one for one in source.around(statement) if isinstance(one, ast.ClassDef)), None)
    name = source.text(target)
    known = [
        one for one in ast.walk(holder) if isinstance(one, ast.Assign) and one is not statement
        and name in [source.text(part) for part in one.targets]
    ] if holder is not None else []  # fmt: skip
    none = all(isinstance(one.value, ast.Constant) and one.value.value is None for one in known)
    if holder is None or not none:
        return None
    blanks = indent_of(source.lines[first - 1])
    check = f"if {name} is None:" if known else f'if not hasattr(self, "{target.attr}"):'
    inside = (f"    {line}" for line in source.lines[first - 1 : last])
    return Edit(spot.file, first, last, (f"{blanks}{check}", *inside)) if last - first < 2 else None


def _lifted(spot: Spot, function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt) -> Edit | None:
    """The function with the statement above it instead of at its beginning."""
    local = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}
    if isinstance(spot.source.parent(function), ast.ClassDef):
        return None  # a name of a class is none of its methods'
    if (
        not isinstance(statement, ast.Assign)
        or function.body[0] is not statement
        or any(name in local for name in names(statement))
    ):
        return None
    first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
    lines = spot.source.lines
    moved = textwrap.dedent("\n".join(lines[statement.lineno - 1 : statement.end_lineno])).split("\n")
    blanks = indent_of(lines[first - 1])
    new = (*(blanks + line for line in moved), *lines[first - 1 : statement.lineno - 1])
    return Edit(spot.file, first, statement.end_lineno or statement.lineno, new) if len(new) <= 3 else None
