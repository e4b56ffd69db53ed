"""Python that asked a symbolic tensor for its value while a graph was built."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures import control_flow, kept_by_python, wrapping
from pyfunc_debug.doctor.failures.body_of_lines import body_of_lines
from pyfunc_debug.doctor.failures.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.keras_calls import compiled_function, is_loss, whole_call
from pyfunc_debug.doctor.failures.results import body_shape
from pyfunc_debug.doctor.failures.rewrites import as_ops, whole_as_ops
from pyfunc_debug.doctor.failures.shapes import written
from pyfunc_debug.doctor.failures.situation import Situation, Spot
from pyfunc_debug.doctor.failures.source import dotted, parameters, short
from pyfunc_debug.doctor.failures.symbols import alias, calls, described, is_keras, root_is, shape_of, symbolic_parts

RULE = "symbolic-value"
_VALUE = re.compile(
    r"'?(?:SymbolicTensor|Tensor|KerasTensor)'? object has no attribute '(?P<attribute>\w+)'"
    r"|Cannot convert a symbolic (?:tf\.)?(?:Keras )?\w+.* to a [Nn]um[Pp]y array"
    r"|A KerasTensor is symbolic"
    r"|\b(?:SymbolicTensor|KerasTensor)\b.*cannot be interpreted as an integer"
    r"|(?:not|got|passed to|to) '?(?:a )?(?:SymbolicTensor|KerasTensor|Tensor)\b"
    r"|'(?:SymbolicTensor|KerasTensor|Tensor)' object (?:does not support|is not|cannot)"
    r"|(?<![a-z])Tensor is unhashable"
    r"|len is not well defined for a symbolic Tensor"
    r"|A KerasTensor cannot be used as input to a TensorFlow function"
    r"|(?:not|got|found) <tf\.Tensor '"
    r"|of type <class '[\w.]*(?:SymbolicTensor|KerasTensor)'>"
    r"|(?:float|int)\(\) argument must be .*(?:SymbolicTensor|KerasTensor|'Tensor')"
    r"|Expected type in .* but got .*SymbolicTensor"
    r"|Cannot (?:cast|convert) (?:a )?symbolic"
    r"|[Cc]an't convert object to 'str'.*SymbolicTensor"
    r"|(?:Unsupported|Unexpected|unexpected|[Ii]nvalid) .*\bSymbolicTensor\b",
    re.DOTALL,
)
_BOOL = re.compile(
    r"as a Python `?bool`? is not allowed|KerasTensor cannot be used as a boolean|truth value of a .*[Tt]ensor"
)
_ITERATE = re.compile(
    r"[Ii]terating over a symbolic|Cannot iterate over a Tensor with unknown first dimension"
    r"|Tensor objects are only iterable|Cannot iterate over a scalar"
)
_CALLED_WRONG = re.compile(r"positional argument|keyword argument|is not defined|No module named|referenced before")
_NAMED = re.compile(r"SymbolicTensor|KerasTensor|symbolic `?(?:tf\.)?Tensor")
_FOREIGN = re.compile(r"\.cv2\.|error: OpenCV|cv2\.error|PIL\.")
_KINDS = {"AttributeError", "NotImplementedError", "TypeError", "ValueError", "OperatorNotAllowedInGraphError", "error"}


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if this is why the program failed."""
    spot, message = situation.last, situation.message
    if (
        spot is None
        or situation.body
        or situation.kind not in {*_KINDS, "InvalidArgumentError", "UnidentifiedImageError"}
    ):
        return None
    statement = spot.source.statement(spot.line)
    if statement is None or isinstance(statement, ast.Raise):  # the program's own words
        return None
    value = wrapping.value_here(spot, statement)
    parts = symbolic_parts(value, spot) if value is not None else {}
    parts = parts or _stored(statement, spot)
    if _BOOL.search(message):
        return _bool(situation, spot, statement, value, parts)
    if _ITERATE.search(message):
        return _iterate(situation, spot, statement, value, parts)
    found = _VALUE.search(message)
    if not found and not (parts and situation.kind == "error" and _FOREIGN.search(f".{message}")):
        return None
    if not parts:
        return _outside(situation, spot, statement)
    if any(is_keras(one) for one in parts.values()):
        return _keras(situation, spot, statement, value, parts)
    edit, sure = _value_fix(situation, spot, statement, value, found["attribute"] if found else None)
    return _explanation(situation, spot, statement, parts, edit, sure)


