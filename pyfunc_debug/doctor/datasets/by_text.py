"""What is a dataset by a program's text, and which statements make one that nothing keeps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import code
from pyfunc_debug.doctor.failures.reading.source import dotted

METHODS = {"map", "batch", "padded_batch", "ragged_batch", "unbatch", "shuffle", "repeat", "prefetch", "filter",
           "cache", "take", "skip", "interleave", "flat_map", "with_options", "apply", "concatenate", "shard", "window",
           "enumerate", "take_while", "scan", "snapshot", "rebatch", "group_by_window", "bucket_by_sequence_length",
           "sparse_batch", "unique", "ignore_errors", "rejection_resample"}  # fmt: skip
"""Methods that give a new dataset."""
_MADE = re.compile(
    r"(?:^|\.)Dataset\.\w+$|(?:^|\.)data\.(?:\w+\.)*\w*Dataset$|^(?:TFRecord|TextLine|FixedLengthRecord|Csv)Dataset$"
    r"|dataset_from_(?:directory|array)$|\.make_\w+_dataset$|\.data\.experimental\.\w+_from_datasets$"
)
"""Calls that make a dataset."""
_OTHERS = ("datasets", "torch", "torch.utils", "torch.utils.data", "torchtext", "torchvision.datasets")
"""Modules whose classes of that name are others."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_DEEPEST = 6


@dataclass(frozen=True)
class Dropped:
    """`ds.shuffle(9).repeat()` as a statement: whose methods are called, as text, and their names in order."""

    statement: ast.Expr
    owner: str
    methods: tuple[str, ...]

    @property
    def text(self) -> str:
        """`ds.shuffle(...).repeat(...)`."""
        return f"{self.owner}{''.join(f'.{one}(...)' for one in self.methods)}"


def chain(statement: ast.AST) -> Dropped | None:
    """A statement that calls nothing but such methods, one after the other, of a name or of `self.ds`; else None."""
    if not isinstance(statement, ast.Expr):
        return None
    value, methods = statement.value, []
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in METHODS:
        methods.append(value.func.attr)
        value = value.func.value
    owner = dotted(value)
    whose = isinstance(value, ast.Name) or owner.startswith("self.")
    return Dropped(statement, owner, tuple(reversed(methods))) if methods and whose else None


