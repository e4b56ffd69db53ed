"""What a body returned and TensorFlow did not take, or took unchecked: it is not what Tout declares."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.grouped import times
from pyfunc_debug.doctor.bodies.returned_kinds import (
    CONTRACT,
    Kind,
    by_body,
    declaring,
    finding,
    fitting_tout,
    of_calls,
    one_array,
)
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.bodies.handle_touts import HANDLES
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.rules.errors import CONTRACTS, converting, had_returned
from pyfunc_debug.records import Finding, Node

NAMES = (CONTRACT,)
_NUMBER = re.compile(r"Cannot convert \[?-?\d+\.\d*(?:e[-+]?\d+)?[^ ]* to EagerTensor of dtype u?int")
_TENSOR = re.compile(r"Tensor conversion requested dtype \w+ for Tensor with dtype (float\d+)")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body and way of being refused."""
    if facts.has("returned"):
        yield from _not_converted(facts)
    for kinds in by_body(facts):
        for look in (_unchecked, _failed):
            if (found := look(facts, kinds)) is not None:
                yield found


def _not_converted(facts: Facts) -> Iterator[Finding]:
    """Exceptions while TensorFlow converted what a body had returned: no line of the body is in their tracebacks."""
    if any(one["explanation"]["rule"] in (CONTRACT, "structure") for _, _, one in facts.notices["failure"]):
        return
    for number, count, first, failure in facts.reader.rows(
        "SELECT c.node, count(*), min(c.id), min(f.id) FROM call c NOT INDEXED CROSS JOIN failure f ON "
        "f.id = c.failure CROSS JOIN node n ON n.id = c.node WHERE n.origin = 'user' AND c.kind = 'forward' "
        "AND f.frames = '[]' GROUP BY c.node, f.type"
    ):
        node = facts.nodes[number]
        kind, message = facts.reader.rows("SELECT type, message FROM failure WHERE id = ?", (failure,))[0]
        other = had_returned(facts, number, first) and not CONTRACTS.fullmatch(message)  # `_failed` tells of these
        if not facts.source(node.file) or not (converting(message) or other):
            continue  # a body without lines of the user's may have raised it
        ended = facts.meta.get("ended")
        failed = isinstance(ended, dict) and ended.get("error") is not None
        site = facts.site(number)
        yield Finding(
            CONTRACT, "error" if failed else "note", number, (first,),
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
    if set(node.tout) & set(HANDLES):
        kind = next((one for kinds in by_body(facts) for one in kinds if one.node.id == node.id), None)
        fits = kind is not None and (kind.count or 1) == len(node.tout)
        own = fitting_tout(kind) if kind is not None and fits else []
        own = [one if to in HANDLES else f"tf.{to}" for one, to in zip(own, node.tout)]
        if not own or set(own) & {f"tf.{one}" for one in HANDLES}:
            return f"Tout has to be the dtypes of what {node.body} returns: no array is a {', '.join(node.tout)}"
        return declaring(facts, node, own[0] if len(own) == 1 else f"[{', '.join(own)}]")
    number, tensor = _NUMBER.search(message), _TENSOR.search(message)
    if len(node.tout) > 1 or (number is None and tensor is None):
        return ""
    site = facts.site(node.id)
    tf = pastes.module(facts, site.file if site is not None else node.file, "tensorflow") or "tf"
    return pastes.with_tout(facts, node, f"{tf}.{tensor[1] if tensor is not None else 'float32'}")


def _unchecked(facts: Facts, kinds: list[Kind]) -> Finding | None:
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
    return finding(
        facts, other, "warning",
        f"{kind.node.body} returned {own}, but Tout declares {to}. Run eagerly, tf.{kind.node.kind} does not look at "
        f"Tout: the result is {own}. In a graph (tf.function, Dataset.map) the same call fails",
        (one_array(facts, kind.node, str(to)) if len(kind.declared or []) == 1 else "")
        or declaring(facts, kind.node, _listed([one or to for one, to in zip(kind.dtypes, kind.declared or [])])),
        (f"call #{kind.first}: {facts.outputs(kind.first)}",),
    )  # fmt: skip


def _failed(facts: Facts, kinds: list[Kind]) -> Finding | None:
    """What TensorFlow did not take: the call failed after the body had returned. Said once, where it is explained."""
    if any(one["explanation"]["rule"] in (CONTRACT, "structure") for _, _, one in facts.notices["failure"]):
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
            what, fix = f"a {kind.shown}", declaring(facts, kind.node, f"[{', '.join(fitting_tout(kind))}]")
        else:
            other = [(own, to) for own, to in zip(kind.dtypes, tout) if own not in (None, to)]
            if not other:
                continue
            own, to = other[0]
            what, wanted = str(own), str(to) if len(tout) == 1 else f"{to} there"
            fix = one_array(facts, kind.node, str(to)) if len(tout) == 1 else ""
            fix = fix or declaring(facts, kind.node, _listed([one or to for one, to in zip(kind.dtypes, tout)]))
        ended = facts.meta.get("ended")
        failed = isinstance(ended, dict) and ended.get("error") is not None
        return finding(
            facts, [kind], "error" if failed else "note",
            f"{kind.node.body} returned {what}, but Tout declares "
            f"{wanted or f'{len(tout)} ({_few(tout)})'}: TensorFlow did not take it{of_calls(facts, [kind])}"
            + ("" if failed else ". The program went on"),
            fix, (f"first in call #{kind.first}",),
        )  # fmt: skip
    return None


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
