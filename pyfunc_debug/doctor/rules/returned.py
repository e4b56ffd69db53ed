"""What a body returned and TensorFlow silently changed: values dropped, numbers cut, lists converted slowly."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor import chosen_results, pastes
from pyfunc_debug.doctor.bodies import several, times
from pyfunc_debug.doctor.facts import Calls, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.rules.errors import converting
from pyfunc_debug.records import Finding, Node

_NUMBER = re.compile(r"Cannot convert \[?-?\d+\.\d*(?:e[-+]?\d+)?[^ ]* to EagerTensor of dtype u?int")
_TENSOR = re.compile(r"Tensor conversion requested dtype \w+ for Tensor with dtype (float\d+)")
NAMES = ("output-contract", "slow-conversion")
_SLOW_NS = 200_000
_SLOW_TOTAL_NS = 20_000_000
_SLOW_SHARE = 0.3
_SLOW_NUMBERS = 1000
_LEAST_SAMPLES = 3
_LARGE_SHARE = 1e-3
"""A rounding error counts from so much of the values' spread on."""
_NUMBERS = {
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex64", "complex128",
}  # fmt: skip
"""Dtypes that NumPy knows by the same name."""
_TAKE_LISTS = ("tuple", "list", "stack", "concat", "add_n", "pack_sequence_as", "append", "extend")
"""Functions that take several tensors in a list."""
_NO_TENSORS = ("dict", "OrderedDict", "defaultdict", "set", "None", "NoneType")
_PYTHON = {"float": "float32", "int": "int64", "bool": "bool", "str": "string", "bytes": "string"}


@dataclass(frozen=True)
class _Kind:
    """A row of the table `returned`, together with its node."""

    node: Node
    shown: str
    count: int | None
    declared: list[str] | None
    dtypes: list[str | None]
    calls: int
    first: int
    sampled: int
    convert_ns: int
    casts: list[dict[str, Any]]


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body and kind of return."""
    if not facts.has("returned"):
        return
    bodies: dict[tuple[str, str | None, int | None, str], list[_Kind]] = {}
    for number, *rest in facts.reader.rows(
        "SELECT r.node, r.shown, r.count, r.declared, r.dtypes, r.calls, r.first, r.sampled, r.convert_ns, r.casts "
        "FROM returned r JOIN node n ON n.id = r.node WHERE n.origin = 'user' ORDER BY r.id"
    ):
        shown, count, declared, dtypes, calls, first, sampled, took, casts = rest
        node = facts.nodes[number]
        kind = _Kind(
            node, shown, count, json.loads(declared) if declared else None, json.loads(dtypes), calls, first, sampled,
            took, json.loads(casts),
        )  # fmt: skip
        bodies.setdefault((node.body, node.file, node.line, node.kind), []).append(kind)
    yield from _not_converted(facts)
    for kinds in bodies.values():
        for look in (_dropped, _casts, _unchecked, _failed, _slow):
            found = look(facts, kinds)
            if found is not None:
                yield found


def _not_converted(facts: Facts) -> Iterator[Finding]:
    """Exceptions while TensorFlow converted what a body had returned: no line of the body is in their tracebacks."""
    if any(one["explanation"]["rule"] in (NAMES[0], "structure") for _, _, one in facts.notices["failure"]):
        return
    for number, count, first, failure in facts.reader.rows(
        "SELECT c.node, count(*), min(c.id), min(f.id) FROM call c NOT INDEXED CROSS JOIN failure f ON "
        "f.id = c.failure CROSS JOIN node n ON n.id = c.node WHERE n.origin = 'user' AND c.kind = 'forward' "
        "AND f.frames = '[]' GROUP BY c.node, f.type"
    ):
        node = facts.nodes[number]
        kind, message = facts.reader.rows("SELECT type, message FROM failure WHERE id = ?", (failure,))[0]
        if not facts.source(node.file) or not converting(message):
            continue  # a body without lines of the user's may have raised it
        ended = facts.meta.get("ended")
        failed = isinstance(ended, dict) and ended.get("error") is not None
        site = facts.site(number)
        yield Finding(
            NAMES[0], "error" if failed else "note", number, (first,),
            f"what {node.body} returned does not become {', '.join(node.tout)}, as Tout declares: {message}"[:400]
            + f" ({kind}, {times(count)})" + ("" if failed else ". The program went on"),
            _other_tout(facts, node, message)
            or "the body has to return a number or an array there, or Tout has to be the dtype of what it returns",
            site.file if site is not None else node.file,
            site.line if site is not None else node.line,
            evidence=(f"call #{first}: {facts.inputs(first)}",) if facts.inputs(first) else (),
        )  # fmt: skip


def _other_tout(facts: Facts, node: Node, message: str) -> str:
    """The call with the Tout of what the body returned, where an exception's text says that; else empty."""
    if not node.tout:
        return pastes.with_tout(facts, node, "[]") or "Tout=[]"
    number, tensor = _NUMBER.search(message), _TENSOR.search(message)
    if len(node.tout) > 1 or (number is None and tensor is None):
        return ""
    site = facts.site(node.id)
    tf = pastes.module(facts, site.file if site is not None else node.file, "tensorflow") or "tf"
    return pastes.with_tout(facts, node, f"{tf}.{tensor[1] if tensor is not None else 'float32'}")