# -- what is said -----------------------------------------------------------------------------------------------------


def _explanation(
    situation: Situation, spot: Spot, statement: ast.stmt, parts: dict[str, object], edit: Edit | None,
    sure: bool = True, advice: str = "",
) -> Explanation:  # fmt: skip
    code = short(spot.source.text(statement).split("\n")[0], 44)
    shown = [f"{name} ({described(one)})" for name, one in list(parts.items())[:2]]
    keras = any(is_keras(one) for one in parts.values())
    if keras:
        what = f"{' and '.join(shown)} only describes an input of the model and has no value"
        cause = f"`{code}` ran once, while the Keras model was built: {what}. Only layers and keras.ops take it."
    else:
        cause = (
            f"`{code}` ran once, {_when(situation)}, when {' and '.join(shown)} had no value yet. {_runs(situation)}"
        )
    if edit is None and not advice and is_loss(situation):
        advice = "A loss needs a gradient, and NumPy and Python give none: compute it with TensorFlow's ops."
    if edit is None and not advice:
        tf = alias(spot, "tensorflow")
        advice = f"Use ops of {tf}, or do it in a py_function: {tf}.py_function(f, [{', '.join(parts)}], Tout)."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice, "measured" if sure else "likely")


def _when(situation: Situation) -> str:
    index, by = wrapping.entry(situation)
    function = situation.spots[index].function
    name = getattr(function, "name", "the lambda")
    if by == "tf.data":
        call = wrapping.dataset_call(situation, index)
        method = (
            f"Dataset.{call[1].func.attr}"
            if call is not None and isinstance(call[1].func, ast.Attribute)
            else "tf.data"
        )
        return f"while {method} traced {name}"
    if by == "Keras":
        return f"while Keras traced {name}"
    return f"while {name} was traced"


def _runs(situation: Situation) -> str:
    _, by = wrapping.entry(situation)
    by = "tf.data" if wrapping.around_layer(situation) is not None else by
    when = {"tf.data": "for each element", "Keras": "for each batch"}.get(by, "at run")
    return f"What runs {when} is the graph: ops, and Python only in py_functions."


# -- values -----------------------------------------------------------------------------------------------------------


def _value_fix(
    situation: Situation, spot: Spot, statement: ast.stmt, value: ast.expr | None, attribute: str | None
) -> tuple[Edit | None, bool]:
    if (
        isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Subscript)
        and "assignment" in situation.message
    ):
        return _item_assignment(spot, statement), True
    if value is None:
        return None, True
    printed = _print(spot, statement)
    if printed is not None:
        return printed, True
    noted = kept_by_python.edit(spot, statement)
    if noted is not None:
        return noted, True
    function = spot.function
    by = wrapping.entry(situation)[1]
    in_data = by == "tf.data"
    if by == "Keras" and function is not None and not whole_as_ops(function, spot):
        compiled = compiled_function(situation)
        if compiled is not None:
            return compiled, True
        layer = wrapping.layer_in_map(situation)
        if layer is not None:
            return layer.edit, layer.sure
    if (
        isinstance(statement, ast.For)
        and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        and not spot.generated
        and control_flow.converts(function)
    ):
        return _autograph(spot, function), True
    lines = body_of_lines(spot, statement) if function is not None and not is_loss(situation) else None
    if lines is not None and not in_data and function is not None and not whole_as_ops(function, spot):
        return lines
    if not in_data or function is None or whole_as_ops(function, spot):
        ops = as_ops(value, spot)
        targets = [spot.source.text(one) for one in getattr(statement, "targets", [])]
        if ops is not None and ops not in targets:
            return wrapping.replace_expression(spot, value, ops), True
    for way in (wrapping.helper_call, wrapping.mapped_function, wrapping.expression):
        wrap = way(situation)
        if wrap is not None:
            return wrap.edit, wrap.sure
    return lines or (None, True)


def _stored(statement: ast.stmt, spot: Spot) -> dict[str, object]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {name: one for target in targets for name, one in symbolic_parts(target, spot).items()}


