"""Python that needs values, put into a py_function: the mapped function, a helper's call, or one expression."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyfunc_debug.doctor.failures.graphs import into_variables
from pyfunc_debug.doctor.failures.graphs.state_changes import gives_back, in_python
from pyfunc_debug.doctor.failures.pastes import array_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.pastes.map_fn_signatures import declared as said_by
from pyfunc_debug.doctor.failures.pastes.map_fn_signatures import map_fn, with_signature
from pyfunc_debug.doctor.failures.pastes.texts_of_ops import values_of_texts
from pyfunc_debug.doctor.failures.reading import array_keys, shapes
from pyfunc_debug.doctor.failures.reading.dtypes import Guess, assignments
from pyfunc_debug.doctor.failures.reading.made_values import made_dtype, made_shape, made_value
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, indent_of, names, parameters
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    dtype_of,
    is_symbolic,
    lookup,
    root_is,
    shape_of,
    symbolic_parts,
    takes_tensors,
)
from pyfunc_debug.program.syntax import copied

_ELEMENTS = {"map", "filter", "take_while", "padded_map", "scan"}
"""Methods of a Dataset whose function gives values, not a Dataset."""
_SIZES = re.compile(
    r"resize|shape|crop|pad\b|pad\(|newaxis|None\]|expand_dims|squeeze|transpose|gray|fft|stft|hist|concat|stack"
)
"""Words of a function that may give another shape than it is given."""


@dataclass(frozen=True)
class Wrap:
    """Lines to paste, and whether every dtype in them is known rather than guessed."""

    edit: Edit
    sure: bool


def entry(situation: Situation) -> tuple[int, str]:
    """Where tracing began: the index of the traced function's frame among the spots, and who traced it."""
    spots = situation.spots
    for index in range(len(spots) - 1, -1, -1):
        if spots[index].by in ("tf.data", "Keras"):
            return index, spots[index].by
    for index, spot in enumerate(spots):
        if spot.generated:
            return index, (dataset_call(situation, index) and "tf.data") or "tf.function"
    if not spots:  # a SyntaxError has no frame
        return -1, ""
    return len(spots) - 1, spots[-1].by or ("tf.data" if dataset_call(situation, len(spots) - 1) else "")


def dataset_call(situation: Situation, index: int) -> tuple[Spot, ast.Call, ast.expr] | None:
    """The call `ds.map(f)` that traced the function of a frame: the frame around it, the call, and `f` in it."""
    spot = situation.spots[index]
    for outer in reversed(situation.spots[: index + 1]):
        if outer is spot and index > 0 and outer.file != situation.spots[index - 1].file:
            continue
        statement = outer.statement
        if statement is None:
            continue
        function = spot.function
        for one in calls(statement):
            if isinstance(one.func, ast.Attribute) and one.func.attr in (
                *_ELEMENTS,
                "flat_map",
                "interleave",
                "reduce",
            ):
                for given in (*one.args, *(keyword.value for keyword in one.keywords)):
                    if is_function(given, function, spot, outer):
                        return outer, one, given
    return None


def is_function(given: ast.expr, function: Function | None, spot: Spot, outer: Spot) -> bool:
    """Whether a call of the frame around is given the function of a frame: a lambda by its lines, others by name."""
    if isinstance(given, ast.Lambda):
        return outer.file == spot.file and given.lineno <= spot.line <= (given.end_lineno or given.lineno)
    name = getattr(function, "name", None)
    return name is not None and dotted(given).rpartition(".")[2] == name