def _finding(
    facts: Facts, kinds: list[_Kind], severity: Any, message: str, fix: str, evidence: tuple[str, ...],
    rule: str = NAMES[0], call: int | None = None,
) -> Finding:  # fmt: skip
    node = kinds[0].node
    site = facts.site(node.id)
    line = site.line if site is not None else node.line
    return Finding(
        rule, severity, node.id, (call or kinds[0].first,), message, fix, site.file if site is not None else node.file,
        line, several(kind.node.id for kind in kinds), evidence,
    )  # fmt: skip


def _went_on(facts: Facts, kind: _Kind) -> bool:
    """Whether the first call of a kind ended: of one that failed TensorFlow kept nothing."""
    rows = facts.reader.rows("SELECT status FROM call WHERE id = ?", (kind.first,))
    return not rows or rows[0][0] != "error"


def _dropped(facts: Facts, kinds: list[_Kind]) -> Finding | None:
    """More values than Tout has: TensorFlow keeps the first ones."""
    kinds = [
        kind for kind in kinds
        if kind.node.kind == "py_function" and kind.declared and kind.count is not None
        and kind.count > len(kind.declared) and _went_on(facts, kind)
    ]  # fmt: skip
    if not kinds:
        return None
    kind = kinds[0]
    declared = kind.declared or []
    kept = "the first" if len(declared) == 1 else f"the first {len(declared)}"
    numbers = kind.shown.rpartition(" ")[2] in ("float", "int", "bool") and ":" not in kind.shown
    if len(declared) == 1 and numbers:
        fix = _array(facts, kind.node, declared[0]) or (
            f"return np.asarray({_value(facts, kind.node)}, np.{declared[0]})  # one tensor of {kind.count} numbers"
        )
    elif declared == ["string"] and (texts := _texts(facts, kind.node)):
        fix = texts
    else:
        fix = (
            _without_objects(facts, kind)
            or chosen_results.by_name(facts, kind.node, kind.count or 0, len(declared))
            or _first_kept(facts, kind)
            or _unpacked(facts, kind)
            or _in_words(facts, kind)
            or _declared(facts, kind.node, f"[{', '.join(_tout(kind))}]")
        )
    return _finding(
        facts, kinds, "error",
        f"{kind.node.body} returned a {kind.shown}, but Tout declares {len(declared)} ({', '.join(declared[:3])}). "
        f"TensorFlow kept {kept} and silently dropped the others{_of(facts, kinds)}",
        fix, (f"first in call #{kind.first}: {facts.outputs(kind.first)}",),
    )  # fmt: skip


