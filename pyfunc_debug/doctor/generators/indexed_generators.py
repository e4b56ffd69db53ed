"""A generator that makes each element by itself, as a `map` over indices: calls of that can run side by side.

`for i in range(n): yield load(i)` gives one element at a time, on one thread. What its loop does for one index becomes
a function, and the dataset a `range` that maps it. Only where no element needs another one, as the source shows.
What it makes in each pass, as an object that shuffles, is made in each pass still: by a generator of the indices.
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of, names
from pyfunc_debug.doctor.generators import pass_values
from pyfunc_debug.doctor.generators.element_loops import Indexed, Loop, indexed, loop_of
from pyfunc_debug.doctor.generators.generator_source import Generator, generator_of
from pyfunc_debug.doctor.generators.signatures import Part, Spec, converted, declared, flat, rebuilt

_ONE_AT_A_TIME = {
    "read", "readline", "readframes", "next", "pop", "popleft", "popitem", "seek", "recv", "grab", "retrieve", "get",
    "get_nowait", "receive", "fetchone", "get_batch", "next_batch",
}  # fmt: skip
"""Methods that give something else each time: of an object from outside of the loop, elements need their order."""
_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)


def as_map(facts: Facts, file: str, call: ast.Call) -> str:
    """The lines that make the dataset by a map; "" where an element may need what another one left.

    Args:
      facts: The recording.
      file: The user's file.
      call: The call of `from_generator`.
    """
    own = pastes.source(facts, file)
    made = generator_of(own, call)
    loop = loop_of(made.function) if made is not None else None
    signature = declared(own, call)
    tf, np = pastes.module(facts, file, "tensorflow"), pastes.module(facts, file, "numpy")
    if made is None or loop is None or signature is None or not tf or not np:
        return ""
    plan = indexed(own, loop)
    if plan is None or not _alone(own, made, loop):
        return ""
    text = _Paste(facts, file, own, call, made, loop, plan, signature, tf, np).text()
    if not text or not _draws(own, made, loop):
        return text
    where, first, *rest = text.split("\n")
    return "\n".join(
        (where, f"{indent_of(first)}# random numbers are drawn in another order than before", first, *rest)
    )


def _draws(own: Source, made: Generator, loop: Loop) -> bool:
    """Whether a generator draws random numbers: calls side by side draw them in another order."""
    called = [one for one in pass_values.functions_of(own, made, loop) if one is not made.function]
    return any(code.is_random(one, own.tree) for one in (*loop.body, loop.value)) or any(  # type: ignore[arg-type]
        code.global_random(one, own.tree) for one in called
    )


def _alone(own: Source, made: Generator, loop: Loop) -> bool:
    """Whether nothing that one round of the loop leaves is read by another."""
    inside = [*loop.body, loop.value]
    if any(isinstance(one, (*_LEAVES, ast.Yield)) for part in inside for one in _nodes(part)):
        return False
    bound = set(loop.names)
    for part in inside:
        stored = code.stored_names(part)
        read = set(names(part)) if isinstance(part, ast.expr) or not stored else _read_first(part)
        later = {name for one in inside for name in code.stored_names(one)} - bound
        if read & later:
            return False  # kept from the round before
        bound |= stored
    functions = pass_values.functions_of(own, made, loop)
    if any(code.state_writes(one) for one in functions):
        return False
    known = [one for one in code.all_nodes(own.tree) if isinstance(one, ast.FunctionDef)]
    own_names = {one.name for one in known}  # those are looked into
    takes = any(_takes_next(one, bound, own_names) for part in inside for one in ast.walk(part))
    return not takes and not _own_generators(own, functions)


def _own_generators(own: Source, functions: list[ast.FunctionDef]) -> bool:
    """Whether they draw from a generator object of NumPy's: threads must not share it."""
    drawn = [write.name for one in functions for write in code.global_random(one, own.tree)]
    return any(name not in (*code.SHARED, "tf.random") for name in drawn)


def _nodes(part: ast.AST) -> list[ast.AST]:
    return [part, *ast.walk(part)]