def mapped_function(situation: Situation, traced: int | None = None) -> Wrap | None:
    """`ds.map(load)` as `ds.map(lambda path: tf.py_function(load, [path], tf.float32))`.

    Args:
      situation: The failure.
      traced: Index of the mapped function's frame among the spots, where tracing went on inside it.
    """
    index = entry(situation)[0] if traced is None else traced
    last = situation.spots[-1]
    found = dataset_call(situation, index)
    spot = situation.spots[index]
    function = spot.function
    if found is None or function is None or found[1].func.attr not in _ELEMENTS:  # type: ignore[attr-defined]
        return None
    if is_graph(function) or fails_with_values(situation, situation.spots[index:]):
        return None
    outer, call, given = found
    inputs = parameters(function)
    if not inputs or function.args.vararg is not None:
        return None
    inputs = _given_by_map(function, inputs, spot)
    packed = len(inputs) == 1 and _tensors(spot.value(inputs[0]))
    if not packed and not all(is_symbolic(spot.value(name)) for name in inputs):
        return None
    tf = alias(spot, "tensorflow")
    guess = Guess(spot)
    dtypes, many = guess.returned(function)
    if traced is not None and dtypes == [None] and last.function is not None:
        guess = Guess(last)
        dtypes, many = guess.returned(last.function)
    sure = all(dtype is not None for dtype in dtypes)
    if call.func.attr == "filter":  # type: ignore[attr-defined]
        dtypes, many, sure = [f"{tf}.bool"], False, True
    wanted = [dtype or f"{tf}.float32" for dtype in dtypes]
    tout = f"[{', '.join(wanted)}]" if many else wanted[0]
    text = outer.source.text(given)
    listed = ", ".join(inputs)
    if packed:  # a py_function takes a flat list
        if isinstance(given, ast.Lambda):
            text = f"({text})"
        body = f"lambda *flat: {text}({tf}.nest.pack_sequence_as({listed}, flat))"
        edit = _edit(outer, {given: f"lambda {listed}: {tf}.py_function({body}, {tf}.nest.flatten({listed}), {tout})"})
        return None if edit is None else Wrap(edit, sure)
    asking = [one for one in (function, last.function if traced is not None else None) if one is not None]
    if not any(map(_asks_for_values, asking)):  # it takes plain values: bytes, NumPy arrays
        text = f"lambda {listed}: ({given_body(given, outer)})" if isinstance(given, ast.Lambda) else text
        values = ", ".join(as_python(name, spot, function) for name in inputs)
        text = f"lambda {listed}: {text}({values})" if not isinstance(given, ast.Lambda) else text
    if guess.lists:
        text = f"lambda *x: {tf}.constant({f'({text})' if text.startswith('lambda') else text}(*x))"
    new = f"{tf}.py_function({text}, [{listed}], {tout})"
    if call.func.attr == "map":  # type: ignore[attr-defined]
        new, known = _shaped(new, shapes.guessed(function, spot) if traced is None else [], many, outer)
        sure = sure and known
    edit = _edit(outer, {given: f"lambda {listed}: {new}"})
    return None if edit is None else Wrap(edit, sure)


def _shaped(text: str, known: list[shapes.Shape | None], many: bool, spot: Spot) -> tuple[str, bool]:
    """A py_function with the shapes of what it gives, in a program that trains: Keras asks for them.

    Returns:
      The text, and whether there is no guess in it.
    """
    if not fits(spot):
        return text, True
    if not any(one is not None for one in known):
        return text, False
    tf = alias(spot, "tensorflow")
    written = ["None" if one is None else shapes.written(one) for one in known]
    if not many:
        return f"{tf}.ensure_shape({text}, {written[0]})", False
    return f"tuple({tf}.ensure_shape(y, size) for y, size in zip({text}, [{', '.join(written)}]))", False


def fits(spot: Spot) -> bool:
    """Whether the program trains with Keras."""
    return any(isinstance(one.func, ast.Attribute) and one.func.attr == "fit" for one in calls(spot.source.tree))


def around_layer(situation: Situation) -> int | None:
    """Where a Dataset's function called the layer that Keras traced: the index of its frame among the spots."""
    index, by = entry(situation)
    for outer in range(index - 1, -1, -1) if by == "Keras" else ():
        if situation.spots[outer].generated and dataset_call(situation, outer) is not None:
            return outer
    return None


