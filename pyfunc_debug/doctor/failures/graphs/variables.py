"""Variables made inside a tf.function: each trace would make new ones."""

from __future__ import annotations

import ast
import re
import textwrap

from pyfunc_debug.doctor.code import local_names
from pyfunc_debug.doctor.failures.graphs import late_variables, made_in_function
from pyfunc_debug.doctor.failures.models import layers_in_call
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.pastes.traced_text import few
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, root_is, symbolic_parts

RULE = "variable-in-function"
_SAID = "tf.function only supports singleton tf.Variables created on the first call"
_MOST = 6
"""More lines than these are not a paste."""
_NO_ASSIGN = re.compile(r"Tensor' object has no attribute '(assign(?:_add|_sub)?)'")
_LOCKED = "cannot add new elements of state"
"""What Keras says of a layer that makes variables behind its `build`."""
_NO_STATE = "'NoneType' object has no attribute 'assign'"
"""What a BatchNormalization says of its own moving mean where the trace that made it was not the first."""
_NOT_LIFTED = ("Unable to lift tensor", "could not be lifted out of a `tf.function`")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a tf.function made a variable in a later trace."""
    spot = situation.last
    if _NO_STATE in situation.message and "calling BatchNormalization.call()" in situation.text:
        return layers_in_call.explain(situation)
    if spot is None or not any(one in situation.message for one in (_SAID, _LOCKED, *_NOT_LIFTED)):
        return None
    statement, function = spot.statement, spot.function
    of_lambda = layers_in_call.in_lambda(situation)
    if of_lambda is not None:
        return of_lambda
    if statement is None or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    weight = layers_in_call.explain(situation) if _of_a_shape(statement) else None
    copied = weight or _copy(spot, function, statement)
    if copied is not None or _NOT_LIFTED[0] in situation.message:
        return copied
    if _LOCKED in situation.message:
        return layers_in_call.explain(situation)
    if _NOT_LIFTED[1] in situation.message:
        return _place(spot, function, statement) or layers_in_call.explain(situation)
    inline = made_in_function.explain(spot, function, statement)
    if inline is not None:
        return inline
    own = layers_in_call.of_function(spot, function) if isinstance(function, ast.FunctionDef) else None
    late = own or layers_in_call.explain(situation) or late_variables.explain(situation)
    if late is not None:
        return late
    code = short(spot.source.text(statement).split("\n")[0], 36)
    cause = f"`{code}` makes variables at each trace of {function.name}, and only the first trace may."
    restart = _restarted(spot, function, statement)
    edit = None if restart is None else _lifted(spot, function, statement, restart) or _once(spot, statement, restart)
    if restart and edit is not None:
        cause += (
            f" Each call begins with `{restart}`, as eager code does: leave that out if it is to keep its value from "
            "call to call."
        )
    in_class = isinstance(spot.source.parent(function), ast.ClassDef)
    target = "into __init__" if "self." in code else f"above {function.name}"
    if in_class and "self." not in code:
        target = f"into __init__, as self.{code.partition(' ')[0]}"
    read = _lines_read(function, statement)
    advice = f"Move the line {target}."
    if read:
        every = ", ".join(str(line) for line in sorted(read))
        advice = f"Move the line {target}, with what it reads of {function.name} (line{'s'[: len(read) > 1]} {every})."
    given = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)} - {"self"}
    value = getattr(statement, "value", None)
    if (
        not isinstance(statement, (ast.Assign, ast.AnnAssign))
        or read is None
        or (value is not None and given & set(names(value)))
    ):
        advice = f"Use what makes them once before {function.name} is called: they are there then."
    elif restart:
        again = f"self.{restart}" if target.endswith("as self." + code.partition(" ")[0]) else restart
        advice += f" In its place `{again}` begins with its value again, as eager code does in each call."
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else advice)


def _lines_read(function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt) -> set[int] | None:
    """The lines of a function that make what a statement of it reads; None where these need more than moving."""
    given = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)} - {"self"}
    local = local_names(function)
    found: set[int] = set()
    waiting = [statement]
    while waiting:
        one = waiting.pop()
        value = getattr(one, "value", None)
        if not isinstance(one, (ast.Assign, ast.AnnAssign)) or not isinstance(value, ast.expr):
            return None
        for name in set(names(value)) & local - {"self"}:
            made = [part for part in function.body if name in _bound(part)]
            if name in given or len(made) != 1 or made[0].lineno >= statement.lineno:
                return None
            if made[0].lineno not in found:
                found.add(made[0].lineno)
                waiting.append(made[0])
    return found


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement binds, in whatever block of it."""
    return {one.id for one in ast.walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


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
    assigned = any(dotted(one.func).startswith(f"{name}.assign") for one in calls(function)) or _filled(function, name)
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


def _of_a_shape(statement: ast.stmt) -> bool:
    """Whether the first value is a call that asks a tensor for no more than its shape, as a layer's weights do."""
    call = statement.value if isinstance(statement, ast.Assign) else None
    value = argument(call, 0, "initial_value") if isinstance(call, ast.Call) else None
    return isinstance(value, (ast.Call, ast.Lambda)) and any(
        isinstance(one, ast.Attribute) and one.attr == "shape" for one in ast.walk(value)
    )


def _filled(function: ast.AST, name: str) -> list[ast.Call]:
    """`z[0, i].assign(...)` of a name."""
    return [one for one in calls(function) if _part(one) == name]


def _part(call: ast.Call) -> str:
    """`z` of `z[0, i].assign(...)`."""
    of = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "assign" else None
    return dotted(of.value) if isinstance(of, ast.Subscript) else ""


def _place(spot: Spot, function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt) -> Explanation | None:
    """`z = tf.Variable(tf.zeros(...))` that is filled part by part: what is filled in one call needs no variable."""
    name = dotted(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    made = getattr(statement, "value", None)
    value = argument(made, 0, "initial_value") if isinstance(made, ast.Call) else None
    if not name or value is None or not isinstance(made, ast.Call) or not _filled(function, name):
        return None
    cause = (
        f"`{short(spot.source.text(statement), 36)}` makes a variable of a tensor of the graph that {function.name} is "
        f"traced into: that has no value yet. {name} is filled and used in one call only, which needs no variable."
    )
    dtype = argument(made, 5, "dtype")
    text, tf = spot.source.text(value), alias(spot, "tensorflow")
    new = text if dtype is None else f"{tf}.cast({text}, {spot.source.text(dtype)})"
    return Explanation(RULE, spot.file, spot.line, cause, wrapping.replace_expression(spot, made, new))


def of_tensor(situation: Situation) -> Explanation | None:
    """The explanation, if `assign` was asked of a tensor or of a part of one."""
    spot, statement = situation.last, situation.statement
    found = _NO_ASSIGN.search(situation.message) if situation.kind == "AttributeError" else None
    if spot is None or found is None or statement is None or situation.body:
        return None
    call = next(
        (one for one in calls(statement) if isinstance(one.func, ast.Attribute) and one.func.attr == found[1]), None
    )
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    of = call.func.value
    owner = of.value if isinstance(of, ast.Subscript) else of
    if isinstance(statement, ast.Assign) and dotted(statement.targets[0]) == dotted(owner):
        return None  # `a = a[0].assign(1)` of a variable that the name held before
    tf, text = alias(spot, "tensorflow"), spot.source.text
    cause = f"{text(of)} is a tensor: only a tf.Variable has {found[1]}, and a tensor does not change."
    advice = f"Keep a tf.Variable that is made once, or make a new tensor: {tf}.tensor_scatter_nd_update."
    edit = None
    if (
        isinstance(of, ast.Subscript)
        and isinstance(of.value, ast.Name)
        and found[1] == "assign"
        and len(call.args) == 1
    ):
        parts = of.slice.elts if isinstance(of.slice, ast.Tuple) else [of.slice]
        if not any(isinstance(one, (ast.Slice, ast.Starred)) for one in parts):
            at = ", ".join(map(text, parts))
            new = f"{of.value.id} = {tf}.tensor_scatter_nd_update({of.value.id}, [[{at}]], [{text(call.args[0])}])"
            cause += " The same as a new tensor with another value in that place:"
            edit = wrapping.replace_expression(spot, call, new)
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else advice)


def _restarted(spot: Spot, function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt) -> str | None:
    """`v.assign(0.0)`, where the variable may change: eager code makes it again, with its first value, in each call.

    Returns:
      "" where nothing changes it; None where its first value is not written in a line.
    """
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    call = statement.value if isinstance(statement, ast.Assign) else None
    name = dotted(target) if target is not None else ""
    if name and isinstance(call, ast.Call) and made_in_function.kind_of(call.func, spot) == "metric":
        return f"{name}.reset_state()"
    if not name or not isinstance(call, ast.Call) or not dotted(call.func).endswith("Variable"):
        return ""
    holders = [one for one in spot.source.around(function) if isinstance(one, ast.ClassDef)] if "." in name else []
    if not _may_change(spot, [*holders[-1:], function][0], name):
        return ""
    value = argument(call, 0, "initial_value")
    text = spot.source.text(value) if value is not None else ""
    return f"{name}.assign({text})" if text and "\n" not in text and not isinstance(value, ast.Lambda) else None


def _may_change(spot: Spot, where: ast.AST, name: str) -> bool:
    """Whether a variable is assigned to, or given to code that may do so: an optimizer, a function of the user's."""
    for one in calls(where):
        method = one.func if isinstance(one.func, ast.Attribute) else None
        if method is not None and method.attr.startswith(("assign", "scatter")) and dotted(method.value) == name:
            return True
        given = [*one.args, *(keyword.value for keyword in one.keywords)]
        own = not root_is(one.func, spot, "tensorflow") and dotted(one.func) not in ("print", "len", "float", "int")
        if _part(one) == name or (own and any(dotted(part) == name for arg in given for part in ast.walk(arg))):
            return True
    return False


def _once(spot: Spot, statement: ast.stmt, restart: str) -> Edit | None:
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
    again = (f"{blanks}{restart}",) if restart else ()
    return Edit(spot.file, first, last, (f"{blanks}{check}", *inside, *again)) if last - first < 2 else None


def _lifted(
    spot: Spot, function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt, restart: str
) -> Edit | None:
    """The function with the statement above it, and what begins with its value again in its place."""
    if isinstance(spot.source.parent(function), ast.ClassDef):
        return None  # a name of a class is none of its methods'
    if not isinstance(statement, ast.Assign) or statement not in function.body:
        return None
    own = {dotted(one) for one in statement.targets}
    local = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}
    local |= {
        one.id for one in ast.walk(function)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and statement not in spot.source.around(one)
    }  # fmt: skip
    if local & (own | set(names(statement))):
        return None
    first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
    lines = spot.source.lines
    moved = textwrap.dedent("\n".join(lines[statement.lineno - 1 : statement.end_lineno])).split("\n")
    blanks = indent_of(lines[first - 1])
    again = [f"{indent_of(lines[statement.lineno - 1])}{restart}"] if restart else []
    if not again and function.body == [statement]:
        return None
    new = (*(blanks + line for line in moved), *lines[first - 1 : statement.lineno - 1], *again)
    return Edit(spot.file, first, statement.end_lineno or statement.lineno, new) if len(new) <= _MOST else None
