"""The node behind a failure: its body, the line that calls py_function, and what its calls were given and returned."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.code import all_nodes
from pyfunc_debug.doctor.failures.reading.dtypes import Guess
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, Source, as_read, begins, dotted, parameters, read
from pyfunc_debug.doctor.failures.reading.symbols import Described
from pyfunc_debug.records import FROM_GENERATOR

_TOKEN = re.compile(r"\bpyfunc_\d+\b")
NODE_CALLS = frozenset(("py_function", "numpy_function", "py_func", "eager_py_func"))
_DTYPE = re.compile(r"(?:b?float|q?u?int|complex)\d*|bool_?|str(?:ing)?_?|double|half|variant|resource|object_?")
_COLUMNS = "SELECT id, token, kind, body, file, line, stack, tout, paths FROM node"


@dataclass(frozen=True)
class Node:
    """A node of the recording.

    Attributes:
      body: The body's name.
      file, line: Where the body is defined.
      site: File and line of the call of py_function.
      tout: The dtypes that it declares.
    """

    id: int
    token: str
    kind: str
    body: str
    file: str | None
    line: int | None
    site: tuple[str, int] | None
    tout: tuple[str, ...]
    paths: tuple[str, ...]

    @property
    def called(self) -> str:
        """The body's name in a sentence."""
        return "the lambda" if self.body.endswith("<lambda>") else self.body

    @property
    def opening(self) -> str:
        """The same where a sentence begins."""
        return "The lambda" if self.body.endswith("<lambda>") else self.body

    @property
    def source(self) -> Source:
        """The file of the call of py_function."""
        return read(self.site[0]) if self.site else Source([])

    def call(self) -> ast.Call | None:
        """The call `tf.py_function(body, [x], Tout)`."""
        return None if self.site is None else py_call(self.source, self.site[1])

    def function(self) -> Function | None:
        """The body's definition."""
        if self.file is None or self.line is None:
            return None
        source = read(self.file)
        for one in ast.walk(source.tree):
            if isinstance(one, ast.FunctionDef) and self.line in (one.lineno, *(d.lineno for d in one.decorator_list)):
                return one
        call = self.call()
        given = argument(call, 0, "func") if call is not None else None
        if isinstance(given, ast.Lambda):
            return given
        found = [one for one in ast.walk(source.tree) if isinstance(one, ast.Lambda) and one.lineno == self.line]
        return found[0] if len(found) == 1 else None


def tail(call: ast.Call) -> ast.expr:
    """`.map(encode, num_parallel_calls=2)` of a call, as a place in the text."""
    assert isinstance(call.func, ast.Attribute)
    before, place = call.func.value, ast.Name("tail", ast.Load())
    place.lineno, place.col_offset = before.end_lineno or before.lineno, before.end_col_offset or 0
    place.end_lineno, place.end_col_offset = call.end_lineno, call.end_col_offset
    return place


def argument(call: ast.Call, index: int, name: str) -> ast.expr | None:
    """An argument of a call by position or name."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[index] if len(call.args) > index else None


def is_none(node: ast.expr) -> bool:
    """Whether an expression is None, written out."""
    return isinstance(node, ast.Constant) and node.value is None


def py_call(source: Source, line: int) -> ast.Call | None:
    """The call of py_function or numpy_function that a line holds."""
    calls = source.calls_of(NODE_CALLS)
    here = [one for one in calls if one.lineno <= line <= (one.end_lineno or one.lineno)]
    here = here or [one for one, _ in source.mapped if one.lineno <= line <= (one.end_lineno or one.lineno)]
    if here:
        return here[-1]
    for one in all_nodes(source.tree) if calls else ():  # AutoGraph knows the first line of a lambda only
        if isinstance(one, ast.Lambda) and one.lineno == line:
            here = [call for call in calls if call in ast.walk(one)]
    return here[0] if len(here) == 1 else None


def writes_dtypes(tout: ast.expr | None, spot: Spot | None) -> bool:
    """Whether a call says its dtypes itself, so that others can be written in their place: not a list made elsewhere.

    A name of the module is one where it stands for one dtype.
    """
    if isinstance(tout, (ast.List, ast.Tuple)):
        return all(writes_dtypes(one, spot) for one in tout.elts)
    if isinstance(tout, ast.BinOp):  # `[tf.float32] * 2`
        return all(isinstance(one, ast.Constant) or writes_dtypes(one, spot) for one in (tout.left, tout.right))
    if isinstance(tout, ast.Dict):
        return all(writes_dtypes(one, spot) for one in tout.values)
    if isinstance(tout, ast.Call):
        if dotted(tout.func).endswith("nest.flatten") and len(tout.args) == 1:
            return writes_dtypes(tout.args[0], spot)
        return dotted(tout.func).endswith(("Spec", "dtype"))
    if isinstance(tout, (ast.Name, ast.Attribute)):
        if _DTYPE.fullmatch(dotted(tout).rpartition(".")[2]):
            return True
        value = spot.module.get(tout.id) if isinstance(tout, ast.Name) and spot is not None else None
        return isinstance(value, type) or type(value).__name__ == "DType"
    return isinstance(tout, ast.Constant)


def other_touts(node: Node, situation: Situation) -> tuple[bool, bool]:
    """Whether the line of a node's call, and whether its body, have other nodes with other dtypes in Tout."""
    others = [one for one in user_nodes(situation) if one.id != node.id and one.tout != node.tout]
    body = (node.file, node.line)
    return any(one.site == node.site for one in others), any((one.file, one.line) == body for one in others)