def _given_by_map(function: Function, inputs: list[str], spot: Spot) -> list[str]:
    """The parameters that the dataset fills: without those at the end that kept their defaults."""
    filled = list(inputs)
    for _ in function.args.defaults:
        if len(filled) > 1 and not is_symbolic(spot.value(filled[-1])):
            filled.pop()
    return filled


def is_graph(function: Function) -> bool:
    """Whether a function is traced wherever it is called, in a py_function too."""
    return any(
        dotted(one.func if isinstance(one, ast.Call) else one).rpartition(".")[2] == "function"
        for one in getattr(function, "decorator_list", [])
    )


def fails_with_values(situation: Situation, inside: Sequence[Spot]) -> bool:
    """Whether a function fails as Python with values, too.

    It asks for a value as TensorFlow 1 does, its ops make tensors for a library of arrays, or text for a module of
    Python's, or a dict is asked for a tensor of several places.
    """
    for spot in inside:
        function, statement = spot.function, spot.statement
        if values_of_texts(spot) is not None:
            return True
        if function is not None and (
            any(map(asks_a_session, calls(function))) or array_calls.given_tensors(function, spot)
        ):
            return True
        value = value_here(spot, statement) if statement is not None else None
        if value is not None and array_keys.asked(situation, spot, value) is not None:
            return True
    return False


def asks_a_session(call: ast.Call) -> bool:
    """Whether a call asks for a value as TensorFlow 1 does, `x.eval(session=sess)`: no eager tensor has it."""
    named = {one.arg for one in call.keywords}
    return isinstance(call.func, ast.Attribute) and call.func.attr == "eval" and not call.args and named <= {"session"}


def _tensors(value: object) -> bool:
    """Whether it is a dict of symbolic tensors: an element of a dataset."""
    return type(value) is dict and bool(value) and all(is_symbolic(one) for one in value.values())


def given_body(given: ast.Lambda, outer: Spot) -> str:
    """A lambda's body, on the values of its arguments."""
    return values_of(given.body, outer, parameters(given))


def _asks_for_values(function: Function) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "numpy" for one in ast.walk(function))


def as_python(name: str, spot: Spot, function: ast.AST) -> str:
    """A tensor's value as Python takes it: text for text, where nothing in the function says that bytes are meant."""
    value = spot.value(name)
    text = dtype_of(value) == "string" and shape_of(value) == () and not means_bytes(function, spot)
    return f"{name}.numpy().decode()" if text else f"{name}.numpy()"


def means_bytes(function: ast.AST, spot: Spot) -> bool:
    """Whether something in a function says that bytes are meant where a tensor is text."""
    for one in ast.walk(function):
        if isinstance(one, ast.Constant) and isinstance(one.value, bytes):
            return True
        if isinstance(one, ast.Attribute) and one.attr in ("decode", "frombuffer", "tobytes", "BytesIO", "imdecode"):
            return True
        held = isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load)
        known = lookup(one, spot) if held else None
        if isinstance(known, (dict, set, frozenset, list, tuple)) and any(isinstance(key, bytes) for key in known):
            return True
    return False


def values_of(node: ast.expr, spot: Spot, inputs: list[str]) -> str:
    """An expression with `.numpy()` behind the names of tensors that Python or NumPy are given as they are."""

    class Values(ast.NodeTransformer):
        def visit_Attribute(self, one: ast.Attribute) -> ast.AST:
            return one if one.attr == "numpy" else self.generic_visit(one)

        def visit_Name(self, one: ast.Name) -> ast.AST:
            if one.id not in inputs:
                return one
            return ast.parse(as_python(one.id, spot, node), mode="eval").body

        def visit_Subscript(self, one: ast.Subscript) -> ast.AST:
            text = isinstance(one.value, ast.Name) and one.value.id in inputs and _is_list_of_texts(one.value.id)
            whole = one.slice.operand if isinstance(one.slice, ast.UnaryOp) else one.slice
            new = self.generic_visit(one)
            if not text or type(getattr(whole, "value", None)) is not int:
                return new
            return ast.parse(f"{ast.unparse(new)}.decode()", mode="eval").body

    def _is_list_of_texts(name: str) -> bool:
        value = spot.value(name)
        return dtype_of(value) == "string" and len(shape_of(value) or ()) == 1 and not means_bytes(node, spot)

    return ast.unparse(ast.fix_missing_locations(Values().visit(copied(node))))