def _without_objects(facts: Facts, kind: _Kind) -> str:
    """The body in a lambda that leaves out what no dtype holds, as an environment's `info` is; "" elsewhere."""
    found, declared = pastes.call_of(facts, kind.node), kind.declared or []
    inside = kind.shown.partition(": ")[2].split(", ")[len(declared) :]
    if found is None or not any(one in _NO_TENSORS for one in inside):
        return ""
    file, call = found
    func, own = pastes.argument(call, 0, "func"), pastes.source(facts, file)
    if isinstance(func, ast.Lambda) and isinstance(func.body, ast.Call):
        new: dict[ast.expr, str] = {func.body: f"{own.text(func.body)}[:{len(declared)}]"}
    elif isinstance(func, (ast.Name, ast.Attribute)):
        new = {func: f"lambda *given: {own.text(func)}(*given)[:{len(declared)}]"}
    else:
        return ""
    return pastes.written(pastes.replaced(facts, file, new))


def _in_words(facts: Facts, kind: _Kind) -> str:
    """What to change where the caller takes outputs by their places, and no name says which; "" elsewhere."""
    outputs = len(kind.declared or [])
    if not chosen_results.takes_places(facts, kind.node, outputs):
        return ""
    value = short(_value(facts, kind.node), 40)
    last = outputs - 1
    return (
        f"let {facts.name(kind.node)} return the {outputs} that are wanted, in this order, instead of `{value}`: now "
        f"output {last} is what stands at place {last} of its {kind.count}, and a longer Tout would leave that so"
    )


def _texts(facts: Facts, node: Node) -> str:
    """The body's `return` lines with one tensor for a list of texts of any length; "" where they list values."""
    tf = pastes.module(facts, node.file, "tensorflow") or "tf"

    def make(value: ast.expr, text: str) -> str | None:
        return None if isinstance(value, (ast.List, ast.Tuple)) else f"{tf}.constant({text}, {tf}.string)"

    return pastes.returning(facts, node, make)


def _first_kept(facts: Facts, kind: _Kind) -> str:
    """The body in a lambda that gives the first value, where the line uses the node as one tensor; "" elsewhere."""
    found = pastes.call_of(facts, kind.node)
    if found is None or len(kind.declared or []) != 1:
        return ""
    file, call = found
    func, tout, own = pastes.argument(call, 0, "func"), pastes.argument(call, 2, "Tout"), pastes.source(facts, file)
    parent = own.parent(call)
    used = isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute)) or (
        isinstance(parent, ast.Call) and call in parent.args and pastes.last_name(parent.func) not in _TAKE_LISTS
    )
    if not used or not isinstance(func, (ast.Name, ast.Attribute)) or isinstance(tout, (ast.List, ast.Tuple)):
        return ""
    return pastes.written(pastes.replaced(facts, file, {func: f"lambda *given: {own.text(func)}(*given)[0]"}))