def _item_assignment(spot: Spot, statement: ast.Assign) -> Edit | None:
    target = statement.targets[0]
    assert isinstance(target, ast.Subscript)
    source, tf = spot.source, alias(spot, "tensorflow")
    name = source.text(target.value)
    index = [source.text(one) for one in (target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice])]
    rank = shape_of(spot.value(name))
    if ":" in "".join(index) or (rank is not None and len(rank) != len(index)):
        return None
    line = source.lines[statement.lineno - 1]
    blanks = line[: len(line) - len(line.lstrip())]
    new = f"{name} = {tf}.tensor_scatter_nd_update({name}, [[{', '.join(index)}]], [{source.text(statement.value)}])"
    return Edit(spot.file, statement.lineno, statement.end_lineno or statement.lineno, (blanks + new,))


def _print(spot: Spot, statement: ast.stmt) -> Edit | None:
    """`print(f"loss {x:.3f}")` and `print("loss", x.numpy())` as `tf.print("loss", x)`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or dotted(call.func) != "print" or call.keywords:
        return None
    shown: list[str] = []
    for argument in call.args:
        if isinstance(argument, ast.Starred):
            return None
        for one in argument.values if isinstance(argument, ast.JoinedStr) else [argument]:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                shown += [repr(one.value.strip()).replace("'", '"')] * bool(one.value.strip())
            else:
                value = one.value if isinstance(one, ast.FormattedValue) else one
                shown.append(as_ops(value, spot) or spot.source.text(value) or ast.unparse(value))
    return wrapping.replace_expression(spot, call, f"{alias(spot, 'tensorflow')}.print({', '.join(shown)})")


# -- bool and iteration -----------------------------------------------------------------------------------------------


def _bool(
    situation: Situation, spot: Spot, statement: ast.stmt, value: ast.expr | None, parts: dict[str, object]
) -> Explanation | None:
    function = spot.function
    if value is None or not parts:
        return _outside(situation, spot, statement)
    if any(is_keras(one) for one in parts.values()):
        return _keras(situation, spot, statement, value, parts)
    edit = None
    if isinstance(statement, (ast.If, ast.While)) and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        edit = _autograph(spot, function)
    if edit is None:
        text = as_ops(value, spot, conditions=True)
        edit = wrapping.replace_expression(spot, value, text) if text is not None else None
    if edit is None and wrapping.entry(situation)[1] == "tf.data":
        edit = _as_python(situation)
    code = short(spot.source.text(value), 40)
    cause = (
        f"`{code}` was used as a Python bool {_when(situation)}: it depends on {_few(parts)}, which has "
        "no value there. "
        + (
            "AutoGraph turns `if` into graph code only where it converts the function."
            if isinstance(statement, (ast.If, ast.While))
            else "`and`, `or`, `not`, `a < b < c`, min and max need a value; ops do not."
        )
    )  # fmt: skip
    advice = "" if edit is not None else f"Write the condition with {alias(spot, 'tensorflow')}.cond or .where."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _autograph(spot: Spot, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Edit | None:
    """What makes AutoGraph convert a function."""
    tf = alias(spot, "tensorflow")
    for one in function.decorator_list:
        text = spot.source.text(one)
        if "autograph" in text or "do_not_convert" in text:
            new = f"{tf}.function" if "do_not_convert" not in text else f"{tf}.autograph.experimental.do_not_convert"
            if "do_not_convert" in text:
                return Edit(spot.file, one.lineno, one.lineno, ())
            return wrapping.replace_expression(spot, one, new)
        if dotted(one).endswith(".function"):
            return None
    return wrapping.above_function(spot, function, f"@{tf}.function")


def _iterate(
    situation: Situation, spot: Spot, statement: ast.stmt, value: ast.expr | None, parts: dict[str, object]
) -> Explanation | None:
    function = spot.function
    tf = alias(spot, "tensorflow")
    if value is None or not parts:
        return _outside(situation, spot, statement)
    edit: Edit | None = None
    for one in ast.walk(value):
        if isinstance(one, (ast.ListComp, ast.GeneratorExp)) and symbolic_parts(one.generators[0].iter, spot):
            edit = _comprehension(spot, one, tf)
            if edit is None and not getattr(function, "decorator_list", ()):  # a tf.function is traced in a body, too
                edit = _as_python(situation)
            break
    if edit is None and isinstance(statement, ast.Assign) and isinstance(statement.targets[0], (ast.Tuple, ast.List)):
        count = len(statement.targets[0].elts)
        shape = shape_of(next(iter(parts.values())))
        num = "" if shape and shape[0] is not None else f", num={count}"
        edit = wrapping.replace_expression(spot, value, f"{tf}.unstack({spot.source.text(value)}{num})")
    if (
        edit is None
        and isinstance(statement, ast.For)
        and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    ):
        edit = _autograph(spot, function) if control_flow.converts(function) else _as_python(situation)
    if edit is None:
        text = as_ops(value, spot)
        edit = wrapping.replace_expression(spot, value, text) if text is not None else None
    code = short(spot.source.text(statement).split("\n")[0], 44)
    cause = (
        f"`{code}` looped in Python over {_few(parts)} {_when(situation)}: it has no elements yet. {_runs(situation)}"
    )
    advice = "" if edit is not None else f"Loop with {tf}.map_fn(f, x), or take the parts with {tf}.unstack(x)."
    if edit is None and is_loss(situation):
        advice = "A loss needs a gradient, and NumPy and Python give none: compute it with TensorFlow's ops."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _as_python(situation: Situation) -> Edit | None:
    """The whole function in a py_function, where its loop is none that AutoGraph makes a graph of."""
    by = wrapping.entry(situation)[1]
    compiled = compiled_function(situation) if by == "Keras" else None
    wrap = wrapping.helper_call(situation) or (wrapping.mapped_function(situation) if by == "tf.data" else None)
    return compiled or (wrap.edit if wrap is not None else None)


def _comprehension(spot: Spot, node: ast.ListComp | ast.GeneratorExp, tf: str) -> Edit | None:
    loop = node.generators[0]
    if isinstance(loop.iter, ast.Call) and dotted(loop.iter.func).endswith(".unstack"):
        return None  # what failed is inside
    shape = shape_of(next(iter(symbolic_parts(loop.iter, spot).values())))
    if shape and shape[0] is not None:
        return wrapping.replace_expression(spot, loop.iter, f"{tf}.unstack({spot.source.text(loop.iter)})")
    if len(node.generators) > 1 or loop.ifs or not isinstance(loop.target, ast.Name):
        return None
    if any(isinstance(one, (ast.ListComp, ast.GeneratorExp)) for one in ast.walk(node.elt)):
        return None  # map_fn takes no lists of lists
    body, over = spot.source.text(node.elt), spot.source.text(loop.iter)
    outer = spot.source.parent(node)
    stacked = isinstance(outer, ast.Call) and dotted(outer.func).endswith(".stack") and len(outer.args) == 1
    piece = outer if stacked and isinstance(outer, ast.expr) else node
    return wrapping.replace_expression(spot, piece, f"{tf}.map_fn(lambda {loop.target.id}: {body}, {over})")


def _few(parts: dict[str, object]) -> str:
    return " and ".join(f"{name} ({described(one)})" for name, one in list(parts.items())[:2])


# -- Keras inputs -----------------------------------------------------------------------------------------------------


def _keras(
    situation: Situation, spot: Spot, statement: ast.stmt, value: ast.expr | None, parts: dict[str, object]
) -> Explanation:
    if value is None:
        return _explanation(situation, spot, statement, parts, None)
    keras = _keras_name(spot)
    outer = whole_call(situation, keras)
    if outer is not None:
        return _explanation(situation, spot, statement, parts, outer, False)
    if isinstance(value, ast.IfExp):
        texts = [spot.source.text(one) for one in (value.test, value.body, value.orelse)]
        edit = wrapping.replace_expression(spot, value, f"{keras}.ops.where({', '.join(texts)})")
        return _explanation(situation, spot, statement, parts, edit)
    touching = [one for one in calls(value) if symbolic_parts(one, spot) and not _layer(one, spot)]
    tops = [one for one in touching if not any(one is not other and _holds(other, one) for other in touching)]
    piece: ast.expr = tops[0] if len(tops) == 1 else value
    text = spot.source.text(piece)
    inputs = list(symbolic_parts(piece, spot)) or list(parts)
    sure = True
    if isinstance(piece, ast.Call) and dotted(piece.func).endswith(("py_function", "numpy_function")):
        shape = body_shape(piece, spot)
        if shape == ():
            advice = "It gives one number for a whole batch, and a model's outputs have a row for each sample: call it "
            advice += "in a function for compile(metrics=[...])."
            return _explanation(situation, spot, statement, parts, None, advice=advice)
        size = f"{inputs[0]}.shape" if shape is None else written(shape)
        text, sure = f"{alias(spot, 'tensorflow')}.ensure_shape({text}, {size})", False
    if isinstance(piece, ast.Call) and root_is(piece.func, spot, "numpy"):
        import sys

        ops = getattr(sys.modules.get("keras"), "ops", None)
        name = dotted(piece.func).partition(".")[2]
        if hasattr(ops, name):
            new = f"{keras}.ops.{name}{text[len(dotted(piece.func)) :]}"
            return _explanation(situation, spot, statement, parts, wrapping.replace_expression(spot, piece, new))
        text = (
            f"{alias(spot, 'tensorflow')}.numpy_function(lambda {', '.join(inputs)}: {text}, "
            f"[{', '.join(inputs)}], {alias(spot, 'tensorflow')}.float32)"
        )
    if any("." in name for name in inputs):
        return _explanation(
            situation, spot, statement, parts, None, advice=f"Wrap it in {keras}.layers.Lambda, or in a layer's call."
        )
    if len(inputs) == 1:
        new = f"{keras}.layers.Lambda(lambda {inputs[0]}: {text})({inputs[0]})"
    else:
        listed = ", ".join(inputs)
        new = f"{keras}.layers.Lambda(lambda both: (lambda {listed}: {text})(*both))([{listed}])"
    return _explanation(situation, spot, statement, parts, wrapping.replace_expression(spot, piece, new), sure)


def _keras_name(spot: Spot) -> str:
    for name, value in spot.module.items():
        called = str(getattr(value, "__name__", ""))
        if (
            not name.startswith("_")
            and (called == "keras" or called.endswith(".keras"))
            and not isinstance(value, type)
        ):
            return name
    return f"{alias(spot, 'tensorflow')}.keras"


def _layer(call: ast.Call, spot: Spot) -> bool:
    return root_is(call.func, spot, "keras") or ".layers." in dotted(call.func) or isinstance(call.func, ast.Call)


def _holds(node: ast.AST, other: ast.AST) -> bool:
    return any(one is other for one in ast.walk(node))


# -- failures whose tensor is not in the user's line ------------------------------------------------------------------


def _outside(situation: Situation, spot: Spot, statement: ast.stmt) -> Explanation | None:
    """Without a symbolic tensor in the user's line: reported only where the text itself names one."""
    if not _NAMED.search(situation.message):
        return None
    code = short(spot.source.text(statement).split("\n")[0], 44)
    cause = f"`{code}` ran once, {_when(situation)}, with a symbolic tensor, which had no value yet. {_runs(situation)}"
    tf = alias(spot, "tensorflow")
    return Explanation(
        RULE,
        spot.file,
        spot.line,
        cause,
        None,
        f"Use ops of {tf} there, or put it in {tf}.py_function(f, [x], Tout).",
        "likely",
    )