def helper_call(situation: Situation) -> Wrap | None:
    """`histogram(image)` in the caller's line, as `tf.py_function(histogram, [image], tf.float32)`."""
    spot = situation.spots[-1]
    outer = situation.outer(spot)
    index, _ = entry(situation)
    function = spot.function
    if outer is None or function is None or situation.spots.index(spot) <= index or isinstance(function, ast.Lambda):
        return None
    if is_graph(function):
        return None
    statement = outer.statement
    if statement is None:
        return None
    for one in calls(statement):
        if dotted(one.func).rpartition(".")[2] != function.name or one.keywords or not one.args:
            continue
        inputs = [outer.source.text(given) for given in one.args]
        values = [symbolic_parts(given, outer) for given in one.args]
        if not all(values) or any(not is_symbolic(outer.value(text)) and ".shape" in text for text in inputs):
            return None
        guess = Guess(spot)
        dtypes, many = guess.returned(function)
        tf = alias(outer, "tensorflow")
        wanted = [dtype or f"{tf}.float32" for dtype in dtypes]
        tout = f"[{', '.join(wanted)}]" if many else wanted[0]
        called = dotted(one.func)
        if guess.lists:
            called = f"lambda *x: {tf}.constant({called}(*x))"
        whole = f"{tf}.py_function({called}, [{', '.join(inputs)}], {tout})"
        plain = whole
        whole, known = _shaped(plain, [] if many else shapes.guessed(function, spot), many, outer)
        target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is one else None
        same = isinstance(target, ast.Name) and target.id in inputs and not _SIZES.search(spot.source.code_of(function))
        if whole == plain and not many and isinstance(target, ast.Name) and same and fits(outer):
            whole, known = f"{tf}.ensure_shape({whole}, {target.id}.shape)", False  # changed in place, it may seem
        into = None if many else into_variables.of(one, outer)
        if into is not None:
            declared = dtypes[0] or f"{tf}.{into.dtype}"
            plain = f"{tf}.py_function({dotted(one.func)}, [{', '.join(inputs)}], {declared})"
            whole, known = into.taking(plain, declared, outer), True
        pieces: dict[ast.expr, str] = {one: whole}
        kept = _without_dicts(function)
        if kept is not None and many:
            body = f"lambda *x: {dotted(one.func)}(*x)[:{kept}]"
            pieces = {one: f"{tf}.py_function({body}, [{', '.join(inputs)}], [{', '.join(wanted[:kept])}])"}
            if not isinstance(target, ast.Tuple) or len(target.elts) != len(wanted):
                return None
            pieces[target] = ", ".join(outer.source.text(part) for part in target.elts[:kept])
        edit = _edit(outer, pieces)
        return None if edit is None else Wrap(edit, known and None not in dtypes[:kept])
    return None


def _without_dicts(function: Function) -> int | None:
    """How many values a function returns before the dicts that end its tuple: `return state, reward, done, {}`."""
    for one in ast.walk(function):
        if isinstance(one, ast.Return) and isinstance(one.value, ast.Tuple):
            kinds = [isinstance(part, ast.Dict) for part in one.value.elts]
            count = kinds.index(True) if True in kinds else 0
            return count if count and all(kinds[count:]) else None
    return None


