"""Where a body's outputs go in the functions that a dataset maps: by the names that these give them.

Read in the file of the call of py_function: its own function, those that call it, and the next `map` behind it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Node

_DEPTH = 12
_ROUNDS = 3
KEEPS_VALUES = frozenset({
    "cast", "convert_to_tensor", "ensure_shape", "expand_dims", "flip_left_right", "flip_up_down", "identity",
    "random_flip_left_right", "random_flip_up_down", "reshape", "rot90", "squeeze", "transpose",
})  # fmt: skip
"""Functions whose result has the numbers of their first argument."""
_KEEPS_ELEMENTS = frozenset({
    "apply", "batch", "cache", "prefetch", "repeat", "shuffle", "skip", "take", "with_options",
})  # fmt: skip
"""Methods of a dataset that give the same elements, perhaps several at once."""


@dataclass(frozen=True)
class Output:
    """What a body returns at one place.

    Attributes:
      group: The nodes of its line.
      position: Its place.
    """

    group: tuple[Node, ...]
    position: int


_Results = list["Output | None"]


class Outputs:
    """The outputs of all bodies by the expressions of a file that stand for them.

    Args:
      facts: The recording.
      file: The file.
      keeps: Gives the part whose numbers an expression has, in the sense of who asks; None where it has none.
    """

    def __init__(self, facts: Facts, file: str, keeps: Callable[[ast.expr], ast.expr | None]) -> None:
        self.own: Source = pastes.source(facts, file)
        self._keeps = keeps
        self._calls: dict[int, _Results] = {}
        self._given: dict[int, dict[str, Output | None]] = {}
        self._names: dict[str, ast.FunctionDef] = {}
        every = code.all_nodes(self.own.tree)
        self.functions: list[Definition] = [one for one in every if isinstance(one, (ast.FunctionDef, ast.Lambda))]
        for group in facts.lines:
            made = pastes.call_of(facts, group[0])
            if made is not None and made[0] == file:
                call = next((one for one in every if _same(one, made[1])), None)
                tout = argument(made[1], 2, "Tout")
                count = len(tout.elts) if isinstance(tout, (ast.List, ast.Tuple)) else 1
                if call is not None:
                    self._calls[id(call)] = [Output(tuple(group), place) for place in range(count)]
        if not self._calls:
            return
        defined = [one for one in self.functions if isinstance(one, ast.FunctionDef)]
        named = Counter(one.name for one in defined)
        self._names = {one.name: one for one in defined if named[one.name] == 1}
        self._read = Counter(code.called_name(one) for one in every if isinstance(one, (ast.Name, ast.Attribute)))
        for _ in range(_ROUNDS):
            self._spread(every)

    def __bool__(self) -> bool:
        return bool(self._calls)

    def function_of(self, node: ast.AST) -> Definition | None:
        """The innermost function around an expression."""
        return next((one for one in self.own.around(node) if isinstance(one, (ast.FunctionDef, ast.Lambda))), None)

    def results(self, function: Definition) -> _Results:
        """What a function returns, by place; nothing where it has several returns."""
        values = pastes.returns(function)
        if len(values) != 1:
            return []
        value = values[0]
        if isinstance(value, (ast.Tuple, ast.List)):
            return [self.origin(one) for one in value.elts]
        known = self._calls.get(id(value))
        return known if known is not None else [self.origin(value)]

    def origin(self, node: ast.expr, depth: int = _DEPTH) -> Output | None:
        """The output that an expression is, with the same numbers; None for all others."""
        if not depth:
            return None
        if (inside := self._keeps(node)) is not None:
            return self.origin(inside, depth - 1)
        if isinstance(node, ast.Call):
            if (known := self._calls.get(id(node))) is not None:
                return known[0] if len(known) == 1 else None
            kept = bool(node.args) and pastes.last_name(node.func) in KEEPS_VALUES
            return self.origin(node.args[0], depth - 1) if kept else None
        if isinstance(node, ast.Subscript):
            place = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(place, int) and isinstance(node.value, ast.Name):
                made = self.stored(node.value)
                known = self._calls.get(id(made.value)) if isinstance(made, ast.Assign) else None
                return known[place] if known is not None and -1 < place < len(known) else None
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            adds = all(ast.unparse(one) in ("...", "None", ":", "tf.newaxis", "np.newaxis") for one in parts)
            return self.origin(node.value, depth - 1) if adds else None
        return self._of_name(node, depth) if isinstance(node, ast.Name) else None

    def _of_name(self, node: ast.Name, depth: int) -> Output | None:
        made = self.stored(node)
        if made is None:
            function = self.function_of(node)
            return self._given.get(id(function), {}).get(node.id)
        if not isinstance(made, ast.Assign) or len(made.targets) != 1:
            return None
        target = made.targets[0]
        if isinstance(target, ast.Name):
            return self.origin(made.value, depth - 1)
        if isinstance(target, (ast.Tuple, ast.List)):
            names = [one.id if isinstance(one, ast.Name) else "" for one in target.elts]
            known = self._calls.get(id(made.value), [])
            if isinstance(made.value, (ast.Tuple, ast.List)) and len(made.value.elts) == len(names):
                return self.origin(made.value.elts[names.index(node.id)], depth - 1)
            return known[names.index(node.id)] if names.count(node.id) == 1 and len(known) == len(names) else None
        return None

    def stored(self, node: ast.Name) -> ast.stmt | None:
        """The last statement of its function before a name that gives it a value; one in a block is unsure."""
        function = self.function_of(node)
        if not isinstance(function, ast.FunctionDef):
            return None
        within = next((one for one in self.own.around(node) if isinstance(one, ast.stmt)), None)
        before = [
            one for one in code.own_nodes(function)
            if isinstance(one, ast.stmt) and one.lineno < (within or node).lineno and node.id in code.stored_names(one)
        ]  # fmt: skip
        if not before:
            return None
        return before[-1] if before[-1] in function.body else ast.Pass()

    def _spread(self, every: Sequence[ast.AST]) -> None:
        taken: dict[int, list[_Results]] = {}
        for call in (one for one in every if isinstance(one, ast.Call)):
            called = self._names.get(code.called_name(call.func))
            if called is not None and id(call) not in self._calls:
                results = self.results(called)
                if any(results):
                    self._calls[id(call)] = results
            if (function := self.mapped(call)) is not None and any(results := self.results(function)):
                for behind in self._maps_behind(call):
                    if (next_function := self.mapped(behind)) is not None:
                        taken.setdefault(id(next_function), []).append(results)
        for one in (function for function in self.functions if id(function) in taken):
            names, found = [name for name in code.parameters(one) if name != "self"], taken[id(one)]
            uses = self._read[one.name] if isinstance(one, ast.FunctionDef) else 1
            # A function that other datasets are mapped with, too, gets other elements there.
            if len(found) == uses and all(each == found[0] for each in found) and len(names) == len(found[0]):
                self._given[id(one)] = dict(zip(names, found[0]))

    def mapped(self, call: ast.Call) -> Definition | None:
        """The function that `dataset.map` is given, where it is one of this file."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "map" or not call.args:
            return None
        given = call.args[0]
        return given if isinstance(given, ast.Lambda) else self._names.get(code.called_name(given))

    def _maps_behind(self, call: ast.Call) -> Iterator[ast.Call]:
        """The next `map` of the same dataset: behind it in the chain, or on the name that it is given."""
        outer: ast.AST = call
        while isinstance(attribute := self.own.parent(outer), ast.Attribute):
            method = self.own.parent(attribute)
            if not isinstance(method, ast.Call) or method.func is not attribute:
                return
            if attribute.attr == "map":
                yield method
                return
            if attribute.attr not in _KEEPS_ELEMENTS:
                return
            outer = method
        statement = self.own.parent(outer)
        block = self.own.block(statement) if isinstance(statement, ast.Assign) else None
        if not isinstance(statement, ast.Assign) or block is None or len(statement.targets) != 1:
            return
        name = ast.unparse(statement.targets[0])
        for one in block[block.index(statement) + 1 :]:
            for inner in ast.walk(one):
                if isinstance(inner, ast.Call) and pastes.last_name(inner.func) == "map" and base(inner) == name:
                    yield inner
                    return
            if name in code.stored_names(one) and not (isinstance(one, ast.Assign) and base(one.value) == name):
                return


def base(node: ast.expr) -> str:
    """`ds` of `ds.shuffle(8).map(f)`; "" where another method than those that keep elements stands between."""
    first = True
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if not first and node.func.attr not in _KEEPS_ELEMENTS:
            return ""
        node, first = node.func.value, False
    return node.id if isinstance(node, ast.Name) else ""


def files_of_calls(facts: Facts) -> list[str]:
    """The files that call py_function, each once."""
    found = [made[0] for group in facts.lines if (made := pastes.call_of(facts, group[0])) is not None]
    return list(dict.fromkeys(found))


def _same(one: ast.AST, call: ast.Call) -> bool:
    """Whether a node is this call, perhaps of another reading of the same text."""
    return isinstance(one, ast.Call) and (
        one is call
        or ((one.lineno, one.col_offset) == (call.lineno, call.col_offset) and ast.dump(one) == ast.dump(call))
    )
