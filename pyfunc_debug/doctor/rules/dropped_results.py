"""`np.fliplr(img)` as a statement: it gives a new array, which nothing keeps, and leaves `img` as it was.

Only functions and methods that are known to change nothing are read so: not `arr.sort()`, nor what is given an `out`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies import giving_functions
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.bodies.run_functions import Ran, functions_by_name, functions_that_ran
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Finding

NAMES = ("dropped-result",)
_OF_ARRAYS = ("astype", "reshape", "transpose", "clip", "flatten", "ravel", "squeeze", "swapaxes")
"""Methods that give another array."""
_NUMPY = {
    "clip": 3, "fliplr": 1, "flipud": 1, "flip": 2, "rot90": 3, "transpose": 2, "reshape": 3, "squeeze": 2,
    "expand_dims": 2, "pad": 9, "roll": 3, "moveaxis": 3, "swapaxes": 3, "rollaxis": 3, "nan_to_num": 4, "tile": 2,
    "repeat": 3, "ravel": 2, "where": 3, "round": 2, "sqrt": 1, "log": 1, "log1p": 1, "exp": 1, "abs": 1,
    "add": 2, "subtract": 2, "multiply": 2, "divide": 2, "maximum": 2, "minimum": 2, "sort": 4,
    "random.permutation": 1,
}  # fmt: skip
"""Functions that give another array, by how many arguments they have without `out`."""
_OPENCV = {
    "resize": 2, "flip": 2, "rotate": 2, "cvtColor": 2, "GaussianBlur": 3, "medianBlur": 2, "blur": 2,
    "warpAffine": 3, "warpPerspective": 3, "bitwise_not": 1, "equalizeHist": 1,
}  # fmt: skip
_TENSORFLOW = frozenset({
    "abs", "add", "cast", "clip_by_value", "concat", "divide", "exp", "expand_dims", "maximum", "minimum", "multiply",
    "one_hot", "pad", "repeat", "reshape", "reverse", "roll", "sqrt", "squeeze", "subtract", "tile", "transpose",
    "where",
})  # fmt: skip
_OF_IMAGES = (
    "adjust_", "central_crop", "convert_image_dtype", "crop_", "flip_", "grayscale_to_rgb", "hsv_to_rgb", "pad_to_",
    "per_image_standardization", "random_", "resize", "rgb_to_", "rot90", "stateless_random_", "transpose",
)  # fmt: skip
_DTYPES = ("float16", "float32", "float64", "int", "uint")
_OF_LAYERS = frozenset({"dropout", "relu", "sigmoid", "softmax", "tanh", "l2_normalize"})


@dataclass(frozen=True)
class _Dropped:
    """A statement, its call, what the result was meant to be, and of the user's own functions how many parts it has."""

    statement: ast.Expr
    call: ast.expr
    owner: ast.expr
    what: str
    parts: int = 0

    @property
    def owners(self) -> list[ast.expr]:
        """What stays as it was: what a function of the user's was given, if it gives as many parts."""
        given = self.call.args if isinstance(self.call, ast.Call) else []
        return given if self.parts > 1 and self.parts == len(given) else [self.owner]


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a function."""
    seen: set[tuple[str, int]] = set()
    for ran in functions_that_ran(facts):
        if isinstance(ran.function, ast.Lambda):
            continue
        own = pastes.source(facts, ran.file)
        known, named = imports(own), functions_by_name(own.tree)
        found = [
            one for statement in code.own_nodes(ran.function)
            if isinstance(statement, ast.Expr) and (ran.file, statement.lineno) not in seen
            and (one := _dropped(own, known, named, ran.function, statement, statement.value)) is not None
        ]  # fmt: skip
        seen |= {(ran.file, one.statement.lineno) for one in found}
        if found:
            yield _finding(facts, ran, own, found)


def _dropped(
    own: Source,
    known: dict[str, str],
    named: dict[str, ast.FunctionDef],
    function: Definition,
    statement: ast.Expr,
    call: ast.expr,
) -> _Dropped | None:
    """A result that nothing keeps; None for what may do more, or is called to see whether it fails."""
    if any(isinstance(one, (ast.Try, ast.With)) for one in _inside(own, statement, function)):
        return None
    if not isinstance(call, ast.Call):
        return _dropped_term(function, statement, call)
    names = [one.arg for one in call.keywords]
    if any(one in ("out", "dst", None) for one in names) or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    head, _, rest = dotted(call.func).partition(".")
    full = f"{known[head]}.{rest}".rstrip(".") if head in known and head not in code.local_names(function) else ""
    what = _made_by(full, len(call.args)) if full else ""
    if what:
        return _Dropped(statement, call, call.args[0], what) if call.args else None
    parts = giving_functions.parts_given(own, call, named) if not full and call.args else None
    if parts is not None:
        return _Dropped(statement, call, call.args[0], "what it makes", len(parts))
    method = call.func
    if full or not isinstance(method, ast.Attribute) or method.attr not in _OF_ARRAYS:
        return None
    owner = method.value
    if not isinstance(owner, ast.Name) or (method.attr == "clip" and len(call.args) > 2):
        return None
    own_methods = {one.name for one in code.all_nodes(own.tree) if isinstance(one, ast.FunctionDef)}
    if method.attr in own_methods or owner.id not in code.local_names(function):
        return None
    return _Dropped(statement, call, owner, "a new array")


def _dropped_term(function: Definition, statement: ast.Expr, term: ast.expr) -> _Dropped | None:
    """`x[:, ::-1]` and `x * 2` as a statement, of an array of the function's."""
    owner = term.value if isinstance(term, ast.Subscript) else term.left if isinstance(term, ast.BinOp) else None
    if not isinstance(owner, ast.Name) or owner.id not in code.local_names(function):
        return None
    if isinstance(term, ast.Subscript) and not any(True for _ in pastes.walk(term.slice, ast.Slice)):
        return None  # d["key"] may be there to fail
    return _Dropped(statement, term, owner, "a view of it" if isinstance(term, ast.Subscript) else "a new array")