def expression(situation: Situation) -> Wrap | None:
    """The part of the failing statement that needs values, as a py_function of the tensors in it."""
    spot = situation.spots[-1]
    statement = spot.statement
    value = None if statement is None else value_here(spot, statement)
    if statement is None or value is None or not symbolic_parts(value, spot):
        return None
    part = _with_what_it_needs(_needing_values(value, spot), value, spot)
    inputs = list(symbolic_parts(part, spot))
    wrapped = any(dotted(one.func).endswith(("py_function", ".gradient", ".jacobian")) for one in calls(part))
    is_range = isinstance(part, ast.Call) and dotted(part.func) == "range"  # what goes through it takes no tensor
    if wrapped or is_range or not all(name.isidentifier() for name in inputs):
        return None
    tf = alias(spot, "tensorflow")
    listed = ", ".join(inputs)
    function = spot.function
    own = {} if function is None else assignments(function)
    open_names = {name: made for name, made in own.items() if name not in inputs}  # those have values: the frame's
    dtype = Guess(spot, open_names).of(part)
    for_nothing = isinstance(statement, ast.Expr) and part is value and not isinstance(function, ast.Lambda)
    tout = "[]" if for_nothing else dtype or f"{tf}.float32"
    if isinstance(statement, (ast.If, ast.While)) and part is value:
        tout = f"{tf}.bool"
    declared = _of_map_fn(function, part, spot)
    asks = declared is None and tout != "[]"
    made = made_value(part, spot) if asks else None
    of_arrays = made_value(part, spot, arrays=True) if asks and made is None else None
    made = of_arrays if made is None else made
    kind = made_dtype(made)
    declared = declared or (None if kind is None else f"{tf}.{kind}")
    dtype = declared or dtype
    tout = declared or tout
    strings = [name for name in inputs if dtype_of(spot.value(name)) == "string"]
    inner = values_of(part, spot, strings) if strings else spot.source.text(part)
    keys = "unhashable" in situation.message
    arrays = any(array_calls.takes_arrays(one, spot) for one in calls(part))
    if (isinstance(part, ast.Subscript) or of_arrays is not None or keys or arrays) and not strings:
        inner = values_of(part, spot, inputs)
    parts = _unpacked(statement, part, made)
    if parts is not None:
        kinds = [made_dtype(one) for one in parts]
        tout = f"[{', '.join(f'{tf}.{one}' for one in kinds)}]"
        if None in kinds:
            return None
    elif isinstance(made, (list, tuple)):  # for one dtype, a py_function takes the first of a list, drops the rest
        inner = f"{tf}.constant({inner})"
    if arrays and dtype is None and tout == f"{tf}.float32":  # such libraries give what they are given
        tout = f"{tf}.{dtype_of(next(iter(symbolic_parts(part, spot).values())))}"
    if for_nothing and tout == "[]" and gives_back(part, spot) and isinstance(function, ast.FunctionDef):
        body = in_python(spot.source, function, statement, inputs, tf)
        return None if body is None else Wrap(replace(body, file=spot.file), True)
    new = f"{tf}.py_function(lambda {listed}: {inner}, [{listed}], {tout})"
    kept = array_calls.keeps_shape(part)
    if kept is not None:
        new = f"{tf}.ensure_shape({new}, {spot.source.text(kept)}.shape)"
    into = into_variables.of(part, spot)
    if into is not None:  # an assignment has no gradient
        tout = dtype or f"{tf}.{into.dtype}"
        plain = f"{tf}.py_function(lambda {listed}: {inner}, [{listed}], {tout})"
        plain = into_variables.as_numpy_function(part, inputs, dtype, spot) or plain
        new = into.taking(plain, dtype, spot)
    size = None
    if into is None and asks and entry(situation)[1] == "Keras":
        size = made_shape(lambda given: made_value(part, spot, of_arrays is not None, given))
    if size:
        new = f"{tf}.ensure_shape({new}, {shapes.written(size)})"
    beside = _float_beside(part, spot)
    if beside is not None and beside != tout and into is None:
        new = f"{tf}.cast({new}, {beside})"
    whole = spot.source.parent(part)
    constant = isinstance(whole, ast.Call) and dotted(whole.func).rpartition(".")[2] == "constant"
    alone = constant and len(whole.args) == 1 and not whole.keywords  # type: ignore[union-attr]
    edit = _edit(spot, {whole if alone and isinstance(whole, ast.expr) else part: new})
    mapping = map_fn(part, spot)
    given = {dtype_of(spot.value(one)) for one in inputs}
    if mapping is not None and said_by(mapping) is None and given != {tout.removeprefix(f"{tf}.")} and parts is None:
        edit = with_signature(spot, mapping, part, new, tout)
    known = dtype is not None and (into is not None or bool(size) or not fits(spot))  # Keras asks for the shape, too
    return None if edit is None else Wrap(edit, known or tout == "[]")


