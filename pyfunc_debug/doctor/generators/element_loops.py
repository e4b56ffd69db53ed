"""The loop of a generator, one element a round: what it goes through, and how to get at one of that by its index."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.generators.generator_source import Yielding

_SHUFFLES = ("np.random.shuffle", "numpy.random.shuffle", "random.shuffle")
_SIZED = re.compile(
    r"^(?:sorted|list|tuple|range|glob\.glob|glob|os\.listdir|np\.\w+|numpy\.\w+|np\.random\.\w+|train_test_split)$"
    r"|\.(?:tolist|to_numpy|split|splitlines|readlines|astype|reshape|copy|keys_list)$"
)
"""What gives something that has a length and that an index picks from."""


@dataclass(frozen=True)
class Loop:
    """A generator's only loop.

    Attributes:
      target, iterated: `for target in iterated`.
      body: Its statements before the `yield`.
      value: What it yields.
      shuffled: Names of lists that are shuffled before it, in each pass.
      before: Names that are given a value before it, in each pass.
      forever: Whether a `while True` is around it.
    """

    target: ast.expr
    iterated: ast.expr
    body: tuple[ast.stmt, ...]
    value: ast.expr
    shuffled: frozenset[str]
    before: tuple[tuple[str, ast.expr], ...]
    forever: bool

    @property
    def names(self) -> list[str]:
        """Names that the loop binds by itself."""
        return [one.id for one in ast.walk(self.target) if isinstance(one, ast.Name)]


def loop_of(function: Yielding) -> Loop | None:
    """The loop of a generator that is nothing but one loop with a `yield` at its end; None for any other."""
    if isinstance(function, ast.GeneratorExp):
        one = function.generators[0]
        if len(function.generators) > 1 or one.ifs or one.is_async:
            return None
        return Loop(one.target, one.iter, (), function.elt, frozenset(), (), False)
    return _of(list(function.body), False)


def _of(body: list[ast.stmt], forever: bool) -> Loop | None:
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        del body[0]
    if len(body) == 1 and isinstance(body[0], ast.While) and not forever:
        test = body[0].test
        if isinstance(test, ast.Constant) and test.value and not body[0].orelse:
            return _of(list(body[0].body), True)
    shuffled, before = set(), []
    for one in body[:-1]:
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and dotted(one.value.func) in _SHUFFLES:
            shuffled.add(dotted(one.value.args[0]) if one.value.args else "")
        elif isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            before.append((one.targets[0].id, one.value))
        else:
            return None
    loop = body[-1] if body else None
    if not isinstance(loop, ast.For) or loop.orelse or len({name for name, _ in before}) < len(before):
        return None
    last = loop.body[-1]
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Yield) or last.value.value is None:
        return None
    return Loop(
        loop.target, loop.iter, tuple(loop.body[:-1]), last.value.value, frozenset(shuffled), tuple(before), forever
    )


@dataclass(frozen=True)
class Indexed:
    """How to get at what a round of a loop is about.

    Attributes:
      count: Arguments of `Dataset.range`.
      assigned: For an index that is written `{0}`: what the loop's variables are.
      above: Names that have to have a value before the dataset is made.
      shuffled: Whether each pass has another order.
    """

    count: str
    assigned: tuple[tuple[str, str], ...]
    above: tuple[tuple[str, ast.expr], ...]
    shuffled: bool

    def setup(self, index: str, own: Source) -> list[str]:
        """The first lines of a function of an index."""
        return [f"{target} = {value.format(f'int({index})')}" for target, value in self.assigned if target != "_"]

    def dataset(self, tf: str, own: Source, rename: Callable[[str], str]) -> str:
        """The dataset of the indices."""
        count = rename(self.count)
        return f"{tf}.data.Dataset.range({count})" + (f".shuffle({count})" if self.shuffled else "")


def indexed(own: Source, loop: Loop) -> Indexed | None:
    """How to index what a loop goes through; None where that may have no length."""
    iterated, before = loop.iterated, dict(loop.before)
    shuffled, above = dotted(iterated) in loop.shuffled, []
    if isinstance(iterated, ast.Name) and iterated.id in before:
        made = before.pop(iterated.id)
        count = _count(own, made)
        if count:
            drawn = dotted(getattr(made, "func", None)).endswith("random.permutation")
            if loop.shuffled and not shuffled:
                return None
            target = own.text(loop.target)
            return Indexed(count, ((target, "{0}"),), tuple(before.items()), shuffled or drawn)
        above.append((iterated.id, made))
    if loop.shuffled and not shuffled:
        return None
    above = [*before.items(), *above]
    found = _parts(own, loop.target, iterated, dict(above))
    if found is None:
        return None
    count, assigned, more = found
    return Indexed(count, tuple(assigned), (*above, *more), shuffled)


def _count(own: Source, made: ast.expr) -> str:
    """`n` of `np.arange(n)`, `list(range(n))` and `np.random.permutation(n)`; "" for anything else."""
    if not isinstance(made, ast.Call) or len(made.args) != 1 or made.keywords:
        return ""
    called, size = dotted(made.func), made.args[0]
    if called == "list" and isinstance(size, ast.Call) and dotted(size.func) == "range" and len(size.args) == 1:
        return own.text(size.args[0])
    if called.endswith("random.permutation") and not _is_number(size):
        return ""
    return own.text(size) if called in ("np.arange", "numpy.arange") or called.endswith("random.permutation") else ""


def _is_number(size: ast.expr) -> bool:
    """Whether an expression is a number of elements, not the elements."""
    if isinstance(size, ast.Call):
        return dotted(size.func) == "len"
    if isinstance(size, ast.Subscript):
        return dotted(size.value).endswith(".shape")
    return isinstance(size, ast.Constant)


_Found = tuple[str, list[tuple[str, str]], list[tuple[str, ast.expr]]]


def _parts(own: Source, target: ast.expr, iterated: ast.expr, before: dict[str, ast.expr]) -> _Found | None:
    """Arguments of a range, the loop's variables by an index `{0}`, and names to be made above."""
    text = own.text(target).strip("()")
    called = dotted(iterated.func).rpartition(".")[2] if isinstance(iterated, ast.Call) else ""
    args = iterated.args if isinstance(iterated, ast.Call) else []
    if called in ("tqdm", "trange") and len(args) >= 1:
        return _parts(own, target, args[0], before) if called == "tqdm" else None
    if called == "range" and 1 <= len(args) <= 3:
        return ", ".join(map(own.text, args)), [(text, "{0}")], []
    if called == "enumerate" and len(args) == 1 and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        found = _parts(own, target.elts[1], args[0], before)
        if found is None:
            return None
        if isinstance(args[0], ast.Call) and dotted(args[0].func) == "range":
            return None
        return found[0], [(own.text(target.elts[0]), "{0}"), *found[1]], found[2]
    if called == "zip" and args and isinstance(target, ast.Tuple) and len(target.elts) == len(args):
        found_all = [_parts(own, one, given, before) for one, given in zip(target.elts, args)]
        if any(one is None for one in found_all):
            return None
        parts = [one for one in found_all if one is not None]
        if any("," in one[0] and not one[0].startswith("len(") for one in parts):
            return None
        counts = list(dict.fromkeys(one[0] for one in parts))
        count = counts[0] if len(counts) == 1 else f"min({', '.join(counts)})"
        return count, [pair for one in parts for pair in one[1]], [pair for one in parts for pair in one[2]]
    if called == "iterrows" and isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Attribute):
        frame = own.text(iterated.func.value)
        if isinstance(target, ast.Tuple) and len(target.elts) == 2:
            rows = [
                (own.text(target.elts[0]), f"{frame}.index[{{0}}]"),
                (own.text(target.elts[1]), f"{frame}.iloc[{{0}}]"),
            ]
            return f"len({frame})", rows, []
        return None
    if isinstance(iterated, (ast.Name, ast.Attribute)):
        name = own.text(iterated)
        known = before.get(name) or _made(own, iterated)
        if (known is not None and _sized(known)) or _is_indexed(own, name):
            return f"len({name})", [(text, f"{name}[{{0}}]")], []
        return None
    if isinstance(iterated, ast.Call) and _sized(iterated):
        return "len(items)", [(text, "items[{0}]")], [("items", iterated)]
    return None