def _node(row: Any, situation: Situation) -> Node:
    frames = situation.rows("SELECT frames FROM stack WHERE id = ?", (row[6],)) if row[6] is not None else []
    site = None
    if frames:
        for its_file, its_line, *_ in reversed(json.loads(frames[0][0])):
            file, line = as_read(its_file, its_line)
            if py_call(read(file), line) is not None:
                site = file, line
                break
    file, line = (row[4], row[5]) if row[4] is None or row[5] is None else as_read(row[4], row[5])
    return Node(row[0], row[1], row[2], row[3], file, line, site, tuple(json.loads(row[7])), tuple(json.loads(row[8])))


def user_nodes(situation: Situation, scratch: bool = False) -> list[Node]:
    """The recording's nodes with bodies of the user's, newest first; or those that Keras made to ask for shapes."""
    where = "origin <> 'user'" if scratch else "origin = 'user'"
    rows = situation.rows(f"{_COLUMNS} WHERE {where} ORDER BY id DESC LIMIT 50")
    return [_node(row, situation) for row in rows]


def user_generators(situation: Situation) -> list[Node]:
    """The nodes by which `Dataset.from_generator` runs the user's generators, newest first."""
    rows = situation.rows(
        f"{_COLUMNS} WHERE function IN (SELECT id FROM function WHERE name = ?) ORDER BY id DESC", (FROM_GENERATOR,)
    )
    return [_node(row, situation) for row in rows]


def failed_node(situation: Situation) -> Node | None:
    """The node that a failure's text names, or whose call failed last with an exception of its type.

    What earlier programs of the process left, as generators of a notebook's cells before, may fail in between.
    """
    tokens = _TOKEN.findall(situation.message) or _TOKEN.findall(situation.text)
    for token in tokens:
        rows = situation.rows(f"{_COLUMNS} WHERE token = ?", (token,))
        if rows:
            return _node(rows[0], situation)
    rows = situation.rows(
        f"{_COLUMNS} WHERE origin = 'user' AND id = (SELECT c.node FROM call c JOIN node n ON n.id = c.node "
        "LEFT JOIN failure f ON f.id = c.failure ORDER BY c.status <> 'error', f.type IS NOT ?, n.file IS NULL, "
        "c.id DESC LIMIT 1)",
        (situation.kind,),
    )
    return _node(rows[0], situation) if rows else None


def failed_gradient(situation: Situation) -> Node | None:
    """The node whose gradient failed last of all calls: its body is not to blame for what TensorFlow says."""
    failed = situation.rows(
        "SELECT c.node, c.kind FROM call c JOIN node n ON n.id = c.node WHERE c.status = 'error' AND n.origin = 'user' "
        "ORDER BY c.id DESC LIMIT 1"
    )
    if not failed or failed[0][1] != "gradient":
        return None
    return _node(situation.rows(f"{_COLUMNS} WHERE id = ?", (failed[0][0],))[0], situation)


def op_of_arrays(situation: Situation) -> str:
    """What gives the failed body NumPy arrays, as the user wrote it: "a numpy_function", or the older "a py_func"."""
    node = failed_node(situation)
    call = node.call() if node is not None and node.kind == "py_func_stateless" else None
    written = dotted(call.func).endswith("py_func") if call is not None else False
    return "a py_func" if written or (node is not None and node.kind == "py_func") else "a numpy_function"


def inputs_of(node: Node, situation: Situation) -> dict[str, Described]:
    """The body's parameters with dtype and shape of the newest call's inputs."""
    rows = situation.rows(
        "SELECT path, dtype, shape FROM value WHERE role = 'input' AND call = "
        "(SELECT max(id) FROM call WHERE node = ? AND kind = 'forward') ORDER BY position",
        (node.id,),
    )
    return {path: Described(dtype, tuple(json.loads(shape)) if shape else None) for path, dtype, shape in rows}


def traced_inputs(node: Node, situation: Situation) -> list[tuple[str, tuple[int | None, ...] | None]]:
    """Dtypes and shapes of what a node is given, as they were known at trace: also of a graph that is gone."""
    rows = situation.rows(
        "SELECT dtype, shape FROM static_shape WHERE node = ? AND role = 'input' ORDER BY position", (node.id,)
    )
    return [(dtype, None if text is None else tuple(json.loads(text))) for dtype, text in rows]