def _unpacked(statement: ast.stmt, part: ast.expr, made: object) -> list[object] | None:
    """The values that a statement gives to several names, `counts, edges = np.histogram(x)`; None for any other."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is part else None
    several = isinstance(target, (ast.Tuple, ast.List)) and isinstance(made, (list, tuple))
    fits = several and len(target.elts) == len(made)  # type: ignore[union-attr, arg-type]
    starred = several and any(isinstance(one, ast.Starred) for one in target.elts)  # type: ignore[union-attr]
    return list(made) if fits and not starred else None  # type: ignore[call-overload]


def _float_beside(part: ast.expr, spot: Spot) -> str | None:
    """The dtype of the floats that an expression is computed with: TensorFlow computes with two of one dtype only."""
    kinds, inner = set(), part
    for around in spot.source.around(part):
        if not isinstance(around, ast.BinOp):
            break
        other = around.left if around.right is inner else around.right
        if next(calls(other), None) is None:
            kinds |= {dtype_of(one) for one in symbolic_parts(other, spot).values()}
        inner = around
    kind = kinds.pop() if len(kinds) == 1 else ""
    return f"{alias(spot, 'tensorflow')}.{kind}" if "float" in kind else None


def _with_what_it_needs(part: ast.expr, value: ast.expr, spot: Spot) -> ast.expr:
    """An expression with what no tensor has of its result, with what goes through it, or what it is an index of."""
    parents = {child: one for one in ast.walk(value) for child in ast.iter_child_nodes(one)}
    while part is not value:
        outer = parents[part]
        if isinstance(outer, ast.Attribute) and outer.attr not in ("shape", "dtype"):
            called = parents.get(outer)
            part = called if isinstance(called, ast.Call) and called.func is outer else outer
        elif isinstance(outer, ast.expr) and (_asks_for_a_key(outer, part) or _is_index(outer, part, spot)):
            part = outer
        elif isinstance(outer, ast.comprehension) and outer.iter is part:  # Python goes through no tensor of a graph
            part = parents[outer]  # type: ignore[assignment]
        else:
            break
    return part


def _is_index(node: ast.AST, part: ast.expr, spot: Spot) -> bool:
    """Whether it is a part of the expression, or `array[part]` of no tensor."""
    of_tensor = isinstance(node, ast.Subscript) and node.value is not part and symbolic_parts(node.value, spot)
    return isinstance(node, ast.Subscript) and not of_tensor


def _asks_for_a_key(node: ast.AST, part: ast.expr) -> bool:
    """Whether it is `part in table`."""
    return isinstance(node, ast.Compare) and node.left is part and isinstance(node.ops[0], (ast.In, ast.NotIn))


def _of_map_fn(function: Function | None, part: ast.expr, spot: Spot) -> str | None:
    """What `tf.map_fn` says that its lambda returns, where the lambda is all that is computed."""
    call = spot.source.parent(function) if isinstance(function, ast.Lambda) and function.body is part else None
    if not isinstance(call, ast.Call) or not dotted(call.func).endswith("map_fn"):
        return None
    given = [one.value for one in call.keywords if one.arg in ("fn_output_signature", "dtype")]
    return spot.source.text(given[0]) if given and isinstance(given[0], ast.Attribute) else None


def value_of(statement: ast.stmt) -> ast.expr | None:
    """The expression that a statement computes; of a compound statement that of its header."""
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return statement.items[0].context_expr
    for name in ("value", "test", "iter", "exc"):
        found = getattr(statement, name, None)
        if isinstance(found, ast.expr):
            return found
    return None


def value_here(spot: Spot, statement: ast.stmt) -> ast.expr | None:
    """What was computed in a frame: the body of the lambda that it is, or the statement's expression."""
    function = spot.function
    if isinstance(function, ast.Lambda):
        wanted = [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]
        if wanted and all(name in spot.variables for name in wanted):
            return function.body
    value = value_of(statement)
    return value if value is None else _appended(value, spot) or value