def elsewhere(situation: Situation) -> Explanation | None:
    """A library that is neither TensorFlow nor Keras failed on a symbolic tensor, in words that name none."""
    spot = situation.last
    statement = spot.source.statement(spot.line) if spot is not None else None
    if spot is None or statement is None or situation.body or not wrapping.entry(situation)[1]:
        return None
    if _CALLED_WRONG.search(situation.message) or _raised_by(situation, ("tensorflow", "keras")):
        return None
    if isinstance(statement, ast.Raise):
        return _refused(situation, spot, statement)
    if isinstance(statement, ast.Assert):  # the program's own
        return None
    value = wrapping.value_here(spot, statement)
    given: list[ast.expr] = []
    for one in ast.walk(value) if value is not None else ():
        if isinstance(one, ast.Call) and not _harmless(one, spot):
            given += [*one.args, *(keyword.value for keyword in one.keywords)]
        if isinstance(one, ast.Subscript) and not symbolic_parts(one.value, spot):
            given.append(one.slice)
    parts = {name: part for one in given for name, part in symbolic_parts(one, spot).items()}
    if not parts or any(is_keras(one) for one in parts.values()):
        return None
    edit, _ = _value_fix(situation, spot, statement, value, None)
    return _explanation(situation, spot, statement, parts, edit, sure=False)