class Program:
    """The files of a program together: what their names are by the text.

    Args:
      trees: The files' syntax trees.
    """

    def __init__(self, trees: Iterable[ast.Module]) -> None:
        self._trees = list(trees)
        self._parents = {
            id(child): one for tree in self._trees for one in ast.walk(tree) for child in ast.iter_child_nodes(one)
        }
        self._functions: dict[str, list[_Function]] = {}
        self._called: dict[str, list[ast.Call]] = {}
        self._foreign: set[str] = set()
        self._asking: set[tuple[int, str]] = set()
        for one in (node for tree in self._trees for node in ast.walk(tree)):
            if isinstance(one, _Function):
                self._functions.setdefault(one.name, []).append(one)
            elif isinstance(one, ast.Call):
                name = one.func.attr if isinstance(one.func, ast.Attribute) else dotted(one.func)
                self._called.setdefault(name, []).append(one)
            elif isinstance(one, ast.ClassDef):
                self._foreign.add(one.name)
            elif isinstance(one, ast.ImportFrom) and one.module in _OTHERS:
                self._foreign |= {each.asname or each.name for each in one.names}
            elif isinstance(one, ast.Import):
                every = [each.asname or each.name for each in one.names if each.name in _OTHERS]
                self._foreign |= {each.partition(".")[0] for each in every}

    def dropped(self, tree: ast.Module) -> Iterator[Dropped]:
        """The statements of a file that make a dataset of another, which nothing keeps.

        What a file ends with is none of them: a notebook prints it.
        """
        for one in ast.walk(tree):
            found = chain(one) if one is not tree.body[-1] else None
            if found is not None and self.is_dataset(_root(found.statement)):
                yield found

    def is_dataset(self, value: ast.expr, depth: int = 0) -> bool:
        """Whether an expression is a dataset in every way in which the text says how it came to be."""
        if depth > _DEEPEST:
            return False
        if isinstance(value, ast.IfExp):
            return self.is_dataset(value.body, depth + 1) and self.is_dataset(value.orelse, depth + 1)
        if isinstance(value, ast.Name):
            asked = (id(self._function(value)), value.id)
            if asked in self._asking:
                return True  # it is one if the rest of what it is given is
            self._asking.add(asked)
            try:
                return self._is_named(value, depth)
            finally:
                self._asking.discard(asked)
        if isinstance(value, ast.Attribute) and dotted(value).startswith("self."):
            holder = self._around(value, ast.ClassDef)
            return holder is not None and self._are(self._assigned(holder, dotted(value)), dotted(value), depth)
        if not isinstance(value, ast.Call):
            return False
        if isinstance(value.func, ast.Attribute) and value.func.attr in METHODS:
            return self._is_made(value) or self.is_dataset(value.func.value, depth + 1)
        made = self._functions.get(dotted(value.func).rpartition(".")[2], [])
        if len(made) == 1:
            given = [one.value for one in code.own_nodes(made[0]) if isinstance(one, ast.Return)]
            return bool(given) and all(one is not None and self.is_dataset(one, depth + 1) for one in given)
        return self._is_made(value)

    def ran(self, node: ast.AST, lines: set[int], seen: frozenset[int] = frozenset()) -> bool:
        """Whether a place is the file's own, or in a function that ran.

        Args:
          node: The place.
          lines: Lines of the same file that are known to have run.
          seen: Functions that the question came from.
        """
        function = self._function(node)
        if function is None:
            return True
        if any(function.lineno <= line <= (function.end_lineno or 0) for line in lines):
            return True
        if id(function) in seen or len(self._functions.get(function.name, ())) != 1:
            return False
        calls = [one for one in self._called.get(function.name, ()) if not self._may_not_run(one)]
        return any(self.ran(one, lines, seen | {id(function)}) for one in calls)

    def is_read(self, found: Dropped) -> bool:
        """Whether the name is read elsewhere: below the statement, in a loop around it, or in another function."""
        statement = found.statement
        scope, inside = self._function(statement), {id(one) for one in ast.walk(statement)}
        tree = self._file(statement)
        loops = [one for one in self._over(statement) if isinstance(one, (ast.For, ast.While))]
        for one in ast.walk(tree) if tree is not None else ():
            if not isinstance(one, (ast.Name, ast.Attribute)) or dotted(one) != found.owner or id(one) in inside:
                continue
            if not isinstance(one.ctx, ast.Load):
                continue
            below = one.lineno > (statement.end_lineno or statement.lineno)
            looped = any(loop.lineno <= one.lineno <= (loop.end_lineno or 0) for loop in loops)
            elsewhere = self._function(one) is not scope and (scope is None or found.owner.startswith("self."))
            if below or looped or elsewhere:
                return True
        return False

    def _is_made(self, call: ast.Call) -> bool:
        """`tf.data.Dataset.from_tensor_slices(x)`, and `tfds.load("mnist", split="train")`."""
        name = dotted(call.func)
        if name == "tfds.load":
            return any(one.arg == "split" and isinstance(one.value, ast.Constant) for one in call.keywords)
        return bool(_MADE.search(name)) and name.partition(".")[0] not in self._foreign

    def _is_named(self, name: ast.Name, depth: int) -> bool:
        scope = self._function(name)
        while scope is not None:
            values = self._assigned(scope, name.id)
            given = scope.args
            if name.id in [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]:
                own = all(self._is_own(one, name.id, depth) for one in values)
                return own and self._are_given(scope, name.id, depth)
            if values:
                return self._are(values, name.id, depth)
            scope = self._function(scope)
        tree = self._file(name)
        return tree is not None and self._are(self._assigned(tree, name.id), name.id, depth)

    def _are(self, values: list[ast.expr], name: str, depth: int) -> bool:
        """Whether all of what a name is given is a dataset: what is made of itself is one if the rest is."""
        own = [one for one in values if not _reads(one, name)]
        return bool(own) and all(self.is_dataset(one, depth + 1) for one in own) and all(
            self._is_own(one, name, depth) for one in values if _reads(one, name)
        )  # fmt: skip

    def _is_own(self, value: ast.expr, name: str, depth: int) -> bool:
        """`ds.map(f)` for `ds`, and `prepared(ds)`."""
        asked = value
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in METHODS:
            value = value.func.value
        return dotted(value) == name or self.is_dataset(asked, depth + 1)

    def _are_given(self, function: _Function, name: str, depth: int) -> bool:
        """Whether each call of a function gives it a dataset for one of its arguments."""
        calls = self._called.get(function.name, ())
        if not calls or len(self._functions[function.name]) != 1 or function.decorator_list:
            return False
        arguments = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        for call in calls:
            shift = int(arguments[:1] == ["self"])
            place = arguments.index(name) - shift if name in arguments else -1
            given = next((one.value for one in call.keywords if one.arg == name), None)
            if given is None and 0 <= place < len(call.args):
                given = call.args[place]
            if given is None or not self.is_dataset(given, depth + 1):
                return False
        return True

    def _assigned(self, scope: _Function | ast.ClassDef | ast.Module, name: str) -> list[ast.expr]:
        """What the statements of a scope assign to a name; None, as a value, for what binds it otherwise."""
        found: list[ast.expr] = []
        for one in ast.walk(scope) if name.startswith("self.") else code.own_nodes(scope):
            value: ast.expr | None = None
            targets: list[ast.expr]
            if isinstance(one, (ast.AnnAssign, ast.NamedExpr)):
                targets, value = [one.target], one.value
            elif isinstance(one, ast.Assign):
                targets = one.targets
                value = one.value if name in map(dotted, targets) else _part(one, name)
            elif isinstance(one, (ast.For, ast.AsyncFor, ast.comprehension, ast.AugAssign)):
                targets = [one.target]
            elif isinstance(one, ast.withitem) and one.optional_vars is not None:
                targets = [one.optional_vars]
            else:
                continue
            if any(_binds(target, name) for target in targets):
                found.append(value or ast.Constant(None))
        return found

    def _may_not_run(self, node: ast.AST) -> bool:
        """Whether a condition stands above a call, other than the one for a program's main file."""
        for one in self._over(node):
            if isinstance(one, (ast.If, ast.IfExp, ast.ExceptHandler)) and "__name__" not in ast.unparse(
                getattr(one, "test", one)
            ):
                return True
            if isinstance(one, (_Function, ast.ClassDef)):
                return False
        return False

    def _over(self, node: ast.AST) -> Iterator[ast.AST]:
        one = self._parents.get(id(node))
        while one is not None:
            yield one
            one = self._parents.get(id(one))

    def _around(self, node: ast.AST, kind: type[ast.ClassDef]) -> ast.ClassDef | None:
        return next((one for one in self._over(node) if isinstance(one, kind)), None)

    def _function(self, node: ast.AST) -> _Function | None:
        return next((one for one in self._over(node) if isinstance(one, _Function)), None)

    def _file(self, node: ast.AST) -> ast.Module | None:
        return next((one for one in self._over(node) if isinstance(one, ast.Module)), None)


def _root(statement: ast.Expr) -> ast.expr:
    value: ast.expr = statement.value
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value
    return value


def _reads(value: ast.expr, name: str) -> bool:
    return any(isinstance(one, (ast.Name, ast.Attribute)) and dotted(one) == name for one in ast.walk(value))


def _binds(target: ast.expr, name: str) -> bool:
    inside = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return any(_binds(one, name) if one is not target else dotted(one) == name for one in inside)


def _part(statement: ast.Assign, name: str) -> ast.expr | None:
    """`ds.take(9)` for `train` of `train, test = ds.take(9), ds.skip(9)`; None where that is not written."""
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple) or len(target.elts) != len(value.elts):
        return None
    return next((one for left, one in zip(target.elts, value.elts) if dotted(left) == name), None)