def _appended(value: ast.expr, spot: Spot) -> ast.expr | None:
    """What `words.append(...)` is given, of a list that the function itself makes: the list stays Python's."""
    function = spot.function
    if function is None or not isinstance(value, ast.Call) or len(value.args) != 1:
        return None
    name, _, method = dotted(value.func).rpartition(".")
    own = type(spot.variables.get(name)) is list and name not in parameters(function)
    return value.args[0] if own and method == "append" else None


def _needing_values(value: ast.expr, spot: Spot) -> ast.expr:
    """The innermost expression that is a call outside of TensorFlow and holds every such call; else the whole."""
    foreign = [
        one for one in calls(value)
        if symbolic_parts(one, spot)
        and (array_calls.takes_arrays(one, spot) or not (_is_of_tensorflow(one, spot) or takes_tensors(one, spot)))
    ]  # fmt: skip
    tops = [one for one in foreign if not any(one is not other and _inside(one, other) for other in foreign)]
    asked = [] if tops else [one for one in ast.walk(value) if _asks_python(one, spot)]
    if asked and (len(asked) == 1 or isinstance(value, ast.Tuple)):
        return asked[0]  # type: ignore[return-value]  # a Subscript
    return tops[0] if len(tops) == 1 else value


def _is_of_tensorflow(call: ast.Call, spot: Spot) -> bool:
    return any(root_is(call.func, spot, name) for name in ("tensorflow", "keras"))


def _asks_python(node: ast.AST, spot: Spot) -> bool:
    """Whether it is `table[i]`, a part of Python's own dict, list or tuple, for a tensor."""
    held = lookup(node.value, spot) if isinstance(node, ast.Subscript) else None
    return isinstance(held, (dict, list, tuple)) and bool(symbolic_parts(node.slice, spot))  # type: ignore[attr-defined]


def _inside(node: ast.AST, other: ast.AST) -> bool:
    return any(one is node for one in ast.walk(other))


def _edit(spot: Spot, pieces: dict[ast.expr, str]) -> Edit | None:
    return edit_of(spot.file, spot.source.replaced(pieces))


def replace_expression(spot: Spot, node: ast.expr, text: str) -> Edit | None:
    """The lines of an expression with another in its place."""
    return _edit(spot, {node: text})


def converting(spot: Spot, function: ast.AST) -> str:
    """The decorator that makes AutoGraph convert a function.

    A `tf.function` keeps the graph that Keras had made when the layers of a layer, or of a model, had no weights yet:
    they are not trained by it.
    """
    tf = alias(spot, "tensorflow")
    of_layer = getattr(function, "name", "") == "call" and any(
        isinstance(one, ast.Call) and dotted(one.func).startswith("self.") for one in ast.walk(function)
    )
    of_layers = getattr(function, "name", "") == "call" and any(
        isinstance(one, ast.For) and "self" in names(one.iter) for one in ast.walk(function)
    )
    return f"@{tf}.autograph.to_graph" if of_layer or of_layers else f"@{tf}.function"


def above_function(spot: Spot, function: Function, line: str) -> Edit | None:
    """A line above a function's `def`, with its indentation."""
    if isinstance(function, ast.Lambda):
        return None
    return Edit(
        spot.file, function.lineno, function.lineno - 1, (indent_of(spot.source.lines[function.lineno - 1]) + line,)
    )


__all__ = [
    "Wrap", "above_function", "converting", "dataset_call", "entry", "expression", "helper_call", "mapped_function",
    "names", "replace_expression", "value_here", "value_of",
]  # fmt: skip