def _refused(situation: Situation, spot: Spot, statement: ast.Raise) -> Explanation | None:
    """A check of the program's own, `if not isinstance(text, str): raise ...`, met a symbolic tensor."""
    check = next((one for one in spot.source.around(statement) if isinstance(one, ast.If)), None)
    checked = [one for one in calls(check.test) if dotted(one.func) == "isinstance" and one.args] if check else []
    parts = {name: part for one in checked for name, part in symbolic_parts(one.args[0], spot).items()}
    wrap = wrapping.mapped_function(situation) if parts else None
    if check is None or wrap is None or any(is_keras(one) for one in parts.values()):
        return None
    return _explanation(situation, spot, check, parts, wrap.edit, sure=False)


def _harmless(call: ast.Call, spot: Spot) -> bool:
    """Whether a call takes symbolic tensors as any value."""
    if dotted(call.func) in ("isinstance", "print", "type", "hasattr", "getattr", "id", "repr", "str", "zip", "dict"):
        return True
    return any(root_is(call.func, spot, name) for name in ("tensorflow", "keras"))


def _raised_by(situation: Situation, packages: tuple[str, ...]) -> bool:
    """Whether the innermost frame is one of these packages'."""
    traceback, name = situation.inner.__traceback__, ""
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", ""))
        traceback = traceback.tb_next
    return name.partition(".")[0] in packages