def _inside(own: Source, statement: ast.stmt, function: Definition) -> Iterator[ast.AST]:
    """What is around a statement in its function."""
    for one in own.around(statement):
        if one is function:
            return
        yield one


def _made_by(full: str, count: int) -> str:
    """What a function gives that changes nothing; "" for others."""
    head, _, rest = full.partition(".")
    rest = rest.removeprefix("compat.v2.")
    if head == "numpy" and rest in _NUMPY:
        return "a new array" if count <= _NUMPY[rest] else ""
    if head == "cv2" and rest in _OPENCV:
        return "a new image" if count <= _OPENCV[rest] else ""
    if head == "tensorflow":
        module, _, name = rest.rpartition(".")
        if module == "image" and name.startswith(_OF_IMAGES):
            return "a new image"
        if (not module and name in _TENSORFLOW) or (module == "nn" and name in _OF_LAYERS):
            return "a new tensor"
    return ""


def _finding(facts: Facts, ran: Ran, own: Source, found: list[_Dropped]) -> Finding:
    first = found[0]
    line = first.statement.lineno
    texts = [f"{own.text(first.call)}", *(f"{own.text(one.call)} in line {one.statement.lineno}" for one in found[1:])]
    shown = " and ".join([", ".join(texts[:-1]), texts[-1]] if 1 < len(texts) <= 3 else texts[:1])
    shown = f"{shown}, and {len(texts) - 1} more statements below," if len(texts) > 3 else shown
    gives = f"gives {first.what}" if len(found) == 1 else f"give {first.what} each"
    owners = list(dict.fromkeys(own.text(owner) for one in found for owner in one.owners))
    stay = f"{owners[0]} stays as it was" if len(owners) == 1 else f"{' and '.join(owners[:3])} stay as they were"
    touts = [_other_tout(facts, ran, one) for one in found]
    changed = list(dict.fromkeys(one for one in touts if one != ""))
    fix = (
        pastes.written(
            *(_kept(facts, ran, own, one) for one in found), *(one for one in changed if not isinstance(one, str))
        )
        if len(changed) < 2
        else ""
    )
    return Finding(
        NAMES[0], "warning", ran.group[0].id if ran.group else None, (),
        f"{shown} {gives}, which nothing keeps: {stay}",
        fix or f"keep what it gives: `result = {own.text(first.call)}`, and use that from then on", ran.file, line,
        several(one.id for one in ran.group), (f"line {line}: {facts.line(ran.file, line)}",),
    )  # fmt: skip


def _kept(facts: Facts, ran: Ran, own: Source, one: _Dropped) -> Edit | None:
    """The statement with a name for its result, where what is given is a name that is read from then on."""
    function, owner = ran.function, one.owner
    names = [dotted(each) for each in one.owners]
    if one.parts > 1 and len(one.owners) == 1:
        return None
    if all(name.startswith("self.") and name.count(".") == 1 for name in names):
        return pastes.replaced(facts, ran.file, {one.call: f"{', '.join(names)} = {own.text(one.call)}"})
    if not all(name in code.local_names(function) for name in names) or not isinstance(owner, ast.Name):
        return None
    statement = one.statement
    reads = [
        part for part in code.own_nodes(function)
        if isinstance(part, ast.Name) and part.id == owner.id and isinstance(part.ctx, ast.Load)
    ]  # fmt: skip
    end, text = statement.end_lineno or statement.lineno, own.text(one.call)
    looped = any(isinstance(each, (ast.For, ast.While)) for each in _inside(own, statement, function))
    if any(part.lineno > end for part in reads) or looped:
        new = f"{', '.join(names)} = {text}"
    elif not isinstance(function, ast.Lambda) and function.body[-1] is statement and not pastes.returns(function):
        new = f"return {text}"
    else:
        return None
    return pastes.replaced(facts, ran.file, {one.call: new})


def _other_tout(facts: Facts, ran: Ran, one: _Dropped) -> Edit | str | None:
    """The Tout that a body has once its result is cast; "" where it has it, None where that is not known."""
    name = pastes.last_name(one.call.func) if isinstance(one.call, ast.Call) else ""
    if not isinstance(one.call, ast.Call) or not ran.group or name not in ("astype", "cast", "convert_image_dtype"):
        return ""
    made = pastes.call_of(facts, ran.group[0])
    tout = argument(made[1], 2, "Tout") if made is not None else None
    given = argument(one.call, 0 if name == "astype" else 1, "dtype")
    if made is None or not isinstance(tout, ast.expr) or not isinstance(given, ast.expr):
        return None
    if _dtype(tout) == _dtype(given):
        return ""
    returned = [ast.unparse(each) for each in pastes.returns(ran.function)]
    whole = [] if isinstance(ran.function, ast.Lambda) else ran.function.body
    last = returned == [ast.unparse(one.owner)] and one.statement in whole
    tf = pastes.module(facts, made[0], "tensorflow")
    if not last or not isinstance(tout, ast.Attribute) or tf is None or not _dtype(given).startswith(_DTYPES):
        return None
    return pastes.replaced(facts, made[0], {tout: f"{tf}.{_dtype(given)}"})


def _dtype(node: ast.expr) -> str:
    """`float32` of `np.float32`, `tf.float32`, `"float32"`."""
    return str(node.value) if isinstance(node, ast.Constant) else pastes.last_name(node)
