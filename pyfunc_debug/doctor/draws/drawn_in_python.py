"""A draw that TensorFlow has no op for, as a numpy_function of a known shape and of the dtype that its line needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.draws.whole_names import is_whole
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names

_WHOLE = {
    "poisson", "binomial", "multinomial", "integers", "geometric", "hypergeometric", "negative_binomial", "zipf",
    "logseries", "randint", "randrange", "random_integers", "multivariate_hypergeometric", "getrandbits",
}  # fmt: skip
"""Draws that give whole numbers."""
_ITEMS = {"sample", "choice", "choices", "shuffle", "permutation", "permuted", "bytes", "randbytes"}
"""Draws of what they are given, of any kind."""
_PARAMETERS = {
    "standard_exponential": 0, "standard_cauchy": 0, "triangular": 3, "hypergeometric": 3, "noncentral_f": 3,
    **dict.fromkeys((
        "gamma", "beta", "binomial", "f", "gumbel", "laplace", "logistic", "lognormal", "negative_binomial", "normal",
        "uniform", "vonmises", "wald", "noncentral_chisquare", "integers", "randint", "multinomial",
        "multivariate_normal",
    ), 2),
}  # fmt: skip
"""How many parameters a draw has before its `size`, where it is not one."""
_VECTORS = {"multinomial": 1, "dirichlet": 0, "multivariate_normal": 0}
"""Draws that give vectors, and the argument that is as long."""
_DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64")


def in_python(facts: Facts, file: str | None, draw: code.Write, autograph: bool) -> Edit | None:
    """The line with the draw in a numpy_function; None where its line cannot take a tensor.

    Args:
      facts: The recording.
      file: The user's file.
      draw: The draw in it.
      autograph: Whether AutoGraph converts the function, so that a tensor may stand in its conditions.
    """
    found = _found(facts, file, draw)
    if found is None:
        return None
    own, call = found
    part, _ = _converted(own, call)
    text = _text(facts, file, own, call)
    return pastes.replaced(facts, file, {part: text}) if text and fits(own, part, autograph) else None


def in_words(facts: Facts, file: str | None, draw: code.Write, caller: str | None) -> str:
    """What to write where the line has no paste: the draw as an expression, or where Python may draw.

    Args:
      facts: The recording.
      file: The user's file.
      draw: The draw in it.
      caller: Where the function is called, as the end of a sentence; None where tf.data calls it.
    """
    found = _found(facts, file, draw)
    text = _text(facts, file, *found) if found is not None else ""
    if text and found is not None and fits(found[0], _converted(*found)[0], autograph=False):
        return f"{text}  # draws each time"
    if caller is None:
        tf = pastes.module(facts, file, "tensorflow") or "tf"
        return f"the ops of {tf}.random draw for each element; what only Python can do belongs in a {tf}.py_function"
    return f"{draw.text} {caller}, with what it draws as an argument"


def _found(facts: Facts, file: str | None, draw: code.Write) -> tuple[Source, ast.Call] | None:
    own = pastes.source(facts, file)
    calls = [one for one in pastes.around(own.tree, draw.line, ast.Call) if ast.unparse(one) == draw.text]
    last = draw.called.rpartition(".")[2]
    return None if len(calls) != 1 or last in _ITEMS or not draw.called else (own, calls[0])


def _converted(own: Source, call: ast.Call) -> tuple[ast.expr, str]:
    """A draw with what makes another dtype of it (`np.float32(...)`, `.astype(...)`), and the name of that dtype."""
    around = own.parent(call)
    if isinstance(around, ast.Attribute) and around.attr == "astype":
        outer = own.parent(around)
        given = outer.args[:1] if isinstance(outer, ast.Call) and not outer.keywords else []
        kinds = [ast.unparse(one).rpartition(".")[2].strip("'\"") for one in given]
        if isinstance(outer, ast.Call) and kinds and kinds[0] in _DTYPES:
            return outer, kinds[0]
    kind = dotted(around.func).rpartition(".")[2] if isinstance(around, ast.Call) and not around.keywords else ""
    return (around, kind) if isinstance(around, ast.Call) and kind in _DTYPES else (call, "")


def _text(facts: Facts, file: str | None, own: Source, call: ast.Call) -> str:
    """The expression; "" where what it would read changes until it runs."""
    part, kind = _converted(own, call)
    function = own.function(call.lineno)
    shape = _shape(facts, file, own, call)
    if function is None or shape is None or _changes(own, function, part):
        return ""
    tf = pastes.module(facts, file, "tensorflow") or "tf"
    last = dotted(call.func).rpartition(".")[2]
    given = kind or ("int64" if last in _WHOLE else "float64")
    text = f"{tf}.numpy_function(lambda: {own.text(part)}, [], {tf}.{given})"
    text = f"{tf}.ensure_shape({text}, {shape})"
    if kind:
        return text
    like = next(_beside(own, function, part), "")
    wanted = f"{like}.dtype" if like else "" if given == "int64" else f"{tf}.float32"
    return f"{tf}.cast({text}, {wanted})" if wanted else text


def _shape(facts: Facts, file: str | None, own: Source, call: ast.Call) -> str | None:
    """The shape of what is drawn, as an expression; None where the file has no name for NumPy to ask."""
    called, words = dotted(call.func), {one.arg: one.value for one in call.keywords}
    head, _, last = called.rpartition(".")
    if head in ("random", pastes.module(facts, file, "random")):
        return "[]"
    count, numpy = _PARAMETERS.get(last, 1), pastes.module(facts, file, "numpy")
    size = words.get("size", call.args[count] if count < len(call.args) else None)
    values = [*call.args[:count], *(one for name, one in words.items() if name != "size")]
    if last in _VECTORS:
        return f"{numpy}.shape({own.text(values[_VECTORS[last]])})" if numpy and size is None else None
    if size is None:
        values = [one for one in values if not code.is_number(one)]
        texts = [own.text(one) for one in values]
        broadcast = f"{numpy}.shape({texts[0]})" if len(texts) == 1 else f"{numpy}.broadcast({', '.join(texts)}).shape"
        return (broadcast if numpy else None) if values else "[]"
    if isinstance(size, (ast.Tuple, ast.List)) or (isinstance(size, ast.Attribute) and size.attr == "shape"):
        return own.text(size)
    if is_whole(own, size):
        return f"[{own.text(size)}]"
    return f"{numpy}.atleast_1d({own.text(size)})" if numpy else None


def _changes(own: Source, function: code.Definition, part: ast.expr) -> bool:
    """Whether a name of the draw is given again after it, or in a loop around it: the lambda would read the last."""
    looped = any(isinstance(one, (ast.For, ast.While, *_COMPREHENSIONS)) for one in own.around(part))
    for one in code.own_nodes(function):
        stored = isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and one.id in names(part)
        if stored and (looped or getattr(one, "lineno", 0) >= part.lineno):
            return True
    return False


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _uses(own: Source, function: code.Definition, part: ast.expr) -> list[ast.expr]:
    """The draw, or where it has a name: the draw and the places that read the name."""
    statement = own.statement(part.lineno)
    made = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is part else None
    if not isinstance(made, ast.Name):
        return [part]
    return [part, *(
        one for one in code.own_nodes(function)
        if isinstance(one, ast.Name) and one.id == made.id and isinstance(one.ctx, ast.Load)
    )]  # fmt: skip


def _beside(own: Source, function: code.Definition, part: ast.expr) -> Iterator[str]:
    """Names of tensors that the draw is computed with."""
    tensors = _tensors(function)
    for use in _uses(own, function, part):
        for one in own.around(use):
            if not isinstance(one, (ast.BinOp, ast.UnaryOp)):
                break
            if isinstance(one, ast.BinOp):
                sides = [side for side in (one.left, one.right) if use not in ast.walk(side)]
                for side in sides:
                    known = [
                        name for name in names(side) if tensors.get(name, part.lineno) < part.lineno
                        and not any(isinstance(inner, (ast.Call, ast.Subscript)) for inner in ast.walk(side))
                    ]  # fmt: skip
                    yield from known


def cast_beside(own: Source, part: ast.expr, text: str) -> str:
    """A whole number of the graph as what its place computes with: `tf.cast(..., x.dtype)` beside the tensor `x`.

    Args:
      own: The file.
      part: What is drawn, there.
      text: What stands in its place.
    """
    function = own.function(part.lineno)
    uses = _uses(own, function, part) if function is not None else []
    if function is None or any(not isinstance(own.parent(one), (ast.BinOp, ast.UnaryOp)) for one in uses[1:] or uses):
        return text
    like = next(_beside(own, function, part), "")
    return f"tf.cast({text}, {like}.dtype)" if like else text


def _tensors(function: code.Definition) -> dict[str, int]:
    """Names of a function that hold tensors, and the lines that give them: parameters, and what is made of these."""
    given = [*function.args.posonlyargs, *function.args.args]
    given = given[: len(given) - len(function.args.defaults)]
    found = {one.arg: 0 for one in given if one.arg not in ("self", "training", "mask")}
    for line, target, value in _assigned(function):
        part = isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and value.value.id in found
        made = isinstance(value, (ast.BinOp, ast.Call)) and set(names(value)) & {*found, "tf"}
        found |= {target: line} if (part or made) and target not in found else {}
    return found


def _assigned(function: code.Definition) -> Iterator[tuple[int, str, ast.expr]]:
    """Lines, names and values of assignments: of `a, b = x["a"], x["b"]` and of `a, b = x` each alone."""
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Assign):
            continue
        targets, values = [one.targets[0]], [one.value]
        if isinstance(one.targets[0], ast.Tuple) and isinstance(one.value, ast.Tuple):
            targets, values = one.targets[0].elts, one.value.elts
        elif isinstance(one.targets[0], ast.Tuple) and isinstance(one.value, ast.Name):
            targets = one.targets[0].elts
            values = [ast.Subscript(one.value, ast.Constant(place), ast.Load()) for place in range(len(targets))]
        for target, value in zip(targets, values):
            if isinstance(target, ast.Name):
                yield one.lineno, target.id, value


def fits(own: Source, part: ast.expr, autograph: bool) -> bool:
    """Whether every place that reads what is drawn can read a tensor: no index of Python's, no call of NumPy's.

    Args:
      own: The file.
      part: The draw.
      autograph: Whether AutoGraph converts the function: then a tensor may be asked by `if`, and counted by `range`.
    """
    function = own.function(part.lineno)
    uses = _uses(own, function, part) if function is not None else [part]
    return all(_fits(own, one, function, autograph) for one in (uses[1:] or uses))


def _fits(own: Source, use: ast.expr, function: code.Definition | None, autograph: bool) -> bool:
    below: ast.AST = use
    tensors = _tensors(function) if function is not None else {}
    for one in own.around(use):
        if isinstance(one, ast.Call) and below is not one.func:
            head, _, name = dotted(one.func).rpartition(".")
            if not head and name in _BUILTINS:
                return autograph
            if name == "partial":
                below = one
                continue
            package = imports(own).get(head.partition(".")[0], "").partition(".")[0]
            return package in ("", "tensorflow", "keras") or name in _DTYPES
        if isinstance(one, ast.Subscript) and below is not one.value:
            known = isinstance(one.value, ast.Name) and tensors.get(one.value.id, use.lineno) < use.lineno
            return known and isinstance(one.ctx, ast.Load)
        if isinstance(one, (ast.FormattedValue, *_COMPREHENSIONS)):
            return False
        asked = isinstance(one, (ast.If, ast.While, ast.IfExp)) and below is one.test
        looped = isinstance(one, ast.For) and below is one.iter
        if asked or looped or isinstance(one, ast.BoolOp) or _is_not(one):
            return autograph and not (looped and isinstance(below, ast.Name))
        if isinstance(one, ast.stmt):
            return True
        below = one
    return True


def _is_not(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


_BUILTINS = {"range", "int", "float", "len", "bool", "enumerate", "zip", "min", "max", "any", "all"}
"""Functions of Python's for which AutoGraph has ops."""