def _unpacked(facts: Facts, kind: _Kind) -> str:
    """`x = tf.py_function(...)` with a Tout for all values, and x still the tensor that it is used as; "" otherwise."""
    found, declared = pastes.call_of(facts, kind.node), kind.declared or []
    if found is None or len(declared) != 1:
        return ""
    file, call = found
    tout, statement = pastes.argument(call, 2, "Tout"), pastes.source(facts, file).parent(call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if tout is None or isinstance(tout, (ast.List, ast.Tuple)) or not isinstance(target, ast.Name):
        return ""
    same = [place for place, own in enumerate(kind.dtypes) if own == declared[0]]
    names = ["_"] * (kind.count or 0)
    names[same[0] if len(same) == 1 else 0] = target.id
    return pastes.written(pastes.replaced(facts, file, {target: ", ".join(names), tout: f"[{', '.join(_tout(kind))}]"}))


def _calls(facts: Facts, kinds: list[_Kind]) -> Calls:
    """All calls of their nodes: not each was looked at."""
    return facts.calls_of({kind.node.id: kind.node for kind in kinds}.values())


def _of(facts: Facts, kinds: list[_Kind]) -> str:
    """In how many calls: `, in 4 calls`, or of those looked at."""
    looked, every = sum(kind.calls for kind in kinds), _calls(facts, kinds).count
    if looked >= every:
        return ", once" if looked == 1 else f", in {looked:,} calls"
    return f", in {looked:,} of the calls that were looked at ({every:,} were made)"


def _tout(kind: _Kind) -> list[str]:
    """The dtypes that fit, as they are written; those that are not known as they are declared."""
    inside = kind.shown.partition(": ")[2].split(", ") if ":" in kind.shown else []
    declared = kind.declared or ["float32"]
    found = []
    for position in range(kind.count or 1):
        own = kind.dtypes[position] if position < len(kind.dtypes) else None
        word = inside[position] if position < len(inside) else kind.shown.rpartition(" ")[2]
        found.append(f"tf.{own or _PYTHON.get(word) or declared[min(position, len(declared) - 1)]}")
    return found


def _no_return(facts: Facts, node: Node) -> str:
    """A `return` of what the body's last line made; where it made nothing, a Tout that says so."""
    function = facts.function(node)
    last = function.body[-1] if function is not None and not isinstance(function, ast.Lambda) else None
    targets = last.targets if isinstance(last, ast.Assign) else [last.target] if isinstance(last, ast.AugAssign) else []
    name = targets[0] if len(targets) == 1 else None
    while isinstance(name, ast.Subscript):
        name = name.value
    if last is None or node.file is None or not isinstance(name, ast.Name):
        where = facts.functions.get(node.function or 0)
        if where is not None and where.kind == "tf.data":
            return f"{facts.name(node)} needs a `return` of {', '.join(node.tout)}"  # a map has to give something
        return pastes.with_tout(facts, node, "[]") or "Tout=[]  # if it returns nothing; else the body needs a `return`"
    end = (last.end_lineno or last.lineno) + 1
    return pastes.written(Edit(node.file, end, end - 1, (f"{' ' * last.col_offset}return {name.id}",)))


def _listed(dtypes: Sequence[object]) -> str:
    """`tf.float32`, or `[tf.float32, tf.int64]`."""
    every = ", ".join(f"tf.{one}" for one in dtypes)
    return every if len(dtypes) == 1 else f"[{every}]"


def _few(tout: Sequence[object]) -> str:
    return ", ".join(map(str, tout[:3]))


def _declared(facts: Facts, node: Node, tout: str) -> str:
    """The call with the Tout that fits."""
    return pastes.with_tout(facts, node, tout) or f"tf.{node.kind}({facts.name(node)}, ..., Tout={tout})"


def _array(facts: Facts, node: Node, dtype: str) -> str:
    """The body's `return` lines with one array of a dtype; "" where that cannot be said in whole lines."""
    if dtype not in _NUMBERS:
        return ""
    return pastes.returning(facts, node, lambda _, text: _as_array(facts, node, text, dtype))


def _as_array(facts: Facts, node: Node, text: str, dtype: str) -> str:
    """An expression as an array, in the words of the body's file."""
    numpy = pastes.module(facts, node.file, "numpy")
    if numpy is None and node.kind == "py_function":
        tf = pastes.module(facts, node.file, "tensorflow") or "tf"
        return f"{tf}.cast({text}, {tf}.{dtype})"
    numpy = numpy or "np"
    return f"{numpy}.asarray({text}, {'bool' if dtype == 'bool' else f'{numpy}.{dtype}'})"


def _arrays(facts: Facts, kind: _Kind) -> str:
    """The body's `return` lines with an array in the place of each list of numbers."""
    declared = kind.declared or list(kind.node.tout)
    if not declared or any(one not in _NUMBERS for one in declared):
        return ""
    several = kind.node.kind == "py_function" or len(declared) > 1  # then what is returned is a list of outputs

    def make(value: ast.expr, text: str) -> str | None:
        if not several or kind.count != len(declared):
            return _as_array(facts, kind.node, text, declared[0]) if len(declared) == 1 else None
        if isinstance(value, (ast.List, ast.Tuple)) and len(value.elts) == len(declared):
            every = [pastes.text_of(facts, kind.node.file, one) for one in value.elts]
            return f"[{', '.join(_as_array(facts, kind.node, one, to) for one, to in zip(every, declared))}]"
        if len(set(declared)) > 1:
            return None
        return f"[{_as_array(facts, kind.node, 'one', declared[0])} for one in {text}]"

    return pastes.returning(facts, kind.node, make)


def _value(facts: Facts, node: Node) -> str:
    """What the body's last `return` returns, as it is written."""
    values = [
        one.value
        for _, one in facts.statements(node)
        if isinstance(one, (ast.Return, ast.Expr)) and one.value is not None
    ]
    return ast.unparse(values[-1]) if values else "values"


def _casts(facts: Facts, kinds: list[_Kind]) -> Finding | None:
    """Numbers that are others after TensorFlow's conversion to Tout."""
    lossy = [(kind, one) for kind in kinds for one in kind.casts if _lossy(one)]
    if not lossy:
        return None
    kind, worst = max(lossy, key=lambda pair: (_cut(pair[1]), float(pair[1]["error"])))
    many = kind.declared is not None and len(kind.declared) > 1
    which = f" as output {worst['position']}" if many else ""
    changed = sum(int(one["changed"]) for _, one in lossy)
    compared = sum(int(one["compared"]) for _, one in lossy)
    if "float" in worst["source"] and "int" in worst["target"]:
        often = f"{changed:,} of the {compared:,} numbers compared lost their fraction, or did not fit"
    elif _cut(worst):
        often = f"{changed:,} of the {compared:,} numbers compared do not fit and became others"
    elif changed:
        often = f"{changed:,} of the {compared:,} numbers compared became others"
    else:
        share = worst["error"] / worst["spread"] if worst.get("spread") else None
        often = "numbers of this size are rounded" + (f", by up to {share:.0%} of their spread" if share else "")
    declared = list(kind.declared or [])
    declared[worst["position"]] = worst["source"]
    tout = ", ".join(f"tf.{one}" for one in declared)
    sampled = sum(one.sampled for one in kinds)
    return _finding(
        facts, kinds, "error" if _cut(worst) else "warning",
        f"{kind.node.body} returned {worst['source']}{which}, but Tout declares {worst['target']}, and TensorFlow "
        f"silently converted it: {often}. The largest error: {worst['own']} became {worst['made']}",
        _declared(facts, kind.node, f"[{tout}]" if many else tout),
        (f"call #{worst['call']}: {worst['own']} ({worst['source']}) became {worst['made']} ({worst['target']})",
         f"compared in {sampled:,} of {_calls(facts, kinds).count:,} calls"),
        call=worst["call"],
    )  # fmt: skip


def _cut(one: dict[str, Any]) -> bool:
    """Whether the number does not fit at all: whole numbers that wrap around, or infinity made of a finite one."""
    whole = "int" in one["target"]
    return bool(one["changed"]) and (whole or ("inf" in one["made"] and "inf" not in one["own"]))


def _lossy(one: dict[str, Any]) -> bool:
    if one["changed"]:
        return True
    error, spread = float(one["error"]), one.get("spread")
    if not spread:
        number = float(one["own"])
        return error >= 0.5 and number == int(number)  # an id, a time in seconds: not a loss of 1e12
    return error > _LARGE_SHARE * float(spread)


def _failed(facts: Facts, kinds: list[_Kind]) -> Finding | None:
    """What TensorFlow did not take: the call failed after the body had returned. Said once, where it is explained."""
    if any(one["explanation"]["rule"] in (NAMES[0], "structure") for _, _, one in facts.notices["failure"]):
        return None
    for kind in kinds:
        wanted = None
        tout = list(kind.node.tout) if kind.node.kind != "py_function" else kind.declared or []
        count = 1 if kind.count is None else kind.count
        if kind.shown == "None" and not tout:
            continue  # nothing is what it declares
        if kind.shown == "None":
            what, fix = "None", _no_return(facts, kind.node)
        elif kind.shown == "dict":  # no Tout takes one
            what = "a dict"
            fix = f"{kind.node.body} has to return its values as a list, as `return list(result.values())` does"
        elif kind.node.kind == "py_function" and count >= len(tout):
            continue
        elif kind.node.kind != "py_function" and kind.declared is not None:
            continue  # eager: nothing is compared
        elif count != len(tout):
            what, fix = f"a {kind.shown}", _declared(facts, kind.node, f"[{', '.join(_tout(kind))}]")
        else:
            other = [(own, to) for own, to in zip(kind.dtypes, tout) if own not in (None, to)]
            if not other:
                continue
            own, to = other[0]
            what, wanted = str(own), str(to) if len(tout) == 1 else f"{to} there"
            fix = _array(facts, kind.node, str(to)) if len(tout) == 1 else ""
            fix = fix or _declared(facts, kind.node, _listed([one or to for one, to in zip(kind.dtypes, tout)]))
        ended = facts.meta.get("ended")
        failed = isinstance(ended, dict) and ended.get("error") is not None
        return _finding(
            facts, [kind], "error" if failed else "note",
            f"{kind.node.body} returned {what}, but Tout declares "
            f"{wanted or f'{len(tout)} ({_few(tout)})'}: TensorFlow did not take it{_of(facts, [kind])}"
            + ("" if failed else ". The program went on"),
            fix, (f"first in call #{kind.first}",),
        )  # fmt: skip
    return None


def _unchecked(facts: Facts, kinds: list[_Kind]) -> Finding | None:
    """An eager tf.numpy_function does not look at Tout at all."""
    other = [
        kind for kind in kinds
        if kind.node.kind != "py_function" and kind.declared is not None
        and any(own not in (None, to) for own, to in zip(kind.dtypes, kind.declared))
    ]  # fmt: skip
    if not other:
        return None
    kind = other[0]
    own, to = next(pair for pair in zip(kind.dtypes, kind.declared or []) if pair[0] not in (None, pair[1]))
    return _finding(
        facts, other, "warning",
        f"{kind.node.body} returned {own}, but Tout declares {to}. Run eagerly, tf.{kind.node.kind} does not look at "
        f"Tout: the result is {own}. In a graph (tf.function, Dataset.map) the same call fails",
        (_array(facts, kind.node, str(to)) if len(kind.declared or []) == 1 else "")
        or _declared(facts, kind.node, _listed([one or to for one, to in zip(kind.dtypes, kind.declared or [])])),
        (f"call #{kind.first}: {facts.outputs(kind.first)}",),
    )  # fmt: skip


def _numbers(kind: _Kind) -> int:
    """How many numbers `list of 2 list of 300 float` are."""
    return math.prod(int(one) for one in re.findall(r" of (\d+)", kind.shown))


def _slow(facts: Facts, kinds: list[_Kind]) -> Finding | None:
    """Lists of Python numbers, which TensorFlow converts one by one."""
    lists = [kind for kind in kinds if "list" in kind.shown or ("tuple of" in kind.shown and kind.sampled)]
    sampled, took = sum(kind.sampled for kind in lists), sum(kind.convert_ns for kind in lists)
    if (
        sampled < _LEAST_SAMPLES
        or max(map(_numbers, lists), default=0) < _SLOW_NUMBERS
        or not any(kind.shown.endswith(("float", "int", "bool", "str")) for kind in lists)
    ):
        return None
    every = _calls(facts, lists)
    mean, calls = took / sampled, every.count
    whole = every.total_ns / max(every.count, 1)
    if mean < _SLOW_NS or mean * calls < _SLOW_TOTAL_NS or not whole or mean / whole < _SLOW_SHARE:
        return None
    kind = lists[0]
    dtype = (kind.declared or list(kind.node.tout) or ["float32"])[0]
    return _finding(
        facts, lists, "warning",
        f"{kind.node.body} returned Python numbers ({kind.shown}), which TensorFlow converts one by one: "
        f"{mean / 1e6:.2f} ms of the {whole / 1e6:.2f} ms that a call took",
        _arrays(facts, kind) or f"return np.asarray(..., np.{dtype})  # best built as an array from the start",
        (f"the conversion was timed in {sampled:,} of {calls:,} calls: {took / 1e6:.1f} ms",),
        rule="slow-conversion",
    )  # fmt: skip