def written_inputs(node: Node, situation: Situation) -> dict[str, int]:
    """Whole numbers that the program's text gives the body through inp: by the body's parameters."""
    call, function = node.call(), node.function()
    inp = argument(call, 1, "inp") if call is not None else None
    if function is None or not isinstance(inp, (ast.List, ast.Tuple)) or node.site is None:
        return {}
    spot, found = site_spot(node, situation), {}
    for name, one in zip(parameters(function), inp.elts):
        value = as_written(one, spot) if spot is not None else None
        if type(value) is int:
            found[name] = value
    return found


def as_written(node: ast.expr, spot: Spot, deep: int = 0) -> Any:
    """What an expression is by the text alone: a constant, a name of the module, or the argument of the only call."""
    if isinstance(node, ast.Constant):
        return node.value
    if not isinstance(node, ast.Name) or deep > 2:
        return None
    for function in (spot.function, *_functions(spot)):
        if function is None or node.id not in (names := parameters(function)):
            continue
        own = getattr(function, "name", "<lambda>")
        called = [
            one for one in ast.walk(spot.source.tree)
            if isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] == own
        ]  # fmt: skip
        given = argument(called[0], names.index(node.id), node.id) if len(called) == 1 else None
        if given is None and len(called) == 1:
            defaults = dict(zip(reversed(names), reversed(function.args.defaults)))
            given = defaults.get(node.id)
        return None if given is None else as_written(given, spot, deep + 1)
    return spot.module.get(node.id)


def _functions(spot: Spot) -> list[Function]:
    """The functions around a line, innermost first."""
    inner = spot.function
    around = [] if inner is None else spot.source.around(inner)
    return [one for one in around if isinstance(one, (ast.FunctionDef, ast.Lambda))]


def owner(node: Node, situation: Situation) -> dict[str, Any]:
    """`self` of a body that is a method, where the frames know one object that has it. Runs nothing."""
    function = node.function()
    if not isinstance(function, ast.FunctionDef) or not function.args.args or function.args.args[0].arg != "self":
        return {}
    found = {}
    for spot in situation.spots:
        for value in (*spot.variables.values(), *spot.module.values()):
            method = getattr(type(value), "__dict__", {}).get(function.name)
            own = getattr(method, "__code__", None)
            if own is not None and begins(own) == (node.file, node.line):
                found[id(value)] = value
    return {"self": next(iter(found.values()))} if len(found) == 1 else {}


def body_spot(node: Node, situation: Situation, also: Mapping[str, Any] | None = None) -> Spot | None:
    """A frame of the body as it would be, with what is known of its inputs."""
    if node.file is None or node.line is None:
        return None
    module = next((spot.module for spot in situation.spots if spot.file == node.file), None)
    module = module or next((spot.module for spot in situation.spots), {})
    return Spot(node.file, node.line, {**inputs_of(node, situation), **(also or {})}, module, "")


def returned(node: Node, situation: Situation) -> tuple[list[str | None], bool, Spot] | None:
    """A guess at the dtypes that the body returns; see `Guess.returned`."""
    function, spot = node.function(), body_spot(node, situation)
    if function is None or spot is None:
        return None
    return (*Guess(spot).returned(function), spot)


def body_frame(node: Node, situation: Situation) -> Spot | None:
    """The user's innermost frame, if it is the body's or was called by it; None where no frame of the body is left."""
    function = node.function()
    name = node.body.rpartition(".")[2]
    for spot in situation.spots:
        if spot.file != node.file:
            continue
        if spot.code == name or (function is not None and spot.function is function):
            return situation.last
    return None


def return_values(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    """The expressions that a function returns."""
    from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes

    return [one.value for one in own_nodes(function) if isinstance(one, ast.Return) and one.value is not None]


def return_value(function: Function) -> ast.expr | None:
    """The expression that a function returns, if there is one."""
    if isinstance(function, ast.Lambda):
        return function.body
    found = return_values(function)
    return found[0] if len(found) == 1 else None


def local_function(given: ast.expr | None, spot: Spot) -> Function | None:
    """A function given as an argument: a lambda, or one of the file; of two, that of the running function's own."""
    if isinstance(given, ast.Lambda):
        return given
    every = (one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef))
    found = [one for one in every if one.name == dotted(given)]
    inside = [one for one in found if spot.function is not None and spot.function in spot.source.around(one)]
    return (inside or found)[0] if len(inside or found) == 1 else None


def site_spot(node: Node, situation: Situation) -> Spot | None:
    """A frame at the call of py_function, for names and edits."""
    if node.site is None:
        return None
    module = next((spot.module for spot in situation.spots if spot.file == node.site[0]), None)
    module = module or next((spot.module for spot in situation.spots), {})
    return Spot(node.site[0], node.site[1], {}, module, "")


__all__ = [
    "Node", "argument", "as_written", "body_frame", "body_spot", "failed_gradient", "failed_node", "inputs_of",
    "op_of_arrays", "other_touts", "owner", "parameters", "py_call", "return_value", "return_values", "returned",
    "site_spot", "traced_inputs", "user_generators", "user_nodes", "writes_dtypes", "written_inputs",
]  # fmt: skip