def _made(own: Source, name: ast.expr, depth: int = 3) -> ast.expr | None:
    """What a name is given in the file, where that is said once: also by the only call of a function that has it."""
    text = own.text(name)
    found = [
        (one.value, target) for one in ast.walk(own.tree) if isinstance(one, ast.Assign) for target in one.targets
        if text in [own.text(part) for part in ([target] if not isinstance(target, ast.Tuple) else target.elts)]
    ]  # fmt: skip
    if not found and isinstance(name, ast.Name):
        passed = list(_passed(own, name.id))
        return _further(own, passed[0], text, depth) if len(passed) == 1 else None
    if len(found) != 1 or (isinstance(found[0][1], ast.Tuple) and not _split(found[0][0])):
        return None
    return _further(own, found[0][0], text, depth)


def _further(own: Source, value: ast.expr, text: str, depth: int) -> ast.expr | None:
    """What stands behind a name in its turn: `self.files = files`."""
    if isinstance(value, ast.Name) and depth:
        found = _made(own, value, depth - 1)
        return found if found is not None else value
    return value


def _passed(own: Source, parameter: str) -> Iterator[ast.expr]:
    """What calls pass for the functions' parameters of a name."""
    for function in (one for one in ast.walk(own.tree) if isinstance(one, ast.FunctionDef)):
        listed = [one.arg for one in function.args.args]
        if parameter not in listed:
            continue
        holder = own.parent(function)
        made = isinstance(holder, ast.ClassDef) and function.name == "__init__"
        called = holder.name if isinstance(holder, ast.ClassDef) and made else function.name
        place = listed.index(parameter) - isinstance(holder, ast.ClassDef)
        for call in (one for one in ast.walk(own.tree) if isinstance(one, ast.Call)):
            if dotted(call.func).rpartition(".")[2] == called:
                named = [one.value for one in call.keywords if one.arg == parameter]
                value = named[0] if named else call.args[place] if len(call.args) > place else None
                if value is not None and own.text(value) != parameter:
                    yield value


def _split(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and dotted(value.func).endswith("train_test_split")


def _sized(value: ast.expr) -> bool:
    """Whether an expression surely has a length and takes an index."""
    if isinstance(value, (ast.List, ast.Tuple, ast.ListComp)):
        return True
    if isinstance(value, ast.BinOp):
        return _sized(value.left) or _sized(value.right)
    if isinstance(value, ast.Subscript):
        return False
    if isinstance(value, ast.Call):
        last = value.func.attr if isinstance(value.func, ast.Attribute) else ""
        return bool(_SIZED.search(dotted(value.func)) or _SIZED.search(f".{last}"))
    return False


def _is_indexed(own: Source, name: str) -> bool:
    """Whether the file asks for its length, and for one of it by an index or a slice."""
    length = any(
        isinstance(one, ast.Call) and dotted(one.func) == "len" and one.args and own.text(one.args[0]) == name
        for one in ast.walk(own.tree)
    )  # fmt: skip
    picked = any(
        isinstance(one, ast.Subscript) and own.text(one.value) == name and isinstance(one.slice, (ast.Name, ast.Slice))
        for one in ast.walk(own.tree)
    )  # fmt: skip
    return length or picked