def _read_first(part: ast.AST) -> set[str]:
    """Names that a statement reads and may not have bound before."""
    if isinstance(part, ast.Assign):
        return set(names(part.value))
    if isinstance(part, ast.AnnAssign):
        return set(names(part.value)) if part.value is not None else set()
    if isinstance(part, ast.With):
        found: set[str] = {name for item in part.items for name in names(item.context_expr)}
        bound = {name for item in part.items if item.optional_vars for name in code.stored_names(item.optional_vars)}
        for one in part.body:
            stored = code.stored_names(one)
            found |= (set(names(one)) if not stored else _read_first(one)) - bound
            bound |= stored
        return found
    return {one.id for one in ast.walk(part) if isinstance(one, ast.Name)}


def _takes_next(node: ast.AST, bound: set[str], known: set[str]) -> bool:
    """Whether a call asks an object from outside of the loop for its next value."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == "next"
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _ONE_AT_A_TIME - known:
        return False
    owner = node.func.value
    return isinstance(owner, (ast.Name, ast.Attribute)) and dotted(owner).partition(".")[0] not in bound


@dataclass(frozen=True)
class _Paste:
    facts: Facts
    file: str
    own: Source
    call: ast.Call
    made: Generator
    loop: Loop
    plan: Indexed
    signature: Part
    tf: str
    np: str

    def text(self) -> str:
        statement = next(one for one in self.own.around(self.call) if isinstance(one, ast.stmt))
        passed = self._of_pass()
        given = self._given(statement, set(passed or ()))
        value = converted(self.own, self.loop.value, self.signature, self.np, self.tf, self._renamed)
        if passed is None or given is None or not value or (not passed and self._clash()):
            return ""
        at, element, index = (
            self.own.unused_name(f"{self.made.name}_at"),
            self.own.unused_name("at_index"),
            self._index(),
        )
        rename = self._renamed
        kept, indices = self.own.unused_name("of_pass"), self.own.unused_name(f"{self.made.name}_indices")
        lines = [*given]
        if passed:
            lines += [f"{kept} = {{}}", "", f"def {indices}():  # what each pass makes for itself, and its indices"]
            lines += [f"    {kept}[{name!r}] = {name} = {text}" for name, text in passed.items()]
            lines += [f"    yield from {self._order()}"]
        else:
            lines += [f"{name} = {rename(self.own.text(one))}" for name, one in self.plan.above]
        lines += ["", f"def {at}({index}):  # makes one element: calls of it run side by side"]
        lines += [f"    {name} = {kept}[{name!r}]" for name in passed]
        lines += [f"    {rename(one)}" for one in self.plan.setup(index, self.own)]
        lines += [f"    {line}".rstrip() for line in self._body()]
        lines += [f"    {line}" for line in value[:-1]] + [f"    return {value[-1]}", ""]
        parts = flat(self.signature)
        dtypes = ", ".join(one.dtype for one in parts)
        shaped = [f"{self.tf}.ensure_shape({{}}, {one.shape})" if one.shape else "{}" for one in parts]
        lines += [f"def {element}({index}):"]
        lines += [f"    parts = {self.tf}.numpy_function({at}, [{index}], [{dtypes}])"]
        fitted = [text.format(f"parts[{place}]") for place, text in enumerate(shaped)]
        lines += [f"    return {rebuilt(self.signature, fitted)}", ""]
        if isinstance(self.signature, Spec):
            one = f"{self.tf}.numpy_function({at}, [{index}], {dtypes})"
            lines[-3:] = [f"    return {shaped[0].format(one)}", ""]
        dataset = self.plan.dataset(self.tf, self.own, rename)
        if passed:
            spec = f"output_signature={self.tf}.TensorSpec((), {self.tf}.int64)"
            dataset = f"{self.tf}.data.Dataset.from_generator({indices}, {spec})"
        dataset += f".map({element}, num_parallel_calls={self.tf}.data.AUTOTUNE)"
        dataset += ".repeat()" if self.loop.forever else ""
        first = pastes.first_line(statement)
        indent = indent_of(self.own.lines[first - 1])
        above = Edit(self.file, first, first - 1, tuple(f"{indent}{line}".rstrip() for line in _trimmed(lines)))
        return pastes.written(above, pastes.replaced(self.facts, self.file, {self.call: dataset}))

    def _of_pass(self) -> dict[str, str] | None:
        """What is to be made in each pass, by name, where that may differ from pass to pass; None for no paste."""
        by_lambda = pass_values.of_lambda(self.call, self.made)
        owner = self._made_by_lambda()
        values = [*(one for _, one in by_lambda or ()), *owner, *(one for _, one in self.plan.above)]
        if not pass_values.differ(self.own, values):
            return {}
        if by_lambda is None or (self.loop.forever and (by_lambda or owner)):
            return None  # these are made once, and not in each turn of its `while True`
        found = {name: self.own.text(one) for name, one in by_lambda}
        found.update({self._owner: self.made.owner} if owner else {})
        return found | {name: self._renamed(self.own.text(one)) for name, one in self.plan.above}

    def _made_by_lambda(self) -> list[ast.expr]:
        """The call that makes the generator's object in each pass: `lambda: iter(Batches(names))`."""
        return [
            one for holder in pastes.walk(self.call, ast.Lambda) for one in pastes.walk(holder, ast.Call)
            if self.made.owner and self.own.text(one) == self.made.owner
        ]  # fmt: skip

    def _order(self) -> str:
        """The indices of a pass."""
        count = self._renamed(self.plan.count)
        return f"{self.np}.random.permutation({self.np}.arange({count}))" if self.plan.shuffled else f"range({count})"

    def _given(self, statement: ast.stmt, passed: set[str]) -> list[str] | None:
        """Lines that give the generator's parameters their values at the dataset; None where names would clash.

        Args:
          statement: Of the dataset.
          passed: Names that are made in each pass.
        """
        scope = next((one for one in self.own.around(statement) if isinstance(one, ast.FunctionDef)), None)
        holder = self.own.parent(self.made.function)
        local = code.local_names(scope) if scope is not None else set()
        read = {name for one in (*self.loop.body, self.loop.value, self.loop.iterated) for name in names(one)}
        read |= {name for _, one in self.plan.above for name in names(one)}
        elsewhere = scope is not None and holder is not scope and isinstance(self.made.function, ast.FunctionDef)
        if elsewhere and (read - set(self.made.given) - set(self.loop.names) - {"self"}) & local:
            return None
        if isinstance(holder, ast.FunctionDef) and holder is not scope:
            return None  # made inside of another function, whose names are not here
        lines = []
        for name, value in self.made.given.items():
            text = self.own.text(value)
            if name == text or name in passed or name not in read:
                continue
            if name in local or (scope is None and name in {one.id for one in self._stored()}):
                return None
            lines.append(f"{name} = {text}")
        if self.made.owner and "(" in self.made.owner and self._owner not in passed:
            lines.append(f"{self._owner} = {self.made.owner}")
        return lines

    def _clash(self) -> bool:
        """Whether a name that is to be made above the dataset is used for something else."""
        inside = {id(one) for one in ast.walk(self.made.function)}
        mine = {name for name, _ in self.plan.above}
        return any(one.id in mine and id(one) not in inside for one in pastes.walk(self.own.tree, ast.Name))

    def _stored(self) -> list[ast.Name]:
        """Names that the module binds."""
        return [
            one for statement in self.own.tree.body if not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
            for one in pastes.walk(statement, ast.Name) if isinstance(one.ctx, ast.Store)
        ]  # fmt: skip

    @property
    def _owner(self) -> str:
        return "source" if "(" in self.made.owner else self.made.owner

    def _renamed(self, text: str) -> str:
        """A piece of the generator's code with its object in the place of `self`."""
        if not self.made.owner or self._owner == "self":
            return text
        return re.sub(r"\bself\b", self._owner, text)

    def _body(self) -> list[str]:
        """The loop's lines before its `yield`."""
        if not self.loop.body:
            return []
        first, last = self.loop.body[0].lineno, self.loop.body[-1].end_lineno or 0
        lines = self.own.lines[first - 1 : last]
        return [self._renamed(line) for line in textwrap.dedent("\n".join(lines)).split("\n")]

    def _index(self) -> str:
        """A name for the index that the loop does not read."""
        inside = [*self.loop.body, self.loop.value, self.loop.iterated, self.loop.target]
        taken = {one.id for part in inside for one in pastes.walk(part, ast.Name)}
        return next(one for one in ("index", "position", "number", "index_") if one not in taken)


def _trimmed(lines: list[str]) -> list[str]:
    while lines and not lines[0]:
        del lines[0]
    return lines