def _keys(spot: Spot, name: str) -> list[str]:
    """The texts by which the one function of a name takes its first argument apart, in their order."""
    found = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    names = parameters(found[0]) if len(found) == 1 else []
    items = [
        one for one in ast.walk(found[0])
        if isinstance(one, ast.Subscript) and dotted(one.value) in names[:1] and isinstance(one.slice, ast.Constant)
    ] if names else []  # fmt: skip
    items.sort(key=lambda one: (one.lineno, one.col_offset))
    return list(dict.fromkeys(one.slice.value for one in items if isinstance(one.slice.value, str)))  # type: ignore[attr-defined]


def arguments(situation: Situation) -> Explanation | None:
    """Dataset.map gives a function one argument for each component of a tuple: `f() takes 1 ... but 2 were given`."""
    found = re.search(
        r"(?:tf__)?(<lambda>|\w+)\(\) takes (\d+) positional arguments? but (\d+) (?:was|were) given", situation.message
    )
    missing = re.search(r"(?:tf__)?(<lambda>|\w+)\(\) missing (\d+) required positional argument", situation.message)
    spot = situation.last
    if spot is None or situation.kind != "TypeError" or not (found or missing):
        return None
    match = found or missing
    assert match is not None
    statement = spot.source.statement(spot.line)
    if statement is None:
        return None
    for one in calls(statement):
        if not isinstance(one.func, ast.Attribute) or one.func.attr not in ("map", "filter", "flat_map", "interleave"):
            continue
        given = one.args[0] if one.args else None
        name = dotted(given).rpartition(".")[2] if given is not None else ""
        if given is None or (name != match[1] and not isinstance(given, ast.Lambda)):
            continue
        text = spot.source.text(given)
        named = name or "the lambda"
        if found and found[2] == "1":
            edit = None
            if isinstance(given, ast.Lambda):
                listed = ", ".join([*parameters(given), *(f"other{index}" for index in range(2, int(found[3]) + 1))])
                if dotted(given.body) in parameters(given):  # it hands on the element as it is
                    listed = f"*{dotted(given.body)}"
                edit = wrapping.replace_expression(spot, given, f"lambda {listed}: {spot.source.text(given.body)}")
            else:
                keys, inner = _keys(spot, match[1]), "parts"
                if len(keys) == int(found[3]):
                    inner = f"dict(zip(({', '.join(map(repr, keys))}), parts))"
                edit = wrapping.replace_expression(spot, given, f"lambda *parts: {text}({inner})")
            cause = (
                f"Dataset.{one.func.attr} calls {named} with {found[3]} arguments, one for each component of the "
                f"dataset's tuples, but it takes 1."
            )
            return Explanation(RULE, spot.file, spot.line, cause, edit)
        if missing:
            cause = (
                f"Dataset.{one.func.attr} calls {named} with one argument, the whole element: only the components of a "
                f"tuple come as arguments of their own. The element is not a tuple."
            )
            return Explanation(
                RULE,
                spot.file,
                spot.line,
                cause,
                None,
                f"Make {named} take one argument, or zip the datasets: tf.data.Dataset.zip((a, b)).",
            )
    return None
